import Foundation
internal import SharedStore

/// A value that belongs to the thread, queue or actor of its Realm.
public protocol ThreadConfined {
    /// Nil for an unmanaged value and for one that was invalidated.
    var realm: Realm? { get }
    var isInvalidated: Bool { get }
    var isFrozen: Bool { get }
    /// The value as it is now, readable from every thread. Unmanaged values stop the process.
    func freeze() -> Self
    /// The live value behind a frozen one; nil where it was deleted meanwhile.
    func thaw() -> Self?
}

/// Elements by position: what all collections but maps are.
public protocol RealmCollectionBase: RandomAccessCollection, LazyCollectionProtocol, CustomStringConvertible, ThreadConfined
where Element: RealmCollectionValue {
    typealias ElementType = Element
}

/// `List`, `MutableSet`, `Results`, `LinkingObjects` and `AnyRealmCollection`.
public protocol RealmCollection: RealmCollectionBase, Equatable where Iterator == RLMIterator<Element>, Index == Int {
    /// What the collection is made of, for the library.
    var _core: _CollectionCore<Element> { get }
    init?(_core: _CollectionCore<Element>)
}

/// What bridges to Objective-C on Apple systems. It asks for nothing here; code that is written for all systems names it in
/// constraints.
public protocol _ObjcBridgeable {}
extension List: _ObjcBridgeable {}
extension MutableSet: _ObjcBridgeable {}
extension Map: _ObjcBridgeable {}
extension Results: _ObjcBridgeable {}
extension LinkingObjects: _ObjcBridgeable {}
extension AnyRealmCollection: _ObjcBridgeable {}

/// The elements of a collection, in one of the forms that they can have.
public struct _CollectionCore<Element: RealmCollectionValue> {
    enum Form {
        case unmanaged([Element])
        case managed(CollectionHandle)
        case results(ResultsCore)
    }
    var form: Form
    init(_ form: Form) { self.form = form }
}

extension RealmCollection {
    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of elements.
    public var endIndex: Int { count }
    /// Nothing is checked before an element is read.
    public func index(after i: Int) -> Int { i + 1 }
    /// Nothing is checked before an element is read.
    public func index(before i: Int) -> Int { i - 1 }
    /// The position so many elements further on; nothing is checked before an element is read.
    public func index(_ i: Int, offsetBy distance: Int) -> Int { i + distance }
    /// Negative where `end` is before `start`.
    public func distance(from start: Int, to end: Int) -> Int { end - start }

    /// Nil for a collection without elements.
    public var first: Element? { isEmpty ? nil : self[0] }
    /// Nil for a collection without elements.
    public var last: Element? { isEmpty ? nil : self[count - 1] }
    /// By `count`.
    public var isEmpty: Bool { count == 0 }

    /// The elements at the given positions; one out of range stops the process.
    public func objects(at indexes: IndexSet) -> [Element] { indexes.map { self[$0] } }
}

extension RealmCollection {
    /// Of each element the value of a property, nil where it has none. `self` gives the elements.
    public func value(forKey key: String) -> Any? { KeyPathOperators.values(of: self, forKey: key) }

    /// The same along a path; or one value where the path begins with an operator: `@count`, `@min.age`, `@max.age`, `@sum.age`,
    /// `@avg.age`, `@unionOfObjects.name`, `@distinctUnionOfObjects.name`, `@unionOfArrays.dogs`, `@distinctUnionOfArrays.dogs`.
    public func value(forKeyPath keyPath: String) -> Any? { KeyPathOperators.value(of: self, forKeyPath: keyPath) }

    /// Sets a property of every element, within a write transaction.
    public func setValue(_ value: Any?, forKey key: String) {
        KeyPathOperators.set(key, of: self) { $0.setValue(value, forKey: key) }
    }

    /// Sets what a path leads to from every element, within a write transaction. Where a link on the way is nil nothing is set.
    public func setValue(_ value: Any?, forKeyPath keyPath: String) {
        KeyPathOperators.set(keyPath, of: self) { $0.setValue(value, forKeyPath: keyPath) }
    }
}

extension RealmCollection where Element: Encodable {
    /// As an array.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for element in self { try container.encode(element) }
    }
}

@inline(never)
func outOfBounds(_ index: Int, _ count: Int) -> Never {
    if index < 0 { misuse("Cannot pass a negative value for 'index'.") }
    misuse("Index \(index) is out of bounds (must be less than \(count)).")
}

/// Collections as the dynamic API sees them.
protocol KeyValueCollection {
    var dynamicElements: [Any?] { get }
    func value(forKeyPath keyPath: String) -> Any?
    func setValue(_ value: Any?, forKey key: String)
}

protocol AnyMap {
    var dynamicEntries: [(key: String, value: Any?)] { get }
}
