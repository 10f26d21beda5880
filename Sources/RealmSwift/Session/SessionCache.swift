import Synchronization

/// The live sessions of one file in this process: one for each thread, queue or actor, as long as somebody refers to it.
final class SessionCache: Sendable {
    private struct Entry {
        weak var session: Session?
    }
    private let entries = Mutex<[Confinement.Key: Entry]>([:])

    /// The session of a place, made where there is none.
    func session(at confinement: Confinement, _ make: () throws -> Session) rethrows -> Session {
        if let session = entries.withLock({ $0[confinement.key]?.session }) { return session }
        // Made outside of the lock: only code that runs at the place asks for its session, so nobody else makes the same one.
        let session = try make()
        entries.withLock { entries in
            entries[confinement.key] = Entry(session: session)
            if entries.count & 0x3F == 0 { entries = entries.filter { $0.value.session != nil } }
        }
        return session
    }

    /// All sessions that are still referred to.
    var sessions: [Session] { entries.withLock { $0.values.compactMap(\.session) } }
}
