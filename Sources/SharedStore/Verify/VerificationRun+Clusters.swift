/// Objects: cluster trees and the columns in them (file-format-2 section 11, rules 16 to 26).
extension VerificationRun {
    static let clusterCountMax = 256
    /// 256 to the eighth power covers all keys.
    static let clusterDepthMax = 10

    /// One walk over a cluster tree.
    final class ClusterWalk {
        let table: TableModel
        let isTombstones: Bool
        /// In a second pass: the only column to look at.
        var onlyColumn: ColumnModel?
        /// Of an old dictionary: the column that holds it.
        var dictionary: ColumnModel?
        /// Called with each leaf of the column that was read whole.
        var onLeaf: ((RawLeaf) throws -> Void)?
        var lastKey: UInt64?
        /// Hashes of the primary keys of a table without an index on them.
        var primaryKeys: Set<UInt64> = []
        init(_ table: TableModel, isTombstones: Bool) {
            self.table = table
            self.isTombstones = isTombstones
        }
    }

    func verifyObjects(_ table: TableModel) throws {
        tableName = table.name
        currentTable = table
        defer { tableName = nil; columnName = nil; objectKey = nil; rows = nil; currentTable = nil }
        if let root = table.clusters {
            let count = try verifyCluster(root, ClusterWalk(table, isTombstones: false), offset: 0, end: nil, depth: nil)
            table.objectCount = count ?? 0
            if count == nil { table.isCountable = false }
            report.objectCount += table.objectCount
        } else {
            table.isCountable = false
        }
        if let root = table.tombstones {
            let walk = ClusterWalk(table, isTombstones: true)
            report.tombstoneCount += try verifyCluster(root, walk, offset: 0, end: nil, depth: nil) ?? 0
        }
        if let collisions = table.collisions { try verifyCollisions(collisions, table) }
    }

    // MARK: The tree

    /// `end`: first key that belongs to the next child; `depth`: levels below, nil for the root.
    /// Returns the number of objects, nil where damage hides some.
    func verifyCluster(
        _ node: Node, _ walk: ClusterWalk, offset: UInt64, end: UInt64?, depth: Int?,
        level: Int = 0
    ) throws -> Int? {
        guard node.hasRefs, !node.hasContext else {
            try error(.nodeKind, node.ref, "flags \(hexadecimal(UInt64(node.flags), digits: 2)) where a cluster is expected")
            try enterAll(below: node)
            return nil
        }
        if !node.isInner {
            if let depth, depth != 0 {
                try error(.clusterDepth, node.ref, "a leaf where an inner node of depth \(depth) is expected")
            }
            return try verifyClusterLeaf(node, walk, offset: offset, end: end, isRoot: level == 0)
        }
        if level >= VerificationRun.clusterDepthMax {
            try error(.depthLimit, node.ref, "a cluster tree of more than \(VerificationRun.clusterDepthMax) levels")
            try enterAll(below: node)
            return nil
        }
        let children = node.count - 3
        if children < (level == 0 ? 2 : 1) || children > VerificationRun.clusterCountMax {
            try error(.clusterChildren, node.ref, "\(children) children")
            if children < 1 {
                try enterAll(below: node)
                return nil
            }
        }
        try spend(children)
        let own = try number(node, 1, .clusterDepth, "depth") ?? 0
        if own < 1 || own > VerificationRun.clusterDepthMax || depth.map({ $0 != own }) ?? false {
            try error(.clusterDepth, node.ref, "depth \(own)\(depth.map { ", expected \($0)" } ?? "")")
        }
        let offsets = node.unchecked(0) == 0 ? nil : try integers(node, 0, "offsets of children")
        if let offsets { try verifyChildOffsets(offsets, children) }
        // Without usable offsets the keys below cannot be known.
        let isPlaceKnown = offsets.map { $0.count == children } ?? (node.unchecked(0) == 0)
        let shift = UInt64(8 * min(max(own, 1), 7))
        var total: Int? = 0
        for i in 0..<children {
            guard let child = try child(node, 3 + i, "child") else {
                total = nil
                continue
            }
            var childOffset = offset, childEnd = end
            if let offsets, isPlaceKnown {
                childOffset = offset &+ offsets.uncheckedUnsigned(i)
                if i + 1 < children { childEnd = offset &+ offsets.uncheckedUnsigned(i + 1) }
            } else if isPlaceKnown {
                childOffset = offset &+ UInt64(i) << shift
                if i + 1 < children { childEnd = offset &+ UInt64(i + 1) << shift }
            }
            let count = try verifyCluster(
                child, walk, offset: childOffset, end: childEnd, depth: max(0, own - 1),
                level: level + 1)
            total = total.flatMap { sum in count.map { sum + $0 } }
        }
        if let said = try number(node, 2, .clusterSize, "number of objects"), let total, said != total {
            try error(.clusterSize, node.ref, "says \(said) objects, holds \(total)")
        }
        return total
    }

