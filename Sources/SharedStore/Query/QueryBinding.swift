extension QueryRun {
    /// Finds the tables, columns and constants of `predicate`; the frames of the objects around are in place.
    func bind(_ predicate: QueryPredicate) throws -> BoundPredicate {
        switch predicate {
        case .always(let isTrue): return BoundAlways(isTrue)
        case .not(let inner): return BoundNot(try bind(inner))
        case .and(let parts): return BoundAnd(try parts.map(bind))
        case .or(let parts): return BoundOr(try parts.map(bind))
        case .comparison(let comparison): return try BoundComparison(comparison, bind(comparison.left), bind(comparison.right))
        case .between(let between):
            return BoundBetween(between, try bind(between.operand), try view(between.low), try view(between.high))
        case .text(let path, let quantifier, let search): return BoundText(try BoundPath(path, self), quantifier ?? .any, search)
        case .geo(let path, let quantifier, let area): return try BoundGeo(BoundPath(path, self), quantifier ?? .any, area)
        }
    }

    func bind(_ operand: QueryOperand) throws -> BoundOperand {
        switch operand {
        case .constant(let constant): return .constants([try view(constant)])
        case .constants(let constants): return .constants(try constants.map(view))
        case .path(let path): return .path(try BoundPath(path, self))
        case .arithmetic(let operation, let left, let right): return .arithmetic(operation, try bind(left), try bind(right))
        case .subqueryCount(let path, let predicate):
            let bound = try BoundPath(path, self)
            let frame = QueryFrame(bound.targetTable)
            frames.append(frame)
            defer { frames.removeLast() }
            return .subqueryCount(bound, frame, try bind(predicate))
        }
    }
}
