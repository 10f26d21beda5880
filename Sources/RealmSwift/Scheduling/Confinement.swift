import Dispatch
import Foundation
internal import CShims

/// Where a session may be used, checked at every access.
enum Confinement {
    /// Everywhere: frozen sessions.
    case none
    case thread(UInt64)
    /// The main thread, the main queue or the main actor. In a program with an asynchronous main these three are not one
    /// thread: what runs on the queue or the actor after the first suspension runs on a worker. So either is accepted.
    case main(thread: UInt64)
    case queue(DispatchQueue, QueueMark)
    /// The address of the actor, which the session keeps alive.
    case actor(any Actor)

    /// A mark that the queue carries, found from every queue that targets it too.
    final class QueueMark: Sendable {
        let key = DispatchSpecificKey<UInt64>()
        let number: UInt64
        /// The C queue as it was seen while running on it; 0 before that.
        let current: UInt
        init(_ queue: DispatchQueue) {
            number = UInt64(UInt(bitPattern: ObjectIdentifier(queue)))
            queue.setSpecific(key: key, value: number)
            current = DispatchQueue.getSpecific(key: key) == number ? UInt(bitPattern: realm_current_queue()) : 0
        }
        var isCurrent: Bool {
            (current != 0 && current == UInt(bitPattern: realm_current_queue())) || DispatchQueue.getSpecific(key: key) == number
        }
    }

    /// The number for the quick test; 0 fits no thread, so that `isHere` decides.
    var threadNumber: UInt64 {
        if case .thread(let number) = self { return number }
        return 0
    }

    var isHere: Bool {
        switch self {
        case .none: true
        case .thread(let number): realm_current_thread_number() == number
        case .main(let number): realm_current_thread_number() == number || Confinement.isOnMainQueue
        case .queue(_, let mark): mark.isCurrent
        case .actor(let actor): realm_current_actor() == Unmanaged.passUnretained(actor as AnyObject).toOpaque()
        }
    }

    private static let mainMark = QueueMark(.main)
    static var isOnMainQueue: Bool { mainMark.isCurrent }
    static var isOnMain: Bool { Thread.isMainThread || isOnMainQueue }

    /// Where the caller runs, for a session without queue and actor.
    static var here: Confinement { isOnMain ? .main(thread: realm_current_thread_number()) : .thread(realm_current_thread_number()) }

    /// Tells sessions of the same file apart that belong to different places.
    enum Key: Hashable {
        case none, main, thread(UInt64), queue(ObjectIdentifier), actor(ObjectIdentifier)
    }

    var key: Key {
        switch self {
        case .none: .none
        case .thread(let number): .thread(number)
        case .main: .main
        case .queue(let queue, _): .queue(ObjectIdentifier(queue))
        case .actor(let actor): .actor(ObjectIdentifier(actor))
        }
    }
}
