internal import SharedStore

/// The schema of a set of model classes, and what is wrong with it.
enum ModelSchema {
    /// The name of a class in the file is the prefix `class_` and this, 63 bytes at most (file-format-2 1.2).
    static let classNameByteCountMax = 57
    static let propertyNameByteCountMax = 63

    /// The classes of the process that want to be in every Realm.
    static func defaultTypes() -> [ObjectBase.Type] { ModelRuntime.allModels().filter { $0.shouldIncludeInDefaultSchema() } }

    /// - Throws: `SchemaProblems` with everything that is wrong.
    static func make(_ types: [ObjectBase.Type]) throws -> (schema: Schema, classes: [ClassInfo]) {
        var classes: [ClassInfo] = []
        var seen: Set<ObjectIdentifier> = []
        for type in types where seen.insert(ObjectIdentifier(type)).inserted { classes.append(ClassInfo.of(type)) }
        let problems = validate(classes)
        if !problems.isEmpty { throw SchemaProblems(messages: problems) }
        return (Schema(classes.map { ObjectSchema($0) }), classes)
    }

    static func validate(_ classes: [ClassInfo]) -> [String] {
        var problems: [String] = []
        var byName: [ExactString: ClassInfo] = [:]
        for info in classes {
            if let other = byName[ExactString(info.name)] {
                problems.append(
                    "Class '\(info.name)' is declared more than once: by '\(String(reflecting: other.type))' and '\(String(reflecting: info.type))'."
                )
            }
            byName[ExactString(info.name)] = info
        }
        for info in classes { validate(info, byName, &problems) }
        for info in classes where info.type.isEmbedded() {
            if let cycle = cycle(of: info, byName) {
                problems.append("Cycles containing embedded objects are not supported: '\(cycle.joined(separator: "' -> '"))'.")
            }
        }
        return problems
    }

    /// The links by which an embedded object could hold another one of its own class; also those in collections, which no other
    /// program could open the file with.
    private static func cycle(of start: ClassInfo, _ classes: [ExactString: ClassInfo]) -> [String]? {
        var paths: [(info: ClassInfo, path: [String])] = [(start, [])]
        var seen: Set<ExactString> = []
        while let (info, path) = paths.popLast() {
            for property in info.properties where property.shape.type == .object {
                guard let target = property.shape.objectClass, target.isEmbedded(),
                    let targetInfo = classes[ExactString(target.className())]
                else { continue }
                let path = path + ["\(info.name).\(property.name)"]
                if targetInfo.name.isSame(as: start.name) { return path }
                if seen.insert(ExactString(targetInfo.name)).inserted { paths.append((targetInfo, path)) }
            }
        }
        return nil
    }

    private static func validate(_ info: ClassInfo, _ classes: [ExactString: ClassInfo], _ problems: inout [String]) {
        let name = info.name
        if info.properties.isEmpty {
            problems.append(
                "No properties are defined for '\(name)'. Did you remember to mark them with '@Persisted' in your model?")
        }
        if name.utf8.count > classNameByteCountMax {
            problems.append("Class name '\(name)' is too long: \(name.utf8.count) bytes, \(classNameByteCountMax) are possible.")
        }
        var columns: Set<ExactString> = []
        let names = Set(info.properties.map { ExactString($0.name) })
        for property in info.properties {
            if !columns.insert(ExactString(property.columnName)).inserted {
                problems.append(
                    "Property '\(name).\(property.name)' is declared more than once, or its name in the file '\(property.columnName)' is that of another property."
                )
            }
            if !property.columnName.isSame(as: property.name) && names.contains(ExactString(property.columnName)) {
                problems.append(
                    "Property '\(name).\(property.columnName)' has the same name as the alias of '\(name).\(property.name)'.")
            }
            validate(property, "\(name).\(property.name)", info, classes, &problems)
        }
        let primaryKeys = info.properties.filter(\.isPrimaryKey)
        if primaryKeys.count > 1 {
            problems.append(
                "Properties '\(primaryKeys.map(\.name).joined(separator: "' and '"))' of class '\(name)' are both marked as the primary key."
            )
        }
        if info.type.isEmbedded(), let key = primaryKeys.first {
            problems.append("Embedded object type '\(name)' cannot have a primary key ('\(key.name)').")
        }
        for mapped in info.type.propertiesMapping().keys.sorted() where !names.contains(ExactString(mapped)) {
            problems.append("Class '\(name)' maps the property '\(mapped)', which it does not have.")
        }
    }

