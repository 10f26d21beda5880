/// The rules for the values of a leaf (file-format-1 section 11, rules 10 to 22).
extension VerificationRun {
    /// The object of row `index` of a cluster leaf; nil in leaves of collections, where `objectKey` tells.
    func row(_ index: Int, _ kind: LeafKind) -> ObjectKey? {
        kind.place == .cluster ? rows?.key(index) : nil
    }

    /// Enters a leaf and checks its values. `expected` is the number of rows that it must have.
    /// Returns nil, with a finding, where nothing can be read from it.
    func verifyLeaf(_ node: Node, _ kind: LeafKind, expected: Int?) throws -> RawLeaf? {
        guard let leaf = try enterLeaf(node, kind) else { return nil }
        if let expected, leaf.count != expected {
            try error(.leafCount, node.ref, "\(leaf.count) values in a cluster of \(expected) rows")
            if mode == .first { try enterRows(leaf) }
            return nil
        }
        switch leaf.parts {
        case .integers, .refs: break
        case .links(let values): try spend(differing(values, leaf.count))
        case .keys(let keys):
            let count = differing(keys, leaf.count)
            try spend(count)
            for i in 0..<count where keys.unchecked(i) == -1 { try error(.valueNull, node.ref, "element \(i) is a null link") }
        case .nullableIntegers(let values): try verifySentinel(values)
        case .bools(let values): try verifyBools(values, kind)
        case .floats, .doubles, .fixed: try verifyNulls(leaf, node, leaf.count, kind)
        case .decimals(let values): try verifyNulls(leaf, node, differing(values, leaf.count), kind)
        case .timestamps(let seconds, let nanoseconds): try verifyTimestamps(leaf, seconds, nanoseconds, kind)
        case .strings(let strings): try verifyStrings(strings, node, kind)
        case .enumerated(let positions, let strings):
            let count = differing(positions, leaf.count)
            try spend(count)
            for i in 0..<count where positions.unchecked(i) < 0 || positions.unchecked(i) >= Int64(strings.count) {
                try error(
                    .enumIndex, node.ref, row: row(i, kind),
                    "position \(positions.unchecked(i)) in a list of \(strings.count) values")
            }
            try verifyNulls(leaf, node, count, kind)
        case .mixed(let mixed): try verifyMixed(mixed, node, kind)
        }
        return leaf
    }

    /// How many of `count` elements must be looked at: at width 0 all are alike, and the first stands for all.
    func differing(_ node: Node, _ count: Int) -> Int { node.width == 0 ? min(1, count) : count }

    /// Enters what single rows own, where the rows themselves cannot be looked at.
    func enterRows(_ leaf: RawLeaf) throws {
        switch leaf.parts {
        case .strings(let strings): if case .big(let node) = strings.parts { try enterAll(below: node) }
        case .refs(let node): try enterAll(below: node)
        case .mixed(let mixed):
            try enterAll(below: mixed.refs)
            if let strings = mixed.strings, case .big(let node) = strings.parts { try enterAll(below: node) }
        default: break
        }
    }

    private func verifySentinel(_ node: Node) throws {
        let expected = VerificationRun.upperBound(ofWidth: node.width)
        if node.width < 64 && node.unchecked(0) != expected {
            try warning(
                .intSentinelValue, node.ref,
                "\(node.unchecked(0)) stands for null at width \(node.width), not \(expected)")
        }
    }

    private func verifyBools(_ node: Node, _ kind: LeafKind) throws {
        if node.width < 2 { return }
        try spend(node.count)
        for i in 0..<node.count {
            let value = node.unchecked(i)
            if value == 3 {
                if !kind.isNullable { try nullFinding(node, i, kind) }
            } else if value != 0 && value != 1 {
                try error(.boolValue, node.ref, row: row(i, kind), "element \(i) is \(value)")
            }
        }
    }

    private func nullFinding(_ node: Node, _ index: Int, _ kind: LeafKind) throws {
        try error(.valueNull, node.ref, row: row(index, kind), "element \(index) is null where null is not allowed")
    }

    private func verifyNulls(_ leaf: RawLeaf, _ node: Node, _ count: Int, _ kind: LeafKind) throws {
        if kind.isNullable { return }
        try spend(count)
        for i in 0..<count {
            if case .null = value(leaf, i) { try nullFinding(node, i, kind) }
        }
    }

