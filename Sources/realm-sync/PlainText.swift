import SharedStore

/// What a property of plain data may be, narrowed down value by value.
struct InferredType {
    private enum Scalar: String { case int, double, bool, string, mixed }
    private var scalar: Scalar?
    private var isOptional = false
    /// A whole number that no double can hold: together with doubles only Mixed keeps all digits.
    private var hasLongInteger = false
    private var isList = false, isScalar = false
    private var elementIsOptional = false

    mutating func addMissing() { isOptional = true }

    mutating func add(_ cursor: JSONCursor) throws {
        var cursor = cursor
        switch try cursor.kind() {
        case .null: isOptional = true
        case .array:
            isList = true
            try cursor.forEachElement { element in
                if try element.kind() == .null { elementIsOptional = true } else { join(try scalar(element)) }
                try element.skip()
            }
        default:
            isScalar = true
            join(try scalar(cursor))
        }
    }

    mutating func addText(_ text: String) {
        isScalar = true
        join(scalar(text))
    }

    private mutating func join(_ other: Scalar) {
        guard let present = scalar else { return scalar = other }
        if present == other { return }
        scalar = [present, other].allSatisfy { $0 == .int || $0 == .double } ? .double : .mixed
    }

    private mutating func scalar(_ cursor: JSONCursor) throws -> Scalar {
        var cursor = cursor
        switch try cursor.kind() {
        case .string: return .string
        case .bool: return .bool
        case .number:
            guard case .int(let v) = try cursor.number() else { return .double }
            note(v)
            return .int
        case .object, .array, .null: return .mixed
        }
    }

    /// What is a number only to the eye, as a postal code or a number of twenty digits is, stays text: not a digit is lost.
    private mutating func scalar(_ text: String) -> Scalar {
        if let v = Int64(text), String(v) == text || "+\(v)" == text {
            note(v)
            return .int
        }
        if ["nan", "inf", "-inf"].contains(text.lowercased()) { return .double }
        let isFraction =
            text.utf8.allSatisfy { "0123456789+-.eE".utf8.contains($0) } && text.utf8.contains { ".eE".utf8.contains($0) }
        let digits = Array(text.utf8.drop { "+-".utf8.contains($0) })
        let hasLeadingZero =
            digits.count > 1 && digits[0] == UInt8(ascii: "0") && UInt8(ascii: "0")...UInt8(ascii: "9") ~= digits[1]
        if isFraction, !hasLeadingZero, let v = Double(text), v.isFinite { return .double }
        return text == "true" || text == "false" ? .bool : .string
    }

    private mutating func note(_ v: Int64) { if Int64(exactly: Double(v)) != v { hasLongInteger = true } }

    /// Lists and single values under one name can only be Mixed.
    private var isMixed: Bool { isList && isScalar || scalar == .mixed || scalar == .double && hasLongInteger }
    var isListProperty: Bool { isList && !isScalar }
    var wantsDouble: Bool { !isMixed && scalar == .double }
    /// In a table of text, where a value of another kind makes the column text.
    mutating func settleForText() { if isMixed { scalar = .string } }
    var isText: Bool { scalar == .string || scalar == nil }

    func property(_ name: String) -> String {
        let type = isMixed ? "mixed" : (scalar ?? .string).rawValue
        let optional = isMixed || (isListProperty ? elementIsOptional : isOptional || scalar == nil)
        return JSONText.object([
            ("name", .string(name)), ("type", .string(type)), ("collection", isListProperty ? "list" : .null),
            ("optional", .bool(optional)),
        ]).text
    }
}

