import CDecimal

// Decimal128: what its 128 bits mean, comparison, arithmetic, conversions (file-format-1 5.7, file-format-2 6).
//
// ```
// high word: s[63] exponent + 6176 [62:49] coefficient [48:0]     low word: coefficient [63:0]
// value = (-1)^s * coefficient * 10^exponent;  bits 62:58 of the high word: 11110 infinity, 11111 NaN
// ```
// Arithmetic is that of IEEE 754-2008 with rounding to the nearest, ties to even; nothing traps: overflow gives an infinity,
// what has no value gives NaN. The exponent is kept as it comes, so that 1.0 and 1.00 are equal, but not the same bits.

extension Decimal128Bits {
    /// 0 with exponent 0.
    public static let zero = Decimal128Bits(low: 0, high: 0x3040_0000_0000_0000)
    /// 1.
    public static let one = Decimal128Bits(low: 1, high: 0x3040_0000_0000_0000)
    /// Positive infinity.
    public static let infinity = Decimal128Bits(low: 0, high: 0x7800_0000_0000_0000)
    /// The NaN that arithmetic and conversions give.
    public static let nan = Decimal128Bits(low: 0, high: 0x7C00_0000_0000_0000)
    /// Stands for null in a decimal leaf; no value.
    public static let nullPattern = Decimal128Bits(low: 0xAA, high: 0x7C00_0000_0000_0000)
    /// 34 nines times 10^6111.
    public static let greatestFinite = Decimal128Bits(low: 0x378D_8E63_FFFF_FFFF, high: 0x5FFF_ED09_BEAD_87C0)

    static let exponentBias = 6176

    /// (-1)^isNegative * coefficient * 10^exponent. The coefficient must be below 2^113, the exponent in -6176...6111.
    @inline(__always)
    init(isNegative: Bool, coefficient: UInt128, exponent: Int) {
        precondition(coefficient >> 113 == 0 && exponent >= -6176 && exponent <= 6111)
        low = UInt64(truncatingIfNeeded: coefficient)
        high =
            UInt64(truncatingIfNeeded: coefficient >> 64)
            | UInt64(truncatingIfNeeded: exponent &+ Decimal128Bits.exponentBias) << 49 | (isNegative ? 1 << 63 : 0)
    }

    /// The sign bit is set, of zeros and not-a-number too.
    @inline(__always) public var isNegative: Bool { high >> 63 != 0 }
    /// Not a number.
    @inline(__always) public var isNaN: Bool { high & 0x7C00_0000_0000_0000 == 0x7C00_0000_0000_0000 }
    /// One of the two infinities.
    @inline(__always) public var isInfinite: Bool { high & 0x7C00_0000_0000_0000 == 0x7800_0000_0000_0000 }
    /// Neither infinite nor not-a-number.
    @inline(__always) public var isFinite: Bool { high & 0x7800_0000_0000_0000 != 0x7800_0000_0000_0000 }
    /// The coefficient of a finite number.
    @inline(__always) public var coefficient: UInt128 { UInt128(high & 0x1_FFFF_FFFF_FFFF) << 64 | UInt128(low) }
    /// The exponent of a finite number, without bias.
    @inline(__always) public var exponent: Int { Int(high >> 49 & 0x3FFF) &- Decimal128Bits.exponentBias }
    public var isZero: Bool { __bid128_isZero(bid) != 0 }

    // MARK: Comparison

    /// The order of the database: negative, 0 or positive as `a` is below, equal to or above `b`. By value, whatever the
    /// exponents; NaNs are below all numbers, and among themselves ordered by their bits (file-format-2 6.1).
    @inline(__always)
    public static func compare(_ a: Decimal128Bits, _ b: Decimal128Bits) -> Int {
        // Equal exponents and coefficients of one word are the rule, prices for example.
        let differing = a.high ^ b.high
        if differing & 0x7FFF_FFFF_FFFF_FFFF == 0 && a.high & 0x6000_0000_0000_0000 != 0x6000_0000_0000_0000
            && a.high & 0x1_FFFF_FFFF_FFFF == 0
        {
            if differing != 0 { return a.low | b.low == 0 ? 0 : a.isNegative ? -1 : 1 }
            if a.low == b.low { return 0 }
            return (a.low < b.low) != a.isNegative ? -1 : 1
        }
        return compareAny(a, b)
    }

