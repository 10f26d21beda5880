import Glibc
import SystemCalls

/// Puts a prepared file in the place of one that does not exist yet.
///
/// Of any number of processes exactly one finds the place empty; nobody ever sees half a file, and an existing one is never
/// touched. How: `SeedDraft`.
public enum SeedFile {
    /// Copies `seed` to `path` unless something is there; true where this call did it. The copy may be written by its owner.
    /// - Throws: `OpenError` where the seed cannot be read, the folder of `path` is missing, or `path` is a directory;
    ///   `SystemError` where the copy cannot be made.
    public static func install(_ seed: String, to path: String) throws -> Bool {
        if let standing = try? SystemCalls.linkStatus(path: path) {
            if standing.isDirectory { throw OpenError.isDirectory(path: path) }
            return false
        }
        let source: SystemCalls.Descriptor
        do { source = try SystemCalls.open(seed, O_RDONLY | O_NONBLOCK) } catch let error as SystemError {
            throw OpenError(error, path: seed)
        }
        defer { SystemCalls.close(source) }
        let status = try SystemCalls.status(source, path: seed)
        if status.isDirectory { throw OpenError.isDirectory(path: seed) }
        if !status.isRegularFile { throw OpenError.notARegularFile(path: seed) }
        // As private as the seed, and writable by its owner.
        let draft: SeedDraft
        do { draft = try SeedDraft(for: path, mode: status.mode & 0o666 | 0o600) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        {
            throw OpenError.fileNotFound(path: SystemCalls.parentDirectory(of: path))
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            let n = try SystemCalls.read(source, into: buffer, at: draft.byteCount, path: seed)
            if n == 0 { break }
            try draft.append(UnsafeRawBufferPointer(rebasing: buffer[..<n]))
        }
        return try draft.place()
    }
}

/// A file in the making, beside the place that it is meant for: what installs seeds and what fetches them have this in common.
///
/// Crash argument: it has a name of its own, is synced, and gets its final name by one rename; then the directory is synced.
/// Under the final name there is what was there before, or all of it. A draft that is let go leaves nothing; one of a killed
/// process leaves a file whose name ends in `.part-PROCESS-NUMBER`.
///
/// Used by one thread.
public final class SeedDraft {
    /// Where it is going to be.
    public let path: String
    /// Where it is now.
    public let temporaryPath: String
    /// Bytes that were appended since the beginning, or since `empty`.
    public private(set) var byteCount = 0
    private let descriptor: SystemCalls.Descriptor
    private var isOver = false

    /// - Throws: `SystemError` where no file can be made there.
    public init(for path: String, mode: UInt32 = 0o644) throws {
        self.path = path
        temporaryPath = "\(path).part-\(getpid())-\(UInt64.random(in: 0...UInt64(UInt32.max)))"
        descriptor = try SystemCalls.open(temporaryPath, O_RDWR | O_CREAT | O_EXCL, mode: mode)
    }

    deinit {
        SystemCalls.close(descriptor)
        if !isOver { try? SystemCalls.unlink(temporaryPath) }
    }

    /// Adds to the end; durable only with `place` or `replace`.
    ///
    /// - Throws: `SystemError`; the bytes may be there in part then, and the draft is of no use any more.
    public func append(_ bytes: UnsafeRawBufferPointer) throws {
        try SystemCalls.write(descriptor, bytes, at: byteCount, path: temporaryPath)
        byteCount += bytes.count
    }

    /// Begins anew.
    public func empty() throws {
        try SystemCalls.truncate(descriptor, to: 0, path: temporaryPath)
        byteCount = 0
    }

    /// Gives it its name if nothing has that name; false where something has, which stays as it is.
    public func place() throws -> Bool {
        try SystemCalls.sync(descriptor, path: temporaryPath)
        do { try SystemCalls.renameExclusively(temporaryPath, to: path) } catch let error as SystemError
            where error.code == EEXIST
        { return false }
        try named()
        return true
    }

    /// Gives it its name, also where something has it already; until then that is what it was.
    ///
    /// - Parameter mode: of the file.
    public func replace(mode: UInt32) throws {
        try SystemCalls.setMode(descriptor, mode, path: temporaryPath)
        try SystemCalls.sync(descriptor, path: temporaryPath)
        try SystemCalls.rename(temporaryPath, to: path)
        try named()
    }

    private func named() throws {
        isOver = true
        try SystemCalls.syncDirectory(of: path)
    }
}
