import TestSupport
import XCTest

@testable import SharedStore

/// Edits of damaged files end with an error or some result, never with a trap, an endless loop or a changed file.
final class EditingDamageTests: XCTestCase {
    /// The committed file of a tree, to be damaged again and again.
    private struct Image {
        var bytes: [UInt8]
        var root: Int
        /// Positions of all nodes.
        var nodes: [Int]

        init(_ root: Int, in scratch: ScratchArena) throws {
            let (committed, newRoot) = try scratch.committed(root)
            let extents = try ReachableNodes(committed.memory, committed.arena, [newRoot]).fileExtents
            bytes = [UInt8](repeating: 0, count: 24)
            for (position, length) in extents.sorted(by: { $0.key < $1.key }) {
                precondition(position == bytes.count && length >= 8)
                bytes += try committed.nodeBytes(position)
            }
            self.root = newRoot
            nodes = extents.keys.sorted()
        }

        /// Changes a few bytes, mostly of headers and of small nodes, where they matter.
        func damaged(_ random: inout SplitMix) -> [UInt8] {
            var bytes = bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                guard let node = nodes.randomElement(using: &random) else { continue }
                let offset =
                    Bool.random(using: &random) ? Int.random(in: 4...7, using: &random) : Int.random(in: 8...40, using: &random)
                guard node + offset < bytes.count else { continue }
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[node + offset] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[node + offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: bytes[node + offset] = [0, 0xFF, 0x7F, 0x80].randomElement(using: &random) ?? 0
                default:
                    // A ref of another node, aligned: shared children and cycles.
                    let other = nodes.randomElement(using: &random) ?? 0
                    let place = node + 8 + Int.random(in: 0..<4, using: &random) * 2
                    if place + 1 < bytes.count {
                        bytes[place] = UInt8(other & 0xFF)
                        bytes[place + 1] = UInt8(other >> 8 & 0xFF)
                    }
                }
            }
            return bytes
        }
    }

    /// Runs an edit that may throw the errors of damage, and says whether it succeeded.
    private func attempt(_ edit: () throws -> Void, file: StaticString = #filePath, line: UInt = #line) -> Bool {
        do {
            try edit()
            return true
        } catch is FormatError {
            return false
        } catch is LimitError {
            return false
        } catch {
            XCTFail("\(error)", file: file, line: line)
            return false
        }
    }

    private func sweep(
        _ image: Image, seed: UInt64, rounds: Int = 400, name: String = #function,
        _ edit: (Arena, inout Int, inout SplitMix) throws -> Void
    ) throws {
        var random = generator(seed, name)
        var failures = 0
        for _ in 0..<rounds {
            let file = image.damaged(&random)
            let scratch = try ScratchArena(file: file, arenaByteCount: 1 << 27)
            var root = image.root
            for _ in 0..<12 {
                if !attempt({ try edit(scratch.arena, &root, &random) }) {
                    failures += 1
                    break
                }
            }
            let after = try [UInt8](
                UnsafeRawBufferPointer(start: scratch.memory.bytes(at: 24, length: file.count - 24), count: file.count - 24))
            XCTAssertTrue(after == Array(file.dropFirst(24)), "the file is never written to")
        }
        XCTAssertGreaterThan(failures, rounds / 20, "damage is noticed")
        XCTAssertLessThan(failures, rounds, "not every damage matters")
    }

    private func sweepTree<L: LeafEditor>(
        _: L.Type, seed: UInt64, count: Int = 2300, name: String = #function, _ value: @escaping (inout SplitMix) -> L.Element
    ) throws {
        typealias Tree = BPlusTreeEditor<L>
        var random = SplitMix(seed: seed)
        let scratch = try ScratchArena()
        var root = try Tree.create(scratch.arena)
        for index in 0..<count { root = try Tree.insert(scratch.arena, root, index, value(&random)) }
        root = try Tree.insert(scratch.arena, root, 1200, value(&random))
        try sweep(try Image(root, in: scratch), seed: seed, name: name) { arena, root, random in
            let count = try Tree.count(arena, root)
            guard count > 0 else { return }
            // A damaged count may be anything; a caller compares with it as it is.
            let index = Int.random(in: 0..<count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: root = try Tree.insert(arena, root, index, value(&random))
            case 1: root = try Tree.append(arena, root, value(&random))
            case 2: root = try Tree.set(arena, root, index, value(&random))
            case 3: for _ in 0..<30 where try Tree.count(arena, root) > index { root = try Tree.erase(arena, root, index) }
            case 4: if Int.random(in: 0..<8, using: &random) == 0 { root = try Tree.clear(arena, root) }
            default: root = try Tree.erase(arena, root, index)
            }
        }
    }

    func testTreesOfIntegers() throws { try sweepTree(IntLeafEditor.self, seed: 101) { Int64.random(in: -9...999, using: &$0) } }

    func testTreesOfNullableIntegers() throws {
        try sweepTree(NullableIntLeafEditor.self, seed: 102) {
            $0.next() & 3 == 0 ? nil : Int64(truncatingIfNeeded: $0.next() >> 40)
        }
    }

    func testTreesOfTimestamps() throws {
        try sweepTree(TimestampLeafEditor.self, seed: 103) {
            $0.next() & 3 == 0 ? nil : Timestamp(seconds: Int64(truncatingIfNeeded: $0.next() >> 30), nanoseconds: 5)
        }
    }

    func testTreesOfObjectIds() throws {
        try sweepTree(ObjectIdLeafEditor.self, seed: 104) { $0.next() & 3 == 0 ? nil : ObjectIdValue(high: $0.next(), low: 1) }
    }

    func testTreesOfDecimals() throws {
        try sweepTree(DecimalLeafEditor.self, seed: 105) {
            $0.next() & 3 == 0 ? nil : Decimal128Bits(low: $0.next() >> 30, high: 6176 << 49)
        }
    }

    private static let texts: [[UInt8]] = [
        [], [65], Array(repeating: 66, count: 15), Array(repeating: 67, count: 40), Array(repeating: 68, count: 70),
    ]

    /// All values up to the given one of `texts`, so that the leaf has the form that one needs.
    private func sweepStrings(upTo longest: Int, seed: UInt64, name: String = #function) throws {
        let buffers = Self.texts.map { bytes -> UnsafeRawBufferPointer in
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            copy.copyBytes(from: bytes)
            return UnsafeRawBufferPointer(copy)
        }
        defer { buffers.forEach { $0.deallocate() } }
        try sweepTree(StringLeafEditor.self, seed: seed, count: 1600, name: name) {
            $0.next() & 3 == 0 ? nil : buffers[Int.random(in: 0...longest, using: &$0)]
        }
    }

    func testTreesOfShortStrings() throws { try sweepStrings(upTo: 2, seed: 106) }
    func testTreesOfSmallBlobs() throws { try sweepStrings(upTo: 3, seed: 107) }
    func testTreesOfBigBlobs() throws { try sweepStrings(upTo: 4, seed: 108) }

    func testTreesOfMixed() throws {
        try sweepTree(MixedLeafEditor.self, seed: 109, count: 1300) {
            switch $0.next() & 7 {
            case 0: .null
            case 1: .int(Int64(truncatingIfNeeded: $0.next()))
            case 2: .string("text \($0.next() & 0xFFFF)")
            case 3: .timestamp(Timestamp(seconds: 4, nanoseconds: 5))
            case 4: .double(1.5)
            case 5: .uuid(UUIDValue(high: $0.next(), low: 0))
            case 6: .link(TableKey(1), ObjectKey(2))
            default: .bool(true)
            }
        }
    }

    func testClusterTreesWithColumnsOfEveryKind() throws {
        let kinds: [ColumnLeafKind] = [
            .int, .nullableInt, .bool, .float, .double, .timestamp, .decimal, .objectId, .uuid, .string, .binary, .link, .mixed,
            .collection, .backlink,
        ]
        let columns = kinds.enumerated().map { ClusterColumn(leafIndex: $0.offset, kind: $0.element, isNullable: true) }
        let scratch = try ScratchArena()
        let editor = ClusterTreeEditor(scratch.arena, columns: columns)
        var root = try editor.create()
        for key in 0..<700 { _ = try editor.insert(&root, ObjectKey(Int64(key) * (key < 300 ? 1 : 2))) }
        try sweep(try Image(root, in: scratch), seed: 110, rounds: 600) { arena, root, random in
            let editor = ClusterTreeEditor(arena, columns: columns)
            let key = ObjectKey(Int64.random(in: 0..<1500, using: &random))
            switch Int.random(in: 0..<9, using: &random) {
            case 0, 1, 2: _ = try editor.insert(&root, key)
            case 3: for step in 0..<90 as Range<Int64> { _ = try editor.erase(&root, ObjectKey(key.rawValue + step)) }
            case 4: _ = try editor.erase(&root, key)
            case 5: if Int.random(in: 0..<8, using: &random) == 0 { try editor.clear(&root) }
            case 6:
                if Int.random(in: 0..<8, using: &random) == 0 { try editor.removeColumn(&root, leafIndex: 3) }
            case 7:
                if let place = try editor.makeRowWritable(&root, key) {
                    let leaf = try editor.columnLeaf(place, 14)
                    editor.setColumnLeaf(place, 14, try BacklinkLeafEditor.add(arena, leaf, place.row, key))
                }
            default:
                if let place = try editor.makeRowWritable(&root, key) {
                    editor.setColumnLeaf(place, 0, try IntLeafEditor.set(arena, try editor.columnLeaf(place, 0), place.row, 77))
                    editor.setColumnLeaf(
                        place, 9, try StringLeafEditor.set(arena, try editor.columnLeaf(place, 9), place.row, "a longer string"))
                    editor.setColumnLeaf(
                        place, 12, try MixedLeafEditor.set(arena, try editor.columnLeaf(place, 12), place.row, .string("mixed")))
                }
            }
        }
    }
}
