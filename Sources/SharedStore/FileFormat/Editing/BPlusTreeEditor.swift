/// Changes to a sequence stored as a B+ tree (file-format-1 section 9).
///
/// ```
/// inner node, has refs and inner flag:
///   [0]      odd: tagged elements per child E, the compact form;  even: ref of the offsets, the general form
///   [1...n]  refs of the children        [n+1]  tagged number of elements below
/// offsets, an unsigned array: [j] = elements in children 0...j, n - 1 of them
/// ```
/// Invariants: all leaves at one depth; no empty leaf but a root; at most `nodeSizeMax` elements or children a node; in
/// compact form every child but the last has exactly E elements. Appending keeps the compact form, anything else turns
/// the nodes that it passes into the general form, and nothing turns them back.
///
/// A full leaf is cut at the place of the insertion, not in the middle, so that appending fills every leaf.
///
/// The index of an operation is the caller's business: one outside the tree is a programming error.
enum BPlusTreeEditor<L: LeafEditor> {
    /// Elements of a leaf and children of an inner node, at most.
    static var nodeSizeMax: Int { 1000 }
    /// Deeper trees are taken for damaged; a tree with full nodes of this depth would have 1000^12 elements.
    static var depthMax: Int { 12 }
    /// More elements than fit into any file; so that sums of counts of a damaged file cannot overflow.
    private static var elementCountMax: Int { 1 << 52 }

    // MARK: The whole tree

    /// An empty tree: an empty leaf.
    static func create(_ arena: Arena) throws -> Int { try L.create(arena) }

    /// Number of elements.
    @inline(__always)
    static func count(_ arena: Arena, _ root: Int) throws -> Int {
        let node = try arena.memory.node(root)
        return node.isInner ? try total(node) : try L.count(arena, root)
    }

    /// Removes all elements: a root leaf is emptied, a larger tree makes way for an empty leaf.
    static func clear(_ arena: Arena, _ root: Int) throws -> Int {
        if try !arena.memory.node(root).isInner {
            let root = try L.truncate(arena, root, to: 0)
            return L.contextFlagBelongsToRoot ? try arena.setContextFlag(root, false) : root
        }
        try arena.releaseTree(root)
        return try L.create(arena)
    }

    // MARK: Elements

    static func set(_ arena: Arena, _ root: Int, _ index: Int, _ value: L.Element) throws -> Int {
        try editLeaf(arena, root, index) { leaf, local in try L.set(arena, leaf, local, value) }
    }

    /// Hands the leaf that holds element `index`, and the index in it, to `edit`, which returns the leaf's new ref. It
    /// must not change the number of elements.
    @inline(__always)
    static func editLeaf(_ arena: Arena, _ root: Int, _ index: Int, _ edit: (_ leaf: Int, _ local: Int) throws -> Int) throws
        -> Int
    {
        if try !arena.memory.node(root).isInner { return try edit(root, index) }
        let root = try writableInner(arena, root)
        precondition(index >= 0 && index < total(arena, root), "index outside the sequence; compare it with the count first")
        var inner = root
        var local = index
        var depth = 0
        while true {
            let place = try childPlace(arena, inner, local)
            local -= place.start
            let child = try arena.child(inner, place.index + 1)
            if try !arena.memory.node(child).isInner {
                let leaf = try edit(child, local)
                if leaf != child { arena.setElement(inner, place.index + 1, leaf) }
                return root
            }
            depth += 1
            if depth > depthMax { throw tooDeep(inner) }
            let next = try writableInner(arena, child)
            if next != child { arena.setElement(inner, place.index + 1, next) }
            inner = next
        }
    }

    @inline(__always)
    static func append(_ arena: Arena, _ root: Int, _ value: L.Element) throws -> Int {
        try insert(arena, root, at: nil, value)
    }

    /// Inserts before element `index`; an index equal to the count appends.
    static func insert(_ arena: Arena, _ root: Int, _ index: Int, _ value: L.Element) throws -> Int {
        let count = try count(arena, root)
        precondition(index >= 0 && index <= count, "index outside the sequence; compare it with the count first")
        return try insert(arena, root, at: index == count ? nil : index, value)
    }

    private static func insert(_ arena: Arena, _ root: Int, at index: Int?, _ value: L.Element) throws -> Int {
        let old = try cutOversizedRoot(arena, root)
        let result = try insert(arena, old, index, value, depth: 0)
        if result.sibling == 0 { return result.ref }
        return try growRoot(arena, result, isAppend: index == nil)
    }

