import SystemCalls

/// Checks every rule that the format documents list, over one snapshot of a file (file-format-1 section 11,
/// file-format-2 section 11, file-format-3 section 10).
///
/// The verifier reads nodes, never through the readers of tables and columns, so that what it says about a file does not
/// depend on them. It holds two bits for each 8 bytes of the file and little more: what must agree between far parts of a file
/// (links and backlinks, objects and index entries) is compared by counts and sums that do not depend on the order, and
/// only where they differ walked again for the exact places. Damage of any kind is a finding, never a trap, an
/// endless loop or an allocation that the size of the file does not bound.
public enum Verifier {
    /// How the file is laid out (file-format-1 1.1).
    public enum Form: Sendable {
        case inPlace
        /// The top ref stands in a footer; there is no free space.
        case streaming
    }

    /// Verifies one snapshot.
    ///
    /// - Parameters:
    ///   - memory: where the snapshot is readable; nothing may write to its nodes meanwhile.
    ///   - format: the file format version of the snapshot; rules that came with later formats are not asked of older ones.
    ///   - physicalSize: bytes of the (decrypted) file; nil where it may grow meanwhile.
    ///   - header: nil to leave the header alone, for a snapshot that is not the newest one.
    /// - Throws: `SystemError` where there is not enough memory to begin.
    public static func verify(
        memory: Memory, snapshot: Snapshot, form: Form, format: UInt8, physicalSize: Int?, header: FileHeader?,
        options: VerifierOptions = VerifierOptions()
    ) throws -> VerificationReport {
        let start = SystemCalls.monotonicNanoseconds()
        let run = try VerificationRun(memory: memory, snapshot: snapshot, form: form, format: format, options: options)
        run.run(header: header, physicalSize: physicalSize)
        run.report.elapsedNanoseconds = SystemCalls.monotonicNanoseconds() - start
        return run.report
    }

    /// Checks that nothing which an older, pinned snapshot uses may be overwritten: no node of it lies in a free block of the
    /// newest snapshot that was released by the pinned one or before (file-format-3 section 10, rule 8).
    ///
    /// - Parameters:
    ///   - memory: where both snapshots are readable.
    ///   - pinned: the older snapshot; its own rules are not checked here beyond the extents of its nodes.
    public static func verify(pinned: Snapshot, against newest: Snapshot, memory: Memory) throws -> VerificationReport {
        let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        defer { state.deallocate() }
        state.initialize(to: MemoryState(base: memory.state.pointee.base, fileLimit: pinned.logicalSize))
        state.pointee.pager = memory.state.pointee.pager
        let run = try VerificationRun(
            memory: Memory(state), snapshot: pinned, form: .inPlace, format: FileHeader.currentFormat,
            options: VerifierOptions())
        run.runPinned(against: newest, memory)
        return run.report
    }

    /// Verifies a file that nobody has open for writing.
    public static func verify(_ file: ImmutableFile, options: VerifierOptions = VerifierOptions()) throws -> VerificationReport {
        try verify(wholeFile: file.memory, byteCount: file.fileSize, options: options)
    }

