import Foundation
internal import SharedStore

/// The observers of one session: brings them along as the session goes from version to version, and has them called.
///
/// Order of a commit of the session's own: observers take notice of the change, observers of the Realm as a whole are called, the
/// others follow at the next turn of the run loop, queue or actor, or before the next write transaction of the session. Where the
/// session goes to a version of others, all are called at once; within a write transaction that just began, before its block
/// runs.
final class SessionObservation: SessionObserver {
    private unowned let session: Session
    let engine = ObservationEngine()
    private struct Held {
        weak var observation: Observation?
    }
    /// What tokens hold, for the end of the place.
    private var observations: [ObjectIdentifier: Held] = [:]
    private var realmBlocks: [(number: Int, block: (Realm.Notification) -> Void)] = []
    private var nextNumber = 0
    private var isScheduled = false
    /// The session had no version for a while, so that there may be changes nobody told of.
    private var hasGap = false
    /// The version that `refreshRequired` was told for last.
    private var announcedVersion: UInt64 = 0

    private init(_ session: Session) { self.session = session }

    static func of(_ session: Session) -> SessionObservation {
        if let present = session.observer as? SessionObservation { return present }
        let observation = SessionObservation(session)
        session.observer = observation
        return observation
    }

    // MARK: Registering

    /// Stops the process where nothing can be observed.
    static func check(_ session: Session) {
        session.checkConfinement()
        if session.isFrozen { misuse("Frozen Realms do not change and do not have change notifications.") }
        if session.configuration.readOnly { misuse("Read-only Realms do not change and do not have change notifications.") }
        guard let waker = session.waker, waker.scheduler.isServed else {
            misuse(
                "Can only add notification blocks from within runloops: observe on a thread whose run loop runs, on a serial queue (`on:`) or on an actor."
            )
        }
    }

    func observe(_ subject: ObservedSubject, _ keyPaths: [ObservedKeyPath]?, _ body: @escaping (ObservedChange) -> Void)
        -> Observation
    {
        if let writer = session.writer, !writer.editor.changes.isEmpty {
            misuse(
                "Cannot create asynchronous query after making changes in a write transaction: observe before the transaction or after its commit."
            )
        }
        let isOver = Observation.Flag()
        let callback = reading {
            let group = try session.currentGroup()
            try resumeIfNeeded(group)
            return try engine.observe(subject, keyPaths: keyPaths, in: group) { change in
                if !isOver.isSet.load(ordering: .acquiring) { body(change) }
            }.callback
        }
        schedule()
        return Observation(session, .callback(callback), isOver: isOver)
    }

    func observeRealm(_ block: @escaping (Realm.Notification) -> Void) -> Observation {
        let number = nextNumber
        nextNumber += 1
        let isOver = Observation.Flag()
        realmBlocks.append(
            (
                number,
                { notification in
                    if !isOver.isSet.load(ordering: .acquiring) { block(notification) }
                }
            ))
        return Observation(session, .realm(number), isOver: isOver)
    }

    func add(_ observation: Observation) { observations[ObjectIdentifier(observation)] = Held(observation: observation) }

    func remove(_ observation: Observation, _ target: Observation.Target) {
        observations[ObjectIdentifier(observation)] = nil
        switch target {
        case .callback(let callback): callback.cancel()
        case .realm(let number): realmBlocks.removeAll { $0.number == number }
        case .none: break
        }
    }

    func sessionLostItsPlace(_ session: Session) {
        let left = observations
        observations = [:]
        realmBlocks = []
        // Tokens that are left keep nothing alive any more.
        for held in left.values { held.observation?.letGo() }
    }

    // MARK: The session goes on

    func session(_ session: Session, didAdvanceFrom old: SessionReader?, by step: SessionStep) {
        switch step {
        case .commit(let tokens):
            let skipped = tokens.compactMap { ($0 as? ObserverToken)?.observation(in: session)?.target }
            noteCommit(since: old, skipping: skipped)
            tellRealmObservers(.didChange, skipping: skipped)
            if engine.hasPending { schedule() }
        case .beganWrite, .refresh:
            advance(from: old)
            deliver()
            tellRealmObservers(.didChange)
        }
    }

