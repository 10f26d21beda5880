/// Links and backlinks stay in step: for every link there is one backlink entry at its target (file-format-2 section 8).
extension TableEditor {
    /// Records at the target that `key` links to it from `column`.
    func addBacklink(_ column: Column, _ key: ObjectKey, _ targetTable: TableKey, _ target: ObjectKey) throws {
        let other = try other(targetTable)
        let backlinks = try other.backlinkColumn(for: column, of: self)
        let row = try other.writableRow(target)
        other.setCell(row, backlinks, try BacklinkLeafEditor.add(arena, other.cell(row, backlinks), row.row, key))
    }

    /// The backlink column for a column of `origin`; for Mixed columns made at the first link to this table.
    private func backlinkColumn(for column: Column, of origin: TableEditor) throws -> Column {
        if column.type == .link { return try self.column(column.oppositeColumn) }
        if let present = table.backlinkColumn(from: column) { return present }
        let key = try addBacklinkColumn(from: origin.table.key, column.key)
        group.changes.typedLinkChange(column.key, in: origin.table.key, to: table.key)
        return try self.column(key)
    }

    /// Takes one link back at its target. An embedded target without owner is queued for deletion, a tombstone to which nobody
    /// links any more goes at once (file-format-2 8.2).
    func removeBacklink(_ column: Column, _ key: ObjectKey, _ targetTable: TableKey, _ target: ObjectKey) throws {
        guard let targetInFile = try group.group.table(targetTable) else { return }
        let other = try other(targetInFile.key)
        guard
            let backlinks = column.type == .link
                ? other.table.column(column.oppositeColumn) : other.table.backlinkColumn(from: column)
        else { return }
        let row = try other.writableRow(target)
        other.setCell(row, backlinks, try BacklinkLeafEditor.remove(arena, other.cell(row, backlinks), row.row, key))
        if target.isUnresolved {
            if try !other.hasBacklinks(target) { try other.eraseTombstone(target) }
        } else if other.table.kind == .embedded, try !other.hasBacklinks(target) {
            group.orphans.append((other.table.key, target))
        }
    }

    func hasBacklinks(_ key: ObjectKey) throws -> Bool {
        let found = key.isUnresolved ? try table.tombstone(key) : try table.find(key)
        guard let found else { return false }
        return try table.backlinkColumns.contains { try found.backlinkCount($0) > 0 }
    }

    /// Takes back every link that an object holds, in all columns and at any depth; the values stay, their row is about to go.
    func removeLinksOut(_ key: ObjectKey) throws {
        for case let column? in columns where column.type == .link || column.type == .mixed {
            guard let found = try table.find(key) else { return }
            switch (column.type, column.collection) {
            case (.link, nil):
                let target = try found.storedLink(column)
                if !target.isNull { try removeBacklink(column, key, column.oppositeTable, target) }
            case (.link, .dictionary), (.mixed, .dictionary):
                let ref = try found.collectionRoot(column)
                if ref != 0 { try removeLinks(column, key, inTree: try arena.memory.node(ref).requiredRef(1), depth: 0) }
            case (.link, _):
                let ref = try found.collectionRoot(column)
                var targets: [ObjectKey] = []
                try BPlusTree<KeyLeaf>(arena.memory, ref).forEachLeaf { leaf, _ in
                    for i in 0..<leaf.count { targets.append(try leaf.value(i)) }
                }
                for target in targets { try removeBacklink(column, key, column.oppositeTable, target) }
            case (_, nil): try removeLinks(inMixedOf: column, key)
            default: try removeLinks(column, key, inTree: try found.collectionRoot(column), depth: 0)
            }
        }
    }

    /// Takes back every link of every object: the table, or one of its columns, is about to go.
    func removeAllLinksOut() throws {
        var keys: [ObjectKey] = []
        try table.forEachLeaf { leaf in for i in 0..<leaf.count { keys.append(leaf.key(i)) } }
        for key in keys { try removeLinksOut(key) }
    }

    // MARK: Links to an object that goes

    /// One link from `key` to the target vanishes because the target goes; its backlinks are not touched (file-format-2 8.3).
    func nullifyLink(_ key: ObjectKey, _ column: Column, to targetTable: TableKey, _ target: ObjectKey) throws {
        let identity = ChangesetWriter.CollectionIdentity(table: table.key, object: key, column: column.key)
        switch (column.type, column.collection) {
        case (.link, nil):
            let row = try writableRow(key)
            guard try LinkLeaf(arena.memory, cell(row, column)).value(row.row) == target else { return }
            setCell(row, column, try LinkLeafEditor.set(arena, cell(row, column), row.row, .null))
            group.changes.set(column.key, of: key, in: table.key)
        case (.link, .dictionary), (.mixed, .dictionary), (.mixed, .list):
            let root = try table.find(key)?.collectionRoot(column) ?? 0
            _ = try replaceLink(column.collection == .list ? .list : .dictionary, root, identity, targetTable, target, by: nil)
        case (.link, _), (.mixed, .set):
            let reader = try collectionTree(key, column)
            guard let position = try reader.firstPosition(of: targetTable, target) else { return }
            try editCollection(identity) { root, _ in
                try TypedTreeEditor.erase(arena, root, column.type, isNullable: column.isNullable, position)
            }
            group.changes.collectionErase(position, identity)
            if column.type == .link { try updateUnresolvedFlag(identity) }
        case (.mixed, nil):
            guard let found = try table.find(key) else { return }
            let value = try found.leaf(MixedLeaf.self, column).value(found.index)
            if case .link(targetTable, target) = value {
                if isIndexed(column) { try changeIndex(column, key, from: value, to: .null) }
                let row = try writableRow(key)
                setCell(row, column, try MixedLeafEditor.set(arena, cell(row, column), row.row, .null))
                group.changes.set(column.key, of: key, in: table.key)
            } else if value == .list || value == .dictionary {
                let root = try found.leaf(MixedLeaf.self, column).nestedRef(found.index)
                _ = try replaceLink(value == .list ? .list : .dictionary, root, identity, targetTable, target, by: nil)
            }
        default: break
        }
    }