    private func verifyTimestamps(_ leaf: RawLeaf, _ seconds: Node, _ nanoseconds: Node, _ kind: LeafKind) throws {
        try verifySentinel(seconds)
        let null = seconds.unchecked(0)
        let count = seconds.width == 0 && nanoseconds.width == 0 ? min(1, leaf.count) : leaf.count
        try spend(count)
        for i in 0..<count {
            let s = seconds.unchecked(i + 1)
            if s == null {
                if !kind.isNullable { try nullFinding(seconds, i, kind) }
                continue
            }
            try verifyTimestamp(s, nanoseconds.unchecked(i), nanoseconds.ref, row(i, kind))
        }
    }

    private func verifyTimestamp(_ seconds: Int64, _ nanoseconds: Int64, _ ref: Int, _ row: ObjectKey?) throws {
        if nanoseconds <= -1_000_000_000 || nanoseconds >= 1_000_000_000 {
            try error(.timestampRange, ref, row: row, "\(nanoseconds) nanoseconds")
        } else if seconds < 0 && nanoseconds > 0 || seconds > 0 && nanoseconds < 0 {
            try error(.timestampSign, ref, row: row, "\(seconds) seconds, \(nanoseconds) nanoseconds")
        }
    }

    // MARK: Strings

    /// Rules 16 to 18. Enters the blobs of a big-blob leaf.
    func verifyStrings(_ strings: RawStrings, _ node: Node, _ kind: LeafKind) throws {
        switch strings.parts {
        case .short(let node): try verifyShort(node, kind)
        case .small(let offsets, let blob, let nulls): try verifySmall(offsets, blob, nulls, isBinary: strings.isBinary, kind)
        case .big(let node):
            let count = differing(node, node.count)
            try spend(count)
            for i in 0..<count { try verifyBig(node, i, isBinary: strings.isBinary, kind) }
        }
    }

    private func verifyShort(_ node: Node, _ kind: LeafKind) throws {
        let width = node.width
        if width == 0 {
            if !kind.isNullable && node.count > 0 { try nullFinding(node, 0, kind) }
            return
        }
        try spend(node.count + node.payloadByteCount / 8)
        for i in 0..<node.count {
            let block = node.payload + i * width
            let padding = Int(block.load(fromByteOffset: width - 1, as: UInt8.self))
            if padding > width {
                try error(
                    .stringBlock, node.ref, row: row(i, kind),
                    "element \(i): \(padding) bytes of padding in a block of \(width)")
                continue
            }
            if padding == width && !kind.isNullable { try nullFinding(node, i, kind) }
            let length = max(0, width - 1 - padding)
            for j in length..<(width - 1) where block.load(fromByteOffset: j, as: UInt8.self) != 0 {
                try error(
                    .stringPadding, node.ref, row: row(i, kind),
                    "element \(i): byte \(j) behind the \(length) bytes of text is not 0")
                break
            }
            try verifyUTF8(UnsafeRawBufferPointer(start: block, count: length), node.ref, row(i, kind))
        }
    }

    private func verifySmall(_ offsets: Node, _ blob: Node, _ nulls: Node, isBinary: Bool, _ kind: LeafKind) throws {
        var start: Int64 = 0
        try spend(offsets.count + blob.count / 8)
        for i in 0..<offsets.count {
            let end = offsets.unchecked(i)
            if end < start || end > Int64(blob.count) {
                return try error(
                    .blobsOffsets, offsets.ref, row: row(i, kind),
                    "element \(i) ends at \(end), begins at \(start), in \(blob.count) bytes")
            }
            let null = nulls.unchecked(i)
            if null != 0 && null != 1 { try error(.blobsNulls, nulls.ref, row: row(i, kind), "element \(i) is \(null)") }
            if null != 0 && !kind.isNullable { try nullFinding(nulls, i, kind) }
            if null != 0 && end - start != (isBinary ? 0 : 1) {
                try warning(.blobsNullSize, blob.ref, row: row(i, kind), "element \(i) is null and has \(end - start) bytes")
            }
            if !isBinary {
                if end == start {
                    if null == 0 {
                        try error(.stringTerminator, blob.ref, row: row(i, kind), "element \(i) has no terminating zero")
                    }
                } else if blob.payload.load(fromByteOffset: Int(end) - 1, as: UInt8.self) != 0 {
                    try error(.stringTerminator, blob.ref, row: row(i, kind), "element \(i) has no terminating zero")
                } else {
                    let text = UnsafeRawBufferPointer(start: blob.payload + Int(start), count: Int(end - start - 1))
                    try verifyUTF8(text, blob.ref, row(i, kind))
                }
            }
            start = end
        }
        if start != Int64(blob.count) {
            try error(.blobsOffsets, offsets.ref, "the values end at \(start), the blob at \(blob.count)")
        }
    }

