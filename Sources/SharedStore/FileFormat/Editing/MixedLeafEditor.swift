/// Changes to leaves of Mixed values (file-format-1 section 7).
///
/// ```
/// refs, 6 elements: 0 composite: X << 8 | P << 5 | (T + 1) for each value, 0 for null; T the type, P the payload array,
///   X the value or its position in that array     1 ints     2 pairs     3 strings (a string leaf)
///   4 roots of nested collections     5 keys of nested collections, one for each value
/// ```
/// Invariants: each payload array is dense, each of its entries is used by exactly one value; a payload is removed by
/// moving the last one into its place. Where there are keys there are as many as values (leaves of foreign writers are
/// brought to that on the first change that touches keys).
///
/// A nested list or dictionary is put in place by `setCollection` and `insertCollection`, empty, with ref 0; its tree is
/// edited by its own editors and told to the leaf by `setNestedRef`.
enum MixedLeafEditor: LeafEditor {
    typealias Element = Mixed

    static let composites = 0, ints = 1, pairs = 2, strings = 3, refs = 4, keys = 5
    private static let slotCount = 6

    static func create(_ arena: Arena) throws -> Int {
        let ref = try arena.makeRefs(count: slotCount)
        arena.setElement(ref, composites, try ArrayEditor.create(arena))
        return ref
    }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int {
        try ArrayEditor.count(arena, try arena.integerNode(ref).requiredRef(composites))
    }

