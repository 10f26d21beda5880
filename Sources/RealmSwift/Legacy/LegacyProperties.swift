internal import SharedStore

// Properties of classes without `@Persisted`. On Apple systems such classes declare most of theirs with Objective-C's help, which
// does not exist here; what remains are constants of class type, which are bound to the file in place:
//
//     class Person: Object {
//         let dogs = List<Dog>()
//         let age = RealmOptional<Int>()
//         let fans = LinkingObjects(fromType: Person.self, property: "friends")
//         override class func indexedProperties() -> [String] { ["age"] }
//     }

/// A type of such a constant.
protocol LegacyField {
    /// What can be done with it where only its address is known.
    static var legacyWrapper: any AnyPersisted.Type { get }
}

extension List: LegacyField {
    static var legacyWrapper: any AnyPersisted.Type { LegacyCollection<List>.self }
}
extension MutableSet: LegacyField {
    static var legacyWrapper: any AnyPersisted.Type { LegacyCollection<MutableSet>.self }
}
extension Map: LegacyField {
    static var legacyWrapper: any AnyPersisted.Type { LegacyCollection<Map>.self }
}
extension LinkingObjects: LegacyField {
    static var legacyWrapper: any AnyPersisted.Type { LegacyLinkingObjects<Element>.self }
}
extension RealmOptional: LegacyField, LegacyScalarHolder {
    static var legacyWrapper: any AnyPersisted.Type { LegacyScalar<RealmOptional>.self }
}
extension RealmProperty: LegacyField, LegacyScalarHolder {
    static var legacyWrapper: any AnyPersisted.Type { LegacyScalar<RealmProperty>.self }
}

private enum LegacyCollection<C: _Persistable & AnyObject>: AnyPersisted {
    static var shape: _PropertyShape { C._shape }

    private static func collection(_ address: UnsafeMutableRawPointer) -> C { address.assumingMemoryBound(to: C.self).pointee }

    static func declaration(at address: UnsafeMutableRawPointer) -> PropertyDeclaration {
        PropertyDeclaration(flags: [], holdsValue: true)
    }
    static func load(at address: UnsafeMutableRawPointer) -> Any? { C._toDynamic(collection(address)) }
    static func store(_ input: Any?, at address: UnsafeMutableRawPointer, of object: ObjectBase) -> Bool {
        guard let new = C._fromInput(input, into: object) else { return false }
        _ = C._assigned(new, over: collection(address))
        return true
    }
    static func write(at address: UnsafeMutableRawPointer, to target: _WriteTarget) { C._write(collection(address), to: target) }
    static func manage(at address: UnsafeMutableRawPointer, of object: ObjectBase, slot: UInt16) {
        C._bind(collection(address), to: object, Int(slot))
    }
    static func setManaged(at address: UnsafeMutableRawPointer, slot: UInt16) {}
    static func setTrace(at address: UnsafeMutableRawPointer, number: UInt32) {}
    static func collection(of object: ObjectBase, slot: Int) -> Any? { C._get(object, slot) }
}

private enum LegacyLinkingObjects<Element: ObjectBase & RealmCollectionValue>: AnyPersisted {
    static var shape: _PropertyShape { LinkingObjects<Element>._shape }

    private static func pointer(_ address: UnsafeMutableRawPointer) -> UnsafeMutablePointer<LinkingObjects<Element>> {
        address.assumingMemoryBound(to: LinkingObjects<Element>.self)
    }

    static func declaration(at address: UnsafeMutableRawPointer) -> PropertyDeclaration {
        PropertyDeclaration(flags: [], holdsValue: true, originProperty: pointer(address).pointee.originProperty)
    }
    static func load(at address: UnsafeMutableRawPointer) -> Any? { pointer(address).pointee }
    static func store(_ input: Any?, at address: UnsafeMutableRawPointer, of object: ObjectBase) -> Bool { false }
    static func write(at address: UnsafeMutableRawPointer, to target: _WriteTarget) {}
    static func manage(at address: UnsafeMutableRawPointer, of object: ObjectBase, slot: UInt16) {
        pointer(address).pointee = LinkingObjects<Element>._get(object, Int(slot))
    }
    static func setManaged(at address: UnsafeMutableRawPointer, slot: UInt16) {}
    static func setTrace(at address: UnsafeMutableRawPointer, number: UInt32) {}
    static func collection(of object: ObjectBase, slot: Int) -> Any? { LinkingObjects<Element>._get(object, slot) }
}

