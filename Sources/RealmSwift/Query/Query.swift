import Foundation

/// How texts are compared.
public struct StringOptions: OptionSet, Sendable {
    public let rawValue: Int8
    public init(rawValue: Int8) { self.rawValue = rawValue }
    public static let caseInsensitive = StringOptions(rawValue: 1)
    /// Accents make no difference.
    public static let diacriticInsensitive = StringOptions(rawValue: 2)

    var text: String { (contains(.caseInsensitive) ? "c" : "") + (contains(.diacriticInsensitive) ? "d" : "") }
}

/// A condition on objects, written in Swift and checked by the compiler.
///
///     realm.objects(Person.self).where { $0.age >= 18 && $0.dogs.name.starts(with: "R") }
///
/// Properties are reached as members, through links and collections too: a path through a collection is met by any of its
/// elements.
@dynamicMemberLookup
public struct Query<T> {
    let node: QueryNode

    init(_ node: QueryNode) { self.node = node }

    public static func _constructForTesting() -> Query<T> { Query(.path(QueryKeyPath())) }

    /// The text of the predicate and its arguments.
    public func _constructPredicate() -> (String, [Any]) {
        let (text, arguments) = QueryText.make(node)
        return (text, arguments.map { $0 ?? NSNull() })
    }

    // MARK: Building

    fileprivate var path: QueryKeyPath {
        guard case .path(let path) = node else { misuse("Only properties have members in a query") }
        return path
    }

    fileprivate func member<V>(_ keyPath: AnyKeyPath, _ root: ObjectBase.Type) -> Query<V> {
        let trace = Tracing.trace(keyPath, from: root)
        if !trace.isComplete { misuse("Queries can only use persisted properties of '\(root.className())'") }
        var path = path
        for step in trace.steps {
            let shape = step.property.shape
            path.parts.append(
                .name(step.property.columnName, isCollection: shape.collection != nil || shape.type == .linkingObjects))
            path.isMap = shape.collection == .map
        }
        return Query<V>(.path(path))
    }

    fileprivate func compare(_ operation: String, _ value: Any?, _ options: StringOptions = []) -> Query<Bool> {
        Query<Bool>(.comparison(node, operation, .constant(value), options: options.text))
    }

    fileprivate func compare<U>(_ operation: String, _ other: Query<U>, _ options: StringOptions = []) -> Query<Bool> {
        if case .path(let a) = node, case .path(let b) = other.node, a.isMany, b.isMany {
            misuse("Comparing two collection columns is not permitted.")
        }
        return Query<Bool>(.comparison(node, operation, other.node, options: options.text))
    }

    /// Mapped types that are stored as embedded objects are equal when all their properties are.
    fileprivate func equal(_ value: T) -> Query<Bool> {
        if let storable = value as? any _Storable, case .object(let object) = storable._toStored().content,
            object is EmbeddedObject, object.block == nil
        {
            var condition: QueryNode?
            for property in ClassInfo.of(type(of: object)).stored {
                let part = QueryNode.comparison(
                    .path(path.appending(.name(property.columnName, isCollection: false))), "==",
                    .constant(object.value(forKey: property.name)), options: "")
                condition = condition.map { .and($0, part) } ?? part
            }
            return Query<Bool>(condition ?? .constant(true))
        }
        return compare("==", value)
    }

    fileprivate func aggregate<V>(_ name: String) -> Query<V> {
        var path = path
        path.aggregate = name
        return Query<V>(.path(path))
    }

    fileprivate func retyped<V>() -> Query<V> { Query<V>(node) }

    fileprivate func range(_ low: Any?, _ high: Any?, isClosed: Bool) -> Query<Bool> {
        if case .path(let path) = node, path.isMany {
            let minimum: Query<Any> = aggregate("@min"), maximum: Query<Any> = aggregate("@max")
            return minimum.compare(">=", low) && maximum.compare(isClosed ? "<=" : "<", high)
        }
        return isClosed ? Query<Bool>(.between(node, low, high)) : compare(">=", low) && compare("<", high)
    }

    // MARK: Equality

