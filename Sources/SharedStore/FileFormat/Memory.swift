import CShims

/// What a ref is looked up in: the bytes of one bound version, and behind them the arena of a write transaction.
///
/// Invariants: `base + ref` is the address of byte `ref` for every `ref` in `[0, fileLimit)` and in `[arenaStart, arenaLimit)`;
/// `fileLimit <= arenaStart`; both limits are multiples of 8. Whoever owns the mapping owns this block and keeps it
/// alive as long as any `Memory` made from it is used; it is not reference counted, so that reading costs no count.
public struct MemoryState {
    /// Where byte 0 of the file lies.
    public var base: UnsafeMutableRawPointer
    /// First byte behind the readable bytes of the version (its logical size; in streaming form the file size less 16).
    public var fileLimit: Int
    /// First ref of the arena; equal to `arenaLimit` where there is no write transaction.
    public var arenaStart: Int
    /// First byte behind what the arena has handed out.
    public var arenaLimit: Int
    /// The pages of an encrypted file, decrypted on first touch; nil for a plain file.
    public var pager: Unmanaged<PageSource>?
    /// Of a write transaction: where the value lists of enumerated string columns are by now. Its arena keeps the object.
    var movedLists: Unmanaged<MovedLists>?

    /// A version that reaches up to `fileLimit`, without an arena.
    public init(base: UnsafeMutableRawPointer, fileLimit: Int) {
        self.base = base
        self.fileLimit = fileLimit
        arenaStart = Int.max
        arenaLimit = Int.max
        pager = nil
        movedLists = nil
    }
}

/// The value lists of enumerated string columns that a write transaction changed (file-format-2 3.6). A `Column` says where the
/// list was when the column was read; whoever keeps one over a change finds the list here.
final class MovedLists {
    private struct Place: Hashable {
        var table: TableKey
        var column: ColumnKey
    }
    private var refs: [Place: Int] = [:]

    func set(_ ref: Int, _ column: ColumnKey, of table: TableKey) { refs[Place(table: table, column: column)] = ref }
    func ref(_ column: ColumnKey, of table: TableKey) -> Int? { refs.isEmpty ? nil : refs[Place(table: table, column: column)] }
    func removeAll() { refs.removeAll() }
}

/// Makes bytes of an encrypted file readable in the reserved span before they are touched (file-format-3 section 8).
open class PageSource {
    private let marks: PageMarks?

    /// `prepare` is asked before each access.
    public init() { marks = nil }
    /// `prepare` is asked where the marks do not show that the bytes are readable.
    init(marks: PageMarks) { self.marks = marks }

    /// True where `[start, end)`, which is not empty, lies in one or two pages that the marks show to be readable.
    @inline(__always)
    final func isPrepared(_ start: Int, _ end: Int) -> Bool {
        guard let marks else { return false }
        let page = start >> PageMarks.pageShift, last = (end &- 1) >> PageMarks.pageShift
        if last &- page > 1 || last >= marks.count { return false }
        let generation = CShims_load_acquire_u32(marks.generation)
        return CShims_load_acquire_u32(marks.marks + page) == generation
            && CShims_load_acquire_u32(marks.marks + last) == generation
    }

    /// Makes `[start, end)` of the plain file readable, or throws why it cannot be.
    open func prepare(_ start: Int, _ end: Int) throws {}
    /// Another version is about to be read: whatever was made readable before is checked again at its next touch.
    open func invalidate() {}
    /// What was read of `[start, end)` is not needed any more. Only where nobody else reads there, and no pointer into it is
    /// kept.
    open func giveBack(_ start: Int, _ end: Int) {}
}

/// Which pages are readable as they lie in memory: those whose mark equals the generation. Each access looks, which a call would
/// make dear.
///
/// A mark is stored after the bytes of its page (release); both are loaded before these (acquire).
struct PageMarks: @unchecked Sendable {
    // Sendable: the words are atomics.
    let marks: UnsafeMutablePointer<UInt32>
    let generation: UnsafeMutablePointer<UInt32>
    /// Number of marks.
    let count: Int
    static let pageShift = 12
    static let offsetMask = (1 << pageShift) - 1
}

