import Foundation
import RealmSwiftTestModels
import XCTest

@testable import RealmSwift

/// Objects that are in no Realm: they hold plain values and behave like any Swift object.
final class ModelTests: XCTestCase {
    func testF036_aDefinedModelHasItsProperties() {
        let schema = Person().objectSchema
        XCTAssertEqual(schema.className, "Person")
        XCTAssertEqual(
            schema.properties.map(\.name),
            ["name", "age", "dogs", "friend", "address", "homes", "places", "tags", "pets", "anything"])
        XCTAssertEqual(schema["name"]?.type, .string)
        XCTAssertEqual(schema["age"]?.type, .int)
        XCTAssertEqual(schema["dogs"]?.type, .object)
        XCTAssertEqual(schema["dogs"]?.isArray, true)
        XCTAssertEqual(schema["dogs"]?.objectClassName, "Dog")
        XCTAssertEqual(schema["tags"]?.isSet, true)
        XCTAssertEqual(schema["pets"]?.isMap, true)
        XCTAssertEqual(schema["anything"]?.type, .any)
        XCTAssertEqual(schema["anything"]?.isOptional, true)
    }

    func testF037_aConvenienceInitializerSetsValues() {
        let dog = Dog(name: "Rex", age: 3)
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertEqual(dog.age, 3)
    }

    func testF045_modelsAreFoundWithoutRegistration() {
        let found = Set(ModelSchema.defaultTypes().map { ObjectIdentifier($0) })
        for type in [Dog.self, Person.self, AllTypes.self, Derived.self, PrivateModel.self, Outer.Nested.self]
            as [ObjectBase.Type]
        {
            XCTAssertTrue(found.contains(ObjectIdentifier(type)), "\(type)")
        }
        XCTAssertTrue(found.contains(ObjectIdentifier(Address.self)))
        XCTAssertFalse(found.contains(ObjectIdentifier(DynamicObject.self)))
    }

    func testF047_aClassThatDoesNotWantToBeInTheDefaultSchemaIsNot() {
        XCTAssertFalse(ModelSchema.defaultTypes().contains { $0 == Hidden.self })
        XCTAssertTrue(ModelRuntime.allModels().contains { $0 == Hidden.self })
    }

    func testF048_aSubclassHasTheInheritedPropertiesFirst() {
        XCTAssertEqual(Derived().objectSchema.properties.map(\.name), ["id", "title", "subtitle"])
        XCTAssertEqual(Derived().objectSchema.primaryKeyProperty?.name, "id")
        XCTAssertEqual(Base().objectSchema.properties.map(\.name), ["id", "title"])
    }

    func testF055_declarationsShowInTheSchema() {
        let schema = Dog().objectSchema
        XCTAssertEqual(schema.primaryKeyProperty?.name, "id")
        XCTAssertEqual(schema["id"]?.isIndexed, true)
        XCTAssertEqual(schema["name"]?.isIndexed, true)
        XCTAssertEqual(schema["age"]?.isIndexed, false)
        XCTAssertEqual(schema["fans"]?.type, .linkingObjects)
        XCTAssertEqual(schema["fans"]?.isArray, true)
        XCTAssertEqual(schema["fans"]?.objectClassName, "Person")
        XCTAssertEqual(schema["fans"]?.originProperty, "dogs")
    }

    func testF057_optionalPropertiesBeginWithNil() {
        let object = AllTypes()
        XCTAssertNil(object.optInt)
        XCTAssertNil(object.optString)
        XCTAssertNil(object.optSize)
        object.optInt = 5
        XCTAssertEqual(object.optInt, 5)
        object.optInt = nil
        XCTAssertNil(object.optInt)
        XCTAssertEqual(object.objectSchema["optInt"]?.isOptional, true)
        XCTAssertEqual(object.objectSchema["int"]?.isOptional, false)
    }

    func testF064_propertiesThatAreNotPersistedAreIgnored() {
        let object = Derived()
        XCTAssertNil(object.objectSchema["notStored"])
        XCTAssertNil(object.objectSchema["lazily"])
        XCTAssertNil(object.objectSchema["computed"])
        object.notStored = 7
        object.title = "a"
        object.subtitle = "b"
        XCTAssertEqual(object.notStored, 7)
        XCTAssertEqual(object.computed, "ab")
    }

