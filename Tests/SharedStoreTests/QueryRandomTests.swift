import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// Random predicates over random objects, run four ways (with and without indexes, with and without the quick column conditions),
/// against an evaluator that was written from the language's document alone and knows nothing of files.
///
/// `QUERY_RANDOM_CASES` sets the number of predicates, `QUERY_RANDOM_SEED` the seed.
final class QueryRandomTests: XCTestCase {
    func testRandomPredicatesAgreeWithANaiveEvaluator() throws {
        let environment = ProcessInfo.processInfo.environment
        let cases = environment["QUERY_RANDOM_CASES"].flatMap(Int.init) ?? 600
        let seed = environment["QUERY_RANDOM_SEED"].flatMap(UInt64.init) ?? 20_261
        print("seed \(seed), \(cases) predicates")
        var random = SplitMix(seed: seed)
        let worldCount = max(2, cases / 500)
        var hits = 0, empty = 0
        for worldNumber in 0..<worldCount {
            // Now and then more than one leaf of objects.
            let world = try QueryRandomWorld(seed: random.next(), count: worldNumber % 4 == 1 ? 310 : 40)
            let keys = world.keys
            for _ in 0..<(cases / worldCount) {
                let predicate = NaivePredicate.random(&random, depth: Int(random.next() % 4), world)
                let text = predicate.text
                let wanted = keys.filter { predicate.holds(world, $0) }
                let ways = [(true, true), (true, false), (false, true), (false, false)]
                let chosen = random.next() % 8 == 0 ? ways : [ways[0], ways[Int(1 + random.next() % 3)]]
                for (usesIndexes, usesConditions) in chosen {
                    do {
                        let query = try Query(text, class: "Thing", schema: world.schema)
                        let found = try query.run(
                            QueryRun(world.group.group, usesIndexes: usesIndexes, usesColumnConditions: usesConditions)
                        ).map(\.rawValue)
                        guard found == wanted else {
                            return XCTFail(
                                "seed \(seed): \(text) (indexes \(usesIndexes), conditions \(usesConditions)):"
                                    + " missing \(Set(wanted).subtracting(found).sorted()), surplus \(Set(found).subtracting(wanted).sorted())"
                            )
                        }
                        if random.next() % 16 == 0 { XCTAssertEqual(try query.count(in: world.group.group), wanted.count, text) }
                    } catch {
                        return XCTFail("seed \(seed): \(text): \(error)")
                    }
                }
                if wanted.isEmpty || wanted.count == keys.count { empty += 1 } else { hits += 1 }
            }
        }
        XCTAssertGreaterThan(hits, empty, "too few predicates that tell objects apart")
    }

    func testRandomOrderingsAgreeWithANaiveSort() throws {
        let seed: UInt64 = 99
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        let world = try QueryRandomWorld(seed: random.next(), count: 120)
        let names = [
            "int", "intOpt", "small", "boolOpt", "double", "float", "stringOpt", "date", "data", "link.small", "link.stringOpt",
            "mixed",
        ]
        for _ in 0..<60 {
            let sortKeys = (0..<(1 + random.next() % 3)).map { _ in
                (names[Int(random.next() % UInt64(names.count))], random.next() % 2 == 0)
            }
            let distinct = random.next() % 3 == 0 ? names[Int(random.next() % UInt64(names.count))] : nil
            let limit = random.next() % 3 == 0 ? Int(random.next() % 50) : nil
            var text = "small != 3 SORT(" + sortKeys.map { "\($0.0) \($0.1 ? "ASC" : "DESC")" }.joined(separator: ", ") + ")"
            if let distinct { text += " DISTINCT(\(distinct))" }
            if let limit { text += " LIMIT(\(limit))" }

            var wanted = world.keys.filter { world.things[$0]?.values["small"] != .int(3) }
            wanted = wanted.enumerated().sorted { a, b in
                for (name, isAscending) in sortKeys {
                    let order = NaiveOrder.compare(
                        NaiveOrder.value(world, a.element, name), NaiveOrder.value(world, b.element, name))
                    if order != 0 { return isAscending ? order < 0 : order > 0 }
                }
                return a.offset < b.offset
            }.map(\.element)
            if let distinct {
                var seen: [NaiveValue] = []
                wanted = wanted.filter { key in
                    guard let value = NaiveOrder.value(world, key, distinct),
                        !seen.contains(where: { NaiveOrder.compare($0, value) == 0 })
                    else { return false }
                    seen.append(value)
                    return true
                }
            }
            if let limit { wanted = Array(wanted.prefix(limit)) }
            let query = try Query(text, class: "Thing", schema: world.schema)
            XCTAssertEqual(try query.run(in: world.group.group).map(\.rawValue), wanted, text)
            XCTAssertEqual(try query.count(in: world.group.group), wanted.count, text)
        }
    }

