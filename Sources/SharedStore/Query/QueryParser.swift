/// Reads a query text into a syntax tree by recursive descent (query-language 2).
///
/// The text may come from anywhere: nesting is limited to `depthMaximum`, and no token is looked at more than twice.
struct QueryParser {
    /// Parentheses and subqueries within each other.
    static let depthMaximum = 250

    private var tokens: [QueryToken]
    private var position = 0
    private let arguments: [QueryArgument]
    private var nextPlaceholder = 0
    private var hasPlaceholders = false, hasNumberedArguments = false
    private var depth = 0

    /// Reads `text`; `arguments` stand for its placeholders.
    static func parse(_ text: String, arguments: [QueryArgument] = []) throws -> QuerySyntax {
        var parser = QueryParser(tokens: try QueryLexer.tokens(of: text), arguments: arguments)
        return try parser.query()
    }

    private init(tokens: [QueryToken], arguments: [QueryArgument]) {
        self.tokens = tokens
        self.arguments = arguments
    }

    /// What stands in parentheses is a predicate or a value; which, only its inside tells.
    private enum Node {
        case predicate(QuerySyntax.Predicate)
        /// `isBare`: neither in parentheses nor arithmetic, as some operators want their sides.
        case value(QuerySyntax.Expression, isBare: Bool)
    }

    // MARK: Tokens

    private var token: QueryToken { tokens[position] }
    private var kind: QueryToken.Kind { tokens[position].kind }
    private func kind(after distance: Int) -> QueryToken.Kind { tokens[min(position + distance, tokens.count - 1)].kind }
    private mutating func advance() { if position + 1 < tokens.count { position += 1 } }

    private mutating func accept(_ wanted: QueryToken.Kind) -> Bool {
        guard kind == wanted else { return false }
        advance()
        return true
    }

    private mutating func expect(_ wanted: QueryToken.Kind, _ text: String) throws {
        guard accept(wanted) else { throw unexpected(wanted: text) }
    }

    /// The token as a keyword in lower case; nil for anything that is no word.
    private func keyword(after distance: Int = 0) -> String? {
        if case .word(let text) = kind(after: distance) { return text.lowercased() }
        return nil
    }

    private func unexpected(wanted: String) -> QueryError {
        QueryError(.syntax, "\(wanted) expected, but found \(kind.described)", at: token.offset)
    }

    // MARK: Query and orderings

