/// Why a mirror does not go on. Every text names the file and says what to do.
public enum MirrorError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Source and replica are one file, perhaps by two names.
    case sameFile(source: String, destination: String)
    /// The source is itself, perhaps by way of others, a mirror of the replica.
    case loop(source: String, destination: String)
    /// The replica's name must not be used, or not be replaced.
    case unsuitable(destination: String, reason: String)
    /// Another mirror writes to the replica.
    case busy(destination: String, holder: String)
    /// Somebody has the replica open, so that it cannot be replaced.
    case inUse(destination: String, holders: String)
    /// The source is a replica whose mirror waits for everybody to leave it, to put a new image in its place.
    case replacementPending(source: String)
    /// A file stands where the replica should be, and is no mirror of this source.
    case notThisMirror(destination: String, source: String, mirrorOf: String?)
    /// Somebody else has changed the replica.
    case diverged(destination: String, reason: String)
    /// A file of which the mirror's state tells stands at the replica's path, but it cannot be opened: its key is another one, or
    /// it is damaged.
    case unreadable(destination: String, reason: String)
    /// What the source says of its own space contradicts itself.
    case sourceDamaged(source: String, reason: String)
    /// Others have the source open, and their session cannot be joined: what is read could be overwritten meanwhile.
    case notJoinable(source: String, reason: String)
    /// The source was written to while it was read without a session.
    case changedMeanwhile(source: String)
    /// The file is no replica.
    case notAReplica(path: String)
    /// The replica's state file cannot be understood.
    case damagedState(path: String, reason: String)

    public var description: String {
        switch self {
        case .sameFile(let source, let destination):
            "\(source) and \(destination) are the same file; name another one as the mirror"
        case .loop(let source, let destination):
            "\(source) is itself mirrored from \(destination); a loop of mirrors cannot be, promote one of them first"
        case .unsuitable(let destination, let reason): "\(destination): \(reason)"
        case .busy(let destination, let holder): "\(destination): another mirror is at work on it: \(holder)"
        case .inUse(let destination, let holders):
            "\(destination): cannot be replaced while it is open\(holders.isEmpty ? "" : ": \(holders)"); close it there and try again"
        case .replacementPending(let source):
            "\(source): its mirror is about to replace it by a new image; try again in a moment"
        case .notThisMirror(let destination, let source, nil):
            "\(destination): exists and is no mirror of \(source); name another file, or replace it with --force"
        case .notThisMirror(let destination, let source, let other?):
            "\(destination): is a mirror of \(other), not of \(source); name another file, or replace it with --force"
        case .diverged(let destination, let reason):
            "\(destination): was changed by somebody else (\(reason)) and is left as it is; start the mirror with --force to set it aside and begin anew"
        case .unreadable(let destination, let reason):
            "\(destination): cannot be opened as the replica that it was (\(reason)); name the key that it has (--dest-key-file, --dest-plain), "
                + "or start the mirror with --force to set it aside and begin anew"
        case .sourceDamaged(let source, let reason):
            "\(source): \(reason); nothing is mirrored from a damaged file, run 'realm-sync verify' on it"
        case .notJoinable(let source, let reason):
            "\(source): others have it open, and their session cannot be joined (\(reason)); run this as a user who may write to the file and its folder"
        case .changedMeanwhile(let source):
            "\(source): was written to while it was read, and its session cannot be joined; try again when nobody writes"
        case .notAReplica(let path): "\(path): is no mirror of another file, so there is nothing to promote"
        case .damagedState(let path, let reason): "\(path): \(reason); remove it, or start the mirror with --force"
        }
    }
}
