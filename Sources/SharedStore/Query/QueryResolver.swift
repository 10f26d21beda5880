/// Checks the names and types of a syntax tree against a schema and makes a predicate that can be run (query-language 3, 4, 6 to
/// 10).
struct QueryResolver {
    let schema: any QuerySchema
    /// The classes of the object that the query is about and of the elements of the subqueries around, outermost first.
    var scopes: [(variable: String?, type: QueryClass)]

    init(schema: any QuerySchema, type: QueryClass) {
        self.schema = schema
        scopes = [(nil, type)]
    }

    // MARK: Predicates

    mutating func predicate(_ syntax: QuerySyntax.Predicate) throws -> QueryPredicate {
        switch syntax {
        case .always(let isTrue): return .always(isTrue)
        case .not(let inner): return .not(try predicate(inner))
        case .and(let parts): return .and(try flattened(parts, \.andParts))
        case .or(let parts): return .or(try flattened(parts, \.orParts))
        case .comparison(let comparison):
            switch comparison.operation {
            case .text: return try textSearch(comparison)
            case .geoWithin: return try geo(comparison)
            case .between: return try between(comparison)
            default: return try self.comparison(comparison)
            }
        }
    }

    /// Parts that are chains of the same kind are taken apart: chains made by hand are often nested to the left.
    private mutating func flattened(
        _ parts: [QuerySyntax.Predicate], _ inner: (QuerySyntax.Predicate) -> [QuerySyntax.Predicate]?
    ) throws -> [QueryPredicate] {
        var pending = Array(parts.reversed()), result: [QueryPredicate] = []
        while let part = pending.popLast() {
            if let parts = inner(part) { pending += parts.reversed() } else { result.append(try predicate(part)) }
        }
        return result
    }

    // MARK: Operands

    /// An operand and what is known about its values without reading any.
    struct Operand {
        enum Form {
            case path(QueryPath)
            case computed(QueryOperand)
            case literal(QuerySyntax.Literal)
            case list([QuerySyntax.Literal])
            case types(ValueTypes)
        }
        var form: Form
        var type: ValueType
        var quantifier: QuerySyntax.Quantifier?
        /// Its values are a list, however many there are: the path goes through a collection of objects, or through one element
        /// of it, or into an AnyRealmValue.
        var isMany = false
        /// There is always one value, neither more nor less.
        var isOne = false
        /// A list or one element of a collection: there is no arithmetic between two of these.
        var isCollection = false
        /// Values of a collection of values, or one of them: two of these cannot be compared.
        var isValueCollection = false
        /// A collection that IN may look into.
        var isSearchable = false
        /// A typed map: any constant can be compared with its values.
        var takesAnyConstant = false
        /// Numbers that were computed: strings that begin with digits count as numbers beside them.
        var takesNumericStrings = false
        /// Ends in the objects of a collection.
        var isManyObjects = false
        var offset: Int

        var isConstant: Bool {
            switch form {
            case .literal, .list, .types: true
            case .path, .computed: false
            }
        }
        var path: QueryPath? {
            if case .path(let path) = form { return path }
            return nil
        }
    }

    enum ValueType: Equatable {
        case int, bool, float, double, decimal, string, binary, timestamp, objectId, uuid, mixed
        case link(TableKey)
        /// `@type`
        case types
        /// A constant takes the type of the other side.
        case constant

        var isNumeric: Bool { self == .int || self == .float || self == .double || self == .decimal }
        var isLink: Bool {
            if case .link = self { return true }
            return false
        }

        init(_ type: ColumnType, _ target: TableKey) {
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
            case .mixed: self = .mixed
            case .link, .typedLink, .backlink: self = .link(target)
            }
        }

