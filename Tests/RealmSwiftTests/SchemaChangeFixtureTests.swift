import Foundation
import TestSupport
import XCTest

import enum SharedStore.JSONExporter
import class SharedStore.Group
import class SharedStore.ImmutableFile

@testable import RealmSwift

/// Each recorded change of classes gives the recorded outcome: the file opened or refused, its classes and objects afterwards.
///
/// Left out are cases that the Swift API cannot express: full-text indexes, modes without a counterpart, schemas that are
/// refused before the file is looked at (those are in `SchemaTests`), and embedded classes without repair, which Swift always
/// does.
final class SchemaChangeFixtureTests: XCTestCase {
    func testEveryRecordedChangeHasItsOutcome() throws {
        guard let shared = Fixtures.shared else {
            throw XCTSkip("the shared fixtures are not beside the package; nothing was tested")
        }
        let cases =
            try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: shared + "/schema-changes.json")))["cases"]?.elements
            ?? []
        XCTAssertGreaterThan(cases.count, 100)
        var tested = 0
        for example in cases where isExpressible(example) {
            let name = example["name"]?.string ?? ""
            do { try SchemaChangeCase(example).run() } catch { XCTFail("\(name): \(error)") }
            tested += 1
        }
        XCTAssertGreaterThan(tested, 110)
    }

    private func isExpressible(_ example: ExactJSON) -> Bool {
        let text = "\(example["old"] ?? .null)\(example["new"] ?? .null)"
        if text.contains("fulltext") { return false }
        if let mode = example["mode"]?.string, mode == "liveReadOnly" || mode == "additiveExplicit" { return false }
        if example["noAnswer"] != nil || example["originally"] != nil { return false }
        let error = example["expect"]?["error"]?.string
        // A block cannot throw here.
        if error == "error of the block" { return false }
        if error == "invalid schema" || error == "index refused" { return false }
        return error != "embedded object without exactly one parent"
    }
}

private struct SchemaChangeCase {
    let example: ExactJSON
    let name: String
    private let expect: ExactJSON

    init(_ example: ExactJSON) {
        self.example = example
        name = example["name"]?.string ?? ""
        expect = example["expect"] ?? .null
    }

    func run() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("a.realm")
        let oldVersion = UInt64(example["oldVersion"]?.integer ?? 0)
        if example["old"] != .null { try makeFile(path, oldVersion) }
        let before = try? Data(contentsOf: URL(fileURLWithPath: path))

