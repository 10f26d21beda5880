internal import SharedStore
import Synchronization

/// Keeps an observer alive: it is told of changes until the token is invalidated or goes.
public class NotificationToken: @unchecked Sendable {
    // Sendable: what a token does when it ends is safe on every thread; subclasses see to that.
    init() {}

    /// Ends the observation. After the call returns on the observer's thread it is not called any more.
    public func invalidate() {}
}

/// The token of one observer.
///
/// It may be invalidated, and may go, on any thread. What it holds of the session is let go of at the session's place.
final class ObserverToken: NotificationToken, @unchecked Sendable {
    // Sendable: the state is behind a lock.
    private enum State {
        /// Observing begins at another place, soon.
        case waiting
        case observing(Observation.Reference)
        case ended
    }
    private let state = Mutex<State>(.waiting)

    deinit { invalidate() }

    /// The observer is there. Ends it at once where the token was invalidated meanwhile.
    func begin(_ observation: Observation) {
        let reference = Observation.Reference(observation)
        let isLate = state.withLock { state in
            if case .ended = state { return true }
            state = .observing(reference)
            return false
        }
        if isLate { reference.end() }
    }

    override func invalidate() {
        let reference: Observation.Reference? = state.withLock { state in
            defer { state = .ended }
            if case .observing(let reference) = state { return reference }
            return nil
        }
        reference?.end()
    }

    var isEnded: Bool {
        state.withLock { state in
            if case .ended = state { return true }
            return false
        }
    }

    /// The callback in a session, asked for at its place; nil where the token is none of that session's observers.
    func callback(in session: Session) -> Observer.Callback? {
        state.withLock { state in
            guard case .observing(let reference) = state else { return nil }
            return reference.observation.session === session ? reference.observation.callback : nil
        }
    }
}

/// One observer in one session. Belongs to the session's place, where it must also go, since it may hold the last reference to the session.
final class Observation {
    let session: Session
    /// Nil for an observer of the Realm as a whole.
    let callback: Observer.Callback?
    private let cancel: () -> Void
    private let isOver: Flag

    /// Says across threads that an observer is not to be called any more.
    final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    init(_ session: Session, _ callback: Observer.Callback?, isOver: Flag, cancel: @escaping () -> Void) {
        self.session = session
        self.callback = callback
        self.isOver = isOver
        self.cancel = cancel
    }

    /// Holds an observation until `end`, which is called once, on any thread.
    struct Reference: @unchecked Sendable {
        // Sendable: other threads only set the mark, which is atomic, and read what never changes.
        private let held: Unmanaged<Observation>

        init(_ observation: Observation) { held = .passRetained(observation) }

        /// At the session's place only.
        var observation: Observation { held.takeUnretainedValue() }

        func end() {
            let waker: SessionWaker? = held._withUnsafeGuaranteedRef { observation in
                observation.isOver.isSet.store(true, ordering: .releasing)
                return observation.session.confinement.isHere ? nil : observation.session.waker
            }
            guard let waker else { return held.takeRetainedValue().cancel() }
            waker.schedule { [self] _ in held.takeRetainedValue().cancel() }
        }
    }
}
