internal import SharedStore

/// What a `Results` refers to: where its elements come from, and the elements of the last evaluation.
///
/// All objects of a class are not evaluated: they are read from the table. Everything else is evaluated when it is asked for
/// and something has changed since. Belongs to the place of its session; that of a frozen session is evaluated when it is made.
@usableFromInline
final class ResultsCore: _Elements {
    enum Source {
        /// The objects of a class; null: the file has no table for it.
        case table(TableKey)
        case collection(CollectionHandle)
        /// The objects that link to an object. The block tells whether its accessors still live.
        case backlinks(of: TableKey, ObjectKey, from: TableKey, ColumnKey, UnsafeMutablePointer<TableBlock>)
    }

    let session: Session
    /// Of the session when these results, or those that they were made from, were made.
    private let releaseCount: Int
    let source: Source
    let selection: Selection
    /// The selection, checked against the classes of the Realm; nil where everything is selected as it comes.
    private let query: SharedStore.Query?
    @exclusivity(unchecked) private var content: Content = .none
    /// Of the session's content when `content` was made; 0: not yet.
    @exclusivity(unchecked) private var contentStamp: UInt64 = 0
    @exclusivity(unchecked) private var counted: (stamp: UInt64, count: Int) = (0, 0)
    /// Of all objects of a class in a live session: the leaf that was read last, the position of its first object, and the stamp
    /// for which it is there.
    @exclusivity(unchecked) private var leaf: ClusterLeaf?
    @exclusivity(unchecked) private var leafStart = 0
    @exclusivity(unchecked) private var leafStamp: UInt64 = 0
    @exclusivity(unchecked) private var leafType: SessionType?
    @exclusivity(unchecked) private var spares = SpareAccessors()

    /// Which elements of the source, in which order.
    struct Selection {
        /// All of them hold.
        var filters: [QuerySyntax.Predicate] = []
        /// Applied one after another; sorting is stable, so an earlier one decides where the later one does not.
        var orderings: [QuerySyntax.Ordering] = []
        /// Of values, which have no properties.
        var valueOrderings: [ValueOrdering] = []
        var isEmpty: Bool { filters.isEmpty && orderings.isEmpty && valueOrderings.isEmpty }
    }

    enum ValueOrdering {
        case sort(isAscending: Bool)
        case distinct
    }

    private enum Content {
        case none
        /// Keys of objects of one table.
        case keys(TableKey, [ObjectKey])
        /// Positions in a collection of values.
        case positions(CollectionHandle, [Int])
    }

    /// Stops the process where the selection does not fit the classes of the Realm.
    ///
    /// - Parameter base: the results that these are a selection of.
    init(_ session: Session, _ source: Source, _ selection: Selection = Selection(), of base: ResultsCore? = nil) {
        self.session = session
        releaseCount = base?.releaseCount ?? session.releaseCount
        self.source = source
        self.selection = selection
        if selection.filters.isEmpty && selection.orderings.isEmpty {
            query = nil
        } else {
            query = ResultsCore.compile(selection, ResultsCore.type(source, session), session)
        }
        super.init()
        if session.isFrozen && !isWholeTable { evaluate() }
    }

    /// All objects of a class, which are read from the table.
    private var isWholeTable: Bool {
        if query == nil, case .table = source { return true }
        return false
    }

    /// The class of the elements; nil for a collection of values.
    var type: SessionType? { ResultsCore.type(source, session) }

    private static func type(_ source: Source, _ session: Session) -> SessionType? {
        switch source {
        case .table(let key): return session.type(key)
        case .collection(let handle): return handle.elementType
        case .backlinks(_, _, let origin, _, _): return session.type(origin)
        }
    }

    private static func compile(_ selection: Selection, _ type: SessionType?, _ session: Session) -> SharedStore.Query? {
        guard let type else { return nil }
        let filter: QuerySyntax.Predicate =
            selection.filters.count == 1
            ? selection.filters[0] : selection.filters.isEmpty ? .always(true) : .and(selection.filters)
        do {
            return try SharedStore.Query(
                syntax: QuerySyntax(filter, orderings: selection.orderings), class: type.name, schema: session.querySchema())
        } catch let error as QueryError {
            misuse("Invalid query for '\(type.name)': \(error.message)")
        } catch {
            unreadable(error)
        }
    }

