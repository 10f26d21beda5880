extension Query {
    // MARK: Running

    /// The objects that the query asks for: in the order of their keys, or as its orderings say.
    public func run(in group: Group) throws -> [ObjectKey] {
        let run = QueryRun(group)
        return try order(find(run, limit: scanLimit), run)
    }

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
        let count = try find(run, limit: limit).count
        return limit.map { min($0, count) } ?? count
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

    private func find(_ run: QueryRun, limit: Int?) throws -> [ObjectKey] {
        let frame = QueryFrame(try run.table(table))
        run.frames = [frame]
        let bound = try run.bind(predicate)
        var found: [ObjectKey] = []
        try frame.table.scanLeaves { leaf in
            frame.enter(leaf)
            run.objectsLookedAt += leaf.count
            let mask = try bound.narrow(RowMask(count: leaf.count), frame, leaf)
            mask.forEach { found.append(leaf.key($0)) }
            return limit.map { found.count < $0 } ?? true
        }
        return found
    }

    // MARK: Ordering

    private func order(_ keys: [ObjectKey], _ run: QueryRun) throws -> [ObjectKey] {
        var keys = keys
        for ordering in orderings {
            switch ordering {
            case .limit(let count): keys = Array(keys.prefix(count))
            case .sort(let sortKeys):
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
            for (path, isInteger) in zip(bound, isInteger) { values.append(OrderingValue(view: try path.orderingValue(), isInteger: isInteger)) }
        }
        return values
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

    /// Equal values must have equal hashes, whatever their kinds: numbers go by the nearest float, but integers by themselves where
    /// the property holds nothing else.
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
