import Glibc
import SystemCalls

/// A file that nobody writes: opened without lock file, FIFO or any other side file, mapped whole, read in place.
///
/// For read-only media, for files inside a bundle, and for tools that look at a file nobody has open. Reads the in-place
/// and the streaming form and every readable format, older ones without upgrading. While somebody commits to the file
/// its content may change under the reader: then use a session instead.
///
/// May be used from several threads at once. Its group and tables keep the mapping alive; rows, leaves and readers do not,
/// they are valid as long as the file, the group or a table is held.
public final class ImmutableFile: Sendable {
    /// The file, as it was opened.
    public let path: String
    /// What its header says.
    public let layout: FileLayout
    /// Bytes of the file when it was opened.
    public let fileSize: Int
    /// The version that is read.
    public let memory: Memory
    /// The tables of the version.
    public let group: Group

    /// Opens `path` read-only.
    ///
    /// - Parameter key: the key of an encrypted file. Pages are decrypted when they are first touched; reading one that is
    ///   damaged throws `DecryptionError`.
    /// - Throws: `OpenError`; nothing is left open.
    public init(path: String, key: EncryptionKey? = nil) throws {
        self.path = path
        do {
            let mapping = try FileMapping(path: path, key: key)
            fileSize = mapping.byteCount
            memory = mapping.memory
            layout = try FileLayout(path: path, memory: mapping.memory, fileSize: mapping.byteCount)
            try layout.requireReadableFormat(path: path)
            group = try Group(memory: mapping.memory, topRef: layout.topRef, format: layout.format, owner: mapping)
        } catch let error as SystemError {
            throw OpenError(error, path: path)
        } catch let error as FormatError {
            throw OpenError.damaged(path: path, error)
        } catch let error as DecryptionError {
            throw OpenError(error)
        }
    }
}

/// The bytes of a file as long as this object lives: mapped from the file, or memory into which its pages are decrypted.
///
/// For programs that look at a file without believing in it; `ImmutableFile` opens a file that is one.
public final class FileMapping: @unchecked Sendable {
    // Sendable: nothing changes after init but decrypted pages, of which `EncryptedPages` takes care.
    /// The version that is read.
    public let memory: Memory
    /// Bytes of plain content.
    public let byteCount: Int
    /// The bytes, to be read only; of an encrypted file only the pages that were asked for are there.
    public var bytes: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: memory.state.pointee.base, count: byteCount)
    }
    private let mappedByteCount: Int
    /// Open as long as pages are decrypted; else -1.
    private let descriptor: SystemCalls.Descriptor
    private let pages: EncryptedPages?

    /// Opens and maps `path`.
    ///
    /// - Throws: `OpenError` where nothing can be read: no file, no permission, or shorter than a header.
    public static func open(path: String, key: EncryptionKey? = nil) throws -> FileMapping {
        do { return try FileMapping(path: path, key: key) } catch let error as SystemError { throw OpenError(error, path: path) }
    }

    fileprivate init(path: String, key: EncryptionKey?) throws {
        // Non-blocking, so that a FIFO in the way is refused below instead of waiting for its other end.
        let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        do {
            let status = try SystemCalls.status(descriptor, path: path)
            if status.isDirectory { throw OpenError.isDirectory(path: path) }
            if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
            let looksPlain = try key != nil && PlainFile.seemsToBe(descriptor, path)
            let minimum = key == nil ? FileHeader.byteCount : PageGeometry.smallestFileSize
            if status.size < minimum {
                throw looksPlain ? OpenError.notEncrypted(path: path) : .tooSmall(path: path, size: status.size, minimum: minimum)
            }
            byteCount = key == nil ? status.size : PageGeometry.plainSize(fileSize: status.size)
            let mapped = (byteCount + PageGeometry.pageByteCount - 1) & ~(PageGeometry.pageByteCount - 1)
            let base =
                key == nil
                ? try SystemCalls.map(length: mapped, protection: PROT_READ, flags: MAP_SHARED, descriptor, path: path)
                : try SystemCalls.map(
                    length: mapped, protection: PROT_READ | PROT_WRITE,
                    flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, path: path)
            do {
                pages = try key.map {
                    try EncryptedPages(descriptor: descriptor, path: path, key: $0, base: base, byteCount: mapped)
                }
                // The tag of a page may look like the mark of a plain file by chance: then the page decrypts.
                if looksPlain, (try? pages?.prepare(0, FileHeader.byteCount)) == nil { throw OpenError.notEncrypted(path: path) }
            } catch {
                SystemCalls.unmap(base, length: mapped)
                throw error
            }
            let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
            state.initialize(to: MemoryState(base: base, fileLimit: byteCount))
            state.pointee.pager = pages.map { Unmanaged.passUnretained($0) }
            memory = Memory(state)
            mappedByteCount = mapped
            self.descriptor = key == nil ? -1 : descriptor
            if key == nil { SystemCalls.close(descriptor) }
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    deinit {
        SystemCalls.unmap(memory.state.pointee.base, length: mappedByteCount)
        memory.state.deallocate()
        if descriptor >= 0 { SystemCalls.close(descriptor) }
    }
}

extension OpenError {
    /// The case for a page that does not decrypt.
    public init(_ error: DecryptionError) {
        let reason =
            switch error.reason {
            case .neverWritten: "it has never been written"
            case .outOfBounds: "it is out of bounds; the file is cut off or not encrypted"
            case .interruptedFirstWrite: "its checksum is wrong, or its first write was interrupted"
            case .authenticationFailed: "its checksum is wrong"
            case .countersDisagree: "its metadata is damaged"
            case .unstable(let seconds): "somebody kept writing it for \(seconds) seconds"
            }
        self = .decryptionFailed(path: error.path, page: error.position / PageGeometry.pageByteCount, reason: reason)
    }
}
