/// A full-text search of the query language: words that must be there, words that must not, beginnings of words (query-language
/// 5).
///
/// Unlike `FullTextQuery` it takes the texts of the language as they come: a part without letters finds nothing, `-` alone means
/// nothing.
public struct TextSearch: Hashable, Sendable {
    /// Words that must be there, in the form in which the index holds them (file-format-2 7.10).
    public private(set) var words: Set<[UInt8]> = []
    /// Beginnings of words; each must be that of at least one.
    public private(set) var prefixes: Set<[UInt8]> = []
    /// Words that must not be there.
    public private(set) var excluded: Set<[UInt8]> = []
    /// A wanted part has no letters that the index knows: nothing is found.
    public private(set) var findsNothing = false

    /// Throws `QueryError` of kind `text` where there is nothing to search for or where the parts contradict each other.
    public init(_ text: String) throws {
        let parts = text.utf8.split { $0 == 32 || $0 >= 9 && $0 <= 13 }
        if parts.isEmpty { throw QueryError(.text, "there is nothing to search for") }
        for part in parts {
            let isExcluded = part.first == UInt8(ascii: "-"), isPrefix = part.last == UInt8(ascii: "*")
            let tokens = Array(part).withUnsafeBytes { FullTextTokenizer.tokens($0) }
            guard tokens.count <= 1, !Array(part).withUnsafeBytes(TextSearch.hasGap) else {
                throw QueryError(
                    .text,
                    "'\(String(decoding: Array(part), as: UTF8.self))' holds other characters than letters and digits;"
                        + " separate words by blanks"
                )
            }
            guard let token = tokens.first else {
                if !isExcluded { findsNothing = true }
                continue
            }
            if isExcluded { excluded.insert(token) } else if isPrefix { prefixes.insert(token) } else { words.insert(token) }
        }
        if let both = words.union(prefixes).intersection(excluded).first {
            throw QueryError(.text, "'\(String(decoding: both, as: UTF8.self))' is both wanted and excluded")
        }
    }

    /// Letters on both sides of something that separates words: also where the same word stands twice (`fox-fox`), of which the
    /// set of tokens shows one.
    private static func hasGap(_ part: UnsafeRawBufferPointer) -> Bool {
        var seen = 0, start = 0
        // Pieces between ASCII separators; what separates beyond ASCII gives two tokens or equal ones, which are rare enough to
        // pass.
        for i in 0...part.count {
            let isInside =
                i < part.count
                && (part[i] >= 0x80 || part[i] >= 48 && part[i] <= 57 || part[i] | 0x20 >= 97 && part[i] | 0x20 <= 122)
            if isInside { continue }
            if i > start, !FullTextTokenizer.tokens(UnsafeRawBufferPointer(rebasing: part[start..<i])).isEmpty { seen += 1 }
            start = i + 1
        }
        return seen > 1
    }

    /// True where a text with these words is a hit.
    func matches(_ tokens: Set<[UInt8]>) -> Bool {
        !findsNothing && words.isSubset(of: tokens) && excluded.isDisjoint(with: tokens)
            && prefixes.allSatisfy { prefix in tokens.contains { $0.starts(with: prefix) } }
    }

    func matches(_ text: UnsafeRawBufferPointer) -> Bool { matches(FullTextTokenizer.tokens(text)) }

    /// True where an index can list the hits without looking at every object.
    var isSelective: Bool { findsNothing || !words.isEmpty || !prefixes.isEmpty }

    /// The hits by the index, ascending.
    func find(in index: FullTextIndex) throws -> [ObjectKey] {
        if findsNothing { return [] }
        var result: Set<ObjectKey>?
        func narrow(_ keys: [ObjectKey]) { result = result?.intersection(keys) ?? Set(keys) }
        for word in words { narrow(try index.find(word: word)) }
        for prefix in prefixes { narrow(try index.find(prefix: prefix)) }
        var keys = result ?? []
        for word in excluded where !keys.isEmpty { keys.subtract(try index.find(word: word)) }
        return keys.sorted()
    }
}
