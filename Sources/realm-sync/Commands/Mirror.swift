import Glibc
import Replication
import SharedStore
import Synchronization
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
            "One of the two may be at another machine: realm://host:port/name, where 'realm-sync serve' runs there, or ssh://host/path, which "
                + "needs nothing there but this program and a login. A connection that breaks is made again, and goes on with the step that was "
                + "under way. The environment variable REALM_SYNC_SSH names another program than ssh.",
            "There may be several DEST, and archives beside them (--archive): a slow one, or one that fails, holds back neither the others nor SOURCE. "
                + "'run' does the same for many sources, with status and metrics.",
        ],
        operands: [
            Operand(name: "SOURCE", help: "The realm file to copy from."),
            Operand(name: "DEST", count: .any, help: "The realm files to make; there may be none beside an archive."),
        ],
        options: [
            .flag("once", "1", "Copy the newest version and end."),
            .flag("follow", "F", "Carry over every version, until told to stop."),
            .value(
                "grace", "g", "TIME",
                "After --follow has ended, keep its version of SOURCE so long for the next one (15m); 0 for not at all."),
            .value("pin-limit", "p", "TIME", "While DEST cannot be written to, keep the version of SOURCE so long (10m)."),
            .gather,
            .value("check-every", "c", "N", "Compare every N-th step with a walk of the new version (64)."),
            .keyFile,
            .value(
                "dest-key-file", nil, "K", "Encrypt DEST with the key in file K; without this option it has the key of SOURCE."),
            .value("dest-key-env", nil, "NAME", "The same, with a key from the environment variable NAME."),
            .flag("dest-plain", nil, "Do not encrypt DEST though SOURCE is encrypted."),
            .value("cert", nil, "FILE", "For realm://: our certificate."),
            .value("key", nil, "FILE", "For realm://: the key of our certificate."),
            .value("ca", nil, "FILE", "For realm://: the authority that has signed the server's certificate."),
            .value("psk-file", nil, "FILE", "For realm://: a file with a shared secret, NAME:HEX, instead of certificates."),
            .value(
                "revoked", nil, "FILE", "For realm://: certificates of servers that are not believed any more, as for 'serve'."),
            .value(
                "rate-limit", nil, "SIZE", "For realm:// and ssh://: at most so many bytes a second, such as 500K (no limit)."),
            .value("remote-program", nil, "NAME", "For ssh://: what this program is called there (realm-sync)."),
            .value(
                "remote-key-file", nil, "K",
                "For ssh://: the key file on the other machine, of SOURCE there or for DEST there (no key)."),
            .flag("allow-plain", nil, "The replica may be plain at the other machine, or here, though the source is encrypted."),
            .flag("force", "f", "Replace whatever is at DEST; the old file is kept under a dated name."),
            .value(
                "archive", "a", "PLACE", "Archive every version at PLACE too, as 'archive' does; may be given several times.",
                isRepeated: true),
            .value("keep", nil, "N", "Of --archive: keep the newest N versions."),
            .value("keep-for", nil, "TIME", "Of --archive: keep what was the newest version at any moment within TIME."),
            .value(
                "removal-delay", nil, "TIME",
                "Of --archive: what is not kept any more is removed so much later, for those who are copying it (1h)."),
            .value(
                "snapshot-interval", nil, "TIME", "Of --archive: make a whole image after so long, if anything was changed (1d)."),
        ] + ArchiveAddress.options,
        needs: ["(--once | --follow)"],
        exitCodes: [(.tryAgain, "DEST is open, or another mirror is at work on it")],
        run: runMirror)
}

