import Glibc
import SharedStore
import SystemCalls

/// An image on its way: the payload, cut into blocks, of which only those travel that the receiver has not.
///
/// A block is a stretch of the payload, that is of the used bytes of the version in the order of their places; since both sides
/// know the ranges, it is the same bytes of the file on both sides, and what lies in free space is never compared.
struct ImageSender {
    let head: SegmentHead
    let ranges: [Range<Int>]
    /// Hashes that the receiver has told.
    var theirs: [Digest] = []
    private let held: HeldSnapshot
    private let options: Mirror.Options
    private let compressor: Compressor

    init(_ held: HeldSnapshot, _ extents: FreeExtents, _ options: Mirror.Options, _ compressor: Compressor) {
        self.held = held
        self.options = options
        self.compressor = compressor
        ranges = extents.usedRanges()
        var head = SegmentHead()
        head.flags = .image
        head.lineage = MirrorLine.new().lineage
        head.this = held.snapshot
        head.time = UInt64(SystemCalls.realTimeNanoseconds())
        head.rangeCount = UInt32(clamping: ranges.count)
        head.rangeTableByteCount = RangeTable.encode(ranges).count
        head.plainByteCount = extents.usedByteCount
        head.storedByteCount = head.plainByteCount
        self.head = head
    }

    var blockCount: Int { (head.plainByteCount + Frame.blockByteCount - 1) / Frame.blockByteCount }

    /// Sends what the receiver has not, and the end.
    ///
    /// - Returns: the chain hash of the image; nil where it was stopped.
    func send(over channel: FrameChannel) throws -> Digest? {
        var block: [UInt8] = []
        block.reserveCapacity(Frame.blockByteCount)
        var piece: [UInt8] = []
        piece.reserveCapacity(Frame.pieceByteCountMax)
        var pieceOffset = 0, offset = 0
        func flush() throws {
            if piece.isEmpty { return }
            let compressed = try piece.withUnsafeBytes { try compressor.compress($0) }
            let isSmaller = compressed.count < piece.count
            try channel.send(
                .piece(
                    Frame.Piece(
                        offset: pieceOffset, plainByteCount: piece.count, isCompressed: isSmaller,
                        bytes: isSmaller ? compressed : piece)))
            piece.removeAll(keepingCapacity: true)
            KillPoint.reach("wire.piece-sent")
        }
        func endBlock() throws {
            let index = offset / Frame.blockByteCount
            let isThere = index < theirs.count && ImageBlocks.hash(block) == theirs[index]
            if !isThere {
                if piece.isEmpty { pieceOffset = offset }
                piece += block
            }
            if isThere || piece.count + Frame.blockByteCount > Frame.pieceByteCountMax { try flush() }
            offset += block.count
            block.removeAll(keepingCapacity: true)
            try options.onProgress(Mirror.Progress(bytesDone: offset, bytesTotal: head.plainByteCount))
            // Where all is there nothing is said for a long time; the other side must not think us dead.
            if SystemCalls.monotonicNanoseconds() - channel.lastSent > Int64(FrameChannel.keepAliveSeconds) * 500_000_000 {
                try channel.send(.ping(head.this.version))
            }
        }
        let chain = try Segment.chain(head, table: RangeTable.encode(ranges)) { hash in
            for range in ranges {
                var at = range.lowerBound
                while at < range.upperBound {
                    let count = min(Frame.blockByteCount - block.count, range.upperBound - at)
                    let bytes = UnsafeRawBufferPointer(start: try held.memory.bytes(at: at, length: count), count: count)
                    hash.update(bytes)
                    block += bytes
                    held.memory.giveBack(at..<at + count)
                    at += count
                    if block.count == Frame.blockByteCount { try endBlock() }
                }
                if channel.isStopped() { throw WireError.stopped }
            }
            if !block.isEmpty { try endBlock() }
            try flush()
        }
        try channel.send(.imageEnd(chain))
        return chain
    }
}

enum ImageBlocks {
    static func hash(_ bytes: [UInt8]) -> Digest {
        let hash = SHA256Hash()
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.finish()
    }
}

/// The receiver's side of an image: a file beside the replica that is filled with what differs, and takes the replica's place
/// when it is whole and its hash is right.
///
/// The file begins as what an earlier attempt has left, or as a copy of the old replica. It stays when the connection breaks, so
/// the next attempt sends only what is missing. Crash argument: as for `MirrorImage`.
final class ImageReceiver {
    let image: Frame.Image
    let path: String
    private let file: FileBackend
    private let descriptor: SystemCalls.Descriptor
    /// Where in the payload each range begins.
    private let starts: [Int]
    private let key: EncryptionKey?
    private let compressor: Compressor
    /// There may be bytes of the image in the file already.
    let hasContent: Bool

    /// - Throws: `SystemError`, for example where there is no room.
    init(_ image: Frame.Image, replica: String, standing: Mirror.Standing, key: EncryptionKey?, compressor: Compressor) throws {
        self.image = image
        self.key = key
        self.compressor = compressor
        path = MirrorImage.temporaryPath(replica)
        var starts: [Int] = []
        starts.reserveCapacity(image.ranges.count)
        var sum = 0
        for range in image.ranges {
            starts.append(sum)
            sum += range.count
        }
        self.starts = starts
        // What an earlier attempt has left has one name; anything else is not written to.
        let left = try? SystemCalls.linkStatus(path: path)
        let existed = left.map { $0.isRegularFile && $0.linkCount == 1 } ?? false
        descriptor = try existed ? SideFile.open(path, O_RDWR) : SideFile.create(path)
        let fromReplica = !existed && standing == .ours && ImageReceiver.copy(replica, to: descriptor, path)
        hasContent = existed || fromReplica
        file = MirrorImage.backend(descriptor, path, key)
        do {
            let page = SystemCalls.pageSize
            let size = max(page, (image.head.this.logicalSize + page - 1) / page * page)
            if try file.size() > size { try file.truncate(to: size) }
            try file.preallocate(to: size)
        } catch {
            file.close()
            try? SystemCalls.unlink(path)
            throw error
        }
    }

