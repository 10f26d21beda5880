import Foundation
internal import SharedStore

extension Realm {
    // MARK: Adding

    /// Makes an unmanaged object part of the Realm, with all objects that it refers to. The same instance is managed from now on.
    ///
    /// An object that is in this Realm already is left alone; one of another Realm stops the process, see `create` for copies.
    public func add(_ object: Object, update: UpdatePolicy = .error) {
        session.requireWriteTransaction()
        if object.block != nil {
            _ = session.ensureManaged(object, update)
            return
        }
        let type = session.type(of: Swift.type(of: object))
        requirePrimaryKey(type, update)
        session.add(object, type, update)
    }

    /// The same for every object of a sequence.
    public func add<S: Sequence>(_ objects: S, update: UpdatePolicy = .error) where S.Element: Object {
        for object in objects { add(object, update: update) }
    }

    @available(
        *, unavailable,
        message:
            "Pass .error, .modified or .all rather than a boolean. .error is equivalent to false and .all is equivalent to true."
    )
    /// Not for use: say `.modified` or `.all`.
    public func add(_ object: Object, update: Bool) { fatalError() }

    @available(
        *, unavailable,
        message:
            "Pass .error, .modified or .all rather than a boolean. .error is equivalent to false and .all is equivalent to true."
    )
    /// Not for use: say `.modified` or `.all`.
    public func add<S: Sequence>(_ objects: S, update: Bool) where S.Element: Object { fatalError() }

    private func requirePrimaryKey(_ type: SessionType, _ policy: UpdatePolicy) {
        if policy != .error && type.primaryKey == nil {
            misuse("'\(type.name)' does not have a primary key and can not be updated")
        }
    }

    /// Makes a managed object from a dictionary by property name, an array in the order of the properties, or another object.
    ///
    /// With a policy other than `.error` an object with the same primary key is updated: what the dictionary does not mention
    /// stays. A managed object of this Realm is then returned as it is; of another Realm a deep copy is made.
    @discardableResult
    public func create<T: Object>(_ type: T.Type, value: Any = [String: Any](), update: UpdatePolicy = .error) -> T {
        session.requireWriteTransaction()
        return unsafeDowncast(create(session.requireType(type), value, update), to: T.self)
    }

    /// The same by the name of the class.
    @discardableResult
    public func dynamicCreate(_ typeName: String, value: Any = [String: Any](), update: UpdatePolicy = .error) -> DynamicObject {
        session.requireWriteTransaction()
        let type = requireType(typeName)
        let key = ObjectKey(create(type, value, update).objectKey)
        return unsafeDowncast(type.makeDynamicAccessor(key), to: DynamicObject.self)
    }

    private func create(_ type: SessionType, _ value: Any, _ policy: UpdatePolicy) -> ObjectBase {
        requirePrimaryKey(type, policy)
        if policy != .error, let object = ValueInput.object(value), object.session === session, object.schemaName == type.name {
            if object.isInvalidated { refuseGone(object) }
            // A dynamic object is none of the class.
            return Swift.type(of: object) == type.info?.type ? object : type.makeAccessor(ObjectKey(object.objectKey))
        }
        let accessor = type.makeAccessor(session.create(type, value, policy))
        session.noteCreated(accessor)
        return accessor
    }

    private func requireType(_ name: String) -> SessionType {
        guard let type = session.type(named: name) else { misuse("Object type '\(name)' is not managed by the Realm.") }
        return type
    }

    // MARK: Deleting

    /// Deletes an object. Links to it become nil, lists and sets lose it; embedded objects in it are deleted too, others stay.
    public func delete(_ object: ObjectBase) { session.delete(object) }

    /// The same for every object of a sequence.
    public func delete<S: Sequence>(_ objects: S) where S.Element: ObjectBase {
        session.requireWriteTransaction()
        for object in Array(objects) where !object.isInvalidated { session.delete(object) }
    }

    /// Deletes the objects of a list, which is empty afterwards.
    public func delete<Element: ObjectBase>(_ objects: List<Element>) {
        session.requireWriteTransaction()
        if objects.handle == nil { return objects.removeAll() }
        for object in Array(objects) where !object.isInvalidated { session.delete(object) }
    }

    /// Deletes all objects of a query at once.
    public func delete<Element: ObjectBase>(_ objects: Results<Element>) {
        session.requireWriteTransaction()
        if objects.core.session !== session { misuse("Can only delete an object from the Realm it belongs to.") }
        guard let type = objects.core.type, let keys = objects.core.observedKeys(), !keys.isEmpty else { return }
        let isOfClass = objects.core.isOfClass
        session.edit(type.tableKey) { editor in
            if isOfClass && keys.count == editor.table.objectCount { return try editor.deleteAllObjects() }
            for key in keys where try editor.table.find(key) != nil { try editor.deleteObject(key) }
        }
    }

