import Foundation
import TestSupport
import XCTest

/// Misuse stops the process, so each case is run by a process of its own: `Tests/TestParticipant/Traps` has the cases by name.
///
/// - Parameter parts: texts that the message on standard error must have.
func assertTraps(
    _ name: String, _ parts: String..., environment: [String: String] = [:], file: StaticString = #filePath, line: UInt = #line
) {
    do {
        // Backtraces take seconds and say nothing here.
        let environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { first, _ in first }
        let process = try ChildProcess(product: "TestParticipant", ["trap", name], environment: environment)
        let directory = process.readLine()
        defer { if let directory, directory.hasPrefix("/") { try? FileManager.default.removeItem(atPath: directory) } }
        let code = process.waitForEnd()
        let isTrap = code == -SIGILL || code == -SIGTRAP || code == -SIGABRT
        XCTAssertTrue(
            isTrap, "'\(name)' ended with \(code.map(String.init) ?? "nothing") instead of a trap: \(process.errors)", file: file,
            line: line)
        for part in parts {
            XCTAssertTrue(process.errors.contains(part), "'\(name)': no '\(part)' in: \(process.errors)", file: file, line: line)
        }
    } catch {
        XCTFail("\(error)", file: file, line: line)
    }
}

final class TrapTests: XCTestCase {
    /// The helper itself: a process that does not trap is no trap.
    func testACaseThatDoesNotTrapIsTold() throws {
        let process = try ChildProcess(product: "TestParticipant", ["trap", "no such case"])
        XCTAssertEqual(process.waitForEnd(), 64)
    }

    func testF284_wrongThreadTraps() {
        assertTraps("wrong thread: realm", "Realm accessed from incorrect thread")
        assertTraps("wrong thread: object", "Realm accessed from incorrect thread")
    }

    /// With `FORKED_CHILDREN` in the environment only, see `SessionParticipantTests`.
    func testAForkedChildIsToldToExecOrToForkBefore() throws {
        try XCTSkipIf(ProcessInfo.processInfo.environment["FORKED_CHILDREN"] == nil, "set FORKED_CHILDREN to try it")
        for use in ["object", "write", "opens"] {
            assertTraps("forked child: \(use)", "made by fork()", "Fork before the first file")
        }
    }

    func testTransactionsDoNotNestAndDoNotEndTwice() {
        assertTraps("nested write", "already in a write transaction")
        assertTraps("commit without transaction", "Can't commit a non-existing write transaction")
        assertTraps("cancel without transaction", "Can't cancel a non-existing write transaction")
        assertTraps("write outside of a transaction", "Cannot modify managed objects outside of a write transaction")
    }
}
