import Glibc
import SharedStore
import SystemCalls

/// Puts every version of a source into an archive, until it is told to stop, or the newest one once.
///
/// A reader in the source's session, like a mirror (mirroring.md 3): it holds the version that was archived last and, while it
/// puts a step, the next one. It writes nothing beside the source, needs no scratch space, and asks nothing of the place while
/// nothing is committed.
///
/// Where the version that was archived last is held by nobody any more, what differs is found by content; where that cannot be
/// told either (no hashes of exactly that version), or is most of the file, a new image begins a new line in the same archive.
///
/// Used by one thread, which `run` keeps until the end.
public final class Archiver {
    private let source: String
    private let place: any ArchivePlace
    private let options: Archive.Options
    private let control: MirrorFollower.Control
    private let onStatus: (Status) -> Void
    private let label: String
    private let lease: ArchiveLease
    private var writer: ArchiveWriter?
    private var stopped = false, reloads = false
    private var waitsFor: String?, told: String?
    private var failingSince: Int64?
    private var pause = Pause()
    private var stepCount = 0, byteCount = 0, imageCount = 0
    /// When what was archived last was the newest version.
    private var equalAt: Int64?

    /// A picture of one moment.
    public struct Status: Sendable, Equatable {
        /// The path of the source.
        public var source: String
        /// The archive, as people write it.
        public var place: String
        /// Nil while there is no connection to the source.
        public var sourceVersion: UInt64?
        /// The version that was archived last.
        public var version: UInt64?
        /// Versions in the archive; 0 while it is not open.
        public var versionCount: Int
        /// Since this archiver began: versions that were archived, bytes that were stored for them and for what is made of them,
        /// whole images.
        public var stepCount: Int
        /// See `stepCount`.
        public var byteCount: Int
        /// See `stepCount`.
        public var imageCount: Int
        /// Bytes that were stored ÷ bytes that were changed, since the archive's beginning.
        public var writeAmplification: Double
        /// Why it does not go on, for people; nil while it does.
        public var waitsFor: String?
        /// Seconds since what was archived last was seen to be the newest version; nil where it never was.
        public var secondsBehind: Double?
    }

    /// Open while the source is at hand.
    private var connection: SourceSession?

    /// Nothing is opened yet, neither source nor archive.
    ///
    /// - Parameters:
    ///   - onStatus: told when `control` asks for it.
    ///   - control: how the archiver waits, and what it is told to do.
    public init(
        source: String, place: any ArchivePlace, options: Archive.Options = Archive.Options(),
        onStatus: @escaping (Status) -> Void = { _ in },
        control: @escaping MirrorFollower.Control
    ) {
        self.source = source
        self.place = place
        self.options = options
        self.control = control
        self.onStatus = onStatus
        let number = Array(place.description.utf8).withUnsafeBytes { Checksum.xxh3($0) }
        label = "archive \(String(number, radix: 16))"
        lease = ArchiveLease(place, purpose: "archive of \(FileIdentity.absolutePath(source))", duration: options.leaseDuration)
    }

    // MARK: Running

    /// Archives every version until a request says stop.
    ///
    /// - Throws: `ArchiveError` where a person must decide, and what cannot be helped by waiting.
    public func run() throws {
        defer { end() }
        while !stopped {
            do {
                try open()
                try connect()
                try follow()
                // What is held is needed at the end.
                if !stopped { disconnect() }
            } catch {
                let cause = (error as? TargetFailure)?.cause ?? error
                guard isTransient(cause) else { throw cause }
                disconnect()
                // What is there is not what we think: the archive is looked at anew, if it is still ours.
                if case ArchivePlaceError.conflict = cause { writer = nil }
                failed(cause)
            }
        }
    }

    /// Archives the newest version, if it is not there yet.
    ///
    /// - Returns: what is the newest version in the archive now.
    @discardableResult
    public func once() throws -> ArchiveEntry? {
        defer { end() }
        try open()
        try connect()
        do {
            while let connection, try step(connection) != .nothing { if stopped { break } }
        } catch let failure as TargetFailure { throw failure.cause }
        if let writer, let base = connection?.base {
            try care(writer, base)
            try writer.flush()
            try noteHashes()
        }
        return writer?.newest
    }