/// `{"Class": [objects]}`: objects without types or keys, turned into the form that `export` writes.
struct PlainObjects {
    private let text: UnsafeRawBufferPointer

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    func exportForm() throws -> [UInt8] {
        var out = Array("{\"schemaVersion\":-1,\"classes\":{".utf8)
        var cursor = JSONCursor(text)
        var isFirst = true
        try cursor.forEachMember { name, cursor in
            if !isFirst { out.append(UInt8(ascii: ",")) }
            isFirst = false
            if name.isEmpty { throw cursor.error("a class without a name") }
            guard try cursor.kind() == .array else { throw cursor.error("class \"\(name)\" is no list of objects") }
            try self.addClass(name, &cursor, &out)
        }
        if !cursor.isAtEnd() { throw cursor.error("text behind the end") }
        out += Array("}}".utf8)
        return out
    }

    private func addClass(_ name: String, _ cursor: inout JSONCursor, _ out: inout [UInt8]) throws {
        var names: [String] = []
        var types: [ExactString: InferredType] = [:]
        var seen: [ExactString: Int] = [:]
        var count = 0
        let start = cursor
        try cursor.forEachElement { cursor in
            guard try cursor.kind() == .object else { throw cursor.error("an element of class \"\(name)\" is no object") }
            count += 1
            try cursor.forEachMember { property, cursor in
                let exact = ExactString(property)
                if types[exact] == nil {
                    names.append(property)
                    types[exact] = InferredType()
                }
                try types[exact]?.add(cursor)
                seen[exact, default: 0] += 1
                try cursor.skip()
            }
        }
        for property in names.lazy.map(ExactString.init) where seen[property, default: 0] < count {
            types[property]?.addMissing()
        }
        let properties = names.compactMap { name in types[ExactString(name)]?.property(name) }.joined(separator: ",")
        out += Array(PlainObjects.classBeginning(name, properties).utf8)
        var key = 0
        var again = start
        try again.forEachElement { cursor in
            out += Array("\(key == 0 ? "" : ",")\n{\"_key\":\(key)".utf8)
            key += 1
            var written: Set<ExactString> = []
            try cursor.forEachMember { property, cursor in
                guard written.insert(ExactString(property)).inserted else {
                    throw cursor.error("property \"\(property)\" stands twice in one object")
                }
                let type = types[ExactString(property)] ?? InferredType()
                // A list that is null is an empty one, as if it were missing.
                if try type.isListProperty && cursor.kind() == .null { return try cursor.skip() }
                out += Array(",\(JSONText.string(property).text):".utf8)
                try self.addValue(&cursor, type.wantsDouble, 0, &out)
            }
            out.append(UInt8(ascii: "}"))
        }
        out += Array("]}".utf8)
    }

    /// The text of a class up to its objects.
    static func classBeginning(_ name: String, _ properties: String) -> String {
        "\(JSONText.string(name).text):{\"embedded\":false,\"primaryKey\":null,\"properties\":[\(properties)],\"objects\":["
    }

    private static let depthMax = 100

