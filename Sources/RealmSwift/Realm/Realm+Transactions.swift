import Foundation

extension Realm {
    /// Runs `block` in a write transaction: all of its changes are stored, or none where it throws.
    ///
    /// A block that commits or cancels by itself ends the transaction.
    /// - Parameter tokens: observers that are not told of the changes. They must be observers of this very session: those of
    ///   other threads, queues and actors hear of every commit.
    /// - Returns: what the block returns.
    /// - Throws: what the block throws, after the transaction was undone; or `Realm.Error` where the transaction cannot begin or
    ///   the commit fails.
    @discardableResult
    public func write<Result>(withoutNotifying tokens: [NotificationToken] = [], _ block: () throws -> Result) throws -> Result {
        session.check(skipped: tokens)
        // The transaction ends before this function returns, so on this thread.
        do { try session.beginWrite(isMovable: false) } catch { throw Realm.Error(writing: error, session) }
        let result: Result
        do {
            result = try block()
        } catch {
            if session.writer != nil { cancelWrite() }
            throw error
        }
        if session.writer != nil { try commitWrite(withoutNotifying: tokens) }
        return result
    }

    /// Waits until nobody else writes to the file, then begins a write transaction at the newest version.
    ///
    /// Where it cannot begin (a damaged file, more versions in use than the configuration allows) the process stops; `write`
    /// throws.
    public func beginWrite() {
        do { try session.beginWrite(isMovable: session.confinement.mayChangeThread) } catch {
            misuse("The write transaction cannot begin: \(error)")
        }
    }

    /// Makes the changes of the write transaction those of a new version of the file.
    ///
    /// - Parameter tokens: observers that are not told of the changes. They must be observers of this very session.
    /// - Throws: `Realm.Error`; the changes are undone then.
    public func commitWrite(withoutNotifying tokens: [NotificationToken] = []) throws {
        session.check(skipped: tokens)
        do { try session.commitWrite(skipping: tokens) } catch { throw Realm.Error(writing: error, session) }
    }

    /// Undoes the write transaction. Objects that were made in it are invalidated.
    public func cancelWrite() { session.cancelWrite() }

    /// Between the beginning of a write transaction of this Realm and its commit or cancellation. For every thread.
    public var isInWriteTransaction: Bool { session.writer != nil }

    // MARK: Versions

    /// Goes to the newest version of the file.
    ///
    /// - Returns: true if there was a newer one; always false within a write transaction and for frozen Realms.
    @discardableResult
    public func refresh() -> Bool { session.refresh() }

    /// Whether the Realm advances by itself when the file changes; true at first.
    public var autorefresh: Bool {
        get { session.isFrozen ? false : session.autorefresh }
        nonmutating set {
            if session.isFrozen && newValue { misuse("Auto-refresh cannot be enabled for frozen Realms.") }
            session.autorefresh = newValue
        }
    }

    /// Lets go of the version that is read, so that its space can be used again. Objects and lists become invalid; results are
    /// empty until something is read again, from the newest version. A write transaction is undone. Twice is as once. A
    /// read-only Realm stops the process.
    public func invalidate() { session.invalidate() }

    /// It shows one version for ever, may be used on every thread, and cannot be written to.
    public var isFrozen: Bool { session.isFrozen }

    /// The Realm as it is now, for every thread. Not within a write transaction.
    public func freeze() -> Realm { Realm(session.frozen()) }
    /// The live Realm of the caller's thread.
    public func thaw() -> Realm { Realm(session.thawed()) }

    /// The object as it is now, for every thread; also for embedded ones.
    public func freeze<T: ObjectBase>(_ obj: T) -> T { unsafeDowncast(obj.frozenObject(), to: T.self) }
    /// The live object; nil where it was deleted meanwhile.
    public func thaw<T: ObjectBase>(_ obj: T) -> T? { obj.thawedObject().map { unsafeDowncast($0, to: T.self) } }
    /// The collection as it is now, for every thread.
    public func freeze<Collection: RealmCollection>(_ collection: Collection) -> Collection { collection.freeze() }

    /// The classes that this Realm was opened with. For every thread.
    public var schema: Schema { session.schema }
    /// What this Realm was opened with. For every thread.
    public var configuration: Configuration { session.configuration }
}
