import CShims
import Glibc
import Synchronization
import SystemCalls

/// Tells of commits by any process, and of what happens to a database file, as it happens.
///
/// Three ways run at once, each there for what the others miss (coordination.md 6.2):
/// 1. epoll on the `.note` FIFO, the way of all Realm programs. The listener never reads the FIFO.
/// 2. inotify on the FIFO (hears every byte, even one that another sender has drained), on the database file and on its folder.
///    Commits themselves are not seen on the data file: stores through a mapping raise no event.
/// 3. A slow look at the newest version and the file, every half second; every 25 ms where there is no FIFO.
///
/// Opening never fails for want of one of them: one warning says what is missing and what is done instead.
///
/// There is one listener thread per process. Handlers run on it and should be quick. A child made by `fork` without `exec` has no
/// listener thread; no descriptor survives `exec`.
public final class Notifier: Sendable {
    /// That of the process.
    public static let shared = Notifier()

    /// How commits of a path are heard.
    public struct Ways: Sendable, Equatable {
        /// The FIFO in use, or nil.
        public var fifo: String?
        /// True where inotify watches the FIFO.
        public var watchesFIFO: Bool
        /// True where inotify watches the database file.
        public var watchesFile: Bool
        /// True where inotify watches the folder of the database file.
        public var watchesFolder: Bool
        /// The interval of the look that needs nobody's help.
        public var netMilliseconds: Int
    }

    private struct Registry {
        /// By the bytes of the path: names that only look alike are names of two files.
        var channels: [[UInt8]: Channel] = [:]
        var channelsByTag: [UInt64: Channel] = [:]
        var nextTag: UInt64 = Listener.firstChannelTag
        var listener: Listener?
    }

    private let registry = Mutex(Registry())

    private init() {}

    /// Listens to the database at `path`, which need not exist yet.
    ///
    /// - Parameters:
    ///   - path: As the application gave it: all participants must use the same text where the FIFO lies in a fallback directory.
    ///   - newestVersion: The newest version of the session, a read of mapped memory. Called on the listener thread,
    ///     and once here unless `options.lastSeenVersion` is given. Must be fast and must not fail.
    ///   - handler: Called on the listener thread for every event, in order.
    /// - Returns: The subscription. Keep it: it ends with its last reference.
    public func subscribe(
        path: String, options: Options = Options(), newestVersion: @escaping @Sendable () -> UInt64,
        handler: (@Sendable (Event) -> Void)? = nil
    ) -> Subscription {
        precondition(
            !CShims_is_forked(),
            "This process was made by fork() when its parent had listeners or Realm files open: it has no thread that listens. Fork before, or start a program."
        )
        CShims_watch_forks()
        let subscriber = Subscriber(newestVersion: newestVersion, handler: handler, lastSeenVersion: options.lastSeenVersion)
        while true {
            let (channel, listener) = registry.withLock { registry in
                let listener = registry.listener ?? Listener(notifier: self, onWarning: options.onWarning, path: path)
                registry.listener = listener
                if let channel = registry.channels[Array(path.utf8)], !channel.isClosed { return (channel, listener) }
                let channel = Channel(path: path, tag: registry.nextTag, options: options, listener: listener)
                registry.nextTag += 1
                registry.channels[Array(path.utf8)] = channel
                registry.channelsByTag[channel.tag] = channel
                return (channel, listener)
            }
            if channel.add(subscriber, options: options) {
                listener.wake()
                return Subscription(path: path, subscriber: subscriber, channel: channel, notifier: self)
            }
        }
    }

    /// Looks at the newest version of a path now, for the listeners of this process only.
    func hint(path: String) {
        let (channel, listener) = registry.withLock { ($0.channels[Array(path.utf8)], $0.listener) }
        channel?.requestLook()
        listener?.wake()
    }

    func end(_ subscriber: Subscriber, of channel: Channel) {
        let isLast = channel.remove(subscriber)
        if isLast {
            registry.withLock { registry in
                let path = Array(channel.path.utf8)
                if registry.channels[path] === channel { registry.channels[path] = nil }
                registry.channelsByTag[channel.tag] = nil
            }
        }
        subscriber.cancel(onListenerThread: Listener.isCurrentThread)
    }

    // MARK: For the listener

    func channel(tag: UInt64) -> Channel? { registry.withLock { $0.channelsByTag[tag] } }
    var channels: [Channel] { registry.withLock { Array($0.channelsByTag.values) } }
}
