internal import SharedStore

/// The leaf of a column that was read last: checked once, then read without another look at where it is and what it is.
///
/// It holds for one stamp of its block and for one leaf of the cluster tree: while the stamp stays the same the session stays at its version, of which
/// nothing changes. In a write transaction leaves change and move without a new stamp, and a frozen session is read by several threads at
/// once: there none are kept, see `TableBlock.keepsLeaves`.
struct KnownLeaf {
    var stamp: UInt64 = 0
    /// The address of the cluster leaf's elements.
    var cluster: UnsafeRawPointer?
    var reader = Reader.none

    enum Reader {
        case none
        case int(IntLeaf)
        case nullableInt(NullableIntLeaf)
        case bool(BoolLeaf)
        case float(FloatLeaf)
        case double(DoubleLeaf)
        case string(StringLeaf)
        case timestamp(TimestampLeaf)
        case link(LinkLeaf)
    }
}

/// A leaf that can be kept.
protocol KeptLeaf: Leaf {
    /// The leaf in `slot` of a cluster leaf: one call into the engine.
    static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> Self
    /// Nil where it is of another kind.
    static func of(_ reader: KnownLeaf.Reader) -> Self?
    var reader: KnownLeaf.Reader { get }
}

extension IntLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> IntLeaf { try CellReading.intLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> IntLeaf? { if case .int(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .int(self) }
}

extension NullableIntLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> NullableIntLeaf { try CellReading.nullableIntLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> NullableIntLeaf? { if case .nullableInt(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .nullableInt(self) }
}

extension BoolLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> BoolLeaf { try CellReading.boolLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> BoolLeaf? { if case .bool(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .bool(self) }
}

extension FloatLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> FloatLeaf { try CellReading.floatLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> FloatLeaf? { if case .float(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .float(self) }
}

extension DoubleLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> DoubleLeaf { try CellReading.doubleLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> DoubleLeaf? { if case .double(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .double(self) }
}

extension StringLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> StringLeaf { try CellReading.stringLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> StringLeaf? { if case .string(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .string(self) }
}

extension TimestampLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> TimestampLeaf { try CellReading.timestampLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> TimestampLeaf? { if case .timestamp(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .timestamp(self) }
}

extension LinkLeaf: KeptLeaf {
    @inline(__always) static func open(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> LinkLeaf { try CellReading.linkLeaf(memory, cluster, slot) }
    @inline(__always) static func of(_ reader: KnownLeaf.Reader) -> LinkLeaf? { if case .link(let leaf) = reader { leaf } else { nil } }
    var reader: KnownLeaf.Reader { .link(self) }
}