    // MARK: Values

    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Mixed) throws -> Int {
        precondition(!isCollection(value), "a collection is put in place with setCollection, which takes its key")
        let ref = try writable(arena, ref)
        try check(value)
        try removePayload(arena, ref, index)
        try setComposite(arena, ref, index, try store(arena, ref, value))
        try setKey(arena, ref, index, 0)
        return ref
    }

    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Mixed) throws -> Int {
        precondition(!isCollection(value), "a collection is put in place with insertCollection, which takes its key")
        let ref = try writable(arena, ref)
        try check(value)
        try insertComposite(arena, ref, index, try store(arena, ref, value))
        return ref
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let ref = try writable(arena, ref)
        let count = try composite(arena, ref).count
        try removePayload(arena, ref, index)
        try fillKeys(arena, ref, count)
        arena.setElement(ref, composites, try ArrayEditor.erase(arena, try arena.child(ref, composites), index))
        if arena.element(ref, keys) != 0 {
            arena.setElement(ref, keys, try ArrayEditor.erase(arena, try arena.child(ref, keys), index))
        }
        return ref
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        let ref = try writable(arena, ref)
        let old = try composite(arena, ref).count
        guard UInt(bitPattern: count) <= UInt(bitPattern: old) else { throw arena.indexOutside(ref, count, old) }
        if count == 0 {
            for slot in ints..<slotCount where arena.element(ref, slot) != 0 {
                try arena.releaseTree(try arena.child(ref, slot))
                arena.setElement(ref, slot, 0)
            }
        } else {
            for index in (count..<old).reversed() { try removePayload(arena, ref, index) }
            try fillKeys(arena, ref, old)
            if arena.element(ref, keys) != 0 {
                arena.setElement(ref, keys, try ArrayEditor.truncate(arena, try arena.child(ref, keys), to: count))
            }
        }
        arena.setElement(ref, composites, try ArrayEditor.truncate(arena, try arena.child(ref, composites), to: count))
        return ref
    }

    /// Nested collections move along and keep their keys.
    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let source = try writable(arena, source)
        let target = try writable(arena, target)
        let count = try composite(arena, source).count
        guard UInt(bitPattern: start) <= UInt(bitPattern: count) else { throw arena.indexOutside(source, start, count) }
        let oldCount = try composite(arena, target).count
        try fillKeys(arena, source, count)
        for index in start..<count {
            let value = try composite(arena, source).integer(index)
            try insertComposite(arena, target, oldCount + index - start, try copyPayload(arena, value, from: source, to: target))
        }
        if arena.element(source, keys) != 0 {
            try makeKeys(arena, target)
            for index in start..<count {
                let key = try ArrayEditor.get(arena, try arena.child(source, keys), index)
                try setKey(arena, target, oldCount + index - start, key)
            }
        }
        return (try truncate(arena, source, to: start), target)
    }

    // MARK: Nested collections

    /// Puts an empty list or dictionary in place of value `index`; one of the same kind stays as it is, with its key.
    static func setCollection(_ arena: Arena, _ ref: Int, _ index: Int, _ kind: CollectionKind, key: Int64) throws -> Int {
        precondition(key != 0, "a nested collection needs a key other than 0")
        let ref = try writable(arena, ref)
        let code = try collectionCode(kind)
        if try composite(arena, ref).integer(index) & 0xFF == code { return ref }
        try removePayload(arena, ref, index)
        try setComposite(arena, ref, index, try appendRef(arena, ref, 0) << 8 | code)
        try makeKeys(arena, ref)
        try setKey(arena, ref, index, key)
        return ref
    }

    /// Inserts an empty list or dictionary before value `index`.
    static func insertCollection(_ arena: Arena, _ ref: Int, _ index: Int, _ kind: CollectionKind, key: Int64) throws -> Int {
        precondition(key != 0, "a nested collection needs a key other than 0")
        let ref = try writable(arena, ref)
        try insertComposite(arena, ref, index, try appendRef(arena, ref, 0) << 8 | collectionCode(kind))
        try makeKeys(arena, ref)
        try setKey(arena, ref, index, key)
        return ref
    }

    /// Stores the new root of the nested collection at `index`; the old one was edited or freed by the caller.
    static func setNestedRef(_ arena: Arena, _ ref: Int, _ index: Int, _ root: Int) throws -> Int {
        let ref = try writable(arena, ref)
        let (slot, place) = try payload(arena, ref, try composite(arena, ref).integer(index))
        guard slot == refs else { throw FormatError(ref: ref, "value \(index) is no nested collection") }
        let array = try arena.writableRefs(try arena.child(ref, refs))
        arena.setElement(ref, refs, array)
        arena.setElement(array, place, root)
        return ref
    }

    /// The root of the nested collection at `index`, as it can be edited: its refs are those of the arena. 0 while it is empty.
    /// The leaf must have been made writable, which this does: both refs are new.
    static func nestedRef(_ arena: Arena, _ ref: Int, _ index: Int) throws -> (leaf: Int, root: Int) {
        let ref = try writable(arena, ref)
        let (slot, place) = try payload(arena, ref, try composite(arena, ref).integer(index))
        guard slot == refs else { throw FormatError(ref: ref, "value \(index) is no nested collection") }
        let array = try arena.writableRefs(try arena.child(ref, refs))
        arena.setElement(ref, refs, array)
        return (ref, arena.element(array, place) == 0 ? 0 : try arena.child(array, place))
    }

    private static func collectionCode(_ kind: CollectionKind) throws -> Int64 {
        switch kind {
        case .list: return Int64(refs) << 5 | 20
        case .dictionary: return Int64(refs) << 5 | 22
        case .set: preconditionFailure("a set cannot be nested in a Mixed value")
        }
    }

    private static func isCollection(_ value: Mixed) -> Bool {
        switch value {
        case .list, .dictionary: true
        default: false
        }
    }

    // MARK: The leaf

    /// The leaf with 6 elements; one of an older format is extended.
    private static func writable(_ arena: Arena, _ ref: Int) throws -> Int {
        let count = try arena.integerNode(ref).count
        if count == slotCount { return try arena.writableRefs(ref) }
        if count < 4 || count > slotCount { throw FormatError(ref: ref, "leaf of Mixed values has \(count) elements") }
        let ref = try arena.writableRefs(ref, growth: slotCount - count)
        for slot in count..<slotCount { arena.insertElement(ref, slot, 0) }
        return ref
    }

    @inline(__always)
    private static func composite(_ arena: Arena, _ ref: Int) throws -> Node {
        try arena.integerNode(try arena.child(ref, composites))
    }

    private static func setComposite(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64) throws {
        arena.setElement(ref, composites, try ArrayEditor.set(arena, try arena.child(ref, composites), index, value))
    }

    /// Inserts a composite and a key of 0.
    private static func insertComposite(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Int64) throws {
        let old = try arena.child(ref, composites)
        try fillKeys(arena, ref, try ArrayEditor.count(arena, old))
        arena.setElement(ref, composites, try ArrayEditor.insert(arena, old, index, value))
        if arena.element(ref, keys) != 0 {
            arena.setElement(ref, keys, try ArrayEditor.insert(arena, try arena.child(ref, keys), index, 0))
        }
    }

    // MARK: Keys

    /// Makes the keys as many as the values, where there are keys.
    private static func fillKeys(_ arena: Arena, _ ref: Int, _ count: Int) throws {
        if arena.element(ref, keys) == 0 { return }
        var array = try arena.child(ref, keys)
        let present = try ArrayEditor.count(arena, array)
        if present == count { return }
        if present > count { array = try ArrayEditor.truncate(arena, array, to: count) }
        for _ in 0..<max(0, count - present) { array = try ArrayEditor.append(arena, array, 0) }
        arena.setElement(ref, keys, array)
    }

    /// Makes the array of keys if there is none.
    private static func makeKeys(_ arena: Arena, _ ref: Int) throws {
        let count = try composite(arena, ref).count
        if arena.element(ref, keys) == 0 {
            arena.setElement(ref, keys, try ArrayEditor.create(arena, count: count, value: 0))
        } else {
            try fillKeys(arena, ref, count)
        }
    }

    private static func setKey(_ arena: Arena, _ ref: Int, _ index: Int, _ key: Int64) throws {
        if arena.element(ref, keys) == 0 { return }
        try fillKeys(arena, ref, try composite(arena, ref).count)
        arena.setElement(ref, keys, try ArrayEditor.set(arena, try arena.child(ref, keys), index, key))
    }

    // MARK: Payloads

    /// Throws where the value cannot be stored, before anything is changed.
    private static func check(_ value: Mixed) throws {
        switch value {
        case .string(let text):
            let length = text.utf8.count
            if length > StringKind.valueMax { throw LimitError.valueTooLarge(byteCount: length, limit: StringKind.valueMax) }
        case .binary(let bytes):
            let length = bytes.count
            if length > StringKind.valueMax { throw LimitError.valueTooLarge(byteCount: length, limit: StringKind.valueMax) }
        default: break
        }
    }

    /// Appends the payload of a value, if it has one, and returns the composite.
    private static func store(_ arena: Arena, _ ref: Int, _ value: Mixed) throws -> Int64 {
        switch value {
        case .null: return 0
        case .bool(let flag): return (flag ? 1 << 8 : 0) | 2
        case .int(let number):
            if number >= -1 << 31 && number < 1 << 31 { return number << 8 | 1 }
            return try appendInt(arena, ref, number) << 8 | 1 << 5 | 1
        case .float(let number):
            return try appendInt(arena, ref, Int64(number.bitPattern)) << 8 | 1 << 5 | 10
        case .double(let number):
            return try appendInt(arena, ref, Int64(bitPattern: number.bitPattern)) << 8 | 1 << 5 | 11
        case .timestamp(let time):
            return try appendPair(arena, ref, time.seconds, Int64(time.nanoseconds)) << 8 | 2 << 5 | 9
        case .decimal(let number):
            return try appendPair(arena, ref, Int64(bitPattern: number.low), Int64(bitPattern: number.high)) << 8 | 2 << 5 | 12
        case .link(let table, let object):
            return try appendPair(arena, ref, Int64(table.rawValue), object.rawValue) << 8 | 2 << 5 | 17
        case .string(var text):
            return try text.withUTF8 { try appendString(arena, ref, UnsafeRawBufferPointer($0)) } << 8 | 3 << 5 | 3
        case .binary(let bytes):
            return try bytes.withUnsafeBytes { try appendString(arena, ref, $0) } << 8 | 3 << 5 | 5
        case .objectId(let id):
            return try withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) {
                id.store(to: $0.baseAddress.unsafelyUnwrapped)
                return try appendString(arena, ref, UnsafeRawBufferPointer($0))
            } << 8 | 3 << 5 | 16
        case .uuid(let id):
            return try withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) {
                id.store(to: $0.baseAddress.unsafelyUnwrapped)
                return try appendString(arena, ref, UnsafeRawBufferPointer($0))
            } << 8 | 3 << 5 | 18
        case .list, .dictionary:
            preconditionFailure("a collection is put in place with setCollection or insertCollection")
        }
    }

    private static func appendInt(_ arena: Arena, _ ref: Int, _ value: Int64) throws -> Int64 {
        let array = arena.element(ref, ints) == 0 ? try ArrayEditor.create(arena) : try arena.child(ref, ints)
        let place = try ArrayEditor.count(arena, array)
        arena.setElement(ref, ints, try ArrayEditor.append(arena, array, value))
        return Int64(place)
    }

    private static func appendPair(_ arena: Arena, _ ref: Int, _ first: Int64, _ second: Int64) throws -> Int64 {
        var array = arena.element(ref, pairs) == 0 ? try ArrayEditor.create(arena) : try arena.child(ref, pairs)
        let place = try ArrayEditor.count(arena, array)
        if place & 1 != 0 { throw FormatError(ref: array, "pairs of a Mixed leaf are \(place) numbers") }
        array = try ArrayEditor.append(arena, array, first)
        arena.setElement(ref, pairs, try ArrayEditor.append(arena, array, second))
        return Int64(place >> 1)
    }

    private static func appendString(_ arena: Arena, _ ref: Int, _ bytes: UnsafeRawBufferPointer) throws -> Int64 {
        let leaf = arena.element(ref, strings) == 0 ? try StringLeafEditor.create(arena) : try arena.child(ref, strings)
        let place = try StringLeafEditor.count(arena, leaf)
        arena.setElement(ref, strings, try StringLeafEditor.insert(arena, leaf, place, bytes))
        return Int64(place)
    }

    private static func appendRef(_ arena: Arena, _ ref: Int, _ root: Int) throws -> Int64 {
        let array =
            arena.element(ref, refs) == 0
            ? try arena.makeRefs(count: 0) : try arena.writableRefs(try arena.child(ref, refs), growth: 1)
        let place = arena.header(array).count
        arena.setElement(ref, refs, try ArrayEditor.append(arena, array, Int64(root)))
        return Int64(place)
    }

    /// The payload array of a composite, 0 for none, and the position in it, which may lie outside a damaged array.
    private static func payload(_ arena: Arena, _ ref: Int, _ value: Int64) throws -> (slot: Int, place: Int) {
        let slot = Int(value >> 5 & 7)
        if value == 0 || slot == 0 { return (0, 0) }
        let place = Int(value >> 8)
        if slot > refs || place < 0 || place >= Arena.elementCountMax {
            throw FormatError(ref: ref, "Mixed value \(value) has no payload")
        }
        if slot == refs {
            let count = try arena.integerNode(try arena.child(ref, refs)).count
            if place >= count { throw arena.indexOutside(ref, place, count) }
        }
        return (slot, place)
    }

    /// Removes the payload of value `index`, a nested collection with all that it owns; the composite is stale afterwards.
    private static func removePayload(_ arena: Arena, _ ref: Int, _ index: Int) throws {
        let (slot, place) = try payload(arena, ref, try composite(arena, ref).integer(index))
        if slot == 0 { return }
        let child = try arena.child(ref, slot)
        let last: Int
        switch slot {
        case ints:
            last = try ArrayEditor.count(arena, child) - 1
            if place < last { _ = try movedInt(arena, ref, slot, last, place) }
            if place <= last { arena.setElement(ref, slot, try ArrayEditor.erase(arena, try arena.child(ref, slot), last)) }
        case pairs:
            last = try ArrayEditor.count(arena, child) / 2 - 1
            if place < last {
                try movedInt(arena, ref, slot, 2 * last, 2 * place)
                try movedInt(arena, ref, slot, 2 * last + 1, 2 * place + 1)
            }
            if place <= last {
                arena.setElement(ref, slot, try ArrayEditor.truncate(arena, try arena.child(ref, slot), to: 2 * last))
            }
        case strings:
            last = try StringLeafEditor.count(arena, child) - 1
            arena.setElement(ref, slot, try StringLeafEditor.moveLastOver(arena, child, place))
        default:
            let array = try arena.writableRefs(child)
            arena.setElement(ref, slot, array)
            last = arena.header(array).count - 1
            if arena.element(array, place) != 0 { try arena.releaseTree(try arena.child(array, place)) }
            arena.setElement(array, place, arena.element(array, last))
            arena.eraseElements(array, last..<last + 1)
        }
        if place > last { throw arena.indexOutside(ref, place, last + 1) }
        if place < last { try redirect(arena, ref, slot, from: last, to: place) }
    }

    private static func movedInt(_ arena: Arena, _ ref: Int, _ slot: Int, _ from: Int, _ to: Int) throws {
        let child = try arena.child(ref, slot)
        arena.setElement(ref, slot, try ArrayEditor.set(arena, child, to, try ArrayEditor.get(arena, child, from)))
    }

    /// Lets the one value whose payload was at `from` know that it is at `to` now.
    private static func redirect(_ arena: Arena, _ ref: Int, _ slot: Int, from: Int, to: Int) throws {
        let node = try composite(arena, ref)
        let wanted = Int64(from) << 3 | Int64(slot)
        for index in 0..<node.count {
            let value = node.unchecked(index)
            if value >> 5 == wanted {
                try setComposite(arena, ref, index, Int64(to) << 8 | value & 0xFF)
                return
            }
        }
        throw FormatError(ref: ref, "payload \(from) of array \(slot) of a Mixed leaf belongs to no value")
    }

    /// Gives the target leaf a payload as the source has it and returns the composite that it has there. A nested
    /// collection is taken from the source, which then has ref 0 in its place.
    private static func copyPayload(_ arena: Arena, _ value: Int64, from source: Int, to target: Int) throws -> Int64 {
        let (slot, place) = try payload(arena, source, value)
        if slot == 0 { return value }
        let child = try arena.child(source, slot)
        let newPlace: Int64
        switch slot {
        case ints:
            newPlace = try appendInt(arena, target, try ArrayEditor.get(arena, child, place))
        case pairs:
            newPlace = try appendPair(
                arena, target, try ArrayEditor.get(arena, child, 2 * place), try ArrayEditor.get(arena, child, 2 * place + 1))
        case strings:
            guard let bytes = try StringLeaf(arena.memory, child).bytes(place) else {
                throw FormatError(ref: child, "string of a Mixed value is null")
            }
            newPlace = try appendString(arena, target, bytes)
        default:
            let array = try arena.writableRefs(child)
            arena.setElement(source, slot, array)
            let root = arena.element(array, place) == 0 ? 0 : try arena.child(array, place)
            arena.setElement(array, place, 0)
            newPlace = try appendRef(arena, target, root)
        }
        return newPlace << 8 | value & 0xFF
    }
}