    public static func == (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.equal(rhs) }
    public static func == (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("==", rhs) }
    public static func != (_ lhs: Query, _ rhs: T) -> Query<Bool> {
        let equal = lhs.equal(rhs)
        if case .comparison(_, "==", _, _) = equal.node { return lhs.compare("!=", rhs) }
        return !equal
    }
    public static func != (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("!=", rhs) }

    /// The value is one of those given.
    public func `in`<U: Sequence>(_ collection: U) -> Query<Bool> where U.Element == T { compare("IN", Array(collection)) }

    // MARK: Members

    public subscript<V>(dynamicMember member: KeyPath<T, V>) -> Query<V> where T: ObjectBase { self.member(member, T.self) }
}

extension Query where T: OptionalProtocol {
    public subscript<V>(dynamicMember member: KeyPath<T.Wrapped, V>) -> Query<V> where T.Wrapped: ObjectBase {
        self.member(member, T.Wrapped.self)
    }
}

extension Query where T: RealmCollection {
    /// The property of any of the elements.
    public subscript<V>(dynamicMember member: KeyPath<T.Element, V>) -> Query<V> where T.Element: ObjectBase {
        self.member(member, T.Element.self)
    }
    /// The number of elements.
    public var count: Query<Int> { aggregate("@count") }
}

// MARK: Numbers and dates

/// Types with an order that queries can ask for.
public protocol _QueryNumeric: _RealmSchemaDiscoverable {}
extension Int: _QueryNumeric {}
extension Int8: _QueryNumeric {}
extension Int16: _QueryNumeric {}
extension Int32: _QueryNumeric {}
extension Int64: _QueryNumeric {}
extension Float: _QueryNumeric {}
extension Double: _QueryNumeric {}
extension Decimal128: _QueryNumeric {}
extension Date: _QueryNumeric {}
extension AnyRealmValue: _QueryNumeric {}
extension Optional: _QueryNumeric where Wrapped: _Persistable, Wrapped.PersistedType: _QueryNumeric {}

