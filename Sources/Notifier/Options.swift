extension Notifier {
    /// How a subscription listens.
    public struct Options: Sendable {
        /// The directory for the FIFO where it cannot lie beside the database. All participants must name the same one.
        public var fallbackDirectory: String?
        /// False for read-only openings, which must leave no file behind: only a FIFO that is there already is used, and
        /// its absence is no cause for a warning.
        public var createsFIFO: Bool
        /// The version that the caller knows already. Where the newest one is another by the time the subscription stands,
        /// an event comes at once, so that nothing is missed in between. Nil: everything up to now is known.
        public var lastSeenVersion: UInt64?
        /// The interval in which the newest version and the files are looked at although nothing was heard.
        public var netMilliseconds: Int
        /// The same where no FIFO is to be had.
        public var tightNetMilliseconds: Int
        /// While commits follow each other, do not wait for the FIFO but look by the clock, at first often, then in intervals of
        /// so long: to wake somebody costs whoever commits more than the commit may. It is over when nothing was new for 10 ms. 0
        /// for never; where there are several subscriptions of a path in a process, the longest of theirs counts.
        public var busyMicroseconds: Int
        /// Called at most once for each kind of trouble and path.
        public var onWarning: @Sendable (Warning) -> Void

        /// Intervals that are not positive stop the process.
        public init(
            fallbackDirectory: String? = nil, createsFIFO: Bool = true, lastSeenVersion: UInt64? = nil,
            netMilliseconds: Int = 500, tightNetMilliseconds: Int = 25, busyMicroseconds: Int = 0,
            onWarning: @escaping @Sendable (Warning) -> Void = Notifier.printWarning
        ) {
            precondition((0...100_000).contains(busyMicroseconds), "a busy listener must look ten times a second at least")
            precondition(netMilliseconds > 0 && tightNetMilliseconds > 0, "an interval must be at least one millisecond")
            self.fallbackDirectory = fallbackDirectory
            self.createsFIFO = createsFIFO
            self.lastSeenVersion = lastSeenVersion
            self.netMilliseconds = netMilliseconds
            self.tightNetMilliseconds = tightNetMilliseconds
            self.busyMicroseconds = busyMicroseconds
            self.onWarning = onWarning
        }
    }

    /// What a subscriber hears.
    public enum Event: Sendable, Hashable {
        /// The newest version is now this one. Several commits may come as one event.
        case committed(version: UInt64)
        /// Another file stands at the path (a compaction, a restored copy): open it anew.
        case fileReplaced
        /// No file is at the path any more.
        case fileDeleted
        /// A file is at the path where there was none.
        case fileAppeared
    }
}
