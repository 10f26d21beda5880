/// Comparisons, arithmetic and aggregates of values as the query language wants them (query-language 4, 5, 8, 9).
enum QueryValues {
    typealias Operator = QuerySyntax.Operator

    // MARK: Comparison

    /// True where `left operation right`. `part` is the right side of a string operator or of an option, made ready once.
    @inline(__always)
    static func compare(
        _ left: MixedView, _ operation: Operator, _ right: MixedView, _ options: QuerySyntax.Options, _ rules: ComparisonRules
    ) -> Bool {
        if rules.contains(.typeSets) { return (ValueTypes.bits(left) & ValueTypes.bits(right) != 0) == (operation == .equal) }
        switch operation {
        case .equal: return equal(left, right, options, rules)
        case .notEqual: return !equal(left, right, options, rules)
        case .less: return order(left, right, rules).map { $0 < 0 } ?? false
        case .greater: return order(left, right, rules).map { $0 > 0 } ?? false
        case .lessOrEqual: return order(left, right, rules).map { $0 <= 0 } ?? false
        case .greaterOrEqual: return order(left, right, rules).map { $0 >= 0 } ?? false
        default: return substring(left, operation, right, options, rules)
        }
    }

    @inline(__always)
    static func equal(_ left: MixedView, _ right: MixedView, _ options: QuerySyntax.Options, _ rules: ComparisonRules) -> Bool {
        switch (left, right) {
        case (.null, .null): return true
        case (.null, _), (_, .null): return false
        case (.string(let a), .string(let b)), (.binary(let a), .binary(let b)):
            return options.isEmpty ? ValueOrder.equal(a, b) : equal(a, b, options)
        case (.string(let a), .binary(let b)), (.binary(let a), .string(let b)):
            return rules.contains(.stringsMatchData) && (options.isEmpty ? ValueOrder.equal(a, b) : equal(a, b, options))
        case (.int(let a), .int(let b)): return a == b
        default:
            guard left.rank == right.rank else { return false }
            if rules.contains(.nanIsUnordered), left.isNaN || right.isNaN { return false }
            return MixedView.compare(left, right) == 0
        }
    }

