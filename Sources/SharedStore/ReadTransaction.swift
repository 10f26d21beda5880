/// A version that can be read: a view of its bytes and its tables. Shared by the transactions on the same version.
package final class SnapshotReader: Sendable {
    package let snapshot: Snapshot
    package let group: Group

    init(_ view: FileView, previous: Group? = nil) throws {
        snapshot = view.snapshot
        group = try Group(
            memory: view.memory, topRef: view.snapshot.topRef, format: Int(FileHeader.currentFormat), owner: view,
            previous: previous)
    }

    init(_ file: ImmutableFile) {
        snapshot = Snapshot(version: 1, topRef: file.layout.topRef, logicalSize: file.layout.fileLimit)
        group = file.group
    }
}

/// One version of a database, held so that nobody overwrites it.
///
/// Belongs to one thread at a time. What was read from `group` may be used as long as the transaction stays on its version.
/// A transaction that is given up without `end` ends itself.
public final class ReadTransaction {
    /// The store that the transaction reads from.
    public let store: Store
    private var lock: ReadLock?
    private var reader: SnapshotReader
    private var hasEnded = false

    /// - Parameter lock: nil for an immutable file.
    init(_ store: Store, _ reader: SnapshotReader, _ lock: ReadLock?) {
        self.store = store
        self.reader = reader
        self.lock = lock
    }

    deinit { end() }

    /// The tables of the version.
    public var group: Group {
        precondition(!hasEnded, "the read transaction has ended; begin another one")
        return reader.group
    }

    /// The version, with what is needed to find it in the file.
    public var snapshot: Snapshot { reader.snapshot }
    /// The number of the version.
    public var version: UInt64 { reader.snapshot.version }
    /// What the version's nodes are looked up in.
    public var memory: Memory { group.memory }
    /// The transaction cannot be refreshed: it is frozen, or the file is immutable.
    public var isFrozen: Bool { lock?.kind != .live }

    /// Lets the version go. A second call does nothing.
    public func end() {
        hasEnded = true
        if let lock { store.participant?.release(lock) }
        lock = nil
    }

    /// Goes on to the newest version (coordination.md 7.3).
    ///
    /// - Parameter observe: called with each changeset on the way, in order, and the version that it leads to; while it runs,
    ///   `group` is still the old version. If it throws, the transaction stays where it is.
    /// - Returns: false where there was nothing newer.
    @discardableResult
    public func refresh(_ observe: ((_ version: UInt64, _ changeset: UnsafeRawBufferPointer) throws -> Void)? = nil) throws
        -> Bool
    {
        precondition(!hasEnded, "the read transaction has ended; begin another one")
        guard let held = lock, held.kind == .live, let participant = store.participant else { return false }
        return try advance(to: try participant.acquireNewest(.live), observe)
    }

    /// Goes on to a newer version that somebody holds, or that is the newest. An older one is `SessionError.badVersion`.
    public func advance(
        to version: UInt64, _ observe: ((_ version: UInt64, _ changeset: UnsafeRawBufferPointer) throws -> Void)? = nil
    ) throws {
        precondition(!hasEnded, "the read transaction has ended; begin another one")
        guard let held = lock, held.kind == .live, let participant = store.participant else {
            preconditionFailure("a frozen transaction stays on its version; begin a live one")
        }
        if version == held.snapshot.version { return }
        if version < held.snapshot.version { throw SessionError.badVersion(path: store.path, version: version) }
        _ = try advance(to: try participant.acquire(.live, version: version), observe)
    }

    /// Takes over the lock `next`; the old one is kept until the changesets were read.
    func advance(
        to next: ReadLock, _ observe: ((_ version: UInt64, _ changeset: UnsafeRawBufferPointer) throws -> Void)?
    ) throws -> Bool {
        guard let old = lock, let participant = store.participant else { preconditionFailure("only a live transaction moves") }
        if next.snapshot.version <= old.snapshot.version {
            participant.release(next)
            return false
        }
        do {
            // The old version is held until the new one is bound, so that what is the same in both is known by its ref.
            let target = try store.reader(of: next.snapshot, previous: reader.group)
            if let observe {
                let history = try HistoryReader(
                    memory: target.group.memory, topRef: next.snapshot.topRef, version: next.snapshot.version)
                var version = old.snapshot.version
                try history.forEachChangeset(since: version) {
                    version += 1
                    try observe(version, $0)
                }
            }
            reader = target
            lock = next
        } catch {
            participant.release(next)
            throw error
        }
        participant.release(old)
        return true
    }

    /// The same version, frozen, in a transaction of its own.
    public func freeze() throws -> ReadTransaction {
        precondition(!hasEnded, "the read transaction has ended; begin another one")
        return try store.freeze(version)
    }
}
