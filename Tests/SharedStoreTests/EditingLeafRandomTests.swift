import TestSupport
import XCTest

@testable import SharedStore

/// One kind of value: how to edit it, read it back and make one up.
private struct ValueKind<L: LeafEditor, R: Leaf, Value: Equatable> {
    var set: (Arena, Int, Int, Value) throws -> Int
    var insert: (Arena, Int, Int, Value) throws -> Int
    var treeSet: (Arena, Int, Int, Value) throws -> Int
    var treeInsert: (Arena, Int, Int, Value) throws -> Int
    var read: (R, Int) throws -> Value
    var random: (inout SplitMix) -> Value
}

/// Thousands of random changes of every kind of leaf, alone and in a B+ tree, against a Swift array.
final class EditingLeafRandomTests: XCTestCase {
    private func kind<L: LeafEditor, R: Leaf>(_: L.Type, _: R.Type, random: @escaping (inout SplitMix) -> L.Element) -> ValueKind<
        L, R, L.Element
    >
    where L.Element == R.Element, L.Element: Equatable {
        ValueKind(
            set: { try L.set($0, $1, $2, $3) }, insert: { try L.insert($0, $1, $2, $3) },
            treeSet: { try BPlusTreeEditor<L>.set($0, $1, $2, $3) },
            treeInsert: { try BPlusTreeEditor<L>.insert($0, $1, $2, $3) },
            read: { try $0.value($1) }, random: random)
    }

