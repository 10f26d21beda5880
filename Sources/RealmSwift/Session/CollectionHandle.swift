internal import CShims
internal import SharedStore

/// A list, set or dictionary of a file: where it stands, and what was read of it last.
///
/// Collections nested in Mixed values are named by the salts of the elements that enclose them, which stay when positions move.
/// The outermost one of a property has a salt too, by which it is told from another one that comes in its place.
@usableFromInline
final class CollectionHandle: _Elements {
    let session: Session
    let type: SessionType
    /// The owner's block when the handle was made: dead once the owner's accessors are.
    private let block: UnsafeMutablePointer<TableBlock>
    let identity: TableEditor.Identity
    let kind: CollectionKind
    /// The salt of the outermost collection of a Mixed property; 0 for other properties.
    private let rootSalt: Int64
    // What was read; holds for `stamp`. That of a frozen session is filled in `init`.
    @exclusivity(unchecked) private var stamp: UInt64 = 0
    @exclusivity(unchecked) private var list: ListReader?
    @exclusivity(unchecked) private var set: SetReader?
    @exclusivity(unchecked) private var dictionary: DictionaryReader?
    @exclusivity(unchecked) private var spares = SpareAccessors()
    /// The leaf of integers or links that was read last, and the position of its first element; of a live session only.
    @exclusivity(unchecked) private var intLeaf: IntLeaf?
    @exclusivity(unchecked) private var linkLeaf: KeyLeaf?
    @exclusivity(unchecked) private var leafStart = 0

    init(_ type: SessionType, _ identity: TableEditor.Identity, _ kind: CollectionKind, rootSalt: Int64 = 0) {
        session = type.session
        self.type = type
        block = type.block
        self.identity = identity
        self.kind = kind
        self.rootSalt = rootSalt
        super.init()
        if session.isFrozen, let table = type.table() {
            reading { _ = try read(table) }
            stamp = block.pointee.stamp
        }
    }

    // MARK: Finding it

    @inline(__always)
    private func ready() {
        if block.pointee.needsCheck(stamp) { locate() }
    }

    @inline(never)
    private func locate() {
        session.checkConfinement()
        if stamp == block.pointee.stamp && stamp != 0 { return }
        guard !block.pointee.isDead, let table = type.table(), reading({ try read(table) }) else {
            misuse("Access to invalidated \(kindName) object: its owner was deleted or the Realm invalidated")
        }
        stamp = block.pointee.stamp
    }

    /// Finds the collection; false where it is gone.
    private func read(_ table: Table) throws -> Bool {
        list = nil
        intLeaf = nil
        linkLeaf = nil
        dictionary = nil
        guard let row = try table.find(identity.object), let column = table.column(identity.column) else { return false }
        var found: Nested
        switch column.collection {
        case .list: found = .list(try row.list(column))
        case .set:
            let reader = try row.set(column)
            set = reader
            found = .list(reader.elements)
        case .dictionary: found = .dictionary(try row.dictionary(column))
        case nil:
            switch try row.mixed(column) {
            case .list: found = .list(try row.list(column))
            case .dictionary: found = .dictionary(try row.dictionary(column))
            default: return false
            }
            if try row.nestedKey(column) != rootSalt { return false }
        }
        for salt in identity.salts {
            guard let next = try found.nested(salt) else { return false }
            found = next
        }
        switch (found, kind) {
        case (.list(let reader), .list), (.list(let reader), .set): list = reader
        case (.dictionary(let reader), .dictionary): dictionary = reader
        default: return false
        }
        return true
    }

    private enum Nested {
        case list(ListReader)
        case dictionary(DictionaryReader)

        func nested(_ salt: Int64) throws -> Nested? {
            switch self {
            case .list(let reader):
                guard reader.elementType == .mixed, let position = try reader.position(ofNestedKey: salt) else { return nil }
                return switch try reader.value(position) {
                case .list: .list(try reader.list(position))
                case .dictionary: .dictionary(try reader.dictionary(position))
                default: nil
                }
            case .dictionary(let reader):
                guard let position = try reader.position(ofNestedKey: salt) else { return nil }
                return switch try reader.value(position) {
                case .list: .list(try reader.list(position))
                case .dictionary: .dictionary(try reader.dictionary(position))
                default: nil
                }
            }
        }
    }

