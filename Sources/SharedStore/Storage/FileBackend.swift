import CShims
import Glibc
import Synchronization
import SystemCalls

/// The narrow seam between the database and the bytes of its file.
///
/// Everything that is written goes through `write`, everything that is read goes through the span into which `map` puts the
/// content (or through `read`, where there is no span yet). Positions and sizes are those of the plain content: a backend
/// that encrypts translates them.
///
/// Thread rules: `read`, `map` and `size` may be called by any thread; the others only by the holder of the session's write
/// mutex (or of the control mutex while a session starts).
open class FileBackend: @unchecked Sendable {
    // Sendable: what subclasses change after init is changed by the holder of the write mutex alone.
    /// The path by which the file was opened; empty for a file that has no name.
    public let path: String

    /// For subclasses.
    public init(path: String) { self.path = path }

    /// Bytes of plain content that the file has room for (the physical size).
    open func size() throws -> Int { mustOverride() }

    /// Reads until `buffer` is full or the content ends; returns the number of bytes read.
    open func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int { mustOverride() }

    /// Writes all of `bytes`, at the latest with the next `flush`. Eight aligned bytes, or one byte, reach other readers of the
    /// file in one piece.
    open func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws { mustOverride() }

    /// Brings to the file what `write` has gathered (pages that must be encrypted); whoever reads the file sees it then.
    ///
    /// - Parameter alone: nobody else takes part in the session, and nobody can join before this returns.
    open func flush(alone: Bool) throws {}

    /// As `flush(alone: false)`.
    public final func flush() throws { try flush(alone: false) }

    /// True where what waits to be flushed would hurt what the last sync made durable, if the current was cut: sync first.
    open var mustSyncBeforeFlush: Bool { false }

    /// Forgets what was written and not flushed: the commit has failed.
    open func discard() {}

    /// The content ends at a multiple of this; 8 for a plain file, a page for an encrypted one.
    open var contentAlignment: Int { 8 }

    /// Makes the file at least `size` bytes long, with real blocks behind the new bytes; they read as zeros.
    open func preallocate(to size: Int) throws { mustOverride() }

    /// Cuts the file. Only the initiator of a session may, before anybody maps the file (coordination.md 7.5).
    open func truncate(to size: Int) throws { mustOverride() }

    /// Returns when everything written so far, and the size, would survive a power cut.
    open func syncData() throws { mustOverride() }

    /// As `syncData`, for what has been flushed; what waits to be flushed goes on waiting.
    open func syncWritten() throws { try syncData() }

    /// Puts the content at `address`, for `length` bytes, far past its present end: what the file gains later appears there
    /// by itself. Returns what must be asked before bytes are touched, nil where they may be touched at once.
    open func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? { mustOverride() }

    /// Ends the use of the file; what was mapped stays mapped.
    open func close() {}

    /// Chooses between stores through a writable mapping (no system call, nothing synced) and `pwrite`. See file-format-3 4.1:
    /// a store through a mapping dirties a whole folio, so a session that syncs had better write.
    open func setStoresThroughMap(_ on: Bool) {}

    private func mustOverride(_ name: StaticString = #function) -> Never {
        fatalError("\(type(of: self)) must implement \(name)")
    }
}

/// A file as it lies on disk, or in memory without a name.
public final class PlainFile: FileBackend, @unchecked Sendable {
    // Sendable: see FileBackend; `knownSize`, which any thread may learn, is atomic.
    /// The open file.
    public let descriptor: SystemCalls.Descriptor
    @exclusivity(unchecked) private var isOpen = true
    /// The file is at least this long; nobody cuts it while we are here.
    private let knownSize = Atomic<Int>(0)
    @exclusivity(unchecked) private var wantsMap = false
    @exclusivity(unchecked) private var writable: UnsafeMutableRawPointer?
    @exclusivity(unchecked) private var writableLength = 0

    /// Takes over an open descriptor; `close` closes it.
    public init(descriptor: SystemCalls.Descriptor, path: String) {
        self.descriptor = descriptor
        super.init(path: path)
    }

    /// Opens `path`, creating it with mode 0644 where `create` says so.
    public static func open(_ path: String, writable: Bool, create: Bool = false) throws -> PlainFile {
        let flags = (writable ? O_RDWR : O_RDONLY) | (create ? O_CREAT : 0)
        return PlainFile(descriptor: try SystemCalls.open(path, flags), path: path)
    }

