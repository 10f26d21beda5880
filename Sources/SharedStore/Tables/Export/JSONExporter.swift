/// Writes all of a version as JSON, in the form that the files in `Tests/Fixtures` have beside them.
///
/// ```
/// {"schemaVersion": n,
///  "classes": {name: {"embedded": bool, "primaryKey": name, "properties": [...], "objects": [...]}},
///  "tables": {name: {"objects": [...]}}}
/// object     {"_key": key, column: value, ...}, columns in spec order
/// value      null true false 12 "text" {"$float": t} {"$double": t} {"$data": base64} {"$decimal": t}
///            {"$date": [seconds, nanoseconds]} {"$oid": hex} {"$uuid": t} {"$link": [class, key]} {"$embedded": object}
///            {"$dict": [[key, value], ...]} [...]
/// ```
/// Classes stand in bytewise order of their names, tables that are no classes in slot order, objects in key order; `metadata` and
/// `pk` are left out. The text is handed on in pieces of some 64 KiB: memory grows with a single value only, not with the file.
public enum JSONExporter {
    /// How the text is laid out.
    public enum Style: Sendable {
        /// No white space at all.
        case compact
        /// An object, a property or a class a line.
        case lines
    }

    /// Nested collections and embedded objects, at most; the file format allows 100 levels of collections.
    public static let nestingMax = 500

    /// Writes the version that `group` shows to `sink`, which gets the text piece by piece.
    ///
    /// - Throws: `FormatError` for a damaged file, after part of the text; and whatever `sink` throws.
    public static func export(
        _ group: Group, style: Style = .compact, to sink: @escaping (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try JSONWriter(group, style, JSONBuffer(sink)).run()
    }

    /// Writes some objects of one table, each as in the full form, as the elements of one array.
    ///
    /// - Throws: as `export`, and what `objects` throws.
    public static func export(
        objectsOf table: Table, in group: Group, style: Style = .compact,
        to sink: @escaping (UnsafeRawBufferPointer) throws -> Void,
        _ objects: (_ write: (ObjectRow) throws -> Void) throws -> Void
    ) throws {
        try JSONWriter(group, style, JSONBuffer(sink)).run(table, objects)
    }

    /// The whole text at once; for small files and tests.
    public static func text(_ group: Group, style: Style = .compact) throws -> [UInt8] {
        var text: [UInt8] = []
        try export(group, style: style) { text.append(contentsOf: $0) }
        return text
    }
}

/// One export under way.
private final class JSONWriter {
    private let group: Group
    private let style: JSONExporter.Style
    @exclusivity(unchecked) private var out: JSONBuffer
    /// Names and kinds of link targets, by table key.
    @exclusivity(unchecked) private var targets: [TableKey: Target] = [:]
    /// Nested nodes that the object being written may still have: a file in which collections are shared would else have no end.
    @exclusivity(unchecked) private var budget = 0
    /// Elements that the collections of the object being written may still have, and those of the collections that its table's
    /// objects hold themselves. Each collection has one owner, so that in all they are no more than a file of this size can hold.
    @exclusivity(unchecked) private var elementsOfObject = 0
    @exclusivity(unchecked) private var elementsOfFile: Int

    private struct Target {
        var table: Table
        var name: String
        var layout: Layout
    }

    /// What is written for each object of a table.
    private struct Layout {
        var columns: [Column]
        /// `,"name":` for each column.
        var labels: [String]
    }

    init(_ group: Group, _ style: JSONExporter.Style, _ out: JSONBuffer) {
        self.group = group
        self.style = style
        self.out = out
        elementsOfFile = group.memory.collectionElementsMax
    }

    func run() throws {
        out.raw("{\"schemaVersion\":")
        out.integer(try group.schemaVersion())
        out.raw(",\"classes\":{")
        var isFirst = true
        for table in try group.classTables() {
            separate(&isFirst)
            try writeClass(table)
        }
        out.raw("},\"tables\":{")
        isFirst = true
        let internalNames = [Group.metadataTableName, Group.oldPrimaryKeyTableName]
        for table in try group.tables() where table.className == nil && !internalNames.contains(table.name) {
            separate(&isFirst)
            out.string(table.name)
            out.raw(":{\"objects\":")
            try writeObjects(table)
            out.byte(UInt8(ascii: "}"))
        }
        out.raw("}}")
        lineBreak()
        try out.flush()
    }

