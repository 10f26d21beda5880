/// Key paths: names to columns, step by step (query-language 3 and 6).
extension QueryResolver {
    mutating func path(_ syntax: QuerySyntax.Path) throws -> Operand {
        var walk = PathWalk(resolver: self, syntax: syntax)
        return try walk.run()
    }
}

/// One key path on its way through the schema.
private struct PathWalk {
    let resolver: QueryResolver
    let syntax: QuerySyntax.Path
    var path: QueryPath
    /// The class whose properties the next name is looked up in; nil behind a property that is no link.
    var type: QueryClass?
    /// `[SIZE]` or `.length` ended the path.
    var isClosed = false
    /// `list[*]` was written: a further index goes into the elements.
    private var isEveryElement = false

    init(resolver: QueryResolver, syntax: QuerySyntax.Path) {
        self.resolver = resolver
        self.syntax = syntax
        let innermost = resolver.scopes.count - 1
        path = QueryPath(scope: innermost, table: resolver.scopes[innermost].type.table)
        type = resolver.scopes[innermost].type
    }

    private func error(_ kind: QueryError.Kind, _ message: String) -> QueryError { QueryError(kind, message, at: syntax.offset) }

    mutating func run() throws -> QueryResolver.Operand {
        var steps = syntax.steps[...]
        if case .name(let name)? = steps.first, name.hasPrefix("$"),
            let scope = resolver.scopes.lastIndex(where: { $0.variable.isSame(as: name) })
        {
            steps = steps.dropFirst()
            if steps.isEmpty && syntax.postfix == nil { throw error(.subquery, "a property must follow \(name)") }
            let scopeType = resolver.scopes[scope].type
            path = QueryPath(scope: scope, table: scopeType.table)
            type = scopeType
        }
        for step in steps {
            if isClosed { throw error(.path, "nothing can follow here") }
            switch step {
            case .name(let name): try self.name(name)
            case .backlinks(let className, let property): try backlinks(className, property)
            case .allLinks:
                guard type != nil else { throw error(.property, "@links can only follow an object") }
                path.end = .allLinks
                path.operation = .count
                type = nil
                isClosed = true
            case .keys: try keys()
            case .values: try values()
            case .index(let index): try self.index(index)
            }
        }
        // An element of a list of objects is a way on, not a value.
        if syntax.postfix == nil, path.end == .objects, let last = path.hops.last, last.element != .all,
            last.property.collection == .list
        {
            throw error(.path, "an element of a list of objects cannot be compared itself")
        }
        try postfix()
        return try operand()
    }

    // MARK: Steps

    private mutating func name(_ name: String) throws {
        if let type {
            if let property = type.property(name) { return follow(property) }
            if let last = path.hops.indices.last, path.hops[last].property.collection == .dictionary,
                path.hops[last].element == .all
            {
                path.hops[last].element = .key(name)
                return
            }
            throw error(.property, "Property '\(name)' not found in object of type '\(type.name)'")
        }
        switch path.end {
        case .collection(let property, .all, let nested) where property.collection == .dictionary && nested.isEmpty:
            path.end = .collection(property, .key(name), nested: [])
        case .collection(let property, .all, _)
        where property.collection != .dictionary && name.lowercased() == "length"
            && (property.type == .string || property.type == .binary):
            path.operation = .length
            isClosed = true
        case .collection(_, .keys, _): throw error(.type, "nothing can follow @keys")
        case .collection(let property, let element, _) where property.type != .mixed && element != .all:
            throw error(.path, "nothing can follow an element of the collection")
        case .value(let property, let nested) where property.type == .mixed:
            path.end = .value(property, nested: nested + [.key(name)])
        case .collection(let property, let element, let nested) where property.type == .mixed && element != .all:
            path.end = .collection(property, element, nested: nested + [.key(name)])
        default:
            throw error(.property, "the property before '\(name)' is not a link or collection and can only appear at the end")
        }
    }

