import Foundation
import RealmSwift
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest

final class NotificationTests: FileTestCase {
    private var realm: Realm!
    private let log = NotificationLog<Told>()

    override func setUpWithError() throws {
        realm = try Realm(configuration: fileConfiguration())
        try realm.write {
            for age in 0..<4 { realm.add(Dog(name: "Dog \(age)", age: age)) }
            let person = realm.create(Person.self, value: ["name": "Ann", "age": 30])
            person.dogs.append(objectsIn: realm.objects(Dog.self).sorted(byKeyPath: "age"))
        }
    }

    override func tearDown() {
        log.token = nil
        realm = nil
    }

    private var dogs: Results<Dog> { realm.objects(Dog.self).sorted(byKeyPath: "age") }
    private var person: Person { realm.objects(Person.self).first! }

    /// Waits for the observer's first call.
    private func observe(_ token: NotificationToken, line: UInt = #line) {
        log.token = token
        XCTAssertTrue(spin { !self.log.entries.isEmpty }, "no first call", line: line)
        log.entries = []
    }

    private func expect(_ entries: [Told], line: UInt = #line) {
        XCTAssertTrue(spin { self.log.entries.count >= entries.count }, "\(log.entries)", line: line)
        // Nothing else comes.
        _ = spin(seconds: 0.02) { false }
        XCTAssertEqual(log.entries, entries, line: line)
        log.entries = []
    }

