/// Decimal128, nullable or not: blocks of 0, 4, 8 or 16 bytes, all values of a leaf in one encoding (file-format-1 5.7).
///
/// ```
/// 0 bytes   every value is 0 if the context flag is set, else every value is null
/// 4         BID32    s[31] exponent + 101 [30:23] coefficient [22:0]        null 0x7C0000AA
/// 8         BID64    s[63] exponent + 398 [62:53] coefficient [52:0]        null 0x7C000000000000AA
/// 16        BID128   see `Decimal128+Arithmetic.swift`, low word first      null high 0x7C00000000000000, low 0xAA
/// ```
/// In files of formats before 24 the width is always 16.
@frozen public struct DecimalLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkBlocks("decimal leaf")
        switch node.width {
        case 0, 4, 8, 16: break
        default: throw node.kindError("decimal leaf", "an array of blocks of 0, 4, 8 or 16 bytes")
        }
    }

    @inline(__always) public var count: Int { node.count }

    @inline(__always)
    public func value(_ index: Int) throws -> Decimal128Bits? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inline(__always)
    public func unchecked(_ index: Int) -> Decimal128Bits? {
        switch node.width {
        case 0:
            return node.hasContext ? .zero : nil
        case 4:
            let bits = node.payload.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self)
            return bits == DecimalEncoding.null32 ? nil : DecimalEncoding.fromBID32(bits)
        case 8:
            let bits = node.payload.loadUnaligned(fromByteOffset: index &* 8, as: UInt64.self)
            return bits == DecimalEncoding.null64 ? nil : DecimalEncoding.fromBID64(bits)
        default:
            let low = node.payload.loadUnaligned(fromByteOffset: index &* 16, as: UInt64.self)
            let high = node.payload.loadUnaligned(fromByteOffset: index &* 16 &+ 8, as: UInt64.self)
            let bits = Decimal128Bits(low: low, high: high)
            return bits == .nullPattern ? nil : bits
        }
    }
}

/// The narrow encodings of decimals in a leaf, both ways (file-format-1 5.7).
enum DecimalEncoding {
    static let null32: UInt32 = 0x7C00_00AA
    static let null64: UInt64 = 0x7C00_0000_0000_00AA

    /// The width in bytes that a leaf must have to hold `value`, nil being null. `isZeroDefault` is the leaf's context flag.
    static func requiredWidth(_ value: Decimal128Bits?, isZeroDefault: Bool) -> Int {
        guard let value else { return isZeroDefault ? 4 : 0 }
        guard value.isFinite, value.high & 0x1_FFFF_FFFF_FFFF == 0 else { return 16 }
        let coefficient = value.low, exponent = value.exponent
        if coefficient == 0 && exponent == 0 { return isZeroDefault ? 0 : 4 }
        if coefficient < 1 << 23 && exponent > -91 && exponent < 91 { return 4 }
        if coefficient < 1 << 53 && exponent > -370 && exponent < 370 { return 8 }
        return 16
    }

    /// The 4-byte form of a value whose required width is at most 4.
    @inline(__always)
    static func toBID32(_ value: Decimal128Bits?) -> UInt32 {
        guard let value else { return null32 }
        let sign: UInt32 = value.isNegative ? 1 << 31 : 0
        return sign | UInt32(truncatingIfNeeded: value.exponent &+ 101) << 23 | UInt32(truncatingIfNeeded: value.low)
    }

    /// The 8-byte form of a value whose required width is at most 8.
    @inline(__always)
    static func toBID64(_ value: Decimal128Bits?) -> UInt64 {
        guard let value else { return null64 }
        let sign: UInt64 = value.isNegative ? 1 << 63 : 0
        return sign | UInt64(truncatingIfNeeded: value.exponent &+ 398) << 53 | value.low
    }

    @inline(__always)
    static func fromBID32(_ bits: UInt32) -> Decimal128Bits {
        let isLarge = bits & 0x6000_0000 == 0x6000_0000
        if isLarge && bits & 0x7800_0000 == 0x7800_0000 {
            return special(bits >> 31 != 0, isNaN: bits & 0x0400_0000 != 0)
        }
        var coefficient = isLarge ? bits & 0x1F_FFFF | 0x80_0000 : bits & 0x7F_FFFF
        // More than 7 digits is no number of this encoding; IEEE 754 has it read as 0.
        if coefficient > 9_999_999 { coefficient = 0 }
        let field = isLarge ? bits >> 21 & 0xFF : bits >> 23 & 0xFF
        return finite(UInt64(bits >> 31), UInt64(coefficient), UInt64(field) &+ 6176 &- 101)
    }

    @inline(__always)
    static func fromBID64(_ bits: UInt64) -> Decimal128Bits {
        let isLarge = bits & 0x6000_0000_0000_0000 == 0x6000_0000_0000_0000
        if isLarge && bits & 0x7800_0000_0000_0000 == 0x7800_0000_0000_0000 {
            return special(bits >> 63 != 0, isNaN: bits & 0x0400_0000_0000_0000 != 0)
        }
        var coefficient = isLarge ? bits & 0x7_FFFF_FFFF_FFFF | 1 << 53 : bits & 0x1F_FFFF_FFFF_FFFF
        // More than 16 digits is no number of this encoding; IEEE 754 has it read as 0.
        if coefficient > 9_999_999_999_999_999 { coefficient = 0 }
        let field = isLarge ? bits >> 51 & 0x3FF : bits >> 53 & 0x3FF
        return finite(bits >> 63, coefficient, field &+ 6176 &- 398)
    }

    @inline(__always)
    private static func finite(_ sign: UInt64, _ coefficient: UInt64, _ field: UInt64) -> Decimal128Bits {
        Decimal128Bits(low: coefficient, high: sign << 63 | field << 49)
    }

    private static func special(_ isNegative: Bool, isNaN: Bool) -> Decimal128Bits {
        let value: Decimal128Bits = isNaN ? .nan : .infinity
        return isNegative ? -value : value
    }
}
