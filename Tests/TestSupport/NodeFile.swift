import SharedStore

/// The bytes of a file, made node by node by a test that knows what should stand where.
///
/// Makes what no given file contains: odd shapes, old shapes, damage. Children are made before their parents; every call
/// returns the ref of what it made. Elements of arrays of refs are given raw: a ref as it is, a number as `NodeFile.tagged(n)`.
public struct NodeFile {
    public private(set) var bytes = [UInt8](repeating: 0, count: 24)

    public init() {}

    public static func tagged(_ value: Int) -> Int { value &* 2 &+ 1 }

    // MARK: Nodes

    /// A node with the given byte 4, count and payload.
    public mutating func node(flags: UInt8, count: Int, payload: [UInt8]) -> Int {
        let ref = bytes.count
        bytes += NodeBytes.node(flags: flags, count: count, payload: payload)
        return ref
    }

    /// An array whose elements have the given width at least; `flags` is byte 4 without the width.
    public mutating func array(_ values: [Int64], flags: UInt8, widthMin: Int = 0) -> Int {
        packed(values, width: max(widthMin, NodeBytes.width(of: values)), flags: flags)
    }

    private mutating func packed(_ values: [Int64], width: Int, flags: UInt8) -> Int {
        node(flags: flags | NodeBytes.code(width), count: values.count, payload: NodeBytes.packed(values, width: width))
    }

    /// A plain integer array, as narrow as its values allow or with the given width code.
    public mutating func integers(_ values: [Int], code: Int? = nil, context: Bool = false) -> Int {
        let values = values.map(Int64.init)
        return packed(values, width: code.map { (1 << $0) >> 1 } ?? NodeBytes.width(of: values), flags: context ? 0x20 : 0)
    }

    /// An unsigned array: keys and offsets of cluster trees, offsets of B+ trees.
    public mutating func unsigned(_ values: [UInt64]) -> Int {
        packed(values.map { Int64(bitPattern: $0) }, width: NodeBytes.width(unsigned: values), flags: 0)
    }

    /// An array of refs and tagged numbers.
    public mutating func refs(_ elements: [Int], inner: Bool = false, context: Bool = false) -> Int {
        array(elements.map(Int64.init), flags: 0x40 | (inner ? 0x80 : 0) | (context ? 0x20 : 0))
    }

    /// A leaf of short strings with blocks of 64 bytes.
    public mutating func strings(_ values: [String?]) -> Int {
        var payload: [UInt8] = []
        for value in values {
            let utf8 = Array((value ?? "").utf8)
            precondition(utf8.count < 64)
            payload += utf8 + [UInt8](repeating: 0, count: 63 - utf8.count) + [value == nil ? 64 : UInt8(63 - utf8.count)]
        }
        return node(flags: 0x0F, count: values.count, payload: payload)
    }

    public mutating func blob(_ content: [UInt8]) -> Int { node(flags: 0x11, count: content.count, payload: content) }

    /// A Mixed leaf of the given number of elements, from its composite values and payload arrays.
    public mutating func mixed(
        _ composite: [Int], ints: [Int]? = nil, pairs: [Int]? = nil, strings: [String?]? = nil, refs: [Int]? = nil,
        keys: [Int]? = nil, slots: Int = 6
    ) -> Int {
        var elements = [integers(composite)]
        elements.append(ints.map { integers($0) } ?? 0)
        elements.append(pairs.map { integers($0) } ?? 0)
        elements.append(strings.map { self.strings($0) } ?? 0)
        elements.append(refs.map { self.refs($0) } ?? 0)
        elements.append(keys.map { integers($0) } ?? 0)
        return self.refs(Array(elements[..<slots]))
    }

    // MARK: Tables

    /// A column of a hand-made table: its key, its name, and its leaf (for a table with one cluster leaf).
    public struct Column {
        public var name: String?
        public var type: Int
        /// All attributes; the key has them without index bits.
        public var attributes: Int
        public var leaf: Int
        public var leafIndex: Int
        public var tag: Int
        public var keyType: Int
        public var index = 0
        public var oppositeTable = 0x7FFF_FFFF
        public var oppositeColumn = Int.max

        public init(_ name: String?, type: Int, attributes: Int = 0, leaf: Int, leafIndex: Int, tag: Int = 0, keyType: Int = 0) {
            self.name = name
            self.type = type
            self.attributes = attributes
            self.leaf = leaf
            self.leafIndex = leafIndex
            self.tag = tag
            self.keyType = keyType
        }

