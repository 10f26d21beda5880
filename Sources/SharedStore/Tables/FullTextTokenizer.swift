/// Cuts a text into the words of a full-text index (file-format-2 7.10): lower case, without most accents, 64 bytes at most.
public enum FullTextTokenizer {
    static let tokenByteCountMax = 64

    /// What a letter from U+00C0 to U+00FE becomes, by its low 5 bits, upper and lower case alike: an ASCII letter,
    /// nothing (0), or itself in lower case as two bytes (1).
    private static let latin: [UInt8] =
        Array("aaaaa".utf8) + [1, 1] + Array("ceeeeiiii".utf8)
        + [1] + Array("nooooo".utf8) + [0, 1] + Array("uuuuy".utf8) + [1, 1]

    /// The distinct words of `text`, in no order.
    public static func tokens(_ text: String) -> Set<[UInt8]> {
        var text = text
        return text.withUTF8 { tokens(UnsafeRawBufferPointer($0)) }
    }

    /// The distinct words of the UTF-8 bytes `text`, in no order.
    public static func tokens(_ text: UnsafeRawBufferPointer) -> Set<[UInt8]> {
        var found: Set<[UInt8]> = []
        var token: [UInt8] = []
        var isInWord = false
        var i = 0
        func endWord() {
            if isInWord { found.insert(token) }
            token.removeAll(keepingCapacity: true)
            isInWord = false
        }
        while i < text.count {
            let byte = text[i]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                isInWord = true
                if token.count < tokenByteCountMax { token.append(byte < 0x5B && byte > 0x40 ? byte + 0x20 : byte) }
                i += 1
            case 0xC0...0xDF where i + 1 < text.count && text[i + 1] & 0xC0 == 0x80:
                let codePoint = UInt32(byte & 0x1F) << 6 | UInt32(text[i + 1] & 0x3F)
                if codePoint >= 0xC0 && codePoint < 0xFF {
                    isInWord = true
                    append(codePoint, to: &token)
                } else {
                    endWord()
                }
                i += 2
            default:
                endWord()
                i += sequenceLength(text, i)
            }
        }
        endWord()
        return found
    }

    private static func append(_ codePoint: UInt32, to token: inout [UInt8]) {
        switch latin[Int(codePoint & 0x1F)] {
        case 0: break
        case 1:
            if token.count + 1 < tokenByteCountMax {
                let lower = codePoint == 0xDF ? codePoint : codePoint | 0x20  // ß has no upper-case form here
                token.append(UInt8(0xC0 | lower >> 6))
                token.append(UInt8(0x80 | lower & 0x3F))
            }
        case let letter:
            if token.count < tokenByteCountMax { token.append(letter) }
        }
    }

    /// Bytes of the sequence that is skipped as a separator: one for ASCII and for what is no UTF-8.
    private static func sequenceLength(_ text: UnsafeRawBufferPointer, _ i: Int) -> Int {
        let wanted = text[i] >= 0xF0 ? 4 : text[i] >= 0xE0 ? 3 : 1
        var length = 1
        while length < wanted && i + length < text.count && text[i + length] & 0xC0 == 0x80 { length += 1 }
        return length
    }
}

/// A full-text search that cannot be carried out, with what is wrong with its text.
public struct FullTextQueryError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Names the part of the text at fault and what to write instead.
    public let reason: String
    public var description: String { "full-text search: \(reason)" }
}

/// A full-text search: words that must be there, words that must not, and beginnings of words that must be there.
///
/// The text is cut at white space: `word`, `-word`, `wor*`. Each piece must give exactly one word (file-format-2 7.10).
public struct FullTextQuery: Equatable, Sendable {
    /// Words that must be there, in the form in which the index holds them.
    public private(set) var included: Set<[UInt8]> = []
    /// Beginnings of words; each must be that of at least one.
    public private(set) var prefixes: Set<[UInt8]> = []
    /// Words that must not be there.
    public private(set) var excluded: Set<[UInt8]> = []

    /// - Throws: `FullTextQueryError` where a piece gives no word or several, excludes the beginning of a word, or is wanted and
    ///   excluded; also where there is no word at all.
    public init(_ text: String) throws {
        for piece in text.utf8.split(whereSeparator: { $0 == 32 || $0 >= 9 && $0 <= 13 }) {
            let isExcluded = piece.first == UInt8(ascii: "-"), isPrefix = piece.last == UInt8(ascii: "*")
            let shown = String(decoding: Array(piece), as: UTF8.self)
            let tokens = Array(piece).withUnsafeBytes { FullTextTokenizer.tokens($0) }
            guard tokens.count == 1, let token = tokens.first else {
                throw FullTextQueryError(
                    reason: "\"\(shown)\" gives \(tokens.count) words, each part must give one; separate words by spaces")
            }
            if isExcluded && isPrefix {
                throw FullTextQueryError(reason: "\"\(shown)\": a beginning of a word cannot be excluded; write the whole word")
            }
            if isExcluded { excluded.insert(token) } else if isPrefix { prefixes.insert(token) } else { included.insert(token) }
        }
        if included.isEmpty && prefixes.isEmpty && excluded.isEmpty {
            throw FullTextQueryError(reason: "there is no word to look for")
        }
        if let both = included.union(prefixes).intersection(excluded).first {
            throw FullTextQueryError(
                reason: "\"\(String(decoding: both, as: UTF8.self))\" is both wanted and excluded; remove one of the two")
        }
    }

    /// True where a text with these words is a hit: what the index finds, without the index.
    public func matches(_ tokens: Set<[UInt8]>) -> Bool {
        included.isSubset(of: tokens) && excluded.isDisjoint(with: tokens)
            && prefixes.allSatisfy { prefix in tokens.contains { $0.starts(with: prefix) } }
    }
}
