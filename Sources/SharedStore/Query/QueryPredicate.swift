/// What a query asks, after names and types were checked against a schema.
///
/// Made by `QueryResolver`, from a text or from a syntax tree; a plain value that can be used for any version of the file and
/// from any thread. Tables and columns stand in it by their keys.
public indirect enum QueryPredicate: Sendable {
    case always(Bool)
    case not(QueryPredicate)
    case and([QueryPredicate])
    case or([QueryPredicate])
    case comparison(QueryComparison)
    /// Every, some or no value of the path lies between two bounds, both included.
    case between(QueryBetween)
    /// Words in a string.
    case text(QueryPath, QuerySyntax.Quantifier?, TextSearch)
    /// Points within a region.
    case geo(QueryPath, QuerySyntax.Quantifier?, GeoArea)
}

/// Two values, or two lists of values, and how they are compared.
public struct QueryComparison: Sendable {
    /// What is compared, as far as the type of the other side allows it.
    public var left: QueryOperand
    /// Never `isIn`, `between`, `text` or `geoWithin`.
    public var operation: QuerySyntax.Operator
    /// Of case and accents; for strings only.
    public var options: QuerySyntax.Options
    /// What it is compared with.
    public var right: QueryOperand
    /// How many of the values on the left must match one on the right; `any` where there is one value.
    public var leftQuantifier: QuerySyntax.Quantifier
    /// The same for the right side.
    public var rightQuantifier: QuerySyntax.Quantifier
    /// Both sides are lists that are compared as a whole: as many values, and each pair in order.
    public var comparesWhole: Bool
    /// The values of a side are a list, however many there are; else there is one, or none where a map is empty.
    public var isLeftList: Bool
    /// The same for the right side.
    public var isRightList: Bool
    /// What the kinds of the two sides change in the comparison.
    public var rules: ComparisonRules
}

/// Where the meaning of a comparison depends on what is compared, not only on the two values (query-language 5 and 8).
public struct ComparisonRules: OptionSet, Hashable, Sendable {
    /// One bit a rule.
    public let rawValue: Int
    /// Bits that stand for no rule have no effect.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Null is below every string: a String property of the class itself against a constant.
    public static let nullBelowStrings = ComparisonRules(rawValue: 1)
    /// NaN is neither equal to nor below anything: a Double or Float property of the class itself against a constant of its kind.
    public static let nanIsUnordered = ComparisonRules(rawValue: 2)
    /// A string equals data of the same bytes: AnyRealmValue against a constant.
    public static let stringsMatchData = ComparisonRules(rawValue: 4)
    /// The values are sets of types (`@type`), equal when they have a type in common.
    public static let typeSets = ComparisonRules(rawValue: 8)
    /// An empty right side is contained in everything (a null one by CONTAINS): two columns. Against a constant it never matches.
    public static let emptyMatches = ComparisonRules(rawValue: 16)
}

/// `operand BETWEEN {low, high}`: both bounds belong to it.
public struct QueryBetween: Sendable {
    /// What is compared with the bounds.
    public var operand: QueryOperand
    /// The lower bound.
    public var low: QueryConstant
    /// How an operand is compared with `low`.
    public var lowRules: ComparisonRules
    /// The upper bound.
    public var high: QueryConstant
    /// How an operand is compared with `high`.
    public var highRules: ComparisonRules
    /// How many of the operand's values must lie within.
    public var quantifier: QuerySyntax.Quantifier
}

/// What stands on one side of a comparison and does not depend on the object.
public enum QueryConstant: Hashable, Sendable {
    case value(Mixed)
    /// The object with that primary key, null where there is none when the query runs.
    case object(TableKey, primaryKey: Mixed)
}

/// What stands on one side of a comparison.
public indirect enum QueryOperand: Sendable {
    case constant(QueryConstant)
    case constants([QueryConstant])
    case path(QueryPath)
    case arithmetic(QuerySyntax.Arithmetic, QueryOperand, QueryOperand)
    /// Number of elements of the path for which the predicate holds.
    case subqueryCount(QueryPath, QueryPredicate)
}

