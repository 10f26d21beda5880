/// The working memory of one write transaction (file-format-3 section 1).
///
/// New nodes lie in the reserved span behind the file, at refs from `MemoryState.arenaStart` on; a node of the file is
/// never changed, it is copied here first. In an arena node bytes 0..2 of the header hold the capacity (header included)
/// divided by 8, big-endian, and byte 3 is 0; at commit they become `41 41 41 41`.
///
/// Invariants: `[arenaStart, arenaLimit)` is backed by writable memory; every block is a multiple of 8 bytes;
/// `released` holds disjoint extents of the file, none of which the running transaction may use.
public final class Arena {
    /// The handle through which both the file and the arena are read.
    public let memory: Memory
    /// Bytes of the span that may be handed out in all.
    private let end: Int
    /// Called before memory up to the given ref is used for the first time; makes it writable or throws.
    private let commit: (Int) throws -> Void
    /// Free blocks by capacity in units of 8 bytes, up to `recycledUnits`; larger ones are not reused. Each entry is the ref
    /// of the first block, 0 for none; bytes 8..15 of a block hold the ref of the next.
    private let recycled = RawList<Int>(capacity: recycledUnits + 1)
    /// The entries that are not 0, some of them more than once.
    private let recycledUsed = RawList<Int>()
    private static let recycledUnits = 4096
    /// A block must have room for the ref of the next free one.
    private static let capacityMin = 16
    /// File extents that this transaction no longer uses, in the order of release.
    let releasedBlocks = RawList<Block>(capacity: 64)
    /// The same as pairs of position and length.
    public var released: [(position: Int, length: Int)] { releasedBlocks.buffer.map { ($0.position, $0.length) } }
    /// Bytes handed out since the beginning.
    public var allocatedBytes: Int { counters.pointee.allocated }
    /// Capacities of the blocks that are in use: handed out and not released.
    public var liveBytes: Int { counters.pointee.live }
    private struct Counters {
        var allocated = 0
        var live = 0
    }
    private let counters: UnsafeMutablePointer<Counters>
    let movedLists = MovedLists()

    /// - Parameters:
    ///   - memory: its state says where the arena begins.
    ///   - end: the first byte that may not be handed out, from the start of the span.
    ///   - commit: makes the memory below a ref writable, or throws.
    public init(memory: Memory, end: Int, commit: @escaping (Int) throws -> Void) {
        self.memory = memory
        self.end = end
        self.commit = commit
        counters = .allocate(capacity: 1)
        counters.initialize(to: Counters())
        recycled.resize(Arena.recycledUnits + 1)
        for i in 0...Arena.recycledUnits { recycled[i] = 0 }
        memory.state.pointee.movedLists = Unmanaged.passUnretained(movedLists)
    }

    deinit {
        recycled.free()
        recycledUsed.free()
        releasedBlocks.free()
        counters.deallocate()
    }

    /// Largest node that can be placed in a file: it must not cross a section of 64 MiB (file-format-3 1.1).
    public static let nodeByteCountMax = (1 << 26) - 8

    /// A block of at least `byteCount` bytes (header included), its capacity stored in bytes 0..3. The rest is not cleared.
    public func allocate(_ byteCount: Int) throws -> Int {
        precondition(byteCount >= 8)
        if byteCount > Arena.nodeByteCountMax { throw LimitError.nodeTooLarge(byteCount: byteCount) }
        let size = max((byteCount &+ 7) & ~7, Arena.capacityMin)
        counters.pointee.allocated &+= size
        counters.pointee.live &+= size
        let units = size >> 3
        let ref: Int
        if units <= Arena.recycledUnits && recycled[units] != 0 {
            ref = recycled[units]
            recycled[units] = memory.state.pointee.base.loadUnaligned(fromByteOffset: ref &+ 8, as: Int.self)
        } else {
            ref = memory.state.pointee.arenaLimit
            if end - ref < size { throw LimitError.transactionTooLarge(byteCount: end - memory.state.pointee.arenaStart) }
            try commit(ref + size)
            memory.state.pointee.arenaLimit = ref + size
        }
        memory.state.pointee.base.storeBytes(of: UInt32(units).bigEndian >> 8, toByteOffset: ref, as: UInt32.self)
        return ref
    }

    /// Bytes of the arena block at `ref`, header included.
    @inline(__always) public func capacity(_ ref: Int) -> Int {
        Int((memory.state.pointee.base.loadUnaligned(fromByteOffset: ref, as: UInt32.self) << 8).bigEndian) << 3
    }

