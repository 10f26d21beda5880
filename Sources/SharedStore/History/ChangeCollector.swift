/// What happened to the objects of one table between two versions.
public struct TableChange: Equatable, Sendable {
    /// Objects that are there now and were not before.
    public internal(set) var insertions: Set<ObjectKey> = []
    /// Objects that were there before and are not now; an object that was made and removed in between is in neither set.
    public internal(set) var deletions: Set<ObjectKey> = []
    /// Objects that were there before and still are, with the columns that were assigned or whose collection changed.
    public internal(set) var modifications: [ObjectKey: Set<ColumnKey>] = [:]
    /// Nothing was made, removed or modified in the end.
    public var isEmpty: Bool { insertions.isEmpty && deletions.isEmpty && modifications.isEmpty }
    /// No change.
    public init() {}

    mutating func create(_ key: ObjectKey) { insertions.insert(key) }

    mutating func modify(_ key: ObjectKey, _ column: ColumnKey) {
        if !insertions.contains(key) { modifications[key, default: []].insert(column) }
    }

    mutating func remove(_ key: ObjectKey) {
        modifications[key] = nil
        if insertions.remove(key) == nil { deletions.insert(key) }
    }
}

/// The net change between two versions: per table the objects, per collection the positions (file-format-3 6.6).
public struct ChangeSet: Equatable, Sendable {
    /// By table; of a table that only its schema changed there is no entry.
    public internal(set) var tables: [TableKey: TableChange] = [:]
    /// Only the collections that were asked for.
    public internal(set) var collections: [ChangesetWriter.CollectionIdentity: CollectionChange] = [:]
    /// Tables or columns were added, or a Mixed column links to a table for the first time: read the schema again.
    public internal(set) var schemaWasExtended = false
    /// Tables or columns were removed or renamed: a program with a fixed schema cannot follow.
    public internal(set) var schemaWasChanged = false
    /// No change.
    public init() {}
    /// Nothing happened that anybody must know, to the schema neither.
    public var isEmpty: Bool {
        tables.values.allSatisfy(\.isEmpty) && collections.values.allSatisfy(\.isEmpty) && !schemaWasExtended && !schemaWasChanged
    }
}

/// Reduces changesets, fed in order of their versions, to one net change.
///
/// Tables are collected all, or those of a filter. A collection is collected when it was registered before parsing begins;
/// with `collectsAllCollections` every collection that is touched is.
public struct ChangeCollector {
    /// What the changesets so far come to; `finish` drops what moved nothing.
    public private(set) var changes = ChangeSet()
    private let tableFilter: Set<TableKey>?
    private let collectsAllCollections: Bool
    private var registered: [TableKey: [ObjectKey: [ChangesetWriter.CollectionIdentity]]] = [:]
    private var table: TableKey?
    private var target: ChangesetWriter.CollectionIdentity?

    /// `tables` nil collects every table.
    public init(
        tables: Set<TableKey>? = nil, collections: [ChangesetWriter.CollectionIdentity] = [], collectsAllCollections: Bool = false
    ) {
        tableFilter = tables
        self.collectsAllCollections = collectsAllCollections
        for c in collections where !(registered[c.table]?[c.object]?.contains(c) ?? false) {
            registered[c.table, default: [:]][c.object, default: []].append(c)
            changes.collections[c] = CollectionChange()
        }
    }

    /// Adds one changeset. Selections are not reset between changesets, writers always select anew.
    public mutating func add(_ bytes: UnsafeRawBufferPointer) throws {
        var parser = ChangesetParser(bytes)
        while let instruction = try parser.next() { try apply(instruction) }
    }

    /// Drops moves that moved nothing and returns the result.
    public mutating func finish() -> ChangeSet {
        for key in changes.collections.keys { changes.collections[key]!.finish() }
        return changes
    }

    private mutating func apply(_ instruction: ChangesetInstruction) throws {
        switch instruction {
        case .insertTable: changes.schemaWasExtended = true
        case .insertColumn, .typedLinkChange: changes.schemaWasExtended = true
        case .eraseTable, .renameTable, .eraseColumn, .renameColumn: changes.schemaWasChanged = true
        case .selectTable(let key):
            table = key
            target = nil
        case .createObject(let key): try withTable { $0.create(key) }
        case .removeObject(let key):
            try withTable { $0.remove(key) }
            for identity in registered[table!]?[key] ?? [] {
                var change = CollectionChange()
                change.ownerWasDeleted = true
                changes.collections[identity] = change
            }
            if collectsAllCollections {
                let t = table!
                for identity in changes.collections.keys where identity.table == t && identity.object == key {
                    changes.collections[identity] = nil
                }
            }
            target = nil
        case .set(let column, let key): try withTable { $0.modify(key, column) }
        case .selectCollection(let column, let key, let salts):
            try withTable { $0.modify(key, column) }
            select(ChangesetWriter.CollectionIdentity(table: table!, object: key, column: column, salts: salts))
        case .collectionInsert(let i): withTarget { $0.insert(i) }
        case .collectionSet(let i): withTarget { $0.set(i) }
        case .collectionMove(let from, let to): withTarget { if from != to { $0.move(from: from, to: to) } }
        case .collectionErase(let i): withTarget { $0.erase(i) }
        case .collectionClear(let n): withTarget { $0.clear(oldCount: n) }
        }
    }

    private mutating func withTable(_ body: (inout TableChange) -> Void) throws {
        guard let table else { throw ChangesetError(offset: 0, reason: "an object instruction before any table was selected") }
        if let tableFilter, !tableFilter.contains(table) { return }
        body(&changes.tables[table, default: TableChange()])
    }

    private mutating func withTarget(_ body: (inout CollectionChange) -> Void) {
        guard let target else { return }
        body(&changes.collections[target, default: CollectionChange()])
    }

    private mutating func select(_ selected: ChangesetWriter.CollectionIdentity) {
        target = nil
        if collectsAllCollections {
            target = selected
            return
        }
        for identity in registered[selected.table]?[selected.object] ?? [] where identity.column == selected.column {
            if identity.salts.count == selected.salts.count {
                if identity.salts == selected.salts { target = identity }
            } else if identity.salts.count < selected.salts.count && selected.salts.starts(with: identity.salts) {
                changes.collections[identity]!.modifiedSalts.insert(selected.salts[identity.salts.count])
            }
        }
    }
}
