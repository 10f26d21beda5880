import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// The version list and the read locks on it (coordination.md section 4).
final class SessionVersionListTests: XCTestCase {
    private var scratch: ScratchDirectory!
    private var file: LockFile!
    private var list: VersionList!
    private var locks: ReadLocks!
    private let soon = Deadline.after(.seconds(60))

    override func setUpWithError() throws {
        scratch = ScratchDirectory("list")
        file = try LockFile.open(
            SessionPaths(scratch.file("a.realm")), .init(durability: .full, historyType: 2, historySchemaVersion: 1),
            .after(.seconds(5)))
        list = VersionList(file)
        locks = ReadLocks(file, register: nil)
        try file.with(.list, soon) { try list.reset(to: Snapshot(version: 1, topRef: 0, logicalSize: 24)) }
    }

    override func tearDown() {
        file.close()
        scratch = nil
    }

    private func snapshot(_ version: UInt64) -> Snapshot {
        Snapshot(version: version, topRef: 800 * Int(version), logicalSize: 8000 * Int(version))
    }
    private func publish(_ version: UInt64) throws { try file.with(.list, soon) { try list.publish(snapshot(version)) } }
    private func purge() throws -> PinnedVersions { try file.with(.list, soon) { try list.purge() } }
    private func records() throws -> [VersionList.Record] { try file.with(.list, soon) { try list.records() } }

    func testResetLeavesOneVersionAtIndexZero() throws {
        XCTAssertEqual(
            try records(),
            [.init(index: 0, snapshot: Snapshot(version: 1, topRef: 0, logicalSize: 24), live: 0, frozen: 0, full: 0)])
        XCTAssertEqual(list.newest, 0)
        XCTAssertEqual(list.allocating, 0)
    }

    func testTheNewestVersionIsSeenThoughSomebodyHasTheMutexAndNothingIsBelievedOfADamagedList() throws {
        XCTAssertEqual(list.newestVersionHint, 1)
        try publish(2)
        // Whoever wanted the mutex here would wait for himself.
        try file.with(.list, soon) { XCTAssertEqual(list.newestVersionHint, 2) }
        let newest = list.newest
        for damaged in [1_000_000, VersionList.none] {
            list.newest = damaged
            XCTAssertEqual(list.newestVersionHint, 0)
        }
        list.newest = newest
        XCTAssertEqual(list.newestVersionHint, 2)
    }

    func testLocksOfOneParticipantCountOncePerKindAndVersion() throws {
        let a = try locks.acquireNewest(.live, soon), b = try locks.acquireNewest(.live, soon)
        let c = try locks.acquire(.frozen, version: 1, soon)
        XCTAssertEqual(try records().map { [$0.live, $0.frozen] }, [[1, 1]])
        XCTAssertEqual(locks.openCount, 3)
        locks.release(a)
        XCTAssertEqual(try records().map { [$0.live, $0.frozen] }, [[1, 1]])
        locks.release(b)
        locks.release(c)
        XCTAssertEqual(try records().map { [$0.live, $0.frozen] }, [[0, 0]])
        XCTAssertEqual(locks.openCount, 0)
    }

    func testAVersionIsAvailableWhileNewestOrHeldInTheSameWay() throws {
        try publish(2)
        XCTAssertThrowsError(try locks.acquire(.live, version: 1, soon)) {
            XCTAssertEqual($0 as? SessionError, .badVersion(path: file.path, version: 1))
        }
        let live = try locks.acquire(.live, version: 2, soon)
        try publish(3)
        let other = ReadLocks(file, register: nil)
        let frozen = try other.acquire(.frozen, version: 2, soon)
        locks.release(live)
        // Held frozen only: its history may go, so it cannot be read live any more.
        XCTAssertThrowsError(try locks.acquire(.live, version: 2, soon))
        let second = try locks.acquire(.frozen, version: 2, soon)
        XCTAssertEqual(second.snapshot, snapshot(2))
        other.release(frozen)
        locks.release(second)
        XCTAssertThrowsError(try locks.acquire(.frozen, version: 2, soon))
        XCTAssertThrowsError(try locks.acquire(.live, version: 99, soon))
        XCTAssertThrowsError(try locks.acquire(.live, version: 0, soon))
    }

    func testPurgeKeepsWhatIsHeldAndTellsWhoKeepsHistory() throws {
        try publish(2)
        let frozen = try locks.acquireNewest(.frozen, soon)
        try publish(3)
        try publish(4)
        let live = try locks.acquireNewest(.live, soon)
        try publish(5)
        let pinned = try purge()
        XCTAssertEqual(pinned.versions.map(\.snapshot), [snapshot(2), snapshot(4), snapshot(5)])
        XCTAssertEqual(pinned.versions.map(\.isLive), [false, true, true])
        XCTAssertEqual(pinned.oldestReachable, 2)
        XCTAssertEqual(pinned.oldestLive, 4)
        XCTAssertTrue(pinned.droppedYoungerEntry, "3 went, and is younger than 2")
        XCTAssertFalse(try purge().droppedYoungerEntry)
        locks.release(frozen)
        locks.release(live)
        let later = try purge()
        XCTAssertEqual(later.versions.map(\.snapshot), [snapshot(5)])
        XCTAssertTrue(later.droppedYoungerEntry == false, "2 and 4 are older than what remains")
    }

    func testAFullLockKeepsItsVersionAndAllYoungerOnes() throws {
        try publish(2)
        file.base.storeBytes(of: 1, toByteOffset: LockFile.recordsOffset + 40 + 32, as: UInt32.self)
        try publish(3)
        try publish(4)
        XCTAssertEqual(try purge().versions.map(\.snapshot.version), [2, 3, 4])
    }

