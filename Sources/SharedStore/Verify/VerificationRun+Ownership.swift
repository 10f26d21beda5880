/// Embedded objects belong, in the end, to an object that lives by itself (file-format-2 5.10).
///
/// That each has one owner is checked with its backlinks; but a ring of embedded objects, or one that owns itself, has that too,
/// and nothing leads to it: no reader shows it, and no deletion ever frees it. A ring goes through embedded tables that own each
/// other in a circle, so only their rows are followed upwards; each row once, since what was found to be rooted stays so.
extension VerificationRun {
    /// What is known of the rows of one cluster leaf.
    private struct RowMarks {
        /// Rows whose way up has been followed, and those on the way that is being followed.
        var known: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        var open: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

        static func get(_ bits: (UInt64, UInt64, UInt64, UInt64), _ row: Int) -> Bool {
            withUnsafeBytes(of: bits) { $0[row >> 3] >> UInt8(row & 7) & 1 != 0 }
        }
        static func set(_ bits: inout (UInt64, UInt64, UInt64, UInt64), _ row: Int, _ value: Bool) {
            withUnsafeMutableBytes(of: &bits) {
                if value { $0[row >> 3] |= 1 << UInt8(row & 7) } else { $0[row >> 3] &= ~(1 << UInt8(row & 7)) }
            }
        }
    }

    private struct Place {
        let table: TableModel
        let key: ObjectKey
        let leaf: Node
        let row: Int
    }

    func verifyOwnership() throws {
        let tables = tablesInCircles()
        if tables.isEmpty { return }
        var marks: [Int: RowMarks] = [:]
        for table in tables {
            tableName = table.name
            defer { tableName = nil }
            for root in [table.clusters, table.tombstones] {
                guard let root else { continue }
                try forEachClusterLeaf(root, offset: 0, depth: 0) { leaf, rows, count in
                    for row in 0..<min(count, VerificationRun.clusterCountMax) {
                        let start = Place(table: table, key: rows.key(row), leaf: leaf, row: row)
                        try followUp(start, tables, &marks)
                    }
                }
            }
        }
    }

    /// The embedded tables that own each other in a circle: what is left of them when those are taken away, again and again, that
    /// no embedded table owns, and those that own none.
    private func tablesInCircles() -> [TableModel] {
        var left = tables.filter { $0.isEmbedded && $0.isCountable }
        var owners: [Int: Set<Int>] = [:]
        for table in left {
            let origins = table.columns.lazy.filter(\.isBacklink).compactMap(\.opposite).filter(\.isEmbedded)
            owners[table.slot] = Set(origins.map(\.slot))
        }
        var count = 0
        while count != left.count {
            count = left.count
            let slots = Set(left.map(\.slot))
            let owning = left.reduce(into: Set<Int>()) { $0.formUnion(owners[$1.slot] ?? []) }
            left.removeAll { owners[$0.slot]?.isDisjoint(with: slots) ?? true || !owning.contains($0.slot) }
        }
        return left
    }

    /// Goes from owner to owner until an object that lives by itself, a row that was followed before, or a circle.
    private func followUp(_ start: Place, _ tables: [TableModel], _ marks: inout [Int: RowMarks]) throws {
        var way: [Place] = []
        var next: Place? = start
        while let place = next {
            var mark = marks[place.leaf.ref] ?? RowMarks()
            if RowMarks.get(mark.known, place.row) { break }
            if RowMarks.get(mark.open, place.row) {
                let length = way.lastIndex { $0.leaf.ref == place.leaf.ref && $0.row == place.row }.map { way.count - $0 } ?? 1
                tableName = place.table.name
                try error(
                    .embeddedOwners, place.leaf.ref, row: place.key,
                    length == 1
                        ? "an embedded object owns itself"
                        : "\(length) embedded objects own each other in a ring, to which no other object leads")
                tableName = start.table.name
                break
            }
            RowMarks.set(&mark.open, place.row, true)
            marks[place.leaf.ref] = mark
            way.append(place)
            next = try owner(of: place)
        }
        for place in way {
            RowMarks.set(&marks[place.leaf.ref, default: RowMarks()].open, place.row, false)
            RowMarks.set(&marks[place.leaf.ref, default: RowMarks()].known, place.row, true)
        }
    }

    /// The embedded object that owns the one at `place`, by its first backlink; nil where another object does, or damage hides
    /// it.
    private func owner(of place: Place) throws -> Place? {
        try spend(place.table.backlinkColumns.count)
        for column in place.table.backlinkColumns {
            let slot = 1 + column.key.leafIndex
            guard slot < place.leaf.count, let leaf = plain(place.leaf.unchecked(slot)), leaf.hasRefs,
                place.row < leaf.count
            else { continue }
            let value = leaf.unchecked(place.row)
            if value == 0 { continue }
            guard let table = column.opposite, table.isEmbedded, let key = firstOrigin(value) else { return nil }
            guard let found = find(key, in: table), found.row < VerificationRun.clusterCountMax else { return nil }
            return Place(table: table, key: key, leaf: found.leaf, row: found.row)
        }
        return nil
    }

    private func firstOrigin(_ value: Int64) -> ObjectKey? {
        if value & 1 != 0 { return ObjectKey(Int64(bitPattern: UInt64(bitPattern: value) >> 1)) }
        var node = plain(value)
        for _ in 0..<VerificationRun.treeDepthMax {
            guard let inner = node, inner.isInner, inner.hasRefs, inner.count > 2 else { break }
            node = plain(inner.unchecked(1))
        }
        guard let node, !node.hasRefs, node.widthType == 0, node.count > 0 else { return nil }
        return ObjectKey(node.unchecked(0))
    }

    /// A node that has been entered before, looked at once more.
    private func plain(_ ref: Int64) -> Node? { ref > 0 && ref < Int64(limit) ? try? memory.node(Int(ref)) : nil }

    /// The leaves of a cluster tree that has been verified, without claiming anything.
    private func forEachClusterLeaf(
        _ node: Node, offset: UInt64, depth: Int, _ body: (Node, RowKeys, Int) throws -> Void
    ) throws {
        guard node.hasRefs, node.widthType == 0, node.count >= 1, depth <= VerificationRun.clusterDepthMax else { return }
        try spend(node.count)
        let first = node.unchecked(0)
        if !node.isInner {
            if first & 1 != 0 { return try body(node, RowKeys(keys: nil, offset: offset), Int(clamping: first >> 1)) }
            guard let keys = plain(first), !keys.hasRefs, keys.widthType == 0 else { return }
            return try body(node, RowKeys(keys: keys, offset: offset), keys.count)
        }
        let offsets = first & 1 == 0 && first != 0 ? plain(first) : nil
        let shift = UInt64(8 * min(max(node.unchecked(1) >> 1, 1), 7))
        for i in 0..<max(0, node.count - 3) {
            guard let child = plain(node.unchecked(3 + i)) else { continue }
            let start = offsets.map { i < $0.count ? $0.uncheckedUnsigned(i) : 0 } ?? UInt64(i) << shift
            try forEachClusterLeaf(child, offset: offset &+ start, depth: depth + 1, body)
        }
    }
}
