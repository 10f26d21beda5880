/// Changes to the tree that holds the objects of a table (file-format-2 4.2 to 4.6).
///
/// ```
/// leaf    [0] odd: keys are 0..<n, compact form | even: ref of the n keys, general form      [1 + i] leaf of column i
/// inner   [0] 0: child i begins at i << 8*depth, compact | ref of the children's offsets, general
///         [1] tagged depth   [2] tagged number of objects   [3...] children
/// ```
/// Invariants: keys are unsigned and relative to the sum of the offsets on the path; offsets ascend, the first is 0; leaves
/// have at most 256 rows and inner nodes at most 256 children; no leaf is empty but a root; every column has as many rows
/// as the leaf. A tree of keys 0, 1, 2, ... is compact throughout; whatever does not fit makes a node general, for good.
///
/// An editor is made for a set of columns; every leaf of the tree has a leaf of each of them. Operations take the root
/// `inout`: it changes when it is copied, split or collapsed.
struct ClusterTreeEditor {
    let arena: Arena
    let columns: [ClusterColumn]

    static let nodeSizeMax = 256
    static let mergeBelow = 128, mergedSizeBelow = 192
    /// Elements of an inner node before its children.
    static let headerSlots = 3

    init(_ arena: Arena, columns: [ClusterColumn]) {
        self.arena = arena
        self.columns = columns
    }

    /// Where an object lies: its cluster leaf, writable in the arena, and its row. Good until the tree is changed otherwise.
    struct RowPlace {
        let leaf: Int
        let row: Int
    }

    // MARK: The whole tree

    /// An empty tree: a leaf without rows, with an empty leaf for every column.
    func create() throws -> Int {
        let slots = 1 + (columns.map { $0.leafIndex + 1 }.max() ?? 0)
        return try createLeaf(slots: slots, first: Arena.tag(0))
    }

    private func createLeaf(slots: Int, first: Int64) throws -> Int {
        let leaf = try arena.makeRefs(count: slots)
        arena.setElement(leaf, 0, first)
        for column in columns {
            arena.setElement(leaf, 1 + column.leafIndex, try ColumnLeafEditor.createFilled(arena, column, count: 0))
        }
        return leaf
    }

    /// Number of objects.
    func count(_ root: Int) throws -> Int { try ClusterTree(arena.memory, root).count }

    /// Removes all objects and what they own.
    func clear(_ root: inout Int) throws {
        let empty = try create()
        try arena.releaseTree(root)
        root = empty
    }

    // MARK: Rows

    /// Makes the object's row writable, or returns nil if there is no such object. The leaf of a column is then found with
    /// `columnLeaf` and, after its change, put back with `setColumnLeaf`.
    @inline(__always)
    func makeRowWritable(_ root: inout Int, _ key: ObjectKey) throws -> RowPlace? {
        var k = UInt64(bitPattern: key.rawValue)
        var level = try self.level(root)
        root = level == 0 ? try writableLeaf(root) : try writableInner(root, level)
        var node = root
        while level > 0 {
            guard let place = try childPlace(node, level, k) else { return nil }
            k &-= place.offset
            level &-= 1
            let child = try arena.child(node, ClusterTreeEditor.headerSlots &+ place.index)
            let copy = level == 0 ? try writableLeaf(child) : try writableInner(child, level)
            if copy != child { arena.setElement(node, ClusterTreeEditor.headerSlots &+ place.index, copy) }
            node = copy
        }
        guard let row = try findRow(node, k) else { return nil }
        return RowPlace(leaf: node, row: row)
    }

    /// The leaf of a column in a cluster leaf that was made writable.
    @inline(__always)
    func columnLeaf(_ place: RowPlace, _ leafIndex: Int) throws -> Int { try arena.child(place.leaf, 1 &+ leafIndex) }

    @inline(__always)
    func setColumnLeaf(_ place: RowPlace, _ leafIndex: Int, _ ref: Int) { arena.setElement(place.leaf, 1 &+ leafIndex, ref) }

