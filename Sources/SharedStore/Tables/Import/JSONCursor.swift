import Glibc

/// Text that is no JSON, or no JSON of the form that was expected: where, and what was wrong.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Bytes from the beginning.
    public let offset: Int
    /// For people.
    public let reason: String
    /// - Parameter offset: bytes from the beginning of the text.
    public init(offset: Int, _ reason: String) {
        self.offset = offset
        self.reason = reason
    }
    public var description: String { "byte \(offset): \(reason)" }
}

/// Reads JSON where it lies, value by value; nothing is kept, so a file larger than memory can be read.
///
/// A cursor is a value: whoever copies it can come back to a place later. Integers are exact.
public struct JSONCursor {
    /// All of the text, whatever was read of it.
    public let bytes: UnsafeRawBufferPointer
    /// The next byte that is looked at; to set it back is to read again.
    public var offset = 0

    /// Values within values, at most.
    static let depthMax = 512

    /// `bytes` must stay valid as long as the cursor is used. A byte order mark is passed over.
    public init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { offset = 3 }
    }

    /// What a value is by its first character.
    public enum Kind: Sendable { case object, array, string, number, bool, null }

    /// An error at the place where the cursor is.
    public func error(_ reason: String) -> JSONError { JSONError(offset: offset, reason) }

    // MARK: Tokens

    private mutating func skipSpace() {
        while offset < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[offset]) { offset += 1 }
    }

    /// The kind of the next value.
    public mutating func kind() throws -> Kind {
        skipSpace()
        guard offset < bytes.count else { throw error("the text ends where a value should stand") }
        switch bytes[offset] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
        default: throw error("no value begins with byte \(bytes[offset])")
        }
    }

    private mutating func expect(_ byte: UInt8) throws {
        skipSpace()
        guard offset < bytes.count, bytes[offset] == byte else { throw error("'\(Character(UnicodeScalar(byte)))' expected") }
        offset += 1
    }

    private mutating func expect(_ word: StaticString) throws {
        let count = word.utf8CodeUnitCount
        guard bytes.count - offset >= count, memcmp(bytes.baseAddress! + offset, word.utf8Start, count) == 0 else {
            throw error("\"\(word)\" expected")
        }
        offset += count
    }

    /// True at the end of the text.
    public mutating func isAtEnd() -> Bool {
        skipSpace()
        return offset == bytes.count
    }

    /// Calls `body` with each key of an object; it must read or skip the value.
    public mutating func forEachMember(_ body: (String, inout JSONCursor) throws -> Void) throws {
        try expect(UInt8(ascii: "{"))
        var isFirst = true
        while true {
            skipSpace()
            if isFirst, offset < bytes.count, bytes[offset] == UInt8(ascii: "}") { offset += 1; return }
            if !isFirst {
                guard offset < bytes.count else { throw error("the object has no end") }
                if bytes[offset] == UInt8(ascii: "}") { offset += 1; return }
                try expect(UInt8(ascii: ","))
                skipSpace()
            }
            isFirst = false
            let key = try string()
            try expect(UInt8(ascii: ":"))
            try body(key, &self)
        }
    }

    /// Calls `body` before each element of an array; it must read or skip the element.
    public mutating func forEachElement(_ body: (inout JSONCursor) throws -> Void) throws {
        try expect(UInt8(ascii: "["))
        var isFirst = true
        while true {
            skipSpace()
            if isFirst, offset < bytes.count, bytes[offset] == UInt8(ascii: "]") { offset += 1; return }
            if !isFirst {
                guard offset < bytes.count else { throw error("the array has no end") }
                if bytes[offset] == UInt8(ascii: "]") { offset += 1; return }
                try expect(UInt8(ascii: ","))
            }
            isFirst = false
            try body(&self)
        }
    }

    /// Passes over the next value, whatever it is.
    public mutating func skip() throws {
        var depth = 0
        repeat {
            switch try kind() {
            case .object, .array:
                depth += 1
                if depth > Self.depthMax { throw error("values are nested more than \(Self.depthMax) levels deep") }
                offset += 1
                if try closes(&depth) { break }
                continue
            case .string: try skipString()
            case .number: _ = try passNumber()
            case .bool: _ = try bool()
            case .null: try null()
            }
            // Behind a value: what follows within its container.
            while depth > 0 {
                skipSpace()
                guard offset < bytes.count else { throw error("the text ends within a value") }
                if bytes[offset] == UInt8(ascii: "]") || bytes[offset] == UInt8(ascii: "}") {
                    offset += 1
                    depth -= 1
                    continue
                }
                guard bytes[offset] == UInt8(ascii: ",") || bytes[offset] == UInt8(ascii: ":") else {
                    throw error("',' or ':' expected")
                }
                offset += 1
                break
            }
        } while depth > 0
    }

    /// An empty container ends at once.
    private mutating func closes(_ depth: inout Int) throws -> Bool {
        skipSpace()
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: "]") || bytes[offset] == UInt8(ascii: "}") else { return false }
        offset += 1
        depth -= 1
        return true
    }

    // MARK: Scalars

    /// Passes over `null`.
    ///
    /// - Throws: `JSONError` where something else stands there.
    public mutating func null() throws {
        skipSpace()
        try expect("null")
    }

    /// - Throws: `JSONError` where neither `true` nor `false` stands there.
    public mutating func bool() throws -> Bool {
        skipSpace()
        if offset < bytes.count, bytes[offset] == UInt8(ascii: "t") {
            try expect("true")
            return true
        }
        try expect("false")
        return false
    }

    /// An integer keeps all its digits.
    public enum Number: Equatable, Sendable { case int(Int64), double(Double) }

    /// A number: an integer where it is written as one, else a double.
    ///
    /// - Throws: where neither can hold it: a whole number beyond 64 bits loses digits as a double, which the text did not ask
    ///   for.
    public mutating func number() throws -> Number {
        skipSpace()
        let start = offset
        let isInteger = try passNumber()
        let text = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<offset]), as: UTF8.self)
        if isInteger {
            if let v = Int64(text) { return .int(v) }
            guard let digits = UInt64(text), let v = Double(exactly: digits) else {
                throw JSONError(
                    offset: start,
                    "\(text.prefix(40)) does not fit 64 bits; write it as a string, or with a point where a double will do")
            }
            return .double(v)
        }
        guard let v = Double(text), v.isFinite else {
            throw JSONError(offset: start, "\(text.prefix(40)) is beyond what a double can hold")
        }
        return .double(v)
    }

    /// Passes over a number (RFC 8259 6); true where it has neither fraction nor exponent.
    private mutating func passNumber() throws -> Bool {
        let start = offset
        func digit(_ at: Int) -> Bool { at < bytes.count && UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[at] }
        func wrong() -> JSONError {
            var end = start
            while end < bytes.count, end < start + 40, digit(end) || "+-.eE".utf8.contains(bytes[end]) { end += 1 }
            return JSONError(offset: start, "\"\(String(decoding: bytes[start..<end], as: UTF8.self))\" is no number")
        }
        if offset < bytes.count, bytes[offset] == UInt8(ascii: "-") { offset += 1 }
        guard digit(offset) else { throw wrong() }
        if bytes[offset] == UInt8(ascii: "0") { offset += 1 } else { while digit(offset) { offset += 1 } }
        var isInteger = true
        if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
            isInteger = false
            offset += 1
            guard digit(offset) else { throw wrong() }
            while digit(offset) { offset += 1 }
        }
        if offset < bytes.count, bytes[offset] == UInt8(ascii: "e") || bytes[offset] == UInt8(ascii: "E") {
            isInteger = false
            offset += 1
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") { offset += 1 }
            guard digit(offset) else { throw wrong() }
            while digit(offset) { offset += 1 }
        }
        if digit(offset) || offset < bytes.count && "+-.eE".utf8.contains(bytes[offset]) { throw wrong() }
        return isInteger
    }

    /// - Throws: `JSONError` where something else than an integer of 64 bits stands there; `1.0` is none.
    public mutating func integer() throws -> Int64 {
        let start = offset
        guard case .int(let v) = try number() else { throw JSONError(offset: start, "an integer of 64 bits expected") }
        return v
    }

    private mutating func skipString() throws {
        try expect(UInt8(ascii: "\""))
        while true {
            guard offset < bytes.count else { throw error("the string has no end") }
            let byte = bytes[offset]
            offset += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return }
        }
    }

    /// The text without its escapes.
    ///
    /// - Throws: `JSONError` where there is no string, it has no end, or an escape is wrong.
    public mutating func string() throws -> String {
        try expect(UInt8(ascii: "\""))
        let start = offset
        while offset < bytes.count, bytes[offset] != UInt8(ascii: "\""), bytes[offset] != UInt8(ascii: "\\") { offset += 1 }
        guard offset < bytes.count else { throw error("the string has no end") }
        if bytes[offset] == UInt8(ascii: "\"") {
            offset += 1
            return try Self.text(UnsafeRawBufferPointer(rebasing: bytes[start..<offset - 1]), start)
        }
        var out = Array(bytes[start..<offset])
        while true {
            guard offset < bytes.count else { throw error("the string has no end") }
            let byte = bytes[offset]
            offset += 1
            if byte == UInt8(ascii: "\"") { return try out.withUnsafeBytes { try Self.text($0, start) } }
            if byte != UInt8(ascii: "\\") {
                out.append(byte)
                continue
            }
            guard offset < bytes.count else { throw error("the string has no end") }
            let escape = bytes[offset]
            offset += 1
            switch escape {
            case UInt8(ascii: "n"): out.append(10)
            case UInt8(ascii: "t"): out.append(9)
            case UInt8(ascii: "r"): out.append(13)
            case UInt8(ascii: "b"): out.append(8)
            case UInt8(ascii: "f"): out.append(12)
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): out.append(escape)
            case UInt8(ascii: "u"):
                var code = try unit()
                if 0xD800..<0xDC00 ~= code, bytes.count - offset >= 6, bytes[offset] == UInt8(ascii: "\\"),
                    bytes[offset + 1] == UInt8(ascii: "u")
                {
                    let mark = offset
                    offset += 2
                    let low = try unit()
                    if 0xDC00..<0xE000 ~= low { code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00) } else { offset = mark }
                }
                guard let scalar = UnicodeScalar(code) else {
                    throw error("half of a pair of surrogates, which stands for nothing")
                }
                out.append(contentsOf: String(scalar).utf8)
            default: throw error("unknown escape in a string")
            }
        }
    }

    /// A string of these bytes, which begin at `start`: other text than was given is never made of it.
    public static func text(_ bytes: UnsafeRawBufferPointer, _ start: Int) throws -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw JSONError(offset: start, "a string that is no UTF-8; convert the text first, as 'iconv -t UTF-8' does")
        }
        return text
    }

    private mutating func unit() throws -> UInt32 {
        guard bytes.count - offset >= 4, let v = parseHexadecimal(bytes[offset..<offset + 4]) else {
            throw error("four hex digits expected")
        }
        offset += 4
        return UInt32(v)
    }
}
