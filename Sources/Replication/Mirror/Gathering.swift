import SystemCalls

/// The rhythm of a mirror: a lone commit is carried over at once; commits that follow each other gather, so that those who make
/// them hardly meet the mirror.
///
/// What a step costs whoever commits is not the copying but the meeting: for a moment both want the same locks, the same lines of
/// the caches, and on a small machine the same processor; and the first commit after a step takes away the history and the space
/// that the old version needed. A step for each hundred commits costs them a hundredth of that. More of them would cost more
/// again, since history and free space of all that was gathered are written down with each commit. History travels along, so
/// nothing is lost for the readers of a replica, who see several commits at once.
///
/// The pause between the beginnings of two steps is as long as a hundred commits take, or sixteen steps, whichever is longer, up
/// to a limit; and no longer than a quarter of a millisecond for each commit in the row so far. The row ends with a pause of 10
/// ms between commits.
struct Gathering {
    private let limit: Int64
    /// The beginning of the last step, and the earliest one of the next.
    private var begin: Int64 = 0
    private var due: Int64 = 0
    private var commitsInRow: Int64 = 0
    /// Between two commits of the row, at a mean.
    private var interval: Int64 = 0
    private var waitsForItsTurn = false

    /// Commits that are closer to each other, at a mean between two steps, are in a row.
    static let rowNanoseconds: Int64 = 10_000_000
    /// So much longer is the pause for each commit in the row.
    static let growthNanoseconds: Int64 = 250_000
    /// So many commits are gathered, if that does not take too long.
    static let commitCount: Int64 = 100
    /// A pause is at least so many times as long as the step before it.
    static let stepCount: Int64 = 16
    /// Shorter pauses are none.
    static let pauseNanosecondsMin: Int64 = 1_000_000
    /// Who waits for longer asks in between whether somebody wants something.
    private static let waitMillisecondsMax: Int64 = 50

    /// - Parameter limit: the longest pause; 0 for none.
    init(limit: Duration) {
        let (seconds, attoseconds) = limit.components
        self.limit = seconds >= 3600 ? 3_600_000_000_000 : max(0, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// There is something new: so many milliseconds are to pass before it is asked again, 0 to begin with the step.
    func wait(at now: Int64) -> Int32 {
        if now >= due { return 0 }
        return Int32(max(1, min(Self.waitMillisecondsMax, (due - now) / 1_000_000)))
    }

    /// A step of so many commits begins.
    mutating func stepBegins(versions: UInt64, at now: Int64) {
        let count = Int64(clamping: versions)
        let (allowed, isHuge) = count.multipliedReportingOverflow(by: Self.rowNanoseconds)
        commitsInRow = isHuge || now - begin < allowed ? min(commitsInRow + min(count, 1 << 20), 1 << 20) : 0
        interval = commitsInRow > 0 ? max(0, now - begin) / max(1, count) : 0
        begin = now
        due = 0
    }

    /// The step is done; the next one waits for a while.
    mutating func stepIsDone(at now: Int64) {
        let wanted = max(Self.commitCount * min(interval, Self.rowNanoseconds), Self.stepCount * max(0, min(now - begin, limit)))
        let pause = min(limit, min(wanted, commitsInRow * Self.growthNanoseconds))
        due = pause < Self.pauseNanosecondsMin ? 0 : begin + pause
        yield(due != 0)
    }

    /// The thread of a mirror that lets commits gather does not push whoever makes them from a processor. To be called with false
    /// at the end, by the thread that has called `stepBegins`.
    mutating func yield(_ waits: Bool) {
        if waits == waitsForItsTurn { return }
        waitsForItsTurn = waits && SystemCalls.setWaitsForItsTurn(true)
        if !waits { SystemCalls.setWaitsForItsTurn(false) }
    }
}
