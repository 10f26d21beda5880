/// Makes a file from the JSON form that `JSONExporter` writes: the same classes, objects and object keys.
///
/// The text is read three times: for the schema, for the objects with their keys, and for their values, since a value may link
/// to any object. Nothing but the present transaction is held in memory.
public final class JSONImporter {
    private let text: UnsafeRawBufferPointer
    private let target: any ImportTarget
    private var objectsDone = 0
    private var editors: [ExactString: TableEditor] = [:]
    private weak var editorsGroup: GroupEditor?
    /// Objects between two looks at the size of the transaction.
    private static let checkpointInterval = 50_000

    private struct ClassDescription {
        var name: String
        var isEmbedded = false
        var primaryKey: String?
        var properties: [PropertyDescription] = []
        /// Where the objects stand.
        var objects: JSONCursor?
    }

    private struct PropertyDescription {
        var name = ""
        var type = ""
        var collection: String?
        var isOptional = false
        var isIndexed = false
        var isFullText = false
        var objectType: String?
    }

    /// `text` must stay valid until `run` returns.
    public init(text: UnsafeRawBufferPointer, target: any ImportTarget) {
        self.text = text
        self.target = target
    }

    /// True where the text looks like an export: an object with the member "classes".
    public static func isExportForm(_ text: UnsafeRawBufferPointer) -> Bool {
        var cursor = JSONCursor(text)
        var found = false
        do {
            try cursor.forEachMember { name, cursor in
                if name == "classes" {
                    found = try cursor.kind() == .object
                    throw CancellationError()
                }
                try cursor.skip()
            }
        } catch {}
        return found
    }

    /// Imports everything.
    /// - Throws: `JSONError` for text of another form, and for values that the schema or the file format does not allow;
    ///   `TableError` for a schema that cannot be.
    public func run() throws {
        let (version, classes) = try readSchema()
        try makeSchema(version, classes)
        try checkpoint(force: true)
        for description in classes { try makeObjects(description) }
        for description in classes { try fillObjects(description) }
        for description in classes { try makeIndexes(description) }
        try checkpoint(force: true)
    }

    private func checkpoint(force: Bool = false, at offset: Int = 0) throws {
        if force || target.group.arena.allocatedBytes > 512 << 20 {
            try target.checkpoint(progress: ImportProgress(objectsDone: objectsDone, bytesDone: offset, bytesTotal: text.count))
        }
    }

    private func editor(_ className: String) throws -> TableEditor {
        let group = target.group
        if editorsGroup !== group {
            editors.removeAll()
            editorsGroup = group
        }
        if let editor = editors[ExactString(className)] { return editor }
        let editor = try group.group.table(ofClass: className).map { try group.editor($0.key) } ?? group.editor(named: className)
        editors[ExactString(className)] = editor
        return editor
    }

    // MARK: Schema

    private func readSchema() throws -> (version: Int64, classes: [ClassDescription]) {
        var version: Int64 = -1
        var classes: [ClassDescription] = []
        var cursor = JSONCursor(text)
        try cursor.forEachMember { name, cursor in
            switch name {
            case "schemaVersion": version = try cursor.integer()
            case "classes":
                try cursor.forEachMember { name, cursor in
                    if name.isEmpty { throw cursor.error("a class without a name") }
                    classes.append(try self.readClass(name, &cursor))
                }
            case "tables":
                try cursor.forEachMember { name, cursor in
                    throw cursor.error("table \"\(name)\" is no class: its schema is not in the text")
                }
            default: try cursor.skip()
            }
        }
        if !cursor.isAtEnd() { throw cursor.error("text behind the end") }
        return (version, classes)
    }

    private func readClass(_ name: String, _ cursor: inout JSONCursor) throws -> ClassDescription {
        var description = ClassDescription(name: name)
        try cursor.forEachMember { member, cursor in
            switch member {
            case "embedded": description.isEmbedded = try cursor.bool()
            case "primaryKey": description.primaryKey = try Self.optionalString(&cursor)
            case "properties": try cursor.forEachElement { description.properties.append(try Self.readProperty(&$0)) }
            case "objects":
                description.objects = cursor
                try cursor.skip()
            default: try cursor.skip()
            }
        }
        return description
    }

