import SharedStore
import TestSupport
import XCTest

@testable import Fuzzer

/// Damage in files made node by node: each part is what its place asks for, and the whole is not.
final class DamagedByHandTests: DamageTestCase {
    // MARK: Embedded objects without a root

    /// A class `O` whose object i owns the embedded object `owned[i]`, and an embedded class `E` whose object i owns `next[i]`.
    private func embedded(owned: [Int], next: [Int?]) -> DamagedFile {
        var file = NodeFile()
        func backlinks(_ links: [(origin: Int, target: Int)]) -> [Int] {
            next.indices.map { target in links.first { $0.target == target }.map { NodeFile.tagged($0.origin) } ?? 0 }
        }
        var first = NodeFile.Column("first", type: 12, attributes: 16, leaf: file.integers(owned.map { $0 + 1 }), leafIndex: 0)
        let nexts = file.integers(next.map { ($0 ?? -1) + 1 }), owners = file.refs(backlinks(owned.enumerated().map { ($0, $1) }))
        var following = NodeFile.Column("next", type: 12, attributes: 16, leaf: nexts, leafIndex: 0, tag: 1)
        var fromOwners = NodeFile.Column(nil, type: 14, leaf: owners, leafIndex: 1, tag: 1)
        let links = next.enumerated().compactMap { origin, target in target.map { (origin: origin, target: $0) } }
        var fromPeers = NodeFile.Column(nil, type: 14, leaf: file.refs(backlinks(links)), leafIndex: 2, tag: 1)
        (first.oppositeTable, first.oppositeColumn) = (1, fromOwners.key)
        (fromOwners.oppositeTable, fromOwners.oppositeColumn) = (0, first.key)
        (following.oppositeTable, following.oppositeColumn) = (1, fromPeers.key)
        (fromPeers.oppositeTable, fromPeers.oppositeColumn) = (1, following.key)
        let embedded = [following, fromOwners, fromPeers]
        let trees = (file.cluster([first], rows: owned.count), file.cluster(embedded, rows: next.count))
        let tables = [file.table(key: 0, [first], tree: trees.0), file.table(key: 1, embedded, tree: trees.1, kind: 1)]
        return DamagedFile(file.streaming(names: ["class_O", "class_E"], tables: tables))
    }

    func testEmbeddedObjectsInAChainAreSound() throws {
        try expectSound(embedded(owned: [0, 4], next: [1, 2, 3, nil, nil]))
        // A chain as long as a cluster, in the order in which it is not walked.
        try expectSound(embedded(owned: [255], next: [nil] + (0..<255).map { $0 }))
    }

    func testEmbeddedObjectThatOwnsItself() throws {
        try expect(.embeddedOwners, of: embedded(owned: [], next: [0]))
        try expect(.embeddedOwners, of: embedded(owned: [1], next: [0, nil]))
    }

    func testEmbeddedObjectsThatOwnEachOther() throws {
        for file in [embedded(owned: [], next: [1, 0]), embedded(owned: [0, 1], next: [nil, nil, 3, 4, 2])] {
            try expect(.embeddedOwners, of: file)
            XCTAssertEqual(try file.verify().errorCount, 1, "a ring is one finding")
        }
    }

    func testRingThroughTwoEmbeddedClasses() throws {
        var file = NodeFile()
        var columns = (0..<2).map { table in
            [
                NodeFile.Column("other", type: 12, attributes: 16, leaf: file.integers([1]), leafIndex: 0, tag: table),
                NodeFile.Column(nil, type: 14, leaf: file.refs([NodeFile.tagged(0)]), leafIndex: 1, tag: table),
            ]
        }
        for table in 0..<2 {
            (columns[table][0].oppositeTable, columns[table][0].oppositeColumn) = (1 - table, columns[1 - table][1].key)
            (columns[table][1].oppositeTable, columns[table][1].oppositeColumn) = (1 - table, columns[1 - table][0].key)
        }
        let trees = columns.map { file.cluster($0, rows: 1) }
        let tables = (0..<2).map { file.table(key: $0, columns[$0], tree: trees[$0], kind: 1) }
        try expect(.embeddedOwners, of: DamagedFile(file.streaming(names: ["class_A", "class_B"], tables: tables)))
    }

