import Glibc
import SharedStore
import SystemCalls

/// A mirror that ships every version of a source to a replica, until it is told to stop (mirroring.md 3).
///
/// A reader in the source's session that holds V1, the version that the replica stands at, and, while it ships, V2. It never
/// writes to the source's file and never takes its write lock. Idle, it sleeps until the source's FIFO, or the notifier's slow
/// look, says that there is something new.
///
/// V1 and V2 stay held when the way to the replica breaks off, since the replica may have either when it is reached again; after
/// `Mirror.Options.pinLimit` they are let go, and the replica is brought up to date by its content.
///
/// Used by one thread, which `run` keeps until the end. Whoever runs it tells it what to do by `Control`.
public final class MirrorFollower {
    /// What a follower can be told: to end; to let go of the source and connect anew; to tell its status.
    public enum Request: Sendable { case stop, reload, status }

    /// How the follower waits: until a descriptor is readable, a request comes, or the time is over. With 0 milliseconds it only
    /// asks.
    public typealias Control = (_ descriptors: [Int32], _ milliseconds: Int32) -> Request?

    /// A picture of one moment.
    public struct Status: Sendable, Equatable {
        /// The source, as it is told to people.
        public var source: String
        /// The replica.
        public var destination: String
        /// Nil while there is no connection to the source.
        public var sourceVersion: UInt64?
        /// The version of the replica; 0 before it has one.
        public var version: UInt64
        /// Versions or groups of versions that were carried over since the follower began.
        public var stepCount: Int
        /// Bytes that these steps had.
        public var byteCount: Int
        /// Whole images that were made since the follower began.
        public var imageCount: Int
        /// What it waits for, if anything.
        public var waitsFor: String?
        /// Seconds since what the replica has was seen to be the source's newest version; nil where it never was.
        public var secondsBehind: Double?
    }

    private let source: String
    private let destination: String
    private let options: Mirror.Options
    private let onStatus: (Status) -> Void
    private let control: Control
    private let makeSink: () throws -> any MirrorSink
    /// Ends with the first break of the connection instead of connecting again.
    private let connectsOnce: Bool
    private let label: String
    private var side: SourceSession?
    private var sink: (any MirrorSink)?
    private var hasReplica = false
    private var version: UInt64 = 0
    private var stepCount = 0, byteCount = 0, imageCount = 0
    private var waitsFor: String?
    private var equalSince: Int64?
    /// The version of the replica that was told to be held at the source no more: told once, however often the image fails.
    private var missed: Snapshot?
    private var stopped = false, reloads = false
    private var attempts: Attempts
    /// The way to the replica was open once: what is refused now may be allowed again.
    private var wasConnected = false
    /// Since when the replica cannot be written to, and whether that was too long.
    private var unwritableSince: Int64?
    private var limitReached = false

    /// Why `follow` has ended.
    private enum End { case stop, reload, sourceChanged, destinationGone, pinLimit }

    /// A mirror to a file on this machine.
    ///
    /// - Parameters:
    ///   - onStatus: called for `Request.status`.
    ///   - control: see `Control`; called by the thread in `run`.
    public convenience init(
        source: String, destination: String, options: Mirror.Options = Mirror.Options(),
        onStatus: @escaping (Status) -> Void = { _ in },
        control: @escaping Control
    ) {
        self.init(
            source: source, name: destination, label: ReplicaWriter.label(destination), options: options,
            sink: {
                try Mirror.checkPair(source, destination)
                return try LocalSink(source: source, destination: destination, options: options)
            }, onStatus: onStatus, control: control)
    }

    /// - Parameters:
    ///   - label: the same for each mirror to one place: it may take over what a predecessor held.
    ///   - sink: makes the sink when `run` begins.
    init(
        source: String, name: String, label: String, options: Mirror.Options, connectsOnce: Bool = false,
        sink: @escaping () throws -> any MirrorSink, onStatus: @escaping (Status) -> Void = { _ in }, control: @escaping Control
    ) {
        self.source = source
        destination = name
        self.label = label
        self.options = options
        attempts = Attempts(limit: options.attemptsMax)
        self.connectsOnce = connectsOnce
        makeSink = sink
        self.onStatus = onStatus
        self.control = control
    }

    // MARK: The outer loop

