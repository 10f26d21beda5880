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

extension MirrorFollower {
    /// Waits as `control` does, and returns what ended the waiting. Who only wants to know the status gets it and does not end it.
    static func waitForRequest(_ control: Control, _ descriptors: [Int32], _ milliseconds: Int32, onStatus: () -> Void) -> Request? {
        while true {
            let request = control(descriptors, milliseconds)
            if request != .status { return request }
            onStatus()
        }
    }
}
