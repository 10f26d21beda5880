/// What is kept, and what goes.
extension ArchiveWriter {
    /// Gives up what no promise covers any more, and removes what was given up long enough ago: who copies the place meanwhile
    /// has listed it, and is still on the way to it.
    func retain(now: UInt64) throws {
        guard options.keep != nil || options.keepFor != nil, let newest else { return }
        // Whatever one of the promises covers stays.
        var candidates: [ArchiveManifest.Image] = []
        if let keep = options.keep {
            candidates.append(contentsOf: manifest.images.last { $0.ordinal <= count - max(keep, 1) }.map { [$0] } ?? [])
        }
        if let keepFor = options.keepFor {
            let age = UInt64(clamping: keepFor.components.seconds) &* 1_000_000_000
            if let image = manifest.images.last(where: { $0.time <= now && now - $0.time >= age }) { candidates.append(image) }
        }
        let promises = (options.keep == nil ? 0 : 1) + (options.keepFor == nil ? 0 : 1)
        let delay = options.removalDelay.components
        let wait = UInt64(clamping: delay.seconds) &* 1_000_000_000 &+ UInt64(clamping: delay.attoseconds / 1_000_000_000)
        if candidates.count == promises, let base = candidates.map(\.sequence).min(), base > manifest.oldest {
            manifest.giveUp(before: base, at: now, delay: wait)
            try lease.renew()
            try putManifest()
        }
        if let due = manifest.due(now: now, delay: wait) { try remove(before: due, newest: newest.sequence) }
    }

    private func remove(before base: UInt64, newest: UInt64) throws {
        let reader = ArchiveReader(place, manifest, cipher)
        var chunkNumber = ArchiveNames.chunk(of: manifest.removed)
        while chunkNumber <= ArchiveNames.chunk(of: base) {
            try lease.renew()
            for entry in try reader.entriesIfThere(ofChunk: chunkNumber) where entry.sequence <= base {
                for level in 0...ArchiveNames.levelMax where entry.sequence % ArchiveNames.span(level) == 0 {
                    // Nothing begins before the first version but the first version.
                    if entry.kind == .start || entry.sequence < ArchiveNames.span(level) { break }
                    try place.delete(ArchiveNames.step(level, entry.sequence))
                }
            }
            if chunkNumber < ArchiveNames.chunk(of: base) { try place.delete(ArchiveNames.index(chunkNumber)) }
            chunkNumber = reader.nextChunk(after: chunkNumber, upTo: base)
        }
        // Merges that begin before the base and end behind it.
        for level in 1...ArchiveNames.levelMax {
            let span = ArchiveNames.span(level), end = (base / span + 1) * span
            if base % span != 0, end <= newest { try place.delete(ArchiveNames.step(level, end)) }
        }
        for image in manifest.images where image.sequence < base { try place.delete(ArchiveNames.image(image.sequence)) }
        manifest.images.removeAll { $0.sequence < base }
        manifest.leaving.removeAll { $0.sequence <= base }
        manifest.removed = base
        try putManifest()
    }
}
