import Glibc
import SystemCalls

enum TextFile {
    /// The whole of a small file, also of one whose size the system does not tell; nil where it cannot be read or has more
    /// than 4 MiB.
    static func read(_ path: String) -> String? {
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return nil }
        defer { SystemCalls.close(descriptor) }
        var bytes: [UInt8] = []
        return withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
            while bytes.count < 4 << 20 {
                guard let count = try? SystemCalls.readSome(descriptor, into: buffer, path: path) else { return nil }
                if count == 0 { return String(decoding: bytes, as: UTF8.self) }
                bytes.append(contentsOf: buffer[..<count])
            }
            return nil
        }
    }
}
