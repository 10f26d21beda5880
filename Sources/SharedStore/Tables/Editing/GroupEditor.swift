/// The tables of a write transaction: what is changed, where, and the changeset that tells others of it (file-format-2 section
/// 1).
///
/// Belongs to the thread of its transaction. Every change goes through here or through the `TableEditor`s that it hands
/// out, so that links and backlinks, rows and indexes, contents and history stay in step.
public final class GroupEditor {
    /// Where changed nodes go.
    public let arena: Arena
    /// The tables for reading; always up to date, queries may run over it.
    public let group: Group
    /// What peers will parse.
    @exclusivity(unchecked) public var changes = ChangesetWriter()
    /// Ref of the top array, in the arena.
    @exclusivity(unchecked) private(set) var top: Int
    @exclusivity(unchecked) private var names: Int
    @exclusivity(unchecked) private var tables: Int
    @exclusivity(unchecked) private var editors: [TableEditor?] = []
    /// Objects that lost their last owner, deleted before the outermost operation returns.
    @exclusivity(unchecked) var orphans: [(table: TableKey, key: ObjectKey)] = []
    @exclusivity(unchecked) private var isDeletingOrphans = false
    /// Source of salts for nested collections: their values mean nothing.
    private var saltState: UInt64
    /// The last ones whose collections were replaced: whoever still holds such a collection must not find the new one.
    private var retiredSalts: [Int64] = []
    private static let retiredSaltCountMax = 32

    /// - Parameters:
    ///   - topRef: the bound version's top array, 0 for a file that was never committed to.
    ///   - format: the format in which the bound version was written; older than the current one only for its upgrade.
    ///   - version: the bound one; salts differ from those of other versions.
    public init(
        arena: Arena, topRef: Int, format: UInt8 = FileHeader.currentFormat, previous: Group? = nil, version: UInt64 = 0
    ) throws {
        self.arena = arena
        saltState = 0x9E37_79B9_7F4A_7C15 &+ version &* 0xD1B5_4A32_D192_ED03
        if topRef == 0 {
            names = try NameArrayEditor.create(arena)
            tables = try arena.makeRefs(count: 0)
            top = try arena.makeRefs(count: 3, growth: 9)
            arena.setElement(top, TopSlot.names, names)
            arena.setElement(top, TopSlot.tables, tables)
            arena.setElement(top, TopSlot.logicalSize, Arena.tag(FileHeader.byteCount))
        } else {
            top = try arena.writableRefs(topRef, growth: 9)
            names = try arena.child(top, TopSlot.names)
            tables = try arena.child(top, TopSlot.tables)
        }
        group = try Group(memory: arena.memory, topRef: top, format: Int(format), previous: previous)
    }

    /// True when anything was changed.
    public var isModified: Bool { !changes.isEmpty || editors.contains { $0?.isModified ?? false } || hasNewTables }
    private var hasNewTables = false

    /// Stores what the table editors hold and returns the top array: the root of what a commit writes.
    public func finish() throws -> Int {
        precondition(orphans.isEmpty, "objects without an owner were not deleted")
        for editor in editors {
            guard let editor, editor.isModified else { continue }
            tables = try arena.writableRefs(tables)
            arena.setElement(tables, editor.table.key.slot, try editor.finish())
        }
        arena.setElement(top, TopSlot.names, names)
        arena.setElement(top, TopSlot.tables, tables)
        return top
    }

    /// The transaction has ended: the table editors, which hold this object, are let go, and nothing can be changed with them.
    func close() {
        isClosed = true
        for editor in editors { editor?.close() }
        editors = []
    }
    @exclusivity(unchecked) private(set) var isClosed = false

    /// Lets slots of the top array be set by the history; grows it with zeros.
    func setTopElement(_ slot: Int, _ value: Int64) throws {
        if arena.header(top).count <= slot {
            let missing = slot + 1 - arena.header(top).count
            top = try arena.writableRefs(top, growth: missing)
            for _ in 0..<missing { arena.insertElement(top, arena.header(top).count, 0) }
        }
        arena.setElement(top, slot, value)
    }

    func topElement(_ slot: Int) -> Int64 { slot < arena.header(top).count ? arena.element(top, slot) : 0 }

    /// A salt for a new nested collection. The original gives 8 bits below 16 siblings and 16 below 4096 (file-format-2 5.7),
    /// which is enough to tell siblings apart. Ours have 32, as its own have from there on: whoever holds a collection that was
    /// replaced must not find the new one in its place, also transactions later.
    func nextSalt(isTaken: (Int64) throws -> Bool) rethrows -> Int64 {
        saltState &+= 0x9E37_79B9_7F4A_7C15
        var z = saltState
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        z ^= z >> 31
        var salt = Int64(Int32(truncatingIfNeeded: z))
        while try salt == 0 || retiredSalts.contains(salt) || isTaken(salt) {
            salt = salt == Int64(Int32.max) ? Int64(Int32.min) : salt + 1
        }
        return salt
    }