    /// A root above two nodes that were one.
    private static func growRoot(_ arena: Arena, _ result: Insertion, isAppend: Bool) throws -> Int {
        let oldRoot = result.ref
        let node = try arena.memory.node(oldRoot)
        let context: UInt8 = L.contextFlagBelongsToRoot ? node.flags & 0x20 : 0
        var first = Arena.tag(result.leftCount)
        if !isAppend || (node.isInner && arena.element(oldRoot, 0) & 1 == 0) {
            first = Int64(try UnsignedArrayEditor.create(arena, count: 1, value: Int64(result.leftCount)))
        }
        let root = try arena.makeRefs(flags: 0xC0 | context, count: 4, growth: 12)
        arena.setElement(root, 0, first)
        arena.setElement(root, 1, oldRoot)
        arena.setElement(root, 2, result.sibling)
        arena.setElement(root, 3, Arena.tag(result.total))
        return root
    }

    /// Removes element `index`.
    static func erase(_ arena: Arena, _ root: Int, _ index: Int) throws -> Int {
        let count = try count(arena, root)
        precondition(index >= 0 && index < count, "index outside the sequence; compare it with the count first")
        var (root, size) = try erase(arena, try cutOversizedRoot(arena, root), index, depth: 0)
        let context = L.contextFlagBelongsToRoot ? try arena.memory.node(root).hasContext : false
        var depth = 0
        while try arena.memory.node(root).isInner {
            if size == 0 {
                try arena.releaseTree(root)
                return try L.create(arena)
            }
            if size > 1 { break }
            depth += 1
            if depth > depthMax { throw tooDeep(root) }
            root = try replaceByOnlyChild(arena, root)
            let node = try arena.memory.node(root)
            size = node.isInner ? node.count - 2 : try L.count(arena, root)
            if L.contextFlagBelongsToRoot { root = try arena.setContextFlag(root, context) }
        }
        return root
    }

    /// Frees an inner root with one child, but not the child, which it returns.
    private static func replaceByOnlyChild(_ arena: Arena, _ root: Int) throws -> Int {
        let root = try writableInner(arena, root)
        let child = try arena.child(root, 1)
        let first = arena.element(root, 0)
        if first & 1 == 0 { try arena.release(Int(first)) }
        try arena.release(root)
        return child
    }

    // MARK: Insertion below

    /// What became of a node: its ref, and if it was split its new right sibling, the elements left in the node, and the
    /// elements of both.
    private struct Insertion {
        var ref: Int
        var sibling = 0
        var leftCount = 0
        var total = 0
    }

    /// `index` is nil for an append: the way is then the last child all along.
    private static func insert(_ arena: Arena, _ ref: Int, _ index: Int?, _ value: L.Element, depth: Int) throws -> Insertion {
        if depth > depthMax { throw tooDeep(ref) }
        if try !arena.memory.node(ref).isInner { return try insertIntoLeaf(arena, ref, index, value) }

        let ref = try writableInner(arena, ref, growth: 1)
        var place: ChildPlace
        if let index {
            try ensureOffsets(arena, ref)
            place = try childPlace(arena, ref, index)
        } else {
            place = try lastChildPlace(arena, ref)
        }
        let child = try arena.child(ref, place.index + 1)
        let below = try insert(arena, child, index.map { $0 - place.start }, value, depth: depth + 1)
        if below.ref != child { arena.setElement(ref, place.index + 1, below.ref) }
        if below.sibling == 0 {
            addToTotal(arena, ref, 1)
            try shiftOffsets(arena, ref, from: place.index, by: 1)
            return Insertion(ref: ref)
        }
        if childCount(arena, ref) < nodeSizeMax {
            addToTotal(arena, ref, 1)
            if isGeneral(arena, ref) {
                try shiftOffsets(arena, ref, from: place.index, by: 1)
                try insertOffset(arena, ref, at: place.index, place.start + below.leftCount)
            }
            arena.insertElement(ref, place.index + 2, Int64(below.sibling))
            return Insertion(ref: ref)
        }
        return try split(arena, ref, place, below)
    }

