import Foundation
internal import SharedStore

/// A decimal number of 34 digits with an exponent from -6176 to 6111 (IEEE 754-2008 decimal128).
///
/// Not-a-number is equal to nothing, itself included, when compared with the operators; in the order of a file it comes before
/// all numbers.
public final class Decimal128: Decodable, @unchecked Sendable {
    // Sendable: the value never changes after `init`, but for `negate`, which works on a value that its caller alone must own.
    private(set) var bits: Decimal128Bits

    init(_ bits: Decimal128Bits) { self.bits = bits }

    /// Zero.
    public required init() { bits = .zero }

    /// From a number, the text of a number, or another decimal. Anything else stops the process.
    public required init(value: Any) {
        guard let bits = Decimal128.bits(of: value) else {
            misuse("Cannot convert value '\(value)' of type '\(type(of: value))' to decimal128")
        }
        self.bits = bits
    }

    /// From a number; one that has no decimal form becomes not-a-number.
    public required init(number: NSNumber) { bits = Decimal128.bits(of: number) ?? .nan }

    /// - Throws: `Realm.Error.invalidInput` where the text is no number.
    public required init(string: String) throws {
        guard let bits = Decimal128Bits(string) else { throw InvalidText(type: "decimal128", text: string) }
        self.bits = bits
    }

    /// From the text of a number, or from a number.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            guard let bits = Decimal128Bits(text) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "Cannot convert string \"\(text)\" to Decimal128")
            }
            self.bits = bits
        } else if let integer = try? container.decode(Int64.self) {
            bits = Decimal128Bits(integer)
        } else {
            bits = Decimal128Bits(try container.decode(Double.self))
        }
    }

    static func bits(of value: Any) -> Decimal128Bits? {
        switch value {
        case let decimal as Decimal128: decimal.bits
        case let text as String: Decimal128Bits(text)
        case let double as Double: Decimal128Bits(double)
        case let float as Float: Decimal128Bits(float)
        case let decimal as Decimal: Decimal128Bits(decimal.description)
        case let number as NSNumber: bits(of: number)
        case let integer as any BinaryInteger: Int64(exactly: integer).map { Decimal128Bits($0) } ?? Decimal128Bits("\(integer)")
        default: nil
        }
    }

    private static func bits(of number: NSNumber) -> Decimal128Bits? {
        if let decimal = number as? NSDecimalNumber { return Decimal128Bits(decimal.description) }
        return switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"): Decimal128Bits(number.doubleValue)
        case UInt8(ascii: "f"): Decimal128Bits(number.floatValue)
        default: Decimal128Bits(number.stringValue)
        }
    }

    // MARK: Properties

    /// The least and the greatest finite number.
    public static var min: Decimal128 { Decimal128(-Decimal128Bits.greatestFinite) }
    /// The greatest finite number.
    public static var max: Decimal128 { Decimal128(Decimal128Bits.greatestFinite) }

    /// Not a number: what 0 / 0 gives.
    public var isNaN: Bool { bits.isNaN }
    /// Bit 57 of the upper half marks a not-a-number that signals.
    public var isSignaling: Bool { bits.isNaN && bits.high & 0x0200_0000_0000_0000 != 0 }
    /// The same as `isSignaling`.
    public var isSignalingNaN: Bool { isSignaling }
    /// The number without its sign.
    public var magnitude: Decimal128 { Decimal128(bits.isNegative ? -bits : bits) }
    /// Changes the sign of this very instance, which its caller alone must own.
    public func negate() { bits = -bits }

    /// The nearest double.
    public var doubleValue: Double { bits.doubleValue }
    /// Foundation's decimal, which has 38 digits but a smaller range; not-a-number where the value does not fit.
    public var decimalValue: Decimal { Decimal(string: stringValue) ?? .nan }
    /// The digits, as `init(string:)` reads them.
    public var stringValue: String { bits.description }

    /// As `>`; true for nil.
    public func isGreaterThan(_ other: Decimal128?) -> Bool { other.map { self > $0 } ?? true }
    /// As `>=`; true for nil.
    public func isGreaterThanOrEqual(to other: Decimal128?) -> Bool { other.map { self >= $0 } ?? true }
    /// As `<`; false for nil.
    public func isLessThan(_ other: Decimal128?) -> Bool { other.map { self < $0 } ?? false }
    /// As `<=`; false for nil.
    public func isLessThanOrEqual(to other: Decimal128?) -> Bool { other.map { self <= $0 } ?? false }
    /// The sum.
    public func decimalNumberByAdding(_ other: Decimal128) -> Decimal128 { self + other }
    /// The difference.
    public func decimalNumberBySubtracting(_ other: Decimal128) -> Decimal128 { self - other }
    /// The product.
    public func decimalNumberByMultiplying(by other: Decimal128) -> Decimal128 { self * other }
    /// The quotient, rounded to 34 digits.
    public func decimalNumberByDividing(by other: Decimal128) -> Decimal128 { self / other }
}

