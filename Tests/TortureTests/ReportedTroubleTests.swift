import Foundation
import Glibc
@testable import SharedStore
import Synchronization
import SystemCalls
import TestSupport
import XCTest

/// Troubles that users of such software report, each tried as a whole kind; `Documentation/reported-troubles.md` says where the
/// others are.
class ReportedTroubleTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private let scratch = ScratchDirectory("trouble")
    private var path: String { scratch.file("a.realm") }
    /// `Scripts/dead-reader` makes 20,000 commits instead of some hundred.
    private static let examCommits = ProcessInfo.processInfo.environment["DEAD_READER_COMMITS"].flatMap { Int($0) } ?? 700

    private func options(_ change: (inout StoreOptions) -> Void = { _ in }) -> StoreOptions {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = key
        change(&options)
        return options
    }

    private func makeTable(_ store: Store, rows: Int = 1, text: Int = 10) throws {
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("number", .int)
            try table.addColumn("text", .string)
            for i in 0..<rows {
                let key = try table.createObject()
                try table.set("number", of: key, to: .int(Int64(i)))
                try table.set("text", of: key, to: .string(String(repeating: "t", count: text)))
            }
            try transaction.editor.setSchemaVersion(7)
        }
    }

    private func size() throws -> Int { try SystemCalls.status(path: path).size }

    // MARK: Dead, stopped and hasty peers

    /// A reader holds a version and is killed; 100 records of 1 KB are overwritten again and again. The file has half a MB at
    /// most (it grows in steps, each twice the one before), however many commits follow, and however fast.
    func testTheFileStaysSmallThoughAReaderDiedWithAVersionInItsHands() throws {
        var sizes: [Int] = []
        for hasReader in [false, true] {
            for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) {
                try FileManager.default.removeItem(atPath: scratch.file(name))
            }
            let store = try Store.open(path, options())
            try makeTable(store, rows: 100, text: 1000)
            if hasReader {
                let reader = try TestProcess(key: key)
                XCTAssertTrue(reader.ask("open \(path) durability=unsafe").hasPrefix("ok"))
                XCTAssertTrue(reader.ask("live").hasPrefix("ok"))
                reader.kill()
            }
            for i in 0..<Self.examCommits {
                try store.write { transaction in
                    let table = try transaction.editor.editor(named: "class_Thing")
                    guard let row = try table.table.object(at: i % 100) else { return }
                    try table.set("text", of: row.key, to: .string(String(repeating: i % 2 == 0 ? "u" : "v", count: 1000)))
                }
            }
            try store.close()
            sizes.append(try size())
            let report = try Verifier.verify(try ImmutableFile(path: path, key: key))
            XCTAssertTrue(report.isSound && report.findings.isEmpty)
        }
        print(
            "\(Self.examCommits) overwrites of 100 records of 1 KB: \(sizes[0]) bytes without a reader, \(sizes[1]) with one that died"
        )
        XCTAssertLessThanOrEqual(sizes[1], key == nil ? 1 << 19 : PageGeometry.fileSize(plain: 1 << 19))
    }

    func testWritersThatAreStoppedAndContinuedAtRandomGoOnCommitting() throws {
        var random = SplitMix(seed: 8)
        let anchor = try TestProcess(key: key)
        XCTAssertEqual(anchor.ask("ledger-open \(path)"), "ok")
        anchor.ask("ledger-setup")
        let writers = try (0..<3).map { _ in try TestProcess(key: key) }
        for writer in writers {
            XCTAssertEqual(writer.ask("ledger-open \(path)"), "ok")
            writer.send("ledger-storm 20 \(random.next() % 1000)")
        }
        for _ in 0..<20 {
            let writer = writers[Int(random.next() % 3)]
            writer.stop()
            usleep(UInt32(5_000 + random.next() % 60_000))
            writer.resume()
            usleep(UInt32(random.next() % 20_000))
        }
        // Whatever was said until now is read away: what comes after it was committed after the last stop.
        for (i, writer) in writers.enumerated() {
            while writer.line(within: 0.001) != nil {}
            XCTAssertNotNil(writer.line(within: 10), "writer \(i) does not go on")
        }
        writers.forEach { $0.kill() }
        XCTAssertTrue(anchor.ask("ledger-check").hasPrefix("ok"))
        XCTAssertEqual(anchor.ask("ledger-verify"), "ok")
        anchor.finish()
    }

    func testWhoOpensAFileThatAnotherJustCreatesFindsAWholeDatabase() throws {
        let first = try TestProcess(key: key), second = try TestProcess(key: key)
        for round in 0..<25 {
            let file = scratch.file("race-\(round).realm")
            first.send("ledger-open \(file) durability=unsafe")
            usleep(UInt32(round * 40))
            second.send("ledger-open \(file) durability=unsafe")
            XCTAssertEqual(first.line(), "ok", "round \(round)")
            first.send("ledger-setup")
            XCTAssertEqual(second.line(), "ok", "round \(round)")
            XCTAssertTrue(first.line()?.hasPrefix("ok") ?? false, "round \(round)")
            XCTAssertEqual(second.ask("ledger-commit 1 \(round)"), "ok 1", "round \(round)")
            XCTAssertEqual(second.ask("ledger-verify"), "ok")
            XCTAssertEqual(first.ask("ledger-close"), "ok")
            XCTAssertEqual(second.ask("ledger-close"), "ok")
        }
    }

    // MARK: Growth

    func testAReaderFollowsAFileThatGrowsAndShrinks() throws {
        let writer = try Store.open(path, options())
        try makeTable(writer)
        let reader = try Store.open(path, options { $0.access = .readOnly })
        let live = try reader.beginRead()
        var held: ReadTransaction?
        for round in 0..<24 {
            try writer.write { transaction in
                let table = try transaction.editor.editor(named: "class_Thing")
                if round % 12 < 8 {
                    for _ in 0..<40 {
                        try table.set("text", of: table.createObject(), to: .string(String(repeating: "g", count: 16_000)))
                    }
                } else {
                    for _ in 0..<min(80, table.table.objectCount - 1) {
                        if let row = try table.table.object(at: table.table.objectCount - 1) { try table.deleteObject(row.key) }
                    }
                }
            }
            XCTAssertTrue(try live.refresh())
            if round % 7 == 3 { held = try live.freeze() }
            for transaction in [live, held].compactMap({ $0 }) {
                let table = try XCTUnwrap(try transaction.group.table(named: "class_Thing"))
                let text = try XCTUnwrap(table.column(named: "text"))
                var total = 0
                try table.forEachObject { total += try $0.stringBytes(text)?.count ?? 0 }
                XCTAssertEqual(total, 10 + 16_000 * (table.objectCount - 1), "round \(round), version \(transaction.version)")
            }
        }
        held?.end()
        live.end()
        try reader.close()
        try writer.close()
        XCTAssertTrue(try Verifier.verify(try ImmutableFile(path: path, key: key)).isSound)
    }

    func testTheCompactionOfOneFileDoesNotHoldUpAnother() throws {
        #if DEBUG
        let large = try Store.open(path, options())
        try makeTable(large, rows: 200, text: 100)
        let begun = DispatchSemaphore(value: 0), mayGoOn = DispatchSemaphore(value: 0), done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var isCompacted = false
        let hasWaited = Atomic(false)
        defer { SystemCallInterception.hook = nil }
        // The compaction stands still in its first write until the other file was opened, written and closed.
        SystemCallInterception.hook = { call in
            if call.name == "pwrite64" && call.path.hasSuffix(".tmp_compaction_space"),
                !hasWaited.exchange(true, ordering: .relaxed)
            {
                begun.signal()
                _ = mayGoOn.wait(timeout: .now() + TestTime.limit(20))
            }
            return nil
        }
        Thread.detachNewThread {
            isCompacted = (try? large.compact()) ?? false
            done.signal()
        }
        XCTAssertEqual(begun.wait(timeout: .now() + TestTime.limit(20)), .success)
        let other = try Store.open(scratch.file("other.realm"), options())
        try makeTable(other)
        try other.close()
        mayGoOn.signal()
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(20)), .success)
        XCTAssertTrue(isCompacted)
        try large.close()
        #endif
    }

    func testACompactedFileHasTheSameSchemaVersionFormatAndHistory() throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        let before = try store.look { ($0.version, try $0.group.schema(), try $0.group.historyType()) }
        XCTAssertTrue(try store.compact())
        try store.close()
        // Not upgraded, not migrated: refused where either would be needed.
        let again = try Store.open(path, options { $0.allowsUpgrade = false })
        let after = try again.look { ($0.version, try $0.group.schema(), try $0.group.historyType()) }
        XCTAssertEqual(after.0, before.0)
        XCTAssertEqual(after.1, before.1)
        XCTAssertEqual(after.2, before.2)
        try again.close()
    }

    // MARK: Seeds and odd file systems

    func testASeedThatIsMissingOrNoFileIsAnErrorAndNoFileAppears() throws {
        XCTAssertThrowsError(try SeedFile.install(scratch.file("none.realm"), to: path)) {
            XCTAssertEqual($0 as? OpenError, .fileNotFound(path: scratch.file("none.realm")))
        }
        XCTAssertThrowsError(try SeedFile.install(scratch.path, to: path)) {
            XCTAssertEqual($0 as? OpenError, .isDirectory(path: scratch.path))
        }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), [])
    }

    func testWhereFilesCannotBeLockedTheErrorSaysSoAndTheFileIsReadAsItIs() throws {
        #if DEBUG
        let store = try Store.open(path, options())
        try makeTable(store)
        try store.close()
        defer { SystemCallInterception.hook = nil }
        for code in [ENOLCK, EOPNOTSUPP, EINVAL] {
            SystemCallInterception.hook = { $0.name == "flock" ? code : nil }
            XCTAssertThrowsError(try Store.open(path, options())) { error in
                guard case SessionError.sideFile(path + ".lock", let reason, _) = error else { return XCTFail("\(error)") }
                XCTAssertTrue(reason.contains("lock"), reason)
            }
            let alone = try Store.open(path, options { $0.access = .immutable })
            XCTAssertEqual(try alone.look { $0.group.tableNames }.contains("class_Thing"), true)
            try alone.close()
        }
        #endif
    }

    func testTwoEncryptedFilesNeverShareDecryptedPagesThoughOneTookTheOthersInode() throws {
        let first = try EncryptionKey((0..<64).map { UInt8($0) }), second = try EncryptionKey((0..<64).map { UInt8($0 + 9) })
        let a = try Store.open(path, options { $0.encryptionKey = first })
        try makeTable(a, rows: 3)
        let reader = try a.beginRead()
        // The name goes, another file takes it, perhaps with the number of the inode of a third one that was deleted.
        try SystemCalls.unlink(path)
        try SystemCalls.unlink(path + ".lock")
        for _ in 0..<3 {
            let b = try Store.open(path, options { $0.encryptionKey = second })
            try makeTable(b, rows: 5)
            XCTAssertEqual(try b.look { try $0.group.table(named: "class_Thing")?.objectCount }, 5)
            XCTAssertEqual(try reader.group.table(named: "class_Thing")?.objectCount, 3)
            try b.close()
            for name in [path, path + ".lock"] { try SystemCalls.unlink(name) }
        }
        reader.end()
        try? a.close(force: true)
    }
}

/// The same over encrypted files.
final class EncryptedReportedTroubleTests: ReportedTroubleTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
