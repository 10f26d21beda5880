/// Sorting by properties of the objects themselves whose values are numbers, truth values or dates.
///
/// Each value becomes a word of 64 bits such that words compare as the values do (query-language 11): to compare two is one
/// instruction, and words can be sorted by their bytes, without comparing at all. Null has no word: it comes before everything,
/// NaN before all numbers.
struct SortWords {
    /// By position of the key.
    private var words: [UInt64]
    /// Positions whose value is null, in order.
    private var nulls: [Int] = []

    private struct Entry {
        var word: UInt64
        var position: Int
    }

    /// `keys` in the order of `orderings`, ties as they were; nil where a property is of another kind, or a value has no word.
    static func sorted(_ keys: [ObjectKey], by orderings: [QueryOrdering.Key], _ run: QueryRun) throws -> [ObjectKey]? {
        let columns = try orderings.compactMap { try column($0.path, run) }
        if columns.count < orderings.count { return nil }
        // Sorting is stable, so the last key is sorted by first.
        var positions = Array(keys.indices)
        for (ordering, column) in zip(orderings, columns).reversed() {
            guard let words = try SortWords(keys, column, run.frames[0].table) else { return nil }
            positions = words.sorted(positions, isAscending: ordering.isAscending)
        }
        return positions.map { keys[$0] }
    }

    private static func column(_ path: QueryPath, _ run: QueryRun) throws -> Column? {
        guard path.hops.isEmpty, path.operation == .none, case .value(let property, let nested) = path.end, nested.isEmpty,
            property.collection == nil
        else { return nil }
        switch property.type {
        case .int, .bool, .float, .double, .timestamp: return try run.column(property)
        default: return nil
        }
    }

    // MARK: Words

    private init?(_ keys: [ObjectKey], _ column: Column, _ table: Table) throws {
        words = [UInt64](repeating: 0, count: keys.count)
        let isComplete =
            switch column.type {
            case .int where column.isNullable: try fill(NullableIntLeaf.self, keys, column, table) { $0.map(SortWords.word) }
            case .int: try fill(IntLeaf.self, keys, column, table) { SortWords.word($0) }
            case .bool: try fill(BoolLeaf.self, keys, column, table) { $0.map { $0 ? 1 : 0 } }
            case .float: try fill(FloatLeaf.self, keys, column, table) { $0.map { SortWords.word(Double($0)) } }
            case .double: try fill(DoubleLeaf.self, keys, column, table) { $0.map(SortWords.word) }
            default: try fill(TimestampLeaf.self, keys, column, table) { $0.map(SortWords.word) }
            }
        if !isComplete { return nil }
    }

    /// The word of a date that has none; no other value has this one.
    private static let none = UInt64.max

    @inline(__always)
    private static func word(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) ^ 1 << 63 }

    @inline(__always)
    private static func word(_ value: Double) -> UInt64 {
        if value.isNaN { return 0 }
        let bits = value == 0 ? 0 : value.bitPattern
        return bits >> 63 != 0 ? ~bits : bits | 1 << 63
    }

    /// Seconds in 33 bits, that is from 1834 to 2106, and nanoseconds, which may be negative.
    @inline(__always)
    private static func word(_ value: Timestamp) -> UInt64 {
        let seconds = UInt64(bitPattern: value.seconds &+ 1 << 32)
        return seconds >> 33 != 0 ? none : seconds << 31 | UInt64(bitPattern: Int64(value.nanoseconds) &+ 1_000_000_000)
    }

    /// False where a value has no word.
    @inline(__always)
    private mutating func fill<L: Leaf>(
        _ type: L.Type, _ keys: [ObjectKey], _ column: Column, _ table: Table, _ word: (L.Element) -> UInt64?
    ) throws -> Bool {
        var cluster: ClusterLeaf?
        var values: L?
        var row = 0
        var isComplete = true
        for position in keys.indices {
            let key = keys[position]
            if let found = cluster?.row(of: key, guess: row) {
                row = found
            } else {
                guard let (leaf, found) = try table.seek(key), leaf.key(found) == key else {
                    throw QueryError(.property, "an object that was found is not in this version of the file")
                }
                cluster = leaf
                values = try leaf.leaf(L.self, column)
                row = found
            }
            guard let values, let word = try word(values.value(row)) else {
                nulls.append(position)
                row &+= 1
                continue
            }
            if word == SortWords.none && L.self == TimestampLeaf.self { isComplete = false }
            words[position] = word
            row &+= 1
        }
        return isComplete
    }

    // MARK: Sorting

    private func sorted(_ positions: [Int], isAscending: Bool) -> [Int] {
        var nullPositions: [Int] = [], entries: [Entry] = []
        entries.reserveCapacity(positions.count - nulls.count)
        let flip: UInt64 = isAscending ? 0 : .max
        if nulls.isEmpty {
            for position in positions { entries.append(Entry(word: words[position] ^ flip, position: position)) }
        } else {
            var isNull = [Bool](repeating: false, count: words.count)
            for position in nulls { isNull[position] = true }
            for position in positions {
                if isNull[position] {
                    nullPositions.append(position)
                } else {
                    entries.append(Entry(word: words[position] ^ flip, position: position))
                }
            }
        }
        SortWords.sort(&entries)
        let values = entries.map(\.position)
        return nullPositions.isEmpty ? values : isAscending ? nullPositions + values : values + nullPositions
    }

    /// Fewer are sorted by comparing.
    private static let byteSortCountMin = 512

    /// Sorts by word; entries with the same word stay in order.
    private static func sort(_ entries: inout [Entry]) {
        guard let first = entries.first?.word else { return }
        var last = first, differences: UInt64 = 0, isSorted = true
        for entry in entries {
            if entry.word < last { isSorted = false }
            differences |= entry.word ^ first
            last = entry.word
        }
        if isSorted { return }
        // Swift's sort is stable.
        if entries.count < byteSortCountMin { return entries.sort { $0.word < $1.word } }
        var others = entries
        for shift in stride(from: UInt64(0), to: 64, by: 8) where differences >> shift & 0xFF != 0 {
            distribute(entries, by: shift, into: &others)
            swap(&entries, &others)
        }
    }

    /// Puts the entries into the order of one byte of their words.
    private static func distribute(_ entries: [Entry], by shift: UInt64, into target: inout [Entry]) {
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 256) { next in
            next.initialize(repeating: 0)
            for entry in entries { next[Int(entry.word &>> shift & 0xFF)] &+= 1 }
            var start = 0
            for i in 0..<256 {
                let count = next[i]
                next[i] = start
                start &+= count
            }
            target.withUnsafeMutableBufferPointer { target in
                for entry in entries {
                    let byte = Int(entry.word &>> shift & 0xFF)
                    target[next[byte]] = entry
                    next[byte] &+= 1
                }
            }
        }
    }
}
