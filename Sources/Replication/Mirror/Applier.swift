import Glibc
import Notifier
import SharedStore
import SystemCalls

/// Writes steps into a replica that others are reading (mirroring.md 5).
///
/// A participant of the replica's session that commits like any writer, but stores the source's bytes at the source's places. It
/// takes no read lock: nobody but the holder of the write mutex purges or publishes, so the newest version cannot vanish.
///
/// Order: write mutex; the newest version must be V1; header set right; purge; for every version that is still held, each byte to
/// be written is free in it and its history goes on in V2; control mutex: growth and stores; critical flag, version list; numbers
/// and waiters; FIFO; sync, header, sync.
///
/// Readers see V2 before it is durable here: it is durable in the source, which holds V1 and V2 until `attempt` returns, so
/// nothing that was seen can be lost, and nobody waits for our disk. A writer's own commits could not do so.
///
/// Crash argument: until the version list the replica is at V1, and no byte of V1 or of a held version was touched. Between
/// version list and the header's flag the header is behind: while the session lives everybody is at V2, and the next applier, or
/// whoever writes, sets the header right before anything is stored; where the session died too, the replica opens at V1, which
/// the source still holds. A version that was published by a killed applier and never announced is announced with the next one.
final class Applier {
    let path: String
    private(set) var participant: Participant
    private let label: String
    private let ringer: Ringer
    /// Free space of versions that readers held when we last looked.
    private var known: [Snapshot: FreeExtents] = [:]

    private let key: EncryptionKey?

