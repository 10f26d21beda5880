import Glibc
import TestSupport
import XCTest

@testable import SharedStore
@testable import SystemCalls

/// Names beside a database that lead to something else: nothing that is not ours is emptied, overwritten, waited for or cut.
final class SideFileTests: XCTestCase {
    private var scratch: ScratchDirectory!
    private var path: String { scratch.file("a.realm") }
    private var lock: String { path + ".lock" }

    override func setUp() { scratch = ScratchDirectory("sidefile") }
    override func tearDown() { scratch = nil }

    private func bytes(_ path: String) -> [UInt8] { [UInt8](FileManager.default.contents(atPath: path) ?? Data()) }
    private func write(_ content: [UInt8], _ path: String) throws { try Data(content).write(to: URL(fileURLWithPath: path)) }

    /// Both ways to a lock file, that of participants and that of whoever keeps everybody out, refuse it and name it.
    private func assertRefused(_ path: String, _ text: String, file: StaticString = #filePath, line: UInt = #line) {
        let ways: [(String, () throws -> Void)] = [
            ("open", { try Participant.open(path).close() }), ("exclusive", { _ = try StoreFiles.withExclusiveAccess(path) {} }),
        ]
        for (name, way) in ways {
            XCTAssertThrowsError(try way(), name, file: file, line: line) { error in
                guard case SessionError.sideFile(path + ".lock", let reason, _) = error else {
                    return XCTFail("\(name): \(error)", file: file, line: line)
                }
                XCTAssertTrue(reason.contains(text), reason, file: file, line: line)
            }
        }
    }

    func testAForeignFileAtTheLockFilesNameIsLeftAsItIs() throws {
        try Participant.open(path).close()
        let database = bytes(path)
        let contents: [[UInt8]] = [
            Array("x".utf8), Array("my notes about locks\n".utf8), Array("müßig\n".utf8),
            Array(String(repeating: "text ", count: 400).utf8.prefix(1728)),
            Array("SQLite format 3".utf8) + [0, 16, 0, 1],
            [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0] + [UInt8](repeating: 0, count: 100), database,
            [UInt8](repeating: 0xA5, count: 100), [UInt8](repeating: 0xFF, count: 5000),
            [UInt8](repeating: 0, count: LockFile.mappedByteCount + 8),
        ]
        for (index, content) in contents.enumerated() {
            try write(content, lock)
            assertRefused(path, "something else than a lock file")
            XCTAssertEqual(bytes(lock), content, "content \(index)")
            XCTAssertEqual(bytes(path), database)
        }
    }

    func testALockFileOfAnotherLayoutIsTakenForOneAndMadeAnew() throws {
        try Participant.open(path).close()
        let fresh = bytes(lock)
        for (offset, value) in [(6, 10), (1, 44), (2, 40), (12, 200), (0, 0)] as [(Int, UInt8)] {
            var other = fresh
            other[offset] = value
            try write(other + [UInt8](repeating: 0, count: 72), lock)
            let participant = try Participant.open(path)
            XCTAssertTrue(participant.attachedAs.isInitiator)
            XCTAssertEqual(participant.lockFile.participantCount, 1)
            try participant.close()
            try write(other, lock)
            XCTAssertNotNil(try StoreFiles.withExclusiveAccess(path) {})
            XCTAssertEqual(bytes(lock), [])
        }
    }

    func testLinksAndOddThingsAtTheLockFilesNameAreNotFollowed() throws {
        try Participant.open(path).close()
        let database = bytes(path)
        let precious = scratch.file("precious.txt")
        try write(Array("precious".utf8), precious)
        for (target, text) in [(precious, "symbolic link"), (path, "symbolic link"), (scratch.file("nothing"), "symbolic link")] {
            unlink(lock)
            XCTAssertEqual(symlink(target, lock), 0)
            assertRefused(path, text)
        }
        unlink(lock)
        XCTAssertEqual(link(path, lock), 0)
        assertRefused(path, "the database itself")
        unlink(lock)
        XCTAssertEqual(mkfifo(lock, 0o600), 0)
        assertRefused(path, "not a regular file")
        XCTAssertEqual(bytes(path), database)
        XCTAssertEqual(bytes(precious), Array("precious".utf8))
        XCTAssertFalse(FileManager.default.fileExists(atPath: scratch.file("nothing")))
    }

    func testFIFOsInTheManagementDirectoryMakeNobodyWait() throws {
        try Participant.open(path).close()
        XCTAssertEqual(mkfifo(path + ".management/participants/1-1-1.participant", 0o600), 0)
        XCTAssertEqual(mkfifo(path + ".management/mirror.state", 0o600), 0)
        let first = try Participant.open(path), second = try Participant.open(path)
        XCTAssertEqual(try second.status().participantCount, 2)
        XCTAssertEqual(Store.mirroredPath(path), "another file")
        try second.close()
        try first.close()
    }

    func testAFolderThatIsThereIsNotCalledMissing() throws {
        #if DEBUG
        try Participant.open(path).close()
        let lock = lock
        SystemCallInterception.hook = { $0.name == "open" && $0.path == lock ? ENOENT : nil }
        defer { SystemCallInterception.hook = nil }
        assertRefused(path, "cannot be made")
        #endif
    }

