internal import Notifier
internal import SharedStore
import Synchronization

/// A file that is shared with others, in this process and outside.
final class StoreOrigin: SessionOrigin {
    let store: Store
    let cache = SessionCache()
    let wakers = WakerList()
    private let subscription = Mutex<Subscription?>(nil)

    init(_ store: Store) { self.store = store }

    deinit { subscription.withLock { $0?.cancel() } }

    func beginRead() throws -> SessionReader { SessionReader(try store.beginRead()) }
    func beginRead(_ version: UInt64) throws -> SessionReader { SessionReader(try store.beginRead(version)) }
    func newestVersion() throws -> UInt64 { try store.newestVersion() }

    /// Waits as long as it takes: the API has no limit.
    func beginWrite(isMovable: Bool) throws -> any SessionWriter {
        StoreWriter(
            isMovable ? try store.beginMovableWrite(deadline: .never) : try store.beginWrite(deadline: .never),
            isMovable: isMovable)
    }

    func requestTurn(
        patience: Duration, takenBack: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (Result<any SessionTurn, any Error>) -> Void
    ) throws {
        try store.requestWriteTurn(patience: patience, takenBack: takenBack) { body($0.map { StoreTurn(turn: $0) }) }
    }

    func freeze(_ reader: SessionReader) throws -> SessionReader { SessionReader(try store.freeze(reader.version)) }

    /// One listener a file, however many sessions there are. A Realm in memory has nobody to listen to.
    func listen(since version: UInt64) {
        if store.path.isEmpty { return }
        subscription.withLock { subscription in
            if subscription != nil { return }
            var options = Notifier.Options(
                lastSeenVersion: version, onWarning: { [warn = store.options.onWarning] in warn($0.description) })
            options.fallbackDirectory = store.options.notifierFallbackDirectory
            // A look must not wait for a stopped peer; the next look is half a second away. The store is not kept: the listener
            // lets go of what it looks at a moment after the subscription has ended, and the file is to be closed then.
            let newest: @Sendable () -> UInt64 = { [weak store] in
                (try? store?.participant?.newestVersion(.after(.milliseconds(200)))) ?? 0
            }
            subscription = Notifier.shared.subscribe(path: store.path, options: options, newestVersion: newest) {
                [wakers, path = store.path] event in
                StoreOrigin.warn(of: event, path)
                wakers.wakeAll()
            }
        }
    }

    /// Whoever takes the file away should not have: what is written from then on is in a file without a name, and goes with us.
    private static func warn(of event: Notifier.Event, _ path: String) {
        let what: String
        switch event {
        case .fileReplaced: what = "another file has taken its place"
        case .fileDeleted: what = "it was deleted"
        case .committed, .fileAppeared: return
        }
        Logger.log(.warn, .storage) {
            "'\(path)' is open, and \(what). What is written here goes to the old file, which nobody can open any more, and is lost with this process: let go of all Realms of this file, and open it again."
        }
    }
}

extension SessionReader {
    convenience init(_ transaction: ReadTransaction) {
        self.init(group: transaction.group, version: transaction.version, pin: transaction)
    }
}

private final class StoreTurn: SessionTurn {
    let turn: WriteTurn
    init(turn: WriteTurn) { self.turn = turn }
    func begin() throws -> (any SessionWriter)? { try turn.beginIfHeld().map { StoreWriter($0, isMovable: true) } }
}

/// A write transaction of the engine.
private final class StoreWriter: SessionWriter {
    private let transaction: WriteTransaction
    private(set) var editor: GroupEditor
    let isMovable: Bool
    private var syncError: (any Error)?

    init(_ transaction: WriteTransaction, isMovable: Bool) {
        self.transaction = transaction
        self.isMovable = isMovable
        editor = transaction.editor
    }

    var baseVersion: UInt64 { transaction.baseVersion }
    var othersWait: Bool { transaction.othersWait }
    func watch(patience: Duration, _ expire: @escaping @Sendable () -> Void) { transaction.watch(patience: patience, expire) }

    func commit() throws -> SessionReader { SessionReader(try transaction.commitAndRead()) }

    func commitWithoutSync() throws -> SessionReader {
        try transaction.commitAndContinue(syncing: false)
        editor = transaction.editor
        return SessionReader(try transaction.store.beginRead(transaction.baseVersion))
    }

    func finish() throws {
        cancel()
        if let syncError { throw syncError }
    }

    /// What was committed without a sync is made durable.
    func cancel() {
        if !transaction.isOpen { return }
        do { try transaction.sync() } catch { syncError = error }
        transaction.rollback()
    }
}
