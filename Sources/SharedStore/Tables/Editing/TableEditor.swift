/// Changes to one table: its objects and columns (file-format-2 sections 2 to 5, 7, 8).
///
/// Holds the table's top array and cluster tree as they stand in the arena. `table` shows the same to readers. Belongs to the
/// thread of the write transaction.
public final class TableEditor {
    let group: GroupEditor
    let arena: Arena
    /// The table for reading; always up to date.
    public let table: Table
    /// Ref of the top array, in the arena, with all 14 slots.
    @exclusivity(unchecked) private(set) var top: Int
    /// Something was changed: the content version grows at commit.
    @exclusivity(unchecked) var isModified = false
    /// Root of the cluster tree of live objects.
    @exclusivity(unchecked) var tree: Int
    /// Roots of the indexes by leaf index, 0 for none.
    @exclusivity(unchecked) private(set) var indexRoots: [Int] = []
    /// Scalar columns that have an index.
    @exclusivity(unchecked) private(set) var indexedColumns: [Column] = []
    /// Columns by leaf index.
    @exclusivity(unchecked) private(set) var columns: [Column?] = []
    /// Changes to the cluster trees, with what they need to know of each column.
    @exclusivity(unchecked) private(set) var clusters: ClusterTreeEditor
    /// The row that was used last, so that several assignments to one object look for it once.
    @exclusivity(unchecked) private var recentKey = ObjectKey.null
    @exclusivity(unchecked) private var recentRow = Row(leaf: 0, row: 0)
    /// No live object has this key or a larger one; -1 while that is not known.
    @exclusivity(unchecked) private var freeFrom: Int64 = -1

    init(_ group: GroupEditor, _ table: Table) throws {
        self.group = group
        arena = group.arena
        self.table = table
        top = table.topRef
        tree = table.tree.root.ref
        clusters = ClusterTreeEditor(group.arena, columns: [])
        try readColumns()
    }

    /// A new table's top array (file-format-2 section 2).
    static func createTop(_ arena: Arena, _ key: TableKey, _ kind: TableKind) throws -> Int {
        let spec = try arena.makeRefs(count: 6)
        arena.setElement(spec, 0, try ArrayEditor.create(arena))
        arena.setElement(spec, 1, try NameArrayEditor.create(arena))
        arena.setElement(spec, 2, try ArrayEditor.create(arena))
        arena.setElement(spec, 5, try ArrayEditor.create(arena))
        let tree = try arena.makeRefs(count: 1)
        arena.setElement(tree, 0, Arena.tag(0))
        let top = try arena.makeRefs(count: TableSlot.count)
        arena.setElement(top, TableSlot.spec, spec)
        arena.setElement(top, TableSlot.tree, tree)
        arena.setElement(top, TableSlot.key, Arena.tag(Int(key.rawValue)))
        arena.setElement(top, TableSlot.indexes, try arena.makeRefs(count: 0))
        arena.setElement(top, TableSlot.columnKeySequence, Arena.tag(0))
        arena.setElement(top, TableSlot.contentVersion, Arena.tag(0))
        arena.setElement(top, TableSlot.oppositeTables, try ArrayEditor.create(arena))
        arena.setElement(top, TableSlot.oppositeColumns, try ArrayEditor.create(arena))
        arena.setElement(top, TableSlot.flags, Arena.tag(kind.rawValue))
        return top
    }

    /// Called before the first change of every operation: the top array becomes writable.
    func beginChange() throws {
        if isModified && arena.memory.isInArena(top) { return }
        precondition(
            !group.isClosed,
            "the write transaction of this editor of \(table.name) has ended; take one from the transaction that runs")
        let count = arena.memory.isInArena(top) ? arena.header(top).count : try arena.memory.node(top).count
        let missing = max(0, TableSlot.count - count)
        let old = top
        top = try arena.writableRefs(top, growth: missing)
        for _ in 0..<missing { arena.insertElement(top, arena.header(top).count, 0) }
        isModified = true
        if top != old { group.group.setEntry(table.key.slot, top) }
    }

