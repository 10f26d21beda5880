import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// Opening, joining and leaving, with real processes where more than one is needed.
class SessionParticipantTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }

    override func setUp() { scratch = ScratchDirectory("participant") }
    override func tearDown() { scratch = nil }

    private func open(_ path: String, _ options: ParticipantOptions = ParticipantOptions()) throws -> Participant {
        var options = options
        options.encryptionKey = key
        return try Participant.open(path, options)
    }

    private func options(_ change: (inout ParticipantOptions) -> Void = { _ in }) -> ParticipantOptions {
        var options = ParticipantOptions()
        change(&options)
        return options
    }

    private func bytes(_ path: String) -> [UInt8] { [UInt8](FileManager.default.contents(atPath: path) ?? Data()) }
    private func lockFile(_ offset: Int, _ value: UInt8) throws {
        let descriptor = try SystemCalls.open(path + ".lock", O_RDWR)
        defer { SystemCalls.close(descriptor) }
        try withUnsafeBytes(of: value) { try SystemCalls.write(descriptor, $0, at: offset) }
    }

    #if arch(x86_64)
    /// Recipe 1: a new file, opened alone.
    func testALoneOpenerLeavesExactlyTheDescribedLockFile() throws {
        let participant = try open(path)
        var expected = [UInt8](repeating: 0, count: 1728)
        expected[0] = 1
        expected[1] = 40
        expected[2] = 48
        expected[4] = 24
        expected[5] = 2
        expected[6] = 14
        expected[12] = 1
        expected[16] = 1
        if key != nil { withUnsafeBytes(of: UInt32(getpid())) { expected.replaceSubrange(24..<28, with: $0) } }
        expected[32] = 1
        expected[44] = 1
        for mutex in [48, 88, 128] { expected[mutex + 16] = 0x90 }
        for condition in [312, 360] { expected[condition + 36] = 1 }
        expected[432] = 32
        expected[448] = 1
        expected[456] = 24
        var found = bytes(path + ".lock")
        // Our first page was written by then: twice the counter.
        if key != nil {
            XCTAssertEqual(found[424..<432].reduce(0, +), 2); found.replaceSubrange(424..<432, with: repeatElement(0, count: 8))
        }
        for used in [52, 92, 132] where found.count > used && found[used] == 1 { found[used] = 0 }
        XCTAssertEqual(found, expected)
        try participant.close()
        XCTAssertEqual(bytes(path + ".lock")[12], 0)
        XCTAssertEqual(bytes(path + ".lock")[0], 1, "the lock file stays as it is")
    }
    #endif

    func testANewFileIsAnEmptyDatabaseOfOnePage() throws {
        try open(path).close()
        var expected = [UInt8](repeating: 0, count: SystemCalls.pageSize)
        expected.replaceSubrange(16..<20, with: Array("T-DB".utf8))
        XCTAssertEqual(bytes(path).count, key == nil ? expected.count : PageGeometry.fileSize(plain: expected.count))
        let file = try FileMapping.open(path: path, key: key)
        _ = try file.memory.bytes(at: 24, length: expected.count - 24)
        XCTAssertEqual(Array(file.bytes), expected)
        var isDirectory: ObjCBool = false
        XCTAssert(FileManager.default.fileExists(atPath: path + ".management", isDirectory: &isDirectory))
        XCTAssert(isDirectory.boolValue)
    }

    func testTheSecondJoinsAndEachLeaves() throws {
        let first = try open(path)
        XCTAssertTrue(first.attachedAs.isInitiator)
        let second = try open(path)
        XCTAssertFalse(second.attachedAs.isInitiator)
        XCTAssertEqual(first.lockFile.participantCount, 2)
        try first.close()
        XCTAssertEqual(second.lockFile.participantCount, 1)
        try second.close()
        try second.close()
        XCTAssertEqual(bytes(path + ".lock")[12], 0)
        XCTAssertThrowsError(try second.newestVersion()) { XCTAssertEqual($0 as? SessionError, .closed(path: path)) }
    }

    func testClosingWithOpenTransactionsIsRefusedUnlessForced() throws {
        let participant = try open(path), other = try open(path)
        let lock = try participant.acquireNewest(.live)
        XCTAssertThrowsError(try participant.close()) {
            XCTAssertEqual($0 as? SessionError, .openTransactions(path: path, count: 1))
        }
        XCTAssertEqual(try other.status().versions[0].liveLockCount, 2, "one of the two is the status's own")
        try participant.close(force: true)
        participant.release(lock)
        XCTAssertEqual(try other.status().versions[0].liveLockCount, 1)
        try other.close()
    }

    // MARK: Recipe 3

    func testDifferentOptionsAreRefusedWithBothValuesAndChangeNothing() throws {
        let first = try open(path)
        defer { try? first.close() }
        let cases: [(ParticipantOptions, SessionError)] = [
            (
                options { $0.durability = .unsafe },
                .incompatibleSession(path: path, which: .durability, ours: "unsafe", theirs: "full")
            ),
            (
                options { $0.durability = .memoryOnly },
                .incompatibleSession(path: path, which: .durability, ours: "memoryOnly", theirs: "full")
            ),
            (
                options { $0.historyType = .none },
                .incompatibleSession(path: path, which: .historyType, ours: "none", theirs: "in file")
            ),
        ]
        for (options, expected) in cases {
            XCTAssertThrowsError(try open(path, options)) { XCTAssertEqual($0 as? SessionError, expected) }
        }
        first.lockFile.historySchemaVersion = 7
        XCTAssertThrowsError(try open(path)) {
            XCTAssertEqual(
                $0 as? SessionError, .incompatibleSession(path: path, which: .historySchemaVersion, ours: "1", theirs: "7"))
        }
        first.lockFile.historySchemaVersion = 1
        first.lockFile.fileFormat = 25
        XCTAssertThrowsError(try open(path)) {
            XCTAssertEqual(
                $0 as? SessionError, .incompatibleLockFile(path: path + ".lock", what: "file format", ours: "24", theirs: "25"))
        }
        first.lockFile.fileFormat = 24
        XCTAssertEqual(first.lockFile.participantCount, 1)
        try open(path).close()
    }

    // MARK: Things in the way

    func testEachObstacleNamesTheFileAtFault() throws {
        func error(_ path: String, _ options: ParticipantOptions = ParticipantOptions()) -> String {
            do {
                try open(path, options).close()
                return "no error"
            } catch { return "\(error)" }
        }
        let missing = error(scratch.file("missing/a.realm"))
        XCTAssert(missing.hasPrefix(scratch.file("missing") + ":"), missing)
        let absent = error(path, options { $0.createsFile = false })
        XCTAssertEqual(absent, "\(path): no such file")
        XCTAssertFalse(FileManager.default.fileExists(atPath: path + ".lock"), "nothing is made for a file that is not there")
        XCTAssert(error(scratch.path).contains("is a directory"))
        XCTAssertEqual(mkfifo(scratch.file("fifo"), 0o600), 0)
        XCTAssert(error(scratch.file("fifo")).contains("not a regular file"))
        XCTAssert(
            FileManager.default.createFile(
                atPath: scratch.file("text"),
                contents: Data("Lorem ipsum dolor sit amet, consectetuer.".utf8 + [10, 10, 10, 10, 10, 10, 10])))
        XCTAssert(error(scratch.file("text")).hasPrefix(scratch.file("text") + ":"))
        XCTAssert(FileManager.default.createFile(atPath: scratch.file("b.realm.management"), contents: Data()))
        let participant = try open(scratch.file("b.realm"))
        XCTAssertEqual(participant.warnings.count, 1, "a file in the way of the management directory costs the register only")
        XCTAssert(participant.warnings[0].contains("b.realm.management"), participant.warnings[0])
        try participant.close()
    }

    func testALockFileThatMayNotBeOpenedIsNamedNotTheDatabase() throws {
        #if DEBUG
        try open(path).close()
        // Root may open everything, so the system's refusal is played.
        SystemCallInterception.hook = { $0.name == "open" && $0.path.hasSuffix(".lock") ? EACCES : nil }
        defer { SystemCallInterception.hook = nil }
        XCTAssertThrowsError(try open(path)) { error in
            guard case SessionError.sideFile(let side, let reason, _) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(side, path + ".lock")
            XCTAssert(reason.contains("Permission denied"), reason)
        }
        #endif
    }

    func testAnyFailingSystemCallOfOpeningLeavesNobodyCounted() throws {
        #if DEBUG
        try open(path).close()
        defer { SystemCallInterception.hook = nil }
        var n = 0
        while true {
            n += 1
            var calls = 0
            var failed = ""
            let me = pthread_self()
            SystemCallInterception.hook = { call in
                guard pthread_equal(pthread_self(), me) != 0 else { return nil }
                calls += 1
                if calls != n { return nil }
                failed = "\(call.name) \(call.path)"
                return EIO
            }
            let result = Result { try open(path) }
            SystemCallInterception.hook = nil
            switch result {
            case .success(let participant):
                try participant.close()
                if calls < n { return XCTAssertGreaterThan(n, 10) }
            case .failure(let error): XCTAssert("\(error)".contains("a.realm"), "\(failed) failed: \(error)")
            }
            XCTAssertEqual(bytes(path + ".lock").dropFirst(12).first ?? 0, 0, "after a failed \(failed)")
            // Everybody else can still open.
            try open(path).close()
        }
        #endif
    }

    // MARK: Recipes 5, 7, 8: stale state

    func testStaleLockFilesOfAllKindsGiveAFreshSession() throws {
        for content in [[], [UInt8](repeating: 0, count: 100), [UInt8](repeating: 0xFF, count: LockFile.initialByteCount)]
            as [[UInt8]]
        {
            try Data(content).write(to: URL(fileURLWithPath: path + ".lock"))
            let participant = try open(path)
            XCTAssertTrue(participant.attachedAs.isInitiator)
            XCTAssertEqual(participant.lockFile.participantCount, 1)
            try participant.close()
        }
    }

    func testAnInitiatorOnALeftOverLockFileUsesItsOwnProperties() throws {
        // Somebody keeps the lock file from being initialised, as an inherited descriptor would.
        let descriptor = try SystemCalls.open(path + ".lock", O_RDWR | O_CREAT)
        defer { SystemCalls.close(descriptor) }
        let memory = try open(path, options { $0.durability = .memoryOnly })
        XCTAssert(try SystemCalls.tryLock(descriptor, exclusive: false))
        try memory.close()
        XCTAssertFalse(FileManager.default.fileExists(atPath: path), "the last of a memory-only session takes the file with it")
        try lockFile(3, 1)
        let full = try open(path)
        XCTAssertEqual(full.lockFile.durability, Durability.full.rawValue)
        XCTAssertFalse(full.lockFile.commitInCriticalPhase)
        try full.close()
        XCTAssertTrue(FileManager.default.fileExists(atPath: path))
    }

    func testOpenersThatWaitForAnExclusiveHolderStartAFreshSession() throws {
        // A stale lock file of two dead participants, held exclusively by somebody who does not initialise it.
        try open(path).close()
        try lockFile(12, 2)
        let descriptor = try SystemCalls.open(path + ".lock", O_RDWR)
        XCTAssert(try SystemCalls.tryLock(descriptor, exclusive: true))
        let process = try TestProcess(key: key)
        process.send("open \(path)")
        usleep(100_000)
        SystemCalls.close(descriptor)
        XCTAssertEqual(process.line(), "ok initiator=true participants=1 warnings=0")
    }

    func testAMemoryOnlySessionIsSharedAndVanishes() throws {
        let first = try open(path, options { $0.durability = .memoryOnly })
        let process = try TestProcess(key: key)
        XCTAssertEqual(process.ask("open \(path) durability=memory"), "ok initiator=false participants=2 warnings=0")
        XCTAssertEqual(process.ask("publish 3"), "ok 4")
        XCTAssertEqual(try first.newestVersion(), 4)
        try first.close()
        XCTAssertTrue(FileManager.default.fileExists(atPath: path))
        XCTAssertEqual(process.ask("close"), "ok")
        XCTAssertFalse(FileManager.default.fileExists(atPath: path))
    }

    // MARK: Several processes

    /// Recipes 6 and 29 without data: random opens and closes of twenty processes end with nobody counted.
    func testTwentyProcessesOpenAndCloseAtRandomAndNobodyIsLeft() throws {
        let anchor = try open(path)
        let processes = try (1...20).map { _ in try TestProcess(key: key) }
        for (seed, process) in processes.enumerated() { process.send("open-close \(path) 10 \(seed)") }
        for process in processes { XCTAssertEqual(process.line(within: 60), "ok") }
        XCTAssertEqual(anchor.lockFile.participantCount, 1)
        XCTAssertEqual(try anchor.status().versions.map(\.frozenLockCount), [0])
        XCTAssertEqual(try anchor.status().participants.count, 1)
        try anchor.close()
        XCTAssertEqual(bytes(path + ".lock")[12], 0)
    }

    func testTwoThreadsOpenAndCloseTheSamePath() throws {
        let path = path, key = key
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<50 {
                do {
                    var options = ParticipantOptions()
                    options.encryptionKey = key
                    let participant = try Participant.open(path, options)
                    participant.release(try participant.acquireNewest(.live))
                    try participant.close()
                } catch { XCTFail("\(error)") }
            }
        }
        XCTAssertEqual(bytes(path + ".lock")[12], 0)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: path + ".management/participants"), [])
    }

    /// Recipe 20.
    func testAControlMutexOfADeadOwnerIsHealedForEverybody() throws {
        let anchor = try open(path)
        let process = try TestProcess(key: key)
        process.ask("open \(path)")
        XCTAssertEqual(process.ask("lock control"), "ok clean")
        process.kill()
        // The watchdog does it without anybody asking.
        let limit = Deadline.after(.seconds(TestTime.limit(10)))
        while anchor.lockFile.word(of: .control) & LockHolder.ownerDiedBit != 0 && !limit.hasPassed { usleep(1000) }
        XCTAssertEqual(anchor.lockFile.word(of: .control) & LockHolder.ownerDiedBit, 0)
        let opener = try TestProcess(key: key)
        XCTAssert(opener.ask("open \(path)").hasPrefix("ok initiator=false"))
        try anchor.close()
    }

    /// With `FORKED_CHILDREN` in the environment only: the child of a program with threads may wait for a lock of the runtime that a
    /// thread held which the child does not have.
    func testAForkedChildTakesNothingFromItsParent() throws {
        try XCTSkipIf(ProcessInfo.processInfo.environment["FORKED_CHILDREN"] == nil, "set FORKED_CHILDREN to try it")
        let parent = try TestProcess(key: key), other = try TestProcess(key: key)
        XCTAssertEqual(parent.ask("open \(path)"), "ok initiator=true participants=1 warnings=0")
        XCTAssertEqual(parent.ask("live").split(separator: " ").first, "ok")
        XCTAssertEqual(parent.ask("begin").split(separator: " ").first, "ok")
        XCTAssertEqual(parent.ask("fork"), "ok 0")
        XCTAssertEqual(other.ask("open \(path)"), "ok initiator=false participants=2 warnings=0")
        XCTAssertEqual(other.ask("try-begin"), "ok busy")
        XCTAssertEqual(parent.ask("end"), "ok")
        XCTAssertEqual(parent.ask("publish"), "ok 2")
        XCTAssertEqual(other.ask("newest"), "ok 2")
        XCTAssertTrue(other.ask("status").contains("/true/1L"))
        XCTAssertEqual(parent.ask("release"), "ok")
        XCTAssertEqual(parent.ask("close"), "ok")
        XCTAssertEqual(other.ask("counts").split(separator: " ").dropFirst().first, "participants=1")
    }

    func testAKillAtEachStepOfOpeningAndClosingLeavesOthersUnharmed() throws {
        let anchor = try open(path)
        for point in [
            "open.locked", "open.counted", "close.locked", "read-lock.between-register-and-count",
            "close.between-register-and-count",
        ] {
            let process = try TestProcess(key: key)
            process.ask("kill-at \(point)")
            _ = process.ask("open \(path)")
            _ = process.ask("live")
            _ = process.ask("close force")
            XCTAssertEqual(process.waitUntilGone(), -SIGKILL, point)
            let opener = try TestProcess(key: key)
            XCTAssert(opener.ask("open \(path)").hasPrefix("ok initiator=false"), point)
            XCTAssertEqual(opener.ask("close"), "ok")
        }
        // Killed between counter and register, a participant may stay counted; nobody may be counted too little.
        XCTAssertGreaterThanOrEqual(anchor.lockFile.participantCount, 1)
        try anchor.close()
    }

    func testAKillBeforeAParticipantIsCountedLeavesNothing() throws {
        let anchor = try open(path)
        let process = try TestProcess(key: key)
        process.ask("kill-at open.registered")
        XCTAssertEqual(process.ask("open \(path)"), "gone")
        let opener = try TestProcess(key: key)
        XCTAssert(opener.ask("open \(path)").hasPrefix("ok initiator=false"))
        XCTAssertEqual(opener.ask("close"), "ok")
        XCTAssertEqual(anchor.lockFile.participantCount, 1)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: path + ".management/participants").count, 1)
        try anchor.close()
    }

    func testAKillWhileTheLockFileIsMadeLeavesItToTheNext() throws {
        for point in ["lock-file.exclusive", "lock-file.initialised"] {
            let process = try TestProcess(key: key)
            process.ask("kill-at \(point)")
            XCTAssertEqual(process.ask("open \(path)"), "gone")
            let participant = try open(path)
            XCTAssertTrue(participant.attachedAs.isInitiator)
            try participant.close()
        }
    }

    /// A stopped peer that merely has the file open, or holds a version, stands in nobody's way.
    func testAStoppedPeerDoesNotHinderOpeningReadingAndWriting() throws {
        let process = try TestProcess(key: key)
        process.ask("open \(path)")
        process.ask("live")
        process.stop()
        defer { process.resume() }
        let participant = try open(path, options { $0.waitLimit = .seconds(5) })
        participant.release(try participant.acquireNewest(.live))
        _ = try participant.writeQueue.acquire(.after(.seconds(5)))
        participant.writeQueue.release()
        XCTAssertEqual(try participant.status().participants.count, 2)
        try participant.close()
    }

    func testAStoppedHolderOfTheWriteLockIsNamedInTheError() throws {
        let process = try TestProcess(key: key)
        process.ask("open \(path)")
        XCTAssert(process.ask("begin").hasPrefix("ok"))
        process.stop()
        defer { process.resume() }
        usleep(20_000)
        let participant = try open(path)
        XCTAssertThrowsError(try participant.writeQueue.acquire(.after(.milliseconds(50)))) { error in
            guard case SessionError.deadlineExceeded(_, _, let holder) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(holder, "process \(process.processIdentifier) (TestParticipant), which is stopped")
        }
        try participant.close()
    }

    // MARK: All files together

    /// Recipes 29 and 32.
    func testDeletingIsRefusedWhileOpenAndLeavesOnlyTheLockFile() throws {
        let participant = try open(path), second = try open(path)
        XCTAssertThrowsError(try StoreFiles.delete(path)) { XCTAssertEqual($0 as? SessionError, .inUse(path: path)) }
        try participant.close()
        let process = try TestProcess(key: key)
        XCTAssertEqual(process.ask("delete \(path)"), "error \(path): is open in this or another process")
        try second.close()
        XCTAssertEqual(mkfifo(path + ".note", 0o600), 0)
        XCTAssertTrue(try StoreFiles.delete(path))
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), ["a.realm.lock"])
        XCTAssertEqual(bytes(path + ".lock"), [], "an opener that waited must not trust what stood in it")
        XCTAssertFalse(try StoreFiles.delete(path))
        XCTAssertFalse(try StoreFiles.delete(scratch.file("missing/b.realm")))
    }

    func testExclusiveAccessKeepsOpenersWaiting() throws {
        let process = try TestProcess(key: key)
        let ran: Bool? = try StoreFiles.withExclusiveAccess(path) {
            process.send("open \(path)")
            XCTAssertNil(process.line(within: 0.2))
            return true
        }
        XCTAssertEqual(ran, true)
        XCTAssertEqual(process.line(), "ok initiator=true participants=1 warnings=0")
    }
}

/// The same over encrypted files.
final class EncryptedSessionParticipantTests: SessionParticipantTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
