import Glibc
import SharedStore
import SystemCalls

/// The sender's side of the wire: a replica at the other end of a stream.
///
/// One message is under way at a time: a step is sent when the one before was acknowledged, so that V1 and V2 are all that the
/// source holds, and a slow receiver makes steps larger instead of more. TCP, or the pipe, holds back a sender that is too fast.
final class RemoteSink: MirrorSink {
    let name: String
    private let open: () throws -> FrameChannel
    /// False where whoever made the channel says farewell.
    private let closesChannel: Bool
    private let options: Mirror.Options
    private let compressor = Compressor()
    private var channel: FrameChannel?
    private(set) var line: MirrorLine?
    var hasReplica: Bool { false }
    var descriptor: Int32? { channel?.descriptor }
    var lookInterval: Int32 { Int32(FrameChannel.keepAliveSeconds) * 1000 }
    var isStopped: () -> Bool = { false } {
        didSet {
            channel?.isStopped = isStopped
            stop?.isStopped = isStopped
        }
    }
    private let stop: StopFlag?

    /// - Parameter open: makes a channel over which the receiver has been greeted.
    init(
        name: String, options: Mirror.Options, closesChannel: Bool = true, stop: StopFlag? = nil,
        open: @escaping () throws -> FrameChannel
    ) {
        self.name = name
        self.options = options
        self.closesChannel = closesChannel
        self.stop = stop
        self.open = open
    }

    private func opened() throws -> FrameChannel {
        guard let channel else { throw WireError.closed(peer: name, reason: "it was closed here") }
        return channel
    }

    func connect() throws -> ReplicaPosition? {
        disconnect()
        let channel = try open()
        self.channel = channel
        channel.isStopped = isStopped
        let frame = try channel.next()
        guard case .state(let state) = frame else { throw channel.unexpected(frame) }
        line = state.position?.line
        KillPoint.reach("wire.connected")
        return state.position
    }

    func disconnect() {
        if closesChannel { channel?.close() }
        channel = nil
    }

    /// The answer to what was sent, while the receiver may tell why it takes time; nil where the waiting was given up.
    private func answer(_ pause: (Int32, Obstacle?) throws -> Bool) throws -> Frame? {
        let channel = try opened()
        let begin = SystemCalls.monotonicNanoseconds()
        var obstacle: Obstacle?
        while true {
            while let frame = try next(channel) {
                switch frame {
                case .wait(let why): obstacle = why
                case .pong: break
                default: return frame
                }
            }
            let since = max(channel.lastHeard, begin)
            if SystemCalls.monotonicNanoseconds() - since > Int64(FrameChannel.silenceSecondsMax) * 1_000_000_000 {
                throw WireError.silent(peer: channel.peer, seconds: FrameChannel.silenceSecondsMax)
            }
            if try !pause(1000, obstacle) { return nil }
        }
    }

    private func next(_ channel: FrameChannel) throws -> Frame? {
        switch try channel.nextAvailable() {
        case .refusal(let code, let text)?: throw WireError.refused(peer: channel.peer, code: code, reason: text)
        case .bye?: throw WireError.closed(peer: channel.peer, reason: "it was stopped there")
        case let frame: return frame
        }
    }

    func confirm(_ held: HeldSnapshot) throws -> Bool {
        let channel = try opened()
        let ranges = try held.extents().usedRanges()
        let digest = try withExtendedLifetime(held) { try Applier.digest(held.memory, ranges) }
        try channel.send(.check(Frame.Check(snapshot: held.snapshot, digest: digest, ranges: ranges)))
        guard
            let frame = try answer({ [isStopped] milliseconds, _ in
                _ = Waiting.poll(channel.descriptor, POLLIN, milliseconds: milliseconds)
                return !isStopped()
            })
        else { throw WireError.stopped }
        guard case .checked(let checked) = frame else { throw channel.unexpected(frame) }
        if checked.isEqual { line = checked.line }
        return checked.isEqual
    }

