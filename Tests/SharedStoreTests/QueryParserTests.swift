import XCTest

@testable import SharedStore

final class QueryParserTests: XCTestCase {
    private func predicate(_ text: String, _ arguments: [QueryArgument] = []) throws -> QuerySyntax.Predicate {
        try QueryParser.parse(text, arguments: arguments).predicate
    }

    private func comparison(_ text: String, _ arguments: [QueryArgument] = []) throws -> QuerySyntax.Comparison {
        guard case .comparison(let comparison) = try predicate(text, arguments) else {
            throw QueryError(.syntax, "no comparison")
        }
        return comparison
    }

    private func literal(_ text: String) throws -> QuerySyntax.Literal.Value {
        guard case .literal(let literal) = try comparison("a == \(text)").right else { throw QueryError(.syntax, "no literal") }
        return literal.value
    }

    private func assertError(
        _ text: String, _ kind: QueryError.Kind, at offset: Int, _ arguments: [QueryArgument] = [], line: UInt = #line
    ) {
        XCTAssertThrowsError(try QueryParser.parse(text, arguments: arguments), text, line: line) { error in
            XCTAssertEqual((error as? QueryError)?.kind, kind, "\(text): \(error)", line: line)
            XCTAssertEqual((error as? QueryError)?.offset, offset, "\(text): \(error)", line: line)
        }
    }

    func testAndBindsTighterThanOrAndNotTighterThanBoth() throws {
        guard case .or(let parts) = try predicate("NOT a == 1 AND b == 2 or c == 3"), parts.count == 2,
            case .and(let inner) = parts[0], inner.count == 2,
            case .not = inner[0], case .comparison = inner[1]
        else { return XCTFail("wrong tree") }
    }

    func testParenthesesHoldAPredicateOrAValueWithoutLookingTwice() throws {
        guard case .arithmetic(.multiply, .arithmetic(.add, _, _, _), _, _) = try comparison("(a + 1) * 2 == 3").left else {
            return XCTFail("wrong tree")
        }
        guard case .and(let parts) = try predicate("((a == 1) && (((b)) > 2))"), parts.count == 2 else {
            return XCTFail("wrong tree")
        }
        let deep = String(repeating: "(", count: 200) + "a" + String(repeating: ")", count: 200) + " == 1"
        XCTAssertNoThrow(try predicate(deep))
        XCTAssertNoThrow(try predicate(String(repeating: "(", count: 200) + "a == 1" + String(repeating: ")", count: 200)))
    }

    func testNestingBeyondTheLimitIsAnErrorAndNotTheEndOfTheProcess() {
        for (opening, closing) in [
            ("SUBQUERY(x, $y, ", ").@count > 0"), ("!(", ")"), ("(a == 1 AND (b == 1 OR ", "))"), ("1 + (", ")"),
        ] {
            for text in [
                String(repeating: opening, count: 20_000),
                String(repeating: opening, count: 1000) + "a == 1" + String(repeating: closing, count: 1000),
            ] {
                XCTAssertThrowsError(try predicate(text), opening) { XCTAssertEqual(($0 as? QueryError)?.kind, .syntax) }
            }
        }
        XCTAssertThrowsError(try predicate(String(repeating: "(", count: 20_000)))
        XCTAssertThrowsError(try predicate("a == " + String(repeating: "1 + ", count: 20_000) + "1"))
        XCTAssertNoThrow(try predicate(String(repeating: "NOT ", count: 20_000) + "a == 1"))
        XCTAssertNoThrow(try predicate("a == 1" + String(repeating: " OR a == 1", count: 20_000)))
    }

    func testLongChainsMayBeNestedToTheLeftAndComeOutFlat() throws {
        let count = 5000
        let text = String(repeating: "(", count: count) + "a == 0" + (1...count).map { " || a == \($0))" }.joined()
        guard case .or(let parts) = try predicate(text) else { return XCTFail("no OR") }
        XCTAssertEqual(parts.count, count + 1)
        XCTAssertNoThrow(try predicate(String(repeating: "(", count: 20_000) + "a == 1" + String(repeating: ")", count: 20_000)))
        XCTAssertNoThrow(
            try predicate(String(repeating: "((", count: 10_000) + "a" + String(repeating: ")", count: 20_000) + " + 1 == 1"))
        guard case .and(let inner) = try predicate("a == 1 AND (b == 2 AND NOT (c == 3 AND d == 4))"), inner.count == 3,
            case .not(.and) = inner[2]
        else {
            return XCTFail("wrong tree")
        }
        guard case .comparison(let comparison) = try predicate("((a) + 2) * 3 == 9"),
            case .arithmetic(.multiply, .arithmetic(.add, _, _, _), _, _) = comparison.left
        else { return XCTFail("wrong tree") }
        guard case .not(.comparison) = try predicate("NOT (a) == 1") else { return XCTFail("wrong tree") }
    }

