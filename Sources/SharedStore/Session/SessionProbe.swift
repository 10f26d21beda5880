import Glibc
import SystemCalls

/// Whether somebody has a file open, found without becoming a participant and without touching anything.
///
/// To join a session where there is none makes one: side files appear, and the file is cut to its size. Commands that only look
/// around, or that look for damage, must not do that. An exclusive `flock` for a moment would tell for sure, but others who open
/// the file at that moment would take a stale lock file for a live one (coordination.md 12.4).
package enum SessionProbe {
    package enum Answer { case live, perhaps, notLive }

    /// `live`: a lock of the lock file is seen, whether it can be read or not. `perhaps`: none is seen, but participants are
    /// counted: they are in another container, or dead.
    package static func look(_ path: String) -> Answer {
        let lockPath = SessionPaths(path).lock
        guard let status = try? SystemCalls.status(path: lockPath) else { return .notLive }
        if isLocked(inode: status.inode) { return .live }
        return countedParticipants(lockPath) > 0 ? .perhaps : .notLive
    }

    /// A line of /proc/locks: `12: FLOCK  ADVISORY  READ 4711 08:01:131074 0 EOF`. The device is left out of account, since
    /// some file
    /// systems show another one there; a wrong hit does no harm.
    private static func isLocked(inode: UInt64) -> Bool {
        guard let text = FileText.read("/proc/locks", limit: 4 << 20) else { return false }
        return text.split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            guard let kind = words.firstIndex(of: "FLOCK"), words.count > kind + 4 else { return false }
            return words[kind + 4].split(separator: ":").last.flatMap { UInt64($0) } == inode
        }
    }

    /// Initialised, and the number at byte 12 (coordination.md 2.1).
    private static func countedParticipants(_ lockPath: String) -> UInt32 {
        guard let descriptor = try? SystemCalls.open(lockPath, O_RDONLY | O_NONBLOCK) else { return 0 }
        defer { SystemCalls.close(descriptor) }
        var words: (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
        let count = try? withUnsafeMutableBytes(of: &words) { try SystemCalls.read(descriptor, into: $0, at: 0, path: lockPath) }
        return count == 16 && words.0 & 0xFF == 1 ? words.3 : 0
    }
}

/// Reading while nobody keeps others from writing: what was read may have been overwritten before all of it was.
package enum SteadyReading {
    private static let attemptsMax = 20
    private static let pauseMicroseconds: UInt32 = 1000

    /// Runs `body`, which opens the file at `path` anew; again where it found nonsense while somebody had the file open.
    ///
    /// - Throws: what `body` throws at last.
    package static func attempt<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
        for _ in 1..<attemptsMax {
            do { return try body() } catch let error where isNonsense(error) && SessionProbe.look(path) != .notLive {
                usleep(pauseMicroseconds)
            }
        }
        return try body()
    }

    /// The file at `path`, or why it cannot be read.
    package static func file(_ path: String, key: EncryptionKey?) throws -> ImmutableFile {
        try attempt(path) { try ImmutableFile(path: path, key: key) }
    }

    /// Errors that a file gives which is sound, and is written to.
    private static func isNonsense(_ error: any Error) -> Bool {
        switch error {
        case is FormatError, is DecryptionError, OpenError.damaged, OpenError.truncated, OpenError.decryptionFailed: true
        default: false
        }
    }
}
