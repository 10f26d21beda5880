internal import CShims
internal import SharedStore

// New objects from unmanaged ones: the values go straight to the columns, by a list that is made once a class.

/// How an unmanaged object of a class gets into its row.
final class AddingPlan {
    /// A property whose value needs nothing else in the file.
    struct Cell {
        let type: any _Persistable.Type
        let offset: Int
        let slot: Int
    }
    let cells: [Cell]
    let primaryKey: Cell?
    /// Links, collections and values of any type, which may bring other objects along.
    let others: [(property: ManagedProperty, declared: PropertyInfo)]

    /// Nil where a property is of another form.
    init?(_ type: SessionType) {
        guard let info = type.info, !info.hasLegacyProperties, !type.session.isMigrating else { return nil }
        var cells: [Cell] = []
        var primaryKey: Cell?
        var others: [(ManagedProperty, PropertyInfo)] = []
        for property in type.properties where property.property.index >= 0 {
            let declared = info.properties[property.property.index]
            guard let valueType = declared.wrapper.valueType else { return nil }
            let isPlain =
                !property.isCollection && property.slot < ManagedProperty.computedSlots && property.property.type != .object
                && property.property.type != .any
            let cell = Cell(type: valueType, offset: declared.offset, slot: property.slot)
            if property.property.isPrimaryKey {
                primaryKey = cell
            } else if isPlain {
                cells.append(cell)
            } else {
                others.append((property, declared))
            }
        }
        self.cells = cells
        self.primaryKey = primaryKey
        self.others = others
    }
}

/// A row that was made a moment ago: what equals the content of a fresh row is there already.
public struct _NewRow {
    let block: UnsafeMutablePointer<TableBlock>
    let editor: Unmanaged<TableEditor>
    let key: ObjectKey
    let cluster: Int
    let row: Int

    @inline(__always)
    func set(int value: Int64, _ slot: Int) {
        if value == 0 && block.pointee.kinds[slot] == .int { return }
        if block.pointee.kinds[slot] == .int,
            editor._withUnsafeGuaranteedRef({ $0.setIntInPlace(slot &- 1, cluster: cluster, row: row, of: key, to: value) })
        {
            return
        }
        set(_Stored(.int(value)), slot)
    }

    @inline(__always)
    func set(bool value: Bool, _ slot: Int) {
        if block.pointee.kinds[slot] == .bool {
            if !value
                || editor._withUnsafeGuaranteedRef({ $0.setIntInPlace(slot &- 1, cluster: cluster, row: row, of: key, to: 1) })
            {
                return
            }
        }
        set(_Stored(.bool(value)), slot)
    }

    @inline(__always)
    func set(string value: String, _ slot: Int) {
        if block.pointee.kinds[slot] == .string {
            if value.isEmpty { return }
            if value.utf8.count <= Session.stringByteCountMax {
                var value = value
                let isDone = value.withUTF8 { bytes in
                    editor._withUnsafeGuaranteedRef { editor in
                        reading {
                            try editor.setStringInPlace(
                                slot &- 1, cluster: cluster, row: row, of: key, to: UnsafeRawBufferPointer(bytes))
                        }
                    }
                }
                if isDone { return }
            }
        }
        set(_Stored(.string(value)), slot)
    }

    @inline(never)
    func set(_ value: _Stored, _ slot: Int) {
        let type = block.pointee.type._withUnsafeGuaranteedRef { $0 }
        guard let value = value.plain, type.table() != nil, slot < block.pointee.columnCount,
            let column = block.pointee.columns[slot]
        else {
            misuse(
                "The property '\(type.name).\(type.properties.first { $0.slot == slot }?.name ?? "#\(slot)")' does not exist in the Realm file."
            )
        }
        if _WriteTarget.isFresh(value, column) { return }
        type.session.checkSize(value)
        editor._withUnsafeGuaranteedRef { editor in
            do {
                if try editor.setInPlace(column, cluster: cluster, row: row, of: key, to: value) { return }
                try editor.set(column, of: key, to: value)
            } catch let error as TableError {
                misuse(error.description)
            } catch {
                unreadable(error)
            }
        }
    }
}

extension Session {
    /// The class of a model; stops the process where the schema does not have it.
    @inline(__always)
    func type(of model: ObjectBase.Type) -> SessionType {
        if let recentType, recentType.makes(model) { return recentType }
        let type = requireType(model)
        // A frozen session is used by any threads at once: nothing is noted in it.
        if !isFrozen { recentType = type }
        return type
    }

    /// Makes an unmanaged object of exactly the class `type` one of the file by its plan. Nil where an object has its primary key
    /// already, which is then in `existing`.
    func addNew(
        _ object: ObjectBase, _ type: SessionType, _ plan: AddingPlan, _ policy: Realm.UpdatePolicy, existing: inout ObjectKey
    ) -> ObjectKey? {
        let editor = type.editor()
        writeDownCursors()
        _ = type.table()
        let address = Unmanaged.passUnretained(object).toOpaque()
        let row: _NewRow
        do {
            let key: ObjectKey
            if let primaryKey = plan.primaryKey {
                let value = primaryKey.type._peek(address + primaryKey.offset).plain ?? .null
                checkSize(value)
                let result = try editor.createObject(primaryKey: value)
                if !result.wasCreated {
                    existing = result.key
                    return nil
                }
                key = result.key
            } else {
                key = try editor.createObject()
            }
            let (cluster, index) = try editor.writablePlace(key)
            row = _NewRow(block: type.block, editor: Unmanaged.passUnretained(editor), key: key, cluster: cluster, row: index)
        } catch let error as TableError {
            misuse(error.description)
        } catch {
            unreadable(error)
        }
        for cell in plan.cells { cell.type._move(address + cell.offset, to: row, cell.slot) }
        if let primaryKey = plan.primaryKey { primaryKey.type._move(address + primaryKey.offset, to: nil, primaryKey.slot) }
        if editor.revivesObjects { bumpAll() } else { type.bump() }
        contentChanged()
        if plan.others.isEmpty {
            type.place(object, row.key)
            noteCreated(object)
        } else {
            complete(PendingObject(type, row.key, policy, isNew: true, .planned(object, plan)))
        }
        return row.key
    }

    /// Writes what may bring other objects along, and makes the object the accessor of its row.
    func writeOthers(_ object: ObjectBase, _ plan: AddingPlan, _ pending: PendingObject) {
        for (property, declared) in plan.others where property.slot < ManagedProperty.computedSlots {
            let target = _WriteTarget(pending.type, pending.key, property, pending.policy, isNew: true)
            declared.wrapper.write(at: object.address(declared.offset), to: target)
        }
        pending.type.place(object, pending.key)
        for (property, declared) in plan.others {
            declared.wrapper.manage(at: object.address(declared.offset), of: object, slot: UInt16(property.slot))
        }
        noteCreated(object)
    }

    /// Remembers an object that this transaction made, to be invalidated where it is undone. Once nobody refers to one any more
    /// it need not be remembered, so that a loop which makes many objects does not keep them all.
    func noteCreated(_ object: ObjectBase) {
        let last = createdAccessors.count &- 1
        let isLastForgotten =
            last >= 0 && ModelRuntime.soleReferenceWord != 0
            && createdAccessors.withUnsafeBytes { bytes in
                // Without a reference of our own, which would be counted.
                bytes.load(fromByteOffset: last &* MemoryLayout<ObjectBase>.stride, as: UnsafeRawPointer?.self)
                    .map { realm_count_word($0) == ModelRuntime.soleReferenceWord } ?? false
            }
        if isLastForgotten { createdAccessors[last] = object } else { createdAccessors.append(object) }
    }
}
