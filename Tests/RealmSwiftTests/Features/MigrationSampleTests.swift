import Foundation
import RealmSwift
import TestSupport
import XCTest

/// An application through six versions of its classes: a file of each version is brought to the newest one.
final class MigrationSampleTests: XCTestCase {
    private static let newest: UInt64 = 5

    private static func migrate(_ migration: Migration, _ oldVersion: UInt64) {
        if oldVersion < 1 {
            migration.enumerateObjects(ofType: "Citizen") { old, new in
                guard let old, let new else { return }
                let first = old["firstName"] as? String ?? "", last = old["lastName"] as? String ?? ""
                new["fullName"] = "\(first) \(last)"
            }
        }
        if oldVersion < 4 {
            let name = oldVersion < 3 ? "type" : "kind"
            migration.enumerateObjects(ofType: "Animal") { old, new in
                guard let old, let new else { return }
                if name == "type" { new["kind"] = ["dog": 1, "cat": 2][old["type"] as? String ?? ""] ?? 0 }
            }
            migration.renameProperty(onType: "Citizen", from: "age", to: "yearsSinceBirth")
        }
        if oldVersion < 5 {
            migration.enumerateObjects(ofType: "Citizen") { _, new in
                guard let new else { return }
                new["home"] = migration.create("Home", value: ["city": "York"])
                if (new["fullName"] as? String ?? "").isEmpty { migration.delete(new) }
            }
        }
    }

    private func makeFile(_ version: UInt64, _ types: [ObjectBase.Type], _ url: URL, _ fill: (Realm) -> Void) throws {
        try autoreleasepool {
            let realm = try Realm(
                configuration: Realm.Configuration(
                    fileURL: url, encryptionKey: TestKeys.usualData, schemaVersion: version, objectTypes: types))
            try realm.write { fill(realm) }
        }
    }

    func testF026_F378_F379_aFileOfEveryVersionComesToTheNewest() throws {
        let scratch = ScratchDirectory()
        func url(_ version: Int) -> URL { URL(fileURLWithPath: scratch.file("v\(version).realm")) }
        let animals = [["name": "Rex", "type": "dog"], ["name": "Kit", "type": "cat"]]
        try makeFile(0, [V0.Citizen.self], url(0)) {
            $0.create(V0.Citizen.self, value: ["firstName": "Ann", "lastName": "Lee", "age": 30] as [String: Any])
        }
        try makeFile(1, [V1.Citizen.self], url(1)) {
            $0.create(V1.Citizen.self, value: ["fullName": "Ann Lee", "age": 30] as [String: Any])
        }
        try makeFile(2, [V2.Citizen.self, V2.Animal.self], url(2)) {
            $0.create(V2.Citizen.self, value: ["fullName": "Ann Lee", "age": 30, "animals": animals] as [String: Any])
        }
        try makeFile(3, [V3.Citizen.self, V3.Animal.self], url(3)) {
            $0.create(
                V3.Citizen.self,
                value: ["fullName": "Ann Lee", "age": 30, "animals": [["name": "Rex", "kind": 1], ["name": "Kit", "kind": 2]]]
                    as [String: Any])
        }
        try makeFile(4, [V4.Citizen.self, V3.Animal.self], url(4)) {
            $0.create(
                V4.Citizen.self,
                value: [
                    "fullName": "Ann Lee", "yearsSinceBirth": 30,
                    "animals": [["name": "Rex", "kind": 1], ["name": "Kit", "kind": 2]],
                ] as [String: Any])
            $0.create(V4.Citizen.self, value: ["fullName": ""])
        }
        for version in 0...4 {
            let calls = Calls()
            let configuration = Realm.Configuration(
                fileURL: url(version), encryptionKey: TestKeys.usualData, schemaVersion: MigrationSampleTests.newest,
                migrationBlock: { migration, oldVersion in
                    calls.versions.append(oldVersion)
                    MigrationSampleTests.migrate(migration, oldVersion)
                }, objectTypes: [V5.Citizen.self, V5.Animal.self, V5.Home.self])
            let realm = try Realm(configuration: configuration)
            XCTAssertEqual(calls.versions, [UInt64(version)])
            let citizens = realm.objects(V5.Citizen.self)
            XCTAssertEqual(citizens.map(\.fullName), ["Ann Lee"], "version \(version)")
            XCTAssertEqual(citizens.first?.yearsSinceBirth, 30, "version \(version)")
            XCTAssertEqual(citizens.first?.home?.city, "York")
            if version >= 2 {
                XCTAssertEqual(citizens.first?.animals.map(\.name), ["Rex", "Kit"])
                XCTAssertEqual(citizens.first?.animals.map(\.kind), [.dog, .cat], "version \(version)")
            }
        }
    }

    private final class Calls: @unchecked Sendable {
        // Sendable: the block runs on the thread that opens.
        var versions: [UInt64] = []
    }
}

// The classes of each version; none of them is in the default schema.

private enum V0 {
    class Citizen: Object {
        @Persisted var firstName: String
        @Persisted var lastName: String
        @Persisted var age: Int
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum V1 {
    class Citizen: Object {
        @Persisted var fullName: String
        @Persisted var age: Int
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum V2 {
    class Citizen: Object {
        @Persisted var fullName: String
        @Persisted var age: Int
        @Persisted var animals: List<Animal>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Animal: Object {
        @Persisted var name: String
        @Persisted var type: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum V3 {
    class Citizen: Object {
        @Persisted var fullName: String
        @Persisted var age: Int
        @Persisted var animals: List<Animal>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Animal: Object {
        @Persisted var name: String
        @Persisted var kind: Int
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum V4 {
    class Citizen: Object {
        @Persisted var fullName: String
        @Persisted var yearsSinceBirth: Int
        @Persisted var animals: List<V3.Animal>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum V5 {
    enum Kind: Int, PersistableEnum { case unknown, dog, cat }

    class Citizen: Object {
        @Persisted var fullName: String
        @Persisted var yearsSinceBirth: Int
        @Persisted var animals: List<Animal>
        @Persisted var home: Home?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Animal: Object {
        @Persisted var name: String
        @Persisted var kind: Kind
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Home: Object {
        @Persisted var city: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}
