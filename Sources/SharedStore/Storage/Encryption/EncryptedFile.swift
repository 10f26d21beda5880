import Glibc
import Synchronization
import SystemCalls

/// The backend of an encrypted file: positions are those of the plain content, what lies on disk is ciphertext (file-format-3 section 8).
///
/// Each span has its own decrypted pages. Writes go to the pages of the newest span, gathered until `flush`: a page is encrypted once
/// for all that a commit changes in it, and at most once between two syncs.
///
/// Sendable: the list of pages is behind a lock; writing is the business of the holder of the write mutex alone.
public final class EncryptedFile: FileBackend, @unchecked Sendable {
    private let descriptor: SystemCalls.Descriptor
    private let key: EncryptionKey
    private let markers: (any PageWriteMarkers)?
    private struct State {
        var isOpen = true
        var newest: EncryptedPages?
    }
    private let state = Mutex(State())

    /// Takes over an open descriptor; `close` closes it.
    public init(descriptor: SystemCalls.Descriptor, path: String, key: EncryptionKey, markers: (any PageWriteMarkers)? = nil) {
        self.descriptor = descriptor
        self.key = key
        self.markers = markers
        super.init(path: path)
    }

    deinit { close() }

    public override func close() {
        let wasOpen = state.withLock { state in
            defer { state.isOpen = false; state.newest = nil }
            return state.isOpen
        }
        if wasOpen { SystemCalls.close(descriptor) }
    }

    public override var contentAlignment: Int { PageGeometry.pageByteCount }

    public override func size() throws -> Int {
        PageGeometry.plainSize(fileSize: try SystemCalls.status(descriptor, path: path).size)
    }

    public override func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? {
        _ = try SystemCalls.map(length: length, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                                -1, at: address, path: path)
        // Pages keep a descriptor of their own: readers of an old span may outlive this object.
        let own = try SystemCalls.duplicate(descriptor, path: path)
        let pages: EncryptedPages
        do {
            pages = try EncryptedPages(descriptor: own, path: path, key: key, base: address, byteCount: length, markers: markers, ownsDescriptor: true)
        } catch {
            SystemCalls.close(own)
            throw error
        }
        try state.withLock { state in
            try state.newest?.flush()
            state.newest = pages
        }
        return pages
    }

    private func pages() throws -> EncryptedPages {
        guard let pages = state.withLock({ $0.newest }) else {
            throw SystemError(call: "read", code: EBADF, path: path)
        }
        return pages
    }

    public override func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int {
        let count = min(buffer.count, try size() - position)
        guard count > 0, let target = buffer.baseAddress else { return 0 }
        try pages().readAnew(position, count, into: target)
        return count
    }

    public override func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws { try pages().write(bytes, at: position) }
    public override func flush() throws { try pages().flush() }
    public override func discard() { state.withLock { $0.newest }?.discard() }

    public override func preallocate(to size: Int) throws {
        try SystemCalls.preallocate(descriptor, to: PageGeometry.fileSize(plain: size), path: path)
    }

    public override func truncate(to size: Int) throws {
        try SystemCalls.truncate(descriptor, to: size == 0 ? 0 : PageGeometry.fileSize(plain: size), path: path)
    }

    public override func syncData() throws {
        try pages().flush()
        try SystemCalls.syncData(descriptor, path: path)
    }
}
