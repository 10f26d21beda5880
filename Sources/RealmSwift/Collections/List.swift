import Foundation
internal import SharedStore

/// An ordered collection of values or objects, a property of an object.
///
///     @Persisted var dogs: List<Dog>
///
/// The list of an unmanaged object behaves like an array. The list of a managed one shows the file, and changes only within a
/// write transaction; an unmanaged object that is put into it is added to the Realm. Two lists are equal when they are the same
/// property of the same object; to compare elements use `elementsEqual`.
public final class List<Element: RealmCollectionValue>: RealmCollection {
    // Both change on the thread of the session only; those of a frozen list not at all.
    @exclusivity(unchecked) var storage: [Element] = []
    @exclusivity(unchecked) @usableFromInline var handle: CollectionHandle?

    /// An empty list that belongs to no object yet.
    public init() {}

    init(_ handle: CollectionHandle) { self.handle = handle }

    // MARK: Reading

    /// Of a managed list as its Realm sees it now. An invalidated list stops the process.
    public var count: Int { handle?.count ?? storage.count }

    /// A position that is none stops the process. A managed list is assigned to within a write transaction only.
    public subscript(position: Int) -> Element {
        @inlinable get {
            if let handle { return Element._element(handle, position) }
            return unmanagedElement(position)
        }
        set { replace(index: position, object: newValue) }
    }

    @usableFromInline
    func unmanagedElement(_ position: Int) -> Element {
        if position < 0 || position >= storage.count { outOfBounds(position, storage.count) }
        return storage[position]
    }

    /// Goes through the elements as they were when the iteration began: whoever iterates may change the list.
    public func makeIterator() -> RLMIterator<Element> {
        handle.map { RLMIterator($0.cursor(Element.self)) } ?? RLMIterator(storage)
    }

    /// Of each element the value of a property. `self` gives the elements.
    public func value(forKey key: String) -> [Any] { KeyPathOperators.values(of: self, forKey: key).map { $0 ?? NSNull() } }

    // MARK: Changing

    /// Puts an element behind the last one. An unmanaged object that comes into a managed list is added to the Realm.
    public func append(_ object: Element) { insert(object, at: count) }

    /// Puts elements behind the last one, in the order in which the sequence has them.
    public func append<S: Sequence>(objectsIn objects: S) where S.Element == Element {
        // The sequence may be a view on this very list.
        insert(contentsOf: Array(objects), at: count)
    }

    /// - Parameter index: up to and including `count`.
    public func insert(_ object: Element, at index: Int) {
        if let handle { return handle.insert(object._toStored(), at: index) }
        if index < 0 || index > storage.count { outOfBounds(index, storage.count + 1) }
        storage.insert(object, at: index)
    }

    /// Takes an element out; an object stays in the Realm, an embedded one is deleted. A position without an element stops the
    /// process.
    public func remove(at index: Int) {
        if let handle { return handle.remove(at: index) }
        if index < 0 || index >= storage.count { outOfBounds(index, storage.count) }
        storage.remove(at: index)
    }

    /// Empties the list; the objects stay, embedded ones are deleted.
    public func removeAll() {
        if let handle { return handle.removeAll() }
        storage.removeAll()
    }

    /// Puts another element in the place of one. A position without an element stops the process.
    public func replace(index: Int, object: Element) {
        if let handle { return handle.set(object._toStored(), at: index) }
        if index < 0 || index >= storage.count { outOfBounds(index, storage.count) }
        storage[index] = object
    }

    /// - Parameter to: the position of the element afterwards.
    public func move(from: Int, to: Int) {
        if let handle { return handle.move(from: from, to: to) }
        if from < 0 || from >= storage.count { outOfBounds(from, storage.count) }
        if to < 0 || to >= storage.count { outOfBounds(to, storage.count) }
        storage.insert(storage.remove(at: from), at: to)
    }

    /// Exchanges two elements. A position without an element stops the process.
    public func swapAt(_ index1: Int, _ index2: Int) {
        if let handle { return handle.swap(index1, index2) }
        if index1 < 0 || index1 >= storage.count { outOfBounds(index1, storage.count) }
        if index2 < 0 || index2 >= storage.count { outOfBounds(index2, storage.count) }
        storage.swapAt(index1, index2)
    }

    // MARK: Place

    /// Nil for an unmanaged list and for one that was invalidated.
    public var realm: Realm? { handle?.realm }
    /// True when the object that has the list is gone, or its Realm was invalidated; false for an unmanaged list.
    public var isInvalidated: Bool { handle?.isInvalidated ?? false }
    /// Always false for an unmanaged list.
    public var isFrozen: Bool { handle?.session.isFrozen ?? false }
    /// The list as it is now, for every thread. An unmanaged list stops the process.
    public func freeze() -> List { List(CollectionHandle.frozen(handle)) }
    /// The live list; nil where its object is gone.
    public func thaw() -> List? { CollectionHandle.thawed(handle).map { List($0) } }

    public static func == (a: List, b: List) -> Bool { a === b || CollectionHandle.isSame(a.handle, b.handle) }

    public var description: String { Description.text(of: self, named: "List<\(Element._elementShape.elementName)>") }

    public var _core: _CollectionCore<Element> { _CollectionCore(handle.map { .managed($0) } ?? .unmanaged(storage)) }
    public convenience init?(_core core: _CollectionCore<Element>) {
        switch core.form {
        case .unmanaged(let elements):
            self.init()
            storage = elements
        case .managed(let handle): self.init(handle)
        case .results: return nil
        }
    }
}

@available(
    *, unavailable,
    message: "Lists belong to the thread, queue or actor of their Realm: pass a ThreadSafeReference or a frozen list"
)
extension List: @unchecked Sendable {}

