/// All objects of a table go at once (file-format-2 8.4).
extension TableEditor {
    /// Deletes every object of the table, with the same result as if one by one.
    ///
    /// Rows, indexes and backlinks are not taken apart value by value: they become empty as a whole.
    public func deleteAllObjects() throws {
        let linked = try tablesLinkedTo()
        let looksAt = linked.reduce(0) { $0 + $1.0.table.objectCount }
        if looksAt / 16 > table.objectCount { return try deleteObjectsOneByOne() }
        var keys: [ObjectKey] = []
        keys.reserveCapacity(table.objectCount)
        try table.forEachLeaf { leaf in for row in 0..<leaf.count { keys.append(leaf.key(row)) } }
        if keys.isEmpty { return }
        try beginChange()
        try nullifyLinksIn()
        for (editor, columns) in linked { try editor.removeBacklinks(in: columns, of: self) }
        for key in keys.reversed() { group.changes.removeObject(key, in: table.key) }
        for leafIndex in indexRoots.indices where indexRoots[leafIndex] != 0 {
            try arena.releaseTree(indexRoots[leafIndex])
            try setIndexRoot(leafIndex, try SearchIndexEditor.create(arena))
        }
        try clusters.clear(&tree)
        forgetRecentRow()
        try table.setTree(tree)
        // Live and lost objects share the map of collisions.
        if topElement(TableSlot.collisions) != 0 { for key in keys { try forgetCollision(key) } }
        try group.deleteOrphans()
    }

    /// Where many objects would have to be looked at to find the few that these link to.
    private func deleteObjectsOneByOne() throws {
        // From the last to the first: no leaf is then re-based, and rows go from the ends of their leaves.
        while table.objectCount > 0 {
            guard let row = try table.object(at: table.objectCount - 1) else { break }
            try deleteRow(row.key)
            try group.deleteOrphans()
        }
    }

    /// The tables that objects of this one can link to, with the columns there that hold these links.
    private func tablesLinkedTo() throws -> [(TableEditor, [Column])] {
        var found: [(TableEditor, [Column])] = []
        for target in try group.group.tables() {
            let columns = target.backlinkColumns.filter { $0.oppositeTable == table.key }
            if !columns.isEmpty { found.append((try other(target.key), columns)) }
        }
        return found
    }

    /// Links of other tables to any object of this one vanish; those of this table go with their objects.
    private func nullifyLinksIn() throws {
        for backlinks in table.backlinkColumns where backlinks.oppositeTable != table.key {
            guard let originTable = try group.group.table(backlinks.oppositeTable),
                let origin = originTable.column(backlinks.oppositeColumn)
            else { continue }
            let editor = try other(originTable.key)
            var links: [(from: ObjectKey, to: ObjectKey)] = []
            try table.forEachLeaf { leaf in
                let column = try leaf.leaf(BacklinkLeaf.self, backlinks)
                for row in 0..<leaf.count { try column.forEachKey(row) { links.append(($0, leaf.key(row))) } }
            }
            for (source, key) in links { try editor.nullifyLink(source, origin, to: table.key, key) }
        }
    }

    /// Empties columns that hold who links here from `origin`, whose objects all go. Embedded objects without owner are queued
    /// for deletion, lost objects that nobody links to any more go at once (file-format-2 8.2).
    private func removeBacklinks(in columns: [Column], of origin: TableEditor) throws {
        var targets: [ObjectKey] = []
        func add(_ row: ObjectRow) throws {
            if try columns.contains(where: { try row.backlinkCount($0) > 0 }) { targets.append(row.key) }
        }
        // The live objects of the table itself go as well.
        if origin !== self { try table.forEachObject(add) }
        try table.tombstones()?.forEachLeaf { leaf in for row in 0..<leaf.count { try add(leaf.row(row)) } }
        for target in targets {
            let row = try writableRow(target)
            for column in columns {
                setCell(row, column, try BacklinkLeafEditor.removeAll(arena, cell(row, column), row.row))
            }
            if !target.isUnresolved && table.kind != .embedded { continue }
            if try hasBacklinks(target) { continue }
            if target.isUnresolved { try eraseTombstone(target) } else { group.orphans.append((table.key, target)) }
        }
    }
}
