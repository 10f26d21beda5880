/// A JSON value in which nothing is lost: integers are exact, members keep their order, numbers that are no integers keep
/// their text.
public enum ExactJSON: Equatable, Sendable, CustomStringConvertible {
    case null
    case bool(Bool)
    case integer(Int64)
    /// A number with fraction or exponent, or beyond 64 bits, as it is spelled.
    case number(String)
    case string(String)
    case array([ExactJSON])
    case object([Member])

    public struct Member: Equatable, Sendable {
        public var name: String
        public var value: ExactJSON
        public init(_ name: String, _ value: ExactJSON) {
            self.name = name
            self.value = value
        }
    }

    /// The value of the first member with this name.
    public subscript(_ name: String) -> ExactJSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    public var members: [Member] { if case .object(let members) = self { members } else { [] } }
    public var elements: [ExactJSON] { if case .array(let elements) = self { elements } else { [] } }
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

    public var description: String {
        switch self {
        case .null: "null"
        case .bool(let v): "\(v)"
        case .integer(let v): "\(v)"
        case .number(let v): v
        case .string(let v): "\"\(v)\""
        case .array(let v): "[" + v.map(\.description).joined(separator: ",") + "]"
        case .object(let v): "{" + v.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",") + "}"
        }
    }

    public struct SyntaxError: Error, Equatable, CustomStringConvertible {
        public let offset: Int
        public let reason: String
        public var description: String { "JSON, byte \(offset): \(reason)" }
    }

    public init(parsing text: some Sequence<UInt8>) throws {
        var parser = Parser(bytes: Array(text))
        self = try parser.document()
    }

    public init(parsing text: String) throws { try self.init(parsing: text.utf8) }

    // MARK: Comparison

    /// Where `other` differs first: the path, and both values; nil where all is equal, member order included.
    public func firstDifference(_ other: ExactJSON, path: String = "") -> String? {
        switch (self, other) {
        case (.array(let a), .array(let b)):
            for i in 0..<min(a.count, b.count) {
                if let difference = a[i].firstDifference(b[i], path: path + "[\(i)]") { return difference }
            }
            return a.count == b.count ? nil : "\(path): \(a.count) elements and \(b.count)"
        case (.object(let a), .object(let b)):
            for i in 0..<min(a.count, b.count) {
                if a[i].name != b[i].name { return "\(path): member \(i) is \(a[i].name) and \(b[i].name)" }
                if let difference = a[i].value.firstDifference(b[i].value, path: path + "." + a[i].name) { return difference }
            }
            return a.count == b.count ? nil : "\(path): \(a.count) members and \(b.count)"
        default:
            return self == other
                ? nil : "\(path): \(String(description.prefix(200))) and \(String(other.description.prefix(200)))"
        }
    }

    /// The value with every array below the named members, and the entries of every `$dict`, in an order of its own, so that two
    /// values that differ only in the order of sets and dictionaries become equal.
    public func withSortedArrays(under names: Set<String>, here: Bool = false) -> ExactJSON {
        switch self {
        case .array(let elements):
            let inner = elements.map { $0.withSortedArrays(under: names) }
            return .array(here ? inner.sorted { $0.description < $1.description } : inner)
        case .object(let members):
            return .object(
                members.map {
                    Member($0.name, $0.value.withSortedArrays(under: names, here: $0.name == "$dict" || names.contains($0.name)))
                })
        default: return self
        }
    }
}

private struct Parser {
    let bytes: [UInt8]
    var at = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    func fail(_ reason: String) -> ExactJSON.SyntaxError { ExactJSON.SyntaxError(offset: at, reason: reason) }

    var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    mutating func skipSpace() {
        while let c = next, c == 32 || c == 10 || c == 13 || c == 9 { at += 1 }
    }

    mutating func document() throws -> ExactJSON {
        let value = try value(0)
        skipSpace()
        if next != nil { throw fail("something behind the value") }
        return value
    }

    mutating func expect(_ text: StaticString) throws {
        for i in 0..<text.utf8CodeUnitCount {
            if next != text.utf8Start[i] { throw fail("expected \(text)") }
            at += 1
        }
    }

