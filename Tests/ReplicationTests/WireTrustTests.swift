import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Who is let in, and what those cannot do who are.
final class WireTrustTests: WireTestCase {
    private func store() throws -> Store {
        let store = try Store.open(source, options())
        try makeTable(store)
        return store
    }

    /// What a push ends with that is not allowed to succeed.
    private func refusal(_ url: String, _ tls: TLSSettings, file: StaticString = #filePath, line: UInt = #line) throws
        -> WireError?
    {
        let run = try mirror(source, url, tls: tls, { $0.endsWhenEqual = true })
        let error = run.join(seconds: 15)
        if run.notes.count > 5 || error is WireError == false || "\(String(describing: error))".contains("under test") {
            XCTFail("\(String(describing: error)) \(run.notes.prefix(3))", file: file, line: line)
        }
        run.ask(.stop)
        return error as? WireError
    }

    func testOnlyCertificatesOfTheAuthorityAreLetIn() throws {
        let store = try store()
        let server = try serve()
        let other = scratch.file("other")
        let stranger = try CertificateMaker(folder: other)
        try stranger.make(.client, name: "client")
        try stranger.make(.server, name: "server", hosts: ["127.0.0.1"])
        let maker = try CertificateMaker(folder: certificates)
        try maker.make(.client, name: "old", days: 1, validFrom: -3 * 86_400)
        try maker.make(.client, name: "early", days: 10, validFrom: 3 * 86_400)
        try maker.make(.server, name: "elsewhere", hosts: ["192.0.2.1", "example.org"])
        try maker.make(.server, name: "outdated", hosts: ["127.0.0.1"], days: 1, validFrom: -3 * 86_400)
        func expectNotTrusted(_ tls: TLSSettings, _ url: String, _ words: [String], line: UInt = #line) throws {
            let found = try refusal(url, tls, line: line)
            guard case .notTrusted(_, let reason)? = found else { return XCTFail("\(String(describing: found))", line: line) }
            XCTAssertTrue(words.contains { reason.contains($0) }, reason, line: line)
        }
        // Of another authority, outdated, not valid yet, of a server instead of a client, none at all.
        try expectNotTrusted(settings("client", in: other), server.url(), ["unknown ca", "certificate", "decrypt error"])
        try expectNotTrusted(settings("old"), server.url(), ["expired"])
        try expectNotTrusted(settings("early"), server.url(), ["bad certificate", "certificate"])
        try expectNotTrusted(settings("server"), server.url(), ["certificate"])
        // Servers that a client must not believe.
        for (name, words) in [("elsewhere", ["mismatch"]), ("outdated", ["expired"])] {
            let bad = try serve { $0.tls = settings(name) }
            try expectNotTrusted(settings("client"), bad.url(), words)
            XCTAssertNil(bad.stop())
        }
        let false1 = try serve { $0.tls = settings("server", in: other, authority: certificates + "/ca.crt") }
        try expectNotTrusted(settings("client"), false1.url(), ["unable to get local issuer", "self", "certificate"])
        XCTAssertNil(false1.stop())
        // The certificate of a client does not make a server.
        let false2 = try serve { $0.tls = settings("client") }
        try expectNotTrusted(settings("client"), false2.url(), ["purpose", "certificate"])
        XCTAssertNil(false2.stop())
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica))
        // Who is honest is let in all the while.
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        try assertReplicaEquals(store)
        XCTAssertTrue(server.notes.contains { $0.contains("expired") }, "refusals are told: \(server.notes)")
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testAClientWithoutACertificateIsRefused() throws {
        let server = try serve()
        let secrets = try secretFile("s", "somebody:" + String(repeating: "ab", count: 32))
        let store = try store()
        guard let error = try refusal(server.url(), TLSSettings(sharedSecrets: secrets)) else { return XCTFail("let in") }
        guard case .notTrusted = error else { return XCTFail("\(error)") }
        XCTAssertNil(server.stop())
        try store.close()
    }

