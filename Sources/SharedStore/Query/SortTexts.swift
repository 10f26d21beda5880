/// Texts of many objects, to be sorted by their bytes (query-language 11).
///
/// Eight bytes of a text, the first one highest, are a word; texts are sorted by their first words, those with equal ones by the
/// next, and so on, without being compared. Behind the end of a text there are zeros: of texts that differ in nothing else the
/// shorter one is first.
struct SortTexts {
    /// By position of the key.
    private var texts: [Text] = []
    private var hasOthers = false

    private struct Text {
        var start: UnsafeRawPointer
        var count: Int
        static let null = -1, missing = -2

        /// The word of the bytes from `offset` on, which is not behind the end.
        @inline(__always)
        func word(_ offset: Int) -> UInt64 {
            let rest = count &- offset
            let p = start + offset
            if rest >= 8 { return p.loadUnaligned(as: UInt64.self).bigEndian }
            var word: UInt64 = 0, i = 0
            while i < rest {
                word = word << 8 | UInt64(p.load(fromByteOffset: i, as: UInt8.self))
                i &+= 1
            }
            return rest <= 0 ? 0 : word << UInt64((8 &- rest) &* 8)
        }
        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
    }

    /// The texts in a column that is not enumerated; valid as long as the version and `storage`.
    init(_ keys: [ObjectKey], _ column: Column, _ table: Table, _ storage: QueryStorage) throws {
        texts.reserveCapacity(keys.count)
        let nowhere = UnsafeRawPointer(table.memory.state)
        var hasOthers = false
        try SortWords.forEachValue(StringLeaf.self, keys, column, table) { position, leaf, row in
            guard let leaf else {
                texts.append(Text(start: nowhere, count: Text.missing))
                hasOthers = true
                return
            }
            guard case .string(let bytes) = try storage.string(leaf, row) else {
                texts.append(Text(start: nowhere, count: Text.null))
                hasOthers = true
                return
            }
            texts.append(Text(start: bytes.baseAddress ?? nowhere, count: bytes.count))
        }
        self.hasOthers = hasOthers
    }

    // MARK: Sorting

    /// `positions` in the order of their texts, ties as they were.
    func sorted(_ positions: [Int], isAscending: Bool) -> [Int] {
        var entries: [SortWords.Entry] = [], others = SortOthers()
        entries.reserveCapacity(positions.count)
        let flip: UInt64 = isAscending ? 0 : .max
        for position in positions {
            let text = texts[position]
            if hasOthers && text.count < 0 {
                others.add(position, isMissing: text.count == Text.missing)
            } else {
                entries.append(SortWords.Entry(word: text.word(0) ^ flip, position: position))
            }
        }
        SortWords.sort(&entries)
        refine(&entries, 8, flip)
        return others.around(entries, isAscending: isAscending)
    }

    /// Texts that agree in so many bytes are compared with each other.
    private static let wordsMax = 8
    /// So few are compared with each other, in place.
    private static let insertionCountMax = 12

    /// Puts entries whose words up to `offset` are sorted into order where these are equal.
    private func refine(_ entries: inout [SortWords.Entry], _ offset: Int, _ flip: UInt64) {
        var start = 0
        while start < entries.count {
            let word = entries[start].word, count = texts[entries[start].position].count
            var end = start &+ 1
            // Most often equal words are equal texts.
            var isDone = count <= offset
            while end < entries.count && entries[end].word == word {
                if isDone && texts[entries[end].position].count != count { isDone = false }
                end &+= 1
            }
            if end &- start > 1 && !isDone { refine(&entries, start..<end, offset, flip) }
            start = end
        }
    }

    /// Sorts entries whose texts agree in the first `offset` bytes, as far as they go.
    private func refine(_ entries: inout [SortWords.Entry], _ range: Range<Int>, _ offset: Int, _ flip: UInt64) {
        if range.count <= SortTexts.insertionCountMax { return insertionSort(&entries, range, flip) }
        var part = Array(entries[range])
        if offset >= 8 &* SortTexts.wordsMax {
            // Swift's sort is stable.
            part.sort { isBefore($0, $1, flip) }
        } else {
            // Those that end here have nothing but zeros in front of the rest: they are sorted by their lengths.
            let ended = part.filter { texts[$0.position].count <= offset }
            var rest: [SortWords.Entry] = []
            if ended.count < part.count {
                rest = part.filter { texts[$0.position].count > offset }
                for i in rest.indices { rest[i].word = texts[rest[i].position].word(offset) ^ flip }
                SortWords.sort(&rest)
                refine(&rest, offset &+ 8, flip)
            }
            let byLength = ended.sorted {
                let a = texts[$0.position].count, b = texts[$1.position].count
                return flip == 0 ? a < b : a > b
            }
            part = flip == 0 ? byLength + rest : rest + byLength
        }
        entries.replaceSubrange(range, with: part)
    }

    private func insertionSort(_ entries: inout [SortWords.Entry], _ range: Range<Int>, _ flip: UInt64) {
        for i in range.dropFirst() {
            let entry = entries[i]
            var j = i
            while j > range.lowerBound && isBefore(entry, entries[j &- 1], flip) {
                entries[j] = entries[j &- 1]
                j &-= 1
            }
            entries[j] = entry
        }
    }

    @inline(__always)
    private func isBefore(_ a: SortWords.Entry, _ b: SortWords.Entry, _ flip: UInt64) -> Bool {
        let order = ValueOrder.compare(texts[a.position].bytes, texts[b.position].bytes)
        return flip == 0 ? order < 0 : order > 0
    }

    // MARK: Equal texts

    /// Number of keys.
    var count: Int { texts.count }

    /// The bytes of the text at a position, nil for null.
    @inline(__always)
    func bytes(_ position: Int) -> UnsafeRawBufferPointer? { texts[position].count < 0 ? nil : texts[position].bytes }
}
