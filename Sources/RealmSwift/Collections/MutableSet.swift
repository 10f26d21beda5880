import Foundation
internal import SharedStore

/// A collection of distinct values or objects, a property of an object.
///
/// Managed sets hold each stored value once; in a set of `AnyRealmValue` 1 and 1.0 are the same. The order means nothing.
public final class MutableSet<Element: RealmCollectionValue>: RealmCollection {
    // See `List`.
    @exclusivity(unchecked) var storage: [Element] = []
    @exclusivity(unchecked) private var members: Set<SetMember<Element>> = []
    @exclusivity(unchecked) var handle: CollectionHandle?

    /// An empty set that belongs to no object yet.
    public init() {}

    init(_ handle: CollectionHandle) { self.handle = handle }

    // MARK: Reading

    /// Of a managed set as its Realm sees it now. An invalidated set stops the process.
    public var count: Int { handle?.count ?? storage.count }

    /// In an order that means nothing. A position that is none stops the process.
    public subscript(position: Int) -> Element {
        if let handle { return Element._element(handle, position) }
        if position < 0 || position >= storage.count { outOfBounds(position, storage.count) }
        return storage[position]
    }

    /// Goes through the elements as they were when the iteration began: whoever iterates may change the set.
    public func makeIterator() -> RLMIterator<Element> {
        handle.map { RLMIterator($0.cursor(Element.self)) } ?? RLMIterator(storage)
    }

    /// Whether the set has this value, or this object.
    public func contains(_ object: Element) -> Bool {
        handle?.contains(object._toStored()) ?? members.contains(SetMember(element: object))
    }

    /// True if every element is in the other set too.
    public func isSubset(of possibleSuperset: MutableSet<Element>) -> Bool { allSatisfy { possibleSuperset.contains($0) } }

    /// True if there is an element that is in the other set too.
    public func intersects(_ otherSet: MutableSet<Element>) -> Bool { Array(self).contains { otherSet.contains($0) } }

    /// Of each element the value of a property. `self` gives the elements.
    public func value(forKey key: String) -> [Any] { KeyPathOperators.values(of: self, forKey: key).map { $0 ?? NSNull() } }

    /// Sets have no positions that last: stops the process.
    public func index(of object: Element) -> Int? { misuse("index(of:) is not available on MutableSet") }
    /// Sets have no positions that last: stops the process.
    public func index(matching predicate: NSPredicate) -> Int? { misuse("index(matching:) is not available on MutableSet") }
    /// Sets have no positions that last: stops the process.
    public func index(matching predicateFormat: String, _ args: Any...) -> Int? {
        misuse("index(matching:) is not available on MutableSet")
    }
    /// Sets have no positions that last: stops the process.
    public func index(matching isIncluded: (Query<Element>) -> Query<Bool>) -> Int? {
        misuse("index(matching:) is not available on MutableSet")
    }

    // MARK: Changing

    /// A value that is there already changes nothing.
    public func insert(_ object: Element) {
        if let handle { return handle.insertIntoSet(object._toStored()) }
        if members.insert(SetMember(element: object)).inserted { storage.append(object) }
    }

    /// Values that are there already change nothing.
    public func insert<S: Sequence>(objectsIn objects: S) where S.Element == Element {
        for object in Array(objects) { insert(object) }
    }

    /// A value that is not there changes nothing.
    public func remove(_ object: Element) {
        if let handle { return handle.removeFromSet(object._toStored()) }
        let member = SetMember(element: object)
        if members.remove(member) != nil { storage.removeAll { SetMember(element: $0) == member } }
    }

    /// Empties the set; objects stay in the Realm.
    public func removeAll() {
        if let handle { return handle.removeAll() }
        storage.removeAll()
        members.removeAll()
    }

    /// Keeps what is in the other set too.
    public func formIntersection(_ other: MutableSet<Element>) {
        checkChange(other)
        for element in Array(self) where !other.contains(element) { remove(element) }
    }

    /// Removes what is in the other set too.
    public func subtract(_ other: MutableSet<Element>) {
        checkChange(other)
        for element in Array(other) { remove(element) }
    }

    /// Takes over what is in the other set.
    public func formUnion(_ other: MutableSet<Element>) {
        checkChange(other)
        insert(objectsIn: Array(other))
    }

    private func checkChange(_ other: MutableSet<Element>) {
        guard let handle else { return }
        handle.session.requireWriteTransaction()
        if let session = other.handle?.session, session !== handle.session {
            misuse("Cannot combine sets of different Realms")
        }
    }

