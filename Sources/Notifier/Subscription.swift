import CShims
import Glibc
import Synchronization
import SystemCalls

/// Events that wait for a consumer that asks for them. Bounded: commits that follow each other are one event, the newest;
/// of more than 64 events the oldest go, which costs nothing, since a consumer looks at the file and not at the past.
struct PendingEvents: Sendable {
    private var events: [Notifier.Event] = []
    var isEmpty: Bool { events.isEmpty }

    mutating func append(_ event: Notifier.Event) {
        if case .committed = event, case .committed? = events.last { events.removeLast() }
        if events.count == 64 { events.removeFirst() }
        events.append(event)
    }

    mutating func takeFirst() -> Notifier.Event? { events.isEmpty ? nil : events.removeFirst() }

    mutating func takeAll() -> [Notifier.Event] {
        defer { events = [] }
        return events
    }
}

/// What a subscription and the listener share.
///
/// `look` and `deliver` are called by the listener thread alone, so events keep their order.
final class Subscriber: Sendable {
    let newestVersion: @Sendable () -> UInt64
    let handler: (@Sendable (Notifier.Event) -> Void)?

    private struct State {
        var isCancelled = false
        var lastVersion: UInt64
        /// Set once a commit has been delivered: a consumer that comes later begins with it.
        var hasDelivered = false
        var pending = PendingEvents()
        var eventDescriptor: SystemCalls.Descriptor = -1
        var streams: [UInt64: NotifierEvents.Queue] = [:]
        var nextStream: UInt64 = 0
    }

    private let state: Mutex<State>
    /// Held while the closures of the caller run, so that `cancel` can wait for them.
    private let running = Mutex(())

    init(
        newestVersion: @escaping @Sendable () -> UInt64, handler: (@Sendable (Notifier.Event) -> Void)?, lastSeenVersion: UInt64?
    ) {
        self.newestVersion = newestVersion
        self.handler = handler
        state = Mutex(State(lastVersion: lastSeenVersion ?? newestVersion()))
    }

    deinit {
        state.withLock { if $0.eventDescriptor >= 0 { SystemCalls.close($0.eventDescriptor) } }
    }

    /// Delivers a commit if the newest version is not the last one delivered; true where it does.
    func look() -> Bool {
        running.withLock { _ in
            guard !isCancelled else { return false }
            let newest = newestVersion()
            let isNew = state.withLock { state in
                if newest == state.lastVersion { return false }
                state.lastVersion = newest
                state.hasDelivered = true
                return true
            }
            if isNew { pass(.committed(version: newest)) }
            return isNew
        }
    }

    func deliver(_ event: Notifier.Event) {
        running.withLock { _ in
            guard !isCancelled else { return }
            pass(event)
        }
    }

    private func pass(_ event: Notifier.Event) {
        state.withLock { state in
            if state.eventDescriptor >= 0 {
                state.pending.append(event)
                SystemCalls.signal(state.eventDescriptor)
            }
            for stream in state.streams.values { stream.append(event) }
        }
        handler?(event)
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// After this, the closures of the caller do not run any more. On the listener thread itself it does not wait: the
    /// handler that cancels is the one that runs.
    func cancel(onListenerThread: Bool) {
        let streams = state.withLock { state in
            state.isCancelled = true
            if state.eventDescriptor >= 0 { SystemCalls.signal(state.eventDescriptor) }
            defer { state.streams = [:] }
            return Array(state.streams.values)
        }
        streams.forEach { $0.finish() }
        if !onListenerThread { running.withLock { _ in } }
    }

    // MARK: Consumers that ask

    func eventDescriptor() throws -> SystemCalls.Descriptor {
        try state.withLock { state in
            if state.eventDescriptor < 0 {
                state.eventDescriptor = try SystemCalls.makeEventDescriptor()
                if state.hasDelivered {
                    state.pending.append(.committed(version: state.lastVersion))
                    SystemCalls.signal(state.eventDescriptor)
                }
                if state.isCancelled { SystemCalls.signal(state.eventDescriptor) }
            }
            return state.eventDescriptor
        }
    }

    func takeEvents() -> [Notifier.Event] {
        state.withLock { state in
            if state.eventDescriptor >= 0 && !state.isCancelled { SystemCalls.reset(state.eventDescriptor) }
            return state.pending.takeAll()
        }
    }

    func addStream() -> (queue: NotifierEvents.Queue, number: UInt64) {
        let queue = NotifierEvents.Queue()
        let number = state.withLock { state in
            defer { state.nextStream += 1 }
            if state.hasDelivered { queue.append(.committed(version: state.lastVersion)) }
            if state.isCancelled { queue.finish() } else { state.streams[state.nextStream] = queue }
            return state.nextStream
        }
        return (queue, number)
    }

    func removeStream(_ number: UInt64) {
        state.withLock { $0.streams[number] = nil }
    }
}

/// The events of a subscription as an asynchronous sequence. It ends when the subscription is cancelled or the task is.
///
/// Each iterator hears every event from its creation on. What was committed between subscribing and that is not lost: the
/// sequence then begins with an event for the newest version. Where the consumer is slow, commits are summed up.
public struct NotifierEvents: AsyncSequence, Sendable {
    public typealias Element = Notifier.Event
    public typealias Failure = Never

