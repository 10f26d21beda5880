/// A collection of one version, found by its identity.
enum ObservedCollection {
    case list(ListReader)
    case set(SetReader)
    case dictionary(DictionaryReader)

    /// Nil where there is no such collection (any more): the object is gone, or the Mixed value that held it is something else.
    ///
    /// - Parameter salt: of a collection in a Mixed property the number by which another one in the same place can be told; else
    ///   0.
    static func find(_ identity: ChangesetWriter.CollectionIdentity, in group: Group) throws -> (
        collection: ObservedCollection, salt: Int64
    )? {
        guard let table = try group.table(identity.table), let column = table.column(identity.column),
            let row = try table.find(identity.object)
        else { return nil }
        var found: ObservedCollection
        var salt: Int64 = 0
        switch column.collection {
        case .list: found = .list(try row.list(column))
        case .set: found = .set(try row.set(column))
        case .dictionary: found = .dictionary(try row.dictionary(column))
        case nil:
            guard column.type == .mixed else { return nil }
            switch try row.mixed(column) {
            case .list: found = .list(try row.list(column))
            case .dictionary: found = .dictionary(try row.dictionary(column))
            default: return nil
            }
            salt = try row.nestedKey(column)
        }
        for salt in identity.salts {
            switch found {
            case .set: return nil
            case .list(let list):
                guard list.elementType == .mixed, let i = try list.position(ofNestedKey: salt) else { return nil }
                switch try list.value(i) {
                case .list: found = .list(try list.list(i))
                case .dictionary: found = .dictionary(try list.dictionary(i))
                default: return nil
                }
            case .dictionary(let dictionary):
                guard let i = try dictionary.position(ofNestedKey: salt) else { return nil }
                switch try dictionary.value(i) {
                case .list: found = .list(try dictionary.list(i))
                case .dictionary: found = .dictionary(try dictionary.dictionary(i))
                default: return nil
                }
            }
        }
        return (found, salt)
    }

    var count: Int {
        switch self {
        case .list(let list): list.count
        case .set(let set): set.count
        case .dictionary(let dictionary): dictionary.count
        }
    }

    func value(_ index: Int) throws -> Mixed {
        switch self {
        case .list(let list): try list.value(index)
        case .set(let set): try set.value(index)
        case .dictionary(let dictionary): try dictionary.value(index)
        }
    }

    /// The position of the nested collection with the key.
    func position(ofNestedKey key: Int64) throws -> Int? {
        switch self {
        case .list(let list): list.elementType == .mixed ? try list.position(ofNestedKey: key) : nil
        case .set: nil
        case .dictionary(let dictionary): try dictionary.position(ofNestedKey: key)
        }
    }

    /// The keys of a dictionary in stored order; empty for the others.
    func keys() throws -> [String] {
        guard case .dictionary(let dictionary) = self else { return [] }
        return try (0..<dictionary.count).map(key)
    }

    /// Key `index` of a dictionary.
    func key(_ index: Int) throws -> String {
        guard case .dictionary(let dictionary) = self else { return "" }
        switch try dictionary.key(index) {
        case .string(let text): return text
        case .int(let number): return String(number)
        default: return ""
        }
    }
}
