/// Search indexes (file-format-2 section 11, rules 31 to 35).
///
/// An index is walked once. Each entry's object is looked up, and its value must lead to exactly this place; since the way is
/// determined by the value, and chunks and list members are unique, no object can stand twice, and equal counts mean that none
/// is missing.
/// Indexes of words hold several entries an object: there, sums of hashes of (word, object) are compared.
extension VerificationRun {
    static let indexDepthMax = 50
    static let indexNodeCountMax = 1000

    final class IndexWalk {
        enum Kind { case values, wordsOfList, wordsOfText }
        let table: TableModel
        let column: ColumnModel
        let kind: Kind
        var entries = LinkGroup.Side()
        /// Chunks on the way to the entry that is being looked at, one for each radix level.
        var path: [Int32] = []
        /// False where damage hides entries.
        var isCountable = true
        /// True where an object may stand twice, so that counts may agree though one is missing.
        var mustSearch = false
        /// In a second pass over an index of words: called with the word, as the way tells it, and the object.
        var onWord: (([UInt8], ObjectKey, Int) throws -> Void)?

        init(_ table: TableModel, _ column: ColumnModel, _ kind: Kind) {
            self.table = table
            self.column = column
            self.kind = kind
        }
    }

    func verifyIndexes(_ table: TableModel) throws {
        guard let refs = table.indexRefs else { return }
        tableName = table.name
        defer { tableName = nil; columnName = nil }
        for leafIndex in 0..<refs.count {
            let value = refs.unchecked(leafIndex)
            if value == 0 { continue }
            guard let root = try child(refs, leafIndex, "index") else { continue }
            guard let column = table.columnOfLeaf[leafIndex] else {
                try enterAll(below: root)
                continue
            }
            columnName = column.label
            guard let kind = indexKind(column) else {
                try error(.indexAttribute, refs.ref, "a column of type \(column.type) has an index")
                try enterAll(below: root)
                continue
            }
            let isPrimaryKey = table.primaryKey === column
            if !isPrimaryKey && column.attributes.isDisjoint(with: [.indexed, .fullTextIndexed]) {
                try error(.indexAttribute, refs.ref, "the column has an index, but neither the attribute nor the primary key")
            }
            try verifyIndex(root, IndexWalk(table, column, kind))
        }
        for column in table.columns where !column.attributes.isDisjoint(with: [.indexed, .fullTextIndexed]) {
            columnName = column.label
            let leafIndex = column.key.leafIndex
            if leafIndex >= refs.count || refs.unchecked(leafIndex) == 0 {
                try error(.indexAttribute, refs.ref, "the column has the attribute of an index, but no index")
            }
        }
    }

    private func indexKind(_ column: ColumnModel) -> IndexWalk.Kind? {
        if column.attributes.contains(.fullTextIndexed) {
            return column.type == .string && column.collection == nil ? .wordsOfText : nil
        }
        if column.collection == .list { return column.type == .string ? .wordsOfList : nil }
        if column.collection != nil { return nil }
        switch column.type {
        case .int, .bool, .string, .timestamp, .objectId, .uuid, .mixed: return .values
        default: return nil
        }
    }

    private func verifyIndex(_ root: Node, _ walk: IndexWalk) throws {
        try verifyIndexNode(root, walk, level: 0, depth: 0, isRoot: true)
        report.indexEntryCount += walk.entries.count
        if !walk.isCountable || !walk.table.isCountable { return }
        let root = root.ref
        switch walk.kind {
        case .values:
            if walk.entries.count == walk.table.objectCount && !walk.mustSearch { return }
            let before = report.errorCount
            try eachValue(walk) { [self] key, value in
                if let data = IndexBytes(value), !isIndexed(key, data, root: root) {
                    try atFirst { try error(.indexMissing, root, row: key, "the object is not found by its value") }
                }
            }
            if report.errorCount == before && walk.entries.count != walk.table.objectCount {
                try error(.indexCount, root, "\(walk.entries.count) entries for \(walk.table.objectCount) objects")
            }
        case .wordsOfList, .wordsOfText:
            var expected = LinkGroup.Side()
            try eachWord(walk) { key, word in expected.add(word: IndexWord.canonical(word), key) }
            if expected != walk.entries { try findWords(walk, root: root) }
        }
    }

    // MARK: Nodes

