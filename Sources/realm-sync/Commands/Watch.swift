import Glibc
import Notifier
import SharedStore
import Synchronization
import SystemCalls

extension Command {
    static let watch = Command(
        name: "watch",
        summary: "Print a line for every committed version as it happens, until interrupted.",
        details: [
            "Versions that follow each other quickly may come as one line, with the last of them. The file may be replaced, deleted "
                + "and made anew meanwhile, or be cut to nothing; that is told too. It ends when nobody reads its output any more."
        ],
        operands: [.file],
        options: [
            .keyFile, .immutable, .value("count", "n", "N", "End after N lines."),
            .flag("json", "j", "Write each line as a JSON object."),
        ],
        run: runWatch)
}

private func runWatch(_ invocation: Invocation) throws -> ExitCode {
    let limit = try invocation.arguments.integer("count", in: 1...Int.max) ?? Int.max
    let writer = EventWriter(invocation, limit)
    let signals = try SignalListener([.interrupt, .terminate, .hangup])
    var attachment = try Attachment(invocation)
    try writer.write(.committed(version: attachment.firstVersion))
    let path = invocation.arguments.operand("FILE")
    var isEmpty = false
    while !writer.isDone, signals.next() == nil {
        signals.wait(orReadable: [attachment.descriptor], milliseconds: 1000)
        // Neither of the two is an event: nobody commits when a file is cut to nothing, or when the reader of our output goes.
        if !OutputStream.hasReader(STDOUT_FILENO) { return .ok }
        let wasEmpty = isEmpty
        isEmpty = (try? SystemCalls.status(path: path))?.size == 0
        if isEmpty && !wasEmpty, !writer.isDone { try writer.writeEmptied() }
        for event in attachment.subscription.takeEvents() where !writer.isDone {
            try writer.write(event)
            guard event == .fileReplaced || event == .fileAppeared else { continue }
            // The session of the old file is no use any more; what is still to come of its events neither.
            guard let next = try attachAgain(invocation, signals) else { return .ok }
            attachment = next
            if !writer.isDone { try writer.write(.committed(version: attachment.firstVersion)) }
            break
        }
    }
    return .ok
}

/// Opens the file that stands at the path now. It may be still in the making: that is waited for. Nil when a signal came.
private func attachAgain(_ invocation: Invocation, _ signals: SignalListener) throws -> Attachment? {
    let intervalMilliseconds: Int32 = 100
    let attemptsMax = 100
    for attempt in 1...attemptsMax {
        do { return try Attachment(invocation) } catch  where attempt < attemptsMax {
            signals.wait(milliseconds: intervalMilliseconds)
            if signals.next() != nil { return nil }
        }
    }
    return nil
}

/// One file that is being watched, and its session if it has one.
private struct Attachment {
    let firstVersion: UInt64
    let subscription: Subscription
    let descriptor: Int32

    init(_ invocation: Invocation) throws {
        let path = invocation.arguments.operand("FILE")
        let key = try Database.key(invocation)
        let (file, member) = try SteadyReading.attempt(path) {
            let file = try ImmutableFile(path: path, key: key)
            return (file, try Database.join(file, key, invocation))
        }
        let newest = NewestVersion(member, path, key, first: try file.group.version())
        firstVersion = newest.now
        let console = invocation.console
        let options = Notifier.Options(
            createsFIFO: member != nil, lastSeenVersion: firstVersion, onWarning: { console.message("note: \($0)") })
        subscription = Notifier.shared.subscribe(path: path, options: options, newestVersion: { newest.now })
        descriptor = try subscription.eventDescriptor()
    }
}

/// What the listener asks: the newest version of the session, or of the file where there is none. The last known one where
/// nothing can be learned, while the file is being replaced for example.
private final class NewestVersion: Sendable {
    private let member: SessionMember?
    private let path: String
    private let key: EncryptionKey?
    private let last: Atomic<UInt64>

    init(_ member: SessionMember?, _ path: String, _ key: EncryptionKey?, first: UInt64) {
        (self.member, self.path, self.key) = (member, path, key)
        last = Atomic(first)
    }

    var now: UInt64 {
        let version = member != nil ? member?.newestVersion : try? ImmutableFile(path: path, key: key).group.version()
        if let version { last.store(version, ordering: .relaxed) }
        return last.load(ordering: .relaxed)
    }
}

private final class EventWriter {
    private let output: OutputStream
    private let isJSON: Bool
    private var remaining: Int

    init(_ invocation: Invocation, _ limit: Int) {
        output = invocation.output
        isJSON = invocation.wantsJSON
        remaining = limit
    }

    var isDone: Bool { remaining == 0 }

    /// The file has no bytes any more: who has it open cannot go on.
    func writeEmptied() throws { try write("emptied", nil) }

    func write(_ event: Notifier.Event) throws {
        let (name, version): (String, UInt64?) =
            switch event {
            case .committed(let version): ("version", version)
            case .fileReplaced: ("replaced", nil)
            case .fileDeleted: ("deleted", nil)
            case .fileAppeared: ("appeared", nil)
            }
        try write(name, version)
    }

    /// Writes one line at once, so that a program that reads it learns of the event as it happens.
    private func write(_ name: String, _ version: UInt64?) throws {
        remaining -= 1
        let time = Units.text(nanosecondsSince1970: SystemCalls.realTimeNanoseconds())
        if isJSON {
            let members: [(String, JSONText)] = [
                ("time", .string(time)), ("event", .string(name)), ("version", JSONText(version)),
            ]
            try output.line(JSONText.object(members).text)
        } else {
            try output.line("\(time) " + (version.map { "version \($0)" } ?? "file \(name)"))
        }
        try output.flush()
    }
}
