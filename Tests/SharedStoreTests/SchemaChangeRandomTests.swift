import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Random schemas, one after the other on the same file with random data: the file is sound after each, has exactly the wanted
/// classes, and keeps every value that a change does not concern. And the chain of an application's schemas, from each of its
/// versions.
final class SchemaChangeRandomTests: XCTestCase {
    private static func options() -> StoreOptions {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = TestKeys.usual
        options.onWarning = { XCTFail($0) }
        return options
    }

    // MARK: Random schemas

    private let classNames = ["A", "B", "C", "E"]

    private func randomProperty(_ name: String, _ kinds: [String: TableKind], _ random: inout SplitMix) -> PropertySchema {
        let types: [ColumnType] = [
            .int, .bool, .string, .binary, .timestamp, .float, .double, .decimal, .objectId, .uuid, .mixed, .link, .link,
        ]
        var property = PropertySchema(name: name, type: types.randomElement(using: &random) ?? .int)
        property.isOptional = Bool.random(using: &random)
        if Int.random(in: 0..<5, using: &random) < 2 {
            property.collection = [.list, .set, .dictionary].randomElement(using: &random)
        }
        if property.type == .link {
            let target = kinds.keys.sorted().randomElement(using: &random) ?? "A"
            property.objectType = target
            if kinds[target] == .embedded && property.collection == .set { property.collection = .list }
        }
        property.isOptional = property.type == .link && property.collection == nil || property.columnIsNullable
        if property.collection == nil, [.int, .bool, .string, .timestamp, .objectId, .uuid, .mixed].contains(property.type) {
            if property.type == .string && Int.random(in: 0..<4, using: &random) == 0 {
                property.isFullTextIndexed = true
            } else {
                property.isIndexed = Int.random(in: 0..<3, using: &random) == 0
            }
        }
        return property
    }

    /// The schema after some changes to it.
    private func changed(_ schema: Schema, _ random: inout SplitMix) -> Schema {
        var kinds: [String: TableKind] = ["A": .topLevel]
        for name in classNames.dropFirst() where Int.random(in: 0..<8, using: &random) > 0 {
            let now = schema.objectSchema(named: name)?.kind ?? .topLevel
            let other: TableKind = now == .embedded ? .topLevel : .embedded
            kinds[name] = name == "E" && Int.random(in: 0..<3, using: &random) == 0 ? other : now
        }
        return Schema(
            version: -1,
            classes: kinds.keys.sorted().map { name in
                let old = schema.objectSchema(named: name)
                var type = ObjectSchema(name: name, kind: kinds[name] ?? .topLevel, primaryKey: nil, properties: [])
                let hasKey = Int.random(in: 0..<5, using: &random) == 0 ? old?.primaryKey == nil : old?.primaryKey != nil
                if hasKey && type.kind == .topLevel {
                    type.primaryKey = "id"
                    let key = old?.property(named: "id")
                    let isString = Int.random(in: 0..<6, using: &random) == 0
                    type.properties.append(
                        PropertySchema(
                            name: "id", type: isString ? .string : key?.type ?? .int,
                            isOptional: Int.random(in: 0..<6, using: &random) == 0, isIndexed: true))
                }
                for letter in ["p", "q", "r", "s", "t", "u"] {
                    let present = old?.property(named: letter)
                    switch (present, Int.random(in: 0..<10, using: &random)) {
                    case (let property?, 0..<7)
                    where property.objectType.map({ kinds[$0] != nil && (kinds[$0] != .embedded || property.collection != .set) })
                        ?? true:
                        type.properties.append(property)
                    case (var property?, 7) where property.type != .link && property.type != .mixed:
                        property.isOptional.toggle()
                        type.properties.append(property)
                    case (_, 3...8): type.properties.append(randomProperty(letter, kinds, &random))
                    default: break
                    }
                }
                // "E" is the only one that may be embedded, and must then not hold itself.
                if type.kind == .embedded { type.properties.removeAll { $0.objectType == name } }
                if type.properties.isEmpty { type.properties.append(PropertySchema(name: "p", type: .int)) }
                return type
            })
    }

    // MARK: Random data

