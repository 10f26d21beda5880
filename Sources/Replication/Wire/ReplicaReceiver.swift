import Glibc
import SharedStore
import SystemCalls

/// The receiver's side of the wire: puts what comes into a replica on this machine.
///
/// What comes is checked before it is believed: frames by their parser, segments by their checksums and by the chain that must
/// begin where the replica stands, images by their hash. Used by one thread.
final class ReplicaReceiver {
    private let channel: FrameChannel
    private let writer: ReplicaWriter
    private let control: MirrorFollower.Control
    private let onStatus: () -> Void
    private let compressor = Compressor()
    private var current: ReplicaPosition?
    private(set) var stepCount = 0, byteCount = 0, imageCount = 0
    private(set) var waitsFor: String?
    /// The source's version as its side told last.
    private(set) var sourceVersion: UInt64?
    /// When what the replica has was the newest version of the source, as far as the other side tells: a step is begun with the
    /// newest version.
    private(set) var provenAt: Int64?
    private(set) var isReloading = false
    private var stopped = false
    var version: UInt64 { current?.snapshot.version ?? 0 }

    init(
        _ channel: FrameChannel, _ writer: ReplicaWriter, onStatus: @escaping () -> Void = {},
        control: @escaping MirrorFollower.Control
    ) {
        self.channel = channel
        self.writer = writer
        self.onStatus = onStatus
        self.control = control
        channel.isStopped = { [unowned self] in
            obey(control([], 0))
            return stopped
        }
    }

    private func obey(_ request: MirrorFollower.Request?) {
        switch request {
        case .stop: stopped = true
        case .reload:
            isReloading = true
            stopped = true
        case .status: onStatus()
        case nil: break
        }
    }

    /// Receives until it is told to stop, or the other side ends.
    ///
    /// - Throws: `WireError`, `MirrorError`, or what writing may throw. The other side has been told.
    func run() throws {
        defer { writer.disconnect() }
        do {
            current = try writer.connect()
            try channel.send(.state(Frame.State(position: current)))
            var segment: [UInt8] = []
            var segmentBegin: Int64 = 0
            while true {
                guard let frame = try next() else { break }
                switch frame {
                case .ping(let version):
                    sourceVersion = version
                    if version == self.version { provenAt = SystemCalls.monotonicNanoseconds() }
                    if current != nil, writer.wasReplaced {
                        throw WireError.closed(peer: writer.path, reason: "the replica was removed or replaced")
                    }
                    try channel.send(.pong)
                case .check(let check): try answer(check)
                case .image(let image):
                    guard segment.isEmpty else { throw channel.unexpected(frame) }
                    try receive(image)
                case .segment(let isLast, let bytes):
                    guard segment.count + bytes.count <= Wire.encodedByteCountMax else {
                        throw WireError.tooLarge(
                            peer: channel.peer, byteCount: segment.count + bytes.count, limit: Wire.encodedByteCountMax)
                    }
                    if segment.isEmpty { segmentBegin = SystemCalls.monotonicNanoseconds() }
                    segment += bytes
                    if isLast {
                        let whole = segment
                        segment = []
                        if try !receive(segment: whole) { break }
                        provenAt = segmentBegin
                    }
                default: throw channel.unexpected(frame)
                }
                if stopped { break }
            }
            channel.close()
        } catch WireError.stopped where stopped {
            channel.close()
        } catch {
            switch error {
            case WireError.refused, WireError.notTrusted: channel.close(politely: false)
            case WireError.closed(let peer, _) where peer == channel.peer: channel.close(politely: false)
            default: channel.refuse(WireCode(error), "\(error)")
            }
            if let error = error as? FrameError { throw WireError.malformed(peer: channel.peer, reason: "\(error)") }
            throw error
        }
    }

    /// The next frame; nil where we were told to stop.
    private func next() throws -> Frame? {
        do {
            return try channel.next { descriptor, milliseconds in
                // The control knows how to wait for both the other side and requests, so no short naps are needed.
                obey(control([descriptor], max(milliseconds, 30_000)))
                if stopped { throw WireError.stopped }
            }
        } catch WireError.stopped { return nil }
    }

    /// Waits for `writer`, telling the other side why.
    private func pause(_ milliseconds: Int32, _ why: Obstacle?) throws -> Bool {
        let now = SystemCalls.monotonicNanoseconds()
        let hasNews = why != nil && why?.text != waitsFor
        if hasNews || now - channel.lastSent > 5_000_000_000 {
            waitsFor = why?.text
            try channel.send(.wait(why))
        }
        if now - lastListened > 100_000_000 {
            lastListened = now
            while let frame = try channel.nextAvailable() {
                switch frame {
                case .ping: try channel.send(.pong)
                case .bye: throw WireError.closed(peer: channel.peer, reason: "it was stopped there")
                default: throw channel.unexpected(frame)
                }
            }
        }
        obey(control(milliseconds > 100 ? [channel.descriptor] : [], milliseconds))
        return !stopped
    }

    private var lastListened: Int64 = 0

