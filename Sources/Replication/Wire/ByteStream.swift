import Glibc
import SystemCalls

/// A way for bytes to another process, in both directions: a pipe, or a socket with TLS over it.
///
/// Reading never waits; writing waits until everything is on its way. Used by one thread.
protocol ByteStream: AnyObject {
    /// Who is at the other end, for messages.
    var peer: String { get }
    /// What to wait for before reading again.
    var descriptor: Int32 { get }
    /// Appends bytes that are there; 0 where there are none at the moment.
    ///
    /// - Throws: `WireError.closed` at the end.
    func readAvailable(into buffer: inout [UInt8]) throws -> Int
    /// Writes all bytes.
    ///
    /// - Parameter isStopped: asked now and then while the other side does not read.
    /// - Throws: `WireError.closed`, `.silent` where nothing could be written for too long, `.stopped`.
    func write(_ bytes: UnsafeRawBufferPointer, isStopped: () -> Bool) throws
    /// Says that nothing more will come, and closes.
    ///
    /// - Parameter lingering: wait a moment until the other side has read what was written last: what it sends meanwhile would
    ///   destroy that.
    func close(lingering: Bool)
}

/// Waiting for descriptors and the calls of sockets that never raise a signal.
enum Waiting {
    /// So long a peer may take nothing of what is written to it.
    static let writeSecondsMax = 120

    /// True where the descriptor can be read or written now, or has ended; false after the time.
    static func poll(_ descriptor: Int32, _ events: Int32, milliseconds: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        return Glibc.poll(&request, 1, milliseconds) > 0
    }

    /// Waits until `descriptor` can be written.
    static func writable(_ descriptor: Int32, _ peer: String, since: Int64, isStopped: () -> Bool) throws {
        while !poll(descriptor, POLLOUT, milliseconds: 250) {
            if isStopped() { throw WireError.stopped }
            if SystemCalls.monotonicNanoseconds() - since > Int64(writeSecondsMax) * 1_000_000_000 {
                throw WireError.silent(peer: peer, seconds: writeSecondsMax)
            }
        }
    }
}

/// Two pipes, or the standard input and output of this process.
final class PipeStream: ByteStream {
    let peer: String
    let descriptor: Int32
    private let writing: Int32
    private let onClose: () -> Void
    private var isOpen = true

    /// Takes over both descriptors. The process must ignore SIGPIPE.
    init(reading: Int32, writing: Int32, peer: String, onClose: @escaping () -> Void = {}) throws {
        descriptor = reading
        self.writing = writing
        self.peer = peer
        self.onClose = onClose
        try SystemCalls.setNonBlocking(reading)
        try SystemCalls.setNonBlocking(writing)
    }

    deinit { close(lingering: false) }

    func readAvailable(into buffer: inout [UInt8]) throws -> Int {
        guard isOpen else { throw WireError.closed(peer: peer, reason: "it was closed here") }
        return try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { space in
            let count = SystemCalls.readNonBlocking(descriptor, into: space, path: "")
            if count == 0 { throw WireError.closed(peer: peer, reason: "its program has ended") }
            if count == -Int(EAGAIN) { return 0 }
            if count < 0 { throw WireError.closed(peer: peer, reason: String(cString: strerror(Int32(-count)))) }
            buffer.append(contentsOf: space[..<count])
            return count
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, isStopped: () -> Bool) throws {
        guard isOpen else { throw WireError.closed(peer: peer, reason: "it was closed here") }
        var rest = bytes
        var since = SystemCalls.monotonicNanoseconds()
        while !rest.isEmpty {
            do {
                let count = try SystemCalls.writeSome(writing, rest)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                since = SystemCalls.monotonicNanoseconds()
            } catch let error as SystemError {
                guard error.code == EAGAIN else { throw WireError.closed(peer: peer, reason: error.reason) }
                try Waiting.writable(writing, peer, since: since, isStopped: isStopped)
            }
        }
    }

    func close(lingering: Bool) {
        guard isOpen else { return }
        isOpen = false
        SystemCalls.close(descriptor)
        if writing != descriptor { SystemCalls.close(writing) }
        onClose()
    }
}
