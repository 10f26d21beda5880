/// The tree that holds the objects of a table (file-format-2 section 4), for reading.
///
/// ```
/// leaf    refs, not inner:  [0] odd: keys are 0..<n, raw 2n+1 | even: ref of the n keys, unsigned, ascending
///                           [1+i] leaf of the column with leaf index i, or 0
/// inner   refs, inner flag: [0] 0: child i begins at i << 8*depth | ref of the children's offsets, unsigned, ascending
///                           [1] tagged depth, 1 = children are leaves   [2] tagged number of objects   [3...] children
/// ```
/// Keys are unsigned 64-bit numbers here, relative to the sum of the offsets on the path; a key of -2 is the second largest.
/// What is checked: a child lies one level lower than its parent says, a leaf has at most 256 rows, a tree at most
/// `depthMax` levels, a walk meets no more nodes than fit into the file: neither a cycle nor shared children hang a reader.
@frozen public struct ClusterTree {
    public let memory: Memory
    /// A cluster leaf where `depth` is 0, else an inner node.
    public let root: Node
    /// Levels above the leaves: 0 where the root is a leaf.
    public let depth: Int
    /// Number of objects.
    public let count: Int

    /// Rows of a leaf, and children of an inner node.
    public static let nodeCapacity = 256
    /// Levels above the leaves: with 8 bits a level and 8 in the leaf every 64-bit key has a place.
    public static let depthMax = 7

    /// The tree at `ref`, which must be that of a table's slot `tree`.
    ///
    /// - Throws: `FormatError` where the root is neither kind of node or the tree is deeper than `depthMax`.
    public init(_ memory: Memory, _ ref: Int) throws {
        self.memory = memory
        root = try memory.node(ref)
        if root.isInner {
            depth = try root.tagged(1)
            if depth < 1 || depth > ClusterTree.depthMax { throw FormatError(ref: ref, "cluster node has depth \(depth)") }
            try ClusterTree.checkInner(root, depth)
            count = try root.tagged(2)
            // Nobody shall loop or allocate by a count that cannot be true.
            if count / ClusterTree.nodeCapacity > memory.nodeCountMax {
                throw FormatError(ref: ref, "cluster tree claims \(count) objects, more than the file can hold")
            }
        } else {
            depth = 0
            count = try ClusterTree.leafCount(memory, root)
        }
    }

    // MARK: Lookup

    /// The leaf and row of the object with `key`, or nil. O(log n), allocates nothing.
    @inline(__always)
    public func find(_ key: ObjectKey) throws -> ObjectRow? {
        var k = UInt64(bitPattern: key.rawValue)
        var node = root
        var level = depth
        while level > 0 {
            guard let (child, offset) = try findChild(node, level, k) else { return nil }
            k &-= offset
            level &-= 1
            node = try self.child(node, child, level)
        }
        guard node.count > 0 else { throw ClusterTree.slotError(node) }
        let first = node.unchecked(0)
        if first & 1 != 0 {
            if k >= UInt64(bitPattern: first) >> 1 || k >= UInt64(ClusterTree.nodeCapacity) { return nil }
            return ObjectRow(memory: memory, cluster: node, index: Int(truncatingIfNeeded: k), key: key)
        }
        let keys = try memory.node(Int(truncatingIfNeeded: first))
        if keys.count == 0 || keys.count > ClusterTree.nodeCapacity { return nil }
        let row = ClusterTree.lowerBound(keys, k)
        if row == keys.count || keys.uncheckedUnsigned(row) != k { return nil }
        return ObjectRow(memory: memory, cluster: node, index: row, key: key)
    }

    /// The child that holds `k` and its offset, both relative to `node`.
    @inline(__always)
    func findChild(_ node: Node, _ level: Int, _ k: UInt64) throws -> (child: Int, offset: UInt64)? {
        let last = node.count &- 4
        let first = node.unchecked(0)
        if first == 0 {
            let shift = UInt64(8 &* level)
            let i = min(k >> shift, UInt64(last))
            return (Int(i), i << shift)
        }
        let offsets = try memory.node(Int(truncatingIfNeeded: first))
        if offsets.count != last &+ 1 { throw ClusterTree.offsetError(offsets, last + 1) }
        if last > 0 {
            // Keys of tables without primary key leave gaps of a fixed power of two: the child's number is a shift away.
            let guess = min(k >> UInt64(offsets.uncheckedUnsigned(1).trailingZeroBitCount & 63), UInt64(last))
            let i = Int(guess)
            let offset = offsets.uncheckedUnsigned(i)
            if offset <= k && (i == last || k < offsets.uncheckedUnsigned(i &+ 1)) { return (i, offset) }
        }
        let above = ClusterTree.upperBound(offsets, k)
        if above == 0 { return nil }
        return (above &- 1, offsets.uncheckedUnsigned(above &- 1))
    }

