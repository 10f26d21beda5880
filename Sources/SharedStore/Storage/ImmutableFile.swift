import Glibc
import SystemCalls

/// A file that nobody writes: opened without lock file, FIFO or any other side file, mapped whole, read in place.
///
/// For read-only media, for files inside a bundle, and for tools that look at a file nobody has open. Reads the in-place
/// and the streaming form and every readable format, older ones without upgrading. While somebody commits to the file
/// its content may change under the reader: then use a session instead.
///
/// May be used from several threads at once. Its group and tables keep the mapping alive; rows, leaves and readers do not, they are
/// valid as long as the file, the group or a table is held.
public final class ImmutableFile: Sendable {
    public let path: String
    public let layout: FileLayout
    /// Bytes of the file when it was opened.
    public let fileSize: Int
    public let memory: Memory
    public let group: Group

    /// Opens `path` read-only.
    ///
    /// - Throws: `OpenError`; nothing is left open.
    public init(path: String) throws {
        self.path = path
        do {
            let mapping = try FileMapping(path: path)
            fileSize = mapping.byteCount
            memory = mapping.memory
            layout = try FileLayout(path: path, memory: mapping.memory, fileSize: mapping.byteCount)
            try layout.requireReadableFormat(path: path)
            group = try Group(memory: mapping.memory, topRef: layout.topRef, format: layout.format, owner: mapping)
        } catch let error as SystemError {
            throw OpenError(error, path: path)
        } catch let error as FormatError {
            throw OpenError.damaged(path: path, error)
        }
    }
}

/// The bytes of a file, mapped for reading as long as this object lives.
private final class FileMapping: Sendable {
    let memory: Memory
    let byteCount: Int

    init(path: String) throws {
        // Non-blocking, so that a FIFO in the way is refused below instead of waiting for its other end.
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(descriptor) }
        let status = try SystemCalls.status(descriptor, path: path)
        if status.isDirectory { throw OpenError.isDirectory(path: path) }
        if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
        if status.size < FileHeader.byteCount { throw OpenError.tooSmall(path: path, size: status.size, minimum: FileHeader.byteCount) }
        byteCount = status.size
        let base = try SystemCalls.map(length: status.size, protection: PROT_READ, flags: MAP_SHARED, descriptor, path: path)
        let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        state.initialize(to: MemoryState(base: base, fileLimit: status.size))
        memory = Memory(state)
    }

    deinit {
        SystemCalls.unmap(memory.state.pointee.base, length: byteCount)
        memory.state.deallocate()
    }
}
