/// What a constant means beside a value of a known type (query-language 4, "Value conversion").
extension QueryResolver {
    /// The constant that `literal` is when it is compared with values of `type`.
    ///
    /// Throws where they cannot be compared: kind `argument` for an argument, `type` for a literal.
    func constant(_ literal: QuerySyntax.Literal, as type: ValueType, acceptsNumericStrings: Bool = false) throws -> QueryConstant
    {
        let conversion = Conversion(literal: literal, type: type, acceptsNumericStrings: acceptsNumericStrings)
        switch literal.value {
        case .null: return .value(.null)
        case .bool(let value): return try conversion.bool(value)
        case .integer(let value): return try conversion.integer(value)
        case .oversized(let text): return try conversion.oversized(text)
        case .fraction(let text, let isFloat): return try conversion.fraction(text, isFloat: isFloat)
        case .infinity(let isNegative): return try conversion.floating(isNegative ? -Double.infinity : .infinity)
        case .nan: return try conversion.floating(.nan)
        case .string(let value): return try conversion.string(value)
        case .binary(let value): return try conversion.plain(.binary(value), .binary)
        case .timestamp(let value): return try conversion.plain(.timestamp(value), .timestamp)
        case .objectId(let value): return try conversion.plain(.objectId(value), .objectId)
        case .uuid(let value): return try conversion.plain(.uuid(value), .uuid)
        case .object(let className, let key): return try object(className, key, as: type, conversion)
        case .argument(.value(let value)):
            switch value {
            case .null: return .value(.null)
            case .bool(let value): return try conversion.bool(value)
            case .int(let value): return try conversion.integer(value)
            case .float(let value): return try conversion.float(value)
            case .double(let value): return try conversion.floating(value)
            case .string(let value): return try conversion.string(value)
            case .binary: return try conversion.plain(value, .binary)
            case .timestamp: return try conversion.plain(value, .timestamp)
            case .decimal: return type.isNumeric || type == .mixed ? .value(value) : try conversion.plain(value, .decimal)
            case .objectId: return try conversion.plain(value, .objectId)
            case .uuid: return try conversion.plain(value, .uuid)
            case .link(let table, _):
                if type == .mixed { return .value(value) }
                guard case .link(let target) = type else { throw conversion.refused(value: "an object") }
                guard target == table else {
                    throw QueryError(.property, "an object of another class than the link leads to", at: literal.offset)
                }
                return .value(value)
            case .list, .dictionary: throw conversion.refused(value: "a collection")
            }
        case .argument(.list):
            throw QueryError(.operation, "Expressions within predicate aggregates must be constant values", at: literal.offset)
        case .argument(.region): throw conversion.refused(value: "a region")
        }
    }

    private func object(
        _ className: String, _ key: QuerySyntax.Literal, as type: ValueType, _ conversion: Conversion
    ) throws -> QueryConstant {
        guard let found = schema.queryClass(named: className) else {
            throw QueryError(.property, "no class '\(className)'", at: key.offset)
        }
        if type != .mixed {
            guard case .link(let target) = type else { throw conversion.refused(value: "an object") }
            guard target == found.table else {
                throw QueryError(.property, "an object of another class than the link leads to", at: key.offset)
            }
        }
        guard let primaryKey = found.primaryKey else {
            throw QueryError(.property, "the class '\(className)' has no primary key", at: key.offset)
        }
        guard case .value(let value) = try constant(key, as: ValueType(primaryKey.type, .null)) else {
            throw conversion.refused(value: "an object")
        }
        return .object(found.table, primaryKey: value)
    }

    /// A constant on its way to a type.
    private struct Conversion {
        let literal: QuerySyntax.Literal
        let type: ValueType
        let acceptsNumericStrings: Bool

        func refused(value: String) -> QueryError {
            QueryError(
                literal.isArgument ? .argument : .type, "Cannot compare \(value) with something of type '\(type.name)'",
                at: literal.offset)
        }

