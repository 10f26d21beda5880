import Notifier

/// How a database is opened. What others in the same session must agree on is marked so.
public struct StoreOptions: Sendable {
    /// What may be done with the file.
    public enum Access: Sendable, Equatable {
        /// Takes part in the session, reads and writes.
        case readWrite
        /// Takes part in the session and only reads; the lock file must be writable all the same.
        case readOnly
        /// Nobody writes the file while it is open: no lock file, no side files, no refresh. For read-only media and bundles.
        case immutable
    }

    /// Whether the file may be written, and made where it is missing.
    public var access = Access.readWrite
    /// How far a commit must have come before it is acknowledged. All in the session must agree.
    public var durability = Durability.full
    /// Whether each commit leaves a changeset in the file. All in the session must agree; object-layer programs use `.inFile`.
    public var historyType = HistoryType.inFile
    /// The key of an encrypted file; a new file is encrypted with it. All in the session must agree.
    public var encryptionKey: EncryptionKey?
    /// Make the file if there is none.
    public var createsFile = true
    /// A file of an older format, or whose history is older than ours, is changed to the present form when it is opened for
    /// writing. Else, and where it is opened for reading only, opening fails with `OpenError.upgradeRequired`.
    public var allowsUpgrade = true
    /// Before an upgrade the file is copied to `NAME.vNN.backup.realm` beside it, where the disk has room for it; any later
    /// opening removes the copy after 93 days. A file of a format that is too new is replaced by such a copy, if there is one.
    public var keepsBackups = true
    /// More versions than this in use at the same time, and no write transaction begins. Nil: no limit.
    public var versionCountMax: Int?
    /// What this store is for; others see it in the status.
    public var label = ""
    /// How long any one wait may take: for the session's locks, for our turn to write.
    public var waitLimit = Duration.seconds(10)
    /// A directory for the FIFO of commit notices where it cannot lie beside the file. All in the session must agree.
    public var notifierFallbackDirectory: String?
    /// A file that is a mirror of another one may be written all the same: the mirror will then refuse to go on.
    public var writesToReplica = false
    /// Told of things that could not be had and are done without.
    public var onWarning: @Sendable (String) -> Void = { _ in }

    /// A file that is read and written, durably, without a key.
    public init() {}

    var participantOptions: ParticipantOptions {
        var options = ParticipantOptions()
        options.durability = durability
        options.historyType = historyType
        options.createsFile = createsFile && access == .readWrite
        options.acceptsOlderFormats = allowsUpgrade && access == .readWrite
        options.keepsBackups = keepsBackups && access == .readWrite
        options.encryptionKey = encryptionKey
        options.label = label
        options.waitLimit = waitLimit
        return options
    }

    var notifierOptions: Notifier.Options {
        Notifier.Options(fallbackDirectory: notifierFallbackDirectory, onWarning: { [onWarning] in onWarning($0.description) })
    }
}
