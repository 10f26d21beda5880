/// How integers of one kind of array are packed; see file-format-1 3.1 and 3.2. Width codes 0...7 stand for widths
/// 0, 1, 2, 4, 8, 16, 32, 64.
protocol IntegerCoding {
    /// The code of the smallest width that holds the value.
    static func widthCode(_ value: Int64) -> Int
    static func load(_ p: UnsafeRawPointer, _ code: Int, _ index: Int) -> Int64
    /// Stores the value if it fits into the width; else stores nothing and returns false.
    static func storeIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ index: Int, _ value: Int64) -> Bool
    /// Adds to elements `start..<end` of 8 bits or more, unless a sum does not fit; then nothing is changed and false returned.
    static func addIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ start: Int, _ end: Int, _ difference: Int64) -> Bool
    /// Width code of an array that has become empty.
    static var emptyWidthCode: Int { get }
    /// Copies elements to a place of the same or a larger width, last one first, so that both may begin at one address.
    static func widen(
        _ source: UnsafeRawPointer, _ sourceCode: Int, _ target: UnsafeMutableRawPointer, _ targetCode: Int, _ count: Int)
}

/// The ordinary kind: widths from 8 bits on are signed.
enum SignedCoding: IntegerCoding {
    static var emptyWidthCode: Int { 0 }

    @inline(__always)
    static func widthCode(_ value: Int64) -> Int {
        if UInt64(bitPattern: value) < 16 {
            return value < 2 ? Int(value) : value < 4 ? 2 : 3
        }
        let magnitude = value ^ (value >> 63)
        if magnitude < 1 << 15 { return magnitude < 1 << 7 ? 4 : 5 }
        return magnitude < 1 << 31 ? 6 : 7
    }

    @inline(__always)
    static func load(_ p: UnsafeRawPointer, _ code: Int, _ index: Int) -> Int64 { Node.element(p, code, index) }

    @inline(__always)
    static func storeIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ index: Int, _ value: Int64) -> Bool {
        switch code {
        case 7:
            p.storeBytes(of: value, toByteOffset: index &* 8, as: Int64.self)
        case 6:
            let narrow = Int32(truncatingIfNeeded: value)
            if Int64(narrow) != value { return false }
            p.storeBytes(of: narrow, toByteOffset: index &* 4, as: Int32.self)
        case 5:
            let narrow = Int16(truncatingIfNeeded: value)
            if Int64(narrow) != value { return false }
            p.storeBytes(of: narrow, toByteOffset: index &* 2, as: Int16.self)
        case 4:
            let narrow = Int8(truncatingIfNeeded: value)
            if Int64(narrow) != value { return false }
            p.storeBytes(of: narrow, toByteOffset: index, as: Int8.self)
        default:
            return storeBits(p, code, index, value)
        }
        return true
    }

    static func addIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ start: Int, _ end: Int, _ difference: Int64) -> Bool {
        switch code {
        case 4: addElements(p, Int8.self, start, end, difference)
        case 5: addElements(p, Int16.self, start, end, difference)
        case 6: addElements(p, Int32.self, start, end, difference)
        default: addWrapping(p, start, end, difference)
        }
    }

    static func widen(
        _ source: UnsafeRawPointer, _ sourceCode: Int, _ target: UnsafeMutableRawPointer, _ targetCode: Int, _ count: Int
    ) {
        switch (sourceCode, targetCode) {
        case (4, 5): widenElements(source, Int8.self, target, Int16.self, count)
        case (4, 6): widenElements(source, Int8.self, target, Int32.self, count)
        case (4, 7): widenElements(source, Int8.self, target, Int64.self, count)
        case (5, 6): widenElements(source, Int16.self, target, Int32.self, count)
        case (5, 7): widenElements(source, Int16.self, target, Int64.self, count)
        case (6, 7): widenElements(source, Int32.self, target, Int64.self, count)
        default: widenOneByOne(Self.self, source, sourceCode, target, targetCode, count)
        }
    }
}

/// Offsets of B+ trees, keys and offsets of cluster trees: 8, 16 and 32 bits are unsigned, smaller widths are not used.
/// Values are bit patterns of `UInt64`.
enum UnsignedCoding: IntegerCoding {
    static var emptyWidthCode: Int { 4 }

    @inline(__always)
    static func widthCode(_ value: Int64) -> Int {
        let v = UInt64(bitPattern: value)
        if v < 1 << 16 { return v < 1 << 8 ? 4 : 5 }
        return v < 1 << 32 ? 6 : 7
    }

    @inline(__always)
    static func load(_ p: UnsafeRawPointer, _ code: Int, _ index: Int) -> Int64 {
        switch code {
        case 4: Int64(p.load(fromByteOffset: index, as: UInt8.self))
        case 5: Int64(p.loadUnaligned(fromByteOffset: index &* 2, as: UInt16.self))
        case 6: Int64(p.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
        default: Node.element(p, code, index)
        }
    }

    @inline(__always)
    static func storeIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ index: Int, _ value: Int64) -> Bool {
        let v = UInt64(bitPattern: value)
        switch code {
        case 7:
            p.storeBytes(of: v, toByteOffset: index &* 8, as: UInt64.self)
        case 6:
            if v >> 32 != 0 { return false }
            p.storeBytes(of: UInt32(truncatingIfNeeded: v), toByteOffset: index &* 4, as: UInt32.self)
        case 5:
            if v >> 16 != 0 { return false }
            p.storeBytes(of: UInt16(truncatingIfNeeded: v), toByteOffset: index &* 2, as: UInt16.self)
        case 4:
            if v >> 8 != 0 { return false }
            p.storeBytes(of: UInt8(truncatingIfNeeded: v), toByteOffset: index, as: UInt8.self)
        default:
            return false
        }
        return true
    }

