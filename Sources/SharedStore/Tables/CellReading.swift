/// The leaf of a column in a cluster leaf, where the column is known to be of the right kind: what the object layer does most.
///
/// Each is one call into this module, within which everything is inlined; that needs the leaf's type to be spelled out, a generic
/// function is specialised too late. `slot` is the column's position in the cluster leaf: its leaf index + 1. A leaf of another
/// kind throws `FormatError`, as everywhere.
public enum CellReading {
    /// Integers that cannot be null.
    @inline(never)
    public static func intLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> IntLeaf {
        try IntLeaf(memory, cluster.requiredRef(slot))
    }
    /// Integers with null.
    @inline(never)
    public static func nullableIntLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> NullableIntLeaf {
        try NullableIntLeaf(memory, cluster.requiredRef(slot))
    }
    /// Truth values, with or without null.
    @inline(never)
    public static func boolLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> BoolLeaf {
        try BoolLeaf(memory, cluster.requiredRef(slot))
    }
    /// Numbers of 32 bits, with or without null.
    @inline(never)
    public static func floatLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> FloatLeaf {
        try FloatLeaf(memory, cluster.requiredRef(slot))
    }
    /// Numbers of 64 bits, with or without null.
    @inline(never)
    public static func doubleLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> DoubleLeaf {
        try DoubleLeaf(memory, cluster.requiredRef(slot))
    }
    /// Strings, with or without null; not of an enumerated column, whose leaf has another form.
    @inline(never)
    public static func stringLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> StringLeaf {
        try StringLeaf(memory, cluster.requiredRef(slot))
    }
    /// Points in time, with or without null.
    @inline(never)
    public static func timestampLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> TimestampLeaf {
        try TimestampLeaf(memory, cluster.requiredRef(slot))
    }
    /// Links to one object.
    @inline(never)
    public static func linkLeaf(_ memory: Memory, _ cluster: Node, _ slot: Int) throws -> LinkLeaf {
        try LinkLeaf(memory, cluster.requiredRef(slot))
    }
}
