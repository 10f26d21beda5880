import Foundation
import Glibc
import TestSupport
import XCTest

@testable import SharedStore

/// Files of older formats become files of the present one, whoever opens them, and nothing is lost on the way.
final class FormatUpgradeTests: XCTestCase {
    private var scratch: ScratchDirectory!
    /// Of all files; nil in tests that change bytes of a file.
    private var key = TestKeys.usual

    override func setUp() { scratch = ScratchDirectory("upgrade") }
    override func tearDown() { scratch = nil }

    /// A private copy of a given file, its JSON, and its format.
    private struct Given {
        let name: String, path: String, json: ExactJSON, format: Int
        var backup: String { String(path.dropLast(5)) + "v\(format).backup.realm" }
    }

    private func copy(_ name: String, as copyName: String? = nil) throws -> Given {
        let (folder, _) = try GivenFiles.older()
        let path = scratch.file((copyName ?? name) + ".realm")
        if key == nil {
            try FileManager.default.copyItem(atPath: folder + "/\(name).realm", toPath: path)
        } else {
            try TestKeys.copy(folder + "/\(name).realm", to: path)
        }
        let json = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: folder + "/\(name).json")))
        return Given(name: name, path: path, json: json, format: try ImmutableFile(path: path, key: key).layout.format)
    }

    private func all() throws -> [Given] {
        let (folder, names) = try GivenFiles.older()
        return try names.filter { FileManager.default.fileExists(atPath: folder + "/\($0).json") }.map { try copy($0) }
    }

    private func open(_ path: String, _ change: (inout StoreOptions) -> Void = { _ in }) throws -> Store {
        var options = StoreOptions()
        options.createsFile = false
        options.encryptionKey = key
        change(&options)
        return try Store.open(path, options)
    }

    private func assertIsUpgraded(
        _ path: String, _ given: Given, _ message: String = "", key: EncryptionKey? = nil, line: UInt = #line
    ) throws {
        let file = try ImmutableFile(path: path, key: key ?? self.key)
        XCTAssertEqual(file.layout.format, 24, "\(given.name) \(message)", line: line)
        let difference = try ExactJSON(parsing: JSONExporter.text(file.group)).firstDifference(given.json)
        XCTAssertNil(difference, "\(given.name) \(message): ours and the given value: \(difference ?? "")", line: line)
        let report = try Verifier.verify(file)
        XCTAssertTrue(report.isSound, "\(given.name) \(message)", line: line)
        // What the upgrade leaves as it is: types of lists of links, long backlink lists, order within index lists.
        let others = report.findings.filter { !["spec.type", "tree.nodeCount", "index.listOrder"].contains($0.code.rawValue) }
        XCTAssert(others.isEmpty, "\(given.name) \(message) \(others.prefix(3).map(\.description))", line: line)
    }

    private func bytes(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }
    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    // MARK: One process

    func testEveryOlderFileIsUpgradedByOpeningItAndThenExportsAsGivenAndVerifies() throws {
        var formats = Set<Int>()
        for given in try all() {
            let original = try bytes(given.path)
            try open(given.path).close()
            try assertIsUpgraded(given.path, given)
            XCTAssertEqual(try bytes(given.backup), original, "the backup of \(given.name) is the file as it was")
            XCTAssertFalse(exists(given.backup + ".part"))
            XCTAssertTrue(try String(decoding: bytes(given.path + ".backup-log"), as: UTF8.self).contains(given.backup))
            // What was upgraded is written on like any other file, and read by the next session.
            let store = try open(given.path)
            try store.write { try $0.editor.createTable("added").addColumn("n", .int) }
            try store.close()
            XCTAssertEqual(try open(given.path).look { try $0.group.table(named: "added")?.publicColumnCount }, 1)
            formats.insert(given.format)
        }
        XCTAssertTrue(formats.isSuperset(of: [10, 11, 20, 22, 23]), "\(formats)")
    }

    /// No file of format 21 is given; it differs from 22 in what primary keys have, and this file has none without an index.
    func testAFileOfFormat21IsUpgradedToo() throws {
        key = nil
        let given = try copy("upgrade_1000_22")
        var data = try bytes(given.path)
        data[20] = 21
        try data.write(to: URL(fileURLWithPath: given.path))
        try open(given.path).close()
        try assertIsUpgraded(given.path, given)
        XCTAssertTrue(exists(given.backup.replacingOccurrences(of: "v22", with: "v21")))
    }

    func testABackupPutBackByHandIsAFileLikeTheOriginal() throws {
        let given = try copy("upgrade_1000_22")
        try open(given.path).close()
        let restored = scratch.file("restored.realm")
        try FileManager.default.copyItem(atPath: given.backup, toPath: restored)
        try open(restored).close()
        try assertIsUpgraded(restored, given)
    }

    func testWithoutPermissionToUpgradeTheErrorNamesBothFormatsAndTheFileStaysAsItIs() throws {
        for given in try all() {
            let original = try bytes(given.path)
            for access in [StoreOptions.Access.readWrite, .readOnly] {
                XCTAssertThrowsError(
                    try open(given.path) {
                        $0.allowsUpgrade = false; $0.access = access
                    }
                ) {
                    XCTAssertEqual($0 as? OpenError, .upgradeRequired(path: given.path, format: given.format))
                    XCTAssertTrue("\($0)".contains("format \(given.format) ") && "\($0)".contains("24"), "\($0)")
                }
            }
            XCTAssertThrowsError(try open(given.path) { $0.access = .readOnly })
            XCTAssertEqual(try bytes(given.path), original)
            XCTAssertFalse(exists(given.backup))
        }
    }

    func testAFormatTooOldIsRefusedWithTheNameOfTheReleasesThatCanUpgradeIt() throws {
        key = nil
        let given = try copy("migration-default-v0")
        var data = try bytes(given.path)
        data[20] = 9
        try data.write(to: URL(fileURLWithPath: given.path))
        XCTAssertThrowsError(try open(given.path)) {
            XCTAssertEqual($0 as? OpenError, .unsupportedFormat(path: given.path, format: 9))
            XCTAssertTrue("\($0)".contains("9 is too old") && "\($0)".contains("Realm Core 13"), "\($0)")
        }
        XCTAssertEqual(try bytes(given.path), data)
    }

    func testAFileOfASyncClientIsRefusedAndNoBackupIsMade() throws {
        key = nil
        let (folder, _) = try GivenFiles.older()
        let path = scratch.file("sync.realm")
        try FileManager.default.copyItem(atPath: folder + "/sync-client-history-refuse.realm", toPath: path)
        let original = try bytes(path)
        XCTAssertThrowsError(try open(path)) {
            XCTAssertEqual($0 as? OpenError, .incompatibleHistory(path: path, found: 3, expected: 2))
        }
        XCTAssertEqual(try bytes(path), original)
        XCTAssertFalse(exists(scratch.file("sync.v22.backup.realm")))
    }

    // MARK: Backups

    func testABackupThatIsThereStaysAndNoneIsMadeWhereNoneIsWanted() throws {
        let given = try copy("upgrade_11"), other = try copy("upgrade_20")
        try Data("mine".utf8).write(to: URL(fileURLWithPath: given.backup))
        try open(given.path).close()
        XCTAssertEqual(try bytes(given.backup), Data("mine".utf8))
        try assertIsUpgraded(given.path, given)
        try open(other.path) { $0.keepsBackups = false }.close()
        XCTAssertFalse(exists(other.backup))
        try assertIsUpgraded(other.path, other)
    }

    func testTheBackupIsReadableByThoseWhoMayReadTheFile() throws {
        let given = try copy("upgrade_1000_23")
        chmod(given.path, 0o600)
        try open(given.path).close()
        let mode = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: given.backup)[.posixPermissions] as? NSNumber)
        XCTAssertEqual(mode.uint16Value, 0o600)
    }

    func testAFileOfAFormatFromTheFutureIsReplacedByTheBackup() throws {
        key = nil
        let given = try copy("upgrade_1000_22")
        try open(given.path).close()
        var data = try bytes(given.path)
        data[20] = 25
        data[21] = 25
        try data.write(to: URL(fileURLWithPath: given.path))
        XCTAssertThrowsError(try open(given.path) { $0.keepsBackups = false }) {
            XCTAssertEqual($0 as? OpenError, .unsupportedFormat(path: given.path, format: 25))
            XCTAssertTrue("\($0)".contains("newer"), "\($0)")
        }
        try open(given.path).close()
        try assertIsUpgraded(given.path, given)
    }

    func testABackupIsRemovedAfter93DaysAndNotBefore() throws {
        let given = try copy("upgrade_1000_22")
        try open(given.path).close()
        func age(_ days: Double) throws {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -days * 86400)], ofItemAtPath: given.backup)
        }
        try age(92.9)
        try open(given.path).close()
        XCTAssertTrue(exists(given.backup))
        try age(93.1)
        try open(given.path).close()
        XCTAssertFalse(exists(given.backup))
    }

    func testAFullDiskOrAFolderInTheWayOfTheBackupDoesNotKeepTheFileFromBeingUpgraded() throws {
        let given = try copy("upgrade_1000_22")
        try FileManager.default.createDirectory(atPath: given.backup + ".part", withIntermediateDirectories: false)
        nonisolated(unsafe) var warnings: [String] = []
        // The file is in streaming form: the warning comes in the round before its conversion, too.
        try open(given.path) { $0.onWarning = { warnings.append($0) } }.close()
        XCTAssertTrue(warnings.contains { $0.contains(given.backup) }, "\(warnings)")
        try assertIsUpgraded(given.path, given)
    }

    // MARK: Encrypted

    func testAnEncryptedFileIsUpgradedAndItsBackupIsCiphertext() throws {
        key = nil
        for name in ["migration-default-v5", "downgrade_asymmetric"] {
            let given = try copy(name), path = scratch.file("\(name)-encrypted.realm"),
                key = try EncryptionKey(Data((0..<64).map { UInt8($0) }))
            let plain = try bytes(given.path)
            let backend = EncryptedFile(descriptor: try SystemCallsForTests.create(path), path: path, key: key)
            let file = try DatabaseFile(backend: backend)
            try backend.preallocate(to: plain.count)
            try plain.withUnsafeBytes { try backend.write($0, at: 0) }
            try backend.syncData()
            file.close()
            let original = try bytes(path)
            try open(path) { $0.encryptionKey = key }.close()
            try assertIsUpgraded(path, given, key: key)
            XCTAssertEqual(try bytes(String(path.dropLast(5)) + "v\(given.format).backup.realm"), original)
        }
    }

    // MARK: Several processes

    func testEightProcessesThatOpenAnOlderFileAtOnceUpgradeItOnce() throws {
        let processes = try (0..<8).map { _ in try TestProcess(key: key) }
        for name in [
            "upgrade_1000_22", "upgrade_1000_23", "upgrade_11", "upgrade_20", "sync-metadata-v6", "downgrade_asymmetric",
            "file-format-version-10",
        ] {
            let given = try copy(name)
            for process in processes { process.send("ledger-open \(given.path)") }
            for process in processes { XCTAssertEqual(process.line(), "ok", name) }
            let member = try open(given.path)
            let expected = try ImmutableFile(path: given.backup, key: key).group.version() + 1
            XCTAssertEqual(try member.newestVersion(), expected, "\(name): one commit and no more")
            try member.close()
            for process in processes { XCTAssertEqual(process.ask("ledger-close"), "ok", name) }
            try assertIsUpgraded(given.path, given)
        }
        processes.forEach { $0.finish() }
    }

    private static let killPoints = [
        "backup.copied", "backup.renamed", "open.counted", "C3.before", "C3.stored", "C5.before", "C7.before",
        "publish.before-newest",
        "publish.after-newest", "C7.after", "C9.before",
    ]

    func testAProcessKilledOnTheWayLeavesAFileThatTheNextOneUpgrades() throws {
        for point in Self.killPoints {
            let given = try copy("upgrade_1000_22", as: "killed-at-\(point)"), original = try bytes(given.path)
            let victim = try TestProcess(key: key)
            victim.ask("kill-at \(point)")
            XCTAssertEqual(victim.ask("ledger-open \(given.path)"), "gone", point)
            let left = try ImmutableFile(path: given.path, key: key)
            if left.layout.format == 24 {
                try assertIsUpgraded(given.path, given, point)
            } else {
                XCTAssertEqual(left.layout.format, given.format, point)
                XCTAssertTrue(try Verifier.verify(left).isSound, point)
            }
            try open(given.path).close()
            try assertIsUpgraded(given.path, given, point)
            XCTAssertEqual(try bytes(given.backup), original, point)
        }
    }

    /// The header says 24 already, the newest version of the session is still of format 22, and its process will never publish
    /// more.
    func testWhoJoinsWhileAnUpgradeDiesBetweenHeaderAndVersionListUpgradesTheFile() throws {
        key = nil
        for access in ["second", "third"] {
            let given = try copy("upgrade_1000_22", as: "joined-\(access)")
            let first = try TestProcess(), second = try TestProcess()
            first.ask("stop-at C7.before")
            first.send("ledger-open \(given.path)")
            let limit = Date().addingTimeInterval(TestTime.limit(20))
            func headerIsAhead() throws -> Bool {
                let header = try bytes(given.path)
                return header[20] == 24 && header[23] & 1 == 0
            }
            while try !headerIsAhead(), Date() < limit { usleep(2000) }
            XCTAssertTrue(try headerIsAhead())
            second.send("ledger-open \(given.path)")
            usleep(50_000)
            first.kill()
            XCTAssertEqual(second.line(), "ok")
            if access == "third" {
                let third = try TestProcess()
                XCTAssertEqual(third.ask("ledger-open \(given.path)"), "ok")
                third.finish()
            }
            second.finish()
            try assertIsUpgraded(given.path, given, access)
        }
    }
}

private enum SystemCallsForTests {
    static func create(_ path: String) throws -> Int32 {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        if descriptor < 0 { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        return descriptor
    }
}
