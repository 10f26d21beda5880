/// Writes a file from its beginning to its end through one buffer.
final class SequentialWriter {
    private let backend: FileBackend
    private let buffer: UnsafeMutableRawPointer
    private static let capacity = 1 << 20
    private var used = 0
    private var flushed = 0

    /// The next byte's position.
    var position: Int { flushed + used }

    init(_ backend: FileBackend) {
        self.backend = backend
        buffer = .allocate(byteCount: SequentialWriter.capacity, alignment: 4096)
    }

    deinit { buffer.deallocate() }

    func append(_ bytes: UnsafeRawPointer, _ count: Int) throws {
        var done = 0
        while done < count {
            if used == SequentialWriter.capacity { try flush() }
            let n = min(count - done, SequentialWriter.capacity - used)
            (buffer + used).copyMemory(from: bytes + done, byteCount: n)
            used += n
            done += n
        }
    }

    func append(_ word: UInt64) throws {
        var word = word.littleEndian
        try withUnsafeBytes(of: &word) { if let p = $0.baseAddress { try append(p, 8) } }
    }

    /// Zeros up to the next multiple of `unit`, a power of two.
    func align(to unit: Int) throws {
        while position & (unit - 1) != 0 {
            if used == SequentialWriter.capacity { try flush() }
            (buffer + used).storeBytes(of: 0, as: UInt8.self)
            used += 1
        }
    }

    func flush() throws {
        if used == 0 { return }
        try backend.write(UnsafeRawBufferPointer(start: buffer, count: used), at: flushed)
        try backend.flush()
        flushed += used
        used = 0
    }
}
