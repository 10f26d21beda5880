import Foundation
import TestSupport
import XCTest

/// `seed keygen`, `sign`, `verify` and `fetch`.
final class SeedWireTests: XCTestCase {
    private let scratch = ScratchDirectory("SeedWire")
    private var seed: String { scratch.file("phrases.realm") }
    private var key: String { scratch.file("key") }
    private var destination: String { scratch.file("app/seed.realm") }

    override func setUp() async throws {
        let file = scratch.file("a.realm")
        XCTAssertEqual(try RealmSync("import", Fixtures.core14 + "/relationships.json", file).exitCode, 0)
        XCTAssertEqual(try RealmSync("seed", "build", file, seed).exitCode, 0)
        XCTAssertEqual(try RealmSync("seed", "keygen", key).exitCode, 0)
        try FileManager.default.createDirectory(atPath: scratch.file("app"), withIntermediateDirectories: true)
    }

    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
    private func write(_ bytes: [UInt8], _ path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
    private var left: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: scratch.file("app"))) ?? []).sorted() }

    @discardableResult
    private func expect(_ code: Int32, _ words: String, _ arguments: [String], line: UInt = #line) throws -> RealmSync {
        let run = try RealmSync(arguments)
        XCTAssertEqual(run.exitCode, code, "\(arguments): \(run.output) \(run.errors)", line: line)
        XCTAssertTrue(words.isEmpty || (run.output + run.errors).contains(words), "\(run.output) \(run.errors)", line: line)
        XCTAssertLessThanOrEqual(run.errors.split(separator: "\n").count, 1, run.errors, line: line)
        return run
    }

    private func sign(_ path: String, _ more: String..., line: UInt = #line) throws {
        try expect(0, "sha256", ["seed", "sign", path, "--signing-key", key] + more, line: line)
    }

    private func publish(_ web: TinyWeb, _ path: String? = nil, as name: String = "phrases.realm") throws {
        web.put(name, try bytes(path ?? seed))
        web.put(name + ".sig", try bytes((path ?? seed) + ".sig"))
    }

    func testWhatWasSignedIsProvedAndWhatWasChangedIsNot() throws {
        try sign(seed)
        let run = try expect(0, "signed as 'phrases.realm'", ["seed", "verify", seed, "--public-key", key + ".pub"])
        XCTAssertFalse(run.output.isEmpty)
        let other = scratch.file("other")
        try expect(0, "a new key", ["seed", "keygen", other])
        try expect(65, "none of those that are trusted", ["seed", "verify", seed, "--public-key", other + ".pub"])
        // Keys that are in use together, while one takes the place of another.
        try expect(0, "signed as", ["seed", "verify", seed, "--public-key", other + ".pub", "--public-key", key + ".pub"])
        try expect(65, "was signed as", ["seed", "verify", seed, "--public-key", key + ".pub", "--name", "others.realm"])
        try expect(64, "--public-key", ["seed", "verify", seed])
        let damaged = scratch.file("damaged.sig")
        try write(Array(try bytes(seed + ".sig").dropLast()), damaged)
        try expect(65, "is no signature", ["seed", "verify", seed, "--public-key", key + ".pub", "--signature", damaged])
        var content = try bytes(seed)
        content[content.count / 2] ^= 0x10
        let changed = scratch.file("changed.realm")
        try write(content, changed)
        try expect(65, "SHA-256", ["seed", "verify", changed, "--public-key", key + ".pub", "--signature", seed + ".sig"])
        try write(content + [0], changed)
        try expect(65, "were signed", ["seed", "verify", changed, "--public-key", key + ".pub", "--signature", seed + ".sig"])
    }

    func testKeysAreCheckedBeforeTheyAreUsed() throws {
        try expect(73, "exists", ["seed", "keygen", key])
        try expect(65, "others can read it", ["seed", "sign", seed, "--signing-key", key + ".pub"])
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key + ".pub")
        try expect(65, "no private key", ["seed", "sign", seed, "--signing-key", key + ".pub"])
        try expect(65, "no public key", ["seed", "verify", seed, "--public-key", key, "--signature", key])
        try expect(64, "--signing-key", ["seed", "sign", seed])
        try expect(66, "none", ["seed", "sign", seed, "--signing-key", scratch.file("none")])
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        try expect(65, "chmod 600", ["seed", "sign", seed, "--signing-key", key])
    }

    func testFetchingPutsASignedSeedInPlaceAndItsSuccessorOverIt() throws {
        let web = try TinyWeb()
        try sign(seed, "--time", "2024-01-01")
        try publish(web)
        let fetch = ["seed", "fetch", web.url("phrases.realm"), destination, "--public-key", key + ".pub"]
        try expect(0, "fetched", fetch)
        XCTAssertEqual(try bytes(destination), try bytes(seed))
        XCTAssertEqual(try FileManager.default.attributesOfItem(atPath: destination)[.posixPermissions] as? Int, 0o444)
        XCTAssertEqual(left, ["seed.realm", "seed.realm.sig"])
        // Again: the signature only.
        web.misbehave { _, _ in .none }
        try expect(0, "is that seed already", fetch)
        XCTAssertEqual(web.served.map(\.path), ["/phrases.realm.sig"])
        // A new one; then the old one is offered again.
        let file = scratch.file("b.realm"), next = scratch.file("next.realm")
        try expect(0, "", ["import", Fixtures.core14 + "/fulltext.json", file])
        try expect(0, "", ["seed", "build", file, next])
        try sign(next, "--name", "phrases.realm", "--time", "2024-02-01")
        try publish(web, next)
        try expect(0, "fetched", fetch)
        XCTAssertEqual(try bytes(destination), try bytes(next))
        try publish(web)
        try expect(73, "is newer", fetch)
        XCTAssertEqual(try bytes(destination), try bytes(next))
        try expect(0, "fetched", fetch + ["--allow-older"])
        XCTAssertEqual(try bytes(destination), try bytes(seed))
        try expect(0, "installed", ["seed", "install", destination, scratch.file("app.realm")])
        try expect(0, "sound", ["verify", scratch.file("app.realm")])
    }

    func testWhatIsNotTheRightSeedIsRefusedAndTheOldOneStays() throws {
        let web = try TinyWeb()
        try sign(seed)
        try publish(web)
        let fetch = ["seed", "fetch", web.url("phrases.realm"), destination, "--public-key", key + ".pub", "--retries", "0"]
        try expect(0, "fetched", fetch)
        let good = try bytes(destination)
        func refused(_ code: Int32, _ words: String, _ arguments: [String], line: UInt = #line) throws {
            try expect(code, words, arguments, line: line)
            XCTAssertEqual(try bytes(destination), good, line: line)
            XCTAssertEqual(left.filter { $0.contains(".part") }, [], line: line)
        }
        // Another content under the same signature, longer, shorter, other.
        let other = scratch.file("other.realm")
        try write(good + [1], other)
        XCTAssertEqual(try RealmSync("seed", "sign", other, "--signing-key", key, "--name", "phrases.realm").exitCode, 0)
        web.put("phrases.realm.sig", try bytes(other + ".sig"))
        try refused(65, "not what it should be", fetch)
        web.put("phrases.realm", good + [2])
        try refused(65, "not what it should be", fetch)
        web.put("phrases.realm", good + [1, 1])
        try refused(65, "limit", fetch)
        // What is signed is no database.
        web.put("phrases.realm", good + [1])
        web.put("text.realm", Array("no database".utf8))
        try write(Array("no database".utf8), scratch.file("text.realm"))
        XCTAssertEqual(try RealmSync("seed", "sign", scratch.file("text.realm"), "--signing-key", key).exitCode, 0)
        web.put("text.realm.sig", try bytes(scratch.file("text.realm.sig")))
        try refused(
            65, "no seed that can be opened",
            ["seed", "fetch", web.url("text.realm"), destination, "--public-key", key + ".pub", "--allow-older"])
        // A signature of another seed, of another key, of nothing.
        web.put("other.realm", good)
        web.put("other.realm.sig", try bytes(seed + ".sig"))
        try refused(
            65, "was signed as 'phrases.realm'",
            ["seed", "fetch", web.url("other.realm"), destination, "--public-key", key + ".pub"])
        try expect(0, "a new key", ["seed", "keygen", scratch.file("foreign")])
        try refused(65, "none of those", fetch.map { $0 == key + ".pub" ? scratch.file("foreign.pub") : $0 })
        web.put("phrases.realm.sig", Array("<html>".utf8))
        try refused(65, "is no signature", fetch)
        // No answer, or none of use.
        for (fault, code, words) in [
            (TinyWeb.Fault.status(404), Int32(66), "404"), (.status(403), 77, "403"), (.status(503), 75, "503"),
            (.endless, 65, "limit"),
            (.redirect("file:///etc/hostname"), 75, ""), (.redirect("/phrases.realm"), 75, ""),
        ] {
            web.misbehave { _, _ in fault }
            try refused(code, words, fetch)
        }
        web.misbehave { _, request in request.path.hasSuffix(".sig") ? .none : .endless }
        web.put("phrases.realm.sig", try bytes(other + ".sig"))
        try refused(65, "limit", fetch)
        try refused(
            65, "limit",
            [
                "seed", "fetch", web.url("phrases.realm"), destination, "--sha256", String(repeating: "0", count: 64),
                "--max-size", "1M",
            ])
        try refused(
            75, "",
            [
                "seed", "fetch", "http://127.0.0.1:1/x", destination, "--sha256", String(repeating: "0", count: 64), "--retries",
                "0",
            ])
        try refused(64, "no address", ["seed", "fetch", "ftp://x/y", destination, "--sha256", String(repeating: "0", count: 64)])
        try refused(64, "--sha256", ["seed", "fetch", web.url("phrases.realm"), destination])
        try refused(
            64, "either",
            ["seed", "fetch", web.url("phrases.realm"), destination, "--sha256", "00", "--public-key", key + ".pub"])
        try refused(64, "64 hex digits", ["seed", "fetch", web.url("phrases.realm"), destination, "--sha256", "00"])
    }

    func testATransferThatBreaksGoesOnWhereItBroke() throws {
        let web = try TinyWeb()
        try sign(seed)
        try publish(web)
        let size = try bytes(seed).count
        let step = size / 3
        web.misbehave { _, request in request.path.hasSuffix(".sig") ? .none : .cut(step) }
        let fetch = ["seed", "fetch", web.url("phrases.realm"), destination, "--public-key", key + ".pub"]
        try expect(0, "fetched", fetch)
        XCTAssertEqual(try bytes(destination), try bytes(seed))
        let ranges = web.served.filter { !$0.path.hasSuffix(".sig") }.map(\.range)
        XCTAssertEqual(Array(ranges.prefix(3)), [nil, "\(step)-", "\(2 * step)-"])
        // The file becomes another one on the way: it begins anew, and nothing is put together from two.
        try FileManager.default.removeItem(atPath: destination)
        let other = scratch.file("other.realm"), file = scratch.file("b.realm")
        try expect(0, "", ["import", Fixtures.core14 + "/fulltext.json", file])
        try expect(0, "", ["seed", "build", file, other])
        let content = try bytes(other)
        web.misbehave { number, _ in number == 1 ? .cutAndPut(step, content) : .none }
        let hash = try XCTUnwrap(
            RealmSync("seed", "sign", other, "--signing-key", key).output.components(separatedBy: "sha256 ").last?.prefix(64))
        web.put("phrases.realm", try bytes(seed))
        try expect(0, "fetched", ["seed", "fetch", web.url("phrases.realm"), destination, "--sha256", String(hash)])
        XCTAssertEqual(try bytes(destination), content)
        XCTAssertEqual(left, ["seed.realm"])
    }

    func testByAChecksumFromAFileAndNotOverASeedThatIsOpen() throws {
        let hash = try XCTUnwrap(
            RealmSync("seed", "sign", seed, "--signing-key", key).output.components(separatedBy: "sha256 ").last?.prefix(64))
        try expect(0, "fetched", ["seed", "fetch", "file://" + seed, destination, "--sha256", String(hash)])
        XCTAssertEqual(try bytes(destination), try bytes(seed))
        try expect(
            66, "no such file",
            [
                "seed", "fetch", "file://" + scratch.file("none"), destination, "--sha256", String(repeating: "1", count: 64),
                "--retries", "0",
            ])
        try expect(
            65, "SHA-256",
            ["seed", "fetch", "file://" + seed, scratch.file("app/x"), "--sha256", String(repeating: "1", count: 64)])
        // Somebody works with what stands at the destination.
        let used = scratch.file("app/used.realm")
        let writer = try TestProcess()
        XCTAssertEqual(writer.ask("ledger-open \(used)"), "ok")
        XCTAssertEqual(writer.ask("ledger-setup"), "ok 2")
        let before = try bytes(used)
        try expect(75, "is open", ["seed", "fetch", "file://" + seed, used, "--sha256", String(hash)])
        XCTAssertEqual(try bytes(used), before)
    }

    func testOpenSSLAgreesOnKeysAndSignatures() throws {
        let openssl = "/usr/bin/openssl"
        guard FileManager.default.isExecutableFile(atPath: openssl) else { throw XCTSkip("there is no openssl program here") }
        func run(_ arguments: String...) throws -> Int32? { try ChildProcess(path: openssl, arguments).waitForEnd() }
        // A key of theirs signs for us, and they prove our signature.
        let theirs = scratch.file("theirs.pem"), message = scratch.file("message"), signature = scratch.file("signature")
        XCTAssertEqual(try run("genpkey", "-algorithm", "ed25519", "-out", theirs), 0)
        XCTAssertEqual(try run("pkey", "-in", theirs, "-pubout", "-out", theirs + ".pub"), 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: theirs)
        try expect(0, "sha256", ["seed", "sign", seed, "--signing-key", theirs])
        try expect(0, "signed as", ["seed", "verify", seed, "--public-key", theirs + ".pub"])
        let text = String(decoding: try bytes(seed + ".sig"), as: UTF8.self)
        let split = try XCTUnwrap(text.range(of: "signature: "))
        try write(Array(text[..<split.lowerBound].utf8), message)
        let digits = Array(text[split.upperBound...].trimmingCharacters(in: .newlines).utf8)
        try write(
            stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
            }, signature)
        XCTAssertEqual(
            try run("pkeyutl", "-verify", "-pubin", "-inkey", theirs + ".pub", "-rawin", "-in", message, "-sigfile", signature), 0
        )
        // A key of another kind.
        let other = scratch.file("other.pem")
        XCTAssertEqual(try run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", other), 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: other)
        try expect(65, "another kind", ["seed", "sign", seed, "--signing-key", other])
    }
}