    // MARK: Other selections from the same source

    /// Collections of values have no conditions.
    func requireObjects() {
        if case .collection(let handle) = source, handle.elementType == nil {
            misuse("Querying is currently only implemented for arrays of Realm Objects")
        }
    }

    func filtered(_ predicate: QuerySyntax.Predicate) -> ResultsCore {
        requireObjects()
        // Filters are asked before orderings, which would let others into the limit.
        if selection.orderings.contains(where: { if case .limit = $0 { true } else { false } }) {
            misuse("Results with a LIMIT cannot be filtered further: put the whole condition before the LIMIT")
        }
        var selection = selection
        selection.filters.append(predicate)
        return ResultsCore(session, source, selection, of: self)
    }

    func ordered(_ ordering: QuerySyntax.Ordering) -> ResultsCore {
        var selection = selection
        if case .collection(let handle) = source, handle.elementType == nil {
            selection.valueOrderings.append(ResultsCore.valueOrdering(ordering))
        } else {
            selection.orderings.append(ordering)
        }
        return ResultsCore(session, source, selection, of: self)
    }

    /// Values can be sorted by themselves only.
    private static func valueOrdering(_ ordering: QuerySyntax.Ordering) -> ValueOrdering {
        func requireSelf(_ path: QuerySyntax.Path) {
            if path.steps.count == 1, case .name("self") = path.steps[0] { return }
            misuse("can only sort on 'self' for collections of values")
        }
        switch ordering {
        case .sort(let keys):
            for key in keys { requireSelf(key.path) }
            return .sort(isAscending: keys.first?.isAscending ?? true)
        case .distinct(let paths):
            for path in paths { requireSelf(path) }
            return .distinct
        case .limit: misuse("Collections of values cannot be limited")
        }
    }

    // MARK: Evaluation

    /// The Realm was closed or invalidated, and nothing was read from it since: there are no elements until that is done.
    var isReleased: Bool { session.isClosed || session.isReleased(since: releaseCount) }

    private func evaluate() {
        let isReleased = isReleased
        content = isReleased ? .none : reading { try makeContent() }
        contentStamp = isReleased ? 0 : session.contentStamp
    }

    private func current() -> Content {
        if session.isFrozen { return isWholeTable ? reading { try makeContent() } : content }
        session.checkConfinement()
        if contentStamp != session.contentStamp { evaluate() }
        return content
    }

    private func makeContent() throws -> Content {
        switch source {
        case .table(let key):
            guard let table = session.type(key)?.table() else { return .none }
            if let query { return .keys(key, try query.run(in: session.currentGroup())) }
            var keys: [ObjectKey] = []
            keys.reserveCapacity(table.objectCount)
            try table.forEachLeaf { leaf in
                for row in 0..<leaf.count { keys.append(leaf.key(row)) }
            }
            return .keys(key, keys)
        case .collection(let handle):
            if handle.isInvalidated { return .none }
            if let type = handle.elementType { return .keys(type.tableKey, try select(handle.linkKeys())) }
            return .positions(handle, try select(handle))
        case .backlinks(let target, let object, let origin, let column, let block):
            guard !block.pointee.isDead, let table = session.type(target)?.table(), let row = try table.find(object),
                let backlinks = table.backlinkColumns.first(where: { $0.oppositeTable == origin && $0.oppositeColumn == column })
            else { return .none }
            return .keys(origin, try select(row.backlinks(backlinks)))
        }
    }

    private func select(_ keys: [ObjectKey]) throws -> [ObjectKey] {
        guard let query else { return keys }
        return try query.run(in: session.currentGroup(), over: keys)
    }

