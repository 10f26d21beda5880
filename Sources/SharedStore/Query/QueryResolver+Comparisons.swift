/// Which types can be compared with which, and how (query-language 4, 6 and 8).
extension QueryResolver {
    mutating func comparison(_ syntax: QuerySyntax.Comparison) throws -> QueryPredicate {
        if syntax.operation == .isIn, case .literal(let literal) = syntax.right, case .argument(.region) = literal.value {
            return try geo(syntax)
        }
        var left = try operand(syntax.left), right = try operand(syntax.right)
        if left.isConstant && right.isConstant || left.type == .constant && right.type == .constant {
            throw QueryError(.type, "Cannot compare two constants", at: syntax.offset)
        }
        var operation = syntax.operation
        var isMirrored = false
        if operation == .isIn {
            if !left.isConstant, left.type != .types, case .literal(let literal) = right.form, literal.isArgument {
                _ = try constant(literal, as: left.type)
            }
            guard right.isSearchable else {
                throw QueryError(.operation, "The keypath following 'IN' must contain a list", at: right.offset)
            }
            operation = .equal
        }
        if left.type == .constant {
            if operation.isSubstring {
                throw QueryError(.operation, "\(operation.rawValue) requires a key path on the left side", at: syntax.offset)
            }
            swap(&left, &right)
            operation = operation.mirrored
            isMirrored = syntax.operation != .isIn
        }
        if left.type == .types || right.type == .types { return try typeComparison(left, operation, right, syntax) }
        // From here on the left side is no constant.
        if operation.isSubstring { return try substring(left, operation, right, syntax) }
        if syntax.options.contains(.diacriticInsensitive), left.type != .string, left.type != .mixed {
            throw QueryError(.operation, "[d] is only possible with strings", at: syntax.offset)
        }
        return right.type == .constant
            ? try withConstant(left, operation, right, syntax, isMirrored: isMirrored)
            : try twoPaths(left, operation, right, syntax)
    }

    // MARK: One side is a constant

    private func withConstant(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ right: Operand, _ syntax: QuerySyntax.Comparison, isMirrored: Bool
    ) throws -> QueryPredicate {
        let type = left.takesAnyConstant ? .mixed : left.type
        let converted: QueryOperand
        switch right.form {
        case .literal(let literal):
            // An object has no order, whatever the constant; but what is no number at all is told first.
            if case .link = left.type, operation.isOrder, !literal.isArgument, !literal.isInfinite { throw noOrder(left, syntax) }
            let value = try constant(literal, as: type, acceptsNumericStrings: left.takesNumericStrings)
            if value == .value(.null) {
                if left.isManyObjects { throw QueryError(.type, "Cannot compare linklist with NULL", at: syntax.offset) }
                if !syntax.options.isEmpty, !takesFoldedNull(left) {
                    throw QueryError(.type, "a string operator cannot compare null with '\(left.type.name)'", at: syntax.offset)
                }
            } else {
                try checkFolding(left, value, literal, syntax)
            }
            converted = .constant(value)
        case .list(let literals):
            converted = .constants(
                try literals.map { try element($0, as: type, acceptsNumericStrings: left.takesNumericStrings) })
        case .computed(let operand): converted = operand
        case .path(let path): converted = .path(path)
        case .types: throw QueryError(.type, "a type name can only be compared with @type", at: right.offset)
        }
        try checkOrder(left, operation, syntax, isMirrored: isMirrored)
        var rules: ComparisonRules = []
        // With the constant on the left the rules of other comparisons hold.
        if !isMirrored, let property = left.path?.ownProperty {
            switch converted {
            case .constant(.value(let value)): rules = QueryResolver.ownRules(property, value)
            // Being one of several values is asked by IEEE too, any other question about a list is not.
            case .constants where operation == .equal && right.quantifier ?? .any == .any && left.quantifier == nil:
                if property.type == .float || property.type == .double { rules = .nanIsUnordered }
            default: break
            }
        }
        if left.type == .mixed, !left.takesNumericStrings, operation == .equal || operation == .notEqual, right.isPlaceholder {
            rules.insert(.stringsMatchData)
        }
        return make(left, operation, syntax, right, converted, rules)
    }

