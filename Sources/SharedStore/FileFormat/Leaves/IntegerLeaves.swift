/// Int, not nullable: a plain integer array, element i is value i (file-format-1 5.1).
@frozen public struct IntLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        try self.init(memory.node(ref))
    }

    @inline(__always)
    init(_ node: Node) throws {
        try node.checkIntegers("integer leaf")
        self.node = node
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Int64 {
        try check(index, node.ref)
        return node.unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Int64 { node.unchecked(index) }
}

/// Int, nullable: element 0 is the sentinel, value i is element i + 1 and null if equal to the sentinel (file-format-1 5.2).
@frozen public struct NullableIntLeaf: Leaf {
    public let node: Node
    /// The element value that stands for null.
    public let sentinel: Int64

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        let node = try memory.node(ref)
        try node.checkIntegers("nullable integer leaf")
        if node.count == 0 { throw FormatError(ref: ref, "nullable integer leaf has no sentinel") }
        self.node = node
        sentinel = node.unchecked(0)
    }

    @inlinable @inline(__always) public var count: Int { node.count &- 1 }

    /// Nil where the stored number is the sentinel.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Int64? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Int64? {
        let v = node.unchecked(index &+ 1)
        return v == sentinel ? nil : v
    }

    /// The stored element of value `index`, equal to `sentinel` for null; the index is trusted.
    @inline(__always)
    public func element(_ index: Int) -> Int64 { node.unchecked(index &+ 1) }
}

/// Bool, nullable or not: a plain integer array of 0 false, 1 true, 3 null (file-format-1 5.3). Any other value reads as true.
@frozen public struct BoolLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkIntegers("bool leaf")
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// Nil for null, which is stored as 3.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Bool? {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Bool? {
        let v = node.unchecked(index)
        return v == 3 ? nil : v != 0
    }
}