    private func select(_ handle: CollectionHandle) throws -> [Int] {
        var positions = Array(0..<handle.count)
        for ordering in selection.valueOrderings {
            let values = try positions.map { try handle.plainValue($0) }
            switch ordering {
            case .sort(let isAscending):
                positions = positions.indices.sorted { a, b in
                    let order = Mixed.compare(values[a], values[b])
                    return order == 0 ? a < b : isAscending ? order < 0 : order > 0
                }.map { positions[$0] }
            case .distinct:
                // Equal values need not be of one case (1 and 1.0), so they are compared and not hashed: sorted first, then
                // neighbours.
                let order = positions.indices.sorted { a, b in
                    let order = Mixed.compare(values[a], values[b])
                    return order == 0 ? a < b : order < 0
                }
                var kept: [Int] = []
                for (i, index) in order.enumerated() where i == 0 || Mixed.compare(values[order[i - 1]], values[index]) != 0 {
                    kept.append(index)
                }
                positions = kept.sorted().map { positions[$0] }
            }
        }
        return positions
    }

    // MARK: Elements

    var count: Int {
        if case .table(let key) = source, query == nil || !session.isFrozen && contentStamp != session.contentStamp {
            session.checkConfinement()
            if isReleased { return 0 }
            guard let query else { return session.type(key)?.table()?.objectCount ?? 0 }
            // Counting needs no list of the objects.
            if counted.stamp != session.contentStamp {
                counted = (session.contentStamp, reading { try query.count(in: session.currentGroup()) })
            }
            return counted.count
        }
        switch current() {
        case .none: return 0
        case .keys(_, let keys): return keys.count
        case .positions(_, let positions): return positions.count
        }
    }

