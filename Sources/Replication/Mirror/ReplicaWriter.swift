import Glibc
import SharedStore
import SystemCalls

/// Where a replica stands, as its own side tells.
struct ReplicaPosition: Equatable {
    var snapshot: Snapshot
    /// The state beside the replica tells of this very version. Where it does not, a mirror was killed between publishing a
    /// version and noting it, or somebody else has written.
    var isNoted: Bool
    var line: MirrorLine
}

/// Why a step cannot be applied yet.
enum Obstacle: Equatable {
    /// Readers of the replica hold versions that the step would hurt.
    case readers(String)
    /// There is no room on the replica's disk.
    case space(String)

    var text: String {
        switch self {
        case .readers(let text), .space(let text): text
        }
    }
}

/// The replica's side of a mirror, whether the source is at hand or at the other end of a wire: holds the right to write, knows
/// and notes what it stands at, takes images and steps.
///
/// Used by one thread.
final class ReplicaWriter {
    let path: String
    /// As the replica's state names it.
    let source: String
    let options: Mirror.Options
    private let label: String
    private let purpose: String
    private var lock: MirrorLock
    private(set) var applier: Applier?
    private(set) var state: MirrorState?
    private var forces: Bool
    /// The content was compared with the source's at the present version.
    private var isConfirmed = false
    /// Why the state could not be written the last time.
    private var stateTrouble: String?
    private var fileStatus: SystemCalls.Status?
    /// The replica's version when an image was prepared for; nil where there is none of ours.
    private(set) var replacedSnapshot: Snapshot?

    /// - Throws: `MirrorError.busy` where another mirror is at work on the replica.
    init(_ path: String, source: String, options: Mirror.Options, purpose: String? = nil) throws {
        self.path = path
        self.source = source
        self.options = options
        forces = options.force
        label = Self.label(path)
        try MirrorPlace.check(path)
        self.purpose = purpose ?? "mirror of \(source)"
        lock = try MirrorLock(destination: path, purpose: self.purpose)
    }

    /// Tells participants of mirrors apart; the same for each mirror of one replica.
    static func label(_ destination: String) -> String {
        let name = destination.split(separator: "/").last.map(String.init) ?? ""
        let number = Array(FileIdentity.absolutePath(destination).utf8).withUnsafeBytes { Checksum.xxh3($0) }
        return "mirror to \(String(name.unicodeScalars.prefix(9))) \(String(number, radix: 16))"
    }

    func disconnect() {
        applier?.close()
        applier = nil
    }

    /// The file at the replica's path is another one, or gone.
    var wasReplaced: Bool {
        guard let fileStatus else { return false }
        guard let now = try? SystemCalls.status(path: path) else { return true }
        return now.inode != fileStatus.inode || now.device != fileStatus.device
    }

    var hasReplica: Bool { (try? Mirror.standing(path, source, force: forces)) == .ours }

    /// Opens the replica and says where it stands; nil where there is none, or one that is to be set aside.
    ///
    /// - Throws: `MirrorError.notThisMirror` where something else stands there, `.unreadable` where our key does not open it.
    func connect() throws -> ReplicaPosition? {
        disconnect()
        isConfirmed = false
        guard try Mirror.standing(path, source, force: forces) == .ours else { return nil }
        if state == nil { state = try? MirrorState.read(replica: path) }
        return try openIfReadable()
    }

    /// As `open`; nil where the file cannot be opened with our key, and force is to set it aside.
    private func openIfReadable() throws -> ReplicaPosition? {
        do { return try open() } catch {
            guard let trouble = Mirror.contentTrouble(error, path, options.destinationKey) else { throw error }
            guard forces else { throw MirrorError.unreadable(destination: path, reason: trouble) }
            return nil
        }
    }

    private func open() throws -> ReplicaPosition {
        let opened = try Applier(path, label: label, key: options.destinationKey)
        do {
            let snapshot = try opened.position()
            fileStatus = try SystemCalls.status(path: path)
            applier = opened
            return position(snapshot)
        } catch {
            opened.close()
            throw error
        }
    }

    private func position(_ snapshot: Snapshot) -> ReplicaPosition {
        ReplicaPosition(snapshot: snapshot, isNoted: state?.snapshot == snapshot, line: state?.line ?? MirrorLine.new())
    }

    /// The replica's content was found equal to the source's at `snapshot`.
    ///
    /// - Returns: the line of the replica from now on: a new one where it is not known what led to this version.
    func confirmed(at snapshot: Snapshot) -> MirrorLine {
        isConfirmed = true
        if let state, state.snapshot == snapshot { return state.line }
        let line = MirrorLine.new()
        if var known = state {
            known.line = line
            known.snapshot = snapshot
            known.replaced = nil
            state = known
            noteState()
        }
        return line
    }

    // MARK: Images

    /// What must be known before an image replaces the file at the replica's path. The replica is closed here from now on.
    ///
    /// - Throws: `MirrorError.diverged` where somebody else has changed the replica; it is left as it is.
    func prepareForImage() throws -> Mirror.Standing {
        // The replica may have been removed with all that lies beside it, the right to write to it too.
        if !lock.isStanding { lock = try MirrorLock(destination: path, purpose: purpose) }
        let standing = try Mirror.standing(path, source, force: forces)
        var isOurs = true
        replacedSnapshot = nil
        if standing == .ours {
            let snapshot: Snapshot?
            if let applier { snapshot = try applier.position() } else { snapshot = try openIfReadable()?.snapshot }
            isOurs = snapshot.map { isConfirmed || state?.tells(of: $0) == true } ?? false
            replacedSnapshot = isOurs ? snapshot : nil
            disconnect()
            if let snapshot, !isOurs && !forces {
                throw MirrorError.diverged(
                    destination: path,
                    reason:
                        "it is at version \(snapshot.version), the mirror had left version \(state?.snapshot.version ?? 0), and the source has no "
                        + "such version")
            }
        }
        disconnect()
        // What somebody else has made of it is set aside.
        return standing == .ours && !isOurs ? .foreign : standing
    }

