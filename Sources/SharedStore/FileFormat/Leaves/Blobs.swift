/// Blobs, and the two leaf variants made of them that strings and binaries share (file-format-1 6.3 to 6.5).
///
/// ```
/// blob        no refs, width type 2: the count is in bytes
/// split blob  refs and context: elements are refs of blobs, the value is their concatenation; one level, no more
/// small blobs refs, no context, 3 elements: 0 end offsets (integers)   1 one blob   2 nulls (integers, 1 = null)
/// big blobs   refs and context: an element a value, the ref of a blob or of a split blob, 0 = null
/// ```
/// Invariants of small blobs: as many offsets as nulls; offsets do not decrease; the last one is the size of the blob. Strings
/// are stored with a terminating zero byte, which counts as part of the stored value, except in a split blob.
enum Blob {
    /// The bytes of the blob at `ref`, or nil if it is a split blob.
    @inline(__always)
    static func bytes(_ memory: Memory, _ ref: Int) throws -> UnsafeRawBufferPointer? {
        let node = try memory.node(ref)
        if node.flags & 0xF8 == 0x60 { return nil }
        return try bytes(node)
    }

    @inline(__always)
    static func bytes(_ node: Node) throws -> UnsafeRawBufferPointer {
        if node.flags & 0xD8 != 0x10 { throw node.kindError("blob", "an array of bytes") }
        return UnsafeRawBufferPointer(start: node.payload, count: node.count)
    }

    /// Calls `body` with the parts of the blob or split blob at `ref`, in order.
    static func forEachPart(_ memory: Memory, _ ref: Int, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let node = try memory.node(ref)
        guard node.flags & 0xF8 == 0x60 else { return try body(bytes(node)) }
        for i in 0..<node.count {
            try body(bytes(memory.node(node.requiredRef(i))))
        }
    }

    /// Number of bytes of the blob or split blob at `ref`. Throws where the parts claim more bytes than the version has, as parts
    /// that are named twice do.
    static func byteCount(_ memory: Memory, _ ref: Int) throws -> Int {
        var sum = 0
        try forEachPart(memory, ref) {
            sum &+= $0.count
            if sum > memory.readableByteCount {
                throw FormatError(ref: ref, "parts of a split blob claim more bytes than there are")
            }
        }
        return sum
    }

    /// The bytes of the blob or split blob at `ref`.
    static func joined(_ memory: Memory, _ ref: Int) throws -> [UInt8] {
        if let bytes = try bytes(memory, ref) { return [UInt8](bytes) }
        var joined: [UInt8] = []
        joined.reserveCapacity(try byteCount(memory, ref))
        try forEachPart(memory, ref) { joined.append(contentsOf: $0) }
        return joined
    }
}

/// The small-blobs variant, checked: what strings and binaries have in common. Indexes are trusted.
struct SmallBlobs {
    let ref: Int
    let count: Int
    let blob: UnsafeRawPointer
    let blobByteCount: Int
    let offsets: PackedIntegers
    let nulls: PackedIntegers

    /// In the place of the parts where a leaf is of another variant; never looked at.
    @inline(__always)
    init(unused node: Node) {
        ref = node.ref
        count = 0
        blob = node.payload
        blobByteCount = 0
        offsets = PackedIntegers(node)
        nulls = offsets
    }

    /// `node` is known to be an array of refs without context flag.
    @inline(__always)
    init(_ memory: Memory, _ node: Node) throws {
        if node.count != 3 { throw node.kindError("small-blobs leaf", "an array of 3 refs") }
        let offsets = try memory.node(node.requiredRef(0))
        try offsets.checkIntegers("offsets of a small-blobs leaf")
        let blob = try Blob.bytes(memory.node(node.requiredRef(1)))
        let nulls = try memory.node(node.requiredRef(2))
        try nulls.checkIntegers("nulls of a small-blobs leaf")
        if offsets.count != nulls.count {
            throw FormatError(ref: node.ref, "small-blobs leaf has \(offsets.count) offsets and \(nulls.count) nulls")
        }
        ref = node.ref
        count = offsets.count
        self.blob = blob.baseAddress ?? node.payload  // an address is always there: a node has a payload address even if empty
        blobByteCount = blob.count
        self.offsets = PackedIntegers(offsets)
        self.nulls = PackedIntegers(nulls)
    }

    /// Arrays of width 0, where nothing is null, are the rule.
    @inline(__always)
    func isNull(_ index: Int) -> Bool { nulls.widthCode != 0 && nulls[index] != 0 }

    /// The stored bytes of value `index`, the terminating zero of a string included.
    @inline(__always)
    func stored(_ index: Int) throws -> UnsafeRawBufferPointer {
        let (start, end) = offsets.span(index)
        if start < 0 || start > end || end > Int64(blobByteCount) { throw offsetError(index, start, end) }
        return UnsafeRawBufferPointer(start: blob + Int(start), count: Int(end &- start))
    }

    @inline(never)
    private func offsetError(_ index: Int, _ start: Int64, _ end: Int64) -> FormatError {
        FormatError(ref: ref, "value \(index) of a small-blobs leaf runs from \(start) to \(end) of \(blobByteCount) bytes")
    }
}
