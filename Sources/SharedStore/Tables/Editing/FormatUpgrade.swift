/// Brings the tables of an older file to the present format, in the write transaction that then commits it as such
/// (file-format-2 section 10).
///
/// | step | stored format | what |
/// |---|---|---|
/// | A | < 22 | a primary key column without an index gets one; its attributes stay |
/// | B | 22 | asymmetric tables are emptied |
/// | C | 21, 22 | dictionaries are rebuilt: cluster tree by hashes -> keys and values in order |
/// | D | < 24 | sets of strings, of binaries, and the strings and binaries within sets of Mixed take the present order |
/// | E | < 24 | columns of type 13 (list of links) get type 12 in their keys and in those of their opposite columns |
///
/// C comes before B here, since emptying a table reads its dictionaries, and E last, since it changes the keys of columns. For
/// sets of Mixed, C's "strings before binaries" is part of D's order. Everything else that differs between the formats is valid
/// in both.
///
/// The columns still read as those of the older format afterwards: nothing but committing may follow.
enum FormatUpgrade {
    static func run(_ editor: GroupEditor, from format: UInt8) throws {
        precondition(editor.group.format == format, "the tables must be read in the format that they have")
        if format >= FileHeader.currentFormat { return }
        for key in try editor.group.tableKeys() {
            let table = try editor.editor(key)
            table.table.showsAllObjects = true
            if format < 22 { try table.indexPrimaryKey() }
            if format == 21 || format == 22 { try table.rebuildDictionaries() }
            try table.sortSets()
        }
        if format == 22 {
            for key in try editor.group.tableKeys() {
                let table = try editor.editor(key)
                if table.table.kind == .asymmetric && table.table.objectCount > 0 { try table.deleteAllObjects() }
            }
        }
        for key in try editor.group.tableKeys() { try editor.editor(key).renumberListsOfLinks() }
        // Nobody can have bound a version of the older format to be told of changes to it.
        editor.changes = ChangesetWriter()
    }
}

extension TableEditor {
    /// Step A.
    fileprivate func indexPrimaryKey() throws {
        guard let column = table.primaryKeyColumn, !isIndexed(column) else { return }
        try makeRoomForIndexes(upTo: column.key.leafIndex)
        try buildIndex(column)
    }

    /// Older tables may have fewer index roots than columns, or none.
    private func makeRoomForIndexes(upTo leafIndex: Int) throws {
        try beginChange()
        let present = topElement(TableSlot.indexes)
        var roots = present == 0 ? try arena.makeRefs(count: 0) : try arena.child(top, TableSlot.indexes)
        let count = try arena.memory.refs(roots, "index roots").count
        let missing = max(0, leafIndex + 1 - count)
        roots = try arena.writableRefs(roots, growth: missing)
        for i in 0..<missing { arena.insertElement(roots, count + i, 0) }
        setTopElement(TableSlot.indexes, Int64(roots))
        table.setIndexes(roots)
    }

