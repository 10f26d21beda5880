extension QueryRun {
    /// Finds the tables, columns and constants of `predicate`; the frames of the objects around are in place.
    func bind(_ predicate: QueryPredicate) throws -> BoundPredicate {
        switch predicate {
        case .always(let isTrue): return BoundAlways(isTrue)
        case .not(let inner): return BoundNot(try bind(inner))
        case .and(let parts): return BoundAnd(try parts.map(bind))
        case .or(let parts): return BoundOr(try parts.map(bind))
        case .comparison(let comparison):
            if usesColumnConditions, let condition = try columnCondition(comparison) { return condition }
            let merges = !comparison.comparesWhole
            let bound = try BoundComparison(
                comparison, bind(comparison.left, mergesObjects: merges), bind(comparison.right, mergesObjects: merges))
            switch comparison.right {
            case .constant, .constants: return try throughLink(bound, comparison.left)
            case .path, .arithmetic, .subqueryCount: return bound
            }
        case .between(let between):
            if usesColumnConditions, let condition = try columnCondition(between) { return condition }
            let bound = BoundBetween(
                between, try bind(between.operand, mergesObjects: true), try view(between.low), try view(between.high))
            return try throughLink(bound, between.operand)
        case .text(let path, let quantifier, let search):
            return BoundText(try BoundPath(path, self, mergesObjects: true), quantifier ?? .any, search)
        case .geo(let path, let quantifier, let area):
            return try BoundGeo(BoundPath(path, self, mergesObjects: true), quantifier ?? .any, area)
        }
    }

    func bind(_ operand: QueryOperand, mergesObjects: Bool = false) throws -> BoundOperand {
        switch operand {
        case .constant(let constant): return .constants([try view(constant)])
        case .constants(let constants): return .constants(try constants.map(view))
        case .path(let path): return .path(try BoundPath(path, self, mergesObjects: mergesObjects))
        case .arithmetic(let operation, let left, let right): return .arithmetic(operation, try bind(left), try bind(right))
        case .subqueryCount(let path, let predicate):
            let bound = try BoundPath(path, self)
            let frame = QueryFrame(bound.targetTable)
            frames.append(frame)
            defer { frames.removeLast() }
            return .subqueryCount(bound, frame, try bind(predicate))
        }
    }

    /// A quicker way to the same answers, where the path to what is compared with constants begins with a single link.
    private func throughLink(_ bound: BoundPredicate, _ operand: QueryOperand) throws -> BoundPredicate {
        guard usesColumnConditions, case .path(let path) = operand, let hop = path.hops.first, hop.property.collection == nil
        else {
            return bound
        }
        return try BoundThroughLink(bound, frames[path.scope], column(hop.property), table(hop.property.target)) ?? bound
    }

    // MARK: Conditions on one column

    /// A quicker way to the same answers, where there is one.
    private func columnCondition(_ between: QueryBetween) throws -> BoundPredicate? {
        guard case .path(let path) = between.operand, let property = path.ownProperty, property.type == .int,
            case .value(.int(let low)) = between.low,
            case .value(.int(let high)) = between.high
        else { return nil }
        return IntegerCondition(
            frames[path.scope], try column(property), low: low, high: high, isNegated: between.quantifier == .none)
    }

    private func columnCondition(_ comparison: QueryComparison) throws -> BoundPredicate? {
        guard case .path(let path) = comparison.left, comparison.leftQuantifier == .any, comparison.rightQuantifier == .any,
            !comparison.comparesWhole
        else { return nil }
        let property: QueryProperty
        if let own = path.ownProperty {
            property = own
        } else if let link = path.ownLink {
            property = link
        } else {
            return nil
        }
        let column = try column(property), frame = frames[path.scope]
        switch comparison.right {
        case .constant(let constant):
            let value: Mixed
            switch constant {
            case .value(let plain): value = plain
            case .object: value = Mixed(try view(constant))
            }
            if case .null = value { return nullCondition(frame, column, comparison) }
            return try valueCondition(frame, column, comparison, value)
        case .constants(let constants):
            if column.type == .string { return try stringsCondition(frame, column, comparison, constants) }
            guard comparison.operation == .equal, comparison.options.isEmpty, column.type == .int else { return nil }
            var values: Set<Int64> = []
            var includesNull = false
            for constant in constants {
                switch constant {
                case .value(.int(let value)): values.insert(value)
                case .value(.null): includesNull = true
                default: return nil
                }
            }
            return IntegerSetCondition(frame, column, values, includesNull: includesNull)
        case .path(let other):
            guard comparison.options.isEmpty, !comparison.rules.contains(.typeSets), !comparison.operation.isSubstring,
                !comparison.isRightList,
                let own = other.ownProperty, other.scope == path.scope, own.type == .int, own.collection == nil,
                column.type == .int, column.collection == nil, !column.isNullable
            else { return nil }
            let right = try self.column(own)
            return right.isNullable ? nil : IntegerPairCondition(frame, column, comparison.operation, right)
        case .arithmetic, .subqueryCount: return nil
        }
    }

    /// One of so few strings is looked for as each of them.
    private static let stringsMax = 16

    private func stringsCondition(
        _ frame: QueryFrame, _ column: Column, _ comparison: QueryComparison, _ constants: [QueryConstant]
    ) throws -> BoundPredicate? {
        guard comparison.operation == .equal, comparison.options.isEmpty, !column.isEnumerated, column.collection == nil,
            constants.count <= QueryRun.stringsMax
        else { return nil }
        var parts: [BoundPredicate] = []
        for constant in constants {
            guard case .value(.string(let text)) = constant,
                let part = stringCondition(frame, column, comparison, text)
            else { return nil }
            parts.append(part)
        }
        return parts.isEmpty ? nil : BoundOr(parts)
    }

    private func nullCondition(_ frame: QueryFrame, _ column: Column, _ comparison: QueryComparison) -> BoundPredicate? {
        switch comparison.operation {
        case .equal: return NullCondition(frame, column, isNull: true)
        case .notEqual: return NullCondition(frame, column, isNull: false)
        case .lessOrEqual, .greaterOrEqual: return column.type == .string ? nil : NullCondition(frame, column, isNull: true)
        case .less, .greater: return column.type == .string ? nil : BoundAlways(false)
        default: return nil
        }
    }

    private func valueCondition(
        _ frame: QueryFrame, _ column: Column, _ comparison: QueryComparison, _ value: Mixed
    ) throws -> BoundPredicate? {
        let operation = comparison.operation
        switch (column.type, value) {
        case (.int, .int(let v)):
            switch operation {
            case .equal: return IntegerCondition(frame, column, low: v, high: v, isNegated: false)
            case .notEqual: return IntegerCondition(frame, column, low: v, high: v, isNegated: true)
            case .less:
                return v == .min ? BoundAlways(false) : IntegerCondition(frame, column, low: .min, high: v - 1, isNegated: false)
            case .lessOrEqual: return IntegerCondition(frame, column, low: .min, high: v, isNegated: false)
            case .greater:
                return v == .max ? BoundAlways(false) : IntegerCondition(frame, column, low: v + 1, high: .max, isNegated: false)
            case .greaterOrEqual: return IntegerCondition(frame, column, low: v, high: .max, isNegated: false)
            default: return nil
            }
        case (.bool, .bool(let v)) where operation == .equal || operation == .notEqual:
            return BoolCondition(frame, column, v, isNegated: operation == .notEqual)
        case (.double, .double(let v)) where comparison.rules.contains(.nanIsUnordered) && !operation.isSubstring:
            return DoubleCondition(frame, column, operation, v)
        case (.float, .float(let v)) where comparison.rules.contains(.nanIsUnordered) && !operation.isSubstring:
            return FloatCondition(frame, column, operation, v)
        case (.double, .int(let v)) where !operation.isSubstring && v.magnitude <= 1 << 53:
            return DoubleCondition(
                frame, column, operation, Double(v), hasNaNBelow: !comparison.rules.contains(.nanIsUnordered))
        case (.timestamp, .timestamp(let v)) where !operation.isSubstring: return TimestampCondition(frame, column, operation, v)
        case (.link, .link(let table, let key))
        where table == column.oppositeTable && (operation == .equal || operation == .notEqual):
            return LinkCondition(frame, column, key, isNegated: operation == .notEqual)
        case (.string, .string(let text)) where !column.isEnumerated: return stringCondition(frame, column, comparison, text)
        default: return nil
        }
    }

    private func stringCondition(
        _ frame: QueryFrame, _ column: Column, _ comparison: QueryComparison, _ text: String
    ) -> BoundPredicate? {
        let isFolded: Bool
        switch comparison.options {
        case []: isFolded = false
        case .caseInsensitive: isFolded = true
        default: return nil
        }
        let test: StringCondition.Test
        switch comparison.operation {
        case .equal: test = isFolded ? .equalFolded : .equal
        case .notEqual: test = isFolded ? .notEqualFolded : .notEqual
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard comparison.rules.contains(.nullBelowStrings), !isFolded else { return nil }
            test = .order(comparison.operation)
        // Nothing begins with, ends with or contains nothing.
        case .beginsWith, .endsWith, .contains:
            if text.isEmpty { return BoundAlways(false) }
            switch comparison.operation {
            case .beginsWith: test = isFolded ? .beginsFolded : .begins
            case .endsWith: test = isFolded ? .endsFolded : .ends
            default: test = isFolded ? .containsFolded : .contains
            }
        case .like: test = isFolded ? .likeFolded : .like
        default: return nil
        }
        var text = text
        let part = text.withUTF8 { bytes in
            isFolded ? storage.keep(StringMatch.folded(UnsafeRawBufferPointer(bytes))) : storage.keep(bytes)
        }
        return StringCondition(frame, column, test, part, storage)
    }
}