    let subscriber: Subscriber

    final class Queue: Sendable {
        private let pending = Mutex(PendingEvents())
        /// Says "there is something in `pending`"; one such word is enough for any number of events.
        let signals: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

        func append(_ event: Notifier.Event) {
            pending.withLock { $0.append(event) }
            continuation.yield()
        }

        func finish() { continuation.finish() }
        func takeFirst() -> Notifier.Event? { pending.withLock { $0.takeFirst() } }
    }

    /// Ends the delivery to a queue with the last copy of its iterator.
    private final class Registration: Sendable {
        let subscriber: Subscriber
        let queue: Queue
        let number: UInt64

        init(_ subscriber: Subscriber) {
            self.subscriber = subscriber
            (queue, number) = subscriber.addStream()
        }

        deinit { subscriber.removeStream(number) }
    }

    /// Waits for one event after the other; those that come meanwhile are kept.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let registration: Registration
        private var signals: AsyncStream<Void>.AsyncIterator

        init(_ subscriber: Subscriber) {
            registration = Registration(subscriber)
            signals = registration.queue.signals.makeAsyncIterator()
        }

        /// The next event, at once where one waits; nil after the subscription was cancelled. Whoever cancels the waiting task
        /// gets nil too.
        public mutating func next() async -> Notifier.Event? {
            while true {
                if let event = registration.queue.takeFirst() { return event }
                if await signals.next() == nil { return registration.queue.takeFirst() }
            }
        }
    }

    /// Hears of what is committed from now on, and of the newest version if that was missed.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscriber) }
}

/// One listener of one database path. It ends with `cancel()` or with its last reference.
///
/// All members may be used from any thread, before and after cancelling.
public final class Subscription: Sendable {
    /// The path of the database, as given.
    public let path: String
    private let subscriber: Subscriber
    private let channel: Channel
    private let notifier: Notifier

    init(path: String, subscriber: Subscriber, channel: Channel, notifier: Notifier) {
        self.path = path
        self.subscriber = subscriber
        self.channel = channel
        self.notifier = notifier
    }

    deinit { cancel() }

    /// Ends the subscription. When this returns, neither `newestVersion` nor the handler is running or will run again, so what
    /// they use may be torn down; only where the handler itself cancels does it go on to its end. The caller must not hold a lock
    /// that the handler waits for.
    public func cancel() {
        // In a child made by `fork` the watches are the parent's, and the threads are not there.
        if !CShims_is_forked() { notifier.end(subscriber, of: channel) }
    }

    /// The events, for `for await`.
    public var events: NotifierEvents { NotifierEvents(subscriber: subscriber) }

    /// A descriptor that is readable while `takeEvents()` has something to give, and after `cancel()`. It belongs to the
    /// subscription and is valid as long as the subscription object lives; do not read or close it.
    ///
    /// Throws `SystemError` where the process has no descriptor left. Events are kept for `takeEvents()` from the first call on.
    public func eventDescriptor() throws -> Int32 { try subscriber.eventDescriptor() }

    /// The events that have come since the last call, in order, for users of `eventDescriptor()`. Never waits.
    public func takeEvents() -> [Notifier.Event] { subscriber.takeEvents() }

    /// How commits are heard at this moment.
    public var ways: Notifier.Ways { channel.ways }
}
