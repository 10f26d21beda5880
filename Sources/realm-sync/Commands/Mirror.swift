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
        ],
        operands: [Operand(name: "SOURCE", help: "The realm file to copy from."), Operand(name: "DEST", help: "The realm file to make.")],
        options: [
            .flag("once", "1", "Copy the newest version and end."),
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
    guard arguments.has("once") else { throw arguments.usageError("say --once") }
    return try mirrorOnce(invocation, source, destination, options)
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
