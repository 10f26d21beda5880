import Dispatch
import Synchronization

/// The asynchronous write transactions of one session, in the order in which they were asked for.
///
/// One after another gets its turn: the right to write is asked for without waiting, and when it comes the block runs at the
/// session's place. A transaction that is committed asynchronously is visible at once; it is made durable on another thread,
/// which then lets the next writer go on. With grouping the right to write is kept instead and the next block runs in it, so that
/// one sync serves all.
///
/// The place may itself be waiting, for somebody who waits for the right to write that was granted to it. So a right that is not
/// used for a while is taken back where others want it, and asked for again.
///
/// Used at the session's place only. While anything is under way the session is kept alive.
final class AsyncWrites {
    typealias Completion = ((any Error)?) -> Void

    /// More commits than this do not share a sync, so that nobody waits long for the first one.
    private static let groupSizeMax = 64

    /// How long the place may keep a right to write that it does not use from others.
    private static let patience = Duration.milliseconds(500)

    private enum Work {
        case block(() -> Void, failed: Completion?)
        /// A task, which begins the transaction itself once it was resumed; nil while it is not waiting.
        case task(CheckedContinuation<Void, any Error>?)
    }

    private struct Pending {
        let id: UInt32
        var work: Work
    }

    private struct Commit {
        let id: UInt32
        var completion: Completion?
    }

    private unowned let session: Session
    private var lastID: UInt32 = 0
    private var pending: [Pending] = []
    /// The right to write, asked for or granted.
    private var request: TurnRequest?
    /// A transaction that goes on with the next block.
    private var group: HeldWriter?
    /// Visible, not durable yet, and nobody is at that.
    private var unsynced: [Commit] = []
    /// Being made durable.
    private var syncing: [[Commit]] = []
    private var isRunningBlock = false
    private var isCommitting = false
    private(set) var isRunningCompletion = false
    private var keptAlive: Session?

    init(_ session: Session) { self.session = session }

    var isBusy: Bool { isRunningBlock || !pending.isEmpty || group != nil || !unsynced.isEmpty || !syncing.isEmpty }

    private func makeID() -> UInt32 {
        lastID &+= 1
        return lastID
    }

    // MARK: Asking

    func add(_ block: @escaping () -> Void, failed: Completion? = nil) -> UInt32 {
        let id = makeID()
        pending.append(Pending(id: id, work: .block(block, failed: failed)))
        keptAlive = session
        ask()
        return id
    }

    /// Drops what has not begun; of what is being committed only the completion block.
    func cancel(_ id: UInt32) {
        pending.removeAll { $0.id == id }
        for index in unsynced.indices where unsynced[index].id == id { unsynced[index].completion = nil }
        for group in syncing.indices {
            for index in syncing[group].indices where syncing[group][index].id == id { syncing[group][index].completion = nil }
        }
    }

    /// A transaction of the session has ended otherwise than by an asynchronous commit. What went before it in the same group
    /// goes to the disk; and those in line need the right to write again if the transaction did not wait in line.
    func ended(_ writer: any SessionWriter) {
        if isCommitting { return }
        if !unsynced.isEmpty { makeDurable(writer) }
        ask()
    }

    private func ask() {
        if pending.isEmpty || request != nil || group != nil || session.writer != nil { return }
        guard let waker = session.waker else { return }
        let request = TurnRequest(session.origin, patience: AsyncWrites.patience) { request in
            waker.schedule { $0.asyncWrites?.turnCame(request) }
        }
        self.request = request
        request.ask()
    }

    /// For a transaction that does not wait in line: begins with what was asked for, if anything was, and waits for that.
    func beginBeforeOthers() throws -> (any SessionWriter)? {
        if let writer = group?.take() {
            group = nil
            makeDurable(writer)
        }
        guard let request else { return nil }
        self.request = nil
        return try request.waitAndBegin()
    }

    /// The thread of the session ends. What was committed is made durable, nothing else happens any more.
    func placeEnds() {
        if let writer = group?.take() {
            do { try writer.finish() } catch {
                Logger.log(.error, .transaction) { "asynchronous commits could not be made durable: \(error)" }
            }
        }
        group = nil
        request = nil
        pending = []
        unsynced = []
        syncing = []
        let session = keptAlive
        keptAlive = nil
        withExtendedLifetime(session) {}
    }

    // MARK: Turns

    private func turnCame(_ request: TurnRequest) {
        if self.request !== request { return }
        runNext()
    }

