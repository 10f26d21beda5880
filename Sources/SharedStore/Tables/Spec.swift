/// The columns of a table (file-format-2 section 3), read once when the table is first asked for.
///
/// ```
/// spec  refs, 6 slots: 0 types (integers)  1 names (short strings, public columns only)  2 attributes (integers)
///                      3 unused            4 value lists of enumerated strings, or 0     5 column keys (integers)
/// ```
/// Public columns come first, backlink columns last; the latter have no names. A column's type is that of its key: in files
/// that were upgraded the types array still says 13 for lists of links.
struct Spec {
    var columns: [Column] = []
    /// Names of the public columns, in spec order.
    var names: [String] = []
    /// Columns from this position on are backlink columns.
    var publicCount = 0

    static let columnCountMax = 65535

    init(_ memory: Memory, specRef: Int, oppositeTablesRef: Int, oppositeColumnsRef: Int, table: TableKey, format: UInt8) throws {
        let spec = try memory.refs(specRef, "spec")
        let types = try memory.integers(spec.requiredRef(0), "column types")
        names = try NameArray.read(memory, spec.requiredRef(1), countMax: Spec.columnCountMax)
        let attributes = try memory.integers(spec.requiredRef(2), "column attributes")
        let keys = try memory.integers(spec.requiredRef(5), "column keys")
        let enumerationsRef = try spec.optionalRef(4)
        let enumerations = enumerationsRef == 0 ? nil : try memory.refs(enumerationsRef, "lists of enumerated strings")
        let oppositeTables = oppositeTablesRef == 0 ? nil : try memory.integers(oppositeTablesRef, "opposite tables")
        let oppositeColumns = oppositeColumnsRef == 0 ? nil : try memory.integers(oppositeColumnsRef, "opposite columns")
        guard types.count == keys.count, attributes.count == keys.count, keys.count <= Spec.columnCountMax,
            names.count <= keys.count
        else {
            throw FormatError(
                ref: specRef,
                "\(types.count) types, \(names.count) names, \(attributes.count) attributes and \(keys.count) keys of columns")
        }
        publicCount = names.count
        columns.reserveCapacity(keys.count)
        for i in 0..<keys.count {
            let stored = ColumnKey(keys.unchecked(i))
            guard stored.rawValue >= 0, let type = stored.type else {
                throw FormatError(ref: keys.ref, "column \(i) has the key \(stored)")
            }
            if (type == .backlink) != (i >= publicCount) || type == .typedLink {
                throw FormatError(
                    ref: specRef, "column \(i) of \(keys.count) with \(publicCount) names has type \(stored.typeNumber)")
            }
            var merged = stored.attributes
            merged.formUnion(ColumnAttributes(rawValue: Int(truncatingIfNeeded: attributes.unchecked(i)) & 0x101))
            let keyType = Int(truncatingIfNeeded: types.unchecked(i) >> 16)
            columns.append(
                Column(
                    key: stored, type: type, attributes: merged, specIndex: i, table: table,
                    oppositeTable: try Spec.tableKey(oppositeTables, stored.leafIndex),
                    oppositeColumn: try Spec.columnKey(oppositeColumns, stored.leafIndex),
                    dictionaryKeyType: keyType == 0 && merged.contains(.dictionary) && format >= 23 ? .int : .string,
                    enumerationRef: i < publicCount ? try enumerations?.optionalRef(i) ?? 0 : 0, format: format))
        }
    }

    private static func tableKey(_ array: Node?, _ index: Int) throws -> TableKey {
        guard let array, index < array.count else { return .null }
        let raw = array.unchecked(index)
        guard raw >= 0, raw <= 0x7FFF_FFFF else {
            throw FormatError(ref: array.ref, "opposite table \(raw) of leaf index \(index)")
        }
        return TableKey(UInt32(raw))
    }

    private static func columnKey(_ array: Node?, _ index: Int) throws -> ColumnKey {
        guard let array, index < array.count else { return .null }
        return ColumnKey(array.unchecked(index))
    }
}

extension Memory {
    /// The node at `ref`, which must be a plain array of integers.
    @inline(__always)
    func integers(_ ref: Int, _ purpose: StaticString) throws -> Node {
        let node = try self.node(ref)
        if node.flags & 0xD8 != 0 { throw shapeError(node, purpose, "integers") }
        return node
    }

    /// The node at `ref`, which must be an array of refs and no inner tree node.
    @inline(__always)
    func refs(_ ref: Int, _ purpose: StaticString) throws -> Node {
        let node = try self.node(ref)
        if node.flags & 0xD8 != 0x40 { throw shapeError(node, purpose, "refs") }
        return node
    }

    @inline(never)
    private func shapeError(_ node: Node, _ purpose: StaticString, _ expected: StaticString) -> FormatError {
        let flags = String(node.flags, radix: 16)
        return FormatError(
            ref: node.ref, "\(purpose) must be an array of \(expected), found flags 0x\(flags) and \(node.count) elements")
    }
}