    /// Inserts an object whose columns hold their defaults, or returns nil if there is one with this key.
    func insert(_ root: inout Int, _ key: ObjectKey) throws -> RowPlace? {
        let level = try self.level(root)
        let result = try insert(root, UInt64(bitPattern: key.rawValue), level)
        root = result.ref
        if result.sibling != 0 { root = try growRoot(result, level + 1) }
        return result.row < 0 ? nil : RowPlace(leaf: result.leaf, row: result.row)
    }

    /// Removes an object and what its values own; false if there is none with this key. Backlinks in other tables are
    /// the caller's business.
    func erase(_ root: inout Int, _ key: ObjectKey) throws -> Bool {
        var level = try self.level(root)
        let result = try erase(root, UInt64(bitPattern: key.rawValue), level)
        root = result.ref
        guard result.found else { return false }
        if level > 0 && result.size == 0 {
            try clear(&root)
            return true
        }
        while level > 0 && arena.header(root).count == ClusterTreeEditor.headerSlots + 1 {
            let old = root
            root = try arena.child(old, ClusterTreeEditor.headerSlots)
            if arena.element(old, 0) != 0 { try arena.release(try arena.child(old, 0)) }
            try arena.release(old)
            level -= 1
            root = level == 0 ? try writableLeaf(root) : try writableInner(root, level)
        }
        return true
    }

    // MARK: Columns

    /// Gives every leaf of the tree a leaf for one more column, filled with its default.
    func addColumn(_ root: inout Int, _ column: ClusterColumn) throws {
        root = try editLeaves(root, try level(root)) { leaf in
            let slots = arena.header(leaf).count
            let slot = 1 + column.leafIndex
            let leaf = try arena.writableRefs(leaf, growth: max(0, slot + 1 - slots))
            for index in slots..<max(slots, slot + 1) { arena.insertElement(leaf, index, 0) }
            if arena.element(leaf, slot) != 0 { throw FormatError(ref: leaf, "slot \(slot) of a new column is in use") }
            arena.setElement(leaf, slot, try ColumnLeafEditor.createFilled(arena, column, count: try rowCount(leaf)))
            return leaf
        }
    }

    /// Frees the leaf of a column in every leaf of the tree. The last slot of a leaf goes, another becomes empty.
    func removeColumn(_ root: inout Int, leafIndex: Int) throws {
        let slot = 1 + leafIndex
        root = try editLeaves(root, try level(root)) { leaf in
            let slots = arena.header(leaf).count
            if slot >= slots { return leaf }
            if arena.element(leaf, slot) != 0 { try arena.releaseTree(try arena.child(leaf, slot)) }
            arena.setElement(leaf, slot, 0)
            if slot == slots - 1 { arena.eraseElements(leaf, slot..<slots) }
            return leaf
        }
    }

    /// Hands every cluster leaf, made writable, to `edit`, which returns its new ref. The number of rows must stay.
    func editLeaves(_ root: inout Int, _ edit: (_ leaf: Int) throws -> Int) throws {
        root = try editLeaves(root, try level(root), edit)
    }

    private func editLeaves(_ ref: Int, _ level: Int, _ edit: (Int) throws -> Int) throws -> Int {
        if level == 0 { return try edit(try writableLeaf(ref)) }
        let ref = try writableInner(ref, level)
        for index in ClusterTreeEditor.headerSlots..<arena.header(ref).count {
            arena.setElement(ref, index, try editLeaves(try arena.child(ref, index), level - 1, edit))
        }
        return ref
    }

    // MARK: Insertion

    /// What became of a node: its ref; if it was split its new right sibling and the sibling's offset in the node; and where
    /// the row is, -1 if there was one with this key.
    private struct Insertion {
        var ref: Int
        var sibling = 0
        var splitKey: UInt64 = 0
        var leaf = 0
        var row = -1
    }

