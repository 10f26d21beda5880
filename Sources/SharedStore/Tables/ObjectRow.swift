/// One object of one version: where its values are. A plain value; reading from it allocates nothing but strings and arrays.
///
/// Valid as long as the version it was found in; in a write transaction until the table is changed.
@frozen public struct ObjectRow {
    public let memory: Memory
    /// The cluster leaf that holds the object.
    public let cluster: Node
    /// The row in the leaf.
    public let index: Int
    /// By which the object is found in its table.
    public let key: ObjectKey

    /// The row at an index of a leaf of the cluster tree.
    @inline(__always)
    public init(memory: Memory, cluster: Node, index: Int, key: ObjectKey) {
        self.memory = memory
        self.cluster = cluster
        self.index = index
        self.key = key
    }
}
