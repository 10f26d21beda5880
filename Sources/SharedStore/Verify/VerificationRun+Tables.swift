/// Group, table tops and specs (file-format-2 section 11, rules 1 to 15).
extension VerificationRun {
    static let slotCountMax = 65535
    static let nameByteCountMax = 63

    /// Reads the whole schema first, since links and indexes need to know all of it, then walks the objects.
    func verifyTables(_ top: Node) throws {
        let names = try child(top, TopSlot.names, "table names").flatMap { try self.names($0) }
        guard let list = try refs(top, TopSlot.tables, "tables") else { return }
        if let names, names.count != list.count || list.count > VerificationRun.slotCountMax {
            try error(.groupCounts, list.ref, "\(names.count) names, \(list.count) tables")
        }
        try spend(list.count)
        tableSlotCount = list.count
        var seen: Set<ExactString> = []
        for slot in 0..<min(list.count, VerificationRun.slotCountMax) {
            let value = list.unchecked(slot)
            let name = names.map { slot < $0.count ? text($0, slot) : "" } ?? "#\(slot)"
            if value & 1 != 0 {
                if value < 0 || value >> 1 > 0x7FFF {
                    try error(.groupTable, list.ref, "free slot \(slot) has the tag \(value >> 1)")
                }
                if names != nil && !name.isEmpty { try warning(.groupName, list.ref, "free slot \(slot) has the name \(name)") }
                continue
            }
            if value == 0 {
                try error(.groupTable, list.ref, "slot \(slot) is 0, neither a table nor free")
                continue
            }
            if names != nil {
                if name.isEmpty || name.utf8.count > VerificationRun.nameByteCountMax {
                    try error(.groupName, list.ref, "the name of table \(slot) has \(name.utf8.count) bytes")
                }
                if !seen.insert(ExactString(name)).inserted {
                    try error(.groupName, list.ref, "two tables have the name \(name)")
                }
            }
            guard let top = try enter(value, from: list.ref) else { continue }
            tableName = name
            try readTable(top, slot: slot, name: name)
            tableName = nil
        }
        for table in tables { try verifyLinkColumns(table) }
        for table in tables { try verifyObjects(table) }
        for table in tables { try verifyIndexes(table) }
        try verifyLinks()
        try verifyOwnership()
        tableName = nil
        columnName = nil
        objectKey = nil
    }

    /// Enters a leaf of names: strings without null.
    private func names(_ node: Node) throws -> RawStrings? {
        guard let strings = try enterStrings(node, isBinary: false) else { return nil }
        try spend(strings.count)
        try verifyStrings(strings, node, LeafKind(.string, nullable: true, .tree))
        guard case .short = strings.parts else {
            try error(.nodeKind, node.ref, "names that are no short strings")
            return nil
        }
        return strings
    }

