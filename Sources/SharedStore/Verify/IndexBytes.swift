/// What a search index sorts a value by (file-format-2 7.3).
struct IndexBytes {
    /// Bytes of a string or binary, in the file.
    private var outside: UnsafeRawBufferPointer?
    /// Bytes of other values.
    private var inside: (UInt64, UInt64) = (0, 0)
    /// Nil where the value is null, which is not the same as empty.
    private(set) var count: Int?

    /// - Parameter bytes: nil for null.
    init(_ bytes: UnsafeRawBufferPointer?) {
        outside = bytes
        count = bytes?.count
    }

    /// `low` holds bytes 0 to 7, `high` bytes 8 to 15, the first one lowest.
    private init(_ low: UInt64, _ high: UInt64 = 0, count: Int) {
        inside = (low, high)
        self.count = count
    }

    private init() { count = nil }

    /// Nil where nothing is known about the value.
    init?(_ value: RawValue) {
        switch value {
        case .null: self.init()
        case .int(let v): self.init(v)
        case .bool(let v): self.init(v ? 1 : 0)
        case .string(let v), .binary(let v): self.init(v)
        case .timestamp(let s, let n): self.init(UInt64(bitPattern: s), UInt64(UInt32(truncatingIfNeeded: n)), count: 12)
        case .objectId(let p):
            self.init(p.loadUnaligned(as: UInt64.self), UInt64(p.loadUnaligned(fromByteOffset: 8, as: UInt32.self)), count: 12)
        case .uuid(let p):
            self.init(p.loadUnaligned(as: UInt64.self), p.loadUnaligned(fromByteOffset: 8, as: UInt64.self), count: 16)
        case .float(let v):
            if let int = IndexBytes.truncated(Double(v)) { self.init(int) } else { self.init(UInt64(v.bitPattern), count: 4) }
        case .double(let v):
            if let int = IndexBytes.truncated(v) { self.init(int) } else { self.init(v.bitPattern, count: 8) }
        case .decimal(let v):
            if let int = IndexBytes.truncated(v) { self.init(int) } else { self.init(v.low, v.high, count: 16) }
        case .typedLink(let table, let key):
            if key <= -2 { self.init(); return }
            let k = UInt64(bitPattern: key)
            self.init(UInt64(UInt32(truncatingIfNeeded: table)) | k << 32, k >> 32, count: 12)
        case .list: self.init(0x5F5F_7473_694C_5F5F, count: 8)  // __List__
        case .dictionary: self.init(0x6F69_7463_6944_5F5F, 0x5F5F_7972_616E, count: 14)  // __Dictionary__
        case .key, .set, .unreadable: return nil
        }
    }

    private init(_ value: Int64) { self.init(UInt64(bitPattern: value), count: 8) }

    /// The value as an integer, where cutting it to 32 bits changes nothing.
    private static func truncated(_ value: Double) -> Int64? {
        value >= -2_147_483_648 && value <= 2_147_483_647 && value == value.rounded(.towardZero) ? Int64(value) : nil
    }

    /// A decimal cut towards zero, where that fits into 64 bits.
    private static func truncated(_ value: Decimal128Bits) -> Int64? {
        if value.high >> 61 & 3 == 3 { return nil }
        let isNegative = value.high >> 63 != 0
        var coefficient = UInt128(value.high & (1 << 49 - 1)) << 64 | UInt128(value.low)
        var exponent = Int(value.high >> 49 & 0x3FFF) - 6176
        if coefficient == 0 { return 0 }
        while exponent < 0 && coefficient > 0 {
            coefficient /= 10
            exponent += 1
        }
        if coefficient == 0 { return 0 }
        while exponent > 0 {
            coefficient *= 10
            exponent -= 1
            if coefficient > 1 << 64 { return nil }
        }
        if isNegative { return coefficient <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- Int128(coefficient)) : nil }
        return coefficient < 1 << 63 ? Int64(coefficient) : nil
    }

    private func byte(_ index: Int) -> UInt32 {
        if let outside { return UInt32(outside[index]) }
        return UInt32(
            truncatingIfNeeded: (index < 8 ? inside.0 >> UInt64(8 * index) : inside.1 >> UInt64(8 * (index - 8))) & 0xFF)
    }

    /// The four bytes from `offset` on, the first one highest; a value is followed by an `X`, null has zeros only.
    func chunk(_ offset: Int) -> Int32 {
        guard let count, offset <= count else { return 0 }
        let rest = count - offset
        if rest >= 4 {
            return Int32(bitPattern: byte(offset) << 24 | byte(offset + 1) << 16 | byte(offset + 2) << 8 | byte(offset + 3))
        }
        var chunk: UInt32 = 0
        for i in 0..<rest { chunk |= byte(offset + i) << UInt32(24 - 8 * i) }
        return Int32(bitPattern: chunk | 0x58 << UInt32(24 - 8 * rest))
    }

    static func == (a: IndexBytes, b: IndexBytes) -> Bool {
        guard a.count == b.count, let count = a.count else { return a.count == b.count }
        for i in 0..<count where a.byte(i) != b.byte(i) { return false }
        return true
    }
}

