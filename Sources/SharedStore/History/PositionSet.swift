/// A set of positions in a sequence that is being edited, as ascending disjoint ranges, with the primitives that the
/// reduction of changesets is built from (file-format-3 6.6).
public struct PositionSet: Equatable, Sendable, Sequence, ExpressibleByArrayLiteral {
    /// Ascending, not touching, none empty.
    public private(set) var ranges: [Range<Int>] = []

    /// No positions.
    public init() {}
    /// All positions of a range.
    public init(_ range: Range<Int>) { if !range.isEmpty { ranges = [range] } }
    /// In any order.
    public init(arrayLiteral elements: Int...) { self.init(elements) }
    /// In any order; one that comes twice counts once.
    public init(_ positions: some Sequence<Int>) { for p in positions { add(p) } }

    /// No position is a member.
    public var isEmpty: Bool { ranges.isEmpty }
    /// Members, not ranges: takes a step for each range.
    public var count: Int { ranges.reduce(0) { $0 + $1.count } }
    /// Ascending.
    public func makeIterator() -> AnyIterator<Int> {
        var outer = ranges.makeIterator()
        var inner: Range<Int>.Iterator?
        return AnyIterator {
            while true {
                if let v = inner?.next() { return v }
                guard let r = outer.next() else { return nil }
                inner = r.makeIterator()
            }
        }
    }
    /// The largest position; nil where there is none.
    public var last: Int? { ranges.last.map { $0.upperBound - 1 } }

    /// Index of the first range that ends behind `position`.
    private func firstRange(endingBehind position: Int) -> Int {
        var low = 0, high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound > position { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// By bisection of the ranges.
    public func contains(_ position: Int) -> Bool {
        let i = firstRange(endingBehind: position)
        return i < ranges.count && ranges[i].lowerBound <= position
    }

    /// Members below `position`.
    public func count(below position: Int) -> Int {
        var n = 0
        for r in ranges {
            if r.lowerBound >= position { break }
            n += Swift.min(r.upperBound, position) - r.lowerBound
        }
        return n
    }

    /// No effect where it is a member.
    public mutating func add(_ position: Int) {
        let i = firstRange(endingBehind: position)
        if i < ranges.count && ranges[i].lowerBound <= position { return }
        let joinsPrevious = i > 0 && ranges[i - 1].upperBound == position
        let joinsNext = i < ranges.count && ranges[i].lowerBound == position + 1
        switch (joinsPrevious, joinsNext) {
        case (true, true):
            ranges[i - 1] = ranges[i - 1].lowerBound..<ranges[i].upperBound
            ranges.remove(at: i)
        case (true, false): ranges[i - 1] = ranges[i - 1].lowerBound..<position + 1
        case (false, true): ranges[i] = position..<ranges[i].upperBound
        case (false, false): ranges.insert(position..<position + 1, at: i)
        }
    }

    /// No effect where it is no member; what follows keeps its position.
    public mutating func remove(_ position: Int) {
        let i = firstRange(endingBehind: position)
        guard i < ranges.count, ranges[i].lowerBound <= position else { return }
        let r = ranges[i]
        var parts: [Range<Int>] = []
        if r.lowerBound < position { parts.append(r.lowerBound..<position) }
        if position + 1 < r.upperBound { parts.append(position + 1..<r.upperBound) }
        ranges.replaceSubrange(i...i, with: parts)
    }

    /// Members of either set.
    public mutating func formUnion(_ other: PositionSet) { for p in other { add(p) } }
    /// Members of this set that are none of the other.
    public func subtracting(_ other: PositionSet) -> PositionSet { PositionSet(filter { !other.contains($0) }) }

    /// The absolute position of the `position`-th place that is not a member.
    public func shift(_ position: Int) -> Int {
        var p = position
        for r in ranges {
            if r.lowerBound > p { break }
            p += r.count
        }
        return p
    }

    /// The number of places before `position` that are no members.
    public func unshift(_ position: Int) -> Int { position - count(below: position) }

    /// Members from `position` on move up by one; a range that contains `position` in its middle is cut.
    public mutating func shiftForInsert(_ position: Int) {
        var i = firstRange(endingBehind: position)
        if i < ranges.count, ranges[i].lowerBound < position {
            let r = ranges[i]
            ranges[i] = r.lowerBound..<position
            ranges.insert(position + 1..<r.upperBound + 1, at: i + 1)
            i += 2
        }
        while i < ranges.count {
            ranges[i] = ranges[i].lowerBound + 1..<ranges[i].upperBound + 1
            i += 1
        }
    }

    /// `shiftForInsert`, then adds `position`.
    public mutating func insertAt(_ position: Int) {
        shiftForInsert(position)
        add(position)
    }

    /// Drops `position`; members behind it move down by one.
    public mutating func eraseAt(_ position: Int) {
        remove(position)
        var i = firstRange(endingBehind: position)
        let first = i
        while i < ranges.count {
            ranges[i] = ranges[i].lowerBound - 1..<ranges[i].upperBound - 1
            i += 1
        }
        if first > 0 && first < ranges.count && ranges[first - 1].upperBound == ranges[first].lowerBound {
            ranges[first - 1] = ranges[first - 1].lowerBound..<ranges[first].upperBound
            ranges.remove(at: first)
        }
    }

    /// A member is dropped and nil returned; else members behind move down and `unshift(position)` is returned.
    public mutating func eraseOrUnshift(_ position: Int) -> Int? {
        let result = contains(position) ? nil : unshift(position)
        eraseAt(position)
        return result
    }

    /// Adds `shift(position)` and returns it.
    @discardableResult
    public mutating func addShifted(_ position: Int) -> Int {
        let p = shift(position)
        add(p)
        return p
    }
}
