import Foundation
import RealmSwift
import TestSupport
import XCTest

final class ThreadsTests: GuideTestCase {
    private let scratch = ScratchDirectory("Threads")

    override func setUp() {
        super.setUp()
        Realm.Configuration.defaultConfiguration.fileURL = URL(fileURLWithPath: scratch.file("guide.realm"))
    }

    func testABackgroundWrite() throws {
        let birds = try Realm().objects(Bird.self)
        let done = expectation(description: "written")
        // sample: threads-background
        DispatchQueue.global().async {
            autoreleasepool {
                let realm = try! Realm()  // one of this thread's own
                try! realm.write {
                    realm.add(Bird("Wren", wingspan: 0.15))
                }
            }
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertTrue(spin { birds.count == 1 })
    }

    func testRefresh() throws {
        let realm = try Realm()
        // sample: threads-refresh
        realm.autorefresh = false  // stay at this version
        let birds = realm.objects(Bird.self)
        let before = birds.count

        let written = DispatchGroup()
        DispatchQueue.global().async(group: written) {
            let realm = try! Realm()
            try! realm.write { realm.add(Bird("Robin", wingspan: 0.21)) }
        }
        written.wait()

        print(birds.count == before)  // true
        realm.refresh()
        print(birds.count == before)  // false
        // end
        XCTAssertEqual(before, 0)
        XCTAssertEqual(birds.count, 1)
    }

    func testAQueue() throws {
        let done = expectation(description: "written")
        // sample: threads-queue
        let queue = DispatchQueue(label: "birds")  // serial
        queue.async {
            let realm = try! Realm(queue: queue)  // belongs to the queue, whichever thread it runs on
            try! realm.write {
                realm.add(Bird("Crane", wingspan: 2.2))
            }
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(try queue.sync { try Realm(queue: queue).objects(Bird.self).count }, 1)
    }

    func testFrozenObjects() throws {
        let realm = try Realm()
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        let done = expectation(description: "read")
        // sample: threads-frozen
        let frozen = realm.objects(Bird.self).freeze()
        try realm.write {
            realm.deleteAll()
        }
        print(frozen.count)  // 1: as it was

        nonisolated(unsafe) let birds = frozen  // frozen values may be read on any thread
        DispatchQueue.global().async {
            print(birds.first?.name ?? "none")  // Wren
            print(birds.first?.thaw() as Any)  // nil: it does not live any more
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(frozen.first?.name, "Wren")
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertEqual(realm.objects(Bird.self).count, 0)
    }

    func testReferences() throws {
        let realm = try Realm()
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        let wren = realm.objects(Bird.self).first!
        let done = expectation(description: "written")
        // sample: threads-reference
        let reference = ThreadSafeReference(to: wren)
        DispatchQueue.global().async {
            let realm = try! Realm()
            guard let wren = realm.resolve(reference) else { return }  // deleted meanwhile
            try! realm.write {
                wren.wingspan = 0.17
            }
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        realm.refresh()
        XCTAssertEqual(wren.wingspan, 0.17)
    }

    func testTheWrapper() throws {
        let realm = try Realm()
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        let done = expectation(description: "read")
        // sample: threads-wrapper
        @ThreadSafe var bird = realm.objects(Bird.self).first
        DispatchQueue.global().async { [_bird] in
            print(_bird.wrappedValue?.name ?? "gone")
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(bird?.name, "Wren")
    }

    func testAsynchronousWrites() throws {
        let realm = try Realm()
        let done = expectation(description: "written")
        // sample: threads-write-async
        realm.writeAsync {
            realm.add(Bird("Wren", wingspan: 0.15))  // here, as soon as nobody else writes
        } onComplete: { error in
            print(error as Any)  // nil: it is safe on the disk
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(realm.objects(Bird.self).count, 1)
    }

    func testAnAsynchronousCommit() throws {
        let realm = try Realm()
        let done = expectation(description: "written")
        // sample: threads-begin-async
        realm.beginAsyncWrite {
            realm.add(Bird("Crane", wingspan: 2.2))
            realm.commitAsyncWrite(allowGrouping: true) { error in
                print(error as Any)
                done.fulfill()
            }
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(realm.objects(Bird.self).count, 1)
    }
}
