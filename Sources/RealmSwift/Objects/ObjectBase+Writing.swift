internal import CShims
internal import SharedStore

// How a managed object is changed. Usually its cluster leaf lies in the arena already and one leaf of a column changes in place;
// then nothing else moves, and no accessor need look for its row again.

extension ObjectBase {
    /// The class and the column, ready to be written to by way of this object.
    @inline(__always)
    fileprivate final func writing(_ slot: Int) -> (type: SessionType, column: Column) {
        guard let session, let block, let type = managedType else { misuse("Object is not managed") }
        session.requireWriteTransaction()
        let (_, column) = place(slot)
        if slot == block.pointee.primaryKeySlot { misuse("Primary key can't be changed after an object is inserted.") }
        return (type, column)
    }

    /// What the quick ways of writing need: a transaction in which the table was changed before, the row at hand, a column of the
    /// kind that is expected. Nil where something else has to be done first.
    @inline(__always)
    fileprivate final func quickPlace(_ slot: Int, _ kind: CellKind) -> (
        block: UnsafeMutablePointer<TableBlock>, editor: Unmanaged<TableEditor>, cluster: Int
    )? {
        guard let block, !block.pointee.needsCheck(stamp), let editor = block.pointee.editor, block.pointee.kinds[slot] == kind,
            slot != block.pointee.primaryKeySlot, let cluster
        else { return nil }
        return (block, editor, cluster.ref)
    }

    @inline(__always)
    fileprivate final func setQuickly(_ slot: Int, _ kind: CellKind, _ value: Int64) -> Bool {
        guard let (block, editor, cluster) = quickPlace(slot, kind) else { return false }
        let isDone = editor._withUnsafeGuaranteedRef {
            $0.setIntInPlace(slot &- 1, cluster: cluster, row: rowIndex, of: ObjectKey(objectKey), to: value)
        }
        if isDone { block.pointee.type._withUnsafeGuaranteedRef { $0.session.contentChanged() } }
        return isDone
    }

    /// Assigns a value that is no object and no collection to a column of such values.
    fileprivate final func setPlain(_ slot: Int, _ column: Column, _ type: SessionType, _ value: Mixed) {
        type.session.checkSize(value)
        let editor = type.editor(), key = ObjectKey(objectKey)
        do {
            // A row whose cluster is in the arena stays where it is, so other accessors need not look again.
            guard let cluster = cluster?.ref, editor.isInArena(cluster) else {
                try editor.set(column, of: key, to: value)
                type.bump()
                return type.session.contentChanged()
            }
            if try !editor.setInPlace(column, cluster: cluster, row: rowIndex, of: key, to: value) {
                try editor.set(column, of: key, to: value)
            }
            type.session.contentChanged()
        } catch let error as TableError {
            misuse(error.description)
        } catch {
            unreadable(error)
        }
    }

    final func setManagedValue(_ property: ManagedProperty, _ value: Any?) {
        if property.slot >= ManagedProperty.computedSlots {
            misuse("Cannot set the linking objects '\(schemaName).\(property.name)'")
        }
        guard let session, let type = managedType else { misuse("Object is not managed") }
        session.requireWriteTransaction()
        if property.property.isPrimaryKey && !session.isMigrating {
            misuse("Primary key can't be changed after an object is inserted.")
        }
        let target = _WriteTarget(type, ObjectKey(objectKey), property, .error)
        if !DynamicInput.write(value, to: target, nested: .error) {
            let message = ValueInput.message(
                value, DynamicInput.shape(of: property.property, session), "\(schemaName).\(property.name)")
            // A migration that gives a value which does not fit fails as a whole; the file stays as it was.
            if session.isMigrating { return session.migrationFailures.append(message) }
            misuse(message)
        }
    }
}

@inline(never)
public func _writeCell(_ object: ObjectBase, _ slot: Int, _ value: _Stored) {
    let (type, column) = object.writing(slot)
    if column.collection == nil, column.type != .link, column.type != .mixed, let plain = value.plain {
        return object.setPlain(slot, column, type, plain)
    }
    type.session.write(value, to: column, of: ObjectKey(object.objectKey), in: type, .error)
}

@inline(never)
public func _setInt(_ object: ObjectBase, _ slot: Int, _ value: Int) {
    if !object.setQuickly(slot, .int, Int64(value)) { _writeCell(object, slot, _Stored(.int(Int64(value)))) }
}

@inline(never)
public func _setBool(_ object: ObjectBase, _ slot: Int, _ value: Bool) {
    if !object.setQuickly(slot, .bool, value ? 1 : 0) { _writeCell(object, slot, _Stored(.bool(value))) }
}

@inline(never)
public func _setString(_ object: ObjectBase, _ slot: Int, _ value: String) {
    if let (block, editor, cluster) = object.quickPlace(slot, .string), value.utf8.count <= Session.stringByteCountMax {
        var value = value
        let isDone = value.withUTF8 { bytes in
            // An empty string is another thing than none.
            let bytes =
                bytes.baseAddress == nil
                ? UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) : UnsafeRawBufferPointer(bytes)
            return editor._withUnsafeGuaranteedRef { editor in
                reading {
                    try editor.setStringInPlace(
                        slot &- 1, cluster: cluster, row: object.rowIndex, of: ObjectKey(object.objectKey), to: bytes)
                }
            }
        }
        if isDone { return block.pointee.type._withUnsafeGuaranteedRef { $0.session.contentChanged() } }
    }
    _writeCell(object, slot, _Stored(.string(value)))
}
