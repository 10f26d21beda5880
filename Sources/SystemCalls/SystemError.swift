import Glibc

/// A system call that failed: which one, on what, and with which `errno`.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The name of the call, as in section 2 of the manual.
    public let call: String
    /// The `errno` value.
    public let code: Int32
    /// The path that the call was about, empty where there is none.
    public let path: String

    /// For errors that are found in another way than by a call of this module; `call` is what would have failed.
    public init(call: String, code: Int32, path: String = "") {
        self.call = call
        self.code = code
        self.path = path
    }

    /// The system's text for `code`, for example "No space left on device".
    public var reason: String {
        let text = String(cString: strerror(code))
        return code == EMFILE ? text + " in this process; raise its limit (ulimit -n) or close some" : text
    }

    public var description: String {
        path.isEmpty ? "\(call): \(reason)" : "\(call) \(path): \(reason)"
    }

    /// True for ENOSPC and EDQUOT: the disk, or the user's share of it, is full.
    public var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
    /// True for EACCES, EPERM, EROFS and ETXTBSY.
    public var isPermissionDenied: Bool { code == EACCES || code == EPERM || code == EROFS || code == ETXTBSY }
}
