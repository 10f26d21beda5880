import Foundation
import Glibc
import TestSupport
import XCTest

@testable import SharedStore

/// A file gets another key, or loses it, while nobody has it open.
final class RekeyingTests: XCTestCase {
    private let scratch = ScratchDirectory("Rekeying")
    private var path: String { scratch.file("a.realm") }
    private func key(_ n: Int) throws -> EncryptionKey? {
        n == 0 ? nil : try EncryptionKey((0..<64).map { UInt8(truncatingIfNeeded: $0 * n + n) })
    }

    override func setUpWithError() throws {
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/relationships.realm", toPath: path)
    }

    private func text(_ n: Int) throws -> [UInt8] { try JSONExporter.text(ImmutableFile(path: path, key: key(n)).group) }

    func testEveryChangeOfKeyKeepsContentVersionAndHistoryAndTheFileIsWrittenOn() throws {
        let expected = try text(0), version = try ImmutableFile(path: path).group.version()
        chmod(path, 0o640)
        for (old, new) in [(0, 1), (1, 1), (1, 2), (2, 0), (0, 0), (0, 3)] {
            try StoreFiles.changeKey(path, from: key(old), to: key(new))
            XCTAssertEqual(try text(new), expected)
            XCTAssertEqual(try ImmutableFile(path: path, key: key(new)).group.version(), version)
            if old != new { XCTAssertThrowsError(try ImmutableFile(path: path, key: key(old))) }
        }
        let mode = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)
        XCTAssertEqual(mode.uint16Value, 0o640)
        var options = StoreOptions()
        options.encryptionKey = try key(3)
        let store = try Store.open(path, options)
        XCTAssertEqual(try store.newestVersion(), version)
        try store.write { try $0.editor.createTable("added").addColumn("n", .int) }
        XCTAssertEqual(try store.newestVersion(), version + 1)
        // Who has it open keeps it from being replaced.
        XCTAssertThrowsError(try StoreFiles.changeKey(path, from: key(3), to: nil)) {
            XCTAssertEqual($0 as? SessionError, .inUse(path: path))
        }
        try store.close()
        XCTAssertNotNil(try ImmutableFile(path: path, key: key(3)).group.table(named: "added"))
    }

    func testAWrongKeyOrAFailedCheckLeavesTheFileAsItIs() throws {
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        struct Refused: Error {}
        XCTAssertThrowsError(try StoreFiles.changeKey(path, from: key(1), to: key(2))) {
            XCTAssertEqual($0 as? OpenError, .notEncrypted(path: path))
        }
        XCTAssertThrowsError(try StoreFiles.changeKey(path, from: nil, to: key(2)) { _ in throw Refused() }) {
            XCTAssertTrue($0 is Refused)
        }
        XCTAssertThrowsError(try StoreFiles.changeKey(scratch.file("none"), from: nil, to: key(2))) {
            XCTAssertEqual($0 as? OpenError, .fileNotFound(path: scratch.file("none")))
        }
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
        XCTAssertEqual(Set(try FileManager.default.contentsOfDirectory(atPath: scratch.path)), ["a.realm", "a.realm.lock"])
    }

    func testWhoDiesOnTheWayLeavesTheOldFileOrTheNewOneWhole() throws {
        let expected = try text(0)
        for (point, result) in [("rekey.copied", 0), ("rekey.renamed", 5)] {
            let victim = try TestProcess()
            victim.ask("kill-at \(point)")
            XCTAssertEqual(victim.ask("change-key \(path) 0 5"), "gone", point)
            XCTAssertEqual(try text(result), expected, point)
        }
        // What the first one left is in nobody's way.
        try StoreFiles.changeKey(path, from: key(5), to: nil)
        XCTAssertEqual(try text(0), expected)
        XCTAssertFalse(FileManager.default.fileExists(atPath: path + ".tmp_compaction_space"))
    }

    func testAnyFailingSystemCallLeavesAWholeFileAndNoCopy() throws {
        let expected = try text(0)
        let rounds = try sweepFaults(
            code: EIO, selects: { $0.path.hasPrefix(self.scratch.path) },
            prepare: { _ in
                try? FileManager.default.removeItem(atPath: path)
                try FileManager.default.copyItem(atPath: Fixtures.core14 + "/relationships.realm", toPath: path)
            }, { try StoreFiles.changeKey(path, from: nil, to: key(5)) },
            check: { _, error in
                let isNew = (try? text(5)) == expected
                XCTAssertTrue(isNew || (try? text(0)) == expected, "\(String(describing: error))")
                XCTAssertTrue(isNew || error != nil)
            })
        XCTAssertGreaterThan(rounds, 10)
    }

    func testAKeyFileIsMadeForItsOwnerAloneAndOnlyOnce() throws {
        let fresh = try EncryptionKey.generate()
        for isHexadecimal in [false, true] {
            let file = scratch.file("key-\(isHexadecimal)")
            try fresh.write(toNewFile: file, hexadecimal: isHexadecimal)
            XCTAssertTrue(try EncryptionKey.read(file: file).equals(fresh))
            let mode = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? NSNumber)
            XCTAssertEqual(mode.uint16Value, 0o600)
            XCTAssertThrowsError(try fresh.write(toNewFile: file))
            XCTAssertTrue(try EncryptionKey.read(file: file).equals(fresh))
        }
    }
}
