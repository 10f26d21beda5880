import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Queries written in Swift: what they find, and the text that they become.
final class TypedQueryTests: RealmTestCase {
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            realm.create(
                AllTypes.self,
                value: [
                    "key": "a", "int": 1, "double": 1.5, "string": "Ärger", "date": Date(timeIntervalSinceReferenceDate: 100),
                    "bool": true, "optInt": 1, "optString": "x",
                    "size": "small", "level": 1, "ints": [1, 2, 3], "strings": ["a", "b"], "intSet": [1],
                    "intMap": ["k": 1, "l": 5], "optInts": [1, NSNull()],
                    "decimal": 1, "any": ["x": [1, 2]], "data": Data([1, 2]), "optStringMap": ["n": "Value"],
                ] as [String: Any])
            realm.create(
                AllTypes.self,
                value: [
                    "key": "b", "int": 5, "double": 2.5, "string": "berg", "date": Date(timeIntervalSinceReferenceDate: 200),
                    "size": "large", "level": 10, "ints": [10],
                    "intSet": [5, 6], "intMap": ["k": 7], "decimal": 2, "any": [3], "data": Data([3]),
                ] as [String: Any])
            realm.create(
                AllTypes.self,
                value: [
                    "key": "c", "int": 9, "double": -1, "string": "BERG", "date": Date(timeIntervalSinceReferenceDate: 300),
                    "optInt": 7, "optSize": "medium", "decimal": 3, "any": 7,
                ] as [String: Any])
        }
        return realm
    }

    private func keys(_ realm: Realm, _ condition: (Query<AllTypes>) -> Query<Bool>) -> String {
        realm.objects(AllTypes.self).where(condition).map(\.key).sorted().joined()
    }
    private func text(_ condition: (Query<AllTypes>) -> Query<Bool>) -> String { text(AllTypes.self, condition) }
    private func text<T>(_ type: T.Type, _ condition: (Query<T>) -> Query<Bool>) -> String {
        condition(Query._constructForTesting())._constructPredicate().0
    }

    func testF192_comparison() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.int == 5 }, "b")
        XCTAssertEqual(keys(realm) { $0.int != 5 }, "ac")
        XCTAssertEqual(keys(realm) { $0.int < 5 }, "a")
        XCTAssertEqual(keys(realm) { $0.int <= 5 }, "ab")
        XCTAssertEqual(keys(realm) { $0.double > 0 }, "ab")
        XCTAssertEqual(keys(realm) { $0.double >= 2.5 }, "b")
        XCTAssertEqual(keys(realm) { $0.date > Date(timeIntervalSinceReferenceDate: 150) }, "bc")
        XCTAssertEqual(keys(realm) { $0.decimal < 2 }, "a")
        XCTAssertEqual(keys(realm) { $0.int > $0.level.rawValue }, "c")
        XCTAssertEqual(keys(realm) { $0.data == Data([3]) }, "b")
        XCTAssertEqual(keys(realm) { $0.string < "b" }, "c")
        XCTAssertEqual(keys(realm) { $0.uuid == UUID() }, "")
    }

    func testF193_ranges() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.int.contains(1...5) }, "ab")
        XCTAssertEqual(keys(realm) { $0.int.contains(1..<5) }, "a")
        XCTAssertEqual(keys(realm) { $0.double.contains(1.5...2.5) }, "ab")
        XCTAssertEqual(keys(realm) { $0.optInt.contains(1...7) }, "ac")
        XCTAssertEqual(
            keys(realm) {
                $0.date.contains(Date(timeIntervalSinceReferenceDate: 100)..<Date(timeIntervalSinceReferenceDate: 300))
            }, "ab")
        XCTAssertEqual(keys(realm) { $0.ints.contains(1...3) }, "a")
        XCTAssertEqual(keys(realm) { $0.ints.contains(1..<3) }, "")
        XCTAssertEqual(text { $0.int.contains(1...5) }, "(int BETWEEN {%@, %@})")
        XCTAssertEqual(text { $0.int.contains(1..<5) }, "((int >= %@) && (int < %@))")
        XCTAssertEqual(text { $0.ints.contains(1..<5) }, "((ints.@min >= %@) && (ints.@max < %@))")
        XCTAssertEqual(text { $0.intMap.contains(1...5) }, "((intMap.@min >= %@) && (intMap.@max <= %@))")
    }

    func testF194_membership() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.int.in([1, 9, 4]) }, "ac")
        XCTAssertEqual(keys(realm) { $0.string.in(["berg"]) }, "b")
        XCTAssertEqual(keys(realm) { $0.optInt.in([nil, 7]) }, "bc")
        XCTAssertEqual(keys(realm) { !$0.int.in([1]) }, "bc")
        XCTAssertEqual(keys(realm) { $0.size.in([.small, .large]) }, "abc")
        XCTAssertEqual(keys(realm) { $0.int.in([]) }, "")
        XCTAssertEqual(text { $0.date.in([Date()]) }, "(date IN %@)")
    }

    func testF195_F201_collectionsAnyAndNone() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.ints.contains(2) }, "a")
        XCTAssertEqual(keys(realm) { $0.ints.containsAny(in: [3, 10]) }, "ab")
        XCTAssertEqual(keys(realm) { !$0.ints.containsAny(in: [3, 10]) }, "c")
        XCTAssertEqual(keys(realm) { $0.intSet.contains(6) }, "b")
        XCTAssertEqual(keys(realm) { $0.ints == 10 }, "b")
        XCTAssertEqual(keys(realm) { $0.ints > 2 }, "ab")
        XCTAssertEqual(keys(realm) { $0.optInts.contains(nil) }, "a")
        XCTAssertEqual(keys(realm) { $0.intMap.contains(5) }, "a")
        XCTAssertEqual(keys(realm) { $0.intMap.containsAny(in: [5, 7]) }, "ab")
        XCTAssertEqual(text { $0.ints.contains(2) }, "(%@ IN ints)")
        XCTAssertEqual(text { $0.ints.containsAny(in: [2]) }, "(ANY ints IN %@)")
        XCTAssertEqual(text { $0.intMap.contains(2) }, "(%@ IN intMap)")
    }

    func testF196_maps() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.intMap["k"] == 7 }, "b")
        XCTAssertEqual(keys(realm) { $0.intMap["k"] > 0 }, "ab")
        XCTAssertEqual(keys(realm) { $0.intMap.keys == "l" }, "a")
        XCTAssertEqual(keys(realm) { $0.intMap.keys.contains("l") }, "a")
        XCTAssertEqual(keys(realm) { $0.intMap.keys.starts(with: "k") }, "ab")
        XCTAssertEqual(keys(realm) { $0.intMap.keys.like("?") }, "ab")
        XCTAssertEqual(keys(realm) { $0.intMap.values > 6 }, "b")
        XCTAssertEqual(keys(realm) { $0.intMap.count == 2 }, "a")
        XCTAssertEqual(keys(realm) { $0.intMap.max == 7 }, "b")
        XCTAssertEqual(keys(realm) { $0.intMap.sum > 5 }, "ab")
        XCTAssertEqual(keys(realm) { $0.optStringMap.values.like("VAL*", caseInsensitive: true) }, "a")
        XCTAssertEqual(
            text { $0.optStringMap.values.like("VAL*", caseInsensitive: true) }, "(ANY optStringMap.@allValues LIKE[c] %@)")
        XCTAssertEqual(text { $0.intMap["k"] == 7 }, "(intMap[%@] == %@)")
    }

    func testF197_logic() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.int > 1 && $0.double > 0 }, "b")
        XCTAssertEqual(keys(realm) { $0.int > 5 || $0.int < 2 }, "ac")
        XCTAssertEqual(keys(realm) { $0.int == 9 || $0.int > 1 && $0.double > 0 }, "bc")
        XCTAssertEqual(keys(realm) { !($0.int == 1 || $0.int == 9) }, "b")
        XCTAssertEqual(text { !($0.int == 1 && $0.int == 9) }, "NOT ((int == %@) && (int == %@))")
        XCTAssertEqual(text { !($0.int == 1) && $0.int == 9 }, "(NOT (int == %@) && (int == %@))")
    }

    func testF198_textsWithOptions() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.string.contains("erg") }, "b")
        XCTAssertEqual(keys(realm) { $0.string.contains("ERG", options: .caseInsensitive) }, "bc")
        XCTAssertEqual(keys(realm) { $0.string.starts(with: "a", options: [.caseInsensitive, .diacriticInsensitive]) }, "a")
        XCTAssertEqual(keys(realm) { $0.string.starts(with: "ä", options: .caseInsensitive) }, "a")
        XCTAssertEqual(keys(realm) { $0.string.ends(with: "rg") }, "b")
        XCTAssertEqual(keys(realm) { $0.string.equals("BERG") }, "c")
        XCTAssertEqual(keys(realm) { $0.string.equals("BERG", options: .caseInsensitive) }, "bc")
        XCTAssertEqual(keys(realm) { $0.string.notEquals("berg", options: .caseInsensitive) }, "a")
        XCTAssertEqual(keys(realm) { $0.string.like("b*") }, "b")
        XCTAssertEqual(keys(realm) { $0.string.like("?erg", caseInsensitive: true) }, "bc")
        XCTAssertEqual(keys(realm) { $0.data.contains(Data([2])) }, "a")
        XCTAssertEqual(keys(realm) { $0.data.starts(with: Data([1])) }, "a")
        XCTAssertEqual(keys(realm) { $0.string == $0.key || $0.string.ends(with: $0.key) }, "")
        XCTAssertEqual(keys(realm) { $0.string.contains($0.string) && $0.int == 5 }, "b")
        XCTAssertEqual(keys(realm) { $0.optString.contains("x") }, "a")
        XCTAssertEqual(keys(realm) { $0.size.rawValue.contains("ar") }, "b")
        XCTAssertEqual(
            text { $0.string.contains("x", options: [.caseInsensitive, .diacriticInsensitive]) }, "(string CONTAINS[cd] %@)")
    }

    func testF199_placesHaveTheirOwnOperator() throws {
        let box = GeoBox(
            bottomLeft: try XCTUnwrap(GeoPoint(latitude: 0, longitude: 0)),
            topRight: try XCTUnwrap(GeoPoint(latitude: 1, longitude: 1)))
        XCTAssertEqual(text(Person.self) { $0.address.geoWithin(box) }, "(address IN %@)")
        let (_, arguments) = Query<Person>._constructForTesting().address.geoWithin(box)._constructPredicate()
        XCTAssertEqual(arguments.first as? GeoBox, box)
    }

    func testF200_aggregatesOverCollections() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.ints.count > 1 }, "a")
        XCTAssertEqual(keys(realm) { $0.ints.max == 10 }, "b")
        XCTAssertEqual(keys(realm) { $0.ints.min < 5 }, "a")
        XCTAssertEqual(keys(realm) { $0.ints.sum == 6 }, "a")
        XCTAssertEqual(keys(realm) { $0.ints.avg == 2 }, "a")
        XCTAssertEqual(keys(realm) { $0.intSet.max > 5 }, "b")
        try realm.write { realm.create(Person.self, value: ["name": "Ann", "dogs": [["age": 2], ["age": 4]]] as [String: Any]) }
        let people = realm.objects(Person.self)
        XCTAssertEqual(people.where { $0.dogs.age.avg == 3 }.count, 1)
        XCTAssertEqual(people.where { $0.dogs.age.sum == 6 && $0.dogs.age.min == 2 && $0.dogs.age.max == 4 }.count, 1)
        XCTAssertEqual(people.where { $0.dogs.count == 2 }.count, 1)
        XCTAssertEqual(text(Person.self) { $0.dogs.age.avg > 3 }, "(dogs.@avg.age > %@)")
    }

    func testF202_countedSubqueries() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(
                Person.self,
                value: [
                    "name": "Ann", "dogs": [["name": "Rex", "age": 2], ["name": "Ada", "age": 4]],
                    "friend": ["name": "Bo", "dogs": [["age": 9]]],
                ] as [String: Any])
        }
        let people = realm.objects(Person.self)
        XCTAssertEqual(people.where { ($0.dogs.age > 1).count > 1 }.map(\.name), ["Ann"])
        XCTAssertEqual(people.where { ($0.dogs.age > 1 && $0.dogs.name == "Rex").count == 1 }.map(\.name), ["Ann"])
        XCTAssertEqual(people.where { ($0.friend.dogs.age > 8).count == 1 }.map(\.name), ["Ann"])
        XCTAssertEqual(people.where { ($0.dogs.age > 100).count == 0 }.count, 2)
        XCTAssertEqual(
            text(Person.self) { ($0.dogs.age > 1 && $0.dogs.name == "Rex").count == 1 },
            "(SUBQUERY(dogs, $col1, (($col1.age > %@) && ($col1.name == %@))).@count == %@)")
        XCTAssertEqual(
            text(Person.self) { ($0.dogs.age > 1).count == 1 && ($0.dogs.age > 2).count == 1 },
            "((SUBQUERY(dogs, $col1, ($col1.age > %@)).@count == %@) && (SUBQUERY(dogs, $col2, ($col2.age > %@)).@count == %@))")
        XCTAssertEqual(
            text(Dog.self) { (($0.fans.dogs.age > 1).count > 2 && $0.fans.age > 3).count > 0 },
            "(SUBQUERY(fans, $col1, ((SUBQUERY($col1.dogs, $col2, ($col2.age > %@)).@count > %@) && ($col1.age > %@))).@count > %@)"
        )
    }

    func testF203_aFlagIsACondition() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.bool }, "a")
        XCTAssertEqual(keys(realm) { !$0.bool }, "bc")
        XCTAssertEqual(keys(realm) { $0.bool && $0.int == 1 }, "a")
        XCTAssertEqual(keys(realm) { $0.bool == false && $0.int > 5 }, "c")
        XCTAssertEqual(text { $0.bool }, "bool == true")
        XCTAssertEqual(text { !$0.bool }, "bool == false")
    }

    func testF204_nilIsComparedWithOptionals() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.optInt == nil }, "b")
        XCTAssertEqual(keys(realm) { $0.optInt != nil }, "ac")
        XCTAssertEqual(keys(realm) { $0.optString == nil }, "bc")
        XCTAssertEqual(keys(realm) { $0.optSize == nil }, "ab")
        XCTAssertEqual(keys(realm) { $0.optInt > 5 }, "c")
    }

    func testF205_enums() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.size == .large }, "b")
        XCTAssertEqual(keys(realm) { $0.size != .small }, "b")
        XCTAssertEqual(keys(realm) { $0.level > .low }, "b")
        XCTAssertEqual(keys(realm) { $0.level.rawValue == 10 }, "b")
        XCTAssertEqual(keys(realm) { $0.optSize == .medium }, "c")
        XCTAssertEqual(keys(realm) { $0.optSize.rawValue == "medium" }, "c")
        XCTAssertEqual(keys(realm) { $0.level.contains(.low ... .high) }, "abc")
    }

    func testNestedCollectionsOfAnyRealmValue() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm) { $0.any["x"][1] == .int(2) }, "a")
        XCTAssertEqual(keys(realm) { $0.any[0] == .int(3) }, "b")
        XCTAssertEqual(keys(realm) { $0.any.any == .int(3) }, "b")
        XCTAssertEqual(keys(realm) { $0.any["x"].any == .int(1) }, "a")
        XCTAssertEqual(keys(realm) { $0.any == .int(7) }, "c")
        XCTAssertEqual(text(Person.self) { $0.anything["a"][0] == .int(1) }, "(anything[%@][%@] == %@)")
        let (shape, arguments) = (Query<Person>._constructForTesting().anything.any == .int(1))._constructPredicate()
        XCTAssertEqual(shape, "(anything[%K] == %@)")
        XCTAssertEqual(arguments.first as? String, "#any")
    }

    func testF191_F206_whereOnListsAndLinkingObjects() throws {
        let realm = try makeRealm()
        let ann = Person(
            value: ["name": "Ann", "dogs": [["name": "Rex", "age": 2], ["name": "Ada", "age": 4]]] as [String: Any])
        try realm.write { realm.add(ann) }
        XCTAssertEqual(ann.dogs.where { $0.age > 3 }.map(\.name), ["Ada"])
        XCTAssertEqual(ann.dogs[0].fans.where { $0.name == "Ann" }.count, 1)
        XCTAssertEqual(ann.dogs.where { $0.name == "Rex" }.first?.age, 2)
        XCTAssertEqual(text(Renamed.self) { $0.firstName == "x" && $0.count > 1 }, "((first_name == %@) && (count > %@))")
    }
}
