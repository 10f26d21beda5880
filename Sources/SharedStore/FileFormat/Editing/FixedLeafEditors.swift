import Glibc

/// Changes to leaves of floats and doubles: IEEE 754 in blocks of 4 or 8 bytes, null is one bit pattern (file-format-1 5.4).
protocol FloatingPointPattern {
    associatedtype Bits: FixedWidthInteger & BitwiseCopyable
    associatedtype Number
    static var nullPattern: Bits { get }
    /// Stored in place of a number that has the bits of null.
    static var plainNaN: Bits { get }
    static func bits(_ number: Number) -> Bits
    static var widthCode: Int { get }
}

enum FloatPattern: FloatingPointPattern {
    static var nullPattern: UInt32 { FloatLeaf.nullPattern }
    static var plainNaN: UInt32 { 0x7FC0_0000 }
    static var widthCode: Int { 3 }
    @inline(__always) static func bits(_ number: Float) -> UInt32 { number.bitPattern }
}

enum DoublePattern: FloatingPointPattern {
    static var nullPattern: UInt64 { DoubleLeaf.nullPattern }
    static var plainNaN: UInt64 { 0x7FF8_0000_0000_0000 }
    static var widthCode: Int { 4 }
    @inline(__always) static func bits(_ number: Double) -> UInt64 { number.bitPattern }
}

typealias FloatLeafEditor = FloatingPointLeafEditor<FloatPattern>
typealias DoubleLeafEditor = FloatingPointLeafEditor<DoublePattern>

enum FloatingPointLeafEditor<Pattern: FloatingPointPattern>: LeafEditor {
    typealias Element = Pattern.Number?

    static func create(_ arena: Arena) throws -> Int { try BlockArrayEditor.create(arena, code: Pattern.widthCode) }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try BlockArrayEditor.node(arena, ref).count }

    @inline(__always)
    private static func bits(_ value: Element) -> Pattern.Bits {
        guard let value else { return Pattern.nullPattern }
        let bits = Pattern.bits(value)
        return bits == Pattern.nullPattern ? Pattern.plainNaN : bits
    }

    @inline(__always)
    private static func writable(_ arena: Arena, _ ref: Int, growth: Int) throws -> Int {
        let ref = try BlockArrayEditor.writable(arena, ref, growth: growth)
        let (flags, count) = arena.header(ref)
        if Int(flags & 7) == Pattern.widthCode { return ref }
        // An empty array may have any width.
        if count > 0 {
            throw FormatError(ref: ref, "leaf of numbers of \(MemoryLayout<Pattern.Bits>.size) bytes has another width")
        }
        arena.setHeader(ref, flags: flags & 0xF8 | UInt8(Pattern.widthCode), count: 0)
        return try BlockArrayEditor.writable(arena, ref, growth: growth)
    }

    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try writable(arena, ref, growth: 0)
        try BlockArrayEditor.place(arena, ref, index).storeBytes(of: bits(value), as: Pattern.Bits.self)
        return ref
    }

    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try writable(arena, ref, growth: 1)
        try BlockArrayEditor.openGap(arena, ref, index).storeBytes(of: bits(value), as: Pattern.Bits.self)
        return ref
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try BlockArrayEditor.erase(arena, ref, index) }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try BlockArrayEditor.truncate(arena, ref, to: count, emptyCode: Pattern.widthCode)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let source = try writable(arena, source, growth: 0)
        let target = try BlockArrayEditor.appendTail(arena, of: source, from: start, to: try writable(arena, target, growth: 0))
        return (try truncate(arena, source, to: start), target)
    }
}

// MARK: -

/// A value of a fixed number of bytes.
protocol FixedBytesValue {
    static var byteCount: Int { get }
    /// The bytes of a null value repeat these four.
    static var nullPattern: UInt32 { get }
    func store(to p: UnsafeMutableRawPointer)
}

extension ObjectIdValue: FixedBytesValue {
    static var byteCount: Int { 12 }
    static var nullPattern: UInt32 { 0xDEAD_DEAD }
}

extension UUIDValue: FixedBytesValue {
    static var byteCount: Int { 16 }
    static var nullPattern: UInt32 { 0xDEAD_BEEF }
}

typealias ObjectIdLeafEditor = FixedBytesLeafEditor<ObjectIdValue>
typealias UUIDLeafEditor = FixedBytesLeafEditor<UUIDValue>

/// Changes to leaves of ObjectIds and UUIDs: blocks of 8 values after a byte of null bits (file-format-1 5.8; the layout
/// is drawn in `FixedBytesLeaves.swift`). The header's count is in bytes.
enum FixedBytesLeafEditor<Value: FixedBytesValue>: LeafEditor {
    typealias Element = Value?

