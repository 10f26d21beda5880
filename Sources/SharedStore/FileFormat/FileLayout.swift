/// Where the live tree of a file is, after the header was checked (file-format-1 1.1 to 1.5).
///
/// ```
/// empty      live top ref 0: no content
/// in place   the live slot holds the top ref; the logical size is in the top array, `logical <= file size`
/// streaming  slot 0 is all ones and live; the last 16 bytes are: top ref, cookie
/// ```
/// Checks are made in the order of file-format-1 1.5, first failure wins; nothing in the other slot is looked at.
public struct FileLayout: Equatable, Sendable {
    /// All 24 bytes of the header, of both slots.
    public var header: FileHeader
    /// The top ref stands in a footer at the end of the file (file-format-1 1.3).
    public var isStreaming: Bool
    /// Ref of the top array, 0 for a file without content.
    public var topRef: Int
    /// The live format number; 0 only together with `topRef` 0.
    public var format: Int
    /// First byte behind what nodes may use: the logical size, in streaming form the file size less the footer.
    public var fileLimit: Int

    /// Checks 2 to 9. `memory.state` must show the whole file: `fileLimit` is set by this call to the result's value.
    ///
    /// Errors of an encrypted file tell sizes and positions as they are in the file.
    ///
    /// - Parameter fileSize: the bytes of the (decrypted) file that can be read at `memory`'s base.
    /// - Throws: `OpenError` with `path`, or what the page source throws.
    public init(path: String, memory: Memory, fileSize: Int) throws {
        let state = memory.state
        if fileSize < FileHeader.byteCount { throw OpenError.tooSmall(path: path, size: fileSize, minimum: FileHeader.byteCount) }
        let isEncrypted = state.pointee.pager != nil
        let physicalSize = isEncrypted ? PageGeometry.cutSize(plain: fileSize) : fileSize
        func position(_ plain: UInt64) -> UInt64 {
            // What no file can reach is told as it stands there.
            isEncrypted && plain < 1 << 50 ? UInt64(PageGeometry.filePosition(Int(plain))) : plain
        }
        if fileSize % 8 != 0 { throw OpenError.oddSize(path: path, size: physicalSize) }
        try state.pointee.pager?._withUnsafeGuaranteedRef { try $0.prepare(0, FileHeader.byteCount) }
        let base = UnsafeRawPointer(state.pointee.base)
        header = FileHeader(base)
        if header.mnemonic != FileHeader.mnemonic {
            var content = FileLayout.guess(UnsafeRawBufferPointer(start: base, count: FileHeader.byteCount))
            if content == .unknown {
                if state.pointee.pager != nil {
                    // The page's tag fits, or it could not have been decrypted.
                    let reason = "its checksum fits, but it holds no header: only half of the key fits"
                    throw OpenError.decryptionFailed(path: path, page: 0, reason: reason)
                }
                if PageMetadata.beginsFile(UnsafeRawBufferPointer(start: base, count: fileSize)) { content = .encrypted }
            }
            throw OpenError.notARealm(path: path, content: content)
        }
        isStreaming = header.isStreaming
        format = Int(header.liveFormat)
        var top = header.liveTopRef
        var end = fileSize
        if isStreaming {
            end -= FileHeader.footerByteCount
            if end < FileHeader.byteCount {
                throw OpenError.tooSmall(
                    path: path, size: physicalSize, minimum: FileHeader.byteCount + FileHeader.footerByteCount)
            }
            try state.pointee.pager?._withUnsafeGuaranteedRef { try $0.prepare(end, fileSize) }
            if base.loadUnaligned(fromByteOffset: end + 8, as: UInt64.self) != FileHeader.footerCookie {
                throw OpenError.truncated(
                    path: path, size: physicalSize, position: position(UInt64(end + 8)), what: "the footer of the streaming form")
            }
            top = base.loadUnaligned(fromByteOffset: end, as: UInt64.self)
        }
        let place = isStreaming ? "the footer" : "slot \(header.liveSlot)"
        if top % 8 != 0 {
            throw OpenError.damaged(path: path, FormatError(ref: 0, "top ref \(top) of \(place) is not a multiple of 8"))
        }
        if top >= UInt64(fileSize) {
            let other = header.liveSlot == 0 ? header.topRefs.1 : header.topRefs.0
            throw OpenError.truncated(
                path: path, size: physicalSize, position: position(top),
                what: "the top array of \(place) (the other slot says \(position(other)))")
        }
        if top != 0 && top < UInt64(FileHeader.byteCount) {
            throw OpenError.damaged(path: path, FormatError(ref: 0, "top ref \(top) of \(place) lies in the header"))
        }
        topRef = Int(top)
        fileLimit = end
        state.pointee.fileLimit = end
        if topRef != 0 {
            do {
                let logicalSize = try FileLayout.checkTop(memory, topRef, fileSize: fileSize)
                if !isStreaming { fileLimit = min(end, (logicalSize + 7) & ~7) }
            } catch let error as FormatError {
                throw OpenError.damaged(path: path, error)
            }
        } else if !isStreaming {
            fileLimit = FileHeader.byteCount
        }
        state.pointee.fileLimit = fileLimit
    }

    /// Check 9: the top array is acceptable. Returns the logical size.
    public static func checkTop(_ memory: Memory, _ topRef: Int, fileSize: Int) throws -> Int {
        let top = try memory.node(topRef)
        guard top.hasRefs, top.widthType == 0, !top.isInner, TopSlot.legalCounts.contains(top.count) else {
            throw FormatError(ref: topRef, "the top array has \(top.count) elements and flags \(top.flags)")
        }
        let logicalSize = try top.tagged(TopSlot.logicalSize)
        if logicalSize > fileSize {
            let unit = memory.state.pointee.pager == nil ? "bytes" : "bytes without encryption"
            throw FormatError(ref: topRef, "cut off: the logical size \(logicalSize) exceeds the file's \(fileSize) \(unit)")
        }
        if topRef >= logicalSize {
            throw FormatError(ref: topRef, "the top array lies behind the logical size of \(logicalSize)")
        }
        for slot in [TopSlot.names, TopSlot.tables] {
            let ref = try top.requiredRef(slot)
            if ref % 8 != 0 || ref > logicalSize {
                throw FormatError(ref: topRef, "element \(slot) is \(ref), logical size is \(logicalSize)")
            }
        }
        return logicalSize
    }

    /// Check 10 for tools that read every readable format in place; an empty file has format 0 or any readable one.
    public func requireReadableFormat(path: String) throws {
        if format == 0 && topRef == 0 || format <= 255 && FileHeader.readableFormats.contains(UInt8(format)) { return }
        throw OpenError.unsupportedFormat(path: path, format: format)
    }

    private static func guess(_ bytes: UnsafeRawBufferPointer) -> OpenError.ForeignContent {
        if bytes.allSatisfy({ $0 == 0 }) { return .zeros }
        if bytes.starts(with: Array("SQLite format 3".utf8)) { return .sqlite }
        if bytes.allSatisfy({ $0 >= 32 && $0 < 127 || $0 == 9 || $0 == 10 || $0 == 13 }) { return .text }
        return .unknown
    }
}
