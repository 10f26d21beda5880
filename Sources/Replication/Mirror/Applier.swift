import Glibc
import Notifier
import SharedStore
import SystemCalls

/// One step of a mirror: what a version of the source has more than the one that the replica stands at.
struct MirrorStep {
    /// V1: where the replica stands. Its free space is the source's.
    let parent: Snapshot
    let parentExtents: FreeExtents
    /// V2, held live in the source's session.
    let this: HeldSnapshot
    /// Ascending, not touching: the used bytes of V2 that are free in V1.
    let ranges: [Range<Int>]
    /// The version before the oldest changeset of V2; nil where there is no history.
    let historyBase: UInt64?

    /// The difference of two held versions, by their free lists.
    ///
    /// - Parameter checks: compare it with a walk of the new version (mirroring.md 2.3).
    /// - Throws: `MirrorError.sourceDamaged` where the lists contradict themselves or the walk.
    init(_ base: HeldSnapshot, _ next: HeldSnapshot, source: String, checks: Bool) throws {
        do {
            let older = try base.extents(), newer = try next.extents()
            ranges = older.difference(to: newer)
            if checks {
                let walked = try DifferenceWalk.ranges(memory: next.memory, older: older, newer: next.snapshot)
                // Leaked blocks are in use as far as the lists say; a node that the lists call free is damage.
                if ranges != walked, !FreeExtents.covers(ranges, walked) {
                    throw MirrorError.sourceDamaged(
                        source: source, reason: "version \(next.snapshot.version) has nodes in space that its lists call free")
                }
            }
            let top = try next.memory.node(next.snapshot.topRef)
            if try top.tagged(TopSlot.historyType) != 0 {
                let history = try HistoryReader(memory: next.memory, topRef: next.snapshot.topRef, version: next.snapshot.version)
                historyBase = history.base
            } else {
                historyBase = nil
            }
            parent = base.snapshot
            parentExtents = older
            this = next
        } catch let error as FormatError {
            throw MirrorError.sourceDamaged(source: source, reason: "version \(next.snapshot.version): \(error)")
        }
    }

    var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }
}

/// Writes steps into a replica that others are reading (mirroring.md 5).
///
/// A participant of the replica's session that commits like any writer, but stores the source's bytes at the source's places. It
/// takes no read lock: nobody but the holder of the write mutex purges or publishes, so the newest version cannot vanish.
///
/// Order: write mutex; the newest version must be V1; header set right; purge; for every version that is still held, each byte to be
/// written is free in it and its history goes on in V2; control mutex: growth and stores; sync, header, sync; critical flag, version
/// list; numbers and waiters; FIFO.
///
/// Crash argument: until the header's flag the file is at V1, and no byte of V1 or of a held version was touched; between flag and
/// version list the header is ahead: the next applier sets it back before it stores anything, or, where the session died too, the
/// replica opens at V2, which the source still holds. Everything after the version list is wake-ups that come again.
final class Applier {
    let path: String
    private(set) var participant: Participant
    private let label: String
    private let ringer: Ringer
    /// Free space of versions that readers held when we last looked.
    private var known: [Snapshot: FreeExtents] = [:]

    init(_ path: String, label: String) throws {
        self.path = path
        self.label = label
        participant = try SessionMembership.join(path, label: label)
        ringer = Ringer(path, options: Notifier.Options(onWarning: { _ in }))
    }

    func close() { try? participant.close(force: true) }

    private var list: VersionList { VersionList(participant.lockFile) }

    /// The version that the replica stands at, with the header set right.
    func position() throws -> Snapshot {
        _ = try participant.writeQueue.acquire(participant.deadline)
        defer { participant.writeQueue.release() }
        let newest = try newestSnapshot()
        try participant.file.alignHeader(with: newest, participant.options.durability)
        return newest
    }

    private func newestSnapshot() throws -> Snapshot {
        try participant.lockFile.with(.list, participant.deadline) { try list.newestRecord().snapshot }
    }

    /// What `attempt` came to.
    enum Outcome: Equatable {
        case applied
        /// Readers of these versions are in the way; nothing was changed.
        case blocked([UInt64])
    }

    /// Tells the replica's readers that there may be something new: an observer that is told of a commit which did not concern it
    /// stays on its old version until the next hint (mirroring.md 5.2).
    func ring() { ringer.ring() }