    private func verifyBig(_ node: Node, _ index: Int, isBinary: Bool, _ kind: LeafKind) throws {
        let value = node.unchecked(index)
        if value == 0 {
            if !kind.isNullable { try nullFinding(node, index, kind) }
            return
        }
        if value & 1 != 0 {
            return try error(.nodeElement, node.ref, row: row(index, kind), "element \(index) is the number \(value), not a blob")
        }
        guard let blob = try enter(value, from: node.ref) else { return }
        if isBlob(blob) {
            try spend(blob.count / 8)
            if isBinary { return }
            if blob.count == 0 || blob.payload.load(fromByteOffset: blob.count - 1, as: UInt8.self) != 0 {
                return try error(.stringTerminator, blob.ref, row: row(index, kind), "element \(index) has no terminating zero")
            }
            return try verifyUTF8(UnsafeRawBufferPointer(start: blob.payload, count: blob.count - 1), blob.ref, row(index, kind))
        }
        guard blob.hasRefs, blob.hasContext, !blob.isInner else {
            try error(
                .nodeKind, blob.ref, row: row(index, kind),
                "flags \(hexadecimal(UInt64(blob.flags), digits: 2)) where a blob is expected")
            return try enterAll(below: blob)
        }
        try spend(blob.count)
        for i in 0..<blob.count {
            guard let part = try child(blob, i, "part of a split blob") else { continue }
            if !isBlob(part) {
                try error(
                    .nodeKind, part.ref, row: row(index, kind),
                    "flags \(hexadecimal(UInt64(part.flags), digits: 2)) where a part of a blob is expected")
                try enterAll(below: part)
            }
        }
    }

    func verifyUTF8(_ text: UnsafeRawBufferPointer, _ ref: Int, _ row: ObjectKey?) throws {
        if !UTF8Check.isValid(text) { try warning(.valueUTF8, ref, row: row, "a string of \(text.count) bytes is not UTF-8") }
    }

    // MARK: Mixed

    /// Rule 20, and rule 24 of file-format-2. Enters the blobs of the payload, not the nested collections.
    private func verifyMixed(_ mixed: RawMixed, _ node: Node, _ kind: LeafKind) throws {
        let composite = mixed.composite
        var counts = [
            0, mixed.integers?.count ?? 0, (mixed.pairs?.count ?? 0) / 2, mixed.strings?.count ?? 0, mixed.refs?.count ?? 0,
        ]
        if let pairs = mixed.pairs, pairs.count % 2 != 0 {
            try error(.mixedPayloadCount, pairs.ref, "\(pairs.count) elements are no whole pairs")
        }
        if let strings = mixed.strings { try verifyMixedStrings(strings, node) }
        if let keys = mixed.keys, keys.count != composite.count {
            if keys.count > composite.count {
                try error(.mixedKeyCount, keys.ref, "\(keys.count) keys for \(composite.count) values")
            } else {
                try warning(.mixedKeyCount, keys.ref, "\(keys.count) keys for \(composite.count) values")
            }
        }
        let valueCount = differing(composite, composite.count)
        try spend(valueCount + counts.reduce(0, +))
        // One bit for each payload entry that a value uses.
        var uses = counts.map { [UInt64](repeating: 0, count: ($0 + 63) / 64) }
        for i in 0..<valueCount {
            let element = composite.unchecked(i)
            if element == 0 {
                if !kind.isNullable { try nullFinding(composite, i, kind) }
                continue
            }
            let type = Int(element & 31) - 1, payload = Int(element >> 5 & 7), position = element >> 8
            guard VerificationRun.mayStand(type: type, in: payload) else {
                try error(
                    .mixedType, composite.ref, row: row(i, kind),
                    "element \(i), \(element), says type \(type) in payload array \(payload)")
                continue
            }
            if payload == 0 {
                if type == ColumnType.bool.rawValue && position != 0 && position != 1 {
                    try error(.boolValue, composite.ref, row: row(i, kind), "element \(i) is the boolean \(position)")
                }
                continue
            }
            if position < 0 || position >= Int64(counts[payload]) {
                try error(
                    .mixedPayloadIndex, composite.ref, row: row(i, kind),
                    "element \(i) uses entry \(position) of the \(counts[payload]) in payload array \(payload)")
                continue
            }
            let word = Int(position) / 64, bit = UInt64(1) << UInt64(position % 64)
            if uses[payload][word] & bit != 0 {
                try error(
                    .mixedPayloadShared, composite.ref, row: row(i, kind),
                    "element \(i) uses entry \(position) of payload array \(payload), as another one does")
                continue
            }
            uses[payload][word] |= bit
            try verifyMixedValue(mixed, i, type, kind)
        }
        for payload in 1...4 {
            counts[payload] -= uses[payload].reduce(0) { $0 + $1.nonzeroBitCount }
            if counts[payload] > 0 {
                try error(
                    .mixedPayloadUnused, node.ref,
                    "\(counts[payload]) entries of payload array \(payload) belong to no value")
            }
        }
    }

