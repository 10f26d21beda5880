import Foundation
import RealmSwift
import RealmSwiftTestModels
import SharedStore
import Synchronization
import TestSupport
import XCTest

/// Logging (feature table, section Q).
final class LoggingFeatureTests: FileTestCase {
    private final class Messages: Sendable {
        private let messages = Mutex<[(LogLevel, String)]>([])
        func add(_ level: LogLevel, _ text: String) { messages.withLock { $0.append((level, text)) } }
        var levels: Set<LogLevel> { messages.withLock { Set($0.map(\.0)) } }
        var texts: [String] { messages.withLock { $0.map(\.1) } }
    }

    private func work(_ file: String) throws {
        let realm = try Realm(configuration: fileConfiguration(file))
        try realm.write { realm.add(Dog()) }
    }

    func testF397_F398_aFunctionOfOnesOwnTakesTheMessages() throws {
        let before = Logger.shared
        defer { Logger.shared = before }
        let messages = Messages()
        Logger.shared = Logger(level: .all) { messages.add($0, $1) }
        try work("a.realm")
        XCTAssertTrue(messages.texts.contains { $0.contains(scratch.file("a.realm")) }, "\(messages.texts)")
        XCTAssertTrue(messages.texts.contains { $0.contains("committed version") })
        XCTAssertTrue(messages.levels.contains(.debug) && messages.levels.contains(.trace))
    }

    func testF395_theLevelDecides() throws {
        let before = Logger.shared
        defer { Logger.shared = before }
        let messages = Messages()
        let logger = Logger(level: .debug) { messages.add($0, $1) }
        Logger.shared = logger
        try work("a.realm")
        XCTAssertTrue(messages.levels.contains(.debug))
        XCTAssertFalse(messages.levels.contains(.trace))
        XCTAssertEqual(logger.level, .debug)
        let count = messages.texts.count
        Logger.shared.level = .info
        try work("b.realm")
        XCTAssertEqual(messages.texts.count, count)
        logger.log(.error, "mine")
        XCTAssertEqual(messages.texts.last, "mine")
    }

    func testLevelsOfCategoriesHoldForThoseBelow() throws {
        let texts = Mutex<[String]>([])
        let logger = Logger(level: .off) { level, category, message in
            texts.withLock { $0.append("\(category.rawValue) \(level) \(message)") }
        }
        logger.setLevel(.debug, for: .storage)
        logger.log(.debug, .transaction, "a")
        logger.log(.debug, .sdk, "b")
        logger.setLevel(.error, for: .transaction)
        logger.log(.debug, .transaction, "c")
        logger.log(.debug, .notification, "d")
        XCTAssertEqual(texts.withLock { $0 }, ["Realm.Storage.Transaction debug a", "Realm.Storage.Notification debug d"])
        XCTAssertEqual(logger.level(of: .transaction), .error)
        XCTAssertEqual(logger.level, .off)
    }

    func testOpeningAFileReadOnlyThatOthersWriteIsWarnedOf() throws {
        let before = Logger.shared
        defer { Logger.shared = before }
        let messages = Messages()
        Logger.shared = Logger(level: .warn) { messages.add($0, $1) }
        makeFile(fileConfiguration())
        try FileManager.default.copyItem(at: url(), to: url("copy.realm"))
        var configuration = fileConfiguration("copy.realm")
        configuration.readOnly = true
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 1)
        XCTAssertFalse(messages.texts.contains { $0.contains("copy.realm") }, "nobody else has it open")
        var options = StoreOptions()
        options.encryptionKey = TestKeys.usual
        let store = try Store.open(url().path, options)
        configuration.fileURL = url()
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 1)
        XCTAssertTrue(
            messages.texts.contains { $0.contains(url().path) && $0.contains("leave readOnly out") }, "\(messages.texts)")
        try store.close()
    }

    func testAFileThatIsTakenAwayWhileItIsOpenIsWarnedOf() throws {
        let before = Logger.shared
        defer { Logger.shared = before }
        let messages = Messages()
        Logger.shared = Logger(level: .warn) { messages.add($0, $1) }
        func waitFor(_ parts: String...) {
            let limit = Date(timeIntervalSinceNow: TestTime.limit(20))
            func isThere() -> Bool { messages.texts.contains { text in parts.allSatisfy { text.contains($0) } } }
            while !isThere() && Date() < limit { usleep(5000) }
            XCTAssertTrue(isThere(), "no \(parts) in \(messages.texts)")
        }
        makeFile(fileConfiguration("other.realm"))
        let realm = try Realm(configuration: fileConfiguration())
        try realm.write { realm.add(Dog()) }
        XCTAssertEqual(rename(url("other.realm").path, url().path), 0)
        waitFor(url().path, "another file has taken its place")
        try FileManager.default.removeItem(at: url())
        waitFor(url().path, "it was deleted")
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF396_loggingIsTurnedOff() throws {
        let before = Logger.shared
        defer { Logger.shared = before }
        let messages = Messages()
        Logger.shared = Logger(level: .all) { messages.add($0, $1) }
        Logger.setLogLevel(.off)
        try work("a.realm")
        XCTAssertEqual(messages.texts, [])
        Logger.shared.log(.fatal, "nor this")
        XCTAssertEqual(messages.texts, [])
    }
}
