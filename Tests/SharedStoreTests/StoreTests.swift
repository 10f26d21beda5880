import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Whole transactions on real files, plain and encrypted: the same tests for both.
class StoreTests: XCTestCase {
    func key() throws -> EncryptionKey? { nil }

    func options(_ durability: Durability = .unsafe) throws -> StoreOptions {
        var options = StoreOptions()
        options.durability = durability
        options.encryptionKey = try key()
        options.onWarning = { XCTFail($0) }
        return options
    }

    func assertSound(_ path: String, line: UInt = #line) throws {
        let file = try ImmutableFile(path: path, key: key())
        let report = try Verifier.verify(file)
        XCTAssertTrue(
            report.isSound && report.findings.isEmpty, "\(path): \(report.findings.prefix(4).map(\.description))", line: line)
    }

    private func text(_ store: Store) throws -> [UInt8] {
        let transaction = try store.beginRead()
        defer { transaction.end() }
        return try JSONExporter.text(transaction.group)
    }

    private func peopleCount(_ store: Store) throws -> Int {
        let transaction = try store.beginRead()
        defer { transaction.end() }
        return try transaction.group.table(ofClass: "Person")!.objectCount
    }

    private func makePeople(_ store: Store) throws {
        try store.write { transaction in
            let group = transaction.editor
            let people = try group.createTable("class_Person")
            try people.addPrimaryKeyColumn("id", .int)
            try people.addColumn("name", .string)
            try people.addColumn("friends", .link, .list, target: people.table.key)
            try group.setSchemaVersion(3)
        }
    }

    func testWhatWasCommittedIsReadByOthersAndAfterReopening() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("a.realm")
        let store = try Store.open(path, options(.full))
        XCTAssertEqual(try store.newestVersion(), 1)
        try makePeople(store)
        let other = try Store.open(path, options(.full))
        let old = try other.beginRead()
        XCTAssertEqual(old.version, 2)
        for i in 0..<50 {
            let writer = i % 2 == 0 ? store : other
            try writer.write { transaction in
                let group = transaction.editor
                let people = try group.editor(named: "class_Person")
                let (key, _) = try people.createObject(primaryKey: .int(Int64(i)))
                try people.set("name", of: key, to: .string("person \(i)"))
                try people.listInsert(
                    people.identity(people.column(named: "friends"), of: key), 0, .link(people.table.key, ObjectKey(0)))
            }
        }
        XCTAssertEqual(try old.group.table(ofClass: "Person")!.objectCount, 0)
        var changes = ChangeCollector()
        XCTAssertTrue(try old.refresh { try changes.add($1) })
        let table = try old.group.table(ofClass: "Person")!
        XCTAssertEqual(table.objectCount, 50)
        XCTAssertEqual(changes.finish().tables[table.key]?.insertions.count, 50)
        XCTAssertEqual(try table.find(primaryKey: .int(17))?.string(table.column(named: "name")!), "person 17")
        XCTAssertEqual(old.version, 52)
        old.end()
        try other.close()
        try store.close()
        try assertSound(path)
        let again = try Store.open(path, options(.full))
        XCTAssertEqual(try again.newestVersion(), 52)
        XCTAssertEqual(try again.look { try $0.group.schemaVersion() }, 3)
        try again.close()
    }

    func testRolledBackAndFailedTransactionsLeaveNothing() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        try makePeople(store)
        struct Stop: Error {}
        for _ in 0..<3 {
            XCTAssertThrowsError(
                try store.write { transaction in
                    let group = transaction.editor
                    let people = try group.editor(named: "class_Person")
                    for i in 0..<1000 { _ = try people.createObject(primaryKey: .int(Int64(i))) }
                    throw Stop()
                })
        }
        let transaction = try store.beginWrite()
        let done = DispatchSemaphore(value: 0)
        Thread {
            if let second = try? store.tryBeginWrite() {
                second.rollback()
                XCTFail("two writers at once")
            }
            done.signal()
        }.start()
        done.wait()
        _ = try transaction.editor.editor(named: "class_Person").createObject(primaryKey: .int(1))
        try transaction.commitAndContinue()
        _ = try transaction.editor.editor(named: "class_Person").createObject(primaryKey: .int(2))
        transaction.rollback()
        XCTAssertEqual(try peopleCount(store), 1)
        try store.close()
        try assertSound(store.path)
    }

    func testPinnedVersionsStayAsTheyWereAndSpaceComesBack() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        try makePeople(store)
        try store.write { transaction in
            let group = transaction.editor
            let people = try group.editor(named: "class_Person")
            for i in 0..<100 { _ = try people.createObject(primaryKey: .int(Int64(i))) }
        }
        let pinned = try store.freeze()
        let expected = try JSONExporter.text(pinned.group)
        for round in 0..<600 {
            try store.write { transaction in
                let group = transaction.editor
                let people = try group.editor(named: "class_Person")
                try people.set("name", of: ObjectKey(Int64(round % 100)), to: .string(String(repeating: "x", count: round % 900)))
            }
        }
        XCTAssertEqual(try JSONExporter.text(pinned.group), expected)
        XCTAssertLessThan(try FileManager.default.attributesOfItem(atPath: store.path)[.size] as! Int, 1 << 20)
        pinned.end()
        try store.close()
        try assertSound(store.path)
    }

    func testGivenFilesGoOnBeingWritten() throws {
        guard try key() == nil else { return }
        for name in [
            "all-types", "big", "compact-copy", "fulltext", "many-versions", "migrated", "nested-mixed", "primary-keys",
            "relationships", "trees",
        ] {
            let scratch = ScratchDirectory(name)
            let path = scratch.file("\(name).realm")
            try FileManager.default.copyItem(atPath: Fixtures.core14 + "/\(name).realm", toPath: path)
            let store = try Store.open(path, options())
            let before = try text(store)
            for _ in 0..<5 {
                try store.write { transaction in
                    let group = transaction.editor
                    for table in try group.group.tables() where table.kind == .topLevel && table.className != nil {
                        let editor = try group.editor(table.key)
                        guard let row = try table.object(at: 0) else { continue }
                        for column in table.publicColumns
                        where column.collection == nil && column.key != table.primaryKeyColumn?.key {
                            let value = try row.value(column)
                            if value == .list || value == .dictionary { continue }
                            if case .link(let t, _) = value, try group.group.table(t)?.kind == .embedded { continue }
                            try editor.set(column, of: row.key, to: value)
                        }
                    }
                }
            }
            XCTAssertNil(try ExactJSON(parsing: before).firstDifference(ExactJSON(parsing: text(store))), name)
            try store.close()
            let file = try ImmutableFile(path: path)
            let report = try Verifier.verify(file)
            XCTAssertTrue(report.isSound, "\(name): \(report.findings.prefix(4).map(\.description))")
        }
    }

    /// The values of such a column stand in a list of the schema, which moves when a new value comes.
    func testAnEnumeratedColumnTakesNewValuesWhileAnOldColumnIsKept() throws {
        guard try key() == nil else { return }
        let scratch = ScratchDirectory()
        let path = scratch.file("trees.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/trees.realm", toPath: path)
        let store = try Store.open(path, options())
        for isIndexed in [false, true] {
            try store.write { transaction in
                let small = try transaction.editor.editor(named: "class_Small")
                let color = try small.column(named: "color")
                XCTAssertTrue(color.isEnumerated)
                if isIndexed { try small.addIndex(color.key) }
                for i in 0..<30 {
                    let row = try XCTUnwrap(try small.table.object(at: i % 10))
                    try small.set(color, of: row.key, to: .string("color \(i) \(isIndexed)"))
                    XCTAssertEqual(try small.table.find(row.key)?.string(color), "color \(i) \(isIndexed)")
                }
            }
            try store.look { transaction in
                let small = try XCTUnwrap(try transaction.group.table(ofClass: "Small"))
                XCTAssertEqual(try small.object(at: 3)?.string(XCTUnwrap(small.column(named: "color"))), "color 23 \(isIndexed)")
            }
        }
        try store.close()
        try assertSound(path)
    }

    func testSeveralThreadsWriteInTurnAndNothingIsLost() throws {
        let scratch = ScratchDirectory()
        let store = try Store.open(scratch.file("a.realm"), options())
        try makePeople(store)
        let group = DispatchGroup()
        for writer in 0..<4 {
            DispatchQueue.global().async(group: group) {
                for i in 0..<50 {
                    do {
                        try store.write {
                            _ = try $0.editor.editor(named: "class_Person").createObject(
                                primaryKey: .int(Int64(writer * 1000 + i)))
                        }
                        // The transaction must outlive the look: without it the version may be overwritten.
                        let reader = try store.beginRead()
                        _ = try reader.group.table(ofClass: "Person")!.objectCount
                        reader.end()
                    } catch { XCTFail("\(error)") }
                }
            }
        }
        group.wait()
        XCTAssertEqual(try peopleCount(store), 200)
        XCTAssertEqual(try store.newestVersion(), 202)
        try store.close()
        try assertSound(store.path)
    }
}