        var configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: path), encryptionKey: TestKeys.usualData,
            schemaVersion: UInt64(example["version"]?.integer ?? Int64(oldVersion)))
        let mode = example["mode"]?.string
        if mode == "readOnly" { configuration.readOnly = true }
        if mode == "deleteIfNeeded" { configuration.deleteRealmIfMigrationNeeded = true }
        let called = Flag()
        if let steps = example["migration"], steps != .null {
            configuration.migrationBlock = { migration, _ in
                called.value = true
                for step in steps.elements { BlockStep(step).run(migration) }
            }
        }

        var failure: (any Error)?
        do { try open(path, configuration) } catch { failure = error }
        let outcome = expect["outcome"]?.string ?? ""
        if outcome == "error" {
            XCTAssertNotNil(failure, "\(name): opened, though \(expect["error"]?.string ?? "")")
            if let before {
                XCTAssertEqual(try export(path), try SchemaChangeCase.export(before, scratch), "\(name): the file was changed")
            }
            return
        }
        XCTAssertNil(failure, "\(name): \(failure.map { "\($0)" } ?? "")")
        XCTAssertEqual(called.value, expect["blockCalled"] == .bool(true), "\(name): block called")
        guard let after = expect["after"], failure == nil else { return }
        let file = try export(path)
        XCTAssertEqual(file["schemaVersion"], after["schemaVersion"], "\(name): version")
        for expected in after["objects"]?.members ?? [] {
            let type = file["classes"]?[expected.name]
            XCTAssertEqual(
                type?["objects"]?.elements.map(comparable), expected.value.elements.map(comparable),
                "\(name): objects of \(expected.name)")
        }
        for expected in after["schema"]?.members ?? [] {
            let type = file["classes"]?[expected.name]
            let names = type?["properties"]?.elements.compactMap { $0["name"]?.string }
            let wanted = expected.value.members.map(\.name).filter { !$0.hasPrefix("_") }
            XCTAssertEqual(Set(names ?? []), Set(wanted), "\(name): properties of \(expected.name)")
        }
    }

    /// Without the keys of embedded objects: which of the copies of a shared one gets which number means nothing.
    private func withoutKeys(_ value: ExactJSON) -> ExactJSON {
        switch value {
        case .object(let members):
            .object(members.filter { $0.name != "_key" }.map { ExactJSON.Member($0.name, withoutKeys($0.value)) })
        case .array(let elements): .array(elements.map(withoutKeys))
        default: value
        }
    }

    /// Members in the order of their names, for the order of columns means nothing here; times without nanoseconds, which a
    /// `Date` does not hold.
    private func comparable(_ value: ExactJSON) -> ExactJSON {
        .object(
            value.members.sorted { $0.name < $1.name }.map { member in
                guard let seconds = member.value["$date"]?.elements.first else {
                    return ExactJSON.Member(member.name, withoutKeys(member.value))
                }
                return ExactJSON.Member(member.name, seconds)
            })
    }

    // MARK: Files

    private func open(_ path: String, _ configuration: Realm.Configuration) throws {
        let schema = SchemaText.schema(example["new"] ?? .null)
        if configuration.readOnly {
            let session = try RealmOpening.session(configuration, schema, [], at: .here)
            _ = session
            return
        }
        _ = try RealmOpening.session(configuration, schema, [], at: .here)
    }

    private func makeFile(_ path: String, _ version: UInt64) throws {
        let schema = SchemaText.schema(example["old"] ?? .null)
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: path), encryptionKey: TestKeys.usualData, schemaVersion: version)
        let session = try RealmOpening.session(configuration, schema, [], at: .here)
        try session.beginWrite()
        var labels: [String: ObjectBase] = [:]
        for operation in example["data"]?.elements ?? [] {
            switch operation["op"]?.string {
            case "create":
                let type = try XCTUnwrap(session.type(named: operation["class"]?.string ?? ""))
                let key = session.create(type, SchemaText.dictionary(operation["values"] ?? .null, labels), .error)
                if let label = operation["as"]?.string { labels[label] = type.makeDynamicAccessor(key) }
            case "set":
                let object = try XCTUnwrap(labels[operation["obj"]?.string ?? ""])
                object.setValue(SchemaText.value(operation["value"] ?? .null, labels), forKey: operation["prop"]?.string ?? "")
            default: XCTFail("\(name): unknown operation \(operation)")
            }
        }
        try session.commitWrite()
    }

    private func export(_ path: String) throws -> ExactJSON {
        try Self.normalized(ImmutableFile(path: path, key: TestKeys.usual).group)
    }

    private static func export(_ bytes: Data, _ scratch: ScratchDirectory) throws -> ExactJSON {
        let path = scratch.file("before.realm")
        try bytes.write(to: URL(fileURLWithPath: path))
        return try normalized(ImmutableFile(path: path, key: TestKeys.usual).group)
    }

    private static func normalized(_ group: SharedStore.Group) throws -> ExactJSON {
        try ExactJSON(parsing: JSONExporter.text(group))
    }
}

private final class Flag: @unchecked Sendable {
    // Sendable: set by the block, which the opening calls, and read afterwards on the same thread.
    var value = false
}

/// What a recorded migration block does.
private struct BlockStep: Sendable {
    let parts: [ExactJSON]
    init(_ step: ExactJSON) {
        let fields = ["class", "old", "new", "property", "from", "to", "first", "value", "values"]
        parts = step.elements.isEmpty ? [step["op"] ?? .null] + fields.compactMap { step[$0] } : step.elements
    }

    private func text(_ index: Int) -> String { parts[index].string ?? "" }

