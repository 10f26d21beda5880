/// Insertion into lists, also those nested in Mixed values (file-format-2 5.2, 5.7).
extension TableEditor {
    /// Inserts before element `index`; an index equal to the count appends.
    public func listInsert(_ identity: Identity, _ index: Int, _ value: Mixed) throws {
        if let column = try plainList(identity), value != .list, value != .dictionary {
            return try insertElement(column, identity, index, value)
        }
        let (_, form, count) = try list(identity, .list)
        guard index >= 0, index <= count else { throw TableError.indexOutOfRange(index, count: count) }
        try check(value, form)
        try checkDepth(identity, value)
        try insertElement(identity, form, count, index, value)
    }

    /// Inserts elements before element `index`, in their order; an index equal to the count appends.
    public func listInsert(_ identity: Identity, _ index: Int, contentsOf values: [Mixed]) throws {
        let (_, form, count) = try list(identity, .list)
        guard index >= 0, index <= count else { throw TableError.indexOutOfRange(index, count: count) }
        for value in values { try check(value, form) }
        if isIndexedList(form) || values.contains(where: { $0 == .list || $0 == .dictionary }) {
            for (offset, value) in values.enumerated() {
                try checkDepth(identity, value)
                try insertElement(identity, form, count + offset, index + offset, value)
            }
            return
        }
        try editCollection(identity) { root, form in
            var tree = root == 0 ? try TypedTreeEditor.create(arena, form.elementType, isNullable: form.isNullable) : root
            for (offset, value) in values.enumerated() {
                tree = try TypedTreeEditor.insert(
                    arena, tree, form.elementType, isNullable: form.isNullable, index + offset, value)
            }
            return tree
        }
        for offset in values.indices { group.changes.collectionInsert(index + offset, identity) }
        for case .link(let target, let key) in values { try addBacklink(form.column, identity.object, target, key) }
    }

    /// The column, where the collection is a list of its own without an index of words.
    private func plainList(_ identity: Identity) throws -> Column? {
        if !identity.salts.isEmpty { return nil }
        let column = try column(identity.column)
        return column.collection == .list && !(column.type == .string && isIndexed(column)) ? column : nil
    }

    /// The way of most insertions: the row is looked for once, or not at all where it was used last.
    private func insertElement(_ column: Column, _ identity: Identity, _ index: Int, _ value: Mixed) throws {
        let form = CollectionForm(kind: .list, elementType: column.type, isNullable: column.isNullable, column: column)
        try check(value, form)
        let row = try writableRow(identity.object)
        let leaf = try arena.writableRefs(cell(row, column))
        setCell(row, column, leaf)
        let root = Int(arena.element(leaf, row.row)), count = try count(root, form)
        guard index >= 0, index <= count else { throw TableError.indexOutOfRange(index, count: count) }
        let tree = root == 0 ? try TypedTreeEditor.create(arena, column.type, isNullable: column.isNullable) : root
        arena.setElement(
            leaf, row.row,
            try TypedTreeEditor.insert(arena, tree, column.type, isNullable: column.isNullable, index, value))
        group.changes.collectionInsert(index, identity)
        if case .link(let target, let key) = value { try addBacklink(column, identity.object, target, key) }
    }

    func insertElement(_ identity: Identity, _ form: CollectionForm, _ count: Int, _ index: Int, _ value: Mixed) throws {
        if isIndexedList(form) {
            if case .string(let s) = value, s.utf8.count > SearchIndexEditor.indexedByteCountMax {
                throw LimitError.valueTooLarge(byteCount: s.utf8.count, limit: SearchIndexEditor.indexedByteCountMax)
            }
            try insertWord(form.column, identity.object, value.word)
        }
        try editCollection(identity) { root, form in
            let tree = root == 0 ? try TypedTreeEditor.create(arena, form.elementType, isNullable: form.isNullable) : root
            if value == .list || value == .dictionary { return try insertCollection(tree, index, value) }
            return try TypedTreeEditor.insert(arena, tree, form.elementType, isNullable: form.isNullable, index, value)
        }
        group.changes.collectionInsert(index, identity)
        if case .link(let target, let key) = value { try addBacklink(form.column, identity.object, target, key) }
    }

    func insertCollection(_ tree: Int, _ index: Int, _ value: Mixed) throws -> Int {
        let salt = try newSalt(tree)
        let inserted = try BPlusTreeEditor<MixedLeafEditor>.insert(arena, tree, index, .null)
        return try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, inserted, index) { leaf, local in
            try MixedLeafEditor.setCollection(arena, leaf, local, value == .list ? .list : .dictionary, key: salt)
        }
    }

    /// A salt that no sibling has.
    func newSalt(_ tree: Int) throws -> Int64 {
        var taken = Set<Int64>()
        try BPlusTree<MixedLeaf>(arena.memory, tree).forEachLeaf { leaf, _ in
            for i in 0..<leaf.count {
                let key = try leaf.key(i)
                if key != 0 { taken.insert(key) }
            }
        }
        return group.nextSalt { taken.contains($0) }
    }
}
