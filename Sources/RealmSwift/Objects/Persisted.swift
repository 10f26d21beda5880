import Foundation
internal import CShims

/// What a property declares besides its type.
@frozen public struct _PropertyFlags: OptionSet, Sendable {
    public let rawValue: UInt8
    /// From the bits of a set of flags.
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let indexed = _PropertyFlags(rawValue: 1)
    /// The property is the primary key, and so has an index.
    public static let primaryKey = _PropertyFlags(rawValue: 2)
}

/// Where the value of a property is.
@frozen public enum _PropertyStorage<Value> {
    /// In the file, at this position of the cluster leaf; computed properties count from `0x8000`.
    case managed(slot: UInt16)
    /// Nowhere yet: the default is made at the first read, and then kept.
    case unset(_PropertyFlags)
    case value(Value, _PropertyFlags)
    /// The object stands in for a class while a key path is traced: the property's number.
    case trace(UInt32)
}

/// A property that is stored in the Realm file.
///
///     class Dog: Object {
///         @Persisted(primaryKey: true) var id: ObjectId
///         @Persisted(indexed: true) var name = ""
///         @Persisted var owner: Person?
///         @Persisted var toys: List<Toy>
///     }
///
/// Only properties of subclasses of `Object` and `EmbeddedObject` can be wrapped. In a class with at least one such property all
/// others are ignored. Without an explicit default a property begins with zero, an empty text, nil, an empty collection, a fresh
/// `UUID` or `ObjectId`, the present time, the first case of an enum.
///
/// The subscript below is inlined into the application and thin: it looks where the value is and calls one function of this
/// library. Each access to the storage is a load or a store of a whole value; only then does the compiler drop its run-time
/// check for overlapping accesses, which would double the time of a read.
@propertyWrapper @frozen
public struct Persisted<Value: _Persistable> {
    @usableFromInline var storage: _PropertyStorage<Value>

    /// Not for use: a property is read through its object.
    @available(*, unavailable, message: "@Persisted can only be used as a property on a Realm object")
    public var wrappedValue: Value {
        get { fatalError() }
        set { fatalError() }
    }

    /// A property that begins with the default of its type.
    @inlinable public init() { storage = Value._isDefaultFresh ? _freshStorage([]) : .unset([]) }
    @inlinable public init(wrappedValue value: Value) { storage = .value(value, []) }
    @inlinable init(_ flags: _PropertyFlags) { storage = Value._isDefaultFresh ? _freshStorage(flags) : .unset(flags) }
    @inlinable init(_ value: Value, _ flags: _PropertyFlags) { storage = .value(value, flags) }

    /// Reads and writes the property of an object, which Swift calls for `object.property`.
    @inlinable
    public static subscript<EnclosingSelf: ObjectBase>(
        _enclosingInstance observed: EnclosingSelf,
        wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
        storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Self>
    ) -> Value {
        @inline(__always) get {
            switch observed[keyPath: storageKeyPath].storage {
            case .managed(let slot): return Value._get(observed, Int(slot))
            case .value(let value, _): return value
            case .unset(let flags):
                let value = Value._default()
                observed[keyPath: storageKeyPath].storage = .value(value, flags)
                return value
            case .trace(let number): return _trace(observed, number)
            }
        }
        @inline(__always) set {
            switch observed[keyPath: storageKeyPath].storage {
            case .managed(let slot): Value._set(observed, Int(slot), newValue)
            case .value(let old, let flags):
                let value = Value._assigned(newValue, over: old)
                observed[keyPath: storageKeyPath].storage = .value(value, flags)
            case .unset(let flags):
                let value = Value._assigned(newValue, over: nil)
                observed[keyPath: storageKeyPath].storage = .value(value, flags)
            case .trace: break
            }
        }
    }
}

/// Where the default of a property is that is another one each time it is made, in an object of the application: made at once, so
/// that it is the same for all who see it. `Codable` sees a copy of the wrapper, in which nothing can be kept. In an instance
/// that the library makes for itself: nowhere yet.
@inline(never)
public func _freshStorage<Value: _Persistable>(_ flags: _PropertyFlags) -> _PropertyStorage<Value> {
    realm_makes_sample() ? .unset(flags) : .value(Value._default(), flags)
}

