import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// What the recorded scenarios do not show of the engine.
class ObservationEngineTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private let scratch = ScratchDirectory()
    private var store: Store!
    private var session: ObservationSession!
    private var told: [String] = []

    override func setUpWithError() throws {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = key
        store = try Store.open(scratch.file("a.realm"), options)
        let item = SharedStore.ObjectSchema(
            name: "Item", kind: .topLevel, primaryKey: nil,
            properties: [
                PropertySchema(name: "value", type: .int), PropertySchema(name: "ints", type: .int, collection: .list),
            ])
        _ = try SchemaChanger.open(store, Schema(version: 0, classes: [item]), version: 0)
        try store.write { transaction in
            let items = try transaction.editor.editor(named: "class_Item")
            for value in [1, 1, 2, 3] as [Int64] {
                let key = try items.createObject()
                try items.set("value", of: key, to: .int(value))
                let list = items.identity(try items.column(named: "ints"), of: key)
                for i in 0..<3 { try items.listInsert(list, i, .int(Int64(i))) }
            }
        }
        session = try ObservationSession(store)
    }

    override func tearDown() {
        session = nil
        try? store.close(force: true)
    }

    private func write(_ body: (TableEditor) throws -> Void) throws {
        try store.write { try body($0.editor.editor(named: "class_Item")) }
        try session.refresh()
    }

    private func key(_ index: Int) throws -> ObjectKey {
        let table = try XCTUnwrap(session.group.table(ofClass: "Item"))
        return try XCTUnwrap(table.object(at: index)).key
    }

    private func show(_ places: [SectionsChange.Place]) -> String {
        places.map { "\($0.section).\($0.index)" }.joined(separator: " ")
    }

    /// Sections by value, and the section of one value.
    func testOneSectionHearsOfItselfOnlyAlsoWhenItGoesAndComesBack() throws {
        let query = try Query("TRUEPREDICATE SORT(value ASC)", class: "Item", schema: GroupQuerySchema(session.group))
        let keys: (Group) throws -> [AnyHashable] = { group in
            let table = try XCTUnwrap(group.table(ofClass: "Item"))
            let column = try XCTUnwrap(table.column(named: "value"))
            return try query.run(in: group).map { try XCTUnwrap(table.find($0)).value(column) }
        }
        _ = try session.engine.observe(.sections(of: .objects(ObservedObjects(query)), keys: keys), in: session.group) { change in
            if change.isInitial { return self.told.append("initial") }
            guard case .sections(let sections) = change.content, let own = sections.only(Mixed.int(2)) else { return }
            self.told.append(
                "-\(self.show(own.deletions)) +\(self.show(own.insertions)) ~\(self.show(own.modifications)) -\(own.deletedSections) +\(own.insertedSections)"
            )
        }
        try session.deliver()
        try write { try $0.set("value", of: key(3), to: .int(3)) }
        XCTAssertEqual(told, ["initial"], "another section")
        try write { try $0.set("value", of: key(2), to: .int(2)) }
        try write { try $0.set("value", of: key(3), to: .int(2)) }
        XCTAssertEqual(told.dropFirst(), ["- + ~1.0 -[] +[]", "- +1.1 ~ -[] +[]"])
        told = []
        // Both go to section 1, which was 0 before and stays so.
        try write {
            try $0.set("value", of: key(2), to: .int(1))
            try $0.set("value", of: key(3), to: .int(1))
        }
        XCTAssertEqual(told, ["- + ~ -[1] +[]"])
        try write {
            try $0.set("value", of: key(0), to: .int(0))
            try $0.set("value", of: key(3), to: .int(2))
        }
        XCTAssertEqual(told.last, "- +2.0 ~ -[] +[2]")
    }

    /// Indices come from others: those that cannot be are not passed on.
    func testAChangesetThatDoesNotFitMakesTheListReplaced() throws {
        let table = try XCTUnwrap(session.group.table(ofClass: "Item"))
        let identity = ChangesetWriter.CollectionIdentity(
            table: table.key, object: try key(0), column: try XCTUnwrap(table.column(named: "ints")).key)
        var seen: CollectionChange?
        _ = try session.engine.observe(.collection(identity), in: session.group) { change in
            if case .positions(let positions) = change.content { seen = positions }
        }
        try session.deliver()
        for bytes in [
            forged(identity) { $0.collectionErase(70, identity) }, forged(identity) { $0.collectionInsert(1 << 30, identity) },
            forged(identity) { $0.collectionSet(5, identity) },
            forged(identity) { $0.collectionClear(oldCount: 1 << 31, identity) },
        ] {
            seen = nil
            try session.engine.advance(from: session.group, to: session.group) { parse in try bytes.withUnsafeBytes(parse) }
            try session.deliver()
            XCTAssertEqual(seen?.deletions, [0, 1, 2])
            XCTAssertEqual(seen?.insertions, [0, 1, 2])
            XCTAssertEqual(seen?.modifications, [])
        }
        XCTAssertThrowsError(
            try session.engine.advance(from: session.group, to: session.group) { parse in try [UInt8(99)].withUnsafeBytes(parse) }
        )
    }

    private func forged(_ identity: ChangesetWriter.CollectionIdentity, _ body: (inout ChangesetWriter) -> Void) -> [UInt8] {
        var writer = ChangesetWriter()
        body(&writer)
        return writer.bytes
    }

    /// The session has lost its place in the history.
    func testAfterAGapStatesAreCompared() throws {
        let schema = try GroupQuerySchema(session.group)
        let query = try Query("value > 1", class: "Item", schema: schema)
        let first = try key(3)
        _ = try session.engine.observe(.objects(ObservedObjects(query)), in: session.group) { change in
            if case .positions(let positions) = change.content {
                self.told.append("\(Array(positions.deletions)) \(Array(positions.insertions))")
            }
        }
        _ = try session.engine.observe(.object(query.table, first), in: session.group) { change in
            if case .object(let object) = change.content { self.told.append("deleted \(object.wasDeleted)") }
        }
        try session.deliver()
        try store.write { transaction in
            let items = try transaction.editor.editor(named: "class_Item")
            try items.deleteObject(first)
            try items.set("value", of: items.createObject(), to: .int(9))
        }
        let reading = try store.beginRead()
        try session.engine.resume(reading.group)
        try session.engine.deliver(reading.group)
        withExtendedLifetime(reading) {}
        XCTAssertEqual(told, ["[1] [1]", "deleted true"])
    }

    func testNothingIsDoneWhileNobodyObserves() throws {
        let callback = try session.engine.observe(
            .object(try XCTUnwrap(session.group.table(ofClass: "Item")).key, key(0)), in: session.group
        ) { _ in }.callback
        XCTAssertFalse(session.engine.isIdle)
        callback.cancel()
        XCTAssertTrue(session.engine.isIdle)
        // Not even parsed.
        try session.engine.advance(from: session.group, to: session.group) { _ in XCTFail("the history was read") }
        XCTAssertFalse(session.engine.hasPending)
    }

    func testACallbackThatIsCancelledByAnotherIsNotCalled() throws {
        let table = try XCTUnwrap(session.group.table(ofClass: "Item")).key
        var second: Observer.Callback?
        _ = try session.engine.observe(.object(table, key(0)), in: session.group) { change in
            if case .object = change.content { second?.cancel() }
        }
        second = try session.engine.observe(.object(table, key(0)), in: session.group) { change in
            if case .object = change.content { self.told.append("called") }
        }.callback
        try session.deliver()
        try write { try $0.set("value", of: key(0), to: .int(5)) }
        XCTAssertEqual(told, [])
    }
}

/// The same over encrypted files.
final class EncryptedObservationEngineTests: ObservationEngineTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
