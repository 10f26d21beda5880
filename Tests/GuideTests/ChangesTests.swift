import Foundation
import RealmSwift
import XCTest

struct NoSuchBird: Error {}

// sample: crud-codable
class Species: Object, Codable {
    @Persisted(primaryKey: true) var code: String
    @Persisted var names: Map<String, String>
    @Persisted var weight: Double?
}
// end

final class ChangesTests: GuideTestCase {
    override class var types: [ObjectBase.Type] { super.types + [Species.self] }

    func testCreating() throws {
        let realm = try Realm()
        // sample: crud-create
        let wren = Bird()  // unmanaged: a plain object
        wren.name = "Wren"
        wren.wingspan = 0.15

        try realm.write {
            realm.add(wren)  // managed from now on: the same instance
            realm.create(Bird.self, value: ["name": "Robin", "wingspan": 0.21] as [String: Any])
            realm.create(Bird.self, value: ["Raven", 1.2, false] as [Any])  // in the order of the properties
        }
        // end
        XCTAssertEqual(realm.objects(Bird.self).map(\.name).sorted(), ["Raven", "Robin", "Wren"])

        // sample: crud-nested
        try realm.write {
            realm.create(
                Sighting.self,
                value: [
                    "number": 4,
                    "bird": wren,
                    "place": ["name": "Hedge"],
                ] as [String: Any])
        }
        // end
        XCTAssertEqual(realm.objects(Sighting.self).first?.place?.name, "Hedge")
    }

    func testJSON() throws {
        let realm = try Realm()
        // sample: crud-json
        let answer = Data(#"[{"name": "Wren", "wingspan": 0.15}, {"name": "Crane", "wingspan": 2.2, "isMigratory": true}]"#.utf8)
        let birds = try JSONSerialization.jsonObject(with: answer) as! [[String: Any]]
        try realm.write {
            for bird in birds {
                realm.create(Bird.self, value: bird, update: .modified)
            }
        }
        // end
        XCTAssertEqual(realm.objects(Bird.self).where { $0.isMigratory }.map(\.name), ["Crane"])

        // sample: crud-codable-use
        let text = #"{"code": "turmer", "names": {"en": "Blackbird", "de": "Amsel"}}"#
        let blackbird = try JSONDecoder().decode(Species.self, from: Data(text.utf8))
        try realm.write {
            realm.add(blackbird)
        }
        // end
        XCTAssertEqual(realm.objects(Species.self).first?.names["de"], "Amsel")
    }

    func testUpdating() throws {
        let realm = try Realm()
        try realm.write { realm.add([Bird("Wren", wingspan: 0.15), Bird("Robin", wingspan: 0.21, isMigratory: true)]) }
        // sample: crud-update
        let wren = realm.object(ofType: Bird.self, forPrimaryKey: "Wren")!
        try realm.write {
            wren.wingspan = 0.16
            wren["isMigratory"] = true  // by name
            realm.objects(Bird.self).setValue(false, forKey: "isMigratory")  // all of them
        }
        // end
        XCTAssertEqual(wren.wingspan, 0.16)
        XCTAssertEqual(realm.objects(Bird.self).where { $0.isMigratory }.count, 0)

        // sample: crud-upsert
        try realm.write {
            // Writes all properties of the bird with this key, or adds it.
            realm.add(Bird("Wren", wingspan: 0.15), update: .all)
            // Writes what differs. Properties that are not named keep their values.
            realm.create(Bird.self, value: ["name": "Robin", "isMigratory": true] as [String: Any], update: .modified)
        }
        // end
        XCTAssertEqual(wren.wingspan, 0.15)
        XCTAssertEqual(realm.object(ofType: Bird.self, forPrimaryKey: "Robin")?.wingspan, 0.21)
    }

    func testDeleting() throws {
        let realm = try Realm()
        try realm.write {
            realm.create(Watcher.self, value: ["name": "Ida", "sightings": [["number": 1], ["number": 2]]] as [String: Any])
            realm.add([Bird("Wren", wingspan: 0.15), Bird("Robin", wingspan: 0.21)])
        }
        let ida = realm.objects(Watcher.self).first!
        // sample: crud-delete
        try realm.write {
            realm.delete(ida.sightings)  // what she saw; links do not delete by themselves
            realm.delete(ida)
            realm.delete(realm.objects(Bird.self).where { $0.wingspan < 0.2 })
        }
        print(ida.isInvalidated)  // true: reading its properties would stop the process
        // end
        XCTAssertTrue(ida.isInvalidated)
        XCTAssertEqual(realm.objects(Sighting.self).count, 0)
        XCTAssertEqual(realm.objects(Bird.self).map(\.name), ["Robin"])

        // sample: crud-delete-all
        try realm.write {
            realm.deleteAll()
        }
        // end
        XCTAssertTrue(realm.isEmpty)
    }

    func testTransactions() throws {
        let realm = try Realm()
        // sample: crud-result
        let wren = try realm.write {
            realm.create(Bird.self, value: ["name": "Wren"])
        }
        // end
        // sample: crud-rollback
        do {
            try realm.write {
                wren.wingspan = 15
                if wren.wingspan > 4 { throw NoSuchBird() }
            }
        } catch is NoSuchBird {
            print(wren.wingspan)  // 0.0: nothing of the block has happened
        }
        // end
        XCTAssertEqual(wren.wingspan, 0)

        // sample: crud-begin
        realm.beginWrite()
        wren.wingspan = 0.15
        if wren.name.isEmpty {
            realm.cancelWrite()
        } else {
            try realm.commitWrite()
        }
        // end
        XCTAssertEqual(wren.wingspan, 0.15)
        XCTAssertFalse(realm.isInWriteTransaction)
    }

    func testCopies() throws {
        let realm = try Realm()
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        let wren = realm.objects(Bird.self).first!
        // sample: crud-copy
        let detached = Bird(value: wren)  // unmanaged, with the same values
        detached.wingspan = 0.2  // no transaction: nothing is stored
        // end
        XCTAssertNil(detached.realm)
        XCTAssertEqual(wren.wingspan, 0.15)

        // sample: crud-copy-other
        let other = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: "other", objectTypes: [Bird.self]))
        try other.write {
            other.create(Bird.self, value: wren)  // a copy in another Realm
        }
        // end
        XCTAssertEqual(other.objects(Bird.self).first?.name, "Wren")
    }
}
