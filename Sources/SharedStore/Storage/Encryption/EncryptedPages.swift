import CShims
import Glibc
import SystemCalls

/// The plain content of an encrypted file in a reserved span of memory: pages are decrypted on first touch, checked again
/// after a change of version, and written back with their metadata entry adjacent (`EncryptedPages+Writing.swift`).
///
/// Invariants: a page whose mark equals the present generation holds the plaintext of the seal remembered for it; bytes of
/// bound versions never change, so a page that is decrypted again under a reader gets the same bytes where it looks. A
/// generation lasts as long as nobody writes a page, which the session's counter tells, or only we do.
///
/// Threads: `prepare` may be called from any thread; writing only from the holder of the write lock.
public final class EncryptedPages: PageSource, @unchecked Sendable {
    // Sendable: the marks are atomics, everything else is used under `lock`.
    let descriptor: Int32
    let path: String
    let base: UnsafeMutableRawPointer
    let pageCountMax: Int
    /// Bytes of the span, whole pages.
    var byteCount: Int { pageCountMax << 12 }
    let cipher: PageCipher
    /// That of the thread which helps with many pages; made when it is first needed.
    var helpersCipher: PageCipher?
    let lock: UnsafeMutablePointer<pthread_mutex_t>
    /// One mark a page: the generation in which the page was found valid. Zero pages of an anonymous mapping until used.
    private let marks: UnsafeMutablePointer<UInt32>
    /// One byte a page: what waits to be done with it. Zero pages likewise.
    let states: UnsafeMutablePointer<PageState>
    /// Room for one decrypted page, for the marks, and for the states.
    private let mapped: UnsafeMutableRawPointer
    private let mappedByteCount: Int
    private let generationWord: UnsafeMutablePointer<UInt32>
    /// The present generation.
    var generation: UInt32 { CShims_load_acquire_u32(generationWord) }
    /// What the plaintext in the span was decrypted from, by page.
    var seals: [PageEntry.Seal] = []
    let knownMetadata = PageMetadata()
    /// Pages that were changed and not flushed, in the order in which they were first touched.
    let dirtyPages = RawList<Int>()
    /// Pages that were written since the last sync.
    let unsyncedPages = RawList<Int>()
    /// Of one metadata page, and behind it, ciphertext: as they lie in the file.
    var stage: UnsafeMutableRawPointer
    var stagedPageCountMax = 2
    /// One decrypted page, before it is known to be good.
    private let scratch: UnsafeMutableRawPointer
    let markers: (any PageWriteMarkers)?
    /// The session's counter when this generation began, moved on by what we have written ourselves; nil where it says nothing.
    var validCounter: UInt64?
    private var lastWriteCounter: UInt64 = 0
    private var quietObservations = 0
    private let ownsDescriptor: Bool
    private let ownsMemory: Bool
    /// Pages encrypted and written, for those who measure.
    package internal(set) var writtenPageCount = 0

    /// - Parameters:
    ///   - base: writable anonymous memory of `byteCount` bytes, address of plain byte 0; it must outlive this object.
    ///   - markers: those of the session; nil where nobody else has the file open.
    ///   - ownsDescriptor, ownsMemory: these go with this object, where it could be made.
    public init(
        descriptor: Int32, path: String, key: EncryptionKey, base: UnsafeMutableRawPointer, byteCount: Int,
        markers: (any PageWriteMarkers)? = nil,
        ownsDescriptor: Bool = false, ownsMemory: Bool = false
    ) throws {
        self.ownsDescriptor = ownsDescriptor
        self.ownsMemory = ownsMemory
        self.descriptor = descriptor
        self.path = path
        self.base = base
        let pageCount = byteCount / PageGeometry.pageByteCount
        pageCountMax = pageCount
        cipher = try PageCipher(key: key)
        self.markers = markers
        // Plaintext, too, is left out of core dumps.
        SystemCalls.leaveOutOfDumps(base, length: byteCount)
        mappedByteCount = (PageGeometry.pageByteCount + 5 * pageCount + 8 + 4095) & ~4095
        mapped = try SystemCalls.map(
            length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            path: path)
        SystemCalls.leaveOutOfDumps(mapped, length: mappedByteCount)
        scratch = mapped
        generationWord = (mapped + PageGeometry.pageByteCount).assumingMemoryBound(to: UInt32.self)
        generationWord.pointee = 1
        marks = generationWord + 2
        states = UnsafeMutableRawPointer(marks + pageCount).assumingMemoryBound(to: PageState.self)
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        stage = .allocate(byteCount: (1 + stagedPageCountMax) * PageGeometry.pageByteCount, alignment: 4096)
        super.init(marks: PageMarks(marks: marks, generation: generationWord, count: pageCount))
    }

