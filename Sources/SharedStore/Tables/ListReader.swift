/// A list as stored: a B+ tree of its elements (file-format-2 5.2), or of Mixed where it is nested in a Mixed value (5.7).
///
/// Positions count what users see: in a list of links the unresolved ones, which stand for deleted objects, are left out.
/// Such entries exist only in files that took part in a sync; then, and only then, positions cost a walk over the list.
public struct ListReader {
    /// The version that the list is read from.
    public let memory: Memory
    /// Root of the tree; 0 for a list that was never written to.
    public let ref: Int
    /// The type of the elements; `mixed` for a list in a Mixed column.
    public let elementType: ColumnType
    /// Elements may be null.
    public let isNullable: Bool
    /// The table that links point to.
    public let targetTable: TableKey
    /// Number of elements.
    public let count: Int
    /// Number of stored elements, unresolved links included.
    public let storedCount: Int

    /// The list of a list or set column.
    init(_ memory: Memory, _ ref: Int, _ column: Column) throws {
        try self.init(memory, ref, column.type, isNullable: column.isNullable, targetTable: column.oppositeTable)
    }

    /// The list that is nested in a Mixed value.
    init(_ memory: Memory, mixed ref: Int) throws {
        try self.init(memory, ref, .mixed, isNullable: true, targetTable: .null)
    }

    private init(_ memory: Memory, _ ref: Int, _ type: ColumnType, isNullable: Bool, targetTable: TableKey) throws {
        self.memory = memory
        self.ref = ref
        elementType = type
        self.isNullable = isNullable
        self.targetTable = targetTable
        if ref == 0 {
            storedCount = 0
            count = 0
        } else if type == .link {
            let tree = try BPlusTree<KeyLeaf>(memory, ref)
            storedCount = tree.count
            var hidden = 0
            if tree.rootHasContext {
                try tree.forEachLeaf { leaf, _ in
                    for i in 0..<leaf.count where leaf.unchecked(i).rawValue < 0 { hidden += 1 }
                }
            }
            count = storedCount - hidden
        } else {
            storedCount = try ListReader.count(memory, ref, type, isNullable)
            count = storedCount
        }
    }

    private static func count(_ memory: Memory, _ ref: Int, _ type: ColumnType, _ nullable: Bool) throws -> Int {
        switch type {
        case .int: return nullable ? try BPlusTree<NullableIntLeaf>(memory, ref).count : try BPlusTree<IntLeaf>(memory, ref).count
        case .bool: return try BPlusTree<BoolLeaf>(memory, ref).count
        case .float: return try BPlusTree<FloatLeaf>(memory, ref).count
        case .double: return try BPlusTree<DoubleLeaf>(memory, ref).count
        case .string: return try BPlusTree<StringLeaf>(memory, ref).count
        case .binary: return try BPlusTree<BinaryLeaf>(memory, ref).count
        case .timestamp: return try BPlusTree<TimestampLeaf>(memory, ref).count
        case .decimal: return try BPlusTree<DecimalLeaf>(memory, ref).count
        case .objectId: return try BPlusTree<ObjectIdLeaf>(memory, ref).count
        case .uuid: return try BPlusTree<UUIDLeaf>(memory, ref).count
        case .mixed: return try BPlusTree<MixedLeaf>(memory, ref).count
        case .link: return try BPlusTree<KeyLeaf>(memory, ref).count
        case .backlink, .typedLink: return 0
        }
    }

    /// The elements as a tree of leaves of the class that belongs to `elementType` (for int: `NullableIntLeaf` if `isNullable`,
    /// for links: `KeyLeaf`, stored entries).
    @inline(__always)
    public func tree<L: Leaf>(_ type: L.Type) throws -> BPlusTree<L> { try BPlusTree<L>(memory, ref) }

    /// Element `index`, which must be in `0..<count`.
    public func value(_ index: Int) throws -> Mixed {
        precondition(index >= 0 && index < count, "index \(index) is outside a list of \(count)")
        switch elementType {
        case .int:
            if !isNullable { return .int(try tree(IntLeaf.self).value(at: index)) }
            return try tree(NullableIntLeaf.self).value(at: index).map(Mixed.int) ?? .null
        case .bool: return try tree(BoolLeaf.self).value(at: index).map(Mixed.bool) ?? .null
        case .float: return try tree(FloatLeaf.self).value(at: index).map(Mixed.float) ?? .null
        case .double: return try tree(DoubleLeaf.self).value(at: index).map(Mixed.double) ?? .null
        case .string: return try tree(StringLeaf.self).value(at: index).map(Mixed.string) ?? .null
        case .binary: return try tree(BinaryLeaf.self).value(at: index).map(Mixed.binary) ?? .null
        case .timestamp: return try tree(TimestampLeaf.self).value(at: index).map(Mixed.timestamp) ?? .null
        case .decimal: return try tree(DecimalLeaf.self).value(at: index).map(Mixed.decimal) ?? .null
        case .objectId: return try tree(ObjectIdLeaf.self).value(at: index).map(Mixed.objectId) ?? .null
        case .uuid: return try tree(UUIDLeaf.self).value(at: index).map(Mixed.uuid) ?? .null
        case .mixed: return try tree(MixedLeaf.self).value(at: index).resolved
        case .link: return .link(targetTable, try link(index))
        case .backlink, .typedLink: return .null
        }
    }

