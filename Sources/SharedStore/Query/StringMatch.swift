import Foundation

/// How strings and data are compared by the operators of the query language (query-language 5).
///
/// Plain comparisons look at bytes. `[c]` alone makes ASCII letters and the Latin-1 letters U+00C0-U+00DE equal to their lower-
/// case forms (all but the multiplication sign), nothing else. `[d]` and `[cd]` compare like Foundation does, over all of
/// Unicode.
enum StringMatch {
    typealias Bytes = UnsafeRawBufferPointer

    /// The lower-case form of `byte`, which follows `previous`.
    @inline(__always)
    static func fold(_ byte: UInt8, after previous: UInt8) -> UInt8 {
        if byte &- 0x41 < 26 { return byte | 0x20 }
        // C3 80 - C3 9E in UTF-8; C3 97 is the multiplication sign.
        if previous == 0xC3, byte >= 0x80, byte <= 0x9E, byte != 0x97 { return byte | 0x20 }
        return byte
    }

    /// True where `text` has the bytes of `folded`, which is in lower case, from `start` on, both in lower case.
    @inline(__always)
    private static func hasFolded(_ text: Bytes, _ start: Int, _ folded: Bytes) -> Bool {
        var previous: UInt8 = start > 0 ? text[start &- 1] : 0
        for i in 0..<folded.count {
            let byte = text[start &+ i]
            if fold(byte, after: previous) != folded[i] { return false }
            previous = byte
        }
        return true
    }

    static func folded(_ bytes: Bytes) -> [UInt8] {
        var previous: UInt8 = 0
        return bytes.map { byte in
            defer { previous = byte }
            return fold(byte, after: previous)
        }
    }

    /// Compares without regard to case; `folded` is in lower case already.
    @inline(__always)
    static func equalsFolded(_ text: Bytes, _ folded: Bytes) -> Bool { text.count == folded.count && hasFolded(text, 0, folded) }

    static func containsFolded(_ text: Bytes, _ folded: Bytes) -> Bool {
        if folded.count > text.count { return false }
        for start in 0...(text.count - folded.count) where hasFolded(text, start, folded) { return true }
        return false
    }

    static func beginsFolded(_ text: Bytes, _ folded: Bytes) -> Bool { text.count >= folded.count && hasFolded(text, 0, folded) }
    static func endsFolded(_ text: Bytes, _ folded: Bytes) -> Bool {
        text.count >= folded.count && hasFolded(text, text.count - folded.count, folded)
    }

    static func isText(_ bytes: Bytes) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

    // MARK: Bytes as they are

    @inline(__always)
    static func begins(_ text: Bytes, _ part: Bytes) -> Bool {
        guard text.count >= part.count else { return false }
        guard part.count > 0, let a = text.baseAddress, let b = part.baseAddress else { return true }
        return memcmp(a, b, part.count) == 0
    }

    @inline(__always)
    static func ends(_ text: Bytes, _ part: Bytes) -> Bool {
        guard text.count >= part.count else { return false }
        guard part.count > 0, let a = text.baseAddress, let b = part.baseAddress else { return true }
        return memcmp(a + (text.count - part.count), b, part.count) == 0
    }

    @inline(__always)
    static func contains(_ text: Bytes, _ part: Bytes) -> Bool {
        guard part.count > 0 else { return true }
        guard text.count >= part.count, var a = text.baseAddress, let b = part.baseAddress else { return false }
        let first = Int32(part[0])
        var rest = text.count &- part.count &+ 1
        while rest > 0, let found = memchr(a, first, rest) {
            if memcmp(found, b, part.count) == 0 { return true }
            rest &-= UnsafeRawPointer(found) - a &+ 1
            a = UnsafeRawPointer(found) + 1
        }
        return false
    }

    // MARK: LIKE

    /// The whole text against a pattern: `*` for any run of characters, `?` for exactly one code point; a run of several `*` at
    /// the end of the pattern stands for at least one character, elsewhere it is like one. With `isFolded` the pattern is in
    /// lower case and case makes no difference.
    static func like(_ text: Bytes, _ pattern: Bytes, isFolded: Bool) -> Bool {
        let star = UInt8(ascii: "*"), question = UInt8(ascii: "?")
        var i = 0, j = 0
        // Where the last star stood, and how much of the text it has swallowed up to now.
        var restartPattern = -1, restartText = 0
        func next(_ i: Int) -> Int {
            var end = i + 1
            while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
            return end
        }
        while true {
            if j < pattern.count, pattern[j] == star {
                var stars = 0
                while j < pattern.count, pattern[j] == star {
                    stars += 1
                    j += 1
                }
                if stars > 1, j == pattern.count { return i < text.count }
                restartPattern = j
                restartText = i
                continue
            }
            if i < text.count, j < pattern.count {
                if pattern[j] == question {
                    i = next(i)
                    j += 1
                    continue
                }
                let byte = isFolded ? fold(text[i], after: i > 0 ? text[i - 1] : 0) : text[i]
                if byte == pattern[j] {
                    i += 1
                    j += 1
                    continue
                }
            } else if i == text.count, j == pattern.count {
                return true
            }
            // A mismatch: the last star swallows one more character.
            if restartPattern < 0 || restartText >= text.count { return false }
            restartText = next(restartText)
            i = restartText
            j = restartPattern
        }
    }

    // MARK: Without accents

    /// Comparisons with `[d]`, by Foundation.
    static func matchesWithoutAccents(_ text: Bytes, _ operation: QuerySyntax.Operator, _ part: String, ignoresCase: Bool) -> Bool
    {
        let text = String(decoding: text, as: UTF8.self)
        var options: String.CompareOptions = ignoresCase ? [.diacriticInsensitive, .caseInsensitive] : .diacriticInsensitive
        switch operation {
        case .equal, .notEqual: return text.compare(part, options: options) == .orderedSame
        case .beginsWith: options.insert(.anchored)
        case .endsWith: options.formUnion([.anchored, .backwards])
        default: break
        }
        return text.range(of: part, options: options) != nil
    }
}
