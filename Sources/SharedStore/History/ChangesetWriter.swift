/// Collects the changeset of one write transaction, exactly what peers expect to parse (file-format-3 6.4).
///
/// An index always refers to the state of its collection at that moment, and every changeset selects before it uses: no
/// selection is carried over from the one before.
public struct ChangesetWriter {
    /// The changeset so far, without a selection left over from another one.
    public private(set) var bytes: [UInt8] = []
    private var table: TableKey?
    private var object: (TableKey, ObjectKey)?
    private var collection: CollectionIdentity?
    /// By table slot: the object created last, whose changes need no entry since observers report it as inserted.
    private var fresh: [Int64] = []

    /// Where a collection stands: table, object, property, and the salts of the Mixed elements that enclose it.
    public struct CollectionIdentity: Hashable, Sendable {
        /// Of the object that owns the collection.
        public var table: TableKey
        /// The object in whose property the outermost collection is.
        public var object: ObjectKey
        /// The property.
        public var column: ColumnKey
        /// From outside inwards, one for each Mixed element that encloses the collection; none for the collection of the property
        /// itself.
        public var salts: [Int64]
        /// No value is checked against a file.
        public init(table: TableKey, object: ObjectKey, column: ColumnKey, salts: [Int64] = []) {
            self.table = table
            self.object = object
            self.column = column
            self.salts = salts
        }
    }

    /// The changeset of a small transaction fits at once, and need not grow several times.
    public init() { bytes.reserveCapacity(64) }

    /// Begins the next transaction's changeset; storage is kept.
    public mutating func reset() {
        bytes.removeAll(keepingCapacity: true)
        table = nil
        object = nil
        collection = nil
        for i in fresh.indices { fresh[i] = -1 }
    }

    /// Nothing was written since the last transaction began.
    public var isEmpty: Bool { bytes.isEmpty }

    // MARK: Schema

    /// A class was added, by the key that it was given.
    public mutating func insertTable(_ key: TableKey) { schema(ChangesetOpcode.insertTable, key) }
    /// A class was removed, and its objects with it.
    public mutating func eraseTable(_ key: TableKey) { schema(ChangesetOpcode.eraseTable, key) }
    /// The name changed; the changeset does not say to what.
    public mutating func renameTable(_ key: TableKey) { schema(ChangesetOpcode.renameTable, key) }

    private mutating func schema(_ opcode: UInt8, _ key: TableKey) {
        table = nil
        collection = nil
        object = nil
        bytes.append(opcode)
        encode(Int64(key.rawValue))
    }

    /// A property was added; the key says its type.
    public mutating func insertColumn(_ column: ColumnKey, in table: TableKey) {
        columnChange(ChangesetOpcode.insertColumn, column, table)
    }
    /// A property was removed with all its values.
    public mutating func eraseColumn(_ column: ColumnKey, in table: TableKey) {
        columnChange(ChangesetOpcode.eraseColumn, column, table)
    }
    /// The name changed; the changeset does not say to what.
    public mutating func renameColumn(_ column: ColumnKey, in table: TableKey) {
        columnChange(ChangesetOpcode.renameColumn, column, table)
    }

    private mutating func columnChange(_ opcode: UInt8, _ column: ColumnKey, _ table: TableKey) {
        select(table)
        bytes.append(opcode)
        encode(column.rawValue)
    }

    /// A Mixed property links to objects of `target` for the first time: `target` has a column of backlinks more (file-format-3
    /// 6.2).
    public mutating func typedLinkChange(_ column: ColumnKey, in table: TableKey, to target: TableKey) {
        select(table)
        bytes.append(ChangesetOpcode.typedLinkChange)
        encode(column.rawValue)
        encode(Int64(target.rawValue))
    }

    // MARK: Objects

    /// An object with a key that the table assigned. `isLogged` is false for embedded objects, whose creation is not logged.
    public mutating func createObject(_ key: ObjectKey, in table: TableKey, isLogged: Bool = true) {
        if isLogged {
            select(table)
            bytes.append(ChangesetOpcode.createObject)
            encode(key.rawValue)
        }
        while fresh.count <= table.slot { fresh.append(-1) }
        fresh[table.slot] = key.rawValue
    }

