import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Archives whose place fails, whose power is cut, and which several want to write to.
final class ArchiveFaultTests: ArchiveTestCase {
    func testACutOfPowerAtAnyWriteLosesNothingThatWasArchived() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 71)
        let recorder = FolderPowerCut(root: folder)
        try recorder.record {
            for round in 0..<3 {
                // The second round removes, the third merges again.
                let options = archiveOptions {
                    $0.keep = round == 0 ? nil : 8; $0.snapshotInterval = .seconds(round == 1 ? 0 : 3600)
                }
                try follow(place(), options, commits: 12) { _ in
                    recorder.mark(Int(self.exports.keys.max() ?? 0))
                    try self.commit(store, &random)
                }
                recorder.mark(Int(exports.keys.max() ?? 0))
            }
        }
        try store.close()
        print("seed 71, \(recorder.operationCount) operations")
        var checks = 0
        let count = try recorder.forEachFolder(step: 3, seed: 71) { path, promised, cut in
            let place = try FolderPlace(path, creates: false)
            let reader: ArchiveReader
            do { reader = try ArchiveReader(place, key: key) } catch ArchiveError.notAnArchive {
                XCTAssertNil(promised, "cut \(cut)")
                return
            }
            guard let promised else { return }
            let newest = try reader.newest()
            XCTAssertGreaterThanOrEqual(Int(newest.snapshot.version), promised, "cut \(cut)")
            try assertRestores(reader, newest, verifies: false)
            checks += 1
            // Whoever goes on, goes on from there.
            if checks % 30 == 0 {
                try place.delete(ArchiveNames.lease)
                let next = try XCTUnwrap(try archiveOnce(place))
                try assertRestores(try ArchiveReader(place, key: key), next, verifies: false)
                for entry in try ArchiveReader(place, key: key).history() {
                    try assertRestores(ArchiveReader(place, key: key), entry, verifies: false)
                }
            }
        }
        print("\(count) folders, \(checks) with a promise")
        XCTAssertGreaterThan(checks, 100)
    }

    func testAnySystemCallMayFailAndTheNextArchiverGoesOn() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 72)
        try follow(
            place(),
            archiveOptions {
                $0.keep = 6; $0.snapshotInterval = .zero
            }, commits: 6
        ) { _ in try self.commit(store, &random) }
        var acknowledged: UInt64 = 0
        let folder = folder
        let rounds = try sweepFaults(
            code: ENOSPC, selects: { $0.path.hasPrefix(folder) }, prepare: { _ in try self.commit(store, &random) }
        ) { _ in
            let options = self.archiveOptions {
                $0.keep = 6; $0.snapshotInterval = .zero; $0.leaseDuration = .milliseconds(1)
            }
            acknowledged = try self.archiveOnce(self.place(), options)?.snapshot.version ?? 0
        } check: { _, error in
            let reader = try ArchiveReader(self.place(), key: key)
            let newest = try reader.newest()
            XCTAssertGreaterThanOrEqual(newest.snapshot.version, acknowledged)
            try self.assertRestores(reader, newest, verifies: false)
        }
        print("\(rounds) calls failed")
        XCTAssertGreaterThan(rounds, 20)
        XCTAssertEqual(acknowledged, exports.keys.max())
        for entry in try ArchiveReader(place(), key: key).history() {
            try assertRestores(ArchiveReader(place(), key: key), entry, verifies: false)
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder + "/tmp")
        XCTAssertEqual(left, [], "nothing is left behind")
        try store.close()
    }

    func testLostRequestsAndLostAnswersLeaveNoHole() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 73)
        let place = MemoryPlace()
        var asked = 0
        place.fault = { _, _ in
            asked += 1
            if asked % 7 == 0 { throw ArchivePlaceError.unavailable(place: "memory:", reason: "504") }
        }
        place.lostAnswer = { _, _ in
            asked += 1
            if asked % 11 == 0 { throw ArchivePlaceError.unavailable(place: "memory:", reason: "the answer was lost") }
        }
        let status = try follow(place, archiveOptions { $0.keep = 60 }, commits: 150) { _ in try self.commit(store, &random) }
        place.fault = { _, _ in }
        place.lostAnswer = { _, _ in }
        XCTAssertEqual(status?.version, exports.keys.max())
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        for (a, b) in zip(history, history.dropFirst()) { XCTAssertEqual(a.sequence + 1, b.sequence, "no hole") }
        XCTAssertEqual(history.filter { $0.kind != .step }.map(\.sequence), history.first?.sequence == 0 ? [0] : [])
        XCTAssertGreaterThanOrEqual(history.count, 60)
        for entry in history { try assertRestores(reader, entry, verifies: false) }
        try store.close()
    }

    func testAFailingPlaceCostsTheSourceLittleAndWhatWasMissedIsFoundByContent() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 74)
        let place = MemoryPlace()
        var failures = 0
        var messages: [String] = []
        let lines = Lines()
        try follow(
            place,
            archiveOptions {
                $0.pinLimit = .zero; $0.onMessage = { lines.add($0) }
            }, commits: 20
        ) { number in
            if number == 10 {
                place.fault = { _, _ in
                    failures += 1
                    if failures < 4 {
                        try self.commit(store, &random)
                        throw ArchivePlaceError.unavailable(place: "memory:", reason: "gone")
                    }
                }
            }
            try self.commit(store, &random)
        }
        messages = lines.all
        XCTAssertTrue(messages.contains { $0.contains("let go") }, "\(messages)")
        XCTAssertTrue(messages.contains { $0.contains("found by content") }, "\(messages)")
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        XCTAssertEqual(history.filter { $0.kind == .content }.count, 1)
        XCTAssertEqual(history.filter { $0.kind == .start }.count, 1)
        for entry in history { try assertRestores(reader, entry) }
        try store.close()
    }

    func testNothingIsAskedOfThePlaceWhileNothingIsCommittedAndNothingIsListedButAtTheStart() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 75)
        let place = MemoryPlace()
        var before = MemoryPlace.Requests()
        try follow(place, commits: 40) { number in
            // The rounds from 20 to 30 bring nothing: an archiver that is woken asks nothing.
            if number == 20 { before = place.requests }
            if number == 30 { XCTAssertEqual(place.requests, before) }
            if !(20..<30).contains(number) { try self.commit(store, &random) }
        }
        XCTAssertLessThanOrEqual(place.requests.list, 1)
        let start = place.requests
        try follow(place, commits: 160) { _ in try self.commit(store, &random) }
        let puts = place.requests.put - start.put, gets = place.requests.get - start.get
        print("160 commits: \(puts) puts, \(gets) gets")
        XCTAssertLessThan(puts, 160 * 8 / 5 + 8)
        XCTAssertLessThan(gets, 60, "merging reads nothing again that was put a moment ago")
        XCTAssertEqual(place.requests.list - start.list, 1)
        try store.close()
    }

    func testOneArchiverAtATimeAndALapsedLeaseIsTakenOver() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 76)
        let options = archiveOptions { $0.leaseDuration = .milliseconds(300) }
        var intruded = false
        try follow(place(), options, commits: 4) { number in
            try self.commit(store, &random)
            guard number == 2 else { return }
            XCTAssertThrowsError(try self.archiveOnce(self.place())) {
                XCTAssertTrue("\($0)".contains("process \(getpid())"), "the holder is named: \($0)")
                guard case ArchiveError.leaseHeld = $0 else { return XCTFail("\($0)") }
            }
            intruded = true
        }
        XCTAssertTrue(intruded)
        // A holder that sleeps past its time, and finds out before it writes.
        XCTAssertThrowsError(
            try follow(place(), options, commits: 5) { number in
                if number == 2 {
                    usleep(400_000)
                    _ = try self.archiveOnce(self.place())
                }
                try self.commit(store, &random)
            }
        ) {
            guard case ArchiveError.leaseLost = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertEqual(try archiveOnce(place())?.snapshot.version, exports.keys.max())
        for entry in try ArchiveReader(place(), key: key).history() {
            try assertRestores(ArchiveReader(place(), key: key), entry, verifies: false)
        }
        try store.close()
    }

    #if DEBUG
    func testAFullDiskIsOneMessageHoweverOftenItIsTried() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 77)
        defer { SystemCallInterception.hook = nil }
        let lines = Lines()
        let folder = folder
        var archiver: Archiver?
        var tries = 0, hasCommitted = false, thrown: (any Error)?
        let made = Archiver(source: source, place: try place(), options: archiveOptions { $0.onMessage = { lines.add($0) } }) {
            descriptors, milliseconds in
            if !descriptors.isEmpty {
                if hasCommitted { return .stop }
                hasCommitted = true
                do { try self.commit(store, &random) } catch { thrown = error }
                SystemCallInterception.hook = { $0.name == "pwrite64" && $0.path.hasPrefix(folder + "/tmp/") ? ENOSPC : nil }
            } else if milliseconds > 0, archiver?.status().waitsFor?.contains("No space left") == true {
                tries += 1
                if tries == 6 { SystemCallInterception.hook = nil }
            } else if milliseconds > 0 {
                usleep(1000)
            }
            return thrown == nil ? nil : .stop
        }
        archiver = made
        try made.run()
        if let thrown { throw thrown }
        XCTAssertEqual(tries, 6)
        XCTAssertEqual(lines.all.filter { $0.contains("No space left") }.count, 1, "\(lines.all)")
        XCTAssertEqual(try ArchiveReader(place(), key: key).newest().snapshot.version, exports.keys.max())
        try store.close()
    }
    #endif

    /// What is mounted there was unmounted; or somebody has tidied up in the folder.
    func testAFolderThatIsGoneIsWaitedForAndOneThatIsEmptiedBeginsAnew() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 78)
        let lines = Lines(), away = folder + ".away", folder = folder
        var archiver: Archiver?
        var rounds = 0, tries = 0, thrown: (any Error)?
        let made = Archiver(source: source, place: try place(), options: archiveOptions { $0.onMessage = { lines.add($0) } }) {
            descriptors, milliseconds in
            do {
                if !descriptors.isEmpty {
                    rounds += 1
                    switch rounds {
                    case 1: try FileManager.default.moveItem(atPath: folder, toPath: away)
                    case 2: try FileManager.default.removeItem(atPath: folder + "/tmp")
                    case 3:
                        try FileManager.default.removeItem(atPath: folder)
                        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
                    default: return .stop
                    }
                    try self.commit(store, &random)
                } else if milliseconds > 0, archiver?.status().waitsFor?.contains("the folder is gone") == true {
                    XCTAssertFalse(FileManager.default.fileExists(atPath: folder), "nothing is made in its place")
                    tries += 1
                    if tries == 3 { try FileManager.default.moveItem(atPath: away, toPath: folder) }
                } else if milliseconds > 0 {
                    usleep(1000)
                }
            } catch {
                thrown = error
                return .stop
            }
            return nil
        }
        archiver = made
        try made.run()
        if let thrown { throw thrown }
        XCTAssertEqual(tries, 3)
        XCTAssertEqual(lines.all.filter { $0.contains("the folder is gone") }.count, 1, "\(lines.all)")
        let reader = try ArchiveReader(place(), key: key)
        try assertRestores(reader, try reader.newest())
        XCTAssertEqual(try reader.newest().snapshot.version, exports.keys.max())
        try store.close()
    }

    func testAnArchiverWhosePlaceIsAwayLeavesTheSessionOfASourceThatWasReplaced() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 79)
        let other = scratch.file("other.realm")
        for _ in 0..<3 { try commit(store, &random) }
        let place = MemoryPlace()
        let lines = Lines()
        var isAway = false, rounds = 0, thrown: (any Error)?
        place.fault = { _, _ in if isAway { throw ArchivePlaceError.unavailable(place: "memory:", reason: "gone") } }
        let isReplaced = { lines.all.contains { $0.contains("another file stands at") } }
        let archiver = Archiver(source: source, place: place, options: archiveOptions { $0.onMessage = { lines.add($0) } }) {
            descriptors, milliseconds in
            do {
                if !descriptors.isEmpty {
                    rounds += 1
                    if rounds > 1 { return .stop }
                    try FileManager.default.copyItem(atPath: self.source, toPath: other)
                    isAway = true
                    try self.commit(store, &random)
                } else if milliseconds > 0, isAway, FileManager.default.fileExists(atPath: other) {
                    try store.close()
                    XCTAssertEqual(rename(other, self.source), 0)
                } else if milliseconds > 0 {
                    usleep(1000)
                }
                if isReplaced() { isAway = false }
            } catch {
                thrown = error
                return .stop
            }
            return nil
        }
        try archiver.run()
        if let thrown { throw thrown }
        XCTAssertTrue(isReplaced(), "\(lines.all)")
        // The copy was made before the last commit.
        let reader = try ArchiveReader(place, key: key)
        let newest = try reader.newest()
        XCTAssertEqual(newest.snapshot.version, try XCTUnwrap(exports.keys.max()) - 1)
        try assertRestores(reader, newest)
    }

    /// Its holder on another machine died with its clock a year ahead, or ours was set back by a year.
    func testALeaseOfAClockThatIsAheadIsTakenOverByWhoHasSeenItUnchangedForItsDuration() throws {
        func write(_ token: Int) throws {
            let year: Int64 = 365 * 86_400_000_000_000
            let text =
                "realm-lease 1\nholder somebody\ntoken \(token)\nprocess elsewhere 1 2 3\nduration 150000000\nexpires \(SystemCalls.realTimeNanoseconds() + year)\n"
            try place().put(ArchiveNames.lease, Array(text.utf8), .always)
        }
        try write(1)
        let lease = ArchiveLease(try place(), purpose: "test", duration: .seconds(60))
        XCTAssertThrowsError(try lease.acquire()) {
            XCTAssertTrue("\($0)".contains("somebody, for 1 s more unless renewed"), "it is told how long it may be: \($0)")
        }
        usleep(100_000)
        // A sign of life begins the time anew.
        try write(2)
        XCTAssertThrowsError(try lease.acquire())
        usleep(160_000)
        XCTAssertNoThrow(try lease.acquire())
        lease.release()
    }

    func testWhoWaitsForALeaseSaysSoOnceThoughTheTimeThatIsLeftIsAnotherOneEachTime() throws {
        let store = try makeSource()
        try store.close()
        let place = try place()
        func write(secondsLeft: Int64) throws {
            let expires = secondsLeft == 0 ? 0 : SystemCalls.realTimeNanoseconds() + secondsLeft * 1_000_000_000
            let text = "realm-lease 1\nholder somebody, since ever\ntoken 1\nduration 90000000000000\nexpires \(expires)\n"
            try place.put(ArchiveNames.lease, Array(text.utf8), .always)
        }
        try write(secondsLeft: 40_000)
        let lines = Lines()
        var waits: Set<String> = []
        var archiver: Archiver?
        let made = Archiver(source: source, place: place, options: archiveOptions { $0.onMessage = { lines.add($0) } }) {
            descriptors, milliseconds in
            // With a descriptor it waits for commits: the lease was free at last.
            if !descriptors.isEmpty { return .stop }
            guard milliseconds > 0, let wait = archiver?.status().waitsFor else { return nil }
            waits.insert(wait)
            if waits.count < 5 { try? write(secondsLeft: 40_000 - Int64(waits.count) * 5000) } else { try? write(secondsLeft: 0) }
            return nil
        }
        archiver = made
        try made.run()
        XCTAssertEqual(lines.all.filter { $0.contains("somebody, since ever") }.count, 1, "\(lines.all)")
        XCTAssertEqual(waits.count, 5, "the status tells how long it may be: \(waits)")
    }

    func testTheLeaseOfAProcessThatIsGoneIsFree() throws {
        let child = try TestProcess()
        let text =
            "realm-lease 1\nholder somebody\ntoken 1\nprocess %\nexpires \(SystemCalls.realTimeNanoseconds() + 3_600_000_000_000)\n"
        let fields = try String(contentsOfFile: "/proc/\(child.processIdentifier)/stat", encoding: .utf8)
        let start = fields[try XCTUnwrap(fields.lastIndex(of: ")"))...].split(separator: " ")[20]
        let world = ProcessMark.own.split(separator: " ").prefix(2).joined(separator: " ")
        let mark = "\(world) \(child.processIdentifier) \(start)"
        try place().put(ArchiveNames.lease, Array(text.replacingOccurrences(of: "%", with: mark).utf8), .always)
        let lease = ArchiveLease(try place(), purpose: "test", duration: .seconds(60))
        XCTAssertThrowsError(try lease.acquire()) { XCTAssertTrue("\($0)".contains("somebody"), "\($0)") }
        child.kill()
        XCTAssertNoThrow(try lease.acquire())
        lease.release()
        XCTAssertNoThrow(try ArchiveLease(try place(), purpose: "test", duration: .seconds(60)).acquire(), "given back")
    }

    private final class Lines: @unchecked Sendable {
        // Sendable: behind the lock.
        private let lock = NSLock()
        private var lines: [String] = []
        func add(_ line: String) { lock.withLock { lines.append(line) } }
        var all: [String] { lock.withLock { lines } }
    }
}
