import Foundation
import SharedStore
import TestSupport
import XCTest

/// Strings that differ only by their form ("e" with its accent as one character or as two) are two: as names of classes and
/// properties, as primary keys, as keys of dictionaries, as members of sets, as values that are searched for, sorted and made
/// distinct.
final class LookalikeStringTests: XCTestCase {
    private let composed = "caf\u{E9}", decomposed = "cafe\u{301}"
    /// Of as many bytes: two accents in either order.
    private let oneOrder = "a\u{323}\u{307}", otherOrder = "a\u{307}\u{323}"

    private func store(_ scratch: ScratchDirectory, _ name: String = "a.realm") throws -> Store {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = TestKeys.usual
        return try Store.open(scratch.file(name), options)
    }

    /// A class and a property by either form of the name, and of each form of the value an object.
    private func fill(_ store: Store) throws {
        XCTAssertEqual(composed, decomposed, "Swift takes them for one")
        try store.write { transaction in
            let group = transaction.editor
            for (number, name) in [composed, decomposed].enumerated() {
                let table = try group.createTable("class_" + name)
                try table.addPrimaryKeyColumn("id", .string)
                try table.addColumn(composed, .int)
                try table.addColumn(decomposed, .int)
                try table.addColumn("text", .string, [.nullable])
                try table.addColumn("mixed", .mixed, .nullable)
                try table.addColumn("set", .string, .set)
                try table.addColumn("map", .int, .dictionary)
                for (index, value) in [decomposed, composed, oneOrder, otherOrder].enumerated() {
                    let (key, wasCreated) = try table.createObject(primaryKey: .string(value))
                    XCTAssertTrue(wasCreated, "object \(index)")
                    try table.set(composed, of: key, to: .int(Int64(10 * number + index)))
                    try table.set(decomposed, of: key, to: .int(Int64(100 + index)))
                    try table.set("text", of: key, to: .string(value))
                    try table.set("mixed", of: key, to: .string(value))
                    let set = table.identity(try table.column(named: "set"), of: key)
                    let map = table.identity(try table.column(named: "map"), of: key)
                    for member in [composed, decomposed, oneOrder, otherOrder] {
                        XCTAssertTrue(try table.setInsert(set, .string(member)).wasInserted)
                    }
                    XCTAssertTrue(try table.dictionarySet(map, composed, .int(1)).wasInserted)
                    XCTAssertTrue(try table.dictionarySet(map, decomposed, .int(2)).wasInserted)
                }
            }
            try group.setSchemaVersion(1)
        }
    }

