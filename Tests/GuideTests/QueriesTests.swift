import Foundation
import RealmSwift
import XCTest

final class QueriesTests: GuideTestCase {
    private func makeRealm() throws -> Realm {
        let realm = try Realm()
        try realm.write {
            let wren = Bird("Wren", wingspan: 0.15), crane = Bird("Crane", wingspan: 2.2, isMigratory: true),
                robin = Bird("Robin", wingspan: 0.21, isMigratory: true)
            let day = Date(timeIntervalSince1970: 1_700_000_000)
            realm.add([wren, crane, robin])
            let pond = Place(value: ["name": "Pond"])
            pond.position = Position(latitude: 52.52, longitude: 13.4)
            let ida = realm.create(Watcher.self, value: ["name": "Ida"])
            ida.sightings.append(objectsIn: [
                Sighting(value: ["bird": wren, "number": 2, "day": day, "remark": "nest in the ivy"] as [String: Any]),
                Sighting(
                    value: ["bird": crane, "number": 80, "day": day + 86400, "place": pond, "certainty": Certainty.photographed]
                        as [String: Any]),
            ])
            ida.favourites["dawn"] = robin
            let tom = realm.create(Watcher.self, value: ["name": "Tom", "mentor": ida])
            tom.sightings.append(
                Sighting(value: ["bird": robin, "day": day + 172_800, "certainty": Certainty.heard] as [String: Any]))
            realm.create(
                Journal.self,
                value: ["title": "2026", "pages": AnyRealmValue.fromDictionary(["may": .fromArray([.int(3), .string("rain")])])]
                    as [String: Any])
        }
        return realm
    }

    func testTyped() throws {
        let realm = try makeRealm()
        let sightings = realm.objects(Sighting.self), watchers = realm.objects(Watcher.self)
        // sample: queries-typed
        let flocks = sightings.where { $0.number > 20 && $0.certainty == .photographed }
        let cranes = sightings.where { $0.bird.name == "Crane" }
        let few = sightings.where { $0.number.contains(1...5) || $0.remark == nil }
        let named = sightings.where { $0.bird.name.in(["Wren", "Robin"]) && !($0.number > 10) }
        // end
        XCTAssertEqual(flocks.count, 1)
        XCTAssertEqual(cranes.count, 1)
        XCTAssertEqual(few.count, 3)
        XCTAssertEqual(named.count, 2)

        // sample: queries-typed-text
        let nests = sightings.where { $0.remark.contains("NEST", options: .caseInsensitive) }
        let names = realm.objects(Bird.self).where { $0.name.starts(with: "C") || $0.name.like("?ob*") }
        // end
        XCTAssertEqual(nests.count, 1)
        XCTAssertEqual(names.map(\.name).sorted(), ["Crane", "Robin"])

        // sample: queries-typed-collections
        let busy = watchers.where { $0.sightings.count > 1 && $0.sightings.number.sum > 50 }
        let patient = watchers.where { $0.sightings.certainty == .heard }  // any of them
        let sure = watchers.where { ($0.sightings.number > 1 && $0.sightings.certainty == .photographed).count >= 1 }  // one that is both
        let dawn = watchers.where { $0.favourites.keys == "dawn" && $0.favourites["dawn"].name == "Robin" }
        // end
        XCTAssertEqual(busy.map(\.name), ["Ida"])
        XCTAssertEqual(patient.map(\.name), ["Tom"])
        XCTAssertEqual(sure.map(\.name), ["Ida"])
        XCTAssertEqual(dawn.map(\.name), ["Ida"])
    }

