import Dispatch
import Foundation
internal import SharedStore

/// What happened to a map between two calls of an observer.
@frozen public enum RealmMapChange<Collection: RealmKeyedCollection> {
    /// The first call: nothing but the map as it is.
    case initial(Collection)
    /// The keys that are gone, those that are new, and those whose values changed.
    case update(Collection, deletions: [Collection.Key], insertions: [Collection.Key], modifications: [Collection.Key])
    /// The map cannot be observed; no call follows.
    case error(Error)
}

extension RealmKeyedCollection {
    /// Calls `block` once with the map as it is, then after every change. See `RealmCollection.observe(keyPaths:on:_:)`.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmMapChange<Self>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { if let error = $0 { block(.error(error)) } },
            register: { map, session in map.register(session, keyPaths, block) })
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmMapChange<Self>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { if let error = $0 { PlacedObservation.call(block, actor, .error(error)) } },
            register: { map, session in map.register(session, keyPaths) { PlacedObservation.call(block, actor, $0) } })
        return await PlacedObservation.begin(request, on: actor)
    }

    fileprivate func register(_ session: Session, _ keyPaths: [String]?, _ block: @escaping (RealmMapChange<Self>) -> Void)
        -> Observation
    {
        let (subject, table) = _valueCore.observed()
        let paths = session.observedKeyPaths(keyPaths, of: table)
        return SessionObservation.of(session).observe(subject, paths) { change in
            if change.isInitial { return block(.initial(self)) }
            guard case .keys(let keys) = change.content else { return }
            func typed(_ keys: [String]) -> [Key] { keys.map { Key(_mapKey: $0) } }
            block(
                .update(
                    self, deletions: typed(keys.deletions), insertions: typed(keys.insertions),
                    modifications: typed(keys.modifications)))
        }
    }
}

extension RealmKeyedCollection where Value: OptionalProtocol, Value.Wrapped: ObjectBase {
    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Value.Wrapped>], on queue: DispatchQueue? = nil,
        _ block: @escaping (RealmMapChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Value.Wrapped>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmMapChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, _isolation: _isolation, block)
    }
}
