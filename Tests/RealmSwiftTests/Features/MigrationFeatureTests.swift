import Foundation
import RealmSwift
import Synchronization
import TestSupport
import XCTest

// The same classes at different times of an application's life. They are not in the default schema, since their names are equal.
private enum Names {
    class Person: Object {
        @Persisted var firstName = ""
        @Persisted var lastName = ""
        @Persisted var age = 0
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum FullName {
    class Person: Object {
        @Persisted var fullName = ""
        @Persisted var age = 0
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum TextAge {
    class Person: Object {
        @Persisted var fullName = ""
        @Persisted var age = "0"
        @Persisted var email: String?
        @Persisted(indexed: true) var city = "nowhere"
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum Indexed {
    class Person: Object {
        @Persisted(indexed: true) var firstName = ""
        @Persisted var lastName = ""
        @Persisted var age = 0
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Pet: Object {
        @Persisted var name = ""
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum Renamed {
    class Person: Object {
        @Persisted var givenName = ""
        @Persisted var lastName = ""
        @Persisted var age = 0
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum Keyed {
    class Person: Object {
        @Persisted(primaryKey: true) var id = 0
        @Persisted var firstName = ""
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum Homes {
    class Address: Object {
        @Persisted var city = ""
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Person: Object {
        @Persisted var name = ""
        @Persisted var address: Address?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum EmbeddedHomes {
    class Address: EmbeddedObject {
        @Persisted var city = ""
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Person: Object {
        @Persisted var name = ""
        @Persisted var address: Address?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

/// The newest model of the files `older/migration-default-v0` to `v5`.
private enum Newest {
    enum Kind: Int, PersistableEnum { case unspecified = 0, dog, chicken, cow }
    class Address: EmbeddedObject {
        @Persisted var street = ""
        @Persisted var city = ""
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Pet: Object {
        @Persisted var name = ""
        @Persisted var kind = Kind.unspecified
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    class Person: Object {
        @Persisted var fullName = ""
        @Persisted var age = 0
        @Persisted var address: Address?
        @Persisted var pets: List<Pet>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
    static let types: [ObjectBase.Type] = [Address.self, Pet.self, Person.self]
}

/// Changes of classes (feature table, section P).
final class MigrationFeatureTests: FileTestCase {
    private func configuration(_ version: UInt64, _ types: [ObjectBase.Type], _ block: MigrationBlock? = nil)
        -> Realm.Configuration
    {
        Realm.Configuration(
            fileURL: url(), encryptionKey: TestKeys.usualData, schemaVersion: version, migrationBlock: block, objectTypes: types)
    }

    /// Two persons with first and last names, at version 1.
    private func makePersons() throws {
        let realm = try Realm(configuration: configuration(1, [Names.Person.self]))
        try realm.write {
            realm.create(Names.Person.self, value: ["firstName": "John", "lastName": "Doe", "age": 42])
            realm.create(Names.Person.self, value: ["firstName": "Jane", "lastName": "Roe", "age": 43])
        }
    }

    func testF371_aChangeNeedsAHigherVersion() throws {
        try makePersons()
        let error = realmError(try Realm(configuration: configuration(1, [FullName.Person.self])))
        XCTAssertEqual(error?.code, .schemaMismatch)
        for part in ["fullName", "firstName", "lastName"] {
            XCTAssertTrue(error?.localizedDescription.contains("Person.\(part)") ?? false, "\(String(describing: error))")
        }
        XCTAssertEqual(try schemaVersionAtURL(url(), encryptionKey: TestKeys.usualData), 1)
    }

    func testF372_F376_theBlockRunsOnceWithTheOldVersion() throws {
        try makePersons()
        let calls = Mutex<[UInt64]>([])
        let newest = configuration(2, [FullName.Person.self]) { migration, oldVersion in
            calls.withLock { $0.append(oldVersion) }
            XCTAssertNotNil(migration.oldSchema["Person"]?["firstName"])
            XCTAssertNil(migration.newSchema["Person"]?["firstName"])
            migration.enumerateObjects(ofType: "Person") { old, new in
                new!["fullName"] = "\(old!["firstName"] as! String) \(old!.lastName as! String)"
            }
        }
        for _ in 0..<2 {
            let realm = try Realm(configuration: newest)
            XCTAssertEqual(realm.objects(FullName.Person.self).map(\.fullName), ["John Doe", "Jane Roe"])
            XCTAssertEqual(realm.objects(FullName.Person.self).map(\.age), [42, 43])
        }
        XCTAssertEqual(calls.withLock { $0 }, [1])
    }

    func testF373_F374_propertiesComeAndGoByThemselves() throws {
        try makePersons()
        do {
            let realm = try Realm(configuration: configuration(2, [FullName.Person.self]))
            XCTAssertEqual(realm.objects(FullName.Person.self).map(\.fullName), ["", ""])
            XCTAssertEqual(realm.objects(FullName.Person.self).map(\.age), [42, 43])
        }
        let realm = try Realm(configuration: configuration(3, [Names.Person.self]))
        XCTAssertEqual(realm.objects(Names.Person.self).map(\.firstName), ["", ""], "the column was gone")
    }

    func testF375_aRenamedPropertyKeepsItsValues() throws {
        try makePersons()
        let realm = try Realm(
            configuration: configuration(2, [Renamed.Person.self]) { migration, _ in
                migration.renameProperty(onType: "Person", from: "firstName", to: "givenName")
            })
        XCTAssertEqual(realm.objects(Renamed.Person.self).map(\.givenName), ["John", "Jane"])
    }

    func testF375_aRenameThatCannotBeFailsTheOpening() throws {
        try makePersons()
        let before = try Data(contentsOf: url())
        XCTAssertEqual(
            realmError(
                try Realm(
                    configuration: configuration(2, [Renamed.Person.self]) { migration, _ in
                        migration.renameProperty(onType: "Person", from: "noSuchName", to: "givenName")
                    }))?.code, .fail)
        XCTAssertEqual(try Data(contentsOf: url()), before)
    }

    func testF376_F379_eachVersionHasItsStep() throws {
        let block: MigrationBlock = { migration, oldVersion in
            if oldVersion < 2 {
                migration.enumerateObjects(ofType: "Person") { old, new in
                    new!["fullName"] = "\(old!["firstName"] as! String) \(old!["lastName"] as! String)"
                }
            }
            if oldVersion < 3 {
                migration.enumerateObjects(ofType: "Person") { old, new in new!["age"] = "\(old!["age"] ?? 0)" }
            }
        }
        func check(line: UInt = #line) throws {
            let realm = try Realm(configuration: configuration(3, [TextAge.Person.self], block))
            let persons = realm.objects(TextAge.Person.self)
            XCTAssertEqual(persons.map(\.fullName), ["John Doe", "Jane Roe"], line: line)
            XCTAssertEqual(persons.map(\.age), ["42", "43"], line: line)
            XCTAssertEqual(persons.map(\.email), [nil, nil], line: line)
            XCTAssertEqual(
                persons.map(\.city), ["", ""], "a required property of old objects is zero, not the declared default", line: line)
        }
        try makePersons()
        try check()
        _ = try Realm.deleteFiles(for: configuration(0, []))
        try makePersons()
        // An earlier version of the application.
        _ = try Realm(
            configuration: configuration(2, [FullName.Person.self]) { migration, _ in
                migration.enumerateObjects(ofType: "Person") { old, new in
                    new!["fullName"] = "\(old!["firstName"] as! String) \(old!["lastName"] as! String)"
                }
            })
        try check()
    }

    private func makeHomes(_ body: (Realm) -> Void) throws {
        let realm = try Realm(configuration: configuration(1, [Homes.Person.self, Homes.Address.self]))
        try realm.write { body(realm) }
    }

    func testF377_objectsBecomeEmbedded() throws {
        try makeHomes { realm in
            let shared = realm.create(Homes.Address.self, value: ["city": "York"])
            realm.create(Homes.Person.self, value: ["name": "Ada", "address": shared] as [String: Any])
            realm.create(Homes.Person.self, value: ["name": "Bo", "address": shared] as [String: Any])
            realm.create(Homes.Address.self, value: ["city": "orphan"])
        }
        let realm = try Realm(configuration: configuration(2, [EmbeddedHomes.Person.self, EmbeddedHomes.Address.self]))
        let persons = realm.objects(EmbeddedHomes.Person.self)
        XCTAssertEqual(persons.map { $0.address?.city }, ["York", "York"])
        XCTAssertFalse(persons[0].address!.isSameObject(as: persons[1].address), "each owner has its own")
        XCTAssertEqual(realm.dynamicObjects("Address").count, 2, "the one without owner is gone")
    }

    func testF377_theBlockMakesOneOwnerForEach() throws {
        try makeHomes { realm in
            let shared = realm.create(Homes.Address.self, value: ["city": "York"])
            realm.create(Homes.Person.self, value: ["name": "Ada", "address": shared] as [String: Any])
            realm.create(Homes.Person.self, value: ["name": "Bo", "address": shared] as [String: Any])
            realm.create(Homes.Address.self, value: ["city": "orphan"])
        }
        let realm = try Realm(
            configuration: configuration(2, [EmbeddedHomes.Person.self, EmbeddedHomes.Address.self]) { migration, _ in
                var seen: Set<String> = []
                migration.enumerateObjects(ofType: "Person") { old, new in
                    guard let city = (old?["address"] as? MigrationObject)?["city"] as? String else { return }
                    if !seen.insert(city).inserted {
                        new?["address"] = migration.create("Address", value: ["city": city + " (copy)"])
                    }
                }
                migration.enumerateObjects(ofType: "Address") { old, new in
                    if let new, new["city"] as? String == "orphan" { migration.delete(new) }
                }
            })
        XCTAssertEqual(realm.objects(EmbeddedHomes.Person.self).map { $0.address?.city }, ["York", "York (copy)"])
    }

    func testF378_theGivenFilesOfAllVersionsBecomeTheNewest() throws {
        guard let older = Fixtures.older else { throw XCTSkip("the shared folder of given files is not there") }
        for version in 0...5 {
            let name = "v\(version).realm"
            try TestKeys.copy("\(older)/migration-default-v\(version).realm", to: scratch.file(name))
            var configuration = Realm.Configuration(
                fileURL: url(name), encryptionKey: TestKeys.usualData, objectTypes: Newest.types)
            XCTAssertEqual(try schemaVersionAtURL(url(name), encryptionKey: TestKeys.usualData), UInt64(version))
            configuration.schemaVersion = 5
            let calls = Mutex<[UInt64]>([])
            configuration.migrationBlock = { migration, oldVersion in
                calls.withLock { $0.append(oldVersion) }
                if oldVersion < 1 {
                    // First and last name became one.
                    migration.enumerateObjects(ofType: "Person") { old, new in
                        new!["fullName"] = "\(old!["firstName"] as! String) \(old!["lastName"] as! String)"
                    }
                }
                if oldVersion < 2 {
                    // Persons got dogs, which are pets today.
                    migration.enumerateObjects(ofType: "Person") { old, new in
                        if new!["fullName"] as? String == "John Doe" {
                            let marley = migration.create("Pet", value: ["name": "Marley", "kind": 1] as [String: Any])
                            let lassie = migration.create("Pet", value: ["name": "Lassie", "kind": 1] as [String: Any])
                            new!.dynamicList("pets").append(objectsIn: [marley, lassie])
                        } else if new!["fullName"] as? String == "Jane Doe" {
                            new!.dynamicList("pets").append(
                                migration.create("Pet", value: ["name": "Toto", "kind": 1] as [String: Any]))
                        }
                    }
                    migration.create("Pet", value: ["name": "Slinkey", "kind": 1] as [String: Any])
                }
                if oldVersion == 2 {
                    // Dogs became pets.
                    migration.enumerateObjects(ofType: "Person") { old, new in
                        for dog in old!["dogs"] as! List<DynamicObject> {
                            new!.dynamicList("pets").append(
                                migration.create("Pet", value: ["name": dog["name"] as! String, "kind": 1] as [String: Any]))
                        }
                    }
                    var owned: Set<String> = []
                    migration.enumerateObjects(ofType: "Pet") { _, new in owned.insert(new!["name"] as! String) }
                    migration.enumerateObjects(ofType: "Dog") { old, _ in
                        let name = old!["name"] as! String
                        if !owned.contains(name) { migration.create("Pet", value: ["name": name, "kind": 1] as [String: Any]) }
                    }
                }
                if oldVersion < 4 {
                    migration.enumerateObjects(ofType: "Person") { _, new in
                        if new!["fullName"] as? String == "John Doe" {
                            new!["address"] = ["street": "Broadway", "city": "New York"]
                        }
                    }
                }
            }
            let realm = try Realm(configuration: configuration)
            let persons = realm.objects(Newest.Person.self).sorted(byKeyPath: "age")
            let label = "from version \(version)"
            XCTAssertEqual(persons.map(\.fullName), ["John Doe", "Jane Doe", "John Smith"], label)
            XCTAssertEqual(persons.map(\.age), [42, 43, 44], label)
            XCTAssertEqual(persons.map { $0.pets.map(\.name) }, [["Marley", "Lassie"], ["Toto"], []], label)
            XCTAssertEqual(persons[0].address?.street, "Broadway", label)
            XCTAssertEqual(persons[0].address?.city, "New York", label)
            XCTAssertNil(persons[1].address, label)
            XCTAssertEqual(Set(realm.objects(Newest.Pet.self).map(\.name)), ["Marley", "Lassie", "Toto", "Slinkey"], label)
            XCTAssertTrue(realm.objects(Newest.Pet.self).allSatisfy { $0.kind == .dog }, label)
            XCTAssertEqual(try schemaVersionAtURL(url(name), encryptionKey: TestKeys.usualData), 5, label)
            XCTAssertEqual(calls.withLock { $0 }, version == 5 ? [] : [UInt64(version)], label)
        }
    }

    func testF380_F381_newClassesAndIndexesNeedNothing() throws {
        try makePersons()
        let realm = try Realm(
            configuration: configuration(1, [Indexed.Person.self, Indexed.Pet.self]) { _, _ in XCTFail("no migration") })
        XCTAssertTrue(realm.schema["Person"]?["firstName"]?.isIndexed ?? false)
        XCTAssertEqual(realm.objects(Indexed.Person.self).where { $0.firstName == "Jane" }.map(\.age), [43])
        XCTAssertEqual(realm.objects(Indexed.Pet.self).count, 0)
    }

    func testF382_objectsAreMadeAndDeletedInTheBlock() throws {
        try makePersons()
        do {
            let realm = try Realm(configuration: configuration(1, [Indexed.Person.self, Indexed.Pet.self]))
            try realm.write { for _ in 0..<3 { realm.create(Indexed.Pet.self) } }
        }
        let realm = try Realm(
            configuration: configuration(2, [Indexed.Person.self]) { migration, _ in
                XCTAssertTrue(migration.deleteData(forType: "Pet"))
                XCTAssertFalse(migration.deleteData(forType: "NoSuchClass"))
                migration.create("Person", value: ["firstName": "New", "lastName": "Person", "age": 1])
                migration.create("Person", value: ["Other", "Person", 2] as [Any])
                var seen = 0
                migration.enumerateObjects(ofType: "Person") { old, new in
                    seen += 1
                    if old?["firstName"] as? String == "John" { migration.delete(new!) }
                }
                XCTAssertEqual(seen, 4)
                migration.enumerateObjects(ofType: "NoSuchClass") { _, _ in XCTFail("no call") }
            })
        XCTAssertEqual(realm.objects(Indexed.Person.self).map(\.firstName).sorted(), ["Jane", "New", "Other"])
        XCTAssertNil(realm.schema["Pet"])
    }

    func testF383_aLowerVersionIsRefused() throws {
        try makePersons()
        let error = realmError(try Realm(configuration: configuration(0, [Names.Person.self])))
        XCTAssertEqual(error?.code, .schemaMismatch)
        XCTAssertTrue(
            error?.localizedDescription.contains("0") ?? false && error?.localizedDescription.contains("1") ?? false,
            "\(String(describing: error))")
    }

    func testTheRealmIsNotOpenedInItsOwnMigrationBlock() {
        assertTraps("open in a migration block", "must not open the Realm", "a.realm")
    }

    func testF384_aMigrationOnDemand() throws {
        try makePersons()
        let newest = configuration(2, [FullName.Person.self]) { migration, _ in
            migration.enumerateObjects(ofType: "Person") { old, new in new!["fullName"] = old!["lastName"] }
        }
        try Realm.performMigration(for: newest)
        XCTAssertEqual(try schemaVersionAtURL(url(), encryptionKey: TestKeys.usualData), 2)
        XCTAssertEqual(
            try Realm(configuration: configuration(2, [FullName.Person.self])).objects(FullName.Person.self).map(\.fullName),
            ["Doe", "Roe"])
        assertTraps("migrate open file", "open already")
    }

    func testF385_aFailedMigrationLeavesTheFile() throws {
        try makePersons()
        // Two objects get the same primary key.
        let error = realmError(
            try Realm(
                configuration: configuration(2, [Keyed.Person.self]) { migration, _ in
                    migration.enumerateObjects(ofType: "Person") { _, new in new!["id"] = 7 }
                }))
        XCTAssertTrue(error?.localizedDescription.contains("Person.id") ?? false, "\(String(describing: error))")
        XCTAssertEqual(try schemaVersionAtURL(url(), encryptionKey: TestKeys.usualData), 1)
        do {
            let realm = try Realm(configuration: configuration(1, [Names.Person.self]))
            XCTAssertEqual(realm.objects(Names.Person.self).map(\.lastName), ["Doe", "Roe"])
        }
        let realm = try Realm(
            configuration: configuration(2, [Keyed.Person.self]) { migration, _ in
                var next = 0
                migration.enumerateObjects(ofType: "Person") { _, new in
                    new!["id"] = next
                    next += 1
                }
            })
        XCTAssertEqual(realm.object(ofType: Keyed.Person.self, forPrimaryKey: 1)?.firstName, "Jane")
    }

    func testF343_theFileIsDeletedInsteadOfMigrated() throws {
        try makePersons()
        var newest = configuration(1, [FullName.Person.self]) { _, _ in XCTFail("the block does not run") }
        newest.deleteRealmIfMigrationNeeded = true
        do {
            let realm = try Realm(configuration: newest)
            XCTAssertTrue(realm.isEmpty)
            try realm.write { realm.create(FullName.Person.self, value: ["fullName": "kept"]) }
        }
        XCTAssertEqual(try Realm(configuration: newest).objects(FullName.Person.self).count, 1, "not without need")
    }
}
