import Foundation

/// Collections whose element type is known from the schema only.
enum DynamicCollections {
    static func make(_ property: Property, _ handle: CollectionHandle) -> Any? {
        switch property.type {
        case .int: make(Int.self, property, handle)
        case .bool: make(Bool.self, property, handle)
        case .float: make(Float.self, property, handle)
        case .double: make(Double.self, property, handle)
        case .string: make(String.self, property, handle)
        case .data: make(Data.self, property, handle)
        case .date: make(Date.self, property, handle)
        case .objectId: make(ObjectId.self, property, handle)
        case .decimal128: make(Decimal128.self, property, handle)
        case .UUID: make(Foundation.UUID.self, property, handle)
        case .any: collection(AnyRealmValue.self, property, handle)
        case .object: property.isMap ? Map<String, DynamicObject?>(handle) : collection(DynamicObject.self, property, handle)
        case .linkingObjects: nil
        }
    }

    private static func make<Element: _RealmCollectionValueInsideOptional>(
        _ type: Element.Type, _ property: Property, _ handle: CollectionHandle
    ) -> Any {
        property.isOptional ? collection(Element?.self, property, handle) : collection(type, property, handle)
    }

    private static func collection<Element: RealmCollectionValue>(
        _ type: Element.Type, _ property: Property, _ handle: CollectionHandle
    ) -> Any {
        if property.isSet { return MutableSet<Element>(handle) }
        return property.isMap ? Map<String, Element>(handle) : List<Element>(handle)
    }
}

extension ObjectBase {
    private final func dynamicHandle(_ name: String) -> CollectionHandle {
        guard let property = managedType?.property(name), property.isCollection, property.slot < ManagedProperty.computedSlots
        else { noCollection(name) }
        return collectionHandle(property.slot)
    }

    private final func noCollection(_ name: String) -> Never {
        misuse("'\(name)' is no collection of the class '\(schemaName)'")
    }

    /// A collection of objects of an unmanaged object, with what it holds now; nil where the property is something else.
    final func dynamicCollection(_ name: String) -> Any? {
        guard let shape = ClassInfo.of(Swift.type(of: self)).property(name)?.shape, shape.type == .object else { return nil }
        switch shape.collection {
        case .list:
            let list = List<DynamicObject>()
            list.append(objectsIn: shownElements(name))
            return list
        case .set:
            let set = MutableSet<DynamicObject>()
            set.insert(objectsIn: shownElements(name))
            return set
        case .map:
            let map = Map<String, DynamicObject?>()
            for (key, value) in (value(forKey: name) as? any AnyMap)?.dynamicEntries ?? [] {
                map[key] = .some((value as? ObjectBase).map { DynamicObject(showing: $0) })
            }
            return map
        case nil: return nil
        }
    }

    private final func shownElements(_ name: String) -> [DynamicObject] {
        let elements = (value(forKey: name) as? any KeyValueCollection)?.dynamicElements ?? []
        return elements.compactMap { ($0 as? ObjectBase).map { DynamicObject(showing: $0) } }
    }

    private final func dynamicCollection<C>(_ name: String, _ make: (CollectionHandle) -> C) -> C {
        if block != nil { return make(dynamicHandle(name)) }
        guard let collection = shownObject.dynamicCollection(name) as? C else { noCollection(name) }
        return collection
    }

    /// A list of objects by name. Of an unmanaged object it shows what the property holds now: elements that are put into it do
    /// not come to the object.
    public final func dynamicList(_ propertyName: String) -> List<DynamicObject> { dynamicCollection(propertyName) { List($0) } }
    /// The set of objects in a property, with objects that are read by property names. Another kind of property stops the
    /// process.
    public final func dynamicMutableSet(_ propertyName: String) -> MutableSet<DynamicObject> {
        dynamicCollection(propertyName) { MutableSet($0) }
    }
    /// The map of objects in a property, with objects that are read by property names. Another kind of property stops the
    /// process.
    public final func dynamicMap<Key: _MapKey>(_ propertyName: String) -> Map<Key, DynamicObject?> {
        dynamicCollection(propertyName) { Map($0) }
    }
}
