/// The nodes of a leaf, all of them checked to be of the right kind, and its values as bytes of the file.
///
/// The verifier's own reading of file-format-1 sections 5 to 8; it shares no code with the readers of `FileFormat/Leaves`.
struct RawLeaf {
    enum Parts {
        case integers(Node)
        /// Element 0 is the value that stands for null.
        case nullableIntegers(Node)
        case bools(Node)
        case floats(Node)
        case doubles(Node)
        case timestamps(seconds: Node, nanoseconds: Node)
        case decimals(Node)
        /// Blocks of eight values with a byte of null bits in front.
        case fixed(Node, valueSize: Int)
        case strings(RawStrings)
        /// Positions in the column's list of distinct values.
        case enumerated(Node, RawStrings)
        /// Object keys plus one; 0 is null.
        case links(Node)
        /// Object keys as they are.
        case keys(Node)
        case mixed(RawMixed)
        /// One ref, tagged number or 0 a row: collections and backlinks.
        case refs(Node)
    }
    let parts: Parts
    let count: Int
}

/// A leaf of strings or binaries (file-format-1 6.1).
struct RawStrings {
    enum Parts {
        case short(Node)
        case small(offsets: Node, blob: Node, nulls: Node)
        case big(Node)
    }
    let parts: Parts
    let isBinary: Bool
    let count: Int
}

/// A leaf of Mixed values (file-format-1 7.1).
struct RawMixed {
    let composite: Node
    let integers: Node?
    let pairs: Node?
    let strings: RawStrings?
    let refs: Node?
    let keys: Node?
}

/// A value, pointing into the file.
enum RawValue {
    case null
    case int(Int64)
    case bool(Bool)
    case float(Float)
    case double(Double)
    case string(UnsafeRawBufferPointer)
    case binary(UnsafeRawBufferPointer)
    case timestamp(seconds: Int64, nanoseconds: Int64)
    case decimal(Decimal128Bits)
    case objectId(UnsafeRawPointer)
    case uuid(UnsafeRawPointer)
    /// A link of a Mixed. Plain links are `key`.
    case typedLink(table: Int64, key: Int64)
    case key(Int64)
    case list
    case set
    case dictionary
    /// Damaged, or in more than one piece; nothing can be said about it.
    case unreadable
}

/// What a leaf is to hold.
struct LeafKind {
    enum Place { case cluster, tree }
    var type: ColumnType
    var isNullable: Bool
    var place: Place
    /// The distinct values of an enumerated string column.
    var enumeration: RawStrings?

    init(_ type: ColumnType, nullable: Bool, _ place: Place, enumeration: RawStrings? = nil) {
        self.type = type
        isNullable = nullable
        self.place = place
        self.enumeration = enumeration
    }
}

/// Bytes per value and per block of eight (file-format-1 5.8).
enum FixedSize {
    static func byteCount(of count: Int, valueSize: Int) -> Int { count * valueSize + (count + 7) / 8 }
    static func count(ofByteCount size: Int, valueSize: Int) -> Int {
        let block = 8 * valueSize + 1
        return (size - (size + block - 1) / block) / valueSize
    }
}

// MARK: Entering a leaf

extension VerificationRun {
    /// The largest value that `node`'s width holds.
    static func upperBound(ofWidth width: Int) -> Int64 {
        switch width {
        case 0: 0
        case 1: 1
        case 2: 3
        case 4: 15
        default: Int64.max >> Int64(64 - width)
        }
    }

    private func wrongKind(_ node: Node, _ kind: LeafKind) throws -> RawLeaf? {
        try error(
            .nodeKind, node.ref,
            "flags \(hexadecimal(UInt64(node.flags), digits: 2)), \(node.count) elements: no leaf of \(kind.type) values")
        try enterAll(below: node)
        return nil
    }

