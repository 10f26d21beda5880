import Glibc
import SharedStore
import SystemCalls

extension Command {
    static let status = Command(
        name: "status",
        summary: "Show format, version, sizes and history of a file, and who uses it.",
        operands: [.file],
        options: [.keyFile, .immutable, .json],
        run: runStatus)
}

private func runStatus(_ invocation: Invocation) throws -> ExitCode {
    let path = invocation.arguments.operand("FILE")
    let file = try ImmutableFile(path: path, key: Database.key(invocation))
    Ending.obeySignals()
    // A file that nobody has open is looked at without making a session of our own.
    let member = SessionProbe.look(path) == .notLive ? nil : try Database.join(file, invocation)
    let session = try member.map { member in
        return SessionFacts(try member.participant.status(), ownLabel: member.participant.options.label)
    }
    let facts = try facts(file, member)
    if invocation.wantsJSON {
        let members = [("path", JSONText.string(path))] + facts.members + [("session", session?.json ?? .null)]
        try invocation.output.line(JSONText.object(members).text)
        return .ok
    }
    var fields = FieldList()
    fields.add("file", path)
    facts.add(to: &fields)
    session?.add(to: &fields)
    if session == nil { fields.add("session", "none: nobody has the file open") }
    try fields.write(to: invocation.output)
    try session?.writeTables(to: invocation.output)
    return .ok
}

/// Facts of the session's newest version, which the header may not show yet, or of the file.
private func facts(_ file: ImmutableFile, _ member: SessionMember?) throws -> FileFacts {
    guard let member else {
        return try FileFacts(file, file.group, file.memory, topRef: file.layout.topRef, logicalSize: file.layout.fileLimit, version: file.group.version())
    }
    let held = try member.holdNewest()
    return try withExtendedLifetime(held) {
        try FileFacts(file, held.group(), held.memory, topRef: held.snapshot.topRef, logicalSize: held.snapshot.logicalSize, version: held.snapshot.version)
    }
}

/// What the file itself says, without the session.
private struct FileFacts {
    let format: Int
    let isStreaming: Bool
    let version: UInt64
    let fileSize: Int
    let logicalSize: Int
    let freeBytes: Int
    let freeBlockCount: Int
    let historyType: Int
    let schemaVersion: Int64
    let classCount: Int
    let objectCount: Int
    let isEncrypted: Bool

    init(_ file: ImmutableFile, _ group: Group, _ memory: Memory, topRef: Int, logicalSize: Int, version: UInt64) throws {
        format = file.layout.format
        isStreaming = file.layout.isStreaming
        self.version = version
        fileSize = try SystemCalls.status(path: file.path).size
        isEncrypted = file.layout.header.mnemonic == FileHeader.mnemonic && file.fileSize < fileSize && fileSize % PageGeometry.pageByteCount == 0
        self.logicalSize = logicalSize
        historyType = try group.historyType()
        schemaVersion = try group.schemaVersion()
        let tables = try group.classTables()
        classCount = tables.count
        objectCount = tables.reduce(0) { $0 + $1.objectCount }
        (freeBytes, freeBlockCount) = try FileFacts.freeSpace(memory, topRef)
    }

    /// Sum and number of the free blocks (file-format-3 2.1).
    private static func freeSpace(_ memory: Memory, _ topRef: Int) throws -> (Int, Int) {
        if topRef == 0 { return (0, 0) }
        let ref = try memory.node(topRef).optionalRef(TopSlot.freeLengths)
        if ref == 0 { return (0, 0) }
        let lengths = try memory.node(ref)
        var sum = 0
        for index in 0..<lengths.count {
            let (next, overflow) = sum.addingReportingOverflow(Int(lengths.unchecked(index)))
            if overflow { throw FormatError(ref: ref, "the lengths of the free list have no sum") }
            sum = next
        }
        return (sum, lengths.count)
    }

    private var historyText: String {
        switch historyType {
        case 0: "none"
        case 1: "out of realm"
        case 2: "local"
        case 3: "sync client"
        case 4: "sync server"
        default: "of unknown type \(historyType)"
        }
    }

    func add(to fields: inout FieldList) {
        fields.add("file format", "\(format)\(isStreaming ? ", streaming form" : "")\(isEncrypted ? ", encrypted" : "")")
        fields.add("version", "\(version)")
        fields.add("size", "\(Units.text(bytes: fileSize)) (\(fileSize) bytes)")
        fields.add("in use", "\(Units.text(bytes: logicalSize - freeBytes)) of \(Units.text(bytes: logicalSize))")
        fields.add("free space", "\(Units.text(bytes: freeBytes)) in \(freeBlockCount) blocks")
        fields.add("history", historyText)
        fields.add("schema version", schemaVersion < 0 ? "none" : "\(schemaVersion)")
        fields.add("classes", "\(classCount), with \(objectCount) objects")
    }