    /// Looks for the link in one collection of Mixed values, then in those nested in it, depth first, and replaces the first.
    ///
    /// - Parameter replacement: nil where the link vanishes: from a list with its place, in a dictionary it becomes null.
    /// - Returns: whether the link was found and changed.
    private func replaceLink(
        _ kind: CollectionKind, _ root: Int, _ identity: ChangesetWriter.CollectionIdentity, _ targetTable: TableKey,
        _ target: ObjectKey, by replacement: ObjectKey?, depth: Int = 0
    ) throws -> Bool {
        if root == 0 { return false }
        if depth > Self.nestingMax { throw TableError.nestingTooDeep }
        let values = kind == .list ? root : try arena.memory.node(root).requiredRef(1)
        var position: Int?
        var nested: [(CollectionKind, Int, Int64)] = []
        try BPlusTree<MixedLeaf>(arena.memory, values).forEachLeaf { leaf, start in
            for i in 0..<leaf.count {
                switch try leaf.value(i) {
                case .link(targetTable, target) where position == nil: position = start + i
                case .list: nested.append((.list, try leaf.nestedRef(i), try leaf.key(i)))
                case .dictionary: nested.append((.dictionary, try leaf.nestedRef(i), try leaf.key(i)))
                default: break
                }
            }
        }
        if let position {
            if kind == .list, replacement == nil {
                try editCollection(identity) { root, _ in try BPlusTreeEditor<MixedLeafEditor>.erase(arena, root, position) }
                group.changes.collectionErase(position, identity)
                return true
            }
            let value = replacement.map { Mixed.link(targetTable, $0) } ?? .null
            try editCollection(identity) { root, _ in
                if kind == .list { return try BPlusTreeEditor<MixedLeafEditor>.set(arena, root, position, value) }
                let dictionary = try arena.writableRefs(root)
                let values = try BPlusTreeEditor<MixedLeafEditor>.set(arena, arena.child(dictionary, 1), position, value)
                arena.setElement(dictionary, 1, values)
                return dictionary
            }
            group.changes.collectionSet(position, identity)
            return true
        }
        for (kind, ref, salt) in nested {
            var below = identity
            below.salts.append(salt)
            if try replaceLink(kind, ref, below, targetTable, target, by: replacement, depth: depth + 1) { return true }
        }
        return false
    }

    /// Lets one link from `key` that leads to `from` lead to `to`; both ends of the backlinks are the caller's business.
    func redirectLink(_ key: ObjectKey, _ column: Column, from: ObjectKey, to: ObjectKey, target: TableKey) throws {
        let identity = ChangesetWriter.CollectionIdentity(table: table.key, object: key, column: column.key)
        switch (column.type, column.collection) {
        case (.link, nil):
            let row = try writableRow(key)
            setCell(row, column, try LinkLeafEditor.set(arena, cell(row, column), row.row, to))
            group.changes.set(column.key, of: key, in: table.key)
        case (.link, .list):
            guard let position = try collectionTree(key, column).firstPosition(of: target, from) else { return }
            try editCollection(identity) { root, _ in try BPlusTreeEditor<KeyLeafEditor>.set(arena, root, position, to) }
            group.changes.collectionSet(position, identity)
            try updateUnresolvedFlag(identity)
        case (.link, .set):
            guard let position = try collectionTree(key, column).firstPosition(of: target, from) else { return }
            try editCollection(identity) { root, _ in
                let without = try BPlusTreeEditor<KeyLeafEditor>.erase(arena, root, position)
                let keys = try BPlusTree<KeyLeaf>(arena.memory, without)
                var low = 0
                while low < keys.count, try keys.value(at: low) < to { low += 1 }
                return try BPlusTreeEditor<KeyLeafEditor>.insert(arena, without, low, to)
            }
            group.changes.collectionErase(position, identity)
            try updateUnresolvedFlag(identity)
        case (.mixed, nil):
            guard let found = try table.find(key) else { return }
            let leaf = try found.leaf(MixedLeaf.self, column)
            let value = try leaf.value(found.index)
            if case .link(target, from) = value {
                // Indexes hold links to lost objects as null.
                if isIndexed(column) { try changeIndex(column, key, from: value.resolved, to: Mixed.link(target, to).resolved) }
                let row = try writableRow(key)
                setCell(row, column, try MixedLeafEditor.set(arena, cell(row, column), row.row, .link(target, to)))
                group.changes.set(column.key, of: key, in: table.key)
            } else if value == .list || value == .dictionary {
                _ = try replaceLink(
                    value == .list ? .list : .dictionary, try leaf.nestedRef(found.index), identity, target, from, by: to)
            }
        default:
            let root = try table.find(key)?.collectionRoot(column) ?? 0
            _ = try replaceLink(column.collection == .dictionary ? .dictionary : .list, root, identity, target, from, by: to)
        }
    }
}

extension ObjectRow {
    /// Root of the collection in a list, set or dictionary column, 0 where it was never made.
    func collectionRoot(_ column: Column) throws -> Int { try leaf(RefLeaf.self, column).value(index) }
}
