import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Data of web services.
final class JSONTests: RealmTestCase {
    private static let response = #"""
        {"venues": [
          {"id": "4c82f2", "name": "Golden Gate Park", "verified": true, "rating": 9.5, "categories": ["park", "garden"],
           "contact": {"phone": "4152", "twitter": "ggp"}, "location": {"lat": 37.7, "lng": -122.4, "postalCode": "94117"}},
          {"id": "5b91a0", "name": "Ferry Building", "verified": null, "rating": 8, "categories": null,
           "contact": {"phone": "4150", "twitter": null}, "location": {"lat": 37.8, "lng": -122.39, "postalCode": "94105"}}
        ]}
        """#

    private func venues() throws -> [[String: Any]] {
        let json = try JSONSerialization.jsonObject(with: Data(JSONTests.response.utf8)) as? [String: Any]
        return try XCTUnwrap(json?["venues"] as? [[String: Any]])
    }

    func testF027_F412_venuesBecomeObjects() throws {
        let realm = try makeRealm()
        try realm.write {
            for venue in try venues() { realm.create(Venue.self, value: venue, update: .modified) }
        }
        XCTAssertEqual(realm.objects(Venue.self).count, 2)
        let park = try XCTUnwrap(realm.object(ofType: Venue.self, forPrimaryKey: "4c82f2"))
        XCTAssertEqual(park.name, "Golden Gate Park")
        XCTAssertEqual(park.contact?.twitter, "ggp")
        XCTAssertEqual(park.location?.lng, -122.4)
        XCTAssertEqual(Array(park.categories), ["park", "garden"])
        XCTAssertEqual(park.verified, true)
        let ferry = try XCTUnwrap(realm.object(ofType: Venue.self, forPrimaryKey: "5b91a0"))
        XCTAssertEqual(ferry.rating, 8)
        XCTAssertEqual(ferry.categories.count, 0)
    }

    func testF413_aSecondImportMakesNoDuplicates() throws {
        let realm = try makeRealm()
        for _ in 0..<2 {
            try realm.write {
                for venue in try venues() { realm.create(Venue.self, value: venue, update: .all) }
            }
        }
        XCTAssertEqual(realm.objects(Venue.self).count, 2)
        XCTAssertEqual(realm.objects(Contact.self).count, 2)
        XCTAssertEqual(realm.dynamicObjects("Location").count, 2)
        try realm.write {
            realm.create(
                Venue.self, value: ["id": "5b91a0", "contact": ["phone": "4150", "twitter": "ferry"]] as [String: Any],
                update: .modified)
        }
        XCTAssertEqual(realm.object(ofType: Contact.self, forPrimaryKey: "4150")?.twitter, "ferry")
        XCTAssertEqual(realm.object(ofType: Venue.self, forPrimaryKey: "5b91a0")?.name, "Ferry Building")
    }

    func testF414_importOnAQueue() throws {
        let configuration = configuration(), list = UnsafeSharing(try venues())
        let kept = try Realm(configuration: configuration)
        let done = expectation(description: "imported")
        DispatchQueue(label: "import").async {
            do {
                let realm = try Realm(configuration: configuration)
                try realm.write {
                    for venue in list.value { realm.create(Venue.self, value: venue, update: .modified) }
                }
            } catch {
                XCTFail("\(error)")
            }
            done.fulfill()
        }
        wait(for: [done], timeout: TestTime.limit(10))
        kept.refresh()
        XCTAssertEqual(kept.objects(Venue.self).count, 2)
    }

    func testF415_manyObjectsInOneTransaction() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 0..<20_000 { realm.create(Owner.self, value: ["id": i]) }
        }
        XCTAssertEqual(realm.objects(Owner.self).count, 20_000)
        XCTAssertEqual(realm.object(ofType: Owner.self, forPrimaryKey: 19_999)?.id, 19_999)
        XCTAssertEqual(realm.objects(Owner.self).filter("id > 19989").count, 10)
    }

    func testF416_nullForOptionalProperties() throws {
        let realm = try makeRealm()
        try realm.write {
            for venue in try venues() { realm.create(Venue.self, value: venue) }
        }
        let ferry = try XCTUnwrap(realm.object(ofType: Venue.self, forPrimaryKey: "5b91a0"))
        XCTAssertNil(ferry.verified)
        XCTAssertNil(ferry.contact?.twitter)
    }

    func testF417_collectionsAndValuesAreCoded() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        func text<T: Encodable>(_ value: T) throws -> String { String(decoding: try encoder.encode(value), as: UTF8.self) }
        func value<T: Decodable>(_ text: String, _ type: T.Type = T.self) throws -> T {
            try JSONDecoder().decode(T.self, from: Data(text.utf8))
        }
        let list: List<Int?> = try value("[1, null, 3]")
        XCTAssertEqual(Array(list), [1, nil, 3])
        XCTAssertEqual(try text(list), "[1,null,3]")
        let set: MutableSet<String> = try value(#"["a", "b", "a"]"#)
        XCTAssertEqual(set.count, 2)
        let map: Map<String, Double> = try value(#"{"a": 1.5, "b": 2}"#)
        XCTAssertEqual(map["b"], 2)
        XCTAssertEqual(try text(map), #"{"a":1.5,"b":2}"#)
        let id = ObjectId.generate()
        XCTAssertEqual(try text([id]), "[\"\(id)\"]")
        XCTAssertEqual(try value("[\"\(id)\"]", [ObjectId].self), [id])
        XCTAssertThrowsError(try value("[\"zz\"]", [ObjectId].self))
        XCTAssertEqual(try value(#"["1.50", 2, 2.5]"#, [Decimal128].self).map(\.stringValue), ["1.50", "2", "2.5"])
        XCTAssertEqual(try text([Decimal128("1.50")]), #"["1.50"]"#)
        XCTAssertThrowsError(try value(#"["x"]"#, [Decimal128].self))
        let realm = try makeRealm()
        let object = AllTypes(value: ["key": "k", "ints": [1, 2]] as [String: Any])
        try realm.write { realm.add(object) }
        XCTAssertEqual(try text(object.ints), "[1,2]")
        XCTAssertEqual(try text(object.ints.sorted(ascending: false)), "[2,1]")
        XCTAssertEqual(try text(AnyRealmCollection(object.ints)), "[1,2]")
    }

    /// Identifiers that nobody has read are made once too.
    func testF068_theDefaultsThatAreEncodedAreThoseThatAreStored() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [CodableTicket.self]))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let ticket = CodableTicket()
        let first = try encoder.encode(ticket), second = try encoder.encode(ticket)
        XCTAssertEqual(first, second)
        let values = try XCTUnwrap(JSONSerialization.jsonObject(with: first) as? [String: String])
        XCTAssertEqual(values["id"], ticket.id.stringValue)
        XCTAssertEqual(values["token"], ticket.token.uuidString)
        XCTAssertEqual(values["mapped"], ticket.mapped.uuid.uuidString)
        let stored = CodableTicket()
        let sent = try JSONSerialization.jsonObject(with: encoder.encode(stored)) as? [String: String]
        try realm.write { realm.add(stored) }
        XCTAssertEqual(sent?["id"], realm.objects(CodableTicket.self).first?.id.stringValue)
        XCTAssertEqual(sent?["token"], realm.objects(CodableTicket.self).first?.token.uuidString)
        XCTAssertNotEqual(CodableTicket().id, CodableTicket().id)
        XCTAssertNotEqual(CodableTicket().token, CodableTicket().token)
        let decoded = try JSONDecoder().decode(CodableTicket.self, from: first)
        XCTAssertEqual(decoded.token, ticket.token)
    }

    func testAManagedObjectIsNotEncodedBySynthesizedCode() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [CodableDog.self]))
        let dog = CodableDog(value: ["name": "Rex"])
        try realm.write { realm.add(dog) }
        XCTAssertThrowsError(try JSONEncoder().encode(dog)) { XCTAssertTrue($0 is EncodingError) }
    }
}

final class CodableTicket: Object, Codable {
    @Persisted(primaryKey: true) var id: ObjectId
    @Persisted var token: UUID
    @Persisted var mapped: TicketNumber
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

struct TicketNumber: CustomPersistable, Codable {
    var uuid: UUID
    init(persistedValue: UUID) { uuid = persistedValue }
    var persistableValue: UUID { uuid }
    init(from decoder: any Decoder) throws { uuid = try decoder.singleValueContainer().decode(UUID.self) }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uuid)
    }
}
