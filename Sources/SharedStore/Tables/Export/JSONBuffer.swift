import Glibc

/// Bytes of a JSON text on their way to a sink: collected, and handed on whenever there are enough.
struct JSONBuffer {
    typealias Sink = (UnsafeRawBufferPointer) throws -> Void

    private static let flushByteCount = 64 * 1024
    private var bytes: [UInt8] = []
    private let sink: Sink

    init(_ sink: @escaping Sink) {
        self.sink = sink
        bytes.reserveCapacity(JSONBuffer.flushByteCount * 2)
    }

    /// Hands on what is collected if it is much; called between values, so that one value is the most that is kept.
    @inline(__always)
    mutating func flushIfFull() throws {
        if bytes.count >= JSONBuffer.flushByteCount { try flush() }
    }

    mutating func flush() throws {
        if bytes.isEmpty { return }
        try bytes.withUnsafeBytes(sink)
        bytes.removeAll(keepingCapacity: true)
    }

    @inline(__always)
    mutating func byte(_ character: UInt8) { bytes.append(character) }

    @inline(__always)
    mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Text that needs no escapes.
    mutating func raw(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    // MARK: Numbers

    mutating func integer(_ value: Int64) {
        if value < 0 { byte(UInt8(ascii: "-")) }
        var rest = value.magnitude
        if rest < 10 {
            byte(48 + UInt8(truncatingIfNeeded: rest))
            return
        }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var at = 20
            while rest > 0 {
                let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
                at -= 1
                digits[at] = 48 + UInt8(truncatingIfNeeded: remainder)
                rest = quotient
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[at...]))
        }
    }

    /// The text of C's `%.9g`; nan without a sign.
    mutating func float(_ value: Float) {
        if value.isNaN { raw("nan") } else { number(Double(value), "%.9g") }
    }

    /// The text of C's `%.17g`; nan without a sign.
    mutating func double(_ value: Double) {
        if value.isNaN { raw("nan") } else { number(value, "%.17g") }
    }

    private mutating func number(_ value: Double, _ format: String) {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 48) { text in
            let length = withVaList([value]) { vsnprintf(text.baseAddress!, 48, format, $0) }
            for i in 0..<Int(length) { bytes.append(UInt8(bitPattern: text[i])) }
        }
    }

    // MARK: Strings

    mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string(UnsafeRawBufferPointer($0)) }
    }

    /// A string in quotes; what is no UTF-8 becomes U+FFFD.
    mutating func string(_ utf8: UnsafeRawBufferPointer) {
        byte(UInt8(ascii: "\""))
        var isASCII = true
        for byte in utf8 where byte >= 0x80 {
            isASCII = false
            break
        }
        if isASCII {
            escaped(utf8)
        } else {
            // Decoding repairs; a valid text comes back as it is.
            var repaired = String(decoding: utf8, as: UTF8.self)
            repaired.withUTF8 { escaped(UnsafeRawBufferPointer($0)) }
        }
        byte(UInt8(ascii: "\""))
    }

    private mutating func escaped(_ utf8: UnsafeRawBufferPointer) {
        var start = 0
        for i in 0..<utf8.count {
            let c = utf8[i]
            if c >= 0x20 && c != UInt8(ascii: "\"") && c != UInt8(ascii: "\\") { continue }
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[start..<i]))
            start = i + 1
            switch c {
            case UInt8(ascii: "\""): raw("\\\"")
            case UInt8(ascii: "\\"): raw("\\\\")
            case 10: raw("\\n")
            case 13: raw("\\r")
            case 9: raw("\\t")
            default:
                raw("\\u00")
                hexadecimal(c)
            }
        }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[start...]))
    }

    /// Two lower-case digits.
    @inline(__always)
    mutating func hexadecimal(_ value: UInt8) {
        for nibble in [value >> 4, value & 15] { byte(nibble < 10 ? 48 + nibble : 87 + nibble) }
    }

    mutating func base64(_ data: UnsafeRawBufferPointer) {
        let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        let letters = alphabet.utf8Start
        var i = 0
        while i < data.count {
            let rest = data.count - i
            let word = Int(data[i]) << 16 | (rest > 1 ? Int(data[i + 1]) << 8 : 0) | (rest > 2 ? Int(data[i + 2]) : 0)
            byte(letters[word >> 18])
            byte(letters[word >> 12 & 63])
            byte(rest > 1 ? letters[word >> 6 & 63] : UInt8(ascii: "="))
            byte(rest > 2 ? letters[word & 63] : UInt8(ascii: "="))
            i += 3
        }
    }
}
