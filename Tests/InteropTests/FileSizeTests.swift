import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Files are as large as the original's for the same objects and the same operations, within five in a hundred.
///
/// What can be compared: the content of each given file, packed without free space; the given packed copies; the given files that
/// were made in two commits (schema, then all objects), as they lie on the disk; and `many-versions`, whose 400 commits can be
/// told from what is in it. How the others came about is not known. `FILE_SIZES_LONG=1` includes a table of seventy thousand
/// objects.
final class FileSizeTests: XCTestCase {
    private let scratch = ScratchDirectory("size")

    private final class Target: ImportTarget {
        private var transaction: WriteTransaction
        init(_ store: Store) throws { transaction = try store.beginWrite() }
        var group: GroupEditor { transaction.editor }
        func checkpoint(progress: ImportProgress) throws { try transaction.commitAndContinue() }
        func finish() { transaction.rollback() }
    }

    private func options() -> StoreOptions {
        var options = StoreOptions()
        options.durability = .unsafe
        return options
    }

    /// Makes a file of the objects of a given one, by a commit of the schema and a commit of the objects.
    private func imported(_ name: String) throws -> String {
        let path = scratch.file(name + "-ours.realm")
        let store = try Store.open(path, options())
        let json = Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/\(name).json")))
        let target = try Target(store)
        try json.withUnsafeBytes { try JSONImporter(text: $0, target: target).run() }
        target.finish()
        try store.close()
        return path
    }

    private func given(_ name: String) throws -> String {
        let path = scratch.file(name + "-given.realm")
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/\(name).realm", toPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        return path
    }

    private func size(_ path: String) throws -> Int { try Data(contentsOf: URL(fileURLWithPath: path)).count }

    /// The size of a copy without free space and without history.
    private func packedSize(_ path: String, removing classes: [String] = []) throws -> Int {
        let store = try Store.open(path, options())
        defer { try? store.close() }
        if !classes.isEmpty {
            try store.write { transaction in
                // What links to a table keeps it.
                let keys = try classes.map { try transaction.editor.editor(named: "class_\($0)").table.key }
                for table in try transaction.editor.group.classTables() {
                    let editor = try transaction.editor.editor(table.key)
                    for column in table.publicColumns where column.type == .link && keys.contains(column.oppositeTable) {
                        try editor.removeColumn(column.key)
                    }
                }
                for key in keys { try transaction.editor.removeTable(key) }
            }
        }
        let copy = path + ".copy"
        try? FileManager.default.removeItem(atPath: copy)
        try store.look { try StreamingCopy(version: nil, keepsHistory: false).write($0.group, toPath: copy) }
        return try size(copy)
    }

    private func assertNoLarger(_ ours: Int, _ theirs: Int, _ name: String, line: UInt = #line) {
        XCTAssertLessThanOrEqual(Double(ours), 1.05 * Double(theirs), "\(name): \(ours) bytes instead of \(theirs)", line: line)
    }

    func testTheObjectsOfEveryGivenFileTakeNoMoreRoomThanThere() throws {
        // "trees" follows below: most of its objects were deleted after they were made, which shapes the tree of those that are
        // left.
        for name in try GivenFiles.core14() where name != "trees" {
            let ours = try packedSize(imported(name)), theirs = try packedSize(given(name))
            print("\(name): \(ours) bytes here, \(theirs) there")
            assertNoLarger(ours, theirs, name)
        }
    }

