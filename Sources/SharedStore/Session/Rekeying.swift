import Glibc
import SystemCalls

/// Encrypting, decrypting and changing the key of a file that nobody has open.
///
/// The file is replaced by a copy of its newest version without free space, in streaming form (file-format-3 7.1). Version
/// number, history and format stay. Mode and owner stay; the inode does not, so a file with further hard links parts from them.
///
/// Crash argument: the copy lies under the name that a compaction uses, is synced, checked, and renamed over the file. The path
/// stands for the whole old file or the whole new one at any time; a copy that a killed process left is removed by the next.
///
/// What is not done: the blocks of the old file are given back to the file system without being overwritten, and backups of
/// older formats beside the file keep their key.
extension StoreFiles {
    /// Replaces the file at `path` by one with another key, or without one.
    ///
    /// - Parameters:
    ///   - oldKey: the key that the file has; nil where it is not encrypted.
    ///   - newKey: nil for a file that is not encrypted.
    ///   - check: looks at the copy, given its path, before it takes the file's place; what it throws leaves all as it is.
    /// - Throws: `OpenError` where the file cannot be read with `oldKey`; `SessionError.inUse` where somebody has it open,
    ///   `unusable` where it cannot be replaced; `SystemError`. The file is as it was then, unless the very last step, syncing
    ///   the directory, failed.
    public static func changeKey(
        _ path: String, from oldKey: EncryptionKey?, to newKey: EncryptionKey?, check: (String) throws -> Void = { _ in }
    ) throws {
        let path = SessionPaths(path).file
        let status: SystemCalls.Status
        do { status = try SystemCalls.status(path: path) } catch let error as SystemError { throw OpenError(error, path: path) }
        if status.isDirectory { throw OpenError.isDirectory(path: path) }
        if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
        if let source = Store.mirroredPath(path) { throw SessionError.replica(path: path, source: source) }
        // No side file is made beside what is no database, or has another key. It says most clearly, too, what is wrong.
        _ = try SteadyReading.file(path, key: oldKey)
        let done: Void? = try withExclusiveAccess(path) {
            let replacement = try copy(path, oldKey, newKey)
            do {
                try check(replacement.temporaryPath)
                KillPoint.reach("rekey.copied")
                try replacement.install()
            } catch {
                replacement.discard()
                throw error
            }
            KillPoint.reach("rekey.renamed")
        }
        if done == nil { throw SessionError.inUse(path: path) }
    }

    private static func copy(_ path: String, _ oldKey: EncryptionKey?, _ newKey: EncryptionKey?) throws
        -> StreamingCopy.Replacement
    {
        // Says most clearly what is wrong with the file, or with the key.
        _ = try ImmutableFile(path: path, key: oldKey)
        let source = backend(try SystemCalls.open(path, O_RDONLY), path, oldKey)
        defer { source.close() }
        let file = try DatabaseFile(backend: source)
        let inspection = try file.inspect()
        let view = try file.view(of: inspection.snapshot)
        let hasVersions =
            try inspection.snapshot.topRef != 0 && view.memory.node(inspection.snapshot.topRef).count > TopSlot.version
        let copy = StreamingCopy(
            version: hasVersions ? inspection.snapshot.version : nil, keepsHistory: true, keepsSyncFileIdent: true,
            format: inspection.format)
        return try copy.makeReplacement(view, ofPath: path) {
            backend(try createReplacement($0, of: path), $0, newKey)
        }
    }

    /// Creates the file that will take the place of the one at `path`, with its mode, owner and group.
    ///
    /// - Throws: `SessionError.unusable` where only another owner is possible, who might lock out the present one; `SystemError`.
    static func createReplacement(_ temporary: String, of path: String) throws -> SystemCalls.Descriptor {
        let status = try SystemCalls.status(path: path)
        let descriptor = try SystemCalls.open(temporary, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
        do {
            let made = try SystemCalls.status(descriptor, path: temporary)
            if made.owner != status.owner || made.group != status.group {
                do { try SystemCalls.setOwner(descriptor, status.owner, group: status.group, path: temporary) } catch let error
                    as SystemError
                {
                    // Another group can be borne, another owner cannot.
                    if made.owner != status.owner || !error.isPermissionDenied {
                        throw SessionError.unusable(
                            path: path,
                            reason: "it belongs to user \(status.owner), and its replacement would belong to user \(made.owner)")
                    }
                }
            }
            try SystemCalls.setMode(descriptor, status.mode & 0o777, path: temporary)
            return descriptor
        } catch {
            SystemCalls.close(descriptor)
            try? SystemCalls.unlink(temporary)
            throw error
        }
    }

    private static func backend(_ descriptor: SystemCalls.Descriptor, _ path: String, _ key: EncryptionKey?) -> FileBackend {
        key.map { EncryptedFile(descriptor: descriptor, path: path, key: $0) } ?? PlainFile(descriptor: descriptor, path: path)
    }
}

extension EncryptionKey {
    /// Makes a file that holds the key, readable by its owner only; there must be none of that name.
    ///
    /// - Parameter hexadecimal: 128 digits and a line end instead of the 64 bytes.
    /// - Throws: `SystemError`; EEXIST where the file exists.
    public func write(toNewFile path: String, hexadecimal: Bool = false) throws {
        let descriptor = try SystemCalls.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        defer { SystemCalls.close(descriptor) }
        do {
            try withBytes { bytes in
                if !hexadecimal {
                    try SystemCalls.write(descriptor, bytes, at: 0, path: path)
                    return
                }
                try withUnsafeTemporaryAllocation(byteCount: 2 * EncryptionKey.byteCount + 1, alignment: 1) { text in
                    defer { if let start = text.baseAddress { explicit_bzero(start, text.count) } }
                    func digit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }
                    for (i, byte) in bytes.enumerated() {
                        text[2 * i] = digit(byte >> 4)
                        text[2 * i + 1] = digit(byte & 15)
                    }
                    text[2 * EncryptionKey.byteCount] = 10
                    try SystemCalls.write(descriptor, UnsafeRawBufferPointer(text), at: 0, path: path)
                }
            }
            try SystemCalls.sync(descriptor, path: path)
            try SystemCalls.syncDirectory(of: path)
        } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
    }
}
