@testable import Replication
import XCTest

/// What an archiver keeps of what it has put, for merging.
final class RecentObjectsTests: XCTestCase {
    func testOfALongLifeOnlyWhatIsStillToBeMergedIsKept() throws {
        var recent = RecentObjects(byteCountMax: 1 << 20)
        var most = 0
        for sequence in 1...UInt64(5000) {
            recent.remember(ArchiveNames.step(0, sequence), [UInt8](repeating: 0, count: 10))
            for level in 1...ArchiveNames.levelMax where sequence % ArchiveNames.span(level) == 0 {
                let span = ArchiveNames.span(level), part = ArchiveNames.span(level - 1)
                let names = (1...4).map { ArchiveNames.step(level - 1, sequence - span + $0 * part) }
                for name in names { XCTAssertNotNil(recent[name], "\(name) is wanted at \(sequence)") }
                recent.forget(names)
                recent.remember(ArchiveNames.step(level, sequence), [UInt8](repeating: 1, count: 10))
            }
            most = max(most, recent.count)
            XCTAssertEqual(recent.byteCount, recent.count * 10)
        }
        XCTAssertLessThanOrEqual(most, 3 * 7 + 1, "three of each level that 5,000 steps have, and the one that is merged next")
    }

    func testTheOldestGoWhereTheyAreTooLarge() {
        var recent = RecentObjects(byteCountMax: 100)
        for i in 0..<10 { recent.remember("\(i)", [UInt8](repeating: 0, count: 30)) }
        XCTAssertEqual(recent.count, 3)
        XCTAssertEqual(recent.byteCount, 90)
        XCTAssertNil(recent["6"])
        XCTAssertNotNil(recent["7"])
        recent.remember("8", [1])
        XCTAssertEqual(recent["8"], [1])
        XCTAssertEqual(recent.byteCount, 61)
        recent.remember("large", [UInt8](repeating: 0, count: 200))
        XCTAssertEqual(recent.count, 0)
        XCTAssertEqual(recent.byteCount, 0)
    }
}
