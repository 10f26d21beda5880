import SharedStore

/// Values of properties as text in tables, and values from the command line.
struct ValueText {
    let group: Group

    /// The value of any column, short enough for a cell: a collection is its number of elements.
    func cell(_ row: ObjectRow, _ column: Column) throws -> String {
        switch column.collection {
        case .list: return count(try row.list(column).count)
        case .set: return count(try row.set(column).count)
        case .dictionary: return count(try row.dictionary(column).count)
        case nil: break
        }
        let value = try row.value(column)
        switch value {
        case .list: return count(try row.list(column).count)
        case .dictionary: return count(try row.dictionary(column).count)
        default: return try text(value)
        }
    }

    private func count(_ count: Int) -> String { "[\(count)]" }

    func text(_ value: Mixed) throws -> String {
        switch value {
        case .null: "null"
        case .int(let value): String(value)
        case .bool(let value): value ? "true" : "false"
        case .float(let value): value.description
        case .double(let value): value.description
        case .string(let value): value
        case .binary(let bytes):
            bytes.count > 16
                ? "<\(bytes.count) bytes>" : "<" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + ">"
        case .timestamp(let value):
            Units.text(seconds: value.seconds, nanoseconds: value.nanoseconds)
                ?? "\(value.seconds) s, \(value.nanoseconds) ns since 1970"
        case .decimal(let value): value.description
        case .objectId(let value): value.description
        case .uuid(let value): value.description
        case .link(let table, let object): "\(try group.name(ofTarget: table) ?? "table \(table.rawValue)")#\(object.rawValue)"
        case .list: "[list]"
        case .dictionary: "[dictionary]"
        }
    }

    // MARK: From the command line

    /// The value that `text` stands for in a column of `type`; nil where it stands for none.
    ///
    /// `null` is null for every type; a string that reads so is written in quotation marks, as any string may be.
    static func value(_ text: String, of type: ColumnType) -> Mixed? {
        if text == "null" { return .null }
        switch type {
        case .int: return Int64(text).map(Mixed.int)
        case .bool: return text == "true" || text == "1" ? .bool(true) : text == "false" || text == "0" ? .bool(false) : nil
        case .float: return Float(text).map(Mixed.float)
        case .double: return Double(text).map(Mixed.double)
        case .string: return .string(unquoted(text))
        case .decimal: return Decimal128Bits(text).map(Mixed.decimal)
        case .objectId: return ObjectIdValue(text).map(Mixed.objectId)
        case .uuid: return UUIDValue(text).map(Mixed.uuid)
        case .timestamp: return Units.moment(text).map { .timestamp(Timestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds)) }
        case .mixed:
            if let value = Int64(text) { return .int(value) }
            if let value = Double(text) { return .double(value) }
            if text == "true" || text == "false" { return .bool(text == "true") }
            return .string(unquoted(text))
        case .binary, .link, .backlink, .typedLink: return nil
        }
    }

    private static func unquoted(_ text: String) -> String {
        text.count >= 2 && text.first == "\"" && text.last == "\"" ? String(text.dropFirst().dropLast()) : text
    }
}
