/// Which class links to which, by which property; those by Mixed properties as well, since every link has a backlink column.
struct LinkGraph {
    private(set) var edges: [TableKey: [ColumnKey: Set<TableKey>]] = [:]

    init(_ group: Group) throws {
        for table in try group.tables() {
            for backlink in table.backlinkColumns {
                edges[backlink.oppositeTable, default: [:]][backlink.oppositeColumn, default: []].insert(table.key)
            }
        }
    }

    /// The class and all that can be reached from it by links.
    func reachable(from table: TableKey) -> Set<TableKey> {
        var found: Set<TableKey> = [table]
        var pending = [table]
        while let next = pending.popLast() {
            for targets in (edges[next] ?? [:]).values {
                for target in targets where found.insert(target).inserted { pending.append(target) }
            }
        }
        return found
    }

    /// The classes from which one of `targets` can be reached, those included.
    func leading(to targets: Set<TableKey>) -> Set<TableKey> {
        var found = targets
        var grew = true
        while grew {
            grew = false
            for (origin, columns) in edges where !found.contains(origin) {
                if columns.values.contains(where: { !$0.isDisjoint(with: found) }) {
                    found.insert(origin)
                    grew = true
                }
            }
        }
        return found
    }
}

extension ObjectRow {
    /// Calls `body` with every object that a property links to, until it answers true; true if it did.
    ///
    /// Links in a collection that is itself nested in a Mixed value are not followed (file-format-3 6.7).
    func anyLink(_ column: Column, _ body: (TableKey, ObjectKey) throws -> Bool) throws -> Bool {
        func check(_ value: Mixed) throws -> Bool {
            if case .link(let table, let key) = value { return try body(table, key) }
            return false
        }
        func check(_ list: ListReader) throws -> Bool {
            for i in 0..<list.count where try check(list.value(i)) { return true }
            return false
        }
        switch column.collection {
        case nil:
            if column.type == .link {
                guard let key = try link(column) else { return false }
                return try body(column.oppositeTable, key)
            }
            return column.type == .mixed ? try check(mixed(column)) : false
        case .list: return try check(list(column))
        case .set: return try check(set(column).elements)
        case .dictionary:
            let dictionary = try dictionary(column)
            for i in 0..<dictionary.count where try check(dictionary.value(i)) { return true }
            return false
        }
    }
}
