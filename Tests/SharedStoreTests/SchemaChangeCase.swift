import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// One recorded case of `schema-changes.json`: a file with an old schema and data, opened with a new one.
struct SchemaChangeCase {
    let json: ExactJSON
    let name: String
    let oldVersion: UInt64
    let version: UInt64
    let mode: SchemaChanger.Mode
    let expect: ExactJSON

    init(_ json: ExactJSON) throws {
        self.json = json
        name = try XCTUnwrap(json["name"]?.string)
        expect = try XCTUnwrap(json["expect"])
        oldVersion = UInt64(json["oldVersion"]?.integer ?? 0)
        version = json["version"]?.integer.map { UInt64($0) } ?? oldVersion
        mode =
            switch json["mode"]?.string {
            case nil, "automatic": .automatic
            case "readOnly": .readOnly
            case "liveReadOnly": .liveReadOnly
            case "deleteIfNeeded": .deleteIfNeeded
            case "additiveExplicit": .additiveExplicit
            case let other?: throw ScenarioError("mode \(other)")
            }
    }

    struct ScenarioError: Error { let what: String; init(_ what: String) { self.what = what } }
    /// What the migration block of the case `throw`s.
    struct BlockError: Error {}
    /// The schema says something that files do not hold: it never comes to the engine.
    struct NotInFiles: Error {}

    /// The schema under `name`, nil where it is null.
    func schema(_ name: String) throws -> Schema? {
        guard case .object(let members)? = json[name] else { return nil }
        return Schema(version: -1, classes: try members.map { try Self.objectSchema($0.name, $0.value.members) })
    }

    static func objectSchema(_ name: String, _ members: [ExactJSON.Member]) throws -> ObjectSchema {
        var type = ObjectSchema(name: name, kind: .topLevel, primaryKey: nil, properties: [])
        var publicNames: Set<String> = []
        for member in members {
            if member.name == "_embedded" {
                type.kind = .embedded
                continue
            }
            var words = try XCTUnwrap(member.value.string).split(separator: " ").map(String.init)
            let typeWord = words.removeFirst()
            if typeWord.hasPrefix("backlinks<") {
                // Computed: only a wrong origin is of interest, and that is a matter of models.
                if typeWord == "backlinks<P.q>" { throw NotInFiles() }
                continue
            }
            var property = try property(member.name, typeWord)
            for word in words {
                switch word {
                case "primary":
                    if type.primaryKey != nil { throw NotInFiles() }
                    type.primaryKey = member.name
                    property.isIndexed = true
                case "indexed": property.isIndexed = true
                case "fulltext": property.isFullTextIndexed = true
                default: if !publicNames.insert(word).inserted { throw NotInFiles() }
                }
            }
            type.properties.append(property)
        }
        return type
    }

    private static let types: [String: ColumnType] = [
        "int": .int, "bool": .bool, "string": .string, "data": .binary, "date": .timestamp, "float": .float, "double": .double,
        "objectId": .objectId, "decimal128": .decimal, "uuid": .uuid, "mixed": .mixed,
    ]

    private static func property(_ name: String, _ word: String) throws -> PropertySchema {
        var word = word
        var collection: CollectionKind?
        for (prefix, kind) in [("list<", CollectionKind.list), ("set<", .set), ("dict<", .dictionary)]
        where word.hasPrefix(prefix) {
            collection = kind
            word = String(word.dropFirst(prefix.count).dropLast())
        }
        let isOptional = word.hasSuffix("?")
        if isOptional { word.removeLast() }
        if let type = types[word] {
            return PropertySchema(name: name, type: type, collection: collection, isOptional: isOptional)
        }
        return PropertySchema(name: name, type: .link, collection: collection, isOptional: isOptional, objectType: word)
    }

    // MARK: Describing

    /// The schema in the words of the cases.
    static func describe(_ schema: Schema) -> ExactJSON {
        .object(
            schema.classes.map { type in
                var members = type.isEmbedded ? [ExactJSON.Member("_embedded", .bool(true))] : []
                members += type.properties.map {
                    ExactJSON.Member($0.name, .string(words($0, isPrimaryKey: type.primaryKey == $0.name)))
                }
                return ExactJSON.Member(type.name, .object(members))
            })
    }

