import Glibc

/// Changes to arrays of integers (file-format-1 section 3), with or without refs: all nodes of width type 0.
///
/// A value that does not fit widens the whole array to the width that it needs; nothing narrows an array that has
/// elements; an array that is truncated to nothing starts over. Flags above the width code are kept.
enum IntegerArrayEditor<Coding: IntegerCoding> {
    // MARK: Making

    /// An empty array.
    static func create(_ arena: Arena, flags: UInt8 = 0) throws -> Int {
        try arena.makeNode(flags: flags & 0xE0 | UInt8(Coding.emptyWidthCode), count: 0, payloadByteCount: 0)
    }

    /// An array of `count` times the same value.
    static func create(_ arena: Arena, flags: UInt8 = 0, count: Int, value: Int64) throws -> Int {
        let code = max(Coding.widthCode(value), Coding.emptyWidthCode)
        let byteCount = packedByteCount(count, code)
        let ref = try arena.makeNode(flags: flags & 0xE0 | UInt8(code), count: count, payloadByteCount: byteCount)
        let payload = arena.payload(ref)
        if value == 0 || value == -1 {
            memset(payload, Int32(truncatingIfNeeded: value), byteCount)
        } else {
            for index in 0..<count { _ = Coding.storeIfFitting(payload, code, index, value) }
        }
        return ref
    }

