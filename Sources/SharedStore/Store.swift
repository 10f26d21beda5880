import Glibc
import Notifier
import Synchronization
import SystemCalls

/// An open database: versions to read, write transactions one at a time over all processes that have the file open.
///
/// May be used from any thread. Keep one store for each file in a process: each is a participant of its own, and one thread that
/// writes through two of them waits for itself. In a child made by `fork` using it stops the process.
public final class Store: Sendable {
    /// The file, as it was opened.
    public let path: String
    /// How the store was opened.
    public let options: StoreOptions
    /// Nil for an immutable file, which has no session.
    package let participant: Participant?
    private let immutable: ImmutableFile?
    private let writer: Writer?
    /// The last version that was read; the next transaction on the same version shares its tables.
    private let recent = Mutex<SnapshotReader?>(nil)
    private let ringer = Mutex<Ringer?>(nil)
    /// The file was a mirror of another one when it was opened.
    private let isReplica: Bool

    private init(path: String, options: StoreOptions, participant: Participant?, immutable: ImmutableFile?) {
        self.path = path
        self.options = options
        self.participant = participant
        self.immutable = immutable
        writer = participant.map { Writer($0.file) }
        isReplica = options.access == .readWrite && !options.writesToReplica && Store.mirroredPath(path) != nil
    }

    /// Opens the database at `path`, alone or together with whoever has it open.
    ///
    /// - Throws: `OpenError` where the file is at fault, `SessionError` where the others or a side file are, `SystemError` for
    ///   anything else. Nothing is left open.
    public static func open(_ path: String, _ options: StoreOptions = StoreOptions()) throws -> Store {
        if options.access == .immutable {
            return Store(
                path: path, options: options, participant: nil,
                immutable: try ImmutableFile(path: path, key: options.encryptionKey))
        }
        let participant = try Participant.open(path, options.participantOptions)
        for warning in participant.warnings { options.onWarning(warning) }
        let store = Store(path: path, options: options, participant: participant, immutable: nil)
        do {
            let attachment = participant.attachedAs
            let isBehind = attachment.needsHistoryUpgrade && options.access == .readWrite && !store.isReplica
            if attachment.needsFormatUpgrade || isBehind { try store.upgrade() }
        } catch {
            try? store.close(force: true)
            throw error
        }
        return store
    }

    /// A database without a file, private to this process: it goes with the store.
    public static func inMemory(_ options: StoreOptions = StoreOptions()) throws -> Store {
        var options = options
        options.access = .readWrite
        options.durability = .memoryOnly
        return Store(
            path: "", options: options, participant: try Participant.openPrivate(options.participantOptions), immutable: nil)
    }

    /// Leaves the session. A second call does nothing. A store that is given up without `close` closes itself.
    ///
    /// - Parameter force: close although read transactions are open; they must not be used any more.
    /// - Throws: `SessionError.openTransactions`, and the store stays open. Write transactions, and threads that wait for one,
    ///   cannot be closed by force.
    public func close(force: Bool = false) throws {
        recent.withLock { $0 = nil }
        try participant?.close(force: force)
    }

    private func session() throws -> Participant {
        guard let participant else {
            preconditionFailure("an immutable file has one version and no session; check `options.access`")
        }
        return participant
    }

    // MARK: Space

    /// Replaces the file by a copy of its newest version without free space. Older versions are gone then.
    ///
    /// - Returns: false where that is not possible now: others have the file open, a transaction is open in this store, or the
    ///   database is in memory only.
    public func compact(deadline: Deadline? = nil) throws -> Bool {
        let participant = try writableSession()
        try participant.beginWriting()
        defer { participant.endWriting() }
        return try participant.compact(deadline ?? participant.deadline) {
            recent.withLock { $0 = nil }
            writer?.use(participant.file)
        }
    }

    // MARK: Reading

    /// Begins a transaction on the newest version; its data and its history stay until it ends.
    public func beginRead() throws -> ReadTransaction {
        if let immutable { return ReadTransaction(self, SnapshotReader(immutable), nil) }
        return try transaction(on: try session().acquireNewest(.live))
    }

    /// Begins a transaction on the newest version that never moves; its data stays until it ends, its history does not.
    public func freeze() throws -> ReadTransaction {
        if let immutable { return ReadTransaction(self, SnapshotReader(immutable), nil) }
        return try transaction(on: try session().acquireNewest(.frozen))
    }

    /// The same on a version that somebody holds, or that is the newest.
    /// - Throws: `SessionError.badVersion`.
    public func freeze(_ version: UInt64) throws -> ReadTransaction {
        if let immutable {
            if version != 1 { throw SessionError.badVersion(path: path, version: version) }
            return ReadTransaction(self, SnapshotReader(immutable), nil)
        }
        return try transaction(on: try session().acquire(.frozen, version: version))
    }

    /// A transaction on a version that somebody holds live, or that is the newest.
    /// - Throws: `SessionError.badVersion`.
    public func beginRead(_ version: UInt64) throws -> ReadTransaction {
        if immutable != nil { return try freeze(version) }
        return try transaction(on: try session().acquire(.live, version: version))
    }

    private func transaction(on lock: ReadLock) throws -> ReadTransaction {
        do { return ReadTransaction(self, try reader(of: lock.snapshot), lock) } catch {
            participant?.release(lock)
            throw error
        }
    }

    /// The tables of a version that the caller has locked.
    ///
    /// - Parameter previous: a group of the same file whose version is held all the while.
    func reader(of snapshot: Snapshot, previous: Group? = nil) throws -> SnapshotReader {
        if let found = recent.withLock({ $0?.snapshot == snapshot ? $0 : nil }) { return found }
        let reader = try SnapshotReader(try session().file.view(of: snapshot), previous: previous)
        recent.withLock { $0 = reader }
        return reader
    }

