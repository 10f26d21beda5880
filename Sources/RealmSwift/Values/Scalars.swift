import Foundation
internal import SharedStore

// The scalar types that a property can have. Each reads and writes its cell with a function of this library that is not
// inlined into the application; see `Persisted`.

extension Int: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Int
    public static var _shape: _PropertyShape { _PropertyShape(.int) }
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(int: Int64(value), slot) }
    }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Int { _getInt(object, slot) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Int? { _getOptionalInt(object, slot) }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Int) { _setInt(object, slot, value) }
    @inlinable public static func _element(_ elements: _Elements, _ index: Int) -> Int { _intElement(elements, index) }
    public static func _cursor(_ elements: _Elements) -> _Cursor? { elements.ints().map { _ValueCursor($0) } }
    public static func _from(_ stored: _Stored) -> Int { Int(truncatingIfNeeded: stored.integer(Int.self)) }
    public func _toStored() -> _Stored { _Stored(.int(Int64(self))) }
    /// Marks of numbers are such that a model may double or square them.
    public static func _traceMark() -> Int { -1_234_567_891 }
}

extension Int8: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Int8
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(int: Int64(value), slot) }
    }
    public static var _shape: _PropertyShape { _PropertyShape(.int) }
    /// A stored number that the type cannot hold is cut off at its upper bits.
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Int8 {
        Int8(truncatingIfNeeded: _getInt(object, slot))
    }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Int8? {
        _getOptionalInt(object, slot).map { Int8(truncatingIfNeeded: $0) }
    }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Int8) { _setInt(object, slot, Int(value)) }
    public static func _from(_ stored: _Stored) -> Int8 { Int8(truncatingIfNeeded: stored.integer(Int8.self)) }
    public func _toStored() -> _Stored { _Stored(.int(Int64(self))) }
    public static func _traceMark() -> Int8 { -11 }
}

extension Int16: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Int16
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(int: Int64(value), slot) }
    }
    public static var _shape: _PropertyShape { _PropertyShape(.int) }
    /// A stored number that the type cannot hold is cut off at its upper bits.
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Int16 {
        Int16(truncatingIfNeeded: _getInt(object, slot))
    }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Int16? {
        _getOptionalInt(object, slot).map { Int16(truncatingIfNeeded: $0) }
    }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Int16) { _setInt(object, slot, Int(value)) }
    public static func _from(_ stored: _Stored) -> Int16 { Int16(truncatingIfNeeded: stored.integer(Int16.self)) }
    public func _toStored() -> _Stored { _Stored(.int(Int64(self))) }
    public static func _traceMark() -> Int16 { -173 }
}

extension Int32: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Int32
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(int: Int64(value), slot) }
    }
    public static var _shape: _PropertyShape { _PropertyShape(.int) }
    /// A stored number that the type cannot hold is cut off at its upper bits.
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Int32 {
        Int32(truncatingIfNeeded: _getInt(object, slot))
    }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Int32? {
        _getOptionalInt(object, slot).map { Int32(truncatingIfNeeded: $0) }
    }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Int32) { _setInt(object, slot, Int(value)) }
    public static func _from(_ stored: _Stored) -> Int32 { Int32(truncatingIfNeeded: stored.integer(Int32.self)) }
    public func _toStored() -> _Stored { _Stored(.int(Int64(self))) }
    public static func _traceMark() -> Int32 { -31_337 }
}

extension Int64: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Int64
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(int: Int64(value), slot) }
    }
    public static var _shape: _PropertyShape { _PropertyShape(.int) }
    /// A stored number that the type cannot hold is cut off at its upper bits.
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Int64 {
        Int64(truncatingIfNeeded: _getInt(object, slot))
    }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Int64? {
        _getOptionalInt(object, slot).map { Int64(truncatingIfNeeded: $0) }
    }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Int64) { _setInt(object, slot, Int(value)) }
    public static func _from(_ stored: _Stored) -> Int64 { Int64(truncatingIfNeeded: stored.integer(Int64.self)) }
    public func _toStored() -> _Stored { _Stored(.int(Int64(self))) }
    public static func _traceMark() -> Int64 { -1_234_567_891 }
}