    private func value(_ column: Column, _ editor: GroupEditor, _ random: inout SplitMix) throws -> Mixed {
        if column.isNullable && Int.random(in: 0..<5, using: &random) == 0 { return .null }
        let n = Int64.random(in: -30...300, using: &random)
        let bits = UInt64.random(in: 0...9, using: &random)
        switch column.type {
        case .int: return .int(n)
        case .bool: return .bool(n > 0)
        case .string:
            return .string(["", "the quick fox", "fox and hound", String(repeating: "long ", count: 20), "\(n)"][Int(bits % 5)])
        case .binary: return .binary(Array(repeating: 7, count: Int(bits) * 9))
        case .timestamp: return .timestamp(Timestamp(seconds: n, nanoseconds: n < 0 ? -5 : 5))
        case .float: return .float(Float(n) / 4)
        case .double: return .double(Double(n) / 8)
        case .decimal: return .decimal(Decimal128Bits(n))
        case .objectId: return .objectId(ObjectIdValue(high: bits, low: 3))
        case .uuid: return .uuid(UUIDValue(high: bits, low: 9))
        case .mixed: return try [.int(n), .string("m\(n)"), .null, .double(0.5), link("A", editor, &random)][Int(bits % 5)]
        case .link:
            guard let target = try editor.group.table(column.oppositeTable)?.className else { return .null }
            return try link(target, editor, &random)
        case .backlink, .typedLink: return .null
        }
    }

    private func link(_ className: String, _ editor: GroupEditor, _ random: inout SplitMix) throws -> Mixed {
        guard let table = try editor.group.table(ofClass: className), table.objectCount > 0,
            let row = try table.object(at: Int.random(in: 0..<table.objectCount, using: &random))
        else { return .null }
        return .link(table.key, row.key)
    }

    private func fill(_ table: TableEditor, _ key: ObjectKey, _ editor: GroupEditor, _ random: inout SplitMix, depth: Int = 0)
        throws
    {
        for column in table.table.publicColumns where table.table.primaryKeyColumn != column {
            let identity = table.identity(column, of: key)
            let embedded = try column.type == .link ? editor.editor(column.oppositeTable) : nil
            let isEmbedded = embedded?.table.kind == .embedded
            if isEmbedded && depth > 1 { continue }
            for i in 0..<(column.collection == nil ? 1 : Int.random(in: 0..<4, using: &random)) {
                if isEmbedded, let embedded {
                    let child =
                        switch column.collection {
                        case nil: try table.setEmbedded(column, of: key)
                        case .dictionary: try table.dictionarySetEmbedded(identity, "k\(i)")
                        default: try table.listInsertEmbedded(identity, i)
                        }
                    try fill(embedded, child, editor, &random, depth: depth + 1)
                    continue
                }
                let value = try value(column, editor, &random)
                switch column.collection {
                case nil: try table.set(column, of: key, to: value)
                case .list:
                    if value == .null && !column.isNullable { continue }
                    try table.listInsert(identity, table.count(identity), value)
                case .set:
                    if value == .null && !column.isNullable { continue }
                    _ = try table.setInsert(identity, value)
                case .dictionary: _ = try table.dictionarySet(identity, "k\(i)", value)
                }
            }
        }
    }

    private func populate(_ editor: GroupEditor, _ wanted: Schema, _ serial: inout Int64, _ random: inout SplitMix) throws {
        for type in wanted.classes where type.kind == .topLevel {
            let table = try editor.editor(named: "class_" + type.name)
            for _ in 0..<Int.random(in: 0..<6, using: &random) {
                serial += 1
                let key: ObjectKey
                if let primary = table.table.primaryKeyColumn {
                    key = try table.createObject(primaryKey: primary.type == .int ? .int(serial) : .string("key \(serial)")).key
                } else {
                    key = try table.createObject()
                }
                try fill(table, key, editor, &random)
            }
        }
    }

    // MARK: The test

    func testRandomSchemaChangesLeaveASoundFileWithExactlyTheWantedClasses() throws {
        var ends: [SchemaChanger.Outcome: Int] = [:], refusals = 0
        for seed in 1...UInt64(7) {
            let scratch = ScratchDirectory("schemas")
            let path = scratch.file("a.realm")
            let store = try Store.open(path, Self.options())
            var random = SplitMix(seed: seed), serial: Int64 = 1000
            for round in 0..<9 as Range<UInt64> {
                let reader = try store.beginRead()
                let file = try reader.group.schema()
                let before = try JSONExporter.text(reader.group)
                reader.end()
                let wanted = changed(file, &random)
                let hasBlock = Bool.random(using: &random)
                let place = "seed \(seed), round \(round)"
                do {
                    let numbered = hasBlock && round > 0
                    let outcome = try SchemaChanger.open(
                        store, wanted, version: round, repairsEmbedded: true,
                        migration: !hasBlock
                            ? nil
                            : { context in
                                XCTAssertEqual(try JSONExporter.text(context.old), before, place)
                                try self.migrate(context, &serial, &random)
                            })
                    ends[outcome, default: 0] += 1
                    try check(store, path, ExactJSON(parsing: before), file, wanted, numbered: numbered, place)
                } catch let error as SchemaError {
                    // Without a block a new primary key has equal values; a dropped class may hold sets of what becomes embedded.
                    switch error {
                    case .duplicatePrimaryKey, .notOwnedOnce: refusals += 1
                    default: XCTFail("\(place): \(error)")
                    }
                    let reader = try store.beginRead()
                    XCTAssertEqual(try JSONExporter.text(reader.group), before, place)
                    reader.end()
                } catch {
                    XCTFail("\(place): \(error)")
                    break
                }
                try store.write { transaction in
                    let now = try transaction.group.schema()
                    let present = Schema(version: -1, classes: now.classes.filter { $0.properties.isEmpty == false })
                    try self.populate(transaction.editor, present, &serial, &random)
                }
            }
            try store.close()
        }
        // The sequence is worth something only if most changes were made, in all ways.
        XCTAssertGreaterThan(ends[.migrated, default: 0], 10, "\(ends)")
        XCTAssertGreaterThan(ends[.changed, default: 0], 10, "\(ends)")
        XCTAssertGreaterThan(refusals, 0)
    }

