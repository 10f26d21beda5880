import TestSupport
import XCTest

@testable import SharedStore

/// Checks the rules of a cluster tree (file-format-2 4.2, 4.3 and the invariants 16 to 21 of section 11); returns its keys.
@discardableResult
func assertClusterShape(
    _ arena: Arena, _ ref: Int, columns: [ClusterColumn], file: StaticString = #filePath, line: UInt = #line
) throws -> [UInt64] {
    func walk(_ ref: Int, level: Int?, offset: UInt64, isRoot: Bool) throws -> [UInt64] {
        let node = try arena.memory.node(ref)
        XCTAssertTrue(node.hasRefs && node.widthType == 0 && !node.hasContext, file: file, line: line)
        guard node.isInner else {
            if let level { XCTAssertEqual(level, 0, "leaf too high", file: file, line: line) }
            let first = node.unchecked(0)
            var keys: [UInt64]
            if first & 1 != 0 {
                keys = (0..<first >> 1).map { offset &+ UInt64($0) }
            } else {
                let stored = try arena.memory.node(Int(first))
                XCTAssertGreaterThanOrEqual(stored.flags & 7, 4, file: file, line: line)
                keys = (0..<stored.count).map { offset &+ stored.uncheckedUnsigned($0) }
            }
            XCTAssertLessThanOrEqual(keys.count, 256, file: file, line: line)
            if !isRoot { XCTAssertGreaterThan(keys.count, 0, "empty leaf", file: file, line: line) }
            for column in columns {
                XCTAssertEqual(
                    try ColumnLeafEditor.count(arena, column, try node.requiredRef(1 + column.leafIndex)), keys.count,
                    "\(column.kind)", file: file, line: line)
            }
            return keys
        }
        let depth = try node.tagged(1)
        if let level { XCTAssertEqual(level, depth, file: file, line: line) }
        let count = node.count - 3
        XCTAssertTrue((isRoot ? 2 : 1)...256 ~= count, "\(count) children", file: file, line: line)
        let first = try node.optionalRef(0)
        let offsets: [UInt64]
        if first == 0 {
            offsets = (0..<count).map { UInt64($0) << UInt64(8 * depth) }
        } else {
            let stored = try arena.memory.node(first)
            offsets = (0..<stored.count).map { stored.uncheckedUnsigned($0) }
        }
        XCTAssertEqual(offsets.count, count, file: file, line: line)
        XCTAssertEqual(offsets.first, 0, file: file, line: line)
        var keys: [UInt64] = []
        for child in 0..<count {
            let below = try walk(
                try node.requiredRef(3 + child), level: depth - 1, offset: offset &+ offsets[child], isRoot: false)
            if child + 1 < count, let last = below.last {
                XCTAssertLessThan(last, offset &+ offsets[child + 1], file: file, line: line)
            }
            keys += below
        }
        XCTAssertEqual(try node.tagged(2), keys.count, file: file, line: line)
        return keys
    }
    let keys = try walk(ref, level: nil, offset: 0, isRoot: true)
    XCTAssertTrue(zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 }, "keys ascend", file: file, line: line)
    return keys
}

final class EditingClusterTreeTests: XCTestCase {
    /// A tree with an Int and a String column whose values follow from the key.
    private final class Objects {
        let tree: EditedTree
        var keys: Set<Int64> = []
        let columns = [ClusterColumn(leafIndex: 0, kind: .int), ClusterColumn(leafIndex: 2, kind: .string, isNullable: true)]
        var editor: ClusterTreeEditor { ClusterTreeEditor(tree.arena, columns: columns) }

        init() throws {
            let columns = columns
            tree = try EditedTree { try ClusterTreeEditor($0, columns: columns).create() }
        }

        func text(_ key: Int64) -> String? { key % 7 == 0 ? nil : "t\(key)" }