    /// The lease, and the archive itself; a follower waits for both.
    private func open() throws {
        if writer != nil { return }
        try lease.acquire()
        writer = try ArchiveWriter(place, source: FileIdentity.absolutePath(source), lease: lease, options: options)
    }

    private func end() {
        if writer != nil, connection?.base != nil {
            // The next one begins with less to compare; what fails here costs it time only.
            try? noteHashes()
            try? writer?.flush()
        }
        disconnect()
        if writer != nil { lease.release() }
        writer = nil
    }

    private func noteHashes() throws {
        guard let writer, let base = connection?.base, base.snapshot == writer.newest?.snapshot else { return }
        if writer.tracked == nil {
            writer.tracked = TrackedHashes(
                try BlockHashes(memory: base.memory, snapshot: base.snapshot, extents: try base.extents(), givesBack: true))
        } else if writer.tracked?.hashes.snapshot != base.snapshot {
            try writer.tracked?.refresh(memory: base.memory, snapshot: base.snapshot, extents: try base.extents())
        }
        try writer.putHashes()
    }

    private func isTransient(_ error: any Error) -> Bool {
        if stopped { return false }
        switch error {
        case ArchivePlaceError.unavailable, ArchivePlaceError.conflict: return true
        case ArchiveError.leaseHeld, MirrorError.replacementPending: return true
        case let error as SystemError:
            return error.isOutOfSpace || [EIO, ESTALE, ENETDOWN, EHOSTDOWN, ETIMEDOUT].contains(error.code)
                || error.code == ENOENT && writer?.newest != nil
        case SessionError.deadlineExceeded, SessionError.incompatibleSession: return true
        case is OpenError: return writer?.newest != nil && !MirrorImage.exists(source)
        default: return false
        }
    }

    /// Waits a time that grows with each failure in a row.
    private func failed(_ error: any Error) {
        if case ArchiveError.leaseHeld(_, let holder) = error {
            // The time that is left is another one each time.
            say("\(error)", once: ArchiveLease.nameOfHolder(holder))
            wait(pause.next(atMost: 1000))
        } else {
            say("\(error)")
            wait(pause.next())
        }
    }

    /// - Parameter once: what is told once, where the text is another one each time.
    private func say(_ text: String, once: String? = nil) {
        let matter = once ?? text
        if waitsFor == nil || told != matter { options.onMessage(text) }
        told = matter
        waitsFor = text
    }

    private func wait(_ milliseconds: Int32, _ descriptors: [Int32] = []) {
        switch MirrorFollower.waitForRequest(control, descriptors, milliseconds, onStatus: { onStatus(status()) }) {
        case .stop: stopped = true
        case .reload: reloads = true
        case .status, nil: break
        }
    }

    /// To be called by the thread that runs it, from within `control`.
    public func status() -> Status {
        let changed = writer?.changedByteCount ?? 0, stored = writer?.storedByteCount ?? 0
        return Status(
            source: source, place: place.description, sourceVersion: connection?.newestVersion,
            version: writer?.newest?.snapshot.version, versionCount: writer?.count ?? 0,
            stepCount: stepCount, byteCount: byteCount, imageCount: imageCount,
            writeAmplification: changed == 0 ? 0 : Double(stored) / Double(changed), waitsFor: waitsFor,
            secondsBehind: equalAt.map { Double(SystemCalls.monotonicNanoseconds() - $0) / 1e9 })
    }

    // MARK: The source

    private func connect() throws {
        let fresh = try SourceSession(
            source, label: label, key: options.key, pinGrace: options.pinGrace, gatherLimit: options.gatherLimit,
            onMessage: options.onMessage)
        do {
            if let writer, !writer.beginsAnew, let newest = writer.newest, let held = try fresh.takeOver(newest.snapshot) {
                // Held while the archive is asked.
                fresh.base = held
                if try !isArchived(held) { fresh.base = nil }
            } else {
                try fresh.participant.sweepPredecessors()
            }
        } catch {
            // What was taken over stays for the next try.
            fresh.close()
            throw error
        }
        connection = fresh
    }

    private func disconnect() {
        connection?.close()
        connection = nil
        reloads = false
    }

