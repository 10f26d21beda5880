import Glibc
import SystemCalls
import TestSupport
import XCTest

@testable import SharedStore

/// A lock file in which anything may stand: never a crash, never a hang, and where nobody uses it, always a fresh session.
///
/// Checked are the file's first 256 bytes (fields and mutexes) and, more rarely, the rest (condition variables, version list).
/// The opener is a process of its own, so that a crash is seen for what it is.
final class SessionFuzzTests: XCTestCase {
    private static let limitSeconds = 1.0

    private func damage(_ path: String, _ random: inout SplitMix) throws {
        let descriptor = try SystemCalls.open(path, O_RDWR)
        defer { SystemCalls.close(descriptor) }
        let size = try SystemCalls.status(descriptor, path: path).size
        for _ in 0..<(1 + random.next() % 6) {
            let offset = Int(random.next() % 8 == 0 ? random.next() % UInt64(max(size, 256)) : random.next() % 256)
            let value: UInt64
            switch random.next() % 4 {
            case 0: value = 0
            case 1: value = .max
            case 2: value = 1 << (random.next() % 64)
            default: value = random.next()
            }
            let width = [1, 2, 4, 8][Int(random.next() % 4)]
            try withUnsafeBytes(of: value) {
                try SystemCalls.write(descriptor, UnsafeRawBufferPointer(rebasing: $0[..<width]), at: offset / width * width)
            }
        }
    }

    func testDamageWithoutAHolderGivesAFreshSession() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("a.realm")
        try Participant.open(path).close()
        var random = SplitMix(seed: 11)
        print("seed 11")
        for round in 0..<200 {
            try damage(path + ".lock", &random)
            let participant = try Participant.open(path)
            XCTAssertTrue(participant.attachedAs.isInitiator, "round \(round)")
            XCTAssertEqual(participant.lockFile.participantCount, 1)
            participant.release(try participant.acquireNewest(.live))
            try participant.close()
        }
    }

    func testDamageWithAHolderEndsInAnErrorOrInWorkButNeverInACrashOrAHang() throws {
        var random = SplitMix(seed: 12)
        print("seed 12")
        for round in 0..<30 {
            let scratch = ScratchDirectory("fuzz")
            let path = scratch.file("a.realm")
            let holder = try TestProcess(), opener = try TestProcess()
            XCTAssert(holder.ask("open \(path) limit=\(Self.limitSeconds)").hasPrefix("ok"))
            holder.ask("live")
            try damage(path + ".lock", &random)
            for command in ["open \(path) limit=\(Self.limitSeconds)", "live", "publish", "status", "release", "close force"] {
                XCTAssertNotEqual(opener.ask(command), "gone", "round \(round): opener, \(command)")
            }
            for command in ["newest", "frozen", "publish", "release", "close force"] {
                XCTAssertNotEqual(holder.ask(command), "gone", "round \(round): holder, \(command)")
            }
            XCTAssertEqual(opener.finish(), 0, "round \(round)")
            XCTAssertEqual(holder.finish(), 0, "round \(round)")
        }
    }
}
