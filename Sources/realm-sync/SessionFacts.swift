import Glibc
import SharedStore
import SystemCalls

/// Who takes part in the session, and what that costs.
struct SessionFacts {
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
        let foreign = unregistered > 0 ? ", \(unregistered) of them other software" : ""
        fields.add("session", "\(participantCount) participants\(foreign)")
        fields.add("durability", durability)
        fields.add("writer", status.writer)
    }

    func writeTables(to output: OutputStream) throws {
        if !others.isEmpty {
            var table = TextTable([">process", "program", "purpose", "since", "holds"])
            for participant in others {
                let pins = participant.pins.map { pin in "\(pin.version)\(pin.isLive ? "" : " frozen") for \(age(pin.since))" }
                table.add([
                    "\(participant.processIdentifier)", participant.programName + (participant.isAlive ? "" : " (dead)"),
                    participant.label, age(participant.since), pins.isEmpty ? "-" : pins.joined(separator: ", "),
                ])
            }
            try output.line("")
            try table.write(to: output)
        }
        var table = TextTable([">version", ">size", ">readers", ">frozen", ">unknown holders", ">keeps from reuse"])
        for version in status.versions {
            table.add([
                "\(version.version)", Units.text(bytes: version.logicalSize), "\(readers(version))", "\(version.frozenLockCount)",
                "\(max(0, version.unregisteredLockCount))", version.bytesHeld.map { Units.text(bytes: $0) } ?? "?",
            ])
        }
        if !table.isEmpty {
            try output.line("")
            try table.write(to: output)
        }
    }

    /// Without our own lock on the newest version, which is not worth telling.
    private func readers(_ version: SessionStatus.Version) -> Int { max(0, version.liveLockCount - (version.isNewest ? 1 : 0)) }

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
            (
                "registered",
                .array(
                    others.map { participant in
                        .object([
                            ("pid", JSONText(participant.processIdentifier)), ("program", .string(participant.programName)),
                            ("label", .string(participant.label)), ("sinceNanoseconds", JSONText(participant.since)),
                            ("alive", .bool(participant.isAlive)),
                            (
                                "pins",
                                .array(
                                    participant.pins.map { pin in
                                        .object([
                                            ("version", JSONText(pin.version)), ("live", .bool(pin.isLive)),
                                            ("sinceNanoseconds", JSONText(pin.since)),
                                        ])
                                    })
                            ),
                        ])
                    })
            ),
            (
                "versions",
                .array(
                    status.versions.map { version in
                        .object([
                            ("version", JSONText(version.version)), ("newest", .bool(version.isNewest)),
                            ("size", .integer(version.logicalSize)), ("live", .integer(readers(version))),
                            ("frozen", .integer(version.frozenLockCount)),
                            ("unregistered", .integer(version.unregisteredLockCount)), ("bytesHeld", JSONText(version.bytesHeld)),
                        ])
                    })
            ),
        ])
    }
}
