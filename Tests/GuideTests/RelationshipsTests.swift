import Foundation
import RealmSwift
import XCTest

// sample: relationships-classes
class Watcher: Object {
    @Persisted(primaryKey: true) var id: UUID
    @Persisted var name: String
    @Persisted var mentor: Watcher?  // to one; always optional
    @Persisted var sightings: List<Sighting>  // to many, in order
    @Persisted var friends: MutableSet<Watcher>  // to many, each once
    @Persisted var favourites: Map<String, Bird?>  // by key; values that are objects are optional
    @Persisted var hides: List<Place>  // embedded objects
    @Persisted(originProperty: "mentor") var pupils: LinkingObjects<Watcher>
}
// end

// sample: relationships-embedded
class Place: EmbeddedObject {
    @Persisted var name: String
    @Persisted var position: Position?
}

class Position: EmbeddedObject {
    @Persisted private var type = "Point"
    @Persisted private var coordinates: List<Double>  // longitude, latitude

    var latitude: Double { coordinates[1] }
    var longitude: Double { coordinates[0] }

    convenience init(latitude: Double, longitude: Double) {
        self.init()
        coordinates.append(objectsIn: [longitude, latitude])
    }
}
// end

final class RelationshipsTests: GuideTestCase {
    func testLinks() throws {
        let realm = try Realm()
        // sample: relationships-links
        let ida = Watcher(value: ["name": "Ida"])
        let tom = Watcher(value: ["name": "Tom"])
        tom.mentor = ida
        tom.sightings.append(Sighting(value: ["number": 3]))
        tom.friends.insert(ida)
        tom.favourites["song"] = Bird("Blackbird", wingspan: 0.36)
        try realm.write {
            realm.add(tom)  // adds Ida, the sighting and the bird too
        }
        print(realm.objects(Watcher.self).count)  // 2
        // end
        XCTAssertEqual(realm.objects(Watcher.self).count, 2)
        XCTAssertEqual(realm.objects(Bird.self).count, 1)

        // sample: relationships-inverse
        for pupil in ida.pupils {
            print("\(pupil.name) learns from \(ida.name)")
        }
        print(tom.sightings[0].watchers.first?.name ?? "nobody")  // Tom
        // end
        XCTAssertEqual(ida.pupils.map(\.name), ["Tom"])
        XCTAssertEqual(tom.sightings[0].watchers.first?.name, "Tom")

        // sample: relationships-delete
        try realm.write {
            realm.delete(ida)
        }
        print(tom.mentor as Any)  // nil
        print(tom.friends.count)  // 0
        // end
        XCTAssertNil(tom.mentor)
        XCTAssertEqual(tom.friends.count, 0)
    }

    func testEmbeddedObjects() throws {
        let realm = try Realm()
        // sample: relationships-embedded-use
        let sighting = Sighting()
        sighting.place = Place(value: ["name": "North pond"])
        sighting.place?.position = Position(latitude: 52.6, longitude: 13.3)
        try realm.write {
            realm.add(sighting)
        }

        try realm.write {
            sighting.place?.name = "South pond"  // changes the place
            sighting.place = Place(value: ["name": "Meadow"])  // replaces it: the old one is deleted
        }
        // end
        XCTAssertEqual(sighting.place?.name, "Meadow")
        XCTAssertNil(sighting.place?.position)

        // sample: relationships-embedded-list
        let watcher = try realm.write {
            realm.create(Watcher.self, value: ["name": "Ida", "hides": [["name": "Reeds"], ["name": "Tower"]]] as [String: Any])
        }
        try realm.write {
            realm.delete(watcher)  // and with her the two hides
        }
        // end
        XCTAssertEqual(realm.dynamicObjects("Place").count, 1)
    }

    func testQueriesAcrossLinks() throws {
        let realm = try Realm()
        try realm.write {
            realm.create(
                Watcher.self, value: ["name": "Ida", "sightings": [["number": 30, "place": ["name": "Pond"]]]] as [String: Any])
            realm.create(Watcher.self, value: ["name": "Tom", "sightings": [["number": 1]]] as [String: Any])
        }
        // sample: relationships-query
        let lucky = realm.objects(Watcher.self).where { $0.sightings.count > 0 && $0.sightings.place.name == "Pond" }
        let idas = realm.objects(Sighting.self).where { $0.watchers.name == "Ida" }
        // end
        XCTAssertEqual(lucky.map(\.name), ["Ida"])
        XCTAssertEqual(idas.map(\.number), [30])
    }
}
