import TestSupport
import XCTest

@testable import SharedStore

/// Sorting by texts and through links, and DISTINCT, over enough objects that nothing is compared pair by pair.
final class QueryTextSortTests: XCTestCase {
    private let scratch = ScratchDirectory()
    private static let names = ["text", "textOpt", "number", "fraction", "other.text", "other.number"]

    /// Texts that agree in many bytes, end within them, hold zeros, or are long; few enough that many are equal.
    private func text(_ random: inout SplitMix) -> String {
        let beginnings = ["", "a", "same first", "same first eight and more", String(repeating: "x", count: 90), "é", "\u{0}"]
        let ends = ["", "\u{0}", "\u{0}\u{0}", "b", "12345678", "1234567", "zz\u{0}", "日本"]
        var text = beginnings[Int(random.next() % 7)]
        for _ in 0..<(random.next() % 3) { text += ends[Int(random.next() % 8)] }
        if random.next() % 3 == 0 { text += "\(random.next() % 40)" }
        return text
    }

    private func fraction(_ random: inout SplitMix) -> Double {
        let special: [Double] = [0, -0.0, .nan, .infinity, -.infinity, .signalingNaN]
        return random.next() % 4 == 0 ? special[Int(random.next() % 6)] : Double(random.next() % 50) / 4 - 5
    }

    private struct World {
        var values: [[String: Mixed]] = []
        var keys: [ObjectKey] = []

        /// Nil behind a null link.
        func value(_ i: Int, _ name: String) -> Mixed? { values[i][name] }

        func compare(_ a: Int, _ b: Int, _ name: String) -> Int {
            guard let x = value(a, name) else { return value(b, name) == nil ? 0 : 1 }
            guard let y = value(b, name) else { return -1 }
            if case .double(let v) = x, case .double(let w) = y, v.isNaN && w.isNaN { return 0 }
            return Mixed.compare(x, y)
        }
    }

    private func make(_ store: Store, _ random: inout SplitMix, count: Int) throws -> World {
        var world = World()
        try store.write { transaction in
            let others = try transaction.editor.createTable("class_Other")
            let otherText = try others.addColumn("text", .string, .nullable), otherNumber = try others.addColumn("number", .int)
            var targets: [(key: ObjectKey, text: Mixed, number: Mixed)] = []
            for _ in 0..<40 {
                let key = try others.createObject()
                let value: Mixed = random.next() % 6 == 0 ? .null : .string(text(&random)),
                    number = Mixed.int(Int64(random.next() % 9))
                try others.set(otherText, of: key, to: value)
                try others.set(otherNumber, of: key, to: number)
                targets.append((key, value, number))
            }
            let items = try transaction.editor.createTable("class_Item")
            let column = [
                "text": try items.addColumn("text", .string), "textOpt": try items.addColumn("textOpt", .string, .nullable),
                "number": try items.addColumn("number", .int, .nullable), "fraction": try items.addColumn("fraction", .double),
            ]
            let link = try items.addColumn("other", .link, .nullable, target: others.table.key)
            for _ in 0..<count {
                let key = try items.createObject()
                var values: [String: Mixed] = [
                    "text": .string(text(&random)), "textOpt": random.next() % 5 == 0 ? .null : .string(text(&random)),
                    "number": random.next() % 7 == 0 ? .null : .int(Int64(random.next() % 30) - 15),
                    "fraction": .double(fraction(&random)),
                ]
                for (name, value) in values { try items.set(column[name]!, of: key, to: value) }
                if random.next() % 5 != 0 {
                    let target = targets[Int(random.next() % 40)]
                    try items.set(link, of: key, to: .link(others.table.key, target.key))
                    (values["other.text"], values["other.number"]) = (target.text, target.number)
                }
                world.keys.append(key)
                world.values.append(values)
            }
        }
        return world
    }

    private func check(count: Int, seed: UInt64) throws {
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        var options = StoreOptions()
        options.durability = .unsafe
        let store = try Store.open(scratch.file("texts-\(count).realm"), options)
        let world = try make(store, &random, count: count)
        let reading = try store.beginRead()
        defer { reading.end() }
        let schema = try GroupQuerySchema(reading.group)
        var orderings = Self.names.flatMap { name in [[(name, true)], [(name, false)]] }
        for _ in 0..<10 {
            orderings.append((0..<3).map { _ in (Self.names[Int(random.next() % 6)], random.next() % 2 == 0) })
        }
        for ordering in orderings {
            let text = "TRUEPREDICATE SORT(" + ordering.map { "\($0.0) \($0.1 ? "ASC" : "DESC")" }.joined(separator: ", ") + ")"
            let wanted = world.keys.indices.sorted { a, b in
                for (name, isAscending) in ordering {
                    let order = world.compare(a, b, name)
                    if order != 0 { return isAscending ? order < 0 : order > 0 }
                }
                return a < b
            }
            let found = try Query(text, class: "Item", schema: schema).run(in: reading.group)
            XCTAssertEqual(found, wanted.map { world.keys[$0] }, "seed \(seed): \(text)")
        }
        for names in [["text"], ["textOpt"], ["number"], ["fraction"], ["number", "fraction"], ["textOpt", "number", "text"]] {
            // Sorted by these values, the equal ones stand beside each other.
            let sorted = world.keys.indices.sorted { a, b in
                for name in names {
                    let order = world.compare(a, b, name)
                    if order != 0 { return order < 0 }
                }
                return a < b
            }
            let wanted = zip(sorted, [-1] + sorted).filter { item, before in
                before < 0 || names.contains { world.compare(item, before, $0) != 0 }
            }.map(\.0).sorted()
            let text = "TRUEPREDICATE DISTINCT(\(names.joined(separator: ", ")))"
            let found = try Query(text, class: "Item", schema: schema).run(in: reading.group)
            XCTAssertEqual(found, wanted.map { world.keys[$0] }, "seed \(seed): \(text)")
        }
        try store.close(force: true)
    }

    func testManyTextsAreSortedByTheirBytes() throws { try check(count: 1800, seed: 41) }

    func testFewTextsAreSortedByTheirBytes() throws { try check(count: 60, seed: 42) }
}
