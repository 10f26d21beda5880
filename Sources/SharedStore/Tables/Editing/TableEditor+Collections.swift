/// Changes to lists, sets and dictionaries, also those nested in Mixed values (file-format-2 5.2 to 5.7, 8).
///
/// A collection is named by its identity: object, column and the salts of the Mixed elements that enclose it. Positions in
/// lists of links count unresolved entries too. Whoever stores `.list` or `.dictionary` gets an empty collection.
extension TableEditor {
    /// The collection in a column of an object, by which the functions here know it.
    public func identity(_ column: Column, of key: ObjectKey) -> Identity {
        Identity(table: table.key, object: key, column: column.key)
    }

    /// The identity of the collection that stands in element `position` of another one.
    public func nestedIdentity(_ identity: Identity, at position: Int) throws -> Identity {
        let (root, form) = try collection(identity)
        let values = form.kind == .dictionary && root != 0 ? try arena.memory.node(root).requiredRef(1) : root
        let tree = try BPlusTree<MixedLeaf>(arena.memory, values)
        guard form.elementType == .mixed || form.kind == .dictionary, position >= 0, position < tree.count else {
            throw TableError.indexOutOfRange(position, count: tree.count)
        }
        let (leaf, start) = try tree.leaf(containing: position)
        switch try leaf.value(position - start) {
        case .list, .dictionary: break
        default: throw TableError.notACollection(table: table.name, column: table.name(of: form.column))
        }
        var nested = identity
        nested.salts.append(try leaf.key(position - start))
        return nested
    }

    /// Stored elements of a collection.
    public func count(_ identity: Identity) throws -> Int {
        let (root, form) = try collection(identity)
        return try count(root, form)
    }

    func count(_ root: Int, _ form: CollectionForm) throws -> Int {
        if root == 0 { return 0 }
        if form.kind == .dictionary {
            return try BPlusTree<MixedLeaf>(arena.memory, arena.memory.node(root).requiredRef(1)).count
        }
        return try reader(root, form).storedCount
    }

    private func reader(_ root: Int, _ form: CollectionForm) throws -> ListReader {
        form.column.collection != nil && form.elementType == form.column.type
            ? try ListReader(arena.memory, root, form.column) : try ListReader(arena.memory, mixed: root)
    }

    func list(_ identity: Identity, _ kind: CollectionKind) throws -> (root: Int, form: CollectionForm, count: Int) {
        let (root, form) = try collection(identity)
        guard form.kind == kind else { throw TableError.notACollection(table: table.name, column: table.name(of: form.column)) }
        return (root, form, try count(root, form))
    }

    func check(_ value: Mixed, _ form: CollectionForm) throws {
        if form.elementType == .mixed && form.column.type == .mixed {
            try form.column.check(value, in: table)
            try checkMixedLink(form.column, value)
            return
        }
        try form.column.check(value, in: table)
        if case .link(let target, let key) = value {
            let other = try other(target)
            if other.table.kind == .embedded {
                throw TableError.badLinkTarget(
                    table: table.name, column: table.name(of: form.column), reason: "an embedded object is made in place")
            }
            if try other.table.find(key) == nil { throw other.noSuchObject(key) }
        }
    }

    func checkDepth(_ identity: Identity, _ value: Mixed) throws {
        if (value == .list || value == .dictionary) && identity.salts.count + 1 >= Self.nestingMax {
            throw TableError.nestingTooDeep
        }
    }

    func isIndexedList(_ form: CollectionForm) -> Bool {
        form.column.collection == .list && form.column.type == .string && isIndexed(form.column)
    }

    // MARK: Lists

