/// Why a file could not be opened with the wanted classes. Nothing was changed then.
public enum SchemaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The wanted classes contradict each other or ask for what no file can have; all problems.
    case invalidSchema([SchemaProblem])
    /// The differences that need a higher schema version; all of them.
    case migrationRequired([SchemaDifference])
    /// The file was last written with a higher version of the schema.
    case versionTooLow(file: UInt64, wanted: UInt64)
    /// A file that is only read must have the version exactly.
    case versionDiffers(file: UInt64, wanted: UInt64)
    /// The differences with which a file cannot be read.
    case notReadable([SchemaDifference])
    /// The differences that a schema which only grows must not have.
    case notAdditive([SchemaDifference])
    /// The migration block was to make all changes itself; what is left.
    case incompleteMigration([SchemaDifference])
    case renameRefused(class: String, from: String, to: String, reason: String)
    /// After a migration two objects of a class have the same primary key.
    case duplicatePrimaryKey(class: String, property: String, value: String)
    /// A class cannot become embedded: an object has no owner, or several.
    case notOwnedOnce(class: String, reason: String)

    public var description: String {
        switch self {
        case .invalidSchema(let problems): "Schema validation failed due to the following errors:" + Self.lines(problems)
        case .migrationRequired(let differences): "Migration is required due to the following errors:" + Self.lines(differences)
        case .versionTooLow(let file, let wanted): "Provided schema version \(wanted) is less than last set version \(file)."
        case .versionDiffers(let file, let wanted): "Provided schema version \(wanted) does not equal last set version \(file)."
        case .notReadable(let differences):
            "The file cannot be read with this schema due to the following errors:" + Self.lines(differences)
        case .notAdditive(let differences):
            "The following changes cannot be made in additive-only schema mode:" + Self.lines(differences)
        case .incompleteMigration(let differences): "The migration did not make the following changes:" + Self.lines(differences)
        case .renameRefused(let name, let from, let to, let reason):
            "Cannot rename property '\(name).\(from)' to '\(to)': \(reason)."
        case .duplicatePrimaryKey(let name, let property, let value):
            "Primary key property '\(name).\(property)' has duplicate values after migration: \(value)."
        case .notOwnedOnce(let name, let reason): "Cannot convert '\(name)' to embedded: \(reason)."
        }
    }

    private static func lines(_ items: [some CustomStringConvertible]) -> String {
        items.map { "\n- " + $0.description }.joined()
    }
}

/// One thing that is wrong with a wanted schema, whatever the file has.
public enum SchemaProblem: Equatable, Sendable, CustomStringConvertible {
    case classDeclaredTwice(String)
    case propertyDeclaredTwice(class: String, property: String)
    /// Names have 1 to 57 (classes) or 63 bytes (properties).
    case badName(String)
    case unknownLinkTarget(class: String, property: String, target: String)
    case requiredLink(class: String, property: String)
    case setOfEmbedded(class: String, property: String)
    case linkToAsymmetric(class: String, property: String)
    /// Objects of an embedded class could hold others of the same class, whether at once or by way of other embedded ones; the
    /// links that do, as "class.property".
    case embeddedCycle([String])
    case noSuchPrimaryKey(class: String, property: String)
    case badPrimaryKeyType(class: String, property: String)
    case embeddedWithPrimaryKey(class: String, property: String)
    case notIndexable(class: String, property: String)
    /// Full-text indexes are for strings.
    case notFullTextIndexable(class: String, property: String)
    /// Nobody links to the embedded class, though it was asked for by name.
    case unreachableEmbedded(String)

    public var description: String {
        switch self {
        case .classDeclaredTwice(let name): "Class '\(name)' is declared more than once."
        case .propertyDeclaredTwice(let name, let property): "Property '\(name).\(property)' is declared more than once."
        case .badName(let name): "The name '\(name)' is empty or too long."
        case .unknownLinkTarget(let name, let property, let target):
            "Property '\(name).\(property)' has unknown object type '\(target)'."
        case .requiredLink(let name, let property): "Property '\(name).\(property)' of type 'object' must be marked as optional."
        case .setOfEmbedded(let name, let property): "Set property '\(name).\(property)' cannot contain embedded objects."
        case .linkToAsymmetric(let name, let property): "Property '\(name).\(property)' cannot link to an asymmetric class."
        case .embeddedCycle(let links):
            "Cycles containing embedded objects are not supported: '\(links.joined(separator: "' -> '"))'."
        case .noSuchPrimaryKey(let name, let property): "Primary key property '\(name).\(property)' does not exist."
        case .badPrimaryKeyType(let name, let property):
            "Property '\(name).\(property)' cannot be made the primary key because of its type."
        case .embeddedWithPrimaryKey(let name, let property):
            "Embedded object type '\(name)' cannot have a primary key ('\(property)')."
        case .notIndexable(let name, let property): "Property '\(name).\(property)' cannot be indexed because of its type."
        case .notFullTextIndexable(let name, let property):
            "Property '\(name).\(property)' cannot have a full-text index because of its type."
        case .unreachableEmbedded(let name): "Embedded object '\(name)' is unreachable by any link path from top level objects."
        }
    }
}

