/// Links and backlinks (file-format-2 section 11, rules 26 and 27).
///
/// Every link is met twice: where it stands, and as a backlink at its target. Both sides add a hash of (origin, target) to
/// the sums of their group, a group being all links of one column to one table. Equal counts and sums mean equal multisets; since
/// a backlink is the row of an object that exists, no link then dangles either. Where they differ, both sides are walked again
/// for the exact pairs.
extension VerificationRun {
    /// Collects the pairs of one group in a second pass.
    final class LinkCollector {
        struct Pair: Comparable {
            let origin: Int64
            let target: Int64
            static func < (a: Pair, b: Pair) -> Bool { a.origin != b.origin ? a.origin < b.origin : a.target < b.target }
        }
        let group: Int
        /// Only pairs whose hash leaves this rest are kept, so that memory is bounded.
        let part: UInt64
        let parts: UInt64
        var forward: [Pair] = []
        var backward: [Pair] = []
        /// False where the walk ended at a limit: what is missing then says nothing.
        var isComplete = true

        init(group: Int, part: UInt64, parts: UInt64) {
            self.group = group
            self.part = part
            self.parts = parts
        }

        func takes(_ origin: Int64, _ target: Int64) -> Bool {
            parts == 1 || mix(UInt64(bitPattern: origin) ^ mix(UInt64(bitPattern: target))) % parts == part
        }
    }

    static let pairsPerPass = 1 << 20
    static let passesPerGroup = 64

    /// A link of the current column, or `times` equal ones.
    func link(table rawTable: Int64, key: Int64, origin: ObjectKey?, _ ref: Int, times: Int = 1) throws {
        guard let table = currentTable, let column = currentColumn else { return }
        if mode == .first { report.linkCount += times }
        let isFixed = column.type == .link
        guard rawTable >= 0, rawTable < 0x7FFF_FFFF, let target = tableOfKey[TableKey(UInt32(rawTable))] else {
            return try error(.linkTarget, ref, row: origin, "a link to object \(key) of table \(rawTable), which does not exist")
        }
        if isFixed && rawTable != column.oppositeTable {
            return try error(
                .linkTarget, ref, row: origin,
                "a link to table \(rawTable) in a column of links to \(column.oppositeTable)")
        }
        if key == -1 { return try error(.linkTarget, ref, row: origin, "a link to table \(target.name) with the null key") }
        if !isFixed && (target.isEmbedded || target.isAsymmetric) {
            try error(
                .linkTarget, ref, row: origin,
                "a Mixed link to \(target.name), whose objects are \(target.isEmbedded ? "embedded" : "asymmetric")")
        }
        guard let origin else { return }
        let group = linkGroup(from: table, column, to: target)
        if let collector {
            if collector.group == group, collector.takes(origin.rawValue, key) {
                try spend(times)
                collector.forward.append(contentsOf: repeatElement(.init(origin: origin.rawValue, target: key), count: times))
            }
        } else {
            linkGroups[group].forward.add(origin: origin.rawValue, target: key, times: times)
        }
    }

    /// A backlink in the row of `target` of the current table, or `times` equal ones.
    func backlink(origin: Int64, _ column: ColumnModel, target: ObjectKey?, times: Int = 1) throws {
        guard let table = currentTable, let target else { return }
        let far = column.opposite?.column(column.oppositeColumn)
        let group = linkGroup(from: far == nil ? nil : column.opposite, far ?? column, to: table)
        if let collector {
            if collector.group == group, collector.takes(origin, target.rawValue) {
                try spend(times)
                collector.backward.append(contentsOf: repeatElement(.init(origin: origin, target: target.rawValue), count: times))
            }
        } else {
            linkGroups[group].backward.add(origin: origin, target: target.rawValue, times: times)
        }
    }

    private func linkGroup(from origin: TableModel?, _ column: ColumnModel, to target: TableModel) -> Int {
        if let known = column.linkGroups[target.slot] { return known }
        column.linkGroups[target.slot] = linkGroups.count
        linkGroups.append(LinkGroup(origin: origin, column: column, target: target))
        return linkGroups.count - 1
    }

    func verifyLinks() throws {
        for (index, group) in linkGroups.enumerated() where group.forward != group.backward {
            let pairs = max(group.forward.count, group.backward.count)
            let parts = min(pairs / VerificationRun.pairsPerPass + 1, VerificationRun.passesPerGroup)
            for part in 0..<parts {
                let collector = LinkCollector(group: index, part: UInt64(part), parts: UInt64(parts))
                try secondPass {
                    self.collector = collector
                    if let origin = group.origin, let column = group.column {
                        collector.isComplete = try walkAgain(origin, only: column)
                    }
                    for column in group.backlinkColumns {
                        if try !walkAgain(group.target, only: column) { collector.isComplete = false }
                    }
                    self.collector = nil
                }
                if collector.isComplete { try report(collector, group) } else { try reportCounts(group) }
            }
        }
    }

