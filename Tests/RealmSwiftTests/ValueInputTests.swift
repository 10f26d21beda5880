import Foundation
import RealmSwiftTestModels
import XCTest

@testable import RealmSwift

/// Objects made from dictionaries, arrays, JSON and other objects.
final class ValueInputTests: XCTestCase {
    func testF128_fromADictionary() {
        let dog = Dog(value: ["name": "Rex", "age": 7])
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertEqual(dog.age, 7)
        XCTAssertNil(dog.owner)
    }

    func testF129_fromAnArrayInTheOrderOfTheProperties() {
        let id = ObjectId.generate()
        let dog = Dog(value: [id, "Rex", 7] as [Any])
        XCTAssertEqual(dog.id, id)
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertEqual(dog.age, 7)
    }

    func testF130_nestedValuesBecomeObjectsAndCollections() {
        let person = Person(
            value: [
                "name": "Ann", "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "owner": ["name": "Bo"]]] as [Any],
                "address": ["street": "Main"],
                "tags": ["a", "b", "a"], "pets": ["first": ["name": "Kit"]], "homes": [["city": "Rome"], ["city": "Oslo"]],
                "anything": ["list": [1, "x"], "flag": true] as [String: Any],
            ] as [String: Any])
        XCTAssertEqual(person.dogs.map(\.name), ["Rex", "Ada"])
        XCTAssertEqual(person.dogs[1].owner?.name, "Bo")
        XCTAssertEqual(person.address?.street, "Main")
        XCTAssertEqual(person.tags.count, 2)
        XCTAssertEqual(person.pets["first"]??.name, "Kit")
        XCTAssertEqual(person.homes.map(\.city), ["Rome", "Oslo"])
        XCTAssertEqual(person.anything.dictionaryValue?["flag"], .bool(true))
        XCTAssertEqual(person.anything.dictionaryValue?["list"]?.listValue.map { Array($0) }, [.int(1), .string("x")])
    }

    func testF132_whatJSONSerializationGivesIsAccepted() throws {
        let json =
            #"{"key": "k", "bool": true, "int": 5, "double": 3, "float": 1.1, "string": "s", "optInt": null, "optDouble": 2.5, "ints": [1, 2], "decimal": "12.50"}"#
        let value = try JSONSerialization.jsonObject(with: Data(json.utf8))
        let object = AllTypes(value: value)
        XCTAssertEqual(object.bool, true)
        XCTAssertEqual(object.int, 5)
        XCTAssertEqual(object.double, 3)
        XCTAssertEqual(object.float, 1.1)
        XCTAssertNil(object.optInt)
        XCTAssertEqual(object.optDouble, 2.5)
        XCTAssertEqual(Array(object.ints), [1, 2])
        XCTAssertEqual(object.decimal.stringValue, "12.50")
    }

    func testF052_aDetachedCopy() {
        let dog = Dog(name: "Rex", age: 3)
        let copy = Dog(value: dog)
        XCTAssertEqual(copy.id, dog.id)
        XCTAssertEqual(copy.name, "Rex")
        copy.name = "Ada"
        XCTAssertEqual(dog.name, "Rex")
    }

    func testF124_mappedTypesTakeBothForms() {
        XCTAssertEqual(Mapped(value: ["temperature": 5.5]).temperature.degrees, 5.5)
        XCTAssertEqual(Mapped(value: ["temperature": Celsius(degrees: 6)]).temperature.degrees, 6)
        XCTAssertEqual(Mapped(value: ["place": ["x": 1.0, "y": 2.0]]).place.y, 2)
    }

    func testNumbersOfFoundationAndUnsignedOnes() throws {
        let object = AllTypes(
            value: [
                "key": "x", "double": CGFloat(1.5), "float": Decimal(2.5), "int": Decimal(7), "int64": UInt64(9),
                "int8": UInt8(3),
                "optDouble": NSDecimalNumber(string: "0.25"), "any": CGFloat(0.5), "decimal": UInt64.max,
            ] as [String: Any])
        XCTAssertEqual(object.double, 1.5)
        XCTAssertEqual(object.float, 2.5)
        XCTAssertEqual(object.int, 7)
        XCTAssertEqual(object.int64, 9)
        XCTAssertEqual(object.int8, 3)
        XCTAssertEqual(object.optDouble, 0.25)
        XCTAssertEqual(object.any, .double(0.5))
        XCTAssertEqual(object.decimal, try Decimal128(string: "18446744073709551615"))
        assertTraps("number that is too large", "Invalid value '18446744073709551615'", "AllTypes.int")
        assertTraps("decimal for a double", "Invalid value '1.5' of type 'Decimal128'")
    }

    func testNumbersConvertWhereTheyStayTheSame() {
        XCTAssertEqual(ValueInput.convert(3.0, to: _PropertyShape(.int))?.plain, .int(3))
        XCTAssertNil(ValueInput.convert(3.5, to: _PropertyShape(.int)))
        XCTAssertNil(ValueInput.convert("3", to: _PropertyShape(.int)))
        XCTAssertEqual(ValueInput.convert(UInt8(3), to: _PropertyShape(.double))?.plain, .double(3))
        XCTAssertEqual(ValueInput.convert(NSNumber(value: true), to: _PropertyShape(.bool))?.plain, .bool(true))
        XCTAssertEqual(ValueInput.convert(NSNumber(value: 2.5), to: _PropertyShape(.double))?.plain, .double(2.5))
        XCTAssertEqual(ValueInput.convert(1, to: _PropertyShape(.bool))?.plain, .bool(true))
        XCTAssertNil(ValueInput.convert(2, to: _PropertyShape(.bool)))
        XCTAssertNil(ValueInput.convert(nil, to: _PropertyShape(.int)))
        XCTAssertEqual(ValueInput.convert(NSNull(), to: _PropertyShape(.int, isOptional: true))?.plain, .null)
        XCTAssertEqual(ValueInput.convert(Optional<Int>.none as Any, to: _PropertyShape(.int, isOptional: true))?.plain, .null)
        XCTAssertNil(ValueInput.convert(1e300, to: _PropertyShape(.float)))
    }

    func testF133_decodingMakesAnObject() throws {
        let dog = try JSONDecoder().decode(CodableDog.self, from: Data(#"{"name": "Rex", "age": 3, "toys": ["ball"]}"#.utf8))
        XCTAssertEqual(dog.name, "Rex")
        XCTAssertNil(dog.nickname)
        XCTAssertEqual(Array(dog.toys), ["ball"])
        XCTAssertThrowsError(try JSONDecoder().decode(CodableDog.self, from: Data(#"{"name": "Rex", "toys": []}"#.utf8)))
        let null = try JSONDecoder().decode(
            CodableDog.self, from: Data(#"{"name": "Rex", "age": 3, "nickname": null, "toys": []}"#.utf8))
        XCTAssertNil(null.nickname)
    }

    func testF417_encodingAnUnmanagedObject() throws {
        let dog = CodableDog(value: ["name": "Rex", "nickname": "R", "age": 3, "toys": ["ball", "bone"]] as [String: Any])
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        XCTAssertEqual(
            String(decoding: try encoder.encode(dog), as: UTF8.self),
            #"{"age":3,"name":"Rex","nickname":"R","toys":["ball","bone"]}"#)
    }
}
