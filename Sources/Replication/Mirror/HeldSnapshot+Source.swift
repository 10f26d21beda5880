import SharedStore

extension HeldSnapshot {
    /// Whether the version would survive the death of everybody (mirroring.md 3.1).
    func isDurable(in participant: Participant) throws -> Bool {
        guard participant.options.durability == .full else { return true }
        let top = try participant.file.currentHeader().liveTopRef
        if top == UInt64(snapshot.topRef) { return true }
        // Ahead of the list: flipped, and about to be published. Behind it, or in the midst of being written: not yet.
        guard let found = try? participant.file.inspect(), found.snapshot.version > snapshot.version else { return false }
        return try participant.file.currentHeader().liveTopRef == UInt64(found.snapshot.topRef)
    }

    /// The version before the oldest changeset of this one; nil where there is no history.
    func historyBase() throws -> UInt64? {
        let top = try memory.node(snapshot.topRef)
        guard try top.tagged(TopSlot.historyType) != 0 else { return nil }
        return try HistoryReader(memory: memory, topRef: snapshot.topRef, version: snapshot.version).base
    }
}