    private func check<L: LeafEditor, R: Leaf, V: Equatable>(_ kind: ValueKind<L, R, V>, seed: UInt64, name: String = #function)
        throws
    {
        try checkLeaf(kind, seed: seed, name)
        try checkTree(kind, seed: seed &+ 1000, name)
    }

    private func checkLeaf<L: LeafEditor, R: Leaf, V: Equatable>(_ kind: ValueKind<L, R, V>, seed: UInt64, _ name: String) throws
    {
        var random = generator(seed, name)
        for _ in 0..<8 {
            let tree = try EditedTree { try L.create($0) }
            var model: [V] = []
            for step in 0..<250 {
                switch Int.random(in: 0..<14, using: &random) {
                case 0...5:
                    let value = kind.random(&random)
                    let index = Bool.random(using: &random) ? model.count : Int.random(in: 0...model.count, using: &random)
                    model.insert(value, at: index)
                    try tree.edit { try kind.insert($0, $1, index, value) }
                case 6...8:
                    guard let index = model.indices.randomElement(using: &random) else { continue }
                    model[index] = kind.random(&random)
                    try tree.edit { try kind.set($0, $1, index, model[index]) }
                case 9, 10:
                    guard let index = model.indices.randomElement(using: &random) else { continue }
                    model.remove(at: index)
                    try tree.edit { try L.erase($0, $1, index) }
                case 11:
                    try moveThereAndBack(L.self, tree, at: Int.random(in: 0...model.count, using: &random))
                case 12:
                    guard step % 4 == 0 else { continue }
                    let count = Int.random(in: 0...model.count, using: &random)
                    model.removeSubrange(count...)
                    try tree.edit { try L.truncate($0, $1, to: count) }
                default:
                    try tree.commit()
                }
                let reader = try R(tree.memory, tree.root)
                let found = try (0..<reader.count).map { try kind.read(reader, $0) }
                XCTAssertEqual(found, model, "\(name) step \(step)")
                XCTAssertEqual(try L.count(tree.arena, tree.root), model.count)
                if found != model { return }
            }
            try tree.assertNothingLeaks()
            try tree.edit { try L.truncate($0, $1, to: 0) }
            XCTAssertEqual(try R(tree.memory, tree.root).count, 0)
            try tree.assertNothingLeaks()
        }
    }

    /// Moves the tail to a new leaf, checks the parts, and moves it back.
    private func moveThereAndBack<L: LeafEditor>(_: L.Type, _ tree: EditedTree, at start: Int) throws {
        let count = try L.count(tree.arena, tree.root)
        let (source, target) = try L.moveTail(tree.arena, from: tree.root, at: start, to: try L.create(tree.arena))
        XCTAssertEqual([try L.count(tree.arena, source), try L.count(tree.arena, target)], [start, count - start])
        let (emptied, whole) = try L.moveTail(tree.arena, from: target, at: 0, to: source)
        XCTAssertEqual(try L.count(tree.arena, emptied), 0)
        try tree.arena.releaseTree(emptied)
        tree.root = whole
    }

    private func checkTree<L: LeafEditor, R: Leaf, V: Equatable>(_ kind: ValueKind<L, R, V>, seed: UInt64, _ name: String) throws
    {
        typealias Tree = BPlusTreeEditor<L>
        var random = generator(seed, name)
        let tree = try EditedTree { try Tree.create($0) }
        var model: [V] = []
        for _ in 0..<2200 {
            model.append(kind.random(&random))
            try tree.edit { try kind.treeInsert($0, $1, model.count - 1, model[model.count - 1]) }
        }
        func verify() throws {
            let reader = try BPlusTree<R>(tree.memory, tree.root)
            var found: [V] = []
            try reader.forEachLeaf { leaf, _ in for i in 0..<leaf.count { found.append(try kind.read(leaf, i)) } }
            XCTAssertTrue(found == model, name)
            try assertTreeShape(L.self, tree.arena, tree.root)
            try tree.assertNothingLeaks()
        }
        try verify()
        try tree.commit()
        for step in 0..<600 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                let index = Int.random(in: 0...model.count, using: &random)
                let value = kind.random(&random)
                model.insert(value, at: index)
                try tree.edit { try kind.treeInsert($0, $1, index, value) }
            case 3...5:
                guard let index = model.indices.randomElement(using: &random) else { continue }
                model[index] = kind.random(&random)
                try tree.edit { try kind.treeSet($0, $1, index, model[index]) }
            default:
                guard let index = model.indices.randomElement(using: &random) else { continue }
                for _ in 0..<min(5, model.count - index) {
                    model.remove(at: index)
                    try tree.edit { try Tree.erase($0, $1, index) }
                }
            }
            if step % 200 == 199 { try verify() }
        }
        try verify()
        try tree.edit { try Tree.clear($0, $1) }
        XCTAssertEqual(try Tree.count(tree.arena, tree.root), 0)
        try tree.assertNothingLeaks()
    }

    private static func integer(_ random: inout SplitMix) -> Int64 {
        let special: [Int64] = [0, 1, 3, 15, 127, 32767, 1 << 31 - 1, .max, .min, -1, -128]
        if Int.random(in: 0..<4, using: &random) == 0, let value = special.randomElement(using: &random) { return value }
        return Int64(truncatingIfNeeded: random.next()) >> Int64(Int.random(in: 0..<64, using: &random))
    }

    private static func optional<T>(_ random: inout SplitMix, _ value: (inout SplitMix) -> T) -> T? {
        Int.random(in: 0..<5, using: &random) == 0 ? nil : value(&random)
    }

    /// Mostly short, now and then of a length that needs another form of the leaf.
    private static func bytes(_ random: inout SplitMix) -> [UInt8] {
        let longest = [3, 7, 15, 15, 15, 63, 64, 65, 300][
            Int.random(in: 0..<(Int.random(in: 0..<40, using: &random) == 0 ? 9 : 5), using: &random)]
        return (0..<Int.random(in: 0...longest, using: &random)).map { _ in UInt8.random(in: 0..<128, using: &random) }
    }

    private static func decimal(_ random: inout SplitMix) -> Decimal128Bits {
        let coefficient = random.next() >> UInt64([63, 45, 41, 12, 0].randomElement(using: &random) ?? 0)
        let exponent = [0, 0, -2, 90, 91, -369, 400].randomElement(using: &random) ?? 0
        return Decimal128Bits(
            low: coefficient, high: UInt64(exponent + 6176) << 49 | (coefficient != 0 && random.next() & 1 == 0 ? 1 << 63 : 0))
    }

    private static func time(_ random: inout SplitMix) -> Timestamp {
        let seconds = integer(&random)
        let nanoseconds = Int32.random(in: 0..<1_000_000_000, using: &random)
        return Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -nanoseconds : nanoseconds)
    }

    func testIntegers() throws { try check(kind(IntLeafEditor.self, IntLeaf.self, random: Self.integer), seed: 1) }

    func testNullableIntegers() throws {
        try check(kind(NullableIntLeafEditor.self, NullableIntLeaf.self) { Self.optional(&$0, Self.integer) }, seed: 2)
        // Values that stay small meet the bound of their width all the time.
        try check(
            kind(NullableIntLeafEditor.self, NullableIntLeaf.self) {
                Self.optional(&$0) { Int64.random(in: 0..<17, using: &$0) }
            }, seed: 3)
    }

    func testBools() throws {
        try check(kind(BoolLeafEditor.self, BoolLeaf.self) { Self.optional(&$0) { Bool.random(using: &$0) } }, seed: 4)
    }

    func testFloats() throws {
        try check(
            kind(FloatLeafEditor.self, FloatLeaf.self) { Self.optional(&$0) { Float.random(in: -9...9, using: &$0) } }, seed: 5)
    }

    func testDoubles() throws {
        try check(
            kind(DoubleLeafEditor.self, DoubleLeaf.self) { Self.optional(&$0) { Double.random(in: -9...9, using: &$0) } }, seed: 6
        )
    }

    func testTimestamps() throws {
        try check(kind(TimestampLeafEditor.self, TimestampLeaf.self) { Self.optional(&$0, Self.time) }, seed: 7)
    }

    func testDecimals() throws {
        try check(kind(DecimalLeafEditor.self, DecimalLeaf.self) { Self.optional(&$0, Self.decimal) }, seed: 8)
    }

    func testObjectIds() throws {
        try check(
            kind(ObjectIdLeafEditor.self, ObjectIdLeaf.self) {
                Self.optional(&$0) { ObjectIdValue(high: $0.next(), low: UInt32(truncatingIfNeeded: $0.next())) }
            }, seed: 9)
    }

    func testUUIDs() throws {
        try check(
            kind(UUIDLeafEditor.self, UUIDLeaf.self) { Self.optional(&$0) { UUIDValue(high: $0.next(), low: $0.next()) } },
            seed: 10)
    }

    func testLinksOfAColumn() throws {
        try check(kind(LinkLeafEditor.self, LinkLeaf.self) { ObjectKey(Int64.random(in: -5...300, using: &$0)) }, seed: 11)
    }

    func testLinksOfAList() throws {
        try check(kind(KeyLeafEditor.self, KeyLeaf.self) { ObjectKey(Int64.random(in: -5...1 << 20, using: &$0)) }, seed: 12)
    }

    func testTypedLinks() throws {
        try check(
            kind(TypedLinkLeafEditor.self, TypedLinkLeaf.self) {
                Self.optional(&$0) {
                    TypedLink(TableKey(UInt32.random(in: 0..<9, using: &$0)), ObjectKey(Int64.random(in: -9...999, using: &$0)))
                }
            }, seed: 13)
    }

    func testStrings() throws {
        try check(
            ValueKind<StringLeafEditor, StringLeaf, String?>(
                set: StringLeafEditor.set, insert: StringLeafEditor.insert,
                treeSet: BPlusTreeEditor<StringLeafEditor>.set, treeInsert: BPlusTreeEditor<StringLeafEditor>.insert,
                read: { try $0.value($1) }, random: { Self.optional(&$0) { String(decoding: Self.bytes(&$0), as: UTF8.self) } }
            ), seed: 14)
    }

    func testBinaries() throws {
        typealias L = BinaryLeafEditor
        try check(
            ValueKind<L, BinaryLeaf, [UInt8]?>(
                set: { arena, ref, index, value in try withBytes(of: value) { try L.set(arena, ref, index, $0) } },
                insert: { arena, ref, index, value in try withBytes(of: value) { try L.insert(arena, ref, index, $0) } },
                treeSet: { arena, ref, index, value in
                    try withBytes(of: value) { try BPlusTreeEditor<L>.set(arena, ref, index, $0) }
                },
                treeInsert: { arena, ref, index, value in
                    try withBytes(of: value) { try BPlusTreeEditor<L>.insert(arena, ref, index, $0) }
                },
                read: { try $0.value($1) }, random: { Self.optional(&$0, Self.bytes) }
            ), seed: 15)
    }

    private static func mixed(_ random: inout SplitMix) -> Mixed {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return .null
        case 1, 2: return .int(integer(&random))
        case 3: return .bool(Bool.random(using: &random))
        case 4: return .float(Float.random(in: -2...2, using: &random))
        case 5: return .double(Double.random(in: -2...2, using: &random))
        case 6: return .string(String(decoding: bytes(&random), as: UTF8.self))
        case 7: return .binary(bytes(&random))
        case 8: return .timestamp(time(&random))
        case 9: return .decimal(decimal(&random))
        case 10:
            return Bool.random(using: &random)
                ? .objectId(ObjectIdValue(high: random.next(), low: 7)) : .uuid(UUIDValue(high: random.next(), low: 9))
        default:
            return .link(
                TableKey(UInt32.random(in: 0..<5, using: &random)), ObjectKey(Int64.random(in: -9...999, using: &random)))
        }
    }

    func testMixed() throws { try check(kind(MixedLeafEditor.self, MixedLeaf.self, random: Self.mixed), seed: 16) }

    func testRefs() throws {
        // Each row owns an integer array that holds its number; erasing frees it, moving does not.
        typealias L = RefLeafEditor
        let kind = ValueKind<L, RefLeaf, Int64>(
            set: { arena, ref, index, value in
                let ref = try arena.writableRefs(ref)
                return try L.set(arena, ref, index, try ArrayEditor.set(arena, try arena.child(ref, index), 0, value))
            },
            insert: { try L.insert($0, $1, $2, try ArrayEditor.create($0, count: 1, value: $3)) },
            treeSet: { arena, root, index, value in
                try BPlusTreeEditor<L>.editLeaf(arena, root, index) { leaf, local in
                    let leaf = try arena.writableRefs(leaf)
                    return try L.set(arena, leaf, local, try ArrayEditor.set(arena, try arena.child(leaf, local), 0, value))
                }
            },
            treeInsert: { try BPlusTreeEditor<L>.insert($0, $1, $2, try ArrayEditor.create($0, count: 1, value: $3)) },
            read: { leaf, index in
                let ref = try leaf.value(index)
                return Node(ref: ref, header: leaf.node.payload - 8 - leaf.node.ref + ref).unchecked(0)
            },
            random: Self.integer)
        try check(kind, seed: 17)
    }
}

