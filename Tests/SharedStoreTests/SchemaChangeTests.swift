import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Every recorded case of a changed schema: what comes out of it, what it does to the file, which differences are found.
final class SchemaChangeTests: XCTestCase {
    private static func options(_ access: StoreOptions.Access = .readWrite) -> StoreOptions {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = TestKeys.usual
        options.access = access
        options.onWarning = { XCTFail($0) }
        return options
    }

    /// Cases that only an object layer can meet: their schemas say what no file holds.
    private static let notInFiles: Set<String> = ["two primary keys", "backlinks whose origin is missing", "public name twice"]
    /// Where the original leaves another file than it shows: there, the schema of the file that is expected of us.
    private static let deviations = [
        // The original removes the index after it has added the other one, and keeps the general one after all.
        "index becomes full-text: raised version, no block": #"{"A":{"x":"int","s":"string fulltext"}}"#
    ]
    /// The original has no answer to these: what is expected of us.
    private static let answers = [
        "set elements become optional: raised version, no block": #"{"A":[{"_key":0,"l":["p","q"]}]}"#,
        "dictionary values become optional: raised version, no block": #"{"A":[{"_key":0,"l":{"$dict":[["p",1]]}}]}"#,
    ]

    static func cases() throws -> [SchemaChangeCase] {
        guard let shared = Fixtures.shared else {
            throw XCTSkip(
                "the folder shared/fixtures with the recorded schema changes is not beside the package; nothing was tested")
        }
        let text = try Data(contentsOf: URL(fileURLWithPath: shared + "/schema-changes.json"))
        return try XCTUnwrap(ExactJSON(parsing: text)["cases"]).elements.map { try SchemaChangeCase($0) }
    }

    func testEveryRecordedCaseEndsAsRecorded() throws {
        let cases = try Self.cases()
        XCTAssertGreaterThanOrEqual(cases.count, 160)
        var left: Set<String> = []
        for item in cases {
            do { try run(item) } catch is SchemaChangeCase.NotInFiles { left.insert(item.name) } catch {
                XCTFail("\(item.name): \(error)")
            }
        }
        XCTAssertEqual(left, Self.notInFiles)
    }

    private func run(_ item: SchemaChangeCase) throws {
        guard let wanted = try item.schema("new") else { return XCTFail(item.name) }
        let scratch = ScratchDirectory("schema")
        let path = scratch.file("a.realm")
        if let old = try item.schema("old") {
            let store = try Store.open(path, Self.options())
            XCTAssertEqual(try SchemaChanger.open(store, old, version: item.oldVersion), .created, item.name)
            try store.write { try item.makeData($0.editor) }
            let reader = try store.beginRead()
            let file = try reader.group.schema()
            let found = SchemaDifference.between(file: file, wanted: wanted).map {
                SchemaChangeCase.describe($0, file: file, wanted: wanted)
            }
            if let expected = item.expect["differences"] { XCTAssertNil(expected.firstDifference(.array(found)), item.name) }
            reader.end()
            try store.close()
        }
        let before = FileManager.default.contents(atPath: path)
        var calls = 0
        var error: (any Error)?
        var outcome = ""
        var versionSeen: Int64?
        do {
            let access: StoreOptions.Access =
                item.mode == .readOnly ? .immutable : item.mode == .liveReadOnly ? .readOnly : .readWrite
            (outcome, versionSeen) = try open(item, wanted, path, access, item.block { calls += 1 })
        } catch let other { error = other }

        let expected = item.expect
        if Self.answers[item.name] != nil {
            XCTAssertEqual(outcome, "changed automatically", "\(item.name): \(error.map { "\($0)" } ?? "")")
        } else if let word = expected["error"]?.string {
            let found = error.map { SchemaChangeCase.describe($0) }
            XCTAssertEqual(found, word, item.name)
        } else {
            XCTAssertNil(error, item.name)
            XCTAssertEqual(outcome, expected["outcome"]?.string, item.name)
            XCTAssertEqual(versionSeen, expected["versionSeen"]?.integer, item.name)
        }
        XCTAssertEqual(calls, expected["blockCalled"] == .bool(true) ? 1 : 0, item.name)
        if expected["noFile"] == .bool(true) {
            XCTAssertFalse(FileManager.default.fileExists(atPath: path), item.name)
            return
        }
        if expected["fileUnchanged"] == .bool(true) {
            XCTAssertEqual(before, FileManager.default.contents(atPath: path), item.name)
        }
        try checkFile(item, path)
    }

