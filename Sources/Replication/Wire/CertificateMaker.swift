import COpenSSL
import Glibc
import SystemCalls

/// A small authority for people who have none: its certificate, and those of a server and of clients, for mirrors only.
///
/// Keys are of the curve P-256. Files: `ca.crt`, `ca.key`, and `NAME.crt`, `NAME.key` for each name; keys can be read by their
/// owner alone.
public final class CertificateMaker {
    /// What the certificate may be used for; the other end refuses one of the other kind.
    public enum Kind: Sendable { case server, client }

    private let folder: String
    private let authority: OpaquePointer
    private let authorityKey: OpaquePointer

    /// Takes the authority in `folder`, or makes it there.
    ///
    /// - Throws: `WireError.badConfiguration`, `SystemError`.
    public init(folder: String, days: Int = 3650) throws {
        self.folder = folder
        do { try SystemCalls.makeDirectory(folder, mode: 0o700) } catch let error as SystemError where error.code == EEXIST {}
        let path = folder + "/ca"
        if let key = try Self.readKey(path + ".key"), let certificate = try Self.readCertificate(path + ".crt") {
            (authority, authorityKey) = (certificate, key)
            return
        }
        authorityKey = try Self.makeKey()
        // A number in the name, so that two authorities are never taken for each other.
        let number = String(UInt32.random(in: .min ... .max), radix: 16)
        authority = try Self.make(
            name: "realm-sync mirror authority \(number)", key: authorityKey, issuer: nil, issuerKey: authorityKey, from: -86_400,
            seconds: days * 86_400,
            extensions: [(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign")])
        try Self.write(authorityKey, authority, path)
    }

    deinit {
        X509_free(authority)
        EVP_PKEY_free(authorityKey)
    }

    /// Makes a certificate and its key.
    ///
    /// - Parameters:
    ///   - name: the file's name, and the common name by which rights are given to a client.
    ///   - hosts: names and addresses of a server.
    ///   - validFrom: seconds from now.
    /// - Returns: the paths of both.
    @discardableResult
    public func make(
        _ kind: Kind, name: String, hosts: [String] = [], days: Int = 825, validFrom: Int = -86_400
    ) throws -> (certificate: String, key: String) {
        guard !name.isEmpty, name.utf8.count <= 64, name != "ca", name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2F }),
            !name.hasPrefix(".")
        else {
            throw WireError.badConfiguration(
                "'\(name)' cannot be the name of a certificate: letters, digits and signs but '/', at most 64")
        }
        var extensions = [
            (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
            (NID_ext_key_usage, kind == .server ? "serverAuth" : "clientAuth"),
        ]
        if kind == .server {
            let names = try (hosts.isEmpty ? [name] : hosts).map { host in
                guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2C }) else {
                    throw WireError.badConfiguration("'\(host)' is no host")
                }
                var address = in6_addr()
                let isAddress = inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
                return (isAddress ? "IP:" : "DNS:") + host
            }
            extensions.append((NID_subject_alt_name, names.joined(separator: ",")))
        }
        let key = try Self.makeKey()
        defer { EVP_PKEY_free(key) }
        let certificate = try Self.make(
            name: name, key: key, issuer: authority, issuerKey: authorityKey, from: validFrom, seconds: days * 86_400,
            extensions: extensions)
        defer { X509_free(certificate) }
        try Self.write(key, certificate, folder + "/" + name)
        return (folder + "/" + name + ".crt", folder + "/" + name + ".key")
    }

