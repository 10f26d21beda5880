import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Objects of a Realm are changed.
final class UpdateFeatureTests: RealmTestCase {
    func testF226_F227_aPropertyIsAssignedOrSetByName() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["name": "Ann", "friend": ["name": "Bo"]] as [String: Any])
        try realm.write {
            realm.add(ann)
            ann.name = "Eve"
            ann.age += 5
            ann.setValue("Bob", forKeyPath: "friend.name")
            ann.setValue(["city": "York"], forKey: "address")
            ann["anything"] = 5
        }
        XCTAssertEqual(ann.name, "Eve")
        XCTAssertEqual(ann.age, 5)
        XCTAssertEqual(ann.friend?.name, "Bob")
        XCTAssertEqual(ann.address?.city, "York")
        XCTAssertEqual(ann.anything, .int(5))
        XCTAssertEqual(ann.value(forKeyPath: "address.city") as? String, "York")
        XCTAssertEqual(ann.value(forKey: "age") as? Int, 5)
    }

    func testF228_F434_aValueOfAllElements() throws {
        let realm = try makeRealm()
        try realm.write {
            for (name, age) in [("a", 1), ("b", 2), ("c", 3)] {
                realm.create(Person.self, value: ["name": name, "age": age, "dogs": [["name": "d" + name]]] as [String: Any])
            }
        }
        let people = realm.objects(Person.self)
        try realm.write {
            people.setValue(9, forKey: "age")
            people.filter("name == 'a'").setValue("z", forKey: "name")
            people[1].dogs.setValue(4, forKey: "age")
        }
        try realm.write {
            people[0].friend = people[1]
            // Who has no friend stays as he is.
            people.setValue(21, forKeyPath: "friend.age")
            people[2].dogs.setValue("dx", forKeyPath: "name")
        }
        XCTAssertEqual(people.value(forKey: "age") as? [Int], [9, 21, 9])
        XCTAssertEqual(people[2].dogs[0].name, "dx")
        try realm.write { people[1].age = 9 }
        XCTAssertEqual(people.value(forKey: "age") as? [Int], [9, 9, 9])
        XCTAssertEqual(people.value(forKey: "name") as? [String], ["z", "b", "c"])
        XCTAssertEqual((people.value(forKey: "self") as? [Person])?.count, 3)
        XCTAssertEqual(realm.objects(Dog.self).filter("age == 4").count, 1)
        XCTAssertEqual(people.value(forKeyPath: "@count") as? Int, 3)
        XCTAssertEqual(people.value(forKeyPath: "@sum.age") as? Int, 27)
        let names = people[0].dogs.value(forKey: "name")
        XCTAssertEqual(names as? [String], ["da"])
    }

    func testF229_F230_insertOrUpdate() throws {
        let realm = try makeRealm()
        let id = ObjectId.generate()
        func dog(_ name: String, _ age: Int) -> Dog {
            let dog = Dog(name: name, age: age)
            dog.id = id
            return dog
        }
        try realm.write { realm.add(dog("Rex", 1), update: .modified) }
        try realm.write { realm.add(dog("Max", 2), update: .all) }
        XCTAssertEqual(realm.objects(Dog.self).map { "\($0.name)\($0.age)" }, ["Max2"])
        try realm.write { realm.create(Dog.self, value: ["id": id, "age": 3] as [String: Any], update: .all) }
        XCTAssertEqual(realm.objects(Dog.self).map { "\($0.name)\($0.age)" }, ["Max3"])
        let updated = dog("Kit", 9)
        try realm.write { realm.add([updated, Dog(name: "new")], update: .modified) }
        XCTAssertEqual(updated.realm, realm)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        XCTAssertEqual(realm.object(ofType: Dog.self, forPrimaryKey: id)?.name, "Kit")
        // Linked objects follow the policy too.
        let owner = Owner(value: ["id": 1])
        owner.dog = dog("Zed", 4)
        try realm.write { realm.add(owner, update: .modified) }
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        XCTAssertEqual(realm.object(ofType: Dog.self, forPrimaryKey: id)?.name, "Zed")
    }

    func testF231_nilReplacesAValueButAbsenceDoesNot() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(
                Venue.self,
                value: [
                    "id": "1", "name": "x", "verified": true, "contact": ["phone": "5"], "location": ["lat": 1.0],
                    "categories": ["c"],
                ] as [String: Any])
            realm.create(
                Venue.self, value: ["id": "1", "verified": NSNull(), "contact": NSNull()] as [String: Any], update: .modified)
        }
        let venue = realm.objects(Venue.self)[0]
        XCTAssertNil(venue.verified)
        XCTAssertNil(venue.contact)
        XCTAssertEqual(venue.name, "x")
        XCTAssertEqual(venue.location?.lat, 1)
        try realm.write {
            realm.create(
                Venue.self, value: ["id": "1", "categories": NSNull(), "location": NSNull()] as [String: Any], update: .all)
        }
        XCTAssertEqual(venue.categories.count, 0)
        XCTAssertNil(venue.location)
    }

    func testF232_F247_mapsChange() throws {
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "k", "intMap": ["a": 1, "b": 2, "c": 3]] as [String: Any]), ann = Person()
        try realm.write {
            realm.add(object)
            realm.add(ann)
            object.intMap["a"] = 10
            object.intMap["d"] = 4
            object.intMap["b"] = nil
            object.intMap.removeObject(for: "c")
            object.intMap.setValue(5, forKey: "e")
            ann.pets["x"] = Dog(name: "Rex")
        }
        XCTAssertEqual(Dictionary(uniqueKeysWithValues: object.intMap.map { ($0.key, $0.value) }), ["a": 10, "d": 4, "e": 5])
        XCTAssertEqual(object.intMap.value(forKey: "e") as? Int, 5)
        try realm.write {
            ann.pets["x"] = .some(nil)
            object.intMap.removeAll()
        }
        XCTAssertEqual(ann.pets.count, 1)
        XCTAssertEqual(ann.pets["x"], .some(nil))
        XCTAssertEqual(object.intMap.count, 0)
        try realm.write { ann.pets["x"] = nil }
        XCTAssertEqual(ann.pets.count, 0)
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF233_F248_setsChange() throws {
        let realm = try makeRealm()
        let one = AllTypes(value: ["key": "1", "intSet": [1, 2, 3]] as [String: Any]),
            two = AllTypes(value: ["key": "2", "intSet": [3, 4]] as [String: Any])
        try realm.write {
            realm.add([one, two])
            one.intSet.formUnion(two.intSet)
            XCTAssertEqual(Array(one.intSet), [1, 2, 3, 4])
            one.intSet.subtract(two.intSet)
            XCTAssertEqual(Array(one.intSet), [1, 2])
            one.intSet.insert(objectsIn: [4, 7])
            one.intSet.formIntersection(two.intSet)
            XCTAssertEqual(Array(one.intSet), [4])
            one.intSet.formUnion(one.intSet)
            XCTAssertEqual(Array(one.intSet), [4])
            one.intSet.remove(9)
            one.intSet.remove(4)
            XCTAssertEqual(one.intSet.count, 0)
            two.intSet.removeAll()
            XCTAssertEqual(two.intSet.count, 0)
        }
    }

    func testF234_F249_anAnyRealmValueChangesItsType() throws {
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "k", "any": 5] as [String: Any])
        try realm.write {
            realm.add(object)
            object.any = .string("text")
            XCTAssertEqual(object.any, .string("text"))
            object.any = .fromArray([.int(1)])
            object.any.listValue?.append(.int(2))
            XCTAssertEqual(object.any.listValue?.count, 2)
            object.any = .fromDictionary(["a": .none])
            object.any.dictionaryValue?["b"] = .bool(true)
            XCTAssertEqual(object.any.dictionaryValue?.count, 2)
            object.any = .object(Owner(value: ["id": 1]))
            XCTAssertEqual(object.any.object(Owner.self)?.id, 1)
            object.any = .none
        }
        XCTAssertEqual(object.any, .none)
        XCTAssertEqual(realm.objects(Owner.self).count, 1)
    }

    func testF235_F236_embeddedObjectsChangeOrAreReplaced() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["address": ["city": "York", "street": "Main"]])
        try realm.write {
            realm.add(ann)
            ann.address?.city = "Rome"
        }
        XCTAssertEqual(ann.address?.city, "Rome")
        XCTAssertEqual(ann.address?.street, "Main")
        let old = try XCTUnwrap(ann.address)
        try realm.write { ann.address = Address(value: ["city": "Oslo"]) }
        XCTAssertTrue(old.isInvalidated)
        XCTAssertEqual(ann.address?.street, "")
        XCTAssertEqual(realm.dynamicObjects("Address").count, 1)
        try realm.write {
            ann.homes.append(objectsIn: [Address(value: ["city": "a"]), Address(value: ["city": "b"])])
            ann.homes[0] = Address(value: ["city": "c"])
        }
        XCTAssertEqual(ann.homes.map(\.city), ["c", "b"])
        XCTAssertEqual(realm.dynamicObjects("Address").count, 3)
    }

    func testF239_aListIsReordered() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": [["name": "a"], ["name": "b"], ["name": "c"]]])
        try realm.write {
            realm.add(ann)
            ann.dogs.move(from: 0, to: 2)
            XCTAssertEqual(ann.dogs.map(\.name), ["b", "c", "a"])
            ann.dogs.swapAt(0, 1)
            XCTAssertEqual(ann.dogs.map(\.name), ["c", "b", "a"])
            ann.dogs.replace(index: 1, object: Dog(name: "d"))
            ann.dogs[2] = ann.dogs[0]
        }
        XCTAssertEqual(ann.dogs.map(\.name), ["c", "d", "c"])
        XCTAssertEqual(realm.objects(Dog.self).count, 4)
    }

    func testF240_modifiedLeavesCollectionsThatAreEqual() throws {
        let realm = try makeRealm()
        let object = AllTypes(
            value: ["key": "k", "ints": [1, 2], "intSet": [3], "intMap": ["a": 1], "any": ["x": 1]] as [String: Any])
        try realm.write { realm.add(object) }
        try realm.write {
            realm.create(
                AllTypes.self,
                value: ["key": "k", "ints": [1, 2], "intSet": [3], "intMap": ["a": 1], "int": 7] as [String: Any],
                update: .modified)
        }
        XCTAssertEqual(Array(object.ints), [1, 2])
        XCTAssertEqual(Array(object.intSet), [3])
        XCTAssertEqual(object.int, 7)
        try realm.write {
            realm.create(
                AllTypes.self, value: ["key": "k", "ints": [2, 1], "intSet": [4], "intMap": ["a": 2, "b": 3]] as [String: Any],
                update: .modified)
        }
        XCTAssertEqual(Array(object.ints), [2, 1])
        XCTAssertEqual(Array(object.intSet), [4])
        XCTAssertEqual(object.intMap["b"], 3)
        XCTAssertEqual(object.int, 7)
        XCTAssertEqual(object.any.dictionaryValue?["x"], .int(1))
    }
}