    deinit { file.close() }

    /// A clone where the file system can, else a copy; false where it failed, and the file is empty then.
    private static func copy(_ from: String, to descriptor: SystemCalls.Descriptor, _ path: String) -> Bool {
        guard let source = try? SystemCalls.open(from, O_RDONLY) else { return false }
        defer { SystemCalls.close(source) }
        if SystemCalls.clone(source, to: descriptor) { return true }
        var at = 0
        do {
            try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { space in
                while case let count = try SystemCalls.read(source, into: space, at: at, path: from), count > 0 {
                    try SystemCalls.write(descriptor, UnsafeRawBufferPointer(rebasing: space[..<count]), at: at, path: path)
                    at += count
                }
            }
            return true
        } catch {
            try? SystemCalls.truncate(descriptor, to: 0, path: path)
            return false
        }
    }

    /// Hands over the places of a stretch of the payload, in order.
    private func forEachPlace(_ offset: Int, _ count: Int, _ body: (_ position: Int, _ at: Int, _ count: Int) throws -> Void)
        rethrows
    {
        var low = 0, high = starts.count
        while low < high {
            let middle = (low + high) / 2
            if starts[middle] <= offset { low = middle + 1 } else { high = middle }
        }
        var index = low - 1
        var at = 0
        while at < count, index >= 0, index < starts.count {
            let within = offset + at - starts[index]
            let part = min(count - at, image.ranges[index].count - within)
            try body(image.ranges[index].lowerBound + within, at, part)
            at += part
            index += 1
        }
    }

    /// Hashes of all blocks as they are in the file now; all zero for what cannot be read.
    ///
    /// - Parameter body: gets them piece by piece.
    func hashes(_ body: (_ first: Int, _ isLast: Bool, [Digest]) throws -> Void) throws {
        let total = image.head.plainByteCount
        guard hasContent else { return try body(0, true, []) }
        var out: [Digest] = []
        var first = 0, offset = 0
        var block = [UInt8](repeating: 0, count: Frame.blockByteCount)
        while offset < total {
            let count = min(Frame.blockByteCount, total - offset)
            if block.count != count { block = [UInt8](repeating: 0, count: count) }
            let isRead = (try? read(offset, into: &block)) != nil
            out.append(isRead ? ImageBlocks.hash(block) : Digest())
            offset += count
            if out.count == Self.hashesAtOnce {
                try body(first, offset == total, out)
                first += out.count
                out = []
                if offset == total { return }
            }
        }
        try body(first, true, out)
    }

    private static let hashesAtOnce = 8192

    private func read(_ offset: Int, into block: inout [UInt8]) throws {
        try block.withUnsafeMutableBytes { space in
            try forEachPlace(offset, space.count) { position, at, count in
                let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: space[at..<at + count]), at: position)
                if read != count { throw FormatError(ref: position, "the file ends here") }
            }
        }
    }

    /// - Throws: `FrameError` where the piece does not lie in the payload.
    func put(_ piece: Frame.Piece) throws {
        let total = image.head.plainByteCount
        guard piece.offset <= total, piece.plainByteCount <= total - piece.offset else {
            throw FrameError.malformed("a piece of \(piece.plainByteCount) bytes at \(piece.offset) of \(total)")
        }
        let plain =
            piece.isCompressed
            ? try piece.bytes.withUnsafeBytes { try compressor.decompress($0, byteCount: piece.plainByteCount) } : piece.bytes
        try plain.withUnsafeBytes { bytes in
            try forEachPlace(piece.offset, bytes.count) { position, at, count in
                try file.write(UnsafeRawBufferPointer(rebasing: bytes[at..<at + count]), at: position)
            }
        }
        try file.flush()
        KillPoint.reach("wire.piece-written")
    }

    /// Reads the whole image, compares its hash, and makes it a database file.
    ///
    /// - Parameter tick: called now and then.
    /// - Returns: false where the hash is another one; the file is gone then.
    func finish(_ expected: Digest, tick: () throws -> Void) throws -> Bool {
        let chain = try Segment.chain(image.head, table: RangeTable.encode(image.ranges)) { hash in
            var block = [UInt8](repeating: 0, count: Frame.blockByteCount)
            var offset = 0
            while offset < image.head.plainByteCount {
                let count = min(Frame.blockByteCount, image.head.plainByteCount - offset)
                if block.count != count { block = [UInt8](repeating: 0, count: count) }
                try read(offset, into: &block)
                block.withUnsafeBytes { hash.update($0) }
                offset += count
                try tick()
            }
        }
        guard chain == expected else {
            discard()
            return false
        }
        try MirrorImage.writeHeader(image.head.this, to: file)
        try SystemCalls.sync(descriptor, path: path)
        file.close()
        KillPoint.reach("wire.image-whole")
        return true
    }

    func discard() {
        file.close()
        try? SystemCalls.unlink(path)
    }
}
