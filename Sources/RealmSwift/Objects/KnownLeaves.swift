internal import SharedStore

/// The leaf of each column that was read last: checked once, then read without another look at where it is and what it is.
///
/// It holds for one stamp of its block and for one leaf of the cluster tree: while the stamp stays the same the session stays at
/// its version, of which nothing changes. In a write transaction leaves change and move without a new stamp, and a frozen session
/// is read by several threads at once: there none are kept, see `TableBlock.keepsLeaves`.
///
/// Belongs to its block, which frees it.
struct KnownLeaves {
    private struct Head: BitwiseCopyable {
        var stamp: UInt64 = 0
        /// The address of the cluster leaf's elements.
        var cluster: UnsafeRawPointer?
        var form = Form.none
    }

    /// What kind of leaf lies behind the head.
    enum Form: UInt8 { case none, int, nullableInt, bool, float, double, string, timestamp, link }

    private let base: UnsafeMutableRawPointer
    private static let headByteCount = 32
    /// A head and the largest leaf. A power of two, so that a slot is found by a shift.
    private static let byteCount = 256

    init(slotCount: Int) {
        base = .allocate(byteCount: slotCount * Self.byteCount, alignment: 64)
        for slot in 0..<slotCount { (base + slot * Self.byteCount).initializeMemory(as: Head.self, to: Head()) }
    }

    func free() { base.deallocate() }

    @inline(__always)
    subscript<L: KeptLeaf>(_ slot: Int, _ stamp: UInt64, _ cluster: Node?, _ type: L.Type) -> L? {
        let place = base + slot &* Self.byteCount
        let head = place.assumingMemoryBound(to: Head.self)
        if head.pointee.stamp != stamp || head.pointee.cluster != cluster?.payload || head.pointee.form != L.form { return nil }
        return (place + Self.headByteCount).assumingMemoryBound(to: L.self).pointee
    }

    /// Keeps a leaf in the place of the one that was there.
    @inline(__always)
    func keep<L: KeptLeaf>(_ leaf: L, _ slot: Int, _ stamp: UInt64, _ cluster: Node) {
        precondition(MemoryLayout<L>.size <= Self.byteCount - Self.headByteCount && MemoryLayout<Head>.size <= Self.headByteCount)
        let place = base + slot &* Self.byteCount
        (place + Self.headByteCount).initializeMemory(as: L.self, to: leaf)
        place.initializeMemory(as: Head.self, to: Head(stamp: stamp, cluster: cluster.payload, form: L.form))
    }
}

/// A leaf that can be kept: plain bytes.
protocol KeptLeaf: Leaf {
    static var form: KnownLeaves.Form { get }
    /// The leaf in `slot` of a cluster leaf: one call into the engine.
    static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> Self
}

extension IntLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .int }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> IntLeaf {
        try CellReading.intLeaf(memory, cluster, slot)
    }
}

extension NullableIntLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .nullableInt }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> NullableIntLeaf {
        try CellReading.nullableIntLeaf(memory, cluster, slot)
    }
}

extension BoolLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .bool }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> BoolLeaf {
        try CellReading.boolLeaf(memory, cluster, slot)
    }
}

extension FloatLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .float }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> FloatLeaf {
        try CellReading.floatLeaf(memory, cluster, slot)
    }
}

extension DoubleLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .double }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> DoubleLeaf {
        try CellReading.doubleLeaf(memory, cluster, slot)
    }
}

extension StringLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .string }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> StringLeaf {
        try CellReading.stringLeaf(memory, cluster, slot)
    }
}

extension TimestampLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .timestamp }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> TimestampLeaf {
        try CellReading.timestampLeaf(memory, cluster, slot)
    }
}

extension LinkLeaf: KeptLeaf {
    @inline(__always) static var form: KnownLeaves.Form { .link }
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> LinkLeaf {
        try CellReading.linkLeaf(memory, cluster, slot)
    }
}