    /// Verifies a whole file, beginning with the header and, in streaming form, the footer. What makes opening fail is a
    /// finding as well.
    ///
    /// - Parameters:
    ///   - memory: where the file is readable from byte 0 on, decrypted by the state's page source if there is one; how many
    ///     of its bytes the state makes readable does not matter.
    ///   - byteCount: bytes of the (decrypted) file.
    public static func verify(
        wholeFile memory: Memory, byteCount: Int, options: VerifierOptions = VerifierOptions()
    ) throws -> VerificationReport {
        func problem(_ code: FindingCode, _ what: String) -> VerificationReport {
            var report = VerificationReport()
            report.findings = [Finding(severity: .error, code: code, ref: 0, what: what)]
            report.errorCount = 1
            report.isComplete = false
            return report
        }
        guard byteCount >= FileHeader.byteCount, byteCount % 8 == 0 else {
            return problem(.headerSize, "\(byteCount) bytes: less than a header, or not a multiple of 8")
        }
        let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        defer { state.deallocate() }
        state.initialize(to: MemoryState(base: memory.state.pointee.base, fileLimit: byteCount))
        state.pointee.pager = memory.state.pointee.pager
        let base = UnsafeRawPointer(state.pointee.base)
        func makeReadable(_ start: Int, _ end: Int) -> VerificationReport? {
            do {
                try state.pointee.pager?._withUnsafeGuaranteedRef { try $0.prepare(start, end) }
                return nil
            } catch {
                return problem(.nodeUnreadable, "\(error)")
            }
        }
        if let report = makeReadable(0, FileHeader.byteCount) { return report }
        let header = FileHeader(base)
        if header.mnemonic != FileHeader.mnemonic { return problem(.headerMnemonic, "bytes 16 to 19 are not T-DB") }
        var topRef = header.liveTopRef
        var limit = byteCount
        if header.isStreaming {
            guard byteCount >= FileHeader.byteCount + FileHeader.footerByteCount else {
                return problem(.headerSize, "\(byteCount) bytes are too few for the streaming form")
            }
            limit -= FileHeader.footerByteCount
            if let report = makeReadable(limit, byteCount) { return report }
            let cookie = base.loadUnaligned(fromByteOffset: limit + 8, as: UInt64.self)
            if cookie != FileHeader.footerCookie {
                return problem(
                    .footerCookie,
                    "the footer ends with \(hexadecimal(cookie, digits: 16)): the file was cut or extended")
            }
            topRef = base.loadUnaligned(fromByteOffset: limit, as: UInt64.self)
        }
        if topRef % 8 != 0 || topRef >= UInt64(limit) || (topRef != 0 && topRef < UInt64(FileHeader.byteCount)) {
            return problem(.headerTopRef, "top ref \(topRef) in a file of \(byteCount) bytes")
        }
        state.pointee.fileLimit = limit
        var snapshot = Snapshot(version: 1, topRef: Int(topRef), logicalSize: topRef == 0 ? FileHeader.byteCount : limit)
        if topRef != 0, let top = try? Memory(state).node(snapshot.topRef), top.hasRefs, top.widthType == 0 {
            if let version = try? top.tagged(TopSlot.version), version > 0 { snapshot.version = UInt64(version) }
            if let size = try? top.tagged(TopSlot.logicalSize), size >= FileHeader.byteCount, size <= limit, size % 8 == 0 {
                snapshot.logicalSize = size
                if !header.isStreaming { state.pointee.fileLimit = size }
            }
        }
        return try verify(
            memory: Memory(state), snapshot: snapshot, form: header.isStreaming ? .streaming : .inPlace,
            format: header.liveFormat, physicalSize: byteCount, header: header, options: options)
    }

    /// Verifies a whole file that lies in memory.
    ///
    /// - Parameter bytes: the decrypted file; its address is a multiple of 8.
    public static func verify(
        file bytes: UnsafeMutableRawBufferPointer, options: VerifierOptions = VerifierOptions()
    ) throws -> VerificationReport {
        try withUnsafeTemporaryAllocation(of: MemoryState.self, capacity: 1) { buffer in
            // A file without bytes has no address; nothing of it is read.
            guard let state = buffer.baseAddress else { preconditionFailure("a temporary allocation has an address") }
            state.initialize(to: MemoryState(base: bytes.baseAddress ?? UnsafeMutableRawPointer(state), fileLimit: bytes.count))
            return try verify(wholeFile: Memory(state), byteCount: bytes.count, options: options)
        }
    }
}

/// The state of one verification.
final class VerificationRun {
    /// Thrown to leave a run that has reached one of its limits.
    enum Stop: Error {
        case findings
        case elements
    }

    let memory: Memory
    let snapshot: Snapshot
    let form: Verifier.Form
    let format: UInt8
    /// First byte behind what a node may occupy.
    let limit: Int
    let options: VerifierOptions
    var report = VerificationReport()
    /// Findings of each code: errors, and warnings.
    private var findingCounts: [FindingCode: (errors: Int, warnings: Int)] = [:]
    private var listedWarnings = 0
    enum Mode {
        /// Every node is claimed and every finding reported.
        case first
        /// Looks for exact places of what the first pass has found by sums: nodes are claimed in a map of its own, nothing is
        /// reported.
        case second
        /// Reads single values: nodes are checked, but neither claimed nor reported.
        case lookup
    }
    var mode = Mode.first
    var space: SpaceMap
    let elementLimit: Int
    var elementsLeft: Int

