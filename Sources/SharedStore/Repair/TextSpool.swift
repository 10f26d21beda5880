import Glibc
import SystemCalls

/// Text that is written from its beginning to its end and then read by place: in a file that loses its name at once, so that
/// nothing is left behind whatever happens. Takes no more memory than one buffer; what is read lies in the page cache.
///
/// Not thread-safe.
public final class TextSpool {
    private let descriptor: SystemCalls.Descriptor
    private let path: String
    private var buffer: [UInt8] = []
    private var flushedByteCount = 0
    private var mapping: UnsafeMutableRawPointer?
    private var mappedByteCount = 0

    private static let bufferByteCount = 1 << 18

    /// - Parameter folder: where there is room for the text.
    /// - Throws: `SystemError`.
    init(folder: String) throws {
        path = "\(folder)/text-\(getpid())-\(String(UInt64.random(in: 0...UInt64.max), radix: 16)).part"
        descriptor = try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL)
        do { try SystemCalls.unlink(path) } catch {
            SystemCalls.close(descriptor)
            throw error
        }
        buffer.reserveCapacity(Self.bufferByteCount)
    }

    deinit {
        if let mapping { SystemCalls.unmap(mapping, length: mappedByteCount) }
        SystemCalls.close(descriptor)
    }

    /// Bytes that were written so far.
    public var byteCount: Int { flushedByteCount + buffer.count }

    /// Returns where the bytes will be found.
    @discardableResult
    func append(_ bytes: UnsafeRawBufferPointer) throws -> Range<Int> {
        let start = byteCount
        buffer.append(contentsOf: bytes)
        if buffer.count >= Self.bufferByteCount { try flush() }
        return start..<start + bytes.count
    }

    private func flush() throws {
        try buffer.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: flushedByteCount, path: path) }
        flushedByteCount += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Hands over all of the text, valid during the call. Nothing is appended any more.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        try flush()
        if mapping == nil, flushedByteCount > 0 {
            mapping = try SystemCalls.map(
                length: flushedByteCount, protection: PROT_READ, flags: MAP_SHARED, descriptor, path: path)
            mappedByteCount = flushedByteCount
        }
        return try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(start: mapping, count: mappedByteCount)) }
    }
}
