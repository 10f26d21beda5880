@testable import SharedStore
import TestSupport
import XCTest

final class HistoryTests: XCTestCase {
    private func changesets(_ reader: HistoryReader, since version: UInt64) throws -> [[UInt8]] {
        var all: [[UInt8]] = []
        try reader.forEachChangeset(since: version) { all.append(Array($0)) }
        return all
    }

    func testEveryVersionCarriesTheChangesetsSinceTheOldestLiveOne() throws {
        let scratch = try ScratchArena()
        let group = try GroupEditor(arena: scratch.arena, topRef: 0)
        var model: [[UInt8]] = []
        var random = SplitMix(seed: 3)
        var base: UInt64 = 1
        for version in 2...1500 as ClosedRange<UInt64> {
            let n = [0, 3, 70, 200][Int(random.next() % 4)]
            model.append((0..<n).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            let oldestLive = random.next() % 300 == 0 ? version - 1 - random.next() % min(10, version - 1) : base
            try HistoryEditor.append(group, model.last!, newVersion: version, oldestLive: oldestLive)
            base = max(base, oldestLive)
            let reader = try HistoryReader(memory: scratch.memory, topRef: try group.finish(), version: version)
            XCTAssertEqual(reader.base, base)
            if version % 97 == 0 {
                XCTAssertEqual(try changesets(reader, since: base), Array(model[Int(base - 1)...]))
                XCTAssertEqual(try changesets(reader, since: version), [])
                if base > 1 { XCTAssertThrowsError(try changesets(reader, since: base - 1)) }
            }
        }
    }

    func testAChangesetLargerThanOneBlobComesBackInOnePiece() throws {
        let scratch = try ScratchArena()
        let group = try GroupEditor(arena: scratch.arena, topRef: 0)
        let large = [UInt8](repeating: 7, count: 40_000_000)
        try HistoryEditor.append(group, large, newVersion: 2, oldestLive: 1)
        let reader = try HistoryReader(memory: scratch.memory, topRef: try group.finish(), version: 2)
        XCTAssertTrue(try changesets(reader, since: 1) == [large])
    }
}
