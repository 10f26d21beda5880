/// One step of observers from a version to a newer one: what happened, and the state that it led to.
final class ObservationStep {
    let changes: ChangeSet
    let group: Group
    /// The state before, where others made the changes.
    let old: Group?
    let check: ChangeCheck
    /// More may have happened than is known.
    var hasGap = false

    init(_ changes: ChangeSet, _ group: Group, old: Group?, _ graph: LinkGraph) {
        self.changes = changes
        self.group = group
        self.old = old
        check = ChangeCheck(changes, group, graph)
    }

    /// The object was created, deleted or modified.
    func touches(_ table: TableKey, _ key: ObjectKey) -> Bool {
        guard let change = changes.tables[table] else { return false }
        return change.modifications[key] != nil || change.deletions.contains(key) || change.insertions.contains(key)
    }
}

/// What is to be observed.
public enum ObservedSubject {
    case object(TableKey, ObjectKey)
    /// A list, set or dictionary; also one that is nested in a Mixed value.
    case collection(ChangesetWriter.CollectionIdentity)
    case objects(ObservedObjects)
    /// All objects of a class, in key order.
    case table(TableKey)
    case values(ObservedValues)
    /// One of the above, other than an object, cut into sections: the closure gives the section key of each element in order.
    indirect case sections(of: ObservedSubject, keys: (Group) throws -> [AnyHashable])
}

/// The observers of one session, and what they are told as it goes from version to version.
///
/// The changesets of each step are parsed once, for all observers (file-format-3 6.6). The engine keeps no version: the session's
/// own hold on its version, from one delivery to the next, is all that is needed. Nothing at all is done while nobody observes.
///
/// Belongs to one thread, queue or actor. Calls of the session, in this order:
/// - `noteCommit` after each commit of its own;
/// - `advance` when it went to a newer version that others made;
/// - `deliver` when callbacks may be called.
public final class ObservationEngine {
    /// In the order in which they came, and among them some that have ended.
    private var all: [Observer] = []
    /// How many those are. They go when they are the half: one by one would take the square of their number.
    private var endedCount = 0
    private var observers: [Observer] { endedCount == 0 ? all : all.filter(\.isRegistered) }
    private var graph: LinkGraph?
    /// Own commits that observers do not know of yet.
    private var ownCommits: [(changeset: [UInt8], skipped: [Observer.Callback])] = []
    /// How deep deliveries are nested in each other.
    private var depth = 0

    /// An engine that nobody observes with.
    public init() {}

    /// Nobody observes.
    public var isIdle: Bool { all.count == endedCount }

    /// Some callback waits for its first call, or has something to hear.
    public var hasPending: Bool {
        !ownCommits.isEmpty
            || observers.contains { observer in
                observer.callbacks.contains { $0.isActive && (!$0.hasBeenCalled || !$0.pending.isNone) }
            }
    }

    /// Callbacks are being called.
    public var isDelivering: Bool { depth > 0 }

    // MARK: Observers

    /// Observes something. `group` is the session's version, of which `noteCommit` and `advance` have told.
    public func observe(
        _ subject: ObservedSubject, keyPaths: [ObservedKeyPath]? = nil, in group: Group,
        _ body: @escaping (ObservedChange) -> Void
    ) throws -> (observer: Observer, callback: Observer.Callback) {
        try settle(group)
        let observer = try make(subject)
        let callback = observer.add(keyPaths, body)
        try start(observer, group)
        return (observer, callback)
    }

    /// One more callback of an accessor that is observed already.
    public func observe(
        with observer: Observer, keyPaths: [ObservedKeyPath]? = nil, in group: Group, _ body: @escaping (ObservedChange) -> Void
    ) throws -> Observer.Callback {
        try settle(group)
        let callback = observer.add(keyPaths, body)
        if !observer.isRegistered { try start(observer, group) }
        return callback
    }

    private func start(_ observer: Observer, _ group: Group) throws {
        try observer.register(group)
        if observer.isListed { forgetEnded() }
        observer.engine = self
        observer.isRegistered = true
        observer.isListed = true
        all.append(observer)
    }

    private func make(_ subject: ObservedSubject) throws -> Observer {
        if case .object(let table, let key) = subject { return ObjectObserver(table, key) }
        if case .sections(let inner, let keys) = subject {
            guard let tracker = tracker(inner) else {
                preconditionFailure("an object has no sections; observe a result in sections")
            }
            return SectionsObserver(tracker, sectionKeys: keys)
        }
        guard let tracker = tracker(subject) else { preconditionFailure("unreachable") }
        return PositionObserver(tracker)
    }

