import CShims
import Glibc
import SystemCalls

/// Finds out who holds a lock, for the text of an error. Never fails: what cannot be found out is said so.
enum LockHolder {
    /// Bits of a robust mutex's futex word (coordination.md 2.5).
    static let threadMask: UInt32 = 0x3FFF_FFFF
    static let ownerDiedBit: UInt32 = 0x4000_0000

    /// The owner of a mutex by its futex word. Thread ids count in the owner's own pid namespace.
    static func describe(mutexWord word: UInt32) -> String {
        if word & ownerDiedBit != 0 { return "a thread that died" }
        let thread = word & threadMask
        if thread == 0 { return "nobody by now" }
        guard let status = read("/proc/\(thread)/status") else {
            return "thread \(thread), which is not visible from here (it may live in another container)"
        }
        return describe(process: field("Tgid", status) ?? String(thread))
    }

    /// The processes that hold a `flock` on the file with this inode number, as far as the system tells.
    static func describe(flockOnInode inode: UInt64) -> String {
        var names: [String] = []
        for line in (read("/proc/locks") ?? "").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard let type = words.firstIndex(of: "FLOCK"), words.count > type + 4 else { continue }
            if words[type + 4].split(separator: ":").last == Substring(String(inode)) {
                names.append(describe(process: String(words[type + 3])))
            }
        }
        return names.isEmpty ? "a process that is not visible from here" : names.joined(separator: ", ")
    }

    static func describe(process: String) -> String {
        guard let status = read("/proc/\(process)/status") else { return "process \(process)" }
        let name = field("Name", status) ?? "?"
        let state = field("State", status)?.first == "T" ? ", which is stopped" : ""
        return "process \(process) (\(name))\(state)"
    }

    /// The value of a line "Key:\tvalue" of a status file.
    private static func field(_ key: String, _ text: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix(key + ":") {
            return String(line.dropFirst(key.count + 1).drop { $0 == " " || $0 == "\t" })
        }
        return nil
    }

    /// The beginning (64 KiB) of a small file of the system.
    static func read(_ path: String) -> String? {
        let fd = CShims_open(path, O_RDONLY | O_CLOEXEC, 0)
        if fd < 0 { return nil }
        defer { CShims_close(Int32(fd)) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 65_536 {
            let n = CShims_read(Int32(fd), &buffer, buffer.count)
            if n <= 0 { break }
            bytes += buffer[..<Int(n)]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