        func insert(_ key: Int64) throws {
            guard let place = try editor.insert(&tree.root, ObjectKey(key)) else { return XCTFail("key \(key) exists") }
            XCTAssertTrue(keys.insert(key).inserted)
            let arena = tree.arena
            editor.setColumnLeaf(place, 0, try IntLeafEditor.set(arena, try editor.columnLeaf(place, 0), place.row, key &* 3))
            editor.setColumnLeaf(place, 2, try StringLeafEditor.set(arena, try editor.columnLeaf(place, 2), place.row, text(key)))
        }

        func erase(_ key: Int64) throws {
            XCTAssertTrue(try editor.erase(&tree.root, ObjectKey(key)))
            keys.remove(key)
        }

        /// The tree has exactly the keys of the model, every object its own values, and nothing leaks.
        func check(file: StaticString = #filePath, line: UInt = #line) throws {
            let found = try assertClusterShape(tree.arena, tree.root, columns: columns, file: file, line: line)
            XCTAssertEqual(found, keys.map { UInt64(bitPattern: $0) }.sorted(), file: file, line: line)
            let reader = try ClusterTree(tree.memory, tree.root)
            XCTAssertEqual(reader.count, keys.count, file: file, line: line)
            for key in keys {
                guard let row = try reader.find(ObjectKey(key)) else { XCTFail("no \(key)", file: file, line: line); continue }
                XCTAssertEqual(
                    try IntLeaf(tree.memory, try row.cluster.requiredRef(1)).value(row.index), key &* 3, file: file, line: line)
                XCTAssertEqual(
                    try StringLeaf(tree.memory, try row.cluster.requiredRef(3)).value(row.index), text(key), file: file,
                    line: line)
            }
            try tree.assertNothingLeaks(file: file, line: line)
        }
    }

    private func leafSizes(_ objects: Objects) throws -> [Int] {
        var sizes: [Int] = []
        try ClusterTree(objects.tree.memory, objects.tree.root).forEachLeaf { sizes.append($0.count) }
        return sizes
    }

