import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Observers of all objects of a class, whose changes are computed from the changed objects alone.
final class WholeClassTests: FileTestCase {
    private var realm: Realm!
    private let log = NotificationLog<Told>()

    override func setUpWithError() throws {
        realm = try Realm(configuration: fileConfiguration())
        try realm.write {
            for age in 0..<6 { realm.add(Dog(name: "Dog \(age)", age: age)) }
            for number in 0..<3 { realm.create(Person.self, value: ["name": "p\(number)"]) }
        }
    }

    override func tearDown() {
        log.token = nil
        realm = nil
    }

    private func observe(_ token: NotificationToken, line: UInt = #line) {
        log.token = token
        XCTAssertTrue(spin { !self.log.entries.isEmpty }, "no first call", line: line)
        log.entries = []
    }

    private func expect(_ entries: [Told], line: UInt = #line) {
        XCTAssertTrue(spin { self.log.entries.count >= entries.count }, "\(log.entries)", line: line)
        _ = spin(seconds: 0.02) { false }
        XCTAssertEqual(log.entries, entries, line: line)
        log.entries = []
    }

    func testF255_positionsAmongAllObjects() throws {
        // Keys of objects with primary keys are spread: the order of the class is that of the keys.
        let dogs = realm.objects(Dog.self)
        observe(dogs.observe { self.log.entries.append(told($0)) })
        let names = Array(dogs.map(\.name))
        try realm.write {
            realm.delete(dogs[1])
            realm.delete(dogs[3])
            dogs[0].name = "first"
        }
        expect([.update([1, 4], [], [0])])
        XCTAssertEqual(Array(dogs.map(\.name)).dropFirst(), [names[2], names[3], names[5]])
        let added = try realm.write {
            let dog = Dog(name: "new")
            realm.add(dog)
            return dog
        }
        expect([.update([], [try XCTUnwrap(dogs.index(of: added))], [])])
        try realm.write { realm.delete(dogs) }
        expect([.update([0, 1, 2, 3, 4], [], [])])
        try realm.write { realm.add(Dog(name: "one")) }
        expect([.update([], [0], [])])
    }

    func testF276_linkedObjectsCountAsFarAsForOtherResults() throws {
        let people = realm.objects(Person.self)
        try realm.write {
            people[0].friend = people[1]
            people[1].dogs.append(realm.objects(Dog.self)[0])
        }
        observe(people.observe { self.log.entries.append(told($0)) })
        try realm.write { realm.objects(Dog.self)[0].age = 99 }
        expect([.update([], [], [0, 1])])
        try realm.write { realm.objects(Dog.self)[1].age = 99 }
        expect([])
        try realm.write { people[2].age = 1 }
        expect([.update([], [], [2])])
    }

    func testF259_keyPathsOfAllObjects() throws {
        let people = realm.objects(Person.self)
        try realm.write { people[2].dogs.append(realm.objects(Dog.self)[0]) }
        observe(people.observe(keyPaths: ["dogs.name"]) { self.log.entries.append(told($0)) })
        try realm.write {
            people[0].age = 1
            realm.objects(Dog.self)[0].age = 1
        }
        expect([])
        try realm.write { realm.objects(Dog.self)[0].name = "x" }
        expect([.update([], [], [2])])
        try realm.write { people[1].dogs.append(realm.objects(Dog.self)[3]) }
        expect([.update([], [], [1])])
        log.token = nil
        observe(people.observe(keyPaths: [\.name]) { self.log.entries.append(told($0)) })
        try realm.write {
            people[0].age = 2
            people[1].name = "y"
        }
        expect([.update([], [], [1])])
    }

    func testChangesDuringAnInvalidationAreFoundByComparing() throws {
        let dogs = realm.objects(Dog.self)
        observe(dogs.observe { self.log.entries.append(told($0)) })
        realm.invalidate()
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { realm.delete(realm.objects(Dog.self)[2]) }
        }
        expect([.update([2], [], [])])
        XCTAssertEqual(dogs.count, 5)
    }

    /// With many objects and few changes, and the other way round.
    func testManyObjectsAndManyChanges() throws {
        let people = realm.objects(Person.self)
        try realm.write {
            for number in 3..<2000 { realm.create(Person.self, value: ["name": "p\(number)"]) }
        }
        observe(people.observe { self.log.entries.append(told($0)) })
        try realm.write { realm.delete(people[1000]) }
        expect([.update([1000], [], [])])
        try realm.write {
            for position in stride(from: 1900, through: 0, by: -100) { realm.delete(people[position]) }
            for position in stride(from: 50, to: people.count, by: 90) { people[position].age += 1 }
        }
        let deleted = Array(stride(from: 0, through: 1900, by: 100))
        let rest = (0..<1999).filter { !deleted.contains($0) }
        expect([.update(deleted, [], stride(from: 50, to: rest.count, by: 90).map { rest[$0] })])
    }
}