        func plain(_ value: Mixed, _ own: ValueType) throws -> QueryConstant {
            guard type == own || type == .mixed else { throw refused(value: "a value of type '\(own.name)'") }
            return .value(value)
        }

        func bool(_ value: Bool) throws -> QueryConstant { try plain(.bool(value), .bool) }

        func oversized(_ text: String) throws -> QueryConstant {
            guard type.isNumeric || type == .mixed else { throw refused(value: "the number \(text)") }
            throw QueryError(.literal, "the integer \(text) does not fit in 64 bits", at: literal.offset)
        }

        func integer(_ value: Int64) throws -> QueryConstant {
            if type == .bool, value == 0 || value == 1 { return .value(.bool(value == 1)) }
            guard type.isNumeric || type == .mixed else { throw refused(value: "the number \(value)") }
            return .value(.int(value))
        }

        /// Whole numbers beside integers are integers.
        func whole(_ value: Double) -> QueryConstant { .value(Int64(exactly: value).map(Mixed.int) ?? .double(value)) }

        func fraction(_ text: String, isFloat: Bool) throws -> QueryConstant {
            if type == .decimal, let value = Decimal128Bits(text) { return .value(.decimal(value)) }
            let value = Double(text) ?? .nan
            if value.isInfinite { return try floating(value) }
            let single = Float(text) ?? Float(value)
            if isFloat, single.isInfinite, type == .int { return try floating(Double(single)) }
            switch type {
            case .int: return whole(value)
            case .float: return .value(.float(single))
            // With the suffix f the number has single precision wherever it stands.
            case .double, .mixed: return .value(isFloat ? .float(single) : .double(value))
            case .bool where value == 0 || value == 1: return .value(.bool(value == 1))
            default: throw refused(value: "the number \(text)")
            }
        }

        func float(_ value: Float) throws -> QueryConstant {
            switch type {
            case .float, .double, .mixed, .decimal: .value(.float(value))
            default: try floating(Double(value))
            }
        }

        func floating(_ value: Double) throws -> QueryConstant {
            switch type {
            case .float: return .value(.float(Float(value)))
            case .double, .decimal, .mixed: return .value(.double(value))
            default: break
            }
            if value.isInfinite { throw QueryError(.type, "Infinity not supported for '\(type.name)'", at: literal.offset) }
            if type == .int { return value.isNaN ? .value(.double(value)) : whole(value) }
            if type == .bool, value == 0 || value == 1 { return .value(.bool(value == 1)) }
            throw refused(value: "the number \(value)")
        }

        func string(_ value: String) throws -> QueryConstant {
            switch type {
            case .string, .mixed: return .value(.string(value))
            case .decimal:
                // The word NaN is no number here, unlike the infinities.
                guard let number = Decimal128Bits(value), !number.isNaN else { throw refused(value: "the string '\(value)'") }
                return .value(.decimal(number))
            case .int, .float, .double:
                guard acceptsNumericStrings, let number = Double(value), number.isFinite else {
                    throw refused(value: "the string '\(value)'")
                }
                return whole(number)
            case .uuid where literal.isPlaceholder:
                guard let id = UUIDValue(value) else { throw refused(value: "the string '\(value)'") }
                return .value(.uuid(id))
            default: throw refused(value: "the string '\(value)'")
            }
        }
    }

    /// An element of a list of constants: one that cannot be compared with `type` stays what it is, and equals nothing.
    func element(_ literal: QuerySyntax.Literal, as type: ValueType, acceptsNumericStrings: Bool) throws -> QueryConstant {
        do {
            return try constant(literal, as: type, acceptsNumericStrings: acceptsNumericStrings)
        } catch let error as QueryError where error.kind == .type && !literal.isInfinite && !literal.isArgument && !type.isLink {
            return try constant(literal, as: .mixed)
        }
    }
}
