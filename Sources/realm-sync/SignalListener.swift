import CShims
import Glibc
import Replication
import SystemCalls

/// Receives signals on a descriptor, so that a command learns of them between two steps and never in the midst of one.
///
/// While it exists, the signals it listens to do nothing by themselves. The handler writes the number into a pipe, the only thing
/// a handler may do; a second SIGINT or SIGTERM while the first is still being obeyed ends the program at once, for users whose
/// patience is over.
///
/// There may be one at a time. Used by one thread.
final class SignalListener {
    enum Signal: Int32, CaseIterable { case hangup = 1, interrupt = 2, user1 = 10, terminate = 15 }

    /// Readable while a signal waits; wait for it with `poll` beside other descriptors.
    let descriptor: Int32
    private let writing: Int32
    private let signals: [Signal]
    private var previous: [(Signal, sigaction)] = []

    /// Throws `SystemError` where there is no descriptor left.
    init(_ signals: [Signal] = Signal.allCases) throws {
        let ends = try SystemCalls.makePipe()
        (descriptor, writing) = (ends.reading, ends.writing)
        self.signals = signals
        try SystemCalls.setNonBlocking(descriptor)
        try SystemCalls.setNonBlocking(writing)
        CShims_catch_signals_into(writing)
        for signal in signals {
            var old = sigaction()
            CShims_catch_signal(signal.rawValue, &old)
            previous.append((signal, old))
        }
    }

    deinit {
        for (signal, action) in previous {
            var action = action
            sigaction(signal.rawValue, &action, nil)
        }
        CShims_catch_signals_into(-1)
        SystemCalls.close(descriptor)
        SystemCalls.close(writing)
    }

    /// The oldest signal that waits, or nil. Never waits itself.
    func next() -> Signal? {
        withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { buffer in
            guard SystemCalls.readNonBlocking(descriptor, into: buffer, path: "") == 1 else { return nil }
            return Signal(rawValue: Int32(buffer[0]))
        }
    }

    /// Waits until a signal comes, one of `others` is readable, or the time is over; returns whether one of `others` is readable.
    @discardableResult
    func wait(orReadable others: [Int32] = [], milliseconds: Int32 = -1) -> Bool {
        var requests = ([descriptor] + others).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        poll(&requests, nfds_t(requests.count), milliseconds)
        return requests.dropFirst().contains { $0.revents != 0 }
    }

    /// What the signals mean to a follower, in the form of `MirrorFollower.Control`: waits, and tells what is asked for.
    func request(_ others: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        if milliseconds != 0 { wait(orReadable: others, milliseconds: milliseconds) }
        return switch next() {
        case .interrupt, .terminate: .stop
        case .hangup: .reload
        case .user1: .status
        case nil: nil
        }
    }
}
