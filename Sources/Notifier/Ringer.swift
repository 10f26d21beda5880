import Synchronization
import SystemCalls

/// What a committer holds to tell all listeners of a database, in all processes, that there is a new version.
///
/// Ring after the version is published (coordination.md 5.4, step C9). Ringing never fails in the sense that the
/// commit would be in doubt: listeners who miss a ring find the version by their slow look.
public final class Ringer: Sendable {
    /// The path of the database, as given.
    public let path: String
    private let candidates: [String]
    private let creates: Bool

    private struct State {
        var fifo: FIFO?
        var nextCheckNanoseconds: Int64
    }

    private let state: Mutex<State>
    /// The name of a FIFO is looked at again in this interval: a removed FIFO is made anew, where new participants will look
    /// for it.
    private static let checkIntervalNanoseconds: Int64 = 100_000_000

    /// Opens or makes the FIFO of the database at `path`. Of `options`, the fallback directory, `createsFIFO` and
    /// `onWarning` count.
    public init(_ path: String, options: Notifier.Options = Notifier.Options()) {
        self.path = path
        candidates = FIFOPath.candidates(database: path, fallbackDirectory: options.fallbackDirectory)
        creates = options.createsFIFO
        let opening = FIFO.open(candidates: candidates, create: creates)
        let nextCheck = SystemCalls.monotonicNanoseconds() + Self.checkIntervalNanoseconds
        state = Mutex(State(fifo: opening.fifo, nextCheckNanoseconds: nextCheck))
        if opening.fifo == nil, creates {
            let instead = "its listeners in other processes are told by the time stamp of the file"
            options.onWarning(.noFIFO(path: path, failures: opening.failures, instead: instead))
        }
    }

    /// True while commits are told by a FIFO; otherwise by touching the database file, which watchers of the file hear.
    public var hasFIFO: Bool { state.withLock { $0.fifo != nil } }

    /// Tells everybody. A few microseconds; may be called from any thread, and holds no lock during system calls.
    public func ring() {
        if let fifo = currentFIFO(), fifo.ring() { return }
        try? SystemCalls.touch(path)
        Notifier.shared.hint(path: path)
    }

    private func currentFIFO() -> FIFO? {
        let now = SystemCalls.coarseMonotonicNanoseconds()
        let (fifo, isDue) = state.withLock { state in
            let isDue = now >= state.nextCheckNanoseconds
            if isDue { state.nextCheckNanoseconds = now + Self.checkIntervalNanoseconds }
            return (state.fifo, isDue)
        }
        guard isDue, let fifo, fifo.isUnlinked else { return fifo }
        let fresh = FIFO.open(candidates: candidates, create: creates).fifo
        // Those who still hold the removed FIFO hear this ring too.
        _ = fifo.ring()
        state.withLock { $0.fifo = fresh }
        return fresh
    }
}
