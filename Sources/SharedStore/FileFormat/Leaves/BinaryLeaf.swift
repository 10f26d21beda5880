/// Binary, nullable or not: small blobs or big blobs (file-format-1 6.1, 6.3, 6.4); the values have no terminating zero.
public struct BinaryLeaf: Leaf {
    enum Storage {
        case small(SmallBlobs)
        case big(Memory, Node)
    }

    public let ref: Int
    public let count: Int
    let storage: Storage

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        let node = try memory.node(ref)
        self.ref = ref
        switch node.flags & 0xF8 {
        case 0x40:
            let small = try SmallBlobs(memory, node)
            count = small.count
            storage = .small(small)
        case 0x60:
            count = node.count
            storage = .big(memory, node)
        default:
            throw node.kindError("binary leaf", "small blobs or big blobs")
        }
    }

    /// The bytes of value `index`, nil for null; valid as long as the version. Throws on a value of several blobs (over 16,777,200 bytes),
    /// which `value` and `withChunks` can read.
    @inline(__always)
    public func bytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        try check(index, ref)
        switch storage {
        case .small(let small):
            return small.isNull(index) ? nil : try small.stored(index)
        case .big(let memory, let node):
            let blob = try node.optionalRef(index)
            if blob == 0 { return nil }
            guard let stored = try Blob.bytes(memory, blob) else { throw splitError(index) }
            return stored
        }
    }

    @inline(__always)
    public func isNull(_ index: Int) throws -> Bool {
        try check(index, ref)
        switch storage {
        case .small(let small): return small.isNull(index)
        case .big(_, let node): return node.unchecked(index) == 0
        }
    }

    public func value(_ index: Int) throws -> [UInt8]? {
        if try isNull(index) { return nil }
        if case .big(let memory, let node) = storage { return try Blob.joined(memory, node.requiredRef(index)) }
        return try bytes(index).map { [UInt8]($0) }
    }

    /// Number of bytes of value `index`, 0 for null.
    public func byteCount(_ index: Int) throws -> Int {
        if try isNull(index) { return 0 }
        if case .big(let memory, let node) = storage { return try Blob.byteCount(memory, node.requiredRef(index)) }
        return try bytes(index)?.count ?? 0
    }

    /// Calls `body` with the parts of value `index` in order: none for null, one unless the value is split. They are valid as long as the
    /// version, not only during the call.
    public func withChunks(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        if try isNull(index) { return }
        if case .big(let memory, let node) = storage { return try Blob.forEachPart(memory, node.requiredRef(index), body) }
        if let bytes = try bytes(index) { try body(bytes) }
    }

    @inline(never)
    private func splitError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "value \(index) is split over several blobs")
    }
}
