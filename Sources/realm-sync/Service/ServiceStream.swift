import Glibc
import Replication
import SharedStore
import Synchronization
import SystemCalls

/// One mirror or archive of the service: a thread that runs it, begins again after failures with growing pauses, and tells a
/// board how it goes. Nothing that it waits for keeps anybody else waiting: who wants to know reads the board.
final class ServiceStream: @unchecked Sendable {
    // Sendable: `board` is guarded by its mutex; what begins with `own` is used by the stream's thread alone; the rest never
    // changes.

    /// What happens to a stream, for hooks.
    enum Event: String, Sendable { case failure, recovery, success }

    let specification: StreamSpecification
    /// The base of a directory's replicas, whose folders are made as needed.
    let folderBase: String?
    let board = Mutex(StreamBoard())
    private let log: ServiceLog
    private let onEvent: @Sendable (ServiceStream, Event) -> Void
    private let onEnd: @Sendable () -> Void
    /// Counted up to wake the thread.
    private let wake: SystemCalls.Descriptor

    private var ownReport = StreamJob.Report()
    /// The report was taken since something last happened.
    private var ownIsReported = false
    private var ownLastReport: Int64 = 0
    private var ownLastActivity: Int64 = 0
    private var ownLeaving: SourceFingerprint?
    private var ownLimit: RateLimit?
    private var ownLimitedBytes = 0
    private var ownImageBytes = 0
    private var ownHasToAsk = true

    /// Ends a run from within.
    private struct Stopped: Error {}

    init(
        _ specification: StreamSpecification, folderBase: String? = nil, log: ServiceLog,
        onEvent: @escaping @Sendable (ServiceStream, Event) -> Void, onEnd: @escaping @Sendable () -> Void
    ) throws {
        self.specification = specification
        self.folderBase = folderBase
        self.log = log
        self.onEvent = onEvent
        self.onEnd = onEnd
        wake = try SystemCalls.makeEventDescriptor()
        ownLimit = specification.bytesPerSecond.map { RateLimit(bytesPerSecond: $0) }
    }

    deinit { SystemCalls.close(wake) }

    func start() throws {
        try BackgroundThread.start("stream") { [self] in main() }
    }

    /// Until the first proof the age of what stands at the destination counts. Looked at by our thread: the file system may hang.
    private func readState() {
        if let replica = specification.localReplica, let state = try? MirrorState.read(replica: replica) {
            let age = max(0, SystemCalls.realTimeNanoseconds() - Int64(clamping: state.time))
            board.withLock {
                $0.version = state.snapshot.version
                $0.proven = SystemCalls.monotonicNanoseconds() - age
            }
        }
    }

    // MARK: Asked by others

    func stop() {
        board.withLock { $0.wantsStop = true }
        SystemCalls.signal(wake)
    }

    /// Opens both sides again, and ends a pause.
    func reload() {
        board.withLock { $0.wantsReload = true }
        SystemCalls.signal(wake)
    }

    /// Asks the thread for a fresh report; whether it came is seen on the board.
    func ask() {
        board.withLock {
            $0.wantsReport = true
            $0.asked = SystemCalls.monotonicNanoseconds()
        }
        SystemCalls.signal(wake)
    }

    private var wantsStop: Bool { board.withLock { $0.wantsStop } }

    // MARK: The thread

    private func main() {
        readState()
        var pause = specification.retryMin
        while !wantsStop {
            begin()
            do {
                if let folderBase, !folderBase.isEmpty {
                    try StreamJob.makeFolders(of: specification.target.text, below: folderBase)
                }
                try job().run()
                if let left = ownLeaving, !wantsStop {
                    waitForChange(left)
                    pause = specification.retryMin
                    continue
                }
            } catch is Stopped {} catch {
                // What ends because it was told to has not failed.
                if !wantsStop { fail(error, pause) }
            }
            if wantsStop { break }
            let succeeded = board.withLock { $0.hasSucceeded }
            if succeeded { pause = specification.retryMin }
            sleep(pause)
            pause = min(specification.retryMax, pause * 2)
        }
        board.withLock {
            $0.phase = .stopped
            $0.isEnded = true
        }
        onEnd()
    }

    private func begin() {
        ownReport = StreamJob.Report()
        ownIsReported = false
        ownLeaving = nil
        ownLastActivity = SystemCalls.monotonicNanoseconds()
        ownLimitedBytes = 0
        ownImageBytes = 0
        board.withLock { board in
            if board.phase != .left { board.phase = .starting }
            board.nextTry = nil
            board.hasSucceeded = false
            board.answered = SystemCalls.monotonicNanoseconds()
            board.carryOver()
        }
    }

