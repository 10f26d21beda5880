/// Reader of a sequence of values that is spread over leaves (file-format-1 section 9).
///
/// ```
/// root       0: the empty sequence;  a leaf of class L;  or an inner node
/// inner node refs and inner flag, children + 2 elements:
///            [0]         odd: elements per child E, tagged (compact form)   even: ref of the offsets array (general form)
///            [1 ... n]   refs of the children
///            [n + 1]     elements below this node, tagged
/// offsets    unsigned integers, n - 1 elements: element j is the index of the first value of child j + 1
/// ```
/// Invariants: compact: every child but the last has E values, the last one 1 to E. General: offsets increase. A node has as
/// many values as its parent says. All leaves are equally deep and, unless the root, not empty.
///
/// Every descent checks these along its path, so a damaged tree throws where it is met. There is no loop that a damaged tree
/// could keep going: a descent ends at `depthMax`, and a scan advances by at least one value a descent.
public struct BPlusTree<L: Leaf> {
    /// Where the nodes lie. A tree is valid as long as the version of this memory.
    public let memory: Memory
    /// The root; 0 for a sequence that was never written to.
    public let ref: Int
    /// Number of values.
    public let count: Int
    /// The root if it is a leaf.
    private let rootLeaf: L?
    /// The context flag of the root: in a list or set of links it says that there are unresolved keys (file-format-1 9.7).
    public let rootHasContext: Bool

    /// Inner nodes above a leaf, at most. Real trees, of up to 1000 children a node, have three at the very most.
    static var depthMax: Int { 16 }
    /// Values of a leaf. Files of older formats may have roots of more, which then have bytes for them; a backlink list may be
    /// one leaf of any size (file-format-1 8.3).
    static var leafCapacity: Int { 1000 }
    /// Values per readable byte, at most: 1000 values a leaf, none of which is smaller than 8 bytes; an older leaf of more has
    /// eight a byte. Keeps a count out of a damaged node from being believed by those who would loop or allocate by it.
    static var valuesPerByteMax: Int { 125 }

    /// The tree with the given root. Throws `FormatError` where the root is neither a leaf of class `L` nor an inner node.
    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws { try self.init(memory, ref, isOfBacklinks: false) }

    @inline(__always)
    init(_ memory: Memory, _ ref: Int, isOfBacklinks: Bool) throws {
        self.memory = memory
        self.ref = ref
        if ref == 0 {
            count = 0
            rootLeaf = nil
            rootHasContext = false
            return
        }
        let node = try memory.node(ref)
        rootHasContext = node.hasContext
        if node.isInner {
            rootLeaf = nil
            let inner = try InnerNode(node)
            try inner.checkTotal()
            count = inner.total
            if count / Self.valuesPerByteMax > memory.readableByteCount {
                throw FormatError(ref: ref, "tree claims \(count) values, more than the file can hold")
            }
        } else {
            let leaf = try L(memory, ref)
            rootLeaf = leaf
            count = leaf.count
            if count > Self.leafCapacity { try memory.checkLargeLeaf(ref, count, isOfBacklinks: isOfBacklinks) }
        }
    }

    /// Value `index`. Throws on an index outside of `0..<count`.
    @inline(__always)
    public func value(at index: Int) throws -> L.Element {
        if let leaf = rootLeaf { return try leaf.value(index) }
        let (leaf, start) = try self.leaf(containing: index)
        return try leaf.value(index &- start)
    }

    /// The leaf that holds value `index`, and the index of the leaf's first value. Throws on an index outside of `0..<count`.
    @inline(__always)
    public func leaf(containing index: Int) throws -> (leaf: L, start: Int) {
        if UInt(bitPattern: index) >= UInt(bitPattern: count) { throw indexError(ref, index, count) }
        if let leaf = rootLeaf { return (leaf, 0) }
        let (leafRef, start, expected) = try descend(memory, ref, index, count, Self.depthMax)
        let leaf = try L(memory, leafRef)
        if leaf.count != expected { throw countError(leafRef, leaf.count, expected) }
        if expected > Self.leafCapacity { try memory.checkLargeLeaf(leafRef, expected, isOfBacklinks: false) }
        return (leaf, start)
    }

    /// Calls `body` with every leaf in order, and the index of its first value. To stop early, or to begin elsewhere, go by
    /// `leaf(containing:)` instead: the next leaf begins at `start + leaf.count`.
    @inline(__always)
    public func forEachLeaf(_ body: (_ leaf: L, _ start: Int) throws -> Void) throws {
        var index = 0
        while index < count {
            let (leaf, start) = try self.leaf(containing: index)
            try body(leaf, start)
            index = start &+ leaf.count
        }
    }
}

/// From the inner node `root` down to the leaf that holds value `index`: its ref, the index of its first value, and how many
/// values it must have. The caller has checked that `index` is below `total`.
private func descend(
    _ memory: Memory, _ root: Int, _ index: Int, _ total: Int, _ depthMax: Int
) throws -> (ref: Int, start: Int, count: Int) {
    var ref = root, start = 0, expected = total
    for _ in 0..<depthMax {
        let node = try memory.node(ref)
        if !node.isInner { return (ref, start, expected) }
        let inner = try InnerNode(node)
        if inner.total != expected { throw countError(ref, inner.total, expected) }
        let child = try inner.child(memory, index &- start)
        ref = child.ref
        start &+= child.start
        expected = child.count
    }
    if try !memory.node(ref).isInner { return (ref, start, expected) }
    throw FormatError(ref: root, "tree is deeper than \(depthMax) inner nodes")
}