    private func insert(_ ref: Int, _ key: UInt64, _ level: Int) throws -> Insertion {
        if level == 0 { return try insertIntoLeaf(ref, key) }
        let ref = try writableInner(ref, level, growth: 1)
        guard let place = try childPlace(ref, level, key) else {
            throw FormatError(ref: ref, "first offset of an inner cluster node is not 0")
        }
        let slot = ClusterTreeEditor.headerSlots + place.index
        let child = try arena.child(ref, slot)
        var below = try insert(child, key &- place.offset, level - 1)
        if below.ref != child { arena.setElement(ref, slot, below.ref) }
        if below.row < 0 {
            below.ref = ref
            return below
        }
        arena.setElement(ref, 2, arena.element(ref, 2) &+ 2)
        if below.sibling == 0 {
            below.ref = ref
            return below
        }
        let count = childCount(ref)
        let splitKey = below.splitKey &+ place.offset
        if count < ClusterTreeEditor.nodeSizeMax {
            if arena.element(ref, 0) != 0 || splitKey != UInt64(count) << UInt64(8 * level) {
                let offsets = try ensureOffsets(ref, level)
                arena.setElement(
                    ref, 0, try UnsignedArrayEditor.insert(arena, offsets, place.index + 1, Int64(bitPattern: splitKey)))
            }
            arena.insertElement(ref, slot + 1, Int64(below.sibling))
            return Insertion(ref: ref, leaf: below.leaf, row: below.row)
        }
        return try split(ref, level, place.index, splitKey, below)
    }

    /// Splits a full inner node of which a child was split.
    private func split(_ ref: Int, _ level: Int, _ index: Int, _ splitKey: UInt64, _ below: Insertion) throws -> Insertion {
        let count = childCount(ref)
        if index == count - 1 {
            let sibling = try arena.makeRefs(flags: 0xC0, count: ClusterTreeEditor.headerSlots + 1, growth: 12)
            let size = try objectCount(below.sibling, level - 1)
            arena.setElement(sibling, 1, Arena.tag(level))
            arena.setElement(sibling, 2, Arena.tag(size))
            arena.setElement(sibling, 3, below.sibling)
            arena.setElement(ref, 2, arena.element(ref, 2) &- Int64(2 * size))
            return Insertion(ref: ref, sibling: sibling, splitKey: splitKey, leaf: below.leaf, row: below.row)
        }
        // Children behind the split one move to a new node; offsets become relative to the first of them.
        let offsets = try ensureOffsets(ref, level)
        let first = UInt64(bitPattern: try UnsignedArrayEditor.get(arena, offsets, index + 1))
        let (kept, tail) = try UnsignedArrayEditor.moveTail(
            arena, from: offsets, at: index + 1, to: try UnsignedArrayEditor.create(arena))
        arena.setElement(ref, 0, try UnsignedArrayEditor.append(arena, kept, Int64(bitPattern: splitKey)))
        let moved = count - index - 1
        let sibling = try arena.makeRefs(flags: 0xC0, count: ClusterTreeEditor.headerSlots + moved, growth: 1)
        arena.setElement(sibling, 0, try UnsignedArrayEditor.add(arena, tail, from: 0, Int64(bitPattern: 0 &- first)))
        arena.setElement(sibling, 1, Arena.tag(level))
        let start = ClusterTreeEditor.headerSlots + index + 1
        var size = 0
        for child in 0..<moved {
            arena.setElement(sibling, ClusterTreeEditor.headerSlots + child, arena.element(ref, start + child))
            size += try objectCount(try arena.child(ref, start + child), level - 1)
        }
        arena.setElement(sibling, 2, Arena.tag(size))
        arena.setElement(ref, 2, arena.element(ref, 2) &- Int64(2 * size))
        arena.eraseElements(ref, start..<start + moved)
        arena.insertElement(ref, start, Int64(below.sibling))
        return Insertion(ref: ref, sibling: sibling, splitKey: first, leaf: below.leaf, row: below.row)
    }

