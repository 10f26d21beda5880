import Foundation
import SharedStore
import TestSupport
import XCTest

/// compare and salvage.
final class RepairCommandTests: XCTestCase {
    private func open(_ path: String) throws -> Store {
        var options = StoreOptions()
        options.durability = .unsafe
        return try Store.open(path, options)
    }

    /// A file of several commits, with the exports of the last two.
    private func makeFile(_ path: String) throws -> [Data] {
        let store = try open(path)
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Note")
            try table.addColumn("number", .int)
            try table.addColumn("text", .string)
            try table.addColumn("other", .link, target: table.table.key)
            for number in 0..<300 {
                let key = try table.createObject()
                try table.set("number", of: key, to: .int(Int64(number)))
                try table.set("text", of: key, to: .string("note \(number) " + String(repeating: "x", count: 30)))
            }
        }
        var exports: [Data] = []
        for round in 0..<3 {
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Note")
                let rows = try (0..<5).compactMap { try table.table.object(at: 50 * $0)?.key }
                for key in rows { try table.set("number", of: key, to: .int(Int64(1000 + round))) }
                try table.set("other", of: rows[0], to: .link(table.table.key, rows[4]))
            }
            let reading = try store.beginRead()
            try withExtendedLifetime(reading) { exports.append(Data(try JSONExporter.text(reading.group))) }
            reading.end()
        }
        try store.close()
        return exports
    }

    func testCompareTellsWhetherFilesHoldTheSameAndWhereNot() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let a = scratch.file("a.realm"), b = scratch.file("b.realm"), c = scratch.file("c.realm")
        _ = try makeFile(a)
        XCTAssertEqual(try RealmSync("mirror", a, b, "--once").exitCode, 0)
        let same = try RealmSync("compare", a, b)
        XCTAssertEqual(same.exitCode, 0)
        XCTAssertTrue(same.output.contains("byte for byte"), same.output)
        XCTAssertEqual(try RealmSync("copy", a, c).exitCode, 0)
        let copy = try RealmSync("compare", a, c)
        XCTAssertEqual(copy.exitCode, 0)
        XCTAssertTrue(copy.output.contains("the same 300 objects"), copy.output)
        let store = try open(a)
        var changed: ObjectKey?, deleted: ObjectKey?
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Note")
            changed = try table.table.object(at: 7)?.key
            deleted = try table.table.object(at: 100)?.key
            try table.set("text", of: try XCTUnwrap(changed), to: .string("another text"))
            try table.deleteObject(try XCTUnwrap(deleted))
            _ = try transaction.editor.createTable("class_New")
        }
        try store.close()
        let differ = try RealmSync("compare", a, c)
        XCTAssertEqual(differ.exitCode, 1)
        XCTAssertTrue(
            differ.output.contains("Note object \(try XCTUnwrap(changed).rawValue).text: \"another text\""), differ.output)
        XCTAssertTrue(
            differ.output.contains("Note object \(try XCTUnwrap(deleted).rawValue): only in the second file"), differ.output)
        XCTAssertTrue(differ.output.contains("New: only in the first file"), differ.output)
        XCTAssertTrue(differ.output.contains(": 3 differences"), differ.output)
        let json = try XCTUnwrap(try RealmSync("compare", a, c, "--json").json() as? [String: Any])
        XCTAssertEqual(json["sameObjects"] as? Bool, false)
        XCTAssertEqual(json["differences"] as? Int, 3)
        XCTAssertEqual(try RealmSync("compare", a, scratch.file("none")).exitCode, 66)
        for name in ["nested-mixed", "relationships", "all-types", "encrypted"] {
            let given = scratch.copy(ofGiven: name + ".realm"), other = scratch.file(name)
            let key = name == "encrypted" ? ["--key-file", Fixtures.core14 + "/encrypted.key", "--allow-readable-key-file"] : []
            XCTAssertEqual(try RealmSync(["copy", given, other] + key).exitCode, 0)
            let run = try RealmSync(["compare", given, other] + key)
            XCTAssertEqual(run.exitCode, 0, run.output + run.errors)
        }
    }

    func testSalvageTakesTheOtherSlotWhereTheNewestVersionIsDamaged() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let path = scratch.file("a.realm"), out = scratch.file("out.realm")
        let exports = try makeFile(path)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let header = bytes.withUnsafeBytes { FileHeader($0.baseAddress!) }
        bytes[Int(header.liveTopRef) + 4] = 0xFF
        try bytes.write(to: URL(fileURLWithPath: path))
        XCTAssertEqual(try RealmSync("verify", path, "--immutable").exitCode, 1)
        let run = try RealmSync("salvage", path, out)
        XCTAssertEqual(run.exitCode, 1, run.errors)
        XCTAssertTrue(run.output.contains("the other slot"), run.output)
        XCTAssertTrue(run.output.contains("300 objects, 1 loss"), run.output)
        XCTAssertTrue(run.errors.contains("lost: the newest version, later than "), run.errors)
        XCTAssertEqual(
            try RealmSync("export", out, "--immutable").output.trimmingCharacters(in: .newlines),
            String(decoding: exports[1], as: UTF8.self))
        XCTAssertEqual(try RealmSync("salvage", path, out).exitCode, 73, "never overwritten")
    }

    func testSalvageOfAnEncryptedFileSpeaksOfTheKey() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let path = scratch.copy(ofGiven: "encrypted.realm"), out = scratch.file("out.realm"), wrong = scratch.file("wrong.key")
        XCTAssertEqual(try RealmSync("keygen", wrong).exitCode, 0)
        let without = try RealmSync("salvage", path, out)
        XCTAssertEqual(without.exitCode, 65)
        XCTAssertTrue(without.errors.contains(path) && without.errors.contains("--key-file"), without.errors)
        let other = try RealmSync("salvage", path, out, "--key-file", wrong)
        XCTAssertEqual(other.exitCode, 65)
        XCTAssertTrue(other.errors.contains(path) && other.errors.contains("the key is not that of the file"), other.errors)
    }

    func testSalvageFindsTopArraysWithoutAHeader() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let path = scratch.file("a.realm"), out = scratch.file("out.realm")
        let exports = try makeFile(path)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        for i in 0..<24 { bytes[i] = 0 }
        try bytes.write(to: URL(fileURLWithPath: path))
        let run = try RealmSync("salvage", path, out)
        XCTAssertEqual(run.exitCode, 0, run.errors)
        XCTAssertTrue(run.output.contains("scanning"), run.output)
        XCTAssertEqual(
            try RealmSync("export", out, "--immutable").output.trimmingCharacters(in: .newlines),
            String(decoding: exports[2], as: UTF8.self))
    }

    func testSalvageTakesTheObjectsThatCanBeReadAndListsTheOthers() throws {
        let scratch = ScratchDirectory(inMemory: true)
        var random = SplitMix(seed: 96)
        var partial = 0
        for (index, name) in ["relationships", "nested-mixed", "primary-keys", "all-types"].enumerated() {
            let good = try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/\(name).realm"))
            for round in 0..<2 {
                var bytes = good
                // Headers of nodes anywhere.
                let nodes = stride(from: 24, to: bytes.count - 8, by: 8).filter {
                    bytes[$0] == 0x41 && bytes[$0 + 1] == 0x41 && bytes[$0 + 2] == 0x41 && bytes[$0 + 3] == 0x41
                }
                for _ in 0..<round * 4 + 1 {
                    bytes[nodes[Int(random.next() % UInt64(nodes.count))] + 4] = UInt8(truncatingIfNeeded: random.next())
                }
                let path = scratch.file("\(index)-\(round).realm"), out = scratch.file("\(index)-\(round)-out.realm")
                try bytes.write(to: URL(fileURLWithPath: path))
                let run = try RealmSync("salvage", path, out)
                XCTAssertTrue([0, 1, 65].contains(run.exitCode), "seed 96, \(name) \(round): \(run.errors)")
                guard run.exitCode != 65 else {
                    XCTAssertTrue(run.errors.contains("no version is left"), "seed 96, \(name) \(round): \(run.errors)")
                    continue
                }
                if run.exitCode == 1 {
                    partial += 1
                    XCTAssertTrue(run.errors.contains("lost: "), run.errors)
                }
                XCTAssertEqual(try RealmSync("verify", out, "--immutable").exitCode, 0, "seed 96, \(name) \(round)")
            }
        }
        XCTAssertGreaterThan(partial, 0)
    }
}
