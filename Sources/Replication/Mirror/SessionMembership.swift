import Glibc
import SharedStore
import SystemCalls

/// A held version of a session that we take part in, ready to be read.
final class HeldSnapshot {
    let lock: ReadLock
    let view: FileView
    private let participant: Participant
    private var parsed: FreeExtents?

    init(_ participant: Participant, _ lock: ReadLock) throws {
        self.participant = participant
        self.lock = lock
        do { view = try participant.file.view(of: lock.snapshot) } catch {
            participant.release(lock)
            throw error
        }
    }

    deinit { if !isLetGo { participant.release(lock) } }

    private(set) var isLetGo = false
    /// Ends the hold before the object goes; nothing of the version may be read any more.
    func letGo() {
        if !isLetGo { participant.release(lock) }
        isLetGo = true
    }

    var snapshot: Snapshot { lock.snapshot }
    var memory: Memory { view.memory }

    /// The version's free space, read once.
    func extents() throws -> FreeExtents {
        if let parsed { return parsed }
        let fresh = try FreeExtents(memory: view.memory, snapshot: lock.snapshot)
        parsed = fresh
        return fresh
    }
}

/// Joining a session in whichever way those who are in it have opened the file.
enum SessionMembership {
    static func join(_ path: String, label: String, key: EncryptionKey? = nil, pinGrace: Duration = .zero) throws -> Participant {
        var options = ParticipantOptions()
        options.encryptionKey = key
        options.createsFile = false
        options.label = label
        options.pinGrace = pinGrace
        var first: SessionError?
        // Not `memoryOnly`: whoever comes first into such a session empties the file.
        for durability in [Durability.full, .unsafe] {
            for history in [HistoryType.inFile, .none] {
                options.durability = durability
                options.historyType = history
                do { return try Participant.open(path, options) } catch let error as SessionError {
                    guard case .incompatibleSession = error else { throw error }
                    first = first ?? error
                } catch let error as OpenError {
                    guard case .incompatibleHistory = error, history == .none, let first else { throw error }
                    throw first
                }
            }
        }
        throw first ?? SessionError.inUse(path: path)
    }
}

/// What a file is called, whatever the way to it.
enum FileIdentity {
    /// The absolute path, with symbolic links followed where the file exists, else those of its folder.
    static func absolutePath(_ path: String) -> String {
        if let found = resolved(path) { return found }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        guard let folder = resolved(SystemCalls.parentDirectory(of: path)) else { return path }
        return folder == "/" ? "/" + name : folder + "/" + name
    }

    private static func resolved(_ path: String) -> String? {
        guard let pointer = realpath(path, nil) else { return nil }
        defer { free(pointer) }
        return String(cString: pointer)
    }

    static func isSame(_ a: String, _ b: String) -> Bool {
        if let x = try? SystemCalls.status(path: a), let y = try? SystemCalls.status(path: b) {
            return x.device == y.device && x.inode == y.inode
        }
        return absolutePath(a) == absolutePath(b)
    }
}
