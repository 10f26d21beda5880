import SharedStore

/// One object of an archive: a head, and behind it records, each a segment or a text.
///
/// ```
///   0 magic "RARC0001"   8 head length, u32   12 kind, u32   16 flags, u32 (1 = records are encrypted)   20 level, u32
///  24 sequence of the parent   32 sequence of this   40 this: version, top ref, logical size   64 time, ns   72 plain bytes, all records
///  80 chain hash of the parent   112 chain hash of this (0: that of the last record)   144 reserved   184 XXH3-64 of bytes 0..183
/// 192 records: length (u64), then so many bytes: a segment, or XXH3-64 and text; or nonce, ciphertext of that, tag
/// ```
/// All segments but the last have the flag `more`. An image's parent is zero.
struct ArchiveObjectHead: Equatable {
    enum Kind: UInt32 { case step = 0, image = 1, merged = 2, text = 3, content = 4 }
    static let byteCount = 192
    static let magic: UInt64 = 0x3130_3030_4352_4152  // "RARC0001"

    var kind = Kind.step
    var isEncrypted = false
    var level = 0
    var parentSequence: UInt64 = 0
    var sequence: UInt64 = 0
    var this = Snapshot(version: 0, topRef: 0, logicalSize: 0)
    var time: UInt64 = 0
    var plainByteCount = 0
    var parentChain = Digest()
    var chain = Digest()

    init() {}

    func bytes() -> [UInt8] {
        var out = [UInt8](repeating: 0, count: Self.byteCount)
        out.withUnsafeMutableBytes { p in
            guard let start = p.baseAddress else { return }
            p.storeBytes(of: Self.magic, as: UInt64.self)
            let halves: [(Int, UInt32)] = [
                (8, UInt32(Self.byteCount)), (12, kind.rawValue), (16, isEncrypted ? 1 : 0), (20, UInt32(level)),
            ]
            for (offset, value) in halves { p.storeBytes(of: value, toByteOffset: offset, as: UInt32.self) }
            let words: [(Int, UInt64)] = [
                (24, parentSequence), (32, sequence), (40, this.version), (48, UInt64(this.topRef)),
                (56, UInt64(this.logicalSize)), (64, time),
                (72, UInt64(plainByteCount)),
            ]
            for (offset, value) in words { p.storeBytes(of: value, toByteOffset: offset, as: UInt64.self) }
            parentChain.store(to: start + 80)
            chain.store(to: start + 112)
            p.storeBytes(of: Checksum.xxh3(UnsafeRawBufferPointer(rebasing: p[..<184])), toByteOffset: 184, as: UInt64.self)
        }
        return out
    }

    /// Nil where the bytes are no head, or a damaged one.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.byteCount else { return nil }
        let parsed = bytes.withUnsafeBytes { p -> ArchiveObjectHead? in
            guard let start = p.baseAddress else { return nil }
            func word(_ offset: Int) -> UInt64 { p.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
            func half(_ offset: Int) -> UInt32 { p.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
            guard word(0) == Self.magic, half(8) == Self.byteCount,
                Checksum.xxh3(UnsafeRawBufferPointer(rebasing: p[..<184])) == word(184), let kind = Kind(rawValue: half(12)),
                half(16) <= 1,
                half(20) <= ArchiveNames.levelMax, word(24) < 1 << 60, word(32) < 1 << 60, word(48) < 1 << 56, word(56) < 1 << 56,
                word(72) < UInt64(ArchiveEntry.byteCountMax)
            else { return nil }
            var head = ArchiveObjectHead()
            head.kind = kind
            head.isEncrypted = half(16) == 1
            head.level = Int(half(20))
            head.parentSequence = word(24)
            head.sequence = word(32)
            head.this = Snapshot(version: word(40), topRef: Int(word(48)), logicalSize: Int(word(56)))
            head.time = word(64)
            head.plainByteCount = Int(word(72))
            head.parentChain = Digest(start + 80)
            head.chain = Digest(start + 112)
            return head
        }
        guard let parsed else { return nil }
        self = parsed
    }
}

extension ArchiveObjectHead {
    /// Of the beginning of an object.
    init(_ read: ArchiveRead, _ place: any ArchivePlace, _ name: String) throws {
        if read.totalByteCount < Self.byteCount {
            throw ArchiveError.incomplete(place: place.description, object: name, byteCount: read.totalByteCount)
        }
        guard let head = ArchiveObjectHead(read.bytes) else {
            throw ArchiveError.damaged(
                place: place.description, object: name, reason: "its head is no head of an archive's object")
        }
        self = head
    }
}

/// Puts records behind a head, encrypted where there is a cipher.
struct ArchiveRecords {
    let name: String
    let cipher: ArchiveCipher?
    private var count = 0

    init(_ name: String, _ cipher: ArchiveCipher?) {
        self.name = name
        self.cipher = cipher
    }

