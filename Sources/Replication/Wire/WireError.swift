import SharedStore

/// Why a conversation with the other side of a mirror has ended.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The other side, or something between, has ended the connection.
    case closed(peer: String, reason: String)
    /// Nothing came for so long.
    case silent(peer: String, seconds: Int)
    /// What came is not of the protocol.
    case malformed(peer: String, reason: String)
    /// A message or a segment is larger than this side takes.
    case tooLarge(peer: String, byteCount: Int, limit: Int)
    /// No connection can be made.
    case unreachable(peer: String, reason: String)
    /// The other side does not prove who it is, or does not believe us.
    case notTrusted(peer: String, reason: String)
    /// The other side refuses, and says why.
    case refused(peer: String, code: WireCode, reason: String)
    /// An address, a file of certificates or keys, or a rule that cannot be understood.
    case badConfiguration(String)
    /// We were told to stop.
    case stopped

    /// Whether it may be over when it is tried again.
    public var isTransient: Bool {
        switch self {
        case .closed, .silent, .unreachable, .malformed: true
        case .refused(_, let code, _): code.isTransient
        case .tooLarge, .notTrusted, .badConfiguration, .stopped: false
        }
    }

    /// One side does not believe the other: where they did before, a certificate may be about to be renewed.
    var isOfTrust: Bool {
        if case .notTrusted = self { return true }
        return false
    }

    public var description: String {
        // At the end of a pipe nobody knows what the other end is called.
        func at(_ peer: String) -> String { peer.isEmpty ? "" : "\(peer): " }
        return switch self {
        case .closed(let peer, let reason): "\(at(peer))the connection was closed: \(reason)"
        case .silent(let peer, let seconds): "\(at(peer))nothing was heard for \(seconds) seconds"
        case .malformed(let peer, let reason): "\(at(peer))does not speak our protocol: \(reason)"
        case .tooLarge(let peer, let count, let limit): "\(at(peer))sends \(count) bytes at once, more than the limit of \(limit)"
        case .unreachable(let peer, let reason): "\(at(peer))cannot be reached: \(reason)"
        case .notTrusted(let peer, let reason): "\(at(peer))is not trusted: \(reason)"
        case .refused(let peer, _, let reason): "\(at(peer))refused: \(reason)"
        case .badConfiguration(let reason): reason
        case .stopped: "stopped"
        }
    }
}

/// What a refusal says to a program; numbers are part of the protocol.
public enum WireCode: UInt16, Sendable, CaseIterable {
    /// The protocol was broken.
    case malformed = 1
    /// No common version of the protocol.
    case version = 2
    /// The name leaves the served folder, or cannot be one.
    case badName = 3
    /// The client may not do this.
    case notAllowed = 4
    /// There is no such file.
    case notFound = 5
    /// Another mirror is at work there, or somebody has the file open.
    case busy = 6
    /// Something else stands at the replica's place, or somebody has changed it.
    case conflict = 7
    /// A frame, a segment or a file is larger than the other side takes.
    case tooLarge = 8
    /// The other side is being stopped.
    case goingAway = 9
    /// The source is damaged, or of a kind that cannot be mirrored.
    case badSource = 10
    /// Reading or writing failed at the other side.
    case inputOutput = 11
    /// The source is encrypted, the replica would not be.
    case wouldBePlain = 12
    /// The other side has let the connection wait for longer than allowed.
    case idle = 13

    var isTransient: Bool {
        switch self {
        case .busy, .goingAway, .inputOutput, .idle, .malformed: true
        case .version, .badName, .notAllowed, .notFound, .conflict, .tooLarge, .badSource, .wouldBePlain: false
        }
    }
}

extension WireCode {
    /// What a side says to the other of an error of its own.
    init(_ error: any Error) {
        switch error {
        case MirrorError.busy, MirrorError.inUse, MirrorError.replacementPending, is SessionError: self = .busy
        case MirrorError.notThisMirror, MirrorError.diverged, MirrorError.unreadable, MirrorError.damagedState: self = .conflict
        case MirrorError.sourceDamaged: self = .badSource
        case OpenError.fileNotFound: self = .notFound
        case is OpenError, is FormatError: self = .badSource
        case WireError.tooLarge: self = .tooLarge
        case WireError.malformed, is FrameError, is SegmentError, is CompressionError: self = .malformed
        case WireError.silent: self = .idle
        case WireError.stopped: self = .goingAway
        case WireError.refused(_, let code, _): self = code
        default: self = .inputOutput
        }
    }
}
