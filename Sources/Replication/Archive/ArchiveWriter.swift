import SharedStore
import SystemCalls

/// Puts versions into an archive, for the holder of the lease.
///
/// Order, at every step: what something refers to is there before it is: an image before the manifest names it, merges and the
/// index after the steps they tell of; only what the manifest has given up is removed. Who dies in between leaves an archive from
/// which every version whose step was put can be restored; what lies there without being named is put again under the same name.
///
/// Memory: one record (32 MiB) and its compressed form; when steps are merged, their bytes.
final class ArchiveWriter {
    let place: any ArchivePlace
    let options: Archive.Options
    let lease: ArchiveLease
    let cipher: ArchiveCipher?
    let compressor = Compressor()
    var manifest: ArchiveManifest
    private var manifestTag: String
    /// The newest archived version; nil in an empty archive.
    private(set) var newest: ArchiveEntry?
    /// What is known of the versions of the newest's index chunk.
    private var chunk: [ArchiveEntry] = []
    private(set) var count: Int
    /// Images that were put by this object.
    private(set) var imageCount = 0
    var changedByteCount: Int
    var storedByteCount: Int
    /// Plain bytes that a restore of the newest version reads besides the image, by the last sequence and level of each piece.
    private var path: [(sequence: UInt64, level: Int, byteCount: Int)] = []
    /// Objects that were put a short time ago, and are not merged yet.
    private var recent = RecentObjects(byteCountMax: ArchiveWriter.recentByteCountMax)
    /// The ranges of the newest step where it is not the last of its four.
    private var newestRanges: [Range<Int>] = []
    var tracked: TrackedHashes?
    /// The version whose hashes lie in the archive.
    private var hashedSequence: UInt64?
    /// Where what is there is not whole, as in a copy: nothing is built upon it, and what is archived next begins anew behind it.
    private var beginsAfter: UInt64?
    var beginsAnew: Bool { beginsAfter != nil }
    private var attempt: (sequence: UInt64, snapshot: Snapshot, bytes: [UInt8], chain: Digest)?

    static let recordByteCountMax = 32 << 20
    /// Steps are merged up to so many bytes; larger ones lose nothing by being read singly.
    static let mergeByteCountMax = 64 << 20
    private static let recentByteCountMax = 16 << 20
    static let indexInterval: UInt64 = 16

    /// Opens an archive whose lease is held, or makes one.
    init(_ place: any ArchivePlace, source: String, lease: ArchiveLease, options: Archive.Options) throws {
        self.place = place
        self.lease = lease
        self.options = options
        try place.removeLeftovers()
        let key = options.key
        if let found = try place.getAll(ArchiveNames.manifest, limit: ArchiveManifest.byteCountMax) {
            manifest = try ArchiveManifest(text: String(decoding: found.bytes, as: UTF8.self), place: place.description)
            manifestTag = found.tag
            if key == nil, manifest.keyCheck != nil { throw ArchiveError.plainSource(place: place.description) }
            cipher = try Archive.cipher(manifest, key, place)
            if key != nil, cipher == nil { throw ArchiveError.notEncrypted(place: place.description) }
            if manifest.source != source {
                guard options.force else {
                    throw ArchiveError.otherSource(place: place.description, source: source, archiveOf: manifest.source)
                }
                manifest.source = source
            }
        } else {
            let identifier =
                "\(String(UInt64.random(in: 0...UInt64.max), radix: 16))-\(String(UInt64.random(in: 0...UInt64.max), radix: 16))"
            cipher = key.map { ArchiveCipher($0, archive: identifier) }
            manifest = ArchiveManifest(identifier: identifier, source: source, keyCheck: cipher?.check)
            try (place as? FolderPlace)?.protect(like: source)
            manifestTag = try place.put(ArchiveNames.manifest, Array(manifest.text.utf8), .absent)
        }
        count = manifest.count
        changedByteCount = manifest.changedByteCount
        storedByteCount = manifest.storedByteCount
        let reader = ArchiveReader(place, manifest, cipher)
        if let indexed = manifest.indexed {
            chunk = try reader.entriesIfThere(ofChunk: ArchiveNames.chunk(of: indexed)).filter { $0.sequence <= indexed }
            // An index that is older than the manifest: what it lacks was counted.
            if let last = chunk.last { count = max(chunk.count, count - Int(clamping: indexed - last.sequence)) }
        }
        newest = chunk.last
        for entry in try reader.unindexed(after: newest) { adopt(entry) }
        if try !isWhole(reader) { try setAside(reader) }
        if let newest, let base = manifest.base(of: newest.sequence) {
            // Merges are not counted here: the next image comes a little earlier than it would have.
            for entry in try reader.entries(from: base.sequence + 1, through: newest.sequence) {
                path.append((entry.sequence, 0, entry.plainByteCount))
            }
        }
        if let newest, beginsAfter == nil, let found = try place.getAll(ArchiveNames.hashes, limit: 1 << 30),
            let record = try? ArchiveObjectReader(place, ArchiveNames.hashes, cipher: cipher, stored: found.bytes),
            record.head.sequence == newest.sequence, let hashes = BlockHashes(encoded: (try? record.record()) ?? []),
            hashes.snapshot == newest.snapshot
        {
            tracked = TrackedHashes(hashes)
            hashedSequence = newest.sequence
        }
    }

