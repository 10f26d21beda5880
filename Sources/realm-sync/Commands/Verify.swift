import SharedStore

extension Command {
    static let verify = Command(
        name: "verify",
        summary: "Check every rule of the file format over a whole file, or a version of an archive.",
        details: [
            "Every byte of the file must belong to exactly one node or to the free space, every node must have its form, and what is "
                + "stored twice (links and backlinks, objects and index entries) must agree. Each finding says where and what. The file is "
                + "only read; where others have it open, the newest version of their session is.",
            "Where FILE is an archive, its newest version is restored to scratch, with all checksums and hashes, and checked so; fit for a timer, since the "
                + "archive is only read. With --every, versions at equal distances are checked too.",
        ],
        operands: [.file],
        options: [
            .keyFile, .immutable, .value("limit", "n", "N", "Show at most N errors and N warnings (100 where none is given)."),
            .json,
            .value("version", "v", "N", "Of an archive: check this version instead of the newest."),
            .value("every", "e", "N", "Of an archive: check every N-th version too."),
            .value("scratch", nil, "DIR", "Of an archive: the folder for the scratch file (TMPDIR)."),
        ] + ArchiveAddress.options,
        exitCodes: [(.ok, "the file is sound"), (.damageFound, "it is damaged")],
        run: runVerify)
}

private func runVerify(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE")
    if ArchiveAddress.isPlace(path) { return try verifyArchive(invocation, ArchiveAddress.place(invocation, path)) }
    for name in ["version", "every", "scratch", "endpoint", "region"] where invocation.arguments.has(name) {
        throw invocation.arguments.usageError("--\(name) is for archives, and \(Text.visible(path)) is none")
    }
    let limit = try invocation.arguments.integer("limit", in: 0...1_000_000) ?? 100
    var options = VerifierOptions()
    options.findingLimit = limit
    options.findingsPerCode = limit
    let report = try report(invocation, path, options)
    if invocation.wantsJSON {
        try invocation.output.line(json(report, path).text)
    } else {
        for finding in report.findings { try invocation.output.line(Text.oneLine("\(finding)")) }
        if report.unlisted > 0 { try invocation.output.line("... and \(report.unlisted) more") }
        try invocation.output.line(summary(report, path))
    }
    return report.isSound ? .ok : .damageFound
}

private func report(_ invocation: Invocation, _ path: String, _ options: VerifierOptions) throws -> VerificationReport {
    Ending.obeySignals()
    let key = try Database.key(invocation)
    if !invocation.arguments.has("immutable"), SessionProbe.look(path) == .live,
        let file = try? SteadyReading.file(path, key: key),
        let member = try Database.join(file, key, invocation)
    {
        let transaction = try member.store.beginRead()
        return try withExtendedLifetime(transaction) {
            try Verifier.verify(
                memory: transaction.memory, snapshot: transaction.snapshot, form: .inPlace, format: FileHeader.currentFormat,
                physicalSize: nil, header: nil, options: options)
        }
    }
    if let key {
        do { return try verifyEncrypted(path, key, options) } catch let error as OpenError {
            // What is wrong with header or top is a finding, as of a plain file; a wrong key is none.
            guard error.isDamage else { throw error }
            let mapping = try FileMapping.open(path: path, key: key)
            return try withExtendedLifetime(mapping) {
                try Verifier.verify(wholeFile: mapping.memory, byteCount: mapping.byteCount, options: options)
            }
        }
    }
    // What does not even begin like a realm file is no damaged one: another file, or one that wants its key.
    do { _ = try ImmutableFile(path: path) } catch let error as OpenError { if case .notARealm = error { throw error } } catch {}
    return try verifyAlone(path, options)
}

