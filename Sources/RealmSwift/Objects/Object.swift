import Foundation
internal import SharedStore

/// The base class of models.
///
///     class Person: Object {
///         @Persisted(primaryKey: true) var id: ObjectId
///         @Persisted var name: String
///         @Persisted var dogs: List<Dog>
///     }
///
/// Classes need no registration: all of the process are found at the first opening of a Realm, unless the configuration names
/// the classes itself (`objectTypes`).
open class Object: ObjectBase, _LinkedObject {
    public typealias PersistedType = Object

    /// An object that is in no Realm, with the defaults of its properties.
    public override init() { super.init() }

    /// An unmanaged object with values from a dictionary by property name, an array in the order of the properties, or another
    /// object.
    ///
    /// Links, embedded objects and collections may be given in the same forms. Properties that are not mentioned keep their
    /// default. A value that does not fit stops the process.
    public convenience init(value: Any) {
        self.init()
        ValueInput.populate(self, with: value)
    }

    /// The class, and each property with its value; objects within objects down to the fifth level.
    open override var description: String { super.description }

    /// For classes without `@Persisted`; not used otherwise.
    open class func primaryKey() -> String? { nil }
    /// Of classes without `@Persisted`: names of properties that are not stored. For overriding.
    open class func ignoredProperties() -> [String] { [] }
    /// Of classes without `@Persisted`: names of properties with an index. For overriding.
    open class func indexedProperties() -> [String] { [] }
    /// The names in the file of properties that are called otherwise there, by their names in Swift. For overriding.
    open override class func propertiesMapping() -> [String: String] { [:] }

    /// The value of a property in its persisted form; see `value(forKey:)`.
    open subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }
}

/// A model whose objects live in exactly one other object, and end with it.
///
/// They are reached through links, lists and maps; they have no primary key and cannot be added to a Realm by themselves.
open class EmbeddedObject: ObjectBase, _LinkedObject {
    public typealias PersistedType = EmbeddedObject

    /// An object that is in no Realm, with the defaults of its properties.
    public override init() { super.init() }

    /// See `Object.init(value:)`.
    public convenience init(value: Any) {
        self.init()
        ValueInput.populate(self, with: value)
    }

    /// True.
    public static override func isEmbedded() -> Bool { true }

    /// The class, and each property with its value; objects within objects down to the fifth level.
    open override var description: String { super.description }
    /// Of classes without `@Persisted`: names of properties that are not stored. For overriding.
    open class func ignoredProperties() -> [String] { [] }
    /// The names in the file of properties that are called otherwise there, by their names in Swift. For overriding.
    open override class func propertiesMapping() -> [String: String] { [:] }

    /// A property by its name, as in `Object`.
    open subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }
}

// MARK: Links

/// A class of objects that can stand behind a link.
public protocol _LinkedObject: ObjectBase, _PersistableInsideOptional, _RealmCollectionValueInsideOptional {}

extension _LinkedObject {
    public static var _shape: _PropertyShape { _PropertyShape(.object, objectClass: self) }

    public static func _from(_ stored: _Stored) -> Self {
        guard let object = stored.object(as: self) as? Self else { stored.mismatch(self) }
        return object
    }

    public func _toStored() -> _Stored { _Stored(.object(shownObject)) }

    @inlinable public static func _getOptional(_ object: ObjectBase, _ slot: Int) -> Self? {
        _getLinked(object, slot, self).map { unsafeDowncast($0, to: Self.self) }
    }

    public static var _iteratesObjects: Bool { true }
    @inlinable public static func _next(_ cursor: _Cursor) -> Self? {
        if cursor.isOverObjects { return _nextObject(cursor).map { unsafeDowncast($0, to: Self.self) } }
        return unsafeDowncast(cursor, to: _ValueCursor<Self>.self).next()
    }
    @inlinable public static func _element(_ elements: _Elements, _ index: Int) -> Self {
        unsafeDowncast(_objectElement(elements, index, self), to: Self.self)
    }

    /// Links are optional, so this is only asked for by classes that the schema refuses, and by mapped types.
    public static func _default() -> Self {
        guard let object = ModelRuntime.make(self) as? Self else {
            misuse("The class '\(self)' has no initializer without parameters")
        }
        return object
    }

    /// An unmanaged object with the defaults of its class, where the class is only known at run time: what `T()` and `type(of:
    /// self).init()` make on Apple systems. `init()` is not `required` here, so that models may override it as they do there; and
    /// so those do not compile.
    public static func unmanaged() -> Self { _default() }

    /// The instance that records how a key path goes on.
    public static func _traceMark() -> Self {
        guard let object = Tracing.scratch(self) as? Self else { misuse("The class '\(self)' cannot be traced") }
        return object
    }
    public static func _traceDefault() -> Self { _traceMark() }
}
