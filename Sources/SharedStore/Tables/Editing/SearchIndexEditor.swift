/// Changes to the index of a column (file-format-2 7.6 to 7.8); the layout is described at `SearchIndex`.
///
/// Invariants: chunks of a node are ascending, their array always has a width of 32 bits; the chunk of an inner node's entry is
/// the largest one below it; no list is empty, and a list holds equal values, or values that cannot be told apart by
/// bytes; in full-word mode an entry stands where its word ends.
struct SearchIndexEditor {
    let arena: Arena
    /// Complete words: full text, and lists of strings. The objects are not consulted then.
    let isFullWord: Bool
    /// The element of a list of strings that an entry stands for, found in the object itself: the path alone leaves words with an
    /// 'X' in their last chunk open, and null. Nil for full text, whose words have no capitals.
    var wordOf: ((ObjectKey, _ path: [UInt8]) throws -> Mixed?)?

    /// Entries of a node.
    static let entryCountMax = 1000
    /// Sub-indexes exist for this many bytes of a value (file-format-2 7.4).
    static let indexedByteCountMax = 200

    /// An index without entries.
    static func create(_ arena: Arena) throws -> Int { try makeNode(arena, flags: 0x60) }

    private static func makeNode(_ arena: Arena, flags: UInt8) throws -> Int {
        let chunks = try arena.makeNode(flags: 6, count: 0, payloadByteCount: 0)
        let node = try arena.makeRefs(flags: flags, count: 1, growth: 16)
        arena.setElement(node, 0, chunks)
        return node
    }

    // MARK: Insertion

    /// What became of a node that was inserted into: a new sibling before or behind it, or behind it with some of its entries.
    private enum Growth {
        case none
        case before(Int)
        case after(Int)
        case split(Int)
    }

    /// Inserts `key` under `value`, whose index bytes are `bytes`, and returns the new root.
    /// - Parameter valueOf: the value that the index holds for an object that is in it; not called in full-word mode.
    func insert<Key: IndexKey>(
        _ root: Int, _ key: ObjectKey, _ bytes: Key, _ value: Mixed, in column: Column,
        valueOf: (ObjectKey) throws -> Mixed
    ) throws -> Int {
        try treeInsert(root, key, bytes, value, 0, column, valueOf)
    }

    private func treeInsert<Key: IndexKey>(
        _ root: Int, _ key: ObjectKey, _ bytes: Key, _ value: Mixed, _ offset: Int, _ column: Column,
        _ valueOf: (ObjectKey) throws -> Mixed
    ) throws -> Int {
        let (node, growth) = try put(root, key, bytes, value, offset, column, valueOf, depth: 0)
        let children: [Int]
        switch growth {
        case .none: return node
        case .before(let sibling): children = [sibling, node]
        case .after(let sibling), .split(let sibling): children = [node, sibling]
        }
        let newRoot = try Self.makeNode(arena, flags: 0xE0)
        for child in children {
            try insertEntry(newRoot, arena.header(newRoot).count - 1, chunk: try lastChunk(child), Int64(child))
        }
        return newRoot
    }

