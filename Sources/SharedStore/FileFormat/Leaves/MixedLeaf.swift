/// Mixed: values of any kind (file-format-1 section 7).
///
/// ```
/// array of refs, 4 to 6 elements; a missing one is 0, and 0 is an empty array:
///   0 composite  integers, one a value: [63:8] X, signed  [7:5] P  [4:0] type number + 1; 0 is null
///   1 ints       integers: large Int, Float, Double, untyped link
///   2 pairs      integers, two a value: Timestamp, Decimal, typed link
///   3 strings    string leaf: String, Binary, ObjectId, UUID
///   4 refs       refs: roots of nested collections, 0 while empty
///   5 keys       integers, one a value: the key of the nested collection; may be shorter than composite
/// ```
/// P is the number of the array that holds the payload, X the index in it; with P = 0 the value is X itself. Invariants: type and
/// P agree; X lies inside the array. Nothing follows from the order of payloads.
public struct MixedLeaf: Leaf {
    /// Of the leaf's root, for errors.
    public let ref: Int
    let composite: Node
    let ints: Node?
    let pairs: Node?
    let strings: StringLeaf?
    let refs: Node?
    let keys: Node?

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        let node = try memory.node(ref)
        try node.checkRefs("Mixed leaf")
        if node.count < 4 || node.count > 6 { throw node.kindError("Mixed leaf", "an array of 4 to 6 refs") }
        self.ref = ref
        composite = try memory.node(node.requiredRef(0))
        try composite.checkIntegers("composite array of a Mixed leaf")
        ints = try MixedLeaf.integers(memory, node, 1, "ints of a Mixed leaf")
        pairs = try MixedLeaf.integers(memory, node, 2, "pairs of a Mixed leaf")
        keys = try MixedLeaf.integers(memory, node, 5, "keys of a Mixed leaf")
        let stringsRef = try node.optionalRef(3), refsRef = try node.optionalRef(4)
        strings = stringsRef == 0 ? nil : try StringLeaf(memory, stringsRef)
        refs = refsRef == 0 ? nil : try memory.node(refsRef)
        try refs?.checkRefs("refs of a Mixed leaf")
    }

    @inline(__always)
    private static func integers(_ memory: Memory, _ node: Node, _ index: Int, _ purpose: StaticString) throws -> Node? {
        let ref = try node.optionalRef(index)
        if ref == 0 { return nil }
        let array = try memory.node(ref)
        try array.checkIntegers(purpose)
        return array
    }

    @inline(__always) public var count: Int { composite.count }

    /// The type number of value `index` (file-format-1 section 10), -1 for null. Not checked for being one that is known.
    @inline(__always)
    public func typeNumber(_ index: Int) throws -> Int {
        try check(index, ref)
        return Int(composite.unchecked(index) & 0x1F) &- 1
    }

    /// A copy of the value, also of one that is split over several blobs. Of a collection only the kind.
    public func value(_ index: Int) throws -> Mixed {
        try check(index, ref)
        let element = composite.unchecked(index)
        if element & 0xE0 == 3 << 5, let joined = try strings?.splitBytes(payloadIndex(element, strings?.count)) {
            switch element & 0x1F {
            case 3: return .string(String(decoding: joined, as: UTF8.self))
            case 5: return .binary(joined)
            default: break
            }
        }
        return Mixed(try view(index))
    }

    /// Value `index` where it lies: strings and binaries as bytes of the file. Throws on one that is split over several blobs
    /// (over 16,777,200 bytes), which only `value` can read.
    public func view(_ index: Int) throws -> MixedView {
        try check(index, ref)
        let element = composite.unchecked(index)
        if element == 0 { return .null }
        let x = element >> 8
        // Type and place of the payload at once: the low 8 bits, P in the upper three.
        switch UInt8(truncatingIfNeeded: element) {
        case 0x01: return .int(x)
        case 0x21: return .int(try integer(element))
        case 0x02: return .bool(x != 0)
        case 0x63: return .string(try bytes(element))
        case 0x65: return .binary(try bytes(element))
        case 0x49:
            let (seconds, nanoseconds) = try pair(element)
            if UInt64(bitPattern: nanoseconds &+ 999_999_999) > 1_999_999_998 {
                throw damage(element, "has \(nanoseconds) nanoseconds")
            }
            return .timestamp(Timestamp(seconds: seconds, nanoseconds: Int32(truncatingIfNeeded: nanoseconds)))
        case 0x2A: return .float(Float(bitPattern: UInt32(truncatingIfNeeded: try integer(element))))
        case 0x2B: return .double(Double(bitPattern: UInt64(bitPattern: try integer(element))))
        case 0x4C:
            let (low, high) = try pair(element)
            return .decimal(Decimal128Bits(low: UInt64(bitPattern: low), high: UInt64(bitPattern: high)))
        case 0x2D: return .link(.null, ObjectKey(try integer(element)))
        case 0x70: return .objectId(ObjectIdValue(try bytes(element, count: 12)))
        case 0x72: return .uuid(UUIDValue(try bytes(element, count: 16)))
        case 0x51:
            let (table, object) = try pair(element)
            guard let key = UInt32(exactly: table), key <= 0x7FFF_FFFF else { throw damage(element, "links to table \(table)") }
            return .link(TableKey(key), ObjectKey(object))
        case 0x94, 0x95: return .list
        case 0x96: return .dictionary
        default: throw damage(element, "has an unknown type or a payload in the wrong array")
        }
    }

    /// The root of the nested collection that value `index` is: of a `BPlusTree<MixedLeaf>`, or the top array of a dictionary;
    /// 0 while it is empty. Throws where the value is no collection.
    public func nestedRef(_ index: Int) throws -> Int {
        try check(index, ref)
        let element = composite.unchecked(index)
        switch UInt8(truncatingIfNeeded: element) {
        case 0x94, 0x95, 0x96: break
        default: throw damage(element, "is no collection")
        }
        let x = try payloadIndex(element, refs?.count)
        return try refs?.optionalRef(x) ?? 0
    }

    /// The key that identifies the nested collection that value `index` is. Without meaning, mostly 0, where it is none.
    public func key(_ index: Int) throws -> Int64 {
        try check(index, ref)
        guard let keys, index < keys.count else { return 0 }
        return keys.unchecked(index)
    }

    // MARK: Payloads

    @inline(__always)
    private func payloadIndex(_ element: Int64, _ count: Int?) throws -> Int {
        let x = element >> 8
        if x < 0 || x >= Int64(count ?? 0) { throw damage(element, "has no payload: index \(x) of \(count ?? 0)") }
        return Int(x)
    }

    @inline(__always)
    private func integer(_ element: Int64) throws -> Int64 {
        let x = try payloadIndex(element, ints?.count)
        return ints?.unchecked(x) ?? 0
    }

    @inline(__always)
    private func pair(_ element: Int64) throws -> (Int64, Int64) {
        guard let pairs else { throw damage(element, "has no payload: no pairs") }
        let x = try payloadIndex(element, pairs.count >> 1)
        return (pairs.unchecked(2 &* x), pairs.unchecked(2 &* x &+ 1))
    }

    @inline(__always)
    private func bytes(_ element: Int64) throws -> UnsafeRawBufferPointer {
        guard let strings, let bytes = try strings.bytes(payloadIndex(element, strings.count)) else {
            throw damage(element, "has no payload: no string")
        }
        return bytes
    }

    @inline(__always)
    private func bytes(_ element: Int64, count: Int) throws -> UnsafeRawPointer {
        let bytes = try bytes(element)
        guard bytes.count == count, let address = bytes.baseAddress else {
            throw damage(element, "has \(bytes.count) bytes, not \(count)")
        }
        return address
    }

    @inline(never)
    private func damage(_ element: Int64, _ reason: String) -> FormatError {
        FormatError(ref: ref, "Mixed value 0x\(String(UInt64(bitPattern: element), radix: 16)) \(reason)")
    }
}
