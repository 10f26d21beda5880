/// Objects come and go (file-format-2 4.7 to 4.9, 8.3).
extension TableEditor {
    // MARK: Creation

    /// Makes an object with default values in a table without primary key.
    public func createObject() throws -> ObjectKey {
        precondition(table.primaryKeyColumn == nil, "objects of \(table.name) are made with a primary key")
        precondition(
            table.kind != .embedded, "objects of the embedded table \(table.name) are made in place: setEmbedded, insertEmbedded")
        let key = try nextSqueezedKey()
        try insertRow(key, primaryKey: nil)
        group.changes.createObject(key, in: table.key)
        return key
    }

    /// Makes an object with default values and the given key of 0 or more. Nothing is logged: for migrations and copies.
    public func createObject(key: ObjectKey) throws {
        precondition(key.rawValue >= 0, "live objects have keys of 0 or more")
        if try table.find(key) != nil { throw TableError.nameTaken("object key \(key)") }
        try insertRow(key, primaryKey: nil)
    }

    /// An embedded object, which its maker links to at once.
    func createEmbeddedObject() throws -> ObjectKey {
        let key = try nextSqueezedKey()
        try insertRow(key, primaryKey: nil)
        group.changes.createObject(key, in: table.key, isLogged: false)
        return key
    }

    /// Makes an object with the given primary key and otherwise default values, or finds the one that has it.
    public func createObject(primaryKey value: Mixed) throws -> (key: ObjectKey, wasCreated: Bool) {
        guard let column = table.primaryKeyColumn else {
            preconditionFailure("table \(table.name) has no primary key; use createObject()")
        }
        try column.check(value, in: table)
        if let key = try createInPlace(value, column) { return (key, true) }
        if let row = try find(primaryKey: value, column) { return (row.key, false) }
        try beginChange()
        var key: ObjectKey
        repeat { key = ObjectKey(Int64(try nextSequence())) } while try isTaken(key)
        try insertRow(key, primaryKey: (column, value))
        group.changes.createObject(key, in: table.key)
        if table.tombstonesRef != 0, let global = GlobalKey(primaryKey: value) {
            try revive(try table.localKey(global).unresolved, as: key)
        }
        return (key, true)
    }

    /// What creating one object after another mostly comes to: the way through the index that shows that no object has the
    /// primary key ends where the new one belongs, so it is gone once. Nil, with nothing changed, where that is not so.
    private func createInPlace(_ value: Mixed, _ column: Column) throws -> ObjectKey? {
        guard isModified, arena.memory.isInArena(top), indexRoots[column.key.leafIndex] != 0, table.tombstonesRef == 0 else {
            return nil
        }
        let raw = topElement(TableSlot.objectSequence)
        let n = raw == 0 ? 0 : Arena.untag(raw)
        let key = ObjectKey(Int64(n))
        guard isKnownToBeFree(key), insertIntoIndexInPlace(column, key, value) else { return nil }
        setTopElement(TableSlot.objectSequence, Arena.tag(n + 1))
        try insertRow(key, primaryKey: (column, value), isIndexed: true)
        group.changes.createObject(key, in: table.key)
        return key
    }

    /// The object with the primary key, by the index.
    func find(primaryKey value: Mixed, _ column: Column) throws -> ObjectRow? {
        guard let index = try SearchIndex(table, column) else { return try table.find(primaryKey: value) }
        return try index.firstRow(value)
    }

    /// Slot 9: the number of the next object.
    private func nextSequence() throws -> Int {
        try beginChange()
        let raw = topElement(TableSlot.objectSequence)
        let n = raw == 0 ? 0 : Arena.untag(raw)
        setTopElement(TableSlot.objectSequence, Arena.tag(n + 1))
        return n
    }

    /// The sequence number squeezed together with the file's number, 0 for local files (file-format-2 4.7 a).
    private func nextSqueezedKey() throws -> ObjectKey {
        while true {
            let n = Int64(try nextSequence())
            let key = ObjectKey(n & 0xFF | (n >> 8) << 16)
            if try !isTaken(key) { return key }
        }
    }

    /// - Parameter isIndexed: the index of the primary key has the object already.
    func insertRow(_ key: ObjectKey, primaryKey: (Column, Mixed)?, isIndexed: Bool = false) throws {
        try beginChange()
        guard let row = try clusters.insert(&tree, key) else { throw TableError.nameTaken("object key \(key)") }
        try table.setTree(tree)
        noteNewObject(key, row)
        if let (column, value) = primaryKey {
            setCell(row, column, try CellEditor.set(arena, cell(row, column), row.row, column, value))
        }
        for i in 0..<indexedColumns.count {
            let column = indexedColumns[i]
            if let primaryKey, primaryKey.0.key == column.key {
                if !isIndexed { try insertIntoIndex(column, key, primaryKey.1) }
            } else {
                try insertIntoIndex(column, key, column.defaultValue)
            }
        }
    }

