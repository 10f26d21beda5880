import Foundation
import Glibc
import SharedStore
import TestSupport
import XCTest

/// What goes wrong is told with the name of what is at fault and with what to do, by one rule for exit codes, and leaves nothing
/// behind.
final class AdviceTests: XCTestCase {
    private let scratch = ScratchDirectory("Advice")

    private func expect(
        _ arguments: [String], _ code: Int32, _ texts: String..., in folder: String? = nil, file: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        let child = try ChildProcess(
            path: ChildProcess.products.appendingPathComponent("realm-sync").path, arguments,
            workingDirectory: folder ?? scratch.path)
        XCTAssertEqual(child.waitForEnd(seconds: 60), code, child.errors, file: file, line: line)
        for text in texts {
            XCTAssertTrue(child.errors.contains(text), "'\(text)' is not in: \(child.errors)", file: file, line: line)
        }
        XCTAssertEqual(child.errors.filter { $0 == "\n" }.count, 1, child.errors, file: file, line: line)
    }

    private func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    func testWhatIsMissingEmptyOrThereAlreadyIsNamedWithAdvice() throws {
        let file = scratch.copy(ofGiven: "trees.realm"), key = scratch.file("a.key")
        XCTAssertEqual(try RealmSync("keygen", key).exitCode, 0)
        try expect(["compact", "missing.realm"], 66, "missing.realm: no such file", "check the path")
        try expect(["compact", ""], 64, "FILE is empty")
        try expect(["status", ""], 64, "FILE is empty")
        try expect(["mirror", "--once", file, ""], 64, "DEST is empty")
        try expect(["keygen", key], 73, "a.key: exists already", "choose another name")
        try expect(["seed", "install", file, "nodir/x"], 66, "nodir: no such file")
        try expect(["seed", "install", file, scratch.path], 66, "is a directory")
        try expect(["copy", file, "no/where.realm"], 66, "no such file")
        XCTAssertFalse(try names(scratch.path).contains { [".management", ".lock"].contains($0) })
    }

    /// In name spaces of its own, where those can be had.
    func testAReadOnlyFileSystemIsToldAsOneAndWhatGoesWithoutASessionGoes() throws {
        let file = scratch.copy(ofGiven: "trees.realm"), folder = scratch.file("mounted")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.moveItem(atPath: file, toPath: folder + "/a.realm")
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        func run(_ command: String) throws -> (exitCode: Int32?, errors: String) {
            let mount = "mount --bind '\(folder)' '\(folder)' && mount -o remount,ro,bind '\(folder)' || exit 99"
            let child = try ChildProcess(
                path: "/usr/bin/unshare", ["--mount", "--map-root-user", "/bin/sh", "-c", "\(mount)\n\(command)"])
            return (child.waitForEnd(seconds: 60), child.errors)
        }
        guard try run("[ ! -w '\(folder)' ]").exitCode == 0 else { throw XCTSkip("nothing can be mounted here") }
        for command in [
            "archive '\(folder)/a.realm' '\(scratch.file("x"))' --once",
            "mirror '\(folder)/a.realm' '\(scratch.file("y"))' --follow",
        ] {
            let child = try run("exec '\(program)' \(command)")
            XCTAssertEqual(child.exitCode, 77, child.errors)
            XCTAssertTrue(
                child.errors.contains("a.realm: the file system is read-only") && child.errors.contains("--once"), child.errors)
        }
        let once = try run("exec '\(program)' mirror '\(folder)/a.realm' '\(scratch.file("copy.realm"))' --once")
        XCTAssertEqual(once.exitCode, 0, once.errors)
    }

    func testNamesThatAreTooLongAreToldWithTheLimit() throws {
        let file = scratch.copy(ofGiven: "trees.realm"), long = String(repeating: "n", count: 240) + ".realm"
        try expect(["mirror", file, long, "--once"], 73, "has 246 bytes", "at most 232")
        try FileManager.default.copyItem(atPath: file, toPath: scratch.file(long))
        try expect(["compact", long], 73, "has 246 bytes", "at most 232")
        try expect(["export", String(repeating: "n", count: 300)], 66, "has 300 bytes")
        try expect(["export", String(repeating: "d/", count: 2500) + "x"], 66, "the path has 5001 bytes", "4095")
    }

