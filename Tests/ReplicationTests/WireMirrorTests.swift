import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Mirrors over TLS on this machine: both directions, broken connections, damaged bytes.
final class WireMirrorTests: WireTestCase {
    func testAPushFollowsEveryVersionAndAPullDoesToo() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        let server = try serve()
        let push = try mirror(source, server.url("deep/er/b.realm"))
        let there = root + "/deep/er/b.realm", back = scratch.file("back.realm")
        reaches(2, at: there, "\(push.notes) \(server.notes)")
        let pull = try mirror(server.url("deep/er/b.realm"), back)
        var random = SplitMix(seed: 101)
        for _ in 0..<40 { try change(store, &random) }
        reaches(42, at: there, "\(push.notes)")
        reaches(42, at: back, "\(pull.notes) \(server.notes)")
        try assertReplicaEquals(store, there)
        try assertReplicaEquals(store, back)
        let status = try XCTUnwrap(push.status())
        XCTAssertEqual(status.imageCount, 1)
        XCTAssertEqual(status.version, 42)
        XCTAssertEqual(pull.status()?.imageCount, 1)
        XCTAssertEqual(try MirrorState.read(replica: back)?.source, server.url("deep/er/b.realm"))
        XCTAssertNil(push.stop())
        XCTAssertNil(pull.stop())
        XCTAssertNil(server.stop())
        XCTAssertEqual(server.server.clientCount.all, 0)
        try store.close()
        // The replica there is one, and goes on with the same line when the mirror comes again.
        let opened = try Store.open(there, options())
        XCTAssertThrowsError(try opened.beginWrite())
        try opened.close()
    }

    func testOnceEndsWhenBothAreEqual() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        let server = try serve()
        let push = try mirror(source, server.url(), { $0.endsWhenEqual = true })
        XCTAssertNil(push.join())
        try assertReplicaEquals(store)
        let back = scratch.file("back.realm")
        XCTAssertNil(try mirror(server.url(), back, { $0.endsWhenEqual = true }).join())
        try assertReplicaEquals(store, back)
        // A second time, after a change: only what changed travels.
        var random = SplitMix(seed: 102)
        try change(store, &random)
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        try assertReplicaEquals(store)
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testStepsGoOnAfterTheConnectionWasCutAnywhereWithoutANewImage() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 103)
        print("seed 103")
        for _ in 0..<20 { try change(store, &random) }
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        let push = try mirror(source, "realm://127.0.0.1:\(relay.port)/b.realm")
        reaches(22, "\(push.notes)")
        XCTAssertTrue(eventually { push.status()?.imageCount == 1 })
        var spared = 0
        for round in 0..<24 {
            // Towards the server and towards the client, in the handshake and far behind it.
            let place = 1 + Int(random.next() % (round % 3 == 0 ? 8000 : 3500))
            relay.set(.cut(afterBytes: round % 2 == 0 ? place : -place))
            try change(store, &random)
            usleep(30_000)
            try change(store, &random)
            usleep(20_000)
            relay.set(.none, ending: round % 4 != 0)
            reaches(try store.newestVersion(), "round \(round): \(push.notes.suffix(3))")
            spared += 1
        }
        XCTAssertEqual(push.status()?.imageCount, 1, "\(push.notes)")
        XCTAssertEqual(spared, 24)
        try assertReplicaEquals(store)
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testAPullWhoseConnectionBreaksNowAndThenComesBackAtOnceEachTime() throws {
        let there = root + "/b.realm", back = scratch.file("back.realm")
        let store = try Store.open(there, options())
        try makeTable(store)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        let pull = try mirror("realm://127.0.0.1:\(relay.port)/b.realm", back)
        var random = SplitMix(seed: 104)
        for round in 0..<8 {
            try change(store, &random)
            reaches(try store.newestVersion(), at: back, "round \(round): \(pull.notes.suffix(3))")
            relay.set(.none)
        }
        try change(store, &random)
        reaches(try store.newestVersion(), at: back)
        let pauses = pull.pauses
        XCTAssertGreaterThanOrEqual(pauses.count, 8, "each break is followed by a pause")
        XCTAssertLessThanOrEqual(pauses.max() ?? 0, 800, "and none is longer because of those before: \(pauses)")
        XCTAssertNil(pull.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testDamagedBytesAreNoticedAndTheStepComesAgain() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 104)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        let back = scratch.file("back.realm")
        let push = try mirror(source, server.url())
        reaches(2)
        let pull = try mirror("realm://127.0.0.1:\(relay.port)/b.realm", back)
        reaches(2, at: back, "\(pull.notes)")
        for round in 0..<6 {
            // Behind the handshake, which has some two thousand bytes a way.
            relay.set(.corrupt(atByte: (round % 2 == 0 ? 1 : -1) * (2600 + Int(random.next() % 600))))
            for _ in 0..<4 {
                try change(store, &random)
                usleep(15_000)
            }
            relay.set(.none, ending: false)
            reaches(try store.newestVersion(), at: back, "round \(round): \(pull.notes.suffix(3))")
        }
        try assertReplicaEquals(store, back)
        XCTAssertNil(pull.stop())
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testASlowWayMakesStepsLargerAndHoldsNobodyBack() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 105)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        relay.set(.delay(milliseconds: 25))
        let slow = try mirror(source, "realm://127.0.0.1:\(relay.port)/slow.realm"), fast = try mirror(source, server.url())
        reaches(2, at: root + "/slow.realm", "\(slow.notes)")
        for _ in 0..<100 { try change(store, &random) }
        reaches(102)
        reaches(102, at: root + "/slow.realm")
        let steps = try XCTUnwrap(slow.status()?.stepCount)
        XCTAssertLessThan(steps, 100, "versions travel together where the way is slow")
        try assertReplicaEquals(store)
        try assertReplicaEquals(store, root + "/slow.realm")
        XCTAssertNil(slow.stop())
        XCTAssertNil(fast.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    private func fill(_ store: Store, _ count: Int, _ random: inout SplitMix) throws {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            for _ in 0..<count {
                // Does not compress.
                let text = String((0..<3000).map { _ in Character(UnicodeScalar(UInt8(33 + random.next() % 90))) })
                try table.set("text", of: table.createObject(), to: .string(text))
            }
        }
    }

    func testAnImageThatWasCutGoesOnWhereItWas() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 106)
        try fill(store, 2500, &random)
        let size = try SystemCalls.status(path: source).size
        XCTAssertGreaterThan(size, 6 << 20)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        relay.set(.cut(afterBytes: size / 2))
        let push = try mirror(source, "realm://127.0.0.1:\(relay.port)/b.realm")
        XCTAssertTrue(eventually { relay.connectionCount >= 2 })
        relay.set(.none, ending: false)
        reaches(3, "\(push.notes)")
        let carried = relay.byteCount.up
        print("image of \(size) bytes, cut in the middle: \(carried) bytes carried")
        XCTAssertLessThan(
            carried, size * 3 / 2 + relay.connectionCount * (3 << 20), "what was there already does not travel again")
        try assertReplicaEquals(store)
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testWhereThePinIsLostOnlyDifferingBlocksTravel() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 107)
        try fill(store, 2500, &random)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        let url = "realm://127.0.0.1:\(relay.port)/b.realm"
        XCTAssertNil(
            try mirror(
                source, url,
                {
                    $0.endsWhenEqual = true; $0.pinGrace = .zero
                }
            ).join())
        let image = relay.byteCount.up
        for _ in 0..<5 { try change(store, &random) }
        let push = try mirror(source, url)
        reaches(8, "\(push.notes)")
        let difference = relay.byteCount.up - image
        print("image \(image) bytes, difference by content \(difference) bytes")
        XCTAssertLessThan(difference * 5, image)
        XCTAssertTrue(eventually { push.status()?.imageCount == 1 })
        try assertReplicaEquals(store)
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testASourceIsLetGoWhereTheReplicaCannotBeReachedForLongerThanTheLimit() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 108)
        let server = try serve()
        let relay = try Relay(to: server.port)
        defer { relay.end() }
        let push = try mirror(source, "realm://127.0.0.1:\(relay.port)/b.realm", { $0.pinLimit = .milliseconds(100) })
        reaches(2)
        XCTAssertTrue(eventually { push.status()?.imageCount == 1 })
        relay.set(.cut(afterBytes: 1))
        for _ in 0..<3 { try change(store, &random) }
        XCTAssertTrue(eventually { push.notes.contains { $0.contains("is let go") } }, "\(push.notes)")
        relay.set(.none)
        reaches(5, "\(push.notes)")
        XCTAssertTrue(eventually { push.status()?.imageCount == 2 })
        try assertReplicaEquals(store)
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testAReaderOfTheReplicaThereIsWaitedForAndNamedHere() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 109)
        let server = try serve()
        let push = try mirror(source, server.url())
        reaches(2)
        let reader = try Store.open(replica, options { $0.access = .readOnly })
        let held = try reader.beginRead()
        for _ in 0..<30 { try change(store, &random) }
        XCTAssertTrue(eventually { push.notes.contains { $0.contains("waiting for readers") } }, "\(push.notes)")
        XCTAssertEqual(held.version, 2)
        XCTAssertNotNil(try held.group.table(named: "class_Item"))
        held.end()
        reaches(32)
        try reader.close()
        try assertReplicaEquals(store)
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        try store.close()
    }

    func testEncryptedFilesTravelAndAPlainReplicaOfOneNeedsConsent() throws {
        let key = try EncryptionKey((0..<64).map { UInt8($0) }), other = try EncryptionKey([UInt8](repeating: 9, count: 64))
        let store = try Store.open(source, options { $0.encryptionKey = key })
        try makeTable(store)
        let plain = try serve()
        let refused = try mirror(source, plain.url(), { $0.sourceKey = key })
        let error = try XCTUnwrap(refused.join() as? WireError)
        guard case .refused(_, .wouldBePlain, _) = error else { return XCTFail("\(error)") }
        XCTAssertNil(plain.stop())
        let server = try serve { $0.key = other }
        let push = try mirror(source, server.url(), { $0.sourceKey = key })
        reaches(2, "\(push.notes)")
        var random = SplitMix(seed: 110)
        for _ in 0..<10 { try change(store, &random) }
        reaches(12, "\(push.notes)")
        let back = scratch.file("back.realm")
        let unwilling = try mirror(server.url(), back)
        guard case .refused(_, .wouldBePlain, _)? = unwilling.join() as? WireError else {
            return XCTFail("a plain copy of an encrypted file")
        }
        XCTAssertNil(try mirror(server.url(), back, { ($0.destinationKey, $0.endsWhenEqual) = (key, true) }).join())
        let text = try JSONExporter.text(ImmutableFile(path: back, key: key).group)
        let last = try store.beginRead()
        XCTAssertTrue(try text == JSONExporter.text(last.group))
        last.end()
        XCTAssertNil(push.stop())
        XCTAssertNil(server.stop())
        XCTAssertTrue(try Verifier.verify(ImmutableFile(path: replica, key: other)).isSound)
        try store.close()
    }

    func testAReplicaThereThatSomebodyElseChangedIsRefusedAndReplacedByForceWithTheRight() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        let rights = scratch.file("clients")
        try Data("client push,pull **\n".utf8).write(to: URL(fileURLWithPath: rights))
        let server = try serve { $0.rightsFile = rights }
        XCTAssertNil(try mirror(source, server.url(), { $0.endsWhenEqual = true }).join())
        let other = try Store.open(replica, options { $0.writesToReplica = true })
        try other.write { _ = try $0.editor.createTable("class_Foreign") }
        try other.close()
        var random = SplitMix(seed: 111)
        try change(store, &random)
        guard case .refused(_, .conflict, let reason)? = try mirror(source, server.url()).join() as? WireError else {
            return XCTFail("it was overwritten")
        }
        XCTAssertTrue(reason.contains("changed by somebody else"), reason)
        guard case .refused(_, .notAllowed, _)? = try mirror(source, server.url(), { $0.force = true }).join() as? WireError
        else { return XCTFail("force") }
        try Data("client push,pull,force **\n".utf8).write(to: URL(fileURLWithPath: rights))
        server.ask(.reload)
        XCTAssertTrue(eventually { server.notes.contains { $0.contains("read again") } })
        XCTAssertNil(try mirror(source, server.url(), { ($0.force, $0.endsWhenEqual) = (true, true) }).join())
        try assertReplicaEquals(store)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: root).count { $0.hasPrefix("b.realm.replaced-") }, 1)
        XCTAssertNil(server.stop())
        try store.close()
    }
}
