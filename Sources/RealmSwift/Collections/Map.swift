import Foundation
internal import SharedStore

/// Values or objects by text keys, a property of an object.
///
/// Objects as values are optional (`Map<String, Dog?>`): when the object is deleted the key stays, with nil. Keys must not
/// contain a period nor begin with a dollar sign; where they come from outside, encode them (`%2E`, `%24`). The order means
/// nothing.
public final class Map<Key: _MapKey, Value: RealmCollectionValue> {
    // See `List`.
    @exclusivity(unchecked) private var entries: [ExactString: (key: Key, value: Value)] = [:]
    @exclusivity(unchecked) var handle: CollectionHandle?

    /// An empty map that belongs to no object yet.
    public init() {}

    init(_ handle: CollectionHandle) { self.handle = handle }

    // MARK: Reading

    /// Of a managed map as its Realm sees it now. An invalidated map stops the process.
    public var count: Int { handle?.count ?? entries.count }
    /// No key, not even one with a null.
    public var isEmpty: Bool { count == 0 }

    /// All keys, in the order of `values`.
    public var keys: [Key] { handle?.keys().map { Key(_mapKey: $0) } ?? entries.values.map(\.key) }
    /// All values, in the order of `keys`.
    public var values: [Value] { handle?.values().map { Value._from($0) } ?? entries.values.map(\.value) }

    /// Nil for an absent key. Assigning nil removes the key; to store a null under it assign `.some(nil)`.
    public subscript(key: Key) -> Value? {
        get {
            if let handle { return handle.value(forKey: key._mapKey).map { Value._from($0) } }
            return entries[ExactString(key._mapKey)]?.value
        }
        set {
            if let newValue { updateValue(newValue, forKey: key) } else { removeObject(for: key) }
        }
    }

    /// The value of a key, without its type; nil for an absent key and for one of another type.
    public func object(forKey key: Any) -> Any? { (key as? Key).flatMap { self[$0]?._toStored().dynamicValue } }

    /// Whether there is an entry for which the block returns true.
    public func contains(where predicate: @escaping (_ key: Key, _ value: Value) -> Bool) -> Bool {
        pairs().contains { predicate($0.key, $0.value) }
    }

    func pairs() -> [(key: Key, value: Value)] {
        guard let handle else { return Array(entries.values) }
        return zip(handle.keys(), handle.values()).map { (Key(_mapKey: $0), Value._from($1)) }
    }

    // MARK: Changing

    /// Sets the value of a key, whether it is there or not. A key with a period, or with a dollar sign in front, stops the
    /// process.
    public func updateValue(_ value: Value, forKey key: Key) {
        MapKeys.check(key._mapKey)
        if let handle { return handle.set(value._toStored(), forKey: key._mapKey) }
        entries[ExactString(key._mapKey)] = (key, value)
    }

    /// An absent key changes nothing.
    public func removeObject(for key: Key) {
        if let handle { return handle.remove(key: key._mapKey) }
        entries[ExactString(key._mapKey)] = nil
    }

    /// Empties the map; objects stay in the Realm, embedded ones are deleted.
    public func removeAll() {
        if let handle { return handle.removeAll() }
        entries.removeAll()
    }

    /// - Parameter combine: makes the value of a key that both sides have from the present one and the new one.
    public func merge<S: Sequence>(_ sequence: S, uniquingKeysWith combine: (Value, Value) throws -> Value) rethrows
    where S.Element == (key: Key, value: Value) {
        for (key, value) in Array(sequence) { self[key] = try self[key].map { try combine($0, value) } ?? value }
    }

    /// The same for tuples without labels.
    public func merge<S: Sequence>(_ sequence: S, uniquingKeysWith combine: (Value, Value) throws -> Value) rethrows
    where S.Element == (Key, Value) {
        for (key, value) in Array(sequence) { self[key] = try self[key].map { try combine($0, value) } ?? value }
    }

    /// Takes over the entries of another map.
    ///
    /// - Parameter combine: makes the value of a key that both sides have from the present one and the new one.
    public func merge(_ other: Map<Key, Value>, uniquingKeysWith combine: (Value, Value) throws -> Value) rethrows {
        try merge(other.pairs(), uniquingKeysWith: combine)
    }

