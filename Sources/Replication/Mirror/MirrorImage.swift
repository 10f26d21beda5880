import Glibc
import SharedStore
import SystemCalls

/// A first image: one version of a source, byte for byte where it is in use, as a file of its own (mirroring.md 6).
///
/// ```
/// header     slot 0 = the version's top, slot 1 = 0, formats {24, 0}, flags 0 (all zero for a file that was never committed to)
/// content    the used ranges of the version, at their places
/// the rest   zero, with real blocks, up to a page: others store into it through a mapping
/// ```
/// The source's header is not looked at and nobody is blocked: the version is pinned, so its used ranges stand still.
///
/// Crash argument: everything is written under another name, the header last, and synced before the name changes. Under the
/// final name there is the old file, or none, or the whole image. The state file comes before the name: a state without its file
/// is overwritten by the next mirror, a file without its state would pass for somebody else's.
enum MirrorImage {
    private static let chunkByteCount = 1 << 20

    /// In the directory that is ours, under the mirror lock: a file of this name is a left-over of a mirror, whoever names what
    /// beside the replica.
    static func temporaryPath(_ destination: String) -> String { SessionPaths(destination).management + "/mirror.part" }

    /// Writes the image of `snapshot` to `path`, which must not exist, and syncs it.
    ///
    /// - Parameter mode: the permission bits, less what the process's mask takes away.
    /// - Parameter progress: called with the bytes done and in all, between two pieces; what it throws ends the work.
    static func write(
        memory: Memory, snapshot: Snapshot, extents: FreeExtents, to path: String, key: EncryptionKey? = nil,
        mode: UInt32 = 0o600, format: UInt8 = FileHeader.currentFormat,
        progress: (Int, Int) throws -> Void = { _, _ in }
    ) throws {
        let descriptor = try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode)
        let file = backend(descriptor, path, key)
        do {
            defer { file.close() }
            let page = SystemCalls.pageSize
            try file.preallocate(to: max(page, (snapshot.logicalSize + page - 1) / page * page))
            let total = extents.usedByteCount
            var done = 0
            for range in extents.usedRanges() {
                var at = range.lowerBound
                while at < range.upperBound {
                    let count = min(chunkByteCount, range.upperBound - at)
                    try file.write(UnsafeRawBufferPointer(start: try memory.bytes(at: at, length: count), count: count), at: at)
                    if key != nil { try file.flush() }
                    memory.giveBack(at..<at + count)
                    at += count
                    done += count
                    try progress(done, total)
                }
                KillPoint.reach("image.range")
            }
            try writeHeader(snapshot, to: file, format: format)
            KillPoint.reach("image.header")
            try SystemCalls.sync(descriptor, path: path)
        } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
        KillPoint.reach("image.synced")
    }

    /// The backend for an image; it closes the descriptor.
    static func backend(_ descriptor: SystemCalls.Descriptor, _ path: String, _ key: EncryptionKey?) -> FileBackend {
        key.map { EncryptedFile(descriptor: descriptor, path: path, key: $0) } ?? PlainFile(descriptor: descriptor, path: path)
    }

    /// Opens a database file to look at it, without a session.
    static func open(_ path: String, key: EncryptionKey?) throws -> DatabaseFile {
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK) } catch let error as SystemError {
            throw OpenError(error, path: path)
        }
        return try DatabaseFile(backend: backend(descriptor, path, key))
    }

    static func writeHeader(_ snapshot: Snapshot, to file: FileBackend, format: UInt8 = FileHeader.currentFormat) throws {
        var header = FileHeader()
        if snapshot.topRef != 0 {
            header.topRefs = (UInt64(snapshot.topRef), 0)
            header.formats = (format, 0)
        }
        try withUnsafeTemporaryAllocation(byteCount: FileHeader.byteCount, alignment: 8) {
            guard let start = $0.baseAddress else { return }
            header.store(to: start)
            try file.write(UnsafeRawBufferPointer($0), at: 0)
        }
        try file.flush()
    }

    /// Gives the image its name, while nobody has a file of that name open and nobody can open it.
    ///
    /// - Parameters:
    ///   - setsAside: a file that is there keeps a name: that of the replica and the date.
    ///   - state: goes beside it.
    /// - Returns: the name of the file that was set aside.
    /// - Throws: `MirrorError.inUse` where somebody has it open; nothing was changed.
    @discardableResult
    static func install(_ temporary: String, as destination: String, replaces: Bool, setsAside: Bool, state: MirrorState) throws
        -> String?
    {
        let result: String?? = try StoreFiles.withExclusiveAccess(destination) { () -> String? in
            var aside: String?
            if setsAside, try isThere(destination) {
                let name = "\(destination).replaced-\(MirrorLock.timeText("%Y%m%d-%H%M%S"))-\(getpid())"
                try keep(destination, as: name)
                aside = name
            }
            // The state of an image makes a replica of whatever bears the name.
            if !replaces, try isThere(destination) { throw SystemError(call: "rename", code: EEXIST, path: destination) }
            KillPoint.reach("image.before-state")
            try state.write(replica: destination, durably: true)
            KillPoint.reach("image.before-name")
            if replaces {
                try SystemCalls.rename(temporary, to: destination)
            } else {
                do { try SystemCalls.renameExclusively(temporary, to: destination) } catch {
                    try? SystemCalls.unlink(SessionPaths(destination).mirrorState)
                    throw error
                }
            }
            KillPoint.reach("image.named")
            try SystemCalls.syncDirectory(of: destination)
            return aside
        }
        guard let result else {
            ReplacementWish.make(destination)
            throw MirrorError.inUse(destination: destination, holders: holders(destination))
        }
        ReplacementWish.takeBack(destination)
        return result
    }

    static func exists(_ path: String) -> Bool { (try? SystemCalls.linkStatus(path: path)) != nil }

    /// The same where it matters: what cannot be looked at is not absent.
    static func isThere(_ path: String) throws -> Bool {
        do { _ = try SystemCalls.linkStatus(path: path) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        { return false }
        return true
    }

    /// A second name for what will be replaced; where the file system knows no second names, the file is renamed.
    private static func keep(_ path: String, as name: String) throws {
        do { try SystemCalls.link(path, to: name) } catch let error as SystemError
            where [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(error.code)
        {
            try SystemCalls.renameExclusively(path, to: name)
        }
    }

    /// Who has a file open, as far as their registers tell. Joins nobody's session.
    static func holders(_ path: String) -> String {
        let folder = SessionPaths(path).participants
        let names = ((try? SystemCalls.names(inDirectory: folder)) ?? []).filter { $0.hasSuffix(".participant") }
        let processes = names.compactMap { name -> String? in
            guard let descriptor = try? SideFile.open(folder + "/" + name, O_RDONLY) else { return nil }
            defer { SystemCalls.close(descriptor) }
            guard (try? SystemCalls.isDescriptionLocked(descriptor, path: name)) == true else { return nil }
            return name.split(separator: "-").first.map { "process \($0)" }
        }
        return Set(processes).sorted().joined(separator: ", ")
    }
}
