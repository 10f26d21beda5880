internal import SharedStore

/// One way in which the classes of a file differ from those that are wanted (file-format-2 9.4).
enum SchemaDifference {
    case addTable(ObjectSchema)
    case addProperty(ObjectSchema, Property)
    case removeProperty(ObjectSchema, PropertySchema)
    /// Another type, link target or kind of collection, perhaps another optionality too.
    case changeType(ObjectSchema, Property, from: PropertySchema)
    case makeOptional(ObjectSchema, Property)
    case makeRequired(ObjectSchema, Property)
    case addIndex(ObjectSchema, Property)
    case removeIndex(ObjectSchema, Property)
    /// Nil: none.
    case changePrimaryKey(ObjectSchema, from: String?, to: String?)
    case changeKind(ObjectSchema, toEmbedded: Bool)

    /// It can be done at any time, without a higher schema version.
    var isFree: Bool {
        switch self {
        case .addTable, .addIndex, .removeIndex: true
        default: false
        }
    }

    /// It does not keep a file from being read.
    var isHarmlessForReading: Bool {
        switch self {
        case .addTable, .addIndex, .removeIndex, .removeProperty, .changeKind: true
        default: false
        }
    }

    /// As the message of an error lists it.
    var message: String {
        switch self {
        case .addTable(let type): "Class '\(type.className)' has been added."
        case .addProperty(let type, let property): "Property '\(type.className).\(property.name)' has been added."
        case .removeProperty(let type, let property): "Property '\(type.className).\(property.name)' has been removed."
        case .changeType(let type, let property, let from):
            "Property '\(type.className).\(property.name)' has been changed from '\(Property(from).typeName)' to '\(property.typeName)'."
        case .makeOptional(let type, let property): "Property '\(type.className).\(property.name)' has been made optional."
        case .makeRequired(let type, let property): "Property '\(type.className).\(property.name)' has been made required."
        case .addIndex(let type, let property): "Property '\(type.className).\(property.name)' has been made indexed."
        case .removeIndex(let type, let property): "Property '\(type.className).\(property.name)' has been made unindexed."
        case .changePrimaryKey(let type, let from?, let to?): "Primary Key for class '\(type.className)' has changed from '\(from)' to '\(to)'."
        case .changePrimaryKey(let type, let from?, nil): "Primary Key for class '\(type.className)' has been removed ('\(from)')."
        case .changePrimaryKey(let type, _, let to): "Primary Key for class '\(type.className)' has been added ('\(to ?? "")')."
        case .changeKind(let type, let toEmbedded): "Class '\(type.className)' has been changed from \(toEmbedded ? "top-level to embedded" : "embedded to top-level")."
        }
    }
}

extension Property {
    /// A property as a file has it.
    init(_ stored: PropertySchema) {
        let collection: _PropertyShape.Collection? = switch stored.collection {
        case .list: .list
        case .set: .set
        case .dictionary: .map
        case nil: nil
        }
        self.init(name: stored.name, type: PropertyType(stored.type) ?? .any, collection: collection, isOptional: stored.isOptional,
                  isIndexed: stored.isIndexed, isPrimaryKey: false, objectClassName: stored.objectType)
    }

    var collectionKind: CollectionKind? { type == .linkingObjects ? nil : isArray ? .list : isSet ? .set : isMap ? .dictionary : nil }

    /// The nullable bit of the column (file-format-2 9.2).
    var isNullableColumn: Bool {
        switch (type, collectionKind) {
        case (.any, _), (.object, nil), (.object, .dictionary): true
        case (.object, _): false
        default: isOptional
        }
    }

    var columnType: ColumnType { _PropertyShape(type).columnType }
}

enum SchemaComparison {
    /// What has to be done to a file with the classes `present` to have those of `wanted`. Classes that only the file has are left alone.
    static func differences(present: SharedStore.Schema, wanted: Schema) -> [SchemaDifference] {
        var differences: [SchemaDifference] = []
        for type in wanted.objectSchema {
            guard let old = present.objectSchema(named: type.className) else {
                differences.append(.addTable(type))
                continue
            }
            compare(old, type, &differences)
        }
        return differences
    }

    private static func compare(_ old: SharedStore.ObjectSchema, _ new: ObjectSchema, _ differences: inout [SchemaDifference]) {
        if old.isEmbedded != new.isEmbedded { differences.append(.changeKind(new, toEmbedded: new.isEmbedded)) }
        let key = new.primaryKeyProperty?.columnName
        if old.primaryKey != key { differences.append(.changePrimaryKey(new, from: old.primaryKey, to: key)) }
        for property in new.properties where property.type != .linkingObjects {
            guard let stored = old.property(named: property.columnName) else {
                differences.append(.addProperty(new, property))
                continue
            }
            if stored.type != property.columnType || stored.collection != property.collectionKind || stored.objectType != property.objectClassName {
                differences.append(.changeType(new, property, from: stored))
            } else if stored.isOptional != property.isNullableColumn {
                differences.append(property.isNullableColumn ? .makeOptional(new, property) : .makeRequired(new, property))
            } else if stored.isIndexed != property.isIndexed && old.primaryKey != property.columnName && key != property.columnName {
                differences.append(property.isIndexed ? .addIndex(new, property) : .removeIndex(new, property))
            }
        }
        for stored in old.properties where !new.properties.contains(where: { $0.columnName == stored.name && $0.type != .linkingObjects }) {
            differences.append(.removeProperty(new, stored))
        }
    }
}
