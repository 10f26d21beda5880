/// Reads the instructions of one changeset (file-format-3 6.1, 6.2). Nothing that it is given is trusted.
public struct ChangesetParser {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    /// `bytes` must stay valid as long as the parser is used.
    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Bound on the nesting of collections, the same as for values (file-format-2 5.7).
    static let nestingMax = 100
    /// Bound on positions in a collection: no file holds more elements, and arithmetic on them cannot overflow.
    static let positionMax: Int64 = 1 << 32
    /// Bound on the length of a legacy string operand.
    static let stringByteCountMax = 0xFFFFEF

    /// The next instruction, or nil at the end.
    public mutating func next() throws -> ChangesetInstruction? {
        guard offset < bytes.count else { return nil }
        let opcode = bytes[offset]
        offset += 1
        switch opcode {
        case ChangesetOpcode.insertTable: return .insertTable(try tableKey())
        case ChangesetOpcode.eraseTable: return .eraseTable(try tableKey())
        case ChangesetOpcode.renameTable: return .renameTable(try tableKey())
        case ChangesetOpcode.selectTable:
            let levels = try integer()
            guard levels == 0 else { throw error("a table selection with \(levels) nesting levels") }
            return .selectTable(try tableKey())
        case ChangesetOpcode.createObject: return .createObject(try objectKey())
        case ChangesetOpcode.removeObject: return .removeObject(try objectKey())
        case ChangesetOpcode.set: return .set(try columnKey(), try objectKey())
        case ChangesetOpcode.insertColumn: return .insertColumn(try columnKey())
        case ChangesetOpcode.eraseColumn: return .eraseColumn(try columnKey())
        case ChangesetOpcode.renameColumn: return .renameColumn(try columnKey())
        case ChangesetOpcode.selectCollection: return .selectCollection(try columnKey(), try objectKey(), salts: [])
        case ChangesetOpcode.selectCollectionByPath:
            let column = try columnKey(), object = try objectKey()
            let count = try index()
            guard count <= Self.nestingMax else { throw error("a collection path of \(count) levels") }
            var salts: [Int64] = []
            for _ in 0..<count {
                let salt = try integer()
                guard salt >= Int64(Int32.min) && salt <= Int64(Int32.max) else { throw error("a salt of \(salt)") }
                salts.append(salt)
            }
            return .selectCollection(column, object, salts: salts)
        case ChangesetOpcode.collectionInsert, ChangesetOpcode.legacySetInsert: return .collectionInsert(try index())
        case ChangesetOpcode.collectionSet: return .collectionSet(try index())
        case ChangesetOpcode.collectionMove: return .collectionMove(from: try index(), to: try index())
        case ChangesetOpcode.collectionErase, ChangesetOpcode.legacySetErase: return .collectionErase(try index())
        case ChangesetOpcode.collectionClear, ChangesetOpcode.legacySetClear, ChangesetOpcode.legacyDictionaryClear:
            return .collectionClear(oldCount: try index())
        case ChangesetOpcode.legacyDictionaryInsert: return .collectionInsert(try legacyDictionaryIndex())
        case ChangesetOpcode.legacyDictionarySet: return .collectionSet(try legacyDictionaryIndex())
        case ChangesetOpcode.legacyDictionaryErase: return .collectionErase(try legacyDictionaryIndex())
        case ChangesetOpcode.typedLinkChange: return .typedLinkChange(try columnKey(), try tableKey())
        default:
            offset -= 1
            throw error("unknown instruction \(opcode)")
        }
    }

    private func error(_ reason: String) -> ChangesetError { ChangesetError(offset: offset, reason: reason) }

    /// Seven bits a byte, low ones first; the last byte has six bits of value and a sign bit (file-format-3 6.1).
    private mutating func integer() throws -> Int64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            guard offset < bytes.count else { throw error("the number is cut off") }
            let byte = bytes[offset]
            offset += 1
            let last = byte < 0x80
            let part = UInt64(byte & (last ? 0x3F : 0x7F))
            // 63 bits of magnitude at most: the tenth byte may add none.
            if shift > 63 || (part != 0 && (part << shift) >> shift != part) { throw error("the number exceeds 64 bits") }
            value |= shift > 63 ? 0 : part << shift
            if last {
                guard value <= UInt64(Int64.max) else { throw error("the number exceeds 64 bits") }
                return byte & 0x40 != 0 ? -Int64(value) - 1 : Int64(value)
            }
            shift += 7
        }
    }

    private mutating func index() throws -> Int {
        let v = try integer()
        guard v >= 0 && v <= Self.positionMax else { throw error("a position of \(v)") }
        return Int(v)
    }

    private mutating func tableKey() throws -> TableKey {
        let v = try integer()
        guard v >= 0 && v <= Int64(UInt32.max) else { throw error("a table key of \(v)") }
        return TableKey(UInt32(v))
    }

    private mutating func columnKey() throws -> ColumnKey { ColumnKey(try integer()) }
    private mutating func objectKey() throws -> ObjectKey { ObjectKey(try integer()) }

    private mutating func legacyDictionaryIndex() throws -> Int {
        let type = try integer()
        guard type == 2 else { throw error("a dictionary key of type \(type)") }
        let length = try index()
        guard length <= Self.stringByteCountMax && length <= bytes.count - offset else { throw error("the string is cut off") }
        offset += length
        return try index()
    }
}
