/// B+ trees and the collections made of them (file-format-1 section 11, rules 24 to 29).

/// One walk over a B+ tree.
final class TreeWalk {
    let kind: LeafKind
    /// How many Mixed collections the tree is nested in.
    let nesting: Int
    /// Called with each leaf and the index of its first value.
    var onLeaf: ((RawLeaf, Int) throws -> Void)?
    var leafDepth: Int?
    var count = 0
    /// Keys of the nested collections met so far.
    var nestedKeys: Set<Int64> = []
    /// The values are the origins of links to one object.
    var isOfBacklinks = false
    /// The values are those of a set, which holds no collections.
    var isSet = false
    init(_ kind: LeafKind, nesting: Int = 0) {
        self.kind = kind
        self.nesting = nesting
    }
}

extension VerificationRun {
    static let treeDepthMax = 16
    static let treeNodeCountMax = 1000
    static let nestingMax = 100
    /// Inner nodes of all trees on the way from a column to a value. Trees of the largest files have three levels, so this bounds
    /// the stack and nothing else.
    static let pathMax = 400

    /// Bytes of the payload of a leaf and of the nodes that make it up.
    private func payloadByteCount(_ node: Node, levels: Int) -> Int {
        guard node.hasRefs, node.count <= 6, levels > 0 else { return node.payloadByteCount }
        return (0..<node.count).reduce(node.payloadByteCount) { sum, i in
            let value = node.unchecked(i)
            guard value > 0, value & 1 == 0, let part = try? memory.node(Int(value)) else { return sum }
            return sum + payloadByteCount(part, levels: levels - 1)
        }
    }

    /// Checks the tree at `root`, which has been entered. Returns the number of its elements, nil where damage hides some.
    @discardableResult
    func verifyTree(_ root: Node, _ walk: TreeWalk) throws -> Int? {
        try verifyTreeNode(root, walk, depth: 0)
    }

    private func verifyTreeNode(_ node: Node, _ walk: TreeWalk, depth: Int) throws -> Int? {
        if node.isInner { return try verifyInner(node, walk, depth: depth) }
        if let expected = walk.leafDepth, expected != depth {
            try error(.treeDepth, node.ref, "a leaf lies at depth \(depth), the first one at \(expected)")
        }
        walk.leafDepth = walk.leafDepth ?? depth
        guard let leaf = try verifyLeaf(node, walk.kind, expected: nil) else { return nil }
        if leaf.count == 0 && depth > 0 { try error(.treeEmptyLeaf, node.ref, "a leaf that is not the root is empty") }
        if leaf.count > VerificationRun.treeNodeCountMax {
            // Elements of width 0 have no bytes. A list of backlinks may be one leaf of any size (file-format-1 8.3), others have
            // grown by bytes.
            let isPossible =
                walk.isOfBacklinks && depth == 0
                ? leaf.count / 125 <= limit
                : leaf.count <= VerificationRun.treeNodeCountMax + 8 * payloadByteCount(node, levels: 2)
            try find(isPossible ? .warning : .error, .treeNodeCount, node.ref, nil) { "a leaf of \(leaf.count) elements" }
        }
        if case .mixed(let mixed) = leaf.parts { try verifyNested(mixed, nesting: walk.nesting, tree: walk) }
        if let onLeaf = walk.onLeaf { try onLeaf(leaf, walk.count) }
        walk.count += leaf.count
        return leaf.count
    }

    private func verifyInner(_ node: Node, _ walk: TreeWalk, depth: Int) throws -> Int? {
        innerNodesOpen += 1
        defer { innerNodesOpen -= 1 }
        if depth >= VerificationRun.treeDepthMax || innerNodesOpen > VerificationRun.pathMax {
            try error(.depthLimit, node.ref, "a tree of \(depth) levels, below \(innerNodesOpen) inner nodes")
            try enterAll(below: node)
            return nil
        }
        let children = node.count - 2
        if children < 1 || node.hasContext && walk.kind.type != .link {
            try error(.treeShape, node.ref, "flags \(hexadecimal(UInt64(node.flags), digits: 2)), \(node.count) elements")
            if children < 1 {
                try enterAll(below: node)
                return nil
            }
        }
        if depth == 0 && children == 1 { try warning(.treeShape, node.ref, "a root with a single child") }
        if children > VerificationRun.treeNodeCountMax {
            try warning(.treeNodeCount, node.ref, "an inner node of \(children) children")
        }
        try spend(children)
        let first = node.unchecked(0), last = node.unchecked(node.count - 1)
        var offsets: Node?
        if first & 1 == 0 {
            offsets = try integers(node, 0, "offsets")
            if let offsets { try verifyOffsets(offsets, count: children - 1, node) }
        } else if first < 0 || first >> 1 == 0 {
            try error(.treeCompact, node.ref, "\(first >> 1) elements a child")
        }
        var total = 0
        var isWhole = true
        for i in 0..<children {
            guard
                let child = try child(
                    node, 1 + i,
                    "child"), let count = try verifyTreeNode(child, walk, depth: depth + 1)
            else {
                isWhole = false
                continue
            }
            total += count
            if !isWhole { continue }
            if let offsets, i < children - 1, i < offsets.count, offsets.uncheckedUnsigned(i) != UInt64(total) {
                try error(
                    .treeOffsets, offsets.ref,
                    "offset \(i) is \(offsets.uncheckedUnsigned(i)), the children before hold \(total) elements")
            } else if first & 1 != 0, i < children - 1 ? Int64(count) != first >> 1 : Int64(count) > first >> 1 {
                try error(
                    .treeCompact, node.ref,
                    "child \(i) of \(children) holds \(count) elements, a child is to hold \(first >> 1)")
            }
        }
        if last & 1 == 0 {
            try error(.treeTotal, node.ref, "the last element is \(last), not a number")
            if last != 0 { try enterAll(below: enter(last, from: node.ref)) }
        } else if isWhole && last >> 1 != Int64(total) {
            try error(.treeTotal, node.ref, "says \(last >> 1) elements, holds \(total)")
        }
        return isWhole ? total : nil
    }

