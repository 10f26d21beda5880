internal import SharedStore

/// What a `Results` refers to: where its elements come from, and the elements of the last evaluation.
///
/// All objects of a class are not evaluated: they are read from the table. Everything else is evaluated when it is asked for
/// and something has changed since. Belongs to the place of its session; that of a frozen session is evaluated when it is made.
final class ResultsCore {
    enum Source {
        /// The objects of a class; null: the file has no table for it.
        case table(TableKey)
        case collection(CollectionHandle)
        /// The objects that link to an object. The block tells whether its accessors still live.
        case backlinks(of: TableKey, ObjectKey, from: TableKey, ColumnKey, UnsafeMutablePointer<TableBlock>)
    }

    let session: Session
    let source: Source
    @exclusivity(unchecked) private var content: Content = .none
    /// Of the session's content when `content` was made.
    @exclusivity(unchecked) private var contentStamp: UInt64 = 0

    enum Content {
        case none
        /// Keys of objects of one table.
        case keys(TableKey, [ObjectKey])
        /// Positions in a collection of values.
        case positions(CollectionHandle, [Int])
    }

    init(_ session: Session, _ source: Source) {
        self.session = session
        self.source = source
        if session.isFrozen { evaluate() }
    }

    // MARK: Evaluation

    private func evaluate() {
        content = reading { try makeContent() }
        contentStamp = session.contentStamp
    }

    private func current() -> Content {
        if session.isFrozen { return content }
        session.checkConfinement()
        if contentStamp != session.contentStamp { evaluate() }
        return content
    }

    private func makeContent() throws -> Content {
        switch source {
        case .table(let key):
            guard let table = session.type(key)?.table() else { return .none }
            var keys: [ObjectKey] = []
            keys.reserveCapacity(table.objectCount)
            try table.forEachLeaf { leaf in
                for row in 0..<leaf.count { keys.append(leaf.key(row)) }
            }
            return .keys(key, keys)
        case .collection(let handle):
            if handle.isInvalidated { return .none }
            guard let list = handle.reader else { return .none }
            if list.elementType == .link {
                var keys: [ObjectKey] = []
                try list.forEachLink { keys.append($0) }
                return .keys(list.targetTable, keys)
            }
            return .positions(handle, Array(0..<list.count))
        case .backlinks(let target, let object, let origin, let column, let block):
            guard !block.pointee.isDead, let table = session.type(target)?.table(), let row = try table.find(object),
                  let backlinks = table.backlinkColumns.first(where: { $0.oppositeTable == origin && $0.oppositeColumn == column }) else { return .none }
            return .keys(origin, try row.backlinks(backlinks))
        }
    }

    // MARK: Elements

    var count: Int {
        if !session.isFrozen, case .table(let key) = source {
            session.checkConfinement()
            return session.isClosed ? 0 : session.type(key)?.table()?.objectCount ?? 0
        }
        switch current() {
        case .none: return 0
        case .keys(_, let keys): return keys.count
        case .positions(_, let positions): return positions.count
        }
    }

    func value(_ index: Int) -> _Stored {
        switch current() {
        case .none: outOfBounds(index, 0)
        case .keys(let table, let keys):
            guard index >= 0 && index < keys.count else { outOfBounds(index, keys.count) }
            return session.link(table, keys[index].rawValue)
        case .positions(let handle, let positions):
            guard index >= 0 && index < positions.count else { outOfBounds(index, positions.count) }
            return handle.value(positions[index])
        }
    }

    func iteration<Element: RealmCollectionValue>() -> _IterationSource<Element> {
        switch current() {
        case .none: return _IterationSource([])
        case .keys(let table, let keys): return _IterationSource(session, table, keys: keys.map(\.rawValue))
        case .positions(let handle, let positions): return _IterationSource(positions.map { Element._from(handle.value($0)) })
        }
    }

    // MARK: Place

    var isInvalidated: Bool {
        if session.isClosed { return true }
        switch source {
        case .table: return false
        case .collection(let handle): return handle.isInvalidated
        case .backlinks(let target, let object, _, _, let block):
            if block.pointee.isDead { return true }
            guard let table = session.type(target)?.table() else { return true }
            return reading { try table.find(object) == nil }
        }
    }

    var realm: Realm? { session.isClosed ? nil : Realm(session) }

    static func isSame(_ a: ResultsCore?, _ b: ResultsCore?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        if a === b { return true }
        guard a.session === b.session else { return false }
        if case .backlinks(let table, let object, let origin, let column, _) = a.source,
           case .backlinks(let otherTable, let otherObject, let otherOrigin, let otherColumn, _) = b.source {
            return table == otherTable && object == otherObject && origin == otherOrigin && column == otherColumn
        }
        return false
    }

    static func frozen(_ core: ResultsCore?) -> ResultsCore {
        guard let core else { misuse("Unmanaged collections cannot be frozen") }
        return core.session.isFrozen ? core : core.moved(to: core.session.frozen())
    }

    static func thawed(_ core: ResultsCore?) -> ResultsCore? {
        guard let core else { misuse("Unmanaged collections cannot be thawed") }
        if !core.session.isFrozen { return core }
        let thawed = core.moved(to: core.session.thawed())
        return thawed.isInvalidated ? nil : thawed
    }

    /// The same elements in another session of the same file.
    func moved(to session: Session) -> ResultsCore {
        switch source {
        case .table: return ResultsCore(session, source)
        case .collection(let handle): return ResultsCore(session, .collection(handle.moved(to: session)))
        case .backlinks(let target, let object, let origin, let column, _):
            guard let type = session.type(target) else { misuse("The class is not in the schema of the Realm") }
            return ResultsCore(session, .backlinks(of: target, object, from: origin, column, type.block))
        }
    }
}
