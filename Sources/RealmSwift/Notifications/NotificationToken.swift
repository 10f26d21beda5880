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
        case observing(Observation)
        case ended
    }
    private let state = Mutex<State>(.waiting)

    deinit { invalidate() }

    /// The observer is there. Ends it at once where the token was invalidated meanwhile.
    func begin(_ observation: Observation) {
        let isLate = state.withLock { state in
            if case .ended = state { return true }
            state = .observing(observation)
            return false
        }
        if isLate { observation.end() }
    }

    override func invalidate() {
        let observation: Observation? = state.withLock { state in
            defer { state = .ended }
            if case .observing(let observation) = state { return observation }
            return nil
        }
        observation?.end()
    }

    var isEnded: Bool {
        state.withLock { state in
            if case .ended = state { return true }
            return false
        }
    }

    /// The callback in a session; nil where the token is none of that session's observers.
    func callback(in session: Session) -> Observer.Callback? {
        state.withLock { state in
            if case .observing(let observation) = state, observation.session === session { return observation.callback }
            return nil
        }
    }
}

/// One observer in one session.
final class Observation: @unchecked Sendable {
    // Sendable: used at the session's place only; the mark is atomic.
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

    func end() {
        isOver.isSet.store(true, ordering: .releasing)
        if session.confinement.isHere { return cancel() }
        // The session must not go anywhere but at its place.
        session.waker?.schedule { [self] _ in cancel() }
    }
}
