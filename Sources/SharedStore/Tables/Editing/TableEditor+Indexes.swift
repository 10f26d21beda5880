/// Indexes are kept in step with rows (file-format-2 7.9).
extension TableEditor {
    private func editor(_ column: Column) -> SearchIndexEditor {
        guard column.collection == .list else {
            return SearchIndexEditor(arena: arena, isFullWord: column.attributes.contains(.fullTextIndexed))
        }
        return SearchIndexEditor(arena: arena, isFullWord: true) { [table] key, path in
            // The element of the object's list that ends within the last chunk of the path.
            guard let row = try table.find(key) else { return nil }
            var found: Mixed?
            try row.list(column).forEach { value in
                guard found == nil else { return }
                let isOnPath = SearchIndex.withIndexBytes(value, in: column) { bytes in
                    let key = BytesIndexKey(bytes)
                    return path.withUnsafeBytes { p in
                        (key.byteCount ?? 0) <= path.count
                            && stride(from: 0, to: path.count, by: 4).allSatisfy {
                                key.chunk($0) == p.loadUnaligned(fromByteOffset: $0, as: Int32.self).bigEndian
                            }
                    }
                }
                if isOnPath { found = value }
            }
            return found
        }
    }

    func isIndexed(_ column: Column) -> Bool { indexRoots[column.key.leafIndex] != 0 }

    /// The column with the index and the list of values that it has now: the caller's may be from before this transaction, or
    /// from before an index was added in it.
    @inline(__always)
    func present(_ column: Column) -> Column { columns[column.key.leafIndex] ?? column }

    /// Adds `key` under a value of a scalar column, or under its words where the index is full text.
    func insertIntoIndex(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        let column = present(column)
        if column.attributes.contains(.fullTextIndexed) {
            for token in column.tokens(value) { try insertWord(column, key, token) }
            return
        }
        if !insertIntoIndexInPlace(column, key, value) { try insertIntoIndexSlowly(column, key, value) }
    }

    /// The same where nothing but one node has to change, and no object has this value: false, with nothing changed, elsewhere.
    /// The column is as it is now, and its index is no full-text index.
    @inline(__always)
    func insertIntoIndexInPlace(_ column: Column, _ key: ObjectKey, _ value: Mixed) -> Bool {
        let root = indexRoots[column.key.leafIndex]
        if case .int(let v) = value, column.type == .int {
            return SearchIndexEditor.insertInPlace(arena, root, key, FixedIndexKey(UInt64(bitPattern: v), 0, 8))
        }
        return SearchIndex.withIndexBytes(value, in: column) {
            SearchIndexEditor.insertInPlace(arena, root, key, BytesIndexKey($0))
        }
    }

    @inline(never)
    private func insertIntoIndexSlowly(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        let root = indexRoots[column.key.leafIndex]
        let valueOf: (ObjectKey) throws -> Mixed = { [table] in
            guard let row = try table.find($0) else {
                throw FormatError(ref: root, "index of column \(column.key) holds the key \($0) of no object")
            }
            return try row.indexedValue(column)
        }
        let newRoot: Int
        if case .int(let v) = value, column.type == .int {
            newRoot = try editor(column).insert(
                root, key, FixedIndexKey(UInt64(bitPattern: v), 0, 8), value, in: column, valueOf: valueOf)
        } else {
            newRoot = try SearchIndex.withIndexBytes(value, in: column) {
                try editor(column).insert(root, key, BytesIndexKey($0), value, in: column, valueOf: valueOf)
            }
        }
        try setIndexRoot(column.key.leafIndex, newRoot)
    }

    func eraseFromIndex(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        let column = present(column)
        if column.attributes.contains(.fullTextIndexed) {
            for token in column.tokens(value) { try eraseWord(column, key, token) }
            return
        }
        let root = indexRoots[column.key.leafIndex]
        let newRoot = try SearchIndex.withIndexBytes(value, in: column) { try editor(column).erase(root, key, BytesIndexKey($0)) }
        try setIndexRoot(column.key.leafIndex, newRoot)
    }

    /// The value of an indexed scalar column changes; called before the row does.
    func changeIndex(_ column: Column, _ key: ObjectKey, from old: Mixed, to new: Mixed) throws {
        let column = present(column)
        if column.attributes.contains(.fullTextIndexed) {
            let before = column.tokens(old), after = column.tokens(new)
            for token in before.subtracting(after) { try eraseWord(column, key, token) }
            for token in after.subtracting(before) { try insertWord(column, key, token) }
            return
        }
        // Bytes and value are compared: values that are equal may stand under different bytes.
        if old == new { return }
        try eraseFromIndex(column, key, old)
        try insertIntoIndex(column, key, new)
    }

    /// - Parameter word: a string of the list, or one of a text; nil for a null in the list, which is found by it as well.
    func insertWord(_ column: Column, _ key: ObjectKey, _ word: [UInt8]?) throws {
        let root = try word.withIndexKey {
            try editor(column).insert(indexRoots[column.key.leafIndex], key, $0, .null, in: column) { _ in .null }
        }
        try setIndexRoot(column.key.leafIndex, root)
    }

    func eraseWord(_ column: Column, _ key: ObjectKey, _ word: [UInt8]?) throws {
        let root = try word.withIndexKey { try editor(column).erase(indexRoots[column.key.leafIndex], key, $0) }
        try setIndexRoot(column.key.leafIndex, root)
    }

