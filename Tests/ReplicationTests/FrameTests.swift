import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// Messages of the wire: what was written is read, and what nobody has written is refused.
final class FrameTests: XCTestCase {
    private let line = MirrorLine(lineage: (1, 2), sequence: 3, chain: ImageBlocks.hash([1]))
    private let snapshot = Snapshot(version: 7, topRef: 64, logicalSize: 4096)

    private func examples() -> [Frame] {
        var head = SegmentHead()
        head.flags = .image
        head.this = snapshot
        head.rangeCount = 2
        head.rangeTableByteCount = 4
        head.plainByteCount = 48
        head.storedByteCount = 48
        let ranges = [24..<40, 64..<96]
        return [
            .hello(.init(direction: .push, forces: true, isEncrypted: true, name: "a/b.realm", source: "host:/ä.realm")),
            .hello(.init(direction: .pull, isOnce: true, name: "", source: "")),
            .welcome(.init(isEncrypted: true)), .refusal(.notAllowed, "no"), .state(.init()),
            .state(.init(position: ReplicaPosition(snapshot: snapshot, isNoted: true, line: line))),
            .state(.init(position: ReplicaPosition(snapshot: snapshot, isNoted: false, line: line))),
            .check(.init(snapshot: snapshot, digest: ImageBlocks.hash([2]), ranges: ranges)),
            .checked(.init(isEqual: true, line: line)),
            .image(.init(head: head, ranges: ranges)),
            .have(.init(first: 5, isLast: false, hashes: [ImageBlocks.hash([]), Digest()])),
            .piece(.init(offset: 65_536, plainByteCount: 3, isCompressed: false, bytes: [1, 2, 3])),
            .piece(.init(offset: 0, plainByteCount: 300, isCompressed: true, bytes: [9])), .imageEnd(ImageBlocks.hash([3])),
            .segment(isLast: true, bytes: [4, 5]), .acknowledgement(snapshot, Digest()), .wait(nil), .wait(.readers("somebody")),
            .wait(.space("full")),
            .ping(9), .pong, .bye,
        ]
    }

    func testEveryMessageIsReadAsItWasWrittenHoweverItIsCut() throws {
        for frame in examples() {
            let bytes = frame.bytes() + [0xAA, 0xBB]
            try bytes.withUnsafeBytes { all in
                for length in 0..<bytes.count - 2 {
                    XCTAssertNil(try Frame.parse(UnsafeRawBufferPointer(rebasing: all[..<length])), "\(frame) cut at \(length)")
                }
                let (found, count) = try XCTUnwrap(try Frame.parse(all))
                XCTAssertEqual(found, frame)
                XCTAssertEqual(count, bytes.count - 2)
            }
        }
    }

