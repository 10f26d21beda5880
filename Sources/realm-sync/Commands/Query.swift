import SharedStore

extension Command {
    static let query = Command(
        name: "query",
        summary: "Show objects of a class.",
        details: [
            "Objects are shown as a table, in the order that the predicate asks for, else in that of their keys; of a collection the number "
                + "of its elements is shown, as [3]. The predicate and each --where must hold. For --where a date is written as "
                + "2024-02-29T12:30:00Z or as seconds since 1970; null stands for null.",
            "PREDICATE is in the query language, as: \"age > 20 AND name BEGINSWITH[c] 'a' SORT(age DESC) LIMIT(10)\". "
                + "$0, $1, ... or %@ stand for the values of --arg, in their order.",
        ],
        operands: [
            .file, Operand(name: "CLASS", help: "The name of a class, or of a table that is none, as 'schema' shows it."),
            Operand(
                name: "PREDICATE", count: .optional, mayBeEmpty: true,
                help: "What must hold for an object to be shown, and in which order."),
        ],
        options: [
            .value(
                "arg", "a", "VALUE",
                "A value for the predicate: null, true, a number, else text; or JSON in the form of 'export'.", isRepeated: true),
            .flag("keys", nil, "Write only the keys of the objects, as a JSON array, in result order."),
            .flag("explain", nil, "Write what the planner does and how many objects it looks at."),
            .value("where", "w", "PROPERTY=VALUE", "Show only objects whose property has this value.", isRepeated: true),
            .value("columns", "c", "A,B,...", "Show these properties only."),
            .value("limit", "n", "N", "Show at most N objects (20 where none is given, 0 for all)."),
            .keyFile, .immutable,
            .flag("json", "j", "Write the objects as a JSON array, in the form of 'export'."),
        ],
        exitCodes: [
            (.noInput, "there is no such file or class"), (.usage, "the predicate is wrong, or a value of --arg is not used"),
        ],
        run: runQuery)
}

private func runQuery(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let limit = try arguments.integer("limit", in: 0...Int.max) ?? 20
    let database = try Database.open(invocation)
    let table = try database.table(arguments.operand("CLASS"))
    let conditions = try arguments.strings("where").map { try Condition($0, table, database, arguments) }
    let values = try arguments.strings("arg").map { try QueryArgument(commandLine: $0, database.group) }
    let text = arguments.operands("PREDICATE").first ?? "TRUEPREDICATE"
    let schema = try GroupQuerySchema(database.group), className = table.className ?? table.name
    let query = try Query(text, arguments: values, class: className, schema: schema)
    if let (date, offset) = Query.impossibleDate(in: text) {
        throw QueryError(.literal, "there is no such date as \(date)", at: offset)
    }
    if let last = arguments.strings("arg").last,
        (try? Query(text, arguments: values.dropLast(), class: className, schema: schema)) != nil
    {
        throw arguments.usageError("option --arg: '\(last)' is one too many, the predicate has no place for it")
    }

    if arguments.has("explain") {
        try invocation.output.write("\(try query.explain(in: database.group))\n")
        return .ok
    }
    let keys = arguments.operands("PREDICATE").isEmpty ? nil : try query.run(in: database.group)

    /// Calls `body` for the objects that are wanted; returns whether there are more.
    func forEachMatch(limit: Int, _ body: (ObjectRow) throws -> Void) throws -> Bool {
        var shown = 0
        func take(_ row: ObjectRow) throws -> Bool {
            guard try conditions.allSatisfy({ try $0.holds(for: row) }) else { return true }
            if limit > 0 && shown == limit { return false }
            shown += 1
            try body(row)
            return true
        }
        if let keys {
            for key in keys {
                if let row = try table.find(key), try !take(row) { return true }
            }
            return false
        }
        var hasMore = false
        try table.scanLeaves { leaf in
            for index in 0..<leaf.count where try !take(leaf.row(index)) {
                hasMore = true
                return false
            }
            return true
        }
        return hasMore
    }

    if arguments.has("keys") {
        var text: [String] = []
        _ = try forEachMatch(limit: try arguments.integer("limit", in: 0...Int.max) ?? 0) { text.append("\($0.key)") }
        try invocation.output.write("[\(text.joined(separator: ","))]\n")
        return .ok
    }
    if invocation.wantsJSON {
        let output = invocation.output
        try JSONExporter.export(objectsOf: table, in: database.group, to: { try output.write($0) }) { write in
            _ = try forEachMatch(limit: limit, write)
        }
        try output.write("\n")
        return .ok
    }
    let columns =
        try arguments.string("columns").map { list in
            var seen: Set<ExactString> = []
            return try list.split(separator: ",").map { name in
                guard seen.insert(ExactString(String(name))).inserted else {
                    throw arguments.usageError("option --columns: '\(name)' stands twice")
                }
                return try column(String(name), table, database)
            }
        } ?? Array(table.publicColumns)
    let rightAligned: Set<ColumnType> = [.int, .float, .double, .decimal]
    var lines = TextTable(
        titles: ["_key"] + columns.map { table.name(of: $0) },
        alignments: [.right] + columns.map { $0.collection == nil && rightAligned.contains($0.type) ? .right : .left })
    let cells = ValueText(group: database.group)
    let hasMore = try forEachMatch(limit: limit) { row in
        lines.add(["\(row.key.rawValue)"] + (try columns.map { try cells.cell(row, $0) }))
    }
    try lines.write(to: invocation.output)
    if lines.isEmpty { invocation.console.message("no object of \(table.className ?? table.name) matches") }
    if hasMore {
        invocation.console.message(
            limit == 1
                ? "only the first object is shown; --limit 0 shows all"
                : "only the first \(limit) objects are shown; --limit 0 shows all")
    }
    return .ok
}