    func run(_ table: Table, _ objects: (_ write: (ObjectRow) throws -> Void) throws -> Void) throws {
        let layout = layout(table)
        var isFirst = true
        out.byte(UInt8(ascii: "["))
        try objects { row in
            separate(&isFirst)
            budget = table.memory.nodeCountMax
            elementsOfObject = table.memory.collectionElementsMax
            try writeObject(row, layout, 0)
            try out.flushIfFull()
        }
        out.byte(UInt8(ascii: "]"))
        lineBreak()
        try out.flush()
    }

    private func separate(_ isFirst: inout Bool) {
        if !isFirst { out.byte(UInt8(ascii: ",")) }
        isFirst = false
        lineBreak()
    }

    private func lineBreak() {
        if style == .lines { out.byte(10) }
    }

    // MARK: Schema

    private func writeClass(_ table: Table) throws {
        let schema = try group.objectSchema(table)
        out.string(schema.name)
        out.raw(schema.isEmbedded ? ":{\"embedded\":true,\"primaryKey\":" : ":{\"embedded\":false,\"primaryKey\":")
        writeName(schema.primaryKey)
        out.raw(",\"properties\":[")
        var isFirst = true
        for property in schema.properties {
            separate(&isFirst)
            writeProperty(property)
        }
        out.raw("],\"objects\":")
        try writeObjects(table)
        out.byte(UInt8(ascii: "}"))
    }

    private func writeProperty(_ property: PropertySchema) {
        out.raw("{\"name\":")
        out.string(property.name)
        out.raw(",\"type\":\"")
        out.raw(property.type.propertyName)
        out.raw("\",\"collection\":")
        switch property.collection {
        case nil: out.raw("null")
        case .list: out.raw("\"list\"")
        case .set: out.raw("\"set\"")
        case .dictionary: out.raw("\"dictionary\"")
        }
        out.raw(property.isOptional ? ",\"optional\":true" : ",\"optional\":false")
        out.raw(property.isIndexed ? ",\"indexed\":true" : ",\"indexed\":false")
        out.raw(property.isFullTextIndexed ? ",\"fulltext\":true" : ",\"fulltext\":false")
        out.raw(",\"objectType\":")
        writeName(property.objectType)
        out.byte(UInt8(ascii: "}"))
    }

    private func writeName(_ name: String?) {
        if let name { out.string(name) } else { out.raw("null") }
    }

    // MARK: Objects

    private func layout(_ table: Table) -> Layout {
        let columns = Array(table.publicColumns)
        return Layout(
            columns: columns,
            labels: columns.map { column in
                var label: [UInt8] = []
                var buffer = JSONBuffer { label.append(contentsOf: $0) }
                buffer.byte(UInt8(ascii: ","))
                buffer.string(table.name(of: column))
                buffer.byte(UInt8(ascii: ":"))
                // The sink above cannot fail.
                try? buffer.flush()
                return String(decoding: label, as: UTF8.self)
            })
    }

    private func writeObjects(_ table: Table) throws {
        let layout = layout(table)
        var readers: [ColumnReader] = []
        var isFirst = true
        out.byte(UInt8(ascii: "["))
        try table.forEachLeaf { leaf in
            readers.removeAll(keepingCapacity: true)
            for column in layout.columns { readers.append(try ColumnReader(table.memory, leaf.node, column)) }
            for row in 0..<leaf.count {
                separate(&isFirst)
                budget = table.memory.nodeCountMax
                elementsOfObject = table.memory.collectionElementsMax
                out.raw("{\"_key\":")
                out.integer(leaf.key(row).rawValue)
                for i in layout.columns.indices {
                    out.raw(layout.labels[i])
                    try writeValue(readers[i], row, layout.columns[i], 0)
                }
                out.byte(UInt8(ascii: "}"))
                try out.flushIfFull()
            }
        }
        out.byte(UInt8(ascii: "]"))
    }