    func testANameThatIsNotUTF8IsRefusedAndLeavesNothing() throws {
        let file = scratch.copy(ofGiven: "trees.realm"), folder = scratch.file("empty")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        let child = try ChildProcess(
            path: "/bin/sh", ["-c", "'\(program)' mirror '\(file)' \"$(printf 'b\\377m.realm')\" --once"],
            workingDirectory: folder)
        XCTAssertEqual(child.waitForEnd(seconds: 60), 64, child.errors)
        XCTAssertTrue(child.errors.contains("word 3 of the command line is not UTF-8"), child.errors)
        XCTAssertEqual(try names(folder), [])
    }

    func testFailuresLeaveNoSideFiles() throws {
        let folder = scratch.file("a")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        func path(_ name: String) -> String { folder + "/" + name }
        try String(repeating: "text ", count: 128).write(toFile: path("text.realm"), atomically: true, encoding: .utf8)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/encrypted.realm", toPath: path("e.realm"))
        XCTAssertEqual(try RealmSync("keygen", path("wrong.key")).exitCode, 0)
        let before = try names(folder)
        try expect(["compact", path("text.realm")], 65, "begins with text")
        try expect(["encrypt", path("text.realm"), "-k", path("wrong.key")], 65, "begins with text")
        for way in ["--once", "--follow"] {
            try expect(["mirror", path("none.realm"), path("copy.realm"), way], 66, "none.realm: no such file")
            try expect(["mirror", path("text.realm"), path("copy.realm"), way], 65, "begins with text")
            try expect(["mirror", path("e.realm"), path("copy.realm"), way], 65, "--key-file")
            try expect(
                ["mirror", path("e.realm"), path("copy.realm"), way, "-k", path("wrong.key")], 65,
                "the key is not that of the file")
            try expect(
                ["mirror", scratch.copy(ofGiven: "trees.realm"), path("text.realm"), way], 73,
                "text.realm: exists and is no mirror")
        }
        XCTAssertEqual(try names(folder), before)
    }

    func testALockFileThatIsADanglingLinkIsNamed() throws {
        let file = scratch.copy(ofGiven: "trees.realm")
        unlink(file + ".lock")
        XCTAssertEqual(symlink("no/where", file + ".lock"), 0)
        try expect(["compact", file], 73, "given-trees.realm.lock: is a symbolic link that leads nowhere")
    }

    /// Only other users than root are refused.
    func testMissingPermissionIs77WhateverFileItConcerns() throws {
        let setpriv = "/usr/bin/setpriv"
        let isRoot = getuid() == 0
        if isRoot {
            try XCTSkipUnless(FileManager.default.isExecutableFile(atPath: setpriv), "root, and setpriv is not installed")
        }
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        func run(_ arguments: [String]) throws -> (Int32?, String) {
            let words = isRoot ? ["--reuid=65534", "--regid=65534", "--clear-groups", program] + arguments : arguments
            let child = try ChildProcess(path: isRoot ? setpriv : program, words)
            return (child.waitForEnd(seconds: 60), child.errors)
        }
        let trial = try run(["--version"])
        try XCTSkipUnless(trial.0 == 0, "other users cannot run the program: \(trial.1)")
        let folder = scratch.file("closed"), file = folder + "/a.realm"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/trees.realm", toPath: file)
        chmod(scratch.path, 0o755)
        chmod(file, 0o666)
        // The folder may be searched, but no side file be made in it.
        chmod(folder, 0o555)
        for arguments in [
            ["compact", file], ["mirror", file, folder + "/copy.realm", "--once"], ["keygen", folder + "/a.key"],
            ["copy", file, folder + "/b.realm"],
        ] {
            let (code, errors) = try run(arguments)
            XCTAssertEqual(code, 77, "\(arguments): \(errors)")
        }
        // It may not even be searched.
        chmod(folder, 0o600)
        for arguments in [["promote", file], ["export", file], ["compact", file], ["verify", file]] {
            let (code, errors) = try run(arguments)
            XCTAssertEqual(code, 77, "\(arguments): \(errors)")
            XCTAssertTrue(errors.contains("ermission denied"), "\(arguments): \(errors)")
        }
        chmod(folder, 0o755)
    }

    // MARK: Options that would be ignored

