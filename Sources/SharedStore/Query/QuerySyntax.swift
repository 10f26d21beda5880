/// What a query text says, before any schema is looked at (query-language 2).
///
/// The tree can also be built by hand: a front end with an own notation makes these nodes and hands them to
/// `Query.init(syntax:class:schema:)`, which checks names and types like those of a text. `offset` is the place in the text for
/// messages; 0 where there is no text.
public struct QuerySyntax: Sendable {
    public var predicate: Predicate
    /// SORT, DISTINCT and LIMIT as written; applied left to right.
    public var orderings: [Ordering]
    public init(_ predicate: Predicate, orderings: [Ordering] = []) {
        self.predicate = predicate
        self.orderings = orderings
    }

    /// Reads a text. `arguments` stand for its placeholders.
    /// - Throws: `QueryError` with the place in the text.
    public init(parsing text: String, arguments: [QueryArgument] = []) throws {
        self = try QueryParser.parse(text, arguments: arguments)
    }

    public indirect enum Predicate: Sendable {
        case always(Bool)
        case not(Predicate)
        case and([Predicate])
        case or([Predicate])
        case comparison(Comparison)

        var andParts: [Predicate]? {
            if case .and(let parts) = self { return parts }
            return nil
        }
        var orParts: [Predicate]? {
            if case .or(let parts) = self { return parts }
            return nil
        }
    }

    public enum Operator: String, Sendable, CaseIterable {
        case equal = "==", notEqual = "!=", less = "<", lessOrEqual = "<=", greater = ">", greaterOrEqual = ">="
        case beginsWith = "BEGINSWITH", endsWith = "ENDSWITH", contains = "CONTAINS", like = "LIKE"
        case isIn = "IN", between = "BETWEEN", text = "TEXT", geoWithin = "geoWithin"

        /// Operators that look at the bytes of a string or of data.
        public var isSubstring: Bool {
            switch self {
            case .beginsWith, .endsWith, .contains, .like: true
            default: false
            }
        }
        public var isOrder: Bool {
            switch self {
            case .less, .lessOrEqual, .greater, .greaterOrEqual: true
            default: false
            }
        }
        /// The operator with its sides exchanged.
        public var mirrored: Operator {
            switch self {
            case .less: .greater
            case .lessOrEqual: .greaterOrEqual
            case .greater: .less
            case .greaterOrEqual: .lessOrEqual
            default: self
            }
        }
    }