    /// Says that we are still at it.
    private func tick() throws {
        if SystemCalls.monotonicNanoseconds() - channel.lastSent > 20_000_000_000 { try channel.send(.wait(nil)) }
        if channel.isStopped() { throw WireError.stopped }
    }

    // MARK: What comes

    private func answer(_ check: Frame.Check) throws {
        guard let current, let applier = writer.applier, check.snapshot == current.snapshot else {
            try channel.send(.checked(Frame.Checked(isEqual: false, line: MirrorLine.new())))
            return
        }
        let isEqual = (try? applier.digest(current.snapshot, check.ranges)) == check.digest
        let line = isEqual ? writer.confirmed(at: current.snapshot) : current.line
        if isEqual { self.current = ReplicaPosition(snapshot: current.snapshot, isNoted: true, line: line) }
        try channel.send(.checked(Frame.Checked(isEqual: isEqual, line: line)))
    }

    /// False where it was given up because we were told to stop.
    private func receive(segment bytes: [UInt8]) throws -> Bool {
        guard let current, let applier = writer.applier else {
            throw WireError.malformed(peer: channel.peer, reason: "a step where an image is needed")
        }
        if writer.wasReplaced { throw WireError.closed(peer: writer.path, reason: "the replica was removed or replaced") }
        let segment = try bytes.withUnsafeBytes { bytes in
            let head = try SegmentHead(bytes)
            guard !head.flags.contains(.image), head.parent == current.snapshot, head.lineage == current.line.lineage,
                head.sequence == current.line.sequence + 1, head.parentChain == current.line.chain
            else {
                throw WireError.malformed(peer: channel.peer, reason: "a step that does not begin where the replica stands")
            }
            guard head.plainByteCount <= Wire.segmentByteCountMax else {
                throw WireError.tooLarge(peer: channel.peer, byteCount: head.plainByteCount, limit: Wire.segmentByteCountMax)
            }
            return try Segment(encoded: bytes, compressor: compressor) { head in
                guard head.flags.isDisjoint(with: .payloadPrefix) else {
                    throw SegmentError.malformed("compressed against what is not kept here")
                }
                return try applier.listsPrefix(head.parent)
            }
        }
        KillPoint.reach("wire.step-received")
        let line = MirrorLine(lineage: segment.head.lineage, sequence: segment.head.sequence, chain: segment.head.chain)
        guard try writer.apply(MirrorStep(segment), seen: segment.head.time, line: line, pause: pause) else { return false }
        waitsFor = nil
        self.current = ReplicaPosition(snapshot: segment.head.this, isNoted: true, line: line)
        sourceVersion = max(sourceVersion ?? 0, segment.head.this.version)
        stepCount += 1
        byteCount += bytes.count
        KillPoint.reach("wire.before-acknowledgement")
        try channel.send(.acknowledgement(segment.head.this, segment.head.chain))
        return true
    }

    private func receive(_ image: Frame.Image) throws {
        let standing = try writer.prepareForImage()
        current = nil
        let receiver = try ImageReceiver(
            image, replica: writer.path, standing: standing, key: writer.options.destinationKey, compressor: compressor)
        try receiver.hashes { first, isLast, hashes in
            try channel.send(.have(Frame.Have(first: first, isLast: isLast, hashes: hashes)))
            if channel.isStopped() { throw WireError.stopped }
        }
        while true {
            guard let frame = try next() else { throw WireError.stopped }
            switch frame {
            case .piece(let piece):
                do { try receiver.put(piece) } catch let error as DecryptionError {
                    // What an earlier attempt has left has another key, or is damaged.
                    receiver.discard()
                    throw error
                }
                byteCount += piece.bytes.count
                continue
            case .ping:
                try channel.send(.pong)
                continue
            case .imageEnd(let chain):
                guard try receiver.finish(chain, tick: tick) else {
                    throw WireError.malformed(peer: channel.peer, reason: "the image has another hash than it should")
                }
                try install(receiver, standing, chain)
                return
            default: throw channel.unexpected(frame)
            }
        }
    }

    private func install(_ receiver: ImageReceiver, _ standing: Mirror.Standing, _ chain: Digest) throws {
        let head = receiver.image.head
        var state = MirrorState(
            source: writer.source, device: 0, inode: 0, lineage: head.lineage, snapshot: head.this, mode: .follow)
        state.chain = chain
        state.time = head.time
        state.replaced = writer.replacedSnapshot
        while true {
            do {
                let aside = try MirrorImage.install(
                    receiver.path, as: writer.path, replaces: standing != .absent, setsAside: standing == .foreign, state: state)
                if let aside { writer.options.onMessage("the old file lives on as \(aside)") }
                break
            } catch let error as MirrorError {
                guard case .inUse = error else { throw error }
                if try !pause(500, .readers("\(error)")) { throw WireError.stopped }
            }
        }
        current = try writer.installed(state)
        waitsFor = nil
        imageCount += 1
        sourceVersion = max(sourceVersion ?? 0, head.this.version)
        KillPoint.reach("wire.before-acknowledgement")
        try channel.send(.acknowledgement(head.this, chain))
    }
}
