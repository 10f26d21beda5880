import Glibc
import Replication
import SharedStore
import SystemCalls

extension Command {
    static let archive = Command(
        name: "archive",
        summary: "Keep every version of a file in a folder or a bucket, to restore any of them later.",
        details: [
            "ARCHIVE is made where there is none. Each version that is committed to SOURCE is stored in it at a cost in proportion to the change, with "
                + "checksums and a chain of hashes; now and then a whole image, and merged steps, so that a restore reads about a dozen pieces however "
                + "long the history is. Nothing there is ever changed in place: the folder may be copied by any means at any time, and the copy is "
                + "an archive; only a copy that takes longer than --removal-delay may lack what was given up meanwhile.",
            "With --once the newest version is archived, with --follow all from now on; it goes on where it stopped, whatever stopped it. Without --keep "
                + "and --keep-for every version is kept; with both, each that one of them covers. One archiver at a time may write to a place: a lease "
                + "in it names the holder and lapses by itself.",
            "ARCHIVE may be s3://bucket/prefix, with the credentials of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; nothing is asked "
                + "of the store while nothing is committed, and nothing is listed but at the start and by 'restore', 'history' and 'verify'.",
            "An encrypted SOURCE needs --key-file, and its archive is encrypted with that key. SIGTERM ends it, SIGHUP makes it open the file again, "
                + "SIGUSR1 makes it write a line of status to standard output.",
        ],
        operands: [Operand(name: "SOURCE", help: "The realm file."), .archive],
        options: [
            .flag("once", "1", "Archive the newest version and end."),
            .flag("follow", "F", "Archive every version, until told to stop."),
            .value("snapshot-interval", "s", "TIME", "Make a whole image after so long, if anything was changed (1d)."),
            .value("keep", nil, "N", "Keep the newest N versions."),
            .value("keep-for", nil, "TIME", "Keep what was the newest version at any moment within TIME."),
            .value(
                "removal-delay", nil, "TIME",
                "What is not kept any more is removed so much later, for those who are copying ARCHIVE (1h)."),
            .value("lease", nil, "TIME", "Nobody else may write to ARCHIVE for so long after a last sign of life (60s)."),
            .value(
                "grace", "g", "TIME",
                "After the end, keep the version of SOURCE so long for the next archiver (15m); 0 for not at all."),
            .value("pin-limit", "p", "TIME", "While ARCHIVE cannot be written to, keep the version of SOURCE so long (10m)."),
            .gather,
            .flag("force", "f", "Archive into ARCHIVE though it was made for a file of another path."),
            .keyFile,
        ] + ArchiveAddress.options,
        needs: ["(--once | --follow)"],
        exitCodes: [(.tryAgain, "another archiver is at work there")],
        run: runArchive)

    static let restore = Command(
        name: "restore",
        summary: "Make a file of a version in an archive.",
        details: [
            "DEST appears whole, verified, or not at all. Without --version and --time the newest version is restored. A moment is written like "
                + "2024-02-29T12:30:00Z; the version is the one that was the newest then.",
            "With --all, DEST is a folder, in which each version becomes a file <version>.realm. Where ARCHIVE is a folder of archives, each becomes a "
                + "file of its name, at its newest version.",
        ],
        operands: [.archive, Operand(name: "DEST", help: "The realm file to make, or with --all the folder.")],
        options: [
            .value("version", "v", "N", "Restore the version with this number."),
            .value("time", "t", "MOMENT", "Restore what was the newest version at MOMENT."),
            .flag("all", "a", "Restore all versions, or all archives of a folder."),
            .flag("force", "f", "Set aside what is at DEST, under a dated name."),
            .flag("no-verify", nil, "Check only the checksums and the chain of hashes, not every rule of the format."),
            .keyFile,
        ] + ArchiveAddress.options,
        exitCodes: [(.cannotCreate, "DEST exists already"), (.noInput, "there is no such version"), (.tryAgain, "DEST is open")],
        run: runRestore)