/// Mixed leaves whose values are nested collections.
final class EditingNestedMixedTests: XCTestCase {
    private typealias Tree = BPlusTreeEditor<MixedLeafEditor>

    func testNestedListsMoveWithTheirLeavesAndKeepTheirKeys() throws {
        var random = generator(21)
        let tree = try EditedTree { try Tree.create($0) }
        // The model: nil for an integer, else the content of the nested list; and its key.
        var model: [(list: [Int64]?, key: Int64)] = []
        func insert(at index: Int) throws {
            if Int.random(in: 0..<3, using: &random) == 0 {
                try tree.edit { try Tree.insertCollection($0, $1, index, .list) }
                let content = (0..<Int.random(in: 0...4, using: &random)).map { _ in Int64.random(in: 0..<1 << 40, using: &random)
                }
                if !content.isEmpty {
                    var (root, nested) = try Tree.nestedRef(tree.arena, tree.root, index)
                    XCTAssertEqual(nested, 0, "an empty list has no tree")
                    nested = try Tree.create(tree.arena)
                    for value in content { nested = try Tree.append(tree.arena, nested, .int(value)) }
                    root = try Tree.setNestedRef(tree.arena, root, index, nested)
                    tree.root = root
                }
                let (leaf, start) = try BPlusTree<MixedLeaf>(tree.memory, tree.root).leaf(containing: index)
                let key = try leaf.key(index - start)
                XCTAssertNotEqual(key, 0)
                model.insert((content, key), at: index)
            } else {
                try tree.edit { try Tree.insert($0, $1, index, .int(Int64(index) << 33)) }
                model.insert((nil, 0), at: index)
            }
        }
        func verify() throws {
            try assertTreeShape(MixedLeafEditor.self, tree.arena, tree.root)
            try tree.assertNothingLeaks()
            let reader = try BPlusTree<MixedLeaf>(tree.memory, tree.root)
            XCTAssertEqual(reader.count, model.count)
            var keys: Set<Int64> = []
            for (index, expected) in model.enumerated() {
                let (leaf, start) = try reader.leaf(containing: index)
                if let content = expected.list {
                    XCTAssertEqual(try leaf.value(index - start), .list)
                    let nested = try BPlusTree<MixedLeaf>(tree.memory, try leaf.nestedRef(index - start))
                    XCTAssertEqual(try (0..<nested.count).map { try nested.value(at: $0) }, content.map(Mixed.int))
                    XCTAssertEqual(try leaf.key(index - start), expected.key)
                    XCTAssertTrue(keys.insert(expected.key).inserted, "keys are unique in the tree")
                } else {
                    XCTAssertEqual(try leaf.key(index - start), 0)
                }
                if let array = leaf.keys { XCTAssertEqual(array.count, leaf.count, "keys at full length") }
            }
        }
        for _ in 0..<1600 { try insert(at: Int.random(in: 0...model.count, using: &random)) }
        try verify()
        try tree.commit()
        for step in 0..<900 {
            let index = Int.random(in: 0..<model.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: try insert(at: index)
            case 1:
                // Putting a list where one is keeps it; elsewhere it is new and empty.
                try tree.edit { try Tree.setCollection($0, $1, index, .list) }
                if model[index].list == nil {
                    let (leaf, start) = try BPlusTree<MixedLeaf>(tree.memory, tree.root).leaf(containing: index)
                    model[index] = ([], try leaf.key(index - start))
                }
            case 2:
                try tree.edit { try Tree.set($0, $1, index, .string("text \(step)")) }
                model[index] = (nil, 0)
            default:
                try tree.edit { try Tree.erase($0, $1, index) }
                model.remove(at: index)
            }
            if step % 300 == 299 { try verify() }
        }
        try tree.edit { try Tree.clear($0, $1) }
        try tree.assertNothingLeaks()
    }

