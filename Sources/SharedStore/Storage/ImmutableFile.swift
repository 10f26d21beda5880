import Glibc
import SystemCalls

/// A file that nobody writes: opened without lock file, FIFO or any other side file, mapped whole, read in place.
///
/// For read-only media, for files inside a bundle, and for tools that look at a file nobody has open. Reads the in-place
/// and the streaming form and every readable format, older ones without upgrading. While somebody commits to the file
/// its content may change under the reader: then use a session instead.
///
/// May be used from several threads at once. Everything read from `group` refers to the mapping and is valid as long as this object lives.
public final class ImmutableFile: @unchecked Sendable {
    // Sendable: nothing changes after init.
    public let path: String
    public let layout: FileLayout
    /// Bytes of the file when it was opened.
    public let fileSize: Int
    public let memory: Memory
    public let group: Group
    private let state: UnsafeMutablePointer<MemoryState>
    private let mapping: UnsafeMutableRawPointer
    private let mappingByteCount: Int

    /// Opens `path` read-only.
    ///
    /// - Throws: `OpenError`; nothing is left open.
    public init(path: String) throws {
        self.path = path
        let descriptor: SystemCalls.Descriptor
        do {
            // Non-blocking, so that a FIFO in the way is refused below instead of waiting for its other end.
            descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        } catch let error as SystemError { throw OpenError(error, path: path) }
        defer { SystemCalls.close(descriptor) }
        do {
            let status = try SystemCalls.status(descriptor, path: path)
            if status.isDirectory { throw OpenError.isDirectory(path: path) }
            if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
            fileSize = status.size
            if fileSize < FileHeader.byteCount { throw OpenError.tooSmall(path: path, size: fileSize, minimum: FileHeader.byteCount) }
            mappingByteCount = fileSize
            mapping = try SystemCalls.map(length: fileSize, protection: PROT_READ, flags: MAP_SHARED, descriptor, path: path)
        } catch let error as SystemError { throw OpenError(error, path: path) }
        let block = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        block.initialize(to: MemoryState(base: mapping, fileLimit: fileSize))
        state = block
        memory = Memory(block)
        do {
            layout = try FileLayout(path: path, memory: memory, fileSize: fileSize)
            try layout.requireReadableFormat(path: path)
            do {
                group = try Group(memory: memory, topRef: layout.topRef, format: layout.format)
            } catch let error as FormatError { throw OpenError.damaged(path: path, error) }
        } catch {
            SystemCalls.unmap(mapping, length: fileSize)
            block.deallocate()
            throw error
        }
    }

    deinit {
        SystemCalls.unmap(mapping, length: mappingByteCount)
        state.deallocate()
    }
}
