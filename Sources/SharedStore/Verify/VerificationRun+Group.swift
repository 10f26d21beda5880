/// Header, top array, free space and their tiling of the file.
extension VerificationRun {
    func verifyHeader(_ header: FileHeader) throws {
        if header.reserved != 0 || header.flags & 0xFE != 0 {
            try warning(.headerReserved, 0, "reserved byte \(header.reserved), flags \(header.flags)")
        }
        if form == .streaming && (header.topRefs.1 != 0 || header.formats.1 != 0) {
            try warning(.headerReserved, 0, "slot 1 of a streaming file holds \(header.topRefs.1), format \(header.formats.1)")
        }
    }

    func verifyGroup(physicalSize: Int?) throws {
        guard let top = try enter(Int64(snapshot.topRef), from: 0) else { return }
        guard top.hasRefs, !top.isInner else {
            return try error(
                .topElement, top.ref,
                "flags \(hexadecimal(UInt64(top.flags), digits: 2)) are not those of a top array")
        }
        guard TopSlot.legalCounts.contains(top.count) else {
            try error(.topCount, top.ref, "\(top.count) elements")
            try enterAll(below: top)
            return
        }
        try verifyNoContext(top, "top array")
        try spend(top.count)
        try verifySizes(top, physicalSize: physicalSize)
        try verifyTables(top)
        try verifyHistory(top)
        try verifyEvacuation(top)
        try verifySpace(top)
    }

    private func verifySizes(_ top: Node, physicalSize: Int?) throws {
        guard top.unchecked(TopSlot.logicalSize) & 1 != 0,
            let size = try number(
                top, TopSlot.logicalSize, .topElement,
                "logical size")
        else {
            return try error(.topElement, top.ref, "element 2, logical size, is \(top.unchecked(TopSlot.logicalSize))")
        }
        if size != snapshot.logicalSize || size % 8 != 0 || size > limit {
            try error(
                .topLogicalSize, top.ref,
                "logical size \(size), but \(limit) bytes of nodes and \(snapshot.logicalSize) in the snapshot")
        }
        // Pages are of 4096 bytes or a multiple; a copy that was not committed to yet has no free list and any size.
        if form == .inPlace, size % 4096 != 0, top.count > TopSlot.freePositions, top.unchecked(TopSlot.freePositions) > 0,
            let positions = try? memory.node(Int(top.unchecked(TopSlot.freePositions))), positions.count > 0
        {
            try warning(.topPages, top.ref, "logical size \(size) is no multiple of a page")
        }
        if let physicalSize {
            if size > physicalSize {
                try error(.topLogicalSize, top.ref, "logical size \(size) in a file of \(physicalSize) bytes")
            }
            if form == .streaming && size != physicalSize - FileHeader.footerByteCount {
                try warning(.footerPosition, top.ref, "logical size \(size) in a streaming file of \(physicalSize) bytes")
            }
        }
        if top.count > TopSlot.version {
            let value = top.unchecked(TopSlot.version)
            let version = try number(top, TopSlot.version, .topElement, "version")
            if value == 0 {
                try warning(.topVersion, top.ref, "version 0")
            } else if let version, version < 1 || UInt64(version) != snapshot.version {
                try error(.topVersion, top.ref, "version \(version), but \(snapshot.version) in the snapshot")
            }
        }
    }

    /// Element 11 (file-format-3 3.1).
    private func verifyEvacuation(_ top: Node) throws {
        guard top.count > TopSlot.evacuation else { return }
        let value = top.unchecked(TopSlot.evacuation)
        if value == 0 { return }
        if value & 1 != 0 {
            let limit = UInt64(bitPattern: value) >> 1
            if limit < 65536 || limit % 4096 != 0 {
                try error(.evacuationState, top.ref, "limit \(limit) is no multiple of a page from 65536 on")
            }
            return
        }
        guard let state = try integers(top, TopSlot.evacuation, "state of compaction") else { return }
        if state.count < 2 { return try error(.evacuationState, state.ref, "\(state.count) elements") }
        try spend(state.count)
        let limit = state.unchecked(0), backoff = state.unchecked(1)
        if limit < 0 || !(0...1000).contains(backoff) {
            try error(.evacuationState, state.ref, "limit \(limit), \(backoff) commits to wait")
        }
        if state.count > 2, ![Int64(TopSlot.names), Int64(TopSlot.tables), Int64(TopSlot.history)].contains(state.unchecked(2)) {
            try error(.evacuationState, state.ref, "progress begins with element \(state.unchecked(2)) of the top array")
        }
        for i in 2..<max(2, state.count) where state.unchecked(i) < 0 {
            try error(.evacuationState, state.ref, "progress holds \(state.unchecked(i))")
        }
    }

    // MARK: Space

