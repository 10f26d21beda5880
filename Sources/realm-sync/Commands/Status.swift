import Replication
import SharedStore
import SystemCalls

extension Command {
    static let status = Command(
        name: "status",
        summary:
            "Show format, version, sizes and history of a file, and who uses it; without FILE, how the service and its mirrors are.",
        details: [
            "Without FILE the service that 'run' has started is asked at its socket: one line for each mirror and archive, with its state, how far it is "
                + "behind in versions, bytes and seconds, its last error and the next try. The seconds rise as long as nothing proves that both sides "
                + "are equal, also while the other side is frozen. The exit code is for monitoring."
        ],
        operands: [Operand(name: "FILE", count: .optional, help: "A realm file; without it the service is asked.")],
        options: [
            .keyFile, .immutable, .json,
            .flag("problems", "p", "Of the service: show only what is behind, has failed or waits for something."),
            .value(
                "socket", "S", "PATH", "The socket of the service (REALM_SYNC_SERVICE_SOCKET, else /run/realm-sync/status.sock)."),
        ],
        exitCodes: [
            (.damageFound, "a mirror of the service is behind"),
            (.failed, "a mirror of the service has failed, or the service does not run"),
        ],
        run: runStatus)
}

private func runStatus(_ invocation: Invocation) throws -> ExitCode {
    guard let path = invocation.arguments.operands("FILE").first else { return try runServiceStatus(invocation) }
    if let option = ["socket", "problems"].first(where: { invocation.arguments.has($0) }) {
        throw invocation.arguments.usageError("a FILE is looked at without the service; --\(option) is for the service")
    }
    let key = try Database.key(invocation)
    Ending.obeySignals()
    return try SteadyReading.attempt(path) { try status(invocation, path, key) }
}

private func status(_ invocation: Invocation, _ path: String, _ key: EncryptionKey?) throws -> ExitCode {
    let file = try ImmutableFile(path: path, key: key)
    // A file that nobody has open is looked at without making a session of our own.
    let member = SessionProbe.look(path) == .notLive ? nil : try Database.join(file, key, invocation)
    let session = try member.flatMap { member in
        try member.store.status().map { SessionFacts($0, ownLabel: member.store.options.label) }
    }
    let facts = try facts(file, member, isEncrypted: key != nil)
    let replica = try replicaStatus(path, key, invocation)
    if invocation.wantsJSON {
        let members =
            [("path", JSONText.string(path))] + facts.members
            + [("session", session?.json ?? .null), ("mirror", replica.map { mirrorJSON($0) } ?? .null)]
        try invocation.output.line(JSONText.object(members).text)
        return .ok
    }
    var fields = FieldList()
    fields.add("file", path)
    facts.add(to: &fields)
    if let replica { add(replica, to: &fields) }
    session?.add(to: &fields)
    if session == nil {
        let isLive = SessionProbe.look(path) == .live
        fields.add("session", isLive ? "live, but it could not be joined from here" : "none: nobody has the file open")
    }
    try fields.write(to: invocation.output)
    try session?.writeTables(to: invocation.output)
    return .ok
}

/// Where the state of a mirroring cannot be opened, the rest is told all the same.
private func replicaStatus(_ path: String, _ key: EncryptionKey?, _ invocation: Invocation) throws -> Mirror.ReplicaStatus? {
    do { return try Mirror.status(path, sourceKey: key) } catch let error where !(error is MirrorError) {
        invocation.console.message("note: whether the file is a mirror cannot be told: \(Failure(error).message ?? "\(error)")")
        return nil
    }
}

/// Facts of the session's newest version, which the header may not show yet, or of the file.
private func facts(_ file: ImmutableFile, _ member: SessionMember?, isEncrypted: Bool) throws -> FileFacts {
    guard let member else {
        let snapshot = Snapshot(version: try file.group.version(), topRef: file.layout.topRef, logicalSize: file.layout.fileLimit)
        return try FileFacts(file, file.group, file.memory, snapshot, isEncryptedFile: isEncrypted)
    }
    let transaction = try member.store.beginRead()
    return try withExtendedLifetime(transaction) {
        try FileFacts(file, transaction.group, transaction.memory, transaction.snapshot, isEncryptedFile: isEncrypted)
    }
}

/// What a replica tells of itself: source, version, how far behind, since when.
private func add(_ replica: Mirror.ReplicaStatus, to fields: inout FieldList) {
    let state = replica.state
    fields.add("mirror of", Text.visible(state.source))
    let age = max(0, Double(SystemCalls.realTimeNanoseconds()) - Double(state.time)) / 1e9
    var text = "version \(state.snapshot.version), seen there \(Units.text(seconds: age)) ago"
    if let version = replica.sourceVersion {
        text += version > state.snapshot.version ? ", \(version - state.snapshot.version) versions behind" : ", up to date"
    } else {
        text += "; the source cannot be read from here"
    }
    fields.add("mirrored", text)
    fields.add("mirrored by", replica.runner.map { Text.oneLine($0) } ?? "nobody at the moment")
}

private func mirrorJSON(_ replica: Mirror.ReplicaStatus) -> JSONText {
    .object([
        ("source", .string(replica.state.source)), ("version", JSONText(replica.state.snapshot.version)),
        ("sequence", JSONText(replica.state.sequence)), ("seenNanoseconds", JSONText(replica.state.time)),
        ("sourceVersion", replica.sourceVersion.map { JSONText($0) } ?? .null), ("runner", JSONText(replica.runner)),
    ])
}
