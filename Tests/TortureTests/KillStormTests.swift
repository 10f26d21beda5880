import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Many processes on one file, one of them killed every now and then: whatever is read is consistent, what was acknowledged is
/// there, nobody waits long, and the file is sound in the end. Longer runs: `Scripts/kill-storm`.
final class KillStormTests: XCTestCase {
    private final class Member {
        let process: ChildProcess
        let number: Int
        init(_ path: String, _ number: Int, seed: UInt64, keyByte: UInt8?) throws {
            self.number = number
            process = try ChildProcess(
                product: "TestParticipant", ["storm", path, "\(number)", "\(seed)"] + (keyByte.map { ["\($0)"] } ?? []))
        }
    }

    private func storm(processes: Int, seconds: Double, seed: UInt64, keyByte: UInt8? = nil) throws {
        print("seed \(seed)")
        let scratch = ScratchDirectory()
        let path = scratch.file("storm.realm")
        var random = SplitMix(seed: seed)
        var acknowledged: [Int: Int64] = [:]
        var complaints: [String] = []
        var slowest = 0, slowCount = 0, commits = 0
        func harvest(_ member: Member) {
            for line in member.process.output.split(separator: "\n") {
                let words = line.split(separator: " ")
                switch words.first {
                case "ack":
                    acknowledged[member.number] = max(
                        acknowledged[member.number] ?? 0, words.count > 1 ? Int64(words[1]) ?? 0 : 0)
                    commits += 1
                case "slow":
                    slowest = max(slowest, words.last.flatMap { Int($0) } ?? 0)
                    slowCount += 1
                case "wrong": complaints.append(String(line))
                default: break
                }
            }
            let errors = member.process.errors
            if !errors.isEmpty { complaints.append(errors) }
        }
        var members = try (0..<processes).map { try Member(path, $0, seed: random.next(), keyByte: keyByte) }
        let end = Date().addingTimeInterval(seconds)
        var kills = 0
        // On a slow machine processes are killed before they come to anything; the storm goes on until some do.
        while Date() < end || commits < 20 && Date() < end.addingTimeInterval(60) {
            usleep(UInt32(50_000 + random.next() % 250_000))
            let victim = Int(random.next() % UInt64(processes))
            kill(members[victim].process.processIdentifier, SIGKILL)
            _ = members[victim].process.waitForEnd(seconds: 20)
            harvest(members[victim])
            kills += 1
            members[victim] = try Member(path, victim, seed: random.next(), keyByte: keyByte)
        }
        // One survives: it joins before the others are killed, so what they held is given back by a living one, not by a new
        // session.
        var options = StoreOptions()
        options.durability = .unsafe
        if let keyByte { options.encryptionKey = try EncryptionKey([UInt8](repeating: keyByte, count: 64)) }
        let store = try Store.open(path, options)
        for member in members {
            kill(member.process.processIdentifier, SIGKILL)
            _ = member.process.waitForEnd(seconds: 20)
            harvest(member)
        }
        XCTAssertEqual(complaints, [])
        XCTAssertLessThan(slowest, 10_000, "somebody waited for \(slowest) ms")
        print(
            "\(kills) kills, \(commits) acknowledged commits, \(slowCount) waits of more than a second, the longest \(slowest) ms"
        )

        let reading = try store.beginRead()
        let accounts = try reading.group.table(ofClass: "Account")
        for (number, value) in acknowledged {
            let stored =
                try accounts?.find(primaryKey: .int(Int64(number)))?.int(XCTUnwrap(accounts?.column(named: "value"))) ?? 0
            XCTAssertGreaterThanOrEqual(stored, value, "process \(number) lost an acknowledged commit")
        }
        reading.end()
        try assertAllIsGivenBack(store)
        try store.close()
        let report = try Verifier.verify(ImmutableFile(path: path, key: options.encryptionKey))
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(report.findings.prefix(4).map(\.description))")
    }

    /// What the dead held: their places in the session, the versions they read, and the space of these. Only a kill between
    /// raising a count and noting whose it is, two stores, leaves the count for the rest of the session.
    private func assertAllIsGivenBack(_ store: Store) throws {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(20))
        func held() throws -> (participants: Int, versions: Int) {
            let status = try XCTUnwrap(store.status())
            return (
                status.participantCount,
                status.versions.filter { !$0.isNewest && $0.liveLockCount + $0.frozenLockCount > 0 }.count
            )
        }
        var found = try held()
        while found != (1, 0) && limit.timeIntervalSinceNow > 0 {
            try store.write { try $0.editor.setSchemaVersion(1) }
            usleep(20_000)
            found = try held()
        }
        XCTAssertLessThanOrEqual(
            found.participants - 1 + found.versions, 1,
            "\(found.participants - 1) of the dead are counted still, \(found.versions) versions of theirs are held")
        // The next commits may use whatever only the dead could read; nothing but what the last one released is kept for anybody.
        for _ in 0..<3 { try store.write { try $0.editor.setSchemaVersion(1) } }
        let reading = try store.beginRead()
        defer { reading.end() }
        let list = try FreeList(reading.memory, reading.snapshot)
        var free = 0, locked = 0
        for i in 0..<list.blocks.count {
            free += list.blocks[i].length
            if list.blocks[i].version + 1 < reading.version && list.blocks[i].version > 0 { locked += list.blocks[i].length }
        }
        print(
            "\(found.versions) versions held by nobody; \(reading.snapshot.logicalSize) bytes, \(free) free, \(locked) still marked as an older version's"
        )
        if found.versions == 0 { XCTAssertEqual(locked, 0) }
    }

    private var longSeconds: Double? { ProcessInfo.processInfo.environment["KILL_STORM_SECONDS"].flatMap { Double($0) } }

    func testKilledProcessesLeaveAConsistentFileAndNobodyWaiting() throws {
        try storm(
            processes: longSeconds == nil ? 6 : 20, seconds: longSeconds ?? 6,
            seed: longSeconds == nil ? 4711 : UInt64.random(in: 0...UInt64.max), keyByte: TestKeys.usual == nil ? nil : 8)
    }

    func testTheSameWithAnEncryptedFile() throws {
        try storm(
            processes: longSeconds == nil ? 4 : 20, seconds: longSeconds ?? 4,
            seed: longSeconds == nil ? 4712 : UInt64.random(in: 0...UInt64.max), keyByte: 9)
    }
}