    func testWhoeverMayOnlyReadMakesNoSideFiles() throws {
        #if DEBUG
        let file = try DatabaseFile.open(path, writable: true, create: true)
        try file.initialize(durability: .unsafe)
        file.close()
        // Root may write everything, so the system's refusal is played.
        let name = path
        SystemCallInterception.hook = { $0.name == "faccessat" && $0.path == name ? EACCES : nil }
        defer { SystemCallInterception.hook = nil }
        XCTAssertThrowsError(try Participant.open(path)) {
            XCTAssertEqual($0 as? OpenError, .permissionDenied(path: path, call: "faccessat"))
        }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), ["a.realm"])
        #endif
    }

    func testACountOfParticipantsThatCannotBeIsAnErrorAndHealsWithTheSession() throws {
        let holder = try Participant.open(path)
        holder.lockFile.participantCount = .max
        XCTAssertThrowsError(try Participant.open(path)) { error in
            guard case SessionError.unusable(lock, let reason) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(reason.contains("4294967295 participants"), reason)
        }
        try holder.close()
        let next = try Participant.open(path)
        XCTAssertEqual(next.lockFile.participantCount, 1)
        try next.close()
    }

    func testALaterVersionWithoutATopArrayIsDamageAndNoEmptyDatabase() throws {
        _ = try given()
        let holder = try Participant.open(path)
        let version = holder.attachedAs.inspection.snapshot.version
        try holder.lockFile.with(.list, .after(.seconds(5))) {
            holder.lockFile.base.storeBytes(of: 0, toByteOffset: LockFile.recordsOffset + 16, as: UInt64.self)
        }
        XCTAssertThrowsError(try holder.acquireNewest(.live)) { XCTAssertTrue("\($0)".contains("has no top array"), "\($0)") }
        XCTAssertThrowsError(try Participant.open(path)) { error in
            guard case SessionError.unusable(_, let reason) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(reason.contains("version \(version) has no top array"), reason)
        }
        try holder.close(force: true)
    }

    func testRenamingAfterLookingReplacesNothing() throws {
        let from = scratch.file("from"), to = scratch.file("to")
        try write([1], from)
        try write([2], to)
        XCTAssertThrowsError(try SystemCalls.renameAfterLooking(from, to: to)) {
            XCTAssertEqual(($0 as? SystemError)?.code, EEXIST)
        }
        XCTAssertEqual(bytes(to), [2])
        unlink(to)
        XCTAssertEqual(symlink("nothing", to), 0)
        XCTAssertThrowsError(try SystemCalls.renameAfterLooking(from, to: to)) {
            XCTAssertEqual(($0 as? SystemError)?.code, EEXIST)
        }
        unlink(to)
        try SystemCalls.renameAfterLooking(from, to: to)
        XCTAssertEqual(bytes(to), [1])
        XCTAssertFalse(FileManager.default.fileExists(atPath: from))
    }

    func testALackOfDescriptorsSaysWhatToDo() {
        XCTAssertTrue("\(SystemError(call: "eventfd2", code: EMFILE))".contains("ulimit -n"))
    }

    // MARK: The end of the file

    private struct Layout {
        var top: Int
        var width: Int
        var names: Int
        var logicalSize: Int
    }

    /// A given file with much in it, and where its top array lies.
    private func given() throws -> ([UInt8], Layout) {
        let content = bytes(Fixtures.core14 + "/big.realm")
        try write(content, path)
        let file = try DatabaseFile.open(path, writable: false)
        defer { file.close() }
        let inspection = try file.inspect()
        let view = try file.view(of: inspection.snapshot)
        let top = try view.memory.node(inspection.snapshot.topRef)
        return (
            content,
            Layout(
                top: top.ref, width: top.width / 8, names: try top.requiredRef(TopSlot.names),
                logicalSize: inspection.snapshot.logicalSize)
        )
    }

    func testALogicalSizeThatIsTooSmallCutsNothingOff() throws {
        let (content, layout) = try given()
        XCTAssertGreaterThanOrEqual(layout.width, 4)
        for size in [layout.top + 512, layout.top + 4096] where size < layout.logicalSize - 8192 {
            var damaged = content
            withUnsafeBytes(of: UInt64(2 * size + 1).littleEndian) {
                for i in 0..<layout.width { damaged[layout.top + 8 + TopSlot.logicalSize * layout.width + i] = $0[i] }
            }
            try write(damaged, path)
            XCTAssertThrowsError(try Participant.open(path), "\(size)") { error in
                guard case OpenError.damaged(path, _) = error else { return XCTFail("\(error)") }
                XCTAssertTrue("\(error)".contains("behind the logical size"), "\(error)")
            }
            XCTAssertTrue(bytes(path) == damaged, "the file is as it was, \(size)")
        }
        XCTAssertLessThan(layout.top + 512, layout.logicalSize - 8192, "the given file has something behind its top array")
    }

    func testWhatNobodyUsesBehindTheLogicalSizeIsCutOff() throws {
        let (content, layout) = try given()
        let aligned = (layout.logicalSize + SystemCalls.pageSize - 1) / SystemCalls.pageSize * SystemCalls.pageSize
        for byte in [0, 0xAA] as [UInt8] {
            try write(content + [UInt8](repeating: byte, count: aligned - content.count + 40 * SystemCalls.pageSize), path)
            try Participant.open(path).close()
            XCTAssertEqual(try SystemCalls.status(path: path).size, aligned)
        }
    }

    func testWhereTheTreeCannotBeReadTheFileStaysAsLongAsItIs() throws {
        let (content, layout) = try given()
        var damaged = content + [UInt8](repeating: 0xAA, count: 10 * SystemCalls.pageSize)
        damaged[layout.names + 4] = 0x1F
        try write(damaged, path)
        try Participant.open(path).close()
        XCTAssertTrue(bytes(path) == damaged)
    }
}
