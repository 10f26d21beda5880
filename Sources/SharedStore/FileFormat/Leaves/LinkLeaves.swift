/// Link column in a cluster: a plain integer array of object keys + 1; 0 is null (file-format-1 8.1).
@frozen public struct LinkLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkIntegers("link leaf")
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// `ObjectKey.null` for null; keys of -2 and below are unresolved.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> ObjectKey {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> ObjectKey { ObjectKey(node.unchecked(index) &- 1) }
}

/// List or set of links: a plain integer array of object keys as they are (file-format-1 8.1).
@frozen public struct KeyLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkIntegers("leaf of object keys")
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// The keys as they are stored; an unresolved link keeps its key of -2 and below.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> ObjectKey {
        try check(index, node.ref)
        return unchecked(index)
    }

    /// Value `index`; the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> ObjectKey { ObjectKey(node.unchecked(index)) }
}

/// A link that names its table.
@frozen public struct TypedLink: Hashable, Sendable {
    public var table: TableKey
    /// -2 and below where the link is unresolved.
    public var object: ObjectKey
    /// Neither key is checked against a file.
    @inlinable public init(_ table: TableKey, _ object: ObjectKey) {
        self.table = table
        self.object = object
    }
}

/// Typed links: a plain integer array with two elements a value, table key + 1 in 31 bits and object key + 1; both 0 for
/// null (file-format-1 8.2).
@frozen public struct TypedLinkLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkIntegers("typed-link leaf")
        if node.count & 1 != 0 { throw node.kindError("typed-link leaf", "an array of pairs") }
    }

    @inlinable @inline(__always) public var count: Int { node.count >> 1 }

    /// Nil for null. The table need not exist in a damaged file.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> TypedLink? {
        try check(index, node.ref)
        let table = node.unchecked(index &* 2), object = node.unchecked(index &* 2 &+ 1)
        if table == 0 && object == 0 { return nil }
        return TypedLink(TableKey(UInt32(truncatingIfNeeded: table &- 1) & 0x7FFF_FFFF), ObjectKey(object &- 1))
    }
}

/// An array of refs, one a row: the roots of collections, 0 for one that was never created (file-format-1 8.4).
@frozen public struct RefLeaf: Leaf {
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        node = try memory.node(ref)
        try node.checkRefs("ref leaf")
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// The ref of row `index`, 0 for none. Throws on an element that is no ref.
    @inlinable @inline(__always)
    public func value(_ index: Int) throws -> Int {
        try check(index, node.ref)
        return try node.optionalRef(index)
    }
}

/// The objects that link to each row, from one column of one table (file-format-1 8.3).
///
/// ```
/// array of refs, an element a row:  0 none   odd: one origin key, element >> 1   else: ref of a B+ tree of two or more origin keys
/// ```
/// A key stands once for every link; the order means nothing.
@frozen public struct BacklinkLeaf: Leaf {
    public let memory: Memory
    public let node: Node

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        self.memory = memory
        node = try memory.node(ref)
        try node.checkRefs("backlink leaf")
    }

    @inlinable @inline(__always) public var count: Int { node.count }

    /// The origin keys of row `index`.
    public func value(_ index: Int) throws -> [ObjectKey] { try keys(index) }

    /// The origin keys of row `index`.
    public func keys(_ index: Int) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try forEachKey(index) { keys.append($0) }
        return keys
    }

    /// Number of links to row `index`.
    public func keyCount(_ index: Int) throws -> Int {
        try check(index, node.ref)
        let element = node.unchecked(index)
        if element == 0 { return 0 }
        if element & 1 != 0 { return 1 }
        return try BPlusTree<KeyLeaf>(memory, node.requiredRef(index), isOfBacklinks: true).count
    }

    /// Calls `body` with every origin key of row `index`.
    @inline(__always)
    public func forEachKey(_ index: Int, _ body: (ObjectKey) throws -> Void) throws {
        try check(index, node.ref)
        let element = node.unchecked(index)
        if element == 0 { return }
        if element & 1 != 0 { return try body(ObjectKey(Int64(bitPattern: UInt64(bitPattern: element) >> 1))) }
        try BPlusTree<KeyLeaf>(memory, node.requiredRef(index), isOfBacklinks: true).forEachLeaf { leaf, _ in
            try leaf.forEach(body)
        }
    }
}