    private func put<Key: IndexKey>(
        _ node: Int, _ key: ObjectKey, _ bytes: Key, _ value: Mixed, _ offset: Int, _ column: Column,
        _ valueOf: (ObjectKey) throws -> Mixed, depth: Int
    ) throws -> (Int, Growth) {
        if depth > SearchIndex.innerLevelsMax {
            throw FormatError(ref: node, "index level with more than \(SearchIndex.innerLevelsMax) inner nodes above a leaf")
        }
        let chunk = bytes.chunk(offset)
        let chunks = try SearchIndex.checkedChunks(arena.memory, arena.memory.node(node))
        let count = chunks.count
        var position = SearchIndex.lowerBound(chunks, chunk)
        let ref = try arena.writableRefs(node, growth: 1)
        guard arena.header(ref).flags & 0x80 != 0 else {
            let isNew = position == count || chunks.unchecked(position) != Int64(chunk)
            if !isNew || count < Self.entryCountMax {
                try leafInsert(ref, position, isNew, chunk, key, bytes, value, offset, column, valueOf)
                return (ref, .none)
            }
            let sibling = try Self.makeNode(arena, flags: 0x60)
            try leafInsert(sibling, 0, true, chunk, key, bytes, value, offset, column, valueOf)
            if position == 0 { return (ref, .before(sibling)) }
            if position == count { return (ref, .after(sibling)) }
            return (ref, .split(try moveEntries(from: ref, at: position, to: sibling)))
        }
        if count == 0 { throw FormatError(ref: node, "inner node of an index without children") }
        position = min(position, count - 1)
        let (child, growth) = try put(
            arena.child(ref, position + 1), key, bytes, value, offset, column, valueOf, depth: depth + 1)
        arena.setElement(ref, position + 1, child)
        let sibling: Int
        var wasSplit = false
        switch growth {
        case .none:
            try setChunk(ref, position, try lastChunk(child))
            return (ref, .none)
        case .before(let new): sibling = new
        case .after(let new):
            sibling = new
            position += 1
        case .split(let new):
            sibling = new
            wasSplit = true
            try setChunk(ref, position, try lastChunk(child))
            position += 1
        }
        if count < Self.entryCountMax {
            try insertEntry(ref, position, chunk: try lastChunk(sibling), Int64(sibling))
            return (ref, .none)
        }
        let inner = try Self.makeNode(arena, flags: 0xE0)
        try insertEntry(inner, 0, chunk: try lastChunk(sibling), Int64(sibling))
        if position == 0 { return (ref, .before(inner)) }
        if position == count { return (ref, wasSplit ? .split(inner) : .after(inner)) }
        return (ref, .split(try moveEntries(from: ref, at: position, to: inner)))
    }

    private func leafInsert<Key: IndexKey>(
        _ ref: Int, _ position: Int, _ isNew: Bool, _ chunk: Int32, _ key: ObjectKey, _ bytes: Key,
        _ value: Mixed, _ offset: Int, _ column: Column, _ valueOf: (ObjectKey) throws -> Mixed
    ) throws {
        let next = offset + 4
        if isNew {
            var entry = Self.tagged(key)
            if isFullWord, let count = bytes.byteCount, next < count {
                entry = Int64(try treeInsert(try Self.create(arena), key, bytes, value, next, column, valueOf))
            }
            try insertEntry(ref, position, chunk: chunk, entry)
            return
        }
        let entry = arena.element(ref, position + 1)
        if entry & 1 != 0 {
            let present = Self.key(entry)
            let changed = try joinSingle(present, key, bytes, value, chunk, offset, column, valueOf)
            if let changed { arena.setElement(ref, position + 1, changed) }
            return
        }
        let child = try arena.child(ref, position + 1)
        if try arena.memory.node(child).hasContext {
            arena.setElement(ref, position + 1, try treeInsert(child, key, bytes, value, next, column, valueOf))
        } else {
            arena.setElement(ref, position + 1, try joinList(child, key, bytes, value, chunk, offset, column, valueOf))
        }
    }

    /// What an entry with one key becomes when another key comes to it; nil where it stays.
    private func joinSingle<Key: IndexKey>(
        _ present: ObjectKey, _ key: ObjectKey, _ bytes: Key, _ value: Mixed, _ chunk: Int32, _ offset: Int,
        _ column: Column, _ valueOf: (ObjectKey) throws -> Mixed
    ) throws -> Int64? {
        if present == key && !isFullWord { return nil }
        let next = offset + 4
        return try withPresentBytes(present, bytes, chunk, offset, column, valueOf) { presentBytes, presentValue in
            let order = isFullWord ? (presentBytes.equals(bytes) ? 0 : 1) : Mixed.compare(presentValue, value)
            if order == 0 { return present == key ? nil : Int64(try makeList(min(present, key), max(present, key))) }
            if presentBytes.equals(bytes) || next > Self.indexedByteCountMax {
                return Int64(try order < 0 ? makeList(present, key) : makeList(key, present))
            }
            var sub = try Self.create(arena)
            sub = try treeInsert(sub, present, presentBytes, presentValue, next, column, valueOf)
            sub = try treeInsert(sub, key, bytes, value, next, column, valueOf)
            return Int64(sub)
        }
    }

