import SharedStore
import TestSupport
import XCTest

/// Floats, doubles, timestamps, decimals, ObjectIds, UUIDs: the worked examples of file-format-1 section 5, and damaged forms of
/// them.
final class LeavesScalarTests: XCTestCase {
    let image = ByteImage()
    var memory: Memory { image.memory }

    func testFloatsAndDoublesKnowNullByItsBitsAlone() throws {
        let floats = try FloatLeaf(
            memory, image.add(flags: 0x0B, count: 3, payload: [0xAA, 0, 0xC0, 0x7F, 0, 0, 0xC0, 0x7F, 0, 0, 0xC0, 0x3F]))
        XCTAssertNil(try floats.value(0))
        XCTAssertEqual(try floats.value(1)?.isNaN, true)
        XCTAssertEqual(try floats.value(2), 1.5)
        let doubles = try DoubleLeaf(
            memory,
            image.add(
                flags: 0x0C, count: 3,
                payload: [
                    0xAA, 0, 0, 0, 0, 0, 0xF8, 0x7F, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F, 0, 0, 0, 0, 0, 0, 0xF8, 0xBF,
                ]))
        XCTAssertNil(try doubles.value(0))
        XCTAssertEqual(try doubles.value(1)?.isNaN, true)
        XCTAssertEqual(try doubles.value(2), -1.5)
        XCTAssertThrowsFormatError(try doubles.value(3))
    }

    func testFloatingPointLeavesOfAnotherWidthAreRefused() throws {
        XCTAssertEqual(try FloatLeaf(memory, image.add(flags: 0x0B, count: 0)).count, 0)
        XCTAssertEqual(try DoubleLeaf(memory, image.add(flags: 0x08, count: 0)).count, 0)
        let four = image.add(flags: 0x0B, count: 2, payload: [UInt8](repeating: 0, count: 8))
        XCTAssertThrowsFormatError(try DoubleLeaf(memory, four))
        XCTAssertThrowsFormatError(
            try FloatLeaf(memory, image.add(flags: 0x0C, count: 1, payload: [UInt8](repeating: 0, count: 8))))
        XCTAssertThrowsFormatError(try FloatLeaf(memory, image.integers([1, 2], width: 32)))
        image.truncate(to: four + 8 + 7)
        XCTAssertThrowsFormatError(try FloatLeaf(memory, four))
    }

    func testTimestampsReadAsInTheWorkedExample() throws {
        let seconds = image.add(
            flags: 0x06, count: 5,
            payload: [
                0xFF, 0xFF, 0xFF, 0x7F, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0xF1, 0x53, 0x65,
            ])
        let nanoseconds = image.add(
            flags: 0x06, count: 4, payload: [2, 0, 0, 0, 0, 0, 0, 0, 0x0C, 0xFE, 0xFF, 0xFF, 0xFF, 0xC9, 0x9A, 0x3B])
        let leaf = try TimestampLeaf(memory, image.refs([seconds, nanoseconds]))
        XCTAssertEqual(
            try all(leaf),
            [
                Timestamp(seconds: 1, nanoseconds: 2), nil, Timestamp(seconds: -1, nanoseconds: -500),
                Timestamp(seconds: 1_700_000_000, nanoseconds: 999_999_999),
            ])
        XCTAssertEqual((0..<4).map(leaf.isNull), [false, true, false, false])
    }

    func testDamagedTimestampsThrow() throws {
        let three = image.integers([7, 1, 2, 3]), two = image.integers([0, 0])
        for parts in [[three, two], [three], [three, two, two], [0, two], [three, 0], [2 * 5 + 1, two]] {
            XCTAssertThrowsFormatError(try TimestampLeaf(memory, image.refs(parts)), "\(parts)")
        }
        let stale = try TimestampLeaf(
            memory, image.refs([image.integers([7, 1, 7]), image.integers([1_000_000_000, -1 << 40])]))
        XCTAssertThrowsFormatError(try stale.value(0))
        XCTAssertNil(try stale.value(1), "nanoseconds of a null are not looked at")
    }

