import Glibc
import Replication
import SharedStore
import SystemCalls

/// How the program ends, after sysexits.h.
enum ExitCode: Int32, CaseIterable, Sendable {
    case ok = 0
    /// A check found damage; for monitoring, something is behind.
    case damageFound = 1
    /// For monitoring: something has failed.
    case failed = 2
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case software = 70
    case cannotCreate = 73
    case inputOutput = 74
    case tryAgain = 75
    case notPermitted = 77
    case configuration = 78

    var meaning: String {
        switch self {
        case .ok: "all is well"
        case .damageFound: "a check found damage, or a mirror of the service is behind"
        case .failed: "a mirror of the service has failed, or the service does not run"
        case .usage: "the command line is wrong"
        case .badData: "a file is damaged, or no realm file, or the key is not its key"
        case .noInput: "a file, class or version does not exist, or what is there is no file"
        case .unavailable: "this machine, file system or build cannot do it"
        case .software: "a fault of this program"
        case .cannotCreate: "a file cannot be made: one is there already, a side file is in the way, or the name is too long"
        case .inputOutput: "reading or writing failed, or the disk is full"
        case .tryAgain: "somebody else is in the way; try again later"
        case .notPermitted: "permission is missing, to whatever file, or the file system is read-only"
        case .configuration: "the configuration is wrong"
        }
    }
}

/// An error as the user sees it: one line and an exit code. The one place where error types become exit codes.
struct Failure {
    let code: ExitCode
    /// Nil for nothing to say.
    let message: String?