    private mutating func follow(_ property: QueryProperty) {
        if property.type == .link {
            path.hops.append(QueryPath.Hop(property: property))
            type = resolver.schema.queryClass(property.target)
            return
        }
        path.end = property.collection == nil ? .value(property, nested: []) : .collection(property, .all, nested: [])
        type = nil
    }

    private mutating func backlinks(_ className: String, _ name: String) throws {
        guard let target = type, let origin = resolver.schema.queryClass(named: className), let link = origin.property(name),
            link.type == .link,
            !link.isLinkingObjects, link.target == target.table
        else { throw error(.property, "No property '\(name)' of '\(className)' links to objects of this class") }
        path.hops.append(QueryPath.Hop(property: QueryProperty(linkingBy: link)))
        type = origin
    }

    private mutating func keys() throws {
        if type != nil, let last = path.hops.last, last.property.collection == .dictionary, last.element == .all {
            path.hops.removeLast()
            path.end = .collection(last.property, .keys, nested: [])
            type = nil
            return
        }
        switch path.end {
        case .collection(let property, .all, let nested) where property.collection == .dictionary && nested.isEmpty:
            path.end = .collection(property, .keys, nested: [])
        case .value(let property, let nested) where property.type == .mixed: path.end = .value(property, nested: nested + [.keys])
        case .collection(let property, let element, let nested)
        where property.type == .mixed && element != .all && element != .keys:
            path.end = .collection(property, element, nested: nested + [.keys])
        default: throw error(.property, "@keys can only follow a map")
        }
    }

    private mutating func values() throws {
        if type != nil, let last = path.hops.last, last.property.collection == .dictionary, last.element == .all { return }
        switch path.end {
        case .collection(let property, .all, let nested) where property.collection == .dictionary && nested.isEmpty: return
        // Of a dictionary in an AnyRealmValue it is a key like any other.
        case .value(let property, let nested) where property.type == .mixed:
            path.end = .value(property, nested: nested + [.key("@values")])
        default: throw error(.property, "@values can only follow a map")
        }
    }

    private mutating func close(_ operation: QueryPath.Operation) {
        path.operation = operation
        isClosed = true
    }

    private mutating func index(_ index: QuerySyntax.Path.Index) throws {
        if case .size = index { return try count() }
        if type != nil { return try hopIndex(index) }
        switch path.end {
        case .collection(let property, let element, let nested)
        where property.type == .mixed && (element != .all || isEveryElement) && element != .keys:
            path.end = .collection(property, element, nested: nested + [try self.nested(index)])
        case .collection(let property, .all, let nested) where nested.isEmpty && !isEveryElement:
            switch (property.collection, index) {
            case (.list, .position(let n)): path.end = .collection(property, .position(n), nested: [])
            case (.list, .first): path.end = .collection(property, .first, nested: [])
            case (.list, .last): path.end = .collection(property, .last, nested: [])
            case (.dictionary, .key(let key)): path.end = .collection(property, .key(key), nested: [])
            case (.list, .any), (.dictionary, .any): isEveryElement = true
            case (_, .key(let key)): throw error(.property, "the collection has no keys, so no '\(key)'")
            default: throw error(.path, "the collection cannot be indexed this way")
            }
        case .collection(_, .all, _): throw error(.path, "the collection cannot be indexed this way")
        case .collection: throw error(.path, "only an AnyRealmValue can be indexed more than once")
        case .value(let property, let nested) where property.type == .mixed:
            path.end = .value(property, nested: nested + [try self.nested(index)])
        default: throw error(.path, "the property cannot be indexed")
        }
    }
    private func nested(_ index: QuerySyntax.Path.Index) throws -> QueryPath.Nested {
        switch index {
        case .position(let n): .position(n)
        case .first: .first
        case .last: .last
        case .any: .any
        case .key(let key): .key(key)
        case .size: throw error(.path, "[SIZE] must be last")
        }
    }