    private static func insertIntoLeaf(_ arena: Arena, _ leaf: Int, _ index: Int?, _ value: L.Element) throws -> Insertion {
        let count = try L.count(arena, leaf)
        let index = index ?? count
        if index < 0 || index > count { throw arena.indexOutside(leaf, index, count) }
        if count < nodeSizeMax { return Insertion(ref: try L.insert(arena, leaf, index, value)) }
        if index == count {
            let sibling = try L.insert(arena, try L.create(arena), 0, value)
            return Insertion(ref: leaf, sibling: sibling, leftCount: count, total: count + 1)
        }
        let (left, sibling) = try L.moveTail(arena, from: leaf, at: index, to: try L.create(arena))
        return Insertion(ref: try L.insert(arena, left, index, value), sibling: sibling, leftCount: index + 1, total: count + 1)
    }

    /// Splits a full inner node of which a child was split.
    private static func split(_ arena: Arena, _ ref: Int, _ place: ChildPlace, _ below: Insertion) throws -> Insertion {
        let oldTotal = total(arena, ref)
        let count = childCount(arena, ref)
        let flags: UInt8 = 0xC0
        if place.index == count - 1 {
            let sibling = try arena.makeRefs(flags: flags, count: 3, growth: 13)
            let first = isGeneral(arena, ref) ? Int64(try UnsignedArrayEditor.create(arena)) : arena.element(ref, 0)
            arena.setElement(sibling, 0, first)
            arena.setElement(sibling, 1, below.sibling)
            arena.setElement(sibling, 2, Arena.tag(below.total - below.leftCount))
            setTotal(arena, ref, place.start + below.leftCount)
            return Insertion(
                ref: ref, sibling: sibling, leftCount: place.start + below.leftCount, total: place.start + below.total)
        }
        // Children behind the split one move to a new node, in general form as this one is.
        let left = place.start + below.total
        let moved = count - place.index - 1
        let (offsets, tail) = try UnsignedArrayEditor.moveTail(
            arena, from: try offsetsRef(arena, ref), at: place.index + 1, to: try UnsignedArrayEditor.create(arena))
        let siblingOffsets = try UnsignedArrayEditor.add(arena, tail, from: 0, Int64(1 - left))
        let kept = try UnsignedArrayEditor.truncate(arena, offsets, to: place.index)
        arena.setElement(ref, 0, try UnsignedArrayEditor.append(arena, kept, Int64(place.start + below.leftCount)))

        let sibling = try arena.makeRefs(flags: flags, count: moved + 2, growth: 1)
        arena.setElement(sibling, 0, siblingOffsets)
        for index in 0..<moved { arena.setElement(sibling, index + 1, arena.element(ref, place.index + 2 + index)) }
        arena.setElement(sibling, moved + 1, Arena.tag(oldTotal + 1 - left))

        arena.eraseElements(ref, place.index + 2..<count + 1)
        arena.insertElement(ref, place.index + 2, Int64(below.sibling))
        setTotal(arena, ref, left)
        return Insertion(ref: ref, sibling: sibling, leftCount: left, total: oldTotal + 1)
    }

    // MARK: Erasure below

    /// Returns the node's new ref and how many elements or children it has left.
    private static func erase(_ arena: Arena, _ ref: Int, _ index: Int, depth: Int) throws -> (ref: Int, size: Int) {
        if depth > depthMax { throw tooDeep(ref) }
        if try !arena.memory.node(ref).isInner {
            let leaf = try L.erase(arena, ref, index)
            return (leaf, try L.count(arena, leaf))
        }
        let ref = try writableInner(arena, ref)
        try ensureOffsets(arena, ref)
        let place = try childPlace(arena, ref, index)
        let child = try arena.child(ref, place.index + 1)
        let (edited, size) = try erase(arena, child, index - place.start, depth: depth + 1)
        if edited != child { arena.setElement(ref, place.index + 1, edited) }
        addToTotal(arena, ref, -1)
        try shiftOffsets(arena, ref, from: place.index, by: -1)
        let count = childCount(arena, ref)
        if size == 0 {
            if count == 1 { return (ref, 0) }
            try arena.releaseTree(edited)
            try eraseChild(arena, ref, place.index, offset: min(place.index, count - 2))
            return (ref, count - 1)
        }
        if size < nodeSizeMax / 2 && place.index < count - 1 {
            return (ref, try mergeWithNext(arena, ref, place.index, size) ? count - 1 : count)
        }
        return (ref, count)
    }

