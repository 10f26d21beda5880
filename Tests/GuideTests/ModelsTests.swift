import Foundation
import RealmSwift
import XCTest

// sample: models-enum
enum Certainty: Int, PersistableEnum {
    case heard, seen, photographed
}
// end

// sample: models-class
class Sighting: Object {
    @Persisted(primaryKey: true) var id: ObjectId
    @Persisted(indexed: true) var day = Date()
    @Persisted var number = 1
    @Persisted var certainty = Certainty.seen
    @Persisted var remark: String?  // may be nil
    @Persisted var bird: Bird?
    @Persisted var place: Place?
    @Persisted(originProperty: "sightings") var watchers: LinkingObjects<Watcher>

    var isFlock: Bool { number > 20 }  // computed: not stored
    var isSelected = false  // without @Persisted: not stored
}
// end

// sample: models-mapped
struct Degrees: CustomPersistable {
    var celsius: Double

    init(celsius: Double) { self.celsius = celsius }

    init(persistedValue: Double) { celsius = persistedValue }
    var persistableValue: Double { celsius }
}

struct Ring: FailableCustomPersistable {  // the number on a ringed bird's leg
    let number: Int

    init?(persistedValue: String) {
        guard let number = Int(persistedValue) else { return nil }
        self.number = number
    }
    var persistableValue: String { String(number) }
}

class Station: Object {
    @Persisted(primaryKey: true) var name: String
    @Persisted var temperature: Degrees?
    @Persisted var rings: List<Ring>
    @Persisted var position: Position?
}
// end

// sample: models-names
class Journal: Object {
    @Persisted(primaryKey: true) var id = UUID()
    @Persisted var title: String
    @Persisted var pages: AnyRealmValue

    override class func propertiesMapping() -> [String: String] {
        ["title": "journal_title"]  // name in Swift: name in the file
    }
}
// end

// sample: models-inheritance
class Enclosure: Object {
    @Persisted(primaryKey: true) var number: Int
    @Persisted var area: Double
}

class Aviary: Enclosure {
    @Persisted var height: Double
}
// end

// sample: models-outside
class Draft: Object {
    @Persisted var text: String

    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
// end

// sample: models-projection
class SightingRow: Projection<Sighting> {
    @Projected(\Sighting.bird?.name) var title
    @Projected(\Sighting.place?.name) var spot
    @Projected(\Sighting.number) var number
}

class WatcherRow: Projection<Watcher> {
    @Projected(\Watcher.name) var name
    @Projected(\Watcher.sightings.projectTo.number) var numbers: ProjectedCollection<Int>
}
// end

final class ModelsTests: GuideTestCase {
    override class var types: [ObjectBase.Type] { super.types + [Enclosure.self, Aviary.self] }

    func testDefaultsAndWhatIsStored() throws {
        let realm = try Realm()
        // sample: models-defaults
        let sighting = Sighting()
        print(sighting.id)  // a new ObjectId, the same at every read
        print(sighting.certainty)  // seen
        print(sighting.remark as Any)  // nil
        // end
        XCTAssertEqual(sighting.id, sighting.id)
        XCTAssertEqual(sighting.certainty, .seen)
        sighting.isSelected = true
        try realm.write { realm.add(sighting) }
        XCTAssertTrue(sighting.isSelected)
        XCTAssertFalse(try XCTUnwrap(realm.objects(Sighting.self).first).isFlock)
        XCTAssertEqual(
            realm.schema["Sighting"]?.properties.map(\.name),
            ["id", "day", "number", "certainty", "remark", "bird", "place", "watchers"])
    }

    func testMappedTypes() throws {
        let realm = try Realm()
        // sample: models-mapped-use
        let station = Station(value: ["name": "Dune", "temperature": Degrees(celsius: 18.5)] as [String: Any])
        station.rings.append(Ring(persistedValue: "4711")!)
        try realm.write { realm.add(station) }

        let warm = realm.objects(Station.self).where { $0.temperature.persistableValue > 15 }
        print(warm.first?.temperature?.celsius ?? 0)
        // end
        XCTAssertEqual(warm.first?.temperature?.celsius, 18.5)
        XCTAssertEqual(warm.first?.rings.first?.number, 4711)
        XCTAssertEqual(realm.schema["Station"]?["temperature"]?.type, .double)
    }

    func testNames() throws {
        let realm = try Realm()
        // sample: models-schema
        for property in realm.schema["Journal"]!.properties {
            print(property.name, property.columnName, property.type.rawValue, property.isOptional)
        }
        // end
        XCTAssertEqual(realm.schema["Journal"]?["title"]?.columnName, "journal_title")
        try realm.write { realm.add(Journal(value: ["title": "2026"])) }
        XCTAssertEqual(realm.objects(Journal.self).filter("title == '2026'").count, 1)
    }

    func testInheritance() throws {
        let realm = try Realm()
        // sample: models-inheritance-use
        try realm.write {
            realm.add(Enclosure(value: ["number": 1, "area": 40.0] as [String: Any]))
            realm.add(Aviary(value: ["number": 1, "area": 25.0, "height": 6.0] as [String: Any]))
        }
        print(realm.objects(Enclosure.self).count)  // 1: the aviary is in a table of its own
        // end
        XCTAssertEqual(realm.objects(Enclosure.self).count, 1)
        XCTAssertEqual(realm.objects(Aviary.self).first?.area, 25)
    }

    func testASubsetOfClasses() throws {
        // sample: models-subset
        let configuration = Realm.Configuration(inMemoryIdentifier: "drafts", objectTypes: [Draft.self])
        let drafts = try Realm(configuration: configuration)
        // end
        XCTAssertEqual(drafts.schema.objectSchema.map(\.className), ["Draft"])
    }

    func testProjections() throws {
        let realm = try Realm()
        try realm.write {
            let watcher = realm.create(Watcher.self, value: ["name": "Ida"])
            watcher.sightings.append(
                Sighting(value: ["bird": Bird("Wren", wingspan: 0.15), "place": ["name": "Hedge"], "number": 2] as [String: Any]))
        }
        // sample: models-projection-use
        for row in realm.objects(SightingRow.self).filter("number > 1") {
            print(row.title ?? "unknown", row.spot ?? "somewhere", row.number)
        }
        let numbers = realm.objects(WatcherRow.self).first!.numbers
        print(numbers.reduce(0, +))
        // end
        let row = try XCTUnwrap(realm.objects(SightingRow.self).first)
        XCTAssertEqual(row.title, "Wren")
        XCTAssertEqual(row.spot, "Hedge")
        XCTAssertEqual(Array(numbers), [2])
        try realm.write { row.number = 3 }
        XCTAssertEqual(row.rootObject.number, 3)
    }

    func testObjectsByName() throws {
        let realm = try Realm()
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        // sample: models-dynamic
        let wren = realm.dynamicObject(ofType: "Bird", forPrimaryKey: "Wren")!
        print(wren.wingspan as? Double ?? 0)
        for property in wren.objectSchema.properties {
            print(property.name, wren[property.name] ?? "nil")
        }
        // end
        XCTAssertEqual(wren["wingspan"] as? Double, 0.15)
        XCTAssertEqual(wren.objectSchema.properties.count, 3)
    }
}