    private func writeObject(_ row: ObjectRow, _ layout: Layout, _ depth: Int) throws {
        try descend(depth, row.cluster.ref)
        out.raw("{\"_key\":")
        out.integer(row.key.rawValue)
        for i in layout.columns.indices {
            out.raw(layout.labels[i])
            try writeValue(ColumnReader(row.memory, row.cluster, layout.columns[i]), row.index, layout.columns[i], depth)
        }
        out.byte(UInt8(ascii: "}"))
    }

    /// Bounds what a damaged file can make of one object: how deep, and how much in all.
    private func descend(_ depth: Int, _ ref: Int) throws {
        budget -= 1
        if depth > JSONExporter.nestingMax {
            throw FormatError(ref: ref, "values are nested deeper than \(JSONExporter.nestingMax) levels")
        }
        if budget < 0 { throw FormatError(ref: ref, "an object holds more collections than the file has nodes") }
    }

    /// Bounds the elements of collections. Embedded objects are written with each of their owners' owners too, so that only what
    /// an object holds itself counts for the file.
    private func spend(_ count: Int, _ ref: Int) throws {
        elementsOfObject -= count
        if !isInEmbedded { elementsOfFile -= count }
        if elementsOfObject < 0 || elementsOfFile < 0 {
            throw FormatError(ref: ref, "collections hold more elements than the file has room for")
        }
    }
    @exclusivity(unchecked) private var isInEmbedded = false

    // MARK: Values

