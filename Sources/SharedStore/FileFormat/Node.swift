/// A node: 8 bytes of header, then `count` elements (file-format-1 section 2).
///
/// ```
/// byte   0..3: checksum placeholder, or in the arena the capacity   4: flags   5..7: count, big-endian
/// flags  0x80 inner tree node   0x40 has refs   0x20 context   0x18 width type   0x07 width code
/// ```
/// A `Node` is made by `Memory.node`, which has checked that header and payload lie inside the readable bytes. Element
/// accessors with `unchecked` in their name trust the index; the others throw on an index outside `0..<count`.
@frozen public struct Node {
    public let ref: Int
    /// The first byte of the payload.
    public let payload: UnsafeRawPointer
    /// Number of elements; of bytes for some leaves (width type 2, ObjectId and UUID leaves).
    public let count: Int
    /// Byte 4 of the header.
    public let flags: UInt8

    @inline(__always)
    init(ref: Int, header: UnsafeRawPointer) {
        self.ref = ref
        payload = header + 8
        let word = header.loadUnaligned(fromByteOffset: 4, as: UInt32.self).bigEndian
        flags = UInt8(truncatingIfNeeded: word >> 24)
        count = Int(word & 0xFF_FFFF)
    }

    /// An inner node of a B+ tree.
    @inline(__always) public var isInner: Bool { flags & 0x80 != 0 }
    /// Its elements are refs, or tagged integers.
    @inline(__always) public var hasRefs: Bool { flags & 0x40 != 0 }
    /// Its meaning depends on the kind of node.
    @inline(__always) public var hasContext: Bool { flags & 0x20 != 0 }
    /// 0 bits an element, 1 bytes an element, 2 ignored (the count is a number of bytes).
    @inline(__always) public var widthType: Int { Int(flags >> 3 & 3) }
    /// 0, 1, 2, 4, 8, 16, 32 or 64, in the unit of the width type.
    @inline(__always) public var width: Int { (1 << Int(flags & 7)) >> 1 }

    /// Bytes behind the header, without padding.
    @inline(__always) public var payloadByteCount: Int {
        switch widthType {
        case 0: (count &* width &+ 7) >> 3
        case 1: count &* width
        default: count
        }
    }

    /// Bytes of the node in the file: header, payload, padding to a multiple of 8.
    @inline(__always) public var byteCount: Int { 8 &+ ((payloadByteCount &+ 7) & ~7) }

    // MARK: Elements of width type 0

    /// Element `index` as a signed integer (widths below 8 are unsigned); the index is trusted.
    @inlinable @inline(__always)
    public func unchecked(_ index: Int) -> Int64 {
        Node.element(payload, Int(flags & 7), index)
    }

    @inlinable @inline(__always)
    static func element(_ p: UnsafeRawPointer, _ widthCode: Int, _ i: Int) -> Int64 {
        switch widthCode {
        case 0: return 0
        case 1: return Int64(p.load(fromByteOffset: i >> 3, as: UInt8.self) >> UInt8(truncatingIfNeeded: i & 7) & 1)
        case 2: return Int64(p.load(fromByteOffset: i >> 2, as: UInt8.self) >> UInt8(truncatingIfNeeded: (i & 3) << 1) & 3)
        case 3: return Int64(p.load(fromByteOffset: i >> 1, as: UInt8.self) >> UInt8(truncatingIfNeeded: (i & 1) << 2) & 15)
        case 4: return Int64(p.load(fromByteOffset: i, as: Int8.self))
        case 5: return Int64(p.loadUnaligned(fromByteOffset: i &* 2, as: Int16.self))
        case 6: return Int64(p.loadUnaligned(fromByteOffset: i &* 4, as: Int32.self))
        default: return p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)
        }
    }

    /// Element `index` of an unsigned array: offsets of a B+ tree, keys and offsets of a cluster tree (file-format-1 3.1).
    @inline(__always)
    public func uncheckedUnsigned(_ index: Int) -> UInt64 {
        let p = payload
        switch flags & 7 {
        case 4: return UInt64(p.load(fromByteOffset: index, as: UInt8.self))
        case 5: return UInt64(p.loadUnaligned(fromByteOffset: index &* 2, as: UInt16.self))
        case 6: return UInt64(p.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
        default: return UInt64(bitPattern: unchecked(index))
        }
    }

    /// Element `index` as a signed integer.
    @inline(__always)
    public func integer(_ index: Int) throws -> Int64 {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw indexError(index) }
        return unchecked(index)
    }

    /// Element `index` as an unsigned integer, see `uncheckedUnsigned`.
    @inline(__always)
    public func unsigned(_ index: Int) throws -> UInt64 {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw indexError(index) }
        return uncheckedUnsigned(index)
    }

    /// Element `index` as a ref: 0 for none. Throws where the element is a tagged integer. A missing element reads as 0.
    @inline(__always)
    public func optionalRef(_ index: Int) throws -> Int {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return 0 }
        let v = unchecked(index)
        if v & 1 != 0 || v < 0 { throw refError(index, v) }
        return Int(v)
    }

    /// Element `index` as a ref that must be there.
    @inline(__always)
    public func requiredRef(_ index: Int) throws -> Int {
        let r = try optionalRef(index)
        if r == 0 { throw missingRefError(index) }
        return r
    }

    /// Element `index` as a tagged integer; 0 stands for 0, and a missing element reads as 0.
    @inline(__always)
    public func tagged(_ index: Int) throws -> Int {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return 0 }
        let v = unchecked(index)
        if v == 0 { return 0 }
        if v & 1 == 0 { throw taggedError(index) }
        return Int(truncatingIfNeeded: UInt64(bitPattern: v) >> 1)
    }

    // Errors are made out of line, so that the accessors above stay small where they are inlined.

    @inline(never) func refError(_ index: Int, _ v: Int64) -> FormatError {
        FormatError(ref: ref, "element \(index) is \(v), not a ref")
    }
    @inline(never) func missingRefError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "element \(index) has no ref")
    }
    @inline(never) func taggedError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "element \(index) is a ref, not a number")
    }
    @inline(never) func indexError(_ index: Int) -> FormatError {
        FormatError(ref: ref, "element \(index) asked of a node with \(count)")
    }
}