    init(_ code: ExitCode, _ message: String?) {
        self.code = code
        self.message = message
    }

    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self.init(failure.code, failure.message)
        case let error as UsageError:
            self.init(.usage, "\(error); see '\(Program.name)\(error.command.map { " " + $0 } ?? "") --help'")
        case is OutputStream.Closed: self.init(.ok, nil)
        case let error as ConfigurationError: self.init(.configuration, error.problems.map(\.description).joined(separator: "; "))
        case let error as OpenError: self.init(Failure.code(error), Failure.text(error))
        case SessionError.sideFile(let path, _, ENAMETOOLONG): self.init(.cannotCreate, Advice.tooLong(path))
        case let error as SessionError: self.init(Failure.code(error), "\(error)")
        case let error as SystemError: self.init(Failure.code(error), Advice.text(error))
        case let error as MirrorError: self.init(Failure.code(error), "\(error)")
        case let error as WireError: self.init(Failure.code(error), "\(error)")
        case let error as ArchiveError: self.init(Failure.code(error), "\(error)")
        case let error as SeedError: self.init(Failure.code(error), "\(error)")
        case let error as ArchivePlaceError: self.init(Failure.code(error), "\(error)")
        case let error as EncryptionKeyError:
            let advice = if case .readableByOthers = error { ", or give --\(Option.readableKeyFile.name)" } else { "" }
            self.init(Failure.code(error), "\(error)\(advice)")
        case is FormatError, is DecryptionError, is ChangesetError, is SegmentError, is CompressionError:
            self.init(.badData, "\(error); run '\(Program.name) verify' on the file")
        case is QueryError: self.init(.usage, "\(error)")
        case is PageCipherError: self.init(.unavailable, "\(error)")
        case is LimitError: self.init(.badData, "\(error)")
        case is AddressSpaceError: self.init(.tryAgain, "\(error)")
        default: self.init(.software, "unexpected error: \(error)")
        }
    }

    private static func code(_ error: OpenError) -> ExitCode {
        switch error {
        case .fileNotFound, .isDirectory, .notARegularFile: .noInput
        case .permissionDenied: .notPermitted
        case .tooSmall, .oddSize, .notARealm, .truncated, .damaged, .unsupportedFormat, .upgradeRequired, .incompatibleHistory,
            .incompatibleHistorySchema, .badKeyLength, .decryptionFailed, .notEncrypted:
            .badData
        // A name that is too long is that of no file.
        case .system(let error): error.code == ENAMETOOLONG ? .noInput : code(error)
        }
    }

    private static func text(_ error: OpenError) -> String {
        switch error {
        case .system(let error): Advice.text(error)
        case .fileNotFound: "\(error); check the path"
        case .permissionDenied(let path, _) where Advice.isOnReadOnlyFileSystem(path):
            "\(path): the file system is read-only, and who follows, archives or changes a file takes part in its session beside it; "
                + "'\(Program.name) mirror --once' and commands that only read do without"
        case .truncated, .damaged: "\(error); '\(Program.name) verify' tells more, '\(Program.name) salvage' rescues what is left"
        case .notARealm(_, .encrypted), .notARealm(_, .unknown): "\(error); name the key with --key-file"
        default: "\(error)"
        }
    }

    private static func code(_ error: SessionError) -> ExitCode {
        switch error {
        case .sideFile(let path, _, let number):
            switch code(SystemError(call: "", code: number, path: path)) {
            case .noInput, .inputOutput: .cannotCreate
            case let code: code
            }
        case .unsupportedPlatform: .unavailable
        case .badVersion: .noInput
        case .openTransactions, .closed: .software
        case .replica: .notPermitted
        default: .tryAgain
        }
    }

    private static func code(_ error: SystemError) -> ExitCode {
        switch error.code {
        case EACCES, EPERM, EROFS: return .notPermitted
        case ENOENT, ENOTDIR, EISDIR, ELOOP: return .noInput
        case EEXIST, ENAMETOOLONG: return .cannotCreate
        case EAGAIN, EMFILE, ENFILE, ENOMEM, ENOLCK, EBUSY, ETXTBSY, EADDRINUSE: return .tryAgain
        case ENODEV: return .unavailable
        default: return .inputOutput
        }
    }

    private static func code(_ error: MirrorError) -> ExitCode {
        switch error {
        case .sameFile, .loop, .unsuitable: .usage
        case .busy, .inUse, .replacementPending, .changedMeanwhile: .tryAgain
        case .notJoinable: .notPermitted
        case .notThisMirror, .diverged: .cannotCreate
        case .sourceDamaged, .damagedState, .notAReplica, .unreadable: .badData
        }
    }

    private static func code(_ error: WireError) -> ExitCode {
        switch error {
        case .closed, .silent, .unreachable, .stopped: return .tryAgain
        case .malformed, .tooLarge: return .unavailable
        case .notTrusted: return .notPermitted
        case .badConfiguration: return .usage
        case .refused(_, let code, _):
            switch code {
            case .busy, .goingAway, .idle: return .tryAgain
            case .badName, .version, .malformed, .tooLarge: return .usage
            case .notAllowed, .wouldBePlain: return .notPermitted
            case .notFound: return .noInput
            case .conflict: return .cannotCreate
            case .badSource: return .badData
            case .inputOutput: return .inputOutput
            }
        }
    }

    private static func code(_ error: ArchiveError) -> ExitCode {
        switch error {
        case .notAnArchive, .noSuchVersion: .noInput
        case .unknownForm: .unavailable
        case .damaged, .missing, .incomplete, .keyNeeded, .wrongKey, .notEncrypted, .keyForPlain, .plainSource, .sourceDamaged,
            .unsound:
            .badData
        case .leaseHeld, .leaseLost, .inUse: .tryAgain
        case .otherSource, .destinationExists: .cannotCreate
        }
    }

    private static func code(_ error: SeedError) -> ExitCode {
        switch error {
        case .badKey, .badSignatureFile, .notTrusted, .otherContent, .otherName, .tooLarge: .badData
        case .older: .cannotCreate
        case .unreachable, .inUse: .tryAgain
        case .badURL: .usage
        case .refused(_, let status):
            switch status {
            case 404, 410: .noInput
            case 401, 403: .notPermitted
            default: .tryAgain
            }
        }
    }

    private static func code(_ error: ArchivePlaceError) -> ExitCode {
        switch error {
        case .conflict, .unavailable: .tryAgain
        case .refused: .notPermitted
        case .badAnswer: .inputOutput
        }
    }

    private static func code(_ error: EncryptionKeyError) -> ExitCode {
        switch error {
        case .readableByOthers: .notPermitted
        case .variableNotSet: .usage
        case .noRandomness: .tryAgain
        default: .badData
        }
    }

    /// Writes the one line and returns the code.
    func report(on console: Console) -> ExitCode {
        if let message { console.message(message) }
        return code
    }
}

/// What a command throws where it knows code and text best.
struct CommandFailure: Error {
    let code: ExitCode
    let message: String
    init(_ code: ExitCode, _ message: String) {
        self.code = code
        self.message = message
    }
}
