import Glibc

/// Changes to leaves of decimals in 0, 4, 8 or 16 bytes a value (file-format-1 5.7).
///
/// ```
/// BID32  sign 31, exponent + 101 in 30...23, coefficient     null 0x7C0000AA
/// BID64  sign 63, exponent + 398 in 62...53, coefficient     null 0x7C000000000000AA
/// BID128 sign 127, exponent + 6176 in 126...113, coefficient null high 0x7C00000000000000, low 0xAA
/// width 0: every value is zero if the context flag is set, else null
/// ```
/// The width grows to what the widest value needs and never shrinks; a leaf that becomes empty by truncation starts over.
/// The context flag is set when the first value of an empty leaf is zero, and stays.
enum DecimalLeafEditor: LeafEditor {
    typealias Element = Decimal128Bits?

    private static let contextFlag: UInt8 = 0x20

    static func create(_ arena: Arena) throws -> Int { try BlockArrayEditor.create(arena, code: 0) }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try BlockArrayEditor.node(arena, ref).count }

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try writable(arena, ref, growth: 0, value)
        DecimalCoding.store(try BlockArrayEditor.place(arena, ref, index), code(arena, ref), value)
        return ref
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try writable(arena, ref, growth: 1, value)
        DecimalCoding.store(try BlockArrayEditor.openGap(arena, ref, index), code(arena, ref), value)
        return ref
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try BlockArrayEditor.erase(arena, ref, index) }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try BlockArrayEditor.truncate(arena, ref, to: count, emptyCode: 0)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let node = try BlockArrayEditor.node(arena, source)
        guard UInt(bitPattern: start) <= UInt(bitPattern: node.count) else { throw arena.indexOutside(source, start, node.count) }
        try checkWidth(node.flags, source)
        var target = target
        for index in start..<node.count {
            let value = DecimalCoding.load(node.payload + index * node.width, Int(node.flags & 7), isZero: node.hasContext)
            target = try append(arena, target, value)
        }
        return (try truncate(arena, source, to: start), target)
    }

    @inline(__always) private static func code(_ arena: Arena, _ ref: Int) -> Int { Int(arena.header(ref).flags & 7) }

    private static func checkWidth(_ flags: UInt8, _ ref: Int) throws {
        switch flags & 7 {
        case 0, 3, 4, 5: return
        default: throw FormatError(ref: ref, "leaf of decimals has a width of \(BlockArrayEditor.byteWidth(flags)) bytes")
        }
    }

    /// The leaf with room for `growth` more values and of a width that holds `value`.
    private static func writable(_ arena: Arena, _ ref: Int, growth: Int, _ value: Element) throws -> Int {
        let ref = try BlockArrayEditor.writable(arena, ref, growth: growth)
        var (flags, count) = arena.header(ref)
        try checkWidth(flags, ref)
        if count == 0 && growth > 0, let value, value.isFinite, value.isZero {
            flags |= contextFlag
            arena.setHeader(ref, flags: flags, count: 0)
        }
        let code = DecimalCoding.widthCode(value, isZero: flags & contextFlag != 0)
        if code <= Int(flags & 7) { return ref }
        return try widen(arena, ref, code, growth: growth)
    }

    @inline(never)
    private static func widen(_ arena: Arena, _ ref: Int, _ code: Int, growth: Int) throws -> Int {
        let (flags, count) = arena.header(ref)
        let old = BlockArrayEditor.byteWidth(flags)
        let new = (1 << code) >> 1
        let ref = try arena.makeWritable(ref, byteCount: 8 + (count + growth) * new)
        let payload = arena.payload(ref)
        for index in (0..<count).reversed() {
            let value = DecimalCoding.load(payload + index * old, Int(flags & 7), isZero: flags & contextFlag != 0)
            DecimalCoding.store(payload + index * new, code, value)
        }
        arena.setHeader(ref, flags: flags & 0xF8 | UInt8(code), count: count)
        return ref
    }
}

/// A decimal in a leaf by width code: 0 nothing, 3 BID32, 4 BID64, 5 BID128; the forms themselves are in `DecimalEncoding`.
private enum DecimalCoding {
    /// The code of the smallest width that holds the value in a leaf whose context flag is `isZero`.
    static func widthCode(_ value: Decimal128Bits?, isZero flag: Bool) -> Int {
        switch DecimalEncoding.requiredWidth(value, isZeroDefault: flag) {
        case 0: 0
        case 4: 3
        case 8: 4
        default: 5
        }
    }

    /// Stores a value that fits.
    static func store(_ place: UnsafeMutableRawPointer, _ code: Int, _ value: Decimal128Bits?) {
        switch code {
        case 3:
            place.storeBytes(of: DecimalEncoding.toBID32(value), as: UInt32.self)
        case 4:
            place.storeBytes(of: DecimalEncoding.toBID64(value), as: UInt64.self)
        case 5:
            var bits = value ?? .nullPattern
            // A NaN with the bits of null stays a NaN.
            if value == .nullPattern { bits.low = 0 }
            place.storeBytes(of: bits.low, as: UInt64.self)
            place.storeBytes(of: bits.high, toByteOffset: 8, as: UInt64.self)
        default:
            break
        }
    }

    /// The value in the form of 128 bits, nil for null.
    static func load(_ place: UnsafeRawPointer, _ code: Int, isZero flag: Bool) -> Decimal128Bits? {
        switch code {
        case 0:
            return flag ? .zero : nil
        case 3:
            let bits = place.loadUnaligned(as: UInt32.self)
            return bits == DecimalEncoding.null32 ? nil : DecimalEncoding.fromBID32(bits)
        case 4:
            let bits = place.loadUnaligned(as: UInt64.self)
            return bits == DecimalEncoding.null64 ? nil : DecimalEncoding.fromBID64(bits)
        default:
            let high = place.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            let bits = Decimal128Bits(low: place.loadUnaligned(as: UInt64.self), high: high)
            return bits == .nullPattern ? nil : bits
        }
    }
}
