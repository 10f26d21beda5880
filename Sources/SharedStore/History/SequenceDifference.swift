/// The difference of two sequences of elements: the results of a query before and after (file-format-3 6.6, Results).
public enum SequenceDifference {
    /// Elements only in `old` are deletions, those only in `new` insertions. Survivors that kept their order stay; those in no
    /// kept run are deletion and insertion. A survivor that stayed and is in `modified` is a modification.
    ///
    /// The kept runs: the equal beginning, then the longest run that is contiguous in both, then the same to the left and
    /// to the right of it. Of an element that stands several times in both as many survive as stand in both, the first ones.
    public static func compute<Key: Hashable>(old: [Key], new: [Key], isModified: (Key) throws -> Bool) rethrows
        -> CollectionChange
    {
        var change = CollectionChange()
        // Elements by numbers, and where each stands.
        var numbers: [Key: Int] = Dictionary(minimumCapacity: new.count)
        var counts: [Int] = []
        var newNumbers: [Int] = []
        newNumbers.reserveCapacity(new.count)
        for key in new {
            let number = numbers[key] ?? counts.count
            if number == counts.count {
                numbers[key] = number
                counts.append(0)
            }
            counts[number] += 1
            newNumbers.append(number)
        }
        let isDistinct = counts.count == new.count

        // Survivors of the old sequence: positions and elements.
        var oldPositions: [Int] = [], oldElements: [Int] = []
        var surviving = [Int](repeating: 0, count: counts.count)
        for (i, key) in old.enumerated() {
            if let number = numbers[key], surviving[number] < counts[number] {
                surviving[number] += 1
                oldPositions.append(i)
                oldElements.append(number)
            } else {
                change.deletions.add(i)
            }
        }
        // Those of the new one.
        var newPositions: [Int] = [], newElements: [Int] = []
        var rest = surviving
        for (n, number) in newNumbers.enumerated() {
            if rest[number] > 0 {
                rest[number] -= 1
                newPositions.append(n)
                newElements.append(number)
            } else {
                change.insertions.add(n)
            }
        }
        var modified = [Bool](repeating: false, count: new.count)
        for n in newPositions where try isModified(new[n]) { modified[n] = true }

        // For each survivor of the old sequence the one of the new sequence that it is, where it stayed.
        let kept: [Int?]
        if isDistinct {
            var rank = [Int](repeating: 0, count: counts.count)
            for (i, number) in newElements.enumerated() { rank[number] = i }
            let ranks = oldElements.map { rank[$0] }
            kept = zip(ranks, keptSurvivors(ranks, modified: modified)).map { $1 ? $0 : nil }
        } else {
            kept = keptPairs(oldElements, newElements, modified: modified)
        }
        var stays = [Bool](repeating: false, count: newPositions.count)
        for (i, partner) in kept.enumerated() {
            if let partner {
                stays[partner] = true
                if modified[newPositions[partner]] { change.modifications.add(newPositions[partner]) }
            } else {
                change.deletions.add(oldPositions[i])
            }
        }
        for (i, position) in newPositions.enumerated() where !stays[i] { change.insertions.add(position) }
        return change
    }

    /// Whether a later run takes the place of one of the same length: where it holds fewer modified elements. By the rule of the
    /// original the later run counts over its own positions, the held one over those that end at its start.
    private static func isBetter(_ later: Int, than held: Int, count: Int, _ modified: [Bool]) -> Bool {
        func modifiedCount(_ range: Range<Int>) -> Int {
            range.reduce(0) { $0 + (modified.indices.contains($1) && modified[$1] ? 1 : 0) }
        }
        return modifiedCount(later..<later + count) < modifiedCount(max(0, held - count + 1)..<held + 1)
    }

    /// For sequences in which elements stand several times: every pair of equal elements may begin a run.
    private static func keptPairs(_ old: [Int], _ new: [Int], modified: [Bool]) -> [Int?] {
        var kept = [Int?](repeating: nil, count: old.count)
        var begin = 0
        while begin < min(old.count, new.count) && old[begin] == new[begin] {
            kept[begin] = begin
            begin += 1
        }
        var places: [Int: [Int]] = [:]
        for (j, element) in new.enumerated() where j >= begin { places[element, default: []].append(j) }
        var pending = [(old: begin..<old.count, new: begin..<new.count)]
        while let part = pending.popLast() {
            if part.old.isEmpty || part.new.isEmpty { continue }
            var best = (old: 0, new: 0, count: 0)
            // Lengths of the runs that end at the previous element, by where they end in the new sequence.
            var lengths: [Int: Int] = [:]
            for i in part.old {
                var next: [Int: Int] = [:]
                for j in places[old[i]] ?? [] where part.new.contains(j) {
                    let count = (lengths[j - 1] ?? 0) + 1
                    next[j] = count
                    let start = (old: i - count + 1, new: j - count + 1)
                    if count > best.count || (count == best.count && isBetter(start.new, than: best.new, count: count, modified))
                    {
                        best = (start.old, start.new, count)
                    }
                }
                lengths = next
            }
            if best.count == 0 { continue }
            for k in 0..<best.count { kept[best.old + k] = best.new + k }
            pending.append((part.old.lowerBound..<best.old, part.new.lowerBound..<best.new))
            pending.append((best.old + best.count..<part.old.upperBound, best.new + best.count..<part.new.upperBound))
        }
        return kept
    }

    /// `ranks[i]`: where the i-th survivor of the old sequence stands among the survivors of the new one, a permutation.
    private static func keptSurvivors(_ ranks: [Int], modified: [Bool]) -> [Bool] {
        var kept = [Bool](repeating: false, count: ranks.count)
        var begin = 0
        while begin < ranks.count && ranks[begin] == begin {
            kept[begin] = true
            begin += 1
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
                    if isBetter(ranks[i], than: ranks[best.start], count: count, modified) { best = (i, count) }
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
