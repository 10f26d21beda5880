internal import SharedStore

// Objects and values on their way into the file.

extension Session {
    // MARK: Values

    /// A value of which everything that is needed for a link is in the file.
    struct Prepared {
        var mixed: Mixed
        /// A list or dictionary whose elements are to be put into the empty one that `mixed` makes.
        var collection: _Stored.Content?
    }

    /// Adds the object that a value is, where it is in no file yet.
    func prepare(_ value: _Stored, _ policy: Realm.UpdatePolicy) -> Prepared {
        switch value.content {
        case .plain(.link(let table, let key)):
            if let session = value.session, session !== self {
                misuse("Object is already managed by another Realm. Use create instead to copy it into this Realm.")
            }
            return Prepared(mixed: .link(table, key))
        case .plain(let mixed):
            checkSize(mixed)
            return Prepared(mixed: mixed)
        case .object(let object):
            let (type, key) = ensureManaged(object, policy)
            return Prepared(mixed: .link(type.tableKey, key))
        case .input(let input): misuse("Invalid value '\(input)' of type '\(Swift.type(of: input))' for a link")
        case .list: return Prepared(mixed: .list, collection: value.detached.content)
        case .dictionary: return Prepared(mixed: .dictionary, collection: value.detached.content)
        }
    }

    /// The largest text and the largest data that a node can hold (file-format-1 section 2).
    static let stringByteCountMax = 0xFF_FFF8 - 9, dataByteCountMax = 0xFF_FFF8 - 8

    func checkSize(_ value: Mixed) {
        switch value {
        case .string(let text) where text.utf8.count > Session.stringByteCountMax:
            misuse("String too big: \(text.utf8.count) bytes, \(Session.stringByteCountMax) are possible")
        case .binary(let data) where data.count > Session.dataByteCountMax:
            misuse("Binary too big: \(data.count) bytes, \(Session.dataByteCountMax) are possible")
        default: break
        }
    }

    /// Links go to objects of one class; an object of a subclass is one of another class.
    func checkTarget(_ prepared: Prepared, _ column: Column?) {
        guard let column, column.type == .link, case .link(let table, _) = prepared.mixed, table != column.oppositeTable else {
            return
        }
        let wanted = type(column.oppositeTable)?.name ?? "", given = type(table)?.name ?? ""
        misuse(
            "Object of type '\(given)' does not match the type '\(wanted)' of the property. Objects of a subclass are no objects of its base in a Realm."
        )
    }

    /// Puts the elements of a collection into the new, empty one that `place` is.
    func fill(_ place: _Stored, with content: _Stored.Content) {
        switch (place.content, content) {
        case (.list(let list), .list(let source)):
            for (index, value) in source.map({ $0._toStored() }).enumerated() { list.handle?.insert(value, at: index) }
        case (.dictionary(let map), .dictionary(let source)):
            for (key, value) in source.pairs() { map.handle?.set(value._toStored(), forKey: key) }
        default: break
        }
    }

    /// Runs a change of a table and tells all accessors that rows may have moved.
    func edit(_ table: TableKey, _ body: (TableEditor) throws -> Void) {
        guard let writer else { misuse("Cannot modify managed objects outside of a write transaction.") }
        writeDownCursors()
        do {
            try body(writer.editor.editor(table))
        } catch let error as TableError {
            misuse(error.description)
        } catch {
            unreadable(error)
        }
        bumpAll()
    }

    /// Assigns to a property that is no collection.
    func write(_ value: _Stored, to column: Column, of key: ObjectKey, in type: SessionType, _ policy: Realm.UpdatePolicy) {
        if column.type == .link, let target = self.type(column.oppositeTable), target.isEmbedded {
            return writeEmbedded(value, to: column, of: key, in: type, target, policy)
        }
        let prepared = prepare(value, policy)
        checkTarget(prepared, column)
        if policy == .modified, prepared.collection == nil, isStored(prepared.mixed, column, key, type) { return }
        if prepared.collection != nil {
            // An existing collection would be kept with its content; another value ends it.
            edit(type.tableKey) { try $0.set(column, of: key, to: .null) }
        }
        edit(type.tableKey) { try $0.set(column, of: key, to: prepared.mixed) }
        if let collection = prepared.collection { fill(nestedCollection(column, key, type), with: collection) }
    }

    private func nestedCollection(_ column: Column, _ key: ObjectKey, _ type: SessionType) -> _Stored {
        reading {
            guard let row = try type.table()?.find(key) else { return .null }
            return try CollectionHandle.inMixed(row.mixed(column), row, column, type) ?? .null
        }
    }

    private func isStored(_ value: Mixed, _ column: Column, _ key: ObjectKey, _ type: SessionType) -> Bool {
        reading { try type.table()?.find(key)?.value(column) == value }
    }

    // MARK: Embedded objects

