/// What the verifier keeps of a table's schema while it walks the objects.
final class TableModel {
    let slot: Int
    let key: TableKey
    let name: String
    let topRef: Int
    /// 0 top-level, 1 embedded, 2 asymmetric (file-format-2 section 2).
    var kind = 0
    /// In spec order.
    private(set) var columns: [ColumnModel] = []
    var columnNames: Set<ExactString> = []
    /// Leaf index to column.
    private(set) var columnOfLeaf: [Int: ColumnModel] = [:]
    private var columnOfKey: [Int64: ColumnModel] = [:]
    /// The smallest number of elements of a cluster leaf.
    private(set) var clusterCountMin = 1
    var clusters: Node?
    var tombstones: Node?
    var collisions: Node?
    /// What the collision map says, once it was asked for.
    var localKeys: [GlobalKey: ObjectKey]?
    var indexRefs: Node?
    var primaryKey: ColumnModel?
    var objectCount = 0
    /// False where damage hides objects, so that counts say nothing.
    var isCountable = true

    init(slot: Int, key: TableKey, name: String, topRef: Int) {
        self.slot = slot
        self.key = key
        self.name = name
        self.topRef = topRef
    }

    var isEmbedded: Bool { kind == 1 }
    var isAsymmetric: Bool { kind == 2 }

    /// Adds a column whose leaf index no other one has.
    func append(_ column: ColumnModel) {
        columns.append(column)
        columnOfLeaf[column.key.leafIndex] = column
        if columnOfKey[column.key.rawValue] == nil { columnOfKey[column.key.rawValue] = column }
        clusterCountMin = max(clusterCountMin, 2 + column.key.leafIndex)
    }

    func column(_ key: Int64) -> ColumnModel? { columnOfKey[key] }

    /// Used when all columns are there.
    private(set) lazy var backlinkColumns = columns.filter(\.isBacklink)

    /// The backlink columns whose other end is the column `key` of `table`. There is one; damage may make more.
    func backlinkColumns(from table: TableModel, _ key: Int64) -> [ColumnModel] {
        if backlinksByOrigin == nil {
            backlinksByOrigin = Dictionary(grouping: backlinkColumns) {
                Origin(table: $0.oppositeTable, column: $0.oppositeColumn)
            }
        }
        return backlinksByOrigin?[Origin(table: Int64(table.key.rawValue), column: key)] ?? []
    }

    private struct Origin: Hashable {
        var table: Int64
        var column: Int64
    }
    private var backlinksByOrigin: [Origin: [ColumnModel]]?
}

final class ColumnModel {
    let key: ColumnKey
    /// Empty for backlink columns.
    let name: String
    let type: ColumnType
    let attributes: ColumnAttributes
    /// Key type of a dictionary.
    var keyType = ColumnType.string
    var enumeration: RawStrings?
    /// The other end of a link or backlink column: raw table key and column key.
    var oppositeTable: Int64 = 0x7FFF_FFFF
    var oppositeColumn = Int64.max
    var opposite: TableModel?
    /// Links from (or, for a backlink column, to) this column, by slot of the target table.
    var linkGroups: [Int: Int] = [:]

    init(key: ColumnKey, name: String, type: ColumnType, attributes: ColumnAttributes) {
        self.key = key
        self.name = name
        self.type = type
        self.attributes = attributes
    }

    var collection: CollectionKind? { key.collectionKind }
    var isBacklink: Bool { type == .backlink }
    var isNullable: Bool { key.isNullable }
    var label: String { isBacklink ? "backlink \(key.leafIndex)" : name }

    /// The kind of the column's leaves in clusters; nil for collections, whose leaves are arrays of refs.
    var leafKind: LeafKind {
        LeafKind(type, nullable: type == .link || type == .mixed || isNullable, .cluster, enumeration: enumeration)
    }
    /// The kind of the leaves of a list or set.
    var elementKind: LeafKind { LeafKind(type, nullable: type == .mixed || isNullable, .tree) }
}

/// Position and keys of the rows of a cluster leaf.
struct RowKeys {
    /// Nil in compact form: keys count up from 0.
    let keys: Node?
    let offset: UInt64

    func key(_ row: Int) -> ObjectKey {
        let relative: UInt64 = keys.map { row < $0.count ? $0.uncheckedUnsigned(row) : 0 } ?? UInt64(row)
        return ObjectKey(Int64(bitPattern: offset &+ relative))
    }
}

/// All links of one column to one table: from both ends, as counts and as sums that do not depend on the order.
struct LinkGroup {
    struct Side {
        var count = 0
        private var sums: (UInt64, UInt64) = (0, 0)

        mutating func add(origin: Int64, target: Int64, times: Int = 1) {
            count &+= times
            let factor = UInt64(truncatingIfNeeded: times)
            let mixed = mix(UInt64(bitPattern: origin) &* 0x9E37_79B9_7F4A_7C15 &+ mix(UInt64(bitPattern: target)))
            sums.0 &+= mixed &* factor
            sums.1 &+= mix(mixed ^ 0xD6E8_FEB8_6659_FD93) &* factor
        }

        static func == (a: Side, b: Side) -> Bool { a.count == b.count && a.sums.0 == b.sums.0 && a.sums.1 == b.sums.1 }
        static func != (a: Side, b: Side) -> Bool { !(a == b) }
    }
    let origin: TableModel?
    let column: ColumnModel?
    let target: TableModel
    var forward = Side()
    var backward = Side()
}

/// The finalizer of splitmix64: every bit of the input moves every bit of the output.
@inline(__always)
func mix(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
}
