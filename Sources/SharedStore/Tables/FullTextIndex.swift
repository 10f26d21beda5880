/// The full-text index of a string column, for lookup: words to objects (file-format-2 7.6 and 7.10).
///
/// The tree is that of `SearchIndex`, except that a path goes on until the word ends: where an entry is a key or a list, the
/// chunks of the path are the whole word, and no object has to be looked at.
public struct FullTextIndex {
    private let memory: Memory
    /// Ref of the root node.
    public let root: Int
    private let table: ClusterTree

    /// The full-text index of `column`, or nil where it has none.
    public init?(_ table: Table, _ column: Column) throws {
        if !column.attributes.contains(.fullTextIndexed) { return nil }
        let ref = try table.indexRef(of: column)
        if ref == 0 { return nil }
        memory = table.memory
        root = ref
        self.table = table.tree
    }

    /// The objects whose text has the word, ascending. The word must be one as the tokenizer gives it.
    public func find(word: [UInt8]) throws -> [ObjectKey] {
        let entry = try word.withUnsafeBytes {
            try FullTextIndex.descend(memory, root, BytesIndexKey(word.isEmpty ? FullTextIndex.empty : $0))
        }
        var keys: [ObjectKey] = []
        try collect(entry, into: &keys)
        return keys
    }

    private static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) }

    /// The objects that the query asks for, ascending.
    public func find(_ query: FullTextQuery) throws -> [ObjectKey] {
        var result: Set<ObjectKey>?
        for word in query.included { result = narrowed(result, try find(word: word)) }
        for prefix in query.prefixes { result = narrowed(result, try find(prefix: prefix)) }
        var keys = try result ?? Set(allKeys())
        for word in query.excluded { keys.subtract(try find(word: word)) }
        return keys.sorted()
    }

    private func narrowed(_ keys: Set<ObjectKey>?, _ more: [ObjectKey]) -> Set<ObjectKey> {
        keys?.intersection(more) ?? Set(more)
    }

    private func allKeys() throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try table.forEachLeaf { leaf in
            for i in 0..<leaf.count { keys.append(leaf.key(i)) }
        }
        return keys
    }

    /// The objects with a word that begins with `prefix`, ascending.
    public func find(prefix: [UInt8]) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        var budget = memory.nodeCountMax
        var ref = root, offset = 0
        for _ in 0...SearchIndex.radixLevelsMax {
            let rest = prefix.count - offset
            if rest <= 4 {
                // The prefix ends in this chunk: everything from the prefix with zeros to the prefix with ones behind it. The
                // first byte is common to both ends, so the signed order of the chunks has the range in one piece.
                var low: UInt32 = 0
                for i in 0..<max(0, rest) { low |= UInt32(prefix[offset + i]) << UInt32(24 - 8 * i) }
                let open: UInt32 = rest >= 4 ? 0 : UInt32.max >> UInt32(8 * rest)
                let range = rest == 0 ? Int32.min...Int32.max : Int32(bitPattern: low)...Int32(bitPattern: low | open)
                try collect(memory.node(ref), range, FullTextIndex.levelsMax, &budget, &keys)
                break
            }
            let chunk = prefix.withUnsafeBytes { BytesIndexKey($0).chunk(offset) }
            guard let (element, node) = try SearchIndex.step(memory, ref, chunk), element & 1 == 0, node.hasContext else { break }
            ref = node.ref
            offset += 4
        }
        return Array(Set(keys)).sorted()
    }

    /// Levels of the radix tree, and inner nodes within them.
    private static let levelsMax = SearchIndex.radixLevelsMax + 2 * SearchIndex.innerLevelsMax

    /// Collects everything below the chunks of this level that are in `range`.
    private func collect(
        _ node: Node, _ range: ClosedRange<Int32>, _ levels: Int, _ budget: inout Int, _ keys: inout [ObjectKey]
    ) throws {
        budget -= 1
        if levels < 0 || budget < 0 { throw FormatError(ref: node.ref, "index is deeper or larger than the file can hold") }
        let chunks = try SearchIndex.checkedChunks(memory, node)
        for i in SearchIndex.lowerBound(chunks, range.lowerBound)..<chunks.count {
            let chunk = Int32(truncatingIfNeeded: chunks.unchecked(i))
            let element = node.unchecked(i + 1)
            if node.isInner {
                // The chunk is the largest one of the child.
                try collect(memory.node(Int(truncatingIfNeeded: element)), range, levels - 1, &budget, &keys)
                if chunk >= range.upperBound { break }
                continue
            }
            if chunk > range.upperBound { break }
            if element & 1 != 0 {
                keys.append(ObjectKey(Int64(bitPattern: UInt64(bitPattern: element) >> 1)))
                continue
            }
            let next = try memory.node(Int(truncatingIfNeeded: element))
            if next.hasContext {
                try collect(next, Int32.min...Int32.max, levels - 1, &budget, &keys)
            } else {
                budget -= 1
                try collect(.list(next.ref), into: &keys)
            }
        }
    }

    private func collect(_ entry: SearchIndex.Entry, into keys: inout [ObjectKey]) throws {
        switch entry {
        case .none: break
        case .single(let key): keys.append(key)
        case .list(let ref):
            try BPlusTree<KeyLeaf>(memory, ref).forEachLeaf { leaf, _ in
                for i in 0..<leaf.count { keys.append(leaf.unchecked(i)) }
            }
        }
    }

    /// Follows the chunks of a whole word. An entry counts only where the word ends: at its last chunk, or one behind.
    static func descend(_ memory: Memory, _ root: Int, _ key: BytesIndexKey) throws -> SearchIndex.Entry {
        let count = key.bytes?.count ?? 0
        var ref = root, offset = 0
        for _ in 0...SearchIndex.radixLevelsMax {
            guard let (element, next) = try SearchIndex.step(memory, ref, key.chunk(offset)) else { return .none }
            if element & 1 != 0 {
                return offset + 4 < count ? .none : .single(ObjectKey(Int64(bitPattern: UInt64(bitPattern: element) >> 1)))
            }
            guard next.hasContext else { return offset + 4 < count ? .none : .list(next.ref) }
            ref = next.ref
            offset += 4
        }
        throw FormatError(ref: root, "index is deeper than \(SearchIndex.radixLevelsMax) levels")
    }
}
