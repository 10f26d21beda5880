import SystemCalls

/// Waiting times between attempts, in milliseconds: each is twice the one before, from 100 to 10,000.
struct Pause {
    private var milliseconds: Int32 = 100

    /// The time to wait now, at most `limit`; the one after it is twice as long.
    mutating func next(atMost limit: Int32 = 10_000) -> Int32 {
        let now = min(milliseconds, limit)
        milliseconds = min(10_000, now * 2)
        return now
    }
}

/// Lets commits that come faster than steps gather: without it the steps of many mirrors take the processor, and the locks of the
/// session, from those who commit.
struct Gathering {
    private var stepsInRow = 0
    private var begin: Int64 = 0

    /// There is nothing to do.
    mutating func idle() { stepsInRow = 0 }

    mutating func stepBegins() { begin = SystemCalls.monotonicNanoseconds() }

    /// A step is done: so many milliseconds are to pass before the next one, none unless one has followed the other for some
    /// time.
    mutating func stepIsDone() -> Int32 {
        stepsInRow = min(stepsInRow + 1, 1000)
        if stepsInRow < 4 { return 0 }
        let milliseconds = (SystemCalls.monotonicNanoseconds() - begin) / 1_000_000
        return Int32(clamping: max(1, min(20, 2 * milliseconds)))
    }
}

/// How often in a row something that may be over next time is tried.
struct Attempts {
    /// Nil for ever.
    let limit: Int?
    private var failed = 0
    init(limit: Int?) { self.limit = limit }

    /// To be asked once after each failure.
    mutating func mayTryAgain() -> Bool {
        failed += 1
        return limit.map { failed < $0 } ?? true
    }

    mutating func succeeded() { failed = 0 }
}

extension MirrorFollower {
    /// Waits as `control` does, and returns what ended the waiting. Who only wants to know the status gets it and does not end
    /// it.
    static func waitForRequest(_ control: Control, _ descriptors: [Int32], _ milliseconds: Int32, onStatus: () -> Void)
        -> Request?
    {
        while true {
            let request = control(descriptors, milliseconds)
            if request != .status { return request }
            onStatus()
        }
    }
}