    /// The exceptions that hold for a property of the class itself against a constant of its own kind.
    static func ownRules(_ property: QueryProperty, _ value: Mixed) -> ComparisonRules {
        switch (property.type, value) {
        case (.string, _): .nullBelowStrings
        case (.float, .float), (.double, .double): .nanIsUnordered
        default: []
        }
    }

    private func make(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ syntax: QuerySyntax.Comparison, _ right: Operand,
        _ converted: QueryOperand,
        _ rules: ComparisonRules
    ) -> QueryPredicate {
        let isPlain = left.isOne && right.isOne
        let hasQuantifier = left.quantifier != nil || right.quantifier != nil
        return .comparison(
            QueryComparison(
                left: left.queryOperand, operation: operation, options: syntax.options, right: converted,
                leftQuantifier: isPlain ? .any : left.quantifier ?? .any,
                rightQuantifier: isPlain ? .any : right.quantifier ?? .any,
                comparesWhole: !hasQuantifier && !left.isOne && !right.isOne && !isIndexedEquality(left, operation, right),
                isLeftList: left.isMany, isRightList: right.isMany, rules: rules))
    }

    /// A list of one constant against an indexed property is looked up: some value is enough.
    private func isIndexedEquality(_ left: Operand, _ operation: QuerySyntax.Operator, _ right: Operand) -> Bool {
        guard operation == .equal, let path = left.path, path.operation == .none,
            case .value(let property, let nested) = path.end, nested.isEmpty,
            case .list(let literals) = right.form, literals.count == 1
        else { return false }
        return property.isIndexed || schema.queryClass(property.table)?.primaryKey?.column == property.column
    }

    private func noOrder(_ side: Operand, _ syntax: QuerySyntax.Comparison) -> QueryError {
        QueryError(.operation, "Only equal and not equal are supported for type '\(side.type.name)'", at: syntax.offset)
    }

    /// Objects have no order. Truth values have one, but the Swift front end refuses to compare a property by it, so that stands;
    /// the notations that it does not have (a constant on the left, `@values`, aggregates) are free to.
    private func checkOrder(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ syntax: QuerySyntax.Comparison, isMirrored: Bool = false
    ) throws {
        guard operation.isOrder else { return }
        if left.type.isLink { throw noOrder(left, syntax) }
        guard left.type == .bool, !isMirrored, left.path?.operation == QueryPath.Operation.none else { return }
        if case .path(let path) = syntax.left, path.steps.contains(where: \.isValues) { return }
        throw noOrder(left, syntax)
    }

    // MARK: Options

    /// `==[c] null`: of a property of the class itself, and of strings and data but not those of maps.
    private func takesFoldedNull(_ left: Operand) -> Bool {
        switch left.type {
        case .string, .binary: !left.takesAnyConstant
        case .mixed: left.path?.ownProperty != nil
        case .link: true
        default: false
        }
    }

    /// `[c]` with something that has no case is refused, except where a property of the class itself or a link is compared.
    private func checkFolding(
        _ left: Operand, _ value: QueryConstant, _ literal: QuerySyntax.Literal, _ syntax: QuerySyntax.Comparison
    ) throws {
        guard !syntax.options.isEmpty, !left.type.isLink, left.path?.ownProperty == nil else { return }
        switch value {
        case .value(.string), .value(.binary): return
        default:
            throw QueryError(
                literal.isArgument ? .argument : .type, "[c] is only possible with strings and data", at: syntax.offset)
        }
    }

    // MARK: Neither side is a constant

