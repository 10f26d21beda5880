import SystemCalls

/// What header and top array of a file say, checked by `FileLayout` (file-format-1 1.5, conditions 1-9).
///
/// Whether the format can be read or must be upgraded, and whether the history fits, is judged by whoever opens the file.
public struct FileInspection: Sendable {
    /// What the header says, and where the newest version lies.
    public let layout: FileLayout
    /// The first 24 bytes.
    public var header: FileHeader { layout.header }
    /// Bytes of content that there is room for.
    public let physicalSize: Int
    /// The state of the header's live slot (in streaming form, of the footer): version 1, top ref 0 and 24 bytes for a file
    /// that was never committed to.
    public let snapshot: Snapshot
    /// The format of the live slot; 0 where it is undecided.
    public var format: UInt8 { header.liveFormat }
    /// The file was written from beginning to end, as copies are, and not committed to since.
    public var isStreaming: Bool { layout.isStreaming }
    /// Slot 7 of the top array: 0 none, 2 in the file, 3 and 4 of synchronised files.
    public let historyType: Int
    /// Slot 9 of the top array.
    public let historySchemaVersion: Int
    /// What the logical size, rounded up to pages, asks of the physical one; nil for a file that was never committed to.
    public var alignedSize: Int? { snapshot.topRef == 0 ? nil : roundUp(snapshot.logicalSize, SystemCalls.pageSize) }
}

extension DatabaseFile {
    /// Looks at header, footer and top array. Throws `OpenError` where the file cannot be a database, `SystemError`, or what
    /// the page source throws.
    public func inspect() throws -> FileInspection {
        let size = try backend.size()
        let view = try view(of: Snapshot(version: 0, topRef: 0, logicalSize: size))
        let layout = try FileLayout(path: path, memory: view.memory, fileSize: size)
        if layout.topRef == 0 {
            let snapshot = Snapshot(version: 1, topRef: 0, logicalSize: FileHeader.byteCount)
            return FileInspection(layout: layout, physicalSize: size, snapshot: snapshot, historyType: 0, historySchemaVersion: 0)
        }
        do {
            let top = try view.memory.node(layout.topRef)
            let logicalSize = try top.tagged(TopSlot.logicalSize), version = try top.tagged(TopSlot.version)
            if logicalSize % 8 != 0 || logicalSize < layout.topRef + top.byteCount {
                throw FormatError(ref: layout.topRef, "logical size \(logicalSize) cannot be, the top has \(top.byteCount) bytes")
            }
            if version < 0 { throw FormatError(ref: layout.topRef, "version \(version) cannot be") }
            let snapshot = Snapshot(version: UInt64(max(version, 1)), topRef: layout.topRef, logicalSize: logicalSize)
            return FileInspection(
                layout: layout, physicalSize: size, snapshot: snapshot,
                historyType: try top.tagged(TopSlot.historyType),
                historySchemaVersion: try top.tagged(TopSlot.historySchema))
        } catch let error as FormatError { throw OpenError.damaged(path: path, error) }
    }

    // MARK: What the initiator of a session repairs

    /// Turns streaming form into the normal one (file-format-1 1.4). Slot 0 keeps its mark until the next commit.
    public func convertFromStreamingForm(_ inspection: FileInspection, durability: Durability) throws {
        precondition(inspection.isStreaming, "only a file in streaming form is converted")
        try pointHeader(to: inspection.snapshot.topRef, format: inspection.header.formats.0, durability: durability)
    }

    /// Cuts the file behind its logical size, or fills it up to a page (coordination.md 3.4, step 14). Nobody may have mapped it
    /// but this object. True: the size has changed, and opening starts again.
    ///
    /// - Throws: `OpenError.damaged` where what would be cut off is in use; the file is as it was.
    public func alignSize(_ inspection: FileInspection) throws -> Bool {
        guard let expected = inspection.alignedSize, !inspection.isStreaming else { return false }
        if inspection.physicalSize > expected {
            do {
                guard
                    try TailCheck.look(self, inspection.snapshot, from: expected, physicalSize: inspection.physicalSize)
                        == .unused
                else { return false }
            } catch let error as FormatError { throw OpenError.damaged(path: path, error) }
            try backend.truncate(to: expected)
            return true
        }
        if inspection.physicalSize % SystemCalls.pageSize != 0 {
            try backend.preallocate(to: expected)
            return true
        }
        return false
    }
}
