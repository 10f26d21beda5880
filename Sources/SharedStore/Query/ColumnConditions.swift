/// A scalar property of the class itself against constants: read leaf by leaf, without going through values of any type.
///
/// Each of these gives the same answers as `BoundComparison`, which is there for everything.
class ColumnCondition<L>: BoundPredicate {
    let frame: QueryFrame
    let column: Column
    @exclusivity(unchecked) private var leaf: L?
    @exclusivity(unchecked) private var generation = -1

    init(_ frame: QueryFrame, _ column: Column) {
        self.frame = frame
        self.column = column
    }

    /// The column's leaf for the rows of the frame's cluster leaf.
    func make(_ memory: Memory, _ ref: Int) throws -> L { preconditionFailure("every column condition makes its own leaf") }
    func holds(_ leaf: L, _ row: Int) throws -> Bool { preconditionFailure("every column condition answers for its own leaf") }
    /// The rows of `mask`, all below the number of values of `leaf`.
    func rows(_ leaf: L, _ mask: RowMask, _ count: Int) throws -> RowMask {
        var result = RowMask()
        try mask.forEach { if try holds(leaf, $0) { result.insert($0) } }
        return result
    }

    @inline(__always)
    final func current() throws -> L {
        if generation == frame.generation, let leaf { return leaf }
        let made = try make(frame.memory, frame.cluster.requiredRef(column.leafIndex &+ 1))
        leaf = made
        generation = frame.generation
        return made
    }

    final override func matches() throws -> Bool { try holds(current(), frame.index) }

    final override func count(_ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> Int { try count(current(), leaf.count) }
    /// How many of the first `count` rows there are.
    func count(_ leaf: L, _ count: Int) throws -> Int { try rows(leaf, RowMask(count: count), count).count }

    final override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        try rows(current(), mask, leaf.count)
    }
}

/// The integers of a leaf, nullable or not.
struct IntegerLeaf {
    let node: Node
    /// Element of the first value: 1 in a nullable leaf.
    let first: Int
    /// What stands for null; nil in a leaf that is not nullable.
    let sentinel: Int64?
    let ref: Int

    init(_ memory: Memory, _ ref: Int, isNullable: Bool) throws {
        self.ref = ref
        if isNullable {
            let leaf = try NullableIntLeaf(memory, ref)
            node = leaf.node
            first = 1
            sentinel = leaf.sentinel
        } else {
            node = try IntLeaf(memory, ref).node
            first = 0
            sentinel = nil
        }
    }

    @inline(__always) var count: Int { node.count &- first }

    @inline(__always)
    func value(_ row: Int) throws -> Int64? {
        if UInt(bitPattern: row) >= UInt(bitPattern: count) {
            throw FormatError(ref: ref, "value \(row) asked of a leaf with \(count)")
        }
        let v = node.unchecked(row &+ first)
        return v == sentinel ? nil : v
    }

    /// Rows in `low...high` that are not null.
    func rows(_ count: Int, in low: Int64, _ high: Int64) throws -> RowMask {
        if count > self.count { throw FormatError(ref: ref, "leaf with \(self.count) values for \(count) objects") }
        let found = ScanKernels.rows(node, first: first, count: count, in: low, high)
        guard let sentinel, sentinel >= low, sentinel <= high else { return found }
        return found.subtracting(ScanKernels.rows(node, first: first, count: count, in: sentinel, sentinel))
    }
}

/// An integer in a range, or outside of it.
final class IntegerCondition: ColumnCondition<IntegerLeaf> {
    let low: Int64, high: Int64
    /// The complement, nulls included.
    let isNegated: Bool

    init(_ frame: QueryFrame, _ column: Column, low: Int64, high: Int64, isNegated: Bool) {
        self.low = low
        self.high = high
        self.isNegated = isNegated
        super.init(frame, column)
    }

    override func make(_ memory: Memory, _ ref: Int) throws -> IntegerLeaf {
        try IntegerLeaf(memory, ref, isNullable: column.isNullable)
    }
    override func holds(_ leaf: IntegerLeaf, _ row: Int) throws -> Bool {
        guard let v = try leaf.value(row) else { return isNegated }
        return (v >= low && v <= high) != isNegated
    }
    override func rows(_ leaf: IntegerLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        let inside = try leaf.rows(count, in: low, high)
        return isNegated ? mask.subtracting(inside) : mask & inside
    }
    override func count(_ leaf: IntegerLeaf, _ count: Int) throws -> Int {
        guard leaf.count == count else { return try super.count(leaf, count) }
        var inside = ScanKernels.count(leaf.node, in: low, high)
        // The sentinel stands for null, and in front as itself.
        if let sentinel = leaf.sentinel, sentinel >= low, sentinel <= high {
            inside &-= ScanKernels.count(leaf.node, in: sentinel, sentinel)
        }
        return isNegated ? count &- inside : inside
    }
}