    private func twoPaths(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ right: Operand, _ syntax: QuerySyntax.Comparison
    ) throws -> QueryPredicate {
        if left.type.isLink { try checkOrder(left, operation, syntax) }
        if left.isValueCollection && right.isValueCollection {
            throw QueryError(.type, "Comparison between two lists is not supported", at: syntax.offset)
        }
        func isLoose(_ side: Operand) -> Bool { side.type == .mixed || side.takesAnyConstant && !side.takesNumericStrings }
        let isComparable =
            left.type == right.type || left.type.isNumeric && right.type.isNumeric || isLoose(left) || isLoose(right)
        guard isComparable else {
            throw QueryError(
                .type, "Unsupported comparison between type '\(left.type.name)' and type '\(right.type.name)'", at: syntax.offset)
        }
        if !syntax.options.isEmpty, right.type != .string, right.type != .binary, right.type != .mixed {
            throw QueryError(.type, "[c] is only possible with strings and data", at: syntax.offset)
        }
        if operation.isOrder, right.type.isLink { return .always(false) }
        if left.type == .bool { try checkOrder(left, operation, syntax) }
        return make(left, operation, syntax, right, right.queryOperand, [])
    }

    // MARK: Substrings

    private func substring(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ right: Operand, _ syntax: QuerySyntax.Comparison
    ) throws -> QueryPredicate {
        if operation == .like, syntax.options.contains(.diacriticInsensitive) {
            throw QueryError(.operation, "Operator 'LIKE[d]' is not supported", at: syntax.offset)
        }
        func refuse(_ literal: QuerySyntax.Literal) -> QueryError {
            QueryError(
                literal.isArgument ? .argument : .type, "the right side of \(operation.rawValue) must be a string or data",
                at: literal.offset)
        }
        func value(_ literal: QuerySyntax.Literal) throws -> QueryConstant {
            let value: Mixed
            switch literal.value {
            case .string(let text), .argument(.value(.string(let text))):
                if left.type.isNumeric, !left.takesAnyConstant, QueryResolver.beginsLikeANumber(text) {
                    throw QueryError(
                        .type, "Operator '\(operation.rawValue)' not supported for type '\(left.type.name)'", at: syntax.offset)
                }
                value = .string(text)
            case .binary(let bytes), .argument(.value(.binary(let bytes))): value = .binary(bytes)
            case .null, .argument(.value(.null)):
                guard left.type == .string || left.type == .binary,
                    !left.takesAnyConstant || left.type == .string || left.type == .binary
                else {
                    throw QueryError(
                        .type, "the right side of \(operation.rawValue) must be a string or data", at: literal.offset)
                }
                value = .null
            default: throw refuse(literal)
            }
            return .value(value)
        }
        let converted: QueryOperand
        var rules: ComparisonRules = []
        switch right.form {
        case .literal(let literal): converted = .constant(try value(literal))
        case .list(let literals): converted = .constants(try literals.map(value))
        case .path, .computed:
            guard right.type == .string || right.type == .binary || right.type == .mixed else {
                throw QueryError(.type, "the right side of \(operation.rawValue) must be a string or data", at: right.offset)
            }
            guard
                left.type == right.type || left.type == .mixed || right.type == .mixed || left.takesAnyConstant
                    || right.takesAnyConstant
            else {
                throw QueryError(
                    .type, "Unsupported comparison between type '\(left.type.name)' and type '\(right.type.name)'",
                    at: syntax.offset)
            }
            if left.isValueCollection && right.isValueCollection {
                throw QueryError(.type, "Comparison between two lists is not supported", at: syntax.offset)
            }
            converted = right.queryOperand
            rules = .emptyMatches
        case .types: throw QueryError(.type, "a type name can only be compared with @type", at: right.offset)
        }
        if left.type == .mixed, right.isPlaceholder { rules.insert(.stringsMatchData) }
        return make(left, operation, syntax, right, converted, rules)
    }

    /// Strings that the original would take for a number.
    static func beginsLikeANumber(_ text: String) -> Bool {
        let digits = text.drop { $0 == " " || $0 == "-" || $0 == "+" }
        return digits.first.map { $0.isASCII && $0.isNumber } ?? false
    }

