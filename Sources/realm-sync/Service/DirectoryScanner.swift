import Glibc
import Replication
import SharedStore
import Synchronization
import SystemCalls

/// Looks again and again for the files of a directory that are to be mirrored, on a thread of its own: a folder on a file system
/// that hangs keeps nobody else waiting.
///
/// What we and others have made of realms is left out: side files, files that were set aside, replicas, and all that lies where
/// something is mirrored or archived to. A folder within the folder that cannot be read is told of and keeps nothing else from
/// being found.
final class DirectoryScanner: @unchecked Sendable {
    // Sendable: the state is guarded by its mutex, the rest never changes.
    let specification: DirectorySpecification
    /// Folders and files that the service itself writes to.
    let outputs: [String]
    private let onChange: @Sendable () -> Void
    private let list: @Sendable (String) throws -> [String]
    private let wake: SystemCalls.Descriptor
    private struct State {
        var paths: Set<ExactString>?
        var errors: [String] = []
        var wantsStop = false
    }
    /// What one look has found.
    struct Found {
        var paths: Set<ExactString> = []
        var errors: [String] = []
        /// Folders, relative, of whose files nothing is known now.
        var unread: [String] = []
        /// Names of files that can be no names of streams.
        var oddNames: [String] = []
    }
    private let state = Mutex(State())

    /// Files that one directory may have; more are an error that status shows.
    static let fileCountMax = 100_000
    private static let depthMax = 64
    /// Folders that cannot be read are told of up to so many.
    private static let errorCountMax = 20

    /// - Parameter list: the names in a folder.
    init(
        _ specification: DirectorySpecification, outputs: [String],
        list: @escaping @Sendable (String) throws -> [String] = { try SystemCalls.names(inDirectory: $0) },
        onChange: @escaping @Sendable () -> Void
    ) throws {
        self.specification = specification
        self.outputs = outputs
        self.list = list
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

    /// What was found last, by paths relative to the folder; nil before the first look is over. And what could not be looked at.
    var found: (paths: Set<ExactString>?, errors: [String]) { state.withLock { ($0.paths, $0.errors) } }

    private func main() {
        while true {
            var found: Found?, errors: [String] = []
            do {
                let look = try scan()
                (found, errors) = (look, look.errors)
            } catch { errors = [Text.oneLine("\(error)")] }
            let (changed, stops) = state.withLock { state in
                var paths = found?.paths
                // What was known of folders that cannot be read now is still so.
                for folder in found?.unread ?? [] {
                    paths?.formUnion((state.paths ?? []).filter { $0.text.hasPrefix(folder + "/") })
                }
                let changed = paths != nil && paths != state.paths || errors != state.errors
                if let paths { state.paths = paths }
                state.errors = errors
                return (changed, state.wantsStop)
            }
            if changed { onChange() }
            if stops { return }
            var request = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
            poll(&request, 1, Int32(clamping: specification.scanInterval.nanoseconds / 1_000_000))
            if state.withLock({ $0.wantsStop }) { return }
        }
    }

    func scan() throws -> Found {
        var found = Found()
        try scan("", 0, &found)
        if let first = found.oddNames.first {
            let count = found.oddNames.count - 1
            let others = count == 0 ? "" : count == 1 ? " and one other" : " and \(count) others"
            found.errors.append(
                "\(specification.folder): '\(Text.visible(first))'\(others): no stream can have such a name, with control characters or bytes that are no "
                    + "text; rename the file, or leave it out by 'exclude'")
        }
        return found
    }

    private func scan(_ relative: String, _ depth: Int, _ found: inout Found) throws {
        let folder = relative.isEmpty ? specification.folder : specification.folder + "/" + relative
        let names: [String]
        do { names = try list(folder) } catch let error as SystemError where !relative.isEmpty {
            if error.code == ENOENT { return }
            found.unread.append(relative)
            if found.errors.count < Self.errorCountMax { found.errors.append("\(error)") }
            return
        }
        for name in names {
            let path = relative.isEmpty ? name : relative + "/" + name
            let whole = specification.folder + "/" + path
            if name.hasPrefix(".") || isOutput(whole) || Self.matches(name, specification.excludes) { continue }
            let matches = Self.matches(name, specification.patterns)
            if !matches && !specification.isRecursive { continue }
            guard let status = try? SystemCalls.linkStatus(path: whole) else {
                // Bytes that are no text were replaced, and nothing has the name that came of it.
                if matches, name.unicodeScalars.contains("\u{FFFD}") { found.oddNames.append(path) }
                continue
            }
            // Names with line ends and the like would forge lines of the log.
            let isOdd = Text.visible(name) != name
            if status.isDirectory {
                if isOdd, specification.isRecursive { found.oddNames.append(path) }
                if !isOdd, specification.isRecursive, depth < Self.depthMax, !name.hasSuffix(".management") {
                    try scan(path, depth + 1, &found)
                }
                continue
            }
            // An empty file is one in the making.
            guard matches, status.isRegularFile, status.size > 0, !Self.isMadeByUs(name), !isReplica(whole) else { continue }
            if isOdd {
                found.oddNames.append(path)
                continue
            }
            if found.paths.count == Self.fileCountMax {
                throw CommandFailure(
                    .unavailable,
                    "\(specification.folder) has more than \(Self.fileCountMax) files; divide it among several sections")
            }
            found.paths.insert(ExactString(path))
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
