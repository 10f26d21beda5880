import Glibc

/// Changes to short strings: blocks of W = 1, 2, 4 ... 64 bytes, or W = 0 where every element is null (file-format-1 6.2).
///
/// ```
/// byte 0 ... L-1 characters | zeros | byte W-1: p = W-1-L, the number of zeros before it;  p == W: null
/// ```
/// The widths grow to the smallest that holds the longest string and its last byte.
enum ShortStringEditor {
    /// Longest string that a block can hold.
    static let byteCountMax = 63

    static func create(_ arena: Arena) throws -> Int { try BlockArrayEditor.create(arena, code: 0) }

    /// The code of the smallest block that holds a string of `byteCount` bytes.
    @inline(__always)
    private static func widthCode(_ byteCount: Int) -> Int { 1 &+ Int.bitWidth &- byteCount.leadingZeroBitCount }

    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ bytes: UnsafeRawBufferPointer?) throws -> Int {
        let ref = try writable(arena, ref, growth: 0, bytes)
        store(try BlockArrayEditor.place(arena, ref, index), BlockArrayEditor.byteWidth(arena.header(ref).flags), bytes)
        return ref
    }

    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ bytes: UnsafeRawBufferPointer?) throws -> Int {
        let ref = try writable(arena, ref, growth: 1, bytes)
        store(try BlockArrayEditor.openGap(arena, ref, index), BlockArrayEditor.byteWidth(arena.header(ref).flags), bytes)
        return ref
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try BlockArrayEditor.erase(arena, ref, index) }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try BlockArrayEditor.truncate(arena, ref, to: count, emptyCode: 0)
    }

    /// The array with room for `growth` more elements and blocks that hold `bytes`.
    @inline(__always)
    private static func writable(_ arena: Arena, _ ref: Int, growth: Int, _ bytes: UnsafeRawBufferPointer?) throws -> Int {
        let code = bytes.map { widthCode($0.count) } ?? 0
        let ref = try BlockArrayEditor.writable(arena, ref, growth: growth)
        if Int(arena.header(ref).flags & 7) >= code { return ref }
        return try widen(arena, ref, code, growth: growth)
    }

    /// Stores one block; it is large enough.
    @inline(__always)
    private static func store(_ place: UnsafeMutableRawPointer, _ width: Int, _ bytes: UnsafeRawBufferPointer?) {
        if width == 0 { return }
        guard let bytes else {
            memset(place, 0, width)
            place.storeBytes(of: UInt8(truncatingIfNeeded: width), toByteOffset: width &- 1, as: UInt8.self)
            return
        }
        let length = bytes.count
        if length > 0 { memcpy(place, bytes.baseAddress.unsafelyUnwrapped, length) }
        memset(place + length, 0, width &- length)
        place.storeBytes(of: UInt8(truncatingIfNeeded: width &- 1 &- length), toByteOffset: width &- 1, as: UInt8.self)
    }

    /// Gives every element a wider block. The array is in the arena.
    @inline(never)
    private static func widen(_ arena: Arena, _ ref: Int, _ code: Int, growth: Int) throws -> Int {
        let (flags, count) = arena.header(ref)
        let old = BlockArrayEditor.byteWidth(flags)
        let new = (1 << code) >> 1
        let ref = try arena.makeWritable(ref, byteCount: 8 + (count + growth) * new)
        let payload = arena.payload(ref)
        for index in (0..<count).reversed() {
            let target = payload + index * new
            if old == 0 {
                memset(target, 0, new)
                target.storeBytes(of: UInt8(new), toByteOffset: new - 1, as: UInt8.self)
                continue
            }
            let source = payload + index * old
            // A damaged block is taken for one without characters.
            let zeros = min(Int(source.load(fromByteOffset: old - 1, as: UInt8.self)), old)
            memmove(target, source, old - 1)
            memset(target + (old - 1), 0, new - old + 1)
            target.storeBytes(of: UInt8(zeros + new - old), toByteOffset: new - 1, as: UInt8.self)
        }
        arena.setHeader(ref, flags: flags & 0xF8 | UInt8(code), count: count)
        return ref
    }
}

/// Changes to the arrays of names of tables and columns: short strings in which null and "" are the same.
enum NameArrayEditor {
    static func create(_ arena: Arena) throws -> Int { try ShortStringEditor.create(arena) }

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ name: String) throws -> Int {
        try withBytes(arena, ref, name) { try ShortStringEditor.set(arena, ref, index, $0) }
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ name: String) throws -> Int {
        try withBytes(arena, ref, name) { try ShortStringEditor.insert(arena, ref, index, $0) }
    }

    static func append(_ arena: Arena, _ ref: Int, _ name: String) throws -> Int {
        try insert(arena, ref, try BlockArrayEditor.node(arena, ref).count, name)
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try ShortStringEditor.erase(arena, ref, index) }

    /// "" is stored as null where no block has room for anything else, so that the width stays 0.
    private static func withBytes(
        _ arena: Arena, _ ref: Int, _ name: String, _ body: (UnsafeRawBufferPointer?) throws -> Int
    ) throws -> Int {
        var name = name
        if name.utf8.count > ShortStringEditor.byteCountMax {
            throw LimitError.valueTooLarge(byteCount: name.utf8.count, limit: ShortStringEditor.byteCountMax)
        }
        if name.isEmpty, try BlockArrayEditor.node(arena, ref).width == 0 { return try body(nil) }
        return try name.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
}
