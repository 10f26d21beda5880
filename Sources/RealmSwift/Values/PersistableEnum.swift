/// Types of which the older API could store an optional.
public protocol RealmOptionalType {}

extension Int: RealmOptionalType {}
extension Int8: RealmOptionalType {}
extension Int16: RealmOptionalType {}
extension Int32: RealmOptionalType {}
extension Int64: RealmOptionalType {}
extension Float: RealmOptionalType {}
extension Double: RealmOptionalType {}
extension Bool: RealmOptionalType {}

/// The name of enums that can be stored, from before `PersistableEnum`: their raw values are what is stored.
///
///     enum Size: Int, RealmEnum { case small, large }
///     class Shirt: Object { let size = RealmOptional<Size>() }
///
/// A class of the older form can have such an enum in a `RealmOptional` or `RealmProperty`; `@Persisted` wants a
/// `PersistableEnum`.
public protocol RealmEnum: RealmOptionalType, _RealmSchemaDiscoverable, _Storable {}

extension RealmEnum where Self: RawRepresentable, RawValue: _PersistableInsideOptional {
    public static var _shape: _PropertyShape { RawValue._shape }
    public static func _from(_ stored: _Stored) -> Self {
        let raw = RawValue._from(stored)
        guard let value = Self(rawValue: raw) else { refuseRawValue(raw, Self.self) }
        return value
    }
    public static func _fromOptional(_ stored: _Stored) -> Self? {
        RawValue._fromOptional(stored).flatMap { Self(rawValue: $0) }
    }
    public func _toStored() -> _Stored { rawValue._toStored() }
}

/// An enum that is stored as its raw value, an integer or a text.
///
///     enum Size: String, PersistableEnum { case small, large }
///
/// A property without a default begins with the first case. A raw value in the file that has no case reads as nil where the
/// property is optional, and stops the process where it is not.
public protocol PersistableEnum: _PersistableInsideOptional, RawRepresentable, CaseIterable, RealmEnum,
    _RealmCollectionValueInsideOptional, MinMaxType, Comparable, _DefaultConstructible
where RawValue: Comparable {
    associatedtype PersistedType = RawValue
}

extension PersistableEnum {
    /// The first case.
    public init() {
        guard let first = Self.allCases.first else { misuse("The enum '\(Self.self)' has no cases") }
        self = first
    }

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

extension PersistableEnum where PersistedType == RawValue {
    public static var _shape: _PropertyShape { PersistedType._shape }
    public static func _from(_ stored: _Stored) -> Self {
        let raw = PersistedType._from(stored)
        guard let value = Self(rawValue: raw) else { refuseRawValue(raw, Self.self) }
        return value
    }
    public static func _fromOptional(_ stored: _Stored) -> Self? {
        PersistedType._fromOptional(stored).flatMap { Self(rawValue: $0) }
    }
    public func _toStored() -> _Stored { rawValue._toStored() }
    /// The second case where there is one: the first one is what computed properties are likely to give.
    public static func _traceMark() -> Self { allCases.dropFirst().first ?? Self() }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Self? {
        if let value = input as? Self { return value }
        return ValueInput.convert(input, to: _shape).flatMap { _fromOptional($0) }
    }
}

private func refuseRawValue(_ raw: Any, _ type: Any.Type) -> Never {
    misuse(
        "The enum '\(type)' has no case with the raw value '\(raw)'. A property that a migration has added is 0 or empty until the migration block sets it; an optional property reads as nil."
    )
}
