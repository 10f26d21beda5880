import Foundation
internal import SharedStore

/// A value of any type that can be stored, but for embedded objects and sets.
///
/// Equality in Swift is that of the cases: `.int(1) != .double(1)`; predicates compare numbers by value. Lists and dictionaries
/// can be nested to a depth of 100; those of a managed object are live, and assigning another value ends them.
public enum AnyRealmValue: Hashable {
    case none
    case int(Int)
    case bool(Bool)
    case float(Float)
    case double(Double)
    case string(String)
    case data(Data)
    case date(Date)
    case object(Object)
    case objectId(ObjectId)
    case decimal128(Decimal128)
    case uuid(UUID)
    case dictionary(Map<String, AnyRealmValue>)
    case list(List<AnyRealmValue>)

    /// `.none`.
    public init() { self = .none }

    /// A dictionary of its own, with these values.
    public static func fromDictionary(_ dictionary: [String: AnyRealmValue]) -> AnyRealmValue {
        let map = Map<String, AnyRealmValue>()
        for (key, value) in dictionary { map.updateValue(value, forKey: key) }
        return .dictionary(map)
    }

    /// A list of its own, with these values.
    public static func fromArray(_ array: [AnyRealmValue]) -> AnyRealmValue {
        let list = List<AnyRealmValue>()
        list.append(objectsIn: array)
        return .list(list)
    }

    // MARK: The value, nil where it is of another type

    /// The integer; nil in any other case.
    public var intValue: Int? { if case .int(let v) = self { v } else { nil } }
    /// The truth value; nil in any other case.
    public var boolValue: Bool? { if case .bool(let v) = self { v } else { nil } }
    /// The float; nil in any other case.
    public var floatValue: Float? { if case .float(let v) = self { v } else { nil } }
    /// The double; nil in any other case.
    public var doubleValue: Double? { if case .double(let v) = self { v } else { nil } }
    /// The text; nil in any other case.
    public var stringValue: String? { if case .string(let v) = self { v } else { nil } }
    /// The data; nil in any other case.
    public var dataValue: Data? { if case .data(let v) = self { v } else { nil } }
    /// The date; nil in any other case.
    public var dateValue: Date? { if case .date(let v) = self { v } else { nil } }
    /// The object id; nil in any other case.
    public var objectIdValue: ObjectId? { if case .objectId(let v) = self { v } else { nil } }
    /// The decimal number; nil in any other case.
    public var decimal128Value: Decimal128? { if case .decimal128(let v) = self { v } else { nil } }
    /// The UUID; nil in any other case.
    public var uuidValue: UUID? { if case .uuid(let v) = self { v } else { nil } }
    /// The dictionary, which is live where the value is of a managed object; nil in any other case.
    public var dictionaryValue: Map<String, AnyRealmValue>? { if case .dictionary(let v) = self { v } else { nil } }
    /// The list, which is live where the value is of a managed object; nil in any other case.
    public var listValue: List<AnyRealmValue>? { if case .list(let v) = self { v } else { nil } }

    /// The object; nil in any other case, and where it is of another class.
    public func object<T: Object>(_ objectType: T.Type) -> T? {
        guard case .object(let object) = self else { return nil }
        if let object = object as? T { return object }
        // An object whose class was not known when it was read, or the other way round.
        guard object.session != nil, object.schemaName == objectType.className() else { return nil }
        return object.sameObject(as: objectType) as? T
    }

    /// The object by property names, also one of a class that the schema does not have.
    public var dynamicObject: DynamicObject? {
        guard case .object(let object) = self else { return nil }
        if let object = object as? DynamicObject { return object }
        if object.block == nil { return DynamicObject(showing: object) }
        return object.sameObject(as: DynamicObject.self) as? DynamicObject
    }
}

extension AnyRealmValue: _RealmSchemaDiscoverable, _HasPersistedType, _Persistable, _DefaultConstructible, RealmCollectionValue {
    public typealias PersistedType = AnyRealmValue
    public static var _shape: _PropertyShape { _PropertyShape(.any) }

    public static func _from(_ stored: _Stored) -> AnyRealmValue {
        switch stored.content {
        case .object(let object): return mixedObject(object)
        case .list(let list): return .list(list)
        case .dictionary(let map): return .dictionary(map)
        case .input: stored.mismatch(AnyRealmValue.self)
        case .plain(let mixed):
            switch mixed {
            case .null, .list, .dictionary: return .none
            case .int(let v): return .int(Int(v))
            case .bool(let v): return .bool(v)
            case .float(let v): return .float(v)
            case .double(let v): return .double(v)
            case .string(let v): return .string(v)
            case .binary(let v): return .data(Data(v))
            case .timestamp(let v): return .date(Date(v))
            case .decimal(let v): return .decimal128(Decimal128(v))
            case .objectId(let v): return .objectId(ObjectId(v))
            case .uuid(let v): return .uuid(UUID(v))
            case .link: return stored.object(as: ObjectBase.self).map { mixedObject($0) } ?? .none
            }
        }
    }

    private static func mixedObject(_ object: ObjectBase) -> AnyRealmValue {
        guard let object = object as? Object else {
            misuse("An AnyRealmValue cannot hold the embedded object '\(object.schemaName)'")
        }
        return .object(object)
    }

    public func _toStored() -> _Stored {
        switch self {
        case .none: .null
        case .int(let v): v._toStored()
        case .bool(let v): v._toStored()
        case .float(let v): v._toStored()
        case .double(let v): v._toStored()
        case .string(let v): v._toStored()
        case .data(let v): v._toStored()
        case .date(let v): v._toStored()
        case .objectId(let v): v._toStored()
        case .decimal128(let v): v._toStored()
        case .uuid(let v): v._toStored()
        case .object(let v): _Stored(.object(v.shownObject))
        case .list(let v): _Stored(.list(v))
        case .dictionary(let v): _Stored(.dictionary(v))
        }
    }

    public static func _traceMark() -> AnyRealmValue { .string(String._traceMark()) }
}
