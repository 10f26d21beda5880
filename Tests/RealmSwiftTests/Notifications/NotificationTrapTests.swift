import XCTest

/// Misuse of notifications stops the process.
final class NotificationTrapTests: XCTestCase {
    func testF280_observingNeedsARunLoop() {
        assertTraps("observe: no run loop", "Can only add notification blocks from within runloops")
    }

    func testF282_nothingFrozenOrUnmanagedIsObserved() {
        assertTraps("observe: unmanaged object", "managed by a Realm")
        assertTraps("observe: unmanaged list", "managed by a Realm")
        assertTraps("observe: frozen results", "Frozen Realms do not change")
        assertTraps("observe: frozen realm", "Frozen Realms do not change")
    }

    func testObservingAfterAChangeInATransactionTraps() {
        assertTraps("observe: after a change in a transaction", "Cannot create asynchronous query after making changes")
    }

    func testF261_observersOfOtherSessionsAreNotSkipped() {
        assertTraps(
            "observe: a token of another session is skipped", "only notifications for the Realm being modified can be skipped")
    }

    func testKeyPathsThatLeadNowhereTrap() {
        assertTraps("observe: unknown key path", "is not a valid property in Dog")
        assertTraps("observe: key path through a value", "is no link")
    }
}
