import Glibc
import Notifier
import SharedStore
import SystemCalls

/// A mirror that ships every version of a source to a replica, until it is told to stop (mirroring.md 3).
///
/// A reader in the source's session that holds V1, the version that the replica stands at, and, while it ships, V2. It never writes to
/// the source's file and never takes its write lock. Idle, it sleeps until the source's FIFO, or the notifier's slow look, says
/// that there is something new.
///
/// Used by one thread, which `run` keeps until the end. Whoever runs it tells it what to do by `Control`.
public final class MirrorFollower {
    public enum Request: Sendable { case stop, reload, status }

    /// How the follower waits: until a descriptor is readable, a request comes, or the time is over. With 0 milliseconds it only asks.
    public typealias Control = (_ descriptors: [Int32], _ milliseconds: Int32) -> Request?

    /// A picture of one moment.
    public struct Status: Sendable, Equatable {
        public var source: String
        public var destination: String
        /// Nil while there is no connection to the source.
        public var sourceVersion: UInt64?
        public var version: UInt64
        public var stepCount: Int
        public var byteCount: Int
        public var imageCount: Int
        /// What it waits for, if anything.
        public var waitsFor: String?
    }

    private let source: String
    private let destination: String
    private let options: Mirror.Options
    private let onStatus: (Status) -> Void
    private let control: Control
    private let label: String
    private var forces: Bool
    private var connection: Connection?
    private var state: MirrorState?
    private var stepCount = 0, byteCount = 0, imageCount = 0
    private var waitsFor: String?
    private var stopped = false, reloads = false

    /// What is open while source and replica are both at hand.
    private struct Connection {
        var source: Participant
        var sourceStatus: SystemCalls.Status
        var destinationStatus: SystemCalls.Status
        var subscription: Subscription
        var descriptor: Int32
        var applier: Applier
        /// V1.
        var base: HeldSnapshot
    }

    /// Why `follow` has ended.
    private enum End { case stop, reload, sourceChanged, destinationGone, pinLimit }

    /// - Parameters:
    ///   - onStatus: called for `Request.status`.
    ///   - control: see `Control`; called by the thread in `run`.
    public init(
        source: String, destination: String, options: Mirror.Options = Mirror.Options(), onStatus: @escaping (Status) -> Void = { _ in },
        control: @escaping Control
    ) {
        self.source = source
        self.destination = destination
        self.options = options
        self.onStatus = onStatus
        self.control = control
        forces = options.force
        let name = destination.split(separator: "/").last.map(String.init) ?? ""
        let path = Array(FileIdentity.absolutePath(destination).utf8)
        let number = path.withUnsafeBytes { Checksum.xxh3($0) }
        label = "mirror to \(String(name.unicodeScalars.prefix(9))) \(String(number, radix: 16))"
    }

    // MARK: The outer loop

    /// Mirrors until a request says stop.
    ///
    /// - Throws: `MirrorError` where a person must decide, and what cannot be helped by waiting.
    public func run() throws {
        try Mirror.checkPair(source, destination)
        let lock = try MirrorLock(destination: destination, purpose: "mirror of \(source)")
        defer { withExtendedLifetime(lock) {} }
        defer { disconnect() }
        var pause = Pause()
        while !stopped {
            do {
                try connect()
                pause = Pause()
                switch try follow() {
                case .stop: return
                case .reload: options.onMessage("opening source and replica again")
                case .sourceChanged: options.onMessage("another file stands at \(source), or none")
                case .destinationGone: options.onMessage("\(destination) was removed")
                case .pinLimit:
                    options.onMessage("the source's version is let go: the replica could not be written to for too long")
                    connection?.base.letGo()
                }
                disconnect()
            } catch let error where isTransient(error) {
                disconnect()
                say("\(error)")
                wait(pause.next())
            }
        }
    }