    private func open(
        _ item: SchemaChangeCase, _ wanted: Schema, _ path: String, _ access: StoreOptions.Access,
        _ block: ((MigrationContext) throws -> Void)?
    ) throws -> (String, Int64) {
        var store = try Store.open(path, Self.options(access))
        defer { try? store.close(force: true) }
        let repairs = item.json["repairEmbedded"] == .bool(true)
        func change() throws -> SchemaChanger.Outcome {
            try SchemaChanger.open(
                store, wanted, version: item.version, mode: item.mode, repairsEmbedded: repairs, migration: block)
        }
        var outcome =
            switch try change() {
            case .unchanged: "unchanged"
            case .created: "file created"
            case .changed: "changed automatically"
            case .migrated: "block called"
            case .needsNewFile: "file deleted and made anew"
            }
        if outcome == "file deleted and made anew" {
            try store.close()
            let wasDeleted = try StoreFiles.delete(path)
            XCTAssertTrue(wasDeleted, item.name)
            store = try Store.open(path, Self.options(access))
            let second = try change()
            if second != .created { outcome = "\(second) after deletion" }
        }
        let reader = try store.beginRead()
        defer { reader.end() }
        return (outcome, try reader.group.schemaVersion())
    }

    private func checkFile(_ item: SchemaChangeCase, _ path: String) throws {
        let file = try ImmutableFile(path: path, key: TestKeys.usual)
        let report = try Verifier.verify(file)
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(item.name): \(report.findings.prefix(4).map(\.description))")
        let export = try ExactJSON(parsing: JSONExporter.text(file.group))
        let objects = ExactJSON.object(export["classes"]?.members.map { .init($0.name, $0.value["objects"] ?? .null) } ?? [])
        if let answer = Self.answers[item.name] {
            XCTAssertNil(try ExactJSON(parsing: answer).firstDifference(objects), item.name)
        }
        guard let after = item.expect["after"] else { return }
        XCTAssertEqual(export["schemaVersion"], after["schemaVersion"], item.name)
        let schema = try Self.deviations[item.name].map { try ExactJSON(parsing: $0) } ?? after["schema"]
        // Classes of the recorded schema stand in any order.
        func sorted(_ json: ExactJSON?) -> ExactJSON { .object(json?.members.sorted { $0.name < $1.name } ?? []) }
        XCTAssertNil(try sorted(schema).firstDifference(SchemaChangeCase.describe(file.group.schema())), item.name)
        XCTAssertNil(sorted(after["objects"]).firstDifference(objects), item.name)
    }

    // MARK: Beside the recorded cases

    private func thing(_ properties: [PropertySchema], primaryKey: String? = nil, kind: TableKind = .topLevel) -> Schema {
        Schema(version: -1, classes: [ObjectSchema(name: "Thing", kind: kind, primaryKey: primaryKey, properties: properties)])
    }

