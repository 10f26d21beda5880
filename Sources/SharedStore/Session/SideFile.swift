import Glibc
import SystemCalls

/// Opening the files that lie beside a database, by names that everybody can guess.
///
/// What has such a name need not be ours: a link to something precious, a FIFO that nobody writes to, another file of the user's.
/// So no link is followed, nothing waits, and only regular files are opened; what is overwritten is looked at before
/// (`LockFile.requireLockFile`).
package enum SideFile {
    /// Opens `path` without following a symbolic link in its last part, and without waiting for anybody.
    ///
    /// - Throws: `SessionError.sideFile` where the name is that of a link or of something else than a regular file;
    ///   `SystemError`.
    package static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o644) throws -> SystemCalls.Descriptor {
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SystemCalls.open(path, flags | O_NOFOLLOW | O_NONBLOCK, mode: mode) } catch let error as SystemError
        {
            guard error.code == ELOOP, (try? SystemCalls.linkStatus(path: path))?.isSymbolicLink == true else { throw error }
            let leadsNowhere = (try? SystemCalls.status(path: path)) == nil
            throw SessionError.sideFile(
                path: path,
                reason: "is a symbolic link\(leadsNowhere ? " that leads nowhere" : ", which is not followed"); remove it")
        }
        do {
            if try !SystemCalls.status(descriptor, path: path).isRegularFile {
                throw SessionError.sideFile(path: path, reason: "is not a regular file; remove it")
            }
            return descriptor
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    /// The beginning of a side file, at most `byteCountMax` bytes.
    package static func text(_ path: String, byteCountMax: Int) throws -> String {
        let descriptor = try open(path, O_RDONLY)
        defer { SystemCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: byteCountMax)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Makes a new file at `path`, in the place of whatever had this name in a directory that is ours.
    package static func create(_ path: String, mode: UInt32 = 0o644) throws -> SystemCalls.Descriptor {
        do { try SystemCalls.unlink(path) } catch let error as SystemError where error.code == ENOENT {}
        return try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode)
    }
}

extension LockFile {
    /// Opens the lock file, or makes an empty one; both for joining a session and for keeping everybody out.
    ///
    /// - Throws: `SessionError.sideFile` where the name leads to anything but a regular file of its own, above all to the
    ///   database itself.
    static func openDescriptor(_ paths: SessionPaths) throws -> SystemCalls.Descriptor {
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SideFile.open(paths.lock, O_RDWR | O_CREAT) } catch let error as SystemError {
            throw openingError(error, paths)
        }
        if let lock = try? SystemCalls.status(descriptor, path: paths.lock), let file = try? SystemCalls.status(path: paths.file),
            lock.device == file.device, lock.inode == file.inode
        {
            SystemCalls.close(descriptor)
            throw SessionError.sideFile(path: paths.lock, reason: "is the database itself by another name; remove this name")
        }
        return descriptor
    }

    private static func openingError(_ error: SystemError, _ paths: SessionPaths) -> any Error {
        let folder = SystemCalls.parentDirectory(of: paths.lock)
        switch error.code {
        case ENOENT where (try? SystemCalls.status(path: folder)) != nil:
            return SessionError.sideFile(
                path: paths.lock, reason: "cannot be made: its folder has been removed, or is being changed")
        case ENOENT, ENOTDIR: return OpenError.fileNotFound(path: folder)
        default:
            // Whoever may not write into the directory has a problem with the directory, not with a lock file that is not there.
            if error.isPermissionDenied, (try? SystemCalls.linkStatus(path: paths.lock)) == nil {
                return SessionError.sideFile(path: paths.lock, reason: "cannot be created: \(error.reason)", code: error.code)
            }
            return sideFileError(error)
        }
    }

    /// Any failure that concerns the lock file, in words that name it.
    static func sideFileError(_ error: SystemError) -> any Error {
        if error.isOutOfSpace { return error }
        return SessionError.sideFile(path: error.path, reason: "\(error.call): \(error.reason)", code: error.code)
    }

    /// Asked before the file is emptied or made anew; the caller holds the exclusive `flock`.
    ///
    /// - Throws: `SessionError.sideFile` where the content is somebody else's; it is as it was then.
    static func requireLockFile(_ descriptor: SystemCalls.Descriptor, _ path: String) throws {
        do {
            let size = try SystemCalls.status(descriptor, path: path).size
            var head = [UInt8](repeating: 0, count: headByteCount)
            let count = try head.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
            if looksLikeLockFile(head[..<count], size: size) { return }
        } catch let error as SystemError { throw sideFileError(error) }
        throw SessionError.sideFile(
            path: path,
            reason:
                "holds something else than a lock file and is left as it is; give it another name, or remove it if nobody needs it"
        )
    }

    /// What is the same in the lock files of all versions, up to the mutexes (coordination.md 2.1).
    private static let headByteCount = 48

    /// Whether a file may be a lock file, of this layout or of another one, perhaps damaged or half written; a lock file that
    /// nobody holds may say anything in its fields and is made anew.
    ///
    /// - Parameter head: the first bytes, at most `headByteCount`.
    static func looksLikeLockFile(_ head: ArraySlice<UInt8>, size: Int) -> Bool {
        if size == 0 { return true }
        if size > mappedByteCount { return false }
        let head = Array(head)
        let isText = head.allSatisfy { $0 >= 32 && $0 != 127 || (9...13).contains($0) } && head.contains { $0 < 128 }
        if isText || head.count >= 20 && head[16..<20].elementsEqual("T-DB".utf8) { return false }
        // Sizes that only lock files have: no multiple of a page among them.
        if size >= initialByteCount && (size - initialByteCount) % (recordStep * recordByteCount) == 0 { return true }
        // Blocks that were never written, after a power cut.
        if head.allSatisfy({ $0 == 0 }) { return true }
        func byte(_ at: Int, isIn range: ClosedRange<UInt8>) -> Bool { at >= head.count || range.contains(head[at]) }
        // Marks, sizes of a mutex and a condition variable, and the upper bytes of the layout's version and of the durability.
        return byte(0, isIn: 0...1) && byte(1, isIn: 16...128) && byte(2, isIn: 16...128) && byte(3, isIn: 0...1)
            && byte(7, isIn: 0...0)
            && byte(9, isIn: 0...0)
    }
}
