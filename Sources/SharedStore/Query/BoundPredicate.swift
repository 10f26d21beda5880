/// Rows of a cluster leaf, one bit each: at most 256.
struct RowMask {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    @inline(__always) init() {}
    /// The first `count` rows.
    @inline(__always)
    init(count: Int) {
        func word(_ n: Int) -> UInt64 { n >= 64 ? .max : n <= 0 ? 0 : 1 << UInt64(n) &- 1 }
        words = (word(count), word(count &- 64), word(count &- 128), word(count &- 192))
    }
    @inline(__always) var isEmpty: Bool { words.0 | words.1 | words.2 | words.3 == 0 }
    @inline(__always) var count: Int {
        words.0.nonzeroBitCount &+ words.1.nonzeroBitCount &+ words.2.nonzeroBitCount &+ words.3.nonzeroBitCount
    }
    @inline(__always)
    static func & (a: RowMask, b: RowMask) -> RowMask {
        var r = RowMask()
        r.words = (a.words.0 & b.words.0, a.words.1 & b.words.1, a.words.2 & b.words.2, a.words.3 & b.words.3)
        return r
    }
    @inline(__always)
    static func | (a: RowMask, b: RowMask) -> RowMask {
        var r = RowMask()
        r.words = (a.words.0 | b.words.0, a.words.1 | b.words.1, a.words.2 | b.words.2, a.words.3 | b.words.3)
        return r
    }
    /// The rows of this mask that are not in `b`.
    @inline(__always)
    func subtracting(_ b: RowMask) -> RowMask {
        var r = RowMask()
        r.words = (words.0 & ~b.words.0, words.1 & ~b.words.1, words.2 & ~b.words.2, words.3 & ~b.words.3)
        return r
    }
    /// Every row moved down by `distance`, which is 0 to 63.
    @inline(__always)
    func shifted(by distance: Int) -> RowMask {
        if distance == 0 { return self }
        let d = UInt64(distance), rest = 64 &- UInt64(distance)
        var r = RowMask()
        r.words = (words.0 >> d | words.1 << rest, words.1 >> d | words.2 << rest, words.2 >> d | words.3 << rest, words.3 >> d)
        return r
    }
    /// Calls `body` with each row, ascending.
    @inline(__always)
    func forEach(_ body: (Int) throws -> Void) rethrows {
        for (base, word) in [(0, words.0), (64, words.1), (128, words.2), (192, words.3)] where word != 0 {
            var rest = word
            while rest != 0 {
                try body(base &+ rest.trailingZeroBitCount)
                rest &= rest &- 1
            }
        }
    }
    @inline(__always)
    mutating func insert(_ row: Int) {
        let bit: UInt64 = 1 << UInt64(row & 63)
        switch row >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        default: words.3 |= bit
        }
    }
}

/// A predicate with its tables, columns and constants found, ready to be asked. A tree of these mirrors the predicate.
class BoundPredicate {
    /// How much it costs to ask about one row, about 1 for an integer of the class itself: cheaper parts of an AND go first.
    var cost: Int { 1 }

    /// True where the predicate holds for the row that its frame stands on.
    func matches() throws -> Bool { preconditionFailure("every kind of bound predicate answers this itself") }

    /// The rows of `mask` in the leaf that `frame` has entered for which the predicate holds.
    func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        var result = RowMask()
        try mask.forEach { row in
            frame.index = row
            frame.key = leaf.key(row)
            if try matches() { result.insert(row) }
        }
        return result
    }

    /// How many rows of the leaf that `frame` has entered fulfil the predicate.
    func count(_ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> Int {
        try narrow(RowMask(count: leaf.count), frame, leaf).count
    }
}

final class BoundAlways: BoundPredicate {
    let isTrue: Bool
    init(_ isTrue: Bool) { self.isTrue = isTrue }
    override var cost: Int { 0 }
    override func matches() -> Bool { isTrue }
    override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) -> RowMask { isTrue ? mask : RowMask() }
}

final class BoundNot: BoundPredicate {
    let inner: BoundPredicate
    init(_ inner: BoundPredicate) { self.inner = inner }
    override var cost: Int { inner.cost }
    override func matches() throws -> Bool { try !inner.matches() }
    override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        mask.subtracting(try inner.narrow(mask, frame, leaf))
    }
}

final class BoundAnd: BoundPredicate {
    let parts: [BoundPredicate]
    init(_ parts: [BoundPredicate]) { self.parts = parts.sorted { $0.cost < $1.cost } }
    override var cost: Int { parts.reduce(0) { min($0 + $1.cost, 1_000_000) } }
    override func matches() throws -> Bool { try parts.allSatisfy { try $0.matches() } }
    override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        var mask = mask
        for part in parts {
            if mask.isEmpty { break }
            mask = try part.narrow(mask, frame, leaf)
        }
        return mask
    }
}

