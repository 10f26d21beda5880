import CXXHash
import SharedStore
import SystemCalls

/// What a version holds, as one number for each block of 64 KiB: two versions are compared without having both at hand
/// (mirroring.md 8.3).
///
/// A block's hash is XXH3-64 over the parts of it that are in use, each with its place and length: free space, whose content
/// means nothing, does not count. Where two versions' hashes of a block are equal, the used bytes there are the same; for damage
/// and chance, not against somebody who makes them equal on purpose.
public struct BlockHashes: Equatable, Sendable {
    /// Bytes of the file for which there is one hash.
    public static let blockByteCount = 65_536
    /// The version that was hashed.
    public var snapshot: Snapshot
    /// By number of the block; the last block may be shorter.
    public var hashes: [UInt64]

    /// Hashes a version that is held.
    ///
    /// - Throws: `FormatError` where its free lists are damaged, what reading throws.
    /// - Parameter givesBack: see `Memory.giveBack`.
    public init(memory: Memory, snapshot: Snapshot, extents: FreeExtents, givesBack: Bool = false) throws {
        self.snapshot = snapshot
        let count = Self.blockCount(snapshot.logicalSize)
        hashes = []
        hashes.reserveCapacity(count)
        try Self.hash(memory, extents.usedRanges(), blocks: 0..<count, givesBack: givesBack) { hashes.append($1) }
    }

    init(snapshot: Snapshot, hashes: [UInt64]) {
        self.snapshot = snapshot
        self.hashes = hashes
    }

    static func blockCount(_ logicalSize: Int) -> Int { (logicalSize + blockByteCount - 1) / blockByteCount }

    /// Hashes the blocks of `blocks` in ascending order.
    /// - Parameter used: ascending, not touching.
    static func hash(
        _ memory: Memory, _ used: [Range<Int>], blocks: some Sequence<Int>, givesBack: Bool = false,
        _ body: (_ block: Int, _ hash: UInt64) -> Void
    ) throws {
        let hasher = Checksum.Narrow()
        var i = 0
        for block in blocks {
            let low = block * blockByteCount, high = low + blockByteCount
            while i < used.count && used[i].upperBound <= low { i += 1 }
            hasher.reset()
            var j = i
            while j < used.count && used[j].lowerBound < high {
                let from = max(low, used[j].lowerBound), to = min(high, used[j].upperBound)
                withUnsafeBytes(of: (UInt64(from), UInt64(to))) { hasher.update($0) }
                hasher.update(UnsafeRawBufferPointer(start: try memory.bytes(at: from, length: to - from), count: to - from))
                if givesBack { memory.giveBack(from..<to) }
                j += 1
            }
            body(block, hasher.finish())
        }
    }

    // MARK: As bytes

    private static let magic: UInt64 = 0x3130_3030_4853_4252  // "RBSH0001"

    /// magic, version, top ref, logical size, count, the hashes, XXH3-64 of all before; little-endian words.
    public func encoded() -> [UInt8] {
        let words =
            [Self.magic, snapshot.version, UInt64(snapshot.topRef), UInt64(snapshot.logicalSize), UInt64(hashes.count)] + hashes
        var out = words.withUnsafeBytes { Array($0) }
        let sum = out.withUnsafeBytes { Checksum.xxh3($0) }
        withUnsafeBytes(of: sum) { out.append(contentsOf: $0) }
        return out
    }

    /// Nil where the bytes are not what `encoded` gives.
    public init?(encoded bytes: [UInt8]) {
        guard bytes.count >= 48, bytes.count % 8 == 0 else { return nil }
        let words = bytes.withUnsafeBytes { p in
            (0..<bytes.count / 8).map { p.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
        }
        let sum = bytes.withUnsafeBytes { Checksum.xxh3(UnsafeRawBufferPointer(rebasing: $0[..<(bytes.count - 8)])) }
        guard words[0] == Self.magic, words[words.count - 1] == sum, words[4] == UInt64(words.count - 6), words[2] < 1 << 56,
            words[3] < 1 << 56,
            Self.blockCount(Int(words[3])) == words.count - 6
        else { return nil }
        snapshot = Snapshot(version: words[1], topRef: Int(words[2]), logicalSize: Int(words[3]))
        hashes = Array(words[5..<(words.count - 1)])
    }
}

/// The difference of two versions by content, for when no free list tells it: the older one is held by nobody any more.
///
/// The result must never be applied to a file that somebody has open: without a hold on the older version new bytes may lie on
/// live bytes of it. It goes into a new file, which replaces the old one when nobody is there.
public enum ContentDifference {
    /// The used bytes of a version that a holder of another one, known by its hashes, lacks.
    ///
    /// - Parameters:
    ///   - older: hashes of what the other side has.
    ///   - dirty: blocks in which the other side's version differs from `older`; they are shipped in any case.
    /// - Returns: ascending ranges that do not touch, and the hashes of the version itself.
    public static func ranges(
        memory: Memory, snapshot: Snapshot, extents: FreeExtents, against older: BlockHashes, dirty: Set<Int> = []
    ) throws -> (ranges: [Range<Int>], hashes: BlockHashes) {
        let fresh = try BlockHashes(memory: memory, snapshot: snapshot, extents: extents)
        var differing: [Range<Int>] = []
        for block in fresh.hashes.indices
        where block >= older.hashes.count || dirty.contains(block) || fresh.hashes[block] != older.hashes[block] {
            let low = block * BlockHashes.blockByteCount
            if let last = differing.last, last.upperBound == low {
                differing[differing.count - 1] = last.lowerBound..<low + BlockHashes.blockByteCount
            } else {
                differing.append(low..<low + BlockHashes.blockByteCount)
            }
        }
        return (RangeSet.intersection(extents.usedRanges(), differing), fresh)
    }
}

/// Hashes of an older version, and the blocks that have changed since: kept up to date at no cost while steps are shipped.
struct TrackedHashes {
    private(set) var hashes: BlockHashes
    private(set) var dirty: Set<Int> = []

