import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Collections of objects by name, of objects in a Realm and of others.
final class DynamicCollectionTests: RealmTestCase {
    private func makePerson() -> Person {
        let person = Person(value: ["name": "Ann", "friend": ["name": "Bo"]] as [String: Any])
        person.dogs.append(objectsIn: [Dog(name: "Rex", age: 3), Dog(name: "Max", age: 5)])
        person.homes.append(Address(value: ["city": "York"]))
        person.pets["first"] = .some(person.dogs[0])
        person.pets["none"] = .some(nil)
        return person
    }

    private func check(_ person: Person, line: UInt = #line) {
        let dogs = person.dynamicList("dogs")
        XCTAssertEqual(dogs.map { $0["name"] as? String }, ["Rex", "Max"], line: line)
        XCTAssertEqual(dogs[1].age as? Int, 5, line: line)
        XCTAssertEqual(dogs[0].objectSchema.className, "Dog", line: line)
        XCTAssertEqual(person.dynamicList("homes").first?.city as? String, "York", line: line)
        let pets: Map<String, DynamicObject?> = person.dynamicMap("pets")
        XCTAssertEqual(pets.count, 2, line: line)
        XCTAssertEqual((pets["first"] ?? nil)?.name as? String, "Rex", line: line)
        XCTAssertEqual(pets["none"], .some(nil), line: line)
        // What is shown is what is there.
        dogs[0]["name"] = "Rexy"
        XCTAssertEqual(person.dogs[0].name, "Rexy", line: line)
        dogs[0].setValue("Rex", forKey: "name")
        XCTAssertEqual(person.dogs[0].name, "Rex", line: line)
        XCTAssertTrue(dogs[0].isSameObject(as: person.dynamicList("dogs")[0]), line: line)
    }

    func testCollectionsByNameOfUnmanagedObjectsAreThoseOfManagedOnes() throws {
        let person = makePerson()
        check(person)
        let realm = try makeRealm()
        try realm.write {
            realm.add(person)
            check(person)
        }
    }

    func testSetsByNameOfUnmanagedObjects() throws {
        let group = DynamicGroup(value: ["members": [["name": "Ann", "dogs": [["name": "Rex"]]], ["name": "Bo"]]])
        let members = group.dynamicMutableSet("members")
        XCTAssertEqual(Set(members.compactMap { $0.name as? String }), ["Ann", "Bo"])
        let ann = try XCTUnwrap(members.first { $0.name as? String == "Ann" })
        XCTAssertEqual((ann.dogs as? List<DynamicObject>)?.first?.name as? String, "Rex")
        XCTAssertTrue(ann.description.contains("name = Ann"))
        XCTAssertEqual(ann, members.first { $0.name as? String == "Ann" })
    }

    func testAShownObjectGoesIntoARealmAsWhatItShows() throws {
        let realm = try makeRealm()
        let person = makePerson()
        let shown = person.dynamicList("dogs")[0]
        XCTAssertEqual(shown.owner as? DynamicObject, nil)
        try realm.write {
            let owner = realm.create(Owner.self, value: ["id": 1, "dog": shown] as [String: Any])
            XCTAssertEqual(owner.dog?.name, "Rex")
            XCTAssertEqual(owner.dog, person.dogs[0])
        }
        let holder = Person()
        holder.anything = .object(person)
        XCTAssertEqual(holder.anything.dynamicObject?.name as? String, "Ann")
        XCTAssertEqual((holder.anything.dynamicObject?.friend as? DynamicObject)?.name as? String, "Bo")
    }
}

final class DynamicGroup: Object {
    @Persisted var members: MutableSet<Person>
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
