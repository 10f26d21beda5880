/// How nodes are changed: the rules that all editors of this folder share.
///
/// An editor takes the ref of a node, changes the node or what it owns, and returns the ref under which it is found from
/// now on; the caller stores that in the parent. A node of the file is copied into the arena first and its extent is
/// released; a node that is in the arena already is changed in place, and moves only when its block becomes too small.
///
/// Invariants
/// - Only arena blocks are written to. `8 + payload` of an arena node never exceeds its capacity.
/// - A ref that is edited comes from a node of the arena, or was checked against the file: `Arena.makeWritable` checks
///   the refs of each node that it copies, so whoever edits from the top of a tree downwards, making each node writable
///   before reading the ref of the next one, never takes a ref of a damaged file for a block of the arena.
/// - In the arena, arrays of refs that are edited often have 64 bits an element, so that storing a ref never moves them;
///   a commit writes them anew at their smallest width (file-format-1 2.6).
/// - Pad bytes and unused bits of the last byte are unspecified in the arena.
///
/// Errors: `FormatError` where the file is damaged, `LimitError` where something became too large. Either may leave a
/// tree half changed when it is thrown from the middle of an edit; the transaction can then only be rolled back.
extension Arena {
    /// Largest number that the header's count can hold (file-format-1 2.3).
    static let elementCountMax = 0xFF_FFFF
    /// Capacity of a new node, so that the first few insertions do not move it (file-format-1 2.4).
    static let initialCapacity = 128

    /// Flags and count of a node of the arena.
    @inline(__always)
    func header(_ ref: Int) -> (flags: UInt8, count: Int) {
        let word = address(ref).load(fromByteOffset: 4, as: UInt32.self).byteSwapped
        return (UInt8(truncatingIfNeeded: word >> 24), Int(word & 0xFF_FFFF))
    }

    /// Stores flags and count of a node of the arena.
    @inline(__always)
    func setHeader(_ ref: Int, flags: UInt8, count: Int) {
        assert(UInt(bitPattern: count) <= UInt(bitPattern: Arena.elementCountMax))
        let word = UInt32(flags) << 24 | UInt32(truncatingIfNeeded: count)
        address(ref).storeBytes(of: word.byteSwapped, toByteOffset: 4, as: UInt32.self)
    }

    /// The payload of a node of the arena.
    @inline(__always) func payload(_ ref: Int) -> UnsafeMutableRawPointer { address(ref) + 8 }

    /// A new node with the given header and room for `payloadByteCount` bytes at least; the payload is not cleared.
    func makeNode(flags: UInt8, count: Int, payloadByteCount: Int) throws -> Int {
        if count > Arena.elementCountMax { throw LimitError.nodeTooLarge(byteCount: 8 + payloadByteCount) }
        let ref = try allocate(max(8 + payloadByteCount, Arena.initialCapacity))
        setHeader(ref, flags: flags, count: count)
        return ref
    }

    /// The node at `ref`, after checking that its width is in bits; so element access by index is safe.
    @inline(__always)
    func integerNode(_ ref: Int) throws -> Node {
        let node = try memory.node(ref)
        if node.flags & 0x18 != 0 { throw notAnIntegerArray(node) }
        return node
    }

    @inline(never)
    func notAnIntegerArray(_ node: Node) -> FormatError {
        FormatError(ref: node.ref, "array of integers or refs has width type \(node.widthType)")
    }

    @inline(never)
    func indexOutside(_ ref: Int, _ index: Int, _ count: Int) -> FormatError {
        FormatError(ref: ref, "index \(index) is outside the \(count) elements of the node")
    }

    /// Sets or clears the context flag of a node and returns its new ref.
    func setContextFlag(_ ref: Int, _ flag: Bool) throws -> Int {
        if try memory.node(ref).hasContext == flag { return ref }
        let ref = try makeWritable(ref)
        let (flags, count) = header(ref)
        setHeader(ref, flags: flag ? flags | 0x20 : flags & ~0x20, count: count)
        return ref
    }
}