    // MARK: @type

    private func typeComparison(
        _ left: Operand, _ operation: QuerySyntax.Operator, _ right: Operand, _ syntax: QuerySyntax.Comparison
    ) throws -> QueryPredicate {
        let (side, other) = left.type == .types && !left.isConstant ? (left, right) : (right, left)
        if side.isConstant || side.type != .types { throw QueryError(.type, "@type is always the same here", at: side.offset) }
        if operation.isSubstring {
            guard case .literal(let literal) = other.form, case .string(let text) = literal.value, ValueTypes.named(text) == nil
            else {
                throw QueryError(.type, "Operator '\(operation.rawValue)' not supported for @type", at: syntax.offset)
            }
            throw QueryError(.type, "Unable to parse the type name '\(text)'", at: literal.offset)
        }
        if operation.isOrder {
            throw QueryError(.operation, "Only equal and not equal are supported for @type", at: syntax.offset)
        }
        if !syntax.options.isEmpty { throw QueryError(.type, "@type takes no options", at: syntax.offset) }
        func types(_ literal: QuerySyntax.Literal, inList: Bool) throws -> QueryConstant {
            let text: String
            switch literal.value {
            case .string(let name): text = name
            case .argument(.value(.string(let name))) where !inList: text = name
            case .argument where !inList:
                throw QueryError(.argument, "@type can only be compared with a string", at: literal.offset)
            default: throw QueryError(.type, "@type can only be compared with a string", at: literal.offset)
            }
            guard let types = ValueTypes.named(text) else {
                throw QueryError(.type, "Unable to parse the type name '\(text)'", at: literal.offset)
            }
            return .value(.int(types.rawValue))
        }
        let converted: QueryOperand
        switch other.form {
        case .types(let types): converted = .constant(.value(.int(types.rawValue)))
        case .literal(let literal): converted = .constant(try types(literal, inList: false))
        case .list(let literals): converted = .constants(try literals.map { try types($0, inList: $0.isArgument) })
        case .path, .computed:
            guard other.type == .types else {
                throw QueryError(.type, "@type can only be compared with a string", at: other.offset)
            }
            converted = other.queryOperand
        }
        return make(side, operation, syntax, other, converted, .typeSets)
    }

    // MARK: BETWEEN

    mutating func between(_ syntax: QuerySyntax.Comparison) throws -> QueryPredicate {
        let left = try operand(syntax.left), right = try operand(syntax.right)
        guard case .list(let bounds) = right.form else {
            throw QueryError(.operation, "BETWEEN needs a list of two bounds", at: right.offset)
        }
        if left.isConstant { throw QueryError(.type, "Cannot compare two constants", at: syntax.offset) }
        guard bounds.count == 2 else {
            throw QueryError(.operation, "Operator 'BETWEEN' requires list with 2 elements", at: right.offset)
        }
        if left.type.isLink || left.type == .bool || left.type == .types { throw noOrder(left, syntax) }
        if let path = left.path {
            if case .collection = path.end, path.operation == .none, left.quantifier != .all {
                throw QueryError(.operation, "BETWEEN on a collection is only possible with ALL", at: syntax.offset)
            }
        }
        let type = left.takesAnyConstant ? .mixed : left.type
        let values = try bounds.map { try constant($0, as: type, acceptsNumericStrings: left.takesNumericStrings) }
        let rules = values.map { value in
            left.path?.ownProperty.flatMap { property in value.value.map { QueryResolver.ownRules(property, $0) } } ?? []
        }
        return .between(
            QueryBetween(
                operand: left.queryOperand, low: values[0], lowRules: rules[0], high: values[1], highRules: rules[1],
                quantifier: left.quantifier ?? .any))
    }

    // MARK: TEXT and geoWithin