        var name: String {
            switch self {
            case .int: "int"
            case .bool: "bool"
            case .float: "float"
            case .double: "double"
            case .string: "string"
            case .binary: "data"
            case .timestamp: "date"
            case .decimal: "decimal128"
            case .objectId: "objectId"
            case .uuid: "uuid"
            case .mixed: "AnyRealmValue"
            case .link: "object"
            case .types: "type name"
            case .constant: "constant"
            }
        }
    }

    mutating func operand(_ expression: QuerySyntax.Expression) throws -> Operand {
        switch expression {
        case .literal(let literal):
            if case .argument(.list(let values)) = literal.value {
                let elements = values.map {
                    QuerySyntax.Literal(.argument(.value($0)), isPlaceholder: literal.isPlaceholder, offset: literal.offset)
                }
                return Operand(form: .list(elements), type: .constant, isMany: true, isSearchable: true, offset: literal.offset)
            }
            return Operand(form: .literal(literal), type: .constant, isOne: true, offset: literal.offset)
        case .quantified(let literal, let quantifier):
            guard case .argument(.list) = literal.value else {
                throw QueryError(
                    .argument, "\(quantifier.rawValue) is only allowed on arguments which contain a list", at: literal.offset)
            }
            var list = try operand(.literal(literal))
            list.quantifier = quantifier
            return list
        case .list(let literals, let quantifier, let offset):
            return Operand(
                form: .list(literals), type: .constant, quantifier: quantifier, isMany: true, isSearchable: true, offset: offset)
        case .path(let path):
            if let word = truthWord(path) {
                return Operand(
                    form: .literal(QuerySyntax.Literal(.bool(word), offset: path.offset)), type: .constant, isOne: true,
                    offset: path.offset)
            }
            return try self.path(path)
        case .arithmetic(let operation, let left, let right, let offset):
            return try arithmetic(operation, try operand(left), try operand(right), at: offset)
        case .subquery(let subquery):
            return try self.subquery(subquery)
        case .region(_, let offset):
            throw QueryError(.syntax, "a region can only stand behind geoWithin", at: offset)
        }
    }

    /// YES and NO are the truth values unless the class has a property of that name.
    private func truthWord(_ path: QuerySyntax.Path) -> Bool? {
        guard path.steps.count == 1, path.postfix == nil, path.quantifier == nil, case .name(let name) = path.steps[0] else {
            return nil
        }
        let word = name.lowercased()
        guard word == "yes" || word == "no", scopes[scopes.count - 1].type.property(name) == nil else { return nil }
        return word == "yes"
    }

    // MARK: Arithmetic

    private func arithmetic(
        _ operation: QuerySyntax.Arithmetic, _ left: Operand, _ right: Operand, at offset: Int
    ) throws -> Operand {
        for side in [left, right]
        where !side.isConstant && side.type != .constant && !side.type.isNumeric && side.type != .mixed && !side.takesAnyConstant
        {
            throw QueryError(.type, "arithmetic on something of type \(side.type.name)", at: side.offset)
        }
        if left.isCollection && right.isCollection {
            throw QueryError(.type, "Comparison between two lists is not supported", at: offset)
        }
        let leftType = left.isConstant ? right.type : left.type, rightType = right.isConstant ? left.type : right.type
        let a = try number(left, beside: rightType), b = try number(right, beside: leftType)
        let type: ValueType
        if leftType == .constant && rightType == .constant {
            return Operand(
                form: .computed(.arithmetic(operation, a, b)), type: .constant, isMany: left.isMany || right.isMany,
                isOne: left.isOne && right.isOne, offset: offset)
        }
        let types = [leftType, rightType]
        if types.contains(.mixed) || left.takesAnyConstant || right.takesAnyConstant {
            type = .mixed
        } else if types.contains(.decimal) {
            type = .decimal
        } else if types == [.int, .int] {
            type = .int
        } else {
            type = .double
        }
        return Operand(
            form: .computed(.arithmetic(operation, a, b)), type: type, isMany: left.isMany || right.isMany,
            isOne: left.isOne && right.isOne, isCollection: left.isCollection || right.isCollection,
            takesNumericStrings: true, offset: offset)
    }

    /// One side of an arithmetic operation; a constant becomes a number of the kind that suits the other side.
    private func number(_ side: Operand, beside type: ValueType) throws -> QueryOperand {
        func value(_ literal: QuerySyntax.Literal) throws -> QueryConstant {
            // Beside another constant whole numbers are integers; what is no number there makes the result null.
            guard type != .constant else {
                return (try? constant(literal, as: .int, acceptsNumericStrings: true)) ?? .value(.null)
            }
            let converted = try constant(literal, as: type.isNumeric ? type : .double, acceptsNumericStrings: true)
            switch converted {
            case .value(.int), .value(.double), .value(.float), .value(.decimal): return converted
            default:
                throw QueryError(
                    literal.isArgument ? .argument : .type, "arithmetic on something that is no number", at: literal.offset)
            }
        }
        switch side.form {
        case .path(let path): return .path(path)
        case .computed(let operand): return operand
        case .literal(let literal): return .constant(try value(literal))
        case .list(let literals): return .constants(try literals.map(value))
        case .types: throw QueryError(.type, "arithmetic on a type name", at: side.offset)
        }
    }

    // MARK: Subqueries

    private mutating func subquery(_ syntax: QuerySyntax.Subquery) throws -> Operand {
        func refuse(_ message: String) -> QueryError { QueryError(.subquery, message, at: syntax.path.offset) }
        if scopes.contains(where: { $0.variable.isSame(as: syntax.variable) }) {
            throw refuse("the variable \(syntax.variable) is in use already")
        }
        guard syntax.path.postfix == nil else { throw refuse("a subquery must operate on a list property") }
        let found: Operand
        do {
            found = try path(syntax.path)
        } catch let error as QueryError where error.kind == .property || error.kind == .path {
            throw refuse(error.message)
        }
        guard let path = found.path, path.end == .objects, found.isManyObjects, let last = path.hops.last,
            last.property.collection != nil, last.element == .all,
            case .link(let target) = found.type, let type = schema.queryClass(target)
        else { throw refuse("a subquery must operate on a collection of objects") }
        scopes.append((syntax.variable, type))
        defer { scopes.removeLast() }
        let predicate = try self.predicate(syntax.predicate)
        return Operand(
            form: .computed(.subqueryCount(path, predicate)), type: .int, isOne: true, takesNumericStrings: true,
            offset: syntax.offset)
    }
}