        public var key: Int { leafIndex | type << 16 | (attributes & 0xFE) << 22 | tag << 30 }
    }

    /// A cluster leaf in compact form, or with the given keys.
    public mutating func cluster(_ columns: [Column], rows: Int, keys: [UInt64]? = nil) -> Int {
        var elements = [keys.map { unsigned($0) } ?? NodeFile.tagged(rows)]
        elements += [Int](repeating: 0, count: (columns.map(\.leafIndex).max() ?? -1) + 1)
        for column in columns { elements[column.leafIndex + 1] = column.leaf }
        return refs(elements)
    }

    /// A table top. `tree` is the root of the cluster tree; `primaryKey` is the raw slot, 0 for none.
    public mutating func table(
        key: Int, _ columns: [Column], tree: Int, kind: Int = 0, primaryKey: Int = 0, tombstones: Int = 0,
        collisions: Int = 0, slots: Int = 14
    ) -> Int {
        let types = integers(columns.map { $0.type | $0.keyType << 16 })
        let names = strings(columns.compactMap(\.name))
        let attributes = integers(columns.map(\.attributes))
        let keys = integers(columns.map(\.key))
        let spec = refs([types, names, attributes, 0, 0, keys])
        let count = (columns.map(\.leafIndex).max() ?? -1) + 1
        var indexes = [Int](repeating: 0, count: count)
        var tables = [Int](repeating: 0x7FFF_FFFF, count: count), opposite = [Int](repeating: Int.max, count: count)
        for column in columns {
            indexes[column.leafIndex] = column.index
            tables[column.leafIndex] = column.oppositeTable
            opposite[column.leafIndex] = column.oppositeColumn
        }
        let indexesRef = refs(indexes), tablesRef = integers(tables), oppositeRef = integers(opposite)
        let all = [
            spec, 0, tree, NodeFile.tagged(key), indexesRef, 1, 1, tablesRef, oppositeRef, 0, collisions, primaryKey,
            NodeFile.tagged(kind), tombstones,
        ]
        return refs(Array(all[..<slots]))
    }

    // MARK: Files

    /// The file in streaming form.
    public func streaming(names: [String], tables: [Int], format: UInt8 = 24) -> [UInt8] {
        var file = self
        let elements = [file.strings(names), file.refs(tables), 0]
        return file.streaming(top: elements.map(Int64.init), format: format)
    }

    /// The file in streaming form, with a top array of these elements, of which the third one becomes the size.
    public func streaming(top elements: [Int64], flags: UInt8 = 0x40, format: UInt8) -> [UInt8] {
        var file = self
        let top = file.addTop(elements, flags)
        file.bytes += NodeBytes.word(UInt64(top)) + NodeBytes.word(FileHeader.footerCookie)
        let slots = NodeBytes.word(FileHeader.streamingMark) + NodeBytes.word(0)
        file.bytes.replaceSubrange(0..<24, with: slots + [0x54, 0x2D, 0x44, 0x42, format, 0, 0, 0])
        return file.bytes
    }

    /// 64 bits an element, so that the size of the array does not depend on what it says of the size of the file.
    private mutating func addTop(_ elements: [Int64], _ flags: UInt8) -> Int {
        var elements = elements
        if elements.count > 2 { elements[2] = Int64(NodeFile.tagged(bytes.count + 8 + 8 * elements.count)) }
        return array(elements, flags: flags, widthMin: 64)
    }

    /// The file in place, slot 1 live, with a top array of `slots` elements, padded to a page.
    public func inPlace(names: [String], tables: [Int], slots: Int, format: UInt8 = 24, version: Int = 2) -> [UInt8] {
        var file = self
        let content = [file.strings(names), file.refs(tables), 0]
        let all = content + [file.integers([]), file.integers([]), file.integers([]), NodeFile.tagged(version)]
        let elements = (all + [Int](repeating: 0, count: 12)).prefix(slots).map(Int64.init)
        let top = file.addTop(elements, 0x40)
        file.bytes.replaceSubrange(
            8..<24, with: NodeBytes.word(UInt64(top)) + [0x54, 0x2D, 0x44, 0x42, 0, format, 0, 1])
        file.bytes += [UInt8](repeating: 0, count: (4096 - file.bytes.count % 4096) % 4096)
        return file.bytes
    }
}