    /// The collection that a Mixed property holds, nil where it holds something else.
    static func inMixed(_ value: Mixed, _ row: ObjectRow, _ column: Column, _ type: SessionType) throws -> _Stored? {
        guard value == .list || value == .dictionary else { return nil }
        let handle = CollectionHandle(
            type, TableEditor.Identity(table: type.tableKey, object: row.key, column: column.key),
            value == .list ? .list : .dictionary, rootSalt: try row.nestedKey(column))
        return value == .list ? _Stored(.list(List(handle))) : _Stored(.dictionary(Map(handle)))
    }

    var isInvalidated: Bool {
        if block.pointee.isDead || session.isClosed { return true }
        if session.isFrozen { return list == nil && dictionary == nil }
        guard let table = type.table() else { return true }
        if stamp == block.pointee.stamp { return false }
        if reading({ try read(table) }) {
            stamp = block.pointee.stamp
            return false
        }
        return true
    }

    var realm: Realm? { isInvalidated ? nil : Realm(session) }

    private var kindName: String {
        switch kind {
        case .list: "List"
        case .set: "MutableSet"
        case .dictionary: "Map"
        }
    }

    static func isSame(_ a: CollectionHandle?, _ b: CollectionHandle?) -> Bool {
        guard let a, let b else { return false }
        return a.session === b.session && a.identity == b.identity && a.rootSalt == b.rootSalt
    }

    static func frozen(_ handle: CollectionHandle?) -> CollectionHandle {
        guard let handle else { misuse("Unmanaged collections cannot be frozen") }
        if handle.session.isFrozen { return handle }
        return handle.moved(to: handle.session.frozen())
    }

    static func thawed(_ handle: CollectionHandle?) -> CollectionHandle? {
        guard let handle else { misuse("Unmanaged collections cannot be thawed") }
        if !handle.session.isFrozen { return handle }
        let thawed = handle.moved(to: handle.session.thawed())
        return thawed.isInvalidated ? nil : thawed
    }

    /// The same collection in another session of the same file.
    func moved(to session: Session) -> CollectionHandle {
        guard let type = session.type(identity.table) else {
            misuse("The class '\(type.name)' is not in the schema of the Realm")
        }
        return CollectionHandle(type, identity, kind, rootSalt: rootSalt)
    }

    // MARK: Reading

    /// The elements of a list or a set as the engine reads them.
    var reader: ListReader? {
        ready()
        return list
    }

    var count: Int {
        ready()
        return list?.count ?? dictionary?.count ?? 0
    }

    /// Element `index` of a list or a set, value `index` of a dictionary.
    override func value(_ index: Int) -> _Stored {
        ready()
        if let dictionary, index >= 0, index < dictionary.count {
            return reading { try stored(dictionary.value(index)) { try dictionary.nestedKey(index) } }
        }
        guard let list, index >= 0, index < list.count else { outOfBounds(index, list?.count ?? 0) }
        return reading { try stored(list.value(index)) { try list.nestedKey(index) } }
    }

    override func object(_ index: Int, as wanted: ObjectBase.Type) -> ObjectBase {
        ready()
        guard let list, list.elementType == .link, let target = session.type(list.targetTable), target.makes(wanted) else {
            return super.object(index, as: wanted)
        }
        guard index >= 0 && index < list.count else { outOfBounds(index, list.count) }
        return reading {
            let key = try link(index, list)
            let row = try target.table()?.find(key)
            if session.isFrozen { return row.map { target.makeAccessor($0) } ?? target.makeAccessor(key) }
            if let row { return target.accessor(row, &spares) }
            return target.accessor(key, &spares)
        }
    }

    /// The object that an element of a list of links leads to; the position is one of the list's.
    @inline(__always)
    private func link(_ index: Int, _ list: ListReader) throws -> ObjectKey {
        let offset = index &- leafStart
        if let linkLeaf, UInt(bitPattern: offset) < UInt(bitPattern: linkLeaf.count) { return linkLeaf.unchecked(offset) }
        // Objects that are gone are left out, and positions in the file are other ones.
        if session.isFrozen || list.count != list.storedCount { return try list.link(index) }
        let (leaf, start) = try list.tree(KeyLeaf.self).leaf(containing: index)
        linkLeaf = leaf
        leafStart = start
        return leaf.unchecked(index - start)
    }

    override func int(_ index: Int) -> Int64? {
        ready()
        let offset = index &- leafStart
        if let intLeaf, UInt(bitPattern: offset) < UInt(bitPattern: intLeaf.count) { return intLeaf.unchecked(offset) }
        return intSlowly(index)
    }

