import SharedStore

/// The free space of one version and its size: what is not free in `[24, logicalSize)` is in use (mirroring.md section 2).
public struct FreeExtents: Equatable, Sendable {
    /// Ascending, not overlapping, multiples of 8; neighbours may touch.
    public var positions: [Int]
    /// One for each position; in bytes, multiples of 8.
    public var lengths: [Int]
    /// Bytes of the version, free space and header included.
    public var logicalSize: Int

    /// Not checked; lists from a file come in by the other initialiser.
    public init(positions: [Int], lengths: [Int], logicalSize: Int) {
        self.positions = positions
        self.lengths = lengths
        self.logicalSize = logicalSize
    }

    /// Reads the lists of the snapshot whose top array is at `snapshot.topRef`.
    ///
    /// - Throws: `FormatError` where they are not sorted, overlap, are not aligned or leave the file: a damaged source.
    public init(memory: Memory, snapshot: Snapshot) throws {
        logicalSize = snapshot.logicalSize
        positions = []
        lengths = []
        guard snapshot.topRef != 0 else { return }
        let top = try memory.node(snapshot.topRef)
        let positionsRef = try top.optionalRef(TopSlot.freePositions), lengthsRef = try top.optionalRef(TopSlot.freeLengths)
        guard positionsRef != 0 else { return }
        guard lengthsRef != 0 else { throw FormatError(ref: snapshot.topRef, "free positions without lengths") }
        let p = try memory.node(positionsRef), l = try memory.node(lengthsRef)
        guard p.count == l.count, !p.hasRefs, !l.hasRefs, p.widthType == 0, l.widthType == 0 else {
            throw FormatError(ref: positionsRef, "free lists of \(p.count) positions and \(l.count) lengths")
        }
        positions = Self.copy(p)
        lengths = Self.copy(l)
        if let i = Self.firstMisplaced(positions, lengths, logicalSize) {
            throw FormatError(ref: positionsRef, "free block \(i) of \(lengths[i]) bytes at \(positions[i]) is misplaced")
        }
    }

    /// The first block that is none, or overlaps the one before; nil where all are well.
    private static func firstMisplaced(_ positions: [Int], _ lengths: [Int], _ logicalSize: Int) -> Int? {
        positions.withUnsafeBufferPointer { p in
            lengths.withUnsafeBufferPointer { l in
                var end = 24
                for i in 0..<min(p.count, l.count) {
                    let at = p[i], n = l[i]
                    guard at >= end, n >= 8, (at | n) & 7 == 0, at <= logicalSize, n <= logicalSize &- at else { return i }
                    end = at &+ n
                }
                return nil
            }
        }
    }

