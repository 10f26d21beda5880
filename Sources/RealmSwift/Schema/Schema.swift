internal import SharedStore

/// The classes of a Realm.
@frozen public struct Schema: CustomStringConvertible, Equatable, Sendable {
    /// In bytewise order of the class names.
    public var objectSchema: [ObjectSchema]

    init(_ classes: [ObjectSchema]) { objectSchema = classes.sorted { ExactString($0.className) < ExactString($1.className) } }

    /// The class of this name, nil where there is none.
    public subscript(className: String) -> ObjectSchema? { objectSchema.first { $0.className.isSame(as: className) } }

    public var description: String {
        "Schema {\n" + objectSchema.map { Description.indent($0.description) + "\n" }.joined() + "}"
    }
}

/// One class.
@frozen public struct ObjectSchema: CustomStringConvertible, Equatable, Sendable {
    /// In the order of declaration; linking objects come last.
    public var properties: [Property]
    /// The name, without module and enclosing types.
    public var className: String
    /// `DynamicObject` where the class is known from a file only.
    public var objectClass: AnyClass
    /// Its objects belong to one owner each, and are deleted with it.
    public var isEmbedded: Bool
    /// False: such classes belong to the sync service.
    public var isAsymmetric: Bool { false }
    /// The property by whose value objects are found, nil where there is none.
    public var primaryKeyProperty: Property?

    init(className: String, objectClass: AnyClass, isEmbedded: Bool, properties: [Property], primaryKey: String?) {
        self.className = className
        self.objectClass = objectClass
        self.isEmbedded = isEmbedded
        self.properties = properties.filter { $0.type != .linkingObjects } + properties.filter { $0.type == .linkingObjects }
        primaryKeyProperty = primaryKey.flatMap { name in properties.first { $0.name.isSame(as: name) } }
    }

    init(_ info: ClassInfo) {
        self.init(
            className: info.name, objectClass: info.type, isEmbedded: info.type.isEmbedded(),
            properties: info.properties.map { Property($0) }, primaryKey: info.properties.first { $0.isPrimaryKey }?.name)
    }

    /// The property of this name in Swift, nil where there is none.
    public subscript(propertyName: String) -> Property? { properties.first { $0.name.isSame(as: propertyName) } }

    public static func == (a: ObjectSchema, b: ObjectSchema) -> Bool {
        a.className.isSame(as: b.className) && a.isEmbedded == b.isEmbedded && a.properties == b.properties
            && a.primaryKeyProperty == b.primaryKeyProperty
    }

    public var description: String {
        let keyword = isEmbedded ? "\(className) (embedded)" : className
        return "\(keyword) {\n" + properties.map { Description.indent($0.description) + "\n" }.joined() + "}"
    }
}

/// One property.
@frozen public struct Property: CustomStringConvertible, Equatable, Sendable {
    /// In Swift.
    public var name: String
    /// In the file; the same unless `propertiesMapping()` says otherwise.
    public var columnName: String
    /// Of a collection: the type of the elements.
    public var type: PropertyType
    /// A list; linking objects too.
    public var isArray: Bool
    /// A set.
    public var isSet: Bool
    /// A map.
    public var isMap: Bool
    /// It has an index, as primary keys always do.
    public var isIndexed: Bool
    /// Of a collection: whether elements can be null. Links and `AnyRealmValue` always can.
    public var isOptional: Bool
    /// The class of the objects that a link, a collection or linking objects hold.
    public var objectClassName: String?
    var isPrimaryKey: Bool
    /// Of linking objects: the property of the other class.
    var originProperty: String?
    /// Position in `ClassInfo.properties`, -1 for a property that no class declares.
    var index: Int

    init(_ info: PropertyInfo) {
        let shape = info.shape
        name = info.name
        columnName = info.columnName
        type = shape.type
        isArray = shape.collection == .list || shape.type == .linkingObjects
        isSet = shape.collection == .set
        isMap = shape.collection == .map
        isIndexed = info.isIndexed
        isOptional =
            shape.type == .any || (shape.type == .object && (shape.collection == nil || shape.collection == .map))
            || shape.isOptional
        objectClassName = shape.objectClass?.className()
        isPrimaryKey = info.isPrimaryKey
        originProperty = info.originProperty
        index = info.index
    }

    /// A property that is known from a file.
    init(
        name: String, type: PropertyType, collection: _PropertyShape.Collection?, isOptional: Bool, isIndexed: Bool,
        isPrimaryKey: Bool, objectClassName: String?
    ) {
        self.name = name
        columnName = name
        self.type = type
        isArray = collection == .list
        isSet = collection == .set
        isMap = collection == .map
        self.isIndexed = isIndexed
        self.isOptional = isOptional
        self.objectClassName = objectClassName
        self.isPrimaryKey = isPrimaryKey
        index = -1
    }

    public var description: String {
        var lines = ["type = \(typeName);"]
        if columnName != name { lines.append("columnName = \(columnName);") }
        if let objectClassName { lines.append("objectClassName = \(objectClassName);") }
        if let originProperty { lines.append("linkOriginPropertyName = \(originProperty);") }
        lines.append("indexed = \(isIndexed ? "YES" : "NO");")
        lines.append("isPrimary = \(isPrimaryKey ? "YES" : "NO");")
        lines.append("array = \(isArray ? "YES" : "NO");")
        lines.append("set = \(isSet ? "YES" : "NO");")
        lines.append("dictionary = \(isMap ? "YES" : "NO");")
        lines.append("optional = \(isOptional ? "YES" : "NO");")
        return "\(name) {\n" + lines.map { "\t\($0)\n" }.joined() + "}"
    }

    /// As messages about schemas name the type.
    var typeName: String {
        let element =
            objectClassName.map { type == .object || type == .linkingObjects ? "<\($0)>" : type.description } ?? type.description
        let value = element + (isOptional && type != .any && type != .object ? "?" : "")
        if type == .linkingObjects { return "linking objects\(element)" }
        return isArray ? "array<\(value)>" : isSet ? "set<\(value)>" : isMap ? "dictionary<string, \(value)>" : value
    }
}