    /// Appends the next sibling to a small child if both together are small enough.
    private static func mergeWithNext(_ arena: Arena, _ ref: Int, _ index: Int, _ size: Int) throws -> Bool {
        let child = try arena.child(ref, index + 1)
        let next = try arena.child(ref, index + 2)
        let nextNode = try arena.memory.node(next)
        let isInner = nextNode.isInner
        if try arena.memory.node(child).isInner != isInner {
            throw FormatError(ref: ref, "leaves of the tree are not at one depth")
        }
        let nextSize = isInner ? nextNode.count - 2 : try L.count(arena, next)
        if size + nextSize >= nodeSizeMax * 3 / 4 { return false }
        if isInner {
            let (merged, emptied) = try moveChildren(arena, from: next, to: child)
            arena.setElement(ref, index + 1, merged)
            try arena.release(Int(arena.element(emptied, 0)))
            try arena.release(emptied)
        } else {
            let (emptied, merged) = try L.moveTail(arena, from: next, at: 0, to: child)
            arena.setElement(ref, index + 1, merged)
            try arena.releaseTree(emptied)
        }
        try eraseChild(arena, ref, index + 1, offset: index)
        return true
    }

    /// Appends all children of an inner node to those of its left sibling, both in general form.
    private static func moveChildren(_ arena: Arena, from next: Int, to child: Int) throws -> (child: Int, next: Int) {
        let next = try writableInner(arena, next)
        let moved = childCount(arena, next)
        let child = try writableInner(arena, child, growth: moved)
        try ensureOffsets(arena, next)
        try ensureOffsets(arena, child)
        let before = total(arena, child)
        let after = total(arena, next)
        var offsets = try UnsignedArrayEditor.append(arena, try offsetsRef(arena, child), Int64(before))
        let shifted = try UnsignedArrayEditor.add(arena, try offsetsRef(arena, next), from: 0, Int64(before))
        let emptied: Int
        (emptied, offsets) = try UnsignedArrayEditor.moveTail(arena, from: shifted, at: 0, to: offsets)
        arena.setElement(next, 0, emptied)
        arena.setElement(child, 0, offsets)
        let place = childCount(arena, child) + 1
        for index in 0..<moved { arena.insertElement(child, place + index, arena.element(next, index + 1)) }
        setTotal(arena, child, before + after)
        return (child, next)
    }

    // MARK: Inner nodes; all of them are in the arena, made by `writableInner`

    private struct ChildPlace {
        var index: Int
        /// Elements in the children before it.
        var start: Int
    }

    /// The inner node as it can be changed, its form checked.
    @inline(__always)
    private static func writableInner(_ arena: Arena, _ ref: Int, growth: Int = 0) throws -> Int {
        let ref = try arena.writableRefs(ref, growth: growth)
        let (flags, count) = arena.header(ref)
        if flags & 0x80 == 0 || count < 3 || arena.element(ref, count - 1) & 1 == 0 || arena.element(ref, 0) == 0
            || total(arena, ref) > elementCountMax
        {
            throw damaged(ref)
        }
        return ref
    }

    @inline(never)
    private static func damaged(_ ref: Int) -> FormatError { FormatError(ref: ref, "not the form of an inner node of a B+ tree") }
    @inline(never)
    private static func tooDeep(_ ref: Int) -> FormatError { FormatError(ref: ref, "B+ tree is deeper than \(depthMax) levels") }

    @inline(__always) private static func childCount(_ arena: Arena, _ ref: Int) -> Int { arena.header(ref).count - 2 }
    @inline(__always) private static func isGeneral(_ arena: Arena, _ ref: Int) -> Bool { arena.element(ref, 0) & 1 == 0 }

    static func total(_ node: Node) throws -> Int {
        if node.count < 3 || node.widthType != 0 { throw damaged(node.ref) }
        let total = try node.tagged(node.count - 1)
        if total < 0 || total > elementCountMax { throw damaged(node.ref) }
        return total
    }

    @inline(__always)
    private static func total(_ arena: Arena, _ ref: Int) -> Int { Arena.untag(arena.element(ref, arena.header(ref).count - 1)) }

    private static func setTotal(_ arena: Arena, _ ref: Int, _ total: Int) {
        arena.setElement(ref, arena.header(ref).count - 1, Arena.tag(total))
    }

    @inline(__always)
    private static func addToTotal(_ arena: Arena, _ ref: Int, _ difference: Int) {
        setTotal(arena, ref, total(arena, ref) &+ difference)
    }