    /// Enters all nodes of the leaf at `node` that every row needs. Nil, with a finding, where it has not the form of its kind.
    /// Nodes that belong to one row (big blobs, nested collections) are entered by whoever goes through the rows.
    func enterLeaf(_ node: Node, _ kind: LeafKind) throws -> RawLeaf? {
        if node.isInner { return try wrongKind(node, kind) }
        let isPlain = !node.hasRefs && node.widthType == 0
        let isMultiplied = !node.hasRefs && node.widthType == 1
        switch kind.type {
        // Here it has a meaning; with refs it makes another kind of node, which is refused or read below.
        case .decimal: break
        case .link where kind.place == .tree: break
        case .string, .binary: if isPlain { try verifyNoContext(node, "an enumerated leaf") }
        default: if !node.hasRefs { try verifyNoContext(node, "a leaf of \(kind.type) values") }
        }
        func plain(_ parts: RawLeaf.Parts, _ count: Int? = nil) throws -> RawLeaf? {
            isPlain ? RawLeaf(parts: parts, count: count ?? node.count) : try wrongKind(node, kind)
        }
        switch kind.type {
        case .int:
            if !kind.isNullable { return try plain(.integers(node)) }
            if isPlain && node.count == 0 {
                try error(.intSentinel, node.ref, "a leaf of nullable integers has no element for null")
                return nil
            }
            return try plain(.nullableIntegers(node), node.count - 1)
        case .bool:
            return try plain(.bools(node))
        case .link:
            return try plain(kind.place == .cluster ? .links(node) : .keys(node))
        case .float:
            return isMultiplied && node.width == 4 ? RawLeaf(parts: .floats(node), count: node.count) : try wrongKind(node, kind)
        case .double:
            return isMultiplied && node.width == 8 ? RawLeaf(parts: .doubles(node), count: node.count) : try wrongKind(node, kind)
        case .decimal:
            let isDecimal = isMultiplied && [0, 4, 8, 16].contains(node.width)
            return isDecimal ? RawLeaf(parts: .decimals(node), count: node.count) : try wrongKind(node, kind)
        case .objectId, .uuid:
            let size = kind.type == .objectId ? 12 : 16
            guard isMultiplied, node.width == 1 || node.count == 0 else { return try wrongKind(node, kind) }
            let count = FixedSize.count(ofByteCount: node.count, valueSize: size)
            if FixedSize.byteCount(of: count, valueSize: size) != node.count {
                try error(
                    .fixedSize, node.ref,
                    "\(node.count) bytes are no whole number of values of \(size) bytes with their null bits")
                return nil
            }
            return RawLeaf(parts: .fixed(node, valueSize: size), count: count)
        case .timestamp:
            guard node.hasRefs, !node.hasContext, node.count == 2 else { return try wrongKind(node, kind) }
            let seconds = try integers(node, 0, "seconds"), nanoseconds = try integers(node, 1, "nanoseconds")
            guard let seconds, let nanoseconds else { return nil }
            if seconds.count == 0 {
                try error(.intSentinel, seconds.ref, "the seconds have no element for null")
                return nil
            }
            if seconds.count - 1 != nanoseconds.count {
                try error(.timestampCounts, node.ref, "\(seconds.count - 1) seconds, \(nanoseconds.count) nanoseconds")
                return nil
            }
            return RawLeaf(parts: .timestamps(seconds: seconds, nanoseconds: nanoseconds), count: nanoseconds.count)
        case .string where isPlain && kind.enumeration != nil:
            guard let enumeration = kind.enumeration else { return nil }
            return RawLeaf(parts: .enumerated(node, enumeration), count: node.count)
        case .string, .binary:
            guard let strings = try enterStrings(node, isBinary: kind.type == .binary) else { return nil }
            return RawLeaf(parts: .strings(strings), count: strings.count)
        case .mixed:
            guard node.hasRefs, !node.hasContext, (4...6).contains(node.count) else { return try wrongKind(node, kind) }
            return try enterMixed(node)
        case .backlink:
            return node.hasRefs && !node.hasContext ? RawLeaf(parts: .refs(node), count: node.count) : try wrongKind(node, kind)
        case .typedLink:
            // No column is of this type (file-format-2 3.1); values of a Mixed are.
            return try wrongKind(node, kind)
        }
    }

