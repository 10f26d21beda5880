/// Columns come and go (file-format-2 3.3 to 3.7, 8.6, 9.4).
extension TableEditor {
    static let columnNameByteCountMax = 63

    /// Adds a column; all rows get its default.
    ///
    /// - Parameters:
    ///   - attributes: nullable and at most one of list, set, dictionary. What the format fixes (links, Mixed) is set here.
    ///   - target: the table of a link column.
    @discardableResult
    public func addColumn(_ name: String, _ type: ColumnType, _ attributes: ColumnAttributes = [], target: TableKey? = nil) throws
        -> Column
    {
        guard (1...Self.columnNameByteCountMax).contains(name.utf8.count) else {
            throw TableError.badName(name, byteCountMax: Self.columnNameByteCountMax)
        }
        if table.column(named: name) != nil { throw TableError.nameTaken("\(table.name).\(name)") }
        precondition(type != .backlink && type != .typedLink, "backlink columns are made with their links")
        precondition((type == .link) == (target != nil), "a link column, and no other, has a target table")
        var attributes = attributes.subtracting([.indexed, .fullTextIndexed, .unique, .strongLinks])
        // Nullability where the format leaves no choice (file-format-2 3.2).
        if type == .mixed { attributes.insert(.nullable) }
        if type == .link {
            if attributes.collectionKind == .list || attributes.collectionKind == .set {
                attributes.remove(.nullable)
            } else {
                attributes.insert(.nullable)
            }
        }
        var targetEditor: TableEditor?
        if let target {
            let other = try other(target)
            if other.table.kind == .asymmetric || (other.table.kind == .embedded && attributes.collectionKind == .set)
                || (table.kind == .asymmetric && other.table.kind != .embedded)
            {
                throw TableError.badLinkTarget(
                    table: table.name, column: name, reason: "\(other.table.name) is \(other.table.kind)")
            }
            targetEditor = other
        }
        let key = try insertColumn(name, type, attributes)
        if let targetEditor {
            let backlinks = try targetEditor.addBacklinkColumn(from: table.key, key)
            try setOpposite(key, targetEditor.table.key, backlinks)
            try reloadSchema()
        }
        group.changes.insertColumn(key, in: table.key)
        return try column(key)
    }

    /// The column with a primary key that a new table begins with; only the table is logged.
    @discardableResult
    public func addPrimaryKeyColumn(_ name: String, _ type: ColumnType, isNullable: Bool = false) throws -> Column {
        precondition(table.columns.isEmpty, "the primary key column of a new table comes first")
        let key = try insertColumn(name, type, isNullable ? .nullable : [])
        try setPrimaryKey(key)
        return try column(key)
    }

    private func insertColumn(_ name: String?, _ type: ColumnType, _ attributes: ColumnAttributes) throws -> ColumnKey {
        try beginChange()
        let used = Set(table.columns.map(\.key.leafIndex))
        let leafIndex = (0...used.count).first { !used.contains($0) } ?? used.count
        if leafIndex >= 65535 { throw TableError.tooManyColumns(table: table.name) }
        let tag = UInt32(truncatingIfNeeded: Arena.untag(topElement(TableSlot.columnKeySequence))) ^ table.key.rawValue
        let key = ColumnKey(leafIndex: leafIndex, type: type, attributes: attributes, tag: tag)
        let position = name == nil ? table.columns.count : table.publicColumnCount

        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        let types = Int64(type.rawValue) | (attributes.contains(.dictionary) ? Int64(ColumnType.string.rawValue) << 16 : 0)
        arena.setElement(spec, 0, try ArrayEditor.insert(arena, arena.child(spec, 0), position, types))
        arena.setElement(spec, 2, try ArrayEditor.insert(arena, arena.child(spec, 2), position, Int64(attributes.rawValue)))
        arena.setElement(spec, 5, try ArrayEditor.insert(arena, arena.child(spec, 5), position, key.rawValue))
        if let name {
            arena.setElement(spec, 1, try NameArrayEditor.insert(arena, arena.child(spec, 1), position, name))
            if arena.element(spec, 4) != 0 {
                let lists = try arena.writableRefs(arena.child(spec, 4), growth: 1)
                arena.insertElement(lists, position, 0)
                arena.setElement(spec, 4, lists)
            }
        }
        for (slot, none) in [
            (TableSlot.indexes, Int64(0)), (TableSlot.oppositeTables, Int64(TableKey.null.rawValue)),
            (TableSlot.oppositeColumns, ColumnKey.null.rawValue),
        ] {
            var array = try arena.child(top, slot)
            let count = try ArrayEditor.count(arena, array)
            if leafIndex < count {
                array = try ArrayEditor.set(arena, array, leafIndex, none)
            } else {
                array = try ArrayEditor.append(arena, array, none)
            }
            setTopElement(slot, Int64(array))
        }
        guard let cluster = ClusterColumn(key) else { preconditionFailure("a column of this type has no leaf") }
        try clusters.addColumn(&tree, cluster)
        if topElement(TableSlot.tombstones) != 0 {
            var tombstones = Int(topElement(TableSlot.tombstones))
            try clusters.addColumn(&tombstones, cluster)
            setTombstones(tombstones)
        }
        try reloadSchema()
        return key
    }

