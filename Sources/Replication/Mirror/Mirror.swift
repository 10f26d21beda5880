import Glibc
import SharedStore
import SystemCalls

/// A file kept equal to another one: options and what both ways of mirroring have in common.
public enum Mirror {
    /// How far a long work has come.
    public struct Progress: Sendable, Equatable {
        /// Bytes that were copied so far.
        public var bytesDone: Int
        /// Bytes in all, as far as known; it may grow while the work goes on.
        public var bytesTotal: Int
    }

    /// How a file is mirrored.
    public struct Options: Sendable {
        /// Replace what stands at the replica's path though it is no mirror of this source, or was changed by somebody else. The
        /// old file is set aside under a dated name.
        public var force = false
        /// Told of what a person may want to know.
        public var onMessage: @Sendable (String) -> Void = { _ in }
        /// Called now and then during an image; what it throws ends the work.
        public var onProgress: @Sendable (Progress) throws -> Void = { _ in }
        /// Told of the file in which an image is being made, and with nil that there is none any more: whoever ends the process
        /// in between removes it.
        public var onTemporaryFile: @Sendable (_ path: String?) -> Void = { _ in }
        /// For so long after this mirror has ended, by itself or killed, its version of the source stays, so that the next mirror
        /// goes on without a new image. It costs the source the space that is freed meanwhile.
        public var pinGrace = Duration.seconds(900)
        /// So long the source's version is kept while the replica cannot be written to (disk full); then a new image will be
        /// made.
        public var pinLimit = Duration.seconds(600)
        /// Commits that follow each other are gathered for so long at most, and carried over together: those who commit hardly
        /// notice the mirror then. A lone commit is carried over at once. 0: each as soon as the one before it is done.
        public var gatherLimit = Duration.milliseconds(100)
        /// Every so many steps, the difference is compared with a walk of the new version.
        public var checkInterval = 64
        /// End as soon as the replica is equal to the source.
        public var endsWhenEqual = false
        /// So many attempts in a row are made to reach another machine; nil: again and again. The pauses between them grow from
        /// 0.1 s.
        public var attemptsMax: Int?
        /// The key of an encrypted source, and the one that the replica is encrypted with; nil for plain files.
        public var sourceKey: EncryptionKey?
        /// See `sourceKey`.
        public var destinationKey: EncryptionKey?
        /// Every option as described at it; nothing is told to anybody.
        public init() {}
    }

    /// What `once` has made.
    public struct Result: Sendable, Equatable {
        /// The version of the source that the replica has now.
        public var snapshot: Snapshot
        /// Bytes of it that are in use: header and free space do not count.
        public var usedByteCount: Int
        /// The name under which the file lives on that stood at the replica's path.
        public var setAside: String?
    }

    /// Makes `destination` a copy of the newest version of `source`, whole or not at all, while others may write to the source.
    ///
    /// - Throws: `MirrorError`, and what opening a file, reading and writing may throw. The file at `destination` is as it was
    ///   then.
    public static func once(source: String, destination: String, options: Options = Options()) throws -> Result {
        let destination = SessionPaths(destination).file
        try checkPair(source, destination)
        let lock = try MirrorLock(destination: destination, purpose: "mirror of \(source)")
        return try withExtendedLifetime(lock) {
            var standing = try standing(destination, FileIdentity.absolutePath(source), force: options.force)
            // Before a long copy is made for nothing.
            if standing != .absent, try StoreFiles.withExclusiveAccess(destination, {}) == nil {
                throw MirrorError.inUse(destination: destination, holders: MirrorImage.holders(destination))
            }
            if standing == .ours && !options.force { try MirrorPlace.requireOneName(destination) }
            var replaced: Snapshot?
            if standing == .ours {
                do { replaced = try look(destination, options.destinationKey) } catch let error as MirrorError {
                    guard options.force else { throw error }
                    standing = .foreign
                }
            }
            return try SteadyReading.attempt(source) {
                let reader = try SourceReader(source, label: "mirror", options)
                return try image(
                    reader.view, status: reader.status, source: source, destination, standing, .once, options,
                    replacing: replaced,
                    format: reader.format, check: { try reader.checkUnchanged() }
                ).0
            }
        }
    }