    /// What a list becomes when another key comes to it.
    private func joinList<Key: IndexKey>(
        _ list: Int, _ key: ObjectKey, _ bytes: Key, _ value: Mixed, _ chunk: Int32, _ offset: Int,
        _ column: Column, _ valueOf: (ObjectKey) throws -> Mixed
    ) throws -> Int {
        let next = offset + 4
        let keys = try BPlusTree<KeyLeaf>(arena.memory, list)
        guard keys.count > 0 else { throw FormatError(ref: list, "empty list in an index") }
        let first = try keys.value(at: 0)
        return try withPresentBytes(first, bytes, chunk, offset, column, valueOf) { firstBytes, firstValue in
            if isFullWord {
                if firstBytes.equals(bytes) { return try insertByKey(list, keys, 0..<keys.count, key) }
            } else if let run = try run(of: value, in: keys, firstValue, column, valueOf) {
                return try insertByKey(list, keys, run, key)
            }
            if !isFullWord && (firstBytes.equals(bytes) || next > Self.indexedByteCountMax) {
                var position = 0
                while position < keys.count, Mixed.compare(try valueOf(try keys.value(at: position)), value) < 0 { position += 1 }
                return try BPlusTreeEditor<KeyLeafEditor>.insert(arena, list, position, key)
            }
            let sub = try Self.create(arena)
            try insertEntry(sub, 0, chunk: firstBytes.chunk(next), Int64(list))
            return try treeInsert(sub, key, bytes, value, next, column, valueOf)
        }
    }

    /// The positions of the members that equal `value`, or nil. Lists of files that were upgraded are not ordered by value.
    private func run(
        of value: Mixed, in keys: BPlusTree<KeyLeaf>, _ firstValue: Mixed, _ column: Column,
        _ valueOf: (ObjectKey) throws -> Mixed
    ) throws -> Range<Int>? {
        let startsEqual = Mixed.compare(firstValue, value) == 0
        // Different integers have different bytes, and never share a list.
        if startsEqual && column.type == .int { return 0..<keys.count }
        if startsEqual, Mixed.compare(try valueOf(try keys.value(at: keys.count - 1)), value) == 0 { return 0..<keys.count }
        var start: Int?
        for i in 0..<keys.count {
            let equal = Mixed.compare(try valueOf(try keys.value(at: i)), value) == 0
            if equal && start == nil { start = i }
            if !equal, let start { return start..<i }
        }
        return start.map { $0..<keys.count }
    }

    private func insertByKey(_ list: Int, _ keys: BPlusTree<KeyLeaf>, _ run: Range<Int>, _ key: ObjectKey) throws -> Int {
        var low = run.lowerBound, high = run.upperBound
        // Ascending insertion, the usual case, needs one look.
        if try keys.value(at: high - 1) < key { low = high }
        while low < high {
            let middle = (low + high) / 2
            if try keys.value(at: middle) < key { low = middle + 1 } else { high = middle }
        }
        if low < run.upperBound, try keys.value(at: low) == key { return list }
        return try BPlusTreeEditor<KeyLeafEditor>.insert(arena, list, low, key)
    }

    private func makeList(_ a: ObjectKey, _ b: ObjectKey) throws -> Int {
        let list = try BPlusTreeEditor<KeyLeafEditor>.append(arena, try BPlusTreeEditor<KeyLeafEditor>.create(arena), a)
        return try BPlusTreeEditor<KeyLeafEditor>.append(arena, list, b)
    }

