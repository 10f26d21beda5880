import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

extension Dog {
    fileprivate var initial: String { name.first.map { String($0) } ?? "" }
    fileprivate var ageAndInitial: String { "\(age) \(initial)" }
}

/// Results divided into sections.
final class SectionTests: RealmTestCase {
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            for (name, age) in [("Rex", 3), ("Ada", 1), ("Rob", 3), ("Max", 1), ("Amy", 2)] {
                realm.add(Dog(name: name, age: age))
            }
        }
        return realm
    }

    func testF181_sectionsByAProperty() throws {
        let dogs = try makeFilledRealm().objects(Dog.self)
        let sections = dogs.sectioned(by: \.age)
        XCTAssertEqual(sections.allKeys, [1, 2, 3])
        XCTAssertEqual(sections.count, 3)
        XCTAssertEqual(sections.map(\.count), [2, 1, 2])
        XCTAssertEqual(Array(sections[2].map(\.name)).sorted(), ["Rex", "Rob"])
        XCTAssertEqual(sections[0].key, 1)
        XCTAssertEqual(sections[0].id, 1)
        XCTAssertEqual(dogs.sectioned(by: \.age, ascending: false).allKeys, [3, 2, 1])
        let ordered = dogs.sectioned(
            by: \.age, sortDescriptors: [SortDescriptor(keyPath: "age"), SortDescriptor(keyPath: "name", ascending: false)])
        XCTAssertEqual(ordered.map { $0.map(\.name) }, [["Max", "Ada"], ["Amy"], ["Rob", "Rex"]])
        XCTAssertEqual(ordered[IndexPath(item: 1, section: 2)].name, "Rex")
        XCTAssertEqual(ordered[IndexPath(row: 0, section: 1)].name, "Amy")
        XCTAssertEqual(sections, sections)
        XCTAssertEqual(sections[0], sections[0])
        XCTAssertNotEqual(sections[0], sections[1])
    }

    /// What is computed from one property or several is sorted by them.
    func testF182_sectionsByAComputedProperty() throws {
        let realm = try makeFilledRealm(), dogs = realm.objects(Dog.self)
        let sections = dogs.sectioned(by: \.initial)
        XCTAssertEqual(sections.allKeys, ["A", "M", "R"])
        XCTAssertEqual(sections.map { $0.map(\.name) }, [["Ada", "Amy"], ["Max"], ["Rex", "Rob"]])
        XCTAssertEqual(
            dogs.sectioned(by: \.initial, ascending: false).map { $0.map(\.name) }, [["Rob", "Rex"], ["Max"], ["Amy", "Ada"]])
        let ordered = dogs.sectioned(
            by: \.initial, sortDescriptors: [SortDescriptor(keyPath: "name", ascending: false)])
        XCTAssertEqual(ordered.allKeys, ["R", "M", "A"])
        let byBoth = dogs.sectioned(by: \.ageAndInitial)
        XCTAssertEqual(byBoth.allKeys, ["1 A", "1 M", "2 A", "3 R"])
        XCTAssertEqual(byBoth[3].map(\.name), ["Rex", "Rob"])
        try realm.write {
            dogs.where { $0.name == "Max" }.first?.name = "Ali"
            XCTAssertEqual(sections.allKeys, ["A", "R"])
        }
        XCTAssertEqual(sections[0].map(\.name), ["Ada", "Ali", "Amy"])
    }

    func testF025_F182_sectionsByABlock() throws {
        let dogs = try makeFilledRealm().objects(Dog.self)
        let byLetter = dogs.sectioned(by: { String($0.name.prefix(1)) }, sortDescriptors: [SortDescriptor(keyPath: "name")])
        XCTAssertEqual(byLetter.allKeys, ["A", "M", "R"])
        XCTAssertEqual(byLetter.map { $0.map(\.name) }, [["Ada", "Amy"], ["Max"], ["Rex", "Rob"]])
        let trailing = dogs.sectioned(sortDescriptors: [SortDescriptor(keyPath: "name", ascending: false)]) { $0.age > 2 }
        XCTAssertEqual(trailing.allKeys, [true, false])
        XCTAssertEqual(trailing[1].map(\.name), ["Max", "Amy", "Ada"])
        var seen: [String] = []
        for section in byLetter {
            for dog in section { seen.append(section.key + ":" + dog.name) }
        }
        XCTAssertEqual(seen, ["A:Ada", "A:Amy", "M:Max", "R:Rex", "R:Rob"])
        XCTAssertTrue(byLetter.description.contains("Amy"))
    }

    func testF116_sectionsAreLiveCollections() throws {
        let realm = try makeFilledRealm()
        let sections = realm.objects(Dog.self).sectioned(by: \.age)
        let three = sections[2]
        try realm.write {
            realm.objects(Dog.self).filter("age == 3").setValue(9, forKey: "age")
            XCTAssertEqual(sections.allKeys, [1, 2, 9])
        }
        XCTAssertEqual(three.count, 0)
        XCTAssertEqual(three.key, 3)
        try realm.write { realm.add(Dog(name: "New", age: 3)) }
        XCTAssertEqual(three.map(\.name), ["New"])
        XCTAssertEqual(sections.allKeys, [1, 2, 3, 9])
        let frozen = sections.freeze()
        try realm.write { realm.deleteAll() }
        XCTAssertEqual(sections.count, 0)
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertEqual(frozen.allKeys, [1, 2, 3, 9])
        XCTAssertEqual(frozen[3].count, 2)
        XCTAssertEqual(frozen.thaw()?.count, 0)
        XCTAssertEqual(sections.realm, realm)
        XCTAssertFalse(sections.isInvalidated)
    }

    func testSectionsOfValuesAndOfOtherKeys() throws {
        let realm = try makeRealm()
        let object = AllTypes()
        object.ints.append(objectsIn: [5, 2, 8, 1, 4])
        object.strings.append(objectsIn: ["b", "aa", "a"])
        object.optStrings.append(objectsIn: [nil, "x", nil])
        try realm.write {
            realm.add(object)
            realm.add(AllTypes(value: ["key": "2", "size": "large", "optInt": 3, "bool": true] as [String: Any]))
        }
        XCTAssertEqual(object.ints.sectioned(by: { $0 % 2 == 0 }).map { Array($0) }, [[1, 5], [2, 4, 8]])
        XCTAssertEqual(object.ints.sectioned(by: { $0 % 2 == 0 }, ascending: false).map { Array($0) }, [[8, 4, 2], [5, 1]])
        XCTAssertEqual(object.strings.sectioned(by: { $0.count }).allKeys, [1, 2])
        let all = realm.objects(AllTypes.self)
        XCTAssertEqual(all.sectioned(by: \.size).allKeys, [.large, .small])
        XCTAssertEqual(all.sectioned(by: \.optInt).allKeys, [nil, 3])
        XCTAssertEqual(all.sectioned(by: \.bool).allKeys, [false, true])
        XCTAssertEqual(all.sectioned(by: \.objectId).count, 2)
        XCTAssertEqual(all.sectioned(by: \.key, ascending: false).allKeys, ["2", ""])
    }
}
