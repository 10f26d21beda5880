import SharedStore

extension Command {
    static let query = Command(
        name: "query",
        summary: "Show objects of a class.",
        details: [
            "Objects are shown in the order of their keys, as a table; of a collection the number of its elements is shown, as [3]. "
                + "Each --where must hold. A date is written as 2024-02-29T12:30:00Z or as seconds since 1970; null stands for null.",
        ],
        operands: [.file, Operand(name: "CLASS", help: "The name of a class, as 'schema' shows it.")],
        options: [
            .value("where", "w", "PROPERTY=VALUE", "Show only objects whose property has this value.", isRepeated: true),
            .value("columns", "c", "A,B,...", "Show these properties only."),
            .value("limit", "n", "N", "Show at most N objects (20 where none is given, 0 for all)."),
            .keyFile, .immutable,
            .flag("json", "j", "Write the objects as a JSON array, in the form of 'export'."),
        ],
        run: runQuery)
}

private func runQuery(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let limit = try arguments.integer("limit", in: 0...Int.max) ?? 20
    let database = try Database.open(invocation)
    let table = try database.table(arguments.operand("CLASS"))
    let conditions = try arguments.strings("where").map { try Condition($0, table, database, arguments) }

    /// Calls `body` for the objects that are wanted; returns whether there are more.
    func forEachMatch(_ body: (ObjectRow) throws -> Void) throws -> Bool {
        var shown = 0
        var hasMore = false
        try table.scanLeaves { leaf in
            for index in 0..<leaf.count {
                let row = leaf.row(index)
                guard try conditions.allSatisfy({ try $0.holds(for: row) }) else { continue }
                if limit > 0 && shown == limit {
                    hasMore = true
                    return false
                }
                shown += 1
                try body(row)
            }
            return true
        }
        return hasMore
    }

    if invocation.wantsJSON {
        let output = invocation.output
        try JSONExporter.export(objectsOf: table, in: database.group, to: { try output.write($0) }) { write in
            _ = try forEachMatch(write)
        }
        try output.write("\n")
        return .ok
    }
    let columns = try arguments.string("columns").map { list in
        try list.split(separator: ",").map { try column(String($0), table, database) }
    } ?? Array(table.publicColumns)
    let rightAligned: Set<ColumnType> = [.int, .float, .double, .decimal]
    var text = TextTable(
        titles: ["_key"] + columns.map { table.name(of: $0) },
        alignments: [.right] + columns.map { $0.collection == nil && rightAligned.contains($0.type) ? .right : .left })
    let values = ValueText(group: database.group)
    let hasMore = try forEachMatch { row in
        text.add(["\(row.key.rawValue)"] + (try columns.map { try values.cell(row, $0) }))
    }
    try text.write(to: invocation.output)
    if text.isEmpty { invocation.console.message("no object of \(table.className ?? table.name) matches") }
    if hasMore { invocation.console.message("only the first \(limit) objects are shown; --limit 0 shows all") }
    return .ok
}

private func column(_ name: String, _ table: Table, _ database: Database) throws -> Column {
    if let column = table.column(named: name) { return column }
    let names = table.publicColumns.map { table.name(of: $0) }
    let near = Spelling.nearest(name, among: names).map { "; did you mean '\($0)'?" } ?? "; it has \(names.joined(separator: ", "))"
    throw CommandFailure(.usage, "\(table.className ?? table.name) has no property '\(name)'\(near)")
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
            throw arguments.usageError(column.type == .link || column.type == .binary
                ? "option --where: values of \(name) (\(column.type.propertyName)) can only be compared with null"
                : "option --where: '\(word)' is no \(column.type.propertyName), as \(name) needs one")
        }
        self.value = value
    }

    func holds(for row: ObjectRow) throws -> Bool { Mixed.compare(try row.value(column), value) == 0 }
}
