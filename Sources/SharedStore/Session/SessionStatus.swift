import SystemCalls

/// Who takes part in a session and what that costs: a picture of one moment, for people and for monitoring.
public struct SessionStatus: Sendable, Equatable {
    /// A version that a participant holds.
    public struct Pin: Sendable, Equatable {
        /// The number of the version.
        public var version: UInt64
        /// Keeps the history as well as the data.
        public var isLive: Bool
        /// Nanoseconds since 1970.
        public var since: UInt64
    }

    /// A participant that keeps a register: one of this package.
    public struct Participant: Sendable, Equatable {
        /// In the pid namespace of the participant.
        public var processIdentifier: UInt64
        /// In clock ticks since the machine started; with the pid it names a process for good.
        public var processStartTime: UInt64
        /// The name of the program that it runs.
        public var programName: String
        /// What the participant said it is for.
        public var label: String
        /// When it joined, in nanoseconds since 1970.
        public var since: UInt64
        /// False for one that was killed and not swept yet.
        public var isAlive: Bool
        /// The versions that it holds, each with when it began to.
        public var pins: [Pin]
    }

    /// A version in the version list.
    public struct Version: Sendable, Equatable {
        /// The number of the version.
        public var version: UInt64
        /// It is what a reader that begins now gets.
        public var isNewest: Bool
        /// Bytes of the file that belong to it.
        public var logicalSize: Int
        /// How many hold it with its history.
        public var liveLockCount: Int
        /// How many hold its data only.
        public var frozenLockCount: Int
        /// Locks of the two kinds that no register explains: those of other software, or of ours from another session's remains.
        public var unregisteredLockCount: Int
        /// Bytes in the newest version that cannot be reused while this version, or an older one, is held. Nil where unknown.
        public var bytesHeld: Int?
    }

    /// The file.
    public var path: String
    /// What a commit promises in this session, where that is known.
    public var durability: Durability?
    /// The kind of history that the session writes, where that is known.
    public var historyType: HistoryType?
    /// The version that was committed last.
    public var newestVersion: UInt64
    /// Participants counted in the lock file, killed ones that nobody swept included.
    public var participantCount: Int
    /// Those of them that keep a register.
    public var participants: [Participant]
    /// Participants without a register: other software.
    public var unregisteredParticipantCount: Int { max(0, participantCount - participants.count) }
    /// All versions in use, oldest first.
    public var versions: [Version]
    /// A writer is at work; who, as far as it can be found out.
    public var writer: String?
}

extension SessionStatus {
    /// Who holds old versions, oldest pin first, in one line: "version 4 by process 17 (app) since 12 s".
    public var holders: String {
        let now = UInt64(SystemCalls.realTimeNanoseconds())
        var lines = participants.flatMap { participant in
            participant.pins.map { pin in
                (
                    pin.since,
                    "version \(pin.version) by process \(participant.processIdentifier) (\(participant.programName)"
                        + (participant.label.isEmpty ? "" : ", \(participant.label)")
                        + ") for \((now - min(now, pin.since)) / 1_000_000_000) s"
                )
            }
        }.sorted { $0.0 < $1.0 }.map(\.1)
        let foreign = versions.reduce(0) { $0 + $1.unregisteredLockCount }
        if foreign > 0 { lines.append("\(foreign) by other software") }
        let shown = lines.prefix(SessionStatus.holderCountMax)
        return shown.joined(separator: "; ") + (lines.count > shown.count ? "; and \(lines.count - shown.count) more" : "")
    }

    /// Holders named in one line.
    static let holderCountMax = 10
}

