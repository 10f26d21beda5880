/// DISTINCT by properties of the objects themselves whose values are numbers, truth values, dates or texts: each value gets a
/// number, equal ones the same, in one pass with a table of hashes (query-language 11).
struct DistinctValues {
    /// By position of the key: the number of its value.
    private(set) var numbers: [UInt64] = []
    /// The positions at which a value was met first, in order.
    private(set) var firsts: [Int] = []

    /// The first of `keys` for each combination of values; nil where a property is of another kind, or a value has no word.
    static func first(of keys: [ObjectKey], by paths: [QueryPath], _ run: QueryRun) throws -> [ObjectKey]? {
        // Places in the table have 32 bits.
        if keys.count >= UInt32.max { return nil }
        let columns = try paths.compactMap { path -> Column? in
            guard let property = path.ownProperty, property.collection == nil else { return nil }
            let column = try run.column(property)
            switch column.type {
            case .int, .bool, .float, .double, .timestamp: return column
            case .string: return column.isEnumerated ? nil : column
            default: return nil
            }
        }
        if columns.count < paths.count { return nil }
        var result: DistinctValues?
        for column in columns {
            guard let values = try DistinctValues(keys, column, run) else { return nil }
            result = result.map { DistinctValues($0, values) } ?? values
        }
        return result.map { $0.firsts.map { keys[$0] } }
    }

    private init?(_ keys: [ObjectKey], _ column: Column, _ run: QueryRun) throws {
        numbers.reserveCapacity(keys.count)
        let table = run.frames[0].table
        if column.type == .string {
            number(try SortTexts(keys, column, table, run.storage))
        } else {
            guard let words = try SortWords(keys, column, table) else { return nil }
            number(words)
        }
    }

    /// The combinations of two values.
    private init(_ a: DistinctValues, _ b: DistinctValues) {
        numbers.reserveCapacity(a.numbers.count)
        var table = HashTable()
        for position in a.numbers.indices {
            let pair = a.numbers[position] << 32 | b.numbers[position]
            add(position, table.place(pair, position) { a.numbers[$0] << 32 | b.numbers[$0] == pair })
        }
    }

    private mutating func number(_ words: SortWords) {
        var isNull: [Bool] = []
        if !words.nulls.isEmpty {
            isNull = [Bool](repeating: false, count: words.words.count)
            for position in words.nulls { isNull[position] = true }
        }
        var table = HashTable()
        for position in words.words.indices {
            // Null has a word that others may have too.
            let word = words.words[position], isNullHere = !isNull.isEmpty && isNull[position]
            add(
                position,
                table.place(word ^ (isNullHere ? 0x5555_5555 : 0), position) {
                    words.words[$0] == word && (isNull.isEmpty || isNull[$0] == isNullHere)
                })
        }
    }

    private mutating func number(_ texts: SortTexts) {
        var table = HashTable()
        for position in 0..<texts.count {
            let bytes = texts.bytes(position)
            add(
                position,
                table.place(bytes, position) {
                    let other = texts.bytes($0)
                    guard let bytes, let other else { return bytes == nil && other == nil }
                    return ValueOrder.equal(bytes, other)
                })
        }
    }

    @inline(__always)
    private mutating func add(_ position: Int, _ found: (number: Int, isNew: Bool)) {
        numbers.append(UInt64(found.number))
        if found.isNew { firsts.append(position) }
    }

    /// Which value was met where first. The hash has a seed of its own, so that no file can be made whose values all collide.
    private struct HashTable {
        /// Upper half of the hash, and number + 1; 0: free.
        private var slots = [UInt64](repeating: 0, count: 1024)
        /// By number.
        private var hashes: [UInt64] = [], positions: [Int] = []
        private let seed = UInt64.random(in: .min ... .max), factor = UInt64.random(in: .min ... .max) | 1

        @inline(__always)
        private func mixed(_ a: UInt64, _ b: UInt64) -> UInt64 {
            let product = (a ^ seed).multipliedFullWidth(by: (b ^ factor) | 1)
            return product.high ^ product.low
        }

        @inline(__always)
        mutating func place(_ word: UInt64, _ position: Int, _ isEqual: (Int) -> Bool) -> (number: Int, isNew: Bool) {
            place(hash: mixed(word, 0x9E37_79B9_7F4A_7C15), position, isEqual)
        }

        @inline(__always)
        mutating func place(_ bytes: UnsafeRawBufferPointer?, _ position: Int, _ isEqual: (Int) -> Bool) -> (
            number: Int, isNew: Bool
        ) {
            var hash = UInt64(truncatingIfNeeded: bytes?.count ?? -1)
            if let bytes, let p = bytes.baseAddress {
                var i = 0
                while i &+ 8 <= bytes.count {
                    hash = mixed(hash, p.loadUnaligned(fromByteOffset: i, as: UInt64.self))
                    i &+= 8
                }
                var rest: UInt64 = 0
                while i < bytes.count {
                    rest = rest << 8 | UInt64(p.load(fromByteOffset: i, as: UInt8.self))
                    i &+= 1
                }
                hash = mixed(hash, rest)
            }
            return place(hash: mixed(hash, 0x9E37_79B9_7F4A_7C15), position, isEqual)
        }

        /// - Parameter isEqual: whether the value at a position equals the one that is looked for.
        @inline(__always)
        private mutating func place(hash: UInt64, _ position: Int, _ isEqual: (Int) -> Bool) -> (number: Int, isNew: Bool) {
            let mask = slots.count &- 1, upper = hash & 0xFFFF_FFFF_0000_0000
            var i = Int(truncatingIfNeeded: hash) & mask
            while slots[i] != 0 {
                let number = Int(slots[i] & 0xFFFF_FFFF) &- 1
                if slots[i] & 0xFFFF_FFFF_0000_0000 == upper && isEqual(positions[number]) { return (number, false) }
                i = (i &+ 1) & mask
            }
            hashes.append(hash)
            positions.append(position)
            slots[i] = upper | UInt64(positions.count)
            if positions.count &* 2 > slots.count { grow() }
            return (positions.count &- 1, true)
        }

        @inline(never)
        private mutating func grow() {
            slots = [UInt64](repeating: 0, count: slots.count * 2)
            let mask = slots.count - 1
            for (number, hash) in hashes.enumerated() {
                var i = Int(truncatingIfNeeded: hash) & mask
                while slots[i] != 0 { i = (i + 1) & mask }
                slots[i] = hash & 0xFFFF_FFFF_0000_0000 | UInt64(number + 1)
            }
        }
    }
}
