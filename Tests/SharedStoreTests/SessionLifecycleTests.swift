import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// Compaction in place, and leaving in bad company.
class SessionLifecycleTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }

    override func setUp() { scratch = ScratchDirectory("lifecycle") }
    override func tearDown() { scratch = nil }

    private func options() -> StoreOptions {
        var options = StoreOptions()
        options.encryptionKey = key
        return options
    }

    private func participant() throws -> TestProcess {
        let process = try TestProcess(key: key)
        XCTAssertEqual(process.ask("ledger-open \(path)"), "ok")
        return process
    }

    private func size() throws -> Int { try SystemCalls.status(path: path).size }

    private func assertFileIsSound(_ message: String = "", line: UInt = #line) throws {
        let report = try Verifier.verify(try ImmutableFile(path: path, key: key))
        XCTAssert(
            report.isSound && report.findings.isEmpty, "\(message) \(report.findings.prefix(3).map(\.description))", line: line)
    }

    /// A ledger with much free space.
    private func makeLooseFile() throws {
        let process = try participant()
        process.ask("ledger-setup 20000")
        process.ask("ledger-commit 60 1")
        process.ask("ledger-close")
    }

    // MARK: Compaction

    /// Recipe 31, among ourselves.
    func testCompactionMakesTheFileSmallAndItsContentStays() throws {
        try makeLooseFile()
        let before = try size()
        let process = try participant()
        XCTAssertEqual(process.ask("ledger-check"), "ok 62 60")
        XCTAssertEqual(process.ask("ledger-compact"), "ok true")
        XCTAssertLessThan(try size(), before * 9 / 10)
        XCTAssertEqual(process.ask("ledger-check"), "ok 62 60")
        XCTAssertEqual(process.ask("ledger-commit 5 2"), "ok 65")
        let other = try participant()
        XCTAssertEqual(other.ask("ledger-check"), "ok 67 65")
        XCTAssertEqual(other.ask("ledger-commit 1 3"), "ok 66")
        XCTAssertEqual(process.ask("ledger-check"), "ok 68 66")
        XCTAssertEqual(process.ask("ledger-compact"), "ok false", "another participant")
        other.finish()
        process.ask("ledger-hold live")
        XCTAssertEqual(process.ask("ledger-compact"), "ok false", "a transaction is open")
        process.ask("ledger-release")
        XCTAssertEqual(process.ask("ledger-compact"), "ok true")
        process.finish()
        XCTAssertFalse(FileManager.default.fileExists(atPath: path + ".tmp_compaction_space"))
        try assertFileIsSound()
    }

    func testAnEncryptedFileStaysEncryptedThroughCompaction() throws {
        let key = try EncryptionKey((0..<64).map { UInt8($0) })
        var options = StoreOptions()
        options.encryptionKey = key
        let store = try Store.open(path, options)
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("value", .int)
            for i in 0..<5000 { try table.setInt(table.column(named: "value"), of: table.createObject(), to: Int64(i) << 40) }
        }
        for _ in 0..<3 {
            try store.write { try $0.editor.editor(named: "class_Thing").deleteObject(ObjectKey(Int64($0.baseVersion))) }
        }
        XCTAssertTrue(try store.compact())
        let reader = try store.beginRead()
        XCTAssertEqual(try reader.group.table(named: "class_Thing")?.objectCount, 4997)
        reader.end()
        try store.write {
            let table = try $0.editor.editor(named: "class_Thing")
            try table.deleteObject(XCTUnwrap(table.table.object(at: 4000)).key)
        }
        try store.close()
        XCTAssertThrowsError(try ImmutableFile(path: path))
        let file = try ImmutableFile(path: path, key: key)
        XCTAssertEqual(try file.group.table(named: "class_Thing")?.objectCount, 4996)
        XCTAssertTrue(try Verifier.verify(file).isSound)
    }

    func testAKilledParticipantDoesNotStandInTheWayOfCompaction() throws {
        try makeLooseFile()
        let process = try participant(), victim = try participant()
        victim.ask("ledger-hold frozen")
        XCTAssertEqual(process.ask("ledger-compact"), "ok false")
        victim.kill()
        XCTAssertEqual(process.ask("ledger-compact"), "ok true")
        XCTAssertEqual(process.ask("ledger-verify"), "ok")
        process.finish()
    }

    func testAKillAtAnyStepOfCompactionLeavesAWholeFileEvenToThoseWhoWait() throws {
        for point in ["compact.copied", "compact.uncounted", "compact.renamed", "compact.reset"] {
            try makeLooseFile()
            let victim = try participant()
            victim.ask("stop-at \(point)")
            victim.send("ledger-compact")
            // Stopped while it holds the control mutex: the opener waits for it when the kill comes.
            while victim.state() != "T" { usleep(1000) }
            let waiter = try TestProcess(key: key)
            waiter.send("ledger-open \(path)")
            XCTAssertNil(waiter.line(within: 0.1), point)
            victim.kill()
            XCTAssertEqual(waiter.line(), "ok", point)
            XCTAssertEqual(waiter.ask("ledger-check"), "ok 62 60", point)
            XCTAssertEqual(waiter.ask("ledger-commit 3 1"), "ok 63", point)
            XCTAssertEqual(waiter.ask("ledger-verify"), "ok", point)
            XCTAssertEqual(waiter.ask("ledger-compact"), "ok true", point)
            waiter.finish()
            try assertFileIsSound(point)
            try StoreFiles.delete(path)
        }
    }

    func testAnyFailingSystemCallOfCompactionLeavesAWholeFile() throws {
        #if DEBUG
        defer { SystemCallInterception.hook = nil }
        let me = pthread_self()
        var n = 0
        var wasRefused = true
        while wasRefused {
            n += 1
            let store = try Store.open(path, options())
            if try store.newestVersion() == 1 { try store.write { _ = try $0.editor.createTable("class_Thing") } }
            let version = try store.newestVersion()
            var calls = 0
            var failed = ""
            SystemCallInterception.hook = { call in
                guard pthread_equal(pthread_self(), me) != 0 else { return nil }
                calls += 1
                if calls != n { return nil }
                failed = call.name
                return EIO
            }
            let result = Result { try store.compact() }
            SystemCallInterception.hook = nil
            wasRefused = calls >= n
            if case .failure(let error) = result { XCTAssert("\(error)".contains(scratch.path), "\(failed): \(error)") }
            try store.close(force: true)
            let again = try Store.open(path, options())
            XCTAssertEqual(try again.newestVersion(), version, failed)
            XCTAssertEqual(try again.look { $0.group.tableNames }, ["class_Thing"], failed)
            try again.close()
            try assertFileIsSound(failed)
        }
        XCTAssertGreaterThan(n, 8)
        #endif
    }

    func testReadersOfOtherThreadsWaitForACompactionAndThenSeeTheNewFile() throws {
        let store = try Store.open(path, options())
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("value", .int)
            for i in 0..<500 { try table.set("value", of: table.createObject(), to: .int(Int64(i))) }
        }
        let results = (0..<2).map { _ in Results() }
        let finished = Results()
        let threads = results.map { result in
            Thread {
                while !finished.isSet {
                    do {
                        let reader = try store.beginRead()
                        if try reader.group.table(named: "class_Thing")?.objectCount != 500 { result.fail("wrong count") }
                        reader.end()
                    } catch { result.fail("\(error)") }
                    usleep(200)
                }
                result.set()
            }
        }
        threads.forEach { $0.start() }
        var compactions = 0
        for _ in 0..<200 where try store.compact() { compactions += 1 }
        finished.set()
        while results.contains(where: { !$0.isSet }) { usleep(1000) }
        XCTAssertEqual(results.compactMap(\.failure), [])
        XCTAssertGreaterThan(compactions, 0)
        try store.close()
        try assertFileIsSound()
    }

    private final class Results: @unchecked Sendable {
        // Sendable: behind a lock.
        private let lock = NSLock()
        private var done = false
        private var text: String?
        func set() { lock.withLock { done = true } }
        func fail(_ why: String) { lock.withLock { text = text ?? why } }
        var isSet: Bool { lock.withLock { done } }
        var failure: String? { lock.withLock { text } }
    }

    // MARK: Leaving

    func testClosingWhileAStoppedPeerHoldsTheSessionEndsInTimeAndIsSweptLater() throws {
        let peer = try TestProcess(key: key)
        peer.ask("open \(path)")
        var options = ParticipantOptions()
        options.encryptionKey = key
        options.waitLimit = .milliseconds(100)
        let ours = try Participant.open(path, options)
        let lock = try ours.acquireNewest(.live)
        XCTAssertEqual(peer.ask("lock control"), "ok clean")
        peer.stop()
        try ours.close(force: true)
        ours.release(lock)
        peer.resume()
        XCTAssertEqual(peer.ask("unlock control"), "ok")
        let limit = Deadline.after(.seconds(TestTime.limit(20)))
        while peer.ask("counts") != "ok participants=1 latest=1 tickets=0/0" && !limit.hasPassed { usleep(10_000) }
        XCTAssertEqual(peer.ask("counts"), "ok participants=1 latest=1 tickets=0/0")
    }

    /// Recipe 30: a child program does not keep a dead participant's session alive.
    func testAChildProgramInheritsNothing() throws {
        let process = try TestProcess(key: key)
        process.ask("open \(path)")
        let child = process.ask("spawn-sleep")
        XCTAssert(child.hasPrefix("ok "))
        process.kill()
        defer { kill(pid_t(child.dropFirst(3)) ?? 0, SIGKILL) }
        XCTAssertEqual(kill(pid_t(child.dropFirst(3)) ?? 0, 0), 0, "the child lives")
        XCTAssertTrue(try StoreFiles.withExclusiveAccess(path) { true } ?? false)
    }

    func testExitWhileThreadsCommitIsAQuietEnd() throws {
        let anchor = try participant()
        anchor.ask("ledger-setup")
        for _ in 0..<10 {
            let process = try participant()
            process.send("ledger-exit-amid-commits")
            XCTAssertEqual(process.waitUntilGone(), 0)
        }
        XCTAssert(anchor.ask("ledger-check").hasPrefix("ok"))
        XCTAssertEqual(anchor.ask("ledger-verify"), "ok")
        anchor.finish()
    }

    /// Nobody else could tell whose count it is, had it to tie itself to the session.
    func testWhoWasAloneAndIsKilledWhenAnotherHasJoinedIsCountedNoMore() throws {
        let alone = try TestProcess(key: key)
        XCTAssert(alone.ask("open \(path)").hasPrefix("ok"))
        alone.stop()
        while alone.state() != "T" { usleep(1000) }
        var options = ParticipantOptions()
        options.encryptionKey = key
        let ours = try Participant.open(path, options)
        XCTAssertEqual(ours.lockFile.participantCount, 2)
        alone.kill()
        let limit = Deadline.after(.seconds(TestTime.limit(20)))
        while ours.lockFile.participantCount != 1 && !limit.hasPassed { usleep(5000) }
        XCTAssertEqual(ours.lockFile.participantCount, 1)
        try ours.close()
    }

    func testALoneParticipantIsMarkedOnceOthersCome() throws {
        var options = ParticipantOptions()
        options.encryptionKey = key
        let ours = try Participant.open(path, options)
        XCTAssertEqual(ours.lockFile.sessionMark, 0, "alone, the lock file has nothing that others do not write")
        // Other software joins, of which we are not told.
        ours.lockFile.participantCount += 1
        let limit = Deadline.after(.seconds(TestTime.limit(20)))
        while ours.lockFile.sessionMark == 0 && !limit.hasPassed { usleep(5000) }
        XCTAssertNotEqual(ours.lockFile.sessionMark, 0)
        ours.lockFile.participantCount -= 1
        try ours.close()
    }
}

/// The same over encrypted files.
final class EncryptedSessionLifecycleTests: SessionLifecycleTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
