import SharedStore

/// Finds versions in an archive, and the way to them. Writes nothing and needs no lease.
///
/// What an archiver removes meanwhile is missing for who was on the way to it: `ArchiveError.missing`; opening again shows what
/// is there. A copy of an archive may have parts of different age; see `ArchiveReader+Copies`.
public final class ArchiveReader {
    /// Where the archive lies; the reader asks it, on the thread that uses the reader.
    public let place: any ArchivePlace
    let manifest: ArchiveManifest
    let cipher: ArchiveCipher?
    private var chunks: [UInt64: [ArchiveEntry]] = [:]
    /// What is there, listed where something was found missing, and why what of it is not used.
    var listed: ArchiveInventory?
    var givenUp: [String: String] = [:]
    /// Whether the images that are there are those that the manifest names; nil where nobody has asked yet.
    var isOutOfStep: Bool?
    /// What a person should know of this archive, in the order in which it was found.
    public internal(set) var notes: [String] = []
    /// Something that is there is damaged.
    public internal(set) var hasDamage = false

    init(_ place: any ArchivePlace, _ manifest: ArchiveManifest, _ cipher: ArchiveCipher?) {
        self.place = place
        self.manifest = manifest
        self.cipher = cipher
    }

    /// Opens an archive.
    ///
    /// - Parameter key: that of the source, where the source is encrypted.
    /// - Throws: `ArchiveError`, `ArchivePlaceError`, `SystemError`.
    public convenience init(_ place: any ArchivePlace, key: EncryptionKey? = nil) throws {
        guard let found = try place.getAll(ArchiveNames.manifest, limit: ArchiveManifest.byteCountMax) else {
            throw ArchiveError.notAnArchive(place: place.description)
        }
        let manifest = try ArchiveManifest(text: String(decoding: found.bytes, as: UTF8.self), place: place.description)
        // Who gives a key expects what is restored to be encrypted.
        if key != nil, manifest.keyCheck == nil { throw ArchiveError.keyForPlain(place: place.description) }
        self.init(place, manifest, try Archive.cipher(manifest, key, place))
    }

    /// The path that is archived here.
    public var source: String { manifest.source }
    /// All that was archived can be read with the key only that the source has.
    public var isEncrypted: Bool { cipher != nil }

    // MARK: The index

    func entries(ofChunk number: UInt64) throws -> [ArchiveEntry] {
        if let known = chunks[number] { return known }
        let name = ArchiveNames.index(number)
        guard let reader = try ArchiveObjectReader(place, name, cipher: cipher) else {
            throw ArchiveError.missing(place: place.description, object: name)
        }
        let lines = try reader.text().split(separator: "\n")
        let entries = lines.compactMap { ArchiveEntry(line: $0) }
        guard entries.count == lines.count, zip(entries, entries.dropFirst()).allSatisfy({ $0.sequence < $1.sequence }),
            entries.allSatisfy({ ArchiveNames.chunk(of: $0.sequence) == number })
        else { throw reader.damaged("its lines cannot be") }
        chunks[number] = entries
        return entries
    }

    /// As `entries(ofChunk:)`; none where there is no such chunk, because it was removed.
    func entriesIfThere(ofChunk number: UInt64) throws -> [ArchiveEntry] {
        do { return try entries(ofChunk: number) } catch let error as ArchiveError where error.isAbsence { return [] }
    }

    /// The numbers of the chunks that were read.
    var knownChunks: [UInt64] { chunks.keys.sorted() }

    /// The next chunk in which there may be something: numbers leap where something began anew.
    func nextChunk(after number: UInt64, upTo last: UInt64) -> UInt64 {
        let own = chunks[number] ?? []
        // A chunk that is full goes on in the next one; else the next image tells where.
        let isFull = own.last.map { ($0.sequence + 1) % ArchiveNames.indexChunkCount == 0 } ?? false
        if isFull || number >= ArchiveNames.chunk(of: last) { return number + 1 }
        let following = manifest.images.first { ArchiveNames.chunk(of: $0.sequence) > number }?.sequence
        return following.map { ArchiveNames.chunk(of: $0) } ?? number + 1
    }

