/// Values of scalar columns. Every call finds the column's leaf and reads one value; whoever reads many rows goes by
/// `ClusterLeaf.leaf`.
///
/// Asking a column for a type that it does not have is an error of the caller and traps; a damaged file throws `FormatError`.
extension ObjectRow {
    /// The column's leaf, of which the value at `index` is the object's.
    @inline(__always)
    public func leaf<L: Leaf>(_ type: L.Type, _ column: Column) throws -> L {
        try L(memory, cluster.requiredRef(column.leafIndex &+ 1))
    }

    @inline(__always)
    private func expect(_ column: Column, _ type: ColumnType) {
        precondition(
            column.type == type && column.collection == nil,
            "the column holds values of another type; ask for what Column.type and Column.collection name")
    }

    /// An int column that is not nullable.
    @inline(__always)
    public func int(_ column: Column) throws -> Int64 {
        expect(column, .int)
        precondition(!column.isNullable, "the column is nullable; use optionalInt")
        return try leaf(IntLeaf.self, column).value(index)
    }

    /// An int column, nullable or not.
    @inline(__always)
    public func optionalInt(_ column: Column) throws -> Int64? {
        expect(column, .int)
        if column.isNullable { return try leaf(NullableIntLeaf.self, column).value(index) }
        return try leaf(IntLeaf.self, column).value(index)
    }

    /// The value of a bool column, nullable or not; nil for null.
    @inline(__always)
    public func bool(_ column: Column) throws -> Bool? {
        expect(column, .bool)
        return try leaf(BoolLeaf.self, column).value(index)
    }

    /// The value of a float column, nullable or not; nil for null.
    @inline(__always)
    public func float(_ column: Column) throws -> Float? {
        expect(column, .float)
        return try leaf(FloatLeaf.self, column).value(index)
    }

    /// The value of a double column, nullable or not; nil for null.
    @inline(__always)
    public func double(_ column: Column) throws -> Double? {
        expect(column, .double)
        return try leaf(DoubleLeaf.self, column).value(index)
    }

    /// A string column, enumerated or not.
    public func string(_ column: Column) throws -> String? {
        expect(column, .string)
        if column.enumerationRef != 0 { return try enumeration(column).value(index) }
        return try leaf(StringLeaf.self, column).value(index)
    }

    /// The UTF-8 bytes of a string column, valid as long as the version; nil for null.
    @inline(__always)
    public func stringBytes(_ column: Column) throws -> UnsafeRawBufferPointer? {
        expect(column, .string)
        if column.enumerationRef != 0 { return try enumeration(column).bytes(index) }
        return try leaf(StringLeaf.self, column).bytes(index)
    }

    @inline(__always)
    private func enumeration(_ column: Column) throws -> EnumStringLeaf {
        try EnumStringLeaf(
            memory, cluster.requiredRef(column.leafIndex &+ 1), keys: StringLeaf(memory, memory.enumerationRef(column)))
    }

    /// The bytes of a binary column, copied; nil for null.
    public func binary(_ column: Column) throws -> [UInt8]? {
        expect(column, .binary)
        return try leaf(BinaryLeaf.self, column).value(index)
    }

    /// The value of a timestamp column, nullable or not; nil for null.
    @inline(__always)
    public func timestamp(_ column: Column) throws -> Timestamp? {
        expect(column, .timestamp)
        return try leaf(TimestampLeaf.self, column).value(index)
    }

    /// The value of a decimal column, nullable or not; nil for null.
    @inline(__always)
    public func decimal(_ column: Column) throws -> Decimal128Bits? {
        expect(column, .decimal)
        return try leaf(DecimalLeaf.self, column).value(index)
    }

    /// The value of a ObjectId column, nullable or not; nil for null.
    @inline(__always)
    public func objectId(_ column: Column) throws -> ObjectIdValue? {
        expect(column, .objectId)
        return try leaf(ObjectIdLeaf.self, column).value(index)
    }

    /// The value of a UUID column, nullable or not; nil for null.
    @inline(__always)
    public func uuid(_ column: Column) throws -> UUIDValue? {
        expect(column, .uuid)
        return try leaf(UUIDLeaf.self, column).value(index)
    }

    /// The object in `column.oppositeTable` that a link column points to; nil for null and for an object that is gone.
    @inline(__always)
    public func link(_ column: Column) throws -> ObjectKey? {
        let key = try storedLink(column)
        return key.rawValue < 0 ? nil : key
    }

    /// The key that a link column holds: null, live, or that of a tombstone.
    @inline(__always)
    public func storedLink(_ column: Column) throws -> ObjectKey {
        expect(column, .link)
        return try leaf(LinkLeaf.self, column).value(index)
    }

    /// The value of a Mixed column; a link to an object that is gone reads as null. A nested collection is read with `list`
    /// or `dictionary`.
    public func mixed(_ column: Column) throws -> Mixed {
        expect(column, .mixed)
        return try leaf(MixedLeaf.self, column).value(index).resolved
    }