    func sessionNeedsRefresh(_ session: Session) {
        // Of one commit several may tell: the committing session and the file's listener.
        guard let newest = try? session.origin.newestVersion(), newest != announcedVersion else { return }
        announcedVersion = newest
        tellRealmObservers(.refreshRequired)
    }

    func sessionWillBeInvalidated(_ session: Session) {
        if engine.isIdle || hasGap { return }
        // What cannot be read now is replaced later.
        if let group = session.currentReader?.group { try? engine.prepareForGap(group) }
    }

    func sessionWasInvalidated(_ session: Session) {
        hasGap = true
        engine.dropInvalidated()
    }

    var isDelivering: Bool { engine.isDelivering }

    /// The changesets that lead from one version to another; nil where they cannot be had.
    private func history(_ group: Group) throws -> HistoryReader? {
        guard let reader = session.currentReader else { return nil }
        return try HistoryReader(memory: group.memory, topRef: group.topRef, version: reader.version)
    }

    private func noteCommit(since old: SessionReader?, skipping targets: [Observation.Target]) {
        if engine.isIdle { return }
        follow(from: old) { group, history, version in
            let skipped = targets.compactMap { if case .callback(let callback) = $0 { callback } else { nil } }
            try history.forEachChangeset(since: version) { engine.noteCommit($0, skipping: skipped) }
            try engine.settle(group)
        }
    }

    private func advance(from old: SessionReader?) {
        if engine.isIdle { return }
        follow(from: old) { group, history, version in
            try engine.advance(from: old?.group, to: group) { try history.forEachChangeset(since: version, $0) }
        }
    }

    /// Where changes cannot be followed, because the history has a gap or a changeset of others is damaged, states are compared
    /// instead.
    private func follow(from old: SessionReader?, _ body: (Group, HistoryReader, UInt64) throws -> Void) {
        reading {
            let group = try session.currentGroup()
            if hasGap || old == nil {
                hasGap = true
                return try resumeIfNeeded(group)
            }
            guard let old else { return }
            func resume() throws {
                try engine.prepareForGap(old.group)
                try engine.resume(group)
            }
            do {
                guard let history = try history(group) else { return }
                try body(group, history, old.version)
            } catch is ChangesetError { try resume() } catch is HistoryError { try resume() }
        }
    }

    private func resumeIfNeeded(_ group: Group) throws {
        if !hasGap { return }
        hasGap = false
        try engine.resume(group)
    }

    // MARK: Delivery

    /// Calls whoever has something to hear.
    func deliver() {
        if engine.isIdle || session.isClosed { return }
        reading {
            let group = try session.currentGroup()
            try resumeIfNeeded(group)
            try engine.deliver(group)
        }
        // Commits that were heard of meanwhile were left for later.
        if !engine.isDelivering { session.waker?.wakeIfBehind() }
    }

    private func tellRealmObservers(_ notification: Realm.Notification, skipping targets: [Observation.Target] = []) {
        let skipped = targets.compactMap { if case .realm(let number) = $0 { number } else { nil } }
        for (number, block) in realmBlocks where !skipped.contains(number) && realmBlocks.contains(where: { $0.number == number })
        { block(notification) }
    }

    /// Has `deliverNotifications` called at the session's place, soon.
    func schedule() {
        if isScheduled { return }
        guard let waker = session.waker else { return }
        isScheduled = true
        waker.schedule { session in
            SessionObservation.of(session).isScheduled = false
            session.deliverNotifications()
        }
    }

    func sessionDidBeginWrite(_ session: Session) { deliver() }
    func sessionDidCancelWrite(_ session: Session) { if engine.hasPending { schedule() } }
}

extension Session {
    /// A turn of the session's run loop, queue or actor: goes to the newest version, unless it is not to advance by itself, and
    /// calls observers. Within a write transaction nothing is done; its end asks again.
    func deliverNotifications() {
        guard !isClosed, writer == nil, let observation = observer as? SessionObservation else { return }
        if autorefresh { hearOfCommit() }
        observation.deliver()
    }
}