    func addBacklinkColumn(from origin: TableKey, _ column: ColumnKey) throws -> ColumnKey {
        let key = try insertColumn(nil, .backlink, [])
        try setOpposite(key, origin, column)
        try reloadSchema()
        return key
    }

    private func setOpposite(_ key: ColumnKey, _ table: TableKey, _ column: ColumnKey) throws {
        setTopElement(
            TableSlot.oppositeTables,
            Int64(try ArrayEditor.set(arena, arena.child(top, TableSlot.oppositeTables), key.leafIndex, Int64(table.rawValue))))
        setTopElement(
            TableSlot.oppositeColumns,
            Int64(try ArrayEditor.set(arena, arena.child(top, TableSlot.oppositeColumns), key.leafIndex, column.rawValue)))
    }

    /// Removes a public column with all its values; links are taken back, embedded objects that it owned go.
    public func removeColumn(_ key: ColumnKey) throws {
        let column = try column(key)
        precondition(!column.isBacklink, "a backlink column goes with its link column")
        group.changes.eraseColumn(key, in: table.key)
        if table.primaryKeyColumn?.key == key { try setPrimaryKey(nil) }
        try dropIndex(try self.column(key))
        if column.type == .link {
            let target = try other(column.oppositeTable)
            if target.table.kind == .embedded { try takeBackLinks(column) }
            try target.eraseColumn(column.oppositeColumn)
        } else if column.type == .mixed {
            try takeBackLinks(column)
            for other in try group.group.tables() {
                if let backlinks = other.backlinkColumn(from: column) { try group.editor(other.key).eraseColumn(backlinks.key) }
            }
        }
        try eraseColumn(key)
        try group.deleteOrphans()
    }

    /// Takes back the links of one column in all rows.
    private func takeBackLinks(_ column: Column) throws {
        var keys: [ObjectKey] = []
        try table.forEachLeaf { leaf in for i in 0..<leaf.count { keys.append(leaf.key(i)) } }
        for key in keys {
            if column.collection == nil && column.type == .link {
                try replaceLink(column, key, by: .null)
            } else if column.collection == nil {
                try removeLinks(inMixedOf: column, key)
                let row = try writableRow(key)
                setCell(row, column, try MixedLeafEditor.set(arena, cell(row, column), row.row, .null))
            } else {
                let identity = identity(column, of: key)
                let (root, form) = try collection(identity)
                if root == 0 { continue }
                if form.kind == .dictionary {
                    try removeLinks(column, key, inTree: try arena.memory.node(root).requiredRef(1), depth: 0)
                } else if column.type == .mixed {
                    try removeLinks(column, key, inTree: root, depth: 0)
                } else {
                    var targets: [ObjectKey] = []
                    try BPlusTree<KeyLeaf>(arena.memory, root).forEachLeaf { leaf, _ in
                        for i in 0..<leaf.count { targets.append(try leaf.value(i)) }
                    }
                    for target in targets { try removeBacklink(column, key, column.oppositeTable, target) }
                }
                try editCollection(identity) { root, _ in
                    try arena.releaseTree(root)
                    return 0
                }
            }
        }
    }

    /// Removes the backlink columns that other tables have for the columns of this one, which is about to go.
    func eraseOppositeColumns() throws {
        for column in table.publicColumns where column.type == .link || column.type == .mixed {
            for other in try group.group.tables() where other.key != table.key {
                guard let backlinks = other.backlinkColumn(from: column) else { continue }
                try group.editor(other.key).eraseColumn(backlinks.key)
            }
        }
    }