    func testALeafOf4ElementsIsExtendedAndShortKeysAreFilled() throws {
        // As formats 21 to 23 wrote it; then with keys shorter than the values, as the reference may leave them.
        let tree = try EditedTree { arena in
            let ref = try arena.makeRefs(count: 4)
            arena.setElement(ref, 0, try ArrayEditor.create(arena, count: 5, value: 257))
            return ref
        }
        try tree.commit()
        try tree.edit { try MixedLeafEditor.setCollection($0, $1, 1, .dictionary, key: 9) }
        XCTAssertEqual(try tree.memory.node(tree.root).count, 6)
        let keys = try tree.arena.child(tree.root, 5)
        tree.arena.setElement(tree.root, 5, try ArrayEditor.truncate(tree.arena, keys, to: 2))
        try tree.edit { try MixedLeafEditor.insert($0, $1, 4, .null) }
        try tree.edit { try MixedLeafEditor.erase($0, $1, 0) }
        let leaf = try MixedLeaf(tree.memory, tree.root)
        XCTAssertEqual(try (0..<5).map { try leaf.key($0) }, [9, 0, 0, 0, 0])
        XCTAssertEqual(leaf.keys?.count, 5)
        XCTAssertEqual(try leaf.value(0), .dictionary)
        try tree.assertNothingLeaks()
    }

