/// What is known about a column: everything needed to read a value from a row. A plain value without references.
///
/// The name is in the table: `Table.name(of:)`. A column stays usable for all rows of the version whose table gave it.
@frozen public struct Column: Hashable, Sendable {
    public let key: ColumnKey
    /// From the key, never from the types array, which may be out of date (file-format-2 3.1).
    public let type: ColumnType
    /// Those of the spec: also indexed and full text, which the key lacks.
    public let attributes: ColumnAttributes
    /// Position in the spec: the order that users see.
    public let specIndex: Int
    /// The table that has the column.
    public let table: TableKey
    /// Of a link column the table that it points to, of a backlink column the table of the origin; else null.
    public let oppositeTable: TableKey
    /// The column on the other side, or null.
    public let oppositeColumn: ColumnKey
    /// Of a dictionary the type of the keys: string or int.
    public let dictionaryKeyType: ColumnType
    /// Ref of the list of values of an enumerated string column, else 0 (file-format-2 3.6).
    @usableFromInline let enumerationRef: Int
    /// Format of the file, where it changes how values are read (file-format-2 section 10).
    @usableFromInline let format: UInt8

    /// Nil for a column of single values.
    public var collection: CollectionKind? { attributes.collectionKind }
    /// Values, or the elements of a collection, may be null.
    public var isNullable: Bool { attributes.contains(.nullable) }
    /// The column holds who links here, from one column of another table.
    public var isBacklink: Bool { type == .backlink }
    @inline(__always) var leafIndex: Int { key.leafIndex }
    /// Formats 21 and 22 keep a dictionary as a cluster tree with hashes for keys.
    @inline(__always) var hasOldDictionaries: Bool { format < 23 }
}

extension Memory {
    /// Ref of the value list of an enumerated string column, also where the write transaction has changed it since the column was
    /// read.
    @inline(__always)
    func enumerationRef(_ column: Column) -> Int {
        guard let moved = state.pointee.movedLists else { return column.enumerationRef }
        return moved._withUnsafeGuaranteedRef { $0.ref(column.key, of: column.table) } ?? column.enumerationRef
    }
}
