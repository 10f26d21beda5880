import Glibc
import Synchronization
import SystemCalls

/// The backend of an encrypted file: positions are those of the plain content, what lies on disk is ciphertext (file-format-3
/// section 8).
///
/// Each span has its own decrypted pages. Writes go to the pages of the newest span, gathered until `flush`: a page is encrypted
/// once for all that a commit changes in it, and at most once between two syncs. Whoever maps a larger span meanwhile, a reader
/// perhaps, leaves the gathered pages alone: they are written with the `flush` for which they were gathered, and the next writes
/// go to the new span.
///
/// What is written where no span reaches goes to pages in a window of their own: a file that grows beyond its span, and a file
/// that is written without being mapped (a copy, from its beginning to its end). Their memory is given back as soon as they are
/// written: a copy takes no more memory than its buffers.
///
/// Sendable: the list of pages is behind a lock; writing is the business of the holder of the write mutex alone.
public final class EncryptedFile: FileBackend, @unchecked Sendable {
    private let descriptor: SystemCalls.Descriptor
    private let key: EncryptionKey
    private let markers: (any PageWriteMarkers)?
    private struct State {
        var isOpen = true
        /// Of the span that was mapped last.
        var newest: EncryptedPages?
        /// Those in which writes are gathered: of an older span as long as something waits there to be flushed.
        var writing: EncryptedPages?
        /// `writing` is no span but a window, whose memory goes with it.
        var isWindow = false
        /// Those that wrote before have pages that were not synced since.
        var leftUnsynced = false

        mutating func write(with pages: EncryptedPages, isWindow: Bool) {
            if let writing, writing !== pages, writing.hasUnsyncedPages { leftUnsynced = true }
            writing = pages
            self.isWindow = isWindow
        }
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
            defer { state.isOpen = false }
            state.newest = nil
            state.writing = nil
            return state.isOpen
        }
        if wasOpen { SystemCalls.close(descriptor) }
    }

    public override var contentAlignment: Int { PageGeometry.pageByteCount }

    public override func size() throws -> Int {
        let size = PageGeometry.plainSize(fileSize: try SystemCalls.status(descriptor, path: path).size)
        knownSize.store(size, ordering: .relaxed)
        return size
    }

    /// Whether the file begins like one that is not encrypted: if its first page does not decrypt, that is why.
    func seemsToBePlain() throws -> Bool { try PlainFile.seemsToBe(descriptor, path) }

    /// The content is at least this long; nobody cuts it while we are here.
    private let knownSize = Atomic<Int>(0)

    /// Pages encrypted and written so far, for those who measure.
    package var writtenPageCount: Int { writtenPages.load(ordering: .relaxed) }
    private let writtenPages = Atomic<Int>(0)

    public override func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? {
        _ = try SystemCalls.map(
            length: length, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
            -1, at: address, path: path)
        // Pages keep a descriptor of their own: readers of an old span may outlive this object.
        let own = try SystemCalls.duplicate(descriptor, path: path)
        let pages: EncryptedPages
        do {
            pages = try EncryptedPages(
                descriptor: own, path: path, key: key, base: address, byteCount: length, markers: markers, ownsDescriptor: true)
        } catch {
            SystemCalls.close(own)
            throw error
        }
        state.withLock { $0.newest = pages }
        return pages
    }

    /// The pages in which bytes up to `end` can be written and read.
    private func pages(upTo end: Int) throws -> EncryptedPages {
        try state.withLock { state in
            if !state.isOpen { throw SystemError(call: "write", code: EBADF, path: path) }
            if let writing = state.writing, writing.hasUnflushedPages || state.newest == nil, end <= writing.byteCount {
                return writing
            }
            if let newest = state.newest, end <= newest.byteCount, !(state.writing?.hasUnflushedPages ?? false) {
                state.write(with: newest, isWindow: false)
                return newest
            }
            if state.isWindow, let writing = state.writing, end <= writing.byteCount { return writing }
            let window = try Self.reserve(end, path)
            guard let base = window.baseAddress else { throw SystemError(call: "mmap", code: ENOMEM, path: path) }
            do {
                let pages = try EncryptedPages(
                    descriptor: descriptor, path: path, key: key, base: base, byteCount: window.count, markers: markers,
                    ownsMemory: true)
                if let writing = state.writing { pages.adoptUnflushedPages(of: writing) }
                state.write(with: pages, isWindow: true)
                return pages
            } catch {
                SystemCalls.unmap(base, length: window.count)
                throw error
            }
        }
    }

    /// The smallest window, for files that reach no further.
    private static let windowByteCountMin = 1 << 20

    /// Address space for as long a file as this machine lets us have, at least up to `end`.
    private static func reserve(_ end: Int, _ path: String) throws -> UnsafeMutableRawBufferPointer {
        var length = 1 << 40
        while true {
            do {
                let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
                let base = try SystemCalls.map(length: length, protection: PROT_READ | PROT_WRITE, flags: flags, path: path)
                return UnsafeMutableRawBufferPointer(start: base, count: length)
            } catch let error as SystemError where error.code == ENOMEM && length / 2 >= max(end, windowByteCountMin) {
                length /= 2
            }
        }
    }

    public override func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int {
        let end = position &+ buffer.count
        let count = end <= knownSize.load(ordering: .relaxed) ? buffer.count : min(buffer.count, try size() - position)
        guard count > 0, let target = buffer.baseAddress else { return 0 }
        try pages(upTo: position + count).readAnew(position, count, into: target)
        return count
    }

    /// The file cannot become longer than a window can be.
    private static let byteCountMax = 1 << 46

    public override func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws {
        if position > EncryptedFile.byteCountMax || bytes.count > EncryptedFile.byteCountMax - position {
            throw SystemError(call: "write", code: EFBIG, path: path)
        }
        try pages(upTo: position + bytes.count).write(bytes, at: position)
    }

    public override func flush(alone: Bool) throws {
        let (pages, isWindow) = state.withLock { ($0.writing, $0.isWindow) }
        guard let pages else { return }
        let before = pages.writtenPageCount
        defer { writtenPages.add(pages.writtenPageCount - before, ordering: .relaxed) }
        try isWindow ? pages.flushAndGiveBackMemory(alone: alone) : pages.flush(alone: alone)
    }

    public override func discard() { state.withLock { $0.writing }?.discard() }

    public override func preallocate(to size: Int) throws {
        if size <= knownSize.load(ordering: .relaxed) { return }
        try SystemCalls.preallocate(descriptor, to: PageGeometry.fileSize(plain: size), path: path)
        _ = try self.size()
    }

    public override func truncate(to size: Int) throws {
        try SystemCalls.truncate(descriptor, to: size == 0 ? 0 : PageGeometry.fileSize(plain: size), path: path)
        knownSize.store(size, ordering: .relaxed)
    }

    public override var mustSyncBeforeFlush: Bool {
        let (pages, leftUnsynced) = state.withLock { ($0.writing, $0.leftUnsynced) }
        return pages.map { leftUnsynced && $0.hasUnflushedPages || $0.needsSync } ?? false
    }

    public override func syncWritten() throws {
        try SystemCalls.syncData(descriptor, path: path)
        state.withLock { state in
            state.leftUnsynced = false
            return state.writing
        }?.didSync()
    }

    public override func syncData() throws {
        try flush()
        try syncWritten()
    }
}
