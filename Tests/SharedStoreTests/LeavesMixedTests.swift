import SharedStore
import TestSupport
import XCTest

/// Mixed leaves: the worked example of file-format-1 7.3, every known kind, and damaged forms.
final class LeavesMixedTests: XCTestCase {
    let image = ByteImage()
    var memory: Memory { image.memory }

    func testTheWorkedExample() throws {
        let elements: [UInt16] = [
            0x0000, 0x0501, 0xFF01, 0x0102, 0x002A, 0x012B, 0x0063, 0x0165, 0x0049, 0x0270, 0x014C, 0x0372, 0x0251, 0x0221,
            0x0094, 0x0196,
        ]
        let composite = image.add(
            flags: 0x05, count: 16, payload: elements.flatMap { e -> [UInt8] in [UInt8(e & 0xFF), UInt8(e >> 8)] })
        let id: [UInt8] = Array(0...11), uuid: [UInt8] = Array(0...15)
        let strings = image.smallBlobs(
            offsets: [0x03, 0x06, 0x13, 0x24], blob: [0x68, 0x69, 0, 0x78, 0x79, 0] + id + [0] + uuid + [0], nulls: [0, 0, 0, 0])
        let leaf = try MixedLeaf(
            memory,
            image.refs([
                composite, image.integers([0x3FC0_0000, 0x3FF8_0000_0000_0000, 0x100_0000_0000]),
                image.integers([3, 4, 1, 0x3040_0000_0000_0000, 7, 9]), strings, image.refs([0, 0]),
                image.integers([Int64](repeating: 0, count: 14) + [77, 78]),
            ]))
        XCTAssertEqual(
            try all(leaf),
            [
                .null, .int(5), .int(-1), .bool(true), .float(1.5), .double(1.5), .string("hi"), .binary([0x78, 0x79]),
                .timestamp(Timestamp(seconds: 3, nanoseconds: 4)), .objectId(ObjectIdValue("000102030405060708090a0b")!),
                .decimal(Decimal128Bits("1")!), .uuid(UUIDValue("00010203-0405-0607-0809-0a0b0c0d0e0f")!),
                .link(TableKey(7), ObjectKey(9)),
                .int(0x100_0000_0000), .list, .dictionary,
            ])
        XCTAssertEqual(try (0..<16).map(leaf.typeNumber), [-1, 0, 0, 1, 9, 10, 2, 4, 8, 15, 11, 17, 16, 0, 19, 21])
        XCTAssertEqual(try leaf.nestedRef(14), 0)
        XCTAssertEqual(try leaf.nestedRef(15), 0)
        XCTAssertEqual(try leaf.key(14), 77)
        XCTAssertEqual(try leaf.key(15), 78)
        XCTAssertEqual(try leaf.key(3), 0)
        XCTAssertThrowsFormatError(try leaf.nestedRef(3))
        XCTAssertThrowsFormatError(try leaf.value(16))
        XCTAssertThrowsFormatError(try leaf.key(-1))
        // A view is the same value.
        for i in 0..<16 { XCTAssertEqual(Mixed(try leaf.view(i)), try leaf.value(i)) }
    }

    func testLeavesOfOlderFormatsHaveFourOrFiveElements() throws {
        let composite = image.integers([0x0501, 0])
        for parts in [[composite, 0, 0, 0], [composite, 0, 0, 0, 0]] {
            let leaf = try MixedLeaf(memory, image.refs(parts))
            XCTAssertEqual(try all(leaf), [.int(5), .null])
            XCTAssertEqual(try leaf.key(0), 0)
        }
    }

    func testKeysMayBeShorterThanTheLeaf() throws {
        let leaf = try MixedLeaf(
            memory, image.refs([image.integers([0x94, 0x194]), 0, 0, 0, image.refs([0, 0]), image.integers([9])]))
        XCTAssertEqual(try leaf.key(0), 9)
        XCTAssertEqual(try leaf.key(1), 0)
    }

