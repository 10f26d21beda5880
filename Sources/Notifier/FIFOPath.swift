import Glibc
import SystemCalls

/// Where the FIFO of a database lies (coordination.md 1.2).
///
/// All participants must come to the same FIFO, so the candidates, their order and the hash in their names are fixed:
/// 1. `X.note`, where X is the path as the application gave it, or, where that is a symbolic link, the name of the file itself;
/// 2. `F/realm_<H>.note`, if the application names a fallback directory F;
/// 3. `T/realm_<H>.note`, if the environment variable TMPDIR was set at the start of the process, to T.
enum FIFOPath {
    /// TMPDIR as it was when the notifier was first used, or nil.
    static let temporaryDirectory: String? = {
        guard let value = getenv("TMPDIR") else { return nil }
        let directory = String(cString: value)
        return directory.isEmpty ? nil : directory
    }()

    static func candidates(database path: String, fallbackDirectory: String?) -> [String] {
        let path = SystemCalls.followingLinks(path)
        var candidates = [path + ".note"]
        for directory in [fallbackDirectory, temporaryDirectory] {
            guard let directory, !directory.isEmpty else { continue }
            candidates.append(directory + (directory.hasSuffix("/") ? "" : "/") + "realm_\(hash(of: path)).note")
        }
        return candidates
    }

    /// The 64-bit string hash of libstdc++ over the UTF-8 bytes of `path`, which the file names of candidates 2 and 3 contain.
    static func hash(of path: String) -> UInt64 {
        let multiplier: UInt64 = 0xC6A4_A793_5BD1_E995
        func mix(_ value: UInt64) -> UInt64 { value ^ (value >> 47) }
        let bytes = Array(path.utf8)
        func word(at start: Int, byteCount: Int) -> UInt64 {
            var word: UInt64 = 0
            for index in 0..<byteCount { word |= UInt64(bytes[start + index]) << UInt64(8 * index) }
            return word
        }
        var hash: UInt64 = 0xC70F_6907 ^ (UInt64(bytes.count) &* multiplier)
        let tail = bytes.count & 7
        for start in stride(from: 0, to: bytes.count - tail, by: 8) {
            hash = (hash ^ (mix(word(at: start, byteCount: 8) &* multiplier) &* multiplier)) &* multiplier
        }
        if tail > 0 {
            hash = (hash ^ word(at: bytes.count - tail, byteCount: tail)) &* multiplier
        }
        return mix(mix(hash) &* multiplier)
    }
}