    func testAllProblemsAreNamedAtOnce() throws {
        let store = try Store.inMemory()
        let wanted = Schema(
            version: -1,
            classes: [
                ObjectSchema(
                    name: "A", kind: .topLevel, primaryKey: "d",
                    properties: [
                        PropertySchema(name: "d", type: .double),
                        PropertySchema(name: "b", type: .link, isOptional: true, objectType: "B"),
                        PropertySchema(name: "b", type: .binary, isIndexed: true),
                    ]),
                ObjectSchema(name: "E", kind: .embedded, primaryKey: "i", properties: [PropertySchema(name: "i", type: .int)]),
            ])
        XCTAssertThrowsError(try SchemaChanger.open(store, wanted, version: 0)) {
            XCTAssertEqual(
                $0 as? SchemaError,
                .invalidSchema([
                    .unknownLinkTarget(class: "A", property: "b", target: "B"), .propertyDeclaredTwice(class: "A", property: "b"),
                    .notIndexable(class: "A", property: "b"), .badPrimaryKeyType(class: "A", property: "d"),
                    .embeddedWithPrimaryKey(class: "E", property: "i"),
                ]))
        }
        _ = try SchemaChanger.open(
            store, thing([PropertySchema(name: "a", type: .int), PropertySchema(name: "b", type: .int)]), version: 0)
        let other = thing([PropertySchema(name: "a", type: .string), PropertySchema(name: "c", type: .int)])
        XCTAssertThrowsError(try SchemaChanger.open(store, other, version: 0)) { error in
            guard case SchemaError.migrationRequired(let differences)? = error as? SchemaError else { return XCTFail("\(error)") }
            XCTAssertEqual(differences.count, 3)
            let text = "\(error)"
            XCTAssertTrue(
                text.contains("'Thing.a' has been changed from 'int' to 'string'") && text.contains("'Thing.b' has been removed")
                    && text.contains("'Thing.c' has been added"), text)
        }
    }

    func testAPropertyIsRenamedByWayOfNamesThatNobodyHas() throws {
        func int(_ name: String) -> PropertySchema { PropertySchema(name: name, type: .int) }
        func rename(_ steps: [(String, String)], to wanted: Schema) throws -> Int64? {
            let store = try Store.inMemory()
            _ = try SchemaChanger.open(store, thing([int("a"), int("b")]), version: 0)
            try store.write {
                let table = try $0.editor.editor(named: "class_Thing")
                let key = try table.createObject()
                try table.set("a", of: key, to: .int(5))
                try table.set("b", of: key, to: .int(6))
            }
            _ = try SchemaChanger.open(store, wanted, version: 1) { context in
                for (from, to) in steps { try context.renameProperty("Thing", from: from, to: to) }
            }
            let reader = try store.beginRead()
            defer { reader.end() }
            let table = try XCTUnwrap(reader.group.table(ofClass: "Thing"))
            guard let row = try table.object(at: 0), case .int(let value) = try row.value(XCTUnwrap(table.column(named: "c")))
            else {
                return nil
            }
            return value
        }
        let optional = PropertySchema(name: "c", type: .int, isOptional: true, isIndexed: true)
        XCTAssertEqual(try rename([("a", "x"), ("x", "c")], to: thing([int("c"), int("b")])), 5)
        XCTAssertEqual(try rename([("a", "x"), ("x", "y"), ("y", "c")], to: thing([optional])), 5)
        XCTAssertEqual(try rename([("a", "x"), ("b", "c")], to: thing([int("c"), int("x")])), 6)
        for (steps, wanted) in [
            // Left under a name that nobody has; the old name is wanted; the type is another one; a name that is taken.
            ([("a", "x"), ("x", "y")], thing([int("c")])), ([("a", "x"), ("x", "c")], thing([int("a"), int("c")])),
            ([("a", "x"), ("x", "c")], thing([PropertySchema(name: "c", type: .string)])),
            ([("a", "b"), ("b", "c")], thing([int("c")])),
            ([("x", "c")], thing([int("c")])), ([("a", "x"), ("a", "c")], thing([int("c")])),
        ] {
            XCTAssertThrowsError(try rename(steps, to: wanted), "\(steps)") {
                guard case SchemaError.renameRefused? = $0 as? SchemaError else { return XCTFail("\(steps): \($0)") }
            }
        }
    }

    func testAFullTextIndexThatBecomesAGeneralOneIsTwoDifferences() throws {
        let store = try Store.inMemory()
        let fullText = PropertySchema(name: "s", type: .string, isFullTextIndexed: true)
        let indexed = PropertySchema(name: "s", type: .string, isIndexed: true)
        _ = try SchemaChanger.open(store, thing([fullText]), version: 0)
        XCTAssertEqual(
            SchemaDifference.between(file: thing([fullText]), wanted: thing([indexed])),
            [.indexAdded(class: "Thing", property: "s"), .indexRemoved(class: "Thing", property: "s")])
        XCTAssertEqual(try SchemaChanger.open(store, thing([indexed]), version: 0), .changed)
        let reader = try store.beginRead()
        defer { reader.end() }
        XCTAssertEqual(try reader.group.schema().objectSchema(named: "Thing")?.property(named: "s"), indexed)
    }