extension Memory {
    /// Throws where a leaf of more values than a leaf has today says so without bytes for them: elements of width 0 cost nothing,
    /// so that a node of 8 bytes could claim millions. A backlink list of one leaf may say as much as a list of today's leaves
    /// could.
    @inline(never)
    func checkLargeLeaf(_ ref: Int, _ count: Int, isOfBacklinks: Bool) throws {
        let isPossible =
            isOfBacklinks
            ? count / BPlusTree<KeyLeaf>.valuesPerByteMax <= readableByteCount
            : count <= BPlusTree<KeyLeaf>.leafCapacity &+ 8 &* (try payloadByteCount(ref, levels: 2))
        if !isPossible { throw FormatError(ref: ref, "leaf claims \(count) values, for which it has no bytes") }
    }

    /// Bytes of the payload of a leaf and of the few nodes that make it up, as far as `levels` down.
    private func payloadByteCount(_ ref: Int, levels: Int) throws -> Int {
        let node = try self.node(ref)
        var sum = node.payloadByteCount
        // The parts of a leaf are six at most; an array of blobs has a ref for each value.
        guard node.hasRefs, node.count <= 6, levels > 0 else { return sum }
        for i in 0..<node.count {
            let part = node.unchecked(i)
            if part != 0 && part & 1 == 0 { sum &+= try payloadByteCount(Int(truncatingIfNeeded: part), levels: levels &- 1) }
        }
        return sum
    }
}

@inline(never)
private func countError(_ ref: Int, _ found: Int, _ expected: Int) -> FormatError {
    FormatError(ref: ref, "node of a tree has \(found) values where its parent says \(expected)")
}

/// An inner node of a B+ tree, checked as far as it can be without its children.
struct InnerNode {
    let node: Node
    /// Number of children, at least 1.
    let childCount: Int
    /// Values below this node, at least 1.
    let total: Int
    /// Values of each child but the last in compact form, 0 in general form.
    let valuesPerChild: Int
    /// Ref of the offsets array in general form, 0 in compact form.
    let offsetsRef: Int

    @inline(__always)
    init(_ node: Node) throws {
        if node.flags & 0xD8 != 0xC0 || node.count < 3 { throw node.kindError("inner node", "an array of 3 or more refs") }
        self.node = node
        childCount = node.count &- 2
        let first = node.unchecked(0), last = node.unchecked(node.count &- 1)
        if last & 1 == 0 || last == 1 { throw FormatError(ref: node.ref, "inner node has no number of values: \(last)") }
        total = Int(truncatingIfNeeded: UInt64(bitPattern: last) >> 1)
        if first & 1 != 0 {
            valuesPerChild = Int(truncatingIfNeeded: UInt64(bitPattern: first) >> 1)
            offsetsRef = 0
            if valuesPerChild == 0 { throw totalError() }
        } else {
            valuesPerChild = 0
            offsetsRef = try node.requiredRef(0)
        }
    }

    /// Compact form: all children but the last are full, (n - 1) * E < total <= n * E, here without computing the products.
    func checkTotal() throws {
        if valuesPerChild != 0 && (total &- 1) / valuesPerChild != childCount &- 1 { throw totalError() }
    }

    @inline(never)
    private func totalError() -> FormatError {
        FormatError(ref: node.ref, "inner node has \(total) values in \(childCount) children of \(valuesPerChild)")
    }

    /// The offsets array of the general form, checked for its kind and number of elements.
    @inline(__always)
    func offsets(_ memory: Memory) throws -> Node {
        let offsets = try memory.node(offsetsRef)
        try offsets.checkIntegers("offsets of an inner node")
        if offsets.count != childCount &- 1 {
            throw FormatError(ref: offsetsRef, "\(offsets.count) offsets for \(childCount) children")
        }
        return offsets
    }

    /// The child that holds value `index`, which the caller has checked against `total`: ref, first value, number of values.
    @inline(__always)
    func child(_ memory: Memory, _ index: Int) throws -> (ref: Int, start: Int, count: Int) {
        let child: Int, start: Int, end: Int
        if valuesPerChild != 0 {
            child = index / valuesPerChild
            start = child &* valuesPerChild
            end = min(total, start &+ valuesPerChild)
            // The last child, and only the last one, may have fewer values than E.
            if child >= childCount || (child == childCount &- 1) != (end == total) { throw totalError() }
        } else {
            let offsets = try offsets(memory)
            var low = 0, high = childCount &- 1
            while low < high {
                let middle = (low &+ high) >> 1
                if offsets.uncheckedUnsigned(middle) <= UInt64(index) { low = middle &+ 1 } else { high = middle }
            }
            child = low
            let first = low == 0 ? 0 : offsets.uncheckedUnsigned(low &- 1)
            let next = low == childCount &- 1 ? UInt64(total) : offsets.uncheckedUnsigned(low)
            if first > UInt64(index) || next <= UInt64(index) || next > UInt64(total) {
                throw FormatError(ref: offsetsRef, "offsets \(first) and \(next) do not hold value \(index) of \(total)")
            }
            start = Int(first)
            end = Int(next)
        }
        return (try node.requiredRef(child &+ 1), start, end &- start)
    }
}
