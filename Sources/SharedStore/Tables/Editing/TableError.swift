/// A change that the tables do not allow. Nothing was changed by the call that threw it.
public enum TableError: Error, Equatable, Sendable, CustomStringConvertible {
    case noSuchTable(String)
    case noSuchColumn(table: String, column: String)
    case noSuchObject(table: String, key: Int64)
    case nameTaken(String)
    case badName(String, byteCountMax: Int)
    /// Other tables link to it.
    case tableIsLinkedTo(table: String, by: String)
    case wrongType(table: String, column: String, expected: String, found: String)
    case nullNotAllowed(table: String, column: String)
    case duplicatePrimaryKey(table: String, value: String)
    case primaryKeyIsFixed(table: String)
    case badLinkTarget(table: String, column: String, reason: String)
    case indexOutOfRange(Int, count: Int)
    case badDictionaryKey(String)
    case notACollection(table: String, column: String)
    case collectionIsGone(table: String, column: String)
    case notIndexable(table: String, column: String)
    case tooManyColumns(table: String)
    case nestingTooDeep
    case notANumber(table: String, column: String)

    public var description: String {
        switch self {
        case .noSuchTable(let t): "there is no table \"\(t)\""
        case .noSuchColumn(let t, let c): "table \"\(t)\" has no column \"\(c)\""
        case .noSuchObject(let t, let k): "table \"\(t)\" has no object with key \(k)"
        case .nameTaken(let n): "the name \"\(n)\" is taken"
        case .badName(let n, let max): "the name \"\(n)\" must have 1 to \(max) bytes"
        case .tableIsLinkedTo(let t, let by): "table \"\(t)\" cannot be removed: \"\(by)\" links to it"
        case .wrongType(let t, let c, let e, let f): "\"\(t).\(c)\" holds \(e), not \(f)"
        case .nullNotAllowed(let t, let c): "\"\(t).\(c)\" must have a value"
        case .duplicatePrimaryKey(let t, let v): "table \"\(t)\" has an object with the primary key \(v) already"
        case .primaryKeyIsFixed(let t): "the primary key of an object of \"\(t)\" cannot be changed"
        case .badLinkTarget(let t, let c, let r): "\"\(t).\(c)\" cannot link there: \(r)"
        case .indexOutOfRange(let i, let n): "index \(i) is outside a collection of \(n)"
        case .badDictionaryKey(let k): "the dictionary key \"\(k)\" begins with '$' or contains '.'"
        case .notACollection(let t, let c): "\"\(t).\(c)\" holds no such collection"
        case .collectionIsGone(let t, let c): "the nested collection in \"\(t).\(c)\" is no longer there"
        case .notIndexable(let t, let c): "\"\(t).\(c)\" cannot have such an index"
        case .tooManyColumns(let t): "table \"\(t)\" has the most columns that are possible"
        case .nestingTooDeep: "collections can be nested 100 levels deep at most"
        case .notANumber(let t, let c): "\"\(t).\(c)\" holds no number to add to"
        }
    }
}
