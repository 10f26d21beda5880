/// Erasure of an object below a node of a cluster tree (file-format-2 4.6): a child that becomes empty goes, a small one takes
/// in its next sibling, and a first child that goes hands its place, offset 0, to the next one.
extension ClusterTreeEditor {
    struct Erasure {
        var ref: Int
        var found: Bool
        /// Rows or children that are left.
        var size = 0
    }

    func erase(_ ref: Int, _ key: UInt64, _ level: Int) throws -> Erasure {
        if level == 0 { return try eraseFromLeaf(ref, key) }
        let ref = try writableInner(ref, level)
        guard let place = try childPlace(ref, level, key) else { return Erasure(ref: ref, found: false) }
        let slot = ClusterTreeEditor.headerSlots + place.index
        let child = try arena.child(ref, slot)
        let below = try erase(child, key &- place.offset, level - 1)
        if below.ref != child { arena.setElement(ref, slot, below.ref) }
        if !below.found { return Erasure(ref: ref, found: false) }
        arena.setElement(ref, 2, arena.element(ref, 2) &- 2)
        let count = childCount(ref)
        if below.size == 0 {
            try arena.releaseTree(below.ref)
            try eraseChild(ref, level, place.index)
            if place.index == 0 && count > 1 { try rebaseFirstChild(ref, level) }
            return Erasure(ref: ref, found: true, size: count - 1)
        }
        if below.size < ClusterTreeEditor.mergeBelow && place.index < count - 1,
            try mergeWithNext(ref, level, place.index, below.size)
        {
            return Erasure(ref: ref, found: true, size: count - 1)
        }
        return Erasure(ref: ref, found: true, size: count)
    }

    private func eraseFromLeaf(_ ref: Int, _ key: UInt64) throws -> Erasure {
        let leaf = try writableLeaf(ref)
        guard let row = try findRow(leaf, key) else { return Erasure(ref: leaf, found: false) }
        let count = try rowCount(leaf)
        if arena.element(leaf, 0) & 1 != 0 && row == count - 1 {
            arena.setElement(leaf, 0, Arena.tag(row))
        } else {
            arena.setElement(leaf, 0, try UnsignedArrayEditor.erase(arena, try ensureKeys(leaf), row))
        }
        for column in columns {
            let slot = 1 + column.leafIndex
            arena.setElement(leaf, slot, try ColumnLeafEditor.erase(arena, column, try arena.child(leaf, slot), row))
        }
        return Erasure(ref: leaf, found: true, size: count - 1)
    }

    /// Removes the ref and the offset of a child that was freed or emptied.
    private func eraseChild(_ ref: Int, _ level: Int, _ index: Int) throws {
        arena.setElement(ref, 0, try UnsignedArrayEditor.erase(arena, try ensureOffsets(ref, level), index))
        let slot = ClusterTreeEditor.headerSlots + index
        arena.eraseElements(ref, slot..<slot + 1)
    }

    /// Makes the first offset 0 again by adding it to the keys of the first child.
    private func rebaseFirstChild(_ ref: Int, _ level: Int) throws {
        let offsets = try ensureOffsets(ref, level)
        let first = UInt64(bitPattern: try UnsignedArrayEditor.get(arena, offsets, 0))
        let child = try raise(try arena.child(ref, ClusterTreeEditor.headerSlots), level - 1, by: first)
        arena.setElement(ref, ClusterTreeEditor.headerSlots, child)
        arena.setElement(ref, 0, try UnsignedArrayEditor.set(arena, offsets, 0, 0))
    }

    /// Adds a number to all keys below a node.
    private func raise(_ ref: Int, _ level: Int, by difference: UInt64) throws -> Int {
        if level == 0 {
            let leaf = try writableLeaf(ref)
            arena.setElement(
                leaf, 0, try UnsignedArrayEditor.add(arena, try ensureKeys(leaf), from: 0, Int64(bitPattern: difference)))
            return leaf
        }
        let inner = try writableInner(ref, level)
        let offsets = try ensureOffsets(inner, level)
        arena.setElement(inner, 0, try UnsignedArrayEditor.add(arena, offsets, from: 0, Int64(bitPattern: difference)))
        try rebaseFirstChild(inner, level)
        return inner
    }

    /// Takes the next sibling into a small child if both together are small enough.
    private func mergeWithNext(_ ref: Int, _ level: Int, _ index: Int, _ size: Int) throws -> Bool {
        let slot = ClusterTreeEditor.headerSlots + index
        let next = try arena.child(ref, slot + 1)
        let nextNode = try arena.memory.node(next)
        let nextSize =
            level == 1 ? try ClusterTree.leafCount(arena.memory, nextNode) : nextNode.count - ClusterTreeEditor.headerSlots
        if size + nextSize >= ClusterTreeEditor.mergedSizeBelow { return false }
        let offsets = try ensureOffsets(ref, level)
        let distance = try UnsignedArrayEditor.get(arena, offsets, index + 1) &- UnsignedArrayEditor.get(arena, offsets, index)
        let child = try arena.child(ref, slot)
        if level == 1 {
            try mergeLeaves(child, try writableLeaf(next), distance) { arena.setElement(ref, slot, $0) }
        } else {
            let merged = try mergeInner(child, try writableInner(next, level - 1), level - 1, distance)
            arena.setElement(ref, slot, merged)
        }
        try eraseChild(ref, level, index + 1)
        return true
    }

    private func mergeLeaves(_ leaf: Int, _ next: Int, _ distance: Int64, _ store: (Int) -> Void) throws {
        try checkRowCounts(leaf, try rowCount(leaf))
        try checkRowCounts(next, try rowCount(next))
        let shifted = try UnsignedArrayEditor.add(arena, try ensureKeys(next), from: 0, distance)
        let (emptied, keys) = try UnsignedArrayEditor.moveTail(arena, from: shifted, at: 0, to: try ensureKeys(leaf))
        arena.setElement(next, 0, emptied)
        arena.setElement(leaf, 0, keys)
        for column in columns {
            let slot = 1 + column.leafIndex
            let (rest, joined) = try ColumnLeafEditor.moveTail(
                arena, column, from: try arena.child(next, slot), at: 0, to: try arena.child(leaf, slot))
            arena.setElement(next, slot, rest)
            arena.setElement(leaf, slot, joined)
        }
        try arena.releaseTree(next)
        store(leaf)
    }

    private func mergeInner(_ child: Int, _ next: Int, _ level: Int, _ distance: Int64) throws -> Int {
        let moved = childCount(next)
        let child = try writableInner(child, level, growth: moved)
        let shifted = try UnsignedArrayEditor.add(arena, try ensureOffsets(next, level), from: 0, distance)
        let (emptied, offsets) = try UnsignedArrayEditor.moveTail(
            arena, from: shifted, at: 0, to: try ensureOffsets(child, level))
        arena.setElement(child, 0, offsets)
        for index in 0..<moved {
            arena.insertElement(child, arena.header(child).count, arena.element(next, ClusterTreeEditor.headerSlots + index))
        }
        arena.setElement(child, 2, arena.element(child, 2) &+ arena.element(next, 2) &- 1)
        try arena.release(emptied)
        try arena.release(next)
        return child
    }
}
