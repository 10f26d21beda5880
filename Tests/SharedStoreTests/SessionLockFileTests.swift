import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// The lock file: its bytes, its mutexes, how it is found or made.
final class SessionLockFileTests: XCTestCase {
    let properties = LockFile.Properties(durability: .full, historyType: 2, historySchemaVersion: 1)

    private func open(_ scratch: ScratchDirectory, seconds: Double = 5) throws -> LockFile {
        try LockFile.open(SessionPaths(scratch.file("a.realm")), properties, .after(.seconds(seconds)))
    }

    private func bytes(_ path: String) -> [UInt8] { [UInt8](FileManager.default.contents(atPath: path) ?? Data()) }

    #if arch(x86_64)
    /// coordination.md 2.1, 2.4: written here once more, by hand, so that nothing of the product is trusted.
    func testFreshLockFileHasExactlyTheDescribedBytes() throws {
        let scratch = ScratchDirectory()
        let file = try open(scratch)
        defer { file.close() }
        var expected = [UInt8](repeating: 0, count: 1728)
        expected[0] = 1
        expected[1] = 40
        expected[2] = 48
        expected[5] = 2
        expected[6] = 14
        expected[44] = 1
        for mutex in [48, 88, 128] { expected[mutex + 16] = 0x90 }
        for condition in [312, 360] { expected[condition + 36] = 1 }
        expected[432] = 32
        for i in 440..<444 { expected[i] = 0xFF }
        XCTAssertEqual(bytes(scratch.file("a.realm.lock")), expected)
    }
    #endif

    func testEveryLayoutMismatchIsReportedWithBothValues() throws {
        let cases: [(offset: Int, value: UInt8, text: String)] = [
            (6, 13, "layout version 13, expected 14"), (1, 44, "mutex size 44"),
            (2, 40, "condition variable size 40, expected 48"),
        ]
        for (offset, value, text) in cases {
            let scratch = ScratchDirectory()
            let holder = try open(scratch)
            defer { holder.close() }
            holder.base.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
            XCTAssertThrowsError(try open(scratch)) { error in
                guard case SessionError.incompatibleLockFile = error else { return XCTFail("\(error)") }
                XCTAssert("\(error)".contains(text), "\(error)")
                XCTAssert("\(error)".contains("a.realm.lock"), "\(error)")
            }
        }
    }

    func testAStaleFileOfAnyContentIsInitialisedAfresh() throws {
        let contents: [[UInt8]] = [
            [], [1], [UInt8](repeating: 0, count: 5000), [UInt8](repeating: 0xA5, count: LockFile.initialByteCount),
            [UInt8](repeating: 0xFF, count: LockFile.initialByteCount + 1280),
            [1, 40, 48, 0, 24, 2, 13, 0], [0, 44, 48, 1] + [UInt8](repeating: 0, count: 1000),
        ]
        for content in contents {
            let scratch = ScratchDirectory()
            XCTAssert(FileManager.default.createFile(atPath: scratch.file("a.realm.lock"), contents: Data(content)))
            let file = try open(scratch)
            defer { file.close() }
            XCTAssertEqual(bytes(scratch.file("a.realm.lock")).count, LockFile.initialByteCount)
            XCTAssertEqual(file.participantCount, 0)
        }
    }

    func testALiveFileIsNotInitialisedAgain() throws {
        let scratch = ScratchDirectory()
        let first = try open(scratch)
        defer { first.close() }
        first.participantCount = 7
        let second = try open(scratch)
        defer { second.close() }
        XCTAssertEqual(second.participantCount, 7)
    }

    func testALiveFileThatIsNeverMarkedInitialisedEndsInAnErrorSoon() throws {
        let scratch = ScratchDirectory()
        let holder = try open(scratch)
        defer { holder.close() }
        holder.base.storeBytes(of: 0, as: UInt8.self)
        XCTAssertThrowsError(try open(scratch, seconds: 60)) { XCTAssert("\($0)".contains("mark of initialisation"), "\($0)") }
    }

    func testAnExclusiveHolderIsWaitedForAndNamed() throws {
        let scratch = ScratchDirectory()
        let descriptor = try SystemCalls.open(scratch.file("a.realm.lock"), O_RDWR | O_CREAT)
        defer { SystemCalls.close(descriptor) }
        XCTAssert(try SystemCalls.tryLock(descriptor, exclusive: true))
        XCTAssertThrowsError(try open(scratch, seconds: 0.1)) { error in
            guard case SessionError.deadlineExceeded(_, _, let holder) = error else { return XCTFail("\(error)") }
            XCTAssert(holder.contains("process \(getpid())"), holder)
        }
    }

    func testMissingDirectoryAndThingsInTheWayNameThePathAtFault() throws {
        let scratch = ScratchDirectory()
        func error(_ path: String) -> String {
            do {
                try LockFile.open(SessionPaths(path), properties, .after(.seconds(1))).close()
                return "no error"
            } catch { return "\(error)" }
        }
        XCTAssert(error(scratch.file("missing/a.realm")).hasPrefix(scratch.file("missing") + ": no such file"))
        try FileManager.default.createDirectory(atPath: scratch.file("b.realm.lock"), withIntermediateDirectories: false)
        let directory = error(scratch.file("b.realm"))
        XCTAssert(directory.hasPrefix(scratch.file("b.realm.lock")), directory)
        XCTAssert(directory.contains("belongs to the database"), directory)
    }

    func testAMutexOfAnyOtherKindIsRefusedInsteadOfTrusted() throws {
        let scratch = ScratchDirectory()
        let file = try open(scratch)
        defer { file.close() }
        for kind in [0, 1, 2, 3, 0x10, 0x80, 0xB0, 0xFFFF_FFFF] as [UInt32] {
            file.mutexAddress(.control).storeBytes(of: kind, toByteOffset: 16, as: UInt32.self)
            XCTAssertThrowsError(try file.lock(.control, .immediate)) {
                guard case SessionError.incompatibleLockFile = $0 else { return XCTFail("\($0)") }
            }
        }
    }

    func testAHeldMutexEndsInAnErrorThatNamesTheHolder() throws {
        let scratch = ScratchDirectory()
        let ours = try open(scratch), theirs = try open(scratch)
        defer {
            ours.close()
            theirs.close()
        }
        try theirs.lock(.write, .immediate)
        defer { theirs.unlock(.write) }
        XCTAssertNil(try ours.tryLock(.write))
        XCTAssertThrowsError(try ours.lock(.write, .after(.milliseconds(20)))) { error in
            guard case SessionError.deadlineExceeded(_, let what, let holder) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(what, "the write lock")
            XCTAssert(holder.contains("process \(getpid())"), holder)
        }
    }

    func testADeadOwnersMutexIsTakenOverAndUsableAgain() throws {
        let scratch = ScratchDirectory()
        let file = try open(scratch), other = try open(scratch)
        defer {
            file.close()
            other.close()
        }
        // A robust mutex belongs to a thread: one that ends while holding it counts as dead.
        let thread = Thread { _ = try? other.lock(.control, .immediate) }
        thread.start()
        while !thread.isFinished { usleep(1000) }
        XCTAssertEqual(try file.lock(.control, .after(.seconds(1))), .fromDeadOwner)
        file.unlock(.control)
        XCTAssertEqual(try file.lock(.control, .after(.seconds(1))), .clean)
        file.unlock(.control)
    }
}