    /// Mirrors until a request says stop.
    ///
    /// - Throws: `MirrorError` where a person must decide, and what cannot be helped by waiting.
    public func run() throws {
        let sink = try makeSink()
        self.sink = sink
        sink.isStopped = { [unowned self] in
            wait(0)
            return stopped
        }
        defer {
            sink.disconnect()
            closeSource()
        }
        var pause = Pause()
        while !stopped {
            do {
                guard try connect(sink) else {
                    if limitReached { letGo() }
                    sink.disconnect()
                    closeSource()
                    continue
                }
                pause = Pause()
                let end = try follow(sink)
                if connectsOnce { return }
                switch end {
                case .stop: return
                case .reload: options.onMessage("opening source and replica again")
                case .sourceChanged: options.onMessage("another file stands at \(source), or none")
                case .destinationGone: options.onMessage("\(destination) was removed")
                case .pinLimit: letGo()
                }
                sink.disconnect()
                closeSource()
            } catch {
                let failure = error as? TargetFailure
                let cause = failure?.cause ?? error
                guard isTransient(cause) else { throw cause }
                sink.disconnect()
                say("\(cause)")
                noteUnwritable()
                // An image of a replica on this machine stands under its name or is not there: no need to hold what it shows.
                if !(cause is WireError) { side?.pending = nil }
                if limitReached { letGo() }
                // What fails at the replica says nothing of the source; one left at each try would leave a pin each time.
                if failure == nil { closeSource() }
                wait(pause.next())
                if reloads { closeSource() }
            }
        }
    }

    private func letGo() {
        if side?.holds == true {
            options.onMessage("the source's version is let go: the replica could not be written to for too long")
        }
        side?.letGo()
        limitReached = false
        unwritableSince = nil
    }

    private func noteUnwritable() {
        let now = SystemCalls.monotonicNanoseconds()
        let since = unwritableSince ?? now
        unwritableSince = since
        let limit = options.pinLimit.components
        if now - since > Int64(clamping: limit.seconds) * 1_000_000_000 + limit.attoseconds / 1_000_000_000 {
            limitReached = true
        }
    }

    /// What may be over when it is tried again.
    private func isTransient(_ error: any Error) -> Bool {
        if stopped || connectsOnce { return false }
        switch error {
        case let error as SystemError: return error.isOutOfSpace || error.code == ENOENT && hasReplica
        case SessionError.deadlineExceeded, SessionError.incompatibleSession, MirrorError.inUse, MirrorError.replacementPending:
            return true
        case let error as WireError: return (error.isTransient || wasConnected && error.isOfTrust) && attempts.mayTryAgain()
        case OpenError.decryptionFailed, OpenError.notEncrypted: return false
        case let error as OpenError:
            // A source that is gone, or in the making, is waited for once there is a replica of it.
            return hasReplica && FileIdentity.isSame(error.path, source) || hasReplica && !MirrorImage.exists(source)
        default: return false
        }
    }

    /// Tells it once, and in the status as long as it lasts.
    private func say(_ text: String) {
        if waitsFor != text { options.onMessage(text) }
        waitsFor = text
    }

    /// Waits, obeying requests; ends early for `stop` and `reload`, and where one of `descriptors` is readable.
    private func wait(_ milliseconds: Int32, _ descriptors: [Int32] = []) {
        switch Self.waitForRequest(control, descriptors, milliseconds, onStatus: { onStatus(status()) }) {
        case .stop: stopped = true
        case .reload: reloads = true
        case .status, nil: break
        }
    }

    /// To be called by the thread that runs it, from within `control`.
    public func status() -> Status {
        let sourceVersion = side?.newestVersion
        // While something is in the way, what the replica had when it was last reached proves nothing.
        let isKnown = waitsFor == nil && sourceVersion == version
        let behind = isKnown ? 0 : equalSince.map { Double(SystemCalls.monotonicNanoseconds() - $0) / 1e9 }
        return Status(
            source: source, destination: destination, sourceVersion: sourceVersion, version: version, stepCount: stepCount,
            byteCount: byteCount, imageCount: imageCount, waitsFor: waitsFor, secondsBehind: behind)
    }

    // MARK: Connecting

    /// Ends up with V1 held at the source and the replica standing at it, by going on from where the replica stands or by an
    /// image.
    ///
    /// - Returns: false where it was given up for a request.
    private func connect(_ sink: any MirrorSink) throws -> Bool {
        if !hasReplica { hasReplica = sink.hasReplica }
        if side?.isReplaced == true { closeSource() }
        let side =
            try self.side
            ?? SourceSession(
                source, label: label, key: options.sourceKey, pinGrace: options.pinGrace, gatherLimit: options.gatherLimit,
                onMessage: options.onMessage)
        self.side = side
        let position = try TargetFailure.mark { try sink.connect() }
        wasConnected = true
        attempts.succeeded()
        if let position {
            hasReplica = true
            try resume(side, sink, position)
            version = position.snapshot.version
            if side.base == nil, position.isNoted, missed != position.snapshot {
                missed = position.snapshot
                options.onMessage("version \(position.snapshot.version) is no longer held at \(source): a new image is made")
            }
        } else {
            side.base = nil
        }
        side.pending = nil
        if side.base == nil {
            let held = try side.newest()
            // The replica may have it though we never learn so.
            side.pending = (held, UInt64(SystemCalls.realTimeNanoseconds()))
            try side.participant.sweepPredecessors()
            guard try TargetFailure.mark({ try sink.replace(with: held, source: side.status, pause: pause) }) else {
                return false
            }
            (side.base, side.pending) = (held, nil)
            know(held.snapshot, sink.line)
            imageCount += 1
            hasReplica = true
        }
        version = side.base?.snapshot.version ?? 0
        waitsFor = nil
        unwritableSince = nil
        return true
    }

