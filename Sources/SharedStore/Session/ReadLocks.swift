import CShims
import Synchronization

/// A held version: its data stays as it is until the lock is released.
package struct ReadLock: Equatable, Sendable {
    package let kind: VersionList.Kind
    /// Where the version stands in the version list.
    package let index: UInt32
    package let snapshot: Snapshot
}

/// The read locks of one participant (coordination.md 4.1, 4.2).
///
/// All locks of one kind on one version share a single count in the version list: further ones only count here, without touching
/// shared memory. A version is looked up by the atomic `newest`; a held entry is never recycled, so the copy here is valid.
///
/// Lock order here: the list mutex of the lock file outside, `state` inside; `state` is held for a few instructions only, so that
/// no thread waits for a peer behind another thread's back. An entry whose local count has come to 0 stays `held` until its
/// shared count is lowered under the list mutex; if a stopped peer does not let us have that mutex, it is lowered later
/// (`releaseIdle`).
package final class ReadLocks: Sendable {
    private struct Use {
        var count = 0
        /// One is counted for us in the version list.
        var held = false
    }

    private struct Entry {
        var snapshot = Snapshot(version: 0, topRef: 0, logicalSize: 0)
        var live = Use(), frozen = Use()
        subscript(_ kind: VersionList.Kind) -> Use {
            get { kind == .live ? live : frozen }
            set { if kind == .live { live = newValue } else { frozen = newValue } }
        }
    }

    private struct State {
        var entries: [Entry] = []
        var openCount = 0
        var idleCount = 0
        /// Calls that are in the lock file.
        var inFlight = 0
        /// New locks have to wait: the version list is about to be made anew.
        var isSuspended = false
        /// The participant has left; transactions that still exist may end without any effect.
        var hasEnded = false
    }

    private let file: LockFile
    private let register: ParticipantRegister?
    private let state = Mutex(State())

    package init(_ file: LockFile, register: ParticipantRegister?) {
        self.file = file
        self.register = register
    }

    private var list: VersionList { VersionList(file) }

    /// Locks that are open in this participant.
    package var openCount: Int { state.withLock { $0.openCount } }

    /// Runs `body`, which goes to the lock file, unless `fast` has a result already; leaving waits for its end.
    private func go<Result>(_ deadline: Deadline, fast: (inout State) -> Result?, _ body: () throws -> Result) throws -> Result {
        while true {
            let (cached, mustWait): (Result?, Bool) = try state.withLock { s in
                if s.hasEnded { throw SessionError.closed(path: file.path) }
                if s.isSuspended { return (nil, true) }
                if let result = fast(&s) { return (result, false) }
                s.inFlight += 1
                return (nil, false)
            }
            if let cached { return cached }
            if !mustWait { break }
            if deadline.hasPassed {
                throw SessionError.deadlineExceeded(
                    path: file.path, what: "the end of a compaction", holder: "another thread of this process")
            }
            pause(milliseconds: 1)
        }
        defer { state.withLock { $0.inFlight -= 1 } }
        return try body()
    }

    /// Locks the newest version.
    package func acquireNewest(_ kind: VersionList.Kind, _ deadline: Deadline) throws -> ReadLock {
        try go(deadline) { s in
            let index = list.newest
            guard index < s.entries.count, s.entries[Int(index)][kind].held else { return nil }
            return use(&s, index, kind)
        } _: {
            try file.with(.list, deadline) { try enter(try list.acquireNewest(kind), kind) }
        }
    }

    /// Locks a certain version, which is the newest or held by somebody.
    /// - Throws: `badVersion` otherwise.
    package func acquire(_ kind: VersionList.Kind, version: UInt64, _ deadline: Deadline) throws -> ReadLock {
        try go(deadline) { s in
            guard let index = s.entries.firstIndex(where: { $0.snapshot.version == version && $0[kind].held }) else { return nil }
            return use(&s, UInt32(index), kind)
        } _: {
            try file.with(.list, deadline) { try enter(try list.acquire(kind, version: version), kind) }
        }
    }

    /// The newest version of the session; no shared lock is needed where we hold it.
    package func newestVersion(_ deadline: Deadline) throws -> UInt64 {
        try go(deadline) { s in
            let index = list.newest
            guard index < s.entries.count, s.entries[Int(index)].live.held || s.entries[Int(index)].frozen.held else {
                return nil
            }
            return s.entries[Int(index)].snapshot.version
        } _: {
            try file.with(.list, deadline) { try list.newestRecord().snapshot.version }
        }
    }

    /// One more local use of an entry that is counted in the list.
    private func use(_ s: inout State, _ index: UInt32, _ kind: VersionList.Kind) -> ReadLock {
        if s.entries[Int(index)][kind].count == 0 { s.idleCount -= 1 }
        s.entries[Int(index)][kind].count += 1
        s.openCount += 1
        return ReadLock(kind: kind, index: index, snapshot: s.entries[Int(index)].snapshot)
    }

    /// Takes over a count that was just added to the list; list mutex held.
    private func enter(_ record: VersionList.Record, _ kind: VersionList.Kind) throws -> ReadLock {
        let (lock, wasHeld): (ReadLock, Bool) = state.withLock { s in
            let index = Int(record.index)
            while s.entries.count <= index { s.entries.append(Entry()) }
            let wasHeld = s.entries[index][kind].held
            s.entries[index].snapshot = record.snapshot
            if !wasHeld {
                s.entries[index][kind].held = true
                s.idleCount += 1
            }
            return (use(&s, record.index, kind), wasHeld)
        }
        if wasHeld {
            // Another thread was faster: one count is enough for both of us.
            try list.release(kind, index: record.index)
        } else {
            register?.noteAcquired(kind, index: record.index, version: record.snapshot.version)
        }
        return lock
    }

    /// Ends one use. Never fails: if the list mutex is not to be had by the deadline, the shared count is lowered later.
    package func release(_ lock: ReadLock, _ deadline: Deadline = .after(.seconds(1))) {
        if ForkedChild.isHere { return }
        let isLast: Bool = state.withLock { s in
            if s.hasEnded { return false }
            let index = Int(lock.index)
            precondition(
                index < s.entries.count && s.entries[index].snapshot.version == lock.snapshot.version
                    && s.entries[index][lock.kind].count > 0,
                "a read lock on version \(lock.snapshot.version) was released twice")
            s.entries[index][lock.kind].count -= 1
            s.openCount -= 1
            if s.entries[index][lock.kind].count == 0 { s.idleCount += 1 }
            return s.entries[index][lock.kind].count == 0
        }
        if isLast {
            try? go(deadline) { s in
                s.idleCount == 0 ? () : nil
            } _: {
                try file.with(.list, deadline) { drop(Int(lock.index), lock.kind, evenUsed: false) }
            }
        }
    }

    /// Lowers the shared counts of all entries that nobody here uses any more.
    package func releaseIdle(_ deadline: Deadline) {
        if ForkedChild.isHere { return }
        try? go(deadline) { s in
            s.idleCount == 0 ? () : nil
        } _: {
            try file.with(.list, deadline) { dropHeld(evenUsed: false) }
        }
    }

    /// Gives back everything, used or not, when the participant leaves; list mutex held. The locks must not be used afterwards.
    package func dropAll() { dropHeld(evenUsed: true) }

    /// After this nothing here touches the lock file any more: what is under way has ended, what comes later is refused.
    package func end() {
        state.withLock { $0.hasEnded = true }
        // Each of them has a deadline.
        while state.withLock({ $0.inFlight > 0 }) { pause(milliseconds: 1) }
    }

    /// Keeps everybody out while the version list is made anew, if `count` locks and no more are open. False: they are not.
    package func suspend(ifOpenCountIs count: Int) -> Bool {
        state.withLock { s in
            if s.openCount != count || s.inFlight > 0 || s.hasEnded { return false }
            s.isSuspended = true
            return true
        }
    }

    package func resume() { state.withLock { $0.isSuspended = false } }

    private func dropHeld(evenUsed: Bool) {
        for index in 0..<state.withLock({ $0.entries.count }) {
            for kind in [VersionList.Kind.live, .frozen] { drop(index, kind, evenUsed: evenUsed) }
        }
    }

    /// Lowers the shared count of one entry; list mutex held.
    private func drop(_ index: Int, _ kind: VersionList.Kind, evenUsed: Bool) {
        state.withLock { s in
            let use = s.entries[index][kind]
            guard use.held, evenUsed || use.count == 0 else { return }
            // The register first: if we die in between, a count is lost, but never given back twice.
            register?.noteReleased(kind, index: UInt32(index))
            KillPoint.reach("read-lock.between-register-and-count")
            try? list.release(kind, index: UInt32(index))
            if use.count == 0 { s.idleCount -= 1 }
            s.openCount -= use.count
            s.entries[index][kind] = Use()
        }
    }
}
