/// The classes of the object layer as a file has them (file-format-2 section 9).
public struct Schema: Equatable, Sendable {
    /// Version of the object layer's schema; -1 where the file has none.
    public var version: Int64
    /// In bytewise order of their names.
    public var classes: [ObjectSchema]

    /// The classes in the order in which they are given.
    public init(version: Int64, classes: [ObjectSchema]) {
        self.version = version
        self.classes = classes
    }

    /// The class of this name, nil where there is none.
    public func objectSchema(named name: String) -> ObjectSchema? { classes.first { $0.name.isSame(as: name) } }
}

/// One class.
public struct ObjectSchema: Equatable, Sendable {
    /// Without the prefix `class_`.
    public var name: String
    /// Whether its objects live by themselves.
    public var kind: TableKind
    /// The name of the property by which objects are found, nil where there is none.
    public var primaryKey: String?
    /// In spec order.
    public var properties: [PropertySchema]

    /// A class; nothing is checked yet.
    public init(name: String, kind: TableKind, primaryKey: String?, properties: [PropertySchema]) {
        self.name = name
        self.kind = kind
        self.primaryKey = primaryKey
        self.properties = properties
    }

    public static func == (a: ObjectSchema, b: ObjectSchema) -> Bool {
        a.name.isSame(as: b.name) && a.kind == b.kind && a.primaryKey.isSame(as: b.primaryKey) && a.properties == b.properties
    }

    /// Its objects belong to one owner each.
    public var isEmbedded: Bool { kind == .embedded }
    /// The property of this name, nil where there is none.
    public func property(named name: String) -> PropertySchema? { properties.first { $0.name.isSame(as: name) } }
}

/// One property. Computed properties, such as linking objects, are not in the file.
public struct PropertySchema: Equatable, Sendable {
    /// In the file.
    public var name: String
    /// Of a collection: the type of its elements.
    public var type: ColumnType
    /// Nil for a single value.
    public var collection: CollectionKind?
    /// The nullable bit of the column as it is: always set for Mixed, a single link and a dictionary of links, never for a
    /// list or set of links.
    public var isOptional: Bool
    /// It has a general index or is the primary key.
    public var isIndexed: Bool
    /// Has an index over the words of its text.
    public var isFullTextIndexed: Bool
    /// The class that links go to.
    public var objectType: String?

    /// A property; nothing is checked yet.
    public init(
        name: String, type: ColumnType, collection: CollectionKind? = nil, isOptional: Bool = false,
        isIndexed: Bool = false, isFullTextIndexed: Bool = false, objectType: String? = nil
    ) {
        self.name = name
        self.type = type
        self.collection = collection
        self.isOptional = isOptional
        self.isIndexed = isIndexed
        self.isFullTextIndexed = isFullTextIndexed
        self.objectType = objectType
    }

    public static func == (a: PropertySchema, b: PropertySchema) -> Bool {
        a.name.isSame(as: b.name) && a.type == b.type && a.collection == b.collection && a.isOptional == b.isOptional
            && a.isIndexed == b.isIndexed && a.isFullTextIndexed == b.isFullTextIndexed && a.objectType.isSame(as: b.objectType)
    }
}

extension Group {
    static let metadataTableName = "metadata"
    static let oldPrimaryKeyTableName = "pk"

    /// Version of the object layer's schema; -1 where the file has none (file-format-2 9.1).
    public func schemaVersion() throws -> Int64 {
        guard let table = try table(named: Group.metadataTableName), let column = table.column(named: "version"),
            column.type == .int, column.collection == nil, let row = try table.object(at: 0)
        else { return -1 }
        return try row.optionalInt(column) ?? -1
    }

    /// The tables of the object layer's classes, in bytewise order of the class names.
    public func classTables() throws -> [Table] {
        try tables().filter { $0.className != nil }.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }
    }

    /// The schema of the object layer as the file has it (file-format-2 9.2).
    public func schema() throws -> Schema { Schema(version: try schemaVersion(), classes: try classTables().map(objectSchema)) }

    /// The schema of one class; a table that is no class gets its own name.
    public func objectSchema(_ table: Table) throws -> ObjectSchema {
        let primaryKey = table.primaryKeyColumn
        return ObjectSchema(
            name: table.className ?? table.name, kind: table.kind, primaryKey: primaryKey.map { table.name(of: $0) },
            properties: try table.publicColumns.map { column in
                let isFullText = column.attributes.contains(.fullTextIndexed)
                return PropertySchema(
                    name: table.name(of: column), type: column.type, collection: column.collection, isOptional: column.isNullable,
                    isIndexed: try column == primaryKey || !isFullText && table.indexRef(of: column) != 0,
                    isFullTextIndexed: isFullText,
                    objectType: column.type == .link ? try name(ofTarget: column.oppositeTable) : nil)
            })
    }

    /// The class name of a table, or its own name where it is no class; nil where there is no such table.
    public func name(ofTarget key: TableKey) throws -> String? { try table(key).map { $0.className ?? $0.name } }
}
