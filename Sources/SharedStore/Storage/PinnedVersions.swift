/// A version that somebody in the session still reads, or the newest one (coordination.md 4.4).
public struct PinnedVersion: Equatable, Sendable {
    /// The version that is held.
    public var snapshot: Snapshot
    /// Pinned by a live (or full) lock, so that its history must be kept as well.
    public var isLive: Bool
    /// A held version.
    ///
    /// - Parameter isLive: its history is held too.
    public init(snapshot: Snapshot, isLive: Bool) {
        self.snapshot = snapshot
        self.isLive = isLive
    }
}

/// What the purge of the version list at the start of a commit found: the input of every decision about free space.
public struct PinnedVersions: Equatable, Sendable {
    /// All reachable versions, ascending; never empty, the last one is the newest.
    public var versions: [PinnedVersion]
    /// An entry younger than the oldest reachable version was dropped: back-dating may find space (file-format-3 2.8).
    public var droppedYoungerEntry: Bool
    /// The versions that readers hold, oldest first.
    public init(versions: [PinnedVersion], droppedYoungerEntry: Bool) {
        self.versions = versions
        self.droppedYoungerEntry = droppedYoungerEntry
    }
    /// Blocks released by this version or an earlier one may be reused.
    public var oldestReachable: UInt64 { versions[0].snapshot.version }
    /// History before this version is dropped.
    public var oldestLive: UInt64 { (versions.first { $0.isLive } ?? versions[versions.count - 1]).snapshot.version }
}

/// How far a commit must have come before it is acknowledged; a property of the whole session (file-format-3 4.2).
public enum Durability: UInt16, Sendable {
    /// Survives a power cut.
    case full = 0
    /// The file is only the backing store of a session and goes when the last participant leaves.
    case memoryOnly = 1
    /// Survives the death of the process, not a power cut.
    case unsafe = 2
}
