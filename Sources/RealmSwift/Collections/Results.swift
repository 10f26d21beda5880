internal import SharedStore

/// Objects or values that a query finds: live, and evaluated only when they are looked at.
///
///     let adults = realm.objects(Person.self).where { $0.age >= 18 }
///
/// A change, be it made by this program or another one, shows at the next access. Iterating goes through the elements as they
/// were when it began. When the Realm is invalidated the results are empty until something else is read from it.
public struct Results<Element: RealmCollectionValue>: RealmCollection {
    @usableFromInline let core: ResultsCore

    init(_ core: ResultsCore) { self.core = core }

    /// Counted once and kept until something changes. 0 after the Realm was invalidated, until something is read from it again.
    public var count: Int { core.count }
    /// A position that is none stops the process.
    @inlinable public subscript(position: Int) -> Element { Element._element(core, position) }
    /// Goes through the elements as they were when the iteration began.
    public func makeIterator() -> RLMIterator<Element> { RLMIterator(core.cursor(Element.self)) }

    /// Nil after its Realm was closed.
    public var realm: Realm? { core.realm }
    /// True when the object that what was queried belongs to is gone, and after the Realm was invalidated until something is read
    /// from it again.
    public var isInvalidated: Bool { core.isInvalidated }
    /// They are of one version and never change.
    public var isFrozen: Bool { core.session.isFrozen }
    /// The results as they are now, for every thread.
    public func freeze() -> Results { Results(ResultsCore.frozen(core)) }
    /// The live results; nil where the object that what was queried belongs to is gone.
    public func thaw() -> Results? { ResultsCore.thawed(core).map { Results($0) } }

    /// True for the same results object, not for equal elements: compare these with `elementsEqual`.
    public static func == (a: Results, b: Results) -> Bool { ResultsCore.isSame(a.core, b.core) }

    public var description: String { Description.text(of: self, named: "Results<\(Element._elementShape.elementName)>") }

    public var _core: _CollectionCore<Element> { _CollectionCore(.results(core)) }
    public init?(_core core: _CollectionCore<Element>) {
        guard case .results(let results) = core.form else { return nil }
        self.init(results)
    }
}

extension Results: Encodable where Element: Encodable {}

extension Results: KeyValueCollection, DescribedCollection {
    var dynamicElements: [Any?] { map { $0._toStored().dynamicValue } }
    var descriptionHeader: String { "Results<\(Element._elementShape.elementName)>" }
}

@available(
    *, unavailable,
    message: "Results belong to the thread, queue or actor of their Realm: pass a ThreadSafeReference or frozen results"
)
extension Results: @unchecked Sendable {}
