import Synchronization

/// The tables of one version of a file (file-format-2 section 1).
///
/// Tables are read when they are first asked for and kept. May be used by several threads; in a write transaction, where the
/// writer tells of new refs by `reload`, only by its thread. Group and tables hold on to the owner of the memory.
public final class Group: @unchecked Sendable {
    // Sendable: the cache is behind a lock, the rest changes only in `reload`, which a write transaction calls on its own thread.
    /// The version that the tables are read from, or the working memory of a write transaction.
    public let memory: Memory
    /// The format in the file's header; 0 counts as the current one, since a file without content has none.
    public let format: UInt8
    /// Of the top array.
    @exclusivity(unchecked) public private(set) var topRef: Int
    /// Names of the table slots, "" for a free slot.
    @exclusivity(unchecked) private var names: [String]
    /// Raw entries of the table slots: the ref of a table top, or an odd number for a free slot.
    @exclusivity(unchecked) private var entries: [Int64]
    private let owner: AnyObject?
    /// By slot.
    private let cache = Mutex<[Table?]>([])
    /// What the version before knew of its tables, for those that are the same here.
    private let earlier: [TableSchema]
    /// Ref of the names, 0 where they lie in an arena: they may change there.
    private let namesRef: Int

    static let tableCountMax = 65535

    /// - Parameters:
    ///   - topRef: ref of the top array, 0 for a file without content.
    ///   - previous: a group of the same file whose version was held, or was the newest, until this version existed; see
    ///     `TableSchema`.
    ///   - owner: an object whose life keeps the memory readable; nil where the caller sees to that.
    public init(memory: Memory, topRef: Int, format: Int, owner: AnyObject? = nil, previous: Group? = nil) throws {
        self.memory = memory
        self.owner = owner
        self.topRef = topRef
        self.format = format == 0 ? FileHeader.currentFormat : UInt8(clamping: format)
        earlier = previous.map { $0.cache.withLock { $0.compactMap { $0?.schema } } } ?? []
        let namesRef = topRef == 0 ? 0 : try memory.refs(topRef, "group top").requiredRef(TopSlot.names)
        self.namesRef = memory.isInArena(namesRef) ? 0 : namesRef
        let known = previous.flatMap { $0.namesRef == namesRef && namesRef != 0 && !$0.hasNewNames ? $0.names : nil }
        (names, entries) = try Group.read(memory, topRef, names: known)
    }

    /// The names are no longer those at `namesRef`.
    @exclusivity(unchecked) private var hasNewNames = false

    /// Reads the list of tables anew and forgets the tables, after a write transaction changed the top array.
    func reload(topRef: Int) throws {
        (names, entries) = try Group.read(memory, topRef)
        hasNewNames = true
        self.topRef = topRef
        cache.withLock { $0.removeAll() }
    }

    /// Reads the list of tables anew after a writer added, removed or renamed one, and keeps the given tables as they are.
    func reloadList(topRef: Int, keeping tables: [(table: Table, topRef: Int)]) throws {
        (names, entries) = try Group.read(memory, topRef)
        hasNewNames = true
        self.topRef = topRef
        for (table, ref) in tables where table.key.slot < entries.count { entries[table.key.slot] = Int64(ref) }
        cache.withLock { cache in
            cache.removeAll()
            for (table, _) in tables { Group.keep(table, in: &cache) }
        }
    }

    /// Lets the list show a table's new top array, after a write transaction made one.
    func setEntry(_ slot: Int, _ ref: Int) { if slot < entries.count { entries[slot] = Int64(ref) } }

    private static func read(_ memory: Memory, _ topRef: Int, names known: [String]? = nil) throws -> (
        names: [String], entries: [Int64]
    ) {
        if topRef == 0 { return ([], []) }
        let top = try memory.refs(topRef, "group top")
        if !TopSlot.legalCounts.contains(top.count) { throw FormatError(ref: topRef, "group top with \(top.count) elements") }
        let names = try known ?? NameArray.read(memory, top.requiredRef(TopSlot.names), countMax: tableCountMax)
        let tables = try memory.refs(top.requiredRef(TopSlot.tables), "list of tables")
        if names.count != tables.count || names.count > tableCountMax {
            throw FormatError(ref: topRef, "\(names.count) table names for \(tables.count) tables")
        }
        return (names, (0..<tables.count).map { tables.unchecked($0) })
    }

    // MARK: Tables

    /// Keys of all tables, in the order of their slots.
    public func tableKeys() throws -> [TableKey] { try occupiedSlots().map { try key(ofSlot: $0) } }

    /// Names of all tables, in the order of their slots.
    public var tableNames: [String] { occupiedSlots().map { names[$0] } }

    /// The number of tables, those of no class included.
    public var tableCount: Int { occupiedSlots().count }

    private func occupiedSlots() -> [Int] { entries.indices.filter { entries[$0] != 0 && entries[$0] & 1 == 0 } }

    private func key(ofSlot slot: Int) throws -> TableKey {
        let ref = Int(truncatingIfNeeded: entries[slot])
        let key = try memory.refs(ref, "table top").tagged(TableSlot.key)
        guard key & 0xFFFF == slot, key < Int(TableKey.null.rawValue) else {
            throw FormatError(ref: ref, "table in slot \(slot) has the key \(key)")
        }
        return TableKey(UInt32(key))
    }

    /// The table with `name`, or nil.
    public func table(named name: String) throws -> Table? {
        guard let slot = names.firstIndex(where: { $0.isSame(as: name) }), entries[slot] != 0, entries[slot] & 1 == 0 else {
            return nil
        }
        return try table(key(ofSlot: slot))
    }

    /// The table of the object layer's class `name`, or nil.
    public func table(ofClass name: String) throws -> Table? { try table(named: Table.classPrefix + name) }

    /// The table with `key`, or nil where there is none (any more).
    public func table(_ key: TableKey) throws -> Table? {
        let slot = key.slot
        if let table = cache.withLock({ slot < $0.count ? $0[slot] : nil }), table.key == key { return table }
        guard slot < entries.count, entries[slot] != 0, entries[slot] & 1 == 0, try self.key(ofSlot: slot) == key else {
            return nil
        }
        let table = try Table(
            memory: memory, topRef: Int(truncatingIfNeeded: entries[slot]), key: key, name: names[slot],
            format: format, owner: owner, earlier: earlier)
        // Two threads may both have read the table; all get the one that was put here first.
        return cache.withLock {
            if slot < $0.count, let first = $0[slot], first.key == key { return first }
            Group.keep(table, in: &$0)
            return table
        }
    }

    private static func keep(_ table: Table, in cache: inout [Table?]) {
        while cache.count <= table.key.slot { cache.append(nil) }
        cache[table.key.slot] = table
    }

    /// All tables, in the order of their slots.
    public func tables() throws -> [Table] {
        try tableKeys().map { key in
            guard let table = try table(key) else { throw FormatError(ref: topRef, "table \(key) vanished") }
            return table
        }
    }

    // MARK: The rest of the top array

    /// Number of the version; 1 where the file does not say (file-format-2 section 1, slot 6).
    public func version() throws -> UInt64 { max(1, UInt64(try topNumber(TopSlot.version))) }

    /// 0 none, 1 out of realm, 2 local, 3 sync client, 4 sync server.
    public func historyType() throws -> Int { try topNumber(TopSlot.historyType) }

    private func topNumber(_ slot: Int) throws -> Int {
        if topRef == 0 { return 0 }
        return try memory.refs(topRef, "group top").tagged(slot)
    }
}