    private func job() -> StreamJob {
        StreamJob(
            specification: specification,
            control: { [unowned self] descriptors, milliseconds in request(descriptors, milliseconds) },
            onReport: { [unowned self] report in take(report) },
            onMessage: { [log, name = specification.name] text in log.write(.info, text, stream: name) },
            onProgress: { [unowned self] progress in try note(progress) },
            onPiece: { [unowned self] count in
                board.withLock { $0.answered = SystemCalls.monotonicNanoseconds() }
                try limit(count)
            })
    }

    private func fail(_ error: any Error, _ pause: Duration) {
        let text = Text.oneLine(Failure(error).message ?? "\(error)")
        let isNew = board.withLock { board in
            let isNew = board.phase != .failed && board.lastError != text || board.failuresInRow == 0
            board.wake(at: SystemCalls.monotonicNanoseconds())
            board.phase = .failed
            board.lastError = text
            board.lastErrorTime = SystemCalls.realTimeNanoseconds()
            board.failuresInRow += 1
            board.failureCount += 1
            board.nextTry = SystemCalls.monotonicNanoseconds() + pause.nanoseconds
            return isNew
        }
        // The same again and again is not worth a line each time.
        log.write(
            isNew ? .error : .debug, "\(text); next try in \(Units.text(seconds: Double(pause.nanoseconds) / 1e9))",
            stream: specification.name, event: "failure")
        onEvent(self, .failure)
    }

    /// Sleeps until the next try, or until somebody wants something.
    private func sleep(_ pause: Duration) {
        let end = SystemCalls.monotonicNanoseconds() + pause.nanoseconds
        while true {
            let (stops, reloads) = board.withLock { board in
                defer {
                    board.wantsReload = false
                    board.wantsReport = false
                    board.answered = SystemCalls.monotonicNanoseconds()
                }
                return (board.wantsStop, board.wantsReload)
            }
            let left = end - SystemCalls.monotonicNanoseconds()
            if stops || reloads || left <= 0 { return }
            _ = poll(for: [], Int32(clamping: left / 1_000_000 + 1))
        }
    }

