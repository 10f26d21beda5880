import CShims
import Synchronization
import SystemCalls

/// The two condition variables that others wait on, and that we only ever broadcast (coordination.md 5.2).
package enum SharedCondition: UInt32, CaseIterable, Sendable {
    /// "New commit available": others who wait for a change sleep here, with the control mutex.
    case newCommit = 1
    /// "Pick next writer": others who queue for the write mutex sleep here.
    case nextWriter = 2

    package func address(_ file: LockFile) -> UnsafeMutableRawPointer {
        file.address(self == .newCommit ? CSHIMS_LOCK_NEW_COMMIT : CSHIMS_LOCK_PICK_NEXT_WRITER)
    }
}

/// Broadcasts from a thread that holds nothing.
///
/// A broadcast blocks for ever where a waiter was killed and a new one has come. In a thread of its own that harms nobody: all
/// that is waited for was changed under the mutex before, so no wake-up is lost by being late. `ConditionRepair` frees the thread
/// again. With no waiter at all, which the owner of the condition's mutex can see, there is nothing to do and no thread is
/// started.
final class ConditionBroadcaster: Sendable {
    private static let stopBit: UInt32 = 1 << 31
    /// How long leaving waits for a broadcast under way before it gives up the mapping for lost.
    static let stopMillisecondsMax = 1000

    private let file: LockFile
    private let word = WakeWord()
    private enum Phase { case idle, running, stopped }
    private let phase = Mutex(Phase.idle)

    init(_ file: LockFile) { self.file = file }

    /// True where somebody waits. The caller holds the mutex that belongs to the condition, or has held it since the change.
    func hasWaiters(_ condition: SharedCondition) -> Bool { CShims_condition_waiters(condition.address(file)) != 0 }

    /// Broadcasts soon. Called without any mutex held.
    func broadcast(_ condition: SharedCondition) {
        let mayRun: Bool = phase.withLock { phase in
            switch phase {
            case .running: return true
            case .stopped: return false
            case .idle:
                let file = file, word = word
                let started: Void? = try? BackgroundThread.start("realm-broadcast") { [weak self] in
                    ConditionBroadcaster.run(file, word)
                    self?.phase.withLock { $0 = .stopped }
                }
                if started != nil { phase = .running }
                return started != nil
            }
        }
        // Where no thread can be had, the waiters' own time-outs, and the next commit of anybody, have to do.
        if mayRun { word.set(condition.rawValue) }
    }

    private static func run(_ file: LockFile, _ word: WakeWord) {
        while true {
            let bits = word.take(waitingNanoseconds: 3_600_000_000_000)
            for condition in SharedCondition.allCases where bits & condition.rawValue != 0 {
                _ = CShims_condition_broadcast(condition.address(file))
            }
            if bits & stopBit != 0 { return }
        }
    }

    /// Ends the thread. False where it is stuck in a broadcast: then the mapping must not go.
    func stop() -> Bool {
        let wasRunning: Bool = phase.withLock { phase in
            if phase == .idle { phase = .stopped }
            return phase == .running
        }
        if !wasRunning { return true }
        word.set(ConditionBroadcaster.stopBit)
        let deadline = Deadline.after(.milliseconds(ConditionBroadcaster.stopMillisecondsMax))
        while phase.withLock({ $0 != .stopped }) {
            if deadline.hasPassed { return false }
            pause(milliseconds: 1)
        }
        return true
    }
}

/// Frees a condition variable on which a broadcaster is stuck because a waiter was killed (coordination.md 5.2).
///
/// It knows the words of glibc 2.25 to 2.40: 4 and 5 = references to the two groups of waiters, bit 0 = "a broadcaster waits for
/// this group to empty"; 8, low two bits = inner lock; 0 = counts every waiter that ever came.
/// (a) A group that has been waited for through two looks with the same references: its waiters are dead, living ones were
///     woken and left within microseconds. The references are dropped, the broadcaster woken.
/// (b) The inner lock held through three looks while nothing moves, and not (a): its owner is dead. The lock is opened.
struct ConditionRepair {
    /// A stuck state must have lasted this long between looks before it counts.
    static let lookMilliseconds = 200
    static let isPossible: Bool = (2025...2040).contains(CShims_glibc_version())

    private struct Look: Equatable {
        var sequence: UInt32 = 0, groups: (UInt32, UInt32) = (0, 0), lock: UInt32 = 0
        init(_ p: UnsafeMutableRawPointer) {
            sequence = CShims_load_u32(p)
            groups = (CShims_load_u32(p + 16), CShims_load_u32(p + 20))
            lock = CShims_load_u32(p + 32)
        }
        static func == (a: Look, b: Look) -> Bool { a.sequence == b.sequence && a.groups == b.groups && a.lock == b.lock }
        func isStuck(_ group: Int) -> Bool {
            (group == 0 ? groups.0 : groups.1) & 1 != 0 && (group == 0 ? groups.0 : groups.1) > 1
        }
        var isLocked: Bool { lock & 3 != 0 }
        var isSuspicious: Bool { isStuck(0) || isStuck(1) || isLocked }
    }

    private let condition: UnsafeMutableRawPointer
    private var last: Look?
    private var lockedLooks = 0

    init(_ condition: UnsafeMutableRawPointer) { self.condition = condition }

    /// One look, at least `lookMilliseconds` after the one before. True where something is odd: look again soon.
    /// - Returns: also how many repairs were made.
    mutating func look() -> (isSuspicious: Bool, repairs: Int) {
        let now = Look(condition)
        defer { last = now }
        var repairs = 0
        for group in 0..<2 where now.isStuck(group) {
            guard let last, last.isStuck(group), (group == 0 ? last.groups.0 == now.groups.0 : last.groups.1 == now.groups.1)
            else { continue }
            let word = condition + 16 + 4 * group
            var seen = group == 0 ? now.groups.0 : now.groups.1
            if CShims_compare_exchange_u32(word, &seen, 1) {
                _ = CShims_futex_wake(word, Int32.max)
                repairs += 1
            }
        }
        if now.isLocked, !now.isStuck(0), !now.isStuck(1), let last, last.isLocked, last.lock == now.lock,
            last.sequence == now.sequence
        {
            lockedLooks += 1
            if lockedLooks >= 2 {
                var seen = now.lock
                if CShims_compare_exchange_u32(condition + 32, &seen, now.lock & ~3) {
                    _ = CShims_futex_wake(condition + 32, Int32.max)
                    repairs += 1
                }
                lockedLooks = 0
            }
        } else {
            lockedLooks = 0
        }
        return (now.isSuspicious, repairs)
    }
}
