import Glibc
@testable import Replication
import SystemCalls
import XCTest

/// The rhythm of a mirror, by a clock that is only counted.
final class GatheringTests: XCTestCase {
    private static let millisecond: Int64 = 1_000_000

    /// The thread belongs to all tests.
    override func tearDown() { SystemCalls.setWaitsForItsTurn(false) }

    /// Commits so many nanoseconds apart, and a mirror that looks every tenth of a millisecond unless it waits.
    ///
    /// - Returns: how many steps it makes, and how long after a commit it was carried over at the latest.
    private func run(_ gathering: inout Gathering, commits: Int, apart: Int64, from start: Int64 = 0) -> (steps: Int, lag: Int64)
    {
        var now = start, carried = 0, steps = 0, lag: Int64 = 0
        while carried < commits {
            // The first commit is at `start`.
            let made = min(commits, Int((now - start) / apart) + 1)
            if made > carried {
                let wait = gathering.wait(at: now)
                if wait == 0 {
                    gathering.stepBegins(versions: UInt64(made - carried), at: now)
                    gathering.stepIsDone(at: now)
                    lag = max(lag, now - start - Int64(carried) * apart)
                    carried = made
                    steps += 1
                } else {
                    now += Int64(wait) * Self.millisecond
                    continue
                }
            }
            now += Self.millisecond / 10
        }
        return (steps, lag)
    }

    func testLoneCommitsAreCarriedOverAtOnce() {
        var gathering = Gathering(limit: .milliseconds(100))
        let (steps, lag) = run(&gathering, commits: 200, apart: 15 * Self.millisecond)
        XCTAssertEqual(steps, 200)
        XCTAssertLessThanOrEqual(lag, Self.millisecond / 10)
    }

    func testAFewCommitsThatFollowEachOtherAreCarriedOverAtOnce() {
        var gathering = Gathering(limit: .milliseconds(100))
        for burst in 0..<20 as Range<Int64> {
            let (steps, lag) = run(
                &gathering, commits: 4, apart: 2 * Self.millisecond, from: burst * 500 * Self.millisecond)
            XCTAssertEqual(steps, 4)
            XCTAssertLessThanOrEqual(lag, Self.millisecond / 10)
        }
    }

    func testCommitsThatFollowEachOtherGather() {
        for apart in [Self.millisecond, Self.millisecond / 10, Self.millisecond / 100] {
            var gathering = Gathering(limit: .milliseconds(100))
            let commits = Int(20_000 * Self.millisecond / apart)
            let (steps, lag) = run(&gathering, commits: commits, apart: apart)
            XCTAssertLessThan(steps, commits / 80, "commits \(apart) ns apart")
            XCTAssertLessThan(lag, 102 * Self.millisecond)
        }
    }

    func testALongStepIsFollowedByALongPause() {
        var gathering = Gathering(limit: .milliseconds(100))
        _ = run(&gathering, commits: 20_000, apart: Self.millisecond / 10)
        let now = 2100 * Self.millisecond
        gathering.stepBegins(versions: 1000, at: now)
        gathering.stepIsDone(at: now + 4 * Self.millisecond)
        XCTAssertGreaterThan(gathering.wait(at: now + 60 * Self.millisecond), 0)
        XCTAssertEqual(gathering.wait(at: now + 70 * Self.millisecond), 0)
    }

    func testNobodyWaitsLongerThanACommitInTheRowIsWorth() {
        var gathering = Gathering(limit: .seconds(10))
        let (_, lag) = run(&gathering, commits: 100, apart: Self.millisecond)
        XCTAssertLessThan(lag, 100 * Gathering.growthNanoseconds + 2 * Self.millisecond)
    }

    func testTheThreadIsAnOrdinaryOneAgainAfterwards() {
        let before = sched_getscheduler(0)
        var gathering = Gathering(limit: .milliseconds(100))
        _ = run(&gathering, commits: 2000, apart: Self.millisecond)
        if before == 0 { XCTAssertEqual(sched_getscheduler(0), 3) }
        gathering.yield(false)
        XCTAssertEqual(sched_getscheduler(0), before)
    }

    func testWithoutALimitNothingIsGathered() {
        var gathering = Gathering(limit: .zero)
        XCTAssertEqual(run(&gathering, commits: 1000, apart: Self.millisecond).steps, 1000)
        // Whatever a peer says its version is.
        for i in 1...3 as ClosedRange<Int64> {
            gathering.stepBegins(versions: .max, at: i)
            gathering.stepIsDone(at: i)
            XCTAssertEqual(gathering.wait(at: i), 0)
        }
    }
}

final class WaitingTests: XCTestCase {
    /// Somebody who asks for the status again and again does not keep a mirror from trying again what has failed.
    func testQuestionsDoNotMakeAWaitLonger() {
        var answers = 0, shortest = Int32.max
        let request = MirrorFollower.waitForRequest(
            { _, milliseconds in
                shortest = min(shortest, milliseconds)
                usleep(2000)
                return milliseconds == 0 ? nil : .status
            }, [], 30, onStatus: { answers += 1 })
        XCTAssertNil(request)
        XCTAssertEqual(shortest, 0)
        XCTAssertGreaterThan(answers, 0)
    }
}
