import SystemCalls

/// Which place each new node gets (file-format-3 2.4, 2.5).
///
/// A small commit changes a path: the top, the tables, the root of a tree, which the next commit changes again, and at its end
/// a leaf among thousands, which stays where it is put for thousands of commits. Were both laid side by side, every place that is
/// free again would have such a leaf in its middle, and soon no stretch of free space would take a whole commit. So:
///
/// | new nodes of a small commit | where |
/// |---|---|
/// | passing, and the lists behind them | one behind the other, in the smallest block that takes all of them: the run |
/// | changesets that somebody waits for | at the end of the largest block, one before the other |
/// | lasting (`NodeWriter.siblingsOfLasting`) | a block of just their size, or its, as such nodes leave it; else a part of one that is too short for a run; else the end of the largest |
///
/// Where that is not to be had, and in large commits, all kinds go to one run; where no block takes it, each node gets its own
/// place by the policy of 2.5 out of bins of equal size. The file grows only when these have none.
extension FreeSpace {
    /// What a commit needs, in bytes: at most what it will take.
    struct Need {
        /// For nodes that the next commits change again.
        var passing = 0
        /// For nodes that are likely to stay, and how many they are.
        var lasting = 0, lastingCount = 0
        /// For the lists of free space and what goes with them.
        var lists = 0
        var sum: Int { passing + lasting + lists }
    }

    /// So many lasting nodes are placed one by one; more of them are laid side by side, or a commit would touch as many pages.
    private static let lastingCountMax = 16
    /// So many blocks are looked at for their sake.
    private static let lastingLooksMax = 1 << 16

    /// Begins giving out places for nodes, and for the lists behind them.
    func beginPlacing(_ need: Need) {
        runIndex = -1
        placesLasting = false
        lastingCursor = 0
        lastingEnd = 0
        isInOrder = true
        if need.lasting > 0 && need.lastingCount <= FreeSpace.lastingCountMax
            && need.lastingCount * free.count <= FreeSpace.lastingLooksMax
            && (beginRun(need.passing + need.lists) || beginRun(need.passing))
        {
            placesLasting = true
            return
        }
        if beginRun(need.sum) { return }
        // The lists find a place of their own.
        if need.sum > need.lists && beginRun(need.passing + need.lasting) { return }
        bins.build(free)
    }

    private func beginRun(_ need: Int) -> Bool {
        if need <= pagedNeedMax && beginPagedRun(need) { return true }
        if need > FreeSpace.sectionLength { return false }
        // The smallest block that takes all of it. Without a branch in the first loop, which is the long one.
        let p = free.base, n = free.count
        var bestLength = Int.max
        for i in 0..<n {
            let length = p[i].length
            bestLength = min(bestLength, length >= need ? length : Int.max)
        }
        if bestLength == Int.max { return false }
        var best = 0
        while p[best].length != bestLength { best &+= 1 }
        guard let position = FreeSpace.place(need, in: p[best]) else { return false }
        beginRun(best, position, need)
        return true
    }

    // MARK: Lasting nodes

    /// As `allocate`, for a node that is likely to stay.
    ///
    /// - Parameter group: bytes of this node and of those behind it that will be released together with it.
    func allocateLasting(_ need: Int, group: Int) throws -> Int {
        if need <= lastingEnd &- lastingCursor {
            lastingCursor &+= need
            return lastingCursor &- need
        }
        let group = lastingCursor < lastingEnd ? need : group
        guard placesLasting, runIndex >= 0, let position = takeLasting(need, group) else { return try allocate(need) }
        return position
    }

    /// As `allocate`, for a changeset that is kept for somebody: at the end of the largest block, where the one before it lies.
    ///
    /// They are released one after the other as well, some at a time, and lie in nobody's way until then.
    func allocateForHistory(_ need: Int) throws -> Int {
        guard placesLasting, runIndex >= 0 else { return try allocate(need) }
        let p = free.base
        var largest = -1, room = 0
        for i in 0..<free.count {
            let length = i == runIndex ? p[i].end &- runEnd : p[i].length
            if length > room { (largest, room) = (i, length) }
        }
        if room >= need, let position = cut(need, at: p[largest].end - need, of: largest) { return position }
        return try allocate(need)
    }

