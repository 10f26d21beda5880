import Foundation

/// Texts of objects and collections, as `print` shows them.
enum Description {
    static let depthMax = 5
    static let elementCountMax = 100
    static let dataByteCountMax = 24

    static func indent(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { "\t" + $0 }.joined(separator: "\n")
    }

    // MARK: Objects

    static func text(of object: ObjectBase) -> String { text(of: object, depth: depthMax) }

    private static func text(of object: ObjectBase, depth: Int) -> String {
        if depth == 0 { return "<Maximum depth exceeded>" }
        if object.isInvalidated { return "\(object.schemaName) {\n\t[invalid object]\n}" }
        let names = object.propertyNames
        let lines = names.map { name in
            "\t\(name) = " + indent(text(ofValue: object.value(forKey: name), depth: depth - 1)).dropFirst() + ";\n"
        }
        return "\(object.schemaName) {\n" + lines.joined() + "}"
    }

    /// The text of a value as the dynamic API or a computed property gives it.
    static func text(ofAny value: Any?) -> String { text(ofValue: ValueInput.unwrap(value), depth: depthMax) }

    private static func text(ofValue value: Any?, depth: Int) -> String {
        switch value {
        case nil: "(null)"
        case let object as ObjectBase: text(of: object, depth: depth)
        case let data as Data: text(of: data)
        case let map as any AnyMap: text(map.dynamicEntries.map { ("\($0.key): ", $0.value) }, header(map, "Map"), depth)
        case let collection as any KeyValueCollection:
            text(collection.dynamicElements.enumerated().map { ("[\($0)] ", $1) }, header(collection, "List"), depth)
        case let value?: String(describing: value)
        }
    }

    private static func text(of data: Data) -> String {
        let shown = data.prefix(dataByteCountMax).map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        return "<\(shown)\(data.count > dataByteCountMax ? "..." : "")>" + " — \(data.count) total bytes"
    }

    private static func header(_ collection: Any, _ fallback: String) -> String {
        guard let collection = collection as? any DescribedCollection else { return fallback }
        return collection.descriptionHeader
    }

    // MARK: Collections

    static func text<C: RealmCollectionBase>(of collection: C, named name: String) -> String {
        let address = (collection as AnyObject)
        if collection.isInvalidated { return "\(name) <\(pointer(address))> [invalid collection]" }
        let elements = collection.prefix(elementCountMax + 1).enumerated().map { ("[\($0)] ", $1._toStored().dynamicValue) }
        return text(elements, "\(name) <\(pointer(address))>", depthMax, total: collection.count)
    }

    static func text(of pairs: [(String, Any)], named name: String, _ identity: AnyObject) -> String {
        let elements = pairs.map { ("[\($0.0)]: ", ($0.1 as? any _Storable)?._toStored().dynamicValue) }
        return text(elements, "\(name) <\(pointer(identity))>", depthMax)
    }

    static func pointer(_ object: AnyObject) -> String {
        "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()), radix: 16)
    }

    private static func text(_ elements: [(String, Any?)], _ header: String, _ depth: Int, total: Int? = nil) -> String {
        if depth == 0 { return "<Maximum depth exceeded>" }
        let lines = elements.prefix(elementCountMax).map { label, value in
            "\t\(label)" + indent(text(ofValue: value, depth: depth - 1)).dropFirst()
        }
        let skipped = (total ?? elements.count) - lines.count
        let rest = skipped > 0 ? "\n\t... \(skipped) objects skipped." : ""
        return "\(header) (\n" + lines.joined(separator: ",\n") + rest + "\n)"
    }
}

/// A collection that says its type in the description of an object.
protocol DescribedCollection {
    var descriptionHeader: String { get }
}

extension List: DescribedCollection {
    var descriptionHeader: String { "List<\(Element._elementShape.elementName)> <\(Description.pointer(self))>" }
}

extension MutableSet: DescribedCollection {
    var descriptionHeader: String { "MutableSet<\(Element._elementShape.elementName)> <\(Description.pointer(self))>" }
}

extension Map: DescribedCollection {
    var descriptionHeader: String { "Map<string, \(Value._elementShape.elementName)> <\(Description.pointer(self))>" }
}

extension ObjectBase {
    /// Names of the properties in the order of the schema.
    final var propertyNames: [String] {
        if let type = managedType { return type.properties.map(\.name) }
        return ObjectSchema(ClassInfo.of(Swift.type(of: self))).properties.map(\.name)
    }
}
