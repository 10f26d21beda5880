/// The blocks of `free` by size, for commits that need many places.
///
/// Class of a block: its length in units of 8 bytes below 512 bytes, beyond that a quarter of a power of two. A class is a list
/// through `next`; `present` has a bit for each class that is not empty.
final class Bins {
    private let heads = RawList<Int32>(capacity: 256)
    private let next = RawList<Int32>(capacity: 64)
    private let present = RawList<UInt64>(capacity: 4)
    /// A block was split in front of a section: the list is out of order.
    @exclusivity(unchecked) private(set) var hasSplit = false
    /// How many blocks of one class are looked at before the next class is tried.
    private static let triesMax = 8

    deinit { heads.free(); next.free(); present.free() }

    @inline(__always) private static func sizeClass(_ length: Int) -> Int {
        let units = length >> 3
        if units < 64 { return units }
        let log = 63 &- units.leadingZeroBitCount
        return 64 &+ (log &- 6) &* 4 &+ (units >> (log &- 2)) & 3
    }

    func build(_ free: RawList<Block>) {
        hasSplit = false
        heads.resize(256)
        for i in 0..<256 { heads.base[i] = -1 }
        present.resize(4)
        for i in 0..<4 { present.base[i] = 0 }
        next.removeAll()
        // From behind, so that the lowest positions are found first.
        next.resize(free.count)
        var i = free.count
        while i > 0 {
            i &-= 1
            if free[i].length > 0 { link(i, free) }
        }
    }

    func link(_ index: Int, _ free: RawList<Block>) {
        if index >= next.count { next.resize(index + 1) }
        let c = Bins.sizeClass(free[index].length)
        next[index] = heads[c]
        heads[c] = Int32(truncatingIfNeeded: index)
        present[c >> 6] |= 1 << UInt64(c & 63)
    }

    /// Takes `need` bytes by the policy of 2.5: a block of exactly this size, or one of at least twice the size. With `anySize`
    /// any block that is large enough will do.
    func take(_ need: Int, from free: RawList<Block>, anySize: Bool) -> Int? {
        if let position = search(Bins.sizeClass(need), need, free, accepts: { $0 == need }) { return position }
        let wanted = anySize ? need : 2 * need
        var c = Bins.sizeClass(wanted)
        while let found = firstPresent(c) {
            if let position = search(found, need, free, accepts: { $0 >= wanted }) { return position }
            c = found + 1
        }
        return nil
    }

    /// Takes `need` bytes from the last block, which was not linked so far.
    func takeFromLast(_ need: Int, _ free: RawList<Block>) -> Int? {
        let index = free.count - 1
        guard let position = FreeSpace.place(need, in: free[index]) else {
            link(index, free)
            return nil
        }
        if index >= next.count { next.resize(index + 1) }
        split(index, free[index], position, need, free)
        return position
    }

    private func firstPresent(_ c: Int) -> Int? {
        var word = c >> 6
        if word >= 4 { return nil }
        var bits = present[word] & (~0 << UInt64(c & 63))
        while bits == 0 {
            word += 1
            if word == 4 { return nil }
            bits = present[word]
        }
        return (word << 6) + bits.trailingZeroBitCount
    }

    @inline(__always)
    private func search(_ c: Int, _ need: Int, _ free: RawList<Block>, accepts: (Int) -> Bool) -> Int? {
        var previous = -1, index = Int(heads[c]), tries = 0
        while index >= 0 && tries < Bins.triesMax {
            let block = free[index]
            if accepts(block.length), let position = FreeSpace.place(need, in: block) {
                if previous < 0 {
                    heads[c] = next[index]
                    if heads[c] < 0 { present[c >> 6] &= ~(1 << UInt64(c & 63)) }
                } else {
                    next[previous] = next[index]
                }
                split(index, block, position, need, free)
                return position
            }
            previous = index
            index = Int(next[index])
            tries += 1
        }
        return nil
    }

    /// Takes `[position, position + need)` out of an unlinked block; what is left goes back into its class.
    private func split(_ index: Int, _ block: Block, _ position: Int, _ need: Int, _ free: RawList<Block>) {
        let rest = Block(position: position + need, length: block.end - position - need)
        if position == block.position {
            free[index] = rest
            if rest.length > 0 { link(index, free) }
            return
        }
        free[index].length = position - block.position
        link(index, free)
        if rest.length > 0 {
            hasSplit = true
            free.append(rest)
            link(free.count - 1, free)
        }
    }
}
