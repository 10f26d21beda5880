import Foundation
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest
@testable import RealmSwift

/// Runs the main run loop until a condition holds.
func spin(seconds: Double = 10, until condition: () -> Bool) -> Bool {
    let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
    while !condition() {
        if limit.timeIntervalSinceNow < 0 { return false }
        RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.002))
    }
    return true
}

/// Runs `body` on a new thread to its end.
func onThread(_ body: @escaping @Sendable () -> Void) {
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
        body()
        done.signal()
    }
    thread.start()
    done.wait()
}

func addDog(_ configuration: Realm.Configuration, named name: String = "Rex") {
    let realm = try! Realm(configuration: configuration)
    try! realm.write { _ = realm.create(Dog.self, value: ["name": name]) }
}

final class SchedulingTests: XCTestCase {
    private let scratch = ScratchDirectory()

    private func configuration() -> Realm.Configuration {
        Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("a.realm")), encryptionKey: TestKeys.usualData,
            objectTypes: RealmTestCase.types)
    }

    func testF297_theMainThreadAdvancesByItselfInItsRunLoop() throws {
        let configuration = configuration()
        let realm = try Realm(configuration: configuration)
        let dogs = realm.objects(Dog.self)
        onThread { addDog(configuration) }
        XCTAssertEqual(dogs.count, 0, "not before the run loop turns")
        XCTAssertTrue(spin { dogs.count == 1 })
    }

    func testF297_withoutAutorefreshNothingMovesBeforeRefresh() throws {
        let configuration = configuration()
        let realm = try Realm(configuration: configuration)
        realm.autorefresh = false
        let dogs = realm.objects(Dog.self)
        onThread { addDog(configuration) }
        XCTAssertFalse(spin(seconds: 0.1) { dogs.count == 1 })
        XCTAssertTrue(realm.refresh())
        XCTAssertEqual(dogs.count, 1)
        XCTAssertFalse(realm.refresh())
    }

    func testAThreadWithARunLoopAdvancesByItself() throws {
        let configuration = configuration()
        let ready = DispatchSemaphore(value: 0), done = DispatchSemaphore(value: 0)
        let seen = Mutex(-1)
        let thread = Thread {
            let realm = try! Realm(configuration: configuration)
            let dogs = realm.objects(Dog.self)
            RunLoop.current.perform { ready.signal() }
            let limit = Date(timeIntervalSinceNow: TestTime.limit(10))
            while dogs.count == 0 && limit.timeIntervalSinceNow > 0 {
                RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01))
            }
            seen.withLock { $0 = dogs.count }
            done.signal()
        }
        thread.start()
        ready.wait()
        addDog(configuration)
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(10)), .success)
        XCTAssertEqual(seen.withLock { $0 }, 1)
    }

    func testAQueueAdvancesByItself() throws {
        let configuration = configuration()
        let queue = DispatchQueue(label: "q")
        let holder = Transfer<Realm?>(nil)
        try queue.sync { holder.value = try Realm(configuration: configuration, queue: queue) }
        addDog(configuration)
        XCTAssertTrue(spin { queue.sync { holder.value!.objects(Dog.self).count == 1 } })
        queue.sync { holder.value = nil }
    }

    private actor Keeper {
        var realm: Realm!
        func open(_ configuration: Realm.Configuration) throws {
            realm = Realm(try RealmOpening.session(configuration, at: .of(self)))
        }
        var count: Int { realm.objects(Dog.self).count }
        func close() { realm = nil }
        func scheduler() throws -> Scheduler { try XCTUnwrap(Scheduler(.of(self))) }
    }

    func testAnActorAdvancesByItself() async throws {
        let configuration = configuration()
        let keeper = Keeper()
        try await keeper.open(configuration)
        onThread { addDog(configuration) }
        var count = 0
        for _ in 0..<5000 where count == 0 {
            try await Task.sleep(nanoseconds: 1_000_000)
            count = await keeper.count
        }
        XCTAssertEqual(count, 1)
        await keeper.close()
    }

    func testBlocksOfAnActorKeepTheirOrder() async throws {
        let keeper = Keeper()
        let scheduler = try await keeper.scheduler()
        let seen = Mutex<[Int]>([])
        await withCheckedContinuation { continuation in
            for number in 0..<1000 {
                scheduler.schedule {
                    keeper.preconditionIsolated()
                    seen.withLock { $0.append(number) }
                    if number == 999 { continuation.resume() }
                }
            }
        }
        XCTAssertEqual(seen.withLock { $0 }, Array(0..<1000))
    }

    private final class Recorder: SessionObserver {
        var steps: [String] = []
        func session(_ session: Session, didAdvanceFrom old: SessionReader?, by step: SessionStep) {
            let name =
                switch step {
                case .commit: "commit"
                case .beganWrite: "began"
                case .refresh: "refresh"
                }
            steps.append("\(name) \((session.currentReader?.version ?? 0) - (old?.version ?? 0)) \(session.writer != nil)")
        }
        func sessionNeedsRefresh(_ session: Session) { steps.append("needed") }
        func sessionWasInvalidated(_ session: Session) { steps.append("invalidated") }
    }

    func testObserversAreToldOfEachStep() throws {
        let configuration = configuration()
        let realm = try Realm(configuration: configuration)
        let recorder = Recorder()
        realm.session.observer = recorder
        try realm.write { _ = realm.create(Dog.self) }
        XCTAssertEqual(recorder.steps, ["commit 1 false"])
        onThread { addDog(configuration) }
        realm.beginWrite()
        XCTAssertEqual(recorder.steps, ["commit 1 false", "began 1 true"])
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        realm.cancelWrite()
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        onThread { addDog(configuration) }
        XCTAssertTrue(spin { recorder.steps.count == 3 })
        XCTAssertEqual(recorder.steps[2], "refresh 1 false")
        realm.autorefresh = false
        onThread { addDog(configuration) }
        XCTAssertTrue(spin { recorder.steps.count >= 4 })
        XCTAssertEqual(recorder.steps[3], "needed")
        XCTAssertEqual(realm.objects(Dog.self).count, 3)
        realm.invalidate()
        XCTAssertEqual(recorder.steps.last, "invalidated")
    }

    func testATransactionOfAQueueBeginsAndEndsOnDifferentThreads() throws {
        let queue = DispatchQueue(label: "q")
        let holder = Transfer<Realm?>(nil)
        let configuration = configuration()
        try queue.sync {
            // On this thread, since `sync` runs on the caller's.
            holder.value = try Realm(configuration: configuration, queue: queue)
            holder.value?.beginWrite()
            holder.value?.create(Dog.self)
        }
        onThread { queue.sync { try! holder.value!.commitWrite() } }
        queue.sync { XCTAssertEqual(holder.value!.objects(Dog.self).count, 1) }
        queue.sync { holder.value = nil }
    }
}
