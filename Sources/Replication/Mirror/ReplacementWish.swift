import Glibc
import SharedStore
import SystemCalls

/// Asks those that follow a replica to leave its session for a moment, so that a new image can take its place.
///
/// Nobody can replace a file that somebody has open, and a mirror or an archive of a replica has it open for good. Whoever is to
/// replace it makes `X.management/replace.wanted` anew each time it finds the file open. Mirrors and archives look for it whenever
/// they look whether another file stands at their source's path; they leave, and come back when it is gone, or was not made anew
/// for half a minute: what a killed mirror has left keeps nobody away.
enum ReplacementWish {
    private static let freshSeconds = 30

    private static func path(_ file: String) -> String { SessionPaths(file).management + "/replace.wanted" }

    /// What cannot be made costs time only: who has the file open may leave by itself.
    static func make(_ file: String) {
        let path = path(file)
        guard let descriptor = try? SideFile.open(path, O_WRONLY | O_CREAT | O_TRUNC) else { return }
        defer { SystemCalls.close(descriptor) }
        // Its time is that of the last change.
        try? [UInt8(ascii: "1")].withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: path) }
    }

    static func takeBack(_ file: String) { try? SystemCalls.unlink(path(file)) }

    static func isFresh(_ file: String) -> Bool {
        guard let status = try? SystemCalls.linkStatus(path: path(file)), status.isRegularFile else { return false }
        let age = Int(SystemCalls.realTimeNanoseconds() / 1_000_000_000) - status.modifiedSeconds
        return abs(age) < freshSeconds
    }
}