final class BoundOr: BoundPredicate {
    let parts: [BoundPredicate]
    init(_ parts: [BoundPredicate]) { self.parts = parts.sorted { $0.cost < $1.cost } }
    override var cost: Int { parts.reduce(0) { min($0 + $1.cost, 1_000_000) } }
    override func matches() throws -> Bool { try parts.contains { try $0.matches() } }
    override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        var open = mask, result = RowMask()
        for part in parts {
            if open.isEmpty { break }
            let found = try part.narrow(open, frame, leaf)
            result = result | found
            open = open.subtracting(found)
        }
        return result
    }
}

// MARK: The general comparison

/// One side of a comparison.
indirect enum BoundOperand {
    case constants([MixedView])
    case path(BoundPath)
    case arithmetic(QuerySyntax.Arithmetic, BoundOperand, BoundOperand)
    case subqueryCount(BoundPath, QueryFrame, BoundPredicate)

    func evaluate(into list: inout ValueList) throws {
        switch self {
        case .constants(let values):
            list.reset()
            list.items.append(contentsOf: values)
        case .path(let path): try path.evaluate(into: &list)
        case .arithmetic(let operation, let left, let right):
            var a = ValueList(), b = ValueList()
            try left.evaluate(into: &a)
            try right.evaluate(into: &b)
            list.reset()
            // One side is a single value; the groups are those of the other.
            list.isGrouped = a.isGrouped || b.isGrouped
            for x in a.items {
                for y in b.items { list.items.append(QueryValues.arithmetic(x, operation, y)) }
            }
            for end in a.groupEnds { list.groupEnds.append(min(end * b.items.count, list.items.count)) }
            for end in b.groupEnds { list.groupEnds.append(min(end * a.items.count, list.items.count)) }
        case .subqueryCount(let path, let frame, let predicate):
            list.reset()
            var count: Int64 = 0
            try path.forEachObject { key in
                if try frame.move(to: key), try predicate.matches() { count += 1 }
            }
            list.items.append(.int(count))
        }
    }
}

extension BoundOperand {
    /// One value of the object itself or a constant, or made of such.
    var isSingle: Bool {
        switch self {
        case .constants(let values): values.count == 1
        case .path(let path): path.isOwnScalar
        case .arithmetic(_, let left, let right): left.isSingle && right.isSingle
        case .subqueryCount: false
        }
    }

    /// The value of an operand that is a single one.
    func single() throws -> MixedView {
        switch self {
        case .constants(let values): values[0]
        case .path(let path): try path.ownValue()
        case .arithmetic(let operation, let left, let right):
            QueryValues.arithmetic(try left.single(), operation, try right.single())
        case .subqueryCount: .null
        }
    }
}

final class BoundComparison: BoundPredicate {
    private let left: BoundOperand, right: BoundOperand
    private let operation: QuerySyntax.Operator
    private let options: QuerySyntax.Options
    private let rules: ComparisonRules
    private let leftQuantifier: QuerySyntax.Quantifier, rightQuantifier: QuerySyntax.Quantifier
    private let comparesWhole: Bool
    private let isLeftList: Bool, isRightList: Bool
    @exclusivity(unchecked) private var leftValues = ValueList()
    @exclusivity(unchecked) private var rightValues = ValueList()
    private let hasConstantRight: Bool
    /// Both sides are one value each, always, so that nothing has to be gathered.
    private let hasSingleValues: Bool

    init(_ comparison: QueryComparison, _ left: BoundOperand, _ right: BoundOperand) throws {
        self.left = left
        self.right = right
        operation = comparison.operation
        options = comparison.options
        rules = comparison.rules
        leftQuantifier = comparison.leftQuantifier
        rightQuantifier = comparison.rightQuantifier
        comparesWhole = comparison.comparesWhole
        isLeftList = comparison.isLeftList
        isRightList = comparison.isRightList
        hasSingleValues =
            !comparison.comparesWhole && !comparison.isLeftList && !comparison.isRightList && left.isSingle && right.isSingle
        if case .constants = right { hasConstantRight = true } else { hasConstantRight = false }
        if hasConstantRight { try right.evaluate(into: &rightValues) }
    }

    override var cost: Int { 100 }

    override func matches() throws -> Bool {
        if hasSingleValues { return QueryValues.compare(try left.single(), operation, try right.single(), options, rules) }
        try left.evaluate(into: &leftValues)
        if !hasConstantRight { try right.evaluate(into: &rightValues) }
        if !leftValues.isGrouped, !rightValues.isGrouped {
            return holds(0..<leftValues.items.count, 0..<rightValues.items.count)
        }
        return ValueGroups(leftValues).contains { l in ValueGroups(rightValues).contains { r in holds(l, r) } }
    }

    /// The comparison of a part of the left values with a part of the right ones.
    private func holds(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        if comparesWhole {
            // A value that is no list is one of those on the other side.
            let isAny = !isLeftList && left.count == 1 || !isRightList && right.count == 1
            return isAny ? holdsForAny(left, right) : holdsPairwise(left, right)
        }
        if !isLeftList, !isRightList, left.count == 1, right.count == 1 { return holds(left.lowerBound, right.lowerBound) }
        switch leftQuantifier {
        case .any:
            for i in left where holds(i, right) { return true }
            return false
        case .all:
            for i in left where !holds(i, right) { return false }
            return true
        case .none:
            for i in left where holds(i, right) { return false }
            return true
        }
    }

