import Glibc
import SystemCalls

/// An archive's place that is a folder.
///
/// ```
/// DIR/<name>          what is there
/// DIR/tmp/<n>.part    what is on its way; removed by the next holder of the lease
/// DIR/lock            held (an open-file-description lock) for the moment of a conditional put
/// ```
/// Crash argument: content goes to `tmp`, is synced, and then gets its name by one rename; the folder is synced before the call
/// returns. A name stands for nothing, or for something whole. Folders that are made on the way are synced into theirs.
///
/// On a file system without locks a conditional put is a look and a rename: two processes that put in the same millisecond may
/// both succeed. Steps are never replaced, so that even then nothing is lost.
public final class FolderPlace: ArchivePlace {
    /// Of the folder, as it was given.
    public let path: String
    public var description: String { path }
    private var knownFolders: Set<String> = []
    private var partCount = 0
    /// The folder was made by us.
    private var isMade = false

    /// - Parameter creates: make the folder where there is none.
    public init(_ path: String, creates: Bool) throws {
        var path = path
        while path.count > 1 && path.hasSuffix("/") { path.removeLast() }
        self.path = path
        if creates { try makeFolder(path) }
    }

    /// Lets nobody into a folder that was made by us who may not read the file that is archived in it.
    func protect(like source: String) throws {
        guard isMade, let status = try? SystemCalls.status(path: source) else { return }
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)
        defer { SystemCalls.close(descriptor) }
        let mayRead = status.mode & 0o044, present = try SystemCalls.status(descriptor, path: path).mode & 0o777
        let mode = present & (0o700 | mayRead | mayRead >> 2)
        // On a file system without permissions there is nothing to protect.
        if mode != present { try? SystemCalls.setMode(descriptor, mode, path: path) }
    }

    private func full(_ name: String) -> String { path + "/" + name }

    private func isThere(_ name: String) -> Bool { (try? SystemCalls.status(path: full(name)))?.isDirectory ?? false }

    /// The tag is empty unless all of the file was asked for.
    public func get(_ name: String, from offset: Int, count: Int) throws -> ArchiveRead? {
        let file = full(name)
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SystemCalls.open(file, O_RDONLY) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        { return nil }
        defer { SystemCalls.close(descriptor) }
        let size = try SystemCalls.status(descriptor, path: file).size
        let wanted = max(0, min(count, size - offset))
        var bytes = [UInt8](repeating: 0, count: wanted)
        let found = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: offset, path: file) }
        bytes.removeLast(wanted - found)
        return ArchiveRead(bytes: bytes, totalByteCount: size, tag: offset == 0 && found == size ? Self.tag(bytes) : "")
    }

    private static func tag(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { String(Checksum.xxh3($0), radix: 16) } }

    /// On a file system without locks, `matches` is a look and a rename.
    @discardableResult
    public func put(_ name: String, _ bytes: [UInt8], _ condition: ArchivePutCondition) throws -> String {
        let part = try Part(self, name)
        do {
            try part.append(bytes)
            switch condition {
            case .always: try part.finish()
            case .absent: try part.finish(exclusively: true)
            case .matches(let tag):
                try whileLocked {
                    let now = try get(name, from: 0, count: Int.max)
                    guard now?.tag == tag else { throw ArchivePlaceError.conflict(name: name) }
                    try part.finish()
                }
            }
        } catch {
            part.abandon()
            throw error
        }
        return Self.tag(bytes)
    }

    private func whileLocked(_ body: () throws -> Void) throws {
        let file = full("lock")
        let descriptor = try SystemCalls.open(file, O_RDWR | O_CREAT)
        defer { SystemCalls.close(descriptor) }
        for _ in 0..<5000 {
            do { if try SystemCalls.tryDescriptionLock(descriptor, path: file) { return try body() } } catch let error
                as SystemError
                where [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(error.code)
            { return try body() }
            usleep(1000)
        }
        throw ArchivePlaceError.unavailable(place: path, reason: "\(file) has been locked for 5 seconds")
    }

    /// Written beside the names, into `tmp`.
    public func upload(_ name: String) throws -> any ArchiveUpload { try Part(self, name) }

    /// Reads folders down to the depth that an archive can have; what lies deeper is left out.
    public func list(_ prefix: String) throws -> [String] {
        var found: [String] = []
        // Whole folders below the last slash of the prefix.
        let folder = prefix.lastIndex(of: "/").map { String(prefix[..<$0]) } ?? ""
        try collect(folder, prefix, 0, &found)
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static let depthMax = 8

    private func collect(_ folder: String, _ prefix: String, _ depth: Int, _ found: inout [String]) throws {
        let names: [String]
        do { names = try SystemCalls.names(inDirectory: folder.isEmpty ? path : full(folder)) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        { return }
        for part in names {
            let name = folder.isEmpty ? part : folder + "/" + part
            if name == "tmp" || name == "lock" || depth > Self.depthMax { continue }
            // Removed a moment ago, perhaps.
            guard let status = try? SystemCalls.linkStatus(path: full(name)) else { continue }
            if status.isDirectory {
                if (name + "/").hasPrefix(prefix) || prefix.hasPrefix(name + "/") { try collect(name, prefix, depth + 1, &found) }
            } else if name.hasPrefix(prefix) {
                found.append(name)
            }
        }
    }

    /// The folder goes too when it is empty then.
    public func delete(_ name: String) throws {
        do { try SystemCalls.unlink(full(name)) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        { return }
        // A folder that is empty now goes too; most are not.
        try? SystemCalls.removeDirectory(SystemCalls.parentDirectory(of: full(name)))
        knownFolders.remove(SystemCalls.parentDirectory(of: full(name)))
    }

    /// Empties `tmp`.
    public func removeLeftovers() throws {
        let folder = full("tmp")
        let names: [String]
        do { names = try SystemCalls.names(inDirectory: folder) } catch let error as SystemError where error.code == ENOENT {
            return
        }
        for name in names where name.hasSuffix(".part") { try SystemCalls.unlink(folder + "/" + name) }
    }

    private func makeFolder(_ folder: String) throws {
        if knownFolders.contains(folder) { return }
        do {
            try SystemCalls.makeDirectory(folder)
            if folder == path { isMade = true }
            try SystemCalls.syncDirectory(of: folder)
        } catch let error as SystemError where error.code == EEXIST {
        } catch let error as SystemError where error.code == ENOENT && folder.hasPrefix(path + "/") {
            try makeFolder(SystemCalls.parentDirectory(of: folder))
            try SystemCalls.makeDirectory(folder)
            try SystemCalls.syncDirectory(of: folder)
        }
        knownFolders.insert(folder)
    }

    /// A file in `tmp` that has no name yet.
    private final class Part: ArchiveUpload {
        private let place: FolderPlace
        private let name: String
        private let temporary: String
        private let descriptor: SystemCalls.Descriptor
        private var at = 0
        private var isOpen = true

        init(_ place: FolderPlace, _ name: String) throws {
            self.place = place
            self.name = name
            try place.makeFolder(place.full("tmp"))
            if !place.isThere("tmp") {
                guard place.isThere("") else {
                    // Whatever is mounted there may come back; a folder in its place would hide that it is gone.
                    throw ArchivePlaceError.unavailable(
                        place: place.path,
                        reason: "the folder is gone; it is waited for. Where it was removed for good, make it, or start again")
                }
                // Somebody has tidied up, or emptied it: what else is there is to be looked at.
                place.knownFolders.removeAll()
                throw ArchivePlaceError.conflict(name: "tmp")
            }
            place.partCount += 1
            let temporary = place.full("tmp/\(getpid())-\(place.partCount)-\(UInt32.random(in: 0...UInt32.max)).part")
            self.temporary = temporary
            descriptor = try Self.naming(place.full(name)) { try SystemCalls.open(temporary, O_WRONLY | O_CREAT | O_EXCL) }
        }

        deinit { abandon() }

        /// A failure names what was to be there: the same again and again is one failure, and the other name is of no use to anybody.
        private static func naming<T>(_ final: String, _ body: () throws -> T) throws -> T {
            do { return try body() } catch let error as SystemError {
                throw SystemError(call: error.call, code: error.code, path: final)
            }
        }

        func append(_ bytes: [UInt8]) throws {
            try Self.naming(place.full(name)) {
                try bytes.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: at, path: temporary) }
            }
            at += bytes.count
        }

        func finish() throws { try finish(exclusively: false) }

        func finish(exclusively: Bool) throws {
            try Self.naming(place.full(name)) { try SystemCalls.sync(descriptor, path: temporary) }
            let final = place.full(name)
            try place.makeFolder(SystemCalls.parentDirectory(of: final))
            do {
                if exclusively {
                    try SystemCalls.renameExclusively(temporary, to: final)
                } else {
                    try SystemCalls.rename(temporary, to: final)
                }
            } catch let error as SystemError where error.code == EEXIST {
                throw ArchivePlaceError.conflict(name: name)
            } catch let error as SystemError where error.code == ENOENT {
                // Somebody has removed the folder as empty.
                place.knownFolders.remove(SystemCalls.parentDirectory(of: final))
                throw ArchivePlaceError.unavailable(place: place.path, reason: "\(error)")
            }
            isOpen = false
            SystemCalls.close(descriptor)
            try SystemCalls.syncDirectory(of: final)
        }

        func abandon() {
            guard isOpen else { return }
            isOpen = false
            SystemCalls.close(descriptor)
            try? SystemCalls.unlink(temporary)
        }
    }
}
