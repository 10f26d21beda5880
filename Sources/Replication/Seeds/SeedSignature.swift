import COpenSSL
import Glibc
import SystemCalls

/// Why a seed is not what it should be.
public enum SeedError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A file of a key that is none, or of another kind.
    case badKey(path: String, reason: String)
    /// A file or an answer that is no signature.
    case badSignatureFile(place: String, reason: String)
    /// A signature, but of none of the keys that are trusted.
    case notTrusted(place: String, reason: String)
    /// The bytes are not those that were signed, or that the checksum is of.
    case otherContent(place: String, reason: String)
    /// The signature is of a seed of another name.
    case otherName(place: String, signed: String, expected: String)
    /// What is there was signed later than what was offered.
    case older(path: String, present: String, offered: String)
    /// Nobody answers, or not to the end.
    case unreachable(url: String, reason: String)
    /// The server answers with something else than the file.
    case refused(url: String, status: Int)
    case tooLarge(url: String, limit: Int)
    /// An address that cannot be.
    case badURL(url: String, reason: String)
    /// Somebody has the file open that would be replaced.
    case inUse(path: String, holders: String)

    public var description: String {
        switch self {
        case .badKey(let path, let reason): "\(path): cannot be used as a key: \(reason)"
        case .badSignatureFile(let place, let reason): "\(place): is no signature of a seed: \(reason)"
        case .notTrusted(let place, let reason): "\(place): is not trusted: \(reason)"
        case .otherContent(let place, let reason): "\(place): is not what it should be: \(reason)"
        case .otherName(let place, let signed, let expected):
            "\(place): was signed as '\(signed)', not as '\(expected)'; expect the other name with --name"
        case .older(let path, let present, let offered):
            "\(path): is newer (\(present)) than what was offered (\(offered)); it stays"
        case .unreachable(let url, let reason): "\(url): \(reason)"
        case .refused(let url, let status): "\(url): the server answers with status \(status)"
        case .tooLarge(let url, let limit): "\(url): is larger than the limit of \(limit) bytes"
        case .badURL(let url, let reason): "\(url): \(reason)"
        case .inUse(let path, let holders): "\(path): is open" + (holders.isEmpty ? "" : " by \(holders)") + "; it stays as it is"
        }
    }
}

/// A key of Ed25519 (RFC 8032) with which seeds are signed. Files are PEM as OpenSSL writes them: `openssl genpkey -algorithm
/// ed25519`.
public final class SeedSigningKey {
    private let key: OpaquePointer

    private init(_ key: OpaquePointer) { self.key = key }

    deinit { EVP_PKEY_free(key) }

    /// A new key, random; it is nowhere but in memory until it is written.
    public static func generate() throws -> SeedSigningKey {
        guard let context = EVP_PKEY_CTX_new_id(SeedVerifyingKey.kind, nil) else {
            throw SeedError.badKey(path: "a new key", reason: TLSContext.errorText())
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &key) == 1, let key else {
            throw SeedError.badKey(path: "a new key", reason: TLSContext.errorText())
        }
        return SeedSigningKey(key)
    }

    /// From the 32 bytes of RFC 8032.
    init(raw bytes: [UInt8]) throws {
        guard bytes.count == 32, let key = EVP_PKEY_new_raw_private_key(SeedVerifyingKey.kind, nil, bytes, bytes.count) else {
            throw SeedError.badKey(path: "the key", reason: TLSContext.errorText())
        }
        self.key = key
    }

    /// - Throws: `SeedError.badKey`, also where others than its owner can read the file; `SystemError`.
    public static func read(_ path: String) throws -> SeedSigningKey {
        let bytes = try SeedText.read(path, isSecret: true)
        guard let memory = BIO_new_mem_buf(bytes, Int32(bytes.count)) else {
            throw SeedError.badKey(path: path, reason: "out of memory")
        }
        defer { BIO_free(memory) }
        ERR_clear_error()
        // Without an answer to the question for a password, which nobody could give.
        guard let key = PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil) else {
            throw SeedError.badKey(path: path, reason: "it is no private key in PEM form without a password")
        }
        guard EVP_PKEY_get_base_id(key) == SeedVerifyingKey.kind else {
            EVP_PKEY_free(key)
            throw SeedError.badKey(path: path, reason: "it is of another kind than Ed25519")
        }
        return SeedSigningKey(key)
    }

    /// What others need in order to check what this key signs.
    public var verifyingKey: SeedVerifyingKey {
        get throws {
            var bytes = [UInt8](repeating: 0, count: 32), count = 32
            guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == 32 else {
                throw SeedError.badKey(path: "the key", reason: TLSContext.errorText())
            }
            return try SeedVerifyingKey(raw: bytes)
        }
    }

    func sign(_ message: [UInt8]) throws -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { throw SeedError.badKey(path: "the key", reason: "out of memory") }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 64), count = 64
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == 64
        else {
            throw SeedError.badKey(path: "the key", reason: TLSContext.errorText())
        }
        return signature
    }

    /// Makes `path`, which its owner alone can read, and `path.pub`. Neither may exist.
    public func write(_ path: String) throws {
        try SeedText.write(path, mode: 0o600) { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        do { try verifyingKey.write(path + ".pub") } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
    }
}