extension QueryArgument {
    /// A value as it is typed: JSON where it is some, else text.
    init(commandLine text: String, _ group: Group) throws {
        let parsed = Array(text.utf8).withUnsafeBytes { bytes -> QueryArgument? in
            var cursor = JSONCursor(bytes)
            guard let value = try? QueryArgument(&cursor, group), cursor.isAtEnd() else { return nil }
            return value
        }
        self = parsed ?? .value(.string(text))
    }
}

private func column(_ name: String, _ table: Table, _ database: Database) throws -> Column {
    if let column = table.column(named: name) { return column }
    let names = table.publicColumns.map { table.name(of: $0) }
    let className = table.className ?? table.name
    let list = names.count > 20 ? "; 'schema' lists its \(names.count) properties" : "; it has \(names.joined(separator: ", "))"
    let near = Spelling.nearest(name, among: names).map { "; did you mean '\($0)'?" } ?? list
    throw CommandFailure(.usage, "\(className) has no property '\(Text.visible(Text.cut(name, toColumns: 64)))'\(near)")
}

/// `property=value`
private struct Condition {
    let column: Column
    let value: Mixed

    init(_ text: String, _ table: Table, _ database: Database, _ arguments: Arguments) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw arguments.usageError("option --where: '\(text)' is not of the form PROPERTY=VALUE")
        }
        column = try realm_sync.column(String(text[..<sign]), table, database)
        let name = table.name(of: column)
        guard column.collection == nil else {
            throw arguments.usageError("option --where: \(name) is a collection; only single values can be compared")
        }
        let word = String(text[text.index(after: sign)...])
        guard let value = ValueText.value(word, of: column.type) else {
            throw arguments.usageError(
                column.type == .link || column.type == .binary
                    ? "option --where: values of \(name) (\(column.type.propertyName)) can only be compared with null"
                    : "option --where: '\(word)' is no \(column.type.propertyName), as \(name) needs one")
        }
        self.value = value
    }

    func holds(for row: ObjectRow) throws -> Bool { Mixed.compare(try row.value(column), value) == 0 }
}
