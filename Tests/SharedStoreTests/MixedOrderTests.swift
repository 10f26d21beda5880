import SharedStore
import TestSupport
import XCTest

final class MixedOrderTests: XCTestCase {
    func testEveryRankIsAboveTheOnesBefore() {
        let ascending: [[Mixed]] = [
            [.null], [.bool(false)], [.bool(true)],
            [.double(.nan)], [.double(-.infinity)], [.decimal(decimal("-1E400"))], [.int(.min)],
            [.int(-1), .float(-1), .double(-1), .decimal(decimal("-1.0"))],
            [.int(0), .float(0), .double(-0.0), .decimal(decimal("0E5"))], [.double(0.5), .decimal(decimal("0.50"))],
            [.int(3), .float(3), .double(3), .decimal(decimal("3.00"))], [.int(.max)],
            [.double(.infinity), .float(.infinity), .decimal(.infinity)],
            [.string("")], [.string("A")], [.string("a")], [.string("aa")], [.string("é")], [.string("\u{FFFF}")], [.string("😀")],
            [.binary([])], [.binary([0])], [.binary([0, 0])], [.binary([1])], [.binary([0x80])], [.binary([0xFF])],
            [.timestamp(Timestamp(seconds: -1, nanoseconds: -1))], [.timestamp(Timestamp(seconds: -1, nanoseconds: 0))],
            [.timestamp(Timestamp(seconds: 0, nanoseconds: 0))], [.timestamp(Timestamp(seconds: 0, nanoseconds: 1))],
            [.objectId(ObjectIdValue(high: 1, low: 0))], [.objectId(ObjectIdValue(high: 1, low: 1 << 31))],
            [.objectId(ObjectIdValue(high: 1 << 63, low: 0))],
            [.uuid(UUIDValue(high: 0, low: 1 << 63))], [.uuid(UUIDValue(high: 1, low: 0))],
            [.link(TableKey(1), ObjectKey(5))], [.link(TableKey(2), ObjectKey(-9))], [.link(TableKey(2), ObjectKey(4))],
            [.link(.null, ObjectKey(0))], [.list], [.dictionary],
        ]
        for (i, equalsA) in ascending.enumerated() {
            for (j, equalsB) in ascending.enumerated() {
                for a in equalsA {
                    for b in equalsB { XCTAssertEqual(Mixed.compare(a, b).signum(), (i - j).signum(), "\(a) \(b)") }
                }
            }
        }
    }

    func testIntegersMeetDoublesWithoutRounding() {
        let exact: Int64 = 1 << 53
        XCTAssertGreaterThan(Mixed.compare(.int(exact + 1), .double(0x1p53)), 0)
        XCTAssertEqual(Mixed.compare(.int(exact), .double(0x1p53)), 0)
        XCTAssertGreaterThan(Mixed.compare(.int(-exact), .double(-0x1p53 - 2)), 0)
        XCTAssertLessThan(Mixed.compare(.int(-exact - 1), .double(-0x1p53)), 0)
        XCTAssertLessThan(Mixed.compare(.int(.max), .double(0x1p63)), 0)
        XCTAssertEqual(Mixed.compare(.int(.min), .double(-0x1p63)), 0)
        XCTAssertGreaterThan(Mixed.compare(.int(.min), .double(-0x1p64)), 0)
        XCTAssertGreaterThan(Mixed.compare(.int(.max), .float(0x1p62)), 0)
        XCTAssertGreaterThan(Mixed.compare(.int(.max), .double(0.5)), 0)
        XCTAssertLessThan(Mixed.compare(.int(.min), .double(-0.5)), 0)
        XCTAssertGreaterThan(Mixed.compare(.int(.min), .double(.nan)), 0)
        XCTAssertLessThan(Mixed.compare(.double(.nan), .int(.min)), 0)
        XCTAssertEqual(Mixed.compare(.int(.max), .decimal(decimal("9223372036854775807"))), 0)
        XCTAssertLessThan(Mixed.compare(.int(.max), .decimal(decimal("9223372036854775807.1"))), 0)
    }