    /// Enters the nodes of a leaf of strings or binaries, except the blobs of a big-blob leaf.
    func enterStrings(_ node: Node, isBinary: Bool) throws -> RawStrings? {
        if !node.hasRefs {
            guard node.widthType == 1, !isBinary, !node.isInner else {
                _ = try wrongKind(node, LeafKind(isBinary ? .binary : .string, nullable: true, .tree))
                return nil
            }
            try verifyNoContext(node, "a leaf of strings")
            return RawStrings(parts: .short(node), isBinary: false, count: node.count)
        }
        if node.isInner {
            try error(.nodeKind, node.ref, "an inner node where a leaf of strings is expected")
            try enterAll(below: node)
            return nil
        }
        if node.hasContext { return RawStrings(parts: .big(node), isBinary: isBinary, count: node.count) }
        if node.count != 3 {
            try error(.blobsShape, node.ref, "a leaf of small blobs has \(node.count) elements, not 3")
            try enterAll(below: node)
            return nil
        }
        let offsets = try integers(node, 0, "offsets"), blob = try child(node, 1, "blob"), nulls = try integers(node, 2, "nulls")
        guard let offsets, let blob, let nulls else { return nil }
        if !isBlob(blob) {
            try error(.nodeKind, blob.ref, "flags \(hexadecimal(UInt64(blob.flags), digits: 2)) where a blob is expected")
            try enterAll(below: blob)
            return nil
        }
        if offsets.count != nulls.count {
            try error(.blobsShape, node.ref, "\(offsets.count) offsets, \(nulls.count) null flags")
            return nil
        }
        return RawStrings(parts: .small(offsets: offsets, blob: blob, nulls: nulls), isBinary: isBinary, count: offsets.count)
    }

    func isBlob(_ node: Node) -> Bool { node.widthType == 2 && !node.hasRefs && !node.hasContext }

    private func enterMixed(_ node: Node) throws -> RawLeaf? {
        func optionalIntegers(_ index: Int, _ name: String) throws -> Node? {
            guard let array = try optionalChild(node, index, name) else { return nil }
            return try asIntegers(array, name) ? array : nil
        }
        let composite = try integers(node, 0, "values")
        let numbers = try optionalIntegers(1, "ints")
        let pairs = try optionalIntegers(2, "pairs")
        var strings: RawStrings?
        if let leaf = try optionalChild(node, 3, "strings") { strings = try enterStrings(leaf, isBinary: false) }
        var nested: Node?
        if let array = try optionalChild(node, 4, "refs"), try asRefs(array, "refs") { nested = array }
        let keys = try optionalIntegers(5, "keys")
        guard let composite else { return nil }
        let mixed = RawMixed(composite: composite, integers: numbers, pairs: pairs, strings: strings, refs: nested, keys: keys)
        return RawLeaf(parts: .mixed(mixed), count: composite.count)
    }
}

// MARK: Reading values

extension VerificationRun {
    /// The bytes of string or binary `index`; nil for null. `isWhole` becomes false where they are damaged or in several pieces.
    func bytes(_ strings: RawStrings, _ index: Int, isWhole: inout Bool) -> UnsafeRawBufferPointer? {
        switch strings.parts {
        case .short(let node):
            let width = node.width
            if width == 0 { return nil }
            let block = node.payload + index * width
            let padding = Int(block.load(fromByteOffset: width - 1, as: UInt8.self))
            if padding == width { return nil }
            if padding > width { isWhole = false; return nil }
            return UnsafeRawBufferPointer(start: block, count: width - 1 - padding)
        case .small(let offsets, let blob, let nulls):
            if nulls.unchecked(index) != 0 { return nil }
            let start = index == 0 ? 0 : offsets.unchecked(index - 1), end = offsets.unchecked(index)
            let terminator: Int64 = strings.isBinary ? 0 : 1
            if start < 0 || end > Int64(blob.count) || end < start || end - start < terminator { isWhole = false; return nil }
            return UnsafeRawBufferPointer(start: blob.payload + Int(start), count: Int(end - start - terminator))
        case .big(let node):
            let ref = node.unchecked(index)
            if ref == 0 { return nil }
            let terminator = strings.isBinary ? 0 : 1
            guard ref > 0, ref < Int64(limit), let blob = try? memory.node(Int(ref)), isBlob(blob), blob.count >= terminator
            else {
                isWhole = false
                return nil
            }
            return UnsafeRawBufferPointer(start: blob.payload, count: blob.count - terminator)
        }
    }

