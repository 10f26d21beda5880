/// Changes to one kind of leaf: a run of values in a cluster or in a B+ tree (file-format-1 section 5).
///
/// Every function takes the ref of a leaf and returns its new ref; see `NodeEditing.swift`. An index outside the leaf
/// throws `FormatError`, since it is a leaf shorter than its parent says that makes it so.
protocol LeafEditor {
    associatedtype Element
    /// An empty leaf.
    static func create(_ arena: Arena) throws -> Int
    /// A leaf of `count` times the same value.
    static func createFilled(_ arena: Arena, count: Int, _ value: Element) throws -> Int
    static func count(_ arena: Arena, _ ref: Int) throws -> Int
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int
    /// Inserts before element `index`; an index equal to the count appends.
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int
    /// Removes an element and what it owns.
    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int
    /// Removes all elements from `count` on and what they own.
    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int
    /// Appends elements `start...` of one leaf to another and removes them from the first; what they own moves along.
    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int)
    /// The context flag of the root says something about the whole tree and stays with the root (file-format-1 9.7).
    static var contextFlagBelongsToRoot: Bool { get }
}

extension LeafEditor {
    static var contextFlagBelongsToRoot: Bool { false }

    static func createFilled(_ arena: Arena, count: Int, _ value: Element) throws -> Int {
        var ref = try create(arena)
        for index in 0..<count { ref = try insert(arena, ref, index, value) }
        return ref
    }

    static func append(_ arena: Arena, _ ref: Int, _ value: Element) throws -> Int {
        try insert(arena, ref, try count(arena, ref), value)
    }
}

/// A leaf that is one array of integers in which each element stands for a value.
protocol IntegerLeafEditor: LeafEditor {
    static func encode(_ value: Element) -> Int64
}

extension IntegerLeafEditor {
    static func create(_ arena: Arena) throws -> Int { try ArrayEditor.create(arena) }
    static func createFilled(_ arena: Arena, count: Int, _ value: Element) throws -> Int {
        try ArrayEditor.create(arena, count: count, value: encode(value))
    }
    @inline(__always)
    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try ArrayEditor.count(arena, ref) }
    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        try ArrayEditor.set(arena, ref, index, encode(value))
    }
    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        try ArrayEditor.insert(arena, ref, index, encode(value))
    }
    @inline(__always)
    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try ArrayEditor.erase(arena, ref, index) }
    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try ArrayEditor.truncate(arena, ref, to: count)
    }
    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        try ArrayEditor.moveTail(arena, from: source, at: start, to: target)
    }
}

/// Integers that cannot be null (file-format-1 5.1).
enum IntLeafEditor: IntegerLeafEditor {
    typealias Element = Int64
    @inline(__always) static func encode(_ value: Int64) -> Int64 { value }
}

/// Truth values; 3 is null (file-format-1 5.3).
enum BoolLeafEditor: IntegerLeafEditor {
    typealias Element = Bool?
    @inline(__always) static func encode(_ value: Bool?) -> Int64 { value.map { $0 ? 1 : 0 } ?? 3 }
}

/// Links of a column: object key + 1, so that 0 is null (file-format-1 8.1).
enum LinkLeafEditor: IntegerLeafEditor {
    typealias Element = ObjectKey
    @inline(__always) static func encode(_ value: ObjectKey) -> Int64 { value.rawValue &+ 1 }
}

/// Links of a list or set: the object key as it is. The context flag of the root says that some key is unresolved.
enum KeyLeafEditor: IntegerLeafEditor {
    typealias Element = ObjectKey
    @inline(__always) static func encode(_ value: ObjectKey) -> Int64 { value.rawValue }
    static var contextFlagBelongsToRoot: Bool { true }
}

/// Positions in the value list of an enumerated string column (file-format-1 6.6).
enum EnumStringLeafEditor: IntegerLeafEditor {
    typealias Element = Int
    @inline(__always) static func encode(_ value: Int) -> Int64 { Int64(value) }
}

/// Links with their table: two elements a value, (table key + 1) modulo 2^31 and object key + 1; null is (0, 0)
/// (file-format-1 8.2).
enum TypedLinkLeafEditor: LeafEditor {
    typealias Element = TypedLink?

    static func create(_ arena: Arena) throws -> Int { try ArrayEditor.create(arena) }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try ArrayEditor.count(arena, ref) / 2 }

    private static func encode(_ value: TypedLink?) -> (table: Int64, object: Int64) {
        guard let value else { return (0, 0) }
        return (Int64((value.table.rawValue &+ 1) & 0x7FFF_FFFF), value.object.rawValue &+ 1)
    }

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: TypedLink?) throws -> Int {
        let (table, object) = encode(value)
        return try ArrayEditor.set(arena, try ArrayEditor.set(arena, ref, index &* 2, table), index &* 2 &+ 1, object)
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: TypedLink?) throws -> Int {
        let (table, object) = encode(value)
        return try ArrayEditor.insert(arena, try ArrayEditor.insert(arena, ref, index &* 2, table), index &* 2 &+ 1, object)
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        try ArrayEditor.erase(arena, try ArrayEditor.erase(arena, ref, index &* 2 &+ 1), index &* 2)
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try ArrayEditor.truncate(arena, ref, to: count &* 2)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        try ArrayEditor.moveTail(arena, from: source, at: start &* 2, to: target)
    }
}

/// One ref a row: the roots of the collections of a list, set or dictionary column, 0 for none (file-format-1 8.4).
///
/// Setting an element does not free what stood there: the caller has edited it, or frees it. Erasing and truncating do.
enum RefLeafEditor: LeafEditor {
    typealias Element = Int

    static func create(_ arena: Arena) throws -> Int { try arena.makeRefs(count: 0) }
    static func createFilled(_ arena: Arena, count: Int, _ value: Int) throws -> Int {
        try ArrayEditor.create(arena, flags: 0x40, count: count, value: Int64(value))
    }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try ArrayEditor.count(arena, ref) }

    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int) throws -> Int {
        if !arena.memory.isInArena(ref) { return try ArrayEditor.set(arena, try arena.writableRefs(ref), index, Int64(value)) }
        return try ArrayEditor.set(arena, ref, index, Int64(value))
    }

    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int) throws -> Int {
        try ArrayEditor.insert(arena, ref, index, Int64(value))
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try arena.writableRefs(ref)
        try releaseElement(arena, ref, index)
        return try ArrayEditor.erase(arena, ref, index)
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let old = arena.header(ref).count
        if count < old { for index in count..<old { try releaseElement(arena, ref, index) } }
        return try ArrayEditor.truncate(arena, ref, to: count)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        try ArrayEditor.moveTail(arena, from: try arena.writableRefs(source), at: start, to: target)
    }

    private static func releaseElement(_ arena: Arena, _ ref: Int, _ index: Int) throws {
        guard index < arena.header(ref).count else { throw arena.indexOutside(ref, index, arena.header(ref).count) }
        let value = arena.element(ref, index)
        if value != 0 && value & 1 == 0 { try arena.releaseTree(Int(value)) }
    }
}