    /// Versions that are there and not in the index yet, after `last`.
    ///
    /// What does not go on from there, or is there in part only, ends them: see `isBlocked`.
    func unindexed(after last: ArchiveEntry?) throws -> [ArchiveEntry] {
        guard var before = last else { return [] }
        isBlocked = false
        var found: [ArchiveEntry] = []
        while true {
            let name = ArchiveNames.step(0, before.sequence + 1)
            guard let read = try place.get(name, from: 0, count: ArchiveObjectHead.byteCount) else { break }
            let head: ArchiveObjectHead
            do { head = try ArchiveObjectHead(read, place, name) } catch let error as ArchiveError where error.isAbsence {
                isBlocked = true
                break
            }
            guard head.sequence == before.sequence + 1, head.parentSequence == before.sequence else {
                throw ArchiveError.damaged(place: place.description, object: name, reason: "its head cannot be")
            }
            if let index = found.indices.last {
                found[index].chain = head.parentChain
            } else if head.parentChain != before.chain {
                isBlocked = true
                break
            }
            let entry = ArchiveEntry(
                sequence: head.sequence, snapshot: head.this, time: head.time, kind: head.kind == .content ? .content : .step,
                plainByteCount: head.plainByteCount, storedByteCount: read.totalByteCount, chain: Digest())
            found.append(entry)
            before = entry
        }
        if let index = found.indices.last {
            do { found[index].chain = try lastChain(ArchiveNames.step(0, found[index].sequence)) } catch let error as ArchiveError
                where error.isAbsence
            {
                isBlocked = true
                found.removeLast()
                // The one before it was told by the head of what is left out.
            }
        }
        return found
    }

    /// Behind the newest version lies something that does not go on from it, or not all of what does.
    private(set) var isBlocked = false

    /// The chain hash that an object ends with.
    func lastChain(_ name: String) throws -> Digest {
        guard let reader = try ArchiveObjectReader(place, name, cipher: cipher) else {
            throw ArchiveError.missing(place: place.description, object: name)
        }
        if reader.head.chain != Digest() { return reader.head.chain }
        while true {
            let record = try reader.record()
            let head: SegmentHead
            do { head = try record.withUnsafeBytes { try SegmentHead($0) } } catch let error as SegmentError {
                throw reader.damaged("\(error)")
            }
            if !head.flags.contains(.more) { return head.chain }
        }
    }

    private var tail: [ArchiveEntry]?

    /// Known and unindexed versions behind `manifest.indexed`, asked once.
    private func unindexed() throws -> [ArchiveEntry] {
        if let tail { return tail }
        guard let indexed = manifest.indexed else { return [] }
        let fresh = try unindexed(after: try entries(ofChunk: ArchiveNames.chunk(of: indexed)).last { $0.sequence <= indexed })
        tail = fresh
        return fresh
    }

    /// The versions with numbers in a range, oldest first.
    func entries(from first: UInt64, through last: UInt64) throws -> [ArchiveEntry] {
        guard let indexed = manifest.indexed, first <= last else { return [] }
        var out: [ArchiveEntry] = []
        var number = ArchiveNames.chunk(of: first)
        while number <= ArchiveNames.chunk(of: min(last, indexed)) {
            out += try entriesIfThere(ofChunk: number).filter {
                $0.sequence >= first && $0.sequence <= last && $0.sequence <= indexed
            }
            number = nextChunk(after: number, upTo: last)
        }
        if last > indexed { out += try unindexed().filter { $0.sequence >= first && $0.sequence <= last } }
        return out
    }

    // MARK: Finding

    /// The newest version in the archive, as far as its index and what follows tell.
    public func newest() throws -> ArchiveEntry {
        do { return try newestIndexed() } catch let error as ArchiveError where error.isAbsence {
            note(error)
            guard let found = try newestRestorable() else { throw error }
            return found
        } catch let error as ArchiveError where manifest.indexed == nil {
            // The manifest of a copy may be of the very beginning.
            guard let found = try newestRestorable() else { throw error }
            return found
        }
    }

    private func newestIndexed() throws -> ArchiveEntry {
        if let last = try unindexed().last { return last }
        guard let indexed = manifest.indexed,
            let last = try entries(ofChunk: ArchiveNames.chunk(of: indexed)).last(where: { $0.sequence <= indexed })
        else {
            throw ArchiveError.noSuchVersion(place: place.description, wanted: "version", nearest: "nothing was archived yet")
        }
        return last
    }

