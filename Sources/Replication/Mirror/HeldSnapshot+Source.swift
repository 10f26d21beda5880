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

    /// The type of the history (slot 7 of the top array), and the version before its oldest changeset; 0 where there is none.
    func history() throws -> (type: UInt8, base: UInt64) {
        let top = try memory.node(snapshot.topRef)
        let type = UInt8(clamping: try top.tagged(TopSlot.historyType))
        if type == 0 { return (0, 0) }
        return (type, try HistoryReader(memory: memory, topRef: snapshot.topRef, version: snapshot.version).base)
    }
}