    override func value(_ index: Int) -> _Stored {
        if query == nil, case .table(let key) = source { return session.link(key, row(key, index).key.rawValue) }
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

    /// The row at a position of all objects of a class.
    private func row(_ key: TableKey, _ index: Int) -> ObjectRow {
        session.checkConfinement()
        if let leafType, let leaf, leafStamp == leafType.block.pointee.stamp, index >= leafStart, index - leafStart < leaf.count {
            return leaf.row(index - leafStart)
        }
        let type = isReleased ? nil : session.type(key)
        let table = type?.table()
        guard let type, let table, let (leaf, start) = reading({ try table.leaf(at: index) }) else {
            outOfBounds(index, table?.objectCount ?? 0)
        }
        // Frozen results are read by several threads at once, and note nothing.
        if !session.isFrozen {
            self.leaf = leaf
            leafStart = start
            leafStamp = type.block.pointee.stamp
            leafType = type
        }
        return leaf.row(index - start)
    }

    override func object(_ index: Int, as wanted: ObjectBase.Type) -> ObjectBase {
        if let leafType, let leaf, leafType.makes(wanted), !leafType.block.pointee.needsCheck(leafStamp) {
            let row = index &- leafStart
            if UInt(bitPattern: row) < UInt(bitPattern: leaf.count) { return leafType.accessor(leaf.row(row), &spares) }
        }
        return objectSlowly(index, wanted)
    }

    @inline(never)
    private func objectSlowly(_ index: Int, _ wanted: ObjectBase.Type) -> ObjectBase {
        if query == nil, case .table(let key) = source, let type = session.type(key), type.makes(wanted) {
            let row = row(key, index)
            return session.isFrozen ? type.makeAccessor(row) : type.accessor(row, &spares)
        }
        if case .keys(let table, let keys) = current(), let type = session.type(table), type.makes(wanted) {
            guard index >= 0 && index < keys.count else { outOfBounds(index, keys.count) }
            let row = session.isClosed ? nil : reading { try type.table()?.find(keys[index]) }
            if session.isFrozen { return row.map { type.makeAccessor($0) } ?? type.makeAccessor(keys[index]) }
            return row.map { type.accessor($0, &spares) } ?? type.accessor(keys[index], &spares)
        }
        return super.object(index, as: wanted)
    }

    func cursor<Element: RealmCollectionValue>(_ element: Element.Type) -> _Cursor {
        if query == nil, case .table(let key) = source {
            session.checkConfinement()
            if isReleased { return _ValueCursor<Element>([]) }
            return _Cursor.over(session, key, as: element)
        }
        switch current() {
        case .none: return _ValueCursor<Element>([])
        case .keys(let table, let keys): return _Cursor.over(session, table, keys: keys, as: element)
        case .positions(let handle, let positions): return _ValueCursor(positions.map { Element._from(handle.value($0)) })
        }
    }

    /// The position of an element; nil for objects that are not in this Realm.
    func index(of value: _Stored) -> Int? {
        guard let wanted = session.comparable(value) else { return nil }
        switch current() {
        case .none: return nil
        case .keys(let table, let keys):
            guard case .link(table, let key) = wanted else { return nil }
            return keys.firstIndex(of: key)
        case .positions(let handle, let positions):
            return reading { try positions.firstIndex { Mixed.compare(try handle.plainValue($0), wanted) == 0 } }
        }
    }

    /// An aggregate of a number property of objects that are, or would have to be, read from the table of a class; nil where the
    /// elements are others or are known already.
    func tableAggregate(_ kind: Aggregate, _ property: ManagedProperty?) -> Mixed? {
        guard let property, case .table(let key) = source, !isReleased else { return nil }
        session.checkConfinement()
        if !isWholeTable && (session.isFrozen || contentStamp == session.contentStamp) { return nil }
        guard let table = session.type(key)?.table(), let column = table.column(property.columnKey), column.collection == nil
        else { return nil }
        switch column.type {
        case .int, .float, .double: break
        default: return nil
        }
        let wanted: QuerySyntax.Path.Aggregate =
            switch kind {
            case .min: .min
            case .max: .max
            case .sum: .sum
            case .average: .average
            }
        return reading {
            let query = query ?? SharedStore.Query(table: key, predicate: .always(true))
            return try query.aggregate(wanted, of: QueryProperty(column), in: session.currentGroup())
        }
    }

    /// The values of a property of all elements, or of all elements themselves.
    func forEachValue(_ property: ManagedProperty?, _ body: (Mixed) -> Void) {
        reading {
            switch current() {
            case .none: return
            case .positions(let handle, let positions):
                for position in positions { body(try handle.plainValue(position)) }
            case .keys(let key, let keys):
                guard let property, let table = session.type(key)?.table(), let column = table.column(property.columnKey) else {
                    return
                }
                if isWholeTable {
                    try table.forEachLeaf { leaf in
                        for row in 0..<leaf.count { body(try leaf.row(row).value(column)) }
                    }
                    return
                }
                for key in keys {
                    if let row = try table.find(key) { body(try row.value(column)) }
                }
            }
        }
    }

    // MARK: For observers

    var queryDependencies: QueryDependencies? { query?.dependencies }

    /// The objects are those of a class, each of them once.
    var isOfClass: Bool { if case .table = source { true } else { false } }

    /// What finds the objects; nil where all are taken as they come.
    var observedQuery: SharedStore.Query? { query }

    /// The objects of the version that the session is at, found out by an observer.
    func adopt(_ keys: [ObjectKey]) {
        guard case .table(let key) = source, !isReleased else { return }
        content = .keys(key, keys)
        contentStamp = session.contentStamp
    }

    /// The objects; nil where what they were found in is gone.
    func observedKeys() -> [ObjectKey]? {
        if case .keys(_, let keys) = current() { return keys }
        return nil
    }

    /// The positions of the values in their collection; nil where that is gone.
    func observedPositions() -> [Int]? {
        if case .positions(_, let positions) = current() { return positions }
        return nil
    }

    // MARK: Place

    var isInvalidated: Bool {
        if isReleased { return true }
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
        guard a.session === b.session, a.selection.isEmpty, b.selection.isEmpty else { return false }
        if case .backlinks(let table, let object, let origin, let column, _) = a.source,
            case .backlinks(let otherTable, let otherObject, let otherOrigin, let otherColumn, _) = b.source
        {
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
        case .table: return ResultsCore(session, source, selection)
        case .collection(let handle): return ResultsCore(session, .collection(handle.moved(to: session)), selection)
        case .backlinks(let target, let object, let origin, let column, _):
            guard let type = session.type(target) else { misuse("The class is not in the schema of the Realm") }
            return ResultsCore(session, .backlinks(of: target, object, from: origin, column, type.block), selection)
        }
    }
}
