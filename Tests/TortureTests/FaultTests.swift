import Foundation
import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Every system call of everything that is done to files fails once, with all the errors that disks, quotas and odd file systems
/// have: a clear error of a known type that names the file, the version before it intact, and the session usable afterwards.
///
/// The quick form goes once through all calls with the errors in turn; the long form, `Scripts/faults`, takes every error at
/// every call.
class FaultTests: XCTestCase {
    var key: EncryptionKey? { nil }
    private var scratch = ScratchDirectory("fault")
    private static let isLong = ProcessInfo.processInfo.environment["FAULTS_LONG"] != nil
    private static let codes = [ENOSPC, EIO, EDQUOT, EPERM, EOPNOTSUPP, ENODEV, ENOLCK, EACCES, ENOMEM]
    private var path: String { scratch.file("a.realm") }

    private func options(_ change: (inout StoreOptions) -> Void = { _ in }) -> StoreOptions {
        var options = StoreOptions()
        options.encryptionKey = key
        change(&options)
        return options
    }

    private func makeTable(_ store: Store) throws {
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("value", .int)
            try table.addColumn("data", .binary, .nullable)
            try table.set("value", of: table.createObject(), to: .int(1))
        }
    }

    private func add(_ store: Store, data: Int = 0) throws {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Thing")
            try table.add(table.column(named: "value"), of: ObjectKey(0), 1)
            if data > 0 { try table.set("data", of: ObjectKey(0), to: .binary([UInt8](repeating: 7, count: data))) }
        }
    }

    private func value(_ store: Store) throws -> Int64 {
        try store.look {
            let table = try XCTUnwrap(try $0.group.table(named: "class_Thing"))
            return try XCTUnwrap(try table.find(ObjectKey(0))).int(XCTUnwrap(table.column(named: "value")))
        }
    }

    private func value(_ path: String) throws -> Int64? {
        let file = try ImmutableFile(path: path, key: key)
        guard let table = try file.group.table(named: "class_Thing") else { return nil }
        return try XCTUnwrap(try table.find(ObjectKey(0))).int(XCTUnwrap(table.column(named: "value")))
    }

    private func assertSound(_ path: String, _ message: String) throws {
        let report = try Verifier.verify(try ImmutableFile(path: path, key: key))
        XCTAssertTrue(report.isSound, "\(message): \(report.findings.prefix(3).map(\.description))")
    }

    private struct NotDone: Error {}

    /// One of the types that callers are told of, in one line that names the file or its directory.
    private func assertClear(_ error: any Error, _ place: String) {
        var error = error
        if let committed = error as? CommittedError { error = committed.underlying }
        XCTAssertTrue(
            error is OpenError || error is SessionError || error is SystemError || error is AddressSpaceError,
            "\(place): \(type(of: error)) \(error)")
        XCTAssertTrue("\(error)".contains(scratch.path) && !"\(error)".contains("\n"), "\(place): \(error)")
    }

    /// Sweeps the calls of this thread that concern files of the test, or memory for them.
    private func sweep<State>(
        _ name: String, least: Int, prepare: (Int) throws -> State, _ body: (State) throws -> Void,
        check: (State, _ failed: String, (any Error)?) throws -> Void
    ) throws {
        for code in Self.isLong ? Self.codes.map({ [$0] }) : [Self.codes] {
            let thread = pthread_self()
            var failed = "", count = 0, failing = 0
            // In the quick form calls of one kind on one file are all the same after some.
            var seen: [String: Int] = [:]
            let rounds = try sweepFaults(
                codes: code,
                selects: { [scratch] call in
                    guard pthread_equal(pthread_self(), thread) != 0, call.path.hasPrefix(scratch.path) else { return false }
                    let call = "\(call.name) \(call.path.dropFirst(scratch.path.utf8.count))"
                    seen[call, default: 0] += 1
                    if !Self.isLong && seen[call, default: 0] > 5 { return false }
                    count += 1
                    if count == failing { failed = call }
                    return true
                },
                prepare: { round in
                    let state = try prepare(round)
                    (count, failing, failed, seen) = (0, round + 1, "", [:])
                    return state
                }, body
            ) { state, error in
                let place = "\(name), call \(failing): \(failed): \(String(cString: strerror(code[(failing - 1) % code.count])))"
                if let error { self.assertClear(error, place) }
                try check(state, place, error)
            }
            XCTAssertGreaterThanOrEqual(rounds, least, name)
            if Self.isLong { print("\(name), \(String(cString: strerror(code[0]))): \(rounds) calls") }
        }
    }

    private func names() throws -> Set<String> { Set(try FileManager.default.contentsOfDirectory(atPath: scratch.path)) }
    private static let sideFiles: Set<String> = ["a.realm", "a.realm.lock", "a.realm.note", "a.realm.management"]

    private func assertNothingElseIsLeft(_ others: Set<String>, _ place: String) throws {
        let more = try names().subtracting(Self.sideFiles).subtracting(others)
        XCTAssertTrue(more.isEmpty, "\(place): \(more)")
    }

    // MARK: Opening

    func testOpeningANewFile() throws {
        try sweep(
            "new file", least: 12,
            prepare: { _ in
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
            }, { try Store.open(path, options()).close() }
        ) { _, place, error in
            // The next one finds an empty database, or makes one.
            let store = try Store.open(path, options())
            XCTAssertEqual(store.participant?.lockFile.participantCount, 1, place)
            try makeTable(store)
            try store.close()
            try assertSound(path, place)
            try assertNothingElseIsLeft([], place)
        }
    }

    func testOpeningAFileAloneAndBesideOthers() throws {
        let first = try Store.open(path, options())
        try makeTable(first)
        try first.close()
        for isJoining in [false, true] {
            let other = isJoining ? try Store.open(path, options()) : nil
            try sweep(
                isJoining ? "joining" : "opening", least: 10, prepare: { _ in }, { try Store.open(path, options()).close() }
            ) { _, place, _ in
                if let other {
                    XCTAssertEqual(other.participant?.lockFile.participantCount, 1, place)
                    let before = try value(other)
                    try add(other)
                    XCTAssertEqual(try value(other), before + 1, place)
                }
                let store = try Store.open(path, options())
                try add(store)
                try store.close()
            }
            try other?.close()
        }
        try assertSound(path, "opening")
    }

    func testOpeningForReadingOnlyMakesNothing() throws {
        let first = try Store.open(path, options())
        try makeTable(first)
        try first.close()
        for name in try names() where name != "a.realm" { try FileManager.default.removeItem(atPath: scratch.file(name)) }
        try sweep(
            "immutable", least: 3, prepare: { _ in },
            {
                let store = try Store.open(path, options { $0.access = .immutable })
                XCTAssertEqual(try value(store), 1)
            }
        ) { _, place, _ in XCTAssertEqual(try names(), ["a.realm"], place) }
    }

    // MARK: Transactions

    func testCommitsSmallAndGrowing() throws {
        for durability in [Durability.full, .unsafe] {
            for data in [0, 300_000] {
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
                let store = try Store.open(path, options { $0.durability = durability })
                try makeTable(store)
                var expected: Int64 = 1
                // Without syncs a commit makes no call but for the FIFO, and for room.
                try sweep(
                    "commit of \(data) bytes, \(durability)", least: durability == .full ? 4 : 1, prepare: { $0 },
                    {
                        try add(store, data: data == 0 ? 0 : data + $0 * 20_000)
                    }
                ) { _, place, error in
                    if error == nil || error is CommittedError { expected += 1 }
                    XCTAssertEqual(try value(store), expected, place)
                    XCTAssertTrue([expected, expected + 1].contains(try value(path)), "\(place): the file itself")
                    // The session goes on.
                    try add(store)
                    expected += 1
                    XCTAssertEqual(try value(store), expected, place)
                    XCTAssertEqual(try value(path), expected, place)
                    try assertSound(path, place)
                }
                try store.close()
            }
        }
    }

    func testBatchesRollbacksAndVersionsThatAreHeld() throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        var expected: Int64 = 1
        try sweep(
            "batch", least: 6, prepare: { _ in },
            {
                let frozen = try store.freeze()
                defer { frozen.end() }
                let transaction = try store.beginWrite()
                defer { if transaction.isOpen { transaction.rollback() } }
                for _ in 0..<3 {
                    let table = try transaction.editor.editor(named: "class_Thing")
                    try table.add(table.column(named: "value"), of: ObjectKey(0), 1)
                    try transaction.commitAndContinue(syncing: false)
                    expected += 1
                }
                try transaction.sync()
            }
        ) { _, place, error in
            if error is CommittedError { expected += 1 }
            XCTAssertEqual(try value(store), expected, place)
            try add(store)
            expected += 1
            XCTAssertEqual(try value(path), expected, place)
            try assertSound(path, place)
            XCTAssertLessThanOrEqual(try XCTUnwrap(store.status()).versions.count, 2, "\(place): a version is still held")
        }
        try store.close()
    }

    func testACloseThatFailsLeavesNobodyCounted() throws {
        let other = try Store.open(path, options())
        try makeTable(other)
        try sweep("close", least: 0, prepare: { _ in try Store.open(path, options()) }, { try $0.close() }) { store, place, _ in
            try? store.close(force: true)
            XCTAssertEqual(other.participant?.lockFile.participantCount, 1, place)
        }
        try other.close()
    }

    // MARK: What replaces and copies files

    func testCompaction() throws {
        let first = try Store.open(path, options())
        try makeTable(first)
        try add(first, data: 50_000)
        try first.close()
        try sweep(
            "compaction", least: 12,
            prepare: { _ in
                let store = try Store.open(path, options())
                try add(store)
                return (store, try value(store))
            }, { if try !$0.0.compact() { throw NotDone() } }
        ) { state, place, error in
            let (store, expected) = state
            XCTAssertEqual(try value(path), expected, place)
            if (try? store.newestVersion()) != nil {
                try add(store)
                XCTAssertEqual(try value(path), expected + 1, place)
            }
            try? store.close(force: true)
            try assertSound(path, place)
            let again = try Store.open(path, options())
            try add(again)
            try again.close()
            try assertNothingElseIsLeft([], place)
        }
    }

    func testACopy() throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        let copy = scratch.file("copy.realm")
        try sweep(
            "copy", least: 6, prepare: { _ in try? FileManager.default.removeItem(atPath: copy) },
            {
                try store.look {
                    try StreamingCopy(version: $0.version, keepsHistory: true).write($0.group, toPath: copy, key: key)
                }
            }
        ) { _, place, error in
            if FileManager.default.fileExists(atPath: copy) {
                XCTAssertEqual(try value(copy), 1, place)
            } else {
                XCTAssertNotNil(error, place)
            }
            try assertNothingElseIsLeft(["copy.realm"], place)
        }
        try add(store)
        try store.close()
    }

    func testTheInstallationOfASeed() throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        try store.close()
        let installed = scratch.file("installed.realm")
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        try sweep(
            "seed", least: 6, prepare: { _ in try? FileManager.default.removeItem(atPath: installed) },
            {
                if try !SeedFile.install(path, to: installed) { throw NotDone() }
            }
        ) { _, place, error in
            if FileManager.default.fileExists(atPath: installed) {
                XCTAssertEqual(try value(installed), 1, place)
            } else {
                XCTAssertNotNil(error, place)
            }
            try assertNothingElseIsLeft(["installed.realm"], place)
            XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before, place)
        }
    }

    func testAChangeOfKeyAndADeletion() throws {
        let other = try EncryptionKey((0..<64).map { UInt8($0 + 100) })
        try sweep(
            "rekey", least: 10,
            prepare: { _ in
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
                let store = try Store.open(path, options())
                try makeTable(store)
                try store.close()
            }, { try StoreFiles.changeKey(path, from: key, to: other) }
        ) { _, place, error in
            let isOld = (try? value(path)) == 1
            // Only the sync of the directory comes after the file has its new key.
            XCTAssertTrue(isOld || error == nil || place.contains(": open :") || place.contains(": fsync :"), place)
            if isOld { try StoreFiles.changeKey(path, from: key, to: other) }
            XCTAssertNoThrow(try ImmutableFile(path: path, key: other), place)
            try assertNothingElseIsLeft([], place)
        }
        try sweep(
            "deletion", least: 4,
            prepare: { _ in
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
                let store = try Store.open(path, options())
                try makeTable(store)
                try store.close()
            }, { try StoreFiles.delete(path) }
        ) { _, place, error in
            // Nobody is locked out, and calling again deletes.
            try StoreFiles.delete(path)
            XCTAssertEqual(try names(), ["a.realm.lock"], place)
        }
    }

    func testAnImport() throws {
        let json = Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/primary-keys.json")))
        try sweep(
            "import", least: 6,
            prepare: { _ in
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
                return try Store.open(path, options())
            },
            { store in
                try store.write { transaction in
                    try json.withUnsafeBytes { try JSONImporter(text: $0, target: Target(transaction.editor)).run() }
                }
            }
        ) { store, place, error in
            let count = try store.look { $0.group.tableCount }
            XCTAssertEqual(count == 0, error != nil && !(error is CommittedError), place)
            if count == 0 { try makeTable(store) }
            try store.close()
            try assertSound(path, place)
        }
    }

    private final class Target: ImportTarget {
        let group: GroupEditor
        init(_ group: GroupEditor) { self.group = group }
        func checkpoint(progress: ImportProgress) {}
    }

    func testAnUpgrade() throws {
        guard let older = Fixtures.older else {
            throw XCTSkip("the files of older formats are not beside the package; failures of their upgrade were not tried")
        }
        if key != nil { return }
        let given = try Data(contentsOf: URL(fileURLWithPath: older + "/upgrade_20.realm"))
        var expected: [UInt8] = []
        try sweep(
            "upgrade", least: 20,
            prepare: { _ in
                for name in try names() { try FileManager.default.removeItem(atPath: scratch.file(name)) }
                XCTAssertTrue(FileManager.default.createFile(atPath: path, contents: given))
                if expected.isEmpty {
                    let store = try Store.open(path, options())
                    expected = try store.look { try JSONExporter.text($0.group) }
                    try store.close()
                    XCTAssertTrue(FileManager.default.createFile(atPath: path, contents: given))
                    try? FileManager.default.removeItem(atPath: StoreFiles.backupPath(path, ofFormat: 20))
                }
            }, { try Store.open(path, options()).close() }
        ) { _, place, _ in
            let store = try Store.open(path, options())
            XCTAssertTrue(try store.look { try JSONExporter.text($0.group) } == expected, place)
            try store.close()
            try assertSound(path, place)
            let backup = StoreFiles.backupPath(path, ofFormat: 20)
            // Where the first attempt at a backup failed, the next one is of the file in the same format, converted from
            // streaming form.
            if FileManager.default.fileExists(atPath: backup) {
                let file = try ImmutableFile(path: backup)
                XCTAssertEqual(file.layout.format, 20, place)
                XCTAssertTrue(try Verifier.verify(file).isSound, place)
            }
            XCTAssertFalse(FileManager.default.fileExists(atPath: backup + ".part"), place)
        }
    }
}

/// The same over encrypted files.
final class EncryptedFaultTests: FaultTests {
    private static let testKey = try? EncryptionKey((0..<64).map { UInt8($0) })
    override var key: EncryptionKey? { Self.testKey }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
