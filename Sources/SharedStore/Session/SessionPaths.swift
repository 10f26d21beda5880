import SystemCalls

/// The names that belong to a database file (coordination.md 1.1).
///
/// Suffixes are appended to the name of the file itself, not to that of a symbolic link to it: one file has one session, under
/// whichever name it is opened. (Others append them to the path as they are given it: they and we meet where all use the name of
/// the file.)
package struct SessionPaths: Sendable, Equatable {
    /// The data file.
    package let file: String
    package init(_ file: String) { self.file = SystemCalls.followingLinks(file) }

    package var lock: String { file + ".lock" }
    package var management: String { file + ".management" }
    /// Our own participants' register (see `ParticipantRegister`); others ignore what lies in the management directory.
    package var participants: String { management + "/participants" }
    /// There as long as the file is the replica of another one: what it mirrors (written by the Replication module).
    package var mirrorState: String { management + "/mirror.state" }
    package var note: String { file + ".note" }
    /// A name of long ago, removed together with the rest.
    package var legacyLog: String { file + ".log" }
    package var compactionSpace: String { file + ".tmp_compaction_space" }
    package var backupLog: String { file + ".backup-log" }

    /// Everything beside the file that we or others make, empty, replace or remove, without the management directory.
    package var sideFiles: [String] {
        let backups = FileHeader.readableFormats.dropFirst().map { backup(ofFormat: Int($0)) }
        return [lock, note, legacyLog, compactionSpace, backupLog] + backups + backups.map { $0 + ".part" }
    }

    /// The copy made before an upgrade from `format`: `/d/a.realm` gives `/d/a.v22.backup.realm`.
    package func backup(ofFormat format: Int) -> String {
        var stem = file
        if stem.hasSuffix(".realm") { stem.removeLast("realm".count) } else if !stem.hasSuffix(".") { stem += "." }
        return "\(stem)v\(format).backup.realm"
    }
}
