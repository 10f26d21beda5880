import SystemCalls

/// Which bytes of the file may be written by the running commit, and who holds the others back (file-format-3 section 2).
///
/// The space of version N outside its nodes is divided among four lists, each sorted by position and free of overlap:
///
/// | list | what | merged with touching neighbours |
/// |---|---|---|
/// | `free` | usable now: released at or before the oldest pinned version, below the evacuation limit | always |
/// | `locked` | released by a version that is newer than the oldest pinned one | no: versions differ in meaning |
/// | `evacuated` | usable by version, but beyond the evacuation limit | always |
/// | `freed` | released by the running commit; still used by version N | always |
///
/// Together with the nodes of version N+1 they tile `[24, logicalSize)`, each byte once; `encode` checks that nothing overlaps.
/// Between our own commits the lists stay in memory, sorted as they change; they are read from the file again only when
/// somebody else has committed.
///
/// Where places come from is told in `FreeSpace+Places.swift`. No place crosses a multiple of 64 MiB.
///
/// Crash argument: a place is given out only from `free`, that is from bytes which no pinned version uses, nor the version
/// of the header (the writer has made sure that it is the newest): whatever is half written there is invisible.
final class FreeSpace {
    static let sectionLength = 1 << 26

    /// How the pages of the file are written: each touched page costs its encryption, whatever changes in it.
    enum Paging {
        /// Bytes are written as they are.
        case none
        /// The fewer pages a small commit touches, the better.
        case few
        /// As `few`; and no page is touched that an earlier commit may have written, since that was not synced.
        case fresh
    }

    let free = RawList<Block>(capacity: 64)
    let locked = RawList<LockedBlock>()
    let evacuated = RawList<Block>()
    let freed = RawList<Block>(capacity: 64)
    /// Lists that change places with the ones above while these are merged.
    let mergedBlocks = RawList<Block>(capacity: 64)
    private let movedBlocks = RawList<Block>(capacity: 64)
    let movedLocked = RawList<LockedBlock>()
    let bins = Bins()

    /// The version whose lists these are; nil while a commit is under way and after it failed.
    @exclusivity(unchecked) private(set) var owner: Snapshot?
    /// Bytes of the file that belong to the version being made.
    @exclusivity(unchecked) var logicalSize = 0
    /// The evacuation limit of the running commit; `Int.max` for none.
    @exclusivity(unchecked) var limit = Int.max
    /// Evacuation had to be given up because a node found no place.
    @exclusivity(unchecked) var gaveUpEvacuation = false

    /// The run of the present commit: `[runStart, runCursor)` is given out, up to `runEnd` may be; it lies in `free[runIndex]`.
    @exclusivity(unchecked) var runStart = 0, runCursor = 0, runEnd = 0, runIndex = -1
    /// Nodes that are likely to stay get places beside the run.
    @exclusivity(unchecked) var placesLasting = false
    /// What is left of a block that was taken for several of them.
    @exclusivity(unchecked) var lastingCursor = 0, lastingEnd = 0
    /// `free` has got blocks out of order, or used up ones.
    @exclusivity(unchecked) var isInOrder = true
    @exclusivity(unchecked) var paging = Paging.none

    /// Lists of pinned versions, read once each: what is pinned does not change.
    @exclusivity(unchecked) var pinnedLists: [FreeList] = []

    deinit {
        free.free(); locked.free(); evacuated.free(); freed.free(); mergedBlocks.free(); movedBlocks.free(); movedLocked.free()
    }

    /// Blocks in all lists; while places are given out some may be counted that are used up.
    var entryCount: Int { free.count + locked.count + evacuated.count + freed.count }

    // MARK: Start and end of a commit

    /// Forgets what is known; the next commit reads the file.
    func forget() { owner = nil }

    /// The commit of `snapshot` is published: its lists are those in memory.
    func keep(as snapshot: Snapshot) { owner = snapshot }

    /// Loads the lists of `base`, except where they are the ones in memory.
    func begin(base: Snapshot, memory: Memory) throws {
        let isCurrent = owner == base
        owner = nil
        logicalSize = base.logicalSize
        gaveUpEvacuation = false
        if isCurrent {
            // What the last commit released carries its version.
            for i in 0..<freed.count {
                let b = freed[i]
                movedLocked.append(LockedBlock(position: b.position, length: b.length, version: base.version, usedIn: 0))
            }
            mergeMovedLocked()
        } else {
            free.removeAll()
            evacuated.removeAll()
            try FreeList.read(memory, base, into: locked)
        }
        freed.removeAll()
    }

    /// Divides the lists for a commit that may overwrite what was released at or before `oldest`.
    func divide(oldest: UInt64, limit: Int) {
        self.limit = limit
        if !evacuated.isEmpty { merge(evacuated, into: free) }
        unlock(oldest)
        if limit < logicalSize { splitOffEvacuated() }
    }