    /// Whether the newest version can be reached and nothing lies where the next ones are to be put.
    private func isWhole(_ reader: ArchiveReader) throws -> Bool {
        guard let newest else {
            // The first image may be what a killed predecessor has put; what follows from it is more than that.
            return try manifest.indexed == nil && place.get(ArchiveNames.step(0, 1), from: 0, count: 1) == nil
        }
        // One listing at the start: an image behind the newest version is of something that the index does not tell of.
        let highest = ArchiveInventory(try place.list("images/")).highest ?? 0
        return try !reader.isBlocked && highest <= newest.sequence && reader.reaches(newest)
    }

    /// Lets what is there be, without building upon it.
    private func setAside(_ reader: ArchiveReader) throws {
        let there = try reader.inventory()
        let floor = there.hasImage(manifest.oldest) ? manifest.oldest : 0
        var images: [ArchiveManifest.Image] = []
        for sequence in there.imageSequences where sequence >= floor {
            if let known = manifest.images.first(where: { $0.sequence == sequence }) {
                images.append(known)
            } else if let read = try place.get(ArchiveNames.image(sequence), from: 0, count: ArchiveObjectHead.byteCount),
                let head = ArchiveObjectHead(read.bytes)
            {
                let before = images.last.map { (ordinal: $0.ordinal, sequence: $0.sequence) } ?? (ordinal: 0, sequence: sequence)
                images.append(
                    .init(
                        sequence: sequence, version: head.this.version, time: head.time, plainByteCount: head.plainByteCount,
                        storedByteCount: read.totalByteCount,
                        ordinal: before.ordinal + Int(clamping: min(sequence - before.sequence, UInt64(count)))))
            }
        }
        manifest.images = images
        if let first = images.first, manifest.oldest < first.sequence || floor == 0 { manifest.oldest = first.sequence }
        manifest.removed = min(manifest.removed, manifest.oldest)
        manifest.leaving.removeAll { $0.sequence > manifest.oldest }
        beginsAfter = max(there.highest ?? 0, newest?.sequence ?? 0, manifest.indexed ?? 0)
        if newest == nil { newest = try reader.newestRestorable() }
        let upTo =
            try reader.newestRestorable().map { "all up to version \($0.snapshot.version) is there" } ?? "nothing is whole there"
        options.onMessage("\(place.description) is a copy that was made while the archive grew: \(upTo); a new image is made")
    }

    private func adopt(_ entry: ArchiveEntry) {
        if let last = chunk.last, ArchiveNames.chunk(of: last.sequence) != ArchiveNames.chunk(of: entry.sequence) { chunk = [] }
        chunk.append(entry)
        newest = entry
        count += 1
        changedByteCount &+= entry.plainByteCount
        storedByteCount &+= entry.storedByteCount
    }

    // MARK: Putting objects

    /// Puts an object that never changes. That it is there already is well where it is the same.
    private func putFinal(_ name: String, _ bytes: [UInt8]) throws {
        do { try place.put(name, bytes, .absent) } catch ArchivePlaceError.conflict {
            // An answer that was lost on the way may have been a yes.
            guard let found = try place.getAll(name, limit: max(bytes.count, 1 << 30)), found.bytes == bytes else {
                throw ArchivePlaceError.conflict(name: name)
            }
        }
    }

    func putManifest() throws {
        do {
            manifestTag = try place.put(ArchiveNames.manifest, Array(manifest.text.utf8), .matches(manifestTag))
        } catch ArchivePlaceError.conflict {
            guard let found = try place.getAll(ArchiveNames.manifest, limit: ArchiveManifest.byteCountMax),
                found.bytes == Array(manifest.text.utf8)
            else {
                throw ArchivePlaceError.conflict(name: ArchiveNames.manifest)
            }
            manifestTag = found.tag
        }
    }

