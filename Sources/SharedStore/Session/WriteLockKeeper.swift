import CShims
import Synchronization
import SystemCalls

/// A thread that takes and gives back the write mutex on behalf of transactions which move between threads.
///
/// A robust mutex belongs to the thread that locked it: only it may unlock, and the kernel heals the mutex when it ends. A
/// transaction of a dispatch queue or an actor begins on one thread and ends on another, so neither can own the mutex; this
/// thread does.
///
/// The thread starts with the first request and ends when it has had nothing to do for a while. Requests are served in order, one
/// grant at a time; who was granted the mutex calls `release` exactly once. All members may be used from any thread.
///
/// Crash argument: the keeper is a thread of the process, so that the mutex is healed when the process dies, as for any other
/// owner.
package final class WriteLockKeeper: Sendable {
    private struct Request {
        let deadline: Deadline
        let completion: @Sendable (Result<Void, any Error>) -> Void
    }

    private struct State {
        var requests: [Request] = []
        var isHeld = false
        var watch: Watch?
        /// Set by `release`; woken when the mutex was given back.
        var releaser: WakeWord?
        var hasThread = false
        /// The keeper's thread id.
        var thread: Int64 = 0
    }

    /// Who was granted the mutex and has not come to use it.
    private struct Watch {
        let due: Int64
        let expire: @Sendable () -> Void
    }

    /// How often is looked after a grant that is not used.
    private static let lookNanoseconds: Int64 = 100_000_000
    private static let idleNanoseconds: Int64 = 5_000_000_000
    private let queue: WriteQueue
    private let state = Mutex(State())
    private let word = WakeWord()

    init(_ queue: WriteQueue) { self.queue = queue }

    /// Asks for the write mutex. `completion` runs on the keeper's thread when it is held, or cannot be had; it must be quick.
    /// - Throws: `SystemError` where there is no thread to be had; `completion` does not run then.
    func acquire(_ deadline: Deadline, _ completion: @escaping @Sendable (Result<Void, any Error>) -> Void) throws {
        try state.withLock { state in
            if !state.hasThread {
                try BackgroundThread.start("realm-writer") { [self] in run() }
                state.hasThread = true
            }
            state.requests.append(Request(deadline: deadline, completion: completion))
        }
        word.set(1)
    }

    /// Waits for the write mutex.
    func acquire(_ deadline: Deadline) throws {
        let outcome = Answer()
        try acquire(deadline) { outcome.give($0) }
        try outcome.wait()
    }

    /// For a holder that has to wait for its place, which may be waiting itself, for whoever waits for the mutex: where others
    /// want to write once `patience` has passed, `expire` is called, once, on the keeper's thread. It may give the mutex back.
    /// Ends with `release`.
    func watch(patience: Duration, _ expire: @escaping @Sendable () -> Void) {
        let nanoseconds = patience.components.seconds * 1_000_000_000 + patience.components.attoseconds / 1_000_000_000
        let due = SystemCalls.monotonicNanoseconds() &+ nanoseconds
        state.withLock { $0.watch = Watch(due: due, expire: expire) }
    }

    private func look() {
        let othersWait = queue.someoneWaits
        let watch: Watch? = state.withLock { state in
            guard state.isHeld, let watch = state.watch, watch.due <= SystemCalls.monotonicNanoseconds() else { return nil }
            if !othersWait && state.requests.isEmpty { return nil }
            state.watch = nil
            return watch
        }
        watch?.expire()
    }

    /// Gives the mutex back, and returns when it is free.
    func release() {
        let done = WakeWord()
        let isKeeper = state.withLock { state in
            precondition(state.isHeld, "the write lock was given back twice")
            state.watch = nil
            if state.thread == CShims_gettid() { return true }
            state.releaser = done
            return false
        }
        if isKeeper {
            // A completion that does not want the mutex.
            queue.release()
            return state.withLock { $0.isHeld = false }
        }
        word.set(1)
        while done.take(waitingNanoseconds: WriteLockKeeper.idleNanoseconds) == 0 {}
    }

    private final class Answer: Sendable {
        private let result = Mutex<Result<Void, any Error>?>(nil)
        private let word = WakeWord()
        func give(_ result: Result<Void, any Error>) {
            self.result.withLock { $0 = result }
            word.set(1)
        }
        func wait() throws {
            while true {
                if let result = result.withLock({ $0 }) { return try result.get() }
                _ = word.take(waitingNanoseconds: WriteLockKeeper.idleNanoseconds)
            }
        }
    }

    // MARK: The thread

    private enum Step { case release(WakeWord), acquire(Request), wait, end }

    private func run() {
        state.withLock { $0.thread = CShims_gettid() }
        var isIdle = false
        while true {
            let step: Step = state.withLock { state in
                if let releaser = state.releaser {
                    state.releaser = nil
                    return .release(releaser)
                }
                if !state.isHeld, !state.requests.isEmpty { return .acquire(state.requests.removeFirst()) }
                if isIdle && !state.isHeld {
                    state.hasThread = false
                    state.thread = 0
                    return .end
                }
                return .wait
            }
            isIdle = false
            switch step {
            case .release(let releaser):
                queue.release()
                state.withLock { $0.isHeld = false }
                releaser.set(1)
            case .acquire(let request):
                do {
                    _ = try queue.acquire(request.deadline)
                    state.withLock { $0.isHeld = true }
                    request.completion(.success(()))
                } catch {
                    request.completion(.failure(error))
                }
            case .wait:
                let isHeld = state.withLock { $0.isHeld }
                let isQuiet =
                    word.take(waitingNanoseconds: isHeld ? WriteLockKeeper.lookNanoseconds : WriteLockKeeper.idleNanoseconds) == 0
                if isHeld { look() } else { isIdle = isQuiet }
            case .end: return
            }
        }
    }
}

/// Whose thread owns the write mutex for a transaction.
enum WriteLockOwner {
    /// The thread that began the transaction, which alone may use it.
    case beginner
    /// The participant's keeper: the transaction may be used on any thread, by one at a time.
    case keeper

    func release(_ participant: Participant) {
        switch self {
        case .beginner: participant.writeQueue.release()
        case .keeper: participant.writeLockKeeper.release()
        }
    }
}
