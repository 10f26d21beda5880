import Glibc

/// The text of a small file, also of one whose size the system does not tell.
public enum FileText {
    /// Nil where it cannot be read or has more than `limit` bytes; and, unless `ofAnyKind` says that a pipe or terminal is meant
    /// too, where it is no regular file.
    public static func read(_ path: String, limit: Int, ofAnyKind: Bool = false) -> String? {
        guard let descriptor = try? SystemCalls.open(path, ofAnyKind ? O_RDONLY : O_RDONLY | O_NONBLOCK) else { return nil }
        defer { SystemCalls.close(descriptor) }
        if !ofAnyKind { guard (try? SystemCalls.status(descriptor, path: path))?.isRegularFile == true else { return nil } }
        var bytes: [UInt8] = []
        return withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
            while bytes.count <= limit {
                guard let count = try? SystemCalls.readSome(descriptor, into: buffer, path: path) else { return nil }
                if count == 0 { return String(decoding: bytes, as: UTF8.self) }
                bytes.append(contentsOf: buffer[..<count])
            }
            return nil
        }
    }
}