    /// Segments with the bytes of `ranges`, in records.
    ///
    /// - Parameter head: all but lengths and chain; the chain of the first one's parent.
    /// - Returns: the chain of the last one.
    private func segments(
        _ head: SegmentHead, _ ranges: [Range<Int>], _ memory: Memory, prefix: [UInt8]?, name: String,
        _ emit: ([UInt8]) throws -> Void
    ) throws -> Digest {
        var records = ArchiveRecords(name, cipher)
        var chain = head.parentChain
        let pieces = RangeSet.pieces(ranges, limit: Self.recordByteCountMax)
        for (index, piece) in pieces.enumerated() {
            var payload: [UInt8] = []
            payload.reserveCapacity(RangeSet.byteCount(piece))
            for range in piece {
                let bytes = UnsafeRawBufferPointer(
                    start: try memory.bytes(at: range.lowerBound, length: range.count), count: range.count)
                payload.append(contentsOf: bytes)
                if head.flags.contains(.image) { memory.giveBack(range) }
            }
            var part = head
            part.parentChain = chain
            if index < pieces.count - 1 { part.flags.insert(.more) }
            let segment = Segment(head: part, ranges: piece, payload: payload)
            chain = segment.head.chain
            let bytes = try segment.encoded(compressor: compressor, prefix: index == 0 ? prefix.map { (.listsPrefix, $0) } : nil)
            try emit(try records.frame(bytes))
            try options.onPiece(RangeSet.byteCount(piece))
        }
        return chain
    }

    private func segmentHead(_ sequence: UInt64, _ snapshot: Snapshot, _ time: UInt64, history: (type: UInt8, base: UInt64))
        -> SegmentHead
    {
        var head = SegmentHead()
        head.sequence = sequence
        head.this = snapshot
        head.time = time
        head.historyType = history.type
        head.historyBase = history.base
        return head
    }

    // MARK: Images

    /// Puts an image of a version that is held, as the beginning of something new or beside the step that led to it.
    private func putImage(
        _ sequence: UInt64, _ memory: Memory, _ snapshot: Snapshot, _ extents: FreeExtents, time: UInt64, chain: Digest
    ) throws -> (Int, Digest) {
        let name = ArchiveNames.image(sequence)
        let ranges = extents.usedRanges()
        var head = ArchiveObjectHead()
        head.kind = .image
        head.isEncrypted = cipher != nil
        head.sequence = sequence
        head.this = snapshot
        head.time = time
        head.plainByteCount = RangeSet.byteCount(ranges)
        head.chain = chain
        var segment = segmentHead(sequence, snapshot, time, history: (0, 0))
        segment.flags = .image
        let upload = try place.upload(name)
        do {
            var stored = ArchiveObjectHead.byteCount
            try upload.append(head.bytes())
            let own = try segments(segment, ranges, memory, prefix: nil, name: name) {
                try lease.renew()
                try upload.append($0)
                stored += $0.count
            }
            try upload.finish()
            storedByteCount += stored
            imageCount += 1
            return (stored, chain == Digest() ? own : chain)
        } catch {
            upload.abandon()
            throw error
        }
    }

    /// Begins anew with a whole version.
    func appendStart(_ memory: Memory, _ snapshot: Snapshot, _ extents: FreeExtents, time: UInt64) throws {
        if newest != nil { try flush() }
        let alignment = ArchiveNames.startAlignment
        let sequence = (beginsAfter ?? newest?.sequence).map { ($0 / alignment + 1) * alignment } ?? 0
        let before = storedByteCount
        let (stored, chain) = try putImage(sequence, memory, snapshot, extents, time: time, chain: Digest())
        storedByteCount = before
        adopt(
            ArchiveEntry(
                sequence: sequence, snapshot: snapshot, time: time, kind: .start, plainByteCount: extents.usedByteCount,
                storedByteCount: stored, chain: chain))
        manifest.images.append(
            .init(
                sequence: sequence, version: snapshot.version, time: time, plainByteCount: extents.usedByteCount,
                storedByteCount: stored, ordinal: count - 1))
        path = []
        newestRanges = []
        beginsAfter = nil
        tracked = TrackedHashes(try BlockHashes(memory: memory, snapshot: snapshot, extents: extents))
        try putHashes()
        try flush()
    }

