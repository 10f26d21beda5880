import SystemCalls

/// Why a file could not be joined, read or written together with others. Every text names the file at fault, and where two
/// values differ, both of them.
public enum SessionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The property of a session in which we and those already there differ (coordination.md 3.5).
    public enum Property: String, Sendable {
        case durability, historyType = "history type", historySchemaVersion = "history schema version"
    }

    /// The data file, or the directory that should hold it, does not exist.
    case notFound(path: String)
    /// The system does not allow the access: of the data file or its directory, not of a side file.
    case permissionDenied(path: String, reason: String)
    /// There is something at the path that is not a regular file.
    case notAFile(path: String, kind: String)
    /// A file beside the data file (lock file, `.management`, `.note`) is in the way or cannot be used.
    case sideFile(path: String, reason: String)
    /// This build cannot share files with others, whatever the file.
    case unsupportedPlatform(reason: String)
    /// The lock file was made by a version of the software whose layout we do not know, or is damaged.
    case incompatibleLockFile(path: String, what: String, ours: String, theirs: String)
    /// The others in the session have opened the file in another way.
    case incompatibleSession(path: String, which: Property, ours: String, theirs: String)
    /// The history stored in the file is not of a kind that we can continue.
    case incompatibleHistories(path: String, ours: String, theirs: String)
    /// The file has another format than the one asked for, and may not, or cannot, be upgraded.
    case formatUpgradeRequired(path: String, from: Int, to: Int)
    case unsupportedFileFormat(path: String, format: Int)
    /// The data file is not a database, is damaged at its root, or its key is wrong.
    case invalidDatabase(path: String, reason: String)
    /// The state shared through the lock file contradicts itself; all participants have to close before the file opens again.
    case unusable(path: String, reason: String)
    /// A wait ended without success; `holder` says who had what we waited for, as far as it could be found.
    case deadlineExceeded(path: String, what: String, holder: String)
    /// The version is not, or no longer, in the session.
    case badVersion(path: String, version: UInt64)
    /// The list of versions has no room left.
    case tooManyVersions(path: String, limit: Int)
    /// Somebody, perhaps this process, has the file open.
    case inUse(path: String)
    /// Transactions are still open on a store that was to be closed.
    case openTransactions(path: String, count: Int)
    /// The store was closed before.
    case closed(path: String)
    /// Any other system call that failed.
    case system(SystemError)

    public var description: String {
        switch self {
        case .notFound(let path): "\(path): no such file or directory"
        case .permissionDenied(let path, let reason): "\(path): \(reason)"
        case .notAFile(let path, let kind): "\(path): is a \(kind), not a regular file"
        case .sideFile(let path, let reason): "\(path): \(reason); this file belongs to the database beside it"
        case .unsupportedPlatform(let reason): "sharing files is not possible: \(reason)"
        case .incompatibleLockFile(let path, let what, let ours, let theirs):
            "\(path): lock file has \(what) \(theirs), expected \(ours); it is held by another version of the software, or damaged"
        case .incompatibleSession(let path, let which, let ours, let theirs):
            "\(path): already open with \(which.rawValue) \(theirs), cannot be opened with \(ours) at the same time"
        case .incompatibleHistories(let path, let ours, let theirs): "\(path): has \(theirs), cannot be opened with \(ours)"
        case .formatUpgradeRequired(let path, let from, let to):
            "\(path): has file format \(from) and must be upgraded to \(to) before it can be opened for sharing"
        case .unsupportedFileFormat(let path, let format):
            "\(path): has file format \(format); formats \(FileHeader.readableFormats.map(String.init).joined(separator: ", ")) are known"
        case .invalidDatabase(let path, let reason): "\(path): not a usable database: \(reason)"
        case .unusable(let path, let reason): "\(path): the session cannot go on: \(reason); close the file in all processes and open it again"
        case .deadlineExceeded(let path, let what, let holder): "\(path): gave up waiting for \(what), held by \(holder)"
        case .badVersion(let path, let version): "\(path): version \(version) is no longer available"
        case .tooManyVersions(let path, let limit):
            "\(path): more than \(limit) versions are in use at the same time; end old transactions, `status` shows whose they are"
        case .inUse(let path): "\(path): is open in this or another process"
        case .openTransactions(let path, let count): "\(path): \(count) transactions are still open; end them before closing"
        case .closed(let path): "\(path): was closed; open it again"
        case .system(let error): error.description
        }
    }

    /// The error of opening the data file or its directory; `path` is what the caller gave.
    static func opening(_ path: String, _ error: SystemError) -> SessionError {
        if error.code == 2 || error.code == 20 { return .notFound(path: path) }  // ENOENT, ENOTDIR
        if error.isPermissionDenied { return .permissionDenied(path: path, reason: error.reason) }
        if error.code == 21 { return .notAFile(path: path, kind: "directory") }  // EISDIR
        return .system(error)
    }
}
