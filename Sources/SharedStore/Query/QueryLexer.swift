/// Cuts a query text into tokens (query-language 1). Everything is decided by the bytes alone, so that a text means the same
/// whatever schema it meets.
struct QueryLexer {
    private let bytes: [UInt8]
    private var position = 0
    /// Where a date stands that no calendar has, if one does; the first one.
    private(set) var impossibleDate: Range<Int>?

    init(_ text: String) { bytes = Array(text.utf8) }

    static func tokens(of text: String) throws -> [QueryToken] {
        var lexer = QueryLexer(text)
        var tokens: [QueryToken] = []
        repeat { tokens.append(try lexer.next()) } while tokens[tokens.count - 1].kind != .end
        return tokens
    }

    private func byte(_ distance: Int = 0) -> UInt8 {
        let p = position + distance
        return p < bytes.count ? bytes[p] : 0
    }

    mutating func next() throws -> QueryToken {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        let start = position
        return QueryToken(kind: try nextKind(), offset: start)
    }

    private mutating func nextKind() throws -> QueryToken.Kind {
        guard position < bytes.count else { return .end }
        let c = bytes[position]
        if c == UInt8(ascii: "T"), let time = try secondsAndNanoseconds() { return time }
        if isDigit(c), let date = try calendarDate() { return date }
        if isDigit(c) || c == UInt8(ascii: ".") && isDigit(byte(1)) { return number(signLength: 0) }
        if c == UInt8(ascii: "+") || c == UInt8(ascii: "-") {
            if isDigit(byte(1)) || byte(1) == UInt8(ascii: ".") && isDigit(byte(2)) { return number(signLength: 1) }
            if let special = specialNumber(signLength: 1) { return special }
        }
        if let special = specialNumber(signLength: 0) { return special }
        if c == UInt8(ascii: "$"), let argument = argument() { return argument }
        if isNameStart(c) || c == UInt8(ascii: "\\") && isEscapedBlank(byte(1)) { return name() }
        switch c {
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .string(try string(quote: c))
        case UInt8(ascii: "@"): return try operation()
        case UInt8(ascii: "%"): return try placeholder()
        case UInt8(ascii: "#"):
            guard isNameStart(byte(1)) else { throw notAllowed() }
            position += 1
            switch name() {
            case .word(let text), .name(let text): return .name(text)
            default: throw notAllowed()
            }
        default: return try symbol(c)
        }
    }

    private func notAllowed() -> QueryError {
        let rest = String(decoding: bytes[position...].prefix(4), as: UTF8.self)
        return QueryError(.syntax, "character not allowed here: '\(rest.first.map(String.init) ?? "")'", at: position)
    }

    // MARK: Symbols

    private mutating func symbol(_ c: UInt8) throws -> QueryToken.Kind {
        let pair = (c, byte(1))
        func second(_ s: Unicode.Scalar) -> Bool { pair.1 == UInt8(ascii: s) }
        let (kind, length): (QueryToken.Kind, Int)
        switch c {
        case UInt8(ascii: "="):
            (kind, length) =
                second("=") ? (.equal, 2) : second("<") ? (.lessOrEqual, 2) : second(">") ? (.greaterOrEqual, 2) : (.equal, 1)
        case UInt8(ascii: "!"): (kind, length) = second("=") ? (.notEqual, 2) : (.not, 1)
        case UInt8(ascii: "<"): (kind, length) = second("=") ? (.lessOrEqual, 2) : second(">") ? (.notEqual, 2) : (.less, 1)
        case UInt8(ascii: ">"): (kind, length) = second("=") ? (.greaterOrEqual, 2) : (.greater, 1)
        case UInt8(ascii: "&") where second("&"): (kind, length) = (.and, 2)
        case UInt8(ascii: "|") where second("|"): (kind, length) = (.or, 2)
        case UInt8(ascii: "+"): (kind, length) = (.plus, 1)
        case UInt8(ascii: "-"): (kind, length) = (.minus, 1)
        case UInt8(ascii: "*"): (kind, length) = (.star, 1)
        case UInt8(ascii: "/"): (kind, length) = (.slash, 1)
        case UInt8(ascii: "("): (kind, length) = (.leftParenthesis, 1)
        case UInt8(ascii: ")"): (kind, length) = (.rightParenthesis, 1)
        case UInt8(ascii: "{"): (kind, length) = (.leftBrace, 1)
        case UInt8(ascii: "}"): (kind, length) = (.rightBrace, 1)
        case UInt8(ascii: "["): (kind, length) = (.leftBracket, 1)
        case UInt8(ascii: "]"): (kind, length) = (.rightBracket, 1)
        case UInt8(ascii: ","): (kind, length) = (.comma, 1)
        case UInt8(ascii: "."): (kind, length) = (.dot, 1)
        default: throw notAllowed()
        }
        position += length
        return kind
    }