    private func tracker(_ subject: ObservedSubject) -> PositionTracker? {
        switch subject {
        case .object, .sections: nil
        case .collection(let identity): CollectionTracker(identity)
        case .objects(let source): ObjectsTracker(source)
        case .table(let table): TableTracker(table)
        case .values(let source): ValuesTracker(source)
        }
    }

    func drop(_ observer: Observer) {
        if !observer.isRegistered { return }
        observer.isRegistered = false
        endedCount += 1
        if endedCount * 2 >= all.count { forgetEnded() }
    }

    private func forgetEnded() {
        if endedCount == 0 { return }
        all.removeAll { observer in
            if !observer.isRegistered { observer.isListed = false }
            return !observer.isRegistered
        }
        endedCount = 0
    }

    // MARK: Steps

    /// The session committed; observers hear of it at the next delivery, those in `skipped` do not hear of this commit.
    public func noteCommit(_ changeset: UnsafeRawBufferPointer, skipping skipped: [Observer.Callback] = []) {
        if isIdle { return }
        ownCommits.append((Array(changeset), skipped))
    }

    /// Brings observers up to the commits of the session itself, whose state is `group`.
    public func settle(_ group: Group) throws {
        if ownCommits.isEmpty { return }
        let commits = ownCommits
        ownCommits = []
        if isIdle { return }
        if commits.allSatisfy({ $0.skipped.isEmpty }) {
            try step(group, old: nil, skipping: []) { parse in
                for commit in commits { try commit.changeset.withUnsafeBytes(parse) }
            }
            return
        }
        // All are at the state of the last one, but each has its own listeners.
        for commit in commits {
            try step(group, old: nil, skipping: commit.skipped) { try commit.changeset.withUnsafeBytes($0) }
        }
    }

    /// Brings observers from `old`, where own commits left the session, to `group`.
    ///
    /// - Parameter changesets: calls its argument with each changeset on the way, in order.
    public func advance(
        from old: Group?, to group: Group, _ changesets: (_ parse: (UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        if let old { try settle(old) } else { try settle(group) }
        if isIdle { return }
        try step(group, old: old, skipping: [], changesets)
    }

    private func step(
        _ group: Group, old: Group?, skipping skipped: [Observer.Callback],
        _ changesets: (_ parse: (UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        let known = try graph ?? LinkGraph(group)
        var tables: Set<TableKey>? = []
        for observer in observers {
            if observer.dependsOnEverything { tables = nil } else { tables?.formUnion(observer.tables(known)) }
        }
        var collector = ChangeCollector(tables: tables, collections: observers.compactMap(\.identity))
        try changesets { try collector.add($0) }
        let changes = collector.finish()
        // New properties may link where none linked before.
        let present = changes.schemaWasExtended || changes.schemaWasChanged ? try LinkGraph(group) : known
        graph = present
        let step = ObservationStep(changes, group, old: old, present)
        for observer in observers { try observer.advance(step, skipping: skipped) }
    }

    /// The session is at `group`, and it is not known what happened since it was where observers know it. States are compared as
    /// far as they are remembered; collections count as replaced.
    public func resume(_ group: Group) throws {
        ownCommits = []
        if isIdle { return }
        let graph = try LinkGraph(group)
        self.graph = graph
        let step = ObservationStep(ChangeSet(), group, old: nil, graph)
        step.hasGap = true
        for observer in observers { try observer.advance(step, skipping: []) }
    }

    /// What comes next will be `resume`: what only the version that is left, `group`, can tell is remembered for that.
    public func prepareForGap(_ group: Group) throws {
        for observer in observers { try observer.remember(group) }
    }

    /// All accessors of the session were invalidated: objects and collections are observed no more, results are.
    public func dropInvalidated() {
        ownCommits = []
        for observer in observers where !observer.canResume { drop(observer) }
    }

    // MARK: Delivery

    /// Calls back whoever has something to hear; the state of the session, which observers were brought to, is `group`.
    ///
    /// A callback may make this be called again, by beginning a write transaction or by refreshing; then it is the inner call
    /// that tells the callbacks whose turn has not come yet.
    public func deliver(_ group: Group) throws {
        try settle(group)
        if isIdle { return }
        for observer in observers where observer.callbacks.contains(where: { !$0.hasBeenCalled }) { try observer.prepare(group) }
        depth += 1
        defer { depth -= 1 }
        for observer in observers {
            for callback in observer.callbacks { observer.deliver(callback) }
        }
    }
}

extension ObservedChange.Content {
    var isNone: Bool {
        if case .none = self { return true }
        return false
    }
}
