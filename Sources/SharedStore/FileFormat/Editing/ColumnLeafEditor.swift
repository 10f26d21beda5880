/// Which leaf a column has in the clusters of its table (file-format-2 5.1).
enum ColumnLeafKind: UInt8 {
    case int, nullableInt, bool, float, double, timestamp, decimal, objectId, uuid, string, enumString, binary, link, mixed
    /// Lists, sets and dictionaries: the root of one collection a row.
    case collection
    case backlink
}

/// What the cluster tree must know of a column in order to insert, move and erase rows.
struct ClusterColumn {
    var leafIndex: Int
    var kind: ColumnLeafKind
    /// New rows are null; else they hold zero, false, "" or the like.
    var isNullable: Bool
    /// What new rows of an enumerated string column hold: the position of the default in the value list.
    var enumDefault = 0

    init(leafIndex: Int, kind: ColumnLeafKind, isNullable: Bool = false, enumDefault: Int = 0) {
        self.leafIndex = leafIndex
        self.kind = kind
        self.isNullable = isNullable
        self.enumDefault = enumDefault
    }

    /// The column with the given key; nil for one of a type that has no leaf of its own. `enumDefault` is given for an
    /// enumerated string column: the position of its default ("" or null) in the value list.
    init?(_ key: ColumnKey, enumDefault: Int? = nil) {
        let kind: ColumnLeafKind
        if key.collectionKind != nil {
            kind = .collection
        } else {
            switch key.type {
            case .int: kind = key.isNullable ? .nullableInt : .int
            case .bool: kind = .bool
            case .string: kind = enumDefault == nil ? .string : .enumString
            case .binary: kind = .binary
            case .mixed: kind = .mixed
            case .timestamp: kind = .timestamp
            case .float: kind = .float
            case .double: kind = .double
            case .decimal: kind = .decimal
            case .link: kind = .link
            case .backlink: kind = .backlink
            case .objectId: kind = .objectId
            case .uuid: kind = .uuid
            case .typedLink, nil: return nil
            }
        }
        self.init(leafIndex: key.leafIndex, kind: kind, isNullable: key.isNullable, enumDefault: enumDefault ?? 0)
    }
}

/// Changes to the leaf of a column that do not depend on a value: what happens when rows come, go and move.
enum ColumnLeafEditor {
    /// A leaf in which `count` rows hold the column's default.
    static func createFilled(_ arena: Arena, _ column: ClusterColumn, count: Int) throws -> Int {
        let isNull = column.isNullable
        switch column.kind {
        case .int: return try IntLeafEditor.createFilled(arena, count: count, 0)
        case .nullableInt: return try NullableIntLeafEditor.createFilled(arena, count: count, nil)
        case .bool: return try BoolLeafEditor.createFilled(arena, count: count, isNull ? nil : false)
        case .float: return try FloatLeafEditor.createFilled(arena, count: count, isNull ? nil : 0)
        case .double: return try DoubleLeafEditor.createFilled(arena, count: count, isNull ? nil : 0)
        case .timestamp:
            return try TimestampLeafEditor.createFilled(arena, count: count, isNull ? nil : Timestamp(seconds: 0, nanoseconds: 0))
        case .decimal: return try DecimalLeafEditor.createFilled(arena, count: count, isNull ? nil : zeroDecimal)
        case .objectId:
            return try ObjectIdLeafEditor.createFilled(arena, count: count, isNull ? nil : ObjectIdValue(high: 0, low: 0))
        case .uuid: return try UUIDLeafEditor.createFilled(arena, count: count, isNull ? nil : UUIDValue(high: 0, low: 0))
        case .string: return try StringLeafEditor.createFilled(arena, count: count, isNull ? nil : noBytes)
        case .enumString: return try EnumStringLeafEditor.createFilled(arena, count: count, column.enumDefault)
        case .binary: return try BinaryLeafEditor.createFilled(arena, count: count, isNull ? nil : noBytes)
        case .link: return try LinkLeafEditor.createFilled(arena, count: count, .null)
        case .mixed: return try MixedLeafEditor.createFilled(arena, count: count, .null)
        case .collection: return try RefLeafEditor.createFilled(arena, count: count, 0)
        case .backlink: return try BacklinkLeafEditor.createFilled(arena, count: count)
        }
    }