    /// Replaces an element. An index that is not there throws.
    public func listSet(_ identity: Identity, _ index: Int, _ value: Mixed) throws {
        let (root, form, count) = try list(identity, .list)
        guard index >= 0, index < count else { throw TableError.indexOutOfRange(index, count: count) }
        try check(value, form)
        try checkDepth(identity, value)
        let old = try storedElement(root, form, index)
        if isIndexedList(form), case .string(let s) = value, s.utf8.count > SearchIndexEditor.indexedByteCountMax {
            throw LimitError.valueTooLarge(byteCount: s.utf8.count, limit: SearchIndexEditor.indexedByteCountMax)
        }
        let isSameCollection = (value == .list && old.value == .list) || (value == .dictionary && old.value == .dictionary)
        if !isSameCollection {
            group.retireSalt(old.salt)
            if old.value != value || form.elementType == .mixed {
                try removeLinks(form.column, identity.object, of: old.value, nested: { old.nested }, depth: 0)
            }
            if isIndexedList(form), old.value != value {
                // Before the list changes: the index looks words up in it.
                if try occurrences(identity, old.value) == 1 { try eraseWord(form.column, identity.object, old.value.word) }
                try insertWord(form.column, identity.object, value.word)
            }
            try editCollection(identity) { root, form in
                if value == .list || value == .dictionary {
                    let salt = try newSalt(root)
                    return try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, root, index) { leaf, local in
                        try MixedLeafEditor.setCollection(arena, leaf, local, value == .list ? .list : .dictionary, key: salt)
                    }
                }
                return try TypedTreeEditor.set(arena, root, form.elementType, isNullable: form.isNullable, index, value)
            }
            if old.value != value || form.elementType == .mixed, case .link(let target, let key) = value {
                try addBacklink(form.column, identity.object, target, key)
            }
        }
        group.changes.collectionSet(index, identity)
        try clearUnresolvedFlag(identity, form, removed: old.value)
        try group.deleteOrphans()
    }

    /// Takes an element out. An index that is not there throws.
    public func listErase(_ identity: Identity, _ index: Int) throws {
        let (root, form, count) = try list(identity, .list)
        guard index >= 0, index < count else { throw TableError.indexOutOfRange(index, count: count) }
        try eraseElement(identity, root, form, index)
        try group.deleteOrphans()
    }

    private func eraseElement(_ identity: Identity, _ root: Int, _ form: CollectionForm, _ index: Int) throws {
        let old = try storedElement(root, form, index)
        try removeLinks(form.column, identity.object, of: old.value, nested: { old.nested }, depth: 0)
        try editCollection(identity) { root, form in
            try TypedTreeEditor.erase(arena, root, form.elementType, isNullable: form.isNullable, index)
        }
        group.changes.collectionErase(index, identity)
        if isIndexedList(form), try occurrences(identity, old.value) == 0 {
            try eraseWord(form.column, identity.object, old.value.word)
        }
        try clearUnresolvedFlag(identity, form, removed: old.value)
    }

    /// `to` is the position after the element was taken out.
    public func listMove(_ identity: Identity, from: Int, to: Int) throws {
        let (root, form, count) = try list(identity, .list)
        guard from >= 0, from < count else { throw TableError.indexOutOfRange(from, count: count) }
        guard to >= 0, to < count else { throw TableError.indexOutOfRange(to, count: count) }
        if from == to { return }
        try moveElement(identity, try storedElement(root, form, from), from, to)
        group.changes.collectionMove(from: from, to: to, identity)
    }

    /// Moves one stored element; a nested collection keeps its tree and its salt.
    private func moveElement(_ identity: Identity, _ element: StoredElement, _ from: Int, _ to: Int) throws {
        try editCollection(identity) { root, form in
            guard element.value == .list || element.value == .dictionary else {
                let without = try TypedTreeEditor.erase(arena, root, form.elementType, isNullable: form.isNullable, from)
                return try TypedTreeEditor.insert(
                    arena, without, form.elementType, isNullable: form.isNullable, to, element.value)
            }
            var nested = 0
            // The tree is taken out of the element first: erasing it then frees nothing.
            var tree = try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, root, from) { leaf, local in
                let (writable, ref) = try MixedLeafEditor.nestedRef(arena, leaf, local)
                nested = ref
                return try MixedLeafEditor.setNestedRef(arena, writable, local, 0)
            }
            tree = try BPlusTreeEditor<MixedLeafEditor>.erase(arena, tree, from)
            tree = try BPlusTreeEditor<MixedLeafEditor>.insert(arena, tree, to, .null)
            return try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, tree, to) { leaf, local in
                let placed = try MixedLeafEditor.setCollection(
                    arena, leaf, local, element.value == .list ? .list : .dictionary, key: element.salt)
                return try MixedLeafEditor.setNestedRef(arena, placed, local, nested)
            }
        }
        try carryUnresolvedFlag(identity)
    }

    /// Exchanges two elements. Indexes that are not there throw.
    public func listSwap(_ identity: Identity, _ a: Int, _ b: Int) throws {
        let (_, _, count) = try list(identity, .list)
        for i in [a, b] where i < 0 || i >= count { throw TableError.indexOutOfRange(i, count: count) }
        let low = min(a, b), high = max(a, b)
        if low == high { return }
        for (from, to) in low + 1 == high ? [(high, low)] : [(high, low), (low + 1, high)] {
            let (root, form) = try collection(identity)
            try moveElement(identity, try storedElement(root, form, from), from, to)
        }
        group.changes.collectionSwap(a, b, identity)
    }

    /// Empties a list, set or dictionary; embedded objects in it go too.
    public func clear(_ identity: Identity) throws {
        let (root, form) = try collection(identity)
        let count = try count(root, form)
        let isNested = form.column.collection == nil || !identity.salts.isEmpty
        if count == 0 {
            // For a list or dictionary inside a Mixed the original logs even the clearing of an empty one.
            if isNested { group.changes.collectionClear(oldCount: 0, identity) }
            return
        }
        if form.kind == .dictionary {
            try removeLinks(form.column, identity.object, inTree: try arena.memory.node(root).requiredRef(1), depth: 0)
        } else if form.elementType == .mixed {
            try removeLinks(form.column, identity.object, inTree: root, depth: 0)
        } else if form.elementType == .link {
            var targets: [ObjectKey] = []
            try BPlusTree<KeyLeaf>(arena.memory, root).forEachLeaf { leaf, _ in
                for i in 0..<leaf.count { targets.append(try leaf.value(i)) }
            }
            for target in targets { try removeBacklink(form.column, identity.object, form.column.oppositeTable, target) }
        }
        if isIndexedList(form) {
            for word in try reader(root, form).words() { try eraseWord(form.column, identity.object, word) }
        }
        try editCollection(identity) { root, form in
            if form.kind == .dictionary {
                try arena.releaseTree(root)
                return 0
            }
            return try TypedTreeEditor.clear(arena, root, form.elementType, isNullable: form.isNullable)
        }
        group.changes.collectionClear(oldCount: count, identity)
        try group.deleteOrphans()
    }

    /// Makes an embedded object and inserts it into a list.
    public func listInsertEmbedded(_ identity: Identity, _ index: Int) throws -> ObjectKey {
        let (_, form, count) = try list(identity, .list)
        guard index >= 0, index <= count else { throw TableError.indexOutOfRange(index, count: count) }
        let child = try embeddedTarget(form.column).createEmbeddedObject()
        try insertElement(identity, form, count, index, .link(form.column.oppositeTable, child))
        return child
    }

    /// Makes an embedded object in place of element `index`, which goes.
    public func listSetEmbedded(_ identity: Identity, _ index: Int) throws -> ObjectKey {
        let (root, form, count) = try list(identity, .list)
        guard index >= 0, index < count else { throw TableError.indexOutOfRange(index, count: count) }
        let child = try embeddedTarget(form.column).createEmbeddedObject()
        let old = try storedElement(root, form, index)
        try removeLinks(form.column, identity.object, of: old.value, nested: { 0 }, depth: 0)
        try editCollection(identity) { root, _ in try BPlusTreeEditor<KeyLeafEditor>.set(arena, root, index, child) }
        try addBacklink(form.column, identity.object, form.column.oppositeTable, child)
        group.changes.collectionSet(index, identity)
        try group.deleteOrphans()
        return child
    }

    // MARK: Elements

    /// A stored element, with the root and the salt of a nested collection.
    private struct StoredElement {
        var value: Mixed
        var nested = 0
        var salt: Int64 = 0
    }

    private func storedElement(_ root: Int, _ form: CollectionForm, _ index: Int) throws -> StoredElement {
        if form.elementType == .link {
            return StoredElement(
                value: .link(form.column.oppositeTable, try BPlusTree<KeyLeaf>(arena.memory, root).value(at: index)))
        }
        guard form.elementType == .mixed else { return StoredElement(value: try reader(root, form).value(index)) }
        let (leaf, start) = try BPlusTree<MixedLeaf>(arena.memory, root).leaf(containing: index)
        let value = try leaf.value(index - start)
        guard value == .list || value == .dictionary else { return StoredElement(value: value) }
        return StoredElement(value: value, nested: try leaf.nestedRef(index - start), salt: try leaf.key(index - start))
    }

    private func occurrences(_ identity: Identity, _ value: Mixed) throws -> Int {
        let (root, form) = try collection(identity)
        var count = 0
        try reader(root, form).forEach { if $0 == value { count += 1 } }
        return count
    }

    /// After an unresolved link went: is there another one?
    private func clearUnresolvedFlag(_ identity: Identity, _ form: CollectionForm, removed: Mixed) throws {
        if form.elementType == .link, removed.linkKey.isUnresolved { try updateUnresolvedFlag(identity) }
    }

    private func carryUnresolvedFlag(_ identity: Identity) throws {
        let (root, form) = try collection(identity)
        if form.elementType == .link, root != 0, try arena.memory.node(root).hasContext { try updateUnresolvedFlag(identity) }
    }

    // MARK: Sets

    /// First position whose element is not less than `value`, and whether it equals it.
    private func lowerBound(_ root: Int, _ form: CollectionForm, _ count: Int, _ value: Mixed) throws -> (
        position: Int, isEqual: Bool
    ) {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if Mixed.compare(try storedElement(root, form, middle).value, value) < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, try low < count && Mixed.compare(storedElement(root, form, low).value, value) == 0)
    }

    /// Adds an element; returns its position and whether it is new. An equal one that is there stays.
    public func setInsert(_ identity: Identity, _ value: Mixed) throws -> (position: Int, wasInserted: Bool) {
        let (root, form, count) = try list(identity, .set)
        try check(value, form)
        let place = try lowerBound(root, form, count, value)
        if place.isEqual { return (place.position, false) }
        try insertElement(identity, form, count, place.position, value)
        return (place.position, true)
    }

    /// Removes an element; returns its position, or nil where it was not there.
    public func setErase(_ identity: Identity, _ value: Mixed) throws -> Int? {
        let (root, form, count) = try list(identity, .set)
        let place = try lowerBound(root, form, count, value)
        guard place.isEqual else { return nil }
        try eraseElement(identity, root, form, place.position)
        try group.deleteOrphans()
        return place.position
    }

    // MARK: Dictionaries

    private static func checkKey(_ key: String) throws {
        if key.utf8.first == UInt8(ascii: "$") || key.utf8.contains(UInt8(ascii: ".")) { throw TableError.badDictionaryKey(key) }
        if key.utf8.count > 0xFFFFEF { throw LimitError.valueTooLarge(byteCount: key.utf8.count, limit: 0xFFFFEF) }
    }

    private func dictionaryPlace(_ root: Int, _ key: String) throws -> (position: Int, isEqual: Bool, count: Int) {
        if root == 0 { return (0, false, 0) }
        let keys = try BPlusTree<StringLeaf>(arena.memory, arena.memory.node(root).requiredRef(0))
        var key = key
        return try key.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var low = 0, high = keys.count
            func compare(_ i: Int) throws -> Int {
                let (leaf, start) = try keys.leaf(containing: i)
                return ValueOrder.compare(try leaf.bytes(i - start) ?? UnsafeRawBufferPointer(start: nil, count: 0), bytes)
            }
            while low < high {
                let middle = (low + high) / 2
                if try compare(middle) < 0 { low = middle + 1 } else { high = middle }
            }
            return (low, try low < keys.count && compare(low) == 0, keys.count)
        }
    }

    /// Assigns a value to a key; returns its position and whether the key is new.
    @discardableResult
    public func dictionarySet(_ identity: Identity, _ key: String, _ value: Mixed) throws -> (position: Int, wasInserted: Bool) {
        let (_, form, _) = try list(identity, .dictionary)
        try Self.checkKey(key)
        try check(value, form)
        try checkDepth(identity, value)
        let place = try storeInDictionary(identity, form, key, value)
        try group.deleteOrphans()
        return place
    }

    private func storeInDictionary(_ identity: Identity, _ form: CollectionForm, _ key: String, _ value: Mixed) throws -> (
        position: Int, wasInserted: Bool
    ) {
        let (root, _) = try collection(identity)
        let place = try dictionaryPlace(root, key)
        var isSameCollection = false
        if place.isEqual {
            let (leaf, start) = try BPlusTree<MixedLeaf>(arena.memory, arena.memory.node(root).requiredRef(1)).leaf(
                containing: place.position)
            let old = try leaf.value(place.position - start)
            isSameCollection = (value == .list && old == .list) || (value == .dictionary && old == .dictionary)
            if !isSameCollection {
                if old == .list || old == .dictionary { group.retireSalt(try leaf.key(place.position - start)) }
                try removeLinks(
                    form.column, identity.object, of: old, nested: { try leaf.nestedRef(place.position - start) }, depth: 0)
            }
        }
        if !isSameCollection {
            try editCollection(identity) { root, _ in
                var dictionary = root
                if root == 0 {
                    dictionary = try arena.makeRefs(count: 2)
                    arena.setElement(dictionary, 0, try BPlusTreeEditor<StringLeafEditor>.create(arena))
                    arena.setElement(dictionary, 1, try BPlusTreeEditor<MixedLeafEditor>.create(arena))
                } else {
                    dictionary = try arena.writableRefs(root)
                }
                var values = try arena.child(dictionary, 1)
                let isCollection = value == .list || value == .dictionary
                let salt = isCollection ? try newSalt(values) : 0
                if !place.isEqual {
                    arena.setElement(
                        dictionary, 0,
                        try BPlusTreeEditor<StringLeafEditor>.insert(arena, arena.child(dictionary, 0), place.position, key))
                    values = try BPlusTreeEditor<MixedLeafEditor>.insert(
                        arena, values, place.position, isCollection ? .null : value)
                } else if !isCollection {
                    values = try BPlusTreeEditor<MixedLeafEditor>.set(arena, values, place.position, value)
                }
                if isCollection {
                    values = try BPlusTreeEditor<MixedLeafEditor>.editLeaf(arena, values, place.position) { leaf, local in
                        try MixedLeafEditor.setCollection(arena, leaf, local, value == .list ? .list : .dictionary, key: salt)
                    }
                }
                arena.setElement(dictionary, 1, values)
                return dictionary
            }
            if case .link(let target, let object) = value { try addBacklink(form.column, identity.object, target, object) }
        }
        if place.isEqual {
            group.changes.collectionSet(place.position, identity)
        } else {
            group.changes.collectionInsert(place.position, identity)
        }
        return (place.position, !place.isEqual)
    }

    /// Makes an embedded object under a key; the one that was there goes.
    public func dictionarySetEmbedded(_ identity: Identity, _ key: String) throws -> ObjectKey {
        let (_, form, _) = try list(identity, .dictionary)
        try Self.checkKey(key)
        let child = try embeddedTarget(form.column).createEmbeddedObject()
        _ = try storeInDictionary(identity, form, key, .link(form.column.oppositeTable, child))
        try group.deleteOrphans()
        return child
    }

    /// Stores a link to an embedded object that has no owner yet.
    func storeLink(_ identity: Identity, _ key: String, _ target: TableKey, _ object: ObjectKey) throws {
        let (_, form, _) = try list(identity, .dictionary)
        _ = try storeInDictionary(identity, form, key, .link(target, object))
    }

    /// Removes a key; returns its position, or nil where it was not there.
    @discardableResult
    public func dictionaryErase(_ identity: Identity, _ key: String) throws -> Int? {
        let (root, form, _) = try list(identity, .dictionary)
        let place = try dictionaryPlace(root, key)
        guard place.isEqual else { return nil }
        let (leaf, start) = try BPlusTree<MixedLeaf>(arena.memory, arena.memory.node(root).requiredRef(1)).leaf(
            containing: place.position)
        try removeLinks(
            form.column, identity.object, of: leaf.value(place.position - start),
            nested: { try leaf.nestedRef(place.position - start) }, depth: 0)
        try editCollection(identity) { root, _ in
            let dictionary = try arena.writableRefs(root)
            arena.setElement(
                dictionary, 0, try BPlusTreeEditor<StringLeafEditor>.erase(arena, arena.child(dictionary, 0), place.position))
            arena.setElement(
                dictionary, 1, try BPlusTreeEditor<MixedLeafEditor>.erase(arena, arena.child(dictionary, 1), place.position))
            return dictionary
        }
        group.changes.collectionErase(place.position, identity)
        try group.deleteOrphans()
        return place.position
    }
}
