import CShims
import SharedStore

/// One step of a mirror, from a parent version to the next one shipped, or an image without a parent: both the message on
/// the wire and the file of an archive (mirroring.md section 4).
///
/// ```
///   0 magic "RSEG0001"   8 head length, u32   12 flags, u32   16 lineage, 16 bytes   32 sequence number
///  40 parent: version, top ref, logical size   64 this: version, top ref, logical size   88 history base   96 time, ns
/// 104 format byte, history type, history schema (u16)   108 range count, u32   112 length of the range table
/// 120 payload length plain, stored   136 chain hash of the parent   168 chain hash of this   200 XXH3-128 of table + stored payload
/// 216 reserved   224 XXH3-64 of bytes 0..223   232 range table: (gap / 8, length / 8) as LEB128   then the payload
/// ```
/// The chain hash identifies a version (numbers alone do not): SHA-256 of the parent's chain, bytes 0..135 of the head with
/// compression flags and stored length zeroed, the range table, and the plain payload.
public struct SegmentHead: Equatable, Sendable {
    /// What kind of step it is, and how its payload is stored.
    public struct Flags: OptionSet, Hashable, Sendable {
        /// As it stands in the head.
        public let rawValue: UInt32
        /// A reader refuses bits that it does not know.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// There is no parent: the payload is a whole version.
        public static let image = Flags(rawValue: 1)
        /// The payload is stored by zstd; else it is plain.
        public static let compressed = Flags(rawValue: 2)
        /// The prefix is the parent's free lists and top array, as they lie there.
        public static let listsPrefix = Flags(rawValue: 4)
        /// The source's session gives no durability.
        public static let sourceNotDurable = Flags(rawValue: 8)
        /// The prefix is the plain payload of the segment before.
        public static let payloadPrefix = Flags(rawValue: 16)
        /// The step's ranges go on in the next segment, which has the same parent and version; only the last one completes it.
        /// Not to be applied singly.
        public static let more = Flags(rawValue: 32)
        static let known = Flags(rawValue: 63)
        static let storage: Flags = [.compressed, .listsPrefix, .payloadPrefix]
    }

    /// Of the head, without the range table.
    public static let byteCount = 232
    /// The eight letters `RSEG0001`, read as a little-endian number.
    public static let magic: UInt64 = 0x3130_3030_4745_5352  // "RSEG0001"

    /// Those of storage are set by whoever stores the payload.
    public var flags: Flags = []
    /// Random, new with every image, resynchronisation or promotion.
    public var lineage: (UInt64, UInt64) = (0, 0)
    /// Number in the lineage; the image has 0.
    public var sequence: UInt64 = 0
    /// All zero for an image.
    public var parent = Snapshot(version: 0, topRef: 0, logicalSize: 0)
    /// The version that the step leads to.
    public var this = Snapshot(version: 0, topRef: 0, logicalSize: 0)
    /// Version before the oldest change that this version's history holds.
    public var historyBase: UInt64 = 0
    /// Nanoseconds since 1970 when the daemon saw the version.
    public var time: UInt64 = 0
    /// The live format number of the file's header.
    public var format: UInt8 = 24
    /// What kind of history the version has, as the top array says (file-format-2 section 1).
    public var historyType: UInt8 = 0
    /// The form of that history.
    public var historySchema: UInt16 = 0
    /// `chain` of the step that led to the parent; all zero for an image.
    public var parentChain = Digest()
    /// What identifies the version that the step leads to; see the head of this file.
    public var chain = Digest()

    var rangeCount: UInt32 = 0
    var rangeTableByteCount = 0
    /// Of the payload as it lies in the file.
    public internal(set) var plainByteCount = 0
    /// Of the payload as it is stored; the same where it is not compressed.
    public internal(set) var storedByteCount = 0
    var contentChecksum: (UInt64, UInt64) = (0, 0)

    /// A head of nothing, to be filled in.
    public init() {}

    public static func == (a: SegmentHead, b: SegmentHead) -> Bool { a.bytes() == b.bytes() }

