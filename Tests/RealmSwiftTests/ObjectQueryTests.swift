import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Predicates, sorting and sums over the objects of a Realm.
final class ObjectQueryTests: RealmTestCase {
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            let names = ["Ann", "bo", "Éva", "Dan", "Ann"]
            for (index, name) in names.enumerated() {
                let person = Person(value: ["name": name, "age": index * 10] as [String: Any])
                realm.add(person)
                for number in 0..<index {
                    let dog = Dog(name: "dog\(number)", age: number)
                    dog.owner = person
                    person.dogs.append(dog)
                }
                if index % 2 == 0 { person.tags.insert(objectsIn: ["even", name]) }
                person.address = Address(value: ["city": index < 2 ? "York" : "Rome"])
                if index > 0 { person.friend = realm.objects(Person.self)[index - 1] }
            }
        }
        return realm
    }

    private func names(_ results: Results<Person>) -> [String] { results.map(\.name) }

    func testF191_whereGivesResults() throws {
        let realm = try makeFilledRealm(), people = realm.objects(Person.self)
        XCTAssertEqual(names(people.where { $0.age > 20 }), ["Dan", "Ann"])
        XCTAssertEqual(people.where { $0.age > 20 && $0.name == "Ann" }.count, 1)
        XCTAssertEqual(names(people.where { $0.age < 10 || $0.name == "Dan" }), ["Ann", "Dan"])
        XCTAssertEqual(people.where { !($0.name == "Ann") }.count, 3)
        XCTAssertEqual(people.where { $0.age.contains(10...20) }.count, 2)
        XCTAssertEqual(people.where { $0.age.contains(10..<20) }.count, 1)
        XCTAssertEqual(people.where { $0.name.in(["Dan", "bo"]) }.count, 2)
        XCTAssertEqual(people.where { $0.friend == nil }.count, 1)
        XCTAssertEqual(names(people.where { $0.friend.name == "bo" }), ["Éva"])
        XCTAssertEqual(people.where { $0.address.city == "Rome" }.count, 3)
    }

    func testF195_collectionsInWhere() throws {
        let realm = try makeFilledRealm(), people = realm.objects(Person.self)
        XCTAssertEqual(people.where { $0.tags.contains("even") }.count, 3)
        XCTAssertEqual(people.where { $0.tags.containsAny(in: ["Éva", "Ann"]) }.count, 3)
        XCTAssertEqual(people.where { $0.dogs.age > 2 }.count, 1)
        XCTAssertEqual(people.where { $0.dogs.count >= 3 }.count, 2)
        XCTAssertEqual(people.where { $0.dogs.age.max == 2 }.count, 1)
        XCTAssertEqual(people.where { ($0.dogs.age > 0).count > 1 }.count, 2)
        XCTAssertEqual(people.where { $0.dogs.name.contains("dog1") }.count, 3)
        let first = people[1].dogs[0]
        XCTAssertEqual(names(people.where { $0.dogs.contains(first) }), ["bo"])
        XCTAssertEqual(realm.objects(Dog.self).where { $0.fans.age == 10 }.count, 1)
        XCTAssertEqual(realm.objects(Dog.self).where { $0.fans.count == 1 }.count, 10)
    }

    func testF198_textsInWhere() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(people.where { $0.name.starts(with: "A") }.count, 2)
        XCTAssertEqual(people.where { $0.name.contains("N", options: .caseInsensitive) }.count, 3)
        XCTAssertEqual(people.where { $0.name.equals("eva", options: [.caseInsensitive, .diacriticInsensitive]) }.count, 1)
        XCTAssertEqual(people.where { $0.name.like("?a*") }.count, 1)
        XCTAssertEqual(people.where { $0.name.ends(with: "n") }.count, 3)
    }

    func testF206_theTextOfAWhere() {
        func text(_ build: (Query<Person>) -> Query<Bool>) -> String {
            build(Query._constructForTesting())._constructPredicate().0
        }
        XCTAssertEqual(text { $0.name == "x" }, "(name == %@)")
        XCTAssertEqual(text { $0.name == "x" && $0.age > 3 }, "((name == %@) && (age > %@))")
        XCTAssertEqual(text { !($0.name == "x") }, "NOT (name == %@)")
        XCTAssertEqual(text { $0.name.in(["a"]) }, "(name IN %@)")
        XCTAssertEqual(text { $0.tags.contains("a") }, "(%@ IN tags)")
        XCTAssertEqual(text { $0.tags.containsAny(in: ["a"]) }, "(ANY tags IN %@)")
        XCTAssertEqual(text { $0.dogs.age.avg > 3 }, "(dogs.@avg.age > %@)")
        XCTAssertEqual(text { $0.pets.count == 2 }, "(pets.@count == %@)")
        XCTAssertEqual(text { ($0.dogs.age != 3).count > 1 }, "(SUBQUERY(dogs, $col1, ($col1.age != %@)).@count > %@)")
        XCTAssertEqual(text { $0.anything["a"][0] == .int(1) }, "(anything[%@][%@] == %@)")
        XCTAssertEqual(text { $0.anything.any == .int(1) }, "(anything[%K] == %@)")
        XCTAssertEqual(text { $0.age.contains(1...5) }, "(age BETWEEN {%@, %@})")
        XCTAssertEqual(text { $0.age.contains(1..<5) }, "((age >= %@) && (age < %@))")
        XCTAssertEqual(text { $0.name.like("a", caseInsensitive: true) }, "(name LIKE[c] %@)")
        let types: Query<AllTypes> = ._constructForTesting()
        XCTAssertEqual(types.bool._constructPredicate().0, "bool == true")
        XCTAssertEqual((!types.bool)._constructPredicate().0, "bool == false")
        XCTAssertEqual(types.ints.contains(1...5)._constructPredicate().0, "((ints.@min >= %@) && (ints.@max <= %@))")
        XCTAssertEqual((types.ints == 3)._constructPredicate().0, "(ANY ints == %@)")
        XCTAssertEqual((types.intMap["k"] == 3)._constructPredicate().0, "(intMap[%@] == %@)")
        XCTAssertEqual(types.intMap.keys.contains("k")._constructPredicate().0, "(ANY intMap.@allKeys CONTAINS %@)")
        let renamed: Query<Renamed> = ._constructForTesting()
        XCTAssertEqual((renamed.firstName == "a")._constructPredicate().0, "(first_name == %@)")
    }

    func testF196To205_mapsEnumsAndAnyRealmValueInWhere() throws {
        let realm = try makeRealm()
        try realm.write {
            let object = AllTypes(
                value: [
                    "key": "k", "size": "large", "level": 10, "optInt": 5, "intMap": ["a": 1, "b": 20], "any": 7.0, "bool": true,
                ] as [String: Any])
            realm.add(object)
            realm.add(AllTypes(value: ["key": "l", "any": ["x": [1, 2]]] as [String: Any]))
            realm.add(Mapped(value: ["temperature": 20, "url": "https://a.b", "place": ["x": 1.0, "y": 2.0]] as [String: Any]))
        }
        let objects = realm.objects(AllTypes.self)
        XCTAssertEqual(objects.where { $0.size == .large }.count, 1)
        XCTAssertEqual(objects.where { $0.level > .low }.count, 1)
        XCTAssertEqual(objects.where { $0.size.rawValue == "large" }.count, 1)
        XCTAssertEqual(objects.where { $0.optInt == nil }.count, 1)
        XCTAssertEqual(objects.where { $0.optInt > 4 }.count, 1)
        XCTAssertEqual(objects.where { $0.intMap["a"] == 1 }.count, 1)
        XCTAssertEqual(objects.where { $0.intMap.values > 10 }.count, 1)
        XCTAssertEqual(objects.where { $0.intMap.keys == "b" }.count, 1)
        XCTAssertEqual(objects.where { $0.intMap.count == 2 }.count, 1)
        XCTAssertEqual(objects.where { $0.any == .int(7) }.count, 1)
        XCTAssertEqual(objects.where { $0.any["x"][1] == .int(2) }.count, 1)
        XCTAssertEqual(objects.where { $0.bool }.count, 1)
        XCTAssertEqual(objects.where { !$0.bool }.count, 1)
        let mapped = realm.objects(Mapped.self)
        XCTAssertEqual(mapped.where { $0.temperature == Celsius(degrees: 20) }.count, 1)
        XCTAssertEqual(mapped.where { $0.url == URL(string: "https://a.b") }.count, 1)
        XCTAssertEqual(mapped.where { $0.url.persistableValue.starts(with: "https") }.count, 1)
        XCTAssertEqual(mapped.where { $0.place == Point(x: 1, y: 2) }.count, 1)
        XCTAssertEqual(mapped.where { $0.place == Point(x: 1, y: 3) }.count, 0)
    }

    func testF207_predicateTexts() throws {
        let realm = try makeFilledRealm(), people = realm.objects(Person.self)
        XCTAssertEqual(people.filter("age >= 20").count, 3)
        XCTAssertEqual(people.filter("age >= %@ AND name == %@", 20, "Dan").count, 1)
        XCTAssertEqual(people.filter("%K == %@", "name", "bo").count, 1)
        XCTAssertEqual(people.filter("name IN %@", ["bo", "Dan"]).count, 2)
        XCTAssertEqual(people.filter("ANY dogs.age > 2").count, 1)
        XCTAssertEqual(people.filter("friend == %@", people[0]).count, 1)
        XCTAssertEqual(people.filter("SUBQUERY(dogs, $d, $d.age > 0).@count > 1").count, 2)
        XCTAssertEqual(people.filter("address.city BEGINSWITH 'R'").count, 3)
        XCTAssertEqual(people.filter(NSPredicate(format: "age BETWEEN {10, 30}")).count, 3)
        let both = NSCompoundPredicate(andPredicateWithSubpredicates: [
            NSPredicate(format: "age > %@", 0), NSPredicate(format: "name != 'Ann'"),
        ])
        XCTAssertEqual(people.filter(both).count, 3)
        XCTAssertEqual(people.filter(NSCompoundPredicate(notPredicateWithSubpredicate: both)).count, 2)
        XCTAssertEqual(people.filter(NSPredicate(value: false)).count, 0)
        XCTAssertEqual(people.filter(NSPredicate(value: true)).count, 5)
        XCTAssertEqual(realm.objects(Dog.self).filter("id == %@", people[1].dogs[0].id).count, 1)
        XCTAssertEqual(realm.objects(Renamed.self).filter("firstName == 'x'").count, 0)
    }

    func testF186_queriesChain() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(names(people.filter("age > 0").filter("age < 40").where { $0.name != "bo" }), ["Éva", "Dan"])
        XCTAssertEqual(names(people.sorted(byKeyPath: "age", ascending: false).filter("name == 'Ann'")), ["Ann", "Ann"])
        XCTAssertEqual(people.filter("age > 0").sorted(byKeyPath: "age", ascending: false).first?.age, 40)
    }

    func testF178To180_sortedByKeyPaths() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(people.sorted(byKeyPath: "name").map(\.age), [0, 40, 30, 10, 20])
        XCTAssertEqual(people.sorted(by: \.age, ascending: false).map(\.age), [40, 30, 20, 10, 0])
        XCTAssertEqual(
            people.sorted(by: [SortDescriptor(keyPath: "name"), SortDescriptor(keyPath: "age", ascending: false)]).map(\.age),
            [40, 0, 30, 10, 20])
        XCTAssertEqual(people.sorted(byKeyPath: "address.city").map(\.age).prefix(3), [20, 30, 40])
        XCTAssertEqual(
            SortDescriptor(keyPath: \Person.name).reversed().description, "SortDescriptor (keyPath: name, direction: descending)")
        let byName = people.sorted(byKeyPath: "age", ascending: false).sorted(byKeyPath: "name")
        XCTAssertEqual(byName.map(\.age), [40, 0, 30, 10, 20])
    }

    func testF190_distinctKeepsTheFirst() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(names(people.distinct(by: ["name"])), ["Ann", "bo", "Éva", "Dan"])
        XCTAssertEqual(people.sorted(by: \.age, ascending: false).distinct(by: [\Person.name]).map(\.age), [40, 30, 20, 10])
    }

    func testF184_aggregates() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(people.min(ofProperty: "age") as Int?, 0)
        XCTAssertEqual(people.max(of: \.age), 40)
        XCTAssertEqual(people.sum(of: \.age), 100)
        XCTAssertEqual(people.average(ofProperty: "age") as Double?, 20)
        XCTAssertEqual(people.filter("age > 1000").max(of: \.age), nil)
        XCTAssertEqual(people.filter("age > 1000").sum(of: \.age), 0)
        XCTAssertEqual(people[3].dogs.sum(of: \.age), 3)
    }

    func testF427_listsOfValues() throws {
        let realm = try makeRealm()
        let object = AllTypes()
        object.ints.append(objectsIn: [3, 1, 2, 3])
        XCTAssertEqual(object.ints.max(), 3)
        XCTAssertEqual(object.ints.sum(), 9)
        try realm.write { realm.add(object) }
        XCTAssertEqual(object.ints.min(), 1)
        XCTAssertEqual(object.ints.max(), 3)
        XCTAssertEqual(object.ints.sum(), 9)
        XCTAssertEqual(object.ints.average() as Double?, 2.25)
        XCTAssertEqual(Array(object.ints.sorted()), [1, 2, 3, 3])
        XCTAssertEqual(Array(object.ints.sorted(ascending: false)), [3, 3, 2, 1])
        XCTAssertEqual(Array(object.ints.distinct()), [3, 1, 2])
        XCTAssertEqual(object.ints.index(of: 2), 2)
        XCTAssertNil(object.ints.index(of: 9))
        XCTAssertEqual(Array(object.intMap.sorted()), [])
    }

    func testF428_positionsOfObjects() throws {
        let realm = try makeFilledRealm(), people = realm.objects(Person.self).sorted(byKeyPath: "age")
        XCTAssertEqual(people.index(of: people[2]), 2)
        XCTAssertEqual(people.index(matching: "name == 'Dan'"), 3)
        XCTAssertEqual(people.index(matching: { $0.name == "bo" }), 1)
        XCTAssertNil(people.index(of: Person()))
        XCTAssertEqual(people[4].dogs.index(of: people[4].dogs[1]), 1)
    }

    func testF118_resultsAreLive() throws {
        let realm = try makeFilledRealm()
        let old = realm.objects(Person.self).where { $0.age >= 30 }
        XCTAssertEqual(old.count, 2)
        try realm.write {
            realm.objects(Person.self)[0].age = 99
            XCTAssertEqual(old.count, 3)
            XCTAssertEqual(old[0].age, 99)
        }
        XCTAssertEqual(old.count, 3)
        let any = AnyRealmCollection(old), list = AnyRealmCollection(old[1].dogs)
        XCTAssertEqual(any.count, 3)
        XCTAssertEqual(list.map(\.name), ["dog0", "dog1", "dog2"])
        XCTAssertEqual(any.filter("age == 99").count, 1)
    }

    func testF242_filteredObjectsAreDeleted() throws {
        let realm = try makeFilledRealm()
        try realm.write { realm.delete(realm.objects(Dog.self).where { $0.age == 0 }) }
        XCTAssertEqual(realm.objects(Dog.self).count, 6)
        XCTAssertEqual(realm.objects(Person.self)[1].dogs.count, 0)
    }

    func testF228_aValueIsSetOnAllElements() throws {
        let realm = try makeFilledRealm()
        try realm.write { realm.objects(Person.self).filter("age > 10").setValue("Z", forKey: "name") }
        XCTAssertEqual(realm.objects(Person.self).filter("name == 'Z'").count, 3)
        XCTAssertEqual(realm.objects(Person.self).value(forKeyPath: "@max.age") as? Int, 40)
    }

    func testF173_geographicQueries() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Shop.self, Place.self]))
        try realm.write {
            for (name, longitude, latitude) in [("a", 13.4, 52.5), ("b", 2.35, 48.85), ("c", 12.5, 41.9)] {
                realm.create(Shop.self, value: ["name": name, "place": ["coordinates": [longitude, latitude]]] as [String: Any])
            }
        }
        let circle = try XCTUnwrap(GeoCircle(center: (52.5, 13.4), radius: try XCTUnwrap(Distance.kilometers(100))))
        XCTAssertEqual(realm.objects(Shop.self).where { $0.place.geoWithin(circle) }.map(\.name), ["a"])
        XCTAssertEqual(realm.objects(Shop.self).filter("place IN %@", circle).count, 1)
        let box = try XCTUnwrap(GeoBox(bottomLeft: (45.0, 0.0), topRight: (55.0, 15.0)))
        XCTAssertEqual(realm.objects(Shop.self).where { $0.place.geoWithin(box) }.count, 2)
        let polygon = try XCTUnwrap(
            GeoPolygon(outerRing: [(40.0, 10.0), (40.0, 15.0), (45.0, 15.0), (45.0, 10.0), (40.0, 10.0)]))
        XCTAssertEqual(realm.objects(Shop.self).where { $0.place.geoWithin(polygon) }.map(\.name), ["c"])
        XCTAssertNil(GeoPoint(latitude: 91, longitude: 0))
        XCTAssertNil(Distance.miles(-1))
        XCTAssertEqual(try XCTUnwrap(Distance.miles(10)).asKilometers(), 16.09344, accuracy: 1e-9)
        XCTAssertNil(GeoPolygon(outerRing: [(0.0, 0.0), (1.0, 1.0), (0.0, 0.0)]))
    }
}

private class Place: EmbeddedObject {
    @Persisted var type = "Point"
    @Persisted var coordinates: List<Double>
}

private class Shop: Object {
    @Persisted var name: String
    @Persisted var place: Place?
}