    private func verifyChildOffsets(_ offsets: Node, _ children: Int) throws {
        if offsets.count != children {
            try error(.clusterOffsets, offsets.ref, "\(offsets.count) offsets for \(children) children")
        }
        if offsets.count > 0 && offsets.width < 8 { try warning(.unsignedWidth, offsets.ref, "offsets of \(offsets.width) bits") }
        try spend(offsets.count)
        if offsets.count > 0 && offsets.uncheckedUnsigned(0) != 0 {
            try error(.clusterOffsets, offsets.ref, "the first offset is \(offsets.uncheckedUnsigned(0))")
        }
        for i in 1..<max(1, offsets.count) where offsets.uncheckedUnsigned(i) <= offsets.uncheckedUnsigned(i - 1) {
            return try error(
                .clusterOffsets, offsets.ref,
                "offset \(i), \(offsets.uncheckedUnsigned(i)), is not above the one before")
        }
    }

    // MARK: A leaf

    private func verifyClusterLeaf(_ node: Node, _ walk: ClusterWalk, offset: UInt64, end: UInt64?, isRoot: Bool) throws -> Int? {
        try spend(node.count)
        guard node.count >= 1 else {
            try error(.clusterColumns, node.ref, "a cluster without elements")
            return nil
        }
        var keys: Node?
        var count: Int?
        let first = node.unchecked(0)
        if first & 1 != 0 {
            let said = Int(truncatingIfNeeded: UInt64(bitPattern: first) >> 1)
            if said > VerificationRun.clusterCountMax { try error(.clusterCount, node.ref, "\(said) objects in one cluster") }
            if said <= 0xFF_FFFF { count = said }
        } else if let array = try integers(node, 0, "keys") {
            keys = array
            count = array.count
            if array.count > VerificationRun.clusterCountMax {
                try error(.clusterCount, array.ref, "\(array.count) keys in one cluster")
            }
            if array.count > 0 && array.width < 8 { try warning(.unsignedWidth, array.ref, "keys of \(array.width) bits") }
        }
        if count == 0 && !isRoot { try error(.clusterCount, node.ref, "a cluster that is not the root is empty") }
        let outer = rows
        defer { rows = outer }
        rows = RowKeys(keys: keys, offset: offset)
        if let count { try verifyKeys(node, keys, count, walk, offset: offset, end: end) }
        if walk.dictionary != nil { rows = nil }
        try verifyColumns(node, walk, count: count)
        return count
    }

    private func verifyKeys(_ node: Node, _ keys: Node?, _ count: Int, _ walk: ClusterWalk, offset: UInt64, end: UInt64?) throws {
        if count == 0 { return }
        if let keys {
            try spend(count)
            for i in 1..<max(1, count) where keys.uncheckedUnsigned(i) <= keys.uncheckedUnsigned(i - 1) {
                return try error(
                    .clusterKeys, keys.ref, row: rows?.key(i),
                    "key \(i), \(keys.uncheckedUnsigned(i)), is not above the one before")
            }
        }
        let first = offset &+ (keys.map { $0.uncheckedUnsigned(0) } ?? 0)
        let last = offset &+ (keys.map { $0.uncheckedUnsigned(count - 1) } ?? UInt64(count - 1))
        if last < first || end.map({ last >= $0 }) ?? false || walk.lastKey.map({ first <= $0 }) ?? false {
            try error(.clusterKeys, node.ref, "keys \(first) to \(last) of a cluster reach into the next or the one before")
        }
        walk.lastKey = last
        if walk.dictionary != nil { return }
        if walk.isTombstones {
            if first < 1 << 63 || last == UInt64.max {
                try error(.clusterKeySign, node.ref, "a tombstone has the key \(Int64(bitPattern: first))")
            }
        } else if last >= 1 << 63 {
            try error(.clusterKeySign, node.ref, "a live object has the key \(Int64(bitPattern: last))")
        }
    }

