internal import SharedStore
import Synchronization

/// A version of a file that somebody reads: keeps it alive.
final class SessionReader {
    let group: Group
    let version: UInt64
    /// Whatever pins the version; let go of with this object.
    private let pin: AnyObject?
    /// The frozen session at this version, while there is one. Used on the thread of the live session only.
    var frozen: SessionAddress?

    init(group: Group, version: UInt64, pin: AnyObject?) {
        self.group = group
        self.version = version
        self.pin = pin
    }
}

/// A running write transaction.
protocol SessionWriter: AnyObject {
    var editor: GroupEditor { get }
    /// The version that it began with.
    var baseVersion: UInt64 { get }
    /// Makes the changes those of a new version, which the result is at.
    func commit() throws -> SessionReader
    /// As `commit`, but nothing is durable before `finish`, and the right to write is kept until then.
    func commitWithoutSync() throws -> SessionReader
    /// The transaction may be ended on another thread than it began on.
    var isMovable: Bool { get }
    /// Others wait for the right to write.
    var othersWait: Bool { get }
    /// Has `expire` called, once, on some thread, where the movable writer goes on and others wait after `patience`.
    func watch(patience: Duration, _ expire: @escaping @Sendable () -> Void)
    /// Makes what `commitWithoutSync` committed durable, and lets others write. May be called on any thread where the writer is
    /// movable.
    func finish() throws
    /// Forgets the changes.
    func cancel()
}

extension SessionWriter {
    var group: Group { editor.group }
}

/// The right to write, which was asked for without waiting. Given up when it is dropped.
protocol SessionTurn: AnyObject, Sendable {
    /// Begins at the newest version; nil where the turn was taken back. The transaction may be ended on any thread.
    func begin() throws -> (any SessionWriter)?
}

/// Where the sessions of one file, in one process, get their versions from.
protocol SessionOrigin: AnyObject, Sendable {
    /// The live sessions of the file.
    var cache: SessionCache { get }
    /// Those of them that hear of commits.
    var wakers: WakerList { get }
    /// The newest version.
    func beginRead() throws -> SessionReader
    /// A version that somebody in this process holds.
    func beginRead(_ version: UInt64) throws -> SessionReader
    func newestVersion() throws -> UInt64
    /// Waits for the right to write, and begins at the newest version.
    /// - Parameter isMovable: the transaction may end on another thread than this one.
    func beginWrite(isMovable: Bool) throws -> any SessionWriter
    /// Asks for the right to write; `body` is called on some thread when it is there.
    /// - Parameters:
    ///   - patience: how long the turn may stay unused while others wait for theirs.
    ///   - takenBack: called on some thread where it was unused for longer, and is gone.
    func requestTurn(
        patience: Duration, takenBack: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (Result<any SessionTurn, any Error>) -> Void) throws
    /// The same version once more, for a frozen session.
    func freeze(_ reader: SessionReader) throws -> SessionReader
    /// Begins to hear of the commits of other processes, from those after `version` on.
    func listen(since version: UInt64)
}

/// A file that nobody changes: opened without a lock file.
final class ImmutableOrigin: SessionOrigin {
    let cache = SessionCache()
    let wakers = WakerList()
    let file: ImmutableFile
    private static let count = Atomic(0)
    /// The process has a file open in this way.
    static var isInUse: Bool { count.load(ordering: .relaxed) > 0 }

    init(_ file: ImmutableFile) {
        self.file = file
        ImmutableOrigin.count.add(1, ordering: .relaxed)
    }

    deinit { ImmutableOrigin.count.subtract(1, ordering: .relaxed) }

    func beginRead() throws -> SessionReader { SessionReader(group: file.group, version: try file.group.version(), pin: file) }
    func beginRead(_ version: UInt64) throws -> SessionReader { try beginRead() }
    func newestVersion() throws -> UInt64 { try file.group.version() }

    func beginWrite(isMovable: Bool) throws -> any SessionWriter { misuse("Can't perform transactions on read-only Realms.") }
    func requestTurn(
        patience: Duration, takenBack: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (Result<any SessionTurn, any Error>) -> Void
    ) throws {
        misuse("Can't perform transactions on read-only Realms.")
    }

    func freeze(_ reader: SessionReader) throws -> SessionReader { reader }
    func listen(since version: UInt64) {}
}
