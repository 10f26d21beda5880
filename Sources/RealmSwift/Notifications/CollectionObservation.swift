import Dispatch
import Foundation
internal import SharedStore

/// What happened to a collection between two calls of an observer.
///
/// Deletions and modifications are positions in the previous state, insertions positions in the new one; each ascending. An
/// element that changed and moved, or left, is a deletion, and an insertion where it is now.
@frozen public enum RealmCollectionChange<CollectionType> {
    /// The first call: nothing but the collection as it is.
    case initial(CollectionType)
    case update(CollectionType, deletions: [Int], insertions: [Int], modifications: [Int])
    /// The collection cannot be observed; no call follows.
    case error(Error)
}

extension RealmCollection {
    /// Calls `block` once with the collection as it is, then after every change.
    ///
    /// Changes of the objects in the collection count, and those of objects that they link to, along at most three links; with
    /// `keyPaths` only those of the named properties do, over any number of links. Calls come at the caller's place, which must
    /// have a run loop or be a queue or an actor, or on `queue`.
    ///
    /// - Parameters:
    ///   - keyPaths: names of properties, with dots through links: `dogs.name`. Empty: only what happens to the collection
    ///     itself.
    ///   - queue: a serial queue.
    /// - Returns: a token that must be kept as long as the block is to be called.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { if let error = $0 { block(.error(error)) } },
            register: { collection, session in collection.register(session, keyPaths, block) })
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { if let error = $0 { PlacedObservation.call(block, actor, .error(error)) } },
            register: { collection, session in collection.register(session, keyPaths) { PlacedObservation.call(block, actor, $0) }
            })
        return await PlacedObservation.begin(request, on: actor)
    }

    fileprivate func register(_ session: Session, _ keyPaths: [String]?, _ block: @escaping (RealmCollectionChange<Self>) -> Void)
        -> Observation
    {
        observePositions(session, keyPaths) { positions in
            guard let positions else { return block(.initial(self)) }
            block(
                .update(
                    self, deletions: Array(positions.deletions), insertions: Array(positions.insertions),
                    modifications: Array(positions.modificationsOld)))
        }
    }

    /// - Parameter body: called with nil first.
    func observePositions(_ session: Session, _ keyPaths: [String]?, _ body: @escaping (CollectionChange?) -> Void) -> Observation
    {
        let (subject, table) = _core.observed()
        let paths = session.observedKeyPaths(keyPaths, of: table)
        return SessionObservation.of(session).observe(subject, paths) { change in
            if change.isInitial { return body(nil) }
            if case .positions(let positions) = change.content { body(positions) }
        }
    }
}

extension RealmCollection where Element: ObjectBase {
    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil,
        _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, _isolation: _isolation, block)
    }
}

extension RealmCollection where Element: OptionalProtocol, Element.Wrapped: ObjectBase {
    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Element.Wrapped>], on queue: DispatchQueue? = nil,
        _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element.Wrapped>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, _isolation: _isolation, block)
    }
}

// MARK: What is observed

extension _CollectionCore {
    /// The collection as the engine observes it, and the class of its elements.
    func observed() -> (ObservedSubject, TableKey?) {
        switch form {
        case .unmanaged: misuse("Only objects and collections which are managed by a Realm support change notifications.")
        case .managed(let handle): return (.collection(handle.identity), handle.elementType?.tableKey)
        case .results(let core): return core.observed()
        }
    }
}

extension ResultsCore {
    func observed() -> (ObservedSubject, TableKey?) {
        let core = self
        switch source {
        case .collection(let handle):
            if selection.isEmpty && handle.kind != .dictionary {
                return (.collection(handle.identity), handle.elementType?.tableKey)
            }
            guard let type = handle.elementType else {
                return (.values(ObservedValues(collection: handle.identity) { _ in core.observedPositions() }), nil)
            }
            return (.objects(observedObjects(type.tableKey, handle.identity, [handle.identity.table])), type.tableKey)
        case .table(let key): return (selection.isEmpty ? .table(key) : .objects(observedObjects(key, nil, [])), key)
        case .backlinks(let target, _, let origin, _, _): return (.objects(observedObjects(origin, nil, [target])), origin)
        }
    }

    private func observedObjects(_ table: TableKey, _ collection: TableEditor.Identity?, _ more: Set<TableKey>) -> ObservedObjects
    {
        var dependencies = queryDependencies ?? QueryDependencies(tables: [table])
        dependencies.tables.formUnion(more)
        var objects = ObservedObjects(table: table, dependencies: dependencies, collection: collection) { [self] _ in
            observedKeys()
        }
        if case .table = source, dependencies.isOwn {
            objects.ownQuery = observedQuery
            objects.adopt = { [self] in adopt($0) }
        }
        return objects
    }
}
