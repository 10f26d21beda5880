import Foundation

/// Names an asynchronous write or commit, to cancel it.
public typealias AsyncTransactionId = UInt32

extension Realm {
    public typealias AsyncTransactionId = UInt32

    /// Runs `block` in a write transaction as soon as nobody else writes, and commits it, without making the caller wait.
    ///
    /// Block and completion run where the Realm belongs: on its queue or actor, or in the run loop of its thread, which must be
    /// running. Until then the Realm stays alive.
    /// - Parameter onComplete: called when the changes are safe on the disk, or with the error that prevented that.
    @discardableResult
    public func writeAsync(_ block: @escaping () -> Void, onComplete: ((Swift.Error?) -> Void)? = nil) -> AsyncTransactionId {
        let session = asyncSession("write")
        return session.startedAsyncWrites.add(
            {
                block()
                if let writes = session.asyncWrites, session.writer != nil { _ = writes.commit(allowGrouping: false, onComplete) }
            }, failed: onComplete)
    }

    /// Runs `asyncWriteBlock` in a write transaction as soon as nobody else writes, without making the caller wait.
    ///
    /// The block ends the transaction by `commitWrite`, `commitAsyncWrite` or `cancelWrite`; one that is still open when the
    /// block returns is undone.
    @discardableResult
    public func beginAsyncWrite(_ asyncWriteBlock: @escaping () -> Void) -> AsyncTransactionId {
        asyncSession("begin a write transaction").startedAsyncWrites.add(asyncWriteBlock)
    }

    /// Commits the running write transaction without waiting for the disk: its changes are seen at once, here and by others.
    ///
    /// - Parameters:
    ///   - allowGrouping: where further asynchronous writes of this Realm wait, the changes go to the disk together with theirs,
    ///     which is faster by far. Nothing of the group is lost or kept alone by a power cut.
    ///   - onComplete: called when the changes are safe on the disk, or with the error that prevented that. No write transaction
    ///     can begin in it.
    @discardableResult
    public func commitAsyncWrite(allowGrouping: Bool = false, _ onComplete: ((Swift.Error?) -> Void)? = nil) -> AsyncTransactionId
    {
        let session = asyncSession("commit a write transaction")
        if session.writer == nil { misuse("Can't commit a non-existing write transaction") }
        return session.startedAsyncWrites.commit(allowGrouping: allowGrouping, onComplete)
    }

    /// Drops an asynchronous write that has not begun. Of a commit that is under way only the completion block is dropped.
    public func cancelAsyncWrite(_ asyncTransactionId: AsyncTransactionId) throws {
        session.checkConfinement()
        session.asyncWrites?.cancel(asyncTransactionId)
    }

    /// Whether asynchronous writes wait, run, or are on their way to the disk.
    public var isPerformingAsynchronousWriteOperations: Bool { session.asyncWrites?.isBusy ?? false }

    private func asyncSession(_ what: String) -> Session {
        session.checkConfinement()
        if session.isFrozen { misuse("Can't perform transactions on a frozen Realm") }
        if session.configuration.readOnly { misuse("Can't perform transactions on read-only Realms.") }
        guard let waker = session.waker, waker.scheduler.isServed else {
            misuse(
                "Can't asynchronously \(what): the Realm's thread has no running run loop. Open the Realm on the main thread, a queue or an actor."
            )
        }
        return session
    }

    // MARK: Tasks

    /// Runs `block` in a write transaction. Suspends the task instead of its thread: until nobody else writes, and until the
    /// changes are on the disk.
    ///
    /// For Realms of an actor, the main one included; others stop the process.
    /// - Throws: what the block throws, after the transaction was undone; `CancellationError` where the task is cancelled before
    ///   the block runs; `Realm.Error` where the transaction cannot begin or the commit fails.
    @discardableResult
    public func asyncWrite<Result>(_isolation actor: isolated any Actor = #isolation, _ block: () throws -> Result) async throws
        -> Result
    {
        let session = requireActor("asyncWrite")
        session.checkWritable()
        let writes = session.startedAsyncWrites
        try Task.checkCancellation()
        let id = writes.join()
        do {
            repeat { try await writes.waitForTurn(id, session, actor) } while try !writes.begin(id)
        } catch {
            writes.leave(id)
            throw error is CancellationError ? error : Realm.Error(writing: error, session)
        }
        let result: Result
        do { result = try block() } catch {
            if session.writer != nil { session.cancelWrite() }
            throw error
        }
        if session.writer != nil { try await writes.commit(session, actor) }
        return result
    }

    /// Goes to the newest version, as `refresh` does, without making other code of the actor wait.
    ///
    /// For Realms of an actor, the main one included; others stop the process.
    @discardableResult
    public func asyncRefresh(_isolation actor: isolated any Actor = #isolation) async -> Bool {
        let session = requireActor("asyncRefresh")
        await Task.yield()
        return session.refresh()
    }

    private func requireActor(_ what: String) -> Session {
        switch session.confinement {
        case .main, .actor: break
        default: misuse("Can only call \(what) on main actor or actor-isolated Realms")
        }
        session.checkConfinement()
        return session
    }
}

extension Session {
    var startedAsyncWrites: AsyncWrites {
        if let asyncWrites { return asyncWrites }
        let writes = AsyncWrites(self)
        asyncWrites = writes
        return writes
    }
}

extension AsyncWrites {
    /// Returns at the session's place when it is the turn of `id`.
    fileprivate func waitForTurn(_ id: UInt32, _ session: Session, _ actor: isolated any Actor) async throws {
        try await withTaskCancellationHandler {
            // The actor is named, and so captured: a closure that does not capture it is isolated to nothing, and would run
            // anywhere.
            try await withCheckedThrowingContinuation(isolation: actor) { wait(id, $0) }
        } onCancel: { [waker = session.waker] in
            waker?.schedule { $0.asyncWrites?.cancelTask(id) }
        }
    }

    /// Commits, and returns when the changes are durable.
    fileprivate func commit(_ session: Session, _ actor: isolated any Actor) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            _ = commit(allowGrouping: true) { error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            }
        }
    }
}