private protocol LegacyScalarHolder: AnyObject {
    associatedtype Held
    var cell: LegacyCell<Held> { get }
}

private enum LegacyScalar<Holder: LegacyScalarHolder>: AnyPersisted {
    static var shape: _PropertyShape { LegacyCell<Holder.Held>.shape }

    private static func cell(_ address: UnsafeMutableRawPointer) -> LegacyCell<Holder.Held> {
        address.assumingMemoryBound(to: Holder.self).pointee.cell
    }

    static func declaration(at address: UnsafeMutableRawPointer) -> PropertyDeclaration {
        PropertyDeclaration(flags: [], holdsValue: true)
    }
    static func load(at address: UnsafeMutableRawPointer) -> Any? {
        LegacyCell<Holder.Held>.stored(cell(address).value).dynamicValue
    }
    static func store(_ input: Any?, at address: UnsafeMutableRawPointer, of object: ObjectBase) -> Bool {
        guard let stored = ValueInput.convert(input, to: shape) else { return false }
        cell(address).value = LegacyCell<Holder.Held>.value(stored)
        return true
    }
    static func write(at address: UnsafeMutableRawPointer, to target: _WriteTarget) {
        target.write(LegacyCell<Holder.Held>.stored(cell(address).value))
    }
    static func manage(at address: UnsafeMutableRawPointer, of object: ObjectBase, slot: UInt16) {
        cell(address).bind(to: object, Int(slot))
    }
    static func setManaged(at address: UnsafeMutableRawPointer, slot: UInt16) {}
    static func setTrace(at address: UnsafeMutableRawPointer, number: UInt32) {}
    static func collection(of object: ObjectBase, slot: Int) -> Any? { _readCell(object, slot).dynamicValue }
}

// MARK: Which fields are properties

extension ClassInfo {
    /// A stored property that the file has a column for.
    struct PersistedField {
        var name: String
        var offset: Int
        var wrapper: any AnyPersisted.Type
        var flags: _PropertyFlags
        var originProperty: String?
    }

    /// Each class of the hierarchy decides for itself: where it has `@Persisted` properties, these; otherwise those of the older
    /// form, but for the ones that `ignoredProperties()` names.
    static func persistedFields(_ fields: [ModelRuntime.Field], _ sample: ObjectBase) -> [PersistedField] {
        let type = Swift.type(of: sample)
        var ends: [Int] = []
        var mirror: Mirror? = Mirror(reflecting: sample)
        while let current = mirror {
            if let level = current.subjectType as? AnyClass { ends.append(ModelRuntime.instanceSize(level)) }
            mirror = current.superclassMirror
        }
        func level(_ field: ModelRuntime.Field) -> Int { ends.lastIndex { $0 > field.offset } ?? 0 }
        let modern = Set(fields.filter { $0.type is any AnyWrapper.Type }.map { level($0) })
        let legacy = LegacyNames(type)
        return fields.compactMap { field in
            if let wrapper = field.type as? any AnyWrapper.Type {
                let declaration = wrapper.declaration(at: sample.address(field.offset))
                let name = field.name.hasPrefix("_") ? String(field.name.dropFirst()) : field.name
                return PersistedField(
                    name: name, offset: field.offset, wrapper: wrapper, flags: declaration.flags,
                    originProperty: declaration.originProperty)
            }
            guard !modern.contains(level(field)), let wrapper = (field.type as? any LegacyField.Type)?.legacyWrapper,
                !legacy.ignored.contains(field.name)
            else { return nil }
            let declaration = wrapper.declaration(at: sample.address(field.offset))
            return PersistedField(
                name: field.name, offset: field.offset, wrapper: wrapper, flags: legacy.flags(field.name),
                originProperty: declaration.originProperty)
        }
    }
}

/// What the class functions of the older form say.
private struct LegacyNames {
    var ignored: Set<String> = []
    var primaryKey: String?
    var indexed: Set<String> = []

    init(_ type: ObjectBase.Type) {
        if let type = type as? Object.Type {
            ignored = Set(type.ignoredProperties())
            primaryKey = type.primaryKey()
            indexed = Set(type.indexedProperties())
        } else if let type = type as? EmbeddedObject.Type {
            ignored = Set(type.ignoredProperties())
        }
    }

    func flags(_ name: String) -> _PropertyFlags {
        var flags: _PropertyFlags = []
        if name == primaryKey { flags.insert(.primaryKey) }
        if indexed.contains(name) { flags.insert(.indexed) }
        return flags
    }
}
