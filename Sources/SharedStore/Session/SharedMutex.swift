import CShims
import Glibc
import Synchronization
import SystemCalls

/// The three mutexes of the lock file, outermost first (coordination.md section 0).
///
/// Lock order: write, control, (participant-local), list. Each is owned by a *thread* and must be unlocked by the thread that
/// locked it; none is recursive. Debug builds check both.
package enum SharedMutex: Int, CaseIterable, Sendable {
    case write, control, list

    var name: String {
        switch self {
        case .write: "the write lock"
        case .control: "the session's control lock"
        case .list: "the lock on the version list"
        }
    }
}

extension LockFile {
    /// How a mutex was obtained.
    package enum Acquisition: Sendable {
        case clean
        /// Its last owner died while holding it; what it guards may be half-done, see the guarded thing's crash argument.
        case fromDeadOwner
    }

    @inline(__always)
    package func mutexAddress(_ mutex: SharedMutex) -> UnsafeMutableRawPointer {
        switch mutex {
        case .write: address(CSHIMS_LOCK_WRITE_MUTEX)
        case .control: address(CSHIMS_LOCK_CONTROL_MUTEX)
        case .list: address(CSHIMS_LOCK_LIST_MUTEX)
        }
    }

    /// The futex word of a mutex: see `LockHolder`.
    package func word(of mutex: SharedMutex) -> UInt32 { CShims_mutex_word(mutexAddress(mutex)) }

    /// Locks a mutex, waiting until the deadline at most.
    /// - Throws: `deadlineExceeded` naming the holder; `unusable` where a dead owner's mutex was given up by somebody;
    ///   `incompatibleLockFile` where the bytes are no mutex of ours.
    @discardableResult
    package func lock(_ mutex: SharedMutex, _ deadline: Deadline) throws -> Acquisition {
        checkOrder(mutex)
        let pointer = mutexAddress(mutex)
        var code = CShims_mutex_trylock(pointer)
        if code == EBUSY { code = CShims_mutex_lock(pointer, deadline.nanoseconds) }
        return try finish(mutex, code)
    }

    /// Locks a mutex if that is possible at once; nil where somebody holds it.
    package func tryLock(_ mutex: SharedMutex) throws -> Acquisition? {
        let code = CShims_mutex_trylock(mutexAddress(mutex))
        return code == EBUSY ? nil : try finish(mutex, code)
    }

    private func finish(_ mutex: SharedMutex, _ code: Int32) throws -> Acquisition {
        switch code {
        case 0:
            noteOwner(mutex)
            return .clean
        case EOWNERDEAD:
            // Without this an unlock would make the mutex unusable for everybody.
            let repaired = CShims_mutex_consistent(mutexAddress(mutex))
            if repaired != 0 { throw damagedMutex(mutex, repaired) }
            noteOwner(mutex)
            return .fromDeadOwner
        case ETIMEDOUT:
            throw SessionError.deadlineExceeded(
                path: path, what: mutex.name, holder: LockHolder.describe(mutexWord: word(of: mutex)))
        default: throw damagedMutex(mutex, code)
        }
    }

    private func damagedMutex(_ mutex: SharedMutex, _ code: Int32) -> any Error {
        switch code {
        case ENOTRECOVERABLE: SessionError.unusable(path: path, reason: "\(mutex.name) was given up after its owner died")
        case EINVAL:
            SessionError.incompatibleLockFile(
                path: path, what: "mutexes of kind", ours: "robust and shared", theirs: "unknown (\(mutex.name))")
        default: SystemError(call: "pthread_mutex_lock", code: code, path: path)
        }
    }

    /// Unlocks a mutex that this thread has locked.
    package func unlock(_ mutex: SharedMutex) {
        forgetOwner(mutex)
        let code = CShims_mutex_unlock(mutexAddress(mutex))
        precondition(code != EPERM, "\(mutex.name) was locked by another thread; begin and end a transaction on one thread")
    }

    /// Runs `body` with a mutex held.
    @inline(__always)
    package func with<Result>(_ mutex: SharedMutex, _ deadline: Deadline, _ body: () throws -> Result) throws -> Result {
        try lock(mutex, deadline)
        defer { unlock(mutex) }
        return try body()
    }

    // MARK: Order checks of debug builds

    #if DEBUG
    private func holder(_ mutex: SharedMutex) -> Int64 {
        switch mutex {
        case .write: writeHolder.load(ordering: .relaxed)
        case .control: controlHolder.load(ordering: .relaxed)
        case .list: listHolder.load(ordering: .relaxed)
        }
    }

    private func setHolder(_ mutex: SharedMutex, _ thread: Int64) {
        switch mutex {
        case .write: writeHolder.store(thread, ordering: .relaxed)
        case .control: controlHolder.store(thread, ordering: .relaxed)
        case .list: listHolder.store(thread, ordering: .relaxed)
        }
    }

    private func checkOrder(_ mutex: SharedMutex) {
        let me = CShims_gettid()
        for inner in SharedMutex.allCases where inner.rawValue >= mutex.rawValue {
            precondition(
                holder(inner) != me,
                "this thread takes \(mutex.name) while it holds \(inner.name); the order is write, control, list")
        }
    }

    private func noteOwner(_ mutex: SharedMutex) { setHolder(mutex, CShims_gettid()) }
    private func forgetOwner(_ mutex: SharedMutex) { setHolder(mutex, 0) }
    #else
    @inline(__always) private func checkOrder(_ mutex: SharedMutex) {}
    @inline(__always) private func noteOwner(_ mutex: SharedMutex) {}
    @inline(__always) private func forgetOwner(_ mutex: SharedMutex) {}
    #endif
}
