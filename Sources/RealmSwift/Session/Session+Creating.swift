internal import SharedStore

// Objects made from values of any form: dictionaries, arrays, other objects.

extension Session {
    /// An object of another Realm that is being copied; cycles of links end at the copy.
    struct Original: Hashable {
        var session: ObjectIdentifier
        var table: TableKey
        var key: Int64
    }

    /// Makes an object, or updates the one with the same primary key where the policy allows. Properties that `value` does not
    /// mention get their default in a new object and stay as they are in an existing one.
    func create(_ type: SessionType, _ value: Any, _ policy: Realm.UpdatePolicy) -> ObjectKey {
        requireWriteTransaction()
        if type.isEmbedded {
            misuse("Embedded objects of the class '\(type.name)' cannot be created by themselves: assign them to a property.")
        }
        let original = original(value)
        if let original, let copy = copies[original] { return copy }
        var given: [String: Any?] = [:]
        let names = type.properties.filter { $0.slot < ManagedProperty.computedSlots }.map(\.name)
        ValueInput.forEachValue(of: value, type.name, names) { given.updateValue($1, forKey: $0) }
        let sample = type.info.map { ModelRuntime.makeSample($0.type) }

        var key = ObjectKey.null
        var isNew = true
        if let primaryKey = type.primaryKey {
            (key, isNew) = create(type, primaryKey: primaryKeyValue(primaryKey, given, sample, type), policy)
        } else {
            edit(type.tableKey) { key = try $0.createObject() }
        }
        complete(
            PendingObject(
                type, key, isNew ? .all : policy, isNew: isNew,
                .values(given, sample: isNew ? sample : nil, nested: policy, of: original)))
        return key
    }

    /// Fills a new or existing embedded object from a value of any form.
    func fill(_ type: SessionType, _ key: ObjectKey, from input: Any, _ policy: Realm.UpdatePolicy, isNew: Bool) {
        var given: [String: Any?] = [:]
        let names = type.properties.filter { $0.slot < ManagedProperty.computedSlots }.map(\.name)
        ValueInput.forEachValue(of: input, type.name, names) { given.updateValue($1, forKey: $0) }
        let sample = isNew ? type.info.map { ModelRuntime.makeSample($0.type) } : nil
        complete(
            PendingObject(
                type, key, isNew ? .all : policy, isNew: isNew, .values(given, sample: sample, nested: policy, of: nil)))
    }

    private func original(_ value: Any) -> Original? {
        guard let value = ValueInput.unwrap(value), let object = ValueInput.object(value), let session = object.session,
            let type = object.managedType
        else { return nil }
        return Original(session: ObjectIdentifier(session), table: type.tableKey, key: object.objectKey)
    }

    private func primaryKeyValue(_ property: ManagedProperty, _ given: [String: Any?], _ sample: ObjectBase?, _ type: SessionType)
        -> Mixed
    {
        let input: Any?
        if let value = given[property.name] {
            input = value
        } else if let sample, let info = type.info {
            let declared = info.properties[property.property.index]
            input = declared.wrapper.load(at: sample.address(declared.offset))
        } else {
            misuse("Missing value for property '\(type.name).\(property.name)'.")
        }
        let shape = DynamicInput.shape(of: property.property, self)
        guard let value = ValueInput.convert(input, to: shape)?.plain else {
            misuse(ValueInput.message(input, shape, "\(type.name).\(property.name)"))
        }
        return value
    }

    /// Writes given values; those that are missing come from `sample`, an unmanaged instance with defaults.
    func write(_ given: [String: Any?], sample: ObjectBase?, nested: Realm.UpdatePolicy, _ pending: PendingObject) {
        let type = pending.type
        for property in type.properties
        where property.slot < ManagedProperty.computedSlots && (!property.property.isPrimaryKey || isMigrating) {
            let target = _WriteTarget(type, pending.key, property, pending.policy, isNew: pending.isNew)
            if let value = given[property.name] {
                if !DynamicInput.write(value, to: target, nested: nested) {
                    misuse(
                        ValueInput.message(
                            value, DynamicInput.shape(of: property.property, self), "\(type.name).\(property.name)"))
                }
            } else if let sample, let info = type.info {
                let declared = info.properties[property.property.index]
                declared.wrapper.write(at: sample.address(declared.offset), to: target)
            }
        }
    }

    /// A value for a link: an object of this Realm, or what one is to be made from.
    func link(_ input: Any, to type: SessionType, _ policy: Realm.UpdatePolicy) -> _Stored? {
        if let object = ValueInput.object(input) {
            if object.session === self, object.schemaName == type.name, !type.isEmbedded { return _Stored(.object(object)) }
            if object.block == nil, Swift.type(of: object) == type.info?.type { return _Stored(.object(object)) }
        } else if !(input is [String: Any?]) && !(input is [Any?]) {
            return nil
        }
        if type.isEmbedded { return _Stored(.input(input)) }
        return _Stored(.link(type.tableKey, create(type, input, policy)), in: self)
    }
}

/// Values of any form for managed objects, by the schema of the file.
enum DynamicInput {
    static func shape(of property: Property, _ session: Session) -> _PropertyShape {
        let type = property.objectClassName.flatMap { session.type(named: $0) }
        let isOptional = property.isOptional && property.type != .any
        return _PropertyShape(property.type, isOptional: isOptional, objectClass: type?.info?.type)
    }

    /// False where the value does not fit.
    ///
    /// - Parameter nested: the policy for objects that are made from nested values.
    static func write(_ value: Any?, to target: _WriteTarget, nested: Realm.UpdatePolicy) -> Bool {
        let session = target.type.session
        let property = target.property.property
        let shape = shape(of: property, session)
        let objects = property.type == .object ? property.objectClassName.flatMap { session.type(named: $0) } : nil

        func stored(_ input: Any?) -> _Stored? {
            guard let objects else {
                guard property.type == .any, let value = ValueInput.convert(input, to: shape) else {
                    return ValueInput.convert(input, to: shape)
                }
                return session.copyingForeignObjects(AnyRealmValue._from(value), nested)._toStored()
            }
            guard let input = ValueInput.unwrap(input) else { return property.isArray || property.isSet ? nil : .null }
            if let mapped = input as? any _Storable, !(input is ObjectBase) {
                // A mapped type whose persisted type is an embedded object.
                if case .object = mapped._toStored().content { return mapped._toStored() }
            }
            return session.link(input, to: objects, nested)
        }

        if property.isMap {
            guard let value = ValueInput.unwrap(value) else {
                target.writeMap([])
                return true
            }
            let pairs: [(key: String, value: Any?)]
            switch value {
            case let map as any AnyMap: pairs = map.dynamicEntries
            case let dictionary as [String: Any?]: pairs = dictionary.map { ($0.key, $0.value) }
            default: return false
            }
            var entries: [(String, _Stored)] = []
            for (key, value) in pairs {
                guard let value = stored(value) else { return false }
                entries.append((key, value))
            }
            target.writeMap(entries)
        } else if property.isArray || property.isSet {
            guard let inputs = ValueInput.elements(of: value) else { return false }
            var values: [_Stored] = []
            for input in inputs {
                guard let value = stored(input) else { return false }
                values.append(value)
            }
            if property.isSet { target.writeSet(values) } else { target.writeList(values) }
        } else {
            guard let value = stored(value) else { return false }
            target.write(value)
        }
        return true
    }
}
