import Foundation
import TestSupport
import XCTest

/// The commands beside other processes that have the file open.
final class SessionCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("SessionCommands")
    private var path: String { scratch.file("big.realm") }

    override func setUpWithError() throws {
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: path)
    }

    private func status() throws -> [String: Any] {
        try XCTUnwrap(RealmSync("status", path, "--json").json() as? [String: Any])
    }

    // MARK: Looking without touching

    func testStatusAndVerifyOfAFileThatNobodyHasOpenLeaveNothingBehind() throws {
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        XCTAssertTrue(try RealmSync("status", path).output.contains("nobody has the file open"))
        XCTAssertEqual(try RealmSync("verify", path).exitCode, 0)
        XCTAssertEqual(try RealmSync("export", path, "--immutable").exitCode, 0)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), ["big.realm"])
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
    }

    func testAFileInStreamingFormIsReadAndStaysInIt() throws {
        let copy = scratch.file("copy.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/compact-copy.realm", toPath: copy)
        let before = try Data(contentsOf: URL(fileURLWithPath: copy))
        XCTAssertEqual(try RealmSync("export", copy).exitCode, 0)
        XCTAssertEqual(try RealmSync("schema", copy).exitCode, 0)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: copy)), before)
        XCTAssertFalse(FileManager.default.fileExists(atPath: copy + ".lock"))
    }

    // MARK: In a session

    func testStatusTellsWhoHoldsWhich() throws {
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) label=holder create=0").hasPrefix("ok"))
        XCTAssertTrue(peer.ask("live").hasPrefix("ok 8 "))
        XCTAssertEqual(peer.ask("publish 3"), "ok 11")
        let status = try status()
        XCTAssertEqual(status["version"] as? Int, 11)
        let session = try XCTUnwrap(status["session"] as? [String: Any])
        XCTAssertEqual(session["participants"] as? Int, 1)
        XCTAssertEqual(session["otherSoftware"] as? Int, 0)
        let registered = try XCTUnwrap((session["registered"] as? [[String: Any]])?.first)
        XCTAssertEqual(registered["label"] as? String, "holder")
        XCTAssertEqual(registered["pid"] as? Int, Int(peer.processIdentifier))
        XCTAssertEqual((registered["pins"] as? [[String: Any]])?.map { $0["version"] as? Int }, [8])
        let text = try RealmSync("status", path)
        XCTAssertTrue(text.output.contains("holder"), text.output)
        XCTAssertTrue(text.output.contains("TestParticipant"), text.output)
        // The commands have left again.
        XCTAssertTrue(peer.ask("counts").contains("participants=1"))
    }

    func testReadingCommandsSeeTheSessionAndLeaveIt() throws {
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0").hasPrefix("ok"))
        for arguments in [["schema", path], ["export", path], ["query", path, "Item"], ["verify", path]] {
            let child = try ChildProcess(product: "realm-sync", arguments)
            XCTAssertEqual(child.waitForEnd(), 0, child.errors)
            XCTAssertTrue(peer.ask("counts").contains("participants=1"), arguments[0])
        }
    }

    func testASessionWithAnotherDurabilityIsJoinedAsItIs() throws {
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0 durability=unsafe").hasPrefix("ok"))
        XCTAssertEqual(try (status()["session"] as? [String: Any])?["durability"] as? String, "unsafe")
    }

    func testAnEncryptedFileIsReadInItsSession() throws {
        let key = scratch.copy(ofGiven: "encrypted.key")
        XCTAssertEqual(chmod(key, 0o600), 0)
        let file = scratch.copy(ofGiven: "encrypted.realm")
        let watch = try ChildProcess(product: "realm-sync", ["watch", file, "-k", key])
        XCTAssertNotNil(watch.readLine(), watch.errors)
        let status = try XCTUnwrap(RealmSync("status", file, "-k", key, "--json").json() as? [String: Any])
        XCTAssertEqual(status["encrypted"] as? Bool, true)
        XCTAssertEqual((status["session"] as? [String: Any])?["participants"] as? Int, 1)
        XCTAssertEqual(try RealmSync("verify", file, "-k", key).exitCode, 0)
        let expected = try ExactJSON(
            parsing: Array(Data(contentsOf: URL(fileURLWithPath: scratch.copy(ofGiven: "encrypted.json")))))
        XCTAssertEqual(try ExactJSON(parsing: RealmSync("export", file, "-k", key).output), expected)
        watch.signal(SIGTERM)
        XCTAssertEqual(watch.waitForEnd(), 0, watch.errors)
    }

    func testWatchTellsOfCommitsByOthers() throws {
        let child = try ChildProcess(product: "realm-sync", ["watch", path, "--json", "--count", "3"])
        XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).contains("\"version\":8}"))
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0").hasPrefix("ok initiator=false"))
        for version in 9...10 {
            XCTAssertEqual(peer.ask("publish 1"), "ok \(version)")
            XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).contains("\"version\":\(version)}"))
        }
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        XCTAssertTrue(peer.ask("counts").contains("participants=1"))
    }

    func testWatchGoesOnWithTheFileThatReplacesTheFirst() throws {
        let child = try ChildProcess(product: "realm-sync", ["watch", path])
        XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).hasSuffix("version 8"))
        let other = scratch.file("other")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/relationships.realm", toPath: other)
        XCTAssertEqual(rename(other, path), 0)
        XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).hasSuffix("file replaced"))
        XCTAssertNotNil(child.readLine(), child.errors)
        child.signal(SIGTERM)
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
    }

    func testWatchTellsOfAFileThatWasEmptied() throws {
        let child = try ChildProcess(product: "realm-sync", ["watch", path])
        XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).hasSuffix("version 8"))
        XCTAssertEqual(truncate(path, 0), 0)
        XCTAssertTrue(try XCTUnwrap(child.readLine(), child.errors).hasSuffix("file emptied"))
        child.signal(SIGTERM)
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
    }

    func testWatchEndsWithItsReader() throws {
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        let child = try ChildProcess(path: "/bin/sh", ["-c", "'\(program)' watch '\(path)' | head -n 1"])
        XCTAssertEqual(child.waitForEnd(seconds: 60), 0, child.errors)
        XCTAssertTrue(child.output.hasSuffix("version 8\n"), child.output)
    }

    /// An export whose reader has stopped reading is ended from outside: it must not leave a version held.
    func testAnEndedCommandLeavesTheSessionFirst() throws {
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0").hasPrefix("ok"))
        let pipe = scratch.file("pipe")
        XCTAssertEqual(mkfifo(pipe, 0o600), 0)
        let descriptor = open(pipe, O_RDWR)
        defer { close(descriptor) }
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            let child = try ChildProcess(path: "/bin/sh", ["-c", "exec '\(program)' export '\(path)' > '\(pipe)'"])
            var joined = false
            for _ in 0..<2000 where !joined {
                joined = peer.ask("counts").contains("participants=2")
                usleep(5000)
            }
            XCTAssertTrue(joined, child.errors)
            child.signal(signal)
            XCTAssertEqual(child.waitForEnd(), -signal, child.errors)
            XCTAssertTrue(peer.ask("counts").contains("participants=1"))
            XCTAssertEqual(
                ((try status()["session"] as? [String: Any])?["versions"] as? [[String: Any]])?.compactMap { $0["live"] as? Int },
                [0])
        }
    }

    // MARK: Places where nothing may be written

    func testAFolderThatMayNotBeWrittenIsReadWithoutASession() throws {
        let other = try OtherUser()
        XCTAssertEqual(chmod(scratch.path, 0o555), 0)
        XCTAssertEqual(chmod(path, 0o444), 0)
        defer { chmod(scratch.path, 0o755) }
        for arguments in [["export", path], ["schema", path], ["query", path, "Item"], ["verify", path], ["status", path]] {
            let child = try other.run(arguments)
            XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        }
        let child = try other.run(["schema", path])
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertTrue(child.errors.contains("read without joining its session"), child.errors)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), ["big.realm"])
    }

    func testAFileThatMayNotBeReadEndsWith77() throws {
        let other = try OtherUser()
        XCTAssertEqual(chmod(path, 0), 0)
        let child = try other.run(["export", path])
        XCTAssertEqual(child.waitForEnd(), 77)
        XCTAssertTrue(child.errors.contains("permission denied"), child.errors)
    }
}

/// Runs the program without the rights of root: as ourselves, or as the user 65534 where we are root.
struct OtherUser {
    private let prefix: [String]

    init() throws {
        if getuid() != 0 {
            prefix = []
            return
        }
        let setpriv = "/usr/bin/setpriv"
        try XCTSkipUnless(FileManager.default.isExecutableFile(atPath: setpriv), "root, and setpriv is not installed")
        prefix = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
        let trial = try run(["--version"])
        try XCTSkipUnless(trial.waitForEnd() == 0, "other users cannot run the program: \(trial.errors)")
    }

    func run(_ arguments: [String]) throws -> ChildProcess {
        let words = prefix + [ChildProcess.products.appendingPathComponent("realm-sync").path] + arguments
        return try ChildProcess(path: words[0], Array(words.dropFirst()))
    }
}
