import CDecimal

// Decimal128 from text and to text.
//
// Output, with d digits of a coefficient below 2^64 and exponent e; nothing is normalised:
// ```
// e = 0             the digits                                        100  0
// e < 0, d > -e     the digits, a point before the last -e            1.00  123.456
// otherwise         first digit, point and the others if there are    1E-1  1.0E2  0E-3
//                   any, E, the exponent e + d - 1 without a plus
// ```
// A sign only where negative (also of zero). A coefficient of 2^64 or more: sign, `+` too, all digits, E, signed exponent
// (`+12345678901234567890123E-40`). Specials: Inf -Inf NaN -NaN.

extension Decimal128Bits: CustomStringConvertible {
    public var description: String {
        let sign = isNegative ? "-" : ""
        if isNaN { return sign + "NaN" }
        if isInfinite { return sign + "Inf" }
        let coefficient = coefficient, exponent = exponent
        let digits = String(coefficient)
        if coefficient > UInt128(UInt64.max) {
            return (isNegative ? "-" : "+") + digits + (exponent < 0 ? "E-" : "E+") + String(exponent.magnitude)
        }
        if exponent == 0 { return sign + digits }
        let count = digits.utf8.count
        if exponent < 0 && count > -exponent {
            return sign + digits.dropLast(-exponent) + "." + digits.suffix(-exponent)
        }
        let fraction = count > 1 ? "." + digits.dropFirst() : ""
        return sign + digits.prefix(1) + fraction + "E" + String(exponent + count - 1)
    }

    /// The number that the text spells, nil if it spells none: `[+-] digits [. digits] [E [+-] digits]` with a digit before or
    /// after the point, or `inf`, `infinity`, `nan` with or without sign; letters in either case.
    ///
    /// Trailing zeros are kept: `1.00` has exponent -2. More than 34 significant digits are rounded to the nearest, ties to
    /// even. A number too large gives an infinity, one too small gives zero.
    public init?(_ text: some StringProtocol) {
        var rest = text.utf8[...]
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
        if let special = Decimal128Bits.special(rest) {
            self = isNegative ? -special : special
            return
        }

        // Digits without leading zeros, as many as can matter; what follows them counts only by being zero or not.
        let digitsMax = 40
        var digits: [UInt8] = []
        var exponent = 0, sawDigit = false, sawPoint = false, isRemainderZero = true
        while let byte = rest.first {
            if byte == UInt8(ascii: "."), !sawPoint {
                sawPoint = true
            } else if byte >= 48 && byte <= 57 {
                sawDigit = true
                if sawPoint { exponent -= 1 }
                if digits.count == digitsMax {
                    exponent += 1
                    if byte != 48 { isRemainderZero = false }
                } else if byte != 48 || !digits.isEmpty {
                    digits.append(byte)
                }
            } else {
                break
            }
            rest.removeFirst()
        }
        if !sawDigit { return nil }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest.removeFirst()
            let isExponentNegative = rest.first == UInt8(ascii: "-")
            if isExponentNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
            guard !rest.isEmpty else { return nil }
            var written = 0
            for byte in rest {
                guard byte >= 48 && byte <= 57 else { return nil }
                // Beyond 10^9 nothing changes any more, whatever a text's length.
                written = min(written * 10 + Int(byte - 48), 1_000_000_000)
            }
            exponent += isExponentNegative ? -written : written
        } else if !rest.isEmpty {
            return nil
        }

        if digits.isEmpty {
            self.init(isNegative: isNegative, coefficient: 0, exponent: max(-6176, min(6111, exponent)))
            return
        }
        if !isRemainderZero {
            digits.append(49)
            exponent -= 1
        }
        if digits.count <= 34 && exponent >= -6176 && exponent <= 6111 {
            let coefficient = digits.reduce(UInt128(0)) { $0 * 10 + UInt128($1 - 48) }
            self.init(isNegative: isNegative, coefficient: coefficient, exponent: exponent)
            return
        }
        // Rounding, and the ends of the range, are the library's. It gets a sign, 1 to 41 digits, and an exponent of at most 5
        // digits.
        let clamped = max(-20_000, min(20_000, exponent))
        let canonical = (isNegative ? "-" : "+") + String(decoding: digits, as: UTF8.self) + "E" + String(clamped)
        var characters = canonical.utf8CString
        var status: UInt32 = 0
        self = characters.withUnsafeMutableBufferPointer {
            Decimal128Bits(__bid128_from_string($0.baseAddress, Decimal128Bits.roundToNearest, &status))
        }
    }

    private static func special(_ text: some Collection<UInt8>) -> Decimal128Bits? {
        guard text.count == 3 || text.count == 8 else { return nil }
        switch String(decoding: text.map { $0 | 0x20 }, as: UTF8.self) {
        case "inf", "infinity": return .infinity
        case "nan": return .nan
        default: return nil
        }
    }
}
