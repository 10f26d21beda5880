import Foundation

// What a type must be able to do to stand in a property, in a collection, in a sort or in a sum. Application code meets these
// names in constraints only; it conforms to `PersistableEnum`, `CustomPersistable` and `FailableCustomPersistable` instead.

/// A type and the one that is stored for it. For most types both are the same.
public protocol _HasPersistedType {
    /// The stored type: of an enum its raw value, of a mapped type the type that it is mapped to, else the type itself.
    associatedtype PersistedType
}

/// A type that knows how a property of it looks in a schema.
public protocol _RealmSchemaDiscoverable {
    static var _shape: _PropertyShape { get }
}

/// A value that fits into one place: a column cell or an element of a collection.
public protocol _Storable {
    /// The value from its place. A value that the type cannot show, such as a raw value without an enum case, stops the process.
    static func _from(_ stored: _Stored) -> Self
    /// The same for an optional place: nil for null, and where the type cannot show the value.
    static func _fromOptional(_ stored: _Stored) -> Self?
    func _toStored() -> _Stored
}

extension _Storable {
    public static func _fromOptional(_ stored: _Stored) -> Self? { stored.isNull ? nil : _from(stored) }
}

/// A type that `@Persisted` can wrap.
public protocol _Persistable: _RealmSchemaDiscoverable, _HasPersistedType
where PersistedType: _Persistable, PersistedType.PersistedType.PersistedType == PersistedType.PersistedType {
    /// Value of the property in `slot` of a managed object.
    static func _get(_ object: ObjectBase, _ slot: Int) -> Self
    static func _set(_ object: ObjectBase, _ slot: Int, _ value: Self)
    /// Value of a property without an explicit default. Need not be the same at each call: the wrapper keeps the first one.
    static func _default() -> Self
    /// True where the default is a new identifier each time, which must be made only once for each property.
    static var _isDefaultFresh: Bool { get }
    /// What a property of an unmanaged object holds after `new` was assigned to it while it held `old` (nil: not read yet).
    static func _assigned(_ new: Self, over old: Self?) -> Self
    /// A value that is recognised when a key path is traced.
    static func _traceMark() -> Self
    /// A value that what a key path computes from it will bear.
    static func _traceDefault() -> Self
    /// The value for the dynamic API: persisted form, collections as they are.
    static func _toDynamic(_ value: Self) -> Any?
    /// The value for what the dynamic API or `init(value:)` was given; nil where it does not fit.
    static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Self?
    /// Writes the value of a property to its place in a file; objects that are in no file yet are added to it.
    static func _write(_ value: Self, to target: _WriteTarget)
    /// Makes a collection that the property of an unmanaged object holds the one that the file has for it.
    static func _bind(_ value: Self, to object: ObjectBase, _ slot: Int)
    /// The value of a wrapper at an address as it would be stored, for types that are no collections.
    static func _peek(_ wrapper: UnsafeMutableRawPointer) -> _Stored
    /// Writes the value of a wrapper at an address to a new row, if it is one that needs nothing else in the file, and ties the
    /// wrapper to `slot`.
    ///
    /// - Parameter row: nil: the row has the value already.
    static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int)
}

/// A type of which `@Persisted` can wrap an optional.
public protocol _PersistableInsideOptional: _Persistable, _Storable where PersistedType: _PersistableInsideOptional {
    /// Value of an optional property in `slot` of a managed object.
    static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Self?
    /// What stands in for an optional value while a key path is traced; nil where the type cannot show a stand-in.
    static func _optionalTraceMark() -> Self?
    static func _optionalTraceDefault() -> Self?
}

extension _PersistableInsideOptional {
    public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Self? { _fromOptional(_readCell(object, slot)) }
    public static func _optionalTraceMark() -> Self? { _traceMark() }
    public static func _optionalTraceDefault() -> Self? { _traceDefault() }
}

/// A type that can be made without arguments.
public protocol _DefaultConstructible {
    init()
}

extension _Persistable where Self: _DefaultConstructible {
    public static func _default() -> Self { Self() }
}

extension _Persistable {
    @inlinable public static var _isDefaultFresh: Bool { false }
    @inlinable public static func _assigned(_ new: Self, over old: Self?) -> Self { new }
    public static func _traceMark() -> Self { _default() }
    public static func _traceDefault() -> Self { _default() }
    public static func _bind(_ value: Self, to object: ObjectBase, _ slot: Int) {}
    public static func _peek(_ wrapper: UnsafeMutableRawPointer) -> _Stored { .null }
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        misuse("'\(Self.self)' does not fit into a cell")
    }
}

extension _Persistable where Self: _Storable {
    public static func _get(_ object: ObjectBase, _ slot: Int) -> Self { _from(_readCell(object, slot)) }
    public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Self) { _writeCell(object, slot, value._toStored()) }
    public static func _write(_ value: Self, to target: _WriteTarget) { target.write(value._toStored()) }
    public static func _peek(_ wrapper: UnsafeMutableRawPointer) -> _Stored {
        switch wrapper.assumingMemoryBound(to: Persisted<Self>.self).pointee.storage {
        case .value(let value, _): return value._toStored()
        case .unset(let flags):
            // A fresh identifier stays the same from now on.
            let value = _default()
            wrapper.assumingMemoryBound(to: Persisted<Self>.self).pointee.storage = .value(value, flags)
            return value._toStored()
        case .managed, .trace: return .null
        }
    }
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let row { row.set(_peek(wrapper), slot) }
        wrapper.assumingMemoryBound(to: Persisted<Self>.self).pointee.storage = .managed(slot: UInt16(truncatingIfNeeded: slot))
    }
    public static func _toDynamic(_ value: Self) -> Any? { value._toStored().dynamicValue }
    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Self? {
        guard let stored = ValueInput.convert(input, to: _shape) else { return nil }
        return _from(stored)
    }
}

