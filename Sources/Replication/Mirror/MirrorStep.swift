import SharedStore

/// One step of a mirror: what a version of the source has more than the one that the replica stands at.
struct MirrorStep {
    /// V1: where the replica stands.
    let parent: Snapshot
    /// V1's free space; nil where the step came over a wire: the replica's own lists are the same ones.
    let parentExtents: FreeExtents?
    /// V1 in the source's session; nil where the step came over a wire.
    let parentHeld: HeldSnapshot?
    /// V2.
    let this: Snapshot
    /// Ascending, not touching: the used bytes of V2 that are free in V1.
    let ranges: [Range<Int>]
    /// Slot 7 of V2's top array, and the version before the oldest changeset of V2; nil where there is no history.
    let historyType: UInt8
    let historyBase: UInt64?
    let content: Content

    /// Where the bytes are.
    enum Content {
        /// V2, held live in the source's session.
        case held(HeldSnapshot)
        /// The bytes of all ranges, one after the other.
        case payload([UInt8])
    }

    /// The difference of two held versions, by their free lists.
    ///
    /// - Parameter checks: compare it with a walk of the new version (mirroring.md 2.3).
    /// - Throws: `MirrorError.sourceDamaged` where the lists contradict themselves or the walk.
    init(_ base: HeldSnapshot, _ next: HeldSnapshot, source: String, checks: Bool) throws {
        do {
            let older = try base.extents(), newer = try next.extents()
            ranges = older.difference(to: newer)
            if checks {
                let walked = try DifferenceWalk.ranges(memory: next.memory, older: older, newer: next.snapshot)
                // Leaked blocks are in use as far as the lists say; a node that the lists call free is damage.
                if ranges != walked, !FreeExtents.covers(ranges, walked) {
                    throw MirrorError.sourceDamaged(
                        source: source, reason: "version \(next.snapshot.version) has nodes in space that its lists call free")
                }
            }
            let top = try next.memory.node(next.snapshot.topRef)
            historyType = UInt8(clamping: try top.tagged(TopSlot.historyType))
            if historyType != 0 {
                let history = try HistoryReader(memory: next.memory, topRef: next.snapshot.topRef, version: next.snapshot.version)
                historyBase = history.base
            } else {
                historyBase = nil
            }
            parent = base.snapshot
            parentExtents = older
            parentHeld = base
            this = next.snapshot
            content = .held(next)
        } catch let error as FormatError {
            throw MirrorError.sourceDamaged(source: source, reason: "version \(next.snapshot.version): \(error)")
        }
    }

    /// A step that came as a segment, which was checked when it was decoded.
    init(_ segment: Segment) {
        parent = segment.head.parent
        parentExtents = nil
        parentHeld = nil
        this = segment.head.this
        ranges = segment.ranges
        historyType = segment.head.historyType
        historyBase = segment.head.historyType == 0 ? nil : segment.head.historyBase
        content = .payload(segment.payload)
    }

    var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }

    /// Hands over each range with its bytes, in order.
    ///
    /// - Throws: what `body` throws; `DecryptionError` where the source is encrypted and a page is damaged.
    func forEachRange(_ body: (Range<Int>, UnsafeRawBufferPointer) throws -> Void) throws {
        switch content {
        case .held(let held):
            try withExtendedLifetime(held) {
                for range in ranges {
                    let start = try held.memory.bytes(at: range.lowerBound, length: range.count)
                    try body(range, UnsafeRawBufferPointer(start: start, count: range.count))
                }
            }
        case .payload(let payload):
            try payload.withUnsafeBytes { bytes in
                var at = 0
                for range in ranges {
                    try body(range, UnsafeRawBufferPointer(rebasing: bytes[at..<at + range.count]))
                    at += range.count
                }
            }
        }
    }

    /// The head of the step as a segment, without lengths and chain hash.
    func head(following line: MirrorLine, seen: UInt64) -> SegmentHead {
        var head = SegmentHead()
        head.lineage = line.lineage
        head.sequence = line.sequence + 1
        head.parent = parent
        head.this = this
        head.historyType = historyType
        head.historyBase = historyBase ?? 0
        head.time = seen
        head.parentChain = line.chain
        return head
    }
}

/// What identifies a version of a replica, where numbers do not: the line of steps that led to it.
struct MirrorLine: Equatable, Sendable {
    /// Random, new with every image and where the way to a version is not known.
    var lineage: (UInt64, UInt64)
    /// Steps since the image.
    var sequence: UInt64
    var chain: Digest

    /// The beginning of a new line.
    static func new() -> MirrorLine {
        MirrorLine(lineage: (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max)), sequence: 0, chain: Digest())
    }

    static func == (a: MirrorLine, b: MirrorLine) -> Bool {
        a.lineage == b.lineage && a.sequence == b.sequence && a.chain == b.chain
    }
}
