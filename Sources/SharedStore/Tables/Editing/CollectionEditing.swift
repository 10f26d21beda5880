/// How a collection is reached and put back: from the row of its object down through the Mixed values that enclose it.
extension TableEditor {
    /// Where a collection stands, under a shorter name.
    public typealias Identity = ChangesetWriter.CollectionIdentity

    /// What holds the elements of a collection.
    struct CollectionForm {
        var kind: CollectionKind
        var elementType: ColumnType
        var isNullable: Bool
        var column: Column
    }

    /// Hands the root of the collection (0 where it is empty and was never made) to `edit` and stores the root that it returns,
    /// all the way up to the row.
    /// - Throws: `TableError.collectionIsGone` where no collection is found under the salts.
    func editCollection(_ identity: Identity, _ edit: (_ root: Int, _ form: CollectionForm) throws -> Int) throws {
        let column = try column(identity.column)
        let row = try writableRow(identity.object)
        if let kind = column.collection {
            let leaf = try arena.writableRefs(cell(row, column))
            setCell(row, column, leaf)
            let root = Int(arena.element(leaf, row.row))
            let new: Int
            if identity.salts.isEmpty {
                new = try edit(
                    root, CollectionForm(kind: kind, elementType: column.type, isNullable: column.isNullable, column: column))
            } else {
                new = try descend(root, kind, identity.salts[...], column, edit)
            }
            arena.setElement(leaf, row.row, new)
            return
        }
        guard column.type == .mixed else { throw TableError.notACollection(table: table.name, column: table.name(of: column)) }
        let kind = try nestedKind(cell(row, column), row.row, column)
        let (leaf, root) = try MixedLeafEditor.nestedRef(arena, cell(row, column), row.row)
        setCell(row, column, leaf)
        let new =
            try identity.salts.isEmpty ? edit(root, form(kind, column)) : descend(root, kind, identity.salts[...], column, edit)
        setCell(row, column, try MixedLeafEditor.setNestedRef(arena, leaf, row.row, new))
    }

    private func form(_ kind: CollectionKind, _ column: Column) -> CollectionForm {
        CollectionForm(kind: kind, elementType: .mixed, isNullable: true, column: column)
    }

    private func descend(
        _ root: Int, _ kind: CollectionKind, _ salts: ArraySlice<Int64>, _ column: Column,
        _ edit: (Int, CollectionForm) throws -> Int
    ) throws -> Int {
        let gone = TableError.collectionIsGone(table: table.name, column: table.name(of: column))
        guard root != 0, let salt = salts.first else { throw gone }
        if kind == .dictionary {
            let dictionary = try arena.writableRefs(root)
            arena.setElement(dictionary, 1, try descend(arena.child(dictionary, 1), .list, salts, column, edit))
            return dictionary
        }
        guard let position = try position(ofSalt: salt, in: root) else { throw gone }
        return try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, root, position) { leaf, local in
            let kind = try nestedKind(leaf, local, column)
            let (writable, nested) = try MixedLeafEditor.nestedRef(arena, leaf, local)
            let rest = salts.dropFirst()
            let new = try rest.isEmpty ? edit(nested, form(kind, column)) : descend(nested, kind, rest, column, edit)
            return try MixedLeafEditor.setNestedRef(arena, writable, local, new)
        }
    }

    private func nestedKind(_ leaf: Int, _ index: Int, _ column: Column) throws -> CollectionKind {
        switch try MixedLeaf(arena.memory, leaf).value(index) {
        case .list: return .list
        case .dictionary: return .dictionary
        default: throw TableError.collectionIsGone(table: table.name, column: table.name(of: column))
        }
    }

    private func position(ofSalt salt: Int64, in root: Int) throws -> Int? {
        var found: Int?
        try BPlusTree<MixedLeaf>(arena.memory, root).forEachLeaf { leaf, start in
            if found != nil { return }
            for i in 0..<leaf.count where try leaf.key(i) == salt {
                found = start + i
                return
            }
        }
        return found
    }

    // MARK: Reading what is there

    /// A collection as it is now: its root and its form. Root 0 reads as empty.
    func collection(_ identity: Identity) throws -> (root: Int, form: CollectionForm) {
        let column = try column(identity.column)
        guard let row = try table.find(identity.object) else { throw noSuchObject(identity.object) }
        var root: Int
        var present: CollectionForm
        if let kind = column.collection {
            root = try row.collectionRoot(column)
            present = CollectionForm(kind: kind, elementType: column.type, isNullable: column.isNullable, column: column)
        } else {
            guard column.type == .mixed else {
                throw TableError.notACollection(table: table.name, column: table.name(of: column))
            }
            let leaf = try row.leaf(MixedLeaf.self, column)
            present = form(try nestedKind(leaf.value(row.index), column), column)
            root = try leaf.nestedRef(row.index)
        }
        for salt in identity.salts {
            let values = present.kind == .dictionary && root != 0 ? try arena.memory.node(root).requiredRef(1) : root
            guard values != 0, let position = try position(ofSalt: salt, in: values) else {
                throw TableError.collectionIsGone(table: table.name, column: table.name(of: column))
            }
            let (leaf, start) = try BPlusTree<MixedLeaf>(arena.memory, values).leaf(containing: position)
            present = form(try nestedKind(leaf.value(position - start), column), column)
            root = try leaf.nestedRef(position - start)
        }
        return (root, present)
    }

    private func nestedKind(_ value: Mixed, _ column: Column) throws -> CollectionKind {
        switch value {
        case .list: return .list
        case .dictionary: return .dictionary
        default: throw TableError.collectionIsGone(table: table.name, column: table.name(of: column))
        }
    }

    /// The elements of a list or set of links, or of a set of Mixed.
    func collectionTree(_ key: ObjectKey, _ column: Column) throws -> LinkPositions {
        guard let row = try table.find(key) else { throw noSuchObject(key) }
        return LinkPositions(memory: arena.memory, root: try row.collectionRoot(column), isMixed: column.type == .mixed)
    }

    /// Finds links in a stored list or set.
    struct LinkPositions {
        let memory: Memory
        let root: Int
        let isMixed: Bool

        func firstPosition(of table: TableKey, _ target: ObjectKey) throws -> Int? {
            var found: Int?
            if isMixed {
                try BPlusTree<MixedLeaf>(memory, root).forEachLeaf { leaf, start in
                    if found != nil { return }
                    for i in 0..<leaf.count {
                        if case .link(table, target) = try leaf.value(i) {
                            found = start + i
                            return
                        }
                    }
                }
            } else {
                try BPlusTree<KeyLeaf>(memory, root).forEachLeaf { leaf, start in
                    if found != nil { return }
                    for i in 0..<leaf.count where try leaf.value(i) == target {
                        found = start + i
                        return
                    }
                }
            }
            return found
        }
    }

    /// Sets or clears the mark at the root of a list or set of links that says whether it holds unresolved keys.
    func updateUnresolvedFlag(_ identity: Identity) throws {
        let (root, form) = try collection(identity)
        guard root != 0, form.elementType == .link, form.kind != .dictionary else { return }
        var holds = false
        try BPlusTree<KeyLeaf>(arena.memory, root).forEachLeaf { leaf, _ in
            if holds { return }
            for i in 0..<leaf.count where try leaf.value(i).isUnresolved { holds = true }
        }
        if try arena.memory.node(root).hasContext != holds {
            try editCollection(identity) { root, _ in try BPlusTreeEditor<KeyLeafEditor>.setHoldsUnresolved(arena, root, holds) }
        }
    }
}