    /// Stores the roots and counts the change; returns the top array.
    func finish() throws -> Int {
        arena.setElement(top, TableSlot.tree, tree)
        arena.setElement(top, TableSlot.contentVersion, Arena.tag(Arena.untag(arena.element(top, TableSlot.contentVersion)) &+ 1))
        isModified = false
        forgetRecentRow()
        return top
    }

    func topElement(_ slot: Int) -> Int64 { arena.element(top, slot) }
    func setTopElement(_ slot: Int, _ value: Int64) { arena.setElement(top, slot, value) }

    /// Reads the columns anew after the schema changed; readers of `table` see them too.
    func reloadSchema() throws {
        arena.setElement(top, TableSlot.tree, tree)
        try table.reload(topRef: top)
        try readColumns()
    }

    private func readColumns() throws {
        forgetRecentRow()
        columns = table.schema.columnsByLeaf
        indexRoots = [Int](repeating: 0, count: columns.count)
        if table.indexesRef != 0 {
            let roots = try arena.memory.refs(table.indexesRef, "index roots")
            for column in table.columns { indexRoots[column.key.leafIndex] = try roots.optionalRef(column.key.leafIndex) }
        }
        noteIndexes()
        clusters = ClusterTreeEditor(
            arena,
            columns: try table.schema.clusterColumns
                ?? table.columns.compactMap {
                    ClusterColumn($0.key, enumDefault: $0.isEnumerated ? try enumPosition(of: $0.defaultValue, $0) : nil)
                })
    }

    func setIndexRoot(_ leafIndex: Int, _ root: Int) throws {
        if indexRoots[leafIndex] == root { return }
        try beginChange()
        let hadNone = indexRoots[leafIndex] == 0
        indexRoots[leafIndex] = root
        if hadNone || root == 0 { noteIndexes() }
        let indexes = try arena.writableRefs(arena.child(top, TableSlot.indexes))
        arena.setElement(indexes, leafIndex, root)
        arena.setElement(top, TableSlot.indexes, indexes)
        table.setIndexes(indexes)
    }

    private func noteIndexes() {
        indexedColumns.removeAll(keepingCapacity: true)
        for leafIndex in indexRoots.indices where indexRoots[leafIndex] != 0 {
            if let column = columns[leafIndex], column.collection == nil { indexedColumns.append(column) }
        }
    }

    /// The editor of another table, or of this one.
    func other(_ key: TableKey) throws -> TableEditor { key == table.key ? self : try group.editor(key) }

    // MARK: Rows

    typealias Row = ClusterTreeEditor.RowPlace

    /// The row of an object, ready to be changed. Unresolved keys are looked for among the tombstones.
    /// - Throws: `TableError.noSuchObject`.
    @inline(__always)
    func writableRow(_ key: ObjectKey) throws -> Row {
        if key == recentKey && recentRow.leaf != 0 { return recentRow }
        return try findWritableRow(key)
    }

    @inline(never)
    private func findWritableRow(_ key: ObjectKey) throws -> Row {
        try beginChange()
        if key.rawValue < 0 { return try writableTombstone(key) }
        if let row = neighbour(key) {
            noteRecentRow(key, row)
            return row
        }
        let old = tree
        guard let row = try clusters.makeRowWritable(&tree, key) else { throw noSuchObject(key) }
        if tree != old { try table.setTree(tree) }
        noteRecentRow(key, row)
        return row
    }

