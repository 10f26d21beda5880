import Glibc

/// Changes to blobs: nodes of bytes, and values split over several of them (file-format-1 6.5).
enum BlobEditor {
    /// Bytes that one blob can hold; longer values are split into parts of exactly this size, and a rest.
    static let byteCountMax = 0xFFFFF0

    /// An empty blob.
    static func create(_ arena: Arena) throws -> Int { try arena.makeNode(flags: 0x10, count: 0, payloadByteCount: 0) }

    /// A blob of the given bytes and `zeros` zero bytes behind them.
    static func create(_ arena: Arena, _ bytes: UnsafeRawBufferPointer, zeros: Int) throws -> Int {
        let size = bytes.count + zeros
        if size > byteCountMax { throw LimitError.valueTooLarge(byteCount: bytes.count, limit: byteCountMax - zeros) }
        // Exactly as large as needed: a value is replaced, it does not grow.
        let ref = try arena.allocate(8 + size)
        arena.setHeader(ref, flags: 0x11, count: size)
        store(arena.payload(ref), bytes, zeros)
        return ref
    }

    /// A blob, or where the bytes do not fit into one a node of refs of blobs.
    static func createSplit(_ arena: Arena, _ bytes: UnsafeRawBufferPointer) throws -> Int {
        if bytes.count <= byteCountMax { return try create(arena, bytes, zeros: 0) }
        let parts = (bytes.count + byteCountMax - 1) / byteCountMax
        let ref = try arena.makeRefs(flags: 0x60, count: parts)
        for part in 0..<parts {
            let start = part * byteCountMax
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + byteCountMax, bytes.count)])
            arena.setElement(ref, part, try create(arena, piece, zeros: 0))
        }
        return ref
    }

    @inline(__always)
    private static func store(_ place: UnsafeMutableRawPointer, _ bytes: UnsafeRawBufferPointer, _ zeros: Int) {
        if !bytes.isEmpty { memcpy(place, bytes.baseAddress.unsafelyUnwrapped, bytes.count) }
        if zeros > 0 { memset(place + bytes.count, 0, zeros) }
    }

    /// Replaces the blob that a big-blobs leaf has for a value. A block that is in the arena and of fitting size is used again.
    static func replace(_ arena: Arena, _ ref: Int, _ bytes: UnsafeRawBufferPointer, zeros: Int) throws -> Int {
        let size = 8 + bytes.count + zeros
        if arena.memory.isInArena(ref), arena.header(ref).flags & 0xD8 == 0x10 {
            let capacity = arena.capacity(ref)
            if size <= capacity && capacity <= 2 * size {
                arena.setHeader(ref, flags: 0x11, count: size - 8)
                store(arena.payload(ref), bytes, zeros)
                return ref
            }
        }
        let new = try create(arena, bytes, zeros: zeros)
        try arena.releaseTree(ref)
        return new
    }

    /// Replaces `removed` bytes at `position` by the given ones and `zeros` zero bytes.
    @inline(__always)
    static func splice(
        _ arena: Arena, _ ref: Int, at position: Int, removing removed: Int, _ bytes: UnsafeRawBufferPointer, zeros: Int
    ) throws -> Int {
        let old = try arena.memory.node(ref)
        if old.flags & 0xD8 != 0x10 { throw FormatError(ref: ref, "blob has width type \(old.widthType)") }
        guard position >= 0, removed >= 0, position <= old.count, removed <= old.count &- position else {
            throw arena.indexOutside(ref, position, old.count)
        }
        let added = bytes.count &+ zeros
        let size = old.count &- removed &+ added
        if size > byteCountMax { throw LimitError.valueTooLarge(byteCount: size, limit: byteCountMax) }
        let ref = try arena.makeWritable(ref, byteCount: 8 &+ size)
        let place = arena.payload(ref) + position
        let tail = old.count &- position &- removed
        if tail > 0 && added != removed { memmove(place + added, place + removed, tail) }
        store(place, bytes, zeros)
        arena.setHeader(ref, flags: 0x11, count: size)
        return ref
    }

    /// Removes all bytes from `byteCount` on.
    static func truncate(_ arena: Arena, _ ref: Int, to byteCount: Int) throws -> Int {
        let node = try arena.memory.node(ref)
        if node.flags & 0xD8 != 0x10 || byteCount < 0 || byteCount > node.count {
            throw arena.indexOutside(ref, byteCount, node.count)
        }
        let ref = try arena.makeWritable(ref)
        arena.setHeader(ref, flags: byteCount == 0 ? 0x10 : 0x11, count: byteCount)
        return ref
    }
}
