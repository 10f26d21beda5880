/// Compares what two files hold, object by object.
///
/// Objects are the same where they have the same class and key and every property has the same value, to the last digit; the
/// order of classes and properties, indexes and what lies where in the file do not matter. Both sides are walked once, in key
/// order; nothing is kept but one object of each and the differences that are listed.
public struct ObjectComparison: Sendable {
    /// How two files differ in one place.
    public enum Difference: Sendable, Equatable, CustomStringConvertible {
        case classOnly(String, inFirst: Bool)
        case schema(String, property: String, String)
        case objectOnly(String, ObjectKey, inFirst: Bool)
        case value(String, ObjectKey, property: String, String, String)

        public var description: String {
            switch self {
            case .classOnly(let name, let inFirst): "\(name): only in the \(inFirst ? "first" : "second") file"
            case .schema(let name, let property, let what): "\(name).\(property): \(what)"
            case .objectOnly(let name, let key, let inFirst):
                "\(name) object \(key.rawValue): only in the \(inFirst ? "first" : "second") file"
            case .value(let name, let key, let property, let a, let b): "\(name) object \(key.rawValue).\(property): \(a) / \(b)"
            }
        }
    }

    /// The first ones, as many as were asked for.
    public private(set) var differences: [Difference] = []
    /// All differences, those included that are only counted.
    public private(set) var differenceCount = 0
    /// Objects that are in both files, compared.
    public private(set) var objectCount = 0
    /// No difference was found.
    public var isEqual: Bool { differenceCount == 0 }
    private let limit: Int

    /// Compares two versions, each held by the caller.
    ///
    /// - Throws: `FormatError` for a damaged file.
    public init(_ a: Group, _ b: Group, limit: Int = 100) throws {
        self.limit = limit
        func names(_ group: Group) throws -> [ExactString] {
            try group.classTables().compactMap { $0.className.map { ExactString($0) } }
        }
        for name in Set(try names(a)).union(try names(b)).sorted().map(\.text) {
            switch (try a.table(ofClass: name), try b.table(ofClass: name)) {
            case (let x?, let y?):
                try compareSchema(name, try a.objectSchema(x), try b.objectSchema(y))
                // Embedded objects are values of those that own them.
                if x.kind != .embedded { try compareObjects(name, x, a, y, b) }
            case (let x, _): note(.classOnly(name, inFirst: x != nil))
            }
        }
    }

    private mutating func note(_ difference: Difference) {
        differenceCount += 1
        if differences.count < limit { differences.append(difference) }
    }

    private mutating func compareSchema(_ name: String, _ a: ObjectSchema, _ b: ObjectSchema) throws {
        if !a.primaryKey.isSame(as: b.primaryKey) {
            note(.schema(name, property: a.primaryKey ?? b.primaryKey ?? "", "is the primary key in one file only"))
        }
        for property in a.properties {
            guard let other = b.property(named: property.name) else {
                note(.schema(name, property: property.name, "only in the first file"))
                continue
            }
            if property.type != other.type || property.collection != other.collection || property.isOptional != other.isOptional
                || !property.objectType.isSame(as: other.objectType)
            {
                note(.schema(name, property: property.name, "has different types"))
            }
        }
        for property in b.properties where a.property(named: property.name) == nil {
            note(.schema(name, property: property.name, "only in the second file"))
        }
    }

    private mutating func compareObjects(_ name: String, _ x: Table, _ a: Group, _ y: Table, _ b: Group) throws {
        var i = 0, j = 0
        let sameLayout =
            x.publicColumns.map { ExactString(x.name(of: $0)) } == y.publicColumns.map { ExactString(y.name(of: $0)) }
        var p = try x.object(at: 0), q = try y.object(at: 0)
        while true {
            // Keys are ordered as unsigned numbers in the tree.
            let left = p.map { UInt64(bitPattern: $0.key.rawValue) }, right = q.map { UInt64(bitPattern: $0.key.rawValue) }
            switch (p, q) {
            case (nil, nil): return
            case (let row?, _) where right == nil || (left ?? 0) < (right ?? 0):
                note(.objectOnly(name, row.key, inFirst: true))
                i += 1
                p = try x.object(at: i)
            case (_, let row?) where left == nil || (left ?? 0) > (right ?? 0):
                note(.objectOnly(name, row.key, inFirst: false))
                j += 1
                q = try y.object(at: j)
            case (let one?, let two?):
                objectCount += 1
                let s = try Self.text(one, x, a), t = try Self.text(two, y, b)
                if !sameLayout || s != t { try compareMembers(name, one.key, s, t) }
                i += 1
                j += 1
                p = try x.object(at: i)
                q = try y.object(at: j)
            default: return
            }
        }
    }

    private static func text(_ row: ObjectRow, _ table: Table, _ group: Group) throws -> [UInt8] {
        let text = CollectedText()
        try JSONExporter.export(objectsOf: table, in: group, to: text.append) { try $0(row) }
        return text.bytes
    }

    private mutating func compareMembers(_ name: String, _ key: ObjectKey, _ a: [UInt8], _ b: [UInt8]) throws {
        let left = try Self.members(a), right = try Self.members(b)
        // Properties that only one file has were told of with the schema.
        for (property, value) in left.sorted(by: { $0.key < $1.key }) {
            guard let other = right[property], other != value else { continue }
            note(.value(name, key, property: property.text, Self.short(value), Self.short(other)))
        }
    }

    /// The members of the one object in an array.
    private static func members(_ text: [UInt8]) throws -> [ExactString: ArraySlice<UInt8>] {
        var out: [ExactString: ArraySlice<UInt8>] = [:]
        try text.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            try cursor.forEachElement { cursor in
                try cursor.forEachMember { name, cursor in
                    _ = try cursor.kind()
                    let start = cursor.offset
                    try cursor.skip()
                    out[ExactString(name)] = text[start..<cursor.offset]
                }
            }
        }
        return out
    }

    /// What fits on a line.
    private static func short(_ value: ArraySlice<UInt8>) -> String {
        let text = String(decoding: value.prefix(60), as: UTF8.self)
        return value.count > 60 ? text + "..." : text
    }
}
