import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// The queries whose tag says that this package answers otherwise than the original, and what it answers instead
/// (query-language 12).
final class GoldenQueryDifferenceTests: XCTestCase {
    private typealias Answer = GoldenQueryTests.Answer

    private func check(_ tag: String, _ wanted: (GoldenQueryTests.Case) throws -> (Answer, [QueryArgument]?)) throws {
        let (file, schema) = try GoldenQueryTests.people()
        let cases = try GoldenQueryTests.cases { try XCTUnwrap(file.group.table(ofClass: $0)).key }.filter {
            $0.differs.contains(tag)
        }
        XCTAssertFalse(cases.isEmpty)
        for testCase in cases {
            let (answer, arguments) = try wanted(testCase)
            answer.check(testCase.text, arguments ?? testCase.arguments, testCase.className, file, schema)
        }
    }

    func testEveryTagIsSpokenOf() throws {
        let known: Set = [
            "placeholder", "diacritic", "wordCase", "escape", "emptySubstring", "constantLeft", "numericString", "boolNumber",
            "orderBool", "stringData",
            "caseIn", "betweenToMany", "allDuplicates", "overflow", "octal", "date32",
        ]
        // Not inside the assertion, which would take the skip for a failure.
        let cases = try GoldenQueryTests.cases()
        XCTAssertEqual(Set(cases.flatMap(\.differs)), known)
    }

    func testPlaceholderStandsForItsArgument() throws {
        let (file, _) = try GoldenQueryTests.people()
        let person = try XCTUnwrap(file.group.table(ofClass: "Person")).key,
            pet = try XCTUnwrap(file.group.table(ofClass: "Pet")).key
        func value(_ value: Mixed) -> QueryArgument { .value(value) }
        let id = Mixed.objectId(try XCTUnwrap(ObjectIdValue("507f1f77bcf86cd799439012")))
        let token = Mixed.uuid(try XCTUnwrap(UUIDValue("3b241101-e2bb-4255-8caf-4136c566a962")))
        let box = QueryArgument.region(.box(GeoPoint(longitude: 10, latitude: 59), GeoPoint(longitude: 11, latitude: 60)))
        let boss = [value(.link(person, ObjectKey(0)))]
        let equivalents: [String: ([QueryArgument], Answer)] = [
            "age BETWEEN %@": ([.list([.int(20), .int(29)])], .like("age BETWEEN {20, 29}")),
            "age IN %@": ([.list([.int(1), .int(3)])], .like("age IN {1, 3}")),
            "born > %@": ([value(.timestamp(Timestamp(seconds: 0, nanoseconds: 0)))], .like("born > T0:0")),
            "_id == %@": ([value(id)], .like("_id == oid(507f1f77bcf86cd799439012)")),
            "token == %@": ([value(token)], .like("token == uuid(3b241101-e2bb-4255-8caf-4136c566a962)")),
            "token != %@": ([value(token)], .complement("token == uuid(3b241101-e2bb-4255-8caf-4136c566a962)")),
            "%K == %@": ([value(.string("name")), value(.string("Ann"))], .like("name == 'Ann'")),
            "%K.@count > %d": ([value(.string("pets")), value(.int(2))], .like("pets.@count > 2")),
            "boss == %@": (boss, .like("boss == $0", boss)),
            "boss != %@": (boss, .like("boss != $0", boss)),
            "boss > %@": (boss, .error(.operation)),
            "boss IN %@": (
                [.list([.link(person, ObjectKey(0)), .link(person, ObjectKey(1))])],
                .like("boss == $0 OR boss == $1", boss + [value(.link(person, ObjectKey(1)))])
            ),
            "ANY pets == %@": ([value(.link(pet, ObjectKey(3)))], .like("ANY pets == $0", [value(.link(pet, ObjectKey(3)))])),
            "attrs[%@] ==[c] %@": ([value(.string("color")), value(.string("RED"))], .like("attrs['color'] ==[c] 'red'")),
            "team['lead'] == %@": (boss, .like("team.lead == $0", boss)),
            "home.spot IN %@": ([box], .like("home.spot geoWithin geoBox([10.0, 59.0], [11.0, 60.0])")),
            "kind == %@": ([value(.int(2))], .like("kind == 2")),
            "age % 2 == 0": ([], .error(.syntax)),
            "%@ == age": ([value(.int(30))], .like("30 == age")),
            "age == %d": ([value(.int(30))], .like("age == 30")),
        ]
        try check("placeholder") { testCase in
            let (arguments, answer) = try XCTUnwrap(equivalents[testCase.text], testCase.text)
            return (answer, arguments)
        }
    }

