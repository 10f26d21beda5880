import Foundation
import RealmSwiftTestModels
import XCTest

@testable import RealmSwift

final class SchemaTests: XCTestCase {
    func testF044_aSchemaDescribesItsClasses() throws {
        let schema = try ModelSchema.make([Dog.self, Person.self, Address.self, Country.self]).schema
        XCTAssertEqual(schema.objectSchema.map(\.className), ["Address", "Country", "Dog", "Person"])
        XCTAssertEqual(schema["Address"]?.isEmbedded, true)
        XCTAssertNil(schema["Cat"])
        XCTAssertTrue(schema.description.contains("Dog {"))
        XCTAssertEqual(schema, try ModelSchema.make([Country.self, Person.self, Dog.self, Address.self]).schema)
    }

    func testF046_everyMissingClassIsNamed() {
        XCTAssertThrowsError(try ModelSchema.make([Dog.self])) { error in
            XCTAssertEqual(
                (error as? SchemaProblems)?.messages,
                [
                    "Property 'Dog.owner' of type 'object' has unknown object type 'Person'.",
                    "Property 'Dog.fans' of type 'linking objects' has unknown object type 'Person'.",
                ])
        }
    }

    func testF420_allFaultsOfAllClassesAreFoundAtOnce() throws {
        let problems = ModelSchema.validate(
            [BadModel.self, BadEmbedded.self, Empty.self, Dog.self, Person.self].map { ClassInfo.of($0) })
        func has(_ text: String) -> Bool { problems.contains { $0.contains(text) } }
        XCTAssertTrue(
            has("'first' and 'second' of class 'BadModel' are both marked as the primary key")
                || has("Properties 'first' and 'second'"), "\(problems)")
        XCTAssertTrue(has("'BadModel.flag' of type 'bool' cannot be made the primary key"), "\(problems)")
        XCTAssertTrue(has("'BadModel.link' of type 'object' must be marked as optional"), "\(problems)")
        XCTAssertTrue(has("'BadModel.embeddedSet' cannot contain embedded objects"), "\(problems)")
        XCTAssertTrue(
            has("'Dog.nothing' declared as origin of linking objects property 'BadModel.noOrigin' does not exist"), "\(problems)")
        XCTAssertTrue(
            has("'Dog.name' declared as origin of linking objects property 'BadModel.noLink' is not a link"), "\(problems)")
        XCTAssertTrue(has("links to type 'Person', not to 'BadModel'"), "\(problems)")
        XCTAssertTrue(has("Embedded object type 'BadEmbedded' cannot have a primary key"), "\(problems)")
        XCTAssertTrue(has("No properties are defined for 'Empty'"), "\(problems)")
    }

    func testTwoClassesOfOneNameAreRefused() {
        enum One {
            class Same: Object {
                @Persisted var a: Int
                override class func shouldIncludeInDefaultSchema() -> Bool { false }
            }
        }
        enum Two {
            class Same: Object {
                @Persisted var a: Int
                override class func shouldIncludeInDefaultSchema() -> Bool { false }
            }
        }
        let problems = ModelSchema.validate([One.Same.self, Two.Same.self].map { ClassInfo.of($0) })
        XCTAssertEqual(problems.count, 1)
        XCTAssertTrue(problems.first?.contains("declared more than once") ?? false)
    }

    func testKeyPathsHaveTheNamesOfTheirProperties() {
        XCTAssertEqual(_name(for: \Dog.name), "name")
        XCTAssertEqual(_name(for: \Dog.owner?.name), "owner.name")
        XCTAssertEqual(_name(for: \Person.friend?.friend?.age), "friend.friend.age")
        XCTAssertEqual(_name(for: \Person.address?.country?.name), "address.country.name")
        XCTAssertEqual(_name(for: \Renamed.firstName), "firstName")
        XCTAssertEqual(_name(for: \Person.dogs), "dogs")
        XCTAssertEqual(_name(for: \AllTypes.optDecimal), "optDecimal")
        XCTAssertEqual(_name(for: \Derived.title), "title")
        XCTAssertEqual(_name(for: \Mapped.url), "url")
        for property in ClassInfo.of(AllTypes.self).properties.prefix(3) { XCTAssertFalse(property.name.isEmpty) }
    }

    func testAComputedPropertyIsNotTakenForAPersistedOne() {
        XCTAssertFalse(Tracing.trace(\Derived.computed, from: Derived.self).isComplete)
        XCTAssertFalse(Tracing.trace(\Dog.name.count, from: Dog.self).isComplete)
        XCTAssertEqual(Tracing.trace(\Dog.name.count, from: Dog.self).path, "name")
        XCTAssertFalse(Tracing.trace(\Derived.notStored, from: Derived.self).isComplete)
    }
}

private class BadModel: Object {
    @Persisted(primaryKey: true) var first: Int
    @Persisted(primaryKey: true) var second: Int
    @Persisted(primaryKey: true) var flag: Bool
    @Persisted var link: Dog
    @Persisted var embeddedSet: MutableSet<BadEmbedded>
    @Persisted(originProperty: "nothing") var noOrigin: LinkingObjects<Dog>
    @Persisted(originProperty: "name") var noLink: LinkingObjects<Dog>
    @Persisted(originProperty: "owner") var otherLink: LinkingObjects<Dog>
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class BadEmbedded: EmbeddedObject {
    @Persisted(primaryKey: true) var id: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Empty: Object {
    var notPersisted = 1
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