    deinit {
        if ownsDescriptor { SystemCalls.close(descriptor) }
        if ownsMemory { SystemCalls.unmap(base, length: byteCount) }
        stage.deallocate()
        knownMetadata.free()
        dirtyPages.free()
        unsyncedPages.free()
        pthread_mutex_destroy(lock)
        lock.deallocate()
        SystemCalls.unmap(mapped, length: mappedByteCount)
    }

    /// Bytes of plain content in the file as it is now.
    public func plainSize() throws -> Int {
        PageGeometry.plainSize(fileSize: try SystemCalls.status(descriptor, path: path).size)
    }

    // MARK: Generations

    public override func prepare(_ start: Int, _ end: Int) throws {
        let present = generation
        var page = start >> 12
        let last = (end - 1) >> 12
        while page <= last {
            if page >= pageCountMax { throw DecryptionError(path: path, position: page << 12, reason: .outOfBounds) }
            if CShims_load_acquire_u32(marks + page) != present { try load(page) }
            page += 1
        }
    }

    // A mark is written under the lock, after the page's bytes, and read by anybody.
    func setMark(_ page: Int, _ value: UInt32) { CShims_store_release_u32(marks + page, value) }

    /// What the span holds of the page is not to be used any more.
    func drop(_ page: Int) { setMark(page, 0) }

    /// The pages of this generation are as they are in the file: nobody has written one since it began, but we.
    ///
    /// Crash argument: whoever dies in a write leaves the marker, or has moved the counter.
    var isUndisturbed: Bool {
        guard let markers, let validCounter, markers.areInUse else { return false }
        return markers.writeCounter == validCounter && markers.writingPage == 0
    }

