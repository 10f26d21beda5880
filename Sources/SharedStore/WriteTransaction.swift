import Glibc

/// What a participant writes with: working memory and free space, kept from one commit to the next.
///
/// Not thread-safe: it belongs to the holder of the session's write mutex.
final class Writer: @unchecked Sendable {
    // Sendable: only the holder of the write mutex touches it.
    @exclusivity(unchecked) private(set) var file: DatabaseFile
    @exclusivity(unchecked) private(set) var committer: Committer
    @exclusivity(unchecked) private var memory: WorkingMemory?
    /// The tables of the version that we committed last.
    @exclusivity(unchecked) private var committed: (snapshot: Snapshot, group: Group)?

    /// Remembers the tables of a version that was published.
    func note(_ snapshot: Snapshot, _ group: Group) { committed = (snapshot, group) }

    /// Our last commit's tables, if it is the newest version, `base`: nothing that it uses was overwritten since.
    func group(before base: Snapshot) -> Group? {
        guard let committed, committed.snapshot == base else { return nil }
        return committed.group
    }

    init(_ file: DatabaseFile) {
        self.file = file
        committer = Committer(file: file)
    }

    /// Goes on with another file, after a compaction.
    func use(_ file: DatabaseFile) {
        self.file = file
        committer = Committer(file: file)
        memory = nil
        committed = nil
    }

    /// Commits made while an old version was held, since anybody looked whether its holder lives.
    @exclusivity(unchecked) private var commitsBesidePins = 0

    @exclusivity(unchecked) private var commitsUntilLook = Writer.commitsUntilLookMin

    /// Now and then, beside a held version, whoever holds it is looked at: a quick writer makes tens of thousands of commits
    /// before the watchdog comes by, and the history of all of them is kept for a reader who may be dead. Since a look costs more
    /// than a commit, the next one comes after twice as many.
    func isTimeToLookForDead(_ pinned: PinnedVersions) -> Bool {
        if pinned.versions.count == 1 {
            commitsUntilLook = Writer.commitsUntilLookMin
            return false
        }
        commitsBesidePins += 1
        if commitsBesidePins < commitsUntilLook { return false }
        commitsBesidePins = 0
        commitsUntilLook = min(2 * commitsUntilLook, Writer.commitsUntilLookMax)
        return true
    }

    private static let commitsUntilLookMin = 256
    private static let commitsUntilLookMax = 4096

    /// Working memory on `base`, empty.
    func begin(_ base: Snapshot) throws -> WorkingMemory {
        if let memory {
            try memory.begin(base)
            return memory
        }
        let fresh = try WorkingMemory(file: file, base: base)
        memory = fresh
        try fresh.begin(base)
        return fresh
    }

    /// The lock on the version that the header shows, while later ones are published that it does not show yet (5.6). Its space
    /// cannot be used meanwhile, so the file stays whole through any crash.
    @exclusivity(unchecked) private(set) var unsynced: ReadLock?

    /// Keeps the version that the header shows, `base`, until `settle`.
    func deferSync(_ base: ReadLock, _ participant: Participant) throws {
        if unsynced != nil { return }
        unsynced = try participant.acquire(.live, version: base.snapshot.version)
        participant.setKeepsHeaderVersion(true)
    }

    /// The header shows the newest version: nothing older has to be kept for its sake.
    func settle(_ participant: Participant) {
        guard let lock = unsynced else { return }
        unsynced = nil
        participant.setKeepsHeaderVersion(false)
        participant.release(lock)
    }

    /// Makes the header point to the version that the session calls its newest (coordination.md 5.5, W5).
    ///
    /// A writer that died between flip and publishing has left the header ahead of the list: its version never was, and its
    /// blocks are free for us, so before we write the first of them the header must not need them any more.
    /// - Returns: the format of the newest version; the current one where it has no content.
    func alignHeader(with newest: Snapshot, _ durability: Durability) throws -> UInt8 {
        try file.alignHeader(with: newest, durability)
    }
}

/// A write transaction: changes that nobody sees until `commit`.
///
/// There is one at a time over all processes. It belongs to the thread that began it, which must also end it, since the session's
/// write lock belongs to a thread; only a movable one, whose lock the participant's `WriteLockKeeper` owns, may go from thread to
/// thread. One that is given up without an end rolls itself back.
///
/// Order of a commit (coordination.md 5.4): changeset, purge, places (C1, C2); control mutex: nodes (C3); syncs and header (C4,
/// C5); critical flag, version list, flag (C7); control mutex: numbers, waiters (C8); FIFO (C9); lock on the old version (C10);
/// write mutex (C11). The version is visible to others at C7, when it is durable.
///
/// Crash argument: until C5's flag byte the header shows the old version and nothing of it was overwritten; between C5 and C7 the
/// header is ahead, which the next writer sets right before it writes (`Writer.alignHeader`); C7 is `VersionList.publish`; what
/// is missing after it are numbers and wake-ups that the next commit brings.
public final class WriteTransaction {
    /// The store that the transaction writes to.
    public let store: Store
    private let participant: Participant
    private let writer: Writer
    private let thread = pthread_self()
    private let owner: WriteLockOwner
    /// False after the commit or the cancellation.
    @exclusivity(unchecked) private var base: ReadLock
    @exclusivity(unchecked) private var memory: WorkingMemory
    @exclusivity(unchecked) private var editing: GroupEditor
    @exclusivity(unchecked) public private(set) var isOpen = true