    /// `count` is nil where the number of rows is not known.
    private func verifyColumns(_ node: Node, _ walk: ClusterWalk, count: Int?) throws {
        let table = walk.table
        if node.count < table.clusterCountMin {
            try error(.clusterColumns, node.ref, "\(node.count) elements, \(table.clusterCountMin) are needed")
        }
        // Links to each row, where a rule depends on their number.
        var owners: [Int32] = []
        if mode == .first, let count, walk.dictionary == nil, table.isEmbedded || walk.isTombstones, count <= 1 << 16 {
            owners = [Int32](repeating: 0, count: count)
        }
        var hasAllBacklinks = true
        // A walk over one column goes to it at once: there may be as many walks as columns.
        let first = 1 + (walk.onlyColumn?.key.leafIndex ?? 0)
        for slot in first..<max(first, walk.onlyColumn == nil ? node.count : min(node.count, first + 1)) {
            guard let column = table.columnOfLeaf[slot - 1] else {
                if node.unchecked(slot) != 0 && mode == .first {
                    try error(
                        .clusterColumns, node.ref,
                        "element \(slot) is \(node.unchecked(slot)), but no column has this leaf index")
                    if node.unchecked(slot) & 1 == 0 { try enterAll(below: enter(node.unchecked(slot), from: node.ref)) }
                }
                continue
            }
            if walk.dictionary == nil {
                columnName = column.label
                currentColumn = column
            }
            if let leaf = try child(node, slot, "leaf") {
                if try !verifyColumn(leaf, column, walk, count: count, &owners), column.isBacklink { hasAllBacklinks = false }
            } else {
                hasAllBacklinks = false
            }
            if walk.dictionary == nil { columnName = nil }
        }
        if walk.dictionary == nil { currentColumn = nil }
        if !hasAllBacklinks || mode != .first { return }
        for i in owners.indices {
            if table.isEmbedded && !walk.isTombstones && owners[i] != 1 {
                try error(.embeddedOwners, node.ref, row: rows?.key(i), "an embedded object has \(owners[i]) owners")
            }
            if walk.isTombstones && owners[i] == 0 {
                try error(.tombstoneUnlinked, node.ref, row: rows?.key(i), "nothing links to this tombstone")
            }
        }
    }

    /// Returns false where damage hides rows.
    private func verifyColumn(
        _ node: Node, _ column: ColumnModel, _ walk: ClusterWalk, count: Int?,
        _ owners: inout [Int32]
    ) throws -> Bool {
        if column.collection != nil {
            guard try asRefs(node, "collections") else { return false }
            if let count, node.count != count {
                try error(.leafCount, node.ref, "\(node.count) collections in a cluster of \(count) rows")
            }
            let rowCount = node.width == 0 ? 0 : node.count
            try spend(rowCount)
            defer { objectKey = nil }
            for i in 0..<rowCount {
                objectKey = rows?.key(i)
                if let root = try optionalChild(node, i, "collection") { try verifyCollection(root, column) }
            }
            return true
        }
        guard let leaf = try verifyLeaf(node, column.leafKind, expected: count) else { return false }
        switch leaf.parts {
        case .links(let values):
            for i in 0..<(values.width == 0 ? 0 : leaf.count) where values.unchecked(i) != 0 {
                try link(table: column.oppositeTable, key: values.unchecked(i) &- 1, origin: rows?.key(i), node.ref)
            }
        case .mixed(let mixed):
            try verifyNested(mixed, nesting: 0, tree: nil)
            if let dictionary = walk.dictionary { try verifyDictionaryValues(mixed, 0, dictionary) }
        case .refs(let refs): try verifyBacklinks(refs, column, &owners)
        default: break
        }
        if mode == .first, column === walk.table.primaryKey {
            if walk.isTombstones {
                try verifyTombstoneKeys(leaf, column, walk.table)
            } else {
                try verifyUnindexedKeys(leaf, walk)
            }
        }
        try walk.onLeaf?(leaf)
        return true
    }

    /// Rule 30: the key of a tombstone follows from its primary key, by way of the collision map where that has an entry for it.
    private func verifyTombstoneKeys(_ leaf: RawLeaf, _ column: ColumnModel, _ table: TableModel) throws {
        guard let rows, let collisions = collisions(of: table) else { return }
        try spend(leaf.count)
        for i in 0..<leaf.count {
            let key: GlobalKey?
            switch value(leaf, i) {
            case .null: key = GlobalKey(primaryKey: .null)
            case .int(let v): key = GlobalKey(primaryKey: .int(v))
            case .string(let text): key = GlobalKey(digestOf: text)
            case .objectId(let p): key = GlobalKey(primaryKey: .objectId(ObjectIdValue(p)))
            case .uuid(let p): key = GlobalKey(primaryKey: .uuid(UUIDValue(p)))
            default: key = nil
            }
            guard let key else { continue }
            let expected = (collisions[key] ?? key.hashedLocalKey).unresolved
            if rows.key(i) != expected {
                try error(.tombstoneKey, leafRef(leaf), row: rows.key(i), "by its primary key a tombstone is \(expected)")
            }
        }
    }