    /// The row of an object that lies in the same leaf as the one that was used last; nil elsewhere. Keys of a leaf are relative
    /// to one offset, so that two of them tell all.
    @inline(__always)
    private func neighbour(_ key: ObjectKey) -> Row? {
        let leaf = recentRow.leaf
        guard leaf != 0, recentKey.rawValue >= 0 else { return nil }
        let distance = key.rawValue &- recentKey.rawValue
        let first = arena.element(leaf, 0)
        if first & 1 != 0 {
            let row = recentRow.row &+ Int(truncatingIfNeeded: distance)
            return UInt(bitPattern: row) < UInt(bitPattern: Arena.untag(first)) ? Row(leaf: leaf, row: row) : nil
        }
        guard let keys = try? arena.memory.node(Int(first)), recentRow.row < keys.count else { return nil }
        let wanted = keys.uncheckedUnsigned(recentRow.row) &+ UInt64(bitPattern: distance)
        let row = ClusterTree.lowerBound(keys, wanted)
        return row < keys.count && keys.uncheckedUnsigned(row) == wanted ? Row(leaf: leaf, row: row) : nil
    }

    /// The row of a live object that was just made or found, writable.
    @inline(__always)
    func noteRecentRow(_ key: ObjectKey, _ row: Row) {
        recentKey = key
        recentRow = row
    }

    /// Called whenever rows move or go, and when the top array may have to be made writable again.
    func forgetRecentRow() { recentRow = Row(leaf: 0, row: 0) }

    /// The transaction has ended; see `GroupEditor.close`.
    func close() {
        isModified = false
        forgetRecentRow()
    }

    /// Whether a live object has the key.
    func isTaken(_ key: ObjectKey) throws -> Bool {
        if freeFrom < 0 {
            let count = table.objectCount
            freeFrom = count == 0 ? 0 : try table.object(at: count - 1).map { $0.key.rawValue &+ 1 } ?? -1
        }
        if freeFrom >= 0 && key.rawValue >= freeFrom { return false }
        return try table.find(key) != nil
    }

    /// True where no live object has the key, as far as that is known without a look.
    @inline(__always)
    func isKnownToBeFree(_ key: ObjectKey) -> Bool { freeFrom >= 0 && key.rawValue >= freeFrom }

    /// A live object was made.
    @inline(__always)
    func noteNewObject(_ key: ObjectKey, _ row: Row) {
        if freeFrom >= 0 && key.rawValue >= freeFrom { freeFrom = key.rawValue &+ 1 }
        noteRecentRow(key, row)
    }

    private func writableTombstone(_ key: ObjectKey) throws -> Row {
        var root = Int(topElement(TableSlot.tombstones))
        guard root != 0, let row = try clusters.makeRowWritable(&root, key) else { throw noSuchObject(key) }
        setTombstones(root)
        return row
    }

    func setTombstones(_ root: Int) {
        setTopElement(TableSlot.tombstones, Int64(root))
        table.tombstonesRef = root
    }

    @inline(never)
    func noSuchObject(_ key: ObjectKey) -> TableError { .noSuchObject(table: table.name, key: key.rawValue) }

    /// Ref of a column's leaf in the row's cluster.
    @inline(__always)
    func cell(_ row: Row, _ column: Column) throws -> Int { try clusters.columnLeaf(row, column.key.leafIndex) }

    @inline(__always)
    func setCell(_ row: Row, _ column: Column, _ ref: Int) { clusters.setColumnLeaf(row, column.key.leafIndex, ref) }

    /// A column of this table by its key.
    func column(_ key: ColumnKey) throws -> Column {
        guard key.leafIndex < columns.count, let column = columns[key.leafIndex], column.key == key else {
            throw TableError.noSuchColumn(table: table.name, column: "#\(key)")
        }
        return column
    }

    /// A public column of this table by its name.
    public func column(named name: String) throws -> Column {
        guard let column = table.column(named: name) else { throw TableError.noSuchColumn(table: table.name, column: name) }
        return column
    }

    /// Releases every node of the table; its columns have been unlinked.
    func releaseAll() throws {
        try beginChange()
        arena.setElement(top, TableSlot.tree, tree)
        try arena.releaseTree(top)
    }
}