/// An element of a collection.
public protocol RealmCollectionValue: Hashable, _HasPersistedType, _Storable where PersistedType: RealmCollectionValue {
    /// The shape of a property that holds one value of the type.
    static var _elementShape: _PropertyShape { get }
    /// Objects are handed out by an iteration as it comes to them, values are made before it begins.
    static var _iteratesObjects: Bool { get }
    /// The next element of an iteration.
    static func _next(_ cursor: _Cursor) -> Self?
    /// An iteration over a collection in a file, where there is a quick way to read its elements.
    static func _cursor(_ elements: _Elements) -> _Cursor?
    /// Element `index` of a collection in a file.
    static func _element(_ elements: _Elements, _ index: Int) -> Self
}

extension RealmCollectionValue {
    public static var _iteratesObjects: Bool { false }
    public static func _cursor(_ elements: _Elements) -> _Cursor? { nil }
    @inlinable public static func _next(_ cursor: _Cursor) -> Self? { unsafeDowncast(cursor, to: _ValueCursor<Self>.self).next() }
    public static func _element(_ elements: _Elements, _ index: Int) -> Self { _from(elements.value(index)) }
}

extension RealmCollectionValue where Self: _RealmSchemaDiscoverable {
    public static var _elementShape: _PropertyShape { _shape }
}

/// An element of which a collection can hold an optional.
public protocol _RealmCollectionValueInsideOptional: RealmCollectionValue
where PersistedType: _RealmCollectionValueInsideOptional {}

/// A key of a `Map`.
public protocol _MapKey: RealmCollectionValue {
    init(_mapKey: String)
    var _mapKey: String { get }
}

extension String: _MapKey {
    public init(_mapKey: String) { self = _mapKey }
    public var _mapKey: String { self }
}

// MARK: Markers

/// Types of which a collection can find the least and the greatest value.
@_marker public protocol MinMaxType {}
/// Types of which a collection can make a sum and an average.
@_marker public protocol AddableType {}
/// Types by which a collection can be sorted with a key path.
@_marker public protocol SortableType {}
/// Elements whose collections can be sorted by key path.
@_marker public protocol KeypathSortable {}
/// Types of which a property can be indexed.
@_marker public protocol _Indexable {}
/// Types of which a property can be the primary key.
@_marker public protocol _PrimaryKey {}

extension Double: MinMaxType, AddableType, SortableType {}
extension Float: MinMaxType, AddableType, SortableType {}
extension Int: MinMaxType, AddableType, SortableType, _Indexable, _PrimaryKey {}
extension Int8: MinMaxType, AddableType, SortableType, _Indexable, _PrimaryKey {}
extension Int16: MinMaxType, AddableType, SortableType, _Indexable, _PrimaryKey {}
extension Int32: MinMaxType, AddableType, SortableType, _Indexable, _PrimaryKey {}
extension Int64: MinMaxType, AddableType, SortableType, _Indexable, _PrimaryKey {}
extension Bool: _Indexable, _PrimaryKey {}
extension String: SortableType, _Indexable, _PrimaryKey {}
extension Data: SortableType {}
extension Date: MinMaxType, SortableType, _Indexable {}
extension Decimal128: MinMaxType, AddableType, SortableType {}
extension ObjectId: _Indexable, _PrimaryKey {}
extension UUID: _Indexable, _PrimaryKey {}
extension AnyRealmValue: MinMaxType, AddableType, SortableType, _Indexable {}
extension NSNumber: MinMaxType, AddableType {}
extension NSDate: MinMaxType {}
extension Optional: MinMaxType where Wrapped: MinMaxType {}
extension Optional: AddableType where Wrapped: AddableType {}
extension Optional: SortableType where Wrapped: SortableType {}
extension Optional: _Indexable where Wrapped: _Indexable {}
extension Optional: _PrimaryKey where Wrapped: _PrimaryKey {}
extension ObjectBase: KeypathSortable {}

extension NSNumber: _HasPersistedType {
    public typealias PersistedType = NSNumber
}
extension NSDate: _HasPersistedType {
    public typealias PersistedType = NSDate
}

/// `Optional`, for constraints.
public protocol OptionalProtocol {
    associatedtype Wrapped
    static func _wrap(_ value: Wrapped?) -> Self
    var _wrappedValue: Wrapped? { get }
}

extension Optional: OptionalProtocol {
    public static func _wrap(_ value: Wrapped?) -> Wrapped? { value }
    public var _wrappedValue: Wrapped? { self }
}

extension OptionalProtocol {
    /// For values that are known as `Any` only.
    var _anyWrapped: Any? { _wrappedValue }
}
