internal import CShims
import Synchronization

/// Where a session is as long as somebody refers to it: what a weak reference does, but outside of the session.
///
/// A weak reference makes every count of the object's strong references twice as slow, for good, and each accessor holds its
/// session strongly. So the address is kept here; the session takes it back in its `deinit`, under the lock, so that its memory
/// is there while the lock is held.
final class SessionAddress: Sendable {
    private struct Place: @unchecked Sendable {
        // Sendable: only used under the lock.
        var pointer: UnsafeMutableRawPointer?
    }
    private let place = Mutex(Place(pointer: nil))

    /// Called once, when the session is complete.
    func set(_ session: Session) { place.withLock { $0.pointer = Unmanaged.passUnretained(session).toOpaque() } }

    /// Called in the session's `deinit`.
    func clear() { place.withLock { $0.pointer = nil } }

    var isGone: Bool { place.withLock { $0.pointer == nil } }

    /// Nil before the session is complete, and once its last reference is gone.
    var session: Session? {
        place.withLock { place in
            guard let pointer = place.pointer, let retained = realm_try_retain(pointer) else { return nil }
            return Unmanaged<Session>.fromOpaque(retained).takeRetainedValue()
        }
    }
}