    /// What a new embedded object is made from.
    enum EmbeddedSource {
        /// Becomes the accessor of the new object.
        case object(ObjectBase)
        case input(Any)
    }

    /// Nil for null.
    func newEmbedded(_ value: _Stored, _ type: SessionType) -> EmbeddedSource? {
        if value.isNull { return nil }
        if case .input(let input) = value.content { return .input(input) }
        guard let object = value.object(as: type.info?.type ?? DynamicObject.self) else {
            misuse("An embedded object of the class '\(type.name)' is expected")
        }
        if object.schemaName != type.name {
            misuse("An embedded object of the class '\(type.name)' is expected, not of '\(object.schemaName)'")
        }
        if object.block != nil || adding[ObjectIdentifier(object)] != nil {
            misuse("Can't set link to existing managed embedded object: objects of the class '\(type.name)' have one owner.")
        }
        return .object(object)
    }

    /// What a new embedded object is to be made from, as it is now: it may be the object whose place that takes.
    func independent(_ value: _Stored, _ type: SessionType) -> _Stored {
        guard case .input(let input) = value.content, let object = ValueInput.object(input), object.session === self,
            let model = type.info?.type
        else { return value }
        let copy = ModelRuntime.make(model)
        ValueInput.populate(copy, with: object)
        return _Stored(.object(copy))
    }

    func fill(_ source: EmbeddedSource, _ type: SessionType, _ key: ObjectKey, _ policy: Realm.UpdatePolicy, isNew: Bool = true) {
        switch source {
        case .object(let object): fill(object, type, key, policy, isNew: isNew)
        case .input(let input): fill(type, key, from: input, policy, isNew: isNew)
        }
    }

    private func writeEmbedded(
        _ value: _Stored, to column: Column, of key: ObjectKey, in type: SessionType, _ target: SessionType,
        _ policy: Realm.UpdatePolicy
    ) {
        let present = reading { try type.table()?.find(key)?.link(column) }
        if case .object(let object) = value.content, object.session === self, let present, object.objectKey == present.rawValue {
            return
        }
        if case .input(let input) = value.content, let object = ValueInput.object(input), object.session === self,
            object.objectKey == present?.rawValue,
            object.managedType === target
        {
            return
        }
        guard let object = newEmbedded(independent(value, target), target) else {
            if present == nil && policy == .modified { return }
            return edit(type.tableKey) { try $0.set(column, of: key, to: .null) }
        }
        // An update goes into the object that is there, so that what did not change is not reported.
        if policy != .error, let present { return fill(object, target, present, policy, isNew: false) }
        var new = ObjectKey.null
        edit(type.tableKey) { new = try $0.setEmbedded(column, of: key) }
        fill(object, target, new, policy)
    }

    // MARK: Objects

    /// The place of an object that a link goes to; an unmanaged object is added first.
    func ensureManaged(_ object: ObjectBase, _ policy: Realm.UpdatePolicy) -> (SessionType, ObjectKey) {
        if object.block != nil {
            if object.isInFrozenSession {
                misuse(
                    "Frozen objects of the class '\(object.schemaName)' cannot be added or linked to: thaw() gives the live one.")
            }
            guard object.session === self, let type = object.managedType else {
                misuse("Object is already managed by another Realm. Use create instead to copy it into this Realm.")
            }
            if object.isInvalidated { misuse("Adding a deleted or invalidated object to a Realm is not permitted") }
            return (type, ObjectKey(object.objectKey))
        }
        let type = requireType(Swift.type(of: object))
        if let key = adding[ObjectIdentifier(object)] { return (type, key) }
        return (type, add(object, type, policy))
    }

    /// Makes an unmanaged object one of the file.
    @discardableResult
    func add(_ object: ObjectBase, _ type: SessionType, _ policy: Realm.UpdatePolicy) -> ObjectKey {
        if type.isEmbedded { misuse("Embedded objects of the class '\(type.name)' cannot be added to a Realm by themselves") }
        var key = ObjectKey.null
        var isNew = true
        if let plan = type.addingPlan, type.makes(Swift.type(of: object)) {
            if let key = addNew(object, type, plan, policy, existing: &key) { return key }
            isNew = false
            refuseExisting(type, object, plan, policy)
        } else if let primaryKey = type.primaryKey, let info = type.info {
            let declared = info.properties[primaryKey.property.index]
            let value =
                ValueInput.convert(declared.wrapper.load(at: object.address(declared.offset)), to: declared.shape)?.plain ?? .null
            (key, isNew) = create(type, primaryKey: value, policy)
        } else {
            edit(type.tableKey) { key = try $0.createObject() }
        }
        fill(object, type, key, policy, isNew: isNew)
        return key
    }

    private func refuseExisting(_ type: SessionType, _ object: ObjectBase, _ plan: AddingPlan, _ policy: Realm.UpdatePolicy) {
        guard policy == .error, let primaryKey = plan.primaryKey else { return }
        let value = primaryKey.type._peek(object.address(primaryKey.offset))
        refuseTakenKey(type, value.dynamicValue)
    }