    static func words(_ property: PropertySchema, isPrimaryKey: Bool) -> String {
        let name = types.first { $0.value == property.type }?.key ?? property.objectType ?? ""
        let mark = property.type == .link ? property.collection == nil : property.isOptional && property.type != .mixed
        let element = name + (mark ? "?" : "")
        let type =
            switch property.collection {
            case .list: "list<\(element)>"
            case .set: "set<\(element)>"
            case .dictionary: "dict<\(element)>"
            case nil: element
            }
        return type + (isPrimaryKey ? " primary" : property.isIndexed ? " indexed" : "")
            + (property.isFullTextIndexed ? " fulltext" : "")
    }

    /// A difference in the form of the cases.
    static func describe(_ difference: SchemaDifference, file: Schema, wanted: Schema) -> ExactJSON {
        func object(_ kind: String, _ name: String, _ more: (String, String?)...) -> ExactJSON {
            .object(
                [.init("diff", .string(kind)), .init("class", .string(name))]
                    + more.compactMap { label, value in value.map { .init(label, .string($0)) } })
        }
        func words(_ property: PropertySchema, _ schema: Schema, _ name: String) -> String {
            self.words(property, isPrimaryKey: schema.objectSchema(named: name)?.primaryKey == property.name)
        }
        switch difference {
        case .classAdded(let name): return object("class added", name)
        case .propertyAdded(let name, let property): return object("property added", name, ("property", property.name))
        case .propertyRemoved(let name, let property): return object("property removed", name, ("property", property))
        case .typeChanged(let name, let from, let to):
            return object(
                "type changed", name, ("property", to.name), ("from", words(from, file, name)), ("to", words(to, wanted, name)))
        case .madeOptional(let name, let property): return object("made optional", name, ("property", property))
        case .madeRequired(let name, let property): return object("made required", name, ("property", property))
        case .indexAdded(let name, let property): return object("index added", name, ("property", property))
        case .fullTextIndexAdded(let name, let property): return object("fulltext index added", name, ("property", property))
        case .indexRemoved(let name, let property): return object("index removed", name, ("property", property))
        case .primaryKeyChanged(let name, let from, nil): return object("primary key removed", name, ("from", from))
        case .primaryKeyChanged(let name, let from, let to):
            return object("primary key changed", name, ("to", to), ("from", from))
        case .kindChanged(let name, let from, let to):
            return object("class kind changed", name, ("from", from.word), ("to", to.word))
        }
    }

    /// An error in the words of the cases.
    static func describe(_ error: any Error) -> String {
        switch error {
        case is BlockError: "error of the block"
        case OpenError.fileNotFound: "file missing"
        case TableError.nullNotAllowed: "null for a required property"
        case SchemaError.invalidSchema(let problems):
            // The original refuses this one only when it makes the index.
            problems.allSatisfy { if case .notFullTextIndexable = $0 { true } else { false } }
                ? "index refused" : "invalid schema"
        case SchemaError.migrationRequired: "migration required"
        case SchemaError.versionTooLow: "version too low"
        case SchemaError.versionDiffers: "version differs"
        case SchemaError.notReadable: "not allowed when read only"
        case SchemaError.renameRefused: "rename refused"
        case SchemaError.duplicatePrimaryKey: "duplicate primary key"
        case SchemaError.notOwnedOnce: "embedded object without exactly one parent"
        default: "\(error)"
        }
    }

    // MARK: Data

    /// Does the operations that make the old file's data.
    func makeData(_ editor: GroupEditor) throws {
        var labels: [String: (TableEditor, ObjectKey)] = [:]
        for operation in json["data"]?.elements ?? [] {
            if operation["op"]?.string == "create" {
                let table = try editor.editor(named: "class_" + XCTUnwrap(operation["class"]?.string))
                let values = operation["values"]?.members ?? []
                var key: ObjectKey
                if let primary = table.table.primaryKeyColumn {
                    let value = try XCTUnwrap(values.first { $0.name == table.table.name(of: primary) }?.value)
                    key = try table.createObject(primaryKey: mixed(value, labels)).key
                } else {
                    key = try table.createObject()
                }
                for value in values { try store(value.value, value.name, table, key, labels) }
                if let label = operation["as"]?.string { labels[label] = (table, key) }
            } else {
                let (table, key) = try XCTUnwrap(labels[operation["obj"]?.string ?? ""])
                try store(XCTUnwrap(operation["value"]), XCTUnwrap(operation["prop"]?.string), table, key, labels)
            }
        }
    }