    /// Removes a column of any kind from spec and clusters; the other side of its links has been dealt with.
    private func eraseColumn(_ key: ColumnKey) throws {
        let column = try column(key)
        try beginChange()
        try clusters.removeColumn(&tree, leafIndex: key.leafIndex)
        if topElement(TableSlot.tombstones) != 0 {
            var tombstones = Int(topElement(TableSlot.tombstones))
            try clusters.removeColumn(&tombstones, leafIndex: key.leafIndex)
            setTombstones(tombstones)
        }
        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        for slot in [0, 2, 5] {
            arena.setElement(spec, slot, try ArrayEditor.erase(arena, arena.child(spec, slot), column.specIndex))
        }
        if !column.isBacklink {
            arena.setElement(spec, 1, try NameArrayEditor.erase(arena, arena.child(spec, 1), column.specIndex))
            if arena.element(spec, 4) != 0 {
                let lists = try arena.writableRefs(arena.child(spec, 4))
                if arena.element(lists, column.specIndex) != 0 { try arena.releaseTree(arena.child(lists, column.specIndex)) }
                arena.eraseElements(lists, column.specIndex..<column.specIndex + 1)
                arena.setElement(spec, 4, lists)
                if (0..<arena.header(lists).count).allSatisfy({ arena.element(lists, $0) == 0 }) {
                    try arena.release(lists)
                    arena.setElement(spec, 4, 0)
                }
            }
        }
        try setOpposite(key, .null, .null)
        setTopElement(TableSlot.columnKeySequence, Arena.tag(Arena.untag(topElement(TableSlot.columnKeySequence)) + 1))
        try reloadSchema()
    }

    /// Gives a column another name; its key stays.
    public func renameColumn(_ key: ColumnKey, to name: String) throws {
        let column = try column(key)
        guard (1...Self.columnNameByteCountMax).contains(name.utf8.count) else {
            throw TableError.badName(name, byteCountMax: Self.columnNameByteCountMax)
        }
        if table.name(of: column).isSame(as: name) { return }
        if table.column(named: name) != nil { throw TableError.nameTaken("\(table.name).\(name)") }
        try beginChange()
        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        arena.setElement(spec, 1, try NameArrayEditor.set(arena, arena.child(spec, 1), column.specIndex, name))
        group.changes.renameColumn(key, in: table.key)
        try reloadSchema()
    }

    /// Changes the attributes in the spec (not those in the key).
    func setAttributes(_ column: Column, _ attributes: ColumnAttributes) throws {
        if column.attributes == attributes { return }
        try beginChange()
        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        arena.setElement(spec, 2, try ArrayEditor.set(arena, arena.child(spec, 2), column.specIndex, Int64(attributes.rawValue)))
        try reloadSchema()
    }

    /// Makes a column the primary key, or none. Its values must be unique.
    /// - Throws: `TableError.duplicatePrimaryKey` naming a value that stands twice.
    public func setPrimaryKey(_ key: ColumnKey?) throws {
        if table.primaryKeyColumn?.key == key { return }
        try beginChange()
        if let old = table.primaryKeyColumn {
            if !old.attributes.contains(.indexed) { try dropIndex(old) }
            setTopElement(TableSlot.primaryKey, 0)
        }
        if let key {
            let column = try column(key)
            guard [.int, .string, .objectId, .uuid].contains(column.type), column.collection == nil, table.kind != .embedded
            else {
                throw TableError.notIndexable(table: table.name, column: table.name(of: column))
            }
            if column.attributes.contains(.fullTextIndexed) { try removeIndex(key) }
            let hadIndex = isIndexed(try self.column(key))
            try buildIndex(try self.column(key))
            do { try checkUnique(try self.column(key)) } catch {
                if !hadIndex { try dropIndex(try self.column(key)) }
                throw error
            }
            setTopElement(TableSlot.primaryKey, Arena.tag(Int(key.rawValue)))
        }
        try reloadSchema()
    }

    /// Throws where two objects have the same value, byte for byte. The column has a general index.
    private func checkUnique(_ column: Column) throws {
        guard let index = try SearchIndex(table, column) else { return }
        try table.forEachObject { row in
            let value = try row.value(column)
            var count = 0
            try index.forEachRow(value) { _ in
                count += 1
                return count < 2
            }
            if count > 1 { throw TableError.duplicatePrimaryKey(table: table.name, value: "\(value)") }
        }
    }