    // MARK: Reading

    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try arena.integerNode(ref).count }

    @inline(__always)
    static func get(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int64 {
        let node = try arena.integerNode(ref)
        guard UInt(bitPattern: index) < UInt(bitPattern: node.count) else { throw arena.indexOutside(ref, index, node.count) }
        return Coding.load(node.payload, Int(node.flags & 7), index)
    }

    // MARK: Changing

    /// Replaces element `index`.
    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64) throws -> Int {
        if arena.memory.isInArena(ref) {
            let (flags, count) = arena.header(ref)
            if UInt(bitPattern: index) < UInt(bitPattern: count), flags & 0x18 == 0,
                Coding.storeIfFitting(arena.payload(ref), Int(flags & 7), index, value)
            {
                return ref
            }
        }
        return try setSlowly(arena, ref, index, value)
    }

    @inline(never)
    private static func setSlowly(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64) throws -> Int {
        let count = try arena.integerNode(ref).count
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let ref = try writable(arena, ref, growth: 0, code: Coding.widthCode(value))
        _ = Coding.storeIfFitting(arena.payload(ref), Int(arena.header(ref).flags & 7), index, value)
        return ref
    }

    /// Inserts before element `index`; an index equal to the count appends.
    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64) throws -> Int {
        let ref = try writable(arena, ref, growth: 1, code: Coding.widthCode(value))
        let (flags, count) = arena.header(ref)
        guard UInt(bitPattern: index) <= UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let payload = arena.payload(ref)
        let code = Int(flags & 7)
        if index != count { openGap(payload, code, at: index, count: count) }
        _ = Coding.storeIfFitting(payload, code, index, value)
        arena.setHeader(ref, flags: flags, count: count &+ 1)
        return ref
    }

    @inline(__always)
    static func append(_ arena: Arena, _ ref: Int, _ value: Int64) throws -> Int {
        let ref = try writable(arena, ref, growth: 1, code: Coding.widthCode(value))
        let (flags, count) = arena.header(ref)
        _ = Coding.storeIfFitting(arena.payload(ref), Int(flags & 7), count, value)
        arena.setHeader(ref, flags: flags, count: count &+ 1)
        return ref
    }

    /// Removes element `index`; the width stays.
    @inline(__always)
    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try writable(arena, ref, growth: 0, code: 0)
        let (flags, count) = arena.header(ref)
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        if index != count &- 1 { closeGap(arena.payload(ref), Int(flags & 7), at: index, count: count) }
        arena.setHeader(ref, flags: flags, count: count &- 1)
        return ref
    }

    /// Removes all elements from `newCount` on. An array truncated to nothing has the smallest width again.
    static func truncate(_ arena: Arena, _ ref: Int, to newCount: Int) throws -> Int {
        let node = try arena.integerNode(ref)
        guard UInt(bitPattern: newCount) <= UInt(bitPattern: node.count) else {
            throw arena.indexOutside(ref, newCount, node.count)
        }
        if newCount == 0 && !arena.memory.isInArena(ref) {
            try arena.release(ref)
            return try create(arena, flags: node.flags)
        }
        let ref = try writable(arena, ref, growth: 0, code: 0)
        let flags = arena.header(ref).flags
        arena.setHeader(ref, flags: newCount == 0 ? flags & 0xF8 | UInt8(Coding.emptyWidthCode) : flags, count: newCount)
        return ref
    }

    /// Adds `difference` to every element from `start` on, modulo 2^64.
    static func add(_ arena: Arena, _ ref: Int, from start: Int, _ difference: Int64) throws -> Int {
        let node = try arena.integerNode(ref)
        guard UInt(bitPattern: start) <= UInt(bitPattern: node.count) else { throw arena.indexOutside(ref, start, node.count) }
        if difference == 0 || start == node.count { return ref }
        if node.flags & 7 >= 4 {
            let ref = try writable(arena, ref, growth: 0, code: 0)
            if Coding.addIfFitting(arena.payload(ref), Int(node.flags & 7), start, node.count, difference) { return ref }
            return try addSlowly(arena, ref, from: start, difference)
        }
        return try addSlowly(arena, ref, from: start, difference)
    }

    @inline(never)
    private static func addSlowly(_ arena: Arena, _ ref: Int, from start: Int, _ difference: Int64) throws -> Int {
        let node = try arena.integerNode(ref)
        var code = 0
        for index in start..<node.count {
            code = max(code, Coding.widthCode(Coding.load(node.payload, Int(node.flags & 7), index) &+ difference))
        }
        let ref = try writable(arena, ref, growth: 0, code: code)
        let payload = arena.payload(ref)
        let (flags, count) = arena.header(ref)
        code = Int(flags & 7)
        for index in start..<count {
            _ = Coding.storeIfFitting(payload, code, index, Coding.load(payload, code, index) &+ difference)
        }
        return ref
    }

    /// Appends elements `start...` of `source` to `target` and removes them from `source`.
    /// The target is widened to the width of the source first (file-format-1 3.3).
    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let tail = try arena.integerNode(source)
        guard UInt(bitPattern: start) <= UInt(bitPattern: tail.count) else { throw arena.indexOutside(source, start, tail.count) }
        let moved = tail.count &- start
        let code = Int(tail.flags & 7)
        let target = try writable(arena, target, growth: moved, code: max(code, Coding.emptyWidthCode))
        let (flags, count) = arena.header(target)
        let payload = arena.payload(target)
        let targetCode = Int(flags & 7)
        if code == targetCode && code >= 4 {
            let byteWidth = 1 &<< (code &- 4)
            memcpy(payload + count &* byteWidth, tail.payload + start &* byteWidth, moved &* byteWidth)
        } else {
            for index in 0..<moved {
                _ = Coding.storeIfFitting(payload, targetCode, count &+ index, Coding.load(tail.payload, code, start &+ index))
            }
        }
        arena.setHeader(target, flags: flags, count: count &+ moved)
        return (try truncate(arena, source, to: start), target)
    }

    // MARK: Room and width

    /// The array in the arena, with room for `growth` more elements and of width code `code` at least.
    @inline(__always)
    static func writable(_ arena: Arena, _ ref: Int, growth: Int, code: Int) throws -> Int {
        if arena.memory.isInArena(ref) {
            let (flags, count) = arena.header(ref)
            let present = Int(flags & 7)
            if present >= code, flags & 0x18 == 0, count &+ growth <= Arena.elementCountMax,
                8 &+ packedByteCount(count &+ growth, present) <= arena.capacity(ref)
            {
                return ref
            }
        }
        return try makeWritable(arena, ref, growth: growth, code: max(code, Coding.emptyWidthCode))
    }

    @inline(never)
    private static func makeWritable(_ arena: Arena, _ ref: Int, growth: Int, code: Int) throws -> Int {
        let node = try arena.integerNode(ref)
        let present = Int(node.flags & 7)
        let wanted = max(code, present)
        let byteCount = 8 + packedByteCount(node.count + growth, wanted)
        if node.count + growth > Arena.elementCountMax { throw LimitError.nodeTooLarge(byteCount: byteCount) }
        if wanted == present { return try arena.makeWritable(ref, byteCount: byteCount) }
        if arena.memory.isInArena(ref) && arena.capacity(ref) >= byteCount {
            Coding.widen(node.payload, present, arena.payload(ref), wanted, node.count)
            arena.setHeader(ref, flags: node.flags & 0xF8 | UInt8(wanted), count: node.count)
            return ref
        }
        if node.hasRefs { try arena.checkChildren(node) }
        let room = arena.memory.isInArena(ref) ? min(2 * arena.capacity(ref), Arena.nodeByteCountMax) : byteCount + 64
        let copy = try arena.allocate(max(byteCount, room))
        Coding.widen(node.payload, present, arena.payload(copy), wanted, node.count)
        arena.setHeader(copy, flags: node.flags & 0xF8 | UInt8(wanted), count: node.count)
        try arena.release(ref)
        return copy
    }

    /// Moves elements `index..<count` up by one place; there is room for it.
    @inline(__always)
    private static func openGap(_ payload: UnsafeMutableRawPointer, _ code: Int, at index: Int, count: Int) {
        if code >= 4 {
            let byteWidth = 1 &<< (code &- 4)
            let place = payload + index &* byteWidth
            memmove(place + byteWidth, place, (count &- index) &* byteWidth)
        } else if code > 0 {
            shiftBitsUp(payload, by: 1 &<< (code &- 1), from: index &<< (code &- 1), to: count &<< (code &- 1))
        }
    }

    /// Moves elements `index + 1..<count` down by one place.
    @inline(__always)
    private static func closeGap(_ payload: UnsafeMutableRawPointer, _ code: Int, at index: Int, count: Int) {
        if code >= 4 {
            let byteWidth = 1 &<< (code &- 4)
            let place = payload + index &* byteWidth
            memmove(place, place + byteWidth, (count &- index &- 1) &* byteWidth)
        } else if code > 0 {
            shiftBitsDown(payload, by: 1 &<< (code &- 1), from: index &<< (code &- 1), to: count &<< (code &- 1))
        }
    }
}

