import Foundation
import RealmSwift
import TestSupport
import XCTest

/// A store as applications have it: it opens, writes in the background, hands values to other threads, keeps its files in order.
@MainActor
private final class LibraryStore {
    let configuration: Realm.Configuration
    private(set) var task: Realm.AsyncOpenTask?
    lazy var realm: Realm = try! Realm(configuration: configuration)

    init(url: URL) {
        var configuration = Realm.Configuration(
            fileURL: url, inMemoryIdentifier: nil, encryptionKey: nil, readOnly: false, schemaVersion: 1, migrationBlock: nil,
            deleteRealmIfMigrationNeeded: false,
            shouldCompactOnLaunch: { total, used in total > 100 << 20 && Double(used) / Double(total) < 0.5 },
            objectTypes: Library.classes, seedFilePath: nil)
        configuration.maximumNumberOfActiveVersions = 50
        self.configuration = configuration
    }

    func addBook(_ isbn: String, title: String) async throws {
        try await realm.asyncWrite {
            realm.create(Book.self, value: ["isbn": isbn, "title": title], update: .modified)
        }
    }

    func addLater(_ isbn: String, done: @escaping (Error?) -> Void) -> AsyncTransactionNumber {
        let realm = realm
        return realm.writeAsync({ realm.add(Book(value: ["isbn": isbn])) }, onComplete: done)
    }

    func removeAll() throws {
        realm.beginWrite()
        realm.deleteAll()
        do { try realm.commitWrite() } catch { realm.cancelWrite(); throw error }
    }

    func refreshed() async -> Bool { await realm.asyncRefresh() }
}

private typealias AsyncTransactionNumber = Realm.AsyncTransactionId

private actor Counter {
    var realm: Realm!

    init(_ configuration: Realm.Configuration) async throws {
        realm = try await Realm(configuration: configuration, actor: self, downloadBeforeOpen: .never)
    }

    func titles() -> [String] { realm.objects(Book.self).sorted(by: \.title).map(\.title) }
    func rename(_ isbn: String, to title: String) async throws {
        try await realm.asyncWrite { realm.object(ofType: Book.self, forPrimaryKey: isbn)?.title = title }
    }
    func title(of reference: ThreadSafeReference<Book>) -> String? { realm.resolve(reference)?.title }
    func close() { realm = nil }
}

@globalActor private actor Background: GlobalActor {
    static let shared = Background()
}

@Background private func countBooks(_ configuration: Realm.Configuration) async throws -> Int {
    let realm = try await Realm.open(configuration: configuration)
    return realm.objects(Book.self).count
}

@MainActor
private enum StoreLife {
    static func run(_ directory: String) async throws -> [String] {
        let url = URL(fileURLWithPath: directory + "/library.realm")
        let store = LibraryStore(url: url)
        var log: [String] = []
        try await store.addBook("1", title: "Cosmos")
        try await store.addBook("2", title: "Dune")
        log.append(store.realm.objects(Book.self).map(\.title).sorted().joined(separator: " "))

        let counter = try await Counter(store.configuration)
        log.append(await counter.titles().joined(separator: " "))
        try await counter.rename("2", to: "Emma")
        _ = await store.refreshed()
        log.append(store.realm.objects(Book.self).where { $0.title == "Emma" }.first?.isbn ?? "none")
        let reference = ThreadSafeReference(to: store.realm.objects(Book.self).filter("isbn == '1'").first!)
        log.append(await counter.title(of: reference) ?? "none")
        log.append("\(try await countBooks(store.configuration))")
        await counter.close()

        let frozen = store.realm.objects(Book.self).freeze()
        let titles = frozen.count
        log.append("\(titles)")

        var copy = store.configuration
        copy.fileURL = URL(fileURLWithPath: directory + "/copy.realm")
        copy.encryptionKey = Data(count: 64)
        try store.realm.writeCopy(configuration: copy)
        try store.realm.writeCopy(toFile: URL(fileURLWithPath: directory + "/plain.realm"), encryptionKey: nil)
        log.append("\(Realm.fileExists(for: copy)) \(try schemaVersionAtURL(copy.fileURL!, encryptionKey: copy.encryptionKey))")
        log.append("\(try Realm.deleteFiles(for: copy)) \(Realm.fileExists(for: copy))")
        try store.removeAll()
        log.append("\(store.realm.isEmpty)")
        return log
    }
}

