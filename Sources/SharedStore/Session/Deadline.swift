import SystemCalls

/// The moment at which a wait gives up, on a clock that never jumps.
///
/// Every wait of this package has one; what happens then is `SessionError.deadlineExceeded`, which names whom was waited for.
public struct Deadline: Sendable, Comparable {
    /// Nanoseconds of the monotonic clock.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// `duration` from now. Negative durations are in the past: one attempt is made, without waiting.
    public static func after(_ duration: Duration) -> Deadline {
        let parts = duration.components
        let seconds = max(-1, min(parts.seconds, Deadline.secondsMax))
        // Of a second nobody misses the hundredth part.
        let now = seconds > 0 ? SystemCalls.coarseMonotonicNanoseconds() : SystemCalls.monotonicNanoseconds()
        return Deadline(nanoseconds: now &+ seconds &* 1_000_000_000 &+ parts.attoseconds / 1_000_000_000)
    }

    /// Longer waits than this are cut to it: about 30 years, so that no sum overflows.
    static let secondsMax: Int64 = 1_000_000_000

    /// So late that nobody lives to see it.
    public static var never: Deadline { .after(.seconds(secondsMax)) }

    /// In the past: whatever is not to be had at once fails.
    public static let immediate = Deadline(nanoseconds: 0)

    /// It is over.
    public var hasPassed: Bool { SystemCalls.monotonicNanoseconds() >= nanoseconds }

    /// Nanoseconds left, never negative.
    package var remainingNanoseconds: Int64 { max(0, nanoseconds &- SystemCalls.monotonicNanoseconds()) }

    public static func < (a: Deadline, b: Deadline) -> Bool { a.nanoseconds < b.nanoseconds }
}
