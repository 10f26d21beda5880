/// A condition on what a single link of the class leads to: the answer for an object depends on its link alone, so it is asked
/// once for each object that is linked to.
final class BoundThroughLink: BoundPredicate {
    private let inner: BoundPredicate
    private let frame: QueryFrame
    private let link: Column
    /// By key of the object that is linked to, plus 1; 0 for null.
    @exclusivity(unchecked) private var answers: [Answer]
    @exclusivity(unchecked) private var leaf: LinkLeaf?
    @exclusivity(unchecked) private var generation = -1
    /// Without primary key keys leave gaps: 8 bits, 8 zeros, then the rest (file-format-2 4.7).
    private let isSqueezed: Bool

    private enum Answer: UInt8 { case unknown, no, yes }

    /// Answers are kept for keys up to a multiple of the number of objects, and for no more than this many: what a damaged file
    /// says of its objects may not be true.
    private static let keysPerObject = 4, answersMax = 1 << 26

    /// Nil where most objects have a link of their own.
    ///
    /// - Parameter inner: whose operands are a path that begins with `link`, and constants.
    init?(_ inner: BoundPredicate, _ frame: QueryFrame, _ link: Column, _ target: Table) {
        if frame.table.objectCount < target.objectCount { return nil }
        self.inner = inner
        self.frame = frame
        self.link = link
        isSqueezed = target.primaryKeyColumn == nil
        let count = min(target.objectCount, BoundThroughLink.answersMax / BoundThroughLink.keysPerObject)
        answers = [Answer](repeating: .unknown, count: 64 + count * BoundThroughLink.keysPerObject)
    }

    override var cost: Int { inner.cost / 4 }

    /// Where the answer for a link is kept; beyond all answers where it is not.
    @inline(__always)
    private func place(_ key: ObjectKey) -> UInt {
        if key.rawValue < 0 { return 0 }
        let key = UInt(bitPattern: Int(key.rawValue))
        if !isSqueezed { return key &+ 1 }
        return key & 0xFF00 == 0 ? (key & 0xFF | (key >> 16) << 8) &+ 1 : .max
    }

    /// The answer for the row that the frame stands on, whose link is `key`.
    @inline(__always)
    private func answer(_ key: ObjectKey) throws -> Bool {
        // An object that is gone is null (file-format-2 4.9).
        let place = place(key)
        if place < UInt(bitPattern: answers.count) {
            let known = answers[Int(place)]
            if known != .unknown { return known == .yes }
        }
        let answer = try inner.matches()
        if place < UInt(bitPattern: answers.count) { answers[Int(place)] = answer ? .yes : .no }
        return answer
    }

    @inline(__always)
    private func current() throws -> LinkLeaf {
        if generation == frame.generation, let leaf { return leaf }
        let made = try LinkLeaf(frame.memory, frame.cluster.requiredRef(link.leafIndex &+ 1))
        leaf = made
        generation = frame.generation
        return made
    }

    override func matches() throws -> Bool { try answer(current().value(frame.index)) }

    override func narrow(_ mask: RowMask, _ frame: QueryFrame, _ leaf: ClusterLeaf) throws -> RowMask {
        if frame !== self.frame { return try super.narrow(mask, frame, leaf) }
        let links = try current()
        var result = RowMask()
        try mask.forEach { row in
            frame.index = row
            frame.key = leaf.key(row)
            if try answer(links.value(row)) { result.insert(row) }
        }
        return result
    }
}
