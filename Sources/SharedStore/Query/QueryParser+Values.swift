// Constants, lists of constants, and the arguments that stand for them.
extension QueryParser {
    mutating func list(quantifier: QuerySyntax.Quantifier?) throws -> QuerySyntax.Expression {
        let offset = token.offset
        try expect(.leftBrace, "'{'")
        var elements: [QuerySyntax.Literal] = []
        if !accept(.rightBrace) {
            repeat { elements.append(try constant()) } while accept(.comma)
            try expect(.rightBrace, "'}'")
        }
        return .list(elements, quantifier, offset: offset)
    }

    mutating func constant() throws -> QuerySyntax.Literal {
        guard let literal = try literal() else { throw unexpected(wanted: "a constant") }
        return literal
    }

    /// A constant, or nil (and nothing consumed) where none begins.
    mutating func literal() throws -> QuerySyntax.Literal? {
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
            case "bin" where kind(after: 1) == .leftParenthesis, "binary" where kind(after: 1) == .leftParenthesis:
                return try binary()
            case "obj" where kind(after: 1) == .leftParenthesis: return try object()
            default: return nil
            }
        default: return nil
        }
        advance()
        return QuerySyntax.Literal(value, isPlaceholder: isPlaceholder, offset: offset)
    }

    /// Nil where the number does not fit in 64 bits.
    static func integer(_ text: String) -> Int64? {
        var digits = Substring(text)
        let isNegative = digits.hasPrefix("-")
        if isNegative || digits.hasPrefix("+") { digits.removeFirst() }
        let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
        if isHexadecimal { digits.removeFirst(2) }
        return Int64((isNegative ? "-" : "") + digits, radix: isHexadecimal ? 16 : 10)
    }

    mutating func binary() throws -> QuerySyntax.Literal {
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

    mutating func object() throws -> QuerySyntax.Literal {
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

    func argument(_ index: Int) throws -> QueryArgument {
        guard index < arguments.count else {
            throw QueryError(
                .argument, "request for argument at index \(index) but only \(arguments.count) provided", at: token.offset)
        }
        if hasPlaceholders && hasNumberedArguments {
            throw QueryError(.syntax, "%@ and $0 cannot be mixed in one text", at: token.offset)
        }
        return arguments[index]
    }

    mutating func placeholderArgument() throws -> QueryArgument {
        hasPlaceholders = true
        let argument = try argument(nextPlaceholder)
        nextPlaceholder += 1
        return argument
    }

    func pathText(_ argument: QueryArgument) throws -> String {
        guard case .value(.string(let text)) = argument else {
            throw QueryError(.argument, "a key path argument must be a string", at: token.offset)
        }
        return text
    }
}