extension List: Hashable {
    public func hash(into hasher: inout Hasher) {
        if let handle { hasher.combine(handle.identity) } else { hasher.combine(ObjectIdentifier(self)) }
    }
}

extension List: MutableCollection {
    public typealias SubSequence = Slice<List>
    public typealias Index = Int

    /// To read a slice copies nothing; to assign one replaces the elements of the range, by any number of others.
    public subscript(bounds: Range<Int>) -> SubSequence {
        get {
            if bounds.lowerBound < 0 { outOfBounds(bounds.lowerBound, count) }
            if bounds.upperBound > count { outOfBounds(bounds.upperBound, count + 1) }
            return Slice(base: self, bounds: bounds)
        }
        set { replaceSubrange(bounds, with: Array(newValue)) }
    }
}

extension List {
    /// Puts elements, of any number, in the place of those in a range. A range beyond the end stops the process.
    public func replaceSubrange<C: Collection, R: RangeExpression>(_ subrange: R, with newElements: C)
    where C.Element == Element, R.Bound == Int {
        let range = subrange.relative(to: self)
        let new = Array(newElements)
        if handle == nil {
            checkBounds(range)
            return storage.replaceSubrange(range, with: new)
        }
        removeSubrange(range)
        insert(contentsOf: new, at: range.lowerBound)
    }

    /// More than there are stops the process.
    public func removeFirst(_ number: Int = 1) {
        checkCount(number)
        removeSubrange(0..<number)
    }

    /// Takes elements from the end. More than there are stops the process.
    public func removeLast(_ number: Int = 1) {
        checkCount(number)
        removeSubrange(count - number..<count)
    }

    private func checkCount(_ number: Int) {
        if number < 0 { misuse("Cannot remove a negative number of elements (\(number)) from a List.") }
        if number > count { misuse("Cannot remove \(number) elements from a List of \(count).") }
    }

    private func checkBounds(_ range: Range<Int>) {
        if range.lowerBound < 0 { outOfBounds(range.lowerBound, count) }
        if range.upperBound > count { outOfBounds(range.upperBound, count + 1) }
    }

    /// - Parameter i: where the first of the elements is afterwards; up to and including `count`.
    public func insert<C: Collection>(contentsOf newElements: C, at i: Int) where C.Element == Element {
        let elements = Array(newElements)
        if let handle { return handle.insert(contentsOf: elements.map { $0._toStored() }, at: i) }
        for (offset, element) in elements.enumerated() { insert(element, at: i + offset) }
    }

    /// Takes the elements in a range out. A range beyond the end stops the process.
    public func removeSubrange<R: RangeExpression>(_ boundsExpression: R) where R.Bound == Int {
        let range = boundsExpression.relative(to: self)
        checkBounds(range)
        if handle == nil { return storage.removeSubrange(range) }
        for index in range.reversed() { remove(at: index) }
    }

    /// As lists of user interfaces ask for it.
    public func remove(atOffsets offsets: IndexSet) {
        for offset in offsets.reversed() { remove(at: offset) }
    }

    /// - Parameter destination: the element before which the moved ones are put, counted before the move.
    public func move(fromOffsets offsets: IndexSet, toOffset destination: Int) {
        var before = 0
        for (count, offset) in offsets.filter({ $0 < destination }).enumerated() {
            // Each move shifts the ones that follow it by one to the front.
            move(from: offset - count, to: destination - 1)
            before += 1
        }
        for (count, offset) in offsets.filter({ $0 >= destination }).enumerated() { move(from: offset, to: destination + count) }
    }
}

extension List: Decodable where Element: Decodable {
    /// From an array.
    public convenience init(from decoder: any Decoder) throws {
        self.init()
        var container = try decoder.unkeyedContainer()
        while !container.isAtEnd { append(try container.decode(Element.self)) }
    }
}

extension List: Encodable where Element: Encodable {}

// MARK: As a property

extension List: _RealmSchemaDiscoverable, _HasPersistedType, _Persistable, _DefaultConstructible {
    public typealias PersistedType = List
    public static var _shape: _PropertyShape { Element._elementShape.collected(.list) }

    public static func _get(_ object: ObjectBase, _ slot: Int) -> List { object.collection(slot) { List($0) } }
    public static func _set(_ object: ObjectBase, _ slot: Int, _ value: List) { _ = _assigned(value, over: _get(object, slot)) }

    /// The property keeps its list and takes over the elements.
    public static func _assigned(_ new: List, over old: List?) -> List {
        let list = old ?? List()
        if list === new || list.handle != nil && CollectionHandle.isSame(list.handle, new.handle) { return list }
        let elements = Element.detached(Array(new))
        list.removeAll()
        list.append(objectsIn: elements)
        return list
    }

    public static func _toDynamic(_ value: List) -> Any? { value }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> List? {
        guard let stored = ValueInput.convertElements(input, to: Element._elementShape) else { return nil }
        let list = List()
        list.storage = stored.map { Element._from($0) }
        return list
    }

    public static func _write(_ value: List, to target: _WriteTarget) { target.writeList(value.map { $0._toStored() }) }

    public static func _bind(_ value: List, to object: ObjectBase, _ slot: Int) {
        value.handle = object.collectionHandle(slot)
        value.storage = []
        object.remember(value, slot)
    }
}

extension List: KeyValueCollection {
    var dynamicElements: [Any?] { map { $0._toStored().dynamicValue } }
}

extension _PropertyShape {
    /// The type of an element in the description of a collection.
    var elementName: String { (objectClass?.className() ?? type.description) + (isOptional ? "?" : "") }
}