    func run(_ migration: Migration) {
        switch text(0) {
        case "rename": migration.renameProperty(onType: text(1), from: text(2), to: text(3))
        case "copy": migration.enumerateObjects(ofType: text(1)) { old, new in new?[text(3)] = old?[text(2)] }
        case "toString": migration.enumerateObjects(ofType: text(1)) { old, new in new?[text(3)] = old?[text(2)].map { "\($0)" } }
        case "number":
            var number = Int(parts[3].integer ?? 0)
            migration.enumerateObjects(ofType: text(1)) { _, new in
                new?[text(2)] = number
                number += 1
            }
        case "set": migration.enumerateObjects(ofType: text(1)) { _, new in new?[text(2)] = SchemaText.value(parts[3], [:]) }
        case "deleteData": migration.deleteData(forType: text(1))
        case "deleteFirst":
            var isFirst = true
            migration.enumerateObjects(ofType: text(1)) { _, new in
                if isFirst, let new { migration.delete(new) }
                isFirst = false
            }
        case "create": migration.create(text(1), value: SchemaText.dictionary(parts[2], [:]))
        default: XCTFail("unknown step \(text(0))")
        }
    }
}

/// The notation of the fixtures for classes and values.
private enum SchemaText {
    static func schema(_ classes: ExactJSON) -> Schema {
        Schema(
            classes.members.map { type in
                let isEmbedded = type.value["_embedded"] == .bool(true)
                let properties = type.value.members.filter { !$0.name.hasPrefix("_") }.compactMap {
                    property($0.name, $0.value.string ?? "")
                }
                return ObjectSchema(
                    className: type.name, objectClass: DynamicObject.self, isEmbedded: isEmbedded, properties: properties,
                    primaryKey: properties.first { $0.isPrimaryKey }?.name)
            })
    }

    private static func property(_ name: String, _ words: String) -> Property? {
        let parts = words.split(separator: " ").map(String.init)
        var text = parts[0]
        if text.hasPrefix("backlinks<") { return nil }
        var collection: _PropertyShape.Collection?
        for (prefix, kind) in [("list<", _PropertyShape.Collection.list), ("set<", .set), ("dict<", .map)]
        where text.hasPrefix(prefix) {
            collection = kind
            text = String(text.dropFirst(prefix.count).dropLast())
        }
        let isOptional = text.hasSuffix("?")
        if isOptional { text = String(text.dropLast()) }
        let types: [String: PropertyType] = [
            "int": .int, "bool": .bool, "string": .string, "data": .data, "date": .date, "float": .float, "double": .double,
            "objectId": .objectId,
            "decimal128": .decimal128, "uuid": .UUID, "mixed": .any,
        ]
        let type = types[text] ?? .object
        var property = Property(
            name: name, type: type, collection: collection, isOptional: isOptional,
            isIndexed: parts.contains("indexed") || parts.contains("primary"),
            isPrimaryKey: parts.contains("primary"), objectClassName: type == .object ? text : nil)
        if type == .any || type == .object { property.isOptional = property.isNullableColumn }
        if let alias = parts.first(where: { $0.hasPrefix("public=") }) {
            property.columnName = name
            property.name = String(alias.dropFirst("public=".count))
        }
        return property
    }

    static func dictionary(_ value: ExactJSON, _ labels: [String: ObjectBase]) -> [String: Any] {
        var result: [String: Any] = [:]
        for member in value.members { result[member.name] = self.value(member.value, labels) ?? NSNull() }
        return result
    }

    static func value(_ value: ExactJSON, _ labels: [String: ObjectBase]) -> Any? {
        switch value {
        case .null: return nil
        case .bool(let v): return v
        case .integer(let v): return Int(v)
        case .number(let v): return Double(v)
        case .string(let v): return v
        case .array(let v): return v.map { self.value($0, labels) }
        case .object:
            if let label = value["$ref"]?.string { return labels[label] }
            if let date = value["$date"]?.elements {
                return Date(timeIntervalSince1970: Double(date[0].integer ?? 0) + Double(date[1].integer ?? 0) / 1e9)
            }
            if let entries = value["$dict"]?.elements {
                var result: [String: Any?] = [:]
                for entry in entries {
                    result.updateValue(self.value(entry.elements[1], labels), forKey: entry.elements[0].string ?? "")
                }
                return result
            }
            if let embedded = value["$embedded"] { return dictionary(embedded, labels) }
            return nil
        }
    }
}
