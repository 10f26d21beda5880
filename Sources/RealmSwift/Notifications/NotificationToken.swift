internal import SharedStore
import Synchronization

/// Keeps an observer alive: it is told of changes until the token is invalidated or goes.
public class NotificationToken: @unchecked Sendable {
    // Sendable: what a token does when it ends is safe on every thread; subclasses see to that.
    init() {}

    /// Ends the observation. After the call returns on the observer's thread it is not called any more.
    public func invalidate() {}
}

/// Tokens are equal to themselves only.
extension NotificationToken: Hashable {
    public static func == (a: NotificationToken, b: NotificationToken) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
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

    /// What the token observes, asked for at the place of `session`; nil where that is nothing of this session.
    func observation(in session: Session) -> Observation? {
        state.withLock { state in
            guard case .observing(let reference) = state, reference.isOf(session) else { return nil }
            return reference.observation
        }
    }

    /// False where the token observes something of another session, or will.
    func mayBeSkipped(by session: Session) -> Bool {
        state.withLock { state in
            switch state {
            case .waiting: false
            case .observing(let reference): reference.isOf(session)
            case .ended: true
            }
        }
    }
}

/// One observer in one session. Belongs to the session's place, where it must also go, since it may hold the last reference to
/// the session.
final class Observation {
    /// Where the session belongs; these never change.
    let confinement: Confinement
    let waker: SessionWaker?
    private let sessionIdentity: ObjectIdentifier
    /// Kept as long as it is observed, and its place is there.
    private var session: Session?
    private(set) var target: Target
    private let isOver: Flag

    enum Target {
        case callback(Observer.Callback)
        /// An observer of the Realm as a whole, by its number.
        case realm(Int)
        /// Nothing any more.
        case none
    }

    /// Says across threads that an observer is not to be called any more.
    final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    init(_ session: Session, _ target: Target, isOver: Flag) {
        self.session = session
        self.target = target
        self.isOver = isOver
        confinement = session.confinement
        waker = session.waker
        sessionIdentity = ObjectIdentifier(session)
        SessionObservation.of(session).add(self)
    }

    /// At the session's place.
    fileprivate func end() {
        guard let session else { return }
        SessionObservation.of(session).remove(self, target)
        letGo()
    }

    /// The session's place is gone, or nobody wants to hear of it any more.
    func letGo() {
        target = .none
        session = nil
    }

    /// Holds an observation until `end`, which is called once, on any thread.
    struct Reference: @unchecked Sendable {
        // Sendable: other threads only set the mark, which is atomic, and read what never changes.
        private let held: Unmanaged<Observation>

        init(_ observation: Observation) { held = .passRetained(observation) }

        /// At the session's place only.
        var observation: Observation { held.takeUnretainedValue() }

        func isOf(_ session: Session) -> Bool {
            held._withUnsafeGuaranteedRef { $0.sessionIdentity == ObjectIdentifier(session) }
        }

        func end() {
            let waker: SessionWaker? = held._withUnsafeGuaranteedRef { observation in
                observation.isOver.isSet.store(true, ordering: .releasing)
                return observation.confinement.isHere ? nil : observation.waker
            }
            let ending = Ending(held)
            if let waker { waker.schedule { _ in ending.run() } } else { ending.run() }
        }
    }

    /// The end of an observation. Where it does not come to that, because the place is gone, the observation is let go of all the
    /// same.
    private final class Ending: @unchecked Sendable {
        // Sendable: used at the session's place; where that is gone by whoever holds the last reference.
        private var held: Unmanaged<Observation>?

        init(_ held: Unmanaged<Observation>) { self.held = held }

        func run() {
            guard let observation = held?.takeRetainedValue() else { return }
            held = nil
            observation.end()
        }

        deinit { held?.release() }
    }
}