    private static func validate(
        _ property: PropertyInfo, _ path: String, _ info: ClassInfo, _ classes: [ExactString: ClassInfo],
        _ problems: inout [String]
    ) {
        let shape = property.shape
        if property.columnName.utf8.count > propertyNameByteCountMax {
            problems.append(
                "Property name '\(path)' is too long: \(property.columnName.utf8.count) bytes, \(propertyNameByteCountMax) are possible."
            )
        }
        if property.isPrimaryKey {
            let isPossible =
                switch shape.type {
                case .int, .string, .objectId, .UUID: shape.collection == nil
                default: false
                }
            if !isPossible { problems.append("Property '\(path)' of type '\(shape.type)' cannot be made the primary key.") }
        }
        if property.flags.contains(.indexed) {
            let isPossible =
                switch shape.type {
                case .int, .bool, .string, .date, .objectId, .UUID, .any: shape.collection == nil
                default: false
                }
            if !isPossible { problems.append("Property '\(path)' of type '\(shape.type)' cannot be indexed.") }
        }
        guard let target = shape.objectClass else { return }
        let targetName = target.className()
        guard let targetInfo = classes[ExactString(targetName)], targetInfo.type == target else {
            problems.append("Property '\(path)' of type '\(shape.type)' has unknown object type '\(targetName)'.")
            return
        }
        switch (shape.type, shape.collection) {
        case (.linkingObjects, _): validateOrigin(property, path, info, targetInfo, &problems)
        case (.object, nil) where !shape.isOptional && !shape.isMappedObject:
            problems.append("Property '\(path)' of type 'object' must be marked as optional.")
        case (.object, .map) where !shape.isOptional && !shape.isMappedObject:
            problems.append("Property '\(path)' of type 'dictionary' must have optional objects as values.")
        case (.object, .list?) where shape.isOptional, (.object, .set?) where shape.isOptional:
            problems.append("Property '\(path)' of type 'array' cannot hold optional objects.")
        case (.object, .set?) where target.isEmbedded():
            problems.append("Set property '\(path)' cannot contain embedded objects of type '\(targetName)'.")
        default: break
        }
    }

    private static func validateOrigin(
        _ property: PropertyInfo, _ path: String, _ info: ClassInfo, _ origin: ClassInfo, _ problems: inout [String]
    ) {
        guard let originName = property.originProperty, !originName.isEmpty else {
            problems.append(
                "Property '\(path)' of type 'linking objects' must say which property links here: @Persisted(originProperty: \"name\")."
            )
            return
        }
        guard let link = origin.property(originName) ?? origin.properties.first(where: { $0.columnName.isSame(as: originName) })
        else {
            problems.append(
                "Property '\(origin.name).\(originName)' declared as origin of linking objects property '\(path)' does not exist."
            )
            return
        }
        if link.shape.type != .object {
            problems.append(
                "Property '\(origin.name).\(originName)' declared as origin of linking objects property '\(path)' is not a link.")
        } else if link.shape.objectClass != info.type {
            problems.append(
                "Property '\(origin.name).\(originName)' declared as origin of linking objects property '\(path)' links to type '\(link.shape.objectClass?.className() ?? "")', not to '\(info.name)'."
            )
        }
    }
}

/// Everything that is wrong with a schema, found before any file is touched.
struct SchemaProblems: Error, CustomStringConvertible {
    var messages: [String]
    var description: String { "Schema validation failed due to the following errors:" + messages.map { "\n- " + $0 }.joined() }
}