    /// Returns the last chunk of the node; nil where it cannot be read.
    @discardableResult
    private func verifyIndexNode(_ node: Node, _ walk: IndexWalk, level: Int, depth: Int, isRoot: Bool) throws -> Int32? {
        guard node.hasRefs, node.hasContext, node.count >= 1 else {
            walk.isCountable = false
            try error(
                .indexNode, node.ref,
                "flags \(hexadecimal(UInt64(node.flags), digits: 2)), \(node.count) elements: no node of an index")
            try enterAll(below: node)
            return nil
        }
        try spend(node.count)
        guard depth < VerificationRun.treeDepthMax, let chunks = try integers(node, 0, "chunks") else {
            walk.isCountable = false
            if depth >= VerificationRun.treeDepthMax { try error(.depthLimit, node.ref, "an index of more than \(depth) levels") }
            try enterRest(node)
            return nil
        }
        let count = node.count - 1
        if chunks.width != 32 || chunks.count != count {
            try error(.indexChunks, chunks.ref, "\(chunks.count) chunks of \(chunks.width) bits for \(count) entries")
        }
        guard chunks.count == count, chunks.width <= 32 else {
            walk.isCountable = false
            try enterRest(node)
            return nil
        }
        if count > VerificationRun.indexNodeCountMax { try warning(.indexNode, node.ref, "\(count) entries in one node") }
        if count == 0 && !(isRoot && level == 0) { try error(.indexEmpty, node.ref, "a node of an index is empty") }
        for i in 1..<max(1, count) where chunks.unchecked(i) <= chunks.unchecked(i - 1) {
            try error(.indexChunks, chunks.ref, "chunk \(i), \(chunks.unchecked(i)), is not above the one before")
            break
        }
        for i in 0..<count {
            let chunk = Int32(truncatingIfNeeded: chunks.unchecked(i))
            if node.isInner {
                guard let child = try child(node, 1 + i, "child of an index") else {
                    walk.isCountable = false
                    continue
                }
                if let last = try verifyIndexNode(child, walk, level: level, depth: depth + 1, isRoot: false), last != chunk {
                    try error(.indexChunks, chunks.ref, "chunk \(i) is \(chunk), its child ends with \(last)")
                }
                continue
            }
            walk.path.append(chunk)
            defer { walk.path.removeLast() }
            try verifyIndexEntry(node, 1 + i, walk, level: level)
        }
        return count > 0 ? Int32(truncatingIfNeeded: chunks.unchecked(count - 1)) : nil
    }

    /// Enters what lies below the entries of a node whose chunks are of no use.
    private func enterRest(_ node: Node) throws {
        for i in 1..<max(1, node.count) where node.unchecked(i) != 0 && node.unchecked(i) & 1 == 0 {
            try enterAll(below: enter(node.unchecked(i), from: node.ref))
        }
    }

    private func verifyIndexEntry(_ node: Node, _ slot: Int, _ walk: IndexWalk, level: Int) throws {
        let value = node.unchecked(slot)
        if value & 1 != 0 {
            let key = ObjectKey(Int64(bitPattern: UInt64(bitPattern: value) >> 1))
            _ = try verifyIndexedObject(key, walk, node.ref)
            return
        }
        guard let entry = try child(node, slot, "entry of an index") else {
            walk.isCountable = false
            return
        }
        if entry.hasContext {
            if level >= VerificationRun.indexDepthMax {
                try error(.indexDepth, entry.ref, "a sub-index at depth \(level + 1)")
                walk.isCountable = false
                return try enterAll(below: entry)
            }
            try verifyIndexNode(entry, walk, level: level + 1, depth: 0, isRoot: true)
            return
        }
        try verifyIndexList(entry, walk, level: level)
    }

    // MARK: Entries

    /// Checks that the object's value leads here; returns the value where it can be read.
    private func verifyIndexedObject(_ key: ObjectKey, _ walk: IndexWalk, _ ref: Int) throws -> RawValue? {
        if walk.kind != .values {
            let word = IndexWord.word(walk.path)
            walk.entries.add(word: word, key)
            try walk.onWord?(word, key, ref)
            return nil
        }
        walk.entries.add(origin: key.rawValue, target: 0)
        guard key.rawValue >= 0, let place = find(key, in: walk.table) else {
            try error(.indexExtra, ref, row: key, "an entry for object \(key), which does not exist")
            return nil
        }
        guard let value = value(at: place, walk.column), let data = IndexBytes(value) else { return nil }
        for (level, chunk) in walk.path.enumerated() where data.chunk(4 * level) != chunk {
            let isHabit = walk.column.type == .mixed && isLeftBehind(walk.path, value)
            try find(isHabit ? .warning : .error, .indexPlace, ref, key) {
                "the entry of object \(key) stands under chunk \(chunk) at level \(level), "
                    + "its value asks for \(data.chunk(4 * level))"
            }
            break
        }
        // An unresolved link counts as null (file-format-2 7.4).
        if case .typedLink(_, let target) = value, target < 0 { return .null }
        return value
    }