    /// The largest block keeps room for this many runs when something is cut off.
    private static let runsKept = 4

    /// A place beside the run; nil where there is none. Where a block has the size of the group, all of it is taken, and what is
    /// not needed yet kept.
    private func takeLasting(_ need: Int, _ group: Int) -> Int? {
        let p = free.base, n = free.count, run = runEnd - runStart
        var exact = -1, distance = Int.max, part = -1, partLength = run, largest = -1, room = 0, any = -1, anyLength = Int.max
        for i in 0..<n {
            let length = p[i].length
            if length < need { continue }
            if i == runIndex {
                if p[i].end &- runEnd > room { (largest, room) = (i, p[i].end &- runEnd) }
            } else if length == need || length == group {
                // One for the group, the nearest one, so that the same pages are used again; in one page rather than in two.
                var d = abs(p[i].position &- runStart)
                if p[i].position >> 12 != (p[i].end &- 1) >> 12 { d &+= FreeSpace.sectionLength }
                if length != group { d &+= 1 << 48 }
                if d < distance { (exact, distance) = (i, d) }
            } else {
                if length >= 2 &* need && length < partLength { (part, partLength) = (i, length) }
                if length < anyLength { (any, anyLength) = (i, length) }
                if length > room { (largest, room) = (i, length) }
            }
        }
        if exact >= 0 {
            let block = p[exact]
            if let position = cut(block.length, at: block.position, of: exact) {
                if block.length > need { (lastingCursor, lastingEnd) = (position + need, block.end) }
                return position
            }
        }
        if part >= 0, let position = cut(need, at: p[part].position, of: part) { return position }
        if room >= need + FreeSpace.runsKept * run, let position = cut(need, at: p[largest].end - need, of: largest) {
            return position
        }
        if any >= 0, let position = cut(need, at: p[any].position, of: any) { return position }
        return room >= need ? cut(need, at: p[largest].end - need, of: largest) : nil
    }

    /// Takes a piece from the beginning or the end of a block; nil where it would cross a section.
    private func cut(_ need: Int, at position: Int, of index: Int) -> Int? {
        if position / FreeSpace.sectionLength != (position + need - 1) / FreeSpace.sectionLength { return nil }
        let block = free[index]
        if block.length == need {
            free.remove(at: index)
            if index < runIndex { runIndex -= 1 }
        } else {
            free[index] = Block(
                position: position == block.position ? position + need : block.position, length: block.length - need)
        }
        return position
    }

    // MARK: A place in a block

    /// Larger commits touch so many pages that one more or less does not matter; and a long run that begins with a page only
    /// leaves blocks behind in which the next one does not find a place. Where pages must be fresh it is worth that for longer.
    private var pagedNeedMax: Int {
        switch paging {
        case .none: 0
        case .few: logicalSize < 1 << 20 ? 32 << 10 : 8 << 10
        case .fresh: 32 << 10
        }
    }

    /// First position in `block` where `need` bytes do not cross a section; nil where there is none (2.4).
    @inline(__always)
    static func place(_ need: Int, in block: Block) -> Int? {
        var a = block.position
        while a &+ need <= block.end {
            let border = (a | (sectionLength &- 1)) &+ 1
            if a &+ need <= border { return a }
            a = border
        }
        return nil
    }

    /// First position in `block` where `need` bytes touch no page that they need not touch; nil where there is none.
    @inline(__always)
    private func pagedPlace(_ need: Int, _ block: Block) -> Int? {
        let page = PageGeometry.pageByteCount, offset = block.position & (page - 1)
        var position = block.position
        if offset != 0 && (paging == .fresh || offset + need > page) { position += page - offset }
        if position + need > block.end { return nil }
        return FreeSpace.place(need, in: Block(position: position, length: block.end - position))
    }

    /// Begins the run where the commit touches the fewest pages, in the smallest block that allows it.
    private func beginPagedRun(_ need: Int) -> Bool {
        var best = Int.max
        for i in 0..<free.count where free[i].length >= need && free[i].length < best {
            guard let position = pagedPlace(need, free[i]) else { continue }
            best = free[i].length
            beginRun(i, position, need)
        }
        return best < .max
    }

