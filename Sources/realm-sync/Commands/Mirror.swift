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
            "With --follow, every version that is committed to SOURCE afterwards is carried over too, at a cost in proportion to the change, while "
                + "others read DEST. It goes on where it stopped, whatever stopped it. SIGTERM ends it after the present version, SIGHUP makes it "
                + "open both files again, SIGUSR1 makes it write a line of status to standard output.",
            "DEST may only be read; 'promote DEST' makes it a file of its own.",
            "One of the two may be at another machine: realm://host:port/name, where 'realm-sync serve' runs there, or ssh://host/path, which "
                + "needs nothing there but this program and a login. A connection that breaks is made again, and goes on with the step that was "
                + "under way. The environment variable REALM_SYNC_SSH names another program than ssh.",
        ],
        operands: [Operand(name: "SOURCE", help: "The realm file to copy from."), Operand(name: "DEST", help: "The realm file to make.")],
        options: [
            .flag("once", "1", "Copy the newest version and end."),
            .flag("follow", "F", "Carry over every version, until told to stop."),
            .value("grace", "g", "TIME", "After --follow has ended, keep its version of SOURCE so long for the next one (15m); 0 for not at all."),
            .value("pin-limit", "p", "TIME", "While DEST cannot be written to, keep the version of SOURCE so long (10m)."),
            .value("check-every", "c", "N", "Compare every N-th step with a walk of the new version (64)."),
            .keyFile,
            .value("dest-key-file", nil, "K", "Encrypt DEST with the key in file K; without this option it has the key of SOURCE."),
            .value("dest-key-env", nil, "NAME", "The same, with a key from the environment variable NAME."),
            .flag("dest-plain", nil, "Do not encrypt DEST though SOURCE is encrypted."),
            .value("cert", nil, "FILE", "For realm://: our certificate."),
            .value("key", nil, "FILE", "For realm://: the key of our certificate."),
            .value("ca", nil, "FILE", "For realm://: the authority that has signed the server's certificate."),
            .value("psk-file", nil, "FILE", "For realm://: a file with a shared secret, NAME:HEX, instead of certificates."),
            .value("remote-program", nil, "NAME", "For ssh://: what this program is called there (realm-sync)."),
            .flag("allow-plain", nil, "The replica may be plain at the other machine, or here, though the source is encrypted."),
            .flag("force", "f", "Replace whatever is at DEST; the old file is kept under a dated name."),
        ],
        exitCodes: [(.tryAgain, "DEST is open, or another mirror is at work on it")],
        run: runMirror)
}

private func runMirror(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let source = try MirrorEndpoint(arguments.operand("SOURCE")), destination = try MirrorEndpoint(arguments.operand("DEST"))
    let console = invocation.console
    var options = Mirror.Options()
    options.force = arguments.has("force")
    options.onMessage = { console.message("note: \($0)") }
    if let grace = try arguments.duration("grace") { options.pinGrace = grace }
    if let limit = try arguments.duration("pin-limit") { options.pinLimit = limit }
    options.checkInterval = try arguments.integer("check-every", in: 1...Int.max) ?? options.checkInterval
    options.sourceKey = try Database.key(invocation)
    options.destinationKey = try destinationKey(invocation, options.sourceKey)
    let wire = try wireOptions(arguments)
    if case .file = destination {} else if arguments.has("dest-key-file") || arguments.has("dest-key-env") {
        throw arguments.usageError("the key of a replica at another machine is known there")
    }
    if case (true, .file(let from), .file(let to)) = (arguments.has("once") && !arguments.has("follow"), source, destination) {
        return try mirrorOnce(invocation, from, to, options)
    }
    switch (arguments.has("once"), arguments.has("follow")) {
    case (true, false):
        options.endsWhenEqual = true
        options.pinGrace = .zero
        return try mirrorFollowing(invocation, source, destination, options, wire)
    case (false, true): return try mirrorFollowing(invocation, source, destination, options, wire)
    default: throw arguments.usageError("say either --once or --follow")
    }
}

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

/// How the other machine is reached.
private func wireOptions(_ arguments: Arguments) throws -> WireOptions {
    var wire = WireOptions()
    wire.allowsPlain = arguments.has("allow-plain")
    if let program = arguments.string("remote-program") { wire.remoteProgram = program }
    if let program = getenv("REALM_SYNC_SSH").map({ String(cString: $0) }), !program.isEmpty {
        wire.sshProgram = program.split(separator: " ").map(String.init)
    }
    wire.tls = try TLSArguments.settings(arguments, authority: "ca")
    return wire
}

enum TLSArguments {
    /// What `--cert`, `--key`, `--psk-file` and the option for the authority say; nil where none of them is given.
    static func settings(_ arguments: Arguments, authority: String) throws -> TLSSettings? {
        let files = [arguments.string("cert"), arguments.string("key"), arguments.string(authority)]
        let secrets = arguments.string("psk-file")
        if files.allSatisfy({ $0 == nil }) { return secrets.map { TLSSettings(sharedSecrets: $0) } }
        guard let certificate = files[0], let key = files[1], let ca = files[2] else {
            throw arguments.usageError("--cert, --key and --\(authority) belong together")
        }
        return TLSSettings(certificates: .init(certificate: certificate, key: key, authority: ca), sharedSecrets: secrets)
    }
}

private func mirrorFollowing(
    _ invocation: Invocation, _ source: MirrorEndpoint, _ destination: MirrorEndpoint, _ options: Mirror.Options, _ wire: WireOptions
) throws -> ExitCode {
    let signals = try SignalListener()
    let output = invocation.output
    let progress = ImageProgress(invocation.console)
    var options = options
    options.onProgress = { progress.update($0) }
    defer { progress.end() }
    try MirrorRun.run(from: source, to: destination, options: options, wire: wire, onStatus: { status in
        // Where nobody reads the status any more, the mirror goes on.
        _ = try? output.line(line(status))
        _ = try? output.flush()
    }, control: { descriptors, milliseconds in
        signals.request(descriptors, milliseconds)
    })
    return .ok
}

extension SignalListener {
    /// Waits for a signal or a descriptor, and says what the signal asks for.
    func request(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        if milliseconds != 0 { wait(orReadable: descriptors, milliseconds: milliseconds) }
        switch next() {
        case .interrupt, .terminate: return .stop
        case .hangup: return .reload
        case .user1: return .status
        case nil: return nil
        }
    }
}

private func line(_ status: MirrorFollower.Status) -> String {
    var text = "\(Text.visible(status.destination)): version \(status.version) of \(Text.visible(status.source))"
    if let version = status.sourceVersion { text += ", \(version > status.version ? version - status.version : 0) behind" } else { text += ", not connected" }
    text += "; \(status.stepCount) steps, \(Units.text(bytes: status.byteCount)), \(status.imageCount) images"
    if let seconds = status.secondsBehind, seconds > 0 { text += "; equal \(Units.text(seconds: seconds)) ago" }
    if let wait = status.waitsFor { text += "; \(Text.oneLine(wait))" }
    return text
}