    init(_ path: String, label: String, key: EncryptionKey? = nil) throws {
        self.path = path
        self.label = label
        self.key = key
        participant = try SessionMembership.join(path, label: label, key: key)
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
    /// - Throws: `MirrorError.diverged`, and nothing was written; whatever writing may throw, and the replica is at V1, or at V2
    ///   but not durably: another attempt goes on from either.
    func attempt(_ step: MirrorStep) throws -> Outcome {
        let lockFile = participant.lockFile, deadline = participant.deadline
        let durability = participant.options.durability
        let file = participant.file
        _ = try participant.writeQueue.acquire(deadline)
        defer { participant.writeQueue.release() }
        KillPoint.reach("apply.locked")
        let newest = try newestSnapshot()
        if newest == step.this {
            // Numbers do not identify a version: the bytes do (mirroring.md 8.2).
            if try isEqual(step, newest) {
                // An earlier attempt may have failed between version list and header.
                try file.alignHeader(with: newest, durability)
                return .applied
            }
            throw MirrorError.diverged(
                destination: path, reason: "version \(newest.version) has another content than the source's")
        }
        if newest != step.parent {
            throw MirrorError.diverged(
                destination: path,
                reason: "it is at version \(newest.version) where the mirror had left version \(step.parent.version)")
        }
        try lockFile.settleDeadWriter(file.backend, durability)
        try file.alignHeader(with: newest, durability)
        KillPoint.reach("apply.aligned")
        let kept = try lockFile.with(.list, deadline) { try list.purge() }
        let blockers = try kept.versions.filter { try !mayWrite(step, $0, newest) }
        if !blockers.isEmpty { return .blocked(blockers.map(\.snapshot.version)) }
        let next = step.this
        do {
            try lockFile.with(.control, deadline) { try store(step, file) }
        } catch {
            file.backend.discard()
            throw error
        }
        KillPoint.reach("apply.stored")
        try lockFile.with(.list, deadline) {
            lockFile.commitInCriticalPhase = true
            defer { lockFile.commitInCriticalPhase = false }
            try list.publish(next)
        }
        KillPoint.reach("apply.published")
        try? participant.announce(version: next.version, numberOfVersions: kept.versions.count + 1, deadline)
        KillPoint.reach("apply.announced")
        ring()
        try file.pointHeader(to: next.topRef, durability: durability)
        KillPoint.reach("apply.flipped")
        return .applied
    }

    /// Whether version `p`, which somebody holds, stands in the way of the step (mirroring.md 5.2).
    private func mayWrite(_ step: MirrorStep, _ p: PinnedVersion, _ newest: Snapshot) throws -> Bool {
        let extents: FreeExtents
        if p.snapshot == newest, let parent = step.parentExtents {
            extents = parent
        } else if let found = known[p.snapshot] {
            extents = found
        } else {
            // Held, so its lists are intact in the replica.
            let view = try participant.file.view(of: p.snapshot)
            extents = try withExtendedLifetime(view) { try FreeExtents(memory: view.memory, snapshot: p.snapshot) }
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
        try file.backend.preallocate(to: (step.this.logicalSize + page - 1) / page * page)
        try step.forEachRange { range, bytes in
            try file.backend.write(bytes, at: range.lowerBound)
            KillPoint.reach("apply.range")
        }
        if participant.options.durability == .full && file.backend.mustSyncBeforeFlush { try file.backend.syncWritten() }
        try file.backend.flush(alone: participant.lockFile.participantCount == 1)
    }

    private func isEqual(_ step: MirrorStep, _ newest: Snapshot) throws -> Bool {
        let view = try participant.file.view(of: newest)
        return try withExtendedLifetime(view) {
            var isEqual = true
            try step.forEachRange { range, bytes in
                guard isEqual, let theirs = bytes.baseAddress else { return }
                isEqual = memcmp(theirs, try view.memory.bytes(at: range.lowerBound, length: range.count), range.count) == 0
            }
            return isEqual
        }
    }

    private static let comparedByteCount = 1 << 20

    /// Compares the used bytes of a version here and in the source.
    func holdsTheSame(as source: HeldSnapshot) throws -> Bool {
        // The ranges of the source's version end before the end of ours: both have the same size.
        let view = try participant.file.view(of: source.snapshot)
        return try withExtendedLifetime((view, source)) {
            for range in try source.extents().usedRanges() {
                var at = range.lowerBound
                while at < range.upperBound {
                    let piece = at..<min(range.upperBound, at + Applier.comparedByteCount)
                    let theirs = try source.memory.bytes(at: at, length: piece.count),
                        ours = try view.memory.bytes(at: at, length: piece.count)
                    if memcmp(theirs, ours, piece.count) != 0 { return false }
                    source.memory.giveBack(piece)
                    view.memory.giveBack(piece)
                    at = piece.upperBound
                }
            }
            return true
        }
    }

    /// The free lists and the top array of the version that the replica stands at, as they lie there: what a step is compressed
    /// against.
    func listsPrefix(_ snapshot: Snapshot) throws -> [UInt8] {
        let view = try participant.file.view(of: snapshot)
        return try withExtendedLifetime(view) { try FreeExtents.prefix(memory: view.memory, snapshot: snapshot) }
    }

    /// SHA-256 of the bytes that `ranges` of the replica's version have.
    func digest(_ snapshot: Snapshot, _ ranges: [Range<Int>]) throws -> Digest {
        let view = try participant.file.view(of: snapshot)
        return try withExtendedLifetime(view) { try Self.digest(view.memory, ranges) }
    }

    static func digest(_ memory: Memory, _ ranges: [Range<Int>]) throws -> Digest {
        let hash = SHA256Hash()
        for range in ranges {
            hash.update(
                UnsafeRawBufferPointer(start: try memory.bytes(at: range.lowerBound, length: range.count), count: range.count))
        }
        return hash.finish()
    }

    /// Gets rid of pins that a killed reader of other software has left, if nobody else is there: leaves, and starts the session
    /// anew (mirroring.md 5.2).
    ///
    /// - Returns: false where others are attached; we are back then.
    func restartSession() throws -> Bool {
        close()
        let wasAlone = try StoreFiles.withExclusiveAccess(path, {}) != nil
        participant = try SessionMembership.join(path, label: label, key: key)
        known.removeAll()
        return wasAlone
    }
}
