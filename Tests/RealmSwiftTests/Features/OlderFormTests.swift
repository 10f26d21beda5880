import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Classes without `@Persisted`: constants of class type are their properties.
final class OlderFormTests: RealmTestCase {
    func testF059_F063_F065_F101_theSchemaOfTheOlderForm() throws {
        let schema = OldPerson().objectSchema
        XCTAssertEqual(
            schema.properties.map(\.name), ["number", "age", "score", "anything", "friends", "tags", "counts", "admirers"])
        XCTAssertEqual(schema.primaryKeyProperty?.name, "number")
        XCTAssertEqual(schema["age"]?.isIndexed, true)
        XCTAssertEqual(schema["score"]?.isIndexed, false)
        XCTAssertEqual(schema["score"]?.isOptional, true)
        XCTAssertEqual(schema["score"]?.type, .double)
        XCTAssertEqual(schema["friends"]?.isArray, true)
        XCTAssertEqual(schema["admirers"]?.type, .linkingObjects)
        XCTAssertNil(schema["draft"])
        XCTAssertNil(schema["notStored"])
    }

    func testF101_valuesOfTheOlderForm() throws {
        let realm = try makeRealm()
        let ann = OldPerson(value: ["number": 1, "age": 30, "anything": "text", "tags": ["a"]] as [String: Any]), bo = OldPerson()
        bo.number.value = 2
        bo.friends.append(ann)
        bo.counts["x"] = 5
        XCTAssertEqual(ann.age.value, 30)
        XCTAssertEqual(bo.score.value, 1.5)
        try realm.write { realm.add(bo) }
        XCTAssertEqual(realm.objects(OldPerson.self).count, 2)
        let read = try XCTUnwrap(realm.object(ofType: OldPerson.self, forPrimaryKey: 1))
        XCTAssertEqual(read.age.value, 30)
        XCTAssertEqual(read.anything.value, .string("text"))
        XCTAssertEqual(Array(read.tags), ["a"])
        XCTAssertEqual(read.admirers.map { $0.number.value }, [2])
        XCTAssertEqual(read.notStored, 7)
        try realm.write {
            read.age.value = nil
            read.anything.value = .int(4)
            read.friends.append(bo)
            read.score.value = 2.25
        }
        XCTAssertNil(ann.age.value)
        XCTAssertEqual(ann.anything.value, .int(4))
        XCTAssertEqual(ann.score.value, 2.25)
        XCTAssertEqual(ann.friends.first?.counts["x"], 5)
        XCTAssertEqual(realm.objects(OldPerson.self).filter("score > 2").count, 1)
        let age = read.score
        XCTAssertEqual(age.value, 2.25)
        XCTAssertEqual(read.freeze().score.value, 2.25)
        XCTAssertEqual(RealmOptional<Int>(3), RealmOptional<Int>(3))
        XCTAssertEqual(try JSONDecoder().decode([RealmOptional<Int>].self, from: Data("[1, null]".utf8)).map(\.value), [1, nil])
        XCTAssertEqual(
            String(decoding: try JSONEncoder().encode([RealmOptional<Int>(), RealmOptional<Int>(2)]), as: UTF8.self), "[null,2]")
        XCTAssertEqual(try JSONDecoder().decode([RealmProperty<Int?>].self, from: Data("[1, null]".utf8)).map(\.value), [1, nil])
    }

    func testF069_enumsOfTheOlderForm() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [OldShirt.self]))
        let shirt = OldShirt(value: ["size": OldSize.large, "colour": "red"] as [String: Any]), other = OldShirt()
        XCTAssertEqual(shirt.size.value, .large)
        XCTAssertEqual(shirt.colour.value, .red)
        other.size.value = .small
        try realm.write { realm.add([shirt, other]) }
        XCTAssertEqual(shirt.objectSchema["size"]?.type, .int)
        XCTAssertEqual(shirt.objectSchema["colour"]?.type, .string)
        XCTAssertEqual(shirt["size"] as? Int, 2)
        XCTAssertEqual(
            realm.objects(OldShirt.self).filter("size == %@", OldSize.small.rawValue).first?.isSameObject(as: other), true)
        XCTAssertEqual(realm.objects(OldShirt.self).filter("size == %@", OldSize.large).count, 1)
        XCTAssertNil(other.colour.value)
        try realm.write {
            other.colour.value = .blue
            shirt["size"] = 1
        }
        XCTAssertEqual(realm.objects(OldShirt.self).filter("colour = 'blue'").first?.colour.value, .blue)
        XCTAssertEqual(shirt.size.value, .small)
        try realm.write { shirt["size"] = 77 }
        XCTAssertNil(shirt.size.value)
    }

    func testF050_baseAndSubclassDeclareTheirOwnWay() throws {
        XCTAssertEqual(MixedForms().objectSchema.properties.map(\.name), ["id", "title", "numbers"])
        XCTAssertEqual(Derived().objectSchema.properties.map(\.name), ["id", "title", "subtitle"])
        let realm = try makeRealm()
        try realm.write { realm.add(MixedForms(value: ["title": "t", "numbers": [1, 2]] as [String: Any])) }
        XCTAssertEqual(realm.objects(MixedForms.self).first.map { Array($0.numbers) }, [1, 2])
        XCTAssertEqual(realm.objects(MixedForms.self).first?.title, "t")
    }
}

enum OldSize: Int, RealmEnum { case small = 1, large }
enum OldColour: String, RealmEnum { case red, blue }

final class OldShirt: Object {
    let size = RealmOptional<OldSize>()
    let colour = RealmProperty<OldColour?>()
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
