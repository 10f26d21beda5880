import Glibc
import Replication
import SharedStore
import SystemCalls

/// Seeds over the wire: signed where they are made, proved where they are used.
extension Command {
    static let seedKeygen = Command(
        name: "seed keygen",
        summary: "Make a key to sign seeds with, and the public key to prove them with.",
        details: [
            "KEY is for whoever makes seeds, and only its owner may read it; KEY.pub goes to whoever fetches them. Both are Ed25519 keys in PEM form, as "
                + "'openssl genpkey -algorithm ed25519' makes them."
        ],
        operands: [Operand(name: "KEY", help: "The file of the key; neither it nor KEY.pub may exist.")],
        exitCodes: [(.cannotCreate, "one of the files exists already")],
        run: { invocation in
            let path = invocation.arguments.operand("KEY")
            let key = try SeedSigningKey.generate()
            try key.write(path)
            try invocation.output.line(
                "\(Text.visible(path)): a new key; \(Text.visible(path)).pub: its public half, \(try key.verifyingKey.identifier)"
            )
            return .ok
        })

    static let seedSign = Command(
        name: "seed sign",
        summary: "Sign a seed, so that others can prove who made it.",
        details: [
            "SEED.sig is written, in the place of an older one: a few lines of text with name, size, SHA-256 and time of the seed, and an Ed25519 "
                + "signature over them. Publish it beside the seed."
        ],
        operands: [Operand(name: "SEED", help: "The seed file.")],
        options: [
            .value("signing-key", "s", "KEY", "The key, as 'seed keygen' or 'openssl genpkey -algorithm ed25519' makes it."),
            .value("name", "n", "NAME", "The name that the seed is published under (that of SEED)."),
            .value("output", "o", "FILE", "Write the signature there (SEED.sig)."),
            .value("time", "t", "MOMENT", "When it was made, for builds that give the same result each time (now)."),
        ],
        run: runSeedSign)

    static let seedVerify = Command(
        name: "seed verify",
        summary: "Prove that a seed is what somebody has signed.",
        details: ["Checks the signature and the bytes of SEED, not what is in it; 'verify SEED' does that."],
        operands: [Operand(name: "SEED", help: "The seed file.")],
        options: [
            .value("public-key", "p", "KEY", "A public key that is trusted; may be given several times.", isRepeated: true),
            .value("signature", "s", "FILE", "The signature (SEED.sig)."),
            .value("name", "n", "NAME", "The name that must have been signed (any)."),
            .json,
        ],
        exitCodes: [(.badData, "the seed, or its signature, is not what it should be")],
        run: runSeedVerify)

    static let seedFetch = Command(
        name: "seed fetch",
        summary: "Get a seed from a server, prove that it is the right one, and put it in place.",
        details: [
            "The file must have the SHA-256 that is given, or a signature by one of the keys. The signature is looked for at URL.sig; it also tells the "
                + "name, which must be that in URL, and the size, more than which is never taken in. Where DEST is that seed already, nothing more is fetched.",
            "DEST appears whole, checked and read-only, or stays what it was, whatever happens: a connection that breaks is tried again and goes on where it "
                + "broke, and what was signed earlier than what is there is refused. 'seed install', and the seedFilePath of an application, take it "
                + "from there.",
        ],
        operands: [
            Operand(name: "URL", help: "https://, http:// or file://; the proof does not depend on the way."),
            Operand(name: "DEST", help: "The seed file to make or to replace; nobody may have it open."),
        ],
        options: [
            .value("sha256", "c", "HEX", "The SHA-256 that the file must have."),
            .value("public-key", "p", "KEY", "A public key that is trusted; may be given several times.", isRepeated: true),
            .value("signature", "s", "PLACE", "The signature, a URL or a file (URL.sig)."),
            .value("name", "n", "NAME", "The name that must have been signed (the last part of URL)."),
            .flag("allow-older", nil, "Take a seed that was signed earlier than the one at DEST."),
            .value("max-size", nil, "SIZE", "Take no file that is larger (16G)."),
            .value("ca", nil, "FILE", "For https: believe these authorities instead of those of the system."),
            .value("timeout", nil, "TIME", "Give up a connection over which nothing comes for so long (30s)."),
            .value("retries", nil, "N", "Try so often when nothing more comes (4)."),
            .flag("no-verify", nil, "Prove who made it, but do not check every rule of the format."),
            .keyFile,
        ],
        exitCodes: [
            (.tryAgain, "the server does not answer, or DEST is open"), (.noInput, "the server has no such file"),
            (.badData, "the file is not the right one, or is damaged; DEST is what it was"),
        ],
        run: runSeedFetch)
}

private func runSeedSign(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let seed = arguments.operand("SEED")
    guard let keyPath = arguments.string("signing-key") else {
        throw arguments.usageError("name the key with --signing-key; 'seed keygen' makes one")
    }
    let key = try SeedSigningKey.read(keyPath)
    let status = try SystemCalls.status(path: seed)
    if !status.isRegularFile { throw CommandFailure(.noInput, "\(Text.visible(seed)): is no file") }
    let name = arguments.string("name") ?? seed.split(separator: "/").last.map(String.init) ?? seed
    var time = Int(SystemCalls.realTimeNanoseconds() / 1_000_000_000)
    if let text = arguments.string("time") {
        guard let moment = Units.moment(text), moment.seconds >= 0 else {
            throw arguments.usageError("--time: '\(text)' is no moment such as 2024-02-29T12:30:00Z")
        }
        time = Int(moment.seconds)
    }
    let signature = try SeedSignature.make(seed, name: name, time: time, with: key)
    let path = arguments.string("output") ?? SeedFetch.signaturePath(seed)
    try signature.write(path)
    try invocation.output.line(
        "\(Text.visible(path)): '\(Text.visible(name))', \(Units.text(bytes: signature.byteCount)), sha256 \(signature.digest), key \(signature.key)"
    )
    return .ok
}

