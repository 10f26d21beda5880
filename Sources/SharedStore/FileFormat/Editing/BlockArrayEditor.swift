/// Changes to arrays whose elements are 1, 2, 4 ... 64 whole bytes (width type 1): floats, doubles, decimals, short strings.
///
/// Indexes are checked. Places that are handed out are valid until the next change of the arena.
enum BlockArrayEditor {
    /// An empty array; `code` stands for 0, 1, 2, 4 ... 64 bytes an element.
    static func create(_ arena: Arena, code: Int) throws -> Int {
        try arena.makeNode(flags: 0x08 | UInt8(code), count: 0, payloadByteCount: 0)
    }

    /// The node at `ref`, after checking its width type.
    @inline(__always)
    static func node(_ arena: Arena, _ ref: Int) throws -> Node {
        let node = try arena.memory.node(ref)
        if node.flags & 0xD8 != 0x08 { throw notBlocks(node) }
        return node
    }

    @inline(never)
    private static func notBlocks(_ node: Node) -> FormatError {
        FormatError(ref: node.ref, "array of blocks has flags 0x\(hexadecimal(UInt64(node.flags), digits: 2))")
    }

    /// The array in the arena with room for `growth` more elements.
    @inline(__always)
    static func writable(_ arena: Arena, _ ref: Int, growth: Int) throws -> Int {
        if arena.memory.isInArena(ref) {
            let (flags, count) = arena.header(ref)
            if flags & 0xD8 == 0x08, 8 &+ (count &+ growth) &* byteWidth(flags) <= arena.capacity(ref) { return ref }
        }
        return try makeWritable(arena, ref, growth: growth)
    }

    @inline(never)
    private static func makeWritable(_ arena: Arena, _ ref: Int, growth: Int) throws -> Int {
        let node = try node(arena, ref)
        let byteCount = 8 + (node.count + growth) * node.width
        if node.count + growth > Arena.elementCountMax { throw LimitError.nodeTooLarge(byteCount: byteCount) }
        return try arena.makeWritable(ref, byteCount: byteCount)
    }

    @inline(__always) static func byteWidth(_ flags: UInt8) -> Int { (1 &<< Int(flags & 7)) >> 1 }

    /// Where element `index` is to be written, in an array made writable.
    @inline(__always)
    static func place(_ arena: Arena, _ ref: Int, _ index: Int) throws -> UnsafeMutableRawPointer {
        let (flags, count) = arena.header(ref)
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        return arena.payload(ref) + index &* byteWidth(flags)
    }

    /// Makes place for one more element before `index`, in an array made writable with room for it.
    @inline(__always)
    static func openGap(_ arena: Arena, _ ref: Int, _ index: Int) throws -> UnsafeMutableRawPointer {
        let (flags, count) = arena.header(ref)
        guard UInt(bitPattern: index) <= UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        if count == Arena.elementCountMax { throw LimitError.nodeTooLarge(byteCount: count * byteWidth(flags)) }
        let width = byteWidth(flags)
        let place = arena.payload(ref) + index &* width
        if index != count { (place + width).copyMemory(from: place, byteCount: (count &- index) &* width) }
        arena.setHeader(ref, flags: flags, count: count &+ 1)
        return place
    }

    /// Removes element `index`; the width stays.
    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try writable(arena, ref, growth: 0)
        let (flags, count) = arena.header(ref)
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let width = byteWidth(flags)
        let place = arena.payload(ref) + index &* width
        place.copyMemory(from: place + width, byteCount: (count &- index &- 1) &* width)
        arena.setHeader(ref, flags: flags, count: count &- 1)
        return ref
    }

    /// Removes all elements from `newCount` on; an array without elements gets width code `emptyCode`.
    static func truncate(_ arena: Arena, _ ref: Int, to newCount: Int, emptyCode: Int) throws -> Int {
        let count = try node(arena, ref).count
        guard UInt(bitPattern: newCount) <= UInt(bitPattern: count) else { throw arena.indexOutside(ref, newCount, count) }
        let ref = try writable(arena, ref, growth: 0)
        let flags = arena.header(ref).flags
        arena.setHeader(ref, flags: newCount == 0 ? flags & 0xF8 | UInt8(emptyCode) : flags, count: newCount)
        return ref
    }

    /// Appends elements `start...` of one array to another of the same width.
    static func appendTail(_ arena: Arena, of source: Int, from start: Int, to target: Int) throws -> Int {
        let tail = try node(arena, source)
        guard UInt(bitPattern: start) <= UInt(bitPattern: tail.count) else { throw arena.indexOutside(source, start, tail.count) }
        let target = try writable(arena, target, growth: tail.count - start)
        let (flags, count) = arena.header(target)
        precondition(tail.width == byteWidth(flags), "arrays of different widths; widen one first")
        let place = arena.payload(target) + count * tail.width
        place.copyMemory(from: tail.payload + start * tail.width, byteCount: (tail.count - start) * tail.width)
        arena.setHeader(target, flags: flags, count: count + tail.count - start)
        return target
    }
}