    func replace(with held: HeldSnapshot, source: SystemCalls.Status, pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool {
        let channel = try opened()
        let extents: FreeExtents
        do { extents = try held.extents() } catch let error as FormatError {
            throw MirrorError.sourceDamaged(source: name, reason: "\(error)")
        }
        var image = ImageSender(held, extents, options, compressor)
        try channel.send(.image(Frame.Image(head: image.head, ranges: image.ranges)))
        KillPoint.reach("wire.image-announced")
        while true {
            guard let frame = try answer(pause) else { return false }
            guard case .have(let have) = frame else { throw channel.unexpected(frame) }
            guard have.first == image.theirs.count, image.theirs.count + have.hashes.count <= image.blockCount else {
                throw channel.unexpected(frame)
            }
            image.theirs += have.hashes
            if have.isLast { break }
        }
        guard let chain = try image.send(over: channel) else { return false }
        KillPoint.reach("wire.image-sent")
        return try acknowledged(held.snapshot, MirrorLine(lineage: image.head.lineage, sequence: 0, chain: chain), pause)
    }

    private func acknowledged(_ snapshot: Snapshot, _ next: MirrorLine, _ pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool
    {
        let channel = try opened()
        guard let frame = try answer(pause) else { return false }
        guard case .acknowledgement(let theirs, let chain) = frame, theirs == snapshot, chain == next.chain else {
            throw channel.unexpected(frame)
        }
        line = next
        KillPoint.reach("wire.acknowledged")
        return true
    }

    func ship(_ step: MirrorStep, seen: UInt64, pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool {
        let channel = try opened()
        guard let line else { throw WireError.closed(peer: name, reason: "the replica has not told where it stands") }
        if step.byteCount > Wire.segmentByteCountMax, case .held(let held) = step.content {
            // Too large for one piece of memory at the other end; an image is compared with what is there.
            return try replace(with: held, source: SystemCalls.Status.none, pause: pause)
        }
        var payload: [UInt8] = []
        payload.reserveCapacity(step.byteCount)
        try step.forEachRange { payload += $1 }
        let segment = Segment(head: step.head(following: line, seen: seen), ranges: step.ranges, payload: payload)
        let lists =
            try step.parentHeld.map { held in
                try withExtendedLifetime(held) { try FreeExtents.prefix(memory: held.memory, snapshot: held.snapshot) }
            } ?? []
        let encoded = try segment.encoded(compressor: compressor, prefix: (.listsPrefix, lists))
        KillPoint.reach("wire.step-made")
        var at = 0
        while at < encoded.count {
            let end = min(at + Frame.pieceByteCountMax, encoded.count)
            try channel.send(.segment(isLast: end == encoded.count, bytes: Array(encoded[at..<end])))
            at = end
        }
        KillPoint.reach("wire.step-sent")
        return try acknowledged(
            step.this, MirrorLine(lineage: line.lineage, sequence: line.sequence + 1, chain: segment.head.chain), pause)
    }

    func look(newest: UInt64) throws -> Bool {
        let channel = try opened()
        while let frame = try next(channel) {
            switch frame {
            case .pong, .wait: continue
            default: throw channel.unexpected(frame)
            }
        }
        let now = SystemCalls.monotonicNanoseconds()
        if now - channel.lastHeard > Int64(FrameChannel.silenceSecondsMax) * 1_000_000_000 {
            throw WireError.silent(peer: channel.peer, seconds: FrameChannel.silenceSecondsMax)
        }
        if now - max(channel.lastSent, channel.lastHeard) >= Int64(FrameChannel.keepAliveSeconds) * 999_000_000 {
            try channel.send(.ping(newest))
        }
        return true
    }
}

/// Limits of the wire that both sides keep.
enum Wire {
    /// The plain payload of one step; larger ones travel as an image.
    static let segmentByteCountMax = 256 << 20
    /// A whole segment as it travels: head, range table and payload.
    static let encodedByteCountMax = segmentByteCountMax + (64 << 20)
}
