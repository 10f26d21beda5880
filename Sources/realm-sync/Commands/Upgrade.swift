import SharedStore

extension Command {
    static let upgrade = Command(
        name: "upgrade",
        summary: "Bring a file of an older format to the present one.",
        details: [
            "Formats 10, 11 and 20 to 23 are upgraded in one commit; who has the file open with software of an older kind cannot go on then. A copy of "
                + "the file as it was stays beside it for 93 days, named like 'data.v23.backup.realm', where the disk has room."
        ],
        operands: [.file],
        options: [
            .keyFile,
            .flag("dry-run", "n", "Only say what would be done."),
            .flag("no-backup", nil, "Make no copy of the file as it was."),
        ],
        run: runUpgrade)
}

private func runUpgrade(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE"), name = Text.visible(path), current = FileHeader.currentFormat
    let key = try Database.key(invocation)
    let file = try SteadyReading.file(path, key: key)
    let format = file.layout.format
    if file.layout.topRef == 0 || format == Int(current) {
        try invocation.output.line("\(name): nothing to do, it is of format \(current)")
        return .ok
    }
    // Only a local history can go on; opening would refuse others too, and a dry run shall say so.
    let history = try file.group.historyType()
    if history != 0 && history != 2 { throw OpenError.incompatibleHistory(path: path, found: history, expected: 2) }
    let backup = StoreFiles.backupPath(path, ofFormat: format)
    if invocation.arguments.has("dry-run") {
        let copy =
            invocation.arguments.has("no-backup") ? "no copy would be kept" : "a copy would be kept as \(Text.visible(backup))"
        try invocation.output.line("\(name): would be upgraded from format \(format) to \(current); \(copy)")
        return .ok
    }
    Ending.obeySignals()
    var options = StoreOptions()
    options.createsFile = false
    options.encryptionKey = key
    options.keepsBackups = !invocation.arguments.has("no-backup")
    options.label = "\(Program.name) \(invocation.name)"
    let console = invocation.console
    options.onWarning = { console.message("note: \($0)") }
    do { try Store.open(path, options).close() } catch let error as FormatError { throw OpenError.damaged(path: path, error) }
    try invocation.output.line("\(name): upgraded from format \(format) to \(current)")
    return .ok
}
