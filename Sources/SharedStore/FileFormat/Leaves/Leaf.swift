/// A reader of one leaf: consecutive values of a column in a cluster, or of a collection (file-format-1 sections 5 to 8).
///
/// Making a reader checks everything about the leaf that costs a fixed number of steps: kind of node, child nodes, that
/// counts agree, that payloads lie inside the version. What only a look at every element could tell (offsets, indexes into
/// payload arrays) is checked at the access that relies on it. So a reader of a damaged leaf throws, and never reads outside
/// of the version.
///
/// A reader holds addresses, counts and widths, no references: it may be copied freely, and is valid as long as the version
/// (or, in a write transaction, until the leaf is changed). Any number of threads may use one.
public protocol Leaf {
    associatedtype Element
    /// The reader of the leaf at `ref`. Throws `FormatError` where the node is no leaf of this kind, or lies outside the version.
    init(_ memory: Memory, _ ref: Int) throws
    /// Number of values.
    var count: Int { get }
    /// Value `index`. Throws `FormatError` on an index outside of `0..<count` and on a damaged value.
    func value(_ index: Int) throws -> Element
}

extension Leaf {
    /// Throws unless `index` is one of `0..<count`.
    @inlinable @inline(__always)
    func check(_ index: Int, _ ref: Int) throws {
        if UInt(bitPattern: index) >= UInt(bitPattern: count) { throw indexError(ref, index, count) }
    }
}

@usableFromInline @inline(never)
func indexError(_ ref: Int, _ index: Int, _ count: Int) -> FormatError {
    FormatError(ref: ref, "value \(index) asked of a leaf with \(count)")
}

extension Node {
    /// Throws unless this is a plain array of integers: width type 0, no refs, not inner. The context flag is left free, since
    /// the root leaf of a list of links carries one.
    @inline(__always)
    func checkIntegers(_ purpose: StaticString) throws {
        if flags & 0xD8 != 0 { throw kindError(purpose, "an array of integers") }
    }

    /// Throws unless this is an array with refs that is no inner node.
    @inline(__always)
    func checkRefs(_ purpose: StaticString) throws {
        if flags & 0xD8 != 0x40 { throw kindError(purpose, "an array of refs") }
    }

    /// Throws unless this is an array of width type 1 (bytes an element), no refs, not inner.
    @inline(__always)
    func checkBlocks(_ purpose: StaticString) throws {
        if flags & 0xD8 != 0x08 { throw kindError(purpose, "an array of byte blocks") }
    }

    @inline(never)
    func kindError(_ purpose: StaticString, _ expected: StaticString) -> FormatError {
        FormatError(ref: ref, "\(purpose) must be \(expected), found flags 0x\(String(flags, radix: 16)) and \(count) elements")
    }
}

/// The elements of a checked integer array without its header: an address and a width code. Indexes are trusted.
struct PackedIntegers {
    let payload: UnsafeRawPointer
    /// 0 to 7 for 0, 1, 2, 4, 8, 16, 32, 64 bits.
    let widthCode: Int

    @inline(__always)
    init(_ node: Node) {
        payload = node.payload
        widthCode = Int(node.flags & 7)
    }

    @inline(__always)
    subscript(index: Int) -> Int64 { Node.element(payload, widthCode, index) }

    /// Elements `index - 1` and `index`, with 0 for the element before the first: begin and end of a value by its end offsets.
    @inline(__always)
    func span(_ index: Int) -> (start: Int64, end: Int64) {
        let p = payload
        switch widthCode {
        case 4:
            let q = p + index
            let start = index == 0 ? 0 : q.load(fromByteOffset: -1, as: Int8.self)
            return (Int64(start), Int64(q.load(as: Int8.self)))
        case 5:
            let q = p + index &* 2
            let start = index == 0 ? 0 : q.loadUnaligned(fromByteOffset: -2, as: Int16.self)
            return (Int64(start), Int64(q.loadUnaligned(as: Int16.self)))
        case 6:
            let q = p + index &* 4
            let start = index == 0 ? 0 : q.loadUnaligned(fromByteOffset: -4, as: Int32.self)
            return (Int64(start), Int64(q.loadUnaligned(as: Int32.self)))
        default:
            return (index == 0 ? 0 : self[index &- 1], self[index])
        }
    }
}

extension Memory {
    /// Bytes that can be read at all: those of the version and of the arena. No valid structure holds more.
    @inline(__always)
    var readableByteCount: Int { state.pointee.fileLimit &+ (state.pointee.arenaLimit &- state.pointee.arenaStart) }
}