    /// A root above two nodes that were one.
    private func growRoot(_ result: Insertion, _ level: Int) throws -> Int {
        if level > ClusterTree.depthMax {
            throw FormatError(ref: result.ref, "cluster tree is deeper than \(ClusterTree.depthMax) levels")
        }
        let root = try arena.makeRefs(flags: 0xC0, count: ClusterTreeEditor.headerSlots + 2, growth: 11)
        if result.splitKey != 1 << UInt64(8 * level) {
            let offsets = try UnsignedArrayEditor.create(arena, count: 1, value: 0)
            arena.setElement(root, 0, try UnsignedArrayEditor.append(arena, offsets, Int64(bitPattern: result.splitKey)))
        }
        let size = try objectCount(result.ref, level - 1) + objectCount(result.sibling, level - 1)
        arena.setElement(root, 1, Arena.tag(level))
        arena.setElement(root, 2, Arena.tag(size))
        arena.setElement(root, 3, result.ref)
        arena.setElement(root, 4, result.sibling)
        return root
    }

    private func insertIntoLeaf(_ ref: Int, _ key: UInt64) throws -> Insertion {
        let leaf = try writableLeaf(ref)
        let first = arena.element(leaf, 0)
        if first & 1 != 0 {
            let count = Arena.untag(first)
            if key < UInt64(count) { return Insertion(ref: leaf) }
            if count == ClusterTreeEditor.nodeSizeMax { return try appendLeaf(leaf, key) }
            if key == UInt64(count) {
                arena.setElement(leaf, 0, first &+ 2)
                try insertDefaults(leaf, count)
                return Insertion(ref: leaf, leaf: leaf, row: count)
            }
            arena.setElement(leaf, 0, try makeKeys(count))
        }
        let keys = try arena.integerNode(try arena.child(leaf, 0))
        let count = keys.count
        let row = lowerBound(keys, key)
        if row < count && keys.uncheckedUnsigned(row) == key { return Insertion(ref: leaf) }
        if count == ClusterTreeEditor.nodeSizeMax {
            return row == count ? try appendLeaf(leaf, key) : try splitLeaf(leaf, row, key)
        }
        arena.setElement(leaf, 0, try UnsignedArrayEditor.insert(arena, keys.ref, row, Int64(bitPattern: key)))
        try insertDefaults(leaf, row)
        return Insertion(ref: leaf, leaf: leaf, row: row)
    }

    /// A new leaf behind a full one, holding only the new row.
    private func appendLeaf(_ leaf: Int, _ key: UInt64) throws -> Insertion {
        let sibling = try arena.makeRefs(count: arena.header(leaf).count)
        arena.setElement(sibling, 0, Arena.tag(1))
        for column in columns {
            arena.setElement(sibling, 1 + column.leafIndex, try ColumnLeafEditor.createFilled(arena, column, count: 1))
        }
        return Insertion(ref: leaf, sibling: sibling, splitKey: key, leaf: sibling, row: 0)
    }

    /// Moves the rows from `row` on to a new leaf and appends the new row to the old one, which is in general form.
    private func splitLeaf(_ leaf: Int, _ row: Int, _ key: UInt64) throws -> Insertion {
        let keys = try arena.child(leaf, 0)
        let splitKey = UInt64(bitPattern: try UnsignedArrayEditor.get(arena, keys, row))
        let (kept, tail) = try UnsignedArrayEditor.moveTail(arena, from: keys, at: row, to: try UnsignedArrayEditor.create(arena))
        arena.setElement(leaf, 0, try UnsignedArrayEditor.append(arena, kept, Int64(bitPattern: key)))
        let siblingKeys = try UnsignedArrayEditor.add(arena, tail, from: 0, Int64(bitPattern: 0 &- splitKey))
        let sibling = try createLeaf(slots: arena.header(leaf).count, first: Int64(siblingKeys))
        try checkRowCounts(leaf, ClusterTreeEditor.nodeSizeMax)
        for column in columns {
            let slot = 1 + column.leafIndex
            let (left, right) = try ColumnLeafEditor.moveTail(
                arena, column, from: try arena.child(leaf, slot), at: row, to: try arena.child(sibling, slot))
            arena.setElement(sibling, slot, right)
            arena.setElement(leaf, slot, try ColumnLeafEditor.insertDefault(arena, column, left, row))
        }
        return Insertion(ref: leaf, sibling: sibling, splitKey: splitKey, leaf: leaf, row: row)
    }

