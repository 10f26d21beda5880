import Glibc
import TestSupport
import XCTest

// sample: store-import
import SharedStore
// end

/// What the README and `Documentation/shared-store.md` show of the engine under the objects.
final class StoreSampleTests: XCTestCase {
    private let scratch = ScratchDirectory("StoreSamples")
    private var path: String { scratch.file("tasks.realm") }

    func testWritingAndReadingMayBeDoneAgain() throws {
        for _ in 0..<2 { try writeAndRead() }
        let file = try ImmutableFile(path: path)
        try withExtendedLifetime(file) { XCTAssertEqual(try file.group.table(ofClass: "Task")?.objectCount, 1) }
    }

    private func writeAndRead() throws {
        // sample: store-write
        let store = try Store.open(path)
        try store.write { transaction in
            if try transaction.group.table(ofClass: "Task") == nil {
                let tasks = try transaction.editor.createTable("class_Task")
                try tasks.addPrimaryKeyColumn("id", .int)
                try tasks.addColumn("title", .string)
            }
            let tasks = try transaction.editor.editor(named: "class_Task")
            let (key, _) = try tasks.createObject(primaryKey: .int(1))  // the object with this key, if there is one
            try tasks.set("title", of: key, to: .string("read the README"))
        }
        let reading = try store.beginRead()
        print(try reading.group.table(ofClass: "Task")!.objectCount)
        reading.end()
        // end
        try store.close()
    }

    func testReadingColumnsAndQueries() throws {
        try writeAndRead()
        let store = try Store.open(path)
        defer { try? store.close() }
        var titles: [String] = []
        func print(_ text: String) { titles.append(text) }
        func show() throws {
            // sample: store-read
            let reading = try store.beginRead()
            defer { reading.end() }
            let tasks = try reading.group.table(ofClass: "Task")!
            let title = tasks.column(named: "title")!
            try tasks.forEachObject { row in
                print(try row.string(title) ?? "no title")
            }
            // end
        }
        func ask() throws {
            // sample: store-query
            let reading = try store.beginRead()
            defer { reading.end() }
            let query = try Query(
                "title BEGINSWITH $0 SORT(id ASC)", arguments: [.value(.string("read"))], class: "Task",
                schema: GroupQuerySchema(reading.group))
            let tasks = try reading.group.table(ofClass: "Task")!
            let id = tasks.column(named: "id")!
            for key in try query.run(in: reading.group) {
                print("task \(try tasks.find(key)!.int(id))")
            }
            // end
        }
        try show()
        try ask()
        XCTAssertEqual(titles, ["read the README", "task 1"])
    }

    func testChangingATableThatIsThere() throws {
        try writeAndRead()
        let store = try Store.open(path)
        defer { try? store.close() }
        for _ in 0..<2 {
            // sample: store-change
            try store.write { transaction in
                let tasks = try transaction.editor.editor(named: "class_Task")
                if tasks.table.column(named: "isDone") == nil { try tasks.addColumn("isDone", .bool) }
                let query = try Query("id == 1", class: "Task", schema: GroupQuerySchema(transaction.group))
                for key in try query.run(in: transaction.group) {
                    try tasks.set("isDone", of: key, to: .bool(true))
                }
            }
            // end
        }
        let reading = try store.beginRead()
        defer { reading.end() }
        let tasks = try XCTUnwrap(reading.group.table(ofClass: "Task"))
        XCTAssertEqual(try tasks.object(at: 0)?.bool(try XCTUnwrap(tasks.column(named: "isDone"))), true)
    }

    // MARK: Observing

    private func commit(_ store: Store, _ title: String) throws {
        try store.write { transaction in
            let tasks = try transaction.editor.editor(named: "class_Task")
            let (key, _) = try tasks.createObject(primaryKey: .int(1))
            try tasks.set("title", of: key, to: .string(title))
        }
    }

    func testObservingWithACallback() throws {
        try writeAndRead()
        let store = try Store.open(path)
        let heard = expectation(description: "the commit was told")
        heard.assertForOverFulfill = false
        // sample: store-callback
        let subscription = store.subscribe { event in
            switch event {
            case .committed(let version): print("version \(version)")
            case .fileReplaced, .fileDeleted, .fileAppeared: print("open the file again")
            }
            // end
            heard.fulfill()
        }
        try commit(store, "a callback")
        wait(for: [heard], timeout: TestTime.limit(60))
        subscription.cancel()
        try store.close()
    }

    func testObservingWithASequence() async throws {
        try writeAndRead()
        let store = try Store.open(path)
        let subscription = store.subscribe()
        try commit(store, "a sequence")
        let newest = try store.newestVersion()
        // sample: store-sequence
        for await event in subscription.events {
            if case .committed(let version) = event, version >= newest { break }
        }
        // end
        subscription.cancel()
        try store.close()
    }

    func testObservingWithADescriptor() throws {
        try writeAndRead()
        let store = try Store.open(path)
        // sample: store-descriptor
        let subscription = store.subscribe()
        var request = pollfd(fd: try subscription.eventDescriptor(), events: Int16(POLLIN), revents: 0)
        // end
        try commit(store, "a descriptor")
        var versions: [UInt64] = []
        // sample: store-descriptor-wait
        while poll(&request, 1, 60_000) > 0 {
            for event in subscription.takeEvents() {
                print(event)
                // end
                if case .committed(let version) = event { versions.append(version) }
            }
            if !versions.isEmpty { break }
        }
        XCTAssertEqual(versions, [try store.newestVersion()])
        subscription.cancel()
        try store.close()
    }
}