    private mutating func query() throws -> QuerySyntax {
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

    private mutating func isAscending() throws -> Bool {
        switch keyword() {
        case "asc", "ascending": advance()
        case "desc", "descending":
            advance()
            return false
        default: throw unexpected(wanted: "ASC or DESC")
        }
        return true
    }

    private mutating func orderingPath() throws -> QuerySyntax.Path {
        switch kind {
        case .word, .name, .pathPlaceholder, .operation("links"): break
        default: throw unexpected(wanted: "a property")
        }
        let path = try self.path(quantifier: nil)
        if path.postfix != nil { throw QueryError(.syntax, "collection operators have no place in an ordering", at: path.offset) }
        return path
    }

    // MARK: Predicates

    private mutating func predicate() throws -> QuerySyntax.Predicate {
        guard case .predicate(let predicate) = try or() else { throw unexpected(wanted: "a comparison") }
        return predicate
    }

    private func asPredicate(_ node: Node) throws -> QuerySyntax.Predicate {
        guard case .predicate(let predicate) = node else { throw unexpected(wanted: "a comparison") }
        return predicate
    }

    private mutating func or() throws -> Node {
        let first = try and()
        guard kind == .or || keyword() == "or" else { return first }
        var parts = [try asPredicate(first)]
        while kind == .or || keyword() == "or" {
            advance()
            parts.append(try asPredicate(try and()))
        }
        return .predicate(.or(parts))
    }

    private mutating func and() throws -> Node {
        let first = try unary()
        guard kind == .and || keyword() == "and" else { return first }
        var parts = [try asPredicate(first)]
        while kind == .and || keyword() == "and" {
            advance()
            parts.append(try asPredicate(try unary()))
        }
        return .predicate(.and(parts))
    }

    private mutating func unary() throws -> Node {
        var isNegated = false, count = 0
        while kind == .not || keyword() == "not" {
            advance()
            isNegated.toggle()
            count += 1
        }
        let node = try primary()
        if count == 0 { return node }
        let predicate = try asPredicate(node)
        return .predicate(isNegated ? .not(predicate) : predicate)
    }

    private mutating func primary() throws -> Node {
        switch keyword() {
        case "truepredicate", "falsepredicate":
            let isTrue = keyword() == "truepredicate"
            advance()
            return .predicate(.always(isTrue))
        default: break
        }
        let left = try sum()
        guard case .value(let expression, let isBare) = left else { return left }
        return try comparison(expression, isBare: isBare)
    }

    private mutating func comparison(_ left: QuerySyntax.Expression, isBare: Bool) throws -> Node {
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
                throw QueryError(.syntax, "\(operation.rawValue) takes neither parentheses nor arithmetic on its right", at: expression.offset)
            }
            right = expression
        }
        return .predicate(.comparison(QuerySyntax.Comparison(left, operation, right, options: options, offset: offset)))
    }

    private func relation() -> QuerySyntax.Operator? {
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
    private mutating func options() throws -> QuerySyntax.Options {
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

    private mutating func sum() throws -> Node {
        var left = try product()
        while kind == .plus || kind == .minus {
            let operation = kind == .plus ? QuerySyntax.Arithmetic.add : .subtract, offset = token.offset
            let a = try operand(left)
            advance()
            left = try arithmetic(operation, a, try product(), at: offset)
        }
        return left
    }

    private mutating func product() throws -> Node {
        var left = try factor()
        while kind == .star || kind == .slash {
            let operation = kind == .star ? QuerySyntax.Arithmetic.multiply : .divide, offset = token.offset
            let a = try operand(left)
            advance()
            left = try arithmetic(operation, a, try factor(), at: offset)
        }
        return left
    }

    private func operand(_ node: Node) throws -> QuerySyntax.Expression {
        guard case .value(let expression, _) = node else { throw unexpected(wanted: "the end, AND or OR") }
        return expression
    }

    private mutating func arithmetic(
        _ operation: QuerySyntax.Arithmetic, _ left: QuerySyntax.Expression, _ right: Node, at offset: Int
    ) throws -> Node {
        // A sum of many terms is a deep tree on its left side, which is walked by recursion: it counts as nesting.
        try enter()
        return .value(.arithmetic(operation, left, try operand(right), offset: offset), isBare: false)
    }

    private mutating func enter() throws {
        depth += 1
        if depth > QueryParser.depthMaximum { throw QueryError(.syntax, "nested more than \(QueryParser.depthMaximum) deep", at: token.offset) }
    }

    private mutating func factor() throws -> Node {
        guard kind == .leftParenthesis else { return .value(try value(), isBare: true) }
        try enter()
        advance()
        let inner = try or()
        try expect(.rightParenthesis, "')'")
        depth -= 1
        if case .value(let expression, _) = inner { return .value(expression, isBare: false) }
        return inner
    }

    private mutating func value() throws -> QuerySyntax.Expression {
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
            case "and", "or", "not", "truepredicate", "falsepredicate", "geobox", "geocircle", "geopolygon": throw unexpected(wanted: "a value")
            default: return try literal().map { .literal($0) } ?? .path(try path(quantifier: nil))
            }
        default:
            guard let literal = try literal() else { throw unexpected(wanted: "a value") }
            return .literal(literal)
        }
    }

    /// ANY, SOME, ALL, NONE. In mixed case they are quantifiers only where a path or a list follows.
    private func quantifier() -> QuerySyntax.Quantifier? {
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
            return ["in", "between", "like", "contains", "beginswith", "endswith", "text"].contains(next.lowercased()) ? nil : quantifier
        case .name, .leftBrace, .argument, .pathArgument, .placeholder, .pathPlaceholder, .operation: return quantifier
        default: return nil
        }
    }

    private mutating func list(quantifier: QuerySyntax.Quantifier?) throws -> QuerySyntax.Expression {
        let offset = token.offset
        try expect(.leftBrace, "'{'")
        var elements: [QuerySyntax.Literal] = []
        if !accept(.rightBrace) {
            repeat { elements.append(try constant()) } while accept(.comma)
            try expect(.rightBrace, "'}'")
        }
        return .list(elements, quantifier, offset: offset)
    }

    private mutating func constant() throws -> QuerySyntax.Literal {
        guard let literal = try literal() else { throw unexpected(wanted: "a constant") }
        return literal
    }

    /// A constant, or nil (and nothing consumed) where none begins.
    private mutating func literal() throws -> QuerySyntax.Literal? {
        let offset = token.offset
        let value: QuerySyntax.Literal.Value
        var isPlaceholder = false
        switch kind {
        case .digits(let text), .integer(let text): value = QueryParser.integer(text).map { .integer($0) } ?? .oversized(text)
        case .fraction(let text, let isFloat): value = .fraction(text: text, isFloat: isFloat)
        case .infinity(let isNegative): value = .infinity(isNegative: isNegative)
        case .nan: value = .nan
        case .string(let text): value = .string(text)
        case .base64(let bytes): value = .string(String(decoding: bytes, as: UTF8.self))
        case .timestamp(let time): value = .timestamp(time)
        case .objectId(let id): value = .objectId(id)
        case .uuid(let id): value = .uuid(id)
        case .argument(let index):
            hasNumberedArguments = true
            value = .argument(try argument(index))
        case .placeholder, .numberPlaceholder:
            isPlaceholder = true
            value = .argument(try placeholderArgument())
        case .word(let text):
            switch text.lowercased() {
            case "true": value = .bool(true)
            case "false": value = .bool(false)
            case "null", "nil": value = .null
            case "bin" where kind(after: 1) == .leftParenthesis, "binary" where kind(after: 1) == .leftParenthesis: return try binary()
            case "obj" where kind(after: 1) == .leftParenthesis: return try object()
            default: return nil
            }
        default: return nil
        }
        advance()
        return QuerySyntax.Literal(value, isPlaceholder: isPlaceholder, offset: offset)
    }

    /// Nil where the number does not fit in 64 bits.
    private static func integer(_ text: String) -> Int64? {
        var digits = Substring(text)
        let isNegative = digits.hasPrefix("-")
        if isNegative || digits.hasPrefix("+") { digits.removeFirst() }
        let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
        if isHexadecimal { digits.removeFirst(2) }
        return Int64((isNegative ? "-" : "") + digits, radix: isHexadecimal ? 16 : 10)
    }

    private mutating func binary() throws -> QuerySyntax.Literal {
        let offset = token.offset
        advance()
        advance()
        let bytes: [UInt8]
        switch kind {
        case .string(let text): bytes = Array(text.utf8)
        case .base64(let decoded): bytes = decoded
        default: throw unexpected(wanted: "a string")
        }
        advance()
        try expect(.rightParenthesis, "')'")
        return QuerySyntax.Literal(.binary(bytes), offset: offset)
    }

    private mutating func object() throws -> QuerySyntax.Literal {
        let offset = token.offset
        advance()
        advance()
        guard case .string(let name) = kind else { throw unexpected(wanted: "the name of a class as a string") }
        advance()
        try expect(.comma, "','")
        let key = try constant()
        try expect(.rightParenthesis, "')'")
        return QuerySyntax.Literal(.object(className: name, key: key), offset: offset)
    }

    // MARK: Arguments

    private func argument(_ index: Int) throws -> QueryArgument {
        guard index < arguments.count else {
            throw QueryError(.argument, "request for argument at index \(index) but only \(arguments.count) provided", at: token.offset)
        }
        if hasPlaceholders && hasNumberedArguments { throw QueryError(.syntax, "%@ and $0 cannot be mixed in one text", at: token.offset) }
        return arguments[index]
    }

    private mutating func placeholderArgument() throws -> QueryArgument {
        hasPlaceholders = true
        let argument = try argument(nextPlaceholder)
        nextPlaceholder += 1
        return argument
    }

    private func pathText(_ argument: QueryArgument) throws -> String {
        guard case .value(.string(let text)) = argument else { throw QueryError(.argument, "a key path argument must be a string", at: token.offset) }
        return text
    }

    // MARK: Paths

    private mutating func path(quantifier: QuerySyntax.Quantifier?) throws -> QuerySyntax.Path {
        var path = QuerySyntax.Path([], quantifier: quantifier, offset: token.offset)
        var isWhole = false
        switch kind {
        case .pathArgument(let index):
            hasNumberedArguments = true
            path.steps = try numberedPath(try pathText(try argument(index)))
            isWhole = true
            advance()
        case .pathPlaceholder: try splice(&path)
        default: try step(&path)
        }
        while path.postfix == nil {
            if kind == .leftBracket {
                if isWhole { throw QueryError(.path, "a key path argument must be the whole path", at: token.offset) }
                advance()
                path.steps.append(.index(try index()))
                try expect(.rightBracket, "']'")
            } else if accept(.dot) {
                if isWhole {
                    guard case .operation = kind else { throw QueryError(.path, "a key path argument must be the whole path", at: token.offset) }
                }
                if kind == .pathPlaceholder { try splice(&path) } else { try step(&path) }
            } else {
                break
            }
        }
        if quantifier != nil, case .aggregate? = path.postfix { throw QueryError(.syntax, "no quantifier can stand before an aggregate", at: path.offset) }
        return path
    }

    private mutating func step(_ path: inout QuerySyntax.Path) throws {
        switch kind {
        case .word(let text), .name(let text): path.steps.append(.name(text))
        case .operation("links"):
            advance()
            guard kind == .dot, case .word(let className) = kind(after: 1) else {
                path.steps.append(.allLinks)
                return
            }
            advance()
            advance()
            guard kind == .dot else {
                path.steps.append(.backlinks(className: className, property: ""))
                return
            }
            switch kind(after: 1) {
            case .word(let property), .name(let property):
                advance()
                path.steps.append(.backlinks(className: className, property: property))
            default:
                path.steps.append(.backlinks(className: className, property: ""))
                return
            }
        case .operation("keys"), .operation("allKeys"): path.steps.append(.keys)
        case .operation("values"), .operation("allValues"): path.steps.append(.values)
        case .operation(let name) where !path.steps.isEmpty: return try postfix(name, &path)
        default: throw unexpected(wanted: "a property")
        }
        advance()
    }

    private mutating func postfix(_ name: String, _ path: inout QuerySyntax.Path) throws {
        advance()
        switch name {
        case "count", "size": path.postfix = .count
        case "type": path.postfix = .type
        default:
            guard let aggregate = QuerySyntax.Path.Aggregate(rawValue: "@" + name) else { throw unexpected(wanted: "an operator") }
            var property: String?
            if kind == .dot {
                switch kind(after: 1) {
                case .word(let text), .name(let text):
                    property = text
                    advance()
                    advance()
                default:
                    advance()
                    throw unexpected(wanted: "a property")
                }
            }
            path.postfix = .aggregate(aggregate, property: property)
        }
    }

    private mutating func index() throws -> QuerySyntax.Path.Index {
        let offset = token.offset
        let index: QuerySyntax.Path.Index
        switch kind {
        case .digits(let text):
            guard let position = Int(text) else { throw QueryError(.literal, "the index \(text) is too large", at: offset) }
            index = .position(position)
        case .string(let text): index = .key(text)
        case .star, .name("any"): index = .any
        case .word("first"), .word("FIRST"): index = .first
        case .word("last"), .word("LAST"): index = .last
        case .word("size"), .word("SIZE"): index = .size
        case .argument, .placeholder, .numberPlaceholder:
            let literal = try constant()
            switch literal.value {
            case .argument(.value(.int(let value))): return .position(Int(value))
            case .argument(.value(.string(let key))): return .key(key)
            default: throw QueryError(.argument, "an index must be an integer or a string", at: offset)
            }
        case .pathPlaceholder:
            let text = try pathText(try placeholderArgument())
            index = text == "#any" ? .any : .key(text)
        default: throw unexpected(wanted: "an index")
        }
        advance()
        return index
    }

    /// `%K`: the steps and the operator in the text of the argument, as if they stood in the query.
    private mutating func splice(_ path: inout QuerySyntax.Path) throws {
        let offset = token.offset
        let text = try pathText(try placeholderArgument())
        advance()
        var parser = QueryParser(tokens: try QueryLexer.tokens(of: text).map { QueryToken(kind: $0.kind, offset: offset) }, arguments: [])
        let inner: QuerySyntax.Path
        switch parser.kind {
        case .word, .name, .operation("links"): inner = try parser.path(quantifier: nil)
        default: throw QueryError(.argument, "'\(text)' is no key path", at: offset)
        }
        guard parser.kind == .end else { throw QueryError(.argument, "'\(text)' is no key path", at: offset) }
        path.steps += inner.steps
        path.postfix = inner.postfix
    }

    /// `$K0`: names between points, and `@links.Class.property`.
    private func numberedPath(_ text: String) throws -> [QuerySyntax.Path.Step] {
        let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard names.allSatisfy({ !$0.isEmpty }) else { throw QueryError(.argument, "'\(text)' is no key path", at: token.offset) }
        var steps: [QuerySyntax.Path.Step] = []
        var index = 0
        while index < names.count {
            if names[index] == "@links", index + 2 < names.count {
                steps.append(.backlinks(className: names[index + 1], property: names[index + 2]))
                index += 3
            } else {
                steps.append(.name(names[index]))
                index += 1
            }
        }
        return steps
    }

    // MARK: Subqueries and regions

    private mutating func subquery() throws -> QuerySyntax.Subquery {
        let offset = token.offset
        advance()
        try expect(.leftParenthesis, "'('")
        try enter()
        switch kind {
        case .word, .name, .operation("links"):
            if quantifier() != nil { throw unexpected(wanted: "a path") }
        case .pathPlaceholder: break
        case .pathArgument: throw QueryError(.subquery, "a subquery takes no key path argument", at: token.offset)
        default: throw unexpected(wanted: "a path")
        }
        let path = try self.path(quantifier: nil)
        try expect(.comma, "','")
        guard case .word(let variable) = kind, variable.hasPrefix("$"), variable.utf8.count > 1 else {
            throw QueryError(.syntax, "a subquery variable must be $ and a name", at: token.offset)
        }
        advance()
        try expect(.comma, "','")
        let predicate = try self.predicate()
        try expect(.rightParenthesis, "')'")
        depth -= 1
        try expect(.dot, "'.@count'")
        guard accept(.operation("count")) || accept(.operation("size")) else { throw unexpected(wanted: "'@count'") }
        return QuerySyntax.Subquery(path, variable: variable, predicate, offset: offset)
    }

    private mutating func region() throws -> QuerySyntax.Expression {
        let offset = token.offset
        switch kind {
        case .argument, .placeholder: return .literal(try constant())
        default: break
        }
        guard let region = try regionLiteral() else { throw unexpected(wanted: "a region") }
        return .region(region, offset: offset)
    }

    /// The region that a text holds, for arguments given as text.
    static func region(_ text: String) -> GeoRegion? {
        guard let tokens = try? QueryLexer.tokens(of: text) else { return nil }
        var parser = QueryParser(tokens: tokens, arguments: [])
        guard let region = try? parser.regionLiteral(), parser.kind == .end else { return nil }
        return region
    }

    private mutating func regionLiteral() throws -> GeoRegion? {
        guard let word = keyword(), ["geobox", "geocircle", "geopolygon"].contains(word) else { return nil }
        advance()
        try expect(.leftParenthesis, "'('")
        let region: GeoRegion
        switch word {
        case "geobox":
            let corner = try point()
            try expect(.comma, "','")
            region = .box(corner, try point())
        case "geocircle":
            let center = try point()
            try expect(.comma, "','")
            region = .circle(center, radius: try coordinate())
        default:
            var rings: [[GeoPoint]] = []
            repeat {
                try expect(.leftBrace, "'{'")
                var ring: [GeoPoint] = []
                repeat { ring.append(try point()) } while accept(.comma)
                try expect(.rightBrace, "'}'")
                rings.append(ring)
            } while accept(.comma)
            region = .polygon(rings)
        }
        try expect(.rightParenthesis, "')'")
        return region
    }

    private mutating func point() throws -> GeoPoint {
        try expect(.leftBracket, "'['")
        let longitude = try coordinate()
        try expect(.comma, "','")
        let latitude = try coordinate()
        if accept(.comma) {
            guard case .fraction = kind else { throw unexpected(wanted: "an altitude with a point") }
            advance()
        }
        try expect(.rightBracket, "']'")
        return GeoPoint(longitude: longitude, latitude: latitude)
    }

    private mutating func coordinate() throws -> Double {
        let value: Double?
        switch kind {
        case .digits(let text), .fraction(let text, _): value = Double(text)
        case .argument, .placeholder, .numberPlaceholder:
            let offset = token.offset
            switch try constant().value {
            case .argument(.value(.int(let value))): return Double(value)
            case .argument(.value(.double(let value))): return value
            case .argument(.value(.float(let value))): return Double(value)
            default: throw QueryError(.argument, "a coordinate must be a number", at: offset)
            }
        default: value = nil
        }
        guard let value else { throw unexpected(wanted: "a number") }
        advance()
        return value
    }
}

