import CDecimal
import TestSupport
import XCTest

@testable import SharedStore

final class DecimalTests: XCTestCase {
    func testTextAsTheOriginalWritesIt() throws {
        let examples = [
            ("0", "0"), ("-0", "-0"), ("0E+5", "0E5"), ("0.000", "0E-3"), ("0.1", "1E-1"), ("0.001", "1E-3"), ("0.5", "5E-1"),
            ("1E1", "1E1"), ("10E1", "1.0E2"), ("12E3", "1.2E4"), ("123E20", "1.23E22"), ("1E6111", "1E6111"),
            ("1E-6176", "1E-6176"),
            ("1.5", "1.5"), ("1.00", "1.00"), ("100", "100"), ("123.456", "123.456"), ("00012.50", "12.50"),
            ("-1.5E-200", "-1.5E-200"),
            ("1234567890123456789012345678901234", "+1234567890123456789012345678901234E+0"),
            ("1234567890123456789012345678901234E-40", "+1234567890123456789012345678901234E-40"),
            ("-1234567890123456789012345678901234E5967", "-1234567890123456789012345678901234E+5967"),
            ("9999999999999999999999999999999999E6111", "+9999999999999999999999999999999999E+6111"),
            ("18446744073709551615", "18446744073709551615"), ("18446744073709551616", "+18446744073709551616E+0"),
            ("inf", "Inf"), ("-Infinity", "-Inf"), ("NaN", "NaN"), ("-nan", "-NaN"), ("+INF", "Inf"),
            ("7222.340", "7222.340"), (".5", "5E-1"), ("5.", "5"), ("+1e+3", "1E3"), ("1e-0", "1"),
        ]
        for (text, expected) in examples { XCTAssertEqual(Decimal128Bits(text)?.description, expected, text) }
    }

    func testTextThatIsNoNumberIsRefused() {
        for text in [
            "", "+", "-", ".", "e5", ".e5", "1e", "1e+", "1.2.3", "1 ", " 1", "1x", "0x10", "infinit", "nanny", "--1", "1e5.5",
            "1,5", "١",
        ] {
            XCTAssertNil(Decimal128Bits(text), text)
        }
    }

    func testTextRoundsToThirtyFourDigitsAndHasBounds() {
        // Ties go to the even digit; anything behind the tie, however far, decides it.
        let ties = [
            ("12345678901234567890123456789012345", "1234567890123456789012345678901234E1"),
            ("12345678901234567890123456789012355", "1234567890123456789012345678901236E1"),
            (
                "12345678901234567890123456789012345" + String(repeating: "0", count: 60) + "1",
                "1234567890123456789012345678901235E62"
            ),
            ("0." + String(repeating: "0", count: 100) + "25", "25E-102"),
        ]
        for (text, expected) in ties { XCTAssertEqual(Decimal128Bits(text), Decimal128Bits(expected), text) }
        XCTAssertEqual(Decimal128Bits("1E6145"), .infinity)
        XCTAssertEqual(Decimal128Bits("-1E999999999999999999999"), -.infinity)
        XCTAssertEqual(Decimal128Bits("1E-999999999999999999999")?.isZero, true)
        XCTAssertEqual(Decimal128Bits("0E999999999999999999999"), Decimal128Bits("0E6111"))
        XCTAssertEqual(Decimal128Bits("1E6144")?.isFinite, true)
        XCTAssertEqual(Decimal128Bits("1E-6177")?.isZero, true)
        // A long way round to 1.
        XCTAssertEqual(Decimal128Bits("0." + String(repeating: "0", count: 9999) + "1E10000")?.description, "1")
        XCTAssertEqual(Decimal128Bits("9999999999999999999999999999999999E6111"), .greatestFinite)
    }

    func testTextOfTextIsTheSameBits() {
        let seed: UInt64 = 20_240_611
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for _ in 0..<2000 {
            let wide = UInt128(random.next()) << 64 | UInt128(random.next())
            let coefficient = wide % 10_000_000_000_000_000_000_000_000_000_000_000 >> (random.next() % 112)
            let value = Decimal128Bits(
                isNegative: random.next() & 1 == 0, coefficient: coefficient, exponent: Int(random.next() % 12288) - 6176)
            XCTAssertEqual(Decimal128Bits(value.description), value)
            // The library reads what we print as the same number, exponent included.
            var characters = value.description.utf8CString
            var status: UInt32 = 0
            let read = characters.withUnsafeMutableBufferPointer { __bid128_from_string($0.baseAddress, 0, &status) }
            XCTAssertEqual(Decimal128Bits(read), value, value.description)
        }
    }

