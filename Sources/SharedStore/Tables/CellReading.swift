/// Single values of rows whose column is known to be of the right kind: what the object layer does most.
///
/// Each is one call into this module, within which everything is inlined. `slot` is the column's position in the cluster leaf: its leaf index + 1.
/// A leaf of another kind throws `FormatError`, as everywhere.
public enum CellReading {
    @inline(__always)
    private static func leaf<L: Leaf>(_ type: L.Type, _ memory: Memory, _ cluster: Node, _ slot: Int) throws -> L {
        try L(memory, cluster.requiredRef(slot))
    }

    @inline(never)
    public static func int(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Int64 {
        try leaf(IntLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func optionalInt(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Int64? {
        try leaf(NullableIntLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func bool(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Bool? {
        try leaf(BoolLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func float(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Float? {
        try leaf(FloatLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func double(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Double? {
        try leaf(DoubleLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func string(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> String? {
        try leaf(StringLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func timestamp(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Timestamp? {
        try leaf(TimestampLeaf.self, memory, cluster, slot).value(row)
    }
    @inline(never)
    public static func link(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> ObjectKey {
        try leaf(LinkLeaf.self, memory, cluster, slot).value(row)
    }
}
