import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Objects in a Realm: created, read, linked, changed and deleted.
final class ManagedObjectTests: RealmTestCase {
    func testF127_anObjectIsCreatedInAWriteTransaction() throws {
        let realm = try makeRealm()
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex", "age": 3] as [String: Any]) }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertEqual(dog.age, 3)
        XCTAssertEqual(realm.objects(Dog.self).first?.id, dog.id)
        XCTAssertNotNil(dog.realm)
    }

    func testF143_anAddedInstanceBecomesManaged() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex", age: 2)
        let id = dog.id
        XCTAssertNil(dog.realm)
        try realm.write { realm.add(dog) }
        XCTAssertEqual(dog.realm, realm)
        XCTAssertEqual(dog.id, id)
        XCTAssertEqual(dog.name, "Rex")
        try realm.write { dog.age += 1 }
        XCTAssertEqual(dog.age, 3)
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 3)
    }

    func testF002_twoAccessorsOfOneObjectSeeEachOther() throws {
        let realm = try makeRealm()
        try realm.write { realm.add(Dog(name: "a")) }
        let one = realm.objects(Dog.self)[0], two = realm.objects(Dog.self)[0]
        XCTAssertFalse(one === two)
        XCTAssertEqual(one, two)
        try realm.write {
            one.name = "Wolfie"
            XCTAssertEqual(two.name, "Wolfie")
        }
        XCTAssertEqual(two.name, "Wolfie")
        XCTAssertTrue(one.isSameObject(as: two))
    }

    func testF141_linkedObjectsAreAddedToo() throws {
        let realm = try makeRealm()
        let person = Person(
            value: [
                "name": "Ann", "dogs": [["name": "Rex"], ["name": "Ada"]], "friend": ["name": "Bo"],
                "pets": ["p": ["name": "Kit"]],
            ] as [String: Any])
        try realm.write { realm.add(person) }
        XCTAssertEqual(realm.objects(Dog.self).count, 3)
        XCTAssertEqual(realm.objects(Person.self).count, 2)
        XCTAssertEqual(person.dogs.map(\.name), ["Rex", "Ada"])
        XCTAssertEqual(person.friend?.name, "Bo")
        XCTAssertEqual(person.pets["p"]??.name, "Kit")
    }

    func testF086_aCycleOfLinksIsAdded() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex"), person = Person()
        dog.owner = person
        person.dogs.append(dog)
        person.friend = person
        try realm.write { realm.add(dog) }
        XCTAssertEqual(dog.owner?.dogs.first?.name, "Rex")
        XCTAssertEqual(person.friend?.isSameObject(as: person), true)
        XCTAssertEqual(realm.objects(Person.self).count, 1)
    }

    func testF142_addingAManagedObjectAgainChangesNothing() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex")
        try realm.write {
            realm.add(dog)
            realm.add(dog)
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF080_inverseRelationships() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex")
        let ann = Person(value: ["name": "Ann"]), bo = Person(value: ["name": "Bo"])
        try realm.write {
            realm.add([ann, bo])
            ann.dogs.append(dog)
            bo.dogs.append(dog)
            bo.dogs.append(dog)
        }
        XCTAssertEqual(dog.fans.map(\.name).sorted(), ["Ann", "Bo", "Bo"])
        try realm.write { bo.dogs.removeAll() }
        XCTAssertEqual(dog.fans.map(\.name), ["Ann"])
        try realm.write { realm.delete(ann) }
        XCTAssertEqual(dog.fans.count, 0)
    }

    func testF090To100_everyTypeComesBack() throws {
        let realm = try makeRealm()
        let date = Date(timeIntervalSinceReferenceDate: 7e8 + 0.123456), id = ObjectId.generate(), uuid = UUID()
        let object = AllTypes()
        object.key = "k"
        object.bool = true
        object.int = .min
        object.int8 = -128
        object.int16 = .max
        object.int32 = .min
        object.int64 = .max
        object.float = .infinity
        object.double = -0.1
        object.string = "e\u{301}👩‍👩‍👧 \0 end"
        object.data = Data([0, 255, 1])
        object.date = date
        object.objectId = id
        object.uuid = uuid
        object.decimal = "9.999999999999999999999999999999999E+6144"
        object.any = .decimal128("1.50")
        object.size = .large
        object.level = .high
        object.optBool = true
        object.optInt8 = 5
        object.optString = ""
        object.optData = Data()
        object.optDate = date
        object.optUuid = uuid
        object.optDecimal = 0
        object.optSize = .medium
        object.ints.append(objectsIn: [3, 1, 3])
        object.bools.append(objectsIn: [true, false])
        object.floats.append(1.5)
        object.doubles.append(2.5)
        object.strings.append(objectsIn: ["b", "", "a"])
        object.datas.append(Data([1]))
        object.dates.append(date)
        object.objectIds.append(id)
        object.uuids.append(uuid)
        object.decimals.append(1.25)
        object.anys.append(objectsIn: [.int(1), .none, .string("x")])
        object.sizes.append(objectsIn: [.large, .small])
        object.optInts.append(objectsIn: [1, nil])
        object.optStrings.append(objectsIn: [nil, ""])
        object.intSet.insert(objectsIn: [3, 1, 2])
        object.stringSet.insert(objectsIn: ["x", "y"])
        object.anySet.insert(objectsIn: [.int(1), .string("1")])
        object.intMap["a"] = 1
        object.optStringMap["n"] = .some(nil)
        object.anyMap["m"] = .bool(true)
        try realm.write { realm.add(object) }

        let read = try XCTUnwrap(realm.object(ofType: AllTypes.self, forPrimaryKey: "k"))
        XCTAssertFalse(read === object)
        for object in [object, read] {
            XCTAssertEqual(object.bool, true)
            XCTAssertEqual(object.int, .min)
            XCTAssertEqual(object.int8, -128)
            XCTAssertEqual(object.int16, .max)
            XCTAssertEqual(object.int32, .min)
            XCTAssertEqual(object.int64, .max)
            XCTAssertEqual(object.float, .infinity)
            XCTAssertEqual(object.double, -0.1)
            XCTAssertEqual(Array(object.string.unicodeScalars), Array("e\u{301}👩‍👩‍👧 \0 end".unicodeScalars))
            XCTAssertEqual(object.data, Data([0, 255, 1]))
            XCTAssertEqual(object.date, date)
            XCTAssertEqual(object.objectId, id)
            XCTAssertEqual(object.uuid, uuid)
            XCTAssertEqual(object.decimal, .max)
            XCTAssertEqual(object.any.decimal128Value?.stringValue, "1.50")
            XCTAssertEqual(object.size, .large)
            XCTAssertEqual(object.level, .high)
            XCTAssertEqual(object.optBool, true)
            XCTAssertNil(object.optInt)
            XCTAssertEqual(object.optInt8, 5)
            XCTAssertNil(object.optInt16)
            XCTAssertEqual(object.optString, "")
            XCTAssertEqual(object.optData, Data())
            XCTAssertEqual(object.optDate, date)
            XCTAssertNil(object.optObjectId)
            XCTAssertEqual(object.optUuid, uuid)
            XCTAssertEqual(object.optDecimal, 0)
            XCTAssertEqual(object.optSize, .medium)
            XCTAssertEqual(Array(object.ints), [3, 1, 3])
            XCTAssertEqual(Array(object.bools), [true, false])
            XCTAssertEqual(Array(object.floats), [1.5])
            XCTAssertEqual(Array(object.doubles), [2.5])
            XCTAssertEqual(Array(object.strings), ["b", "", "a"])
            XCTAssertEqual(Array(object.datas), [Data([1])])
            XCTAssertEqual(Array(object.dates), [date])
            XCTAssertEqual(Array(object.objectIds), [id])
            XCTAssertEqual(Array(object.uuids), [uuid])
            XCTAssertEqual(Array(object.decimals), [1.25])
            XCTAssertEqual(Array(object.anys), [.int(1), .none, .string("x")])
            XCTAssertEqual(Array(object.sizes), [.large, .small])
            XCTAssertEqual(Array(object.optInts), [1, nil])
            XCTAssertEqual(Array(object.optStrings), [nil, ""])
            XCTAssertEqual(Array(object.intSet), [1, 2, 3])
            XCTAssertEqual(Set(object.stringSet), ["x", "y"])
            XCTAssertEqual(object.anySet.count, 2)
            XCTAssertTrue(object.anySet.contains(.double(1)))
            XCTAssertEqual(object.intMap["a"], 1)
            XCTAssertEqual(object.optStringMap["n"], .some(nil))
            XCTAssertTrue(object.optStringMap["z"] == nil)
            XCTAssertEqual(object.anyMap["m"], .bool(true))
        }
    }

    func testF092_notANumberComesBack() throws {
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "n", "float": Float.nan, "double": Double.nan] as [String: Any])
        try realm.write { realm.add(object) }
        XCTAssertTrue(object.float.isNaN)
        XCTAssertTrue(object.double.isNaN)
    }

    func testF108_collectionsInAnyRealmValueAreLive() throws {
        let realm = try makeRealm()
        let object = AllTypes()
        object.any = .fromDictionary(["list": .fromArray([.int(1), .fromDictionary(["deep": .string("x")])]), "n": .none])
        try realm.write { realm.add(object) }
        let map = try XCTUnwrap(object.any.dictionaryValue)
        XCTAssertEqual(map.count, 2)
        let list = try XCTUnwrap(map["list"]?.listValue)
        XCTAssertEqual(list[0], .int(1))
        let deep = try XCTUnwrap(list[1].dictionaryValue)
        XCTAssertEqual(deep["deep"], .string("x"))
        try realm.write {
            list.insert(.int(0), at: 0)
            deep["deep"] = .string("changed")
            deep["more"] = .fromArray([.bool(true)])
        }
        XCTAssertEqual(object.any.dictionaryValue?["list"]?.listValue?[2].dictionaryValue?["deep"], .string("changed"))
        XCTAssertEqual(deep["more"]?.listValue?.first, .bool(true))
        try realm.write { object.any = .fromArray([.int(5)]) }
        XCTAssertTrue(deep.isInvalidated)
        XCTAssertEqual(object.any.listValue.map { Array($0) }, [.int(5)])
        try realm.write { object.any = .object(Dog(name: "Rex")) }
        XCTAssertEqual(object.any.object(Dog.self)?.name, "Rex")
        XCTAssertEqual(object.any.dynamicObject?.name as? String, "Rex")
    }

    func testF083_embeddedObjectsLiveInTheirParent() throws {
        let realm = try makeRealm()
        let person = Person()
        person.address = Address(value: ["city": "York", "country": ["name": "UK"]] as [String: Any])
        try realm.write {
            realm.add(person)
            person.homes.append(Address(value: ["city": "Rome"]))
            person.homes.insert(Address(value: ["city": "Oslo"]), at: 0)
            person.places["a"] = Address(value: ["city": "Bern"])
        }
        XCTAssertEqual(person.address?.country?.name, "UK")
        XCTAssertEqual(person.homes.map(\.city), ["Oslo", "Rome"])
        XCTAssertEqual(person.places["a"]??.city, "Bern")
        XCTAssertEqual(realm.dynamicObjects("Address").count, 4)
        let old = try XCTUnwrap(person.address)
        try realm.write { person.address = Address(value: ["city": "Paris"]) }
        XCTAssertTrue(old.isInvalidated)
        XCTAssertEqual(person.address?.city, "Paris")
        XCTAssertEqual(realm.dynamicObjects("Country").count, 0)
        try realm.write {
            person.homes.remove(at: 0)
            person.places.removeAll()
            person.address = nil
        }
        XCTAssertEqual(realm.dynamicObjects("Address").count, 1)
        try realm.write { realm.delete(person) }
        XCTAssertEqual(realm.dynamicObjects("Address").count, 0)
    }

    func testF122_mappedTypesInTheFile() throws {
        let realm = try makeRealm()
        let object = Mapped()
        object.temperature = Celsius(degrees: 20)
        object.place = Point(x: 1, y: 2)
        object.url = URL(string: "https://a.b")
        object.urls.append(objectsIn: [try XCTUnwrap(URL(string: "https://c.d"))])
        object.urlsByName["x"] = URL(string: "https://e.f")
        try realm.write { realm.add(object) }
        let read = realm.objects(Mapped.self)[0]
        XCTAssertEqual(read.temperature.degrees, 20)
        XCTAssertEqual(read.place.y, 2)
        XCTAssertNil(read.optPlace)
        XCTAssertEqual(read.url?.host, "a.b")
        XCTAssertEqual(read.urls[0].host, "c.d")
        XCTAssertEqual(read.urlsByName["x"]?.host, "e.f")
        try realm.write {
            read.place = Point(x: 5, y: 6)
            read.optPlace = Point(x: 7, y: 8)
        }
        XCTAssertEqual(object.place.x, 5)
        XCTAssertEqual(object.optPlace?.y, 8)
    }

    func testF229_upsertByPrimaryKey() throws {
        let realm = try makeRealm()
        let id = ObjectId.generate()
        try realm.write {
            realm.create(Dog.self, value: ["id": id, "name": "Rex", "age": 1] as [String: Any])
            realm.create(Dog.self, value: ["id": id, "age": 2] as [String: Any], update: .modified)
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertEqual(realm.objects(Dog.self)[0].name, "Rex")
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 2)
        let dog = Dog(name: "Ada")
        dog.id = id
        try realm.write { realm.add(dog, update: .all) }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertEqual(realm.objects(Dog.self)[0].name, "Ada")
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 0)
    }

    func testF231_nilInAnUpsertSetsNil() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(AllTypes.self, value: ["key": "k", "optInt": 5, "optString": "s"] as [String: Any])
            realm.create(AllTypes.self, value: ["key": "k", "optInt": NSNull()] as [String: Any], update: .modified)
        }
        XCTAssertNil(realm.objects(AllTypes.self)[0].optInt)
        XCTAssertEqual(realm.objects(AllTypes.self)[0].optString, "s")
    }

    func testF230_nestedUpsertsLeaveWhatIsNotMentioned() throws {
        let realm = try makeRealm()
        let id = ObjectId.generate()
        try realm.write {
            realm.create(Dog.self, value: ["id": id, "name": "Rex", "age": 7] as [String: Any])
            realm.create(
                Owner.self, value: ["id": 1, "dog": ["id": id, "name": "Max"] as [String: Any]] as [String: Any],
                update: .modified)
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        XCTAssertEqual(realm.objects(Owner.self)[0].dog?.name, "Max")
        XCTAssertEqual(realm.objects(Dog.self)[0].age, 7)
    }

    func testF241_deletedObjectsAreInvalid() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex"), person = Person()
        try realm.write {
            realm.add(person)
            person.dogs.append(dog)
            dog.owner = person
            person.pets["x"] = dog
            realm.delete(dog)
        }
        XCTAssertTrue(dog.isInvalidated)
        XCTAssertNil(dog.realm)
        XCTAssertEqual(person.dogs.count, 0)
        XCTAssertEqual(person.pets.count, 1)
        XCTAssertEqual(person.pets["x"], .some(nil))
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
    }

    func testF149_aRollbackInvalidatesWhatWasCreated() throws {
        let realm = try makeRealm()
        let old = Dog(name: "old")
        try realm.write { realm.add(old) }
        let new = Dog(name: "new")
        realm.beginWrite()
        realm.add(new)
        realm.delete(old)
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        realm.cancelWrite()
        XCTAssertTrue(new.isInvalidated)
        XCTAssertTrue(old.isInvalidated)
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["old"])
    }

    func testF147_anErrorInTheBlockUndoesIt() throws {
        struct Stop: Error {}
        let realm = try makeRealm()
        XCTAssertThrowsError(
            try realm.write {
                realm.add(Dog(name: "x"))
                throw Stop()
            }
        ) { XCTAssertTrue($0 is Stop) }
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
        XCTAssertEqual(try realm.write { 5 }, 5)
    }

    func testF242_manyObjectsAreDeleted() throws {
        let realm = try makeRealm()
        let person = Person()
        try realm.write {
            realm.add(person)
            person.dogs.append(objectsIn: (0..<10).map { Dog(name: "\($0)") })
            person.pets["a"] = person.dogs[0]
            realm.delete(person.pets)
            realm.delete([person.dogs[0], person.dogs[1]])
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 7)
        try realm.write { realm.delete(person.dogs) }
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
        XCTAssertEqual(person.dogs.count, 0)
        try realm.write { realm.deleteAll() }
        XCTAssertTrue(realm.isEmpty)
    }

    func testF425_aManagedListKeepsItsOrder() throws {
        let realm = try makeRealm()
        let object = AllTypes()
        try realm.write {
            realm.add(object)
            let list = object.ints
            list.append(objectsIn: [1, 2, 3, 4, 5])
            list.insert(0, at: 0)
            list.move(from: 0, to: 5)
            XCTAssertEqual(Array(list), [1, 2, 3, 4, 5, 0])
            list.swapAt(0, 5)
            list[1] = 9
            list.remove(at: 2)
            list.removeFirst()
            list.removeLast(2)
            XCTAssertEqual(Array(list), [9, 4])
            list.replaceSubrange(0..<1, with: [7, 8])
            XCTAssertEqual(Array(list), [7, 8, 4])
        }
        XCTAssertTrue(object.ints === object.ints)
        XCTAssertEqual(object.ints.first, 7)
        try realm.write { object.ints = List() }
        XCTAssertEqual(object.ints.count, 0)
    }

    func testF233_aManagedSetChanges() throws {
        let realm = try makeRealm()
        let object = AllTypes()
        try realm.write {
            realm.add(object)
            object.intSet.insert(objectsIn: [5, 1, 5])
            let other = MutableSet<Int>()
            other.insert(objectsIn: [1, 2])
            object.intSet.formUnion(other)
            XCTAssertEqual(Array(object.intSet), [1, 2, 5])
            object.intSet.formIntersection(other)
            object.intSet.remove(2)
        }
        XCTAssertEqual(Array(object.intSet), [1])
    }

    func testF163_findByPrimaryKey() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex")
        try realm.write { realm.add(dog) }
        XCTAssertEqual(realm.object(ofType: Dog.self, forPrimaryKey: dog.id)?.name, "Rex")
        XCTAssertNil(realm.object(ofType: Dog.self, forPrimaryKey: ObjectId.generate()))
        XCTAssertEqual(realm.dynamicObject(ofType: "Dog", forPrimaryKey: dog.id)?.name as? String, "Rex")
    }

    func testF048_subclassObjectsAreNotAmongThoseOfTheBase() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.add(Derived(value: ["title": "d", "subtitle": "s"]))
            realm.add(Base(value: ["title": "b"]))
        }
        XCTAssertEqual(realm.objects(Base.self).map(\.title), ["b"])
        let derived = realm.objects(Derived.self)[0]
        XCTAssertEqual(derived.title, "d")
        XCTAssertEqual(derived.notStored, 5)
        XCTAssertEqual(derived.lazily, "computed once")
        XCTAssertEqual(derived.computed, "ds")
    }

    func testF436_objectsDeletedDuringAnIterationAreNotSkipped() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 0..<20 { realm.add(Dog(name: "\(i)", age: i)) }
            var seen = 0
            for dog in realm.objects(Dog.self) {
                seen += 1
                if dog.age % 2 == 0 { realm.delete(dog) }
            }
            XCTAssertEqual(seen, 20)
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 10)
    }

    func testF439_managedObjectsByName() throws {
        let realm = try makeRealm()
        let person = Person()
        try realm.write {
            realm.add(person)
            person["name"] = "Ann"
            person["dogs"] = [["name": "Rex"]]
            person.setValue(["a", "b"], forKey: "tags")
            person.setValue(["x": ["city": "Rome"]], forKey: "places")
        }
        XCTAssertEqual(person["name"] as? String, "Ann")
        XCTAssertEqual(person.dogs[0].name, "Rex")
        XCTAssertEqual(person.tags.count, 2)
        XCTAssertEqual(person.places["x"]??.city, "Rome")
        let dynamic = try XCTUnwrap(realm.dynamicObjects("Person").first)
        XCTAssertEqual(dynamic.name as? String, "Ann")
        XCTAssertEqual((dynamic.dogs as? List<DynamicObject>)?.first?.name as? String, "Rex")
        XCTAssertEqual(dynamic.dynamicList("dogs").count, 1)
        try realm.write {
            dynamic.age = 44
            realm.dynamicCreate("Dog", value: ["name": "Dyn"])
        }
        XCTAssertEqual(person.age, 44)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
    }

    func testF299_frozenObjectsDoNotChange() throws {
        let realm = try makeRealm()
        let person = Person(value: ["name": "Ann", "dogs": [["name": "Rex"]], "tags": ["t"]] as [String: Any])
        try realm.write { realm.add(person) }
        let frozen = person.freeze(), results = realm.objects(Dog.self).freeze(), list = person.dogs.freeze()
        try realm.write {
            person.name = "Bo"
            realm.delete(person.dogs)
        }
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertEqual(frozen.name, "Ann")
        XCTAssertEqual(frozen.dogs.map(\.name), ["Rex"])
        XCTAssertEqual(results.map(\.name), ["Rex"])
        XCTAssertEqual(list.first?.name, "Rex")
        XCTAssertEqual(list.freeze(), list)
        XCTAssertEqual(frozen.thaw()?.name, "Bo")
        XCTAssertNil(results.first?.thaw())
        let read = UnsafeSharing(frozen)
        let done = expectation(description: "read on another thread")
        Thread.detachNewThread {
            XCTAssertEqual(read.value.name, "Ann")
            XCTAssertEqual(read.value.dogs.first?.name, "Rex")
            done.fulfill()
        }
        wait(for: [done], timeout: TestTime.limit(10))
    }

    func testF071_aRenamedPropertyIsStoredUnderItsColumn() throws {
        let realm = try makeRealm()
        try realm.write { realm.add(Renamed(value: ["firstName": "Ann"])) }
        XCTAssertEqual(realm.objects(Renamed.self)[0].firstName, "Ann")
        XCTAssertEqual(realm.schema["Renamed"]?["firstName"]?.columnName, "first_name")
    }

    func testF440_managedObjectsDescribeThemselves() throws {
        let realm = try makeRealm()
        let person = Person(value: ["name": "Ann", "dogs": [["name": "Rex"]]] as [String: Any])
        try realm.write { realm.add(person) }
        XCTAssertTrue(person.description.contains("name = Ann;"))
        XCTAssertTrue(person.description.contains("name = Rex;"))
        XCTAssertTrue(realm.objects(Dog.self).description.hasPrefix("Results<Dog>"))
    }
}

/// Frozen objects may be read on every thread, which the compiler cannot know.
struct UnsafeSharing<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
