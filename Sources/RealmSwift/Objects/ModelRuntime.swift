@_spi(Reflection) import Swift
internal import CShims
import Synchronization

/// Making instances of model classes and finding these, by facts of the Swift runtime.
///
/// Each fact is checked against classes with known answers before it is first used; where a check fails, creation falls back
/// to a slower way or, where there is none, stops with a message. A wrong guess is never silent.
enum ModelRuntime {
    // MARK: Instances

    /// Position of `init()` in the vtable of every subclass of `ObjectBase`. It is not `required`, so that models may override
    /// it without ceremony; then Swift has no way to call it on a type, but the vtable has it all the same.
    private static let initializerSlot: Int = {
        let slot = realm_first_initializer_slot(metadata(ObjectBase.self))
        guard slot > 0 else {
            misuse("The layout of Swift classes is not the one that this library knows: models cannot be created")
        }
        let probe = take(realm_call_initializer(metadata(InitializerProbe.self), slot))
        guard let probe = probe as? InitializerProbe, probe.mark == 0x1A2B_3C4D else {
            misuse("The layout of Swift classes is not the one that this library knows: models cannot be created")
        }
        return slot
    }()

    private static func metadata(_ type: AnyClass) -> UnsafeRawPointer { unsafeBitCast(type, to: UnsafeRawPointer.self) }

    private static func take(_ pointer: UnsafeMutableRawPointer) -> AnyObject {
        Unmanaged<AnyObject>.fromOpaque(pointer).takeRetainedValue()
    }

    /// An instance for the library's own use, by the class's `init()`: properties whose default is a new identifier hold none
    /// yet.
    static func makeSample(_ type: ObjectBase.Type) -> ObjectBase {
        realm_begin_sample()
        defer { realm_end_sample() }
        return make(type)
    }

    /// A new instance by the class's `init()`, as the application makes it.
    static func make(_ type: ObjectBase.Type) -> ObjectBase {
        unsafeDowncast(take(realm_call_initializer(metadata(type), initializerSlot)), to: ObjectBase.self)
    }

    /// Bytes of an instance of the class.
    static func instanceSize(_ type: AnyClass) -> Int { Int(realm_instance_size(metadata(type))) }

    /// Bytes of the header of every object: type and reference count.
    static let headerSize = 16

    /// True where sizes in metadata are as expected, and an object that was allocated and copied behaves like one that was
    /// initialised.
    static let canCopyInstances: Bool = {
        guard instanceSize(ObjectBase.self) >= headerSize, instanceSize(InitializerProbe.self) > instanceSize(ObjectBase.self)
        else { return false }
        let template = InitializerProbe()
        guard let copy = copy(template) as? InitializerProbe else { return false }
        return copy.mark == template.mark && type(of: copy) == InitializerProbe.self && copy.block == nil
    }()

    /// A new instance with the bytes of `template`, which must hold nothing that is reference counted.
    static func copy(_ template: ObjectBase) -> ObjectBase {
        let metadata = metadata(type(of: template))
        return copy(template, metadata, instanceSize(type(of: template)), Int(realm_instance_align_mask(metadata)))
    }

    @inline(__always)
    static func copy(_ template: ObjectBase, _ metadata: UnsafeRawPointer, _ size: Int, _ alignMask: Int) -> ObjectBase {
        guard let object = realm_allocate_object(metadata, size, alignMask) else { misuse("Out of memory") }
        (object + headerSize).copyMemory(
            from: Unmanaged.passUnretained(template).toOpaque() + headerSize, byteCount: size - headerSize)
        return Unmanaged<ObjectBase>.fromOpaque(object).takeRetainedValue()
    }

    /// The word with the counts of an object to which there is one strong reference and no other; 0 where such words do not tell
    /// that.
    static let soleReferenceWord: UInt64 = {
        let probes = (0..<2).map { _ in realm_call_initializer(metadata(InitializerProbe.self), initializerSlot) }
        defer { for case let probe? in probes { Unmanaged<AnyObject>.fromOpaque(probe).release() } }
        return realm_sole_reference_word(probes[0], probes[1])
    }()

    /// By how much that word grows with each strong reference; 0 where it does not grow evenly.
    static let referenceStep: UInt64 = {
        guard soleReferenceWord != 0, let probe = realm_call_initializer(metadata(InitializerProbe.self), initializerSlot) else {
            return 0
        }
        defer { Unmanaged<AnyObject>.fromOpaque(probe).release() }
        return realm_reference_step(probe)
    }()

    // MARK: Fields

    struct Field {
        var name: String
        var offset: Int
        var type: Any.Type
    }

    /// The stored properties of a class in the order of declaration, those of superclasses first; those of the library's own
    /// classes are left out.
    static func fields(of type: ObjectBase.Type) -> [Field] {
        let own = instanceSize(Object.self)
        var fields: [Field] = []
        // 1 stands for classes: the option's own name is a mutable global.
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { name, offset, fieldType, _ in
            if offset >= own { fields.append(Field(name: String(cString: name), offset: offset, type: fieldType)) }
            return true
        }
        return fields
    }

    // MARK: Discovery

    private struct Found {
        var images = 0
        var types: [ObjectBase.Type] = []
    }
    private nonisolated(unsafe) static var found = Found()
    private static let lock = Mutex(())

    /// All model classes of the process; scans again once a library was loaded.
    static func allModels() -> [ObjectBase.Type] {
        lock.withLock { _ in
            let images = realm_swift_image_count()
            if images != found.images { found = Found(images: images, types: scan()) }
            return found.types
        }
    }

    private static func scan() -> [ObjectBase.Type] {
        var types: [ObjectBase.Type] = []
        withUnsafeMutablePointer(to: &types) { types in
            realm_for_each_class(
                { metadata, types in
                    let type = unsafeBitCast(metadata, to: Any.Type.self)
                    guard let model = type as? ObjectBase.Type, let types else { return }
                    types.assumingMemoryBound(to: [ObjectBase.Type].self).pointee.append(model)
                }, types)
        }
        let ownClasses: [ObjectBase.Type] = [
            ObjectBase.self, Object.self, EmbeddedObject.self, DynamicObject.self, InitializerProbe.self,
        ]
        return types.filter { type in !ownClasses.contains { $0 == type } }
    }
}

/// Known answers for the checks above.
private final class InitializerProbe: ObjectBase {
    var mark: Int
    override init() {
        mark = 0x1A2B_3C4D
        super.init()
    }
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
