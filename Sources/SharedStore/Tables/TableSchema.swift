/// What is known about the columns of a table, shared by all versions in which they are the same.
///
/// Reading it costs far more than reading a row, and hardly any commit changes it. A version takes it over from the one before
/// where its refs are the same. That is sound for two versions of which the older one was held, or was ours and the newest,
/// until the newer one existed: nodes of a version that somebody holds are not overwritten (file-format-3 2), so that the same
/// ref leads to the same bytes. Nodes of an arena are changed in place; what was read from them is never taken over.
final class TableSchema: Sendable {
    let names: [String]
    let columns: [Column]
    /// Columns from this position on are backlink columns.
    let publicCount: Int
    let positions: [ExactString: Int]
    let positionsByKey: [ColumnKey: Int]
    /// Columns by leaf index.
    let columnsByLeaf: [Column?]
    /// What editors of cluster trees need to know of the columns; nil where a column is enumerated, of which that changes.
    let clusterColumns: [ClusterColumn]?
    private let key: TableKey
    private let format: UInt8
    private let refs: Refs
    private let isShareable: Bool

    private struct Refs: Equatable {
        let spec: Int
        let oppositeTables: Int
        let oppositeColumns: Int

        init(_ top: Node) throws {
            spec = try top.requiredRef(TableSlot.spec)
            oppositeTables = try top.optionalRef(TableSlot.oppositeTables)
            oppositeColumns = try top.optionalRef(TableSlot.oppositeColumns)
        }
    }

    /// The schema of the table whose top array is `top`: one of `earlier`, if it is the same.
    static func read(_ memory: Memory, _ top: Node, _ key: TableKey, _ format: UInt8, earlier: [TableSchema] = []) throws
        -> TableSchema
    {
        let refs = try Refs(top)
        for schema in earlier where schema.key == key && schema.refs == refs && schema.format == format && schema.isShareable {
            return schema
        }
        return try TableSchema(memory, top.ref, refs, key, format)
    }

    private init(_ memory: Memory, _ topRef: Int, _ refs: Refs, _ key: TableKey, _ format: UInt8) throws {
        let spec = try Spec(
            memory, specRef: refs.spec, oppositeTablesRef: refs.oppositeTables, oppositeColumnsRef: refs.oppositeColumns,
            table: key, format: format)
        var positions: [ExactString: Int] = [:]
        for (i, name) in spec.names.enumerated() where positions.updateValue(i, forKey: ExactString(name)) != nil {
            throw FormatError(ref: topRef, "two columns have the name \"\(name)\"")
        }
        var positionsByKey: [ColumnKey: Int] = [:]
        var columnsByLeaf: [Column?] = []
        for column in spec.columns {
            positionsByKey[column.key] = column.specIndex
            while columnsByLeaf.count <= column.key.leafIndex { columnsByLeaf.append(nil) }
            columnsByLeaf[column.key.leafIndex] = column
        }
        names = spec.names
        columns = spec.columns
        publicCount = spec.publicCount
        self.positions = positions
        self.positionsByKey = positionsByKey
        self.columnsByLeaf = columnsByLeaf
        clusterColumns = spec.columns.contains { $0.isEnumerated } ? nil : spec.columns.compactMap { ClusterColumn($0.key) }
        self.key = key
        self.format = format
        self.refs = refs
        isShareable =
            !memory.isInArena(refs.spec) && !memory.isInArena(refs.oppositeTables) && !memory.isInArena(refs.oppositeColumns)
    }
}
