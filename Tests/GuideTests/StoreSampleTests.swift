import TestSupport
import XCTest

// sample: store-import
import SharedStore
// end

/// What the README shows of the engine under the objects.
final class StoreSampleTests: XCTestCase {
    func testWritingAndReading() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("tasks.realm")
        // sample: store-write
        let store = try Store.open(path)
        try store.write { transaction in
            let tasks = try transaction.editor.createTable("class_Task")
            try tasks.addPrimaryKeyColumn("id", .int)
            try tasks.addColumn("title", .string)
            let (key, _) = try tasks.createObject(primaryKey: .int(1))
            try tasks.set("title", of: key, to: .string("read the README"))
        }
        let reading = try store.beginRead()
        print(try reading.group.table(ofClass: "Task")!.objectCount)
        reading.end()
        // end
        let again = try store.beginRead()
        try withExtendedLifetime(again) { XCTAssertEqual(try again.group.table(ofClass: "Task")?.objectCount, 1) }
    }
}
