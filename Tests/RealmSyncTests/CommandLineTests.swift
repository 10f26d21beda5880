import Foundation
import TestSupport
import XCTest

/// Runs the built program, as users do.
struct RealmSync {
    let exitCode: Int32?
    let output: String
    let errors: String

    @discardableResult
    init(_ arguments: String..., environment: [String: String] = [:]) throws {
        try self.init(arguments, environment: environment)
    }

    @discardableResult
    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        let child = try ChildProcess(product: "realm-sync", arguments, environment: environment)
        exitCode = child.waitForEnd(seconds: 60)
        output = child.output
        errors = child.errors
    }

    /// Standard output as JSON.
    func json(file: StaticString = #filePath, line: UInt = #line) throws -> Any {
        try XCTUnwrap(
            try? JSONSerialization.jsonObject(with: Data(output.utf8), options: .fragmentsAllowed),
            "no JSON: \(output.prefix(200))", file: file, line: line)
    }
}

extension ScratchDirectory {
    /// A copy of a given file: who joins its session makes side files.
    func copy(ofGiven name: String) -> String {
        let path = file("given-" + name)
        if !FileManager.default.fileExists(atPath: path) {
            XCTAssertNoThrow(try FileManager.default.copyItem(atPath: Fixtures.core14 + "/" + name, toPath: path))
        }
        return path
    }
}

/// The frame: arguments, help, errors, exit codes.
final class CommandLineTests: XCTestCase {
    private let scratch = ScratchDirectory("CommandLine")

    private func given(_ name: String) -> String { scratch.copy(ofGiven: name) }

    private func copy(_ name: String) throws -> String {
        let path = scratch.file(name)
        try FileManager.default.copyItem(atPath: given(name), toPath: path)
        return path
    }

    /// Fails unless the run ended with `code` and exactly one line on standard error that contains `text`, and nothing on
    /// standard output.
    private func expectFailure(
        _ run: RealmSync, _ code: Int32, _ text: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertEqual(run.exitCode, code, run.errors, file: file, line: line)
        XCTAssertEqual(run.output, "", file: file, line: line)
        XCTAssertTrue(run.errors.hasPrefix("realm-sync: "), run.errors, file: file, line: line)
        XCTAssertTrue(run.errors.contains(text), "'\(text)' is not in: \(run.errors)", file: file, line: line)
        XCTAssertEqual(run.errors.filter { $0 == "\n" }.count, 1, run.errors, file: file, line: line)
        XCTAssertTrue(run.errors.hasSuffix("\n"), file: file, line: line)
    }

    // MARK: Help