    @inline(__always) private static var size: Int { Value.byteCount }
    @inline(__always) private static var blockSize: Int { 8 &* Value.byteCount &+ 1 }

    static func create(_ arena: Arena) throws -> Int { try BlockArrayEditor.create(arena, code: 0) }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int {
        try FixedBytes.valueCount(try arena.memory.node(ref), size, "leaf of fixed bytes")
    }

    /// The leaf in the arena with room for `growth` more values, and its number of values.
    @inline(__always)
    private static func writable(_ arena: Arena, _ ref: Int, growth: Int) throws -> (ref: Int, count: Int) {
        let count = try count(arena, ref)
        let byteCount = FixedBytes.byteCount(count + growth, size)
        if byteCount > Arena.elementCountMax { throw LimitError.nodeTooLarge(byteCount: byteCount) }
        return (try arena.makeWritable(ref, byteCount: 8 + byteCount), count)
    }

    @inline(__always)
    private static func setCount(_ arena: Arena, _ ref: Int, _ count: Int) {
        arena.setHeader(ref, flags: 0x09, count: FixedBytes.byteCount(count, size))
    }

    @inline(__always)
    private static func store(_ payload: UnsafeMutableRawPointer, _ index: Int, _ value: Element) {
        let block = payload + (index >> 3) &* blockSize
        let place = block + (1 &+ (index & 7) &* size)
        let bit: UInt8 = 1 &<< UInt8(truncatingIfNeeded: index & 7)
        let bits = block.load(as: UInt8.self)
        if let value {
            block.storeBytes(of: bits & ~bit, as: UInt8.self)
            value.store(to: place)
        } else {
            block.storeBytes(of: bits | bit, as: UInt8.self)
            for offset in stride(from: 0, to: size, by: 4) {
                place.storeBytes(of: Value.nullPattern.bigEndian, toByteOffset: offset, as: UInt32.self)
            }
        }
    }

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let (ref, count) = try writable(arena, ref, growth: 0)
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        store(arena.payload(ref), index, value)
        return ref
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let (ref, count) = try writable(arena, ref, growth: 1)
        guard UInt(bitPattern: index) <= UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let payload = arena.payload(ref)
        setCount(arena, ref, count &+ 1)
        if count & 7 == 0 { payload.storeBytes(of: 0, toByteOffset: (count >> 3) &* blockSize, as: UInt8.self) }
        var block = count >> 3
        while index < count && block >= index >> 3 {
            // Values of the block from `first` on move up by one; that of place 7 went to the next block before.
            let start = payload + block &* blockSize
            let first = block == index >> 3 ? index & 7 : 0
            let here = min(8, count &- block &* 8)
            let bits = start.load(as: UInt8.self)
            if here == 8 {
                let next = start + blockSize
                memcpy(next + 1, start + (1 &+ 7 &* size), size)
                next.storeBytes(of: next.load(as: UInt8.self) & ~1 | bits >> 7, as: UInt8.self)
            }
            let moved = min(here, 7) &- first
            if moved > 0 {
                let place = start + (1 &+ first &* size)
                memmove(place + size, place, moved &* size)
            }
            let kept = UInt8(truncatingIfNeeded: (1 &<< first) &- 1)
            start.storeBytes(of: bits & kept | (bits & ~kept) &<< 1, as: UInt8.self)
            block &-= 1
        }
        store(payload, index, value)
        return ref
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let (ref, count) = try writable(arena, ref, growth: 0)
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let payload = arena.payload(ref)
        for block in index >> 3...(count &- 1) >> 3 {
            let start = payload + block &* blockSize
            let first = block == index >> 3 ? index & 7 : 0
            let here = min(8, count &- block &* 8)
            let bits = start.load(as: UInt8.self)
            let kept = UInt8(truncatingIfNeeded: (1 &<< first) &- 1)
            var new = bits & kept | (bits >> 1) & ~kept
            if here &- first > 1 {
                let place = start + (1 &+ first &* size)
                memmove(place, place + size, (here &- first &- 1) &* size)
            }
            if (block &+ 1) &* 8 < count {
                let next = start + blockSize
                memcpy(start + (1 &+ 7 &* size), next + 1, size)
                new = new & 0x7F | (next.load(as: UInt8.self) & 1) &<< 7
            }
            start.storeBytes(of: new, as: UInt8.self)
        }
        setCount(arena, ref, count &- 1)
        return ref
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        let (ref, old) = try writable(arena, ref, growth: 0)
        guard UInt(bitPattern: count) <= UInt(bitPattern: old) else { throw arena.indexOutside(ref, count, old) }
        if count == 0 { arena.setHeader(ref, flags: 0x08, count: 0) } else { setCount(arena, ref, count) }
        return ref
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let sourceCount = try count(arena, source)
        guard UInt(bitPattern: start) <= UInt(bitPattern: sourceCount) else {
            throw arena.indexOutside(source, start, sourceCount)
        }
        let from = try arena.memory.node(source).payload
        let (target, count) = try writable(arena, target, growth: sourceCount - start)
        let payload = arena.payload(target)
        for index in start..<sourceCount {
            let place = count + index - start
            let block = payload + (place >> 3) &* blockSize
            if place & 7 == 0 { block.storeBytes(of: 0, as: UInt8.self) }
            memcpy(block + (1 &+ (place & 7) &* size), FixedBytes.address(from, index, size), size)
            let bit: UInt8 = 1 &<< UInt8(truncatingIfNeeded: place & 7)
            let bits = block.load(as: UInt8.self)
            block.storeBytes(of: FixedBytes.isNull(from, index, size) ? bits | bit : bits & ~bit, as: UInt8.self)
        }
        if sourceCount > start { setCount(arena, target, count + sourceCount - start) }
        return (try truncate(arena, source, to: start), target)
    }
}

