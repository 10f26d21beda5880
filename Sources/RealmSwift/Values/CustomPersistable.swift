/// What `CustomPersistable` and `FailableCustomPersistable` have in common.
public protocol _CustomPersistable: _PersistableInsideOptional, _RealmCollectionValueInsideOptional {}

/// A type that is stored as another one: any type that a property can have, but for optionals, collections and top-level objects.
///
///     extension Color: CustomPersistable {
///         init(persistedValue: Int) { self.init(rgb: persistedValue) }
///         var persistableValue: Int { rgb }
///     }
///
/// The schema shows the persisted type, so a property can change between both without a migration.
public protocol CustomPersistable: _CustomPersistable {
    associatedtype PersistedType
    init(persistedValue: PersistedType)
    var persistableValue: PersistedType { get }
}

/// As `CustomPersistable`, for types that not every stored value can be turned into.
///
/// A value that cannot be turned reads as nil where the property is optional, and stops the process where it is not.
public protocol FailableCustomPersistable: _CustomPersistable {
    associatedtype PersistedType
    init?(persistedValue: PersistedType)
    var persistableValue: PersistedType { get }
}

extension _CustomPersistable {
    @inlinable public static var _isDefaultFresh: Bool { PersistedType._isDefaultFresh }
    public static var _shape: _PropertyShape {
        var shape = PersistedType._shape
        shape.isMappedObject = shape.type == .object
        return shape
    }

    /// What a mapped type must be able to show anyway: the marks of other types may be more than an initializer of the
    /// application bears.
    fileprivate static var traceValue: PersistedType { PersistedType._default() }

    /// The persisted value; an embedded object that was never set reads as a new one.
    fileprivate static func persisted(_ stored: _Stored) -> PersistedType {
        stored.isNull ? PersistedType._default() : PersistedType._from(stored)
    }
}

extension CustomPersistable {
    public static func == (a: Self, b: Self) -> Bool { a.persistableValue == b.persistableValue }
    public func hash(into hasher: inout Hasher) { hasher.combine(persistableValue) }

    public static func _default() -> Self { Self(persistedValue: PersistedType._default()) }
    public static func _from(_ stored: _Stored) -> Self { Self(persistedValue: persisted(stored)) }
    public func _toStored() -> _Stored { persistableValue._toStored() }
    public static func _traceMark() -> Self { Self(persistedValue: traceValue) }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Self? {
        if let value = input as? Self { return value }
        return PersistedType._fromInput(input, into: object).map { Self(persistedValue: $0) }
    }
}

extension FailableCustomPersistable {
    public static func == (a: Self, b: Self) -> Bool { a.persistableValue == b.persistableValue }
    public func hash(into hasher: inout Hasher) { hasher.combine(persistableValue) }

    private static func make(_ persisted: PersistedType) -> Self {
        guard let value = Self(persistedValue: persisted) else {
            misuse("Failed to convert persisted value '\(persisted)' to type '\(Self.self)' in a non-optional context.")
        }
        return value
    }

    public static func _default() -> Self { make(PersistedType._default()) }
    public static func _from(_ stored: _Stored) -> Self { make(persisted(stored)) }
    public static func _fromOptional(_ stored: _Stored) -> Self? {
        stored.isNull ? nil : Self(persistedValue: PersistedType._from(stored))
    }
    public func _toStored() -> _Stored { persistableValue._toStored() }
    public static func _traceMark() -> Self { make(traceValue) }
    public static func _optionalTraceMark() -> Self? { Self(persistedValue: traceValue) }
    public static func _optionalTraceDefault() -> Self? { _optionalTraceMark() }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Self? {
        if let value = input as? Self { return value }
        return PersistedType._fromInput(input, into: object).flatMap { Self(persistedValue: $0) }
    }
}
