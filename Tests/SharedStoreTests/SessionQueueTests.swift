import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// The write queue, and what killed writers and waiters leave (coordination.md 5.1, 5.2, 5.5).
class SessionQueueTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }

    override func setUp() { scratch = ScratchDirectory("queue") }
    override func tearDown() { scratch = nil }

    private func open(_ path: String, _ options: ParticipantOptions = ParticipantOptions()) throws -> Participant {
        var options = options
        options.encryptionKey = key
        return try Participant.open(path, options)
    }

    private func publish(_ participant: Participant) throws -> UInt64 {
        let deadline = Deadline.after(.seconds(TestTime.limit(20)))
        _ = try participant.writeQueue.acquire(deadline)
        defer { participant.writeQueue.release() }
        let base = try participant.acquireNewest(.live)
        defer { participant.release(base) }
        let pinned = try participant.lockFile.with(.list, deadline) { try VersionList(participant.lockFile).purge() }
        var next = base.snapshot
        next.version += 1
        try participant.lockFile.with(.list, deadline) { try VersionList(participant.lockFile).publish(next) }
        try participant.announce(version: next.version, numberOfVersions: pinned.versions.count + 1, deadline)
        return next.version
    }

    /// Recipe 23, in small: every writer gets its turn, no version is lost or made twice.
    func testManyWritersAllGetTheirTurn() throws {
        let anchor = try open(path)
        let writers = try (0..<6).map { _ in try TestProcess(key: key) }
        for writer in writers { writer.ask("open \(path)") }
        for writer in writers { writer.send("publish 100") }
        for writer in writers { XCTAssert((writer.line(within: 60) ?? "").hasPrefix("ok")) }
        XCTAssertEqual(try anchor.newestVersion(), 601)
        XCTAssertEqual(anchor.lockFile.latestVersion, 601)
        XCTAssertEqual(anchor.lockFile.nextTicket, 600)
        XCTAssertEqual(anchor.lockFile.nextServed, 600)
        try anchor.close()
    }

    /// Recipe 14, W1 and W10.
    func testAWriterKilledWithTheLockIsFollowedByTheNext() throws {
        let anchor = try open(path)
        for command in ["begin", "begin", "lock write"] {
            let victim = try TestProcess(key: key)
            victim.ask("open \(path)")
            victim.ask(command)
            victim.kill()
            let grant = try anchor.writeQueue.acquire(.after(.seconds(10)))
            XCTAssertTrue(grant.previousHolderDied)
            anchor.writeQueue.release()
        }
        XCTAssertEqual(anchor.lockFile.nextTicket, anchor.lockFile.nextServed)
        try anchor.close()
    }

    /// W0: a queued ticket of a dead process is passed over.
    func testAWriterKilledInTheQueueIsPassedOver() throws {
        let anchor = try open(path)
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("kill-at write-queue.ticket")
        XCTAssertEqual(victim.ask("begin"), "gone")
        XCTAssertEqual(anchor.lockFile.nextTicket, 1)
        XCTAssertEqual(try publish(anchor), 2)
        XCTAssertEqual(anchor.lockFile.nextTicket, 2)
        XCTAssertEqual(anchor.lockFile.nextServed, 2)
        try anchor.close()
    }

    func testATicketOfAWaitThatGaveUpIsHandedBack() throws {
        let anchor = try open(path), other = try open(path)
        _ = try anchor.writeQueue.acquire(.immediate)
        XCTAssertThrowsError(try other.writeQueue.acquire(.after(.milliseconds(20))))
        XCTAssertEqual(anchor.lockFile.nextTicket, 1)
        XCTAssertNil(try other.writeQueue.tryAcquire())
        anchor.writeQueue.release()
        XCTAssertNotNil(try other.writeQueue.tryAcquire())
        other.writeQueue.release()
        XCTAssertEqual(try publish(anchor), 2, "the release without a ticket harms nobody")
        try anchor.close()
        try other.close()
    }

    func testAStoppedWaiterIsPassedOverAndComesInLater() throws {
        let anchor = try open(path)
        _ = try anchor.writeQueue.acquire(.immediate)
        let waiter = try TestProcess(key: key)
        waiter.ask("open \(path)")
        waiter.send("publish")
        while anchor.lockFile.nextTicket != 2 { usleep(1000) }
        waiter.stop()
        anchor.writeQueue.release()
        XCTAssertEqual(try publish(anchor), 2)
        waiter.resume()
        XCTAssertEqual(waiter.line(), "ok 3")
        XCTAssertEqual(try publish(anchor), 4)
        try anchor.close()
    }

    /// Recipes 18, 19 and 21, W6 to W9: killed at each store of publishing, a version is there whole or not at all, and work goes
    /// on.
    func testAWriterKilledAtAnyStepOfPublishingIsHealed() throws {
        let anchor = try open(path)
        let points = [
            ("publish.before-allocating", false), ("publish.after-allocating", false), ("publish.before-newest", false),
            ("publish.after-newest", true), ("C8.before", true), ("C8.locked", true), ("write-queue.before-release", true),
        ]
        var version: UInt64 = 1
        for (point, isThere) in points {
            let victim = try TestProcess(key: key)
            victim.ask("open \(path)")
            victim.ask("kill-at \(point)")
            XCTAssertEqual(victim.ask("publish"), "gone")
            if isThere { version += 1 }
            XCTAssertEqual(try anchor.newestVersion(), version, point)
            let reader = try TestProcess(key: key)
            XCTAssert(reader.ask("open \(path)").hasPrefix("ok initiator=false"), point)
            XCTAssertEqual(reader.ask("live"), "ok \(version) 0 24", point)
            version += 1
            XCTAssertEqual(reader.ask("publish"), "ok \(version)", point)
            version += 1
            XCTAssertEqual(try publish(anchor), version, point)
            XCTAssertEqual(anchor.lockFile.latestVersion, version, point)
            XCTAssertFalse(anchor.lockFile.commitInCriticalPhase, point)
            XCTAssertEqual(VersionList(anchor.lockFile).allocating, VersionList(anchor.lockFile).newest, point)
            reader.finish()
        }
        try anchor.close()
    }

    func testAKillWhileTheListGrowsLeavesALegalFile() throws {
        let anchor = try open(path)
        var held: [ReadLock] = []
        for _ in 0..<31 {
            held.append(try anchor.acquireNewest(.live))
            _ = try publish(anchor)
        }
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("live")
        victim.ask("kill-at publish.before-entries")
        XCTAssertEqual(victim.ask("publish"), "gone")
        XCTAssertEqual(
            try SystemCalls.status(path: path + ".lock").size, LockFile.initialByteCount + 32 * LockFile.recordByteCount)
        held.append(try anchor.acquireNewest(.live))
        XCTAssertEqual(try publish(anchor), 33)
        XCTAssertEqual(try VersionList(anchor.lockFile).capacity(), 64)
        held.forEach { anchor.release($0) }
        try anchor.close()
    }

    // MARK: Condition variables

    func testOurCommitsWakeThoseWhoWaitTheOldWay() throws {
        let anchor = try open(path)
        let waiters = try (0..<2).map { _ in try TestProcess(key: key) }
        for waiter in waiters {
            waiter.ask("open \(path)")
            XCTAssertEqual(waiter.ask("wait-condition commit"), "ok waiting")
        }
        XCTAssertEqual(try publish(anchor), 2)
        for waiter in waiters { XCTAssertEqual(waiter.line(), "ok woken") }
        try anchor.close()
    }

    /// Recipe 22: killed waiters and a new one; our commits never hang, and other software that does is set free.
    func testKilledWaitersFreezeNobody() throws {
        if !ConditionRepair.isPossible { throw XCTSkip("condition variables of this C library are not known here") }
        let anchor = try open(path)
        for condition in ["commit", "writer"] {
            let victims = try (0..<2).map { _ in try TestProcess(key: key) }
            for victim in victims {
                victim.ask("open \(path)")
                XCTAssertEqual(victim.ask("wait-condition \(condition)"), "ok waiting")
            }
            // The mutex must have been let go by the sleeping waiter before it is killed.
            for victim in victims { victim.kill() }
            let version = try publish(anchor)
            let waiter = try TestProcess(key: key), foreign = try TestProcess(key: key)
            waiter.ask("open \(path)")
            XCTAssertEqual(waiter.ask("wait-condition \(condition)"), "ok waiting")
            XCTAssertEqual(try publish(anchor), version + 1)
            foreign.ask("open \(path)")
            XCTAssertEqual(foreign.ask("broadcast-condition \(condition)"), "ok", condition)
            XCTAssertEqual(waiter.line(), "ok woken", condition)
            XCTAssertEqual(try publish(anchor), version + 2)
        }
        try anchor.close()
    }
}

/// The same over encrypted files.
final class EncryptedSessionQueueTests: SessionQueueTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
