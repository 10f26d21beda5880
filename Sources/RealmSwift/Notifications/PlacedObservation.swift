import Dispatch
import Foundation
internal import SharedStore

/// Observing at the place where the caller runs, on a serial queue, or on an actor.
///
/// For another place the value that is observed is found again there, in the Realm of that place.
enum PlacedObservation {
    /// - Parameters:
    ///   - register: begins to observe the value, at its place.
    ///   - unavailable: called at the place instead where the value is gone there or its Realm cannot be opened.
    static func begin<Value: ThreadConfined>(
        _ value: Value, on queue: DispatchQueue?, unavailable: @escaping ((any Error)?) -> Void,
        register: @escaping (Value, Session) -> Observation
    ) -> NotificationToken {
        let token = ObserverToken()
        guard let queue else {
            let session = session(of: value)
            SessionObservation.check(session)
            token.begin(register(value, session))
            return token
        }
        let request = request(value, unavailable: unavailable, register: register)
        queue.async { [weak token] in
            guard let token, !token.isEnded else { return }
            guard let place = Confinement.of(queue) else { misuse("Observing needs a serial queue.") }
            request.start.value(place, token)
        }
        return token
    }

    /// What is to be observed elsewhere: called with the place, when running there.
    struct Request: Sendable {
        fileprivate let start: Transfer<(Confinement, ObserverToken) -> Void>
    }

    /// What an actor is to observe: made at the caller's place, for `begin(_:on:)`.
    static func request<Value: ThreadConfined>(
        _ value: Value, unavailable: @escaping ((any Error)?) -> Void, register: @escaping (Value, Session) -> Observation
    ) -> Request {
        let snapshot = snapshot(of: value)
        let version = snapshot.session.currentReader?.version ?? 0
        return Request(
            start: Transfer { place, token in
                do {
                    let live = try snapshot.session.sibling(at: place)
                    SessionObservation.check(live)
                    guard let value = live.thaw(snapshot.value, from: version) else { return unavailable(nil) }
                    token.begin(register(value, live))
                } catch {
                    unavailable(error)
                }
            })
    }

    static func begin<A: Actor>(_ request: Request, on actor: A) async -> NotificationToken {
        let token = ObserverToken()
        await start(request, actor, token)
        return token
    }

    private static func start<A: Actor>(_ request: Request, _ actor: isolated A, _ token: ObserverToken) async {
        request.start.value(.of(actor), token)
    }

    private static func session<Value: ThreadConfined>(of value: Value) -> Session {
        guard let realm = value.realm else {
            misuse("Only objects and collections which are managed by a Realm support change notifications.")
        }
        return realm.session
    }

    private static func snapshot<Value: ThreadConfined>(of value: Value) -> (value: Value, session: Session) {
        let session = session(of: value)
        if session.isFrozen { misuse("Frozen Realms do not change and do not have change notifications.") }
        return Session.snapshot(of: value)
    }

    /// Calls a block of an actor from where the actor runs.
    static func call<A: Actor, Change>(_ block: @Sendable (isolated A, Change) -> Void, _ actor: A, _ change: Change) {
        let change = Transfer(change)
        actor.assumeIsolated { block($0, change.value) }
    }
}

extension Session {
    /// Key paths by names in Swift, from objects of a class on; nil: no filter. An unknown name stops the process.
    func observedKeyPaths(_ keyPaths: [String]?, of table: TableKey?) -> [ObservedKeyPath]? {
        guard let keyPaths else { return nil }
        return keyPaths.map { text in
            reading {
                do { return try ObservedKeyPath(text, of: table ?? .null, schema: querySchema()) } catch let error
                    as ObservedKeyPathError
                {
                    if table == nil { misuse("Key paths can only be used where the elements are objects.") }
                    misuse("Invalid \(error.description)")
                }
            }
        }
    }
}