/// Arrays of signed integers, and arrays of refs and tagged integers.
typealias ArrayEditor = IntegerArrayEditor<SignedCoding>
/// Offsets of B+ trees, keys and offsets of cluster trees.
typealias UnsignedArrayEditor = IntegerArrayEditor<UnsignedCoding>

/// Moves bits `from..<to` up by `distance` (1, 2 or 4) bits. `from` and `to` are multiples of the distance.
private func shiftBitsUp(_ p: UnsafeMutableRawPointer, by distance: Int, from: Int, to: Int) {
    let up = UInt8(truncatingIfNeeded: distance), down = UInt8(truncatingIfNeeded: 8 &- distance)
    let first = from >> 3
    var byte = (to &+ distance &- 1) >> 3
    while byte > first {
        let carry = p.load(fromByteOffset: byte &- 1, as: UInt8.self) &>> down
        p.storeBytes(of: p.load(fromByteOffset: byte, as: UInt8.self) &<< up | carry, toByteOffset: byte, as: UInt8.self)
        byte &-= 1
    }
    let kept = UInt8(truncatingIfNeeded: (1 &<< (from & 7)) &- 1)
    let value = p.load(fromByteOffset: first, as: UInt8.self)
    p.storeBytes(of: value & kept | (value & ~kept) &<< up, toByteOffset: first, as: UInt8.self)
}

/// Moves bits `from + distance..<to` down by `distance` (1, 2 or 4) bits.
private func shiftBitsDown(_ p: UnsafeMutableRawPointer, by distance: Int, from: Int, to: Int) {
    let up = UInt8(truncatingIfNeeded: 8 &- distance), down = UInt8(truncatingIfNeeded: distance)
    var byte = from >> 3
    let last = (to &- 1) >> 3
    let kept = UInt8(truncatingIfNeeded: (1 &<< (from & 7)) &- 1)
    var value = p.load(fromByteOffset: byte, as: UInt8.self)
    let low = value & kept
    var next: UInt8 = byte < last ? p.load(fromByteOffset: byte &+ 1, as: UInt8.self) : 0
    p.storeBytes(of: low | (value &>> down & ~kept) | (byte < last ? next &<< up : 0), toByteOffset: byte, as: UInt8.self)
    while byte < last {
        byte &+= 1
        value = next
        next = byte < last ? p.load(fromByteOffset: byte &+ 1, as: UInt8.self) : 0
        p.storeBytes(of: value &>> down | next &<< up, toByteOffset: byte, as: UInt8.self)
    }
}