    /// The payload array that a type may use (file-format-1 7.3).
    private static func mayStand(type: Int, in payload: Int) -> Bool {
        switch type {
        case 0: payload == 0 || payload == 1
        case 1: payload == 0
        case 2, 4, 15, 17: payload == 3
        case 8, 11, 16: payload == 2
        case 9, 10, 12: payload == 1
        case 19, 21: payload == 4
        default: false
        }
    }

    private func verifyMixedStrings(_ strings: RawStrings, _ node: Node) throws {
        if case .big(let node) = strings.parts {
            let count = differing(node, node.count)
            try spend(count)
            for i in 0..<count { try verifyBig(node, i, isBinary: true, LeafKind(.binary, nullable: false, .tree)) }
        } else if case .small(let offsets, let blob, let nulls) = strings.parts {
            // As binaries, so that bytes are not taken for text; each value is followed by a zero all the same.
            try verifySmall(offsets, blob, nulls, isBinary: true, LeafKind(.binary, nullable: false, .tree))
        }
    }

    private func verifyMixedValue(_ mixed: RawMixed, _ index: Int, _ type: Int, _ kind: LeafKind) throws {
        let ref = mixed.composite.ref
        switch value(mixed, index) {
        case .timestamp(let seconds, let nanoseconds): try verifyTimestamp(seconds, nanoseconds, ref, row(index, kind))
        case .string(let text): try verifyUTF8(text, ref, row(index, kind))
        case .unreadable:
            try error(
                .mixedPayload, ref, row: row(index, kind),
                "element \(index) of type \(type) has a payload of another size or a null one")
        case .float:
            let position = Int(mixed.composite.unchecked(index) >> 8)
            if let bits = mixed.integers?.unchecked(position), bits >> 32 != 0 {
                try warning(
                    .mixedPayload, ref, row: row(index, kind),
                    "element \(index): the upper half of a float is \(bits >> 32)")
            }
        default: break
        }
    }
}

enum UTF8Check {
    /// True for well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
    static func isValid(_ text: UnsafeRawBufferPointer) -> Bool {
        var i = 0
        let count = text.count
        while i < count {
            if i + 8 <= count, text.loadUnaligned(fromByteOffset: i, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 {
                i += 8
                continue
            }
            let lead = text[i]
            if lead < 0x80 { i += 1; continue }
            let length: Int, low: UInt8, high: UInt8
            switch lead {
            case 0xC2...0xDF: (length, low, high) = (2, 0x80, 0xBF)
            case 0xE0: (length, low, high) = (3, 0xA0, 0xBF)
            case 0xED: (length, low, high) = (3, 0x80, 0x9F)
            case 0xE1...0xEF: (length, low, high) = (3, 0x80, 0xBF)
            case 0xF0: (length, low, high) = (4, 0x90, 0xBF)
            case 0xF1...0xF3: (length, low, high) = (4, 0x80, 0xBF)
            case 0xF4: (length, low, high) = (4, 0x80, 0x8F)
            default: return false
            }
            if i + length > count || text[i + 1] < low || text[i + 1] > high { return false }
            for j in 2..<max(2, length) where text[i + j] & 0xC0 != 0x80 { return false }
            i += length
        }
        return true
    }
}
