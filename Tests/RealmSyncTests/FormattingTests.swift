@testable import realm_sync
import TestSupport
import XCTest

/// Sizes, times, widths: small parts of the program by themselves.
final class FormattingTests: XCTestCase {
    func testByteSizes() {
        XCTAssertEqual(Units.text(bytes: 0), "0 B")
        XCTAssertEqual(Units.text(bytes: 1023), "1023 B")
        XCTAssertEqual(Units.text(bytes: 1536), "1.50 KB")
        XCTAssertEqual(Units.text(bytes: 64 << 20), "64.0 MB")
        XCTAssertEqual(Units.text(bytes: 700 << 30), "700 GB")
        XCTAssertEqual(Units.text(bytes: Int.max), "8.00 EB")
        for (text, value) in [("0", 0), ("4096", 4096), ("64K", 65536), ("2M", 2 << 20), ("1GiB", 1 << 30), ("3tb", 3 << 40)] {
            XCTAssertEqual(Units.byteCount(text), value, text)
        }
        for text in ["", "K", "-1", "1.5M", "1X", "99999999999T", "99999999999999999999"] {
            XCTAssertNil(Units.byteCount(text), text)
        }
    }

    func testDurations() {
        XCTAssertEqual(Units.text(seconds: 0.0004), "0.4 ms")
        XCTAssertEqual(Units.text(seconds: 0.25), "250 ms")
        XCTAssertEqual(Units.text(seconds: 61), "1 min 1 s")
        XCTAssertEqual(Units.text(seconds: 90_000), "1 d 1 h")
        XCTAssertEqual(Units.text(seconds: .infinity), "11574074074 d 1 h")
        for (text, value) in [
            ("500ms", Duration.milliseconds(500)), ("2", .seconds(2)), ("1.5m", .seconds(90)), ("1d", .seconds(86400)),
        ] {
            XCTAssertEqual(Units.duration(text), value, text)
        }
        for text in ["", "s", "-1s", "1w", "nan", "1e99"] { XCTAssertNil(Units.duration(text), text) }
    }

    /// Text of a moment, and the moment of a text, over days of every kind from year 1 to 9999.
    func testMomentsGoBothWays() throws {
        XCTAssertEqual(Units.text(seconds: 0, nanoseconds: 0), "1970-01-01T00:00:00Z")
        XCTAssertEqual(Units.text(seconds: -1, nanoseconds: -1), "1969-12-31T23:59:58.999999999Z")
        XCTAssertEqual(Units.text(seconds: 1_709_210_096, nanoseconds: 500_000_000), "2024-02-29T12:34:56.5Z")
        XCTAssertNil(Units.text(seconds: .max, nanoseconds: 0))
        XCTAssertNil(Units.text(seconds: .min, nanoseconds: -999_999_999))
        var random = SplitMix(seed: 1970)
        for _ in 0..<2000 {
            let seconds = Int64.random(in: -62_135_596_800...253_402_300_799, using: &random)
            let nanoseconds = Int32.random(in: 0...999_999_999, using: &random) * (seconds < 0 ? -1 : 1)
            guard let text = Units.text(seconds: seconds, nanoseconds: nanoseconds) else { continue }
            let moment = try XCTUnwrap(Units.moment(text), text)
            XCTAssertEqual(moment.seconds, seconds, text)
            XCTAssertEqual(moment.nanoseconds, nanoseconds, text)
        }
        XCTAssertEqual(Units.moment("2024-02-29T12:30:00+02:00")?.seconds, Units.moment("2024-02-29T10:30:00Z")?.seconds)
        XCTAssertEqual(Units.moment("2024-02-29")?.seconds, 1_709_164_800)
        for text in [
            "", "2023-02-29", "2024-13-01", "2024-00-01", "2024-01-01T25:00Z", "2024-01-01Tx", "2024-01-01T10:00:00.Z",
            "yesterday",
        ] {
            XCTAssertNil(Units.moment(text), text)
        }
    }

    func testWidthsOnATerminal() {
        XCTAssertEqual(Text.width("plain"), 5)
        XCTAssertEqual(Text.width("naïve"), 5)
        XCTAssertEqual(Text.width("nai\u{308}ve"), 5)
        XCTAssertEqual(Text.width("日本語"), 6)
        XCTAssertEqual(Text.width("👨‍👩‍👧"), 2)
        XCTAssertEqual(Text.width("❤️"), 2)
        XCTAssertEqual(Text.cut("日本語です", toColumns: 6), "日本\u{2026}")
        XCTAssertEqual(Text.cut("short", toColumns: 6), "short")
    }

    func testNothingInAValueMovesTheCursor() {
        XCTAssertEqual(Text.visible("a\nb\tc\u{1B}[2J\u{202E}d\u{7F}\u{9B}"), "a\\nb\\tc\\u{1b}[2J\\u{202e}d\\u{7f}\\u{9b}")
        XCTAssertEqual(Text.visible("naïve 日本"), "naïve 日本")
    }

    func testJSONIsQuoted() {
        let value = JSONText.object([("a\"\\\n\u{1}", .array([.integer(-1), .null, .bool(true), .number(.nan), .string("é")]))])
        XCTAssertEqual(value.text, "{\"a\\\"\\\\\\n\\u0001\":[-1,null,true,null,\"é\"]}")
    }

    func testNearestSpelling() {
        XCTAssertEqual(Spelling.nearest("expotr", among: ["export", "schema"]), "export")
        XCTAssertNil(Spelling.nearest("xyz", among: ["export", "schema"]))
        XCTAssertNil(Spelling.nearest("a", among: []))
        XCTAssertEqual(
            Spelling.nearest("nam", among: ["names", "name", "game"]), "name", "the nearest of those that are near enough")
        XCTAssertEqual(Spelling.nearest("gr\u{F6}sse", among: ["gr\u{F6}\u{DF}e", "breite"]), "gr\u{F6}\u{DF}e")
        // What is longer than any name is none that was mistyped; many names are looked through one by one, but not all of any
        // number.
        XCTAssertNil(Spelling.nearest(String(repeating: "x", count: 100_000), among: [String(repeating: "x", count: 60)]))
        let many = (0..<30_000).map { "property\($0)" }
        XCTAssertEqual(Spelling.nearest("propertie77", among: many), "property77")
        XCTAssertNil(Spelling.nearest("nothing like that", among: many))
    }
}