    private func verifyOffsets(_ offsets: Node, count: Int, _ node: Node) throws {
        if offsets.count != count { try error(.treeOffsets, offsets.ref, "\(offsets.count) offsets for \(count + 1) children") }
        if offsets.count > 0 && offsets.width < 8 { try warning(.unsignedWidth, offsets.ref, "offsets of \(offsets.width) bits") }
        try spend(offsets.count)
        for i in 1..<max(1, offsets.count) where offsets.uncheckedUnsigned(i) <= offsets.uncheckedUnsigned(i - 1) {
            return try error(
                .treeOffsets, offsets.ref,
                "offset \(i), \(offsets.uncheckedUnsigned(i)), is not above the one before")
        }
    }

    // MARK: Collections

    /// The collection at `root` in the column that is being looked at; `objectKey` is its owner.
    func verifyCollection(_ root: Node, _ column: ColumnModel) throws {
        guard let collection = column.collection else { return }
        switch collection {
        case .list, .set:
            let walk = TreeWalk(column.elementKind)
            walk.isSet = collection == .set
            var hasUnresolved = false
            var order = OrderCheck()
            var strings: Set<[UInt8]?> = []
            walk.onLeaf = { [self] leaf, start in
                if onCollection != nil {
                    try spend(leaf.count)
                    for i in 0..<leaf.count {
                        switch value(leaf, i) {
                        case .string(let text): strings.insert(Array(text))
                        case .null: strings.insert(nil)
                        default: break
                        }
                    }
                }
                if case .keys(let keys) = leaf.parts {
                    let count = differing(keys, leaf.count), times = count == leaf.count ? 1 : leaf.count
                    for i in 0..<count {
                        let key = keys.unchecked(i)
                        if key <= -2 { hasUnresolved = true }
                        if key != -1 {
                            try link(table: column.oppositeTable, key: key, origin: objectKey, keys.ref, times: times)
                        }
                    }
                }
                if collection == .set {
                    try verifyOrder(leaf, start, &order, root.ref, code: .setOrder, duplicate: .setDuplicate)
                }
            }
            try verifyTree(root, walk)
            try onCollection?(strings)
            if column.type == .link && hasUnresolved != root.hasContext {
                if hasUnresolved && !isOlderFormat {
                    try error(.setUnresolvedFlag, root.ref, "unresolved links, but the context flag is clear")
                } else {
                    try warning(
                        .setUnresolvedFlag, root.ref,
                        "the context flag is \(root.hasContext ? "set" : "clear"), unresolved links \(hasUnresolved)")
                }
            }
        case .dictionary:
            if format < 23 && format >= 21 {
                try verifyOldDictionary(root, column)
            } else {
                try verifyDictionary(root, keyType: column.keyType, values: column, nesting: 0)
            }
        }
    }

    /// `values`: the column whose type the values must have; nil for a dictionary nested in a Mixed.
    private func verifyDictionary(_ node: Node, keyType: ColumnType, values column: ColumnModel?, nesting: Int) throws {
        guard node.hasRefs, !node.isInner, !node.hasContext, node.count == 2 else {
            try error(.dictionaryShape, node.ref, "flags \(hexadecimal(UInt64(node.flags), digits: 2)), \(node.count) elements")
            return try enterAll(below: node)
        }
        var keyCount: Int?
        if let keys = try child(node, 0, "keys") {
            let walk = TreeWalk(LeafKind(keyType, nullable: false, .tree))
            var order = OrderCheck()
            walk.onLeaf = { [self] leaf, start in
                try verifyOrder(leaf, start, &order, keys.ref, code: .dictionaryOrder, duplicate: .dictionaryOrder)
            }
            keyCount = try verifyTree(keys, walk)
        }
        guard let values = try child(node, 1, "values") else { return }
        let walk = TreeWalk(LeafKind(.mixed, nullable: true, .tree), nesting: nesting)
        if let column {
            walk.onLeaf = { [self] leaf, start in
                if case .mixed(let mixed) = leaf.parts { try verifyDictionaryValues(mixed, start, column) }
            }
        }
        let count = try verifyTree(values, walk)
        if let keyCount, let count, keyCount != count {
            try error(.dictionaryCounts, node.ref, "\(keyCount) keys, \(count) values")
        }
    }

