/// History (file-format-3 section 10, rule 10; file-format-2 section 11, rule 5).
extension VerificationRun {
    func verifyHistory(_ top: Node) throws {
        guard top.count > TopSlot.historyType, let type = try number(top, TopSlot.historyType, .topElement, "history type") else {
            return
        }
        let schema = try number(top, TopSlot.historySchema, .topElement, "history schema version") ?? 0
        _ = try number(top, TopSlot.syncFileIdent, .topElement, "sync file ident")
        if !(0...4).contains(type) { try error(.historyType, top.ref, "history type \(type)") }
        if type == 0 && schema != 0 { try error(.historyType, top.ref, "no history, but history schema version \(schema)") }
        if type >= 2 && top.count < 11 {
            try oldFormat(.historyType, top.ref, "history type \(type) in a top array of \(top.count) elements")
        }
        guard type == 2 else {
            // Histories of synchronised files have a form of their own: only that every node has one owner is checked.
            return try enterAll(below: optionalChild(top, TopSlot.history, "history"))
        }
        if schema > 1 { try error(.historyType, top.ref, "history schema version \(schema)") }
        if schema == 0 && top.count > TopSlot.historySchema {
            try oldFormat(.historyType, top.ref, "a history without a schema version")
        }
        guard let root = try optionalChild(top, TopSlot.history, "history") else { return }
        let walk = TreeWalk(LeafKind(.binary, nullable: false, .tree))
        walk.onLeaf = { [self] leaf, start in
            try spend(leaf.count)
            for i in 0..<leaf.count { try verifyChangeset(leaf, i, start + i) }
        }
        guard let count = try verifyTree(root, walk) else { return }
        report.historyElementCount = count
        if count > 0 && UInt64(count) >= snapshot.version {
            try error(.historyCount, root.ref, "\(count) changesets lead to version \(snapshot.version)")
        }
    }

    /// Every changeset parses to its end, and what uses a selection stands behind one.
    private func verifyChangeset(_ leaf: RawLeaf, _ index: Int, _ element: Int) throws {
        guard case .strings(let strings) = leaf.parts else { return }
        var isWhole = true
        var ref = 0
        var parts: [UInt8] = []
        let bytes: UnsafeRawBufferPointer
        if let whole = self.bytes(strings, index, isWhole: &isWhole) {
            bytes = whole
        } else if !isWhole, case .big(let node) = strings.parts, let joined = join(node.unchecked(index)) {
            ref = node.ref
            parts = joined
            return try parts.withUnsafeBytes { try verifyChangeset($0, ref, element) }
        } else {
            return
        }
        switch strings.parts {
        case .short(let node), .big(let node): ref = node.ref
        case .small(_, let blob, _): ref = blob.ref
        }
        try verifyChangeset(bytes, ref, element)
    }

    private func verifyChangeset(_ bytes: UnsafeRawBufferPointer, _ ref: Int, _ element: Int) throws {
        if mode != .first { return }
        try spend(bytes.count)
        var parser = ChangesetParser(bytes)
        var hasTable = false, hasCollection = false
        do {
            while let instruction = try parser.next() {
                switch instruction {
                case .insertTable, .eraseTable, .renameTable: (hasTable, hasCollection) = (false, false)
                case .selectTable: (hasTable, hasCollection) = (true, false)
                case .createObject, .removeObject, .set, .insertColumn, .eraseColumn, .renameColumn, .typedLinkChange:
                    if !hasTable {
                        return try error(.historyElement, ref, "changeset \(element): \(instruction) without a selected table")
                    }
                case .selectCollection:
                    if !hasTable {
                        return try error(.historyElement, ref, "changeset \(element): \(instruction) without a selected table")
                    }
                    hasCollection = true
                case .collectionInsert, .collectionSet, .collectionMove, .collectionErase, .collectionClear:
                    if !hasCollection {
                        return try error(
                            .historyElement, ref,
                            "changeset \(element): \(instruction) without a selected collection")
                    }
                    if case .collectionMove(let from, let to) = instruction, from == to {
                        return try error(.historyElement, ref, "changeset \(element): element \(from) is moved to its own place")
                    }
                }
            }
        } catch let reason as ChangesetError {
            try error(.historyElement, ref, "changeset \(element): \(reason)")
        }
    }

    /// The bytes of a split blob, whose parts have been checked (file-format-1 6.5).
    private func join(_ ref: Int64) -> [UInt8]? {
        guard ref > 0, ref < Int64(limit), let node = try? memory.node(Int(ref)), node.hasRefs, node.hasContext,
            node.widthType == 0
        else {
            return nil
        }
        var bytes: [UInt8] = []
        for i in 0..<node.count {
            let part = node.unchecked(i)
            guard part > 0, part < Int64(limit), let blob = try? memory.node(Int(part)), isBlob(blob),
                bytes.count + blob.count <= limit
            else {
                return nil
            }
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: blob.payload, count: blob.count))
        }
        return bytes
    }
}