    func testTheListGrowsByThirtyTwoAndKeepsWhatItHas() throws {
        var held: [ReadLock] = []
        for version in 2...101 as ClosedRange<UInt64> {
            held.append(try locks.acquireNewest(version % 2 == 0 ? .live : .frozen, soon))
            try publish(version)
            _ = try purge()
        }
        XCTAssertEqual(try SystemCalls.status(path: file.path).size, LockFile.initialByteCount + 3 * 32 * 40)
        XCTAssertEqual(try file.with(.list, soon) { try list.capacity() }, 128)
        XCTAssertEqual(try records().map(\.snapshot.version).sorted(), Array(1...101))
        // Another participant, which mapped the file before it grew, sees the new records as well.
        let other = ReadLocks(file, register: nil)
        XCTAssertEqual(try other.acquire(.live, version: 101, soon).snapshot, snapshot(101))
        held.forEach { locks.release($0) }
    }

    func testThousandsOfVersionsFitAndTheLimitIsAnError() throws {
        for version in 2...401 as ClosedRange<UInt64> {
            _ = try locks.acquireNewest(.live, soon)
            try publish(version)
        }
        XCTAssertEqual(try records().count, 401)
        // The rest is filled by hand: publishing searches from the front each time.
        var filled = 0
        while try list.capacity() < LockFile.recordCountMax {
            let capacity = try list.capacity()
            defer { filled = capacity }
            for index in filled..<capacity {
                let at = LockFile.recordsOffset + index * LockFile.recordByteCount
                if file.base.loadUnaligned(fromByteOffset: at, as: UInt64.self) == 0 {
                    file.base.storeBytes(of: UInt64(index) + 1000, toByteOffset: at, as: UInt64.self)
                    file.base.storeBytes(of: 8000, toByteOffset: at + 8, as: UInt64.self)
                    file.base.storeBytes(of: 800, toByteOffset: at + 16, as: UInt64.self)
                }
            }
            try publish(UInt64(1_000_000))
        }
        XCTAssertEqual(try records().count, LockFile.recordCountMax - LockFile.recordStep + 1)
        XCTAssertThrowsError(try { while true { try publish(2_000_000) } }()) {
            XCTAssertEqual($0 as? SessionError, .tooManyVersions(path: file.path, limit: LockFile.recordCountMax, holders: ""))
        }
        XCTAssertEqual(try records().count, LockFile.recordCountMax)
    }

    func testAHalfMadeEntryOfADeadWriterIsUsedByTheNext() throws {
        // The dead writer chose entry 5, and had got as far as the top ref.
        list.allocating = 5
        file.base.storeBytes(of: 4242, toByteOffset: LockFile.recordsOffset + 5 * 40 + 16, as: UInt64.self)
        XCTAssertEqual(try purge().versions.map(\.snapshot.version), [1])
        try publish(2)
        XCTAssertEqual(list.newest, 5)
        XCTAssertEqual(list.allocating, 5)
        XCTAssertEqual(try records().map(\.snapshot), [Snapshot(version: 1, topRef: 0, logicalSize: 24), snapshot(2)])
    }

    func testNonsenseInTheListIsAnErrorNeverACrash() throws {
        let offsets = [
            (432, UInt64(3)), (432, 40_000), (432, 0xFFFF_FFFF), (440, 32), (440, 0xFFFF_FFFE), (448 + 8, 3),
            (448 + 8, UInt64.max), (448 + 16, 24),
        ]
        let shift = LockFile.recordsOffset - 448
        for (offset, value) in offsets {
            let at = offset + shift
            let saved = file.base.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            if offset < 448 {
                file.base.storeBytes(of: UInt32(value), toByteOffset: at, as: UInt32.self)
            } else {
                file.base.storeBytes(of: value, toByteOffset: at, as: UInt64.self)
            }
            XCTAssertThrowsError(try locks.acquireNewest(.live, soon), "\(offset) \(value)") {
                guard case SessionError.unusable = $0 else { return XCTFail("\($0)") }
            }
            file.base.storeBytes(of: saved, toByteOffset: at, as: UInt64.self)
        }
        locks.release(try locks.acquireNewest(.live, soon))
    }

    func testACountIsNeverLoweredBelowZeroNorRaisedPastItsEnd() throws {
        try file.with(.list, soon) { try list.release(.live, index: 0) }
        XCTAssertEqual(try records()[0].live, 0)
        file.base.storeBytes(of: UInt32.max, toByteOffset: LockFile.recordsOffset + 24, as: UInt32.self)
        _ = try locks.acquireNewest(.live, soon)
        XCTAssertEqual(try records()[0].live, .max)
    }

    func testAStoppedHolderOfTheListDoesNotStopAReleaseForLong() throws {
        let lock = try locks.acquireNewest(.live, soon)
        let other = try LockFile.open(
            SessionPaths(scratch.file("a.realm")), .init(durability: .full, historyType: 2, historySchemaVersion: 1), soon)
        defer { other.close() }
        try other.lock(.list, .immediate)
        locks.release(lock, .after(.milliseconds(10)))
        XCTAssertEqual(locks.openCount, 0)
        other.unlock(.list)
        XCTAssertEqual(try records()[0].live, 1, "not lowered yet")
        locks.releaseIdle(soon)
        XCTAssertEqual(try records()[0].live, 0)
    }
}