    /// Runs `body` with a fresh map of claimed nodes and without findings.
    func secondPass(_ body: () throws -> Void) throws {
        let first = (space, elementsLeft, mode)
        space = try SpaceMap.make(limit: limit)
        mode = .second
        elementsLeft = elementLimit
        defer { (space, elementsLeft, mode) = first }
        try body()
    }

    /// Walks one column of all objects and tombstones of a table. Returns false where it ended at the limit of elements.
    func walkAgain(_ table: TableModel, only column: ColumnModel, _ onLeaf: ((RawLeaf) throws -> Void)? = nil) throws -> Bool {
        let outer = (currentTable, tableName, columnName)
        currentTable = table
        defer { (currentTable, tableName, columnName) = outer; currentColumn = nil; rows = nil; objectKey = nil }
        do {
            for isTombstones in [false, true] {
                guard let root = isTombstones ? table.tombstones : table.clusters else { continue }
                let walk = ClusterWalk(table, isTombstones: isTombstones)
                walk.onlyColumn = column
                walk.onLeaf = isTombstones ? nil : onLeaf
                _ = try verifyCluster(root, walk, offset: 0, end: nil, depth: nil)
            }
            return true
        } catch Stop.elements { return false }
    }

    private func reportCounts(_ group: LinkGroup) throws {
        tableName = group.origin?.name
        columnName = group.column?.label
        defer { tableName = nil; columnName = nil }
        try error(
            .backlinkMissing, group.origin?.topRef ?? 0,
            "\(group.forward.count) links to table \(group.target.name), \(group.backward.count) backlinks there: not the same")
    }

    private func report(_ collector: LinkCollector, _ group: LinkGroup) throws {
        let forward = collector.forward.sorted(), backward = collector.backward.sorted()
        var i = 0, j = 0
        while i < forward.count || j < backward.count {
            if j >= backward.count || i < forward.count && forward[i] < backward[j] {
                try reportForward(forward[i], group)
                i += 1
            } else if i >= forward.count || backward[j] < forward[i] {
                try reportBackward(backward[j], group)
                j += 1
            } else {
                i += 1
                j += 1
            }
        }
    }

    private func reportForward(_ pair: LinkCollector.Pair, _ group: LinkGroup) throws {
        tableName = group.origin?.name
        columnName = group.column?.label
        defer { tableName = nil; columnName = nil }
        let origin = ObjectKey(pair.origin)
        let ref = group.origin.flatMap { find(origin, in: $0)?.leaf.ref } ?? 0
        if find(ObjectKey(pair.target), in: group.target) == nil {
            try error(
                .linkDangling, ref, row: origin,
                "a link to object \(pair.target) of table \(group.target.name), which does not exist")
        } else {
            try error(
                .backlinkMissing, ref, row: origin,
                "object \(pair.target) of table \(group.target.name) has no backlink for this link")
        }
    }

    private func reportBackward(_ pair: LinkCollector.Pair, _ group: LinkGroup) throws {
        tableName = group.target.name
        defer { tableName = nil; columnName = nil }
        let target = ObjectKey(pair.target)
        let ref = find(target, in: group.target)?.leaf.ref ?? 0
        guard let origin = group.origin, let column = group.column else {
            columnName = group.column?.label
            // Left behind by the removal of a Mixed column (file-format-2 3.5).
            return try warning(
                .backlinkExtra, ref, row: target,
                "a backlink to object \(pair.origin) of a column that does not exist")
        }
        let what = "a backlink to object \(pair.origin) of table \(origin.name), whose column \(column.label) does not link here"
        if column.type == .mixed && find(ObjectKey(pair.origin), in: origin) == nil {
            // Left behind when a table was cleared (file-format-2 8.4).
            try warning(.backlinkExtra, ref, row: target, what)
        } else {
            try error(.backlinkExtra, ref, row: target, what)
        }
    }
}

extension LinkGroup {
    /// The columns of the target table that hold the backlinks. Where the origin does not exist, the group was made from one of
    /// them.
    fileprivate var backlinkColumns: [ColumnModel] {
        guard let column else { return [] }
        return origin.map { target.backlinkColumns(from: $0, column.key.rawValue) } ?? [column]
    }
}