    /// The newest version of the session; 1 for an immutable file.
    public func newestVersion() throws -> UInt64 { try participant?.newestVersion() ?? 1 }

    /// Who takes part, who holds which version since when, and what that costs. An immutable file has no session to report on.
    public func status() throws -> SessionStatus? { try participant?.status() }

    /// Bytes of the data file, and of those the ones that its newest version uses; nil for an immutable file.
    public func sizes() throws -> (total: Int, used: Int)? { try participant?.sizes() }

    // MARK: Writing

    /// Begins a write transaction on the newest version when it is our turn. It belongs to the thread that began it.
    ///
    /// - Parameter deadline: when to give up waiting for others; by default the options' limit from now.
    /// - Throws: `SessionError.deadlineExceeded` naming who writes, `tooManyVersions`, and what reading the version may throw.
    public func beginWrite(deadline: Deadline? = nil) throws -> WriteTransaction {
        let participant = try beginWriting()
        let limit = deadline ?? participant.deadline
        do { _ = try participant.writeQueue.acquire(limit) } catch {
            participant.endWriting()
            throw error
        }
        return try begin(participant, limit)
    }

    /// Counts a writer in, who is to be counted out by `endWriting`.
    func beginWriting() throws -> Participant {
        let participant = try writableSession()
        Watchdog.shared.expectActivity()
        try participant.beginWriting()
        return participant
    }

    /// Begins a write transaction if nobody writes at the moment; nil otherwise.
    public func tryBeginWrite() throws -> WriteTransaction? {
        let participant = try writableSession()
        try participant.beginWriting()
        do {
            if try participant.writeQueue.tryAcquire() == nil {
                participant.endWriting()
                return nil
            }
        } catch {
            participant.endWriting()
            throw error
        }
        return try begin(participant, participant.deadline)
    }

    /// Runs `body` in a write transaction and commits it; what `body` throws rolls it back.
    @discardableResult
    public func write<Result>(_ body: (WriteTransaction) throws -> Result) throws -> Result {
        let transaction = try beginWrite()
        do {
            let result = try body(transaction)
            if transaction.isOpen { try transaction.commit() }
            return result
        } catch {
            if transaction.isOpen { transaction.rollback() }
            throw error
        }
    }

    private func writableSession() throws -> Participant {
        let participant = try session()
        precondition(
            options.access == .readWrite, "the store was opened for reading only; open it with access .readWrite to write")
        try participant.checkOpen()
        // A replica that was promoted meanwhile has no state file any more.
        if isReplica, let source = Store.mirroredPath(path) { throw SessionError.replica(path: path, source: source) }
        return participant
    }

    /// What the file at `path` is a mirror of, by the state file beside it; nil where it is none.
    package static func mirroredPath(_ path: String) -> String? {
        if path.isEmpty { return nil }
        let state = SessionPaths(path).mirrorState
        guard (try? SystemCalls.linkStatus(path: state)) != nil else { return nil }
        let text = (try? SideFile.text(state, byteCountMax: 65_536)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("source ") }
        return line.map { String($0.dropFirst("source ".count)) } ?? "another file"
    }

    /// The write mutex is held; it is given back if anything fails.
    func begin(
        _ participant: Participant, _ deadline: Deadline, owner: WriteLockOwner = .beginner, upgrades: Bool = false
    ) throws -> WriteTransaction {
        do {
            if let limit = options.versionCountMax { try participant.checkVersionCount(limit, deadline) }
            let base = try participant.acquireNewest(.live, deadline)
            do {
                guard let writer else { preconditionFailure("a session without a writer") }
                try participant.lockFile.settleDeadWriter(writer.file.backend, options.durability)
                let format = try writer.alignHeader(with: base.snapshot, options.durability)
                if format != FileHeader.currentFormat && !upgrades {
                    throw OpenError.upgradeRequired(path: path, format: Int(format))
                }
                writer.settle(participant)
                return try WriteTransaction(self, participant, writer, base, owner: owner, format: format)
            } catch {
                participant.release(base)
                throw error
            }
        } catch {
            owner.release(participant)
            participant.endWriting()
            throw error
        }
    }

    /// Tells everybody of a commit (coordination.md 5.4, C9).
    func ring() {
        if path.isEmpty { return }
        let present: Ringer = ringer.withLock { ringer in
            if let ringer { return ringer }
            let fresh = Ringer(path, options: options.notifierOptions)
            ringer = fresh
            return fresh
        }
        present.ring()
    }

    /// Brings the file to the present format, and its history to the present form, by one commit (coordination.md 3.6).
    ///
    /// Several processes may come here at once: what is to be done is looked for again when it is our turn to write, and who is
    /// second finds it done. Who dies on the way leaves the file as it was: the format stands in the header's slot and becomes
    /// valid with the version that the upgrade made.
    private func upgrade() throws {
        if !options.allowsUpgrade || options.access != .readWrite {
            throw OpenError.upgradeRequired(
                path: path, format: Int(participant?.attachedAs.inspection.format ?? FileHeader.currentFormat))
        }
        let participant = try writableSession()
        _ = try participant.writeQueue.acquire(participant.deadline)
        let transaction = try begin(participant, participant.deadline, upgrades: true)
        do {
            if try transaction.upgrade() { try transaction.commit() } else { transaction.rollback() }
        } catch {
            if transaction.isOpen { transaction.rollback() }
            throw error
        }
    }
}
