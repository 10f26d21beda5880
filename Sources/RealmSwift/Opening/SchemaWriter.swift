internal import SharedStore

/// Makes tables, columns and indexes (file-format-2 9.1 to 9.3).
struct SchemaWriter {
    let editor: GroupEditor

    init(_ editor: GroupEditor) { self.editor = editor }

    // MARK: Version

    private static let metadataTable = "metadata", versionColumn = "version"

    /// Stores the version of the schema; the table for it is made where it is missing.
    func setVersion(_ version: UInt64) throws {
        let table = try metadata()
        let column = try table.column(named: Self.versionColumn)
        if try table.table.find(ObjectKey(0)) == nil { try table.createObject(key: ObjectKey(0)) }
        try table.set(column, of: ObjectKey(0), to: .int(Int64(bitPattern: version)))
    }

    /// The table must be the first one of a new file.
    @discardableResult
    func metadata() throws -> TableEditor {
        if let table = try editor.group.table(named: Self.metadataTable) { return try editor.editor(table.key) }
        let table = try editor.createTable(Self.metadataTable)
        try table.addColumn(Self.versionColumn, .int)
        return table
    }

    // MARK: Classes

    /// Makes new classes: first all tables with their primary keys, then the other columns, so that links find their targets.
    func add(_ types: [ObjectSchema]) throws {
        let types = types.sorted { Array($0.className.utf8).lexicographicallyPrecedes(Array($1.className.utf8)) }
        for type in types {
            let table = try editor.createTable("class_" + type.className, kind: type.isEmbedded ? .embedded : .topLevel)
            if let key = type.primaryKeyProperty {
                try table.addPrimaryKeyColumn(key.columnName, key.columnType, isNullable: key.isOptional)
            }
        }
        for type in types {
            for property in type.properties where property.type != .linkingObjects && !property.isPrimaryKey { try add(property, to: type) }
        }
    }

    func table(_ type: ObjectSchema) throws -> TableEditor { try editor.editor(named: "class_" + type.className) }

    /// Adds the column of a property, and its index.
    @discardableResult
    func add(_ property: Property, to type: ObjectSchema, named name: String? = nil) throws -> Column {
        let table = try table(type)
        var attributes: ColumnAttributes = property.isNullableColumn ? .nullable : []
        switch property.collectionKind {
        case .list: attributes.insert(.list)
        case .set: attributes.insert(.set)
        case .dictionary: attributes.insert(.dictionary)
        case nil: break
        }
        let target = try property.type == .object ? editor.editor(named: "class_" + (property.objectClassName ?? "")).table.key : nil
        let column = try table.addColumn(name ?? property.columnName, property.columnType, attributes, target: target)
        if property.isIndexed && !property.isPrimaryKey { try table.addIndex(column.key) }
        return column
    }

    func setIndex(_ property: Property, of type: ObjectSchema, _ isIndexed: Bool) throws {
        let table = try table(type)
        let column = try table.column(named: property.columnName)
        if isIndexed { try table.addIndex(column.key) } else { try table.removeIndex(column.key) }
    }
}
