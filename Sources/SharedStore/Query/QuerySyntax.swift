/// What a query text says, before any schema is looked at (query-language 2).
///
/// The tree can also be built by hand: a front end with an own notation makes these nodes and hands them to
/// `Query.init(syntax:class:schema:)`, which checks names and types like those of a text. `offset` is the place in the text for
/// messages; 0 where there is no text.
public struct QuerySyntax: Sendable {
    /// What an object must fulfil. Names in it are as written.
    public var predicate: Predicate
    /// SORT, DISTINCT and LIMIT as written; applied left to right.
    public var orderings: [Ordering]
    /// Nothing is checked; `Query.init(syntax:class:schema:)` does that.
    public init(_ predicate: Predicate, orderings: [Ordering] = []) {
        self.predicate = predicate
        self.orderings = orderings
    }

    /// Reads a text. `arguments` stand for its placeholders.
    /// - Throws: `QueryError` with the place in the text.
    public init(parsing text: String, arguments: [QueryArgument] = []) throws {
        self = try QueryParser.parse(text, arguments: arguments)
    }

    /// A condition. `always` is TRUEPREDICATE or FALSEPREDICATE.
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

    /// The raw value is how messages name the operator.
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
        /// Operators that need an order of values.
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
        /// One bit an option.
        public let rawValue: Int
        /// Bits that stand for no option have no effect.
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// ASCII and Latin-1 letters are equal in both cases; with `diacriticInsensitive` letters of all scripts (query-language
        /// 5).
        public static let caseInsensitive = Options(rawValue: 1)
        /// Accents make no difference.
        public static let diacriticInsensitive = Options(rawValue: 2)
    }

    /// How many of a collection's values must match: at least one, every one (true of none), none.
    public enum Quantifier: String, Sendable { case any = "ANY", all = "ALL", none = "NONE" }

    /// Two expressions and an operator; whether their types fit is found out by `Query`.
    public struct Comparison: Sendable {
        /// Left of the operator.
        public var left: Expression
        /// Any of the operators, also those of the kind of `IN`.
        public var operation: Operator
        /// Written behind the operator.
        public var options: Options
        /// Right of the operator.
        public var right: Expression
        /// Place of the operator.
        public var offset: Int
        /// - Parameter offset: of the operator, in bytes; 0 where there is no text.
        public init(_ left: Expression, _ operation: Operator, _ right: Expression, options: Options = [], offset: Int = 0) {
            self.left = left
            self.operation = operation
            self.options = options
            self.right = right
            self.offset = offset
        }
    }

    /// The raw value is how it is written.
    public enum Arithmetic: String, Sendable { case add = "+", subtract = "-", multiply = "*", divide = "/" }

    /// What stands on one side of an operator.
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

        /// Where it begins in the text; 0 where there is no text.
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
        /// The kinds of constants that can be written.
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
        /// As written, or as the argument was given.
        public var value: Value
        /// The argument came by `%@` or its like, which is the notation of the Swift front end: its rules go before those of
        /// query strings where the two disagree (query-language 12).
        public var isPlaceholder: Bool
        /// In bytes; 0 where there is no text.
        public var offset: Int
        /// - Parameter offset: 0 where there is no text.
        public init(_ value: Value, isPlaceholder: Bool = false, offset: Int = 0) {
            self.value = value
            self.isPlaceholder = isPlaceholder
            self.offset = offset
        }
        /// It came as an argument and is not written in the text.
        public var isArgument: Bool {
            if case .argument = value { return true }
            return false
        }
    }

    /// A key path: steps, then at most one operator.
    public struct Path: Sendable {
        /// What stands in brackets.
        public enum Index: Sendable {
            case position(Int)
            case first, last, size
            /// Every element of the first level.
            case any
            case key(String)
        }
        /// One part of a path.
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
        /// The raw value is how it is written.
        public enum Aggregate: String, Sendable { case min = "@min", max = "@max", sum = "@sum", average = "@avg" }
        /// The operator at the end of a path.
        public enum Postfix: Sendable {
            case count, type
            /// An aggregate of a collection of values, or of the named property of a collection of objects.
            case aggregate(Aggregate, property: String?)
        }
        /// Written before the path; nil where there is none, which means `any`.
        public var quantifier: Quantifier?
        /// From the class of the query, or from the variable of a subquery, on.
        public var steps: [Step]
        /// Nil for the value itself.
        public var postfix: Postfix?
        /// In bytes; 0 where there is no text.
        public var offset: Int
        /// - Parameter offset: 0 where there is no text.
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
        /// To the collection of objects that is counted.
        public var path: Path
        /// With its `$`.
        public var variable: String
        /// Asked of each object, which it names by the variable.
        public var predicate: Predicate
        /// In bytes; 0 where there is no text.
        public var offset: Int
        /// - Parameter variable: with its `$`.
        public init(_ path: Path, variable: String, _ predicate: Predicate, offset: Int = 0) {
            self.path = path
            self.variable = variable
            self.predicate = predicate
            self.offset = offset
        }
    }

    /// SORT, DISTINCT or LIMIT.
    public enum Ordering: Sendable {
        case sort([SortKey])
        case distinct([Path])
        case limit(Int)
    }
    /// One of the keys of SORT.
    public struct SortKey: Sendable {
        /// From the object to the value that is compared.
        public var path: Path
        /// False for DESC.
        public var isAscending: Bool
        /// - Parameter ascending: nulls come first then.
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