/// An integer that is one of several.
final class IntegerSetCondition: ColumnCondition<IntegerLeaf> {
    private let values: Set<Int64>
    private let includesNull: Bool
    private let low: Int64, high: Int64

    init(_ frame: QueryFrame, _ column: Column, _ values: Set<Int64>, includesNull: Bool) {
        self.values = values
        self.includesNull = includesNull
        low = values.min() ?? 0
        high = values.max() ?? -1
        super.init(frame, column)
    }

    override var cost: Int { 3 }
    override func make(_ memory: Memory, _ ref: Int) throws -> IntegerLeaf {
        try IntegerLeaf(memory, ref, isNullable: column.isNullable)
    }
    override func holds(_ leaf: IntegerLeaf, _ row: Int) throws -> Bool {
        guard let v = try leaf.value(row) else { return includesNull }
        return v >= low && v <= high && values.contains(v)
    }

    /// So many values are looked for one after another.
    private static let scanCountMax = 8

    override func rows(_ leaf: IntegerLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        if includesNull || values.count > IntegerSetCondition.scanCountMax { return try super.rows(leaf, mask, count) }
        var found = RowMask()
        for value in values { found = found | (try leaf.rows(count, in: value, value)) }
        return mask & found
    }
}

/// Null or not, of a nullable integer, date, or any other type that has a leaf which tells.
final class NullCondition: ColumnCondition<ColumnReader> {
    private let isNull: Bool
    init(_ frame: QueryFrame, _ column: Column, isNull: Bool) {
        self.isNull = isNull
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> ColumnReader { try ColumnReader(memory, frame.cluster, column) }
    override func holds(_ leaf: ColumnReader, _ row: Int) throws -> Bool {
        let found: Bool
        switch leaf {
        case .int: found = false
        case .optionalInt(let leaf): found = try leaf.value(row) == nil
        case .bool(let leaf): found = try leaf.value(row) == nil
        case .float(let leaf): found = try leaf.value(row) == nil
        case .double(let leaf): found = try leaf.value(row) == nil
        case .string(let leaf): found = try leaf.isNull(row)
        case .enumeratedString(let leaf): found = try leaf.keys.isNull(leaf.keyIndex(row))
        case .binary(let leaf): found = try leaf.isNull(row)
        case .timestamp(let leaf): found = try leaf.value(row) == nil
        case .decimal(let leaf): found = try leaf.value(row) == nil
        case .objectId(let leaf): found = try leaf.value(row) == nil
        case .uuid(let leaf): found = try leaf.value(row) == nil
        case .link(let leaf): found = try leaf.value(row).rawValue < 0
        case .mixed(let leaf):
            if case .link(_, let key) = try leaf.view(row) {
                found = key.rawValue < 0
            } else {
                found = try leaf.typeNumber(row) < 0
            }
        case .backlink, .collection: found = false
        }
        return found == isNull
    }

    override func rows(_ leaf: ColumnReader, _ mask: RowMask, _ count: Int) throws -> RowMask {
        let nulls: RowMask
        switch leaf {
        case .link(let leaf) where leaf.count >= count:
            // Keys plus 1: null, and links to what is gone, are not above 0.
            nulls = ScanKernels.rows(leaf.node, first: 0, count: count, in: .min, 0)
        case .optionalInt(let leaf) where leaf.count >= count:
            nulls = ScanKernels.rows(leaf.node, first: 1, count: count, in: leaf.sentinel, leaf.sentinel)
        default: return try super.rows(leaf, mask, count)
        }
        return isNull ? mask & nulls : mask.subtracting(nulls)
    }
}

/// Two integers of the class itself, neither of which may be null.
final class IntegerPairCondition: ColumnCondition<IntLeaf> {
    private let operation: QuerySyntax.Operator
    private let right: Column

    init(_ frame: QueryFrame, _ left: Column, _ operation: QuerySyntax.Operator, _ right: Column) {
        self.operation = operation
        self.right = right
        super.init(frame, left)
    }

