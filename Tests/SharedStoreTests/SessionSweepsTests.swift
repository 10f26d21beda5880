import XCTest

@testable import SharedStore

final class SessionSweepsTests: XCTestCase {
    func testOfManyParticipantsOfOneSessionOneLooksForTheDeadInEachInterval() {
        let sweeps = SessionSweeps()
        func due(_ inode: UInt64, _ now: Int64) -> Int {
            (0..<50).count { _ in sweeps.isDue(device: 1, inode: inode, every: 200, at: now) }
        }
        XCTAssertEqual([due(7, 1000), due(8, 1000), due(7, 1199), due(7, 1200), due(8, 1300)], [1, 1, 0, 1, 1])
        // However many sessions there are, each is looked at when it is due.
        var looks = 0
        for inode in 100..<UInt64(100 + 3 * SessionSweeps.countMax)
        where sweeps.isDue(device: 2, inode: inode, every: 200, at: 2000) { looks += 1 }
        XCTAssertEqual(looks, 3 * SessionSweeps.countMax)
        XCTAssertEqual(due(7, 3000), 1)
    }
}