    // MARK: Place

    /// Nil for an unmanaged set and for one that was invalidated.
    public var realm: Realm? { handle?.realm }
    /// True when the object that has the set is gone, or its Realm was invalidated; false for an unmanaged set.
    public var isInvalidated: Bool { handle?.isInvalidated ?? false }
    /// Always false for an unmanaged set.
    public var isFrozen: Bool { handle?.session.isFrozen ?? false }
    /// The set as it is now, for every thread. An unmanaged set stops the process.
    public func freeze() -> MutableSet { MutableSet(CollectionHandle.frozen(handle)) }
    /// The live set; nil where its object is gone.
    public func thaw() -> MutableSet? { CollectionHandle.thawed(handle).map { MutableSet($0) } }

    public static func == (a: MutableSet, b: MutableSet) -> Bool { a === b || CollectionHandle.isSame(a.handle, b.handle) }

    public var description: String { Description.text(of: self, named: "MutableSet<\(Element._elementShape.elementName)>") }

    public var _core: _CollectionCore<Element> { _CollectionCore(handle.map { .managed($0) } ?? .unmanaged(storage)) }
    public convenience init?(_core core: _CollectionCore<Element>) {
        switch core.form {
        case .unmanaged(let elements):
            self.init()
            insert(objectsIn: elements)
        case .managed(let handle): self.init(handle)
        case .results: return nil
        }
    }
}

@available(
    *, unavailable,
    message: "Sets belong to the thread, queue or actor of their Realm: pass a ThreadSafeReference or a frozen set"
)
extension MutableSet: @unchecked Sendable {}

extension MutableSet: Decodable where Element: Decodable {
    /// From an array, which may have equal elements.
    public convenience init(from decoder: any Decoder) throws {
        self.init()
        var container = try decoder.unkeyedContainer()
        while !container.isAtEnd { insert(try container.decode(Element.self)) }
    }
}

extension MutableSet: Encodable where Element: Encodable {}

// MARK: As a property

extension MutableSet: _RealmSchemaDiscoverable, _HasPersistedType, _Persistable, _DefaultConstructible {
    public typealias PersistedType = MutableSet
    public static var _shape: _PropertyShape { Element._elementShape.collected(.set) }

    public static func _get(_ object: ObjectBase, _ slot: Int) -> MutableSet { object.collection(slot) { MutableSet($0) } }
    public static func _set(_ object: ObjectBase, _ slot: Int, _ value: MutableSet) {
        _ = _assigned(value, over: _get(object, slot))
    }

    /// The property keeps its set and takes over the elements.
    public static func _assigned(_ new: MutableSet, over old: MutableSet?) -> MutableSet {
        let set = old ?? MutableSet()
        if set === new || set.handle != nil && CollectionHandle.isSame(set.handle, new.handle) { return set }
        let elements = Array(new)
        set.removeAll()
        set.insert(objectsIn: elements)
        return set
    }

    public static func _toDynamic(_ value: MutableSet) -> Any? { value }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> MutableSet? {
        guard let stored = ValueInput.convertElements(input, to: Element._elementShape) else { return nil }
        let set = MutableSet()
        set.insert(objectsIn: stored.map { Element._from($0) })
        return set
    }

    public static func _write(_ value: MutableSet, to target: _WriteTarget) { target.writeSet(value.map { $0._toStored() }) }

    public static func _bind(_ value: MutableSet, to object: ObjectBase, _ slot: Int) {
        value.handle = object.collectionHandle(slot)
        value.storage = []
        value.members = []
        object.remember(value, slot)
    }
}

extension MutableSet: KeyValueCollection {
    var dynamicElements: [Any?] { map { $0._toStored().dynamicValue } }
}

/// An element as sets compare it: strings by their bytes, as in the file, and not by how they look.
private struct SetMember<Element: Hashable>: Hashable {
    let element: Element

    static func == (a: SetMember, b: SetMember) -> Bool {
        if a.element != b.element { return false }
        if let x = a.element as? String, let y = b.element as? String { return x.isSame(as: y) }
        if case .string(let x)? = a.element as? AnyRealmValue, case .string(let y)? = b.element as? AnyRealmValue {
            return x.isSame(as: y)
        }
        return true
    }

    func hash(into hasher: inout Hasher) { hasher.combine(element) }
}
