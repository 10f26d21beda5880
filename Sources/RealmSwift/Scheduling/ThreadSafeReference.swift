import Synchronization

/// A ticket by which a value that belongs to one place is found again at another, once.
///
///     let reference = ThreadSafeReference(to: person)
///     queue.async { let realm = try! Realm(); let person = realm.resolve(reference) }
///
/// Until it is resolved, or goes, the version that the value was seen in is kept in the file.
@frozen public struct ThreadSafeReference<Confined: ThreadConfined>: Sendable {
    @usableFromInline let _ticket: _Ticket<Confined>

    /// - Parameter threadConfined: a managed value that is valid; others stop the process.
    public init(to threadConfined: Confined) { _ticket = _Ticket(threadConfined) }

    /// True once the reference was resolved: it cannot be again.
    public var isInvalidated: Bool { _ticket.isUsed }
}

/// What a thread-safe reference refers to, for clients that need not know it.
public final class _Ticket<Confined: ThreadConfined>: @unchecked Sendable {
    // Sendable: the value is frozen, so any thread may have it.
    private let frozen: Mutex<Transfer<Confined>?>
    let origin: any SessionOrigin
    let version: UInt64

    init(_ value: Confined) {
        let snapshot = Session.snapshot(of: value)
        origin = snapshot.session.origin
        version = snapshot.session.currentReader?.version ?? 0
        frozen = Mutex(Transfer(snapshot.value))
    }

    var isUsed: Bool { frozen.withLock { $0 == nil } }

    func take() -> Confined? {
        frozen.withLock { frozen in
            defer { frozen = nil }
            return frozen?.value
        }
    }
}

extension Realm {
    /// The value that a reference refers to, for this Realm; nil where it was deleted meanwhile.
    ///
    /// The Realm first goes to the newest version if it is behind the reference's. A reference that was resolved before, or that
    /// belongs to another file, stops the process.
    public func resolve<Confined>(_ reference: ThreadSafeReference<Confined>) -> Confined? {
        if session.isFrozen { misuse("Cannot resolve a thread safe reference within a frozen Realm.") }
        session.checkConfinement()
        if reference._ticket.origin !== session.origin {
            misuse("Cannot resolve thread safe reference in Realm with different configuration than the source Realm.")
        }
        guard let frozen = reference._ticket.take() else { misuse("Can only resolve a thread safe reference once.") }
        return session.thaw(frozen, from: reference._ticket.version)
    }
}

/// A variable that holds a managed value and may be read on every thread: each gets the value of its own.
///
///     @ThreadSafe var person = realm.objects(Person.self).first
///     queue.async { print(person?.name ?? "gone") }
@propertyWrapper
public final class ThreadSafe<T: ThreadConfined>: @unchecked Sendable {
    // Sendable: the value is frozen and changed under the lock.
    private struct Content {
        let frozen: Transfer<T>
        let session: Session
    }
    private let content: Mutex<Content?>

    /// - Parameter wrappedValue: a managed value that is valid, or nil; others stop the process.
    public init(wrappedValue: T?) { content = Mutex(ThreadSafe.content(wrappedValue)) }

    private static func content(_ value: T?) -> Content? {
        guard let value else { return nil }
        let snapshot = Session.snapshot(of: value)
        return Content(frozen: Transfer(snapshot.value), session: snapshot.session)
    }

    /// The value at the caller's place; nil where it was deleted.
    public var wrappedValue: T? {
        get {
            guard let current = content.withLock({ $0 }) else { return nil }
            let session = current.session.thawed()
            let value = session.thaw(current.frozen.value, from: current.session.currentReader?.version ?? 0)
            // The version of long ago is let go.
            if let value, session.writer == nil, !value.isInvalidated {
                let fresh = ThreadSafe.content(value)
                content.withLock { content in
                    if content?.session === current.session { content = fresh }
                }
            }
            return value
        }
        set {
            let fresh = ThreadSafe.content(newValue)
            content.withLock { $0 = fresh }
        }
    }
}

extension Session {
    /// Where a frozen value thaws, instead of in the session of the caller's place.
    @TaskLocal static var thawTarget: Session?

    /// A value as it is now, or within a write transaction as it was committed last.
    static func snapshot<Value: ThreadConfined>(of value: Value) -> (value: Value, session: Session) {
        guard let realm = value.realm, !value.isInvalidated else {
            if value.isInvalidated { misuse("Cannot construct reference to invalidated object.") }
            misuse("Cannot construct reference to unmanaged object, which can be passed across threads directly.")
        }
        let live = realm.session
        if live.isFrozen { return (value, live) }
        live.checkConfinement()
        let frozen = $freezesCommittedState.withValue(true) { value.freeze() }
        guard let session = frozen.realm?.session, !frozen.isInvalidated else {
            misuse(
                "Cannot construct a reference to an object that was created in the write transaction which is still running: commit it first."
            )
        }
        return (frozen, session)
    }

    /// Whether freezing within a write transaction takes the version that it began with.
    @TaskLocal static var freezesCommittedState = false

    /// A frozen value of the same file in this session.
    func thaw<Value: ThreadConfined>(_ frozen: Value, from version: UInt64) -> Value? {
        if let present = currentReader, present.version < version, writer == nil { _ = refresh() }
        return Session.$thawTarget.withValue(self) { frozen.thaw() }
    }
}
