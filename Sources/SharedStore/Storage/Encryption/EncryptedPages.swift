import Glibc
import Synchronization
import SystemCalls

/// Why a page of an encrypted file cannot be read (file-format-3 8.5, 8.8).
public struct DecryptionError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Reason: Equatable, Sendable {
        case neverWritten, outOfBounds, interruptedFirstWrite, authenticationFailed
        /// The two counters of the page's metadata do not follow each other, so one of them is damaged.
        case countersDisagree
        /// Another process kept writing the page for longer than this.
        case unstable(seconds: Int)
    }
    public let path: String
    /// Position of the page in the decrypted file, in bytes.
    public let position: Int
    public let reason: Reason

    public var description: String {
        switch reason {
        case .neverWritten: "\(path): decryption failed: page at \(position) has never been written to"
        case .outOfBounds: "\(path): decryption failed: page at \(position) is out of bounds; the file is cut off or not encrypted"
        case .interruptedFirstWrite: "\(path): decryption failed: the first write of the page at \(position) was interrupted"
        case .authenticationFailed:
            "\(path): decryption failed: page at \(position) failed the HMAC check; either the encryption key is incorrect or the data is corrupted"
        case .countersDisagree: "\(path): decryption failed: the metadata of the page at \(position) is damaged"
        case .unstable(let seconds): "\(path): decryption failed: unable to decrypt the page at \(position) after \(seconds) seconds"
        }
    }
}

/// What a session offers to the pages of a file that several processes encrypt (file-format-3 section 9): the two fields
/// of the lock file. Without a session (immutable files, copies) there are no markers.
public protocol PageWriteMarkers: AnyObject, Sendable {
    /// Plain position of the page being written + 1, or 0.
    var writingPage: UInt64 { get }
    var writeCounter: UInt64 { get }
    func beginPageWrite(position: Int)
    func endPageWrite()
}

/// The plain content of an encrypted file in a reserved span of memory: pages are decrypted on first touch, checked again
/// after a change of version, and written back with their metadata entry adjacent.
///
/// Invariants: a page whose mark equals the present generation holds the plaintext of the seal remembered for it; bytes of
/// bound versions never change, so a page that is decrypted again under a reader gets the same bytes where it looks.
/// Crash argument: entry first, then data, back to back; a reader that finds the new entry with the old data uses the
/// previous seal of the entry. A page is written at most once between two syncs (`flush` is followed by a sync before the
/// next `flush`), so the previous seal always describes what is durable.
///
/// Threads: `prepare` may be called from any thread; writing only from the holder of the write lock.
public final class EncryptedPages: PageSource, @unchecked Sendable {
    // Sendable: the marks are atomics, everything else is used under `lock`.
    private let descriptor: Int32
    private let path: String
    private let base: UnsafeMutableRawPointer
    private let pageCountMax: Int
    /// Bytes of the span, whole pages.
    var byteCount: Int { pageCountMax << 12 }
    private let cipher: PageCipher
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    /// One mark a page: the generation in which the page was found valid. Zero pages of an anonymous mapping until used.
    private let marks: UnsafeMutablePointer<UInt32>
    private let marksByteCount: Int
    private let generation = Atomic<UInt32>(1)
    /// What the plaintext in the span was decrypted from, by page.
    private var seals: [PageEntry.Seal] = []
    /// Metadata pages read in this generation, by block.
    private var blocks: [Int: [UInt8]] = [:]
    private var dirty: Set<Int> = []
    /// Those of the dirty pages of which not all was overwritten: what the file holds of them was looked at under the write lock.
    private var loadedForWriting: Set<Int> = []
    private var sealed: UnsafeMutableRawPointer
    private var scratch: UnsafeMutableRawPointer
    private let markers: (any PageWriteMarkers)?
    private var lastWriteCounter: UInt64 = 0
    private var quietObservations = 0
    private let maySkipRetries: Bool
    private let ownsDescriptor: Bool
    private let ownsMemory: Bool