    func testDecimalsOfEveryWidthReadAsInTheWorkedExamples() throws {
        XCTAssertEqual(try decimals(0x08, 2, []), [nil, nil])
        XCTAssertEqual(try decimals(0x0B, 3, [0xAA, 0, 0, 0x7C, 0xAA, 0, 0, 0x7C, 1, 0, 0x80, 0x32]), [nil, nil, "1"])
        XCTAssertEqual(
            try decimals(0x0C, 2, [0xAA, 0, 0, 0, 0, 0, 0, 0x7C, 0, 0, 0, 0, 0, 1, 0xC0, 0x31]), [nil, "1099511627776"])
        XCTAssertEqual(try decimals(0x28, 2, []), ["0", "0"])
        XCTAssertEqual(try decimals(0x2B, 3, [0, 0, 0x80, 0x32, 0, 0, 0x80, 0x32, 0xAA, 0, 0, 0x7C]), ["0", "0", nil])
        XCTAssertEqual(try decimals(0x0B, 2, [0x0F, 0, 0, 0xB2, 0, 0, 0x80, 0x31]), ["-1.5", "0E-2"])
        XCTAssertEqual(try decimals(0x2B, 1, [0, 0, 0, 0x33]), ["0E1"])
        let wide: [UInt8] =
            [0xAA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7C, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x78]
            + [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7C, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x30]
        XCTAssertEqual(try decimals(0x0D, 4, wide), [nil, "Inf", "NaN", "1"])
    }

    func testDecimalLeavesOfAnotherWidthAreRefused() throws {
        for (flags, bytes) in [(0x09, 1), (0x0A, 2), (0x0E, 32)] as [(UInt8, Int)] {
            let ref = image.add(flags: flags, count: 1, payload: [UInt8](repeating: 0, count: bytes))
            XCTAssertThrowsFormatError(try DecimalLeaf(memory, ref))
        }
        XCTAssertThrowsFormatError(try DecimalLeaf(memory, image.integers([1])))
    }

    func testObjectIdsReadAsInTheWorkedExample() throws {
        let null: [UInt8] = [0xDE, 0xAD, 0xDE, 0xAD, 0xDE, 0xAD, 0xDE, 0xAD, 0xDE, 0xAD, 0xDE, 0xAD]
        let leaf = try ObjectIdLeaf(memory, image.add(flags: 0x09, count: 25, payload: [0xFE] + Array(0...11) + null))
        XCTAssertEqual(try all(leaf).map { $0?.description }, ["000102030405060708090a0b", nil])
        XCTAssertEqual(try ObjectIdLeaf(memory, image.add(flags: 0x08, count: 0)).count, 0)
        XCTAssertEqual(try ObjectIdLeaf(memory, image.add(flags: 0x09, count: 0)).count, 0)
    }

    func testFixedBytesCrossBlocksOfEight() throws {
        // 9 ObjectIds in 110 bytes; value 7 and value 8 are null; bits behind the last value are set, which means nothing.
        var payload: [UInt8] = [0x80]
        for i in 0..<8 as Range<UInt8> { payload += [UInt8](repeating: i, count: 12) }
        payload += [0xFF] + [UInt8](repeating: 8, count: 12)
        let ids = try ObjectIdLeaf(memory, image.add(flags: 0x09, count: 110, payload: payload))
        XCTAssertEqual(
            try all(ids).map { $0?.low },
            [0, 0x0101_0101, 0x0202_0202, 0x0303_0303, 0x0404_0404, 0x0505_0505, 0x0606_0606, nil, nil])
        // A UUID and a null: 33 bytes.
        let uuids = try UUIDLeaf(
            memory, image.add(flags: 0x09, count: 33, payload: [0x02] + Array(0...15) + [UInt8](repeating: 0xDE, count: 16)))
        XCTAssertEqual(try all(uuids).map { $0?.description }, ["00010203-0405-0607-0809-0a0b0c0d0e0f", nil])
    }

    func testFixedBytesOfAnImpossibleLengthAreRefused() throws {
        for count in [1, 12, 14, 24, 26, 98] {
            XCTAssertThrowsFormatError(
                try ObjectIdLeaf(memory, image.add(flags: 0x09, count: count, payload: [UInt8](repeating: 0, count: count))))
        }
        for count in [1, 16, 18, 130] {
            XCTAssertThrowsFormatError(
                try UUIDLeaf(memory, image.add(flags: 0x09, count: count, payload: [UInt8](repeating: 0, count: count))))
        }
        XCTAssertThrowsFormatError(try UUIDLeaf(memory, image.add(flags: 0x08, count: 17)), "width 0 with values")
        XCTAssertThrowsFormatError(try UUIDLeaf(memory, image.blob([UInt8](repeating: 0, count: 17))))
        // Every possible number of values is told from its length.
        for values in 1...40 {
            let count = values * 12 + (values + 7) / 8
            XCTAssertEqual(
                try ObjectIdLeaf(memory, image.add(flags: 0x09, count: count, payload: [UInt8](repeating: 0, count: count)))
                    .count, values)
        }
    }

    private func decimals(_ flags: UInt8, _ count: Int, _ payload: [UInt8]) throws -> [String?] {
        try all(DecimalLeaf(memory, image.add(flags: flags, count: count, payload: payload))).map { $0?.description }
    }
}
