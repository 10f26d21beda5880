import TestSupport
import XCTest

@testable import SharedStore

final class EditingBPlusTreeTests: XCTestCase {
    typealias Editor = BPlusTreeEditor<IntLeafEditor>

    /// All elements in order, read without any editor.
    private func elements(_ tree: EditedTree, _ ref: Int? = nil) throws -> [Int64] {
        let node = try tree.memory.node(ref ?? tree.root)
        if !node.isInner { return (0..<node.count).map { node.unchecked($0) } }
        return try (1...node.count - 2).flatMap { try elements(tree, try node.requiredRef($0)) }
    }

    private func leafSizes(_ tree: EditedTree, _ ref: Int? = nil) throws -> [Int] {
        let node = try tree.memory.node(ref ?? tree.root)
        if !node.isInner { return [node.count] }
        return try (1...node.count - 2).flatMap { try leafSizes(tree, try node.requiredRef($0)) }
    }

    private func filled(_ count: Int) throws -> EditedTree {
        let tree = try EditedTree { try Editor.create($0) }
        for i in 0..<count { tree.root = try Editor.append(tree.arena, tree.root, Int64(i)) }
        return tree
    }

    /// file-format-1 9.3: 2500 integers, then one inserted at 1500.
    func testAppendingFillsLeavesInCompactFormAndInsertingCutsOne() throws {
        let tree = try filled(2500)
        try tree.commit()
        let root = try tree.memory.node(tree.root)
        XCTAssertEqual(root.count, 5)
        XCTAssertEqual(root.flags & 0xF8, 0xC0)
        XCTAssertEqual(try root.tagged(0), 1000)
        XCTAssertEqual(try root.tagged(4), 2500)
        XCTAssertEqual(try leafSizes(tree), [1000, 1000, 500])
        try tree.edit { try Editor.insert($0, $1, 1500, -7) }
        XCTAssertEqual(try leafSizes(tree), [1000, 501, 500, 500])
        let offsets = try tree.memory.node(try tree.memory.node(tree.root).requiredRef(0))
        XCTAssertEqual(try tree.scratch.payload(offsets.ref), [0xE8, 0x03, 0xDD, 0x05, 0xD1, 0x07])
        try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
        XCTAssertEqual(try elements(tree), (0..<1500).map(Int64.init) + [-7] + (1500..<2500).map(Int64.init))
        try tree.assertNothingLeaks()
    }

    /// file-format-1 9.3: one million and one thousand integers are three levels, all compact.
    func testAThirdLevelIsCompactWithAMillionElementsAChild() throws {
        let tree = try filled(1_001_000)
        let root = try tree.memory.node(tree.root)
        XCTAssertEqual(root.count, 4)
        XCTAssertEqual(try root.tagged(0), 1_000_000)
        XCTAssertEqual(try root.tagged(3), 1_001_000)
        let last = try tree.memory.node(try root.requiredRef(2))
        XCTAssertEqual([last.count, try last.tagged(0), try last.tagged(2)], [3, 1000, 1000])
        // A full inner node splits in the middle, one level up is told.
        try tree.edit { try Editor.insert($0, $1, 400_500, 5) }
        try tree.edit { try Editor.erase($0, $1, 0) }
        try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
        XCTAssertEqual(try Editor.count(tree.arena, tree.root), 1_001_000)
        for _ in 0..<1200 { try tree.edit { try Editor.append($0, $1, 1) } }
        try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
        try tree.assertNothingLeaks()
    }

    func testInsertingAtTheFrontGivesUnevenLeaves() throws {
        let tree = try EditedTree { try Editor.create($0) }
        for i in 0..<2500 { try tree.edit { try Editor.insert($0, $1, 0, Int64(i)) } }
        try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
        XCTAssertEqual(try elements(tree), (0..<2500).reversed().map(Int64.init))
        try tree.assertNothingLeaks()
    }

