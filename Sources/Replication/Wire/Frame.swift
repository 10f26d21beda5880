import SharedStore

/// One message of the wire protocol, as `Documentation/wire-protocol.md` describes it.
///
/// ```
/// 0 length of the body, u32, little-endian   4 kind, u8   5 body
/// ```
/// A parser of untrusted bytes: every length is checked before it is used, and nothing larger than `byteCountMax` is gathered.
enum Frame: Equatable {
    enum Direction: UInt8 { case push = 1, pull = 2 }

    /// What a client wants, its first message.
    struct Hello: Equatable {
        var version: UInt16 = Frame.version
        var direction: Direction
        /// A replica that is not this source's, or was changed by somebody else, is set aside and replaced.
        var forces = false
        /// The source of a push is encrypted.
        var isEncrypted = false
        /// A pull ends when the replica is equal to the source.
        var isOnce = false
        /// The file at the server; empty where the server was started for one file.
        var name: String
        /// What the replica's state calls the source of a push.
        var source: String
    }

    /// The server's answer. In a pull it tells whether the source is encrypted.
    struct Welcome: Equatable {
        var version: UInt16 = Frame.version
        var isEncrypted = false
    }

    /// Where the replica stands; nil where an image is needed anyway.
    struct State: Equatable {
        var position: ReplicaPosition?
    }

    /// Asks whether the replica's bytes in `ranges` are those of the source's version.
    struct Check: Equatable {
        var snapshot: Snapshot
        var digest: Digest
        var ranges: [Range<Int>]
    }

    struct Checked: Equatable {
        var isEqual: Bool
        var line: MirrorLine
    }

    /// An image begins; the plain bytes of its ranges, one after the other, are its payload.
    struct Image: Equatable {
        var head: SegmentHead
        var ranges: [Range<Int>]
    }

    /// SHA-256 of the blocks of the payload that the receiver has already, from block `first` on; all zero for one that it has
    /// not.
    struct Have: Equatable {
        var first: Int
        var isLast: Bool
        var hashes: [Digest]
    }

    /// A piece of an image's payload.
    struct Piece: Equatable {
        var offset: Int
        var plainByteCount: Int
        var isCompressed: Bool
        var bytes: [UInt8]
    }

    case hello(Hello)
    case welcome(Welcome)
    case refusal(WireCode, String)
    case state(State)
    case check(Check)
    case checked(Checked)
    case image(Image)
    case have(Have)
    case piece(Piece)
    /// The chain hash of the image, over its whole payload.
    case imageEnd(Digest)
    /// A part of a segment; the last one says so.
    case segment(isLast: Bool, bytes: [UInt8])
    /// The replica stands at this version, durably.
    case acknowledgement(Snapshot, Digest)
    /// The receiver is at work, or waits, and says why.
    case wait(Obstacle?)
    /// Nothing new; the source's version. Answered by `pong`.
    case ping(UInt64)
    case pong
    /// The end, in good order.
    case bye

    /// Spoken by this program.
    static let version: UInt16 = 1
    static let headerByteCount = 5
    /// The longest body. An image's range table and the pieces of everything else fit.
    static let byteCountMax = 16 << 20
    /// Before the client has been let in, nothing longer is taken.
    static let helloByteCountMax = 8192
    static let nameByteCountMax = 1024
    static let textByteCountMax = 4096
    /// What one piece of an image or of a segment has at most.
    static let pieceByteCountMax = 1 << 20
    /// What blocks of an image are compared by.
    static let blockByteCount = 65_536
    private static let magic: UInt32 = 0x4E59_5352  // "RSYN"

    private var kind: UInt8 {
        switch self {
        case .hello: 1
        case .welcome: 2
        case .refusal: 3
        case .state: 4
        case .check: 5
        case .checked: 6
        case .image: 7
        case .have: 8
        case .piece: 9
        case .imageEnd: 10
        case .segment: 11
        case .acknowledgement: 12
        case .wait: 13
        case .ping: 14
        case .pong: 15
        case .bye: 16
        }
    }

