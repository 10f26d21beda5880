/// Changes to the B+ tree of a list or set, whatever its element type (file-format-2 5.2): one switch in front of the
/// tree editors. Elements that are links are stored as plain keys.
enum TypedTreeEditor {
    static func create(_ arena: Arena, _ type: ColumnType, isNullable: Bool) throws -> Int {
        switch type {
        case .int:
            isNullable
                ? try BPlusTreeEditor<NullableIntLeafEditor>.create(arena) : try BPlusTreeEditor<IntLeafEditor>.create(arena)
        case .bool: try BPlusTreeEditor<BoolLeafEditor>.create(arena)
        case .float: try BPlusTreeEditor<FloatLeafEditor>.create(arena)
        case .double: try BPlusTreeEditor<DoubleLeafEditor>.create(arena)
        case .string: try BPlusTreeEditor<StringLeafEditor>.create(arena)
        case .binary: try BPlusTreeEditor<BinaryLeafEditor>.create(arena)
        case .timestamp: try BPlusTreeEditor<TimestampLeafEditor>.create(arena)
        case .decimal: try BPlusTreeEditor<DecimalLeafEditor>.create(arena)
        case .objectId: try BPlusTreeEditor<ObjectIdLeafEditor>.create(arena)
        case .uuid: try BPlusTreeEditor<UUIDLeafEditor>.create(arena)
        case .mixed: try BPlusTreeEditor<MixedLeafEditor>.create(arena)
        case .link: try BPlusTreeEditor<KeyLeafEditor>.create(arena)
        case .backlink, .typedLink: preconditionFailure("no collection has elements of this type")
        }
    }

    /// `value` has passed `Column.check`.
    static func insert(_ arena: Arena, _ root: Int, _ type: ColumnType, isNullable: Bool, _ index: Int, _ value: Mixed) throws
        -> Int
    {
        try edit(arena, root, type, isNullable, index, value, inserting: true)
    }

    static func set(_ arena: Arena, _ root: Int, _ type: ColumnType, isNullable: Bool, _ index: Int, _ value: Mixed) throws -> Int
    {
        try edit(arena, root, type, isNullable, index, value, inserting: false)
    }

    private static func edit(
        _ arena: Arena, _ root: Int, _ type: ColumnType, _ isNullable: Bool, _ index: Int, _ value: Mixed, inserting: Bool
    ) throws -> Int {
        func apply<L: LeafEditor>(_ editor: L.Type, _ element: L.Element) throws -> Int {
            try inserting
                ? BPlusTreeEditor<L>.insert(arena, root, index, element) : BPlusTreeEditor<L>.set(arena, root, index, element)
        }
        switch type {
        case .int:
            return isNullable
                ? try apply(NullableIntLeafEditor.self, value.intValue) : try apply(IntLeafEditor.self, value.intValue ?? 0)
        case .bool: return try apply(BoolLeafEditor.self, value.boolValue)
        case .float: return try apply(FloatLeafEditor.self, value.floatValue)
        case .double: return try apply(DoubleLeafEditor.self, value.doubleValue)
        case .string: return try value.withBytes { try apply(StringLeafEditor.self, $0) }
        case .binary: return try value.withBytes { try apply(BinaryLeafEditor.self, $0) }
        case .timestamp: return try apply(TimestampLeafEditor.self, value.timestampValue)
        case .decimal: return try apply(DecimalLeafEditor.self, value.decimalValue)
        case .objectId: return try apply(ObjectIdLeafEditor.self, value.objectIdValue)
        case .uuid: return try apply(UUIDLeafEditor.self, value.uuidValue)
        case .mixed: return try apply(MixedLeafEditor.self, value)
        case .link: return try apply(KeyLeafEditor.self, value.linkKey)
        case .backlink, .typedLink: preconditionFailure("no collection has elements of this type")
        }
    }

    static func erase(_ arena: Arena, _ root: Int, _ type: ColumnType, isNullable: Bool, _ index: Int) throws -> Int {
        switch type {
        case .int:
            isNullable
                ? try BPlusTreeEditor<NullableIntLeafEditor>.erase(arena, root, index)
                : try BPlusTreeEditor<IntLeafEditor>.erase(arena, root, index)
        case .bool: try BPlusTreeEditor<BoolLeafEditor>.erase(arena, root, index)
        case .float: try BPlusTreeEditor<FloatLeafEditor>.erase(arena, root, index)
        case .double: try BPlusTreeEditor<DoubleLeafEditor>.erase(arena, root, index)
        case .string: try BPlusTreeEditor<StringLeafEditor>.erase(arena, root, index)
        case .binary: try BPlusTreeEditor<BinaryLeafEditor>.erase(arena, root, index)
        case .timestamp: try BPlusTreeEditor<TimestampLeafEditor>.erase(arena, root, index)
        case .decimal: try BPlusTreeEditor<DecimalLeafEditor>.erase(arena, root, index)
        case .objectId: try BPlusTreeEditor<ObjectIdLeafEditor>.erase(arena, root, index)
        case .uuid: try BPlusTreeEditor<UUIDLeafEditor>.erase(arena, root, index)
        case .mixed: try BPlusTreeEditor<MixedLeafEditor>.erase(arena, root, index)
        case .link: try BPlusTreeEditor<KeyLeafEditor>.erase(arena, root, index)
        case .backlink, .typedLink: preconditionFailure("no collection has elements of this type")
        }
    }

    /// An empty tree in place of `root`, whose nodes are all released.
    static func clear(_ arena: Arena, _ root: Int, _ type: ColumnType, isNullable: Bool) throws -> Int {
        try arena.releaseTree(root)
        return try create(arena, type, isNullable: isNullable)
    }
}