    /// Applies the step if no reader is in the way.
    ///
    /// - Throws: `MirrorError.diverged`, and nothing was written; whatever writing may throw, and the replica is at V1.
    func attempt(_ step: MirrorStep) throws -> Outcome {
        let lockFile = participant.lockFile, deadline = participant.deadline
        let durability = participant.options.durability
        let file = participant.file
        _ = try participant.writeQueue.acquire(deadline)
        defer { participant.writeQueue.release() }
        KillPoint.reach("apply.locked")
        let newest = try newestSnapshot()
        if newest == step.this.snapshot {
            // Numbers do not identify a version: the bytes do (mirroring.md 8.2).
            if try isEqual(step, newest) { return .applied }
            throw MirrorError.diverged(destination: path, reason: "version \(newest.version) has another content than the source's")
        }
        if newest != step.parent {
            throw MirrorError.diverged(
                destination: path, reason: "it is at version \(newest.version) where the mirror had left version \(step.parent.version)")
        }
        try file.alignHeader(with: newest, durability)
        KillPoint.reach("apply.aligned")
        let kept = try lockFile.with(.list, deadline) { try list.purge() }
        let blockers = try kept.versions.filter { try !mayWrite(step, $0, newest) }
        if !blockers.isEmpty { return .blocked(blockers.map(\.snapshot.version)) }
        let next = step.this.snapshot
        do {
            try lockFile.with(.control, deadline) { try store(step, file) }
        } catch {
            file.backend.discard()
            throw error
        }
        KillPoint.reach("apply.stored")
        try file.pointHeader(to: next.topRef, durability: durability)
        KillPoint.reach("apply.flipped")
        try lockFile.with(.list, deadline) {
            lockFile.commitInCriticalPhase = true
            defer { lockFile.commitInCriticalPhase = false }
            try list.publish(next)
        }
        KillPoint.reach("apply.published")
        try? participant.announce(version: next.version, numberOfVersions: kept.versions.count + 1, deadline)
        KillPoint.reach("apply.announced")
        ring()
        return .applied
    }

    /// Whether version `p`, which somebody holds, stands in the way of the step (mirroring.md 5.2).
    private func mayWrite(_ step: MirrorStep, _ p: PinnedVersion, _ newest: Snapshot) throws -> Bool {
        let extents: FreeExtents
        if p.snapshot == newest { extents = step.parentExtents } else if let found = known[p.snapshot] { extents = found } else {
            // Held, so its lists are intact in the replica.
            let view = try participant.file.view(of: p.snapshot)
            extents = try FreeExtents(memory: view.memory, snapshot: p.snapshot)
            if known.count >= Applier.knownCountMax { known.removeAll() }
            known[p.snapshot] = extents
        }
        if !extents.contains(step.ranges) { return false }
        guard p.isLive, let base = step.historyBase else { return true }
        return base <= p.snapshot.version
    }

    private static let knownCountMax = 64

    private func store(_ step: MirrorStep, _ file: DatabaseFile) throws {
        KillPoint.reach("apply.control")
        let page = SystemCalls.pageSize
        try file.backend.preallocate(to: (step.this.snapshot.logicalSize + page - 1) / page * page)
        let base = UnsafeRawPointer(step.this.memory.state.pointee.base)
        for range in step.ranges {
            try file.backend.write(UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count), at: range.lowerBound)
            KillPoint.reach("apply.range")
        }
        try file.backend.flush()
    }

    private func isEqual(_ step: MirrorStep, _ newest: Snapshot) throws -> Bool {
        let view = try participant.file.view(of: newest)
        return Applier.areEqual(step.this.memory, view.memory, step.ranges)
    }

    /// Compares the used bytes of a version here and in the source.
    func holdsTheSame(as source: HeldSnapshot) throws -> Bool {
        // The ranges of the source's version end before the end of ours: both have the same size.
        let view = try participant.file.view(of: source.snapshot)
        return Applier.areEqual(source.memory, view.memory, try source.extents().usedRanges())
    }

    private static func areEqual(_ a: Memory, _ b: Memory, _ ranges: [Range<Int>]) -> Bool {
        let x = a.state.pointee.base, y = b.state.pointee.base
        return ranges.allSatisfy { memcmp(x + $0.lowerBound, y + $0.lowerBound, $0.count) == 0 }
    }

    /// Gets rid of pins that a killed reader of other software has left, if nobody else is there: leaves, and starts the session
    /// anew (mirroring.md 5.2).
    ///
    /// - Returns: false where others are attached; we are back then.
    func restartSession() throws -> Bool {
        close()
        let wasAlone = try StoreFiles.withExclusiveAccess(path, {}) != nil
        participant = try SessionMembership.join(path, label: label)
        known.removeAll()
        return wasAlone
    }
}
