internal import SharedStore

/// A property of a class of the older form that can be nil: `let age = RealmOptional<Int>()`.
///
/// New code writes `@Persisted var age: Int?`.
public final class RealmOptional<Value: RealmOptionalType> {
    let cell: LegacyCell<Value?>

    public init(_ value: Value? = nil) { cell = LegacyCell(value) }

    /// Of a managed object it can be set in a write transaction only.
    public var value: Value? {
        get { cell.value }
        set { cell.value = newValue }
    }
}

extension RealmOptional: Equatable where Value: Equatable {
    public static func == (a: RealmOptional<Value>, b: RealmOptional<Value>) -> Bool { a.value == b.value }
}

extension RealmOptional: CustomStringConvertible {
    public var description: String { value.map { "\($0)" } ?? "nil" }
}

extension RealmOptional: Codable where Value: Codable, Value: _RealmSchemaDiscoverable {
    /// From a value, or null.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self.init(container.decodeNil() ? nil : try container.decode(Value.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value { try container.encode(value) } else { try container.encodeNil() }
    }
}

extension RealmOptionalType {
    /// Empty: the type is no class of a Realm.
    public static func className() -> String { "" }
}

/// Types that `RealmProperty` can hold.
public protocol RealmPropertyType {
    static func _legacyDefault() -> Self
}

extension AnyRealmValue: RealmPropertyType {
    public static func _legacyDefault() -> AnyRealmValue { .none }
}

extension Optional: RealmPropertyType where Wrapped: RealmOptionalType & _RealmSchemaDiscoverable {
    public static func _legacyDefault() -> Wrapped? { nil }
}

/// A property of a class of the older form: `let age = RealmProperty<Int?>()`, `let anything = RealmProperty<AnyRealmValue>()`.
///
/// New code writes `@Persisted var age: Int?`.
public final class RealmProperty<Value: RealmPropertyType> {
    let cell: LegacyCell<Value>

    /// With the default of the type: nil, or `.none`.
    public init() { cell = LegacyCell(Value._legacyDefault()) }

    /// Of a managed object it can be set in a write transaction only.
    public var value: Value {
        get { cell.value }
        set { cell.value = newValue }
    }
}

extension RealmProperty: CustomStringConvertible {
    public var description: String { "\(value)" }
}

extension RealmProperty: Equatable where Value: Equatable {
    public static func == (a: RealmProperty<Value>, b: RealmProperty<Value>) -> Bool { a.value == b.value }
}

extension RealmProperty: Codable where Value: Codable {
    /// From a value, or null.
    public convenience init(from decoder: any Decoder) throws {
        self.init()
        value = try decoder.singleValueContainer().decode(Value.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

/// What a property of the older form holds, or where in the file it stands.
final class LegacyCell<Value> {
    private var unmanaged: Value
    /// An accessor of its own, so that the property may outlive the object without a cycle of references.
    private var place: (accessor: ObjectBase, slot: Int)?

    init(_ value: Value) { unmanaged = value }

    var value: Value {
        get { place.map { LegacyCell.value(_readCell($0.accessor, $0.slot)) } ?? unmanaged }
        set {
            if let place { _writeCell(place.accessor, place.slot, LegacyCell.stored(newValue)) } else { unmanaged = newValue }
        }
    }

    func bind(to object: ObjectBase, _ slot: Int) {
        guard let type = object.managedType else { return }
        place = (type.makeDynamicAccessor(ObjectKey(object.objectKey)), slot)
    }

    // The protocols that the application sees say nothing about storing, so that is looked up.

    private static var storable: any (_Storable & _RealmSchemaDiscoverable).Type {
        guard let type = Value.self as? any (_Storable & _RealmSchemaDiscoverable).Type else {
            misuse("Values of type '\(Value.self)' cannot be stored")
        }
        return type
    }

    static var shape: _PropertyShape { storable._shape }

    static func value(_ stored: _Stored) -> Value {
        func value<S: _Storable>(_ type: S.Type) -> Any { S._from(stored) }
        guard let value = value(storable) as? Value else { stored.mismatch(Value.self) }
        return value
    }

    static func stored(_ value: Value) -> _Stored { (value as? any _Storable)?._toStored() ?? .null }
}
