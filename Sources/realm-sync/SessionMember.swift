import SharedStore

/// This process as a participant of a session. It leaves when the object goes, and before the process ends.
final class SessionMember: Sendable {
    let participant: Participant
    private let duty: Int

    /// Joins the session of `file`, in whichever way those who are in it have opened it.
    init(_ file: ImmutableFile, label: String, console: Console) throws {
        (participant, duty) = try Ending.with { try SessionMember.join(file, label) } duty: { try? $0.close(force: true) }
        for warning in participant.warnings { console.message("note: \(warning)") }
    }

    deinit {
        try? participant.close(force: true)
        Ending.forget(duty)
    }

    /// The newest version, or nil where somebody stopped keeps it from being looked at.
    var newestVersion: UInt64? { try? participant.newestVersion(.after(.milliseconds(200))) }

    /// Holds the newest version.
    func holdNewest() throws -> HeldVersion { try HeldVersion(self) }

    private static func join(_ file: ImmutableFile, _ label: String) throws -> Participant {
        var options = ParticipantOptions()
        options.createsFile = false
        options.label = label
        let isWithoutHistory = file.layout.topRef != 0 && (try? file.group.historyType()) == 0
        var first: SessionError?
        // Not `memoryOnly`: whoever comes first into such a session empties the file.
        for durability in [Durability.full, .unsafe] {
            for history in isWithoutHistory ? [HistoryType.none, .inFile] : [.inFile, .none] {
                options.durability = durability
                options.historyType = history
                do { return try Participant.open(file.path, options) } catch let error as SessionError {
                    guard case .incompatibleSession = error else { throw error }
                    first = first ?? error
                }
            }
        }
        throw first ?? SessionError.inUse(path: file.path)
    }
}

/// A version that stays readable as long as this object lives, and the membership that it needs.
final class HeldVersion: @unchecked Sendable {
    // Sendable: nothing changes after init; the view is only read.
    let member: SessionMember
    private let lock: ReadLock
    private let view: FileView

    init(_ member: SessionMember) throws {
        self.member = member
        let lock = try member.participant.acquireNewest(.live)
        do { view = try member.participant.file.view(of: lock.snapshot) } catch {
            member.participant.release(lock)
            throw error
        }
        self.lock = lock
    }

    deinit { member.participant.release(lock) }

    var snapshot: Snapshot { lock.snapshot }
    var memory: Memory { view.memory }

    func group() throws -> Group {
        try Group(memory: view.memory, topRef: lock.snapshot.topRef, format: Int(FileHeader.currentFormat), owner: self)
    }
}