private func publicKeys(_ arguments: Arguments) throws -> [SeedVerifyingKey] {
    try arguments.strings("public-key").map(SeedVerifyingKey.read)
}

private func runSeedVerify(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let seed = arguments.operand("SEED")
    let keys = try publicKeys(arguments)
    if keys.isEmpty { throw arguments.usageError("name a public key with --public-key") }
    let path = arguments.string("signature") ?? SeedFetch.signaturePath(seed)
    let signature = try SeedSignature.read(path)
    try signature.check(keys, place: path)
    if let name = arguments.string("name"), name != signature.name {
        throw SeedError.otherName(place: path, signed: signature.name, expected: name)
    }
    try signature.check(contentOf: seed)
    let time = Units.text(seconds: Int64(signature.time), nanoseconds: 0) ?? "\(signature.time)"
    if invocation.wantsJSON {
        try invocation.output.line(
            JSONText.object([
                ("path", .string(seed)), ("name", .string(signature.name)), ("bytes", .integer(signature.byteCount)),
                ("sha256", .string("\(signature.digest)")), ("time", .string(time)), ("key", .string(signature.key)),
            ]).text)
    } else {
        try invocation.output.line(
            "\(Text.visible(seed)): signed as '\(Text.visible(signature.name))' at \(time), sha256 \(signature.digest), key \(signature.key)"
        )
    }
    return .ok
}

/// Shown by the thread that fetches.
private final class FetchProgress {
    private let console: Console
    private var shown: Progress?
    init(_ console: Console) { self.console = console }
    func update(_ done: Int, _ total: Int?) {
        let progress = shown ?? Progress("seed fetch", total: total, unit: .bytes, on: console)
        shown = progress
        progress.update(done)
    }
    func end() { shown?.end() }
}

private func runSeedFetch(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let url = arguments.operand("URL"), destination = arguments.operand("DEST")
    let keys = try publicKeys(arguments)
    let proof: SeedFetch.Proof
    switch (arguments.string("sha256"), keys.isEmpty) {
    case (let text?, true):
        guard let digest = Digest(hexadecimal: text) else {
            throw arguments.usageError("--sha256: '\(text)' is not 64 hex digits")
        }
        proof = .checksum(digest)
    case (nil, false): proof = .signature(keys: keys, place: arguments.string("signature"))
    case (nil, true): throw arguments.usageError("say how to know the right file: --sha256, or --public-key for its signature")
    case (_?, false): throw arguments.usageError("say either --sha256 or --public-key")
    }
    var options = SeedFetch.Options(proof: proof)
    options.name = arguments.string("name")
    options.allowsOlder = arguments.has("allow-older")
    options.authorities = arguments.string("ca")
    if let text = arguments.string("max-size") {
        guard let size = Units.byteCount(text), size > 0 else {
            throw arguments.usageError("--max-size: '\(text)' is no size such as 100M")
        }
        options.byteCountMax = size
    }
    if let timeout = try arguments.duration("timeout") {
        options.silenceSeconds = max(1, Int(clamping: timeout.components.seconds))
    }
    options.retriesMax = try arguments.integer("retries", in: 0...1000) ?? options.retriesMax
    let key = try Database.key(invocation)
    let isVerified = !arguments.has("no-verify")
    options.examine = { path in if isVerified { try examine(path, key, url) } }
    let progress = FetchProgress(invocation.console)
    options.onProgress = { progress.update($0, $1) }
    defer { progress.end() }
    options.onDraft = { path in _ = Ending.with({ path }, duty: { try? SystemCalls.unlink($0) }) }
    Ending.obeySignals()
    let outcome = try SeedFetch(url, to: destination, options: options).run()
    progress.end()
    switch outcome {
    case .installed(let count): try invocation.output.line("\(Text.visible(destination)): fetched, \(Units.text(bytes: count))")
    case .unchanged: try invocation.output.line("\(Text.visible(destination)): is that seed already")
    }
    return .ok
}

/// A seed must be a database in good order before anybody gets it.
private func examine(_ path: String, _ key: EncryptionKey?, _ url: String) throws {
    let report: VerificationReport
    do {
        report = try key.map { try verifyEncrypted(path, $0, VerifierOptions()) } ?? Verifier.verify(ImmutableFile(path: path))
    } catch let error as OpenError {
        throw CommandFailure(
            .badData, "\(Text.visible(url)): what came is what it should be, but no seed that can be opened: \(error)")
    }
    if !report.isSound {
        throw CommandFailure(
            .badData,
            "\(Text.visible(url)): what came is what it should be, but damaged: \(report.findings.first.map { "\($0)" } ?? "unreadable")"
        )
    }
}
