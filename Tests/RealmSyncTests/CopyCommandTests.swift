import Foundation
import TestSupport
import XCTest

/// Commands that make files: import, copy, compact, seed.
final class CopyCommandTests: XCTestCase {
    private func export(_ path: String) throws -> ExactJSON {
        try ExactJSON(parsing: RealmSync("export", path, "--immutable").output)
    }

    func testWhatWasImportedExportsTheSameAlsoAfterCopyingAndCompacting() throws {
        for name in ["relationships", "nested-mixed", "trees", "primary-keys"] {
            let scratch = ScratchDirectory(name)
            let json = Fixtures.core14 + "/\(name).json", file = scratch.file("a.realm"), copy = scratch.file("b.realm"),
                seed = scratch.file("seed.realm")
            let expected = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: json)))
            for arguments in [["import", json, file], ["copy", file, copy], ["seed", "build", file, seed], ["compact", file]] {
                let run = try RealmSync(arguments)
                XCTAssertEqual(run.exitCode, 0, "\(name) \(arguments): \(run.errors)")
            }
            for path in [file, copy, seed] {
                XCTAssertNil(expected.firstDifference(try export(path)), "\(name) \(path)")
                let verify = try RealmSync("verify", path)
                XCTAssertEqual(verify.exitCode, 0, verify.output)
            }
            XCTAssertEqual(try FileManager.default.attributesOfItem(atPath: seed)[.posixPermissions] as? Int, 0o444)
        }
    }

    func testNothingIsOverwrittenAndNothingHalfIsLeft() throws {
        let scratch = ScratchDirectory()
        let json = Fixtures.core14 + "/fulltext.json", file = scratch.file("a.realm")
        XCTAssertEqual(try RealmSync("import", json, file).exitCode, 0)
        for arguments in [["import", json, file], ["copy", file, file], ["seed", "build", file, file]] {
            let run = try RealmSync(arguments)
            XCTAssertEqual(run.exitCode, 73, "\(arguments): \(run.errors)")
        }
        let broken = scratch.file("broken.json")
        let text = try XCTUnwrap(FileManager.default.contents(atPath: json))
        try text[..<(text.count / 2)].write(to: URL(fileURLWithPath: broken))
        let run = try RealmSync("import", broken, scratch.file("b.realm"))
        XCTAssertEqual(run.exitCode, 65, run.errors)
        XCTAssertEqual(run.errors.split(separator: "\n").count, 1, run.errors)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.hasPrefix("b.realm") }, [])
    }

    func testOfManyThatInstallASeedAtOnceExactlyOneDoes() throws {
        let scratch = ScratchDirectory()
        let json = Fixtures.core14 + "/relationships.json", file = scratch.file("a.realm"), seed = scratch.file("seed.realm")
        XCTAssertEqual(try RealmSync("import", json, file).exitCode, 0)
        XCTAssertEqual(try RealmSync("seed", "build", file, seed).exitCode, 0)
        for round in 0..<5 {
            let app = scratch.file("app\(round).realm")
            let processes = try (0..<8).map { _ in try ChildProcess(product: "realm-sync", ["seed", "install", seed, app]) }
            for process in processes { XCTAssertEqual(process.waitForEnd(), 0, process.errors) }
            XCTAssertEqual(processes.filter { $0.output.contains("installed") }.count, 1)
            XCTAssertEqual(try RealmSync("verify", app).exitCode, 0)
        }
        let missing = try RealmSync("seed", "install", scratch.file("none.realm"), scratch.file("app.realm"))
        XCTAssertEqual(missing.exitCode, 66, missing.errors)
        XCTAssertFalse(FileManager.default.fileExists(atPath: scratch.file("app.realm")))
    }
}
