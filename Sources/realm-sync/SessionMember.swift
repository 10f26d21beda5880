import SharedStore

/// This process as a participant of a session that it only reads. It leaves when the object goes, and before the process ends.
final class SessionMember: Sendable {
    let store: Store
    private let duty: Int

    /// Joins the session of `file`, in whichever way those who are in it have opened it.
    init(_ file: ImmutableFile, key: EncryptionKey?, label: String, console: Console) throws {
        (store, duty) = try Ending.with {
            try SessionMember.join(file, key, label, console)
        } duty: {
            try? $0.close(force: true)
        }
    }

    deinit {
        try? store.close(force: true)
        Ending.forget(duty)
    }

    /// The newest version, or nil where somebody stopped keeps it from being looked at.
    var newestVersion: UInt64? { try? store.participant?.newestVersion(.after(.milliseconds(200))) }

    private static func join(_ file: ImmutableFile, _ key: EncryptionKey?, _ label: String, _ console: Console) throws -> Store {
        var options = StoreOptions()
        options.access = .readOnly
        options.label = label
        options.encryptionKey = key
        options.onWarning = { console.message("note: \($0)") }
        let isWithoutHistory = file.layout.topRef != 0 && (try? file.group.historyType()) == 0
        var first: SessionError?
        // Not `memoryOnly`: whoever comes first into such a session empties the file.
        for durability in [Durability.full, .unsafe] {
            for history in isWithoutHistory ? [HistoryType.none, .inFile] : [.inFile, .none] {
                options.durability = durability
                options.historyType = history
                do { return try Store.open(file.path, options) } catch let error as SessionError {
                    guard case .incompatibleSession = error else { throw error }
                    first = first ?? error
                }
            }
        }
        throw first ?? SessionError.inUse(path: file.path)
    }
}