    var members: [(String, JSONText)] {
        [
            ("format", .integer(format)), ("streaming", .bool(isStreaming)), ("encrypted", .bool(isEncrypted)), ("version", JSONText(version)),
            ("fileSize", .integer(fileSize)), ("logicalSize", .integer(logicalSize)), ("freeBytes", .integer(freeBytes)),
            ("freeBlocks", .integer(freeBlockCount)), ("historyType", .integer(historyType)), ("schemaVersion", .integer(Int(schemaVersion))),
            ("classes", .integer(classCount)), ("objects", .integer(objectCount)),
        ]
    }
}

/// Who takes part in the session, and what that costs.
private struct SessionFacts {
    private let status: SessionStatus
    private let others: [SessionStatus.Participant]
    /// Everybody but ourselves.
    private let participantCount: Int

    init(_ status: SessionStatus, ownLabel: String) {
        self.status = status
        let own = UInt64(getpid())
        others = status.participants.filter { !($0.processIdentifier == own && $0.label == ownLabel) }
        participantCount = max(0, status.participantCount - 1)
    }

    private var unregistered: Int { max(0, participantCount - others.count) }

    private var durability: String? { status.durability.map { "\($0)" } }

    func add(to fields: inout FieldList) {
        fields.add("session", "\(participantCount) participants" + (unregistered > 0 ? ", \(unregistered) of them other software" : ""))
        fields.add("durability", durability)
        fields.add("writer", status.writer)
    }

    func writeTables(to output: OutputStream) throws {
        if !others.isEmpty {
            var table = TextTable([">process", "program", "purpose", "since", "holds"])
            for participant in others {
                let pins = participant.pins.map { pin in "\(pin.version)\(pin.isLive ? "" : " frozen") for \(age(pin.since))" }
                table.add(["\(participant.processIdentifier)", participant.programName + (participant.isAlive ? "" : " (dead)"), participant.label,
                           age(participant.since), pins.isEmpty ? "-" : pins.joined(separator: ", ")])
            }
            try output.line("")
            try table.write(to: output)
        }
        var table = TextTable([">version", ">size", ">readers", ">frozen", ">unknown holders", ">keeps from reuse"])
        for version in status.versions {
            table.add(["\(version.version)", Units.text(bytes: version.logicalSize), "\(version.liveLockCount - (version.isNewest ? 1 : 0))",
                       "\(version.frozenLockCount)", "\(max(0, version.unregisteredLockCount))", version.bytesHeld.map { Units.text(bytes: $0) } ?? "?"])
        }
        if !table.isEmpty {
            try output.line("")
            try table.write(to: output)
        }
    }

    private func age(_ since: UInt64) -> String {
        Units.text(seconds: max(0, Double(SystemCalls.realTimeNanoseconds()) - Double(since)) / 1e9)
    }

    var json: JSONText {
        .object([
            ("durability", JSONText(durability)),
            ("newestVersion", JSONText(status.newestVersion)),
            ("participants", .integer(participantCount)),
            ("otherSoftware", .integer(unregistered)),
            ("writer", JSONText(status.writer)),
            ("registered", .array(others.map { participant in
                .object([
                    ("pid", JSONText(participant.processIdentifier)), ("program", .string(participant.programName)), ("label", .string(participant.label)),
                    ("sinceNanoseconds", JSONText(participant.since)), ("alive", .bool(participant.isAlive)),
                    ("pins", .array(participant.pins.map { pin in
                        .object([("version", JSONText(pin.version)), ("live", .bool(pin.isLive)), ("sinceNanoseconds", JSONText(pin.since))])
                    })),
                ])
            })),
            ("versions", .array(status.versions.map { version in
                .object([
                    ("version", JSONText(version.version)), ("newest", .bool(version.isNewest)), ("size", .integer(version.logicalSize)),
                    // Our own lock on the newest version is not worth telling.
                    ("live", .integer(version.liveLockCount - (version.isNewest ? 1 : 0))), ("frozen", .integer(version.frozenLockCount)),
                    ("unregistered", .integer(version.unregisteredLockCount)), ("bytesHeld", JSONText(version.bytesHeld)),
                ])
            })),
        ])
    }
}