    /// A file of one version, so that salvage has to read its objects one by one; people own addresses in lists and dictionaries.
    func testEmbeddedObjectsInCollectionsAreSalvaged() throws {
        let tree = try XCTUnwrap(FuzzFixture(path: fixture("relationships")).tree)
        let damaged = DamagedFile(tree.written())
        try expectSound(damaged)
        damaged.edit(damaged.leaf("Dog", "age")) { $0.elements.removeLast() }
        try expect(.leafCount, of: damaged)
    }

    func testSetOfEmbeddedObjects() throws {
        var file = NodeFile()
        var set = NodeFile.Column("set", type: 12, attributes: 128, leaf: file.refs([file.integers([0])]), leafIndex: 0)
        var backlinks = NodeFile.Column(nil, type: 14, leaf: file.refs([NodeFile.tagged(0)]), leafIndex: 0, tag: 1)
        (set.oppositeTable, set.oppositeColumn) = (1, backlinks.key)
        (backlinks.oppositeTable, backlinks.oppositeColumn) = (0, set.key)
        let trees = (file.cluster([set], rows: 1), file.cluster([backlinks], rows: 1))
        for (kind, isSound) in [(1, false), (0, true)] {
            var file = file
            let tables = [file.table(key: 0, [set], tree: trees.0), file.table(key: 1, [backlinks], tree: trees.1, kind: kind)]
            let damaged = DamagedFile(file.streaming(names: ["class_O", "class_E"], tables: tables))
            if isSound { try expectSound(damaged) } else { try expect(.linkTarget, of: damaged) }
        }
    }

    // MARK: Indexes on Mixed

    /// A class with a column of Mixed values and an index on it, given as (chunks on the way, keys of the objects).
    private func indexed(
        _ values: (inout NodeFile) -> Int, count: Int, _ entries: [(path: [Int], keys: [Int])],
        targets: Int = 0
    ) -> DamagedFile {
        var file = NodeFile()
        var any = NodeFile.Column("any", type: 6, attributes: 16 | 1, leaf: values(&file), leafIndex: 0)
        func node(_ entries: [(path: [Int], keys: [Int])], _ level: Int) -> Int {
            var chunks: [Int] = [], elements: [Int] = []
            for chunk in Set(entries.map { $0.path[level] }).sorted() {
                let below = entries.filter { $0.path[level] == chunk }
                chunks.append(chunk)
                if below.count == 1, below[0].path.count == level + 1 {
                    elements.append(below[0].keys.count == 1 ? NodeFile.tagged(below[0].keys[0]) : file.integers(below[0].keys))
                } else {
                    elements.append(node(below, level + 1))
                }
            }
            return file.refs([file.integers(chunks, code: 6)] + elements, context: true)
        }
        any.index = node(entries, 0)
        let tree = file.cluster([any], rows: count)
        // A second class, of objects with the keys 0 up to `targets`, to which links may have led.
        let other = file.table(key: 1, [], tree: file.cluster([], rows: targets))
        let table = file.table(key: 0, [any], tree: tree)
        return DamagedFile(file.streaming(names: ["class_A", "class_B"], tables: [table, other]))
    }

    private let end = 0x5800_0000