    /// Whether the newest archived version, whose numbers a held version has, is that version (mirroring.md 8.2: numbers do not
    /// tell).
    private func isArchived(_ held: HeldSnapshot) throws -> Bool {
        guard let writer, let newest = writer.newest else { return false }
        if let hashes = writer.tracked, hashes.dirty.isEmpty, hashes.hashes.snapshot == held.snapshot {
            return try BlockHashes(memory: held.memory, snapshot: held.snapshot, extents: try held.extents()) == hashes.hashes
        }
        if newest.kind == .start { return false }
        return try StepComparison.isLast(newest, place, writer.cipher, writer.compressor, memory: held.memory)
    }

    // MARK: Shipping

    private func follow() throws {
        var gathering = Gathering(limit: options.gatherLimit)
        defer { gathering.yield(false) }
        while true {
            wait(0)
            if stopped { return }
            guard let connection, !reloads else { return }
            let now = SystemCalls.monotonicNanoseconds(), known = connection.base?.snapshot.version ?? 0
            let pauseLeft = gathering.wait(at: now)
            if pauseLeft > 0, connection.pending == nil, connection.participant.newestVersionHint != known {
                wait(pauseLeft)
                continue
            }
            let outcome: Outcome
            do { outcome = try step(connection) } catch let failure as TargetFailure
                where isTransient(failure.cause) && isOfPlace(failure.cause)
            {
                endure(failure.cause, connection)
                // Whoever opens the new file would join the session of the old one as long as we are in it.
                if connection.isReplaced { return sourceIsReplaced() }
                continue
            }
            failingSince = nil
            pause = Pause()
            waitsFor = nil
            switch outcome {
            case .archived:
                let version = connection.base?.snapshot.version ?? 0
                gathering.stepBegins(versions: version > known ? version - known : 1, at: now)
                gathering.stepIsDone(at: SystemCalls.monotonicNanoseconds())
                equalAt = now
            case .notDurable: wait(5)
            case .nothing:
                equalAt = now
                if connection.isReplaced { return sourceIsReplaced() }
                // Quick commits one after the other are taken together: images and merging are for when there is time.
                wait(Archiver.idleMilliseconds, [connection.descriptor])
                connection.takeEvents()
            }
        }
    }

    private func sourceIsReplaced() { options.onMessage("another file stands at \(source), or none") }

    /// The notifier tells of everything; this is only how often we look by ourselves.
    private static let idleMilliseconds: Int32 = 5000

    /// The place is away or full; what it has of the archive is what we think.
    private func isOfPlace(_ error: any Error) -> Bool {
        switch error {
        case ArchivePlaceError.unavailable, is SystemError: true
        default: false
        }
    }

    /// The place cannot be written to: what is held stays held for a time.
    private func endure(_ error: any Error, _ connection: SourceSession) {
        let now = SystemCalls.monotonicNanoseconds()
        let since = failingSince ?? now
        failingSince = since
        if now - since > Int64(clamping: options.pinLimit.components.seconds) * 1_000_000_000, connection.base != nil {
            options.onMessage(
                "the source's version is let go: nothing could be stored for too long; what differs will be found by content")
            connection.letGo()
        }
        failed(error)
    }

    private enum Outcome { case archived, nothing, notDurable }

    /// Archives the newest version, if it is another one than that which was archived last.
    private func step(_ connection: SourceSession) throws -> Outcome {
        guard let writer else { return .nothing }
        let (next, seen) = try connection.pending ?? (connection.newest(), UInt64(clamping: SystemCalls.realTimeNanoseconds()))
        if let base = connection.base, base.snapshot == next.snapshot { return .nothing }
        guard try next.isDurable(in: connection.participant) else { return .notDurable }
        try TargetFailure.mark { try lease.renew() }
        // Perhaps it is there though putting it failed: put first then.
        connection.pending = (next, seen)
        let before = (versions: writer.count, bytes: writer.storedByteCount, images: writer.imageCount)
        defer {
            stepCount += writer.count - before.versions
            byteCount += max(0, writer.storedByteCount - before.bytes)
            imageCount += writer.imageCount - before.images
        }
        do {
            if let base = connection.base, next.snapshot.version > base.snapshot.version {
                let older = try base.extents(), newer = try next.extents()
                try put {
                    try writer.appendStep(
                        older.difference(to: newer), next.memory, next.snapshot, history: try next.history(), time: seen,
                        parent: base.memory,
                        freed: newer.difference(to: older))
                }
            } else {
                try put { try appendAcrossAGap(writer, next, seen) }
            }
        } catch let error as FormatError {
            throw ArchiveError.sourceDamaged(source: source, reason: "version \(next.snapshot.version): \(error)")
        }
        connection.pending = nil
        connection.base = next
        try TargetFailure.mark {
            try writer.merge()
            try care(writer, next)
        }
        return .archived
    }