    /// Inserts a row that holds the column's default.
    @inline(__always)
    static func insertDefault(_ arena: Arena, _ column: ClusterColumn, _ ref: Int, _ index: Int) throws -> Int {
        let isNull = column.isNullable
        switch column.kind {
        case .int: return try IntLeafEditor.insert(arena, ref, index, 0)
        case .nullableInt: return try NullableIntLeafEditor.insert(arena, ref, index, nil)
        case .bool: return try BoolLeafEditor.insert(arena, ref, index, isNull ? nil : false)
        case .float: return try FloatLeafEditor.insert(arena, ref, index, isNull ? nil : 0)
        case .double: return try DoubleLeafEditor.insert(arena, ref, index, isNull ? nil : 0)
        case .timestamp:
            return try TimestampLeafEditor.insert(arena, ref, index, isNull ? nil : Timestamp(seconds: 0, nanoseconds: 0))
        case .decimal: return try DecimalLeafEditor.insert(arena, ref, index, isNull ? nil : zeroDecimal)
        case .objectId: return try ObjectIdLeafEditor.insert(arena, ref, index, isNull ? nil : ObjectIdValue(high: 0, low: 0))
        case .uuid: return try UUIDLeafEditor.insert(arena, ref, index, isNull ? nil : UUIDValue(high: 0, low: 0))
        case .string: return try StringLeafEditor.insert(arena, ref, index, isNull ? nil : noBytes)
        case .enumString: return try EnumStringLeafEditor.insert(arena, ref, index, column.enumDefault)
        case .binary: return try BinaryLeafEditor.insert(arena, ref, index, isNull ? nil : noBytes)
        case .link: return try LinkLeafEditor.insert(arena, ref, index, .null)
        case .mixed: return try MixedLeafEditor.insert(arena, ref, index, .null)
        case .collection: return try RefLeafEditor.insert(arena, ref, index, 0)
        case .backlink: return try BacklinkLeafEditor.insert(arena, ref, index)
        }
    }

    /// Removes a row and what its value owns: strings, collections, the list of its backlinks.
    static func erase(_ arena: Arena, _ column: ClusterColumn, _ ref: Int, _ index: Int) throws -> Int {
        switch column.kind {
        case .int: try IntLeafEditor.erase(arena, ref, index)
        case .nullableInt: try NullableIntLeafEditor.erase(arena, ref, index)
        case .bool: try BoolLeafEditor.erase(arena, ref, index)
        case .float: try FloatLeafEditor.erase(arena, ref, index)
        case .double: try DoubleLeafEditor.erase(arena, ref, index)
        case .timestamp: try TimestampLeafEditor.erase(arena, ref, index)
        case .decimal: try DecimalLeafEditor.erase(arena, ref, index)
        case .objectId: try ObjectIdLeafEditor.erase(arena, ref, index)
        case .uuid: try UUIDLeafEditor.erase(arena, ref, index)
        case .string: try StringLeafEditor.erase(arena, ref, index)
        case .enumString: try EnumStringLeafEditor.erase(arena, ref, index)
        case .binary: try BinaryLeafEditor.erase(arena, ref, index)
        case .link: try LinkLeafEditor.erase(arena, ref, index)
        case .mixed: try MixedLeafEditor.erase(arena, ref, index)
        case .collection: try RefLeafEditor.erase(arena, ref, index)
        case .backlink: try BacklinkLeafEditor.erase(arena, ref, index)
        }
    }

    /// Number of rows.
    static func count(_ arena: Arena, _ column: ClusterColumn, _ ref: Int) throws -> Int {
        switch column.kind {
        case .int, .bool, .enumString, .link, .collection, .backlink: try ArrayEditor.count(arena, ref)
        case .nullableInt: try NullableIntLeafEditor.count(arena, ref)
        case .float: try FloatLeafEditor.count(arena, ref)
        case .double: try DoubleLeafEditor.count(arena, ref)
        case .timestamp: try TimestampLeafEditor.count(arena, ref)
        case .decimal: try DecimalLeafEditor.count(arena, ref)
        case .objectId: try ObjectIdLeafEditor.count(arena, ref)
        case .uuid: try UUIDLeafEditor.count(arena, ref)
        case .string: try StringLeafEditor.count(arena, ref)
        case .binary: try BinaryLeafEditor.count(arena, ref)
        case .mixed: try MixedLeafEditor.count(arena, ref)
        }
    }

    /// Moves rows `start...` of one leaf behind those of another, with what they own.
    static func moveTail(
        _ arena: Arena, _ column: ClusterColumn, from source: Int, at start: Int, to target: Int
    ) throws -> (source: Int, target: Int) {
        switch column.kind {
        case .int: try IntLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .nullableInt: try NullableIntLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .bool: try BoolLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .float: try FloatLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .double: try DoubleLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .timestamp: try TimestampLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .decimal: try DecimalLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .objectId: try ObjectIdLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .uuid: try UUIDLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .string: try StringLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .enumString: try EnumStringLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .binary: try BinaryLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .link: try LinkLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .mixed: try MixedLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .collection: try RefLeafEditor.moveTail(arena, from: source, at: start, to: target)
        case .backlink: try BacklinkLeafEditor.moveTail(arena, from: source, at: start, to: target)
        }
    }

    private static var zeroDecimal: Decimal128Bits { Decimal128Bits(low: 0, high: 6176 << 49) }
    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}