    /// All elements of an integer array, with one loop a width.
    private static func copy(_ node: Node) -> [Int] {
        let n = node.count, p = node.payload
        return [Int](unsafeUninitializedCapacity: n) { out, initialized in
            switch node.width {
            case 32: for i in 0..<n { out[i] = Int(p.loadUnaligned(fromByteOffset: i &* 4, as: Int32.self)) }
            case 64: for i in 0..<n { out[i] = Int(p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)) }
            case 16: for i in 0..<n { out[i] = Int(p.loadUnaligned(fromByteOffset: i &* 2, as: Int16.self)) }
            default: for i in 0..<n { out[i] = Int(node.unchecked(i)) }
            }
            initialized = n
        }
    }

    /// The free lists and the top array of a version as they lie there: what the payload of the next step is compressed against
    /// (mirroring.md section 4, flag 4). Positions, lengths, versions, top, each with its node header.
    public static func prefix(memory: Memory, snapshot: Snapshot) throws -> [UInt8] {
        if snapshot.topRef == 0 { return [] }
        let top = try memory.node(snapshot.topRef)
        var out: [UInt8] = []
        func append(_ node: Node) throws {
            out += UnsafeRawBufferPointer(start: try memory.bytes(at: node.ref, length: node.byteCount), count: node.byteCount)
        }
        for slot in TopSlot.freePositions...TopSlot.freeVersions where slot < top.count {
            let ref = try top.optionalRef(slot)
            if ref != 0 { try append(memory.node(ref)) }
        }
        try append(top)
        return out
    }

    /// The used ranges, ascending and not touching.
    public func usedRanges() -> [Range<Int>] {
        var out: [Range<Int>] = []
        var at = 24
        for i in positions.indices {
            if positions[i] > at { out.append(at..<positions[i]) }
            at = positions[i] + lengths[i]
        }
        if at < logicalSize { out.append(at..<logicalSize) }
        return out
    }

    /// Header and free space do not count.
    public var usedByteCount: Int { logicalSize - 24 - lengths.reduce(0, +) }

    /// What `newer` has and this version has not: `used(newer)` within `free(self)` or behind this version's end
    /// (mirroring.md 2.2). Exact as long as this version is pinned while `newer` came to be: nothing is walked.
    public func difference(to newer: FreeExtents) -> [Range<Int>] {
        var out: [Range<Int>] = []
        func append(_ low: Int, _ high: Int) {
            if let last = out.last, last.upperBound == low {
                out[out.count - 1] = last.lowerBound..<high
            } else {
                out.append(low..<high)
            }
        }
        positions.withUnsafeBufferPointer { older in
            lengths.withUnsafeBufferPointer { olderLengths in
                newer.positions.withUnsafeBufferPointer { positions in
                    newer.lengths.withUnsafeBufferPointer { lengths in
                        // Between `at` and the next block everything is in use; `i` is the first older block that ends behind
                        // `at`.
                        var at = 24, i = 0
                        let count = min(older.count, olderLengths.count), newerCount = min(positions.count, lengths.count)
                        for k in 0...newerCount {
                            let p = k == newerCount ? newer.logicalSize : positions[k]
                            if p > at {
                                while i < count && older[i] &+ olderLengths[i] <= at { i &+= 1 }
                                var j = i
                                while j < count && older[j] < p {
                                    append(max(at, older[j]), min(p, older[j] &+ olderLengths[j]))
                                    j &+= 1
                                }
                                i = max(i, j &- 1)
                                if p > logicalSize { append(max(at, logicalSize), p) }
                            }
                            if k < newerCount { at = p &+ lengths[k] }
                        }
                    }
                }
            }
        }
        return out
    }

    /// Index of the first free block that ends behind `position`.
    private func firstBlock(endingAfter position: Int) -> Int {
        var low = 0, high = positions.count
        while low < high {
            let middle = (low + high) / 2
            if positions[middle] + lengths[middle] <= position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// True when every byte of `inner` lies in `outer`; both ascending, not touching.
    static func covers(_ outer: [Range<Int>], _ inner: [Range<Int>]) -> Bool {
        var i = 0
        for r in inner {
            while i < outer.count && outer[i].upperBound < r.upperBound { i += 1 }
            guard i < outer.count, outer[i].lowerBound <= r.lowerBound else { return false }
        }
        return true
    }

    /// True when every byte of `ranges` is free in this version or lies behind its end (mirroring.md 5.2).
    public func contains(_ ranges: [Range<Int>]) -> Bool {
        var i = ranges.first.map { firstBlock(endingAfter: $0.lowerBound) } ?? 0
        for r in ranges {
            var at = r.lowerBound
            while at < min(r.upperBound, logicalSize) {
                while i < positions.count && positions[i] + lengths[i] <= at { i += 1 }
                guard i < positions.count, positions[i] <= at else { return false }
                at = positions[i] + lengths[i]
            }
        }
        return true
    }
}

/// The checker of the difference: walks the newer version and descends only where a ref is new (mirroring.md 2.3).
public enum DifferenceWalk {
    /// The nodes of `newer` that do not lie on used bytes of `older`, as ascending ranges that do not touch.
    public static func ranges(memory: Memory, older: FreeExtents, newer: Snapshot) throws -> [Range<Int>] {
        var found: [Range<Int>] = []
        var pending = newer.topRef == 0 ? [] : [newer.topRef]
        var visited = 0
        let limit = newer.logicalSize / 8 + 1
        while let ref = pending.popLast() {
            visited += 1
            if visited > limit {
                throw FormatError(ref: newer.topRef, "the tree has more nodes than the file has room for: a cycle")
            }
            let node = try memory.node(ref)
            let range = ref..<ref + node.byteCount
            guard older.contains([range]) else { continue }
            found.append(range)
            if node.hasRefs {
                guard node.widthType == 0 else { throw FormatError(ref: ref, "node with refs has width type \(node.widthType)") }
                for i in 0..<node.count {
                    let v = node.unchecked(i)
                    if v > 0 && v & 1 == 0 { pending.append(Int(v)) }
                }
            }
        }
        found.sort { $0.lowerBound < $1.lowerBound }
        var out: [Range<Int>] = []
        for r in found {
            if let last = out.last, last.upperBound == r.lowerBound {
                out[out.count - 1] = last.lowerBound..<r.upperBound
            } else {
                out.append(r)
            }
        }
        return out
    }
}