extension QueryToken.Kind {
    /// The token as a person would name it.
    var described: String {
        switch self {
        case .end: "the end"
        case .word(let text), .name(let text): "'\(text)'"
        case .digits(let text), .integer(let text), .fraction(let text, _): "the number \(text)"
        case .infinity: "an infinity"
        case .nan: "NaN"
        case .string(let text): "the string '\(text)'"
        case .base64: "a string in base 64"
        case .timestamp: "a date"
        case .objectId: "an ObjectId"
        case .uuid: "a UUID"
        case .argument, .placeholder, .numberPlaceholder: "an argument"
        case .pathArgument, .pathPlaceholder: "a key path argument"
        case .operation(let name): "'@\(name)'"
        case .equal: "'=='"
        case .notEqual: "'!='"
        case .less: "'<'"
        case .lessOrEqual: "'<='"
        case .greater: "'>'"
        case .greaterOrEqual: "'>='"
        case .and: "AND"
        case .or: "OR"
        case .not: "'!'"
        case .plus: "'+'"
        case .minus: "'-'"
        case .star: "'*'"
        case .slash: "'/'"
        case .leftParenthesis: "'('"
        case .rightParenthesis: "')'"
        case .leftBrace: "'{'"
        case .rightBrace: "'}'"
        case .leftBracket: "'['"
        case .rightBracket: "']'"
        case .comma: "','"
        case .dot: "'.'"
        }
    }
}