    func testBinaryFractionsMeetDecimalsRounded() {
        XCTAssertEqual(Mixed.compare(.float(1.1), .decimal(decimal("1.1"))), 0)
        XCTAssertEqual(Mixed.compare(.double(0.1), .decimal(decimal("0.1"))), 0)
        XCTAssertGreaterThan(Mixed.compare(.float(1.1), .double(1.1)), 0)
        XCTAssertEqual(Mixed.compare(.decimal(decimal("1.8")), .double(1.7999999999999998)), 0)
    }

    func testNaNsAreOrderedByTheirBits() {
        let quiet = Double(bitPattern: 0x7FF8_0000_0000_0000), other = Double(bitPattern: 0x7FF8_0000_0000_0001),
            negative = -quiet
        XCTAssertEqual(Mixed.compare(.double(quiet), .double(quiet)), 0)
        XCTAssertLessThan(Mixed.compare(.double(quiet), .double(other)), 0)
        XCTAssertLessThan(Mixed.compare(.double(other), .double(negative)), 0)
        XCTAssertEqual(Mixed.compare(.float(.nan), .double(.nan)), 0)
        XCTAssertLessThan(Mixed.compare(.float(.nan), .float(-.nan)), 0)
        XCTAssertLessThan(Mixed.compare(.float(.nan), .decimal(decimal("-inf"))), 0)
        XCTAssertLessThan(Mixed.compare(.decimal(.nan), .double(-.infinity)), 0)
        XCTAssertEqual(Mixed.compare(.decimal(.nan), .double(.nan)), 0)
    }

    func testStringsAreOrderedByBytesNotByCharacters() {
        // Canonically equal for Swift, two values for the database.
        let composed = "\u{E9}", decomposed = "e\u{301}"
        XCTAssertEqual(composed, decomposed)
        XCTAssertGreaterThan(ValueOrder.compare(composed, decomposed), 0)
        XCTAssertNotEqual(Mixed.compare(.string(composed), .string(decomposed)), 0)
        // In UTF-16 the order of these two is the other way round.
        XCTAssertLessThan(ValueOrder.compare("\u{FFFD}", "\u{10000}"), 0)
    }

    func testBytesWithNullAndPrefixes() {
        func compare(_ a: [UInt8]?, _ b: [UInt8]?) -> Int {
            func with(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Int) -> Int {
                guard let bytes else { return body(nil) }
                return bytes.withUnsafeBytes { body($0) }
            }
            return with(a) { x in with(b) { y in ValueOrder.compare(x, y) } }.signum()
        }
        let ascending: [[UInt8]?] = [nil, [], [0], [0, 0], [1], [0x7F, 0xFF], [0x80]]
        for (i, a) in ascending.enumerated() {
            for (j, b) in ascending.enumerated() { XCTAssertEqual(compare(a, b), (i - j).signum()) }
        }
        XCTAssertTrue(
            ValueOrder.equal(UnsafeRawBufferPointer(start: nil, count: 0), UnsafeRawBufferPointer(start: nil, count: 0)))
        [1, 2, 3].withUnsafeBytes { bytes in
            XCTAssertTrue(ValueOrder.equal(bytes, bytes))
            XCTAssertFalse(ValueOrder.equal(bytes, UnsafeRawBufferPointer(rebasing: bytes.dropLast())))
        }
    }

    /// Whatever two values are compared, the other way round the sign is the other.
    func testOrderIsAntisymmetric() {
        let seed: UInt64 = 5
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        func value() -> Mixed {
            let bits = random.next() >> (random.next() % 64)
            switch random.next() % 8 {
            case 0: return .int(Int64(bitPattern: bits))
            case 1: return .double(Double(bitPattern: bits))
            case 2: return .float(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
            case 3: return .decimal(Decimal128Bits(low: bits, high: random.next()))
            case 4: return .int(-Int64(bits >> 1))
            case 5: return .double(Double(Int64(bitPattern: bits)))
            case 6: return .decimal(Decimal128Bits(Int64(bitPattern: bits)))
            default: return [.null, .bool(true), .string("x"), .list][Int(bits % 4)]
            }
        }
        for _ in 0..<20_000 {
            let a = value(), b = value()
            XCTAssertEqual(Mixed.compare(a, b).signum(), -Mixed.compare(b, a).signum(), "\(a) \(b)")
            XCTAssertEqual(Mixed.compare(a, a), 0, "\(a)")
        }
    }

    private func decimal(_ text: String) -> Decimal128Bits { Decimal128Bits(text)! }
}