    /// Header and body.
    func bytes() -> [UInt8] {
        var out = FrameWriter()
        switch self {
        case .hello(let hello):
            out.add(Frame.magic)
            out.add(hello.version)
            out.add(hello.direction.rawValue)
            out.add(UInt8((hello.forces ? 1 : 0) | (hello.isEncrypted ? 2 : 0) | (hello.isOnce ? 4 : 0)))
            out.add(hello.name)
            out.add(hello.source)
        case .welcome(let welcome):
            out.add(welcome.version)
            out.add(UInt8(welcome.isEncrypted ? 1 : 0))
        case .refusal(let code, let text):
            out.add(code.rawValue)
            out.add(String(decoding: text.utf8.prefix(Frame.textByteCountMax - 4), as: UTF8.self))
        case .state(let state):
            out.add(UInt8(state.position == nil ? 0 : state.position?.isNoted == true ? 3 : 1))
            if let position = state.position {
                out.add(position.snapshot)
                out.add(position.line)
            }
        case .check(let check):
            out.add(check.snapshot)
            out.add(check.digest)
            out.add(check.ranges)
        case .checked(let checked):
            out.add(UInt8(checked.isEqual ? 1 : 0))
            out.add(checked.line)
        case .image(let image):
            out.bytes += image.head.bytes()
            out.add(image.ranges)
        case .have(let have):
            out.add(UInt64(have.first))
            out.add(UInt8(have.isLast ? 1 : 0))
            for hash in have.hashes { out.add(hash) }
        case .piece(let piece):
            out.add(UInt64(piece.offset))
            out.add(UInt32(piece.plainByteCount))
            out.add(UInt8(piece.isCompressed ? 1 : 0))
            out.bytes += piece.bytes
        case .imageEnd(let digest): out.add(digest)
        case .segment(let isLast, let bytes):
            out.add(UInt8(isLast ? 1 : 0))
            out.bytes += bytes
        case .acknowledgement(let snapshot, let chain):
            out.add(snapshot)
            out.add(chain)
        case .wait(let obstacle):
            switch obstacle {
            case nil: out.add(UInt8(0))
            case .readers(let text)?:
                out.add(UInt8(1))
                out.add(String(decoding: text.utf8.prefix(Frame.textByteCountMax - 4), as: UTF8.self))
            case .space(let text)?:
                out.add(UInt8(2))
                out.add(String(decoding: text.utf8.prefix(Frame.textByteCountMax - 4), as: UTF8.self))
            }
        case .ping(let version): out.add(version)
        case .pong, .bye: break
        }
        return out.finish(kind)
    }

