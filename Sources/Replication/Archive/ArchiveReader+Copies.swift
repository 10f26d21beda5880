/// Reading copies of an archive's folder or bucket.
///
/// A copier lists and reads one part after the other while the archive grows: of each object, what the copy has is what was there
/// at some moment of copying, or nothing. An archive puts what something refers to before it and removes late what it has given
/// up, so that all that was there when copying began is in the copy; but the manifest may name images, and the index versions,
/// that are not, and both may be older than what lies beside them. Where that is seen, what is there is listed, and every version
/// is had by any way that is there.
extension ArchiveReader {
    /// More broken objects than this are no copy's.
    private static let givenUpCountMax = 256

    func note(_ error: ArchiveError) {
        guard let object = error.object else { return }
        let text = "\(object.name) \(object.reason)"
        if case .damaged = error { hasDamage = true }
        if !notes.contains(text) { notes.append(text) }
    }

    /// What is there, less what was found broken.
    func inventory() throws -> ArchiveInventory {
        if let listed { return listed }
        var fresh = try ArchiveInventory(place)
        fresh.remove(givenUp.keys)
        listed = fresh
        return fresh
    }

    /// Does without the object that an error names from now on; false where that is nothing new.
    func doWithout(_ error: ArchiveError) -> Bool {
        guard let object = error.object, givenUp[object.name] == nil, givenUp.count < Self.givenUpCountMax else { return false }
        if let listed, !listed.contains(object.name) { return false }
        givenUp[object.name] = object.reason
        listed?.remove([object.name])
        note(error)
        return true
    }

    func giveUp(_ name: String, _ reason: String) {
        givenUp[name] = reason
        listed?.remove([name])
        notes.append("\(name) \(reason)")
    }

    /// Runs `body` until nothing that it reads is missing or broken.
    private func goingAround<T>(_ body: () throws -> T) throws -> T {
        while true {
            do { return try body() } catch let error as ArchiveError { if !doWithout(error) { throw error } }
        }
    }

    /// Whether the images that are there are others than those that the manifest names: one listing.
    func looksOutOfStep() throws -> Bool {
        if let isOutOfStep { return isOutOfStep }
        let there = Set(ArchiveInventory(try place.list("images/")).imageSequences.filter { $0 >= manifest.oldest })
        let named = Set(manifest.images.map(\.sequence).filter { $0 >= manifest.oldest })
        for sequence in named.subtracting(there).sorted() {
            note(.missing(place: place.description, object: ArchiveNames.image(sequence)))
        }
        isOutOfStep = there != named
        return there != named
    }

    // MARK: What can be restored

    /// All versions that can be restored, oldest first. What is there is listed.
    public func history() throws -> [ArchiveEntry] {
        try goingAround {
            let there = try inventory(), first = oldest(there)
            return try described(there.sequences.filter { $0 >= first })
        }
    }

    /// What was given up may be in a copy that has nothing newer.
    private func oldest(_ there: ArchiveInventory) -> UInt64 { there.hasImage(manifest.oldest) ? manifest.oldest : 0 }

    /// The newest version to which there is a way, whatever manifest and index tell; nil where there is none.
    func newestRestorable() throws -> ArchiveEntry? {
        try goingAround { try described(try inventory().sequences.suffix(1)).first }
    }

    /// Versions that manifest and index promise and to which there is no way, oldest first.
    public func unrestorable() throws -> [ArchiveEntry] {
        let there = try inventory(), first = oldest(there)
        if let indexed = manifest.indexed { _ = try entriesIfThere(ofChunk: ArchiveNames.chunk(of: indexed)) }
        return try knownChunks.flatMap { try entriesIfThere(ofChunk: $0) }.filter {
            $0.sequence >= first && there.base(of: $0.sequence) == nil
        }
    }

    /// Whether there is a way to a version, as far as heads tell: about a dozen small reads, and no listing.
    func reaches(_ entry: ArchiveEntry) throws -> Bool {
        guard let base = manifest.base(of: entry.sequence),
            try hasHead(ArchiveNames.image(base.sequence), of: base.sequence)
        else { return false }
        var here = base.sequence
        while here < entry.sequence {
            var next: UInt64?
            for candidate in Self.candidates(from: here, to: entry.sequence) where next == nil {
                let name = ArchiveNames.step(candidate.level, candidate.last)
                if try hasHead(name, of: candidate.last) { next = candidate.last }
            }
            guard let next else { return false }
            here = next
        }
        return true
    }