    /// Puts an image of the newest version, which is held, so that restoring begins there.
    func appendImage(_ memory: Memory, _ extents: FreeExtents) throws {
        guard let newest else { return }
        let (stored, _) = try putImage(newest.sequence, memory, newest.snapshot, extents, time: newest.time, chain: newest.chain)
        manifest.images.append(
            .init(
                sequence: newest.sequence, version: newest.snapshot.version, time: newest.time,
                plainByteCount: extents.usedByteCount, storedByteCount: stored,
                ordinal: count - 1))
        path = []
        tracked = TrackedHashes(try BlockHashes(memory: memory, snapshot: newest.snapshot, extents: extents))
        try putHashes()
        try flush()
    }

    /// Whether a restore would better begin at a new image.
    func imageIsDue(now: UInt64) -> Bool {
        guard let newest, let last = manifest.images.last, newest.sequence > last.sequence else { return false }
        if newest.sequence % 4 != 0 { return false }
        if now > last.time, now - last.time >= UInt64(clamping: options.snapshotInterval.components.seconds) * 1_000_000_000 {
            return true
        }
        guard newest.sequence % 16 == 0 else { return false }
        let bytes = path.reduce(0) { $0 &+ $1.byteCount }
        if bytes > last.plainByteCount / 2 + Self.pathByteCountMin { return true }
        // What is to be forgotten by number needs an image now and then from which the rest can be had.
        guard let keep = options.keep else { return false }
        return count - 1 - last.ordinal >= max(keep, 16) && bytes > last.plainByteCount / 8
    }

    /// Steps of so few bytes are read in no time.
    private static let pathByteCountMin = 1 << 20

    // MARK: Steps

    /// Puts the step from the newest version to `snapshot`; both are held in the memory given, unless the step was found by
    /// content.
    ///
    /// - Parameters:
    ///   - parent: where the newest version can be read; nil where it is held by nobody.
    ///   - freed: what the newest version has and this one not.
    func appendStep(
        _ ranges: [Range<Int>], _ memory: Memory, _ snapshot: Snapshot, history: (type: UInt8, base: UInt64), time: UInt64,
        parent: Memory?, freed: [Range<Int>],
        hashes: BlockHashes? = nil
    ) throws {
        guard let before = newest else { return }
        let sequence = before.sequence + 1
        let name = ArchiveNames.step(0, sequence)
        if ArchiveNames.chunk(of: before.sequence) != ArchiveNames.chunk(of: sequence) { try flush() }
        var head = ArchiveObjectHead()
        head.kind = parent == nil ? .content : .step
        head.isEncrypted = cipher != nil
        head.parentSequence = before.sequence
        head.sequence = sequence
        head.this = snapshot
        head.time = time
        head.plainByteCount = RangeSet.byteCount(ranges)
        head.parentChain = before.chain
        var segment = segmentHead(sequence, snapshot, time, history: history)
        segment.parent = before.snapshot
        segment.parentChain = before.chain
        let prefix = try parent.flatMap { try self.prefix(sequence, before.snapshot, $0) }
        let chain: Digest
        let stored: Int
        if head.plainByteCount <= Self.mergeByteCountMax {
            let bytes: [UInt8]
            if let attempt, attempt.sequence == sequence, attempt.snapshot == snapshot {
                (bytes, chain) = (attempt.bytes, attempt.chain)
            } else {
                var fresh = head.bytes()
                chain = try segments(segment, ranges, memory, prefix: prefix, name: name) { fresh += $0 }
                bytes = fresh
            }
            // Where putting fails it may have been done all the same: the next try is with the same bytes.
            attempt = (sequence, snapshot, bytes, chain)
            stored = bytes.count
            try putFinal(name, bytes)
            attempt = nil
            recent.remember(name, bytes)
        } else {
            let upload = try place.upload(name)
            var count = ArchiveObjectHead.byteCount
            do {
                try upload.append(head.bytes())
                chain = try segments(segment, ranges, memory, prefix: prefix, name: name) {
                    try lease.renew()
                    try upload.append($0)
                    count += $0.count
                }
                try upload.finish()
            } catch {
                upload.abandon()
                throw error
            }
            stored = count
        }
        adopt(
            ArchiveEntry(
                sequence: sequence, snapshot: snapshot, time: time, kind: parent == nil ? .content : .step,
                plainByteCount: head.plainByteCount,
                storedByteCount: stored, chain: chain))
        path.append((sequence, 0, head.plainByteCount))
        newestRanges = sequence % 4 == 0 ? [] : ranges
        if let hashes { tracked = TrackedHashes(hashes) } else { tracked?.note(ranges, freed: freed) }
    }

