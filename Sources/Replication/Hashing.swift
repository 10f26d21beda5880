import COpenSSL
import CXXHash

/// SHA-256, fed piece by piece: the identity of a version, by the chain of what led to it.
public final class SHA256Hash {
    private let context: OpaquePointer

    /// A hash of no bytes so far.
    public init() {
        guard let c = EVP_MD_CTX_new(), EVP_DigestInit_ex(c, EVP_sha256(), nil) == 1 else {
            preconditionFailure("the cryptographic library offers no SHA-256; use a build of it that does")
        }
        context = c
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Goes on with these bytes; no bytes change nothing.
    public func update(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
    }

    /// The digest of all that was fed; the hash can not be used afterwards.
    public func finish() -> Digest {
        var digest = Digest()
        withUnsafeMutableBytes(of: &digest.words) {
            _ = EVP_DigestFinal_ex(context, $0.bindMemory(to: UInt8.self).baseAddress, nil)
        }
        return digest
    }
}

/// 32 bytes.
public struct Digest: Hashable, Sendable, CustomStringConvertible {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    /// All zero: what stands for "no chain yet".
    public init() {}
    /// The 32 bytes at `p`.
    public init(_ p: UnsafeRawPointer) {
        words = (
            p.loadUnaligned(as: UInt64.self), p.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
            p.loadUnaligned(fromByteOffset: 16, as: UInt64.self), p.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
        )
    }
    /// Nil unless the text is 64 hex digits, small or capital.
    public init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 64 else { return nil }
        var bytes = [UInt8]()
        for i in 0..<32 {
            guard let byte = UInt8(String(decoding: digits[2 * i...2 * i + 1], as: UTF8.self), radix: 16) else { return nil }
            bytes.append(byte)
        }
        self = bytes.withUnsafeBytes { Digest($0.baseAddress!) }
    }
    func store(to p: UnsafeMutableRawPointer) {
        withUnsafeBytes(of: words) { p.copyMemory(from: $0.baseAddress!, byteCount: 32) }
    }
    public static func == (a: Digest, b: Digest) -> Bool { a.words == b.words }
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
    /// 64 lower-case hex digits.
    public var description: String {
        withUnsafeBytes(of: words) { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
    }
}

/// XXH3: finds damage, proves nothing against an adversary.
public enum Checksum {
    /// 64 bits.
    public static func xxh3(_ bytes: UnsafeRawBufferPointer) -> UInt64 { XXH3_64bits(bytes.baseAddress, bytes.count) }

    /// XXH3 with 64 bits, fed piece by piece, again and again.
    final class Narrow {
        private let state: OpaquePointer
        init() {
            guard let s = XXH3_createState() else { preconditionFailure("out of memory") }
            XXH3_64bits_reset(s)
            state = s
        }
        deinit { XXH3_freeState(state) }
        func reset() { XXH3_64bits_reset(state) }
        func update(_ bytes: UnsafeRawBufferPointer) {
            if !bytes.isEmpty { XXH3_64bits_update(state, bytes.baseAddress, bytes.count) }
        }
        func finish() -> UInt64 { XXH3_64bits_digest(state) }
    }

    /// XXH3 with 128 bits, fed piece by piece.
    public final class Wide {
        private let state: OpaquePointer
        /// A sum of no bytes so far.
        public init() {
            guard let s = XXH3_createState() else { preconditionFailure("out of memory") }
            XXH3_128bits_reset(s)
            state = s
        }
        deinit { XXH3_freeState(state) }
        /// Goes on with these bytes.
        public func update(_ bytes: UnsafeRawBufferPointer) {
            if !bytes.isEmpty { XXH3_128bits_update(state, bytes.baseAddress, bytes.count) }
        }
        /// Low and high word.
        public func finish() -> (UInt64, UInt64) {
            let h = XXH3_128bits_digest(state)
            return (h.low64, h.high64)
        }
    }
}