    private func chunk(_ bytes: [UInt8]) -> Int { Int(Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) })) }

    private func path(_ bytes: [UInt8]) -> [Int] {
        stride(from: 0, to: bytes.count, by: 4).map { chunk(Array(bytes[$0..<($0 + 4)])) } + [end]
    }

    private func path(_ value: UInt64) -> [Int] { path(withUnsafeBytes(of: value.littleEndian) { Array($0) }) }

    private func path(table: UInt32, key: UInt64) -> [Int] {
        path(withUnsafeBytes(of: table.littleEndian) { Array($0) } + withUnsafeBytes(of: key.littleEndian) { Array($0) })
    }

    /// Two doubles; as composite values of type 10 in array 1.
    private func doubles(_ values: [Double]) -> (inout NodeFile) -> Int {
        { $0.mixed(values.indices.map { $0 << 8 | 1 << 5 | 11 }, ints: values.map { Int(bitPattern: UInt($0.bitPattern)) }) }
    }

    func testNaNThatStandsTwiceInAnIndex() throws {
        let nan = path(Double.nan.bitPattern)
        try expectSound(indexed(doubles([.nan, .nan]), count: 2, [(nan, [0, 1])]))
        try expect(
            .indexList, also: [.indexMissing, .indexCount], of: indexed(doubles([.nan, .nan]), count: 2, [(nan, [0, 0])]))
        try expect(.indexList, also: [.indexMissing], of: indexed(doubles([.nan, .nan]), count: 2, [(nan, [1, 0])]))
    }

    func testNumberUnderTheChunkOfAnother() throws {
        let seven: (inout NodeFile) -> Int = { $0.mixed([7 << 8 | 1]) }
        try expectSound(indexed(seven, count: 1, [(path(7), [0])]))
        try expect(.indexPlace, also: [.indexMissing], of: indexed(seven, count: 1, [(path(8), [0])]))
        try expect(.indexPlace, also: [.indexMissing], of: indexed(seven, count: 1, [([chunk([8, 0, 0, 0])], [0])]))
        try expect(.indexPlace, also: [.indexMissing], of: indexed(doubles([0.5]), count: 1, [(path((0.25).bitPattern), [0])]))
    }

    func testNumberUnderTheChunkOfAnEqualOneIsAHabit() throws {
        // 3e9 replaced the integer 3000000000, or the other way round.
        try expectSound(indexed(doubles([3e9]), count: 1, [(path(3_000_000_000), [0])]), warnings: [.indexPlace])
        let int: (inout NodeFile) -> Int = { $0.mixed([1 << 5 | 1], ints: [3_000_000_000]) }
        try expectSound(indexed(int, count: 1, [(path((3e9).bitPattern), [0])]), warnings: [.indexPlace])
        // The decimal 0.5 goes by 0; a float of four bytes.
        try expectSound(indexed(doubles([0.5]), count: 1, [(path(0), [0])]), warnings: [.indexPlace])
        let float = withUnsafeBytes(of: Float(0.5).bitPattern.littleEndian) { Array($0) }
        try expectSound(indexed(doubles([0.5]), count: 1, [(path(float), [0])]), warnings: [.indexPlace])
    }

    func testNullUnderTheChunksOfALink() throws {
        let null: (inout NodeFile) -> Int = { $0.mixed([0]) }
        // The object with key 5 was deleted, the one with key 1 is still there.
        try expectSound(indexed(null, count: 1, [(path(table: 1, key: 5), [0])], targets: 3), warnings: [.indexPlace])
        try expectSound(indexed(null, count: 1, [([chunk([1, 0, 0, 0])], [0])], targets: 3), warnings: [.indexPlace])
        try expect(.indexPlace, of: indexed(null, count: 1, [(path(table: 1, key: 1), [0])], targets: 3))
        try expect(.indexPlace, of: indexed(null, count: 1, [(path(table: 9, key: 5), [0])], targets: 3))
        try expect(.indexPlace, of: indexed(null, count: 1, [([chunk([1, 2, 3, 4])], [0])], targets: 3))
    }

    // MARK: Values of a Mixed

    private func oneColumn(_ type: Int, _ attributes: Int, _ leaf: (inout NodeFile) -> Int, rows: Int = 1) -> DamagedFile {
        var file = NodeFile()
        let column = NodeFile.Column("c", type: type, attributes: attributes, leaf: leaf(&file), leafIndex: 0)
        let tree = file.cluster([column], rows: rows)
        let table = file.table(key: 0, [column], tree: tree)
        return DamagedFile(file.streaming(names: ["class_A"], tables: [table]))
    }

    func testCollectionInASet() throws {
        let list: (inout NodeFile) -> Int = { $0.refs([$0.mixed([4 << 5 | 20], refs: [0], keys: [7])]) }
        try expectSound(oneColumn(6, 16 | 32, list))
        try expect(.setNested, of: oneColumn(6, 16 | 128, list))
        try expect(.setNested, of: oneColumn(6, 16 | 128) { $0.refs([$0.mixed([4 << 5 | 22], refs: [0], keys: [7])]) })
    }

    func testLinkThatNamesNoTable() throws {
        try expect(.linkTarget, of: oneColumn(6, 16) { $0.mixed([1 << 5 | 13], ints: [0]) })
        try expect(.linkTarget, of: oneColumn(6, 16 | 32) { $0.refs([$0.mixed([257, 1 << 5 | 13], ints: [0])]) })
    }

    // MARK: Counts without bytes

    func testLeavesOfElementsWithoutBytes() throws {
        func list(_ count: Int) -> (inout NodeFile) -> Int { { $0.refs([$0.node(flags: 0, count: count, payload: [])]) } }
        try expectSound(oneColumn(0, 32, list(1000)))
        for attributes in [32, 128] {
            try expect(.treeNodeCount, also: [.setDuplicate], of: oneColumn(0, attributes, list(0xFF_FFFF)))
        }
        let nulls = { (file: inout NodeFile) in file.refs([file.node(flags: 8, count: 0xFF_FFFF, payload: [])]) }
        try expect(.treeNodeCount, of: oneColumn(2, 16 | 32, nulls))
        let mixed: (inout NodeFile) -> Int = { file in
            let values = file.node(flags: 0, count: 0xFF_FFFF, payload: [])
            return file.refs([file.refs([values, 0, 0, 0, 0, 0])])
        }
        try expect(.treeNodeCount, of: oneColumn(6, 16 | 32, mixed))
        // An old leaf of more than 1000 elements that has its bytes.
        let large = (0..<1500).map { $0 & 1 }
        try expectSound(oneColumn(0, 32) { $0.refs([$0.integers(large)]) }, warnings: [.treeNodeCount])
    }

    func testBacklinksOfOneLeafMayBeManyAndAllAlike() throws {
        // An object that links to itself 5000 times, in a file that an old version wrote: 5 leaves, and one list of 5000 zeros.
        func selfLinks(_ count: Int) -> DamagedFile {
            var file = NodeFile()
            let leaves = (0..<5).map { _ in file.node(flags: 0, count: 1000, payload: []) }
            let tree = file.refs([NodeFile.tagged(1000)] + leaves + [NodeFile.tagged(5000)], inner: true)
            let backlinks = file.node(flags: 0, count: count, payload: [])
            var list = NodeFile.Column("list", type: 12, attributes: 32, leaf: file.refs([tree]), leafIndex: 0)
            var back = NodeFile.Column(nil, type: 14, leaf: file.refs([backlinks]), leafIndex: 1)
            (list.oppositeTable, list.oppositeColumn) = (0, back.key)
            (back.oppositeTable, back.oppositeColumn) = (0, list.key)
            let clusters = file.cluster([list, back], rows: 1)
            let table = file.table(key: 0, [list, back], tree: clusters)
            return DamagedFile(file.streaming(names: ["class_A"], tables: [table]))
        }
        try expectSound(selfLinks(5000), warnings: [.treeNodeCount])
        try expect(.treeNodeCount, also: [.backlinkExtra, .backlinkMissing, .elementLimit], of: selfLinks(0xFF_FFFF))
    }

    /// Leaves that are not those of their clusters are entered without a look at what their elements mean; there are none here.
    func testArraysOfRefsWithoutBytes() throws {
        var file = NodeFile()
        let columns = (0..<100).map { index in
            let refs = file.node(flags: 0x40, count: 0xFF_FFFF, payload: [])
            return index % 2 == 0
                ? NodeFile.Column(
                    "c\(index)", type: 2, leaf: file.node(flags: 0x60, count: 0xFF_FFFF, payload: []), leafIndex: index)
                : NodeFile.Column(
                    "c\(index)", type: 6, attributes: 16, leaf: file.refs([file.integers([0, 0]), 0, 0, 0, refs, 0]),
                    leafIndex: index)
        }
        let tree = file.cluster(columns, rows: 1)
        let table = file.table(key: 0, columns, tree: tree)
        let report = try DamagedFile(file.streaming(names: ["class_A"], tables: [table])).verify()
        XCTAssertEqual(report.errorCodes, [.leafCount])
    }

    func testListOfNamesWithoutBytes() throws {
        let file = try DamagedFile(fixture("relationships"))
        file.edit([0]) { $0 = .init(flags: 0x08, payload: [], payloadCount: 0xFF_FFFF) }
        let outcome = try Exercise.run(Array(file.bytes))
        XCTAssertFalse(outcome.report.isSound)
        XCTAssertTrue(outcome.readError is FormatError, "\(String(describing: outcome.readError))")
        let second = try DamagedFile(fixture("relationships"))
        second.edit(second.table("Dog") + [0, 1]) { $0 = .init(flags: 0x08, payload: [], payloadCount: 0xFF_FFFF) }
        XCTAssertTrue(try Exercise.run(Array(second.bytes)).readError is FormatError)
    }

    // MARK: Names

    func testNamesThatOnlyLookAlikeAreTwo() throws {
        let composed = "\u{E9}", decomposed = "e\u{301}"
        var file = NodeFile()
        let columns = [
            NodeFile.Column(composed, type: 0, leaf: file.integers([1]), leafIndex: 0),
            NodeFile.Column(decomposed, type: 0, leaf: file.integers([2]), leafIndex: 1),
        ]
        let tree = file.cluster(columns, rows: 1), other = file.cluster([], rows: 2)
        let tables = [file.table(key: 0, columns, tree: tree), file.table(key: 1, [], tree: other)]
        let good = DamagedFile(file.streaming(names: ["class_" + composed, "class_" + decomposed], tables: tables))
        try expectSound(good)
        try expect(
            .groupName, of: DamagedFile(file.streaming(names: ["class_" + composed, "class_" + composed], tables: tables)))
    }

    // MARK: The limits of a run

    func testWarningsNeverChangeTheVerdict() throws {
        let count = 300
        let file = oneColumn(
            2, 0,
            { file in
                file.node(flags: 0x0A, count: 256, payload: (0..<256).flatMap { _ in [0xFF, 0] as [UInt8] })
            }, rows: 256)
        var options = VerifierOptions()
        (options.findingLimit, options.findingsPerCode) = (10, 100)
        let report = try file.verify(options)
        XCTAssertTrue(report.isSound, "\(report.findings)")
        XCTAssertEqual(report.warningCount, 256)
        XCTAssertEqual(report.findings.count, 10)
        XCTAssertEqual(report.unlisted, 246)
        // Errors behind as many warnings are listed all the same, and stop the run.
        let damaged = oneColumn(
            2, 0,
            { file in
                file.node(
                    flags: 0x0A, count: count, payload: (0..<count).flatMap { ($0 < 200 ? [0xFF, 0] : [0, 9]) as [UInt8] })
            }, rows: count)
        let second = try damaged.verify(options)
        XCTAssertFalse(second.isSound)
        XCTAssertFalse(second.isComplete)
        XCTAssertEqual(second.findings.filter { $0.severity == .error }.count, 10)
        XCTAssertEqual(second.findings.filter { $0.severity == .warning }.count, 10)
    }

    func testOneOfManyColumnsThatDiffers() throws {
        let count = 2000
        var file = NodeFile()
        var links: [NodeFile.Column] = [], backlinks: [NodeFile.Column] = []
        for i in 0..<count {
            links.append(NodeFile.Column("\(i)", type: 12, attributes: 16, leaf: file.integers([i == 7 ? 0 : 1]), leafIndex: i))
            backlinks.append(NodeFile.Column(nil, type: 14, leaf: file.refs([NodeFile.tagged(0)]), leafIndex: i, tag: 1))
        }
        for i in 0..<count {
            (links[i].oppositeTable, links[i].oppositeColumn) = (1, backlinks[i].key)
            (backlinks[i].oppositeTable, backlinks[i].oppositeColumn) = (0, links[i].key)
        }
        let trees = (file.cluster(links, rows: 1), file.cluster(backlinks, rows: 1))
        let tables = [file.table(key: 0, links, tree: trees.0), file.table(key: 1, backlinks, tree: trees.1)]
        let report = try DamagedFile(file.streaming(names: ["class_A", "class_B"], tables: tables)).verify()
        XCTAssertEqual(report.errorCodes, [.backlinkExtra])
        XCTAssertEqual(report.findings.count, 1)
        XCTAssertTrue(report.findings[0].what.contains("whose column 7 does not link here"), report.findings[0].what)
        XCTAssertEqual(report.linkCount, count - 1)
    }
}
