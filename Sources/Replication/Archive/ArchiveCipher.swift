import COpenSSL
import SharedStore

/// Encrypts what an archive of an encrypted file holds: AES-256-GCM with a key that is derived from the file's key and the
/// archive's number (HMAC-SHA-256), and a random nonce for each record. Place and position of a record are authenticated with it.
///
/// Not thread-safe.
final class ArchiveCipher {
    static let overhead = 28
    private static let nonceByteCount = 12, tagByteCount = 16
    private let key: SecretBytes
    /// Tells a wrong key from a damaged archive: stored in the manifest.
    let check: String

    init(_ fileKey: EncryptionKey, archive: String) {
        key = Self.derive(fileKey, "realm archive: records of " + archive)
        check = Self.derive(fileKey, "realm archive: check of " + archive).withBytes { Array($0[..<16]) }.map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
    }

    private static func derive(_ fileKey: EncryptionKey, _ purpose: String) -> SecretBytes {
        let text = Array(purpose.utf8)
        return SecretBytes(count: 32) { out in
            let target = out.bindMemory(to: UInt8.self).baseAddress
            let done = SecretMemory.within {
                fileKey.withBytes { HMAC(EVP_sha256(), $0.baseAddress, Int32($0.count), text, text.count, target, nil) }
            }
            precondition(done != nil, "the cryptographic library offers no HMAC-SHA-256; use a build of it that does")
        }
    }

    /// Puts key and nonce into a context, which holds the key in clear.
    private func start(_ context: OpaquePointer, _ nonce: [UInt8], encrypting: Bool) -> Bool {
        SecretMemory.within {
            key.withBytes {
                EVP_CipherInit_ex(
                    context, EVP_aes_256_gcm(), nil, $0.bindMemory(to: UInt8.self).baseAddress, nonce, encrypting ? 1 : 0) == 1
            }
        }
    }

    /// nonce, ciphertext, tag.
    func seal(_ plain: [UInt8], for use: String) throws -> [UInt8] {
        var nonce = [UInt8](repeating: 0, count: Self.nonceByteCount)
        guard RAND_bytes(&nonce, Int32(nonce.count)) == 1 else { throw EncryptionKeyError.noRandomness }
        guard let context = EVP_CIPHER_CTX_new() else { throw CipherFailure() }
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: plain.count + Self.overhead)
        let associated = Array(use.utf8)
        var count: Int32 = 0
        out.replaceSubrange(0..<nonce.count, with: nonce)
        let isDone = out.withUnsafeMutableBytes { raw -> Bool in
            guard let p = raw.bindMemory(to: UInt8.self).baseAddress else { return false }
            return start(context, nonce, encrypting: true)
                && EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
                && EVP_EncryptUpdate(context, p + nonce.count, &count, plain, Int32(plain.count)) == 1
                && EVP_EncryptFinal_ex(context, p + nonce.count + plain.count, &count) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, Int32(Self.tagByteCount), p + nonce.count + plain.count)
                    == 1
        }
        if !isDone { throw CipherFailure() }
        return out
    }

    /// - Throws: `CipherFailure` where the bytes are not what was sealed with this key for this use.
    func open(_ sealed: [UInt8], for use: String) throws -> [UInt8] {
        guard sealed.count >= Self.overhead, let context = EVP_CIPHER_CTX_new() else { throw CipherFailure() }
        defer { EVP_CIPHER_CTX_free(context) }
        let nonce = Array(sealed[..<Self.nonceByteCount])
        var tag = Array(sealed.suffix(Self.tagByteCount))
        let content = sealed.count - Self.overhead
        var out = [UInt8](repeating: 0, count: content)
        let associated = Array(use.utf8)
        var count: Int32 = 0, rest: Int32 = 0
        var end = [UInt8](repeating: 0, count: 16)
        let isDone = sealed.withUnsafeBytes { raw -> Bool in
            guard let p = raw.bindMemory(to: UInt8.self).baseAddress else { return false }
            return start(context, nonce, encrypting: false)
                && EVP_DecryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
                && EVP_DecryptUpdate(context, &out, &count, p + nonce.count, Int32(content)) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, Int32(tag.count), &tag) == 1
                && EVP_DecryptFinal_ex(context, &end, &rest) == 1
        }
        if !isDone { throw CipherFailure() }
        return out
    }
}

/// What was to be decrypted is damaged, or was encrypted with another key.
struct CipherFailure: Error, CustomStringConvertible {
    var description: String { "it cannot be decrypted: it is damaged, or the key is another one" }
}