    func testConversionsFromBinaryNumbersRoundToFifteenAndSevenDigits() {
        XCTAssertEqual(Decimal128Bits(0.1).description, "1.00000000000000E-1")
        XCTAssertEqual(Decimal128Bits(Float(0.1)).description, "1.000000E-1")
        XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(1.7999999999999998), Decimal128Bits("1.8")!), 0)
        XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(0.99999999999999994), Decimal128Bits("1")!), 0)
        XCTAssertEqual(
            Decimal128Bits.compare(Decimal128Bits(0.9999999999999999), Decimal128Bits("1")!), 0, "rounds up to one digit more")
        XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(Float(16_777_216)), Decimal128Bits("16777220")!), 0)
        XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(1e300), Decimal128Bits("1E300")!), 0)
        XCTAssertEqual(
            Decimal128Bits.compare(Decimal128Bits(Double.leastNonzeroMagnitude), Decimal128Bits("4.94065645841247E-324")!), 0)
        XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(-2.5), Decimal128Bits("-2.5")!), 0)
        XCTAssertEqual(Decimal128Bits(0.0), .zero)
        XCTAssertEqual(Decimal128Bits(Double.infinity), .infinity)
        XCTAssertEqual(Decimal128Bits(-Float.infinity), -.infinity)
        XCTAssertEqual(Decimal128Bits(Double.nan), .nan)
        XCTAssertEqual(Decimal128Bits(Float.nan), .nan)
    }

    func testIntegersAndDoubles() {
        for value in [0, 1, -1, .max, .min] as [Int64] { XCTAssertEqual(Decimal128Bits(value).description, String(value)) }
        XCTAssertEqual(Decimal128Bits("0.1")!.doubleValue, 0.1)
        XCTAssertEqual(Decimal128Bits("-1E400")!.doubleValue, -.infinity)
        XCTAssertTrue(Decimal128Bits.nan.doubleValue.isNaN)
    }

    func testArithmetic() {
        func decimal(_ text: String) -> Decimal128Bits { Decimal128Bits(text)! }
        XCTAssertEqual((decimal("0.1") + decimal("0.2")).description, "3E-1")
        XCTAssertEqual((decimal("1.00") - decimal("1")).description, "0E-2")
        XCTAssertEqual((decimal("1.5") * decimal("-2")).description, "-3.0")
        XCTAssertEqual((decimal("1") / decimal("4")).description, "2.5E-1")
        XCTAssertEqual(decimal("1") / decimal("0"), .infinity)
        XCTAssertTrue((decimal("0") / decimal("0")).isNaN)
        XCTAssertEqual(Decimal128Bits.greatestFinite + .greatestFinite, .infinity)
        XCTAssertEqual(-decimal("3"), decimal("-3"))
    }

    func testOrderIsByValueAndNaNsComeFirst() {
        let ascending = [
            "-nan", "-inf", "-1E10", "-2", "-1.5", "-1E-10", "0", "1E-6176", "0.001", "1", "1.5", "18446744073709551616", "1E30",
            "inf",
        ]
        .map { Decimal128Bits($0)! }
        for (i, a) in ascending.enumerated() {
            for (j, b) in ascending.enumerated() {
                XCTAssertEqual(Decimal128Bits.compare(a, b).signum(), (i - j).signum(), "\(a) \(b)")
            }
        }
        for (a, b) in [("1.0", "1.00"), ("-0", "0"), ("0E5", "0E-5"), ("-0.00", "0.00"), ("1E1", "10"), ("-5", "-5.0")] {
            XCTAssertEqual(Decimal128Bits.compare(Decimal128Bits(a)!, Decimal128Bits(b)!), 0, "\(a) \(b)")
        }
        // NaNs among themselves: by bits, unsigned.
        let low = Decimal128Bits(low: 1, high: Decimal128Bits.nan.high)
        XCTAssertLessThan(Decimal128Bits.compare(.nan, low), 0)
        XCTAssertLessThan(Decimal128Bits.compare(low, -.nan), 0)
        XCTAssertEqual(Decimal128Bits.compare(.nan, .nan), 0)
    }

    /// The comparison has a short way for equal exponents, which must agree with the library's.
    func testComparisonAgreesWithTheLibrary() {
        let seed: UInt64 = 7
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for _ in 0..<5000 {
            func value() -> Decimal128Bits {
                Decimal128Bits(
                    low: random.next() >> (random.next() % 64),
                    high: random.next() & 1 << 63 | (0x3040 >> 1 &+ random.next() % 3) << 49
                        | (random.next() % 4 == 0 ? random.next() % 9 : 0))
            }
            let a = value(), b = value()
            var status: UInt32 = 0
            let expected =
                __bid128_quiet_less(a.bid, b.bid, &status) != 0 ? -1 : Int(__bid128_quiet_greater(a.bid, b.bid, &status))
            XCTAssertEqual(Decimal128Bits.compare(a, b), expected, "\(a) \(b)")
        }
    }

    /// Any 4 or 8 bytes, large coefficients and specials among them, mean what the library says.
    func testNarrowEncodingsAgreeWithTheLibrary() {
        let seed: UInt64 = 11
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for i in 0..<5000 {
            var bits = random.next()
            if i % 2 == 0 { bits |= 0x6000_0000_6000_0000 }
            var status: UInt32 = 0
            let short = Decimal128Bits(__bid32_to_bid128(UInt32(truncatingIfNeeded: bits), &status))
            let long = Decimal128Bits(__bid64_to_bid128(bits, &status))
            for (ours, theirs) in [
                (DecimalEncoding.fromBID32(UInt32(truncatingIfNeeded: bits)), short), (DecimalEncoding.fromBID64(bits), long),
            ] {
                if theirs.isNaN {
                    XCTAssertTrue(ours.isNaN)
                    XCTAssertEqual(ours.isNegative, theirs.isNegative)
                } else {
                    XCTAssertEqual(ours, theirs)
                }
            }
        }
        // 8388608 + 1 = 0x800001: the smallest exponent, the large form.
        XCTAssertEqual(DecimalEncoding.fromBID32(0x6000_0001 | 101 << 21).description, "8388609")
        XCTAssertEqual(DecimalEncoding.fromBID64(0x6000_0000_0000_0001 | 398 << 51).description, "9007199254740993")
    }

    func testRequiredWidthsAsObserved() {
        let widths: [(String, clear: Int, set: Int)] = [
            ("0", 4, 0), ("-0", 4, 0), ("0.00", 4, 4), ("0E+1", 4, 4), ("1", 4, 4), ("-1.5", 4, 4), ("8388607", 4, 4),
            ("8388608", 8, 8),
            ("1E90", 4, 4), ("1E91", 8, 8), ("1E-90", 4, 4), ("1E-91", 8, 8), ("9007199254740991", 8, 8),
            ("9007199254740992", 16, 16),
            ("1E369", 8, 8), ("1E370", 16, 16), ("1E-369", 8, 8), ("1E-370", 16, 16), ("inf", 16, 16), ("nan", 16, 16),
            ("18446744073709551616", 16, 16),
        ]
        for (text, clear, set) in widths {
            XCTAssertEqual(DecimalEncoding.requiredWidth(Decimal128Bits(text), isZeroDefault: false), clear, text)
            XCTAssertEqual(DecimalEncoding.requiredWidth(Decimal128Bits(text), isZeroDefault: true), set, text)
            let value = Decimal128Bits(text)!
            if clear <= 4 { XCTAssertEqual(DecimalEncoding.fromBID32(DecimalEncoding.toBID32(value)), value, text) }
            if clear <= 8 { XCTAssertEqual(DecimalEncoding.fromBID64(DecimalEncoding.toBID64(value)), value, text) }
        }
        XCTAssertEqual(DecimalEncoding.requiredWidth(nil, isZeroDefault: false), 0)
        XCTAssertEqual(DecimalEncoding.requiredWidth(nil, isZeroDefault: true), 4)
        XCTAssertEqual(DecimalEncoding.toBID32(nil), 0x7C00_00AA)
        XCTAssertEqual(DecimalEncoding.toBID64(nil), 0x7C00_0000_0000_00AA)
    }
}