/// The payload of one case, nil for null. Callers have checked the case.
extension Mixed {
    var intValue: Int64? { if case .int(let v) = self { v } else { nil } }
    var boolValue: Bool? { if case .bool(let v) = self { v } else { nil } }
    var floatValue: Float? { if case .float(let v) = self { v } else { nil } }
    var doubleValue: Double? { if case .double(let v) = self { v } else { nil } }
    var timestampValue: Timestamp? { if case .timestamp(let v) = self { v } else { nil } }
    var decimalValue: Decimal128Bits? { if case .decimal(let v) = self { v } else { nil } }
    var objectIdValue: ObjectIdValue? { if case .objectId(let v) = self { v } else { nil } }
    var uuidValue: UUIDValue? { if case .uuid(let v) = self { v } else { nil } }
    var linkKey: ObjectKey { if case .link(_, let key) = self { key } else { .null } }

    /// The bytes of a string or binary, nil for null.
    func withBytes<R>(_ body: (UnsafeRawBufferPointer?) throws -> R) rethrows -> R {
        switch self {
        case .string(var s): try s.withUTF8 { try body(Self.present(UnsafeRawBufferPointer($0))) }
        case .binary(let b): try b.withUnsafeBytes { try body(Self.present($0)) }
        default: try body(nil)
        }
    }

    /// An empty buffer with an address, so that it differs from nil whatever the callee looks at.
    private static func present(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        bytes.baseAddress == nil ? UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) : bytes
    }

    /// The name of the case, for messages.
    var kindName: String {
        switch self {
        case .null: "null"
        case .int: "an int"
        case .bool: "a bool"
        case .float: "a float"
        case .double: "a double"
        case .string: "a string"
        case .binary: "binary data"
        case .timestamp: "a date"
        case .decimal: "a decimal"
        case .objectId: "an ObjectId"
        case .uuid: "a UUID"
        case .link: "a link"
        case .list: "a list"
        case .dictionary: "a dictionary"
        }
    }
}

/// Changes to one value in a cluster's column leaf.
enum CellEditor {
    /// Stores a checked value of a scalar column in row `row` of the column's leaf and returns the leaf's new ref.
    /// An enumerated string column and Mixed collections are not for here.
    @inline(__always)
    static func set(_ arena: Arena, _ leaf: Int, _ row: Int, _ column: Column, _ value: Mixed) throws -> Int {
        switch column.type {
        case .int:
            column.isNullable
                ? try NullableIntLeafEditor.set(arena, leaf, row, value.intValue)
                : try IntLeafEditor.set(arena, leaf, row, value.intValue ?? 0)
        case .bool: try BoolLeafEditor.set(arena, leaf, row, value.boolValue)
        case .float: try FloatLeafEditor.set(arena, leaf, row, value.floatValue)
        case .double: try DoubleLeafEditor.set(arena, leaf, row, value.doubleValue)
        case .string: try value.withBytes { try StringLeafEditor.set(arena, leaf, row, $0) }
        case .binary: try value.withBytes { try BinaryLeafEditor.set(arena, leaf, row, $0) }
        case .timestamp: try TimestampLeafEditor.set(arena, leaf, row, value.timestampValue)
        case .decimal: try DecimalLeafEditor.set(arena, leaf, row, value.decimalValue)
        case .objectId: try ObjectIdLeafEditor.set(arena, leaf, row, value.objectIdValue)
        case .uuid: try UUIDLeafEditor.set(arena, leaf, row, value.uuidValue)
        case .link: try LinkLeafEditor.set(arena, leaf, row, value.linkKey)
        case .mixed: try MixedLeafEditor.set(arena, leaf, row, value)
        case .backlink, .typedLink: preconditionFailure("backlinks are kept by the links themselves")
        }
    }
}

extension Column {
    /// Throws unless `value` may stand in the column, or in the collection that it holds. Limits are those of the format
    /// (file-format-1 6.1).
    func check(_ value: Mixed, in table: Table) throws {
        let fits: Bool
        switch (type, value) {
        case (_, .null):
            guard isNullable || type == .mixed || (type == .link && collection == nil) else {
                throw TableError.nullNotAllowed(table: table.name, column: table.name(of: self))
            }
            fits = true
        case (.int, .int), (.bool, .bool), (.float, .float), (.double, .double), (.timestamp, .timestamp), (.decimal, .decimal),
            (.objectId, .objectId), (.uuid, .uuid):
            fits = true
        case (.mixed, .list), (.mixed, .dictionary): fits = collection != .set
        case (.string, .string(let s)), (.mixed, .string(let s)):
            if s.utf8.count > 0xFFFFEF { throw LimitError.valueTooLarge(byteCount: s.utf8.count, limit: 0xFFFFEF) }
            fits = true
        case (.binary, .binary(let b)), (.mixed, .binary(let b)):
            let limit = type == .mixed ? 0xFFFFEF : 0xFFFFF0
            if b.count > limit { throw LimitError.valueTooLarge(byteCount: b.count, limit: limit) }
            fits = true
        case (.link, .link(let target, _)): fits = target == oppositeTable
        case (.mixed, _): fits = true
        default: fits = false
        }
        if case .timestamp(let t) = value {
            guard abs(Int(t.nanoseconds)) <= 999_999_999,
                t.seconds == 0 || t.nanoseconds == 0 || (t.seconds < 0) == (t.nanoseconds < 0)
            else {
                throw TableError.wrongType(
                    table: table.name, column: table.name(of: self), expected: "dates whose parts have one sign",
                    found: "(\(t.seconds), \(t.nanoseconds))")
            }
        }
        if !fits {
            throw TableError.wrongType(
                table: table.name, column: table.name(of: self), expected: "\(type)", found: value.kindName)
        }
    }
}
