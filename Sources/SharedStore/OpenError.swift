import Glibc
import SystemCalls

/// Why a file could not be opened, where the data file is at fault; what concerns the others who use it is `SessionError`.
/// Every case names the path, and where two values differ, both of them.
///
/// The order in which a file is checked, and so which of several faults is reported, is that of file-format-1 1.5.
public enum OpenError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Nothing has this name.
    case fileNotFound(path: String)
    /// The system refuses access: `call` names the refused system call.
    case permissionDenied(path: String, call: String)
    /// A directory stands where the file should be.
    case isDirectory(path: String)
    /// A device, FIFO or socket stands where the file should be.
    case notARegularFile(path: String)
    /// The file is shorter than the smallest possible one; 0 bytes are an error only where the file may not be created.
    case tooSmall(path: String, size: Int, minimum: Int)
    /// The size is not a multiple of 8.
    case oddSize(path: String, size: Int)
    /// No key was given, and bytes 16 to 19 are not `T-DB`; `content` is what the first bytes look like.
    case notARealm(path: String, content: ForeignContent)
    /// The file ends before `position`, where `what` should be.
    case truncated(path: String, size: Int, position: UInt64, what: String)
    /// The header or the top array contradicts itself.
    case damaged(path: String, FormatError)
    /// This package neither reads nor upgrades the format; `format` is the number in the header.
    case unsupportedFormat(path: String, format: Int)
    /// The file has an older format and this way of opening does not upgrade.
    case upgradeRequired(path: String, format: Int)
    /// The history is of a kind that this session cannot continue (coordination.md 7).
    case incompatibleHistory(path: String, found: Int, expected: Int)
    /// The history has a newer schema than this package writes.
    case incompatibleHistorySchema(path: String, found: Int, supported: Int)
    /// The key is not 64 bytes long.
    case badKeyLength(path: String, length: Int)
    /// A page does not decrypt with this key: a wrong key, a damaged page, or a file that is not encrypted.
    case decryptionFailed(path: String, page: Int, reason: String)
    /// A key was given, but the file is not encrypted.
    case notEncrypted(path: String)
    /// Any other system call that failed.
    case system(SystemError)

    /// What a file that is no realm seems to be.
    public enum ForeignContent: String, Sendable {
        case zeros, text, sqlite, encrypted, unknown
    }

    /// The path of the file at fault.
    public var path: String {
        switch self {
        case .fileNotFound(let path), .permissionDenied(let path, _), .isDirectory(let path), .notARegularFile(let path),
            .tooSmall(let path, _, _), .oddSize(let path, _), .notARealm(let path, _), .truncated(let path, _, _, _),
            .damaged(let path, _), .unsupportedFormat(let path, _), .upgradeRequired(let path, _),
            .incompatibleHistory(let path, _, _), .incompatibleHistorySchema(let path, _, _), .badKeyLength(let path, _),
            .decryptionFailed(let path, _, _), .notEncrypted(let path):
            path
        case .system(let error): error.path
        }
    }

    public var description: String {
        switch self {
        case .fileNotFound(let path): "\(path): no such file"
        case .permissionDenied(let path, let call):
            "\(path): permission denied by \(call); check owner and mode of the file and its folder"
        case .isDirectory(let path): "\(path): is a directory; give the path of a file"
        case .notARegularFile(let path): "\(path): is not a regular file"
        case .tooSmall(let path, let size, let minimum):
            "\(path): \(size) bytes are too few for a realm file, the smallest has \(minimum)"
        case .oddSize(let path, let size):
            "\(path): the size of \(size) bytes is not a multiple of 8; the file is cut or not a realm file"
        case .notARealm(let path, .zeros): "\(path): not a realm file: the header is all zeros; restore it from a copy"
        case .notARealm(let path, .text): "\(path): not a realm file: it begins with text"
        case .notARealm(let path, .sqlite): "\(path): not a realm file but an SQLite database"
        case .notARealm(let path, .encrypted): "\(path): encrypted, and no key was given"
        case .notARealm(let path, .unknown): "\(path): not a realm file, or an encrypted one for which no key was given"
        case .truncated(let path, let size, let position, let what):
            "\(path): cut off: the file has \(size) bytes, \(what) should be at byte \(position)"
        case .damaged(let path, let error): "\(path): \(error)"
        case .unsupportedFormat(let path, let format) where (1..<10).contains(format):
            "\(path): file format \(format) is too old to be upgraded to \(FileHeader.currentFormat) (10 is the oldest that can be); "
                + "open the file once with a program of the Realm Core 13 line or older, the last that could, and then with this one"
        case .unsupportedFormat(let path, let format) where format > Int(FileHeader.currentFormat):
            "\(path): file format \(format) is newer than \(FileHeader.currentFormat), the newest that this program knows; use a newer program"
        case .unsupportedFormat(let path, let format):
            "\(path): file format \(format) is not supported (supported are 10, 11 and 20 to \(FileHeader.currentFormat))"
        case .upgradeRequired(let path, let format):
            "\(path): file format \(format) must be upgraded to \(FileHeader.currentFormat) first; 'realm-sync upgrade' does it, and so does a program that opens the file for writing"
        case .incompatibleHistory(let path, let found, let expected):
            "\(path): the history is of type \(OpenError.historyName(found)), this session needs type \(OpenError.historyName(expected))"
        case .incompatibleHistorySchema(let path, let found, let supported):
            "\(path): the history has schema version \(found), supported are versions up to \(supported)"
        case .badKeyLength(let path, let length): "\(path): the key has \(length) bytes, it must have 64"
        case .decryptionFailed(let path, 0, let reason):
            "\(path): the key is not that of the file, or the file's first page is damaged (page 0 cannot be decrypted: \(reason))"
        case .decryptionFailed(let path, let page, let reason):
            "\(path): page \(page) cannot be decrypted: \(reason); is the key the right one?"
        case .notEncrypted(let path): "\(path): the file is not encrypted; open it without a key"
        case .system(let error): error.description
        }
    }

    private static func historyName(_ type: Int) -> String {
        switch type {
        case 0: "0 (none)"
        case 1: "1 (out of realm)"
        case 2: "2 (local)"
        case 3: "3 (sync client)"
        case 4: "4 (sync server)"
        default: "\(type)"
        }
    }

    /// Turns the failure of a system call on `path` into the case that fits best.
    public init(_ error: SystemError, path: String) {
        switch error.code {
        case ENOENT, ENOTDIR: self = .fileNotFound(path: path)
        case EISDIR: self = .isDirectory(path: path)
        case _ where error.isPermissionDenied: self = .permissionDenied(path: path, call: error.call)
        default: self = .system(error.path.isEmpty ? SystemError(call: error.call, code: error.code, path: path) : error)
        }
    }
}
