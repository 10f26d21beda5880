import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// The operations of the recorded scenarios, done in a write transaction; objects go by labels.
final class ObservationData {
    typealias Identity = ChangesetWriter.CollectionIdentity
    struct Failure: Error, CustomStringConvertible {
        let description: String
        init(_ text: String) { description = text }
    }

    private(set) var labels: [String: (table: TableKey, key: ObjectKey)] = [:]
    private var names: [TableKey: [ObjectKey: String]] = [:]

    func label(_ table: TableKey, _ key: ObjectKey) -> String { names[table]?[key] ?? "?\(table):\(key)" }
    func object(_ label: String) throws -> (table: TableKey, key: ObjectKey) {
        guard let found = labels[label] else { throw Failure("no object \(label)") }
        return found
    }

    private func name(_ label: String?, _ table: TableKey, _ key: ObjectKey) {
        guard let label else { return }
        labels[label] = (table, key)
        names[table, default: [:]][key] = label
    }

    // MARK: Operations

    func run(_ operations: [ExactJSON], _ editor: GroupEditor) throws {
        for operation in operations { try run(operation, editor) }
    }

    private func run(_ operation: ExactJSON, _ editor: GroupEditor) throws {
        func text(_ name: String) throws -> String { try XCTUnwrap(operation[name]?.string) }
        func number(_ name: String) throws -> Int { Int(try XCTUnwrap(operation[name]?.integer)) }
        func value() throws -> ExactJSON { operation["value"] ?? .null }
        switch try text("op") {
        case "create":
            let table = try editor.editor(named: "class_" + text("class"))
            let values = operation["values"]?.members ?? []
            var key: ObjectKey
            if let primary = table.table.primaryKeyColumn {
                let value = values.first { $0.name == table.table.name(of: primary) }?.value ?? .integer(0)
                key = try table.createObject(primaryKey: mixed(value)).key
            } else {
                key = try table.createObject()
            }
            name(operation["as"]?.string, table.table.key, key)
            for member in values where member.name != table.table.primaryKeyColumn.map({ table.table.name(of: $0) }) {
                try assign(table, table.column(named: member.name), key, member.value)
            }
        case "delete":
            let object = try object(text("obj"))
            try editor.editor(object.table).deleteObject(object.key)
        case "deleteAll": try editor.editor(named: "class_" + text("class")).deleteAllObjects()
        case "deleteWhere":
            let schema = try GroupQuerySchema(editor.group)
            let query = try Query(text("where"), class: text("class"), schema: schema)
            let table = try editor.editor(named: "class_" + text("class"))
            for key in try query.run(in: editor.group) { try table.deleteObject(key) }
        case "deleteListed":
            let (table, identity) = try place(operation["at"], editor)
            guard case .list(let list)? = try ObservedCollection.find(identity, in: editor.group)?.collection else {
                throw Failure("no list")
            }
            var keys: Set<ObjectKey> = []
            for i in 0..<list.count { keys.insert(try list.link(i)) }
            let target = try editor.editor(table.column(identity.column).oppositeTable)
            for key in keys.sorted() { try target.deleteObject(key) }
        case "set":
            let object = try object(text("obj"))
            let table = try editor.editor(object.table)
            try assign(table, table.column(named: text("prop")), object.key, value())
        case "add":
            let object = try object(text("obj"))
            let table = try editor.editor(object.table)
            try table.add(table.column(named: text("prop")), of: object.key, Int64(number("by")))
        case "insert":
            let (table, identity) = try place(operation["at"], editor)
            try insert(table, identity, number("index"), value())
        case "setAt":
            let (table, identity) = try place(operation["at"], editor)
            try replace(table, identity, number("index"), value())
        case "erase":
            let (table, identity) = try place(operation["at"], editor)
            try table.listErase(identity, number("index"))
        case "move":
            let (table, identity) = try place(operation["at"], editor)
            try table.listMove(identity, from: number("from"), to: number("to"))
        case "swap":
            let (table, identity) = try place(operation["at"], editor)
            try table.listSwap(identity, number("a"), number("b"))
        case "put":
            let (table, identity) = try place(operation["at"], editor)
            if let key = operation["key"]?.string {
                try put(table, identity, key, value())
            } else {
                _ = try table.setInsert(identity, mixed(value()))
            }
        case "remove":
            let (table, identity) = try place(operation["at"], editor)
            if let key = operation["key"]?.string {
                _ = try table.dictionaryErase(identity, key)
            } else {
                _ = try table.setErase(identity, mixed(value()))
            }
        case "clear":
            let (table, identity) = try place(operation["at"], editor)
            try table.clear(identity)
        case let other: throw Failure("operation \(other)")
        }
    }

