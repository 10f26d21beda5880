/// The bytes of a node as the format lays them out (file-format-1 sections 2 and 3), for tests and programs that make nodes one
/// by one. Written apart from the library's own editors, so that one finds the faults of the other.
public enum NodeBytes {
    /// The bits that a value needs in an array of integers: 0, 1, 2, 4, 8, 16, 32 or 64.
    public static func width(_ value: Int64) -> Int {
        switch value {
        case 0: return 0
        case 1: return 1
        case 2...3: return 2
        case 4...15: return 4
        default:
            let magnitude = value < 0 ? ~value : value
            return magnitude < 1 << 7 ? 8 : magnitude < 1 << 15 ? 16 : magnitude < 1 << 31 ? 32 : 64
        }
    }

    /// The bits that every element of an array of unsigned numbers has: 8 at least.
    public static func width(unsigned values: [UInt64]) -> Int {
        let largest = values.max() ?? 0
        return largest < 1 << 8 ? 8 : largest < 1 << 16 ? 16 : largest < 1 << 32 ? 32 : 64
    }

    /// The bits that every element of an array of these numbers has at least.
    public static func width(of values: [Int64]) -> Int { values.map { width($0) }.max() ?? 0 }

    /// How byte 4 of a node tells a width in bits.
    public static func code(_ width: Int) -> UInt8 { width == 0 ? 0 : UInt8(width.trailingZeroBitCount + 1) }

    /// The numbers one behind the other, from the lowest bit up. What is above `width` is cut off.
    public static func packed(_ values: [Int64], width: Int) -> [UInt8] {
        var payload = [UInt8](repeating: 0, count: (values.count * width + 7) / 8)
        for (i, value) in values.enumerated() {
            if width >= 8 {
                for j in 0..<(width / 8) { payload[i * width / 8 + j] = UInt8(truncatingIfNeeded: value >> Int64(8 * j)) }
            } else if width > 0 {
                payload[i * width / 8] |= UInt8(truncatingIfNeeded: value) << UInt8(i * width % 8)
            }
        }
        return payload
    }

    /// The 8 bytes before the payload; `flags` is all of byte 4.
    public static func header(flags: UInt8, count: Int) -> [UInt8] {
        [0x41, 0x41, 0x41, 0x41, flags, UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
    }

    /// A whole node: header, payload, zeros up to a multiple of 8 bytes.
    public static func node(flags: UInt8, count: Int, payload: [UInt8]) -> [UInt8] {
        header(flags: flags, count: count) + payload + [UInt8](repeating: 0, count: (8 - payload.count % 8) % 8)
    }

    /// The 8 bytes of a number as they lie in a file.
    public static func word(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
}