    private func objectKeys() throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try table.forEachObject { keys.append($0.key) }
        return keys
    }

    // MARK: Step C

    fileprivate func rebuildDictionaries() throws {
        for column in table.publicColumns where column.collection == .dictionary {
            try markKeysAsStrings(column)
            for key in try objectKeys() {
                guard let row = try table.find(key), try row.collectionRoot(column) != 0 else { continue }
                try editCollection(identity(column, of: key)) { root, _ in
                    let new = try rebuiltDictionary(DictionaryReader(arena.memory, root, column))
                    try arena.releaseTree(root)
                    return new
                }
            }
        }
    }

    /// The keys of old dictionaries are always strings; from format 23 on the types array says so (file-format-2 3.1).
    private func markKeysAsStrings(_ column: Column) throws {
        try beginChange()
        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        let types = try arena.child(spec, 0)
        let type = try ArrayEditor.get(arena, types, column.specIndex)
        if type >> 16 == 0 {
            arena.setElement(
                spec, 0, try ArrayEditor.set(arena, types, column.specIndex, type | Int64(ColumnType.string.rawValue) << 16))
        }
    }

    /// Root of the present form, 0 for an empty dictionary. Values are taken as stored: links to lost objects too.
    private func rebuiltDictionary(_ old: DictionaryReader) throws -> Int {
        var entries: [(key: [UInt8], value: Mixed)] = []
        try old.forEachEntry { key, values, index in
            guard case .string(let bytes) = key else {
                throw FormatError(ref: old.ref, "old dictionary with a key that is no string")
            }
            let value = try values.value(index)
            if value == .list || value == .dictionary {
                throw FormatError(ref: old.ref, "old dictionary with a nested collection")
            }
            entries.append((Array(bytes), value))
        }
        if entries.isEmpty { return 0 }
        entries.sort { a, b in a.key.withUnsafeBytes { p in b.key.withUnsafeBytes { ValueOrder.compare(p, $0) < 0 } } }
        for i in 1..<max(entries.count, 1) where entries[i - 1].key == entries[i].key {
            throw FormatError(
                ref: old.ref, "old dictionary with the key \"\(String(decoding: entries[i].key, as: UTF8.self))\" twice")
        }
        var keys = try BPlusTreeEditor<StringLeafEditor>.create(arena),
            values = try BPlusTreeEditor<MixedLeafEditor>.create(arena)
        for entry in entries {
            keys = try Mixed.binary(entry.key).withBytes { try BPlusTreeEditor<StringLeafEditor>.append(arena, keys, $0) }
            values = try BPlusTreeEditor<MixedLeafEditor>.append(arena, values, entry.value)
        }
        let dictionary = try arena.makeRefs(count: 2)
        arena.setElement(dictionary, 0, keys)
        arena.setElement(dictionary, 1, values)
        return dictionary
    }

    // MARK: Step D

    fileprivate func sortSets() throws {
        for column in table.publicColumns where column.collection == .set {
            guard [.string, .binary, .mixed].contains(column.type) else { continue }
            for key in try objectKeys() {
                guard let row = try table.find(key) else { continue }
                let root = try row.collectionRoot(column)
                let moves = root == 0 ? [] : try misplaced(ListReader(arena.memory, root, column))
                if moves.isEmpty { continue }
                try editCollection(identity(column, of: key)) { root, form in
                    var tree = root
                    for (position, value) in moves {
                        tree = try TypedTreeEditor.set(
                            arena, tree, form.elementType, isNullable: form.isNullable, position, value)
                    }
                    return tree
                }
            }
        }
    }

    /// What must stand elsewhere: positions and the values that belong there. Of a set of Mixed only strings and binaries move.
    private func misplaced(_ elements: ListReader) throws -> [(Int, Mixed)] {
        var positions: [Int] = [], values: [Mixed] = []
        var position = 0
        try elements.forEach {
            let moves =
                switch $0 {
                case .string, .binary: true
                default: elements.elementType != .mixed
                }
            if moves {
                positions.append(position)
                values.append($0)
            }
            position += 1
        }
        let sorted = values.sorted { Mixed.compare($0, $1) < 0 }
        return positions.indices.filter { sorted[$0] != values[$0] }.map { (positions[$0], sorted[$0]) }
    }

    // MARK: Step E

    fileprivate func renumberListsOfLinks() throws {
        func renumbered(_ raw: Int64) -> Int64? {
            let key = ColumnKey(raw)
            return raw >= 0 && !key.isNull && key.typeNumber == 13 ? raw & ~(0x3F << 16) | 12 << 16 : nil
        }
        let memory = arena.memory
        let spec = try memory.refs(try memory.refs(top, "table top").requiredRef(TableSlot.spec), "spec")
        let keys = try memory.integers(spec.requiredRef(5), "column keys")
        let opposite = try memory.refs(top, "table top").optionalRef(TableSlot.oppositeColumns)
        let oppositeKeys = opposite == 0 ? nil : try memory.integers(opposite, "opposite columns")
        let changes = (0..<keys.count).compactMap { i in renumbered(keys.unchecked(i)).map { (i, $0) } }
        let oppositeChanges = (0..<(oppositeKeys?.count ?? 0)).compactMap { i in
            oppositeKeys.flatMap { renumbered($0.unchecked(i)) }.map { (i, $0) }
        }
        if changes.isEmpty && oppositeChanges.isEmpty { return }
        try beginChange()
        let writableSpec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(writableSpec))
        for (i, key) in changes {
            arena.setElement(writableSpec, 5, try ArrayEditor.set(arena, arena.child(writableSpec, 5), i, key))
        }
        for (i, key) in oppositeChanges {
            setTopElement(
                TableSlot.oppositeColumns, Int64(try ArrayEditor.set(arena, arena.child(top, TableSlot.oppositeColumns), i, key)))
        }
        // A list of links cannot be the primary key, so slot 11 never needs this.
    }
}