    /// Moves what nobody needs any more from `locked` to `free`.
    private func unlock(_ oldest: UInt64) {
        let p = locked.base, n = locked.count
        var kept = 0
        for i in 0..<n {
            if p[i].version <= oldest {
                movedBlocks.append(Block(position: p[i].position, length: p[i].length))
            } else {
                p[kept] = p[i]
                kept &+= 1
            }
        }
        locked.resize(kept)
        merge(movedBlocks, into: free)
    }

    private func splitOffEvacuated() {
        while let last = free.popLast() {
            if last.end <= limit {
                free.append(last)
                break
            }
            if last.position < limit {
                movedBlocks.append(Block(position: limit, length: last.end - limit))
                free.append(Block(position: last.position, length: limit - last.position))
                break
            }
            movedBlocks.append(last)
        }
        while let block = movedBlocks.popLast() { evacuated.append(block) }
    }

    /// Sorts and merges what the transaction has released, including the old lists and the old top.
    func takeReleased(_ released: RawList<Block>) throws {
        freed.removeAll()
        let p = released.base, n = released.count
        if n <= 24 {
            var i = 1
            while i < n {
                let b = p[i]
                var k = i
                while k > 0 && p[k - 1].position > b.position {
                    p[k] = p[k - 1]
                    k &-= 1
                }
                p[k] = b
                i &+= 1
            }
        } else {
            released.sort { $0.position < $1.position }
        }
        for i in 0..<n {
            let b = p[i]
            if let last = freed.popLast() {
                if last.end > b.position {
                    throw FormatError(
                        ref: b.position, "released twice: \(b.length) bytes, part of \(last.length) at \(last.position)")
                }
                if last.end == b.position {
                    freed.append(Block(position: last.position, length: last.length + b.length))
                    continue
                }
                freed.append(last)
            }
            freed.append(b)
        }
    }

    // MARK: Merging

    /// Moves the blocks of `source`, sorted by position, into `target`; touching blocks become one. `source` is empty then.
    func merge(_ source: RawList<Block>, into target: RawList<Block>) {
        let count = source.count
        if count == 0 { return }
        if count <= 16 || count < target.count >> 6 {
            var hint = 0
            for i in 0..<count { hint = insert(source[i], into: target, from: hint) }
            source.removeAll()
            return
        }
        mergedBlocks.removeAll()
        var a = 0, b = 0
        let p = target.base, n = target.count, q = source.base
        while a < n || b < count {
            if b == count || (a < n && p[a].position < q[b].position) {
                appendMerging(p[a], to: mergedBlocks)
                a &+= 1
            } else {
                appendMerging(q[b], to: mergedBlocks)
                b &+= 1
            }
        }
        target.swap(with: mergedBlocks)
        source.removeAll()
    }

    @inline(__always) func appendMerging(_ block: Block, to list: RawList<Block>) {
        let n = list.count
        if n > 0 && list.base[n &- 1].end == block.position {
            list.base[n &- 1].length &+= block.length
        } else {
            list.append(block)
        }
    }

    /// Inserts one block at its place at or behind `from`, merging it with touching neighbours; returns where it went.
    func insert(_ block: Block, into list: RawList<Block>, from: Int) -> Int {
        let p = list.base, n = list.count
        var low = from, high = n
        while low < high {
            let middle = (low &+ high) >> 1
            if p[middle].position < block.position { low = middle &+ 1 } else { high = middle }
        }
        let touchesLeft = low > 0 && p[low &- 1].end == block.position
        let touchesRight = low < n && block.end == p[low].position
        if touchesLeft && touchesRight {
            p[low &- 1].length &+= block.length &+ p[low].length
            list.remove(at: low)
        } else if touchesLeft {
            p[low &- 1].length &+= block.length
        } else if touchesRight {
            p[low].position = block.position
            p[low].length &+= block.length
        } else {
            list.insert(block, at: low)
        }
        return max(low &- 1, 0)
    }

    /// Merges `movedLocked`, sorted, into `locked`; blocks stay as they are.
    func mergeMovedLocked() {
        let count = movedLocked.count
        if count == 0 { return }
        if locked.isEmpty {
            locked.swap(with: movedLocked)
            return
        }
        // From behind, in place: nothing is moved that lies before the first new block.
        var a = locked.count - 1, b = count - 1
        locked.resize(locked.count + count)
        let p = locked.base, q = movedLocked.base
        while b >= 0 {
            if a >= 0 && p[a].position > q[b].position {
                p[a &+ b &+ 1] = p[a]
                a &-= 1
            } else {
                p[a &+ b &+ 1] = q[b]
                b &-= 1
            }
        }
        movedLocked.removeAll()
    }
}