    /// The value of a scalar column, read without claiming anything.
    private func value(at place: (leaf: Node, row: Int), _ column: ColumnModel) -> RawValue? {
        let outer = mode
        mode = .lookup
        defer { mode = outer }
        let slot = 1 + column.key.leafIndex
        guard slot < place.leaf.count,
            let node = try? child(
                place.leaf, slot,
                ""), let leaf = try? enterLeaf(node, column.leafKind),
            place.row < leaf.count
        else { return nil }
        return value(leaf, place.row)
    }

    /// Rule 33, and the uniqueness of a primary key.
    private func verifyIndexList(_ root: Node, _ walk: IndexWalk, level: Int) throws {
        var last: (key: ObjectKey, value: RawValue?)?
        let list = TreeWalk(LeafKind(.int, nullable: false, .tree))
        list.onLeaf = { [self] leaf, start in
            guard case .integers(let keys) = leaf.parts else { return }
            // Looking an object up costs more than an element; a list names each object once, so a true one is not longer than
            // that.
            try spend(16 * leaf.count)
            for i in 0..<leaf.count {
                let key = ObjectKey(keys.unchecked(i))
                let value = try verifyIndexedObject(key, walk, keys.ref)
                if let last {
                    if walk.kind != .values {
                        if key <= last.key {
                            // Entries of a string that stood twice in a list (file-format-2 7.7).
                            try find(walk.kind == .wordsOfList ? .warning : .error, .indexList, keys.ref, key) {
                                "object \(key) behind object \(last.key) in the list of a word"
                            }
                        }
                    } else if let value, let before = last.value,
                        let order = RawOrder.compare(before, value, ordersNaN: walk.column.type == .mixed)
                    {
                        try verifyIndexPair(walk, keys.ref, order, last.key, key, before, value, level: level)
                    } else {
                        // Whether the two are one object twice cannot be told from their values.
                        walk.mustSearch = true
                    }
                }
                last = (key, value)
            }
        }
        guard let count = try verifyTree(root, list) else {
            walk.isCountable = false
            return
        }
        if count == 0 { try error(.indexEmpty, root.ref, "a list of an index is empty") }
    }

    private func verifyIndexPair(
        _ walk: IndexWalk, _ ref: Int, _ order: Int, _ a: ObjectKey, _ b: ObjectKey,
        _ before: RawValue, _ value: RawValue, level: Int
    ) throws {
        if order == 0 {
            if b <= a {
                walk.mustSearch = true
                try error(.indexList, ref, row: b, "object \(b) behind object \(a), which has the same value")
            }
            if walk.table.primaryKey === walk.column {
                try error(.primaryKeyDuplicate, ref, row: b, "objects \(a) and \(b) have the same primary key")
            }
            return
        }
        if order > 0 { walk.mustSearch = true }
        if order > 0 { try warning(.indexListOrder, ref, row: b, "object \(b) has a value below that of object \(a) before it") }
        if level < VerificationRun.indexDepthMax, let x = IndexBytes(before), let y = IndexBytes(value), !(x == y) {
            try error(.indexList, ref, row: b, "objects \(a) and \(b) have different values and share a list")
        }
    }

    // MARK: Second passes

    /// Runs `body` as if in the first pass: for findings of a second one.
    private func atFirst(_ body: () throws -> Void) rethrows {
        let outer = mode
        mode = .first
        defer { mode = outer }
        try body()
    }

    private func eachValue(_ walk: IndexWalk, _ body: @escaping (ObjectKey, RawValue) throws -> Void) throws {
        try secondPass {
            let name = columnName
            _ = try walkAgain(walk.table, only: walk.column) { [self] leaf in
                guard let rows else { return }
                (tableName, columnName) = (walk.table.name, name)
                try spend(leaf.count)
                for i in 0..<leaf.count { try body(rows.key(i), value(leaf, i)) }
            }
        }
    }

    /// Calls `body` with each distinct word of each live object; of a list, null is one.
    private func eachWord(_ walk: IndexWalk, _ body: @escaping (ObjectKey, UnsafeRawBufferPointer?) throws -> Void) throws {
        if walk.kind == .wordsOfText {
            return try eachValue(walk) { key, value in
                guard case .string(let text) = value else { return }
                for word in FullTextWords.words(of: text) { try word.withUnsafeBytes { try body(key, $0) } }
            }
        }
        try secondPass {
            onCollection = { [self] values in
                guard let objectKey else { return }
                for value in values {
                    if let value { try value.withUnsafeBytes { try body(objectKey, $0) } } else { try body(objectKey, nil) }
                }
            }
            defer { onCollection = nil }
            _ = try walkAgain(walk.table, only: walk.column)
        }
    }

