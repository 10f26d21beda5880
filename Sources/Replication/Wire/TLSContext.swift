import COpenSSL
import Glibc
import SharedStore
import SystemCalls

/// Who we are and whom we trust, for TLS 1.3.
public struct TLSSettings: Sendable {
    /// A certificate of our own with its key, and the authority that must have signed the other side's.
    public struct Certificates: Sendable {
        /// A path: PEM, with the certificates between it and the authority behind it.
        public var certificate: String
        /// A path: the key of the certificate, in PEM.
        public var key: String
        /// A path: certificates in PEM, of which one must have signed the other side's.
        public var authority: String
        /// Paths; they are read when a connection is made ready, not here.
        public init(certificate: String, key: String, authority: String) {
            (self.certificate, self.key, self.authority) = (certificate, key, authority)
        }
    }

    /// Nil where both sides know a shared secret instead.
    public var certificates: Certificates?
    /// A file of shared secrets, one `NAME:HEX` a line; a client uses the first one.
    public var sharedSecrets: String?
    /// A file of certificates that are not believed any more (`RevocationList`).
    public var revocations: String?

    /// - Parameter certificates: nil only together with a file of shared secrets.
    public init(certificates: Certificates? = nil, sharedSecrets: String? = nil, revocations: String? = nil) {
        (self.certificates, self.sharedSecrets, self.revocations) = (certificates, sharedSecrets, revocations)
    }
}

/// The library's context, made once and used by any number of connections.
final class TLSContext: @unchecked Sendable {
    // Sendable: the library's context may be used by many threads; the secrets do not change.
    let pointer: OpaquePointer
    let secrets: [SharedSecret]
    let revocations: RevocationList?

    struct SharedSecret: Sendable {
        let name: String
        let bytes: [UInt8]
    }

    /// - Throws: `WireError.badConfiguration`, naming the file at fault.
    init(_ settings: TLSSettings, isServer: Bool) throws {
        guard settings.certificates != nil || settings.sharedSecrets != nil else {
            throw WireError.badConfiguration("name a certificate, its key and the authority, or a file of shared secrets")
        }
        secrets = try settings.sharedSecrets.map { try Self.secrets($0) } ?? []
        revocations = try settings.revocations.map { try RevocationList($0, authority: settings.certificates?.authority) }
        guard let context = SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
            throw WireError.badConfiguration("TLS: \(Self.errorText())")
        }
        pointer = context
        // Version 1.3 only, no renegotiation, no tickets: a connection lives for days, and what is not there needs no care.
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_3_VERSION), nil)
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, 0, nil)
        SSL_CTX_set_num_tickets(context, 0)
        // Who has nothing to say needs no buffers.
        _ = SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        // A shared secret counts as a session for the library, which wants to know whose.
        if isServer {
            let name = Array("realm-sync".utf8)
            SSL_CTX_set_session_id_context(context, name, UInt32(name.count))
        }
        // Secrets are used with SHA-256; both sides must have a cipher with it.
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256")
        if let files = settings.certificates { try load(files) }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (isServer ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        guard !secrets.isEmpty else { return }
        if isServer {
            SSL_CTX_set_psk_server_callback(context) { connection, identity, buffer, length in
                guard let stream = TLSStream.of(connection), let identity, let buffer else { return 0 }
                return stream.secret(
                    named: String(cString: identity), into: UnsafeMutableBufferPointer(start: buffer, count: Int(length)))
            }
        } else {
            SSL_CTX_set_psk_client_callback(context) { connection, _, identity, identityLength, buffer, length in
                guard let stream = TLSStream.of(connection), let identity, let buffer else { return 0 }
                return stream.firstSecret(
                    UnsafeMutableBufferPointer(start: identity, count: Int(identityLength)),
                    UnsafeMutableBufferPointer(start: buffer, count: Int(length)))
            }
        }
    }

    deinit { SSL_CTX_free(pointer) }

    private func load(_ files: TLSSettings.Certificates) throws {
        ERR_clear_error()
        func check(_ result: Int32, _ what: String, _ path: String) throws {
            if result != 1 { throw WireError.badConfiguration("\(path): \(what) cannot be used: \(Self.errorText())") }
        }
        try check(SSL_CTX_use_certificate_chain_file(pointer, files.certificate), "the certificate", files.certificate)
        try check(SSL_CTX_use_PrivateKey_file(pointer, files.key, SSL_FILETYPE_PEM), "the key", files.key)
        try check(SSL_CTX_check_private_key(pointer), "the key", files.key)
        try check(SSL_CTX_load_verify_locations(pointer, files.authority, nil), "the authority's certificate", files.authority)
        if let names = SSL_load_client_CA_file(files.authority) { SSL_CTX_set_client_CA_list(pointer, names) }
    }

    /// What the library says of the last failure of this thread.
    static func errorText() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return "it says nothing of why" }
        guard let reason = ERR_reason_error_string(code) else { return "error \(code)" }
        return String(cString: reason)
    }

    private static let secretByteCountMin = 16, secretByteCountMax = 64

    private static func secrets(_ path: String) throws -> [SharedSecret] {
        let text: String
        do {
            let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
            defer { SystemCalls.close(descriptor) }
            let status = try SystemCalls.status(descriptor, path: path)
            if status.isRegularFile && status.mode & 0o077 != 0 {
                throw WireError.badConfiguration("\(path): others can read it; run 'chmod 600' on it")
            }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
            text = String(decoding: bytes[..<count], as: UTF8.self)
        } catch let error as SystemError { throw WireError.badConfiguration("\(error)") }
        var found: [SharedSecret] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.allSatisfy(\.isWhitespace) || line.hasPrefix("#") { continue }
            func problem(_ reason: String) -> WireError { .badConfiguration("\(path): line \(number + 1): \(reason)") }
            guard let colon = line.firstIndex(of: ":") else { throw problem("it is not of the form NAME:HEX") }
            let name = String(line[..<colon]), digits = Array(line[line.index(after: colon)...].utf8)
            guard !name.isEmpty, name.utf8.count <= 128, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw problem("the name cannot be")
            }
            var bytes: [UInt8] = []
            guard digits.count % 2 == 0 else { throw problem("the secret has an odd number of hex digits") }
            for i in stride(from: 0, to: digits.count, by: 2) {
                guard let byte = UInt8(String(decoding: digits[i...i + 1], as: UTF8.self), radix: 16) else {
                    throw problem("the secret is no hex number")
                }
                bytes.append(byte)
            }
            guard (secretByteCountMin...secretByteCountMax).contains(bytes.count) else {
                throw problem("a secret has \(secretByteCountMin) to \(secretByteCountMax) bytes, this one \(bytes.count)")
            }
            found.append(SharedSecret(name: name, bytes: bytes))
        }
        if found.isEmpty { throw WireError.badConfiguration("\(path): there is no secret in it") }
        return found
    }
}