    func testAnEmptyTreeIsALeafWithAnEmptyLeafPerColumn() throws {
        let objects = try Objects()
        let leaf = try objects.tree.memory.node(objects.tree.root)
        XCTAssertEqual((0..<leaf.count).map { leaf.unchecked($0) & 1 }, [1, 0, 0, 0])
        XCTAssertEqual(leaf.unchecked(0), 1)
        XCTAssertEqual(leaf.unchecked(2), 0, "no column has leaf index 1")
        let bare = try EditedTree { try ClusterTreeEditor($0, columns: []).create() }
        XCTAssertEqual(
            try bare.scratch.committed(bare.root).scratch.nodeBytes(24),
            [0x41, 0x41, 0x41, 0x41, 0x41, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
        try objects.check()
    }

    /// file-format-2 4.5: keys 0, 1, 2, ... give full leaves in compact form under compact nodes.
    func testAscendingKeysStayCompact() throws {
        let objects = try Objects()
        for key in 0..<1000 { try objects.insert(Int64(key)) }
        let root = try objects.tree.memory.node(objects.tree.root)
        XCTAssertEqual([root.unchecked(0), root.unchecked(1), root.unchecked(2)], [0, 3, 2001])
        XCTAssertEqual(try leafSizes(objects), [256, 256, 256, 232])
        for child in 3..<7 { XCTAssertEqual(try objects.tree.memory.node(try root.requiredRef(child)).unchecked(0) & 1, 1) }
        try objects.check()
    }

    func testSeventyThousandAscendingKeysAreThreeLevels() throws {
        let objects = try Objects()
        for key in 0..<66_000 { try objects.insert(Int64(key)) }
        let root = try objects.tree.memory.node(objects.tree.root)
        XCTAssertEqual([root.unchecked(0), root.unchecked(1), root.unchecked(2)], [0, 5, 132_001])
        XCTAssertEqual(try assertClusterShape(objects.tree.arena, objects.tree.root, columns: objects.columns).count, 66_000)
        // In key order from the front, as the reference did it.
        for key in 0..<60_000 { try objects.erase(Int64(key)) }
        try objects.check()
        for key in 60_000..<66_000 { try objects.erase(Int64(key)) }
        try objects.check()
        XCTAssertEqual(try objects.tree.memory.node(objects.tree.root).isInner, false)
    }

    /// file-format-2 4.5: squeezed keys give leaves at multiples of 65536 below a general node.
    func testSqueezedKeysGiveLeavesAtFixedOffsets() throws {
        let objects = try Objects()
        for n in 0..<1000 as Range<Int64> { try objects.insert((n & 0xFF) | ((n >> 8) << 16)) }
        let root = try objects.tree.memory.node(objects.tree.root)
        let offsets = try objects.tree.memory.node(try root.requiredRef(0))
        XCTAssertEqual((0..<offsets.count).map { offsets.uncheckedUnsigned($0) }, [0, 65536, 131072, 196608])
        XCTAssertEqual(try leafSizes(objects), [256, 256, 256, 232])
        try objects.check()
        try objects.tree.commit()
        for n in 0..<1000 as Range<Int64> where n % 3 != 0 { try objects.erase((n & 0xFF) | ((n >> 8) << 16)) }
        try objects.check()
    }

    /// file-format-2 section 12: erasing row 0 of two makes the leaf general with keys [1] of 8 bits.
    func testErasingTheFirstRowMakesTheLeafGeneral() throws {
        let objects = try Objects()
        for key in 0..<2 { try objects.insert(Int64(key)) }
        try objects.erase(0)
        let leaf = try objects.tree.memory.node(objects.tree.root)
        XCTAssertEqual(
            try objects.tree.scratch.nodeBytes(try leaf.requiredRef(0)).prefix(9), [0x41, 0x41, 0x41, 0x41, 0x04, 0, 0, 1, 1])
        try objects.check()
        try objects.insert(2)
        try objects.check()
        let last = try Objects()
        for key in 0..<2 { try last.insert(Int64(key)) }
        try last.erase(1)
        XCTAssertEqual(try last.tree.memory.node(last.tree.root).unchecked(0), 3, "erasing the last row keeps the compact form")
    }

    func testAnExistingKeyIsNotInsertedAgainAndAMissingOneNotErased() throws {
        let objects = try Objects()
        for key in [0, 1, 5, 700, 701] + Array(1000..<1600) { try objects.insert(Int64(key)) }
        for key in [0, 5, 1300] { XCTAssertNil(try objects.editor.insert(&objects.tree.root, ObjectKey(Int64(key)))) }
        for key in [2, 99, 1600, .max] { XCTAssertFalse(try objects.editor.erase(&objects.tree.root, ObjectKey(Int64(key)))) }
        XCTAssertNil(try objects.editor.makeRowWritable(&objects.tree.root, ObjectKey(77)))
        try objects.check()
    }

    func testAFullLeafIsCutAtTheInsertion() throws {
        let objects = try Objects()
        for key in 0..<256 { try objects.insert(Int64(key) * 10) }
        try objects.insert(1005)
        XCTAssertEqual(try leafSizes(objects), [102, 155])
        let root = try objects.tree.memory.node(objects.tree.root)
        let offsets = try objects.tree.memory.node(try root.requiredRef(0))
        XCTAssertEqual((0..<offsets.count).map { offsets.uncheckedUnsigned($0) }, [0, 1010])
        try objects.check()
    }

    /// file-format-2 4.6: a leaf below 128 rows takes in its next sibling if both together stay below 192.
    func testSmallLeavesMerge() throws {
        let objects = try Objects()
        for key in 0..<400 { try objects.insert(Int64(key)) }
        for key in 0..<208 { try objects.erase(Int64(key)) }
        XCTAssertEqual(try leafSizes(objects), [48, 144])
        try objects.erase(208)
        XCTAssertEqual(try leafSizes(objects), [191])
        XCTAssertFalse(try objects.tree.memory.node(objects.tree.root).isInner, "the root collapsed")
        try objects.check()
    }

    func testUnsignedTombstoneKeysLieBehindEachOther() throws {
        let objects = try Objects()
        var random = generator(31)
        for step in 0..<1500 {
            let key = -2 - Int64.random(in: 0..<(step % 2 == 0 ? 5000 : 0x3FFF_FFFF_FFFF_FFFF), using: &random)
            if !objects.keys.contains(key) { try objects.insert(key) }
        }
        try objects.check()
        try objects.tree.commit()
        for key in objects.keys.sorted().prefix(1200) { try objects.erase(key) }
        try objects.check()
    }

    func testMiddleInsertionsSplitFullInnerNodes() throws {
        let objects = try Objects()
        // 300 leaves of 256 rows make two inner nodes; then every leaf of a stretch is cut once.
        for key in 0..<300 * 256 as Range<Int64> { try objects.insert(key * 4) }
        for leaf in 40..<300 as Range<Int64> { try objects.insert(leaf * 1024 + 513) }
        try objects.check()
        try objects.tree.assertNothingLeaks()
    }

    func testRandomInsertionsAndErasuresMatchADictionary() throws {
        for seed in 41...46 as ClosedRange<UInt64> {
            var random = generator(seed)
            let objects = try Objects()
            let span: Int64 = [300, 3000, 100_000, 1 << 40, .max, 2000][Int(seed) - 41]
            for round in 0..<4 {
                for _ in 0..<900 {
                    let key = seed == 46 ? Int64(objects.keys.count) * 256 : Int64.random(in: 0..<span, using: &random)
                    if objects.keys.contains(key) { try objects.erase(key) } else { try objects.insert(key) }
                }
                try objects.check()
                if round % 2 == 0 { try objects.tree.commit() }
                var rest = objects.keys.sorted()
                if round == 1 { rest.shuffle(using: &random) }
                if round == 2 { rest.reverse() }
                for key in rest.prefix(rest.count * 3 / 4) { try objects.erase(key) }
                try objects.check()
            }
            for key in objects.keys { try objects.erase(key) }
            try objects.check()
        }
    }

    func testClearFreesEverythingButAnEmptyLeaf() throws {
        let objects = try Objects()
        for key in 0..<2000 { try objects.insert(Int64(key)) }
        try objects.tree.commit()
        for key in 0..<10 { try objects.erase(Int64(key)) }
        try objects.editor.clear(&objects.tree.root)
        objects.keys = []
        try objects.check()
        try objects.insert(5)
        try objects.check()
    }

    func testColumnsOfEveryKindAreAddedWithTheirDefaultAndRemoved() throws {
        let kinds: [(ColumnLeafKind, Bool)] = [
            (.int, false), (.nullableInt, true), (.bool, false), (.bool, true), (.float, false), (.double, true),
            (.timestamp, false),
            (.timestamp, true), (.decimal, false), (.decimal, true), (.objectId, false), (.uuid, true), (.string, false),
            (.string, true),
            (.enumString, false), (.binary, false), (.binary, true), (.link, true), (.mixed, true), (.collection, false),
            (.backlink, false),
        ]
        var columns: [ClusterColumn] = []
        let tree = try EditedTree { try ClusterTreeEditor($0, columns: []).create() }
        for key in 0..<600 { _ = try ClusterTreeEditor(tree.arena, columns: []).insert(&tree.root, ObjectKey(Int64(key))) }
        for (index, (kind, isNullable)) in kinds.enumerated() {
            let column = ClusterColumn(leafIndex: index, kind: kind, isNullable: isNullable)
            try ClusterTreeEditor(tree.arena, columns: columns).addColumn(&tree.root, column)
            columns.append(column)
        }
        try assertClusterShape(tree.arena, tree.root, columns: columns)
        try tree.commit()
        // Rows come, go and move between leaves with all columns.
        let editor = ClusterTreeEditor(tree.arena, columns: columns)
        for key in 0..<600 where key % 5 != 0 { XCTAssertTrue(try editor.erase(&tree.root, ObjectKey(Int64(key)))) }
        for key in stride(from: 1, to: 600, by: 5) { XCTAssertNotNil(try editor.insert(&tree.root, ObjectKey(Int64(key)))) }
        for key in 600..<900 { XCTAssertNotNil(try editor.insert(&tree.root, ObjectKey(Int64(key) * 2))) }
        try assertClusterShape(tree.arena, tree.root, columns: columns)
        try tree.assertNothingLeaks()
        while let column = columns.popLast() {
            try ClusterTreeEditor(tree.arena, columns: columns).removeColumn(&tree.root, leafIndex: column.leafIndex)
            try assertClusterShape(tree.arena, tree.root, columns: columns)
            var slots: Set<Int> = []
            try ClusterTree(tree.memory, tree.root).forEachLeaf { slots.insert($0.node.count) }
            XCTAssertEqual(slots, [columns.count + 1])
        }
        try tree.assertNothingLeaks()
    }

    func testRemovingAColumnInTheMiddleLeavesAnEmptySlot() throws {
        let objects = try Objects()
        for key in 0..<300 { try objects.insert(Int64(key)) }
        try objects.editor.removeColumn(&objects.tree.root, leafIndex: 0)
        let rest = [objects.columns[1]]
        try assertClusterShape(objects.tree.arena, objects.tree.root, columns: rest)
        try ClusterTree(objects.tree.memory, objects.tree.root).forEachLeaf { XCTAssertEqual($0.node.unchecked(1), 0) }
        try ClusterTreeEditor(objects.tree.arena, columns: rest).addColumn(
            &objects.tree.root, ClusterColumn(leafIndex: 0, kind: .nullableInt, isNullable: true))
        try objects.tree.assertNothingLeaks()
    }

    func testMakingARowWritableCopiesOnlyThePathAndOnlyOnce() throws {
        let objects = try Objects()
        for key in 0..<1000 { try objects.insert(Int64(key)) }
        try objects.tree.commit()
        let arena = objects.tree.arena
        guard let place = try objects.editor.makeRowWritable(&objects.tree.root, ObjectKey(600)) else {
            return XCTFail("600 is there")
        }
        XCTAssertEqual(arena.released.count, 2, "root and one leaf")
        XCTAssertEqual(place.row, 600 - 512)
        let root = objects.tree.root
        guard let again = try objects.editor.makeRowWritable(&objects.tree.root, ObjectKey(601)) else {
            return XCTFail("601 is there")
        }
        XCTAssertEqual([again.leaf, objects.tree.root, arena.released.count], [place.leaf, root, 2])
        try objects.check()
    }

    func testDamagedNodesThrow() throws {
        func damaged(_ change: (Arena, Int) throws -> Void) throws -> Objects {
            let objects = try Objects()
            for key in 0..<600 { try objects.insert(Int64(key) * 3) }
            try change(objects.tree.arena, objects.tree.root)
            return objects
        }
        let trees = [
            try damaged { $0.setElement($1, 1, 99) },
            try damaged { $0.setElement($1, 1, 5) },
            try damaged { $0.setElement($1, 2, 8) },
            try damaged { $0.setElement($1, 3, $1) },
            try damaged { $0.setElement($1, 3, 12345) },
            try damaged { $0.setElement($1, 0, try UnsignedArrayEditor.create($0)) },
            try damaged { $0.setElement(try $0.child($1, 3), 0, 0) },
            try damaged { $0.setElement(try $0.child($1, 3), 0, 2001) },
            try damaged { $0.setElement(try $0.child($1, 3), 1, 0) },
            try damaged { $0.setElement(try $0.child($1, 3), 0, try UnsignedArrayEditor.create($0, count: 300, value: 0)) },
        ]
        for (index, objects) in trees.enumerated() {
            XCTAssertThrowsError(try objects.editor.insert(&objects.tree.root, ObjectKey(1)), "\(index)") {
                XCTAssertTrue($0 is FormatError)
            }
        }
    }
}