    func testHelpNamesEveryCommandAndEachCommandExplainsItself() throws {
        let help = try RealmSync("--help")
        XCTAssertEqual(help.exitCode, 0)
        XCTAssertEqual(help.errors, "")
        let section = help.output.components(separatedBy: "Commands:\n")[1].components(separatedBy: "\n\n")[0]
        let names = section.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }.map { line in
            line.dropFirst(2).components(separatedBy: "  ")[0]
        }
        XCTAssertTrue(Set(names).isSuperset(of: ["export", "schema", "status", "verify", "query", "watch"]), "\(names)")
        for name in names {
            let child = try ChildProcess(product: "realm-sync", name.split(separator: " ").map(String.init) + ["--help"])
            XCTAssertEqual(child.waitForEnd(), 0, name)
            XCTAssertTrue(child.output.contains("Usage: realm-sync \(name)"), child.output)
            XCTAssertTrue(child.output.contains("--help"), child.output)
        }
        XCTAssertEqual(try RealmSync("help", "export").output, try RealmSync("export", "-h").output)
        XCTAssertEqual(try RealmSync("help").output, help.output)
        XCTAssertTrue(
            help.output.split(separator: "\n").allSatisfy { $0.count <= 110 }, "a line of the help is too long for a terminal")
    }

    func testVersionIsOneLine() throws {
        let run = try RealmSync("--version")
        XCTAssertEqual(run.exitCode, 0)
        XCTAssertNotNil(run.output.range(of: #"^realm-sync \d+\.\d+\.\d+\n$"#, options: .regularExpression), run.output)
    }

    // MARK: Wrong use

    func testWrongUseEndsWith64AndNamesWhatIsWrong() throws {
        expectFailure(try RealmSync(), 64, "a command is missing")
        expectFailure(try RealmSync("expotr"), 64, "did you mean 'export'?")
        expectFailure(try RealmSync("frobnicate"), 64, "unknown command 'frobnicate'")
        expectFailure(try RealmSync("--frobnicate"), 64, "a command must come first")
        expectFailure(try RealmSync("export"), 64, "FILE is missing")
        expectFailure(try RealmSync("export", "a", "b"), 64, "unexpected operand 'b'")
        expectFailure(try RealmSync("export", "--kye-file", "k", "a"), 64, "did you mean --key-file?")
        expectFailure(try RealmSync("export", "a", "--key-file"), 64, "--key-file needs a value")
        expectFailure(try RealmSync("export", "a", "-k"), 64, "-k needs a value")
        expectFailure(try RealmSync("schema", "a", "--json=yes"), 64, "--json takes no value")
        expectFailure(try RealmSync("export", "a", "-k", "x", "-k", "y"), 64, "--key-file is given twice")
        expectFailure(try RealmSync("export", "-5"), 64, "write -- before an operand")
        expectFailure(
            try RealmSync("query", given("trees.realm"), "x", "--limit", "many"), 64,
            "option --limit: 'many' is not a whole number")
        expectFailure(try RealmSync("watch", given("trees.realm"), "--count", "0"), 64, "option --count: 0 is out of range")
        expectFailure(try RealmSync("query", given("all-types.realm"), "AllTypes", "--where", "_id"), 64, "PROPERTY=VALUE")
        expectFailure(try RealmSync("query", given("all-types.realm"), "AllTypes", "--where", "_id=x"), 64, "'x' is no int")
        expectFailure(
            try RealmSync("query", given("all-types.realm"), "AllTypes", "--where", "intCool=1"), 64, "did you mean 'intCol'?")
    }

    func testTwoDashesEndTheOptions() throws {
        let path = scratch.file("-odd name.realm")
        try FileManager.default.copyItem(atPath: given("trees.realm"), toPath: path)
        let child = try ChildProcess(
            path: ChildProcess.products.appendingPathComponent("realm-sync").path, ["verify", "--", "-odd name.realm"],
            workingDirectory: scratch.path)
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        XCTAssertTrue(child.output.hasPrefix("-odd name.realm: sound"), child.output)
    }

    // MARK: Files that cannot be opened

    func testEachKindOfTroubleHasItsExitCode() throws {
        expectFailure(try RealmSync("export", scratch.file("nothing.realm")), 66, "no such file")
        expectFailure(try RealmSync("export", scratch.path), 66, "is a directory")
        let text = scratch.file("text.realm")
        try Data(repeating: UInt8(ascii: "a"), count: 4096).write(to: URL(fileURLWithPath: text))
        expectFailure(try RealmSync("export", text), 65, "not a realm file: it begins with text")
        let cut = try copy("big.realm")
        try FileHandle(forWritingTo: URL(fileURLWithPath: cut)).truncate(atOffset: 65536)
        expectFailure(try RealmSync("schema", cut), 65, "cut off")
        expectFailure(try RealmSync("query", given("all-types.realm"), "AllTipes"), 66, "did you mean 'AllTypes'?")
    }

    func testControlCharactersInAPathStayOnOneLine() throws {
        expectFailure(try RealmSync("export", scratch.file("a\nb\u{1B}[31m")), 66, "b\\u{1b}[31m")
    }

    func testAKeyThatDoesNotFitIsToldApart() throws {
        let file = try copy("encrypted.realm")
        let key = try copy("encrypted.key")
        XCTAssertEqual(chmod(key, 0o600), 0)
        XCTAssertEqual(try RealmSync("export", file, "--key-file", key).exitCode, 0)
        let wrong = scratch.file("wrong.key")
        try Data(repeating: 7, count: 64).write(to: URL(fileURLWithPath: wrong))
        XCTAssertEqual(chmod(wrong, 0o600), 0)
        expectFailure(try RealmSync("export", file, "--key-file", wrong), 65, "the key is not that of the file")
        expectFailure(try RealmSync("export", file), 65, "name the key with --key-file")
        expectFailure(try RealmSync("export", given("trees.realm"), "--key-file", key), 65, "not encrypted")
        expectFailure(try RealmSync("export", file, "--key-file", scratch.file("none")), 66, "no such file")
        let noKey = scratch.file("no.key")
        try Data("no key".utf8).write(to: URL(fileURLWithPath: noKey))
        XCTAssertEqual(chmod(noKey, 0o600), 0)
        expectFailure(try RealmSync("export", file, "--key-file", noKey), 65, "holds neither 64 bytes nor 128 hex digits")
        XCTAssertEqual(chmod(key, 0o644), 0)
        expectFailure(try RealmSync("export", file, "--key-file", key), 77, "chmod 600")
    }

    // MARK: Output

    func testAReaderThatGoesAwayIsNoError() throws {
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        let child = try ChildProcess(
            path: "/bin/sh", ["-c", "{ '\(program)' export '\(given("all-types.realm"))'; echo $? >&2; } | head -c 10"])
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertEqual(child.errors, "0\n")
        XCTAssertEqual(child.output.count, 10)
    }

    func testAFullDiskUnderStandardOutputIsAnError() throws {
        try XCTSkipUnless(FileManager.default.fileExists(atPath: "/dev/full"), "/dev/full is absent")
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        let child = try ChildProcess(path: "/bin/sh", ["-c", "'\(program)' export '\(given("trees.realm"))' > /dev/full"])
        XCTAssertEqual(child.waitForEnd(), 74)
        XCTAssertTrue(child.errors.contains("standard output: No space left on device"), child.errors)
    }
}
