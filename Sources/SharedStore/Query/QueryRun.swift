/// One run of a query over one version of the file: tables and columns found, constants made ready, rows looked at.
///
/// Used by one thread. Everything in it is valid as long as the version.
final class QueryRun {
    let group: Group
    /// The object that the query is about, then those of the subqueries around.
    var frames: [QueryFrame] = []
    let storage = QueryStorage()
    private var tables: [TableKey: Table] = [:]
    /// What the plan of the run says, for people.
    var plan = ""
    /// Objects whose values were looked at.
    var objectsLookedAt = 0
    /// Tests switch these off to compare the ways to an answer.
    let usesIndexes: Bool, usesColumnConditions: Bool

    init(_ group: Group, usesIndexes: Bool = true, usesColumnConditions: Bool = true) {
        self.group = group
        self.usesIndexes = usesIndexes
        self.usesColumnConditions = usesColumnConditions
    }

    func table(_ key: TableKey) throws -> Table {
        if let table = tables[key] { return table }
        guard let table = try group.table(key) else {
            throw QueryError(.property, "the table \(key) of the query is not in this version of the file")
        }
        tables[key] = table
        return table
    }

    func column(_ property: QueryProperty) throws -> Column {
        let table = try table(property.table)
        guard let column = table.column(property.column) else {
            throw QueryError(
                .property, "a column of the query is not in this version of the file: \(property.column) of \(table.name)")
        }
        return column
    }

    /// A constant as a view that is valid during the run.
    func view(_ constant: QueryConstant) throws -> MixedView {
        switch constant {
        case .value(let value): return storage.view(value)
        case .object(let tableKey, let primaryKey):
            guard let key = try QueryRun.object(table(tableKey), primaryKey: primaryKey) else { return .null }
            return .link(tableKey, key)
        }
    }

    /// The object with that primary key.
    static func object(_ table: Table, primaryKey: Mixed) throws -> ObjectKey? {
        guard let column = table.primaryKeyColumn else { return nil }
        if let index = try SearchIndex(table, column) { return try index.firstRow(primaryKey)?.key }
        var found: ObjectKey?
        try table.scanLeaves { leaf in
            for i in 0..<leaf.count where try leaf.row(i).equals(column, primaryKey) {
                found = leaf.key(i)
                return false
            }
            return true
        }
        return found
    }
}

/// The object that a predicate is asked about: a row of a cluster leaf.
final class QueryFrame {
    let table: Table
    let memory: Memory
    /// The cluster leaf; `generation` tells that it is another one than before.
    @exclusivity(unchecked) private(set) var cluster: Node
    @exclusivity(unchecked) private(set) var generation = 0
    @exclusivity(unchecked) private(set) var hasLeaf = false
    @exclusivity(unchecked) var index = 0
    @exclusivity(unchecked) var key = ObjectKey.null

    init(_ table: Table) {
        self.table = table
        memory = table.memory
        cluster = table.tree.root
    }

    @inline(__always)
    var row: ObjectRow { ObjectRow(memory: memory, cluster: cluster, index: index, key: key) }

    /// Moves to a leaf; `index` and `key` are set by the caller, row after row.
    func enter(_ leaf: ClusterLeaf) {
        cluster = leaf.node
        generation &+= 1
        hasLeaf = true
    }

    /// Moves to an object; false where there is none.
    func move(to key: ObjectKey) throws -> Bool {
        guard let row = try table.find(key) else { return false }
        move(to: row)
        return true
    }

    @inline(__always)
    func move(to row: ObjectRow) {
        if !hasLeaf || row.cluster.ref != cluster.ref {
            cluster = row.cluster
            generation &+= 1
            hasLeaf = true
        }
        index = row.index
        key = row.key
    }
}

/// Bytes that do not lie in the file: constants, and values that are spread over several blobs.
final class QueryStorage {
    private var buffers: [UnsafeMutableRawBufferPointer] = []

    deinit { for buffer in buffers { buffer.deallocate() } }

    func keep(_ bytes: some Collection<UInt8>) -> UnsafeRawBufferPointer {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
        buffer.copyBytes(from: bytes)
        buffers.append(buffer)
        return UnsafeRawBufferPointer(start: buffer.baseAddress, count: bytes.count)
    }

    func view(_ value: Mixed) -> MixedView {
        switch value {
        case .null: .null
        case .int(let v): .int(v)
        case .bool(let v): .bool(v)
        case .float(let v): .float(v)
        case .double(let v): .double(v)
        case .string(let v): .string(keep(v.utf8))
        case .binary(let v): .binary(keep(v))
        case .timestamp(let v): .timestamp(v)
        case .decimal(let v): .decimal(v)
        case .objectId(let v): .objectId(v)
        case .uuid(let v): .uuid(v)
        case .link(let table, let key): .link(table, key)
        case .list: .list
        case .dictionary: .dictionary
        }
    }

    // MARK: Values of leaves

    @inline(__always)
    func string(_ leaf: StringLeaf, _ index: Int) throws -> MixedView {
        do {
            guard let bytes = try leaf.bytes(index) else { return .null }
            return .string(bytes)
        } catch { return try long(leaf.value(index).map(Mixed.string)) }
    }

