/// Assignments to an object whose row is known and lies in the arena already: what the object layer does most.
///
/// A cluster leaf in the arena was made writable by this transaction, and so was everything above it. Each of these functions
/// returns false, with nothing changed, where more is needed than to change one leaf of a column: then `set` and `setInt` do it.
extension TableEditor {
    /// A leaf of the column with the given leaf index that holds plain values and is bound to no index; 0 where there is none in
    /// the arena.
    @inline(__always)
    private func plainLeaf(_ leafIndex: Int, _ cluster: Int) -> Int {
        guard arena.memory.isInArena(cluster), leafIndex >= 0, leafIndex < indexRoots.count, indexRoots[leafIndex] == 0,
            leafIndex &+ 1 < arena.header(cluster).count
        else { return 0 }
        let leaf = arena.element(cluster, leafIndex &+ 1)
        // A node that came from the file has no refs into the arena, but anything where an odd number may stand.
        return leaf & 7 == 0 && arena.memory.isInArena(Int(leaf)) ? Int(leaf) : 0
    }

    /// Assigns an int, or a bool as 0 or 1, to a column that is not nullable.
    ///
    /// - Parameters:
    ///   - leafIndex: that of the column, which must be one of ints that is not nullable or one of bools.
    ///   - cluster: ref of the cluster leaf that holds the object, as it is now.
    public func setIntInPlace(_ leafIndex: Int, cluster: Int, row: Int, of key: ObjectKey, to value: Int64) -> Bool {
        let leaf = plainLeaf(leafIndex, cluster)
        if leaf == 0 { return false }
        let (flags, count) = arena.header(leaf)
        guard flags & 0xD8 == 0, UInt(bitPattern: row) < UInt(bitPattern: count), let column = columns[leafIndex]?.key,
            SignedCoding.storeIfFitting(arena.payload(leaf), Int(flags & 7), row, value)
        else { return false }
        group.changes.set(column, of: key, in: table.key)
        return true
    }

    /// Assigns a string (nil: null, of a nullable column) that is no longer than the format allows.
    public func setStringInPlace(_ leafIndex: Int, cluster: Int, row: Int, of key: ObjectKey, to bytes: UnsafeRawBufferPointer?)
        throws -> Bool
    {
        let leaf = plainLeaf(leafIndex, cluster)
        guard leaf != 0, let column = columns[leafIndex], column.type == .string, column.collection == nil, !column.isEnumerated
        else { return false }
        let new = try StringLeafEditor.set(arena, leaf, row, bytes)
        if new != leaf { arena.setElement(cluster, leafIndex &+ 1, new) }
        group.changes.set(column.key, of: key, in: table.key)
        return true
    }

    /// Assigns any value to a scalar column that holds no links.
    public func setInPlace(_ column: Column, cluster: Int, row: Int, of key: ObjectKey, to value: Mixed) throws -> Bool {
        let leaf = plainLeaf(column.leafIndex, cluster)
        guard leaf != 0, column.collection == nil, !column.isEnumerated else { return false }
        switch column.type {
        case .link, .mixed, .backlink, .typedLink: return false
        default: break
        }
        try column.check(value, in: table)
        let new = try CellEditor.set(arena, leaf, row, column, value)
        if new != leaf { arena.setElement(cluster, column.leafIndex &+ 1, new) }
        group.changes.set(column.key, of: key, in: table.key)
        return true
    }

    /// True for a node that this transaction has made.
    @inline(__always)
    public func isInArena(_ ref: Int) -> Bool { arena.memory.isInArena(ref) }

    /// Where an object lies, ready to be changed in place.
    @inline(__always)
    public func writablePlace(_ key: ObjectKey) throws -> (cluster: Int, row: Int) {
        let row = try writableRow(key)
        return (row.leaf, row.row)
    }

    /// A new object may take the place of an unresolved one, which changes rows of other tables.
    public var revivesObjects: Bool { table.tombstonesRef != 0 }
}
