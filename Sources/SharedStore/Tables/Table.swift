/// Positions in a table's top array (file-format-2 section 2).
public enum TableSlot {
    /// Slots of the table's top array (file-format-2 section 2).
    public static let spec = 0, tree = 2, key = 3, indexes = 4, columnKeySequence = 5, contentVersion = 6
    /// What belongs to links, keys and the primary key.
    public static let oppositeTables = 7, oppositeColumns = 8, objectSequence = 9, collisions = 10, primaryKey = 11
    /// What today's tables have and older ones may lack.
    public static let flags = 12, tombstones = 13
    /// Slots of a table made today; tables of older files may lack the last two.
    public static let count = 14
}

/// How the objects of a table live (file-format-2 section 2, slot 12).
public enum TableKind: Int, Sendable { case topLevel = 0, embedded = 1, asymmetric = 2 }

/// A table of one version: its columns, and the way to its objects.
///
/// The metadata is read when the table is first asked for and kept; rows and leaves are structs made from it without
/// retaining it. A reading table may be used by several threads. In a write transaction the writer tells it of new refs by
/// `reload` or `setTree`; then it belongs to the writer's thread.
public final class Table: @unchecked Sendable {
    // Sendable: the stored properties change only in `reload` and `setTree`, which a write transaction calls on its own thread.
    /// The version that the table is read from.
    public let memory: Memory
    /// By which links and changesets name the table.
    public let key: TableKey
    /// The name in the file, for classes of the object layer with the prefix `class_`.
    public let name: String
    /// Format of the file.
    public let format: UInt8
    /// Of the table's top array.
    @exclusivity(unchecked) public private(set) var topRef: Int
    /// Whether its objects live by themselves.
    @exclusivity(unchecked) public private(set) var kind: TableKind
    /// All columns in spec order: public ones, then backlinks.
    public var columns: [Column] { schema.columns }
    /// Number of public columns, which come first.
    public var publicColumnCount: Int { schema.publicCount }
    /// Nil for a table without primary key.
    @exclusivity(unchecked) private(set) var schema: TableSchema
    @exclusivity(unchecked) public private(set) var primaryKeyColumn: Column?
    /// The live objects.
    @exclusivity(unchecked) public private(set) var tree: ClusterTree
    /// Changes whenever a commit changes the table; the number itself means nothing.
    @exclusivity(unchecked) public private(set) var contentVersion: Int
    /// Ref of the array of index roots, 0 for none.
    @exclusivity(unchecked) var indexesRef: Int
    /// Ref of the tree of unresolved objects, 0 for none.
    @exclusivity(unchecked) var tombstonesRef: Int
    @exclusivity(unchecked) var collisionsRef: Int

    private let owner: AnyObject?

    init(
        memory: Memory, topRef: Int, key: TableKey, name: String, format: UInt8, owner: AnyObject? = nil,
        earlier: [TableSchema] = []
    ) throws {
        self.memory = memory
        self.owner = owner
        self.key = key
        self.name = name
        self.format = format
        let parts = try Table.read(memory, topRef, key, format, earlier)
        self.topRef = topRef
        kind = parts.kind
        schema = parts.schema
        primaryKeyColumn = parts.primaryKeyColumn
        tree = parts.tree
        contentVersion = parts.contentVersion
        indexesRef = parts.indexesRef
        tombstonesRef = parts.tombstonesRef
        collisionsRef = parts.collisionsRef
    }

    /// Reads everything anew, after a write transaction changed the table's top array.
    func reload(topRef: Int) throws {
        let parts = try Table.read(memory, topRef, key, format, [])
        self.topRef = topRef
        kind = parts.kind
        schema = parts.schema
        primaryKeyColumn = parts.primaryKeyColumn
        tree = parts.tree
        contentVersion = parts.contentVersion
        indexesRef = parts.indexesRef
        tombstonesRef = parts.tombstonesRef
        collisionsRef = parts.collisionsRef
    }

    /// Lets the table see another tree of objects, after a write transaction made one.
    func setTree(_ ref: Int) throws { tree = try ClusterTree(memory, ref) }

    /// Lets the table see another array of index roots, after a write transaction made one.
    func setIndexes(_ ref: Int) { indexesRef = ref }

    // MARK: Reading the top array

    private struct Parts {
        var schema: TableSchema
        var kind: TableKind
        var primaryKeyColumn: Column?
        var tree: ClusterTree
        var contentVersion: Int
        var indexesRef: Int
        var tombstonesRef: Int
        var collisionsRef: Int
    }

