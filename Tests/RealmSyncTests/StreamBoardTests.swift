@testable import realm_sync
import XCTest

/// What a stream is known to be, and since when, without any stream.
final class StreamBoardTests: XCTestCase {
    private static let second: Int64 = 1_000_000_000

    private func report(_ source: UInt64, _ version: UInt64, waitsFor: String? = nil) -> StreamJob.Report {
        var report = StreamJob.Report()
        (report.sourceVersion, report.version, report.waitsFor) = (source, version, waitsFor)
        return report
    }

    func testTheLagBeginsWhenBothWereLastEqualNotWhenSomebodyLastAsked() {
        let begin = 1000 * Self.second
        var board = StreamBoard()
        board.answered = begin
        XCTAssertEqual(board.take(report(5, 5), at: begin).event, .success)
        board.park()
        XCTAssertEqual(board.lagSeconds(at: begin + 100 * Self.second), 0, "asleep and equal")
        // A commit wakes it after a hundred seconds, and it is at work for one.
        board.wake(at: begin + 100 * Self.second)
        _ = board.take(report(6, 5), at: begin + 100 * Self.second)
        XCTAssertEqual(board.lagSeconds(at: begin + 101 * Self.second), 1, accuracy: 0.001)
        XCTAssertEqual(board.lagVersions, 1)
        _ = board.take(report(6, 6), at: begin + 102 * Self.second)
        XCTAssertEqual(board.lagSeconds(at: begin + 102 * Self.second), 0)
    }

    func testASourceThatIsCommittedToAllTheTimeIsNotSaidToBeFarAhead() {
        let begin = 1000 * Self.second
        var board = StreamBoard()
        board.isFailureTold = true
        for i in 0..<100 as Range<Int64> {
            var report = report(UInt64(100 + i), UInt64(99 + i))
            report.secondsBehind = 0.05
            let (event, began) = board.take(report, at: begin + i * Self.second)
            XCTAssertEqual(event, i == 0 ? .recovery : .success)
            XCTAssertEqual(began, i == 0)
            XCTAssertEqual(board.phase, .following)
            XCTAssertEqual(board.lagSeconds(at: begin + i * Self.second), 0.05, accuracy: 0.001)
        }
        // It is behind now, though something comes through.
        var report = report(500, 210)
        report.secondsBehind = 20
        XCTAssertNil(board.take(report, at: begin + 200 * Self.second).event)
        XCTAssertEqual(board.lagSeconds(at: begin + 200 * Self.second), 20, accuracy: 0.001)
    }

    func testSleepProvesNothingWhereItBeganBehind() {
        let begin = 1000 * Self.second
        var board = StreamBoard()
        _ = board.take(report(5, 5), at: begin)
        _ = board.take(report(6, 5, waitsFor: "room"), at: begin + Self.second)
        board.park()
        board.wake(at: begin + 50 * Self.second)
        XCTAssertEqual(board.lagSeconds(at: begin + 50 * Self.second), 50, accuracy: 0.001)
    }

    func testWhoHangsIsSilentAndWhoSleepsIsNot() {
        let begin = 1000 * Self.second
        var board = StreamBoard()
        _ = board.take(report(5, 5), at: begin)
        XCTAssertFalse(board.isSilent(for: 5 * Self.second, at: begin + 4 * Self.second))
        XCTAssertTrue(board.isSilent(for: 5 * Self.second, at: begin + 6 * Self.second))
        XCTAssertEqual(board.lagSeconds(at: begin + 6 * Self.second), 0, "nobody has asked")
        board.asked = begin + 6 * Self.second
        XCTAssertFalse(board.isSilent(for: 5 * Self.second, at: begin + 20 * Self.second), "it was asked already")
        XCTAssertEqual(board.lagSeconds(at: begin + 20 * Self.second), 20, accuracy: 0.001)
        _ = board.take(report(5, 5), at: begin + 21 * Self.second)
        board.park()
        XCTAssertFalse(board.isSilent(for: 5 * Self.second, at: begin + 90 * Self.second))
        XCTAssertEqual(board.lagSeconds(at: begin + 90 * Self.second), 0)
    }
}