    func testDamagedPayloadsThrow() throws {
        for (slot, composite) in [
            (1, 99 << 8 | 0x21), (2, 5 << 8 | 0x49), (3, 7 << 8 | 0x63), (4, 3 << 8 | 0x94), (1, -1 << 8 | 0x21), (0, 0xF8),
        ] as [(Int, Int64)] {
            let tree = try EditedTree { arena in
                var ref = try MixedLeafEditor.create(arena)
                ref = try MixedLeafEditor.insert(arena, ref, 0, .double(1))
                ref = try MixedLeafEditor.insert(arena, ref, 1, .timestamp(Timestamp(seconds: 1, nanoseconds: 1)))
                ref = try MixedLeafEditor.insert(arena, ref, 2, .string("abc"))
                return try MixedLeafEditor.insertCollection(arena, ref, 3, .list, key: 4)
            }
            let composites = try tree.arena.child(tree.root, 0)
            tree.arena.setElement(tree.root, 0, try ArrayEditor.set(tree.arena, composites, 0, composite))
            XCTAssertThrowsError(try MixedLeafEditor.set(tree.arena, tree.root, 0, .null), "\(slot)") {
                XCTAssertTrue($0 is FormatError)
            }
            XCTAssertThrowsError(try MixedLeafEditor.erase(tree.arena, tree.root, 0))
        }
    }
}