    /// Numbers the primary keys, drops a class that is not wanted, renames a property where one fits.
    private func migrate(_ context: MigrationContext, _ serial: inout Int64, _ random: inout SplitMix) throws {
        for type in context.newSchema.classes {
            guard let old = context.oldSchema.objectSchema(named: type.name) else { continue }
            let new = type.properties.first { old.property(named: $0.name) == nil && $0.name != "id" }
            if let new,
                let source = old.properties.first(where: {
                    type.property(named: $0.name) == nil && $0.name != "id" && $0.hasSameType(as: new)
                        && (new.columnIsNullable || !$0.columnIsNullable)
                })
            {
                try context.renameProperty(type.name, from: source.name, to: new.name)
            }
            guard let id = type.primaryKey, let key = type.property(named: id) else { continue }
            try context.enumerateObjects(type.name) { _, object in
                guard let object else { return XCTFail("an object of a wanted class without its new side") }
                serial += 1
                try context.table(type.name)?.set(id, of: object, to: key.type == .int ? .int(serial) : .string("key \(serial)"))
            }
        }
        for name in classNames where context.newSchema.objectSchema(named: name) == nil && Bool.random(using: &random) {
            do { _ = try context.deleteData(name) } catch TableError.tableIsLinkedTo {}
        }
    }

    private func check(
        _ store: Store, _ path: String, _ before: ExactJSON, _ file: Schema, _ wanted: Schema, numbered: Bool, _ place: String
    ) throws {
        let reader = try store.beginRead()
        defer { reader.end() }
        XCTAssertEqual(SchemaDifference.between(file: try reader.group.schema(), wanted: wanted), [], place)
        let image = try ImmutableFile(path: path, key: TestKeys.usual)
        let report = try Verifier.verify(image)
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(place): \(report.findings.prefix(4).map(\.description))")
        let after = try ExactJSON(parsing: JSONExporter.text(reader.group))
        for type in wanted.classes where type.kind == .topLevel {
            guard let old = file.objectSchema(named: type.name), old.kind == .topLevel else { continue }
            let a = before["classes"]?[type.name]?["objects"]?.elements ?? [],
                b = after["classes"]?[type.name]?["objects"]?.elements ?? []
            XCTAssertEqual(a.map { $0["_key"] }, b.map { $0["_key"] }, place)
            for property in type.properties where property.type != .link && !(numbered && property.name == "id") {
                guard let source = old.property(named: property.name), source.hasSameType(as: property),
                    source.columnIsNullable == property.columnIsNullable || property.columnIsNullable
                else { continue }
                XCTAssertEqual(
                    a.map { $0[property.name] }, b.map { $0[property.name] }, "\(place): \(type.name).\(property.name)")
            }
        }
    }

    // MARK: An application's chain of schemas

    private final class Target: ImportTarget {
        let group: GroupEditor
        init(_ group: GroupEditor) { self.group = group }
        func checkpoint(progress: ImportProgress) {}
    }

