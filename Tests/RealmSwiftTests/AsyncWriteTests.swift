import Foundation
import RealmSwiftTestModels
import Synchronization
import SystemCalls
import TestSupport
import XCTest
@testable import RealmSwift

/// Asynchronous and other transactions of several places at once.
final class AsyncWriteTests: FileTestCase {
    /// What was committed, as far as the completion blocks and returns tell.
    private final class Ledger: Sendable {
        private let state = Mutex<(expected: Set<String>, open: Int)>(([], 0))
        func begin() { state.withLock { $0.open += 1 } }
        func committed(_ name: String) { state.withLock { _ = $0.expected.insert(name) } }
        func end() { state.withLock { $0.open -= 1 } }
        var isDone: Bool { state.withLock { $0.open == 0 } }
        var names: Set<String> { state.withLock { $0.expected } }
    }

    func testRandomTransactionsOfManyQueuesAllEndAndNothingIsLost() throws {
        let seed: UInt64 = 20_26
        print("seed \(seed)")
        let configuration = fileConfiguration()
        let ledger = Ledger()
        let main = try Realm(configuration: configuration)
        var queues: [(queue: DispatchQueue, realm: Transfer<Realm?>)] = []
        for number in 0..<4 {
            let queue = DispatchQueue(label: "q\(number)")
            let realm = Transfer<Realm?>(nil)
            try queue.sync { realm.value = try Realm(configuration: configuration, queue: queue) }
            queues.append((queue, realm))
        }
        var random = SplitMix(seed: seed)
        for step in 0..<300 {
            let kind = Int(random.next() % 6), place = Int(random.next() % 5)
            let name = "\(step)"
            ledger.begin()
            if place == 4 {
                AsyncWriteTests.step(main, kind, name, ledger)
                if step % 8 == 0 { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001)) }
            } else {
                let realm = queues[place].realm
                queues[place].queue.async { AsyncWriteTests.step(realm.value!, kind, name, ledger) }
            }
        }
        XCTAssertTrue(spin(seconds: 60) { ledger.isDone }, "some transaction never ended")
        main.refresh()
        XCTAssertEqual(Set(main.objects(Dog.self).map(\.name)), ledger.names)
        for (queue, realm) in queues {
            queue.sync {
                realm.value!.refresh()
                XCTAssertEqual(realm.value!.objects(Dog.self).count, ledger.names.count)
                XCTAssertFalse(realm.value!.isPerformingAsynchronousWriteOperations)
                realm.value = nil
            }
        }
    }

    private static func step(_ realm: Realm, _ kind: Int, _ name: String, _ ledger: Ledger) {
        func finish(_ error: Error?) {
            if error == nil { ledger.committed(name) } else { XCTFail("\(String(describing: error))") }
            ledger.end()
        }
        switch kind {
        case 0:
            try! realm.write { realm.add(Dog(name: name)) }
            finish(nil)
        case 1: realm.writeAsync({ realm.add(Dog(name: name)) }, onComplete: finish)
        case 2, 3:
            realm.beginAsyncWrite {
                realm.add(Dog(name: name))
                realm.commitAsyncWrite(allowGrouping: true, finish)
            }
        case 4:
            realm.beginAsyncWrite {
                realm.add(Dog(name: "undone"))
                if name.hasSuffix("3") { realm.cancelWrite() }
                ledger.end()
            }
        default:
            let id = realm.writeAsync { XCTFail("was cancelled") }
            try! realm.cancelAsyncWrite(id)
            ledger.end()
        }
    }

    func testABlockMayCommitAtOnceWithinAGroup() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var order: [String] = []
        realm.beginAsyncWrite {
            realm.add(Dog(name: "a"))
            realm.commitAsyncWrite(allowGrouping: true) { _ in order.append("a") }
        }
        realm.beginAsyncWrite {
            realm.add(Dog(name: "b"))
            try! realm.commitWrite()
            order.append("b")
        }
        realm.beginAsyncWrite {
            realm.add(Dog(name: "c"))
            realm.commitAsyncWrite(allowGrouping: true) { _ in order.append("c") }
        }
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
        XCTAssertEqual(order.sorted(), ["a", "b", "c"])
        XCTAssertEqual(realm.objects(Dog.self).count, 3)
    }

    func testATransactionBegunByHandIsCommittedInTheBackground() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var isComplete = false
        realm.beginWrite()
        realm.add(Dog())
        realm.commitAsyncWrite { error in isComplete = error == nil }
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertTrue(spin { isComplete })
        let queue = DispatchQueue(label: "q")
        let configuration = fileConfiguration()
        let done = DispatchSemaphore(value: 0)
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            realm.beginWrite()
            realm.add(Dog())
            realm.commitAsyncWrite { _ in
                XCTAssertEqual(realm.objects(Dog.self).count, 2)
                done.signal()
            }
        }
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(10)), .success)
    }

    /// What grouping is for, counted: syncs of the file.
    func testAGroupOfCommitsSharesItsSyncs() throws {
        let realm = try Realm(configuration: fileConfiguration())
        try realm.write { realm.add(Dog()) }
        func syncs(allowGrouping: Bool) -> Int {
            let count = Atomic(0)
            SystemCallInterception.hook = { call in
                if call.name.hasSuffix("sync") { count.add(1, ordering: .relaxed) }
                return nil
            }
            defer { SystemCallInterception.hook = nil }
            for _ in 0..<16 {
                realm.beginAsyncWrite {
                    realm.add(Dog())
                    realm.commitAsyncWrite(allowGrouping: allowGrouping)
                }
            }
            XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
            return count.load(ordering: .relaxed)
        }
        let alone = syncs(allowGrouping: false), grouped = syncs(allowGrouping: true)
        XCTAssertGreaterThanOrEqual(alone, 16)
        // A page of an encrypted file is written once between two syncs at most, and each commit writes the first.
        XCTAssertLessThanOrEqual(grouped, TestKeys.usual == nil ? 4 : 20, "alone they took \(alone)")
        XCTAssertEqual(realm.objects(Dog.self).count, 33)
    }

    func testARealmInMemoryWritesAsynchronously() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: RealmTestCase.types))
        var completed = 0
        for _ in 0..<5 {
            realm.beginAsyncWrite {
                realm.add(Dog())
                realm.commitAsyncWrite(allowGrouping: true) { _ in completed += 1 }
            }
        }
        XCTAssertTrue(spin { completed == 5 })
        XCTAssertEqual(realm.objects(Dog.self).count, 5)
    }

    func testAnEncryptedRealmGroupsCommits() throws {
        var configuration = fileConfiguration()
        configuration.encryptionKey = Data(repeating: 7, count: 64)
        do {
            let realm = try Realm(configuration: configuration)
            var completed = 0
            for number in 0..<20 {
                realm.beginAsyncWrite {
                    realm.add(Dog(name: "\(number)"))
                    realm.commitAsyncWrite(allowGrouping: true) { error in
                        XCTAssertNil(error)
                        completed += 1
                    }
                }
            }
            XCTAssertTrue(spin { completed == 20 })
        }
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 20)
    }

    func testPendingWritesKeepTheRealmAlive() throws {
        let configuration = fileConfiguration()
        weak var session: Session?
        var isComplete = false
        do {
            let realm = try Realm(configuration: configuration)
            session = realm.session
            realm.writeAsync({}, onComplete: { _ in isComplete = true })
        }
        XCTAssertNotNil(session)
        XCTAssertTrue(spin { isComplete && session == nil })
    }

    func testAWriterThatIsKilledBetweenThreadsFreesTheFile() throws {
        let process = try ChildProcess(product: "TestParticipant", ["realm", "hold-write", scratch.file("a.realm")])
        XCTAssertEqual(process.readLine(), "writing")
        let configuration = fileConfiguration("a.realm", [Dog.self, Person.self, Address.self, Country.self])
        let realm = try Realm(configuration: configuration)
        var isComplete = false
        realm.writeAsync({ realm.add(Dog(name: "Ada")) }, onComplete: { _ in isComplete = true })
        XCTAssertFalse(spin(seconds: 0.05) { isComplete })
        process.signal(SIGKILL)
        XCTAssertTrue(spin { isComplete })
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["Ada"])
    }

    func testTheMainActorOfAProgramWithoutMainThread() throws {
        XCTAssertEqual(try runRealmCommand(["main-actor", scratch.file("a.realm")]), "41 true")
    }
}