    func testEveryLiteralHasItsValue() throws {
        func check(_ text: String, _ matches: (QuerySyntax.Literal.Value) -> Bool, line: UInt = #line) throws {
            let value = try literal(text)
            XCTAssertTrue(matches(value), "\(text): \(value)", line: line)
        }
        try check("-7") { if case .integer(-7) = $0 { true } else { false } }
        try check("036") { if case .integer(36) = $0 { true } else { false } }
        try check("0x1F") { if case .integer(31) = $0 { true } else { false } }
        try check("-0X10") { if case .integer(-16) = $0 { true } else { false } }
        try check("-9223372036854775808") { if case .integer(Int64.min) = $0 { true } else { false } }
        try check("-2.5E-3") { if case .fraction("-2.5E-3", false) = $0 { true } else { false } }
        try check("30f") { if case .fraction("30", true) = $0 { true } else { false } }
        try check(".5") { if case .fraction(".5", false) = $0 { true } else { false } }
        try check("5.") { if case .fraction("5.", false) = $0 { true } else { false } }
        try check("-Infinity") { if case .infinity(true) = $0 { true } else { false } }
        try check("+nan") { if case .nan = $0 { true } else { false } }
        try check("True") { if case .bool(true) = $0 { true } else { false } }
        try check("NIL") { if case .null = $0 { true } else { false } }
        try check("'a\"\\'\\\\\\/\\b\\f\\n\\r\\t\\0\\u00e9\\uD83D\\uDC36'") {
            if case .string("a\"'\\/\u{8}\u{C}\n\r\t\0é🐶") = $0 { true } else { false }
        }
        try check("B64\"SGVsbG8=\"") { if case .string("Hello") = $0 { true } else { false } }
        try check("bin(B64\"YWJ\")") { if case .binary([97, 98]) = $0 { true } else { false } }
        try check("Binary('ab')") { if case .binary([97, 98]) = $0 { true } else { false } }
        try check("T-1:-500") { if case .timestamp(Timestamp(seconds: -1, nanoseconds: -500)) = $0 { true } else { false } }
        try check("2017-12-1@11:34:33:505") {
            if case .timestamp(Timestamp(seconds: 1_512_128_073, nanoseconds: 505)) = $0 { true } else { false }
        }
        try check("1969-12-31@23:59:59:1") {
            if case .timestamp(Timestamp(seconds: -1, nanoseconds: -1)) = $0 { true } else { false }
        }
        try check("2000-02-30T00:00:00") {
            if case .timestamp(Timestamp(seconds: 951_868_800, nanoseconds: 0)) = $0 { true } else { false }
        }
        try check("2100-01-01@00:00:00") {
            if case .timestamp(Timestamp(seconds: 4_102_444_800, nanoseconds: 0)) = $0 { true } else { false }
        }
        try check("oid(507f1f77bcf86cd799439011)") {
            if case .objectId(let id) = $0 { "\(id)" == "507f1f77bcf86cd799439011" } else { false }
        }
        try check("uuid(3b241101-e2bb-4255-8caf-4136c566a962)") {
            if case .uuid(let id) = $0 { "\(id)" == "3b241101-e2bb-4255-8caf-4136c566a962" } else { false }
        }
        try check("obj('Dog', 3)") { if case .object("Dog", _) = $0 { true } else { false } }
    }

