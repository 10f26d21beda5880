import SharedStore

extension Command {
    static let verify = Command(
        name: "verify",
        summary: "Check every rule of the file format over a whole file.",
        details: [
            "Every byte of the file must belong to exactly one node or to the free space, every node must have its form, and what is stored twice "
                + "(links and backlinks, objects and index entries) must agree. Each finding says where and what. The file is only read.",
        ],
        operands: [.file],
        options: [.keyFile, .value("limit", "n", "N", "Show at most N findings (100 where none is given)."), .json],
        exitCodes: [(.ok, "the file is sound"), (.damageFound, "it is damaged")],
        run: runVerify)
}

private func runVerify(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE")
    let limit = try invocation.arguments.integer("limit", in: 0...1_000_000) ?? 100
    var options = VerifierOptions()
    options.findingLimit = limit
    options.findingsPerCode = limit
    let report = try verify(path, Database.key(invocation), options)
    if invocation.wantsJSON {
        try invocation.output.line(json(report, path).text)
    } else {
        for finding in report.findings { try invocation.output.line(Text.oneLine("\(finding)")) }
        if report.unlisted > 0 { try invocation.output.line("... and \(report.unlisted) more") }
        try invocation.output.line(summary(report, path))
    }
    return report.isSound ? .ok : .damageFound
}

private func verify(_ path: String, _ key: EncryptionKey?, _ options: VerifierOptions) throws -> VerificationReport {
    guard let key else {
        // Whatever is wrong with the header is a finding too, so the file is not opened in the usual way.
        let mapping = try FileMapping.open(path: path)
        return try withExtendedLifetime(mapping) { try Verifier.verify(file: mapping.bytes, options: options) }
    }
    let file = try ImmutableFile(path: path, key: key)
    var logicalSize = file.layout.fileLimit
    if file.layout.isStreaming, file.layout.topRef != 0 {
        // An encrypted copy is filled up to a page between content and footer (file-format-1 1.3), which is no content.
        logicalSize = min(logicalSize, max(FileHeader.byteCount, try file.memory.node(file.layout.topRef).tagged(TopSlot.logicalSize)))
        file.memory.state.pointee.fileLimit = logicalSize
    }
    let snapshot = Snapshot(version: try file.group.version(), topRef: file.layout.topRef, logicalSize: logicalSize)
    return try withExtendedLifetime(file) {
        try Verifier.verify(
            memory: file.memory, snapshot: snapshot, form: file.layout.isStreaming ? .streaming : .inPlace, format: file.layout.header.liveFormat,
            physicalSize: file.layout.isStreaming ? nil : file.fileSize, header: file.layout.header, options: options)
    }
}

private func summary(_ report: VerificationReport, _ path: String) -> String {
    let seen = "\(report.tableCount) tables, \(report.objectCount) objects, \(report.nodeCount) nodes, "
        + "\(Units.text(bytes: report.nodeByteCount)) used, \(Units.text(bytes: report.freeByteCount)) free, "
        + Units.text(seconds: Double(report.elapsedNanoseconds) / 1e9)
    let warnings = report.warningCount == 0 ? "" : ", \(report.warningCount) warnings"
    if report.isSound { return "\(Text.visible(path)): sound\(warnings) (\(seen))" }
    let end = report.isComplete ? "" : ", and the check could not be finished"
    return "\(Text.visible(path)): damaged: \(report.errorCount) errors\(warnings)\(end) (\(seen))"
}

private func json(_ report: VerificationReport, _ path: String) -> JSONText {
    .object([
        ("path", .string(path)),
        ("sound", .bool(report.isSound)),
        ("complete", .bool(report.isComplete)),
        ("errors", .integer(report.errorCount)),
        ("warnings", .integer(report.warningCount)),
        ("unlisted", .integer(report.unlisted)),
        ("findings", .array(report.findings.map { finding in
            .object([
                ("severity", .string(finding.severity.rawValue)), ("code", .string(finding.code.rawValue)), ("table", JSONText(finding.table)),
                ("column", JSONText(finding.column)), ("object", finding.object.map { .integer(Int($0.rawValue)) } ?? .null),
                ("ref", .integer(finding.ref)), ("what", .string(finding.what)),
            ])
        })),
        ("tables", .integer(report.tableCount)),
        ("objects", .integer(report.objectCount)),
        ("nodes", .integer(report.nodeCount)),
        ("nodeBytes", .integer(report.nodeByteCount)),
        ("freeBytes", .integer(report.freeByteCount)),
        ("leakedBytes", .integer(report.leakedByteCount)),
    ])
}
