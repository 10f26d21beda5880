import Dispatch
import Synchronization

/// The asynchronous write transactions of one session, in the order in which they were asked for.
///
/// One after another gets its turn: the right to write is asked for without waiting, and when it comes the block runs at the session's
/// place. A transaction that is committed asynchronously is visible at once; it is made durable on another thread, which then lets the
/// next writer go on. With grouping the right to write is kept instead and the next block runs in it, so that one sync serves all.
///
/// Used at the session's place only. While anything is under way the session is kept alive.
final class AsyncWrites {
    typealias Completion = ((any Error)?) -> Void

    /// More commits than this do not share a sync, so that nobody waits long for the first one.
    private static let groupSizeMax = 64

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
    private var group: (any SessionWriter)?
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

    /// A transaction of the session has ended otherwise than by an asynchronous commit. What went before it in the same group goes to the
    /// disk; and those in line need the right to write again if the transaction did not wait in line.
    func ended(_ writer: any SessionWriter) {
        if isCommitting { return }
        if !unsynced.isEmpty { makeDurable(writer) }
        ask()
    }

    private func ask() {
        if pending.isEmpty || request != nil || group != nil || session.writer != nil { return }
        guard let waker = session.waker else { return }
        let request = TurnRequest()
        self.request = request
        do {
            try session.origin.requestTurn { result in
                request.fulfil(result)
                waker.schedule { $0.asyncWrites?.turnCame(request) }
            }
        } catch {
            request.fulfil(.failure(error))
            waker.schedule { $0.asyncWrites?.turnCame(request) }
        }
    }

    /// For a transaction that does not wait in line: waits for what was asked for, if anything was.
    func takeTurn() throws -> (any SessionTurn)? {
        if let group {
            self.group = nil
            makeDurable(group)
        }
        guard let request else { return nil }
        self.request = nil
        return try request.wait()
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
            if let group {
                self.group = nil
                makeDurable(group)
            }
            return rest()
        }
        switch next.work {
        case .task(let continuation):
            pending[0].work = .task(nil)
            continuation?.resume()
        case .block(let block, let failed):
            pending.removeFirst()
            do { try beginInTurn() } catch {
                if failed == nil { Logger.log(.error, .transaction) { "an asynchronous write could not begin: \(error)" } }
                complete([Commit(id: next.id, completion: failed)], error)
                ask()
                return
            }
            isRunningBlock = true
            block()
            if session.writer != nil { session.cancelWrite() }
            isRunningBlock = false
            ask()
            rest()
        }
    }

    private func beginInTurn() throws {
        if let group {
            self.group = nil
            return try session.begin(group)
        }
        guard let request else { throw CancellationError() }
        self.request = nil
        guard let turn = try request.wait() else { throw CancellationError() }
        try session.begin(turn.begin())
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
                group = writer
                session.waker?.schedule { $0.asyncWrites?.groupGoesOn() }
            } else {
                makeDurable(writer)
            }
        }
        ask()
        return id
    }

    private func groupGoesOn() {
        if group != nil { runNext() }
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
        guard let index = pending.firstIndex(where: { $0.id == id }) else { return continuation.resume(throwing: CancellationError()) }
        pending[index].work = .task(continuation)
        if index == 0, request?.isFulfilled == true || group != nil {
            pending[index].work = .task(nil)
            return continuation.resume()
        }
        ask()
    }

    /// The task of `id` was cancelled; nothing happens where it has begun.
    func cancelTask(_ id: UInt32) {
        guard let index = pending.firstIndex(where: { $0.id == id }), case .task(let continuation?) = pending[index].work else { return }
        leave(id)
        continuation.resume(throwing: CancellationError())
    }

    /// Begins the transaction of a task; false where it has to wait again.
    func begin(_ id: UInt32) throws -> Bool {
        guard pending.first?.id == id, session.writer == nil, request?.isFulfilled == true || group != nil else { return false }
        pending.removeFirst()
        try beginInTurn()
        return true
    }

    /// The task of `id` does not want its turn any more.
    func leave(_ id: UInt32) {
        guard let index = pending.firstIndex(where: { $0.id == id }) else { return }
        pending.remove(at: index)
        if index == 0, request?.isFulfilled == true || group != nil { runNext() }
        rest()
    }
}

/// A request for the right to write, and its answer.
private final class TurnRequest: Sendable {
    private let answer = Mutex<Result<any SessionTurn, any Error>?>(nil)
    private let arrived = DispatchSemaphore(value: 0)

    func fulfil(_ result: Result<any SessionTurn, any Error>) {
        answer.withLock { $0 = result }
        arrived.signal()
    }

    var isFulfilled: Bool { answer.withLock { $0 != nil } }

    /// Waits for the answer and takes it.
    func wait() throws -> (any SessionTurn)? {
        arrived.wait()
        defer { arrived.signal() }
        return try answer.withLock { $0 }?.get()
    }
}

/// Takes something to another place, where it is used by one at a time.
final class Transfer<Value>: @unchecked Sendable {
    // Sendable: whoever hands it over does not use it any more.
    var value: Value
    init(_ value: Value) { self.value = value }
}