    /// Takes an object out of all indexes, before its row goes.
    func removeFromIndexes(_ key: ObjectKey) throws {
        guard let row = try table.find(key) else { return }
        for leafIndex in indexRoots.indices where indexRoots[leafIndex] != 0 {
            guard let column = columns[leafIndex] else { continue }
            if column.collection == .list {
                for word in try row.list(column).words() { try eraseWord(column, key, word) }
            } else if try !eraseFromIndexInPlace(column, row) {
                try eraseFromIndex(column, key, try row.indexedValue(column))
            }
        }
    }

    /// The same for one index, of integers or of strings as a whole, without making a value; false for others.
    private func eraseFromIndexInPlace(_ column: Column, _ row: ObjectRow) throws -> Bool {
        if column.collection != nil || column.attributes.contains(.fullTextIndexed) || column.isEnumerated { return false }
        let root = indexRoots[column.key.leafIndex], newRoot: Int
        switch column.type {
        case .int:
            guard let value = try row.optionalInt(column) else { return false }
            newRoot = try editor(column).erase(root, row.key, FixedIndexKey(UInt64(bitPattern: value), 0, 8))
        case .string:
            // Strings of several blobs are too long for an address of their own, and null and the empty one are few.
            guard let bytes = try? row.stringBytes(column), !bytes.isEmpty else { return false }
            newRoot = try editor(column).erase(root, row.key, BytesIndexKey(bytes))
        default: return false
        }
        try setIndexRoot(column.key.leafIndex, newRoot)
        return true
    }

    /// Types that can have a general index, as scalar or as list of strings.
    static func isIndexable(_ column: Column) -> Bool {
        if column.collection == .list { return column.type == .string }
        return column.collection == nil && [.int, .bool, .string, .timestamp, .objectId, .uuid, .mixed].contains(column.type)
    }

    /// Gives a column a general or full-text index over all its objects; does nothing where it has that index already.
    public func addIndex(_ key: ColumnKey, fullText: Bool = false) throws {
        let column = try column(key)
        let possible =
            fullText
            ? column.type == .string && column.collection == nil && table.primaryKeyColumn?.key != key : Self.isIndexable(column)
        guard possible else { throw TableError.notIndexable(table: table.name, column: table.name(of: column)) }
        let flag: ColumnAttributes = fullText ? .fullTextIndexed : .indexed
        if column.attributes.contains(flag) { return }
        if column.attributes.contains(fullText ? .indexed : .fullTextIndexed) { try removeIndex(key) }
        try setAttributes(try self.column(key), try self.column(key).attributes.union(flag))
        try buildIndex(try self.column(key))
    }

    /// Removes the index that was asked for; that of a primary key stays.
    public func removeIndex(_ key: ColumnKey) throws {
        let column = try column(key)
        try setAttributes(column, column.attributes.subtracting([.indexed, .fullTextIndexed]))
        if table.primaryKeyColumn?.key != key { try dropIndex(try self.column(key)) }
    }

    func dropIndex(_ column: Column) throws {
        let root = indexRoots[column.key.leafIndex]
        if root == 0 { return }
        try beginChange()
        try arena.releaseTree(root)
        try setIndexRoot(column.key.leafIndex, 0)
    }

    /// Makes the index of a column from its rows, in key order; keeps one that is there.
    func buildIndex(_ column: Column) throws {
        if indexRoots[column.key.leafIndex] != 0 { return }
        try beginChange()
        try setIndexRoot(column.key.leafIndex, try SearchIndexEditor.create(arena))
        try table.forEachObject { row in
            if column.collection == .list {
                for word in try row.list(column).words() { try insertWord(column, row.key, word) }
            } else {
                try insertIntoIndex(column, row.key, try row.indexedValue(column))
            }
        }
    }
}

extension ObjectRow {
    /// The value of a scalar column as the index holds it: nested collections by their kind, links to lost objects as null.
    func indexedValue(_ column: Column) throws -> Mixed { try value(column) }
}

extension Column {
    /// The words of a text; none for null.
    func tokens(_ value: Mixed) -> Set<[UInt8]> {
        if case .string(let s) = value { FullTextTokenizer.tokens(s) } else { [] }
    }
}

extension [UInt8]? {
    /// The bytes as an index key, an empty array being different from nil.
    func withIndexKey<R>(_ body: (BytesIndexKey) throws -> R) rethrows -> R {
        guard let self else { return try body(BytesIndexKey(nil)) }
        return try self.withUnsafeBytes {
            try body(
                BytesIndexKey(
                    $0.baseAddress == nil || self.isEmpty
                        ? UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) : $0))
        }
    }
}

extension ListReader {
    /// The distinct words of a list of strings, nil for null.
    func words() throws -> Set<[UInt8]?> {
        var words = Set<[UInt8]?>()
        try forEach { words.insert($0.word) }
        return words
    }
}

extension Mixed {
    /// What stands for an element of a list of strings in an index: its bytes, nil for null. The original indexes nulls too, and takes
    /// the entry of another word for one that it does not find when the null goes.
    var word: [UInt8]? {
        if case .string(let s) = self { Array(s.utf8) } else { nil }
    }
}