    /// Makes a replica a file of its own, which may be written: ends the mirroring (mirroring.md 9).
    ///
    /// - Returns: what was known of the mirroring; nil where the state was damaged.
    /// - Throws: `MirrorError.notAReplica`, `MirrorError.busy` while a mirror is at work on it.
    @discardableResult
    public static func promote(_ path: String, key: EncryptionKey? = nil) throws -> MirrorState? {
        let paths = SessionPaths(path)
        do { _ = try SystemCalls.status(path: path) } catch let error as SystemError { throw OpenError(error, path: path) }
        guard MirrorImage.exists(paths.mirrorState) else { throw MirrorError.notAReplica(path: path) }
        let lock = try MirrorLock(destination: path, purpose: "promotion")
        return try withExtendedLifetime(lock) {
            let state = try? MirrorState.read(replica: path)
            let participant = try SessionMembership.join(path, label: "promote", key: key)
            defer { try? participant.close(force: true) }
            _ = try participant.writeQueue.acquire(participant.deadline)
            defer { participant.writeQueue.release() }
            // A mirror that died between header and version list leaves the header ahead; foreign writers do not expect that.
            let newest = try participant.lockFile.with(.list, participant.deadline) {
                try VersionList(participant.lockFile).newestRecord().snapshot
            }
            try participant.file.alignHeader(with: newest, participant.options.durability)
            KillPoint.reach("promote.aligned")
            try SystemCalls.rename(paths.mirrorState, to: paths.management + "/mirror.promoted")
            try SystemCalls.syncDirectory(of: paths.mirrorState)
            return state
        }
    }

    /// What a replica tells of itself.
    public struct ReplicaStatus: Sendable, Equatable {
        /// Which version of which source it has, and since when.
        public var state: MirrorState
        /// The mirror that is at work on it: host, process, since when.
        public var runner: String?
        /// The source's version by its header; nil where the source cannot be read from here.
        public var sourceVersion: UInt64?
    }

    /// Nil where the file is no replica. Touches nothing.
    ///
    /// - Parameter sourceKey: for a source that is encrypted.
    public static func status(_ path: String, sourceKey: EncryptionKey? = nil) throws -> ReplicaStatus? {
        guard let state = try MirrorState.read(replica: path) else { return nil }
        var version: UInt64?
        if let file = try? MirrorImage.open(state.source, key: sourceKey) {
            version = (try? file.inspect())?.snapshot.version
            file.close()
        }
        return ReplicaStatus(state: state, runner: MirrorLock.holder(of: path), sourceVersion: version)
    }

    /// Makes and installs an image; the caller has the mirror lock and holds the version.
    ///
    /// - Parameter check: called before the image takes its place; what it throws leaves everything as it was.
    static func image(
        _ view: FileView, status: SystemCalls.Status, source: String, _ destination: String, _ standing: Standing,
        _ mode: MirrorState.Mode, _ options: Options,
        replacing replaced: Snapshot?, format: UInt8 = FileHeader.currentFormat, check: () throws -> Void = {}
    ) throws -> (Result, MirrorState) {
        let extents: FreeExtents
        do { extents = try FreeExtents(memory: view.memory, snapshot: view.snapshot) } catch let error as FormatError {
            throw MirrorError.sourceDamaged(source: source, reason: "\(error)")
        }
        let temporary = MirrorImage.temporaryPath(destination)
        options.onTemporaryFile(temporary)
        defer { options.onTemporaryFile(nil) }
        // We hold the mirror lock, so a file of this name is what a killed mirror has left.
        do { try SystemCalls.unlink(temporary) } catch let error as SystemError where error.code == ENOENT {}
        try MirrorImage.write(
            memory: view.memory, snapshot: view.snapshot, extents: extents, to: temporary, key: options.destinationKey,
            mode: status.mode & 0o666 | 0o600, format: format
        ) {
            try options.onProgress(Progress(bytesDone: $0, bytesTotal: $1))
        }
        do { try check() } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
        var state = MirrorState(
            source: FileIdentity.absolutePath(source), device: status.device, inode: status.inode,
            lineage: (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max)), snapshot: view.snapshot, mode: mode)
        state.chain = imageChain(state, view, extents)
        state.replaced = replaced
        do {
            let aside = try MirrorImage.install(
                temporary, as: destination, replaces: standing != .absent, setsAside: standing == .foreign, state: state)
            if let aside { options.onMessage("the old file lives on as \(aside)") }
            return (Result(snapshot: view.snapshot, usedByteCount: extents.usedByteCount, setAside: aside), state)
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
    }