    func testErrorsTellWhereTheTroubleLies() {
        assertError("", .syntax, at: 0)
        assertError("age", .syntax, at: 3)
        assertError("age == ", .syntax, at: 7)
        assertError("age === 3", .syntax, at: 6)
        assertError("name == 'Ann", .syntax, at: 8)
        assertError("name == 'A\\qn'", .syntax, at: 10)
        assertError("age == 1 AND", .syntax, at: 12)
        assertError("name <[c] 'm'", .syntax, at: 6)
        assertError("pets.@foo == 1", .syntax, at: 5)
        assertError("born == 1850-01-01@00:00:00", .literal, at: 8)
        assertError("born == T5:-5", .syntax, at: 8)
        assertError("age > 1 SORT(age)", .syntax, at: 16)
        assertError("TRUEPREDICATE LIMIT(-1)", .syntax, at: 20)
        assertError("age == $1", .argument, at: 7, [.value(.int(1))])
        assertError("age == %@ OR age == $0", .syntax, at: 20, [.value(.int(1))])
        assertError("boss. == 1", .syntax, at: 6)
        assertError("a % 2 == 0", .syntax, at: 2)
    }

    func testPlaceholdersTakeTheArgumentsInTurnAndKeyPathsAreSpliced() throws {
        let comparison = try comparison(
            "%K.@count > %d", [.value(.string("boss.pets")), .value(.int(2))])
        guard case .path(let path) = comparison.left, path.steps.count == 2, case .count? = path.postfix,
            case .name("boss") = path.steps[0]
        else {
            return XCTFail("wrong path")
        }
        guard case .literal(let literal) = comparison.right, case .argument(.value(.int(2))) = literal.value else {
            return XCTFail("wrong argument")
        }
        guard case .path(let numbered) = try self.comparison("$K0 == 1", [.value(.string("@links.Person.first name.a-b"))]).left,
            numbered.steps.count == 2,
            case .backlinks("Person", "first name") = numbered.steps[0], case .name("a-b") = numbered.steps[1]
        else { return XCTFail("wrong path") }
    }

    func testWordsOfTheLanguageCanBeNames() throws {
        for name in [
            "text", "between", "limit", "size", "first", "like", "sort", "in", "#any", "#size", "first\\ name", "größe",
            "rate-it", "$x",
        ] {
            guard case .path(let path) = try comparison("\(name) == 1").left, path.steps.count == 1 else { return XCTFail(name) }
        }
    }

    func testQuantifiersInAnyCase() throws {
        for (word, quantifier) in [("ANY", QuerySyntax.Quantifier.any), ("some", .any), ("All", .all), ("None", .none)] {
            guard case .path(let path) = try comparison("\(word) tags == 1").left else { return XCTFail(word) }
            XCTAssertEqual(path.quantifier, quantifier)
        }
        guard case .path(let path) = try comparison("All IN {1}").left else { return XCTFail("a property may be called All") }
        XCTAssertNil(path.quantifier)
    }

    func testOrderingsKeepTheirTurn() throws {
        let query = try QueryParser.parse("TRUEPREDICATE SORT(a ASC, b.c desc) LIMIT(3) DISTINCT(a, map['k'])")
        guard query.orderings.count == 3, case .sort(let keys) = query.orderings[0], keys.count == 2, !keys[1].isAscending,
            case .limit(3) = query.orderings[1],
            case .distinct(let paths) = query.orderings[2], paths.count == 2
        else { return XCTFail("wrong orderings") }
    }

    func testNoTextBringsTheParserDown() throws {
        let words = [
            "a", "(", ")", "{", "}", "[", "]", "==", "IN", "AND", "OR", "NOT", "!", "'x'", "1", "-1", "1.5", "@count", ".", ",",
            "$0", "%@", "%K", "SUBQUERY",
            "ANY", "SORT", "LIMIT", "$v", "BETWEEN", "geoBox", "[c]", "T1:0", "@links", "obj", "bin", "+", "*", "\\ ", "\u{e9}",
            "'", "\"", "#", "null",
        ]
        var seed: UInt64 = 42
        func random(_ bound: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % bound
        }
        var parsed = 0
        for _ in 0..<20_000 {
            let text = (0..<(1 + random(12))).map { _ in words[random(words.count)] }.joined(separator: random(4) == 0 ? "" : " ")
            do {
                _ = try QueryParser.parse(text, arguments: [.value(.string("a")), .value(.int(1))])
                parsed += 1
            } catch let error as QueryError {
                XCTAssertTrue(error.offset >= 0 && error.offset <= text.utf8.count, text)
            }
        }
        XCTAssertGreaterThan(parsed, 0)
    }
}