    /// The version with this number; of several (the source was set back), the one that was archived last.
    public func version(_ version: UInt64) throws -> ArchiveEntry {
        if try looksOutOfStep(), let found = try history().last(where: { $0.snapshot.version == version }) { return found }
        let images = manifest.images.filter { $0.sequence >= manifest.oldest }
        var around: (ArchiveEntry?, ArchiveEntry?)?
        for index in images.indices.reversed() where images[index].version <= version {
            let next = index + 1 < images.count ? images[index + 1] : nil
            // Behind a stretch whose end has a greater number, or which may have been followed by a new beginning.
            if let next, next.version < version, next.sequence % ArchiveNames.startAlignment != 0 { continue }
            let found = try search(images[index].sequence, next?.sequence) { $0.snapshot.version <= version }
            if let entry = found.0, entry.snapshot.version == version { return entry }
            around = around ?? found
        }
        let numbers = [around?.0, around?.1].compactMap { $0.map { "\($0.snapshot.version)" } }
        let oldest = images.first.map { "the oldest is \($0.version)" } ?? "it is empty"
        throw ArchiveError.noSuchVersion(
            place: place.description, wanted: "version \(version)",
            nearest: numbers.isEmpty ? oldest : "the nearest are \(numbers.joined(separator: " and "))")
    }

    /// The version that was the newest at a moment, in nanoseconds since 1970.
    public func version(at time: UInt64) throws -> ArchiveEntry {
        if try looksOutOfStep(), let found = try history().last(where: { $0.time <= time }) { return found }
        let images = manifest.images.filter { $0.sequence >= manifest.oldest }
        if let index = images.lastIndex(where: { $0.time <= time }) {
            let next = index + 1 < images.count ? images[index + 1].sequence : nil
            if let found = try search(images[index].sequence, next, { $0.time <= time }).0 { return found }
        }
        let text =
            images.first.map { "the oldest was seen \(Self.text(nanoseconds: $0.time > time ? $0.time - time : 0)) later" }
            ?? "it is empty"
        throw ArchiveError.noSuchVersion(place: place.description, wanted: "version of that time", nearest: text)
    }

    /// "12 s", "3 min", "4 h", "2525 days": as exact as a person needs it who has asked for a wrong moment.
    static func text(nanoseconds: UInt64) -> String {
        let seconds = nanoseconds / 1_000_000_000
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h"
        default: return "\(seconds / 86_400) days"
        }
    }

    /// In the stretch from one image to the next, the last entry for which `holds`, and the one behind it.
    private func search(_ first: UInt64, _ next: UInt64?, _ holds: (ArchiveEntry) -> Bool) throws -> (
        ArchiveEntry?, ArchiveEntry?
    ) {
        let stretch = try narrowed(first, next ?? UInt64.max, holds)
        let position = stretch.lastIndex(where: holds)
        let following = position.map { $0 + 1 } ?? 0
        return (position.map { stretch[$0] }, following < stretch.count ? stretch[following] : nil)
    }

    /// The entries from `first` to `last`; of a long stretch only those around the last one that holds.
    private func narrowed(_ first: UInt64, _ last: UInt64, _ holds: (ArchiveEntry) -> Bool) throws -> [ArchiveEntry] {
        guard let indexed = manifest.indexed else { return [] }
        var low = ArchiveNames.chunk(of: first), high = ArchiveNames.chunk(of: min(last, indexed))
        // Within a stretch numbers do not leap, so every chunk is there; one that begins with what holds is not behind the
        // border.
        while low < high {
            let middle = low + (high - low + 1) / 2
            if let entry = try entriesIfThere(ofChunk: middle).first(where: { $0.sequence >= first }), holds(entry) {
                low = middle
            } else {
                high = middle - 1
            }
        }
        let end = low >= ArchiveNames.chunk(of: min(last, indexed)) ? last : min(last, (low + 2) * ArchiveNames.indexChunkCount)
        return try entries(from: max(first, low * ArchiveNames.indexChunkCount), through: end)
    }

    // MARK: Levels

    /// The longest pieces by which one gets from version `sequence` towards `target`, longest first.
    static func candidates(from sequence: UInt64, to target: UInt64) -> [(level: Int, last: UInt64)] {
        var out: [(Int, UInt64)] = []
        for level in stride(from: ArchiveNames.levelMax, through: 0, by: -1) {
            let span = ArchiveNames.span(level)
            if sequence % span == 0, target - sequence >= span { out.append((level, sequence + span)) }
        }
        return out
    }
}
