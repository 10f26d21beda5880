import Glibc
import SharedStore
import Synchronization
import SystemCalls

/// Answers `GET /status`, `/metrics` and `/health` in the simplest HTTP/1.0, at a socket in the file system and perhaps at a
/// port.
///
/// One thread serves all: a request has 4 KiB and 5 seconds, there are at most 64 connections at a time, and where one more
/// comes, the one that has waited longest goes. Nothing that a client sends changes anything.
final class StatusServer: @unchecked Sendable {
    // Sendable: `listeners` is guarded by its mutex; connections are the thread's own; the rest never changes.
    static let connectionCountMax = 64
    static let requestByteCountMax = 4096
    static let secondsMax: Int64 = 5

    private let report: @Sendable () -> ServiceReport
    private let wake: SystemCalls.Descriptor
    private struct Listeners {
        var descriptors: [SystemCalls.Descriptor] = []
        /// To be closed by the thread, which may be waiting for them.
        var retired: [SystemCalls.Descriptor] = []
        var stops = false
    }
    private let listeners = Mutex(Listeners())

    private final class Connection {
        let descriptor: SystemCalls.Descriptor
        let limit: Int64
        var request: [UInt8] = []
        var answer: [UInt8] = []
        var sentCount = 0
        var isAnswering: Bool { !answer.isEmpty }
        init(_ descriptor: SystemCalls.Descriptor, limit: Int64) {
            self.descriptor = descriptor
            self.limit = limit
        }
    }
    private var connections: [Connection] = []

    /// - Parameter report: may take a part of a second.
    init(report: @escaping @Sendable () -> ServiceReport) throws {
        self.report = report
        wake = try SystemCalls.makeEventDescriptor()
    }

    deinit { SystemCalls.close(wake) }

    func start() throws {
        try BackgroundThread.start("status") { [self] in main() }
    }

    /// Listens at these instead of those before.
    func listen(at descriptors: [SystemCalls.Descriptor]) {
        listeners.withLock {
            $0.retired += $0.descriptors
            $0.descriptors = descriptors
        }
        SystemCalls.signal(wake)
    }

    func stop() {
        listeners.withLock {
            $0.stops = true
            $0.retired += $0.descriptors
            $0.descriptors = []
        }
        SystemCalls.signal(wake)
    }

    private func main() {
        while true {
            let (listening, stops) = listeners.withLock { listeners in
                listeners.retired.forEach { SystemCalls.close($0) }
                listeners.retired = []
                return (listeners.descriptors, listeners.stops)
            }
            if stops { break }
            let now = SystemCalls.monotonicNanoseconds()
            drop { now > $0.limit }
            var requests = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
            requests += listening.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            requests += connections.map {
                pollfd(fd: $0.descriptor, events: Int16($0.isAnswering ? POLLOUT : POLLIN), revents: 0)
            }
            let next = connections.map(\.limit).min().map { Int32(clamping: max(0, ($0 - now) / 1_000_000 + 1)) } ?? -1
            guard poll(&requests, nfds_t(requests.count), next) > 0 else { continue }
            if requests[0].revents != 0 { SystemCalls.reset(wake) }
            let waiting = connections
            for (index, connection) in waiting.enumerated() where requests[1 + listening.count + index].revents != 0 {
                serve(connection)
            }
            for (index, listener) in listening.enumerated() where requests[1 + index].revents != 0 { accept(listener) }
        }
        drop { _ in true }
    }

    private func drop(_ shouldGo: (Connection) -> Bool) {
        connections.removeAll { connection in
            guard shouldGo(connection) else { return false }
            SystemCalls.close(connection.descriptor)
            return true
        }
    }

    private func accept(_ listener: SystemCalls.Descriptor) {
        // A shortage of descriptors is over when somebody goes; until then clients wait in the queue.
        guard let descriptor = (try? LocalSocket.accept(listener)) ?? nil else {
            if connections.isEmpty { usleep(10_000) } else { drop { $0 === connections.first } }
            return
        }
        if connections.count >= Self.connectionCountMax, let oldest = connections.first { drop { $0 === oldest } }
        connections.append(Connection(descriptor, limit: SystemCalls.monotonicNanoseconds() + Self.secondsMax * 1_000_000_000))
    }

    private func serve(_ connection: Connection) {
        if connection.isAnswering {
            send(connection)
            return
        }
        let count = withUnsafeTemporaryAllocation(byteCount: Self.requestByteCountMax, alignment: 1) { buffer in
            let count = LocalSocket.receive(connection.descriptor, into: buffer)
            if count > 0 { connection.request.append(contentsOf: buffer[..<count]) }
            return count
        }
        if count == -Int(EAGAIN) { return }
        if count <= 0 { return drop { $0 === connection } }
        if connection.request.count > Self.requestByteCountMax {
            answer(connection, 431, "text/plain", "the request is too long\n")
        } else if let line = Self.requestLine(connection.request) {
            answer(connection, line)
        }
    }

    /// The first line, once the whole head of the request is there.
    private static func requestLine(_ request: [UInt8]) -> String? {
        // A head ends with an empty line.
        let end: [UInt8] = [13, 10, 13, 10], bare: [UInt8] = [10, 10]
        func holds(_ mark: [UInt8]) -> Bool {
            request.count >= mark.count
                && (0...(request.count - mark.count)).contains { Array(request[$0..<$0 + mark.count]) == mark }
        }
        guard holds(end) || holds(bare) else { return nil }
        return String(decoding: request.prefix { $0 != 10 && $0 != 13 }, as: UTF8.self)
    }

