import SystemCalls

/// Why a file could not be joined, read or written together with others. Every text names the file at fault, and where two
/// values differ, both of them. What is wrong with the data file itself is an `OpenError`.
public enum SessionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The property of a session in which we and those already there differ (coordination.md 3.5).
    public enum Property: String, Sendable {
        case durability, historyType = "history type", historySchemaVersion = "history schema version"
    }

    /// A file beside the data file (lock file, `.management`, `.note`) is in the way or cannot be used.
    /// `code` is the `errno` of the call that failed, 0 where none did.
    case sideFile(path: String, reason: String, code: Int32 = 0)
    /// This build cannot share files with others, whatever the file.
    case unsupportedPlatform(reason: String)
    /// The lock file was made by a version of the software whose layout we do not know, or is damaged.
    case incompatibleLockFile(path: String, what: String, ours: String, theirs: String)
    /// The others in the session have opened the file in another way.
    case incompatibleSession(path: String, which: Property, ours: String, theirs: String)
    /// The state shared through the lock file contradicts itself; all participants have to close before the file opens again.
    case unusable(path: String, reason: String)
    /// A wait ended without success; `holder` says who had what we waited for, as far as it could be found.
    case deadlineExceeded(path: String, what: String, holder: String)
    /// The version is not, or no longer, in the session.
    case badVersion(path: String, version: UInt64)
    /// As many versions are in use as the options, or the version list, allow. `holders` says who holds which, as far as known.
    case tooManyVersions(path: String, limit: Int, holders: String)
    /// Somebody, perhaps this process, has the file open.
    case inUse(path: String)
    /// Transactions are still open on a store that was to be closed.
    case openTransactions(path: String, count: Int)
    /// The file is the replica of another one, which alone decides what is in it.
    case replica(path: String, source: String)
    /// The store was closed before.
    case closed(path: String)

    public var description: String {
        switch self {
        case .sideFile(let path, let reason, _): "\(path): \(reason); this name belongs to the database beside it"
        case .unsupportedPlatform(let reason): "sharing files is not possible: \(reason)"
        case .incompatibleLockFile(let path, let what, let ours, let theirs):
            "\(path): lock file has \(what) \(theirs), expected \(ours); it is held by another version of the software, or damaged"
        case .incompatibleSession(let path, let which, let ours, let theirs):
            "\(path): already open with \(which.rawValue) \(theirs), cannot be opened with \(ours) at the same time"
        case .unusable(let path, let reason):
            "\(path): the session cannot go on: \(reason); close the file in all processes and open it again"
        case .deadlineExceeded(let path, let what, let holder): "\(path): gave up waiting for \(what), held by \(holder)"
        case .badVersion(let path, let version): "\(path): version \(version) is no longer available"
        case .tooManyVersions(let path, let limit, let holders):
            "\(path): more than \(limit) versions are in use at the same time\(holders.isEmpty ? "" : ": \(holders)"); end old transactions"
        case .inUse(let path): "\(path): is open in this or another process"
        case .openTransactions(let path, let count): "\(path): \(count) transactions are still open; end them before closing"
        case .replica(let path, let source):
            "\(path): is a mirror of \(source) and may only be read; write there, or make it a file of its own with 'realm-sync promote \(path)'"
        case .closed(let path): "\(path): was closed; open it again"
        }
    }
}
