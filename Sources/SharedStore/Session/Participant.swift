import Glibc
import Synchronization
import SystemCalls

/// The kind of history that a session keeps in the file (coordination.md 3.4 step 11).
public enum HistoryType: Int8, Sendable {
    /// No history: others who keep one cannot have the file open at the same time.
    case none = 0
    /// One changeset for each commit, in the file: what object-layer programs use.
    case inFile = 2

    /// The schema version of the history that we write.
    package var schemaVersion: UInt16 { self == .inFile ? 1 : 0 }
}

/// How a participant joins a session.
package struct ParticipantOptions: Sendable {
    package var durability = Durability.full
    package var historyType = HistoryType.inFile
    package var createsFile = true
    /// Attach to a file of an older format too; whoever asks upgrades it in a write transaction before anything else.
    package var acceptsOlderFormats = false
    /// Copy a file of an older format before it is upgraded, bring such a copy back, and remove old ones (see `FormatBackup`).
    package var keepsBackups = false
    /// The key of an encrypted file; all participants must use the same one.
    package var encryptionKey: EncryptionKey?
    /// What this participant is for; others see it in the status.
    package var label = ""
    /// For so long after our death, or after `close(leavingPins:)`, the versions that we hold stay for a successor with the same
    /// label.
    package var pinGrace = Duration.zero
    /// How long any one wait may take.
    package var waitLimit = Duration.seconds(10)
    package init() {}

    var deadline: Deadline { .after(waitLimit) }
    var properties: LockFile.Properties {
        .init(durability: durability, historyType: historyType.rawValue, historySchemaVersion: historyType.schemaVersion)
    }
}