    /// Calls `body` with the index bytes and the value of an entry that is there already. In full-word mode the word is put
    /// together from the path, which it shares with `bytes`, and the last chunk (file-format-2 7.6), or found in the object.
    private func withPresentBytes<Key: IndexKey, R>(
        _ present: ObjectKey, _ bytes: Key, _ chunk: Int32, _ offset: Int, _ column: Column,
        _ valueOf: (ObjectKey) throws -> Mixed, _ body: (BytesIndexKey, Mixed) throws -> R
    ) throws -> R {
        guard isFullWord else {
            let value = try valueOf(present)
            return try SearchIndex.withIndexBytes(value, in: column) { try body(BytesIndexKey($0), value) }
        }
        var word: [UInt8] = []
        for start in stride(from: 0, to: offset, by: 4) {
            withUnsafeBytes(of: bytes.chunk(start).bigEndian) { word.append(contentsOf: $0) }
        }
        let last = withUnsafeBytes(of: chunk.bigEndian) { Array($0) }
        // A chunk of 0 is behind the end of its word, which then ends in the chunk before.
        let isBehind = chunk == 0 && offset > 0
        if let wordOf, chunk == 0 || last.contains(UInt8(ascii: "X")), let exact = try wordOf(present, word + last) {
            return try exact.word.withIndexKey { try body($0, .null) }
        }
        if chunk == 0 && offset == 0 { return try body(BytesIndexKey(nil), .null) }
        if isBehind {
            if let end = word[(offset - 4)...].lastIndex(of: UInt8(ascii: "X")) { word.removeSubrange(end...) }
        } else {
            word.append(contentsOf: last[..<(last.lastIndex(of: UInt8(ascii: "X")) ?? 4)])
        }
        return try Optional(word).withIndexKey { try body($0, .null) }
    }

    // MARK: Deletion

    /// Removes `key` from under `value` and returns the new root. Where it is not there nothing happens.
    func erase<Key: IndexKey>(_ root: Int, _ key: ObjectKey, _ bytes: Key) throws -> Int {
        var root = try erase(root, key, bytes, 0, inner: 0, level: 0).ref
        // Only the root of the whole index gives up a level that has one child left.
        while try arena.memory.node(root).isInner, try arena.memory.node(root).count == 2 {
            let old = try arena.writableRefs(root)
            let child = try arena.child(old, 1)
            try arena.releaseTree(arena.child(old, 0))
            try arena.release(old)
            root = child
        }
        return root
    }

    private func erase<Key: IndexKey>(_ node: Int, _ key: ObjectKey, _ bytes: Key, _ offset: Int, inner: Int, level: Int) throws
        -> (ref: Int, isEmpty: Bool)
    {
        if inner > SearchIndex.innerLevelsMax || level > SearchIndex.radixLevelsMax {
            throw FormatError(ref: node, "index is too deep")
        }
        let chunk = bytes.chunk(offset)
        let chunks = try SearchIndex.checkedChunks(arena.memory, arena.memory.node(node))
        let position = SearchIndex.lowerBound(chunks, chunk)
        if position == chunks.count { return (node, chunks.count == 0) }
        let isInner = try arena.memory.node(node).isInner
        if !isInner && chunks.unchecked(position) != Int64(chunk) { return (node, false) }
        let ref = try arena.writableRefs(node)
        if isInner {
            let (child, isEmpty) = try erase(arena.child(ref, position + 1), key, bytes, offset, inner: inner + 1, level: level)
            arena.setElement(ref, position + 1, child)
            if isEmpty {
                try arena.releaseTree(child)
                try eraseEntry(ref, position)
            } else {
                try setChunk(ref, position, try lastChunk(child))
            }
            return (ref, arena.header(ref).count == 1)
        }
        let entry = arena.element(ref, position + 1)
        if entry & 1 != 0 {
            if Self.key(entry) == key { try eraseEntry(ref, position) }
            return (ref, arena.header(ref).count == 1)
        }
        let child = try arena.child(ref, position + 1)
        if try arena.memory.node(child).hasContext {
            let (sub, isEmpty) = try erase(child, key, bytes, offset + 4, inner: 0, level: level + 1)
            arena.setElement(ref, position + 1, sub)
            if isEmpty {
                try arena.releaseTree(sub)
                try eraseEntry(ref, position)
            }
        } else {
            let list = try eraseFromList(child, key)
            arena.setElement(ref, position + 1, list)
            if try BPlusTreeEditor<KeyLeafEditor>.count(arena, list) == 0 {
                try arena.releaseTree(list)
                try eraseEntry(ref, position)
            }
        }
        return (ref, arena.header(ref).count == 1)
    }

