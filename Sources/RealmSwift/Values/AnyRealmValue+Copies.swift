internal import SharedStore

// Lists and dictionaries in values of any type, where they are about to be stored: what they are stored over may be what they are
// read from.

extension AnyRealmValue {
    /// How deep lists and dictionaries can be nested, the outermost one included.
    static let depthMax = 100

    static func refuseDepth() -> Never {
        misuse("Lists and dictionaries in an AnyRealmValue cannot be nested deeper than \(depthMax) levels")
    }

    private var isCollection: Bool {
        switch self {
        case .list, .dictionary: true
        default: false
        }
    }

    /// The same value with copies of the lists and dictionaries that are in a file, however deep, so that no change of the file
    /// changes it.
    func detached(depth: Int = 0) -> AnyRealmValue {
        if !isCollection { return self }
        if depth >= AnyRealmValue.depthMax { AnyRealmValue.refuseDepth() }
        switch self {
        case .list(let list):
            let elements = Array(list)
            if list.handle == nil && !elements.contains(where: \.isCollection) { return self }
            return .fromArray(elements.map { $0.detached(depth: depth + 1) })
        case .dictionary(let map):
            let entries = map.pairs()
            if map.handle == nil && !entries.contains(where: \.value.isCollection) { return self }
            return .fromDictionary(
                Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value.detached(depth: depth + 1)) }))
        default: return self
        }
    }
}

extension _Stored {
    var isCollection: Bool {
        switch content {
        case .list, .dictionary: true
        default: false
        }
    }

    /// See `AnyRealmValue.detached`.
    var detached: _Stored { isCollection ? AnyRealmValue._from(self).detached()._toStored() : self }

    static func detached(_ values: [_Stored]) -> [_Stored] {
        values.contains(where: \.isCollection) ? values.map(\.detached) : values
    }
}

extension RealmCollectionValue {
    /// Elements that are about to replace a collection which they may be part of.
    static func detached(_ elements: [Self]) -> [Self] {
        guard Self.self == AnyRealmValue.self, let values = elements as? [AnyRealmValue] else { return elements }
        return values.map { $0.detached() } as? [Self] ?? elements
    }
}

extension Session {
    /// The same value with copies, in this Realm, of the objects of other ones.
    ///
    /// - Parameter policy: for copies of objects with primary keys.
    func copyingForeignObjects(_ value: AnyRealmValue, _ policy: Realm.UpdatePolicy, depth: Int = 0) -> AnyRealmValue {
        if depth > AnyRealmValue.depthMax { AnyRealmValue.refuseDepth() }
        switch value {
        case .object(let object):
            guard let other = object.session, other !== self else { return value }
            guard let type = type(named: object.schemaName) else {
                misuse("Object type '\(object.schemaName)' is not managed by the Realm.")
            }
            return (type.makeAccessor(create(type, object, policy)) as? Object).map { .object($0) } ?? value
        case .list(let list): return .fromArray(list.map { copyingForeignObjects($0, policy, depth: depth + 1) })
        case .dictionary(let map):
            return .fromDictionary(
                Dictionary(
                    uniqueKeysWithValues: map.pairs().map { ($0.key, copyingForeignObjects($0.value, policy, depth: depth + 1)) })
            )
        default: return value
        }
    }
}
