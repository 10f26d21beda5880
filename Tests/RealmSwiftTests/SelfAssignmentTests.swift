import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

private func text(_ value: AnyRealmValue) -> String {
    switch value {
    case .list(let list): "[" + Array(list).map { text($0) }.joined(separator: ",") + "]"
    case .dictionary(let map): "{" + map.keys.sorted().map { "\($0):" + text(map[$0] ?? .none) }.joined(separator: ",") + "}"
    case .int(let value): "\(value)"
    case .object(let object): "\(object["name"] ?? "")"
    default: "-"
    }
}

/// What is stored may be what is stored there already, or a part of it, or holds it.
final class SelfAssignmentTests: RealmTestCase {
    /// Runs a change of a person's value and gives what comes of it.
    private func changed(_ value: AnyRealmValue, line: UInt = #line, _ change: (Person) -> Void) throws -> String {
        let realm = try makeRealm(), person = Person()
        try realm.write {
            realm.add(person)
            person.anything = value
        }
        try realm.write { change(person) }
        return text(person.anything)
    }

    func testAValueOfAnyTypeIsAssignedToItself() throws {
        let nested = AnyRealmValue.fromArray([.int(1), .fromDictionary(["a": .int(2)])])
        XCTAssertEqual(try changed(nested) { $0.anything = $0.anything }, "[1,{a:2}]")
        XCTAssertEqual(try changed(nested) { $0.anything = .fromArray([$0.anything, .int(3)]) }, "[[1,{a:2}],3]")
        XCTAssertEqual(try changed(nested) { $0.anything = .fromDictionary(["b": $0.anything]) }, "{b:[1,{a:2}]}")
        XCTAssertEqual(try changed(nested) { $0["anything"] = $0["anything"] }, "[1,{a:2}]")
    }

    func testAPartOfAValueTakesItsPlace() throws {
        let list = AnyRealmValue.fromArray([.int(1), .fromArray([.int(2), .fromArray([.int(3)])])])
        XCTAssertEqual(try changed(list) { $0.anything = $0.anything.listValue![1] }, "[2,[3]]")
        let dictionary = AnyRealmValue.fromDictionary(["a": .fromDictionary(["b": .int(1)])])
        XCTAssertEqual(try changed(dictionary) { $0.anything = $0.anything.dictionaryValue!["a"]! }, "{b:1}")
    }

    func testAListGoesIntoItself() throws {
        XCTAssertEqual(try changed(.fromArray([.int(1)])) { $0.anything.listValue?.append($0.anything) }, "[1,[1]]")
        XCTAssertEqual(try changed(.fromArray([.int(1)])) { $0.anything.listValue?[0] = $0.anything }, "[[1]]")
        XCTAssertEqual(
            try changed(.fromDictionary(["a": .int(1)])) { $0.anything.dictionaryValue?["b"] = $0.anything }, "{a:1,b:{a:1}}")
        let entry = AnyRealmValue.fromDictionary(["a": .fromArray([.int(1)])])
        XCTAssertEqual(try changed(entry) { $0.anything.dictionaryValue?["a"] = $0.anything.dictionaryValue?["a"] }, "{a:[1]}")
    }

    func testElementsOfAnyTypeAreAssignedToThemselves() throws {
        let realm = try makeRealm(), object = AllTypes(value: ["key": "x"])
        try realm.write {
            realm.add(object)
            object.anys.append(objectsIn: [.fromArray([.int(1)]), .int(5)])
            object.anyMap["a"] = .fromArray([.int(1)])
        }
        try realm.write {
            object.anys[0] = object.anys[0]
            object.anys[1] = object.anys[0]
            object.anyMap["a"] = object.anyMap["a"]
            object.anyMap["b"] = object.anyMap["a"]
        }
        XCTAssertEqual(object.anys.map { text($0) }, ["[1]", "[1]"])
        XCTAssertEqual(object.anyMap.values.map { text($0) }, ["[1]", "[1]"])
        try realm.write { object.anys[0].listValue?.append(.int(9)) }
        XCTAssertEqual(object.anys.map { text($0) }, ["[1,9]", "[1]"])
        try realm.write {
            realm.create(
                AllTypes.self, value: ["key": "x", "anys": object.anys, "anyMap": object.anyMap] as [String: Any], update: .all)
            object.anys.append(objectsIn: object.anys)
        }
        XCTAssertEqual(object.anys.map { text($0) }, ["[1,9]", "[1]", "[1,9]", "[1]"])
        XCTAssertEqual(object.anyMap.values.map { text($0) }, ["[1]", "[1]"])
        // A list in the list takes the place of the whole.
        let inner = try XCTUnwrap(object.anys[0].listValue)
        try realm.write {
            inner.append(.fromArray([.int(7)]))
            object.anys = inner
        }
        XCTAssertEqual(object.anys.map { text($0) }, ["1", "9", "[7]"])
    }

