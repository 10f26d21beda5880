/// The three arrays of a new version: how many elements of which width, and their content.
struct FreeListShape {
    /// Elements of each array.
    private(set) var count = 0
    private(set) var positionCode = 5
    private(set) var lengthCode = 5
    private(set) var versionCode = 0
    /// Bytes that are free for everybody.
    private(set) var freeBytes = 0

    /// Looks at the blocks of `space`. Positions get at least the width of `limit`, which one of them may take later on;
    /// positions and lengths 16 bits or more, versions the width that they need.
    init(_ space: FreeSpace, _ version: UInt64, atLeast limit: Int) {
        var lengths = 0, highest = limit
        let free = space.free, locked = space.locked, evacuated = space.evacuated, freed = space.freed
        count = free.count + locked.count + evacuated.count + freed.count
        for i in 0..<free.count {
            let length = free.base[i].length
            lengths |= length
            freeBytes &+= length
        }
        for i in 0..<evacuated.count {
            lengths |= evacuated[i].length
            freeBytes &+= evacuated[i].length
        }
        for i in 0..<freed.count { lengths |= freed[i].length }
        var versions = freed.isEmpty ? 0 : Int64(bitPattern: version)
        for i in 0..<locked.count {
            lengths |= locked[i].length
            versions |= Int64(bitPattern: locked[i].version)
        }
        if !free.isEmpty { highest = max(highest, free[free.count - 1].position) }
        if !locked.isEmpty { highest = max(highest, locked[locked.count - 1].position) }
        if !evacuated.isEmpty { highest = max(highest, evacuated[evacuated.count - 1].position) }
        if !freed.isEmpty { highest = max(highest, freed[freed.count - 1].position) }
        positionCode = FreeListShape.code(highest)
        lengthCode = FreeListShape.code(lengths)
        var extent = NodePacking.Extent()
        extent.include(versions)
        versionCode = versions == 0 ? 0 : max(extent.widthCode, 4)
    }

    private static func code(_ value: Int) -> Int { value < 1 << 15 ? 5 : value < 1 << 31 ? 6 : 7 }

    /// Merges the four lists into the three nodes. Throws where blocks overlap: something was released twice.
    func write(
        _ space: FreeSpace, _ version: UInt64, positions: UnsafeMutableRawPointer, lengths: UnsafeMutableRawPointer,
        versions: UnsafeMutableRawPointer
    ) throws {
        NodePacking.stampHeader(positions, flags: UInt8(positionCode), count: count)
        NodePacking.stampHeader(lengths, flags: UInt8(lengthCode), count: count)
        NodePacking.stampHeader(versions, flags: UInt8(versionCode), count: count)
        (versions + 8).initializeMemory(as: UInt8.self, repeating: 0, count: NodePacking.byteCount(count, versionCode) - 8)
        let p = positions + 8, l = lengths + 8
        let isDisjoint =
            switch (positionCode, lengthCode) {
            case (5, 5): merge(space, version, p, Int16.self, l, Int16.self, versions + 8)
            case (6, 5): merge(space, version, p, Int32.self, l, Int16.self, versions + 8)
            case (6, 6): merge(space, version, p, Int32.self, l, Int32.self, versions + 8)
            case (7, 5): merge(space, version, p, Int64.self, l, Int16.self, versions + 8)
            case (7, 6): merge(space, version, p, Int64.self, l, Int32.self, versions + 8)
            case (7, 7): merge(space, version, p, Int64.self, l, Int64.self, versions + 8)
            case (5, 6): merge(space, version, p, Int16.self, l, Int32.self, versions + 8)
            case (5, 7): merge(space, version, p, Int16.self, l, Int64.self, versions + 8)
            default: merge(space, version, p, Int32.self, l, Int64.self, versions + 8)
            }
        NodePacking.clearPadding(p, count << (positionCode - 4))
        NodePacking.clearPadding(l, count << (lengthCode - 4))
        if !isDisjoint { throw overlap(space) }
    }

    @inline(__always)
    private func merge<P: FixedWidthInteger & BitwiseCopyable, L: FixedWidthInteger & BitwiseCopyable>(
        _ space: FreeSpace, _ version: UInt64, _ positions: UnsafeMutableRawPointer, _: P.Type,
        _ lengths: UnsafeMutableRawPointer, _: L.Type, _ versions: UnsafeMutableRawPointer
    ) -> Bool {
        let positionStep = MemoryLayout<P>.size, lengthStep = MemoryLayout<L>.size
        let free = space.free.base, freeCount = space.free.count
        let locked = space.locked.base, lockedCount = space.locked.count
        let evacuated = space.evacuated.base, evacuatedCount = space.evacuated.count
        let freed = space.freed.base, freedCount = space.freed.count
        var a = 0, b = 0, c = 0, d = 0, row = 0, end = FileHeader.byteCount
        // Negative as soon as a block begins before the end of the one before, or has no bytes.
        var faults = 0
        @inline(__always) func put(_ position: Int, _ length: Int) {
            positions.storeBytes(of: P(truncatingIfNeeded: position), toByteOffset: row &* positionStep, as: P.self)
            lengths.storeBytes(of: L(truncatingIfNeeded: length), toByteOffset: row &* lengthStep, as: L.self)
            faults |= (position &- end) | (length &- 1)
            end = position &+ length
            row &+= 1
        }
        while true {
            let nextLocked = b < lockedCount ? locked[b].position : Int.max
            let nextEvacuated = c < evacuatedCount ? evacuated[c].position : Int.max
            let nextFreed = d < freedCount ? freed[d].position : Int.max
            let next = min(nextLocked, min(nextEvacuated, nextFreed))
            while a < freeCount && free[a].position < next {
                put(free[a].position, free[a].length)
                a &+= 1
            }
            if next == Int.max { break }
            if next == nextFreed {
                NodePacking.set(versions, versionCode, row, Int64(bitPattern: version))
                put(next, freed[d].length)
                d &+= 1
            } else if next == nextLocked {
                if locked[b].version != 0 { NodePacking.set(versions, versionCode, row, Int64(bitPattern: locked[b].version)) }
                put(next, locked[b].length)
                b &+= 1
            } else {
                put(next, evacuated[c].length)
                c &+= 1
            }
        }
        return faults >= 0 && end <= space.logicalSize
    }

    /// Which block is at fault: looked for only when there is one.
    private func overlap(_ space: FreeSpace) -> FormatError {
        var all: [Block] = []
        all += space.free.buffer
        all += space.locked.buffer.map { Block(position: $0.position, length: $0.length) }
        all += space.evacuated.buffer
        all += space.freed.buffer
        all.sort { $0.position < $1.position }
        var end = FileHeader.byteCount
        for block in all {
            if block.position < end || block.length <= 0 {
                return FormatError(
                    ref: block.position,
                    """
                    released or free twice: \(block.length) bytes at \(block.position), the block before ends at \(end)
                    """)
            }
            end = block.end
        }
        return FormatError(ref: end, "free space ends at \(end), behind the logical size \(space.logicalSize)")
    }
}
