import Foundation
import Synchronization
import TestSupport
import XCTest
@testable import SharedStore

/// Write transactions that move between threads, and turns that are got without waiting.
class MovableWriteTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }

    private func options() -> StoreOptions {
        var options = StoreOptions()
        options.encryptionKey = key
        return options
    }

    private func onNewThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
        let result = Mutex<Result<R, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            let outcome = Result { try body() }
            result.withLock { $0 = outcome }
            done.signal()
        }
        thread.start()
        done.wait()
        return try XCTUnwrap(result.withLock { $0 }).get()
    }

    private struct Carrier: @unchecked Sendable {
        // Sendable: used by one thread at a time.
        let transaction: WriteTransaction
    }

    func testATransactionBeginsOnOneThreadAndEndsOnAnother() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        for round in 0..<20 {
            let carrier = try onNewThread { Carrier(transaction: try store.beginMovableWrite()) }
            try onNewThread { _ = try carrier.transaction.editor.createTable("class_T\(round)", kind: .topLevel) }
            if round % 2 == 0 {
                let version = try onNewThread { try carrier.transaction.commit() }
                XCTAssertEqual(try store.newestVersion(), version)
            } else {
                try onNewThread { carrier.transaction.rollback() }
            }
        }
        let names = try store.look { try $0.group.classTables().compactMap(\.className).sorted() }
        XCTAssertEqual(names, (0..<20).filter { $0 % 2 == 0 }.map { "T\($0)" }.sorted())
        try store.close()
    }

    func testMovableAndThreadBoundTransactionsExcludeEachOther() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        let movable = try store.beginMovableWrite()
        XCTAssertTrue(try onNewThread { try store.tryBeginWrite() == nil })
        movable.rollback()
        let bound = try store.beginWrite()
        XCTAssertThrowsError(try onNewThread { try store.beginMovableWrite(deadline: .after(.milliseconds(20))).rollback() }) {
            guard case SessionError.deadlineExceeded? = $0 as? SessionError else { return XCTFail("\($0)") }
        }
        bound.rollback()
        try store.beginMovableWrite().rollback()
        try store.close()
    }

    func testATurnThatIsAskedForComesWhenTheWriterBeforeIsDone() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        let first = try store.beginWrite()
        let turn = Mutex<WriteTurn?>(nil)
        let arrived = DispatchSemaphore(value: 0)
        try store.requestWriteTurn { result in
            turn.withLock { $0 = try? result.get() }
            arrived.signal()
        }
        XCTAssertEqual(arrived.wait(timeout: .now() + .milliseconds(30)), .timedOut)
        XCTAssertThrowsError(try store.close(force: true), "a writer waits")
        _ = try first.commit()
        XCTAssertEqual(arrived.wait(timeout: .now() + TestTime.limit(10)), .success)
        let transaction = try XCTUnwrap(turn.withLock { $0 }).begin()
        _ = try transaction.editor.createTable("class_A", kind: .topLevel)
        let version = try transaction.commit()
        XCTAssertEqual(try store.newestVersion(), version)
        try store.close()
    }

    func testATurnThatIsDroppedLetsTheNextOneWrite() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        for _ in 0..<10 {
            let arrived = DispatchSemaphore(value: 0)
            try store.requestWriteTurn { _ in arrived.signal() }
            XCTAssertEqual(arrived.wait(timeout: .now() + TestTime.limit(10)), .success)
            try store.beginWrite().rollback()
        }
        // The last turn is given up by a thread of the store's, which may be at it still.
        let limit = Date(timeIntervalSinceNow: TestTime.limit(10))
        while (try? store.close()) == nil && limit.timeIntervalSinceNow > 0 { usleep(100) }
        XCTAssertThrowsError(try store.beginRead(), "it is closed")
    }

    func testManyThreadsWriteThroughTheKeeperAndBesideIt() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        try store.write { _ = try $0.editor.createTable("class_T", kind: .topLevel) }
        let before = try store.newestVersion()
        DispatchQueue.concurrentPerform(iterations: 6) { worker in
            for _ in 0..<20 {
                let transaction = try! worker % 2 == 0 ? store.beginMovableWrite() : store.beginWrite()
                _ = try! transaction.editor.editor(named: "class_T").createObject()
                try! transaction.commit()
            }
        }
        XCTAssertEqual(try store.newestVersion(), before + 120)
        XCTAssertEqual(try store.look { try $0.group.table(ofClass: "T")?.objectCount }, 120)
        try store.close(force: true)
    }
}

/// The same over encrypted files.
final class EncryptedMovableWriteTests: MovableWriteTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
