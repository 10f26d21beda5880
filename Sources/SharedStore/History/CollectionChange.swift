/// The net change of one ordered collection, built step by step from the edits of a changeset (file-format-3 6.6).
public struct CollectionChange: Equatable, Sendable {
    /// An element that kept its value and changed its place.
    public struct Move: Equatable, Sendable {
        /// Position in the old collection; also among the deletions.
        public var from: Int
        /// Position in the new collection; also among the insertions.
        public var to: Int
        /// - Parameters:
        ///   - from: position in the old collection.
        ///   - to: position in the new collection.
        public init(from: Int, to: Int) {
            self.from = from
            self.to = to
        }
    }

    /// Positions in the old collection.
    public internal(set) var deletions = PositionSet()
    /// Positions in the new collection.
    public internal(set) var insertions = PositionSet()
    /// Positions in the new collection; those that are insertions as well do not count as modified.
    public internal(set) var modifications = PositionSet()
    /// Elements whose new place does not follow from the insertions and deletions around them.
    public internal(set) var moves: [Move] = []
    /// Emptied by one operation and not filled since.
    public internal(set) var wasCleared = false
    /// The object or the Mixed that held the collection is gone.
    public internal(set) var ownerWasDeleted = false
    /// Salts of elements below which something changed; which positions they have is known at the end only.
    public internal(set) var modifiedSalts: Set<Int64> = []

    /// No change.
    public init() {}

    /// Nothing happened to the collection, its elements and its owner.
    public var isEmpty: Bool {
        deletions.isEmpty && insertions.isEmpty && modifications.isEmpty && moves.isEmpty && modifiedSalts.isEmpty && !wasCleared
            && !ownerWasDeleted
    }

    /// Modified elements by their position in the new collection.
    public var modificationsNew: PositionSet { modifications.subtracting(insertions) }

    /// Modified elements by their position in the old collection.
    public var modificationsOld: PositionSet {
        // One walk over all three sets: positions ascend on both sides.
        var result = PositionSet()
        var inserted = 0, nextInsertion = 0, deleted = 0, nextDeletion = 0
        for position in modificationsNew {
            while nextInsertion < insertions.ranges.count, insertions.ranges[nextInsertion].upperBound <= position {
                inserted += insertions.ranges[nextInsertion].count
                nextInsertion += 1
            }
            while nextDeletion < deletions.ranges.count,
                deletions.ranges[nextDeletion].lowerBound <= position - inserted + deleted
            {
                deleted += deletions.ranges[nextDeletion].count
                nextDeletion += 1
            }
            result.add(position - inserted + deleted)
        }
        return result
    }

    /// Where each of the old elements is now; nil for those that are gone or moved.
    func newPositions(oldCount: Int) -> [Int?] {
        var result = [Int?](repeating: nil, count: oldCount)
        var new = 0, nextInsertion = 0, nextDeletion = 0
        for old in 0..<oldCount {
            while nextDeletion < deletions.ranges.count, deletions.ranges[nextDeletion].upperBound <= old { nextDeletion += 1 }
            if nextDeletion < deletions.ranges.count, deletions.ranges[nextDeletion].lowerBound <= old { continue }
            while nextInsertion < insertions.ranges.count, insertions.ranges[nextInsertion].lowerBound <= new {
                new += insertions.ranges[nextInsertion].count
                nextInsertion += 1
            }
            result[old] = new
            new += 1
        }
        return result
    }

    // MARK: Edits

    /// An element came; it has position `index` now.
    public mutating func insert(_ index: Int) {
        wasCleared = false
        insertions.insertAt(index)
        modifications.shiftForInsert(index)
        for i in moves.indices where moves[i].to >= index { moves[i].to += 1 }
    }

    /// The element at `index` has another value now.
    public mutating func set(_ index: Int) { modifications.add(index) }

    /// The element went that was at `index` until now.
    public mutating func erase(_ index: Int) {
        modifications.eraseAt(index)
        moves.removeAll { $0.to == index }
        for i in moves.indices where moves[i].to > index { moves[i].to -= 1 }
        if let old = insertions.eraseOrUnshift(index) { deletions.addShifted(old) }
    }

    /// All elements went.
    ///
    /// - Parameter oldCount: how many there were just before.
    public mutating func clear(oldCount: Int) {
        let original = max(0, oldCount &+ deletions.count &- insertions.count)
        deletions = PositionSet(0..<original)
        insertions = PositionSet()
        modifications = PositionSet()
        modifiedSalts = []
        moves = []
        wasCleared = true
    }

    /// An element changed its place: `to` is its position after it was taken out at `from`. A modified element stays so.
    public mutating func move(from: Int, to: Int) {
        let isModified = modifications.contains(from)
        let earlier = moves.firstIndex { $0.to == from }.map { moves.remove(at: $0) }

        modifications.eraseAt(from)
        for i in moves.indices where moves[i].to > from { moves[i].to -= 1 }
        let old = insertions.eraseOrUnshift(from)

        insertions.insertAt(to)
        modifications.shiftForInsert(to)
        for i in moves.indices where moves[i].to >= to { moves[i].to += 1 }
        if isModified { modifications.add(to) }

        if let earlier {
            moves.append(Move(from: earlier.from, to: to))
        } else if let old {
            moves.append(Move(from: deletions.addShifted(old), to: to))
        }
    }

    /// Drops moves that moved nothing in the end, with their deletions and insertions.
    public mutating func finish() {
        var kept: [Move] = []
        for move in moves {
            if move.from - deletions.count(below: move.from) == move.to - insertions.count(below: move.to) {
                deletions.remove(move.from)
                insertions.remove(move.to)
            } else {
                kept.append(move)
            }
        }
        moves = kept
    }

    /// Appends the change of a later step, whose old collection is this one's new collection.
    public mutating func append(_ next: CollectionChange) {
        if next.isEmpty { return }
        var carried: [Move] = []
        // Modified elements stay so where they go.
        let carriedModifications = next.moves.filter { modifications.contains($0.from) }.map(\.to)
        for move in next.moves {
            if let earlier = moves.first(where: { $0.to == move.from }) {
                carried.append(Move(from: earlier.from, to: move.to))
            } else if !insertions.contains(move.from) {
                carried.append(Move(from: deletions.shift(insertions.unshift(move.from)), to: move.to))
            }
        }
        for position in Array(next.deletions).reversed() { erase(position) }
        for position in next.insertions { insert(position) }
        for position in next.modifications { set(position) }
        for position in carriedModifications { set(position) }
        moves += carried
        finish()
        modifiedSalts.formUnion(next.modifiedSalts)
        wasCleared = next.wasCleared || (wasCleared && next.insertions.isEmpty)
        ownerWasDeleted = ownerWasDeleted || next.ownerWasDeleted
    }
}
