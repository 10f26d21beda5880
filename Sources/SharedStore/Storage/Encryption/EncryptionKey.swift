import COpenSSL
import Glibc
import SystemCalls

/// The 64 bytes that encrypt a file: 32 for AES-256, 32 for HMAC-SHA-224 (file-format-3 8.1).
///
/// The bytes lie in one page of locked memory that is left out of core dumps and wiped on release. They are never
/// printed: descriptions of this type say only that there is a key. Safe to use from any thread, since it never changes.
public final class EncryptionKey: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
    // Sendable: the memory is written in `init` only.
    /// The first 32 bytes encrypt, the other 32 authenticate (file-format-3 8.1).
    public static let byteCount = 64
    private let memory: UnsafeMutableRawPointer
    private let mappedByteCount = SystemCalls.pageSize

    /// Takes a copy of exactly 64 bytes.
    /// - Throws: `EncryptionKeyError.wrongLength`.
    public init(_ bytes: some Sequence<UInt8>) throws {
        let target = try SystemCalls.map(
            length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS)
        // Both are precautions; where the machine forbids them the key still works.
        mlock(target, mappedByteCount)
        SystemCalls.leaveOutOfDumps(target, length: mappedByteCount)
        // No array in between: what an array leaves behind where it grows is never wiped.
        var count = 0
        for byte in bytes {
            if count < Self.byteCount { target.storeBytes(of: byte, toByteOffset: count, as: UInt8.self) }
            count += 1
        }
        guard count == Self.byteCount else {
            Self.release(target, mappedByteCount)
            throw EncryptionKeyError.wrongLength(count)
        }
        memory = target
    }

    private static func release(_ memory: UnsafeMutableRawPointer, _ mappedByteCount: Int) {
        OPENSSL_cleanse(memory, byteCount)
        munlock(memory, mappedByteCount)
        SystemCalls.unmap(memory, length: mappedByteCount)
    }

    deinit { Self.release(memory, mappedByteCount) }

    /// 64 fresh random bytes.
    public static func generate() throws -> EncryptionKey {
        try withBuffer(byteCount) { buffer in
            guard let bytes = buffer.bindMemory(to: UInt8.self).baseAddress, RAND_bytes(bytes, Int32(byteCount)) == 1 else {
                throw EncryptionKeyError.noRandomness
            }
            return try EncryptionKey(buffer)
        }
    }

    /// Lends some bytes, zeros, that are wiped afterwards.
    private static func withBuffer<Result>(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result) throws
        -> Result
    {
        try withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
            buffer.initializeMemory(as: UInt8.self, repeating: 0)
            defer { OPENSSL_cleanse(buffer.baseAddress, buffer.count) }
            return try body(buffer)
        }
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
        return try withBuffer(fileByteCountMax) { buffer in
            var count = 0
            while count < buffer.count {
                let n = try SystemCalls.readSome(fd, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), path: path)
                if n == 0 { break }
                count += n
            }
            let content = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if count == byteCount { return try EncryptionKey(content) }
            guard let key = try fromHexadecimal(content) else { throw EncryptionKeyError.notAKeyFile(path) }
            return key
        }
    }

    /// 128 digits, and white space.
    private static let fileByteCountMax = 1024

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

    /// Whether a text is a key as it stands in variables and files: 128 hex digits, with white space around and between them.
    package static func isHexadecimal(_ text: UnsafeRawBufferPointer) -> Bool { decode(text) { _, _ in } }

    private static func fromHexadecimal(_ text: UnsafeRawBufferPointer) throws -> EncryptionKey? {
        try withBuffer(byteCount) { buffer in
            let isKey = decode(text) { index, digit in
                buffer[index / 2] = buffer[index / 2] << 4 | digit
            }
            return isKey ? try EncryptionKey(buffer) : nil
        }
    }

    /// Hands out the 128 digits of a key; false where the text is none.
    private static func decode(_ text: UnsafeRawBufferPointer, _ take: (_ index: Int, _ digit: UInt8) -> Void) -> Bool {
        var count = 0
        for byte in text {
            let digit: UInt8
            switch byte {
            case 32, 9...13: continue
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return false
            }
            if count == 2 * byteCount { return false }
            take(count, digit)
            count += 1
        }
        return count == 2 * byteCount
    }

    /// Lends the bytes to `body`; they must not be kept.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: memory, count: Self.byteCount))
    }

    /// Takes as long wherever the two differ.
    public func equals(_ other: EncryptionKey) -> Bool { CRYPTO_memcmp(memory, other.memory, Self.byteCount) == 0 }
    public var description: String { "EncryptionKey(64 bytes)" }
    /// Shows nothing: a dump of an object that holds a key does not print it.
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
