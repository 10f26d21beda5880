/// Where an import goes: a write transaction that is committed now and then.
public protocol ImportTarget: AnyObject {
    /// The present transaction's tables; another object after each checkpoint.
    var group: GroupEditor { get }
    /// Commits what was made so far and goes on, where the transaction has become large.
    /// - Parameter progress: objects done, and in all where that is known.
    func checkpoint(progress: ImportProgress) throws
}

/// How far an import is.
public struct ImportProgress: Equatable, Sendable {
    /// Objects that are in the file.
    public var objectsDone: Int
    /// Bytes of text that were read, of how many. The text is read more than once.
    public var bytesDone: Int
    /// Bytes of text in all.
    public var bytesTotal: Int
}

/// Values of the JSON form that `JSONExporter` writes.
enum ImportedValue {
    case value(Mixed)
    /// The key of an embedded object, which stands under its own class as well.
    case embedded(ObjectKey)
    /// A cursor at the beginning of an array, or of the pairs of a dictionary.
    case array(JSONCursor)
    case dictionary(JSONCursor)
    /// A link by name of class or table.
    case link(String, ObjectKey)

    /// Reads the next value; the cursor stands behind it afterwards.
    static func read(_ cursor: inout JSONCursor) throws -> ImportedValue {
        switch try cursor.kind() {
        case .null:
            try cursor.null()
            return .value(.null)
        case .bool: return .value(.bool(try cursor.bool()))
        case .string: return .value(.string(try cursor.string()))
        case .number:
            switch try cursor.number() {
            case .int(let v): return .value(.int(v))
            case .double(let v): return .value(.double(v))
            }
        case .array:
            let start = cursor
            try cursor.skip()
            return .array(start)
        case .object: return try readTagged(&cursor)
        }
    }

    private static func readTagged(_ cursor: inout JSONCursor) throws -> ImportedValue {
        let start = cursor
        var result: ImportedValue?
        try cursor.forEachMember { tag, cursor in
            if result != nil { throw cursor.error("a tagged value has one member") }
            result = try readTagged(tag, &cursor)
        }
        guard let result else { throw start.error("an empty object is no value") }
        return result
    }

    private static func readTagged(_ tag: String, _ cursor: inout JSONCursor) throws -> ImportedValue {
        let start = cursor
        func number(_ cursor: inout JSONCursor) throws -> String {
            if try cursor.kind() == .string { return try cursor.string() }
            switch try cursor.number() {
            case .int(let v): return String(v)
            case .double(let v): return String(v)
            }
        }
        switch tag {
        case "$float":
            guard let v = Float(try number(&cursor)) else { throw start.error("no float") }
            return .value(.float(v))
        case "$double":
            guard let v = Double(try number(&cursor)) else { throw start.error("no double") }
            return .value(.double(v))
        case "$decimal":
            guard let v = Decimal128Bits(try number(&cursor)) else { throw start.error("no decimal") }
            return .value(.decimal(v))
        case "$data":
            guard let v = decodeBase64(try cursor.string()) else { throw start.error("no base64") }
            return .value(.binary(v))
        case "$oid":
            guard let v = ObjectIdValue(try cursor.string()) else { throw start.error("no ObjectId") }
            return .value(.objectId(v))
        case "$uuid":
            guard let v = UUIDValue(try cursor.string()) else { throw start.error("no UUID") }
            return .value(.uuid(v))
        case "$date":
            var parts: [Int64] = []
            try cursor.forEachElement { parts.append(try $0.integer()) }
            guard parts.count == 2, let ns = Int32(exactly: parts[1]) else {
                throw start.error("a date is [seconds, nanoseconds]")
            }
            return .value(.timestamp(Timestamp(seconds: parts[0], nanoseconds: ns)))
        case "$link":
            var name: String?
            var key: Int64?
            try cursor.forEachElement { cursor in
                if name == nil { name = try cursor.string() } else { key = try cursor.integer() }
            }
            guard let name, let key else { throw start.error("a link is [class, key]") }
            return .link(name, ObjectKey(key))
        case "$embedded":
            var key: Int64?
            try cursor.forEachMember { name, cursor in
                if name == "_key" { key = try cursor.integer() } else { try cursor.skip() }
            }
            guard let key else { throw start.error("an embedded object without _key") }
            return .embedded(ObjectKey(key))
        case "$dict":
            let start = cursor
            try cursor.skip()
            return .dictionary(start)
        default: throw start.error("unknown kind of value \"\(tag)\"")
        }
    }
}

/// Bytes from base64 text with padding; nil where it is none.
func decodeBase64(_ text: String) -> [UInt8]? {
    var out: [UInt8] = []
    out.reserveCapacity(text.utf8.count * 3 / 4)
    var word: UInt32 = 0
    var bits = 0
    var padding = 0
    for byte in text.utf8 {
        let value: UInt32
        switch byte {
        case 65...90: value = UInt32(byte) - 65
        case 97...122: value = UInt32(byte) - 71
        case 48...57: value = UInt32(byte) + 4
        case UInt8(ascii: "+"), UInt8(ascii: "-"): value = 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): value = 63
        case UInt8(ascii: "="):
            padding += 1
            continue
        default: return nil
        }
        if padding > 0 { return nil }
        word = word << 6 | value
        bits += 6
        if bits >= 8 {
            bits -= 8
            out.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
        }
    }
    return padding > 2 || bits >= 6 ? nil : out
}

extension QueryArgument {
    /// Reads a value for a query from JSON in the form of an export: a value, or an array of values for a list.
    public init(_ cursor: inout JSONCursor, _ group: Group) throws {
        func mixed(_ value: ImportedValue, _ cursor: JSONCursor) throws -> Mixed {
            switch value {
            case .value(let v): return v
            case .link(let name, let key):
                guard let table = try group.table(ofClass: name) ?? group.table(named: name) else {
                    throw TableError.noSuchTable(name)
                }
                return .link(table.key, key)
            default: throw cursor.error("a single value expected")
            }
        }
        switch try ImportedValue.read(&cursor) {
        case .array(var elements):
            var list: [Mixed] = []
            try elements.forEachElement { list.append(try mixed(ImportedValue.read(&$0), $0)) }
            self = .list(list)
        case let value: self = .value(try mixed(value, cursor))
        }
    }
}
