import Glibc
import SystemCalls

/// Frames over a stream of bytes. Used by one thread.
final class FrameChannel {
    let stream: any ByteStream
    private var buffer: [UInt8] = []
    /// Bytes of `buffer` that were handed out as frames.
    private var consumed = 0
    /// The longest body that is taken.
    var limit = Frame.byteCountMax
    /// Asked now and then during long waits.
    var isStopped: () -> Bool = { false }
    private(set) var lastHeard = SystemCalls.monotonicNanoseconds()
    private(set) var lastSent = SystemCalls.monotonicNanoseconds()
    /// Bytes of frames, in both directions.
    private(set) var sentByteCount = 0, receivedByteCount = 0

    /// Slows both directions down.
    var throttle: Throttle?

    /// The other side has ended in good order.
    private(set) var saidFarewell = false

    init(_ stream: any ByteStream) { self.stream = stream }

    var peer: String { stream.peer }
    var descriptor: Int32 { stream.descriptor }

    /// So long the other side may say nothing at all before the connection counts as dead.
    static let silenceSecondsMax = 180
    /// So long after the last frame a side says that it is still there.
    static let keepAliveSeconds = 60

    func send(_ frame: Frame) throws {
        let bytes = frame.bytes()
        try bytes.withUnsafeBytes { try write($0) }
        sentByteCount += bytes.count
        lastSent = SystemCalls.monotonicNanoseconds()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let piece = throttle?.pieceByteCount else { return try stream.write(bytes, isStopped: isStopped) }
        var rest = bytes
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(piece))
            try throttle?.pass(part.count, isStopped: isStopped)
            try stream.write(part, isStopped: isStopped)
            rest = UnsafeRawBufferPointer(rebasing: rest[part.count...])
        }
    }

    /// The next frame if it is there; never waits, unless the connection is throttled.
    func nextAvailable() throws -> Frame? {
        while true {
            if let frame = try parse() { return frame }
            let count = try stream.readAvailable(into: &buffer)
            if count == 0 { return nil }
            // A large message over a slow way takes its time; who sends it is there.
            lastHeard = SystemCalls.monotonicNanoseconds()
            try throttle?.pass(count, isStopped: isStopped)
        }
    }

    private func parse() throws -> Frame? {
        do {
            let found = try buffer.withUnsafeBytes {
                try Frame.parse(UnsafeRawBufferPointer(rebasing: $0[consumed...]), limit: limit)
            }
            guard let found else {
                compact()
                return nil
            }
            consumed += found.byteCount
            receivedByteCount += found.byteCount
            lastHeard = SystemCalls.monotonicNanoseconds()
            if consumed == buffer.count { compact() }
            return found.frame
        } catch let error as FrameError {
            switch error {
            case .tooLarge(let count, let limit): throw WireError.tooLarge(peer: peer, byteCount: count, limit: limit)
            case .malformed(let reason): throw WireError.malformed(peer: peer, reason: reason)
            }
        }
    }

    private func compact() {
        if consumed == 0 { return }
        buffer.removeSubrange(..<consumed)
        consumed = 0
        if buffer.isEmpty && buffer.capacity > 4 << 20 { buffer = [] }
    }

    /// The next frame; a refusal and a farewell are thrown.
    ///
    /// - Parameters:
    ///   - milliseconds: how long to wait at most.
    ///   - wait: waits until the descriptor is readable or so many milliseconds are over; it may throw to end the waiting.
    /// - Throws: `WireError.silent` after the time.
    func next(
        milliseconds: Int = silenceSecondsMax * 1000,
        wait: (Int32, Int32) throws -> Void = { _ = Waiting.poll($0, POLLIN, milliseconds: $1) }
    ) throws -> Frame {
        let limit = SystemCalls.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
        while true {
            if let frame = try nextAvailable() {
                switch frame {
                case .refusal(let code, let text): throw WireError.refused(peer: peer, code: code, reason: text)
                case .bye:
                    saidFarewell = true
                    throw WireError.closed(peer: peer, reason: "it was stopped there")
                default: return frame
                }
            }
            if isStopped() { throw WireError.stopped }
            let left = (limit - SystemCalls.monotonicNanoseconds()) / 1_000_000
            if left <= 0 { throw WireError.silent(peer: peer, seconds: milliseconds / 1000) }
            try wait(descriptor, Int32(min(left, 1000)))
        }
    }

    func unexpected(_ frame: Frame) -> WireError {
        WireError.malformed(peer: peer, reason: "a message at the wrong time: \("\(frame)".prefix(60))")
    }

    /// Tells the other side why it ends, if that can still be told, and closes.
    func refuse(_ code: WireCode, _ text: String) {
        isStopped = { true }
        try? send(.refusal(code, MirrorRun.plainText(text)))
        stream.close(lingering: true)
    }

    func close(politely: Bool = true) {
        isStopped = { true }
        if politely { try? send(.bye) }
        stream.close(lingering: false)
    }
}