    func testDiacriticsAreFoldedByFoundation() throws {
        let (file, _) = try GoldenQueryTests.people()
        let table = try XCTUnwrap(file.group.table(ofClass: "Person"))
        let column = try XCTUnwrap(table.column(named: "name"))
        func keys(_ matches: (String) -> Bool) throws -> Answer {
            var keys: [ObjectKey] = []
            try table.forEachObject { if let name = try $0.string(column), matches(name) { keys.append($0.key) } }
            XCTAssertGreaterThan(keys.count, 1)
            return .keys(keys)
        }
        try check("diacritic") { testCase in
            switch testCase.text {
            case "name BEGINSWITH[d] 'E'":
                return (try keys { $0.folding(options: .diacriticInsensitive, locale: nil).hasPrefix("E") }, nil)
            case "name CONTAINS[cd] 'jose'":
                return (
                    try keys { $0.folding(options: [.diacriticInsensitive, .caseInsensitive], locale: nil).contains("jose") }, nil
                )
            default: return (.error(.operation), nil)
            }
        }
    }

    func testWordsOfTheLanguageMayStandInAnyCase() throws {
        let equivalents = [
            "member == NO": "member == false", "member == True": "member == true", "name In {'Ann'}": "name IN {'Ann'}",
            "Any tags == 'vip'": "ANY tags == 'vip'", "Some tags == 'vip'": "ANY tags == 'vip'",
            "None tags == 'vip'": "NONE tags == 'vip'",
        ]
        try check("wordCase") { (.like(try XCTUnwrap(equivalents[$0.text], $0.text)), nil) }
    }

    func testEscapesAreDecoded() throws {
        let decoded: [String: (String, String)] = [
            "name == 'O\\'Hara'": ("name == $0", "O'Hara"), "name == \"tab\\there\"": ("name == $0", "tab\there"),
            "name == '\\u00e9'": ("name == $0", "é"),
            "name LIKE \"A\\\\*\"": ("name LIKE $0", "A\\*"), "name LIKE[c] \"A\\\\*\"": ("name LIKE[c] $0", "A\\*"),
            "nick LIKE \"A\\\\*\"": ("nick LIKE $0", "A\\*"),
            "NOT name LIKE \"A\\\\*\"": ("NOT name LIKE $0", "A\\*"), "name == 'tab\\there'": ("name == $0", "tab\there"),
            "name == 'tab\\\\there'": ("name == $0", "tab\\there"), "name == 'line\\nbreak'": ("name == $0", "line\nbreak"),
            "name == '\\u00E9'": ("name == $0", "é"),
            "name CONTAINS '\\/'": ("name CONTAINS $0", "/"), "name CONTAINS '\\0'": ("name CONTAINS $0", "\0"),
            "name CONTAINS '\\b\\f\\r'": ("name CONTAINS $0", "\u{8}\u{C}\r"),
        ]
        try check("escape") { testCase in
            let (text, value) = try XCTUnwrap(decoded[testCase.text], testCase.text)
            return (.like(text, [.value(.string(value))]), nil)
        }
        let (file, schema) = try GoldenQueryTests.people()
        XCTAssertEqual(
            try Query("name == 'O\\'Hara' OR name == '\\u00e9'", class: "Person", schema: schema).run(in: file.group).count, 2)
    }

    func testNothingContainsAnEmptyOrNullPart() throws {
        try check("emptySubstring") { _ in (.like("FALSEPREDICATE"), nil) }
    }

    func testAStringOperatorNeedsAPathOnItsLeft() throws {
        try check("constantLeft") { _ in (.error(.operation), nil) }
    }

    func testAStringIsNoNumber() throws {
        try check("numericString") { testCase in
            switch testCase.text {
            // In a list it is an element that equals no number; in a map any value may be a string.
            case "n IN {'7', 7}": (.like("n == 7"), nil)
            case "stats['wins'] == 'x'": (.like("FALSEPREDICATE"), nil)
            default: (.error(testCase.arguments.isEmpty ? .type : .argument), nil)
            }
        }
    }

    func testZeroAndOneAreFalseAndTrue() throws {
        try check("boolNumber") { _ in (.like("member == true"), nil) }
    }

    func testTruthValuesHaveNoOrder() throws {
        try check("orderBool") { _ in (.error(.operation), nil) }
    }

    /// The Swift front end lets a string match data of the same bytes in an AnyRealmValue, query strings do not: here the
    /// notation `%@` of the former makes the difference.
    func testStringsMatchDataInAnyRealmValuesWhereTheConstantCameByAPlaceholder() throws {
        try check("stringData") { testCase in
            if testCase.differs.contains("emptySubstring") { return (.like("FALSEPREDICATE"), nil) }
            return (.keys(try XCTUnwrap(testCase.keys, testCase.text)), nil)
        }
        let (file, schema) = try GoldenQueryTests.people()
        func compare(_ text: String, _ value: Mixed, _ other: String) {
            Answer.like(other).check(text, [.value(value)], "Person", file, schema)
        }
        compare("extra == %@", .string("three"), "extra == 'three' OR extra == bin('three')")
        compare("extra == %@", .binary(Array("three".utf8)), "extra == 'three' OR extra == bin('three')")
        compare("extra != %@", .string("three"), "NOT (extra == 'three' OR extra == bin('three'))")
        compare("extra BEGINSWITH[c] %@", .string("TH"), "extra BEGINSWITH[c] 'th' OR extra BEGINSWITH[c] bin('th')")
        compare("ANY extras == %@", .string("x"), "ANY extras == 'x' OR ANY extras == bin('x')")
        compare("extra < %@", .string("three"), "extra < 'three'")
    }