    private func store(
        _ value: ExactJSON, _ name: String, _ table: TableEditor, _ key: ObjectKey, _ labels: [String: (TableEditor, ObjectKey)]
    ) throws {
        let column = try table.column(named: name)
        let identity = table.identity(column, of: key)
        switch column.collection {
        case nil:
            if let embedded = value["$embedded"] {
                let child = try table.setEmbedded(column, of: key)
                let target = try table.other(column.oppositeTable)
                for member in embedded.members { try store(member.value, member.name, target, child, labels) }
            } else {
                try table.set(column, of: key, to: mixed(value, labels))
            }
        case .list: for (i, element) in value.elements.enumerated() { try table.listInsert(identity, i, mixed(element, labels)) }
        case .set: for element in value.elements { _ = try table.setInsert(identity, mixed(element, labels)) }
        case .dictionary:
            for entry in value["$dict"]?.elements ?? [] {
                _ = try table.dictionarySet(identity, XCTUnwrap(entry.elements[0].string), mixed(entry.elements[1], labels))
            }
        }
    }

    private func mixed(_ value: ExactJSON, _ labels: [String: (TableEditor, ObjectKey)]) throws -> Mixed {
        switch value {
        case .null: return .null
        case .bool(let v): return .bool(v)
        case .integer(let v): return .int(v)
        case .string(let v): return .string(v)
        default: break
        }
        if let label = value["$ref"]?.string, let (table, key) = labels[label] { return .link(table.table.key, key) }
        if let parts = value["$date"]?.elements, let seconds = parts[0].integer, let nanoseconds = parts[1].integer {
            return .timestamp(Timestamp(seconds: seconds, nanoseconds: Int32(nanoseconds)))
        }
        throw ScenarioError("value \(value)")
    }

    // MARK: The migration block

    /// The block of the case, nil where none is given.
    func block(_ called: @escaping () -> Void) -> ((MigrationContext) throws -> Void)? {
        guard case .array(let steps)? = json["migration"] else { return nil }
        return { context in
            called()
            for step in steps { try run(step.elements, context) }
        }
    }

    private func run(_ step: [ExactJSON], _ context: MigrationContext) throws {
        let operation = step[0].string ?? ""
        if operation == "throw" { throw BlockError() }
        let name = try XCTUnwrap(step[1].string)
        func word(_ i: Int) throws -> String { try XCTUnwrap(step[i].string) }
        switch operation {
        case "rename": try context.renameProperty(name, from: word(2), to: word(3))
        case "copy", "toString":
            let old = try XCTUnwrap(context.old.table(ofClass: name)?.column(named: word(2)))
            try context.enumerateObjects(name) { row, key in
                guard let row, let key, let table = try context.table(name) else { return }
                let value = try row.value(old)
                if operation == "copy" {
                    try table.set(word(3), of: key, to: value)
                } else if case .int(let v) = value {
                    try table.set(word(3), of: key, to: .string(String(v)))
                }
            }
        case "number":
            var next = try XCTUnwrap(step[3].integer)
            try context.enumerateObjects(name) { _, key in
                guard let key, let table = try context.table(name) else { return }
                try table.set(word(2), of: key, to: .int(next))
                next += 1
            }
        case "set":
            try context.enumerateObjects(name) { _, key in
                guard let key, let table = try context.table(name) else { return }
                try table.set(word(2), of: key, to: mixed(step[3], [:]))
            }
        case "deleteData":
            let isThere = try context.deleteData(name)
            XCTAssertTrue(isThere, self.name)
        case "deleteFirst":
            let first = try XCTUnwrap(context.table(name)?.table.object(at: 0)?.key)
            try context.deleteObject(name, first)
        case "create":
            let key = try context.createObject(name)
            for member in step[2].members { try context.table(name)?.set(member.name, of: key, to: mixed(member.value, [:])) }
        default: throw ScenarioError("block operation \(operation)")
        }
    }
}