    /// Waits for descriptors and for our own; true where one of the others is readable.
    private func poll(for descriptors: [Int32], _ milliseconds: Int32) -> Bool {
        var requests = ([wake] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard Glibc.poll(&requests, nfds_t(requests.count), milliseconds) > 0 else { return false }
        if requests[0].revents != 0 { SystemCalls.reset(wake) }
        return requests.dropFirst().contains { $0.revents != 0 }
    }

    // MARK: Within a run

    /// What the loops of Replication ask at every step, and how they wait (`MirrorFollower.Control`).
    private func request(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        if let request = pending() { return request }
        let now = SystemCalls.monotonicNanoseconds()
        if milliseconds == 0 {
            // How much was carried over is told by a report only.
            guard ownLimit != nil else { return nil }
            ownHasToAsk.toggle()
            if !ownHasToAsk { return .status }
            if ownReport.byteCount > ownLimitedBytes {
                let count = ownReport.byteCount - ownLimitedBytes
                ownLimitedBytes = ownReport.byteCount
                try? limit(count)
            }
            return pending()
        }
        // Who waits for an answer of the other side asks for a second at most.
        let isIdle = milliseconds > 1000 && !descriptors.isEmpty
        var milliseconds = milliseconds
        if isIdle {
            if !ownIsReported {
                ownIsReported = true
                return .status
            }
            if let idle = specification.leaveWhenIdle {
                let left = ownLastActivity + idle.nanoseconds - now
                if left <= 0 {
                    if let request = leave() { return request }
                } else {
                    milliseconds = min(milliseconds, Int32(clamping: left / 1_000_000 + 1))
                }
            }
        } else if milliseconds >= 100, now - ownLastReport > 1_000_000_000 {
            // Something is in the way, and what it is shall be seen.
            return .status
        }
        // A pause before the next try.
        let isPause = milliseconds >= 100 && descriptors.isEmpty
        board.withLock { board in
            if isIdle { board.park() }
            if isPause { board.nextTry = now + Int64(milliseconds) * 1_000_000 }
        }
        let happened = poll(for: descriptors, milliseconds)
        if happened {
            ownIsReported = false
            ownLastActivity = SystemCalls.monotonicNanoseconds()
        }
        board.withLock { board in
            board.wake(at: SystemCalls.monotonicNanoseconds())
            if isPause { board.nextTry = nil }
        }
        return pending()
    }

    private func pending() -> MirrorFollower.Request? {
        board.withLock { board in
            if board.wantsStop { return .stop }
            if board.wantsReload {
                board.wantsReload = false
                return .reload
            }
            if board.wantsReport {
                board.wantsReport = false
                return .status
            }
            return nil
        }
    }

    /// Ends the run, if nothing is left to do: the file is looked at first, then once more whether all is carried over; what is
    /// committed between is found changed afterwards.
    private func leave() -> MirrorFollower.Request? {
        guard let source = specification.localSource else { return nil }
        if ownLeaving == nil {
            ownLeaving = SourceFingerprint(source)
            return ownLeaving == nil ? nil : .status
        }
        if ownReport.isEqual { return .stop }
        ownLeaving = nil
        ownLastActivity = SystemCalls.monotonicNanoseconds()
        return nil
    }

    private func take(_ report: StreamJob.Report) {
        let now = SystemCalls.monotonicNanoseconds()
        ownReport = report
        ownLastReport = now
        let (event, began) = board.withLock { board in board.take(report, at: now) }
        if began {
            log.write(
                .info, "at version \(report.version ?? 0) of \(specification.source)", stream: specification.name, event: "equal")
        }
        if let event { onEvent(self, event) }
    }

    private func note(_ progress: Mirror.Progress) throws {
        let stops = board.withLock { board in
            board.progress = progress
            board.phase = .copying
            board.answered = SystemCalls.monotonicNanoseconds()
            return board.wantsStop
        }
        if stops { throw Stopped() }
        let count = progress.bytesDone - min(ownImageBytes, progress.bytesDone)
        ownImageBytes = progress.bytesDone
        try limit(count)
    }

    private func limit(_ count: Int) throws {
        guard var wait = ownLimit?.take(count, at: SystemCalls.monotonicNanoseconds()) else { return }
        while wait > 0 {
            _ = poll(for: [], Int32(clamping: wait / 1_000_000 + 1))
            if wantsStop { throw Stopped() }
            wait = ownLimit?.take(0, at: SystemCalls.monotonicNanoseconds()) ?? 0
        }
    }

    // MARK: Outside the session

    /// How often the file is looked at while its session is left.
    private static let lookMilliseconds: Int32 = 1000

    private func waitForChange(_ left: SourceFingerprint) {
        guard let source = specification.localSource else { return }
        log.write(.debug, "nothing happens: the session of \(source) is left", stream: specification.name, event: "left")
        while true {
            let isSame = SourceFingerprint(source) == left
            let now = SystemCalls.monotonicNanoseconds()
            let goesOn = board.withLock { board in
                board.phase = .left
                board.answered = now
                board.wantsReport = false
                if isSame { board.proven = now }
                defer { board.wantsReload = false }
                return isSame && !board.wantsStop && !board.wantsReload
            }
            if !goesOn { return }
            _ = poll(for: [], Self.lookMilliseconds)
        }
    }
}

/// What tells, without joining its session, that something was committed to a file: which file it is, and its header, which every
/// commit changes (file-format-1 2).
struct SourceFingerprint: Equatable {
    private var device: UInt64, inode: UInt64, size: Int
    private var header: [UInt8]

    /// Nil where the file cannot be read.
    init?(_ path: String) {
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return nil }
        defer { SystemCalls.close(descriptor) }
        guard let status = try? SystemCalls.status(descriptor, path: path) else { return nil }
        (device, inode, size) = (status.device, status.inode, status.size)
        // Header and, of an encrypted file, the checksums of its first pages.
        var bytes = [UInt8](repeating: 0, count: 4096)
        guard let count = try? bytes.withUnsafeMutableBytes({ try SystemCalls.read(descriptor, into: $0, at: 0, path: path) })
        else { return nil }
        header = Array(bytes[..<min(count, bytes.count)])
    }
}

/// So many bytes a second, over any second.
struct RateLimit {
    let bytesPerSecond: Int
    /// When what was taken so far is paid for.
    private var paid: Int64 = 0

    init(bytesPerSecond: Int) { self.bytesPerSecond = bytesPerSecond }

    /// Takes `count` bytes; returns how many nanoseconds must pass before more may be taken.
    mutating func take(_ count: Int, at now: Int64) -> Int64 {
        paid = max(paid, now - 1_000_000)
        let cost = Double(count) / Double(bytesPerSecond) * 1e9
        paid += Int64(min(cost, 1e15))
        return max(0, paid - now)
    }
}

extension Duration {
    /// Clamped.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return Int64(clamping: min(max(seconds, -9_000_000_000), 9_000_000_000) * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
