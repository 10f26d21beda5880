import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// Sorting by numbers, truth values and dates, against the order of values: enough objects that they are sorted by their bytes.
final class QuerySortTests: XCTestCase {
    private let scratch = ScratchDirectory()
    private static let names = [
        "int", "intOpt", "bool", "boolOpt", "float", "floatOpt", "double", "doubleOpt", "date", "dateOpt", "text",
    ]

    private func value(_ name: String, _ random: inout SplitMix, farDates: Bool) -> Mixed {
        if name.hasSuffix("Opt") && random.next() % 5 == 0 { return .null }
        let floats: [Float] = [
            0, -0.0, 1.5, -1.5, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, -.leastNonzeroMagnitude,
        ]
        let near = Int64(bitPattern: random.next() % 4001) - 2000
        switch name.replacingOccurrences(of: "Opt", with: "") {
        case "int": return .int([near, Int64.min, Int64.max, Int64(bitPattern: random.next())][Int(random.next() % 4)])
        case "bool": return .bool(random.next() % 2 == 0)
        case "float": return .float(random.next() % 3 == 0 ? floats[Int(random.next() % 9)] : Float(near) / 8)
        case "double": return .double(random.next() % 3 == 0 ? Double(floats[Int(random.next() % 9)]) : Double(near) / 8)
        case "date":
            let seconds = farDates && random.next() % 9 == 0 ? near << 40 : near * 2_000_000
            let nanoseconds = Int32(random.next() % 1_000_000_000)
            return .timestamp(
                Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -nanoseconds : seconds == 0 ? 0 : nanoseconds))
        default: return .string("text \(near % 50)")
        }
    }

    private func check(count: Int, farDates: Bool, seed: UInt64) throws {
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = TestKeys.usual
        let store = try Store.open(scratch.file("sorted-\(count).realm"), options)
        var values: [[Mixed]] = []
        try store.write { transaction in
            let items = try transaction.editor.createTable("class_Item")
            let types: [ColumnType] = [
                .int, .int, .bool, .bool, .float, .float, .double, .double, .timestamp, .timestamp, .string,
            ]
            let columns = try zip(Self.names, types).map { try items.addColumn($0, $1, $0.hasSuffix("Opt") ? .nullable : []) }
            for _ in 0..<count {
                let key = try items.createObject()
                values.append(Self.names.map { value($0, &random, farDates: farDates) })
                for (column, value) in zip(columns, values[values.count - 1]) { try items.set(column, of: key, to: value) }
            }
        }
        let reading = try store.beginRead()
        defer { reading.end() }
        let keys = try XCTUnwrap(reading.group.table(ofClass: "Item")).keysInOrder()
        let schema = try GroupQuerySchema(reading.group)
        var orderings = Self.names.map { [$0] }
        for _ in 0..<12 { orderings.append((0..<3).map { _ in Self.names[Int(random.next() % UInt64(Self.names.count))] }) }
        for names in orderings {
            let directions = names.map { _ in random.next() % 2 == 0 }
            let text =
                "TRUEPREDICATE SORT(" + zip(names, directions).map { "\($0) \($1 ? "ASC" : "DESC")" }.joined(separator: ", ")
                + ")"
            let found = try Query(text, class: "Item", schema: schema).run(in: reading.group)
            let columns = names.map { Self.names.firstIndex(of: $0)! }
            let wanted = keys.indices.sorted { a, b in
                for (column, isAscending) in zip(columns, directions) {
                    let order = Self.compare(values[a][column], values[b][column])
                    if order != 0 { return isAscending ? order < 0 : order > 0 }
                }
                return a < b
            }
            XCTAssertEqual(found, wanted.map { keys[$0] }, "seed \(seed): \(text)")
        }
        try store.close(force: true)
    }

    /// As `Mixed.compare`, but that all NaNs are equal.
    private static func compare(_ a: Mixed, _ b: Mixed) -> Int {
        switch (a, b) {
        case (.float(let x), .float(let y)) where x.isNaN && y.isNaN: 0
        case (.double(let x), .double(let y)) where x.isNaN && y.isNaN: 0
        default: Mixed.compare(a, b)
        }
    }

    func testManyObjectsAreSortedByEveryKindOfValue() throws { try check(count: 1500, farDates: false, seed: 5) }

    func testFewObjectsAndDatesFarAway() throws { try check(count: 300, farDates: true, seed: 6) }
}

extension Table {
    fileprivate func keysInOrder() throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try forEachObject { keys.append($0.key) }
        return keys
    }
}