    private func secretFile(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let path = scratch.file(name)
        try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    func testASharedSecretLetsInWhoKnowsIt() throws {
        let store = try store()
        let one = String(repeating: "5a", count: 32), two = String(repeating: "a5", count: 32)
        let rights = scratch.file("clients")
        try Data("alpha push a/**\nbeta push b/**\n".utf8).write(to: URL(fileURLWithPath: rights))
        let server = try serve {
            $0.tls = TLSSettings(sharedSecrets: try? secretFile("server", "alpha:\(one)\nbeta:\(two)"))
            $0.rightsFile = rights
        }
        let alpha = TLSSettings(sharedSecrets: try secretFile("alpha", "alpha:\(one)"))
        let first = try mirror(source, server.url("a/x.realm"), tls: alpha, { $0.endsWhenEqual = true })
        XCTAssertNil(first.join(seconds: 10), "\(first.notes) \(server.notes)")
        try assertReplicaEquals(store, root + "/a/x.realm")
        guard case .refused(_, .notAllowed, _)? = try refusal(server.url("b/x.realm"), alpha) else {
            return XCTFail("a name of beta")
        }
        for (name, text) in [("wrong", "alpha:\(two)"), ("unknown", "gamma:\(one)")] {
            guard
                case .notTrusted(_, let reason)? = try refusal(
                    server.url("a/y.realm"), TLSSettings(sharedSecrets: secretFile(name, text)))
            else {
                return XCTFail(name)
            }
            XCTAssertTrue(reason.contains("secret") || reason.contains("psk"), reason)
        }
        XCTAssertFalse(FileManager.default.fileExists(atPath: root + "/a/y.realm"))
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testFilesOfSecretsAndCertificatesAreCheckedBeforeTheyAreUsed() throws {
        func expect(_ settings: TLSSettings, _ words: String, line: UInt = #line) {
            XCTAssertThrowsError(try TLSContext(settings, isServer: true), line: line) {
                guard case WireError.badConfiguration(let text) = $0 else { return XCTFail("\($0)", line: line) }
                XCTAssertTrue(text.contains(words), text, line: line)
            }
        }
        let good = String(repeating: "00", count: 16)
        expect(TLSSettings(), "name a certificate")
        expect(TLSSettings(sharedSecrets: try secretFile("a", "x:" + good, mode: 0o644)), "chmod")
        expect(TLSSettings(sharedSecrets: try secretFile("b", "# only a word")), "no secret")
        expect(TLSSettings(sharedSecrets: try secretFile("c", "x:" + good + "\ny " + good)), "line 2")
        expect(TLSSettings(sharedSecrets: try secretFile("d", "x:abcd")), "16 to 64 bytes")
        expect(TLSSettings(sharedSecrets: try secretFile("e", "x:zz" + good)), "hex")
        expect(TLSSettings(sharedSecrets: scratch.file("none")), "none")
        expect(settings("missing"), "missing.crt")
        try Data("no certificate".utf8).write(to: URL(fileURLWithPath: certificates + "/text.crt"))
        expect(settings("text"), "text.crt")
        var mixed = settings("server")
        mixed.certificates?.key = certificates + "/client.key"
        expect(mixed, "client.key")
    }

    func testNamesDoNotLeadOutOfTheRoot() throws {
        let store = try store()
        let server = try serve()
        let outside = scratch.file("outside")
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
        _ = try Mirror.once(source: source, destination: outside + "/x.realm")
        XCTAssertEqual(symlink(outside, root + "/link"), 0)
        XCTAssertEqual(symlink(outside + "/x.realm", root + "/file.realm"), 0)
        XCTAssertEqual(symlink(outside + "/new.realm", root + "/dangling.realm"), 0)
        XCTAssertEqual(mkfifo(root + "/pipe.realm", 0o600), 0)
        try FileManager.default.createDirectory(atPath: root + "/folder.realm", withIntermediateDirectories: true)
        let before = try FileManager.default.contentsOfDirectory(atPath: outside).sorted()
        let names = [
            "../outside/x.realm", "a/../../outside/x.realm", "/etc/x.realm", "./x.realm", "a//x.realm", "link/x.realm",
            "link/y.realm", "file.realm",
            "dangling.realm", "pipe.realm", "folder.realm", "..", "x.realm.lock", "x.realm.management/mirror.state",
            String(repeating: "n", count: 300),
        ]
        for name in names {
            for isPush in [true, false] {
                let back = scratch.file("back.realm")
                let run =
                    isPush
                    ? try mirror(source, server.url(name), { $0.endsWhenEqual = true })
                    : try mirror(server.url(name), back, { $0.endsWhenEqual = true })
                guard case .refused(_, .badName, _)? = run.join(seconds: 15) as? WireError else {
                    XCTFail("\(name) \(isPush ? "push" : "pull"): \(run.notes)")
                    run.stop()
                    continue
                }
                XCTAssertFalse(FileManager.default.fileExists(atPath: back), name)
            }
        }
        guard case .refused(_, .notFound, _)? = try mirror(server.url("none.realm"), scratch.file("n.realm")).join() as? WireError
        else {
            return XCTFail("a file that is not there")
        }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: outside).sorted(), before)
        XCTAssertNil(server.stop())
        try store.close()
    }