extension Persisted where Value.PersistedType: _Indexable {
    /// - Parameter indexed: lookups by equality become fast, writes a little slower.
    @inlinable public init(indexed: Bool) { self.init(indexed ? .indexed : []) }
    @inlinable public init(wrappedValue value: Value, indexed: Bool) { self.init(value, indexed ? .indexed : []) }
}

extension Persisted where Value.PersistedType: _PrimaryKey {
    /// - Parameter primaryKey: values are unique among the objects of the class, and cannot change once the object is managed.
    @inlinable public init(primaryKey: Bool) { self.init(primaryKey ? .primaryKey : []) }
    @inlinable public init(wrappedValue value: Value, primaryKey: Bool) { self.init(value, primaryKey ? .primaryKey : []) }
}

/// `LinkingObjects`, for constraints.
public protocol LinkingObjectsProtocol {
    associatedtype Element
    init(_originProperty: String)
}

extension Persisted where Value: LinkingObjectsProtocol {
    /// - Parameter originProperty: the property of the other class whose links are to be found.
    public init(originProperty: String) { self.init(Value(_originProperty: originProperty), []) }
}

// MARK: Codable

extension Persisted: Decodable where Value: Decodable {
    /// Reads the value; what else the wrapper says (index, primary key) is said by the class, not by the text.
    public init(from decoder: any Decoder) throws { self.init(wrappedValue: try decoder.decodeValue()) }
}

extension Decoder {
    /// Optionals only decode themselves through the container.
    fileprivate func decodeValue<Value: Decodable>() throws -> Value {
        guard let optional = Value.self as? any ExpressibleByNilLiteral.Type else { return try Value(from: self) }
        let container = try singleValueContainer()
        if container.decodeNil(), let null = nilValue(optional) as? Value { return null }
        return try Value(from: self)
    }

    private func nilValue<T: ExpressibleByNilLiteral>(_ type: T.Type) -> T { nil }
}

extension Persisted: Encodable where Value: Encodable {
    /// Objects that are managed by a Realm cannot be encoded this way.
    public func encode(to encoder: any Encoder) throws {
        switch storage {
        case .value(let value, _): try value.encode(to: encoder)
        case .unset: try Value._default().encode(to: encoder)
        case .managed, .trace:
            throw EncodingError.invalidValue(
                self,
                .init(
                    codingPath: encoder.codingPath,
                    debugDescription:
                        "Only unmanaged Realm objects can be encoded using automatic Codable synthesis. You must explicitly define encode(to:) on your model class to support managed Realm objects."
                ))
        }
    }
}

/// Lets optional properties be absent when a class decodes itself.
public protocol OptionalCodingWrapper {
    associatedtype WrappedType: ExpressibleByNilLiteral
    init(wrappedValue: WrappedType)
}

extension KeyedDecodingContainer {
    /// The compiler's `init(from:)` of a class calls this for `@Persisted` optionals: an absent key is nil.
    public func decode<T>(_ type: T.Type, forKey key: Self.Key) throws -> T where T: Decodable, T: OptionalCodingWrapper {
        try decodeIfPresent(T.self, forKey: key) ?? T(wrappedValue: nil)
    }
}

extension Persisted: OptionalCodingWrapper where Value: ExpressibleByNilLiteral {
    public typealias WrappedType = Value
}

// MARK: Access by address

/// What can be done with a wrapper of which only the type and the address are known.
protocol AnyPersisted {
    /// The type of the value, of `Persisted` only.
    static var valueType: (any _Persistable.Type)? { get }
    static var shape: _PropertyShape { get }
    /// The property as declared: what a fresh instance says.
    static func declaration(at address: UnsafeMutableRawPointer) -> PropertyDeclaration
    /// The value as the dynamic API shows it; a default is made and kept.
    static func load(at address: UnsafeMutableRawPointer) -> Any?
    /// False where the input does not fit.
    static func store(_ input: Any?, at address: UnsafeMutableRawPointer, of object: ObjectBase) -> Bool
    /// Writes the value of an unmanaged object to its place in a file.
    static func write(at address: UnsafeMutableRawPointer, to target: _WriteTarget)
    /// From now on the value is in the file; a collection that somebody may hold becomes the one in the file.
    static func manage(at address: UnsafeMutableRawPointer, of object: ObjectBase, slot: UInt16)
    /// As `manage`, for an accessor that nobody has seen yet.
    static func setManaged(at address: UnsafeMutableRawPointer, slot: UInt16)
    static func setTrace(at address: UnsafeMutableRawPointer, number: UInt32)
    /// The default that a property of a mapped type was declared with, in a fresh instance.
    static func mappedValue(at address: UnsafeMutableRawPointer) -> Any?
    /// The value of a managed object in its Swift type.
    static func collection(of object: ObjectBase, slot: Int) -> Any?
}