    /// The free list, then the tiling: every byte of `[24, logical size)` belongs to one node or one free block.
    /// Runs last, when all nodes have claimed their bytes.
    private func verifySpace(_ top: Node) throws {
        let end = min(snapshot.logicalSize, limit)
        let slots = [TopSlot.freePositions, TopSlot.freeLengths, TopSlot.freeVersions]
        let present = slots.filter { $0 < top.count && top.unchecked($0) != 0 }
        if present == slots || present == Array(slots.prefix(2)) {
            let positions = try integers(top, slots[0], "positions of free blocks")
            let lengths = try integers(top, slots[1], "lengths of free blocks")
            let versions = present.count == 3 ? try integers(top, slots[2], "versions of free blocks") : nil
            if let positions, let lengths, versions != nil || present.count == 2 {
                if positions.count != lengths.count || versions.map({ $0.count != positions.count }) ?? false {
                    try error(
                        .freeCounts, top.ref,
                        "\(positions.count) positions, \(lengths.count) lengths, \(versions?.count ?? 0) versions")
                }
                try verifyFreeBlocks(positions, lengths, versions, end: end)
            }
        } else if !present.isEmpty {
            try error(.topElement, top.ref, "only the elements \(present) of the free list's three are there")
            for slot in present { _ = try integers(top, slot, "free list") }
        }
        try space.forEachGap(from: FileHeader.byteCount, to: end) { from, to in
            report.leakedByteCount += to - from
            try warning(.spaceLeaked, from, "\(to - from) bytes are neither in use nor free")
        }
    }

    private func verifyFreeBlocks(_ positions: Node, _ lengths: Node, _ versions: Node?, end: Int) throws {
        let count = min(positions.count, lengths.count)
        try spend(count)
        var previousStart: Int64 = 0
        var previousEnd: Int64 = 24
        for i in 0..<count {
            let position = positions.unchecked(i), length = lengths.unchecked(i)
            if let versions, i < versions.count {
                let version = versions.unchecked(i)
                if version < 0 || UInt64(version) > snapshot.version {
                    try error(
                        .freeVersion, versions.ref,
                        "free block \(i) at \(position) was released by version \(version), this is \(snapshot.version)")
                }
            }
            if position & 7 != 0 || length & 7 != 0 || length <= 0 {
                try error(.freeAlignment, positions.ref, "free block \(i) at \(position) of \(length) bytes")
                continue
            }
            if position < 24 || position > Int64(end) || length > Int64(end) &- position {
                try error(.freeRange, positions.ref, "free block \(i) at \(position) of \(length) bytes in a file of \(end)")
                continue
            }
            if position <= previousStart {
                try error(.freeOrder, positions.ref, "free block \(i) at \(position) stands behind the one at \(previousStart)")
            } else if position < previousEnd {
                try error(
                    .freeOverlap, positions.ref,
                    "free block \(i) at \(position) begins before the end \(previousEnd) of the one before")
            } else {
                report.freeByteCount += Int(length)
                if let taken = space.claim(Int(position), Int(position + length)) {
                    try error(
                        .spaceOverlap, positions.ref,
                        "free block \(i), [\(position), \(position + length)), holds a node in use at \(taken)")
                }
            }
            previousStart = position
            previousEnd = max(previousEnd, position + length)
        }
    }

    /// Claims all nodes of this snapshot, then asks the free list of the newest one.
    func verifyPinned(against newest: Snapshot, _ newestMemory: Memory) throws {
        guard snapshot.topRef != 0, newest.topRef != 0 else { return }
        if let top = try enter(Int64(snapshot.topRef), from: 0) { try enterAll(below: top) }
        let top = try? newestMemory.node(newest.topRef)
        guard let top, top.hasRefs, top.widthType == 0, top.count > TopSlot.freeVersions else { return }
        let lists = [TopSlot.freePositions, TopSlot.freeLengths, TopSlot.freeVersions].map { slot in
            (try? top.optionalRef(slot)).flatMap { $0 == 0 ? nil : try? newestMemory.node($0) }
                .flatMap { $0.hasRefs || $0.widthType != 0 ? nil : $0 }
        }
        guard let positions = lists[0], let lengths = lists[1], let versions = lists[2] else { return }
        try spend(min(positions.count, lengths.count, versions.count))
        for i in 0..<min(positions.count, lengths.count, versions.count) {
            let position = positions.unchecked(i), length = lengths.unchecked(i), version = versions.unchecked(i)
            guard version >= 0, UInt64(version) <= snapshot.version, position >= 24, position & 7 == 0, length > 0,
                length & 7 == 0,
                position < Int64(limit)
            else { continue }
            let end = length < Int64(limit) &- position ? Int(position + length) : limit
            if let taken = space.claim(Int(position), end) {
                try error(
                    .pinnedOverlap, taken,
                    "version \(snapshot.version) uses byte \(taken), in the block [\(position), \(end)) that version \(version) released"
                )
            }
        }
    }
}
