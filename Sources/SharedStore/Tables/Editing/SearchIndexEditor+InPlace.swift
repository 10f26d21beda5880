import Glibc

/// The usual insertion into an index: a new chunk in a node of the arena that has room.
extension SearchIndexEditor {
    /// Inserts `key` under `bytes` where nothing but one node of the arena has to change. The root stays.
    ///
    /// Not for indexes of words. Refs in a node of the arena that lead into the arena are ours (`Arena.checkChildren`), so that
    /// the nodes on the way need no checks but those that tell whether this is the usual case.
    /// - Returns: false, with nothing changed, where more than that is needed.
    @inline(__always)
    static func insertInPlace(_ arena: Arena, _ root: Int, _ key: ObjectKey, _ bytes: some IndexKey) -> Bool {
        var node = root, offset = 0
        var span = SearchIndex.ChunkSpan()
        while arena.memory.isInArena(node) {
            let (flags, count) = arena.header(node)
            guard flags & 0x7F == 0x67, count > 0 else { return false }
            let chunks = Int(arena.element(node, 0))
            guard arena.memory.isInArena(chunks) else { return false }
            let (chunkFlags, chunkCount) = arena.header(chunks)
            guard chunkFlags & 0x1F == 6, chunkCount == count &- 1 else { return false }
            let values = UnsafeMutablePointer<Int32>(OpaquePointer(arena.payload(chunks)))
            let chunk = bytes.chunk(offset)
            let position = SearchIndex.lowerBound(values, chunkCount, chunk, span)
            if flags & 0x80 != 0 {
                // A chunk behind the last one changes the inner nodes above, too.
                if position == chunkCount { return false }
                span = SearchIndex.ChunkSpan(
                    above: position > 0 ? Int64(values[position &- 1]) : Int64(Int32.min) - 1, upTo: Int64(values[position]))
                node = Int(arena.element(node, position &+ 1))
                continue
            }
            if position < chunkCount && values[position] == chunk {
                let entry = arena.element(node, position &+ 1)
                guard entry & 1 == 0, arena.memory.isInArena(Int(entry)), arena.header(Int(entry)).flags & 0x20 != 0 else {
                    return false
                }
                node = Int(entry)
                offset &+= 4
                span = SearchIndex.ChunkSpan()
                continue
            }
            guard chunkCount < entryCountMax, 8 &+ (chunkCount &+ 1) &* 4 <= arena.capacity(chunks),
                8 &+ (count &+ 1) &* 8 <= arena.capacity(node)
            else { return false }
            let entries = UnsafeMutablePointer<Int64>(OpaquePointer(arena.payload(node))) + (position &+ 1)
            if position < chunkCount {
                memmove(values + (position &+ 1), values + position, (chunkCount &- position) &* 4)
                memmove(entries + 1, entries, (chunkCount &- position) &* 8)
            }
            values[position] = chunk
            entries.pointee = key.rawValue &<< 1 | 1
            arena.setHeader(chunks, flags: chunkFlags, count: chunkCount &+ 1)
            arena.setHeader(node, flags: flags, count: count &+ 1)
            return true
        }
        return false
    }
}
