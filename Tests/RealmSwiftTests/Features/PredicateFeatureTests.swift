import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Predicates as text. What the language means in every detail is tested against recorded answers in InteropTests.
final class PredicateFeatureTests: RealmTestCase {
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            realm.create(
                AllTypes.self,
                value: [
                    "key": "a", "int": 1, "double": 1.0, "float": 1.5, "string": "Jürgen",
                    "date": Date(timeIntervalSinceReferenceDate: 100), "bool": true, "optInt": 1,
                    "ints": [1, 2, 3], "doubles": [1.5, 2.5], "data": Data([1, 2]), "decimal": 1,
                ] as [String: Any])
            realm.create(
                AllTypes.self,
                value: [
                    "key": "b", "int": 5, "double": 2.5, "string": "jan", "date": Date(timeIntervalSinceReferenceDate: 200),
                    "optString": "x", "ints": [10], "decimal": 2.5,
                ] as [String: Any])
            realm.create(
                AllTypes.self,
                value: [
                    "key": "c", "int": 9, "double": -1, "string": "JAN", "date": Date(timeIntervalSinceReferenceDate: 300),
                    "optInt": 9,
                ] as [String: Any])
            realm.create(
                Person.self,
                value: [
                    "name": "Ann", "age": 20, "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "age": 5]],
                    "friend": ["name": "Bo", "age": 30],
                ] as [String: Any])
        }
        return realm
    }

    private func keys(_ realm: Realm, _ format: String, _ arguments: Any...) -> String {
        realm.objects(AllTypes.self).filter(NSPredicate(format: format, argumentArray: arguments)).map(\.key).sorted().joined()
    }

    private func people(_ realm: Realm, _ format: String) -> [String] {
        realm.objects(Person.self).filter(format).map(\.name).sorted()
    }

    func testF207_F210_argumentsOfEveryKind() throws {
        let realm = try makeFilledRealm(), all = realm.objects(AllTypes.self)
        XCTAssertEqual(all.filter("int == %@", 5).map(\.key), ["b"])
        XCTAssertEqual(all.filter("%K == %@", "int", 5).count, 1)
        XCTAssertEqual(all.filter("%K == %@ OR TRUEPREDICATE", "any", "x").count, 3)
        XCTAssertEqual(all.filter("int == %d AND string == %@", 5, "jan").count, 1)
        XCTAssertEqual(all.filter("double == %f", 2.5).count, 1)
        XCTAssertEqual(all.filter("int == %@", NSNumber(value: 5)).count, 1)
        XCTAssertEqual(all.filter("string == %@", NSString(string: "jan")).count, 1)
        XCTAssertEqual(all.filter("date == %@", NSDate(timeIntervalSinceReferenceDate: 200)).count, 1)
        XCTAssertEqual(all.filter("optInt == %@", NSNull()).map(\.key), ["b"])
        XCTAssertEqual(all.filter("string IN %@", ["jan", "JAN"]).count, 2)
        XCTAssertEqual(all.filter("string IN %@", NSArray(array: [NSString(string: "jan")])).count, 1)
        XCTAssertEqual(all.filter("size == %@", Size.small).count, 3)
        let object = realm.objects(Person.self).filter("name == 'Bo'")[0]
        XCTAssertEqual(realm.objects(Person.self).filter("friend == %@", object).map(\.name), ["Ann"])
        XCTAssertEqual(realm.objects(Person.self).filter("friend IN %@", [object]).map(\.name), ["Ann"])
        let typed = all.where { $0.int == 5 && $0.string == "jan" }
        XCTAssertEqual(typed.map(\.key), all.filter("int == 5 AND string == 'jan'").map(\.key))
    }

    func testF208_F209_F211_F212_expressionsPathsAndNumbers() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "int == 1"), "a")
        XCTAssertEqual(keys(realm, "1 == int"), "a")
        XCTAssertEqual(keys(realm, "int = 1"), "a")
        XCTAssertEqual(keys(realm, "int != 1"), "bc")
        XCTAssertEqual(keys(realm, "int <> 1"), "bc")
        XCTAssertEqual(keys(realm, "int < 5"), "a")
        XCTAssertEqual(keys(realm, "int <= 5"), "ab")
        XCTAssertEqual(keys(realm, "int =< 5"), "ab")
        XCTAssertEqual(keys(realm, "int > 5"), "c")
        XCTAssertEqual(keys(realm, "int >= 5"), "bc")
        XCTAssertEqual(keys(realm, "int => 5"), "bc")
        XCTAssertEqual(keys(realm, "int == 1.0"), "a")
        XCTAssertEqual(keys(realm, "double == 1"), "a")
        XCTAssertEqual(keys(realm, "double == 2.5 AND decimal == 2.5"), "b")
        XCTAssertEqual(keys(realm, "float > 1"), "a")
        XCTAssertEqual(keys(realm, "int > double"), "bc")
        XCTAssertEqual(people(realm, "friend.name == 'Bo'"), ["Ann"])
        XCTAssertEqual(people(realm, "friend.age > age"), ["Ann"])
    }

    func testF214_betweenAndIn() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "int BETWEEN {1, 5}"), "ab")
        XCTAssertEqual(keys(realm, "int BETWEEN %@", [5, 9]), "bc")
        XCTAssertEqual(keys(realm, "int IN {1, 9}"), "ac")
        XCTAssertEqual(keys(realm, "int IN {}"), "")
        XCTAssertEqual(keys(realm, "NOT int IN {1, 9}"), "b")
        XCTAssertEqual(keys(realm, "string IN[c] {'JAN'}"), "bc")
    }

    func testF215_logicInEverySpelling() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "int > 1 AND int < 9"), "b")
        XCTAssertEqual(keys(realm, "int > 1 && int < 9"), "b")
        XCTAssertEqual(keys(realm, "int == 1 OR int == 9"), "ac")
        XCTAssertEqual(keys(realm, "int == 1 || int == 9"), "ac")
        XCTAssertEqual(keys(realm, "NOT int == 1"), "bc")
        XCTAssertEqual(keys(realm, "!(int == 1)"), "bc")
        XCTAssertEqual(keys(realm, "int == 9 OR int > 1 AND int < 9"), "bc")
        XCTAssertEqual(keys(realm, "(int == 9 or int > 1) and int < 9"), "b")
        XCTAssertEqual(keys(realm, "TRUEPREDICATE"), "abc")
        XCTAssertEqual(keys(realm, "FALSEPREDICATE"), "")
    }

    func testF216_F217_textsAndModifiers() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "string BEGINSWITH 'J'"), "ac")
        XCTAssertEqual(keys(realm, "string BEGINSWITH[c] 'J'"), "abc")
        XCTAssertEqual(keys(realm, "string CONTAINS 'rg'"), "a")
        XCTAssertEqual(keys(realm, "string ENDSWITH[c] 'an'"), "bc")
        XCTAssertEqual(keys(realm, "string LIKE 'J*'"), "ac")
        XCTAssertEqual(keys(realm, "string LIKE[c] 'j?n'"), "bc")
        XCTAssertEqual(keys(realm, "string == 'jan'"), "b")
        XCTAssertEqual(keys(realm, "string ==[c] 'jan'"), "bc")
        XCTAssertEqual(keys(realm, "string CONTAINS[d] 'urge'"), "a")
        XCTAssertEqual(keys(realm, "string BEGINSWITH[cd] 'JUR'"), "a")
        XCTAssertEqual(keys(realm, "string != 'jan'"), "ac")
    }

    func testF219To221_aggregatesQuantifiersSubqueries() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "ints.@count == 3"), "a")
        XCTAssertEqual(keys(realm, "ints.@sum == 6"), "a")
        XCTAssertEqual(keys(realm, "ints.@max == 10"), "b")
        XCTAssertEqual(keys(realm, "ints.@min < 5"), "a")
        XCTAssertEqual(keys(realm, "ints.@avg == 2"), "a")
        XCTAssertEqual(people(realm, "dogs.@avg.age == 3"), ["Ann"])
        XCTAssertEqual(people(realm, "dogs.@max.age == 5"), ["Ann"])
        XCTAssertEqual(people(realm, "dogs.@sum.age > 5"), ["Ann"])
        XCTAssertEqual(people(realm, "dogs.@count == 2"), ["Ann"])
        XCTAssertEqual(people(realm, "ANY dogs.age > 4"), ["Ann"])
        XCTAssertEqual(people(realm, "SOME dogs.age > 4"), ["Ann"])
        XCTAssertEqual(people(realm, "ALL dogs.age > 0"), ["Ann", "Bo"])
        XCTAssertEqual(people(realm, "ALL dogs.age > 4"), ["Bo"])
        XCTAssertEqual(people(realm, "NONE dogs.age > 4"), ["Bo"])
        XCTAssertEqual(people(realm, "SUBQUERY(dogs, $d, $d.age > 0 AND $d.name == 'Rex').@count == 1"), ["Ann"])
        XCTAssertEqual(people(realm, "SUBQUERY(dogs, $d, $d.age > 0).@count > 1"), ["Ann"])
    }

    func testF222_theOperatorsOfTheOldestGuides() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "bool == YES"), "a")
        XCTAssertEqual(keys(realm, "bool = FALSE"), "bc")
        XCTAssertEqual(keys(realm, "string BEGINSWITH 'j' AND int IN {5, 6}"), "b")
        XCTAssertEqual(people(realm, "ANY dogs.name == 'Rex'"), ["Ann"])
        XCTAssertEqual(people(realm, "name CONTAINS[c] 'NN' AND dogs.@count > 0"), ["Ann"])
        let both = NSCompoundPredicate(andPredicateWithSubpredicates: [
            NSPredicate(format: "int > 1"), NSPredicate(format: "double > %@", argumentArray: [0]),
        ])
        XCTAssertEqual(realm.objects(AllTypes.self).filter(both).map(\.key), ["b"])
        let either = NSCompoundPredicate(orPredicateWithSubpredicates: [both, NSPredicate(format: "key == 'a'")])
        XCTAssertEqual(realm.objects(AllTypes.self).filter(either).count, 2)
    }

    func testF223_datesDataAndNil() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "date > %@", Date(timeIntervalSinceReferenceDate: 150)), "bc")
        XCTAssertEqual(
            keys(
                realm, "date BETWEEN {%@, %@}", Date(timeIntervalSinceReferenceDate: 100),
                Date(timeIntervalSinceReferenceDate: 200)), "ab")
        XCTAssertEqual(keys(realm, "data == %@", Data([1, 2])), "a")
        XCTAssertEqual(keys(realm, "data BEGINSWITH %@", Data([1])), "a")
        XCTAssertEqual(keys(realm, "optInt == nil"), "b")
        XCTAssertEqual(keys(realm, "optInt == NULL"), "b")
        XCTAssertEqual(keys(realm, "optString != nil"), "b")
        XCTAssertEqual(people(realm, "friend == nil"), ["Bo"])
    }

    func testF225_theRestOfTheLanguage() throws {
        let realm = try makeFilledRealm()
        XCTAssertEqual(keys(realm, "int + 4 == 5"), "a")
        XCTAssertEqual(keys(realm, "int * 2 > 9"), "bc")
        XCTAssertEqual(people(realm, "@links.@count > 0"), ["Bo"])
        XCTAssertEqual(people(realm, "@links.Person.friend.name == 'Ann'"), ["Bo"])
        XCTAssertEqual(keys(realm, "string.@size == 3"), "bc")
        XCTAssertEqual(keys(realm, "#any.@type == 'null' OR int == 1").isEmpty, false)
        XCTAssertEqual(keys(realm, "ints[0] == 10"), "b")
        XCTAssertEqual(realm.objects(AllTypes.self).filter("TRUEPREDICATE SORT(key DESC) LIMIT(2)").map(\.key).joined(), "cb")
        XCTAssertEqual(
            realm.objects(AllTypes.self).filter("TRUEPREDICATE DISTINCT(bool)").sorted(byKeyPath: "key").count,
            Set(realm.objects(AllTypes.self).map(\.bool)).count)
    }
}
