import Foundation

/// How texts are compared.
public struct StringOptions: OptionSet, Sendable {
    /// The bits.
    public let rawValue: Int8
    /// From bits.
    public init(rawValue: Int8) { self.rawValue = rawValue }
    /// Upper and lower case make no difference.
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

    /// The value is equal to the given one. Of objects: it is this one; of mapped types that are stored as embedded objects: all
    /// properties are equal.
    public static func == (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.equal(rhs) }
    /// Both values are equal.
    public static func == (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("==", rhs) }
    /// The value is another than the given one, or null.
    public static func != (_ lhs: Query, _ rhs: T) -> Query<Bool> {
        let equal = lhs.equal(rhs)
        if case .comparison(_, "==", _, _) = equal.node { return lhs.compare("!=", rhs) }
        return !equal
    }
    /// The values are not equal.
    public static func != (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("!=", rhs) }

    /// The value is one of those given.
    public func `in`<U: Sequence>(_ collection: U) -> Query<Bool> where U.Element == T { compare("IN", Array(collection)) }

    // MARK: Members

    /// A property of the object.
    public subscript<V>(dynamicMember member: KeyPath<T, V>) -> Query<V> where T: ObjectBase { self.member(member, T.self) }
}

extension Query where T: OptionalProtocol {
    /// A property of the object that is linked to; null where there is none.
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
    /// The value is greater than the given one.
    public static func > (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">", rhs) }
    /// The value is greater than that of the other property.
    public static func > (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">", rhs) }
    /// The value is the given one or greater.
    public static func >= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">=", rhs) }
    /// The value is that of the other property or greater.
    public static func >= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">=", rhs) }
    /// The value is less than the given one.
    public static func < (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<", rhs) }
    /// The value is less than that of the other property.
    public static func < (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<", rhs) }
    /// The value is the given one or less.
    public static func <= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<=", rhs) }
    /// The value is that of the other property or less.
    public static func <= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<=", rhs) }

    /// Of a property of the elements of a collection.
    public var min: Query { aggregate("@min") }
    /// The greatest of a property of the elements of a collection.
    public var max: Query { aggregate("@max") }
    /// The average of a property of the elements of a collection.
    public var avg: Query { aggregate("@avg") }
    /// The sum of a property of the elements of a collection.
    public var sum: Query { aggregate("@sum") }
}

extension Query where T: Comparable {
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T>) -> Query<Bool> { self.range(range.lowerBound, range.upperBound, isClosed: false) }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: OptionalProtocol, T.Wrapped: Comparable {
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

// MARK: Logic

extension Query where T == Bool {
    /// The condition does not hold.
    public static prefix func ! (_ query: Query) -> Query<Bool> { Query<Bool>(.not(query.node)) }
    /// Both conditions hold.
    public static func && (_ lhs: Query, _ rhs: Query) -> Query<Bool> { Query<Bool>(.and(lhs.node, rhs.node)) }
    /// At least one of the conditions holds.
    public static func || (_ lhs: Query, _ rhs: Query) -> Query<Bool> { Query<Bool>(.or(lhs.node, rhs.node)) }

    /// How many elements of a collection meet the condition: `($0.dogs.age > 3).count > 1`.
    public var count: Query<Int> { Query<Int>(.subqueryCount(node)) }
}

// MARK: Texts and data

/// Types that queries search in: texts and data.
public protocol _QueryBinary {}
/// Types that queries match with patterns: texts.
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
    /// The same with the pattern in another property.
    public func like<U>(_ column: Query<U>, caseInsensitive: Bool = false) -> Query<Bool> {
        compare("LIKE", column, caseInsensitive ? .caseInsensitive : [])
    }
}

extension Query where T: _HasPersistedType, T.PersistedType: _QueryBinary {
    /// The value has the given one in it.
    public func contains(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("CONTAINS", value, options) }
    /// The value has that of another property in it.
    public func contains<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool>
    where U: _Persistable, U.PersistedType: _QueryBinary { compare("CONTAINS", column, options) }
    /// The value begins with the given one.
    public func starts(with value: T, options: StringOptions = []) -> Query<Bool> { compare("BEGINSWITH", value, options) }
    /// The value begins with that of another property.
    public func starts<U>(with column: Query<U>, options: StringOptions = []) -> Query<Bool> {
        compare("BEGINSWITH", column, options)
    }
    /// The value ends with the given one.
    public func ends(with value: T, options: StringOptions = []) -> Query<Bool> { compare("ENDSWITH", value, options) }
    /// The value ends with that of another property.
    public func ends<U>(with column: Query<U>, options: StringOptions = []) -> Query<Bool> {
        compare("ENDSWITH", column, options)
    }
    /// The value is equal to the given one.
    public func equals(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("==", value, options) }
    /// The value is equal to that of another property.
    public func equals<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool> { compare("==", column, options) }
    /// The value is not equal to the given one.
    public func notEquals(_ value: T, options: StringOptions = []) -> Query<Bool> { compare("!=", value, options) }
    /// The value is not equal to that of another property.
    public func notEquals<U>(_ column: Query<U>, options: StringOptions = []) -> Query<Bool> { compare("!=", column, options) }
    /// The value is greater than the given one.
    public static func > (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">", rhs) }
    /// The value is greater than that of the other property.
    public static func > (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">", rhs) }
    /// The value is the given one or greater.
    public static func >= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare(">=", rhs) }
    /// The value is that of the other property or greater.
    public static func >= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare(">=", rhs) }
    /// The value is less than the given one.
    public static func < (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<", rhs) }
    /// The value is less than that of the other property.
    public static func < (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<", rhs) }
    /// The value is the given one or less.
    public static func <= (_ lhs: Query, _ rhs: T) -> Query<Bool> { lhs.compare("<=", rhs) }
    /// The value is that of the other property or less.
    public static func <= (_ lhs: Query, _ rhs: Query) -> Query<Bool> { lhs.compare("<=", rhs) }
}

// MARK: Collections

extension Query where T: RealmCollection {
    /// The collection has this element.
    public func contains(_ value: T.Element) -> Query<Bool> {
        Query<Bool>(.comparison(.constant(value), "IN", QueryNode.whole(path), options: ""))
    }
    /// The collection has at least one of these elements.
    public func containsAny<U: Sequence>(in collection: U) -> Query<Bool> where U.Element == T.Element {
        compare("IN", Array(collection))
    }

    /// Any of the elements is equal.
    public static func == (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("==", rhs) }
    /// Any of the elements is not equal.
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
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T.Element>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T.Element>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmCollection, T.Element: OptionalProtocol, T.Element.Wrapped: Comparable {
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T.Element.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T.Element.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmCollection, T.Element.PersistedType: _QueryNumeric {
    /// Any of the elements is greater.
    public static func > (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare(">", rhs) }
    /// Any of the elements is greater or equal.
    public static func >= (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare(">=", rhs) }
    /// Any of the elements is less.
    public static func < (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("<", rhs) }
    /// Any of the elements is less or equal.
    public static func <= (_ lhs: Query<T>, _ rhs: T.Element) -> Query<Bool> { lhs.compare("<=", rhs) }
    /// The least of the elements.
    public var min: Query<T.Element> { aggregate("@min") }
    /// The greatest of the elements.
    public var max: Query<T.Element> { aggregate("@max") }
    /// The average of the elements.
    public var avg: Query<T.Element> { aggregate("@avg") }
    /// The sum of the elements.
    public var sum: Query<T.Element> { aggregate("@sum") }
}

// MARK: Maps

extension Query where T: RealmKeyedCollection {
    /// The values; a comparison with them is met by any.
    public var values: Query<T.Value> { Query<T.Value>(.path(path.appending(.members("@allValues")))) }
    /// The value of a key; null where the key is absent.
    public subscript(member: T.Key) -> Query<T.Value> { Query<T.Value>(.path(path.appending(.index(member._mapKey)))) }
    /// The number of entries.
    public var count: Query<Int> { aggregate("@count") }
    /// The map has this value under any key.
    public func contains(_ value: T.Value) -> Query<Bool> {
        Query<Bool>(.comparison(.constant(value), "IN", QueryNode.whole(path), options: ""))
    }
    /// The map has at least one of these values under any key.
    public func containsAny<U: Sequence>(in collection: U) -> Query<Bool> where U.Element == T.Value {
        compare("IN", Array(collection))
    }
}

extension Query where T: RealmKeyedCollection, T.Key == String {
    /// The keys; a comparison with them is met by any.
    public var keys: Query<String> { Query<String>(.path(path.appending(.members("@allKeys")))) }
}

extension Query where T: RealmKeyedCollection, T.Value: Comparable {
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T.Value>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T.Value>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmKeyedCollection, T.Value: OptionalProtocol, T.Value.Wrapped: Comparable {
    /// The value is in the range, whose upper bound does not belong to it; of a collection the least and the greatest element.
    public func contains(_ range: Range<T.Value.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: false)
    }
    /// The value is in the range, whose bounds belong to it; of a collection the least and the greatest element.
    public func contains(_ range: ClosedRange<T.Value.Wrapped>) -> Query<Bool> {
        self.range(range.lowerBound, range.upperBound, isClosed: true)
    }
}

extension Query where T: RealmKeyedCollection, T.Value.PersistedType: _QueryNumeric {
    /// The least of the elements.
    public var min: Query<T.Value> { aggregate("@min") }
    /// The greatest of the elements.
    public var max: Query<T.Value> { aggregate("@max") }
    /// The average of the elements.
    public var avg: Query<T.Value> { aggregate("@avg") }
    /// The sum of the elements.
    public var sum: Query<T.Value> { aggregate("@sum") }
}

// MARK: AnyRealmValue

extension Query where T == AnyRealmValue {
    /// The element of a list; null where there is none, or no list.
    public subscript(position: Int) -> Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.index(position)))) }
    /// The value of a key of a dictionary; null where there is none.
    public subscript(key: String) -> Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.index(key)))) }
    /// Any of the elements of a nested collection.
    public var any: Query<AnyRealmValue> { Query<AnyRealmValue>(.path(path.appending(.any))) }
}