    func testErasingTheLastElementOfTheSecondLeafCollapsesTheTree() throws {
        let tree = try filled(1001)
        XCTAssertTrue(try tree.memory.node(tree.root).isInner)
        try tree.edit { try Editor.erase($0, $1, 1000) }
        XCTAssertFalse(try tree.memory.node(tree.root).isInner)
        XCTAssertEqual(try elements(tree), (0..<1000).map(Int64.init))
        try tree.assertNothingLeaks()
    }

    /// file-format-1 9.6: a leaf below 500 takes in its next sibling if both together stay below 750, never the previous one.
    func testASmallLeafMergesWithTheNextOneOnly() throws {
        let tree = try filled(1300)
        for _ in 0..<501 { try tree.edit { try Editor.erase($0, $1, 0) } }
        XCTAssertEqual(try leafSizes(tree), [499, 300])
        for _ in 0..<49 { try tree.edit { try Editor.erase($0, $1, 0) } }
        XCTAssertEqual(try leafSizes(tree), [450, 300])
        try tree.edit { try Editor.erase($0, $1, 0) }
        XCTAssertEqual(try leafSizes(tree), [749], "merged and collapsed to a root leaf")
        let last = try filled(1300)
        for _ in 0..<200 { try last.edit { try Editor.erase($0, $1, 1000) } }
        XCTAssertEqual(try leafSizes(last), [1000, 100])
    }

    func testClearLeavesAnEmptyLeaf() throws {
        for count in [0, 10, 3000] {
            let tree = try filled(count)
            if count == 3000 { try tree.commit() }
            try tree.edit { try Editor.clear($0, $1) }
            XCTAssertEqual(try tree.scratch.nodeBytes(tree.root), [0x41, 0x41, 0x41, 0x41, 0, 0, 0, 0])
            try tree.assertNothingLeaks()
        }
    }

