/// Why an archive does not go on. Every text names the place and says what to do.
public enum ArchiveError: Error, Equatable, Sendable, CustomStringConvertible {
    case notAnArchive(place: String)
    /// Made by a newer program.
    case unknownForm(place: String, form: String)
    case damaged(place: String, object: String, reason: String)
    /// Something that should be there is not.
    case missing(place: String, object: String)
    /// Something is there in part only, as a copier leaves it that was ended.
    case incomplete(place: String, object: String, byteCount: Int)
    /// Somebody else archives into this place.
    case leaseHeld(place: String, holder: String)
    /// Somebody else has taken the place over.
    case leaseLost(place: String, holder: String)
    case keyNeeded(place: String)
    case wrongKey(place: String)
    case notEncrypted(place: String)
    /// A key was given for an archive that is not encrypted.
    case keyForPlain(place: String)
    case otherSource(place: String, source: String, archiveOf: String)
    case noSuchVersion(place: String, wanted: String, nearest: String)
    case destinationExists(path: String)
    case inUse(path: String, holders: String)
    case sourceDamaged(source: String, reason: String)
    /// The archive is encrypted and its source is not.
    case plainSource(place: String)
    /// What was restored breaks a rule of the format.
    case unsound(path: String, reason: String)

    public var description: String {
        switch self {
        case .notAnArchive(let place): "\(place): holds no archive; check the path, or make one with 'archive'"
        case .unknownForm(let place, let form): "\(place): is an archive of another form (\(form)); a newer program has made it"
        case .damaged(let place, let object, let reason): "\(place): \(object) is damaged: \(reason); 'verify' the archive"
        case .missing(let place, let object): "\(place): \(object) is missing; 'verify' the archive"
        case .incomplete(let place, let object, let byteCount):
            "\(place): \(object) ends after \(byteCount) bytes; copy it once more, or 'verify' the archive"
        case .leaseHeld(let place, let holder): "\(place): is in use: \(holder)"
        case .leaseLost(let place, let holder): "\(place): was taken over while nothing was written: \(holder)"
        case .keyNeeded(let place): "\(place): is encrypted; name the key with --key-file"
        case .wrongKey(let place): "\(place): is encrypted with another key; after 'rekey', archive into another place"
        case .notEncrypted(let place): "\(place): is not encrypted, its source is; archive into another place"
        case .plainSource(let place): "\(place): is encrypted, and its source is not any more; archive into another place"
        case .keyForPlain(let place): "\(place): is not encrypted; give no key, and 'encrypt' what is restored from it"
        case .otherSource(let place, let source, let other):
            "\(place): is the archive of \(other), not of \(source); name another place, or go on with --force"
        case .noSuchVersion(let place, let wanted, let nearest): "\(place): has no \(wanted); \(nearest)"
        case .destinationExists(let path): "\(path): exists; name another file, or set it aside with --force"
        case .inUse(let path, let holders):
            "\(path): cannot be replaced while it is open\(holders.isEmpty ? "" : ": \(holders)"); close it there and try again"
        case .sourceDamaged(let source, let reason):
            "\(source): \(reason); nothing is archived from a damaged file, run 'verify' on it"
        case .unsound(let path, let reason): "\(path): what was restored is damaged: \(reason)"
        }
    }
}

extension ArchiveError {
    /// The object that cannot be used, and why.
    var object: (name: String, reason: String)? {
        switch self {
        case .damaged(_, let object, let reason): (object, "is damaged: \(reason)")
        case .missing(_, let object): (object, "is missing")
        case .incomplete(_, let object, let byteCount): (object, "ends after \(byteCount) bytes")
        default: nil
        }
    }

    /// Something is not there, or not all of it: to be expected of a copy, and no damage.
    var isAbsence: Bool {
        switch self {
        case .missing, .incomplete: true
        default: false
        }
    }
}
