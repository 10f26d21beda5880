/// What the result of a query can depend on, for those who want to know whether a change concerns it.
public struct QueryDependencies: Hashable, Sendable {
    /// The class that is asked about, and those that paths lead to or come back from.
    public var tables: Set<TableKey>
    /// All incoming links count (`@links.@count`): a change of any table may matter.
    public var isEverything = false
    /// Whether an object is in the result, and where, depends on nothing but properties of objects of the class.
    public internal(set) var isOwn = true
    /// The columns of the class that matter; complete where `isOwn`.
    public internal(set) var columns: Set<ColumnKey> = []

    /// - Parameter tables: the class that is asked about among them.
    public init(tables: Set<TableKey>) { self.tables = tables }
}

extension Query {
    /// The classes whose objects, links or primary keys can change what is found or its order.
    public var dependencies: QueryDependencies {
        var found = QueryDependencies(tables: [table])
        found.add(predicate)
        for ordering in orderings {
            switch ordering {
            case .sort(let keys): for key in keys { found.add(key.path) }
            case .distinct(let paths): for path in paths { found.add(path) }
            case .limit: break
            }
        }
        return found
    }
}

extension QueryDependencies {
    fileprivate mutating func add(_ predicate: QueryPredicate) {
        switch predicate {
        case .always: break
        case .not(let inner): add(inner)
        case .and(let parts), .or(let parts): for part in parts { add(part) }
        case .comparison(let comparison):
            add(comparison.left)
            add(comparison.right)
        case .between(let between): add(between.operand)
        case .text(let path, _, _): add(path)
        case .geo(let path, _, _): add(path)
        }
    }

    fileprivate mutating func add(_ operand: QueryOperand) {
        switch operand {
        case .constant(let constant): add(constant)
        case .constants(let constants): for constant in constants { add(constant) }
        case .path(let path): add(path)
        case .arithmetic(_, let left, let right):
            add(left)
            add(right)
        case .subqueryCount(let path, let predicate):
            isOwn = false
            add(path)
            add(predicate)
        }
    }

    private mutating func add(_ constant: QueryConstant) {
        guard case .object(let table, _) = constant else { return }
        tables.insert(table)
        isOwn = false
    }

    fileprivate mutating func add(_ path: QueryPath) {
        for hop in path.hops {
            tables.insert(hop.property.table)
            tables.insert(hop.property.target)
        }
        if path.end == .allLinks { isEverything = true }
        switch path.end {
        case .value(let property, _), .collection(let property, _, _):
            columns.insert(property.column)
            if !path.hops.isEmpty || path.scope != 0 { isOwn = false }
        case .objects, .allLinks: isOwn = false
        }
    }
}