    private func text(_ strings: RawStrings, _ index: Int) -> String {
        var isWhole = true
        guard let bytes = bytes(strings, index, isWhole: &isWhole), bytes.count <= 256 else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: One table

    private func readTable(_ top: Node, slot: Int, name: String) throws {
        guard top.hasRefs, !top.isInner, (12...14).contains(top.count) else {
            try error(.tableShape, top.ref, "flags \(hexadecimal(UInt64(top.flags), digits: 2)), \(top.count) elements")
            return try enterAll(below: top)
        }
        report.tableCount += 1
        try verifyNoContext(top, "table top")
        let rawKey = top.unchecked(3)
        if rawKey & 1 == 0 || rawKey < 0 || rawKey >> 1 > 0x7FFF_FFFE || rawKey >> 1 & 0xFFFF != slot {
            try error(
                .tableKey, top.ref,
                "the table in slot \(slot) has the key \(rawKey & 1 == 0 ? "ref \(rawKey)" : String(rawKey >> 1))")
        }
        let key = TableKey(UInt32(truncatingIfNeeded: rawKey >> 1) & 0x7FFF_0000 | UInt32(slot))
        let table = TableModel(slot: slot, key: key, name: name, topRef: top.ref)
        tables.append(table)
        tableOfKey[key] = table

        if top.unchecked(1) != 0 {
            try error(.tableShape, top.ref, "element 1, the columns of old formats, is \(top.unchecked(1))")
            if top.unchecked(1) & 1 == 0 { try enterAll(below: enter(top.unchecked(1), from: top.ref)) }
        }
        for (index, name) in [(5, "column key sequence"), (6, "content version"), (9, "object sequence")] {
            _ = try number(top, index, .tableShape, name)
        }
        if let flags = try number(top, 12, .tableShape, "flags") {
            table.kind = flags & 3
            if table.kind == 3 { try error(.tableFlags, top.ref, "table type 3") }
        }
        if let spec = try child(top, 0, "spec") { try readSpec(spec, table) }
        table.clusters = try child(top, 2, "objects")
        table.tombstones = try optionalChild(top, 13, "tombstones")
        table.collisions = try optionalChild(top, 10, "collision map")
        table.indexRefs = try refs(top, 4, "indexes")
        let opposites = (try integers(top, 7, "opposite tables"), try integers(top, 8, "opposite columns"))
        try readLeafArrays(table, opposites.0, opposites.1, top)
        try readPrimaryKey(top, table)
    }

    /// Arrays with one entry for each leaf index (rules 11 and 13).
    private func readLeafArrays(_ table: TableModel, _ oppositeTables: Node?, _ oppositeColumns: Node?, _ top: Node) throws {
        guard let indexes = table.indexRefs, let oppositeTables, let oppositeColumns else { return }
        let count = indexes.count, needed = table.clusterCountMin - 1
        if count != oppositeTables.count || count != oppositeColumns.count || count < needed {
            try error(
                .tableArrays, top.ref,
                "\(count) indexes, \(oppositeTables.count) and \(oppositeColumns.count) opposites, \(needed) leaf indexes")
        }
        try spend(indexes.count)
        for i in 0..<min(indexes.count, oppositeTables.count, oppositeColumns.count) {
            let opposite = (oppositeTables.unchecked(i), oppositeColumns.unchecked(i))
            guard let column = table.columnOfLeaf[i] else {
                if indexes.unchecked(i) != 0 || opposite.0 != 0x7FFF_FFFF || opposite.1 != Int64.max {
                    try error(
                        .tableArrays, top.ref,
                        "leaf index \(i) has no column, but index \(indexes.unchecked(i)), opposite \(opposite.0), \(opposite.1)")
                }
                continue
            }
            column.oppositeTable = opposite.0
            column.oppositeColumn = opposite.1
            if column.type != .link && !column.isBacklink && (opposite.0 != 0x7FFF_FFFF || opposite.1 != Int64.max) {
                columnName = column.label
                try error(.columnOpposite, top.ref, "a column without links has the opposite \(opposite.0), \(opposite.1)")
                columnName = nil
            }
        }
    }

    /// Rule 14. The raw element tells: 0 is none, 1 is the column with key 0 (file-format-2 section 2).
    private func readPrimaryKey(_ top: Node, _ table: TableModel) throws {
        let raw = top.unchecked(11)
        if raw == 0 { return }
        guard raw & 1 != 0, let column = table.column(raw >> 1) else {
            return try error(.primaryKeyColumn, top.ref, "element 11 is \(raw): no key of a column")
        }
        table.primaryKey = column
        columnName = column.label
        defer { columnName = nil }
        if ![.int, .string, .objectId, .uuid].contains(column.type) || column.collection != nil {
            try error(.primaryKeyColumn, top.ref, "the primary key is a column of type \(column.type)")
        }
        if column.attributes.contains(.fullTextIndexed) {
            try error(.primaryKeyColumn, top.ref, "the primary key has a full-text index")
        }
        if table.isEmbedded { try error(.primaryKeyColumn, top.ref, "an embedded table has a primary key") }
        let leafIndex = column.key.leafIndex
        if format >= 22, let indexes = table.indexRefs, leafIndex >= indexes.count || indexes.unchecked(leafIndex) == 0 {
            try error(.indexAttribute, top.ref, "the primary key has no index")
        }
    }

    // MARK: Spec

    private func readSpec(_ spec: Node, _ table: TableModel) throws {
        guard spec.hasRefs, !spec.isInner, spec.count == 6 else {
            try error(.specShape, spec.ref, "flags \(hexadecimal(UInt64(spec.flags), digits: 2)), \(spec.count) elements")
            return try enterAll(below: spec)
        }
        try verifyNoContext(spec, "spec")
        let types = try integers(spec, 0, "types"), attributes = try integers(spec, 2, "attributes")
        let keys = try integers(spec, 5, "column keys")
        let names = try child(spec, 1, "column names").flatMap { try self.names($0) }
        if spec.unchecked(3) != 0 {
            try error(.specShape, spec.ref, "element 3 is \(spec.unchecked(3))")
            if spec.unchecked(3) & 1 == 0 { try enterAll(below: enter(spec.unchecked(3), from: spec.ref)) }
        }
        let enumKeys = try optionalChild(spec, 4, "lists of distinct values")
        guard let types, let attributes, let keys, let names else { return try enterAll(below: enumKeys) }
        if types.count != attributes.count || types.count != keys.count || types.count > VerificationRun.slotCountMax {
            try error(.specCounts, spec.ref, "\(types.count) types, \(attributes.count) attributes, \(keys.count) keys")
            return try enterAll(below: enumKeys)
        }
        // A spec costs memory here, so it must have cost bytes in the file as well.
        try spend(types.count * 32)
        for i in 0..<types.count {
            try readColumn(
                table, i, type: types.unchecked(i), attributes: attributes.unchecked(i), key: keys.unchecked(i),
                names, spec)
        }
        let publicCount = table.columns.lazy.filter { !$0.isBacklink }.count
        if table.columns.count == types.count && names.count != publicCount {
            try error(.specCounts, spec.ref, "\(names.count) names for \(publicCount) columns")
        }
        if let enumKeys { try readEnumerations(enumKeys, table, publicCount) }
    }

    private func readColumn(
        _ table: TableModel, _ index: Int, type: Int64, attributes raw: Int64, key rawKey: Int64,
        _ names: RawStrings, _ spec: Node
    ) throws {
        let key = ColumnKey(rawKey)
        let isBacklink = key.typeNumber == ColumnType.backlink.rawValue
        let name = !isBacklink && index < names.count ? text(names, index) : ""
        columnName = isBacklink ? "backlink \(key.leafIndex)" : name
        defer { columnName = nil }
        guard rawKey >= 0, rawKey >> 62 == 0, key.leafIndex < 65535, let known = key.type, known != .typedLink else {
            return try error(.specType, spec.ref, "column \(index) has the key \(rawKey)")
        }
        let stored = Int(type & 0xFFFF)
        if stored != key.typeNumber {
            if stored == 13 && known == .link {
                try warning(.specType, spec.ref, "column \(index) is of type 13, a link list of older formats")
            } else {
                try error(.specType, spec.ref, "column \(index) is of type \(stored), by its key of type \(key.typeNumber)")
            }
        } else if stored == 13 {
            try oldFormat(.specType, spec.ref, "column \(index) is of type 13, a link list of older formats")
        }
        let attributes = ColumnAttributes(rawValue: Int(truncatingIfNeeded: raw))
        if raw < 0 || raw > 0x1FF || Int(raw) & ~(1 | 256) != Int(rawKey >> 22 & 0xFF) {
            try error(.specAttributes, spec.ref, "column \(index) has the attributes \(raw), by its key \(rawKey >> 22 & 0xFF)")
        }
        let collections: [ColumnAttributes] = [.list, .set, .dictionary]
        if collections.filter({ attributes.contains($0) }).count > 1 || attributes.isSuperset(of: [.indexed, .fullTextIndexed]) {
            try error(.specAttributes, spec.ref, "column \(index) has the attributes \(raw), which exclude each other")
        }
        if isBacklink {
            if attributes.rawValue != 0 { try error(.specAttributes, spec.ref, "a backlink column has the attributes \(raw)") }
        } else {
            if let last = table.columns.last, last.isBacklink {
                try error(.specOrder, spec.ref, "column \(index) stands behind a backlink column")
            }
            if name.isEmpty || name.utf8.count > VerificationRun.nameByteCountMax {
                try error(.specName, spec.ref, "the name of column \(index) has \(name.utf8.count) bytes")
            } else if !table.columnNames.insert(ExactString(name)).inserted {
                try error(.specName, spec.ref, "two columns have the name \(name)")
            }
        }
        let column = ColumnModel(key: key, name: name, type: known, attributes: attributes)
        let keyType = type >> 16
        if column.collection == .dictionary {
            if keyType == 0 {
                column.keyType = .int
            } else if keyType != 2 {
                try error(
                    .specType, spec.ref,
                    "a dictionary has keys of type \(keyType)")
            }
        } else if keyType != 0 {
            try error(.specType, spec.ref, "column \(index), no dictionary, has keys of type \(keyType)")
        }
        if table.columnOfLeaf[key.leafIndex] != nil {
            return try error(.specLeafIndex, spec.ref, "two columns have the leaf index \(key.leafIndex)")
        }
        table.append(column)
    }

    /// Reports what only older formats do: as a warning there, as an error in the current format.
    func oldFormat(_ code: FindingCode, _ ref: Int, row: ObjectKey? = nil, _ what: @autoclosure () -> String) throws {
        if isOlderFormat { try warning(code, ref, row: row, what()) } else { try error(code, ref, row: row, what()) }
    }

    /// Rule 10.
    private func readEnumerations(_ list: Node, _ table: TableModel, _ publicCount: Int) throws {
        guard try asRefs(list, "lists of distinct values") else { return }
        if list.count != publicCount {
            try error(.specEnumeration, list.ref, "\(list.count) lists of distinct values for \(publicCount) columns")
        }
        try spend(list.count)
        for i in 0..<list.count {
            guard let node = try optionalChild(list, i, "list of distinct values") else { continue }
            guard i < table.columns.count, table.columns[i].type == .string, table.columns[i].collection == nil else {
                try error(.specEnumeration, list.ref, "column \(i), no string, has a list of distinct values")
                try enterAll(below: node)
                continue
            }
            columnName = table.columns[i].name
            if let strings = try enterStrings(node, isBinary: false) {
                try spend(strings.count)
                try verifyStrings(strings, node, LeafKind(.string, nullable: true, .tree))
                try verifyDistinct(strings, node)
                table.columns[i].enumeration = strings
            }
            columnName = nil
        }
    }

    /// The values of an enumeration are distinct (file-format-1 6.6): a query compares positions. One finding a list, so that the
    /// values kept here are never many more than the list has bytes.
    private func verifyDistinct(_ strings: RawStrings, _ node: Node) throws {
        var seen: Set<[UInt8]?> = []
        try spend(8 * strings.count)
        for i in 0..<strings.count {
            var isWhole = true
            let value = bytes(strings, i, isWhole: &isWhole)
            if isWhole, !seen.insert(value.map { Array($0) }).inserted {
                return try error(.specEnumeration, node.ref, "value \(i) of the list of distinct values stands in it already")
            }
        }
    }

    // MARK: Link columns

    /// Rule 12: the two ends of a link column name each other.
    private func verifyLinkColumns(_ table: TableModel) throws {
        tableName = table.name
        defer { tableName = nil; columnName = nil }
        var origins: Set<[Int64]> = []
        for column in table.columns where column.type == .link || column.isBacklink {
            columnName = column.label
            let other = TableKey(UInt32(truncatingIfNeeded: column.oppositeTable))
            let opposite = column.oppositeTable >= 0 && column.oppositeTable <= 0x7FFF_FFFF ? tableOfKey[other] : nil
            let far = opposite?.column(column.oppositeColumn)
            column.opposite = opposite
            if column.isBacklink {
                if !origins.insert([column.oppositeTable, column.oppositeColumn]).inserted {
                    try error(
                        .columnOpposite, table.topRef,
                        "two backlink columns for column \(column.oppositeColumn) of table \(column.oppositeTable)")
                }
                guard let far else {
                    try warning(
                        .columnOrigin, table.topRef,
                        "column \(column.oppositeColumn) of table \(column.oppositeTable) does not exist")
                    continue
                }
                if far.type == .mixed { continue }
                if far.type != .link || far.oppositeTable != Int64(table.key.rawValue)
                    || far.oppositeColumn != column.key.rawValue
                {
                    try error(
                        .columnOpposite, table.topRef,
                        "column \(far.label) of table \(opposite?.name ?? "") points to table \(far.oppositeTable), column \(far.oppositeColumn)"
                    )
                }
                continue
            }
            guard let opposite, let far else {
                try error(.columnOpposite, table.topRef, "no column \(column.oppositeColumn) of table \(column.oppositeTable)")
                continue
            }
            if !far.isBacklink || far.oppositeTable != Int64(table.key.rawValue) || far.oppositeColumn != column.key.rawValue {
                try error(
                    .columnOpposite, table.topRef,
                    "column \(far.label) of table \(opposite.name) points to table \(far.oppositeTable), column \(far.oppositeColumn)"
                )
            }
            if column.collection == .set && opposite.isEmbedded {
                try error(.linkTarget, table.topRef, "a set of links to \(opposite.name), whose objects are embedded")
            }
            if opposite.isAsymmetric { try error(.linkTarget, table.topRef, "the target table \(opposite.name) is asymmetric") }
        }
    }
}
