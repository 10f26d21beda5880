import SharedStore

/// A small hand-made file in memory: tests lay nodes into it, byte by byte, and read them back through a `Memory`.
///
/// Padding behind a payload, and the unused bits of its last byte, are filled with ones, as the format allows (file-format-1
/// 2.5), and the bytes that no node was laid into with 0xEE: a reader that looks at either will not give the expected values.
public final class ByteImage {
    private let bytes: UnsafeMutableRawBufferPointer
    private let state: UnsafeMutablePointer<MemoryState>
    private var end = 24

    public init(capacity: Int = 1 << 20) {
        bytes = .allocate(byteCount: capacity, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0xEE)
        state = .allocate(capacity: 1)
        state.initialize(to: MemoryState(base: bytes.baseAddress!, fileLimit: 24))
    }

    deinit {
        state.deallocate()
        bytes.deallocate()
    }

    /// What readers get. Valid as long as the image.
    public var memory: Memory { Memory(state) }

    /// The number of bytes laid so far, the 24 of the header included.
    public var limit: Int { end }

    /// Cuts the readable bytes off at `limit`, as if the file ended there.
    public func truncate(to limit: Int) { state.pointee.fileLimit = limit }

    /// Lays a node: `flags` is byte 4 of its header, `count` what bytes 5 to 7 say, whether or not the payload agrees. Returns
    /// its ref.
    @discardableResult
    public func add(flags: UInt8, count: Int, payload: [UInt8] = []) -> Int {
        let ref = end
        let length = 8 + (payload.count + 7) & ~7
        precondition(ref + length <= bytes.count, "make the ByteImage with more capacity")
        let header = NodeBytes.header(flags: flags, count: count)
        for i in 0..<length {
            bytes[ref + i] = i < 8 ? header[i] : i - 8 < payload.count ? payload[i - 8] : 0xFF
        }
        end += length
        state.pointee.fileLimit = end
        return ref
    }

    /// Lays an array of integers of the smallest width, or of the given one; `flags` are added to byte 4 of the header.
    @discardableResult
    public func integers(_ values: [Int64], width: Int? = nil, flags: UInt8 = 0) -> Int {
        let width = width ?? NodeBytes.width(of: values)
        return add(flags: flags | NodeBytes.code(width), count: values.count, payload: ByteImage.pack(values, width: width))
    }

    /// Lays an array of refs.
    @discardableResult
    public func refs(_ refs: [Int], flags: UInt8 = 0) -> Int { integers(refs.map(Int64.init), flags: 0x40 | flags) }

    /// Lays an unsigned array, as offsets of trees are (file-format-1 3.1).
    @discardableResult
    public func unsigned(_ values: [UInt64]) -> Int {
        let width = NodeBytes.width(unsigned: values)
        return add(
            flags: NodeBytes.code(width), count: values.count,
            payload: ByteImage.pack(values.map { Int64(bitPattern: $0) }, width: width))
    }

    /// Lays a blob.
    @discardableResult
    public func blob(_ content: [UInt8]) -> Int {
        add(flags: content.isEmpty ? 0x10 : 0x11, count: content.count, payload: content)
    }

    /// Lays a small-blobs leaf whose parts are as given, whether or not they agree.
    @discardableResult
    public func smallBlobs(offsets: [Int64], blob content: [UInt8], nulls: [Int64]) -> Int {
        refs([integers(offsets), blob(content), integers(nulls)])
    }

    /// Lays an inner node of a B+ tree. `first` is element 0 as stored, `total` the number of values.
    @discardableResult
    public func inner(first: Int, children: [Int], total: Int, flags: UInt8 = 0) -> Int {
        refs([first] + children + [2 * total + 1], flags: 0x80 | flags)
    }

    /// Copies the first `count` bytes to `target`.
    public func copyBytes(_ count: Int, to target: UnsafeMutableRawPointer) {
        target.copyMemory(from: bytes.baseAddress!, byteCount: count)
    }

    /// Overwrites bytes, wherever they are.
    public func patch(_ position: Int, _ replacement: [UInt8]) {
        for (i, byte) in replacement.enumerated() { bytes[position + i] = byte }
    }

    /// The values, packed from the lowest bit up; unused bits of the last byte are ones.
    private static func pack(_ values: [Int64], width: Int) -> [UInt8] {
        var packed = NodeBytes.packed(values, width: width)
        let used = values.count * width % 8
        if used > 0 { packed[packed.count - 1] |= 0xFF << UInt8(used) }
        return packed
    }
}
