/// The index of a column: a radix tree by four bytes of the value at a time (file-format-2 section 7), for lookup.
///
/// ```
/// node       refs + context: [0] chunks, 32-bit integers, ascending signed  [1+i] entry of chunk i
/// inner      also inner flag: [1+i] child, chunk i is the largest in it
/// entry      odd: one object key, raw >> 1 | node without context: B+ tree of keys | node with context: next level
/// chunk      bytes off..off+3 big-endian; behind the end: what is left, 'X', zeros; null and beyond: 0
/// ```
/// A list of keys holds values that agree in all bytes of the path, which need not be equal: every hit is checked with the
/// object itself. In full-word mode (list of string, full text) an entry stands at the last chunk of the word.
public struct SearchIndex {
    let memory: Memory
    /// Ref of the root node.
    public let root: Int
    let column: Column
    let tree: ClusterTree

    /// Sub-indexes exist for 200 bytes of a value, 4 bytes a level.
    static let radixLevelsMax = 51
    /// Inner nodes above a leaf of one level; with 1000 entries a node two are plenty.
    static let innerLevelsMax = 8
    /// 'X' and three zeros: the chunk behind the last byte.
    static let terminator: Int32 = 0x5800_0000

    /// The general index of `column`, or nil where it has none (or a full-text index, for which see `FullTextIndex`).
    public init?(_ table: Table, _ column: Column) throws {
        if column.attributes.contains(.fullTextIndexed) { return nil }
        let ref = try table.indexRef(of: column)
        if ref == 0 { return nil }
        memory = table.memory
        root = ref
        self.column = column
        tree = table.tree
    }