    func testNamesKeysAndMembersAreTwo() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let store = try store(scratch)
        try fill(store)
        try store.look { transaction in
            let group = transaction.group
            XCTAssertEqual(try group.classTables().count, 2)
            for (number, name) in [composed, decomposed].enumerated() {
                let table = try XCTUnwrap(group.table(ofClass: name))
                XCTAssertEqual(Array(table.name.utf8), Array(("class_" + name).utf8))
                for (index, value) in [decomposed, composed, oneOrder, otherOrder].enumerated() {
                    let row = try XCTUnwrap(table.find(primaryKey: .string(value)))
                    XCTAssertEqual(row.key.rawValue, Int64(index))
                    XCTAssertEqual(try row.value(XCTUnwrap(table.column(named: composed))), .int(Int64(10 * number + index)))
                    XCTAssertEqual(try row.value(XCTUnwrap(table.column(named: decomposed))), .int(Int64(100 + index)))
                    let set = try row.set(XCTUnwrap(table.column(named: "set")))
                    let map = try row.dictionary(XCTUnwrap(table.column(named: "map")))
                    XCTAssertEqual(set.count, 4)
                    XCTAssertEqual(map.count, 2)
                    XCTAssertEqual(try map.value(forKey: composed), .int(1))
                    XCTAssertEqual(try map.value(forKey: decomposed), .int(2))
                }
            }
        }
        let report = try Verifier.verify(ImmutableFile(path: scratch.file("a.realm"), key: TestKeys.usual))
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(report.findings)")
    }

    func testQueriesCompareBytes() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let store = try store(scratch)
        try fill(store)
        try store.look { transaction in
            let schema = try GroupQuerySchema(transaction.group)
            func keys(_ text: String, _ arguments: [QueryArgument] = []) throws -> [Int64] {
                try Query(text, arguments: arguments, class: composed, schema: schema).run(in: transaction.group).map(\.rawValue)
            }
            for property in ["id", "text", "mixed"] {
                XCTAssertEqual(try keys("\(property) == '\(composed)'"), [1], property)
                XCTAssertEqual(try keys("\(property) == '\(decomposed)'"), [0], property)
                XCTAssertEqual(try keys("\(property) != '\(oneOrder)'"), [0, 1, 3], property)
                XCTAssertEqual(try keys("\(property) IN {'\(composed)', '\(otherOrder)'}"), [1, 3], property)
                XCTAssertEqual(try keys("\(property) == $0", [.value(.string(decomposed))]), [0], property)
                XCTAssertEqual(try keys("TRUEPREDICATE DISTINCT(\(property))").count, 4, property)
                // Bytewise: 61 CC 87, 61 CC A3, 63 61 66 65 CC, 63 61 66 C3.
                XCTAssertEqual(try keys("TRUEPREDICATE SORT(\(property) ASC)"), [3, 2, 0, 1], property)
            }
            XCTAssertEqual(try keys("\(composed) == 1"), [1])
            XCTAssertEqual(try keys("\(decomposed) == 101"), [1])
            XCTAssertEqual(try keys("\(composed) == 101"), [])
            XCTAssertEqual(try keys("map['\(composed)'] == 1").count, 4)
            XCTAssertEqual(try keys("map['\(decomposed)'] == 1"), [])
        }
    }

    /// What an index holds moves with the bytes, though Swift would say that nothing has changed.
    func testIndexesFollowWhenOneFormReplacesTheOther() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let store = try store(scratch)
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_T")
            try table.addColumn("text", .string)
            try table.addColumn("mixed", .mixed, .nullable)
            try table.addColumn("list", .string, .list)
            for name in ["text", "mixed", "list"] { try table.addIndex(table.column(named: name).key) }
            let key = try table.createObject()
            for name in ["text", "mixed"] { try table.set(name, of: key, to: .string(composed)) }
            try table.listInsert(table.identity(table.column(named: "list"), of: key), 0, .string(composed))
        }
        for (value, other) in [(decomposed, composed), (composed, decomposed), (oneOrder, otherOrder), (otherOrder, oneOrder)] {
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_T")
                let key = try XCTUnwrap(table.table.object(at: 0)).key
                for name in ["text", "mixed"] { try table.set(name, of: key, to: .string(value)) }
                try table.listSet(table.identity(table.column(named: "list"), of: key), 0, .string(value))
            }
            try store.look { transaction in
                let schema = try GroupQuerySchema(transaction.group)
                for name in ["text", "mixed", "ANY list"] {
                    for (text, count) in [(value, 1), (other, 0)] {
                        let query = try Query("\(name) == $0", arguments: [.value(.string(text))], class: "T", schema: schema)
                        XCTAssertEqual(try query.run(in: transaction.group).count, count, "\(name) \(Array(text.utf8))")
                    }
                }
            }
            let report = try Verifier.verify(ImmutableFile(path: scratch.file("a.realm"), key: TestKeys.usual))
            XCTAssertTrue(report.findings.isEmpty, "\(report.findings)")
        }
    }

    func testTheTextOfAnExportAndItsImportKeepThem() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let store = try store(scratch), second = try self.store(scratch, "b.realm")
        try fill(store)
        let text = try store.look { try JSONExporter.text($0.group) }
        try second.write { transaction in
            try text.withUnsafeBytes { try JSONImporter(text: $0, target: Target(transaction)).run() }
        }
        XCTAssertEqual(try second.look { try JSONExporter.text($0.group) }, text)
        try store.look { a in
            try second.look { b in
                let comparison = try ObjectComparison(a.group, b.group)
                XCTAssertTrue(comparison.isEqual, "\(comparison.differences)")
                XCTAssertEqual(comparison.objectCount, 8)
                XCTAssertEqual(try a.group.schema(), try b.group.schema())
            }
        }
    }

    private final class Target: ImportTarget {
        private let transaction: WriteTransaction
        init(_ transaction: WriteTransaction) { self.transaction = transaction }
        var group: GroupEditor { transaction.editor }
        func checkpoint(progress: ImportProgress) throws {}
    }

    func testSchemasThatDifferOnlyInTheFormOfAName() throws {
        func schema(_ name: String, _ property: String) -> Schema {
            let properties = [PropertySchema(name: property, type: .int)]
            return Schema(
                version: 1, classes: [ObjectSchema(name: name, kind: .topLevel, primaryKey: nil, properties: properties)])
        }
        XCTAssertEqual(schema(composed, "a"), schema(composed, "a"))
        XCTAssertNotEqual(schema(composed, "a"), schema(decomposed, "a"))
        XCTAssertNotEqual(schema("a", composed), schema("a", decomposed))
        XCTAssertEqual(SchemaDifference.between(file: schema(composed, "a"), wanted: schema(decomposed, "a")).count, 1)
        XCTAssertEqual(SchemaDifference.between(file: schema("a", composed), wanted: schema("a", decomposed)).count, 2)
        let both = schema(composed, "a").classes + schema(decomposed, "a").classes
        XCTAssertEqual(Schema(version: 1, classes: both).problems(), [])
    }

    func testExactStringsAndValues() {
        XCTAssertNotEqual(ExactString(composed), ExactString(decomposed))
        XCTAssertNotEqual(ExactString(oneOrder), ExactString(otherOrder))
        XCTAssertEqual(ExactString(composed), ExactString(String(decoding: Array(composed.utf8), as: UTF8.self)))
        XCTAssertEqual(Set([composed, decomposed, oneOrder, otherOrder, composed].map { ExactString($0) }).count, 4)
        XCTAssertEqual(Set([composed, decomposed, oneOrder, otherOrder, composed].map { Mixed.string($0) }).count, 4)
        XCTAssertNotEqual(Mixed.string(composed), Mixed.string(decomposed))
        XCTAssertTrue(ExactString(decomposed) < ExactString(composed))
        let none: String? = nil
        XCTAssertTrue(none.isSame(as: nil))
        XCTAssertFalse(none.isSame(as: ""))
        XCTAssertTrue("".isSame(as: ""))
    }
}
