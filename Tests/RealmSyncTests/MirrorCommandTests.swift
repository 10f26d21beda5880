import Foundation
import TestSupport
import XCTest

/// `mirror`, `promote`, `serve` and `certs` as commands.
final class MirrorCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("MirrorCommands")

    private func writer(_ path: String, _ arguments: String = "") throws -> TestProcess {
        let writer = try TestProcess()
        XCTAssertEqual(writer.ask("ledger-open \(path) \(arguments)"), "ok")
        XCTAssertEqual(writer.ask("ledger-setup"), "ok 2")
        return writer
    }

    private func status(_ mirror: ChildProcess, _ words: String) -> String {
        for _ in 0..<1000 where !mindsUserSignal(mirror) { usleep(5000) }
        var line = ""
        for _ in 0..<200 where !line.contains(words) {
            mirror.signal(SIGUSR1)
            line = mirror.readLine(seconds: 2) ?? ""
        }
        return line
    }

    /// Whether the program has come so far that SIGUSR1 does not end it: ignored, caught or blocked (proc(5), masks of `status`).
    private func mindsUserSignal(_ process: ChildProcess) -> Bool {
        let text = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").contains { line in
            ["SigIgn:", "SigCgt:", "SigBlk:"].contains { line.hasPrefix($0) }
                && UInt64(line.dropFirst(7).trimmingCharacters(in: .whitespaces), radix: 16).map {
                    $0 & 1 << UInt64(SIGUSR1 - 1) != 0
                } == true
        }
    }

    func testTheMirrorFollowsTellsItsStatusObeysSignalsAndStops() throws {
        let source = scratch.file("a.realm"), replica = scratch.file("b.realm")
        let writer = try writer(source)
        let mirror = try ChildProcess(product: "realm-sync", ["mirror", source, replica, "--follow"])
        writer.ask("ledger-commit 10 1")
        XCTAssertTrue(status(mirror, "version 12 ").contains("0 behind"), mirror.errors)
        let second = try RealmSync("mirror", source, replica, "--follow")
        XCTAssertEqual(second.exitCode, 75)
        XCTAssertTrue(second.errors.contains("process \(mirror.processIdentifier) on "), second.errors)
        XCTAssertEqual(try RealmSync("promote", replica).exitCode, 75)
        XCTAssertEqual(try RealmSync("mirror", replica, source, "--once").exitCode, 64, "a loop")
        XCTAssertEqual(try RealmSync("mirror", source, source, "--once").exitCode, 64)
        mirror.signal(SIGHUP)
        writer.ask("ledger-commit 3 2")
        XCTAssertTrue(status(mirror, "version 15 ").contains("0 behind"), mirror.errors)
        XCTAssertTrue(mirror.errors.contains("opening source and replica again"), mirror.errors)
        let facts = try XCTUnwrap((RealmSync("status", replica, "--json").json() as? [String: Any])?["mirror"] as? [String: Any])
        XCTAssertEqual(facts["version"] as? Int, 15)
        XCTAssertEqual(facts["sourceVersion"] as? Int, 15)
        let text = try RealmSync("status", replica).output
        for words in ["mirror of", source, "up to date", "process \(mirror.processIdentifier)"] {
            XCTAssertTrue(text.contains(words), text)
        }
        mirror.signal(SIGTERM)
        XCTAssertEqual(mirror.waitForEnd(), 0, mirror.errors)
        writer.ask("ledger-commit 2 3")
        XCTAssertTrue(try RealmSync("status", replica).output.contains("2 versions behind"))
        XCTAssertEqual(try RealmSync("promote", replica).exitCode, 0)
        XCTAssertEqual(try RealmSync("promote", replica).exitCode, 65)
        XCTAssertEqual(try RealmSync("mirror", source, replica, "--once").exitCode, 73)
        XCTAssertEqual(try RealmSync("mirror", source, replica).exitCode, 64)
        XCTAssertEqual(try RealmSync("verify", replica).exitCode, 0)
        writer.finish()
    }

    func testAnEncryptedFileIsMirroredWithItsKeyAnotherOneOrPlainOnDemand() throws {
        let key = scratch.file("key"), other = scratch.file("other"), source = scratch.file("a.realm")
        for path in [key, other] { XCTAssertEqual(try RealmSync("keygen", path).exitCode, 0) }
        let csv = scratch.file("t.csv")
        try Data("name\nsecret words\n".utf8).write(to: URL(fileURLWithPath: csv))
        XCTAssertEqual(try RealmSync("import", csv, source, "--key-file", key).exitCode, 0)
        XCTAssertNotEqual(try RealmSync("mirror", source, scratch.file("no.realm"), "--once").exitCode, 0)
        for (name, arguments, readKey) in [
            ("same", [], key), ("another", ["--dest-key-file", other], other), ("plain", ["--dest-plain"], nil),
        ] as [(String, [String], String?)] {
            let replica = scratch.file(name + ".realm")
            let run = try RealmSync(["mirror", source, replica, "--once", "--key-file", key] + arguments)
            XCTAssertEqual(run.exitCode, 0, run.errors)
            let bytes = try Data(contentsOf: URL(fileURLWithPath: replica))
            XCTAssertEqual(bytes.range(of: Data("secret words".utf8)) == nil, readKey != nil, name)
            XCTAssertTrue(
                try RealmSync(["export", replica] + (readKey.map { ["--key-file", $0] } ?? [])).output.contains("secret words"),
                name)
        }
        XCTAssertEqual(
            try RealmSync("mirror", source, scratch.file("x.realm"), "--once", "--dest-plain", "--dest-key-file", other).exitCode,
            64)
    }

    /// A replica that has another key than the mirror is told to use, or none, is left as it is and told of; force sets it aside.
    func testAReplicaWithAnotherKeyIsLeftAloneAndReplacedByForce() throws {
        let key = scratch.file("key"), other = scratch.file("other"), source = scratch.file("a.realm")
        for path in [key, other] { XCTAssertEqual(try RealmSync("keygen", path).exitCode, 0) }
        let csv = scratch.file("t.csv")
        try Data("name\nsecret words\n".utf8).write(to: URL(fileURLWithPath: csv))
        XCTAssertEqual(try RealmSync("import", csv, source, "--key-file", key).exitCode, 0)
        let ways = [("same", []), ("another", ["--dest-key-file", other]), ("plain", ["--dest-plain"])] as [(String, [String])]
        for (first, made) in ways {
            for (second, wanted) in ways where first != second {
                let replica = scratch.file("\(first)-\(second).realm")
                let mirror = ["mirror", source, replica, "--key-file", key]
                XCTAssertEqual(try RealmSync(mirror + ["--once"] + made).exitCode, 0)
                let before = try Data(contentsOf: URL(fileURLWithPath: replica))
                for how in ["--once", "--follow"] {
                    let refused = try RealmSync(mirror + [how] + wanted)
                    XCTAssertEqual(refused.exitCode, 65, "\(first), \(second), \(how): \(refused.errors)")
                    let reason =
                        first == "plain"
                        ? "not encrypted" : second == "plain" ? "no key was given" : "the key is not that of the file"
                    XCTAssertTrue(
                        refused.errors.contains(reason) && refused.errors.contains("--force")
                            && refused.errors.contains("--dest-key-file"), refused.errors)
                    XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: replica)), before)
                }
                let forced = try RealmSync(mirror + ["--once", "--force"] + wanted)
                XCTAssertEqual(forced.exitCode, 0, forced.errors)
                XCTAssertTrue(forced.errors.contains("lives on as"), forced.errors)
                XCTAssertEqual(try RealmSync(mirror + ["--once"] + wanted).exitCode, 0)
            }
        }
    }

    /// What the option says of a replica here holds for a source on another machine too; its key there can be named.
    func testKeysOnTheOtherMachineAreNamedAndAPlainReplicaHereIsAskedForInTheSameWords() throws {
        let key = scratch.file("it's a key"), source = scratch.file("a.realm"), there = scratch.file("there.realm")
        XCTAssertEqual(try RealmSync("keygen", key).exitCode, 0)
        let csv = scratch.file("t.csv"), ssh = scratch.file("ssh")
        try Data("name\nsecret words\n".utf8).write(to: URL(fileURLWithPath: csv))
        XCTAssertEqual(try RealmSync("import", csv, source, "--key-file", key).exitCode, 0)
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        try Data("#!/bin/sh\nshift 2\nexec sh -c \"exec '\(program)' $*\"\n".utf8).write(to: URL(fileURLWithPath: ssh))
        chmod(ssh, 0o755)
        func mirror(_ arguments: String...) throws -> RealmSync {
            try RealmSync(["mirror"] + arguments + ["--once"], environment: ["REALM_SYNC_SSH": ssh])
        }
        let plain = try mirror(source, "ssh://h\(there)", "--key-file", key)
        XCTAssertEqual(plain.exitCode, 77, plain.errors)
        XCTAssertFalse(plain.errors.contains(": : "), plain.errors)
        XCTAssertFalse(FileManager.default.fileExists(atPath: there))
        let pushed = try mirror(source, "ssh://h\(there)", "--key-file", key, "--remote-key-file", key)
        XCTAssertEqual(pushed.exitCode, 0, pushed.errors)
        XCTAssertTrue(try RealmSync("export", there, "--key-file", key).output.contains("secret words"))
        let back = scratch.file("back.realm")
        let refused = try mirror("ssh://h\(there)", back, "--remote-key-file", key)
        XCTAssertEqual(refused.exitCode, 77, refused.errors)
        XCTAssertTrue(refused.errors.contains("--dest-plain"), refused.errors)
        let fetched = try mirror("ssh://h\(there)", back, "--remote-key-file", key, "--dest-plain")
        XCTAssertEqual(fetched.exitCode, 0, fetched.errors)
        XCTAssertTrue(try RealmSync("export", back).output.contains("secret words"))
        for wrong in [["--dest-plain"], ["--dest-key-file", key]] {
            XCTAssertEqual(
                try RealmSync(["mirror", source, "ssh://h\(there)", "--once", "--key-file", key] + wrong).exitCode, 64)
        }
        XCTAssertEqual(try RealmSync("mirror", source, back, "--once", "--remote-key-file", key).exitCode, 64)
    }

    func testAServerFromCertificatesToAMirrorAndBack() throws {
        let certificates = scratch.file("certs"), root = scratch.file("root"), source = scratch.file("a.realm"),
            back = scratch.file("back.realm")
        let made = try RealmSync("certs", certificates, "--server", "server,127.0.0.1,localhost", "--client", "web")
        XCTAssertEqual(made.exitCode, 0, made.errors)
        XCTAssertEqual(try RealmSync("certs", certificates, "--client", "web").exitCode, 73, "nothing is overwritten")
        XCTAssertEqual(
            try FileManager.default.attributesOfItem(atPath: certificates + "/web.key")[.posixPermissions] as? Int, 0o600)
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let rights = scratch.file("clients")
        try Data("web push,pull web/*\n".utf8).write(to: URL(fileURLWithPath: rights))
        let server = try ChildProcess(
            product: "realm-sync",
            [
                "serve", "--listen", "127.0.0.1:0", "--root", root, "--cert", certificates + "/server.crt", "--key",
                certificates + "/server.key",
                "--client-ca", certificates + "/ca.crt", "--clients", rights,
            ])
        let port = (server.readLine(beginningWith: "listening at ") ?? "").split(separator: ":").last ?? ""
        let ours = ["--cert", certificates + "/web.crt", "--key", certificates + "/web.key", "--ca", certificates + "/ca.crt"]
        let writer = try writer(source)
        let mirror = try ChildProcess(
            product: "realm-sync", ["mirror", source, "realm://localhost:\(port)/web/a.realm", "--follow"] + ours)
        writer.ask("ledger-commit 10 1")
        XCTAssertTrue(status(mirror, "version 12 ").contains("0 behind"), mirror.errors)
        let pull = try RealmSync(["mirror", "realm://127.0.0.1:\(port)/web/a.realm", back, "--once"] + ours)
        XCTAssertEqual(pull.exitCode, 0, pull.errors)
        XCTAssertTrue(try RealmSync("status", back).output.contains("realm://127.0.0.1:\(port)/web/a.realm"))
        XCTAssertEqual(try RealmSync("verify", back).exitCode, 0)
        let denied = try RealmSync(["mirror", source, "realm://127.0.0.1:\(port)/other.realm", "--once"] + ours)
        XCTAssertEqual(denied.exitCode, 77, denied.errors)
        XCTAssertTrue(denied.errors.contains("web may not push 'other.realm'"), denied.errors)
        XCTAssertEqual(
            try RealmSync("mirror", source, "realm://127.0.0.1:\(port)/web/a.realm", "--once").exitCode, 64, "no certificate")
        server.signal(SIGUSR1)
        XCTAssertTrue((server.readLine(beginningWith: "serving ") ?? "").contains("1 clients"), server.output)
        mirror.signal(SIGTERM)
        XCTAssertEqual(mirror.waitForEnd(), 0, mirror.errors)
        server.signal(SIGTERM)
        XCTAssertEqual(server.waitForEnd(), 0, server.errors)
        XCTAssertTrue(server.errors.contains("web at 127.0.0.1"), server.errors)
        XCTAssertEqual(try RealmSync("verify", root + "/web/a.realm").exitCode, 0)
        writer.finish()
    }

    func testSeveralTargetsAndAnArchiveFollowOneSourceAndOneThatFailsHoldsBackNoneOfThem() throws {
        let source = scratch.file("a.realm"), one = scratch.file("b.realm"), two = scratch.file("c.realm"),
            foreign = scratch.file("d.realm")
        let archive = scratch.file("archive")
        let writer = try writer(source)
        XCTAssertEqual(try RealmSync("copy", source, foreign).exitCode, 0)
        let mirror = try ChildProcess(
            product: "realm-sync", ["mirror", source, one, foreign, two, "--archive", archive, "--follow"])
        func facts(_ arguments: [String]) -> [String: Any] {
            let text = (try? RealmSync(arguments))?.output ?? ""
            return (try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]) ?? [:]
        }
        func isAt(_ path: String, _ version: Int) -> Bool {
            for _ in 0..<300 {
                let facts = facts(["status", path, "--json"])["mirror"] as? [String: Any]
                if facts?["version"] as? Int == version { return true }
                usleep(50_000)
            }
            return false
        }
        XCTAssertTrue(isAt(two, 2), mirror.errors)
        writer.ask("ledger-commit 5 1")
        XCTAssertTrue(isAt(one, 7), mirror.errors)
        XCTAssertTrue(isAt(two, 7), mirror.errors)
        var newest = 0
        for _ in 0..<300 where newest < 7 {
            let history = facts(["history", archive, "--json"])["history"] as? [[String: Any]]
            newest = history?.last?["version"] as? Int ?? 0
            if newest < 7 { usleep(50_000) }
        }
        XCTAssertEqual(newest, 7, mirror.errors)
        mirror.signal(SIGTERM)
        XCTAssertEqual(mirror.waitForEnd(), 73, mirror.errors)
        XCTAssertTrue(mirror.errors.contains("\(foreign): "), mirror.errors)
        XCTAssertTrue(mirror.errors.contains("1 of 4 targets have failed"), mirror.errors)
        let restored = scratch.file("restored.realm")
        XCTAssertEqual(try RealmSync("restore", archive, restored).exitCode, 0)
        for path in [one, two, restored] {
            let compared = try RealmSync("compare", source, path)
            XCTAssertEqual(compared.exitCode, 0, "\(path): \(compared.output) \(compared.errors)")
        }
        // Once, for all of them.
        writer.ask("ledger-commit 2 2")
        let once = try RealmSync("mirror", source, one, two, "--archive", archive, "--once")
        XCTAssertEqual(once.exitCode, 0, once.errors)
        XCTAssertTrue(isAt(one, 9))
        XCTAssertTrue(try RealmSync("history", archive, "--limit", "1").output.contains("9"))
        XCTAssertEqual(try RealmSync("mirror", source, "--once").exitCode, 64)
        writer.finish()
    }

    func testARevokedClientIsToldAndTheServerReadsItsListAgain() throws {
        let certificates = scratch.file("certs"), root = scratch.file("root"), source = scratch.file("a.realm")
        XCTAssertEqual(try RealmSync("certs", certificates, "--server", "server,127.0.0.1", "--client", "web").exitCode, 0)
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let list = certificates + "/revoked"
        try Data().write(to: URL(fileURLWithPath: list))
        let server = try ChildProcess(
            product: "realm-sync",
            [
                "serve", "--listen", "127.0.0.1:0", "--root", root, "--cert", certificates + "/server.crt", "--key",
                certificates + "/server.key",
                "--client-ca", certificates + "/ca.crt", "--revoked", list, "--rate-limit", "10M",
            ])
        let port = (server.readLine(beginningWith: "listening at ") ?? "").split(separator: ":").last ?? ""
        let writer = try writer(source)
        func push(_ base: String) throws -> RealmSync {
            try RealmSync([
                "mirror", source, "realm://127.0.0.1:\(port)/a.realm", "--once", "--cert", base + ".crt", "--key", base + ".key",
                "--ca",
                certificates + "/ca.crt", "--rate-limit", "10M",
            ])
        }
        let first = try push(certificates + "/web")
        XCTAssertEqual(first.exitCode, 0, first.errors)
        let revoked = try RealmSync("certs", certificates, "--revoke", "web", "--client", "web")
        XCTAssertEqual(revoked.exitCode, 0, revoked.errors)
        XCTAssertEqual(try RealmSync("certs", certificates, "--revoke", "nobody").exitCode, 64)
        let aside = try XCTUnwrap(
            FileManager.default.contentsOfDirectory(atPath: certificates).first {
                $0.contains("revoked-") && $0.hasSuffix(".crt")
            })
        server.signal(SIGHUP)
        for _ in 0..<400 where !server.errors.contains("were read again") { usleep(20_000) }
        XCTAssertTrue(server.errors.contains("were read again"), server.errors)
        let denied = try push(certificates + "/" + aside.dropLast(4))
        XCTAssertEqual(denied.exitCode, 77, denied.errors)
        XCTAssertTrue(denied.errors.contains("revoked"), denied.errors)
        let renewed = try push(certificates + "/web")
        XCTAssertEqual(renewed.exitCode, 0, renewed.errors)
        let slow = try RealmSync("mirror", source, "ssh://h/x", "--once", "--rate-limit", "1K")
        XCTAssertEqual(slow.exitCode, 64, slow.errors)
        server.signal(SIGTERM)
        XCTAssertEqual(server.waitForEnd(), 0, server.errors)
        writer.finish()
    }
}
