/// Where an archive lies: a folder, or a bucket of an object store. Nothing of an archive knows more of it than this.
///
/// A name is a path of few parts with letters, digits, dots and dashes. What is there under a name is whole at all times: it
/// appears, and is replaced, in one step, and when `put` or `finish` returns it survives a power cut. Nothing is ever changed in
/// place, and nothing is listed but by those who restore or verify.
///
/// Thread rules: one thread at a time.
public protocol ArchivePlace: AnyObject {
    /// The place as people write it: a path, an address.
    var description: String { get }

    /// At most `count` bytes from `offset` on, fewer at the end; nil where there is nothing of that name.
    func get(_ name: String, from offset: Int, count: Int) throws -> ArchiveRead?

    /// Puts `bytes` under `name`.
    ///
    /// - Returns: a tag that changes with the content.
    /// - Throws: `ArchivePlaceError.conflict` where the condition does not hold; nothing has changed then.
    @discardableResult
    func put(_ name: String, _ bytes: [UInt8], _ condition: ArchivePutCondition) throws -> String

    /// Begins to put something that comes in pieces.
    func upload(_ name: String) throws -> any ArchiveUpload

    /// The names that begin with `prefix`, in bytewise order.
    func list(_ prefix: String) throws -> [String]

    /// Removes what is there; that nothing is there is no error.
    func delete(_ name: String) throws

    /// Removes what killed predecessors have begun and not finished. Only the holder of the lease calls it.
    func removeLeftovers() throws
}

/// A part of what lies under a name.
public struct ArchiveRead: Equatable, Sendable {
    /// Those that were asked for, fewer where the object ends before.
    public var bytes: [UInt8]
    /// Bytes of the whole.
    public var totalByteCount: Int
    /// See `ArchivePlace.put`.
    public var tag: String
    /// What an implementation of `ArchivePlace.get` answers.
    public init(bytes: [UInt8], totalByteCount: Int, tag: String) {
        self.bytes = bytes
        self.totalByteCount = totalByteCount
        self.tag = tag
    }
}

/// When something may be put under a name; checked in one step with the putting, as far as the place can.
public enum ArchivePutCondition: Equatable, Sendable {
    case always
    /// Only where there is nothing of that name.
    case absent
    /// Only where what is there has this tag.
    case matches(String)
}

/// Something on its way to a place, piece by piece. Nothing is to be seen under its name before `finish`.
public protocol ArchiveUpload: AnyObject {
    func append(_ bytes: [UInt8]) throws
    /// Names it, replacing what was there.
    func finish() throws
    /// Forgets it.
    func abandon()
}

/// What a place may say.
public enum ArchivePlaceError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The condition of a `put` did not hold.
    case conflict(name: String)
    /// The place cannot be used now; the same may succeed later.
    case unavailable(place: String, reason: String)
    /// The place refuses, and will.
    case refused(place: String, reason: String)
    /// An answer that cannot be understood.
    case badAnswer(place: String, reason: String)

    public var description: String {
        switch self {
        case .conflict(let name): "\(name): what is there is not what was"
        case .unavailable(let place, let reason): "\(place): not available: \(reason)"
        case .refused(let place, let reason): "\(place): refused: \(reason)"
        case .badAnswer(let place, let reason): "\(place): answered what cannot be understood: \(reason)"
        }
    }
}

extension ArchivePlace {
    /// All that lies under `name`; nil where there is nothing.
    ///
    /// - Throws: `ArchiveError.damaged` where it has more than `limit` bytes.
    func getAll(_ name: String, limit: Int) throws -> ArchiveRead? {
        guard let read = try get(name, from: 0, count: limit) else { return nil }
        guard read.bytes.count == read.totalByteCount else {
            throw ArchiveError.damaged(place: description, object: name, reason: "\(read.totalByteCount) bytes are too many")
        }
        return read
    }
}
