import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// What collections of a Realm can do in detail.
final class CollectionFeatureTests: RealmTestCase {
    private func makeList(_ values: [Int]) throws -> (Realm, List<Int>) {
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "k", "ints": values] as [String: Any])
        try realm.write { realm.add(object) }
        return (realm, object.ints)
    }

    func testF425_everyChangeOfAList() throws {
        let unmanaged = List<Int>()
        let (realm, managed) = try makeList([])
        for list in [unmanaged, managed] {
            func change(_ expected: [Int], line: UInt = #line, _ body: () -> Void) throws {
                try realm.write { body() }
                XCTAssertEqual(Array(list), expected, line: line)
            }
            try change([1, 2, 3]) { list.append(objectsIn: [1, 2, 3]) }
            try change([1, 2, 3, 4]) { list.append(4) }
            try change([9, 1, 2, 3, 4]) { list.insert(9, at: 0) }
            try change([9, 1, 7, 8, 2, 3, 4]) { list.insert(contentsOf: [7, 8], at: 2) }
            try change([9, 1, 8, 2, 3, 4]) { list.remove(at: 2) }
            try change([1, 8, 2, 3, 4]) { list.removeFirst() }
            try change([1, 8, 2]) { list.removeLast(2) }
            try change([1, 5, 6, 2]) { list.replaceSubrange(1...1, with: [5, 6]) }
            try change([1, 2]) { list.removeSubrange(1..<3) }
            try change([2, 1]) { list.swapAt(0, 1) }
            try change([2, 3]) { list.replace(index: 1, object: 3) }
            try change([2, 4]) { list[1] = 4 }
            try change([4, 2]) { list.move(from: 1, to: 0) }
            try change([7, 8, 9]) { list.replaceSubrange(0..., with: [7, 8, 9]) }
            try change([7, 0, 9]) { list[1..<2] = List<Int>.of([0])[0..<1] }
            try change([]) { list.removeAll() }
        }
    }

    func testF426_changesByIndexSets() throws {
        let (realm, list) = try makeList([0, 1, 2, 3, 4])
        try realm.write { list.remove(atOffsets: IndexSet([1, 3])) }
        XCTAssertEqual(Array(list), [0, 2, 4])
        try realm.write { list.move(fromOffsets: IndexSet([0]), toOffset: 3) }
        XCTAssertEqual(Array(list), [2, 4, 0])
        try realm.write { list.move(fromOffsets: IndexSet([1, 2]), toOffset: 0) }
        XCTAssertEqual(Array(list), [4, 0, 2])
    }

    func testF427_orderFiltersAndSumsOfAList() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": [["name": "b", "age": 3], ["name": "a", "age": 1], ["name": "b", "age": 2]]])
        try realm.write { realm.add(ann) }
        let dogs = ann.dogs
        XCTAssertEqual(dogs.sorted(byKeyPath: "name").map(\.age), [1, 3, 2])
        XCTAssertEqual(dogs.filter("age > 1").map(\.name), ["b", "b"])
        XCTAssertEqual(dogs.distinct(by: ["name"]).map(\.age), [3, 1])
        XCTAssertEqual(dogs.min(of: \.age), 1)
        XCTAssertEqual(dogs.max(ofProperty: "age") as Int?, 3)
        XCTAssertEqual(dogs.sum(of: \.age), 6)
        XCTAssertEqual(dogs.average(ofProperty: "age") as Double?, 2)
        let (_, list) = try makeList([3, 1, 3])
        XCTAssertEqual([list.min(), list.max(), list.sum()], [1, 3, 7])
        XCTAssertEqual(Array(list.sorted(ascending: false)), [3, 3, 1])
        XCTAssertEqual(Array(list.distinct()), [3, 1])
        // Unmanaged lists are added up, too.
        let plain = Person(value: ["dogs": [["age": 4], ["age": 6]]]).dogs
        XCTAssertEqual(plain.sum(of: \.age), 10)
        XCTAssertEqual(plain.average(of: \.age), 5)
        XCTAssertEqual(plain.max(of: \.age), 6)
    }

    func testF428_F433_positionsAndElementsAtThem() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": [["name": "a"], ["name": "b"], ["name": "c"]]])
        try realm.write { realm.add(ann) }
        XCTAssertEqual(ann.dogs.index(of: ann.dogs[1]), 1)
        XCTAssertEqual(ann.dogs.index(matching: "name == 'c'"), 2)
        XCTAssertEqual(ann.dogs.index(matching: NSPredicate(format: "name == %@", "a")), 0)
        XCTAssertNil(ann.dogs.index(matching: { $0.name == "z" }))
        XCTAssertNil(ann.dogs.index(of: Dog(name: "a")))
        XCTAssertEqual(ann.dogs.objects(at: IndexSet([0, 2])).map(\.name), ["a", "c"])
        XCTAssertEqual(
            realm.objects(Dog.self).sorted(byKeyPath: "name", ascending: false).objects(at: IndexSet(integersIn: 0..<2)).map(
                \.name), ["c", "b"])
        XCTAssertEqual(ann.dogs.objects(at: []), [])
    }

    func testF429_aListEndsWithItsOwner() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": [["name": "a"]], "tags": ["t"], "pets": ["p": ["name": "b"]]] as [String: Any])
        try realm.write { realm.add(ann) }
        let dogs = ann.dogs, tags = ann.tags, pets = ann.pets, filtered = ann.dogs.filter("age == 0"), fans = dogs[0].fans
        XCTAssertEqual(filtered.count, 1)
        XCTAssertFalse(dogs.isInvalidated)
        try realm.write { realm.delete(ann) }
        XCTAssertTrue(dogs.isInvalidated && tags.isInvalidated && pets.isInvalidated && filtered.isInvalidated)
        XCTAssertNil(dogs.realm)
        XCTAssertEqual(filtered.count, 0)
        XCTAssertEqual(fans.count, 0)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
    }

    func testF430_setsAreCompared() throws {
        let realm = try makeRealm()
        let one = AllTypes(value: ["key": "1", "intSet": [1, 2]] as [String: Any]),
            two = AllTypes(value: ["key": "2", "intSet": [1, 2, 3]] as [String: Any])
        try realm.write { realm.add([one, two]) }
        let plain = MutableSet<Int>()
        plain.insert(objectsIn: [2, 9])
        XCTAssertTrue(one.intSet.isSubset(of: two.intSet))
        XCTAssertFalse(two.intSet.isSubset(of: one.intSet))
        XCTAssertTrue(one.intSet.intersects(plain))
        XCTAssertFalse(one.intSet.isSubset(of: plain))
        XCTAssertEqual(two.intSet.min(), 1)
        XCTAssertEqual(two.intSet.sum(), 6)
        XCTAssertEqual(Array(two.intSet.sorted(ascending: false)), [3, 2, 1])
        XCTAssertEqual(two.intSet[2], 3)
    }

    func testF431_mapsAreMergedAndSearched() throws {
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "k", "intMap": ["a": 1, "b": 2]] as [String: Any]), ann = Person()
        let other = Map<String, Int>()
        other["b"] = 10
        other["c"] = 3
        try realm.write {
            realm.add(object)
            realm.add(ann)
            object.intMap.merge(other) { old, new in old + new }
            object.intMap.merge([("d", 4)], uniquingKeysWith: { $1 })
            ann.pets["x"] = Dog(name: "Rex", age: 3)
            ann.pets["y"] = Dog(name: "Ada", age: 5)
        }
        XCTAssertEqual(
            Dictionary(uniqueKeysWithValues: object.intMap.asKeyValueSequence().map { ($0.key, $0.value) }),
            ["a": 1, "b": 12, "c": 3, "d": 4])
        XCTAssertEqual(Set(object.intMap.keys), ["a", "b", "c", "d"])
        XCTAssertEqual(object.intMap.values.sorted(), [1, 3, 4, 12])
        XCTAssertTrue(object.intMap.contains { key, value in key == "b" && value == 12 })
        XCTAssertFalse(object.intMap.contains { key, _ in key == "z" })
        XCTAssertEqual(object.intMap.max(), 12)
        XCTAssertEqual(object.intMap.sum(), 20)
        XCTAssertEqual(object.intMap.average() as Double?, 5)
        XCTAssertEqual(Array(object.intMap.sorted(ascending: false)), [12, 4, 3, 1])
        XCTAssertEqual(ann.pets.where { $0.name == "Rex" }.count, 1)
        XCTAssertEqual(ann.pets.filter(NSPredicate(format: "age > 4")).map { $0?.name }, ["Ada"])
        XCTAssertEqual(ann.pets.sorted(byKeyPath: "age", ascending: false).map { $0?.name }, ["Ada", "Rex"])
        XCTAssertEqual(ann.pets.sorted(by: \.age).map { $0?.name }, ["Rex", "Ada"])
        XCTAssertEqual(ann.pets.max(of: \.age), 5)
        XCTAssertEqual(ann.pets.sum(ofProperty: "age") as Int, 8)
        XCTAssertEqual(ann.pets.object(forKey: "x") as? Dog, ann.pets["x"])
        XCTAssertTrue(object.intMap.description.contains("[a]: 1"), object.intMap.description)
        XCTAssertEqual(object.intMap, object.intMap)
        XCTAssertEqual(object.intMap.freeze()["b"], 12)
        for entry in object.intMap where entry.key == "b" { XCTAssertEqual(entry.value, 12) }
    }

    func testF432_equalityAndTextsOfResults() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 0..<102 { realm.add(Dog(name: "dog\(i)")) }
        }
        let dogs = realm.objects(Dog.self)
        XCTAssertEqual(dogs, dogs)
        XCTAssertNotEqual(dogs, realm.objects(Dog.self).filter("age == 0"))
        XCTAssertTrue(dogs.description.hasPrefix("Results<Dog> <0x"))
        XCTAssertTrue(dogs.description.contains("\n\t[0] Dog {\n\t\tid = "))
        XCTAssertTrue(dogs.description.contains("... 2 objects skipped."))
        XCTAssertEqual(dogs[0].fans, dogs[0].fans)
        let ann = Person(value: ["dogs": [dogs[0]]])
        try realm.write { realm.add(ann) }
        XCTAssertEqual(ann.dogs, realm.objects(Person.self)[0].dogs)
        XCTAssertTrue(ann.dogs.description.hasPrefix("List<Dog> <0x"))
        XCTAssertTrue(ann.tags.description.hasPrefix("MutableSet<string> <0x"))
    }

    func testF435_operatorsOfKeyPaths() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(Person.self, value: ["name": "a", "age": 10, "dogs": [["name": "x"], ["name": "y"]]] as [String: Any])
            realm.create(Person.self, value: ["name": "b", "age": 20, "dogs": [["name": "x"]]] as [String: Any])
            realm.create(Person.self, value: ["name": "a", "age": 30] as [String: Any])
        }
        let people = realm.objects(Person.self).sorted(byKeyPath: "age")
        XCTAssertEqual(people.value(forKeyPath: "@count") as? Int, 3)
        XCTAssertEqual(people.value(forKeyPath: "@min.age") as? Int, 10)
        XCTAssertEqual(people.value(forKeyPath: "@max.age") as? Int, 30)
        XCTAssertEqual(people.value(forKeyPath: "@sum.age") as? Int, 60)
        XCTAssertEqual(people.value(forKeyPath: "@avg.age") as? Double, 20)
        XCTAssertEqual(people.value(forKeyPath: "@unionOfObjects.name") as? [String], ["a", "b", "a"])
        XCTAssertEqual(people.value(forKeyPath: "@distinctUnionOfObjects.name") as? [String], ["a", "b"])
        XCTAssertEqual((people.value(forKeyPath: "@unionOfArrays.dogs") as? [Any])?.count, 3)
        XCTAssertEqual(people[0].value(forKeyPath: "dogs.@count") as? Int, 2)
        XCTAssertEqual(people[0].value(forKeyPath: "dogs.name") as? [String], ["x", "y"])
    }

    func testF436_elementsAreDeletedWhileTheyAreVisited() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": (0..<10).map { ["age": $0] }])
        try realm.write {
            realm.add(ann)
            var seen: [Int] = []
            for dog in ann.dogs {
                seen.append(dog.age)
                if dog.age % 3 == 0 { realm.delete(dog) }
            }
            XCTAssertEqual(seen, Array(0..<10))
            for dog in realm.objects(Dog.self).filter("age > 4") { dog.age = 0 }
        }
        XCTAssertEqual(ann.dogs.map(\.age).sorted(), [0, 0, 0, 1, 2, 4])
    }

    func testF438_theSameObjectSeenTwice() throws {
        let realm = try makeRealm()
        let person = Person(value: ["name": "Ann", "address": ["city": "York"]] as [String: Any])
        XCTAssertTrue(person.isSameObject(as: person))
        XCTAssertFalse(person.isSameObject(as: Person()))
        XCTAssertFalse(person.isSameObject(as: nil))
        try realm.write { realm.add(person) }
        let other = realm.objects(Person.self)[0]
        XCTAssertNotEqual(person, other)
        XCTAssertTrue(person.isSameObject(as: other))
        XCTAssertTrue(person.freeze().isSameObject(as: other))
        XCTAssertTrue(try XCTUnwrap(person.address).isSameObject(as: other.address))
        XCTAssertTrue(realm.dynamicObjects("Person")[0].isSameObject(as: person))
    }

    func testF439_F386_everythingByName() throws {
        let realm = try makeRealm()
        try realm.write {
            let dynamic = realm.dynamicCreate(
                "Person",
                value: [
                    "name": "Ann", "dogs": [["name": "Rex"]], "tags": ["t"], "pets": ["p": ["name": "Kit"]],
                    "address": ["city": "York"],
                ] as [String: Any])
            dynamic["age"] = 7
            dynamic.name = "Eve"
            dynamic.dynamicList("dogs").append(realm.dynamicCreate("Dog", value: ["name": "Max"]))
            dynamic.dynamicMap("pets")["q"] = realm.dynamicObjects("Dog")[0]
        }
        let person = realm.objects(Person.self)[0]
        XCTAssertEqual(person.name, "Eve")
        XCTAssertEqual(person.age, 7)
        XCTAssertEqual(person.dogs.map(\.name), ["Rex", "Max"])
        XCTAssertEqual(Set(person.pets.keys), ["p", "q"])
        let dynamic = try XCTUnwrap(realm.dynamicObjects("Person").filter("age == 7").first)
        XCTAssertEqual(dynamic["name"] as? String, "Eve")
        XCTAssertEqual((dynamic["address"] as? DynamicObject)?.city as? String, "York")
        XCTAssertEqual((dynamic["tags"] as? MutableSet<String>).map { Array($0) }, ["t"])
        let pets: Map<String, DynamicObject?> = dynamic.dynamicMap("pets")
        XCTAssertEqual(pets["p"]??.name as? String, "Kit")
        XCTAssertEqual((person["dogs"] as? List<Dog>)?.first?.name, "Rex")
        XCTAssertEqual(person.dynamicList("dogs")[0]["name"] as? String, "Rex")
        XCTAssertEqual(realm.dynamicObjects("Dog").sorted(byKeyPath: "name", ascending: false)[0].name as? String, "Rex")
        XCTAssertEqual(dynamic.objectSchema.className, "Person")
        XCTAssertTrue(dynamic.description.hasPrefix("Person {"))
    }

    func testF440_textsOfObjects() throws {
        let realm = try makeRealm()
        let object = AllTypes(
            value: ["key": "k", "data": Data(repeating: 0xAB, count: 30), "optString": NSNull(), "ints": [1, 2]] as [String: Any])
        try realm.write { realm.add(object) }
        let text = object.description
        XCTAssertTrue(text.hasPrefix("AllTypes {\n\tkey = k;\n\tbool = "), text)
        XCTAssertTrue(text.contains("\toptString = (null);\n"))
        XCTAssertTrue(text.contains("30 total bytes"))
        XCTAssertTrue(text.contains("\tints = List<int> <0x"), text)
        XCTAssertTrue(text.contains("\t\t[0] 1,\n\t\t[1] 2\n\t);\n"), text)
        XCTAssertTrue(text.hasSuffix("}"))
    }

    func testF441_equalityAndHashesOfObjects() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.add(Dog(name: "Rex"))
            realm.add(Person())
        }
        let dog = realm.objects(Dog.self)[0], sameDog = realm.objects(Dog.self)[0]
        XCTAssertEqual(dog, sameDog)
        XCTAssertEqual(dog.hash, sameDog.hash)
        XCTAssertEqual(Set([dog, sameDog]).count, 1)
        let person = realm.objects(Person.self)[0], samePerson = realm.objects(Person.self)[0]
        XCTAssertNotEqual(person, samePerson)
        XCTAssertEqual(Set([person, samePerson]).count, 2)
        let frozen = person.freeze()
        XCTAssertEqual(frozen, realm.freeze().objects(Person.self)[0])
        XCTAssertNotEqual(Dog(name: "a"), Dog(name: "a"))
        XCTAssertEqual([dog].firstIndex(of: sameDog), 0)
    }
}

extension List {
    fileprivate static func of(_ elements: [Element]) -> List {
        let list = List()
        list.append(objectsIn: elements)
        return list
    }
}