extension Bool: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Bool
    public static var _shape: _PropertyShape { _PropertyShape(.bool) }
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(bool: value, slot) }
    }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Bool { _getBool(object, slot) }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Bool) { _setBool(object, slot, value) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Bool? { _getOptionalBool(object, slot) }
    public static func _from(_ stored: _Stored) -> Bool {
        guard case .plain(.bool(let value)) = stored.content else { stored.mismatch(Bool.self) }
        return value
    }
    public func _toStored() -> _Stored { _Stored(.bool(self)) }
    public static func _traceMark() -> Bool { true }
}

extension Float: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Float
    public static var _shape: _PropertyShape { _PropertyShape(.float) }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Float { _getFloat(object, slot) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Float? { _getOptionalFloat(object, slot) }
    public static func _from(_ stored: _Stored) -> Float {
        guard case .plain(.float(let value)) = stored.content else { stored.mismatch(Float.self) }
        return value
    }
    public func _toStored() -> _Stored { _Stored(.float(self)) }
    public static func _traceMark() -> Float { -3.125e-17 }
}

extension Double: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Double
    public static var _shape: _PropertyShape { _PropertyShape(.double) }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Double { _getDouble(object, slot) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Double? { _getOptionalDouble(object, slot) }
    public static func _from(_ stored: _Stored) -> Double {
        guard case .plain(.double(let value)) = stored.content else { stored.mismatch(Double.self) }
        return value
    }
    public func _toStored() -> _Stored { _Stored(.double(self)) }
    public static func _traceMark() -> Double { -3.125e-117 }
}

extension String: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = String
    public static var _shape: _PropertyShape { _PropertyShape(.string) }
    public static func _move(_ wrapper: UnsafeMutableRawPointer, to row: _NewRow?, _ slot: Int) {
        if let value = taken(from: wrapper, slot), let row { row.set(string: value, slot) }
    }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> String { _getString(object, slot) }
    @inlinable public static func _set(_ object: ObjectBase, _ slot: Int, _ value: String) { _setString(object, slot, value) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> String? { _getOptionalString(object, slot) }
    public static func _from(_ stored: _Stored) -> String {
        guard case .plain(.string(let value)) = stored.content else { stored.mismatch(String.self) }
        return value
    }
    public func _toStored() -> _Stored { _Stored(.string(self)) }
    public static func _traceMark() -> String { "\u{F8FF}traced\u{F8FF}" }
}

extension Data: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Data
    public static var _shape: _PropertyShape { _PropertyShape(.data) }
    public static func _from(_ stored: _Stored) -> Data {
        guard case .plain(.binary(let value)) = stored.content else { stored.mismatch(Data.self) }
        return Data(value)
    }
    public func _toStored() -> _Stored { _Stored(.binary([UInt8](self))) }
    public static func _traceMark() -> Data { Data([0xF8, 0xFF, 0x17, 0x2B]) }
}

extension Date: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Date
    public static var _shape: _PropertyShape { _PropertyShape(.date) }
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Date { _getDate(object, slot) }
    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Date? { _getOptionalDate(object, slot) }
    public static func _from(_ stored: _Stored) -> Date {
        guard case .plain(.timestamp(let value)) = stored.content else { stored.mismatch(Date.self) }
        return Date(value)
    }
    public func _toStored() -> _Stored { _Stored(.timestamp(Timestamp(self))) }
    public static func _traceMark() -> Date { Date(timeIntervalSinceReferenceDate: -0.123456789) }
}

extension Decimal128: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = Decimal128
    public static var _shape: _PropertyShape { _PropertyShape(.decimal128) }
    public static func _from(_ stored: _Stored) -> Decimal128 {
        guard case .plain(.decimal(let value)) = stored.content else { stored.mismatch(Decimal128.self) }
        return Decimal128(value)
    }
    public func _toStored() -> _Stored { _Stored(.decimal(bits)) }
    public static func _traceMark() -> Decimal128 { Decimal128(floatLiteral: -3.125e-117) }
}