    /// Gives back one node (not its children): an arena block for reuse, a file node for the free list of the commit.
    public func release(_ ref: Int) throws {
        if memory.isInArena(ref) {
            let units = capacity(ref) >> 3
            assert(address(ref).load(fromByteOffset: 3, as: UInt8.self) == 0, "arena block \(ref) is released twice")
            counters.pointee.live &-= units << 3
            if units <= Arena.recycledUnits {
                address(ref).storeBytes(of: 1, toByteOffset: 3, as: UInt8.self)
                address(ref).storeBytes(of: recycled[units], toByteOffset: 8, as: Int.self)
                if recycled[units] == 0 { recycledUsed.append(units) }
                recycled[units] = ref
            }
        } else {
            releasedBlocks.append(Block(position: ref, length: try memory.node(ref).byteCount))
        }
    }

    /// Gives back the node at `ref` and all that it owns.
    public func releaseTree(_ ref: Int) throws {
        var pending = [ref]
        var fileBytes = 0
        while let next = pending.popLast() {
            let node = try memory.node(next)
            if node.hasRefs {
                try checkChildren(node)
                for i in 0..<node.count {
                    let v = node.unchecked(i)
                    if v != 0 && v & 1 == 0 { pending.append(Int(v)) }
                }
            }
            if !memory.isInArena(next) {
                fileBytes += node.byteCount
                // A tree is smaller than its file; a damaged one with a cycle is not.
                if fileBytes > memory.state.pointee.fileLimit { throw FormatError(ref: next, "node is reached more than once") }
            }
            try release(next)
        }
    }

    /// Checks that an array of refs is one, and that a node of the file owns nodes of the file only: a ref of a damaged
    /// file must not be taken for a block of the arena, which is changed in place. A node of the arena got its refs here.
    func checkChildren(_ node: Node) throws {
        if node.widthType != 0 { throw FormatError(ref: node.ref, "node with refs has width type \(node.widthType)") }
        if memory.isInArena(node.ref) { return }
        let limit = Int64(memory.state.pointee.fileLimit)
        for i in 0..<node.count {
            let v = node.unchecked(i)
            if v & 1 == 0 && (v < 0 || v >= limit) { throw FormatError(ref: node.ref, "element \(i) is \(v), outside the file") }
        }
    }

    /// The address of an arena block; the node at `ref` must have been allocated here.
    @inline(__always) public func address(_ ref: Int) -> UnsafeMutableRawPointer {
        assert(memory.isInArena(ref))
        return memory.state.pointee.base + ref
    }

    /// A copy of the node at `ref` that may be changed, with room for at least `byteCount` bytes; the old one is released.
    /// A node that is already in the arena with enough room is returned as it is.
    public func makeWritable(_ ref: Int, byteCount: Int = 0) throws -> Int {
        if memory.isInArena(ref) && capacity(ref) >= byteCount { return ref }
        let node = try memory.node(ref)
        if node.hasRefs { try checkChildren(node) }
        let used = node.byteCount
        let wanted = memory.isInArena(ref) ? max(byteCount, 2 * capacity(ref)) : max(byteCount, used) + 64
        let copy = try allocate(min(max(wanted, byteCount, used), max(Arena.nodeByteCountMax, byteCount, used)))
        (address(copy) + 4).copyMemory(from: node.payload - 4, byteCount: used - 4)
        try release(ref)
        return copy
    }

    /// Forgets everything: called when the transaction has been committed or rolled back.
    public func reset(fileLimit: Int, arenaStart: Int) {
        while let units = recycledUsed.popLast() { recycled[units] = 0 }
        releasedBlocks.removeAll()
        movedLists.removeAll()
        counters.pointee = Counters()
        memory.state.pointee.fileLimit = fileLimit
        memory.state.pointee.arenaStart = arenaStart
        memory.state.pointee.arenaLimit = arenaStart
    }
}

/// A limit of the format or of this machine was reached; nothing was changed.
public enum LimitError: Error, Equatable, Sendable, CustomStringConvertible {
    case nodeTooLarge(byteCount: Int)
    case transactionTooLarge(byteCount: Int)
    case valueTooLarge(byteCount: Int, limit: Int)

    public var description: String {
        switch self {
        case .nodeTooLarge(let n): "a node of \(n) bytes does not fit into a section of 64 MiB; store the value in smaller parts"
        case .transactionTooLarge(let n):
            "the transaction needs more than the \(n) bytes of address space reserved for it; commit more often"
        case .valueTooLarge(let n, let limit): "a value of \(n) bytes exceeds the limit of \(limit) bytes"
        }
    }
}