    private static func optionalString(_ cursor: inout JSONCursor) throws -> String? {
        if try cursor.kind() == .null {
            try cursor.null()
            return nil
        }
        return try cursor.string()
    }

    private static func readProperty(_ cursor: inout JSONCursor) throws -> PropertyDescription {
        var property = PropertyDescription()
        try cursor.forEachMember { member, cursor in
            switch member {
            case "name": property.name = try cursor.string()
            case "type": property.type = try cursor.string()
            case "collection": property.collection = try optionalString(&cursor)
            case "optional": property.isOptional = try cursor.bool()
            case "indexed": property.isIndexed = try cursor.bool()
            case "fulltext": property.isFullText = try cursor.bool()
            case "objectType": property.objectType = try optionalString(&cursor)
            default: try cursor.skip()
            }
        }
        return property
    }

    private func makeSchema(_ version: Int64, _ classes: [ClassDescription]) throws {
        let group = target.group
        if version >= 0 { try group.setSchemaVersion(version) }
        // Bytewise order of names, as the object layer makes them (file-format-2 9.3); links after all tables.
        let sorted = classes.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }
        for description in sorted {
            _ = try group.createTable(Table.classPrefix + description.name, kind: description.isEmbedded ? .embedded : .topLevel)
        }
        for description in sorted {
            let editor = try editor(description.name)
            for property in description.properties { try add(property, to: editor) }
            if let primaryKey = description.primaryKey { try editor.setPrimaryKey(editor.column(named: primaryKey).key) }
        }
    }

    private func add(_ property: PropertyDescription, to editor: TableEditor) throws {
        guard let type = ColumnType(propertyName: property.type) else {
            throw TableError.wrongType(
                table: editor.table.name, column: property.name, expected: "one of the known types", found: "\"\(property.type)\""
            )
        }
        var attributes: ColumnAttributes = property.isOptional ? .nullable : []
        switch property.collection {
        case nil: break
        case "list": attributes.insert(.list)
        case "set": attributes.insert(.set)
        case "dictionary": attributes.insert(.dictionary)
        case let other?:
            throw TableError.wrongType(
                table: editor.table.name, column: property.name, expected: "list, set or dictionary", found: "\"\(other)\"")
        }
        let link = type == .link ? try self.editor(property.objectType ?? "").table.key : nil
        try editor.addColumn(property.name, type, attributes, target: link)
    }

    private func makeIndexes(_ description: ClassDescription) throws {
        for property in description.properties where property.isIndexed || property.isFullText {
            if description.primaryKey.isSame(as: property.name) { continue }
            let editor = try editor(description.name)
            try editor.addIndex(editor.column(named: property.name).key, fullText: property.isFullText)
            try checkpoint()
        }
    }

    // MARK: Objects

    private func makeObjects(_ description: ClassDescription) throws {
        guard var cursor = description.objects else { return }
        try cursor.forEachElement { cursor in
            let start = cursor
            var key: Int64?
            var primaryKey: Mixed?
            try cursor.forEachMember { name, cursor in
                if name == "_key" {
                    key = try cursor.integer()
                } else if description.primaryKey.isSame(as: name) {
                    guard case .value(let value) = try ImportedValue.read(&cursor) else {
                        throw cursor.error("a primary key of this kind")
                    }
                    primaryKey = value
                } else {
                    try cursor.skip()
                }
            }
            guard let key, key >= 0 else { throw start.error("an object without _key") }
            try self.placing(start) {
                try self.editor(description.name).importObject(key: ObjectKey(key), primaryKey: primaryKey)
            }
            try self.count(cursor.offset)
        }
    }

    /// What cannot be stored is an error at the object's place in the text.
    private func placing(_ place: JSONCursor, _ body: () throws -> Void) throws {
        do { try body() } catch let error as TableError { throw place.error("\(error)") } catch let error as LimitError {
            throw place.error("\(error)")
        }
    }

    private func count(_ offset: Int) throws {
        objectsDone += 1
        if objectsDone % Self.checkpointInterval == 0 {
            target.group.changes.reset()
            try checkpoint(at: offset)
        }
    }

    private func fillObjects(_ description: ClassDescription) throws {
        guard var cursor = description.objects else { return }
        objectsDone = 0
        try cursor.forEachElement { cursor in
            let start = cursor
            var values: [(String, ImportedValue)] = []
            var key = ObjectKey.null
            try cursor.forEachMember { name, cursor in
                if name == "_key" {
                    key = ObjectKey(try cursor.integer())
                } else {
                    values.append((name, try ImportedValue.read(&cursor)))
                }
            }
            if Set(values.map { ExactString($0.0) }).count != values.count {
                throw start.error("a property stands twice in one object")
            }
            let editor = try self.editor(description.name)
            try self.placing(start) {
                for (name, value) in values where !description.primaryKey.isSame(as: name) {
                    try self.store(value, in: editor.column(named: name), of: key, editor)
                }
            }
            try self.count(cursor.offset)
        }
        target.group.changes.reset()
    }

    private func mixed(_ value: ImportedValue, _ column: Column, _ editor: TableEditor) throws -> Mixed {
        switch value {
        case .value(let v): return v
        case .link(let name, let key): return .link(try self.editor(name).table.key, key)
        case .array: return .list
        case .dictionary: return .dictionary
        case .embedded(let key): return .link(column.oppositeTable, key)
        }
    }

    private func store(_ value: ImportedValue, in column: Column, of key: ObjectKey, _ editor: TableEditor) throws {
        let identity = editor.identity(column, of: key)
        switch (column.collection, value) {
        case (nil, .embedded(let child)): try editor.replaceLink(column, key, by: child)
        case (nil, _):
            let stored = try mixed(value, column, editor)
            // Numbers are stored even when they equal the default: -0.0 does, and differs from it.
            let isFloating = [.float, .double, .decimal].contains(column.type)
            if stored == column.defaultValue && !isFloating { return }
            try editor.set(column, of: key, to: stored)
            try fill(identity, value, editor, column)
        case (.list, .array), (.set, .array), (.dictionary, .dictionary): try fill(identity, value, editor, column)
        default:
            throw TableError.wrongType(
                table: editor.table.name, column: editor.table.name(of: column), expected: "a collection", found: "another value")
        }
    }

    /// Puts the elements of an array or the pairs of a dictionary into a collection that is there and empty.
    private func fill(_ identity: TableEditor.Identity, _ value: ImportedValue, _ editor: TableEditor, _ column: Column) throws {
        switch value {
        case .array(var cursor):
            var index = 0
            let isSet = column.collection == .set && identity.salts.isEmpty
            try cursor.forEachElement { cursor in
                let element = try ImportedValue.read(&cursor)
                if case .embedded(let child) = element {
                    try editor.storeEmbeddedElement(identity, child)
                } else if isSet {
                    _ = try editor.setInsert(identity, self.mixed(element, column, editor))
                } else {
                    try editor.listInsert(identity, index, self.mixed(element, column, editor))
                    try self.fillNested(identity, index, element, editor, column)
                }
                index += 1
            }
        case .dictionary(var cursor):
            var seen: Set<ExactString> = []
            try cursor.forEachElement { cursor in
                let start = cursor
                var key: String?
                var element: ImportedValue?
                try cursor.forEachElement { cursor in
                    if key == nil { key = try cursor.string() } else { element = try ImportedValue.read(&cursor) }
                }
                guard let key, let element else { throw start.error("an entry of a dictionary is [key, value]") }
                guard seen.insert(ExactString(key)).inserted else { throw start.error("a key stands twice in one dictionary") }
                if case .embedded(let child) = element {
                    try editor.storeLink(identity, key, column.oppositeTable, child)
                } else {
                    let place = try editor.dictionarySet(identity, key, self.mixed(element, column, editor))
                    try self.fillNested(identity, place.position, element, editor, column)
                }
            }
        default: break
        }
    }

    private func fillNested(
        _ identity: TableEditor.Identity, _ position: Int, _ element: ImportedValue, _ editor: TableEditor, _ column: Column
    ) throws {
        switch element {
        case .array, .dictionary: try fill(editor.nestedIdentity(identity, at: position), element, editor, column)
        default: break
        }
    }
}

extension ColumnType {
    /// The type by the name that the JSON form gives it.
    public init?(propertyName: String) {
        guard
            let type = ColumnType.allCases.first(where: { $0.propertyName == propertyName && $0 != .backlink && $0 != .typedLink }
            )
        else { return nil }
        self = type
    }
}
