import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// The queries of the shared fixtures: texts, and what the original's query parser answers over `people.realm`.
final class GoldenQueryTests: XCTestCase {
    struct Case {
        var className: String
        var text: String
        var arguments: [QueryArgument]
        var keys: [ObjectKey]?
        var errorKind: String?
        var differs: Set<String>
    }

    /// Keys of the tables, for links among the arguments.
    typealias Tables = (String) throws -> TableKey

    static func argument(_ json: Any, _ tables: Tables) throws -> QueryArgument {
        if let list = json as? [Any] { return .list(try list.map { try value($0, tables) }) }
        func point(_ json: Any) throws -> GeoPoint {
            let texts = try XCTUnwrap(json as? [String])
            return GeoPoint(longitude: try XCTUnwrap(Double(texts[0])), latitude: try XCTUnwrap(Double(texts[1])))
        }
        if let object = json as? [String: Any] {
            if let box = object["$geoBox"] as? [Any] { return .region(.box(try point(box[0]), try point(box[1]))) }
            if let circle = object["$geoCircle"] as? [Any] {
                return .region(.circle(try point(circle[0]), radius: try XCTUnwrap(Double(try XCTUnwrap(circle[1] as? String)))))
            }
            if let polygon = object["$geoPolygon"] as? [[Any]] { return .region(.polygon(try polygon.map { try $0.map(point) })) }
        }
        return .value(try value(json, tables))
    }

    static func value(_ json: Any, _ tables: Tables) throws -> Mixed {
        switch json {
        case is NSNull: return .null
        case let text as String: return .string(text)
        case let number as NSNumber: return CFBoolean.isBoolean(number) ? .bool(number.boolValue) : .int(number.int64Value)
        case let object as [String: Any]:
            let (form, content) = try XCTUnwrap(object.first)
            switch (form, content) {
            case ("$double", let text as String): return .double(try XCTUnwrap(Double(text)))
            case ("$float", let text as String): return .float(try XCTUnwrap(Float(text)))
            case ("$data", let text as String): return .binary([UInt8](try XCTUnwrap(Data(base64Encoded: text))))
            case ("$date", let parts as [NSNumber]):
                return .timestamp(Timestamp(seconds: parts[0].int64Value, nanoseconds: parts[1].int32Value))
            case ("$oid", let text as String): return .objectId(try XCTUnwrap(ObjectIdValue(text)))
            case ("$uuid", let text as String): return .uuid(try XCTUnwrap(UUIDValue(text)))
            case ("$decimal", let text as String): return .decimal(try XCTUnwrap(Decimal128Bits(text)))
            case ("$link", let parts as [Any]):
                return .link(
                    try tables(try XCTUnwrap(parts[0] as? String)), ObjectKey(try XCTUnwrap(parts[1] as? NSNumber).int64Value))
            default: throw QueryError(.argument, "unknown form \(form)")
            }
        default: throw QueryError(.argument, "unknown value \(json)")
        }
    }

    private enum CFBoolean {
        static func isBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
    }

