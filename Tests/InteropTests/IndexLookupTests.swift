import Foundation
import SharedStore
import TestSupport
import XCTest

/// Every index of every given file finds every object by each of its indexed values, and nothing else.
class IndexLookupTests: XCTestCase {
    private func eachFile(_ body: (String, ImmutableFile) throws -> Void) throws {
        let scratch = ScratchDirectory()
        for name in try GivenFiles.core14() { try body(name, GivenFiles.open(name, in: Fixtures.core14, scratch)) }
        guard let shared = Fixtures.shared else { return }
        try body("people", GivenFiles.open("people", in: shared + "/queries", scratch))
        let (folder, names) = try GivenFiles.older()
        for name in names { try body(name, GivenFiles.open(name, in: folder, scratch)) }
    }

    /// The values of one object that its column's index must know.
    private func indexedValues(_ row: ObjectRow, _ column: Column) throws -> [Mixed] {
        guard column.collection == .list else { return [try row.value(column)] }
        var values: [Mixed] = []
        try row.list(column).forEach { values.append($0) }
        return values
    }

    func testEveryObjectIsFoundByEachIndexedValueAndTheHitsAreExactlyTheEqualOnes() throws {
        var indexes: Set<String> = [], lookups = 0
        try eachFile { name, file in
            for table in try file.group.tables() {
                for column in table.publicColumns {
                    guard let index = try SearchIndex(table, column) else { continue }
                    indexes.insert("\(column.type)\(column.collection == nil ? "" : " list")")
                    // What a walk over the table says.
                    var expected: [Mixed: [ObjectKey]] = [:]
                    try table.forEachObject { row in
                        for value in Set(try self.indexedValues(row, column)) { expected[value, default: []].append(row.key) }
                    }
                    if column.type == .mixed {
                        // Equal values of different kinds (int 3, double 3.0) are one to the index, but not to a dictionary.
                        for value in expected.keys {
                            let equal = expected.filter { Mixed.compare($0.key, value) == 0 }.flatMap(\.value).sorted()
                            let found = try index.find(value)
                            XCTAssertTrue(
                                Set(found).isSubset(of: equal),
                                "\(name) \(table.name).\(table.name(of: column)) = \(value)")
                            XCTAssertTrue(
                                Set(expected[value] ?? []).isSubset(of: found),
                                "\(name) \(table.name).\(table.name(of: column)) = \(value): \(found)")
                            lookups += 1
                        }
                        continue
                    }
                    for (value, keys) in expected {
                        XCTAssertEqual(try index.find(value), keys, "\(name) \(table.name).\(table.name(of: column)) = \(value)")
                        XCTAssertEqual(try index.firstRow(value)?.key, keys.first)
                        lookups += 1
                    }
                    for absent in self.absentValues(column, expected) {
                        XCTAssertEqual(try index.find(absent), [], "\(name) \(table.name).\(table.name(of: column)) = \(absent)")
                    }
                }
            }
        }
        XCTAssertGreaterThan(lookups, 3000)
        for kind in ["int", "bool", "string", "timestamp", "objectId", "uuid", "mixed"] {
            XCTAssertTrue(indexes.contains(kind), "no index of kind \(kind) was tried")
        }
    }

    private func absentValues(_ column: Column, _ present: [Mixed: [ObjectKey]]) -> [Mixed] {
        let candidates: [Mixed] =
            switch column.type {
            case .int: [.int(.min), .int(.max), .int(-1), .int(0), .int(1 << 40), .null]
            case .bool: [.null, .bool(true), .bool(false)]
            case .string: [.string(""), .string("X"), .string("\u{0}"), .string(String(repeating: "z", count: 300)), .null]
            case .timestamp: [.timestamp(Timestamp(seconds: .max, nanoseconds: 1)), .null]
            case .objectId: [.objectId(ObjectIdValue(high: .max, low: 7)), .null]
            case .uuid: [.uuid(UUIDValue(high: .max, low: 7)), .null]
            default: []
            }
        return candidates.filter { present[$0] == nil }
    }

