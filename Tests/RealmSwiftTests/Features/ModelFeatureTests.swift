import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Models and their schema in a Realm.
final class ModelFeatureTests: RealmTestCase {
    func testF039_F040_createReadUpdateDelete() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex", age: 1)
        try realm.write { realm.add(dog) }
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
        let old = realm.objects(Dog.self).where { $0.age > 1 }
        XCTAssertEqual(old.count, 0)
        try realm.write { dog.age = 2 }
        XCTAssertEqual(old.count, 1)
        XCTAssertEqual(old.sorted(by: \.name).first?.name, "Rex")
        try realm.write { realm.delete(dog) }
        XCTAssertEqual(old.count, 0)
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
    }

    func testF042_F043_classesAreTypesOfTheSchema() throws {
        let realm = try makeRealm()
        XCTAssertEqual(realm.schema.objectSchema.map(\.className), RealmTestCase.types.map { $0.className() }.sorted())
        let dog = try XCTUnwrap(realm.schema["Dog"])
        XCTAssertEqual(dog.className, "Dog")
        XCTAssertTrue(dog.objectClass == Dog.self)
        XCTAssertFalse(dog.isEmbedded)
        XCTAssertEqual(realm.schema["Address"]?.isEmbedded, true)
        XCTAssertNil(realm.schema["Nothing"])
        XCTAssertEqual(dog, Dog().objectSchema)
    }

    func testF044_propertiesAreDescribed() throws {
        let schema = try makeRealm().schema
        let all = try XCTUnwrap(schema["AllTypes"])
        let expected: [(String, PropertyType, Bool)] = [
            ("bool", .bool, false), ("int8", .int, false), ("float", .float, false), ("double", .double, false),
            ("string", .string, false), ("data", .data, false),
            ("date", .date, false), ("objectId", .objectId, false), ("uuid", .UUID, false), ("decimal", .decimal128, false),
            ("any", .any, true),
            ("size", .string, false), ("level", .int, false), ("optInt", .int, true), ("optSize", .string, true),
            ("optStrings", .string, true), ("strings", .string, false),
        ]
        for (name, type, isOptional) in expected {
            XCTAssertEqual(all[name]?.type, type, name)
            XCTAssertEqual(all[name]?.isOptional, isOptional, name)
        }
        XCTAssertEqual(all["ints"]?.isArray, true)
        XCTAssertEqual(all["intSet"]?.isSet, true)
        XCTAssertEqual(all["intMap"]?.isMap, true)
        XCTAssertEqual(all["key"]?.isIndexed, true)
        XCTAssertEqual(schema["Person"]?["pets"]?.objectClassName, "Dog")
        XCTAssertEqual(schema["Person"]?["pets"]?.isOptional, true)
        XCTAssertEqual(schema["Person"]?["dogs"]?.isOptional, false)
        XCTAssertEqual(schema["Person"]?["address"]?.objectClassName, "Address")
        XCTAssertEqual(schema["Dog"]?.properties.last?.name, "fans")
        XCTAssertEqual(schema["Renamed"]?["firstName"]?.columnName, "first_name")
        XCTAssertTrue(schema["Dog"]?["name"]?.description.contains("type = string;") ?? false)
        XCTAssertEqual(PropertyType.UUID.rawValue, 12)
    }

    func testF046_aSubsetOfTheClasses() throws {
        let realm = try Realm(
            configuration: Realm.Configuration(
                inMemoryIdentifier: name, objectTypes: [Owner.self, Dog.self, Person.self, Address.self, Country.self]))
        XCTAssertEqual(realm.schema.objectSchema.map(\.className), ["Address", "Country", "Dog", "Owner", "Person"])
        XCTAssertEqual(realm.configuration.objectTypes?.count, 5)
        XCTAssertThrowsError(
            try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name + "2", objectTypes: [Owner.self]))
        ) { error in
            XCTAssertTrue("\(error)".contains("'Owner.dog'"), "\(error)")
        }
    }

    func testF047_aHiddenClassIsUsedWhereItIsNamed() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Hidden.self]))
        try realm.write { realm.create(Hidden.self, value: ["value": 3]) }
        XCTAssertEqual(realm.objects(Hidden.self).first?.value, 3)
    }

    func testF052_aCopyOfAManagedObjectIsDetached() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex", age: 3)
        try realm.write { realm.add(dog) }
        let copy = Dog(value: dog)
        XCTAssertNil(copy.realm)
        XCTAssertEqual(copy.name, "Rex")
        XCTAssertEqual(copy.id, dog.id)
        copy.name = "Max"
        XCTAssertEqual(dog.name, "Rex")
    }

    func testF054_everyFormOfDeclarationCompiles() {
        let object = Declarations()
        XCTAssertEqual(
            object.objectSchema.properties.map(\.name),
            [
                "id", "plain", "given", "indexed", "indexedGiven", "optional", "link", "list", "set", "map", "any", "secret",
                "shown",
            ])
        XCTAssertEqual(object.objectSchema.primaryKeyProperty?.name, "id")
        XCTAssertEqual(object.given, "text")
        XCTAssertEqual(object.indexedGiven, 5)
        XCTAssertEqual(object.objectSchema.properties.filter(\.isIndexed).map(\.name), ["id", "indexed", "indexedGiven"])
        XCTAssertEqual(object.shown, 1)
        object.plain = 4
        XCTAssertEqual(object.changes, 1)
    }

    func testF058_lookupByPrimaryKeyOfEveryType() throws {
        let realm = try makeRealm()
        let base = Base(value: ["title": "b"])
        try realm.write {
            realm.add(base)
            realm.add(Owner(value: ["id": -5]))
            realm.add(AllTypes(value: ["key": "a key"]))
        }
        XCTAssertEqual(realm.object(ofType: Base.self, forPrimaryKey: base.id)?.title, "b")
        XCTAssertEqual(realm.object(ofType: Owner.self, forPrimaryKey: -5)?.id, -5)
        XCTAssertNotNil(realm.object(ofType: AllTypes.self, forPrimaryKey: "a key"))
        XCTAssertNil(realm.object(ofType: AllTypes.self, forPrimaryKey: "another"))
        XCTAssertNil(realm.object(ofType: Base.self, forPrimaryKey: UUID()))
        let optional = try Realm(
            configuration: Realm.Configuration(inMemoryIdentifier: name + "optional", objectTypes: [OptionalKey.self]))
        try optional.write {
            optional.add(OptionalKey(value: ["id": NSNull(), "value": 1] as [String: Any]))
            optional.add(OptionalKey(value: ["id": "x", "value": 2] as [String: Any]))
            optional.create(OptionalKey.self, value: ["id": NSNull(), "value": 3] as [String: Any], update: .modified)
        }
        XCTAssertEqual(optional.objects(OptionalKey.self).count, 2)
        XCTAssertEqual(optional.object(ofType: OptionalKey.self, forPrimaryKey: nil as String?)?.value, 3)
        XCTAssertEqual(optional.object(ofType: OptionalKey.self, forPrimaryKey: "x")?.value, 2)
    }

    func testF062_anIndexChangesNoResult() throws {
        let realm = try makeRealm()
        try realm.write {
            for i in 0..<500 { realm.add(Dog(name: "dog\(i % 50)", age: i)) }
        }
        XCTAssertEqual(realm.schema["Dog"]?["name"]?.isIndexed, true)
        XCTAssertEqual(realm.objects(Dog.self).filter("name == 'dog7'").count, 10)
        XCTAssertEqual(Set(realm.objects(Dog.self).where { $0.name == "dog7" }.map(\.age)), Set(stride(from: 7, to: 500, by: 50)))
        XCTAssertEqual(realm.objects(Dog.self).filter("name == 'none'").count, 0)
    }

    func testF064_F066_whatIsNotPersistedStaysInMemory() throws {
        let realm = try makeRealm()
        let object = Derived(value: ["title": "a", "subtitle": "b"])
        object.notStored = 9
        try realm.write { realm.add(object) }
        XCTAssertEqual(object.notStored, 9)
        XCTAssertEqual(object.computed, "ab")
        XCTAssertEqual(realm.objects(Derived.self)[0].notStored, 5)
        XCTAssertEqual(realm.schema["Derived"]?.properties.map(\.name), ["id", "title", "subtitle"])
    }

    func testF071_F206_theNameInTheFileIsHonouredEverywhere() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(Renamed.self, value: ["firstName": "Ann", "count": 1] as [String: Any])
            realm.create(Renamed.self, value: ["firstName": "Bo", "count": 2] as [String: Any])
        }
        let all = realm.objects(Renamed.self)
        XCTAssertEqual(all.filter("firstName == 'Bo'").count, 1)
        XCTAssertEqual(all.where { $0.firstName == "Bo" }.count, 1)
        XCTAssertEqual(all.sorted(byKeyPath: "firstName", ascending: false).map(\.count), [2, 1])
        XCTAssertEqual(all.sorted(by: \.firstName).map(\.count), [1, 2])
        XCTAssertEqual(all.distinct(by: ["firstName"]).count, 2)
        XCTAssertEqual(all[0]["firstName"] as? String, "Ann")
        XCTAssertEqual(all.value(forKey: "firstName") as? [String], ["Ann", "Bo"])
        XCTAssertTrue(all[0].description.contains("firstName = Ann;"))
    }

    func testF075_dataWithoutASchema() throws {
        let realm = try makeRealm()
        let object = AllTypes(
            value: [
                "key": "k",
                "any": ["rooms": [["name": "hall", "doors": 2] as [String: Any], ["name": "attic"]]] as [String: Any],
            ] as [String: Any])
        try realm.write { realm.add(object) }
        let rooms = try XCTUnwrap(realm.objects(AllTypes.self)[0].any.dictionaryValue?["rooms"]?.listValue)
        XCTAssertEqual(rooms.count, 2)
        XCTAssertEqual(rooms[0].dictionaryValue?["doors"]?.intValue, 2)
        XCTAssertEqual(rooms[1].dictionaryValue?["name"]?.stringValue, "attic")
        XCTAssertEqual(realm.objects(AllTypes.self).filter("#any['rooms'][0]['name'] == 'hall'").count, 1)
    }

    func testF420_aClassWithAFaultIsRefusedOnOpening() {
        XCTAssertThrowsError(try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Faulty.self])))
        { error in
            XCTAssertTrue("\(error)".contains("'Faulty.self'") || "\(error)".contains("'Faulty.link'"), "\(error)")
            XCTAssertTrue(error is Realm.Error)
        }
    }

    func testF084_anEmbeddedClassThatLinksToItselfIsRefused() {
        XCTAssertThrowsError(
            try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Trunk.self, Branch.self]))
        ) { error in
            XCTAssertTrue("\(error)".contains("Branch"), "\(error)")
        }
    }
}

private class Declarations: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var plain: Int { didSet { changes += 1 } }
    @Persisted var given: String = "text"
    @Persisted(indexed: true) var indexed: Date
    @Persisted(indexed: true) var indexedGiven: Int = 5
    @Persisted var optional: Float?
    @Persisted var link: Declarations?
    @Persisted var list = List<String>()
    @Persisted var set: MutableSet<Int>
    @Persisted var map = Map<String, Double>()
    @Persisted var any: AnyRealmValue = .int(3)
    @Persisted private var secret: Int
    @Persisted private(set) var shown = 1
    var changes = 0
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class OptionalKey: Object {
    @Persisted(primaryKey: true) var id: String?
    @Persisted var value: Int
}

private class Faulty: Object {
    @Persisted var link: Owner
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Trunk: Object {
    @Persisted var branch: Branch?
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Branch: EmbeddedObject {
    @Persisted var branch: Branch?
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
