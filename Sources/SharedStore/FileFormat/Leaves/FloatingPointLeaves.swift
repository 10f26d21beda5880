/// Float, nullable or not: blocks of 4 bytes, IEEE 754, little-endian; null is one quiet NaN (file-format-1 5.4).
@frozen public struct FloatLeaf: Leaf {
    /// The bit pattern that stands for null; every other NaN is a value.
    public static let nullPattern: UInt32 = 0x7FC0_00AA
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkBlocks("float leaf")
        if node.count > 0 && node.width != 4 { throw node.kindError("float leaf", "an array of blocks of 4 bytes") }
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// Nil for null, which is one NaN of many.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Float? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Float? {
        let pattern = bits(index)
        return pattern == FloatLeaf.nullPattern ? nil : Float(bitPattern: pattern)
    }

    /// The bit pattern of value `index`, `nullPattern` for null; the index is trusted.
    @inlinable @inline(__always)
    public func bits(_ index: Int) -> UInt32 { node.payload.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self) }
}

/// Double, nullable or not: blocks of 8 bytes, IEEE 754, little-endian; null is one quiet NaN (file-format-1 5.4).
@frozen public struct DoubleLeaf: Leaf {
    /// The bit pattern that stands for null; every other NaN is a value.
    public static let nullPattern: UInt64 = 0x7FF8_0000_0000_00AA
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkBlocks("double leaf")
        if node.count > 0 && node.width != 8 { throw node.kindError("double leaf", "an array of blocks of 8 bytes") }
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// Nil for null, which is one NaN of many.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Double? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Double? {
        let pattern = bits(index)
        return pattern == DoubleLeaf.nullPattern ? nil : Double(bitPattern: pattern)
    }

    /// The bit pattern of value `index`, `nullPattern` for null; the index is trusted.
    @inlinable @inline(__always)
    public func bits(_ index: Int) -> UInt64 { node.payload.loadUnaligned(fromByteOffset: index &* 8, as: UInt64.self) }
}