    /// Removes every occurrence of `key`: files of others may hold duplicates (file-format-2 7.7).
    private func eraseFromList(_ list: Int, _ key: ObjectKey) throws -> Int {
        var list = list
        let keys = try BPlusTree<KeyLeaf>(arena.memory, list)
        // Mostly the whole list is ascending: look where the key would be.
        var low = 0, high = keys.count
        if let leaf = try keys.count > 0 ? keys.leaf(containing: 0).leaf : nil, leaf.count == keys.count {
            while low < high {
                let middle = (low &+ high) >> 1
                if leaf.unchecked(middle) < key { low = middle &+ 1 } else { high = middle }
            }
        }
        while low < high {
            let middle = (low + high) / 2
            if try keys.value(at: middle) < key { low = middle + 1 } else { high = middle }
        }
        if low < keys.count, try keys.value(at: low) == key, try low + 1 == keys.count || keys.value(at: low + 1) != key {
            return try BPlusTreeEditor<KeyLeafEditor>.erase(arena, list, low)
        }
        var positions: [Int] = []
        var start = 0
        try keys.forEachLeaf { leaf, _ in
            for i in 0..<leaf.count where try leaf.value(i) == key { positions.append(start + i) }
            start += leaf.count
        }
        for position in positions.reversed() { list = try BPlusTreeEditor<KeyLeafEditor>.erase(arena, list, position) }
        return list
    }

    // MARK: Entries

    @inline(__always) private static func tagged(_ key: ObjectKey) -> Int64 { key.rawValue &<< 1 | 1 }
    @inline(__always) private static func key(_ entry: Int64) -> ObjectKey {
        ObjectKey(Int64(bitPattern: UInt64(bitPattern: entry) >> 1))
    }

    /// Inserts chunk and entry; the node is in the arena.
    private func insertEntry(_ ref: Int, _ position: Int, chunk: Int32, _ entry: Int64) throws {
        assert(16 + arena.header(ref).count * 8 <= arena.capacity(ref))
        arena.setElement(ref, 0, try ArrayEditor.insert(arena, arena.child(ref, 0), position, Int64(chunk)))
        arena.insertElement(ref, position + 1, entry)
    }

    private func eraseEntry(_ ref: Int, _ position: Int) throws {
        arena.setElement(ref, 0, try ArrayEditor.erase(arena, arena.child(ref, 0), position))
        arena.eraseElements(ref, position + 1..<position + 2)
    }

    private func setChunk(_ ref: Int, _ position: Int, _ chunk: Int32) throws {
        let chunks = try arena.child(ref, 0)
        if try ArrayEditor.get(arena, chunks, position) != Int64(chunk) {
            arena.setElement(ref, 0, try ArrayEditor.set(arena, chunks, position, Int64(chunk)))
        }
    }

    private func lastChunk(_ node: Int) throws -> Int32 {
        let chunks = try SearchIndex.checkedChunks(arena.memory, arena.memory.node(node))
        guard chunks.count > 0 else { throw FormatError(ref: node, "empty node in an index") }
        return Int32(truncatingIfNeeded: chunks.unchecked(chunks.count - 1))
    }

    /// Appends the entries from `position` on to `target` and returns its new ref; both nodes are in the arena.
    private func moveEntries(from source: Int, at position: Int, to target: Int) throws -> Int {
        let moved = arena.header(source).count - 1 - position
        let grown = try arena.writableRefs(target, growth: moved)
        let (sourceChunks, targetChunks) = try ArrayEditor.moveTail(
            arena, from: arena.child(source, 0), at: position, to: arena.child(grown, 0))
        arena.setElement(source, 0, sourceChunks)
        arena.setElement(grown, 0, targetChunks)
        for i in 0..<moved { arena.insertElement(grown, arena.header(grown).count, arena.element(source, position + 1 + i)) }
        arena.eraseElements(source, position + 1..<position + 1 + moved)
        return grown
    }
}

extension IndexKey {
    /// True where both have the same bytes, null being different from empty.
    func equals(_ other: some IndexKey) -> Bool {
        guard byteCount == other.byteCount else { return false }
        guard let byteCount else { return true }
        var offset = 0
        while offset < byteCount {
            if chunk(offset) != other.chunk(offset) { return false }
            offset += 4
        }
        return true
    }
}
