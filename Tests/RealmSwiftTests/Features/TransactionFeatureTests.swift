import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Write transactions.
final class TransactionFeatureTests: RealmTestCase {
    func testF145_F146_F156_aBlockIsAtomicAndReturnsAValue() throws {
        let realm = try makeRealm()
        XCTAssertFalse(realm.isInWriteTransaction)
        let (dog, count) = try realm.write { () -> (Dog, Int) in
            XCTAssertTrue(realm.isInWriteTransaction)
            let dog = realm.create(Dog.self, value: ["name": "Rex"])
            return (dog, realm.objects(Dog.self).count)
        }
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(count, 1)
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertEqual(try realm.write { "text" }, "text")
    }

    func testF148_aTransactionByHand() throws {
        let realm = try makeRealm()
        realm.beginWrite()
        realm.add(Dog(name: "Rex"))
        try realm.commitWrite()
        realm.beginWrite()
        realm.add(Dog(name: "Ada"))
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        realm.cancelWrite()
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["Rex"])
    }

    func testABlockMayEndItsTransactionItself() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.add(Dog(name: "Rex"))
            realm.cancelWrite()
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
        try realm.write {
            realm.add(Dog(name: "Rex"))
            try realm.commitWrite()
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        struct Stop: Error {}
        XCTAssertThrowsError(
            try realm.write {
                try realm.commitWrite()
                throw Stop()
            })
        XCTAssertFalse(realm.isInWriteTransaction)
    }

    func testF149_F406_whatACancelledTransactionLeaves() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["name": "Ann", "dogs": [["name": "Rex"]], "address": ["city": "York"]] as [String: Any])
        try realm.write { realm.add(ann) }
        let rex = ann.dogs[0]
        realm.beginWrite()
        ann.name = "changed"
        ann.dogs.append(Dog(name: "new"))
        let new = ann.dogs[1]
        ann.address = Address(value: ["city": "Rome"])
        ann.address?.street = "x"
        realm.delete(rex)
        XCTAssertTrue(rex.isInvalidated)
        realm.cancelWrite()
        XCTAssertTrue(new.isInvalidated)
        XCTAssertTrue(rex.isInvalidated)
        XCTAssertEqual(ann.name, "Ann")
        XCTAssertEqual(ann.dogs.map(\.name), ["Rex"])
        XCTAssertEqual(ann.address?.city, "York")
        XCTAssertEqual(ann.address?.street, "")
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertEqual(realm.dynamicObjects("Address").count, 1)
    }

    func testF151To153_writersWaitAndReadersDoNot() throws {
        let scratch = ScratchDirectory(), configuration = fileConfiguration(scratch)
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Rex", age: 0)) }
        let begun = expectation(description: "the other writer has begun"),
            done = expectation(description: "the other writer is done")
        let release = DispatchSemaphore(value: 0), other = DispatchQueue(label: "writer")
        other.async {
            do {
                let realm = try Realm(configuration: configuration)
                try realm.write {
                    realm.objects(Dog.self)[0].age = 1
                    begun.fulfill()
                    release.wait()
                }
            } catch {
                XCTFail("\(error)")
            }
            done.fulfill()
        }
        wait(for: [begun], timeout: TestTime.limit(10))
        // A reader sees the version before, and is not held up.
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 0)
        release.signal()
        // This write waits for the other one and begins with what it wrote.
        try realm.write {
            XCTAssertEqual(realm.objects(Dog.self)[0].age, 1)
            realm.objects(Dog.self)[0].age += 1
        }
        wait(for: [done], timeout: TestTime.limit(10))
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 2)
    }

    func testF154_F304_aProcessThatDiesInATransactionLeavesTheOldState() throws {
        let process = try ChildProcess(product: "TestParticipant", ["trap", "killed in a transaction"])
        let directory = try XCTUnwrap(process.readLine())
        defer { try? FileManager.default.removeItem(atPath: directory) }
        XCTAssertEqual(process.waitForEnd(), -SIGKILL)
        let others: [ObjectBase.Type] = [OldPerson.self, MixedForms.self, Venue.self, Contact.self, Location.self]
        let types = RealmTestCase.types.filter { type in !others.contains { $0 == type } }
        let realm = try Realm(
            configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: directory + "/models.realm"), objectTypes: types))
        XCTAssertEqual(realm.objects(Dog.self).map(\.age), [1])
        try realm.write { realm.objects(Dog.self)[0].age = 2 }
        XCTAssertEqual(realm.objects(Dog.self).map(\.age), [2])
    }

    func testF158_aCommitThatFailsThrowsAndChangesNothing() throws {
        let scratch = ScratchDirectory()
        let realm = try makeFileRealm(scratch, [AllTypes.self])
        try realm.write { realm.create(AllTypes.self, value: ["key": "a"]) }
        // No file may grow beyond this, as if the disk were full.
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
        let before = signal(SIGXFSZ, SIG_IGN)
        defer { signal(SIGXFSZ, before) }
        var limit = rlimit(rlim_cur: 1 << 20, rlim_max: old.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        var caught: Error?
        do {
            try realm.write { realm.create(AllTypes.self, value: ["key": "b", "data": Data(count: 8 << 20)] as [String: Any]) }
        } catch {
            caught = error
        }
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
        XCTAssertTrue(caught is Realm.Error, "\(String(describing: caught))")
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(realm.objects(AllTypes.self).map(\.key), ["a"])
        try realm.write { realm.create(AllTypes.self, value: ["key": "c"]) }
        XCTAssertEqual(realm.objects(AllTypes.self).map(\.key), ["a", "c"])
    }
}