    @inline(__always)
    private func insertDefaults(_ leaf: Int, _ row: Int) throws {
        for index in 0..<columns.count {
            let column = columns[index]
            let slot = 1 &+ column.leafIndex
            let old = try arena.child(leaf, slot)
            let new = try ColumnLeafEditor.insertDefault(arena, column, old, row)
            if new != old { arena.setElement(leaf, slot, new) }
        }
    }

    // MARK: Nodes

    /// Levels above the leaves.
    @inline(__always)
    func level(_ root: Int) throws -> Int {
        if arena.memory.isInArena(root) {
            let (flags, count) = arena.header(root)
            if flags & 0x80 == 0 { return 0 }
            if flags & 0x5F == 0x47 && count > 1 {
                let element = arena.element(root, 1)
                if element >= 3 && element <= Int64(2 &* ClusterTree.depthMax &+ 1) && element & 1 != 0 {
                    return Int(element >> 1)
                }
            }
        }
        return try levelSlowly(root)
    }

    @inline(never)
    func levelSlowly(_ root: Int) throws -> Int {
        let node = try arena.memory.node(root)
        if !node.isInner { return 0 }
        let level = try arena.integerNode(root).tagged(1)
        if level < 1 || level > ClusterTree.depthMax { throw wrongLevel(root, level) }
        return level
    }

    @inline(never)
    func wrongLevel(_ ref: Int, _ level: Int) -> FormatError {
        FormatError(ref: ref, "cluster node is not one of level \(level)")
    }

    /// An inner node of the given level as it can be changed.
    @inline(__always)
    func writableInner(_ ref: Int, _ level: Int, growth: Int = 0) throws -> Int {
        let ref = try arena.writableRefs(ref, growth: growth)
        let (flags, count) = arena.header(ref)
        if flags & 0x80 == 0 || count <= ClusterTreeEditor.headerSlots
            || count > ClusterTreeEditor.headerSlots &+ ClusterTreeEditor.nodeSizeMax
            || arena.element(ref, 1) != Int64(2 &* level &+ 1) || arena.element(ref, 2) & 1 == 0
        {
            throw wrongLevel(ref, level)
        }
        return ref
    }