    /// Finds which words are missing and which are too many.
    private func findWords(_ walk: IndexWalk, root: Int) throws {
        let before = (report.errorCount, report.warningCount)
        try eachWord(walk) { [self] key, word in
            if !isIndexed(key, IndexBytes(word), root: root) {
                guard let word else {
                    // The file is read as it should be, but the original harms the index when it removes the null.
                    try atFirst { try warning(.indexMissing, root, row: key, "the object is not found by the null in its list") }
                    return
                }
                try atFirst {
                    try error(
                        .indexMissing, root, row: key,
                        "the object is not found by the word \(String(decoding: word.prefix(64), as: UTF8.self))")
                }
            }
        }
        // The other way round by sums of each object: those that differ hold a word too many, or one twice.
        var expected: [ObjectKey: Int] = [:], found: [ObjectKey: Int] = [:]
        try eachWord(walk) { key, _ in expected[key, default: 0] += 1 }
        let again = IndexWalk(walk.table, walk.column, walk.kind)
        again.onWord = { _, key, _ in found[key, default: 0] += 1 }
        try secondPass {
            if let node = try enter(Int64(root), from: 0) { try verifyIndexNode(node, again, level: 0, depth: 0, isRoot: true) }
        }
        for (key, count) in found.sorted(by: { $0.key < $1.key }) where count > expected[key, default: 0] {
            let what = "\(count) entries for the \(expected[key, default: 0]) words of object \(key)"
            // Left behind when a string stood twice in a list (file-format-2 7.7).
            try find(walk.kind == .wordsOfList ? .warning : .error, .indexExtra, root, key) { what }
        }
        // In a list of strings a path does not tell "abc" from "abcX" (file-format-2 7.6): that all are found, and none too many,
        // is enough.
        if before == (report.errorCount, report.warningCount) && walk.kind != .wordsOfList {
            try error(.indexCount, root, "the words of the index are not those of the objects")
        }
    }

    /// True where the search for `data` leads to `key` (file-format-2 7.4).
    private func isIndexed(_ key: ObjectKey, _ data: IndexBytes, root: Int) -> Bool {
        var ref = Int64(root)
        var offset = 0
        for _ in 0...(VerificationRun.indexDepthMax + 1) * VerificationRun.treeDepthMax {
            guard let node = index(ref), node.hasContext, let chunks = index(node.unchecked(0)), !chunks.hasRefs,
                chunks.count == node.count - 1
            else {
                return false
            }
            let chunk = Int64(data.chunk(offset))
            var low = 0, high = chunks.count
            while low < high {
                let middle = (low + high) / 2
                if chunks.unchecked(middle) < chunk { low = middle + 1 } else { high = middle }
            }
            if low == chunks.count { return false }
            let entry = node.unchecked(1 + low)
            if node.isInner { ref = entry; continue }
            if chunks.unchecked(low) != chunk { return false }
            if entry & 1 != 0 { return UInt64(bitPattern: entry) >> 1 == UInt64(bitPattern: key.rawValue) }
            guard let next = index(entry) else { return false }
            if !next.hasContext { return contains(next, key, depth: 0) }
            ref = entry
            offset += 4
        }
        return false
    }

    private func index(_ ref: Int64) -> Node? {
        guard ref > 0, ref < Int64(limit), let node = try? memory.node(Int(ref)), node.widthType == 0,
            node.count >= 1 || !node.hasRefs
        else {
            return nil
        }
        return node
    }

    private func contains(_ node: Node, _ key: ObjectKey, depth: Int) -> Bool {
        // Without elements left to look at nothing is said about the object.
        if (try? spend(node.count)) == nil { return true }
        if !node.isInner {
            for i in 0..<(node.hasRefs ? 0 : node.count) where node.unchecked(i) == key.rawValue { return true }
            return false
        }
        if depth >= VerificationRun.treeDepthMax { return false }
        for i in 1..<max(1, node.count - 1) {
            if let child = index(node.unchecked(i)), contains(child, key, depth: depth + 1) { return true }
        }
        return false
    }
}

extension LinkGroup.Side {
    mutating func add(word: [UInt8], _ key: ObjectKey) {
        var hash: UInt64 = UInt64(word.count)
        for byte in word { hash = mix(hash ^ UInt64(byte)) }
        add(origin: key.rawValue, target: Int64(bitPattern: hash))
    }
}