    /// Nobody may have the replica open when an image takes its place; asked before a long copy is made for nothing.
    func requireUnused(_ standing: Mirror.Standing) throws {
        if standing == .ours && !forces { try MirrorPlace.requireOneName(path) }
        if standing != .absent, try StoreFiles.withExclusiveAccess(path, {}) == nil {
            ReplacementWish.make(path)
            throw MirrorError.inUse(destination: path, holders: MirrorImage.holders(path))
        }
    }

    /// An image stands at the replica's path, with this state.
    func installed(_ fresh: MirrorState) throws -> ReplicaPosition {
        state = fresh
        state?.replaced = nil
        let found = try open()
        guard found.snapshot == fresh.snapshot else {
            disconnect()
            throw MirrorError.diverged(
                destination: path, reason: "it was written to at once: it is at version \(found.snapshot.version)")
        }
        isConfirmed = true
        forces = false
        return found
    }

    // MARK: Steps

    /// Applies a step, waiting for readers that are in its way and for room on the disk.
    ///
    /// - Parameters:
    ///   - line: of the step, where it came as a segment; else it is worked out here.
    ///   - pause: waits so many milliseconds and says why; false gives the step up.
    /// - Returns: false where it was given up.
    /// - Throws: `MirrorError.diverged`, and nothing was written; `SystemError` other than for lack of space.
    func apply(
        _ step: MirrorStep, seen: UInt64, line: MirrorLine? = nil, pause: (_ milliseconds: Int32, _ why: Obstacle?) throws -> Bool
    ) throws -> Bool {
        guard let applier else { preconditionFailure("a step can be applied between connect and disconnect only") }
        let begin = SystemCalls.monotonicNanoseconds()
        var sleep: UInt32 = 50
        var nextRing = begin, ringInterval: Int64 = 20_000_000
        var nextCure = begin + 5_000_000_000, cureInterval: Int64 = 5_000_000_000
        while true {
            let blockers: [UInt64]
            do {
                switch try applier.attempt(step) {
                case .applied:
                    note(step, seen, line)
                    return true
                case .blocked(let versions): blockers = versions
                }
            } catch let error as SystemError where error.isOutOfSpace {
                if try !pause(1000, .space("\(error); trying again until there is room")) { return false }
                continue
            }
            let now = SystemCalls.monotonicNanoseconds()
            if now >= nextRing {
                applier.ring()
                nextRing = now + ringInterval
                ringInterval = min(2 * ringInterval, 1_000_000_000)
            }
            if now >= nextCure {
                if try applier.restartSession() {
                    options.onMessage("\(path): what a killed reader had left was cleared away")
                    continue
                }
                cureInterval = min(2 * cureInterval, 60_000_000_000)
                nextCure = now + cureInterval
            }
            let why =
                now - begin > 1_000_000_000
                ? Obstacle.readers("waiting for readers of \(path): \(holders(applier, blockers))") : nil
            if sleep < 2000 { usleep(sleep) } else if try !pause(2, why) { return false }
            sleep = min(2 * sleep, 2000)
        }
    }

    private func holders(_ applier: Applier, _ versions: [UInt64]) -> String {
        let holders = (try? applier.participant.status(.after(.milliseconds(200))))?.holders ?? ""
        return "version \(versions.min() ?? 0) is held" + (holders.isEmpty ? "" : "; \(holders)")
    }

    private func note(_ step: MirrorStep, _ seen: UInt64, _ line: MirrorLine?) {
        isConfirmed = true
        guard var known = state else { return }
        known.line = line ?? Self.line(of: step, after: known.line, seen: seen)
        known.snapshot = step.this
        known.replaced = nil
        known.time = seen
        state = known
        noteState()
    }

    /// What a segment of this step would say of itself.
    static func line(of step: MirrorStep, after line: MirrorLine, seen: UInt64) -> MirrorLine {
        var head = step.head(following: line, seen: seen)
        let table = RangeTable.encode(step.ranges)
        head.rangeCount = UInt32(clamping: step.ranges.count)
        head.rangeTableByteCount = table.count
        head.plainByteCount = step.byteCount
        head.storedByteCount = head.plainByteCount
        // A source whose bytes could be written can be read.
        let chain = try? Segment.chain(head, table: table) { hash in try step.forEachRange { hash.update($1) } }
        return MirrorLine(lineage: line.lineage, sequence: line.sequence + 1, chain: chain ?? Digest())
    }

    /// Where the state cannot be written the replica is ahead of it, which the next start finds out by comparing bytes.
    private func noteState() {
        do {
            try state?.write(replica: path, durably: false)
            stateTrouble = nil
        } catch {
            // Once, however many steps it lasts.
            let text = "the state of the mirror cannot be written: \(error)"
            if stateTrouble != text { options.onMessage(text) }
            stateTrouble = text
        }
        KillPoint.reach("apply.noted")
    }
}