    /// Deletes the objects of a map. The keys stay, with nil.
    public func delete<Key: _MapKey, Value: ObjectBase>(_ map: Map<Key, Value?>) {
        session.requireWriteTransaction()
        for case let object? in map.values where !object.isInvalidated { session.delete(object) }
    }

    /// Deletes all objects of all classes of the schema. The file keeps its size.
    public func deleteAll() {
        session.requireWriteTransaction()
        for objectSchema in session.schema.objectSchema where !objectSchema.isEmbedded {
            guard let type = session.type(named: objectSchema.className), type.tableKey != .null else { continue }
            session.edit(type.tableKey) { try $0.deleteAllObjects() }
        }
    }

    // MARK: Reading

    /// All objects of a class, live. The order means nothing.
    public func objects<Element: RealmFetchable>(_ type: Element.Type) -> Results<Element> {
        session.checkConfinement()
        // Of the class that was given, which may be a subclass of the one that the compiler knows: `for type in [Dog.self,
        // Cat.self] as [Object.Type]`.
        guard let model = type._elementShape.objectClass else { misuse("'\(type)' is no model class") }
        return Results(ResultsCore(session, .table(session.requireType(model).tableKey)))
    }

    /// All objects of a class that is known by its name only. An unknown name stops the process.
    public func dynamicObjects(_ typeName: String) -> Results<DynamicObject> {
        session.checkConfinement()
        return Results(ResultsCore(session, .table(requireType(typeName).tableKey)))
    }

    /// The object with the given primary key, or nil. A key of another type stops the process, and so does a class without
    /// primary key.
    public func object<Element: Object, KeyType>(ofType type: Element.Type, forPrimaryKey key: KeyType) -> Element? {
        let type = session.type(of: type)
        if KeyType.self == Int.self, let row = find(type, withUnsafeBytes(of: key) { $0.loadUnaligned(as: Int.self) }) {
            return row.map { unsafeDowncast(accessor(type, $0), to: Element.self) }
        }
        return find(type, key).map { unsafeDowncast(accessor(type, $0), to: Element.self) }
    }

    @inline(__always)
    private func accessor(_ type: SessionType, _ row: ObjectRow) -> ObjectBase {
        session.isFrozen ? type.makeAccessor(row) : type.accessor(row, &_reference.spares)
    }

    @inline(__always)
    private func accessor(_ type: SessionType, _ key: ObjectKey) -> ObjectBase {
        session.isFrozen ? type.makeAccessor(key) : type.accessor(key, &_reference.spares)
    }

    /// The row with an integer as its primary key. Nil where that has to be looked for in another way, `.some(nil)` where there
    /// is none.
    private func find(_ type: SessionType, _ key: Int) -> ObjectRow?? {
        if type.block.pointee.needsCheck(type.block.pointee.stamp) { session.checkConfinement() }
        guard let table = type.table(), type.block.pointee.primaryKeySlot > 0,
            type.block.pointee.kinds[type.block.pointee.primaryKeySlot] == .int,
            let column = type.block.pointee.columns[type.block.pointee.primaryKeySlot]
        else { return nil }
        return reading {
            guard let index = try SearchIndex(table, column) else { return nil }
            return .some(try index.firstRow(int: Int64(key)))
        }
    }

    /// The object with a primary key, of a class that is known by its name only; nil where there is none.
    public func dynamicObject(ofType typeName: String, forPrimaryKey key: Any) -> DynamicObject? {
        let type = requireType(typeName)
        return find(type, key).map { unsafeDowncast(type.makeDynamicAccessor($0), to: DynamicObject.self) }
    }

    private func find(_ type: SessionType, _ key: Any) -> ObjectKey? {
        session.checkConfinement()
        guard let property = type.primaryKey else { misuse("'\(type.name)' does not have a primary key") }
        let shape = DynamicInput.shape(of: property.property, session)
        guard let value = ValueInput.convert(key, to: shape)?.plain else {
            misuse("Invalid value '\(key)' of type '\(Swift.type(of: key))' for the primary key '\(type.name).\(property.name)'")
        }
        return reading {
            guard let table = type.table(), let column = table.column(property.columnKey) else { return nil }
            if let index = try SearchIndex(table, column) { return try index.firstRow(value)?.key }
            return try table.find(primaryKey: value)?.key
        }
    }

    /// No object of any class.
    public var isEmpty: Bool {
        session.checkConfinement()
        return session.allTypes.allSatisfy { $0.table()?.objectCount ?? 0 == 0 }
    }
}

/// An element type of `Realm.objects`.
public protocol RealmFetchable: RealmCollectionValue {
    static func className() -> String
}

extension Object: RealmFetchable {}