    private static func read(_ memory: Memory, _ topRef: Int, _ key: TableKey, _ format: UInt8, _ earlier: [TableSchema]) throws
        -> Parts
    {
        let top = try memory.refs(topRef, "table top")
        if top.count < TableSlot.contentVersion { throw FormatError(ref: topRef, "table top with \(top.count) elements") }
        let stored = try top.tagged(TableSlot.key)
        if stored != Int(key.rawValue) { throw FormatError(ref: topRef, "table says its key is \(stored), its slot says \(key)") }
        let schema = try TableSchema.read(memory, top, key, format, earlier: earlier)
        let type = try top.tagged(TableSlot.flags) & 3
        guard let kind = TableKind(rawValue: type) else { throw FormatError(ref: topRef, "table type \(type)") }
        // Here raw 0 means none and raw 1, tagged 0, the column with key 0 (file-format-2 section 2).
        var primaryKeyColumn: Column?
        if top.count > TableSlot.primaryKey, top.unchecked(TableSlot.primaryKey) != 0 {
            let columnKey = ColumnKey(Int64(try top.tagged(TableSlot.primaryKey)))
            guard let position = schema.positionsByKey[columnKey], position < schema.publicCount else {
                throw FormatError(ref: topRef, "primary key column \(columnKey) does not exist")
            }
            primaryKeyColumn = schema.columns[position]
        }
        return Parts(
            schema: schema, kind: kind, primaryKeyColumn: primaryKeyColumn,
            tree: try ClusterTree(memory, top.requiredRef(TableSlot.tree)),
            contentVersion: try top.tagged(TableSlot.contentVersion),
            indexesRef: try top.optionalRef(TableSlot.indexes), tombstonesRef: try top.optionalRef(TableSlot.tombstones),
            collisionsRef: try top.optionalRef(TableSlot.collisions))
    }

    // MARK: Columns

    /// The class name of the object layer, nil where the table is no class.
    public var className: String? { Table.className(name) }

    static let classPrefix = "class_"

    static func className(_ name: String) -> String? {
        name.hasPrefix(classPrefix) ? String(name.dropFirst(classPrefix.utf8.count)) : nil
    }

    /// The public columns in spec order, which is the order that users see.
    public var publicColumns: ArraySlice<Column> { columns[..<publicColumnCount] }
    /// The columns that hold who links here.
    public var backlinkColumns: ArraySlice<Column> { columns[publicColumnCount...] }

    /// The column of this name, nil where there is none.
    public func column(named name: String) -> Column? { schema.positions[ExactString(name)].map { columns[$0] } }
    /// The column with this key, nil where it was removed.
    public func column(_ key: ColumnKey) -> Column? { schema.positionsByKey[key].map { columns[$0] } }

    /// The name of a public column; backlink columns have none.
    public func name(of column: Column) -> String {
        column.specIndex < schema.names.count ? schema.names[column.specIndex] : ""
    }

    /// Root of the column's search or full-text index, 0 for none.
    public func indexRef(of column: Column) throws -> Int {
        if indexesRef == 0 { return 0 }
        return try memory.refs(indexesRef, "index roots").optionalRef(column.leafIndex)
    }

    // MARK: Objects

    /// Objects of asymmetric tables are dropped by the upgrade from format 22, and not shown here (file-format-2 section 10).
    var hidesObjects: Bool { kind == .asymmetric && format < 23 && !showsAllObjects }
    /// For the upgrade, which deletes them.
    @exclusivity(unchecked) var showsAllObjects = false

    /// Number of live objects.
    public var objectCount: Int { hidesObjects ? 0 : tree.count }

    /// The live object with `key`, or nil. Unresolved keys are not found here, see `tombstone`.
    @inline(__always)
    public func find(_ key: ObjectKey) throws -> ObjectRow? {
        if key.rawValue < 0 || hidesObjects { return nil }
        return try tree.find(key)
    }

    /// The object at position `index` in key order, or nil.
    public func object(at index: Int) throws -> ObjectRow? { hidesObjects ? nil : try tree.object(at: index) }

    /// The leaf with the object at position `index`, and the position of the leaf's first object; nil where there are not so
    /// many.
    public func leaf(at index: Int) throws -> (leaf: ClusterLeaf, start: Int)? { hidesObjects ? nil : try tree.leaf(at: index) }

    /// The first live object whose key is not below `key`: its leaf and its row there.
    public func seek(_ key: ObjectKey) throws -> (leaf: ClusterLeaf, row: Int)? { hidesObjects ? nil : try tree.seek(key) }

    /// Where objects with these keys, which ascend, stand or would stand among all, and whether they are there.
    func positions(of keys: [ObjectKey]) throws -> [(position: Int, isPresent: Bool)] {
        hidesObjects ? keys.map { _ in (0, false) } : try tree.positions(of: keys)
    }

    /// Calls `body` with each leaf of live objects in key order.
    @inline(__always)
    public func forEachLeaf(_ body: (ClusterLeaf) throws -> Void) throws {
        if !hidesObjects { try tree.forEachLeaf(body) }
    }

    /// Calls `body` with each leaf in key order until it returns false.
    @inline(__always)
    public func scanLeaves(_ body: (ClusterLeaf) throws -> Bool) throws {
        if !hidesObjects { try tree.scanLeaves(body) }
    }

    /// Calls `body` with each live object in key order.
    public func forEachObject(_ body: (ObjectRow) throws -> Void) throws {
        try forEachLeaf { leaf in
            for i in 0..<leaf.count { try body(leaf.row(i)) }
        }
    }

    /// The tree of unresolved objects, or nil where there are none (file-format-2 4.9).
    public func tombstones() throws -> ClusterTree? { tombstonesRef == 0 ? nil : try ClusterTree(memory, tombstonesRef) }

    /// The unresolved object with `key` (-2 or below), or nil.
    public func tombstone(_ key: ObjectKey) throws -> ObjectRow? {
        key.isUnresolved ? try tombstones()?.find(key) : nil
    }
}
