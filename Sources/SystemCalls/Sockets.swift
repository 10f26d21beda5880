import Glibc

/// Stream sockets of the internet, by IPv6 and IPv4.
extension SystemCalls {
    /// An address that a name stands for, as text and as the system wants it.
    public struct SocketAddress: Sendable {
        /// The numeric address with its port, for people.
        public let text: String
        /// `AF_INET` or `AF_INET6`.
        public let family: Int32
        let bytes: [UInt8]
    }

    /// `EAI_...` of getaddrinfo(3), with its text.
    public struct NameError: Error, Sendable, CustomStringConvertible {
        /// The name that was looked up.
        public let host: String
        /// The text of gai_strerror(3).
        public let reason: String
        public var description: String { "\(host): \(reason)" }
    }

    /// The addresses of a host and a port; of this machine to listen at where `forListening`, for which an empty host means all.
    public static func addresses(host: String, port: UInt16, forListening: Bool = false) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = forListening ? 1 : 0  // AI_PASSIVE
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host.isEmpty ? nil : host, String(port), &hints, &list)
        if code != 0 { throw NameError(host: host, reason: String(cString: gai_strerror(code))) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ai_next
            guard entry.ai_family == AF_INET || entry.ai_family == AF_INET6, let address = entry.ai_addr else { continue }
            found.append(
                SocketAddress(
                    text: text(of: address, entry.ai_addrlen), family: entry.ai_family,
                    bytes: Array(UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen)))))
        }
        return found
    }

    /// "192.0.2.1:4711" or "[2001:db8::1]:4711".
    private static func text(of address: UnsafePointer<sockaddr>, _ length: socklen_t) -> String {
        var host = [CChar](repeating: 0, count: 128), port = [CChar](repeating: 0, count: 16)
        // NI_NUMERICHOST | NI_NUMERICSERV
        guard getnameinfo(address, length, &host, socklen_t(host.count), &port, socklen_t(port.count), 3) == 0 else {
            return "an unknown address"
        }
        func string(_ text: [CChar]) -> String { text.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } }
        return string(host).contains(":") ? "[\(string(host))]:\(string(port))" : "\(string(host)):\(string(port))"
    }

    private static func makeSocket(_ family: Int32) throws -> Descriptor {
        try SystemCallInterception.ask("socket")
        // SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK
        return Int32(try check("socket", "") { result(socket(family, 1 | 0o2000000 | 0o4000, 0)) })
    }

    private static func result(_ value: Int32) -> Int64 { value < 0 ? -Int64(errno) : Int64(value) }

    private static func setOption(_ fd: Descriptor, _ level: Int32, _ option: Int32, _ value: Int32) throws {
        var value = value
        _ = try check("setsockopt", "") { result(setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))) }
    }

    /// A socket that listens at `address`. One of IPv6 takes no connections of IPv4: those have a socket of their own.
    public static func listen(at address: SocketAddress, backlog: Int32 = 128) throws -> Descriptor {
        let fd = try makeSocket(address.family)
        do {
            try setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1)
            if address.family == AF_INET6 { try setOption(fd, 41, 26, 1) }  // IPPROTO_IPV6, IPV6_V6ONLY
            _ = try address.bytes.withUnsafeBytes { bytes in
                try check("bind", address.text) {
                    guard let start = bytes.baseAddress else { return -Int64(EINVAL) }
                    return result(bind(fd, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)))
                }
            }
            _ = try check("listen", address.text) { result(Glibc.listen(fd, backlog)) }
            return fd
        } catch {
            close(fd)
            throw error
        }
    }

    /// The address that a socket has got, for example a port that the system chose.
    public static func localAddress(_ fd: Descriptor) -> String {
        name { getsockname(fd, $0, $1) }
    }

    private static func name(_ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) -> String {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, &length) == 0 ? text(of: $0, length) : "an unknown address"
            }
        }
    }

    /// A connection that waits to be accepted, and whose it is; nil where there is none (any more).
    public static func accept(_ fd: Descriptor) throws -> (descriptor: Descriptor, peer: String)? {
        try SystemCallInterception.ask("accept", "", fd)
        var accepted: Int32 = -1
        do {
            accepted = Int32(try check("accept", "") { result(Glibc.accept(fd, nil, nil)) })
        } catch let error as SystemError
            where [EAGAIN, ECONNABORTED, EPERM, EPROTO, ENETDOWN, EHOSTUNREACH, ENETUNREACH].contains(error.code)
        {
            return nil
        }
        try setCloseOnExec(accepted)
        try prepare(accepted)
        return (accepted, name { getpeername(accepted, $0, $1) })
    }

    /// Small messages leave at once; a peer whose machine has gone is noticed within minutes.
    private static func prepare(_ fd: Descriptor) throws {
        try setNonBlocking(fd)
        try setOption(fd, 6, 1, 1)  // IPPROTO_TCP, TCP_NODELAY
        try setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1)
    }

    /// Connects to the first of `addresses` that answers.
    ///
    /// - Throws: the last `SystemError`; ETIMEDOUT after the time.
    public static func connect(to addresses: [SocketAddress], milliseconds: Int32, isStopped: () -> Bool) throws -> Descriptor {
        var last = SystemError(call: "connect", code: EHOSTUNREACH)
        for address in addresses {
            do { return try connect(to: address, milliseconds, isStopped) } catch let error as SystemError { last = error }
        }
        throw last
    }

    private static func connect(to address: SocketAddress, _ milliseconds: Int32, _ isStopped: () -> Bool) throws -> Descriptor {
        let fd = try makeSocket(address.family)
        do {
            do {
                _ = try address.bytes.withUnsafeBytes { bytes in
                    try check("connect", address.text) {
                        guard let start = bytes.baseAddress else { return -Int64(EINVAL) }
                        return result(Glibc.connect(fd, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)))
                    }
                }
            } catch let error as SystemError where error.code == EINPROGRESS {
                let limit = monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
                var request = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
                while poll(&request, 1, 100) <= 0 {
                    if isStopped() || monotonicNanoseconds() > limit {
                        throw SystemError(call: "connect", code: ETIMEDOUT, path: address.text)
                    }
                }
                var code: Int32 = 0
                var length = socklen_t(MemoryLayout<Int32>.size)
                _ = try check("getsockopt", address.text) { result(getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length)) }
                if code != 0 { throw SystemError(call: "connect", code: code, path: address.text) }
            }
            try prepare(fd)
            return fd
        } catch {
            close(fd)
            throw error
        }
    }

    /// Bytes that have come, without waiting: their number, 0 at the end, or a negative `errno`.
    public static func receive(_ fd: Descriptor, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = recv(fd, buffer.baseAddress, buffer.count, 0x40)  // MSG_DONTWAIT
            let code = errno
            if count >= 0 { return count }
            if code != EINTR { return -Int(code) }
        }
    }

    /// Sends without waiting and without a signal: the number of bytes that were taken, or a negative `errno`.
    public static func send(_ fd: Descriptor, _ bytes: UnsafeRawBufferPointer) -> Int {
        while true {
            let count = Glibc.send(fd, bytes.baseAddress, bytes.count, 0x4040)  // MSG_NOSIGNAL | MSG_DONTWAIT
            let code = errno
            if count >= 0 { return count }
            if code != EINTR { return -Int(code) }
        }
    }

    /// Says that nothing more will be sent.
    public static func shutDownWriting(_ fd: Descriptor) { _ = shutdown(fd, 1) }

    /// Ends a connection in both directions; whoever waits for it wakes.
    public static func shutDown(_ fd: Descriptor) { _ = shutdown(fd, 2) }
}