    static let history = Command(
        name: "history",
        summary: "List the versions in an archive.",
        details: [
            "One line a version, oldest first, with tabs between: number, when it was seen, bytes that changed, bytes that were stored, and how it came: a step, a whole "
                + "image, or by content where versions in between were missed. The last line says how many bytes were stored for each byte that changed."
        ],
        operands: [.archive],
        options: [.value("limit", "n", "N", "Show the newest N versions only."), .json, .keyFile] + ArchiveAddress.options,
        run: runHistory)
}

extension Option {
    static let gather = Option.value(
        "gather", nil, "TIME",
        "Gather commits that follow each other for so long at most, so that whoever commits hardly notices (100ms); a lone commit is "
            + "carried over at once. 0: each as soon as the one before it is done.")
}

extension Operand {
    static let archive = Operand(name: "ARCHIVE", help: "A folder that holds an archive, or s3://bucket/prefix.")
}

/// From an operand to a place.
enum ArchiveAddress {
    static let options: [Option] = [
        .value("endpoint", nil, "URL", "Of s3://: the store, if it is not Amazon's."),
        .value("region", nil, "NAME", "Of s3://: the region (AWS_REGION, or us-east-1)."),
    ]
    static let scheme = "s3://"

    /// Whether a text that may be a file's path names a place of an archive.
    static func isPlace(_ text: String) -> Bool {
        text.hasPrefix(scheme) || (try? SystemCalls.status(path: text))?.isDirectory ?? false
    }

    static func place(_ invocation: Invocation, _ text: String? = nil, creates: Bool = false) throws -> any ArchivePlace {
        try place(
            text ?? invocation.arguments.operand("ARCHIVE"), creates: creates, endpoint: invocation.arguments.string("endpoint"),
            region: invocation.arguments.string("region"))
    }

