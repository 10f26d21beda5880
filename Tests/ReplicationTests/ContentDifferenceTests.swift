import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// Differences by content, where no version is held.
final class ContentDifferenceTests: ArchiveTestCase {
    /// What is compared are blocks of content, whatever the files that hold it.
    override var key: EncryptionKey? { nil }

    private func hashes(_ file: ImmutableFile) throws -> (BlockHashes, Snapshot, FreeExtents) {
        let top = try file.memory.node(file.layout.topRef)
        let snapshot = Snapshot(
            version: try file.group.version(), topRef: file.layout.topRef, logicalSize: try top.tagged(TopSlot.logicalSize))
        let extents = try FreeExtents(memory: file.memory, snapshot: snapshot)
        return (try BlockHashes(memory: file.memory, snapshot: snapshot, extents: extents), snapshot, extents)
    }

    func testAnOldFileAndTheDifferenceMakeTheNewOne() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 101)
        for _ in 0..<20 { try change(store, &random, adds: 60, textLength: 3000, deletes: 2) }
        let old = scratch.file("old.realm")
        var shares: [Double] = []
        for round in 0..<6 {
            try? FileManager.default.removeItem(atPath: old)
            try FileManager.default.copyItem(atPath: source, toPath: old)
            for _ in 0..<round * round + 1 { try commit(store, &random, textLength: 200) }
            let before = try ImmutableFile(path: old), now = try ImmutableFile(path: source)
            let (older, _, _) = try hashes(before)
            XCTAssertEqual(BlockHashes(encoded: older.encoded()), older)
            let (fresh, snapshot, extents) = try hashes(now)
            let (ranges, found) = try ContentDifference.ranges(
                memory: now.memory, snapshot: snapshot, extents: extents, against: older)
            XCTAssertEqual(found, fresh)
            shares.append(Double(RangeSet.byteCount(ranges)) / Double(extents.usedByteCount))
            let made = scratch.file("made-\(round).realm")
            let content: (Range<Int>) throws -> UnsafeRawBufferPointer = {
                UnsafeRawBufferPointer(start: try now.memory.bytes(at: $0.lowerBound, length: $0.count), count: $0.count)
            }
            try ContentDifference.makeFile(made, from: old, snapshot: snapshot, ranges: ranges, checking: fresh, bytes: content)
            XCTAssertEqual(try export(made), exports[snapshot.version], "round \(round)")
            try assertSound(made)
            // Where nothing of the old file was needed, any old file will do.
            if ranges == extents.usedRanges() { continue }
            // Another old file than the one that was hashed is noticed, and nothing is left.
            let other = scratch.file("other.realm")
            try Data(repeating: 0, count: try Data(contentsOf: URL(fileURLWithPath: old)).count).write(
                to: URL(fileURLWithPath: other))
            XCTAssertThrowsError(
                try ContentDifference.makeFile(
                    scratch.file("none"), from: other, snapshot: snapshot, ranges: ranges, checking: fresh, bytes: content))
            XCTAssertFalse(FileManager.default.fileExists(atPath: scratch.file("none")))
        }
        print("seed 101, shares of the file that differ: \(shares)")
        // One commit leaves much as it was; how much, is a matter of where new nodes find room.
        XCTAssertLessThan(try XCTUnwrap(shares.first), 0.95)
        try store.close()
    }

    func testTrackedHashesAreThoseOfTheVersionAfterEveryStep() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 102)
        for _ in 0..<5 { try change(store, &random, adds: 60, textLength: 3000, deletes: 2) }
        var tracked: TrackedHashes?
        var before: FreeExtents?
        for round in 0..<60 {
            let reading = try store.beginRead()
            let extents = try FreeExtents(memory: reading.memory, snapshot: reading.snapshot)
            let fresh = try BlockHashes(memory: reading.memory, snapshot: reading.snapshot, extents: extents)
            if let before {
                tracked?.note(before.difference(to: extents), freed: extents.difference(to: before))
            } else {
                tracked = TrackedHashes(fresh)
            }
            if round % 3 == 0 {
                try tracked?.refresh(memory: reading.memory, snapshot: reading.snapshot, extents: extents)
                XCTAssertEqual(tracked?.hashes, fresh, "round \(round)")
            }
            before = extents
            // The version is held until the next one is there.
            try change(store, &random, adds: 20, textLength: 4000, deletes: 30)
            reading.end()
        }
        try store.close()
    }

    func testEncodedHashesThatAreDamagedAreRefused() throws {
        let hashes = BlockHashes(snapshot: Snapshot(version: 3, topRef: 24, logicalSize: 200_000), hashes: [1, 2, 3, 4])
        let bytes = hashes.encoded()
        XCTAssertEqual(BlockHashes(encoded: bytes), hashes)
        for i in bytes.indices {
            var bad = bytes
            bad[i] ^= 0x40
            XCTAssertNil(BlockHashes(encoded: bad), "byte \(i)")
        }
        for count in 0..<bytes.count { XCTAssertNil(BlockHashes(encoded: Array(bytes[..<count])), "\(count) bytes") }
    }
}
