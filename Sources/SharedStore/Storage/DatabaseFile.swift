import SystemCalls
import Synchronization

/// A database file that is open: its backend, and the span in which it is read and edited.
///
/// Any number of views, each bound to its own version, read through one span. When the file outgrows the span, a larger
/// one is made for those who bind from then on; the old one lives until its last user has gone.
///
/// Thread rules: `view` and the other reading calls may come from any thread; the writing ones from the holder of the write
/// mutex, or of the control mutex while a session starts.
public final class DatabaseFile: Sendable {
    /// Through which the bytes come and go.
    public let backend: FileBackend
    private let current: Mutex<Span>

    /// Maps the file of `backend`. Throws `AddressSpaceError` or `SystemError`.
    public init(backend: FileBackend) throws {
        self.backend = backend
        current = Mutex(try Span(backend: backend, size: try backend.size()))
    }

    /// Opens and maps the file at `path`, without any look at its content.
    public static func open(_ path: String, writable: Bool, create: Bool = false) throws -> DatabaseFile {
        try DatabaseFile(backend: try PlainFile.open(path, writable: writable, create: create))
    }

    /// A database without a file, private to this process: header and one page, never committed to.
    public static func inMemory() throws -> DatabaseFile {
        let backend = try PlainFile.inMemory()
        backend.setStoresThroughMap(true)
        let file = try DatabaseFile(backend: backend)
        try file.initialize(durability: .memoryOnly)
        return file
    }

    /// The file, as it was opened.
    public var path: String { backend.path }

    /// Closes the descriptor. Views that still exist can be read on, nothing can be bound or written any more.
    public func close() { backend.close() }

    /// The span for a version of `size` bytes.
    func span(covering size: Int) throws -> Span {
        try current.withLock { span in
            if size > span.fileLength { span = try Span(backend: backend, size: size) }
            return span
        }
    }

    /// A view of `snapshot`, which the caller has pinned in the session.
    public func view(of snapshot: Snapshot) throws -> FileView {
        try FileView(file: self, snapshot: snapshot)
    }

    // MARK: Header

    /// The header as it is now.
    public func readHeader() throws -> FileHeader {
        var bytes: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let count = try withUnsafeMutableBytes(of: &bytes) { try backend.read(into: $0, at: 0) }
        if count < FileHeader.byteCount {
            throw FormatError(ref: 0, "the file has \(count) bytes, a header has \(FileHeader.byteCount)")
        }
        return withUnsafeBytes(of: &bytes) { FileHeader($0.baseAddress.unsafelyUnwrapped) }
    }

    /// Makes an empty file a database that was never committed to: one page, beginning with a header (file-format-1 1.1).
    ///
    /// The header is written first, by one call, and synced before the file gets its size: who dies here leaves an empty file,
    /// one that can be opened, or a few bytes that the next initiator knows for what they are
    /// (`Participant.isRemnantOfCreation`).
    public func initialize(durability: Durability) throws {
        var bytes: (UInt64, UInt64, UInt64) = (0, 0, 0)
        try withUnsafeMutableBytes(of: &bytes) {
            FileHeader().store(to: $0.baseAddress.unsafelyUnwrapped)
            try backend.write(UnsafeRawBufferPointer($0), at: 0)
        }
        try backend.flush()
        if durability == .full { try backend.syncData() }
        try backend.preallocate(to: SystemCalls.pageSize)
        if durability == .full { try backend.syncData() }
    }

    /// Makes `topRef` what the header points to: the other slot, sync, the flag, sync (file-format-3 4.1, steps 6-9).
    ///
    /// In an encrypted file slot and flag lie in one page, which is written as a whole or not at all: it is encrypted once, after
    /// a sync of what it makes visible. So both kinds of files take two syncs.
    ///
    /// Used by every commit, and at the beginning of a write transaction when a dead writer left the header ahead of the version
    /// list (coordination.md 5.5 W5). Nothing happens for `.memoryOnly`, whose header never points anywhere.
    ///
    /// When it throws before the flag is written, the file is as it was. When the last sync throws, the header shows the new
    /// version though it may not be on disk: the next call, by whoever, settles that before anything is overwritten.
    public func pointHeader(to topRef: Int, format: UInt8 = FileHeader.currentFormat, durability: Durability) throws {
        if durability == .memoryOnly { return }
        let isPaged = backend.contentAlignment > 8
        if durability == .full && isPaged { try backend.syncData() }
        var header = try currentHeader()
        let slot = 1 - header.liveSlot
        let oldFormat = slot == 0 ? header.formats.0 : header.formats.1
        if slot == 0 {
            header.topRefs.0 = UInt64(topRef)
            header.formats.0 = format
        } else {
            header.topRefs.1 = UInt64(topRef)
            header.formats.1 = format
        }
        header.flags ^= 1
        try withUnsafeTemporaryAllocation(byteCount: FileHeader.byteCount, alignment: 8) { bytes in
            guard let start = bytes.baseAddress else { return }
            header.store(to: start)
            func write(_ range: Range<Int>) throws {
                try backend.write(UnsafeRawBufferPointer(rebasing: bytes[range]), at: range.lowerBound)
            }
            if isPaged {
                do {
                    try write(0..<FileHeader.byteCount)
                    try backend.flush()
                } catch {
                    backend.discard()
                    throw error
                }
            } else {
                try write(8 * slot..<8 * slot + 8)
                if oldFormat != format { try write(20 + slot..<21 + slot) }
                if durability == .full { try backend.syncData() }
                try write(23..<24)
            }
        }
        if durability == .full { try backend.syncData() }
    }