    /// The value of any scalar column. A link is `.link` with the table it goes to, or `.null` where the object is gone.
    public func value(_ column: Column) throws -> Mixed {
        precondition(
            column.collection == nil && !column.isBacklink,
            "a collection is read with list, set or dictionary, a backlink column with backlinks")
        switch column.type {
        case .int: return try optionalInt(column).map(Mixed.int) ?? .null
        case .bool: return try bool(column).map(Mixed.bool) ?? .null
        case .float: return try float(column).map(Mixed.float) ?? .null
        case .double: return try double(column).map(Mixed.double) ?? .null
        case .string: return try string(column).map(Mixed.string) ?? .null
        case .binary: return try binary(column).map(Mixed.binary) ?? .null
        case .timestamp: return try timestamp(column).map(Mixed.timestamp) ?? .null
        case .decimal: return try decimal(column).map(Mixed.decimal) ?? .null
        case .objectId: return try objectId(column).map(Mixed.objectId) ?? .null
        case .uuid: return try uuid(column).map(Mixed.uuid) ?? .null
        case .link: return try link(column).map { .link(column.oppositeTable, $0) } ?? .null
        case .mixed: return try mixed(column)
        case .backlink, .typedLink: return .null
        }
    }

    // MARK: Collections

    /// The root of the column's collection, 0 where it is empty and was never made.
    @inline(__always)
    private func collectionRef(_ column: Column) throws -> Int { try leaf(RefLeaf.self, column).value(index) }

    /// A list column, or the list in a Mixed column.
    public func list(_ column: Column) throws -> ListReader {
        if column.collection == .list { return try ListReader(memory, collectionRef(column), column) }
        precondition(column.collection == nil && column.type == .mixed, "the column holds no list")
        return try ListReader(memory, mixed: leaf(MixedLeaf.self, column).nestedRef(index))
    }

    /// A set column.
    public func set(_ column: Column) throws -> SetReader {
        precondition(column.collection == .set, "the column holds no set")
        return try SetReader(memory, collectionRef(column), column)
    }

    /// A dictionary column, or the dictionary in a Mixed column.
    public func dictionary(_ column: Column) throws -> DictionaryReader {
        if column.collection == .dictionary { return try DictionaryReader(memory, collectionRef(column), column) }
        precondition(column.collection == nil && column.type == .mixed, "the column holds no dictionary")
        return try DictionaryReader(memory, mixed: leaf(MixedLeaf.self, column).nestedRef(index))
    }

    // MARK: Backlinks

    /// Number of links to this object from the origin of a backlink column, with multiplicity.
    public func backlinkCount(_ column: Column) throws -> Int {
        precondition(column.isBacklink, "the column is no backlink column")
        return try leaf(BacklinkLeaf.self, column).keyCount(index)
    }

    /// Calls `body` with the key of every object that links here from the origin of a backlink column, once for each link.
    public func forEachBacklink(_ column: Column, _ body: (ObjectKey) throws -> Void) throws {
        precondition(column.isBacklink, "the column is no backlink column")
        try leaf(BacklinkLeaf.self, column).forEachKey(index, body)
    }

    /// Keys of the objects that link here from the origin of a backlink column, once for each link, in no order.
    public func backlinks(_ column: Column) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try forEachBacklink(column) { keys.append($0) }
        return keys
    }
}

extension Mixed {
    /// The value as users see it: a link to an object that is gone is null (file-format-2 4.9).
    @inline(__always)
    var resolved: Mixed {
        if case .link(_, let key) = self, key.rawValue < 0 { return .null }
        return self
    }
}

extension ClusterLeaf {
    /// The leaf with the column's values for the rows of this leaf.
    ///
    /// - Throws: `FormatError` where it has another number of values than the cluster has rows.
    @inline(__always)
    public func leaf<L: Leaf>(_ type: L.Type, _ column: Column) throws -> L {
        let leaf = try L(memory, columnRef(column.key))
        if leaf.count != count { throw countError(column, leaf.count) }
        return leaf
    }

    @inline(never)
    private func countError(_ column: Column, _ found: Int) -> FormatError {
        FormatError(ref: node.ref, "column with leaf index \(column.leafIndex) has \(found) values for \(count) objects")
    }

    /// The leaf of an enumerated string column (one with `column.isEnumerated`).
    @inline(__always)
    public func enumeratedStrings(_ column: Column) throws -> EnumStringLeaf {
        let leaf = try EnumStringLeaf(memory, columnRef(column.key), keys: StringLeaf(memory, memory.enumerationRef(column)))
        if leaf.count != count { throw countError(column, leaf.count) }
        return leaf
    }
}

extension Column {
    /// A string column whose leaves hold positions in a list of values.
    public var isEnumerated: Bool { enumerationRef != 0 }
}

extension Table {
    /// The backlink column of this table that holds the links from `column`, or nil.
    public func backlinkColumn(from column: Column) -> Column? {
        backlinkColumns.first { $0.oppositeTable == column.table && $0.oppositeColumn == column.key }
    }
}
