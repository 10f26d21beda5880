import TestSupport
import XCTest

@testable import SharedStore

/// The worked examples of file-format-1 sections 5 to 8, byte for byte.
final class EditingLeafExamplesTests: XCTestCase {
    private func leaf<L: LeafEditor>(_: L.Type, _ values: [L.Element]) throws -> (ScratchArena, Int) {
        let scratch = try ScratchArena()
        var ref = try L.create(scratch.arena)
        for value in values { ref = try L.append(scratch.arena, ref, value) }
        return (scratch, ref)
    }

    /// Header byte 4, count and payload (without unused bits of the last byte) of a leaf that is one node.
    private func assertNode(
        _ pair: (ScratchArena, Int), _ flags: UInt8, count: Int, _ payload: [UInt8], file: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        let (scratch, ref) = pair
        XCTAssertEqual(String(try scratch.flags(ref), radix: 16), String(flags, radix: 16), "flags", file: file, line: line)
        XCTAssertEqual(try scratch.memory.node(ref).count, count, "count", file: file, line: line)
        var bytes = try scratch.payload(ref)
        if flags & 0x18 == 0, 1...3 ~= flags & 7, let last = bytes.popLast() {
            let bits = count * ((1 << Int(flags & 7)) >> 1) % 8
            bytes.append(bits == 0 ? last : last & UInt8((1 << bits) - 1))
        }
        XCTAssertEqual(bytes, payload, file: file, line: line)
    }

