/// Reads a query text into a syntax tree by recursive descent (query-language 2).
///
/// The text may come from anywhere: what is nested in the tree is limited to `depthMaximum`, and no token is looked at more than
/// twice.
struct QueryParser {
    /// Parts of a predicate or of a value within each other.
    static let depthMaximum = 250

    var tokens: [QueryToken]
    var position = 0
    let arguments: [QueryArgument]
    var nextPlaceholder = 0
    var hasPlaceholders = false, hasNumberedArguments = false
    var depth = 0

    /// Reads `text`; `arguments` stand for its placeholders.
    static func parse(_ text: String, arguments: [QueryArgument] = []) throws -> QuerySyntax {
        var parser = QueryParser(tokens: try QueryLexer.tokens(of: text), arguments: arguments)
        return try parser.query()
    }

    init(tokens: [QueryToken], arguments: [QueryArgument]) {
        self.tokens = tokens
        self.arguments = arguments
    }

    /// What stands in parentheses is a predicate or a value; which, only its inside tells.
    enum Node {
        case predicate(QuerySyntax.Predicate, depth: Int)
        /// `isBare`: neither in parentheses nor arithmetic, as some operators want their sides.
        case value(QuerySyntax.Expression, isBare: Bool)
    }

    // MARK: Tokens

    var token: QueryToken { tokens[position] }
    var kind: QueryToken.Kind { tokens[position].kind }
    func kind(after distance: Int) -> QueryToken.Kind { tokens[min(position + distance, tokens.count - 1)].kind }
    mutating func advance() { if position + 1 < tokens.count { position += 1 } }

    mutating func accept(_ wanted: QueryToken.Kind) -> Bool {
        guard kind == wanted else { return false }
        advance()
        return true
    }

    mutating func expect(_ wanted: QueryToken.Kind, _ text: String) throws {
        guard accept(wanted) else { throw unexpected(wanted: text) }
    }

    /// The token as a keyword in lower case; nil for anything that is no word.
    func keyword(after distance: Int = 0) -> String? {
        if case .word(let text) = kind(after: distance) { return text.lowercased() }
        return nil
    }

    func unexpected(wanted: String) -> QueryError {
        QueryError(.syntax, "\(wanted) expected, but found \(kind.described)", at: token.offset)
    }

    // MARK: Query and orderings

    mutating func query() throws -> QuerySyntax {
        let predicate = try self.predicate()
        var orderings: [QuerySyntax.Ordering] = []
        while kind != .end {
            let word = keyword()
            guard word == "sort" || word == "distinct" || word == "limit" else { throw unexpected(wanted: "the end, AND or OR") }
            advance()
            try expect(.leftParenthesis, "'('")
            switch word {
            case "sort":
                var keys: [QuerySyntax.SortKey] = []
                repeat { keys.append(QuerySyntax.SortKey(try orderingPath(), ascending: try isAscending())) } while accept(.comma)
                orderings.append(.sort(keys))
            case "distinct":
                var paths: [QuerySyntax.Path] = []
                repeat { paths.append(try orderingPath()) } while accept(.comma)
                orderings.append(.distinct(paths))
            default:
                guard case .digits(let text) = kind else { throw unexpected(wanted: "a natural number") }
                guard let limit = Int(text) else { throw QueryError(.literal, "\(text) is too large", at: token.offset) }
                advance()
                orderings.append(.limit(limit))
            }
            try expect(.rightParenthesis, "')'")
        }
        return QuerySyntax(predicate, orderings: orderings)
    }

    mutating func isAscending() throws -> Bool {
        switch keyword() {
        case "asc", "ascending": advance()
        case "desc", "descending":
            advance()
            return false
        default: throw unexpected(wanted: "ASC or DESC")
        }
        return true
    }

    mutating func orderingPath() throws -> QuerySyntax.Path {
        switch kind {
        case .word, .name, .pathPlaceholder, .operation("links"): break
        default: throw unexpected(wanted: "a property")
        }
        let path = try self.path(quantifier: nil)
        if path.postfix != nil { throw QueryError(.syntax, "collection operators have no place in an ordering", at: path.offset) }
        return path
    }

    // MARK: Predicates

    mutating func predicate() throws -> QuerySyntax.Predicate {
        guard case .predicate(let predicate, _) = try nested() else { throw unexpected(wanted: "a comparison") }
        return predicate
    }

    /// An open parenthesis and what stands in it so far.
    private struct Level {
        /// Finished parts of an OR, and of the AND that is its last part; with how deep they are nested.
        var orParts: [QuerySyntax.Predicate] = [], andParts: [QuerySyntax.Predicate] = []
        var orDepth = 0, andDepth = 0
        /// NOT stands before the next operand.
        var hasNot = false, isNegated = false

        var isEmpty: Bool { orParts.isEmpty && andParts.isEmpty && !hasNot }

