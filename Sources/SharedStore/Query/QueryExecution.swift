extension Query {
    // MARK: Running

    /// The objects that the query asks for: in the order of their keys, or as its orderings say.
    public func run(in group: Group) throws -> [ObjectKey] { try run(QueryRun(group)) }

    /// The same of some objects only, for example those of a list: in the order given, an object as often as it is given.
    /// Keys without an object are passed over.
    public func run(in group: Group, over keys: some Sequence<ObjectKey>) throws -> [ObjectKey] {
        let run = QueryRun(group)
        let frame = QueryFrame(try run.table(table))
        run.frames = [frame]
        let bound = try run.bind(predicate)
        var found: [ObjectKey] = []
        for key in keys where try frame.move(to: key) {
            if try bound.matches() { found.append(key) }
        }
        return try order(found, run)
    }

    /// How many objects `run` would give.
    public func count(in group: Group) throws -> Int {
        var limit: Int?
        for ordering in orderings {
            switch ordering {
            case .sort: break
            case .distinct: return try run(in: group).count
            case .limit(let n): limit = min(limit ?? n, n)
            }
        }
        let run = QueryRun(group)
        if case .always(let isTrue) = predicate {
            let count = isTrue ? try run.table(table).objectCount : 0
            return limit.map { min($0, count) } ?? count
        }
        var count = 0
        try forEachMatch(run, limit: limit, keys: { count += $0.count }, leaf: { count += try $0.count($1, $2) })
        return limit.map { min($0, count) } ?? count
    }

    /// The least, the greatest, the sum or the mean of a property of the objects that the query asks for.
    ///
    /// Null where there is nothing to compute it of, except that the sum is then 0. The sum of integers wraps around, the mean of
    /// integers and floats is a double. Throws `QueryError` of kind `aggregate` for a property that is neither a number, a date
    /// (least and greatest only) nor an AnyRealmValue.
    public func aggregate(_ aggregate: QuerySyntax.Path.Aggregate, of property: QueryProperty, in group: Group) throws -> Mixed {
        switch property.type {
        case .int, .float, .double, .decimal, .mixed: break
        case .timestamp where aggregate == .min || aggregate == .max: break
        default: throw QueryError(.aggregate, "\(aggregate.rawValue) is not possible for a property of type \(property.type)")
        }
        guard property.collection == nil, property.table == table else {
            throw QueryError(.aggregate, "\(aggregate.rawValue) needs a property of the class itself")
        }
        let run = QueryRun(group)
        let column = try run.column(property)
        var aggregation = Aggregation(aggregate, property.type, isMap: false)
        func add(_ keys: [ObjectKey]) throws {
            for key in keys {
                guard let row = try run.table(table).find(key) else { continue }
                aggregation.add(try run.storage.value(ColumnReader(row.memory, row.cluster, column), row.index, column))
            }
        }
        let isSelection = orderings.contains { ordering in
            if case .sort = ordering { return false }
            return true
        }
        if isSelection {
            try add(self.run(run))
        } else {
            try forEachMatch(
                run, limit: nil, keys: { try add($0) },
                leaf: { bound, frame, leaf in
                    let rows = try bound.narrow(RowMask(count: leaf.count), frame, leaf)
                    if try rows.isEmpty || aggregation.add(leaf, column, rows) { return }
                    let reader = try ColumnReader(leaf.memory, leaf.node, column)
                    try rows.forEach { aggregation.add(try run.storage.value(reader, $0, column)) }
                })
        }
        return Mixed(aggregation.result)
    }

    /// What `run` does and how many objects it looks at; the query is run for it.
    public func explain(in group: Group) throws -> QueryExplanation {
        let run = QueryRun(group)
        let found = try self.run(run)
        var plan = run.plan
        for ordering in orderings {
            switch ordering {
            case .sort(let keys): plan += "\nsort by \(keys.count) key\(keys.count == 1 ? "" : "s")"
            case .distinct(let paths):
                plan += "\nkeep the first of each combination of \(paths.count) value\(paths.count == 1 ? "" : "s")"
            case .limit(let count): plan += "\nkeep the first \(count)"
            }
        }
        return QueryExplanation(plan: plan, objectsLookedAt: run.objectsLookedAt, resultCount: found.count)
    }

    /// True where the predicate holds for the object; false where there is no such object.
    public func matches(_ key: ObjectKey, in group: Group) throws -> Bool {
        let run = QueryRun(group)
        let frame = QueryFrame(try run.table(table))
        run.frames = [frame]
        let bound = try run.bind(predicate)
        return try frame.move(to: key) && bound.matches()
    }

    /// The objects that need not be looked for any more once there are so many.
    private var scanLimit: Int? {
        if case .limit(let count)? = orderings.first { return count }
        return nil
    }

    func run(_ run: QueryRun) throws -> [ObjectKey] {
        var found: [ObjectKey] = []
        try forEachMatch(
            run, limit: scanLimit, keys: { found += $0 },
            leaf: { bound, frame, leaf in
                leaf.append(try bound.narrow(RowMask(count: leaf.count), frame, leaf), to: &found)
            }, isEnough: { limit in found.count >= limit })
        return try order(found, run)
    }

    /// Finds the objects by the plan: calls `keys` once with all of them where an index gave the candidates, else `leaf` for each
    /// cluster leaf that may hold some.
    private func forEachMatch(
        _ run: QueryRun, limit: Int?, keys: ([ObjectKey]) throws -> Void,
        leaf body: (BoundPredicate, QueryFrame, ClusterLeaf) throws -> Void,
        isEnough: (Int) -> Bool = { _ in false }
    ) throws {
        let frame = QueryFrame(try run.table(table))
        run.frames = [frame]
        let plan = try QueryPlan(predicate, frame.table, run)
        run.plan = plan.description
        let bound = try run.bind(plan.rest)
        switch plan.source {
        case .candidates(let candidates):
            run.objectsLookedAt += candidates.count
            if case .always(true) = plan.rest { return try keys(candidates) }
            try keys(candidates.filter { try frame.move(to: $0) && bound.matches() })
        case .scan:
            if case .always(false) = plan.rest { return }
            try frame.table.scanLeaves { leaf in
                if let limit, isEnough(limit) { return false }
                frame.enter(leaf)
                run.objectsLookedAt += leaf.count
                try body(bound, frame, leaf)
                return true
            }
        }
    }

    // MARK: Ordering

    private func order(_ keys: [ObjectKey], _ run: QueryRun) throws -> [ObjectKey] {
        var keys = keys
        for ordering in orderings {
            switch ordering {
            case .limit(let count): keys = Array(keys.prefix(count))
            case .sort(let sortKeys):
                if let sorted = try SortWords.sorted(keys, by: sortKeys, run) {
                    keys = sorted
                    continue
                }
                let rows = try values(sortKeys.map(\.path), keys, run)
                let width = sortKeys.count
                let positions = keys.indices.sorted { a, b in
                    for column in 0..<width {
                        let order = OrderingValue.compare(rows[a * width + column], rows[b * width + column])
                        if order != 0 { return sortKeys[column].isAscending ? order < 0 : order > 0 }
                    }
                    return a < b
                }
                keys = positions.map { keys[$0] }
            case .distinct(let paths):
                if let first = try DistinctValues.first(of: keys, by: paths, run) {
                    keys = first
                    continue
                }
                let rows = try values(paths, keys, run)
                var seen: Set<[OrderingValue]> = []
                var kept: [ObjectKey] = []
                for i in keys.indices {
                    let row = Array(rows[(i * paths.count)..<((i + 1) * paths.count)])
                    if row.contains(where: { $0.view == nil }) { continue }
                    if seen.insert(row).inserted { kept.append(keys[i]) }
                }
                keys = kept
            }
        }
        return keys
    }

    /// The values of `paths` for each key, row after row.
    private func values(_ paths: [QueryPath], _ keys: [ObjectKey], _ run: QueryRun) throws -> [OrderingValue] {
        let frame = run.frames[0]
        let bound = try paths.map { try BoundPath($0, run) }
        let isInteger = paths.map { path in
            if case .value(let property, _) = path.end { return property.type == .int }
            return false
        }
        var values: [OrderingValue] = []
        values.reserveCapacity(keys.count * paths.count)
        for key in keys {
            _ = try frame.move(to: key)
            for (path, isInteger) in zip(bound, isInteger) {
                values.append(OrderingValue(view: try path.orderingValue(), isInteger: isInteger))
            }
        }
        return values
    }
}

