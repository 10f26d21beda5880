import Glibc
import Replication
import SharedStore
import SystemCalls

extension Command {
    static let serve = Command(
        name: "serve",
        summary: "Take in mirrors from other machines, and give files out to them.",
        details: [
            "The files are those below DIR; 'mirror SOURCE realm://host:port/name' brings one here, 'mirror realm://host:port/name DEST' fetches one. "
                + "Everything goes over TLS 1.3, and a client must show a certificate that the authority has signed, or know a shared secret; 'certs' "
                + "makes what is needed.",
            "The file of --clients has one rule a line: CLIENT RIGHTS NAMES. CLIENT is the common name of a certificate, or the name of a secret, or "
                + "*; RIGHTS are push, pull and force, with commas between, and rate=SIZE for at most so many bytes a second; NAMES are patterns with * for "
                + "anything but '/', ** for anything. What no line allows is refused. Without the file every client may push and pull every name, and "
                + "replace nothing by force.",
            "The file of --revoked names certificates that count no more: lists that the authority has signed (CRL, PEM), and lines with the SHA-256 of a "
                + "certificate, which 'certs --revoke' writes. SIGHUP reads certificates, secrets, rights and revocations again; whoever would not be let in "
                + "any more is cut off, the others go on. SIGTERM ends it when the steps that are under way are done, SIGUSR1 writes a line of status.",
        ],
        options: [
            .value("listen", "l", "ADDR", "Listen at host:port, [::1]:port, :port (:7733)."),
            .value("root", "r", "DIR", "The folder whose files are served."),
            .value("cert", nil, "FILE", "The certificate of this server."),
            .value("key", nil, "FILE", "Its key."),
            .value("client-ca", nil, "FILE", "The authority that has signed the clients' certificates."),
            .value("psk-file", nil, "FILE", "A file of shared secrets, NAME:HEX a line, instead of certificates or beside them."),
            .value("clients", nil, "FILE", "What each client may do."),
            .value("revoked", nil, "FILE", "Certificates that count no more."),
            .value(
                "rate-limit", nil, "SIZE",
                "Each connection carries at most so many bytes a second, unless its rule says another rate (no limit)."),
            .keyFile,
            .flag("allow-plain", nil, "Take in encrypted files although no key is given, and keep them plain."),
            .value("max-clients", nil, "N", "Serve at most N clients at once (4096)."),
            .gather,
        ],
        needs: ["--root DIR", "(--cert FILE --key FILE --client-ca FILE | --psk-file FILE)"],
        exitCodes: [
            (.notPermitted, "the address may not be used"), (.usage, "a certificate, a secret or a rule cannot be used"),
        ],
        run: runServe)

    static let receive = Command(
        name: "receive",
        summary: "Take in a mirror over standard input and output, for ssh.",
        details: ["Started at the other machine by 'mirror SOURCE ssh://host/path'."],
        operands: [Operand(name: "DEST", help: "The realm file to make.")],
        options: [.keyFile, .flag("allow-plain", nil, "Take in an encrypted file although no key is given, and keep it plain.")],
        run: { try runPipe($0, .receive, $0.arguments.operand("DEST")) })

    static let send = Command(
        name: "send",
        summary: "Give a file out over standard input and output, for ssh.",
        details: ["Started at the other machine by 'mirror ssh://host/path DEST'."],
        operands: [Operand(name: "SOURCE", help: "The realm file to read.")],
        options: [.keyFile],
        run: { try runPipe($0, .send, $0.arguments.operand("SOURCE")) })

    static let certs = Command(
        name: "certs",
        summary: "Make a small authority, and certificates for servers and clients.",
        details: [
            "DIR gets ca.crt and ca.key, unless they are there, and NAME.crt and NAME.key for each server and client that is named. The server gets "
                + "ca.crt and its own two files, each client ca.crt and its own two; ca.key stays where it is.",
            "With --revoke, a certificate is written into DIR/revoked, which goes to --revoked of servers and clients, and its files get other names, so "
                + "that a new one of the same name can be made.",
        ],
        operands: [Operand(name: "DIR", help: "The folder for the files; it is made where it is missing.")],
        options: [
            .value(
                "server", "s", "NAME[,HOST...]",
                "A certificate for a server, with the names and addresses that clients reach it by.", isRepeated: true),
            .value(
                "client", "c", "NAME", "A certificate for a client; --clients of 'serve' knows it by this name.", isRepeated: true
            ),
            .value("days", "d", "N", "How long they are valid (825)."),
            .value("revoke", "r", "NAME", "Revoke the certificate NAME.crt in DIR.", isRepeated: true),
        ],
        exitCodes: [(.cannotCreate, "a certificate of that name is there already")],
        run: runCertificates)
}