extension ObjectId: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = ObjectId
    public static var _shape: _PropertyShape { _PropertyShape(.objectId) }
    /// Fresh, so that it can serve as a primary key at once.
    public static func _default() -> ObjectId { .generate() }
    @inlinable public static var _isDefaultFresh: Bool { true }
    public static func _from(_ stored: _Stored) -> ObjectId {
        guard case .plain(.objectId(let value)) = stored.content else { stored.mismatch(ObjectId.self) }
        return ObjectId(value)
    }
    public func _toStored() -> _Stored { _Stored(.objectId(value)) }
    public static func _traceMark() -> ObjectId { ObjectId(ObjectIdValue(high: 0xF8FF_7EA1_5EED_0001, low: 17)) }
}

extension UUID: _PersistableInsideOptional, _RealmCollectionValueInsideOptional, _DefaultConstructible {
    public typealias PersistedType = UUID
    @inlinable public static var _isDefaultFresh: Bool { true }
    public static var _shape: _PropertyShape { _PropertyShape(.UUID) }
    public static func _from(_ stored: _Stored) -> UUID {
        guard case .plain(.uuid(let value)) = stored.content else { stored.mismatch(UUID.self) }
        return UUID(value)
    }
    public func _toStored() -> _Stored { _Stored(.uuid(UUIDValue(self))) }
    public static func _traceMark() -> UUID { UUID(UUIDValue(high: 0xF8FF_7EA1_5EED_0001, low: 17)) }
}

extension _Stored {
    func integer(_ type: Any.Type) -> Int64 {
        guard case .plain(.int(let value)) = content else { mismatch(type) }
        return value
    }
}

// MARK: Optionals

extension Optional: _RealmSchemaDiscoverable where Wrapped: _RealmSchemaDiscoverable {
    public static var _shape: _PropertyShape { Wrapped._shape.optional() }
}

extension Optional: _HasPersistedType where Wrapped: _HasPersistedType {
    public typealias PersistedType = Wrapped.PersistedType?
}

extension Optional: _Storable where Wrapped: _Storable {
    public static func _from(_ stored: _Stored) -> Wrapped? { Wrapped._fromOptional(stored) }
    public static func _fromOptional(_ stored: _Stored) -> Wrapped?? { .some(Wrapped._fromOptional(stored)) }
    public func _toStored() -> _Stored { map { $0._toStored() } ?? .null }
}

extension Optional: _Persistable where Wrapped: _PersistableInsideOptional {
    @inlinable public static func _get(_ object: ObjectBase, _ slot: Int) -> Wrapped? { Wrapped._getOptional(object, slot) }
    public static func _default() -> Wrapped? { nil }
    public static func _traceMark() -> Wrapped? { Wrapped._optionalTraceMark() }
    public static func _traceDefault() -> Wrapped? { Wrapped._optionalTraceDefault() }
}

extension Optional: RealmCollectionValue where Wrapped: _RealmCollectionValueInsideOptional {
    public static var _elementShape: _PropertyShape { Wrapped._elementShape.optional() }
}

extension _Persistable {
    /// The value that a wrapper held until now, nil where it holds none: it is tied to `slot`.
    @inline(__always)
    fileprivate static func taken(from wrapper: UnsafeMutableRawPointer, _ slot: Int) -> Self? {
        let wrapper = wrapper.assumingMemoryBound(to: Persisted<Self>.self)
        guard case .value(let value, _) = wrapper.pointee.storage else {
            wrapper.pointee.storage = .managed(slot: UInt16(truncatingIfNeeded: slot))
            return nil
        }
        wrapper.pointee.storage = .managed(slot: UInt16(truncatingIfNeeded: slot))
        return value
    }
}
