import Notifier
import Synchronization

extension Store {
    /// Hears of the commits of all processes, this one among them, and of what happens to the file.
    ///
    /// Three ways to consume the events, of which any number may be used at once: `handler`, `Subscription.events` as an
    /// asynchronous sequence, and `Subscription.eventDescriptor()` for a loop that waits with `poll` or `epoll`. Several commits
    /// may come as one event; a reader that wants each of them follows the history with `ReadTransaction.advance`.
    ///
    /// The store stays open as long as the subscription. Where the session cannot be asked for a moment, nothing is told then.
    ///
    /// - Parameter handler: called on the notifier's thread, one event after the other; it must not wait for long.
    /// - Returns: the subscription. Keep it: it ends with its last reference.
    public func subscribe(
        options: Notifier.Options = Notifier.Options(), handler: (@Sendable (Notifier.Event) -> Void)? = nil
    ) -> Subscription {
        let last = LastVersion(options.lastSeenVersion ?? (try? newestVersion()) ?? 0)
        return Notifier.shared.subscribe(
            path: path, options: options, newestVersion: { last.take(try? self.newestVersion()) }, handler: handler)
    }
}

/// The newest version that could be learned.
private final class LastVersion: Sendable {
    private let version: Atomic<UInt64>
    init(_ version: UInt64) { self.version = Atomic(version) }

    func take(_ newest: UInt64?) -> UInt64 {
        if let newest { version.store(newest, ordering: .relaxed) }
        return version.load(ordering: .relaxed)
    }
}