final class SourceCompatibilityRealmTests: XCTestCase {
    func testAStoreWithActorsAndFiles() async throws {
        let scratch = ScratchDirectory()
        let log = try await StoreLife.run(scratch.path)
        XCTAssertEqual(log, ["Cosmos Dune", "Cosmos Dune", "2", "Cosmos", "2", "2", "true 1", "true false", "true"])
    }

    func testOpeningInTheBackgroundAndWritingLater() throws {
        let scratch = ScratchDirectory(), queue = DispatchQueue(label: "library")
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("a.realm")), schemaVersion: 1, objectTypes: Library.classes)
        let opened = expectation(description: "opened"), written = expectation(description: "written")
        let task = Realm.asyncOpen(configuration: configuration, callbackQueue: queue) { result in
            switch result {
            case .success(let realm):
                realm.writeAsync {
                    realm.add(Book(value: ["isbn": "1"]))
                } onComplete: { error in
                    XCTAssertNil(error)
                    XCTAssertEqual(realm.objects(Book.self).count, 1)
                    written.fulfill()
                }
            case .failure(let error): XCTFail("\(error)")
            }
            opened.fulfill()
        }
        wait(for: [opened, written], timeout: TestTime.limit(10))
        task.cancel()
        let realm = try queue.sync { try Realm(configuration: configuration, queue: queue).objects(Book.self).count }
        XCTAssertEqual(realm, 1)
    }

    func testLoggersAndLevels() {
        let before = Logger.shared
        defer { Logger.shared = before }
        let lines = Lines()
        let logger = Logger(level: .trace) { level, message in lines.append("\(level): \(message)") }
        Logger.shared = logger
        logger.level = .all
        _ = try? Realm(configuration: Library.configuration(name))
        XCTAssertFalse(lines.all.isEmpty)
        logger.level = .off
        let levels: [LogLevel] = [.off, .fatal, .error, .warn, .info, .detail, .debug, .trace, .all]
        XCTAssertEqual(levels.map(\.rawValue), Array(0...8))
    }

    private final class Lines: @unchecked Sendable {
        // Sendable: guarded by the lock.
        private let lock = NSLock()
        private var lines: [String] = []
        func append(_ line: String) { lock.withLock { lines.append(line) } }
        var all: [String] { lock.withLock { lines } }
    }

    func testValuesAcrossThreads() throws {
        let scratch = ScratchDirectory()
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("a.realm")), objectTypes: Library.classes)
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Book(value: ["isbn": "1", "title": "Cosmos"])) }
        @ThreadSafe var book = realm.objects(Book.self).first
        let references = (
            ThreadSafeReference(to: realm.objects(Book.self)), ThreadSafeReference(to: realm.objects(Book.self)[0].ratings)
        )
        let done = expectation(description: "done"), boxed = _book
        DispatchQueue(label: "other").async {
            do {
                let realm = try Realm(configuration: configuration)
                XCTAssertEqual(boxed.wrappedValue?.title, "Cosmos")
                XCTAssertEqual(realm.resolve(references.0)?.count, 1)
                try realm.write { realm.resolve(references.1)?.append(4) }
            } catch {
                XCTFail("\(error)")
            }
            done.fulfill()
        }
        wait(for: [done], timeout: TestTime.limit(10))
        realm.refresh()
        XCTAssertEqual(book?.ratings.first, 4)
        XCTAssertTrue(references.0.isInvalidated)
    }
}