    /// The value of a key; `@count` and the other operators of key paths work too.
    public func value(forKey key: String) -> Any? {
        if key.hasPrefix("@") { return KeyPathOperators.value(of: values.map { $0._toStored().dynamicValue }, forKeyPath: key) }
        return self[Key(_mapKey: key)]?._toStored().dynamicValue
    }

    /// As `value(forKey:)`, and on along a path through the objects that are the values.
    public func value(forKeyPath keyPath: String) -> Any? {
        guard let dot = keyPath.firstIndex(of: "."), !keyPath.hasPrefix("@") else { return value(forKey: keyPath) }
        let rest = String(keyPath[keyPath.index(after: dot)...])
        return (value(forKey: String(keyPath[..<dot])) as? ObjectBase)?.value(forKeyPath: rest)
    }

    /// Sets a key from a value of any form that fits; nil removes it.
    public func setValue(_ value: Any?, forKey key: String) {
        guard let value = ValueInput.unwrap(value) else { return removeObject(for: Key(_mapKey: key)) }
        guard let stored = ValueInput.convert(value, to: Value._elementShape) else {
            misuse(ValueInput.message(value, Value._elementShape, key))
        }
        updateValue(Value._from(stored), forKey: Key(_mapKey: key))
    }

    // MARK: Place

    /// Nil for an unmanaged map and for one that was invalidated.
    public var realm: Realm? { handle?.realm }
    /// True when the object that has the map is gone, or its Realm was invalidated; false for an unmanaged map.
    public var isInvalidated: Bool { handle?.isInvalidated ?? false }
    /// Always false for an unmanaged map.
    public var isFrozen: Bool { handle?.session.isFrozen ?? false }
    /// The map as it is now, for every thread. An unmanaged map stops the process.
    public func freeze() -> Map { Map(CollectionHandle.frozen(handle)) }
    /// The live map; nil where its object is gone.
    public func thaw() -> Map? { CollectionHandle.thawed(handle).map { Map($0) } }

    public var description: String {
        if isInvalidated { return descriptionHeader + " [invalid collection]" }
        return Description.text(
            of: pairs().map { ($0.key._mapKey, $0.value as Any) }, named: "Map<string, \(Value._elementShape.elementName)>", self)
    }
}

@available(
    *, unavailable,
    message: "Maps belong to the thread, queue or actor of their Realm: pass a ThreadSafeReference or a frozen map"
)
extension Map: @unchecked Sendable {}

extension Map: Hashable {
    public static func == (a: Map, b: Map) -> Bool { a === b || CollectionHandle.isSame(a.handle, b.handle) }
    public func hash(into hasher: inout Hasher) {
        if let handle { hasher.combine(handle.identity) } else { hasher.combine(ObjectIdentifier(self)) }
    }
}

extension Map: ThreadConfined, CustomStringConvertible {}

enum MapKeys {
    /// Key paths would not know what is meant.
    static func check(_ key: String) {
        if !isPossible(key) { misuse(message(key)) }
    }

    static func isPossible(_ key: String) -> Bool { !key.contains(".") && !key.hasPrefix("$") }

    static func message(_ key: String) -> String {
        "Invalid key '\(key)' for Map: it must not contain '.' nor begin with '$'. Encode these as %2E and %24."
    }
}

// MARK: Entries

/// A type that is an entry of a map.
public protocol _RealmMapValue {
    associatedtype Key: _MapKey
    associatedtype Value: RealmCollectionValue
    init(_key: Key, value: Value)
}

/// A key and its value.
public struct SingleMapEntry<Key: _MapKey, Value: RealmCollectionValue>: _RealmMapValue, Hashable {
    /// The key.
    public var key: Key
    /// The value of the key.
    public var value: Value

    public init(_key key: Key, value: Value) {
        self.key = key
        self.value = value
    }
}

/// Goes through the entries of a map as it was when the iteration began.
@frozen public struct RLMMapIterator<Element: _RealmMapValue>: IteratorProtocol {
    @usableFromInline var rest: ArraySlice<Element>
    @usableFromInline init(_ elements: [Element]) { rest = elements[...] }
    public mutating func next() -> Element? { rest.popFirst() }
}

