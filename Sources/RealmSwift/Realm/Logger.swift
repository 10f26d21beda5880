import Foundation
import Synchronization

/// How important a message is. A threshold lets through what is as important, or more.
public enum LogLevel: UInt, Sendable, CaseIterable {
    case off = 0, fatal, error, warn, info, detail, debug, trace, all

    fileprivate var name: String {
        switch self {
        case .off: "Off"
        case .fatal: "Fatal"
        case .error: "Error"
        case .warn: "Warning"
        case .info: "Info"
        case .detail: "Detail"
        case .debug: "Debug"
        case .trace: "Trace"
        case .all: "All"
        }
    }
}

/// What a message is about. Categories form a tree: a level that is set for one holds for those below it.
public enum LogCategory: String, Sendable, CaseIterable {
    case realm = "Realm", sdk = "Realm.SDK", storage = "Realm.Storage", transaction = "Realm.Storage.Transaction", query =
        "Realm.Storage.Query"
    case object = "Realm.Storage.Object", notification = "Realm.Storage.Notification"
}

/// Where messages of the library go.
///
///     Logger.shared.level = .debug
///     Logger.shared = Logger(level: .info) { level, message in print(level, message) }
///
/// The log function may be called on any thread, and must not use Realms.
public final class Logger: Sendable {
    private let function: @Sendable (LogLevel, LogCategory, String) -> Void
    private let levels: Mutex<[LogCategory: LogLevel]>
    /// The highest level of all categories, so that a message nobody wants costs one load.
    private let highest: Atomic<UInt>

    /// - Parameters:
    ///   - level: the threshold of all categories.
    ///   - logFunction: what becomes of a message.
    public convenience init(level: LogLevel, logFunction: @escaping @Sendable (LogLevel, String) -> Void) {
        self.init(level: level) { level, _, message in logFunction(level, message) }
    }

    /// With the category of each message.
    public init(level: LogLevel = .info, logFunction: @escaping @Sendable (LogLevel, LogCategory, String) -> Void) {
        function = logFunction
        levels = Mutex(Dictionary(uniqueKeysWithValues: LogCategory.allCases.map { ($0, level) }))
        highest = Atomic(level.rawValue)
    }

    /// The threshold of all categories. Where they differ, that of the root.
    public var level: LogLevel {
        get { level(of: .realm) }
        set { setLevel(newValue, for: .realm) }
    }

    /// From which level on messages of a category are written.
    public func level(of category: LogCategory) -> LogLevel { levels.withLock { $0[category] ?? .off } }

    /// Sets the threshold of a category and of those below it.
    public func setLevel(_ level: LogLevel, for category: LogCategory) {
        levels.withLock { levels in
            for other in LogCategory.allCases where other == category || other.rawValue.hasPrefix(category.rawValue + ".") {
                levels[other] = level
            }
            highest.store(levels.values.map(\.rawValue).max() ?? 0, ordering: .relaxed)
        }
    }

    /// Passes a message on, if its level is wanted.
    public func log(_ level: LogLevel, _ message: @autoclosure () -> String) { log(level, .sdk, message()) }

    /// Passes a message of a category on, if its level is wanted.
    public func log(_ level: LogLevel, _ category: LogCategory, _ message: @autoclosure () -> String) {
        if isWanted(level, category) { function(level, category, message()) }
    }

    fileprivate func isWanted(_ level: LogLevel, _ category: LogCategory) -> Bool {
        if level == .off || level.rawValue > highest.load(ordering: .relaxed) { return false }
        return level.rawValue <= self.level(of: category).rawValue
    }

    // MARK: The shared one

    /// Where the library's messages go; at first to standard error, from level `info` on.
    public static var shared: Logger {
        get { current.withLock { $0 } }
        set {
            current.withLock { $0 = newValue }
        }
    }
    private static let current = Mutex(Logger(level: .info, logFunction: Logger.printToStandardError))

    private static func printToStandardError(_ level: LogLevel, _ category: LogCategory, _ message: String) {
        FileHandle.standardError.write(Data("\(category.rawValue): [\(level.name)] \(message)\n".utf8))
    }

    /// Sets the threshold of a category, and of those below it, in the shared logger.
    public static func setLogLevel(_ level: LogLevel, for category: LogCategory = .realm) {
        shared.setLevel(level, for: category)
    }

    /// A message of the library.
    @inline(__always)
    static func log(_ level: LogLevel, _ category: LogCategory, _ message: () -> String) {
        let logger = shared
        if logger.isWanted(level, category) { logger.function(level, category, message()) }
    }
}