    /// The ref of the offsets, made writable on first use and checked to have an element for every child but one.
    private static func offsetsRef(_ arena: Arena, _ ref: Int) throws -> Int {
        let old = Int(arena.element(ref, 0))
        let offsets = try UnsignedArrayEditor.writable(arena, old, growth: 1, code: UnsignedCoding.emptyWidthCode)
        if offsets != old { arena.setElement(ref, 0, offsets) }
        if arena.header(offsets).count != childCount(arena, ref) - 1 {
            throw FormatError(ref: offsets, "offsets of an inner node do not match its children")
        }
        return offsets
    }

    private static func lastChildPlace(_ arena: Arena, _ ref: Int) throws -> ChildPlace {
        let last = childCount(arena, ref) - 1
        if last == 0 { return ChildPlace(index: 0, start: 0) }
        if isGeneral(arena, ref) {
            let offsets = try offsetsRef(arena, ref)
            let start = UnsignedCoding.load(arena.payload(offsets), Int(arena.header(offsets).flags & 7), last - 1)
            if start < 0 || start > total(arena, ref) { throw damaged(ref) }
            return ChildPlace(index: last, start: Int(start))
        }
        let (start, overflow) = last.multipliedReportingOverflow(by: Arena.untag(arena.element(ref, 0)))
        if overflow || start < 0 || start > total(arena, ref) { throw damaged(ref) }
        return ChildPlace(index: last, start: start)
    }

    /// The child that holds element `index`; at a border between two children, the second.
    private static func childPlace(_ arena: Arena, _ ref: Int, _ index: Int) throws -> ChildPlace {
        let first = arena.element(ref, 0)
        if first & 1 != 0 {
            let each = Arena.untag(first)
            if each == 0 { throw damaged(ref) }
            let child = min(index / each, childCount(arena, ref) - 1)
            return ChildPlace(index: child, start: child * each)
        }
        let offsets = try arena.integerNode(Int(first))
        if offsets.count != childCount(arena, ref) - 1 {
            throw FormatError(ref: Int(first), "offsets of an inner node do not match its children")
        }
        var low = 0
        var high = offsets.count
        while low < high {
            let middle = (low + high) >> 1
            if offsets.uncheckedUnsigned(middle) <= UInt64(index) { low = middle + 1 } else { high = middle }
        }
        return ChildPlace(index: low, start: low == 0 ? 0 : Int(offsets.uncheckedUnsigned(low - 1)))
    }

    /// Turns the compact form into the general one.
    private static func ensureOffsets(_ arena: Arena, _ ref: Int) throws {
        let first = arena.element(ref, 0)
        if first & 1 == 0 { return }
        let count = childCount(arena, ref)
        let each = Arena.untag(first)
        let (end, overflow) = each.multipliedReportingOverflow(by: count)
        if overflow || end < 0 || each == 0 { throw damaged(ref) }
        var offsets = try UnsignedArrayEditor.create(arena, count: count - 1, value: Int64((count - 1) * each))
        for index in 0..<count - 1 { offsets = try UnsignedArrayEditor.set(arena, offsets, index, Int64((index + 1) * each)) }
        arena.setElement(ref, 0, offsets)
    }

    private static func shiftOffsets(_ arena: Arena, _ ref: Int, from index: Int, by difference: Int64) throws {
        if !isGeneral(arena, ref) { return }
        let old = try offsetsRef(arena, ref)
        let offsets = try UnsignedArrayEditor.add(arena, old, from: index, difference)
        if offsets != old { arena.setElement(ref, 0, offsets) }
    }

    private static func insertOffset(_ arena: Arena, _ ref: Int, at index: Int, _ offset: Int) throws {
        let old = try offsetsRef(arena, ref)
        let offsets = try UnsignedArrayEditor.insert(arena, old, index, Int64(offset))
        if offsets != old { arena.setElement(ref, 0, offsets) }
    }

    /// Removes the ref of child `index` and one offset; the child itself was freed or emptied.
    private static func eraseChild(_ arena: Arena, _ ref: Int, _ index: Int, offset: Int) throws {
        let offsets = try UnsignedArrayEditor.erase(arena, try offsetsRef(arena, ref), offset)
        arena.setElement(ref, 0, offsets)
        arena.eraseElements(ref, index + 1..<index + 2)
    }

    // MARK: Roots of older formats

