import Dispatch
import Glibc
import SystemCalls

/// Bringing changed pages to the file (file-format-3 8.4).
///
/// A page is encrypted once for all that was changed in it. Its entry is written first, then its data, back to back; where nobody
/// else can read the file, those of a whole block: first the entries, then the data, in as few calls as there are runs. The first
/// page of a block lies behind its metadata and goes with it in one call: so does the header of the file.
///
/// Crash argument: entry first, then data; a reader that finds the new entry with the old data uses the previous seal of the
/// entry. A page is written at most once between two syncs (`needsSync`), so the previous seal always describes what is durable.
/// All other entries of a metadata page that is written as a whole have the bytes that they had.
extension EncryptedPages {
    /// Changes plain bytes in memory; `flush` brings them to the file.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        let end = offset + bytes.count
        precondition(end <= pageCountMax << 12, "a write past the reserved span; grow the mapping first")
        for page in (offset >> 12)...((end - 1) >> 12) where !states[page].contains(.isDirty) {
            let position = page << 12
            if offset > position || end < position + PageGeometry.pageByteCount {
                try loadLocked(page, forWriting: true)
                states[page].insert(.wasLoaded)
            } else if states[page].contains(.isUncertain), (try? loadLocked(page, forWriting: true)) != nil {
                // A second failure must not leave an entry of which neither seal is that of the data: what a page holds whose
                // last write failed is looked at, though it be overwritten whole. Where that write was torn there is nothing
                // left to look at, and nothing that is needed.
                states[page].insert(.wasLoaded)
            }
            markDirty(page)
        }
        (base + offset).copyMemory(from: source, byteCount: bytes.count)
    }

    private func markDirty(_ page: Int) {
        if states[page].contains(.isDirty) { return }
        states[page].insert(.isDirty)
        dirtyPages.append(page)
    }

    /// Pages were written to that are in the memory only; a flush is due. May be asked by any thread.
    public var hasUnflushedPages: Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return !dirtyPages.isEmpty
    }

    /// True where a page waits to be written that was written since the last sync: the next flush must come after another one.
    var needsSync: Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for i in 0..<dirtyPages.count where states[dirtyPages[i]].contains(.isUnsynced) { return true }
        return false
    }

    var hasUnsyncedPages: Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return !unsyncedPages.isEmpty
    }

    /// Everything written so far is durable.
    func didSync() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for i in 0..<unsyncedPages.count { states[unsyncedPages[i]].remove(.isUnsynced) }
        unsyncedPages.removeAll()
    }

    /// Takes over what waits to be flushed in pages that reach less far. These are not in use yet.
    func adoptUnflushedPages(of other: EncryptedPages) {
        pthread_mutex_lock(other.lock)
        defer { pthread_mutex_unlock(other.lock) }
        for i in 0..<other.dirtyPages.count {
            let page = other.dirtyPages[i]
            (base + (page << 12)).copyMemory(from: other.base + (page << 12), byteCount: PageGeometry.pageByteCount)
            if page < other.seals.count { remember(page, other.seals[page]) }
            states[page] = other.states[page].intersection([.isDirty, .wasLoaded, .isUncertain])
            dirtyPages.append(page)
            other.states[page].subtract([.isDirty, .wasLoaded])
            other.drop(page)
        }
        other.dirtyPages.removeAll()
    }

    /// Encrypts and writes the changed pages, ascending. Sync the file before the next flush of the same pages (`needsSync`).
    ///
    /// - Parameter alone: nobody else can read the file meanwhile.
    public func flush(alone: Bool = false) throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        try flushLocked(alone)
    }

    private func flushLocked(_ alone: Bool) throws {
        if dirtyPages.isEmpty { return }
        dirtyPages.sortAscending()
        // Another process may have advanced the counters: they are refreshed from the file, and never used again.
        let isUndisturbed = isUndisturbed
        if !isUndisturbed { validCounter = nil }
        var done = 0
        defer { dirtyPages.removeFirst(done) }
        while done < dirtyPages.count {
            let block = dirtyPages[done] / PageGeometry.pagesPerBlock
            var end = done + 1
            if alone || markers == nil {
                while end < dirtyPages.count, dirtyPages[end] / PageGeometry.pagesPerBlock == block { end += 1 }
            }
            do { try writePages(dirtyPages.base + done, end - done, block, fresh: !isUndisturbed) } catch {
                validCounter = nil
                for i in done..<end { recall(dirtyPages[i]) }
                throw error
            }
            done = end
        }
    }

    /// A write failed on the way: finds out what the file holds of the page, its old content or the new one, for whoever writes
    /// it next.
    private func recall(_ page: Int) {
        let block = page / PageGeometry.pagesPerBlock
        states[page].insert(.isUncertain)
        let buffer = UnsafeMutableRawBufferPointer(start: sealed(0), count: PageGeometry.pageByteCount)
        guard let entries = try? metadata(block, fresh: true),
            let count = try? SystemCalls.read(descriptor, into: buffer, at: PageGeometry.filePosition(page << 12), path: path),
            count == buffer.count,
            let tag = try? cipher.seal(sealed(0), iv: 0)
        else {
            knownMetadata.forget(block)
            return
        }
        let entry = PageEntry(entries + page % PageGeometry.pagesPerBlock * PageGeometry.entryByteCount)
        for seal in [entry.current, entry.previous] where seal.iv != 0 && seal.hasSameTag(as: tag) {
            remember(page, seal)
            // As long as the page waits to be written again.
            states[page].insert(.wasLoaded)
            return
        }
    }

    /// Drops changes that were not flushed: the pages are read again when they are next touched.
    public func discard() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        for i in 0..<dirtyPages.count {
            drop(dirtyPages[i])
            states[dirtyPages[i]].subtract([.isDirty, .wasLoaded])
        }
        dirtyPages.removeAll()
    }

    /// As `flush`; the memory of the written pages goes back to the system, and they are decrypted again when they are next
    /// touched.
    func flushAndGiveBackMemory(alone: Bool = false) throws {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        var first = Int.max, last = 0
        for i in 0..<dirtyPages.count {
            first = min(first, dirtyPages[i])
            last = max(last, dirtyPages[i])
        }
        try flushLocked(alone)
        if first > last { return }
        for page in first...last { drop(page) }
        SystemCalls.discard(base + (first << 12), length: (last + 1 - first) << 12)
    }

    /// Writes some pages of a block, ascending: entries, then data.
    private func writePages(_ pages: UnsafePointer<Int>, _ count: Int, _ block: Int, fresh: Bool) throws {
        let entries = try metadata(block, fresh: fresh)
        makeRoom(count)
        let newEntries = stage
        newEntries.copyMemory(from: entries, byteCount: PageGeometry.pageByteCount)
        try encryptPages(pages, count, entries, to: newEntries)
        markers?.beginPageWrite(position: pages[0] << 12)
        do {
            defer { markers?.endPageWrite() }
            try writeStage(pages, count, block)
        }
        validCounter = validCounter.map { $0 &+ 2 }
        entries.copyMemory(from: newEntries, byteCount: PageGeometry.pageByteCount)
        let present = generation
        for i in 0..<count {
            let page = pages[i]
            remember(page, PageEntry(entries + page % PageGeometry.pagesPerBlock * PageGeometry.entryByteCount).current)
            setMark(page, present)
            states[page].subtract([.isDirty, .wasLoaded, .isUncertain])
            if !states[page].contains(.isUnsynced) {
                states[page].insert(.isUnsynced)
                unsyncedPages.append(page)
            }
        }
        writtenPageCount += count
    }

    private func makeRoom(_ count: Int) {
        if count <= stagedPageCountMax { return }
        stagedPageCountMax = min(max(count, 4 * stagedPageCountMax), PageGeometry.pagesPerBlock)
        stage.deallocate()
        stage = .allocate(byteCount: (1 + stagedPageCountMax) * PageGeometry.pageByteCount, alignment: 4096)
    }

    /// Where the `i`th page of ciphertext goes.
    private func sealed(_ i: Int) -> UnsafeMutableRawPointer { stage + (1 + i) * PageGeometry.pageByteCount }

    /// Sendable: each half has its cipher, its pages of the stage, its entries and its result; what both read nobody changes
    /// meanwhile.
    private struct Halves: @unchecked Sendable {
        let encrypt: (Int) -> Void
    }

    /// So many pages of a block are shared with another thread: waking it costs as much as encrypting two or three.
    private static let sharedPageCountMin = 16

    /// Encrypts some pages of a block to the stage, and their entries; many of them on two threads.
    private func encryptPages(
        _ pages: UnsafePointer<Int>, _ count: Int, _ entries: UnsafeRawPointer, to newEntries: UnsafeMutableRawPointer
    ) throws {
        func encrypt(_ range: Range<Int>, _ cipher: PageCipher) throws {
            for i in range {
                let offset = pages[i] % PageGeometry.pagesPerBlock * PageGeometry.entryByteCount
                let old = PageEntry(entries + offset)
                try self.encrypt(pages[i], old, to: sealed(i), cipher).store(to: newEntries + offset)
            }
        }
        let own = cipher
        guard count >= EncryptedPages.sharedPageCountMin, let other = helpersCipher ?? own.twin() else {
            return try encrypt(0..<count, own)
        }
        helpersCipher = other
        var first: Result<Void, any Error> = .success(()), second = first
        let halves = Halves { half in
            if half == 0 {
                first = Result { try encrypt(0..<count / 2, own) }
            } else {
                second = Result { try encrypt(count / 2..<count, other) }
            }
        }
        // Where no other processor is free this thread does both.
        DispatchQueue.concurrentPerform(iterations: 2) { halves.encrypt($0) }
        try first.get()
        try second.get()
    }

    /// Encrypts a page; the result is its new entry.
    private func encrypt(_ page: Int, _ old: PageEntry, to target: UnsafeMutableRawPointer, _ cipher: PageCipher) throws
        -> PageEntry
    {
        let position = page << 12
        var e = old
        // The data in the file may be that of the previous seal (a torn write): that one then counts as current. Where the whole
        // page is written anew the seal that we remember may be older than what others wrote since, and says nothing.
        if states[page].contains(.wasLoaded), e.current.iv != 0, page < seals.count, seals[page].iv != 0,
            seals[page] == e.previous,
            seals[page] != e.current
        {
            e.current = e.previous
        }
        e.previous = e.current
        repeat {
            e.current.iv = PageEntry.counter(after: e.current.iv)
            try cipher.encrypt(base + position, into: target, iv: e.current.iv, position: position)
            e.current = try cipher.seal(target, iv: e.current.iv)
        } while e.current.hasSameTag(as: e.previous)
        return e
    }

    private func writeStage(_ pages: UnsafePointer<Int>, _ count: Int, _ block: Int) throws {
        let start = block * PageGeometry.blockByteCount
        let first = pages[0] % PageGeometry.pagesPerBlock, last = pages[count - 1] % PageGeometry.pagesPerBlock
        func write(_ source: UnsafeMutableRawPointer, _ byteCount: Int, _ offset: Int) throws {
            try SystemCalls.write(
                descriptor, UnsafeRawBufferPointer(start: source, count: byteCount), at: start + offset, path: path)
        }
        if first == 0 && last < count {
            // One run from the beginning of the block: it lies behind the metadata.
            return try write(stage, (1 + count) * PageGeometry.pageByteCount, 0)
        }
        try write(
            stage + first * PageGeometry.entryByteCount, (last - first + 1) * PageGeometry.entryByteCount,
            first * PageGeometry.entryByteCount)
        var i = 0
        while i < count {
            var end = i + 1
            while end < count, pages[end] == pages[end - 1] + 1 { end += 1 }
            try write(
                sealed(i), (end - i) * PageGeometry.pageByteCount,
                (1 + pages[i] % PageGeometry.pagesPerBlock) * PageGeometry.pageByteCount)
            i = end
        }
    }
}
