/// Changes to leaves of backlinks: who links to each row from one column (file-format-1 8.3, file-format-2 5.9).
///
/// ```
/// element 0: nobody;  odd: one origin key, element >> 1;  else: ref of a B+ tree of two or more origin keys
/// ```
/// A key stands once for every link. Tagged keys have 63 bits.
enum BacklinkLeafEditor {
    private typealias Keys = BPlusTreeEditor<IntLeafEditor>

    static func create(_ arena: Arena) throws -> Int { try RefLeafEditor.create(arena) }
    static func createFilled(_ arena: Arena, count: Int) throws -> Int { try RefLeafEditor.createFilled(arena, count: count, 0) }
    static func count(_ arena: Arena, _ ref: Int) throws -> Int { try RefLeafEditor.count(arena, ref) }

    /// Inserts a row to which nobody links.
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try RefLeafEditor.insert(arena, ref, index, 0) }

    /// Removes a row and its backlinks.
    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int { try RefLeafEditor.erase(arena, ref, index) }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        try RefLeafEditor.truncate(arena, ref, to: count)
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        try RefLeafEditor.moveTail(arena, from: source, at: start, to: target)
    }

    /// Records one more link from `origin` to row `index`.
    static func add(_ arena: Arena, _ ref: Int, _ index: Int, _ origin: ObjectKey) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let element = try element(arena, ref, index)
        if element == 0 {
            arena.setElement(ref, index, tag(origin))
        } else if element & 1 != 0 {
            let keys = try Keys.append(arena, try Keys.create(arena), untag(element).rawValue)
            arena.setElement(ref, index, try Keys.append(arena, keys, origin.rawValue))
        } else {
            arena.setElement(ref, index, try Keys.append(arena, try arena.child(ref, index), origin.rawValue))
        }
        return ref
    }

    /// Forgets one link from `origin` to row `index`. Throws where there is none: links and backlinks then disagree.
    static func remove(_ arena: Arena, _ ref: Int, _ index: Int, _ origin: ObjectKey) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let element = try element(arena, ref, index)
        if element == 0 { throw missing(ref, index, origin) }
        if element & 1 != 0 {
            if untag(element) != origin { throw missing(ref, index, origin) }
            arena.setElement(ref, index, 0)
            return ref
        }
        var root = try arena.child(ref, index)
        let keys = try BPlusTree<IntLeaf>(arena.memory, root, isOfBacklinks: true)
        var found = -1
        var start = 0
        while found < 0 && start < keys.count {
            let (leaf, first) = try keys.leaf(containing: start)
            if let i = leaf.node.firstIndex(of: origin.rawValue) { found = first + i }
            start = first + leaf.count
        }
        if found < 0 { throw missing(ref, index, origin) }
        let last = keys.count - 1
        let lastKey = try keys.value(at: last)
        if found != last { root = try Keys.set(arena, root, found, lastKey) }
        root = try Keys.erase(arena, root, last)
        if last == 1 {
            arena.setElement(ref, index, tag(ObjectKey(try BPlusTree<IntLeaf>(arena.memory, root).value(at: 0))))
            try arena.releaseTree(root)
        } else {
            arena.setElement(ref, index, root)
        }
        return ref
    }

    /// Forgets all links to row `index`.
    static func removeAll(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let element = try element(arena, ref, index)
        if element != 0 && element & 1 == 0 { try arena.releaseTree(try arena.child(ref, index)) }
        arena.setElement(ref, index, 0)
        return ref
    }

    private static func element(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int64 {
        let count = arena.header(ref).count
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        return arena.element(ref, index)
    }

    private static func tag(_ key: ObjectKey) -> Int64 { key.rawValue &<< 1 | 1 }
    private static func untag(_ element: Int64) -> ObjectKey { ObjectKey(Int64(bitPattern: UInt64(bitPattern: element) >> 1)) }

    @inline(never)
    private static func missing(_ ref: Int, _ index: Int, _ origin: ObjectKey) -> FormatError {
        FormatError(ref: ref, "row \(index) has no backlink from object \(origin)")
    }
}
