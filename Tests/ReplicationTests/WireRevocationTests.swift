import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Certificates that count no more, rules that change while clients are there, and rates.
final class WireRevocationTests: WireTestCase {
    private var revoked: String { certificates + "/revoked" }
    private var rights: String { scratch.file("clients") }

    private func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    private func store() throws -> Store {
        let store = try Store.open(source, options())
        try makeTable(store)
        return store
    }

    private func isRefused(_ error: (any Error)?, _ words: String, line: UInt = #line) {
        guard case .refused(_, .notAllowed, let reason)? = error as? WireError else {
            return XCTFail("\(String(describing: error))", line: line)
        }
        XCTAssertTrue(reason.contains(words), reason, line: line)
    }

    func testARevokedCertificateIsRefusedAndItsConnectionsAreCutOff() throws {
        let store = try store()
        try write("# nothing yet\n", revoked)
        let server = try serve {
            $0.tls.revocations = revoked
            $0.address = "127.0.0.1:0"
        }
        let maker = try CertificateMaker(folder: certificates)
        try maker.make(.client, name: "other")
        let stays = try mirror(source, server.url("other.realm"), tls: settings("other"))
        let goes = try mirror(source, server.url())
        reaches(2, "\(goes.notes)")
        reaches(2, at: root + "/other.realm", "\(stays.notes)")
        let aside = try maker.revoke("client")
        XCTAssertFalse(FileManager.default.fileExists(atPath: certificates + "/client.crt"))
        server.ask(.reload)
        // Cut off, it comes again, is told why, and ends.
        isRefused(goes.join(), "revoked")
        XCTAssertTrue(
            server.notes.contains { $0.contains("cut off") && $0.contains("client") && !$0.contains("other") }, "\(server.notes)")
        let base = String(aside.dropLast(4))
        let tls = TLSSettings(certificates: .init(certificate: aside, key: base + ".key", authority: certificates + "/ca.crt"))
        isRefused(try mirror(source, server.url(), tls: tls).join(), "revoked")
        // The others go on over the same connection; a new certificate of the same name is as good as any.
        var random = SplitMix(seed: 211)
        for _ in 0..<3 { try change(store, &random) }
        reaches(5, at: root + "/other.realm")
        XCTAssertEqual(stays.status()?.imageCount, 1)
        XCTAssertNil(stays.stop())
        try maker.make(.client, name: "client")
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        try assertReplicaEquals(store)
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testAClientDoesNotBelieveARevokedServer() throws {
        let store = try store()
        let fingerprint = try CertificateMaker(folder: certificates).revoke("server")
        let base = String(fingerprint.dropLast(4))
        let server = try serve {
            $0.tls.certificates = .init(certificate: base + ".crt", key: base + ".key", authority: certificates + "/ca.crt")
        }
        var tls = settings("client")
        tls.revocations = revoked
        guard case .notTrusted(_, let reason)? = try mirror(source, server.url(), tls: tls).join() as? WireError else {
            return XCTFail("believed")
        }
        XCTAssertTrue(reason.contains("revoked"), reason)
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica))
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testListsOfRevokedCertificatesAreCheckedBeforeTheyAreUsed() throws {
        func expect(_ text: String, _ words: String, line: UInt = #line) throws {
            try write(text, revoked)
            XCTAssertThrowsError(try RevocationList(revoked, authority: certificates + "/ca.crt"), line: line) {
                guard case WireError.badConfiguration(let reason) = $0 else { return XCTFail("\($0)", line: line) }
                XCTAssertTrue(reason.contains(words), reason, line: line)
            }
        }
        let digits = String(repeating: "ab", count: 32)
        try expect(digits + "\nabcd\n", "line 2")
        try expect("\n\n" + String(digits.dropLast()) + "g", "line 3")
        try expect("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "no list")
        try expect(try String(contentsOfFile: certificates + "/ca.crt", encoding: .utf8), "no list")
        XCTAssertThrowsError(try RevocationList(scratch.file("none"), authority: nil))
        // As OpenSSL prints them, with comments and blanks.
        let colons = stride(from: 0, to: 64, by: 2).map { _ in "AB" }.joined(separator: ":")
        try write("# comment\n\nsha256 Fingerprint=\(colons)\n  \(digits)  # web-1\n", revoked)
        XCTAssertFalse(try RevocationList(revoked, authority: nil).isEmpty)
        try write("", revoked)
        XCTAssertTrue(try RevocationList(revoked, authority: nil).isEmpty)
    }

    func testAListThatTheAuthorityHasSignedCounts() throws {
        let program = "/usr/bin/openssl"
        guard FileManager.default.isExecutableFile(atPath: program) else { throw XCTSkip("there is no openssl program here") }
        func openssl(_ arguments: String...) throws {
            let process = try ChildProcess(path: program, arguments, workingDirectory: certificates)
            XCTAssertEqual(process.waitForEnd(), 0, process.errors)
        }
        try write(
            "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=1\ncrlnumber=crlnumber\n",
            certificates + "/conf")
        try write("", certificates + "/index.txt")
        try write("01\n", certificates + "/crlnumber")
        try openssl("ca", "-config", "conf", "-gencrl", "-keyfile", "ca.key", "-cert", "ca.crt", "-out", "crl.pem")
        let store = try store()
        let crl = certificates + "/crl.pem"
        let server = try serve { $0.tls.revocations = crl }
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        try openssl("ca", "-config", "conf", "-revoke", "client.crt", "-keyfile", "ca.key", "-cert", "ca.crt")
        try openssl("ca", "-config", "conf", "-gencrl", "-keyfile", "ca.key", "-cert", "ca.crt", "-out", "crl.pem")
        server.ask(.reload)
        XCTAssertTrue(eventually { server.notes.contains { $0.contains("were read again") } }, "\(server.notes)")
        isRefused(try mirror(source, server.url()).join(), "revoked")
        // One that another authority has signed is refused, and all stays as it was.
        let foreign = scratch.file("foreign")
        _ = try CertificateMaker(folder: foreign)
        for name in ["conf", "index.txt", "crlnumber"] {
            try FileManager.default.copyItem(atPath: certificates + "/" + name, toPath: foreign + "/" + name)
        }
        let made = try ChildProcess(
            path: program, ["ca", "-config", "conf", "-gencrl", "-keyfile", "ca.key", "-cert", "ca.crt", "-out", crl],
            workingDirectory: foreign)
        XCTAssertEqual(made.waitForEnd(), 0, made.errors)
        server.ask(.reload)
        XCTAssertTrue(
            eventually { server.notes.contains { $0.contains("stay as they were") && $0.contains("not signed") } },
            "\(server.notes)")
        isRefused(try mirror(source, server.url()).join(), "revoked")
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testRulesCertificatesAndSecretsAreReadAgainWhileClientsAreThere() throws {
        let store = try store()
        try write("client push **\n", rights)
        let server = try serve { $0.rightsFile = rights }
        let push = try mirror(source, server.url())
        reaches(2, "\(push.notes)")
        // A mistake changes nothing.
        try write("client push\n", rights)
        server.ask(.reload)
        XCTAssertTrue(
            eventually { server.notes.contains { $0.contains("stay as they were") && $0.contains("line 1") } }, "\(server.notes)")
        var random = SplitMix(seed: 212)
        try change(store, &random)
        reaches(3)
        // The right is taken away: it is cut off, and refused.
        try write("client push b/**\n", rights)
        server.ask(.reload)
        isRefused(push.join(), "may not push")
        // The server's certificate is renewed, by another authority; clients that know it are served.
        try write("client push **\n", rights)
        let fresh = try CertificateMaker(folder: scratch.file("fresh"))
        try fresh.make(.server, name: "server", hosts: ["127.0.0.1"])
        try fresh.make(.client, name: "client")
        for name in ["server.crt", "server.key", "ca.crt"] {
            try FileManager.default.removeItem(atPath: certificates + "/" + name)
            try FileManager.default.copyItem(atPath: scratch.file("fresh") + "/" + name, toPath: certificates + "/" + name)
        }
        server.ask(.reload)
        XCTAssertTrue(eventually { server.notes.count { $0.contains("were read again") } == 2 }, "\(server.notes)")
        let again = try mirror(
            source, server.url(), tls: settings("client", in: scratch.file("fresh")), { $0.endsWhenEqual = true })
        XCTAssertNil(again.join(), "\(again.notes) \(server.notes)")
        try assertReplicaEquals(store)
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testASecretThatIsTakenOutOfItsFileCountsNoMore() throws {
        func secrets(_ name: String, _ lines: [String]) throws -> String {
            let path = scratch.file(name)
            try write(lines.map { $0 + "\n" }.joined(), path)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            return path
        }
        let store = try store()
        let one = "alpha:" + String(repeating: "5a", count: 32), two = "beta:" + String(repeating: "a5", count: 32)
        let file = try secrets("server", [one, two])
        let server = try serve { $0.tls = TLSSettings(sharedSecrets: file) }
        let push = try mirror(source, server.url(), tls: TLSSettings(sharedSecrets: secrets("alpha", [one])))
        reaches(2, "\(push.notes)")
        _ = try secrets("server", [two])
        server.ask(.reload)
        XCTAssertTrue(
            eventually { server.server.clientCount.all == 0 && server.notes.contains { $0.contains("cut off") } },
            "\(server.notes)")
        XCTAssertTrue(eventually { push.notes.contains { $0.contains("secret") || $0.contains("not trusted") } }, "\(push.notes)")
        push.stop()
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testRatesInRulesAreReadAndTheFirstLineThatAllowsCounts() throws {
        let rights = try ServerRights(text: "a push,rate=1M x/*\n* push,pull,rate=64K **\na force,rate=16384 **\n", path: "r")
        XCTAssertEqual(rights.bytesPerSecond(.push, client: "a", name: "x/1"), 1 << 20)
        XCTAssertEqual(rights.bytesPerSecond(.push, client: "a", name: "y"), 64 << 10)
        XCTAssertEqual(rights.bytesPerSecond(.pull, client: "b", name: "y"), 64 << 10)
        XCTAssertEqual(rights.bytesPerSecond(.force, client: "a", name: "y"), 16384)
        XCTAssertNil(rights.bytesPerSecond(.force, client: "b", name: "y"))
        for text in [
            "a push,rate= x", "a push,rate=1 x", "a push,rate=99999999999999G x", "a push,rate=-5M x", "a push,rate=5X x",
        ] {
            XCTAssertThrowsError(try ServerRights(text: text, path: "r"), text)
        }
    }

    func testAThrottleLetsThroughWhatItSaysAndStopsWhenAsked() throws {
        var throttle = Throttle(bytesPerSecond: 100_000)
        let begin = SystemCalls.monotonicNanoseconds()
        for _ in 0..<10 { try throttle.pass(5000, isStopped: { false }) }
        // Half a second's worth, of which a quarter may pass at once.
        XCTAssertGreaterThan(SystemCalls.monotonicNanoseconds() - begin, 240_000_000)
        var stopped = Throttle(bytesPerSecond: 1)
        XCTAssertThrowsError(try stopped.pass(1 << 40, isStopped: { true })) { XCTAssertEqual($0 as? WireError, .stopped) }
    }

    func testAThrottledMirrorIsSlowedDownAndComesToTheSameEnd() throws {
        let store = try store()
        var random = SplitMix(seed: 213)
        // Texts that do not compress.
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            for _ in 0..<100 {
                let text = String((0..<2000).map { _ in Character(Unicode.Scalar(UInt8(33 + random.next() % 90))) })
                try table.set("text", of: try table.createObject(), to: .string(text))
            }
        }
        let server = try serve { $0.bytesPerSecond = 400_000 }
        for (name, isServer) in [("slow-server.realm", true), ("slow-client.realm", false)] {
            let fast = try serve()
            let begin = SystemCalls.monotonicNanoseconds()
            let run = try mirror(
                source, (isServer ? server : fast).url(name), { $0.endsWhenEqual = true },
                wire: { if !isServer { $0.bytesPerSecond = 400_000 } })
            XCTAssertNil(run.join(), "\(run.notes)")
            // More than 160 KB, of which a quarter of a second's worth may pass at once.
            XCTAssertGreaterThan(SystemCalls.monotonicNanoseconds() - begin, 100_000_000, name)
            try assertReplicaEquals(store, root + "/" + name)
            XCTAssertNil(fast.stop())
        }
        XCTAssertNil(server.stop())
        try store.close()
    }
}
