import Foundation
internal import CShims
internal import SharedStore

/// What `Object` and `EmbeddedObject` have in common.
///
/// An object is *unmanaged* until it is added to a Realm: it then holds plain values. A *managed* object holds none; it reads
/// from the file at each access, and may only be used where its Realm may. Initializers must be free of side effects, since the
/// library makes objects by itself, and does so without calling `init()` where a class has nothing but persisted properties. A
/// managed object of such a class to which nobody refers any more may be handed out again for another object of the Realm: a
/// `deinit` runs later and less often than objects seem to come and go.
open class ObjectBase: Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    // The place in the file. All of it is changed on the thread of the session only; a frozen object, which several threads
    // may read, is placed when it is made and never changed again.
    /// What the session knows of the class; nil for an unmanaged object. Kept alive by the session.
    @exclusivity(unchecked) final var block: UnsafeMutablePointer<TableBlock>?
    /// The session, also after the object was deleted.
    @exclusivity(unchecked) final var session: Session?
    /// The stamp of `block` for which `cluster` and `rowIndex` hold; 0 when only the key is known.
    @exclusivity(unchecked) final var stamp: UInt64 = 0
    @exclusivity(unchecked) final var objectKey: Int64 = -1
    @exclusivity(unchecked) final var rowIndex: Int = 0
    @exclusivity(unchecked) final var cluster: Node?
    /// The collections that were handed out, by slot.
    @exclusivity(unchecked) final var collections: [(slot: Int, collection: AnyObject)]?

    /// An object that is in no Realm, with the defaults of its properties.
    public init() {}

    /// The name of the class in the schema: without module and enclosing types.
    public class func className() -> String { String(describing: self) }

    /// False for classes that are to be in a Realm only when a configuration names them.
    open class func shouldIncludeInDefaultSchema() -> Bool { true }

    /// Names of properties in the file where they differ from those in Swift, by Swift name.
    open class func propertiesMapping() -> [String: String] { [:] }

    /// True for classes whose objects live in others.
    public class func isEmbedded() -> Bool { false }

    /// True once the object was deleted, its creation undone or its Realm invalidated. Reading any property then stops the
    /// process.
    public final var isInvalidated: Bool { !isPlaced && block != nil }

    // MARK: Equality

    /// See `==`.
    open func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? ObjectBase else { return false }
        if self === other { return true }
        return block != nil && other.block != nil && comparesByPlace && isSamePlace(as: other)
    }

    /// Agrees with `==`: objects with a primary key and frozen ones by what they are in the file, others by instance.
    open var hash: Int {
        guard block != nil, comparesByPlace else { return ObjectIdentifier(self).hashValue }
        var hasher = Hasher()
        hasher.combine(objectKey)
        return hasher.finalize()
    }

    /// Feeds `hash`.
    open func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// Objects of a class with a primary key and frozen objects are equal when they are the same object of the same Realm;
    /// all others only when they are the same instance. For the former see also `isSameObject(as:)`.
    public static func == (a: ObjectBase, b: ObjectBase) -> Bool { a === b || a.isEqual(b) }

    // MARK: Description

    /// The class, and each property with its value.
    open var description: String { Description.text(of: self) }
    /// The same as `description`.
    open var debugDescription: String { description }

    // MARK: Access by name

    /// The value of a property in its persisted form. An unknown name stops the process.
    open func value(forKey key: String) -> Any? {
        guard let property = propertyAccess(key) else { return value(forUndefinedKey: key) }
        return dynamicValue(property)
    }

    /// Sets a property. A value that does not fit, an unknown name and, for a managed object, a missing write transaction stop
    /// the process.
    open func setValue(_ value: Any?, forKey key: String) {
        guard let property = propertyAccess(key) else { return setValue(value, forUndefinedKey: key) }
        setDynamicValue(property, value)
    }

    /// What `value(forKey:)` makes of a name that is no property: it stops the process. For overriding.
    open func value(forUndefinedKey key: String) -> Any? { misuse("Invalid property name '\(key)' for class '\(schemaName)'.") }
    /// What `setValue(_:forKey:)` makes of a name that is no property: it stops the process. For overriding.
    open func setValue(_ value: Any?, forUndefinedKey key: String) {
        misuse("Invalid property name '\(key)' for class '\(schemaName)'.")
    }

    /// As `value(forKey:)` along a path of names separated by dots.
    open func value(forKeyPath keyPath: String) -> Any? {
        guard let dot = keyPath.firstIndex(of: ".") else { return value(forKey: keyPath) }
        let rest = String(keyPath[keyPath.index(after: dot)...])
        switch value(forKey: String(keyPath[..<dot])) {
        case let object as ObjectBase: return object.value(forKeyPath: rest)
        case let collection as any KeyValueCollection: return collection.value(forKeyPath: rest)
        case nil: return nil
        case let other?: misuse("Cannot follow the key path '\(rest)' from a value of type '\(type(of: other))'")
        }
    }

    /// As `setValue(_:forKey:)` along a path of names separated by dots. Where a link on the way is nil nothing is set.
    open func setValue(_ value: Any?, forKeyPath keyPath: String) {
        guard let dot = keyPath.lastIndex(of: ".") else { return setValue(value, forKey: keyPath) }
        let last = String(keyPath[keyPath.index(after: dot)...])
        switch self.value(forKeyPath: String(keyPath[..<dot])) {
        case let object as ObjectBase: object.setValue(value, forKey: last)
        case let collection as any KeyValueCollection: collection.setValue(value, forKey: last)
        case nil: break
        case let other?: misuse("Cannot set '\(last)' of a value of type '\(type(of: other))'")
        }
    }
}

@available(
    *, unavailable,
    message:
        "Objects belong to the thread, queue or actor of their Realm: pass a ThreadSafeReference, a primary key or a frozen object"
)
extension ObjectBase: @unchecked Sendable {}

// MARK: Properties by name

extension ObjectBase {
    /// The address of the wrapper at `offset`.
    final func address(_ offset: Int) -> UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() + offset }

    /// The name of the class in messages and descriptions; of a dynamic object the one in the schema.
    final var schemaName: String { managedType?.name ?? type(of: shownObject).className() }

    /// A property by name: of the class, or of a managed dynamic object by the schema of the file.
    enum PropertyAccess {
        case declared(PropertyInfo)
        case managed(ManagedProperty)
    }

    final func propertyAccess(_ name: String) -> PropertyAccess? {
        if let type = managedType { return type.property(name).map { .managed($0) } }
        return ClassInfo.of(Swift.type(of: self)).property(name).map { .declared($0) }
    }

    final func dynamicValue(_ property: PropertyAccess) -> Any? {
        switch property {
        case .declared(let info): info.wrapper.load(at: address(info.offset))
        case .managed(let property): managedValue(property)
        }
    }

    final func setDynamicValue(_ property: PropertyAccess, _ value: Any?) {
        switch property {
        case .declared(let info):
            if info.shape.type == .linkingObjects { misuse("Cannot set the linking objects '\(schemaName).\(info.name)'") }
            if !info.wrapper.store(value, at: address(info.offset), of: self) {
                misuse(ValueInput.message(value, info.shape, "\(schemaName).\(info.name)"))
            }
        case .managed(let property): setManagedValue(property, value)
        }
    }
}
