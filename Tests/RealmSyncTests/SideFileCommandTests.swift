import Foundation
import TestSupport
import XCTest

/// Commands beside files that are not what their names say.
final class SideFileCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("SideFileCommands", inMemory: true)
    private var path: String { scratch.file("a.realm") }
    private var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: scratch.path)) ?? []).sorted() }
    private func content(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }

    override func setUpWithError() throws {
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: path)
    }

    func testStatusTellsTheRestWhereTheStateOfAMirrorCannotBeRead() throws {
        try FileManager.default.createDirectory(atPath: path + ".management", withIntermediateDirectories: false)
        XCTAssertEqual(mkfifo(path + ".management/mirror.state", 0o600), 0)
        let run = try RealmSync("status", path)
        XCTAssertEqual(run.exitCode, 0, run.errors)
        XCTAssertTrue(run.output.contains("version"), run.output)
        XCTAssertTrue(run.errors.contains("mirror.state: is not a regular file"), run.errors)
    }

    func testAReaderOverwritesNoFileOfTheUserAtTheLockFilesName() throws {
        let before = content(path)
        try Data("the user's own file\n".utf8).write(to: URL(fileURLWithPath: path + ".lock"))
        let run = try RealmSync("export", path)
        XCTAssertNotEqual(run.exitCode, 0)
        XCTAssertTrue(run.errors.contains("a.realm.lock: holds something else than a lock file"), run.errors)
        XCTAssertEqual(content(path + ".lock"), Data("the user's own file\n".utf8))
        XCTAssertEqual(try RealmSync("export", path, "--immutable").exitCode, 0)
        unlink(path + ".lock")
        XCTAssertEqual(link(path, path + ".lock"), 0)
        XCTAssertNotEqual(try RealmSync("export", path).exitCode, 0)
        XCTAssertTrue(content(path) == before)
    }

    func testRefusedMirrorsLeaveNothingBehind() throws {
        let before = content(path)
        for destination in ["", path + ".lock", path + ".note", path + ".management/x.realm", scratch.path, "/dev/null"] {
            for more in [[], ["--force"]] {
                let run = try RealmSync(["mirror", path, destination, "--once"] + more)
                XCTAssertNotEqual(run.exitCode, 0, destination)
                XCTAssertEqual(run.errors.filter { $0 == "\n" }.count, 1, run.errors)
                XCTAssertEqual(names, ["a.realm"], destination)
            }
        }
        XCTAssertTrue(content(path) == before)
        XCTAssertFalse(FileManager.default.fileExists(atPath: "/dev/null.management"))
    }
}