extension Query where T: _HasPersistedType, T.PersistedType: _QueryNumeric {
    public static func > (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">", rhs) }
    public static func > (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">", rhs) }
    public static func >= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">=", rhs) }
    public static func >= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">=", rhs) }
    public static func < (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<", rhs) }
    public static func < (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<", rhs) }
    public static func <= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<=", rhs) }
    public static func <= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<=", rhs) }

    /// Of a property of the elements of a collection.
    public var min: Query { aggregate("@min") }
    public var max: Query { aggregate("@max") }
    public var avg: Query { aggregate("@avg") }
    public var sum: Query { aggregate("@sum") }
}

extension Query where T: Comparable {
    public func contains(_ range: Range<T>) -> Query<Bool> { self.range(range.lowerBound, range.upperBound, isClosed: false) }
    public func contains(_ range: ClosedRange<T>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: OptionalProtocol, T.Wrapped: Comparable {
    public func contains(_ range: Range<T.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    public func contains(_ range: ClosedRange<T.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

// MARK: Logic

extension Query where T == Bool {
    public static prefix func ! (_ query: Query) -> Query<Bool> { Query<Bool>(.not(query.node)) }
    public static func && (_ lhs: Query, _ rhs: Query) -> Query<Bool> { Query<Bool>(.and(lhs.node, rhs.node)) }
    public static func || (_ lhs: Query, _ rhs: Query) -> Query<Bool> { Query<Bool>(.or(lhs.node, rhs.node)) }

    /// How many elements of a collection meet the condition: `($0.dogs.age > 3).count > 1`.
    public var count: Query<Int> { Query<Int>(.subqueryCount(node)) }
}

// MARK: Texts and data

public protocol _QueryBinary {}
public protocol _QueryString: _QueryBinary {}
extension String: _QueryString {}
extension Data: _QueryBinary {}
extension Optional: _QueryString where Wrapped: _Persistable, Wrapped.PersistedType: _QueryString {}
extension Optional: _QueryBinary where Wrapped: _Persistable, Wrapped.PersistedType: _QueryBinary {}

extension Query where T: _HasPersistedType, T.PersistedType: _QueryString {
    /// `?` stands for one character, `*` for any number.
    public func like(_ value: T, caseInsensitive: Bool = false) -> Query<Bool> {
        compare("LIKE", value, caseInsensitive ? .caseInsensitive : [])
    }
    public func like<U>(_ column: Query<U>, caseInsensitive: Bool = false) -> Query<Bool> {
        compare("LIKE", column, caseInsensitive ? .caseInsensitive : [])
    }
}

extension Query where T: _HasPersistedType, T.PersistedType: _QueryBinary {
    public func contains(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("CONTAINS", value, options) }
    public func contains<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool>
    where U: _Persistable, U.PersistedType: _QueryBinary { compare("CONTAINS", column, options) }
    public func starts(with value: T, options: StringOptions = []) -> Query<Bool> { compare("BEGINSWITH", value, options) }
    public func starts<U>(with column: Query<U>, options: StringOptions = []) -> Query<Bool> {
        compare("BEGINSWITH", column, options)
    }
    public func ends(with value: T, options: StringOptions = []) -> Query<Bool> { compare("ENDSWITH", value, options) }
    public func ends<U>(with column: Query<U>, options: StringOptions = []) -> Query<Bool> {
        compare("ENDSWITH", column, options)
    }
    public func equals(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("==", value, options) }
    public func equals<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool> { compare("==", column, options) }
    public func notEquals(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("!=", value, options) }
    public func notEquals<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool> { compare("!=", column, options) }
    public static func > (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">", rhs) }
    public static func > (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">", rhs) }
    public static func >= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">=", rhs) }
    public static func >= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">=", rhs) }
    public static func < (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<", rhs) }
    public static func < (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<", rhs) }
    public static func <= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<=", rhs) }
    public static func <= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<=", rhs) }
}

// MARK: Collections

extension Query where T: RealmCollection {
    public func contains(_ value: T.Element) -> Query<Bool> {
        Query<Bool>(.comparison(.constant(value), "IN", QueryNode.whole(path), options: ""))
    }
    public func containsAny<U: Sequence>(in collection: U) -> Query<Bool> where U.Element == T.Element {
        compare("IN", Array(collection))
    }

    /// Any of the elements is equal.
    public static func == (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("==", rhs) }
    public static func != (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("!=", rhs) }
}

extension QueryNode {
    /// A collection as a whole, without ANY: the operator looks into it.
    fileprivate static func whole(_ path: QueryKeyPath) -> QueryNode {
        var path = path
        if case .name(let name, _)? = path.parts.last { path.parts[path.parts.count - 1] = .name(name, isCollection: false) }
        return .path(path)
    }
}

extension Query where T: RealmCollection, T.Element: Comparable {
    public func contains(_ range: Range<T.Element>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    public func contains(_ range: ClosedRange<T.Element>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmCollection, T.Element: OptionalProtocol, T.Element.Wrapped: Comparable {
    public func contains(_ range: Range<T.Element.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    public func contains(_ range: ClosedRange<T.Element.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmCollection, T.Element.PersistedType: _QueryNumeric {
    public static func > (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare(">", rhs) }
    public static func >= (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare(">=", rhs) }
    public static func < (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("<", rhs) }
    public static func <= (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("<=", rhs) }
    public var min: Query<T.Element> { aggregate("@min") }
    public var max: Query<T.Element> { aggregate("@max") }
    public var avg: Query<T.Element> { aggregate("@avg") }
    public var sum: Query<T.Element> { aggregate("@sum") }
}

// MARK: Maps

extension Query where T: RealmKeyedCollection {
    public var values: Query<T.Value> { Query<T.Value>(.path(path.appending(.members("@allValues")))) }
    public subscript(member: T.Key) -> Query<T.Value> { Query<T.Value>(.path(path.appending(.index(member._mapKey)))) }
    public var count: Query<Int> { aggregate("@count") }
    public func contains(_ value: T.Value) -> Query<Bool> {
        Query<Bool>(.comparison(.constant(value), "IN", QueryNode.whole(path), options: ""))
    }
    public func containsAny<U: Sequence>(in collection: U) -> Query<Bool> where U.Element == T.Value {
        compare("IN", Array(collection))
    }
}

extension Query where T: RealmKeyedCollection, T.Key == String {
    public var keys: Query<String> { Query<String>(.path(path.appending(.members("@allKeys")))) }
}

extension Query where T: RealmKeyedCollection, T.Value: Comparable {
    public func contains(_ range: Range<T.Value>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    public func contains(_ range: ClosedRange<T.Value>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmKeyedCollection, T.Value: OptionalProtocol, T.Value.Wrapped: Comparable {
    public func contains(_ range: Range<T.Value.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    public func contains(_ range: ClosedRange<T.Value.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmKeyedCollection, T.Value.PersistedType: _QueryNumeric {
    public var min: Query<T.Value> { aggregate("@min") }
    public var max: Query<T.Value> { aggregate("@max") }
    public var avg: Query<T.Value> { aggregate("@avg") }
    public var sum: Query<T.Value> { aggregate("@sum") }
}

// MARK: AnyRealmValue

extension Query where T == AnyRealmValue {
    public subscript(position: Int) -> Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.index(position)))) }
    public subscript(key: String) -> Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.index(key)))) }
    /// Any of the elements of a nested collection.
    public var any: Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.any))) }
}

// MARK: Persisted forms

extension Query where T: PersistableEnum, T.RawValue: _RealmSchemaDiscoverable {
    public var rawValue: Query<T.RawValue> { retyped() }
}
extension Query where T: OptionalProtocol, T.Wrapped: PersistableEnum, T.Wrapped.RawValue: _RealmSchemaDiscoverable {
    public var rawValue: Query<T.Wrapped.RawValue?> { retyped() }
}
extension Query where T: RealmCollection, T.Element: PersistableEnum, T.Element.RawValue: RealmCollectionValue {
    public var rawValue: Query<AnyRealmCollection<T.Element.RawValue>> { retyped() }
}
extension Query where T: RealmKeyedCollection, T.Value: PersistableEnum, T.Value.RawValue: RealmCollectionValue {
    public var rawValue: Query<Map<T.Key, T.Value.RawValue>> { retyped() }
}
extension Query
where
    T: RealmCollection, T.Element: OptionalProtocol, T.Element.Wrapped: PersistableEnum,
    T.Element.Wrapped.RawValue: _RealmCollectionValueInsideOptional
{
    public var rawValue: Query<AnyRealmCollection<T.Element.Wrapped.RawValue?>> { retyped() }
}
extension Query
where
    T: RealmKeyedCollection, T.Value: OptionalProtocol, T.Value.Wrapped: PersistableEnum,
    T.Value.Wrapped.RawValue: _RealmCollectionValueInsideOptional
{
    public var rawValue: Query<Map<T.Key, T.Value.Wrapped.RawValue?>> { retyped() }
}
extension Query where T: _HasPersistedType {
    public var persistableValue: Query<T.PersistedType> { retyped() }
}
extension Query where T: RealmCollection {
    public var persistableValue: Query<AnyRealmCollection<T.Element.PersistedType>> { retyped() }
}
extension Query where T: RealmKeyedCollection {
    public var persistableValue: Query<Map<T.Key, T.Value.PersistedType>> { retyped() }
}

// MARK: Places

extension Query where T: OptionalProtocol, T.Wrapped: EmbeddedObject {
    public func geoWithin(_ value: GeoBox) -> Query<Bool> { Query<Bool>(.geoWithin(node, value)) }
    public func geoWithin(_ value: GeoCircle) -> Query<Bool> { Query<Bool>(.geoWithin(node, value)) }
    public func geoWithin(_ value: GeoPolygon) -> Query<Bool> { Query<Bool>(.geoWithin(node, value)) }
}

// MARK: Use

extension Query where T == Bool {
    var predicate: NSPredicate {
        let (text, arguments) = QueryText.make(node)
        return NSPredicate(format: text, argumentArray: arguments)
    }
}

extension RealmCollection {
    /// The elements that meet a condition, see `Query`.
    public func `where`(_ isIncluded: (Query<Element>) -> Query<Bool>) -> Results<Element> {
        filter(isIncluded(Query(.path(QueryKeyPath()))).predicate)
    }

    public func index(matching isIncluded: (Query<Element>) -> Query<Bool>) -> Int? where Element: _RealmSchemaDiscoverable {
        index(matching: isIncluded(Query(.path(QueryKeyPath()))).predicate)
    }
}
