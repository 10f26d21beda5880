import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Objects and results are read.
final class ReadFeatureTests: RealmTestCase {
    /// Three people: Ann (20, York, dogs Rex 1 and Ada 2), Bo (30, Rome, dog Max 5), Cy (40, no address, no dogs, friend Ann).
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            let ann = realm.create(
                Person.self,
                value: [
                    "name": "Ann", "age": 20, "address": ["city": "York", "country": ["name": "UK"]],
                    "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "age": 2]], "tags": ["x", "y"],
                ] as [String: Any])
            let bo = realm.create(
                Person.self,
                value: [
                    "name": "Bo", "age": 30, "address": ["city": "Rome"], "dogs": [["name": "Max", "age": 5]], "tags": ["y"],
                ] as [String: Any])
            let cy = realm.create(Person.self, value: ["name": "Cy", "age": 40] as [String: Any])
            cy.friend = ann
            for dog in ann.dogs { dog.owner = ann }
            bo.dogs[0].owner = bo
            bo.pets["first"] = bo.dogs[0]
            ann.anything = .int(5)
            bo.anything = .string("5")
        }
        return realm
    }

    private func names(_ results: Results<Person>) -> [String] { results.map(\.name).sorted() }

    func testF159_F160_resultsAreLiveAndLazy() throws {
        let realm = try makeFilledRealm()
        let adults = realm.objects(Person.self).where { $0.age >= 30 }
        let first = adults.sorted(by: \.age)[0]
        try realm.write { first.name = "Bob" }
        XCTAssertEqual(names(adults), ["Bob", "Cy"])
        try realm.write { realm.create(Person.self, value: ["name": "Di", "age": 50] as [String: Any]) }
        XCTAssertEqual(adults.count, 3)
    }

    func testF161_anObjectKeepsItsRealmOpen() throws {
        let scratch = ScratchDirectory()
        var dog: Dog?
        try autoreleasepool {
            let realm = try makeFileRealm(scratch)
            dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        }
        XCTAssertEqual(dog?.name, "Rex")
        XCTAssertNotNil(dog?.realm)
        XCTAssertThrowsError(try Realm.deleteFiles(for: fileConfiguration(scratch)))
        dog = nil
        XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration(scratch)))
    }

    func testF162_slicesAndPages() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 0..<25 { realm.create(Owner.self, value: ["id": i]) }
        }
        let all = realm.objects(Owner.self).sorted(byKeyPath: "id")
        XCTAssertEqual(all.prefix(3).map(\.id), [0, 1, 2])
        XCTAssertEqual(all[10..<13].map(\.id), [10, 11, 12])
        XCTAssertEqual(all.suffix(2).map(\.id), [23, 24])
        XCTAssertEqual(all.dropFirst(20).map(\.id), [20, 21, 22, 23, 24])
        XCTAssertEqual(all.reversed().first?.id, 24)
        let pages = stride(from: 0, to: all.count, by: 10).map { start in all[start..<Swift.min(start + 10, all.count)].count }
        XCTAssertEqual(pages, [10, 10, 5])
    }

    func testF164_F165_F185_allOfAClassAndThoseThatFit() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(people.count, 3)
        XCTAssertEqual(names(people.filter("age > 25")), ["Bo", "Cy"])
        XCTAssertEqual(names(people.where { $0.name == "Ann" }), ["Ann"])
        XCTAssertEqual(people.filter("age > 100").count, 0)
        XCTAssertTrue(people.filter("age > 100").isEmpty)
        XCTAssertNil(people.filter("age > 100").first)
    }

    func testF166_F098_byObjectId() throws {
        let realm = try makeFilledRealm()
        let rex = try XCTUnwrap(realm.objects(Dog.self).filter("name == 'Rex'").first)
        XCTAssertEqual(realm.objects(Dog.self).where { $0.id == rex.id }.map(\.name), ["Rex"])
        XCTAssertEqual(realm.objects(Dog.self).filter("id == %@", rex.id).count, 1)
        XCTAssertEqual(realm.objects(Dog.self).filter("id IN %@", [rex.id, ObjectId.generate()]).count, 1)
        XCTAssertEqual(realm.objects(Dog.self).where { $0.id.in([rex.id]) }.count, 1)
        XCTAssertEqual(realm.objects(Dog.self).where { $0.id != rex.id }.count, 2)
    }

    func testF168_inverseLinksInQueries() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(realm.objects(Dog.self).filter("fans.name == 'Bo'").map(\.name), ["Max"])
        XCTAssertEqual(realm.objects(Dog.self).where { $0.fans.age < 25 }.map(\.name).sorted(), ["Ada", "Rex"])
        XCTAssertEqual(realm.objects(Dog.self).filter("fans.@count == 0").count, 0)
        XCTAssertEqual(realm.objects(Dog.self).filter("ANY fans.address.city == 'York'").count, 2)
    }

    func testF169_embeddedPropertiesInQueries() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(names(people.filter("address.city == 'York'")), ["Ann"])
        XCTAssertEqual(names(people.where { $0.address.city != "York" }), ["Bo", "Cy"])
        XCTAssertEqual(names(people.where { $0.address.country.name == "UK" }), ["Ann"])
        XCTAssertEqual(names(people.filter("address == nil")), ["Cy"])
    }

    func testF170_F171_mapsAndSetsInQueries() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(names(people.filter("pets.@count > 0")), ["Bo"])
        XCTAssertEqual(names(people.filter("pets.@allKeys == 'first'")), ["Bo"])
        XCTAssertEqual(names(people.filter("pets['first'].name == 'Max'")), ["Bo"])
        XCTAssertEqual(names(people.filter("ANY pets.@allValues.age > 3")), ["Bo"])
        XCTAssertEqual(names(people.filter("'x' IN tags")), ["Ann"])
        XCTAssertEqual(names(people.filter("ANY tags == 'y'")), ["Ann", "Bo"])
        XCTAssertEqual(names(people.filter("NONE tags == 'y'")), ["Cy"])
        XCTAssertEqual(names(people.filter("ALL tags == 'y'")), ["Bo", "Cy"])
        XCTAssertEqual(names(people.filter("tags.@count == 2")), ["Ann"])
        XCTAssertEqual(names(people.where { $0.tags.contains("x") }), ["Ann"])
        XCTAssertEqual(names(people.where { !$0.tags.containsAny(in: ["x", "y"]) }), ["Cy"])
    }

    func testF172_anyRealmValuesInQueries() throws {
        let people = try makeFilledRealm().objects(Person.self)
        XCTAssertEqual(names(people.filter("anything == 5")), ["Ann"])
        XCTAssertEqual(names(people.filter("anything == 5.0")), ["Ann"])
        XCTAssertEqual(names(people.filter("anything == '5'")), ["Bo"])
        XCTAssertEqual(names(people.filter("anything == nil")), ["Cy"])
        XCTAssertEqual(names(people.where { $0.anything > .int(4) }), ["Ann"])
        XCTAssertEqual(names(people.filter("anything.@type == 'string'")), ["Bo"])
        XCTAssertEqual(people.filter("name == 'Ann'").first?.anything.intValue, 5)
    }

    func testF173To176_F218_shapesOnTheEarth() throws {
        XCTAssertNil(GeoPoint(latitude: 90.1, longitude: 0))
        XCTAssertNil(GeoPoint(latitude: 0, longitude: -180.1))
        XCTAssertNil(GeoPoint(latitude: 0, longitude: 0, altitude: -1))
        XCTAssertNil(GeoPoint(latitude: .nan, longitude: 0))
        XCTAssertEqual(GeoPoint(latitude: 1, longitude: 2, altitude: 3)?.altitude, 3)
        XCTAssertNil(GeoBox(bottomLeft: (91.0, 0.0), topRight: (0.0, 0.0)))
        XCTAssertNil(GeoCircle(center: (0.0, 0.0), radiusInRadians: -1))
        XCTAssertNil(GeoCircle(center: (100.0, 0.0), radiusInRadians: 1))
        XCTAssertNil(GeoPolygon(outerRing: [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)]))
        let ring = [(0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0), (0.0, 0.0)],
            hole = [(4.0, 4.0), (4.0, 6.0), (6.0, 6.0), (6.0, 4.0), (4.0, 4.0)]
        XCTAssertNil(GeoPolygon(outerRing: ring, holes: [(4.0, 4.0), (4.0, 6.0), (4.0, 4.0)]))
        let polygon = try XCTUnwrap(GeoPolygon(outerRing: ring, holes: hole))
        XCTAssertEqual(polygon.holes?.count, 1)
        XCTAssertEqual(try XCTUnwrap(Distance.kilometers(6378.1)).radians, 1, accuracy: 1e-12)
        XCTAssertEqual(try XCTUnwrap(Distance.degrees(180)).radians, .pi, accuracy: 1e-12)
        XCTAssertEqual(try XCTUnwrap(Distance.miles(1)).asKilometers(), 1.609344, accuracy: 1e-9)
        XCTAssertEqual(try XCTUnwrap(Distance.radians(.pi)).asDegrees(), 180, accuracy: 1e-12)
        for factory in [Distance.kilometers, Distance.miles, Distance.degrees, Distance.radians] { XCTAssertNil(factory(-0.1)) }

        let realm = try Realm(
            configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Spot.self, SpotPlace.self]))
        try realm.write {
            for (name, latitude, longitude) in [("ring", 2.0, 2.0), ("hole", 5.0, 5.0), ("outside", 20.0, 20.0)] {
                realm.create(Spot.self, value: ["name": name, "place": ["coordinates": [longitude, latitude]]] as [String: Any])
            }
            realm.create(Spot.self, value: ["name": "nowhere"])
            realm.create(Spot.self, value: ["name": "invalid", "place": ["coordinates": [500.0, 2.0]]] as [String: Any])
        }
        let spots = realm.objects(Spot.self)
        XCTAssertEqual(spots.where { $0.place.geoWithin(polygon) }.map(\.name), ["ring"])
        XCTAssertEqual(spots.filter("place IN %@", polygon).map(\.name), ["ring"])
        let box = try XCTUnwrap(GeoBox(bottomLeft: (1.0, 1.0), topRight: (6.0, 6.0)))
        XCTAssertEqual(spots.where { $0.place.geoWithin(box) }.map(\.name), ["ring", "hole"])
        let circle = try XCTUnwrap(GeoCircle(center: (20.0, 20.0), radius: try XCTUnwrap(Distance.kilometers(10))))
        XCTAssertEqual(spots.where { $0.place.geoWithin(circle) }.map(\.name), ["outside"])
        XCTAssertEqual(spots.where { !$0.place.geoWithin(box) && $0.place != nil }.count, 2)
    }

    func testF178To180_orderByOneOrMoreKeysAndAlongALink() throws {
        let realm = try makeFilledRealm()
        let dogs = realm.objects(Dog.self)
        XCTAssertEqual(dogs.sorted(byKeyPath: "name").map(\.name), ["Ada", "Max", "Rex"])
        XCTAssertEqual(dogs.sorted(by: \.age, ascending: false).map(\.name), ["Max", "Ada", "Rex"])
        XCTAssertEqual(dogs.sorted(byKeyPath: "owner.age", ascending: false).first?.name, "Max")
        XCTAssertEqual(
            dogs.sorted(by: [SortDescriptor(keyPath: "owner.name"), SortDescriptor(keyPath: "age", ascending: false)]).map(
                \.name), ["Ada", "Rex", "Max"])
        XCTAssertEqual(dogs.sorted(by: ["owner.name", "name"]).map(\.name), ["Ada", "Rex", "Max"])
        XCTAssertEqual(dogs.sorted(by: \.owner?.name).map { $0.owner?.name }, ["Ann", "Ann", "Bo"])
        try realm.write { dogs[0].owner = nil }
        // A path through no link at all comes last.
        XCTAssertNil(dogs.sorted(byKeyPath: "owner.name").last?.owner)
        XCTAssertNil(dogs.sorted(byKeyPath: "owner.name", ascending: false).first?.owner)
    }

    func testNilAndNotANumberComeFirst() throws {
        let realm = try makeRealm()
        try realm.write {
            for (key, value) in [("a", 2.0), ("b", nil), ("c", Double.nan), ("d", -.infinity), ("e", 1.0)] as [(String, Double?)]
            {
                realm.create(AllTypes.self, value: ["key": key, "optDouble": value as Any] as [String: Any])
            }
        }
        XCTAssertEqual(realm.objects(AllTypes.self).sorted(byKeyPath: "optDouble").map(\.key), ["b", "c", "d", "e", "a"])
        XCTAssertEqual(
            realm.objects(AllTypes.self).sorted(byKeyPath: "optDouble", ascending: false).map(\.key), ["a", "e", "d", "c", "b"])
    }

    func testF184_sumsOfEveryType() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 1...4 {
                realm.create(
                    AllTypes.self,
                    value: [
                        "key": "\(i)", "int": i, "float": Float(i) / 2, "double": Double(i) / 4,
                        "decimal": Decimal128(integerLiteral: Int64(i)), "int8": i,
                        "date": Date(timeIntervalSinceReferenceDate: Double(i)), "optInt": i == 1 ? NSNull() : i as Any,
                        "any": i == 4 ? "x" : i as Any,
                    ] as [String: Any])
            }
        }
        let all = realm.objects(AllTypes.self)
        XCTAssertEqual(all.sum(of: \.int), 10)
        XCTAssertEqual(all.sum(of: \.int8), 10)
        XCTAssertEqual(all.sum(of: \.float), 5)
        XCTAssertEqual(all.sum(of: \.double), 2.5)
        XCTAssertEqual(all.sum(of: \.decimal), 10)
        XCTAssertEqual(all.sum(of: \.optInt), 9)
        XCTAssertEqual(all.average(ofProperty: "int") as Double?, 2.5)
        XCTAssertEqual(all.average(of: \.double), 0.625)
        XCTAssertEqual(all.average(ofProperty: "optInt") as Double?, 3)
        XCTAssertEqual(all.min(of: \.date), Date(timeIntervalSinceReferenceDate: 1))
        XCTAssertEqual(all.max(of: \.date), Date(timeIntervalSinceReferenceDate: 4))
        XCTAssertEqual(all.min(of: \.optInt), 2)
        XCTAssertEqual(all.max(of: \.decimal), 4)
        XCTAssertEqual(all.sum(of: \.any).decimal128Value, 6)
        XCTAssertEqual(all.max(of: \.any), .string("x"))
        XCTAssertEqual(all.min(of: \.any), .int(1))
        try realm.write { all[1].double = .nan }
        XCTAssertEqual(all.sum(of: \.double), 2)
        XCTAssertEqual(all.average(of: \.double), 2.0 / 3)
        XCTAssertEqual(all.min(of: \.double), 0.25)
        let none = all.filter("int > 100")
        XCTAssertNil(none.min(of: \.int))
        XCTAssertNil(none.average(of: \.double))
        XCTAssertEqual(none.sum(of: \.double), 0)
    }

    func testF186_F188_chainsAndPositions() throws {
        let people = try makeFilledRealm().objects(Person.self)
        let chained = people.filter("age > 10").where { $0.name != "Cy" }.sorted(byKeyPath: "age", ascending: false).filter(
            "dogs.@count > 0")
        XCTAssertEqual(chained.map(\.name), ["Bo", "Ann"])
        XCTAssertEqual(chained.first?.name, "Bo")
        XCTAssertEqual(chained.last?.name, "Ann")
        XCTAssertEqual(chained[1].name, "Ann")
        XCTAssertEqual(chained.index(matching: "name == %@", "Ann"), 1)
        XCTAssertEqual(chained.index(matching: NSPredicate(format: "name == 'Bo'")), 0)
        XCTAssertEqual(chained.index(matching: { $0.age < 25 }), 1)
        XCTAssertNil(chained.index(matching: "name == 'Cy'"))
        XCTAssertEqual(Array(chained.enumerated()).map { "\($0.offset)\($0.element.name)" }, ["0Bo", "1Ann"])
    }

    func testF189_eachRealmHasItsOwnObjects() throws {
        let scratch = ScratchDirectory()
        let first = try makeRealm(), second = try makeFileRealm(scratch)
        try first.write { first.add(Dog(name: "Rex")) }
        try second.write { second.add([Dog(name: "Ada"), Dog(name: "Max")]) }
        XCTAssertEqual(first.objects(Dog.self).map(\.name), ["Rex"])
        XCTAssertEqual(second.objects(Dog.self).map(\.name), ["Ada", "Max"])
        XCTAssertNotEqual(first, second)
    }

    func testF190_distinctByOneOrMoreKeys() throws {
        let realm = try makeRealm()
        try realm.write {
            for (name, age) in [("a", 1), ("b", 1), ("a", 2), ("a", 1)] { realm.add(Dog(name: name, age: age)) }
        }
        let dogs = realm.objects(Dog.self)
        XCTAssertEqual(dogs.distinct(by: ["name"]).map(\.name), ["a", "b"])
        XCTAssertEqual(dogs.distinct(by: ["name", "age"]).count, 3)
        XCTAssertEqual(dogs.distinct(by: [\.age]).count, 2)
        XCTAssertEqual(dogs.sorted(byKeyPath: "age", ascending: false).distinct(by: ["name"]).map(\.age), [2, 1])
    }
}

private class SpotPlace: EmbeddedObject {
    @Persisted var type = "Point"
    @Persisted var coordinates: List<Double>
}

private class Spot: Object {
    @Persisted var name: String
    @Persisted var place: SpotPlace?
}
