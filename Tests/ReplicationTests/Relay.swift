import Foundation
import Glibc
import SystemCalls

/// Stands between client and server, and cuts, delays, throttles and corrupts what goes through.
final class Relay: @unchecked Sendable {
    // Sendable: everything that changes is guarded by `lock`.
    enum Fault: Equatable {
        case none
        /// Both directions end when so many bytes have gone towards the server, or, negative, towards the client.
        case cut(afterBytes: Int)
        /// One byte is another one; counted as for `cut`.
        case corrupt(atByte: Int)
        /// Every piece waits so long.
        case delay(milliseconds: Int)
        /// So many bytes at once, each a millisecond after the last.
        case throttle(bytes: Int)
        /// Nothing goes through, and nobody is told.
        case silence
    }

    let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var fault = Fault.none
    private var open: [Int32] = []
    private var isOver = false
    private var carried = (up: 0, down: 0)
    private var accepted = 0

    init(to target: UInt16) throws {
        self.target = target
        listener = try SystemCalls.listen(at: try SystemCalls.addresses(host: "127.0.0.1", port: 0, forListening: true)[0])
        port = UInt16(SystemCalls.localAddress(listener).split(separator: ":").last ?? "0") ?? 0
        Thread.detachNewThread { [self] in accept() }
    }

    private func locked<T>(_ body: () -> T) -> T {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    /// What happens to connections made from now on; those that are open end.
    func set(_ fault: Fault, ending: Bool = true) {
        locked {
            self.fault = fault
            if ending { open.forEach { SystemCalls.shutDown($0) } }
        }
    }

    /// Bytes carried so far.
    var byteCount: (up: Int, down: Int) { locked { carried } }
    var connectionCount: Int { locked { accepted } }

    func end() {
        locked {
            isOver = true
            open.forEach { SystemCalls.shutDown($0) }
        }
    }

    deinit { SystemCalls.close(listener) }

    private func accept() {
        while !locked({ isOver }) {
            var request = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            guard poll(&request, 1, 50) > 0, let client = try? SystemCalls.accept(listener) else { continue }
            guard
                let server = try? SystemCalls.connect(
                    to: SystemCalls.addresses(host: "127.0.0.1", port: target), milliseconds: 2000, isStopped: { false })
            else {
                SystemCalls.close(client.descriptor)
                continue
            }
            let fault = locked {
                accepted += 1
                open += [client.descriptor, server]
                return self.fault
            }
            Thread.detachNewThread { [self] in carry(client.descriptor, server, fault) }
        }
    }

    private func carry(_ client: Int32, _ server: Int32, _ fault: Fault) {
        var counts = [0, 0]
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var requests = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        loop: while true {
            _ = poll(&requests, 2, 100)
            for (way, from) in [client, server].enumerated() where requests[way].revents != 0 {
                if fault == .silence {
                    if locked({ isOver || self.fault != .silence }) { break loop }
                    usleep(20_000)
                    continue
                }
                let limit = if case .throttle(let bytes) = fault { bytes } else { buffer.count }
                var count = buffer.withUnsafeMutableBytes {
                    SystemCalls.receive(from, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<limit]))
                }
                if count == -Int(EAGAIN) { continue }
                if count <= 0 { break loop }
                switch fault {
                case .delay(let milliseconds): usleep(UInt32(milliseconds * 1000))
                case .throttle: usleep(1000)
                case .corrupt(let at):
                    let place = (way == 0 ? at : -at) - counts[way]
                    if (0..<count).contains(place) { buffer[place] ^= 0x20 }
                case .cut(let after):
                    let limit = way == 0 ? after : -after
                    if limit > 0 { count = min(count, max(0, limit - counts[way])) }
                default: break
                }
                var sent = 0
                while sent < count {
                    let n = buffer.withUnsafeBytes {
                        SystemCalls.send(way == 0 ? server : client, UnsafeRawBufferPointer(rebasing: $0[sent..<count]))
                    }
                    if n == -Int(EAGAIN) { usleep(500) } else if n < 0 { break loop } else { sent += n }
                }
                counts[way] += count
                locked { if way == 0 { carried.up += count } else { carried.down += count } }
                if case .cut(let after) = fault, (way == 0 ? after : -after) > 0, counts[way] >= (way == 0 ? after : -after) {
                    break loop
                }
            }
        }
        locked { open.removeAll { $0 == client || $0 == server } }
        SystemCalls.close(client)
        SystemCalls.close(server)
    }
}