/// One open database: attached to the session of all who have the same file open (coordination.md section 3).
///
/// Opening, in `ParticipantOpening.swift`, takes the shared `flock` on the lock file, then, under the control mutex, either
/// starts the session (nobody is counted) or joins it; closing counts out. A process that opens a path twice is two participants.
///
/// Thread rules: may be used from any thread; a mutex is always given back by the thread that took it. Not for a child made by
/// `fork`, see `ForkedChild`.
package final class Participant: @unchecked Sendable {
    // Sendable: the parts are; `state` is behind a mutex.
    package let paths: SessionPaths
    package let options: ParticipantOptions
    package let lockFile: LockFile
    private let slot: FileSlot
    package let readLocks: ReadLocks
    package let writeQueue: WriteQueue
    /// Owns the write mutex for transactions that move between threads.
    let writeLockKeeper: WriteLockKeeper
    package let register: ParticipantRegister?
    /// What opening found in the file; a joiner sees the header's state, which may be older than the session's newest version.
    package let attachedAs: Attachment
    /// What could not be had and is done without, in words for people: a register, a watchdog.
    package let warnings: [String]

    private let broadcaster: ConditionBroadcaster
    private let watch: Watchdog.Registration?
    private enum Phase { case open, closing, closed, abandoned }
    private struct State {
        var phase = Phase.open
        /// Write transactions that are open or waited for.
        var writerCount = 0
        /// The header is behind the newest version, and one of our locks protects the version that it shows.
        var keepsHeaderVersion = false
    }
    private let state = Mutex(State())

    /// The state of the file at the moment of attaching.
    package struct Attachment: Sendable {
        /// Nobody else was counted: we started the session.
        package var isInitiator: Bool
        package var inspection: FileInspection
        /// The history in the file is older than the one we write, and must be upgraded by a write transaction.
        package var needsHistoryUpgrade: Bool
        /// The newest version has an older format, or may have: the write transaction that upgrades it looks again.
        package var needsFormatUpgrade: Bool
    }

    init(
        paths: SessionPaths, options: ParticipantOptions, lockFile: LockFile, file: DatabaseFile, register: ParticipantRegister?,
        attachedAs: Attachment, warnings: [String]
    ) {
        self.paths = paths
        self.options = options
        self.lockFile = lockFile
        slot = FileSlot(file, hasHeader: options.durability != .memoryOnly)
        self.register = register
        self.attachedAs = attachedAs
        readLocks = ReadLocks(lockFile, register: register)
        broadcaster = ConditionBroadcaster(lockFile)
        writeQueue = WriteQueue(file: lockFile, broadcaster: broadcaster)
        writeLockKeeper = WriteLockKeeper(writeQueue)
        var warnings = warnings
        if paths.file.isEmpty {
            // Nobody else can do us harm.
            watch = nil
            self.warnings = warnings
            return
        }
        let watched = ParticipantWatch(paths: paths, file: lockFile, readLocks: readLocks, register: register, slot: slot)
        do {
            watch = try Watchdog.shared.watch(watched)
        } catch {
            watch = nil
            warnings.append("no watchdog: \(error)")
        }
        self.warnings = warnings
    }

    deinit { try? close(force: true) }

    package var deadline: Deadline { options.deadline }

    /// The data file; another one after a compaction.
    package var file: DatabaseFile { slot.file }

    /// Puts another file in the place of the one that is open (see `Compaction.swift`).
    func replaceFile(_ file: DatabaseFile) {
        knownFileSize.store(0, ordering: .relaxed)
        slot.replace(file).close()
    }

    /// The top ref that the data file's header shows; nil where the header says nothing.
    var headerTop: Int? { slot.headerTop }

    /// Nothing goes on here any more, and closing counts nobody out: we are not counted.
    func abandon() {
        state.withLock { $0.phase = .abandoned }
        readLocks.end()
    }

    package func checkOpen() throws {
        ForkedChild.refuse()
        if state.withLock({ $0.phase != .open }) { throw SessionError.closed(path: paths.file) }
    }

    /// Announces a write transaction: nobody can close before `endWriting`.
    package func beginWriting() throws {
        ForkedChild.refuse()
        try state.withLock { state in
            if state.phase != .open { throw SessionError.closed(path: paths.file) }
            state.writerCount += 1
        }
    }

    /// Says whether one of our locks protects the version that the header shows (5.6).
    func setKeepsHeaderVersion(_ keeps: Bool) { state.withLock { $0.keepsHeaderVersion = keeps } }

    package func endWriting() { state.withLock { $0.writerCount -= 1 } }

    // MARK: Versions

    /// The newest version of the session.
    package func newestVersion(_ deadline: Deadline? = nil) throws -> UInt64 {
        try checkOpen()
        return try readLocks.newestVersion(deadline ?? self.deadline)
    }

    /// The newest version by a look that waits for nobody; 0 where it cannot be told at this moment.
    package var newestVersionHint: UInt64 { VersionList(lockFile).newestVersionHint }

    /// Locks the newest version for reading.
    package func acquireNewest(_ kind: VersionList.Kind, _ deadline: Deadline? = nil) throws -> ReadLock {
        try checkOpen()
        return try checked(try readLocks.acquireNewest(kind, deadline ?? self.deadline))
    }

    /// Locks a version that is the newest, or that somebody holds.
    package func acquire(_ kind: VersionList.Kind, version: UInt64, _ deadline: Deadline? = nil) throws -> ReadLock {
        try checkOpen()
        return try checked(try readLocks.acquire(kind, version: version, deadline ?? self.deadline))
    }

    package func release(_ lock: ReadLock) { readLocks.release(lock) }

    /// A version longer than the file would let a reader fault: the lock file or the data file is damaged.
    private func checked(_ lock: ReadLock) throws -> ReadLock {
        if lock.snapshot.topRef != 0, lock.snapshot.logicalSize <= knownFileSize.load(ordering: .relaxed) { return lock }
        do {
            try Participant.requireTop(lock.snapshot, attachedAs.inspection, options, lockFile.path)
            let size = try file.backend.size()
            if lock.snapshot.logicalSize > size {
                throw SessionError.unusable(
                    path: paths.file,
                    reason: "version \(lock.snapshot.version) has \(lock.snapshot.logicalSize) bytes, the file has \(size)")
            }
            knownFileSize.store(size, ordering: .relaxed)
            return lock
        } catch {
            readLocks.release(lock)
            throw error
        }
    }

    /// The file is at least this long; nobody cuts it during a session.
    private let knownFileSize = Atomic<Int>(0)

    /// Throws where more than `limit` versions are in use. The number in the lock file is that of the last commit, so it is only
    /// the cheap look; what counts is what is held now, after dead participants were swept.
    package func checkVersionCount(_ limit: Int, _ deadline: Deadline) throws {
        if lockFile.numberOfVersions <= UInt64(max(0, limit)) { return }
        _ = try sweepDeadParticipants(deadline)
        let count = try lockFile.with(.list, deadline) { try VersionList(lockFile).countInUse() }
        if count > limit {
            throw SessionError.tooManyVersions(path: paths.file, limit: limit, holders: (try? status(deadline).holders) ?? "")
        }
    }

    // MARK: Dead participants

    /// Gives back what participants of ours that have died still hold. The watchdog does so too, a little later.
    @discardableResult
    package func sweepDeadParticipants(_ deadline: Deadline? = nil) throws -> Int {
        try checkOpen()
        if register == nil || !ParticipantRegister.anyOwnerIsGone(paths) { return 0 }
        let limit = deadline ?? self.deadline
        return try lockFile.with(.control, limit) {
            try ParticipantRegister.sweep(paths, lockFile, asInitiator: false, headerTop: slot.headerTop, limit)
        }
    }

    /// Gives back what dead participants of our label have left for us to take over (`ParticipantOptions.pinGrace`). Called when
    /// we hold what we need of it.
    package func sweepPredecessors(_ deadline: Deadline? = nil) throws {
        try checkOpen()
        if register == nil { return }
        let limit = deadline ?? self.deadline
        let headerTop = options.durability == .memoryOnly ? nil : Int(truncatingIfNeeded: try file.currentHeader().liveTopRef)
        _ = try lockFile.with(.control, limit) {
            try ParticipantRegister.sweep(
                paths, lockFile, asInitiator: false, headerTop: headerTop, claiming: options.label, limit)
        }
    }

    // MARK: Telling others of a commit

    /// Makes a published version known to those who wait for it (coordination.md 5.4, C8).
    package func announce(version: UInt64, numberOfVersions: Int, _ deadline: Deadline) throws {
        try lockFile.lock(.control, deadline)
        KillPoint.reach("C8.locked")
        lockFile.numberOfVersions = UInt64(numberOfVersions)
        lockFile.latestVersion = version
        let othersWait = broadcaster.hasWaiters(.newCommit)
        lockFile.unlock(.control)
        if othersWait { broadcaster.broadcast(.newCommit) }
    }

    // MARK: Closing

    /// Leaves the session (coordination.md 3.7). A second call does nothing.
    ///
    /// Where the session's locks are not to be had in time (a stopped peer holds them), we leave without counting ourselves out,
    /// as a killed process would, and the next living participant sweeps what we left.
    /// - Parameter force: give back read locks that are still in use; their transactions must not be used any more.
    /// - Parameter leavingPins: what we hold stays as long as `ParticipantOptions.pinGrace` says, for a successor. We stay
    ///   counted so long: where nobody is counted others may make the version list anew, and what we hold would be a lock of
    ///   somebody else's.
    /// - Throws: `openTransactions`, and nothing was changed; writers cannot be closed by force.
    package func close(force: Bool = false, leavingPins: Bool = false) throws {
        if ForkedChild.isHere { return }
        var mayLeave = false
        let before: Phase = try state.withLock { state in
            let before = state.phase
            if before != .open && before != .abandoned { return before }
            // A batch whose sync failed: who gave its lock back would expose the version that the header needs. We leave like a
            // killed process; a sweeper keeps that lock until somebody's write transaction has set the header right.
            mayLeave =
                before == .open && !state.keepsHeaderVersion && !(leavingPins && register != nil && readLocks.openCount > 0)
            let readers = readLocks.openCount - (state.keepsHeaderVersion ? 1 : 0)
            let open = (force || leavingPins || before == .abandoned ? 0 : readers) + state.writerCount
            if open > 0 { throw SessionError.openTransactions(path: paths.file, count: open) }
            state.phase = .closing
            return before
        }
        if before != .open && before != .abandoned { return }
        watch?.cancel()
        readLocks.end()
        let deadline = deadline
        if mayLeave, (try? lockFile.lock(.control, deadline)) != nil {
            leave(deadline)
            lockFile.unlock(.control)
        }
        file.close()
        register?.close()
        lockFile.close(keepingMapping: !broadcaster.stop())
        state.withLock { $0.phase = .closed }
    }

    /// Counts us out; control mutex held.
    private func leave(_ deadline: Deadline) {
        KillPoint.reach("close.locked")
        guard (try? lockFile.with(.list, deadline, { readLocks.dropAll() })) != nil else { return }
        register?.setCounted(false)
        KillPoint.reach("close.between-register-and-count")
        let count = lockFile.participantCount
        if count > 0 { lockFile.participantCount = count - 1 }
        if count <= 1 && options.durability == .memoryOnly && !paths.file.isEmpty { try? SystemCalls.unlink(paths.file) }
        register?.removeFile()
    }
}

/// The data file of a participant, which a compaction replaces.
final class FileSlot: Sendable {
    private let current: Mutex<DatabaseFile>
    private let hasHeader: Bool

    init(_ file: DatabaseFile, hasHeader: Bool) {
        current = Mutex(file)
        self.hasHeader = hasHeader
    }

    var file: DatabaseFile { current.withLock { $0 } }

    /// The file that was there before.
    func replace(_ file: DatabaseFile) -> DatabaseFile {
        current.withLock { current in
            defer { current = file }
            return current
        }
    }

    /// The top ref that the header shows; nil where the header says nothing (memory-only sessions), or cannot be read.
    var headerTop: Int? {
        hasHeader ? (try? file.currentHeader()).map { Int(truncatingIfNeeded: $0.liveTopRef) } : nil
    }
}
