import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Many processes on one file, one of them killed every now and then: whatever is read is consistent, what was acknowledged is there,
/// nobody waits long, and the file is sound in the end. Longer runs: `Scripts/kill-storm`.
final class KillStormTests: XCTestCase {
    private final class Member {
        let process: ChildProcess
        let number: Int
        init(_ path: String, _ number: Int, seed: UInt64, keyByte: UInt8?) throws {
            self.number = number
            process = try ChildProcess(product: "TestParticipant", ["storm", path, "\(number)", "\(seed)"] + (keyByte.map { ["\($0)"] } ?? []))
        }
    }

    private func storm(processes: Int, seconds: Double, seed: UInt64, keyByte: UInt8? = nil) throws {
        print("seed \(seed)")
        let scratch = ScratchDirectory()
        let path = scratch.file("storm.realm")
        var random = SplitMix(seed: seed)
        var acknowledged: [Int: Int64] = [:]
        var complaints: [String] = []
        var slowest = 0
        func harvest(_ member: Member) {
            for line in member.process.output.split(separator: "\n") {
                let words = line.split(separator: " ")
                switch words.first {
                case "ack": acknowledged[member.number] = max(acknowledged[member.number] ?? 0, words.count > 1 ? Int64(words[1]) ?? 0 : 0)
                case "slow": slowest = max(slowest, words.last.flatMap { Int($0) } ?? 0)
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
        while Date() < end {
            usleep(UInt32(50_000 + random.next() % 250_000))
            let victim = Int(random.next() % UInt64(processes))
            kill(members[victim].process.processIdentifier, SIGKILL)
            _ = members[victim].process.waitForEnd(seconds: 20)
            harvest(members[victim])
            kills += 1
            members[victim] = try Member(path, victim, seed: random.next(), keyByte: keyByte)
        }
        for member in members {
            kill(member.process.processIdentifier, SIGKILL)
            _ = member.process.waitForEnd(seconds: 20)
            harvest(member)
        }
        XCTAssertEqual(complaints, [])
        XCTAssertLessThan(slowest, 10_000, "somebody waited for \(slowest) ms")
        print("\(kills) kills, \(acknowledged.values.reduce(0, +)) acknowledged commits, longest wait over a second: \(slowest) ms")

        // The survivor: everything that was acknowledged is there, and the file is sound.
        var options = StoreOptions()
        options.durability = .unsafe
        if let keyByte { options.encryptionKey = try EncryptionKey([UInt8](repeating: keyByte, count: 64)) }
        let store = try Store.open(path, options)
        let reading = try store.beginRead()
        let accounts = try XCTUnwrap(reading.group.table(ofClass: "Account"))
        for (number, value) in acknowledged {
            let stored = try accounts.find(primaryKey: .int(Int64(number)))?.int(accounts.column(named: "value")!) ?? 0
            XCTAssertGreaterThanOrEqual(stored, value, "process \(number) lost an acknowledged commit")
        }
        reading.end()
        XCTAssertEqual(try store.status()?.versions.count, 1, "nobody is left who could hold an old version")
        try store.close()
        let report = try Verifier.verify(ImmutableFile(path: path, key: options.encryptionKey))
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(report.findings.prefix(4).map(\.description))")
    }

    private var longSeconds: Double? { ProcessInfo.processInfo.environment["KILL_STORM_SECONDS"].flatMap { Double($0) } }

    func testKilledProcessesLeaveAConsistentFileAndNobodyWaiting() throws {
        try storm(processes: longSeconds == nil ? 6 : 20, seconds: longSeconds ?? 6, seed: longSeconds == nil ? 4711 : UInt64.random(in: 0...UInt64.max))
    }

    func testTheSameWithAnEncryptedFile() throws {
        try storm(processes: longSeconds == nil ? 4 : 20, seconds: longSeconds ?? 4, seed: longSeconds == nil ? 4712 : UInt64.random(in: 0...UInt64.max), keyByte: 9)
    }
}
