import Glibc
import SharedStore
import SystemCalls

/// Memory for tests of the file format: a "file" of given bytes in anonymous memory and the arena of a write
/// transaction behind it, as `Storage` lays them out over a mapped file.
///
/// ```
/// let scratch = try ScratchArena()
/// let ref = try arenaUser(scratch.arena)
/// let (next, root) = try scratch.committed(ref)      // the same tree as file nodes, with a fresh arena behind
/// ```
public final class ScratchArena {
    public let memory: Memory
    public let arena: Arena
    private let state: UnsafeMutablePointer<MemoryState>
    private let base: UnsafeMutableRawPointer
    private let spanByteCount: Int

    /// A file with the given bytes (24 zero bytes of header and nothing else if there are none), and an arena.
    public init(file: [UInt8] = [], arenaByteCount: Int = 1 << 30) throws {
        let fileByteCount = max(24, (file.count + 7) & ~7)
        let arenaStart = (fileByteCount + 4095) & ~4095
        spanByteCount = arenaStart + arenaByteCount
        let span = try SystemCalls.map(
            length: spanByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
        file.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { span.copyMemory(from: start, byteCount: bytes.count) }
        }
        base = span
        state = .allocate(capacity: 1)
        state.initialize(to: MemoryState(base: base, fileLimit: fileByteCount))
        state.pointee.arenaStart = arenaStart
        state.pointee.arenaLimit = arenaStart
        memory = Memory(state)
        arena = Arena(memory: memory, end: spanByteCount) { _ in }
    }

    deinit {
        SystemCalls.unmap(base, length: spanByteCount)
        state.deallocate()
    }

    /// The bytes of the node at `ref` as they would stand in a file: placeholder checksum, no spare capacity.
    public func nodeBytes(_ ref: Int) throws -> [UInt8] {
        let node = try memory.node(ref)
        var bytes = [UInt8](UnsafeRawBufferPointer(start: node.payload - 8, count: node.byteCount))
        bytes.replaceSubrange(0..<4, with: [0x41, 0x41, 0x41, 0x41])
        return bytes
    }

    /// The bytes of the payload without padding.
    public func payload(_ ref: Int) throws -> [UInt8] {
        let node = try memory.node(ref)
        return [UInt8](UnsafeRawBufferPointer(start: node.payload, count: node.payloadByteCount))
    }

    /// Byte 4 of the header.
    public func flags(_ ref: Int) throws -> UInt8 { try memory.node(ref).flags }

    /// A new scratch whose file holds the tree at `root`, children before parents and arrays of refs at their smallest
    /// width, as a commit would leave it; and the root's new ref.
    public func committed(_ root: Int) throws -> (scratch: ScratchArena, root: Int) {
        var file = [UInt8](repeating: 0, count: 24)
        let newRoot = root == 0 ? 0 : try write(root, into: &file)
        return (try ScratchArena(file: file), newRoot)
    }

    private func write(_ ref: Int, into file: inout [UInt8]) throws -> Int {
        let node = try memory.node(ref)
        var bytes = try nodeBytes(ref)
        if node.hasRefs {
            let elements = try (0..<node.count).map { index -> Int64 in
                let v = node.unchecked(index)
                return v == 0 || v & 1 != 0 ? v : Int64(try write(Int(v), into: &file))
            }
            let code = elements.map(ScratchArena.widthCode).max() ?? 0
            bytes = Array(bytes[0..<8])
            bytes[4] = node.flags & 0xE0 | UInt8(code)
            let width = (1 << code) >> 1
            var payload = [UInt8](repeating: 0, count: ((elements.count * width + 7) / 8 + 7) & ~7)
            for (i, v) in elements.enumerated() where width > 0 {
                for bit in 0..<width where UInt64(bitPattern: v) >> UInt64(bit) & 1 != 0 {
                    payload[(i * width + bit) / 8] |= 1 << UInt8((i * width + bit) % 8)
                }
            }
            bytes += payload
        }
        let position = file.count
        file += bytes
        return position
    }

    private static func widthCode(_ v: Int64) -> Int {
        switch v {
        case 0: 0
        case 1: 1
        case 2...3: 2
        case 4...15: 3
        case -0x80...0x7F: 4
        case -0x8000...0x7FFF: 5
        case -0x8000_0000...0x7FFF_FFFF: 6
        default: 7
        }
    }
}