    private func withHomes(_ name: String) throws -> (Realm, Person) {
        let realm = try Realm(configuration: configuration(name)), person = Person()
        for street in ["a", "b"] {
            person.homes.append(Address(value: ["street": street, "country": ["name": "in " + street]] as [String: Any]))
        }
        person.places["m"] = Address(value: ["street": "m"])
        person.address = Address(value: ["street": "s"])
        try realm.write { realm.add(person) }
        return (realm, person)
    }

    func testEmbeddedObjectsAreAssignedToWhereTheyAreByName() throws {
        let (realm, person) = try withHomes("by name")
        try realm.write {
            person["homes"] = person.homes
            person["places"] = person.places
            person["address"] = person.address
        }
        XCTAssertEqual(person.homes.map(\.street), ["a", "b"])
        XCTAssertEqual(person.homes.map { $0.country?.name }, ["in a", "in b"])
        XCTAssertEqual(person.places["m"]??.street, "m")
        XCTAssertEqual(person.address?.street, "s")
        try realm.write { person["homes"] = Array(person.homes.reversed()) }
        XCTAssertEqual(person.homes.map(\.street), ["b", "a"])
        XCTAssertEqual(realm.dynamicObjects("Address").count, 4)
    }

    func testEmbeddedObjectsOfOneObjectAreCopiedByCreate() throws {
        let (realm, person) = try withHomes("created")
        let other = try realm.write {
            realm.create(
                Person.self, value: ["homes": person.homes, "places": person.places, "address": person.address!] as [String: Any])
        }
        XCTAssertEqual(other.homes.map(\.street), ["a", "b"])
        XCTAssertEqual(other.places["m"]??.street, "m")
        XCTAssertEqual(person.homes.map(\.street), ["a", "b"])
        XCTAssertEqual(realm.dynamicObjects("Address").count, 8)
    }

    func testObjectsInValuesOfAnyTypeAreCopiedFromAnotherRealm() throws {
        let first = try Realm(configuration: configuration("first")), second = try Realm(configuration: configuration("second"))
        let dog = Dog(name: "Rex")
        try first.write { first.add(dog) }
        let object = try second.write {
            second.create(
                AllTypes.self,
                value: ["key": "x", "any": dog, "anys": [dog, 1, [dog]] as [Any], "anyMap": ["k": ["l": dog]]] as [String: Any],
                update: .modified)
        }
        XCTAssertEqual(object.any.object(Dog.self)?.realm, second)
        XCTAssertEqual(object.anys.map { text($0) }, ["Rex", "1", "[Rex]"])
        XCTAssertEqual(text(object.anyMap["k"] ?? .none), "{l:Rex}")
        XCTAssertEqual(second.objects(Dog.self).count, 1)
        XCTAssertEqual(first.objects(Dog.self).count, 1)
    }

    func testACopyOfAnObjectHoldsItsOwnLists() throws {
        let realm = try makeRealm(), person = Person()
        try realm.write {
            realm.add(person)
            person.anything = .fromArray([.int(1), .fromArray([.int(2)])])
        }
        let copy = Person(value: person)
        try realm.write { realm.delete(person) }
        XCTAssertEqual(text(copy.anything), "[1,[2]]")
    }
}