    private mutating func hopIndex(_ index: QuerySyntax.Path.Index) throws {
        guard let last = path.hops.indices.last, path.hops[last].element == .all, !path.hops[last].property.isLinkingObjects
        else {
            throw error(.path, "there is nothing to index")
        }
        switch (path.hops[last].property.collection, index) {
        case (.list, .position(let n)): path.hops[last].element = .position(n)
        case (.list, .first): path.hops[last].element = .first
        case (.list, .last): path.hops[last].element = .last
        case (.list, .any), (.dictionary, .any): break
        case (.dictionary, .key(let key)): path.hops[last].element = .key(key)
        case (.list, .key), (.set, .key): throw error(.property, "the collection has no keys")
        default: throw error(.path, "the property does not support an index")
        }
    }

    // MARK: Operators

    private mutating func count() throws {
        switch path.end {
        case .objects:
            guard !path.hops.isEmpty else { throw error(.operation, "there is nothing to count") }
        case .value(let property, _):
            guard [.string, .binary, .mixed].contains(property.type) else {
                throw error(.operation, "@count is not possible for this property")
            }
        case .collection(_, let element, _):
            if element == .keys { throw error(.operation, "@count is not possible for keys") }
        case .allLinks: break
        }
        close(.count)
    }

    private mutating func postfix() throws {
        guard let postfix = syntax.postfix else { return }
        switch postfix {
        case .count where path.end == .allLinks: break
        case .count:
            if isClosed { throw error(.operation, "@count must follow a collection") }
            try count()
        case .type:
            if isClosed { throw error(.operation, "@type must follow a property") }
            if case .collection(let property, .all, let nested) = path.end, property.type != .mixed,
                property.collection != .dictionary, nested.isEmpty
            {
                throw error(.operation, "@type is not possible for a typed collection")
            }
            close(.type)
        case .aggregate(let aggregate, let property):
            if isClosed { throw error(.aggregate, "\(aggregate.rawValue) must follow a collection") }
            try self.aggregate(aggregate, property)
        }
    }

    private mutating func aggregate(_ aggregate: QuerySyntax.Path.Aggregate, _ name: String?) throws {
        func refuse(_ message: String) -> QueryError { error(.aggregate, "\(aggregate.rawValue): \(message)") }
        func check(_ type: ColumnType) throws {
            switch type {
            case .int, .float, .double, .decimal, .mixed: return
            case .timestamp where aggregate == .min || aggregate == .max: return
            case .timestamp: throw refuse("Cannot sum or average date properties")
            default: throw refuse("the property is neither a number nor a date")
            }
        }
        if let name {
            guard path.end == .objects, !path.hops.isEmpty, path.hops.contains(where: { $0.property.collection != nil }), let type
            else {
                throw refuse("must be applied to a collection of objects")
            }
            guard let property = type.property(name), property.collection == nil, property.type != .link else {
                throw refuse("Property '\(name)' of '\(type.name)' does not exist or is no number")
            }
            try check(property.type)
            return close(.aggregate(aggregate, property))
        }
        guard case .collection(let property, .all, let nested) = path.end, nested.isEmpty, property.type != .link else {
            throw refuse("must be applied to a collection of values, or name a property")
        }
        if property.collection != .dictionary { try check(property.type) }
        close(.aggregate(aggregate, nil))
    }

    // MARK: Result

