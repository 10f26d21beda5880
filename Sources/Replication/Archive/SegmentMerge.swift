import SharedStore

/// Some steps that follow each other, as one (only for what nobody has open: mirroring.md section 4).
///
/// The bytes are put into memory in order, so that later ones cover earlier ones, and of all places that were written only those
/// are taken that the last version uses. The first step must be readable by itself; the others may be compressed against the
/// lists of the one before, which the one before has written.
struct SegmentMerge {
    let first: ArchiveObjectHead
    let last: ArchiveObjectHead
    let parent: Snapshot
    let history: (type: UInt8, base: UInt64)
    let chain: Digest
    let ranges: [Range<Int>]
    let image: SparseImage

    /// Nil where one of the steps is missing or does not follow the one before, or where they have more than `limit` bytes.
    init?(
        _ names: [String], _ place: any ArchivePlace, _ cipher: ArchiveCipher?, _ compressor: Compressor, limit: Int,
        stored: (String) -> [UInt8]?
    ) throws {
        var heads: [ArchiveObjectHead] = []
        var image: SparseImage?
        var written: [Range<Int>] = []
        var parent: Snapshot?
        var end = Snapshot(version: 0, topRef: 0, logicalSize: 0)
        var history: (type: UInt8, base: UInt64) = (0, 0)
        var total = 0
        var chain = Digest()
        for name in names {
            guard let reader = try ArchiveObjectReader(place, name, cipher: cipher, stored: stored(name)) else { return nil }
            total &+= reader.head.plainByteCount
            if total > limit { return nil }
            if let before = heads.last, reader.head.parentSequence != before.sequence || reader.head.parentChain != chain {
                return nil
            }
            heads.append(reader.head)
            var hasMore = true
            let memory = image?.memory
            while hasMore {
                let segment = try reader.segment(compressor) { head in
                    guard let memory, let bytes = try ListsPrefix.bytes(head.parent, ListsPrefix.reading(memory)) else {
                        throw reader.damaged("it is compressed against something that is not there")
                    }
                    return bytes
                }
                // Address space for all that follows: a step never makes a file many times as long as the one before.
                let target = try image ?? SparseImage(byteCount: max(segment.head.this.logicalSize, 1 << 30) * 4)
                image = target
                if !target.store(segment) { return nil }
                written += segment.ranges
                parent = parent ?? segment.head.parent
                end = segment.head.this
                history = (segment.head.historyType, segment.head.historyBase)
                chain = segment.head.chain
                hasMore = segment.head.flags.contains(.more)
            }
            if reader.head.chain != Digest() { chain = reader.head.chain }
            guard end == reader.head.this else { throw reader.damaged("its segments lead to another version than its head says") }
        }
        guard let first = heads.first, let last = heads.last, let parent, let image else { return nil }
        self.first = first
        self.last = last
        self.parent = parent
        self.chain = chain
        self.history = history
        self.image = image
        let union = RangeSet.union(written)
        ranges = try Self.used(end, image, union).map { RangeSet.intersection(union, $0) } ?? union
    }

    /// What the last version uses, where its lists are among what was written.
    private static func used(_ end: Snapshot, _ image: SparseImage, _ written: [Range<Int>]) throws -> [Range<Int>]? {
        guard FreeExtents.covers(written, [end.topRef..<end.topRef + 8]) else { return nil }
        guard let lists = try? ListsPrefix.ranges(end, ListsPrefix.reading(image.memory)),
            FreeExtents.covers(written, RangeSet.union(lists))
        else { return nil }
        return try FreeExtents(memory: image.memory, snapshot: end).usedRanges()
    }
}
