import Foundation
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest
@testable import RealmSwift

/// Sessions whose threads, queues or actors are gone or do not come to their turn.
final class EndedPlaceTests: FileTestCase {
    /// What a thread leaves behind.
    private final class Left: @unchecked Sendable {
        // Sendable: set by the thread, read after it has ended.
        var token: NotificationToken?
        var dog: Dog?
        var reference: Realm?
        weak var session: Session?
        weak var origin: (any SessionOrigin)?
        var calls = 0
    }

    /// Runs `body` in the run loop of a thread, and returns when that is gone.
    private func onEndedThread(_ body: @escaping @Sendable () throws -> Void) {
        JoinedThread { do { try body() } catch { XCTFail("\(error)") } }.join()
    }

    private func eventually(_ what: String, line: UInt = #line, _ condition: () -> Bool) {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(20))
        while !condition() && limit.timeIntervalSinceNow > 0 { usleep(1000) }
        XCTAssertTrue(condition(), what, line: line)
    }

    func testATokenThatOutlivesItsThreadKeepsNeitherSessionNorFile() throws {
        let left = Left(), configuration = fileConfiguration()
        onEndedThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog(name: "Rex")) }
            left.session = realm.session
            left.origin = realm.session.origin
            left.token = realm.objects(Dog.self).observe { _ in left.calls += 1 }
        }
        eventually("the session went with its thread") { left.session == nil }
        eventually("the file was closed") { left.origin == nil }
        XCTAssertEqual(left.calls, 1)
        left.token?.invalidate()
        left.token = nil
        XCTAssertTrue(try Realm.deleteFiles(for: configuration))
    }

    func testTokensOfAllKindsMayEndAfterTheirThread() throws {
        let left = Left(), configuration = fileConfiguration()
        let tokens = Transfer<[NotificationToken]>([])
        onEndedThread {
            let realm = try Realm(configuration: configuration)
            let person = try realm.write {
                realm.create(Person.self, value: ["name": "Ann", "dogs": [["name": "Rex"]]] as [String: Any])
            }
            left.session = realm.session
            tokens.value = [
                realm.observe { _, _ in }, person.observe { (_: ObjectChange<Person>) in }, person.dogs.observe { _ in },
                person.pets.observe { _ in },
                realm.objects(Dog.self).sectioned(by: \.age).observe { _ in },
                PersonProjection(projecting: person).dogNames.observe { _ in },
            ]
        }
        eventually("the session went with its thread") { left.session == nil }
        DispatchQueue.concurrentPerform(iterations: tokens.value.count) { tokens.value[$0].invalidate() }
        tokens.value = []
    }

    /// The token ends elsewhere while the thread ends.
    func testTokensEndWhileTheirThreadEnds() throws {
        let configuration = fileConfiguration()
        makeFile(configuration)
        for _ in 0..<50 {
            let left = Left(), begun = DispatchSemaphore(value: 0)
            let thread = JoinedThread {
                let realm = try! Realm(configuration: configuration)
                left.session = realm.session
                left.token = realm.objects(Dog.self).observe { _ in }
                begun.signal()
            }
            begun.wait()
            left.token?.invalidate()
            thread.join()
            eventually("the session is gone") { left.session == nil }
        }
    }

    func testTheVersionOfAnEndedThreadIsLetGoOf() throws {
        let left = Left(), configuration = fileConfiguration()
        onEndedThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog(name: "Rex")) }
            left.reference = realm
            left.dog = realm.objects(Dog.self).first
            left.session = realm.session
        }
        let session = try XCTUnwrap(left.session)
        XCTAssertNil(session.currentReader)
        XCTAssertTrue(session.isClosed)
        XCTAssertTrue(try XCTUnwrap(left.dog).isInvalidated)
        XCTAssertEqual(left.reference?.configuration.fileURL, configuration.fileURL)
        left.dog = nil
        left.reference = nil
    }

    func testAThreadThatEndsInAWriteTransactionUndoesItAndOthersWrite() throws {
        let left = Left(), configuration = fileConfiguration()
        onEndedThread {
            let realm = try Realm(configuration: configuration)
            realm.beginWrite()
            realm.add(Dog(name: "lost"))
            left.reference = realm
        }
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Ada")) }
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["Ada"])
        left.reference = nil
    }

    func testWritesThatWaitForAThreadThatEndsAreDropped() throws {
        let left = Left(), configuration = fileConfiguration()
        let writer = try Realm(configuration: configuration)
        writer.beginWrite()
        onEndedThread {
            let realm = try Realm(configuration: configuration)
            left.session = realm.session
            realm.writeAsync { realm.add(Dog(name: "never")) }
        }
        writer.add(Dog(name: "Ada"))
        try writer.commitWrite()
        eventually("the session went with its thread") { left.session == nil }
        try writer.write { writer.add(Dog(name: "Bo")) }
        XCTAssertEqual(writer.objects(Dog.self).map(\.name).sorted(), ["Ada", "Bo"])
    }

    // MARK: Actors

    private actor Keeper {
        var realm: Realm?
        var results: Results<Dog>?
        var token: NotificationToken?
        private(set) var calls = 0

        func open(_ configuration: Realm.Configuration) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            self.realm = realm
            results = realm.objects(Dog.self)
            try await realm.asyncWrite { _ = realm.create(Dog.self, value: ["name": "Rex"]) }
        }

        func session() -> WeakSession { WeakSession(session: realm?.session) }
    }

    private struct WeakSession: @unchecked Sendable {
        // Sendable: looked at only.
        weak var session: Session?
    }

    func testAnActorThatKeepsItsRealmGoesWithIt() async throws {
        var keeper: Keeper? = Keeper()
        try await keeper?.open(fileConfiguration())
        let session = await keeper!.session()
        XCTAssertNotNil(session.session)
        weak let gone = keeper
        keeper = nil
        for _ in 0..<5000 where gone != nil || session.session != nil { try await Task.sleep(nanoseconds: 1_000_000) }
        XCTAssertNil(gone)
        XCTAssertNil(session.session)
        XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration()))
    }

    // MARK: Places that wait

    /// The queue was granted the right to write, and waits for somebody who wants it.
    func testAQueueThatWaitsForAnotherWriterDoesNotHoldItUp() throws {
        let configuration = fileConfiguration(), queue = DispatchQueue(label: "waiting")
        let done = DispatchSemaphore(value: 0), written = DispatchSemaphore(value: 0), isCommitted = DispatchSemaphore(value: 0)
        let kept = Transfer<Realm?>(nil)
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            kept.value = realm
            realm.writeAsync({ realm.add(Dog(name: "async")) }, onComplete: { _ in isCommitted.signal() })
            // By now the right to write is here, and the queue does not come to it.
            usleep(50_000)
            Thread.detachNewThread {
                let other = try! Realm(configuration: configuration)
                try! other.write { other.add(Dog(name: "other")) }
                written.signal()
            }
            XCTAssertEqual(written.wait(timeout: .now() + TestTime.limit(60)), .success, "the other writer waits for ever")
            done.signal()
        }
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(60)), .success)
        XCTAssertEqual(isCommitted.wait(timeout: .now() + TestTime.limit(60)), .success, "the asynchronous write is lost")
        queue.sync {
            kept.value?.refresh()
            XCTAssertEqual(kept.value?.objects(Dog.self).map(\.name).sorted(), ["async", "other"])
            kept.value = nil
        }
    }

    /// The same where the right to write was kept for a group.
    func testAGroupThatWaitsForAnotherWriterIsEndedAndGoesOnLater() throws {
        let configuration = fileConfiguration(), queue = DispatchQueue(label: "waiting")
        let written = DispatchSemaphore(value: 0), isCommitted = DispatchSemaphore(value: 0)
        let kept = Transfer<Realm?>(nil), order = Transfer<[String]>([])
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            kept.value = realm
            func add(_ name: String, _ then: @escaping () -> Void = {}) {
                realm.beginAsyncWrite {
                    realm.add(Dog(name: name))
                    realm.commitAsyncWrite(allowGrouping: true) { error in
                        XCTAssertNil(error)
                        order.value.append(name)
                        isCommitted.signal()
                    }
                    then()
                }
            }
            add("a") {
                Thread.detachNewThread {
                    let other = try! Realm(configuration: configuration)
                    try! other.write { other.add(Dog(name: "other")) }
                    written.signal()
                }
                XCTAssertEqual(written.wait(timeout: .now() + TestTime.limit(60)), .success, "the other writer waits for ever")
            }
            add("b")
        }
        for _ in 0..<2 { XCTAssertEqual(isCommitted.wait(timeout: .now() + TestTime.limit(60)), .success) }
        queue.sync {
            kept.value?.refresh()
            XCTAssertEqual(kept.value?.objects(Dog.self).map(\.name).sorted(), ["a", "b", "other"])
            XCTAssertEqual(order.value, ["a", "b"])
            XCTAssertEqual(kept.value?.isPerformingAsynchronousWriteOperations, false)
            kept.value = nil
        }
    }

    /// A queue that is slow, but does not wait, gets its turn again.
    func testASynchronousWriteUsesTheTurnThatWasTakenBack() throws {
        let configuration = fileConfiguration(), queue = DispatchQueue(label: "waiting")
        let written = DispatchSemaphore(value: 0), isCommitted = DispatchSemaphore(value: 0)
        let kept = Transfer<Realm?>(nil)
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            kept.value = realm
            realm.writeAsync({ realm.add(Dog(name: "async")) }, onComplete: { _ in isCommitted.signal() })
            usleep(50_000)
            Thread.detachNewThread {
                let other = try! Realm(configuration: configuration)
                try! other.write { other.add(Dog(name: "other")) }
                written.signal()
            }
            XCTAssertEqual(written.wait(timeout: .now() + TestTime.limit(60)), .success)
            try! realm.write { realm.add(Dog(name: "sync")) }
        }
        XCTAssertEqual(isCommitted.wait(timeout: .now() + TestTime.limit(60)), .success)
        queue.sync {
            kept.value?.refresh()
            XCTAssertEqual(kept.value?.objects(Dog.self).map(\.name).sorted(), ["async", "other", "sync"])
            kept.value = nil
        }
    }
}

/// A thread whose end can be waited for, with all that it does last.
private struct JoinedThread {
    private final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private var thread = pthread_t()

    /// Runs `body` in the run loop of a new thread, which must be running for observers.
    init(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(
            Box {
                let isDone = Atomic(false)
                RunLoop.current.perform {
                    body()
                    isDone.store(true, ordering: .relaxed)
                }
                // Some turns more, for what `body` left to be done. It must not run the loop itself: the timer of an outer turn
                // does not survive that.
                while !isDone.load(ordering: .relaxed) { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01)) }
                for _ in 0..<3 { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.005)) }
            })
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            }, box.toOpaque())
        XCTAssertEqual(code, 0)
    }

    func join() { pthread_join(thread, nil) }
}
