/// What a query must know about the classes of a file: names, types and links.
///
/// A front end with models of its own implements this, so that its queries know renamed properties and linking objects that
/// the file does not name; `GroupQuerySchema` is what the file alone tells.
public protocol QuerySchema {
    /// The class with that name, without the prefix that class tables have in the file.
    func queryClass(named name: String) -> QueryClass?
    func queryClass(_ table: TableKey) -> QueryClass?
}

/// A class as queries see it.
public struct QueryClass: Sendable {
    /// Without the prefix of its table.
    public var name: String
    /// Of its objects.
    public var table: TableKey
    /// Nil for a class without one.
    public var primaryKey: QueryProperty?
    private var properties: [ExactString: QueryProperty] = [:]

    /// A class without properties, to which they are added.
    public init(name: String, table: TableKey, primaryKey: QueryProperty? = nil) {
        self.name = name
        self.table = table
        self.primaryKey = primaryKey
    }

    /// The property of this name, aliases included; nil where there is none.
    public func property(_ name: String) -> QueryProperty? { properties[ExactString(name)] }

    /// Makes `property` known by `name`; it may be known by several names.
    public mutating func add(_ property: QueryProperty, as name: String) { properties[ExactString(name)] = property }
}

/// A property as queries see it: a column, or linking objects.
public struct QueryProperty: Hashable, Sendable {
    /// The table that has the column: of linking objects the table that the links come from.
    public var table: TableKey
    /// Where its values are.
    public var column: ColumnKey
    /// Of a collection: the type of its elements.
    public var type: ColumnType
    /// Nil for a single value.
    public var collection: CollectionKind?
    /// Values, or elements, may be null.
    public var isNullable: Bool
    /// Where a link leads. Of linking objects: where they come from.
    public var target: TableKey
    /// The objects that link here by `column`.
    public var isLinkingObjects: Bool
    /// Equal values are found by an index.
    public var isIndexed: Bool
    /// Words are found by an index.
    public var isFullTextIndexed: Bool

    /// The property that a column of the file is.
    public init(_ column: Column) {
        table = column.table
        self.column = column.key
        type = column.type
        collection = column.collection
        isNullable = column.isNullable
        target = column.type == .link ? column.oppositeTable : .null
        isLinkingObjects = false
        isIndexed = column.attributes.contains(.indexed)
        isFullTextIndexed = column.attributes.contains(.fullTextIndexed)
    }

    /// The objects that link to another by the property `origin`.
    public init(linkingBy origin: QueryProperty) {
        self = origin
        type = .link
        collection = .list
        isNullable = false
        target = origin.table
        isLinkingObjects = true
        isIndexed = false
        isFullTextIndexed = false
    }
}

/// The classes that the file itself tells of: every table, by its columns' stored names.
public struct GroupQuerySchema: QuerySchema, Sendable {
    private var classes: [TableKey: QueryClass] = [:]
    private var names: [ExactString: TableKey] = [:]

    /// The classes of a version; a damaged file throws `FormatError`.
    public init(_ group: Group) throws {
        for table in try group.tables() {
            var type = QueryClass(
                name: table.className ?? table.name, table: table.key,
                primaryKey: table.primaryKeyColumn.map { QueryProperty($0) })
            for column in table.publicColumns { type.add(QueryProperty(column), as: table.name(of: column)) }
            classes[table.key] = type
            // A class of the object layer goes before a table that happens to have its name.
            if table.className != nil || names[ExactString(type.name)] == nil { names[ExactString(type.name)] = table.key }
        }
    }

    /// The class of this name, nil where there is none.
    public func queryClass(named name: String) -> QueryClass? {
        let prefix = Table.classPrefix
        let key =
            names[ExactString(name)]
            ?? (name.hasPrefix(prefix) ? names[ExactString(String(name.dropFirst(prefix.utf8.count)))] : nil)
        return key.flatMap { classes[$0] }
    }

    /// The class of this table, nil where there is none.
    public func queryClass(_ table: TableKey) -> QueryClass? { classes[table] }

    /// Makes the property `property` of `className` known by another name too. Throws where there is no such property.
    public mutating func addAlias(_ alias: String, for property: String, of className: String) throws {
        guard let key = names[ExactString(className)], let found = classes[key]?.property(property) else {
            throw QueryError(.property, "Property '\(property)' not found in object of type '\(className)'")
        }
        classes[key]?.add(found, as: alias)
    }

    /// Declares linking objects: `name` of `className` are the objects of `origin` that link to it by `property`.
    public mutating func addLinkingObjects(_ name: String, of className: String, from origin: String, property: String) throws {
        guard let key = names[ExactString(className)], let originKey = names[ExactString(origin)],
            let link = classes[originKey]?.property(property),
            link.type == .link,
            !link.isLinkingObjects, link.target == key
        else { throw QueryError(.property, "'\(origin).\(property)' is no link to '\(className)'") }
        classes[key]?.add(QueryProperty(linkingBy: link), as: name)
    }
}
