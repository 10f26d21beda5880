import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// The samples of the documents that watch what they show. Every rule of notifications is tested where these are.
final class ObservedSampleTests: RealmTestCase {
    /// What a callback was given.
    private final class Log {
        var lines: [String] = []
    }

    func testF003_F053_anObjectTellsWhatChanged() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex", age: 1)
        try realm.write { realm.add(dog) }
        let log = Log()
        let token = dog.observe { (change: ObjectChange<Dog>) in
            switch change {
            case .change(let object, let properties):
                for property in properties { log.lines.append("\(property.name) \(property.newValue ?? "nil") \(object.name)") }
            case .deleted: log.lines.append("deleted")
            case .error(let error): log.lines.append("\(error)")
            }
        }
        try realm.write { dog.name = "Wolfie" }
        XCTAssertTrue(spin { log.lines == ["name Wolfie Wolfie"] }, "\(log.lines)")
        try realm.write { realm.delete(dog) }
        XCTAssertTrue(spin { log.lines.last == "deleted" }, "\(log.lines)")
        token.invalidate()
    }

    func testF041_F283_resultsAreWatched() throws {
        let realm = try makeRealm()
        let log = Log()
        let token = realm.objects(Dog.self).where { $0.age > 1 }.observe { (changes: RealmCollectionChange<Results<Dog>>) in
            switch changes {
            case .initial(let dogs): log.lines.append("initial \(dogs.count)")
            case .update(let dogs, let deletions, let insertions, let modifications):
                log.lines.append("\(dogs.count) \(deletions) \(insertions) \(modifications)")
            case .error(let error): log.lines.append("\(error)")
            }
        }
        XCTAssertTrue(spin { log.lines == ["initial 0"] }, "\(log.lines)")
        let rex = Dog(name: "Rex", age: 3)
        try realm.write { realm.add([rex, Dog(name: "Ada", age: 0)]) }
        XCTAssertTrue(spin { log.lines.count == 2 }, "\(log.lines)")
        try realm.write { rex.name = "Max" }
        XCTAssertTrue(spin { log.lines.count == 3 }, "\(log.lines)")
        try realm.write { rex.age = 0 }
        XCTAssertTrue(spin { log.lines.count == 4 }, "\(log.lines)")
        XCTAssertEqual(log.lines, ["initial 0", "1 [] [0] []", "1 [] [] [0]", "0 [0] [] []"])
        token.invalidate()
    }

    func testF024_anImportInTheBackgroundArrivesOnTheMainQueue() throws {
        let scratch = ScratchDirectory(), configuration = fileConfiguration(scratch)
        let realm = try Realm(configuration: configuration)
        let log = Log()
        let token = realm.objects(Dog.self).observe { change in
            if case .initial = change { log.lines.append("initial") }
            if case .update(let dogs, _, let insertions, _) = change { log.lines.append("\(insertions.count) of \(dogs.count)") }
        }
        XCTAssertTrue(spin { log.lines == ["initial"] })
        DispatchQueue(label: "import").async {
            autoreleasepool {
                let realm = try! Realm(configuration: configuration)
                try! realm.write {
                    for i in 0..<50 { realm.create(Dog.self, value: ["name": "dog \(i)"]) }
                }
            }
        }
        XCTAssertTrue(spin { log.lines == ["initial", "50 of 50"] }, "\(log.lines)")
        token.invalidate()
    }

    func testF155_F405_ownObserversAreLeftOut() throws {
        let realm = try makeRealm()
        let own = Log(), other = Log()
        let dogs = realm.objects(Dog.self)
        let token = dogs.observe { _ in own.lines.append("called") }
        let otherToken = realm.objects(Dog.self).observe { _ in other.lines.append("called") }
        XCTAssertTrue(spin { own.lines.count == 1 && other.lines.count == 1 })
        try realm.write(withoutNotifying: [token]) { realm.add(Dog(name: "Rex")) }
        XCTAssertTrue(spin { other.lines.count == 2 })
        XCTAssertEqual(own.lines.count, 1)
        try realm.write { realm.add(Dog(name: "Ada")) }
        XCTAssertTrue(spin { own.lines.count == 2 && other.lines.count == 3 })
        withExtendedLifetime((token, otherToken)) {}
    }

    func testF183_sectionsReportWhatHappened() throws {
        let realm = try makeRealm()
        try realm.write { realm.add([Dog(name: "Rex", age: 1), Dog(name: "Ada", age: 2)]) }
        let sections = realm.objects(Dog.self).sectioned(by: \.age)
        let log = Log()
        let token = sections.observe { change in
            switch change {
            case .initial(let sections): log.lines.append("initial \(sections.allKeys)")
            case .update(let sections, let deletions, let insertions, _, let inserted, let deleted):
                log.lines.append(
                    "\(sections.allKeys) -\(deletions.map { [$0.section, $0.item] }) +\(insertions.map { [$0.section, $0.item] }) \(Array(inserted)) \(Array(deleted))"
                )
            }
        }
        XCTAssertTrue(spin { log.lines == ["initial [1, 2]"] }, "\(log.lines)")
        try realm.write { realm.add(Dog(name: "Max", age: 0)) }
        XCTAssertTrue(spin { log.lines.count == 2 }, "\(log.lines)")
        try realm.write { realm.delete(realm.objects(Dog.self).filter("age == 1")) }
        XCTAssertTrue(spin { log.lines.count == 3 }, "\(log.lines)")
        XCTAssertEqual(Array(log.lines.dropFirst()), ["[0, 1, 2] -[] +[[0, 0]] [0] []", "[0, 2] -[] +[] [] [1]"])
        token.invalidate()
    }

    /// Waits for the initial report first, so that the update is one of its own.
    func testF240_anUpdateWithEqualValuesIsNoChange() throws {
        let realm = try makeRealm()
        let id = ObjectId.generate()
        try realm.write { realm.create(Dog.self, value: ["id": id, "name": "Rex", "age": 3] as [String: Any]) }
        let log = Log()
        let token = realm.objects(Dog.self).observe { change in
            if case .initial = change { log.lines.append("initial") }
            if case .update(_, let deletions, let insertions, let modifications) = change {
                log.lines.append("\(deletions) \(insertions) \(modifications)")
            }
        }
        XCTAssertTrue(spin { log.lines == ["initial"] })
        try realm.write {
            realm.create(Dog.self, value: ["id": id, "name": "Rex", "age": 3] as [String: Any], update: .modified)
        }
        try realm.write { realm.create(Dog.self, value: ["id": id, "age": 4] as [String: Any], update: .modified) }
        XCTAssertTrue(spin { log.lines.count > 1 })
        XCTAssertEqual(log.lines, ["initial", "[] [] [0]"])
        token.invalidate()
    }
}