        /// Takes an operand of AND; one that is itself an AND is taken apart, so that long chains stay flat.
        mutating func add(_ predicate: QuerySyntax.Predicate, _ depth: Int) {
            if isNegated {
                andParts.append(.not(predicate))
                andDepth = max(andDepth, depth + 1)
            } else if case .and(let parts) = predicate {
                andParts += parts
                andDepth = max(andDepth, depth - 1)
            } else {
                andParts.append(predicate)
                andDepth = max(andDepth, depth)
            }
            hasNot = false
            isNegated = false
        }

        mutating func endAnd() {
            let predicate = andParts.count == 1 ? andParts[0] : .and(andParts)
            let depth = andParts.count == 1 ? andDepth : andDepth + 1
            if case .or(let parts) = predicate {
                orParts += parts
                orDepth = max(orDepth, depth - 1)
            } else {
                orParts.append(predicate)
                orDepth = max(orDepth, depth)
            }
            andParts = []
            andDepth = 0
        }

        mutating func end() -> (QuerySyntax.Predicate, Int) {
            endAnd()
            return orParts.count == 1 ? (orParts[0], orDepth) : (.or(orParts), orDepth + 1)
        }
    }

    /// Everything up to a token that cannot go on: operands between AND, OR, NOT and parentheses. Parentheses are kept on a list
    /// and not on the stack, and only what stays nested counts: `((a OR b) OR c) OR ...` may be of any length.
    mutating func nested() throws -> Node {
        var levels = [Level()]
        while true {
            while true {
                if kind == .not || keyword() == "not" {
                    levels[levels.count - 1].hasNot = true
                    levels[levels.count - 1].isNegated.toggle()
                } else if kind == .leftParenthesis {
                    levels.append(Level())
                } else {
                    break
                }
                advance()
            }
            var node = try operandOrComparison()
            while kind == .rightParenthesis, levels.count > 1 {
                node = try close(levels.removeLast(), node)
            }
            let isOr = kind == .or || keyword() == "or"
            guard isOr || kind == .and || keyword() == "and" else {
                guard levels.count == 1 else { throw unexpected(wanted: "')'") }
                return levels[0].isEmpty ? node : try end(levels[0], node)
            }
            try add(node, to: &levels[levels.count - 1])
            if isOr { levels[levels.count - 1].endAnd() }
            advance()
        }
    }

    /// What a parenthesis is whose last operand is `node`; a value may go on behind it.
    private mutating func close(_ level: Level, _ node: Node) throws -> Node {
        advance()
        if !level.isEmpty { return try end(level, node) }
        guard case .value(let expression, _) = node else { return node }
        let sum = try self.sum(from: .value(expression, isBare: false))
        guard case .value(let left, let isBare) = sum else { return sum }
        return try comparison(left, isBare: isBare)
    }

    private func add(_ node: Node, to level: inout Level) throws {
        guard case .predicate(let predicate, let depth) = node else { throw unexpected(wanted: "a comparison") }
        level.add(predicate, depth)
    }

    private func end(_ level: Level, _ node: Node) throws -> Node {
        var level = level
        try add(node, to: &level)
        let (predicate, depth) = level.end()
        if depth > QueryParser.depthMaximum { throw tooDeep() }
        return .predicate(predicate, depth: depth)
    }

    private mutating func operandOrComparison() throws -> Node {
        switch keyword() {
        case "truepredicate", "falsepredicate":
            let isTrue = keyword() == "truepredicate"
            advance()
            return .predicate(.always(isTrue), depth: 1)
        default: break
        }
        let left = try sum()
        guard case .value(let expression, let isBare) = left else { return left }
        return try comparison(expression, isBare: isBare)
    }

    mutating func comparison(_ left: QuerySyntax.Expression, isBare: Bool) throws -> Node {
        let offset = token.offset
        guard let operation = relation() else { return .value(left, isBare: isBare) }
        if !isBare, operation.isSubstring || operation == .between || operation == .text || operation == .geoWithin {
            throw QueryError(.syntax, "\(operation.rawValue) takes neither parentheses nor arithmetic on its left", at: offset)
        }
        advance()
        var options: QuerySyntax.Options = []
        switch operation {
        case .equal, .notEqual, .beginsWith, .endsWith, .contains, .like, .isIn: options = try self.options()
        default: break
        }
        let right: QuerySyntax.Expression
        switch operation {
        case .between:
            switch kind {
            case .leftBrace: right = try list(quantifier: nil)
            case .placeholder: right = .literal(try constant())
            default: throw unexpected(wanted: "two bounds in braces")
            }
        case .geoWithin: right = try region()
        default:
            guard case .value(let expression, let isBare) = try sum() else { throw unexpected(wanted: "a value") }
            if !isBare, operation.isSubstring || operation == .text {
                throw QueryError(
                    .syntax, "\(operation.rawValue) takes neither parentheses nor arithmetic on its right", at: expression.offset)
            }
            right = expression
        }
        return .predicate(
            .comparison(QuerySyntax.Comparison(left, operation, right, options: options, offset: offset)), depth: depth + 1)
    }