    /// Its collections end with it, without instructions of their own.
    public mutating func removeObject(_ key: ObjectKey, in table: TableKey) {
        select(table)
        bytes.append(ChangesetOpcode.removeObject)
        encode(key.rawValue)
        if isFresh(table, key) { fresh[table.slot] = -1 }
        if let o = object, o == (table, key) { object = nil; collection = nil }
    }

    /// An assignment to a property, whatever its value.
    public mutating func set(_ column: ColumnKey, of key: ObjectKey, in table: TableKey) {
        guard selectObject(table, key) else { return }
        bytes.append(ChangesetOpcode.set)
        encode(column.rawValue)
        encode(key.rawValue)
    }

    // MARK: Collections

    /// An element that is at `index` now.
    public mutating func collectionInsert(_ index: Int, _ identity: CollectionIdentity) {
        change(ChangesetOpcode.collectionInsert, identity, index)
    }
    /// The element at `index` was replaced.
    public mutating func collectionSet(_ index: Int, _ identity: CollectionIdentity) {
        change(ChangesetOpcode.collectionSet, identity, index)
    }
    /// The element that was at `index`.
    public mutating func collectionErase(_ index: Int, _ identity: CollectionIdentity) {
        change(ChangesetOpcode.collectionErase, identity, index)
    }
    /// All elements.
    ///
    /// - Parameter oldCount: how many there were.
    public mutating func collectionClear(oldCount: Int, _ identity: CollectionIdentity) {
        change(ChangesetOpcode.collectionClear, identity, oldCount)
    }

    /// `to` is the position after the element was taken out.
    public mutating func collectionMove(from: Int, to: Int, _ identity: CollectionIdentity) {
        guard from != to, select(identity) else { return }
        bytes.append(ChangesetOpcode.collectionMove)
        encode(Int64(from))
        encode(Int64(to))
    }

    /// Two elements that change places are two moves.
    public mutating func collectionSwap(_ a: Int, _ b: Int, _ identity: CollectionIdentity) {
        let low = min(a, b), high = max(a, b)
        guard low != high else { return }
        collectionMove(from: high, to: low, identity)
        if low + 1 != high { collectionMove(from: low + 1, to: high, identity) }
    }

    private mutating func change(_ opcode: UInt8, _ identity: CollectionIdentity, _ operand: Int) {
        guard select(identity) else { return }
        bytes.append(opcode)
        encode(Int64(operand))
    }

    // MARK: Selections

    private func isFresh(_ table: TableKey, _ key: ObjectKey) -> Bool {
        table.slot < fresh.count && fresh[table.slot] == key.rawValue
    }

    private mutating func select(_ key: TableKey) {
        if table == key { return }
        bytes.append(ChangesetOpcode.selectTable)
        bytes.append(0)
        encode(Int64(key.rawValue))
        table = key
        object = nil
        collection = nil
    }

    private mutating func selectObject(_ t: TableKey, _ key: ObjectKey) -> Bool {
        if isFresh(t, key) { return false }
        if let o = object, o == (t, key), table == t { return true }
        select(t)
        object = (t, key)
        collection = nil
        return true
    }

    private mutating func select(_ identity: CollectionIdentity) -> Bool {
        if isFresh(identity.table, identity.object) { return false }
        if collection == identity && table == identity.table { return true }
        guard selectObject(identity.table, identity.object) else { return false }
        bytes.append(identity.salts.isEmpty ? ChangesetOpcode.selectCollection : ChangesetOpcode.selectCollectionByPath)
        encode(identity.column.rawValue)
        encode(identity.object.rawValue)
        if !identity.salts.isEmpty {
            encode(Int64(identity.salts.count))
            for salt in identity.salts { encode(salt) }
        }
        collection = identity
        return true
    }

    private mutating func encode(_ value: Int64) {
        let negative = value < 0
        var v = UInt64(bitPattern: negative ? ~value : value)
        while v >= 64 {
            bytes.append(UInt8(truncatingIfNeeded: v) | 0x80)
            v >>= 7
        }
        bytes.append(UInt8(v) | (negative ? 0x40 : 0))
    }
}