    func testATreeWithHolesTakesNoMoreRoomThanThere() throws {
        // All but the table of many objects, from which a part was deleted.
        assertNoLarger(
            try packedSize(imported("trees"), removing: ["Deep"]), try packedSize(given("trees"), removing: ["Deep"]),
            "trees without Deep")
        // A minute's work for a slow machine.
        if ProcessInfo.processInfo.environment["FILE_SIZES_LONG"] == nil { return }
        // That table: all its objects are made, then those deleted that are missing there.
        let file = try ImmutableFile(path: Fixtures.core14 + "/trees.realm")
        let deep = try XCTUnwrap(try file.group.table(ofClass: "Deep")), column = try XCTUnwrap(deep.column(named: "n"))
        var values: [Int64: Int64] = [:]
        try deep.forEachObject { values[$0.key.rawValue] = try $0.int(column) }
        let path = scratch.file("deep.realm")
        let store = try Store.open(path, options())
        let last = try XCTUnwrap(values.keys.max())
        var missing: [ObjectKey] = []
        try store.write { transaction in
            _ = try transaction.editor.createTable("metadata")
            let table = try transaction.editor.createTable("class_Deep")
            let n = try table.column(named: "n", adding: .int)
            for _ in 0..<200_000 {
                let key = try table.createObject()
                if let value = values.removeValue(forKey: key.rawValue) {
                    try table.set(n, of: key, to: .int(value))
                } else {
                    missing.append(key)
                }
                if key.rawValue >= last { break }
            }
        }
        XCTAssertEqual(values.count, 0, "keys are given out in the same order here and there")
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Deep")
            for key in missing { try table.deleteObject(key) }
        }
        try store.close()
        let ours = try packedSize(path), theirs = try packedSize(given("trees"), removing: ["Holder", "Small"])
        print("\(missing.count) objects deleted: \(ours) bytes here, \(theirs) there")
        assertNoLarger(ours, theirs, "Deep")
    }

    func testACopyOfAFileIsAsLargeAsTheGivenCopyOfTheSameFile() throws {
        let path = try given("relationships")
        let store = try Store.open(path, options())
        let copy = scratch.file("copy.realm")
        try store.look { try StreamingCopy(version: $0.version, keepsHistory: true).write($0.group, toPath: copy) }
        try store.close()
        XCTAssertEqual(try size(copy), try size(Fixtures.core14 + "/compact-copy.realm"))
    }

    func testAFileMadeInTheSameCommitsIsAsLargeOnTheDisk() throws {
        for name in ["all-types", "fulltext", "nested-mixed", "primary-keys"] {
            XCTAssertEqual(try ImmutableFile(path: Fixtures.core14 + "/\(name).realm").group.version(), 3, "made in two commits")
            let path = try imported(name)
            XCTAssertEqual(try ImmutableFile(path: path).group.version(), 3)
            print("\(name): \(try size(path)) bytes here, \(try size(Fixtures.core14 + "/\(name).realm")) there")
            assertNoLarger(try size(path), try size(Fixtures.core14 + "/\(name).realm"), name)
        }
    }

    /// `many-versions` has version 402 and the objects 133 to 399 of 400, number n with n % 97 letters: one was made in each of
    /// 400 commits, and in a third of them the first one left was deleted.
    func testFourHundredCommitsLeaveAFileAsLargeAsThere() throws {
        let path = scratch.file("many-versions.realm")
        let store = try Store.open(path, options())
        try store.write { transaction in
            _ = try transaction.editor.createTable("metadata")
            let table = try transaction.editor.createTable("class_Log")
            _ = try table.column(named: "n", adding: .int)
            _ = try table.column(named: "text", adding: .string)
        }
        for n in 0..<400 {
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Log")
                let key = try table.createObject()
                try table.set("n", of: key, to: .int(Int64(n)))
                try table.set("text", of: key, to: .string(String(repeating: "z", count: n % 97)))
                if n % 3 == 2, let first = try table.table.object(at: 0) { try table.deleteObject(first.key) }
            }
        }
        try store.close()
        let there = try ImmutableFile(path: Fixtures.core14 + "/many-versions.realm"), here = try ImmutableFile(path: path)
        XCTAssertEqual(try here.group.version(), try there.group.version())
        let ours = try XCTUnwrap(try here.group.table(ofClass: "Log")),
            theirs = try XCTUnwrap(try there.group.table(ofClass: "Log"))
        var keys: [Int64] = []
        try theirs.forEachObject { keys.append($0.key.rawValue) }
        var index = 0
        try ours.forEachObject { row in
            XCTAssertEqual(row.key.rawValue, index < keys.count ? keys[index] : -1)
            index += 1
        }
        XCTAssertEqual(index, keys.count)
        print("400 commits: \(try size(path)) bytes here, \(try size(Fixtures.core14 + "/many-versions.realm")) there")
        assertNoLarger(try size(path), try size(Fixtures.core14 + "/many-versions.realm"), "400 commits")
    }
}

extension TableEditor {
    /// A new column.
    fileprivate func column(named name: String, adding type: ColumnType) throws -> Column {
        try addColumn(name, type)
        return try column(named: name)
    }
}