extension Participant {
    /// The session as it is now. Takes the control mutex and the list mutex for a moment, and a read lock on the newest version.
    package func status(_ deadline: Deadline? = nil) throws -> SessionStatus {
        try checkOpen()
        let deadline = deadline ?? self.deadline
        let newest = try acquireNewest(.live, deadline)
        defer { release(newest) }
        // Registers and counts are read under one lock, so that they agree.
        let (records, participants, newestIndex) = try lockFile.with(.control, deadline) {
            try lockFile.with(.list, deadline) {
                (try VersionList(lockFile).records(), registeredParticipants(), VersionList(lockFile).newest)
            }
        }
        let free = try? freeList(of: newest.snapshot)
        var versions: [SessionStatus.Version] = []
        for record in records.sorted(by: { $0.snapshot.version < $1.snapshot.version }) {
            let version = record.snapshot.version
            let registered = participants.reduce(0) { $0 + $1.pins.count { $0.version == version } }
            let held = free.map { $0.reduce(0) { $0 &+ ($1.version > version ? $1.length : 0) } }
            versions.append(
                SessionStatus.Version(
                    version: version, isNewest: record.index == newestIndex, logicalSize: record.snapshot.logicalSize,
                    liveLockCount: Int(record.live), frozenLockCount: Int(record.frozen),
                    unregisteredLockCount: max(0, Int(record.live) + Int(record.frozen) - registered), bytesHeld: held))
        }
        let word = lockFile.word(of: .write)
        return SessionStatus(
            path: paths.file, durability: Durability(rawValue: lockFile.durability),
            historyType: HistoryType(rawValue: lockFile.historyType),
            newestVersion: versions.first { $0.isNewest }?.version ?? newest.snapshot.version,
            participantCount: Int(lockFile.participantCount), participants: participants, versions: versions,
            writer: word & LockHolder.threadMask == 0 ? nil : LockHolder.describe(mutexWord: word))
    }

    /// Bytes of the data file, and of those the ones that its newest version uses.
    package func sizes(_ deadline: Deadline? = nil) throws -> (total: Int, used: Int) {
        let newest = try acquireNewest(.live, deadline)
        defer { release(newest) }
        let free = try freeList(of: newest.snapshot).reduce(0) { $0 &+ $1.length }
        return (try file.backend.size(), max(0, newest.snapshot.logicalSize - max(0, free)))
    }

    private func registeredParticipants() -> [SessionStatus.Participant] {
        if paths.file.isEmpty { return [] }
        return ParticipantRegister.filePaths(paths).compactMap { path in
            guard let descriptor = try? SideFile.open(path, 0) else { return nil }
            defer { SystemCalls.close(descriptor) }
            guard let bytes = try? ParticipantRegister.readAll(descriptor, path),
                let contents = ParticipantRegister.Contents(bytes),
                contents.isCounted, contents.device == lockFile.device, contents.inode == lockFile.inode,
                contents.mark == 0 || contents.mark == lockFile.sessionMark
            else { return nil }
            return SessionStatus.Participant(
                processIdentifier: contents.pid, processStartTime: contents.startTime, programName: contents.programName,
                label: contents.label, since: contents.since,
                isAlive: (try? SystemCalls.isDescriptionLocked(descriptor, path: path)) ?? true,
                pins: contents.entries.map { SessionStatus.Pin(version: $0.version, isLive: $0.kind == .live, since: $0.since) })
        }
    }

    /// Lengths and releasing versions of the blocks in a snapshot's free list (file-format-3 2.1).
    private func freeList(of snapshot: Snapshot) throws -> [(length: Int, version: UInt64)] {
        if snapshot.topRef == 0 { return [] }
        let view = try file.view(of: snapshot)
        let memory = view.memory
        let top = try memory.node(snapshot.topRef)
        let lengthsRef = try top.optionalRef(TopSlot.freeLengths), versionsRef = try top.optionalRef(TopSlot.freeVersions)
        if lengthsRef == 0 || versionsRef == 0 { return [] }
        let lengths = try memory.node(lengthsRef), versions = try memory.node(versionsRef)
        if lengths.count != versions.count || lengths.widthType != 0 || versions.widthType != 0 {
            throw FormatError(ref: lengthsRef, "free list with \(lengths.count) lengths and \(versions.count) versions")
        }
        return (0..<lengths.count).map { (Int(lengths.unchecked($0)), UInt64(bitPattern: versions.unchecked($0))) }
    }
}