    private static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, _ options: QuerySyntax.Options) -> Bool {
        if options.contains(.diacriticInsensitive) {
            return StringMatch.matchesWithoutAccents(
                a, .equal, String(decoding: b, as: UTF8.self), ignoresCase: options.contains(.caseInsensitive))
        }
        // Data that is no text has no case, and equals nothing here.
        return a.count == b.count && StringMatch.isText(b)
            && StringMatch.folded(b).withUnsafeBytes { StringMatch.equalsFolded(a, $0) }
    }

    /// Negative, 0 or positive; nil where the two have no order. Both null counts as equal, so that `<=` and `>=` hold.
    @inline(__always)
    static func order(_ left: MixedView, _ right: MixedView, _ rules: ComparisonRules) -> Int? {
        switch (left, right) {
        case (.null, .null): return 0
        case (.null, .string): return rules.contains(.nullBelowStrings) ? -1 : nil
        case (.string, .null): return rules.contains(.nullBelowStrings) ? 1 : nil
        case (.null, _), (_, .null): return nil
        case (.int(let a), .int(let b)): return a < b ? -1 : a == b ? 0 : 1
        default:
            let rank = left.rank
            guard rank == right.rank else { return nil }
            if rules.contains(.nanIsUnordered), left.isNaN || right.isNaN { return nil }
            return MixedView.compare(left, right)
        }
    }

    /// BEGINSWITH, ENDSWITH, CONTAINS and LIKE. An empty or null right side matches nothing, except LIKE, and except between two
    /// columns.
    static func substring(
        _ left: MixedView, _ operation: Operator, _ right: MixedView, _ options: QuerySyntax.Options, _ rules: ComparisonRules
    ) -> Bool {
        let text: UnsafeRawBufferPointer, part: UnsafeRawBufferPointer
        switch (left, right) {
        case (.string(let a), .string(let b)), (.binary(let a), .binary(let b)): (text, part) = (a, b)
        case (.string(let a), .binary(let b)), (.binary(let a), .string(let b)):
            guard rules.contains(.stringsMatchData) else { return false }
            (text, part) = (a, b)
        case (.null, .null): return operation == .like || rules.contains(.emptyMatches)
        case (.string, .null), (.binary, .null): return operation == .contains && rules.contains(.emptyMatches)
        default: return false
        }
        if operation == .like {
            if !options.contains(.caseInsensitive) { return StringMatch.like(text, part, isFolded: false) }
            return StringMatch.folded(part).withUnsafeBytes { StringMatch.like(text, $0, isFolded: true) }
        }
        if part.isEmpty { return rules.contains(.emptyMatches) }
        if options.contains(.diacriticInsensitive) {
            return StringMatch.matchesWithoutAccents(
                text, operation, String(decoding: part, as: UTF8.self), ignoresCase: options.contains(.caseInsensitive))
        }
        if options.contains(.caseInsensitive) {
            return StringMatch.folded(part).withUnsafeBytes { folded in
                switch operation {
                case .beginsWith: StringMatch.beginsFolded(text, folded)
                case .endsWith: StringMatch.endsFolded(text, folded)
                default: StringMatch.containsFolded(text, folded)
                }
            }
        }
        switch operation {
        case .beginsWith: return StringMatch.begins(text, part)
        case .endsWith: return StringMatch.ends(text, part)
        default: return StringMatch.contains(text, part)
        }
    }

    // MARK: Arithmetic

    /// Null where a side is no number; but beside a fraction or a decimal a truth value, string, data or date counts as 0.
    /// Integers wrap around and `/` cuts; an integer divided by 0 is the largest integer, or the smallest where the left side is
    /// negative.
    static func arithmetic(_ left: MixedView, _ operation: QuerySyntax.Arithmetic, _ right: MixedView) -> MixedView {
        switch (left, right) {
        case (.int(let a), .int(let b)): return .int(integers(a, operation, b))
        case (.decimal(let a), _):
            guard let b = decimal(numberOrZero(right)) else { return .null }
            return .decimal(decimals(a, operation, b))
        case (_, .decimal(let b)):
            guard let a = decimal(numberOrZero(left)) else { return .null }
            return .decimal(decimals(a, operation, b))
        case (.float, _), (.double, _), (_, .float), (_, .double):
            guard let a = double(numberOrZero(left)), let b = double(numberOrZero(right)) else { return .null }
            return .double(doubles(a, operation, b))
        default: return .null
        }
    }

    private static func numberOrZero(_ value: MixedView) -> MixedView {
        switch value {
        case .bool, .string, .binary, .timestamp: .double(0)
        case .null, .int, .float, .double, .decimal, .objectId, .uuid, .link, .list, .dictionary: value
        }
    }

    private static func doubles(_ a: Double, _ operation: QuerySyntax.Arithmetic, _ b: Double) -> Double {
        let result: Double
        switch operation {
        case .add: result = a + b
        case .subtract: result = a - b
        case .multiply: result = a * b
        case .divide: result = a / b
        }
        return result.isNaN && !a.isNaN && !b.isNaN ? computedNaN : result
    }

    /// What comes of 0 / 0 or inf - inf, on any machine: NaNs are ordered by their bits, and this one is above those that are
    /// stored or written.
    static let computedNaN = -Double.nan

    private static func integers(_ a: Int64, _ operation: QuerySyntax.Arithmetic, _ b: Int64) -> Int64 {
        switch operation {
        case .add: return a &+ b
        case .subtract: return a &- b
        case .multiply: return a &* b
        case .divide:
            if b == 0 { return a < 0 ? Int64.min : Int64.max }
            return a.dividedReportingOverflow(by: b).partialValue
        }
    }

    private static func decimals(_ a: Decimal128Bits, _ operation: QuerySyntax.Arithmetic, _ b: Decimal128Bits) -> Decimal128Bits
    {
        switch operation {
        case .add: a + b
        case .subtract: a - b
        case .multiply: a * b
        case .divide: a / b
        }
    }

    @inline(__always)
    static func double(_ value: MixedView) -> Double? {
        switch value {
        case .int(let v): Double(v)
        case .float(let v): Double(v)
        case .double(let v): v
        default: nil
        }
    }

    static func decimal(_ value: MixedView) -> Decimal128Bits? {
        switch value {
        case .int(let v): Decimal128Bits(v)
        case .float(let v): Decimal128Bits(v)
        case .double(let v): Decimal128Bits(v)
        case .decimal(let v): v
        default: nil
        }
    }
}

