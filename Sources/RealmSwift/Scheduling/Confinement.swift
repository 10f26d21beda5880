import Dispatch
import Foundation
internal import CShims
import Synchronization

/// Where a session may be used, checked at every access.
enum Confinement {
    /// Everywhere: frozen sessions.
    case none
    case thread(UInt64)
    /// The main thread, the main queue or the main actor. In a program with an asynchronous main these three are not one
    /// thread: what runs on the queue or the actor after the first suspension runs on a worker. So either is accepted.
    case main(thread: UInt64)
    case queue(DispatchQueue, QueueMark)
    case actor(ActorPlace)

    /// An actor. Its session does not keep it alive: actors keep their Realms.
    final class ActorPlace: Sendable {
        /// The executor that its code runs on: the actor itself unless it has one of its own.
        let executor: UInt
        let identity: ObjectIdentifier
        private let content: Content

        private struct Content: @unchecked Sendable {
            // Sendable: never changes but by the end of the actor, which weak references bear.
            weak var actor: (any Actor)?
        }

        init(_ actor: any Actor, executor: UInt) {
            self.executor = executor
            identity = ObjectIdentifier(actor)
            content = Content(actor: actor)
        }

        /// Nil where it is gone.
        var actor: (any Actor)? { content.actor }
    }

    /// A mark that a queue carries, found from every queue that targets it too.
    final class QueueMark: Sendable {
        private static let ownKey = DispatchSpecificKey<QueueMark>()
        private let key = DispatchSpecificKey<Bool>()
        /// The C queue as it was seen while running on it; 0 before that.
        private let current = Atomic<UInt>(0)

        /// The mark of a queue, which gets one where it has none. A queue that is not serial stops the process: its blocks run at
        /// the same time, on several threads.
        static func of(_ queue: DispatchQueue) -> QueueMark {
            if let mark = queue.getSpecific(key: ownKey) { return mark }
            if QueueKind.isConcurrent(queue) {
                misuse("Realms can only be confined to serial queues or the main queue, not to '\(queue.label)'.")
            }
            let mark = QueueMark()
            queue.setSpecific(key: mark.key, value: true)
            queue.setSpecific(key: ownKey, value: mark)
            return mark
        }

        var isCurrent: Bool {
            let here = UInt(bitPattern: realm_current_queue())
            if here != 0 && current.load(ordering: .relaxed) == here { return true }
            if DispatchQueue.getSpecific(key: key) != true { return false }
            // Where a queue that targets ours runs, the look above would be no less right.
            if DispatchQueue.getSpecific(key: QueueMark.ownKey) === self { current.store(here, ordering: .relaxed) }
            return true
        }
    }

    /// The number for the quick test; 0: it fits no thread, so that `isHere` decides. It also decides where the number is another
    /// one.
    var threadNumber: UInt64 {
        switch self {
        case .thread(let number), .main(let number): number
        case .none, .queue, .actor: 0
        }
    }

    var isHere: Bool {
        switch self {
        case .none: true
        case .thread(let number): realm_current_thread_number() == number
        case .main(let number): realm_current_thread_number() == number || Confinement.isOnMainQueue
        case .queue(_, let mark): mark.isCurrent
        case .actor(let place): UInt(bitPattern: realm_current_actor()) == place.executor
        }
    }

    /// For people.
    var name: String {
        switch self {
        case .none: "nobody"
        case .thread: "another thread"
        case .main: "the main thread"
        case .queue(let queue, _): "the queue '\(queue.label)'"
        case .actor: "an actor"
        }
    }

    private static let mainMark = QueueMark.of(.main)
    static var isOnMainQueue: Bool { mainMark.isCurrent }
    static var isOnMain: Bool { Thread.isMainThread || isOnMainQueue }

    /// Where the caller runs, for a session without queue and actor.
    static var here: Confinement { isOnMain ? main : .thread(realm_current_thread_number()) }

    /// The main place, for a caller that runs there. A worker that serves the main queue serves others too, so its number says
    /// nothing.
    static var main: Confinement { .main(thread: Thread.isMainThread ? realm_current_thread_number() : 0) }

    /// A serial queue. Nil where the caller does not run on it.
    static func of(_ queue: DispatchQueue) -> Confinement? {
        let mark = QueueMark.of(queue)
        // Objects of the same queue need not be identical, but carry the same mark.
        let place: Confinement = mark === mainMark ? main : .queue(queue, mark)
        return place.isHere ? place : nil
    }

    /// An actor on which the caller runs.
    static func of(_ actor: isolated any Actor) -> Confinement {
        if actor === MainActor.shared { return main }
        return .actor(ActorPlace(actor, executor: UInt(bitPattern: realm_current_actor())))
    }

    /// Tells sessions of the same file apart that belong to different places.
    enum Key: Hashable {
        case none, main, thread(UInt64), queue(ObjectIdentifier), actor(ObjectIdentifier)
    }

    var key: Key {
        switch self {
        case .none: .none
        case .thread(let number): .thread(number)
        case .main: .main
        case .queue(_, let mark): .queue(ObjectIdentifier(mark))
        case .actor(let place): .actor(place.identity)
        }
    }

    /// False for an actor that is gone: another one may have its identity.
    var exists: Bool {
        if case .actor(let place) = self { return place.actor != nil }
        return true
    }
}