    /// The write mutex is held and `base` is a live lock on the newest version; both are ours from here on.
    ///
    /// `format` is that of the version; a commit always writes the current one, so an older one must be upgraded first.
    init(_ store: Store, _ participant: Participant, _ writer: Writer, _ base: ReadLock, owner: WriteLockOwner, format: UInt8)
        throws
    {
        self.store = store
        self.participant = participant
        self.owner = owner
        self.writer = writer
        self.base = base
        memory = try writer.begin(base.snapshot)
        editing = try GroupEditor(
            arena: memory.arena, topRef: base.snapshot.topRef, format: format, previous: writer.group(before: base.snapshot),
            version: base.snapshot.version)
    }

    deinit { if isOpen { rollback() } }

    /// Changes tables and objects.
    public var editor: GroupEditor {
        check()
        return editing
    }

    /// The tables as they are now, with all changes made so far.
    public var group: Group { editor.group }

    /// The version that the transaction started from.
    public var baseVersion: UInt64 { base.snapshot.version }

    /// Others stand in the queue behind us: a reason to commit soon.
    public var othersWait: Bool {
        check()
        return participant.writeQueue.someoneWaits
    }

    /// Of a movable transaction: has `expire` called, once, on another thread, where others wait after `patience`; see
    /// `WriteLockKeeper`.
    package func watch(patience: Duration, _ expire: @escaping @Sendable () -> Void) {
        check()
        if case .keeper = owner { participant.writeLockKeeper.watch(patience: patience, expire) }
    }

    /// The history's schema version in the file as the transaction found it.
    var storedHistorySchemaVersion: Int { Arena.untag(editor.topElement(TopSlot.historySchema)) }

    /// Brings what the transaction found to the present format and history, as far as it is not there yet.
    ///
    /// - Returns: false where there was nothing to do.
    func upgrade() throws -> Bool {
        check()
        let format = editing.group.format
        if format < FileHeader.currentFormat { try FormatUpgrade.run(editing, from: format) }
        return format < FileHeader.currentFormat
            || base.snapshot.topRef != 0 && storedHistorySchemaVersion < Int(store.options.historyType.schemaVersion)
    }

    private func check() {
        ForkedChild.refuse()
        precondition(isOpen, "the write transaction has ended; begin another one")
        if case .keeper = owner { return }
        precondition(
            pthread_equal(pthread_self(), thread) != 0, "a write transaction belongs to the thread that began it; end it there")
    }

    // MARK: Ending

    /// Makes the changes a version that everybody sees.
    ///
    /// - Returns: its number.
    /// - Throws: where nothing was committed; the transaction is over all the same, and the file is as it was before.
    @discardableResult
    public func commit() throws -> UInt64 {
        let next = try publish()
        finish()
        return next.version
    }

    /// Commits, and holds the new version for reading.
    /// - Throws: as `commit`; or `CommittedError` where the changes are committed but cannot be read.
    public func commitAndRead() throws -> ReadTransaction {
        let next = try publish()
        // Nobody else can publish or purge before we let the write mutex go, so the version is there.
        let lock: ReadLock
        do { lock = try participant.acquireNewest(.live) } catch {
            finish()
            throw CommittedError(version: next.version, underlying: error)
        }
        finish()
        do { return ReadTransaction(store, try store.reader(of: lock.snapshot), lock) } catch {
            participant.release(lock)
            throw CommittedError(version: next.version, underlying: error)
        }
    }

    /// Commits, and goes on with a new write transaction on the new version, without letting anybody in between.
    ///
    /// - Parameter syncing: false for a commit of a batch in a durable session: everybody sees the new version at once, but it
    ///   survives a power cut, or the death of all who have the file open, only after `sync`, after the next syncing commit, or
    ///   after the end of this transaction. Until then the file as it was before the batch is what survives.
    /// - Throws: as `commit`; or `CommittedError` where the changes are committed but there is no going on.
    public func commitAndContinue(syncing: Bool = true) throws {
        let next = try publish(syncing: syncing)
        do {
            let lock = try participant.acquireNewest(.live)
            participant.release(base)
            base = lock
            memory = try writer.begin(base.snapshot)
            editing.close()
            editing = try GroupEditor(
                arena: memory.arena, topRef: base.snapshot.topRef, previous: writer.group(before: base.snapshot),
                version: base.snapshot.version)
        } catch {
            finish()
            throw CommittedError(version: next.version, underlying: error)
        }
    }

