import Foundation
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest
@testable import RealmSwift

/// Realms on threads and queues (feature table, section M).
final class ThreadFeatureTests: FileTestCase {
    func testF285_aBackgroundWriteIsSeenOnTheMainThread() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        let dogs = realm.objects(Dog.self)
        DispatchQueue.global().async { addDog(configuration, named: "Ada") }
        XCTAssertTrue(spin { dogs.first?.name == "Ada" })
    }

    func testF286_writeAsyncRunsBlockAndCompletionAtThePlaceOfTheRealm() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var steps: [String] = []
        realm.writeAsync(
            {
                XCTAssertTrue(Thread.isMainThread)
                XCTAssertTrue(realm.isInWriteTransaction)
                realm.add(Dog(name: "Ada"))
                steps.append("block")
            },
            onComplete: { error in
                XCTAssertNil(error)
                XCTAssertTrue(Thread.isMainThread)
                XCTAssertFalse(realm.isInWriteTransaction)
                steps.append("complete \(realm.objects(Dog.self).count)")
            })
        XCTAssertEqual(steps, [], "nothing runs at once")
        XCTAssertTrue(spin { steps.count == 2 })
        XCTAssertEqual(steps, ["block", "complete 1"])
    }

    func testF286_writeAsyncOfAQueueCompletesOnTheQueue() throws {
        let configuration = fileConfiguration()
        let queue = DispatchQueue(label: "q")
        let done = DispatchSemaphore(value: 0)
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            realm.writeAsync(
                { realm.add(Dog(name: "Ada")) },
                onComplete: { _ in
                    dispatchPrecondition(condition: .onQueue(queue))
                    XCTAssertEqual(realm.objects(Dog.self).count, 1)
                    done.signal()
                })
        }
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(10)), .success)
    }

    func testF287_asynchronousWritesKeepTheRealmBusyUntilTheyAreOnTheDisk() throws {
        let realm = try Realm(configuration: fileConfiguration())
        XCTAssertFalse(realm.isPerformingAsynchronousWriteOperations)
        realm.writeAsync { realm.add(Dog()) }
        XCTAssertTrue(realm.isPerformingAsynchronousWriteOperations)
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF288_anAsynchronousWriteIsCommittedOrCancelled() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var ran: [String] = []
        realm.beginAsyncWrite {
            realm.add(Dog(name: "kept"))
            realm.commitAsyncWrite { error in ran.append("committed \(error == nil)") }
            XCTAssertEqual(realm.objects(Dog.self).count, 1, "visible at once")
            XCTAssertFalse(realm.isInWriteTransaction)
        }
        realm.beginAsyncWrite {
            realm.add(Dog(name: "undone"))
            realm.cancelWrite()
            ran.append("cancelled")
        }
        realm.beginAsyncWrite { realm.add(Dog(name: "left open")) }
        let dropped = realm.beginAsyncWrite { ran.append("must not run") }
        try realm.cancelAsyncWrite(dropped)
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
        XCTAssertEqual(Set(ran), ["committed true", "cancelled"])
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["kept"])
    }

    func testF288_aCancelledCommitLosesItsCompletionOnly() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var isCalled = false
        realm.beginAsyncWrite {
            realm.add(Dog())
            let id = realm.commitAsyncWrite { _ in isCalled = true }
            try! realm.cancelAsyncWrite(id)
        }
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations && realm.objects(Dog.self).count == 1 })
        XCTAssertFalse(isCalled)
    }

    func testF289_groupedCommitsAreAllVisibleAndAllComplete() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        var completed: [Int] = []
        for number in 0..<20 {
            realm.beginAsyncWrite {
                realm.add(Dog(name: "\(number)"))
                if number == 10 { return realm.cancelWrite() }
                realm.commitAsyncWrite(allowGrouping: true) { error in
                    XCTAssertNil(error)
                    completed.append(number)
                }
            }
        }
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
        XCTAssertEqual(completed, Array(0..<20).filter { $0 != 10 })
        XCTAssertEqual(realm.objects(Dog.self).count, 19)
        let seen = Mutex(0)
        onThread {
            let count = try! Realm(configuration: configuration).objects(Dog.self).count
            seen.withLock { $0 = count }
        }
        XCTAssertEqual(seen.withLock { $0 }, 19)
    }

    func testASynchronousWriteGoesBeforeAsynchronousOnesOfTheSameRealm() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var order: [String] = []
        for number in 0..<3 {
            realm.beginAsyncWrite {
                order.append("async \(number)")
                realm.commitAsyncWrite(allowGrouping: true)
            }
        }
        // Long enough for the right to write to be there already, with nobody to use it.
        usleep(20_000)
        try realm.write { order.append("sync") }
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations })
        XCTAssertEqual(order, ["sync", "async 0", "async 1", "async 2"])
    }

    func testASynchronousWriteBetweenTheCommitsOfAGroup() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var completed = 0
        let transfer = Transfer(realm)
        for _ in 0..<2 {
            realm.beginAsyncWrite {
                realm.add(Dog())
                realm.commitAsyncWrite(allowGrouping: true) { _ in completed += 1 }
                // Runs when the next one of the group has not begun.
                DispatchQueue.main.async { try! transfer.value.write { transfer.value.add(Dog()) } }
            }
        }
        XCTAssertTrue(spin { !realm.isPerformingAsynchronousWriteOperations && realm.objects(Dog.self).count == 4 })
        XCTAssertEqual(completed, 2)
    }

    func testF290_aPrimaryKeyIsPassedBetweenThreads() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        let id = try realm.write { realm.create(Dog.self, value: ["name": "Ada"]) }.id
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { realm.object(ofType: Dog.self, forPrimaryKey: id)?.age = 7 }
        }
        realm.refresh()
        XCTAssertEqual(realm.object(ofType: Dog.self, forPrimaryKey: id)?.age, 7)
    }

    func testF291_aRealmOfASerialQueue() throws {
        let configuration = fileConfiguration()
        let queue = DispatchQueue(label: "q")
        let holder = Transfer<Realm?>(nil)
        try queue.sync { holder.value = try Realm(configuration: configuration, queue: queue) }
        // On whatever thread the queue runs.
        for number in 0..<3 {
            onThread { queue.sync { try! holder.value!.write { holder.value!.add(Dog(name: "\(number)")) } } }
        }
        queue.sync { XCTAssertEqual(holder.value!.objects(Dog.self).count, 3) }
        let targeting = DispatchQueue(label: "t", target: queue)
        targeting.sync { XCTAssertEqual(holder.value!.objects(Dog.self).count, 3, "a queue that targets the Realm's") }
        queue.sync { holder.value = nil }
    }

    func testF292_useOffTheQueueTraps() {
        assertTraps("wrong queue", "Realm accessed from incorrect thread")
        assertTraps("open off the queue", "Realm opened from incorrect dispatch queue")
        assertTraps("concurrent queue", "confined to serial queues or the main queue, not to 'many at once'")
        assertTraps("global queue", "confined to serial queues")
    }

    private func requireSendable<T: Sendable>(_ type: T.Type) {}

    func testF293_F305_whatIsSendable() {
        requireSendable(Realm.Configuration.self)
        requireSendable(ThreadSafeReference<Dog>.self)
        requireSendable(ThreadSafeReference<Results<Dog>>.self)
        requireSendable(ThreadSafe<Dog>.self)
        requireSendable(ObjectId.self)
        requireSendable(Decimal128.self)
        requireSendable(NotificationToken.self)
        requireSendable(Realm.Error.self)
        requireSendable(Realm.AsyncOpenTask.self)
        requireSendable(Logger.self)
    }

    func testF294_aThreadSafeVariableIsUsedOnAnotherQueue() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Ada", "age": 1]) }
        let box = ThreadSafe(wrappedValue: dog)
        onThread {
            let there = box.wrappedValue!
            XCTAssertEqual(there.name, "Ada")
            try! there.realm!.write { there.age = 2 }
        }
        XCTAssertEqual(box.wrappedValue?.name, "Ada")
        realm.refresh()
        XCTAssertEqual(dog.age, 2)
        onThread { XCTAssertEqual(box.wrappedValue?.age, 2) }
        try realm.write { realm.delete(dog) }
        XCTAssertNil(box.wrappedValue)
        onThread { XCTAssertNil(box.wrappedValue) }
        box.wrappedValue = nil
        XCTAssertNil(box.wrappedValue)
    }

    private final class Holder: @unchecked Sendable {
        // Sendable: the wrapper is safe on every thread, and never replaced.
        @ThreadSafe var dog: Dog?
        init(_ dog: Dog) { _dog = ThreadSafe(wrappedValue: dog) }
    }

    func testF294_aThreadSafeProperty() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Ada"]) }
        let holder = Holder(dog)
        onThread { XCTAssertEqual(holder.dog?.name, "Ada") }
        @ThreadSafe var local = dog
        XCTAssertEqual(local?.name, "Ada")
    }

    func testF295_F409_aReferenceIsResolvedOnAnotherThread() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        let person = try realm.write {
            realm.create(
                Person.self,
                value: [
                    "name": "Bo", "dogs": [["name": "Rex"]], "address": ["city": "York"], "tags": ["x"],
                    "pets": ["p": ["name": "Kit"]],
                ] as [String: Any])
        }
        let references = (
            ThreadSafeReference(to: person), ThreadSafeReference(to: person.dogs), ThreadSafeReference(to: person.address!),
            ThreadSafeReference(to: person.tags),
            ThreadSafeReference(to: person.pets), ThreadSafeReference(to: realm.objects(Dog.self).where { $0.name == "Rex" }),
            ThreadSafeReference(to: person.dogs[0].fans)
        )
        XCTAssertFalse(references.0.isInvalidated)
        onThread {
            let realm = try! Realm(configuration: configuration)
            XCTAssertEqual(realm.resolve(references.0)?.name, "Bo")
            XCTAssertEqual(realm.resolve(references.1)?.map(\.name), ["Rex"])
            XCTAssertEqual(realm.resolve(references.2)?.city, "York")
            XCTAssertEqual(realm.resolve(references.3).map(Array.init), ["x"])
            XCTAssertEqual(realm.resolve(references.4)?["p"]??.name, "Kit")
            XCTAssertEqual(realm.resolve(references.5)?.map(\.name), ["Rex"])
            XCTAssertEqual(realm.resolve(references.6)?.map(\.name), ["Bo"])
        }
        XCTAssertTrue(references.0.isInvalidated)
    }

    func testF295_resolvingAdvancesAndADeletedObjectIsNil() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        let ready = DispatchSemaphore(value: 0), go = DispatchSemaphore(value: 0), done = DispatchSemaphore(value: 0)
        let reference = Mutex<ThreadSafeReference<Dog>?>(nil), gone = Mutex<ThreadSafeReference<Dog>?>(nil)
        let thread = Thread {
            let realm = try! Realm(configuration: configuration)
            XCTAssertEqual(realm.objects(Dog.self).count, 0)
            ready.signal()
            go.wait()
            // The Realm is behind the version of the reference.
            XCTAssertEqual(realm.resolve(reference.withLock { $0! })?.name, "Ada")
            XCTAssertNil(realm.resolve(gone.withLock { $0! }))
            done.signal()
        }
        thread.start()
        ready.wait()
        let (dog, other) = try realm.write {
            (realm.create(Dog.self, value: ["name": "Ada"]), realm.create(Dog.self, value: ["name": "Bo"]))
        }
        reference.withLock { $0 = ThreadSafeReference(to: dog) }
        gone.withLock { $0 = ThreadSafeReference(to: other) }
        try realm.write {
            // Within a write transaction a reference shows what was committed.
            dog.name = "Changed"
            realm.delete(other)
            let early = ThreadSafeReference(to: dog)
            onThread { XCTAssertEqual(try! Realm(configuration: configuration).resolve(early)?.name, "Ada") }
            realm.cancelWrite()
        }
        try realm.write { realm.delete(realm.objects(Dog.self).where { $0.name == "Bo" }) }
        go.signal()
        done.wait()
    }

    func testF295_misuseOfReferencesTraps() {
        assertTraps("resolve twice", "Can only resolve a thread safe reference once")
        assertTraps("resolve in another file", "different configuration than the source Realm")
        assertTraps("resolve in frozen", "frozen Realm")
        assertTraps("reference to unmanaged", "Cannot construct reference to unmanaged object")
        assertTraps("reference to deleted", "invalidated object")
    }

    func testF296_eachThreadHasItsOwnSession() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        realm.autorefresh = false
        onThread {
            let other = try! Realm(configuration: configuration)
            try! other.write { other.add(Dog()) }
            XCTAssertEqual(other.objects(Dog.self).count, 1)
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 0, "the main thread stays at its version")
        realm.refresh()
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF298_frozenObjectsAreReadOnEveryThread() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let person = try realm.write {
            realm.create(Person.self, value: ["name": "Bo", "dogs": [["name": "Rex"]]] as [String: Any])
        }
        let frozen = person.freeze()
        let transfer = Transfer(frozen)
        try realm.write {
            person.name = "Changed"
            person.dogs.removeAll()
        }
        for _ in 0..<4 {
            onThread {
                let frozen = transfer.value
                XCTAssertEqual(frozen.name, "Bo")
                XCTAssertEqual(frozen.dogs.first?.name, "Rex")
                XCTAssertTrue(frozen.dogs[0].isFrozen, "what is read from a frozen object is frozen")
            }
        }
        try realm.write { realm.delete(person) }
        XCTAssertEqual(frozen.name, "Bo", "the row of a frozen object stays")
        XCTAssertFalse(frozen.isInvalidated)
    }

    func testF299_F402_aFrozenRealmAndFrozenCollectionsAreSnapshots() throws {
        let realm = try Realm(configuration: fileConfiguration())
        try realm.write { realm.add(Dog(name: "Rex")) }
        let transfer = Transfer(realm.freeze())
        let frozen = transfer.value
        let results = realm.objects(Dog.self).freeze()
        try realm.write { realm.add(Dog(name: "Ada")) }
        XCTAssertEqual(results.count, 1)
        XCTAssertEqual(frozen.objects(Dog.self).count, 1)
        onThread { XCTAssertEqual(transfer.value.objects(Dog.self).map(\.name), ["Rex"]) }
        XCTAssertEqual(frozen.freeze(), frozen)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        XCTAssertFalse(frozen.refresh())
        XCTAssertEqual(frozen.thaw(), realm)
        XCTAssertEqual(realm.thaw(), realm)
        frozen.invalidate()
        assertTraps("write to frozen", "frozen Realm")
        assertTraps("write to frozen object", "Cannot modify frozen objects")
        assertTraps("freeze in write", "Cannot freeze")
        assertTraps("freeze new object", "Cannot freeze an object in the same write transaction as it was created in")
        assertTraps("autorefresh of frozen", "Auto-refresh cannot be enabled for frozen Realms")
    }

    func testF300_isFrozen() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let person = try realm.write {
            realm.create(Person.self, value: ["dogs": [["name": "Rex"]], "pets": ["p": ["name": "Kit"]]] as [String: Any])
        }
        let frozen = person.freeze()
        XCTAssertFalse(
            realm.isFrozen || person.isFrozen || person.dogs.isFrozen || person.pets.isFrozen || realm.objects(Dog.self).isFrozen)
        XCTAssertTrue(
            realm.freeze().isFrozen && frozen.isFrozen && frozen.dogs.isFrozen && frozen.pets.isFrozen && frozen.tags.isFrozen)
        XCTAssertTrue(
            frozen.realm!.objects(Dog.self).isFrozen && realm.objects(Dog.self).freeze().isFrozen && frozen.dogs[0].fans.isFrozen)
        XCTAssertTrue(realm.freeze(person).isFrozen)
        XCTAssertFalse(try XCTUnwrap(realm.thaw(frozen)).isFrozen)
    }

    func testF301_F302_whatIsFrozenIsChangedByThawing() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let frozen = try realm.write {
            realm.create(Person.self, value: ["name": "Bo", "dogs": [["name": "Rex"]]] as [String: Any])
        }.freeze()
        let live = try XCTUnwrap(frozen.thaw())
        try realm.write { live.name = "Al" }
        XCTAssertEqual(frozen.name, "Bo")
        let dogs = try XCTUnwrap(frozen.dogs.thaw())
        try dogs.realm?.write { dogs.append(Dog(name: "Ada")) }
        XCTAssertEqual(frozen.dogs.count, 1)
        XCTAssertEqual(live.dogs.map(\.name), ["Rex", "Ada"])
        let all = frozen.realm!.objects(Person.self)
        XCTAssertEqual(all.thaw()?.first?.name, "Al")
        try realm.write { realm.delete(live) }
        XCTAssertNil(frozen.thaw())
        XCTAssertNil(frozen.dogs.thaw())
    }

    func testFreezingWithinATransactionShowsWhatIsCommitted() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        try realm.write {
            dog.name = "Changed"
            XCTAssertEqual(dog.freeze().name, "Rex")
        }
        XCTAssertEqual(dog.freeze().name, "Changed")
    }

    func testF303_aReaderStaysAtItsVersion() throws {
        let configuration = fileConfiguration()
        makeFile(configuration)
        let ready = DispatchSemaphore(value: 0), go = DispatchSemaphore(value: 0), done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let realm = try! Realm(configuration: configuration)
            let dogs = realm.objects(Dog.self)
            XCTAssertEqual(dogs.count, 1)
            ready.signal()
            go.wait()
            XCTAssertEqual(dogs.count, 1, "ten commits later")
            XCTAssertEqual(dogs[0].name, "Dog 0")
            XCTAssertTrue(realm.refresh())
            XCTAssertEqual(dogs.count, 11)
            done.signal()
        }
        ready.wait()
        let realm = try Realm(configuration: configuration)
        for number in 0..<10 {
            try realm.write {
                realm.objects(Dog.self)[0].name = "Changed \(number)"
                realm.add(Dog())
            }
        }
        go.signal()
        done.wait()
    }

    func testF306_theSameSessionIsGivenAgain() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        XCTAssertEqual(try Realm(configuration: configuration), realm)
        try realm.write { XCTAssertTrue(try! Realm(configuration: configuration).isInWriteTransaction) }
        let queue = DispatchQueue(label: "q")
        try queue.sync {
            let first = try Realm(configuration: configuration, queue: queue)
            XCTAssertNotEqual(first, realm)
            XCTAssertEqual(try Realm(configuration: configuration, queue: queue), first)
        }
    }

    func testF307_invalidateReleasesTheVersion() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        let person = try realm.write { realm.create(Person.self, value: ["dogs": [dog]]) }
        let dogs = realm.objects(Dog.self), list = person.dogs, sorted = dogs.sorted(byKeyPath: "name")
        let sections = dogs.sectioned(by: \.name)
        XCTAssertEqual([dogs.count, sorted.count, sections.count], [1, 1, 1])
        realm.invalidate()
        XCTAssertEqual([dogs.count, sorted.count, sections.count], [0, 0, 0])
        XCTAssertEqual(dogs.filter("name == 'Rex'").count, 0)
        XCTAssertNil(dogs.first)
        for dog in dogs { XCTFail("there is \(dog)") }
        XCTAssertTrue(dogs.isInvalidated)
        XCTAssertTrue(dog.isInvalidated)
        XCTAssertTrue(list.isInvalidated)
        XCTAssertNil(dog.realm)
        realm.invalidate()
        XCTAssertEqual(realm.objects(Dog.self).first?.name, "Rex", "reading begins anew")
        XCTAssertEqual([dogs.count, sorted.count, sections.count], [1, 1, 1])
        XCTAssertFalse(dogs.isInvalidated)
        realm.beginWrite()
        realm.add(Dog())
        realm.invalidate()
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        assertTraps("invalidated object", "deleted or invalidated")
    }

    func testAsynchronousWritesNeedAPlaceThatRunsThem() {
        assertTraps("async write without run loop", "run loop")
        assertTraps("write in completion", "completion block")
    }

    func testF408_autorefreshIsOnAgainWhenAnUnreferencedRealmIsOpenedAnew() throws {
        let configuration = fileConfiguration()
        try Realm(configuration: configuration).autorefresh = false
        XCTAssertTrue(try Realm(configuration: configuration).autorefresh)
    }

    func testF407_refreshSaysWhetherTheVersionMoved() throws {
        let configuration = fileConfiguration()
        let realm = try Realm(configuration: configuration)
        XCTAssertFalse(realm.refresh())
        onThread { addDog(configuration) }
        XCTAssertTrue(realm.refresh())
        try realm.write { XCTAssertFalse(realm.refresh(), "in a write transaction") }
        assertTraps("read only refresh", "Read-only")
        assertTraps("read only invalidate", "cannot be invalidated")
    }
}
