import Notifier
import SharedStore
import SystemCalls

/// A source as mirrors and archives take part in its session: a reader that holds one version for long, hears of new ones, and is
/// succeeded by another one that goes on from what it held.
///
/// Used by one thread.
final class SourceSession {
    let path: String
    let participant: Participant
    /// The file that was opened, whatever stands at the path later.
    let status: SystemCalls.Status
    /// Readable when there may be something new.
    let descriptor: Int32
    private let subscription: Subscription
    private let pinGrace: Duration

    /// How often commits that follow each other are looked for, at the least; nobody who commits wakes us then.
    private static let busyMicrosecondsMax: Int64 = 20_000

    /// How often we look though nothing was heard: what is idle costs nothing that could be measured, and a ring that was lost (a
    /// FIFO that somebody has removed) is made up for.
    private static let netMilliseconds = 2000

    /// V1: the version that the target stands at.
    var base: HeldSnapshot?
    /// V2, and when it was seen: handed to the target, which has not said yet that it has it.
    var pending: (held: HeldSnapshot, seen: UInt64)?

    /// No side file is made beside what is no database, or has another key. A file that is being made is joined, and what else
    /// may be wrong is told by joining: it may be the work of somebody who commits meanwhile.
    private static func refuseForeign(_ path: String, _ key: EncryptionKey?) throws {
        guard let size = try? SystemCalls.status(path: path).size, size > 0 else { return }
        do { _ = try SteadyReading.file(path, key: key) } catch let error as OpenError {
            switch error {
            case .notARealm, .notEncrypted, .decryptionFailed: throw error
            default: return
            }
        }
    }

    /// - Parameters:
    ///   - label: the same for all that go on from one another.
    ///   - pinGrace: so long the version that is held stays when we are gone.
    ///   - gatherLimit: see `Mirror.Options`.
    init(
        _ path: String, label: String, key: EncryptionKey?, pinGrace: Duration, gatherLimit: Duration,
        onMessage: @escaping @Sendable (String) -> Void
    ) throws {
        self.path = path
        self.pinGrace = pinGrace
        try SourceSession.refuseForeign(path, key)
        if ReplacementWish.isFresh(path) { throw MirrorError.replacementPending(source: path) }
        let participant = try SessionMembership.join(path, label: label, key: key, pinGrace: pinGrace)
        do {
            status = try SystemCalls.status(path: path)
            let options = Notifier.Options(
                lastSeenVersion: 0, netMilliseconds: SourceSession.netMilliseconds,
                busyMicroseconds: SourceSession.busyMicroseconds(gatherLimit),
                onWarning: { onMessage("\($0)") })
            let subscription = Notifier.shared.subscribe(path: path, options: options) {
                // One thread looks for all mirrors of the process: it takes no lock from those who commit, and waits for none
                // that is frozen.
                let newest = participant.newestVersionHint
                return newest != 0 ? newest : participant.lockFile.latestVersion
            }
            do { descriptor = try subscription.eventDescriptor() } catch {
                subscription.cancel()
                throw error
            }
            self.subscription = subscription
        } catch {
            try? participant.close(force: true, leavingPins: false)
            throw error
        }
        self.participant = participant
    }

    /// A fifth of the time that commits may gather.
    private static func busyMicroseconds(_ gatherLimit: Duration) -> Int {
        let (seconds, attoseconds) = gatherLimit.components
        if seconds > 0 { return Int(busyMicrosecondsMax) }
        return Int(max(0, min(busyMicrosecondsMax, attoseconds / 5_000_000_000_000)))
    }

    /// Leaves the session; what is held stays for a successor, or is given back where nothing is.
    func close() {
        subscription.cancel()
        try? participant.close(force: true, leavingPins: pinGrace > .zero && holds)
    }

    var holds: Bool { base != nil || pending != nil }

    func letGo() {
        base = nil
        pending = nil
    }

    func newest() throws -> HeldSnapshot { try HeldSnapshot(participant, try participant.acquireNewest(.live)) }

    /// The version with these numbers, if somebody still holds it, for example a predecessor: it is ours then, and what
    /// predecessors have left is given back, since it is of no more use to anybody.
    func takeOver(_ snapshot: Snapshot) throws -> HeldSnapshot? {
        var found = [base, pending?.held].compactMap { $0 }.first { $0.snapshot == snapshot }
        if found == nil, let lock = try? participant.acquire(.live, version: snapshot.version) {
            let held = try HeldSnapshot(participant, lock)
            if held.snapshot == snapshot { found = held }
        }
        try participant.sweepPredecessors()
        return found
    }

    /// The newest version, for the status; nil where the session does not answer at once.
    var newestVersion: UInt64? { try? participant.newestVersion(.after(.milliseconds(200))) }

    /// Another file stands at the path, or none, or one is to stand there as soon as we have left.
    var isReplaced: Bool {
        if ReplacementWish.isFresh(path) { return true }
        guard let now = try? SystemCalls.status(path: path) else { return true }
        return now.inode != status.inode || now.device != status.device
    }

    /// Forgets what `descriptor` has told.
    func takeEvents() { _ = subscription.takeEvents() }
}

/// What failed at the side where versions go, not at the source: the source stays open, and what is held of it is held for a
/// time.
struct TargetFailure: Error {
    let cause: any Error

    /// Runs what touches the target only, apart from reading versions that are held.
    static func mark<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch let error as TargetFailure { throw error } catch { throw TargetFailure(cause: error) }
    }
}