private func runServe(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let console = invocation.console, output = invocation.output
    guard let root = arguments.string("root") else { throw arguments.usageError("name the folder to serve with --root") }
    guard let tls = try TLSArguments.settings(arguments, authority: "client-ca") else {
        throw arguments.usageError("name a certificate with --cert, --key and --client-ca, or shared secrets with --psk-file")
    }
    var options = MirrorServer.Options(root: root, tls: tls)
    if let address = arguments.string("listen") { options.address = address }
    options.rightsFile = arguments.string("clients")
    options.key = try Database.key(invocation)
    options.allowsPlain = arguments.has("allow-plain")
    options.bytesPerSecond = try TLSArguments.rate(arguments)
    options.connectionsMax = try arguments.integer("max-clients", in: 1...100_000) ?? options.connectionsMax
    if let limit = try arguments.duration("gather") { options.mirror.gatherLimit = limit }
    options.onMessage = { console.message(Text.oneLine($0)) }
    // Each client needs a few; the hard limit is the administrator's decision.
    SystemCalls.raiseDescriptorLimit()
    SystemCalls.boundHeaps()
    let signals = try SignalListener()
    let server = try MirrorServer(options)
    for address in server.addresses { try output.line("listening at \(address)") }
    try output.flush()
    let manager = ServiceManager { name in getenv(name).map { String(cString: $0) } }
    manager.ready("serving \(root)")
    defer { manager.stopping() }
    try server.run(
        onStatus: { line in
            _ = try? output.line(Text.oneLine(line))
            _ = try? output.flush()
        },
        control: { descriptors, milliseconds in
            let request = signals.request(descriptors, milliseconds)
            // Where the manager waits for it: what was asked is done before the next one is.
            if case .reload? = request { manager.ready("serving \(root)") }
            return request
        })
    return .ok
}

private func runPipe(_ invocation: Invocation, _ direction: PipeService.Direction, _ path: String) throws -> ExitCode {
    let console = invocation.console
    var options = Mirror.Options()
    options.onMessage = { console.message("note: \(Text.oneLine($0))") }
    let signals = try SignalListener([.interrupt, .terminate, .hangup])
    do {
        try PipeService.run(
            direction, path: path, key: try Database.key(invocation),
            allowsPlain: direction == .receive && invocation.arguments.has("allow-plain"), options: options
        ) { descriptors, milliseconds in
            // A hang-up is the end of the connection that started us.
            let request = signals.request(descriptors, milliseconds)
            if case .reload? = request { return .stop }
            return request
        }
    } catch WireError.closed { return .ok }
    return .ok
}

private func runCertificates(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let folder = arguments.operand("DIR")
    let days = try arguments.integer("days", in: 1...36_500) ?? 825
    let maker = try CertificateMaker(folder: folder)
    try invocation.output.line("\(Text.visible(folder))/ca.crt: the authority")
    for name in arguments.strings("revoke") {
        let revoked = try maker.revoke(name)
        try invocation.output.line(
            "\(Text.visible(revoked)): does not count any more where \(Text.visible(folder))/revoked is known")
    }
    for text in arguments.strings("server") {
        let words = text.split(separator: ",").map(String.init)
        guard let name = words.first else { throw arguments.usageError("--server needs a name") }
        let made = try maker.make(.server, name: name, hosts: words.count > 1 ? Array(words.dropFirst()) : [], days: days)
        try invocation.output.line(
            "\(Text.visible(made.certificate)): a server, \(words.dropFirst().isEmpty ? name : words.dropFirst().joined(separator: ", "))"
        )
    }
    for name in arguments.strings("client") {
        let made = try maker.make(.client, name: name, days: days)
        try invocation.output.line("\(Text.visible(made.certificate)): a client")
    }
    return .ok
}