    func testPredicates() throws {
        let realm = try makeRealm()
        let sightings = realm.objects(Sighting.self), watchers = realm.objects(Watcher.self)
        let name = "Crane", start = Date(timeIntervalSince1970: 1_700_000_000)
        // sample: queries-text
        let cranes = sightings.filter("bird.name == %@ AND day > %@", name, start)
        let some = sightings.filter("number BETWEEN {2, 100} OR remark == nil")
        let either = sightings.filter("bird.name IN %@", ["Wren", "Robin"])
        let like = sightings.filter("remark CONTAINS[c] 'NEST' OR bird.name LIKE '?ob*'")
        let path = sightings.filter("%K >= %@", "bird.wingspan", 0.2)
        // end
        XCTAssertEqual(cranes.count, 1)
        XCTAssertEqual(some.count, 3)
        XCTAssertEqual(either.count, 2)
        XCTAssertEqual(like.count, 2)
        XCTAssertEqual(path.count, 2)

        // sample: queries-text-collections
        let patient = watchers.filter("ANY sightings.certainty == %@", Certainty.heard)
        let busy = watchers.filter("sightings.@sum.number > 50 AND sightings.@count > 1")
        let none = watchers.filter("NONE sightings.bird.isMigratory == true")
        let sure = watchers.filter(
            "SUBQUERY(sightings, $s, $s.number > 1 AND $s.certainty == %@).@count > 0", Certainty.photographed)
        // end
        XCTAssertEqual(patient.map(\.name), ["Tom"])
        XCTAssertEqual(busy.map(\.name), ["Ida"])
        XCTAssertEqual(none.count, 0)
        XCTAssertEqual(sure.map(\.name), ["Ida"])

        // sample: queries-predicate
        let heard = NSPredicate(format: "certainty == %@", Certainty.heard)
        let many = NSPredicate(format: "number > %d", 20)
        let found = sightings.filter(NSCompoundPredicate(orPredicateWithSubpredicates: [heard, many]))
        // end
        XCTAssertEqual(found.count, 2)

        // sample: queries-language
        let top = sightings.filter("number > 0 SORT(number DESC) LIMIT(1)")
        let twice = sightings.filter("number * 2 > 100")
        let linked = realm.objects(Bird.self).filter("@links.Sighting.bird.@count > 0")
        // end
        XCTAssertEqual(top.map(\.number), [80])
        XCTAssertEqual(twice.map(\.number), [80])
        XCTAssertEqual(linked.count, 3)
    }

    func testChainsAndOrder() throws {
        let realm = try makeRealm()
        // sample: queries-chain
        let sightings = realm.objects(Sighting.self)
            .where { $0.bird.isMigratory }
            .filter("number > 0")
            .sorted(by: [SortDescriptor(keyPath: "bird.name"), SortDescriptor(keyPath: \Sighting.day, ascending: false)])
        print(sightings.first?.bird?.name ?? "none")
        for sighting in sightings.prefix(10) {
            print(sighting.number)
        }
        // end
        XCTAssertEqual(sightings.map { $0.bird?.name }, ["Crane", "Robin"])

        // sample: queries-distinct
        let oneForEach = realm.objects(Sighting.self).distinct(by: ["certainty"])
        let position = realm.objects(Bird.self).sorted(by: \.wingspan).index(matching: { $0.name == "Robin" })
        // end
        XCTAssertEqual(oneForEach.count, 3)
        XCTAssertEqual(position, 1)
    }

    func testAggregates() throws {
        let realm = try makeRealm()
        // sample: queries-aggregates
        let sightings = realm.objects(Sighting.self)
        let total = sightings.sum(of: \.number)
        let largest = sightings.max(of: \.number)
        let first: Date? = sightings.min(ofProperty: "day")
        let mean: Double? = sightings.average(ofProperty: "number")
        // end
        XCTAssertEqual(total, 83)
        XCTAssertEqual(largest, 80)
        XCTAssertEqual(first, Date(timeIntervalSince1970: 1_700_000_000))
        XCTAssertEqual(try XCTUnwrap(mean), 83 / 3, accuracy: 0.001)
    }

    func testPlaces() throws {
        let realm = try makeRealm()
        // sample: queries-geo
        let berlin = GeoPoint(latitude: 52.52, longitude: 13.405)!
        let near = realm.objects(Sighting.self).where {
            $0.place.position.geoWithin(GeoCircle(center: berlin, radius: .kilometers(10)!))
        }
        let box = GeoBox(bottomLeft: (52, 13), topRight: (53, 14))!
        let inBox = realm.objects(Sighting.self).filter("place.position IN %@", box)
        // end
        XCTAssertEqual(near.map(\.number), [80])
        XCTAssertEqual(inBox.map(\.number), [80])
    }

    func testValuesOfEveryType() throws {
        let realm = try makeRealm()
        // sample: queries-any
        let rainy = realm.objects(Journal.self).where { $0.pages["may"][1] == .string("rain") }
        let dictionaries = realm.objects(Journal.self).filter("pages.@type == 'object'")
        // end
        XCTAssertEqual(rainy.count, 1)
        XCTAssertEqual(dictionaries.count, 1)
    }

    func testKeys() throws {
        let realm = try makeRealm()
        // sample: queries-key
        if let wren = realm.object(ofType: Bird.self, forPrimaryKey: "Wren") {
            print(wren.wingspan)
        }
        // end
        XCTAssertNotNil(realm.object(ofType: Bird.self, forPrimaryKey: "Wren"))
    }
}