    @inline(__always)
    func binary(_ leaf: BinaryLeaf, _ index: Int) throws -> MixedView {
        do {
            guard let bytes = try leaf.bytes(index) else { return .null }
            return .binary(bytes)
        } catch { return try long(leaf.value(index).map(Mixed.binary)) }
    }

    @inline(__always)
    func mixed(_ leaf: MixedLeaf, _ index: Int) throws -> MixedView {
        do {
            let view = try leaf.view(index)
            // A link to an object that is gone reads as null (file-format-2 4.9).
            if case .link(_, let key) = view, key.rawValue < 0 { return .null }
            return view
        } catch { return try long(leaf.value(index)) }
    }

    /// A value of several blobs, which has no place of its own in the file.
    @inline(never)
    private func long(_ value: @autoclosure () throws -> Mixed?) rethrows -> MixedView { view(try value() ?? .null) }

    /// Value `index` of a column that is no collection.
    @inline(__always)
    func value(_ reader: ColumnReader, _ index: Int, _ column: Column) throws -> MixedView {
        switch reader {
        case .int(let leaf): return .int(try leaf.value(index))
        case .optionalInt(let leaf): return try leaf.value(index).map { .int($0) } ?? .null
        case .bool(let leaf): return try leaf.value(index).map { .bool($0) } ?? .null
        case .float(let leaf): return try leaf.value(index).map { .float($0) } ?? .null
        case .double(let leaf): return try leaf.value(index).map { .double($0) } ?? .null
        case .string(let leaf): return try string(leaf, index)
        case .enumeratedString(let leaf): return try string(leaf.keys, leaf.keyIndex(index))
        case .binary(let leaf): return try binary(leaf, index)
        case .timestamp(let leaf): return try leaf.value(index).map { .timestamp($0) } ?? .null
        case .decimal(let leaf): return try leaf.value(index).map { .decimal($0) } ?? .null
        case .objectId(let leaf): return try leaf.value(index).map { .objectId($0) } ?? .null
        case .uuid(let leaf): return try leaf.value(index).map { .uuid($0) } ?? .null
        case .link(let leaf):
            let key = try leaf.value(index)
            return key.rawValue < 0 ? .null : .link(column.oppositeTable, key)
        case .mixed(let leaf): return try mixed(leaf, index)
        case .backlink, .collection: return .null
        }
    }

    // MARK: Elements of collections

    /// Calls `body` with elements of a list or set in order until it returns false, from position `start` on.
    func forEachElement(_ list: ListReader, from start: Int = 0, _ body: (MixedView, MixedLeafPlace?) throws -> Bool) throws {
        switch list.elementType {
        case .int:
            if list.isNullable {
                try each(list, NullableIntLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .int($0) } ?? .null }
            } else {
                try each(list, IntLeaf.self, start, body) { leaf, i in .int(try leaf.value(i)) }
            }
        case .bool: try each(list, BoolLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .bool($0) } ?? .null }
        case .float: try each(list, FloatLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .float($0) } ?? .null }
        case .double: try each(list, DoubleLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .double($0) } ?? .null }
        case .string: try each(list, StringLeaf.self, start, body) { leaf, i in try self.string(leaf, i) }
        case .binary: try each(list, BinaryLeaf.self, start, body) { leaf, i in try self.binary(leaf, i) }
        case .timestamp:
            try each(list, TimestampLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .timestamp($0) } ?? .null }
        case .decimal:
            try each(list, DecimalLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .decimal($0) } ?? .null }
        case .objectId:
            try each(list, ObjectIdLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .objectId($0) } ?? .null }
        case .uuid: try each(list, UUIDLeaf.self, start, body) { leaf, i in try leaf.value(i).map { .uuid($0) } ?? .null }
        case .link:
            try each(list, KeyLeaf.self, start, body) { leaf, i in
                let key = try leaf.value(i)
                return key.rawValue < 0 ? .null : .link(list.targetTable, key)
            }
        case .mixed:
            let tree = try list.tree(MixedLeaf.self)
            var position = start
            while position < tree.count {
                let (leaf, first) = try tree.leaf(containing: position)
                for i in (position - first)..<leaf.count {
                    if try !body(mixed(leaf, i), MixedLeafPlace(memory: list.memory, leaf: leaf, index: i)) { return }
                }
                position = first + leaf.count
            }
        case .backlink, .typedLink: break
        }
    }

    @inline(__always)
    private func each<L: Leaf>(
        _ list: ListReader, _ type: L.Type, _ start: Int, _ body: (MixedView, MixedLeafPlace?) throws -> Bool,
        _ convert: (L, Int) throws -> MixedView
    ) throws {
        let tree = try list.tree(type)
        var position = start
        while position < tree.count {
            let (leaf, first) = try tree.leaf(containing: position)
            for i in (position - first)..<leaf.count {
                if try !body(convert(leaf, i), nil) { return }
            }
            position = first + leaf.count
        }
    }
}

/// Where a Mixed value lies, to go on into a collection nested in it.
struct MixedLeafPlace {
    let memory: Memory
    let leaf: MixedLeaf
    let index: Int
    func list() throws -> ListReader { try ListReader(memory, mixed: leaf.nestedRef(index)) }
    func dictionary() throws -> DictionaryReader { try DictionaryReader(memory, mixed: leaf.nestedRef(index)) }
}