extension ClusterLeaf {
    /// Adds the keys of some rows.
    @inline(__always)
    fileprivate func append(_ rows: RowMask, to keys: inout [ObjectKey]) {
        let wanted = keys.count &+ rows.count
        // A long result grows faster than by doubling: to move it costs more than memory that is not touched.
        if wanted > keys.capacity { keys.reserveCapacity(max(wanted, keys.count < 1 << 14 ? 2 &* keys.count : 4 &* keys.count)) }
        if isGeneral {
            rows.forEach { keys.append(key($0)) }
        } else {
            rows.forEach { keys.append(ObjectKey(Int64(bitPattern: offset &+ UInt64($0)))) }
        }
    }
}

/// A value as orderings see it: null first, what lies behind a null link last (query-language 11).
private struct OrderingValue: Hashable {
    /// Nil behind a null link.
    var view: MixedView?
    /// The property is an integer.
    var isInteger: Bool

    static func compare(_ a: OrderingValue, _ b: OrderingValue) -> Int {
        guard let x = a.view else { return b.view == nil ? 0 : 1 }
        guard let y = b.view else { return -1 }
        if x.isNaN && y.isNaN { return 0 }
        return MixedView.compare(x, y)
    }

    static func == (a: OrderingValue, b: OrderingValue) -> Bool { compare(a, b) == 0 }

    /// Equal values must have equal hashes, whatever their kinds: numbers go by the nearest float, but integers by themselves
    /// where the property holds nothing else.
    func hash(into hasher: inout Hasher) {
        guard let view else { return }
        hasher.combine(view.rank)
        switch view {
        case .null, .list, .dictionary: break
        case .bool(let v): hasher.combine(v)
        case .int(let v): if isInteger { hasher.combine(v) } else { hasher.combine(Float(v)) }
        case .float(let v): if !v.isNaN { hasher.combine(v) }
        case .double(let v): if !v.isNaN { hasher.combine(Float(v)) }
        case .decimal(let v): if !v.isNaN { hasher.combine(Float(v.doubleValue)) }
        case .string(let bytes), .binary(let bytes): hasher.combine(bytes: bytes)
        case .timestamp(let v): hasher.combine(v)
        case .objectId(let v): hasher.combine(v)
        case .uuid(let v): hasher.combine(v)
        case .link(_, let key): hasher.combine(key)
        }
    }
}
