import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// A replica that cannot be written to, an idle mirror, and a long correctness run.
final class MirrorSpaceTests: MirrorTestCase {
    #if DEBUG
    /// Makes every write to the replica fail for want of space while it is on.
    private func fillDisk(_ isFull: Bool) {
        if !isFull {
            SystemCallInterception.hook = nil
            return
        }
        let name = replica
        SystemCallInterception.hook = { call in
            let writes = ["pwrite64", "fallocate"].contains(call.name)
            return writes && (call.path == name || call.path == name + ".part") ? ENOSPC : nil
        }
    }

    func testAFullDiskIsWaitedForAndTheReplicaIsReadableMeanwhile() throws {
        // Synced sessions write by calls, which can be made to fail.
        let store = try Store.open(source, options { $0.durability = .full })
        defer { fillDisk(false) }
        try makeTable(store)
        let mirror = FollowerThread(source, replica, Mirror.Options())
        awaitVersion(2)
        var random = SplitMix(seed: 81)
        fillDisk(true)
        for _ in 0..<5 { try change(store, &random) }
        XCTAssertTrue(eventually { mirror.notes.contains { $0.contains("No space left") } }, "\(mirror.notes)")
        XCTAssertTrue(mirror.status()?.waitsFor?.contains("No space left") == true)
        try assertSound(replica)
        XCTAssertEqual(try state().snapshot.version, 2)
        fillDisk(false)
        awaitVersion(7)
        XCTAssertEqual(mirror.status()?.imageCount, 1, "one step goes on where the disk was full")
        XCTAssertNil(mirror.stop())
        try store.close()
        try assertSound(replica)
    }

    func testASourceIsHeldNoLongerThanTheLimitByAFullDiskAndAnImageFollows() throws {
        let store = try Store.open(source, options { $0.durability = .full })
        defer { fillDisk(false) }
        try makeTable(store)
        var mirrorOptions = Mirror.Options()
        mirrorOptions.pinLimit = .milliseconds(300)
        let mirror = FollowerThread(source, replica, mirrorOptions)
        awaitVersion(2)
        var random = SplitMix(seed: 82)
        fillDisk(true)
        for _ in 0..<5 { try change(store, &random) }
        XCTAssertTrue(eventually { mirror.notes.contains { $0.contains("is let go") } }, "\(mirror.notes)")
        let isFree = try eventually {
            try change(store, &random)
            return try store.status()?.versions.allSatisfy { $0.isNewest || $0.liveLockCount == 0 } == true
        }
        XCTAssertTrue(isFree, "no version but the newest is held any more")
        fillDisk(false)
        awaitVersion(try store.newestVersion())
        XCTAssertEqual(mirror.status()?.imageCount, 2)
        XCTAssertNil(mirror.stop())
        try store.close()
        try assertSound(replica)
    }
    #endif

