import Glibc
import SharedStore

extension Command {
    static let export = Command(
        name: "export",
        summary: "Write all objects of a file as JSON to standard output.",
        details: [
            "The newest version is written, with its classes, their properties and all objects. Values that JSON lacks are objects "
                + "of one member: {\"$date\": [seconds, nanoseconds]}, {\"$data\": base64}, {\"$link\": [class, key]} and so on. The text is "
                + "streamed: memory does not grow with the file."
        ],
        operands: [.file],
        options: [.keyFile, .immutable, .flag("lines", "l", "Write each object on a line of its own.")],
        run: runExport)
}

private func runExport(_ invocation: Invocation) throws -> ExitCode {
    let database = try Database.open(invocation)
    // A progress line between pieces of text on the same terminal would help nobody.
    let progress = isatty(STDOUT_FILENO) == 1 ? nil : Progress("written", total: nil, unit: .bytes, on: invocation.console)
    defer { progress?.end() }
    let style: JSONExporter.Style = invocation.arguments.has("lines") ? .lines : .compact
    var byteCount = 0
    try withoutActuallyEscaping({ (piece: UnsafeRawBufferPointer) in
        try invocation.output.write(piece)
        byteCount += piece.count
        progress?.update(byteCount)
    }) { try JSONExporter.export(database.group, style: style, to: $0) }
    if style == .compact { try invocation.output.write("\n") }
    return .ok
}
