/// Timestamp, nullable or not (file-format-1 5.5).
///
/// ```
/// array of refs, 2 elements:  0 seconds, a nullable integer leaf   1 nanoseconds, an integer leaf
/// ```
/// Invariants: both children have as many values; |nanoseconds| <= 999 999 999 and of the sign of the seconds. A value is null
/// where its seconds are; its nanoseconds are then of no meaning.
@frozen public struct TimestampLeaf: Leaf {
    public let ref: Int
    /// Since 1970, negative before; null here makes the timestamp null.
    public let seconds: NullableIntLeaf
    /// Of the same sign as the seconds.
    public let nanoseconds: IntLeaf

    @inline(__always)
    public init(_ memory: Memory, _ ref: Int) throws {
        let node = try memory.node(ref)
        try node.checkRefs("timestamp leaf")
        if node.count != 2 { throw node.kindError("timestamp leaf", "an array of 2 refs") }
        self.ref = ref
        seconds = try NullableIntLeaf(memory, node.requiredRef(0))
        nanoseconds = try IntLeaf(memory, node.requiredRef(1))
        if seconds.count != nanoseconds.count {
            throw FormatError(ref: ref, "timestamp leaf has \(seconds.count) seconds and \(nanoseconds.count) nanoseconds")
        }
    }

    @inline(__always) public var count: Int { nanoseconds.count }

    /// Nil where the seconds are null.
    @inline(__always)
    public func value(_ index: Int) throws -> Timestamp? {
        try check(index, ref)
        guard let s = seconds.unchecked(index) else { return nil }
        let n = nanoseconds.unchecked(index)
        if UInt64(bitPattern: n &+ 999_999_999) > 1_999_999_998 { throw nanosecondsError(index, n) }
        return Timestamp(seconds: s, nanoseconds: Int32(truncatingIfNeeded: n))
    }

    /// True where value `index` is null; the index is trusted.
    @inline(__always)
    public func isNull(_ index: Int) -> Bool { seconds.element(index) == seconds.sentinel }

    @inline(never)
    private func nanosecondsError(_ index: Int, _ found: Int64) -> FormatError {
        FormatError(ref: ref, "timestamp \(index) has \(found) nanoseconds")
    }
}