    mutating func value(_ depth: Int) throws -> ExactJSON {
        if depth > 2000 { throw fail("nested too deep") }
        skipSpace()
        switch next {
        case UInt8(ascii: "n"):
            try expect("null")
            return .null
        case UInt8(ascii: "t"):
            try expect("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try expect("false")
            return .bool(false)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "["):
            at += 1
            var elements: [ExactJSON] = []
            skipSpace()
            if next == UInt8(ascii: "]") {
                at += 1
                return .array([])
            }
            while true {
                elements.append(try value(depth + 1))
                skipSpace()
                if next == UInt8(ascii: "]") {
                    at += 1
                    return .array(elements)
                }
                try expect(",")
            }
        case UInt8(ascii: "{"):
            at += 1
            var members: [ExactJSON.Member] = []
            skipSpace()
            if next == UInt8(ascii: "}") {
                at += 1
                return .object([])
            }
            while true {
                skipSpace()
                let name = try string()
                skipSpace()
                try expect(":")
                members.append(ExactJSON.Member(name, try value(depth + 1)))
                skipSpace()
                if next == UInt8(ascii: "}") {
                    at += 1
                    return .object(members)
                }
                try expect(",")
            }
        case .some(let c) where c == UInt8(ascii: "-") || c >= 48 && c <= 57: return try number()
        default: throw fail("no value")
        }
    }

    mutating func number() throws -> ExactJSON {
        let start = at
        if next == UInt8(ascii: "-") { at += 1 }
        func digits(_ parser: inout Parser) throws {
            let first = parser.at
            while let c = parser.next, c >= 48 && c <= 57 { parser.at += 1 }
            if parser.at == first { throw parser.fail("expected a digit") }
        }
        let first = at
        try digits(&self)
        if bytes[first] == 48 && at > first + 1 { throw fail("a number with a leading zero") }
        var isInteger = true
        if next == UInt8(ascii: ".") {
            isInteger = false
            at += 1
            try digits(&self)
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isInteger = false
            at += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { at += 1 }
            try digits(&self)
        }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .integer(value) }
        return .number(text)
    }

    mutating func string() throws -> String {
        try expect("\"")
        var out: [UInt8] = []
        while true {
            guard let c = next else { throw fail("text without end") }
            at += 1
            switch c {
            case UInt8(ascii: "\""):
                guard let text = String(validating: out, as: UTF8.self) else { throw fail("text is no UTF-8") }
                return text
            case UInt8(ascii: "\\"): try escape(&out)
            case 0..<32: throw fail("control character in a text")
            default: out.append(c)
            }
        }
    }

    mutating func escape(_ out: inout [UInt8]) throws {
        guard let c = next else { throw fail("text without end") }
        at += 1
        switch c {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): out.append(c)
        case UInt8(ascii: "b"): out.append(8)
        case UInt8(ascii: "f"): out.append(12)
        case UInt8(ascii: "n"): out.append(10)
        case UInt8(ascii: "r"): out.append(13)
        case UInt8(ascii: "t"): out.append(9)
        case UInt8(ascii: "u"):
            var unit = try hexadecimal()
            if unit >= 0xD800 && unit < 0xDC00 {
                try expect("\\u")
                let low = try hexadecimal()
                if low < 0xDC00 || low > 0xDFFF { throw fail("half of a surrogate pair") }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else { throw fail("half of a surrogate pair") }
            out.append(contentsOf: Array(String(Character(scalar)).utf8))
        default: throw fail("unknown escape")
        }
    }

    mutating func hexadecimal() throws -> UInt32 {
        guard at + 4 <= bytes.count, let value = UInt32(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16),
            bytes[at] != UInt8(ascii: "+")
        else {
            throw fail("expected four hex digits")
        }
        at += 4
        return value
    }
}

extension ExactJSON {
    /// The same bytes, white space between values aside: equal without being parsed. False proves nothing.
    public static func isSameText(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.withUnsafeBufferPointer { p in
            b.withUnsafeBufferPointer { q in
                func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte == 10 || byte == 13 || byte == 9 }
                var i = 0, k = 0, isInString = false, isEscaped = false
                while true {
                    if !isInString {
                        while i < p.count, isSpace(p[i]) { i += 1 }
                        while k < q.count, isSpace(q[k]) { k += 1 }
                    }
                    if i == p.count || k == q.count { return i == p.count && k == q.count }
                    if p[i] != q[k] { return false }
                    if isEscaped {
                        isEscaped = false
                    } else if isInString && p[i] == 92 {
                        isEscaped = true
                    } else if p[i] == 34 {
                        isInString.toggle()
                    }
                    i += 1
                    k += 1
                }
            }
        }
    }
}
