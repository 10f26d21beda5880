import CShims
import Synchronization
import SystemCalls

/// One thread for all participants of this process that looks after what dead peers leave (coordination.md 3.3, 5.2).
///
/// It looks every few milliseconds while a session is busy and ever more rarely, down to once a second, while nothing moves. A
/// look at an idle session is a handful of loads; locks are only tried where a word in the lock file says that their owner died.
final class Watchdog: Sendable {
    static let shared = Watchdog()

    static let activeMilliseconds = 4
    static let idleMilliseconds = 1000

    /// What is watched: one participant.
    protocol Watched: AnyObject, Sendable {
        /// One look; true where something moves or is odd, so that the next look should follow soon.
        func look() -> Bool
    }

    /// A participant on the list; its lock is held during a look, so that leaving waits for the end of it.
    private final class Entry: Sendable {
        let target: Mutex<(any Watched)?>
        init(_ target: any Watched) { self.target = Mutex(target) }
    }

    private struct State {
        var entries: [Entry] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let word = WakeWord()
    private let sleepsLong = Atomic<Bool>(false)

    /// Adds a participant and starts the thread if there is none. The result ends it.
    /// - Throws: `SystemError` where no thread can be had.
    func watch(_ target: any Watched) throws -> Registration {
        let entry = Entry(target)
        try state.withLock { state in
            if !state.isRunning {
                try BackgroundThread.start("realm-watchdog") { [self] in run() }
                state.isRunning = true
            }
            state.entries.append(entry)
        }
        word.set(1)
        return Registration { [self] in
            entry.target.withLock { $0 = nil }
            state.withLock { state in state.entries.removeAll { $0 === entry } }
        }
    }

    /// Ends the watching of one participant; afterwards no look at it is under way.
    struct Registration: Sendable {
        fileprivate let end: @Sendable () -> Void
        func cancel() { end() }
    }

    /// Shortens a long sleep: something has begun that may need a look. One load where the thread is awake anyway.
    @inline(__always)
    func expectActivity() { if sleepsLong.load(ordering: .relaxed) { word.set(1) } }

    private func run() {
        var interval = Watchdog.activeMilliseconds
        while true {
            let entries = state.withLock { $0.entries }
            if entries.isEmpty,
                state.withLock({ state in
                    if state.entries.isEmpty { state.isRunning = false }
                    return !state.isRunning
                })
            {
                return
            }
            var isActive = false
            for entry in entries {
                entry.target.withLock { target in
                    if let target, target.look() { isActive = true }
                }
            }
            interval = isActive ? Watchdog.activeMilliseconds : min(2 * interval, Watchdog.idleMilliseconds)
            sleepsLong.store(interval > 10 * Watchdog.activeMilliseconds, ordering: .relaxed)
            if word.take(waitingNanoseconds: Int64(interval) * 1_000_000) != 0 { interval = Watchdog.activeMilliseconds }
            sleepsLong.store(false, ordering: .relaxed)
        }
    }
}

/// What the watchdog does for one participant.
///
/// Used by the watchdog's thread only, under the lock of its entry.
final class ParticipantWatch: Watchdog.Watched, @unchecked Sendable {
    // Sendable: see above; the participant's parts that it touches are safe for any thread.
    private let paths: SessionPaths
    private let file: LockFile
    private let readLocks: ReadLocks
    private let register: ParticipantRegister?
    private let slot: FileSlot
    private var seen = (ticket: UInt32(0), latest: UInt64(0), participants: UInt32(0))
    private var conditions: [ConditionRepair]
    private var conditionsAt: Int64 = 0
    private var conditionsSuspicious = false
    private var choresAt: Int64 = 0

    /// How often dead participants are looked for while the session is busy, and while it is not.
    static let sweepMilliseconds = (active: Int64(200), idle: Int64(1000))
    static let choresMilliseconds: Int64 = 500
    private static let sweeps = SessionSweeps()

    init(paths: SessionPaths, file: LockFile, readLocks: ReadLocks, register: ParticipantRegister?, slot: FileSlot) {
        self.paths = paths
        self.file = file
        self.readLocks = readLocks
        self.register = register
        self.slot = slot
        conditions = SharedCondition.allCases.map { ConditionRepair($0.address(file)) }
    }

    func look() -> Bool {
        let now = SystemCalls.monotonicNanoseconds() / 1_000_000
        _ = try? file.healControlMutex()
        let current = (file.nextTicket, file.latestVersion, file.participantCount)
        let isActive = current != seen || file.word(of: .write) != 0 || file.word(of: .control) != 0
        seen = current
        if ConditionRepair.isPossible, now - conditionsAt >= Int64(ConditionRepair.lookMilliseconds) {
            conditionsAt = now
            conditionsSuspicious = false
            for index in conditions.indices where conditions[index].look().isSuspicious { conditionsSuspicious = true }
        }
        if now - choresAt >= ParticipantWatch.choresMilliseconds {
            choresAt = now
            register?.noteOthers()
            readLocks.releaseIdle(.immediate)
        }
        let sweep = ParticipantWatch.sweepMilliseconds
        if register != nil, ParticipantWatch.sweeps.isDue(file, every: isActive ? sweep.active : sweep.idle, at: now) {
            if ParticipantRegister.anyOwnerIsGone(paths) { sweepDead() }
        }
        return isActive || conditionsSuspicious
    }

    private func sweepDead() {
        // Another time will do where somebody is at work.
        guard (try? file.tryLock(.control)) != nil else { return }
        defer { file.unlock(.control) }
        _ = try? ParticipantRegister.sweep(paths, file, asInitiator: false, headerTop: slot.headerTop, .after(.milliseconds(50)))
    }
}

/// When dead participants of each session were last looked for: where a process takes part in one session many times, as a
/// service with many mirrors of one file does, one look serves all. It costs some calls for each participant that there is.
final class SessionSweeps: Sendable {
    private struct Key: Hashable { let device: UInt64, inode: UInt64 }
    private let last = Mutex<[Key: Int64]>([:])
    /// Sessions that are kept in mind; what is forgotten is looked at once more than it must.
    static let countMax = 4096

    /// Whether nobody has looked for so long; the caller looks then.
    func isDue(_ file: LockFile, every milliseconds: Int64, at now: Int64) -> Bool {
        isDue(device: file.device, inode: file.inode, every: milliseconds, at: now)
    }

    func isDue(device: UInt64, inode: UInt64, every milliseconds: Int64, at now: Int64) -> Bool {
        last.withLock { last in
            let key = Key(device: device, inode: inode)
            if let time = last[key], now - time < milliseconds { return false }
            // Rather forget them all than go through them each time.
            if last.count >= Self.countMax { last.removeAll(keepingCapacity: true) }
            last[key] = now
            return true
        }
    }
}