    @inline(never)
    private func intSlowly(_ index: Int) -> Int64? {
        guard let list, kind == .list, list.elementType == .int, !list.isNullable else { return nil }
        if index < 0 || index >= list.count { outOfBounds(index, list.count) }
        return reading {
            let (leaf, start) = try list.tree(IntLeaf.self).leaf(containing: index)
            if !session.isFrozen {
                intLeaf = leaf
                leafStart = start
            }
            return leaf.unchecked(index - start)
        }
    }

    override func ints() -> [Int]? {
        ready()
        guard let list, list.elementType == .int, !list.isNullable else { return nil }
        return reading {
            var values: [Int] = []
            values.reserveCapacity(list.count)
            try list.tree(IntLeaf.self).forEachLeaf { leaf, _ in
                for index in 0..<leaf.count { values.append(Int(truncatingIfNeeded: leaf.unchecked(index))) }
            }
            return values
        }
    }

    /// A value that was read from the collection; where it is a collection itself, `salt` names it.
    private func stored(_ value: Mixed, _ salt: () throws -> Int64) rethrows -> _Stored {
        switch value {
        case .list: return _Stored(.list(List(try nested(salt(), .list))))
        case .dictionary: return _Stored(.dictionary(Map(try nested(salt(), .dictionary))))
        default: return _Stored(value, in: session)
        }
    }

    private func nested(_ salt: Int64, _ kind: CollectionKind) -> CollectionHandle {
        var identity = identity
        identity.salts.append(salt)
        return CollectionHandle(type, identity, kind, rootSalt: rootSalt)
    }

    /// The elements as they are now.
    func cursor<Element: RealmCollectionValue>(_ element: Element.Type) -> _Cursor {
        ready()
        guard let list else { return _ValueCursor<Element>([]) }
        return reading {
            if list.elementType == .link { return _Cursor.over(session, list.targetTable, keys: try linkKeys(), as: element) }
            if let cursor = Element._cursor(self) { return cursor }
            var elements: [Element] = []
            elements.reserveCapacity(list.count)
            var index = 0
            try list.forEach { value in
                elements.append(Element._from(try stored(value) { try list.nestedKey(index) }))
                index += 1
            }
            return _ValueCursor(elements)
        }
    }

    // MARK: For results

    /// The class of the objects that the collection holds; nil for a collection of values.
    var elementType: SessionType? {
        guard identity.salts.isEmpty, let table = type.table(), let column = table.column(identity.column), column.type == .link
        else { return nil }
        return session.type(column.oppositeTable)
    }

    /// The objects of a list, a set or the values of a dictionary, in their order there.
    func linkKeys() throws -> [ObjectKey] {
        ready()
        var keys: [ObjectKey] = []
        if let list {
            keys.reserveCapacity(list.count)
            try list.forEachLink { keys.append($0) }
        } else if let dictionary {
            for index in 0..<dictionary.count {
                if case .link(_, let key) = try dictionary.value(index) { keys.append(key) }
            }
        }
        return keys
    }

    /// Element `index`, or value `index` of a dictionary, as it is stored.
    func plainValue(_ index: Int) throws -> Mixed {
        ready()
        if let list { return try list.value(index) }
        return try dictionary?.value(index) ?? .null
    }

    // MARK: Sets

    func contains(_ stored: _Stored) -> Bool { position(of: stored) != nil }

    /// The position of a value in a set, of its first occurrence in a list; nil for objects that are not in this Realm.
    func position(of stored: _Stored) -> Int? {
        ready()
        guard let list, let value = session.comparable(stored) else { return nil }
        return reading {
            if let set { return try set.find(value) }
            for index in 0..<list.count where Mixed.compare(try list.value(index), value) == 0 { return index }
            return nil
        }
    }

    // MARK: Dictionaries

    func keys() -> [String] {
        ready()
        guard let dictionary else { return [] }
        return reading { try (0..<dictionary.count).map { try key(dictionary, $0) } }
    }

    private func key(_ dictionary: DictionaryReader, _ index: Int) throws -> String {
        switch try dictionary.key(index) {
        case .string(let text): text
        case .int(let number): String(number)
        default: ""
        }
    }

    func values() -> [_Stored] {
        ready()
        guard let dictionary else { return [] }
        return reading {
            try (0..<dictionary.count).map { index in try stored(dictionary.value(index)) { try dictionary.nestedKey(index) } }
        }
    }

    /// Nil for an absent key.
    func value(forKey key: String) -> _Stored? {
        ready()
        guard let dictionary else { return nil }
        return reading {
            guard let index = try dictionary.find(key) else { return nil }
            return try stored(dictionary.value(index)) { try dictionary.nestedKey(index) }
        }
    }
}