    /// Reads a held version, whose damage is the source's, and writes to the place.
    private func put(_ body: () throws -> Void) throws {
        do { try body() } catch let error as FormatError { throw error } catch { throw TargetFailure(cause: error) }
    }

    /// Differences of so few bytes are stored whatever their share of the file.
    private static let smallByteCount = 1 << 20

    private func appendAcrossAGap(_ writer: ArchiveWriter, _ next: HeldSnapshot, _ seen: UInt64) throws {
        let extents = try next.extents()
        if let newest = writer.newest, !writer.beginsAnew {
            if let tracked = writer.tracked {
                let (ranges, hashes) = try ContentDifference.ranges(
                    memory: next.memory, snapshot: next.snapshot, extents: extents, against: tracked.hashes, dirty: tracked.dirty)
                if newest.snapshot == next.snapshot, tracked.dirty.isEmpty, tracked.hashes == hashes { return }
                if next.snapshot.version > newest.snapshot.version,
                    RangeSet.byteCount(ranges) <= max(extents.usedByteCount / 2, Archiver.smallByteCount)
                {
                    options.onMessage(
                        "versions between \(newest.snapshot.version) and \(next.snapshot.version) were missed; what differs was found by content"
                    )
                    return try writer.appendStep(
                        ranges, next.memory, next.snapshot, history: try next.history(), time: seen, parent: nil, freed: [],
                        hashes: hashes)
                }
            }
            options.onMessage(
                next.snapshot.version > newest.snapshot.version
                    ? "versions after \(newest.snapshot.version) were missed: a new image is made"
                    : "the source was at version \(newest.snapshot.version) and is at version \(next.snapshot.version) now: it begins anew in the archive"
            )
        }
        try writer.appendStart(next.memory, next.snapshot, extents, time: seen)
    }

    /// What is not needed for the version that was just put, but for all in the long run.
    private func care(_ writer: ArchiveWriter, _ held: HeldSnapshot) throws {
        guard let newest = writer.newest else { return }
        let now = UInt64(clamping: SystemCalls.realTimeNanoseconds())
        if writer.imageIsDue(now: now), held.snapshot == newest.snapshot {
            try writer.appendImage(held.memory, try held.extents())
        }
        if newest.sequence % ArchiveWriter.indexInterval == 0 || newest.kind == .start {
            try writer.flush()
            try writer.retain(now: now)
        }
    }
}

/// Compares the last step in an archive with the source.
enum StepComparison {
    /// Whether every byte of the newest step is the one that lies in `memory`, where a version with its numbers can be read.
    static func isLast(
        _ newest: ArchiveEntry, _ place: any ArchivePlace, _ cipher: ArchiveCipher?, _ compressor: Compressor, memory: Memory
    ) throws -> Bool {
        // Of each four steps the first can be read by itself.
        let first = (newest.sequence - 1) / 4 * 4 + 1
        let names = (first...newest.sequence).map { ArchiveNames.step(0, $0) }
        // What is too large to be put together, or was removed in part, is compared by content.
        guard
            let steps = try SegmentMerge(
                names, place, cipher, compressor, limit: ArchiveWriter.mergeByteCountMax, stored: { _ in nil })
        else { return false }
        guard steps.last.sequence == newest.sequence, steps.chain == newest.chain else { return false }
        for range in steps.ranges {
            let a = try memory.bytes(at: range.lowerBound, length: range.count)
            let b = try steps.image.memory.bytes(at: range.lowerBound, length: range.count)
            if memcmp(a, b, range.count) != 0 { return false }
        }
        return true
    }
}
