import Foundation
internal import SharedStore
internal import SystemCalls

extension Realm {
    /// Why a Realm could not be opened, copied or written.
    ///
    ///     do { try Realm() } catch Realm.Error.fileNotFound { … } catch let error as Realm.Error { print(error.code, error.fileURL) }
    ///
    /// It is an `NSError` of the domain `io.realm`, since only so do all three ways to catch it work here. `code` is a `Code` for
    /// whoever knows that it is a `Realm.Error`, and the number for whoever sees an `NSError`.
    public final class Error: NSError, _CodedError, @unchecked Sendable {
        // Sendable: never changed after `init`; the values of the user info are texts and URLs.

        /// Stable numbers, those of the original.
        public enum Code: Int, Sendable, CaseIterable {
            case fail = 1, fileAccess = 2, filePermissionDenied = 3, fileExists = 4, fileNotFound = 5, fileFormatUpgradeRequired =
                6
            case incompatibleLockFile = 8, addressSpaceExhausted = 9, schemaMismatch = 10, alreadyOpen = 12, invalidInput = 13
            case outOfDiskSpace = 14, incompatibleSession = 15, unsupportedFileFormatVersion = 16, multipleSyncAgents = 17
            case subscriptionFailed = 18, fileOperationFailed = 19, invalidDatabase = 20, incompatibleHistories = 21,
                noSubscriptionForWrite = 22
        }

        /// The domain that `NSError` has.
        public static let errorDomain = "io.realm"

        /// An error of a code, with what `NSError` tells of it.
        public init(_ code: Code, userInfo: [String: Any] = [:]) {
            super.init(domain: Error.errorDomain, code: code.rawValue, userInfo: userInfo)
        }

        convenience init(_ code: Code, _ message: String, path: String? = nil) {
            var userInfo: [String: Any] = [NSLocalizedDescriptionKey: message]
            if let path { userInfo[NSFilePathErrorKey] = path }
            self.init(code, userInfo: userInfo)
        }

        @available(*, unavailable)
        public required init?(coder: NSCoder) { nil }

        // Hidden from those who know the class, so that they get `_CodedError.code`; as an `NSError` it still has the number.
        @available(*, unavailable, message: "The number is errorCode, or code.rawValue")
        public override var code: Int { super.code }

        /// The number of the code.
        public var errorCode: Int { super.code }
        /// The same as `userInfo`.
        public var errorUserInfo: [String: Any] { userInfo }
        /// The file that the error is about.
        public var fileURL: URL? { (userInfo[NSFilePathErrorKey] as? String).map { URL(fileURLWithPath: $0) } }

        public override var localizedDescription: String { userInfo[NSLocalizedDescriptionKey] as? String ?? "\(kind)" }
        public override var description: String { "Realm.Error.\(kind): \(localizedDescription)" }

        /// The codes, so that `catch Realm.Error.fileNotFound` reads well.
        public static let fail = Code.fail, fileAccess = Code.fileAccess, filePermissionDenied = Code.filePermissionDenied
        public static let fileExists = Code.fileExists, fileNotFound = Code.fileNotFound
        public static let fileFormatUpgradeRequired = Code.fileFormatUpgradeRequired,
            incompatibleLockFile = Code.incompatibleLockFile
        public static let addressSpaceExhausted = Code.addressSpaceExhausted, schemaMismatch = Code.schemaMismatch
        public static let alreadyOpen = Code.alreadyOpen, invalidInput = Code.invalidInput, outOfDiskSpace = Code.outOfDiskSpace
        public static let incompatibleSession = Code.incompatibleSession,
            unsupportedFileFormatVersion = Code.unsupportedFileFormatVersion
        public static let fileOperationFailed = Code.fileOperationFailed, invalidDatabase = Code.invalidDatabase
        public static let incompatibleHistories = Code.incompatibleHistories, multipleSyncAgents = Code.multipleSyncAgents
        public static let subscriptionFailed = Code.subscriptionFailed, noSubscriptionForWrite = Code.noSubscriptionForWrite

        /// Errors are equal when their codes are. Without this the operators for `NSError` and for all errors would be equally
        /// good.
        public static func == (a: Realm.Error, b: Realm.Error) -> Bool { a.kind == b.kind }
        public static func != (a: Realm.Error, b: Realm.Error) -> Bool { a.kind != b.kind }

        private var kind: Code { Code(rawValue: super.code) ?? .fail }

        /// An error without further description.
        public static let callFailed = Realm.Error(.fail, userInfo: [NSLocalizedDescriptionKey: "Call failed"])
    }
}

/// Gives `Realm.Error` a `code` of another type than the one that it has as an `NSError`: a class cannot redeclare a property
/// with another type, but may have it from a protocol besides.
public protocol _CodedError: NSError {}

extension _CodedError where Self == Realm.Error {
    /// Why it failed.
    public var code: Realm.Error.Code { Realm.Error.Code(rawValue: (self as NSError).code) ?? .fail }
}

/// Lets `catch Realm.Error.fileNotFound` match.
public func ~= (code: Realm.Error.Code, error: any Swift.Error) -> Bool { (error as? Realm.Error)?.code == code }
/// Lets `switch error.code { case .fileNotFound: … }` match where `code` is the number that an `NSError` has.
public func ~= (pattern: Realm.Error.Code, code: Int) -> Bool { pattern.rawValue == code }
/// Whether the number that an `NSError` has is that of the code.
public func == (code: Int, other: Realm.Error.Code) -> Bool { code == other.rawValue }
/// Whether the number that an `NSError` has is not that of the code.
public func != (code: Int, other: Realm.Error.Code) -> Bool { code != other.rawValue }
/// The same for a number that may be missing.
public func == (code: Int?, other: Realm.Error.Code) -> Bool { code == other.rawValue }
/// The same for a number that may be missing; then it is not that of the code.
public func != (code: Int?, other: Realm.Error.Code) -> Bool { code != other.rawValue }

/// Errors are equal when their domains and codes are.
public func == (a: any Error, b: any Error) -> Bool {
    let a = a as NSError, b = b as NSError
    return a.domain == b.domain && a.code == b.code
}