extension Decimal128: CustomStringConvertible {
    public var description: String { stringValue }
}

extension Decimal128: Encodable {
    /// As text, so that no digit is lost.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(stringValue)
    }
}

extension Decimal128: ExpressibleByIntegerLiteral {
    /// From a literal.
    public convenience init(integerLiteral value: Int64) { self.init(Decimal128Bits(value)) }
}

extension Decimal128: ExpressibleByFloatLiteral {
    /// From a literal, by way of a double: write a text where all digits matter.
    public convenience init(floatLiteral value: Double) { self.init(Decimal128Bits(value)) }
}

extension Decimal128: ExpressibleByStringLiteral {
    /// A literal that is no number stops the process.
    public convenience init(stringLiteral value: String) {
        guard let bits = Decimal128Bits(value) else { misuse("\"\(value)\" is not a decimal number") }
        self.init(bits)
    }
}

extension Decimal128: Hashable {
    /// Numbers that are equal have one hash, whatever their exponent: that of the shortest form.
    public func hash(into hasher: inout Hasher) {
        guard bits.isFinite else {
            hasher.combine(bits)
            return
        }
        var coefficient = bits.coefficient
        var exponent = bits.exponent
        if coefficient == 0 {
            hasher.combine(0)
            return
        }
        while coefficient % 10 == 0 {
            coefficient /= 10
            exponent += 1
        }
        hasher.combine(coefficient)
        hasher.combine(exponent)
        hasher.combine(bits.isNegative)
    }
}

extension Decimal128: Comparable {
    private static func isOrdered(_ a: Decimal128, _ b: Decimal128) -> Bool { !a.isNaN && !b.isNaN }
    public static func == (a: Decimal128, b: Decimal128) -> Bool {
        isOrdered(a, b) && Decimal128Bits.compare(a.bits, b.bits) == 0
    }
    public static func < (a: Decimal128, b: Decimal128) -> Bool { isOrdered(a, b) && Decimal128Bits.compare(a.bits, b.bits) < 0 }
    public static func <= (a: Decimal128, b: Decimal128) -> Bool {
        isOrdered(a, b) && Decimal128Bits.compare(a.bits, b.bits) <= 0
    }
    /// False where either is NaN.
    public static func >= (a: Decimal128, b: Decimal128) -> Bool {
        isOrdered(a, b) && Decimal128Bits.compare(a.bits, b.bits) >= 0
    }
    /// False where either is NaN.
    public static func > (a: Decimal128, b: Decimal128) -> Bool { isOrdered(a, b) && Decimal128Bits.compare(a.bits, b.bits) > 0 }
}

extension Decimal128: Numeric {
    public typealias Magnitude = Decimal128

    /// Nil where the number has more than 34 digits.
    public convenience init?<T: BinaryInteger>(exactly source: T) {
        let digits = source.magnitude.description.utf8.reversed().drop { $0 == UInt8(ascii: "0") }
        guard digits.count <= 34, let bits = Decimal128Bits("\(source)") else { return nil }
        self.init(bits)
    }

    /// Rounded to 34 digits, half to even; what cannot be is NaN, what is too large infinite.
    public static func + (a: Decimal128, b: Decimal128) -> Decimal128 { Decimal128(a.bits + b.bits) }
    /// Rounded to 34 digits, half to even.
    public static func - (a: Decimal128, b: Decimal128) -> Decimal128 { Decimal128(a.bits - b.bits) }
    /// Rounded to 34 digits, half to even.
    public static func * (a: Decimal128, b: Decimal128) -> Decimal128 { Decimal128(a.bits * b.bits) }
    /// Rounded to 34 digits, half to even; by 0 infinity, or NaN for 0 / 0.
    public static func / (a: Decimal128, b: Decimal128) -> Decimal128 { Decimal128(a.bits / b.bits) }
    /// Rounded like a product.
    public static func *= (a: inout Decimal128, b: Decimal128) { a = a * b }
    /// Rounded like a quotient.
    public static func /= (a: inout Decimal128, b: Decimal128) { a = a / b }
    /// The same number with the other sign.
    public static prefix func - (a: Decimal128) -> Decimal128 { Decimal128(-a.bits) }
}

extension Decimal128 {
    public typealias Stride = Decimal128
    /// Rounded like a difference.
    public func distance(to other: Decimal128) -> Decimal128 { other - self }
    /// Rounded like a sum.
    public func advanced(by n: Decimal128) -> Decimal128 { self + n }
}