    /// The chain begins with the head of the image; the content of a local image needs no proof of its own.
    private static func imageChain(_ state: MirrorState, _ view: FileView, _ extents: FreeExtents) -> Digest {
        var head = SegmentHead()
        head.flags = .image
        head.lineage = state.lineage
        head.this = view.snapshot
        head.time = state.time
        return Segment.chain(head, table: []) { _ in }
    }

    /// What stands at the path of a replica.
    enum Standing: Equatable {
        case absent
        /// A mirror of this source, as far as its state tells.
        case ours
        /// Something that is replaced by force.
        case foreign
    }

    /// - Parameter source: as the replica's state names it: an absolute path, or where it is on another machine.
    static func standing(_ destination: String, _ source: String, force: Bool) throws -> Standing {
        guard try MirrorImage.isThere(destination) else { return .absent }
        let status = try SystemCalls.status(path: destination)
        if status.isDirectory { throw OpenError.isDirectory(path: destination) }
        if !status.isRegularFile { throw OpenError.notARegularFile(path: destination) }
        let state: MirrorState?
        do { state = try MirrorState.read(replica: destination) } catch let error as MirrorError {
            if force { return .foreign }
            throw error
        }
        if let state, state.source == source { return .ours }
        if force { return .foreign }
        throw MirrorError.notThisMirror(destination: destination, source: source, mirrorOf: state?.source)
    }

    /// Where a replica stands that nobody has open.
    ///
    /// - Throws: `MirrorError.diverged` or `.unreadable` where that is not what the mirror has left.
    private static func look(_ destination: String, _ key: EncryptionKey?) throws -> Snapshot {
        guard let state = try MirrorState.read(replica: destination) else {
            throw MirrorError.diverged(destination: destination, reason: "its state is missing")
        }
        let found: Snapshot
        do {
            let file = try MirrorImage.open(destination, key: key)
            defer { file.close() }
            found = try file.inspect().snapshot
        } catch {
            guard let trouble = contentTrouble(error, destination, key) else { throw error }
            throw MirrorError.unreadable(destination: destination, reason: trouble)
        }
        if !state.tells(of: found) {
            throw MirrorError.diverged(
                destination: destination,
                reason: "it is at version \(found.version), the mirror had left version \(state.snapshot.version)")
        }
        return found
    }

    /// Why a file cannot be opened with this key, in words, where its content is the reason: another key, or damage. Nil for
    /// everything else, such as what the system refuses.
    static func contentTrouble(_ error: any Error, _ path: String, _ key: EncryptionKey?) -> String? {
        switch error {
        case OpenError.fileNotFound, OpenError.permissionDenied, OpenError.isDirectory, OpenError.notARegularFile,
            OpenError.system:
            return nil
        case is OpenError, is DecryptionError, is FormatError: break
        default: return nil
        }
        var cause = error
        // It tells a file without encryption from one with another key.
        do { _ = try ImmutableFile(path: path, key: key) } catch let error as OpenError { cause = error } catch {}
        let text = "\(cause)"
        return text.hasPrefix("\(path): ") ? String(text.dropFirst(path.count + 2)) : text
    }

    /// Refuses one file with two names, and loops of mirrors.
    static func checkPair(_ source: String, _ destination: String) throws {
        if !destination.isEmpty, FileIdentity.isSame(source, destination) {
            throw MirrorError.sameFile(source: source, destination: destination)
        }
        try MirrorPlace.check(source: source, destination: destination)
        var at = source
        for _ in 0..<loopLengthMax {
            guard let state = try? MirrorState.read(replica: at) else { return }
            if FileIdentity.isSame(state.source, destination) { throw MirrorError.loop(source: source, destination: destination) }
            at = state.source
        }
    }

    private static let loopLengthMax = 32
}
