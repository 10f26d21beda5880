import Glibc
import SharedStore
import SystemCalls

/// Keeps a readable file at the newest version of an archive, until it is told to stop.
///
/// The file is a replica as a mirror makes it: steps are applied one by one, each with its own syncs, beside its readers, and
/// each reader sees whole versions only. Where the archive began anew, or has given up what lies between, a restored file takes
/// the replica's place as soon as nobody has it open.
///
/// The place is asked for the next step by its name at each interval; nothing is listed. A copy of an archive, which a copier
/// brings up to date now and then, is followed as far as it goes.
///
/// Used by one thread, which `run` keeps until the end.
public final class ArchiveFollower {
    private let place: any ArchivePlace
    private let key: EncryptionKey?
    private let destination: String
    private let options: Mirror.Options
    private let interval: Int32
    private let control: MirrorFollower.Control
    private let onStatus: (Status) -> Void
    private let compressor = Compressor()
    private var stopped = false, reloads = false
    private var waitsFor: String?
    private var entry: ArchiveEntry?
    private var stepCount = 0, imageCount = 0

    /// A picture of one moment.
    public struct Status: Sendable, Equatable {
        /// The archive, as people write it.
        public var place: String
        /// The path of the replica.
        public var destination: String
        /// The version of the replica; nil before it has one.
        public var version: UInt64?
        /// When the source was seen at that version: nanoseconds since 1970.
        public var time: UInt64?
        /// Steps that this follower has applied.
        public var stepCount: Int
        /// Whole files that it has put in place.
        public var imageCount: Int
        /// Why it does not go on, for people; nil while it does.
        public var waitsFor: String?
    }

    /// - Parameters:
    ///   - key: that of an encrypted archive; the replica is encrypted with it.
    ///   - interval: so often the place is asked for something new.
    public init(
        place: any ArchivePlace, destination: String, key: EncryptionKey? = nil, interval: Duration = .seconds(5),
        options: Mirror.Options = Mirror.Options(),
        onStatus: @escaping (Status) -> Void = { _ in }, control: @escaping MirrorFollower.Control
    ) {
        self.place = place
        self.key = key
        self.destination = destination
        self.options = options
        self.control = control
        self.onStatus = onStatus
        let seconds = Double(interval.components.seconds) + Double(interval.components.attoseconds) / 1e18
        self.interval = Int32(max(10, min(seconds * 1000, 1e9)))
    }

    private var source: String {
        "archive:" + (place is FolderPlace ? FileIdentity.absolutePath(place.description) : place.description)
    }

    /// Follows until a request says stop.
    ///
    /// - Throws: what cannot be helped by waiting.
    public func run() throws {
        var options = options
        options.destinationKey = key
        let writer = try ReplicaWriter(destination, source: source, options: options, purpose: "follow \(place.description)")
        defer { writer.disconnect() }
        var pause = Pause()
        while !stopped {
            do {
                let reader = try ArchiveReader(place, key: key)
                try connect(writer, reader)
                pause = Pause()
                try follow(writer, reader)
                reloads = false
            } catch let error where isTransient(error, writer) {
                say("\(error)")
                wait(pause.next())
            }
            writer.disconnect()
        }
    }

    private func isTransient(_ error: any Error, _ writer: ReplicaWriter) -> Bool {
        if stopped { return false }
        switch error {
        case ArchivePlaceError.unavailable, MirrorError.inUse, SessionError.deadlineExceeded: return true
        // Removed while it was read, or about to be there.
        case ArchiveError.missing: return true
        case ArchiveError.notAnArchive, ArchiveError.noSuchVersion: return writer.hasReplica
        case let error as SystemError:
            return error.isOutOfSpace || [EIO, ESTALE, ENETDOWN, EHOSTDOWN, ETIMEDOUT].contains(error.code)
        default: return false
        }
    }

    private func say(_ text: String) {
        if waitsFor != text { options.onMessage(text) }
        waitsFor = text
    }

    private func wait(_ milliseconds: Int32) {
        switch control([], milliseconds) {
        case .stop: stopped = true
        case .reload: reloads = true
        case .status: onStatus(status())
        case nil: break
        }
    }

    /// To be called by the thread that runs it, from within `control`.
    public func status() -> Status {
        Status(
            place: place.description, destination: destination, version: entry?.snapshot.version, time: entry?.time,
            stepCount: stepCount,
            imageCount: imageCount, waitsFor: waitsFor)
    }

    // MARK: Where the replica stands

    /// Ends up with a replica that stands at a version of the archive.
    private func connect(_ writer: ReplicaWriter, _ reader: ArchiveReader) throws {
        entry = nil
        if try writer.connect() != nil, let state = writer.state {
            // The state may be behind the file by the one step whose note was lost: applying it again finds that out by its
            // bytes.
            let known =
                try reader.entries(from: state.sequence, through: state.sequence).first
                ?? reader.described([state.sequence]).first
            if let known, known.chain == state.chain, known.snapshot == state.snapshot {
                entry = known
                return
            }
            options.onMessage("version \(state.snapshot.version) is not in the archive any more: the replica is restored anew")
        }
        let newest = try reader.newest()
        guard let target = try restorable(reader, newest) else {
            throw ArchiveError.missing(place: place.description, object: "what leads to version \(newest.snapshot.version)")
        }
        try restore(writer, reader, target)
    }

    /// The version to restore where one is told of as the newest: that one, or, in a copy that does not have all that leads to it,
    /// the newest to which all is there, if it is newer than what we have.
    private func restorable(_ reader: ArchiveReader, _ told: ArchiveEntry) throws -> ArchiveEntry? {
        if try reader.reaches(told) { return told }
        guard let found = try reader.newestRestorable() else { return nil }
        if let here = entry, found.sequence <= here.sequence { return nil }
        return found
    }