/// The public half.
public final class SeedVerifyingKey: @unchecked Sendable {
    // Sendable: the key never changes.
    static let kind = EVP_PKEY_ED25519
    private let key: OpaquePointer
    let raw: [UInt8]

    init(raw: [UInt8]) throws {
        guard raw.count == 32, let key = EVP_PKEY_new_raw_public_key(Self.kind, nil, raw, raw.count) else {
            throw SeedError.badKey(path: "the key", reason: TLSContext.errorText())
        }
        (self.key, self.raw) = (key, raw)
    }

    deinit { EVP_PKEY_free(key) }

    /// - Throws: `SeedError.badKey` unless the file holds a public key of Ed25519 in PEM form; `SystemError`.
    public static func read(_ path: String) throws -> SeedVerifyingKey {
        let bytes = try SeedText.read(path, isSecret: false)
        guard let memory = BIO_new_mem_buf(bytes, Int32(bytes.count)) else {
            throw SeedError.badKey(path: path, reason: "out of memory")
        }
        defer { BIO_free(memory) }
        ERR_clear_error()
        guard let key = PEM_read_bio_PUBKEY(memory, nil, nil, nil) else {
            throw SeedError.badKey(path: path, reason: "it is no public key in PEM form")
        }
        defer { EVP_PKEY_free(key) }
        var raw = [UInt8](repeating: 0, count: 32), count = 32
        guard EVP_PKEY_get_base_id(key) == kind, EVP_PKEY_get_raw_public_key(key, &raw, &count) == 1, count == 32 else {
            throw SeedError.badKey(path: path, reason: "it is of another kind than Ed25519")
        }
        return try SeedVerifyingKey(raw: raw)
    }

    /// By which a signature says whose it is: the first 16 bytes of the key's SHA-256, as hex digits.
    public var identifier: String {
        let hash = SHA256Hash()
        raw.withUnsafeBytes { hash.update($0) }
        return String("\(hash.finish())".prefix(32))
    }

    func verify(_ message: [UInt8], _ signature: [UInt8]) -> Bool {
        guard signature.count == 64, let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    func write(_ path: String) throws { try SeedText.write(path, mode: 0o644) { PEM_write_bio_PUBKEY($0, key) } }
}

/// Small files of text.
enum SeedText {
    static let byteCountMax = 1 << 16

    static func read(_ path: String, isSecret: Bool) throws -> [UInt8] {
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(descriptor) }
        let status = try SystemCalls.status(descriptor, path: path)
        if isSecret, status.isRegularFile, status.mode & 0o077 != 0 {
            throw SeedError.badKey(path: path, reason: "others can read it; run 'chmod 600' on it")
        }
        var bytes = [UInt8](repeating: 0, count: byteCountMax)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        return Array(bytes[..<count])
    }

    static func write(_ path: String, mode: UInt32, _ body: (OpaquePointer) -> Int32) throws {
        guard let memory = BIO_new(BIO_s_mem()) else { throw SeedError.badKey(path: path, reason: "out of memory") }
        defer { BIO_free(memory) }
        var bytes: [UInt8] = []
        if body(memory) == 1 {
            bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
            if BIO_read(memory, &bytes, Int32(bytes.count)) != bytes.count { bytes = [] }
        }
        if bytes.isEmpty { throw SeedError.badKey(path: path, reason: TLSContext.errorText()) }
        let descriptor = try SystemCalls.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
        do {
            defer { SystemCalls.close(descriptor) }
            try bytes.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: path) }
            try SystemCalls.sync(descriptor, path: path)
            try SystemCalls.syncDirectory(of: path)
        } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
    }
}

/// Who has made a seed, and which one: a file of a few lines beside it.
///
/// ```
/// realm-sync seed signature 1
/// name: phrases.realm
/// size: 180224
/// sha256: 64 hex digits
/// time: seconds since 1970
/// key: 32 hex digits, the beginning of the SHA-256 of the public key
/// signature: 128 hex digits
/// ```
/// What is signed are the bytes of all lines before the last one, with their ends. Size and checksum come first to whoever
/// fetches, so nothing larger than what was signed is ever taken in; name and time keep an old seed, or another one of the same
/// maker, from being put in the place of this one.
public struct SeedSignature: Equatable, Sendable {
    /// What others shall call the seed; not the name of the file here.
    public var name: String
    /// Of the seed.
    public var byteCount: Int
    /// SHA-256 of the seed.
    public var digest: Digest
    /// Seconds since 1970.
    public var time: Int
    /// `SeedVerifyingKey.identifier` of the key that has signed.
    public var key: String
    var signature: [UInt8]