    /// `[c]` and `[d]` behind an operator.
    public struct Options: OptionSet, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// ASCII and Latin-1 letters are equal in both cases; with `diacriticInsensitive` letters of all scripts (query-language
        /// 5).
        public static let caseInsensitive = Options(rawValue: 1)
        /// Accents make no difference.
        public static let diacriticInsensitive = Options(rawValue: 2)
    }

    public enum Quantifier: String, Sendable { case any = "ANY", all = "ALL", none = "NONE" }

    public struct Comparison: Sendable {
        public var left: Expression
        public var operation: Operator
        public var options: Options
        public var right: Expression
        /// Place of the operator.
        public var offset: Int
        public init(_ left: Expression, _ operation: Operator, _ right: Expression, options: Options = [], offset: Int = 0) {
            self.left = left
            self.operation = operation
            self.options = options
            self.right = right
            self.offset = offset
        }
    }

    public enum Arithmetic: String, Sendable { case add = "+", subtract = "-", multiply = "*", divide = "/" }

    public indirect enum Expression: Sendable {
        case literal(Literal)
        /// `{1, 2, 3}`, with an optional quantifier before it.
        case list([Literal], Quantifier?, offset: Int)
        /// An argument with a quantifier before it; it must be a list.
        case quantified(Literal, Quantifier)
        case path(Path)
        case arithmetic(Arithmetic, Expression, Expression, offset: Int)
        case subquery(Subquery)
        case region(GeoRegion, offset: Int)

        public var offset: Int {
            switch self {
            case .literal(let literal), .quantified(let literal, _): literal.offset
            case .list(_, _, let offset), .arithmetic(_, _, _, let offset), .region(_, let offset): offset
            case .path(let path): path.offset
            case .subquery(let subquery): subquery.offset
            }
        }
    }

    /// A constant as written. Numbers keep their text: what they mean depends on what they are compared with.
    public struct Literal: Sendable {
        public indirect enum Value: Sendable {
            case null
            case bool(Bool)
            case integer(Int64)
            /// An integer beyond 64 bits, as written.
            case oversized(String)
            /// A number with a point or an exponent, without the `f` of single precision.
            case fraction(text: String, isFloat: Bool)
            case infinity(isNegative: Bool)
            case nan
            case string(String)
            case binary([UInt8])
            case timestamp(Timestamp)
            case objectId(ObjectIdValue)
            case uuid(UUIDValue)
            /// `obj("Class", key)`: the object with that primary key.
            case object(className: String, key: Literal)
            case argument(QueryArgument)
        }
        public var value: Value
        /// The argument came by `%@` or its like, which is the notation of the Swift front end: its rules go before those of
        /// query strings where the two disagree (query-language 12).
        public var isPlaceholder: Bool
        public var offset: Int
        public init(_ value: Value, isPlaceholder: Bool = false, offset: Int = 0) {
            self.value = value
            self.isPlaceholder = isPlaceholder
            self.offset = offset
        }
        public var isArgument: Bool {
            if case .argument = value { return true }
            return false
        }
    }

    /// A key path: steps, then at most one operator.
    public struct Path: Sendable {
        public enum Index: Sendable {
            case position(Int)
            case first, last, size
            /// Every element of the first level.
            case any
            case key(String)
        }
        public enum Step: Sendable {
            /// A property, or the key of a map.
            case name(String)
            /// `@links.Class.property`
            case backlinks(className: String, property: String)
            /// `@links`: all objects that link here, from anywhere. Only its count can be asked for.
            case allLinks
            case keys, values
            case index(Index)

            var isValues: Bool {
                if case .values = self { return true }
                return false
            }
        }
        public enum Aggregate: String, Sendable { case min = "@min", max = "@max", sum = "@sum", average = "@avg" }
        public enum Postfix: Sendable {
            case count, type
            /// An aggregate of a collection of values, or of the named property of a collection of objects.
            case aggregate(Aggregate, property: String?)
        }
        public var quantifier: Quantifier?
        public var steps: [Step]
        public var postfix: Postfix?
        public var offset: Int
        public init(_ steps: [Step], postfix: Postfix? = nil, quantifier: Quantifier? = nil, offset: Int = 0) {
            self.steps = steps
            self.postfix = postfix
            self.quantifier = quantifier
            self.offset = offset
        }
        /// A path of plain names.
        public init(names: [String], quantifier: Quantifier? = nil) { self.init(names.map { .name($0) }, quantifier: quantifier) }
    }

    /// `SUBQUERY(path, $variable, predicate).@count`
    public struct Subquery: Sendable {
        public var path: Path
        /// With its `$`.
        public var variable: String
        public var predicate: Predicate
        public var offset: Int
        public init(_ path: Path, variable: String, _ predicate: Predicate, offset: Int = 0) {
            self.path = path
            self.variable = variable
            self.predicate = predicate
            self.offset = offset
        }
    }

    public enum Ordering: Sendable {
        case sort([SortKey])
        case distinct([Path])
        case limit(Int)
    }
    public struct SortKey: Sendable {
        public var path: Path
        public var isAscending: Bool
        public init(_ path: Path, ascending: Bool = true) {
            self.path = path
            isAscending = ascending
        }
    }
}

/// What stands for `%@`, `%K`, `$0`, `$K0` and their like.
public enum QueryArgument: Sendable {
    /// A single value; a string for `%K` and `$K0`.
    case value(Mixed)
    case list([Mixed])
    case region(GeoRegion)
}
