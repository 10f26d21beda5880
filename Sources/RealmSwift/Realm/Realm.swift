import Dispatch
import Foundation
internal import SharedStore
import Synchronization

/// A session on a Realm file: reads one version of it, and writes in transactions.
///
/// A Realm belongs to the thread, the queue or the actor where it was opened. Opening the same file there again gives the same
/// session as long as it is referred to. Two values are equal when they refer to the same session.
@frozen public struct Realm: Equatable {
    @usableFromInline let _reference: _SessionReference

    init(_ session: Session) { _reference = _SessionReference(session) }

    var session: Session { _reference.session }

    public static func == (a: Realm, b: Realm) -> Bool { a.session === b.session }

    /// What to do with an object whose primary key is taken.
    @frozen public enum UpdatePolicy: Int, Sendable {
        /// Stop the process.
        case error = 1
        /// Write the properties that differ.
        case modified = 3
        /// Write all properties.
        case all = 2
    }
}

/// A session, for clients that need not know what it is.
public final class _SessionReference {
    let session: Session
    /// Objects that were looked up last.
    @exclusivity(unchecked) var spares = SpareAccessors()

    init(_ session: Session) {
        self.session = session
        session.realmCount.add(1, ordering: .relaxed)
    }

    deinit { if session.realmCount.subtract(1, ordering: .relaxed).newValue == 0 { session.lastRealmEnds() } }
}

@available(*, unavailable, message: "A Realm belongs to the thread, queue or actor where it was opened: open it there again")
extension Realm: @unchecked Sendable {}
