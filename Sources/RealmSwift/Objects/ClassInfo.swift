internal import SharedStore
import Synchronization

/// A property as its class declares it.
struct PropertyInfo: @unchecked Sendable {
    // Sendable: metatypes are, but the compiler does not know it of a protocol's.
    /// The name in Swift.
    var name: String
    /// The name in the file.
    var columnName: String
    /// Of the wrapper in instances.
    var offset: Int
    var wrapper: any AnyPersisted.Type
    var shape: _PropertyShape
    var flags: _PropertyFlags
    var originProperty: String?
    /// Position among the properties of the class.
    var index: Int

    var isPrimaryKey: Bool { flags.contains(.primaryKey) }
    var isIndexed: Bool { flags.contains(.indexed) || isPrimaryKey }
    var isComputed: Bool { shape.type == .linkingObjects }
}

/// What is known about a model class: found once per process by reflection and one instance.
final class ClassInfo: @unchecked Sendable {
    // Sendable: nothing changes after `init`.
    let type: ObjectBase.Type
    let name: String
    let properties: [PropertyInfo]
    /// All stored properties are persisted ones that hold nothing in a fresh instance: accessors can be made by copying bytes.
    let isTriviallyCopied: Bool
    /// Some properties are constants of the older form, which have to be bound to the file in each instance.
    let hasLegacyProperties: Bool
    private let positions: [ExactString: Int]

    private static let cache = Mutex<[ObjectIdentifier: ClassInfo]>([:])

    static func of(_ type: ObjectBase.Type) -> ClassInfo {
        if let info = cache.withLock({ $0[ObjectIdentifier(type)] }) { return info }
        // Not under the lock: `init()` of a model is foreign code.
        let info = ClassInfo(type)
        return cache.withLock {
            if let first = $0[ObjectIdentifier(type)] { return first }
            $0[ObjectIdentifier(type)] = info
            return info
        }
    }

    private init(_ type: ObjectBase.Type) {
        self.type = type
        name = type.className()
        let fields = ModelRuntime.fields(of: type)
        let mapping = type.propertiesMapping()
        var properties: [PropertyInfo] = []
        if fields.contains(where: { $0.type is any AnyPersisted.Type || $0.type is any LegacyField.Type }) {
            let sample = ClassInfo.makingSample { ModelRuntime.makeSample(type) }
            properties = ClassInfo.persistedFields(fields, sample).enumerated().map { index, field in
                PropertyInfo(
                    name: field.name, columnName: mapping[field.name] ?? field.name, offset: field.offset, wrapper: field.wrapper,
                    shape: field.wrapper.shape, flags: field.flags, originProperty: field.originProperty, index: index)
            }
        }
        self.properties = properties
        let areAllWrapped = fields.allSatisfy { $0.type is any AnyPersisted.Type }
        isTriviallyCopied = !properties.isEmpty && areAllWrapped && ModelRuntime.canCopyInstances
        hasLegacyProperties = properties.contains { !($0.wrapper is any AnyWrapper.Type) }
        positions = Dictionary(properties.map { (ExactString($0.name), $0.index) }, uniquingKeysWith: { first, _ in first })
    }

    func property(_ name: String) -> PropertyInfo? { positions[ExactString(name)].map { properties[$0] } }

    /// Properties that have a column in the file.
    var stored: some Sequence<PropertyInfo> { properties.lazy.filter { !$0.isComputed } }

    // MARK: Samples

    /// True while this thread runs a model's `init()` to learn about its class: an initializer that opens a Realm would then
    /// call for itself without end.
    @TaskLocal static var isMakingSample = false

    private static func makingSample<R>(_ body: () -> R) -> R { $isMakingSample.withValue(true, operation: body) }
}