    /// The local keys of a collision map; nil where damage hides them, which is reported by those who check the map itself.
    private func collisions(of table: TableModel) -> [GlobalKey: ObjectKey]? {
        if let known = table.localKeys { return known }
        var keys: [GlobalKey: ObjectKey] = [:]
        if let map = table.collisions {
            guard map.hasRefs, map.count >= 3, let low = array(map.unchecked(0)), let high = array(map.unchecked(1)),
                let local = array(map.unchecked(2)), low.count == local.count, high.count == local.count,
                (try? spend(32 * local.count)) != nil
            else { return nil }
            for i in 0..<local.count {
                let key = GlobalKey(high: UInt64(bitPattern: high.unchecked(i)), low: UInt64(bitPattern: low.unchecked(i)))
                keys[key] = ObjectKey(local.unchecked(i))
            }
        }
        table.localKeys = keys
        return keys
    }

    /// Rule 14 for formats whose primary keys need no index: by hashes of the values, as many as fit into a bounded set.
    private func verifyUnindexedKeys(_ leaf: RawLeaf, _ walk: ClusterWalk) throws {
        guard let rows, let table = walk.table.indexRefs, let column = walk.table.primaryKey else { return }
        let leafIndex = column.key.leafIndex
        if leafIndex < table.count && table.unchecked(leafIndex) != 0 { return }
        try spend(leaf.count)
        for i in 0..<leaf.count where walk.primaryKeys.count < 1 << 20 {
            guard let data = IndexBytes(value(leaf, i)) else { continue }
            var hash = mix(UInt64(bitPattern: Int64(data.count ?? -1)))
            for offset in stride(from: 0, to: data.count ?? 0, by: 4) {
                hash = mix(hash ^ UInt64(UInt32(bitPattern: data.chunk(offset))))
            }
            if !walk.primaryKeys.insert(hash).inserted {
                try error(.primaryKeyDuplicate, leafRef(leaf), row: rows.key(i), "another object has the same primary key")
            }
        }
    }

    private func leafRef(_ leaf: RawLeaf) -> Int {
        switch leaf.parts {
        case .integers(let node), .nullableIntegers(let node), .fixed(let node, _), .enumerated(let node, _): return node.ref
        case .strings(let strings):
            switch strings.parts {
            case .short(let node), .big(let node), .small(let node, _, _): return node.ref
            }
        default: return 0
        }
    }

    /// Rule 28 (file-format-2 5.9).
    private func verifyBacklinks(_ node: Node, _ column: ColumnModel, _ owners: inout [Int32]) throws {
        let count = node.width == 0 ? 0 : node.count
        try spend(count)
        for i in 0..<count {
            let value = node.unchecked(i)
            if value == 0 { continue }
            let target = rows?.key(i)
            if value & 1 != 0 {
                if i < owners.count { owners[i] += 1 }
                try backlink(origin: Int64(bitPattern: UInt64(bitPattern: value) >> 1), column, target: target)
                continue
            }
            objectKey = target
            defer { objectKey = nil }
            guard let root = try enter(value, from: node.ref) else { continue }
            let walk = TreeWalk(LeafKind(.int, nullable: false, .tree))
            walk.isOfBacklinks = true
            walk.onLeaf = { [self] leaf, _ in
                if case .integers(let keys) = leaf.parts {
                    let count = differing(keys, leaf.count)
                    try spend(count)
                    let times = count == leaf.count ? 1 : leaf.count
                    for j in 0..<count { try backlink(origin: keys.unchecked(j), column, target: target, times: times) }
                }
            }
            if let count = try verifyTree(root, walk) {
                if i < owners.count { owners[i] += Int32(clamping: count) }
                if count < 2 { try warning(.backlinkList, root.ref, "a list of \(count) backlinks") }
            }
        }
    }

