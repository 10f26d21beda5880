internal import SharedStore

// How a managed object is changed.

extension ObjectBase {
    /// The session, ready to be written to by way of this object.
    @inline(__always)
    final func writing(_ slot: Int) -> (session: Session, type: SessionType, column: Column) {
        guard let session, let type = managedType else { misuse("Object is not managed") }
        session.requireWriteTransaction()
        let (_, column) = place(slot)
        return (session, type, column)
    }

    final func setManagedValue(_ property: ManagedProperty, _ value: Any?) {
        if property.slot >= ManagedProperty.computedSlots { misuse("Cannot set the linking objects '\(schemaName).\(property.name)'") }
        guard let session, let type = managedType else { misuse("Object is not managed") }
        session.requireWriteTransaction()
        if property.property.isPrimaryKey && !session.isMigrating { misuse("Primary key can't be changed after an object is inserted.") }
        let target = _WriteTarget(type, ObjectKey(objectKey), property, .error)
        if !DynamicInput.write(value, to: target, nested: .error) {
            let message = ValueInput.message(value, DynamicInput.shape(of: property.property, session), "\(schemaName).\(property.name)")
            // A migration that gives a value which does not fit fails as a whole; the file stays as it was.
            if session.isMigrating { return session.migrationFailures.append(message) }
            misuse(message)
        }
    }
}

@inline(never)
public func _writeCell(_ object: ObjectBase, _ slot: Int, _ value: _Stored) {
    let (session, type, column) = object.writing(slot)
    if type.primaryKey?.slot == slot { misuse("Primary key can't be changed after an object is inserted.") }
    session.write(value, to: column, of: ObjectKey(object.objectKey), in: type, .error)
}

@inline(never)
public func _setInt(_ object: ObjectBase, _ slot: Int, _ value: Int) {
    let (session, type, column) = object.writing(slot)
    if type.primaryKey?.slot == slot { misuse("Primary key can't be changed after an object is inserted.") }
    // A row whose cluster is in the arena stays where it is, so other accessors need not look again.
    let stays = object.cluster.map { session.isInArena($0.ref) } ?? false
    do {
        try session.writer?.editor.editor(type.tableKey).setInt(column, of: ObjectKey(object.objectKey), to: Int64(value))
    } catch {
        unreadable(error)
    }
    session.contentChanged()
    if !stays { type.bump() }
}

extension Session {
    func isInArena(_ ref: Int) -> Bool { writer?.editor.arena.memory.isInArena(ref) ?? false }
}