    static func addIfFitting(_ p: UnsafeMutableRawPointer, _ code: Int, _ start: Int, _ end: Int, _ difference: Int64) -> Bool {
        switch code {
        case 4: addElements(p, UInt8.self, start, end, difference)
        case 5: addElements(p, UInt16.self, start, end, difference)
        case 6: addElements(p, UInt32.self, start, end, difference)
        default: addWrapping(p, start, end, difference)
        }
    }

    static func widen(
        _ source: UnsafeRawPointer, _ sourceCode: Int, _ target: UnsafeMutableRawPointer, _ targetCode: Int, _ count: Int
    ) {
        switch (sourceCode, targetCode) {
        case (4, 5): widenElements(source, UInt8.self, target, UInt16.self, count)
        case (4, 6): widenElements(source, UInt8.self, target, UInt32.self, count)
        case (4, 7): widenElements(source, UInt8.self, target, UInt64.self, count)
        case (5, 6): widenElements(source, UInt16.self, target, UInt32.self, count)
        case (5, 7): widenElements(source, UInt16.self, target, UInt64.self, count)
        case (6, 7): widenElements(source, UInt32.self, target, UInt64.self, count)
        default: widenOneByOne(Self.self, source, sourceCode, target, targetCode, count)
        }
    }
}

/// Stores into an array of 0, 1, 2 or 4 bits an element.
@inline(__always)
private func storeBits(_ p: UnsafeMutableRawPointer, _ code: Int, _ index: Int, _ value: Int64) -> Bool {
    if code == 0 { return value == 0 }
    let width = 1 << (code &- 1)
    let mask = UInt8(truncatingIfNeeded: (1 &<< width) &- 1)
    if UInt64(bitPattern: value) > UInt64(mask) { return false }
    let bit = index &* width
    let shift = UInt8(truncatingIfNeeded: bit & 7)
    let byte = p.load(fromByteOffset: bit >> 3, as: UInt8.self)
    p.storeBytes(
        of: byte & ~(mask &<< shift) | UInt8(truncatingIfNeeded: value) &<< shift, toByteOffset: bit >> 3, as: UInt8.self)
    return true
}

/// Two passes without a branch an element: the extremes, then the sums.
@inline(__always)
private func addElements<T: FixedWidthInteger & BitwiseCopyable>(
    _ p: UnsafeMutableRawPointer, _: T.Type, _ start: Int, _ end: Int, _ difference: Int64
) -> Bool {
    let size = MemoryLayout<T>.size
    var low = T.max, high = T.min
    var index = start
    while index < end {
        let value = p.loadUnaligned(fromByteOffset: index &* size, as: T.self)
        low = value < low ? value : low
        high = value > high ? value : high
        index &+= 1
    }
    let (lowest, underflow) = Int64(truncatingIfNeeded: low).addingReportingOverflow(difference)
    let (highest, overflow) = Int64(truncatingIfNeeded: high).addingReportingOverflow(difference)
    if underflow || overflow || T(exactly: lowest) == nil || T(exactly: highest) == nil { return false }
    let step = T(truncatingIfNeeded: difference)
    index = start
    while index < end {
        let sum = p.loadUnaligned(fromByteOffset: index &* size, as: T.self) &+ step
        p.storeBytes(of: sum, toByteOffset: index &* size, as: T.self)
        index &+= 1
    }
    return true
}

@inline(__always)
private func addWrapping(_ p: UnsafeMutableRawPointer, _ start: Int, _ end: Int, _ difference: Int64) -> Bool {
    for index in start..<end {
        p.storeBytes(
            of: p.load(fromByteOffset: index &* 8, as: Int64.self) &+ difference, toByteOffset: index &* 8, as: Int64.self)
    }
    return true
}

@inline(__always)
private func widenElements<S: FixedWidthInteger & BitwiseCopyable, T: FixedWidthInteger & BitwiseCopyable>(
    _ source: UnsafeRawPointer, _: S.Type, _ target: UnsafeMutableRawPointer, _: T.Type, _ count: Int
) {
    var index = count &- 1
    while index >= 0 {
        let value = source.loadUnaligned(fromByteOffset: index &* MemoryLayout<S>.size, as: S.self)
        target.storeBytes(of: T(truncatingIfNeeded: value), toByteOffset: index &* MemoryLayout<T>.size, as: T.self)
        index &-= 1
    }
}

private func widenOneByOne<Coding: IntegerCoding>(
    _: Coding.Type, _ source: UnsafeRawPointer, _ sourceCode: Int, _ target: UnsafeMutableRawPointer, _ targetCode: Int,
    _ count: Int
) {
    if sourceCode == targetCode {
        target.copyMemory(from: source, byteCount: packedByteCount(count, sourceCode))
        return
    }
    var index = count &- 1
    while index >= 0 {
        let stored = Coding.storeIfFitting(target, targetCode, index, Coding.load(source, sourceCode, index))
        assert(stored)
        index &-= 1
    }
}

/// Bytes that `count` elements take at a width code.
@inline(__always)
func packedByteCount(_ count: Int, _ code: Int) -> Int { (count &* ((1 &<< code) >> 1) &+ 7) >> 3 }
