/// String, nullable or not, in any of its three variants (file-format-1 6.1 to 6.4).
///
/// ```
/// short        width type 1, blocks of W = 0, 1, 2, 4 ... 64 bytes: characters, zeros, and in the last byte the number p of zeros
///              before it; p = W is null; with W = 0 every value is null
/// small, big   see `Blobs.swift`
/// ```
/// In the arrays of names of tables and columns null and "" are the same; there read `value(i) ?? ""`.
/// Lengths are explicit, a string may contain zero bytes. Bytes that are no UTF-8 are read with U+FFFD in their place.
public struct StringLeaf: Leaf {
    enum Variant: UInt8 { case short, small, big }

    public let count: Int
    let variant: Variant
    /// Blocks, parts or refs.
    let node: Node
    /// The parts of the variant small.
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
        case 0x08, 0x28:
            variant = .short
            count = node.count
            small = SmallBlobs(unused: node)
        case 0x40:
            variant = .small
            small = try SmallBlobs(memory, node)
            count = small.count
        case 0x60:
            variant = .big
            count = node.count
            small = SmallBlobs(unused: node)
        default:
            throw node.kindError("string leaf", "short strings, small blobs or big blobs")
        }
    }

    /// The UTF-8 bytes of value `index`, nil for null; valid as long as the version. Throws on a string of several blobs, which
    /// only `value` can read.
    @inline(__always)
    public func bytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        try check(index, ref)
        switch variant {
        case .short:
            return try shortBytes(index)
        case .small:
            return small.isNull(index) ? nil : try withoutTerminator(small.stored(index), index)
        case .big:
            return try bigBytes(index)
        }
    }

    /// Cheaper than `value`: no string is made.
    @inline(__always)
    public func isNull(_ index: Int) throws -> Bool {
        try check(index, ref)
        switch variant {
        case .short:
            let width = node.width
            return width == 0 || Int(node.payload.load(fromByteOffset: (index &+ 1) &* width &- 1, as: UInt8.self)) == width
        case .small:
            return small.isNull(index)
        case .big:
            return node.unchecked(index) == 0
        }
    }

    /// Nil for null. Bytes that are no UTF-8 are replaced; `bytes` gives them as they are.
    public func value(_ index: Int) throws -> String? {
        if let joined = try splitBytes(index) { return String(decoding: joined, as: UTF8.self) }
        return try bytes(index).map(StringLeaf.string)
    }

    /// The bytes of value `index` if it is split over several blobs, nil otherwise. A split value has no terminating zero.
    @inline(__always)
    func splitBytes(_ index: Int) throws -> [UInt8]? {
        variant == .big ? try bigSplitBytes(index) : nil
    }

    /// A string of these bytes; what is no UTF-8 is replaced by U+FFFD.
    @inline(__always)
    static func string(_ bytes: UnsafeRawBufferPointer) -> String {
        if bytes.isEmpty { return "" }
        return String(unsafeUninitializedCapacity: bytes.count) { buffer in
            UnsafeMutableRawBufferPointer(buffer).copyMemory(from: bytes)
            return bytes.count
        }
    }

    @inline(__always)
    private func shortBytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        let width = node.width
        if width == 0 { return nil }
        let block = node.payload + index &* width
        let zeros = Int(block.load(fromByteOffset: width &- 1, as: UInt8.self))
        if zeros >= width {
            if zeros == width { return nil }
            throw zerosError(index, zeros, width)
        }
        return UnsafeRawBufferPointer(start: block, count: width &- 1 &- zeros)
    }

    private func bigBytes(_ index: Int) throws -> UnsafeRawBufferPointer? {
        let blob = try node.optionalRef(index)
        if blob == 0 { return nil }
        guard let stored = try Blob.bytes(memory, blob) else { throw splitError(index) }
        return try withoutTerminator(stored, index)
    }

    private func bigSplitBytes(_ index: Int) throws -> [UInt8]? {
        try check(index, ref)
        let blob = try node.optionalRef(index)
        if try blob == 0 || Blob.bytes(memory, blob) != nil { return nil }
        return try Blob.joined(memory, blob)
    }

    @inline(__always)
    private func withoutTerminator(_ stored: UnsafeRawBufferPointer, _ index: Int) throws -> UnsafeRawBufferPointer {
        if stored.count == 0 { throw terminatorError(index) }
        return UnsafeRawBufferPointer(start: stored.baseAddress, count: stored.count &- 1)
    }

    @inline(never)
    private func zerosError(_ index: Int, _ zeros: Int, _ width: Int) -> FormatError {
        FormatError(ref: ref, "short string \(index) claims \(zeros) zeros in a block of \(width) bytes")
    }
    @inline(never)
    private func terminatorError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "string \(index) lacks its terminating zero byte")
    }
    @inline(never)
    private func splitError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "string \(index) is split over several blobs")
    }
}

/// String column that has been enumerated: a leaf of indexes into the key list of the column (file-format-1 6.6).
///
/// Null is a null entry of the key list. The list has no order and no two equal entries.
public struct EnumStringLeaf {
    /// Positions in the key list, one a row.
    public let node: Node
    /// The key list of the column.
    public let keys: StringLeaf

    /// - Parameter keys: the key list of the column; it is not checked that the leaf's numbers lie inside it.
    /// - Throws: `FormatError` where the node at `ref` is no array of integers.
    @inline(__always)
    public init(_ memory: Memory, _ ref: Int, keys: StringLeaf) throws {
        node = try memory.node(ref)
        try node.checkIntegers("leaf of an enumerated string column")
        self.keys = keys
    }

    /// Number of rows.
    @inline(__always) public var count: Int { node.count }

    /// The position of value `index` in the key list, which may be out of the list's bounds in a damaged file.
    @inline(__always)
    public func keyIndex(_ index: Int) throws -> Int { Int(truncatingIfNeeded: try node.integer(index)) }

    /// The UTF-8 bytes of value `index`, nil for null.
    @inline(__always)
    public func bytes(_ index: Int) throws -> UnsafeRawBufferPointer? { try keys.bytes(keyIndex(index)) }

    /// Nil for null.
    ///
    /// - Throws: `FormatError` where there is no such row, or the row's number is none of the key list.
    public func value(_ index: Int) throws -> String? { try keys.value(keyIndex(index)) }
}
