internal import SharedStore

/// Linking objects of any element type.
protocol AnyLinkingObjects {
    var originProperty: String { get }
}

/// The objects that link to this one through a property of theirs.
///
///     class Dog: Object {
///         @Persisted(originProperty: "dogs") var owners: LinkingObjects<Person>
///     }
///
/// Read only; an object whose list contains this one twice is there twice. Empty for unmanaged objects.
public struct LinkingObjects<Element: ObjectBase & RealmCollectionValue>: RealmCollection {
    let originProperty: String
    private let core: ResultsCore?

    /// - Parameter property: the property of the other class whose links are to be found.
    public init(fromType _: Element.Type, property propertyName: String) {
        originProperty = propertyName
        core = nil
    }

    init(_ core: ResultsCore, originProperty: String) {
        self.core = core
        self.originProperty = originProperty
    }

    /// Objects that link here, each as often as it does so; 0 for an unmanaged object.
    public var count: Int { core?.count ?? 0 }

    /// In no particular order. A position that is none stops the process.
    public subscript(index: Int) -> Element {
        guard let core else { outOfBounds(index, 0) }
        return Element._element(core, index)
    }

    /// Goes through the objects as they were when the iteration began.
    public func makeIterator() -> RLMIterator<Element> { core.map { RLMIterator($0.cursor(Element.self)) } ?? RLMIterator([]) }

    /// Nil for those of an unmanaged object.
    public var realm: Realm? { core?.realm }
    /// True when the object that is linked to is gone, or its Realm was invalidated.
    public var isInvalidated: Bool { core?.isInvalidated ?? false }
    /// Always false for those of an unmanaged object.
    public var isFrozen: Bool { core?.session.isFrozen ?? false }
    /// The objects as they are now, for every thread. Those of an unmanaged object stop the process.
    public func freeze() -> LinkingObjects { LinkingObjects(ResultsCore.frozen(core), originProperty: originProperty) }
    /// The live linking objects; nil where the object that is linked to is gone.
    public func thaw() -> LinkingObjects? { ResultsCore.thawed(core).map { LinkingObjects($0, originProperty: originProperty) } }

    /// True for the linking objects of the same object and property.
    public static func == (a: LinkingObjects, b: LinkingObjects) -> Bool { ResultsCore.isSame(a.core, b.core) }

    public var description: String { Description.text(of: self, named: "LinkingObjects<\(Element.className())>") }

    public var _core: _CollectionCore<Element> { _CollectionCore(core.map { .results($0) } ?? .unmanaged([])) }
    public init?(_core core: _CollectionCore<Element>) {
        guard case .results(let results) = core.form else { return nil }
        self.init(results, originProperty: "")
    }
}

extension LinkingObjects: AnyLinkingObjects, KeyValueCollection, DescribedCollection {
    var dynamicElements: [Any?] { map { $0 as Any } }
    var descriptionHeader: String { "LinkingObjects<\(Element.className())>" }
}

extension LinkingObjects: LinkingObjectsProtocol {
    public init(_originProperty: String) {
        originProperty = _originProperty
        core = nil
    }
}

// MARK: As a property

extension LinkingObjects: _RealmSchemaDiscoverable, _HasPersistedType, _Persistable {
    public typealias PersistedType = LinkingObjects
    public static var _shape: _PropertyShape { _PropertyShape(.linkingObjects, objectClass: Element.self) }
    public static func _default() -> LinkingObjects { LinkingObjects(_originProperty: "") }

    public static func _get(_ object: ObjectBase, _ slot: Int) -> LinkingObjects {
        guard let property = object.managedType?.properties.first(where: { $0.slot == slot }) else { return _default() }
        return object.linkingObjects(property, Element.self)
    }

    public static func _set(_ object: ObjectBase, _ slot: Int, _ value: LinkingObjects) {
        misuse("LinkingObjects properties are read only")
    }

    /// The declaration stays.
    public static func _assigned(_ new: LinkingObjects, over old: LinkingObjects?) -> LinkingObjects { old ?? new }
    public static func _toDynamic(_ value: LinkingObjects) -> Any? { value }
    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> LinkingObjects? { nil }
    public static func _write(_ value: LinkingObjects, to target: _WriteTarget) {}
}

extension ObjectBase {
    final func linkingObjects<Element>(_ property: ManagedProperty, _ type: Element.Type) -> LinkingObjects<Element> {
        guard let block, let session else { return LinkingObjects(_originProperty: property.property.originProperty ?? "") }
        ready(block)
        guard let managedType else { return LinkingObjects(_originProperty: property.property.originProperty ?? "") }
        let core = ResultsCore(
            session,
            .backlinks(of: managedType.tableKey, ObjectKey(objectKey), from: property.originTable, property.columnKey, block))
        return LinkingObjects(core, originProperty: property.property.originProperty ?? "")
    }
}