    /// Goes on where the replica stands (mirroring.md 8.1): V1 is what the replica has, if the source still has it. `side.base`
    /// is nil afterwards where an image is needed.
    private func resume(_ side: SourceSession, _ sink: any MirrorSink, _ position: ReplicaPosition) throws {
        let found = try side.takeOver(position.snapshot)
        side.base = nil
        guard let held = found else { return }
        if !(position.isNoted && sink.line == position.line && knownLines[position.snapshot] == position.line) {
            // Held whatever happens to the connection meanwhile.
            side.base = held
            guard try TargetFailure.mark({ try sink.confirm(held) }) else {
                side.base = nil
                return
            }
            know(held.snapshot, sink.line)
        }
        side.base = held
    }

    /// The lines of V1 and V2 as this object has shipped them: a replica that tells the same has the same bytes.
    private var knownLines: [Snapshot: MirrorLine] = [:]

    private func know(_ snapshot: Snapshot, _ line: MirrorLine?) {
        if knownLines.count > 2 { knownLines.removeAll() }
        knownLines[snapshot] = line
    }

    private func closeSource() {
        reloads = false
        side?.close()
        // Numbers tell versions apart only within one session of the source.
        knownLines.removeAll()
        side = nil
    }

    // MARK: Shipping

    private func follow(_ sink: any MirrorSink) throws -> End {
        var stepsSinceCheck = 0
        var isFirst = true
        var gatePause: Int32 = 0
        var gathering = Gathering(limit: options.gatherLimit)
        defer { gathering.yield(false) }
        while true {
            wait(0)
            if stopped { return .stop }
            if reloads { return .reload }
            guard let open = side, let base = open.base else { return .stop }
            let pauseLeft = gathering.wait(at: SystemCalls.monotonicNanoseconds())
            if pauseLeft > 0, open.participant.newestVersionHint != base.snapshot.version {
                wait(pauseLeft)
                continue
            }
            let next = try open.newest()
            let now = SystemCalls.monotonicNanoseconds()
            if next.snapshot.version == base.snapshot.version {
                waitsFor = nil
                equalSince = now
                if open.isReplaced { return .sourceChanged }
                if try !TargetFailure.mark({ try sink.look(newest: next.snapshot.version) }) { return .destinationGone }
                if options.endsWhenEqual { return .stop }
                wait(sink.lookInterval, [open.descriptor] + (sink.descriptor.map { [$0] } ?? []))
                open.takeEvents()
                continue
            }
            if try !next.isDurable(in: open.participant) {
                if gatePause == 0 { usleep(200) } else { wait(gatePause) }
                gatePause = min(gatePause + 1, gatePause < 5 ? 5 : 100)
                continue
            }
            gatePause = 0
            if open.isReplaced { return .sourceChanged }
            if try !TargetFailure.mark({ try sink.look(newest: next.snapshot.version) }) { return .destinationGone }
            let seen = UInt64(SystemCalls.realTimeNanoseconds())
            gathering.stepBegins(versions: next.snapshot.version &- base.snapshot.version, at: now)
            let step = try MirrorStep(base, next, source: source, checks: isFirst || stepsSinceCheck >= options.checkInterval)
            stepsSinceCheck = isFirst || stepsSinceCheck >= options.checkInterval ? 0 : stepsSinceCheck + 1
            // The replica may have it though we never learn so.
            open.pending = (next, seen)
            guard try TargetFailure.mark({ try sink.ship(step, seen: seen, pause: pause) }) else {
                if limitReached { return .pinLimit }
                continue
            }
            isFirst = false
            waitsFor = nil
            unwritableSince = nil
            stepCount += 1
            byteCount += step.byteCount
            version = next.snapshot.version
            know(next.snapshot, sink.line)
            // V2 becomes V1.
            open.base = next
            open.pending = nil
            // What the replica has was the newest version then.
            equalSince = now
            gathering.stepIsDone(at: SystemCalls.monotonicNanoseconds())
        }
    }

    /// How a sink waits: says why, obeys requests, and watches the limit of what the source may be held back.
    private func pause(_ milliseconds: Int32, _ why: Obstacle?) throws -> Bool {
        if let why { say(why.text) }
        if case .space = why { noteUnwritable() } else { unwritableSince = nil }
        wait(milliseconds, milliseconds > 100 ? sink?.descriptor.map { [$0] } ?? [] : [])
        return !stopped && !reloads && !limitReached
    }
}