    /// - Parameters:
    ///   - base: writable anonymous memory of `byteCount` bytes, address of plain byte 0; it must outlive this object.
    ///   - ownsDescriptor, ownsMemory: these go with this object, where it could be made.
    public init(descriptor: Int32, path: String, key: EncryptionKey, base: UnsafeMutableRawPointer, byteCount: Int, markers: (any PageWriteMarkers)? = nil,
                ownsDescriptor: Bool = false, ownsMemory: Bool = false) throws {
        self.ownsDescriptor = ownsDescriptor
        self.ownsMemory = ownsMemory
        self.descriptor = descriptor
        self.path = path
        self.base = base
        pageCountMax = byteCount / PageGeometry.pageByteCount
        cipher = try PageCipher(key: key)
        self.markers = markers
        maySkipRetries = markers == nil
        marksByteCount = max(4096, (pageCountMax * 4 + 4095) & ~4095)
        marks = try SystemCalls.map(length: marksByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
            .assumingMemoryBound(to: UInt32.self)
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        sealed = .allocate(byteCount: PageGeometry.pageByteCount, alignment: 16)
        scratch = .allocate(byteCount: PageGeometry.pageByteCount, alignment: 16)
    }

    deinit {
        if ownsDescriptor { SystemCalls.close(descriptor) }
        if ownsMemory { SystemCalls.unmap(base, length: byteCount) }
        memset(scratch, 0, PageGeometry.pageByteCount)
        sealed.deallocate()
        scratch.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
        SystemCalls.unmap(marks, length: marksByteCount)
    }

    /// Bytes of plain content in the file as it is now.
    public func plainSize() throws -> Int { PageGeometry.plainSize(fileSize: try SystemCalls.status(descriptor, path: path).size) }

    // MARK: Reading

    public override func prepare(_ start: Int, _ end: Int) throws {
        let present = generation.load(ordering: .acquiring)
        var page = start >> 12
        let last = (end - 1) >> 12
        while page <= last {
            if page >= pageCountMax { throw DecryptionError(path: path, position: page << 12, reason: .outOfBounds) }
            if mark(page) != present { try load(page) }
            page += 1
        }
    }

    @inline(__always) private func mark(_ page: Int) -> UInt32 {
        // An aligned word, written after the page's bytes under the lock; x86-64 and aarch64 need the acquire only on the latter.
        let value = marks[page]
        atomicMemoryFence(ordering: .acquiring)
        return value
    }

    private func setMark(_ page: Int, _ value: UInt32) {
        atomicMemoryFence(ordering: .releasing)
        marks[page] = value
    }

    /// A new version was bound: every page is possibly stale and is compared with its entry at the next touch.
    public override func invalidate() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        blocks.removeAll(keepingCapacity: true)
        var next = generation.load(ordering: .relaxed) &+ 1
        if next == 0 { next = 1 }
        generation.store(next, ordering: .releasing)
    }