    private func restore(_ writer: ReplicaWriter, _ reader: ArchiveReader, _ newest: ArchiveEntry) throws {
        let standing = try writer.prepareForImage()
        try writer.requireUnused(standing)
        let temporary = MirrorImage.temporaryPath(destination)
        // We hold the mirror's lock, so a file of this name is what a killed one has left.
        do { try SystemCalls.unlink(temporary) } catch let error as SystemError where error.code == ENOENT {}
        do {
            var restoring = Archive.RestoreOptions()
            restoring.key = key
            restoring.verifies = false
            restoring.onProgress = options.onProgress
            _ = try Archive.build(reader, newest, at: temporary, restoring, durably: true)
            var state = MirrorState(
                source: source, device: 0, inode: 0, lineage: (0, 0), snapshot: newest.snapshot, mode: .follow)
            state.line = MirrorLine(lineage: (0, 0), sequence: newest.sequence, chain: newest.chain)
            state.time = newest.time
            state.replaced = writer.replacedSnapshot
            let aside = try MirrorImage.install(
                temporary, as: destination, replaces: standing != .absent, setsAside: standing == .foreign, state: state)
            if let aside { options.onMessage("the old file lives on as \(aside)") }
            _ = try writer.installed(state)
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
        imageCount += 1
        entry = newest
    }

    // MARK: Steps

    private func follow(_ writer: ReplicaWriter, _ reader: ArchiveReader) throws {
        var misses = 0
        while true {
            wait(0)
            guard !stopped, !reloads, let here = entry else { return }
            if let (step, next) = try step(after: here, writer) {
                misses = 0
                let line = MirrorLine(lineage: (0, 0), sequence: next.sequence, chain: next.chain)
                let done = try writer.apply(step, seen: next.time, line: line) { milliseconds, why in
                    if let why { say(why.text) }
                    wait(milliseconds)
                    return !stopped && !reloads
                }
                guard done else { return }
                waitsFor = nil
                stepCount += 1
                entry = next
                continue
            }
            misses += 1
            // Nothing comes after this version where it is the last before a new beginning, or where what followed was removed.
            if misses % Self.missesBetweenLooks == 1 {
                let fresh = try ArchiveReader(place, key: key)
                let told = try fresh.newest()
                if told.sequence != here.sequence, try step(after: here, writer) == nil {
                    if let target = try restorable(fresh, told) {
                        options.onMessage(
                            "the archive does not go on from version \(here.snapshot.version): the replica is restored anew")
                        writer.disconnect()
                        _ = try writer.connect()
                        return try restore(writer, fresh, target)
                    }
                    say("what leads from version \(here.snapshot.version) to version \(told.snapshot.version) is not there yet")
                    wait(interval)
                    continue
                }
            }
            if writer.wasReplaced { return options.onMessage("\(destination) was removed or replaced") }
            waitsFor = nil
            wait(interval)
        }
    }

    private static let missesBetweenLooks = 12

    /// The step from a version to the next one; nil where there is none, or one that must not be applied in place.
    private func step(after here: ArchiveEntry, _ writer: ReplicaWriter) throws -> (MirrorStep, ArchiveEntry)? {
        let name = ArchiveNames.step(0, here.sequence + 1)
        guard let object = try ArchiveObjectReader(place, name, cipher: try cipher()) else { return nil }
        guard object.head.kind == .step, object.head.plainByteCount <= Segment.payloadByteCountMax else { return nil }
        guard object.head.parentSequence == here.sequence, object.head.parentChain == here.chain else {
            throw object.damaged("it does not go on from version \(here.snapshot.version)")
        }
        var ranges: [Range<Int>] = []
        var payload: [UInt8] = []
        var chain = here.chain
        var hasMore = true
        var head = SegmentHead()
        while hasMore {
            let segment = try object.segment(compressor) { head in try self.prefix(head, writer, object) }
            guard segment.head.parent == here.snapshot, segment.head.parentChain == chain, segment.head.this == object.head.this
            else {
                throw object.damaged("one of its segments belongs to something else")
            }
            for range in segment.ranges {
                if let last = ranges.last, last.upperBound == range.lowerBound {
                    ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    ranges.append(range)
                }
            }
            payload += segment.payload
            chain = segment.head.chain
            hasMore = segment.head.flags.contains(.more)
            head = segment.head
        }
        head.flags.remove(.more)
        let entry = ArchiveEntry(
            sequence: object.head.sequence, snapshot: object.head.this, time: object.head.time, kind: .step,
            plainByteCount: payload.count,
            storedByteCount: object.totalByteCount, chain: chain)
        return (MirrorStep(Segment(head: head, ranges: ranges, payload: payload)), entry)
    }

    /// The lists of the version at which the replica stands: nobody but us writes there.
    private func prefix(_ head: SegmentHead, _ writer: ReplicaWriter, _ object: ArchiveObjectReader) throws -> [UInt8] {
        guard let file = writer.applier?.participant.file else { throw object.damaged("it needs a replica to be read") }
        let view = try file.view(of: head.parent)
        return try withExtendedLifetime(view) {
            guard let bytes = try ListsPrefix.bytes(head.parent, ListsPrefix.reading(view.memory)) else {
                throw object.damaged("its parent has no lists")
            }
            return bytes
        }
    }

    private var knownCipher: ArchiveCipher??
    private func cipher() throws -> ArchiveCipher? {
        if let knownCipher { return knownCipher }
        let fresh = try ArchiveReader(place, key: key).cipher
        knownCipher = .some(fresh)
        return fresh
    }
}
