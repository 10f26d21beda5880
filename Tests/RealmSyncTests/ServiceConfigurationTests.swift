import Foundation
import TestSupport
import XCTest

/// The configuration: what is taken, and what is refused at which line.
final class ServiceConfigurationTests: ServiceTestCase {
    private func check(_ text: String, _ arguments: [String] = [], environment: [String: String] = [:]) throws -> RealmSync {
        try Data(text.utf8).write(to: URL(fileURLWithPath: configuration))
        return try RealmSync(["run", "--check-config", "--config", configuration] + arguments, environment: environment)
    }

    /// Fails unless every error is told, with its place, and no other.
    private func expect(_ run: RealmSync, _ errors: [(place: String, text: String)], line: UInt = #line) {
        XCTAssertEqual(run.exitCode, 78, run.errors, line: line)
        let lines = run.errors.split(separator: "\n").map(String.init)
        XCTAssertEqual(lines.count, errors.count, run.errors, line: line)
        for (found, expected) in zip(lines, errors) {
            XCTAssertTrue(found.hasPrefix("realm-sync: \(expected.place): "), "\(found) is not at \(expected.place)", line: line)
            XCTAssertTrue(found.contains(expected.text), "'\(expected.text)' is not in: \(found)", line: line)
        }
    }

    func testEveryErrorIsToldWithItsLine() throws {
        let run = try check(
            """
            # A comment
            [service]
            log-level = loud
            socket = relative.sock
            listen = example.org:80
            lisen = 127.0.0.1:80

            [mirror a]
            source = /x/a.realm
            destination = /y/a.realm
            grace = soon
            grace = 5m
            force = maybe
            rate-limit = 5
            check-every = 0
            cert = /c

            [mirror b]
            source = /x/b.realm
            [miror c]
            [mirror]
            this is nothing
            [mirror a]
            source = "open
            """)
        let f = configuration
        expect(
            run,
            [
                ("\(f):3", "'loud' is none of debug, info, warning, error"), ("\(f):4", "no absolute path"),
                ("\(f):5", "no numeric address"),
                ("\(f):6", "did you mean 'listen'?"), ("\(f):11", "'soon' is not a time"),
                ("\(f):12", "stands at \(f):11 already"),
                ("\(f):13", "neither yes nor no"), ("\(f):14", "not a size"), ("\(f):15", "not a whole number"),
                ("\(f):16", "belong together"),
                ("\(f):18", "[mirror b] has no destination"), ("\(f):20", "did you mean [mirror]?"), ("\(f):21", "needs a name"),
                ("\(f):21", "has no source"), ("\(f):21", "has no destination"),
                ("\(f):22", "neither [section], nor key = value"),
                ("\(f):23", "stands at \(f):8 already"), ("\(f):23", "has no source"), ("\(f):23", "has no destination"),
                ("\(f):23", "given twice"), ("\(f):24", "closing quote"),
            ])
    }

    func testASectionWithoutAKeyHasItsOtherErrorsToldToo() throws {
        let run = try check("[mirror a]\nsource = /x/a\ngrace = soon\n[directory d]\nrecursive = perhaps\narchive = relative\n")
        expect(
            run,
            [
                ("\(configuration):1", "[mirror a] has no destination"), ("\(configuration):3", "'soon' is not a time"),
                ("\(configuration):4", "[directory d] has no source"), ("\(configuration):5", "neither yes nor no"),
                ("\(configuration):6", "no absolute path"),
            ])
    }

    func testTwoStreamsIntoOnePlaceAreRefused() throws {
        let run = try check("[mirror a]\nsource = /x/a\ndestination = /y/a\n[mirror b]\nsource = /x/b\ndestination = /y/a\n")
        expect(run, [("\(configuration):4", "'b' and 'a' both write to /y/a")])
    }

    func testWhatCanNeverWorkIsToldBeforeItIsStarted() throws {
        let f = configuration
        expect(try check("[mirror a]\nsource = /x/a\ndestination = /x//./a\n"), [("\(f):3", "the same file")])
        expect(
            try check(
                """
                [mirror a]
                source = /x/a
                destination = /x/b
                [mirror b]
                source = /x/b
                destination = /x/c
                [mirror c]
                source = /x/c
                destination = /x/a
                [mirror d]
                source = /x/c
                destination = /x/d
                """), [("\(f):7", "'c' mirrors back to /x/a what comes from there: a loop")])
        expect(
            try check(
                "[mirror a]\nsource = /x/a\ndestination = realm://host/a\n[mirror b]\nsource = realm://host/b\ndestination = /x/b\n"
            ),
            [("\(f):3", "needs cert, key and ca, or psk-file"), ("\(f):5", "needs cert, key and ca, or psk-file")])
        XCTAssertEqual(
            try check(
                "[defaults]\npsk-file = /p\n[mirror a]\nsource = /x/a\ndestination = realm://host/a\n[directory d]\nsource = /x\ndestination = realm://host/d\n"
            )
            .exitCode, 0)
        expect(
            try check(
                "[directory d]\nsource = /x\ndestination = /x/\n[directory e]\nsource = /x\ndestination = realm://host/e\n"),
            [("\(f):3", "over itself"), ("\(f):6", "needs cert, key and ca, or psk-file")])
        XCTAssertEqual(try check("[directory d]\nsource = /x\ndestination = /x/copies\n").exitCode, 0)
    }

