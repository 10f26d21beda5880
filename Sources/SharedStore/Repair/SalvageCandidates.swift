import SystemCalls

/// A version that may lie in a damaged file: what somebody's top array says.
public struct SalvageCandidate: Equatable, Sendable {
    /// Where the version was found.
    public enum Origin: String, Sendable {
        case header = "the header"
        case otherSlot = "the other slot of the header"
        case footer = "the footer"
        case scan = "a top array found by scanning"
    }
    /// The version.
    public let snapshot: Snapshot
    /// The file format that it was written in.
    public let format: Int
    /// Where the version was found.
    public let origin: Origin
}

/// The bytes of a damaged file, and the versions that may be found in them.
final class DamagedBytes {
    let mapping: FileMapping
    private var states: [UnsafeMutablePointer<MemoryState>] = []
    /// Where the header says the newest version's top array is, if nothing that can be one is there. Known after `candidates`.
    private(set) var lostTopRef: UInt64?
    /// Candidates are opened, and their tables looked at, up to so many.
    static let candidateCountMax = 64

    init(_ mapping: FileMapping) { self.mapping = mapping }

    deinit { states.forEach { $0.deallocate() } }

    /// Memory that ends where a version ends, or the file, whichever comes first.
    func memory(limit: Int) -> Memory {
        let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        state.initialize(
            to: MemoryState(base: mapping.memory.state.pointee.base, fileLimit: max(24, min(limit, mapping.byteCount) & ~7)))
        state.pointee.pager = mapping.memory.state.pointee.pager
        states.append(state)
        return Memory(state)
    }

    /// Every version that looks like one: of header and footer first, then found ones, newest first.
    func candidates() -> [SalvageCandidate] {
        var out: [SalvageCandidate] = []
        let whole = memory(limit: mapping.byteCount)
        func add(_ ref: UInt64, _ origin: SalvageCandidate.Origin, _ format: UInt8) {
            guard ref < UInt64(mapping.byteCount), !out.contains(where: { $0.snapshot.topRef == Int(ref) }),
                let snapshot = plausible(Int(ref), whole)
            else { return }
            let known = FileHeader.readableFormats.contains(format)
            out.append(
                SalvageCandidate(snapshot: snapshot, format: Int(known ? format : FileHeader.currentFormat), origin: origin))
        }
        var formats: [UInt8] = [FileHeader.currentFormat, FileHeader.currentFormat]
        if mapping.byteCount >= FileHeader.byteCount, isReadable(0, FileHeader.byteCount) {
            let header = FileHeader(mapping.memory.state.pointee.base)
            formats = [header.formats.0, header.formats.1]
            if !header.isStreaming, header.mnemonic == FileHeader.mnemonic, header.liveTopRef != 0 {
                add(header.liveTopRef, .header, header.liveFormat)
                if out.isEmpty { lostTopRef = header.liveTopRef }
            }
            let end = mapping.byteCount & ~7
            if end >= 40, isReadable(end - 16, end) {
                let footer = UnsafeRawPointer(mapping.memory.state.pointee.base + (end - 16))
                if footer.loadUnaligned(fromByteOffset: 8, as: UInt64.self) == FileHeader.footerCookie {
                    add(footer.loadUnaligned(as: UInt64.self), .footer, header.formats.0)
                }
            }
            if !header.isStreaming {
                add(header.liveSlot == 0 ? header.topRefs.1 : header.topRefs.0, .otherSlot, formats[1 - header.liveSlot])
            }
        }
        let format = formats.first { FileHeader.readableFormats.contains($0) } ?? FileHeader.currentFormat
        var found: [Snapshot] = []
        scan(whole) { if let snapshot = plausible($0, whole) { found.append(snapshot) } }
        found.sort { ($0.version, $0.topRef) > ($1.version, $1.topRef) }
        for snapshot in found.prefix(Self.candidateCountMax) { add(UInt64(snapshot.topRef), .scan, format) }
        return out
    }

    private func isReadable(_ start: Int, _ end: Int) -> Bool {
        guard let pager = mapping.memory.state.pointee.pager else { return true }
        return (try? pager._withUnsafeGuaranteedRef { try $0.prepare(start, end) }) != nil
    }

    /// Calls `body` with every place at which a node with the flags and the length of a top array may begin.
    private func scan(_ memory: Memory, _ body: (Int) -> Void) {
        let page = 4096
        for start in stride(from: 0, to: mapping.byteCount & ~7, by: page) {
            let end = min(start + page, mapping.byteCount & ~7)
            guard isReadable(start, end) else { continue }
            let base = UnsafeRawPointer(mapping.memory.state.pointee.base)
            for ref in stride(from: max(24, start), to: end, by: 8)
            where base.loadUnaligned(fromByteOffset: ref, as: UInt32.self) == 0x4141_4141 {
                let flags = base.load(fromByteOffset: ref + 4, as: UInt8.self),
                    count = Int(base.load(fromByteOffset: ref + 7, as: UInt8.self))
                // Refs, not inner, a width of its own: see file-format-2 section 1.
                if flags & 0xD8 == 0x40, TopSlot.legalCounts.contains(count) { body(ref) }
            }
        }
    }

    /// What a top array says, if it can be one: names and tables are nodes of as many elements.
    private func plausible(_ ref: Int, _ memory: Memory) -> Snapshot? {
        guard ref >= 24, ref % 8 == 0, let top = try? memory.node(ref), top.hasRefs, !top.isInner, top.widthType == 0,
            TopSlot.legalCounts.contains(top.count), let size = try? top.tagged(TopSlot.logicalSize), size > ref, size % 8 == 0,
            size < 1 << 50,
            let names = try? memory.node(top.requiredRef(TopSlot.names)),
            let tables = try? memory.node(top.requiredRef(TopSlot.tables)),
            names.count == tables.count, tables.hasRefs || tables.count == 0, !names.hasRefs
        else { return nil }
        let version = top.count > TopSlot.version ? (try? top.tagged(TopSlot.version)) ?? 0 : 0
        return Snapshot(version: UInt64(max(1, version)), topRef: ref, logicalSize: size)
    }
}