    /// Dictionaries of formats 21 and 22 are cluster trees of their own: column 0 holds the keys, 1 the values
    /// (file-format-2 section 10).
    func verifyOldDictionary(_ root: Node, _ column: ColumnModel) throws {
        let pseudo = TableModel(slot: 0, key: TableKey(0), name: "", topRef: root.ref)
        func part(_ leafIndex: Int, _ name: String, _ type: ColumnType, _ attributes: ColumnAttributes) -> ColumnModel {
            let key = ColumnKey(leafIndex: leafIndex, type: type, attributes: attributes, tag: 0)
            return ColumnModel(key: key, name: name, type: type, attributes: attributes)
        }
        let keys = part(0, "keys", .string, []), values = part(1, "values", .mixed, .nullable)
        pseudo.append(keys)
        pseudo.append(values)
        let walk = ClusterWalk(pseudo, isTombstones: false)
        walk.dictionary = column
        _ = try verifyCluster(root, walk, offset: 0, end: nil, depth: nil)
    }

    // MARK: Collision map

    /// Rule 36.
    private func verifyCollisions(_ node: Node, _ table: TableModel) throws {
        guard try asRefs(node, "collision map") else { return }
        if node.count != 3 { try error(.collisionMap, node.ref, "\(node.count) elements") }
        guard let low = try integers(node, 0, "low halves"), let high = try integers(node, 1, "high halves"),
            let keys = try integers(node, 2, "local keys")
        else { return }
        if low.count != high.count || low.count != keys.count || low.count == 0 {
            return try error(.collisionMap, node.ref, "\(low.count), \(high.count) and \(keys.count) entries")
        }
        try spend(low.count)
        for i in 1..<max(1, low.count) {
            let a = (high.unchecked(i - 1), UInt64(bitPattern: low.unchecked(i - 1)))
            let b = (high.unchecked(i), UInt64(bitPattern: low.unchecked(i)))
            if a >= b { return try error(.collisionMap, node.ref, "entry \(i) is not above the one before") }
        }
        var seen: Set<Int64> = []
        for i in 0..<keys.count {
            let key = ObjectKey(keys.unchecked(i))
            if !seen.insert(key.rawValue).inserted {
                try error(.collisionMap, node.ref, row: key, "the local key \(key) stands twice")
            } else if find(key, in: table) == nil && find(key.unresolved, in: table) == nil {
                try error(.collisionMap, node.ref, row: key, "no object and no tombstone has the local key \(key)")
            }
        }
    }

    // MARK: Lookup

    /// The cluster leaf and the row of an object or tombstone; nil where there is none, or damage is in the way.
    func find(_ key: ObjectKey, in table: TableModel) -> (leaf: Node, row: Int)? {
        guard let root = key.rawValue >= 0 ? table.clusters : table.tombstones else { return nil }
        var node = root
        var rest = UInt64(bitPattern: key.rawValue)
        for _ in 0...VerificationRun.clusterDepthMax {
            guard node.hasRefs, node.widthType == 0, node.count >= 1 else { return nil }
            let first = node.unchecked(0)
            guard node.isInner else {
                if first & 1 != 0 {
                    let count = UInt64(bitPattern: first) >> 1
                    return rest < count && count <= 0xFF_FFFF ? (node, Int(rest)) : nil
                }
                guard let keys = array(first) else { return nil }
                let row = lowerBound(keys, rest)
                return row < keys.count && keys.uncheckedUnsigned(row) == rest ? (node, row) : nil
            }
            let children = node.count - 3
            guard children >= 1 else { return nil }
            var index = 0
            if first == 0 {
                let depth = UInt64(bitPattern: node.unchecked(1)) >> 1
                guard depth >= 1, depth <= 7 else { return nil }
                index = Int(min(rest >> (8 * depth), UInt64(children - 1)))
                rest &-= UInt64(index) << (8 * depth)
            } else {
                guard let offsets = array(first), offsets.count == children else { return nil }
                let bound = rest == UInt64.max ? offsets.count : lowerBound(offsets, rest + 1)
                if bound == 0 { return nil }
                index = bound - 1
                rest &-= offsets.uncheckedUnsigned(index)
            }
            let ref = node.unchecked(3 + index)
            guard ref > 0, let next = try? memory.node(Int(ref)) else { return nil }
            node = next
        }
        return nil
    }

    private func array(_ ref: Int64) -> Node? {
        guard ref > 0, ref & 7 == 0, let node = try? memory.node(Int(ref)), !node.hasRefs, node.widthType == 0 else { return nil }
        return node
    }

    private func lowerBound(_ array: Node, _ value: UInt64) -> Int {
        var low = 0, high = array.count
        while low < high {
            let middle = (low + high) / 2
            if array.uncheckedUnsigned(middle) < value { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