    private func answer(_ connection: Connection, _ line: String) {
        let words = line.split(separator: " ")
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
            return answer(connection, 400, "text/plain", "this is no request\n")
        }
        guard words[0] == "GET" || words[0] == "HEAD" else {
            return answer(connection, 405, "text/plain", "only GET is known here\n")
        }
        let isHead = words[0] == "HEAD"
        let parts = words[1].split(separator: "?", omittingEmptySubsequences: false)
        let isShort = parts.dropFirst().first?.split(separator: "&").contains("problems") ?? false
        switch parts.first ?? "" {
        case "/status":
            let report = report()
            let shown = isShort ? report.problems : report
            answer(connection, 200, "application/json", shown.json.text + "\n", isHead, report.verdict)
        case "/status.txt":
            let report = report()
            answer(
                connection, 200, "text/plain; charset=utf-8", StatusText.table(report, onlyProblems: isShort), isHead,
                report.verdict)
        case "/metrics": answer(connection, 200, "text/plain; version=0.0.4; charset=utf-8", report().metrics, isHead)
        case "/health":
            let report = report()
            answer(
                connection, report.verdict == .failed ? 503 : 200, "text/plain", "\(report.verdict.text)\n", isHead,
                report.verdict)
        default: answer(connection, 404, "text/plain", "there are /status, /status.txt, /metrics and /health\n", isHead)
        }
    }

    private static let reasons = [
        200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 431: "Request Header Fields Too Large",
        503: "Service Unavailable",
    ]
    /// The line of the head that tells the verdict as a number.
    static let verdictHeader = "Realm-Sync-Verdict"

    private func answer(
        _ connection: Connection, _ code: Int, _ type: String, _ body: String, _ isHead: Bool = false,
        _ verdict: StreamFacts.Verdict? = nil
    ) {
        let bytes = Array(body.utf8)
        var head = [
            "HTTP/1.0 \(code) \(Self.reasons[code] ?? "")", "Content-Type: \(type)", "Content-Length: \(bytes.count)",
            "Connection: close",
        ]
        if let verdict { head.append("\(Self.verdictHeader): \(verdict.rawValue)") }
        connection.answer = Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (isHead ? [] : bytes)
        send(connection)
    }

    private func send(_ connection: Connection) {
        while connection.sentCount < connection.answer.count {
            let count = connection.answer.withUnsafeBytes {
                LocalSocket.send(connection.descriptor, UnsafeRawBufferPointer(rebasing: $0[connection.sentCount...]))
            }
            if count == -Int(EAGAIN) { return }
            if count <= 0 { break }
            connection.sentCount += count
        }
        drop { $0 === connection }
    }
}

/// The other side of `StatusServer`, for the command that shows it.
enum StatusClient {
    static let answerByteCountMax = 256 << 20

    /// The body of the answer to `GET page` at the socket `path`, and the verdict, 0 to 2.
    ///
    /// - Throws: `SystemError` where nobody listens there or no answer comes within some seconds.
    static func get(_ page: String, socket path: String, seconds: Int = 10) throws -> (body: String, verdict: Int) {
        let descriptor = try LocalSocket.connect(path: path)
        defer { SystemCalls.close(descriptor) }
        let request = Array("GET \(page) HTTP/1.0\r\n\r\n".utf8)
        guard request.withUnsafeBytes({ LocalSocket.send(descriptor, $0) }) == request.count else {
            throw SystemError(call: "send", code: EPIPE, path: path)
        }
        let answer = try receive(descriptor, path, SystemCalls.monotonicNanoseconds() + Int64(seconds) * 1_000_000_000)
        let mark: [UInt8] = [13, 10, 13, 10]
        guard let end = answer.indices.first(where: { answer[$0...].starts(with: mark) }) else {
            throw SystemError(call: "recv", code: EPROTO, path: path)
        }
        let head = String(decoding: answer[..<end], as: UTF8.self).split(separator: "\r\n")
        let verdict = head.first { $0.hasPrefix(StatusServer.verdictHeader + ": ") }.flatMap {
            Int($0.dropFirst(StatusServer.verdictHeader.count + 2))
        }
        guard head.first?.hasPrefix("HTTP/1.0 200 ") == true, let verdict, (0...2).contains(verdict) else {
            throw SystemError(call: "recv", code: EPROTO, path: path)
        }
        return (String(decoding: answer[(end + mark.count)...], as: UTF8.self), verdict)
    }

    private static func receive(_ descriptor: SystemCalls.Descriptor, _ path: String, _ limit: Int64) throws -> [UInt8] {
        var answer: [UInt8] = []
        return try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
            while true {
                let left = (limit - SystemCalls.monotonicNanoseconds()) / 1_000_000
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                if left <= 0 || poll(&request, 1, Int32(clamping: left)) <= 0 {
                    throw SystemError(call: "recv", code: ETIMEDOUT, path: path)
                }
                let count = LocalSocket.receive(descriptor, into: buffer)
                if count == 0 { return answer }
                if count == -Int(EAGAIN) { continue }
                if count < 0 { throw SystemError(call: "recv", code: Int32(-count), path: path) }
                answer.append(contentsOf: buffer[..<count])
                if answer.count > answerByteCountMax { throw SystemError(call: "recv", code: EMSGSIZE, path: path) }
            }
        }
    }
}
