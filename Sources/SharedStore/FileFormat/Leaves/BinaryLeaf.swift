/// Binary, nullable or not: small blobs or big blobs (file-format-1 6.1, 6.3, 6.4); the values have no terminating zero.
public struct BinaryLeaf: Leaf {
    public let count: Int
    /// True where every value is a blob of its own.
    let isBig: Bool
    /// Parts or refs.
    let node: Node
    /// The parts of the small variant.
    let small: SmallBlobs
    let memory: Memory

    /// Of the leaf's root, for errors.
    @inline(__always) public var ref: Int { node.ref }

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        let node = try memory.node(ref)
        self.node = node
        self.memory = memory
        switch node.flags & 0xF8 {
        case 0x40:
            isBig = false
            small = try SmallBlobs(memory, node)
            count = small.count
        case 0x60:
            isBig = true
            small = SmallBlobs(unused: node)
            count = node.count
        default:
            throw node.kindError("binary leaf", "small blobs or big blobs")
        }
    }

    /// The bytes of value `index`, nil for null; valid as long as the version. Throws on a value of several blobs (over
    /// 16,777,200 bytes), which `value` and `withChunks` can read.
    @inline(__always)
    public func bytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        try check(index, ref)
        if isBig { return try bigBytes(index) }
        return small.isNull(index) ? nil : try small.stored(index)
    }

    /// Cheaper than `value`: the bytes are not copied.
    @inline(__always)
    public func isNull(_ index: Int) throws -> Bool {
        try check(index, ref)
        return isBig ? node.unchecked(index) == 0 : small.isNull(index)
    }

    /// A copy of the bytes; nil for null. A value in parts is put together.
    public func value(_ index: Int) throws -> [UInt8]? {
        if try isNull(index) { return nil }
        return isBig ? try Blob.joined(memory, node.requiredRef(index)) : [UInt8](try small.stored(index))
    }

    /// Number of bytes of value `index`, 0 for null.
    public func byteCount(_ index: Int) throws -> Int {
        if try isNull(index) { return 0 }
        return isBig ? try Blob.byteCount(memory, node.requiredRef(index)) : try small.stored(index).count
    }

    /// Calls `body` with the parts of value `index` in order: none for null, one unless the value is split. They are valid as
    /// long as the version, not only during the call.
    public func withChunks(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        if try isNull(index) { return }
        if isBig { return try Blob.forEachPart(memory, node.requiredRef(index), body) }
        try body(small.stored(index))
    }

    private func bigBytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        let blob = try node.optionalRef(index)
        if blob == 0 { return nil }
        guard let stored = try Blob.bytes(memory, blob) else { throw splitError(index) }
        return stored
    }

    @inline(never)
    private func splitError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "value \(index) is split over several blobs")
    }
}
