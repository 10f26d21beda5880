/// The key of an object within its table (file-format-2 4.1).
///
/// Live objects have keys from 0 up; -1 means "no object"; keys of -2 and below are *unresolved*: they stand for
/// objects that were deleted while something still linked to them.
@frozen public struct ObjectKey: Hashable, Comparable, Sendable, CustomStringConvertible {
    public var rawValue: Int64
    /// From the number in the file.
    @inlinable public init(_ rawValue: Int64) { self.rawValue = rawValue }
    /// No key.
    public static let null = ObjectKey(-1)
    /// No key.
    @inlinable public var isNull: Bool { rawValue == -1 }
    /// The key of a tombstone.
    @inlinable public var isUnresolved: Bool { rawValue <= -2 }
    /// Turns a live key into the key of its tombstone and back.
    @inlinable public var unresolved: ObjectKey { ObjectKey(-2 &- rawValue) }
    @inlinable public static func < (a: ObjectKey, b: ObjectKey) -> Bool { a.rawValue < b.rawValue }
    public var description: String { String(rawValue) }
}

/// The key of a table within its file (file-format-2 1.4): slot in the low 16 bits, tag above.
@frozen public struct TableKey: Hashable, Comparable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32
    /// From the number in the file.
    @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }
    /// No key.
    public static let null = TableKey(0x7FFF_FFFF)
    /// The place among the group's tables.
    @inlinable public var slot: Int { Int(rawValue & 0xFFFF) }
    @inlinable public static func < (a: TableKey, b: TableKey) -> Bool { a.rawValue < b.rawValue }
    public var description: String { String(rawValue) }
}

/// The type numbers of columns and values (file-format-1 section 10).
public enum ColumnType: Int, Sendable, CaseIterable {
    case int = 0, bool = 1, string = 2, binary = 4, mixed = 6, timestamp = 8, float = 9, double = 10, decimal = 11
    case link = 12, backlink = 14, objectId = 15, typedLink = 16, uuid = 17
}

/// The kind of collection that a column holds, if any.
public enum CollectionKind: Int, Sendable { case list, set, dictionary }

/// Attribute bits of a column (file-format-2 3.2).
public struct ColumnAttributes: OptionSet, Hashable, Sendable {
    /// The bits in the file.
    public let rawValue: Int
    /// From the bits in the file.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Has an index.
    public static let indexed = ColumnAttributes(rawValue: 1)
    /// Values are unique: the primary key.
    public static let unique = ColumnAttributes(rawValue: 2)
    /// Links own what they lead to.
    public static let strongLinks = ColumnAttributes(rawValue: 8)
    /// No key.
    public static let nullable = ColumnAttributes(rawValue: 16)
    /// Holds lists.
    public static let list = ColumnAttributes(rawValue: 32)
    /// Holds dictionaries.
    public static let dictionary = ColumnAttributes(rawValue: 64)
    /// Holds sets.
    public static let set = ColumnAttributes(rawValue: 128)
    /// Has an index over words.
    public static let fullTextIndexed = ColumnAttributes(rawValue: 256)
    /// Those that stand in the column key as well.
    public static let inKey = ColumnAttributes(rawValue: 0xFF & ~1)
    /// Nil for single values.
    public var collectionKind: CollectionKind? {
        contains(.list) ? .list : contains(.set) ? .set : contains(.dictionary) ? .dictionary : nil
    }
}

/// The key of a column within its table (file-format-2 3.3):
/// leaf index in bits 0-15, type in 16-21, attributes in 22-29, tag in 30-61.
@frozen public struct ColumnKey: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: Int64
    /// From the number in the file.
    @inlinable public init(_ rawValue: Int64) { self.rawValue = rawValue }
    /// From its parts (file-format-2 3.3).
    public init(leafIndex: Int, type: ColumnType, attributes: ColumnAttributes, tag: UInt32) {
        rawValue =
            Int64(leafIndex) | Int64(type.rawValue) << 16 | Int64(attributes.intersection(.inKey).rawValue) << 22 | Int64(tag)
            << 30
    }
    /// No key.
    public static let null = ColumnKey(Int64.max)
    /// No key.
    @inlinable public var isNull: Bool { rawValue == Int64.max }
    /// The position of the column's leaf in a cluster, less one.
    @inlinable public var leafIndex: Int { Int(rawValue & 0xFFFF) }
    /// The type number; 13 (list of links of older formats) reads as 12.
    public var type: ColumnType? {
        let n = typeNumber
        return ColumnType(rawValue: n == 13 ? 12 : n)
    }
    /// The number of the type in the file.
    public var typeNumber: Int { Int(rawValue >> 16 & 0x3F) }
    /// What the column is besides its type.
    public var attributes: ColumnAttributes {
        let a = ColumnAttributes(rawValue: Int(rawValue >> 22 & 0xFF))
        return typeNumber == 13 ? a.union(.list) : a
    }
    /// Values, or elements, may be null.
    public var isNullable: Bool { attributes.contains(.nullable) }
    /// Nil for single values.
    public var collectionKind: CollectionKind? { attributes.collectionKind }
    /// Tells the column from others that had its place before.
    public var tag: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 30) }
    public var description: String { String(rawValue) }
}