    /// The frame at the beginning of `bytes`, and how many bytes it takes; nil where it is not whole yet.
    ///
    /// - Parameter limit: the longest body that is taken.
    /// - Throws: `FrameError`.
    static func parse(_ bytes: UnsafeRawBufferPointer, limit: Int = byteCountMax) throws -> (frame: Frame, byteCount: Int)? {
        guard bytes.count >= headerByteCount else { return nil }
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self)))
        guard length <= limit else { throw FrameError.tooLarge(length, limit: limit) }
        guard bytes.count >= headerByteCount + length else { return nil }
        var reader = FrameReader(UnsafeRawBufferPointer(rebasing: bytes[headerByteCount..<headerByteCount + length]))
        let frame = try body(bytes[4], &reader)
        guard reader.isAtEnd else { throw FrameError.malformed("a message of kind \(bytes[4]) has more bytes than it says") }
        return (frame, headerByteCount + length)
    }

    private static func body(_ kind: UInt8, _ reader: inout FrameReader) throws -> Frame {
        switch kind {
        case 1:
            guard try reader.number(UInt32.self) == magic else {
                throw FrameError.malformed("the first message is none of this protocol")
            }
            let version = try reader.number(UInt16.self)
            guard let direction = Direction(rawValue: try reader.number(UInt8.self)) else {
                throw FrameError.malformed("an unknown direction")
            }
            let flags = try reader.number(UInt8.self)
            guard flags <= 7 else { throw FrameError.malformed("unknown flags \(flags) in the first message") }
            let name = try reader.text(max: nameByteCountMax), source = try reader.text(max: textByteCountMax)
            return .hello(
                Hello(
                    version: version, direction: direction, forces: flags & 1 != 0, isEncrypted: flags & 2 != 0,
                    isOnce: flags & 4 != 0, name: name,
                    source: source))
        case 2:
            let version = try reader.number(UInt16.self)
            return .welcome(Welcome(version: version, isEncrypted: try reader.flag()))
        case 3:
            let code = try reader.number(UInt16.self)
            return .refusal(WireCode(rawValue: code) ?? .malformed, try reader.text(max: textByteCountMax))
        case 4:
            switch try reader.number(UInt8.self) {
            case 0: return .state(State())
            case let value where value == 1 || value == 3:
                let snapshot = try reader.snapshot()
                return .state(State(position: ReplicaPosition(snapshot: snapshot, isNoted: value == 3, line: try reader.line())))
            default: throw FrameError.malformed("an unknown kind of state")
            }
        case 5:
            let snapshot = try reader.snapshot(), digest = try reader.digest()
            return .check(Check(snapshot: snapshot, digest: digest, ranges: try reader.ranges(logicalSize: snapshot.logicalSize)))
        case 6:
            let isEqual = try reader.flag()
            return .checked(Checked(isEqual: isEqual, line: try reader.line()))
        case 7:
            let head = try reader.head()
            guard head.flags.contains(.image), head.flags.isDisjoint(with: .storage) else {
                throw FrameError.malformed("an image that is none")
            }
            let ranges = try reader.ranges(logicalSize: head.this.logicalSize)
            guard ranges.reduce(0, { $0 + $1.count }) == head.plainByteCount else {
                throw FrameError.malformed("an image whose ranges do not fit")
            }
            return .image(Image(head: head, ranges: ranges))
        case 8:
            let first = try reader.size(), isLast = try reader.flag()
            return .have(Have(first: first, isLast: isLast, hashes: try reader.digests()))
        case 9:
            let offset = try reader.size(), count = Int(try reader.number(UInt32.self)), isCompressed = try reader.flag()
            let bytes = reader.rest()
            guard count <= pieceByteCountMax, bytes.count <= pieceByteCountMax, isCompressed || bytes.count == count else {
                throw FrameError.malformed("a piece of \(count) bytes in \(bytes.count)")
            }
            return .piece(Piece(offset: offset, plainByteCount: count, isCompressed: isCompressed, bytes: bytes))
        case 10: return .imageEnd(try reader.digest())
        case 11:
            let isLast = try reader.flag()
            return .segment(isLast: isLast, bytes: reader.rest())
        case 12:
            let snapshot = try reader.snapshot()
            return .acknowledgement(snapshot, try reader.digest())
        case 13:
            switch try reader.number(UInt8.self) {
            case 0: return .wait(nil)
            case 1: return .wait(.readers(try reader.text(max: textByteCountMax)))
            case 2: return .wait(.space(try reader.text(max: textByteCountMax)))
            default: throw FrameError.malformed("an unknown reason to wait")
            }
        case 14: return .ping(try reader.number(UInt64.self))
        case 15: return .pong
        case 16: return .bye
        default: throw FrameError.malformed("a message of unknown kind \(kind)")
        }
    }
}

enum FrameError: Error, Equatable {
    case tooLarge(Int, limit: Int)
    case malformed(String)
}

/// Writes the body of a frame.
private struct FrameWriter {
    var bytes = [UInt8](repeating: 0, count: Frame.headerByteCount)

    mutating func add<Number: FixedWidthInteger>(_ value: Number) { withUnsafeBytes(of: value.littleEndian) { bytes += $0 } }

    mutating func add(_ text: String) {
        let utf8 = Array(text.utf8.prefix(Int(UInt16.max)))
        add(UInt16(utf8.count))
        bytes += utf8
    }

    mutating func add(_ digest: Digest) { withUnsafeBytes(of: digest.words) { bytes += $0 } }

    mutating func add(_ snapshot: Snapshot) {
        add(snapshot.version)
        add(UInt64(snapshot.topRef))
        add(UInt64(snapshot.logicalSize))
    }

    mutating func add(_ line: MirrorLine) {
        add(line.lineage.0)
        add(line.lineage.1)
        add(line.sequence)
        add(line.chain)
    }