    /// Child `index` of an inner node, which must lie on `level`.
    @inline(__always)
    func child(_ node: Node, _ index: Int, _ level: Int) throws -> Node {
        let ref = node.unchecked(index &+ 3)
        let child = try memory.node(Int(truncatingIfNeeded: ref))
        if child.isInner != (level > 0) { throw ClusterTree.levelError(child) }
        if level > 0 { try ClusterTree.checkInner(child, level) }
        return child
    }

    @inline(__always)
    private static func checkInner(_ node: Node, _ level: Int) throws {
        if node.count < 4 || node.count > nodeCapacity &+ 3 || node.widthType != 0 { throw slotError(node) }
        if node.unchecked(1) != Int64(level &* 2 &+ 1) { throw depthError(node, level) }
    }

    // Errors are made out of line, so that a lookup stays small where it is inlined.

    @inline(never) private static func slotError(_ node: Node) -> FormatError {
        let flags = String(node.flags, radix: 16)
        return FormatError(ref: node.ref, "node of a cluster tree with flags 0x\(flags) and \(node.count) elements")
    }
    @inline(never) private static func offsetError(_ offsets: Node, _ children: Int) -> FormatError {
        FormatError(ref: offsets.ref, "\(offsets.count) offsets for \(children) children of a cluster node")
    }
    @inline(never) private static func levelError(_ node: Node) -> FormatError {
        FormatError(ref: node.ref, "cluster node is not on the level its parent says")
    }
    @inline(never) private static func depthError(_ node: Node, _ level: Int) -> FormatError {
        FormatError(ref: node.ref, "inner cluster node of depth \(node.unchecked(1) >> 1), expected \(level)")
    }

