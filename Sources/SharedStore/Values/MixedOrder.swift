import Glibc

// The order of values (file-format-2 section 6). Every comparison gives a negative number, 0 or a positive number.
//
// Typed values, in sets, dictionary keys, indexes: null first, then as `ValueOrder` has it.
// Mixed: null; then by rank: bool, numbers, string, binary, timestamp, ObjectId, UUID, link, list, dictionary; then by value.
// Numbers of all four kinds are compared by value, so int 3, double 3.0 and decimal 3.00 are equal. NaNs are below all other
// numbers. Lists are equal to each other, and so are dictionaries.
//
// A float or double meets a decimal rounded to 7 or 15 digits, so float 1.1 equals decimal 1.1, and double 1.1 does, while float
// 1.1 is above double 1.1: the order is not transitive in such corners, whoever sorts must bear it.

/// Comparisons of two values of one type.
public enum ValueOrder {
    /// Bytewise, unsigned; of two that begin alike the shorter is first. The order of strings (as UTF-8) and of binaries.
    @inline(__always)
    public static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let common = min(a.count, b.count)
        if common > 0, let p = a.baseAddress, let q = b.baseAddress {
            let order = memcmp(p, q, common)
            if order != 0 { return order < 0 ? -1 : 1 }
        }
        return a.count &- b.count
    }

    /// The same with null, which is below everything, the empty value too.
    @inline(__always)
    public static func compare(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> Int {
        guard let a else { return b == nil ? 0 : -1 }
        guard let b else { return 1 }
        return compare(a, b)
    }

    /// The same bytes: what is equal in a file, and not what looks alike.
    @inline(__always)
    public static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        if a.count != b.count { return false }
        guard let p = a.baseAddress, let q = b.baseAddress else { return true }
        return memcmp(p, q, a.count) == 0
    }

    /// Bytewise by UTF-8, which is not the order of Swift's strings.
    @inline(__always)
    public static func compare(_ a: String, _ b: String) -> Int {
        var a = a, b = b
        return a.withUTF8 { p in b.withUTF8 { q in compare(UnsafeRawBufferPointer(p), UnsafeRawBufferPointer(q)) } }
    }

    /// -1, 0 or 1. Not for floating-point numbers, which have forms of their own.
    @inline(__always)
    public static func compare<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a == b ? 0 : 1 }

    /// By value; NaNs are below all numbers, and among themselves ordered by bit pattern. -0 equals 0.
    @inline(__always)
    public static func compare(_ a: Double, _ b: Double) -> Int {
        if a < b { return -1 }
        if a > b { return 1 }
        if a == b { return 0 }
        if a.isNaN && b.isNaN { return compare(a.bitPattern, b.bitPattern) }
        return a.isNaN ? -1 : 1
    }

    /// By value; NaNs are below all numbers, and among themselves ordered by bit pattern. -0 equals 0.
    @inline(__always)
    public static func compare(_ a: Float, _ b: Float) -> Int {
        if a < b { return -1 }
        if a > b { return 1 }
        if a == b { return 0 }
        if a.isNaN && b.isNaN { return compare(a.bitPattern, b.bitPattern) }
        return a.isNaN ? -1 : 1
    }

    /// By value, without regard to trailing zeros; NaN is below all numbers.
    @inline(__always)
    public static func compare(_ a: Decimal128Bits, _ b: Decimal128Bits) -> Int { Decimal128Bits.compare(a, b) }

    /// By value and without rounding, also beyond 2^53; NaN is below every integer.
    @inline(__always)
    public static func compare(_ a: Int64, _ b: Double) -> Int {
        if b.isNaN { return 1 }
        if a.magnitude <= 1 << 53 { return compare(Double(a), b) }
        // Now the integer is beyond 2^53; a double of like size has no fraction, of a smaller one it does not matter.
        if b >= 0x1p63 { return -1 }
        if b < -0x1p63 { return 1 }
        return compare(a, Int64(b))
    }
}

extension MixedView {
    /// Null 0, then the ranks of the order, from 1 on.
    @inline(__always)
    public var rank: Int {
        switch self {
        case .null: 0
        case .bool: 1
        case .int, .float, .double, .decimal: 2
        case .string: 3
        case .binary: 4
        case .timestamp: 5
        case .objectId: 6
        case .uuid: 7
        // A link that names no table is above those that do.
        case .link(let table, _): table == .null ? 9 : 8
        case .list: 10
        case .dictionary: 11
        }
    }

    /// The total order of Mixed values: negative, 0, positive as `a` is below, equal to, above `b`. Allocates nothing.
    public static func compare(_ a: MixedView, _ b: MixedView) -> Int {
        switch (a, b) {
        case (.null, .null), (.list, .list), (.dictionary, .dictionary): return 0
        case (.int(let x), .int(let y)): return ValueOrder.compare(x, y)
        case (.string(let x), .string(let y)): return ValueOrder.compare(x, y)
        case (.double(let x), .double(let y)): return ValueOrder.compare(x, y)
        case (.timestamp(let x), .timestamp(let y)): return ValueOrder.compare(x, y)
        case (.bool(let x), .bool(let y)): return x == y ? 0 : y ? -1 : 1
        case (.binary(let x), .binary(let y)): return ValueOrder.compare(x, y)
        case (.objectId(let x), .objectId(let y)): return ValueOrder.compare(x, y)
        case (.uuid(let x), .uuid(let y)): return ValueOrder.compare(x, y)
        case (.link(let t, let x), .link(let u, let y)): return t == u ? ValueOrder.compare(x, y) : ValueOrder.compare(t, u)
        default:
            let difference = a.rank &- b.rank
            return difference != 0 ? difference : compareNumbers(a, b)
        }
    }

    private static func compareNumbers(_ a: MixedView, _ b: MixedView) -> Int {
        switch (a, b) {
        case (.float(let x), .float(let y)): return ValueOrder.compare(x, y)
        case (.float(let x), .double(let y)): return ValueOrder.compare(Double(x), y)
        case (.double(let x), .float(let y)): return ValueOrder.compare(x, Double(y))
        case (.int(let x), .double(let y)): return ValueOrder.compare(x, y)
        case (.int(let x), .float(let y)): return ValueOrder.compare(x, Double(y))
        case (.double(let x), .int(let y)): return -ValueOrder.compare(y, x)
        case (.float(let x), .int(let y)): return -ValueOrder.compare(y, Double(x))
        default: return Decimal128Bits.compare(a.roundedDecimal, b.roundedDecimal)
        }
    }

    /// The decimal that a number is compared as where it meets a decimal.
    private var roundedDecimal: Decimal128Bits {
        switch self {
        case .int(let v): Decimal128Bits(v)
        case .float(let v): Decimal128Bits(v)
        case .double(let v): Decimal128Bits(v)
        case .decimal(let v): v
        default: .nan
        }
    }
}

extension Mixed {
    /// The total order of Mixed values: negative, 0, positive as `a` is below, equal to, above `b`.
    public static func compare(_ a: Mixed, _ b: Mixed) -> Int {
        a.withView { x in b.withView { y in MixedView.compare(x, y) } }
    }
}
