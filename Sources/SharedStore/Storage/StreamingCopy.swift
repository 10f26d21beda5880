import Glibc
import SystemCalls

/// A copy of one version without free space, written from beginning to end (file-format-3 7.1, file-format-1 1.3).
///
/// ```
/// header    slot 0 all ones, slot 1 = 0, formats {f, 0}, flags 0
/// nodes     children before parents, one behind the other from byte 24; names, tables, (history, three empty lists), top
/// padding   an encrypted copy only: the footer ends at a page
/// footer    top ref, cookie
/// ```
/// Sections of 64 MiB are not minded. Arrays of refs are packed to their smallest width, so a copy is hardly ever longer than
/// its source; a damaged source in which nodes are reached again and again is found by a limit of twice that.
///
/// Crash argument: the copy is written under another name, synced, renamed, and the directory synced. Whoever sees the
/// final name sees the whole copy.
public struct StreamingCopy: Sendable {
    /// The version number of the copy; nil for a copy without versions, whose history begins anew (three slots).
    public var version: UInt64?
    /// The history goes along (where there is a version).
    public var keepsHistory: Bool
    /// The number that a sync server gave to the file is kept: for a compaction, not for a copy that lives beside its source.
    public var keepsSyncFileIdent: Bool
    /// The copy survives a power cut when it is there.
    public var syncs: Bool
    /// The format of the source.
    public var format: UInt8

    /// - Parameter format: of the source; the copy keeps it.
    public init(
        version: UInt64?, keepsHistory: Bool, keepsSyncFileIdent: Bool = false, syncs: Bool = true,
        format: UInt8 = FileHeader.currentFormat
    ) {
        self.version = version
        self.keepsHistory = keepsHistory
        self.keepsSyncFileIdent = keepsSyncFileIdent
        self.syncs = syncs
        self.format = format
    }

    // MARK: To a path

