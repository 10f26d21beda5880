import Synchronization

/// Our turn to write, got without a waiting thread: the session's write lock is held until the turn is used or given up.
///
/// May be passed between threads. A turn that is dropped gives itself up.
package final class WriteTurn: Sendable {
    private let store: Store
    private let participant: Participant
    private let isOver = Mutex(false)

    init(_ store: Store, _ participant: Participant) {
        self.store = store
        self.participant = participant
    }

    deinit { giveUp() }

    private func end() -> Bool {
        isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
    }

    /// Begins the transaction on the newest version. It may be used on any thread, by one at a time, and ended on any.
    ///
    /// - Throws: `SessionError.tooManyVersions`, and what reading the version may throw; the turn is over then.
    package func begin() throws -> WriteTransaction {
        precondition(end(), "the turn to write is over; ask for another one")
        return try store.begin(participant, participant.deadline, owner: .keeper)
    }

    /// As `begin`; nil where the turn was taken back.
    package func beginIfHeld() throws -> WriteTransaction? {
        end() ? try store.begin(participant, participant.deadline, owner: .keeper) : nil
    }

    /// Lets the next one write. Does nothing where the turn is over.
    package func giveUp() { _ = takeBack() }

    /// True where the turn was not over yet.
    fileprivate func takeBack() -> Bool {
        if ForkedChild.isHere || !end() { return false }
        participant.writeLockKeeper.release()
        participant.endWriting()
        return true
    }
}

extension Store {
    /// Asks for our turn to write, and returns at once.
    ///
    /// - Parameters:
    ///   - deadline: when to give up; by default never.
    ///   - body: called on a thread of the store's when it is our turn, or when that cannot be. It must be quick, and not wait
    ///     for a transaction of this store.
    ///   - patience: how long a turn may stay unused while others wait: who was given it may itself be waiting for them.
    ///   - takenBack: called, like `body`, when the turn was taken back for that reason. Without it turns are not taken back.
    /// - Throws: what prevents asking; `body` is not called then.
    package func requestWriteTurn(
        deadline: Deadline = .never, patience: Duration = .milliseconds(500), takenBack: (@Sendable () -> Void)? = nil,
        _ body: @escaping @Sendable (Result<WriteTurn, any Error>) -> Void
    ) throws {
        let participant = try beginWriting()
        do {
            try participant.writeLockKeeper.acquire(deadline) { [self] result in
                switch result {
                case .success:
                    let turn = WriteTurn(self, participant)
                    if let takenBack {
                        participant.writeLockKeeper.watch(patience: patience) { [weak turn] in
                            if turn?.takeBack() == true { takenBack() }
                        }
                    }
                    body(.success(turn))
                case .failure(let error):
                    participant.endWriting()
                    body(.failure(error))
                }
            }
        } catch {
            participant.endWriting()
            throw error
        }
    }

    /// As `beginWrite`, for a transaction that may be used on any thread, by one at a time, and ended on any. Costs two changes
    /// of thread more.
    package func beginMovableWrite(deadline: Deadline? = nil) throws -> WriteTransaction {
        let participant = try beginWriting()
        let limit = deadline ?? participant.deadline
        do { try participant.writeLockKeeper.acquire(limit) } catch {
            participant.endWriting()
            throw error
        }
        return try begin(participant, limit, owner: .keeper)
    }
}
