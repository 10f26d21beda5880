import Synchronization

/// Lets other threads and processes tell a live session that there is a newer version.
///
/// It holds the session weakly, and looks for it at the session's own place only: the last reference to a session must not go
/// anywhere else.
final class SessionWaker: @unchecked Sendable {
    // Sendable: the session is looked for at its place only; the rest is atomic or never changes.
    let scheduler: Scheduler
    private let address: SessionAddress
    private var session: Session? { address.session }
    private let isScheduled = Atomic(false)

    init(_ session: Session, _ scheduler: Scheduler) {
        address = session.address
        self.scheduler = scheduler
    }

    /// Has `session.hearOfCommit` called at the session's place soon; once, however often it is asked until then.
    func wake() {
        if isScheduled.exchange(true, ordering: .acquiringAndReleasing) { return }
        scheduler.schedule { [self] in
            isScheduled.store(false, ordering: .releasing)
            session?.hearOfCommit()
        }
    }

    /// As `wake`, where the newest version is not the session's. At the session's place only.
    func wakeIfBehind() {
        guard let session, session.autorefresh, session.writer == nil, let version = session.currentReader?.version else {
            return
        }
        if let newest = try? session.origin.newestVersion(), newest > version { wake() }
    }

    /// The thread of the session ends, and calls this as its last act.
    func placeEnds() {
        let left = scheduler.close()
        session?.placeEnds()
        // Blocks may hold what the session has just let go of.
        withExtendedLifetime(left) {}
    }

    /// Runs a block with the session at its place; does nothing, and drops the block, where the session or its place is gone by
    /// then.
    func schedule(_ block: @escaping @Sendable (Session) -> Void) {
        scheduler.schedule { [self] in
            if let session { block(session) }
        }
    }
}

/// The sessions of one file in this process that want to hear of commits.
final class WakerList: Sendable {
    private struct Entry {
        weak var waker: SessionWaker?
    }
    private let entries = Mutex<[Entry]>([])

    /// True where it is the first one.
    func add(_ waker: SessionWaker) -> Bool {
        entries.withLock { entries in
            entries.removeAll { $0.waker == nil }
            entries.append(Entry(waker: waker))
            return entries.count == 1
        }
    }

    /// Tells all but one, which has made the commit itself.
    func wakeAll(except one: SessionWaker? = nil) {
        entries.withLock { entries in
            for entry in entries {
                if let waker = entry.waker, waker !== one { waker.wake() }
            }
        }
    }
}