    /// The object that element `index` of a list of links points to.
    public func link(_ index: Int) throws -> ObjectKey {
        precondition(elementType == .link && index >= 0 && index < count, "index \(index) is outside a list of \(count) links")
        return try tree(KeyLeaf.self).value(at: storedPosition(index))
    }

    /// The position in the tree of the element that users see at `index`.
    public func storedPosition(_ index: Int) throws -> Int {
        if count == storedCount { return index }
        var visible = 0, found = -1
        try tree(KeyLeaf.self).forEachLeaf { leaf, start in
            if found >= 0 { return }
            for i in 0..<leaf.count where leaf.unchecked(i).rawValue >= 0 {
                if visible == index {
                    found = start + i
                    return
                }
                visible += 1
            }
        }
        if found < 0 { throw FormatError(ref: ref, "list of links changed while it was read") }
        return found
    }

    /// Calls `body` with every element in order.
    public func forEach(_ body: (Mixed) throws -> Void) throws {
        switch elementType {
        case .int where isNullable: try each(NullableIntLeaf.self, body) { $0.map(Mixed.int) ?? .null }
        case .int: try each(IntLeaf.self, body) { .int($0) }
        case .bool: try each(BoolLeaf.self, body) { $0.map(Mixed.bool) ?? .null }
        case .float: try each(FloatLeaf.self, body) { $0.map(Mixed.float) ?? .null }
        case .double: try each(DoubleLeaf.self, body) { $0.map(Mixed.double) ?? .null }
        case .string: try each(StringLeaf.self, body) { $0.map(Mixed.string) ?? .null }
        case .binary: try each(BinaryLeaf.self, body) { $0.map(Mixed.binary) ?? .null }
        case .timestamp: try each(TimestampLeaf.self, body) { $0.map(Mixed.timestamp) ?? .null }
        case .decimal: try each(DecimalLeaf.self, body) { $0.map(Mixed.decimal) ?? .null }
        case .objectId: try each(ObjectIdLeaf.self, body) { $0.map(Mixed.objectId) ?? .null }
        case .uuid: try each(UUIDLeaf.self, body) { $0.map(Mixed.uuid) ?? .null }
        case .mixed: try each(MixedLeaf.self, body) { $0.resolved }
        case .link: try forEachLink { try body(.link(targetTable, $0)) }
        case .backlink, .typedLink: break
        }
    }

    @inline(__always)
    private func each<L: Leaf>(_ type: L.Type, _ body: (Mixed) throws -> Void, _ convert: (L.Element) -> Mixed) throws {
        try tree(type).forEachLeaf { leaf, _ in
            for i in 0..<leaf.count { try body(convert(leaf.value(i))) }
        }
    }

    /// Calls `body` with the target of every element of a list of links, unresolved ones left out.
    public func forEachLink(_ body: (ObjectKey) throws -> Void) throws {
        precondition(elementType == .link, "the list holds no links")
        try tree(KeyLeaf.self).forEachLeaf { leaf, _ in
            for i in 0..<leaf.count where leaf.unchecked(i).rawValue >= 0 { try body(leaf.unchecked(i)) }
        }
    }

    // MARK: Collections in Mixed

    /// The list that element `index` of a list of Mixed is.
    public func list(_ index: Int) throws -> ListReader { try ListReader(memory, mixed: nestedRef(index)) }

    /// The dictionary that element `index` of a list of Mixed is.
    public func dictionary(_ index: Int) throws -> DictionaryReader { try DictionaryReader(memory, mixed: nestedRef(index)) }

    private func nestedRef(_ index: Int) throws -> Int {
        precondition(elementType == .mixed && index >= 0 && index < count, "index \(index) is outside a list of \(count) values")
        let (leaf, start) = try tree(MixedLeaf.self).leaf(containing: index)
        return try leaf.nestedRef(index - start)
    }
}
