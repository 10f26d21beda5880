/// A dictionary as stored (file-format-2 5.5): two trees of the same length, ascending keys and their values.
///
/// ```
/// format 23, 24   refs: [0] keys, B+ tree of strings or ints   [1] values, B+ tree of Mixed
/// format 21, 22   cluster tree by hashes: [1] strings   [2] Mixed (section 10); its entries have no useful order
/// ```
/// Values are Mixed whatever the column's type; links are typed and read as null where the object is gone.
public struct DictionaryReader {
    private enum Storage {
        case empty
        case trees(keysRef: Int, valuesRef: Int)
        case clusters(ClusterTree)
    }

    /// The version that the dictionary is read from.
    public let memory: Memory
    /// The node that the row or the Mixed value refers to; 0 for a dictionary that is empty or was never written to.
    public let ref: Int
    /// String, or int in files of programs that use such keys.
    public let keyType: ColumnType
    /// Number of entries.
    public let count: Int
    private let storage: Storage

    /// The dictionary of a dictionary column.
    init(_ memory: Memory, _ ref: Int, _ column: Column) throws {
        try self.init(memory, ref, keyType: column.dictionaryKeyType, old: column.hasOldDictionaries)
    }

    /// The dictionary that is nested in a Mixed value.
    init(_ memory: Memory, mixed ref: Int) throws {
        try self.init(memory, ref, keyType: .string, old: false)
    }

    private init(_ memory: Memory, _ ref: Int, keyType: ColumnType, old: Bool) throws {
        self.memory = memory
        self.ref = ref
        self.keyType = keyType
        if ref == 0 {
            storage = .empty
            count = 0
        } else if old {
            let tree = try ClusterTree(memory, ref)
            storage = .clusters(tree)
            count = tree.count
        } else {
            let top = try memory.refs(ref, "dictionary")
            if top.count != 2 { throw FormatError(ref: ref, "dictionary with \(top.count) elements") }
            let keysRef = try top.requiredRef(0), valuesRef = try top.requiredRef(1)
            let keyCount =
                keyType == .int
                ? try BPlusTree<IntLeaf>(memory, keysRef).count : try BPlusTree<StringLeaf>(memory, keysRef).count
            let valueCount = try BPlusTree<MixedLeaf>(memory, valuesRef).count
            if keyCount != valueCount { throw FormatError(ref: ref, "dictionary with \(keyCount) keys and \(valueCount) values") }
            storage = .trees(keysRef: keysRef, valuesRef: valuesRef)
            count = keyCount
        }
    }

    private func check(_ index: Int) {
        precondition(index >= 0 && index < count, "index \(index) is outside a dictionary of \(count)")
    }

    private func row(_ tree: ClusterTree, _ index: Int) throws -> ObjectRow {
        guard let row = try tree.object(at: index) else {
            throw FormatError(ref: tree.root.ref, "dictionary has no entry \(index) of \(count)")
        }
        return row
    }

    /// Key `index` in stored order: `.string`, or `.int` where `keyType` says so.
    public func key(_ index: Int) throws -> Mixed {
        check(index)
        switch storage {
        case .empty: return .null
        case .trees(let keysRef, _):
            if keyType == .int { return .int(try BPlusTree<IntLeaf>(memory, keysRef).value(at: index)) }
            return .string(try BPlusTree<StringLeaf>(memory, keysRef).value(at: index) ?? "")
        case .clusters(let tree):
            let row = try row(tree, index)
            return .string(try StringLeaf(memory, row.cluster.requiredRef(1)).value(row.index) ?? "")
        }
    }

    /// Value `index` in stored order.
    public func value(_ index: Int) throws -> Mixed {
        check(index)
        let (leaf, position) = try leaf(index)
        return try leaf.value(position).resolved
    }

