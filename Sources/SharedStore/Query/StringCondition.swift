import Glibc

/// A string against a string, by bytes.
final class StringCondition: ColumnCondition<StringLeaf> {
    enum Test {
        case equal, notEqual
        case order(QuerySyntax.Operator)
        case begins, ends, contains
        /// The same in lower case; `part` is in lower case already.
        case equalFolded, notEqualFolded, beginsFolded, endsFolded, containsFolded
        case like, likeFolded
    }
    private let test: Test
    private let part: UnsafeRawBufferPointer
    private let storage: QueryStorage

    /// `part` must stay valid as long as `storage`.
    init(_ frame: QueryFrame, _ column: Column, _ test: Test, _ part: UnsafeRawBufferPointer, _ storage: QueryStorage) {
        self.test = test
        self.part = part
        self.storage = storage
        super.init(frame, column)
    }

    override var cost: Int {
        switch test {
        case .equal, .notEqual, .order, .begins, .ends: 4
        default: 20
        }
    }

    override func make(_ memory: Memory, _ ref: Int) throws -> StringLeaf { try StringLeaf(memory, ref) }

    override func holds(_ leaf: StringLeaf, _ row: Int) throws -> Bool {
        guard case .string(let text) = try storage.string(leaf, row) else {
            // Null differs from every string, and is below it.
            switch test {
            case .notEqual, .notEqualFolded, .order(.less), .order(.lessOrEqual): return true
            default: return false
            }
        }
        switch test {
        case .equal: return ValueOrder.equal(text, part)
        case .notEqual: return !ValueOrder.equal(text, part)
        case .order(let operation):
            let order = ValueOrder.compare(text, part)
            switch operation {
            case .less: return order < 0
            case .lessOrEqual: return order <= 0
            case .greater: return order > 0
            default: return order >= 0
            }
        case .begins: return StringMatch.begins(text, part)
        case .ends: return StringMatch.ends(text, part)
        case .contains: return StringMatch.contains(text, part)
        case .equalFolded: return StringMatch.equalsFolded(text, part)
        case .notEqualFolded: return !StringMatch.equalsFolded(text, part)
        case .beginsFolded: return StringMatch.beginsFolded(text, part)
        case .endsFolded: return StringMatch.endsFolded(text, part)
        case .containsFolded: return StringMatch.containsFolded(text, part)
        case .like: return StringMatch.like(text, part, isFolded: false)
        case .likeFolded: return StringMatch.like(text, part, isFolded: true)
        }
    }

    override func rows(_ leaf: StringLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        guard leaf.variant == .short, leaf.count >= count else { return try super.rows(leaf, mask, count) }
        switch test {
        case .equal: return mask & equalBlocks(leaf.node.payload, leaf.node.width, count)
        case .notEqual: return mask.subtracting(equalBlocks(leaf.node.payload, leaf.node.width, count))
        case .begins: return try shortRows(leaf, mask) { StringMatch.begins($0, part) }
        case .ends: return try shortRows(leaf, mask) { StringMatch.ends($0, part) }
        case .contains: return try shortRows(leaf, mask) { ShortSearch.contains($0, part) }
        case .equalFolded: return try shortRows(leaf, mask) { StringMatch.equalsFolded($0, part) }
        case .beginsFolded: return try shortRows(leaf, mask) { StringMatch.beginsFolded($0, part) }
        case .endsFolded: return try shortRows(leaf, mask) { StringMatch.endsFolded($0, part) }
        case .containsFolded: return try shortRows(leaf, mask) { StringMatch.containsFolded($0, part) }
        case .like: return try shortRows(leaf, mask) { StringMatch.like($0, part, isFolded: false) }
        case .likeFolded: return try shortRows(leaf, mask) { StringMatch.like($0, part, isFolded: true) }
        default: return try super.rows(leaf, mask, count)
        }
    }

    /// The rows of `mask` whose string is not null and fulfils a condition.
    @inline(__always)
    private func shortRows(_ leaf: StringLeaf, _ mask: RowMask, _ holds: (UnsafeRawBufferPointer) -> Bool) throws -> RowMask {
        let width = leaf.node.width, payload = leaf.node.payload
        var result = RowMask()
        if width == 0 { return result }
        try mask.forEach { row in
            let block = payload + row &* width
            let zeros = Int(block.load(fromByteOffset: width &- 1, as: UInt8.self))
            if zeros >= width {
                // Null, or damaged.
                _ = try leaf.bytes(row)
                return
            }
            if holds(UnsafeRawBufferPointer(start: block, count: width &- 1 &- zeros)) { result.insert(row) }
        }
        return result
    }

    /// Short strings are blocks of a fixed width that are equal as a whole when the strings are (file-format-1 6.2).
    private func equalBlocks(_ blocks: UnsafeRawPointer, _ width: Int, _ count: Int) -> RowMask {
        var result = RowMask()
        guard width > part.count, width <= 64 else { return result }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { block in
            block.initializeMemory(as: UInt8.self, repeating: 0)
            block.copyMemory(from: part)
            block[width &- 1] = UInt8(truncatingIfNeeded: width &- 1 &- part.count)
            guard let wanted = UnsafeRawPointer(block.baseAddress) else { return result }
            switch width {
            case 1: blocks8(blocks, count, wanted.load(as: UInt8.self), &result)
            case 2: blocks8(blocks, count, wanted.load(as: UInt16.self), &result)
            case 4: blocks8(blocks, count, wanted.load(as: UInt32.self), &result)
            case 8: blocks8(blocks, count, wanted.load(as: UInt64.self), &result)
            default:
                let first = wanted.load(as: UInt64.self), last = wanted.load(fromByteOffset: width &- 8, as: UInt64.self)
                for i in 0..<count {
                    let p = blocks + i &* width
                    if p.loadUnaligned(as: UInt64.self) != first
                        || p.loadUnaligned(fromByteOffset: width &- 8, as: UInt64.self) != last
                    {
                        continue
                    }
                    if width == 16 || memcmp(p, wanted, width) == 0 { result.insert(i) }
                }
            }
            return result
        }
    }

    @inline(__always)
    private func blocks8<T: FixedWidthInteger>(_ blocks: UnsafeRawPointer, _ count: Int, _ wanted: T, _ result: inout RowMask) {
        for i in 0..<count where blocks.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self) == wanted {
            result.insert(i)
        }
    }
}

/// Search in strings that are short, where a call costs more than to look at each byte.
enum ShortSearch {
    /// True where `part`, which is not empty, stands somewhere in `text`.
    @inline(__always)
    static func contains(_ text: UnsafeRawBufferPointer, _ part: UnsafeRawBufferPointer) -> Bool {
        guard text.count >= part.count, let p = text.baseAddress, let q = part.baseAddress else { return false }
        let first = q.load(as: UInt8.self), rest = part.count &- 1
        let last = q.load(fromByteOffset: rest, as: UInt8.self)
        var i = 0
        let end = text.count &- rest
        while i < end {
            // First and last byte tell nearly all of the places where it does not stand.
            if p.load(fromByteOffset: i, as: UInt8.self) == first && p.load(fromByteOffset: i &+ rest, as: UInt8.self) == last
                && (rest < 2 || memcmp(p + i, q, rest) == 0)
            {
                return true
            }
            i &+= 1
        }
        return false
    }
}