    func testEveryVersionOfAnApplicationsFileComesToTheNewestModel() throws {
        guard let older = Fixtures.older else {
            throw XCTSkip("the folder shared/fixtures is not beside the package; nothing was tested")
        }
        let newest = Schema(
            version: -1,
            classes: [
                ObjectSchema(
                    name: "Person", kind: .topLevel, primaryKey: nil,
                    properties: [
                        PropertySchema(name: "fullName", type: .string), PropertySchema(name: "age", type: .int),
                        PropertySchema(name: "address", type: .link, isOptional: true, objectType: "Address"),
                        PropertySchema(name: "pets", type: .link, collection: .list, objectType: "Pet"),
                    ]),
                ObjectSchema(
                    name: "Pet", kind: .topLevel, primaryKey: nil,
                    properties: [
                        PropertySchema(name: "name", type: .string), PropertySchema(name: "kind", type: .int),
                    ]),
                ObjectSchema(
                    name: "Address", kind: .embedded, primaryKey: nil,
                    properties: [
                        PropertySchema(name: "street", type: .string), PropertySchema(name: "city", type: .string),
                    ]),
            ])
        for (version, isImported) in (0...5).flatMap({ [($0, true), ($0, false)] }) {
            let scratch = ScratchDirectory("chain")
            let path = scratch.file("a.realm")
            let name = older + "/migration-default-v\(version)"
            // The file itself has an older format, and is brought to the present one when it is opened.
            if !isImported { try TestKeys.copy(name + ".realm", to: path) }
            let store = try Store.open(path, Self.options())
            let json = Array(try Data(contentsOf: URL(fileURLWithPath: name + ".json")))
            if isImported {
                try store.write { transaction in
                    try json.withUnsafeBytes { try JSONImporter(text: $0, target: Target(transaction.editor)).run() }
                }
            }
            let outcome = try SchemaChanger.open(store, newest, version: 5) { try self.migrateApplication($0) }
            XCTAssertEqual(outcome, version == 5 ? .unchanged : .migrated)
            let reader = try store.beginRead()
            XCTAssertEqual(SchemaDifference.between(file: try reader.group.schema(), wanted: newest), [], "\(version)")
            let classes = try XCTUnwrap(ExactJSON(parsing: JSONExporter.text(reader.group))["classes"])
            reader.end()
            let people = classes["Person"]?["objects"]?.elements ?? [], pets = classes["Pet"]?["objects"]?.elements ?? []
            XCTAssertEqual(people.map { $0["fullName"]?.string }, ["John Doe", "Jane Doe", "John Smith"], "\(version)")
            XCTAssertEqual(people.map { $0["age"]?.integer }, [42, 43, 44], "\(version)")
            let names = people.map { person in
                (person["pets"]?.elements ?? []).map { link in
                    pets.first { $0["_key"]?.integer == link["$link"]?.elements.last?.integer }?["name"]?.string
                }
            }
            XCTAssertEqual(names, version < 2 ? [[], [], []] : [["Marley", "Lassie"], ["Toto"], []], "\(version)")
            XCTAssertEqual(pets.count, version < 2 ? 0 : version == 2 ? 3 : 4, "\(version)")
            XCTAssertEqual(
                people.first?["address"]?["$embedded"]?["street"]?.string, version < 4 ? nil : "Broadway", "\(version)")
            let file = try ImmutableFile(path: path, key: TestKeys.usual)
            let report = try Verifier.verify(file)
            // Upgraded files keep the type number of their lists of links (file-format-2 3.1), which is worth a warning.
            let findings = report.findings.map(\.description).filter { isImported || !$0.hasPrefix("warning spec.type") }
            XCTAssertTrue(report.isSound && findings.isEmpty, "\(version): \(findings.prefix(4))")
            try store.close()
        }
    }

    /// One block for all versions, step by step.
    private func migrateApplication(_ context: MigrationContext) throws {
        let before = try XCTUnwrap(context.old.table(ofClass: "Person")), people = try XCTUnwrap(context.table("Person"))
        if context.oldVersion < 1 {
            let first = try XCTUnwrap(before.column(named: "firstName")), last = try XCTUnwrap(before.column(named: "lastName"))
            try context.enumerateObjects("Person") { old, new in
                guard let old, let new else { return XCTFail("a person of one schema only") }
                try people.set("fullName", of: new, to: .string((old.string(first) ?? "") + " " + (old.string(last) ?? "")))
            }
        }
        guard context.oldVersion == 2, let dogs = before.column(named: "dogs"),
            let dogTable = try context.old.table(ofClass: "Dog"),
            let name = dogTable.column(named: "name"), let pets = try context.table("Pet")
        else { return }
        try context.enumerateObjects("Person") { old, new in
            guard let old, let new else { return XCTFail("a person of one schema only") }
            let list = people.identity(try people.column(named: "pets"), of: new)
            try old.list(dogs).forEachLink { dog in
                let pet = try context.createObject("Pet")
                try pets.set("name", of: pet, to: .string(dogTable.find(dog)?.string(name) ?? ""))
                try pets.set("kind", of: pet, to: .int(1))
                try people.listInsert(list, people.count(list), .link(pets.table.key, pet))
            }
        }
    }
}