    /// Where `at` leads: label, property, then indices or keys of collections nested in Mixed values.
    func place(_ at: ExactJSON?, _ group: Group) throws -> (table: TableKey, identity: Identity) {
        let parts = at?.elements ?? []
        let object = try object(XCTUnwrap(parts[0].string))
        let table = try XCTUnwrap(group.table(object.table))
        var identity = Identity(
            table: object.table, object: object.key, column: try XCTUnwrap(table.column(named: XCTUnwrap(parts[1].string))).key)
        for part in parts.dropFirst(2) {
            let found = try XCTUnwrap(ObservedCollection.find(identity, in: group)).collection
            switch found {
            case .list(let list): identity.salts.append(try list.nestedKey(Int(XCTUnwrap(part.integer))))
            case .dictionary(let dictionary):
                identity.salts.append(try dictionary.nestedKey(XCTUnwrap(dictionary.find(XCTUnwrap(part.string)))))
            case .set: throw Failure("a set holds no collections")
            }
        }
        return (object.table, identity)
    }

    private func place(_ at: ExactJSON?, _ editor: GroupEditor) throws -> (TableEditor, Identity) {
        let (table, identity) = try place(at, editor.group)
        return (try editor.editor(table), identity)
    }

    // MARK: Values

    private func assign(_ table: TableEditor, _ column: Column, _ key: ObjectKey, _ value: ExactJSON) throws {
        if column.collection == nil {
            if let embedded = value["$embedded"] {
                try fill(table, column, table.setEmbedded(column, of: key), value, embedded)
            } else if let kind = kind(value) {
                try table.set(column, of: key, to: kind)
                try refill(table, table.identity(column, of: key), value)
            } else {
                try table.set(column, of: key, to: mixed(value))
            }
            return
        }
        try refill(table, table.identity(column, of: key), value)
    }

    /// Clears a collection, then adds each.
    private func refill(_ table: TableEditor, _ identity: Identity, _ value: ExactJSON) throws {
        try table.clear(identity)
        if case .array(let elements) = value {
            let isSet = try table.column(identity.column).collection == .set
            for (i, element) in elements.enumerated() {
                if isSet { _ = try table.setInsert(identity, mixed(element)) } else { try insert(table, identity, i, element) }
            }
        }
        for entry in value["$dict"]?.elements ?? [] {
            try put(table, identity, XCTUnwrap(entry.elements[0].string), entry.elements[1])
        }
    }

    private func fill(_ table: TableEditor, _ column: Column, _ child: ObjectKey, _ value: ExactJSON, _ embedded: ExactJSON)
        throws
    {
        name(value["as"]?.string, column.oppositeTable, child)
        let target = try table.other(column.oppositeTable)
        for member in embedded.members { try assign(target, target.column(named: member.name), child, member.value) }
    }

    private func insert(_ table: TableEditor, _ identity: Identity, _ index: Int, _ value: ExactJSON) throws {
        if let embedded = value["$embedded"] {
            let column = try table.column(identity.column)
            return try fill(table, column, table.listInsertEmbedded(identity, index), value, embedded)
        }
        try table.listInsert(identity, index, kind(value) ?? mixed(value))
        if kind(value) != nil { try refill(table, table.nestedIdentity(identity, at: index), value) }
    }

    private func replace(_ table: TableEditor, _ identity: Identity, _ index: Int, _ value: ExactJSON) throws {
        if let embedded = value["$embedded"] {
            let column = try table.column(identity.column)
            return try fill(table, column, table.listSetEmbedded(identity, index), value, embedded)
        }
        try table.listSet(identity, index, kind(value) ?? mixed(value))
        if kind(value) != nil { try refill(table, table.nestedIdentity(identity, at: index), value) }
    }

    private func put(_ table: TableEditor, _ identity: Identity, _ key: String, _ value: ExactJSON) throws {
        if let embedded = value["$embedded"] {
            let column = try table.column(identity.column)
            return try fill(table, column, table.dictionarySetEmbedded(identity, key), value, embedded)
        }
        let place = try table.dictionarySet(identity, key, kind(value) ?? mixed(value))
        if kind(value) != nil { try refill(table, table.nestedIdentity(identity, at: place.position), value) }
    }

    private func kind(_ value: ExactJSON) -> Mixed? {
        if case .array = value { return .list }
        return value["$dict"] != nil ? .dictionary : nil
    }

    func mixed(_ value: ExactJSON) throws -> Mixed {
        switch value {
        case .null: return .null
        case .bool(let v): return .bool(v)
        case .integer(let v): return .int(v)
        case .string(let v): return .string(v)
        default: break
        }
        if let label = value["$ref"]?.string {
            let object = try object(label)
            return .link(object.table, object.key)
        }
        if let number = value["$double"] {
            switch number {
            case .integer(let v): return .double(Double(v))
            case .number(let v), .string(let v): return .double(try XCTUnwrap(Double(v)))
            default: break
            }
        }
        throw Failure("value \(value)")
    }

    /// A value as the scenarios show contents.
    func show(_ value: Mixed) -> ExactJSON {
        switch value {
        case .null: .null
        case .int(let v): .integer(v)
        case .bool(let v): .bool(v)
        case .string(let v): .string(v)
        case .double(let v): .object([.init("$double", .string(v == v.rounded() && abs(v) < 1e15 ? "\(Int64(v))" : "\(v)"))])
        case .link(let table, let key): .string(label(table, key))
        case .list: .string("[list]")
        case .dictionary: .string("{dictionary}")
        default: .string("\(value)")
        }
    }
}
