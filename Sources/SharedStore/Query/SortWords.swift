/// Sorting by properties whose values are numbers, truth values, dates or texts: of the objects themselves, or of what single
/// links lead to.
///
/// Each value becomes a word of 64 bits such that words compare as the values do (query-language 11): to compare two is one
/// instruction, and words can be sorted by their bytes, without comparing at all. Null has no word: it comes before everything,
/// NaN before all numbers; what lies behind a null link comes last. Texts are sorted in `SortTexts`.
struct SortWords {
    /// By position of the key.
    private(set) var words: [UInt64]
    /// Positions whose value is null, in order.
    private(set) var nulls: [Int] = []
    /// Positions behind a null link, in order.
    private var missing: [Int] = []

    struct Entry {
        var word: UInt64
        var position: Int
    }

    /// `keys` in the order of `orderings`, ties as they were; nil where a property is of another kind, or a value has no word.
    static func sorted(_ keys: [ObjectKey], by orderings: [QueryOrdering.Key], _ run: QueryRun) throws -> [ObjectKey]? {
        let sources = try orderings.compactMap { try Source($0.path, run) }
        if sources.count < orderings.count { return nil }
        // Sorting is stable, so the last key is sorted by first.
        var positions = Array(keys.indices)
        for (ordering, source) in zip(orderings, sources).reversed() {
            let targets = try source.targets(keys)
            if source.column.type == .string {
                let texts = try SortTexts(targets, source.column, source.table, run.storage)
                positions = texts.sorted(positions, isAscending: ordering.isAscending)
            } else {
                guard let words = try SortWords(targets, source.column, source.table) else { return nil }
                positions = words.sorted(positions, isAscending: ordering.isAscending)
            }
        }
        return positions.map { keys[$0] }
    }

    /// Where the values are that a path leads to.
    private struct Source {
        private let table0: Table
        private let hops: [(link: Column, target: Table)]
        let column: Column
        /// Of the column.
        var table: Table { hops.last?.target ?? table0 }

        /// Nil for a path that is no property behind single links, if any, or one of another kind.
        init?(_ path: QueryPath, _ run: QueryRun) throws {
            guard path.operation == .none, case .value(let property, let nested) = path.end, nested.isEmpty,
                property.collection == nil, path.hops.allSatisfy({ $0.property.collection == nil })
            else { return nil }
            let column = try run.column(property)
            switch column.type {
            case .int, .bool, .float, .double, .timestamp: break
            case .string where !column.isEnumerated: break
            default: return nil
            }
            self.column = column
            table0 = run.frames[0].table
            hops = try path.hops.map { (try run.column($0.property), try run.table($0.property.target)) }
        }

        /// The objects that have the values, null behind a null link.
        func targets(_ keys: [ObjectKey]) throws -> [ObjectKey] {
            var targets = keys, table = table0
            for (link, target) in hops {
                var next = [ObjectKey](repeating: .null, count: keys.count)
                try SortWords.forEachValue(LinkLeaf.self, targets, link, table) { position, leaf, row in
                    if let leaf {
                        let key = try leaf.value(row)
                        if key.rawValue >= 0 { next[position] = key }
                    }
                }
                targets = next
                table = target
            }
            return targets
        }
    }

    // MARK: Words

    init?(_ keys: [ObjectKey], _ column: Column, _ table: Table) throws {
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
        var isComplete = true
        try SortWords.forEachValue(type, keys, column, table) { position, leaf, row in
            guard let leaf else {
                missing.append(position)
                return
            }
            guard let word = try word(leaf.value(row)) else {
                nulls.append(position)
                return
            }
            if word == SortWords.none && L.self == TimestampLeaf.self { isComplete = false }
            words[position] = word
        }
        return isComplete
    }

    /// Calls `body` with the leaf and the row of each object's value, in the order of `keys`; without a leaf where there is no
    /// object. Quick where neighbours follow each other.
    @inline(__always)
    static func forEachValue<L: Leaf>(
        _ type: L.Type, _ keys: [ObjectKey], _ column: Column, _ table: Table, _ body: (Int, L?, Int) throws -> Void
    ) throws {
        var cluster: ClusterLeaf?
        var values: L?
        var row = 0
        for position in keys.indices {
            let key = keys[position]
            if let found = cluster?.row(of: key, guess: row) {
                row = found
            } else {
                guard key.rawValue >= 0, let (leaf, found) = try table.seek(key), leaf.key(found) == key else {
                    try body(position, nil, 0)
                    continue
                }
                cluster = leaf
                values = try leaf.leaf(L.self, column)
                row = found
            }
            try body(position, values, row)
            row &+= 1
        }
    }

    // MARK: Sorting

    private func sorted(_ positions: [Int], isAscending: Bool) -> [Int] {
        var entries: [Entry] = [], others = SortOthers()
        entries.reserveCapacity(positions.count - nulls.count - missing.count)
        let flip: UInt64 = isAscending ? 0 : .max
        if nulls.isEmpty && missing.isEmpty {
            for position in positions { entries.append(Entry(word: words[position] ^ flip, position: position)) }
        } else {
            var hasWord = [Bool](repeating: true, count: words.count), isMissing = hasWord
            for position in nulls { (hasWord[position], isMissing[position]) = (false, false) }
            for position in missing { hasWord[position] = false }
            for position in positions {
                if hasWord[position] {
                    entries.append(Entry(word: words[position] ^ flip, position: position))
                } else {
                    others.add(position, isMissing: isMissing[position])
                }
            }
        }
        SortWords.sort(&entries)
        return others.around(entries, isAscending: isAscending)
    }

    /// Fewer are sorted by comparing.
    private static let byteSortCountMin = 512

    /// Sorts by word; entries with the same word stay in order.
    static func sort(_ entries: inout [Entry]) {
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

/// The positions that have no value to sort by.
struct SortOthers {
    private var nulls: [Int] = [], missing: [Int] = []

    /// - Parameter isMissing: behind a null link.
    mutating func add(_ position: Int, isMissing: Bool) {
        if isMissing { missing.append(position) } else { nulls.append(position) }
    }

    /// All positions, where those of `entries` are in order: null is below every value, what is missing above.
    func around(_ entries: [SortWords.Entry], isAscending: Bool) -> [Int] {
        var result: [Int] = []
        result.reserveCapacity(nulls.count + entries.count + missing.count)
        result += isAscending ? nulls : missing
        for entry in entries { result.append(entry.position) }
        result += isAscending ? missing : nulls
        return result
    }
}