    /// Where findings belong.
    var tableName: String?
    var columnName: String?
    /// The object whose nested nodes are being looked at.
    var objectKey: ObjectKey?
    /// Inner nodes of B+ trees on the way to the node that is being looked at.
    var innerNodesOpen = 0
    /// Keys of the rows of the cluster leaf that is being looked at.
    var rows: RowKeys?
    var currentTable: TableModel?
    var currentColumn: ColumnModel?

    var tables: [TableModel] = []
    var tableOfKey: [TableKey: TableModel] = [:]
    /// Slots for tables, those of removed tables included.
    var tableSlotCount = 0
    var linkGroups: [LinkGroup] = []
    var collector: LinkCollector?
    /// In a second pass: called with the distinct strings of each list of strings, nil for null.
    var onCollection: ((Set<[UInt8]?>) throws -> Void)?

    init(memory: Memory, snapshot: Snapshot, form: Verifier.Form, format: UInt8, options: VerifierOptions) throws {
        self.memory = memory
        self.snapshot = snapshot
        self.form = form
        self.format = format
        self.options = options
        limit = memory.state.pointee.fileLimit & ~7
        space = try SpaceMap.make(limit: limit)
        elementLimit = options.elementLimit ?? 32 &* limit &+ (1 << 18)
        elementsLeft = elementLimit
    }

    /// Formats whose files may deviate in the ways that file-format-2 section 10 lists.
    var isOlderFormat: Bool { format != FileHeader.currentFormat }

    func run(header: FileHeader?, physicalSize: Int?) {
        do {
            if let header { try verifyHeader(header) }
            if !FileHeader.readableFormats.contains(format) && !(format == 0 && snapshot.topRef == 0) {
                try error(.headerFormat, 0, "format \(format) cannot be read")
            }
            if snapshot.topRef != 0 {
                try verifyGroup(physicalSize: physicalSize)
            }
        } catch {
            report.isComplete = false
        }
    }

    func runPinned(against newest: Snapshot, _ newestMemory: Memory) {
        do { try verifyPinned(against: newest, newestMemory) } catch { report.isComplete = false }
    }

    // MARK: Findings

    func error(_ code: FindingCode, _ ref: Int, row: ObjectKey? = nil, _ what: @autoclosure () -> String) throws {
        try find(.error, code, ref, row, what)
    }

    func warning(_ code: FindingCode, _ ref: Int, row: ObjectKey? = nil, _ what: @autoclosure () -> String) throws {
        try find(.warning, code, ref, row, what)
    }

    @inline(never)
    func find(_ severity: Severity, _ code: FindingCode, _ ref: Int, _ row: ObjectKey?, _ what: () -> String) throws {
        if mode != .first { return }
        if severity == .error { report.errorCount += 1 } else { report.warningCount += 1 }
        let isWarning = severity == .warning
        var counts = findingCounts[code] ?? (0, 0)
        if isWarning { counts.warnings += 1 } else { counts.errors += 1 }
        findingCounts[code] = counts
        let isOneTooMany = (isWarning ? counts.warnings : counts.errors) > options.findingsPerCode
        if isOneTooMany || isWarning && listedWarnings >= options.findingLimit {
            report.unlisted += 1
            return
        }
        report.findings.append(
            Finding(
                severity: severity, code: code, table: tableName, column: columnName, object: row ?? objectKey, ref: ref,
                what: what()))
        if isWarning {
            listedWarnings += 1
        } else if report.findings.count - listedWarnings >= options.findingLimit {
            throw Stop.findings
        }
    }

    // MARK: Nodes

    /// Counts `count` elements that are about to be looked at.
    @inline(__always)
    func spend(_ count: Int) throws {
        elementsLeft &-= count
        if elementsLeft < 0 { try outOfElements() }
    }

