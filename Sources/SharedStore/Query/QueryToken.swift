/// A word of the query language with its place in the text.
struct QueryToken {
    enum Kind: Equatable {
        case end
        /// A name or a keyword; which of them, the parser decides.
        case word(String)
        /// A name that cannot be a keyword: `#name`, or one with an escaped blank in it.
        case name(String)
        /// Decimal digits without a sign.
        case digits(String)
        /// An integer with a sign or in hexadecimal.
        case integer(String)
        /// A number with a point, an exponent or an `f`; the `f` is taken off.
        case fraction(String, isFloat: Bool)
        case infinity(isNegative: Bool)
        case nan
        case string(String)
        case base64([UInt8])
        case timestamp(Timestamp)
        case objectId(ObjectIdValue)
        case uuid(UUIDValue)
        /// `$0`, `$K0`
        case argument(Int), pathArgument(Int)
        /// `%@`, `%K`, `%d` and its like.
        case placeholder, pathPlaceholder, numberPlaceholder
        /// `@count` and its like, without the `@`.
        case operation(String)
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, and, or, not
        case plus, minus, star, slash, leftParenthesis, rightParenthesis, leftBrace, rightBrace, leftBracket, rightBracket, comma,
            dot
    }
    var kind: Kind
    var offset: Int
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