    func testAggregatesOfResultsAgreeWithASum() throws {
        let world = try QueryRandomWorld(seed: 5, count: 700)
        let type = try XCTUnwrap(world.schema.queryClass(named: "Thing"))
        for text in ["TRUEPREDICATE", "small == 2", "FALSEPREDICATE", "small > 0 SORT(int ASC) LIMIT(10)", "indexed == 3"] {
            let query = try Query(text, class: "Thing", schema: world.schema)
            let things = try query.run(in: world.group.group).compactMap { world.things[$0.rawValue] }
            let ints = things.compactMap { thing -> Int64? in if case .int(let v)? = thing.values["int"] { v } else { nil } }
            let property = try XCTUnwrap(type.property("int"))
            XCTAssertEqual(try query.aggregate(.sum, of: property, in: world.group.group), .int(ints.reduce(0, +)), text)
            XCTAssertEqual(
                try query.aggregate(.min, of: property, in: world.group.group), ints.min().map { .int($0) } ?? .null, text)
            XCTAssertEqual(
                try query.aggregate(.max, of: property, in: world.group.group), ints.max().map { .int($0) } ?? .null, text)
            XCTAssertEqual(
                try query.aggregate(.average, of: property, in: world.group.group),
                ints.isEmpty ? .null : .double(Double(ints.reduce(0, +)) / Double(ints.count)), text)
            let optional = things.compactMap { thing -> Int64? in if case .int(let v)? = thing.values["intOpt"] { v } else { nil }
            }
            XCTAssertEqual(
                try query.aggregate(.sum, of: try XCTUnwrap(type.property("intOpt")), in: world.group.group),
                .int(optional.reduce(0, &+)), text)
            let floats = things.compactMap { thing -> Double? in
                if case .float(let v)? = thing.values["float"], !v.isNaN { Double(v) } else { nil }
            }
            XCTAssertEqual(
                try query.aggregate(.sum, of: try XCTUnwrap(type.property("float")), in: world.group.group),
                .double(floats.reduce(0, +)), text)
            for name in ["double", "float", "intOpt"] {
                let values = things.compactMap { $0.values[name]?.number }.filter { !$0.isNaN }
                let property = try XCTUnwrap(type.property(name))
                for (aggregate, wanted) in [(QuerySyntax.Path.Aggregate.min, values.min()), (.max, values.max())] {
                    let found = try query.aggregate(aggregate, of: property, in: world.group.group)
                    XCTAssertEqual(found.number, wanted, "\(text): \(aggregate) of \(name)")
                }
                let mean = try query.aggregate(.average, of: property, in: world.group.group).number
                let wanted = values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
                XCTAssertEqual(mean.map { $0.isNaN }, wanted.map { $0.isNaN }, "\(text): mean of \(name)")
                if let mean, let wanted, !wanted.isNaN { XCTAssertEqual(mean, wanted, "\(text): mean of \(name)") }
            }
        }
        let query = try Query("TRUEPREDICATE", class: "Thing", schema: world.schema)
        XCTAssertThrowsError(try query.aggregate(.sum, of: try XCTUnwrap(type.property("date")), in: world.group.group))
        XCTAssertThrowsError(try query.aggregate(.max, of: try XCTUnwrap(type.property("string")), in: world.group.group))
    }

    func testPlansUseIndexesAndLookAtFewObjects() throws {
        let world = try QueryRandomWorld(seed: 6, count: 900)
        func explain(_ text: String) throws -> QueryExplanation {
            try Query(text, class: "Thing", schema: world.schema).explain(in: world.group.group)
        }
        let all = world.keys.count
        let one = try explain("indexed == 3 AND small > 1")
        XCTAssertTrue(one.plan.hasPrefix("index on indexed"), one.plan)
        XCTAssertLessThan(one.objectsLookedAt, all / 4)
        // Of two indexes the one with fewer objects.
        let two = try explain("small > 0 AND word == 'Zoë' AND indexed IN {0, 1}")
        XCTAssertTrue(two.plan.hasPrefix("index on word"), two.plan)
        let none = try explain("small == 2 OR indexed == 3")
        XCTAssertTrue(none.plan.hasPrefix("scan of \(all) objects"), none.plan)
        XCTAssertEqual(none.objectsLookedAt, all)
        // An index that leaves most objects is not worth it.
        let many = try explain("indexed IN {-3, -2, -1, 0, 1, 2, 3, 4, 5, 6}")
        XCTAssertTrue(many.plan.hasPrefix("scan"), many.plan)
        XCTAssertTrue(try explain("mixed == 1").plan.hasPrefix("index on mixed"))
        XCTAssertTrue(try explain("TRUEPREDICATE SORT(int ASC) LIMIT(3)").plan.hasSuffix("sort by 1 key\nkeep the first 3"))
        XCTAssertLessThan(try explain("small >= 0 LIMIT(3)").objectsLookedAt, all)
    }

    func testQueriesOverSomeObjectsKeepTheirOrderAndRepetitions() throws {
        let world = try QueryRandomWorld(seed: 8, count: 100)
        let keys = world.keys
        let given = [keys[5], keys[3], keys[5], 1_000_000, keys[0]].map { ObjectKey($0) }
        let query = try Query("small >= 0", class: "Thing", schema: world.schema)
        XCTAssertEqual(try query.run(in: world.group.group, over: given).map(\.rawValue), [keys[5], keys[3], keys[5], keys[0]])
        XCTAssertTrue(try query.matches(ObjectKey(keys[1]), in: world.group.group))
        XCTAssertFalse(try query.matches(ObjectKey(1_000_000), in: world.group.group))
    }
}

extension NaiveValue {
    /// Nil for null and for what is no number.
    fileprivate var number: Double? {
        switch self {
        case .int(let v): Double(v)
        case .float(let v): Double(v)
        case .double(let v): v
        default: nil
        }
    }
}

extension Mixed {
    fileprivate var number: Double? {
        switch self {
        case .int(let v): Double(v)
        case .float(let v): Double(v)
        case .double(let v): v
        default: nil
        }
    }
}
