internal import SharedStore

/// The kinds of values that a property can hold. The raw values are those of the original API.
@frozen public enum PropertyType: Int32, Sendable {
    case int = 0, bool = 1, string = 2, data = 3, date = 4, float = 5, double = 6, object = 7, linkingObjects = 8, any = 9
    case objectId = 10, decimal128 = 11, UUID = 12
}

/// What the Swift type of a property says about its place in the schema.
public struct _PropertyShape {
    enum Collection { case list, set, map }
    var type: PropertyType
    /// Of a collection: whether its elements are optional.
    var isOptional: Bool
    var collection: Collection?
    /// The class that a link or the elements of a collection belong to.
    var objectClass: ObjectBase.Type?
    /// The property belongs to a mapped type whose persisted type is an embedded object: stored as a nullable link.
    var isMappedObject = false

    init(_ type: PropertyType, isOptional: Bool = false, collection: Collection? = nil, objectClass: ObjectBase.Type? = nil) {
        self.type = type
        self.isOptional = isOptional
        self.collection = collection
        self.objectClass = objectClass
    }

    func optional() -> _PropertyShape {
        var shape = self
        shape.isOptional = true
        return shape
    }

    func collected(_ kind: Collection) -> _PropertyShape {
        var shape = self
        shape.collection = kind
        return shape
    }

    /// The shape of one element of the collection.
    var element: _PropertyShape {
        var shape = self
        shape.collection = nil
        return shape
    }

    var columnType: ColumnType {
        switch type {
        case .int: .int
        case .bool: .bool
        case .string: .string
        case .data: .binary
        case .date: .timestamp
        case .float: .float
        case .double: .double
        case .object: .link
        case .linkingObjects: .backlink
        case .any: .mixed
        case .objectId: .objectId
        case .decimal128: .decimal
        case .UUID: .uuid
        }
    }
}

extension PropertyType: CustomStringConvertible {
    /// The name of the type in messages and descriptions of schemas.
    public var description: String {
        switch self {
        case .int: "int"
        case .bool: "bool"
        case .string: "string"
        case .data: "data"
        case .date: "date"
        case .float: "float"
        case .double: "double"
        case .object: "object"
        case .linkingObjects: "linking objects"
        case .any: "mixed"
        case .objectId: "object id"
        case .decimal128: "decimal128"
        case .UUID: "uuid"
        }
    }

    init?(_ type: ColumnType) {
        switch type {
        case .int: self = .int
        case .bool: self = .bool
        case .string: self = .string
        case .binary: self = .data
        case .timestamp: self = .date
        case .float: self = .float
        case .double: self = .double
        case .link: self = .object
        case .mixed: self = .any
        case .objectId: self = .objectId
        case .decimal: self = .decimal128
        case .uuid: self = .UUID
        case .backlink, .typedLink: return nil
        }
    }
}