    func testValuesComeFromFileEnvironmentAndOptionsInThisOrder() throws {
        let text =
            "[service]\nlog-level = info # or debug\n[defaults]\ngrace = 1m\n[mirror my-orders]\nsource = \"/x/a b.realm\"\ndestination = /y/a.realm\n"
        XCTAssertEqual(try check(text).output, "\(configuration): all is well: 1 mirror or archive, 0 directories\n")
        // Each is looked at, and the one that wins is the one that is told to be wrong.
        expect(
            try check(text, environment: ["REALM_SYNC_MIRROR_MY_ORDERS_GRACE": "long"]),
            [("REALM_SYNC_MIRROR_MY_ORDERS_GRACE", "grace: 'long'")])
        expect(
            try check(
                text, ["--set", "mirror my-orders.grace=longer"], environment: ["REALM_SYNC_MIRROR_MY_ORDERS_GRACE": "long"]),
            [("--set mirror my-orders.grace", "grace: 'longer'")])
        XCTAssertEqual(
            try check(
                text, ["--set", "mirror my-orders.grace=2h", "--log-level", "error"],
                environment: ["REALM_SYNC_MIRROR_MY_ORDERS_GRACE": "long"]
            ).exitCode, 0)
        expect(try check(text, ["--log-level", "silent"]), [("--log-level service.log-level", "'silent' is none of")])
        expect(
            try check(text, environment: ["REALM_SYNC_SERVICE_LOGLEVEL": "info"]),
            [("REALM_SYNC_SERVICE_LOGLEVEL", "names no key")])
        expect(try check(text, ["--set", "nonsense"]), [("--set", "SECTION.KEY=VALUE")])
    }

    func testWithoutAFileAllMayComeFromOptions() throws {
        let run = try RealmSync("run", "--check-config", "-s", "mirror a.source=/x", "-s", "mirror a.destination=/y")
        XCTAssertEqual(run.output, "the options: all is well: 1 mirror or archive, 0 directories\n", run.errors)
        let missing = try RealmSync("run", "--check-config", "--config", scratch.file("none"))
        XCTAssertEqual(missing.exitCode, 66, missing.errors)
    }

    func testTheExampleConfigurationIsRight() throws {
        let example = Fixtures.packageRoot.appendingPathComponent("Packaging/realm-sync.conf").path
        let text = try String(contentsOfFile: example, encoding: .utf8)
        XCTAssertEqual(try RealmSync("run", "--check-config", "--config", example).exitCode, 0)
        // What is commented out there is right too.
        let whole = text.split(separator: "\n").map {
            $0.hasPrefix("#[") || ($0.hasPrefix("#") && $0.contains(" = ")) ? $0.dropFirst() : $0
        }
        let run = try check(whole.joined(separator: "\n") + "\n")
        XCTAssertEqual(run.exitCode, 0, run.errors)
        XCTAssertTrue(whole.contains { $0.hasPrefix("[directory ") })
    }

    func testManualPagesAndCompletionHaveEveryCommandOptionAndKey() throws {
        let manual = try RealmSync("help", "--man").output.replacingOccurrences(of: "\\-", with: "-")
        let bash = try RealmSync("completion", "bash").output
        for command in ["run", "mirror", "status", "seed build"] {
            let help = try RealmSync([command.split(separator: " ").map(String.init), ["--help"]].flatMap { $0 }).output
            XCTAssertTrue(manual.contains(".SS \(command)\n"), command)
            let options = help.split(separator: "\n").compactMap { line in
                line.split(separator: " ").first { $0.hasPrefix("--") && line.hasPrefix("  ") }.map(String.init)
            }
            XCTAssertFalse(options.isEmpty)
            for option in options {
                XCTAssertTrue(manual.contains(option), "\(command) \(option)")
                XCTAssertTrue(bash.contains(option), "\(command) \(option)")
            }
        }
        let keys = try RealmSync("help", "--man-config").output.replacingOccurrences(of: "\\-", with: "-")
        for key in ["leave-when-idle", "on-failure", "snapshot-interval", "scan-interval", "stop-timeout"] {
            XCTAssertTrue(keys.contains("\\fB\(key)\\fR"), key)
        }
        // The shells themselves judge, those that are here.
        for (shell, path) in [("bash", "/usr/bin/bash"), ("zsh", "/usr/bin/zsh"), ("fish", "/usr/bin/fish")]
        where FileManager.default.isExecutableFile(atPath: path) {
            let file = scratch.file("completion")
            try RealmSync("completion", shell).output.write(toFile: file, atomically: true, encoding: .utf8)
            let child = try ChildProcess(path: path, ["-n", file])
            XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        }
        let child = try ChildProcess(
            path: "/usr/bin/bash",
            [
                "-c",
                """
                source '\(try saved(bash))'; COMP_WORDS=(realm-sync mir); COMP_CWORD=1; _realm_sync; echo "${COMPREPLY[@]}"
                COMP_WORDS=(realm-sync mirror --fol); COMP_CWORD=2; _realm_sync; echo "${COMPREPLY[@]}"
                COMP_WORDS=(realm-sync seed bu); COMP_CWORD=2; _realm_sync; echo "${COMPREPLY[@]}"
                """,
            ])
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        XCTAssertEqual(child.output, "mirror\n--follow\nbuild\n")
    }

    private func saved(_ text: String) throws -> String {
        let file = scratch.file("completion.bash")
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        return file
    }
}