    /// What may be over when it is tried again.
    private func isTransient(_ error: any Error) -> Bool {
        if stopped { return false }
        switch error {
        case let error as SystemError: return error.isOutOfSpace || error.code == ENOENT && state != nil
        case SessionError.deadlineExceeded, SessionError.incompatibleSession, MirrorError.inUse: return true
        case let error as OpenError:
            // A source that is gone, or in the making, is waited for once there is a replica of it.
            return state != nil && FileIdentity.isSame(error.path, source) || state != nil && !MirrorImage.exists(source)
        default: return false
        }
    }

    /// Waiting times that grow.
    private struct Pause {
        private var milliseconds: Int32 = 100
        mutating func next() -> Int32 {
            defer { milliseconds = min(10_000, milliseconds * 2) }
            return milliseconds
        }
    }

    /// Tells it once, and in the status as long as it lasts.
    private func say(_ text: String) {
        if waitsFor != text { options.onMessage(text) }
        waitsFor = text
    }

    /// Waits, obeying requests; ends early for `stop` and `reload`, and where one of `descriptors` is readable.
    private func wait(_ milliseconds: Int32, _ descriptors: [Int32] = []) {
        switch control(descriptors, milliseconds) {
        case .stop: stopped = true
        case .reload: reloads = true
        case .status: onStatus(status())
        case nil: break
        }
    }

    public func status() -> Status {
        Status(
            source: source, destination: destination, sourceVersion: try? connection?.source.newestVersion(.after(.milliseconds(200))),
            version: state?.snapshot.version ?? 0, stepCount: stepCount, byteCount: byteCount, imageCount: imageCount, waitsFor: waitsFor)
    }

    // MARK: Connecting

    /// Ends up with V1 held at the source and the replica standing at it, by going on from where the replica stands or by an image.
    private func connect() throws {
        var standing = try Mirror.standing(destination, source, force: forces)
        if standing == .ours, state == nil { state = try? MirrorState.read(replica: destination) }
        let participant = try SessionMembership.join(source, label: label, pinGrace: options.pinGrace)
        var keepsParticipant = false
        defer { if !keepsParticipant { try? participant.close(force: true, leavingPins: false) } }
        let status = try SystemCalls.status(path: source)
        var opened: (Applier, HeldSnapshot)?
        if standing == .ours {
            do { opened = try resume(participant) } catch let error as MirrorError {
                guard forces, case .diverged = error else { throw error }
                // What somebody else has made of it is set aside.
                standing = .foreign
            }
        }
        let (applier, base) = try opened ?? image(participant, status, standing)
        do {
            let subscription = Notifier.shared.subscribe(
                path: source, options: Notifier.Options(lastSeenVersion: base.snapshot.version, onWarning: { [options] in options.onMessage("\($0)") }),
                newestVersion: { (try? participant.newestVersion(.after(.milliseconds(200)))) ?? 0 })
            connection = Connection(
                source: participant, sourceStatus: status, destinationStatus: try SystemCalls.status(path: destination),
                subscription: subscription, descriptor: try subscription.eventDescriptor(), applier: applier, base: base)
        } catch {
            applier.close()
            throw error
        }
        keepsParticipant = true
        forces = false
        waitsFor = nil
        try participant.sweepPredecessors()
    }

    /// Goes on where the replica stands; nil where a new image is needed (mirroring.md 8.1).
    private func resume(_ participant: Participant) throws -> (Applier, HeldSnapshot)? {
        let applier = try Applier(destination, label: label)
        do {
            let position = try applier.position()
            if let lock = try? participant.acquire(.live, version: position.version) {
                let held = try HeldSnapshot(participant, lock)
                if held.snapshot == position, try applier.holdsTheSame(as: held) {
                    adopt(position)
                    return (applier, held)
                }
            }
            if let state, state.snapshot == position {
                options.onMessage("version \(position.version) is no longer held at \(source): a new image is made")
                applier.close()
                return nil
            }
            throw MirrorError.diverged(
                destination: destination,
                reason: "it is at version \(position.version), the mirror had left version \(state?.snapshot.version ?? 0), and the source has no such version")
        } catch {
            applier.close()
            throw error
        }
    }