    // MARK: Names and operators

    private func isDigit(_ c: UInt8) -> Bool { c >= 48 && c <= 57 }
    private func isLetter(_ c: UInt8) -> Bool { c | 0x20 >= 97 && c | 0x20 <= 122 }
    private func isNameStart(_ c: UInt8) -> Bool { isLetter(c) || c == UInt8(ascii: "_") || c == UInt8(ascii: "$") || c >= 0x80 }
    private func isNamePart(_ c: UInt8) -> Bool { isNameStart(c) || isDigit(c) || c == UInt8(ascii: "-") }
    private func isEscapedBlank(_ c: UInt8) -> Bool {
        [UInt8(ascii: " "), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t")].contains(c)
    }

    private mutating func name() -> QueryToken.Kind {
        if let literal = identifierLiteral() { return literal }
        var text: [UInt8] = []
        var isEscaped = false
        while position < bytes.count {
            let c = bytes[position]
            if isNamePart(c) {
                text.append(c)
                position += 1
            } else if c == UInt8(ascii: "\\"), isEscapedBlank(byte(1)) {
                switch byte(1) {
                case UInt8(ascii: "n"): text.append(0x0A)
                case UInt8(ascii: "r"): text.append(0x0D)
                case UInt8(ascii: "t"): text.append(0x09)
                default: text.append(0x20)
                }
                isEscaped = true
                position += 2
            } else {
                break
            }
        }
        let word = String(decoding: text, as: UTF8.self)
        return isEscaped ? .name(word) : .word(word)
    }

    /// `oid(…)`, `uuid(…)` and `B64"…"`, where the whole form is right; otherwise the word is a name.
    private mutating func identifierLiteral() -> QueryToken.Kind? {
        let rest = bytes[position...]
        if rest.starts(with: "oid(".utf8), let text = parenthesized(from: position + 4), let value = ObjectIdValue(text) {
            position += 4 + text.utf8.count + 1
            return .objectId(value)
        }
        if rest.starts(with: "uuid(".utf8), let text = parenthesized(from: position + 5), let value = UUIDValue(text) {
            position += 5 + text.utf8.count + 1
            return .uuid(value)
        }
        if rest.starts(with: "B64\"".utf8), let end = bytes[(position + 4)...].firstIndex(of: UInt8(ascii: "\"")),
            let value = Base64.decode(bytes[(position + 4)..<end])
        {
            position = end + 1
            return .base64(value)
        }
        return nil
    }

    private func parenthesized(from start: Int) -> String? {
        guard start <= bytes.count, let end = bytes[start...].prefix(40).firstIndex(of: UInt8(ascii: ")")) else { return nil }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func operation() throws -> QueryToken.Kind {
        var end = position + 1
        while end < bytes.count, isLetter(bytes[end]) { end += 1 }
        let text = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
        switch text {
        case "count", "size", "min", "max", "sum", "avg", "type", "links", "keys", "values", "allKeys", "allValues":
            position = end
            return .operation(text)
        case "": throw notAllowed()
        default: throw QueryError(.syntax, "Unsupported collection operation '@\(text)'", at: position)
        }
    }

    // MARK: Arguments

    private mutating func argument() -> QueryToken.Kind? {
        let isPath = byte(1) == UInt8(ascii: "K")
        var end = position + (isPath ? 2 : 1)
        let start = end
        while end < bytes.count, isDigit(bytes[end]) { end += 1 }
        guard end > start, end - start <= 6, let index = Int(String(decoding: bytes[start..<end], as: UTF8.self)) else {
            return nil
        }
        position = end
        return isPath ? .pathArgument(index) : .argument(index)
    }

    private mutating func placeholder() throws -> QueryToken.Kind {
        for form in ["@", "K", "lld", "llu", "ld", "lu", "lf", "d", "i", "u", "x", "f", "g", "e", "c"] {
            guard bytes[(position + 1)...].starts(with: form.utf8) else { continue }
            let after = position + 1 + form.utf8.count
            if form != "@", after < bytes.count, isNamePart(bytes[after]) { continue }
            position = after
            return form == "@" ? .placeholder : form == "K" ? .pathPlaceholder : .numberPlaceholder
        }
        throw notAllowed()
    }

    // MARK: Numbers

    private func digitsEnd(_ start: Int) -> Int {
        var end = start
        while end < bytes.count, isDigit(bytes[end]) { end += 1 }
        return end
    }

    private mutating func number(signLength: Int) -> QueryToken.Kind {
        let start = position
        var end = start + signLength
        if bytes[end] == UInt8(ascii: "0"), end + 1 < bytes.count, bytes[end + 1] | 0x20 == UInt8(ascii: "x") {
            var last = end + 2
            while last < bytes.count, isDigit(bytes[last]) || bytes[last] | 0x20 >= 97 && bytes[last] | 0x20 <= 102 { last += 1 }
            if last > end + 2 {
                position = last
                return .integer(String(decoding: bytes[start..<last], as: UTF8.self))
            }
        }
        end = digitsEnd(end)
        var isFraction = false
        if end < bytes.count, bytes[end] == UInt8(ascii: ".") {
            isFraction = true
            end = digitsEnd(end + 1)
        }
        if end < bytes.count, bytes[end] | 0x20 == UInt8(ascii: "e") {
            var exponent = end + 1
            if exponent < bytes.count, bytes[exponent] == UInt8(ascii: "+") || bytes[exponent] == UInt8(ascii: "-") {
                exponent += 1
            }
            let last = digitsEnd(exponent)
            if last > exponent {
                isFraction = true
                end = last
            }
        }
        let text = String(decoding: bytes[start..<end], as: UTF8.self)
        position = end
        if end < bytes.count, bytes[end] == UInt8(ascii: "f"), end + 1 == bytes.count || !isNamePart(bytes[end + 1]) {
            position = end + 1
            return .fraction(text, isFloat: true)
        }
        return isFraction ? .fraction(text, isFloat: false) : signLength > 0 ? .integer(text) : .digits(text)
    }

    private mutating func specialNumber(signLength: Int) -> QueryToken.Kind? {
        let start = position + signLength
        guard start < bytes.count, isLetter(bytes[start]) else { return nil }
        var end = start
        while end < bytes.count, isNamePart(bytes[end]), end - start < 9 { end += 1 }
        let isNegative = signLength > 0 && bytes[position] == UInt8(ascii: "-")
        switch String(decoding: bytes[start..<end], as: UTF8.self).lowercased() {
        case "inf", "infinity":
            position = end
            return .infinity(isNegative: isNegative)
        case "nan":
            position = end
            return .nan
        default: return nil
        }
    }

    // MARK: Times

    private func integer(_ range: Range<Int>) -> Int64? { Int64(String(decoding: bytes[range], as: UTF8.self)) }

    /// `T<seconds>:<nanoseconds>`
    private mutating func secondsAndNanoseconds() throws -> QueryToken.Kind? {
        func signed(_ start: Int) -> Int? {
            let hasSign = start < bytes.count && (bytes[start] == UInt8(ascii: "+") || bytes[start] == UInt8(ascii: "-"))
            let end = digitsEnd(start + (hasSign ? 1 : 0))
            return end > start + (hasSign ? 1 : 0) ? end : nil
        }
        guard let first = signed(position + 1), first < bytes.count, bytes[first] == UInt8(ascii: ":"),
            let last = signed(first + 1)
        else { return nil }
        guard let seconds = integer((position + 1)..<first), let nanoseconds = integer((first + 1)..<last),
            (-999_999_999...999_999_999).contains(nanoseconds)
        else {
            throw QueryError(.literal, "Date out of range", at: position)
        }
        if seconds > 0 && nanoseconds < 0 || seconds < 0 && nanoseconds > 0 {
            throw QueryError(.syntax, "Invalid timestamp: seconds and nanoseconds must have the same sign", at: position)
        }
        position = last
        return .timestamp(Timestamp(seconds: seconds, nanoseconds: Int32(nanoseconds)))
    }

    /// `year-month-day@hour:minute:second[:nanoseconds]`, or with `T` for `@`; UTC.
    private mutating func calendarDate() throws -> QueryToken.Kind? {
        let separators: [[UInt8]] = [[45], [45], [UInt8(ascii: "@"), UInt8(ascii: "T")], [58], [58]]
        var parts: [Range<Int>] = []
        var start = position
        for i in 0...5 {
            let end = digitsEnd(start)
            guard end > start else { return nil }
            parts.append(start..<end)
            start = end
            if i < 5 {
                guard end < bytes.count, separators[i].contains(bytes[end]) else { return nil }
                start = end + 1
            }
        }
        if start + 1 < bytes.count, bytes[start] == UInt8(ascii: ":"), isDigit(bytes[start + 1]) {
            let end = digitsEnd(start + 1)
            parts.append((start + 1)..<end)
            start = end
        }
        let values = parts.map { integer($0) ?? Int64.max }
        guard values.allSatisfy({ $0 <= 1_000_000_000 }) else { throw QueryError(.literal, "Date out of range", at: position) }
        guard values[0] >= 1900 else {
            throw QueryError(.literal, "Dates before the year 1900 cannot be written this way", at: position)
        }
        guard values.count < 7 || values[6] <= 999_999_999 else {
            throw QueryError(.literal, "Nanoseconds out of range", at: position)
        }
        if impossibleDate == nil, !isPossible(values) { impossibleDate = position..<start }
        let days = daysSince1970(year: values[0], month: values[1], day: values[2])
        let seconds = days * 86400 + values[3] * 3600 + values[4] * 60 + values[5]
        let nanoseconds = values.count == 7 ? values[6] : 0
        position = start
        return .timestamp(Timestamp(seconds: seconds, nanoseconds: Int32(seconds < 0 ? -nanoseconds : nanoseconds)))
    }

    private func isPossible(_ values: [Int64]) -> Bool {
        let year = values[0], month = values[1]
        guard (1...12).contains(month), values[3] < 24, values[4] < 60, values[5] < 60 else { return false }
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let dayCount: Int64 = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
        return (1...dayCount).contains(values[2])
    }

    /// Months and days beyond their range roll over into the next.
    private func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let months = year * 12 + (month - 1)
        let y = (months.quotientAndRemainder(dividingBy: 12).quotient), m = months - y * 12 + 1
        // Years that begin in March, so that the leap day is the last one of the year.
        let shifted = m <= 2 ? y - 1 : y
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468 + (day - 1)
    }

    // MARK: Strings

    private mutating func string(quote: UInt8) throws -> String {
        let start = position
        position += 1
        var text: [UInt8] = []
        while position < bytes.count {
            let c = bytes[position]
            if c == quote {
                position += 1
                return String(decoding: text, as: UTF8.self)
            }
            position += 1
            if c != UInt8(ascii: "\\") {
                text.append(c)
                continue
            }
            let escape = byte()
            position += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(escape)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "0"): text.append(0)
            case UInt8(ascii: "u"): text.append(contentsOf: try unicodeEscape())
            default:
                position -= 2
                throw QueryError(.syntax, "unknown escape in a string", at: position)
            }
        }
        throw QueryError(.syntax, "the string that begins here has no end", at: start)
    }

    private mutating func unicodeEscape() throws -> [UInt8] {
        let first = try hexadecimalUnit()
        var code = UInt32(first)
        if first >= 0xD800 && first < 0xDC00, byte() == UInt8(ascii: "\\"), byte(1) == UInt8(ascii: "u") {
            position += 2
            let second = try hexadecimalUnit()
            guard second >= 0xDC00 && second < 0xE000 else {
                throw QueryError(.syntax, "half of a surrogate pair in a string", at: position - 6)
            }
            code = 0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw QueryError(.syntax, "half of a surrogate pair in a string", at: position - 6)
        }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func hexadecimalUnit() throws -> UInt16 {
        guard position + 4 <= bytes.count, let value = parseHexadecimal(bytes[position..<(position + 4)]) else {
            throw QueryError(.syntax, "\\u needs four hexadecimal digits", at: position - 2)
        }
        position += 4
        return UInt16(value)
    }
}

/// Base64 with the plain alphabet; padding may be missing.
enum Base64 {
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var bits: UInt32 = 0, bitCount = 0, padding = 0
        for c in text {
            let value: UInt32
            switch c {
            case 65...90: value = UInt32(c) - 65
            case 97...122: value = UInt32(c) - 71
            case 48...57: value = UInt32(c) + 4
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            case UInt8(ascii: "="):
                padding += 1
                continue
            default: return nil
            }
            if padding > 0 { return nil }
            bits = bits << 6 | value
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        return padding > 2 || bitCount == 6 ? nil : result
    }
}
