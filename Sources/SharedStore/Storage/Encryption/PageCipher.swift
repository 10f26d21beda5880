import COpenSSL

/// Encrypts and authenticates single pages of 4096 bytes: AES-256-CBC without padding, tag = HMAC-SHA-224 over the
/// ciphertext (file-format-3 8.1, 8.3). One cipher serves one thread at a time; its owner holds a lock.
final class PageCipher {
    private let encryption: OpaquePointer
    private let decryption: OpaquePointer
    private let authentication: OpaquePointer

    /// - Throws: `PageCipherError` where the library refuses the algorithms.
    init(key: EncryptionKey) throws {
        (encryption, decryption, authentication) = try SecretMemory.within { try PageCipher.contexts(key) }
    }

    private init(_ contexts: (OpaquePointer, OpaquePointer, OpaquePointer)) {
        (encryption, decryption, authentication) = contexts
    }

    /// Another cipher with the same key, for another thread; nil where there is no memory for it.
    func twin() -> PageCipher? {
        SecretMemory.within {
            let contexts = (EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new(), EVP_MAC_CTX_dup(authentication))
            if let e = contexts.0, let d = contexts.1, let m = contexts.2, EVP_CIPHER_CTX_copy(e, encryption) == 1,
                EVP_CIPHER_CTX_copy(d, decryption) == 1
            {
                return PageCipher((e, d, m))
            }
            EVP_CIPHER_CTX_free(contexts.0)
            EVP_CIPHER_CTX_free(contexts.1)
            EVP_MAC_CTX_free(contexts.2)
            return nil
        }
    }

    /// The three contexts with the key in them.
    private static func contexts(_ key: EncryptionKey) throws -> (OpaquePointer, OpaquePointer, OpaquePointer) {
        let algorithm = EVP_MAC_fetch(nil, "HMAC", nil)
        defer { EVP_MAC_free(algorithm) }
        let contexts = (EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new(), algorithm.flatMap { EVP_MAC_CTX_new($0) })
        func free() {
            EVP_CIPHER_CTX_free(contexts.0)
            EVP_CIPHER_CTX_free(contexts.1)
            EVP_MAC_CTX_free(contexts.2)
        }
        guard let e = contexts.0, let d = contexts.1, let m = contexts.2 else {
            free()
            throw PageCipherError.unavailable
        }
        let ok = key.withBytes { bytes -> Bool in
            let p = bytes.bindMemory(to: UInt8.self).baseAddress!
            // The parameters keep the pointers to both names: a string literal passed as such would be a copy that is gone by
            // then.
            return PageCipher.digestName.withMemoryRebound(to: CChar.self, capacity: 7) { name in
                PageCipher.digestParameter.withMemoryRebound(to: CChar.self, capacity: 7) { parameter in
                    var parameters = [
                        OSSL_PARAM_construct_utf8_string(parameter, UnsafeMutablePointer(mutating: name), 0),
                        OSSL_PARAM_construct_end(),
                    ]
                    return EVP_EncryptInit_ex(e, EVP_aes_256_cbc(), nil, p, nil) == 1
                        && EVP_DecryptInit_ex(d, EVP_aes_256_cbc(), nil, p, nil) == 1
                        && EVP_CIPHER_CTX_set_padding(e, 0) == 1 && EVP_CIPHER_CTX_set_padding(d, 0) == 1
                        && EVP_MAC_init(m, p + 32, 32, &parameters) == 1
                }
            }
        }
        if !ok {
            free()
            throw PageCipherError.unavailable
        }
        return (e, d, m)
    }

    private static var digestParameter: UnsafePointer<UInt8> { ("digest" as StaticString).utf8Start }
    private static var digestName: UnsafePointer<UInt8> { ("SHA224" as StaticString).utf8Start }

    deinit {
        EVP_CIPHER_CTX_free(encryption)
        EVP_CIPHER_CTX_free(decryption)
        EVP_MAC_CTX_free(authentication)
    }

    /// IV: counter (4 bytes), plain position of the page (8 bytes), four zero bytes.
    private func withIV<R>(_ counter: UInt32, _ position: Int, _ body: (UnsafePointer<UInt8>) -> R) -> R {
        var iv: (UInt32, UInt32, UInt32, UInt32) = (
            counter, UInt32(truncatingIfNeeded: position), UInt32(truncatingIfNeeded: position >> 32), 0
        )
        return withUnsafeBytes(of: &iv) { body($0.bindMemory(to: UInt8.self).baseAddress!) }
    }

    func encrypt(_ plain: UnsafeRawPointer, into out: UnsafeMutableRawPointer, iv: UInt32, position: Int) throws {
        var n: Int32 = 0
        let ok = withIV(iv, position) { p in
            EVP_EncryptInit_ex(encryption, nil, nil, nil, p) == 1
                && EVP_EncryptUpdate(
                    encryption, out.assumingMemoryBound(to: UInt8.self), &n, plain.assumingMemoryBound(to: UInt8.self), 4096) == 1
                && n == 4096
        }
        if !ok { throw PageCipherError.unavailable }
    }

    func decrypt(_ sealed: UnsafeRawPointer, into out: UnsafeMutableRawPointer, iv: UInt32, position: Int) throws {
        var n: Int32 = 0
        let ok = withIV(iv, position) { p in
            EVP_DecryptInit_ex(decryption, nil, nil, nil, p) == 1
                && EVP_DecryptUpdate(
                    decryption, out.assumingMemoryBound(to: UInt8.self), &n, sealed.assumingMemoryBound(to: UInt8.self), 4096)
                    == 1
                && n == 4096
        }
        if !ok { throw PageCipherError.unavailable }
    }

    /// The seal of a ciphertext page with the counter that it was made with.
    func seal(_ sealed: UnsafeRawPointer, iv: UInt32) throws -> PageEntry.Seal {
        var bytes = (UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0))
        var length = 0
        let ok = withUnsafeMutableBytes(of: &bytes) { out in
            EVP_MAC_init(authentication, nil, 0, nil) == 1
                && EVP_MAC_update(authentication, sealed.assumingMemoryBound(to: UInt8.self), 4096) == 1
                && EVP_MAC_final(authentication, out.bindMemory(to: UInt8.self).baseAddress! + 4, &length, 28) == 1
        }
        if !ok || length != 28 { throw PageCipherError.unavailable }
        var seal = withUnsafeBytes(of: &bytes) { PageEntry.Seal($0.baseAddress!) }
        seal.iv = iv
        return seal
    }
}

/// The cryptographic library does not offer AES-256-CBC or HMAC-SHA-224 (a restricted build of it).
public enum PageCipherError: Error, Equatable, Sendable, CustomStringConvertible {
    case unavailable
    public var description: String { "the cryptographic library offers no AES-256-CBC with HMAC-SHA-224" }
}