    /// The record as it lies in the object, with its length.
    mutating func frame(_ plain: [UInt8]) throws -> [UInt8] {
        let record = try cipher?.seal(plain, for: "\(name) \(count)") ?? plain
        count += 1
        var out: [UInt8] = []
        out.reserveCapacity(record.count + 8)
        withUnsafeBytes(of: UInt64(record.count).littleEndian) { out.append(contentsOf: $0) }
        out += record
        return out
    }

    /// A text object, whole.
    static func text(_ text: String, name: String, sequence: UInt64, cipher: ArchiveCipher?) throws -> [UInt8] {
        var head = ArchiveObjectHead()
        head.kind = .text
        head.isEncrypted = cipher != nil
        head.sequence = sequence
        let content = Array(text.utf8)
        var record: [UInt8] = []
        withUnsafeBytes(of: content.withUnsafeBytes { Checksum.xxh3($0) }) { record.append(contentsOf: $0) }
        record += content
        head.plainByteCount = content.count
        var records = ArchiveRecords(name, cipher)
        return head.bytes() + (try records.frame(record))
    }
}

/// Reads an object from its beginning to its end, in large pieces: one read for a small one.
final class ArchiveObjectReader {
    let head: ArchiveObjectHead
    let totalByteCount: Int
    /// Reads that were asked of the place.
    private(set) var readCount = 1
    private let place: any ArchivePlace
    private let name: String
    private let cipher: ArchiveCipher?
    private var buffer: [UInt8]
    private var position = ArchiveObjectHead.byteCount
    /// Offset in the object of the buffer's first byte.
    private var bufferOffset = 0
    private var recordCount = 0

    static let pieceByteCount = 8 << 20
    /// A record's bytes, at most; nothing larger is allocated on behalf of a place.
    static let recordByteCountMax = 160 << 20

    /// Nil where there is nothing of that name.
    init?(_ place: any ArchivePlace, _ name: String, cipher: ArchiveCipher?, stored: [UInt8]? = nil) throws {
        let first: ArchiveRead
        if let stored {
            first = ArchiveRead(bytes: stored, totalByteCount: stored.count, tag: "")
        } else {
            guard let read = try place.get(name, from: 0, count: Self.pieceByteCount) else { return nil }
            first = read
        }
        let head = try ArchiveObjectHead(first, place, name)
        if head.isEncrypted, cipher == nil { throw ArchiveError.keyNeeded(place: place.description) }
        self.head = head
        self.place = place
        self.name = name
        self.cipher = head.isEncrypted ? cipher : nil
        buffer = first.bytes
        totalByteCount = first.totalByteCount
    }

    func damaged(_ reason: String) -> ArchiveError { .damaged(place: place.description, object: name, reason: reason) }

    private func take(_ count: Int) throws -> [UInt8] {
        if position + count > bufferOffset + buffer.count {
            let rest = buffer[(position - bufferOffset)...]
            bufferOffset = position
            buffer = Array(rest)
            while buffer.count < count {
                readCount += 1
                let wanted = max(Self.pieceByteCount, count - buffer.count)
                guard let more = try place.get(name, from: bufferOffset + buffer.count, count: wanted) else {
                    throw ArchiveError.missing(place: place.description, object: name)
                }
                if more.bytes.isEmpty {
                    throw ArchiveError.incomplete(
                        place: place.description, object: name, byteCount: bufferOffset + buffer.count)
                }
                buffer += more.bytes
            }
        }
        defer { position += count }
        return Array(buffer[(position - bufferOffset)..<(position - bufferOffset + count)])
    }

    var isAtEnd: Bool { position >= totalByteCount }

    func record() throws -> [UInt8] {
        let length = try take(8).withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
        guard length <= Self.recordByteCountMax else { throw damaged("record \(recordCount) of \(length) bytes") }
        let record = try take(Int(length))
        defer { recordCount += 1 }
        guard let cipher else { return record }
        do { return try cipher.open(record, for: "\(name) \(recordCount)") } catch let error as CipherFailure {
            throw damaged("record \(recordCount): \(error)")
        }
    }

    /// The text of a text object.
    func text() throws -> String {
        let record = try record()
        guard head.kind == .text, record.count >= 8, isAtEnd else { throw damaged("it holds no text") }
        let content = Array(record[8...])
        let sum = record.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        guard content.withUnsafeBytes({ Checksum.xxh3($0) }) == sum else { throw damaged("its checksum does not fit") }
        return String(decoding: content, as: UTF8.self)
    }

    /// The next segment.
    /// - Parameter prefix: gives the prefix that the segment's flags name.
    func segment(_ compressor: Compressor, prefix: (SegmentHead) throws -> [UInt8]) throws -> Segment {
        let bytes = try record()
        do {
            return try bytes.withUnsafeBytes { try Segment(encoded: $0, compressor: compressor, prefix: prefix) }
        } catch let error as SegmentError { throw damaged("\(error)") } catch let error as CompressionError {
            throw damaged("\(error)")
        }
    }
}