/// Verifies the bytes as they are: whatever is wrong with the header is a finding too. Again where somebody has committed
/// meanwhile.
private func verifyAlone(_ path: String, _ options: VerifierOptions) throws -> VerificationReport {
    for _ in 0..<3 {
        let mapping = try FileMapping.open(path: path)
        let header = Array(mapping.bytes.prefix(FileHeader.byteCount))
        let report = try withExtendedLifetime(mapping) { try Verifier.verify(file: mapping.bytes, options: options) }
        if Array(mapping.bytes.prefix(FileHeader.byteCount)) == header { return report }
    }
    throw CommandFailure(.tryAgain, "\(path): was written to while it was read; try again, or stop those who write")
}

private extension OpenError {
    /// The file's own fault, of the kind that verification tells of in findings.
    var isDamage: Bool {
        switch self {
        case .tooSmall, .oddSize, .truncated, .damaged: true
        default: false
        }
    }
}

/// Verifies an encrypted file that nobody writes to.
func verifyEncrypted(_ path: String, _ key: EncryptionKey, _ options: VerifierOptions) throws -> VerificationReport {
    let file = try ImmutableFile(path: path, key: key)
    var logicalSize = file.layout.fileLimit
    if file.layout.isStreaming, file.layout.topRef != 0 {
        // An encrypted copy is filled up to a page between content and footer (file-format-1 1.3), which is no content.
        let stated = try file.memory.node(file.layout.topRef).tagged(TopSlot.logicalSize)
        logicalSize = min(logicalSize, max(FileHeader.byteCount, stated))
        file.memory.state.pointee.fileLimit = logicalSize
    }
    let snapshot = Snapshot(version: try file.group.version(), topRef: file.layout.topRef, logicalSize: logicalSize)
    return try withExtendedLifetime(file) {
        try Verifier.verify(
            memory: file.memory, snapshot: snapshot, form: file.layout.isStreaming ? .streaming : .inPlace,
            format: file.layout.header.liveFormat, physicalSize: file.layout.isStreaming ? nil : file.fileSize,
            header: file.layout.header, options: options)
    }
}

private func summary(_ report: VerificationReport, _ path: String) -> String {
    // Tables of the object layer itself have rows too.
    let seen =
        "\(Text.count(report.objectCount, "row")) in \(Text.count(report.tableCount, "table")), \(Text.count(report.nodeCount, "node")), "
        + "\(Units.text(bytes: report.nodeByteCount)) used, \(Units.text(bytes: report.freeByteCount)) free, "
        + Units.text(seconds: Double(report.elapsedNanoseconds) / 1e9)
    let warnings = report.warningCount == 0 ? "" : ", \(Text.count(report.warningCount, "warning"))"
    if report.isSound { return "\(Text.visible(path)): sound\(warnings) (\(seen))" }
    let end = report.isComplete ? "" : ", and the check could not be finished"
    return "\(Text.visible(path)): damaged: \(Text.count(report.errorCount, "error"))\(warnings)\(end) (\(seen))"
}

private func json(_ report: VerificationReport, _ path: String) -> JSONText {
    .object([
        ("path", .string(path)),
        ("sound", .bool(report.isSound)),
        ("complete", .bool(report.isComplete)),
        ("errors", .integer(report.errorCount)),
        ("warnings", .integer(report.warningCount)),
        ("unlisted", .integer(report.unlisted)),
        (
            "findings",
            .array(
                report.findings.map { finding in
                    .object([
                        ("severity", .string(finding.severity.rawValue)), ("code", .string(finding.code.rawValue)),
                        ("table", JSONText(finding.table)), ("column", JSONText(finding.column)),
                        ("object", finding.object.map { .integer(Int($0.rawValue)) } ?? .null),
                        ("ref", .integer(finding.ref)), ("what", .string(finding.what)),
                    ])
                })
        ),
        ("tables", .integer(report.tableCount)),
        ("objects", .integer(report.objectCount)),
        ("nodes", .integer(report.nodeCount)),
        ("nodeBytes", .integer(report.nodeByteCount)),
        ("freeBytes", .integer(report.freeByteCount)),
        ("leakedBytes", .integer(report.leakedByteCount)),
    ])
}
