/// A collection of any kind: `List`, `MutableSet`, `Results` or `LinkingObjects`.
public struct AnyRealmCollection<Element: RealmCollectionValue>: RealmCollection {
    private let base: any RealmCollection
    private let coreOfBase: () -> _CollectionCore<Element>
    private let freezeBase: () -> AnyRealmCollection
    private let thawBase: () -> AnyRealmCollection?
    private let isEqualTo: (any RealmCollection) -> Bool

    /// The same collection under another type: it stays live, and shares everything with `base`.
    public init<C: RealmCollection>(_ base: C) where C.Element == Element {
        self.base = base
        coreOfBase = { base._core }
        freezeBase = { AnyRealmCollection(base.freeze()) }
        thawBase = { base.thaw().map { AnyRealmCollection($0) } }
        isEqualTo = { ($0 as? C) == base }
    }

    /// Asked for at each use: a list may have become managed meanwhile.
    public var _core: _CollectionCore<Element> { coreOfBase() }

    public init?(_core core: _CollectionCore<Element>) {
        switch core.form {
        case .unmanaged, .managed:
            guard let list = List<Element>(_core: core) else { return nil }
            self.init(list)
        case .results:
            guard let results = Results<Element>(_core: core) else { return nil }
            self.init(results)
        }
    }

    /// As of the collection that it stands for.
    public var count: Int {
        switch _core.form {
        case .unmanaged(let elements): elements.count
        case .managed(let handle): handle.count
        case .results(let core): core.count
        }
    }

    /// A position that is none stops the process.
    public subscript(position: Int) -> Element {
        switch _core.form {
        case .unmanaged(let elements):
            if position < 0 || position >= elements.count { outOfBounds(position, elements.count) }
            return elements[position]
        case .managed(let handle): return Element._element(handle, position)
        case .results(let core): return Element._element(core, position)
        }
    }

    /// Goes through the elements as they were when the iteration began.
    public func makeIterator() -> RLMIterator<Element> {
        switch _core.form {
        case .unmanaged(let elements): RLMIterator(elements)
        case .managed(let handle): RLMIterator(handle.cursor(Element.self))
        case .results(let core): RLMIterator(core.cursor(Element.self))
        }
    }

    /// Nil for an unmanaged collection and for one that was invalidated.
    public var realm: Realm? { base.realm }
    /// As of the collection that it stands for.
    public var isInvalidated: Bool { base.isInvalidated }
    /// Always false for an unmanaged collection.
    public var isFrozen: Bool { base.isFrozen }
    /// The collection as it is now, for every thread. An unmanaged one stops the process.
    public func freeze() -> AnyRealmCollection { freezeBase() }
    /// The live collection; nil where it is gone.
    public func thaw() -> AnyRealmCollection? { thawBase() }
    public var description: String { base.description }
    public static func == (a: AnyRealmCollection, b: AnyRealmCollection) -> Bool { a.isEqualTo(b.base) }
}

extension AnyRealmCollection: Encodable where Element: Encodable {}

extension AnyRealmCollection: KeyValueCollection {
    var dynamicElements: [Any?] { map { $0._toStored().dynamicValue } }
}
