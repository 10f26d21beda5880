import Foundation
import Glibc
@testable import Replication

/// A server on this machine that knows as much of S3 as `S3Place` asks for, and misbehaves as a test wants. One bucket, named
/// "b".
final class TinyBucket: @unchecked Sendable {
    // Sendable: all state is behind `lock`, but for the socket, which never changes.
    enum Fault { case none, status(Int), cutBody, silence, close, doneButClosed }

    struct Request {
        var method = ""
        var path = ""
        /// Path and query as they came.
        var target = ""
        var query: [String: String] = [:]
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    private let lock = NSLock()
    private let listener: Int32
    let port: UInt16
    private var objects: [String: [UInt8]] = [:]
    private var uploads: [String: (key: String, parts: [Int: [UInt8]])] = [:]
    private var uploadCount = 0
    private var fault: @Sendable (Int, Request) -> Fault = { _, _ in .none }
    private var requests: [Request] = []
    private var isStopped = false

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = listener
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(socket, pointer, length) == 0 && listen(socket, 16) == 0 && getsockname(socket, pointer, &length) == 0
            }
        }
        guard bound else { throw CocoaError(.fileReadUnknown) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0 || lock.withLock({ isStopped }) { return }
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    deinit { stop() }

    func stop() {
        let wasStopped = lock.withLock { () -> Bool in
            defer { isStopped = true }
            return isStopped
        }
        if wasStopped { return }
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    var endpoint: String { "http://127.0.0.1:\(port)" }
    func misbehave(_ body: @escaping @Sendable (_ number: Int, Request) -> Fault) { lock.withLock { fault = body } }
    var served: [Request] { lock.withLock { requests } }
    var names: [String] { lock.withLock { objects.keys.sorted() } }
    var openUploadCount: Int { lock.withLock { uploads.count } }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        var buffer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        let end = Array("\r\n\r\n".utf8)
        while true {
            var head: Range<Int>?
            while true {
                head = Data(buffer).range(of: Data(end))
                if head != nil { break }
                let count = recv(connection, &chunk, chunk.count, 0)
                if count <= 0 { return }
                buffer += chunk[..<count]
            }
            guard let head else { return }
            var request = Request()
            let lines = String(decoding: buffer[..<head.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
            let first = lines[0].split(separator: " ")
            guard first.count == 3 else { return }
            request.method = String(first[0])
            request.target = String(first[1])
            let target = first[1].split(separator: "?", maxSplits: 1)
            request.path = String(target[0]).removingPercentEncoding ?? ""
            for pair in target.count > 1 ? target[1].split(separator: "&") : [] {
                let parts = pair.split(separator: "=", maxSplits: 1).map { String($0).removingPercentEncoding ?? "" }
                request.query[parts[0]] = parts.count > 1 ? parts[1] : ""
            }
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2 { request.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces) }
            }
            buffer.removeFirst(head.upperBound)
            let length = Int(request.headers["content-length"] ?? "0") ?? 0
            while buffer.count < length {
                let count = recv(connection, &chunk, chunk.count, 0)
                if count <= 0 { return }
                buffer += chunk[..<count]
            }
            request.body = Array(buffer[..<length])
            buffer.removeFirst(length)
            let kind = lock.withLock { () -> Fault in
                requests.append(request)
                return fault(requests.count, request)
            }
            switch kind {
            case .close: return
            case .silence:
                while recv(connection, &chunk, chunk.count, 0) > 0 {}
                return
            case .status(let status): send(connection, status, [:], Array("<Error><Code>Injected</Code></Error>".utf8))
            case .doneButClosed:
                _ = lock.withLock { answer(request) }
                return
            case .none, .cutBody:
                let (status, headers, body) = lock.withLock { answer(request) }
                if case .cutBody = kind, body.count > 1 {
                    send(connection, status, headers, body, sending: body.count / 2)
                    return
                }
                send(connection, status, headers, body)
            }
        }
    }

    private func send(_ connection: Int32, _ status: Int, _ headers: [String: String], _ body: [UInt8], sending count: Int? = nil)
    {
        var text = "HTTP/1.1 \(status) X\r\nContent-Length: \(body.count)\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        let bytes = Array((text + "\r\n").utf8) + body.prefix(count ?? body.count)
        bytes.withUnsafeBytes { pointer in
            var at = 0
            while at < pointer.count {
                let done = Glibc.send(connection, pointer.baseAddress.map { $0 + at }, pointer.count - at, Int32(MSG_NOSIGNAL))
                if done <= 0 { return }
                at += done
            }
        }
    }

    private func tag(_ bytes: [UInt8]) -> String {
        "\"\(bytes.withUnsafeBytes { String(Checksum.xxh3($0), radix: 16) })-\(bytes.count)\""
    }

    private func answer(_ request: Request) -> (Int, [String: String], [UInt8]) {
        func error(_ status: Int, _ code: String) -> (Int, [String: String], [UInt8]) {
            (
                status, [:],
                Array("<Error><Code>\(code)</Code><RequestId>\(String(repeating: "0", count: 500))</RequestId></Error>".utf8)
            )
        }
        guard request.path == "/b/" || request.path.hasPrefix("/b/") else { return error(404, "NoSuchBucket") }
        guard request.headers["authorization"]?.hasPrefix("AWS4-HMAC-SHA256 Credential=key/") ?? false else {
            return error(403, "AccessDenied")
        }
        if let flaw = TinySignature.flaw(in: request, target: request.target, secret: "secret") {
            return error(403, "SignatureDoesNotMatch: \(flaw)")
        }
        let key = String(request.path.dropFirst(3))
        switch request.method {
        case "GET" where key.isEmpty && request.query["uploads"] != nil:
            let items = uploads.map { "<Upload><Key>\($0.value.key)</Key><UploadId>\($0.key)</UploadId></Upload>" }.joined()
            return (200, [:], Array("<ListMultipartUploadsResult>\(items)</ListMultipartUploadsResult>".utf8))
        case "GET" where key.isEmpty:
            // Pages of three.
            let found = objects.keys.filter { $0.hasPrefix(request.query["prefix"] ?? "") }.sorted()
            let start = Int(request.query["continuation-token"] ?? "0") ?? 0
            let page = found.dropFirst(start).prefix(3).map { "<Contents><Key>\($0)</Key></Contents>" }.joined()
            let more = start + 3 < found.count
            let next = more ? "<NextContinuationToken>\(start + 3)</NextContinuationToken>" : ""
            return (200, [:], Array("<ListBucketResult><IsTruncated>\(more)</IsTruncated>\(page)\(next)</ListBucketResult>".utf8))
        case "GET":
            guard let bytes = objects[key] else { return error(404, "NoSuchKey") }
            guard let range = request.headers["range"]?.dropFirst("bytes=".count).split(separator: "-"), range.count == 2,
                let low = Int(range[0]),
                let high = Int(range[1])
            else { return (200, ["ETag": tag(bytes)], bytes) }
            if low >= bytes.count { return (416, ["Content-Range": "bytes */\(bytes.count)"], []) }
            let end = min(high, bytes.count - 1)
            return (206, ["ETag": tag(bytes), "Content-Range": "bytes \(low)-\(end)/\(bytes.count)"], Array(bytes[low...end]))
        case "PUT":
            if let number = request.query["partNumber"].flatMap({ Int($0) }), let id = request.query["uploadId"] {
                guard uploads[id] != nil else { return error(404, "NoSuchUpload") }
                uploads[id]?.parts[number] = request.body
                return (200, ["ETag": tag(request.body)], [])
            }
            if request.headers["if-none-match"] == "*", objects[key] != nil { return error(412, "PreconditionFailed") }
            if let wanted = request.headers["if-match"], objects[key].map({ tag($0) }) != wanted {
                return error(412, "PreconditionFailed")
            }
            objects[key] = request.body
            return (200, ["ETag": tag(request.body)], [])
        case "POST":
            if request.query["uploads"] != nil {
                uploadCount += 1
                uploads["u\(uploadCount)"] = (key, [:])
                return (200, [:], Array("<R><UploadId>u\(uploadCount)</UploadId></R>".utf8))
            }
            guard let id = request.query["uploadId"], let upload = uploads.removeValue(forKey: id) else {
                return error(404, "NoSuchUpload")
            }
            objects[key] = upload.parts.sorted { $0.key < $1.key }.reduce(into: [UInt8]()) { $0 += $1.value }
            return (200, [:], Array("<CompleteMultipartUploadResult/>".utf8))
        case "DELETE":
            if let id = request.query["uploadId"] { uploads[id] = nil } else { objects[key] = nil }
            return (204, [:], [])
        default: return error(405, "MethodNotAllowed")
        }
    }
}
