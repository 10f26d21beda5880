/// The layout of ObjectId and UUID leaves: values of k bytes in blocks of 8 (file-format-1 5.8).
///
/// ```
/// width type 1, width 1, the count is in bytes
/// block = [null bits: bit j for value j][value 0]...[value 7]      1 + 8k bytes; the last block ends after its last value
/// ```
/// Invariant: `count = bytesFor(values)`. The bytes of a null value, and null bits at and beyond the number of values, mean
/// nothing.
enum FixedBytes {
    @inline(__always)
    static func byteCount(_ values: Int, _ k: Int) -> Int { values &* k &+ (values &+ 7) >> 3 }

    /// Checks the node and returns its number of values.
    @inline(__always)
    static func valueCount(_ node: Node, _ k: Int, _ purpose: StaticString) throws -> Int {
        try node.checkBlocks(purpose)
        let size = node.count
        if size == 0 { return 0 }
        let block = 8 &* k &+ 1
        let values = (size &- (size &+ block &- 1) / block) / k
        if node.width != 1 || byteCount(values, k) != size { throw node.kindError(purpose, "whole values and null bytes") }
        return values
    }

    @inline(__always)
    static func isNull(_ payload: UnsafeRawPointer, _ index: Int, _ k: Int) -> Bool {
        let bits = payload.load(fromByteOffset: (index >> 3) &* (8 &* k &+ 1), as: UInt8.self)
        return bits >> UInt8(truncatingIfNeeded: index & 7) & 1 != 0
    }

    @inline(__always)
    static func address(_ payload: UnsafeRawPointer, _ index: Int, _ k: Int) -> UnsafeRawPointer {
        payload + ((index >> 3) &* (8 &* k &+ 1) &+ 1 &+ (index & 7) &* k)
    }
}

/// ObjectId, nullable or not: values of 12 bytes (file-format-1 5.8).
@frozen public struct ObjectIdLeaf: Leaf {
    public let node: Node
    public let count: Int

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        count = try FixedBytes.valueCount(node, 12, "ObjectId leaf")
    }

    @inline(__always)
    public func value(_ index: Int) throws -> ObjectIdValue? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inline(__always)
    public func unchecked(_ index: Int) -> ObjectIdValue? {
        FixedBytes.isNull(node.payload, index, 12) ? nil : ObjectIdValue(FixedBytes.address(node.payload, index, 12))
    }
}

/// UUID, nullable or not: values of 16 bytes (file-format-1 5.8).
@frozen public struct UUIDLeaf: Leaf {
    public let node: Node
    public let count: Int

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        count = try FixedBytes.valueCount(node, 16, "UUID leaf")
    }

    @inline(__always)
    public func value(_ index: Int) throws -> UUIDValue? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inline(__always)
    public func unchecked(_ index: Int) -> UUIDValue? {
        FixedBytes.isNull(node.payload, index, 16) ? nil : UUIDValue(FixedBytes.address(node.payload, index, 16))
    }
}