    /// Whichever of the objects comes first: the one that holds the link, and would be deleted, or the one that it leads to.
    func testAClassToWhichMixedValuesLinkDoesNotBecomeEmbedded() throws {
        let mixed = PropertySchema(name: "m", type: .mixed, isOptional: true)
        for holder in 0...1 {
            let store = try Store.inMemory()
            _ = try SchemaChanger.open(store, thing([mixed]), version: 0)
            try store.write {
                let table = try $0.editor.editor(named: "class_Thing")
                let keys = [try table.createObject(), try table.createObject()]
                try table.set("m", of: keys[holder], to: .link(table.table.key, keys[1 - holder]))
            }
            XCTAssertThrowsError(
                try SchemaChanger.open(store, thing([mixed], kind: .embedded), version: 1, repairsEmbedded: true)
            ) {
                guard case SchemaError.notOwnedOnce? = $0 as? SchemaError else { return XCTFail("\($0)") }
            }
            let reader = try store.beginRead()
            defer { reader.end() }
            XCTAssertEqual(try reader.group.table(ofClass: "Thing")?.objectCount, 2)
        }
    }

    func testEmbeddedClassesThatCouldHoldThemselvesAreRefused() throws {
        func embedded(_ name: String, _ target: String, _ collection: CollectionKind?) -> ObjectSchema {
            ObjectSchema(
                name: name, kind: .embedded, primaryKey: nil,
                properties: [
                    PropertySchema(
                        name: "p", type: .link, collection: collection, isOptional: collection != .list, objectType: target)
                ])
        }
        let owner = ObjectSchema(
            name: "A", kind: .topLevel, primaryKey: nil,
            properties: [PropertySchema(name: "e", type: .link, isOptional: true, objectType: "E")])
        for collection in [nil, CollectionKind.list, .dictionary] {
            XCTAssertEqual(
                Schema(version: -1, classes: [owner, embedded("E", "E", collection)]).problems(), [.embeddedCycle(["E.p"])])
            XCTAssertEqual(
                Schema(version: -1, classes: [owner, embedded("E", "F", collection), embedded("F", "E", nil)]).problems(),
                [.embeddedCycle(["E.p", "F.p"]), .embeddedCycle(["F.p", "E.p"])])
        }
        // By way of an object that stands for itself there is an end.
        XCTAssertEqual(Schema(version: -1, classes: [owner, embedded("E", "A", .list)]).problems(), [])
    }

    func testAPrimaryKeyThatLosesItsRoleCanKeepAnIndex() throws {
        let store = try Store.inMemory()
        let plain = PropertySchema(name: "id", type: .int), indexed = PropertySchema(name: "id", type: .int, isIndexed: true)
        _ = try SchemaChanger.open(store, thing([indexed], primaryKey: "id"), version: 0)
        try store.write { _ = try $0.editor.editor(named: "class_Thing").createObject(primaryKey: .int(4)) }
        for (version, schema) in [
            (1, thing([indexed])), (2, thing([indexed], primaryKey: "id")), (3, thing([plain])),
            (4, thing([plain], primaryKey: "id")),
        ] as [(UInt64, Schema)] {
            _ = try SchemaChanger.open(store, schema, version: version) { _ in }
            let reader = try store.beginRead()
            XCTAssertEqual(SchemaDifference.between(file: try reader.group.schema(), wanted: schema), [], "version \(version)")
            XCTAssertEqual(try reader.group.schemaVersion(), Int64(version))
            reader.end()
        }
    }

