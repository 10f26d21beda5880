import Glibc
import SharedStore
import SystemCalls

/// The right to write to a replica: held by one mirror at a time, over all processes, and gone with the one that holds it.
///
/// An open-file-description lock on `X.management/mirror.lock`, which stays behind. Its content says who holds it, for the others'
/// messages; it is of no use without the lock.
final class MirrorLock {
    private let descriptor: SystemCalls.Descriptor

    /// - Throws: `MirrorError.busy`, naming host, process and start of the holder.
    init(destination: String, purpose: String) throws {
        let paths = SessionPaths(destination)
        let path = MirrorLock.path(destination)
        try MirrorState.makeManagementDirectory(paths)
        descriptor = try SystemCalls.open(path, O_RDWR | O_CREAT)
        do {
            guard try SystemCalls.tryDescriptionLock(descriptor, path: path) else {
                throw MirrorError.busy(destination: destination, holder: MirrorLock.content(descriptor, path))
            }
            let text = "\(purpose) by process \(getpid()) on \(MirrorLock.hostName), since \(MirrorLock.timeText())\n"
            try SystemCalls.truncate(descriptor, to: 0, path: path)
            try Array(text.utf8).withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: path) }
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    deinit { SystemCalls.close(descriptor) }

    private static func path(_ destination: String) -> String { SessionPaths(destination).management + "/mirror.lock" }

    /// Who holds the lock of a replica; nil where nobody does.
    static func holder(of destination: String) -> String? {
        let path = path(destination)
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return nil }
        defer { SystemCalls.close(descriptor) }
        guard (try? SystemCalls.isDescriptionLocked(descriptor, path: path)) == true else { return nil }
        return content(descriptor, path)
    }

    private static func content(_ descriptor: SystemCalls.Descriptor, _ path: String) -> String {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = (try? bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }) ?? 0
        let line = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").first.map(String.init)
        return line ?? "a process that has not given its name yet"
    }

    static let hostName: String = {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "this machine" }
        return name.withUnsafeBufferPointer { String(decoding: UnsafeRawBufferPointer($0).prefix { $0 != 0 }, as: UTF8.self) }
    }()

    /// The present time, as people of this machine write it.
    static func timeText(_ format: String = "%Y-%m-%d %H:%M:%S %Z") -> String {
        var now = time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, format, &parts)
        return text.withUnsafeBufferPointer { String(decoding: UnsafeRawBufferPointer($0).prefix(count), as: UTF8.self) }
    }
}
