import Foundation
internal import SharedStore

/// A property of each element of a collection of objects: `person.dogs.projectTo.name`.
///
/// Live like the collection, and read only: the values belong to its elements.
public struct ProjectedCollection<Element: RealmCollectionValue>: RandomAccessCollection, CustomStringConvertible, ThreadConfined
{
    public typealias Index = Int

    /// The collection with the objects.
    let source: any ProjectedSource<Element>

    init(_ source: any ProjectedSource<Element>) { self.source = source }

    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of elements.
    public var endIndex: Int { source.count }
    /// Of the collection with the objects.
    public var count: Int { source.count }
    /// Nothing is checked before an element is read.
    public func index(after i: Int) -> Int { i + 1 }
    /// Nothing is checked before an element is read.
    public func index(before i: Int) -> Int { i - 1 }
    /// The property of the object at that position. A position that is none stops the process.
    public subscript(position: Int) -> Element { source.value(position) }

    /// The position of the first object whose property has the given value.
    public func index(of object: Element) -> Int? { firstIndex(of: object) }
    /// The position of the first object of the collection that meets the predicate.
    public func index(matching predicate: NSPredicate) -> Int? { source.index(matching: predicate) }

    /// That of the collection with the objects.
    public var realm: Realm? { source.realm }
    /// True when the collection with the objects is gone.
    public var isInvalidated: Bool { source.isInvalidated }
    /// As of the collection with the objects.
    public var isFrozen: Bool { source.isFrozen }
    /// The collection as it is now, for every thread.
    public func freeze() -> ProjectedCollection { ProjectedCollection(source.frozen()) }
    /// The live collection; nil where it is gone.
    public func thaw() -> ProjectedCollection? { source.thawed().map { ProjectedCollection($0) } }

    public var description: String {
        "ProjectedCollection<\(Element._elementShape.elementName)> (\n"
            + enumerated().map { "\t[\($0)] \(Description.text(ofAny: $1._toStored().dynamicValue))" }.joined(separator: ",\n")
            + "\n)"
    }
}

/// A collection of objects of any kind, and the property of them that is shown.
protocol ProjectedSource<Value> {
    associatedtype Value: RealmCollectionValue
    var count: Int { get }
    func value(_ index: Int) -> Value
    func index(matching predicate: NSPredicate) -> Int?
    var realm: Realm? { get }
    var isInvalidated: Bool { get }
    var isFrozen: Bool { get }
    func frozen() -> any ProjectedSource<Value>
    func thawed() -> (any ProjectedSource<Value>)?
    /// The path from an element, in names.
    var elementPath: String { get }
    /// The objects, for observing them.
    var base: any RealmCollection { get }
}

private struct ElementProjection<C: RealmCollection, Value: RealmCollectionValue>: ProjectedSource where C.Element: ObjectBase {
    let collection: C
    let keyPath: KeyPath<C.Element, Value>

    var count: Int { collection.count }
    func value(_ index: Int) -> Value { collection[index][keyPath: keyPath] }
    func index(matching predicate: NSPredicate) -> Int? { collection.index(matching: predicate) }
    var realm: Realm? { collection.realm }
    var isInvalidated: Bool { collection.isInvalidated }
    var isFrozen: Bool { collection.isFrozen }
    func frozen() -> any ProjectedSource<Value> { ElementProjection(collection: collection.freeze(), keyPath: keyPath) }
    func thawed() -> (any ProjectedSource<Value>)? {
        collection.thaw().map { ElementProjection(collection: $0, keyPath: keyPath) }
    }
    var elementPath: String { Tracing.trace(keyPath, from: C.Element.self).paths.first ?? "" }
    var base: any RealmCollection { collection }
}

/// Lets the elements of a collection be projected to a property: `dogs.projectTo.name`.
@dynamicMemberLookup
public struct CollectionElementMapper<Element> where Element: ObjectBase & RealmCollectionValue {
    private let collection: AnyRealmCollection<Element>

    fileprivate init(_ collection: AnyRealmCollection<Element>) { self.collection = collection }

    /// The values of a property of the elements.
    public subscript<V>(dynamicMember member: KeyPath<Element, V>) -> ProjectedCollection<V> {
        ProjectedCollection(ElementProjection(collection: collection, keyPath: member))
    }
}

extension List where Element: ObjectBase & RealmCollectionValue {
    /// See `ProjectedCollection`.
    public var projectTo: CollectionElementMapper<Element> { CollectionElementMapper(AnyRealmCollection(self)) }
}

extension MutableSet where Element: ObjectBase & RealmCollectionValue {
    /// See `ProjectedCollection`.
    public var projectTo: CollectionElementMapper<Element> { CollectionElementMapper(AnyRealmCollection(self)) }
}

/// Projected collections of any element type.
protocol AnyProjectedCollection {
    var elementPath: String { get }
    var dynamicElements: [Any?] { get }
}

extension ProjectedCollection: AnyProjectedCollection {
    var elementPath: String { source.elementPath }
    var dynamicElements: [Any?] { map { $0._toStored().dynamicValue } }
}

// MARK: Observing

extension ProjectedCollection {
    /// Calls `block` once with the collection as it is, then after every change of the objects' collection and of the property
    /// that is shown. See `RealmCollection.observe(keyPaths:on:_:)`.
    ///
    /// - Parameter keyPaths: names of properties of the objects; nil: the one that is shown.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil,
        _ block: @escaping (RealmCollectionChange<ProjectedCollection>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { if let error = $0 { block(.error(error)) } },
            register: { collection, session in collection.register(session, keyPaths, block) })
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<ProjectedCollection>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { if let error = $0 { PlacedObservation.call(block, actor, .error(error)) } },
            register: { collection, session in collection.register(session, keyPaths) { PlacedObservation.call(block, actor, $0) }
            })
        return await PlacedObservation.begin(request, on: actor)
    }

    private func register(
        _ session: Session, _ keyPaths: [String]?, _ block: @escaping (RealmCollectionChange<ProjectedCollection>) -> Void
    ) -> Observation {
        source.base.observePositions(session, keyPaths ?? [source.elementPath]) { positions in
            guard let positions else { return block(.initial(self)) }
            block(
                .update(
                    self, deletions: Array(positions.deletions), insertions: Array(positions.insertions),
                    modifications: Array(positions.modificationsOld)))
        }
    }
}
