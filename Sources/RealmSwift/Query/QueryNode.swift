/// What a closure given to `where` says, as a tree; turned into the text of a predicate and its arguments.
indirect enum QueryNode {
    case path(QueryKeyPath)
    case constant(Any?)
    /// `options` is what stands in brackets behind the operator: `c`, `d` or both.
    case comparison(QueryNode, String, QueryNode, options: String)
    /// The value lies in the list.
    case between(QueryNode, Any?, Any?)
    case and(QueryNode, QueryNode)
    case or(QueryNode, QueryNode)
    case not(QueryNode)
    /// How many elements of a collection meet a condition.
    case subqueryCount(QueryNode)
    case geoWithin(QueryNode, Any)
}

/// A path of properties that may end in an operator.
struct QueryKeyPath {
    enum Part {
        case name(String, isCollection: Bool)
        /// Position or key within a map or an AnyRealmValue.
        case index(Any)
        /// Every element of an AnyRealmValue.
        case any
        /// `@allKeys`, `@allValues`
        case members(String)
    }
    var parts: [Part] = []
    /// `@count`, `@min`, ...
    var aggregate: String?
    /// The property is a map.
    var isMap = false

    /// The path stands for all elements of a collection.
    var isMany: Bool {
        if aggregate != nil { return false }
        return parts.contains { part in
            switch part {
            case .name(_, let isCollection): isCollection
            case .members: true
            case .index, .any: false
            }
        } && !isIndexed
    }

    /// A key or position selects one element.
    private var isIndexed: Bool {
        parts.contains { part in
            if case .index = part { return true }
            if case .any = part { return true }
            return false
        }
    }

    /// Position of the first collection among the parts.
    var collectionIndex: Int? {
        parts.firstIndex { part in
            if case .name(_, let isCollection) = part { return isCollection }
            return false
        }
    }

    func appending(_ part: Part) -> QueryKeyPath {
        var path = self
        path.parts.append(part)
        return path
    }
}

/// Writes a tree as text.
struct QueryText {
    private var arguments: [Any?] = []
    private var subqueryCount = 0
    /// Within a subquery: the names of the collection and the variable for its elements, innermost last.
    private var scopes: [(prefix: [String], variable: String)] = []

    static func make(_ node: QueryNode) -> (String, [Any?]) {
        var text = QueryText()
        let format = text.condition(node)
        return (format, text.arguments)
    }

    private mutating func argument(_ value: Any?) -> String {
        arguments.append(value)
        return "%@"
    }

    // MARK: Conditions

    private mutating func condition(_ node: QueryNode) -> String {
        switch node {
        case .path: return "\(operand(node)) == true"
        case .not(.path(let path)): return "\(operand(.path(path))) == false"
        case .not(let inner):
            let text = condition(inner)
            return text.hasPrefix("(") ? "NOT \(text)" : "NOT (\(text))"
        case .and(let a, let b): return "(\(condition(a)) && \(condition(b)))"
        case .or(let a, let b): return "(\(condition(a)) || \(condition(b)))"
        case .comparison(let a, let operation, let b, let options):
            let left = operand(a)
            let right = operand(b)
            return "(\(left) \(operation)\(options.isEmpty ? "" : "[\(options)]") \(right))"
        case .between(let node, let low, let high):
            let text = operand(node)
            return "(\(text) BETWEEN {\(argument(low)), \(argument(high))})"
        case .geoWithin(let node, let shape):
            let text = operand(node)
            return "(\(text) IN \(argument(shape)))"
        case .constant(let value): return (value as? Bool) == true ? "TRUEPREDICATE" : "FALSEPREDICATE"
        case .subqueryCount: misuse("A count must be compared with a number")
        }
    }

    // MARK: Operands

    private mutating func operand(_ node: QueryNode) -> String {
        switch node {
        case .path(let path): return text(of: path)
        case .constant(let value): return argument(value)
        case .subqueryCount(let inner): return subquery(inner)
        default: misuse("A condition cannot be compared")
        }
    }

