import Glibc
import Replication
import SharedStore
import SystemCalls

extension Command {
    static let mirror = Command(
        name: "mirror",
        summary: "Copy a file consistently while others write to it, once or for every version.",
        details: [
            "With --once, DEST becomes a copy of the newest version of SOURCE, byte for byte where the version has bytes. It is written beside DEST, "
                + "synced and renamed, so DEST is never half a file. A file at DEST is only replaced if it is a mirror of SOURCE and nobody has it open.",
            "With --follow, every version that is committed to SOURCE afterwards is carried over too, at a cost in proportion to the change, while "
                + "others read DEST. It goes on where it stopped, whatever stopped it. SIGTERM ends it after the present version, SIGHUP makes it "
                + "open both files again, SIGUSR1 makes it write a line of status to standard output.",
            "DEST may only be read; 'promote DEST' makes it a file of its own.",
        ],
        operands: [Operand(name: "SOURCE", help: "The realm file to copy from."), Operand(name: "DEST", help: "The realm file to make.")],
        options: [
            .flag("once", "1", "Copy the newest version and end."),
            .flag("follow", "F", "Carry over every version, until told to stop."),
            .value("grace", "g", "TIME", "After --follow has ended, keep its version of SOURCE so long for the next one (15m); 0 for not at all."),
            .value("pin-limit", "p", "TIME", "While DEST cannot be written to, keep the version of SOURCE so long (10m)."),
            .value("check-every", "c", "N", "Compare every N-th step with a walk of the new version (64)."),
            .keyFile,
            .value("dest-key-file", nil, "K", "Encrypt DEST with the key in file K; without this option it has the key of SOURCE."),
            .value("dest-key-env", nil, "NAME", "The same, with a key from the environment variable NAME."),
            .flag("dest-plain", nil, "Do not encrypt DEST though SOURCE is encrypted."),
            .flag("force", "f", "Replace whatever is at DEST; the old file is kept under a dated name."),
        ],
        exitCodes: [(.tryAgain, "DEST is open, or another mirror is at work on it")],
        run: runMirror)
}

private func runMirror(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let source = arguments.operand("SOURCE"), destination = arguments.operand("DEST")
    let console = invocation.console
    var options = Mirror.Options()
    options.force = arguments.has("force")
    options.onMessage = { console.message("note: \($0)") }
    if let grace = try arguments.duration("grace") { options.pinGrace = grace }
    if let limit = try arguments.duration("pin-limit") { options.pinLimit = limit }
    options.checkInterval = try arguments.integer("check-every", in: 1...Int.max) ?? options.checkInterval
    options.sourceKey = try Database.key(invocation)
    options.destinationKey = try destinationKey(invocation, options.sourceKey)
    switch (arguments.has("once"), arguments.has("follow")) {
    case (true, false): return try mirrorOnce(invocation, source, destination, options)
    case (false, true): return try mirrorFollowing(invocation, source, destination, options)
    default: throw arguments.usageError("say either --once or --follow")
    }
}

/// The key that a replica is encrypted with; nil for a plain one.
private func destinationKey(_ invocation: Invocation, _ sourceKey: EncryptionKey?) throws -> EncryptionKey? {
    let arguments = invocation.arguments
    let key = try Database.key(invocation, file: "dest-key-file", environment: "dest-key-env")
    if arguments.has("dest-plain") {
        if key != nil { throw arguments.usageError("DEST cannot have a key and be plain") }
        return nil
    }
    return key ?? sourceKey
}

/// The progress of an image, shown by the thread that makes it.
private final class ImageProgress: @unchecked Sendable {
    // Sendable: used by the one thread that copies.
    private let console: Console
    private var progress: Progress?
    init(_ console: Console) { self.console = console }

    func update(_ now: Mirror.Progress) {
        let shown = progress ?? Progress("mirror", total: now.bytesTotal, unit: .bytes, on: console)
        progress = shown
        shown.update(now.bytesDone)
        if now.bytesDone == now.bytesTotal { end() }
    }

    func end() {
        progress?.end()
        progress = nil
    }
}

private func mirrorOnce(_ invocation: Invocation, _ source: String, _ destination: String, _ options: Mirror.Options) throws -> ExitCode {
    Ending.obeySignals()
    let progress = ImageProgress(invocation.console)
    var options = options
    options.onProgress = { progress.update($0) }
    defer { progress.end() }
    let result = try Mirror.once(source: source, destination: destination, options: options)
    try invocation.output.line(
        "\(Text.visible(destination)): version \(result.snapshot.version) of \(Text.visible(source)), \(Units.text(bytes: result.usedByteCount))")
    return .ok
}

private func mirrorFollowing(_ invocation: Invocation, _ source: String, _ destination: String, _ options: Mirror.Options) throws -> ExitCode {
    let signals = try SignalListener()
    let output = invocation.output
    let progress = ImageProgress(invocation.console)
    var options = options
    options.onProgress = { progress.update($0) }
    defer { progress.end() }
    let follower = MirrorFollower(source: source, destination: destination, options: options, onStatus: { status in
        // Where nobody reads the status any more, the mirror goes on.
        _ = try? output.line(line(status))
        _ = try? output.flush()
    }, control: { descriptors, milliseconds in
        if milliseconds != 0 { signals.wait(orReadable: descriptors, milliseconds: milliseconds) }
        switch signals.next() {
        case .interrupt, .terminate: return .stop
        case .hangup: return .reload
        case .user1: return .status
        case nil: return nil
        }
    })
    try follower.run()
    return .ok
}

private func line(_ status: MirrorFollower.Status) -> String {
    var text = "\(Text.visible(status.destination)): version \(status.version) of \(Text.visible(status.source))"
    if let version = status.sourceVersion { text += ", \(version > status.version ? version - status.version : 0) behind" } else { text += ", not connected" }
    text += "; \(status.stepCount) steps, \(Units.text(bytes: status.byteCount)), \(status.imageCount) images"
    if let seconds = status.secondsBehind, seconds > 0 { text += "; equal \(Units.text(seconds: seconds)) ago" }
    if let wait = status.waitsFor { text += "; \(Text.oneLine(wait))" }
    return text
}