    /// A new version was bound: every page is possibly stale, if somebody wrote one, and is compared with its entry at the next
    /// touch.
    public override func invalidate() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if isUndisturbed { return }
        // The counter is taken first: a write that is under way, or begins now, moves it once more.
        validCounter = markers.flatMap { markers in
            let counter = markers.writeCounter
            return markers.areInUse && markers.writingPage == 0 ? counter : nil
        }
        let next = generation &+ 1
        CShims_store_release_u32(generationWord, next == 0 ? 1 : next)
    }

    public override func giveBack(_ start: Int, _ end: Int) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        var page = start >> 12
        let limit = min((end + PageGeometry.pageByteCount - 1) >> 12, pageCountMax)
        while page < limit {
            let first = page
            while page < limit, !states[page].contains(.isDirty) {
                drop(page)
                if page < seals.count { seals[page] = PageEntry.Seal() }
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
        let isUndisturbed = isUndisturbed
        for page in (position >> 12)...((position + count - 1) >> 12) where !states[page].contains(.isDirty) {
            if !isUndisturbed {
                knownMetadata.forget(page / PageGeometry.pagesPerBlock)
                let present = generation
                if marks[page] == present { setMark(page, present == 1 ? UInt32.max : present - 1) }
            }
            try loadLocked(page, forWriting: false)
        }
        target.copyMemory(from: base + position, byteCount: count)
    }

    // MARK: Loading

    private func load(_ page: Int) throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        try loadLocked(page, forWriting: false)
    }

    func loadLocked(_ page: Int, forWriting: Bool) throws {
        let present = generation
        if marks[page] == present || states[page].contains(.isDirty) { return }
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
            if page < seals.count, seals[page].iv != 0 {
                copyChanges(to: base + position)
            } else {
                (base + position).copyMemory(from: scratch, byteCount: PageGeometry.pageByteCount)
            }
            remember(page, seal)
        case .zeros where !forWriting:
            // A page that was cut off and came back is free space until it is written; where content is looked for, it was lost.
            throw DecryptionError(path: path, position: position, reason: .authenticationFailed)
        case .zeros:
            memset(base + position, 0, PageGeometry.pageByteCount)
            remember(page, PageEntry.Seal())
        case .failure(let reason):
            guard forWriting, reason.isOfAPageWithoutContent else {
                throw DecryptionError(path: path, position: position, reason: reason)
            }
            memset(base + position, 0, PageGeometry.pageByteCount)
            remember(page, PageEntry.Seal())
        }
        setMark(page, present)
    }

    /// Brings a page that was decrypted before to the content of `scratch`. Others may be reading in it: what belongs to their
    /// versions is the same in both, and is not written.
    private func copyChanges(to page: UnsafeMutableRawPointer) {
        for offset in stride(from: 0, to: PageGeometry.pageByteCount, by: 8) {
            let word = scratch.load(fromByteOffset: offset, as: UInt64.self)
            if page.load(fromByteOffset: offset, as: UInt64.self) != word {
                page.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
            }
        }
    }

    func remember(_ page: Int, _ seal: PageEntry.Seal) {
        if seals.count <= page { seals.append(contentsOf: repeatElement(PageEntry.Seal(), count: page + 1 - seals.count)) }
        seals[page] = seal
    }

    private enum Outcome {
        case content(PageEntry.Seal)
        case zeros
        case failure(DecryptionError.Reason)
    }

    /// The metadata of a block, from the page read in this generation, or read anew.
    func metadata(_ block: Int, fresh: Bool) throws -> UnsafeMutableRawPointer {
        let present = generation
        if !fresh, let known = knownMetadata.known(block, present) { return known }
        let bytes = knownMetadata.room(block, present)
        do {
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: PageGeometry.pageByteCount)
            let count = try SystemCalls.read(descriptor, into: buffer, at: block * PageGeometry.blockByteCount, path: path)
            memset(bytes + count, 0, PageGeometry.pageByteCount - count)
        } catch {
            knownMetadata.forget(block)
            throw error
        }
        return bytes
    }

    private func entry(_ page: Int, fresh: Bool) throws -> PageEntry {
        PageEntry(
            try metadata(page / PageGeometry.pagesPerBlock, fresh: fresh) + page % PageGeometry.pagesPerBlock
                * PageGeometry.entryByteCount)
    }

    /// One attempt by the table of file-format-3 8.5; the plaintext is left in `scratch`.
    private func attempt(_ page: Int, _ e: PageEntry) throws -> Outcome {
        if e.current.iv == 0 { return .failure(e.current == PageEntry.Seal() ? .neverWritten : .countersDisagree) }
        let position = page << 12, sealed = stage
        let buffer = UnsafeMutableRawBufferPointer(start: sealed, count: PageGeometry.pageByteCount)
        let n = try SystemCalls.read(descriptor, into: buffer, at: PageGeometry.filePosition(position), path: path)
        if n < PageGeometry.pageByteCount { return .failure(.outOfBounds) }
        let tag = try cipher.seal(sealed, iv: 0)
        let seal: PageEntry.Seal
        if tag.hasSameTag(as: e.current) {
            // No tag covers the counters, but every writer lets the latest follow the one before (file-format-3 8.4, 8.5): a
            // damaged one, or an entry that was read while it was written, would garble the first bytes of the page.
            if try !follows(e, position) { return .failure(.countersDisagree) }
            seal = e.current
        } else if e.previous.iv == 0 {
            // Whoever writes takes a page whose first write was interrupted for one without content. So it must look like one:
            // where no sector is missing, the page is damaged, and may have held what is still in use.
            return isZero(sealed) ? .zeros : .failure(lacksSectors(sealed) ? .interruptedFirstWrite : .authenticationFailed)
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

    /// Some sectors were never written: ciphertext has no 512 zeros in a row.
    private func lacksSectors(_ p: UnsafeMutableRawPointer) -> Bool {
        stride(from: 0, to: PageGeometry.pageByteCount, by: 512).contains {
            (p + $0).load(as: UInt64.self) == 0 && memcmp(p + $0, p + $0 + 8, 504) == 0
        }
    }

    /// The counter of the latest seal is the one after that of the seal before, or the one after that: a counter is left out
    /// where it would have made the ciphertext of before once more, which happens since it is XORed to the first four bytes of
    /// the page. The first one of all is 1.
    private func follows(_ e: PageEntry, _ position: Int) throws -> Bool {
        if e.previous.iv == 0 { return e.current.iv == 1 }
        let next = PageEntry.counter(after: e.previous.iv)
        if e.current.iv == next { return true }
        if e.current.iv != PageEntry.counter(after: next) { return false }
        let again = UnsafeMutableRawPointer.allocate(byteCount: PageGeometry.pageByteCount, alignment: 16)  // of ciphertext
        defer { again.deallocate() }
        try cipher.decrypt(stage, into: scratch, iv: e.current.iv, position: position)
        try cipher.encrypt(scratch, into: again, iv: next, position: position)
        return try cipher.seal(again, iv: next).hasSameTag(as: e.previous)
    }

    /// True only from the fifth consecutive quiet look on (file-format-3 section 9).
    private func noConcurrentWriter() -> Bool {
        guard let markers else { return true }
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
            let second = try attempt(page, try entry(page, fresh: true))
            guard case .failure = second, !noConcurrentWriter() else { return second }
            // Somebody has begun to write: there is more to be tried.
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
            if attempts < 6 || (attempts < 20 && changes) { continue }
            // A writer that does not run, on a busy machine, may have come half through this very page: it is waited for.
            guard markers?.writingPage == UInt64(page << 12) + 1 else { return outcome }
            usleep(100)
        }
    }
}

/// What waits to be done with a page in memory.
struct PageState: OptionSet, BitwiseCopyable {
    var rawValue: UInt8
    /// It was changed and must be encrypted.
    static let isDirty = PageState(rawValue: 1)
    /// A dirty page of which not all was overwritten: what the file holds of it was looked at under the write lock.
    static let wasLoaded = PageState(rawValue: 2)
    /// It was written since the last sync.
    static let isUnsynced = PageState(rawValue: 4)
    /// Our last attempt to write it failed: its entry may be ahead of its data.
    static let isUncertain = PageState(rawValue: 8)
}
