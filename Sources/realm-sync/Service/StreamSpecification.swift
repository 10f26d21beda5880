import Replication
import SharedStore

/// What one mirror or archive is to do. Two that are equal need no restart.
struct StreamSpecification: Equatable, Sendable {
    enum Target: Equatable, Sendable {
        case file(String)
        case archive(String)
        var text: String {
            switch self {
            case .file(let text), .archive(let text): text
            }
        }
    }

    /// What status, log and metrics call it; unique.
    var name: String
    var source: String
    var target: Target

    var force = false
    var grace: Duration?
    var pinLimit: Duration?
    var gatherLimit: Duration?
    var key = KeySource()
    var bytesPerSecond: Int?
    /// Nil for never.
    var leaveWhenIdle: Duration?
    var lagWarning = Duration.seconds(10)
    var retryMin = Duration.seconds(1), retryMax = Duration.seconds(300)
    var hooks = Hooks()

    var checkInterval: Int?
    var destinationKey = KeySource()
    var isDestinationPlain = false
    var wire = Wire()

    var keep: Int?
    var keepFor: Duration?
    var snapshotInterval: Duration?
    var removalDelay: Duration?
    var lease: Duration?

    /// Commands of the administrator, and how often each may run.
    struct Hooks: Equatable, Sendable {
        var onFailure: String?, onRecovery: String?, onSuccess: String?
        var interval = Duration.seconds(60)
    }

    /// Where a key comes from. The key itself is read at each start, so that a new key file needs no restart of the service.
    struct KeySource: Equatable, Sendable {
        var file: String?
        var environment: String?
        var allowsReadableFile = false

        func read() throws -> EncryptionKey? {
            if let environment { return try KeyVariables.key(environment) }
            return try file.map { try EncryptionKey.read(file: $0, allowReadableByOthers: allowsReadableFile) }
        }

        var isGiven: Bool { file != nil || environment != nil }
    }

    /// How another machine is reached.
    struct Wire: Equatable, Sendable {
        var certificate: String?, key: String?, authority: String?, sharedSecrets: String?, revocations: String?
        var sshProgram: [String] = []
        var remoteProgram: String?
        var remoteKeyFile: String?
        var allowsPlain = false
    }

    /// An address of another machine or place, not a path of this one.
    static func isRemote(_ text: String) -> Bool { text.contains("://") }

    /// The source as a path, if it is on this machine.
    var localSource: String? { Self.isRemote(source) ? nil : source }
    /// The replica as a path, if it is a file of this machine.
    var localReplica: String? {
        if case .file(let path) = target, !Self.isRemote(path) { return path }
        return nil
    }
}

/// A folder whose files are all mirrored or archived.
struct DirectorySpecification: Equatable, Sendable {
    var name: String
    var folder: String
    var patterns = ["*.realm"]
    var excludes: [String] = []
    var isRecursive = false
    var scanInterval = Duration.seconds(5)
    /// Of each file; its name, source and target are filled in.
    var template: StreamSpecification

    /// What is to be done with the file at `path`, relative to the folder.
    func stream(for path: String) -> StreamSpecification {
        var stream = template
        stream.name = "\(name)/\(path)"
        stream.source = folder + "/" + path
        func joined(_ base: String) -> String { base.hasSuffix("/") ? base + path : base + "/" + path }
        switch template.target {
        case .file(let base): stream.target = .file(joined(base))
        case .archive(let base): stream.target = .archive(joined(base))
        }
        return stream
    }
}
