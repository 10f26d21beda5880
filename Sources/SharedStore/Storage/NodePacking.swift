/// Writing of whole nodes as they lie in the file (file-format-1 sections 2 and 3).
enum NodePacking {
    /// The 2 bits of width and sign that a set of values needs, gathered by OR.
    struct Extent {
        private var bits: UInt64 = 0
        private var signs: Int64 = 0
        @inline(__always) init() {}
        @inline(__always) mutating func include(_ value: Int64) {
            bits |= UInt64(bitPattern: value ^ (value &>> 63))
            signs |= value
        }
        /// The smallest width code that holds all of them (file-format-1 3.2).
        @inline(__always) var widthCode: Int {
            if signs >= 0 && bits < 16 { return bits == 0 ? 0 : bits == 1 ? 1 : bits < 4 ? 2 : 3 }
            return bits < 1 << 7 ? 4 : bits < 1 << 15 ? 5 : bits < 1 << 31 ? 6 : 7
        }
    }

    /// Bytes of a node of width type 0 with `count` elements, header and padding included.
    @inline(__always) static func byteCount(_ count: Int, _ widthCode: Int) -> Int {
        8 &+ (((count &* ((1 << widthCode) >> 1) &+ 7) >> 3 &+ 7) & ~7)
    }

    /// Bytes 0..7: placeholder for a checksum, flags, count.
    @inline(__always) static func stampHeader(_ p: UnsafeMutableRawPointer, flags: UInt8, count: Int) {
        let word = 0x4141_4141 << 32 | UInt64(flags) << 24 | UInt64(count)
        p.storeBytes(of: word.bigEndian, as: UInt64.self)
    }

    /// Stores `count` values of 64 bits with the width `widthCode`, zeros behind them up to a multiple of 8 bytes.
    /// `target` may be `source`: every value is read before anything is stored over it.
    @inline(__always)
    static func pack(_ source: UnsafePointer<Int64>, _ count: Int, _ widthCode: Int, to target: UnsafeMutableRawPointer) {
        var end = 0
        switch widthCode {
        case 0: return
        case 1, 2, 3:
            let shift = widthCode - 1  // log2 of the bits
            let perByte = 8 >> shift
            var i = 0
            while i < count {
                var byte: UInt8 = 0
                let n = min(perByte, count - i)
                for k in 0..<n { byte |= UInt8(truncatingIfNeeded: source[i + k]) << UInt8(k << shift) }
                target.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
                end += 1
                i += n
            }
        case 4:
            for i in 0..<count { target.storeBytes(of: Int8(truncatingIfNeeded: source[i]), toByteOffset: i, as: Int8.self) }
            end = count
        case 5:
            for i in 0..<count {
                target.storeBytes(of: Int16(truncatingIfNeeded: source[i]), toByteOffset: 2 &* i, as: Int16.self)
            }
            end = 2 * count
        case 6:
            for i in 0..<count {
                target.storeBytes(of: Int32(truncatingIfNeeded: source[i]), toByteOffset: 4 &* i, as: Int32.self)
            }
            end = 4 * count
        default:
            if UnsafeRawPointer(source) != UnsafeRawPointer(target) { target.copyMemory(from: source, byteCount: 8 * count) }
            return
        }
        clearPadding(target, end)
    }

    /// Zeros from byte `end` up to the next multiple of 8.
    @inline(__always) static func clearPadding(_ payload: UnsafeMutableRawPointer, _ end: Int) {
        var i = end
        while i & 7 != 0 {
            payload.storeBytes(of: 0, toByteOffset: i, as: UInt8.self)
            i &+= 1
        }
    }

    /// Replaces an element of a node of width type 0; the caller knows that it fits.
    static func set(_ payload: UnsafeMutableRawPointer, _ widthCode: Int, _ index: Int, _ value: Int64) {
        switch widthCode {
        case 4: payload.storeBytes(of: Int8(truncatingIfNeeded: value), toByteOffset: index, as: Int8.self)
        case 5: payload.storeBytes(of: Int16(truncatingIfNeeded: value), toByteOffset: 2 * index, as: Int16.self)
        case 6: payload.storeBytes(of: Int32(truncatingIfNeeded: value), toByteOffset: 4 * index, as: Int32.self)
        case 7: payload.storeBytes(of: value, toByteOffset: 8 * index, as: Int64.self)
        default: preconditionFailure("a ref does not fit into width code \(widthCode); widen the array first")
        }
    }
}
