import Glibc
import SharedStore
import SystemCalls

/// The right to write to a replica: held by one mirror at a time, over all processes, and gone with the one that holds it.
///
/// An open-file-description lock on `X.management/mirror.lock`, which stays behind beside a replica. Where nothing came of the
/// mirror the holder removes it, and the folder, if that is empty and the holder has made it; so a lock counts only on the file
/// that still has the name. Its content says who holds it, for the others' messages; it is of no use without the lock.
final class MirrorLock {
    private let descriptor: SystemCalls.Descriptor
    private let destination: String
    private let madeDirectory: Bool

    /// - Throws: `MirrorError.busy`, naming host, process and start of the holder.
    init(destination: String, purpose: String) throws {
        let paths = SessionPaths(destination)
        let path = MirrorLock.path(destination)
        self.destination = destination
        var made = false
        let text = "\(purpose) by process \(getpid()) on \(MirrorLock.hostName), since \(MirrorLock.timeText())\n"
        // All that may fail is over before this object has anything to give back.
        descriptor = try MirrorLock.locked(destination, paths, path, text, &made)
        madeDirectory = made
    }

    /// The lock's file still has its name; somebody may have removed it, and then others may take another one.
    var isStanding: Bool { (try? MirrorLock.isNamed(descriptor, MirrorLock.path(destination))) == true }

    private static func isNamed(_ descriptor: SystemCalls.Descriptor, _ path: String) throws -> Bool {
        let status = try SystemCalls.status(descriptor, path: path)
        guard let named = try? SystemCalls.status(path: path) else { return false }
        return named.inode == status.inode && named.device == status.device
    }

    deinit {
        let paths = SessionPaths(destination)
        if madeDirectory, isStanding, (try? SystemCalls.linkStatus(path: paths.mirrorState)) == nil {
            try? SystemCalls.unlink(MirrorLock.path(destination))
            try? SystemCalls.removeDirectory(paths.management)
        }
        SystemCalls.close(descriptor)
    }

    /// The open and locked file, with its content. Another one may come under the name between opening and locking, so it is
    /// looked at again.
    private static func locked(
        _ destination: String, _ paths: SessionPaths, _ path: String, _ text: String, _ made: inout Bool
    ) throws -> SystemCalls.Descriptor {
        for _ in 0..<attemptsMax {
            if try MirrorState.makeManagementDirectory(paths) { made = true }
            let descriptor: SystemCalls.Descriptor
            do { descriptor = try SideFile.open(path, O_RDWR | O_CREAT) } catch let error as SystemError
                where error.code == ENOENT
            { continue }
            do {
                guard try SystemCalls.tryDescriptionLock(descriptor, path: path) else {
                    throw MirrorError.busy(destination: destination, holder: MirrorLock.content(descriptor, path))
                }
                if try isNamed(descriptor, path) {
                    try MirrorLock.requireOurs(descriptor, path)
                    try SystemCalls.truncate(descriptor, to: 0, path: path)
                    try Array(text.utf8).withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: path) }
                    return descriptor
                }
            } catch {
                SystemCalls.close(descriptor)
                throw error
            }
            SystemCalls.close(descriptor)
        }
        throw MirrorError.busy(destination: destination, holder: "others who come and go")
    }

    private static let attemptsMax = 100

    /// The file is emptied next: it must hold nothing but what a mirror has written, or what a power cut has made of that.
    private static func requireOurs(_ descriptor: SystemCalls.Descriptor, _ path: String) throws {
        let size = try SystemCalls.status(descriptor, path: path).size
        var bytes = [UInt8](repeating: 0, count: min(size, byteCountMax))
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        let isBlank = bytes[..<count].allSatisfy { $0 == 0 }
        if size <= byteCountMax && (isBlank || String(decoding: bytes[..<count], as: UTF8.self).contains(" by process ")) {
            return
        }
        throw SessionError.sideFile(
            path: path, reason: "holds something else than the name of a mirror and is left as it is; remove it")
    }

    /// Paths in the purpose, and a line about the holder.
    private static let byteCountMax = 16_384

    private static func path(_ destination: String) -> String { SessionPaths(destination).management + "/mirror.lock" }

    /// Who holds the lock of a replica; nil where nobody does.
    static func holder(of destination: String) -> String? {
        let path = path(destination)
        guard let descriptor = try? SideFile.open(path, O_RDONLY) else { return nil }
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
