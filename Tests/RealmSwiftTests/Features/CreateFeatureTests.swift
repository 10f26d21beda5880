import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Objects come into a Realm.
final class CreateFeatureTests: RealmTestCase {
    func testF128To130_F132_createFromEveryFormOfValue() throws {
        let realm = try makeRealm()
        let id = ObjectId.generate()
        try realm.write {
            let byName = realm.create(Dog.self, value: ["name": "Rex"])
            XCTAssertEqual(byName.age, 0)
            let byPosition = realm.create(Dog.self, value: [id, "Ada", 4] as [Any])
            XCTAssertEqual(byPosition.id, id)
            XCTAssertEqual(byPosition.age, 4)
            XCTAssertEqual(realm.create(Person.self, value: ["Bo", 3] as [Any]).age, 3)
            let nested = realm.create(
                Person.self,
                value: [
                    "name": "Cy", "dogs": [["name": "Max"], byName], "address": ["city": "York"], "pets": ["p": ["name": "Kit"]],
                ] as [String: Any])
            XCTAssertEqual(nested.dogs.map(\.name), ["Max", "Rex"])
            XCTAssertEqual(nested.address?.city, "York")
            let json = try JSONSerialization.jsonObject(
                with: Data(#"{"name": "Di", "age": 7, "friend": {"name": "Ed"}, "address": null, "tags": ["x"]}"#.utf8))
            let fromJSON = realm.create(Person.self, value: json)
            XCTAssertEqual(fromJSON.friend?.name, "Ed")
            XCTAssertNil(fromJSON.address)
            XCTAssertEqual(Array(fromJSON.tags), ["x"])
            XCTAssertEqual(realm.create(Person.self).name, "")
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 4)
        XCTAssertEqual(realm.objects(Person.self).count, 5)
    }

    func testF133_aDecodedObjectIsAdded() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [CodableDog.self]))
        let dogs = try JSONDecoder().decode(
            [CodableDog].self,
            from: Data(#"[{"name": "Rex", "age": 3, "toys": ["ball"]}, {"name": "Ada", "age": 1, "toys": []}]"#.utf8))
        try realm.write { realm.add(dogs) }
        XCTAssertEqual(realm.objects(CodableDog.self).filter("ANY toys == 'ball'").map(\.name), ["Rex"])
        XCTAssertTrue(dogs[0].realm == realm)
    }

    func testF134_embeddedObjectsAreMadeWithTheirParent() throws {
        let realm = try makeRealm()
        let address = Address(value: ["city": "York"])
        try realm.write {
            let person = realm.create(Person.self, value: ["name": "Ann", "address": address] as [String: Any])
            XCTAssertEqual(person.address?.city, "York")
            person.homes.append(Address(value: ["city": "Rome"]))
            person.places["x"] = Address(value: ["city": "Oslo"])
        }
        let person = realm.objects(Person.self)[0]
        XCTAssertEqual(person.homes.first?.city, "Rome")
        XCTAssertEqual(person.places["x"]??.city, "Oslo")
        XCTAssertEqual(realm.dynamicObjects("Address").count, 3)
    }

    func testF135To137_createWithCollectionsAndAnyRealmValues() throws {
        let realm = try makeRealm()
        let object = try realm.write {
            realm.create(
                AllTypes.self,
                value: [
                    "key": "k", "intMap": ["a": 1], "intSet": [2, 2, 3], "stringSet": ["x"], "any": 5,
                    "anys": [1, "s", NSNull(), true, 2.5] as [Any],
                    "anyMap": ["d": ["e": 1]],
                ] as [String: Any])
        }
        XCTAssertEqual(object.intMap["a"], 1)
        XCTAssertEqual(Array(object.intSet), [2, 3])
        XCTAssertEqual(object.any, .int(5))
        XCTAssertEqual(Array(object.anys), [.int(1), .string("s"), .none, .bool(true), .double(2.5)])
        XCTAssertEqual(object.anyMap["d"]?.dictionaryValue?["e"], .int(1))
        try realm.write {
            object.intMap.updateValue(4, forKey: "b")
            object.intSet.insert(9)
            object.any = .string("t")
        }
        XCTAssertEqual(object.intMap.count, 2)
        XCTAssertEqual(object.intSet.count, 3)
        XCTAssertEqual(object.any.stringValue, "t")
    }

    func testF139_aCopyInAnotherRealm() throws {
        let scratch = ScratchDirectory()
        let first = try makeRealm(), second = try makeFileRealm(scratch)
        let ann = Person(
            value: [
                "name": "Ann", "dogs": [["name": "Rex", "age": 2]], "address": ["city": "York"], "tags": ["t"],
                "anything": ["x": 1],
            ] as [String: Any])
        try first.write {
            first.add(ann)
            ann.friend = ann
        }
        let copy = try second.write { second.create(Person.self, value: ann) }
        XCTAssertEqual(copy.realm, second)
        XCTAssertEqual(copy.name, "Ann")
        XCTAssertEqual(copy.dogs.first?.id, ann.dogs.first?.id)
        XCTAssertEqual(copy.address?.city, "York")
        XCTAssertEqual(copy.friend?.isSameObject(as: copy), true)
        XCTAssertEqual(Array(copy.tags), ["t"])
        XCTAssertEqual(copy.anything.dictionaryValue?["x"], .int(1))
        XCTAssertEqual(second.objects(Person.self).count, 1)
        XCTAssertFalse(copy.isSameObject(as: ann))
        let again = try second.write { second.create(Dog.self, value: ann.dogs[0], update: .modified) }
        XCTAssertEqual(again.name, "Rex")
        XCTAssertEqual(second.objects(Dog.self).count, 1)
        XCTAssertEqual(first.objects(Dog.self).count, 1)
    }

    func testF140_F403_oneObjectOrManyAreAdded() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.add(Dog(name: "a"))
            realm.add([Dog(name: "b"), Dog(name: "c")])
            realm.add((0..<3).lazy.map { Dog(name: "\($0)") })
            realm.add(Set([Dog(name: "d")]))
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 7)
    }

    func testAnObjectOfThisRealmIsCopiedOrReturned() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["name": "Ann", "dogs": [["name": "Rex"]]] as [String: Any])
        try realm.write {
            realm.add(ann)
            let copy = realm.create(Person.self, value: ann)
            XCTAssertFalse(copy.isSameObject(as: ann))
            XCTAssertEqual(copy.dogs.first, ann.dogs.first)
            let dog = ann.dogs[0]
            XCTAssertTrue(realm.create(Dog.self, value: dog, update: .modified).isSameObject(as: dog))
        }
        XCTAssertEqual(realm.objects(Person.self).count, 2)
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF143_F144_unmanagedObjectsAreUsedBeforeAndAfterTheyAreAdded() throws {
        let realm = try makeRealm()
        let ann = Person()
        ann.name = "Ann"
        ann.dogs.append(Dog(name: "Rex"))
        let list = ann.dogs
        XCTAssertNil(ann.realm)
        try realm.write { realm.add(ann) }
        XCTAssertEqual(ann.realm, realm)
        XCTAssertTrue(ann.dogs === list)
        try realm.write { list.append(Dog(name: "Ada")) }
        XCTAssertEqual(realm.objects(Person.self)[0].dogs.count, 2)
        XCTAssertEqual(list.realm, realm)
    }
}