    private func operand() throws -> QueryResolver.Operand {
        // Behind one element of a collection of objects, too, the values are a list.
        let hasCollectionHop = path.hops.contains { $0.property.collection != nil }
        var result = QueryResolver.Operand(form: .path(path), type: .int, quantifier: syntax.quantifier, offset: syntax.offset)
        // A quantifier before a single link says nothing, but is no error either.
        var allowsQuantifier = hasCollectionHop
        let valueType: QueryResolver.ValueType
        switch path.end {
        case .objects:
            valueType = .link(type?.table ?? .null)
            let isKeyed = path.hops.last.map { $0.property.collection != nil && $0.element != .all } ?? false
            result.isMany = path.hops.dropLast(isKeyed ? 1 : 0).contains { $0.property.collection != nil }
            result.isManyObjects = result.isMany
            result.takesAnyConstant = isKeyed
            result.isCollection = isKeyed
            result.isValueCollection = isKeyed
            result.isSearchable = hasCollectionHop
            result.isOne = !hasCollectionHop
            allowsQuantifier = allowsQuantifier || path.operation != .type
        case .value(let property, let nested):
            valueType =
                property.type == .mixed && nested.last == .keys ? .mixed : QueryResolver.ValueType(property.type, property.target)
            result.isMany = hasCollectionHop || !nested.isEmpty
            result.isCollection = result.isMany
            result.isSearchable = hasCollectionHop
            result.isOne = !result.isMany
            allowsQuantifier = allowsQuantifier || !nested.isEmpty
        case .collection(let property, let element, let nested):
            allowsQuantifier = true
            result.isMany = true
            result.isCollection = true
            if element == .keys {
                valueType = .string
            } else {
                valueType = QueryResolver.ValueType(property.type, property.target)
                result.takesAnyConstant = property.collection == .dictionary
                result.isValueCollection = true
                result.isSearchable = true
                if case .key = element { result.isMany = hasCollectionHop || nested.contains(.any) || nested.contains(.keys) }
            }
        case .allLinks:
            valueType = .int
            result.isOne = true
            allowsQuantifier = true
        }
        switch path.operation {
        case .none: result.type = valueType
        case .count, .length: countOperand(&result)
        case .type:
            result.type = .types
            result.isManyObjects = false
            result.takesAnyConstant = false
            if let types = constantTypes { result.form = .types(types) }
        case .aggregate(let aggregate, let property):
            let base = property.map { QueryResolver.ValueType($0.type, .null) } ?? valueType
            result.type = base
            switch (aggregate, base) {
            case (.average, .int): result.type = .double
            // Of a property of objects the sum and the mean of floats are doubles, of a collection of values they stay floats.
            case (.average, .float) where property != nil, (.sum, .float) where property != nil: result.type = .double
            default: break
            }
            result.takesAnyConstant = false
            result.isMany = property == nil && hasCollectionHop
            result.isOne = !result.isMany
            result.isManyObjects = false
            result.isCollection = false
            result.isValueCollection = false
            result.isSearchable = false
            result.takesNumericStrings = true
        }
        if syntax.quantifier != nil && !allowsQuantifier {
            throw error(.path, "Aggregate operations can only be used on key paths that include a collection property")
        }
        return result
    }

    private func countOperand(_ result: inout QueryResolver.Operand) {
        result.type = .int
        result.takesAnyConstant = false
        result.takesNumericStrings = true
        result.isManyObjects = false
        result.isValueCollection = false
        result.isSearchable = false
        if path.operation == .length { return }
        // Of sizes any will do, whatever the quantifier says.
        result.quantifier = nil
        result.isCollection = false
        let hasCollectionHop = path.hops.contains { $0.property.collection != nil }
        switch path.end {
        case .objects: result.isMany = path.hops.count > 1
        case .value(_, let nested): result.isMany = hasCollectionHop || !nested.isEmpty
        case .collection: result.isMany = hasCollectionHop
        case .allLinks: result.isMany = false
        }
        result.isOne = !result.isMany
    }

    /// `@type` of a property that always has the same type.
    private var constantTypes: ValueTypes? {
        switch path.end {
        case .objects: return .link
        case .value(let property, _): return property.type == .mixed ? nil : ValueTypes(property.type)
        case .collection(let property, let element, _):
            if element == .keys { return .string }
            return property.type == .mixed || property.collection == .dictionary ? nil : ValueTypes(property.type)
        case .allLinks: return .int
        }
    }
}
