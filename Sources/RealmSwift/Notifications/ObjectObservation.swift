import Dispatch
import Foundation
internal import SharedStore

/// One property of an object that has changed.
@frozen public struct PropertyChange {
    /// The name of the property in Swift.
    public let name: String
    /// The value before, where the change was made elsewhere; nil for a change of this Realm and for collections. An object that
    /// was linked to shows what it is now, and may be invalidated.
    public let oldValue: Any?
    /// The value now; nil for collections.
    public let newValue: Any?

    init(name: String, oldValue: Any?, newValue: Any?) {
        self.name = name
        self.oldValue = oldValue
        self.newValue = newValue
    }
}

/// What happened to an object between two calls of an observer.
@frozen public enum ObjectChange<T> {
    /// The object cannot be observed; no call follows.
    case error(_ error: NSError)
    case change(_: T, _: [PropertyChange])
    /// The object was deleted; no call follows.
    case deleted
}

extension ObjectBase {
    /// Observes as an object of `T`, which the caller knows it to be.
    final func observeObject<T: ObjectBase>(
        _ keyPaths: [String]?, _ queue: DispatchQueue?, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            ConfinedObject(self), on: queue, unavailable: { block(ObjectChange(unavailable: $0)) },
            register: { $0.object.register($1, keyPaths, block) })
    }

    /// The same for an actor.
    final func observationRequest<A: Actor, T: ObjectBase>(
        _ keyPaths: [String]?, _ actor: A, _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) -> PlacedObservation.Request {
        PlacedObservation.request(
            ConfinedObject(self), unavailable: { PlacedObservation.call(block, actor, ObjectChange(unavailable: $0)) },
            register: { object, session in object.object.register(session, keyPaths) { PlacedObservation.call(block, actor, $0) }
            })
    }

    private final func register<T: ObjectBase>(
        _ session: Session, _ keyPaths: [String]?, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> Observation {
        observeProperties(session, keyPaths) { object, change in
            guard let object = object as? T ?? object.sameObject(as: T.self) as? T else {
                misuse("The object of class '\(object.schemaName)' was observed as one of class '\(T.self)'.")
            }
            if change.wasDeleted { return block(.deleted) }
            block(.change(object, object.propertyChanges(change)))
        }
    }

    /// - Parameter body: called with what happened, never with nothing.
    final func observeProperties(
        _ session: Session, _ keyPaths: [String]?, _ body: @escaping (ObjectBase, ObservedChange.ObjectChange) -> Void
    ) -> Observation {
        guard let type = managedType, isPlaced else {
            misuse("Only objects which are managed by a Realm support change notifications.")
        }
        let paths = session.observedKeyPaths(keyPaths, of: type.tableKey)
        return SessionObservation.of(session).observe(.object(type.tableKey, ObjectKey(objectKey)), paths) { change in
            guard case .object(let content) = change.content, !content.isEmpty else { return }
            body(self, content)
        }
    }

    /// The changed properties in the order of their declaration.
    private final func propertyChanges(_ change: ObservedChange.ObjectChange) -> [PropertyChange] {
        guard let type = managedType, let session else { return [] }
        return type.properties.compactMap { property in
            let isComputed = property.slot >= ManagedProperty.computedSlots
            let step = ObservedKeyPath.Step(
                table: type.tableKey, column: property.columnKey, origin: isComputed ? property.originTable : nil)
            guard change.properties.contains(step) else { return nil }
            if isComputed || property.isCollection { return PropertyChange(name: property.name, oldValue: nil, newValue: nil) }
            let old = change.oldValues[property.columnKey].flatMap { value -> Any? in
                if case .link(let table, let key) = value { return session.object(table, key, as: ObjectBase.self) }
                return _Stored(value, in: session).dynamicValue
            }
            return PropertyChange(name: property.name, oldValue: old, newValue: managedValue(property))
        }
    }
}

/// An object of any class, as something that belongs to a place.
private struct ConfinedObject: ThreadConfined {
    let object: ObjectBase
    init(_ object: ObjectBase) { self.object = object }

    var realm: Realm? { object.isPlaced ? object.session.map { Realm($0) } : nil }
    var isInvalidated: Bool { object.isInvalidated }
    var isFrozen: Bool { object.session?.isFrozen ?? false }
    func freeze() -> ConfinedObject { ConfinedObject(object.frozenObject()) }
    func thaw() -> ConfinedObject? { object.thawedObject().map { ConfinedObject($0) } }
}

extension ObjectChange {
    init(unavailable error: (any Error)?) { self = error.map { .error($0 as NSError) } ?? .deleted }
}

// MARK: The public forms

extension Object {
    /// Calls `block` after every change of the object's properties, and once when it is deleted.
    ///
    /// Every assignment counts, also of an equal value; what happens to objects that it links to counts only where a key path
    /// leads there. Calls come at the caller's place, which must have a run loop or be a queue or an actor, or on `queue`.
    ///
    /// - Parameters:
    ///   - keyPaths: names of properties, with dots through links. Empty: only the deletion.
    ///   - queue: a serial queue.
    /// - Returns: a token that must be kept as long as the block is to be called.
    public func observe<T: ObjectBase>(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observeObject(keyPaths, queue, block)
    }

    /// As `observe(keyPaths:on:_:)` with names.
    public func observe<T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observeObject(keyPaths.map { _name(for: $0) }, queue, block)
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor, T: Object>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let request = observationRequest(keyPaths, actor, block)
        return await PlacedObservation.begin(request, on: actor)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor, T: Object>(
        keyPaths: [PartialKeyPath<T>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let request = observationRequest(keyPaths.map { _name(for: $0) }, actor, block)
        return await PlacedObservation.begin(request, on: actor)
    }
}

extension EmbeddedObject {
    /// See `Object.observe(keyPaths:on:_:)`.
    public func observe<T: ObjectBase>(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observeObject(keyPaths, queue, block)
    }

    /// As `observe(keyPaths:on:_:)` with names.
    public func observe<T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observeObject(keyPaths.map { _name(for: $0) }, queue, block)
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let request = observationRequest(keyPaths, actor, block)
        return await PlacedObservation.begin(request, on: actor)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let request = observationRequest(keyPaths.map { _name(for: $0) }, actor, block)
        return await PlacedObservation.begin(request, on: actor)
    }
}