    private func beginRun(_ index: Int, _ position: Int, _ need: Int) {
        runIndex = index
        runStart = position
        runCursor = position
        runEnd = position + need
    }

    // MARK: Places one by one

    /// A place for `need` bytes, a multiple of 8; it crosses no section.
    @inline(__always)
    func allocate(_ need: Int) throws -> Int {
        if runIndex >= 0 {
            let position = runCursor
            if need <= runEnd &- position {
                runCursor = position &+ need
                return position
            }
            endRun()
            bins.build(free)
        }
        return try allocateFromBins(need)
    }

    private func endRun() {
        let block = free[runIndex]
        let rest = Block(position: runCursor, length: block.end - runCursor)
        if runStart > block.position {
            free[runIndex].length = runStart - block.position
            if rest.length > 0 { free.insert(rest, at: runIndex + 1) }
        } else if rest.length > 0 {
            free[runIndex] = rest
        } else {
            free.remove(at: runIndex)
        }
        runIndex = -1
    }

    private func allocateFromBins(_ need: Int) throws -> Int {
        if need > FreeSpace.sectionLength { throw LimitError.nodeTooLarge(byteCount: need) }
        isInOrder = false
        while true {
            if let position = bins.take(need, from: free, anySize: false) { return position }
            // Blocks that would leave a small rest are spared (2.5), but not at the price of a greater file.
            if let position = bins.take(need, from: free, anySize: true) { return position }
            if !evacuated.isEmpty {
                // 3.5: what was to be emptied is needed.
                restoreOrder()
                merge(evacuated, into: free)
                limit = .max
                gaveUpEvacuation = true
                bins.build(free)
                isInOrder = false
            } else {
                // The new block is used whatever its size; where a section begins in it too early, the file grows again.
                free.append(try extend(by: need))
                if let position = bins.takeFromLast(need, free) { return position }
            }
        }
    }

    /// Growth of the logical size (2.7); the physical size follows when the commit is stored.
    private func extend(by need: Int) throws -> Block {
        let old = logicalSize
        if old > 1 << 46 { throw LimitError.valueTooLarge(byteCount: old, limit: 1 << 46) }
        logicalSize = roundUp(max(old < 1 << 20 ? 2 * old : old + (1 << 20), old + need), SystemCalls.pageSize)
        return Block(position: old, length: logicalSize - old)
    }

    /// Ends giving out places: `free` is in order again.
    func endPlacing() {
        if runIndex >= 0 { endRun() }
        restoreOrder()
        placesLasting = false
        if lastingCursor < lastingEnd {
            _ = insert(Block(position: lastingCursor, length: lastingEnd - lastingCursor), into: free, from: 0)
        }
        lastingCursor = lastingEnd
    }

    private func restoreOrder() {
        if isInOrder { return }
        isInOrder = true
        if bins.hasSplit { free.sort { $0.position < $1.position } }
        mergedBlocks.removeAll()
        for i in 0..<free.count where free[i].length > 0 { appendMerging(free[i], to: mergedBlocks) }
        free.swap(with: mergedBlocks)
    }

    /// Returns a piece that was given out, as a block that begins where the piece does: it is merged with what follows it
    /// only. The result is its index in `free`.
    func giveBack(_ piece: Block) -> Int {
        let p = free.base, n = free.count
        var low = 0, high = n
        while low < high {
            let middle = (low &+ high) >> 1
            if p[middle].position < piece.position { low = middle &+ 1 } else { high = middle }
        }
        if low < n && piece.end == p[low].position {
            p[low] = Block(position: piece.position, length: piece.length + p[low].length)
        } else {
            free.insert(piece, at: low)
        }
        return low
    }

    /// Lowers the logical size where evacuation has emptied the tail of the file (3.4). True: it is done.
    func cutEmptyTail() -> Bool {
        guard evacuated.count == 1, evacuated[0].end == logicalSize else { return false }
        let block = evacuated[0]
        logicalSize = roundUp(block.position, SystemCalls.pageSize)
        evacuated.removeAll()
        if logicalSize > block.position {
            _ = insert(Block(position: block.position, length: logicalSize - block.position), into: free, from: 0)
        }
        limit = .max
        return true
    }
}