    private func refuseTakenKey(_ type: SessionType, _ value: Any?) -> Never {
        misuse(
            "Attempting to create an object of type '\(type.name)' with an existing primary key value '\(value ?? "nil")'. "
                + "Pass `update: .modified` or `update: .all` to change the object that is there.")
    }

    /// Makes an object with a primary key, or finds it where the policy allows.
    func create(_ type: SessionType, primaryKey value: Mixed, _ policy: Realm.UpdatePolicy) -> (ObjectKey, isNew: Bool) {
        var result: (key: ObjectKey, wasCreated: Bool) = (.null, false)
        edit(type.tableKey) { result = try $0.createObject(primaryKey: value) }
        if !result.wasCreated && policy == .error {
            refuseTakenKey(type, _Stored(value).dynamicValue)
        }
        return (result.key, result.wasCreated)
    }

    /// Writes the values of an unmanaged object to a row and makes the object its accessor.
    func fill(_ object: ObjectBase, _ type: SessionType, _ key: ObjectKey, _ policy: Realm.UpdatePolicy, isNew: Bool = true) {
        guard type.info?.type == Swift.type(of: object) else {
            misuse("Object type '\(object.schemaName)' is not managed by the Realm")
        }
        complete(PendingObject(type, key, policy, isNew: isNew, .object(object)))
    }

    func writeAll(_ object: ObjectBase, _ pending: PendingObject) {
        let type = pending.type, isNew = pending.isNew
        guard let info = type.info else { return }
        for property in type.properties where property.slot < ManagedProperty.computedSlots {
            if property.property.isPrimaryKey { continue }
            let declared = info.properties[property.property.index]
            declared.wrapper.write(
                at: object.address(declared.offset), to: _WriteTarget(type, pending.key, property, pending.policy, isNew: isNew))
        }
        type.place(object, pending.key)
        for property in type.properties {
            let declared = info.properties[property.property.index]
            declared.wrapper.manage(at: object.address(declared.offset), of: object, slot: UInt16(property.slot))
        }
        if isNew { noteCreated(object) }
    }

    /// Deletes an object and the embedded ones in it.
    func delete(_ object: ObjectBase) {
        requireWriteTransaction()
        guard object.session === self, let type = object.managedType else {
            misuse("Can only delete an object from the Realm it belongs to.")
        }
        if object.isInvalidated { refuseGone(object) }
        edit(type.tableKey) { try $0.deleteObject(ObjectKey(object.objectKey)) }
        // Should the deletion be undone, the object has to be fetched again.
        type.kill(object)
    }
}

/// Where the value of a property goes while an object is written.
public struct _WriteTarget {
    let type: SessionType
    let key: ObjectKey
    let property: ManagedProperty
    let policy: Realm.UpdatePolicy
    /// The object was made a moment ago: what equals the content of a fresh row is there already.
    let isNew: Bool

    init(_ type: SessionType, _ key: ObjectKey, _ property: ManagedProperty, _ policy: Realm.UpdatePolicy, isNew: Bool = false) {
        self.type = type
        self.key = key
        self.property = property
        self.policy = policy
        self.isNew = isNew
    }

    private var column: Column {
        guard let column = type.table()?.column(property.columnKey) else {
            misuse("The property '\(type.name).\(property.name)' does not exist in the Realm file.")
        }
        return column
    }

    func write(_ value: _Stored) {
        let column = column
        if isNew, let plain = value.plain, _WriteTarget.isFresh(plain, column) { return }
        type.session.write(value, to: column, of: key, in: type, policy)
    }

    /// Null, zero or nothing, as cells of new rows are. Decimals are left to be written: they have many zeros.
    static func isFresh(_ value: Mixed, _ column: Column) -> Bool {
        if column.isNullable { return value == .null }
        switch value {
        case .int(let v): return v == 0
        case .bool(let v): return !v
        case .float(let v): return v.bitPattern == 0
        case .double(let v): return v.bitPattern == 0
        case .string(let v): return v.isEmpty
        case .binary(let v): return v.isEmpty
        default: return false
        }
    }

    private func handle(_ kind: CollectionKind) -> CollectionHandle {
        CollectionHandle(type, TableEditor.Identity(table: type.tableKey, object: key, column: property.columnKey), kind)
    }

    func writeList(_ values: [_Stored]) {
        if !isNew || !values.isEmpty { handle(.list).replaceAll(values, policy) }
    }

    func writeSet(_ values: [_Stored]) {
        if !isNew || !values.isEmpty { handle(.set).replaceAll(values, policy) }
    }

    func writeMap(_ entries: [(String, _Stored)]) {
        if !isNew || !entries.isEmpty { handle(.dictionary).replaceAll(entries, policy) }
    }
}
