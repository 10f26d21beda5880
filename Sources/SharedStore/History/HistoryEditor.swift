/// Appends the changeset of a commit to the history, and drops what nobody needs any more (file-format-3 5.2, 5.4, 5.5).
///
/// Invariant: a version has exactly one changeset for each commit since the history's base; never a commit without one, since
/// peers advance by them.
enum HistoryEditor {
    /// History type of local files, and the schema version of their history.
    static let localType = 2, schemaVersion = 1

    /// So many changesets that nobody needs any more are dropped by one commit, or a sixteenth of all where that is more: whoever
    /// commits when a reader has gone on that held a version for long does not pay for all at once.
    static let dropCountMin = 16

    /// Appends `changeset`, which leads to `newVersion`, and drops those that lead to `oldestLive` or to an older version.
    ///
    /// - Parameter piecewise: drop a part of them only, where they are many; the next commits drop the others.
    static func append(
        _ group: GroupEditor, _ changeset: [UInt8], newVersion: UInt64, oldestLive: UInt64, piecewise: Bool = false
    ) throws {
        let arena = group.arena
        try group.setTopElement(
            TopSlot.syncFileIdent,
            group.topElement(TopSlot.syncFileIdent) == 0 ? Arena.tag(0) : group.topElement(TopSlot.syncFileIdent))
        try group.setTopElement(TopSlot.historyType, Arena.tag(localType))
        try group.setTopElement(TopSlot.historySchema, Arena.tag(schemaVersion))
        let present = group.topElement(TopSlot.history)
        if present & 1 != 0 || present < 0 { throw FormatError(ref: group.top, "the history is no ref") }
        var root = present == 0 ? try BPlusTreeEditor<ChangesetLeafEditor>.create(arena) : Int(present)
        root = try changeset.withUnsafeBytes {
            // An empty changeset is an empty string, not a null.
            try BPlusTreeEditor<ChangesetLeafEditor>.append(
                arena, root, $0.baseAddress == nil ? UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 8), count: 0) : $0
            )
        }
        var count = try BPlusTreeEditor<ChangesetLeafEditor>.count(arena, root)
        // base = newVersion - count; elements up to the oldest live version go, the one just appended stays.
        let left = piecewise ? count - max(dropCountMin, count / 16) : 0
        while count > max(1, left), newVersion - UInt64(count) < oldestLive {
            root = try BPlusTreeEditor<ChangesetLeafEditor>.erase(arena, root, 0)
            count -= 1
        }
        try group.setTopElement(TopSlot.history, Int64(root))
    }
}
