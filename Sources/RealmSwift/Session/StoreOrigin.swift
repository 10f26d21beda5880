internal import SharedStore

/// A file that is shared with others, in this process and outside.
final class StoreOrigin: SessionOrigin {
    let store: Store
    let cache = SessionCache()

    init(_ store: Store) { self.store = store }

    func beginRead() throws -> SessionReader {
        let transaction = try store.beginRead()
        return SessionReader(group: transaction.group, version: transaction.version, pin: transaction)
    }

    func beginWrite() throws -> any SessionWriter { StoreWriter(self, try store.beginWrite()) }

    func freeze(_ reader: SessionReader) throws -> SessionReader {
        let transaction = try store.freeze(reader.version)
        return SessionReader(group: transaction.group, version: transaction.version, pin: transaction)
    }
}

/// A write transaction of the engine.
private final class StoreWriter: SessionWriter {
    private let origin: StoreOrigin
    private let transaction: WriteTransaction
    let editor: GroupEditor

    init(_ origin: StoreOrigin, _ transaction: WriteTransaction) {
        self.origin = origin
        self.transaction = transaction
        editor = transaction.editor
    }

    func commit() throws -> SessionReader {
        let transaction = try transaction.commitAndRead()
        return SessionReader(group: transaction.group, version: transaction.version, pin: transaction)
    }

    func cancel() throws -> SessionReader {
        let version = transaction.baseVersion
        // The version is held until somebody else holds it.
        let reader = try? origin.store.beginRead(version)
        if transaction.isOpen { transaction.rollback() }
        guard let reader else { return try origin.beginRead() }
        return SessionReader(group: reader.group, version: reader.version, pin: reader)
    }
}
