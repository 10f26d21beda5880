import Glibc
import SystemCalls

/// What a service tells the manager that has started it: one datagram of lines `KEY=value` to the socket that `NOTIFY_SOCKET`
/// names (sd_notify(3)). Without that variable nothing is told.
struct ServiceManager: Sendable {
    private let socket: String?
    /// How often a sign of life is wanted: half of what the manager waits; nil for not at all.
    let watchdogMilliseconds: Int32?

    init(environment: (String) -> String?) {
        socket = environment("NOTIFY_SOCKET").flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
        // Meant for another process where it names one.
        let isOurs = environment("WATCHDOG_PID").map { $0 == String(getpid()) } ?? true
        let interval = environment("WATCHDOG_USEC").flatMap { Int64($0) } ?? 0
        watchdogMilliseconds = socket != nil && isOurs && interval > 0 ? Int32(clamping: max(1, interval / 2000)) : nil
    }

    private func tell(_ lines: [String]) {
        guard let socket else { return }
        // The manager's absence is not ours to mend.
        try? LocalSocket.sendDatagram(lines.joined(separator: "\n"), to: socket)
    }

    func ready(_ status: String) { tell(["READY=1", "MAINPID=\(getpid())", "STATUS=\(status)"]) }
    func status(_ text: String) { tell(["STATUS=\(Text.oneLine(text))"]) }
    func reloading() { tell(["RELOADING=1", "MONOTONIC_USEC=\(SystemCalls.monotonicNanoseconds() / 1000)"]) }
    func stopping() { tell(["STOPPING=1", "STATUS=stopping"]) }
    func alive() { tell(["WATCHDOG=1"]) }
}