    /// The collection with this salt goes, and another one may come in its place; 0 is none.
    func retireSalt(_ salt: Int64) {
        if salt == 0 { return }
        if retiredSalts.count == Self.retiredSaltCountMax { retiredSalts.removeFirst() }
        retiredSalts.append(salt)
    }

    // MARK: Tables

    /// The editor of a table.
    /// - Throws: `TableError.noSuchTable`.
    public func editor(_ key: TableKey) throws -> TableEditor {
        if key.slot < editors.count, let editor = editors[key.slot], editor.table.key == key { return editor }
        guard let table = try group.table(key) else { throw TableError.noSuchTable("#\(key)") }
        return try adopt(table)
    }

    /// The editor of the table with `name`.
    public func editor(named name: String) throws -> TableEditor {
        guard let table = try group.table(named: name) else { throw TableError.noSuchTable(name) }
        return try editor(table.key)
    }

    private func adopt(_ table: Table) throws -> TableEditor {
        let editor = try TableEditor(self, table)
        while editors.count <= table.key.slot { editors.append(nil) }
        editors[table.key.slot] = editor
        return editor
    }

    static let tableNameByteCountMax = 63

    /// Makes a table without columns (file-format-2 1.4).
    public func createTable(_ name: String, kind: TableKind = .topLevel) throws -> TableEditor {
        try checkTableName(name)
        tables = try arena.writableRefs(tables, growth: 1)
        let count = arena.header(tables).count
        var slot = count
        var tag = 0
        for i in 0..<count where arena.element(tables, i) & 1 != 0 {
            slot = i
            tag = Arena.untag(arena.element(tables, i))
            break
        }
        guard slot < Group.tableCountMax else { throw LimitError.valueTooLarge(byteCount: slot + 1, limit: Group.tableCountMax) }
        let key = TableKey(UInt32(tag & 0x7FFF) << 16 | UInt32(slot))
        let tableTop = try TableEditor.createTop(arena, key, kind)
        if slot == count {
            arena.insertElement(tables, slot, Int64(tableTop))
            names = try NameArrayEditor.append(arena, names, name)
        } else {
            arena.setElement(tables, slot, tableTop)
            names = try NameArrayEditor.set(arena, names, slot, name)
        }
        changes.insertTable(key)
        hasNewTables = true
        try reloadGroup()
        let editor = try self.editor(key)
        editor.isModified = true
        return editor
    }

    /// Removes a table with all its objects. Refused while another table links to it.
    public func removeTable(_ key: TableKey) throws {
        let editor = try editor(key)
        for column in editor.table.backlinkColumns where column.oppositeTable != key {
            if let origin = try group.table(column.oppositeTable), origin.column(column.oppositeColumn) != nil {
                throw TableError.tableIsLinkedTo(table: editor.table.name, by: origin.name)
            }
        }
        try editor.removeAllLinksOut()
        try editor.eraseOppositeColumns()
        changes.eraseTable(key)
        try editor.releaseAll()
        editors[key.slot] = nil
        tables = try arena.writableRefs(tables)
        arena.setElement(tables, key.slot, Arena.tag(Int((key.rawValue >> 16) + 1 & 0x7FFF)))
        names = try NameArrayEditor.set(arena, names, key.slot, "")
        hasNewTables = true
        try deleteOrphans()
        try reloadGroup()
    }

    /// Gives a table another name; its key stays.
    public func renameTable(_ key: TableKey, to name: String) throws {
        let editor = try editor(key)
        if editor.table.name.isSame(as: name) { return }
        try checkTableName(name)
        names = try NameArrayEditor.set(arena, names, key.slot, name)
        changes.renameTable(key)
        hasNewTables = true
        editors[key.slot] = nil
        if editor.isModified {
            tables = try arena.writableRefs(tables)
            arena.setElement(tables, key.slot, try editor.finish())
        }
        try reloadGroup()
    }

    private func checkTableName(_ name: String) throws {
        guard (1...Self.tableNameByteCountMax).contains(name.utf8.count) else {
            throw TableError.badName(name, byteCountMax: Self.tableNameByteCountMax)
        }
        if try group.table(named: name) != nil { throw TableError.nameTaken(name) }
    }

    private func reloadGroup() throws {
        arena.setElement(top, TopSlot.names, names)
        arena.setElement(top, TopSlot.tables, tables)
        try group.reloadList(topRef: top, keeping: editors.compactMap { $0.map { ($0.table, $0.top) } })
    }

    // MARK: Orphans

    /// Deletes what lost its last owner, and what that leaves behind. Called at the end of each outermost operation.
    @inline(__always)
    func deleteOrphans() throws {
        if !orphans.isEmpty { try deleteAllOrphans() }
    }

    @inline(never)
    private func deleteAllOrphans() throws {
        if isDeletingOrphans { return }
        isDeletingOrphans = true
        defer { isDeletingOrphans = false }
        while let (table, key) = orphans.popLast() {
            let editor = try editor(table)
            if try editor.table.find(key) != nil { try editor.deleteRow(key) }
        }
    }
}
