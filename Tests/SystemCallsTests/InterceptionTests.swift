import Foundation
import Synchronization
import SystemCalls
import TestSupport
import XCTest

/// What lets other tests watch system calls and make them fail.
final class InterceptionTests: XCTestCase {
    override func tearDown() { SystemCallInterception.hook = nil }

    func testAHookIsAskedBeforeACallAndMakesItFail() throws {
        let scratch = ScratchDirectory()
        var names: [String] = []
        SystemCallInterception.hook = { call in
            names.append(call.name)
            return call.path.hasSuffix("refused") ? ENOSPC : nil
        }
        SystemCalls.close(try SystemCalls.open(scratch.file("made"), O_RDWR | O_CREAT))
        XCTAssertThrowsError(try SystemCalls.open(scratch.file("refused"), O_RDWR | O_CREAT)) {
            XCTAssertEqual(($0 as? SystemError)?.code, ENOSPC)
        }
        SystemCallInterception.hook = nil
        XCTAssertThrowsError(try SystemCalls.open(scratch.file("refused"), O_RDWR)) {
            XCTAssertEqual(($0 as? SystemError)?.code, ENOENT)
        }
        XCTAssertEqual(names, ["open", "open"])
    }

    /// A session has threads of its own, which go on making calls while a test sets its hook.
    func testAHookIsSetAndTakenAwayWhileOtherThreadsMakeCalls() throws {
        final class Count: Sendable {
            let asked = Atomic(0), missing = Atomic(0), refused = Atomic(0), others = Atomic(0)
        }
        let scratch = ScratchDirectory(), path = scratch.file("missing")
        let count = Count(), threads = 3, calls = 1000
        let group = DispatchGroup()
        for _ in 0..<threads {
            group.enter()
            Thread.detachNewThread {
                for _ in 0..<calls {
                    do { SystemCalls.close(try SystemCalls.open(path, O_RDONLY)) } catch {
                        switch (error as? SystemError)?.code {
                        case ENOENT: count.missing.add(1, ordering: .relaxed)
                        case ENOSPC: count.refused.add(1, ordering: .relaxed)
                        default: count.others.add(1, ordering: .relaxed)
                        }
                    }
                }
                group.leave()
            }
        }
        repeat {
            // An object of its own for each hook: one that is called after its end would be noticed.
            let codes = [ENOSPC]
            SystemCallInterception.hook = { call in
                if call.path != path { return nil }
                count.asked.add(1, ordering: .relaxed)
                return codes[0]
            }
            SystemCallInterception.hook = nil
        } while group.wait(timeout: .now()) == .timedOut
        XCTAssertEqual(count.missing.load(ordering: .relaxed) + count.refused.load(ordering: .relaxed), threads * calls)
        XCTAssertEqual(count.refused.load(ordering: .relaxed), count.asked.load(ordering: .relaxed))
        XCTAssertEqual(count.others.load(ordering: .relaxed), 0)
    }
}