/// The same with tuples.
@frozen public struct RLMKeyValueIterator<Key: _MapKey, Value: RealmCollectionValue>: IteratorProtocol {
    public typealias Element = (key: Key, value: Value)
    @usableFromInline var rest: ArraySlice<Element>
    @usableFromInline init(_ elements: [Element]) { rest = elements[...] }
    /// Nil behind the last entry.
    public mutating func next() -> Element? { rest.popFirst() }
}

extension Map: Sequence {
    /// Goes through the entries as they were when the iteration began.
    public func makeIterator() -> RLMMapIterator<SingleMapEntry<Key, Value>> {
        RLMMapIterator(pairs().map { SingleMapEntry(_key: $0.key, value: $0.value) })
    }

    /// The entries of a map as tuples.
    public struct KeyValueSequence: Sequence {
        fileprivate let map: Map
        /// Goes through the entries as they were when the iteration began.
        public func makeIterator() -> RLMKeyValueIterator<Key, Value> { RLMKeyValueIterator(map.pairs()) }
    }

    /// The entries as tuples.
    public func asKeyValueSequence() -> KeyValueSequence { KeyValueSequence(map: self) }
}

// MARK: Codable

private struct TextKey: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension Map: Decodable where Key: Decodable, Value: Decodable {
    /// From an object with text keys. A key that a map cannot have is a `DecodingError`.
    public convenience init(from decoder: any Decoder) throws {
        self.init()
        let container = try decoder.container(keyedBy: TextKey.self)
        for key in container.allKeys {
            // What comes from outside is an error, not a mistake of the program.
            if !MapKeys.isPossible(key.stringValue) {
                throw DecodingError.dataCorruptedError(
                    forKey: key, in: container, debugDescription: MapKeys.message(key.stringValue))
            }
            self[Key(_mapKey: key.stringValue)] = try container.decode(Value.self, forKey: key)
        }
    }
}

extension Map: Encodable where Key: Encodable, Value: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TextKey.self)
        for (key, value) in pairs() { try container.encode(value, forKey: TextKey(stringValue: key._mapKey)) }
    }
}

// MARK: As a property

extension Map: _RealmSchemaDiscoverable, _HasPersistedType, _Persistable, _DefaultConstructible {
    public typealias PersistedType = Map
    public static var _shape: _PropertyShape { Value._elementShape.collected(.map) }

    public static func _get(_ object: ObjectBase, _ slot: Int) -> Map { object.collection(slot) { Map($0) } }
    public static func _set(_ object: ObjectBase, _ slot: Int, _ value: Map) { _ = _assigned(value, over: _get(object, slot)) }

    /// The property keeps its map and takes over the entries.
    public static func _assigned(_ new: Map, over old: Map?) -> Map {
        let map = old ?? Map()
        if map === new || map.handle != nil && CollectionHandle.isSame(map.handle, new.handle) { return map }
        let pairs = new.pairs()
        let values = Value.detached(pairs.map(\.value))
        map.removeAll()
        for (pair, value) in zip(pairs, values) { map.updateValue(value, forKey: pair.key) }
        return map
    }

    public static func _toDynamic(_ value: Map) -> Any? { value }

    public static func _fromInput(_ input: Any?, into object: ObjectBase?) -> Map? {
        guard let stored = ValueInput.convertEntries(input, to: Value._elementShape) else { return nil }
        let map = Map()
        for (key, value) in stored { map.updateValue(Value._from(value), forKey: Key(_mapKey: key)) }
        return map
    }

    public static func _write(_ value: Map, to target: _WriteTarget) {
        target.writeMap(value.pairs().map { ($0.key._mapKey, $0.value._toStored()) })
    }

    public static func _bind(_ value: Map, to object: ObjectBase, _ slot: Int) {
        value.handle = object.collectionHandle(slot)
        value.entries = [:]
        object.remember(value, slot)
    }
}

extension Map: KeyValueCollection, AnyMap {
    var dynamicElements: [Any?] { values.map { $0._toStored().dynamicValue } }
    var dynamicEntries: [(key: String, value: Any?)] { pairs().map { ($0.key._mapKey, $0.value._toStored().dynamicValue) } }
}
