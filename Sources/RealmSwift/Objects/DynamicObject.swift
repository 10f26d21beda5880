/// An object of which only the schema in the file is known; also any object, read by property name.
@dynamicMemberLookup
public final class DynamicObject: Object {
    /// The unmanaged object of a model class that this one shows: an object of which only the names are asked has no values of
    /// its own.
    private let source: ObjectBase?

    /// An object without properties.
    public override init() {
        source = nil
        super.init()
    }

    init(showing source: ObjectBase) {
        self.source = source
        super.init()
    }

    /// False: the class stands in for those that are known by name only.
    public override static func shouldIncludeInDefaultSchema() -> Bool { false }

    /// A property by its name; one that the class in the file does not have stops the process.
    public override subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }

    /// A property by its name, as a member.
    public subscript(dynamicMember member: String) -> Any? {
        get { value(forKey: member) }
        set { setValue(newValue, forKey: member) }
    }

    /// Stops the process where the object has no such property.
    public override func value(forUndefinedKey key: String) -> Any? {
        guard let source else { return super.value(forUndefinedKey: key) }
        let value = source.value(forKey: key)
        // What it links to is shown in the same way.
        if let object = value as? ObjectBase { return DynamicObject(showing: object) }
        return source.dynamicCollection(key) ?? value
    }

    /// Stops the process where the object has no such property.
    public override func setValue(_ value: Any?, forUndefinedKey key: String) {
        guard let source else { return super.setValue(value, forUndefinedKey: key) }
        source.setValue(value, forKey: key)
    }

    public override var description: String { source?.description ?? super.description }

    public override func isEqual(_ object: Any?) -> Bool {
        if let source, let other = (object as? DynamicObject)?.source { return source === other }
        return super.isEqual(object)
    }

    public override var hash: Int { source?.hash ?? super.hash }

    fileprivate var shown: ObjectBase { source ?? self }
}

extension ObjectBase {
    /// The object itself, or the one that it shows.
    final var shownObject: ObjectBase { block == nil ? (self as? DynamicObject)?.shown ?? self : self }
}
