import Glibc

/// Sockets of a service for its own machine: a socket in the file system, a port at a numeric address, and the datagrams that the
/// service manager reads. All are closed on exec, and none of the calls waits unless it says so.
public enum LocalSocket {
    private static let streamType: Int32 = 1, datagramType: Int32 = 2
    // SOCK_CLOEXEC | SOCK_NONBLOCK
    private static let flags: Int32 = 0o2000000 | 0o4000

    private static func result(_ value: Int32) -> Int64 { value < 0 ? -Int64(errno) : Int64(value) }

    private static func make(_ family: Int32, _ type: Int32, _ path: String) throws -> SystemCalls.Descriptor {
        try SystemCallInterception.ask("socket", path)
        return Int32(try SystemCalls.check("socket", path) { result(socket(family, type | flags, 0)) })
    }

    /// The address of a socket in the file system; a name that begins with `@` is one in the abstract space.
    private static func withAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result) throws
        -> Result
    {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8), isAbstract = path.hasPrefix("@")
        let room = MemoryLayout.size(ofValue: address.sun_path)
        if bytes.isEmpty || bytes.count >= room { throw SystemError(call: "bind", code: ENAMETOOLONG, path: path) }
        withUnsafeMutableBytes(of: &address.sun_path) { place in
            place.copyBytes(from: bytes)
            if isAbstract { place[0] = 0 }
        }
        let offset = MemoryLayout<sockaddr_un>.size - room
        let length = socklen_t(offset + bytes.count + (isAbstract ? 0 : 1))
        return try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, length) }
        }
    }

    /// Listens at a path. A socket that nobody listens at any more is removed first; where somebody does, EADDRINUSE is thrown.
    public static func listen(path: String, mode: UInt32) throws -> SystemCalls.Descriptor {
        if let status = try? SystemCalls.linkStatus(path: path), status.mode & S_IFMT == S_IFSOCK {
            if let other = try? connect(path: path) {
                SystemCalls.close(other)
                throw SystemError(call: "bind", code: EADDRINUSE, path: path)
            }
            try SystemCalls.unlink(path)
        }
        let descriptor = try make(AF_UNIX, streamType, path)
        do {
            _ = try withAddress(path) { address, length in
                try SystemCalls.check("bind", path) { result(bind(descriptor, address, length)) }
            }
            _ = try SystemCalls.check("chmod", path) { result(chmod(path, mode)) }
            _ = try SystemCalls.check("listen", path) { result(Glibc.listen(descriptor, 64)) }
            return descriptor
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    /// Connects to a path without waiting; EAGAIN where the other side has too much to do.
    public static func connect(path: String) throws -> SystemCalls.Descriptor {
        let descriptor = try make(AF_UNIX, streamType, path)
        do {
            _ = try withAddress(path) { address, length in
                try SystemCalls.check("connect", path) { result(Glibc.connect(descriptor, address, length)) }
            }
            return descriptor
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    /// A numeric address and a port; nil where `host` is none. `localhost` is 127.0.0.1.
    private static func internetAddress(_ host: String, _ port: UInt16) -> (Int32, [UInt8])? {
        let host = host == "localhost" ? "127.0.0.1" : host
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = port.bigEndian
        if inet_pton(AF_INET, host, &four.sin_addr) == 1 { return (AF_INET, withUnsafeBytes(of: &four) { Array($0) }) }
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        six.sin6_port = port.bigEndian
        if inet_pton(AF_INET6, host, &six.sin6_addr) == 1 { return (AF_INET6, withUnsafeBytes(of: &six) { Array($0) }) }
        return nil
    }

    /// A name would have to be looked up, an address not.
    public static func isNumericAddress(_ host: String) -> Bool { internetAddress(host, 0) != nil }

    /// Listens at a port of a numeric address; port 0 is any that is free. EINVAL where the address is none.
    public static func listen(host: String, port: UInt16) throws -> (SystemCalls.Descriptor, port: UInt16) {
        let name = "\(host):\(port)"
        guard let (family, bytes) = internetAddress(host, port) else { throw SystemError(call: "bind", code: EINVAL, path: name) }
        let descriptor = try make(family, streamType, name)
        do {
            var one: Int32 = 1
            _ = try SystemCalls.check("setsockopt", name) {
                result(setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size)))
            }
            _ = try bytes.withUnsafeBytes { bytes in
                try SystemCalls.check("bind", name) {
                    guard let start = bytes.baseAddress else { return -Int64(EINVAL) }
                    return result(bind(descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)))
                }
            }
            _ = try SystemCalls.check("listen", name) { result(Glibc.listen(descriptor, 64)) }
            return (descriptor, boundPort(descriptor))
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    private static func boundPort(_ descriptor: SystemCalls.Descriptor) -> UInt16 {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        // The port is at the same place in both families.
        return code == 0 ? UInt16(bigEndian: address.sin6_port) : 0
    }

    /// The next connection that waits; nil where none does.
    public static func accept(_ listener: SystemCalls.Descriptor) throws -> SystemCalls.Descriptor? {
        try SystemCallInterception.ask("accept4", "", listener)
        let accepted: Int64
        do { accepted = try SystemCalls.check("accept4", "") { result(Glibc.accept(listener, nil, nil)) } } catch let error
            as SystemError
            where [EAGAIN, ECONNABORTED, EPERM, EPROTO].contains(error.code)
        { return nil }
        let descriptor = Int32(accepted)
        try SystemCalls.setCloseOnExec(descriptor)
        try SystemCalls.setNonBlocking(descriptor)
        return descriptor
    }

    /// Bytes that have come: their number, 0 at the end, or a negative `errno`.
    public static func receive(_ descriptor: SystemCalls.Descriptor, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0x40)  // MSG_DONTWAIT
            let code = errno
            if count >= 0 { return count }
            if code != EINTR { return -Int(code) }
        }
    }

    /// Sends what the system takes at once: the number of bytes, or a negative `errno`. Raises no signal.
    public static func send(_ descriptor: SystemCalls.Descriptor, _ bytes: UnsafeRawBufferPointer) -> Int {
        while true {
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, 0x4040)  // MSG_NOSIGNAL | MSG_DONTWAIT
            let code = errno
            if count >= 0 { return count }
            if code != EINTR { return -Int(code) }
        }
    }

    /// Sends one datagram to the socket at `path`.
    public static func sendDatagram(_ text: String, to path: String) throws {
        let descriptor = try make(AF_UNIX, datagramType, path)
        defer { SystemCalls.close(descriptor) }
        try Array(text.utf8).withUnsafeBytes { bytes in
            _ = try withAddress(path) { address, length in
                try SystemCalls.check("sendto", path) {
                    let count = sendto(descriptor, bytes.baseAddress, bytes.count, 0x4040, address, length)
                    return count < 0 ? -Int64(errno) : Int64(count)
                }
            }
        }
    }
}
