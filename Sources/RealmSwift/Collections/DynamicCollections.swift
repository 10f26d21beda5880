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
        else {
            misuse("'\(name)' is no collection of the managed class '\(schemaName)'")
        }
        return collectionHandle(property.slot)
    }

    /// A list of objects by name; of a managed object.
    public final func dynamicList(_ propertyName: String) -> List<DynamicObject> { List(dynamicHandle(propertyName)) }
    /// The set of objects in a property, with objects that are read by property names. Another kind of property stops the
    /// process.
    public final func dynamicMutableSet(_ propertyName: String) -> MutableSet<DynamicObject> {
        MutableSet(dynamicHandle(propertyName))
    }
    /// The map of objects in a property, with objects that are read by property names. Another kind of property stops the
    /// process.
    public final func dynamicMap<Key: _MapKey>(_ propertyName: String) -> Map<Key, DynamicObject?> {
        Map(dynamicHandle(propertyName))
    }
}
