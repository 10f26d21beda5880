import Glibc
import Replication
import SharedStore
import Synchronization
import SystemCalls

/// Looks again and again for the files of a directory that are to be mirrored, on a thread of its own: a folder on a file system
/// that hangs keeps nobody else waiting.
///
/// What we and others have made of realms is left out: side files, files that were set aside, replicas, and all that lies where
/// something is mirrored or archived to.
final class DirectoryScanner: @unchecked Sendable {
    // Sendable: the state is guarded by its mutex, the rest never changes.
    let specification: DirectorySpecification
    /// Folders and files that the service itself writes to.
    private let outputs: [String]
    private let onChange: @Sendable () -> Void
    private let wake: SystemCalls.Descriptor
    private struct State {
        var paths: Set<ExactString>?
        var error: String?
        var wantsStop = false
    }
    private let state = Mutex(State())

    /// Files that one directory may have; more are an error that status shows.
    static let fileCountMax = 100_000
    private static let depthMax = 64

    init(_ specification: DirectorySpecification, outputs: [String], onChange: @escaping @Sendable () -> Void) throws {
        self.specification = specification
        self.outputs = outputs
        self.onChange = onChange
        wake = try SystemCalls.makeEventDescriptor()
    }

    deinit { SystemCalls.close(wake) }

    func start() throws {
        try BackgroundThread.start("scanner") { [self] in main() }
    }

    func stop() {
        state.withLock { $0.wantsStop = true }
        SystemCalls.signal(wake)
    }

    /// What was found last, by paths relative to the folder; nil before the first look is over, and while the folder cannot be
    /// read.
    var found: (paths: Set<ExactString>?, error: String?) { state.withLock { ($0.paths, $0.error) } }

    private func main() {
        while true {
            var paths: Set<ExactString>?, error: String?
            do { paths = try scan() } catch let failure { error = Text.oneLine("\(failure)") }
            let (changed, stops) = state.withLock { state in
                let changed = paths != nil && paths != state.paths || error != state.error
                if let paths { state.paths = paths }
                state.error = error
                return (changed, state.wantsStop)
            }
            if changed { onChange() }
            if stops { return }
            var request = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
            poll(&request, 1, Int32(clamping: specification.scanInterval.nanoseconds / 1_000_000))
            if state.withLock({ $0.wantsStop }) { return }
        }
    }

    func scan() throws -> Set<ExactString> {
        var found: Set<ExactString> = []
        try scan("", 0, &found)
        return found
    }

    private func scan(_ relative: String, _ depth: Int, _ found: inout Set<ExactString>) throws {
        let folder = relative.isEmpty ? specification.folder : specification.folder + "/" + relative
        let names: [String]
        do { names = try SystemCalls.names(inDirectory: folder) } catch let error as SystemError
            where !relative.isEmpty && error.code == ENOENT
        { return }
        for name in names {
            let path = relative.isEmpty ? name : relative + "/" + name
            let whole = specification.folder + "/" + path
            // Names with line ends and the like are nobody's realms, and would forge lines of the log.
            if name.hasPrefix(".") || Text.visible(name) != name || isOutput(whole) { continue }
            let matches = Self.matches(name, specification.patterns) && !Self.matches(name, specification.excludes)
            if !matches && !specification.isRecursive { continue }
            guard let status = try? SystemCalls.linkStatus(path: whole) else { continue }
            if status.isDirectory {
                if specification.isRecursive, depth < Self.depthMax, !name.hasSuffix(".management") {
                    try scan(path, depth + 1, &found)
                }
                continue
            }
            // An empty file is one in the making.
            guard matches, status.isRegularFile, status.size > 0, !Self.isMadeByUs(name), !isReplica(whole) else { continue }
            if found.count == Self.fileCountMax {
                throw CommandFailure(
                    .unavailable,
                    "\(specification.folder) has more than \(Self.fileCountMax) files; divide it among several sections")
            }
            found.insert(ExactString(path))
        }
    }

    private static func matches(_ name: String, _ patterns: [String]) -> Bool {
        patterns.contains { fnmatch($0, name, 0) == 0 }
    }

    /// Side files, files on their way, and files that were set aside.
    static func isMadeByUs(_ name: String) -> Bool {
        [".lock", ".note", ".part", ".management"].contains { name.hasSuffix($0) } || name.contains(".replaced-")
    }

    private func isOutput(_ path: String) -> Bool {
        outputs.contains { path == $0 || path.hasPrefix($0 + "/") }
    }

    private func isReplica(_ path: String) -> Bool {
        // A state that is damaged is one too.
        do { return try MirrorState.read(replica: path) != nil } catch { return true }
    }
}
