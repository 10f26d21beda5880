import Dispatch
import Foundation
internal import SharedStore

extension ProjectionObservable {
    /// Calls `block` after every change of a projected property, under its name here, and once when the root object is deleted.
    ///
    /// See `Object.observe(keyPaths:on:_:)`.
    /// - Parameter keyPaths: names of projected properties; nil or empty: all of them.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { block(ObjectChange(unavailable: $0)) },
            register: { projection, session in projection.register(session, keyPaths, block) })
    }

    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Self>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: rootPaths(keyPaths), on: queue, block)
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { PlacedObservation.call(block, actor, ObjectChange(unavailable: $0)) },
            register: { projection, session in projection.register(session, keyPaths) { PlacedObservation.call(block, actor, $0) }
            })
        return await PlacedObservation.begin(request, on: actor)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Self>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: rootPaths(keyPaths), on: actor, _isolation: _isolation, block)
    }

    /// The paths of the root that the projected properties show.
    private func rootPaths(_ keyPaths: [PartialKeyPath<Self>]) -> [String] {
        let properties = ProjectionInfo.of(self, root: Root.self).properties
        return keyPaths.flatMap { keyPath -> [String] in
            guard let traceable = self as? any TraceableProjection, let path = traceable.tracedPath(keyPath) else {
                misuse("The key path does not name a projected property of '\(Self.self)'")
            }
            return properties.first { $0.name == path }?.paths ?? [path]
        }
    }

    private func register(_ session: Session, _ keyPaths: [String]?, _ block: @escaping (ObjectChange<Self>) -> Void)
        -> Observation
    {
        let info = ProjectionInfo.of(self, root: Root.self)
        var paths = info.properties.flatMap(\.paths)
        if let keyPaths, !keyPaths.isEmpty {
            paths = keyPaths.flatMap { name in info.properties.first { $0.name == name }?.paths ?? [name] }
        }
        let table = rootObject.managedType?.tableKey
        let resolved = session.observedKeyPaths(paths, of: table) ?? []
        let texts = Dictionary(zip(resolved, paths), uniquingKeysWith: { first, _ in first })
        return rootObject.observeProperties(session, paths) { [self] _, change in
            if change.wasDeleted { return block(.deleted) }
            let changed = Set(change.paths.compactMap { texts[$0] })
            let properties = info.properties.filter { !changed.isDisjoint(with: $0.paths) }.map { property in
                var old: Any?
                if property.paths.count == 1, let path = change.paths.first(where: { texts[$0] == property.paths[0] }),
                    path.steps.count == 1,
                    let value = change.oldValues[path.steps[0].column]
                {
                    old = _Stored(value, in: session).dynamicValue
                }
                let new = property.value(of: rootObject)
                let isCollection = new is any KeyValueCollection || new is any AnyMap || new is any AnyProjectedCollection
                return PropertyChange(name: property.name, oldValue: isCollection ? nil : old, newValue: isCollection ? nil : new)
            }
            if !properties.isEmpty { block(.change(self, properties)) }
        }
    }
}

/// Projections of any root, for tracing.
private protocol TraceableProjection {
    func tracedPath(_ keyPath: AnyKeyPath) -> String?
}

extension Projection: TraceableProjection {
    fileprivate func tracedPath(_ keyPath: AnyKeyPath) -> String? {
        guard let root = Tracing.scratch(Root.self) as? Root else { return nil }
        let paths = Tracing.trace(keyPath, of: type(of: self).init(projecting: root), root: Root.self).paths
        return paths.count == 1 ? paths[0] : nil
    }
}