/// A handle on `MemoryState`: two words are loaded to turn a ref into an address, nothing is retained.
@frozen public struct Memory: @unchecked Sendable {
    // Sendable: the state is written by the owner of the transaction only, before it hands out nodes of a new extent.
    /// What the handle refers to; it must outlive the handle.
    public let state: UnsafeMutablePointer<MemoryState>
    /// A handle on a state.
    @inline(__always) public init(_ state: UnsafeMutablePointer<MemoryState>) { self.state = state }

    /// The address of `length` bytes at `ref`, after checking that they lie inside the version or the arena.
    @inline(__always)
    public func bytes(at ref: Int, length: Int) throws -> UnsafeRawPointer {
        let s = state
        let end = ref &+ length
        if ref < 24 || length < 0 || end < ref || end > s.pointee.fileLimit {
            if !(ref >= s.pointee.arenaStart && length >= 0 && end >= ref && end <= s.pointee.arenaLimit) {
                throw outOfBounds(ref, length)
            }
        } else if let pager = s.pointee.pager {
            try pager._withUnsafeGuaranteedRef { if !$0.isPrepared(ref, end) { try $0.prepare(ref, end) } }
        }
        return UnsafeRawPointer(s.pointee.base) + ref
    }

    /// Memory that was needed to read `range`, where reading needs any, goes back to the system; the bytes can be read again. For
    /// whoever reads a whole file once and is the only one who reads it: pointers into the range must not be used any more.
    public func giveBack(_ range: Range<Int>) {
        state.pointee.pager?._withUnsafeGuaranteedRef { $0.giveBack(range.lowerBound, range.upperBound) }
    }

    /// The node at `ref`, after checking that header and payload lie inside the version or the arena.
    @inline(__always)
    public func node(_ ref: Int) throws -> Node {
        if ref & 7 != 0 { throw unaligned(ref) }
        let header = try bytes(at: ref, length: 8)
        let node = Node(ref: ref, header: header)
        // Width type 3 is unassigned. A node of bytes (type 2) has width code 0 or 1; one above 4 would let the element
        // accessors, which trust the width type, read behind the payload.
        if node.flags & 0x1F > 0x14 { throw widthError(node) }
        let length = node.payloadByteCount
        if length > 0 { try checkPayload(ref, ref &+ 8 &+ length) }
        return node
    }

    /// As `bytes` for a node that ends at `end`, whose header was looked at: of its pages the first is known to be readable.
    @inline(__always)
    private func checkPayload(_ ref: Int, _ end: Int) throws {
        let s = state
        if end > s.pointee.fileLimit {
            if !(ref >= s.pointee.arenaStart && end <= s.pointee.arenaLimit) { throw outOfBounds(ref, end &- ref) }
        } else if let pager = s.pointee.pager {
            let next = (ref | PageMarks.offsetMask) &+ 1
            if end > next { try pager._withUnsafeGuaranteedRef { if !$0.isPrepared(next, end) { try $0.prepare(next, end) } } }
        }
    }

    /// True when the node at `ref` was made by the running write transaction and may be changed in place.
    @inline(__always) public func isInArena(_ ref: Int) -> Bool { ref >= state.pointee.arenaStart }

    @inline(never) private func widthError(_ node: Node) -> FormatError {
        FormatError(ref: node.ref, "node has width type \(node.widthType) with width code \(node.flags & 7)")
    }
    @inline(never) private func unaligned(_ ref: Int) -> FormatError { FormatError(ref: ref, "ref is not a multiple of 8") }
    @inline(never) private func outOfBounds(_ ref: Int, _ length: Int) -> FormatError {
        FormatError(
            ref: ref, "node of at least \(length) bytes lies outside the \(state.pointee.fileLimit) bytes of this version")
    }
}