    private static let title = "realm-sync seed signature 1"
    static let byteCountMax = 4096

    /// Signs the file at `path`.
    ///
    /// - Parameter name: what others shall call it.
    public static func make(_ path: String, name: String, time: Int, with key: SeedSigningKey) throws -> SeedSignature {
        let (digest, count) = try SeedContent.digest(path)
        guard isName(name) else { throw SeedError.badSignatureFile(place: path, reason: "the name '\(name)' cannot be") }
        var made = SeedSignature(name: name, byteCount: count, digest: digest, time: time, key: try key.verifyingKey.identifier)
        made.signature = try key.sign(Array(made.message.utf8))
        return made
    }

    private init(name: String, byteCount: Int, digest: Digest, time: Int, key: String) {
        (self.name, self.byteCount, self.digest, self.time, self.key, signature) = (name, byteCount, digest, time, key, [])
    }

    static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255
            && !text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    }

    private var message: String {
        "\(Self.title)\nname: \(name)\nsize: \(byteCount)\nsha256: \(digest)\ntime: \(time)\nkey: \(key)\n"
    }

    /// What the file holds.
    public var text: String {
        message + "signature: " + signature.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "\n"
    }

    /// - Parameter place: for errors.
    public init(text bytes: [UInt8], place: String) throws {
        func problem(_ reason: String) -> SeedError { .badSignatureFile(place: place, reason: reason) }
        guard bytes.count <= Self.byteCountMax, let text = String(validating: bytes, as: UTF8.self) else {
            throw problem("it is too long, or no text")
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 8, lines[0] == Self.title[...], lines[7].isEmpty else {
            throw problem("it does not begin with '\(Self.title)', or has other lines")
        }
        func value(_ index: Int, _ label: String) throws -> String {
            guard lines[index].hasPrefix(label + ": ") else { throw problem("line \(index + 1) is not '\(label)'") }
            return String(lines[index].dropFirst(label.count + 2))
        }
        func number(_ index: Int, _ label: String) throws -> Int {
            let text = try value(index, label)
            guard let number = Int(text), number >= 0, String(number) == text else {
                throw problem("line \(index + 1) is no number")
            }
            return number
        }
        name = try value(1, "name")
        guard Self.isName(name) else { throw problem("the name cannot be") }
        byteCount = try number(2, "size")
        guard let digest = Digest(hexadecimal: try value(3, "sha256")) else { throw problem("line 4 is no SHA-256") }
        self.digest = digest
        time = try number(4, "time")
        key = try value(5, "key")
        guard key.utf8.count == 32 else { throw problem("line 6 is no key's identifier") }
        let digits = Array(try value(6, "signature").utf8)
        guard digits.count == 128 else { throw problem("line 7 is no signature") }
        signature = []
        for i in stride(from: 0, to: 128, by: 2) {
            guard let byte = UInt8(String(decoding: digits[i...i + 1], as: UTF8.self), radix: 16) else {
                throw problem("line 7 is no hex number")
            }
            signature.append(byte)
        }
        // One text for one meaning: what is compared is what was signed.
        guard self.text == text else { throw problem("it is not written as it was signed") }
    }

    /// - Throws: `SeedError.badSignatureFile`, `SystemError`. Who has signed is not looked at: see `check`.
    public static func read(_ path: String) throws -> SeedSignature {
        try SeedSignature(text: SeedText.read(path, isSecret: false), place: path)
    }

    /// - Throws: `SeedError.notTrusted` unless one of the keys has made it.
    public func check(_ keys: [SeedVerifyingKey], place: String) throws {
        guard let known = keys.first(where: { $0.identifier == key }) else {
            throw SeedError.notTrusted(
                place: place, reason: "it was signed with the key \(key), which is none of those that are trusted")
        }
        guard known.verify(Array(message.utf8), signature) else {
            throw SeedError.notTrusted(place: place, reason: "the signature is wrong")
        }
    }

    /// - Throws: `SeedError.otherContent` unless the file at `path` is what was signed.
    public func check(contentOf path: String) throws {
        let (found, count) = try SeedContent.digest(path)
        guard count == byteCount else {
            throw SeedError.otherContent(place: path, reason: "it has \(count) bytes, \(byteCount) were signed")
        }
        guard found == digest else {
            throw SeedError.otherContent(place: path, reason: "its SHA-256 is \(found), what was signed has \(digest)")
        }
    }
}

enum SeedContent {
    static func digest(_ path: String) throws -> (Digest, byteCount: Int) {
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(descriptor) }
        let hash = SHA256Hash()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 4096)
        defer { buffer.deallocate() }
        var at = 0
        while true {
            let count = try SystemCalls.read(descriptor, into: buffer, at: at, path: path)
            if count == 0 { return (hash.finish(), at) }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            at += count
        }
    }
}
