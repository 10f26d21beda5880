/// A piece of the file: `[position, position + length)`.
struct Block: BitwiseCopyable {
    var position: Int
    var length: Int
    @inline(__always) var end: Int { position &+ length }
}

/// A free block that some pinned version may still use.
struct LockedBlock: BitwiseCopyable {
    var position: Int
    var length: Int
    /// The version whose commit released it.
    var version: UInt64
    /// The pinned version in which it was found in use; 0 where nobody has looked. See `FreeSpace+Backdating`.
    var usedIn: UInt64
    @inline(__always) var end: Int { position &+ length }
}

/// The free list of one version, as it stands in slots 3, 4 and 5 of the top array (file-format-3 2.1).
///
/// ```
/// slot 3: positions   slot 4: lengths   slot 5: versions; three integer arrays of equal length n
/// ```
/// Invariants, checked when it is read: positions ascend, blocks do not overlap and lie in `[24, logical size)`, positions
/// and lengths are multiples of 8, versions are not negative. Blocks of length 0 are dropped. Neighbours may touch.
final class FreeList {
    let snapshot: Snapshot
    let blocks: RawList<LockedBlock>

    /// Reads the list of `snapshot`. Lists that are absent (top arrays of 3 elements, copies) are empty.
    init(_ memory: Memory, _ snapshot: Snapshot) throws {
        self.snapshot = snapshot
        blocks = RawList()
        // Where this throws, all properties are set, so `deinit` runs and frees the list.
        try FreeList.read(memory, snapshot, into: blocks)
    }

    deinit { blocks.free() }

    static func read(_ memory: Memory, _ snapshot: Snapshot, into blocks: RawList<LockedBlock>) throws {
        blocks.removeAll()
        if snapshot.topRef == 0 { return }
        let top = try memory.node(snapshot.topRef)
        let positionsRef = try top.optionalRef(TopSlot.freePositions), lengthsRef = try top.optionalRef(TopSlot.freeLengths)
        let versionsRef = try top.optionalRef(TopSlot.freeVersions)
        if positionsRef == 0 && lengthsRef == 0 && versionsRef == 0 { return }
        if positionsRef == 0 || lengthsRef == 0 { throw FormatError(ref: snapshot.topRef, "half of the free list is missing") }
        let positions = try integers(memory, positionsRef), lengths = try integers(memory, lengthsRef)
        // A top array without slot 5 is older than versions: all blocks are free for everybody.
        let versions = versionsRef == 0 ? nil : try integers(memory, versionsRef)
        let count = positions.count
        if lengths.count != count || versions.map({ $0.count != count }) ?? false {
            throw FormatError(
                ref: positionsRef,
                """
                free list with \(count) positions, \(lengths.count) lengths, \(versions?.count ?? count) versions
                """)
        }
        // Elements of width 0 have no bytes: nobody shall allocate by a count that cannot be true.
        if count > snapshot.logicalSize / 8 {
            throw FormatError(ref: positionsRef, "\(count) free blocks in \(snapshot.logicalSize) bytes")
        }
        blocks.resize(count)
        fill(blocks, positions) { $0.position = Int($1) }
        fill(blocks, lengths) { $0.length = Int($1) }
        for i in 0..<count { blocks.base[i].version = 0 }
        if let versions { fill(blocks, versions) { $0.version = UInt64(bitPattern: $1) } }
        try check(blocks, snapshot, positionsRef)
    }

    private static func integers(_ memory: Memory, _ ref: Int) throws -> Node {
        let node = try memory.node(ref)
        if node.hasRefs || node.widthType != 0 { throw FormatError(ref: ref, "free list array with flags \(node.flags)") }
        return node
    }

    @inline(__always)
    private static func fill(_ blocks: RawList<LockedBlock>, _ node: Node, _ store: (inout LockedBlock, Int64) -> Void) {
        let p = node.payload, n = node.count, out = blocks.base
        switch node.flags & 7 {
        case 6: for i in 0..<n { store(&out[i], Int64(p.loadUnaligned(fromByteOffset: 4 &* i, as: Int32.self))) }
        case 5: for i in 0..<n { store(&out[i], Int64(p.loadUnaligned(fromByteOffset: 2 &* i, as: Int16.self))) }
        default: for i in 0..<n { store(&out[i], node.unchecked(i)) }
        }
    }

    private static func check(_ blocks: RawList<LockedBlock>, _ snapshot: Snapshot, _ ref: Int) throws {
        let p = blocks.base, n = blocks.count
        var end = FileHeader.byteCount, kept = 0
        for i in 0..<n {
            let b = p[i]
            // One test for the usual case; lengths above the logical size cannot overflow the sum, since both are compared first.
            if (b.position | b.length) & 7 != 0 || b.position < end || b.length < 0 || b.position > snapshot.logicalSize
                || b.length > snapshot.logicalSize &- b.position || b.version > UInt64(Int64.max)
            {
                throw FormatError(
                    ref: ref,
                    """
                    block \(i) of the free list, \(b.length) bytes at \(b.position), is unaligned, out of order or outside the \
                    \(snapshot.logicalSize) bytes of the version
                    """)
            }
            end = b.position &+ b.length
            if b.length == 0 { continue }
            p[kept] = b
            p[kept].usedIn = 0
            kept &+= 1
        }
        blocks.resize(kept)
    }
}
