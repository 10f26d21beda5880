import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// Stores and their transactions: one process, then many, killed at every step.
class SessionStoreTests: XCTestCase {
    /// Nil: the files are not encrypted.
    var key: EncryptionKey? { nil }
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }

    func scratchFile(_ name: String) -> String { scratch.file(name) }

    override func setUp() { scratch = ScratchDirectory("store") }
    override func tearDown() { scratch = nil }

    private func options(_ change: (inout StoreOptions) -> Void) -> StoreOptions {
        var options = StoreOptions()
        options.encryptionKey = key
        change(&options)
        return options
    }

    private func makeTable(_ store: Store) throws {
        try store.write {
            let table = try $0.editor.createTable("class_Thing")
            try table.addColumn("value", .int)
            try table.set("value", of: table.createObject(), to: .int(1))
        }
    }

    private func add(_ store: Store, _ amount: Int64 = 1) throws { try store.write { try add($0, amount) } }
    private func add(_ transaction: WriteTransaction, _ amount: Int64 = 1) throws {
        let table = try transaction.editor.editor(named: "class_Thing")
        try table.add(table.column(named: "value"), of: ObjectKey(0), amount)
    }

    private func value(_ group: Group) throws -> Int64 {
        let table = try XCTUnwrap(try group.table(named: "class_Thing"))
        return try XCTUnwrap(try table.find(ObjectKey(0))).int(XCTUnwrap(table.column(named: "value")))
    }

    private func assertFileIsSound(_ message: String = "", line: UInt = #line) throws {
        let report = try Verifier.verify(try ImmutableFile(path: path, key: key))
        XCTAssert(
            report.isSound && report.findings.isEmpty, "\(message) \(report.findings.prefix(3).map(\.description))", line: line)
    }

    // MARK: One store

    func testACommitIsSeenByLaterTransactionsAndByNoEarlierOne() throws {
        let store = try Store.open(path, options { _ in })
        let empty = try store.beginRead()
        XCTAssertEqual(empty.version, 1)
        XCTAssertEqual(empty.group.tableCount, 0)
        try makeTable(store)
        XCTAssertEqual(try store.newestVersion(), 2)
        let second = try store.beginRead()
        try add(store)
        XCTAssertEqual(try value(second.group), 1)
        XCTAssertEqual(empty.group.tableCount, 0)
        XCTAssertTrue(try second.refresh())
        XCTAssertEqual(try value(second.group), 2)
        XCTAssertFalse(try second.refresh())
        empty.end()
        second.end()
        try store.close()
        try assertFileIsSound()
        XCTAssertThrowsError(try store.beginRead()) { XCTAssertEqual($0 as? SessionError, .closed(path: path)) }
        XCTAssertThrowsError(try store.beginWrite()) { XCTAssertEqual($0 as? SessionError, .closed(path: path)) }
    }

    func testRollbackForgetsEverythingAndWritingGoesOn() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let transaction = try store.beginWrite()
        try add(transaction, 100)
        XCTAssertEqual(try value(transaction.group), 101)
        transaction.rollback()
        struct Stop: Error {}
        XCTAssertThrowsError(
            try store.write {
                try add($0, 50); throw Stop()
            })
        do {
            let forgotten = try store.beginWrite()
            try add(forgotten, 7)
        }
        XCTAssertEqual(try store.newestVersion(), 2)
        try add(store)
        XCTAssertEqual(try store.look { try value($0.group) }, 2)
        try store.close()
        try assertFileIsSound()
    }

    func testRefreshReadsTheChangesetsOnTheWay() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let reader = try store.beginRead()
        for _ in 0..<5 { try add(store) }
        var seen: [UInt64] = []
        XCTAssertTrue(
            try reader.refresh { version, changeset in
                seen.append(version)
                XCTAssertGreaterThan(changeset.count, 0)
                XCTAssertEqual(try self.value(reader.group), 1, "the old version is still there while the changes are looked at")
            })
        XCTAssertEqual(seen, [3, 4, 5, 6, 7])
        XCTAssertEqual(try value(reader.group), 6)
        struct Stop: Error {}
        try add(store)
        XCTAssertThrowsError(try reader.refresh { _, _ in throw Stop() })
        XCTAssertEqual(reader.version, 7)
        XCTAssertTrue(try reader.refresh())
        reader.end()
        try store.close()
    }

    func testFrozenSnapshotsStayAndOldVersionsAreReachableWhileHeld() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let frozen = try store.freeze()
        for _ in 0..<50 { try add(store) }
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertFalse(try frozen.refresh())
        XCTAssertEqual(try value(frozen.group), 1)
        let again = try store.freeze(2)
        XCTAssertEqual(try value(again.group), 1)
        XCTAssertThrowsError(try store.beginRead(2)) {
            XCTAssertEqual($0 as? SessionError, .badVersion(path: path + ".lock", version: 2))
        }
        frozen.end()
        again.end()
        XCTAssertThrowsError(try store.freeze(2))
        let live = try store.beginRead()
        let still = try live.freeze()
        XCTAssertEqual(try value(still.group), 51)
        still.end()
        try add(store)
        try live.advance(to: 53)
        XCTAssertThrowsError(try live.advance(to: 52))
        live.end()
        try store.close()
    }

    func testCommitAndContinueCommitAndReadPromote() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let transaction = try store.beginWrite()
        for _ in 0..<3 {
            try add(transaction)
            try transaction.commitAndContinue()
        }
        XCTAssertEqual(transaction.baseVersion, 5)
        XCTAssertNil(try store.tryBeginWrite())
        try add(transaction)
        let reader = try transaction.commitAndRead()
        XCTAssertEqual(reader.version, 6)
        XCTAssertEqual(try value(reader.group), 5)
        try add(store)
        var seen: [UInt64] = []
        let promoted = try reader.promote { version, _ in seen.append(version) }
        XCTAssertEqual(seen, [7])
        XCTAssertEqual(reader.version, 7)
        try add(promoted)
        try promoted.commit()
        XCTAssertTrue(try reader.refresh())
        XCTAssertEqual(try value(reader.group), 7)
        reader.end()
        let free = try XCTUnwrap(try store.tryBeginWrite())
        free.rollback()
        try store.close()
        try assertFileIsSound()
    }

    func testABatchIsSeenAtOnceAndDurableAtItsEnd() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let transaction = try store.beginWrite()
        let file = try XCTUnwrap(store.participant?.file)
        let durable = try file.readHeader().liveTopRef
        for i in 1...20 as ClosedRange<Int64> {
            try add(transaction)
            try transaction.commitAndContinue(syncing: false)
            XCTAssertEqual(try store.look { try value($0.group) }, 1 + i)
            XCTAssertEqual(try file.readHeader().liveTopRef, durable)
        }
        try assertFileIsSound("in the middle of a batch the file on disk is the one before it")
        try transaction.sync()
        XCTAssertNotEqual(try file.readHeader().liveTopRef, durable)
        try add(transaction)
        try transaction.commitAndContinue(syncing: false)
        try add(transaction)
        try transaction.commit()
        XCTAssertEqual(try file.readHeader().liveTopRef, UInt64(try store.look { $0.snapshot.topRef }))
        let last = try store.beginWrite()
        try add(last)
        try last.commitAndContinue(syncing: false)
        last.rollback()
        XCTAssertEqual(try file.readHeader().liveTopRef, UInt64(try store.look { $0.snapshot.topRef }))
        XCTAssertEqual(try store.status()?.versions.first?.version, 24, "nothing older is kept")
        try store.close()
        try assertFileIsSound()
        XCTAssertEqual(try value(ImmutableFile(path: path, key: key).group), 24)
    }

    func testABatchWhoseSyncFailsKeepsTheOldFileUntilSomebodySyncs() throws {
        #if DEBUG
        let store = try Store.open(path, options { _ in }), other = try Store.open(path, options { _ in })
        try makeTable(store)
        let transaction = try store.beginWrite()
        try add(transaction)
        try transaction.commitAndContinue(syncing: false)
        let me = pthread_self()
        SystemCallInterception.hook = { pthread_equal(pthread_self(), me) != 0 && $0.name == "fdatasync" ? EIO : nil }
        XCTAssertThrowsError(try transaction.sync())
        transaction.rollback()
        try store.close()
        SystemCallInterception.hook = nil
        try assertFileIsSound("the version before the batch")
        XCTAssertEqual(try other.look { try value($0.group) }, 2)
        XCTAssertEqual(try other.status()?.versions.map(\.version), [2, 3])
        for _ in 0..<3 { try add(other) }
        XCTAssertEqual(try other.look { try value($0.group) }, 5)
        try other.participant?.sweepDeadParticipants()
        try add(other)
        XCTAssertEqual(try other.status()?.versions.map(\.version), [6, 7])
        XCTAssertEqual(other.participant?.lockFile.participantCount, 1)
        try other.close()
        try assertFileIsSound()
        #endif
    }

    func testAWriterKilledInABatchLeavesItsVersionsToOthersAndTheOldFileToNobody() throws {
        let survivor = try participant()
        survivor.ask("ledger-setup")
        survivor.ask("ledger-commit 5 1")
        let victim = try participant()
        XCTAssertEqual(victim.ask("ledger-batch 10 2"), "ok 15")
        XCTAssertEqual(survivor.ask("ledger-check"), "ok 17 15")
        victim.kill()
        XCTAssertEqual(survivor.ask("ledger-commit 1 3"), "ok 16")
        XCTAssertEqual(survivor.ask("ledger-verify"), "ok")
        survivor.ask("ledger-close")
        try assertFileIsSound()
        let alone = try participant()
        XCTAssertEqual(alone.ask("ledger-batch 30 4"), "ok 46")
        alone.kill()
        try assertFileIsSound()
        XCTAssertEqual(survivor.ask("ledger-open \(path)\(keyOption)"), "ok")
        XCTAssertEqual(survivor.ask("ledger-check"), "ok 18 16")
    }

    func testAStoreWithAnOpenWriteTransactionCannotBeClosed() throws {
        let store = try Store.open(path, options { _ in })
        let transaction = try store.beginWrite()
        XCTAssertThrowsError(try store.close(force: true)) {
            XCTAssertEqual($0 as? SessionError, .openTransactions(path: path, count: 1))
        }
        transaction.rollback()
        try store.close()
    }

    func testALimitOfVersionsStopsWritersUntilReadersEnd() throws {
        let store = try Store.open(path, options { $0.versionCountMax = 3 })
        try makeTable(store)
        var readers: [ReadTransaction] = []
        XCTAssertThrowsError(
            try {
                while true {
                    readers.append(try store.beginRead())
                    try add(store)
                }
            }()
        ) { error in
            guard case SessionError.tooManyVersions(_, 3, let holders) = error else { return XCTFail("\(error)") }
            XCTAssert(holders.hasPrefix("version 2 by process \(getpid())"), holders)
        }
        XCTAssertEqual(readers.map(\.version), [2, 3, 4, 5])
        readers.removeFirst().end()
        try add(store)
        XCTAssertThrowsError(try store.beginWrite())
        readers.forEach { $0.end() }
        try add(store)
        try store.close()
    }

    func testStatusTellsWhatAPinCosts() throws {
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        let reader = try store.beginRead()
        for _ in 0..<30 { try add(store) }
        let status = try XCTUnwrap(try store.status())
        XCTAssertEqual(status.versions.first?.version, 2)
        XCTAssertGreaterThan(status.versions.first?.bytesHeld ?? 0, 0)
        XCTAssertEqual(status.versions.last?.bytesHeld, 0)
        reader.end()
        try store.close()
    }

    func testAMemoryOnlySessionAndAPrivateDatabaseHoldData() throws {
        let memory = try Store.open(path, options { $0.durability = .memoryOnly })
        try makeTable(memory)
        let joined = try Store.open(path, options { $0.durability = .memoryOnly })
        try add(joined)
        XCTAssertEqual(try memory.look { try value($0.group) }, 2)
        try memory.close()
        try add(joined)
        try joined.close()
        XCTAssertFalse(FileManager.default.fileExists(atPath: path))

        let inside = try Store.inMemory()
        try makeTable(inside)
        let reader = try inside.beginRead()
        for _ in 0..<100 { try add(inside) }
        XCTAssertEqual(try value(reader.group), 1)
        XCTAssertEqual(try inside.look { try value($0.group) }, 101)
        XCTAssertEqual(try inside.status()?.participants.count, 0)
        reader.end()
        try inside.close()
    }

    func testAnImmutableFileIsReadWithoutSideFiles() throws {
        let source = try Store.open(scratch.file("source.realm"), options { _ in })
        try makeTable(source)
        try source.close()
        let folder = ScratchDirectory("immutable")
        try FileManager.default.copyItem(atPath: scratch.file("source.realm"), toPath: folder.file("a.realm"))
        let store = try Store.open(folder.file("a.realm"), options { $0.access = .immutable })
        let reader = try store.beginRead()
        XCTAssertEqual(try value(reader.group), 1)
        XCTAssertTrue(reader.isFrozen)
        reader.end()
        try store.close()
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["a.realm"])
    }

    func testAFileWithoutHistoryGetsOneWhenItIsOpened() throws {
        let source = try Store.open(scratch.file("source.realm"), options { _ in })
        try makeTable(source)
        let original = try source.beginRead()
        let tables = original.group.tableNames
        let participant = try XCTUnwrap(source.participant)
        try StreamingCopy(version: nil, keepsHistory: false).write(participant.file.view(of: original.snapshot), toPath: path) {
            path in
            guard let key = self.key else { return try PlainFile.createExclusively(path) }
            return EncryptedFile(descriptor: try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL), path: path, key: key)
        }
        original.end()
        try source.close()
        XCTAssertEqual(try ImmutableFile(path: path, key: key).group.historyType(), 0)
        XCTAssertThrowsError(try Store.open(path, options { $0.allowsUpgrade = false }))
        XCTAssertEqual(try ImmutableFile(path: path, key: key).group.historyType(), 0)
        let store = try Store.open(path, options { _ in })
        let reader = try store.beginRead()
        XCTAssertEqual(reader.group.tableNames, tables)
        XCTAssertEqual(try reader.group.historyType(), 2)
        reader.end()
        try store.close()
        try assertFileIsSound()
    }

    func testAnyFailingSystemCallOfACommitLeavesTheOldVersionAndAUsableStore() throws {
        #if DEBUG
        let store = try Store.open(path, options { _ in })
        try makeTable(store)
        defer { SystemCallInterception.hook = nil }
        let me = pthread_self()
        var n = 0
        var expected: Int64 = 1
        while true {
            n += 1
            var calls = 0
            var failed = ""
            SystemCallInterception.hook = { call in
                guard pthread_equal(pthread_self(), me) != 0 else { return nil }
                calls += 1
                if calls != n { return nil }
                failed = call.name
                return ENOSPC
            }
            let result = Result { try add(store) }
            SystemCallInterception.hook = nil
            if case .success = result { expected += 1 }
            XCTAssertEqual(try store.look { try value($0.group) }, expected, "after a failed \(failed)")
            if calls < n { break }
            let transaction = try store.beginWrite()
            XCTAssertEqual(try store.participant?.file.currentHeader().liveTopRef, UInt64(try store.look { $0.snapshot.topRef }))
            transaction.rollback()
        }
        XCTAssertGreaterThan(n, 4)
        try store.close()
        try assertFileIsSound()
        #endif
    }

    // MARK: Many processes

    private var keyOption: String { key == nil ? "" : " key=test" }

    private func participant() throws -> TestProcess {
        let process = try TestProcess()
        XCTAssertEqual(process.ask("ledger-open \(path)\(keyOption)"), "ok")
        return process
    }

    /// Recipe 2, among ourselves.
    func testTwoProcessesCommitInTurnAndSeeEachOther() throws {
        let a = try participant(), b = try participant()
        XCTAssertEqual(a.ask("ledger-setup"), "ok 2")
        for round in 1...40 {
            XCTAssertEqual((round % 2 == 0 ? a : b).ask("ledger-commit 1 \(round)"), "ok \(round)")
            XCTAssertEqual((round % 2 == 0 ? b : a).ask("ledger-check"), "ok \(round + 2) \(round)")
        }
        XCTAssertEqual(a.ask("ledger-verify"), "ok")
        a.finish()
        b.finish()
        try assertFileIsSound()
    }

    /// Recipe 23, in small.
    func testEightWritersLoseNothing() throws {
        let writers = try (0..<8).map { _ in try participant() }
        writers[0].ask("ledger-setup")
        for (seed, writer) in writers.enumerated() { writer.send("ledger-commit 20 \(seed)") }
        for writer in writers { XCTAssert((writer.line(within: 60) ?? "").hasPrefix("ok")) }
        XCTAssertEqual(writers[3].ask("ledger-check"), "ok 162 160")
        writers.forEach { $0.finish() }
        try assertFileIsSound()
    }

    /// Recipe 10.
    func testAPinnedVersionStaysAsItIsWhileOthersWrite() throws {
        let writer = try participant(), reader = try participant()
        writer.ask("ledger-setup")
        writer.ask("ledger-commit 5 1")
        XCTAssertEqual(reader.ask("ledger-hold live"), "ok 7")
        writer.ask("ledger-commit 10 2")
        XCTAssertEqual(reader.ask("ledger-hold frozen"), "ok 17")
        writer.ask("ledger-commit 100 3")
        XCTAssertEqual(reader.ask("ledger-held"), "ok 2")
        reader.ask("ledger-release")
        writer.ask("ledger-commit 2 4")
        let size = writer.ask("ledger-size")
        writer.ask("ledger-commit 100 5")
        XCTAssertEqual(writer.ask("ledger-size"), size, "what the reader held is used again")
        writer.finish()
        reader.finish()
        try assertFileIsSound()
    }

    /// The exam of the dead reader: killed while it pins a version, it costs nothing for long.
    func testAKilledReaderDoesNotMakeTheFileGrow() throws {
        let writer = try TestProcess(), reader = try TestProcess()
        for process in [writer, reader] { process.ask("ledger-open \(path) durability=unsafe\(keyOption)") }
        writer.ask("ledger-setup 1000")
        writer.ask("ledger-commit 100 1")
        reader.ask("ledger-hold live")
        reader.kill()
        writer.ask("ledger-commit 1500 2", within: 60)
        let size = Int(writer.ask("ledger-size").dropFirst(3)) ?? .max
        XCTAssertLessThan(size, 1 << 20)
        XCTAssertEqual(writer.ask("ledger-verify"), "ok")
        writer.finish()
    }

    private static let killPoints = [
        "C3.locked", "C3.stored", "C7.before", "publish.before-newest", "publish.after-newest", "C7.after", "C8.locked",
        "C9.before", "write-queue.before-release",
    ]

    /// Recipes 14 to 21 and the table of 5.5, with a survivor.
    func testAWriterKilledAtAnyStepIsSurvivedByOthers() throws {
        let survivor = try participant()
        survivor.ask("ledger-setup")
        var transfers = 0
        for point in Self.killPoints {
            let victim = try participant()
            victim.ask("kill-at \(point)")
            XCTAssertEqual(victim.ask("ledger-commit 1 7"), "gone", point)
            let isThere = Self.killPoints.firstIndex(of: point)! >= Self.killPoints.firstIndex(of: "publish.after-newest")!
            if isThere { transfers += 1 }
            let newcomer = try participant()
            XCTAssertEqual(newcomer.ask("ledger-check"), "ok \(transfers + 2) \(transfers)", point)
            transfers += 1
            XCTAssertEqual(newcomer.ask("ledger-commit 1 8"), "ok \(transfers)", point)
            transfers += 1
            XCTAssertEqual(survivor.ask("ledger-commit 1 9"), "ok \(transfers)", point)
            XCTAssertEqual(survivor.ask("ledger-verify"), "ok", point)
            newcomer.finish()
        }
        survivor.finish()
        try assertFileIsSound()
    }

    /// The same without a survivor: the next session finds the old version or the new one, whole. Recipe 17 among them.
    func testAWriterKilledAloneLeavesTheOldVersionOrTheNew() throws {
        let first = try participant()
        first.ask("ledger-setup")
        first.finish()
        var transfers = 0
        for point in Self.killPoints {
            let victim = try participant()
            victim.ask("kill-at \(point)")
            XCTAssertEqual(victim.ask("ledger-commit 1 7"), "gone", point)
            if Self.killPoints.firstIndex(of: point)! >= Self.killPoints.firstIndex(of: "C7.before")! { transfers += 1 }
            try assertFileIsSound(point)
            let next = try participant()
            XCTAssertEqual(next.ask("ledger-check"), "ok \(transfers + 2) \(transfers)", point)
            next.finish()
        }
    }

    /// Recipe 16: a writer dies between flip and publishing, its successor after storing its nodes; then everybody is gone.
    func testTwoKillsInARowLeaveThePublishedVersionIntact() throws {
        let a = try participant()
        a.ask("ledger-setup")
        a.ask("ledger-commit 3 1")
        let first = try participant(), second = try participant()
        first.ask("kill-at C7.before")
        XCTAssertEqual(first.ask("ledger-commit 1 2"), "gone")
        second.ask("kill-at C3.stored")
        XCTAssertEqual(second.ask("ledger-commit 1 3"), "gone")
        a.kill()
        try assertFileIsSound()
        let next = try participant()
        XCTAssertEqual(next.ask("ledger-check"), "ok 5 3")
        next.finish()
    }

    /// Recipe 33, short and with a fixed seed: random kills, no acknowledged commit is lost, every snapshot is consistent.
    func testARandomStormOfKillsLosesNoAcknowledgedCommit() throws {
        var random = SplitMix(seed: 42)
        print("seed 42")
        let anchor = try participant()
        anchor.ask("ledger-setup")
        var acknowledged: Int64 = 0
        var writers: [TestProcess] = []
        for round in 0..<24 {
            while writers.count < 4 {
                let writer = try participant()
                writer.send("ledger-storm 20 \(random.next() % 1000)")
                writers.append(writer)
            }
            usleep(UInt32(20_000 + random.next() % 100_000))
            let victim = writers.remove(at: Int(random.next() % 4))
            victim.kill()
            while let line = victim.line(within: 0.01) {
                if line.hasPrefix("error") { XCTFail("round \(round): \(line)") }
                if line.hasPrefix("commit ") { acknowledged = max(acknowledged, Int64(line.dropFirst(7)) ?? 0) }
            }
        }
        writers.forEach { $0.kill() }
        for writer in writers {
            while let line = writer.line(within: 0.01) {
                if line.hasPrefix("error") { XCTFail(line) }
                if line.hasPrefix("commit ") { acknowledged = max(acknowledged, Int64(line.dropFirst(7)) ?? 0) }
            }
        }
        let answer = anchor.ask("ledger-check").split(separator: " ").compactMap { Int64($0) }
        XCTAssertEqual(answer.count, 2)
        XCTAssertGreaterThanOrEqual(answer.last ?? -1, acknowledged)
        XCTAssertGreaterThan(acknowledged, 20)
        XCTAssertEqual(anchor.ask("ledger-verify"), "ok")
        anchor.finish()
        try assertFileIsSound()
    }
}

/// The same over encrypted files.
final class SessionEncryptedStoreTests: SessionStoreTests {
    private static let testKey = try? EncryptionKey((0..<64).map { UInt8($0) })
    override var key: EncryptionKey? { Self.testKey }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testAnotherKeyIsRefused() throws {
        try Store.open(
            scratchFile("b.realm"),
            {
                var o = StoreOptions(); o.encryptionKey = key; return o
            }()
        ).close()
        var other = StoreOptions()
        other.encryptionKey = try EncryptionKey((0..<64).map { UInt8($0 ^ 1) })
        XCTAssertThrowsError(try Store.open(scratchFile("b.realm"), other)) {
            guard case OpenError.decryptionFailed = $0 else { return XCTFail("\($0)") }
        }
    }
}
