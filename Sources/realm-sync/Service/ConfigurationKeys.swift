/// A key of the configuration: one table for checking, for the manual page and for hints at slips.
struct ConfigurationKey: Sendable {
    let name: String
    /// What its value is called in the manual.
    let value: String
    let help: String
    var isRepeated = false

    init(_ name: String, _ value: String, _ help: String, isRepeated: Bool = false) {
        self.name = name
        self.value = value
        self.help = help
        self.isRepeated = isRepeated
    }
}

/// The kinds of sections, and what may stand in each.
enum ConfigurationSection: String, CaseIterable, Sendable {
    case service, defaults, mirror, archive, directory

    /// Whether there may be many, each with a name.
    var isNamed: Bool { self == .mirror || self == .archive || self == .directory }

    var help: String {
        switch self {
        case .service: "The service itself."
        case .defaults: "Values for all mirrors and archives that do not have their own."
        case .mirror: "One file that is kept equal to another one. The name is what status, log and metrics call it."
        case .archive: "One file of which every version is kept."
        case .directory:
            "All files of a folder, each mirrored or archived; new ones are picked up, those that vanish keep their copy."
        }
    }

    var keys: [ConfigurationKey] {
        switch self {
        case .service: Self.serviceKeys
        case .defaults: Self.commonKeys + Self.mirrorKeys + Self.archiveKeys
        case .mirror: [Self.source, Self.destination] + Self.commonKeys + Self.mirrorKeys
        case .archive: [Self.archiveSource, Self.place] + Self.commonKeys + Self.archiveKeys
        case .directory: Self.directoryKeys + Self.commonKeys + Self.mirrorKeys + Self.archiveKeys
        }
    }

    private static let serviceKeys = [
        ConfigurationKey(
            "socket", "PATH",
            "Where 'realm-sync status' asks; 'none' for nowhere (status.sock in $RUNTIME_DIRECTORY, else /run/realm-sync)."),
        ConfigurationKey("socket-mode", "OCTAL", "Who may ask there (0660)."),
        ConfigurationKey(
            "listen", "ADDRESS:PORT", "Serve /metrics, /health and /status over HTTP at this numeric address too (not)."),
        ConfigurationKey("log-level", "LEVEL", "debug, info, warning or error (info)."),
        ConfigurationKey("log-format", "FORMAT", "plain, or json: one object a line (plain)."),
        ConfigurationKey(
            "stop-timeout", "TIME",
            "So long a mirror may take to end in good order (10s); what is cut off goes on at the next start."),
    ]

    private static let source = ConfigurationKey(
        "source", "FILE", "The realm file to copy from: an absolute path, realm://host:port/name or ssh://host/path.")
    private static let archiveSource = ConfigurationKey("source", "FILE", "The realm file to archive, by its absolute path.")
    private static let destination = ConfigurationKey(
        "destination", "FILE", "The realm file to make: the same forms. One of the two must be on this machine.")
    private static let place = ConfigurationKey(
        "archive", "PLACE",
        "Where the archive is: the absolute path of a folder, or s3://bucket/prefix with "
            + "the store and its keys in the environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)."
    )

    private static let directoryKeys = [
        ConfigurationKey("source", "FOLDER", "The folder, by its absolute path."),
        ConfigurationKey(
            "pattern", "PATTERN", "Which names: *, ? and [...] as in a shell (*.realm). May be given several times.",
            isRepeated: true),
        ConfigurationKey(
            "exclude", "PATTERN",
            "Which names not, though a pattern has them; with 'recursive' also folders that are not to be looked into. May be given several times.",
            isRepeated: true),
        ConfigurationKey("recursive", "yes|no", "Folders within the folder too (no)."),
        ConfigurationKey(
            "destination", "FOLDER",
            "Mirror each file to the same name in this folder, or behind this realm:// or ssh:// address."),
        ConfigurationKey("archive", "PLACE", "Archive each file in a folder of its name within this place."),
        ConfigurationKey("scan-interval", "TIME", "How often to look for new files (5s)."),
    ]

