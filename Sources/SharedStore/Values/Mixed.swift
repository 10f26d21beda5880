/// Seconds and nanoseconds since 1970; both carry the sign, as in the file (file-format-1 5.5).
@frozen public struct Timestamp: Hashable, Comparable, Sendable {
    public var seconds: Int64
    /// With the sign of the seconds.
    public var nanoseconds: Int32
    /// From seconds since 1970 and nanoseconds of the same sign.
    @inlinable public init(seconds: Int64, nanoseconds: Int32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
    @inlinable public static func < (a: Timestamp, b: Timestamp) -> Bool {
        a.seconds != b.seconds ? a.seconds < b.seconds : a.nanoseconds < b.nanoseconds
    }
}

/// Twelve bytes that identify an object, compared bytewise.
@frozen public struct ObjectIdValue: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Bytes 0 to 7, the first one highest, and bytes 8 to 11 likewise; so numeric order is byte order.
    public var high: UInt64
    /// The last four bytes, big-endian.
    public var low: UInt32
    /// From its bytes as big-endian numbers.
    @inlinable public init(high: UInt64, low: UInt32) {
        self.high = high
        self.low = low
    }
    /// From the bytes in a file.
    @inlinable public init(_ p: UnsafeRawPointer) {
        high = UInt64(bigEndian: p.loadUnaligned(as: UInt64.self))
        low = UInt32(bigEndian: p.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
    }
    /// Writes the bytes as they are in a file.
    @inlinable public func store(to p: UnsafeMutableRawPointer) {
        p.storeBytes(of: high.bigEndian, as: UInt64.self)
        p.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt32.self)
    }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
    /// 24 lower-case hex digits.
    public var description: String { hexadecimal(high, digits: 16) + hexadecimal(UInt64(low), digits: 8) }
    /// From a text in the form of `description`; nil for anything else.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 24, let h = parseHexadecimal(text.utf8.prefix(16)),
            let l = parseHexadecimal(text.utf8.dropFirst(16))
        else { return nil }
        self.init(high: h, low: UInt32(l))
    }
}

/// Sixteen bytes, compared bytewise.
@frozen public struct UUIDValue: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The upper half of the bits.
    public var high: UInt64
    /// The last eight bytes, big-endian.
    public var low: UInt64
    /// From its bytes as big-endian numbers.
    @inlinable public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
    /// From the bytes in a file.
    @inlinable public init(_ p: UnsafeRawPointer) {
        high = UInt64(bigEndian: p.loadUnaligned(as: UInt64.self))
        low = UInt64(bigEndian: p.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    /// Writes the bytes as they are in a file.
    @inlinable public func store(to p: UnsafeMutableRawPointer) {
        p.storeBytes(of: high.bigEndian, as: UInt64.self)
        p.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
    /// Lower case, in the usual groups of 8-4-4-4-12 digits.
    public var description: String {
        let a = hexadecimal(high, digits: 16), b = hexadecimal(low, digits: 16)
        return "\(a.prefix(8))-\(a.dropFirst(8).prefix(4))-\(a.suffix(4))-\(b.prefix(4))-\(b.suffix(12))"
    }
    /// From a text in the form of `description`; nil for anything else.
    public init?(_ text: some StringProtocol) {
        let u = Array(text.utf8)
        guard u.count == 36, u[8] == 45, u[13] == 45, u[18] == 45, u[23] == 45 else { return nil }
        let digits = u.filter { $0 != 45 }
        guard digits.count == 32, let h = parseHexadecimal(digits.prefix(16)), let l = parseHexadecimal(digits.suffix(16)) else {
            return nil
        }
        self.init(high: h, low: l)
    }
}

func hexadecimal(_ value: UInt64, digits: Int) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
}

func parseHexadecimal(_ digits: some Sequence<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for digit in digits {
        switch digit {
        case 48...57: value = value << 4 | UInt64(digit - 48)
        case 65...70: value = value << 4 | UInt64(digit - 55)
        case 97...102: value = value << 4 | UInt64(digit - 87)
        default: return nil
        }
    }
    return value
}

/// The 128 bits of a decimal number in IEEE 754-2008 BID form (file-format-1 5.7). Arithmetic: `Decimal128+Arithmetic.swift`.
@frozen public struct Decimal128Bits: Hashable, Sendable {
    /// The last eight bytes, big-endian.
    public var low: UInt64
    /// The upper half of the bits.
    public var high: UInt64
    /// From the two halves of the bits.
    @inlinable public init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }
}

/// Any value that a column, a collection or a Mixed can hold (file-format-1 section 7).
///
/// Equality here is that of same case and same payload; strings are the same where their UTF-8 is. The order and the equality of
/// the database, in which int 3 equals double 3.0, are in `MixedOrder.swift`.
public enum Mixed: Sendable {
    case null
    case int(Int64)
    case bool(Bool)
    case float(Float)
    case double(Double)
    case string(String)
    case binary([UInt8])
    case timestamp(Timestamp)
    case decimal(Decimal128Bits)
    case objectId(ObjectIdValue)
    case uuid(UUIDValue)
    /// A link to an object of any table. A plain link column reads as a link to the column's target table.
    case link(TableKey, ObjectKey)
    /// A nested list or dictionary. Its content is reached through the collection's accessor, not through this value.
    case list
    case dictionary
}

extension Mixed: Hashable {
    public static func == (a: Mixed, b: Mixed) -> Bool {
        switch (a, b) {
        case (.null, .null), (.list, .list), (.dictionary, .dictionary): true
        case (.int(let x), .int(let y)): x == y
        case (.bool(let x), .bool(let y)): x == y
        case (.float(let x), .float(let y)): x == y
        case (.double(let x), .double(let y)): x == y
        case (.string(let x), .string(let y)): x.isSame(as: y)
        case (.binary(let x), .binary(let y)): x == y
        case (.timestamp(let x), .timestamp(let y)): x == y
        case (.decimal(let x), .decimal(let y)): x == y
        case (.objectId(let x), .objectId(let y)): x == y
        case (.uuid(let x), .uuid(let y)): x == y
        case (.link(let t, let x), .link(let u, let y)): t == u && x == y
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .int(let v): hasher.combine(v)
        case .bool(let v): hasher.combine(v)
        case .float(let v): hasher.combine(v)
        case .double(let v): hasher.combine(v)
        case .string(let v): hasher.combine(ExactString(v))
        case .binary(let v): hasher.combine(v)
        case .timestamp(let v): hasher.combine(v)
        case .decimal(let v): hasher.combine(v)
        case .objectId(let v): hasher.combine(v)
        case .uuid(let v): hasher.combine(v)
        case .link(let table, let object):
            hasher.combine(table)
            hasher.combine(object)
        case .list: hasher.combine(1)
        case .dictionary: hasher.combine(2)
        }
    }
}