    mutating func add(_ ranges: [Range<Int>]) {
        add(UInt32(ranges.count))
        add(UInt64(ranges.reduce(0) { $0 + $1.count }))
        bytes += RangeTable.encode(ranges)
    }

    mutating func finish(_ kind: UInt8) -> [UInt8] {
        let length = UInt32(clamping: bytes.count - Frame.headerByteCount)
        withUnsafeBytes(of: length.littleEndian) { for (i, byte) in $0.enumerated() { bytes[i] = byte } }
        bytes[4] = kind
        return bytes
    }
}

/// Reads the body of a frame; nothing is read behind its end.
private struct FrameReader {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0
    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { at == bytes.count }

    private mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
        guard count <= bytes.count - at else { throw FrameError.malformed("a message is shorter than it says") }
        defer { at += count }
        return UnsafeRawBufferPointer(rebasing: bytes[at..<at + count])
    }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        Number(littleEndian: try take(MemoryLayout<Number>.size).loadUnaligned(as: Number.self))
    }

    mutating func flag() throws -> Bool {
        let value = try number(UInt8.self)
        guard value <= 1 else { throw FrameError.malformed("\(value) is neither yes nor no") }
        return value == 1
    }

    /// A number of bytes, or a place in a file.
    mutating func size() throws -> Int {
        let value = try number(UInt64.self)
        guard value <= 1 << 56 else { throw FrameError.malformed("a size of \(value)") }
        return Int(value)
    }

    /// Text without control characters, which would garble a log, a terminal or a file of lines.
    mutating func text(max: Int) throws -> String {
        let count = Int(try number(UInt16.self))
        guard count <= max else { throw FrameError.malformed("a text of \(count) bytes") }
        let utf8 = try take(count)
        guard let text = String(validating: utf8, as: UTF8.self) else { throw FrameError.malformed("a text that is no UTF-8") }
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }) else {
            throw FrameError.malformed("a text with control characters")
        }
        return text
    }

    mutating func digest() throws -> Digest {
        guard let start = try take(32).baseAddress else { throw FrameError.malformed("an empty hash") }
        return Digest(start)
    }

    mutating func snapshot() throws -> Snapshot {
        let version = try number(UInt64.self), topRef = try size(), logicalSize = try size()
        guard topRef % 8 == 0, logicalSize % 8 == 0, logicalSize >= 24, topRef == 0 || topRef >= 24 && topRef < logicalSize else {
            throw FrameError.malformed("a version whose top is at \(topRef) of \(logicalSize) bytes")
        }
        return Snapshot(version: version, topRef: topRef, logicalSize: logicalSize)
    }

    mutating func line() throws -> MirrorLine {
        let lineage = (try number(UInt64.self), try number(UInt64.self))
        let sequence = try number(UInt64.self)
        guard sequence < UInt64.max else { throw FrameError.malformed("a sequence number without a successor") }
        return MirrorLine(lineage: lineage, sequence: sequence, chain: try digest())
    }

    mutating func ranges(logicalSize: Int) throws -> [Range<Int>] {
        let count = Int(try number(UInt32.self)), byteCount = try size()
        guard count <= (bytes.count - at) / 2 else { throw FrameError.malformed("\(count) ranges in \(bytes.count - at) bytes") }
        do {
            return try RangeTable.decode(try take(bytes.count - at), count: count, logicalSize: logicalSize, byteCount: byteCount)
        } catch {
            throw FrameError.malformed("\(error)")
        }
    }

    mutating func head() throws -> SegmentHead {
        do { return try SegmentHead(try take(SegmentHead.byteCount)) } catch { throw FrameError.malformed("\(error)") }
    }

    mutating func digests() throws -> [Digest] {
        guard (bytes.count - at) % 32 == 0 else { throw FrameError.malformed("hashes that are not whole") }
        var out: [Digest] = []
        out.reserveCapacity((bytes.count - at) / 32)
        while at < bytes.count { out.append(try digest()) }
        return out
    }

    mutating func rest() -> [UInt8] {
        defer { at = bytes.count }
        return Array(bytes[at...])
    }
}