private func runMirror(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let source = try MirrorEndpoint(arguments.operand("SOURCE"))
    let destinations = try arguments.operands("DEST").map { try MirrorEndpoint($0) }
    let archives = arguments.strings("archive")
    if destinations.isEmpty && archives.isEmpty { throw arguments.usageError("DEST is missing") }
    guard arguments.has("once") != arguments.has("follow") else { throw arguments.usageError("say either --once or --follow") }
    let isOnce = arguments.has("once")
    let console = invocation.console
    var options = Mirror.Options()
    options.force = arguments.has("force")
    options.onMessage = { console.message("note: \($0)") }
    if let grace = try arguments.duration("grace") { options.pinGrace = grace }
    if let limit = try arguments.duration("pin-limit") { options.pinLimit = limit }
    if let limit = try arguments.duration("gather") { options.gatherLimit = limit }
    options.checkInterval = try arguments.integer("check-every", in: 1...Int.max) ?? options.checkInterval
    options.sourceKey = try Database.key(invocation)
    options.destinationKey = try destinationKey(invocation, options.sourceKey)
    if isOnce {
        options.endsWhenEqual = true
        options.pinGrace = .zero
        options.attemptsMax = onceAttemptsMax
    }
    let wire = try wireOptions(arguments, from: source)
    if destinations.contains(where: { !$0.isLocal }),
        ["dest-key-file", "dest-key-env", "dest-plain"].contains(where: arguments.has)
    {
        throw arguments.usageError("the key of a replica at another machine is known there (for ssh://: --remote-key-file)")
    }
    if arguments.has("remote-key-file"), !([source] + destinations).contains(where: \.isSSH) {
        throw arguments.usageError("--remote-key-file is for ssh://")
    }
    if isOnce, archives.isEmpty, destinations.count == 1, case .file(let from) = source, case .file(let to) = destinations[0] {
        return try mirrorOnce(invocation, from, to, options)
    }
    var works: [(name: String, work: MirrorTargets.Work)] = []
    let output = SharedOutput(invocation.output)
    let isAlone = destinations.count + archives.count == 1
    for destination in destinations {
        var own = options
        if isAlone {
            let progress = ImageProgress(console)
            own.onProgress = { progress.update($0) }
        } else {
            own.onMessage = { console.message("note: \(destination): \($0)") }
        }
        let final = own
        works.append(
            (
                "\(destination)",
                { control in
                    var isStopped = false
                    try MirrorRun.run(
                        from: source, to: destination, options: final, wire: wire, onStatus: { output.line(line($0)) },
                        control: {
                            let request = control($0, $1)
                            if request == .stop { isStopped = true }
                            return request
                        })
                    if isOnce && !isStopped {
                        output.line("\(Text.visible("\(destination)")): equal to \(Text.visible("\(source)"))")
                    }
                }
            ))
    }
    for place in archives {
        guard case .file(let path) = source else { throw arguments.usageError("what is archived must be a file of this machine") }
        works.append((place, try archiveWork(invocation, path, place, options, isOnce: isOnce, output)))
    }
    let signals = try SignalListener()
    try MirrorTargets(works, console: console).run(signals)
    return .ok
}

/// An archive as one more target.
private func archiveWork(
    _ invocation: Invocation, _ source: String, _ place: String, _ mirror: Mirror.Options, isOnce: Bool, _ output: SharedOutput
) throws -> MirrorTargets.Work {
    let arguments = invocation.arguments
    let console = invocation.console
    var options = Archive.Options()
    options.key = mirror.sourceKey
    options.keep = try arguments.integer("keep", in: 1...Int.max)
    options.keepFor = try arguments.duration("keep-for")
    if let interval = try arguments.duration("snapshot-interval") { options.snapshotInterval = interval }
    if let delay = try arguments.duration("removal-delay") { options.removalDelay = delay }
    (options.pinGrace, options.pinLimit, options.force) = (mirror.pinGrace, mirror.pinLimit, mirror.force)
    options.gatherLimit = mirror.gatherLimit
    options.onMessage = { console.message("note: \(place): \($0)") }
    let final = options
    let endpoint = arguments.string("endpoint"), region = arguments.string("region")
    return { control in
        // Before a folder is made for nothing.
        _ = try SteadyReading.file(source, key: final.key)
        let target = try ArchiveAddress.place(place, creates: true, endpoint: endpoint, region: region)
        let archiver = Archiver(
            source: source, place: target, options: final, onStatus: { output.line(archiveLine($0)) }, control: control)
        if isOnce { _ = try archiver.once() } else { try archiver.run() }
    }
}