    private func writeValue(_ reader: ColumnReader, _ row: Int, _ column: Column, _ depth: Int) throws {
        switch reader {
        case .int(let leaf): out.integer(try leaf.value(row))
        case .optionalInt(let leaf): if let v = try leaf.value(row) { out.integer(v) } else { writeNull() }
        case .bool(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .float(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .double(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .string(let leaf): try writeString(leaf, row)
        case .enumeratedString(let leaf): if let v = try leaf.bytes(row) { out.string(v) } else { writeNull() }
        case .binary(let leaf): try writeBinary(leaf, row)
        case .timestamp(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .decimal(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .objectId(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .uuid(let leaf): if let v = try leaf.value(row) { write(v) } else { writeNull() }
        case .link(let leaf): try writeLink(column.oppositeTable, leaf.value(row), depth)
        case .mixed(let leaf): try writeMixed(leaf, row, depth)
        case .backlink: writeNull()
        case .collection(let leaf):
            let ref = try leaf.value(row)
            switch column.collection {
            case .dictionary: try writeDictionary(DictionaryReader(group.memory, ref, column), depth + 1)
            default: try writeList(ListReader(group.memory, ref, column), depth + 1)
            }
        }
    }

    private func writeNull() { out.raw("null") }
    private func write(_ value: Bool) { value ? out.raw("true") : out.raw("false") }

    private func write(_ value: Float) {
        out.raw("{\"$float\":\"")
        out.float(value)
        out.raw("\"}")
    }

    private func write(_ value: Double) {
        out.raw("{\"$double\":\"")
        out.double(value)
        out.raw("\"}")
    }

    private func write(_ value: Timestamp) {
        out.raw("{\"$date\":[")
        out.integer(value.seconds)
        out.byte(UInt8(ascii: ","))
        out.integer(Int64(value.nanoseconds))
        out.raw("]}")
    }

    private func write(_ value: Decimal128Bits) {
        out.raw("{\"$decimal\":\"")
        out.raw(value.description)
        out.raw("\"}")
    }

    private func write(_ value: ObjectIdValue) {
        out.raw("{\"$oid\":\"")
        out.raw(value.description)
        out.raw("\"}")
    }

    private func write(_ value: UUIDValue) {
        out.raw("{\"$uuid\":\"")
        out.raw(value.description)
        out.raw("\"}")
    }

    private func writeData(_ bytes: UnsafeRawBufferPointer) {
        out.raw("{\"$data\":\"")
        out.base64(bytes)
        out.raw("\"}")
    }

    private func writeString(_ leaf: StringLeaf, _ row: Int) throws {
        if let joined = try leaf.splitBytes(row) {
            joined.withUnsafeBytes { out.string($0) }
        } else if let bytes = try leaf.bytes(row) {
            out.string(bytes)
        } else {
            writeNull()
        }
    }

    private func writeBinary(_ leaf: BinaryLeaf, _ row: Int) throws {
        if let bytes = try leaf.value(row) { bytes.withUnsafeBytes { writeData($0) } } else { writeNull() }
    }

    /// A link: null where the object is gone, the object itself where its table is embedded.
    private func writeLink(_ key: TableKey, _ object: ObjectKey, _ depth: Int) throws {
        guard object.rawValue >= 0, let target = try target(key), let row = try target.table.find(object) else {
            return writeNull()
        }
        if target.table.kind == .embedded {
            out.raw("{\"$embedded\":")
            let outer = isInEmbedded
            isInEmbedded = true
            try writeObject(row, target.layout, depth + 1)
            isInEmbedded = outer
            out.byte(UInt8(ascii: "}"))
        } else {
            out.raw("{\"$link\":[")
            out.string(target.name)
            out.byte(UInt8(ascii: ","))
            out.integer(object.rawValue)
            out.raw("]}")
        }
    }

    private func target(_ key: TableKey) throws -> Target? {
        if let known = targets[key] { return known }
        guard let table = try group.table(key) else { return nil }
        let target = Target(table: table, name: table.className ?? table.name, layout: layout(table))
        targets[key] = target
        return target
    }

    private func writeMixed(_ leaf: MixedLeaf, _ row: Int, _ depth: Int) throws {
        switch try leaf.typeNumber(row) {
        case 19, 20: try writeList(ListReader(group.memory, mixed: leaf.nestedRef(row)), depth + 1)
        case 21: try writeDictionary(DictionaryReader(group.memory, mixed: leaf.nestedRef(row)), depth + 1)
        default: try writeScalar(leaf.value(row), depth)
        }
    }

    private func writeScalar(_ value: Mixed, _ depth: Int) throws {
        switch value {
        case .null, .list, .dictionary: writeNull()
        case .int(let v): out.integer(v)
        case .bool(let v): write(v)
        case .float(let v): write(v)
        case .double(let v): write(v)
        case .string(let v): out.string(v)
        case .binary(let v): v.withUnsafeBytes { writeData($0) }
        case .timestamp(let v): write(v)
        case .decimal(let v): write(v)
        case .objectId(let v): write(v)
        case .uuid(let v): write(v)
        case .link(let table, let object): try writeLink(table, object, depth)
        }
    }

    // MARK: Collections

    private func writeList(_ list: ListReader, _ depth: Int) throws {
        try descend(depth, list.ref)
        try spend(list.count, list.ref)
        out.byte(UInt8(ascii: "["))
        var isFirst = true
        func nextElement() throws {
            if !isFirst { out.byte(UInt8(ascii: ",")) }
            isFirst = false
            try out.flushIfFull()
        }
        if list.elementType == .mixed {
            try list.tree(MixedLeaf.self).forEachLeaf { leaf, _ in
                for i in 0..<leaf.count {
                    try nextElement()
                    try writeMixed(leaf, i, depth)
                }
            }
        } else {
            try list.forEach { value in
                try nextElement()
                try writeScalar(value, depth)
            }
        }
        out.byte(UInt8(ascii: "]"))
    }

    private func writeDictionary(_ dictionary: DictionaryReader, _ depth: Int) throws {
        try descend(depth, dictionary.ref)
        try spend(dictionary.count, dictionary.ref)
        out.raw("{\"$dict\":[")
        var isFirst = true
        try dictionary.forEachEntry { key, leaf, index in
            if !isFirst { out.byte(UInt8(ascii: ",")) }
            isFirst = false
            try out.flushIfFull()
            out.byte(UInt8(ascii: "["))
            switch key {
            case .int(let key): out.integer(key)
            case .string(let key): out.string(key)
            default: writeNull()
            }
            out.byte(UInt8(ascii: ","))
            try writeMixed(leaf, index, depth)
            out.byte(UInt8(ascii: "]"))
        }
        out.raw("]}")
    }
}

extension ColumnType {
    /// The name of the type in the JSON form and in texts for people.
    public var propertyName: String {
        switch self {
        case .int: "int"
        case .bool: "bool"
        case .string: "string"
        case .binary: "data"
        case .mixed: "mixed"
        case .timestamp: "date"
        case .float: "float"
        case .double: "double"
        case .decimal: "decimal128"
        case .link, .backlink, .typedLink: "object"
        case .objectId: "objectId"
        case .uuid: "uuid"
        }
    }
}
