import SharedStore
import XCTest

/// The tokenizer and the query text, by the rules of file-format-2 7.10.
final class FullTextTokenizerTests: XCTestCase {
    private func tokens(_ text: String) -> Set<String> {
        Set(FullTextTokenizer.tokens(text).map { String(decoding: $0, as: UTF8.self) })
    }

    func testLettersBecomeLowerCaseAndEverythingElseSeparates() {
        XCTAssertEqual(tokens("Hello, hello World_42!"), ["hello", "world", "42"])
        XCTAssertEqual(tokens(""), [])
        XCTAssertEqual(tokens(" \t-*."), [])
        XCTAssertEqual(tokens("a\u{0}b"), ["a", "b"])
    }

    func testAccentsFallButTheSixLettersOfTheNorthStay() {
        XCTAssertEqual(tokens("ÀÁÂÃÄ Ç ÈÉÊË ÌÍÎÏ Ñ ÒÓÔÕÖ ÙÚÛÜ Ý"), ["aaaaa", "c", "eeee", "iiii", "n", "ooooo", "uuuu", "y"])
        XCTAssertEqual(tokens("àáâãä ç èéêë ìíîï ñ òóôõö ùúûü ý"), ["aaaaa", "c", "eeee", "iiii", "n", "ooooo", "uuuu", "y"])
        XCTAssertEqual(tokens("Å å Æ Ð ð Ø Þ þ straße"), ["å", "æ", "ð", "ø", "þ", "straße"])
    }

    func testSignsBetweenLettersOfLatin1AreSkippedAndOtherScriptsSeparate() {
        XCTAssertEqual(tokens("3×4 1÷2"), ["34", "12"])
        XCTAssertEqual(tokens("×"), [""])
        XCTAssertEqual(tokens("aÿb cžd e€f g😀h iżj"), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
    }

    func testATokenHasAtMost64BytesAndNoHalfLetter() {
        XCTAssertEqual(tokens(String(repeating: "a", count: 70)), [String(repeating: "a", count: 64)])
        XCTAssertEqual(tokens(String(repeating: "a", count: 63) + "øø"), [String(repeating: "a", count: 63)])
        XCTAssertEqual(tokens(String(repeating: "a", count: 62) + "øø"), [String(repeating: "a", count: 62) + "ø"])
    }

    func testBytesThatAreNoTextSeparate() {
        for bad: [UInt8] in [[0xFF], [0xC3], [0x80], [0xE2, 0x82], [0xF0, 0x9F]] {
            let text = Array("ab".utf8) + bad + Array(" cd".utf8)
            XCTAssertEqual(text.withUnsafeBytes { FullTextTokenizer.tokens($0) }, [Array("ab".utf8), Array("cd".utf8)], "\(bad)")
        }
    }

    func testQueriesThatCannotBeAnsweredAreRefused() {
        for text in ["", "   ", "a.b", "-", "*", "-ab*", "word -word", "wor* -wor", "€"] {
            XCTAssertThrowsError(try FullTextQuery(text), text) { XCTAssertTrue($0 is FullTextQueryError) }
        }
    }

    func testAQueryMatchesByWordsBeginningsAndExclusions() throws {
        let text = FullTextTokenizer.tokens("The quick brown fox")
        for hit in ["quick", "QUICK the", "qui* fox", "-dog", "brown -dog", "th*"] {
            XCTAssertTrue(try FullTextQuery(hit).matches(text), hit)
        }
        for miss in ["qui", "quick dog", "-fox", "the -fox", "quicker*"] {
            XCTAssertFalse(try FullTextQuery(miss).matches(text), miss)
        }
    }
}