extension MixedView {
    @inline(__always)
    var isNaN: Bool {
        switch self {
        case .float(let v): v.isNaN
        case .double(let v): v.isNaN
        case .decimal(let v): v.isNaN
        default: false
        }
    }
}

extension ValueTypes {
    /// The bits that a value of `@type` has: it is kept as an integer.
    @inline(__always)
    static func bits(_ value: MixedView) -> Int64 {
        if case .int(let bits) = value { return bits }
        return 0
    }

    init(_ view: MixedView) {
        switch view {
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
}

/// Sum, mean and extremes of values, fed one by one.
///
/// Nulls are passed over, and what is no number in a sum or mean; NaN too. But a NaN that is no decimal counts among
/// AnyRealmValues: it is the least number, and makes a sum or mean NaN; and in maps it is the least number.
struct Aggregation {
    private let aggregate: QuerySyntax.Path.Aggregate
    private let type: ColumnType
    private let isMixed: Bool, isMap: Bool
    private var count = 0
    private var hasNaN = false
    private var integers: Int64 = 0
    private var doubles = 0.0
    private var decimals = Decimal128Bits.zero
    private var extreme = MixedView.null

    /// `type` is that of the property, or of the values of a map.
    init(_ aggregate: QuerySyntax.Path.Aggregate, _ type: ColumnType, isMap: Bool) {
        self.aggregate = aggregate
        self.type = type
        self.isMap = isMap
        isMixed = type == .mixed
    }

    // MARK: Values added up elsewhere

    var isExtreme: Bool { aggregate == .min || aggregate == .max }
    var isLeast: Bool { aggregate == .min }
    /// The sum up to now, in doubles.
    var doubleSum: Double { doubles }
    /// No sum of some of the integers added as a whole is above this.
    var doublesMax = 0.0

    /// - Parameter doubles: the new sum in doubles.
    mutating func add(sum: Int64, doubles: Double, count: Int) {
        integers &+= sum
        self.doubles = doubles
        self.count += count
    }

    mutating func add(_ value: MixedView) {
        if case .null = value { return }
        if value.isNaN {
            if case .decimal = value { return }
            let isExtreme = aggregate == .min || aggregate == .max
            if isExtreme ? !isMixed && !isMap : !isMixed { return }
            hasNaN = true
        }
        switch aggregate {
        case .min, .max:
            if count == 0 || (aggregate == .min ? MixedView.compare(value, extreme) < 0 : MixedView.compare(value, extreme) > 0) {
                extreme = value
            }
        case .sum, .average:
            switch type {
            case .int:
                guard case .int(let v) = value else { return }
                integers &+= v
                doubles += Double(v)
            case .float, .double:
                guard let v = QueryValues.double(value) else { return }
                doubles += v
            default:
                guard let v = QueryValues.decimal(value) else { return }
                decimals = decimals + v
            }
        }
        count += 1
    }

    /// Null for the mean and the extremes of nothing; the sum of nothing is 0.
    var result: MixedView {
        switch aggregate {
        case .min, .max: return extreme
        case .sum, .average:
            if aggregate == .average && count == 0 { return .null }
            if hasNaN { return .decimal(.nan) }
            let doubles = doubles.isNaN ? QueryValues.computedNaN : doubles
            switch (aggregate, type) {
            case (.sum, .int): return .int(integers)
            case (.sum, .float), (.sum, .double): return .double(doubles)
            case (.sum, _): return .decimal(decimals)
            case (_, .int), (_, .float), (_, .double): return .double(doubles / Double(count))
            default: return .decimal(decimals / Decimal128Bits(Int64(count)))
            }
        }
    }
}
