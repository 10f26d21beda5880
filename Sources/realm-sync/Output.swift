import Glibc
import SystemCalls

/// A descriptor that is written in large pieces.
///
/// Not thread-safe; each has one user. Errors are thrown when the buffer is written, at the latest by `flush`.
final class OutputStream {
    /// The reader has gone away: there is nobody to tell anything.
    struct Closed: Error {}

    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private static let capacity = 1 << 16

    init(descriptor: Int32) {
        self.descriptor = descriptor
        buffer.reserveCapacity(Self.capacity)
    }

    func write(_ text: String) throws {
        var text = text
        try text.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
    }

    func line(_ text: String) throws { try write(text + "\n") }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if bytes.count >= Self.capacity {
            try flush()
            try writeNow(bytes)
            return
        }
        buffer.append(contentsOf: bytes)
        if buffer.count >= Self.capacity { try flush() }
    }

    /// Writes what is buffered; throws `Closed` where the reader has gone, `SystemError` otherwise.
    func flush() throws {
        if buffer.isEmpty { return }
        // Emptied first: what cannot be written now is not tried again.
        let bytes = buffer
        buffer.removeAll(keepingCapacity: true)
        try bytes.withUnsafeBytes(writeNow)
    }

    /// False where `descriptor` is a pipe whose other end is closed.
    static func hasReader(_ descriptor: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&request, 1, 0) <= 0 || request.revents & Int16(POLLERR) == 0
    }

    private func writeNow(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            do {
                let count = try SystemCalls.writeSome(descriptor, rest, path: "standard output")
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } catch let error as SystemError where error.code == EPIPE {
                throw Closed()
            } catch let error as SystemError where error.code == EAGAIN {
                // Somebody made the terminal or pipe non-blocking; wait for room.
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&request, 1, 1000)
            }
        }
    }
}

/// Standard error: messages for people, each one line, and progress where it is a terminal.
final class Console: Sendable {
    let isTerminal = isatty(STDERR_FILENO) == 1

    /// One line with the name of the program. Line ends and control characters inside are made visible.
    func message(_ text: String) { write("\(Program.name): \(Text.oneLine(text))\n") }

    func write(_ text: String) {
        let bytes = Array(text.utf8)
        // Where standard error cannot be written, there is nobody left to complain to.
        bytes.withUnsafeBytes { _ = try? SystemCalls.writeSome(STDERR_FILENO, $0) }
    }
}