/// The words that a full-text index holds (file-format-2 7.10).
enum FullTextWords {
    /// What the letters from U+00C0 to U+00DF become, in Latin 1; those from U+00E0 on are their small forms.
    private static let mapping = "aaaaa\u{E5}\u{E6}ceeeeiiii\u{F0}nooooo-\u{F8}uuuuy\u{FE}\u{DF}".unicodeScalars.map {
        UInt8($0.value)
    }
    private static let byteCountMax = 64

    /// The distinct words of a text.
    static func words(of text: UnsafeRawBufferPointer) -> Set<[UInt8]> {
        var words: Set<[UInt8]> = []
        var word: [UInt8] = []
        var isInside = false
        func finish() {
            if isInside { words.insert(word) }
            word.removeAll(keepingCapacity: true)
            isInside = false
        }
        var i = 0
        while i < text.count {
            let byte = text[i]
            switch byte {
            case 0x30...0x39, 0x61...0x7A, 0x41...0x5A:
                isInside = true
                if word.count < byteCountMax { word.append(byte >= 0x41 && byte <= 0x5A ? byte + 0x20 : byte) }
                i += 1
            case 0xC0...0xDF:
                if i + 1 < text.count, byte == 0xC3, text[i + 1] != 0xBF {
                    isInside = true
                    append(text[i + 1] & 0x3F, to: &word)
                } else {
                    finish()
                }
                i += 2
            default:
                finish()
                i += byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 1
            }
        }
        finish()
        return words
    }

    private static func append(_ letter: UInt8, to word: inout [UInt8]) {
        let base = mapping[Int(letter & 0x1F)]
        if letter & 0x1F == 0x17 { return }
        // The second half repeats the first in lower case; its last letter, 0x3F, is a separator.
        if base < 0x80 {
            if word.count < byteCountMax { word.append(base) }
        } else if word.count < byteCountMax - 1 {
            word.append(0xC0 | base >> 6)
            word.append(0x80 | base & 0x3F)
        }
    }
}

/// Words as an index tells them: from the chunks on the way (file-format-2 7.6).
enum IndexWord {
    /// The word of an entry, whose chunks are given from the root on.
    static func word(_ chunks: [Int32]) -> [UInt8] {
        var word: [UInt8] = []
        for (i, chunk) in chunks.enumerated() {
            let bits = UInt32(bitPattern: chunk)
            let bytes = [UInt8(bits >> 24), UInt8(bits >> 16 & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits & 0xFF)]
            let count = i + 1 < chunks.count ? 4 : bytes.lastIndex(of: 0x58) ?? 4
            word.append(contentsOf: bytes.prefix(count))
        }
        return word
    }

    /// What the index makes of a word that stands alone: one that ends with a real X reads as the shorter one.
    static func canonical(_ bytes: UnsafeRawBufferPointer?) -> [UInt8] {
        let data = IndexBytes(bytes)
        var chunks: [Int32] = []
        var offset = 0
        repeat {
            chunks.append(data.chunk(offset))
            offset += 4
        } while offset < bytes?.count ?? 0
        return word(chunks)
    }
}