    @inline(never)
    private static func compareAny(_ a: Decimal128Bits, _ b: Decimal128Bits) -> Int {
        if a.isNaN || b.isNaN {
            if a.isNaN != b.isNaN { return a.isNaN ? -1 : 1 }
            if a.high != b.high { return a.high < b.high ? -1 : 1 }
            return a.low == b.low ? 0 : a.low < b.low ? -1 : 1
        }
        var status: UInt32 = 0
        if __bid128_quiet_less(a.bid, b.bid, &status) != 0 { return -1 }
        return __bid128_quiet_greater(a.bid, b.bid, &status) != 0 ? 1 : 0
    }

    // MARK: Arithmetic

    /// Rounded to 34 digits, half to even, as IEEE 754-2008 says; infinity and NaN where that has them, never a trap.
    public static func + (a: Decimal128Bits, b: Decimal128Bits) -> Decimal128Bits {
        var status: UInt32 = 0
        return Decimal128Bits(__bid128_add(a.bid, b.bid, roundToNearest, &status))
    }
    /// Rounded like a sum.
    public static func - (a: Decimal128Bits, b: Decimal128Bits) -> Decimal128Bits {
        var status: UInt32 = 0
        return Decimal128Bits(__bid128_sub(a.bid, b.bid, roundToNearest, &status))
    }
    /// Rounded like a sum; infinity where the exponent does not suffice.
    public static func * (a: Decimal128Bits, b: Decimal128Bits) -> Decimal128Bits {
        var status: UInt32 = 0
        return Decimal128Bits(__bid128_mul(a.bid, b.bid, roundToNearest, &status))
    }
    /// Rounded like a sum; infinity or NaN for a division by 0.
    public static func / (a: Decimal128Bits, b: Decimal128Bits) -> Decimal128Bits {
        var status: UInt32 = 0
        return Decimal128Bits(__bid128_div(a.bid, b.bid, roundToNearest, &status))
    }
    /// The same number with the other sign.
    public static prefix func - (a: Decimal128Bits) -> Decimal128Bits { Decimal128Bits(low: a.low, high: a.high ^ 1 << 63) }

    // MARK: Conversion

    /// Exact, with exponent 0.
    @inline(__always)
    public init(_ value: Int64) {
        self.init(isNegative: value < 0, coefficient: UInt128(value.magnitude), exponent: 0)
    }

    /// Rounded to 15 significant digits, as the database does wherever a double meets a decimal. A NaN gives `nan`.
    public init(_ value: Double) {
        if value.isNaN { self = .nan; return }
        var status: UInt32 = 0
        self = Decimal128Bits(__binary64_to_bid128(value, Decimal128Bits.roundToNearest, &status)).rounded(toDigits: 15)
    }

    /// Rounded to 7 significant digits, as the database does wherever a float meets a decimal. A NaN gives `nan`.
    public init(_ value: Float) {
        if value.isNaN { self = .nan; return }
        var status: UInt32 = 0
        self = Decimal128Bits(__binary32_to_bid128(value, Decimal128Bits.roundToNearest, &status)).rounded(toDigits: 7)
    }

    /// The nearest double.
    public var doubleValue: Double {
        var status: UInt32 = 0
        return __bid128_to_binary64(bid, Decimal128Bits.roundToNearest, &status)
    }

    /// A number of more than `digits` significant digits is rounded to as many; any other stays as it is.
    func rounded(toDigits digits: Int) -> Decimal128Bits {
        guard isFinite else { return self }
        var bound: UInt128 = 1
        for _ in 0..<digits { bound *= 10 }
        var surplus = 0
        while coefficient / bound > 0 {
            bound *= 10
            surplus += 1
        }
        if surplus == 0 { return self }
        var status: UInt32 = 0
        let unit = Decimal128Bits(isNegative: false, coefficient: 1, exponent: min(exponent + surplus, 6111))
        let result = Decimal128Bits(__bid128_quantize(bid, unit.bid, Decimal128Bits.roundToNearest, &status))
        // 9.99...9 became 10.00...0, one digit too many.
        return result.rounded(toDigits: digits)
    }

    // MARK: The library's form

    static let roundToNearest: UInt32 = 0

    @inline(__always)
    var bid: BID_UINT128 { BID_UINT128(w: (low, high)) }

    @inline(__always)
    init(_ bid: BID_UINT128) {
        low = bid.w.0
        high = bid.w.1
    }
}
