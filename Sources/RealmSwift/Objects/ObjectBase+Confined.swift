internal import SharedStore

extension ObjectBase {
    final var realmOfSession: Realm? { isInvalidated ? nil : session.map { Realm($0) } }

    /// The class in the schema: of the Realm for a managed object, else as the class declares it.
    final var schemaOfClass: ObjectSchema {
        if let session, let schema = session.schema[schemaName] { return schema }
        if let managedType, managedType.info == nil {
            return ObjectSchema(
                className: managedType.name, objectClass: DynamicObject.self, isEmbedded: managedType.isEmbedded,
                properties: managedType.properties.map(\.property), primaryKey: managedType.primaryKey?.name)
        }
        return ObjectSchema(ClassInfo.of(Swift.type(of: shownObject)))
    }

    final var isInFrozenSession: Bool { session?.isFrozen ?? false }

    /// The same object of the same file, whatever thread or version it is seen from; for unmanaged objects the same instance.
    final func isSame(_ other: ObjectBase?) -> Bool {
        guard let other else { return false }
        if shownObject === other.shownObject { return true }
        guard let session, let otherSession = other.session, let managedType, let otherType = other.managedType else {
            return false
        }
        return session.origin === otherSession.origin && objectKey == other.objectKey
            && managedType.tableKey == otherType.tableKey && objectKey >= 0
    }

    final func frozenObject() -> ObjectBase {
        guard let session, let managedType else { misuse("Unmanaged objects cannot be frozen") }
        if session.isFrozen { return self }
        session.checkConfinement()
        if isInvalidated { refuseGone(self) }
        if session.writer == nil { return moved(to: session.frozen(), managedType) }
        // Within a write transaction: as the object was committed last.
        let frozen = Session.$freezesCommittedState.withValue(true) { session.frozen() }
        let object = moved(to: frozen, managedType)
        if object.isInvalidated { misuse("Cannot freeze an object in the same write transaction as it was created in.") }
        return object
    }

    final func thawedObject() -> ObjectBase? {
        guard let session, let managedType else { misuse("Unmanaged objects cannot be thawed") }
        if !session.isFrozen { return self }
        let thawed = moved(to: session.thawed(), managedType)
        return thawed.isInvalidated ? nil : thawed
    }

    private final func moved(to session: Session, _ type: SessionType) -> ObjectBase {
        guard let object = session.object(type.tableKey, ObjectKey(objectKey), as: Swift.type(of: self)) else {
            refuseGone(self)
        }
        // Where another place has opened the file with other classes, it may know no such class, or another one of that name.
        if !object.isInstance(of: Swift.type(of: self)) {
            misuse(
                "Object type '\(type.name)' is not managed by the Realm that is open here. Add '\(type.name)' to the 'objectTypes' of its configuration."
            )
        }
        return object
    }
}

extension Object: ThreadConfined {
    /// Nil for an unmanaged or invalidated object.
    public var realm: Realm? { realmOfSession }
    /// The class and its properties; of an object of a file as this Realm has them. For every thread.
    public var objectSchema: ObjectSchema { schemaOfClass }
    /// Always false for an unmanaged object.
    public var isFrozen: Bool { isInFrozenSession }

    /// The object as it is now, for every thread. An unmanaged object stops the process.
    public func freeze() -> Self { unsafeDowncast(frozenObject(), to: Self.self) }
    /// The live object; nil where it was deleted meanwhile.
    public func thaw() -> Self? { thawedObject().map { unsafeDowncast($0, to: Self.self) } }

    /// True for the same object of the same file, in whatever version and on whatever thread.
    public func isSameObject(as object: Object?) -> Bool { isSame(object) }
}

extension EmbeddedObject: ThreadConfined {
    /// Nil for an unmanaged or invalidated object.
    public var realm: Realm? { realmOfSession }
    /// The class and its properties; of an object of a file as this Realm has them. For every thread.
    public var objectSchema: ObjectSchema { schemaOfClass }
    /// Always false for an unmanaged object.
    public var isFrozen: Bool { isInFrozenSession }
    /// The object as it is now, for every thread. An unmanaged object stops the process.
    public func freeze() -> Self { unsafeDowncast(frozenObject(), to: Self.self) }
    /// The live object; nil where it was deleted meanwhile.
    public func thaw() -> Self? { thawedObject().map { unsafeDowncast($0, to: Self.self) } }
    /// Whether both are the same object of the same file; of unmanaged ones whether they are the same instance.
    public func isSameObject(as object: EmbeddedObject?) -> Bool { isSame(object) }
}