    mutating func textSearch(_ syntax: QuerySyntax.Comparison) throws -> QueryPredicate {
        let left = try operand(syntax.left)
        guard let path = left.path else {
            throw QueryError(.operation, "TEXT requires a key path on the left side", at: syntax.offset)
        }
        let right = try operand(syntax.right)
        let words: String?
        func text(_ literal: QuerySyntax.Literal) throws -> String? {
            switch literal.value {
            case .string(let text), .argument(.value(.string(let text))): return text
            case .null, .argument(.value(.null)): return nil
            default:
                throw QueryError(literal.isArgument ? .argument : .type, "TEXT can only search for a string", at: literal.offset)
            }
        }
        switch right.form {
        case .literal(let literal): words = try text(literal)
        case .list(let literals) where literals.count == 1: words = try text(literals[0])
        default: words = nil
        }
        guard case .value(let property, let nested) = path.end, nested.isEmpty, path.operation == .none, property.type == .string,
            property.isFullTextIndexed
        else {
            throw QueryError(.text, "the property has no full-text index", at: left.offset)
        }
        guard let words else { throw QueryError(.text, "TEXT needs words to search for", at: right.offset) }
        do {
            return .text(path, left.quantifier, try TextSearch(words))
        } catch let error as QueryError {
            throw QueryError(error.kind, error.message, at: right.offset)
        }
    }

    mutating func geo(_ syntax: QuerySyntax.Comparison) throws -> QueryPredicate {
        let left = try operand(syntax.left)
        guard let path = left.path, path.end == .objects, path.operation == .none, !path.hops.isEmpty,
            case .link(let target) = left.type
        else {
            throw QueryError(.geo, "the left side of geoWithin must be a link to geoJSON formatted data", at: left.offset)
        }
        let region: GeoRegion
        switch syntax.right {
        case .region(let value, _): region = value
        case .literal(let literal):
            switch literal.value {
            case .argument(.region(let value)): region = value
            case .argument(.value(.string(let text))), .string(let text):
                guard let value = QueryParser.region(text) else {
                    throw QueryError(.geo, "the text holds no region", at: literal.offset)
                }
                region = value
            default: throw QueryError(.geo, "the right side of geoWithin must be a region", at: literal.offset)
            }
        default: throw QueryError(.geo, "the right side of geoWithin must be a region", at: syntax.offset)
        }
        guard let type = schema.queryClass(target), let kind = type.property("type"), kind.type == .string,
            kind.collection == nil,
            let coordinates = type.property("coordinates"), coordinates.type == .double, coordinates.collection == .list
        else { throw QueryError(.geo, "the class linked to has no geoJSON form: type and coordinates", at: left.offset) }
        guard let area = GeoArea(region, type: kind.column, coordinates: coordinates.column) else {
            throw QueryError(.geo, "region is invalid", at: syntax.right.offset)
        }
        return .geo(path, left.quantifier, area)
    }
}

extension QueryConstant {
    /// Nil for an object that is looked for when the query runs.
    var value: Mixed? {
        if case .value(let value) = self { return value }
        return nil
    }
}

extension QueryResolver.Operand {
    /// A constant that came by `%@`.
    var isPlaceholder: Bool {
        switch form {
        case .literal(let literal): literal.isPlaceholder
        case .list(let literals): literals.contains(where: \.isPlaceholder)
        case .path, .computed, .types: false
        }
    }

    /// The operand of a side that is no constant.
    var queryOperand: QueryOperand {
        switch form {
        case .path(let path): .path(path)
        case .computed(let operand): operand
        case .literal, .list, .types: .constant(.value(.null))
        }
    }
}

extension QuerySyntax.Literal {
    var isInfinite: Bool {
        switch value {
        case .infinity: true
        case .fraction(let text, _): Double(text)?.isInfinite ?? false
        case .argument(.value(.double(let value))): value.isInfinite
        case .argument(.value(.float(let value))): value.isInfinite
        default: false
        }
    }
}

extension Mixed {
    /// A number that is none.
    var isNaN: Bool {
        switch self {
        case .float(let value): value.isNaN
        case .double(let value): value.isNaN
        case .decimal(let value): value.isNaN
        default: false
        }
    }
}