    private func elsewhere(_ body: @escaping @Sendable (Realm) -> Void) {
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { body(realm) }
        }
    }

    // MARK: Realm

    func testF253_aRealmObserverHearsOfOwnAndOtherCommits() throws {
        var notes: [Realm.Notification] = []
        let token = realm.observe { note, realm in
            XCTAssertFalse(realm.isFrozen)
            notes.append(note)
        }
        try realm.write { dogs[0].age = 9 }
        XCTAssertEqual(notes, [.didChange], "at once after the commit")
        elsewhere { $0.objects(Dog.self).first!.age = 5 }
        XCTAssertTrue(spin { notes.count == 2 })
        XCTAssertEqual(notes.last, .didChange)
        token.invalidate()
        try realm.write { dogs[0].age = 9 }
        XCTAssertEqual(notes.count, 2)
    }

    func testF254_refreshRequiredWithoutAutorefresh() {
        realm.autorefresh = false
        var notes: [Realm.Notification] = []
        let token = realm.observe { note, _ in notes.append(note) }
        elsewhere { $0.objects(Dog.self).first!.age = 5 }
        XCTAssertTrue(spin { !notes.isEmpty })
        XCTAssertEqual(notes, [.refreshRequired])
        XCTAssertTrue(realm.refresh())
        XCTAssertEqual(notes.last, .didChange)
        token.invalidate()
    }

    // MARK: Collections

    func testF255_resultsTellInitialAndExactPositions() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        try realm.write {
            realm.delete(results[0])
            realm.add(Dog(name: "New", age: 2))
            results[0].name = "Renamed"
        }
        expect([.update([0], [2], [1])])
        elsewhere { realm in realm.objects(Dog.self).filter("age == 3").first!.age = 0 }
        expect([.update([3], [0], [])])
    }

    func testF255_theFirstCallBringsTheCollection() {
        log.token = realm.objects(Dog.self).where { $0.age > 1 }.observe { self.log.entries.append(told($0)) }
        XCTAssertEqual(log.entries, [], "not before the run loop turns")
        expect([.initial(2)])
    }

    func testF255_listsLinkingObjectsAndErasedCollections() throws {
        let person = person
        observe(person.dogs.observe { self.log.entries.append(told($0)) })
        let fans = NotificationLog<Told>(), erased = NotificationLog<Told>()
        fans.token = person.dogs[0].fans.observe { fans.entries.append(told($0)) }
        erased.token = AnyRealmCollection(person.dogs).observe { erased.entries.append(told($0)) }
        XCTAssertTrue(spin { fans.entries == [.initial(1)] && erased.entries == [.initial(4)] })
        try realm.write {
            person.dogs.remove(at: 1)
            person.dogs.insert(Dog(name: "New"), at: 0)
            person.dogs.move(from: 3, to: 1)
        }
        expect([.update([1, 3], [0, 1], [])])
        XCTAssertEqual(erased.entries.last, .update([1, 3], [0, 1], []))
        try realm.write { realm.create(Person.self, value: ["name": "Bob"]).dogs.append(person.dogs[2]) }
        XCTAssertTrue(spin { fans.entries.last == .update([], [1], []) }, "\(fans.entries)")
    }

    func testTheOwnerOfAnObservedListIsDeleted() throws {
        let list = person.dogs
        observe(list.observe { self.log.entries.append(told($0)) })
        try realm.write { realm.delete(person) }
        expect([.update([0, 1, 2, 3], [], [])])
        XCTAssertTrue(list.isInvalidated)
    }

    func testF274_F283_deletionsAndModificationsAreOldPositionsInsertionsNewOnes() throws {
        let results = dogs
        var names: [String] = []
        observe(
            results.observe { change in
                switch change {
                case .initial(let dogs): names = dogs.map(\.name)
                case .update(let dogs, let deletions, let insertions, let modifications):
                    // The rules of a table view: reload, delete, insert.
                    var rows = names
                    for row in modifications { rows[row] = "changed" }
                    for row in deletions.reversed() { rows.remove(at: row) }
                    for row in insertions { rows.insert(dogs[row].name, at: row) }
                    for (row, name) in rows.enumerated() where name == "changed" { rows[row] = dogs[row].name }
                    names = rows
                case .error(let error): XCTFail("\(error)")
                }
                self.log.entries.append(told(change))
            })
        var random = SplitMix(seed: 7)
        for _ in 0..<30 {
            try realm.write {
                for _ in 0..<3 {
                    switch random.next() % 4 {
                    case 0: realm.add(Dog(name: "d\(random.next() % 100)", age: Int(random.next() % 10)))
                    case 1: if results.count > 3 { realm.delete(results[Int(random.next() % UInt64(results.count))]) }
                    case 2: results[Int(random.next() % UInt64(results.count))].name = "n\(random.next() % 100)"
                    default: results[Int(random.next() % UInt64(results.count))].age = Int(random.next() % 10)
                    }
                }
            }
            realm.refresh()
            XCTAssertEqual(names, results.map(\.name))
        }
        XCTAssertGreaterThan(log.entries.count, 20)
    }

    func testF277_mapsTellKeys() throws {
        let person = person
        try realm.write {
            person.pets["a"] = dogs[0]
            person.pets["b"] = dogs[1]
        }
        observe(
            person.pets.observe { change in
                switch change {
                case .initial(let map): self.log.entries.append(.initial(map.count))
                case .update(_, let deletions, let insertions, let modifications):
                    self.log.entries.append(.keys(deletions, insertions, modifications))
                case .error: self.log.entries.append(.error)
                }
            })
        try realm.write {
            person.pets.removeObject(for: "a")
            person.pets["c"] = dogs[2]
            dogs[1].name = "x"
        }
        expect([.keys(["a"], ["c"], ["b"])])
    }

    func testF278_setsTellPositions() throws {
        let tags = person.tags
        try realm.write { tags.insert(objectsIn: ["b", "d"]) }
        observe(tags.observe { self.log.entries.append(told($0)) })
        try realm.write {
            tags.insert("a")
            tags.remove("d")
        }
        expect([.update([1], [0], [])])
    }

    // MARK: Objects

    func testF256_anObjectTellsPropertiesWithOldValuesOfOthersChanges() throws {
        let dog = dogs[1]
        var changes: [PropertyChange] = []
        log.token = dog.observe { (change: ObjectChange<Dog>) in
            if case .change(let object, let properties) = change {
                XCTAssertTrue(object === dog)
                changes = properties
            }
            self.log.entries.append(told(change))
        }
        try realm.write {
            dog.age = 50
            dog.name = dog.name
        }
        expect([.change(["name", "age"])])
        XCTAssertNil(changes[1].oldValue, "a change of our own")
        XCTAssertEqual(changes[1].newValue as? Int, 50)
        elsewhere { $0.objects(Dog.self).filter("age == 50").first!.age = 51 }
        expect([.change(["age"])])
        XCTAssertEqual(changes[0].oldValue as? Int, 50)
        XCTAssertEqual(changes[0].newValue as? Int, 51)
    }

    func testF256_collectionPropertiesHaveNoValuesAndLinksDo() throws {
        let person = person
        var changes: [PropertyChange] = []
        log.token = person.observe { (change: ObjectChange<Person>) in
            if case .change(_, let properties) = change { changes = properties }
            self.log.entries.append(told(change))
        }
        try realm.write {
            person.dogs.removeLast()
            person.address = Address(value: ["street": "Main"])
        }
        expect([.change(["dogs", "address"])])
        XCTAssertNil(changes[0].newValue)
        XCTAssertEqual((changes[1].newValue as? Address)?.street, "Main")
    }

    func testF257_deletionIsToldOnce() throws {
        let dog = dogs[0]
        log.token = dog.observe { (change: ObjectChange<Dog>) in self.log.entries.append(told(change)) }
        try realm.write { realm.delete(dog) }
        expect([.deleted])
        try realm.write { dogs[0].age = 77 }
        expect([])
    }

    func testAnEmbeddedObjectIsObserved() throws {
        let person = person
        try realm.write { person.address = Address(value: ["street": "Main"]) }
        let address = person.address!
        log.token = address.observe { (change: ObjectChange<Address>) in self.log.entries.append(told(change)) }
        try realm.write { address.city = "Oslo" }
        expect([.change(["city"])])
        try realm.write { person.address = nil }
        expect([.deleted])
    }

    // MARK: Key paths

    func testF258_F260_onlyNamedPropertiesOfAnObject() throws {
        let dog = dogs[0]
        let byName = NotificationLog<Told>(), byKeyPath = NotificationLog<Told>()
        byName.token = dog.observe(keyPaths: ["name"]) { (change: ObjectChange<Dog>) in byName.entries.append(told(change)) }
        byKeyPath.token = dog.observe(keyPaths: [\Dog.name]) { (change: ObjectChange<Dog>) in
            byKeyPath.entries.append(told(change))
        }
        try realm.write { dog.age = 3 }
        try realm.write { dog.name = "x" }
        XCTAssertTrue(spin { !byName.entries.isEmpty && !byKeyPath.entries.isEmpty })
        XCTAssertEqual(byName.entries, [.change(["name"])])
        XCTAssertEqual(byKeyPath.entries, [.change(["name"])])
    }

    func testF259_keyPathsThroughListsAndBacklinks() throws {
        let people = realm.objects(Person.self), person = person
        observe(people.observe(keyPaths: ["dogs.name"]) { self.log.entries.append(told($0)) })
        try realm.write { person.dogs[0].age = 44 }
        try realm.write { person.name = "Other" }
        try realm.write { person.dogs[0].name = "Named" }
        expect([.update([], [], [0])])
        let fans = NotificationLog<Told>()
        fans.token = dogs[0].observe(keyPaths: ["fans"]) { (change: ObjectChange<Dog>) in fans.entries.append(told(change)) }
        let dog = dogs[0]
        try realm.write { realm.create(Person.self, value: ["name": "Cid"]).dogs.append(dog) }
        XCTAssertTrue(spin { !fans.entries.isEmpty })
        XCTAssertEqual(fans.entries, [.change(["fans"])])
    }

    func testF259_noKeyPathsMeanOnlyTheCollectionItself() throws {
        let results = dogs
        observe(results.observe(keyPaths: [String]()) { self.log.entries.append(told($0)) })
        try realm.write { results[0].name = "x" }
        try realm.write { realm.delete(results[0]) }
        expect([.update([0], [], [])])
    }

    func testF276_changesFourObjectsAwayCountFartherOnesOnlyByKeyPath() throws {
        let people = realm.objects(Person.self).where { $0.name == "p0" }
        var chain: [Person] = []
        try realm.write {
            for i in 0..<6 { chain.append(realm.create(Person.self, value: ["name": "p\(i)"])) }
            for i in 0..<5 { chain[i].friend = chain[i + 1] }
        }
        observe(people.observe { self.log.entries.append(told($0)) })
        let far = NotificationLog<Told>()
        far.token = people.observe(keyPaths: ["friend.friend.friend.friend.age"]) { far.entries.append(told($0)) }
        XCTAssertTrue(spin { !far.entries.isEmpty })
        try realm.write { chain[3].age = 1 }
        expect([.update([], [], [0])])
        try realm.write { chain[4].age = 1 }
        XCTAssertTrue(spin { far.entries.count == 2 })
        XCTAssertEqual(far.entries.last, .update([], [], [0]))
        expect([])
    }

    // MARK: Delivery

    func testF261_whoIsNotToBeNotifiedIsNotOthersAre() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        let other = NotificationLog<Told>()
        other.token = results.observe { other.entries.append(told($0)) }
        XCTAssertTrue(spin { !other.entries.isEmpty })
        try realm.write(withoutNotifying: [log.token!]) { realm.delete(results[0]) }
        XCTAssertTrue(spin { other.entries.count == 2 })
        expect([])
        realm.beginWrite()
        realm.delete(results[0])
        try realm.commitWrite(withoutNotifying: [other.token!])
        expect([.update([0], [], [])])
        XCTAssertEqual(other.entries.count, 2)
        // Later changes are relative to what was skipped.
        try realm.write { results[1].name = "x" }
        expect([.update([], [], [1])])
        XCTAssertEqual(other.entries.last, .update([], [], [1]))
    }

    func testF261_anObserverOfTheRealmIsSkippedToo() throws {
        var mine = 0, others = 0
        let token = realm.observe { _, _ in mine += 1 }, other = realm.observe { _, _ in others += 1 }
        try realm.write(withoutNotifying: [token]) { dogs[0].age = 9 }
        try realm.write { dogs[0].age = 8 }
        XCTAssertEqual([mine, others], [1, 2])
        token.invalidate()
        // A token that has ended is nobody's.
        try realm.write(withoutNotifying: [token]) { dogs[0].age = 7 }
        XCTAssertEqual([mine, others], [1, 3])
        other.invalidate()
    }

    func testF262_invalidateAndDeinitEndObservation() throws {
        observe(dogs.observe { self.log.entries.append(told($0)) })
        let other = NotificationLog<Told>()
        other.token = dogs.observe { other.entries.append(told($0)) }
        XCTAssertTrue(spin { !other.entries.isEmpty })
        try realm.write { dogs[0].age = 1 }
        log.token!.invalidate()
        other.token = nil
        expect([])
        XCTAssertEqual(other.entries.count, 1)
    }

    func testF270_severalCommitsAreOneUpdate() throws {
        observe(dogs.observe { self.log.entries.append(told($0)) })
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            for age in [7, 8] { try! realm.write { realm.add(Dog(name: "More", age: age)) } }
        }
        expect([.update([], [4, 5], [])])
    }

    func testF270_whatCancelsOutIsNotTold() throws {
        observe(dogs.observe { self.log.entries.append(told($0)) })
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { realm.add(Dog(name: "More", age: 7)) }
            try! realm.write { realm.delete(realm.objects(Dog.self).filter("age == 7")) }
        }
        expect([])
    }

    func testF271_writesOfAnotherThreadAreToldWithTheStateTheyMade() {
        let results = dogs
        observe(
            results.observe { change in
                if case .update(let dogs, _, let insertions, _) = change { XCTAssertEqual(insertions.map { dogs[$0].age }, [70]) }
                self.log.entries.append(told(change))
            })
        elsewhere { $0.add(Dog(name: "Old", age: 70)) }
        expect([.update([], [4], [])])
    }

    func testF272_theSecondWriteFirstDeliversWhatTheFirstChanged() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        try realm.write { results[0].name = "x" }
        XCTAssertEqual(log.entries, [])
        try realm.write {
            XCTAssertEqual(log.entries, [.update([], [], [0])], "told before the block runs")
            realm.delete(results[3])
        }
        expect([.update([], [], [0]), .update([3], [], [])])
    }

    func testF273_aCallbackMayWrite() throws {
        let results = dogs, realm = realm!
        var hasWritten = false
        observe(
            results.observe { change in
                self.log.entries.append(told(change))
                if case .update = change, !hasWritten, !realm.isInWriteTransaction {
                    hasWritten = true
                    try! realm.write { results[1].name = "by the callback" }
                }
            })
        let second = NotificationLog<Told>()
        second.token = results.observe { second.entries.append(told($0)) }
        XCTAssertTrue(spin { !second.entries.isEmpty })
        try realm.write { results[0].name = "x" }
        expect([.update([], [], [0]), .update([], [], [1])])
        XCTAssertEqual(second.entries.suffix(2), [.update([], [], [0]), .update([], [], [1])])
    }

    func testF273_refreshWithinACallbackDoesNothing() throws {
        let configuration = fileConfiguration(), realm = realm!
        observe(
            dogs.observe { change in
                self.log.entries.append(told(change))
                if self.log.entries.count == 1, case .update = change {
                    onThread {
                        let realm = try! Realm(configuration: configuration)
                        try! realm.write { realm.add(Dog(name: "During", age: 90)) }
                    }
                    XCTAssertFalse(realm.refresh())
                }
            })
        try realm.write { dogs[0].name = "x" }
        expect([.update([], [], [0]), .update([], [4], [])])
    }

    func testF275_refreshDelivers() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        try realm.write { results[0].name = "x" }
        realm.refresh()
        XCTAssertEqual(log.entries, [.update([], [], [0])])
        elsewhere { $0.add(Dog(name: "New", age: 30)) }
        XCTAssertTrue(realm.refresh())
        XCTAssertEqual(log.entries.last, .update([], [4], []))
    }

    func testACancelledWriteIsNotTold() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        realm.beginWrite()
        realm.delete(results[0])
        realm.cancelWrite()
        expect([])
        try realm.write { results[0].name = "x" }
        expect([.update([], [], [0])])
    }

    func testObservingInsideATransactionBeforeAChange() throws {
        let results = dogs
        try realm.write {
            log.token = results.observe { self.log.entries.append(told($0)) }
            realm.delete(results[0])
        }
        XCTAssertTrue(spin { !self.log.entries.isEmpty })
        XCTAssertEqual(log.entries.first, .initial(3))
    }

    func testResultsGoOnAfterInvalidate() throws {
        observe(realm.objects(Dog.self).observe { self.log.entries.append(told($0)) })
        let configuration = fileConfiguration()
        realm.invalidate()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { realm.add(Dog(name: "New", age: 7)) }
        }
        expect([.update([], [4], [])])
    }

    // MARK: Queues and threads

    func testF281_aBlockOnAQueue() {
        let queue = DispatchQueue(label: "observer")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let seen = Mutex<[Told]>([])
        let token = dogs.observe(on: queue) { change in
            XCTAssertEqual(DispatchQueue.getSpecific(key: key), true)
            let entry = told(change)
            seen.withLock { $0.append(entry) }
        }
        XCTAssertTrue(spin { seen.withLock { $0.count } == 1 })
        elsewhere { $0.add(Dog(name: "New", age: 9)) }
        XCTAssertTrue(spin { seen.withLock { $0.count } == 2 })
        XCTAssertEqual(seen.withLock { $0 }, [.initial(4), .update([], [4], [])])
        token.invalidate()
        let object = Mutex<[Told]>([])
        let objectToken = dogs[0].observe(on: queue) { (change: ObjectChange<Dog>) in
            let entry = told(change)
            object.withLock { $0.append(entry) }
        }
        queue.sync {}
        elsewhere { $0.objects(Dog.self).filter("age == 0").first!.name = "x" }
        XCTAssertTrue(spin { object.withLock { $0 } == [.change(["name"])] })
        XCTAssertEqual(seen.withLock { $0.count }, 2, "nothing after invalidate")
        objectToken.invalidate()
        queue.sync {}
    }

    func testF255_anotherProcessCommits() throws {
        let results = dogs
        observe(results.observe { self.log.entries.append(told($0)) })
        let process = try ChildProcess(product: "TestParticipant", ["realm", "add", url().path, "Other"])
        XCTAssertEqual(process.waitForEnd(), 0, process.errors)
        // Of the same age as the first one.
        expect([.update([], [1], [])])
    }

    // MARK: Sections and projections

    func testF279_sectionsTellPathsAndSections() throws {
        let sections = realm.objects(Dog.self).sectioned(by: \.age, ascending: true)
        var updates:
            [(deletions: [IndexPath], insertions: [IndexPath], modifications: [IndexPath], new: IndexSet, gone: IndexSet)] = []
        observe(
            sections.observe { change in
                if case .update(_, let deletions, let insertions, let modifications, let new, let gone) = change {
                    updates.append((deletions, insertions, modifications, new, gone))
                }
                self.log.entries.append(.change([]))
            })
        let one = NotificationLog<Told>()
        one.token = sections[1].observe { _ in one.entries.append(.change([])) }
        XCTAssertTrue(spin { one.entries.count == 1 })
        try realm.write {
            realm.delete(dogs[0])
            realm.add(Dog(name: "Second", age: 2))
            dogs.last!.name = "x"
        }
        expect([.change([])])
        XCTAssertEqual(updates.count, 1)
        XCTAssertEqual(updates[0].deletions, [])
        XCTAssertEqual(updates[0].insertions, [IndexPath(item: 1, section: 1)])
        XCTAssertEqual(updates[0].modifications, [IndexPath(item: 0, section: 3)])
        XCTAssertEqual(updates[0].gone, [0])
        XCTAssertEqual(updates[0].new, [])
        XCTAssertEqual(one.entries.count, 1, "nothing happened to the section of age 1")
        try realm.write { realm.objects(Dog.self).filter("age == 1").first!.name = "y" }
        XCTAssertTrue(spin { one.entries.count == 2 })
    }

    func testF269_projectionsTellProjectedNames() throws {
        let projection = realm.objects(PersonProjection.self).first!
        log.token = projection.observe { self.log.entries.append(told($0)) }
        try realm.write { person.name = "Zoe" }
        expect([.change(["title", "shouted"])])
        try realm.write { person.dogs[0].name = "x" }
        expect([.change(["dogNames"])])
        try realm.write { person.anything = .int(3) }
        expect([])
        let names = NotificationLog<Told>()
        names.token = projection.dogNames.observe { change in
            switch change {
            case .initial(let names): XCTAssertEqual(names.count, 4)
            case .update(_, _, _, let modifications): names.entries.append(.update([], [], modifications))
            case .error: XCTFail("no names")
            }
        }
        _ = spin(seconds: 0.05) { false }
        try realm.write { person.dogs[2].name = "y" }
        XCTAssertTrue(spin { names.entries == [.update([], [], [2])] }, "\(names.entries)")
        expect([.change(["dogNames"])])
        try realm.write { realm.delete(person) }
        expect([.deleted])
    }
}