    /// Cuts a root that is larger than a node may be into nodes under a new root in compact form (file-format-1 9.6).
    private static func cutOversizedRoot(_ arena: Arena, _ root: Int) throws -> Int {
        let node = try arena.memory.node(root)
        if node.isInner { return node.count - 2 <= nodeSizeMax ? root : try cutOversizedInnerRoot(arena, root) }
        let count = try L.count(arena, root)
        if count <= nodeSizeMax { return root }
        let context: UInt8 = L.contextFlagBelongsToRoot ? node.flags & 0x20 : 0
        let children = (count + nodeSizeMax - 1) / nodeSizeMax
        let newRoot = try arena.makeRefs(flags: 0xC0 | context, count: children + 2, growth: 1)
        var rest = root
        for child in (1..<children).reversed() {
            let leaf: Int
            (rest, leaf) = try L.moveTail(arena, from: rest, at: child * nodeSizeMax, to: try L.create(arena))
            arena.setElement(newRoot, child + 1, leaf)
        }
        arena.setElement(newRoot, 0, Arena.tag(nodeSizeMax))
        arena.setElement(newRoot, 1, rest)
        arena.setElement(newRoot, children + 1, Arena.tag(count))
        // More than 1000 leaves of 1000 elements make another level.
        return children > nodeSizeMax ? try cutOversizedInnerRoot(arena, newRoot) : newRoot
    }

    /// Cuts an inner root with too many children; the new nodes are in general form unless the old one was compact.
    private static func cutOversizedInnerRoot(_ arena: Arena, _ root: Int) throws -> Int {
        let old = try writableInner(arena, root)
        let count = childCount(arena, old)
        let groups = (count + nodeSizeMax - 1) / nodeSizeMax
        if groups > nodeSizeMax { throw damaged(root) }
        let isCompact = !isGeneral(arena, old)
        let each = isCompact ? Arena.untag(arena.element(old, 0)) : 0
        let all = total(arena, old)
        try ensureOffsets(arena, old)
        var offsets = try offsetsRef(arena, old)
        let context: UInt8 = L.contextFlagBelongsToRoot ? arena.header(old).flags & 0x20 : 0
        let newRoot = try arena.makeRefs(flags: 0xC0 | context, count: groups + 2, growth: 1)
        var starts = try UnsignedArrayEditor.create(arena)
        for group in 0..<groups {
            let first = group * nodeSizeMax
            let size = min(nodeSizeMax, count - first)
            let start = first == 0 ? 0 : Int(try UnsignedArrayEditor.get(arena, offsets, first - 1))
            let end = first + size == count ? all : Int(try UnsignedArrayEditor.get(arena, offsets, first + size - 1))
            if start < 0 || end < start || end > all { throw damaged(root) }
            let inner = try arena.makeRefs(flags: 0xC0, count: size + 2, growth: 1)
            if isCompact {
                arena.setElement(inner, 0, Arena.tag(each))
            } else {
                var own = try UnsignedArrayEditor.create(arena)
                for index in first..<first + size - 1 {
                    own = try UnsignedArrayEditor.append(
                        arena, own, try UnsignedArrayEditor.get(arena, offsets, index) &- Int64(start))
                }
                arena.setElement(inner, 0, own)
            }
            for index in 0..<size { arena.setElement(inner, index + 1, arena.element(old, first + index + 1)) }
            arena.setElement(inner, size + 1, Arena.tag(end - start))
            arena.setElement(newRoot, group + 1, inner)
            if group > 0 { starts = try UnsignedArrayEditor.append(arena, starts, Int64(start)) }
        }
        let (span, overflow) = each.multipliedReportingOverflow(by: nodeSizeMax)
        if isCompact && !overflow {
            try arena.release(starts)
            arena.setElement(newRoot, 0, Arena.tag(span))
        } else {
            arena.setElement(newRoot, 0, starts)
        }
        arena.setElement(newRoot, groups + 1, Arena.tag(all))
        offsets = Int(arena.element(old, 0))
        try arena.release(offsets)
        try arena.release(old)
        return newRoot
    }
}

extension BPlusTreeEditor where L == KeyLeafEditor {
    /// Stores in the root whether the tree of links holds an unresolved key (file-format-1 9.7).
    static func setHoldsUnresolved(_ arena: Arena, _ root: Int, _ flag: Bool) throws -> Int {
        try arena.setContextFlag(root, flag)
    }
}
