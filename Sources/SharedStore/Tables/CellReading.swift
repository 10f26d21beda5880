/// Single values of rows whose column is known to be of the right kind: what the object layer does most.
///
/// Each is one call into this module, within which everything is inlined; that needs the leaf's type to be spelled out, a generic function is
/// specialised too late. `slot` is the column's position in the cluster leaf: its leaf index + 1.
/// A leaf of another kind throws `FormatError`, as everywhere.
public enum CellReading {
    @inline(never)
    public static func int(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Int64 {
        try IntLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func optionalInt(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Int64? {
        try NullableIntLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func bool(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Bool? {
        try BoolLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func float(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Float? {
        try FloatLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func double(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Double? {
        try DoubleLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func string(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> String? {
        try StringLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func timestamp(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> Timestamp? {
        try TimestampLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
    @inline(never)
    public static func link(_ memory: Memory, _ cluster: Node, _ slot: Int, _ row: Int) throws -> ObjectKey {
        try LinkLeaf(memory, cluster.requiredRef(slot)).value(row)
    }
}