    func relation() -> QuerySyntax.Operator? {
        switch kind {
        case .equal: .equal
        case .notEqual: .notEqual
        case .less: .less
        case .lessOrEqual: .lessOrEqual
        case .greater: .greater
        case .greaterOrEqual: .greaterOrEqual
        default:
            switch keyword() {
            case "beginswith": .beginsWith
            case "endswith": .endsWith
            case "contains": .contains
            case "like": .like
            case "in": .isIn
            case "between": .between
            case "text": .text
            case "geowithin": .geoWithin
            default: nil
            }
        }
    }

    /// `[c]`, `[d]`, `[cd]` behind an operator.
    mutating func options() throws -> QuerySyntax.Options {
        guard kind == .leftBracket else { return [] }
        advance()
        let options: QuerySyntax.Options
        switch kind {
        case .word("c"): options = .caseInsensitive
        case .word("d"): options = .diacriticInsensitive
        case .word("cd"), .word("dc"): options = [.caseInsensitive, .diacriticInsensitive]
        default: throw unexpected(wanted: "c, d or cd")
        }
        advance()
        try expect(.rightBracket, "']'")
        return options
    }

    // MARK: Values

    mutating func sum() throws -> Node { try sum(from: try factor()) }

    /// A sum, or the rest of one whose first factor has been read.
    mutating func sum(from first: Node) throws -> Node {
        var left = try product(from: first)
        while kind == .plus || kind == .minus {
            let operation = kind == .plus ? QuerySyntax.Arithmetic.add : .subtract, offset = token.offset
            let a = try operand(left)
            advance()
            left = try arithmetic(operation, a, try product(from: try factor()), at: offset)
        }
        return left
    }

    mutating func product(from first: Node) throws -> Node {
        var left = first
        while kind == .star || kind == .slash {
            let operation = kind == .star ? QuerySyntax.Arithmetic.multiply : .divide, offset = token.offset
            let a = try operand(left)
            advance()
            left = try arithmetic(operation, a, try factor(), at: offset)
        }
        return left
    }

    func operand(_ node: Node) throws -> QuerySyntax.Expression {
        guard case .value(let expression, _) = node else { throw unexpected(wanted: "the end, AND or OR") }
        return expression
    }

    mutating func arithmetic(
        _ operation: QuerySyntax.Arithmetic, _ left: QuerySyntax.Expression, _ right: Node, at offset: Int
    ) throws -> Node {
        // A sum of many terms is a deep tree on its left side, which is walked by recursion: it counts as nesting.
        try enter()
        return .value(.arithmetic(operation, left, try operand(right), offset: offset), isBare: false)
    }

    mutating func enter() throws {
        depth += 1
        if depth > QueryParser.depthMaximum { throw tooDeep() }
    }

    private func tooDeep() -> QueryError {
        QueryError(.syntax, "nested more than \(QueryParser.depthMaximum) deep", at: token.offset)
    }

    mutating func factor() throws -> Node {
        guard kind == .leftParenthesis else { return .value(try value(), isBare: true) }
        try enter()
        advance()
        let inner = try nested()
        try expect(.rightParenthesis, "')'")
        depth -= 1
        if case .value(let expression, _) = inner { return .value(expression, isBare: false) }
        return inner
    }

    mutating func value() throws -> QuerySyntax.Expression {
        if let quantifier = quantifier() {
            advance()
            switch kind {
            case .leftBrace: return try list(quantifier: quantifier)
            case .argument, .placeholder: return .quantified(try constant(), quantifier)
            case .word, .name, .pathArgument, .pathPlaceholder, .operation("links"):
                if keyword() == "subquery" || self.quantifier() != nil { throw unexpected(wanted: "a path or a list") }
                return .path(try path(quantifier: quantifier))
            default: throw unexpected(wanted: "a path or a list")
            }
        }
        switch kind {
        case .leftBrace: return try list(quantifier: nil)
        case .name, .pathArgument, .pathPlaceholder, .operation("links"): return .path(try path(quantifier: nil))
        case .word:
            switch keyword() {
            case "subquery": return .subquery(try subquery())
            case "and", "or", "not", "truepredicate", "falsepredicate", "geobox", "geocircle", "geopolygon":
                throw unexpected(wanted: "a value")
            default: return try literal().map { .literal($0) } ?? .path(try path(quantifier: nil))
            }
        default:
            guard let literal = try literal() else { throw unexpected(wanted: "a value") }
            return .literal(literal)
        }
    }

    /// ANY, SOME, ALL, NONE. In mixed case they are quantifiers only where a path or a list follows.
    func quantifier() -> QuerySyntax.Quantifier? {
        guard case .word(let text) = kind else { return nil }
        let quantifier: QuerySyntax.Quantifier
        switch text.lowercased() {
        case "any", "some": quantifier = .any
        case "all": quantifier = .all
        case "none": quantifier = .none
        default: return nil
        }
        if text == text.lowercased() || text == text.uppercased() { return quantifier }
        switch kind(after: 1) {
        case .word(let next):
            return ["in", "between", "like", "contains", "beginswith", "endswith", "text"].contains(next.lowercased())
                ? nil : quantifier
        case .name, .leftBrace, .argument, .pathArgument, .placeholder, .pathPlaceholder, .operation: return quantifier
        default: return nil
        }
    }
}
