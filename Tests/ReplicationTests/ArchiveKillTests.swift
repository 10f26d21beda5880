import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// An archiver killed before any of its system calls: while it puts steps and images, merges, writes the index, removes what is
/// promised no longer, and takes over from the one that was killed before.
final class ArchiveKillTests: ArchiveTestCase {
    #if DEBUG
    /// `ARCHIVE_KILL_STEP=1 swift test --filter ArchiveKillTests` kills at every call (some minutes).
    private static let step = ProcessInfo.processInfo.environment["ARCHIVE_KILL_STEP"].flatMap { Int($0) } ?? 29

    func testAnArchiverKilledAtAnyCallHasLostNothingAndTheNextOneGoesOn() throws {
        var digests: [UInt64: String] = [:]
        var call = 1, kills = 0, longest = 0
        var hasFinished = false
        while !hasFinished {
            let child = try TestProcess(["archive", source, folder, "18", "\(call)", "\(call)"] + usualKeyArguments)
            var acknowledged: UInt64 = 0
            while let line = child.line() {
                let words = line.split(separator: " ")
                switch words.first {
                case "committed": digests[try XCTUnwrap(UInt64(words[1]))] = String(words[2])
                case "archived": acknowledged = try XCTUnwrap(digests.keys.max())
                case "done": hasFinished = true
                default: XCTFail("killed at call \(call): \(line)")
                }
            }
            let code = child.waitUntilGone()
            XCTAssertEqual(code, hasFinished ? 0 : -SIGKILL, "killed at call \(call)")
            if code != 0 && code != -SIGKILL { return }
            if !hasFinished { kills += 1 }
            longest = call
            try check(digests, acknowledged, "killed at call \(call)")
            call += Self.step
        }
        print("\(kills) kills, the last before call \(longest - Self.step); \(digests.count) versions")
        XCTAssertGreaterThan(kills, 4)
        let reader = try ArchiveReader(place(creates: false), key: key)
        let history = try reader.history()
        XCTAssertLessThan(history.count, digests.count, "something was removed")
        for entry in history { try assertIs(reader, entry, digests, "at the end") }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder + "/tmp"), [], "nothing is left behind")
    }

    private func check(_ digests: [UInt64: String], _ acknowledged: UInt64, _ text: String) throws {
        let reader: ArchiveReader
        do { reader = try ArchiveReader(place(creates: false), key: key) } catch ArchiveError.notAnArchive where acknowledged == 0
        {
            return
        }
        let history = try reader.history()
        guard let newest = history.last else { return XCTAssertEqual(acknowledged, 0, text) }
        XCTAssertGreaterThanOrEqual(newest.snapshot.version, acknowledged, text)
        try assertIs(reader, newest, digests, text)
        if let oldest = history.first { try assertIs(reader, oldest, digests, text) }
        // What was promised: the newest eight, of those that were archived at all. Numbers tell that only up to where it began
        // anew.
        XCTAssertGreaterThanOrEqual(history.count, min(8, reader.manifest.count), text)
        if let middle = history.dropFirst(history.count / 2).first { try assertIs(reader, middle, digests, text) }
    }

    private func assertIs(_ reader: ArchiveReader, _ entry: ArchiveEntry, _ digests: [UInt64: String], _ text: String) throws {
        let path = scratch.file("restored-\(entry.sequence).realm")
        defer { try? FileManager.default.removeItem(atPath: path) }
        var options = Archive.RestoreOptions()
        options.verifies = false
        options.key = key
        _ = try Archive.build(reader, entry, at: path, options, durably: false)
        let hash = SHA256Hash()
        try export(path).withUnsafeBytes { hash.update($0) }
        XCTAssertEqual("\(hash.finish())", digests[entry.snapshot.version], "\(text): version \(entry.snapshot.version)")
    }
    #endif
}