    func verifyDictionaryValues(_ mixed: RawMixed, _ start: Int, _ column: ColumnModel) throws {
        if column.type == .mixed { return }
        for i in 0..<differing(mixed.composite, mixed.composite.count) {
            let element = mixed.composite.unchecked(i)
            if element == 0 {
                if !column.isNullable {
                    try error(.valueNull, mixed.composite.ref, "value \(start + i) is null where null is not allowed")
                }
                continue
            }
            let expected = column.type == .link ? ColumnType.typedLink : column.type
            if Int(element & 31) - 1 != expected.rawValue {
                try error(
                    .dictionaryValue, mixed.composite.ref,
                    "value \(start + i) is of type \(Int(element & 31) - 1) in a dictionary of \(column.type)")
            }
        }
    }

    // MARK: What a Mixed leads to

    /// Links in the values of a Mixed leaf, and the collections nested in them. `tree` is nil for a leaf of a cluster.
    func verifyNested(_ mixed: RawMixed, nesting: Int, tree: TreeWalk?) throws {
        let owner = objectKey
        defer { objectKey = owner }
        let hasKeys = mixed.keys.map { $0.width > 0 } ?? false
        let count = hasKeys ? mixed.composite.count : differing(mixed.composite, mixed.composite.count)
        try spend(count)
        for i in 0..<count {
            let element = mixed.composite.unchecked(i)
            let type = Int(element & 31) - 1
            let key = mixed.keys.map { i < $0.count ? $0.unchecked(i) : 0 } ?? 0
            guard element != 0, type == ColumnType.typedLink.rawValue || type == ColumnType.link.rawValue || type >= 19 else {
                if key != 0 {
                    try warning(
                        .mixedKeyMissing, mixed.composite.ref, row: rowOrOwner(i, tree),
                        "value \(i), no collection, has the key \(key)")
                }
                continue
            }
            if tree == nil, let rows { objectKey = rows.key(i) }
            switch value(mixed, i) {
            case .typedLink(let table, let key): try link(table: table, key: key, origin: objectKey, mixed.composite.ref)
            case .key(let key):
                // The form exists, but no value of a user has it (file-format-1 7.3): there is no table that it could lead to.
                try error(
                    .linkTarget, mixed.composite.ref, row: rowOrOwner(i, tree),
                    "value \(i) is a link to object \(key) that names no table")
            case .list: try verifyNestedCollection(mixed, i, key, nesting, tree, isList: true)
            case .dictionary: try verifyNestedCollection(mixed, i, key, nesting, tree, isList: false)
            default: break
            }
        }
        // Entries of `refs` that no value uses have been reported; what they lead to is in use all the same.
        if let refs = mixed.refs, refs.width > 0 {
            for i in 0..<refs.count {
                let value = refs.unchecked(i)
                if value > 0, value & 7 == 0, value < Int64(limit), !space.isStart(Int(value)) {
                    try enterAll(below: enter(value, from: refs.ref))
                }
            }
        }
    }

    private func rowOrOwner(_ index: Int, _ tree: TreeWalk?) -> ObjectKey? { tree == nil ? rows?.key(index) : nil }

    private func verifyNestedCollection(
        _ mixed: RawMixed, _ index: Int, _ key: Int64, _ nesting: Int, _ tree: TreeWalk?,
        isList: Bool
    ) throws {
        let ref = mixed.composite.ref
        if let tree, tree.isSet {
            try error(.setNested, ref, "value \(index) of a set is a \(isList ? "list" : "dictionary")")
        }
        if key == 0 {
            try error(.mixedKeyMissing, ref, "value \(index), a collection, has no key")
        } else if let tree, !tree.nestedKeys.insert(key).inserted {
            try error(.mixedKeyDuplicate, ref, "value \(index) has the key \(key), as another one of the same collection")
        }
        let position = mixed.composite.unchecked(index) >> 8
        guard let refs = mixed.refs, position >= 0, position < Int64(refs.count), refs.unchecked(Int(position)) != 0 else {
            return
        }
        guard let root = try child(refs, Int(position), "nested collection") else { return }
        if nesting >= VerificationRun.nestingMax {
            try error(.depthLimit, ref, "collections are nested more than \(VerificationRun.nestingMax) levels deep")
            return try enterAll(below: root)
        }
        if isList {
            try verifyTree(root, TreeWalk(LeafKind(.mixed, nullable: true, .tree), nesting: nesting + 1))
        } else {
            try verifyDictionary(root, keyType: .string, values: nil, nesting: nesting + 1)
        }
    }
}