    private static let commonKeys = [
        ConfigurationKey("enabled", "yes|no", "Whether it runs (yes)."),
        ConfigurationKey(
            "force", "yes|no", "Replace whatever is at the destination; the old file is kept under a dated name (no)."),
        ConfigurationKey(
            "grace", "TIME", "After the end, keep the version of the source so long for the next start (15m); 0 for not at all."),
        ConfigurationKey(
            "pin-limit", "TIME", "While the destination cannot be written to, keep the version of the source so long (10m)."),
        ConfigurationKey(
            "gather", "TIME",
            "Gather commits that follow each other for so long at most, and carry them over together, so that whoever commits "
                + "hardly notices; a lone commit is carried over at once (100ms). 0: each as soon as the one before it is done."),
        ConfigurationKey("key-file", "FILE", "The key of an encrypted source."),
        ConfigurationKey("key-env", "NAME", "The same from an environment variable."),
        ConfigurationKey("allow-readable-key-file", "yes|no", "Take a key from a file that its group or others can read (no)."),
        ConfigurationKey("rate-limit", "SIZE", "At most so many bytes a second, such as 10M (no limit)."),
        ConfigurationKey(
            "leave-when-idle", "TIME",
            "Leave the session of the source after so long without a commit, so that an application that compacts the file "
                + "when it opens it is not refused; 'no' for never (no)."),
        ConfigurationKey("lag-warning", "TIME", "Further behind than this counts as behind in status and health (10s)."),
        ConfigurationKey("retry-min", "TIME", "The first pause after a failure; it doubles with each failure in a row (1s)."),
        ConfigurationKey("retry-max", "TIME", "The longest pause (5m)."),
        ConfigurationKey("on-failure", "COMMAND", "A shell command that is run when it fails."),
        ConfigurationKey("on-recovery", "COMMAND", "A shell command that is run when it works again."),
        ConfigurationKey(
            "on-success", "COMMAND",
            "A shell command that is run when something new was carried over, or the service has found nothing to do at its start."
        ),
        ConfigurationKey("hook-interval", "TIME", "Each of the commands runs at most once within this time (1m)."),
    ]

    private static let mirrorKeys = [
        ConfigurationKey("check-every", "N", "Compare every N-th step with a walk of the new version (64)."),
        ConfigurationKey(
            "dest-key-file", "FILE", "Encrypt the destination with this key; without it, with the key of the source."),
        ConfigurationKey("dest-key-env", "NAME", "The same from an environment variable."),
        ConfigurationKey("dest-plain", "yes|no", "Do not encrypt the destination though the source is encrypted (no)."),
        ConfigurationKey("cert", "FILE", "For realm://: our certificate."),
        ConfigurationKey("key", "FILE", "For realm://: the key of our certificate."),
        ConfigurationKey("ca", "FILE", "For realm://: the authority that has signed the server's certificate."),
        ConfigurationKey("psk-file", "FILE", "For realm://: a shared secret instead of certificates."),
        ConfigurationKey(
            "revoked", "FILE", "For realm://: certificates of servers that are not believed any more, as for 'realm-sync serve'."),
        ConfigurationKey("ssh-program", "COMMAND", "For ssh://: the program that connects, with its first arguments (ssh)."),
        ConfigurationKey("remote-program", "NAME", "For ssh://: what this program is called there (realm-sync)."),
        ConfigurationKey(
            "remote-key-file", "FILE",
            "For ssh://: the key file on the other machine, of the source there or for the destination there (no key)."),
        ConfigurationKey(
            "allow-plain", "yes|no",
            "The replica may be plain at the other machine, or here, though the source is encrypted (no)."),
    ]

    private static let archiveKeys = [
        ConfigurationKey("keep", "N", "Keep the newest N versions (all)."),
        ConfigurationKey("keep-for", "TIME", "Keep what was the newest version at any moment within this time (all)."),
        ConfigurationKey("snapshot-interval", "TIME", "Make a whole image after so long, if anything was changed (1d)."),
        ConfigurationKey(
            "removal-delay", "TIME",
            "What is not kept any more is removed so much later, for those who are copying the archive (1h)."),
        ConfigurationKey("lease", "TIME", "Nobody else may write to the archive for so long after a last sign of life (60s)."),
    ]
}
