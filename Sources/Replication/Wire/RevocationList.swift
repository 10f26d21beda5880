import COpenSSL
import Glibc
import SystemCalls

/// The certificate of the other side, kept as long as the connection.
final class PeerCertificate: @unchecked Sendable {
    // Sendable: it is only read.
    fileprivate let pointer: OpaquePointer
    /// SHA-256 over the whole certificate, as `openssl x509 -fingerprint -sha256` shows it.
    let fingerprint: Digest

    /// Takes over the certificate.
    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
        var bytes = [UInt8](repeating: 0, count: 32), count: UInt32 = 32
        var found = Digest()
        if X509_digest(pointer, EVP_sha256(), &bytes, &count) == 1, count == 32 {
            found = bytes.withUnsafeBytes { space in space.baseAddress.map { Digest($0) } ?? Digest() }
        }
        fingerprint = found
    }

    deinit { X509_free(pointer) }
}

/// Certificates that are not believed any more, though an authority has signed them and their time is not over.
///
/// A file of either or both: lists that the authority has signed (CRLs, in PEM form), and lines with the SHA-256 of a
/// certificate, as 64 hex digits with or without colons, alone or behind `sha256 Fingerprint=`; `#` begins a comment.
final class RevocationList: @unchecked Sendable {
    // Sendable: nothing changes after it was read.
    private var fingerprints: Set<Digest> = []
    private var lists: [OpaquePointer] = []
    /// What the administrator should know: of lists that are out of date, which count all the same.
    private(set) var warnings: [String] = []

    private static let byteCountMax = 64 << 20

    /// - Parameter authority: the file of the authorities, one of which must have signed each list.
    /// - Throws: `WireError.badConfiguration`, naming file and line.
    init(_ path: String, authority: String?) throws {
        let bytes: [UInt8]
        do { bytes = try Self.read(path) } catch let error as SystemError { throw WireError.badConfiguration("\(error)") }
        let authorities = try authority.map { try Self.authorities($0) } ?? []
        defer { authorities.forEach { X509_free($0) } }
        try readLists(bytes, path, authorities)
        var isInside = false
        for (number, line) in String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            if line.hasPrefix("-----BEGIN") { isInside = true }
            defer { if line.hasPrefix("-----END") { isInside = false } }
            if isInside { continue }
            var text = line.prefix { $0 != "#" }
            if let equals = text.lastIndex(of: "=") { text = text[text.index(after: equals)...] }
            let digits = text.filter { $0 != ":" && !$0.isWhitespace }
            if digits.isEmpty { continue }
            guard digits.utf8.allSatisfy({ isxdigit(Int32($0)) != 0 }), let digest = Digest(hexadecimal: digits) else {
                throw WireError.badConfiguration(
                    "\(path): line \(number + 1): '\(line.prefix(80))' is no SHA-256 of a certificate, and no list begins there")
            }
            fingerprints.insert(digest)
        }
    }

    deinit { lists.forEach { X509_CRL_free($0) } }

    var isEmpty: Bool { fingerprints.isEmpty && lists.isEmpty }

    func revokes(_ certificate: PeerCertificate) -> Bool {
        if fingerprints.contains(certificate.fingerprint) { return true }
        let issuer = X509_get_issuer_name(certificate.pointer)
        return lists.contains { list in
            var entry: OpaquePointer?
            return X509_NAME_cmp(X509_CRL_get_issuer(list), issuer) == 0
                && X509_CRL_get0_by_cert(list, &entry, certificate.pointer) == 1
        }
    }

    private static func read(_ path: String) throws -> [UInt8] {
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(descriptor) }
        let size = try SystemCalls.status(descriptor, path: path).size
        guard size <= byteCountMax else { throw WireError.badConfiguration("\(path): is larger than \(byteCountMax) bytes") }
        var bytes = [UInt8](repeating: 0, count: max(size, 1))
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        return Array(bytes[..<count])
    }

    private static func authorities(_ path: String) throws -> [OpaquePointer] {
        let bytes: [UInt8]
        do { bytes = try read(path) } catch let error as SystemError { throw WireError.badConfiguration("\(error)") }
        guard let memory = BIO_new_mem_buf(bytes, Int32(bytes.count)) else { return [] }
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        var found: [OpaquePointer] = []
        while let certificate = PEM_read_bio_X509(memory, nil, nil, nil) { found.append(certificate) }
        return found
    }

    private func readLists(_ bytes: [UInt8], _ path: String, _ authorities: [OpaquePointer]) throws {
        guard let memory = BIO_new_mem_buf(bytes, Int32(bytes.count)) else { return }
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        while let list = PEM_read_bio_X509_CRL(memory, nil, nil, nil) {
            lists.append(list)
            let issuer = X509_CRL_get_issuer(list)
            guard
                authorities.contains(where: { authority in
                    X509_NAME_cmp(X509_get_subject_name(authority), issuer) == 0
                        && X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1
                })
            else { throw WireError.badConfiguration("\(path): list \(lists.count) was not signed by the authority") }
            if let until = X509_CRL_get0_nextUpdate(list), X509_cmp_current_time(until) < 0 {
                warnings.append("\(path): list \(lists.count) is out of date; it is used all the same")
            }
        }
        // What begins like a list must have been one.
        let beginnings = String(decoding: bytes, as: UTF8.self).split(separator: "\n").count { $0.hasPrefix("-----BEGIN") }
        guard beginnings == lists.count else {
            throw WireError.badConfiguration(
                "\(path): holds something that begins with -----BEGIN and is no list of revoked certificates")
        }
    }
}