    /// The leaf that holds value `index`, and its position there.
    func leaf(_ index: Int) throws -> (MixedLeaf, Int) {
        switch storage {
        case .empty: throw FormatError(ref: 0, "entry \(index) asked of an empty dictionary")
        case .trees(_, let valuesRef):
            let (leaf, start) = try BPlusTree<MixedLeaf>(memory, valuesRef).leaf(containing: index)
            return (leaf, index - start)
        case .clusters(let tree):
            let row = try row(tree, index)
            return (try MixedLeaf(memory, row.cluster.requiredRef(2)), row.index)
        }
    }

    /// Calls `body` with every entry in stored order: the key (`.string` or `.int`), and where the value is.
    func forEachEntry(_ body: (_ key: MixedView, _ values: MixedLeaf, _ index: Int) throws -> Void) throws {
        switch storage {
        case .empty: break
        case .clusters(let tree):
            try tree.forEachLeaf { leaf in
                let keys = try StringLeaf(memory, leaf.node.requiredRef(1))
                let values = try MixedLeaf(memory, leaf.node.requiredRef(2))
                for i in 0..<leaf.count { try body(.string(keys.bytes(i) ?? DictionaryReader.noBytes), values, i) }
            }
        case .trees(let keysRef, let valuesRef):
            let values = try BPlusTree<MixedLeaf>(memory, valuesRef)
            if keyType == .int {
                let keys = try BPlusTree<IntLeaf>(memory, keysRef)
                try keys.forEachLeaf { leaf, start in
                    for i in 0..<leaf.count {
                        let (values, first) = try values.leaf(containing: start + i)
                        try body(.int(leaf.value(i)), values, start + i - first)
                    }
                }
            } else {
                let keys = try BPlusTree<StringLeaf>(memory, keysRef)
                try keys.forEachLeaf { leaf, start in
                    for i in 0..<leaf.count {
                        let (values, first) = try values.leaf(containing: start + i)
                        try body(.string(leaf.bytes(i) ?? DictionaryReader.noBytes), values, start + i - first)
                    }
                }
            }
        }
    }

    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// The list that value `index` is.
    public func list(_ index: Int) throws -> ListReader {
        check(index)
        let (leaf, position) = try leaf(index)
        return try ListReader(memory, mixed: leaf.nestedRef(position))
    }

    /// The dictionary that value `index` is.
    public func dictionary(_ index: Int) throws -> DictionaryReader {
        check(index)
        let (leaf, position) = try leaf(index)
        return try DictionaryReader(memory, mixed: leaf.nestedRef(position))
    }

    /// Position of the entry with a string key, or nil.
    public func find(_ key: String) throws -> Int? {
        var key = key
        return try key.withUTF8 { try find(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Position of the entry with this string key, given as UTF-8, or nil.
    public func find(bytes key: UnsafeRawBufferPointer) throws -> Int? {
        switch storage {
        case .empty: return nil
        case .trees(let keysRef, _):
            if keyType != .string { return nil }
            let keys = try BPlusTree<StringLeaf>(memory, keysRef)
            var low = 0, high = count
            while low < high {
                let middle = (low + high) / 2
                let (leaf, start) = try keys.leaf(containing: middle)
                let order = ValueOrder.compare(try leaf.bytes(middle - start), key)
                if order == 0 { return middle }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return nil
        case .clusters(let tree):
            var position = 0, found: Int?
            try tree.scanLeaves { leaf in
                let strings = try StringLeaf(memory, leaf.node.requiredRef(1))
                for i in 0..<leaf.count {
                    if ValueOrder.compare(try strings.bytes(i), key) == 0 {
                        found = position + i
                        return false
                    }
                }
                position += leaf.count
                return true
            }
            return found
        }
    }

    /// Position of the entry with an int key, or nil.
    public func find(int key: Int64) throws -> Int? {
        guard case .trees(let keysRef, _) = storage, keyType == .int else { return nil }
        let keys = try BPlusTree<IntLeaf>(memory, keysRef)
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if try keys.value(at: middle) < key { low = middle + 1 } else { high = middle }
        }
        return try low < count && keys.value(at: low) == key ? low : nil
    }

    /// Value for a string key, or nil where there is no such entry.
    public func value(forKey key: String) throws -> Mixed? { try find(key).map { try value($0) } }
}
