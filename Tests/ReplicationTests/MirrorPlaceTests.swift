import Foundation
@testable import Replication
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Where a replica may be made, and what a mirror finds at the names that it uses.
final class MirrorPlaceTests: MirrorTestCase {
    override var isInMemory: Bool { true }

    private func makeSource(_ path: String? = nil) throws {
        let store = try Store.open(path ?? source, options())
        try makeTable(store)
        try store.close()
    }

    private func names() throws -> Set<String> { Set(try FileManager.default.contentsOfDirectory(atPath: scratch.path)) }
    private func content(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }
    private func put(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    /// The mirror is refused with these words, with force as well, and nothing is made or changed.
    private func assertRefused(_ from: String, _ to: String, _ text: String, file: StaticString = #filePath, line: UInt = #line)
        throws
    {
        let before = try names(), database = content(from)
        for force in [false, true] {
            var options = usualMirrorOptions()
            options.force = force
            XCTAssertThrowsError(try Mirror.once(source: from, destination: to, options: options), to, file: file, line: line) {
                XCTAssertTrue("\($0)".contains(text), "\($0)", file: file, line: line)
            }
        }
        XCTAssertEqual(try names(), before, to, file: file, line: line)
        XCTAssertEqual(content(from), database, to, file: file, line: line)
    }

    func testASourceWhoseNameLiesBesideTheReplicaIsNeitherRemovedNorOverwritten() throws {
        let part = replica + ".part"
        try makeSource(part)
        _ = try Mirror.once(source: part, destination: replica, options: usualMirrorOptions())
        try assertSound(part)
        try assertSound(replica)
        for suffix in [".lock", ".note", ".tmp_compaction_space", ".backup-log"] {
            let other = scratch.file("c.realm")
            try makeSource(other + suffix)
            try assertRefused(other + suffix, other, "belongs to the database")
            try assertSound(other + suffix)
        }
    }

    func testNamesBesideTheSourceOrAnyDatabaseAreRefused() throws {
        try makeSource()
        let other = scratch.file("other.realm")
        try makeSource(other)
        for suffix in [".lock", ".note", ".management", ".management/x.realm", ".tmp_compaction_space", ".log"] {
            try assertRefused(source, source + suffix, "belongs to the database")
        }
        try assertRefused(source, scratch.file("a.v23.backup.realm"), "belongs to the database")
        for suffix in [".lock", ".note", ".management/participants/y"] {
            try assertRefused(source, other + suffix, "belongs to the database")
        }
    }

    func testUnusableDestinationsLeaveNothingBehind() throws {
        try makeSource()
        try assertRefused(source, "", "no name of a file")
        try FileManager.default.createDirectory(atPath: scratch.file("folder"), withIntermediateDirectories: false)
        try assertRefused(source, scratch.file("folder"), "is a directory")
        XCTAssertEqual(mkfifo(scratch.file("pipe"), 0o600), 0)
        try assertRefused(source, scratch.file("pipe"), "not a regular file")
    }

    func testALinkToNothingMakesTheFileItStandsFor() throws {
        try makeSource()
        XCTAssertEqual(symlink(scratch.file("nothing"), scratch.file("dangling")), 0)
        _ = try Mirror.once(source: source, destination: scratch.file("dangling"), options: usualMirrorOptions())
        XCTAssertTrue(try SystemCalls.linkStatus(path: scratch.file("dangling")).isSymbolicLink)
        try assertSound(scratch.file("nothing"))
    }

    func testWhatLiesAtTheNamesThatAMirrorUsesIsNotOverwritten() throws {
        try makeSource()
        let precious = scratch.file("precious.txt")
        for name in ["mirror.lock", "mirror.state.part", "mirror.part"] {
            for isHard in [false, true] {
                try put("precious", precious)
                let folder = replica + ".management"
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                XCTAssertEqual(isHard ? link(precious, folder + "/" + name) : symlink(precious, folder + "/" + name), 0)
                let result = Result { try Mirror.once(source: source, destination: replica, options: usualMirrorOptions()) }
                if name == "mirror.lock" {
                    XCTAssertThrowsError(try result.get()) { XCTAssertTrue("\($0)".contains("mirror.lock"), "\($0)") }
                } else {
                    XCTAssertNoThrow(try result.get(), name)
                }
                XCTAssertEqual(content(precious), Data("precious".utf8), "\(name), hard \(isHard)")
                for path in [replica, replica + ".lock", folder, precious] { try? FileManager.default.removeItem(atPath: path) }
            }
        }
        try put("the user's own file", replica + ".lock")
        try assertRefused(source, replica, "something else than a lock file")
        XCTAssertEqual(content(replica + ".lock"), Data("the user's own file".utf8))
    }

    func testALinkInThePlaceOfTheManagementDirectoryIsRefused() throws {
        try makeSource()
        try FileManager.default.createDirectory(atPath: scratch.file("elsewhere"), withIntermediateDirectories: false)
        XCTAssertEqual(symlink(scratch.file("elsewhere"), replica + ".management"), 0)
        try assertRefused(source, replica, "is no directory")
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.file("elsewhere")), [])
    }

    func testAPipeInThePlaceOfTheStateMakesNobodyWait() throws {
        try makeSource()
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        unlink(replica + ".management/mirror.state")
        XCTAssertEqual(mkfifo(replica + ".management/mirror.state", 0o600), 0)
        XCTAssertThrowsError(try Mirror.status(replica)) { XCTAssertTrue("\($0)".contains("not a regular file"), "\($0)") }
        XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())) {
            XCTAssertTrue("\($0)".contains("not a regular file"), "\($0)")
        }
    }

    func testASourcesNameWithEndsOfLinesForgesNoState() throws {
        for name in ["x\nversion 99 24 24\nsource other", "back\\slash\n", "c\r\nd", "plain\\n"] {
            var state = MirrorState(
                source: "/d/" + name, device: 1, inode: 2, lineage: (3, 4),
                snapshot: Snapshot(version: 5, topRef: 24, logicalSize: 4096), mode: .once)
            state.sequence = 6
            let read = try MirrorState(text: state.text, path: "state")
            XCTAssertEqual(read.source, "/d/" + name)
            XCTAssertEqual(read.snapshot.version, 5)
            XCTAssertEqual(read, state)
        }
    }

    func testAReplicaWithASecondNameIsReplacedByForceOnly() throws {
        try makeSource()
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let second = scratch.file("second.realm")
        XCTAssertEqual(link(replica, second), 0)
        XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())) {
            XCTAssertTrue("\($0)".contains("2 names (hard links)"), "\($0)")
        }
        var options = usualMirrorOptions()
        options.force = true
        _ = try Mirror.once(source: source, destination: replica, options: options)
        XCTAssertEqual(try SystemCalls.status(path: replica).linkCount, 1)
        try assertSound(second)
    }

    func testTheFileOfAnImageIsToldWhileItIsThere() throws {
        try makeSource()
        final class Told: @unchecked Sendable {
            // Sendable: used by the test's thread alone.
            var paths: [String?] = []
        }
        let told = Told()
        var options = usualMirrorOptions()
        options.onTemporaryFile = { told.paths.append($0) }
        options.onProgress = { _ in
            guard let path = told.paths.last ?? nil else { return XCTFail("nothing was told") }
            XCTAssertTrue(FileManager.default.fileExists(atPath: path))
        }
        _ = try Mirror.once(source: source, destination: replica, options: options)
        XCTAssertEqual(told.paths, [replica + ".management/mirror.part", nil])
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica + ".management/mirror.part"))
    }
}