    private mutating func text(of path: QueryKeyPath) -> String {
        var parts = path.parts
        var isMany = path.isMany
        var text = ""
        // The innermost subquery over the same collection.
        for scope in scopes.reversed() {
            let names = QueryText.names(parts)
            guard names.starts(with: scope.prefix) else { continue }
            parts.removeFirst(scope.prefix.count)
            text = scope.variable
            var rest = path
            rest.parts = parts
            isMany = rest.isMany
            break
        }
        if text.isEmpty && !scopes.isEmpty { misuse("Subquery predicates may only use properties of the collection's elements") }
        let collection = QueryKeyPath(parts: parts).collectionIndex
        for (index, part) in parts.enumerated() {
            switch part {
            case .name(let name, _):
                let name = QueryText.reserved.contains(name.lowercased()) ? "#" + name : name
                text += text.isEmpty ? name : "." + name
            case .index(let value): text += "[\(argument(value))]"
            case .any:
                arguments.append("#any")
                text += "[%K]"
            case .members(let name): text += "." + name
            }
            // Behind the collection whose elements are added up, before their property.
            if let aggregate = path.aggregate, index == collection, index < parts.count - 1 { text += "." + aggregate }
        }
        if let aggregate = path.aggregate, collection == nil || collection == parts.count - 1 { text += "." + aggregate }
        return isMany ? "ANY \(text)" : text
    }

    /// Words of the language, which are property names only behind a `#` (query-language 1).
    private static let reserved: Set<String> = [
        "and", "or", "not", "any", "all", "some", "none", "true", "false", "yes", "no", "null", "nil", "truepredicate",
        "falsepredicate", "subquery",
        "geobox", "geocircle", "geopolygon", "obj", "self", "size", "first", "last", "in", "between", "contains", "like",
        "beginswith", "endswith",
        "sort", "distinct", "limit", "text", "matches", "cast", "inf", "infinity", "nan", "oid", "uuid",
    ]

    private static func names(_ parts: [QueryKeyPath.Part]) -> [String] {
        parts.map { part in
            if case .name(let name, _) = part { return name }
            return ""
        }
    }

    private mutating func subquery(_ inner: QueryNode) -> String {
        guard let path = QueryText.collection(in: inner, behind: scopes.last?.prefix ?? []) else {
            misuse("Subqueries will only work when the query contains a collection of objects")
        }
        subqueryCount += 1
        let variable = "$col\(subqueryCount)"
        let outer = text(of: QueryKeyPath(parts: path, aggregate: nil)).replacingPrefix("ANY ", with: "")
        scopes.append((QueryText.names(path), variable))
        let predicate = condition(inner)
        scopes.removeLast()
        return "SUBQUERY(\(outer), \(variable), \(predicate)).@count"
    }

    /// The collection whose elements a condition is about: within another subquery one of its elements'.
    private static func collection(in node: QueryNode, behind prefix: [String]) -> [QueryKeyPath.Part]? {
        switch node {
        case .path(let path):
            if path.isMap { misuse("Subqueries over maps are not possible") }
            let start = names(path.parts).starts(with: prefix) ? prefix.count : 0
            let found = path.parts[start...].firstIndex { part in
                if case .name(_, let isCollection) = part { return isCollection }
                return false
            }
            guard path.aggregate == nil, let found else { return nil }
            return Array(path.parts[...found])
        case .comparison(let a, _, let b, _): return collection(in: a, behind: prefix) ?? collection(in: b, behind: prefix)
        case .between(let a, _, _), .not(let a), .subqueryCount(let a), .geoWithin(let a, _):
            return collection(in: a, behind: prefix)
        case .and(let a, let b), .or(let a, let b): return collection(in: a, behind: prefix) ?? collection(in: b, behind: prefix)
        case .constant: return nil
        }
    }
}

extension String {
    fileprivate func replacingPrefix(_ prefix: String, with text: String) -> String {
        hasPrefix(prefix) ? text + dropFirst(prefix.count) : self
    }
}