    func testDamagedAndRandomMessagesAreRefusedOrReadButNeverTrusted() throws {
        let seed: UInt64 = 91
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        let examples = examples().map { $0.bytes() }
        var refused = 0, read = 0
        for round in 0..<40_000 {
            var bytes = examples[Int(random.next() % UInt64(examples.count))]
            switch random.next() % 5 {
            case 0:
                for _ in 0...random.next() % 4 {
                    bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
                }
            case 1: bytes = (0..<Int(random.next() % 80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            case 2:
                // A body of another kind, or with bytes more or less, under a right length.
                var body = Array(bytes[5...])
                if random.next() % 2 == 0 {
                    body += [0, 1, 2]
                } else if !body.isEmpty {
                    body.removeLast(1 + Int(random.next() % UInt64(body.count)))
                }
                bytes = [UInt8(body.count & 0xFF), UInt8(body.count >> 8), 0, 0, UInt8(random.next() % 20)] + body
            case 3:
                // Numbers that are as large as can be.
                let at = Int(random.next() % UInt64(bytes.count))
                for i in at..<min(at + 8, bytes.count) { bytes[i] = 0xFF }
            default: bytes[0] = UInt8(truncatingIfNeeded: random.next())
            }
            bytes.withUnsafeBytes { all in
                do {
                    guard let (frame, count) = try Frame.parse(all) else { return }
                    read += 1
                    XCTAssertLessThanOrEqual(count, all.count, "round \(round)")
                    // What is read can be written again.
                    if case .refusal = frame { return }
                    XCTAssertNoThrow(
                        try frame.bytes().withUnsafeBytes { XCTAssertEqual(try Frame.parse($0)?.frame, frame, "round \(round)") })
                } catch is FrameError { refused += 1 } catch { XCTFail("round \(round): \(error)") }
            }
        }
        XCTAssertGreaterThan(refused, 5000)
        XCTAssertGreaterThan(read, 1000)
    }

    func testAMessageLargerThanTheLimitIsRefusedByItsLengthAlone() throws {
        let header: [UInt8] = [0, 0, 0, 2, 11]
        try header.withUnsafeBytes { bytes in
            XCTAssertThrowsError(try Frame.parse(bytes)) {
                XCTAssertEqual($0 as? FrameError, .tooLarge(32 << 20, limit: Frame.byteCountMax))
            }
        }
        try Frame.hello(.init(direction: .push, name: String(repeating: "n", count: 900), source: "s")).bytes().withUnsafeBytes {
            bytes in
            XCTAssertNotNil(try Frame.parse(bytes, limit: Frame.helloByteCountMax))
            XCTAssertThrowsError(try Frame.parse(bytes, limit: 100))
        }
    }

    func testAddressesAreUnderstoodOrRefused() throws {
        XCTAssertEqual(try MirrorEndpoint("/a/b.realm"), .file("/a/b.realm"))
        XCTAssertEqual(try MirrorEndpoint("realm://h:1/a/b.realm"), .server(host: "h", port: 1, name: "a/b.realm"))
        XCTAssertEqual(try MirrorEndpoint("realm://h/b"), .server(host: "h", port: MirrorEndpoint.defaultPort, name: "b"))
        XCTAssertEqual(try MirrorEndpoint("realm://[2001:db8::1]:7/b"), .server(host: "2001:db8::1", port: 7, name: "b"))
        XCTAssertEqual(try MirrorEndpoint("ssh://u@h:22/a b"), .ssh(destination: "u@h", port: 22, path: "/a b"))
        XCTAssertEqual(try MirrorEndpoint("ssh://h/~/x"), .ssh(destination: "h", port: nil, path: "x"))
        for text in [
            "realm://h:1", "realm://h:99999/a", "realm://1:2:3/a", "realm://[::1]x/a", "ssh://h", "ssh://-oProxyCommand=x/a",
            "ssh://-u@h/a",
        ] {
            XCTAssertThrowsError(try MirrorEndpoint(text), text)
        }
        for text in ["realm://[::1]:7733/a", "ssh://h/~/x", "ssh://u@h:22/a"] {
            XCTAssertEqual(try MirrorEndpoint(text).description, text)
        }
    }

    func testRightsAreGivenByRuleAndPattern() throws {
        let rights = try ServerRights(
            text: "# rules\nweb push web/*.realm\n\nadmin push,pull,force **\n* pull public/**", path: "clients")
        XCTAssertTrue(rights.allows(.push, client: "web", name: "web/a.realm"))
        for (right, client, name) in [
            (ServerRights.Right.push, "web", "web/x/a.realm"), (.pull, "web", "web/a.realm"), (.force, "web", "web/a.realm"),
            (.push, "other", "web/a.realm"),
            (.push, "web", "web/a.realm2"), (.pull, "x", "publi/a"),
        ] { XCTAssertFalse(rights.allows(right, client: client, name: name), "\(right) \(client) \(name)") }
        XCTAssertTrue(rights.allows(.pull, client: "x", name: "public/a/b/c"))
        XCTAssertTrue(rights.allows(.force, client: "admin", name: "any/thing"))
        // No pattern takes long.
        XCTAssertFalse(ServerRights.matches(String(repeating: "*a", count: 200), String(repeating: "a", count: 199) + "b"))
        XCTAssertTrue(ServerRights.matches("a?c*", "abcd"))
        XCTAssertFalse(ServerRights.matches("a?c*", "a/cd"))
        for (text, line) in [("a push", 1), ("\na fly **", 2), ("a push,,x **", 1)] {
            XCTAssertThrowsError(try ServerRights(text: text, path: "f")) {
                XCTAssertTrue("\($0)".contains("f: line \(line)"), "\($0)")
            }
        }
    }
}
