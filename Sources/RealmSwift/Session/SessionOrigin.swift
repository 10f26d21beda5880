internal import SharedStore

/// A version of a file that somebody reads: keeps it alive.
final class SessionReader {
    let group: Group
    let version: UInt64
    /// Whatever pins the version; let go of with this object.
    private let pin: AnyObject?
    /// The frozen session at this version, while there is one. Used on the thread of the live session only.
    weak var frozen: Session?

    init(group: Group, version: UInt64, pin: AnyObject?) {
        self.group = group
        self.version = version
        self.pin = pin
    }
}

/// A running write transaction.
protocol SessionWriter: AnyObject {
    var editor: GroupEditor { get }
    /// Makes the changes those of a new version, which the result is at.
    func commit() throws -> SessionReader
    /// Forgets the changes; the result is at the version that the transaction began with.
    func cancel() throws -> SessionReader
}

extension SessionWriter {
    var group: Group { editor.group }
}

/// Where the sessions of one file, in one process, get their versions from.
protocol SessionOrigin: AnyObject {
    /// The live sessions of the file.
    var cache: SessionCache { get }
    /// The newest version.
    func beginRead() throws -> SessionReader
    /// Waits for the right to write, and begins at the newest version.
    func beginWrite() throws -> any SessionWriter
    /// The same version once more, for a frozen session.
    func freeze(_ reader: SessionReader) throws -> SessionReader
}

/// A file that nobody changes: opened without a lock file.
final class ImmutableOrigin: SessionOrigin {
    let cache = SessionCache()
    private let file: ImmutableFile

    init(_ file: ImmutableFile) { self.file = file }

    func beginRead() throws -> SessionReader { SessionReader(group: file.group, version: try file.group.version(), pin: file) }

    func beginWrite() throws -> any SessionWriter { misuse("Can't perform transactions on read-only Realms.") }

    func freeze(_ reader: SessionReader) throws -> SessionReader { reader }
}