    func testACompactedSourceIsMirroredAnewAndAMirrorThatLetsGoAllowsTheCompaction() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 83)
        for _ in 0..<20 { try change(store, &random) }
        let mirror = FollowerThread(source, replica, Mirror.Options())
        awaitVersion(22)
        XCTAssertFalse(try store.compact(), "a mirror is a participant")
        XCTAssertNil(mirror.stop())
        try store.close()
        // What the mirror had held on purpose ends with the session.
        let alone = try Store.open(source, options())
        XCTAssertTrue(try alone.compact())
        try change(alone, &random)
        let again = FollowerThread(source, replica, Mirror.Options())
        awaitVersion(try alone.newestVersion())
        XCTAssertEqual(again.status()?.imageCount, 1)
        let reader = try Store.open(replica, options { ($0.access, $0.durability) = (.readOnly, .full) })
        try assertEqual(alone, reader)
        XCTAssertNil(again.stop())
        try reader.close()
        try alone.close()
        try assertSound(replica)
    }

    func testAnIdleMirrorDoesNothing() throws {
        let store = try Store.open(source, options { $0.durability = .full })
        try makeTable(store)
        let mirror = try TestProcess(["mirror", source, replica])
        awaitVersion(2)
        func spent() throws -> (ticks: Int, switches: Int) {
            let base = "/proc/\(mirror.processIdentifier)"
            let text = try String(contentsOfFile: base + "/stat", encoding: .utf8)
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            var switches = 0
            for thread in try FileManager.default.contentsOfDirectory(atPath: base + "/task") {
                let status = try String(contentsOfFile: "\(base)/task/\(thread)/status", encoding: .utf8)
                for line in status.split(separator: "\n") where line.hasPrefix("voluntary_ctxt_switches") {
                    switches += Int(line.split(separator: "\t").last ?? "") ?? 0
                }
            }
            return ((Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0), switches)
        }
        sleep(1)
        let before = try spent()
        sleep(4)
        let after = try spent()
        print("idle mirror in 4 s: \(after.ticks - before.ticks) ticks of 10 ms, \(after.switches - before.switches) wake-ups")
        XCTAssertLessThanOrEqual(after.ticks - before.ticks, 8)
        mirror.send("stop")
        XCTAssertEqual(mirror.finish(), 0)
        try store.close()
    }

    /// A long form, which grows over a section border, runs where REALM_LONG_TESTS says how many steps (800 and more).
    func testThroughoutALongLifeOfTheSourceEveryShippedVersionIsEqualAndExact() throws {
        let steps = ProcessInfo.processInfo.environment["REALM_LONG_TESTS"].flatMap { Int($0) } ?? 220
        let seed: UInt64 = 84
        print("seed \(seed), \(steps) steps")
        var random = SplitMix(seed: seed)
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica)
        let reader = try Store.open(replica, options { $0.access = .readOnly })
        let applier = try Applier(replica, label: "test")
        let participant = try XCTUnwrap(store.participant)
        var base = try HeldSnapshot(participant, participant.acquireNewest(.live))
        var shrank = 0, grew = 0
        for step in 0..<steps {
            // Phases: growth past a section border, schema changes, mass deletion and the evacuation that follows.
            switch step * 8 / steps {
            case 1 where step % 7 == 0:
                try store.write { transaction in
                    let table = try transaction.editor.editor(named: "class_Item")
                    for _ in 0..<12 {
                        let text = String(repeating: "z", count: 400_000 + Int(random.next() % 100_000))
                        try table.set("text", of: table.createObject(), to: .string(text))
                    }
                }
            case 2 where step % 5 == 0:
                try store.write { transaction in
                    let name = "class_Extra\(step)"
                    let table = try transaction.editor.createTable(name)
                    try table.addColumn("link", .link, target: transaction.editor.editor(named: "class_Item").table.key)
                    _ = try table.createObject()
                    try transaction.editor.editor(named: "class_Item").addColumn("extra\(step)", .double)
                }
            case 4:
                try change(store, &random, adds: 1, deletes: 40)
            default:
                for _ in 0...Int(random.next() % 3) { try change(store, &random, adds: 30, textLength: 2000, deletes: 20) }
            }
            let next = try HeldSnapshot(participant, participant.acquireNewest(.live))
            // The initialiser compares the difference by free lists with the walk; here both must be the same to the byte.
            let shipped = try MirrorStep(base, next, source: source, checks: true)
            let walked = try DifferenceWalk.ranges(memory: next.memory, older: base.extents(), newer: next.snapshot)
            XCTAssertEqual(shipped.ranges, walked, "step \(step)")
            XCTAssertEqual(try applier.attempt(shipped), .applied)
            if next.snapshot.logicalSize < base.snapshot.logicalSize { shrank += 1 }
            if next.snapshot.logicalSize > base.snapshot.logicalSize { grew += 1 }
            base = next
            if step % 16 == 0 || step == steps - 1 { try assertEqual(store, reader, "step \(step)") }
        }
        print("logical size grew \(grew) times, shrank \(shrank) times, ended at \(base.snapshot.logicalSize)")
        XCTAssertGreaterThan(grew, 0)
        base.letGo()
        applier.close()
        try reader.close(force: true)
        try store.close(force: true)
        try assertSound(replica)
    }
}