    func testNestedCollections() throws {
        let inner = image.integers([1])
        let leaf = try MixedLeaf(
            memory,
            image.refs([image.integers([0x196, 0x94, 0x295, 0x394]), 0, 0, 0, image.refs([inner, 0, inner + 8, 2 * 7 + 1])]))
        XCTAssertEqual(try leaf.nestedRef(0), 0)
        XCTAssertEqual(try leaf.nestedRef(1), inner)
        XCTAssertEqual(try leaf.value(2), .list, "a set reads like a list")
        XCTAssertEqual(try leaf.nestedRef(2), inner + 8)
        XCTAssertThrowsFormatError(try leaf.nestedRef(3), "a number is no ref")
    }

    func testFloatsUseTheLow32BitsAndUntypedLinksHaveNoTable() throws {
        let leaf = try MixedLeaf(
            memory, image.refs([image.integers([0x2A, 0x12D]), image.integers([-1 << 32 | 0x3FC0_0000, 12]), 0, 0]))
        XCTAssertEqual(try all(leaf), [.float(1.5), .link(.null, ObjectKey(12))])
    }

    func testASplitValueIsReadWhole() throws {
        let split = image.refs([image.blob([1, 2]), image.blob([3])], flags: 0x20)
        let leaf = try MixedLeaf(
            memory, image.refs([image.integers([0x65, 0x163]), 0, 0, image.refs([split, split], flags: 0x20)]))
        XCTAssertEqual(try leaf.value(0), .binary([1, 2, 3]))
        XCTAssertEqual(try leaf.value(1), .string("\u{1}\u{2}\u{3}"))
        XCTAssertThrowsFormatError(try leaf.view(0))
    }

    func testDamagedValuesThrow() throws {
        let ints = image.integers([1]), pairs = image.integers([1, 2_000_000_000, 1 << 31, 0, 5])
        let strings = image.smallBlobs(offsets: [3, 4], blob: [0x61, 0x62, 0, 0], nulls: [0, 1])
        let refs = image.refs([0])
        let damaged: [(Int64, String)] = [
            (0x121, "ints beyond the end"), (-0x100 | 0x21, "negative index"), (0x7FFF_FFFF_FFFF_FF21, "huge index"),
            (0x263, "strings beyond the end"), (0x163, "null as a string"), (0x70, "ObjectId of 2 bytes"),
            (0x72, "UUID of 2 bytes"),
            (0x49, "nanoseconds out of range"), (0x249, "half a pair"), (0x151, "table key out of range"),
            (0x194, "refs beyond the end"), (0x61, "int with P 3"), (0x22, "bool with P 1"), (0x03, "string with P 0"),
            (0x74, "list with P 3"), (0x04, "type 3"), (0x1F, "type 30"), (0x20, "null with a payload"), (0xE1, "P 7"),
        ]
        let leaf = try MixedLeaf(memory, image.refs([image.integers(damaged.map(\.0)), ints, pairs, strings, refs, 0]))
        for (i, (element, reason)) in damaged.enumerated() where element & 0x1F != 20 {
            XCTAssertThrowsFormatError(try leaf.value(i), reason)
            XCTAssertThrowsFormatError(try leaf.view(i), reason)
        }
        XCTAssertThrowsFormatError(try leaf.nestedRef(10))
        XCTAssertThrowsFormatError(try leaf.nestedRef(14))
        let bare = try MixedLeaf(memory, image.refs([image.integers([0x21, 0x49, 0x63, 0x94]), 0, 0, 0]))
        for i in 0..<3 { XCTAssertThrowsFormatError(try bare.value(i)) }
        XCTAssertThrowsFormatError(try bare.nestedRef(3))
    }

    func testDamagedLeavesAreRefused() throws {
        let composite = image.integers([0]), blob = image.blob([0])
        let damaged = [
            [composite, 0, 0], [composite, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0], [blob, 0, 0, 0], [composite, blob, 0, 0],
            [composite, 0, blob, 0],
            [composite, 0, 0, blob], [composite, 0, 0, 0, composite, 0], [composite, 0, 0, 0, 0, blob],
            [composite, 0, 0, 0, 0, 3],
        ]
        for parts in damaged { XCTAssertThrowsFormatError(try MixedLeaf(memory, image.refs(parts)), "\(parts)") }
        XCTAssertThrowsFormatError(try MixedLeaf(memory, image.integers([Int64(composite), 0, 0, 0])))
    }
}