    init(_ hashes: BlockHashes) { self.hashes = hashes }

    /// A step was made: blocks with new bytes, and those in which some are free now.
    mutating func note(_ added: [Range<Int>], freed: [Range<Int>]) {
        for range in added { mark(range) }
        for range in freed { mark(range) }
    }

    private mutating func mark(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        for block in range.lowerBound / BlockHashes.blockByteCount...(range.upperBound - 1) / BlockHashes.blockByteCount {
            dirty.insert(block)
        }
    }

    /// Hashes anew what has changed. `memory` shows the version that the last step led to.
    mutating func refresh(memory: Memory, snapshot: Snapshot, extents: FreeExtents) throws {
        let count = BlockHashes.blockCount(snapshot.logicalSize)
        var fresh = Array(hashes.hashes.prefix(count))
        let known = fresh.count
        if count > known { fresh += [UInt64](repeating: 0, count: count - known) }
        let border = min(hashes.snapshot.logicalSize, snapshot.logicalSize) / BlockHashes.blockByteCount
        let blocks = (0..<count).filter { $0 >= known || $0 >= border || dirty.contains($0) }
        try BlockHashes.hash(memory, extents.usedRanges(), blocks: blocks) { fresh[$0] = $1 }
        hashes = BlockHashes(snapshot: snapshot, hashes: fresh)
        dirty = []
    }
}

extension ContentDifference {
    /// Makes a file of an older file and a difference: every byte that the version uses comes from the one or the other. Synced,
    /// and under a name of its own: whoever calls this gives it the old one's name when nobody has that open.
    ///
    /// - Parameters:
    ///   - path: must not exist.
    ///   - older: the file whose hashes the difference was made against; nobody may write to it meanwhile.
    ///   - ranges: as `ranges` gave them; `bytes` hands over the content of one of them.
    ///   - checking: hashes of the version, to be compared with what came out; nil to believe it.
    /// - Throws: `ArchiveError.unsound` where the result has other hashes: the older file is not what was hashed. No file is left
    ///   then.
    public static func makeFile(
        _ path: String, from older: String, snapshot: Snapshot, ranges: [Range<Int>], checking expected: BlockHashes? = nil,
        bytes: (Range<Int>) throws -> UnsafeRawBufferPointer
    ) throws {
        let source = try PlainFile.open(older, writable: false)
        defer { source.close() }
        let file = try PlainFile.createExclusively(path)
        do {
            defer { file.close() }
            let size = RestoredFile.physicalSize(snapshot)
            try file.preallocate(to: size)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
            defer { buffer.deallocate() }
            var at = FileHeader.byteCount
            while at < size {
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, size - at)])
                let count = try source.read(into: part, at: at)
                if count == 0 { break }
                try file.write(UnsafeRawBufferPointer(rebasing: part[..<count]), at: at)
                at += count
            }
            for range in ranges { try file.write(bytes(range), at: range.lowerBound) }
            try RestoredFile.writeHeader(of: snapshot, to: file)
            try SystemCalls.sync(file.descriptor, path: path)
            if let expected {
                let mapping = try FileMapping.open(path: path)
                let extents = try FreeExtents(memory: mapping.memory, snapshot: snapshot)
                guard try BlockHashes(memory: mapping.memory, snapshot: snapshot, extents: extents).hashes == expected.hashes
                else {
                    throw ArchiveError.unsound(
                        path: path, reason: "\(older) is not the file that the difference was made against")
                }
            }
        } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
    }
}