extension BPlusTreeEditor where L == MixedLeafEditor {
    /// Puts an empty list or dictionary in place of value `index`, with a key that no other value of the tree has; one of
    /// the same kind stays as it is.
    static func setCollection(_ arena: Arena, _ root: Int, _ index: Int, _ kind: CollectionKind) throws -> Int {
        let key = try unusedKey(arena, root)
        return try editLeaf(arena, root, index) { try MixedLeafEditor.setCollection(arena, $0, $1, kind, key: key) }
    }

    /// Inserts an empty list or dictionary before value `index`.
    static func insertCollection(_ arena: Arena, _ root: Int, _ index: Int, _ kind: CollectionKind) throws -> Int {
        try setCollection(arena, try insert(arena, root, index, .null), index, kind)
    }

    /// The root of the nested collection at `index`, 0 while it is empty, and the new root of this tree, all of whose nodes
    /// on the way are writable now.
    static func nestedRef(_ arena: Arena, _ root: Int, _ index: Int) throws -> (root: Int, nested: Int) {
        var nested = 0
        let root = try editLeaf(arena, root, index) {
            let found = try MixedLeafEditor.nestedRef(arena, $0, $1)
            nested = found.root
            return found.leaf
        }
        return (root, nested)
    }

    /// Stores the new root of the nested collection at `index`.
    static func setNestedRef(_ arena: Arena, _ root: Int, _ index: Int, _ nested: Int) throws -> Int {
        try editLeaf(arena, root, index) { try MixedLeafEditor.setNestedRef(arena, $0, $1, nested) }
    }

    /// A key for one more nested collection (file-format-1 7.5): not 0, of 8, 16 or 32 bits by the size of the tree.
    static func unusedKey(_ arena: Arena, _ root: Int) throws -> Int64 {
        let tree = try BPlusTree<MixedLeaf>(arena.memory, root)
        var used: Set<Int64> = [0]
        try tree.forEachLeaf { leaf, _ in
            guard let keys = leaf.keys else { return }
            for index in 0..<min(keys.count, leaf.count) { used.insert(keys.unchecked(index)) }
        }
        let bits: Int64 = tree.count < 16 ? 8 : tree.count < 4096 ? 16 : 32
        var key = MixedKeys.random(bits: bits)
        while used.contains(key) { key = key == 1 << (bits - 1) - 1 ? 1 : key + 1 }
        return key
    }
}

/// Keys of nested collections: they only have to be new, so they are random.
enum MixedKeys {
    static func random(bits: Int64) -> Int64 {
        let bound: Int64 = 1 << (bits - 1)
        let key = Int64.random(in: -bound..<bound)
        return key == 0 ? 1 : key
    }
}