    @inline(__always)
    private func holds(_ i: Int, _ right: Range<Int>) -> Bool {
        switch rightQuantifier {
        case .any:
            for j in right where holds(i, j) { return true }
            return false
        case .all:
            for j in right where !holds(i, j) { return false }
            return true
        case .none:
            for j in right where holds(i, j) { return false }
            return true
        }
    }

    @inline(__always)
    private func holds(_ i: Int, _ j: Int) -> Bool {
        QueryValues.compare(leftValues.items[i], operation, rightValues.items[j], options, rules)
    }

    private func holdsForAny(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        for i in left {
            for j in right where holds(i, j) { return true }
        }
        return false
    }

    private func holdsPairwise(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        if left.count != right.count { return operation == .notEqual }
        for (i, j) in zip(left, right) where !holds(i, j) { return false }
        return true
    }
}

/// The values of one object each, one after another; where there is no object one empty group.
private struct ValueGroups: Sequence, IteratorProtocol {
    private let ends: [Int]
    private var position = 0, start = 0

    init(_ list: ValueList) { ends = !list.isGrouped ? [list.items.count] : list.groupEnds.isEmpty ? [0] : list.groupEnds }

    mutating func next() -> Range<Int>? {
        guard position < ends.count else { return nil }
        defer {
            start = ends[position]
            position += 1
        }
        return start..<ends[position]
    }
}

final class BoundBetween: BoundPredicate {
    private let operand: BoundOperand
    private let low: MixedView, high: MixedView
    private let quantifier: QuerySyntax.Quantifier
    private let lowRules: ComparisonRules, highRules: ComparisonRules
    @exclusivity(unchecked) private var values = ValueList()

    init(_ between: QueryBetween, _ operand: BoundOperand, _ low: MixedView, _ high: MixedView) {
        self.operand = operand
        self.low = low
        self.high = high
        quantifier = between.quantifier
        lowRules = between.lowRules
        highRules = between.highRules
    }

    override var cost: Int { 100 }

    override func matches() throws -> Bool {
        try operand.evaluate(into: &values)
        func isBetween(_ value: MixedView) -> Bool {
            QueryValues.compare(value, .greaterOrEqual, low, [], lowRules)
                && QueryValues.compare(value, .lessOrEqual, high, [], highRules)
        }
        return ValueGroups(values).contains { group in
            switch quantifier {
            case .any: values.items[group].contains(where: isBetween)
            case .all: values.items[group].allSatisfy(isBetween)
            case .none: !values.items[group].contains(where: isBetween)
            }
        }
    }
}

final class BoundText: BoundPredicate {
    private let path: BoundPath
    private let quantifier: QuerySyntax.Quantifier
    private let search: TextSearch
    @exclusivity(unchecked) private var values = ValueList()

    init(_ path: BoundPath, _ quantifier: QuerySyntax.Quantifier, _ search: TextSearch) {
        self.path = path
        self.quantifier = quantifier
        self.search = search
    }

    override var cost: Int { 1000 }

    override func matches() throws -> Bool {
        try path.evaluate(into: &values)
        func isHit(_ value: MixedView) -> Bool {
            switch value {
            case .string(let text): search.matches(text)
            case .null: search.matches([])
            default: false
            }
        }
        switch quantifier {
        case .any: return values.items.contains(where: isHit)
        case .all: return values.items.allSatisfy(isHit)
        case .none: return !values.items.contains(where: isHit)
        }
    }
}

final class BoundGeo: BoundPredicate {
    private let path: BoundPath
    private let quantifier: QuerySyntax.Quantifier
    private let area: GeoArea
    private let type: Column, coordinates: Column

    init(_ path: BoundPath, _ quantifier: QuerySyntax.Quantifier, _ area: GeoArea) throws {
        self.path = path
        self.quantifier = quantifier
        self.area = area
        guard let type = path.targetTable.column(area.type), let coordinates = path.targetTable.column(area.coordinates) else {
            throw QueryError(.geo, "the class linked to has no geoJSON form: type and coordinates")
        }
        self.type = type
        self.coordinates = coordinates
    }

    override var cost: Int { 1000 }

    override func matches() throws -> Bool {
        var found = 0, total = 0
        try path.forEachObject { key in
            total += 1
            if try isInside(key) { found += 1 }
        }
        switch quantifier {
        case .any: return found > 0
        // Unlike elsewhere, ALL over nothing does not hold here.
        case .all: return total > 0 && found == total
        case .none: return found == 0
        }
    }

    private func isInside(_ key: ObjectKey) throws -> Bool {
        guard let row = try path.targetTable.find(key), let kind = try row.string(type), kind.lowercased() == "point" else {
            return false
        }
        let list = try row.list(coordinates)
        guard list.count >= 2, case .double(let longitude) = try list.value(0), case .double(let latitude) = try list.value(1)
        else { return false }
        return area.contains(GeoPoint(longitude: longitude, latitude: latitude))
    }
}