    @inline(never)
    private func outOfElements() throws {
        // A second pass gives up silently: the first one has reported what it looks for.
        try error(.elementLimit, 0, "stopped after \(elementLimit) elements: the counts in this file are not true")
        throw Stop.elements
    }

    /// The node that `value`, an element of the node at `parent`, refers to: checked, and claimed for this owner.
    /// Nil, with a finding, where it is damaged or has an owner already; its bytes are then not to be read.
    func enter(_ value: Int64, from parent: Int) throws -> Node? {
        if value & 7 != 0 {
            try error(.nodeUnaligned, parent, "ref \(value) is not a multiple of 8")
            return nil
        }
        if value < 24 || value > Int64(limit &- 8) {
            try error(.nodeRange, parent, "ref \(value) lies outside the \(limit) bytes of the file")
            return nil
        }
        let ref = Int(value)
        let node: Node
        do {
            let header = try memory.bytes(at: ref, length: 8)
            node = Node(ref: ref, header: header)
            // Width type 3, or a node of bytes that says more than 8 bits an element: `Memory.node` refuses both.
            if node.flags & 0x1F > 0x14 {
                try error(
                    .nodeWidthType, ref,
                    "flags \(hexadecimal(UInt64(node.flags), digits: 2)) have width type \(node.widthType), code \(node.flags & 7)"
                )
                return nil
            }
            if node.byteCount > limit &- ref {
                try error(
                    .nodeRange, ref,
                    "a node of \(node.byteCount) bytes at \(ref) reaches past the \(limit) bytes of the file")
                return nil
            }
            _ = try memory.bytes(at: ref, length: node.byteCount)
            if header.loadUnaligned(as: UInt32.self) != 0x4141_4141 {
                try warning(
                    .nodeChecksum, ref,
                    "bytes 0 to 3 are \(hexadecimal(UInt64(header.loadUnaligned(as: UInt32.self)), digits: 8))")
            }
        } catch let stop as Stop {
            throw stop
        } catch let reason {
            try error(.nodeUnreadable, ref, "\(reason)")
            return nil
        }
        if mode != .lookup, try !claim(node, from: parent) { return nil }
        if node.hasRefs && node.widthType != 0 || node.isInner && !node.hasRefs {
            try error(.nodeFlags, ref, "flags \(hexadecimal(UInt64(node.flags), digits: 2)) exclude each other")
            return nil
        }
        return node
    }

    /// Claims the bytes of `node`; false, with a finding, where they belong to another owner.
    private func claim(_ node: Node, from parent: Int) throws -> Bool {
        let ref = node.ref
        if space.isStart(ref) {
            if mode == .second { return false }
            if reaches(parent, from: ref) {
                try error(.nodeCycle, ref, "the node is owned by its own descendant at \(parent)")
            } else {
                try error(.nodeShared, ref, "the node is owned by the node at \(parent) and by another one")
            }
            return false
        }
        if let taken = space.claim(ref, ref + node.byteCount) {
            try error(
                .nodeOverlap, ref,
                "the node [\(ref), \(ref + node.byteCount)), owned by the node at \(parent), overlaps another one at \(taken)")
            return false
        }
        space.setStart(ref)
        if mode == .first {
            report.nodeCount += 1
            report.nodeByteCount += node.byteCount
        }
        if form == .inPlace && ref >> 26 != (ref + node.byteCount - 1) >> 26 {
            try warning(.nodeSection, ref, "a node of \(node.byteCount) bytes crosses a multiple of 64 MiB")
        }
        return true
    }

    /// True where a walk down from the node at `ref` meets the node at `target`. Looks at a bounded number of nodes.
    private func reaches(_ target: Int, from ref: Int) -> Bool {
        if ref == target { return true }
        var seen: Set<Int> = [ref]
        var pending = [ref]
        var left = 1 << 16
        while let next = pending.popLast() {
            guard let node = try? memory.node(next), node.hasRefs, node.widthType == 0 else { continue }
            for i in 0..<node.count {
                left -= 1
                if left < 0 { return false }
                let value = node.unchecked(i)
                if value == Int64(target) { return true }
                if value != 0 && value & 7 == 0 && value > 0 && value < Int64(limit) && seen.insert(Int(value)).inserted {
                    pending.append(Int(value))
                }
            }
        }
        return false
    }