    /// Gives the turn, or the group that goes on, to the first in line.
    private func runNext() {
        if session.writer != nil { return }
        guard let next = pending.first else {
            request = nil
            if let writer = group?.take() {
                group = nil
                makeDurable(writer)
            }
            return rest()
        }
        switch next.work {
        case .task(let continuation):
            pending[0].work = .task(nil)
            continuation?.resume()
        case .block(let block, let failed):
            do { if try !beginInTurn() { return } } catch {
                pending.removeFirst()
                if failed == nil { Logger.log(.error, .transaction) { "an asynchronous write could not begin: \(error)" } }
                complete([Commit(id: next.id, completion: failed)], error)
                ask()
                return
            }
            pending.removeFirst()
            isRunningBlock = true
            block()
            if session.writer != nil { session.cancelWrite() }
            isRunningBlock = false
            ask()
            rest()
        }
    }

    private var hasTurn: Bool { request?.isFulfilled == true || group != nil }

    /// False where the right to write was taken back meanwhile: it comes again.
    private func beginInTurn() throws -> Bool {
        if let group {
            guard let writer = group.take() else { return false }
            self.group = nil
            try session.begin(writer)
            return true
        }
        guard let request else { return false }
        do {
            guard let writer = try request.begin() else { return false }
            self.request = nil
            try session.begin(writer)
            return true
        } catch {
            self.request = nil
            throw error
        }
    }

    /// Nothing is under way any more: the session lives as long as somebody refers to it.
    private func rest() {
        if isBusy { return }
        let session = keptAlive
        keptAlive = nil
        // Not before this object has nothing left to do.
        withExtendedLifetime(session) {}
    }

    // MARK: Committing

    /// Commits the running transaction; the rest happens in the background. What goes wrong is told to the completion block.
    func commit(allowGrouping: Bool, skipping tokens: [NotificationToken] = [], _ completion: Completion?) -> UInt32 {
        let id = makeID()
        keptAlive = session
        guard let writer = session.writer else { misuse("Can't commit a non-existing write transaction") }
        let commit = Commit(id: id, completion: completion)
        do {
            isCommitting = true
            defer { isCommitting = false }
            if writer.isMovable {
                unsynced.append(commit)
                try session.commit(skipping: tokens) { try $0.commitWithoutSync() }
            } else {
                try session.commitWrite(skipping: tokens)
                completeLater([commit], nil)
            }
        } catch {
            unsynced.removeAll { $0.id == id }
            completeLater([commit], error)
            if !unsynced.isEmpty { makeDurable(writer) }
            ask()
            return id
        }
        if writer.isMovable {
            if allowGrouping && !pending.isEmpty && unsynced.count < AsyncWrites.groupSizeMax && !writer.othersWait {
                hold(writer)
            } else {
                makeDurable(writer)
            }
        }
        ask()
        return id
    }

    private func hold(_ writer: any SessionWriter) {
        guard let waker = session.waker else { return }
        let held = HeldWriter(writer)
        group = held
        writer.watch(patience: AsyncWrites.patience) {
            guard let writer = held.take() else { return }
            let failure = Transfer<(any Error)?>(nil)
            do { try writer.finish() } catch { failure.value = error }
            waker.schedule { $0.asyncWrites?.groupEnded(held, failure.value) }
        }
        waker.schedule { $0.asyncWrites?.groupGoesOn() }
    }

    private func groupGoesOn() {
        if group != nil { runNext() }
    }

    /// The group was ended for the sake of others, and is durable.
    private func groupEnded(_ held: HeldWriter, _ error: (any Error)?) {
        guard group === held else { return }
        group = nil
        let commits = unsynced
        unsynced = []
        complete(commits, error)
        ask()
    }

    /// Syncs what was committed and lets others write, on another thread.
    private func makeDurable(_ writer: any SessionWriter) {
        let commits = unsynced
        unsynced = []
        guard let waker = session.waker else { return }
        syncing.append(commits)
        let transfer = Transfer<(any SessionWriter)?>(writer)
        DispatchQueue.global().async {
            let failure = Transfer<(any Error)?>(nil)
            do { try transfer.value?.finish() } catch { failure.value = error }
            // Whoever hears of the end may close the file at once.
            transfer.value = nil
            waker.schedule { $0.asyncWrites?.didSync(failure.value) }
        }
    }

    private func didSync(_ error: (any Error)?) {
        // The groups come back in the order in which they went: the right to write is with one at a time.
        if syncing.isEmpty { return }
        complete(syncing.removeFirst(), error)
    }

    private func completeLater(_ commits: [Commit], _ error: (any Error)?) {
        syncing.append(commits)
        let failure = Transfer(error)
        session.waker?.schedule { $0.asyncWrites?.didSync(failure.value) }
    }

    private func complete(_ commits: [Commit], _ error: (any Error)?) {
        isRunningCompletion = true
        let error = error.map { Realm.Error(writing: $0, session) }
        for commit in commits { commit.completion?(error) }
        isRunningCompletion = false
        rest()
    }