    /// Creates `path`, which must not exist (EEXIST).
    public static func createExclusively(_ path: String, mode: UInt32 = 0o644) throws -> PlainFile {
        PlainFile(descriptor: try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL, mode: mode), path: path)
    }

    /// A file in memory that has no name and goes when it is closed and unmapped.
    public static func inMemory() throws -> PlainFile {
        PlainFile(descriptor: try SystemCalls.memoryFile(name: "realm"), path: "")
    }

    /// Whether a file begins like one that is not encrypted.
    static func seemsToBe(_ descriptor: SystemCalls.Descriptor, _ path: String) throws -> Bool {
        try withUnsafeTemporaryAllocation(byteCount: FileHeader.byteCount, alignment: 8) { bytes in
            guard let start = bytes.baseAddress, try SystemCalls.read(descriptor, into: bytes, at: 0, path: path) == bytes.count
            else { return false }
            return FileHeader(start).mnemonic == FileHeader.mnemonic
        }
    }

    deinit { close() }

    public override func close() {
        guard isOpen else { return }
        isOpen = false
        dropWritableMap()
        SystemCalls.close(descriptor)
    }

    public override func size() throws -> Int {
        let known = knownSize.load(ordering: .relaxed)
        let size = try SystemCalls.status(descriptor, path: path).size
        // Any thread may ask: what the writer has learned meanwhile, when it cut the file perhaps, stays.
        _ = knownSize.compareExchange(expected: known, desired: size, ordering: .relaxed)
        return size
    }

    public override func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int {
        try SystemCalls.read(descriptor, into: buffer, at: position, path: path)
    }

    public override func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        if wantsMap, let target = try writableAddress(position, bytes.count) {
            // The header is read by others without a lock: its fields are stored whole, in the order of the program.
            if bytes.count == 8 && position & 7 == 0 {
                CShims_store_u64(target, source.loadUnaligned(as: UInt64.self))
            } else if bytes.count == 1 {
                CShims_store_u8(target, source.load(as: UInt8.self))
            } else {
                target.copyMemory(from: source, byteCount: bytes.count)
            }
            return
        }
        try SystemCalls.write(descriptor, bytes, at: position, path: path)
    }

    public override func preallocate(to size: Int) throws {
        if knownSize.load(ordering: .relaxed) >= size { return }
        try SystemCalls.preallocate(descriptor, to: size, path: path)
        knownSize.max(size, ordering: .relaxed)
    }

    public override func truncate(to size: Int) throws {
        try SystemCalls.truncate(descriptor, to: size, path: path)
        knownSize.store(size, ordering: .relaxed)
    }

    public override func syncData() throws { try SystemCalls.syncData(descriptor, path: path) }

    public override func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? {
        _ = try SystemCalls.map(
            length: length, protection: PROT_READ, flags: MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
            descriptor, at: address, path: path)
        return nil
    }

    // MARK: Stores through a mapping

    public override func setStoresThroughMap(_ on: Bool) {
        wantsMap = on
        if !on { dropWritableMap() }
    }

    private func dropWritableMap() {
        if let writable { SystemCalls.unmap(writable, length: writableLength) }
        writable = nil
        writableLength = 0
    }

    /// The address at which `count` bytes may be stored for `position`; nil where they must be written instead.
    @inline(__always)
    private func writableAddress(_ position: Int, _ count: Int) throws -> UnsafeMutableRawPointer? {
        let end = position + count
        if end <= writableLength && end <= knownSize.load(ordering: .relaxed) { return writable.unsafelyUnwrapped + position }
        return try extendWritableMap(end) ? writable.unsafelyUnwrapped + position : nil
    }

    /// A store into a hole of a sparse file on a full disk, or past its end, would kill the process: such files are written.
    @inline(never)
    private func extendWritableMap(_ end: Int) throws -> Bool {
        let status = try SystemCalls.status(descriptor, path: path)
        knownSize.store(status.size, ordering: .relaxed)
        if end > status.size { return false }
        if end <= writableLength { return true }
        if !path.isEmpty && status.allocatedBytes < status.size { wantsMap = false; return false }
        let length = max(1 << 30, ((2 * status.size) + 0xFFFF) & ~0xFFFF)
        do {
            let map = try SystemCalls.map(
                length: length, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED | MAP_NORESERVE,
                descriptor, path: path)
            dropWritableMap()
            writable = map
            writableLength = length
            return true
        } catch is SystemError {
            wantsMap = false
            return false
        }
    }
}
