import Foundation
internal import SharedStore

/// Values by key: `Map`.
public protocol RealmKeyedCollection: Sequence, ThreadConfined, CustomStringConvertible {
    associatedtype Key: _MapKey
    associatedtype Value: RealmCollectionValue
    var count: Int { get }
    func updateValue(_ value: Value, forKey key: Key)
    func removeObject(for key: Key)
    func removeAll()
    subscript(key: Key) -> Value? { get set }
    func value(forKey key: String) -> Any?
    func value(forKeyPath keyPath: String) -> Any?
    func setValue(_ value: Any?, forKey key: String)
    func filter(_ predicate: NSPredicate) -> Results<Value>
    func contains(where predicate: @escaping (_ key: Key, _ value: Value) -> Bool) -> Bool
    func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Value> where S.Element == SortDescriptor
    var keys: [Key] { get }
    var values: [Value] { get }
    /// For the library.
    var _valueCore: _CollectionCore<Value> { get }
}

extension Map: RealmKeyedCollection {
    public var _valueCore: _CollectionCore<Value> { _CollectionCore(handle.map { .managed($0) } ?? .unmanaged(values)) }
}

extension RealmKeyedCollection {
    /// The values for which a predicate holds.
    public func filter(_ predicate: NSPredicate) -> Results<Value> {
        let core = _valueCore.results()
        core.requireObjects()
        return Results(core.filtered(PredicateFormat.syntax(predicate, core.session)))
    }

    /// The values for which a condition holds, as in `Results.where`.
    public func `where`(_ isIncluded: (Query<Value>) -> Query<Bool>) -> Results<Value> {
        filter(isIncluded(Query._constructForTesting()).predicate)
    }

    /// The values in order.
    public func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Value> where S.Element == SortDescriptor {
        let keys = sortDescriptors.map {
            QuerySyntax.SortKey(
                QuerySyntax.Path(names: $0.keyPath.split(separator: ".").map(String.init)), ascending: $0.ascending)
        }
        let core = _valueCore.results()
        for key in keys { core.checkSortable(key.path) }
        return Results(keys.isEmpty ? core : core.ordered(.sort(keys)))
    }

    /// The values sorted by a property, or by one of an object that a path of links leads to.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results<Value> {
        sorted(by: [SortDescriptor(keyPath: keyPath, ascending: ascending)])
    }

    /// The least value of a property, nil where there is none.
    public func min<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        _valueCore.aggregate(.min, property, T.self)
    }
    /// The greatest value of a property, nil where there is none.
    public func max<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        _valueCore.aggregate(.max, property, T.self)
    }
    /// The sum of a property. 0 where there is nothing to add.
    public func sum<T: _HasPersistedType>(ofProperty property: String) -> T where T.PersistedType: AddableType { sum(property) }
    /// The average of a property over the values in which it is not null, nil where there is none.
    public func average<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: AddableType {
        _valueCore.aggregate(.average, property, T.self)
    }

    fileprivate func sum<T>(_ property: String?) -> T {
        guard let sum = _valueCore.aggregate(.sum, property, T.self) else {
            misuse("The sum of '\(property ?? "self")' cannot be had as '\(T.self)'")
        }
        return sum
    }
}

extension RealmKeyedCollection where Value: OptionalProtocol, Value.Wrapped: ObjectBase {
    /// The least value of a property, nil where there is none.
    public func min<T: _HasPersistedType>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: MinMaxType {
        _valueCore.aggregate(.min, _name(for: keyPath), T.self)
    }
    /// The greatest value of a property, nil where there is none.
    public func max<T: _HasPersistedType>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: MinMaxType {
        _valueCore.aggregate(.max, _name(for: keyPath), T.self)
    }
    /// The sum of a property. 0 where there is nothing to add.
    public func sum<T: _HasPersistedType>(of keyPath: KeyPath<Value.Wrapped, T>) -> T where T.PersistedType: AddableType {
        sum(_name(for: keyPath))
    }
    /// The average of a property over the values in which it is not null, nil where there is none.
    public func average<T: _HasPersistedType>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: AddableType {
        _valueCore.aggregate(.average, _name(for: keyPath), T.self)
    }

    /// The values sorted by a property, or by one of an object that a path of links leads to.
    public func sorted<T: _HasPersistedType>(by keyPath: KeyPath<Value.Wrapped, T>, ascending: Bool = true) -> Results<Value>
    where T.PersistedType: SortableType {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }
}

extension RealmKeyedCollection where Value.PersistedType: MinMaxType {
    /// The least value, nil where there is none.
    public func min() -> Value? { _valueCore.aggregate(.min, nil, Value.self) }
    /// The greatest value, nil where there is none.
    public func max() -> Value? { _valueCore.aggregate(.max, nil, Value.self) }
}

extension RealmKeyedCollection where Value.PersistedType: AddableType {
    /// The sum of the values. 0 where there is nothing to add.
    public func sum() -> Value { sum(nil) }
    /// The average of the values that are not null, nil where there is none.
    public func average<T: _HasPersistedType>() -> T? where T.PersistedType: AddableType {
        _valueCore.aggregate(.average, nil, T.self)
    }
}

extension RealmKeyedCollection where Value.PersistedType: SortableType {
    /// The values in their order, as in `RealmCollection.sorted(ascending:)`.
    public func sorted(ascending: Bool = true) -> Results<Value> {
        sorted(by: [SortDescriptor(keyPath: "self", ascending: ascending)])
    }
}
