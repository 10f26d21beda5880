import Glibc
import Synchronization
import SystemCalls

/// The backend of an encrypted file: positions are those of the plain content, what lies on disk is ciphertext (file-format-3 section 8).
///
/// Each span has its own decrypted pages. Writes go to the pages of the newest span, gathered until `flush`: a page is encrypted once
/// for all that a commit changes in it, and at most once between two syncs.
///
/// A file that is written without being mapped (a copy, from its beginning to its end) has pages of its own, which are given back as
/// soon as they are written: a copy takes no more memory than its buffers.
///
/// Sendable: the list of pages is behind a lock; writing is the business of the holder of the write mutex alone.
public final class EncryptedFile: FileBackend, @unchecked Sendable {
    private let descriptor: SystemCalls.Descriptor
    private let key: EncryptionKey
    private let markers: (any PageWriteMarkers)?
    private struct State {
        var isOpen = true
        var newest: EncryptedPages?
        /// Memory of `newest` where nobody has mapped the file.
        var window: UnsafeMutableRawBufferPointer?
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
            if let window = state.window, let base = window.baseAddress { SystemCalls.unmap(base, length: window.count) }
            state.window = nil
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
            if let window = state.window, let base = window.baseAddress { SystemCalls.unmap(base, length: window.count) }
            state.window = nil
        }
        return pages
    }

    private func pages() throws -> EncryptedPages {
        try state.withLock { state in
            if let pages = state.newest { return pages }
            if !state.isOpen { throw SystemError(call: "read", code: EBADF, path: path) }
            let window = try Self.reserve(path)
            guard let base = window.baseAddress else { throw SystemError(call: "mmap", code: ENOMEM, path: path) }
            do {
                let pages = try EncryptedPages(descriptor: descriptor, path: path, key: key, base: base, byteCount: window.count, markers: markers)
                state.newest = pages
                state.window = window
                return pages
            } catch {
                SystemCalls.unmap(base, length: window.count)
                throw error
            }
        }
    }

    /// Address space for as long a file as this machine lets us have.
    private static func reserve(_ path: String) throws -> UnsafeMutableRawBufferPointer {
        var length = 1 << 40
        while true {
            do {
                let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
                let base = try SystemCalls.map(length: length, protection: PROT_READ | PROT_WRITE, flags: flags, path: path)
                return UnsafeMutableRawBufferPointer(start: base, count: length)
            } catch let error as SystemError where error.code == ENOMEM && length > 1 << 30 { length >>= 1 }
        }
    }

    public override func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int {
        let count = min(buffer.count, try size() - position)
        guard count > 0, let target = buffer.baseAddress else { return 0 }
        try pages().readAnew(position, count, into: target)
        return count
    }

    public override func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws {
        let pages = try pages()
        if let window = state.withLock({ $0.window }), bytes.count > window.count - position {
            throw SystemError(call: "write", code: EFBIG, path: path)
        }
        try pages.write(bytes, at: position)
    }

    public override func flush() throws {
        let pages = try pages()
        try state.withLock({ $0.window != nil }) ? pages.flushAndGiveBackMemory() : pages.flush()
    }
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