extension AnyPersisted {
    static var valueType: (any _Persistable.Type)? { nil }
    static func mappedValue(at address: UnsafeMutableRawPointer) -> Any? { nil }
}

/// `Persisted` of any type.
protocol AnyWrapper: AnyPersisted {}

struct PropertyDeclaration {
    var flags: _PropertyFlags
    /// The wrapper holds something that has to be released when it is overwritten.
    var holdsValue: Bool
    /// Of linking objects.
    var originProperty: String?
}

extension Persisted: AnyWrapper {
    static var shape: _PropertyShape { Value._shape }
    static var valueType: (any _Persistable.Type)? { Value.self }

    private static func pointer(_ address: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Persisted<Value>> {
        address.assumingMemoryBound(to: Persisted<Value>.self)
    }

    static func declaration(at address: UnsafeMutableRawPointer) -> PropertyDeclaration {
        switch pointer(address).pointee.storage {
        case .unset(let flags): PropertyDeclaration(flags: flags, holdsValue: false)
        case .value(let value, let flags):
            PropertyDeclaration(flags: flags, holdsValue: true, originProperty: (value as? any AnyLinkingObjects)?.originProperty)
        case .managed, .trace: PropertyDeclaration(flags: [], holdsValue: false)
        }
    }

    private static func value(at address: UnsafeMutableRawPointer) -> Value? {
        switch pointer(address).pointee.storage {
        case .value(let value, _): return value
        case .unset(let flags):
            let value = Value._default()
            pointer(address).pointee.storage = .value(value, flags)
            return value
        case .managed, .trace: return nil
        }
    }

    static func load(at address: UnsafeMutableRawPointer) -> Any? { value(at: address).flatMap { Value._toDynamic($0) } }

    static func store(_ input: Any?, at address: UnsafeMutableRawPointer, of object: ObjectBase) -> Bool {
        guard let value = Value._fromInput(input, into: object) else { return false }
        switch pointer(address).pointee.storage {
        case .value(let old, let flags): pointer(address).pointee.storage = .value(Value._assigned(value, over: old), flags)
        case .unset(let flags): pointer(address).pointee.storage = .value(Value._assigned(value, over: nil), flags)
        case .managed, .trace: return false
        }
        return true
    }

    static func write(at address: UnsafeMutableRawPointer, to target: _WriteTarget) {
        if let value = value(at: address) { Value._write(value, to: target) }
    }

    static func manage(at address: UnsafeMutableRawPointer, of object: ObjectBase, slot: UInt16) {
        if case .value(let value, _) = pointer(address).pointee.storage { Value._bind(value, to: object, Int(slot)) }
        pointer(address).pointee.storage = .managed(slot: slot)
    }

    static func setManaged(at address: UnsafeMutableRawPointer, slot: UInt16) {
        pointer(address).pointee.storage = .managed(slot: slot)
    }

    static func setTrace(at address: UnsafeMutableRawPointer, number: UInt32) {
        pointer(address).pointee.storage = .trace(number)
    }

    static func mappedValue(at address: UnsafeMutableRawPointer) -> Any? {
        guard case .value(let value, _) = pointer(address).pointee.storage, let mapped = ValueInput.unwrap(value),
            mapped is any _CustomPersistable
        else { return nil }
        // Of the property's own type, so optional where that is.
        return value
    }

    static func collection(of object: ObjectBase, slot: Int) -> Any? { Value._get(object, slot) }
}
