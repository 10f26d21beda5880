import Foundation
import RealmSwift
import TestSupport
import XCTest

/// The classes of an application as they were in its first version.
enum FirstVersion {
    // sample: migrations-before
    class Nest: Object {
        @Persisted var finder: String
        @Persisted var eggs: Int
        @Persisted var height: String
        // end
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Feeder: Object {
        @Persisted var street: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

enum SecondVersion {
    class Nest: Object {
        @Persisted var foundBy: String
        @Persisted var eggCount: Int
        @Persisted var height: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

/// And as they are now.
enum ThirdVersion {
    // sample: migrations-after
    class Nest: Object {
        @Persisted(primaryKey: true) var id: ObjectId  // new
        @Persisted var foundBy: String  // was `finder`
        @Persisted var eggCount: Int  // was `eggs`
        @Persisted var height: Double  // was a String
        @Persisted var isOccupied = true  // new
        // end
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    // sample: migrations-embedded-after
    class Spot: EmbeddedObject {
        @Persisted var street: String
        // end
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Feeder: Object {
        @Persisted var spot: Spot?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

final class MigrationsTests: GuideTestCase {
    private let scratch = ScratchDirectory("Migrations")
    private var url: URL { URL(fileURLWithPath: scratch.file("nests.realm")) }

    private func makeFirstFile() throws {
        try autoreleasepool {
            let realm = try Realm(
                configuration: Realm.Configuration(fileURL: url, objectTypes: [FirstVersion.Nest.self, FirstVersion.Feeder.self]))
            try realm.write {
                realm.create(FirstVersion.Nest.self, value: ["finder": "Ida", "eggs": 4, "height": "2.5"] as [String: Any])
                realm.create(FirstVersion.Nest.self, value: ["finder": "Tom", "eggs": 0, "height": "low"] as [String: Any])
                realm.create(FirstVersion.Feeder.self, value: ["street": "Mill Lane"])
            }
        }
    }

    private func makeSecondFile() throws {
        try autoreleasepool {
            let realm = try Realm(
                configuration: Realm.Configuration(fileURL: url, schemaVersion: 1, objectTypes: [SecondVersion.Nest.self]))
            try realm.write {
                realm.create(SecondVersion.Nest.self, value: ["foundBy": "Ida", "eggCount": 4, "height": "2.5"] as [String: Any])
            }
        }
    }

    // sample: migrations-block
    static let configuration = Realm.Configuration(
        schemaVersion: 2,
        migrationBlock: { migration, oldVersion in
            if oldVersion < 1 {
                migration.renameProperty(onType: "Nest", from: "finder", to: "foundBy")
                migration.renameProperty(onType: "Nest", from: "eggs", to: "eggCount")
            }
            if oldVersion < 2 {
                migration.enumerateObjects(ofType: "Nest") { old, new in
                    new!["id"] = ObjectId.generate()
                    new!["height"] = Double(old!["height"] as! String) ?? 0
                    new!["isOccupied"] = true
                }
            }
        })
    // end

    private func configuration() -> Realm.Configuration {
        var configuration = MigrationsTests.configuration
        configuration.fileURL = url
        configuration.objectTypes = [ThirdVersion.Nest.self]
        return configuration
    }

    func testFromTheFirstVersion() throws {
        try makeFirstFile()
        let realm = try Realm(configuration: configuration())
        let nests = realm.objects(ThirdVersion.Nest.self)
        XCTAssertEqual(nests.map(\.foundBy), ["Ida", "Tom"])
        XCTAssertEqual(nests.map(\.eggCount), [4, 0])
        XCTAssertEqual(nests.map(\.height), [2.5, 0])
        XCTAssertEqual(Set(nests.map(\.id)).count, 2)
        XCTAssertTrue(nests.allSatisfy { $0.isOccupied })
    }

    func testFromTheSecondVersion() throws {
        try makeSecondFile()
        let realm = try Realm(configuration: configuration())
        let nests = realm.objects(ThirdVersion.Nest.self)
        XCTAssertEqual(nests.map(\.foundBy), ["Ida"])
        XCTAssertEqual(nests.map(\.height), [2.5])
    }

    func testWithoutANewVersion() throws {
        try makeFirstFile()
        var configuration = configuration()
        configuration.schemaVersion = 0
        // sample: migrations-error
        do {
            _ = try Realm(configuration: configuration)
        } catch Realm.Error.schemaMismatch {
            print("the classes have changed: raise the schema version")
        }
        // end
        XCTAssertThrowsError(try Realm(configuration: configuration)) { error in
            XCTAssertEqual((error as? Realm.Error)?.code, .schemaMismatch)
            XCTAssertTrue("\(error)".contains("Nest.finder"), "\(error)")
        }
    }

    func testFromObjectToEmbeddedObject() throws {
        try makeFirstFile()
        let file = url
        // sample: migrations-embedded
        let configuration = Realm.Configuration(
            fileURL: file, schemaVersion: 1,
            migrationBlock: { migration, _ in
                migration.enumerateObjects(ofType: "Feeder") { old, new in
                    new!["spot"] = ["street": old!["street"]!]
                }
            }, objectTypes: [ThirdVersion.Feeder.self, ThirdVersion.Spot.self])
        // end
        XCTAssertEqual(try Realm(configuration: configuration).objects(ThirdVersion.Feeder.self).first?.spot?.street, "Mill Lane")
    }

    func testCreatingAndDeleting() throws {
        try makeFirstFile()
        var configuration = configuration()
        // sample: migrations-create
        configuration.migrationBlock = { migration, _ in
            migration.renameProperty(onType: "Nest", from: "finder", to: "foundBy")
            migration.enumerateObjects(ofType: "Nest") { old, new in
                new!["id"] = ObjectId.generate()
                if old!["eggs"] as! Int == 0 { migration.delete(new!) }
            }
            migration.create("Nest", value: ["id": ObjectId.generate(), "foundBy": "Eve"] as [String: Any])
            migration.deleteData(forType: "Feeder")  // a class that is not used any more
        }
        // end
        XCTAssertEqual(
            Set(try Realm(configuration: configuration).objects(ThirdVersion.Nest.self).map(\.foundBy)), ["Ida", "Eve"])
    }

    func testLookingFirst() throws {
        try makeFirstFile()
        let file = url, configuration = configuration()
        // sample: migrations-version
        let stored = try schemaVersionAtURL(file)
        if stored < configuration.schemaVersion {
            try Realm.performMigration(for: configuration)
        }
        // end
        XCTAssertEqual(stored, 0)
        XCTAssertEqual(try schemaVersionAtURL(file), 2)
    }

    func testStartingAnew() throws {
        try makeFirstFile()
        // sample: migrations-delete
        var configuration = MigrationsTests.configuration
        configuration.deleteRealmIfMigrationNeeded = true  // while a program is being written
        // end
        configuration.fileURL = url
        configuration.objectTypes = [ThirdVersion.Nest.self]
        XCTAssertTrue(try Realm(configuration: configuration).isEmpty)
    }
}
