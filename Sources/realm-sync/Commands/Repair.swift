import Glibc
import Replication
import SharedStore
import SystemCalls

extension Command {
    static let compare = Command(
        name: "compare",
        summary: "Say whether two files hold the same version or the same objects, and where they differ.",
        details: [
            "Objects are compared by class, object key and property, to the last digit; where they lie in the file does not matter. Both may be open "
                + "elsewhere: the newest version of each is compared."
        ],
        operands: [Operand(name: "A", help: "A realm file."), Operand(name: "B", help: "Another one.")],
        options: [
            .keyFile, .immutable, .json,
            .value("second-key-file", nil, "K", "The key of B, if it is another one than that of A."),
            .value("second-key-env", nil, "NAME", "Take the key of B from the environment variable NAME."),
            .flag("second-plain", nil, "B is not encrypted, though A is."),
            .value("limit", "n", "N", "Show at most N differences (100)."),
        ],
        exitCodes: [(.ok, "they hold the same objects"), (.damageFound, "they differ")],
        run: runCompare)

    static let salvage = Command(
        name: "salvage",
        summary: "Make the best readable file out of a damaged one.",
        details: [
            "The newest version that is sound is looked for where the header says, in its other slot and by scanning for the top arrays of older "
                + "versions. Where no version is whole, every table and object that can be read is taken, and what was lost is listed on standard error. FILE "
                + "is only read; nobody should have it open. OUT is verified before it gets its name."
        ],
        operands: [Operand(name: "FILE", help: "The damaged file."), Operand(name: "OUT", help: "The file to make.")],
        options: [.keyFile, .value("limit", "n", "N", "List at most N losses (100).")],
        exitCodes: [
            (.ok, "nothing was lost"), (.damageFound, "something was lost, or a version newer than the one that was found"),
            (.cannotCreate, "OUT exists already"),
        ],
        run: runSalvage)
}

private func runCompare(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let limit = try arguments.integer("limit", in: 0...1_000_000) ?? 100
    let key = try Database.key(invocation)
    let other =
        try Database.key(invocation, file: "second-key-file", environment: "second-key-env")
        ?? (arguments.has("second-plain") ? nil : key)
    let a = try Database.open(invocation, path: arguments.operand("A"), key: key)
    let b = try Database.open(invocation, path: arguments.operand("B"), key: other)
    let sameVersion = try isSameVersion(a, b)
    let result = sameVersion ? nil : try ObjectComparison(a.group, b.group, limit: limit)
    if invocation.wantsJSON {
        try invocation.output.line(
            JSONText.object([
                ("sameVersion", .bool(sameVersion)), ("sameObjects", .bool(result?.isEqual ?? true)),
                ("versions", .array([JSONText(a.version), JSONText(b.version)])),
                ("differences", .integer(result?.differenceCount ?? 0)),
                ("listed", .array((result?.differences ?? []).map { .string("\($0)") })),
            ]).text)
    } else {
        for difference in result?.differences ?? [] { try invocation.output.line(Text.oneLine("\(difference)")) }
        if let result, result.differenceCount > result.differences.count {
            try invocation.output.line("... and \(result.differenceCount - result.differences.count) more")
        }
        let names = "\(Text.visible(a.path)) (version \(a.version)) and \(Text.visible(b.path)) (version \(b.version))"
        if sameVersion {
            try invocation.output.line("\(names): the same version, byte for byte")
        } else if let result {
            try invocation.output.line(
                result.isEqual
                    ? "\(names): the same \(Text.count(result.objectCount, "object")), with all that is embedded in them"
                    : "\(names): \(Text.count(result.differenceCount, "difference")), \(Text.count(result.objectCount, "object")) in both, embedded ones not counted"
            )
        }
    }
    return result?.isEqual ?? true ? .ok : .damageFound
}

