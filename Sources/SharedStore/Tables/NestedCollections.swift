// The keys of nested collections, which name them while positions move (file-format-2 5.7).

extension ObjectRow {
    /// The key of the collection that a Mixed property holds: another one in the same place has another key, with all but
    /// certainty. 0 where the property holds none, and in files whose writer gave none.
    public func nestedKey(_ column: Column) throws -> Int64 {
        precondition(column.type == .mixed && column.collection == nil, "the column holds no Mixed values")
        return try leaf(MixedLeaf.self, column).key(index)
    }
}

extension ListReader {
    /// The key of the collection that element `index` of a list of Mixed is; 0 where it is none.
    public func nestedKey(_ index: Int) throws -> Int64 {
        precondition(elementType == .mixed && index >= 0 && index < count, "index \(index) is outside a list of \(count) values")
        let (leaf, start) = try tree(MixedLeaf.self).leaf(containing: index)
        return try leaf.key(index - start)
    }

    /// The position of the nested collection with the given key, or nil.
    public func position(ofNestedKey key: Int64) throws -> Int? {
        precondition(elementType == .mixed, "the list holds no Mixed values")
        var found: Int?
        try tree(MixedLeaf.self).forEachLeaf { leaf, start in
            if found != nil { return }
            for i in 0..<leaf.count where try leaf.key(i) == key {
                found = start + i
                return
            }
        }
        return found
    }
}

extension DictionaryReader {
    /// The key of the collection that value `index` is; 0 where it is none.
    public func nestedKey(_ index: Int) throws -> Int64 {
        let (leaf, position) = try leaf(index)
        return try leaf.key(position)
    }

    /// The position of the nested collection with the given key, or nil.
    public func position(ofNestedKey key: Int64) throws -> Int? {
        for index in 0..<count where try nestedKey(index) == key { return index }
        return nil
    }
}