    /// Puts the certificate of that name into the file `revoked`, and gives its files other names.
    ///
    /// - Returns: the new path of the certificate.
    /// - Throws: `WireError.badConfiguration` where there is none of that name.
    public func revoke(_ name: String) throws -> String {
        let path = folder + "/" + name
        guard !name.contains("/"), name != "ca", let found = try Self.readCertificate(path + ".crt") else {
            throw WireError.badConfiguration("there is no certificate \(path).crt")
        }
        let fingerprint = "\(PeerCertificate(found).fingerprint)"
        let list = folder + "/revoked", temporary = list + ".part"
        let old = String(
            decoding: try Self.read(list) ?? Array("# SHA-256 of certificates that count no more, for --revoked\n".utf8),
            as: UTF8.self)
        if !old.contains(fingerprint) {
            try? SystemCalls.unlink(temporary)
            let descriptor = try SystemCalls.open(temporary, O_WRONLY | O_CREAT | O_EXCL)
            do {
                defer { SystemCalls.close(descriptor) }
                let text = Array((old + (old.isEmpty || old.hasSuffix("\n") ? "" : "\n") + "\(fingerprint)  # \(name)\n").utf8)
                try text.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: temporary) }
                try SystemCalls.sync(descriptor, path: temporary)
            }
            try SystemCalls.rename(temporary, to: list)
        }
        // Known as revoked before its name is free.
        let aside = "\(path).revoked-\(fingerprint.prefix(8))"
        try SystemCalls.rename(path + ".crt", to: aside + ".crt")
        do { try SystemCalls.rename(path + ".key", to: aside + ".key") } catch let error as SystemError where error.code == ENOENT
        {}
        try SystemCalls.syncDirectory(of: list)
        return aside + ".crt"
    }

    // MARK: The library

    private static func failure(_ what: String) -> WireError { .badConfiguration("\(what): \(TLSContext.errorText())") }

    private static func makeKey() throws -> OpaquePointer {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { throw failure("a key") }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw failure("a key") }
        return key
    }

    private static func make(
        name: String, key: OpaquePointer, issuer: OpaquePointer?, issuerKey: OpaquePointer, from: Int, seconds: Int,
        extensions: [(Int32, String)]
    ) throws -> OpaquePointer {
        guard let certificate = X509_new(), let number = BN_new() else { throw failure("a certificate") }
        defer { BN_free(number) }
        let subject = X509_get_subject_name(certificate)
        guard X509_set_version(certificate, 2) == 1, BN_rand(number, 127, 0, 0) == 1,
            BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil,
            X509_gmtime_adj(X509_getm_notBefore(certificate), from) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), from + seconds) != nil,
            X509_set_pubkey(certificate, key) == 1,
            X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, Array(name.utf8), Int32(name.utf8.count), -1, 0)
                == 1,
            X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0) } ?? subject) == 1
        else {
            X509_free(certificate)
            throw failure("a certificate")
        }
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer ?? certificate, certificate, nil, nil, 0)
        for (kind, value) in extensions + [(NID_subject_key_identifier, "hash")] {
            guard let entry = X509V3_EXT_conf_nid(nil, &context, kind, value), X509_add_ext(certificate, entry, -1) == 1 else {
                X509_free(certificate)
                throw failure("'\(value)' in a certificate")
            }
            X509_EXTENSION_free(entry)
        }
        guard X509_sign(certificate, issuerKey, EVP_sha256()) > 0 else {
            X509_free(certificate)
            throw failure("the signature of a certificate")
        }
        return certificate
    }

    private static func text(_ body: (OpaquePointer) -> Int32) throws -> [UInt8] {
        guard let memory = BIO_new(BIO_s_mem()) else { throw failure("memory") }
        defer { BIO_free(memory) }
        guard body(memory) == 1 else { throw failure("a certificate's text") }
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
        guard BIO_read(memory, &bytes, Int32(bytes.count)) == bytes.count else { throw failure("a certificate's text") }
        return bytes
    }

    /// Both files appear whole; a key first, so that no certificate is without one.
    private static func write(_ key: OpaquePointer, _ certificate: OpaquePointer, _ path: String) throws {
        let keyText = try text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        let certificateText = try text { PEM_write_bio_X509($0, certificate) }
        for (end, bytes, mode) in [(".key", keyText, UInt32(0o600)), (".crt", certificateText, 0o644)] {
            let temporary = path + end + ".part"
            try? SystemCalls.unlink(temporary)
            let descriptor = try SystemCalls.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
            do {
                defer { SystemCalls.close(descriptor) }
                try bytes.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: temporary) }
                try SystemCalls.sync(descriptor, path: temporary)
            }
            do { try SystemCalls.renameExclusively(temporary, to: path + end) } catch {
                try? SystemCalls.unlink(temporary)
                throw error
            }
        }
        try SystemCalls.syncDirectory(of: path)
    }

    private static func read(_ path: String) throws -> [UInt8]? {
        do {
            let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
            defer { SystemCalls.close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 1 << 22)
            let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
            return Array(bytes[..<count])
        } catch let error as SystemError where error.code == ENOENT { return nil }
    }

    /// A copy of the bytes, for the library to read.
    private static func memory(_ bytes: [UInt8]) throws -> OpaquePointer {
        guard let memory = BIO_new(BIO_s_mem()) else { throw failure("memory") }
        guard BIO_write(memory, bytes, Int32(bytes.count)) == bytes.count else {
            BIO_free(memory)
            throw failure("memory")
        }
        return memory
    }

    private static func readKey(_ path: String) throws -> OpaquePointer? {
        guard let bytes = try read(path) else { return nil }
        let memory = try self.memory(bytes)
        defer { BIO_free(memory) }
        guard let key = PEM_read_bio_PrivateKey(memory, nil, nil, nil) else { throw failure(path) }
        return key
    }

    private static func readCertificate(_ path: String) throws -> OpaquePointer? {
        guard let bytes = try read(path) else { return nil }
        let memory = try self.memory(bytes)
        defer { BIO_free(memory) }
        guard let certificate = PEM_read_bio_X509(memory, nil, nil, nil) else { throw failure(path) }
        return certificate
    }
}
