import Foundation
import RealmSwiftTestModels
import XCTest

@testable import RealmSwift

/// Links, lists of objects, embedded objects.
final class RelationshipTests: RealmTestCase {
    func testF078_toOneLinkIsSetReadAndCleared() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex"), ann = Person(value: ["name": "Ann"])
        try realm.write {
            realm.add(dog)
            dog.owner = ann
        }
        XCTAssertEqual(dog.owner?.name, "Ann")
        XCTAssertEqual(ann.realm, realm)
        XCTAssertEqual(realm.objects(Dog.self)[0].owner?.isSameObject(as: ann), true)
        try realm.write { dog.owner = nil }
        XCTAssertNil(dog.owner)
        XCTAssertEqual(realm.objects(Person.self).count, 1)
    }

    func testF079_aListKeepsOrderAndDuplicates() throws {
        let realm = try makeRealm()
        let ann = Person(), rex = Dog(name: "Rex"), ada = Dog(name: "Ada")
        try realm.write {
            realm.add(ann)
            ann.dogs.append(objectsIn: [rex, ada, rex])
        }
        XCTAssertEqual(ann.dogs.map(\.name), ["Rex", "Ada", "Rex"])
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        XCTAssertEqual(rex.fans.count, 2)
        try realm.write { ann.dogs.remove(at: 0) }
        XCTAssertEqual(ann.dogs.map(\.name), ["Ada", "Rex"])
    }

    func testF082_F084_F085_embeddedObjectsOfEveryDepthEndWithTheirParent() throws {
        let realm = try makeRealm()
        let ann = Person()
        ann.address = Address(value: ["city": "York", "country": ["name": "UK"]] as [String: Any])
        try realm.write { realm.add(ann) }
        let read = realm.objects(Person.self)[0]
        XCTAssertEqual(read.address?.city, "York")
        XCTAssertEqual(read.address?.country?.name, "UK")
        XCTAssertEqual(realm.dynamicObjects("Address").count, 1)
        try realm.write { read.address?.country?.name = "England" }
        XCTAssertEqual(ann.address?.country?.name, "England")
        try realm.write { realm.delete(ann) }
        XCTAssertEqual(realm.dynamicObjects("Address").count, 0)
        XCTAssertEqual(realm.dynamicObjects("Country").count, 0)
    }

    func testF087_listsAndSetsOfOptionalObjectsAreRefused() {
        let problems = ModelSchema.validate(
            [Nullable.self, Dog.self, Person.self, Address.self, Country.self].map { ClassInfo.of($0) })
        XCTAssertEqual(problems.count, 2, "\(problems)")
        XCTAssertTrue(problems.contains { $0.contains("Nullable.list") } && problems.contains { $0.contains("Nullable.set") })
    }

    func testF088_F167_aQueryAcrossARelationship() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(
                Person.self,
                value: ["name": "Ann", "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "age": 9]]] as [String: Any])
            realm.create(
                Person.self,
                value: ["name": "Bo", "dogs": [["name": "Max", "age": 2]], "friend": ["name": "Cy"]] as [String: Any])
        }
        let people = realm.objects(Person.self)
        XCTAssertEqual(people.filter("dogs.name == 'Max'").map(\.name), ["Bo"])
        XCTAssertEqual(people.where { $0.dogs.age > 5 }.map(\.name), ["Ann"])
        XCTAssertEqual(people.where { $0.friend.name == "Cy" }.map(\.name), ["Bo"])
        XCTAssertEqual(people.filter("friend != nil").map(\.name), ["Bo"])
    }

    func testF089_linksToADeletedObjectAreGone() throws {
        let realm = try makeRealm()
        let ann = Person(), rex = Dog(name: "Rex"), other = Dog(name: "Ada")
        try realm.write {
            realm.add(ann)
            ann.dogs.append(objectsIn: [rex, other, rex])
            other.owner = ann
            ann.anything = .object(rex)
            ann.pets["a"] = rex
            ann.friend = ann
            realm.delete(rex)
        }
        XCTAssertEqual(ann.dogs.map(\.name), ["Ada"])
        XCTAssertEqual(ann.anything, .none)
        XCTAssertEqual(ann.pets["a"], .some(nil))
        XCTAssertEqual(ann.pets.keys, ["a"])
        try realm.write { realm.delete(ann) }
        XCTAssertNil(other.owner)
    }

    func testF117_collectionsAreProperties() throws {
        let realm = try makeRealm()
        let ann = Person()
        try realm.write { realm.add(ann) }
        let dogs: List<Dog> = ann.dogs
        let tags: MutableSet<String> = ann.tags
        let pets: Map<String, Dog?> = ann.pets
        try realm.write {
            dogs.append(Dog(name: "Rex"))
            tags.insert("x")
            pets["p"] = dogs[0]
        }
        let fans: LinkingObjects<Person> = dogs[0].fans
        XCTAssertEqual(fans.count, 1)
        XCTAssertEqual(ann.tags.count, 1)
        XCTAssertEqual(ann.pets["p"]??.name, "Rex")
    }

    func testSelfAssignmentOfACollectionChangesNothing() throws {
        let realm = try makeRealm()
        let ann = Person(), bo = Person()
        try realm.write {
            realm.add([ann, bo])
            ann.dogs.append(objectsIn: [Dog(name: "Rex"), Dog(name: "Ada")])
            ann.dogs = ann.dogs
            bo.dogs = ann.dogs
        }
        XCTAssertEqual(ann.dogs.map(\.name), ["Rex", "Ada"])
        XCTAssertEqual(bo.dogs.map(\.name), ["Rex", "Ada"])
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
    }
}

private class Nullable: Object {
    @Persisted var list: List<Dog?>
    @Persisted var set: MutableSet<Dog?>
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
