@testable import Notifier
import XCTest

final class FIFOPathTests: XCTestCase {
    /// The vectors of coordination.md 1.2, made with libstdc++ itself, and one with every length of the tail.
    func testHashIsTheOneOfLibstdcxx() {
        let vectors: [(String, UInt64)] = [
            ("", 6_142_509_188_972_423_790),
            ("a", 4_993_892_634_952_068_459),
            ("12345678", 10_113_836_418_918_046_885),
            ("/tmp/x.realm", 1_975_262_354_463_152_166),
            ("/data/default.realm", 7_418_403_218_315_409_449),
            ("/home/u/app/test.realm", 8_915_861_877_737_700_074),
        ]
        for (text, hash) in vectors { XCTAssertEqual(FIFOPath.hash(of: text), hash, "of '\(text)'") }
    }

    func testCandidatesComeInTheOrderThatAllParticipantsUse() {
        let candidates = FIFOPath.candidates(database: "/tmp/x.realm", fallbackDirectory: "/var/fifos")
        XCTAssertEqual(Array(candidates.prefix(2)), ["/tmp/x.realm.note", "/var/fifos/realm_1975262354463152166.note"])
        XCTAssertEqual(FIFOPath.candidates(database: "/tmp/x.realm", fallbackDirectory: "/var/fifos/")[1], candidates[1])
        let expected = FIFOPath.temporaryDirectory == nil ? 1 : 2
        XCTAssertEqual(FIFOPath.candidates(database: "/tmp/x.realm", fallbackDirectory: nil).count, expected)
    }
}