    // MARK: Tasks

    /// Waits for the turn of a task. When it returns, the task is at the session's place and calls `begin`; which fails where a
    /// transaction that did not wait in line has used the turn meanwhile.
    func join() -> UInt32 {
        let id = makeID()
        pending.append(Pending(id: id, work: .task(nil)))
        keptAlive = session
        return id
    }

    func wait(_ id: UInt32, _ continuation: CheckedContinuation<Void, any Error>) {
        session.checkConfinement()
        guard let index = pending.firstIndex(where: { $0.id == id }) else {
            return continuation.resume(throwing: CancellationError())
        }
        pending[index].work = .task(continuation)
        if index == 0, hasTurn {
            pending[index].work = .task(nil)
            return continuation.resume()
        }
        ask()
    }

    /// The task of `id` was cancelled; nothing happens where it has begun.
    func cancelTask(_ id: UInt32) {
        guard let index = pending.firstIndex(where: { $0.id == id }), case .task(let continuation?) = pending[index].work else {
            return
        }
        leave(id)
        continuation.resume(throwing: CancellationError())
    }

    /// Begins the transaction of a task; false where it has to wait again.
    func begin(_ id: UInt32) throws -> Bool {
        guard pending.first?.id == id, session.writer == nil, hasTurn, try beginInTurn() else { return false }
        pending.removeFirst()
        return true
    }

    /// The task of `id` does not want its turn any more.
    func leave(_ id: UInt32) {
        guard let index = pending.firstIndex(where: { $0.id == id }) else { return }
        pending.remove(at: index)
        if index == 0, hasTurn { runNext() }
        rest()
    }
}

/// A request for the right to write, and its answer. Where that is taken back, another one comes.
private final class TurnRequest: Sendable {
    private enum State {
        case asked
        case granted(any SessionTurn)
        /// The place is about to use it.
        case taken
        case failed(any Error)
    }
    private let state = Mutex(State.asked)
    private let arrived = DispatchSemaphore(value: 0)
    private let origin: any SessionOrigin
    private let patience: Duration
    private let came: @Sendable (TurnRequest) -> Void

    /// - Parameter came: called on some thread with each answer.
    init(_ origin: any SessionOrigin, patience: Duration, came: @escaping @Sendable (TurnRequest) -> Void) {
        self.origin = origin
        self.patience = patience
        self.came = came
    }

    func ask() {
        do {
            try origin.requestTurn(patience: patience, takenBack: { [weak self] in self?.wasTakenBack() }) { [weak self] result in
                // Where nobody waits any more the turn is given up by being dropped.
                self?.fulfil(result)
            }
        } catch { fulfil(.failure(error)) }
    }

    private func fulfil(_ result: Result<any SessionTurn, any Error>) {
        state.withLock { state in
            switch result {
            case .success(let turn): state = .granted(turn)
            case .failure(let error): state = .failed(error)
            }
        }
        arrived.signal()
        came(self)
    }

    private func wasTakenBack() {
        let old = state.withLock { state in
            let old = state
            if case .granted = state { state = .asked }
            return old
        }
        withExtendedLifetime(old) {}
        ask()
    }

    var isFulfilled: Bool {
        state.withLock { state in
            switch state {
            case .granted, .failed: true
            case .asked, .taken: false
            }
        }
    }

    /// Nil where the answer is not there, or was taken back.
    func begin() throws -> (any SessionWriter)? {
        let turn = try state.withLock { state throws -> (any SessionTurn)? in
            switch state {
            case .granted(let turn):
                state = .taken
                return turn
            case .failed(let error): throw error
            case .asked, .taken: return nil
            }
        }
        guard let turn else { return nil }
        if let writer = try turn.begin() { return writer }
        state.withLock { if case .taken = $0 { $0 = .asked } }
        return nil
    }

    func waitAndBegin() throws -> any SessionWriter {
        while true {
            if let writer = try begin() { return writer }
            arrived.wait()
        }
    }
}

/// A writer that waits for its place to go on with it.
private final class HeldWriter: Sendable {
    private let writer: Mutex<Transfer<any SessionWriter>?>

    init(_ writer: any SessionWriter) { self.writer = Mutex(Transfer(writer)) }

    /// For the first who asks.
    func take() -> (any SessionWriter)? {
        let taken = writer.withLock { writer -> Transfer<any SessionWriter>? in
            defer { writer = nil }
            return writer
        }
        return taken?.value
    }
}

/// Takes something to another place, where it is used by one at a time.
final class Transfer<Value>: @unchecked Sendable {
    // Sendable: whoever hands it over does not use it any more.
    var value: Value
    init(_ value: Value) { self.value = value }
}
