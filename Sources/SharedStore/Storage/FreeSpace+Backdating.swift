/// Finding space that nobody can see any more though an old version is pinned (file-format-3 2.8).
///
/// A block that version 50 allocated and version 60 released is locked while version 5 is pinned, since 60 > 5. If it
/// was free already in version 5, and no version from 5 to 60 is pinned, nobody reads it. So: take the youngest pinned
/// version below the block's; where that one's list has the bytes as free, they were free from the version noted there on,
/// and that is the version they get. Repeat with the next older pinned version until the block is usable or found in use.
///
/// The result is a statement about all pinned versions, hence such a block may be overwritten at once. A block that is in
/// use in version s stays so while s is pinned: `usedIn` remembers s, and the block is not looked at again before s is gone.
/// A block of which only parts were free is split, so that a large block does not lock its free parts.
extension FreeSpace {
    func backdate(_ pinned: PinnedVersions, file: DatabaseFile) throws {
        let oldest = pinned.oldestReachable
        pinnedLists.removeAll { list in !pinned.versions.contains { $0.snapshot == list.snapshot } }
        let count = locked.count
        movedLocked.removeAll()
        // All versions from the one behind `held` to `last` have that one below them.
        var held: UInt64 = 0, last: UInt64 = 0
        for i in 0..<count {
            let block = locked.base[i]
            if block.version > oldest && (block.version <= held || block.version > last) {
                (held, last) = around(block.version, pinned)
            }
            if block.version <= oldest {
                movedLocked.append(block)
            } else if block.usedIn == held {
                appendUsed(block)
            } else {
                try examine(block, pinned, oldest, file)
            }
        }
        locked.swap(with: movedLocked)
        movedLocked.removeAll()
    }

    /// Appends a block in use to `movedLocked`. Neighbours that the same version uses become one: no version between those that
    /// released them is pinned, nor can be from now on, so they become free at the same time.
    private func appendUsed(_ block: LockedBlock) {
        let n = movedLocked.count
        if n > 0 {
            let last = movedLocked.base + (n &- 1)
            if last.pointee.end == block.position && last.pointee.usedIn == block.usedIn && block.usedIn != 0 {
                last.pointee.length &+= block.length
                last.pointee.version = max(last.pointee.version, block.version)
                return
            }
        }
        movedLocked.append(block)
    }

    /// The youngest pinned version below `version` (0 for none), and the next older one or the same.
    private func around(_ version: UInt64, _ pinned: PinnedVersions) -> (UInt64, UInt64) {
        let next = pinned.versions.first { $0.snapshot.version >= version }?.snapshot.version ?? .max
        return (youngest(below: version, pinned)?.version ?? 0, next)
    }

    /// Appends the pieces of `block` to `movedLocked`, each with the oldest version that is true of it.
    private func examine(_ block: LockedBlock, _ pinned: PinnedVersions, _ oldest: UInt64, _ file: DatabaseFile) throws {
        // Pieces still to be looked at, the first one on top. Each step replaces a piece by its parts with lower versions, or
        // settles it; parts are never smaller than 8 bytes.
        var pending = [block]
        while var piece = pending.popLast() {
            guard piece.version > oldest, let snapshot = youngest(below: piece.version, pinned) else {
                movedLocked.append(piece)
                continue
            }
            if piece.usedIn == snapshot.version || snapshot.logicalSize & 7 != 0 {
                piece.usedIn = snapshot.version
                appendUsed(piece)
                continue
            }
            if piece.position >= snapshot.logicalSize {
                // It lies behind the end of that version, and so of all older ones that matter: they are looked at in turn.
                piece.version = snapshot.version <= oldest ? 0 : snapshot.version
                pending.append(piece)
                continue
            }
            guard let list = try list(of: snapshot, file) else {
                piece.usedIn = snapshot.version
                appendUsed(piece)
                continue
            }
            splitBy(list, piece, &pending)
        }
    }

    /// Cuts `piece` along the blocks of `list`: free parts are pending with the version noted there, used ones are settled.
    private func splitBy(_ list: FreeList, _ piece: LockedBlock, _ pending: inout [LockedBlock]) {
        let p = list.blocks.base, n = list.blocks.count, snapshot = list.snapshot
        var low = 0, high = n
        while low < high {
            let middle = (low &+ high) >> 1
            if p[middle].end <= piece.position { low = middle &+ 1 } else { high = middle }
        }
        // Parts in ascending order, from `parts` on; a later step needs them in descending order on the stack.
        let start = pending.count
        var position = piece.position
        func add(_ end: Int, _ version: UInt64, _ usedIn: UInt64) {
            if end <= position { return }
            if pending.count > start {
                let last = pending[pending.count - 1]
                if last.end == position && last.version == version && last.usedIn == usedIn {
                    pending[pending.count - 1].length += end - position
                    position = end
                    return
                }
            }
            pending.append(LockedBlock(position: position, length: end - position, version: version, usedIn: usedIn))
            position = end
        }
        while position < piece.end {
            // Behind the last block everything is in use up to the version's end, and nothing behind that.
            let isLast = low >= n
            add(min(isLast ? snapshot.logicalSize : p[low].position, piece.end), piece.version, snapshot.version)
            add(min(isLast ? piece.end : p[low].end, piece.end), isLast ? 0 : min(p[low].version, snapshot.version), 0)
            low += 1
        }
        settle(&pending, from: start)
    }

    /// Used parts at the front are settled; what follows stays pending, first part on top.
    private func settle(_ pending: inout [LockedBlock], from start: Int) {
        pending[start...].reverse()
        while let part = pending.last, pending.count > start, part.usedIn != 0 {
            appendUsed(part)
            pending.removeLast()
        }
    }

    private func youngest(below version: UInt64, _ pinned: PinnedVersions) -> Snapshot? {
        var low = 0, high = pinned.versions.count
        while low < high {
            let middle = (low + high) >> 1
            if pinned.versions[middle].snapshot.version < version { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : pinned.versions[low - 1].snapshot
    }

    /// The list of a pinned version; nil where it has none that can be understood: then its space counts as used.
    private func list(of snapshot: Snapshot, _ file: DatabaseFile) throws -> FreeList? {
        if let known = pinnedLists.first(where: { $0.snapshot == snapshot }) { return known }
        do {
            let view = try file.view(of: snapshot)
            let list = try FreeList(view.memory, snapshot)
            pinnedLists.append(list)
            return list
        } catch is FormatError {
            return nil
        }
    }
}
