/// One way in which the classes of a file differ from those that a program wants (file-format-2 9.4).
///
/// Classes that only the file has are no difference: they are left alone. Nor is the order of properties.
public enum SchemaDifference: Equatable, Sendable, CustomStringConvertible {
    case classAdded(String)
    case propertyAdded(class: String, PropertySchema)
    case propertyRemoved(class: String, property: String)
    /// Another type, class of link targets or kind of collection, perhaps another optionality too.
    case typeChanged(class: String, from: PropertySchema, to: PropertySchema)
    case madeOptional(class: String, property: String)
    case madeRequired(class: String, property: String)
    case indexAdded(class: String, property: String)
    case fullTextIndexAdded(class: String, property: String)
    /// An index of either kind.
    case indexRemoved(class: String, property: String)
    /// Another property, a first one (`from` is nil) or none any more (`to` is nil).
    case primaryKeyChanged(class: String, from: String?, to: String?)
    case kindChanged(class: String, from: TableKind, to: TableKind)

    /// All differences between a file's schema and a wanted one: class by class in bytewise order of their names; in a class
    /// first what concerns the file's properties, in their order, then what is new.
    public static func between(file: Schema, wanted: Schema) -> [SchemaDifference] {
        var present: [ExactString: ObjectSchema] = [:]
        for type in file.classes { present[ExactString(type.name)] = type }
        var added: [SchemaDifference] = [], changed: [SchemaDifference] = [], kinds: [SchemaDifference] = []
        for type in wanted.sortedClasses {
            guard let old = present[ExactString(type.name)] else {
                added.append(.classAdded(type.name))
                continue
            }
            between(old, type, &changed)
            if old.kind != type.kind { kinds.append(.kindChanged(class: type.name, from: old.kind, to: type.kind)) }
        }
        return added + changed + kinds
    }

    private static func between(_ old: ObjectSchema, _ new: ObjectSchema, _ differences: inout [SchemaDifference]) {
        let name = new.name
        var wanted: [ExactString: PropertySchema] = [:]
        for property in new.properties { wanted[ExactString(property.name)] = property }
        for property in old.properties {
            guard let target = wanted.removeValue(forKey: ExactString(property.name)) else {
                differences.append(.propertyRemoved(class: name, property: property.name))
                continue
            }
            if !property.hasSameType(as: target) {
                differences.append(.typeChanged(class: name, from: property, to: target))
                continue
            }
            if property.columnIsNullable != target.columnIsNullable {
                differences.append(
                    target.columnIsNullable
                        ? .madeOptional(class: name, property: property.name)
                        : .madeRequired(class: name, property: property.name))
            }
            let isIndexed = target.isIndexed || new.primaryKey.isSame(as: target.name)
            if isIndexed && !property.isIndexed { differences.append(.indexAdded(class: name, property: property.name)) }
            if (property.isIndexed && !isIndexed) || (property.isFullTextIndexed && !target.isFullTextIndexed) {
                differences.append(.indexRemoved(class: name, property: property.name))
            }
            if target.isFullTextIndexed && !property.isFullTextIndexed {
                differences.append(.fullTextIndexAdded(class: name, property: property.name))
            }
        }
        for property in new.properties where wanted[ExactString(property.name)] != nil {
            differences.append(.propertyAdded(class: name, property))
        }
        if !old.primaryKey.isSame(as: new.primaryKey) {
            differences.append(.primaryKeyChanged(class: name, from: old.primaryKey, to: new.primaryKey))
        }
    }

    /// It can be done at any time, without a higher schema version: new classes and indexes.
    public var isFree: Bool {
        switch self {
        case .classAdded, .indexAdded, .fullTextIndexAdded, .indexRemoved: true
        default: false
        }
    }

    /// It does not keep a program from reading the file.
    public var isHarmlessForReading: Bool {
        switch self {
        case .propertyRemoved, .kindChanged: true
        default: isFree
        }
    }

    /// It can be done, or be left as it is, where a schema only grows.
    public var isAdditive: Bool {
        switch self {
        case .propertyAdded, .propertyRemoved: true
        default: isFree
        }
    }

    public var description: String {
        switch self {
        case .classAdded(let name): "Class '\(name)' has been added."
        case .propertyAdded(let name, let property): "Property '\(name).\(property.name)' has been added."
        case .propertyRemoved(let name, let property): "Property '\(name).\(property)' has been removed."
        case .typeChanged(let name, let from, let to):
            "Property '\(name).\(to.name)' has been changed from '\(from.typeName)' to '\(to.typeName)'."
        case .madeOptional(let name, let property): "Property '\(name).\(property)' has been made optional."
        case .madeRequired(let name, let property): "Property '\(name).\(property)' has been made required."
        case .indexAdded(let name, let property): "Property '\(name).\(property)' has been made indexed."
        case .fullTextIndexAdded(let name, let property): "Property '\(name).\(property)' has been made fulltext indexed."
        case .indexRemoved(let name, let property): "Property '\(name).\(property)' has been made unindexed."
        case .primaryKeyChanged(let name, let from?, let to?):
            "Primary Key for class '\(name)' has changed from '\(from)' to '\(to)'."
        case .primaryKeyChanged(let name, let from?, nil): "Primary Key '\(from)' for class '\(name)' has been removed."
        case .primaryKeyChanged(let name, nil, let to): "Primary Key for class '\(name)' has been added: '\(to ?? "")'."
        case .kindChanged(let name, let from, let to): "Class '\(name)' has been changed from \(from.word) to \(to.word)."
        }
    }
}

extension Schema {
    /// The classes in the order in which they are made (file-format-2 9.3).
    var sortedClasses: [ObjectSchema] { classes.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) } }
}

extension PropertySchema {
    /// The nullable bit of the property's column: the format leaves no choice for Mixed and links (file-format-2 9.2).
    public var columnIsNullable: Bool {
        switch (type, collection) {
        case (.mixed, _), (.link, nil), (.link, .dictionary): true
        case (.link, _): false
        default: isOptional
        }
    }

    func hasSameType(as other: PropertySchema) -> Bool {
        type == other.type && collection == other.collection && (type != .link || objectType.isSame(as: other.objectType))
    }

    /// Bits of the property's column, without those of indexes.
    var columnAttributes: ColumnAttributes {
        var attributes: ColumnAttributes = columnIsNullable ? .nullable : []
        switch collection {
        case .list: attributes.insert(.list)
        case .set: attributes.insert(.set)
        case .dictionary: attributes.insert(.dictionary)
        case nil: break
        }
        return attributes
    }

    /// As messages name the type.
    public var typeName: String {
        let element = type == .link ? "<\(objectType ?? "")>" : type.propertyName + (isOptional && type != .mixed ? "?" : "")
        return switch collection {
        case .list: "array<\(element)>"
        case .set: "set<\(element)>"
        case .dictionary: "dictionary<string, \(element)>"
        case nil: element
        }
    }
}

extension TableKind {
    var word: String {
        switch self {
        case .topLevel: "top-level"
        case .embedded: "embedded"
        case .asymmetric: "asymmetric"
        }
    }
}