    private func text(_ strings: RawStrings, _ index: Int) -> RawValue {
        var isWhole = true
        let bytes = bytes(strings, index, isWhole: &isWhole)
        if !isWhole { return .unreadable }
        return bytes.map { strings.isBinary ? .binary($0) : .string($0) } ?? .null
    }

    /// Value `index` of a leaf; the index is trusted, what it leads to is not.
    func value(_ leaf: RawLeaf, _ index: Int) -> RawValue {
        switch leaf.parts {
        case .integers(let node): return .int(node.unchecked(index))
        case .nullableIntegers(let node):
            let value = node.unchecked(index + 1)
            return value == node.unchecked(0) ? .null : .int(value)
        case .bools(let node):
            let value = node.unchecked(index)
            return value == 3 ? .null : .bool(value != 0)
        case .floats(let node):
            let bits = node.payload.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)
            return bits == 0x7FC0_00AA ? .null : .float(Float(bitPattern: bits))
        case .doubles(let node):
            let bits = node.payload.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)
            return bits == 0x7FF8_0000_0000_00AA ? .null : .double(Double(bitPattern: bits))
        case .timestamps(let seconds, let nanoseconds):
            let value = seconds.unchecked(index + 1)
            return value == seconds.unchecked(0) ? .null : .timestamp(seconds: value, nanoseconds: nanoseconds.unchecked(index))
        case .decimals(let node): return RawDecimal.value(node, index)
        case .fixed(let node, let size):
            let block = node.payload + (index / 8) * (8 * size + 1)
            if block.load(as: UInt8.self) >> UInt8(index % 8) & 1 != 0 { return .null }
            let bytes = block + 1 + (index % 8) * size
            return size == 12 ? .objectId(bytes) : .uuid(bytes)
        case .strings(let strings): return text(strings, index)
        case .enumerated(let node, let strings):
            let position = node.unchecked(index)
            return position >= 0 && position < Int64(strings.count) ? text(strings, Int(position)) : .unreadable
        case .links(let node):
            let value = node.unchecked(index)
            return value == 0 ? .null : .key(value &- 1)
        case .keys(let node): return .key(node.unchecked(index))
        case .mixed(let mixed): return value(mixed, index)
        case .refs: return .unreadable
        }
    }

    /// Value `index` of a Mixed leaf (file-format-1 7.3).
    func value(_ mixed: RawMixed, _ index: Int) -> RawValue {
        let composite = mixed.composite.unchecked(index)
        if composite == 0 { return .null }
        let payload = composite >> 5 & 7, position = composite >> 8
        func single() -> Int64? {
            guard payload == 1, let array = mixed.integers, position >= 0, position < Int64(array.count) else { return nil }
            return array.unchecked(Int(position))
        }
        func pair() -> (Int64, Int64)? {
            guard payload == 2, let array = mixed.pairs, position >= 0, position < Int64(array.count / 2) else { return nil }
            return (array.unchecked(2 * Int(position)), array.unchecked(2 * Int(position) + 1))
        }
        func bytes() -> UnsafeRawBufferPointer? {
            guard payload == 3, let strings = mixed.strings, position >= 0, position < Int64(strings.count) else { return nil }
            var isWhole = true
            let found = self.bytes(strings, Int(position), isWhole: &isWhole)
            return isWhole ? found : nil
        }
        switch Int(composite & 31) - 1 {
        case 0:
            if payload == 0 { return .int(position) }
            return single().map { .int($0) } ?? .unreadable
        case 1: return payload == 0 ? .bool(position != 0) : .unreadable
        case 2: return bytes().map { .string($0) } ?? .unreadable
        case 4: return bytes().map { .binary($0) } ?? .unreadable
        case 8: return pair().map { .timestamp(seconds: $0.0, nanoseconds: $0.1) } ?? .unreadable
        case 9: return single().map { .float(Float(bitPattern: UInt32(truncatingIfNeeded: $0))) } ?? .unreadable
        case 10: return single().map { .double(Double(bitPattern: UInt64(bitPattern: $0))) } ?? .unreadable
        case 11:
            return pair().map { .decimal(Decimal128Bits(low: UInt64(bitPattern: $0.0), high: UInt64(bitPattern: $0.1))) }
                ?? .unreadable
        case 12: return single().map { .key($0) } ?? .unreadable
        case 15: return bytes().flatMap { $0.count == 12 ? $0.baseAddress.map { .objectId($0) } : nil } ?? .unreadable
        case 16: return pair().map { .typedLink(table: $0.0, key: $0.1) } ?? .unreadable
        case 17: return bytes().flatMap { $0.count == 16 ? $0.baseAddress.map { .uuid($0) } : nil } ?? .unreadable
        case 19: return payload == 4 ? .list : .unreadable
        case 20: return payload == 4 ? .set : .unreadable
        case 21: return payload == 4 ? .dictionary : .unreadable
        default: return .unreadable
        }
    }
}