    func testRandomChangesMatchASwiftArrayAndKeepTheShape() throws {
        for seed in 1...6 as ClosedRange<UInt64> {
            var random = generator(seed)
            let start = [0, 900, 2500, 4000, 8000, 1000][Int(seed) - 1]
            let tree = try filled(start)
            var model = (0..<start).map(Int64.init)
            for step in 0..<3000 {
                let value = Int64(truncatingIfNeeded: random.next() & 0xFFFFF) - 1000
                // The first half grows, the second shrinks.
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<(step < 1500 ? 10 : 3):
                    let index = Int.random(in: 0...model.count, using: &random)
                    model.insert(value, at: index)
                    try tree.edit { try Editor.insert($0, $1, index, value) }
                case 10, 11:
                    model.append(value)
                    try tree.edit { try Editor.append($0, $1, value) }
                case 12, 13:
                    guard let index = model.indices.randomElement(using: &random) else { continue }
                    model[index] = value
                    try tree.edit { try Editor.set($0, $1, index, value) }
                default:
                    if model.isEmpty { continue }
                    // Runs of erasures empty leaves and merge them.
                    let index = Int.random(in: 0..<model.count, using: &random)
                    for _ in 0..<min(model.count - index, step % 50 == 0 ? 700 : 2) {
                        model.remove(at: index)
                        try tree.edit { try Editor.erase($0, $1, index) }
                    }
                }
                if step % 300 == 299 {
                    XCTAssertEqual(try elements(tree), model)
                    try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
                    try tree.assertNothingLeaks()
                    if step % 900 == 899 { try tree.commit() }
                }
            }
            while let last = model.indices.last {
                model.removeLast()
                try tree.edit { try Editor.erase($0, $1, last) }
            }
            XCTAssertEqual(try elements(tree), [])
            try tree.assertNothingLeaks()
        }
    }

    func testTheContextFlagOfLinksStaysWithTheRoot() throws {
        typealias Links = BPlusTreeEditor<KeyLeafEditor>
        let tree = try EditedTree { try Links.create($0) }
        try tree.edit { try Links.append($0, $1, ObjectKey(-7)) }
        try tree.edit { try Links.setHoldsUnresolved($0, $1, true) }
        XCTAssertEqual(try tree.scratch.flags(tree.root), 0x24)
        for i in 0..<1000 { try tree.edit { try Links.append($0, $1, ObjectKey(Int64(i))) } }
        XCTAssertEqual(try tree.scratch.flags(tree.root) & 0xF8, 0xE0)
        try tree.edit { try Links.setHoldsUnresolved($0, $1, false) }
        for i in (500...1000).reversed() { try tree.edit { try Links.erase($0, $1, i) } }
        XCTAssertEqual(try tree.scratch.flags(tree.root) & 0xF8, 0x00, "a stale flag of the leaf does not survive")
        try tree.edit { try Links.setHoldsUnresolved($0, $1, true) }
        try tree.edit { try Links.clear($0, $1) }
        XCTAssertEqual(try tree.scratch.flags(tree.root), 0x00)
        try tree.assertNothingLeaks()
    }

    /// file-format-1 9.6: a root leaf of an older file with more than 1000 elements is cut before it is changed.
    func testAnOversizedRootLeafIsCutFirst() throws {
        let tree = try EditedTree { try ArrayEditor.create($0, count: 2345, value: 4) }
        try tree.commit()
        try tree.edit { try Editor.append($0, $1, 5) }
        XCTAssertEqual(try leafSizes(tree), [1000, 1000, 346])
        XCTAssertEqual(try tree.memory.node(tree.root).tagged(0), 1000)
        try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
        try tree.assertNothingLeaks()
    }

    func testAnOversizedInnerRootIsCutFirst() throws {
        for isCompact in [true, false] {
            let tree = try EditedTree { arena in
                let root = try arena.makeRefs(flags: 0xC0, count: 1502)
                for child in 1...1500 {
                    arena.setElement(root, child, try ArrayEditor.create(arena, count: 2, value: Int64(child)))
                }
                if isCompact {
                    arena.setElement(root, 0, Arena.tag(2))
                } else {
                    var offsets = try UnsignedArrayEditor.create(arena)
                    for child in 1..<1500 { offsets = try UnsignedArrayEditor.append(arena, offsets, Int64(child * 2)) }
                    arena.setElement(root, 0, offsets)
                }
                arena.setElement(root, 1501, Arena.tag(3000))
                return root
            }
            try tree.commit()
            try tree.edit { try Editor.erase($0, $1, 2999) }
            try assertTreeShape(IntLeafEditor.self, tree.arena, tree.root)
            XCTAssertEqual(try elements(tree), (1...1500).flatMap { [Int64($0), Int64($0)] }.dropLast())
            XCTAssertEqual(try tree.memory.node(tree.root).count, 4)
            try tree.assertNothingLeaks()
        }
    }

    func testDamagedInnerNodesThrow() throws {
        func damaged(_ change: (Arena, Int) throws -> Void) throws -> EditedTree {
            let tree = try filled(2500)
            try tree.edit { try Editor.insert($0, $1, 5, 5) }
            try change(tree.arena, tree.root)
            return tree
        }
        let trees = [
            try damaged { $0.setElement($1, 1, 0) },
            try damaged { $0.setElement($1, 1, 77) },
            try damaged { $0.setElement($1, 0, 0) },
            try damaged { $0.setElement($1, 1, $1) },
            try damaged { $0.setElement($1, 0, try ArrayEditor.create($0, count: 9, value: 1)) },
            try damaged { $0.setElement($1, $0.header($1).count - 1, 4) },
            try damaged { $0.setElement($1, $0.header($1).count - 1, -1) },
            try damaged { $0.setElement($1, 0, Int64.max) },
        ]
        for tree in trees {
            XCTAssertThrowsError(try Editor.insert(tree.arena, tree.root, 3, 1)) { XCTAssertTrue($0 is FormatError) }
        }
    }
}
