import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Dynamic objects where values of any form are taken.
final class DynamicInputTests: RealmTestCase {
    private func filled() throws -> (Realm, Person) {
        let realm = try makeRealm()
        let person = try realm.write {
            realm.create(
                Person.self,
                value: [
                    "name": "Ann", "dogs": [["name": "Rex", "age": 3] as [String: Any]], "friend": ["name": "Bo"],
                    "pets": ["x": ["name": "Kit"]],
                ] as [String: Any])
        }
        return (realm, person)
    }

    func testACopyOfADynamicObject() throws {
        let (realm, person) = try filled()
        let copy = Person(value: realm.dynamicObjects("Person").filter("name == 'Ann'")[0])
        XCTAssertEqual(copy.name, "Ann")
        XCTAssertEqual(copy.dogs.map(\.name), ["Rex"])
        XCTAssertEqual(copy.friend?.name, "Bo")
        XCTAssertEqual(copy.pets["x"]??.name, "Kit")
        XCTAssertNil(copy.realm)
        XCTAssertTrue(copy.dogs[0].isSameObject(as: person.dogs[0]))
    }

    func testADynamicObjectForALinkOfAnUnmanagedOne() throws {
        let (realm, person) = try filled()
        let ann = realm.dynamicObjects("Person").filter("name == 'Ann'")[0],
            dogs = realm.dynamicObjects("Dog").filter("name == 'Rex'")
        let other = Person(value: ["friend": ann, "dogs": dogs] as [String: Any])
        XCTAssertTrue(other.friend?.isSameObject(as: person) == true)
        XCTAssertEqual(other.dogs.map(\.name), ["Rex"])
        try realm.write { realm.add(other) }
        XCTAssertEqual(other.friend?.friend?.name, "Bo")
    }

    func testCreatingFromADynamicObjectOfTheSameRealmGivesOneOfTheClass() throws {
        let (realm, _) = try filled()
        let dynamic = realm.dynamicObjects("Dog").filter("name == 'Rex'")[0]
        let dog: Dog = try realm.write { realm.create(Dog.self, value: dynamic, update: .modified) }
        XCTAssertTrue(type(of: dog) == Dog.self)
        XCTAssertEqual(dog.age, 3)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        let again: DynamicObject = try realm.write { realm.dynamicCreate("Dog", value: dog, update: .all) }
        XCTAssertEqual(again.name as? String, "Rex")
        assertTraps("create from a deleted object", "Object has been deleted or invalidated")
    }

    func testClassesThatAreKnownAtRunTimeOnly() throws {
        let (realm, _) = try filled()
        let classes: [Object.Type] = [Dog.self, Person.self]
        XCTAssertEqual(classes.map { realm.objects($0).count }, [2, 2])
        for type in classes {
            let objects = realm.objects(type)
            XCTAssertTrue(objects.allSatisfy { Swift.type(of: $0) == type })
            XCTAssertTrue(Swift.type(of: objects[1]) == type)
            XCTAssertEqual(objects.filter("name != ''").sorted(byKeyPath: "name").count, 2)
            XCTAssertTrue(objects.sorted(byKeyPath: "name").last?.realm == realm)
        }
        try realm.write {
            XCTAssertTrue(type(of: realm.create(classes[0], value: ["name": "Max"])) == Dog.self)
            for type in classes { realm.delete(realm.objects(type)) }
        }
        XCTAssertTrue(realm.isEmpty)
    }

    func testAnUnmanagedObjectOfAClassThatIsKnownAtRunTimeOnly() {
        func make<T: Object>(_ type: T.Type) -> T { type.unmanaged() }
        let dog = make(Dog.self)
        XCTAssertTrue(type(of: dog) == Dog.self)
        XCTAssertEqual(dog.name, "")
        XCTAssertNil(dog.realm)
        XCTAssertTrue(type(of: make(Derived.self)) == Derived.self)
        XCTAssertEqual(make(Derived.self).notStored, 5)
    }
}