    func testCaseIsFoldedInListsToo() throws {
        let equivalents = [
            "name IN[c] {'ann', 'bob'}": "name ==[c] 'ann' OR name ==[c] 'bob'", "string IN[c] {\"\"}": "string == ''",
            "nick IN[c] {'ann', null}": "nick ==[c] 'ann' OR nick == null",
            "name IN[c] {'ANN', 'BOB'}": "name ==[c] 'ann' OR name ==[c] 'bob'",
            "NOT name IN[c] {'ANN', 'BOB'}": "NOT (name ==[c] 'ann' OR name ==[c] 'bob')",
            "name IN[c] {'ann', 5}": "name ==[c] 'ann'",
            "name ==[c] {'ann', 'bob'}": "name ==[c] 'ann' OR name ==[c] 'bob'",
        ]
        try check("caseIn") { testCase in
            if let text = equivalents[testCase.text] { return (.like(text), nil) }
            // `title IN[c] {'x'}`
            let constant = try XCTUnwrap(testCase.text.firstIndex(of: "{")),
                property = try XCTUnwrap(testCase.text.firstIndex(of: " "))
            return (.like("\(testCase.text[..<property]) ==[c] \(testCase.text[constant...].dropFirst().dropLast())"), nil)
        }
    }

    func testOneElementMeetsBothBoundsOfBetween() throws {
        let equivalents = [
            "ANY pets.age BETWEEN {1, 3}": "SUBQUERY(pets, $p, $p.age >= 1 AND $p.age <= 3).@count > 0",
            "NONE pets.age BETWEEN {1, 3}": "SUBQUERY(pets, $p, $p.age >= 1 AND $p.age <= 3).@count == 0",
            "pets.age BETWEEN {2, 3}": "SUBQUERY(pets, $p, $p.age >= 2 AND $p.age <= 3).@count > 0",
        ]
        try check("betweenToMany") { (.like(try XCTUnwrap(equivalents[$0.text], $0.text)), nil) }
    }

    func testAllHoldsThoughAListedValueStandsTwice() throws {
        let (file, schema) = try GoldenQueryTests.people()
        let cases = try GoldenQueryTests.cases { try XCTUnwrap(file.group.table(ofClass: $0)).key }.filter {
            $0.differs.contains("allDuplicates")
        }
        XCTAssertFalse(cases.isEmpty)
        for testCase in cases {
            let keys = try Query(testCase.text, arguments: testCase.arguments, class: testCase.className, schema: schema).run(
                in: file.group)
            let recorded = Set(try XCTUnwrap(testCase.keys))
            XCTAssertTrue(recorded.isSubset(of: keys), testCase.text)
            // What came in addition: three values or more, of which one stands twice, and no value that is not listed.
            let path = testCase.text.dropFirst(4).prefix { $0 != " " }
            let outside = testCase.text.replacingOccurrences(of: "ALL \(path) IN", with: "ANY \(path) == NONE")
            let others = Set(
                try Query(outside, arguments: testCase.arguments, class: testCase.className, schema: schema).run(in: file.group))
            let table = try XCTUnwrap(file.group.table(ofClass: testCase.className))
            let column = try XCTUnwrap(table.column(named: String(path)))
            try table.forEachObject { row in
                var values: [Mixed] = []
                switch column.collection {
                case .list: try row.list(column).forEach { values.append($0) }
                case .set: try row.set(column).forEach { values.append($0) }
                default: for i in 0..<(try row.dictionary(column).count) { values.append(try row.dictionary(column).value(i)) }
                }
                XCTAssertEqual(keys.contains(row.key), !others.contains(row.key), "\(testCase.text): \(row.key) \(values)")
                if keys.contains(row.key) && !recorded.contains(row.key) {
                    XCTAssertTrue(values.count >= 3 && Set(values).count < values.count, "\(testCase.text): \(row.key) \(values)")
                }
            }
        }
    }

    func testIntegersBeyond64BitsAreRefused() throws {
        try check("overflow") { _ in (.error(.literal), nil) }
    }

    func testALeadingZeroIsNothingSpecial() throws {
        let equivalents = ["age == 036": "age == 36", "age == 08": "age == 8"]
        try check("octal") { (.like(try XCTUnwrap(equivalents[$0.text], $0.text)), nil) }
    }

    func testDatesAreNotCutTo32Bits() throws {
        let seconds = [
            "1900-01-01@00:00:00": "T-2208988800:0", "2100-01-01@00:00:00": "T4102444800:0",
            "9999-12-31@23:59:59:999999999": "T253402300799:999999999", "10000-01-01@00:00:00": "T253402300800:0",
        ]
        try check("date32") { testCase in
            let date = try XCTUnwrap(
                seconds.keys.first { testCase.text.contains($0) && !testCase.text.contains("0" + $0) }, testCase.text)
            return (.like(testCase.text.replacingOccurrences(of: date, with: try XCTUnwrap(seconds[date]))), nil)
        }
    }
}