    /// Makes all commits of a batch durable. Does nothing where they are.
    ///
    /// When it throws, they are visible but not durable, and the version before the batch is kept: call again, or let the next
    /// write transaction of anybody do it.
    public func sync() throws {
        check()
        if writer.unsynced == nil { return }
        _ = try writer.alignHeader(with: base.snapshot, store.options.durability)
        writer.settle(participant)
    }

    /// Forgets all changes since the last commit. A batch without `sync` is made durable first, if that is possible.
    public func rollback() {
        if ForkedChild.isHere { return }
        check()
        try? sync()
        memory.end()
        finish()
    }

    /// Gives back everything that the transaction holds (C10, C11).
    private func finish() {
        isOpen = false
        editing.close()
        // Before the next writer comes, so that its purge does not find our lock (C10).
        participant.release(base)
        owner.release(participant)
        participant.endWriting()
    }

    /// C1 to C9. When it throws, the transaction is over and nothing was published.
    private func publish(syncing: Bool = true) throws -> Snapshot {
        check()
        do { return try publishOrThrow(syncing: syncing) } catch {
            writer.committer.forgetFreeSpace()
            try? sync()
            memory.end()
            finish()
            throw error
        }
    }

    private func publishOrThrow(syncing: Bool) throws -> Snapshot {
        let durability = store.options.durability
        let lockFile = participant.lockFile
        let list = VersionList(lockFile)
        let deadline = participant.deadline
        var pinned = try lockFile.with(.list, deadline) { try list.purge() }
        if writer.isTimeToLookForDead(pinned), let swept = try? participant.sweepDeadParticipants(deadline), swept > 0 {
            let dropped = pinned.droppedYoungerEntry
            pinned = try lockFile.with(.list, deadline) { try list.purge() }
            pinned.droppedYoungerEntry = pinned.droppedYoungerEntry || dropped
        }
        let version = base.snapshot.version + 1
        if store.options.historyType == .inFile {
            try HistoryEditor.append(
                editing, editing.changes.bytes, newVersion: version, oldestLive: pinned.oldestLive, piecewise: true)
        }
        let top = try editing.finish()
        let next = try writer.committer.prepare(
            base: base.snapshot, arena: memory.arena, topRef: top, pinned: pinned, syncs: syncing || durability != .full)
        KillPoint.reach("C3.before")
        try lockFile.with(.control, deadline) {
            KillPoint.reach("C3.locked")
            // Whoever wants to join needs the control mutex.
            try writer.committer.store(durability, alone: lockFile.participantCount == 1)
            KillPoint.reach("C3.stored")
        }
        KillPoint.reach("C5.before")
        if syncing || durability != .full {
            try writer.committer.flip(durability)
        } else {
            try writer.deferSync(base, participant)
        }
        KillPoint.reach("C7.before")
        try lockFile.with(.list, deadline) {
            lockFile.commitInCriticalPhase = true
            defer { lockFile.commitInCriticalPhase = false }
            try list.publish(next)
        }
        KillPoint.reach("C7.after")
        writer.committer.didPublish()
        if syncing { writer.settle(participant) }
        memory.end()
        writer.note(next, editing.group)
        // From here on the commit has happened, whatever goes wrong: numbers and wake-ups come again with the next one (W7 to
        // W9).
        try? participant.announce(version: next.version, numberOfVersions: pinned.versions.count + 1, deadline)
        KillPoint.reach("C9.before")
        store.ring()
        return next
    }
}

/// The changes were committed, but what should follow failed.
public struct CommittedError: Error, CustomStringConvertible {
    /// The version that holds the changes.
    public let version: UInt64
    /// What failed after the commit.
    public let underlying: any Error
    public var description: String { "committed as version \(version), but then: \(underlying)" }
}

extension ReadTransaction {
    /// Begins a write transaction when it is our turn, and brings this one to the version that it starts from (coordination.md
    /// 5.4).
    ///
    /// - Parameter observe: as in `refresh`.
    public func promote(
        deadline: Deadline? = nil, _ observe: ((_ version: UInt64, _ changeset: UnsafeRawBufferPointer) throws -> Void)? = nil
    ) throws -> WriteTransaction {
        let transaction = try store.beginWrite(deadline: deadline)
        do {
            if transaction.baseVersion != version { try advance(to: transaction.baseVersion, observe) }
            return transaction
        } catch {
            transaction.rollback()
            throw error
        }
    }
}