/// Decimal leaves of all widths (file-format-1 5.7).
enum RawDecimal {
    static let nullHigh: UInt64 = 0x7C00_0000_0000_0000

    static func value(_ node: Node, _ index: Int) -> RawValue {
        switch node.width {
        case 0: return node.hasContext ? .decimal(make(negative: false, coefficient: 0, exponent: 0)) : .null
        case 4:
            let bits = node.payload.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)
            if bits == 0x7C00_00AA { return .null }
            let isLarge = bits >> 29 & 3 == 3
            if isLarge && bits >> 27 & 15 == 15 {
                return .decimal(Decimal128Bits(low: 0, high: UInt64(bits & 0xFC00_0000) << 32))
            }
            return .decimal(
                isLarge
                    ? make(
                        negative: bits >> 31 != 0, coefficient: UInt64(0x80_0000 | bits & 0x1F_FFFF),
                        exponent: Int(bits >> 21 & 0xFF) - 101)
                    : make(
                        negative: bits >> 31 != 0, coefficient: UInt64(bits & 0x7F_FFFF), exponent: Int(bits >> 23 & 0xFF) - 101))
        case 8:
            let bits = node.payload.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)
            if bits == 0x7C00_0000_0000_00AA { return .null }
            let isLarge = bits >> 61 & 3 == 3
            if isLarge && bits >> 59 & 15 == 15 { return .decimal(Decimal128Bits(low: 0, high: bits & 0xFC00_0000_0000_0000)) }
            return .decimal(
                isLarge
                    ? make(
                        negative: bits >> 63 != 0, coefficient: 1 << 53 | bits & (1 << 51 - 1),
                        exponent: Int(bits >> 51 & 0x3FF) - 398)
                    : make(negative: bits >> 63 != 0, coefficient: bits & (1 << 53 - 1), exponent: Int(bits >> 53 & 0x3FF) - 398))
        default:
            let low = node.payload.loadUnaligned(fromByteOffset: 16 * index, as: UInt64.self)
            let high = node.payload.loadUnaligned(fromByteOffset: 16 * index + 8, as: UInt64.self)
            return low == 0xAA && high == nullHigh ? .null : .decimal(Decimal128Bits(low: low, high: high))
        }
    }

    static func make(negative: Bool, coefficient: UInt64, exponent: Int) -> Decimal128Bits {
        Decimal128Bits(low: coefficient, high: (negative ? 1 << 63 : 0) | UInt64(exponent + 6176) << 49)
    }
}