    /// The first of each four steps can be read without what lies before it, so that merging needs these four only.
    private func prefix(_ sequence: UInt64, _ parent: Snapshot, _ memory: Memory) throws -> [UInt8]? {
        guard sequence % 4 != 1, !newestRanges.isEmpty else { return nil }
        let reading = ListsPrefix.reading(memory)
        guard let lists = try ListsPrefix.ranges(parent, reading) else { return nil }
        guard FreeExtents.covers(newestRanges, RangeSet.union(lists)) else { return nil }
        return try ListsPrefix.bytes(parent, reading)
    }

    // MARK: Merging

    /// Merges what the newest step completes. What fails here costs restores a few reads, and no version.
    func merge() throws {
        guard let newest else { return }
        for level in 1...ArchiveNames.levelMax where newest.sequence % ArchiveNames.span(level) == 0 {
            guard newest.sequence >= ArchiveNames.span(level), newest.sequence - ArchiveNames.span(level) >= manifest.oldest,
                try merge(level, newest.sequence)
            else { return }
        }
    }

    private func merge(_ level: Int, _ last: UInt64) throws -> Bool {
        let span = ArchiveNames.span(level), part = ArchiveNames.span(level - 1)
        let names = (1...4).map { ArchiveNames.step(level - 1, last - span + $0 * part) }
        guard
            let merged = try SegmentMerge(
                names, place, cipher, compressor, limit: Self.mergeByteCountMax,
                stored: { name in
                    self.recent[name]
                })
        else { return false }
        guard merged.first.parentSequence == last - span, merged.last.sequence == last else { return false }
        let name = ArchiveNames.step(level, last)
        var head = merged.last
        head.kind = .merged
        head.level = level
        head.isEncrypted = cipher != nil
        head.parentSequence = merged.first.parentSequence
        head.parentChain = merged.first.parentChain
        head.chain = merged.chain
        head.plainByteCount = RangeSet.byteCount(merged.ranges)
        var segment = segmentHead(last, merged.last.this, merged.last.time, history: merged.history)
        segment.parent = merged.parent
        segment.parentChain = merged.first.parentChain
        var bytes = head.bytes()
        _ = try segments(segment, merged.ranges, merged.image.memory, prefix: nil, name: name) { bytes += $0 }
        try lease.renew()
        // What a predecessor that died had put has the same content, if perhaps not the same bytes.
        try place.put(name, bytes, .always)
        storedByteCount += bytes.count
        recent.forget(names)
        recent.remember(name, bytes)
        let isWhole =
            path.suffix(4).count == 4 && path.suffix(4).allSatisfy { $0.level == level - 1 && $0.sequence > last - span }
        if isWhole {
            path.removeLast(4)
            path.append((last, level, head.plainByteCount))
        }
        return true
    }

    // MARK: Index, hashes

    /// Puts what is known since the last time, so that readers need to look less.
    func flush() throws {
        guard let last = chunk.last, manifest.indexed != last.sequence || manifest.count != count else { return }
        try lease.renew()
        let name = ArchiveNames.index(ArchiveNames.chunk(of: last.sequence))
        let text = chunk.map { $0.line + "\n" }.joined()
        let bytes = try ArchiveRecords.text(text, name: name, sequence: last.sequence, cipher: cipher)
        try place.put(name, bytes, .always)
        storedByteCount += bytes.count
        manifest.indexed = last.sequence
        manifest.count = count
        manifest.changedByteCount = changedByteCount
        manifest.storedByteCount = storedByteCount
        try putManifest()
    }

    /// Puts the hashes of the newest version, whose `tracked` ones are up to date.
    func putHashes() throws {
        guard let tracked, tracked.dirty.isEmpty, let newest, tracked.hashes.snapshot == newest.snapshot,
            hashedSequence != newest.sequence
        else { return }
        var head = ArchiveObjectHead()
        head.kind = .text
        head.isEncrypted = cipher != nil
        head.sequence = newest.sequence
        head.this = newest.snapshot
        var records = ArchiveRecords(ArchiveNames.hashes, cipher)
        let bytes = head.bytes() + (try records.frame(tracked.hashes.encoded()))
        try lease.renew()
        try place.put(ArchiveNames.hashes, bytes, .always)
        hashedSequence = newest.sequence
        storedByteCount += bytes.count
    }
}
