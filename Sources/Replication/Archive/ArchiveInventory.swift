/// What of an archive is really there, by its names.
///
/// An archive itself never needs it: what something refers to is put before it. A copy of its folder has parts of different age,
/// so that something may be told of that is not in the copy, and something may lie there that nothing tells of. Versions, and ways
/// to them, follow from the names alone (`ArchiveNames`); that objects fit together is checked when they are read.
struct ArchiveInventory {
    private var images: Set<UInt64> = []
    /// The last versions of the pieces of each level.
    private var pieces: [Set<UInt64>] = Array(repeating: [], count: ArchiveNames.levelMax + 1)
    private var ways: [UInt64: UInt64] = [:]
    /// The versions that can be restored, oldest first.
    private(set) var sequences: [UInt64] = []
    /// The greatest number that anything bears.
    private(set) var highest: UInt64?

    init(_ names: [String]) {
        for name in names {
            switch ArchiveNames.meaning(of: name) {
            case .image(let sequence): images.insert(sequence)
            case .step(let level, let last): pieces[level].insert(last)
            case nil: continue
            }
        }
        highest = ([images] + pieces).compactMap { $0.max() }.max()
        findWays()
    }

    init(_ place: any ArchivePlace) throws { self.init(try place.list("images/") + place.list("steps/")) }

    private mutating func findWays() {
        ways = [:]
        sequences = []
        let all = pieces.reduce(images) { $0.union($1) }.sorted()
        for sequence in all {
            var base = images.contains(sequence) ? sequence : nil
            for level in 0...ArchiveNames.levelMax where base == nil || base != sequence {
                let span = ArchiveNames.span(level)
                if sequence % span != 0 { break }
                // Where a piece of a higher level is longer than what was archived, there is none.
                guard sequence >= span, pieces[level].contains(sequence), let found = ways[sequence - span] else { continue }
                base = max(base ?? 0, found)
            }
            guard let base else { continue }
            ways[sequence] = base
            sequences.append(sequence)
        }
    }

    func hasImage(_ sequence: UInt64) -> Bool { images.contains(sequence) }

    var imageSequences: [UInt64] { images.sorted() }

    func contains(_ name: String) -> Bool {
        switch ArchiveNames.meaning(of: name) {
        case .image(let sequence): images.contains(sequence)
        case .step(let level, let last): pieces[level].contains(last)
        case nil: false
        }
    }

    /// The image from which a version is reached; nil where it is not.
    func base(of sequence: UInt64) -> UInt64? { ways[sequence] }

    /// Takes away what is there but cannot be read.
    mutating func remove(_ names: some Sequence<String>) {
        for name in names {
            switch ArchiveNames.meaning(of: name) {
            case .image(let sequence): images.remove(sequence)
            case .step(let level, let last): pieces[level].remove(last)
            case nil: continue
            }
        }
        findWays()
    }
}