    /// A live object takes the place of its tombstone: all links to that now lead to it (file-format-2 4.9).
    private func revive(_ tombstone: ObjectKey, as key: ObjectKey) throws {
        guard let row = try table.tombstone(tombstone) else { return }
        for backlinks in table.backlinkColumns {
            for origin in try row.backlinks(backlinks) {
                let other = try other(backlinks.oppositeTable)
                try other.redirectLink(
                    origin, try other.column(backlinks.oppositeColumn), from: tombstone, to: key, target: table.key)
                let live = try writableRow(key)
                setCell(live, backlinks, try BacklinkLeafEditor.add(arena, cell(live, backlinks), live.row, origin))
            }
        }
        try eraseTombstone(tombstone)
    }

    func eraseTombstone(_ key: ObjectKey) throws {
        let root = Int(topElement(TableSlot.tombstones))
        guard root != 0 else { return }
        var tree = root
        _ = try clusters.erase(&tree, key)
        setTombstones(tree)
        try forgetCollision(key.unresolved)
    }

    // MARK: Deletion

    /// Deletes an object: links to it become null or vanish, links from it are taken back, embedded objects that it owns go too.
    public func deleteObject(_ key: ObjectKey) throws {
        try deleteRow(key)
        try group.deleteOrphans()
    }

    /// Deletes one object; what it orphans is queued at the group.
    func deleteRow(_ key: ObjectKey) throws {
        guard let found = try table.find(key) else { throw noSuchObject(key) }
        try beginChange()
        for backlinks in table.backlinkColumns where try found.backlinkCount(backlinks) > 0 {
            let origins = try table.find(key)?.backlinks(backlinks) ?? []
            guard let originTable = try group.group.table(backlinks.oppositeTable),
                let origin = originTable.column(backlinks.oppositeColumn)
            else { continue }
            let editor = try other(originTable.key)
            for source in origins { try editor.nullifyLink(source, origin, to: table.key, key) }
        }
        group.changes.removeObject(key, in: table.key)
        try removeFromIndexes(key)
        try removeLinksOut(key)
        let row = try writableRow(key)
        for backlinks in table.backlinkColumns {
            setCell(row, backlinks, try BacklinkLeafEditor.removeAll(arena, cell(row, backlinks), row.row))
        }
        _ = try clusters.erase(&tree, key)
        forgetRecentRow()
        try table.setTree(tree)
        try forgetCollision(key)
    }

    func forgetCollision(_ key: ObjectKey) throws {
        let map = topElement(TableSlot.collisions)
        guard map != 0 else { return }
        let ref = try arena.writableRefs(Int(map))
        let keys = try arena.child(ref, 2)
        let count = try ArrayEditor.count(arena, keys)
        for i in 0..<count where try ArrayEditor.get(arena, keys, i) == key.rawValue {
            if count == 1 {
                try arena.releaseTree(ref)
                setTopElement(TableSlot.collisions, 0)
                table.collisionsRef = 0
                return
            }
            for slot in 0..<3 { arena.setElement(ref, slot, try ArrayEditor.erase(arena, arena.child(ref, slot), i)) }
            break
        }
        setTopElement(TableSlot.collisions, Int64(ref))
        table.collisionsRef = ref
    }

    /// Takes an object away that others still link to: it leaves a tombstone with its primary key, and their links lead there
    /// until it comes back (file-format-2 4.9). Without links to it, it is simply deleted.
    public func invalidateObject(_ key: ObjectKey) throws {
        guard let found = try table.find(key) else { throw noSuchObject(key) }
        guard try table.backlinkColumns.contains(where: { try found.backlinkCount($0) > 0 }) else { return try deleteObject(key) }
        try beginChange()
        let primaryKey = try table.primaryKeyColumn.map { ($0, try found.value($0)) }
        var tombstone = key.unresolved
        if let (_, value) = primaryKey, let global = GlobalKey(primaryKey: value) { tombstone = try tombstoneKey(for: global) }
        if topElement(TableSlot.tombstones) == 0 { setTombstones(try clusters.create()) }
        if try table.tombstone(tombstone) == nil {
            var root = Int(topElement(TableSlot.tombstones))
            let row = try clusters.insert(&root, tombstone)
            setTombstones(root)
            if let (column, value) = primaryKey, let row {
                setCell(row, column, try CellEditor.set(arena, cell(row, column), row.row, column, value))
            }
        }
        for backlinks in table.backlinkColumns {
            for origin in try table.find(key)?.backlinks(backlinks) ?? [] {
                let other = try other(backlinks.oppositeTable)
                try other.redirectLink(
                    origin, try other.column(backlinks.oppositeColumn), from: key, to: tombstone, target: table.key)
                let row = try writableRow(tombstone)
                setCell(row, backlinks, try BacklinkLeafEditor.add(arena, cell(row, backlinks), row.row, origin))
                let live = try writableRow(key)
                setCell(live, backlinks, try BacklinkLeafEditor.remove(arena, cell(live, backlinks), live.row, origin))
            }
        }
        try deleteObject(key)
    }