    public override func giveBack(_ start: Int, _ end: Int) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        var page = start >> 12
        let limit = min((end + PageGeometry.pageByteCount - 1) >> 12, pageCountMax)
        while page < limit {
            let first = page
            while page < limit, !dirty.contains(page) {
                marks[page] = 0
                page += 1
            }
            if page > first { SystemCalls.discard(base + (first << 12), length: (page - first) << 12) }
            page += 1
        }
    }

    /// Copies bytes as they are in the file now, whatever was decrypted before; what was written and not flushed counts.
    func readAnew(_ position: Int, _ count: Int, into target: UnsafeMutableRawPointer) throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        precondition(position >= 0 && position + count <= pageCountMax << 12, "a read past the reserved span")
        for page in (position >> 12)...((position + count - 1) >> 12) where !dirty.contains(page) {
            blocks[page / PageGeometry.pagesPerBlock] = nil
            let present = generation.load(ordering: .relaxed)
            if marks[page] == present { marks[page] = present == 1 ? UInt32.max : present - 1 }
            try loadLocked(page, forWriting: false)
        }
        target.copyMemory(from: base + position, byteCount: count)
    }

    private func load(_ page: Int) throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        try loadLocked(page, forWriting: false)
    }

    private func loadLocked(_ page: Int, forWriting: Bool) throws {
        let present = generation.load(ordering: .relaxed)
        if marks[page] == present || dirty.contains(page) { return }
        let position = page << 12
        if marks[page] != 0, page < seals.count, seals[page].iv != 0 {
            // Decrypted before: still valid if the entry's latest seal is the one that the plaintext came from.
            if try entry(page, fresh: false).current == seals[page] {
                setMark(page, present)
                return
            }
        }
        let outcome = try readWithRetries(page)
        switch outcome {
        case .content(let seal):
            (base + position).copyMemory(from: scratch, byteCount: PageGeometry.pageByteCount)
            remember(page, seal)
        case .zeros:
            memset(base + position, 0, PageGeometry.pageByteCount)
            remember(page, PageEntry.Seal())
        case .failure(let reason):
            guard forWriting, reason != .authenticationFailed, reason != .countersDisagree, reason != .unstable(seconds: 5) else {
                throw DecryptionError(path: path, position: position, reason: reason)
            }
            memset(base + position, 0, PageGeometry.pageByteCount)
            remember(page, PageEntry.Seal())
        }
        setMark(page, present)
    }

    private func remember(_ page: Int, _ seal: PageEntry.Seal) {
        if seals.count <= page { seals.append(contentsOf: repeatElement(PageEntry.Seal(), count: page + 1 - seals.count)) }
        seals[page] = seal
    }

    private enum Outcome {
        case content(PageEntry.Seal)
        case zeros
        case failure(DecryptionError.Reason)
    }

    /// The entry of a page, from the metadata page read in this generation, or read anew.
    private func entry(_ page: Int, fresh: Bool) throws -> PageEntry {
        let block = page / PageGeometry.pagesPerBlock
        if fresh || blocks[block] == nil {
            var bytes = [UInt8](repeating: 0, count: PageGeometry.pageByteCount)
            _ = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: block * PageGeometry.blockByteCount, path: path) }
            blocks[block] = bytes
        }
        return blocks[block]!.withUnsafeBytes { PageEntry($0.baseAddress! + page % PageGeometry.pagesPerBlock * PageGeometry.entryByteCount) }
    }

    /// One attempt by the table of file-format-3 8.5; the plaintext is left in `scratch`.
    private func attempt(_ page: Int, _ e: PageEntry) throws -> Outcome {
        if e.current.iv == 0 { return .failure(.neverWritten) }
        let position = page << 12
        let n = try SystemCalls.read(descriptor, into: UnsafeMutableRawBufferPointer(start: sealed, count: PageGeometry.pageByteCount), at: PageGeometry.filePosition(position), path: path)
        if n < PageGeometry.pageByteCount { return .failure(.outOfBounds) }
        let tag = try cipher.seal(sealed, iv: 0)
        let seal: PageEntry.Seal
        if tag.hasSameTag(as: e.current) {
            // No tag covers the counters, but every writer lets the latest follow the one before (file-format-3 8.4, 8.5): a damaged one,
            // or an entry that was read while it was written, would garble the first bytes of the page.
            if try e.previous.iv != 0 && !follows(e, position) { return .failure(.countersDisagree) }
            seal = e.current
        } else if e.previous.iv == 0 {
            return isZero(sealed) ? .zeros : .failure(.interruptedFirstWrite)
        } else if tag.hasSameTag(as: e.previous) {
            seal = e.previous
        } else {
            return isZero(sealed) ? .zeros : .failure(.authenticationFailed)
        }
        try cipher.decrypt(sealed, into: scratch, iv: seal.iv, position: position)
        return .content(seal)
    }

    private func isZero(_ p: UnsafeMutableRawPointer) -> Bool {
        p.load(as: UInt8.self) == 0 && memcmp(p, p + 1, PageGeometry.pageByteCount - 1) == 0
    }

    /// The counter of the latest seal is the one after that of the seal before, or the one after that: a counter is left out where it would
    /// have made the ciphertext of before once more, which happens since it is XORed to the first four bytes of the page.
    private func follows(_ e: PageEntry, _ position: Int) throws -> Bool {
        let next = PageEntry.counter(after: e.previous.iv)
        if e.current.iv == next { return true }
        if e.current.iv != PageEntry.counter(after: next) { return false }
        let again = UnsafeMutableRawPointer.allocate(byteCount: PageGeometry.pageByteCount, alignment: 16)
        defer { again.deallocate() }
        try cipher.decrypt(sealed, into: scratch, iv: e.current.iv, position: position)
        try cipher.encrypt(scratch, into: again, iv: next, position: position)
        return try cipher.seal(again, iv: next).hasSameTag(as: e.previous)
    }

    /// True only from the fifth consecutive quiet look on (file-format-3 section 9).
    private func noConcurrentWriter() -> Bool {
        guard let markers else { return maySkipRetries }
        let counter = markers.writeCounter
        if markers.writingPage != 0 || counter != lastWriteCounter {
            lastWriteCounter = counter
            quietObservations = 0
            return false
        }
        quietObservations += 1
        return quietObservations >= 5
    }

    private func readWithRetries(_ page: Int) throws -> Outcome {
        if noConcurrentWriter() {
            let first = try attempt(page, try entry(page, fresh: false))
            if case .failure = first {} else { return first }
            // The cached entry may be older than the data: one more look costs nothing where nobody writes.
            return try attempt(page, try entry(page, fresh: true))
        }
        let begin = SystemCalls.monotonicNanoseconds()
        var last: PageEntry?
        var attempts = 0
        while true {
            let e = try entry(page, fresh: attempts > 0)
            let outcome = try attempt(page, e)
            attempts += 1
            switch outcome {
            case .content, .zeros, .failure(.outOfBounds), .failure(.neverWritten):
                if attempts > 1 { return outcome }
                if case .failure = outcome {} else { return outcome }
            default: break
            }
            if attempts > 1 {
                let seconds = Int((SystemCalls.monotonicNanoseconds() - begin) / 1_000_000_000)
                if seconds > 5 { return .failure(.unstable(seconds: seconds)) }
                sched_yield()
                if noConcurrentWriter() { return outcome }
            }
            let changes = last != e
            last = e
            if attempts >= 20 || (attempts >= 6 && !changes) { return outcome }
        }
    }

    // MARK: Writing

    /// Changes plain bytes in memory; `flush` brings them to the file.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
        guard !bytes.isEmpty else { return }
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        let end = offset + bytes.count
        precondition(end <= pageCountMax << 12, "a write past the reserved span; grow the mapping first")
        for page in (offset >> 12)...((end - 1) >> 12) {
            let position = page << 12
            if offset > position || end < position + PageGeometry.pageByteCount {
                try loadLocked(page, forWriting: true)
                if !dirty.contains(page) { loadedForWriting.insert(page) }
            }
            dirty.insert(page)
        }
        (base + offset).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    }

    public var hasUnflushedPages: Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return !dirty.isEmpty
    }

    /// Takes over what waits to be flushed in pages that reach less far. These are not in use yet.
    func adoptUnflushedPages(of other: EncryptedPages) {
        pthread_mutex_lock(other.lock)
        defer { pthread_mutex_unlock(other.lock) }
        for page in other.dirty {
            (base + (page << 12)).copyMemory(from: other.base + (page << 12), byteCount: PageGeometry.pageByteCount)
            if page < other.seals.count { remember(page, other.seals[page]) }
            dirty.insert(page)
            if other.loadedForWriting.contains(page) { loadedForWriting.insert(page) }
            other.marks[page] = 0
        }
        other.dirty.removeAll()
        other.loadedForWriting.removeAll()
    }

    /// Encrypts and writes the changed pages, ascending; entry, then data, back to back. Sync the file before the next flush.
    public func flush() throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for page in dirty.sorted() {
            try writePage(page)
            dirty.remove(page)
            loadedForWriting.remove(page)
        }
    }

    /// Drops changes that were not flushed: the pages are read again when they are next touched.
    public func discard() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for page in dirty { marks[page] = 0 }
        dirty.removeAll(keepingCapacity: true)
        loadedForWriting.removeAll(keepingCapacity: true)
    }

    /// As `flush`; the memory of the written pages goes back to the system, and they are decrypted again when they are next touched.
    func flushAndGiveBackMemory() throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        let pages = dirty.sorted()
        for page in pages {
            try writePage(page)
            dirty.remove(page)
            loadedForWriting.remove(page)
        }
        guard let first = pages.first, let last = pages.last else { return }
        for page in first...last { marks[page] = 0 }
        SystemCalls.discard(base + (first << 12), length: (last + 1 - first) << 12)
    }

    private func writePage(_ page: Int) throws {
        let position = page << 12
        // Another process may have advanced the counter: refresh the entry from the file, never reuse a counter.
        var e = PageEntry()
        try withUnsafeTemporaryAllocation(byteCount: PageGeometry.entryByteCount, alignment: 8) { buffer in
            let n = try SystemCalls.read(descriptor, into: buffer, at: PageGeometry.entryPosition(page: page), path: path)
            if n == PageGeometry.entryByteCount { e = PageEntry(buffer.baseAddress!) }
        }
        // The data in the file may be that of the previous seal (a torn write): that one then counts as current. Where the whole page is
        // written anew the seal that we remember may be older than what others wrote since, and says nothing.
        if loadedForWriting.contains(page), e.current.iv != 0, page < seals.count, seals[page].iv != 0, seals[page] == e.previous, seals[page] != e.current { e.current = e.previous }
        e.previous = e.current
        repeat {
            e.current.iv = PageEntry.counter(after: e.current.iv)
            try cipher.encrypt(base + position, into: sealed, iv: e.current.iv, position: position)
            e.current = try cipher.seal(sealed, iv: e.current.iv)
        } while e.current.hasSameTag(as: e.previous)

        markers?.beginPageWrite(position: position)
        defer { markers?.endPageWrite() }
        try withUnsafeTemporaryAllocation(byteCount: PageGeometry.entryByteCount, alignment: 8) { buffer in
            e.store(to: buffer.baseAddress!)
            try SystemCalls.write(descriptor, UnsafeRawBufferPointer(buffer), at: PageGeometry.entryPosition(page: page), path: path)
        }
        try SystemCalls.write(descriptor, UnsafeRawBufferPointer(start: sealed, count: PageGeometry.pageByteCount), at: PageGeometry.filePosition(position), path: path)
        remember(page, e.current)
        let block = page / PageGeometry.pagesPerBlock
        if blocks[block] != nil {
            blocks[block]!.withUnsafeMutableBytes { e.store(to: $0.baseAddress! + page % PageGeometry.pagesPerBlock * PageGeometry.entryByteCount) }
        }
        setMark(page, generation.load(ordering: .relaxed))
    }
}
