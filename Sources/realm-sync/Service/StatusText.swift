/// The state of the service for people.
enum StatusText {
    /// A table with a line for each stream, and below it what is wrong.
    static func table(_ all: ServiceReport, onlyProblems: Bool = false) -> String {
        let report = onlyProblems ? all.problems : all
        var table = TextTable(["NAME", "STATE", ">VERSION", ">BEHIND", ">BYTES", ">SECONDS", "NEXT TRY", "SOURCE", "TARGET"])
        for stream in report.streams {
            table.add([
                stream.name,
                stream.verdict == .fine || stream.state == stream.verdict.text
                    ? stream.state : "\(stream.state), \(stream.verdict.text)",
                stream.version.map { String($0) } ?? "-", stream.lagVersions.map { String($0) } ?? "-",
                stream.lagBytes.map { Units.text(bytes: $0) } ?? "-",
                Units.fixed(stream.lagSeconds, 1), stream.nextTry.map { "in \(Units.text(seconds: $0))" } ?? "-", stream.source,
                stream.target,
            ])
        }
        var lines = report.streams.isEmpty ? [] : table.lines
        if all.streams.isEmpty { lines = ["nothing is configured, or no file was found"] }
        if let error = report.configurationError {
            lines.append("the configuration was not loaded again: \(Text.visible(error))")
        }
        lines += report.folderErrors.map { Text.visible($0) }
        for stream in report.streams {
            if let trouble = trouble(stream) { lines.append("\(Text.visible(stream.name)): \(Text.visible(trouble))") }
        }
        lines.append("\(all.summary); running for \(Units.text(seconds: report.upSeconds))")
        return lines.joined(separator: "\n") + "\n"
    }

    private static func trouble(_ stream: StreamFacts) -> String? {
        if let progress = stream.progress {
            return "an image is copied: \(Units.text(bytes: progress.bytesDone)) of \(Units.text(bytes: progress.bytesTotal))"
        }
        if stream.verdict == .fine && stream.waitsFor == nil { return nil }
        let text = stream.verdict == .failed ? stream.lastError : stream.waitsFor
        if let text { return text }
        if stream.lagSeconds > 0, !stream.isAnswering {
            return "does not answer: it hangs in a call, or the other side is frozen"
        }
        return nil
    }

    /// One stream on one line, for the log.
    static func line(_ stream: StreamFacts) -> String {
        var text = "\(stream.state), version \(stream.version.map { String($0) } ?? "-")"
        if stream.lagSeconds > 0 { text += ", \(Units.fixed(stream.lagSeconds, 1)) s behind" }
        if let versions = stream.lagVersions, versions > 0 { text += ", \(versions) versions behind" }
        if let trouble = trouble(stream) { text += "; \(trouble)" }
        return text
    }
}
