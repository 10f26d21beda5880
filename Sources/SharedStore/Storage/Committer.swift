import SystemCalls

/// Makes version N+1 of a file out of version N and the arena of a write transaction (file-format-3 sections 1 to 4).
///
/// A commit has four phases, so that the session can take its mutexes around each:
///
/// | call | what | mutexes (coordination.md 5.4) |
/// |---|---|---|
/// | `prepare` | places for all new nodes, lists and top; nothing is written | write |
/// | `store` | enlarges the file, writes all nodes | write and control (C3) |
/// | `flip` | sync, header slot, sync, flag, sync | write (C4, C5) |
/// | `didPublish` | remembers the free space for the next commit | write (C7 done) |
///
/// Two syncs in all: the first covers nodes, file size and header slot, the second the flag (of an encrypted file: slot and
/// flag).
///
/// Crash argument: up to the flag's store the header points to version N. Nothing of N, nor of any pinned version, is
/// overwritten (`FreeSpace`), the slot that is written is not the live one. The flag is one byte and cannot tear; before it
/// is stored, all that it makes visible is durable.
///
/// When any phase throws, the transaction is over: reset the arena, go on from version N. The file is as it was, but for
/// junk in free space and perhaps a greater physical size. Only when the very last sync throws, the header may show N+1: the
/// session's check at the next begin (coordination.md 5.5 W5) settles that by `DatabaseFile.pointHeader`.
///
/// Not thread-safe: it belongs to the holder of the write mutex.
public final class Committer {
    /// The file that is written; its span must outlive the committer.
    public let file: DatabaseFile
    private let space = FreeSpace()
    private let writer = NodeWriter()
    /// Elements of the new top array.
    private let top = RawList<Int64>()
    /// The three lists and the top, as they go into the file.
    @exclusivity(unchecked) private var listBytes = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16)
    @exclusivity(unchecked) private var listCapacity = 4096
    /// What slot 11 shall hold as an array; empty for none.
    private let evacuationState = RawList<Int64>()
    private let stage = UnsafeMutableRawPointer.allocate(byteCount: stageLength, alignment: 16)
    private static let stageLength = 256 << 10
    /// Changesets of earlier versions are kept for somebody, as that of the running commit will be.
    @exclusivity(unchecked) private var isHistoryHeld = false
    @exclusivity(unchecked) private var prepared: Snapshot?

    /// For all commits of a process to this file: what is known of free space is kept from one to the next.
    public init(file: DatabaseFile) { self.file = file }

    deinit {
        top.free()
        evacuationState.free()
        listBytes.deallocate()
        stage.deallocate()
    }

    /// All phases in one, for a file that is not shared.
    public func commit(
        base: Snapshot, arena: Arena, topRef: Int, pinned: PinnedVersions, durability: Durability
    ) throws -> Snapshot {
        let snapshot = try prepare(base: base, arena: arena, topRef: topRef, pinned: pinned)
        try store(durability)
        try flip(durability)
        didPublish()
        return snapshot
    }

    /// What this object believes about free space is not to be trusted any more: the next commit reads the file.
    public func forgetFreeSpace() { space.forget() }

    // MARK: Phase 1

    /// Gives every new node its place and makes the new lists and the top.
    ///
    /// - Parameters:
    ///   - base: version N, which the transaction started from: the newest one, and pinned.
    ///   - topRef: the group's top array in the arena (or that of `base` where nothing was changed), 3 to 12 elements; slots 2
    ///     to 6 and 11 are this function's business, the others the caller's.
    ///   - pinned: the result of the purge; its last entry is `base`.
    ///   - syncs: false where the header is not to be flipped and nothing synced yet.
    /// - Returns: version N+1. The arena can only be reset from here on.
    public func prepare(base: Snapshot, arena: Arena, topRef: Int, pinned: PinnedVersions, syncs: Bool = true) throws -> Snapshot
    {
        precondition(pinned.versions.last?.snapshot == base, "the newest pinned version is not that of the transaction")
        prepared = nil
        // The number is stored with a tag bit, as a positive one.
        if base.version >= 1 << 62 { throw FormatError(ref: base.topRef, "version \(base.version) has no successor") }
        writer.stores.removeAll()
        let memory = arena.memory
        try loadTop(memory, topRef, base)
        try space.begin(base: base, memory: memory)
        var evacuation = try Evacuation(
            memory, slot: top.count > TopSlot.evacuation ? top[TopSlot.evacuation] : 0,
            listRef: Int(top[TopSlot.freePositions]))
        try releaseLists(arena, topRef, evacuation)
        if evacuation.limit > 0 && evacuation.backoff == 0 {
            let work = arena.allocatedBytes / 2 + 16 * space.entryCount + 4096
            try evacuation.scan(
                arena, work: work, root: { slot in slot < top.count ? Int(top[slot]) : 0 },
                setRoot: { slot, ref in top[slot] = Int64(ref) })
        }
        try space.takeReleased(arena.releasedBlocks)
        if pinned.droppedYoungerEntry && !space.locked.isEmpty { try space.backdate(pinned, file: file) }
        space.divide(oldest: pinned.oldestReachable, limit: evacuation.limit > 0 ? evacuation.limit : .max)

        let version = base.version + 1
        space.paging = file.backend.contentAlignment == 8 ? .none : syncs ? .few : .fresh
        isHistoryHeld = pinned.oldestLive < base.version
        space.beginPlacing(try need(arena, lists: listBytesMax(version, evacuation) + 8))
        for slot in [TopSlot.names, TopSlot.tables, TopSlot.history] where slot < top.count {
            let ref = Int(top[slot])
            if ref >= memory.state.pointee.arenaStart {
                top[slot] = Int64(try writer.write(ref, memory, space, staying(slot)))
            }
        }
        let snapshot = try placeLists(version, &evacuation)
        prepared = snapshot
        return snapshot
    }

    /// Of larger commits nobody knows more than that their nodes take at most what they take in the arena.
    private static let measuredBytesMax = 64 << 10
    /// Lists beyond this make a run long.
    private static let longListBytes = 4096
    /// The lists may be longer, by a block or two, when places have been given out.
    private static let listSlack = 64

    /// What the new nodes and the lists need. In a small commit it is known which nodes last; where the pages
    /// of the last commit must not be touched (`Paging.fresh`), they go with the others.
    private func need(_ arena: Arena, lists: Int) throws -> FreeSpace.Need {
        let live = arena.liveBytes
        writer.beginMeasuring()
        var need = FreeSpace.Need(lists: lists + Committer.listSlack)
        // The greatest position of a file that has grown by one step and what the commit needs.
        let limit = 2 * space.logicalSize + (4 << 20)
        writer.siblingsOfLasting =
            lists > Committer.longListBytes ? NodeWriter.siblingsOfLastingMin : NodeWriter.siblingsOfLastingMax
        if live <= Committer.measuredBytesMax {
            var isKnown = true
            for slot in [TopSlot.names, TopSlot.tables, TopSlot.history] where slot < top.count && isKnown {
                isKnown = try writer.measure(
                    Int(top[slot]), arena.memory, staying(slot), limit: limit, bytesMax: live, &need)
            }
            if isKnown {
                if space.paging == .fresh {
                    need.passing += need.lasting
                    need.lasting = 0
                    need.lastingCount = 0
                }
                return need
            }
        }
        return FreeSpace.Need(passing: live, lists: need.lists)
    }

    private func staying(_ slot: Int) -> NodeWriter.Staying {
        switch slot {
        case TopSlot.tables: .amongSiblings
        case TopSlot.history where isHistoryHeld: .changesets
        default: .passing
        }
    }

    /// Reads the top array into `top`, padded to seven elements.
    private func loadTop(_ memory: Memory, _ topRef: Int, _ base: Snapshot) throws {
        let node = try memory.node(topRef)
        if !node.hasRefs || node.widthType != 0 || node.count < 3 || node.count > TopSlot.evacuation + 1 {
            throw FormatError(ref: topRef, "no top array: flags \(node.flags), \(node.count) elements")
        }
        let isFileNode = !memory.isInArena(topRef)
        top.removeAll()
        for i in 0..<node.count {
            let v = node.unchecked(i)
            if v & 1 == 0 && (v < 0 || isFileNode && v >= Int64(base.logicalSize)) {
                throw FormatError(ref: topRef, "element \(i) is \(v), not a ref")
            }
            top.append(v)
        }
        while top.count <= TopSlot.version { top.append(0) }
        for slot in TopSlot.freePositions...TopSlot.freeVersions
        where top[slot] & 1 != 0 || top[slot] >= Int64(base.logicalSize) {
            throw FormatError(ref: topRef, "element \(slot) is \(top[slot]), not a list of free space")
        }
    }

    /// The old lists, the old state of evacuation and the old top go; the caller has released everything else.
    private func releaseLists(_ arena: Arena, _ topRef: Int, _ evacuation: Evacuation) throws {
        for slot in TopSlot.freePositions...TopSlot.freeVersions where top[slot] != 0 { try arena.release(Int(top[slot])) }
        if evacuation.arrayRef != 0 { try arena.release(evacuation.arrayRef) }
        if !arena.memory.isInArena(topRef) { try arena.release(topRef) }
    }

    // MARK: The lists (2.6)

    /// Bytes that the lists, the state of evacuation and the top cannot exceed, whatever the placing of nodes does to the lists.
    private func listBytesMax(_ version: UInt64, _ evacuation: Evacuation) -> Int {
        // A block of the list can become two where a section begins in it, and the file can grow a few times.
        let entries = space.entryCount + 10
        // Wide enough for positions in a file that grows to twice its size; no length is greater than the file.
        let width = 2 * space.logicalSize + (4 << 20) + 32 * entries < 1 << 31 ? 4 : 8
        let versionWidth = version < 1 << 7 ? 1 : version < 1 << 15 ? 2 : version < 1 << 31 ? 4 : 8
        return 3 * 16 + entries * (2 * width + versionWidth) + (evacuation.isActive ? 8 + 8 * (evacuation.progress.count + 2) : 0)
            + 8 + 8 * (TopSlot.evacuation + 1)
    }

    /// Reserves a block that is large enough, makes the lists as they will be when it is cut to what was used, and the top.
    ///
    /// ```
    /// position                                                           end
    /// | positions | lengths | versions | (evacuation) | top | what is left: a free block, never empty |
    /// ```
    private func placeLists(_ version: UInt64, _ evacuation: inout Evacuation) throws -> Snapshot {
        let (reserved, need) = try reserve(version, evacuation)
        if space.gaveUpEvacuation && evacuation.limit > 0 { evacuation.giveUp() }
        if evacuation.limit > 0 && space.cutEmptyTail() { evacuation = Evacuation() }
        let index = space.giveBack(reserved)
        let shape = FreeListShape(space, version, atLeast: reserved.end)
        if shape.count > 0xFF_FFFF { throw LimitError.valueTooLarge(byteCount: shape.count, limit: 0xFF_FFFF) }
        gatherEvacuation(&evacuation, shape.freeBytes - need)

        let position = reserved.position
        let lengthsAt = position + NodePacking.byteCount(shape.count, shape.positionCode)
        let versionsAt = lengthsAt + NodePacking.byteCount(shape.count, shape.lengthCode)
        let stateAt = versionsAt + NodePacking.byteCount(shape.count, shape.versionCode)
        var state = NodePacking.Extent()
        for i in 0..<evacuationState.count { state.include(evacuationState[i]) }
        let topAt = evacuationState.isEmpty ? stateAt : stateAt + NodePacking.byteCount(evacuationState.count, state.widthCode)
        top[TopSlot.logicalSize] = Int64(space.logicalSize) << 1 | 1
        top[TopSlot.freePositions] = Int64(position)
        top[TopSlot.freeLengths] = Int64(lengthsAt)
        top[TopSlot.freeVersions] = Int64(versionsAt)
        top[TopSlot.version] = Int64(bitPattern: version << 1 | 1)
        if !evacuationState.isEmpty { top[TopSlot.evacuation] = Int64(stateAt) }
        var extent = NodePacking.Extent()
        for i in 0..<top.count { extent.include(top[i]) }
        let end = topAt + NodePacking.byteCount(top.count, extent.widthCode)
        precondition(end < reserved.end, "the lists need \(end - position) bytes, only \(need) were reserved")

        // The block that was reserved begins behind the top now: neither the number of blocks nor a width changes by that.
        space.free[index] = Block(position: end, length: space.free[index].end - end)
        let out = listBuffer(end - position)
        try shape.write(
            space, version, positions: out, lengths: out + (lengthsAt - position), versions: out + (versionsAt - position))
        if !evacuationState.isEmpty { put(evacuationState, 0, state.widthCode, at: out + (stateAt - position)) }
        put(top, 0x40, extent.widthCode, at: out + (topAt - position))
        writer.stores.append(PendingWrite(position: position, source: UnsafeRawPointer(out), byteCount: end - position))
        return Snapshot(version: version, topRef: topAt, logicalSize: space.logicalSize)
    }

    /// A piece that takes the lists in any case, with 8 bytes to spare, and the bytes reckoned for them.
    private func reserve(_ version: UInt64, _ evacuation: Evacuation) throws -> (Block, Int) {
        var need = listBytesMax(version, evacuation)
        while true {
            let reserved = Block(position: try space.allocate(need + 8), length: need + 8)
            let again = listBytesMax(version, evacuation)
            space.endPlacing()
            if again <= need { return (reserved, need) }
            // The search for the place made more blocks, or longer numbers, than were reckoned with.
            _ = space.giveBack(reserved)
            need = again + 1024
            space.beginPlacing(FreeSpace.Need(lists: need + 8))
        }
    }

    @inline(__always)
    private func put(_ values: RawList<Int64>, _ flags: UInt8, _ widthCode: Int, at p: UnsafeMutableRawPointer) {
        NodePacking.stampHeader(p, flags: flags | UInt8(widthCode), count: values.count)
        NodePacking.pack(values.base, values.count, widthCode, to: p + 8)
    }

    private func listBuffer(_ byteCount: Int) -> UnsafeMutableRawPointer {
        if byteCount > listCapacity {
            listBytes.deallocate()
            listCapacity = 2 * byteCount
            listBytes = .allocate(byteCount: listCapacity, alignment: 16)
        }
        return listBytes
    }

    /// Slot 11: the state to be stored goes to `evacuationState`; else it announces the evacuation that the next commit begins.
    private func gatherEvacuation(_ evacuation: inout Evacuation, _ freeBytes: Int) {
        evacuationState.removeAll()
        for v in evacuation.state() { evacuationState.append(v) }
        if top.count > TopSlot.evacuation { top[TopSlot.evacuation] = 0 }
        if evacuationState.isEmpty {
            if space.logicalSize < Evacuation.minimalFileSize { return }
            let limit = Evacuation.newLimit(space.logicalSize, freeBytes: freeBytes, pageSize: SystemCalls.pageSize)
            guard let limit else { return }
            while top.count <= TopSlot.evacuation { top.append(0) }
            top[TopSlot.evacuation] = Int64(limit) << 1 | 1
        }
        while !evacuationState.isEmpty && top.count <= TopSlot.evacuation { top.append(0) }
    }

    // MARK: Phases 2 to 4

    /// Enlarges the file where it must grow, and writes all new nodes into free space.
    ///
    /// - Parameter alone: nobody else takes part in the session, and nobody can join before this returns.
    public func store(_ durability: Durability, alone: Bool = false) throws {
        guard let snapshot = prepared else { preconditionFailure("prepare the commit first") }
        do {
            let backend = file.backend
            try backend.preallocate(to: snapshot.logicalSize)
            let stores = writer.stores
            if durability == .full || backend.contentAlignment > 8 {
                if !isAscending(stores) { stores.sort { $0.position < $1.position } }
                try writeCoalesced(stores)
            } else {
                for i in 0..<stores.count {
                    let s = stores[i]
                    try backend.write(UnsafeRawBufferPointer(start: s.source, count: s.byteCount), at: s.position)
                }
            }
            if durability == .full && backend.mustSyncBeforeFlush { try backend.syncWritten() }
            try backend.flush(alone: alone)
        } catch {
            file.backend.discard()
            throw error
        }
    }

    private func isAscending(_ stores: RawList<PendingWrite>) -> Bool {
        for i in 1..<max(stores.count, 1) where stores[i - 1].position > stores[i].position { return false }
        return true
    }

    /// One write for each run of neighbours: few system calls, and no page is touched twice.
    private func writeCoalesced(_ stores: RawList<PendingWrite>) throws {
        var start = 0, used = 0
        for i in 0..<stores.count {
            let s = stores[i]
            if used > 0 && (start + used != s.position || used + s.byteCount > Committer.stageLength) {
                try file.backend.write(UnsafeRawBufferPointer(start: stage, count: used), at: start)
                used = 0
            }
            if s.byteCount > Committer.stageLength / 4 {
                if used > 0 { try file.backend.write(UnsafeRawBufferPointer(start: stage, count: used), at: start) }
                used = 0
                try file.backend.write(UnsafeRawBufferPointer(start: s.source, count: s.byteCount), at: s.position)
                continue
            }
            if used == 0 { start = s.position }
            (stage + used).copyMemory(from: s.source, byteCount: s.byteCount)
            used += s.byteCount
        }
        if used > 0 { try file.backend.write(UnsafeRawBufferPointer(start: stage, count: used), at: start) }
    }

    /// Makes the header point to the new version.
    public func flip(_ durability: Durability) throws {
        guard let snapshot = prepared else { preconditionFailure("prepare and store the commit first") }
        try file.pointHeader(to: snapshot.topRef, durability: durability)
    }

    /// The new version is the newest one for everybody.
    public func didPublish() {
        guard let snapshot = prepared else { preconditionFailure("commit first") }
        prepared = nil
        space.keep(as: snapshot)
    }
}