    // MARK: Bad clients

    private func raw(_ server: ServerThread) throws -> Int32 {
        try SystemCalls.connect(
            to: SystemCalls.addresses(host: "127.0.0.1", port: server.port), milliseconds: 3000, isStopped: { false })
    }

    /// True when the other side has ended the connection within some seconds.
    private func isEnded(_ descriptor: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        return eventually(8) {
            while true {
                let count = buffer.withUnsafeMutableBytes { SystemCalls.receive(descriptor, into: $0) }
                if count == -Int(EAGAIN) { return false }
                if count <= 0 { return true }
            }
        }
    }

    func testStrangersWhoSayNothingOrNonsenseGoAndKeepNobodyOut() throws {
        let store = try store()
        let server = try serve {
            $0.strangersMax = 50
            $0.handshakeMilliseconds = 4000
        }
        var idle: [Int32] = []
        defer { idle.forEach { SystemCalls.close($0) } }
        for i in 0..<300 {
            let descriptor = try raw(server)
            idle.append(descriptor)
            if i % 3 == 0 {
                let junk: [UInt8] = (0..<200).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ i) }
                junk.withUnsafeBytes { _ = SystemCalls.send(descriptor, $0) }
            }
        }
        // Who is honest comes through, while they are there and afterwards.
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        try assertReplicaEquals(store)
        XCTAssertLessThanOrEqual(server.server.clientCount.strangers, 50)
        for descriptor in idle { XCTAssertTrue(isEnded(descriptor)) }
        XCTAssertTrue(eventually { server.server.clientCount.all == 0 })
        XCTAssertNil(server.stop())
        try store.close()
    }

    /// A client that is let in and speaks as it likes.
    private func channel(_ server: ServerThread) throws -> FrameChannel {
        let context = try TLSContext(settings("client"), isServer: false)
        let stream = try TLSStream(raw(server), context, host: "127.0.0.1", peer: "server")
        try stream.shakeHands(milliseconds: 5000, isStopped: { false })
        return FrameChannel(stream)
    }

    func testClientsThatBreakTheProtocolAreRefusedAndLeaveNothing() throws {
        let server = try serve { $0.handshakeMilliseconds = 1000 }
        // Each greets by another name: the server may still be letting go of the one before.
        var greetings = 0
        func hello() -> Frame {
            greetings += 1
            return .hello(.init(direction: .push, name: "bad-\(greetings).realm", source: "test"))
        }
        func expect(_ code: WireCode, _ text: String, line: UInt = #line, _ body: (FrameChannel) throws -> Void) throws {
            let channel = try channel(server)
            defer { channel.close() }
            do {
                try body(channel)
                while true { _ = try channel.next(milliseconds: 8000) }
            } catch WireError.refused(_, let found, let reason) {
                XCTAssertEqual(found, code, "\(text): \(reason)", line: line)
            } catch WireError.closed {
                // Where the refusal was lost because we were still writing, the end is enough.
            } catch { XCTFail("\(text): \(error)", line: line) }
        }
        func send(_ channel: FrameChannel, _ bytes: [UInt8]) throws {
            try bytes.withUnsafeBytes { try channel.stream.write($0, isStopped: { false }) }
        }
        try expect(.idle, "says nothing") { _ in }
        try expect(.malformed, "random bytes") {
            try send($0, (0..<64).map { UInt8($0) }.map { $0 == 1 || $0 == 2 || $0 == 3 ? 0 : $0 })
        }
        try expect(.tooLarge, "an oversize first message") { try send($0, [0, 0, 1, 0, 1]) }
        try expect(.malformed, "no greeting") { try $0.send(.pong) }
        try expect(.version, "another version") {
            try $0.send(.hello(.init(version: 9, direction: .push, name: "x", source: "y")))
        }
        try expect(.malformed, "an answer that nobody asked for") { channel in
            try channel.send(hello())
            _ = try channel.next()
            try channel.send(.checked(.init(isEqual: true, line: MirrorLine.new())))
        }
        try expect(.tooLarge, "an oversize frame") { channel in
            try channel.send(hello())
            _ = try channel.next()
            try send(channel, [0, 0, 0, 0x7F, 11])
        }
        try expect(.malformed, "a step without an image") { channel in
            try channel.send(hello())
            _ = try channel.next()
            try channel.send(.segment(isLast: true, bytes: [1, 2, 3]))
        }
        try expect(.malformed, "an image whose hash is wrong") { channel in
            try channel.send(hello())
            _ = try channel.next()
            try channel.send(smallImage())
            try channel.send(.piece(.init(offset: 0, plainByteCount: 8, isCompressed: false, bytes: [1, 2, 3, 4, 5, 6, 7, 8])))
            try channel.send(.imageEnd(Digest()))
        }
        try expect(.malformed, "a piece outside the image") { channel in
            try channel.send(hello())
            _ = try channel.next()
            try channel.send(smallImage())
            try channel.send(.piece(.init(offset: 4070, plainByteCount: 3, isCompressed: false, bytes: [1, 2, 3])))
        }
        XCTAssertFalse(FileManager.default.fileExists(atPath: root + "/bad.realm"))
        XCTAssertTrue(eventually { server.server.clientCount.all == 0 })
        XCTAssertNil(server.stop())
    }

    /// The beginning of an image of 4096 bytes.
    private func smallImage() -> Frame {
        var head = SegmentHead()
        head.flags = .image
        head.this = Snapshot(version: 3, topRef: 24, logicalSize: 4096)
        head.rangeCount = 1
        head.rangeTableByteCount = 3
        head.plainByteCount = 4072
        head.storedByteCount = 4072
        return .image(.init(head: head, ranges: [24..<4096]))
    }

    func testManyClientsThatIdleCostLittleAndHinderNobody() throws {
        let store = try store()
        let server = try serve()
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        var idle: [FrameChannel] = []
        for i in 0..<120 {
            let channel = try channel(server)
            try channel.send(.hello(.init(direction: .push, name: "idle/\(i).realm", source: "test")))
            let frame = try channel.next()
            guard case .welcome = frame else { return XCTFail("\(frame)") }
            idle.append(channel)
        }
        XCTAssertEqual(server.server.clientCount.all, 120)
        var random = SplitMix(seed: 121)
        let push = try mirror(source, server.url())
        for _ in 0..<10 { try change(store, &random) }
        reaches(12, "\(push.notes)")
        XCTAssertNil(push.stop())
        try assertReplicaEquals(store)
        // The server says farewell to all of them when it stops.
        XCTAssertNil(server.stop())
        for channel in idle {
            XCTAssertThrowsError(try { while true { _ = try channel.next(milliseconds: 5000) } }()) {
                guard case WireError.closed = $0 else { return XCTFail("\($0)") }
            }
        }
        try store.close()
    }
}
