internal import CShims
import Foundation
internal import SharedStore

// How a managed object finds its row and reads it.

extension ObjectBase {
    /// The class in the session; nil for an unmanaged object.
    final var managedType: SessionType? { block?.pointee.type._withUnsafeGuaranteedRef { $0 } }

    /// Makes `cluster` and `rowIndex` hold. Traps off the session's thread and where the object is gone.
    @inline(__always)
    final func ready(_ block: UnsafeMutablePointer<TableBlock>) {
        if block.pointee.needsCheck(stamp) { locate(block) }
    }

    @inline(never)
    private final func locate(_ block: UnsafeMutablePointer<TableBlock>) {
        session?.checkConfinement()
        if stamp == block.pointee.stamp && stamp != 0 { return }
        if block.pointee.isDead || !find(block) { refuseGone(self) }
    }

    private final func find(_ block: UnsafeMutablePointer<TableBlock>) -> Bool {
        guard let table = block.pointee.type._withUnsafeGuaranteedRef({ $0 }).table(),
            let row = reading({ try table.find(ObjectKey(objectKey)) })
        else { return false }
        cluster = row.cluster
        rowIndex = row.index
        stamp = block.pointee.stamp
        return true
    }

    /// Frozen objects are found once; one that is not there stays invalid.
    final func locateFrozen() {
        if let block, !find(block) { objectKey = -1 }
    }

    /// True for a managed object that is there.
    final var isPlaced: Bool {
        guard let block, let session, !block.pointee.isDead, !session.isClosed else { return false }
        if session.isFrozen { return objectKey >= 0 }
        return stamp == block.pointee.stamp || find(block)
    }

    /// The row, after `ready`.
    @inline(__always)
    final func row(_ memory: Memory) -> ObjectRow? {
        guard let cluster else { return nil }
        return ObjectRow(memory: memory, cluster: cluster, index: rowIndex, key: ObjectKey(objectKey))
    }

    /// The row and the column in `slot`, for reading.
    @inline(__always)
    final func place(_ slot: Int) -> (row: ObjectRow, column: Column) {
        guard let block else { misuse("Object is not managed") }
        ready(block)
        guard let cluster, let table = block.pointee.type._withUnsafeGuaranteedRef({ $0 }).table(),
            slot < block.pointee.columnCount,
            let column = block.pointee.columns[slot]
        else { missingColumn(slot) }
        return (ObjectRow(memory: table.memory, cluster: cluster, index: rowIndex, key: ObjectKey(objectKey)), column)
    }

    @inline(never)
    private final func missingColumn(_ slot: Int) -> Never {
        let name = managedType?.properties.first { $0.slot == slot }?.name ?? "#\(slot)"
        misuse("The property '\(schemaName).\(name)' does not exist in the Realm file.")
    }

    // MARK: Identity

    /// Equality is that of the row: see `==`.
    final var comparesByPlace: Bool { session?.isFrozen == true || managedType?.primaryKey != nil }

    final func isSamePlace(as other: ObjectBase) -> Bool {
        session === other.session && objectKey == other.objectKey && objectKey >= 0
            && managedType?.tableKey == other.managedType?.tableKey
    }

    /// An accessor of another class for the same object.
    final func sameObject(as type: ObjectBase.Type) -> ObjectBase? {
        guard let session, let managedType else { return nil }
        return session.object(managedType.tableKey, ObjectKey(objectKey), as: type)
    }

    // MARK: Collections

    /// The collection of a slot: always the same one, so that `object.list === object.list`.
    final func collection<C: AnyObject>(_ slot: Int, _ make: (CollectionHandle) -> C) -> C {
        if let collections {
            for entry in collections where entry.slot == slot {
                if let collection = entry.collection as? C { return collection }
            }
        }
        let collection = make(collectionHandle(slot))
        if session?.isFrozen == false { remember(collection, slot) }
        return collection
    }

    final func remember(_ collection: AnyObject, _ slot: Int) {
        collections = (collections ?? []).filter { $0.slot != slot } + [(slot, collection)]
    }

    final func collectionHandle(_ slot: Int) -> CollectionHandle {
        let (_, column) = place(slot)
        guard let type = managedType, let kind = column.collection else {
            misuse("The property does not hold a collection in the file")
        }
        return CollectionHandle(
            type, TableEditor.Identity(table: type.tableKey, object: ObjectKey(objectKey), column: column.key), kind)
    }

    // MARK: By name

    final func managedValue(_ property: ManagedProperty) -> Any? {
        if property.slot >= ManagedProperty.computedSlots {
            return declaredCollection(property) ?? linkingObjects(property, DynamicObject.self)
        }
        if property.isCollection {
            return declaredCollection(property) ?? DynamicCollections.make(property.property, collectionHandle(property.slot))
        }
        let stored = _readCell(self, property.slot)
        // What a dynamic object links to is dynamic too: its reader knows no classes.
        if self is DynamicObject, case .plain(.link) = stored.content { return stored.object(as: DynamicObject.self) }
        return stored.dynamicValue
    }

    /// A collection in the type of the declared property; nil where only the schema is known.
    private final func declaredCollection(_ property: ManagedProperty) -> Any? {
        guard let info = managedType?.info, property.property.index >= 0, type(of: self) == info.type else { return nil }
        return info.properties[property.property.index].wrapper.collection(of: self, slot: property.slot)
    }
}

/// The value of a column cell.
@inline(never)
public func _readCell(_ object: ObjectBase, _ slot: Int) -> _Stored {
    let (row, column) = object.place(slot)
    return reading {
        let value = try row.value(column)
        guard let session = object.session else { return _Stored(value) }
        if value == .list || value == .dictionary, let type = object.managedType {
            return try CollectionHandle.inMixed(value, row, column, type) ?? .null
        }
        return _Stored(value, in: session)
    }
}