    func testF067_defaultsOfEveryType() {
        let object = AllTypes()
        XCTAssertEqual(object.bool, false)
        XCTAssertEqual(object.int, 0)
        XCTAssertEqual(object.int8, 0)
        XCTAssertEqual(object.float, 0)
        XCTAssertEqual(object.double, 0)
        XCTAssertEqual(object.string, "")
        XCTAssertEqual(object.data, Data())
        XCTAssertEqual(object.decimal, 0)
        XCTAssertEqual(object.any, .none)
        XCTAssertEqual(object.size, .small)
        XCTAssertEqual(object.level, .low)
        XCTAssertEqual(object.ints.count, 0)
        XCTAssertEqual(object.intMap.count, 0)
        XCTAssertEqual(object.intSet.count, 0)
        XCTAssertEqual(object.date.timeIntervalSinceNow, 0, accuracy: 60)
        XCTAssertEqual(Dog().name, "")
    }

    func testF068_aLazyDefaultIsRememberedAfterTheFirstRead() {
        let object = AllTypes()
        XCTAssertEqual(object.objectId, object.objectId)
        XCTAssertEqual(object.uuid, object.uuid)
        XCTAssertEqual(object.date, object.date)
        XCTAssertNotEqual(object.objectId, AllTypes().objectId)
        XCTAssertTrue(object.ints === object.ints)
        XCTAssertEqual(ObjectId().stringValue, "000000000000000000000000")
    }

    func testF069_enumsHoldTheirCases() {
        let object = AllTypes()
        object.size = .large
        object.level = .high
        object.optSize = .medium
        XCTAssertEqual(object.size, .large)
        XCTAssertEqual(object["size"] as? String, "large")
        XCTAssertEqual(object["level"] as? Int, 10)
        XCTAssertEqual(object.objectSchema["size"]?.type, .string)
        XCTAssertEqual(object.objectSchema["level"]?.type, .int)
        XCTAssertTrue(Level.low < Level.high)
        object["size"] = "medium"
        XCTAssertEqual(object.size, .medium)
    }

    func testF071_aRenamedPropertyHasAnotherColumn() {
        let property = Renamed().objectSchema["firstName"]
        XCTAssertEqual(property?.columnName, "first_name")
        XCTAssertEqual(property?.name, "firstName")
        XCTAssertNil(Renamed().objectSchema["first_name"])
    }

    func testF078_linksOfUnmanagedObjects() {
        let dog = Dog(name: "Rex"), person = Person()
        dog.owner = person
        XCTAssertTrue(dog.owner === person)
        dog.owner = nil
        XCTAssertNil(dog.owner)
        XCTAssertEqual(dog.fans.count, 0)
    }

    func testF082_embeddedObjectsOfUnmanagedObjects() {
        let person = Person()
        person.address = Address(value: ["street": "Main", "city": "York", "country": ["name": "UK"]])
        XCTAssertEqual(person.address?.country?.name, "UK")
        person.homes.append(Address())
        person.places["a"] = Address(value: ["city": "Rome"])
        XCTAssertEqual(person.places["a"]??.city, "Rome")
    }

    func testF106_anyRealmValueHoldsEveryCase() throws {
        let object = AllTypes(), dog = Dog(name: "Rex")
        let id = ObjectId.generate(), uuid = UUID(), date = Date()
        let values: [AnyRealmValue] = [
            .none, .int(1), .bool(true), .float(1.5), .double(2.5), .string("s"), .data(Data([1, 2])), .date(date), .object(dog),
            .objectId(id),
            .decimal128(3.5), .uuid(uuid),
        ]
        for value in values {
            object.any = value
            XCTAssertEqual(object.any, value)
        }
        object.any = .object(dog)
        XCTAssertTrue(object.any.object(Dog.self) === dog)
        XCTAssertNil(object.any.object(Person.self))
        XCTAssertNil(object.any.intValue)
        XCTAssertNotEqual(AnyRealmValue.int(1), .double(1))
        object.any = .fromDictionary(["a": .int(1), "b": .fromArray([.string("x")])])
        XCTAssertEqual(object.any.dictionaryValue?["a"], .int(1))
        XCTAssertEqual(object.any.dictionaryValue?["b"]?.listValue?.first, .string("x"))
    }

