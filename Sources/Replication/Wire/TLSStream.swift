import COpenSSL
import Glibc
import SystemCalls

/// TLS 1.3 over a socket.
///
/// The library never sees the socket: it reads and writes memory, and this class carries bytes between memory and socket, so that
/// every wait is ours and has a limit.
final class TLSStream: ByteStream {
    private(set) var peer: String
    let descriptor: Int32
    private let connection: OpaquePointer
    private let context: TLSContext
    private let isServer: Bool
    private var isOpen = true
    /// The other side is known and trusted.
    private var isEstablished = false
    /// Called before the descriptor is closed.
    var onClose: () -> Void = {}
    /// The shared secret that the client has named.
    private(set) var offeredSecret: String?
    /// What the other side has shown; nil where both know a secret.
    private(set) var certificate: PeerCertificate?
    /// Whether the certificate that the other side has shown counts no more.
    var isRevoked: Bool { certificate.map { context.revocations?.revokes($0) ?? false } ?? false }

    /// Takes over a connected socket that does not block.
    ///
    /// - Parameter host: the name that the server's certificate must bear; nil for a server.
    init(_ descriptor: Int32, _ context: TLSContext, host: String?, peer: String) throws {
        self.descriptor = descriptor
        self.context = context
        self.peer = peer
        isServer = host == nil
        guard let connection = SSL_new(context.pointer), let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem())
        else {
            SystemCalls.close(descriptor)
            throw WireError.closed(peer: peer, reason: "out of memory")
        }
        self.connection = connection
        SSL_set_bio(connection, incoming, outgoing)
        SSL_set_ex_data(connection, 0, Unmanaged.passUnretained(self).toOpaque())
        if let host {
            SSL_set_connect_state(connection)
            if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host) != 1 {
                ERR_clear_error()
                SSL_set1_host(connection, host)
                host.withCString {
                    _ = SSL_ctrl(
                        connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                        UnsafeMutableRawPointer(mutating: $0))
                }
            }
        } else {
            SSL_set_accept_state(connection)
        }
    }

    deinit {
        close(lingering: false)
        SSL_free(connection)
    }

    static func of(_ connection: OpaquePointer?) -> TLSStream? {
        SSL_get_ex_data(connection, 0).map { Unmanaged<TLSStream>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: Shared secrets

    fileprivate func copy(_ bytes: [UInt8], _ buffer: UnsafeMutableBufferPointer<UInt8>) -> UInt32 {
        guard bytes.count <= buffer.count else { return 0 }
        for (i, byte) in bytes.enumerated() { buffer[i] = byte }
        return UInt32(bytes.count)
    }

    func secret(named name: String, into buffer: UnsafeMutableBufferPointer<UInt8>) -> UInt32 {
        guard let found = context.secrets.first(where: { $0.name == name }) else { return 0 }
        offeredSecret = name
        return copy(found.bytes, buffer)
    }

    func firstSecret(_ name: UnsafeMutableBufferPointer<CChar>, _ buffer: UnsafeMutableBufferPointer<UInt8>) -> UInt32 {
        guard let found = context.secrets.first, found.name.utf8.count < name.count else { return 0 }
        for (i, byte) in found.name.utf8.enumerated() { name[i] = CChar(bitPattern: byte) }
        name[found.name.utf8.count] = 0
        return copy(found.bytes, buffer)
    }

    // MARK: The handshake

    /// Finds out who is at the other end.
    ///
    /// - Returns: the common name of the other side's certificate, or the name of the shared secret.
    /// - Throws: `WireError.notTrusted` and `.silent`.
    @discardableResult
    func shakeHands(milliseconds: Int, isStopped: () -> Bool) throws -> String {
        let limit = SystemCalls.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
        while true {
            ERR_clear_error()
            let result = SSL_do_handshake(connection)
            let code = SSL_get_error(connection, result)
            // What went wrong is told to the other side too.
            let failure = result == 1 || code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE ? nil : self.failure(code)
            do { try flush(isStopped) } catch { throw failure ?? error }
            if let failure { throw failure }
            if result == 1 { break }
            while try receive() == 0 {
                let left = (limit - SystemCalls.monotonicNanoseconds()) / 1_000_000
                if left <= 0 { throw WireError.silent(peer: peer, seconds: milliseconds / 1000) }
                if isStopped() { throw WireError.stopped }
                _ = Waiting.poll(descriptor, POLLIN, milliseconds: Int32(min(left, 250)))
            }
        }
        isEstablished = true
        guard let certificate = SSL_get1_peer_certificate(connection) else {
            // Without a certificate the library has let nobody in who does not know the secret.
            if isServer, offeredSecret == nil { throw WireError.notTrusted(peer: peer, reason: "it has shown no certificate") }
            let name = offeredSecret ?? context.secrets.first?.name ?? ""
            peer = "\(name) at \(peer)"
            return name
        }
        let shown = PeerCertificate(certificate)
        self.certificate = shown
        var text = [CChar](repeating: 0, count: 256)
        let count = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, &text, Int32(text.count))
        let name = count > 0 ? text.withUnsafeBytes { String(decoding: $0.prefix(Int(count)), as: UTF8.self) } : ""
        guard !name.isEmpty, !name.unicodeScalars.contains(where: { $0.value < 0x21 || $0.value == 0x7F }) else {
            throw WireError.notTrusted(peer: peer, reason: "its certificate has no common name, or one that cannot be")
        }
        if isServer { peer = "\(name) at \(peer)" }
        // A server tells its client why before it ends.
        if !isServer, isRevoked { throw WireError.notTrusted(peer: peer, reason: "its certificate was revoked") }
        return name
    }

    /// Alerts of the other side that say it does not believe us (RFC 8446 section 6), as the library numbers them.
    private static let trustAlerts: Set<Int32> = [1042, 1043, 1044, 1045, 1046, 1048, 1049, 1051, 1115, 1116]
    /// The same where the secret may be the wrong one.
    private static let secretAlerts: Set<Int32> = [1040, 1047]

    private func failure(_ code: Int32) -> WireError {
        let number = ERR_peek_error()
        let reason = Int32(truncatingIfNeeded: number & 0x7F_FFFF)
        var text = TLSContext.errorText()
        let verification = SSL_get_verify_result(connection)
        if !isEstablished, verification != Int(X509_V_OK) {
            text = String(cString: X509_verify_cert_error_string(verification))
            return .notTrusted(peer: peer, reason: "its certificate: \(text)")
        }
        if Self.trustAlerts.contains(reason) { return .notTrusted(peer: peer, reason: "it does not believe us: \(text)") }
        if !context.secrets.isEmpty, Self.secretAlerts.contains(reason) {
            return .notTrusted(peer: peer, reason: "the shared secret is another one: \(text)")
        }
        if !isEstablished, isServer { return .notTrusted(peer: peer, reason: text) }
        return .closed(peer: peer, reason: text)
    }

    // MARK: Bytes

    /// Takes what the socket has; the number of bytes.
    private func receive() throws -> Int {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { space in
            let count = SystemCalls.receive(descriptor, into: space)
            if count == -Int(EAGAIN) { return 0 }
            if count == 0 { throw WireError.closed(peer: peer, reason: "the other side has gone") }
            if count < 0 { throw WireError.closed(peer: peer, reason: String(cString: strerror(Int32(-count)))) }
            guard BIO_write(SSL_get_rbio(connection), space.baseAddress, Int32(count)) == count else {
                throw WireError.closed(peer: peer, reason: "out of memory")
            }
            return count
        }
    }

    /// Sends what the library has written.
    private func flush(_ isStopped: () -> Bool) throws {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 15, alignment: 16) { space in
            while true {
                let count = BIO_read(SSL_get_wbio(connection), space.baseAddress, Int32(space.count))
                if count <= 0 { return }
                var rest = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(space)[..<Int(count)])
                var since = SystemCalls.monotonicNanoseconds()
                while !rest.isEmpty {
                    let sent = SystemCalls.send(descriptor, rest)
                    if sent >= 0 {
                        rest = UnsafeRawBufferPointer(rebasing: rest[sent...])
                        since = SystemCalls.monotonicNanoseconds()
                    } else if sent == -Int(EAGAIN) {
                        try Waiting.writable(descriptor, peer, since: since, isStopped: isStopped)
                    } else {
                        throw WireError.closed(peer: peer, reason: String(cString: strerror(Int32(-sent))))
                    }
                }
            }
        }
    }

    func readAvailable(into buffer: inout [UInt8]) throws -> Int {
        guard isOpen else { throw WireError.closed(peer: peer, reason: "it was closed here") }
        return try withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 16) { space in
            while true {
                ERR_clear_error()
                let count = SSL_read(connection, space.baseAddress, Int32(space.count))
                if count > 0 {
                    buffer.append(contentsOf: space[..<Int(count)])
                    return Int(count)
                }
                switch SSL_get_error(connection, count) {
                case SSL_ERROR_WANT_READ: if try receive() == 0 { return 0 }
                case SSL_ERROR_ZERO_RETURN: throw WireError.closed(peer: peer, reason: "the other side has ended it")
                case let code: throw failure(code)
                }
            }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, isStopped: () -> Bool) throws {
        guard isOpen else { throw WireError.closed(peer: peer, reason: "it was closed here") }
        var rest = bytes
        while !rest.isEmpty {
            ERR_clear_error()
            let count = SSL_write(connection, rest.baseAddress, Int32(min(rest.count, 1 << 14)))
            guard count > 0 else { throw failure(SSL_get_error(connection, count)) }
            rest = UnsafeRawBufferPointer(rebasing: rest[Int(count)...])
            try flush(isStopped)
        }
    }

    func close(lingering: Bool) {
        guard isOpen else { return }
        isOpen = false
        if isEstablished {
            SSL_shutdown(connection)
            try? flush { true }
        }
        if lingering {
            SystemCalls.shutDownWriting(descriptor)
            let limit = SystemCalls.monotonicNanoseconds() + 1_000_000_000
            withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 16) { space in
                while SystemCalls.monotonicNanoseconds() < limit {
                    let count = SystemCalls.receive(descriptor, into: space)
                    if count == 0 || count < 0 && count != -Int(EAGAIN) { return }
                    if count < 0 { _ = Waiting.poll(descriptor, POLLIN, milliseconds: 100) }
                }
            }
        }
        onClose()
        SystemCalls.close(descriptor)
    }
}
