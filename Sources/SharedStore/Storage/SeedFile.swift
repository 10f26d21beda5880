import Glibc
import SystemCalls

/// Puts a prepared file in the place of one that does not exist yet.
///
/// Crash argument: the copy is made under another name, synced, and renamed only if no file is there; then the directory is synced. Of
/// any number of processes exactly one finds the place empty; nobody ever sees half a file, and an existing one is never touched.
public enum SeedFile {
    /// Copies `seed` to `path` unless something is there; true where this call did it. The copy may be written by its owner.
    /// - Throws: `OpenError` where the seed cannot be read, `SystemError` where the copy cannot be made.
    public static func install(_ seed: String, to path: String) throws -> Bool {
        if exists(path) { return false }
        let source: SystemCalls.Descriptor
        do { source = try SystemCalls.open(seed, O_RDONLY | O_NONBLOCK) } catch let error as SystemError { throw OpenError(error, path: seed) }
        defer { SystemCalls.close(source) }
        let status = try SystemCalls.status(source, path: seed)
        if status.isDirectory { throw OpenError.isDirectory(path: seed) }
        if !status.isRegularFile { throw OpenError.notARegularFile(path: seed) }
        let temporary = "\(path).part-\(getpid())-\(UInt64.random(in: 0...UInt64(UInt32.max)))"
        let target = try SystemCalls.open(temporary, O_RDWR | O_CREAT | O_EXCL)
        defer { SystemCalls.close(target) }
        do {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
            defer { buffer.deallocate() }
            var position = 0
            while true {
                let n = try SystemCalls.read(source, into: buffer, at: position, path: seed)
                if n == 0 { break }
                try SystemCalls.write(target, UnsafeRawBufferPointer(rebasing: buffer[..<n]), at: position, path: temporary)
                position += n
            }
            try SystemCalls.sync(target, path: temporary)
            try SystemCalls.renameExclusively(temporary, to: path)
        } catch let error as SystemError where error.code == EEXIST {
            try? SystemCalls.unlink(temporary)
            return false
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
        try SystemCalls.syncDirectory(of: path)
        return true
    }

    private static func exists(_ path: String) -> Bool { (try? SystemCalls.linkStatus(path: path)) != nil }
}
