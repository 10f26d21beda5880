import TestSupport
import XCTest

@testable import SharedStore

/// Names, types and plans of queries made by hand or from texts, over the random world.
final class QueryResolverTests: XCTestCase {
    private func world() throws -> QueryRandomWorld { try QueryRandomWorld(seed: 3, count: 50) }

    private func kind(_ text: String, _ arguments: [QueryArgument] = [], _ world: QueryRandomWorld) -> QueryError.Kind? {
        do {
            _ = try Query(text, arguments: arguments, class: "Thing", schema: world.schema)
            return nil
        } catch { return (error as? QueryError)?.kind }
    }

    func testATreeMadeByHandMeansTheSameAsItsText() throws {
        let world = try world()
        typealias S = QuerySyntax
        let tree = S(
            .or([
                .comparison(S.Comparison(.path(S.Path(names: ["small"])), .equal, .literal(S.Literal(.integer(2))))),
                .not(
                    .comparison(
                        S.Comparison(
                            .path(S.Path(names: ["links", "small"], quantifier: .any)), .less, .literal(S.Literal(.integer(2)))))),
            ]), orderings: [.sort([S.SortKey(S.Path(names: ["int"]), ascending: false)]), .limit(7)])
        let byHand = try Query(syntax: tree, class: "Thing", schema: world.schema).run(in: world.group.group)
        let byText = try Query(
            "small == 2 OR NOT ANY links.small < 2 SORT(int DESC) LIMIT(7)", class: "Thing", schema: world.schema
        ).run(in: world.group.group)
        XCTAssertEqual(byHand, byText)
        XCTAssertEqual(byHand.count, 7)
    }

    func testChainsNestedToTheLeftByHandAreNoDanger() throws {
        let world = try world()
        let part = QuerySyntax.Predicate.comparison(
            QuerySyntax.Comparison(
                .path(QuerySyntax.Path(names: ["small"])), .equal, .literal(QuerySyntax.Literal(.integer(1)))))
        var chain = part
        for _ in 0..<2000 { chain = .or([chain, part]) }
        guard case .or(let parts) = try Query(syntax: QuerySyntax(chain), class: "Thing", schema: world.schema).predicate else {
            return XCTFail("no OR")
        }
        XCTAssertEqual(parts.count, 2001)
    }

    func testErrorsHaveTheKindOfTheirCause() throws {
        let world = try world()
        let thing = Mixed.link(world.table, ObjectKey(0))
        let cases: [(String, QueryError.Kind)] = [
            ("nope == 1", .property), ("link.nope == 1", .property), ("int.small == 1", .property), ("int == 'x'", .type),
            ("int == true", .type),
            ("int == 99999999999999999999", .literal), ("string == 99999999999999999999", .type), ("int == inf", .type),
            ("bool > false", .operation),
            ("link > $0", .operation), ("links == null", .type), ("ANY int == 1", .path), ("string IN 'x'", .operation),
            ("int BETWEEN {1}", .operation),
            ("ints == doubles", .type), ("1 == 1", .type), ("int + 'x' == 1", .type), ("strings.@sum > 1", .aggregate),
            ("links.@max.string > 1", .aggregate),
            ("int.@count == 1", .operation), ("string <[c] 'a'", .syntax), ("string LIKE[d] 'a'", .operation),
            ("string TEXT 'a'", .text),
            ("'a' CONTAINS string", .operation), ("SUBQUERY(link, $x, $x.int > 1).@count > 0", .subquery),
            ("SUBQUERY(ints, $x, $x > 1).@count > 0", .subquery),
            ("SUBQUERY(links, $x, SUBQUERY($x.links, $x, $x.int > 1).@count > 0).@count > 0", .subquery),
            ("int == 1 SORT(links ASC)", .ordering), ("int == 1 SORT(nope ASC)", .property),
            ("int == 1 DISTINCT(map)", .ordering),
            ("int == 1 SORT(ints[0] ASC)", .ordering), ("link geoWithin geoCircle([0.0, 0.0], 1.0)", .geo),
            ("mixed.@type == 'nonsense'", .type),
            ("link == obj('Nope', 1)", .property), ("ints[0][0] == 1", .path), ("int[0] == 1", .path), ("map[0] == 1", .path),
        ]
        for (text, wanted) in cases { XCTAssertEqual(kind(text, [.value(thing)], world), wanted, text) }
        XCTAssertEqual(kind("int == $0", [.value(.string("x"))], world), .argument)
        XCTAssertEqual(kind("int == $0", [.value(thing)], world), .argument)
        XCTAssertEqual(kind("int == ANY $0", [.value(.int(1))], world), .argument)
        XCTAssertThrowsError(try Query("a == 1", class: "Nothing", schema: world.schema)) {
            XCTAssertEqual(($0 as? QueryError)?.kind, .property)
        }
    }

    func testVariablesOfOuterSubqueriesCanBeUsedInside() throws {
        let world = try world()
        func keys(_ text: String) throws -> [Int64] {
            try Query(text, class: "Thing", schema: world.schema).run(in: world.group.group).map(\.rawValue)
        }
        let found = try keys("SUBQUERY(links, $a, SUBQUERY($a.links, $b, $b.small > $a.small).@count > 0).@count > 0")
        func links(_ key: Int64) -> [Int64] {
            (world.things[key]?.lists["links"] ?? []).compactMap { if case .link(let target) = $0 { target } else { nil } }
        }
        func small(_ key: Int64) -> Int64 {
            if case .int(let value)? = world.things[key]?.values["small"] { return value }
            return 0
        }
        let wanted = world.keys.filter { key in links(key).contains { a in links(a).contains { small($0) > small(a) } } }
        XCTAssertEqual(found, wanted)
        XCTAssertFalse(wanted.isEmpty)
    }

    func testLongPathsOverLinksDoNotMultiplyWithoutEnd() throws {
        let world = try world()
        let path = Array(repeating: "links", count: 40).joined(separator: ".")
        // Three links an object on average of those that have any: without merging 40 steps would never end.
        let found = try Query("ANY \(path).small >= 0", class: "Thing", schema: world.schema).run(in: world.group.group)
        XCTAssertFalse(found.isEmpty)
    }

    func testDependenciesNameTheClassesThatPathsTouch() throws {
        let world = try world()
        let query = try Query("small == 1 AND ANY back.small > 1 SORT(link.int ASC)", class: "Thing", schema: world.schema)
        XCTAssertEqual(query.dependencies.tables, [world.table])
        XCTAssertFalse(query.dependencies.isEverything)
        XCTAssertTrue(try Query("@links.@count > 1", class: "Thing", schema: world.schema).dependencies.isEverything)
    }

    func testAQueryOutlivesTheVersionItWasMadeFor() throws {
        let world = try world()
        let query = try Query("small == 3 AND indexed == 2", class: "Thing", schema: world.schema)
        let before = try query.run(in: world.group.group)
        let editor = try world.group.editor(world.table)
        let key = try editor.createObject()
        try editor.set("small", of: key, to: .int(3))
        try editor.set("indexed", of: key, to: .int(2))
        XCTAssertEqual(try query.run(in: world.group.group), before + [key])
        try editor.removeColumn(editor.column(named: "small").key)
        XCTAssertThrowsError(try query.run(in: world.group.group)) { XCTAssertEqual(($0 as? QueryError)?.kind, .property) }
    }
}
