/// Changes to leaves of integers that can be null (file-format-1 5.2).
///
/// ```
/// element 0: the sentinel z;   value i is element i + 1, null if equal to z
/// ```
/// Invariant: below 64 bits z is the largest number of the width, which therefore is never a value; at 64 bits it is any
/// number that is not a value. A leaf of a foreign writer may have another sentinel; it gets 64 bits before it is changed.
enum NullableIntLeafEditor: LeafEditor {
    typealias Element = Int64?

    static func create(_ arena: Arena) throws -> Int { try ArrayEditor.create(arena, count: 1, value: 0) }

    static func createFilled(_ arena: Arena, count: Int, _ value: Int64?) throws -> Int {
        var ref = try create(arena)
        if let value { ref = try makeStorable(arena, ref, value) }
        let stored = try value ?? ArrayEditor.get(arena, ref, 0)
        ref = try ArrayEditor.writable(arena, ref, growth: count, code: 0)
        for _ in 0..<count { ref = try ArrayEditor.append(arena, ref, stored) }
        return ref
    }

    @inline(__always)
    static func count(_ arena: Arena, _ ref: Int) throws -> Int {
        let count = try ArrayEditor.count(arena, ref)
        if count == 0 { throw noSentinel(ref) }
        return count &- 1
    }

    @inline(never)
    private static func noSentinel(_ ref: Int) -> FormatError {
        FormatError(ref: ref, "leaf of nullable integers lacks its first element")
    }

    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64?) throws -> Int {
        // index + 1 must not be the sentinel's place.
        if index < 0 { throw arena.indexOutside(ref, index, try count(arena, ref)) }
        guard let value else { return try ArrayEditor.set(arena, ref, index &+ 1, try ArrayEditor.get(arena, ref, 0)) }
        return try ArrayEditor.set(arena, try makeStorable(arena, ref, value), index &+ 1, value)
    }

    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64?) throws -> Int {
        if index < 0 { throw arena.indexOutside(ref, index, try count(arena, ref)) }
        guard let value else { return try ArrayEditor.insert(arena, ref, index &+ 1, try ArrayEditor.get(arena, ref, 0)) }
        return try ArrayEditor.insert(arena, try makeStorable(arena, ref, value), index &+ 1, value)
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        if index < 0 { throw arena.indexOutside(ref, index, try count(arena, ref)) }
        return try ArrayEditor.erase(arena, ref, index &+ 1)
    }

    /// A leaf truncated to nothing starts over with width 0 and the sentinel 0.
    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        if count < 0 { throw arena.indexOutside(ref, count, try self.count(arena, ref)) }
        if count > 0 { return try ArrayEditor.truncate(arena, ref, to: count &+ 1) }
        return try ArrayEditor.append(arena, try ArrayEditor.truncate(arena, ref, to: 0), 0)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let node = try arena.integerNode(source)
        guard node.count > 0, start >= 0, start < node.count else { throw arena.indexOutside(source, start, node.count - 1) }
        let sentinel = node.unchecked(0)
        var target = target
        for index in start &+ 1..<max(node.count, start &+ 1) {
            let value = node.unchecked(index)
            target = try insert(arena, target, try count(arena, target), value == sentinel ? nil : value)
        }
        return (try truncate(arena, source, to: start), target)
    }

    // MARK: The sentinel

    /// The largest number of a width of at most 32 bits.
    @inline(__always)
    private static func upperBound(_ code: Int) -> Int64 {
        switch code {
        case 0: 0
        case 1: 1
        case 2: 3
        case 3: 15
        case 4: 0x7F
        case 5: 0x7FFF
        default: 0x7FFF_FFFF
        }
    }

    /// The leaf in a state in which `value` can be stored without being taken for null.
    @inline(__always)
    private static func makeStorable(_ arena: Arena, _ ref: Int, _ value: Int64) throws -> Int {
        let node = try arena.integerNode(ref)
        guard node.count > 0 else { throw noSentinel(ref) }
        let code = Int(node.flags & 7)
        let sentinel = node.unchecked(0)
        if code == 7 {
            if value != sentinel { return ref }
        } else if sentinel == upperBound(code) && value < sentinel && SignedCoding.widthCode(value) <= code {
            return ref
        }
        return try replaceSentinel(arena, ref, for: value)
    }

    @inline(never)
    private static func replaceSentinel(_ arena: Arena, _ ref: Int, for value: Int64) throws -> Int {
        let node = try arena.integerNode(ref)
        let code = Int(node.flags & 7)
        let old = node.unchecked(0)
        var wanted = max(code, SignedCoding.widthCode(value))
        if wanted < 7 && value == upperBound(wanted) { wanted += 1 }
        // Data may hold the bound of the present width where the sentinel is another number.
        if code < 7 && old != upperBound(code) { wanted = 7 }
        let new = wanted < 7 ? upperBound(wanted) : unusedValue(node, and: value)
        let ref = try ArrayEditor.writable(arena, ref, growth: 1, code: wanted)
        let payload = arena.payload(ref)
        let (flags, count) = arena.header(ref)
        for index in 0..<count where SignedCoding.load(payload, Int(flags & 7), index) == old {
            _ = SignedCoding.storeIfFitting(payload, Int(flags & 7), index, new)
        }
        return ref
    }

    /// A number that differs from all elements and from `value`; the steps are those of the format's own writer.
    private static func unusedValue(_ node: Node, and value: Int64) -> Int64 {
        var candidate = Int64.max
        while candidate == value || (0..<node.count).contains(where: { node.unchecked($0) == candidate }) {
            candidate = candidate &+ 0xFFFF_FFFB
        }
        return candidate
    }
}
