import Glibc
import SharedStore
import SystemCalls

extension Command {
    static let copy = Command(
        name: "copy",
        summary: "Copy the newest version of a file, without free space, while others may write to it.",
        details: ["DEST must not exist; it appears whole or not at all. The copy begins a history of its own."],
        operands: [
            Operand(name: "FILE", help: "The realm file to copy from."), Operand(name: "DEST", help: "The realm file to make."),
        ],
        options: [.keyFile, .immutable],
        exitCodes: [(.cannotCreate, "DEST exists already")],
        run: { invocation in
            let destination = invocation.arguments.operand("DEST")
            // As private as its source, as far as the process's mask lets it be read.
            try makeCopy(
                invocation, destination,
                mode: (try? SystemCalls.status(path: invocation.arguments.operand("FILE")).mode & 0o666) ?? 0o600)
            try invocation.output.line(
                "\(Text.visible(destination)): \(Units.text(bytes: try SystemCalls.status(path: destination).size))")
            return .ok
        })

    static let compact = Command(
        name: "compact",
        summary: "Remove the free space of a file that nobody else has open.",
        details: [
            "Mode and owner stay. A file of an older format must be upgraded first, a mirror cannot be compacted: its source can."
        ],
        operands: [.file],
        options: [.keyFile],
        exitCodes: [(.tryAgain, "somebody has the file open")],
        run: runCompact)

    static let seedBuild = Command(
        name: "seed build",
        summary: "Make a seed file: compacted, without history, verified, read-only.",
        details: ["SEED must not exist. It is what a mobile app ships, or 'seed install' puts in place. Object keys stay."],
        operands: [
            Operand(name: "FILE", help: "The realm file to copy from."), Operand(name: "SEED", help: "The seed file to make."),
        ],
        options: [.keyFile, .immutable],
        exitCodes: [(.damageFound, "the seed did not pass the check and was removed"), (.cannotCreate, "SEED exists already")],
        run: runSeedBuild)

    static let seedInstall = Command(
        name: "seed install",
        summary: "Put a seed file in place, if no file is there yet.",
        details: [
            "DEST becomes a writable copy of SEED, whole or not at all. Where DEST exists it stays as it is, and that is no error: of any number "
                + "of processes that install at the same time exactly one copies."
        ],
        operands: [
            Operand(name: "SEED", help: "The seed file."), Operand(name: "DEST", help: "The file that an application opens."),
        ],
        options: [.keyFile],
        run: runSeedInstall)
}

/// Writes the newest version of FILE to `destination`, compacted.
private func makeCopy(_ invocation: Invocation, _ destination: String, mode: UInt32) throws {
    let key = try Database.key(invocation)
    let database = try Database.open(invocation)
    if (try? SystemCalls.linkStatus(path: destination)) != nil { throw NewFile.exists(destination) }
    do {
        try StreamingCopy(version: nil, keepsHistory: false, format: UInt8(database.group.format))
            .write(database.group, toPath: destination, mode: mode, key: key)
    } catch let error as SystemError where error.code == EEXIST { throw NewFile.exists(destination) }
}

private func runCompact(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE")
    let key = try Database.key(invocation)
    let before = try SystemCalls.status(path: path).size
    var options = StoreOptions()
    options.createsFile = false
    options.encryptionKey = key
    let format = try SteadyReading.file(path, key: key).layout.format
    // To open it for writing would upgrade it, which nobody asked for.
    if format != Int(FileHeader.currentFormat) { throw OpenError.upgradeRequired(path: path, format: format) }
    options.label = "\(Program.name) compact"
    let store = try Store.open(path, options)
    defer { try? store.close(force: true) }
    guard try store.compact() else {
        throw CommandFailure(
            .tryAgain, "\(Text.visible(path)) is open elsewhere; close it there and try again ('status' shows by whom)")
    }
    try store.close()
    try invocation.output.line(
        "\(Text.visible(path)): \(Units.text(bytes: before)) became \(Units.text(bytes: try SystemCalls.status(path: path).size))"
    )
    return .ok
}

private func runSeedBuild(_ invocation: Invocation) throws -> ExitCode {
    let seed = invocation.arguments.operand("SEED")
    try makeCopy(invocation, seed, mode: 0o444)
    let file = try ImmutableFile(path: seed, key: try Database.key(invocation))
    let report = try Verifier.verify(file)
    guard report.isSound else {
        try? SystemCalls.unlink(seed)
        throw CommandFailure(
            .damageFound, "the source is damaged (\(report.findings.first.map { "\($0)" } ?? "unreadable")); run 'verify' on it")
    }
    let objectCount = try file.group.classTables().reduce(0) { $0 + $1.objectCount }
    try invocation.output.line(
        "\(Text.visible(seed)): \(Text.count(objectCount, "object")), \(Units.text(bytes: try SystemCalls.status(path: seed).size))"
    )
    return .ok
}

private func runSeedInstall(_ invocation: Invocation) throws -> ExitCode {
    let seed = invocation.arguments.operand("SEED"), destination = invocation.arguments.operand("DEST")
    // A seed that cannot be opened is an error, never an empty file in its place.
    _ = try ImmutableFile(path: seed, key: try Database.key(invocation))
    let wasInstalled = try SeedFile.install(seed, to: destination)
    try invocation.output.line(
        wasInstalled ? "\(Text.visible(destination)): installed" : "\(Text.visible(destination)): exists already, left as it is")
    return .ok
}