/// From an object to values: links to follow, then what to read of the objects they lead to.
public struct QueryPath: Sendable {
    /// Which elements of a collection are meant; `keys` are the keys of a map in place of its values.
    public enum Element: Hashable, Sendable {
        case all
        case position(Int)
        case first, last
        case key(String)
        case keys
    }
    /// A property that is followed to the objects it leads to.
    public struct Hop: Hashable, Sendable {
        /// Of the class to which the hop before has led.
        public var property: QueryProperty
        /// `all`, or one element of a list or map.
        public var element: Element = .all
        /// Leads to any number of objects.
        public var isMany: Bool { property.collection != nil && element == .all }
    }
    /// A step into a collection that is nested in an AnyRealmValue.
    public enum Nested: Hashable, Sendable {
        case position(Int)
        case first, last
        case any
        case key(String)
        case keys
    }
    /// What is read of the objects where the hops end.
    public enum End: Hashable, Sendable {
        /// The objects themselves.
        case objects
        /// A property that is no collection.
        case value(QueryProperty, nested: [Nested])
        case collection(QueryProperty, Element, nested: [Nested])
        /// All objects that link here.
        case allLinks
    }
    /// What is computed of the values.
    public enum Operation: Hashable, Sendable {
        case none
        /// Elements of a collection, objects of a link (0 or 1), bytes of a string or of data.
        case count
        /// Bytes of each element of a list of strings or data.
        case length
        /// The set of types, see `ValueTypes`.
        case type
        /// Of the values of a collection, or of a property of the objects.
        case aggregate(QuerySyntax.Path.Aggregate, QueryProperty?)
    }
    /// 0 the object that the query is about, n the element of the n-th subquery around.
    public var scope: Int
    /// The class where the path begins.
    public var table: TableKey
    /// In the order in which they are followed; none for a property of the class itself.
    public var hops: [Hop] = []
    /// What is read where the last hop leads.
    public var end: End = .objects
    /// What is computed of it, once for each object that the query looks at.
    public var operation: Operation = .none

    /// A path to the object itself; add hops and an end.
    public init(scope: Int, table: TableKey) {
        self.scope = scope
        self.table = table
    }

    /// The property, where the path is one property of the class itself that is neither link nor collection, and nothing else.
    public var ownProperty: QueryProperty? {
        guard hops.isEmpty, operation == .none, case .value(let property, let nested) = end, nested.isEmpty else { return nil }
        return property
    }

    /// The property, where the path is one single link of the class itself.
    var ownLink: QueryProperty? {
        guard hops.count == 1, hops[0].property.collection == nil, operation == .none, end == .objects else { return nil }
        return hops[0].property
    }
}

/// Types of AnyRealmValue as bits, for `@type` (query-language 10).
public struct ValueTypes: OptionSet, Hashable, Sendable {
    /// One bit a type; not the numbers that types have in a file.
    public let rawValue: Int64
    /// Bits that stand for no type match nothing.
    public init(rawValue: Int64) { self.rawValue = rawValue }
    /// A missing value; integers; truth values.
    public static let null = ValueTypes(rawValue: 1), int = ValueTypes(rawValue: 2), bool = ValueTypes(rawValue: 4)
    /// Numbers in binary with 32 and 64 bits, and in decimal with 128.
    public static let float = ValueTypes(rawValue: 8), double = ValueTypes(rawValue: 16), decimal = ValueTypes(rawValue: 32)
    /// Text, data, points in time.
    public static let string = ValueTypes(rawValue: 64), binary = ValueTypes(rawValue: 128), timestamp = ValueTypes(rawValue: 256)
    /// Identifiers of 12 and 16 bytes; links to objects.
    public static let objectId = ValueTypes(rawValue: 512), uuid = ValueTypes(rawValue: 1024), link = ValueTypes(rawValue: 2048)
    /// Collections within an AnyRealmValue.
    public static let list = ValueTypes(rawValue: 4096), dictionary = ValueTypes(rawValue: 8192)
    static let numeric: ValueTypes = [.int, .float, .double, .decimal]

    /// The types that a name of the language stands for.
    static func named(_ name: String) -> ValueTypes? {
        switch name.lowercased() {
        case "null": .null
        case "int", "integer", "int16", "int32", "int64", "short", "long", "byte", "char": .int
        case "bool", "boolean": .bool
        case "string": .string
        case "binary", "data", "bytearray", "byte[]", "bindata": .binary
        case "date", "datetimeoffset", "timestamp": .timestamp
        case "float": .float
        case "double": .double
        case "decimal128", "decimal": .decimal
        case "objectlink", "link": .link
        case "objectid": .objectId
        case "uuid", "guid": .uuid
        case "numeric": .numeric
        case "object", "dictionary": .dictionary
        case "array", "list": .list
        case "collection": [.list, .dictionary]
        default: nil
        }
    }

    init(_ value: Mixed) {
        switch value {
        case .null: self = .null
        case .int: self = .int
        case .bool: self = .bool
        case .float: self = .float
        case .double: self = .double
        case .string: self = .string
        case .binary: self = .binary
        case .timestamp: self = .timestamp
        case .decimal: self = .decimal
        case .objectId: self = .objectId
        case .uuid: self = .uuid
        case .link: self = .link
        case .list: self = .list
        case .dictionary: self = .dictionary
        }
    }

    init(_ type: ColumnType) {
        switch type {
        case .int: self = .int
        case .bool: self = .bool
        case .float: self = .float
        case .double: self = .double
        case .string: self = .string
        case .binary: self = .binary
        case .timestamp: self = .timestamp
        case .decimal: self = .decimal
        case .objectId: self = .objectId
        case .uuid: self = .uuid
        case .link, .typedLink, .backlink: self = .link
        case .mixed: self = []
        }
    }
}
