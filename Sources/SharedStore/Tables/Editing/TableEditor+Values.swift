/// Values of scalar columns.
extension TableEditor {
    /// Assigns a value to a scalar property and keeps index and backlinks in step. A link is `.link` with the column's target
    /// table; `.list` and `.dictionary` put an empty collection into a Mixed column, unless one of that kind is there.
    ///
    /// - Parameter isDefault: the assignment fills in a schema's default at creation and is not logged.
    public func set(_ column: Column, of key: ObjectKey, to value: Mixed, isDefault: Bool = false) throws {
        precondition(column.collection == nil && !column.isBacklink, "a collection is changed with its own operations")
        try column.check(value, in: table)
        if table.primaryKeyColumn?.key == column.key {
            guard let row = try table.find(key) else { throw noSuchObject(key) }
            if Mixed.compare(try row.value(present(column)), value) != 0 { throw TableError.primaryKeyIsFixed(table: table.name) }
        }
        switch column.type {
        case .link: try setLink(column, key, value)
        case .mixed: try setMixed(column, key, value)
        default: try setPlain(column, key, value)
        }
        if !isDefault { group.changes.set(column.key, of: key, in: table.key) }
        try group.deleteOrphans()
    }

    /// The same for a property by name.
    public func set(_ name: String, of key: ObjectKey, to value: Mixed) throws {
        try set(column(named: name), of: key, to: value)
    }

    /// Assigns to a column without links.
    private func setPlain(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        if isIndexed(column) {
            guard let row = try table.find(key) else { throw noSuchObject(key) }
            try changeIndex(column, key, from: row.indexedValue(present(column)), to: value)
        }
        let row = try writableRow(key)
        let leaf = try cell(row, column)
        if column.isEnumerated {
            setCell(row, column, try EnumStringLeafEditor.set(arena, leaf, row.row, try enumPosition(of: value, column)))
        } else {
            setCell(row, column, try CellEditor.set(arena, leaf, row.row, column, value))
        }
    }

    /// Assigns an int without making a `Mixed`: the fastest way to change one.
    @inline(__always)
    public func setInt(_ column: Column, of key: ObjectKey, to value: Int64) throws {
        precondition(column.type == .int && column.collection == nil, "the column holds no int")
        if isIndexed(column) || table.primaryKeyColumn?.key == column.key { return try set(column, of: key, to: .int(value)) }
        let row = try writableRow(key)
        let leaf = try cell(row, column)
        setCell(
            row, column,
            column.isNullable
                ? try NullableIntLeafEditor.set(arena, leaf, row.row, value) : try IntLeafEditor.set(arena, leaf, row.row, value))
        group.changes.set(column.key, of: key, in: table.key)
    }

    /// Adds to an int property, wrapping as two's complement; a null stays null and throws.
    public func add(_ column: Column, of key: ObjectKey, _ difference: Int64) throws {
        guard let row = try table.find(key) else { throw noSuchObject(key) }
        switch try row.value(column) {
        case .int(let v): try set(column, of: key, to: .int(v &+ difference))
        case .float(let v): try set(column, of: key, to: .float(v + Float(difference)))
        case .double(let v): try set(column, of: key, to: .double(v + Double(difference)))
        case .decimal(let v): try set(column, of: key, to: .decimal(v + Decimal128Bits(difference)))
        default: throw TableError.notANumber(table: table.name, column: table.name(of: column))
        }
    }

    // MARK: Links

    private func setLink(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        let target = value.linkKey
        let other = try other(column.oppositeTable)
        if !target.isNull {
            if other.table.kind == .embedded {
                throw TableError.badLinkTarget(
                    table: table.name, column: table.name(of: column), reason: "an embedded object is made in place")
            }
            if try other.table.find(target) == nil { throw other.noSuchObject(target) }
        }
        try replaceLink(column, key, by: target)
    }

    /// Stores a link that was checked, with its backlinks.
    func replaceLink(_ column: Column, _ key: ObjectKey, by target: ObjectKey) throws {
        let row = try writableRow(key)
        let old = try LinkLeaf(arena.memory, cell(row, column)).value(row.row)
        if old == target { return }
        setCell(row, column, try LinkLeafEditor.set(arena, cell(row, column), row.row, target))
        if !old.isNull { try removeBacklink(column, key, column.oppositeTable, old) }
        if !target.isNull { try addBacklink(column, key, column.oppositeTable, target) }
    }

    /// Makes an embedded object in a single link property; the one that was there goes.
    public func setEmbedded(_ column: Column, of key: ObjectKey) throws -> ObjectKey {
        let target = try embeddedTarget(column)
        precondition(column.collection == nil, "the property is a collection; use insertEmbedded or the dictionary's")
        if try table.find(key) == nil { throw noSuchObject(key) }
        let child = try target.createEmbeddedObject()
        // The original logs both assignments (file-format-3 6.4).
        group.changes.set(column.key, of: key, in: table.key)
        try replaceLink(column, key, by: child)
        group.changes.set(column.key, of: key, in: table.key)
        try group.deleteOrphans()
        return child
    }