    /// The 232 bytes of the head.
    public func bytes() -> [UInt8] {
        var out = [UInt8](repeating: 0, count: Self.byteCount)
        out.withUnsafeMutableBytes { p in
            p.storeBytes(of: Self.magic, toByteOffset: 0, as: UInt64.self)
            p.storeBytes(of: UInt32(Self.byteCount), toByteOffset: 8, as: UInt32.self)
            p.storeBytes(of: flags.rawValue, toByteOffset: 12, as: UInt32.self)
            let words: [(Int, UInt64)] = [
                (16, lineage.0), (24, lineage.1), (32, sequence),
                (40, parent.version), (48, UInt64(parent.topRef)), (56, UInt64(parent.logicalSize)),
                (64, this.version), (72, UInt64(this.topRef)), (80, UInt64(this.logicalSize)),
                (88, historyBase), (96, time), (112, UInt64(rangeTableByteCount)),
                (120, UInt64(plainByteCount)), (128, UInt64(storedByteCount)),
                (200, contentChecksum.0), (208, contentChecksum.1),
            ]
            for (offset, word) in words { p.storeBytes(of: word, toByteOffset: offset, as: UInt64.self) }
            p[104] = format
            p[105] = historyType
            p.storeBytes(of: historySchema, toByteOffset: 106, as: UInt16.self)
            p.storeBytes(of: rangeCount, toByteOffset: 108, as: UInt32.self)
            parentChain.store(to: p.baseAddress! + 136)
            chain.store(to: p.baseAddress! + 168)
            p.storeBytes(of: Checksum.xxh3(UnsafeRawBufferPointer(rebasing: p[..<224])), toByteOffset: 224, as: UInt64.self)
        }
        return out
    }