final class EncryptedStoreTests: StoreTests {
    override func key() throws -> EncryptionKey? { try EncryptionKey((0..<64).map { UInt8(truncatingIfNeeded: $0 * 7) }) }

    func testWrongMissingAndNeedlessKeysHaveErrorsOfTheirOwn() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("e.realm")
        let store = try Store.open(path, options())
        try store.write { try $0.editor.setSchemaVersion(1) }
        try store.close()
        var wrong = try options()
        wrong.encryptionKey = try EncryptionKey((0..<64).map { UInt8($0) })
        XCTAssertThrowsError(try Store.open(path, wrong)) {
            guard case OpenError.decryptionFailed = $0 else { return XCTFail("\($0)") }
        }
        wrong.encryptionKey = nil
        XCTAssertThrowsError(try Store.open(path, wrong)) {
            XCTAssertEqual($0 as? OpenError, .notARealm(path: path, content: .encrypted))
        }
        // Only the half that encrypts differs: the tags fit, the content is noise.
        wrong.encryptionKey = try EncryptionKey((0..<64).map { $0 < 32 ? UInt8($0) : UInt8(truncatingIfNeeded: $0 * 7) })
        XCTAssertThrowsError(try Store.open(path, wrong)) { error in
            guard case OpenError.decryptionFailed(path, 0, let reason) = error, reason.contains("half") else {
                return XCTFail("\(error)")
            }
        }
        let plain = scratch.file("p.realm")
        wrong.encryptionKey = nil
        let plainStore = try Store.open(plain, wrong)
        try plainStore.write { try $0.editor.setSchemaVersion(1) }
        try plainStore.close()
        XCTAssertThrowsError(try Store.open(plain, options())) { XCTAssertEqual($0 as? OpenError, .notEncrypted(path: plain)) }
        for size in [1, 4095, 4096, 4097, 8191] {
            let cut = scratch.file("cut-\(size).realm")
            try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))[..<size].withUnsafeBytes {
                try Data($0).write(to: URL(fileURLWithPath: cut))
            }
            XCTAssertThrowsError(try Store.open(cut, options()), "\(size)") {
                XCTAssertEqual($0 as? OpenError, .tooSmall(path: cut, size: size, minimum: 8192))
            }
        }
    }
}