    /// A leaf as it can be changed.
    @inline(__always)
    func writableLeaf(_ ref: Int) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let (flags, count) = arena.header(ref)
        if flags & 0x80 != 0 || count == 0 { throw wrongLevel(ref, 0) }
        let first = arena.element(ref, 0)
        if first & 1 != 0 {
            if UInt64(bitPattern: first) > UInt64(2 &* ClusterTreeEditor.nodeSizeMax &+ 1) { throw wrongLevel(ref, 0) }
        } else if try arena.integerNode(try arena.child(ref, 0)).count > ClusterTreeEditor.nodeSizeMax {
            throw wrongLevel(ref, 0)
        }
        return ref
    }

    @inline(__always)
    func childCount(_ ref: Int) -> Int { arena.header(ref).count &- ClusterTreeEditor.headerSlots }

    /// Rows of a leaf that was made writable.
    @inline(__always)
    func rowCount(_ leaf: Int) throws -> Int {
        let first = arena.element(leaf, 0)
        return first & 1 != 0 ? Arena.untag(first) : try arena.integerNode(try arena.child(leaf, 0)).count
    }

    /// Throws unless every column of a leaf has as many rows as the leaf; before rows move, so that they stay in step.
    func checkRowCounts(_ leaf: Int, _ rows: Int) throws {
        for column in columns {
            let ref = try arena.child(leaf, 1 + column.leafIndex)
            let count = try ColumnLeafEditor.count(arena, column, ref)
            if count != rows {
                throw FormatError(ref: ref, "leaf of column \(column.leafIndex) has \(count) rows where the cluster has \(rows)")
            }
        }
    }

    func objectCount(_ ref: Int, _ level: Int) throws -> Int {
        let node = try arena.memory.node(ref)
        if node.isInner != (level > 0) { throw wrongLevel(ref, level) }
        if level == 0 { return try ClusterTree.leafCount(arena.memory, node) }
        let count = try node.tagged(2)
        if count < 0 || count > 1 << 52 { throw wrongLevel(ref, level) }
        return count
    }

    /// The row with the key in a leaf that was made writable.
    @inline(__always)
    func findRow(_ leaf: Int, _ key: UInt64) throws -> Int? {
        let first = arena.element(leaf, 0)
        if first & 1 != 0 { return key < UInt64(bitPattern: first) >> 1 ? Int(key) : nil }
        let keys = try arena.integerNode(try arena.child(leaf, 0))
        let row = lowerBound(keys, key)
        return row < keys.count && keys.uncheckedUnsigned(row) == key ? row : nil
    }

    @inline(__always)
    func lowerBound(_ keys: Node, _ key: UInt64) -> Int {
        if keys.count == 0 { return 0 }
        if keys.uncheckedUnsigned(keys.count &- 1) < key { return keys.count }
        return ClusterTree.lowerBound(keys, key)
    }

    /// The child that holds the key, or would hold it, and its offset. Nil where the key lies before the first child.
    @inline(__always)
    func childPlace(_ ref: Int, _ level: Int, _ key: UInt64) throws -> (index: Int, offset: UInt64)? {
        let last = childCount(ref) &- 1
        if arena.element(ref, 0) == 0 {
            let shift = UInt64(8 &* level)
            let index = min(key >> shift, UInt64(last))
            return (Int(index), index << shift)
        }
        let offsets = try arena.integerNode(try arena.child(ref, 0))
        if offsets.count != last &+ 1 { throw offsetMismatch(offsets.ref) }
        let end = offsets.uncheckedUnsigned(last)
        if end <= key { return (last, end) }
        let above = ClusterTree.upperBound(offsets, key)
        return above == 0 ? nil : (above &- 1, offsets.uncheckedUnsigned(above &- 1))
    }

    @inline(never)
    func offsetMismatch(_ ref: Int) -> FormatError {
        FormatError(ref: ref, "offsets of a cluster node do not match its children")
    }

    func makeKeys(_ count: Int) throws -> Int64 {
        let keys = try UnsignedArrayEditor.create(arena, count: count, value: 0)
        let payload = arena.payload(keys)
        for row in 0..<count { payload.storeBytes(of: UInt8(truncatingIfNeeded: row), toByteOffset: row, as: UInt8.self) }
        return Int64(keys)
    }

    /// The keys of a leaf, which gets general form if it has not.
    func ensureKeys(_ leaf: Int) throws -> Int {
        if arena.element(leaf, 0) & 1 != 0 { arena.setElement(leaf, 0, try makeKeys(Arena.untag(arena.element(leaf, 0)))) }
        return try arena.child(leaf, 0)
    }

    /// The offsets of an inner node, which gets general form if it has not.
    func ensureOffsets(_ ref: Int, _ level: Int) throws -> Int {
        let count = childCount(ref)
        if arena.element(ref, 0) == 0 {
            var offsets = try UnsignedArrayEditor.create(arena)
            for index in 0..<count {
                offsets = try UnsignedArrayEditor.append(arena, offsets, Int64(bitPattern: UInt64(index) << UInt64(8 * level)))
            }
            arena.setElement(ref, 0, offsets)
            return offsets
        }
        let offsets = try arena.child(ref, 0)
        if try ArrayEditor.count(arena, offsets) != count { throw offsetMismatch(offsets) }
        return offsets
    }
}