    /// The key of a tombstone: that of the hashed primary key, unless another tombstone has it (file-format-2 4.8).
    private func tombstoneKey(for global: GlobalKey) throws -> ObjectKey {
        let local = try table.localKey(global)
        guard let present = try table.tombstone(local.unresolved), let column = table.primaryKeyColumn,
            let other = GlobalKey(primaryKey: try present.value(column)), other != global
        else { return local.unresolved }
        let fresh = ObjectKey(0x4000_0000_0000_0000 | Int64(try nextSequence()))
        if topElement(TableSlot.collisions) == 0 {
            let map = try arena.makeRefs(count: 3)
            for slot in 0..<3 { arena.setElement(map, slot, try ArrayEditor.create(arena)) }
            setTopElement(TableSlot.collisions, Int64(map))
        }
        let map = try arena.writableRefs(Int(topElement(TableSlot.collisions)))
        for (key, local) in [(global, fresh), (other, local)] {
            let count = try ArrayEditor.count(arena, arena.child(map, 1))
            var i = 0
            while i < count {
                let high = try ArrayEditor.get(arena, arena.child(map, 1), i),
                    low = UInt64(bitPattern: try ArrayEditor.get(arena, arena.child(map, 0), i))
                if high > Int64(bitPattern: key.high) || (high == Int64(bitPattern: key.high) && low >= key.low) { break }
                i += 1
            }
            for (slot, word) in [(0, Int64(bitPattern: key.low)), (1, Int64(bitPattern: key.high)), (2, local.rawValue)] {
                arena.setElement(map, slot, try ArrayEditor.insert(arena, arena.child(map, slot), i, word))
            }
        }
        setTopElement(TableSlot.collisions, Int64(map))
        table.collisionsRef = map
        return fresh.unresolved
    }
}

extension Column {
    /// What a new row holds, or all rows when the column is added (file-format-2 5.1).
    var defaultValue: Mixed {
        if isNullable || collection != nil { return .null }
        switch type {
        case .int: return .int(0)
        case .bool: return .bool(false)
        case .float: return .float(0)
        case .double: return .double(0)
        case .string: return .string("")
        case .binary: return .binary([])
        case .timestamp: return .timestamp(Timestamp(seconds: 0, nanoseconds: 0))
        case .decimal: return .decimal(Decimal128Bits(low: 0, high: 0x3040_0000_0000_0000))
        case .objectId: return .objectId(ObjectIdValue(high: 0, low: 0))
        case .uuid: return .uuid(UUIDValue(high: 0, low: 0))
        case .mixed, .link, .backlink, .typedLink: return .null
        }
    }
}

/// Objects that come from another file, with the keys that they had there.
extension TableEditor {
    /// Makes an object of any kind of table with a given key; an embedded one gets its owner later. Nothing is logged.
    func importObject(key: ObjectKey, primaryKey: Mixed?) throws {
        var pair: (Column, Mixed)?
        if let column = table.primaryKeyColumn {
            let value = primaryKey ?? .null
            try column.check(value, in: table)
            if try find(primaryKey: value, column) != nil {
                throw TableError.duplicatePrimaryKey(table: table.name, value: "\(value)")
            }
            pair = (column, value)
        }
        try insertRow(key, primaryKey: pair)
        // The next object's number lies behind those that are in use.
        let used = Int(table.primaryKeyColumn != nil ? key.rawValue : key.rawValue & 0xFF | (key.rawValue & 0xFF_FFFF_0000) >> 8)
        let next = topElement(TableSlot.objectSequence) == 0 ? 0 : Arena.untag(topElement(TableSlot.objectSequence))
        if used >= next && used < 1 << 40 { setTopElement(TableSlot.objectSequence, Arena.tag(used + 1)) }
    }

    /// Appends an embedded object that has no owner yet to a list.
    func storeEmbeddedElement(_ identity: Identity, _ child: ObjectKey) throws {
        let column = try column(identity.column)
        try editCollection(identity) { root, _ in
            try BPlusTreeEditor<KeyLeafEditor>.append(
                arena, root == 0 ? BPlusTreeEditor<KeyLeafEditor>.create(arena) : root, child)
        }
        try addBacklink(column, identity.object, column.oppositeTable, child)
    }
}