    func testAKeyThatBecomesRequiredIsRefusedWhereItsValuesBecomeEqual() throws {
        let store = try Store.inMemory()
        _ = try SchemaChanger.open(
            store, thing([PropertySchema(name: "id", type: .int, isOptional: true)], primaryKey: "id"), version: 0)
        try store.write {
            for i in 1...2 { _ = try $0.editor.editor(named: "class_Thing").createObject(primaryKey: .int(Int64(i))) }
        }
        let required = thing([PropertySchema(name: "id", type: .int)], primaryKey: "id")
        XCTAssertThrowsError(try SchemaChanger.open(store, required, version: 1)) {
            XCTAssertEqual($0 as? SchemaError, .duplicatePrimaryKey(class: "Thing", property: "id", value: "int(0)"))
        }
        XCTAssertEqual(try store.newestVersion(), 3)
        let outcome = try SchemaChanger.open(store, required, version: 1) { context in
            let column = try XCTUnwrap(context.old.table(ofClass: "Thing")?.column(named: "id"))
            try context.enumerateObjects("Thing") { old, new in
                guard let old, let new else { return XCTFail("an object of one schema only") }
                try context.table("Thing")?.set("id", of: new, to: old.value(column))
            }
        }
        XCTAssertEqual(outcome, .migrated)
    }

