/// The difference of two sequences of distinct elements: the results of a query before and after (file-format-3 6.6, Results).
public enum SequenceDifference {
    /// Keys only in `old` are deletions, keys only in `new` insertions. Survivors that kept their order stay; those in no
    /// kept run are deletion and insertion. A survivor that stayed and is in `modified` is a modification.
    ///
    /// The kept runs: the equal beginning, then the longest run that is contiguous in both, then the same to the left and
    /// to the right of it. Elements must be distinct within each sequence.
    public static func compute<Key: Hashable>(old: [Key], new: [Key], isModified: (Key) -> Bool) -> CollectionChange {
        var change = CollectionChange()
        var newIndex: [Key: Int] = Dictionary(minimumCapacity: new.count)
        for (i, key) in new.enumerated() { newIndex[key] = i }

        // Survivors in old order: position in the old and in the new sequence.
        var oldPositions: [Int] = []
        var newPositions: [Int] = []
        for (i, key) in old.enumerated() {
            if let n = newIndex[key] {
                oldPositions.append(i)
                newPositions.append(n)
            } else {
                change.deletions.add(i)
            }
        }
        // Rank of each survivor among the survivors in new order.
        var isSurvivor = [Bool](repeating: false, count: new.count)
        for n in newPositions { isSurvivor[n] = true }
        var rankOfNew = [Int](repeating: 0, count: new.count)
        var rank = 0
        for n in new.indices {
            rankOfNew[n] = rank
            if isSurvivor[n] { rank += 1 } else { change.insertions.add(n) }
        }
        let ranks = newPositions.map { rankOfNew[$0] }

        var modified = [Bool](repeating: false, count: new.count)
        for n in newPositions where isModified(new[n]) { modified[n] = true }

        let kept = keptSurvivors(ranks, modified: modified)
        for i in ranks.indices {
            if kept[i] {
                if modified[newPositions[i]] { change.modifications.add(newPositions[i]) }
            } else {
                change.deletions.add(oldPositions[i])
                change.insertions.add(newPositions[i])
            }
        }
        return change
    }

    /// `ranks[i]`: where the i-th survivor of the old sequence stands among the survivors of the new one, a permutation.
    private static func keptSurvivors(_ ranks: [Int], modified: [Bool]) -> [Bool] {
        var kept = [Bool](repeating: false, count: ranks.count)
        var begin = 0
        while begin < ranks.count && ranks[begin] == begin {
            kept[begin] = true
            begin += 1
        }
        func modifiedCount(_ range: Range<Int>) -> Int {
            range.reduce(0) { $0 + (modified.indices.contains($1) && modified[$1] ? 1 : 0) }
        }
        var pending = [(old: begin..<ranks.count, new: begin..<ranks.count)]
        while let part = pending.popLast() {
            if part.old.isEmpty || part.new.isEmpty { continue }
            var best = (start: 0, count: 0)
            var i = part.old.lowerBound
            while i < part.old.upperBound {
                guard part.new.contains(ranks[i]) else { i += 1; continue }
                var end = i + 1
                while end < part.old.upperBound && ranks[end] == ranks[end - 1] + 1 && part.new.contains(ranks[end]) { end += 1 }
                let count = end - i
                if count > best.count {
                    best = (i, count)
                } else if count == best.count {
                    // The tie rule of the original: the later run counts over its own positions, the held one over those that end at its start.
                    let held = ranks[best.start]
                    let later = ranks[i]
                    if modifiedCount(later..<later + count) < modifiedCount(max(0, held - count + 1)..<held + 1) { best = (i, count) }
                }
                i = end
            }
            if best.count == 0 { continue }
            for k in best.start..<best.start + best.count { kept[k] = true }
            let newStart = ranks[best.start]
            pending.append((part.old.lowerBound..<best.start, part.new.lowerBound..<newStart))
            pending.append((best.start + best.count..<part.old.upperBound, newStart + best.count..<part.new.upperBound))
        }
        return kept
    }
}
