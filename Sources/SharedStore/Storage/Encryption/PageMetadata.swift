import SystemCalls

/// The metadata pages of an encrypted file that were read, by block: each one is good for the generation in which it was read.
///
/// Not thread-safe: it belongs to whoever holds the lock of the pages.
struct PageMetadata {
    private struct Block: BitwiseCopyable {
        var bytes: UnsafeMutableRawPointer?
        var generation: UInt32
    }
    private let blocks = RawList<Block>()

    func free() {
        for i in 0..<blocks.count { blocks[i].bytes?.deallocate() }
        blocks.free()
    }

    /// The metadata of a block as it was read in this generation; nil where it was not.
    @inline(__always)
    func known(_ block: Int, _ generation: UInt32) -> UnsafeMutableRawPointer? {
        block < blocks.count && blocks[block].generation == generation ? blocks[block].bytes : nil
    }

    /// Room for the metadata of a block, which counts as read in this generation.
    func room(_ block: Int, _ generation: UInt32) -> UnsafeMutableRawPointer {
        while blocks.count <= block { blocks.append(Block(bytes: nil, generation: 0)) }
        let bytes = blocks[block].bytes ?? .allocate(byteCount: PageGeometry.pageByteCount, alignment: 16)
        blocks[block] = Block(bytes: bytes, generation: generation)
        return bytes
    }

    /// Whether a file begins like an encrypted one: with a metadata page whose counters follow each other (file-format-3 8.3,
    /// 8.4).
    static func beginsFile(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress, bytes.count >= PageGeometry.smallestFileSize,
            bytes.count % PageGeometry.pageByteCount == 0
        else { return false }
        var used = 0
        for i in 0..<PageGeometry.pagesPerBlock {
            let entry = PageEntry(start + i * PageGeometry.entryByteCount)
            if entry == PageEntry() { continue }
            let next = PageEntry.counter(after: entry.previous.iv)
            if entry.current.iv == 0 { return false }
            let isFirst = entry.previous == PageEntry.Seal()
            if !isFirst && entry.current.iv != next && entry.current.iv != PageEntry.counter(after: next) { return false }
            if i == 0 || !isFirst || entry.current.iv < 1 << 16 { used += 1 }
        }
        return used > 0 && PageEntry(start).current.iv != 0
    }

    /// What is known of the block is not to be trusted any more.
    func forget(_ block: Int) {
        if block < blocks.count { blocks[block].generation = 0 }
    }
}
