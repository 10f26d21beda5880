import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// A replica that cannot be written to, and an idle mirror.
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
            return writes && (call.path == name || call.path == name + ".management/mirror.part") ? ENOSPC : nil
        }
    }

    func testAFullDiskIsWaitedForAndTheReplicaIsReadableMeanwhile() throws {
        // Synced sessions write by calls, which can be made to fail.
        let store = try Store.open(source, options { $0.durability = .full })
        defer { fillDisk(false) }
        try makeTable(store)
        let mirror = FollowerThread(source, replica, usualMirrorOptions())
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

    func testAStateThatCannotBeWrittenIsOneMessageHoweverManyStepsItLasts() throws {
        let store = try Store.open(source, options())
        defer { SystemCallInterception.hook = nil }
        try makeTable(store)
        let mirror = FollowerThread(source, replica, usualMirrorOptions())
        awaitVersion(2)
        var random = SplitMix(seed: 84)
        let part = replica + ".management/mirror.state.part"
        SystemCallInterception.hook = { $0.name == "pwrite64" && $0.path == part ? ENOSPC : nil }
        for version in 3...7 {
            try change(store, &random)
            XCTAssertTrue(eventually { mirror.status()?.version == UInt64(version) }, "\(mirror.notes)")
        }
        XCTAssertEqual(
            mirror.notes.filter { $0.contains("the state of the mirror cannot be written") }.count, 1, "\(mirror.notes)")
        SystemCallInterception.hook = nil
        try change(store, &random)
        awaitVersion(8)
        XCTAssertNil(mirror.stop())
        try store.close()
        try assertSound(replica)
    }

    /// With the folder beside the replica the right to write to it is gone as well.
    func testAReplicaThatIsRemovedWithAllThatLiesBesideItIsMadeAnew() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 83)
        let mirror = FollowerThread(source, replica, usualMirrorOptions())
        XCTAssertTrue(eventually { mirror.status()?.imageCount == 1 })
        for count in 2...3 {
            for more in [".management", ".lock", ".note", ""] { try? FileManager.default.removeItem(atPath: replica + more) }
            try change(store, &random)
            XCTAssertTrue(eventually { mirror.status()?.imageCount == count }, "\(mirror.notes)")
            let place = FileIdentity.absolutePath(source)
            XCTAssertThrowsError(try ReplicaWriter(replica, source: place, options: usualMirrorOptions())) {
                guard case MirrorError.busy? = $0 as? MirrorError else { return XCTFail("\($0)") }
            }
        }
        awaitVersion(try store.newestVersion())
        XCTAssertNil(mirror.stop())
        XCTAssertTrue(FileManager.default.fileExists(atPath: replica + ".management/mirror.state"))
        try store.close()
        try assertSound(replica)
    }

    func testASourceIsHeldNoLongerThanTheLimitByAFullDiskAndAnImageFollows() throws {
        let store = try Store.open(source, options { $0.durability = .full })
        defer { fillDisk(false) }
        try makeTable(store)
        var mirrorOptions = usualMirrorOptions()
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
        let mirror = FollowerThread(source, replica, usualMirrorOptions())
        awaitVersion(22)
        XCTAssertFalse(try store.compact(), "a mirror is a participant")
        XCTAssertNil(mirror.stop())
        try store.close()
        // What the mirror had held on purpose ends with the session.
        let alone = try Store.open(source, options())
        XCTAssertTrue(try alone.compact())
        try change(alone, &random)
        let again = FollowerThread(source, replica, usualMirrorOptions())
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
        let mirror = try TestProcess(["mirror", source, replica] + usualKeyArguments)
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
}