    /// What no option says is taken from the environment.
    static func place(_ address: String, creates: Bool, endpoint: String? = nil, region: String? = nil) throws -> any ArchivePlace
    {
        guard address.hasPrefix(scheme) else { return try FolderPlace(address, creates: creates) }
        var options = S3Place.Options()
        options.endpoint = endpoint ?? variable("AWS_ENDPOINT_URL")
        options.region = region ?? variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? options.region
        if let key = variable("AWS_ACCESS_KEY_ID"), let secret = variable("AWS_SECRET_ACCESS_KEY") {
            options.credentials = .init(accessKey: key, secretKey: secret, sessionToken: variable("AWS_SESSION_TOKEN"))
        }
        return try S3Place(address, options: options)
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    static func reader(_ invocation: Invocation) throws -> ArchiveReader {
        try ArchiveReader(place(invocation), key: Database.key(invocation))
    }
}

private func runArchive(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let console = invocation.console
    var options = Archive.Options()
    options.key = try Database.key(invocation)
    options.keep = try arguments.integer("keep", in: 1...Int.max)
    options.keepFor = try arguments.duration("keep-for")
    if let interval = try arguments.duration("snapshot-interval") { options.snapshotInterval = interval }
    if let delay = try arguments.duration("removal-delay") { options.removalDelay = delay }
    if let lease = try arguments.duration("lease") { options.leaseDuration = max(lease, .seconds(1)) }
    if let grace = try arguments.duration("grace") { options.pinGrace = grace }
    if let limit = try arguments.duration("pin-limit") { options.pinLimit = limit }
    if let limit = try arguments.duration("gather") { options.gatherLimit = limit }
    options.force = arguments.has("force")
    options.onMessage = { console.message("note: \($0)") }
    let source = arguments.operand("SOURCE")
    // Before a folder is made for nothing.
    _ = try SteadyReading.file(source, key: options.key)
    guard arguments.has("once") != arguments.has("follow") else { throw arguments.usageError("say either --once or --follow") }
    let place = try ArchiveAddress.place(invocation, creates: true)
    let signals = try SignalListener()
    let output = invocation.output
    let archiver = Archiver(
        source: source, place: place, options: options,
        onStatus: { status in
            // Where nobody reads the status any more, the archiver goes on.
            _ = try? output.line(archiveLine(status))
            _ = try? output.flush()
        },
        control: { signals.request($0, $1) })
    if arguments.has("follow") {
        try archiver.run()
        return .ok
    }
    if let entry = try archiver.once() {
        try output.line("\(Text.visible(place.description)): version \(entry.snapshot.version) of \(Text.visible(source))")
    }
    return .ok
}

func archiveLine(_ status: Archiver.Status) -> String {
    var text =
        "\(Text.visible(status.place)): " + (status.version.map { "version \($0)" } ?? "nothing yet")
        + " of \(Text.visible(status.source))"
    if let version = status.sourceVersion {
        text += ", \(version - min(version, status.version ?? 0)) behind"
    } else {
        text += ", not connected"
    }
    text += "; \(Text.count(status.versionCount, "version")), write amplification \(Units.fixed(status.writeAmplification, 2))"
    if let wait = status.waitsFor { text += "; \(Text.oneLine(wait))" }
    return text
}

/// Does something with the version that is asked for; without any, with the newest to which all is there.
private func withEntry<T>(
    _ invocation: Invocation, _ reader: ArchiveReader, time: String? = nil, _ body: (ArchiveEntry) throws -> T
) throws -> T {
    let arguments = invocation.arguments
    if let version = try arguments.integer("version", in: 0...Int.max) { return try body(reader.version(UInt64(version))) }
    guard let text = time else { return try Archive.withNewest(of: reader, body) }
    guard let moment = Units.moment(text), moment.seconds >= 0, moment.seconds < 1 << 33 else {
        throw arguments.usageError("option --time: '\(text)' is no moment; write it like 2024-02-29T12:30:00Z")
    }
    return try body(reader.version(at: UInt64(moment.seconds) * 1_000_000_000 + UInt64(max(0, moment.nanoseconds))))
}

/// Says what of an archive is not there, or not as it should be, though what was asked for could be done.
private func tellNotes(_ reader: ArchiveReader, _ console: Console) {
    for note in reader.notes.prefix(noteCountMax) { console.message("note: \(Text.visible(reader.place.description)): \(note)") }
    if reader.notes.count > noteCountMax { console.message("note: and \(reader.notes.count - noteCountMax) more") }
}

private let noteCountMax = 20

private func runRestore(_ invocation: Invocation) throws -> ExitCode {
    Ending.obeySignals()
    let arguments = invocation.arguments
    let destination = arguments.operand("DEST")
    if [arguments.has("version"), arguments.has("time"), arguments.has("all")].filter({ $0 }).count > 1 {
        throw arguments.usageError("say one of --version, --time and --all")
    }
    var options = Archive.RestoreOptions()
    options.key = try Database.key(invocation)
    options.force = arguments.has("force")
    options.verifies = !arguments.has("no-verify")
    let place = try ArchiveAddress.place(invocation)
    NewFile.keepPrivate(likeFolder: place)
    if arguments.has("all") { return try restoreAll(invocation, place, destination, options) }
    let reader = try ArchiveReader(place, key: options.key)
    let result = try withEntry(invocation, reader, time: arguments.string("time")) {
        try Archive.restore(reader, $0, to: destination, options: options)
    }
    let chosen = result.entry
    tellNotes(reader, invocation.console)
    if let aside = result.setAside { invocation.console.message("note: the old file lives on as \(aside)") }
    let seen = Units.text(nanosecondsSince1970: Int64(clamping: chosen.time))
    try invocation.output.line(
        "\(Text.visible(destination)): version \(chosen.snapshot.version) of \(Text.visible(reader.source)), seen \(seen)")
    return .ok
}

private func restoreAll(
    _ invocation: Invocation, _ place: any ArchivePlace, _ destination: String, _ options: Archive.RestoreOptions
) throws -> ExitCode {
    let reader: ArchiveReader
    do { reader = try ArchiveReader(place, key: options.key) } catch ArchiveError.notAnArchive {
        let address = invocation.arguments.operand("ARCHIVE")
        let marks = try place.list("").filter { $0.split(separator: "/").count == 2 && $0.hasSuffix("/realm-archive") }
        if marks.isEmpty { throw ArchiveError.notAnArchive(place: place.description) }
        do { try SystemCalls.makeDirectory(destination) } catch let error as SystemError where error.code == EEXIST {}
        for mark in marks {
            let name = String(mark.prefix { $0 != "/" })
            let part = try ArchiveAddress.place(invocation, address + "/" + name)
            let one: ArchiveReader
            // The key is that of those among them that are encrypted.
            do { one = try ArchiveReader(part, key: options.key) } catch ArchiveError.keyForPlain {
                one = try ArchiveReader(part)
            }
            let path = "\(destination)/\(name)\(name.hasSuffix(".realm") ? "" : ".realm")"
            let chosen = try Archive.restoreNewest(one, to: path, options: options).entry
            tellNotes(one, invocation.console)
            try invocation.output.line("\(Text.visible(path)): version \(chosen.snapshot.version) of \(Text.visible(one.source))")
        }
        return .ok
    }
    let count = try Archive.restoreAll(reader, to: destination, options: options)
    tellNotes(reader, invocation.console)
    try tellLost(reader, invocation.console)
    try invocation.output.line("\(Text.visible(destination)): \(Text.count(count, "version")) of \(Text.visible(reader.source))")
    return .ok
}

private func runHistory(_ invocation: Invocation) throws -> ExitCode {
    let reader = try ArchiveAddress.reader(invocation)
    let summary = try Archive.summary(reader)
    let all = try reader.history()
    tellNotes(reader, invocation.console)
    try tellLost(reader, invocation.console)
    let shown = try invocation.arguments.integer("limit", in: 0...Int.max).map { Array(all.suffix($0)) } ?? all
    let amplification = summary.changedByteCount == 0 ? 0 : Double(summary.storedByteCount) / Double(summary.changedByteCount)
    if invocation.wantsJSON {
        try invocation.output.line(
            JSONText.object([
                ("source", .string(summary.source)), ("versions", .integer(summary.versionCount)),
                ("images", .integer(summary.imageCount)),
                ("changedBytes", .integer(summary.changedByteCount)), ("storedBytes", .integer(summary.storedByteCount)),
                (
                    "history",
                    .array(
                        shown.map { entry in
                            .object([
                                ("version", JSONText(entry.snapshot.version)), ("time", JSONText(entry.time)),
                                ("changedBytes", .integer(entry.plainByteCount)),
                                ("storedBytes", .integer(entry.storedByteCount)), ("kind", .string(name(entry.kind))),
                                ("chain", .string("\(entry.chain)")),
                            ])
                        })
                ),
            ]).text)
        return .ok
    }
    if !shown.isEmpty { try invocation.output.line("version\tseen\tchanged\tstored\tkind") }
    for entry in shown {
        let time = Units.text(nanosecondsSince1970: Int64(clamping: entry.time))
        let sizes = "\(Units.text(bytes: entry.plainByteCount))\t\(Units.text(bytes: entry.storedByteCount))"
        try invocation.output.line("\(entry.snapshot.version)\t\(time)\t\(sizes)\t\(name(entry.kind))")
    }
    try invocation.output.line(
        "\(Text.visible(summary.source)): \(Text.count(summary.versionCount, "version")), \(Text.count(summary.imageCount, "image")); \(Units.text(bytes: summary.changedByteCount)) changed, "
            + "\(Units.text(bytes: summary.storedByteCount)) stored, write amplification \(Units.fixed(amplification, 2))")
    return .ok
}

/// Says which versions are told of though nothing leads to them.
private func tellLost(_ reader: ArchiveReader, _ console: Console) throws {
    let lost = try reader.unrestorable()
    guard let first = lost.first?.snapshot.version, let last = lost.last?.snapshot.version else { return }
    let numbers = first == last ? "version \(first)" : "\(lost.count) versions between \(first) and \(last)"
    console.message(
        "note: \(Text.visible(reader.place.description)): nothing leads to \(numbers), as in a copy that was made while the archive grew; copy it once more"
    )
}

private func name(_ kind: ArchiveEntry.Kind) -> String {
    switch kind {
    case .step: "step"
    case .content: "content"
    case .start: "image"
    }
}

/// Restores versions to scratch and checks them.
func verifyArchive(_ invocation: Invocation, _ place: any ArchivePlace) throws -> ExitCode {
    Ending.obeySignals()
    let arguments = invocation.arguments
    let key = try Database.key(invocation)
    let reader = try ArchiveReader(place, key: key)
    NewFile.keepPrivate(mode: 0o600)
    for name in ["immutable", "limit", "json"] where arguments.has(name) {
        throw arguments.usageError("--\(name) is for files, and \(Text.visible(place.description)) is an archive")
    }
    let scratch = arguments.string("scratch") ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let isAsked = arguments.has("version")
    func check(_ entry: ArchiveEntry) throws -> Bool {
        let report: VerificationReport
        do { report = try Archive.verify(reader, entry, scratch: scratch, key: key) } catch let error as ArchiveError {
            switch error {
            case .damaged: break
            case .missing, .incomplete:
                // There may be an older one, to which all is there.
                if !isAsked { throw error }
            default: throw error
            }
            try invocation.output.line("version \(entry.snapshot.version): \(Text.oneLine("\(error)"))")
            return false
        }
        for finding in report.findings {
            try invocation.output.line("version \(entry.snapshot.version): \(Text.oneLine("\(finding)"))")
        }
        return report.isSound
    }
    let (newest, isNewestSound) = try withEntry(invocation, reader) { ($0, try check($0)) }
    var isSound = isNewestSound, count = 1
    if let every = try arguments.integer("every", in: 1...Int.max) {
        for (index, entry) in try reader.history().enumerated() where index % every == 0 && entry != newest {
            if try !check(entry) { isSound = false }
            count += 1
        }
    }
    tellNotes(reader, invocation.console)
    // A copy may lack what came last; what is missing before that was lost.
    let lost = try reader.unrestorable()
    try tellLost(reader, invocation.console)
    if reader.hasDamage || lost.contains(where: { $0.sequence < newest.sequence }) { isSound = false }
    let address = Text.visible(reader.place.description), total = try reader.history().count
    try invocation.output.line(
        "\(address): \(isSound ? "sound" : "damaged"): \(count) of \(Text.count(total, "version")) checked")
    return isSound ? .ok : .damageFound
}

extension Command {
    static let followArchive = Command(
        name: "follow",
        summary: "Keep a readable file at the newest version of an archive.",
        details: [
            "DEST is a replica as 'mirror' makes it: others may read it, and each sees whole versions only. 'promote DEST' makes it a file of its own. "
                + "SIGTERM ends it after the present version, SIGUSR1 makes it write a line of status to standard output."
        ],
        operands: [.archive, Operand(name: "DEST", help: "The realm file to make and keep.")],
        options: [
            .value("poll", nil, "TIME", "Look for something new so often (5s)."),
            .flag("force", "f", "Replace whatever is at DEST; the old file is kept under a dated name."),
            .keyFile,
        ] + ArchiveAddress.options,
        exitCodes: [(.tryAgain, "another mirror is at work on DEST")],
        run: runFollow)
}

private func runFollow(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let console = invocation.console, output = invocation.output
    var options = Mirror.Options()
    options.force = arguments.has("force")
    options.onMessage = { console.message("note: \($0)") }
    let place = try ArchiveAddress.place(invocation)
    NewFile.keepPrivate(likeFolder: place)
    let signals = try SignalListener()
    let follower = ArchiveFollower(
        place: place, destination: arguments.operand("DEST"), key: try Database.key(invocation),
        interval: try arguments.duration("poll") ?? .seconds(5),
        options: options,
        onStatus: { status in
            // Where nobody reads the status any more, the follower goes on.
            var text =
                "\(Text.visible(status.destination)): " + (status.version.map { "version \($0)" } ?? "nothing yet")
                + " of \(Text.visible(status.place))"
            text += "; \(Text.count(status.stepCount, "step")), \(Text.count(status.imageCount, "image"))"
            if let wait = status.waitsFor { text += "; \(Text.oneLine(wait))" }
            _ = try? output.line(text)
            _ = try? output.flush()
        },
        control: { signals.request($0, $1) })
    try follower.run()
    return .ok
}