    /// Changes between top level and embedded (file-format-2 8.6). To embedded, every object must have exactly one owner, unless
    /// `repairing`: objects without one are deleted then, and shared ones replaced by copies, one for each owner.
    public func setKind(_ kind: TableKind, repairing: Bool = false) throws {
        if table.kind == kind { return }
        guard table.kind != .asymmetric && kind != .asymmetric else {
            throw TableError.badLinkTarget(table: table.name, column: "", reason: "asymmetric tables cannot change their kind")
        }
        if kind == .embedded {
            if table.primaryKeyColumn != nil { throw TableError.primaryKeyIsFixed(table: table.name) }
            for backlinks in table.backlinkColumns
            where backlinks.oppositeColumn.type == .link && backlinks.oppositeColumn.collectionKind == .set {
                throw TableError.badLinkTarget(table: table.name, column: "", reason: "a set links to the class")
            }
            var keys: [ObjectKey] = []
            try table.forEachLeaf { leaf in for i in 0..<leaf.count { keys.append(leaf.key(i)) } }
            // Before anything is repaired: whether that is possible must not depend on the order of the objects.
            for key in keys { try refuseMixedLinks(to: key) }
            for key in keys {
                guard let row = try table.find(key) else { continue }
                var owners: [(Column, ObjectKey)] = []
                for backlinks in table.backlinkColumns {
                    for origin in try row.backlinks(backlinks).sorted() { owners.append((backlinks, origin)) }
                }
                if owners.count == 1 { continue }
                if !repairing {
                    throw TableError.badLinkTarget(
                        table: table.name, column: "", reason: "object \(key) has \(owners.count) owners instead of one")
                }
                if owners.isEmpty {
                    try deleteObject(key)
                } else {
                    for (backlinks, origin) in owners {
                        let copy = try copyObject(key)
                        let other = try other(backlinks.oppositeTable)
                        try other.redirectLink(
                            origin, try other.column(backlinks.oppositeColumn), from: key, to: copy, target: table.key)
                        let old = try writableRow(key)
                        setCell(old, backlinks, try BacklinkLeafEditor.remove(arena, cell(old, backlinks), old.row, origin))
                        let new = try writableRow(copy)
                        setCell(new, backlinks, try BacklinkLeafEditor.add(arena, cell(new, backlinks), new.row, origin))
                    }
                    try deleteObject(key)
                }
            }
        }
        try beginChange()
        let flags = Arena.untag(topElement(TableSlot.flags))
        setTopElement(TableSlot.flags, Arena.tag(flags & ~3 | kind.rawValue))
        try reloadSchema()
    }

    private func refuseMixedLinks(to key: ObjectKey) throws {
        guard let row = try table.find(key) else { return }
        for backlinks in table.backlinkColumns where backlinks.oppositeColumn.type == .mixed {
            if try !row.backlinks(backlinks).isEmpty {
                throw TableError.badLinkTarget(table: table.name, column: "", reason: "a Mixed value links to object \(key)")
            }
        }
    }

    /// A copy of an object with the same values, embedded ones copied too. Nobody links to it yet.
    private func copyObject(_ key: ObjectKey) throws -> ObjectKey {
        let copy = try createEmbeddedObject()
        for column in table.publicColumns {
            guard let row = try table.find(key) else { throw noSuchObject(key) }
            if column.collection == nil {
                let value = try row.value(column)
                if case .link(let target, let object) = value, try other(target).table.kind == .embedded {
                    try replaceLink(column, copy, by: try other(target).copyObject(object))
                } else if value == .list || value == .dictionary {
                    try set(column, of: copy, to: value)
                    try copyElements(identity(column, of: key), to: identity(column, of: copy))
                } else {
                    try set(column, of: copy, to: value)
                }
            } else {
                try copyElements(identity(column, of: key), to: identity(column, of: copy))
            }
        }
        return copy
    }

    /// Copies the elements of a collection into an empty one of the same kind.
    func copyElements(_ source: Identity, to target: Identity) throws {
        let (root, form) = try collection(source)
        if root == 0 { return }
        let values = form.kind == .dictionary ? try arena.memory.node(root).requiredRef(1) : root
        let isEmbedded = try form.elementType == .link && other(form.column.oppositeTable).table.kind == .embedded
        let count = try count(source)
        for i in 0..<count {
            let value: Mixed
            if form.kind == .dictionary || form.elementType == .mixed {
                let (leaf, start) = try BPlusTree<MixedLeaf>(arena.memory, values).leaf(containing: i)
                value = try leaf.value(i - start)
            } else {
                value = try ListReader(arena.memory, root, form.column).value(i)
            }
            switch form.kind {
            case .list:
                if isEmbedded, case .link(let t, let object) = value {
                    let child = try other(t).copyObject(object)
                    try editCollection(target) { root, _ in
                        try BPlusTreeEditor<KeyLeafEditor>.append(
                            arena, root == 0 ? BPlusTreeEditor<KeyLeafEditor>.create(arena) : root, child)
                    }
                    try addBacklink(form.column, target.object, t, child)
                } else {
                    try listInsert(target, i, value)
                }
                if value == .list || value == .dictionary {
                    try copyElements(nestedIdentity(source, at: i), to: nestedIdentity(target, at: i))
                }
            case .set: _ = try setInsert(target, value)
            case .dictionary:
                let keys = try BPlusTree<StringLeaf>(arena.memory, arena.memory.node(root).requiredRef(0))
                let key = try keys.value(at: i) ?? ""
                if isEmbedded, case .link(let t, let object) = value {
                    let child = try other(t).copyObject(object)
                    try storeLink(target, key, t, child)
                } else {
                    try dictionarySet(target, key, value)
                }
                if value == .list || value == .dictionary {
                    try copyElements(nestedIdentity(source, at: i), to: nestedIdentity(target, at: i))
                }
            }
        }
    }
}
