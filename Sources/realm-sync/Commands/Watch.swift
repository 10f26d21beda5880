import Notifier
import SharedStore
import SystemCalls

extension Command {
    static let watch = Command(
        name: "watch",
        summary: "Print a line for every committed version as it happens, until interrupted.",
        details: [
            "Versions that follow each other quickly may come as one line, with the last of them. The file may be replaced, deleted and made anew "
                + "meanwhile; that is told too.",
        ],
        operands: [.file],
        options: [.keyFile, .value("count", "n", "N", "End after N lines."), .flag("json", "j", "Write each line as a JSON object.")],
        run: runWatch)
}

private func runWatch(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE")
    let key = try Database.key(invocation)
    let count = try invocation.arguments.integer("count", in: 1...Int.max) ?? Int.max
    /// The newest version, or the last known one while the file is being replaced.
    let last = try ImmutableFile(path: path, key: key).group.version()
    let signals = try SignalListener([.interrupt, .terminate, .hangup])
    let console = invocation.console
    let options = Notifier.Options(createsFIFO: false, lastSeenVersion: last, onWarning: { console.message("\($0)") })
    let subscription = Notifier.shared.subscribe(path: path, options: options, newestVersion: {
        (try? ImmutableFile(path: path, key: key).group.version()) ?? last
    })
    defer { subscription.cancel() }
    let descriptor = try subscription.eventDescriptor()
    let writer = EventWriter(invocation)
    try writer.write(.committed(version: last))
    var written = 1
    while written < count, signals.next() == nil {
        guard signals.wait(orReadable: [descriptor]) else { continue }
        for event in subscription.takeEvents() where written < count {
            try writer.write(event)
            written += 1
        }
    }
    return .ok
}

private struct EventWriter {
    private let output: OutputStream
    private let isJSON: Bool

    init(_ invocation: Invocation) {
        output = invocation.output
        isJSON = invocation.wantsJSON
    }

    /// Writes one line at once, so that a program that reads it learns of the event as it happens.
    func write(_ event: Notifier.Event) throws {
        let time = Units.text(nanosecondsSince1970: SystemCalls.realTimeNanoseconds())
        let (name, version): (String, UInt64?) = switch event {
        case .committed(let version): ("version", version)
        case .fileReplaced: ("replaced", nil)
        case .fileDeleted: ("deleted", nil)
        case .fileAppeared: ("appeared", nil)
        }
        if isJSON {
            try output.line(JSONText.object([("time", .string(time)), ("event", .string(name)), ("version", JSONText(version))]).text)
        } else {
            try output.line("\(time) " + (version.map { "version \($0)" } ?? "file \(name)"))
        }
        try output.flush()
    }
}
