import Glibc
import Synchronization
import SystemCalls

/// The log of the service: one line an event on standard error, which a service manager collects.
///
/// Plain lines begin with the priority in the form that journald takes (`<4>`) where standard error is its socket, else with time
/// and level. JSON lines are objects with time, level, stream, event and message.
final class ServiceLog: Sendable {
    enum Level: String, CaseIterable, Sendable, Comparable {
        case debug, info, warning, error
        private var order: Int {
            switch self {
            case .debug: 0
            case .info: 1
            case .warning: 2
            case .error: 3
            }
        }
        static func < (a: Level, b: Level) -> Bool { a.order < b.order }
        /// Of syslog(3).
        var priority: Int {
            switch self {
            case .debug: 7
            case .info: 6
            case .warning: 4
            case .error: 3
            }
        }
    }

    enum Format: String, CaseIterable, Sendable { case plain, json }

    private struct Settings {
        var level = Level.info
        var format = Format.plain
    }

    private let settings = Mutex(Settings())
    private let isJournal: Bool

    init(environment: (String) -> String?) {
        // journald tells which descriptor is its own, by device and inode (systemd.exec(5)).
        let own = (try? SystemCalls.status(STDERR_FILENO)).map { "\($0.device):\($0.inode)" }
        isJournal = own != nil && environment("JOURNAL_STREAM") == own
    }

    func set(_ level: Level, _ format: Format) {
        settings.withLock {
            $0.level = level
            $0.format = format
        }
    }

    /// - Parameter stream: the mirror or archive that it is about; nil for the service.
    func write(_ level: Level, _ text: String, stream: String? = nil, event: String? = nil) {
        let now = settings.withLock { ($0.level, $0.format) }
        if level < now.0 { return }
        let text = Text.oneLine(text)
        let line: String
        switch now.1 {
        case .json:
            var members: [(String, JSONText)] = [
                ("time", .string(Units.text(nanosecondsSince1970: SystemCalls.realTimeNanoseconds()))),
                ("level", .string(level.rawValue)),
            ]
            if let stream { members.append(("stream", .string(stream))) }
            if let event { members.append(("event", .string(event))) }
            line = JSONText.object(members + [("message", .string(text))]).text
        case .plain:
            let about = stream.map { "\(Text.visible($0)): " } ?? ""
            line =
                isJournal
                ? "<\(level.priority)>\(about)\(text)"
                : "\(Units.text(nanosecondsSince1970: SystemCalls.realTimeNanoseconds())) \(level.rawValue) \(about)\(text)"
        }
        let bytes = Array((line + "\n").utf8)
        // One write, so that lines of several threads do not mix. Where nobody reads the log any more, the service goes on.
        bytes.withUnsafeBytes { _ = try? SystemCalls.writeSome(STDERR_FILENO, $0) }
    }
}