/// Some three seconds in all, for a server that is being started anew.
private let onceAttemptsMax = 6

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

/// The file in which an image is being made goes when somebody ends us: many gigabytes may have been written.
private final class RemovalDuty: Sendable {
    private let key = Mutex<Int?>(nil)

    /// - Parameter path: nil where there is none any more.
    func take(_ path: String?) {
        let next = path.map { path in Ending.with({}, duty: { _ in try? SystemCalls.unlink(path) }).key }
        let last = key.withLock { key in
            defer { key = next }
            return key
        }
        if let last { Ending.forget(last) }
    }
}

private func mirrorOnce(_ invocation: Invocation, _ source: String, _ destination: String, _ options: Mirror.Options) throws
    -> ExitCode
{
    Ending.obeySignals()
    let progress = ImageProgress(invocation.console)
    var options = options
    options.onProgress = { progress.update($0) }
    let duty = RemovalDuty()
    options.onTemporaryFile = { duty.take($0) }
    defer { progress.end() }
    let result = try Mirror.once(source: source, destination: destination, options: options)
    try invocation.output.line(
        "\(Text.visible(destination)): version \(result.snapshot.version) of \(Text.visible(source)), \(Units.text(bytes: result.usedByteCount))"
    )
    return .ok
}

/// How the other machine is reached.
private func wireOptions(_ arguments: Arguments, from source: MirrorEndpoint) throws -> WireOptions {
    var wire = WireOptions()
    wire.allowPlain(arguments.has("allow-plain"), from: source, plainDestination: arguments.has("dest-plain"))
    if let program = arguments.string("remote-program") { wire.remoteProgram = program }
    wire.remoteKeyFile = arguments.string("remote-key-file")
    if let program = getenv("REALM_SYNC_SSH").map({ String(cString: $0) }), !program.isEmpty {
        wire.sshProgram = program.split(separator: " ").map(String.init)
    }
    wire.tls = try TLSArguments.settings(arguments, authority: "ca")
    wire.bytesPerSecond = try TLSArguments.rate(arguments)
    return wire
}

enum TLSArguments {
    /// What `--cert`, `--key`, `--psk-file` and the option for the authority say; nil where none of them is given.
    static func settings(_ arguments: Arguments, authority: String) throws -> TLSSettings? {
        let files = [arguments.string("cert"), arguments.string("key"), arguments.string(authority)]
        let secrets = arguments.string("psk-file")
        let revocations = arguments.string("revoked")
        if files.allSatisfy({ $0 == nil }) {
            if revocations != nil {
                throw arguments.usageError("--revoked is of certificates; a shared secret is removed from its file")
            }
            return secrets.map { TLSSettings(sharedSecrets: $0) }
        }
        guard let certificate = files[0], let key = files[1], let ca = files[2] else {
            throw arguments.usageError("--cert, --key and --\(authority) belong together")
        }
        return TLSSettings(
            certificates: .init(certificate: certificate, key: key, authority: ca), sharedSecrets: secrets,
            revocations: revocations)
    }

    /// What `--rate-limit` says.
    static func rate(_ arguments: Arguments) throws -> Int? {
        guard let rate = try arguments.byteCount("rate-limit") else { return nil }
        guard rate >= ServerRights.rateMin else {
            throw arguments.usageError("--rate-limit: at least \(ServerRights.rateMin / 1024)K")
        }
        return rate
    }
}

private func line(_ status: MirrorFollower.Status) -> String {
    var text = "\(Text.visible(status.destination)): version \(status.version) of \(Text.visible(status.source))"
    if let version = status.sourceVersion {
        text += ", \(version > status.version ? version - status.version : 0) behind"
    } else {
        text += ", not connected"
    }
    text +=
        "; \(Text.count(status.stepCount, "step")), \(Units.text(bytes: status.byteCount)), \(Text.count(status.imageCount, "image"))"
    if let seconds = status.secondsBehind, seconds > 0 { text += "; equal \(Units.text(seconds: seconds)) ago" }
    if let wait = status.waitsFor { text += "; \(Text.oneLine(wait))" }
    return text
}