    func testOptionsThatWouldBeIgnoredAreRefused() throws {
        let file = scratch.copy(ofGiven: "all-types.realm")
        try expect(["verify", file, "--version", "3"], 64, "--version is for archives")
        try expect(["verify", file, "--every", "2"], 64, "--every is for archives")
        try expect(["verify", file, "--version", "x"], 64, "--version")
        try expect(["query", file, "AllTypes", "--arg", "1"], 64, "--arg: '1' is one too many")
        try expect(["query", file, "AllTypes", "_id == $0", "--arg", "1", "--arg", "2"], 64, "--arg: '2' is one too many")
        XCTAssertEqual(try RealmSync("query", file, "AllTypes", "_id == $0", "--arg", "1").exitCode, 0)
        let archive = scratch.file("archive")
        XCTAssertEqual(try RealmSync("archive", scratch.copy(ofGiven: "trees.realm"), archive, "--once").exitCode, 0)
        try expect(["verify", archive, "--json"], 64, "--json is for files")
        let history = try RealmSync("history", archive)
        XCTAssertTrue(history.output.hasPrefix("version\tseen\tchanged\tstored\tkind\n"), history.output)
        let early = try RealmSync("restore", archive, scratch.file("early.realm"), "--time", "2020-01-01T00:00:00Z")
        XCTAssertEqual(early.exitCode, 66)
        XCTAssertTrue(early.errors.contains(" days later"), early.errors)
    }

    // MARK: Help

    func testHelpIsGivenForEveryWayOfAsking() throws {
        let help = try RealmSync("help").output
        XCTAssertEqual(try RealmSync("help", "--help").output, help)
        let group = try RealmSync("seed", "--help")
        XCTAssertEqual(group.exitCode, 0)
        XCTAssertTrue(group.output.contains("seed build") && group.output.contains("seed install"), group.output)
        XCTAssertEqual(try RealmSync("help", "seed").output, group.output)
        XCTAssertEqual(try RealmSync("seed").exitCode, 64)
    }

    func testUsageShowsWhatMustBeGivenInTheFormThatTheManualHas() throws {
        for (command, usage) in [
            ("encrypt", "encrypt FILE (--key-file K | --key-env NAME) [OPTIONS]"),
            ("decrypt", "decrypt FILE (--key-file K | --key-env NAME) [OPTIONS]"),
            ("rekey", "rekey FILE (--key-file K | --key-env NAME) (--new-key-file K | --new-key-env NAME) [OPTIONS]"),
            ("mirror", "mirror SOURCE [DEST]... (--once | --follow) [OPTIONS]"),
            ("query", "query FILE CLASS [PREDICATE] [OPTIONS]"),
        ] { XCTAssertTrue(try RealmSync(command, "--help").output.contains("Usage: realm-sync \(usage)\n"), command) }
        let manual = try RealmSync("help", "--man").output
        for text in [
            "\\fBrealm\\-sync encrypt\\fR FILE (\\-\\-key\\-file K | \\-\\-key\\-env NAME) [OPTIONS]", ".SH ENVIRONMENT",
            ".SH EXAMPLES",
            "REALM_SYNC_SSH", "REALM_SYNC_SERVICE_SOCKET", "TMPDIR", "AWS_ACCESS_KEY_ID", "the file system is read\\-only",
        ] {
            XCTAssertTrue(manual.contains(text), text)
        }
    }

    // MARK: Tables that are no classes

    func testTablesThatAreNoClassesAreShownAndQueried() throws {
        let path = scratch.file("tables.realm")
        try makeTables(path)
        let schema = try RealmSync("schema", path)
        XCTAssertTrue(schema.output.contains("\nfoo (table, 2 objects)\n  id: int\n"), schema.output + schema.errors)
        let query = try RealmSync("query", path, "foo", "id > 1")
        XCTAssertEqual(query.exitCode, 0, query.errors)
        XCTAssertTrue(query.output.contains(" 2"), query.output)
        try expect(["query", path, "fool"], 66, "no class or table 'fool'; its tables are foo")
        let text = scratch.file("tables.json")
        try RealmSync("export", path).output.write(toFile: text, atomically: true, encoding: .utf8)
        try expect(["import", text, scratch.file("again.realm")], 65, "table \"foo\" is no class")
    }
}

private func makeTables(_ path: String) throws {
    let store = try Store.open(path)
    try store.write { transaction in
        let table = try transaction.editor.createTable("foo")
        try table.addColumn("id", .int)
        for number in 1...2 { try table.set("id", of: table.createObject(), to: .int(Int64(number))) }
    }
    try store.close()
}