    func testKeysAreComparedByTheirBytesAndNotAsSwiftComparesTexts() throws {
        let store = try Store.inMemory()
        let name = PropertySchema(name: "name", type: .string)
        _ = try SchemaChanger.open(store, thing([name]), version: 0)
        // Equal for Swift, one letter composed and one of two parts.
        let texts = ["\u{E9}", "e\u{301}"]
        XCTAssertEqual(texts[0], texts[1])
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Thing")
            for text in texts { try table.set("name", of: table.createObject(), to: .string(text)) }
        }
        XCTAssertEqual(try SchemaChanger.open(store, thing([name], primaryKey: "name"), version: 1), .changed)
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Thing")
            for (i, text) in texts.enumerated() {
                XCTAssertEqual(try table.table.find(primaryKey: .string(text))?.key, ObjectKey(Int64(i)))
            }
        }
    }

    /// Whatever becomes of the property that held them, and though a block has been.
    func testAClassThatIsEmbeddedNoMoreKeepsItsObjects() throws {
        let name = PropertySchema(name: "name", type: .string)
        func schema(_ property: PropertySchema?, _ kind: TableKind) -> Schema {
            Schema(
                version: -1,
                classes: [
                    ObjectSchema(
                        name: "Owner", kind: .topLevel, primaryKey: nil, properties: [name] + [property].compactMap { $0 }),
                    ObjectSchema(name: "Part", kind: kind, primaryKey: nil, properties: [name]),
                ])
        }
        func links(_ collection: CollectionKind?) -> PropertySchema {
            PropertySchema(name: "part", type: .link, collection: collection, isOptional: collection != .list, objectType: "Part")
        }
        for collection in [nil, CollectionKind.list, .dictionary] {
            for wanted in [
                nil, PropertySchema(name: "part", type: .int), links(collection == .list ? nil : .list), links(collection),
            ] {
                for hasBlock in [false, true] {
                    let place = "\(collection.map { "\($0)" } ?? "link") to \(wanted?.typeName ?? "nothing"), \(hasBlock)"
                    let scratch = ScratchDirectory(inMemory: true)
                    let store = try Store.open(scratch.file("a.realm"), Self.options())
                    _ = try SchemaChanger.open(store, schema(links(collection), .embedded), version: 0)
                    try store.write { transaction in
                        let owners = try transaction.editor.editor(named: "class_Owner")
                        let parts = try transaction.editor.editor(named: "class_Part")
                        let owner = try owners.createObject(), column = try owners.column(named: "part")
                        let part: ObjectKey =
                            switch collection {
                            case .list: try owners.listInsertEmbedded(owners.identity(column, of: owner), 0)
                            case .dictionary: try owners.dictionarySetEmbedded(owners.identity(column, of: owner), "key")
                            default: try owners.setEmbedded(column, of: owner)
                            }
                        try parts.set("name", of: part, to: .string("wheel"))
                    }
                    let block: ((MigrationContext) throws -> Void)? = hasBlock ? { _ in } : nil
                    let outcome = try SchemaChanger.open(store, schema(wanted, .topLevel), version: 1, migration: block)
                    XCTAssertEqual(outcome, hasBlock ? .migrated : .changed, place)
                    let reader = try store.beginRead()
                    let parts = try XCTUnwrap(reader.group.table(ofClass: "Part"))
                    XCTAssertEqual(parts.kind, .topLevel, place)
                    XCTAssertEqual(parts.objectCount, 1, place)
                    XCTAssertEqual(
                        try parts.object(at: 0)?.value(XCTUnwrap(parts.column(named: "name"))), .string("wheel"), place)
                    reader.end()
                    let image = try ImmutableFile(path: scratch.file("a.realm"), key: TestKeys.usual)
                    XCTAssertTrue(try Verifier.verify(image).findings.isEmpty, place)
                }
            }
        }
    }

    func testASchemaThatOnlyGrowsKeepsWhatOthersHave() throws {
        let store = try Store.inMemory()
        let a = PropertySchema(name: "a", type: .int), b = PropertySchema(name: "b", type: .int)
        _ = try SchemaChanger.open(store, thing([a]), version: 5)
        var wanted = thing([b])
        wanted.classes.append(ObjectSchema(name: "Loose", kind: .embedded, primaryKey: nil, properties: [a]))
        XCTAssertThrowsError(try SchemaChanger.open(store, wanted, version: 2, mode: .additiveExplicit)) {
            XCTAssertEqual($0 as? SchemaError, .invalidSchema([.unreachableEmbedded("Loose")]))
        }
        XCTAssertEqual(try SchemaChanger.open(store, wanted, version: 2, mode: .additiveDiscovered), .changed)
        XCTAssertEqual(try SchemaChanger.open(store, wanted, version: 2, mode: .additiveDiscovered), .unchanged)
        let reader = try store.beginRead()
        XCTAssertEqual(try reader.group.schema(), Schema(version: 2, classes: thing([a, b]).classes))
        reader.end()
        XCTAssertThrowsError(
            try SchemaChanger.open(
                store, thing([PropertySchema(name: "a", type: .string)]), version: 2, mode: .additiveDiscovered)
        ) {
            guard case SchemaError.notAdditive(let faults)? = $0 as? SchemaError else { return XCTFail("\($0)") }
            XCTAssertEqual(faults.count, 1)
        }
    }

    func testAManualMigrationMustLeaveExactlyTheWantedSchema() throws {
        let store = try Store.inMemory()
        let a = PropertySchema(name: "a", type: .int), b = PropertySchema(name: "b", type: .int)
        _ = try SchemaChanger.open(store, thing([a]), version: 0)
        XCTAssertThrowsError(try SchemaChanger.open(store, thing([a, b]), version: 1, mode: .manual) { _ in }) {
            XCTAssertEqual($0 as? SchemaError, .incompleteMigration([.propertyAdded(class: "Thing", b)]))
        }
        let outcome = try SchemaChanger.open(store, thing([a, b]), version: 1, mode: .manual) {
            try $0.table("Thing")?.addColumn("b", .int)
        }
        XCTAssertEqual(outcome, .migrated)
    }

    func testAnotherParticipantStaysOnTheOldClassesUntilItRefreshes() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), Self.options())
        let other = try Store.open(scratch.file("a.realm"), Self.options())
        let old = thing([PropertySchema(name: "a", type: .int)]), new = thing([PropertySchema(name: "a", type: .string)])
        _ = try SchemaChanger.open(store, old, version: 0)
        let reader = try other.beginRead()
        XCTAssertEqual(try SchemaChanger.open(store, new, version: 1), .changed)
        XCTAssertEqual(try reader.group.schema(), Schema(version: 0, classes: old.classes))
        try reader.refresh()
        XCTAssertEqual(try reader.group.schema(), Schema(version: 1, classes: new.classes))
        reader.end()
        XCTAssertEqual(try SchemaChanger.open(other, new, version: 1), .unchanged)
    }
}