// MARK: -

/// Changes to leaves of timestamps: nullable seconds and nanoseconds side by side (file-format-1 5.5).
enum TimestampLeafEditor: LeafEditor {
    typealias Element = Timestamp?

    static func create(_ arena: Arena) throws -> Int {
        let ref = try arena.makeRefs(count: 2)
        arena.setElement(ref, 0, try NullableIntLeafEditor.create(arena))
        arena.setElement(ref, 1, try ArrayEditor.create(arena))
        return ref
    }

    static func createFilled(_ arena: Arena, count: Int, _ value: Timestamp?) throws -> Int {
        let ref = try arena.makeRefs(count: 2)
        arena.setElement(ref, 0, try NullableIntLeafEditor.createFilled(arena, count: count, value?.seconds))
        arena.setElement(ref, 1, try ArrayEditor.create(arena, count: count, value: Int64(value?.nanoseconds ?? 0)))
        return ref
    }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int {
        let node = try arena.integerNode(ref)
        if node.count != 2 { throw notTwo(ref) }
        return try ArrayEditor.count(arena, try node.requiredRef(1))
    }

    @inline(never)
    private static func notTwo(_ ref: Int) -> FormatError { FormatError(ref: ref, "leaf of timestamps has not two elements") }

    @inline(__always)
    private static func writable(_ arena: Arena, _ ref: Int) throws -> Int {
        let ref = try arena.writableRefs(ref)
        if arena.header(ref).count != 2 { throw notTwo(ref) }
        return ref
    }

    @inline(__always)
    private static func store(_ arena: Arena, _ ref: Int, _ seconds: Int, _ nanoseconds: Int) -> Int {
        arena.setElement(ref, 0, seconds)
        arena.setElement(ref, 1, nanoseconds)
        return ref
    }

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Timestamp?) throws -> Int {
        let ref = try writable(arena, ref)
        let seconds = try NullableIntLeafEditor.set(arena, try arena.child(ref, 0), index, value?.seconds)
        guard let value else { return store(arena, ref, seconds, try arena.child(ref, 1)) }
        return store(arena, ref, seconds, try ArrayEditor.set(arena, try arena.child(ref, 1), index, Int64(value.nanoseconds)))
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Timestamp?) throws -> Int {
        let ref = try writable(arena, ref)
        let seconds = try NullableIntLeafEditor.insert(arena, try arena.child(ref, 0), index, value?.seconds)
        return store(
            arena, ref, seconds, try ArrayEditor.insert(arena, try arena.child(ref, 1), index, Int64(value?.nanoseconds ?? 0)))
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try writable(arena, ref)
        let seconds = try NullableIntLeafEditor.erase(arena, try arena.child(ref, 0), index)
        return store(arena, ref, seconds, try ArrayEditor.erase(arena, try arena.child(ref, 1), index))
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        let ref = try writable(arena, ref)
        let seconds = try NullableIntLeafEditor.truncate(arena, try arena.child(ref, 0), to: count)
        return store(arena, ref, seconds, try ArrayEditor.truncate(arena, try arena.child(ref, 1), to: count))
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let source = try writable(arena, source)
        let target = try writable(arena, target)
        let seconds = try NullableIntLeafEditor.moveTail(
            arena, from: try arena.child(source, 0), at: start, to: try arena.child(target, 0))
        let nanoseconds = try ArrayEditor.moveTail(
            arena, from: try arena.child(source, 1), at: start, to: try arena.child(target, 1))
        return (
            store(arena, source, seconds.source, nanoseconds.source), store(arena, target, seconds.target, nanoseconds.target)
        )
    }
}
