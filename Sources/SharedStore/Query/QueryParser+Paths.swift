// Key paths, and what is made of them: subqueries; and regions.
extension QueryParser {
    // MARK: Paths

    mutating func path(quantifier: QuerySyntax.Quantifier?) throws -> QuerySyntax.Path {
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
                    guard case .operation = kind else {
                        throw QueryError(.path, "a key path argument must be the whole path", at: token.offset)
                    }
                }
                if kind == .pathPlaceholder { try splice(&path) } else { try step(&path) }
            } else {
                break
            }
        }
        if quantifier != nil, case .aggregate? = path.postfix {
            throw QueryError(.syntax, "no quantifier can stand before an aggregate", at: path.offset)
        }
        return path
    }

    mutating func step(_ path: inout QuerySyntax.Path) throws {
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

    mutating func postfix(_ name: String, _ path: inout QuerySyntax.Path) throws {
        advance()
        switch name {
        case "count", "size": path.postfix = .count
        case "type": path.postfix = .type
        default:
            guard let aggregate = QuerySyntax.Path.Aggregate(rawValue: "@" + name) else {
                throw unexpected(wanted: "an operator")
            }
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

    mutating func index() throws -> QuerySyntax.Path.Index {
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
    mutating func splice(_ path: inout QuerySyntax.Path) throws {
        let offset = token.offset
        let text = try pathText(try placeholderArgument())
        advance()
        var parser = QueryParser(
            tokens: try QueryLexer.tokens(of: text).map { QueryToken(kind: $0.kind, offset: offset) }, arguments: [])
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
    func numberedPath(_ text: String) throws -> [QuerySyntax.Path.Step] {
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

    mutating func subquery() throws -> QuerySyntax.Subquery {
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

    mutating func region() throws -> QuerySyntax.Expression {
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

    mutating func regionLiteral() throws -> GeoRegion? {
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

    mutating func point() throws -> GeoPoint {
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

    mutating func coordinate() throws -> Double {
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