    func testF119_aMappedTypeIsStoredAsItsPersistedType() {
        let object = Mapped()
        XCTAssertEqual(object.temperature.degrees, 0)
        object.temperature = Celsius(degrees: 21.5)
        XCTAssertEqual(object["temperature"] as? Double, 21.5)
        XCTAssertEqual(object.objectSchema["temperature"]?.type, .double)
        object["temperature"] = 3.5
        XCTAssertEqual(object.temperature, Celsius(degrees: 3.5))
        object.place = Point(x: 1, y: 2)
        XCTAssertEqual(object.place.y, 2)
        XCTAssertEqual(object.objectSchema["place"]?.objectClassName, "PointModel")
        XCTAssertNil(object.optPlace)
    }

    func testF120_aFailableMappedTypeIsNilWhereItCannotBeMade() {
        let object = Mapped(value: ["url": "https://example.org", "even": 4])
        XCTAssertEqual(object.url?.host, "example.org")
        XCTAssertEqual(object.even?.value, 4)
        XCTAssertNil(EvenNumber._fromOptional(3._toStored()))
        XCTAssertNil(Optional<EvenNumber>._from(3._toStored()))
    }

    func testF122_mappedTypesInCollections() throws {
        let object = Mapped(value: ["urls": ["https://a.b", "https://c.d"], "urlsByName": ["x": "https://e.f"]])
        XCTAssertEqual(object.urls.map(\.absoluteString), ["https://a.b", "https://c.d"])
        XCTAssertEqual(object.urlsByName["x"]?.absoluteString, "https://e.f")
        object.urls.append(try XCTUnwrap(URL(string: "https://g.h")))
        XCTAssertEqual(object.urls.count, 3)
    }

    func testF144_unmanagedObjectsStandAlone() {
        let dog = Dog(name: "Rex")
        XCTAssertFalse(dog.isInvalidated)
        XCTAssertEqual(dog, dog)
        XCTAssertNotEqual(dog, Dog(name: "Rex"))
        XCTAssertEqual(Set([dog, dog]).count, 1)
    }

    func testF440_theDescriptionListsPropertiesAndNestedObjects() {
        let dog = Dog(name: "Rex", age: 3)
        let text = dog.description
        XCTAssertTrue(text.hasPrefix("Dog {\n\tid = \(dog.id);\n\tname = Rex;\n\tage = 3;\n\towner = (null);\n"), text)
        let person = Person(value: ["name": "Ann"])
        person.dogs.append(dog)
        dog.owner = person
        XCTAssertTrue(person.description.contains("<Maximum depth exceeded>"))
        XCTAssertTrue(person.description.contains("List<Dog>"))
    }

    func testF439_propertiesByName() {
        let dog = Dog()
        dog["name"] = "Ada"
        XCTAssertEqual(dog.name, "Ada")
        XCTAssertEqual(dog["name"] as? String, "Ada")
        dog.setValue(5, forKey: "age")
        XCTAssertEqual(dog.value(forKey: "age") as? Int, 5)
        let person = Person()
        dog.owner = person
        dog.setValue("Bo", forKeyPath: "owner.name")
        XCTAssertEqual(person.name, "Bo")
        XCTAssertEqual(dog.value(forKeyPath: "owner.name") as? String, "Bo")
        person.dogs.append(dog)
        XCTAssertEqual(person.value(forKeyPath: "dogs.@count") as? Int, 1)
        XCTAssertEqual(person.value(forKeyPath: "dogs.@sum.age") as? Int, 5)
        XCTAssertEqual(person.value(forKeyPath: "dogs.name") as? [String], ["Ada"])
    }
}

private class PrivateModel: Object {
    @Persisted var value: Int
}

private enum Outer {
    class Nested: Object {
        @Persisted var value: Int
    }
}