    /// Copies to `path`, which appears whole or not at all.
    ///
    /// - Parameters:
    ///   - view: the version to copy; it stays pinned meanwhile.
    ///   - replacing: false: an existing file is an error (`SystemError` EEXIST). True: it is replaced; nobody may have it open.
    ///   - makeBackend: opens a new, empty file at the path it is given; by default a plain one.
    public func write(
        _ view: FileView, toPath path: String, replacing: Bool = false,
        makeBackend: (String) throws -> FileBackend = { try PlainFile.createExclusively($0) }
    ) throws {
        if try !replacing && StreamingCopy.exists(path) { throw SystemError(call: "open", code: EEXIST, path: path) }
        let temporary = StreamingCopy.temporaryName(for: path)
        try writeTemporary(view, temporary, makeBackend)
        do {
            try replacing ? SystemCalls.rename(temporary, to: path) : SystemCalls.renameExclusively(temporary, to: path)
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
        if syncs { try SystemCalls.syncDirectory(of: path) }
    }

    private static func exists(_ path: String) throws -> Bool {
        do {
            _ = try SystemCalls.linkStatus(path: path)
            return true
        } catch let error as SystemError where error.code == ENOENT { return false }
    }

    /// A name beside `path` that no other running copy uses.
    private static func temporaryName(for path: String) -> String {
        "\(path).part-\(getpid())-\(UInt64.random(in: 0...UInt64(UInt32.max)))"
    }

    private func writeTemporary(_ view: FileView, _ path: String, _ makeBackend: (String) throws -> FileBackend) throws {
        let backend = try makeBackend(path)
        do {
            defer { backend.close() }
            _ = try write(view, to: backend)
            if syncs { try backend.syncData() }
        } catch {
            try? SystemCalls.unlink(path)
            throw error
        }
    }

    // MARK: Compaction (7.4)

    /// The file that will take the place of a database: written and synced, not yet renamed.
    public struct Replacement: Sendable {
        /// Where the copy is to be.
        public let path: String
        /// Where it is until it is complete.
        public let temporaryPath: String
        let syncs: Bool

        /// Renames it over the database, which nobody may have open any more but the caller, who then opens it anew. Throws
        /// also when the directory cannot be synced after the renaming: nothing may then be committed, since a power cut would
        /// bring the old file back.
        public func install() throws {
            try SystemCalls.rename(temporaryPath, to: path)
            if syncs { try SystemCalls.syncDirectory(of: path) }
        }

        /// Removes what was written so far.
        public func discard() { try? SystemCalls.unlink(temporaryPath) }
    }

    /// Writes the compacted form of the database at `path` beside it, under the name that others expect
    /// (`.tmp_compaction_space`); the control mutex is held, so a file of this name is a left-over.
    public func makeReplacement(
        _ view: FileView, ofPath path: String,
        makeBackend: (String) throws -> FileBackend = { try PlainFile.createExclusively($0) }
    ) throws -> Replacement {
        let temporary = path + ".tmp_compaction_space"
        do { try SystemCalls.unlink(temporary) } catch let error as SystemError where error.code == ENOENT {}
        try writeTemporary(view, temporary, makeBackend)
        return Replacement(path: path, temporaryPath: temporary, syncs: syncs)
    }

    // MARK: The bytes

    /// Writes the copy into an empty `backend`; returns its size. Nothing is synced.
    @discardableResult
    public func write(_ view: FileView, to backend: FileBackend) throws -> Int {
        try write(view.memory, topRef: view.snapshot.topRef, limit: view.snapshot.logicalSize, to: backend)
    }

    /// Copies the version that `group` shows to `path`, which must not exist (EEXIST) and appears whole or not at all.
    public func write(_ group: Group, toPath path: String, mode: UInt32 = 0o644, key: EncryptionKey? = nil) throws {
        if try StreamingCopy.exists(path) { throw SystemError(call: "open", code: EEXIST, path: path) }
        let temporary = StreamingCopy.temporaryName(for: path)
        do {
            let descriptor = try SystemCalls.open(temporary, O_RDWR | O_CREAT | O_EXCL, mode: mode)
            let backend: FileBackend =
                key.map { EncryptedFile(descriptor: descriptor, path: temporary, key: $0) }
                ?? PlainFile(descriptor: descriptor, path: temporary)
            // Not mapped: what was written of an encrypted file does not stay in memory.
            defer { backend.close() }
            let state = group.memory.state.pointee
            // Within a write transaction what it has made comes on top.
            let limit = state.fileLimit &+ max(0, state.arenaLimit &- state.arenaStart)
            try write(group.memory, topRef: group.topRef, limit: limit, to: backend)
            try backend.syncData()
            try SystemCalls.renameExclusively(temporary, to: path)
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
        if syncs { try SystemCalls.syncDirectory(of: path) }
    }

    @discardableResult
    private func write(_ memory: Memory, topRef sourceTop: Int, limit: Int, to backend: FileBackend) throws -> Int {
        let run = CopyRun(memory, SequentialWriter(backend), limit: limit)
        var header = FileHeader()
        header.topRefs = (FileHeader.streamingMark, 0)
        header.formats = (sourceTop == 0 ? 0 : format, 0)
        var bytes: (UInt64, UInt64, UInt64) = (0, 0, 0)
        try withUnsafeMutableBytes(of: &bytes) {
            if let p = $0.baseAddress {
                header.store(to: p)
                try run.out.append(p, FileHeader.byteCount)
            }
        }
        let topRef = sourceTop == 0 ? 0 : try writeTrees(run, try memory.node(sourceTop))
        if backend.contentAlignment > FileHeader.footerByteCount {
            let unit = backend.contentAlignment
            while (run.out.position + FileHeader.footerByteCount) & (unit - 1) != 0 { try run.out.append(0) }
        }
        try run.out.append(UInt64(topRef))
        try run.out.append(FileHeader.footerCookie)
        try run.out.flush()
        return run.out.position
    }

    private func writeTrees(_ run: CopyRun, _ source: Node) throws -> Int {
        if !source.hasRefs || source.widthType != 0 { throw FormatError(ref: source.ref, "no top array: flags \(source.flags)") }
        let names = try run.copy(try source.requiredRef(TopSlot.names))
        var top: [Int64] = [Int64(names), Int64(try run.copy(try source.requiredRef(TopSlot.tables))), 0]
        if let version {
            let historyType = keepsHistory ? try source.tagged(TopSlot.historyType) : 0
            let history = historyType == 0 ? 0 : try source.optionalRef(TopSlot.history)
            let historyCopy = history == 0 ? 0 : try run.copy(history)
            for _ in 0..<3 { top.append(Int64(try run.emptyArray())) }
            top.append(StreamingCopy.tagged(Int(truncatingIfNeeded: version)))
            if historyType != 0 {
                top.append(StreamingCopy.tagged(historyType))
                top.append(Int64(historyCopy))
                top.append(StreamingCopy.tagged(try source.tagged(TopSlot.historySchema)))
                top.append(StreamingCopy.tagged(keepsSyncFileIdent ? try source.tagged(TopSlot.syncFileIdent) : 0))
            }
        }
        // The width is chosen for an end that cannot be exceeded, then the end is stored with this width.
        let topRef = run.out.position
        top[TopSlot.logicalSize] = StreamingCopy.tagged(topRef + 8 + 8 * top.count)
        var extent = NodePacking.Extent()
        for value in top { extent.include(value) }
        top[TopSlot.logicalSize] = StreamingCopy.tagged(topRef + NodePacking.byteCount(top.count, extent.widthCode))
        try run.refs(top, flags: 0x40, widthCode: extent.widthCode)
        return topRef
    }

    private static func tagged(_ value: Int) -> Int64 { Int64(value) << 1 | 1 }
}

/// Copies trees depth first into a sequential file; no recursion, memory in proportion to the depth.
private final class CopyRun {
    let memory: Memory
    let out: SequentialWriter
    /// The copy of a sound source is not longer than this.
    private let limit: Int
    private let stack = RawList<Frame>()
    /// The elements of the arrays on the stack, one array behind the other.
    private let values = RawList<Int64>(capacity: 1024)
    private var packed = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private var packedCapacity = 1 << 16
    private static let depthMax = 4096

    private struct Frame: BitwiseCopyable {
        var ref: Int
        var index: Int
        var firstValue: Int
    }

    init(_ memory: Memory, _ out: SequentialWriter, limit: Int) {
        self.memory = memory
        self.out = out
        // Nodes get other places, and arrays of refs other widths for them: a copy may be a little longer than a source without
        // free space.
        self.limit = 2 &* limit &+ (1 << 16)
    }

    deinit {
        stack.free()
        values.free()
        packed.deallocate()
    }

    /// Copies the tree at `root`, returns the place of its root in the copy.
    func copy(_ root: Int) throws -> Int {
        var place = 0
        try enter(root)
        while let frame = stack.popLast() {
            let node = try memory.node(frame.ref)
            var index = frame.index
            if node.hasRefs {
                while index < node.count {
                    let v = values[frame.firstValue + index]
                    if v & 1 == 0 && v != 0 { break }
                    index += 1
                }
                if index < node.count {
                    let child = values[frame.firstValue + index]
                    if child < 0 { throw FormatError(ref: frame.ref, "element \(index) is \(child), not a ref") }
                    stack.append(Frame(ref: frame.ref, index: index, firstValue: frame.firstValue))
                    try enter(Int(child))
                    continue
                }
            }
            place = out.position
            try put(node, frame)
            if stack.count > 0 {
                let parent = stack[stack.count - 1]
                values[parent.firstValue + parent.index] = Int64(place)
                stack[stack.count - 1].index += 1
            }
        }
        return place
    }

    private func enter(_ ref: Int) throws {
        if stack.count == CopyRun.depthMax { throw FormatError(ref: ref, "a tree is more than \(CopyRun.depthMax) levels deep") }
        let node = try memory.node(ref)
        let first = values.count
        if node.hasRefs {
            if node.widthType != 0 { throw FormatError(ref: ref, "node with refs has width type \(node.widthType)") }
            values.resize(first + node.count)
            for i in 0..<node.count { values[first + i] = node.unchecked(i) }
        }
        stack.append(Frame(ref: ref, index: 0, firstValue: first))
    }

    private func put(_ node: Node, _ frame: Frame) throws {
        if out.position + 8 > limit {
            throw FormatError(ref: node.ref, "the nodes are longer than their file: one is reached twice")
        }
        if node.hasRefs {
            var extent = NodePacking.Extent()
            for i in 0..<node.count { extent.include(values[frame.firstValue + i]) }
            try pack(values.base + frame.firstValue, node.count, node.flags & 0xE0, extent.widthCode)
            values.resize(frame.firstValue)
        } else {
            var header: UInt64 = 0
            withUnsafeMutableBytes(of: &header) {
                if let p = $0.baseAddress { NodePacking.stampHeader(p, flags: node.flags, count: node.count) }
            }
            try out.append(header)
            try out.append(node.payload, node.payloadByteCount)
            try out.align(to: 8)
        }
    }

    private func pack(_ source: UnsafePointer<Int64>, _ count: Int, _ flags: UInt8, _ widthCode: Int) throws {
        let byteCount = NodePacking.byteCount(count, widthCode)
        if byteCount > packedCapacity {
            packed.deallocate()
            packedCapacity = 2 * byteCount
            packed = .allocate(byteCount: packedCapacity, alignment: 16)
        }
        NodePacking.stampHeader(packed, flags: flags | UInt8(widthCode), count: count)
        NodePacking.pack(source, count, widthCode, to: packed + 8)
        try out.append(packed, byteCount)
    }

    func refs(_ elements: [Int64], flags: UInt8, widthCode: Int) throws {
        try elements.withUnsafeBufferPointer { if let p = $0.baseAddress { try pack(p, elements.count, flags, widthCode) } }
    }

    func emptyArray() throws -> Int {
        let place = out.position
        try out.append(0x4141_4141)
        return place
    }
}
