import Synchronization

/// The live sessions of one file in this process: one for each thread, queue or actor, as long as somebody refers to it.
final class SessionCache: Sendable {
    private struct Entry {
        let confinement: Confinement
        let address: SessionAddress
    }
    private let entries = Mutex<[Confinement.Key: Entry]>([:])

    /// The session of a place, made where there is none.
    func session(at confinement: Confinement, _ make: () throws -> Session) rethrows -> Session {
        if let session = entries.withLock({ entries in
            entries[confinement.key].flatMap { $0.confinement.exists ? $0.address : nil }
        })?.session {
            return session
        }
        // Made outside of the lock: only code that runs at the place asks for its session, so nobody else makes the same one.
        let session = try make()
        entries.withLock { entries in
            entries[confinement.key] = Entry(confinement: confinement, address: session.address)
            if entries.count & 0x3F == 0 { entries = entries.filter { !$0.value.address.isGone } }
        }
        return session
    }

    /// Where the caller may use a session: the queue or actor that it runs on, if there is a session for that, else its thread.
    var placeOfCaller: Confinement {
        let places = entries.withLock { $0.values.map(\.confinement) }
        for place in places {
            switch place {
            // Only here the session itself may be looked for: its last reference must not go anywhere else.
            case .queue where place.isHere, .actor where place.isHere && place.exists:
                if entries.withLock({ $0[place.key]?.address })?.session != nil { return place }
            default: continue
            }
        }
        return .here
    }

    var isEmpty: Bool { entries.withLock { $0.values.allSatisfy { $0.address.isGone } } }
}
