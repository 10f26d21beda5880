import COpenSSL
import Glibc
import SystemCalls

/// The 64 bytes that encrypt a file: 32 for AES-256, 32 for HMAC-SHA-224 (file-format-3 8.1).
///
/// The bytes lie in one page of locked memory that is left out of core dumps and wiped on release. They are never
/// printed: descriptions of this type say only that there is a key. Safe to use from any thread, since it never changes.
public final class EncryptionKey: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
    // Sendable: the memory is written in `init` only.
    public static let byteCount = 64
    private let memory: UnsafeMutableRawPointer
    private let mappedByteCount = SystemCalls.pageSize

    /// Takes a copy of exactly 64 bytes.
    /// - Throws: `EncryptionKeyError.wrongLength`.
    public init(_ bytes: some Sequence<UInt8>) throws {
        var taken = Array(bytes)
        defer { taken.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        guard taken.count == Self.byteCount else { throw EncryptionKeyError.wrongLength(taken.count) }
        memory = try SystemCalls.map(
            length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS)
        // Both are precautions; where the machine forbids them the key still works.
        mlock(memory, mappedByteCount)
        SystemCalls.leaveOutOfDumps(memory, length: mappedByteCount)
        taken.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress!, byteCount: Self.byteCount) }
    }

    deinit {
        OPENSSL_cleanse(memory, Self.byteCount)
        munlock(memory, mappedByteCount)
        SystemCalls.unmap(memory, length: mappedByteCount)
    }

    /// 64 fresh random bytes.
    public static func generate() throws -> EncryptionKey {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        guard RAND_bytes(&bytes, Int32(byteCount)) == 1 else { throw EncryptionKeyError.noRandomness }
        return try EncryptionKey(bytes)
    }

    /// Reads a key file: 64 raw bytes, or 128 hex digits (white space around them is ignored).
    ///
    /// A file that its group or others can read is refused, unless `allowReadableByOthers`.
    /// - Throws: `EncryptionKeyError`, or `SystemError` where the file cannot be read.
    public static func read(file path: String, allowReadableByOthers: Bool = false) throws -> EncryptionKey {
        let fd = try SystemCalls.open(path, O_RDONLY)
        defer { SystemCalls.close(fd) }
        let status = try SystemCalls.status(fd, path: path)
        guard status.isRegularFile || status.isFIFO else { throw EncryptionKeyError.notAFile(path) }
        if status.isRegularFile && status.mode & 0o077 != 0 && !allowReadableByOthers {
            throw EncryptionKeyError.readableByOthers(path: path, mode: status.mode & 0o777)
        }
        var bytes = [UInt8](repeating: 0, count: 1024)
        defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        var count = 0
        while count < bytes.count {
            let n = try bytes.withUnsafeMutableBytes {
                try SystemCalls.readSome(fd, into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]), path: path)
            }
            if n == 0 { break }
            count += n
        }
        if count == byteCount { return try EncryptionKey(bytes[..<count]) }
        guard let key = try fromHexadecimal(bytes[..<count]) else { throw EncryptionKeyError.notAKeyFile(path) }
        return key
    }

    /// Takes the key from 128 hex digits in an environment variable.
    ///
    /// The variable stays, also for programs that are started from this one: `wipe(environment:)` when it is not needed any more.
    public static func read(environment name: String) throws -> EncryptionKey {
        guard let value = getenv(name) else { throw EncryptionKeyError.variableNotSet(name) }
        let text = UnsafeRawBufferPointer(start: value, count: strlen(value))
        guard let key = try fromHexadecimal(text) else { throw EncryptionKeyError.notAKeyVariable(name) }
        return key
    }

    /// Overwrites the value of an environment variable, which core dumps and `/proc/PID/environ` show: it is empty then.
    public static func wipe(environment name: String) {
        if let value = getenv(name) { OPENSSL_cleanse(value, strlen(value)) }
    }

    private static func fromHexadecimal(_ text: some Sequence<UInt8>) throws -> EncryptionKey? {
        var digits = text.filter { !($0 == 32 || (9...13).contains($0)) }
        defer { digits.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        guard digits.count == 2 * byteCount else { return nil }
        var bytes = [UInt8](repeating: 0, count: byteCount)
        defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        for i in 0..<byteCount {
            guard let value = parseHexadecimal(digits[2 * i...2 * i + 1]) else { return nil }
            bytes[i] = UInt8(value)
        }
        return try EncryptionKey(bytes)
    }

    /// Lends the bytes to `body`; they must not be kept.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: memory, count: Self.byteCount))
    }

    public func equals(_ other: EncryptionKey) -> Bool { CRYPTO_memcmp(memory, other.memory, Self.byteCount) == 0 }
    public var description: String { "EncryptionKey(64 bytes)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A key that cannot be used; the text never contains any of it.
public enum EncryptionKeyError: Error, Equatable, Sendable, CustomStringConvertible {
    case wrongLength(Int)
    case notAKeyFile(String)
    /// A directory or a device.
    case notAFile(String)
    case readableByOthers(path: String, mode: UInt32)
    case variableNotSet(String)
    case notAKeyVariable(String)
    case noRandomness

    public var description: String {
        switch self {
        case .wrongLength(let n): "an encryption key has 64 bytes, this one has \(n)"
        case .notAFile(let path): "\(path) is a directory or a device, no key file; name a file with 64 bytes or 128 hex digits"
        case .notAKeyFile(let path): "\(path) holds neither 64 bytes nor 128 hex digits"
        case .readableByOthers(let path, let mode):
            "\(path) can be read by others (mode \(String(mode, radix: 8))): run chmod 600 on it"
        case .variableNotSet(let name): "the environment variable \(name) is not set"
        case .notAKeyVariable(let name): "the environment variable \(name) does not hold 128 hex digits"
        case .noRandomness: "the system's source of random numbers is not ready"
        }
    }
}
