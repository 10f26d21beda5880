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
    /// it, nor make it longer.
    static func waitForRequest(_ control: Control, _ descriptors: [Int32], _ milliseconds: Int32, onStatus: () -> Void)
        -> Request?
    {
        let end = SystemCalls.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
        var left = milliseconds
        while true {
            let request = control(descriptors, left)
            if request != .status { return request }
            onStatus()
            if milliseconds > 0 { left = Int32(clamping: max(0, (end - SystemCalls.monotonicNanoseconds()) / 1_000_000)) }
        }
    }
}