    /// Makes the header point to the version that the session calls its newest, if it does not (coordination.md 5.5, W5).
    /// Whoever writes does this first, under the write mutex.
    ///
    /// - Returns: the format of the newest version; the current one where it has no content.
    @discardableResult
    package func alignHeader(with newest: Snapshot, _ durability: Durability) throws -> UInt8 {
        func decided(_ format: UInt8) -> UInt8 { format == 0 ? FileHeader.currentFormat : format }
        if durability == .memoryOnly { return FileHeader.currentFormat }
        let header = try currentHeader()
        if header.liveTopRef == UInt64(newest.topRef) && !header.isStreaming { return decided(header.liveFormat) }
        let other = 1 - header.liveSlot
        // The other slot is the one that the newest version was written to, with its format.
        let knowsFormat = (other == 0 ? header.topRefs.0 : header.topRefs.1) == UInt64(newest.topRef)
        let format =
            knowsFormat ? (other == 0 ? header.formats.0 : header.formats.1) : newest.topRef == 0 ? 0 : FileHeader.currentFormat
        try pointHeader(to: newest.topRef, format: format, durability: durability)
        return decided(format)
    }

    /// The header, by way of the span where that needs no system call.
    public func currentHeader() throws -> FileHeader {
        let mapped: FileHeader? = current.withLock { $0.pageSource == nil ? FileHeader($0.base) : nil }
        return try mapped ?? readHeader()
    }
}

/// The bytes of one version, ready to be read: a `Memory` and what keeps it alive.
///
/// Not thread-safe: a view belongs to one transaction. Whoever holds nodes of it must hold the view as well.
public final class FileView {
    /// The file that the view is of.
    public let file: DatabaseFile
    /// The version that the view is bound to.
    @exclusivity(unchecked) public private(set) var snapshot: Snapshot
    @exclusivity(unchecked) private var span: Span
    private let state: UnsafeMutablePointer<MemoryState>

    init(file: DatabaseFile, snapshot: Snapshot) throws {
        span = try file.span(covering: snapshot.logicalSize)
        self.file = file
        self.snapshot = snapshot
        state = .allocate(capacity: 1)
        state.initialize(to: MemoryState(base: span.base, fileLimit: snapshot.logicalSize))
        state.pointee.pager = span.pageSource.map(Unmanaged.passUnretained)
        span.pageSource?.invalidate()
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// What the version's nodes are looked up in; valid as long as this view, and bound to its snapshot.
    public var memory: Memory { Memory(state) }

    /// The address of byte 0 of the file.
    var base: UnsafeMutableRawPointer { span.base }

    /// Binds to another version. Nodes of the old one must not be used any more.
    public func rebind(to snapshot: Snapshot) throws {
        if snapshot.logicalSize > span.fileLength {
            span = try file.span(covering: snapshot.logicalSize)
            state.pointee.base = span.base
            state.pointee.pager = span.pageSource.map(Unmanaged.passUnretained)
        }
        span.pageSource?.invalidate()
        state.pointee.fileLimit = snapshot.logicalSize
        self.snapshot = snapshot
    }

    /// An arena behind the file; there may be one at a time for each file.
    func makeArena() throws -> (arena: Arena, span: Span) {
        // The newest span has the most room, and a transaction always starts from the newest version.
        let newest = try file.span(covering: snapshot.logicalSize)
        if newest !== span {
            span = newest
            state.pointee.base = span.base
            state.pointee.pager = span.pageSource.map(Unmanaged.passUnretained)
        }
        state.pointee.arenaStart = span.fileLength
        state.pointee.arenaLimit = span.fileLength
        let space = span
        return (Arena(memory: memory, end: space.length) { try space.makeWritable(upTo: $0) }, space)
    }
}

/// The memory of write transactions: a view of the newest version with an arena behind it, used again and again.
///
/// Not thread-safe: it belongs to the holder of the write mutex.
public final class WorkingMemory {
    /// The newest version as the transaction sees it.
    public let view: FileView
    /// Where changed nodes go, behind the file.
    @exclusivity(unchecked) public private(set) var arena: Arena
    @exclusivity(unchecked) private var span: Span

    /// For transactions that begin with this version or later ones.
    public init(file: DatabaseFile, base: Snapshot) throws {
        view = try file.view(of: base)
        (arena, span) = try view.makeArena()
    }

    /// The nodes of the version and of the arena.
    public var memory: Memory { view.memory }

    /// Starts a transaction on `base`: the arena is empty, all refs below it are those of `base`.
    public func begin(_ base: Snapshot) throws {
        if base.logicalSize > span.fileLength {
            try view.rebind(to: base)
            (arena, span) = try view.makeArena()
        } else if base != view.snapshot {
            try view.rebind(to: base)
        }
        arena.reset(fileLimit: base.logicalSize, arenaStart: span.fileLength)
    }

    /// Forgets what the transaction made, after a commit as well as for a rollback.
    public func end() {
        span.releaseArena(usedUpTo: memory.state.pointee.arenaLimit)
        arena.reset(fileLimit: view.snapshot.logicalSize, arenaStart: span.fileLength)
    }
}