    override var cost: Int { 3 }
    override func make(_ memory: Memory, _ ref: Int) throws -> IntLeaf { try IntLeaf(memory, ref) }
    private func rightLeaf() throws -> IntLeaf {
        try IntLeaf(frame.memory, frame.cluster.requiredRef(right.leafIndex &+ 1))
    }
    override func holds(_ leaf: IntLeaf, _ row: Int) throws -> Bool {
        operation.holds(try leaf.value(row), try rightLeaf().value(row))
    }
    override func rows(_ leaf: IntLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        let others = try rightLeaf()
        if leaf.count < count || others.count < count { return try super.rows(leaf, mask, count) }
        var result = RowMask()
        mask.forEach { if operation.holds(leaf.unchecked($0), others.unchecked($0)) { result.insert($0) } }
        return result
    }
}

final class BoolCondition: ColumnCondition<BoolLeaf> {
    private let value: Bool, isNegated: Bool
    init(_ frame: QueryFrame, _ column: Column, _ value: Bool, isNegated: Bool) {
        self.value = value
        self.isNegated = isNegated
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> BoolLeaf { try BoolLeaf(memory, ref) }
    override func holds(_ leaf: BoolLeaf, _ row: Int) throws -> Bool { (try leaf.value(row) == value) != isNegated }
}

extension QuerySyntax.Operator {
    /// Null is unequal to every value, and in no order with any; so is NaN, by the rules of IEEE 754.
    @inline(__always)
    fileprivate func holds<Value: Comparable>(_ found: Value?, _ value: Value) -> Bool {
        guard let found else { return self == .notEqual }
        switch self {
        case .equal: return found == value
        case .notEqual: return found != value
        case .less: return found < value
        case .lessOrEqual: return found <= value
        case .greater: return found > value
        default: return found >= value
        }
    }
}

/// A double against a double.
final class DoubleCondition: ColumnCondition<DoubleLeaf> {
    private let operation: QuerySyntax.Operator
    private let value: Double
    /// NaN is below every number.
    private let hasNaNBelow: Bool
    init(_ frame: QueryFrame, _ column: Column, _ operation: QuerySyntax.Operator, _ value: Double, hasNaNBelow: Bool = false) {
        self.operation = operation
        self.value = value
        self.hasNaNBelow = hasNaNBelow && (operation == .less || operation == .lessOrEqual)
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> DoubleLeaf { try DoubleLeaf(memory, ref) }
    override func holds(_ leaf: DoubleLeaf, _ row: Int) throws -> Bool {
        let found = try leaf.value(row)
        return operation.holds(found, value) || hasNaNBelow && found?.isNaN == true
    }
    override func rows(_ leaf: DoubleLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        if leaf.count < count { return try super.rows(leaf, mask, count) }
        var found = ScanKernels.rows(leaf.node.payload, count, operation, value)
        if hasNaNBelow {
            let nans = ScanKernels.nans(leaf.node.payload, count, of: Double.self)
            nans.forEach { if leaf.unchecked($0) != nil { found.insert($0) } }
        }
        return mask & found
    }
}

final class FloatCondition: ColumnCondition<FloatLeaf> {
    private let operation: QuerySyntax.Operator
    private let value: Float
    /// NaN is below every number.
    private let hasNaNBelow: Bool
    init(_ frame: QueryFrame, _ column: Column, _ operation: QuerySyntax.Operator, _ value: Float, hasNaNBelow: Bool = false) {
        self.operation = operation
        self.value = value
        self.hasNaNBelow = hasNaNBelow && (operation == .less || operation == .lessOrEqual)
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> FloatLeaf { try FloatLeaf(memory, ref) }
    override func holds(_ leaf: FloatLeaf, _ row: Int) throws -> Bool {
        let found = try leaf.value(row)
        return operation.holds(found, value) || hasNaNBelow && found?.isNaN == true
    }
    override func rows(_ leaf: FloatLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        if leaf.count < count { return try super.rows(leaf, mask, count) }
        var found = ScanKernels.rows(leaf.node.payload, count, operation, value)
        if hasNaNBelow {
            let nans = ScanKernels.nans(leaf.node.payload, count, of: Float.self)
            nans.forEach { if leaf.unchecked($0) != nil { found.insert($0) } }
        }
        return mask & found
    }
}

final class TimestampCondition: ColumnCondition<TimestampLeaf> {
    private let operation: QuerySyntax.Operator
    private let value: Timestamp
    init(_ frame: QueryFrame, _ column: Column, _ operation: QuerySyntax.Operator, _ value: Timestamp) {
        self.operation = operation
        self.value = value
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> TimestampLeaf { try TimestampLeaf(memory, ref) }
    override func holds(_ leaf: TimestampLeaf, _ row: Int) throws -> Bool { operation.holds(try leaf.value(row), value) }
}

/// A link to a certain object.
final class LinkCondition: ColumnCondition<LinkLeaf> {
    private let target: ObjectKey
    private let isNegated: Bool
    init(_ frame: QueryFrame, _ column: Column, _ target: ObjectKey, isNegated: Bool) {
        self.target = target
        self.isNegated = isNegated
        super.init(frame, column)
    }
    override func make(_ memory: Memory, _ ref: Int) throws -> LinkLeaf { try LinkLeaf(memory, ref) }
    override func holds(_ leaf: LinkLeaf, _ row: Int) throws -> Bool { (try leaf.value(row) == target) != isNegated }
    override func rows(_ leaf: LinkLeaf, _ mask: RowMask, _ count: Int) throws -> RowMask {
        if leaf.count < count { return try super.rows(leaf, mask, count) }
        let element = target.rawValue &+ 1
        let found = ScanKernels.rows(leaf.node, first: 0, count: count, in: element, element)
        return isNegated ? mask.subtracting(found) : mask & found
    }
}
