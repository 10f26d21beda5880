import CShims
import Glibc
import Synchronization
import SystemCalls

/// The one thread that waits for all FIFOs, for inotify and for the clock.
///
/// Descriptors are registered with epoll under a tag, never under their number: an event that was on its way when its channel
/// went finds no channel and is dropped, whatever the number stands for by then.
final class Listener: Sendable {
    private static let wakeTag: UInt64 = 0
    private static let inotifyTag: UInt64 = 1
    static let firstChannelTag: UInt64 = 2

    /// Without epoll, the interval in which everything is looked at.
    private static let blindIntervalMilliseconds: Int32 = 25

    private let epoll: SystemCalls.Descriptor?
    private let wakeDescriptor: SystemCalls.Descriptor?
    private let inotifyIsRegistered = Atomic<Bool>(false)

    /// True on the listener thread of the process.
    static var isCurrentThread: Bool { currentIdentity.load(ordering: .acquiring) == UInt(pthread_self()) }
    private static let currentIdentity = Atomic<UInt>(0)

    init(notifier: Notifier, onWarning: @Sendable (Notifier.Warning) -> Void, path: String) {
        var descriptors: [SystemCalls.Descriptor] = []
        do {
            let epoll = try SystemCalls.makeEpoll()
            descriptors.append(epoll)
            let wake = try SystemCalls.makeEventDescriptor()
            descriptors.append(wake)
            try SystemCalls.add(wake, toEpoll: epoll, edge: false, tag: Self.wakeTag)
            (self.epoll, wakeDescriptor) = (epoll, wake)
        } catch {
            descriptors.forEach { SystemCalls.close($0) }
            (epoll, wakeDescriptor) = (nil, nil)
            onWarning(.noListener(path: path, reason: "\(error)", intervalMilliseconds: Int(Self.blindIntervalMilliseconds)))
        }
        startThread(notifier, onWarning: onWarning, path: path)
    }

    /// Makes the thread look at its channels now.
    func wake() {
        if let wakeDescriptor { SystemCalls.signal(wakeDescriptor) }
    }

    /// Asks to be told of bytes in a FIFO.
    func add(_ fifo: FIFO, tag: UInt64) throws {
        guard let epoll else { throw SystemError(call: "epoll_ctl", code: ENOSYS, path: fifo.path) }
        try SystemCalls.add(fifo.descriptor, toEpoll: epoll, edge: true, tag: tag)
    }

    func remove(_ fifo: FIFO) {
        if let epoll { SystemCalls.remove(fifo.descriptor, fromEpoll: epoll) }
    }

    /// Makes sure that the thread hears inotify. Throws where inotify is not to be had.
    func listenToInotify() throws {
        guard let epoll else { throw SystemError(call: "epoll_ctl", code: ENOSYS) }
        let descriptor = try InotifyWatches.shared.descriptor()
        if inotifyIsRegistered.exchange(true, ordering: .acquiringAndReleasing) { return }
        do { try SystemCalls.add(descriptor, toEpoll: epoll, edge: false, tag: Self.inotifyTag) } catch {
            inotifyIsRegistered.store(false, ordering: .releasing)
            throw error
        }
    }

    // MARK: The thread

    private final class Start: Sendable {
        let listener: Listener
        let notifier: Notifier
        init(_ listener: Listener, _ notifier: Notifier) { (self.listener, self.notifier) = (listener, notifier) }
    }

    private func startThread(_ notifier: Notifier, onWarning: @Sendable (Notifier.Warning) -> Void, path: String) {
        // Signals are for the threads of the application.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var identity = pthread_t()
        let start = Unmanaged.passRetained(Start(self, notifier))
        let code = pthread_create(
            &identity, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                Listener.currentIdentity.store(UInt(pthread_self()), ordering: .releasing)
                CShims_name_thread("realm-notifier")
                start.listener.run(start.notifier)
            }, start.toOpaque())
        if code != 0 {
            start.release()
            onWarning(.noThread(path: path, reason: SystemError(call: "pthread_create", code: code).description))
            return
        }
        pthread_detach(identity)
    }

    private func run(_ notifier: Notifier) -> Never {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 64) { tags in
            while true {
                let count = wait(tags, until: notifier.channels.map(\.nextDueNanoseconds).min())
                let now = SystemCalls.monotonicNanoseconds()
                for tag in tags[..<count] { handle(tag, notifier, now) }
                for channel in notifier.channels { channel.lookIfDue(now: now) }
            }
        }
    }

    private func wait(_ tags: UnsafeMutableBufferPointer<UInt64>, until due: Int64?) -> Int {
        guard let epoll else {
            usleep(UInt32(Self.blindIntervalMilliseconds) * 1000)
            return 0
        }
        var timeout: Int32 = -1
        if let due {
            let nanoseconds = max(0, due - SystemCalls.monotonicNanoseconds())
            timeout = Int32(clamping: (nanoseconds + 999_999) / 1_000_000)
        }
        return SystemCalls.wait(epoll: epoll, tags: tags, timeoutMilliseconds: timeout)
    }

    private func handle(_ tag: UInt64, _ notifier: Notifier, _ now: Int64) {
        switch tag {
        case Self.wakeTag:
            if let wakeDescriptor { SystemCalls.reset(wakeDescriptor) }
        case Self.inotifyTag:
            let occurrences = InotifyWatches.shared.take()
            if occurrences.contains(where: \.eventsWereLost) {
                for channel in notifier.channels {
                    channel.look()
                    channel.checkFiles()
                }
                return
            }
            for occurrence in occurrences {
                for user in occurrence.users { notifier.channel(tag: user)?.handle(occurrence, now: now) }
            }
        default:
            notifier.channel(tag: tag)?.hear(now: now)
        }
    }
}
