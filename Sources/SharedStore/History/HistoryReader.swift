/// The changesets that a version carries with it, oldest first: one for each commit since `base` (file-format-3 5.2).
///
/// They lead from older versions to this one, so whoever advances reads the history of the version that he advances to.
public struct HistoryReader {
    private let memory: Memory
    private let root: Int
    /// The version that this history belongs to.
    public let version: UInt64
    /// Number of changesets.
    public let count: Int
    /// The oldest version from which one can advance to this one.
    public var base: UInt64 { version - UInt64(count) }

    /// - Parameter topRef: the version's top array, 0 for a file without content.
    public init(memory: Memory, topRef: Int, version: UInt64) throws {
        self.memory = memory
        self.version = version
        guard topRef != 0 else {
            root = 0
            count = 0
            return
        }
        let top = try memory.node(topRef)
        let type = try top.tagged(TopSlot.historyType)
        root = type == 2 ? try top.optionalRef(TopSlot.history) : 0
        count = try BPlusTree<BinaryLeaf>(memory, root).count
        if UInt64(count) > version { throw FormatError(ref: topRef, "version \(version) with \(count) changesets") }
    }

    /// Calls `body` with each changeset that leads from `version` on to this one, in order. An empty one has no bytes.
    ///
    /// - Throws: `HistoryError.trimmed` where the history does not reach back that far.
    public func forEachChangeset(since version: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard version >= base, version <= self.version else {
            throw HistoryError.trimmed(wanted: version, base: base, version: self.version)
        }
        var position = Int(version - base)
        let tree = try BPlusTree<BinaryLeaf>(memory, root)
        while position < count {
            let (leaf, start) = try tree.leaf(containing: position)
            for i in (position - start)..<leaf.count { try leaf.withJoinedBytes(i, body) }
            position = start + leaf.count
        }
    }
}

/// A reader's version is older than what the history still holds: its pin was lost.
public enum HistoryError: Error, Equatable, Sendable, CustomStringConvertible {
    case trimmed(wanted: UInt64, base: UInt64, version: UInt64)

    public var description: String {
        switch self {
        case .trimmed(let wanted, let base, let version):
            "the history of version \(version) begins at version \(base): there is no way from version \(wanted) to it"
        }
    }
}

extension BinaryLeaf {
    /// Calls `body` with the whole value in one piece; one that is stored in several blobs is put together.
    func withJoinedBytes(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var pieces: [UnsafeRawBufferPointer] = []
        try withChunks(index) { pieces.append($0) }
        if pieces.count <= 1 { return try body(pieces.first ?? UnsafeRawBufferPointer(start: nil, count: 0)) }
        var joined: [UInt8] = []
        for piece in pieces { joined.append(contentsOf: piece) }
        try joined.withUnsafeBytes { try body($0) }
    }
}