    /// The objects whose column equals `value` (of a list of strings: contains it), ascending.
    public func find(_ value: Mixed) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try forEachRow(value) {
            keys.append($0.key)
            return true
        }
        // Keys of equal values are ascending, except in lists of strings of files that others wrote (file-format-2 7.7).
        if zip(keys, keys.dropFirst()).allSatisfy({ $0 < $1 }) { return keys }
        return Array(Set(keys)).sorted()
    }

    /// The first object whose column equals `value`, or nil: the way to find an object by its primary key.
    @inline(__always)
    public func firstRow(_ value: Mixed) throws -> ObjectRow? {
        if case .int(let v) = value, column.type == .int { return try firstRow(int: v) }
        var found: ObjectRow?
        try forEachRow(value) {
            found = $0
            return false
        }
        return found
    }

    /// The first object whose int column equals `value`, or nil. Allocates nothing.
    @inline(__always)
    public func firstRow(int value: Int64) throws -> ObjectRow? {
        precondition(column.type == .int && column.collection == nil, "the index is not one of an int column")
        switch try SearchIndex.descend(memory, root, FixedIndexKey(UInt64(bitPattern: value), 0, 8)) {
        case .none: return nil
        case .single(let key): return try row(key) { try $0.optionalInt(column) == value }
        case .list(let ref):
            // Equal bytes are equal ints: any member will do, and the first is the smallest key.
            let keys = try BPlusTree<KeyLeaf>(memory, ref)
            return keys.count == 0 ? nil : try row(keys.value(at: 0)) { try $0.optionalInt(column) == value }
        }
    }

    private func row(_ key: ObjectKey, _ matches: (ObjectRow) throws -> Bool) throws -> ObjectRow? {
        guard key.rawValue >= 0, let row = try tree.find(key), try matches(row) else { return nil }
        return row
    }

    /// Calls `body` with every object whose column equals `value` until it returns false.
    public func forEachRow(_ value: Mixed, _ body: (ObjectRow) throws -> Bool) throws {
        let entry = try SearchIndex.withIndexBytes(value, in: column) { bytes in
            try isFullWord
                ? FullTextIndex.descend(memory, root, BytesIndexKey(bytes))
                : SearchIndex.descend(memory, root, BytesIndexKey(bytes))
        }
        switch entry {
        case .none: break
        case .single(let key):
            if let row = try row(key, { try self.matches($0, value) }) { _ = try body(row) }
        case .list(let ref):
            let keys = try BPlusTree<KeyLeaf>(memory, ref)
            if keys.count == 0 { return }
            // Where first and last value are equal the whole list is (file-format-2 7.5).
            let allEqual =
                try !isFullWord && column.type != .mixed
                && row(keys.value(at: 0)) { try self.matches($0, value) } != nil
                && row(keys.value(at: keys.count - 1)) { try self.matches($0, value) } != nil
            var position = 0
            while position < keys.count {
                let (leaf, start) = try keys.leaf(containing: position)
                for i in 0..<leaf.count {
                    if let row = try row(leaf.unchecked(i), { try allEqual || self.matches($0, value) }), try !body(row) {
                        return
                    }
                }
                position = start + leaf.count
            }
        }
    }

    private var isFullWord: Bool { column.collection == .list }

    private func matches(_ row: ObjectRow, _ value: Mixed) throws -> Bool {
        if !isFullWord { return try row.equals(column, value) }
        var found = false
        guard case .string(var word) = value else {
            try row.list(column).forEach { if $0 == value { found = true } }
            return found
        }
        try word.withUTF8 { word in
            try row.list(column).tree(StringLeaf.self).forEachLeaf { leaf, _ in
                if found { return }
                for i in 0..<leaf.count where ValueOrder.compare(try leaf.bytes(i), UnsafeRawBufferPointer(word)) == 0 {
                    found = true
                    return
                }
            }
        }
        return found
    }

    // MARK: The radix tree

    /// What the path of a value ends at.
    enum Entry {
        case none
        case single(ObjectKey)
        /// Ref of a B+ tree of keys.
        case list(Int)
    }

    /// Follows the chunks of `key` from `root`.
    @inline(__always)
    static func descend(_ memory: Memory, _ root: Int, _ key: some IndexKey) throws -> Entry {
        var ref = root, offset = 0
        for _ in 0...radixLevelsMax {
            guard let (element, next) = try step(memory, ref, key.chunk(offset)) else { return .none }
            if element & 1 != 0 { return .single(ObjectKey(Int64(bitPattern: UInt64(bitPattern: element) >> 1))) }
            guard next.hasContext else { return .list(next.ref) }
            ref = next.ref
            offset &+= 4
        }
        throw FormatError(ref: root, "index is deeper than \(radixLevelsMax) levels")
    }

    /// The entry of `chunk` in the level whose root is `ref`: the raw element, and where it is a ref the node there.
    @inline(__always)
    static func step(_ memory: Memory, _ ref: Int, _ chunk: Int32) throws -> (element: Int64, node: Node)? {
        var node = try memory.node(ref)
        var span = ChunkSpan()
        for _ in 0...innerLevelsMax {
            let chunks = try checkedChunks(memory, node)
            let position = lowerBound(chunks, chunk, span)
            if position == chunks.count { return nil }
            let element = node.unchecked(position &+ 1)
            if node.isInner {
                span = ChunkSpan(
                    above: position > 0 ? chunks.unchecked(position &- 1) : Int64(Int32.min) - 1, upTo: chunks.unchecked(position)
                )
                node = try memory.node(Int(truncatingIfNeeded: element))
                continue
            }
            if chunks.unchecked(position) != Int64(chunk) { return nil }
            if element & 1 != 0 { return (element, node) }
            return (element, try memory.node(Int(truncatingIfNeeded: element)))
        }
        throw FormatError(ref: ref, "index level with more than \(innerLevelsMax) inner nodes above a leaf")
    }

    /// The chunks of an index node, after checking that the node is one.
    @inline(__always)
    static func checkedChunks(_ memory: Memory, _ node: Node) throws -> Node {
        if node.flags & 0x78 != 0x60 || node.count == 0 {
            throw nodeError(node)
        }
        let chunks = try memory.integers(node.requiredRef(0), "chunks of an index node")
        if chunks.count != node.count &- 1 {
            throw FormatError(ref: node.ref, "index node with \(chunks.count) chunks for \(node.count - 1) entries")
        }
        return chunks
    }

    @inline(never)
    private static func nodeError(_ node: Node) -> FormatError {
        FormatError(ref: node.ref, "index node with flags 0x\(String(node.flags, radix: 16)) and \(node.count) elements")
    }

    /// The chunks that stand below an entry of an inner node, as its own chunk and the one before it say; nothing relies on it.
    struct ChunkSpan {
        /// All are above this one. Where nothing is known the span is empty.
        var above: Int64 = 0
        var upTo: Int64 = 0
    }

    @inline(__always)
    static func lowerBound(_ chunks: Node, _ chunk: Int32, _ span: ChunkSpan = ChunkSpan()) -> Int {
        if chunks.flags & 7 == 6 && UInt(bitPattern: chunks.payload) & 3 == 0 {
            return lowerBound(UnsafePointer<Int32>(OpaquePointer(chunks.payload)), chunks.count, chunk, span)
        }
        var low = 0, high = chunks.count
        while low < high {
            let middle = (low &+ high) >> 1
            if chunks.unchecked(middle) < Int64(chunk) { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    /// The same over 32-bit chunks, as every writer makes them; without branches, since they could not be foretold.
    ///
    /// Chunks are spread evenly, mostly, so where the span of a node is known its place is guessed first: that reads two lines of
    /// the cache instead of five, which are not there in a large index. A guess that is not near goes the usual way.
    @inline(__always)
    static func lowerBound(_ chunks: UnsafePointer<Int32>, _ count: Int, _ chunk: Int32, _ span: ChunkSpan = ChunkSpan()) -> Int {
        var base = chunks, rest = count
        let length = span.upTo &- span.above, distance = Int64(chunk) &- span.above
        if count > 4 &* guessWidth && distance > 0 && distance <= length && length <= 1 << 33 {
            let guess = Int(truncatingIfNeeded: distance &* Int64(count) / length)
            let start = max(0, guess &- guessWidth), end = min(count, guess &+ guessWidth)
            if (start == 0 || chunks[start &- 1] < chunk) && (end == count || chunks[end] >= chunk) {
                base = chunks + start
                rest = end &- start
            }
        }
        while rest > 1 {
            let half = rest &>> 1
            base = base[half &- 1] < chunk ? base + half : base
            rest &-= half
        }
        return (base - chunks) &+ (rest == 1 && base.pointee < chunk ? 1 : 0)
    }

    /// How far from its guessed place a chunk is looked for.
    private static let guessWidth = 16

    // MARK: Index bytes

    /// Calls `body` with the bytes under which `value` stands in an index of `column` (file-format-2 7.3), nil for null.
    ///
    /// A kind of value that the column cannot hold has bytes too; it is found only where it equals in the sense of 6.2.
    static func withIndexBytes<R>(
        _ value: Mixed, in column: Column, _ body: (UnsafeRawBufferPointer?) throws -> R
    ) rethrows -> R {
        var low: UInt64 = 0, high: UInt64 = 0, count = 8
        switch value {
        case .null: return try body(nil)
        case .string(var s): return try s.withUTF8 { try body(nonNull(UnsafeRawBufferPointer($0))) }
        case .binary(let b): return try b.withUnsafeBytes { try body(nonNull($0)) }
        case .list: return try body(staticBytes("__List__"))
        case .dictionary: return try body(staticBytes("__Dictionary__"))
        case .int(let v): low = UInt64(bitPattern: v)
        case .bool(let v): low = v ? 1 : 0
        case .timestamp(let t):
            low = UInt64(bitPattern: t.seconds)
            high = UInt64(UInt32(bitPattern: t.nanoseconds))
            count = 12
        case .float(let v):
            // A number that is a 32-bit int stands where that int stands.
            if let i = Int32(exactly: v) { low = UInt64(bitPattern: Int64(i)) } else { (low, count) = (UInt64(v.bitPattern), 4) }
        case .double(let v):
            low = Int32(exactly: v).map { UInt64(bitPattern: Int64($0)) } ?? v.bitPattern
        case .decimal(let d):
            if let i = d.truncatedToInt64 { low = UInt64(bitPattern: i) } else { (low, high, count) = (d.low, d.high, 16) }
        case .objectId(let id):
            low = id.high.byteSwapped
            high = UInt64(id.low.byteSwapped)
            count = 12
        case .uuid(let id):
            low = id.high.byteSwapped
            high = id.low.byteSwapped
            count = 16
        case .link(let table, let object):
            if object.rawValue < 0 { return try body(nil) }
            let key = UInt64(bitPattern: object.rawValue)
            low = UInt64(table.rawValue) | key << 32
            high = key >> 32
            count = 12
        }
        return try withUnsafeBytes(of: (low, high)) { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    private static func staticBytes(_ text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Null and empty differ: an empty buffer gets an address.
    private static func nonNull(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        bytes.baseAddress == nil ? UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) : bytes
    }
}

/// A value in the form that an index compares: chunks of four bytes.
protocol IndexKey {
    /// The chunk of the bytes from `offset`, a multiple of 4, on.
    func chunk(_ offset: Int) -> Int32
    /// Number of bytes, nil for null.
    var byteCount: Int? { get }
}

/// 4, 8, 12 or 16 bytes in two words, the first byte lowest.
struct FixedIndexKey: IndexKey {
    let low: UInt64
    let high: UInt64
    let count: Int
    @inline(__always) var byteCount: Int? { count }

    @inline(__always)
    init(_ low: UInt64, _ high: UInt64, _ count: Int) {
        self.low = low
        self.high = high
        self.count = count
    }

    @inline(__always)
    func chunk(_ offset: Int) -> Int32 {
        if offset >= count { return offset == count ? SearchIndex.terminator : 0 }
        let word = offset < 8 ? low : high
        return Int32(bitPattern: UInt32(truncatingIfNeeded: word >> UInt64((offset & 4) &* 8)).byteSwapped)
    }
}

/// Any number of bytes, or null.
struct BytesIndexKey: IndexKey {
    let bytes: UnsafeRawBufferPointer?
    @inline(__always) var byteCount: Int? { bytes?.count }

    @inline(__always) init(_ bytes: UnsafeRawBufferPointer?) { self.bytes = bytes }

    @inline(__always)
    func chunk(_ offset: Int) -> Int32 {
        guard let bytes, offset <= bytes.count else { return 0 }
        let rest = bytes.count &- offset
        if rest >= 4 { return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)) }
        var word: UInt32 = 0
        for i in 0..<rest { word |= UInt32(bytes[offset &+ i]) << UInt32(24 &- 8 &* i) }
        return Int32(bitPattern: word | 0x58 << UInt32(24 &- 8 &* rest))
    }
}

extension Decimal128Bits {
    /// The value without its fraction, or nil where it is no finite number or does not fit (file-format-2 7.3).
    var truncatedToInt64: Int64? {
        guard isFinite else { return nil }
        var digits = coefficient, exponent = exponent
        while exponent < 0 && digits > 0 {
            digits /= 10
            exponent += 1
        }
        while exponent > 0 && digits > 0 {
            if digits > UInt128(UInt64.max) { return nil }
            digits *= 10
            exponent -= 1
        }
        if isNegative { return digits == 1 << 63 ? Int64.min : Int64(exactly: digits).map { -$0 } }
        return Int64(exactly: digits)
    }
}
