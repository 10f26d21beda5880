import Foundation
import Glibc
import TestSupport
import XCTest

/// keygen, encrypt, decrypt, rekey, upgrade, and keys for every command.
final class EncryptionCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("EncryptionCommands")
    private var path: String { scratch.file("a.realm") }

    override func setUpWithError() throws {
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/relationships.realm", toPath: path)
    }

    private func export(_ arguments: String...) throws -> ExactJSON {
        let child = try ChildProcess(product: "realm-sync", ["export", path, "--immutable"] + arguments)
        XCTAssertEqual(child.waitForEnd(seconds: 60), 0, child.errors)
        return try ExactJSON(parsing: Array(child.output.utf8))
    }

    private func succeed(_ run: RealmSync, line: UInt = #line) { XCTAssertEqual(run.exitCode, 0, run.errors, line: line) }

    func testAFileIsEncryptedGivenAnotherKeyAndDecrypted() throws {
        let expected = try export(), first = scratch.file("first.key"), second = scratch.file("second.key")
        succeed(try RealmSync("keygen", first))
        succeed(try RealmSync("keygen", second, "--hex"))
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: first)).count, 64)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: second)).count, 129)
        for key in [first, second] {
            let mode = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? NSNumber)
            XCTAssertEqual(mode.uint16Value, 0o600)
        }
        let again = try RealmSync("keygen", first)
        XCTAssertEqual(again.exitCode, 73, again.errors)

        succeed(try RealmSync("encrypt", path, "--key-file", first))
        XCTAssertEqual(try export("--key-file", first), expected)
        XCTAssertEqual(try RealmSync("export", path).exitCode, 65)
        let twice = try RealmSync("encrypt", path, "--key-file", second)
        XCTAssertEqual(twice.exitCode, 65)
        XCTAssertTrue(twice.errors.contains("rekey"), twice.errors)
        XCTAssertEqual(try RealmSync("verify", path, "--key-file", first).exitCode, 0)
        succeed(try RealmSync("rekey", path, "--key-file", first, "--new-key-file", second))
        XCTAssertEqual(try RealmSync("export", path, "--key-file", first).exitCode, 65)
        XCTAssertEqual(try export("--key-file", second), expected)
        let digits = try String(contentsOfFile: second, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        let byVariable = try RealmSync("export", path, "--immutable", "--key-env", "A_KEY", environment: ["A_KEY": digits])
        XCTAssertEqual(try ExactJSON(parsing: Array(byVariable.output.utf8)), expected, byVariable.errors)
        succeed(try RealmSync("decrypt", path, "--key-env", "A_KEY", environment: ["A_KEY": digits]))
        XCTAssertEqual(try export(), expected)
    }

    /// The commands one after the other, as people type them: nobody has opened the file in between.
    func testWhatWasJustEncryptedGivenAnotherKeyOrDecryptedIsArchivedAndMirrored() throws {
        let expected = try export(), first = scratch.file("first.key"), second = scratch.file("second.key")
        succeed(try RealmSync("keygen", first))
        succeed(try RealmSync("keygen", second))
        let steps: [(change: [String], key: [String], refusal: String)] = [
            (["encrypt", path, "--key-file", first], ["--key-file", first], ""),
            (
                ["rekey", path, "--key-file", first, "--new-key-file", second], ["--key-file", second],
                "encrypted with another key"
            ),
            (["decrypt", path, "--key-file", second], [], "its source is not any more"),
        ]
        for (number, step) in steps.enumerated() {
            succeed(try RealmSync(step.change))
            let archive = scratch.file("archive-\(number)"), restored = scratch.file("restored-\(number).realm")
            if number > 0 {
                let before = try RealmSync(["archive", path, scratch.file("archive-\(number - 1)"), "--once"] + step.key)
                XCTAssertEqual(before.exitCode, 65, before.errors)
                XCTAssertTrue(before.errors.contains(step.refusal) && before.errors.contains("another place"), before.errors)
            }
            succeed(try RealmSync(["archive", path, archive, "--once", "--grace", "0"] + step.key))
            succeed(try RealmSync(["restore", archive, restored] + step.key))
            succeed(try RealmSync(["verify", archive, "--scratch", scratch.path] + step.key))
            let text = try RealmSync(["export", restored, "--immutable"] + step.key)
            XCTAssertEqual(try ExactJSON(parsing: Array(text.output.utf8)), expected, text.errors)
        }
        // The mirror of one that nobody has opened, too, and of one that is a bare copy.
        let copy = scratch.file("copy.realm")
        succeed(try RealmSync("copy", path, copy))
        for (number, file) in [path, copy].enumerated() {
            let replica = scratch.file("replica-\(number).realm")
            let mirror = try ChildProcess(product: "realm-sync", ["mirror", file, replica, "--follow"])
            for _ in 0..<1500 where !FileManager.default.fileExists(atPath: replica) { usleep(20_000) }
            mirror.signal(SIGTERM)
            XCTAssertEqual(mirror.waitForEnd(seconds: 60), 0, mirror.errors)
            succeed(try RealmSync("compare", file, replica))
            succeed(try RealmSync("archive", file, scratch.file("archive-of-\(number)"), "--once"))
        }
    }

    func testKeysThatAreMissingTwiceOrWrongAndFilesInUseAreRefusedAndNothingChanges() throws {
        let key = scratch.file("a.key")
        succeed(try RealmSync("keygen", key))
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        for (arguments, code, text) in [
            (["encrypt", path], Int32(64), "--key-file"), (["decrypt", path], 64, "--key-file"),
            (["rekey", path, "--key-file", key], 64, "--new-key-file"),
            (["decrypt", path, "--key-file", key], 65, "not encrypted"),
            (["export", path, "--key-file", key, "--key-env", "X"], 64, "both"),
            (["export", path, "--key-env", "NO_SUCH_KEY"], 64, "NO_SUCH_KEY"),
            (["encrypt", scratch.file("none"), "--key-file", key], 66, "no such file"),
        ] {
            let child = try ChildProcess(product: "realm-sync", arguments)
            XCTAssertEqual(child.waitForEnd(seconds: 60), code, "\(arguments) \(child.errors)")
            XCTAssertTrue(child.errors.contains(text), "\(arguments) \(child.errors)")
        }
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0").hasPrefix("ok"))
        let inUse = try RealmSync("encrypt", path, "--key-file", key)
        XCTAssertEqual(inUse.exitCode, 75)
        XCTAssertTrue(inUse.errors.contains("close it there"), inUse.errors)
        peer.finish()
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
    }

    func testEncryptingTwiceAndAWrongKeyAreToldAsWhatTheyAre() throws {
        let key = scratch.file("a.key"), other = scratch.file("b.key")
        for name in [key, other] { succeed(try RealmSync("keygen", name)) }
        succeed(try RealmSync("encrypt", path, "--key-file", key))
        let same = try RealmSync("encrypt", path, "--key-file", key)
        XCTAssertEqual(same.exitCode, 65)
        XCTAssertTrue(same.errors.contains("is encrypted already, with this key"), same.errors)
        let second = try RealmSync("encrypt", path, "--key-file", other)
        XCTAssertEqual(second.exitCode, 65)
        XCTAssertTrue(second.errors.contains("is encrypted already") && second.errors.contains("rekey"), second.errors)
        for command in [
            ["rekey", path, "--key-file", other, "--new-key-file", key], ["decrypt", path, "--key-file", other],
            ["verify", path, "--key-file", other],
        ] {
            let run = try RealmSync(command)
            XCTAssertEqual(run.exitCode, 65, "\(command)")
            XCTAssertTrue(run.errors.contains("the key is not that of the file"), "\(command): \(run.errors)")
        }
        let folder = try RealmSync("export", path, "--key-file", scratch.path)
        XCTAssertEqual(folder.exitCode, 65)
        XCTAssertTrue(folder.errors.contains("is a directory"), folder.errors)
    }

    func testACutEncryptedFileIsToldOfByItsRealSizeAndVerifiedLikeAPlainOne() throws {
        let key = scratch.file("a.key"), plain = scratch.file("plain.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: path + ".big")
        succeed(try RealmSync("keygen", key))
        try FileManager.default.copyItem(atPath: path + ".big", toPath: plain)
        let file = scratch.file("big.realm")
        try FileManager.default.moveItem(atPath: path + ".big", toPath: file)
        succeed(try RealmSync("encrypt", file, "--key-file", key))
        try FileHandle(forWritingTo: URL(fileURLWithPath: file)).truncate(atOffset: 65_536)
        try FileHandle(forWritingTo: URL(fileURLWithPath: plain)).truncate(atOffset: 65_536)
        let cut = try RealmSync("export", file, "--key-file", key)
        XCTAssertEqual(cut.exitCode, 65)
        XCTAssertTrue(cut.errors.contains("cut off"), cut.errors)
        XCTAssertTrue(cut.errors.contains("65536 bytes"), cut.errors)
        for arguments in [["verify", file, "--key-file", key], ["verify", plain]] {
            let run = try RealmSync(arguments)
            XCTAssertEqual(run.exitCode, 1, "\(arguments): \(run.errors)")
            XCTAssertTrue(run.output.contains("damaged: 1 error"), run.output)
        }
        try FileHandle(forWritingTo: URL(fileURLWithPath: file)).truncate(atOffset: 4096)
        let short = try RealmSync("export", file, "--key-file", key)
        XCTAssertEqual(short.exitCode, 65)
        XCTAssertTrue(short.errors.contains("4096 bytes are too few"), short.errors)
    }

    func testVerifyOfAnEncryptedFileWithoutItsKeyAsksForTheKey() throws {
        let key = scratch.file("a.key")
        succeed(try RealmSync("keygen", key))
        succeed(try RealmSync("encrypt", path, "--key-file", key))
        let run = try RealmSync("verify", path)
        XCTAssertEqual(run.exitCode, 65)
        XCTAssertTrue(run.errors.contains("--key-file"), run.errors)
        XCTAssertEqual(run.output, "")
    }

    func testAKeyFileThatOthersCanReadIsRefusedByEveryCommandUnlessAllowed() throws {
        let key = scratch.file("a.key"), other = scratch.file("b.key")
        succeed(try RealmSync("keygen", key))
        succeed(try RealmSync("keygen", other))
        succeed(try RealmSync("encrypt", path, "--key-file", key))
        chmod(key, 0o644)
        let commands: [[String]] = [
            ["export", path], ["schema", path], ["status", path], ["verify", path], ["query", path, "Person"],
            ["watch", path, "--count", "1"],
            ["copy", path, scratch.file("copy.realm")], ["compact", path], ["seed", "build", path, scratch.file("seed.realm")],
            ["upgrade", path, "--dry-run"], ["decrypt", path], ["rekey", path, "--new-key-file", other],
            ["import", Fixtures.core14 + "/relationships.json", scratch.file("imported.realm")],
        ]
        for command in commands {
            let refused = try ChildProcess(product: "realm-sync", command + ["--key-file", key])
            XCTAssertEqual(refused.waitForEnd(seconds: 60), 77, "\(command) \(refused.errors)")
            XCTAssertTrue(
                refused.errors.contains("chmod 600") && refused.errors.contains("--allow-readable-key-file"),
                "\(command) \(refused.errors)")
            if command[0] == "decrypt" || command[0] == "rekey" { continue }
            let allowed = try ChildProcess(product: "realm-sync", command + ["--key-file", key, "--allow-readable-key-file"])
            XCTAssertEqual(allowed.waitForEnd(seconds: 60), 0, "\(command) \(allowed.errors)")
        }
        chmod(key, 0o600)
        chmod(other, 0o640)
        let refused = try RealmSync("rekey", path, "--key-file", key, "--new-key-file", other)
        XCTAssertEqual(refused.exitCode, 77)
        succeed(try RealmSync("rekey", path, "--key-file", key, "--new-key-file", other, "--allow-readable-key-file"))
    }

    func testUpgradeSaysWhatItWouldDoAndThenDoesIt() throws {
        XCTAssertTrue(try RealmSync("upgrade", path).output.contains("nothing to do"))
        guard let older = Fixtures.older else {
            throw XCTSkip("the files of older formats are not beside the package; their upgrade was not tested")
        }
        let old = scratch.file("old.realm"), backup = scratch.file("old.v22.backup.realm")
        try FileManager.default.copyItem(atPath: older + "/upgrade_1000_22.realm", toPath: old)
        let before = try Data(contentsOf: URL(fileURLWithPath: old))
        let dry = try RealmSync("upgrade", old, "--dry-run")
        succeed(dry)
        XCTAssertTrue(dry.output.contains("would be upgraded from format 22 to 24") && dry.output.contains(backup), dry.output)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: old)), before)
        XCTAssertFalse(FileManager.default.fileExists(atPath: backup))
        let run = try RealmSync("upgrade", old)
        succeed(run)
        XCTAssertTrue(run.output.contains("upgraded from format 22 to 24"), run.output)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: backup)), before)
        let given = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: older + "/upgrade_1000_22.json")))
        XCTAssertNil(try ExactJSON(parsing: Array(RealmSync("export", old).output.utf8)).firstDifference(given))
        try FileManager.default.copyItem(atPath: older + "/sync-client-history-refuse.realm", toPath: scratch.file("sync.realm"))
        XCTAssertEqual(try RealmSync("upgrade", scratch.file("sync.realm"), "--dry-run").exitCode, 65)
    }
}
