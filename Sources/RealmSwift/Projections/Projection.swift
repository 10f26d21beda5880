/// A view of an object that shows only some of its values, under names of its own.
///
///     class PersonProjection: Projection<Person> {
///         @Projected(\Person.name) var name
///         @Projected(\Person.address.city) var city
///         @Projected(\Person.dogs.projectTo.name) var dogNames: ProjectedCollection<String>
///     }
///     let projections = realm.objects(PersonProjection.self)
///
/// Projections hold no values: they read those of their root object, and where the path can be written, write them. Predicates,
/// sorting and sums over results of projections use the property names of the root. A projection lives where its root lives.
open class Projection<Root: ObjectBase & RealmCollectionValue & ThreadConfined>: RealmCollectionValue, ProjectionObservable,
    CustomStringConvertible
{
    public typealias PersistedType = Root

    /// The object that is shown.
    public let rootObject: Root

    /// Stops the process where the class projects nothing, or something that is no part of the root.
    public required init(projecting object: Root) {
        rootObject = object
        _ = ProjectionInfo.of(self, root: Root.self)
    }

    /// Projections of one class are equal when their root objects are.
    public static func == (a: Projection, b: Projection) -> Bool {
        a === b || (type(of: a) == type(of: b) && a.rootObject == b.rootObject)
    }
    public func hash(into hasher: inout Hasher) { hasher.combine(rootObject) }

    /// The projected values under their names here.
    open var description: String {
        if rootObject.isInvalidated { return "\(type(of: self)) {\n\t[invalid object]\n}" }
        let lines = ProjectionInfo.of(self, root: Root.self).properties.map { property in
            "\t\(property.name)(\\.\(property.paths.joined(separator: ", "))) = "
                + Description.indent(Description.text(ofAny: property.value(of: rootObject))).dropFirst() + ";\n"
        }
        return "\(type(of: self)) {\n" + lines.joined() + "}"
    }

    // MARK: As an element of a collection

    public static var _elementShape: _PropertyShape { Root._elementShape }
    public static func _from(_ stored: _Stored) -> Self { self.init(projecting: Root._from(stored)) }
    public func _toStored() -> _Stored { rootObject._toStored() }
}

extension Projection: ThreadConfined where Root: ThreadConfined {
    /// Nil for the projection of an unmanaged or invalidated object.
    public var realm: Realm? { rootObject.realm }
    /// True when the object was deleted or its Realm invalidated.
    public var isInvalidated: Bool { rootObject.isInvalidated }
    /// Always false for the projection of an unmanaged object.
    public var isFrozen: Bool { rootObject.isFrozen }
    /// The projection of the object as it is now, for every thread.
    public func freeze() -> Self { type(of: self).init(projecting: rootObject.freeze()) }
    /// The projection of the live object; nil where it was deleted meanwhile.
    public func thaw() -> Self? { rootObject.thaw().map { type(of: self).init(projecting: $0) } }
}

@available(
    *, unavailable,
    message: "Projections belong to the thread, queue or actor of their object: pass a ThreadSafeReference or a frozen projection"
)
extension Projection: @unchecked Sendable {}

extension Projection: KeypathSortable {}

extension Projection: RealmFetchable {
    /// The name of the root's class.
    public static func className() -> String { Root.className() }
}

/// What projections of every class have in common.
public protocol ProjectionObservable: AnyObject, ThreadConfined {
    associatedtype Root: ObjectBase
    var rootObject: Root { get }
}

/// A property of a projection: a path from the root object.
///
/// It can be set where the path can; otherwise that stops the process. The path may end in something that is computed from a
/// persisted property, and may lead through a collection with `projectTo`.
@propertyWrapper
public struct Projected<T: ObjectBase, Value> {
    let projectedKeyPath: KeyPath<T, Value>

    /// Not for use: a property is read through its projection.
    @available(*, unavailable, message: "@Projected can only be used as a property on a Projection")
    public var wrappedValue: Value {
        get { fatalError() }
        set { fatalError() }
    }

    public init(_ projectedKeyPath: KeyPath<T, Value>) { self.projectedKeyPath = projectedKeyPath }

    /// Reads and writes the projected property. One whose key path cannot be written to stops the process when it is set.
    public static subscript<EnclosingSelf: Projection<T>>(
        _enclosingInstance observed: EnclosingSelf,
        wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
        storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Self>
    ) -> Value {
        get { observed.rootObject[keyPath: observed[keyPath: storageKeyPath].projectedKeyPath] }
        set {
            guard let keyPath = observed[keyPath: storageKeyPath].projectedKeyPath as? ReferenceWritableKeyPath<T, Value> else {
                misuse(
                    "The projected property of '\(EnclosingSelf.self)' cannot be set: its path ends in something that can only be read."
                )
            }
            observed.rootObject[keyPath: keyPath] = newValue
        }
    }
}