    static func cases(_ tables: Tables = { _ in TableKey(0) }) throws -> [Case] {
        guard let shared = Fixtures.shared else { throw XCTSkip("the shared fixtures are not here") }
        let data = try Data(contentsOf: URL(fileURLWithPath: shared + "/queries/queries.json"))
        let list = try XCTUnwrap(JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        return try list.map { json in
            Case(
                className: try XCTUnwrap(json["class"] as? String), text: try XCTUnwrap(json["predicate"] as? String),
                arguments: try (json["arguments"] as? [Any] ?? []).map { try argument($0, tables) },
                keys: (json["keys"] as? [NSNumber])?.map { ObjectKey($0.int64Value) },
                errorKind: (json["error"] as? [String: Any])?["kind"] as? String,
                differs: Set(json["differs"] as? [String] ?? []))
        }
    }

    func testTextsWithAnAnswerParseAndTextsWithASyntaxErrorDoNot() throws {
        let cases = try GoldenQueryTests.cases()
        XCTAssertGreaterThanOrEqual(cases.count, 5500)
        // What the original's language does not know and ours does, or the other way round with another kind of error.
        let oursOnly = ["@allKeys", "@allValues", "#size"]
        var failures = 0
        for testCase in cases where testCase.differs.isEmpty && !oursOnly.contains(where: testCase.text.contains) {
            let isExpected = testCase.errorKind == nil ? true : testCase.errorKind == "syntax" ? false : nil
            guard let isExpected else { continue }
            do {
                _ = try QueryParser.parse(testCase.text, arguments: testCase.arguments)
                if !isExpected {
                    failures += 1
                    XCTFail("parsed: \(testCase.text)")
                }
            } catch {
                if isExpected {
                    failures += 1
                    XCTFail("\(testCase.text): \(error)")
                }
            }
            if failures > 20 { break }
        }
    }

    /// The file, and what was declared when the answers were made but is not in it.
    static func people() throws -> (ImmutableFile, GroupQuerySchema) {
        guard let shared = Fixtures.shared else { throw XCTSkip("the shared fixtures are not here") }
        let file = try GivenFiles.open("people", in: shared + "/queries", ScratchDirectory())
        var schema = try GroupQuerySchema(file.group)
        try schema.addLinkingObjects("reports", of: "Person", from: "Person", property: "boss")
        try schema.addLinkingObjects("owners", of: "Pet", from: "Person", property: "pets")
        try schema.addLinkingObjects("back", of: "Thing", from: "Thing", property: "link")
        try schema.addLinkingObjects("backs", of: "Thing", from: "Thing", property: "links")
        try schema.addAlias("rateIt", for: "rate-it", of: "Note")
        try schema.addAlias("firstName", for: "first name", of: "Note")
        return (file, schema)
    }

    /// Cases without a tag that we answer otherwise all the same, because the language's document says so, and what we answer.
    static let untaggedDifferences: [String: (reason: String, answer: Answer)] = [
        "ANY attrs.@allKeys BEGINSWITH 'c'": ("spelling of the Swift front end", .like("ANY attrs.@keys BEGINSWITH 'c'")),
        "ANY attrs.@allValues == 'red'": ("spelling of the Swift front end", .like("ANY attrs.@values == 'red'")),
        "#size == 1": ("a name behind # is a name: there is no such property", .error(.property)),
        "dateList.@max <= double": ("@max of dates exists; a date is no double", .error(.type)),
        "dateOptList.@max != T-62135596800:0": ("@max of dates exists", .complement("dateOptList.@max == T-62135596800:0")),
        "dateOptList.@max == null": ("@max of dates exists; no element that is not null", .like("ALL dateOptList == null")),
        "dateOptList.@max == date": (
            "@max of dates exists",
            .like("ANY dateOptList == date AND ALL dateOptList <= date OR ANY dateOptList == date AND NONE dateOptList > date")
        ),
        "dateOptList.@min == null": ("@min of dates exists", .like("ALL dateOptList == null")),
        "dateSet.@max >= decimal": ("@max of dates exists; a date is no number", .error(.type)),
        "floatMap.@keys != 'a'": (
            "an accident of the original with maps that are empty", .like("ANY floatMap.@keys != 'a' AND floatMap.@count > 0")
        ),
        "attrs.@keys == attrs.@values": (
            "an accident of the original with maps that are empty: two empty lists are equal", .like("attrs.@count == 0")
        ),
        "marks.@avg == '3.5'": ("not the leading digits of a string count, but the number", .like("marks.@avg == 3.5")),
        "n ==[c] '7'": ("a string is no number, as in the cases with the tag numericString", .error(.type)),
        "n IN[c] {'7'}": ("a string is no number", .like("FALSEPREDICATE")),
        "_id ==[c] '4'": ("a string is no number", .error(.type)),
        "_id IN[c] {'4'}": ("a string is no number", .like("FALSEPREDICATE")),
        "{'Ann', 'Bob'} CONTAINS name": (
            "no constant left of a string operator, as in the cases with the tag constantLeft", .error(.operation)
        ),
        "tags BEGINSWITH ALL {'v', ''}": (
            "nothing begins with nothing, as in the cases with the tag emptySubstring", .like("FALSEPREDICATE")
        ),
        "SUBQUERY(friends, $f, $f.age > 10).@count > 0": ("subqueries over sets are possible", .like("ANY friends.age > 10")),
        "SUBQUERY(friends, $f, $f.boss.name == 'Ann').@count == 1": (
            "subqueries over sets are possible",
            .like("ANY friends.boss.name == 'Ann' AND NOT SUBQUERY(friends, $f, $f.boss.name == 'Ann').@count > 1")
        ),
        "SUBQUERY(friends, $f, ANY $f.pets.age > 10).@count > 0": (
            "subqueries over sets are possible", .like("ANY friends.pets.age > 10")
        ),
        "SUBQUERY(friends, $f, SUBQUERY($f.pets, $p, $p.age > 10).@count > 0).@count > 0": (
            "subqueries over sets are possible", .like("ANY friends.pets.age > 10")
        ),
        "SUBQUERY(friends, $f, $f.friends.@count > 0 AND $f.friends.@count < 3).@count >= 2": (
            "subqueries over sets are possible",
            .like("SUBQUERY(friends, $f, $f.friends.@count == 1 OR $f.friends.@count == 2).@count >= 2")
        ),
    ]

    /// What a case must give.
    enum Answer {
        case error(QueryError.Kind)
        /// What another query gives, whose meaning is not in doubt.
        case like(String, [QueryArgument] = [])
        /// All objects that another query does not give.
        case complement(String)
        case keys([ObjectKey])

        func check(
            _ text: String, _ arguments: [QueryArgument], _ className: String, _ file: ImmutableFile, _ schema: GroupQuerySchema,
            line: UInt = #line
        ) {
            func run(_ text: String, _ arguments: [QueryArgument]) throws -> [ObjectKey] {
                try Query(text, arguments: arguments, class: className, schema: schema).run(in: file.group)
            }
            do {
                let wanted: [ObjectKey]
                switch self {
                case .error(let kind):
                    XCTAssertThrowsError(try run(text, arguments), text, line: line) {
                        XCTAssertEqual(($0 as? QueryError)?.kind, kind, "\(text): \($0)", line: line)
                    }
                    return
                case .like(let other, let otherArguments): wanted = try run(other, otherArguments)
                case .complement(let other):
                    let others = Set(try run(other, []))
                    wanted = try run("TRUEPREDICATE", []).filter { !others.contains($0) }
                case .keys(let keys): wanted = keys
                }
                XCTAssertEqual(try run(text, arguments), wanted, text, line: line)
            } catch {
                XCTFail("\(text): \(error)", line: line)
            }
        }
    }

    func testEveryQueryWithoutATagGivesTheRecordedKeysOrAnErrorOfTheRecordedKind() throws {
        let (file, schema) = try GoldenQueryTests.people()
        let cases = try GoldenQueryTests.cases { try XCTUnwrap(file.group.table(ofClass: $0)).key }
        var wrong: [String] = []
        var seen = 0, differences = 0
        for testCase in cases where testCase.differs.isEmpty {
            seen += 1
            if let difference = GoldenQueryTests.untaggedDifferences[testCase.text] {
                differences += 1
                difference.answer.check(testCase.text, testCase.arguments, testCase.className, file, schema)
                continue
            }
            let result: String
            do {
                let keys = try Query(testCase.text, arguments: testCase.arguments, class: testCase.className, schema: schema).run(
                    in: file.group)
                if keys == testCase.keys { continue }
                if let expected = testCase.keys {
                    result =
                        "wanted \(expected.count), missing \(Set(expected).subtracting(keys).sorted()),"
                        + " surplus \(Set(keys).subtracting(expected).sorted())"
                } else {
                    result = "wanted an error of kind \(testCase.errorKind ?? ""), got \(keys.count) keys"
                }
            } catch let error as QueryError {
                if error.kind.rawValue == testCase.errorKind { continue }
                result = "wanted \(testCase.errorKind ?? "\(testCase.keys?.count ?? -1) keys"), got \(error)"
            }
            wrong.append("\(testCase.className): \(testCase.text) \(testCase.arguments): \(result)")
        }
        if !wrong.isEmpty { XCTFail("\(wrong.count) of \(seen) wrong:\n" + wrong.joined(separator: "\n")) }
        XCTAssertGreaterThan(seen, 5100)
        XCTAssertEqual(differences, GoldenQueryTests.untaggedDifferences.count)
    }
}
