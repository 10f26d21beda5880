/// Entries of an index on Mixed that other writers leave at an old place (file-format-2 7.9).
///
/// Two habits are known, and each leaves its entry where an earlier value of the object led: a number that is replaced by an
/// equal one of another type keeps the entry of the first, whose bytes may differ; and a link that becomes null because its
/// target is deleted keeps the entry of the link. An entry anywhere else is damage: the object is not found by its value.
extension VerificationRun {
    /// True where an entry at the end of `path` can come from one of the habits, for an object whose value is now `value`.
    func isLeftBehind(_ path: [Int32], _ value: RawValue) -> Bool {
        switch value {
        case .null: return isPathOfDeletedObject(path)
        case .typedLink(_, let key): return key <= -2 && isPathOfDeletedObject(path)
        case .int, .float, .double, .decimal:
            return EqualNumbers.of(value).contains { number in
                IndexBytes(number).map { bytes in path.enumerated().allSatisfy { bytes.chunk(4 * $0) == $1 } } ?? false
            }
        default: return false
        }
    }

    /// The way of a link: four bytes of table key, eight of object key, all little-endian, and the end. It may break off after
    /// any chunk. The object must be gone, as far as the way names it.
    private func isPathOfDeletedObject(_ path: [Int32]) -> Bool {
        let words = path.map { UInt32(bitPattern: $0).byteSwapped }
        guard let first = words.first, words.count <= 4, words.count < 4 || path[3] == 0x5800_0000 else { return false }
        // Slots are never given up: a table that was removed has left one.
        guard first < 0x7FFF_FFFF, Int(first & 0xFFFF) < tableSlotCount else { return false }
        guard words.count >= 3, let table = tableOfKey[TableKey(first)] else { return true }
        let key = Int64(bitPattern: UInt64(words[1]) | UInt64(words[2]) << 32)
        // Where keys were hashes of primary keys, an object could come back under its key.
        return key >= 0 && (isOlderFormat || find(ObjectKey(key), in: table) == nil)
    }
}

/// The numbers of the four types that equal a given one (file-format-2 6.2).
enum EqualNumbers {
    /// Those whose place in an index can differ from that of `value`, and others. A decimal equals many doubles: those next to it
    /// are tried.
    static func of(_ value: RawValue) -> [RawValue] {
        var numbers: [RawValue] = []
        let decimal: Decimal128Bits
        switch value {
        case .int(let v):
            numbers = [.double(Double(v)), .float(Float(v))]
            decimal = Decimal128Bits(v)
        case .float(let v):
            numbers = [.double(Double(v))]
            decimal = Decimal128Bits(v)
        case .double(let v):
            numbers = [.float(Float(v))]
            decimal = Decimal128Bits(v)
        case .decimal(let v): decimal = v
        default: return []
        }
        numbers += [.decimal(decimal)] + sameValue(decimal)
        // Equal through a decimal that stood between: 0.1 as a double, as a decimal, as a float.
        let near = decimal.doubleValue
        if near.isFinite {
            for next in neighbours(near, \.nextDown, \.nextUp) where Decimal128Bits.compare(Decimal128Bits(next), decimal) == 0 {
                numbers.append(.double(next))
            }
            for next in neighbours(Float(near), \.nextDown, \.nextUp)
            where Decimal128Bits.compare(Decimal128Bits(next), decimal) == 0 {
                numbers.append(.float(next))
            }
        }
        return numbers.filter { number in
            guard let order = RawOrder.compare(value, number, ordersNaN: true) else { return false }
            if order == 0 { return true }
            // Not equal itself, but equal to the decimal.
            return RawOrder.compare(.decimal(decimal), number, ordersNaN: true) == 0
        }
    }

    /// A few numbers on both sides of `middle`.
    private static func neighbours<T: BinaryFloatingPoint>(_ middle: T, _ down: (T) -> T, _ up: (T) -> T) -> [T] {
        var all = [middle], low = middle, high = middle
        for _ in 0..<8 {
            low = down(low)
            high = up(high)
            all += [low, high]
        }
        return all
    }

    /// The other forms of a decimal of the same value: 1, 1.0, 1.00. The bytes of one that is no 64-bit integer are all of its
    /// bits.
    private static func sameValue(_ decimal: Decimal128Bits) -> [RawValue] {
        guard decimal.isFinite, decimal.coefficient != 0 else { return [] }
        var forms: [RawValue] = []
        let limit: UInt128 = 10_000_000_000_000_000_000_000_000_000_000_000
        for direction in [-1, 1] {
            var (coefficient, exponent) = (decimal.coefficient, decimal.exponent)
            while true {
                if direction < 0 {
                    guard coefficient < limit / 10, exponent > -6176 else { break }
                    coefficient *= 10
                } else {
                    guard coefficient % 10 == 0, exponent < 6111 else { break }
                    coefficient /= 10
                }
                exponent += direction
                forms.append(
                    .decimal(Decimal128Bits(isNegative: decimal.isNegative, coefficient: coefficient, exponent: exponent)))
            }
        }
        return forms
    }
}
