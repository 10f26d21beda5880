import CShims
import Glibc
import SystemCalls

/// There is not enough address space to map a file (`ulimit -v`, or too many mappings); nothing was changed.
public struct AddressSpaceError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file that was to be mapped.
    public let path: String
    /// The smallest number of bytes that was tried.
    public let byteCount: Int
    public var description: String {
        """
        \(path.isEmpty ? "in memory" : path): not even \(byteCount) bytes of address space can be reserved; raise the limit (ulimit -v, vm.max_map_count) \
        or close other files
        """
    }
}

/// One reserved stretch of addresses: the file in front, the arena of the write transaction behind it.
///
/// ```
/// base                       base + fileLength                base + length
/// | file, MAP_SHARED, read-only, mapped past its end | arena: reserved, made writable as it grows |
/// ```
/// The mapping of the file is made once. Pages past the end of the file become valid as the file grows, whoever enlarges it;
/// they are never touched before, since every ref is checked against the size of a published version. So a ref is an
/// address by one addition, for ever. A span that became too short is kept by those who read through it, beside its successor.
///
/// Invariants: `base`, `fileLength` and `length` are multiples of the page size; `[arena start, writableEnd)` is writable.
public final class Span: @unchecked Sendable {
    // Sendable: immutable but for `writableEnd`, which the one write transaction of the file changes.
    /// The address of byte 0 of the file.
    public let base: UnsafeMutableRawPointer
    /// Bytes at the front in which the file is visible; also the first ref of the arena.
    public let fileLength: Int
    /// Bytes in all.
    public let length: Int
    /// What must be asked before bytes of an encrypted file are touched.
    let pageSource: PageSource?
    private var writableEnd: Int

    static let fileLengthDefault = 8 << 30
    static let arenaLengthDefault = 8 << 30
    private static let attempts = 5

    /// Reserves a span for a file of `size` bytes: 16 GiB, more for a file beyond 2 GiB, less where the system refuses.
    init(backend: FileBackend, size: Int) throws {
        var smallest = 0
        for attempt in 0..<Span.attempts {
            // The room for growth shrinks with each attempt, from three times the file to an eighth of it.
            let wanted = attempt == 0 ? 4 &* size : attempt == 1 ? 2 &* size : size + size / 8 + (1 << 20)
            let fileLength = roundUp(max(Span.fileLengthDefault >> (2 * attempt), wanted), 1 << 21)
            let arenaLength = Span.arenaLengthDefault >> (2 * attempt)
            smallest = fileLength + arenaLength
            let base: UnsafeMutableRawPointer
            do {
                base = try SystemCalls.map(
                    length: smallest, protection: PROT_NONE,
                    flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, path: backend.path)
            } catch let error as SystemError where error.code == ENOMEM { continue }
            do {
                pageSource = try backend.map(at: base, length: fileLength)
            } catch {
                SystemCalls.unmap(base, length: smallest)
                if let error = error as? SystemError, error.code == ENOMEM { continue }
                throw error
            }
            self.base = base
            self.fileLength = fileLength
            length = smallest
            writableEnd = fileLength
            return
        }
        throw AddressSpaceError(path: backend.path, byteCount: smallest)
    }

    deinit { SystemCalls.unmap(base, length: length) }

    /// Makes the arena writable up to the ref `end`, in steps that grow with it.
    func makeWritable(upTo end: Int) throws {
        if end <= writableEnd { return }
        let step = min(max(1 << 20, writableEnd - fileLength), 64 << 20)
        let target = min(roundUp(max(end, writableEnd + step), 1 << 16), length)
        try SystemCalls.protect(base + writableEnd, length: target - writableEnd, PROT_READ | PROT_WRITE)
        writableEnd = target
    }

    /// Arena bytes that are kept for the next transaction.
    private static let keptBytes = 4 << 20

    /// Gives the memory of a large transaction back to the system.
    func releaseArena(usedUpTo end: Int) {
        let kept = fileLength + Span.keptBytes
        if end > kept { SystemCalls.discard(base + kept, length: min(roundUp(end, 1 << 16), writableEnd) - kept) }
    }
}

/// `value` rounded up to a multiple of `unit`, a power of two. The caller has checked that it cannot overflow.
@inline(__always) func roundUp(_ value: Int, _ unit: Int) -> Int { (value &+ unit &- 1) & ~(unit &- 1) }
