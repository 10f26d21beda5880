/// A value of any kind where it lies: as `Mixed`, but strings and binaries are bytes of someone else's memory.
///
/// Costs no allocation to make or to compare. Valid as long as the bytes are, which for bytes of a file means as long as the
/// version.
public enum MixedView {
    case null
    case int(Int64)
    case bool(Bool)
    case float(Float)
    case double(Double)
    /// UTF-8, unless the file is damaged.
    case string(UnsafeRawBufferPointer)
    case binary(UnsafeRawBufferPointer)
    case timestamp(Timestamp)
    case decimal(Decimal128Bits)
    case objectId(ObjectIdValue)
    case uuid(UUIDValue)
    case link(TableKey, ObjectKey)
    case list
    case dictionary
}

extension Mixed {
    /// A copy of the value; bytes that are no UTF-8 are replaced by U+FFFD.
    public init(_ view: MixedView) {
        switch view {
        case .null: self = .null
        case .int(let v): self = .int(v)
        case .bool(let v): self = .bool(v)
        case .float(let v): self = .float(v)
        case .double(let v): self = .double(v)
        case .string(let bytes): self = .string(StringLeaf.string(bytes))
        case .binary(let bytes): self = .binary([UInt8](bytes))
        case .timestamp(let v): self = .timestamp(v)
        case .decimal(let v): self = .decimal(v)
        case .objectId(let v): self = .objectId(v)
        case .uuid(let v): self = .uuid(v)
        case .link(let table, let object): self = .link(table, object)
        case .list: self = .list
        case .dictionary: self = .dictionary
        }
    }

    /// Calls `body` with a view of this value, which is valid during the call only.
    @inline(__always)
    public func withView<Result>(_ body: (MixedView) throws -> Result) rethrows -> Result {
        switch self {
        case .null: return try body(.null)
        case .int(let v): return try body(.int(v))
        case .bool(let v): return try body(.bool(v))
        case .float(let v): return try body(.float(v))
        case .double(let v): return try body(.double(v))
        case .string(var text): return try text.withUTF8 { try body(.string(UnsafeRawBufferPointer($0))) }
        case .binary(let bytes): return try bytes.withUnsafeBytes { try body(.binary($0)) }
        case .timestamp(let v): return try body(.timestamp(v))
        case .decimal(let v): return try body(.decimal(v))
        case .objectId(let v): return try body(.objectId(v))
        case .uuid(let v): return try body(.uuid(v))
        case .link(let table, let object): return try body(.link(table, object))
        case .list: return try body(.list)
        case .dictionary: return try body(.dictionary)
        }
    }
}