    private func hasHead(_ name: String, of sequence: UInt64) throws -> Bool {
        guard givenUp[name] == nil, let read = try place.get(name, from: 0, count: ArchiveObjectHead.byteCount) else {
            return false
        }
        return ArchiveObjectHead(read.bytes)?.sequence == sequence
    }

    // MARK: What they are

    /// What the index, or the objects themselves, tell of versions, given in order.
    func described(_ sequences: some Sequence<UInt64>) throws -> [ArchiveEntry] {
        var out: [ArchiveEntry] = []
        var chunk: (number: UInt64, lines: [UInt64: ArchiveEntry])?
        // Of the last one the chain is not known: what follows tells it, or its own end.
        var open: String?
        func close(_ chain: Digest?) throws {
            guard let name = open, let index = out.indices.last else { return }
            out[index].chain = try chain ?? lastChain(name)
            open = nil
        }
        for sequence in sequences {
            let number = ArchiveNames.chunk(of: sequence)
            if chunk?.number != number {
                chunk = (number, Dictionary(try entriesIfThere(ofChunk: number).map { ($0.sequence, $0) }) { $1 })
            }
            if let line = chunk?.lines[sequence] {
                try close(nil)
                out.append(line)
                continue
            }
            guard let (entry, head, name) = try entryOfObject(sequence) else { continue }
            try close(out.last?.sequence == head.parentSequence && head.kind != .image ? head.parentChain : nil)
            out.append(entry)
            if entry.chain == Digest() { open = name }
        }
        try close(nil)
        return out
    }

    /// What an object that leads to a version tells of it.
    private func entryOfObject(_ sequence: UInt64) throws -> (ArchiveEntry, ArchiveObjectHead, String)? {
        let there = try inventory()
        var names = [ArchiveNames.step(0, sequence), ArchiveNames.image(sequence)]
        for level in 1...ArchiveNames.levelMax where sequence % ArchiveNames.span(level) == 0 {
            names.append(ArchiveNames.step(level, sequence))
        }
        guard let name = names.first(where: { there.contains($0) }) else { return nil }
        guard let read = try place.get(name, from: 0, count: ArchiveObjectHead.byteCount) else {
            throw ArchiveError.missing(place: place.description, object: name)
        }
        let head = try ArchiveObjectHead(read, place, name)
        guard head.sequence == sequence, head.kind != .text else {
            throw ArchiveError.damaged(place: place.description, object: name, reason: "it is something else")
        }
        let kind: ArchiveEntry.Kind =
            switch head.kind {
            case .image: .start
            case .content: .content
            case .step, .merged, .text: .step
            }
        let entry = ArchiveEntry(
            sequence: sequence, snapshot: head.this, time: head.time, kind: kind, plainByteCount: head.plainByteCount,
            storedByteCount: read.totalByteCount, chain: head.chain)
        return (entry, head, name)
    }
}

extension Archive {
    /// Does something with the newest version from which a file can be made: where what leads to the one that is told of as the
    /// newest is not there, or not whole, with the newest one to which there is a way. What was lost is among the reader's notes.
    ///
    /// - Throws: what `body` throws; damage is no reason to take an older version.
    public static func withNewest<T>(of reader: ArchiveReader, _ body: (ArchiveEntry) throws -> T) throws -> T {
        let told = try reader.newest()
        var entry = try reader.looksOutOfStep() ? reader.newestRestorable() ?? told : told
        while true {
            do {
                let result = try body(entry)
                reader.noteOlder(than: told, entry)
                return result
            } catch let error as ArchiveError where error.isAbsence && !reader.hasDamage {
                _ = reader.doWithout(error)
                guard let older = try reader.newestRestorable(), older != entry else { throw error }
                entry = older
            }
        }
    }
}

extension ArchiveReader {
    fileprivate func noteOlder(than told: ArchiveEntry, _ entry: ArchiveEntry) {
        guard entry.sequence < told.sequence else { return }
        notes.append(
            "version \(told.snapshot.version) is told of, and version \(entry.snapshot.version) is the newest to which all is there"
        )
    }
}