extension Schema {
    static let classNameByteCountMax = 57

    /// Everything for which no file can be made to have these classes.
    public func problems() -> [SchemaProblem] {
        var problems: [SchemaProblem] = []
        var kinds: [ExactString: TableKind] = [:]
        for type in classes {
            if kinds.updateValue(type.kind, forKey: ExactString(type.name)) != nil {
                problems.append(.classDeclaredTwice(type.name))
            }
            if !(1...Schema.classNameByteCountMax).contains(type.name.utf8.count) { problems.append(.badName(type.name)) }
        }
        for type in classes {
            var names: Set<ExactString> = []
            for property in type.properties {
                if !names.insert(ExactString(property.name)).inserted {
                    problems.append(.propertyDeclaredTwice(class: type.name, property: property.name))
                }
                if !(1...TableEditor.columnNameByteCountMax).contains(property.name.utf8.count) {
                    problems.append(.badName(type.name + "." + property.name))
                }
                Schema.check(property, type, kinds, &problems)
            }
            guard let key = type.primaryKey else { continue }
            if type.kind == .embedded { problems.append(.embeddedWithPrimaryKey(class: type.name, property: key)) }
            guard let property = type.property(named: key) else {
                problems.append(.noSuchPrimaryKey(class: type.name, property: key))
                continue
            }
            if property.collection != nil || ![.int, .string, .objectId, .uuid].contains(property.type) {
                problems.append(.badPrimaryKeyType(class: type.name, property: key))
            }
        }
        problems += classes.lazy.filter { $0.kind == .embedded }.compactMap { embeddedCycle(from: $0) }
        return problems
    }

    /// The links by which an object of the embedded class would hold another one of the class: the original refuses such classes,
    /// even where the links are optional or collections.
    private func embeddedCycle(from start: ObjectSchema) -> SchemaProblem? {
        var paths: [(type: ObjectSchema, links: [String])] = [(start, [])]
        var seen: Set<ExactString> = []
        while let (type, links) = paths.popLast() {
            for property in type.properties where property.type == .link {
                guard let target = property.objectType.flatMap({ objectSchema(named: $0) }), target.kind == .embedded else {
                    continue
                }
                let links = links + ["\(type.name).\(property.name)"]
                if target.name.isSame(as: start.name) { return .embeddedCycle(links) }
                if seen.insert(ExactString(target.name)).inserted { paths.append((target, links)) }
            }
        }
        return nil
    }

    private static func check(
        _ property: PropertySchema, _ type: ObjectSchema, _ kinds: [ExactString: TableKind], _ problems: inout [SchemaProblem]
    ) {
        let isIndexable =
            property.collection == nil && [.int, .bool, .string, .timestamp, .objectId, .uuid, .mixed].contains(property.type)
        if property.isIndexed && !isIndexable { problems.append(.notIndexable(class: type.name, property: property.name)) }
        if property.isFullTextIndexed && (property.type != .string || property.collection != nil) {
            problems.append(.notFullTextIndexable(class: type.name, property: property.name))
        }
        guard property.type == .link else { return }
        guard let target = property.objectType, let kind = kinds[ExactString(target)] else {
            problems.append(.unknownLinkTarget(class: type.name, property: property.name, target: property.objectType ?? ""))
            return
        }
        if property.collection == nil && !property.isOptional {
            problems.append(.requiredLink(class: type.name, property: property.name))
        }
        if kind == .asymmetric || (type.kind == .asymmetric && kind != .embedded) {
            problems.append(.linkToAsymmetric(class: type.name, property: property.name))
        }
        if kind == .embedded && property.collection == .set {
            problems.append(.setOfEmbedded(class: type.name, property: property.name))
        }
    }

    /// Embedded classes that no path of links leads to from a class that is not embedded.
    func unreachableEmbeddedClasses() -> Set<ExactString> {
        var missing = Set(classes.filter { $0.kind == .embedded }.map { ExactString($0.name) })
        var reached = classes.filter { $0.kind != .embedded }
        while let type = reached.popLast() {
            for case let target? in type.properties.map(\.objectType) where missing.remove(ExactString(target)) != nil {
                if let next = objectSchema(named: target) { reached.append(next) }
            }
        }
        return missing
    }
}