    /// First position whose key is not below `k`. Keys are distinct, so it is at most `k - keys[0]`.
    @inline(__always)
    static func lowerBound(_ keys: Node, _ k: UInt64) -> Int {
        let first = keys.uncheckedUnsigned(0)
        if k <= first { return 0 }
        var high = Int(truncatingIfNeeded: min(k &- first, UInt64(keys.count)))
        if high < keys.count && keys.uncheckedUnsigned(high) == k { return high }
        var low = 0
        while low < high {
            let middle = (low &+ high) >> 1
            if keys.uncheckedUnsigned(middle) < k { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    /// First position whose key is above `k`.
    @inline(__always)
    static func upperBound(_ keys: Node, _ k: UInt64) -> Int {
        var low = 0, high = keys.count
        while low < high {
            let middle = (low &+ high) >> 1
            if keys.uncheckedUnsigned(middle) <= k { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    /// Objects below a node of the given level.
    func size(_ node: Node, _ level: Int) throws -> Int {
        level > 0 ? try node.tagged(2) : try ClusterTree.leafCount(memory, node)
    }

    /// Rows of a leaf.
    static func leafCount(_ memory: Memory, _ node: Node) throws -> Int {
        guard node.hasRefs, node.widthType == 0, node.count > 0 else { throw slotError(node) }
        let first = node.unchecked(0)
        let n =
            first & 1 != 0
            ? Int(truncatingIfNeeded: UInt64(bitPattern: first) >> 1)
            : try memory.node(Int(truncatingIfNeeded: first)).count
        if n > nodeCapacity { throw FormatError(ref: node.ref, "cluster leaf with \(n) rows") }
        return n
    }

    // MARK: Walking

    /// Calls `body` with every leaf in key order.
    public func forEachLeaf(_ body: (ClusterLeaf) throws -> Void) throws {
        _ = try scanLeaves {
            try body($0)
            return true
        }
    }

    /// Calls `body` with every leaf in key order until it returns false; returns false if it did.
    @discardableResult
    public func scanLeaves(_ body: (ClusterLeaf) throws -> Bool) throws -> Bool {
        var budget = memory.nodeCountMax
        return try walk(root, depth, 0, &budget, body)
    }

    /// `budget` is the number of nodes that can still be met: children that are shared, which no file has, would use it up.
    private func walk(
        _ node: Node, _ level: Int, _ offset: UInt64, _ budget: inout Int, _ body: (ClusterLeaf) throws -> Bool
    ) throws -> Bool {
        budget -= 1
        if budget < 0 { throw FormatError(ref: node.ref, "cluster tree with more nodes than the file can hold") }
        if level == 0 {
            let leaf = try ClusterLeaf(memory, node, offset: offset)
            return leaf.count == 0 ? true : try body(leaf)
        }
        let offsets = try childOffsets(node)
        for i in 0..<(node.count - 3) {
            let o = offsets.map { $0.uncheckedUnsigned(i) } ?? UInt64(i) << UInt64(8 * level)
            if try !walk(child(node, i, level - 1), level - 1, offset &+ o, &budget, body) { return false }
        }
        return true
    }

    /// Calls `body` with every leaf that can be reached, and `lost` for each subtree that cannot: for files that are known to be
    /// damaged.
    public func forEachReadableLeaf(lost: (any Error) -> Void, _ body: (ClusterLeaf) -> Void) {
        var budget = memory.nodeCountMax
        walkReadable(root, depth, 0, &budget, lost, body)
    }

    private func walkReadable(
        _ node: Node, _ level: Int, _ offset: UInt64, _ budget: inout Int, _ lost: (any Error) -> Void,
        _ body: (ClusterLeaf) -> Void
    ) {
        budget -= 1
        if budget < 0 { return lost(FormatError(ref: node.ref, "cluster tree with more nodes than the file can hold")) }
        do {
            if level == 0 {
                let leaf = try ClusterLeaf(memory, node, offset: offset)
                if leaf.count > 0 { body(leaf) }
                return
            }
            let offsets = try childOffsets(node)
            for i in 0..<(node.count - 3) {
                let o = offsets.map { $0.uncheckedUnsigned(i) } ?? UInt64(i) << UInt64(8 * level)
                do { walkReadable(try child(node, i, level - 1), level - 1, offset &+ o, &budget, lost, body) } catch {
                    lost(error)
                }
            }
        } catch { lost(error) }
    }

    func childOffsets(_ node: Node) throws -> Node? {
        let first = node.unchecked(0)
        if first == 0 { return nil }
        let offsets = try memory.node(Int(truncatingIfNeeded: first))
        if offsets.count != node.count - 3 { throw ClusterTree.offsetError(offsets, node.count - 3) }
        return offsets
    }

    /// The object at position `index` in key order, or nil where there are not so many.
    public func object(at index: Int) throws -> ObjectRow? {
        guard let (leaf, start) = try leaf(at: index) else { return nil }
        return leaf.row(index &- start)
    }

    /// The leaf with the object at position `index` in key order, and the position of the leaf's first object; nil where there
    /// are not so many.
    public func leaf(at index: Int) throws -> (leaf: ClusterLeaf, start: Int)? {
        if index < 0 || index >= count { return nil }
        var remaining = index
        var node = root
        var offset: UInt64 = 0
        var level = depth
        while level > 0 {
            let offsets = try childOffsets(node)
            let children = node.count - 3
            // Where all children but the last are full, as after inserting in key order, the child's number is a division away.
            let full = 1 << (8 * level), size = try node.tagged(2)
            var i = children - 1
            var next = try child(node, i, level - 1)
            // On the highest level the product could overflow; no tree is that full.
            let before = level < ClusterTree.depthMax ? i * full : 0
            if try level < ClusterTree.depthMax && size - before == self.size(next, level - 1) {
                if remaining < before {
                    i = remaining / full
                    next = try child(node, i, level - 1)
                }
                remaining -= i * full
            } else {
                i = 0
                while true {
                    next = try child(node, i, level - 1)
                    let size = try self.size(next, level - 1)
                    if remaining < size { break }
                    remaining -= size
                    i += 1
                    if i == children {
                        throw FormatError(ref: node.ref, "inner cluster node counts more objects than its children have")
                    }
                }
            }
            offset &+= offsets.map { $0.uncheckedUnsigned(i) } ?? UInt64(i) << UInt64(8 * level)
            node = next
            level -= 1
        }
        let leaf = try ClusterLeaf(memory, node, offset: offset)
        if remaining >= leaf.count { return nil }
        return (leaf, index &- remaining)
    }

    /// The first object whose key is not below `key`: its leaf and its row there; nil where there is none.
    public func seek(_ key: ObjectKey) throws -> (leaf: ClusterLeaf, row: Int)? {
        var budget = memory.nodeCountMax
        return try seek(root, depth, 0, UInt64(bitPattern: key.rawValue), &budget)
    }

    private func seek(_ node: Node, _ level: Int, _ offset: UInt64, _ key: UInt64, _ budget: inout Int) throws -> (
        leaf: ClusterLeaf, row: Int
    )? {
        budget -= 1
        if budget < 0 { throw FormatError(ref: node.ref, "cluster tree with more nodes than the file can hold") }
        let relative = key <= offset ? 0 : key &- offset
        if level == 0 {
            let leaf = try ClusterLeaf(memory, node, offset: offset)
            let row = leaf.lowerBound(relative)
            return row < leaf.count ? (leaf, row) : nil
        }
        let offsets = try childOffsets(node)
        let children = node.count - 3
        // Before the child that would hold the key there is none; behind it all objects have larger ones.
        var i =
            offsets.map { max(0, ClusterTree.upperBound($0, relative) - 1) }
            ?? Int(min(relative >> UInt64(8 * level), UInt64(children - 1)))
        while i < children {
            let o = offsets.map { $0.uncheckedUnsigned(i) } ?? UInt64(i) << UInt64(8 * level)
            if let found = try seek(child(node, i, level - 1), level - 1, offset &+ o, key, &budget) { return found }
            i += 1
        }
        return nil
    }
}

/// A run of up to 256 objects with ascending keys, and where their values are.
@frozen public struct ClusterLeaf {
    public let memory: Memory
    /// Element 0 tells of the keys, element 1 + i is the ref of the column with leaf index i (file-format-2 section 4).
    public let node: Node
    /// The stored keys in general form; not to be used in compact form.
    @usableFromInline let keys: Node
    /// Keys are `offset + stored key`, not `offset + row`.
    public let isGeneral: Bool
    /// What the inner nodes above have added to the keys on the way down.
    public let offset: UInt64
    /// Number of rows.
    public let count: Int

    init(_ memory: Memory, _ node: Node, offset: UInt64) throws {
        self.memory = memory
        self.node = node
        self.offset = offset
        count = try ClusterTree.leafCount(memory, node)
        let first = node.unchecked(0)
        isGeneral = first & 1 == 0
        keys = isGeneral ? try memory.node(Int(truncatingIfNeeded: first)) : node
    }

    /// The key of the object in `row`, which must be below `count`.
    @inline(__always)
    public func key(_ row: Int) -> ObjectKey {
        ObjectKey(Int64(bitPattern: offset &+ (isGeneral ? keys.uncheckedUnsigned(row) : UInt64(row))))
    }

    /// The object in `row`, which must be below `count`.
    @inline(__always)
    public func row(_ row: Int) -> ObjectRow {
        ObjectRow(memory: memory, cluster: node, index: row, key: key(row))
    }

    /// The row of the object with `key`, or nil. `guess` is where to look first.
    @inline(__always)
    public func row(of key: ObjectKey, guess: Int) -> Int? {
        let relative = UInt64(bitPattern: key.rawValue) &- offset
        if !isGeneral { return relative < UInt64(count) ? Int(truncatingIfNeeded: relative) : nil }
        if guess < count && keys.uncheckedUnsigned(guess) == relative { return guess }
        let row = lowerBound(relative)
        return row < count && keys.uncheckedUnsigned(row) == relative ? row : nil
    }

    /// The first row whose key, less `offset`, is not below `relative`.
    func lowerBound(_ relative: UInt64) -> Int {
        if !isGeneral { return Int(truncatingIfNeeded: min(relative, UInt64(count))) }
        return count == 0 ? 0 : ClusterTree.lowerBound(keys, relative)
    }

    /// Ref of the leaf that holds the column's values, one for each row.
    @inline(__always)
    public func columnRef(_ column: ColumnKey) throws -> Int { try node.requiredRef(column.leafIndex &+ 1) }
}

extension Memory {
    /// More nodes than this cannot lie in the version and the arena together; a bound for walks over untrusted trees.
    var nodeCountMax: Int {
        let arena = state.pointee.arenaLimit &- state.pointee.arenaStart
        return (state.pointee.fileLimit &+ arena) / 8
    }

    /// All collections together cannot hold more elements than this, since each belongs to one owner:
    /// `BPlusTree.valuesPerByteMax` for each byte.
    var collectionElementsMax: Int {
        let (product, isOver) = readableByteCount.multipliedReportingOverflow(by: BPlusTree<KeyLeaf>.valuesPerByteMax)
        return isOver ? Int.max : product
    }
}
