import Glibc
import SystemCalls

extension Notifier {
    /// Something that could not be had, and what is done instead. Opening goes on in every case.
    public struct Warning: Sendable, CustomStringConvertible {
        /// What is missing, for programs.
        public enum Kind: String, Sendable {
            /// The FIFO lies in a fallback directory. Programs without that fallback are heard by the slow look only.
            case fifoElsewhere
            /// No FIFO could be made or opened; the newest version is looked at more often.
            case noFIFO
            /// inotify is not to be had; replacement and deletion are noticed by the slow look.
            case noWatches
            /// The listener could not wait for descriptors; it looks at everything in short intervals.
            case noListener
        }
        /// What is missing, for programs.
        public let kind: Kind
        /// The path of the database.
        public let path: String
        /// One line for people: what failed, why, and what happens instead.
        public let description: String
    }

    /// Writes a warning as one line to standard error.
    @Sendable public static func printWarning(_ warning: Warning) {
        let line = Array("warning: \(warning.description)\n".utf8)
        line.withUnsafeBytes { _ = try? SystemCalls.writeSome(STDERR_FILENO, $0) }
    }
}

extension Notifier.Warning {
    static func fifoElsewhere(path: String, failures: [String], used: String) -> Self {
        Self(
            kind: .fifoElsewhere, path: path,
            description: "commit notices of \(path) go through \(used), since "
                + failures.joined(separator: "; ") + ". Programs that do not use this place are heard a little later")
    }

    static func noFIFO(path: String, failures: [String], instead: String) -> Self {
        Self(
            kind: .noFIFO, path: path,
            description: "no FIFO for commit notices of \(path): "
                + failures.joined(separator: "; ") + ". Instead, \(instead)")
    }

    static func noWatches(path: String, error: SystemError, intervalMilliseconds: Int) -> Self {
        let advice =
            switch (error.call, error.code) {
            case ("inotify_add_watch", ENOSPC): " (all watches of this user are taken; raise fs.inotify.max_user_watches)"
            case ("inotify_init1", EMFILE): " (too many inotify instances or descriptors; raise fs.inotify.max_user_instances)"
            default: ""
            }
        return Self(
            kind: .noWatches, path: path,
            description: "no inotify watches for \(path): \(error)\(advice). Instead, the file "
                + "is looked at every \(intervalMilliseconds) ms")
    }

    static func noListener(path: String, reason: String, intervalMilliseconds: Int) -> Self {
        Self(
            kind: .noListener, path: path,
            description: "the notifier cannot wait for descriptors: \(reason). Instead, "
                + "\(path) and all other files are looked at every \(intervalMilliseconds) ms")
    }

    static func noThread(path: String, reason: String) -> Self {
        Self(
            kind: .noListener, path: path,
            description: "the notifier has no thread: \(reason). Commits to \(path) are seen "
                + "only when the program looks itself")
    }
}