    /// The replica's content was found equal to the source's at `position`.
    private func adopt(_ position: Snapshot) {
        guard var known = state, known.snapshot != position else { return }
        // Killed between publishing a version and noting it: what led there is not known, so a new line begins.
        known.lineage = (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max))
        known.sequence = 0
        known.snapshot = position
        known.chain = Digest()
        state = known
        noteState()
    }

    private func image(_ participant: Participant, _ status: SystemCalls.Status, _ standing: Mirror.Standing) throws -> (Applier, HeldSnapshot) {
        // Before a long copy is made for nothing.
        if standing != .absent, try StoreFiles.withExclusiveAccess(destination, {}) == nil {
            throw MirrorError.inUse(destination: destination, holders: MirrorImage.holders(destination))
        }
        let held = try HeldSnapshot(participant, try participant.acquireNewest(.live))
        let (_, fresh) = try Mirror.image(held.view, status: status, source: source, destination, standing, .follow, options)
        imageCount += 1
        state = fresh
        let applier = try Applier(destination, label: label)
        do {
            let position = try applier.position()
            if position != held.snapshot {
                throw MirrorError.diverged(destination: destination, reason: "it was written to at once: it is at version \(position.version)")
            }
            return (applier, held)
        } catch {
            applier.close()
            throw error
        }
    }

    private func disconnect() {
        guard let open = connection else { return }
        open.subscription.cancel()
        open.applier.close()
        try? open.source.close(force: true, leavingPins: options.pinGrace > .zero && !open.base.isLetGo)
        connection = nil
        reloads = false
    }

    // MARK: Shipping

    private func follow() throws -> End {
        var stepsSinceCheck = 0
        var isFirst = true
        var outOfSpaceSince: Int64?
        var gatePause: Int32 = 0
        while true {
            wait(0)
            if stopped { return .stop }
            if reloads { return .reload }
            guard let open = connection else { return .stop }
            let next = try HeldSnapshot(open.source, try open.source.acquireNewest(.live))
            if next.snapshot.version == open.base.snapshot.version {
                waitsFor = nil
                if let end = changed(open) { return end }
                wait(MirrorFollower.idleMilliseconds, [open.descriptor])
                _ = open.subscription.takeEvents()
                continue
            }
            if try !isDurable(next, open.source) {
                if gatePause == 0 { usleep(200) } else { wait(gatePause) }
                gatePause = min(gatePause + 1, gatePause < 5 ? 5 : 100)
                continue
            }
            gatePause = 0
            if let end = changed(open) { return end }
            let seen = UInt64(SystemCalls.realTimeNanoseconds())
            let step = try MirrorStep(open.base, next, source: source, checks: isFirst || stepsSinceCheck >= options.checkInterval)
            stepsSinceCheck = isFirst || stepsSinceCheck >= options.checkInterval ? 0 : stepsSinceCheck + 1
            do {
                guard try ship(step) else { continue }
            } catch let error as SystemError where error.isOutOfSpace {
                let now = SystemCalls.monotonicNanoseconds()
                let since = outOfSpaceSince ?? now
                outOfSpaceSince = since
                say("\(error); trying again until there is room")
                if now - since > Int64(clamping: options.pinLimit.components.seconds) * 1_000_000_000 { return .pinLimit }
                wait(1000)
                continue
            }
            outOfSpaceSince = nil
            isFirst = false
            waitsFor = nil
            note(step, seen)
            // V2 becomes V1.
            connection?.base = next
        }
    }

    /// The notifier tells of everything; this is only how often we look by ourselves.
    private static let idleMilliseconds: Int32 = 5000

    /// Another file stands at one of the paths, or none.
    private func changed(_ open: Connection) -> End? {
        func isStill(_ path: String, _ status: SystemCalls.Status) -> Bool {
            guard let now = try? SystemCalls.status(path: path) else { return false }
            return now.inode == status.inode && now.device == status.device
        }
        if !isStill(source, open.sourceStatus) { return .sourceChanged }
        return isStill(destination, open.destinationStatus) ? nil : .destinationGone
    }

    /// Whether a version that the list has would survive the death of everybody (mirroring.md 3.1).
    private func isDurable(_ version: HeldSnapshot, _ participant: Participant) throws -> Bool {
        guard participant.options.durability == .full else { return true }
        let top = try participant.file.currentHeader().liveTopRef
        if top == UInt64(version.snapshot.topRef) { return true }
        // Ahead of the list: flipped, and about to be published. Behind it, or in the midst of being written: not yet.
        guard let found = try? participant.file.inspect(), found.snapshot.version > version.snapshot.version else { return false }
        return try participant.file.currentHeader().liveTopRef == UInt64(found.snapshot.topRef)
    }

    /// Applies the step, waiting for readers of the replica that are in its way. False where it was given up for a request, or for a
    /// file that changed.
    private func ship(_ step: MirrorStep) throws -> Bool {
        guard let open = connection else { return false }
        let begin = SystemCalls.monotonicNanoseconds()
        var sleep: UInt32 = 50
        var nextRing = begin, ringInterval: Int64 = 20_000_000
        var nextCure = begin + 5_000_000_000, cureInterval: Int64 = 5_000_000_000
        while true {
            guard case .blocked(let versions) = try open.applier.attempt(step) else { return true }
            let now = SystemCalls.monotonicNanoseconds()
            if now >= nextRing {
                open.applier.ring()
                nextRing = now + ringInterval
                ringInterval = min(2 * ringInterval, 1_000_000_000)
            }
            if now - begin > 1_000_000_000 { say("waiting for readers of \(destination): \(blockers(open.applier, versions))") }
            if now >= nextCure {
                if try open.applier.restartSession() {
                    options.onMessage("\(destination): what a killed reader had left was cleared away")
                    continue
                }
                cureInterval = min(2 * cureInterval, 60_000_000_000)
                nextCure = now + cureInterval
            }
            if sleep < 2000 { usleep(sleep) } else { wait(2) }
            sleep = min(2 * sleep, 2000)
            if stopped || reloads { return false }
        }
    }

    private func blockers(_ applier: Applier, _ versions: [UInt64]) -> String {
        let oldest = versions.min() ?? 0
        let holders = (try? applier.participant.status(.after(.milliseconds(200))))?.holders ?? ""
        return "version \(oldest) is held" + (holders.isEmpty ? "" : "; \(holders)")
    }

    // MARK: State

    private func note(_ step: MirrorStep, _ seen: UInt64) {
        stepCount += 1
        byteCount += step.byteCount
        guard var known = state else { return }
        var head = SegmentHead()
        let table = RangeTable.encode(step.ranges)
        head.lineage = known.lineage
        known.sequence += 1
        head.sequence = known.sequence
        head.parent = step.parent
        head.this = step.this.snapshot
        head.historyBase = step.historyBase ?? 0
        head.time = seen
        head.parentChain = known.chain
        head.rangeCount = UInt32(clamping: step.ranges.count)
        head.rangeTableByteCount = table.count
        head.plainByteCount = step.byteCount
        let base = UnsafeRawPointer(step.this.memory.state.pointee.base)
        known.chain = Segment.chain(head, table: table) { hash in
            for range in step.ranges { hash.update(UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)) }
        }
        known.snapshot = step.this.snapshot
        known.time = seen
        state = known
        noteState()
    }

    /// Where the state cannot be written the replica is ahead of it, which the next start finds out by comparing bytes.
    private func noteState() {
        do { try state?.write(replica: destination, durably: false) } catch { say("the state of the mirror cannot be written: \(error)") }
        KillPoint.reach("apply.noted")
    }
}