// MARK: Persisted forms

extension Query where T: PersistableEnum, T.RawValue: _RealmSchemaDiscoverable {
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<T.RawValue> { retyped() }
}
extension Query where T: OptionalProtocol, T.Wrapped: PersistableEnum, T.Wrapped.RawValue: _RealmSchemaDiscoverable {
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<T.Wrapped.RawValue?> { retyped() }
}
extension Query where T: RealmCollection, T.Element: PersistableEnum, T.Element.RawValue: RealmCollectionValue {
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<AnyRealmCollection<T.Element.RawValue>> { retyped() }
}
extension Query where T: RealmKeyedCollection, T.Value: PersistableEnum, T.Value.RawValue: RealmCollectionValue {
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<Map<T.Key, T.Value.RawValue>> { retyped() }
}
extension Query
where
    T: RealmCollection, T.Element: OptionalProtocol, T.Element.Wrapped: PersistableEnum,
    T.Element.Wrapped.RawValue: _RealmCollectionValueInsideOptional
{
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<AnyRealmCollection<T.Element.Wrapped.RawValue?>> { retyped() }
}
extension Query
where
    T: RealmKeyedCollection, T.Value: OptionalProtocol, T.Value.Wrapped: PersistableEnum,
    T.Value.Wrapped.RawValue: _RealmCollectionValueInsideOptional
{
    /// The raw value of the enum, to be compared with raw values.
    public var rawValue: Query<Map<T.Key, T.Value.Wrapped.RawValue?>> { retyped() }
}
extension Query where T: _HasPersistedType {
    /// What the mapped type is stored as.
    public var persistableValue: Query<T.PersistedType> { retyped() }
}
extension Query where T: RealmCollection {
    /// What the mapped type is stored as.
    public var persistableValue: Query<AnyRealmCollection<T.Element.PersistedType>> { retyped() }
}
extension Query where T: RealmKeyedCollection {
    /// What the mapped type is stored as.
    public var persistableValue: Query<Map<T.Key, T.Value.PersistedType>> { retyped() }
}

// MARK: Places

extension Query where T: OptionalProtocol, T.Wrapped: EmbeddedObject {
    /// The point lies in the box.
    public func geoWithin(_ value: GeoBox) -> Query<Bool> { Query<Bool>(.geoWithin(node, value)) }
    /// The point lies in the circle.
    public func geoWithin(_ value: GeoCircle) -> Query<Bool> { Query<Bool>(.geoWithin(node, value)) }
    /// The point lies in the polygon and in none of its holes.
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

    /// The position of the first element for which a condition holds, nil where there is none.
    public func index(matching isIncluded: (Query<Element>) -> Query<Bool>) -> Int? where Element: _RealmSchemaDiscoverable {
        index(matching: isIncluded(Query(.path(QueryKeyPath()))).predicate)
    }
}
