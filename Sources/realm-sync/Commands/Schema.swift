import SharedStore

extension Command {
    static let schema = Command(
        name: "schema",
        summary: "Show the classes of a file and their properties.",
        details: [
            "Tables that are no classes, as programs without the object layer make them, are shown behind the classes, with their columns. Those in which "
                + "the object layer keeps its own notes are left out."
        ],
        operands: [.file],
        options: [.keyFile, .immutable, .json],
        run: runSchema)
}

private func runSchema(_ invocation: Invocation) throws -> ExitCode {
    let database = try Database.open(invocation)
    let schema = try database.group.schema()
    if invocation.wantsJSON {
        try invocation.output.line(json(schema, tables: try database.group.plainTables().map(database.group.objectSchema)).text)
        return .ok
    }
    let output = invocation.output
    try output.line(schema.version < 0 ? "no schema version" : "schema version \(schema.version)")
    func show(_ objectClass: ObjectSchema, _ table: Table?) throws {
        var notes = [Text.count(table?.objectCount ?? 0, "object")]
        if let table, table.className == nil { notes.insert("table", at: 0) }
        if let key = objectClass.primaryKey { notes.append("primary key \(key)") }
        switch objectClass.kind {
        case .topLevel: break
        case .embedded: notes.append("embedded")
        case .asymmetric: notes.append("asymmetric")
        }
        try output.line("\n\(Text.visible(objectClass.name)) (\(Text.visible(notes.joined(separator: ", "))))")
        for property in objectClass.properties { try output.line("  \(Text.visible(describe(property)))") }
    }
    for objectClass in schema.classes { try show(objectClass, database.group.table(ofClass: objectClass.name)) }
    for table in try database.group.plainTables() { try show(database.group.objectSchema(table), table) }
    return .ok
}

/// `name: type`, a question mark for what may be null, and what else there is to know.
private func describe(_ property: PropertySchema) -> String {
    let isLink = property.type == .link
    var type = isLink ? property.objectType ?? "object" : property.type.propertyName
    if property.isOptional && property.type != .mixed { type += "?" }
    switch property.collection {
    case .list: type = "list<\(type)>"
    case .set: type = "set<\(type)>"
    case .dictionary: type = "dictionary<\(type)>"
    case nil: break
    }
    let indexes = (property.isIndexed ? ", indexed" : "") + (property.isFullTextIndexed ? ", full-text index" : "")
    return "\(property.name): \(type)\(indexes)"
}

/// The form that `export` has, without the objects.
private func json(_ schema: Schema, tables: [ObjectSchema]) -> JSONText {
    .object([
        ("schemaVersion", .integer(Int(schema.version))), ("classes", json(schema.classes)), ("tables", json(tables)),
    ])
}

private func json(_ classes: [ObjectSchema]) -> JSONText {
    .object(
        classes.map { objectClass in
            (
                objectClass.name,
                .object([
                    ("embedded", .bool(objectClass.isEmbedded)),
                    ("primaryKey", JSONText(objectClass.primaryKey)),
                    (
                        "properties",
                        .array(
                            objectClass.properties.map { property in
                                .object([
                                    ("name", .string(property.name)),
                                    ("type", .string(property.type.propertyName)),
                                    ("collection", JSONText(property.collection.map { "\($0)" })),
                                    ("optional", .bool(property.isOptional)),
                                    ("indexed", .bool(property.isIndexed)),
                                    ("fulltext", .bool(property.isFullTextIndexed)),
                                    ("objectType", JSONText(property.objectType)),
                                ])
                            })
                    ),
                ])
            )
        })
}

extension Group {
    /// The tables that are neither classes nor the object layer's own.
    func plainTables() throws -> [Table] { try tables().filter { $0.className == nil && !["metadata", "pk"].contains($0.name) } }
}
