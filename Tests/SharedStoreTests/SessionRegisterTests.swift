import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// The register of participants: what a killed process of ours held comes back, and nothing else does.
class SessionRegisterTests: XCTestCase {
    var key: EncryptionKey? { TestKeys.usual }
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }

    override func setUp() { scratch = ScratchDirectory("register") }
    override func tearDown() { scratch = nil }

    private func open(_ path: String, _ options: ParticipantOptions = ParticipantOptions()) throws -> Participant {
        var options = options
        options.encryptionKey = key
        return try Participant.open(path, options)
    }

    private func counts(_ participant: Participant) throws -> [[UInt32]] {
        try participant.lockFile.with(.list, .after(.seconds(10))) { try VersionList(participant.lockFile).records() }
            .sorted { $0.snapshot.version < $1.snapshot.version }.map { [UInt32($0.snapshot.version), $0.live, $0.frozen] }
    }

    private func registerFiles() -> [String] { ParticipantRegister.filePaths(SessionPaths(path)) }

    private func wait(_ what: String, until isTrue: () throws -> Bool) rethrows {
        let limit = Deadline.after(.seconds(TestTime.limit(20)))
        while try !isTrue() {
            if limit.hasPassed { return XCTFail("\(what) did not happen") }
            usleep(2000)
        }
    }

    /// Recipe 12, with our remedy.
    func testTheNextOpenerGivesBackWhatAKilledProcessHeld() throws {
        let anchor = try TestProcess(key: key)
        anchor.ask("open \(path)")
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        XCTAssertEqual(victim.ask("live"), "ok 1 0 24")
        XCTAssertEqual(anchor.ask("publish 2"), "ok 3")
        XCTAssertEqual(victim.ask("frozen"), "ok 3 0 24")
        XCTAssertEqual(anchor.ask("publish"), "ok 4")
        anchor.stop()
        victim.kill()
        let opener = try open(path)
        XCTAssertEqual(try counts(opener), [[1, 0, 0], [3, 0, 0], [4, 0, 0]])
        XCTAssertEqual(opener.lockFile.participantCount, 2)
        XCTAssertEqual(registerFiles().count, 2)
        anchor.resume()
        XCTAssertEqual(anchor.ask("publish"), "ok 5")
        XCTAssertEqual(try counts(opener).map { $0[0] }, [4, 5], "the purge of the next commit drops what nobody holds")
        try opener.close()
    }

    func testTheWatchdogDoesSoWithoutAnybodyOpening() throws {
        let anchor = try open(path)
        let victims = try (0..<3).map { _ in try TestProcess(key: key) }
        for victim in victims {
            victim.ask("open \(path)")
            victim.ask("live")
            victim.ask("frozen")
        }
        XCTAssertEqual(try counts(anchor), [[1, 3, 3]])
        victims.forEach { $0.kill() }
        try wait("sweeping") { try counts(anchor) == [[1, 0, 0]] && anchor.lockFile.participantCount == 1 }
        XCTAssertEqual(registerFiles().count, 1)
        try anchor.close()
        XCTAssertEqual(registerFiles(), [])
    }

    func testAKilledWritersOwnLockComesBack() throws {
        let anchor = try open(path)
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("kill-at publish.before-newest")
        XCTAssertEqual(victim.ask("publish"), "gone")
        try wait("sweeping") { try counts(anchor).first == [1, 0, 0] }
        try anchor.close()
    }

    func testCountsOfOtherSoftwareAreNeverTouched() throws {
        let anchor = try open(path)
        // A participant without a register: two live locks on version 1, and one participant.
        let record = anchor.lockFile.base + LockFile.recordsOffset
        record.storeBytes(of: 2, toByteOffset: 24, as: UInt32.self)
        anchor.lockFile.participantCount += 1
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("live")
        XCTAssertEqual(try counts(anchor), [[1, 3, 0]])
        XCTAssertEqual(anchor.lockFile.participantCount, 3)
        victim.kill()
        wait("sweeping") { anchor.lockFile.participantCount == 2 }
        XCTAssertEqual(try counts(anchor), [[1, 2, 0]])
        _ = try anchor.sweepDeadParticipants()
        XCTAssertEqual(try counts(anchor), [[1, 2, 0]])
        XCTAssertEqual(try anchor.status().unregisteredParticipantCount, 1)
        XCTAssertEqual(try anchor.status().versions[0].unregisteredLockCount, 2)
        try anchor.close()
    }

    func testTheRegisterOfAnEarlierSessionIsVoid() throws {
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("live")
        victim.kill()
        XCTAssertEqual(registerFiles().count, 1)
        // Other software starts the next session, without a look at our register: version 1 at index 0, held live once by itself.
        let foreign = try LockFile.open(
            SessionPaths(path), .init(durability: .full, historyType: 2, historySchemaVersion: 1), .after(.seconds(5)))
        try foreign.with(.list, .after(.seconds(5))) {
            try VersionList(foreign).reset(to: Snapshot(version: 1, topRef: 0, logicalSize: 24))
            _ = try VersionList(foreign).acquireNewest(.live)
        }
        foreign.fileFormat = 24
        foreign.participantCount = 1
        foreign.latestVersion = 1
        let ours = try open(path)
        XCTAssertEqual(try counts(ours), [[1, 1, 0]], "its lock must not be given back in the name of our dead one")
        XCTAssertEqual(foreign.participantCount, 2)
        XCTAssertEqual(registerFiles().count, 1, "the void register is removed")
        try ours.close()
        XCTAssertEqual(foreign.participantCount, 1)
        foreign.close()
    }

    func testAKillBetweenRegisterAndCountLosesACountButNeverGivesOneTwice() throws {
        let anchor = try open(path)
        let mine = try anchor.acquireNewest(.live)
        let victim = try TestProcess(key: key)
        victim.ask("open \(path)")
        victim.ask("live")
        victim.ask("kill-at read-lock.between-register-and-count")
        XCTAssertEqual(victim.ask("release"), "gone")
        wait("sweeping") { anchor.lockFile.participantCount == 1 }
        XCTAssertEqual(try counts(anchor), [[1, 2, 0]])
        anchor.release(mine)
        try anchor.close()
    }

    func testASweeperKilledHalfWayLeavesTheRestToTheNext() throws {
        let anchor = try TestProcess(key: key), victim = try TestProcess(key: key), sweeper = try TestProcess(key: key)
        anchor.ask("open \(path)")
        victim.ask("open \(path)")
        victim.ask("live")
        victim.ask("frozen")
        anchor.stop()
        victim.kill()
        sweeper.ask("kill-at sweep.between-register-and-count")
        XCTAssertEqual(sweeper.ask("open \(path)"), "gone")
        anchor.resume()
        let opener = try open(path)
        wait("sweeping") { opener.lockFile.participantCount == 2 }
        XCTAssertEqual(try counts(opener), [[1, 1, 0]], "one count is lost with the sweeper, the other was given back")
        try opener.close()
    }

    func testAPinThatProtectsAnUnsyncedHeaderStays() throws {
        // A file whose header points to a version that is not the newest, as a batch without syncs leaves it.
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/trees.realm", toPath: path)
        if let key { try StoreFiles.changeKey(path, from: nil, to: key) }
        let anchor = try open(path)
        let base = anchor.attachedAs.inspection.snapshot
        let victim = try TestProcess(key: key), other = try TestProcess(key: key)
        for process in [victim, other] { process.ask("open \(path)") }
        victim.ask("live")
        let newer = Snapshot(version: base.version + 1, topRef: base.topRef - 8, logicalSize: base.logicalSize)
        try anchor.lockFile.with(.list, .after(.seconds(5))) { try VersionList(anchor.lockFile).publish(newer) }
        other.ask("live")
        victim.kill()
        other.kill()
        wait("sweeping") { anchor.lockFile.participantCount == 2 }
        XCTAssertEqual(try counts(anchor).map { $0[1] }, [1, 0])
        try anchor.close()
    }

    func testStatusSaysWhoHoldsWhatSinceWhen() throws {
        let before = UInt64(SystemCalls.realTimeNanoseconds())
        let participant = try open(
            path,
            {
                var o = ParticipantOptions(); o.label = "tests"; return o
            }())
        let process = try TestProcess(key: key)
        process.ask("open \(path) label=holder")
        process.ask("live")
        process.ask("publish 2")
        process.ask("frozen")
        let status = try participant.status()
        let after = UInt64(SystemCalls.realTimeNanoseconds())
        XCTAssertEqual(status.participantCount, 2)
        XCTAssertEqual(status.unregisteredParticipantCount, 0)
        XCTAssertEqual(status.newestVersion, 3)
        XCTAssertEqual(status.versions.map(\.version), [1, 2, 3], "2 goes with the next commit")
        XCTAssertEqual(status.versions.map(\.unregisteredLockCount), [0, 0, 0])
        XCTAssertNil(status.writer)
        let holder = try XCTUnwrap(status.participants.first { $0.label == "holder" })
        XCTAssertEqual(holder.processIdentifier, UInt64(process.processIdentifier))
        XCTAssertEqual(holder.programName, "TestParticipant")
        XCTAssertTrue(holder.isAlive)
        XCTAssertEqual(holder.pins.map(\.version), [1, 3])
        XCTAssertEqual(holder.pins.map(\.isLive), [true, false])
        for pin in holder.pins { XCTAssert((before...after).contains(pin.since)) }
        XCTAssertNotNil(status.participants.first { $0.label == "tests" })
        process.ask("begin")
        XCTAssertEqual(try participant.status().writer, "process \(process.processIdentifier) (TestParticipant)")
        process.finish()
        XCTAssertEqual(try participant.status().participants.count, 1)
        try participant.close()
    }

    func testNonsenseInTheRegisterIsHarmless() throws {
        let anchor = try open(path)
        let directory = path + ".management/participants/"
        var generator = SplitMix(seed: 7)
        // The header of a real one, with entries that point anywhere.
        let real = [UInt8](FileManager.default.contents(atPath: registerFiles()[0]) ?? Data())
        for i in 0..<40 {
            var bytes = real
            for _ in 0..<50 { bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next()) }
            if i % 4 == 0 { bytes.removeLast(Int(generator.next() % UInt64(bytes.count))) }
            try Data(bytes).write(to: URL(fileURLWithPath: directory + "\(i).participant"))
        }
        for i in 40..<50 { try Data().write(to: URL(fileURLWithPath: directory + "\(i).participant")) }
        wait("removal") { registerFiles().count == 1 }
        XCTAssertGreaterThanOrEqual(anchor.lockFile.participantCount, 1)
        XCTAssertEqual(try counts(anchor), [[1, 0, 0]])
        try anchor.close()
    }

    func testOpeningGoesOnWithoutARegister() throws {
        #if DEBUG
        for call in ["mkdir", "fcntl"] {
            SystemCallInterception.hook = { $0.name == call ? EPERM : nil }
            defer { SystemCallInterception.hook = nil }
            let participant = try open(path)
            XCTAssertFalse(participant.warnings.isEmpty)
            XCTAssertEqual(participant.lockFile.participantCount, 1)
            participant.release(try participant.acquireNewest(.live))
            SystemCallInterception.hook = nil
            try participant.close()
        }
        #endif
    }
}

/// The same over encrypted files.
final class EncryptedSessionRegisterTests: SessionRegisterTests {
    override var key: EncryptionKey? { TestKeys.test }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