    private func addValue(_ cursor: inout JSONCursor, _ asDouble: Bool, _ depth: Int, _ out: inout [UInt8]) throws {
        if depth == Self.depthMax { throw cursor.error("values are nested more than \(Self.depthMax) levels deep") }
        switch try cursor.kind() {
        case .array:
            out.append(UInt8(ascii: "["))
            var isFirst = true
            try cursor.forEachElement { cursor in
                if !isFirst { out.append(UInt8(ascii: ",")) }
                isFirst = false
                try self.addValue(&cursor, asDouble, depth + 1, &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object:
            out += Array("{\"$dict\":[".utf8)
            var isFirst = true
            var seen: Set<ExactString> = []
            try cursor.forEachMember { key, cursor in
                guard seen.insert(ExactString(key)).inserted else {
                    throw cursor.error("key \"\(key)\" stands twice in one object")
                }
                out += Array("\(isFirst ? "" : ",")[\(JSONText.string(key).text),".utf8)
                isFirst = false
                try self.addValue(&cursor, false, depth + 1, &out)
                out.append(UInt8(ascii: "]"))
            }
            out += Array("]}".utf8)
        case .number where asDouble:
            // As text, which keeps the sign of -0.
            out += Array("{\"$double\":\"".utf8)
            try addToken(&cursor, &out)
            out += Array("\"}".utf8)
        default: try addToken(&cursor, &out)
        }
    }

    /// The next value as it stands.
    private func addToken(_ cursor: inout JSONCursor, _ out: inout [UInt8]) throws {
        let start = cursor.offset
        try cursor.skip()
        out += text[start..<cursor.offset]
    }
}

/// Comma-separated values with a header row (RFC 4180); an empty field is null.
struct CommaSeparatedText {
    private let text: UnsafeRawBufferPointer

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    func exportForm(className: String) throws -> [UInt8] {
        var names: [String] = []
        var types: [InferredType] = []
        try forEachRow { row, at in
            if names.isEmpty {
                if Set(row.map { ExactString($0) }).count != row.count || row.contains("") {
                    throw JSONError(offset: at, "the header needs a different name for each column")
                }
                names = row
                types = row.map { _ in InferredType() }
                return
            }
            guard row.count == names.count else {
                throw JSONError(offset: at, "a row of \(row.count) fields, the header has \(names.count)")
            }
            for (i, field) in row.enumerated() { if field.isEmpty { types[i].addMissing() } else { types[i].addText(field) } }
        }
        if names.isEmpty { throw JSONError(offset: 0, "the header row is missing") }
        for i in types.indices { types[i].settleForText() }
        let properties = names.indices.map { types[$0].property(names[$0]) }.joined(separator: ",")
        var out = Array("{\"schemaVersion\":-1,\"classes\":{\(PlainObjects.classBeginning(className, properties))".utf8)
        var key = -1
        try forEachRow { row, _ in
            defer { key += 1 }
            if key < 0 { return }
            out += Array("\(key == 0 ? "" : ",")\n{\"_key\":\(key)".utf8)
            for (i, field) in row.enumerated() where !field.isEmpty {
                let value =
                    types[i].isText
                    ? JSONText.string(field).text
                    : types[i].wantsDouble ? "{\"$double\":\(JSONText.string(field).text)}" : CommaSeparatedText.number(field)
                out += Array(",\(JSONText.string(names[i]).text):\(value)".utf8)
            }
            out.append(UInt8(ascii: "}"))
        }
        out += Array("]}}}".utf8)
        return out
    }

    /// "+07" is a number, but no JSON.
    private static func number(_ field: String) -> String { Int64(field).map(String.init) ?? field }

    private func forEachRow(_ body: ([String], Int) throws -> Void) throws {
        let quote = UInt8(ascii: "\""), comma = UInt8(ascii: ","), lineFeed = UInt8(ascii: "\n"),
            carriageReturn = UInt8(ascii: "\r")
        var at = text.count >= 3 && text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF ? 3 : 0
        while at < text.count {
            let start = at
            var row: [String] = []
            var isEnd = false
            while !isEnd {
                var field: [UInt8] = []
                let fieldStart = at
                if at < text.count, text[at] == quote {
                    at += 1
                    while true {
                        guard at < text.count else { throw JSONError(offset: start, "a quoted field has no end") }
                        if text[at] == quote {
                            guard at + 1 < text.count, text[at + 1] == quote else { break }
                            at += 1
                        }
                        field.append(text[at])
                        at += 1
                    }
                    at += 1
                    guard at == text.count || [comma, lineFeed, carriageReturn].contains(text[at]) else {
                        throw JSONError(offset: at, "text behind the quotes of a field")
                    }
                }
                while at < text.count, text[at] != comma, text[at] != lineFeed, text[at] != carriageReturn {
                    field.append(text[at])
                    at += 1
                }
                row.append(try field.withUnsafeBytes { try JSONCursor.text($0, fieldStart) })
                isEnd = at >= text.count || text[at] != comma
                at += 1
                if isEnd, at < text.count, text[at - 1] == carriageReturn, text[at] == lineFeed { at += 1 }
            }
            // A line without anything is no row.
            if row != [""] { try body(row, start) }
        }
    }
}
