import Glibc
import Synchronization

/// What must be done before the process ends, by itself or at the wish of somebody else.
enum Ending {
    private struct Duties {
        var bodies: [Int: @Sendable () -> Void] = [:]
        var nextKey = 0
    }

    private static let duties = Mutex(Duties())
    private static let isEnding = Atomic<Bool>(false)

    /// Waits for the end where a signal is about to bring it: what fails because the duties were done meanwhile is no failure.
    static func waitIfEnding() {
        while isEnding.load(ordering: .acquiring) { pause() }
    }

    /// Runs `start`, whose result brings a duty, and remembers `duty`. A signal that comes meanwhile waits until both are done,
    /// so that nothing is started without being ended.
    ///
    /// - Returns: the result, and a key for `forget`.
    static func with<Result: Sendable>(
        _ start: () throws -> Result, duty: @escaping @Sendable (Result) -> Void
    ) rethrows -> (result: Result, key: Int) {
        try duties.withLock { duties in
            let result = try start()
            let key = duties.nextKey
            duties.nextKey += 1
            duties.bodies[key] = { duty(result) }
            return (result, key)
        }
    }

    // Only the main thread, which runs the command, adds to it, and nobody reads it.
    private nonisolated(unsafe) static var kept: [AnyObject] = []

    /// Keeps an object until the process ends. To be called by the main thread.
    static func keep(_ object: AnyObject) { kept.append(object) }

    /// The duty has been done.
    static func forget(_ key: Int) { _ = duties.withLock { $0.bodies.removeValue(forKey: key) } }

    /// Does what is left to do.
    static func run() {
        let bodies = duties.withLock { duties in
            defer { duties.bodies = [:] }
            return duties.bodies.values.map { $0 }
        }
        bodies.forEach { $0() }
    }

    /// From now on SIGINT, SIGTERM and SIGHUP first do the duties, on a thread of its own, and then end the process as if nobody
    /// had caught them. The rest of the program goes on meanwhile. For commands that do not listen to signals themselves.
    static func obeySignals() {
        // Without a descriptor for it, the process ends as it would anyway.
        guard let signals = try? SignalListener([.interrupt, .terminate, .hangup]) else { return }
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(signals)
        let code = pthread_create(
            &thread, nil,
            { pointer in
                guard let pointer else { return nil }
                Ending.wait(for: Unmanaged<SignalListener>.fromOpaque(pointer).takeRetainedValue())
            }, argument.toOpaque())
        if code == 0 { pthread_detach(thread) } else { argument.release() }
    }

    private static func wait(for signals: SignalListener) -> Never {
        while true {
            signals.wait()
            guard let signal = signals.next() else { continue }
            isEnding.store(true, ordering: .releasing)
            run()
            Glibc.signal(signal.rawValue, SIG_DFL)
            kill(getpid(), signal.rawValue)
        }
    }
}
