import CShims
import Glibc
import Synchronization
import SystemCalls

/// Taking and giving the write mutex, in the order in which writers came (coordination.md 5.1, 5.2).
///
/// Everybody draws a ticket from `next_ticket`; the holder of the write mutex sets `next_served` to its own ticket, and adds 1
/// when it is done. Others sleep on a condition variable until it is their turn; we never do, since a waiter that is killed there
/// freezes the session. We sleep in the mutex itself when we are next, and on the word `next_served` (a shared futex, which has
/// no state in the file) when we are not.
///
/// A ticket whose owner died is passed over after 500 ms, counted from the moment when the mutex was first seen to be free: as
/// long as others make progress nobody jumps the queue.
///
/// Crash argument: the mutex is robust, so a dead holder's successor gets it at once. The flag `commit_in_critical_phase` is set
/// only by a holder, so whoever holds the mutex and sees it set knows that its setter is dead; each prefix of
/// `VersionList.publish` being a valid list, clearing the flag loses nothing (5.5 W6). The header is compared with the list at
/// each begin (W5).
package struct WriteQueue {
    static let fairnessNanoseconds: Int64 = 500_000_000
    private static let sleepNanosecondsMin: Int64 = 50_000
    private static let sleepNanosecondsMax: Int64 = 1_000_000

    let file: LockFile
    let broadcaster: ConditionBroadcaster

    /// What the new holder found.
    package struct Grant: Sendable {
        /// The holder before us died: the control mutex was healed.
        package var previousHolderDied: Bool
        /// A writer died while it published; the flag was cleared.
        package var clearedCriticalFlag: Bool
    }

    /// Takes the write mutex when it is our turn.
    /// - Throws: `deadlineExceeded` naming the holder, `unusable`.
    package func acquire(_ deadline: Deadline) throws -> Grant {
        let ticket = CShims_fetch_add_u32(file.address(CSHIMS_LOCK_NEXT_TICKET), 1)
        KillPoint.reach("write-queue.ticket")
        do {
            let acquisition = try wait(for: ticket, deadline)
            file.nextServed = ticket
            return try heal(acquisition)
        } catch {
            // If nobody has come behind us, the ticket can be handed back; else the next one waits 500 ms for it, once.
            var mine = ticket &+ 1
            _ = CShims_compare_exchange_u32(file.address(CSHIMS_LOCK_NEXT_TICKET), &mine, ticket)
            throw error
        }
    }

    /// Takes the write mutex if it is free, without a ticket; nil where it is not.
    package func tryAcquire() throws -> Grant? {
        guard let acquisition = try file.tryLock(.write) else { return nil }
        return try heal(acquisition)
    }

    private func ahead(_ ticket: UInt32) -> Int32 { Int32(bitPattern: ticket &- file.nextServed) }

    private func wait(for ticket: UInt32, _ deadline: Deadline) throws -> LockFile.Acquisition {
        var limit: Int64?
        var sleep = WriteQueue.sleepNanosecondsMin
        var diedBefore = false
        while true {
            let served = file.nextServed
            let isLate = limit.map { SystemCalls.monotonicNanoseconds() >= $0 } ?? false
            if Int32(bitPattern: ticket &- served) <= 1 || isLate {
                var acquisition = try file.lock(.write, deadline)
                if diedBefore { acquisition = .fromDeadOwner }
                // Who is one ahead and not the holder has died, or has only just drawn its ticket.
                if ahead(ticket) <= 0 || isLate { return acquisition }
                diedBefore = acquisition == .fromDeadOwner
                file.unlock(.write)
                limit = limit ?? SystemCalls.monotonicNanoseconds() + WriteQueue.fairnessNanoseconds
            } else if limit == nil {
                let word = file.word(of: .write)
                if word & LockHolder.threadMask == 0 {
                    limit = SystemCalls.monotonicNanoseconds() + WriteQueue.fairnessNanoseconds
                }
            }
            if deadline.hasPassed {
                throw SessionError.deadlineExceeded(
                    path: file.path, what: "our turn to write (\(max(0, ahead(ticket))) before us)",
                    holder: LockHolder.describe(mutexWord: file.word(of: .write)))
            }
            _ = CShims_futex_wait(
                file.address(CSHIMS_LOCK_NEXT_SERVED), served, min(sleep, max(1, deadline.remainingNanoseconds)))
            sleep = min(2 * sleep, WriteQueue.sleepNanosecondsMax)
        }
    }

    private func heal(_ acquisition: LockFile.Acquisition) throws -> Grant {
        var grant = Grant(previousHolderDied: acquisition == .fromDeadOwner, clearedCriticalFlag: false)
        if grant.previousHolderDied { file.writerDied.store(true, ordering: .releasing) }
        do {
            // Others who open now would take the mutex of a dead owner for their own and wait for themselves (3.3).
            if grant.previousHolderDied { try file.healControlMutex() }
        } catch {
            file.unlock(.write)
            throw error
        }
        if file.commitInCriticalPhase {
            file.commitInCriticalPhase = false
            grant.clearedCriticalFlag = true
        }
        return grant
    }

    /// Gives the write mutex to the next in the queue. Called by the thread that acquired it.
    package func release() {
        KillPoint.reach("write-queue.before-release")
        _ = CShims_fetch_add_u32(file.address(CSHIMS_LOCK_NEXT_SERVED), 1)
        let othersWait = broadcaster.hasWaiters(.nextWriter)
        let someoneQueues = file.nextTicket != file.nextServed
        file.unlock(.write)
        if someoneQueues { _ = CShims_futex_wake(file.address(CSHIMS_LOCK_NEXT_SERVED), Int32.max) }
        if othersWait { broadcaster.broadcast(.nextWriter) }
    }

    /// Others stand in the queue behind the holder: a reason to end a batch.
    package var someoneWaits: Bool { Int32(bitPattern: file.nextTicket &- file.nextServed) > 1 }
}

extension LockFile {
    /// Makes the control mutex usable again if its owner died (3.3). True where it was.
    @discardableResult
    package func healControlMutex() throws -> Bool {
        if word(of: .control) & LockHolder.ownerDiedBit == 0 { return false }
        guard let acquisition = try tryLock(.control) else { return false }
        unlock(.control)
        return acquisition == .fromDeadOwner
    }
}