    /// Parses and checks a head; nothing behind it is needed.
    public init(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count >= Self.byteCount else { throw SegmentError.truncated(needed: Self.byteCount, found: bytes.count) }
        let p = bytes.baseAddress!
        func word(_ offset: Int) -> UInt64 { p.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        func size(_ offset: Int, _ what: String) throws -> Int {
            let v = word(offset)
            guard v <= 1 << 56 else { throw SegmentError.malformed("\(what) of \(v)") }
            return Int(v)
        }
        guard word(0) == Self.magic else { throw SegmentError.malformed("no segment: the magic bytes are missing") }
        guard p.loadUnaligned(fromByteOffset: 8, as: UInt32.self) == Self.byteCount else {
            throw SegmentError.malformed("head of another length")
        }
        guard Checksum.xxh3(UnsafeRawBufferPointer(rebasing: bytes[..<224])) == word(224) else {
            throw SegmentError.checksum("head")
        }
        flags = Flags(rawValue: p.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        guard flags.isSubset(of: .known) else { throw SegmentError.malformed("unknown flags \(flags.rawValue)") }
        lineage = (word(16), word(24))
        sequence = word(32)
        parent = Snapshot(version: word(40), topRef: try size(48, "top ref"), logicalSize: try size(56, "logical size"))
        this = Snapshot(version: word(64), topRef: try size(72, "top ref"), logicalSize: try size(80, "logical size"))
        historyBase = word(88)
        time = word(96)
        format = bytes[104]
        historyType = bytes[105]
        historySchema = p.loadUnaligned(fromByteOffset: 106, as: UInt16.self)
        rangeCount = p.loadUnaligned(fromByteOffset: 108, as: UInt32.self)
        rangeTableByteCount = try size(112, "range table")
        plainByteCount = try size(120, "payload")
        storedByteCount = try size(128, "stored payload")
        parentChain = Digest(p + 136)
        chain = Digest(p + 168)
        contentChecksum = (word(200), word(208))
        guard rangeTableByteCount >= 2 * Int(rangeCount), rangeTableByteCount <= 20 * Int(rangeCount) else {
            throw SegmentError.malformed("range table of \(rangeTableByteCount) bytes for \(rangeCount) ranges")
        }
        guard plainByteCount <= this.logicalSize, flags.contains(.compressed) || storedByteCount == plainByteCount else {
            throw SegmentError.malformed("payload of \(plainByteCount) bytes, stored as \(storedByteCount)")
        }
        guard storedByteCount <= plainByteCount + plainByteCount / 128 + 4096 else {
            throw SegmentError.malformed("payload stored in more bytes than it has")
        }
        guard this.topRef % 8 == 0, this.topRef == 0 || (this.topRef >= 24 && this.topRef < this.logicalSize),
            this.logicalSize >= 24, this.logicalSize % 8 == 0
        else { throw SegmentError.malformed("top ref \(this.topRef) in \(this.logicalSize) bytes") }
        guard flags.contains(.image) || this.version > parent.version else {
            throw SegmentError.malformed("version \(this.version) after \(parent.version)")
        }
    }

    /// Bytes 0..135 as they enter the chain hash.
    func chainedBytes() -> [UInt8] {
        var head = self
        head.flags.subtract(.storage)
        head.storedByteCount = 0
        return Array(head.bytes()[..<136])
    }
}

/// What makes a segment unusable; the texts say what was found.
public enum SegmentError: Error, Equatable, Sendable, CustomStringConvertible {
    case truncated(needed: Int, found: Int)
    case malformed(String)
    case checksum(String)
    case tooLarge(byteCount: Int, limit: Int)

    public var description: String {
        switch self {
        case .truncated(let needed, let found): "segment is cut off: \(found) of \(needed) bytes"
        case .malformed(let what): "segment is malformed: \(what)"
        case .checksum(let what): "segment is damaged: the checksum of its \(what) does not fit"
        case .tooLarge(let n, let limit): "segment of \(n) bytes exceeds the limit of \(limit)"
        }
    }
}

/// A segment in memory: head, ranges, plain payload.
public struct Segment: Equatable, Sendable {
    /// Its lengths agree with `ranges` and `payload`.
    public var head: SegmentHead
    /// Ascending, not touching, multiples of 8, inside `[24, logical size)`.
    public var ranges: [Range<Int>]
    /// The bytes of the ranges, in order.
    public var payload: [UInt8]

    /// Seals head and content: lengths and chain hash are computed here.
    public init(head: SegmentHead, ranges: [Range<Int>], payload: [UInt8]) {
        self.head = head
        self.ranges = ranges
        self.payload = payload
        let table = RangeTable.encode(ranges)
        self.head.rangeCount = UInt32(ranges.count)
        self.head.rangeTableByteCount = table.count
        self.head.plainByteCount = payload.count
        self.head.storedByteCount = payload.count
        self.head.chain = Segment.chain(self.head, table: table) { hash in payload.withUnsafeBytes { hash.update($0) } }
    }

    /// The chain hash of a head whose lengths are set; `feed` hands over the plain payload.
    static func chain(_ head: SegmentHead, table: [UInt8], feed: (SHA256Hash) throws -> Void) rethrows -> Digest {
        let hash = SHA256Hash()
        withUnsafeBytes(of: head.parentChain.words) { hash.update($0) }
        head.chainedBytes().withUnsafeBytes { hash.update($0) }
        table.withUnsafeBytes { hash.update($0) }
        try feed(hash)
        return hash.finish()
    }

    /// The segment as it travels: compressed where that is shorter, against `prefix` where one is given.
    public func encoded(compressor: Compressor?, prefix: (kind: SegmentHead.Flags, bytes: [UInt8])? = nil) throws -> [UInt8] {
        var head = head
        let table = RangeTable.encode(ranges)
        var stored = payload
        head.flags.subtract(.storage)
        if let compressor, !payload.isEmpty {
            let compressed: [UInt8]
            if let prefix {
                compressed = try payload.withUnsafeBytes { p in
                    try prefix.bytes.withUnsafeBytes { try compressor.compress(p, prefix: $0) }
                }
            } else {
                compressed = try payload.withUnsafeBytes { try compressor.compress($0) }
            }
            if compressed.count < payload.count {
                stored = compressed
                head.flags.insert(.compressed)
                if let prefix { head.flags.insert(prefix.kind) }
            }
        }
        head.storedByteCount = stored.count
        let checksum = Checksum.Wide()
        table.withUnsafeBytes { checksum.update($0) }
        stored.withUnsafeBytes { checksum.update($0) }
        head.contentChecksum = checksum.finish()
        var out = head.bytes()
        out.reserveCapacity(out.count + table.count + stored.count)
        out += table
        out += stored
        return out
    }

    /// Bytes behind the head.
    public static func contentByteCount(_ head: SegmentHead) -> Int { head.rangeTableByteCount + head.storedByteCount }

    /// Largest payload that is held in memory as one piece; larger steps are shipped as an image.
    public static let payloadByteCountMax = 1 << 30

    /// Checks head, table and checksum, then the chain hash, before anything is believed (mirroring.md section 4).
    /// - Parameter prefix: gives the prefix that the head's flags name.
    public init(
        encoded bytes: UnsafeRawBufferPointer, compressor: Compressor, prefix: (SegmentHead) throws -> [UInt8] = { _ in [] }
    ) throws {
        let head = try SegmentHead(bytes)
        guard head.plainByteCount <= Self.payloadByteCountMax else {
            throw SegmentError.tooLarge(byteCount: head.plainByteCount, limit: Self.payloadByteCountMax)
        }
        let needed = SegmentHead.byteCount + Self.contentByteCount(head)
        guard bytes.count == needed else { throw SegmentError.truncated(needed: needed, found: bytes.count) }
        let content = UnsafeRawBufferPointer(rebasing: bytes[SegmentHead.byteCount...])
        let checksum = Checksum.Wide()
        checksum.update(content)
        guard checksum.finish() == head.contentChecksum else { throw SegmentError.checksum("content") }
        let table = UnsafeRawBufferPointer(rebasing: content[..<head.rangeTableByteCount])
        ranges = try RangeTable.decode(
            table, count: Int(head.rangeCount), logicalSize: head.this.logicalSize, byteCount: head.plainByteCount)
        let stored = UnsafeRawBufferPointer(rebasing: content[head.rangeTableByteCount...])
        if head.flags.contains(.compressed) {
            if head.flags.isDisjoint(with: [.listsPrefix, .payloadPrefix]) {
                payload = try compressor.decompress(stored, byteCount: head.plainByteCount)
            } else {
                payload = try prefix(head).withUnsafeBytes {
                    try compressor.decompress(stored, byteCount: head.plainByteCount, prefix: $0)
                }
            }
        } else {
            payload = Array(stored)
        }
        let plain = payload
        guard Segment.chain(head, table: Array(table), feed: { hash in plain.withUnsafeBytes { hash.update($0) } }) == head.chain
        else { throw SegmentError.checksum("chain") }
        var normal = head
        normal.flags.subtract(.storage)
        normal.storedByteCount = normal.plainByteCount
        normal.contentChecksum = (0, 0)
        self.head = normal
    }
}

/// The range table: per range the gap to the end of the one before and the length, both divided by 8, as LEB128.
enum RangeTable {
    static func encode(_ ranges: [Range<Int>]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(ranges.count * 4)
        var end = 0
        for r in ranges {
            append((r.lowerBound - end) >> 3, to: &out)
            append(r.count >> 3, to: &out)
            end = r.upperBound
        }
        return out
    }

    private static func append(_ value: Int, to out: inout [UInt8]) {
        var v = UInt(value)
        while v >= 0x80 {
            out.append(UInt8(truncatingIfNeeded: v) | 0x80)
            v >>= 7
        }
        out.append(UInt8(v))
    }

    static func decode(_ bytes: UnsafeRawBufferPointer, count: Int, logicalSize: Int, byteCount: Int) throws -> [Range<Int>] {
        var at = 0
        func number() throws -> Int {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while true {
                guard at < bytes.count, shift < 56 else { throw SegmentError.malformed("range table is cut off") }
                let byte = bytes[at]
                at += 1
                value |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { return Int(value) }
                shift += 7
            }
        }
        var ranges: [Range<Int>] = []
        ranges.reserveCapacity(count)
        var end = 0
        var total = 0
        for i in 0..<count {
            let gap = try number(), length = try number()
            guard gap <= logicalSize >> 3, length > 0, length <= logicalSize >> 3 else {
                throw SegmentError.malformed("range \(i) is out of bounds")
            }
            let low = end + gap << 3
            let high = low + length << 3
            guard i == 0 ? low >= 24 : gap > 0, high <= logicalSize else {
                throw SegmentError.malformed("range \(i), [\(low), \(high)), is out of order or bounds")
            }
            ranges.append(low..<high)
            total += high - low
            end = high
        }
        guard at == bytes.count, total == byteCount else {
            throw SegmentError.malformed("ranges of \(total) bytes for a payload of \(byteCount)")
        }
        return ranges
    }
}
