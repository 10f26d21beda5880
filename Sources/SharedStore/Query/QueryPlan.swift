/// How the objects of a query are found: by an index where one part of an AND allows it, else by looking at all.
struct QueryPlan {
    enum Source {
        case scan
        /// Candidates in ascending order; they fulfil the part of the predicate that they were found by.
        case candidates([ObjectKey])
    }
    var source: Source
    /// What is left to be asked of each object.
    var rest: QueryPredicate
    /// What is done, a line a step, for people.
    var description: String

    /// An index is worth its random accesses when it leaves at most this part of the objects.
    private static let worthwhileFraction = 4

    init(_ predicate: QueryPredicate, _ table: Table, _ run: QueryRun) throws {
        rest = predicate
        source = .scan
        let parts: [QueryPredicate]
        if case .and(let all) = predicate { parts = all } else { parts = [predicate] }
        var best: (index: Int, access: Access, count: Int)?
        if run.usesIndexes {
            for (i, part) in parts.enumerated() {
                guard let access = try Access(part, table, run) else { continue }
                let count = try access.countMax()
                if best == nil || count < best?.count ?? 0 { best = (i, access, count) }
            }
        }
        if let best, best.count <= max(16, table.objectCount / QueryPlan.worthwhileFraction) {
            let keys = try best.access.keys()
            source = .candidates(keys)
            var others = parts
            others.remove(at: best.index)
            rest = others.count == 1 ? others[0] : others.isEmpty ? .always(true) : .and(others)
            description =
                "\(best.access.description): \(keys.count) of \(table.objectCount) objects of \(table.className ?? table.name)"
        } else {
            description = "scan of \(table.objectCount) objects of \(table.className ?? table.name)"
        }
        switch rest {
        case .always(true): break
        case .and(let left): description += "\nfilter by \(left.count) conditions"
        default: description += "\nfilter"
        }
    }

    /// One part of the predicate that an index answers.
    private struct Access {
        enum Kind {
            case values(SearchIndex, [Mixed])
            case text(FullTextIndex, TextSearch)
        }
        let kind: Kind
        let description: String

        init?(_ predicate: QueryPredicate, _ table: Table, _ run: QueryRun) throws {
            switch predicate {
            case .text(let path, _, let search):
                guard let property = path.ownProperty, path.scope == 0, search.isSelective,
                    let index = try FullTextIndex(table, run.column(property))
                else { return nil }
                kind = .text(index, search)
                description = "full-text index on \(table.name(of: try run.column(property)))"
            case .comparison(let comparison):
                guard comparison.operation == .equal, comparison.options.isEmpty, comparison.rightQuantifier == .any,
                    !comparison.comparesWhole,
                    !comparison.rules.contains(.stringsMatchData), case .path(let path) = comparison.left, path.scope == 0,
                    let property = path.ownProperty
                else { return nil }
                let column = try run.column(property)
                guard let index = try SearchIndex(table, column) else { return nil }
                var values: [Mixed] = []
                switch comparison.right {
                case .constant(.value(let value)): values = [value]
                case .constants(let constants):
                    for constant in constants {
                        guard case .value(let value) = constant else { return nil }
                        values.append(value)
                    }
                default: return nil
                }
                guard values.allSatisfy({ Access.isFound($0, column) }) else { return nil }
                kind = .values(index, values)
                let isPrimaryKey = column.key == table.primaryKeyColumn?.key
                description = "\(isPrimaryKey ? "primary key" : "index on") \(table.name(of: column))"
            default: return nil
            }
        }

        /// True where the index finds every value that equals `value`. Among AnyRealmValues numbers of different kinds may be
        /// equal, which stand in the same place of the index only when they are small integers (file-format-2 7.3).
        private static func isFound(_ value: Mixed, _ column: Column) -> Bool {
            switch (column.type, value) {
            // Earlier versions of this package left the nulls of lists out.
            case (.string, .null) where column.collection != nil: false
            case (.int, .int), (.bool, .bool), (.string, .string), (.timestamp, .timestamp), (.objectId, .objectId),
                (.uuid, .uuid):
                true
            case (.mixed, .int(let v)): Int32(exactly: v) != nil
            case (.mixed, .string), (.mixed, .bool), (.mixed, .timestamp), (.mixed, .objectId), (.mixed, .uuid): true
            case (.int, .null), (.bool, .null), (.string, .null), (.timestamp, .null), (.objectId, .null), (.uuid, .null): true
            default: false
            }
        }

        /// No fewer than `keys` gives, without looking at an object.
        func countMax() throws -> Int {
            switch kind {
            case .values(let index, let values): try values.reduce(0) { $0 + (try index.countMax($1)) }
            // Words are looked up to be counted; they are few.
            case .text(let index, let search): try search.find(in: index).count
            }
        }

        func keys() throws -> [ObjectKey] {
            switch kind {
            case .values(let index, let values):
                if values.count == 1 { return try index.find(values[0]) }
                var keys: Set<ObjectKey> = []
                for value in values { keys.formUnion(try index.find(value)) }
                return keys.sorted()
            case .text(let index, let search): return try search.find(in: index)
            }
        }
    }
}

extension SearchIndex {
    /// An upper bound of the number of objects that `find` gives, from the index alone.
    fileprivate func countMax(_ value: Mixed) throws -> Int {
        let entry = try SearchIndex.withIndexBytes(value, in: column) { try SearchIndex.descend(memory, root, BytesIndexKey($0)) }
        switch entry {
        case .none: return 0
        case .single: return 1
        case .list(let ref): return try BPlusTree<KeyLeaf>(memory, ref).count
        }
    }
}

/// What a query did, for people and tests.
public struct QueryExplanation: Sendable, CustomStringConvertible {
    /// The steps, a line each.
    public let plan: String
    /// Objects whose values were looked at to answer the predicate.
    public let objectsLookedAt: Int
    /// Objects in the result.
    public let resultCount: Int
    public var description: String { "\(plan)\n\(objectsLookedAt) objects looked at, \(resultCount) in the result" }
}