    /// Enters all nodes below `node` without asking what they mean: parts that others define, and what lies below damage.
    ///
    /// A lookup claims no nodes, so that it would not see a cycle; it has no use for them either.
    func enterAll(below node: Node?) throws {
        // Elements of width 0 are all 0, however many a node claims.
        guard mode != .lookup, let node, node.hasRefs, node.width > 0 else { return }
        var path: [(node: Node, next: Int)] = [(node, 0)]
        while let last = path.last {
            if last.next >= last.node.count {
                path.removeLast()
                continue
            }
            path[path.count - 1].next += 1
            let value = last.node.unchecked(last.next)
            if value == 0 || value & 1 != 0 { continue }
            if let child = try enter(value, from: last.node.ref), child.hasRefs, child.width > 0 {
                try spend(child.count)
                path.append((child, 0))
            }
        }
    }

    /// Enters the child in element `index`, which must be there. Nil, with a finding, where it is not.
    func child(_ node: Node, _ index: Int, _ name: @autoclosure () -> String) throws -> Node? {
        let value = index < node.count ? node.unchecked(index) : 0
        if value == 0 || value & 1 != 0 {
            try error(.nodeElement, node.ref, "element \(index), \(name()), is \(value), not a ref")
            return nil
        }
        return try enter(value, from: node.ref)
    }

    /// Enters the child in element `index`; nil without a finding where the element is 0 or missing.
    func optionalChild(_ node: Node, _ index: Int, _ name: @autoclosure () -> String) throws -> Node? {
        if index >= node.count || node.unchecked(index) == 0 { return nil }
        return try child(node, index, name())
    }

    /// Enters the child in element `index`, which must be there and be an array of integers.
    func integers(_ node: Node, _ index: Int, _ name: @autoclosure () -> String) throws -> Node? {
        guard let array = try child(node, index, name()) else { return nil }
        return try asIntegers(array, name()) ? array : nil
    }

    /// True where `node` is an array of integers; else reports, and enters what lies below it.
    func asIntegers(_ node: Node, _ name: @autoclosure () -> String) throws -> Bool {
        if node.hasRefs || node.widthType != 0 {
            try error(
                .nodeKind, node.ref,
                "\(name()): flags \(hexadecimal(UInt64(node.flags), digits: 2)) where an array of integers is expected")
            try enterAll(below: node)
            return false
        }
        try verifyNoContext(node, name())
        return true
    }

    /// Enters the child in element `index`, which must be there and be an array of refs that is no inner node.
    func refs(_ node: Node, _ index: Int, _ name: @autoclosure () -> String) throws -> Node? {
        guard let array = try child(node, index, name()) else { return nil }
        return try asRefs(array, name()) ? array : nil
    }

    func asRefs(_ node: Node, _ name: @autoclosure () -> String) throws -> Bool {
        if !node.hasRefs || node.isInner {
            try error(
                .nodeKind, node.ref,
                "\(name()): flags \(hexadecimal(UInt64(node.flags), digits: 2)) where an array of refs is expected")
            try enterAll(below: node)
            return false
        }
        try verifyNoContext(node, name())
        return true
    }

    /// The context flag means something in a few kinds of nodes, and is clear in all others (file-format-1 2.1).
    func verifyNoContext(_ node: Node, _ name: @autoclosure () -> String) throws {
        if node.hasContext {
            try oldFormat(.nodeContext, node.ref, "\(name()): the context flag is set, which has no meaning here")
        }
    }

    /// The number in element `index`: tagged, or 0 for one that was only padded in. Nil, with a finding, where a ref stands
    /// there.
    func number(_ node: Node, _ index: Int, _ code: FindingCode, _ name: @autoclosure () -> String) throws -> Int? {
        if index >= node.count { return 0 }
        let value = node.unchecked(index)
        if value == 0 { return 0 }
        if value & 1 == 0 {
            try error(code, node.ref, "element \(index), \(name()), is the ref \(value), not a number")
            return nil
        }
        return Int(truncatingIfNeeded: UInt64(bitPattern: value) >> 1)
    }
}