    func testEveryObjectIsFoundByItsPrimaryKeyInEveryFormatWithAndWithoutIndex() throws {
        var withIndex = 0, withoutIndex = 0
        try eachFile { name, file in
            for table in try file.group.tables() {
                guard let column = table.primaryKeyColumn else { continue }
                let hasIndex = try table.indexRef(of: column) != 0
                try table.forEachObject { row in
                    let value = try row.value(column)
                    XCTAssertEqual(try table.find(primaryKey: value)?.key, row.key, "\(name) \(table.name) \(value)")
                    if hasIndex { withIndex += 1 } else { withoutIndex += 1 }
                }
                XCTAssertNil(try table.find(primaryKey: .string("no such key")))
                XCTAssertNil(try table.find(primaryKey: .int(-123_456_789)))
            }
        }
        XCTAssertGreaterThan(withIndex, 1000)
        if Fixtures.shared != nil { XCTAssertGreaterThan(withoutIndex, 5) }
    }

    func testFullTextIndexHoldsExactlyTheTokensOfEveryText() throws {
        var words = 0
        try eachFile { name, file in
            for table in try file.group.tables() {
                for column in table.publicColumns {
                    guard let index = try FullTextIndex(table, column) else { continue }
                    XCTAssertNil(try SearchIndex(table, column))
                    var texts: [(key: ObjectKey, tokens: Set<[UInt8]>)] = []
                    try table.forEachObject {
                        texts.append(($0.key, try $0.stringBytes(column).map { FullTextTokenizer.tokens($0) } ?? []))
                    }
                    for token in texts.reduce(into: Set<[UInt8]>(), { $0.formUnion($1.tokens) }) {
                        words += 1
                        let text = String(decoding: token, as: UTF8.self)
                        XCTAssertEqual(
                            try index.find(word: token), texts.filter { $0.tokens.contains(token) }.map(\.key),
                            "\(name) \(text)")
                        XCTAssertEqual(
                            try index.find(word: token + Array("q".utf8)),
                            texts.filter { $0.tokens.contains(token + Array("q".utf8)) }.map(\.key))
                        for length in 0...token.count {
                            let prefix = Array(token[..<length])
                            XCTAssertEqual(
                                try index.find(prefix: prefix),
                                texts.filter { $0.tokens.contains { $0.starts(with: prefix) } }.map(\.key),
                                "\(name) \(text) \(length)")
                        }
                    }
                }
            }
        }
        XCTAssertGreaterThan(words, 10)
    }

    func testFullTextQueriesFindWhatAWalkOverTheTextsFinds() throws {
        let scratch = ScratchDirectory()
        let file = try GivenFiles.open("fulltext", in: Fixtures.core14, scratch)
        for table in try file.group.tables() {
            for column in table.publicColumns {
                guard let index = try FullTextIndex(table, column) else { continue }
                var texts: [(key: ObjectKey, tokens: Set<[UInt8]>)] = []
                try table.forEachObject {
                    texts.append(($0.key, try $0.stringBytes(column).map { FullTextTokenizer.tokens($0) } ?? []))
                }
                let all = texts.reduce(into: Set<[UInt8]>()) { $0.formUnion($1.tokens) }.map {
                    String(decoding: $0, as: UTF8.self)
                }.sorted()
                var hits = 0
                for a in all {
                    for b in all {
                        for text in [
                            "\(a) \(b)", "\(a) -\(b)", "-\(a)", "\(a.prefix(1))* -\(b)", " \(a.uppercased())\t\(b.prefix(2))* ",
                        ] {
                            guard let query = try? FullTextQuery(text) else { continue }
                            let expected = texts.filter { query.matches($0.tokens) }.map(\.key)
                            XCTAssertEqual(try index.find(query), expected, text)
                            hits += expected.count
                        }
                    }
                }
                XCTAssertGreaterThan(hits, 10)
            }
        }
    }
}

/// The same over files that we have encrypted.
final class EncryptedIndexLookupTests: IndexLookupTests {
    override func setUp() { GivenFiles.key = TestKeys.test }
    override func tearDown() { GivenFiles.key = TestKeys.usual }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(GivenFiles.key) }
}