/// Equal numbers and equal bytes wherever the version has some.
private func isSameVersion(_ a: Database, _ b: Database) throws -> Bool {
    guard a.version == b.version, a.group.topRef == b.group.topRef, a.group.topRef != 0 else { return false }
    func extents(_ database: Database) throws -> FreeExtents {
        let top = try database.group.memory.node(database.group.topRef)
        let snapshot = Snapshot(
            version: database.version, topRef: database.group.topRef, logicalSize: try top.tagged(TopSlot.logicalSize))
        return try FreeExtents(memory: database.group.memory, snapshot: snapshot)
    }
    let x = try extents(a), y = try extents(b)
    guard x == y else { return false }
    for range in x.usedRanges() {
        // Where the version of a file in streaming form ends, its bytes may end too.
        guard let p = try? a.group.memory.bytes(at: range.lowerBound, length: range.count),
            let q = try? b.group.memory.bytes(at: range.lowerBound, length: range.count), memcmp(p, q, range.count) == 0
        else { return false }
    }
    return true
}

/// Says of a file in which nothing was found what may be the cause: the key, more often than damage.
private func salvaged(_ path: String, _ key: EncryptionKey?, scratchFolder: String) throws -> Salvage {
    do { return try Salvage(path: path, key: key, scratchFolder: scratchFolder) } catch let error as FormatError {
        let name = Text.visible(path)
        do { _ = try ImmutableFile(path: path, key: key) } catch let cause as OpenError {
            switch cause {
            case .notARealm(_, .unknown), .notARealm(_, .encrypted):
                throw CommandFailure(
                    .badData, "\(name): nothing of a realm file is in it; if it is encrypted, name its key with --key-file")
            case .notARealm: throw cause
            case .decryptionFailed(_, 0, _):
                throw CommandFailure(
                    .badData, "\(name): no version can be decrypted; the key is not that of the file, or all of it is damaged")
            default: break
            }
        } catch {}
        throw CommandFailure(.badData, "\(name): nothing can be rescued: \(error)")
    }
}

private func runSalvage(_ invocation: Invocation) throws -> ExitCode {
    Ending.obeySignals()
    let arguments = invocation.arguments
    let path = arguments.operand("FILE"), destination = arguments.operand("OUT")
    let limit = try arguments.integer("limit", in: 0...Salvage.lossCountMax) ?? 100
    if (try? SystemCalls.linkStatus(path: destination)) != nil { throw NewFile.exists(destination) }
    let key = try Database.key(invocation)
    if let status = try? SystemCalls.status(path: path) { NewFile.keepPrivate(mode: status.mode) }
    let salvage = try salvaged(path, key, scratchFolder: SystemCalls.parentDirectory(of: destination))
    let version = salvage.chosen.snapshot.version
    switch salvage.content {
    case .sound(let group):
        do {
            try StreamingCopy(version: nil, keepsHistory: false, format: UInt8(group.format)).write(
                group, toPath: destination, key: key)
        } catch let error as SystemError where error.code == EEXIST { throw NewFile.exists(destination) }
    case .objects(let text):
        do { _ = try text.withUnsafeBytes { try makeFile(destination, $0, invocation) } } catch let error as JSONError {
            throw CommandFailure(.badData, "\(Text.visible(path)): what could be read does not make a file: \(error)")
        } catch let error as TableError {
            throw CommandFailure(.badData, "\(Text.visible(path)): what could be read does not make a file: \(error)")
        }
    }
    let report = try Verifier.verify(ImmutableFile(path: destination, key: key))
    guard report.isSound else {
        try? SystemCalls.unlink(destination)
        throw CommandFailure(.badData, "\(Text.visible(path)): what was made of it does not verify and was removed")
    }
    for version in salvage.lostVersions { invocation.console.message("lost: \(version)") }
    for loss in salvage.losses.prefix(limit) { invocation.console.message("lost: \(loss)") }
    let more = salvage.lossCount - salvage.lostVersions.count - min(limit, salvage.losses.count)
    if more > 0 { invocation.console.message("lost: \(more) more") }
    for older in salvage.olderClasses { invocation.console.message("note: \(older.name) is that of version \(older.version)") }
    try invocation.output.line(
        "\(Text.visible(destination)): version \(version) of \(Text.visible(path)), found by \(salvage.chosen.origin.rawValue); "
            + "\(Text.count(salvage.objectCount, "object")), \(Text.count(salvage.lossCount, "loss", "losses"))")
    return salvage.lossCount == 0 ? .ok : .damageFound
}