    func embeddedTarget(_ column: Column) throws -> TableEditor {
        precondition(column.type == .link, "the column holds no links")
        let target = try other(column.oppositeTable)
        precondition(target.table.kind == .embedded, "\(target.table.name) is not embedded; make the object there and link to it")
        return target
    }

    // MARK: Mixed

    private func setMixed(_ column: Column, _ key: ObjectKey, _ value: Mixed) throws {
        try checkMixedLink(column, value)
        guard let present = try table.find(key) else { throw noSuchObject(key) }
        let old = try present.value(column)
        let isSameCollection = (value == .list && old == .list) || (value == .dictionary && old == .dictionary)
        if isIndexed(column) && !isSameCollection { try changeIndex(column, key, from: present.indexedValue(column), to: value) }
        if isSameCollection { return }
        if old == .list || old == .dictionary { group.retireSalt(try present.nestedKey(column)) }
        try removeLinks(inMixedOf: column, key)
        let row = try writableRow(key)
        let leaf = try cell(row, column)
        switch value {
        case .list, .dictionary:
            let salt = group.nextSalt { _ in false }
            setCell(
                row, column,
                try MixedLeafEditor.setCollection(arena, leaf, row.row, value == .list ? .list : .dictionary, key: salt))
        default:
            setCell(row, column, try MixedLeafEditor.set(arena, leaf, row.row, value))
        }
        if case .link(let table, let target) = value { try addBacklink(column, key, table, target) }
    }

    /// Throws unless a Mixed value may be stored: links lead to live objects of top-level tables.
    func checkMixedLink(_ column: Column, _ value: Mixed) throws {
        guard case .link(let target, let key) = value else { return }
        let other = try other(target)
        if other.table.kind != .topLevel || table.kind == .asymmetric {
            throw TableError.badLinkTarget(
                table: table.name, column: table.name(of: column), reason: "\(other.table.name) is \(other.table.kind)")
        }
        if try other.table.find(key) == nil { throw other.noSuchObject(key) }
    }

    /// Takes back the links of a scalar Mixed value, nested ones included; the value itself stays.
    func removeLinks(inMixedOf column: Column, _ key: ObjectKey) throws {
        guard let row = try table.find(key) else { return }
        let leaf = try row.leaf(MixedLeaf.self, column)
        try removeLinks(column, key, of: leaf.value(row.index), nested: { try leaf.nestedRef(row.index) }, depth: 0)
    }

    /// Takes back the link that a Mixed value is, or those in the collection that it holds.
    func removeLinks(_ column: Column, _ key: ObjectKey, of value: Mixed, nested: () throws -> Int, depth: Int) throws {
        if depth > Self.nestingMax { throw TableError.nestingTooDeep }
        switch value {
        case .link(let target, let object): try removeBacklink(column, key, target, object)
        case .list: try removeLinks(column, key, inTree: try nested(), depth: depth + 1)
        case .dictionary:
            let ref = try nested()
            if ref != 0 { try removeLinks(column, key, inTree: try arena.memory.node(ref).requiredRef(1), depth: depth + 1) }
        default: break
        }
    }

    /// Takes back all links in a tree of Mixed values.
    func removeLinks(_ column: Column, _ key: ObjectKey, inTree root: Int, depth: Int) throws {
        if root == 0 { return }
        // Collected first: taking a link back may change nodes while they are walked.
        var found: [(Mixed, Int)] = []
        try BPlusTree<MixedLeaf>(arena.memory, root).forEachLeaf { leaf, _ in
            for i in 0..<leaf.count {
                let value = try leaf.value(i)
                switch value {
                case .link: found.append((value, 0))
                case .list, .dictionary: found.append((value, try leaf.nestedRef(i)))
                default: break
                }
            }
        }
        for (value, ref) in found { try removeLinks(column, key, of: value, nested: { ref }, depth: depth) }
    }

    static let nestingMax = 100

    // MARK: Enumerated strings

    /// The position of a string in the column's list of values, to which it is appended if it is new (file-format-2 3.6).
    func enumPosition(of value: Mixed, _ column: Column) throws -> Int {
        let keys = try StringLeaf(arena.memory, table.enumerationRef(of: column))
        let position: Int? = try value.withBytes { bytes in
            for i in 0..<keys.count where ValueOrder.compare(try keys.bytes(i), bytes) == 0 { return i }
            return nil
        }
        if let position { return position }
        try beginChange()
        let spec = try arena.writableRefs(arena.child(top, TableSlot.spec))
        setTopElement(TableSlot.spec, Int64(spec))
        let lists = try arena.writableRefs(arena.child(spec, 4))
        let list = try value.withBytes {
            try StringLeafEditor.insert(arena, arena.child(lists, column.specIndex), keys.count, $0)
        }
        arena.setElement(lists, column.specIndex, list)
        arena.setElement(spec, 4, lists)
        arena.movedLists.set(list, column.key, of: table.key)
        try reloadSchema()
        return keys.count
    }
}

extension Table {
    /// Ref of the value list of an enumerated column as it is now.
    func enumerationRef(of column: Column) -> Int { self.column(column.key)?.enumerationRef ?? column.enumerationRef }
}
