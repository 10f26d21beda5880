@testable import Replication
import SharedStore
import TestSupport
import XCTest

final class SegmentTests: XCTestCase {
    private func sample(_ random: inout SplitMix, rangeCount: Int) -> Segment {
        var ranges: [Range<Int>] = []
        var at = 24
        for _ in 0..<rangeCount {
            at += 8 * (1 + Int(random.next() % 50))
            let n = 8 * (1 + Int(random.next() % 300))
            ranges.append(at..<at + n)
            at += n
        }
        var head = SegmentHead()
        head.lineage = (random.next(), random.next())
        head.sequence = 17
        head.parent = Snapshot(version: 40, topRef: 64, logicalSize: 4096)
        head.this = Snapshot(version: 43, topRef: 24, logicalSize: (at + 4095) & ~4095)
        head.historyBase = 39
        let total = ranges.reduce(0) { $0 + $1.count }
        return Segment(head: head, ranges: ranges, payload: (0..<total).map { _ in UInt8(truncatingIfNeeded: random.next() % 7) })
    }

    func testSegmentsComeBackAsTheyWentPlainCompressedAndWithAPrefix() throws {
        var random = SplitMix(seed: 1)
        let compressor = Compressor()
        for n in [0, 1, 2, 50, 400] {
            let segment = sample(&random, rangeCount: n)
            for (c, prefix) in [(nil, nil), (compressor, nil), (compressor, segment.payload.map { $0 &+ 0 })]
                as [(Compressor?, [UInt8]?)]
            {
                let bytes = try segment.encoded(compressor: c, prefix: prefix.map { (.payloadPrefix, $0) })
                let back = try bytes.withUnsafeBytes { try Segment(encoded: $0, compressor: compressor) { _ in prefix ?? [] } }
                XCTAssertEqual(back.ranges, segment.ranges)
                XCTAssertEqual(back.payload, segment.payload)
                XCTAssertEqual(back.head.chain, segment.head.chain)
                XCTAssertEqual(back.head.this, segment.head.this)
                if prefix != nil && n > 2 { XCTAssertLessThan(bytes.count, segment.payload.count / 20) }
            }
        }
    }

    func testEveryFlippedByteAndEveryTruncationIsRefused() throws {
        var random = SplitMix(seed: 2)
        let compressor = Compressor()
        let bytes = try sample(&random, rangeCount: 5).encoded(compressor: compressor)
        for i in bytes.indices {
            var bad = bytes
            bad[i] ^= UInt8(1 + random.next() % 255)
            XCTAssertThrowsError(try bad.withUnsafeBytes { try Segment(encoded: $0, compressor: compressor) }, "byte \(i)")
        }
        for n in 0..<bytes.count {
            XCTAssertThrowsError(
                try bytes[..<n].withUnsafeBytes { try Segment(encoded: $0, compressor: compressor) }, "\(n) bytes")
        }
    }

    func testLengthsThatCannotBeAreRefusedBeforeAnythingIsAllocated() throws {
        var random = SplitMix(seed: 3)
        let good = sample(&random, rangeCount: 3).head
        let edits: [(inout SegmentHead) -> Void] = [
            { $0.plainByteCount = 1 << 55 }, { $0.rangeCount = UInt32.max }, { $0.rangeTableByteCount = 1 << 50 },
            {
                $0.storedByteCount = 1 << 40; $0.flags.insert(.compressed)
            }, { $0.this.topRef = 25 }, { $0.this.logicalSize = 8 },
            { $0.this.version = 40 },
        ]
        for (i, edit) in edits.enumerated() {
            var head = good
            edit(&head)
            XCTAssertThrowsError(try head.bytes().withUnsafeBytes { try SegmentHead($0) }, "edit \(i)")
        }
    }

    /// The merge of sorted lists against a byte map.
    func testDifferenceOfFreeListsIsWhatAByteMapGives() {
        var random = SplitMix(seed: 4)
        for _ in 0..<3000 {
            func extents() -> (FreeExtents, [Bool]) {
                let words = 4 + Int(random.next() % 40)
                var map = (0..<words).map { $0 >= 3 && random.next() % 3 == 0 }
                var positions: [Int] = [], lengths: [Int] = []
                var i = 3
                while i < words {
                    if map[i] {
                        var j = i + 1
                        while j < words && map[j] && random.next() % 3 != 0 { j += 1 }
                        positions.append(i * 8)
                        lengths.append((j - i) * 8)
                        i = j
                    } else {
                        i += 1
                    }
                }
                for k in 0..<3 { map[k] = false }
                return (FreeExtents(positions: positions, lengths: lengths, logicalSize: words * 8), map)
            }
            let (older, olderFree) = extents(), (newer, newerFree) = extents()
            let difference = older.difference(to: newer)
            var expected = Set<Int>()
            for w in 3..<newerFree.count where !newerFree[w] && (w >= olderFree.count || olderFree[w]) { expected.insert(w) }
            XCTAssertEqual(Set(difference.flatMap { r in r.filter { $0 % 8 == 0 }.map { $0 / 8 } }), expected)
            for (a, b) in zip(difference, difference.dropFirst()) { XCTAssertLessThan(a.upperBound, b.lowerBound) }
            XCTAssertTrue(older.contains(difference))
            let any = newer.usedRanges()
            XCTAssertEqual(
                older.contains(any), Set(any.flatMap { $0.map { $0 / 8 } }).allSatisfy { $0 >= olderFree.count || olderFree[$0] })
        }
    }
}