    private func hex(_ text: String) -> [UInt8] {
        let digits = text.filter(\.isHexDigit)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) }
    }

    func testNullableIntegersWidenWithTheirSentinel() throws {
        typealias L = NullableIntLeafEditor
        try assertNode(try leaf(L.self, []), 0x00, count: 1, [])
        try assertNode(try leaf(L.self, [nil]), 0x00, count: 2, [])
        try assertNode(try leaf(L.self, [nil, 0]), 0x01, count: 3, hex("03"))
        try assertNode(try leaf(L.self, [nil, 0, 1]), 0x02, count: 4, hex("4F"))
        try assertNode(try leaf(L.self, [nil, 0, 1, 3]), 0x03, count: 5, hex("FF 10 03"))
        try assertNode(try leaf(L.self, [nil, 0, 1, 3, nil, 7, 15]), 0x04, count: 8, hex("7F 7F 00 01 03 7F 07 0F"))
        try assertNode(try leaf(L.self, [nil, 127]), 0x05, count: 3, hex("FF7F FF7F 7F00"))
        try assertNode(try leaf(L.self, [nil, 32767]), 0x06, count: 3, hex("FFFFFF7F FFFFFF7F FF7F0000"))
        try assertNode(try leaf(L.self, [7, -1]), 0x04, count: 3, hex("7F 07 FF"))
        let (scratch, ref) = try leaf(L.self, [nil, 1 << 31 - 1])
        XCTAssertEqual(try scratch.flags(ref), 0x07)
        XCTAssertEqual(try (0..<2).map { try NullableIntLeaf(scratch.memory, ref).value($0) }, [nil, 1 << 31 - 1])
    }

    func testStoringTheSentinelOf64BitsChoosesAnother() throws {
        var (scratch, ref) = try leaf(NullableIntLeafEditor.self, [nil, 1 << 40, nil])
        let sentinel = try scratch.memory.node(ref).unchecked(0)
        ref = try NullableIntLeafEditor.append(scratch.arena, ref, sentinel)
        let reader = try NullableIntLeaf(scratch.memory, ref)
        XCTAssertEqual(try (0..<4).map { try reader.value($0) }, [nil, 1 << 40, nil, sentinel])
        XCTAssertNotEqual(try scratch.memory.node(ref).unchecked(0), sentinel)
        ref = try NullableIntLeafEditor.truncate(scratch.arena, ref, to: 0)
        try assertNode((scratch, ref), 0x00, count: 1, [])
    }

    /// A foreign leaf of 8 bits whose sentinel is not 127: its data may contain 127.
    func testAForeignSentinelBelow64BitsIsTolerated() throws {
        let scratch = try ScratchArena()
        var ref = try ArrayEditor.create(scratch.arena, count: 1, value: 20)
        for value in [127, 20, 5] { ref = try ArrayEditor.append(scratch.arena, ref, Int64(value)) }
        ref = try NullableIntLeafEditor.append(scratch.arena, ref, 20)
        let reader = try NullableIntLeaf(scratch.memory, ref)
        XCTAssertEqual(try (0..<4).map { try reader.value($0) }, [127, nil, 5, 20])
    }

    func testBools() throws {
        try assertNode(try leaf(BoolLeafEditor.self, [false, true, nil, true]), 0x02, count: 4, hex("74"))
    }

    func testFloatsAndDoubles() throws {
        try assertNode(try leaf(FloatLeafEditor.self, []), 0x0B, count: 0, [])
        try assertNode(try leaf(DoubleLeafEditor.self, []), 0x0C, count: 0, [])
        try assertNode(try leaf(FloatLeafEditor.self, [nil, 1.5]), 0x0B, count: 2, hex("AA00C07F 0000C03F"))
        try assertNode(try leaf(DoubleLeafEditor.self, [nil]), 0x0C, count: 1, hex("AA0000000000F87F"))
        // A NaN with the bits of null is a value and stays one.
        let (scratch, ref) = try leaf(DoubleLeafEditor.self, [Double(bitPattern: DoubleLeaf.nullPattern)])
        XCTAssertEqual(try DoubleLeaf(scratch.memory, ref).value(0)?.isNaN, true)
    }

    func testTimestamps() throws {
        let values = [
            Timestamp(seconds: 1, nanoseconds: 2), nil, Timestamp(seconds: -1, nanoseconds: -500),
            Timestamp(seconds: 1_700_000_000, nanoseconds: 999_999_999),
        ]
        let (scratch, ref) = try leaf(TimestampLeafEditor.self, values)
        let node = try scratch.memory.node(ref)
        XCTAssertEqual([node.count, Int(node.flags & 0xF8)], [2, 0x40])
        try assertNode((scratch, try node.requiredRef(0)), 0x06, count: 5, hex("FFFFFF7F 01000000 FFFFFF7F FFFFFFFF 00F15365"))
        try assertNode((scratch, try node.requiredRef(1)), 0x06, count: 4, hex("02000000 00000000 0CFEFFFF FFC99A3B"))
    }

    private func decimal(_ coefficient: UInt64, _ exponent: Int, negative: Bool = false) -> Decimal128Bits {
        Decimal128Bits(low: coefficient, high: UInt64(exponent + 6176) << 49 | (negative ? 1 << 63 : 0))
    }

    func testDecimals() throws {
        typealias L = DecimalLeafEditor
        try assertNode(try leaf(L.self, []), 0x08, count: 0, [])
        try assertNode(try leaf(L.self, [nil, nil]), 0x08, count: 2, [])
        try assertNode(try leaf(L.self, [nil, nil, decimal(1, 0)]), 0x0B, count: 3, hex("AA00007C AA00007C 01008032"))
        let (scratch, wide) = try leaf(L.self, [nil, nil, decimal(1, 0), decimal(1 << 40, 0)])
        XCTAssertEqual(try scratch.flags(wide), 0x0C)
        XCTAssertEqual(Array(try scratch.payload(wide).suffix(8)), hex("00000000 0001C031"))
        let zero = decimal(0, 0)
        try assertNode(try leaf(L.self, [zero, zero]), 0x28, count: 2, [])
        try assertNode(try leaf(L.self, [zero, zero, nil]), 0x2B, count: 3, hex("00008032 00008032 AA00007C"))
        try assertNode(try leaf(L.self, [decimal(15, -1, negative: true)]), 0x0B, count: 1, hex("0F0000B2"))
        try assertNode(try leaf(L.self, [nil, decimal(0, -2)]), 0x0B, count: 2, hex("AA00007C 00008031"))
        try assertNode(try leaf(L.self, [decimal(0, 1)]), 0x2B, count: 1, hex("00000033"))
        let widths: [(Decimal128Bits, UInt8)] = [
            (decimal(8_388_607, 0), 3), (decimal(8_388_608, 0), 4), (decimal(1, 90), 3), (decimal(1, 91), 4),
            (decimal(9_007_199_254_740_991, 0), 4), (decimal(9_007_199_254_740_992, 0), 5), (decimal(1, 369), 4),
            (decimal(1, 370), 5),
            (.infinity, 5), (.nan, 5),
        ]
        for (value, code) in widths {
            let (scratch, ref) = try leaf(L.self, [value])
            XCTAssertEqual(try scratch.flags(ref) & 7, code, "\(value)")
            XCTAssertEqual(try DecimalLeaf(scratch.memory, ref).value(0), value)
        }
        try assertNode(try leaf(L.self, [.infinity]), 0x0D, count: 1, hex("0000000000000000 0000000000000078"))
    }

    func testTruncatingDecimalsKeepsTheContextFlag() throws {
        var (scratch, ref) = try leaf(DecimalLeafEditor.self, [decimal(0, 0), nil])
        ref = try DecimalLeafEditor.truncate(scratch.arena, ref, to: 0)
        XCTAssertEqual(try scratch.flags(ref), 0x28)
        ref = try DecimalLeafEditor.append(scratch.arena, ref, nil)
        try assertNode((scratch, ref), 0x2B, count: 1, hex("AA00007C"))
    }

    func testObjectIdsAndUUIDs() throws {
        let id = ObjectIdValue("000102030405060708090a0b")
        try assertNode(try leaf(ObjectIdLeafEditor.self, []), 0x08, count: 0, [])
        try assertNode(
            try leaf(ObjectIdLeafEditor.self, [id, nil]), 0x09, count: 25,
            hex("02 000102030405060708090A0B DEADDEADDEADDEADDEADDEAD"))
        let (scratch, ref) = try leaf(ObjectIdLeafEditor.self, Array(repeating: id, count: 9))
        XCTAssertEqual(try scratch.memory.node(ref).count, 110)
        try assertNode(
            try leaf(UUIDLeafEditor.self, [UUIDValue("00010203-0405-0607-0809-0a0b0c0d0e0f"), nil]), 0x09, count: 33,
            hex("02 000102030405060708090A0B0C0D0E0F DEADBEEFDEADBEEFDEADBEEFDEADBEEF"))
        let emptied = try ObjectIdLeafEditor.erase(scratch.arena, try ObjectIdLeafEditor.truncate(scratch.arena, ref, to: 1), 0)
        XCTAssertEqual(try scratch.nodeBytes(emptied), hex("41414141 09000000"))
        XCTAssertEqual(
            try scratch.nodeBytes(try ObjectIdLeafEditor.truncate(scratch.arena, emptied, to: 0)), hex("41414141 08000000"))
    }

    private func strings(_ values: [String?]) throws -> (ScratchArena, Int) {
        let scratch = try ScratchArena()
        var ref = try StringLeafEditor.create(scratch.arena)
        for (index, value) in values.enumerated() { ref = try StringLeafEditor.insert(scratch.arena, ref, index, value) }
        return (scratch, ref)
    }

    func testShortStrings() throws {
        try assertNode(try strings([nil, nil]), 0x08, count: 2, [])
        try assertNode(try strings([nil, nil, ""]), 0x09, count: 3, hex("01 01 00"))
        try assertNode(try strings([nil, nil, "", "a"]), 0x0A, count: 4, hex("0002 0002 0001 6100"))
        try assertNode(
            try strings([nil, nil, "", "a", "abc"]), 0x0B, count: 5, hex("00000004 00000004 00000003 61000002 61626300"))
        let (scratch, ref) = try strings(["123456789012345"])
        XCTAssertEqual(try scratch.flags(ref), 0x0D)
        XCTAssertEqual(try scratch.payload(ref).last, 0)
        XCTAssertEqual(try scratch.flags(try StringLeafEditor.truncate(scratch.arena, ref, to: 0)), 0x08)
    }

    func testAStringOf16BytesMakesSmallBlobs() throws {
        let (scratch, ref) = try strings([nil, nil, "", "a", "abc", "12345678", "123456789012345", "1234567890123456"])
        let node = try scratch.memory.node(ref)
        XCTAssertEqual([node.count, Int(node.flags & 0xF8)], [3, 0x40])
        try assertNode((scratch, try node.requiredRef(0)), 0x04, count: 8, hex("01 02 03 05 09 12 22 33"))
        let blob = try node.requiredRef(1)
        XCTAssertEqual(try scratch.flags(blob), 0x11)
        XCTAssertEqual(try scratch.payload(blob), Array("\0\0\0a\0abc\012345678\0123456789012345\01234567890123456\0".utf8))
        try assertNode((scratch, try node.requiredRef(2)), 0x01, count: 8, hex("03"))
    }

    func testAStringOf64BytesMakesBigBlobs() throws {
        let long = String(repeating: "x", count: 64)
        let (scratch, ref) = try strings([nil, "", long])
        let node = try scratch.memory.node(ref)
        XCTAssertEqual([node.count, Int(node.flags & 0xF8)], [3, 0x60])
        XCTAssertEqual(node.unchecked(0), 0)
        XCTAssertEqual(try scratch.nodeBytes(try node.requiredRef(1)).prefix(9), hex("41414141 11000001 00")[...])
        XCTAssertEqual(try scratch.payload(try node.requiredRef(2)), Array(long.utf8) + [0])
        let (small, smallRef) = try strings([String(repeating: "x", count: 63)])
        XCTAssertEqual(try small.flags(smallRef) & 0xF8, 0x40)
        let empty = try StringLeafEditor.truncate(scratch.arena, ref, to: 0)
        XCTAssertEqual(try scratch.scratchBytes(empty), hex("41414141 60000000"), "clearing keeps the form")
    }

    func testBinaries() throws {
        func binaries(_ values: [[UInt8]?]) throws -> (ScratchArena, Int) {
            let scratch = try ScratchArena()
            var ref = try BinaryLeafEditor.create(scratch.arena)
            for (index, value) in values.enumerated() {
                ref = try withBytes(of: value) { try BinaryLeafEditor.insert(scratch.arena, ref, index, $0) }
            }
            return (scratch, ref)
        }
        let (empty, emptyRef) = try binaries([])
        let parts = try (0..<3).map { try empty.nodeBytes(try empty.memory.node(emptyRef).requiredRef($0)) }
        XCTAssertEqual(parts, [hex("41414141 00000000"), hex("41414141 10000000"), hex("41414141 01000000")])
        let (scratch, ref) = try binaries([nil, [], [1, 2], Array(repeating: 7, count: 64)])
        XCTAssertEqual(try scratch.flags(ref) & 0xF8, 0x40)
        try assertNode((scratch, try scratch.memory.node(ref).requiredRef(0)), 0x04, count: 4, hex("00 00 02 42"))
        let (big, bigRef) = try binaries([nil, [], Array(repeating: 7, count: 65)])
        let node = try big.memory.node(bigRef)
        XCTAssertEqual([node.count, Int(node.flags & 0xF8), Int(node.unchecked(0))], [3, 0x60, 0])
        XCTAssertEqual(try big.memory.node(try node.requiredRef(1)).count, 0, "empty is not null")
    }

    func testAChangesetOfMoreThanOneBlobIsSplit() throws {
        let scratch = try ScratchArena()
        let bytes = [UInt8](unsafeUninitializedCapacity: 2 * 0xFFFFF0 + 5) { buffer, count in
            for i in stride(from: 0, to: 2 * 0xFFFFF0 + 5, by: 4099) { buffer[i] = UInt8(truncatingIfNeeded: i >> 4) }
            count = 2 * 0xFFFFF0 + 5
        }
        var ref = try ChangesetLeafEditor.create(scratch.arena)
        ref = try withBytes(of: [1, 2, 3]) { try ChangesetLeafEditor.insert(scratch.arena, ref, 0, $0) }
        ref = try withBytes(of: bytes) { try ChangesetLeafEditor.insert(scratch.arena, ref, 1, $0) }
        let node = try scratch.memory.node(ref)
        let split = try scratch.memory.node(try node.requiredRef(1))
        XCTAssertEqual([split.count, Int(split.flags & 0xF8)], [3, 0x60])
        XCTAssertEqual(try (0..<3).map { try scratch.memory.node(try split.requiredRef($0)).count }, [0xFFFFF0, 0xFFFFF0, 5])
        XCTAssertTrue(try BinaryLeaf(scratch.memory, ref).value(1) == bytes)
        // Moved as it is, and freed.
        let (emptied, moved) = try ChangesetLeafEditor.moveTail(
            scratch.arena, from: ref, at: 0, to: try ChangesetLeafEditor.create(scratch.arena))
        try scratch.arena.releaseTree(emptied)
        XCTAssertTrue(try BinaryLeaf(scratch.memory, moved).value(1) == bytes)
        let rest = try ChangesetLeafEditor.set(scratch.arena, moved, 1, nil)
        XCTAssertLessThan(scratch.arena.liveBytes, 2000)
        try scratch.arena.releaseTree(rest)
        XCTAssertEqual(scratch.arena.liveBytes, 0)
    }

    func testValuesThatAreTooLongAreRefusedBeforeAnythingChanges() throws {
        var (scratch, ref) = try strings(["a"])
        let before = try scratch.nodeBytes(ref)
        let long = String(repeating: "x", count: 0xFFFFF0)
        XCTAssertThrowsError(try StringLeafEditor.set(scratch.arena, ref, 0, long)) {
            XCTAssertEqual($0 as? LimitError, .valueTooLarge(byteCount: 0xFFFFF0, limit: 0xFFFFEF))
        }
        XCTAssertThrowsError(
            try withBytes(of: [UInt8](repeating: 1, count: 0xFFFFF1)) {
                try BinaryLeafEditor.insert(scratch.arena, try BinaryLeafEditor.create(scratch.arena), 0, $0)
            })
        XCTAssertEqual(try scratch.nodeBytes(ref), before)
        ref = try StringLeafEditor.set(scratch.arena, ref, 0, String(long.dropLast()))
        XCTAssertEqual(try StringLeaf(scratch.memory, ref).bytes(0)?.count, 0xFFFFEF)
        let names = try NameArrayEditor.create(scratch.arena)
        XCTAssertThrowsError(try NameArrayEditor.append(scratch.arena, names, String(repeating: "n", count: 64)))
    }

    func testNames() throws {
        let scratch = try ScratchArena()
        var ref = try NameArrayEditor.create(scratch.arena)
        ref = try NameArrayEditor.append(scratch.arena, ref, "")
        try assertNode((scratch, ref), 0x08, count: 1, [])
        ref = try NameArrayEditor.append(scratch.arena, ref, "metadata")
        ref = try NameArrayEditor.append(scratch.arena, ref, "")
        XCTAssertEqual(try scratch.flags(ref), 0x0D)
        XCTAssertEqual(Array(try scratch.payload(ref).suffix(16)), Array(repeating: 0, count: 15) + [15])
        ref = try NameArrayEditor.set(scratch.arena, ref, 0, String(repeating: "n", count: 63))
        XCTAssertEqual(try scratch.flags(ref), 0x0F)
        ref = try NameArrayEditor.erase(scratch.arena, ref, 1)
        let reader = try StringLeaf(scratch.memory, ref)
        XCTAssertEqual(try (0..<2).map { try reader.value($0) ?? "" }, [String(repeating: "n", count: 63), ""])
    }

    func testLinks() throws {
        try assertNode(
            try leaf(LinkLeafEditor.self, [.null, ObjectKey(0), ObjectKey(5), ObjectKey(-2)]), 0x04, count: 4, hex("00 01 06 FF"))
        try assertNode(
            try leaf(KeyLeafEditor.self, [ObjectKey(0), ObjectKey(5), ObjectKey(-2)]), 0x04, count: 3, hex("00 05 FE"))
        let typed = [nil, TypedLink(TableKey(0), ObjectKey(0)), TypedLink(TableKey(7), ObjectKey(9))]
        try assertNode(try leaf(TypedLinkLeafEditor.self, typed), 0x03, count: 6, hex("00 11 A8"))
    }

    func testMixed() throws {
        typealias L = MixedLeafEditor
        let values: [Mixed] = [
            .null, .int(5), .int(-1), .bool(true), .float(1.5), .double(1.5), .string("hi"), .binary(Array("xy".utf8)),
            .timestamp(Timestamp(seconds: 3, nanoseconds: 4)),
            .objectId(try XCTUnwrap(ObjectIdValue("000102030405060708090a0b"))),
            .decimal(decimal(1, 0)), .uuid(try XCTUnwrap(UUIDValue("00010203-0405-0607-0809-0a0b0c0d0e0f"))),
            .link(TableKey(7), ObjectKey(9)), .int(1 << 40),
        ]
        var (scratch, ref) = try leaf(L.self, values)
        ref = try L.insertCollection(scratch.arena, ref, 14, .list, key: 77)
        ref = try L.insertCollection(scratch.arena, ref, 15, .dictionary, key: 78)
        let node = try scratch.memory.node(ref)
        XCTAssertEqual([node.count, Int(node.flags & 0xF8)], [6, 0x40])
        let composite = [
            0x0000, 0x0501, 0xFF01, 0x0102, 0x002A, 0x012B, 0x0063, 0x0165, 0x0049, 0x0270, 0x014C, 0x0372, 0x0251, 0x0221,
            0x0094, 0x0196,
        ]
        try assertNode(
            (scratch, try node.requiredRef(0)), 0x05, count: 16, composite.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
        let ints: [UInt64] = [0x3FC0_0000, 0x3FF8_0000_0000_0000, 0x100_0000_0000]
        try assertNode(
            (scratch, try node.requiredRef(1)), 0x07, count: 3,
            ints.flatMap { withUnsafeBytes(of: $0.littleEndian) { Array($0) } })
        let pairs: [UInt64] = [3, 4, 1, 0x3040_0000_0000_0000, 7, 9]
        try assertNode(
            (scratch, try node.requiredRef(2)), 0x07, count: 6,
            pairs.flatMap { withUnsafeBytes(of: $0.littleEndian) { Array($0) } })
        let strings = try scratch.memory.node(try node.requiredRef(3))
        try assertNode((scratch, try strings.requiredRef(0)), 0x04, count: 4, hex("03 06 13 24"))
        XCTAssertEqual(
            try scratch.payload(try strings.requiredRef(1)),
            Array("hi\0xy\0".utf8) + hex("000102030405060708090a0b 00 000102030405060708090a0b0c0d0e0f 00"))
        let refs = try scratch.memory.node(try node.requiredRef(4))
        XCTAssertEqual((0..<refs.count).map { refs.unchecked($0) }, [0, 0])
        try assertNode((scratch, try node.requiredRef(5)), 0x04, count: 16, Array(repeating: 0, count: 14) + [77, 78])
        // Written by a commit, the refs have no width.
        let (committed, root) = try scratch.committed(ref)
        XCTAssertEqual(try committed.nodeBytes(try committed.memory.node(root).requiredRef(4)), hex("41414141 40000002"))
    }

    func testBacklinks() throws {
        typealias L = BacklinkLeafEditor
        let scratch = try ScratchArena()
        var ref = try L.createFilled(scratch.arena, count: 3)
        ref = try L.add(scratch.arena, ref, 1, ObjectKey(0))
        XCTAssertEqual(try scratch.memory.node(ref).unchecked(1), 1, "tagged 0, not nobody")
        ref = try L.add(scratch.arena, ref, 1, ObjectKey(8))
        ref = try L.add(scratch.arena, ref, 1, ObjectKey(0))
        let list = try scratch.memory.node(try scratch.memory.node(ref).requiredRef(1))
        XCTAssertEqual((0..<list.count).map { list.unchecked($0) }, [0, 8, 0])
        XCTAssertEqual(list.hasRefs, false)
        ref = try L.remove(scratch.arena, ref, 1, ObjectKey(0))
        XCTAssertEqual(try BacklinkLeaf(scratch.memory, ref).keys(1).map(\.rawValue), [0, 8], "the last one moved into the hole")
        ref = try L.remove(scratch.arena, ref, 1, ObjectKey(0))
        XCTAssertEqual(try scratch.memory.node(ref).unchecked(1), 17)
        XCTAssertThrowsError(try L.remove(scratch.arena, ref, 1, ObjectKey(3))) { XCTAssertTrue($0 is FormatError) }
        ref = try L.remove(scratch.arena, ref, 1, ObjectKey(8))
        XCTAssertThrowsError(try L.remove(scratch.arena, ref, 1, ObjectKey(8)))
        XCTAssertEqual(try scratch.memory.node(ref).unchecked(1), 0)
        // A hashed key with bit 62 set fills all 63 bits.
        ref = try L.add(scratch.arena, ref, 2, ObjectKey(0x4000_0000_0000_0005))
        ref = try L.add(scratch.arena, ref, 2, ObjectKey(1))
        ref = try L.remove(scratch.arena, ref, 2, ObjectKey(1))
        XCTAssertEqual(try BacklinkLeaf(scratch.memory, ref).keys(2), [ObjectKey(0x4000_0000_0000_0005)])
        XCTAssertEqual(try ReachableNodes(scratch.memory, scratch.arena, [ref]).arenaBytes, scratch.arena.liveBytes)
    }

    func testThousandsOfBacklinksMakeATreeAndItGoesAgain() throws {
        typealias L = BacklinkLeafEditor
        var random = generator(5)
        let scratch = try ScratchArena()
        var ref = try L.createFilled(scratch.arena, count: 2)
        var model: [Int64] = []
        for _ in 0..<2500 {
            let key = Int64.random(in: 0..<900, using: &random)
            model.append(key)
            ref = try L.add(scratch.arena, ref, 0, ObjectKey(key))
        }
        XCTAssertEqual(try BacklinkLeaf(scratch.memory, ref).keys(0).map(\.rawValue), model)
        model.shuffle(using: &random)
        while let key = model.popLast() {
            ref = try L.remove(scratch.arena, ref, 0, ObjectKey(key))
            if model.count % 500 == 0 {
                XCTAssertEqual(try BacklinkLeaf(scratch.memory, ref).keys(0).map(\.rawValue).sorted(), model.sorted())
            }
        }
        XCTAssertEqual(try scratch.memory.node(ref).unchecked(0), 0)
        XCTAssertEqual(try ReachableNodes(scratch.memory, scratch.arena, [ref]).arenaBytes, scratch.arena.liveBytes)
    }
}

extension ScratchArena {
    /// The node's bytes with refs at their smallest width.
    fileprivate func scratchBytes(_ ref: Int) throws -> [UInt8] {
        let (next, root) = try committed(ref)
        return try next.nodeBytes(root)
    }
}
