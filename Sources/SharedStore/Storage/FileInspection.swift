import SystemCalls

/// What the header and the top array of a file say, checked in the order of file-format-1 1.5 (conditions 1-9).
///
/// Whether the format can be read or must be upgraded, and whether the history fits, is judged by whoever opens the file.
public struct FileInspection: Sendable {
    public let header: FileHeader
    /// Bytes of content that there is room for.
    public let physicalSize: Int
    /// The state of the header's live slot (in streaming form, of the footer): version 1, top ref 0 and 24 bytes for a file
    /// that was never committed to.
    public let snapshot: Snapshot
    /// The format of the live slot; 0 where it is undecided.
    public var format: UInt8 { header.liveFormat }
    public var isStreaming: Bool { header.isStreaming }
    /// Slot 7 of the top array: 0 none, 2 in the file, 3 and 4 of synchronised files.
    public let historyType: Int
    /// Slot 9 of the top array.
    public let historySchemaVersion: Int
    /// What the logical size, rounded up to pages, asks of the physical one; nil for a file that was never committed to.
    public var alignedSize: Int? { snapshot.topRef == 0 ? nil : roundUp(snapshot.logicalSize, SystemCalls.pageSize) }
}

extension DatabaseFile {
    /// Looks at header, footer and top array. Throws `FormatError` where the file cannot be a database.
    public func inspect() throws -> FileInspection {
        let size = try backend.size()
        if size < FileHeader.byteCount {
            throw FormatError(ref: 0, size == 0 ? "the file is empty" : "the file has only \(size) bytes, too few for a header")
        }
        if size % 8 != 0 { throw FormatError(ref: 0, "the size of the file, \(size), is not a multiple of 8: it was cut or is no database") }
        let header = try readHeader()
        if header.mnemonic != FileHeader.mnemonic { throw FormatError(ref: 16, try wrongMnemonic(size: size)) }
        var top = header.liveTopRef
        var end = size
        if header.isStreaming {
            if size < FileHeader.byteCount + FileHeader.footerByteCount {
                throw FormatError(ref: 0, "streaming form, but only \(size) bytes: no room for the footer")
            }
            end = size - FileHeader.footerByteCount
            top = try footerTopRef(at: end)
        }
        func refuse(_ reason: String) -> FormatError {
            FormatError(ref: 8 * header.liveSlot, """
                top ref \(top) \(reason) (file size \(size), slot 0: \(header.topRefs.0), slot 1: \(header.topRefs.1), \
                \(header.isStreaming ? "the footer" : "slot \(header.liveSlot)") in use)
                """)
        }
        if top % 8 != 0 { throw refuse("is not a multiple of 8") }
        if top == 0 {
            return FileInspection(header: header, physicalSize: size, snapshot: Snapshot(version: 1, topRef: 0, logicalSize: FileHeader.byteCount),
                                  historyType: 0, historySchemaVersion: 0)
        }
        if top < UInt64(FileHeader.byteCount) { throw refuse("points into the header") }
        if top >= UInt64(end) { throw refuse("lies outside the file: it was cut") }
        let view = try view(of: Snapshot(version: 0, topRef: Int(top), logicalSize: end))
        return try inspectTop(view, header: header, size: size, limit: end)
    }

    private func inspectTop(_ view: FileView, header: FileHeader, size: Int, limit: Int) throws -> FileInspection {
        let topRef = view.snapshot.topRef
        let top = try view.memory.node(topRef)
        if !top.hasRefs || top.widthType != 0 { throw FormatError(ref: topRef, "no top array: flags \(top.flags)") }
        if !TopSlot.legalCounts.contains(top.count) { throw FormatError(ref: topRef, "a top array cannot have \(top.count) elements") }
        let logicalSize = try top.tagged(TopSlot.logicalSize)
        if logicalSize > limit {
            throw FormatError(ref: topRef, "logical size \(logicalSize) exceeds the file's \(size) bytes: it was cut")
        }
        if logicalSize % 8 != 0 || logicalSize < topRef + top.byteCount {
            throw FormatError(ref: topRef, "logical size \(logicalSize) is impossible for a top array at \(topRef)")
        }
        for slot in [TopSlot.names, TopSlot.tables] {
            let ref = try top.requiredRef(slot)
            if ref % 8 != 0 || ref > logicalSize { throw FormatError(ref: topRef, "element \(slot) is \(ref), not the ref of a node") }
        }
        let version = try top.tagged(TopSlot.version)
        if version < 0 { throw FormatError(ref: topRef, "version \(UInt64(bitPattern: Int64(version))) is impossible") }
        return FileInspection(header: header, physicalSize: size,
                              snapshot: Snapshot(version: UInt64(max(version, 1)), topRef: topRef, logicalSize: logicalSize),
                              historyType: try top.tagged(TopSlot.historyType),
                              historySchemaVersion: try top.tagged(TopSlot.historySchema))
    }

    private func footerTopRef(at position: Int) throws -> UInt64 {
        var footer: (UInt64, UInt64) = (0, 0)
        let count = try withUnsafeMutableBytes(of: &footer) { try backend.read(into: $0, at: position) }
        if count < FileHeader.footerByteCount || footer.1 != FileHeader.footerCookie {
            throw FormatError(ref: position, "the file is in streaming form, but its footer is missing: it was cut")
        }
        return footer.0
    }

    /// Why the four letters may be missing, from what stands there instead.
    private func wrongMnemonic(size: Int) throws -> String {
        let sample = try withUnsafeTemporaryAllocation(byteCount: min(size, 256), alignment: 8) { buffer -> [UInt8] in
            let count = try backend.read(into: buffer, at: 0)
            return Array(buffer[..<count])
        }
        if sample.allSatisfy({ $0 == 0 }) { return "no database: the file begins with zeros, its header was lost" }
        if sample.allSatisfy({ $0 == 9 || $0 == 10 || $0 == 13 || (0x20...0x7E).contains($0) }) { return "no database: the file is a text" }
        return "no database, or an encrypted one that was opened without its key, or one whose header was overwritten"
    }

    // MARK: What the initiator of a session repairs

    /// Turns streaming form into the normal one (file-format-1 1.4). Slot 0 keeps its mark until the next commit.
    public func convertFromStreamingForm(_ inspection: FileInspection, durability: Durability) throws {
        precondition(inspection.isStreaming, "only a file in streaming form is converted")
        try pointHeader(to: inspection.snapshot.topRef, format: inspection.header.formats.0, durability: durability)
    }

    /// Cuts the file behind its logical size, or fills it up to a page (coordination.md 3.4, step 14). Nobody may have mapped it
    /// but this object. True: the size has changed, and opening starts again.
    public func alignSize(_ inspection: FileInspection) throws -> Bool {
        guard let expected = inspection.alignedSize, !inspection.isStreaming else { return false }
        if inspection.physicalSize > expected {
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
