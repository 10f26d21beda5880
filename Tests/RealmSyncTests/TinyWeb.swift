import Foundation
import Glibc

/// A web server on this machine for files in memory, which breaks off, refuses, redirects, and tells what it was asked.
final class TinyWeb: @unchecked Sendable {
    // Sendable: all state is behind `lock`, but for the socket, which never changes.
    enum Fault: Equatable {
        case none
        case status(Int)
        /// The connection ends after so many bytes of the body.
        case cut(Int)
        /// The same, and another file is there afterwards.
        case cutAndPut(Int, [UInt8])
        case redirect(String)
        /// A body without an end and without a length.
        case endless
    }

    struct Request: Equatable {
        var path: String
        var range: String?
    }

    private let lock = NSLock()
    private let listener: Int32
    let port: UInt16
    private var files: [String: [UInt8]] = [:]
    private var fault: @Sendable (_ number: Int, Request) -> Fault = { _, _ in .none }
    private var requests: [Request] = []
    private var version = 1

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(socket, pointer, length) == 0 && listen(socket, 64) == 0 && getsockname(socket, pointer, &length) == 0
            }
        }
        guard isBound else { throw CocoaError(.fileReadUnknown) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(socket, nil, nil)
                guard connection >= 0, let self else { return }
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }
    /// Another content has another ETag.
    func put(_ path: String, _ bytes: [UInt8]) {
        lock.withLock {
            files["/" + path] = bytes
            version += 1
        }
    }
    func misbehave(_ body: @escaping @Sendable (_ number: Int, Request) -> Fault) {
        lock.withLock {
            fault = body
            requests = []
        }
    }
    var served: [Request] { lock.withLock { requests } }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        var text = "", chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            while !text.contains("\r\n\r\n") {
                let count = recv(connection, &chunk, chunk.count, 0)
                if count <= 0 { return }
                text += String(decoding: chunk[..<count], as: UTF8.self)
            }
            let lines = text.components(separatedBy: "\r\n")
            text = ""
            let words = lines[0].split(separator: " ")
            guard words.count == 3 else { return }
            var request = Request(path: String(words[1]))
            var condition: String?
            for line in lines {
                let lower = line.lowercased()
                if lower.hasPrefix("range: bytes=") { request.range = String(line.dropFirst(13)) }
                if lower.hasPrefix("if-range: ") { condition = String(line.dropFirst(10)) }
            }
            let asked = request
            let (kind, body, tag) = lock.withLock { () -> (Fault, [UInt8]?, String) in
                requests.append(asked)
                return (fault(requests.count, asked), files[asked.path], "\"v\(version)\"")
            }
            if !answer(connection, request.path, kind, body, request.range, condition == nil || condition == tag, tag) { return }
        }
    }

    /// False where the connection ends.
    private func answer(
        _ connection: Int32, _ path: String, _ kind: Fault, _ body: [UInt8]?, _ range: String?, _ isSame: Bool, _ tag: String
    ) -> Bool {
        func head(_ status: Int, _ lines: [String]) -> [UInt8] {
            Array("HTTP/1.1 \(status) X\r\n\(lines.map { $0 + "\r\n" }.joined())\r\n".utf8)
        }
        switch kind {
        case .status(let status): return send(connection, head(status, ["Content-Length: 5"]) + Array("error".utf8))
        case .redirect(let place): return send(connection, head(302, ["Location: \(place)", "Content-Length: 0"]))
        case .endless:
            guard send(connection, head(200, ["Connection: close"])) else { return false }
            let piece = [UInt8](repeating: 7, count: 1 << 16)
            while send(connection, piece) {}
            return false
        case .none, .cut, .cutAndPut:
            guard let body else { return send(connection, head(404, ["Content-Length: 0"])) }
            var part = body[...], answer: [UInt8]
            if let range, isSame, let first = Int(range.dropLast()), first < body.count {
                part = body[first...]
                answer = head(
                    206,
                    [
                        "Content-Length: \(part.count)", "Content-Range: bytes \(first)-\(body.count - 1)/\(body.count)",
                        "ETag: \(tag)",
                    ])
            } else {
                answer = head(200, ["Content-Length: \(part.count)", "ETag: \(tag)"])
            }
            if case .cut(let count) = kind {
                _ = send(connection, answer + part.prefix(count))
                return false
            }
            if case .cutAndPut(let count, let next) = kind {
                put(String(path.dropFirst()), next)
                _ = send(connection, answer + part.prefix(count))
                return false
            }
            answer += part
            return send(connection, answer)
        }
    }

    private func send(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { pointer in
            var at = 0
            while at < pointer.count {
                let done = Glibc.send(connection, pointer.baseAddress.map { $0 + at }, pointer.count - at, Int32(MSG_NOSIGNAL))
                if done <= 0 { return false }
                at += done
            }
            return true
        }
    }
}
