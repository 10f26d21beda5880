/// A question about the objects of one class: which of them, in which order.
///
/// ```swift
/// let schema = try GroupQuerySchema(group)
/// let query = try Query(
///     "age > $0 AND name BEGINSWITH[c] 'a' SORT(name ASC)", arguments: [.value(.int(30))], class: "Person", schema: schema)
/// let keys = try query.run(in: group)
/// ```
///
/// The language is that of the documents (query-language): texts of both dialects are understood. A query is a value; it may be
/// run any number of times, over any version of the file whose schema it was made for, from any thread. Its errors are
/// `QueryError`, damage that is met while running is `FormatError`.
public struct Query: Sendable {
    /// The class that is asked about.
    public let table: TableKey
    /// Which objects; checked against the schema.
    public var predicate: QueryPredicate
    /// Applied left to right to what the predicate finds.
    public var orderings: [QueryOrdering]

    /// Reads a text. `arguments` stand for its placeholders.
    public init(_ text: String, arguments: [QueryArgument] = [], class className: String, schema: some QuerySchema) throws {
        try self.init(syntax: QueryParser.parse(text, arguments: arguments), class: className, schema: schema)
    }

    /// Checks a syntax tree, from a text or made by hand, against the schema.
    public init(syntax: QuerySyntax, class className: String, schema: some QuerySchema) throws {
        guard let type = schema.queryClass(named: className) else { throw QueryError(.property, "no class '\(className)'") }
        var resolver = QueryResolver(schema: schema, type: type)
        table = type.table
        predicate = try resolver.predicate(syntax.predicate)
        orderings = try syntax.orderings.map { try resolver.ordering($0) }
    }

    /// The first date in `text` that no calendar has, as 2024-13-45@00:00:00, and where it stands. The language takes such dates,
    /// and has months, days and hours roll over into the next (query-language 1); who reads what people type may want to ask
    /// back.
    public static func impossibleDate(in text: String) -> (date: String, offset: Int)? {
        var lexer = QueryLexer(text)
        while lexer.impossibleDate == nil, let token = try? lexer.next(), token.kind != .end {}
        return lexer.impossibleDate.map { (String(decoding: Array(text.utf8)[$0], as: UTF8.self), $0.lowerBound) }
    }

    /// From parts that are checked already.
    public init(table: TableKey, predicate: QueryPredicate, orderings: [QueryOrdering] = []) {
        self.table = table
        self.predicate = predicate
        self.orderings = orderings
    }
}

/// SORT, DISTINCT or LIMIT with its paths resolved.
public enum QueryOrdering: Sendable {
    /// One key of a SORT.
    public struct Key: Sendable {
        /// To the value to sort by.
        public var path: QueryPath
        /// False for the greatest first.
        public var isAscending: Bool
    }
    /// Stable: objects that tie keep their order.
    case sort([Key])
    /// The first object of each combination of values; objects whose path passes a null link are left out.
    case distinct([QueryPath])
    case limit(Int)
}

extension QueryResolver {
    mutating func ordering(_ syntax: QuerySyntax.Ordering) throws -> QueryOrdering {
        switch syntax {
        case .sort(let keys):
            return .sort(try keys.map { QueryOrdering.Key(path: try orderingPath($0.path, "sort"), isAscending: $0.isAscending) })
        case .distinct(let paths): return .distinct(try paths.map { try orderingPath($0, "distinct") })
        case .limit(let count): return .limit(count)
        }
    }

    /// A path with exactly one value: over single links and keys of maps to a property that is no collection.
    private func orderingPath(_ syntax: QuerySyntax.Path, _ clause: String) throws -> QueryPath {
        var type = scopes[0].type
        var path = QueryPath(scope: 0, table: type.table)
        /// Behind a map, whose key must follow.
        var map: QueryProperty?
        var isAtEnd = false
        func refuse(_ message: String) -> QueryError {
            QueryError(.ordering, "\(message) in '\(clause)' clause", at: syntax.offset)
        }
        func missing(_ name: String) -> QueryError {
            QueryError(
                .property, "No property '\(name)' found on object type '\(type.name)' specified in '\(clause)' clause",
                at: syntax.offset)
        }
        for step in syntax.steps {
            if let open = map {
                let key: String
                switch step {
                case .name(let name), .index(.key(let name)): key = name
                default: throw refuse("a map needs a key")
                }
                map = nil
                if open.type == .link {
                    path.hops.append(QueryPath.Hop(property: open, element: .key(key)))
                    guard let next = schema.queryClass(open.target) else { throw missing(key) }
                    type = next
                } else {
                    path.end = .collection(open, .key(key), nested: [])
                    isAtEnd = true
                }
                continue
            }
            guard case .name(let name) = step else {
                if case .backlinks(_, let property) = step { throw missing(property) }
                throw refuse("elements of collections have no place")
            }
            if isAtEnd { throw refuse("a path through something that is no link") }
            guard let property = type.property(name), !property.isLinkingObjects else { throw missing(name) }
            switch property.collection {
            case .list, .set: throw refuse("a collection has no place")
            case .dictionary: map = property
            case nil where property.type == .link:
                path.hops.append(QueryPath.Hop(property: property))
                guard let next = schema.queryClass(property.target) else { throw missing(name) }
                type = next
            case nil:
                path.end = .value(property, nested: [])
                isAtEnd = true
            }
        }
        if map != nil { throw refuse("a collection has no place") }
        return path
    }
}
