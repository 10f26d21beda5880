/// The rules that a file can break. Numbers in brackets: document and rule, as in file-format-1 section 11 ("1:4"),
/// file-format-2 section 11 ("2:16"), file-format-3 section 10 ("3:7").
public enum FindingCode: String, Sendable, CaseIterable {
    // MARK: Header and top array
    /// The file is shorter than it must be, or not a multiple of 8 bytes long [1:1].
    case headerSize = "header.size"
    /// Bytes 16 to 19 are not `T-DB` [1:1].
    case headerMnemonic = "header.mnemonic"
    /// The live format version is none that can be read [1:1, 3:1].
    case headerFormat = "header.format"
    /// The live top ref is unaligned or lies outside the file [1:1].
    case headerTopRef = "header.topRef"
    /// The reserved byte, or one of the flag bits 1 to 7, is set (warning) [1:2].
    case headerReserved = "header.reserved"
    /// The footer of a streaming file does not end with the cookie [1:3, 3:14].
    case footerCookie = "footer.cookie"
    /// The logical size of a streaming file is not its size less 16 (warning) [1:3, 3:14].
    case footerPosition = "footer.position"
    /// The number of elements of the top array is none of the legal ones [2:1, 3:2].
    case topCount = "top.count"
    /// An element of the top array is of the wrong kind: a ref for a number or the other way round [2:1, 3:2].
    case topElement = "top.element"
    /// The logical size is unaligned, exceeds the file, or differs from the snapshot's [3:3].
    case topLogicalSize = "top.logicalSize"
    /// The version is 0, or differs from the snapshot's [3:2].
    case topVersion = "top.version"
    /// Element 11 is none of: 0, a limit, a well-formed state of compaction [3:11].
    case evacuationState = "evacuation.state"

    // MARK: Nodes
    /// A ref is not a multiple of 8 [1:4].
    case nodeUnaligned = "node.unaligned"
    /// A ref is negative, or the node does not lie inside the file [1:4, 1:6].
    case nodeRange = "node.range"
    /// The width type is 3 [1:5].
    case nodeWidthType = "node.widthType"
    /// Flags that exclude each other: an inner node without refs, refs in a node that is not of width type 0 [1:5].
    case nodeFlags = "node.flags"
    /// Bytes 0 to 3 are not `41 41 41 41` (warning) [1:5].
    case nodeChecksum = "node.checksum"
    /// A node begins or ends inside another one [1:7].
    case nodeOverlap = "node.overlap"
    /// A node has two owners [1:6, 2:37].
    case nodeShared = "node.shared"
    /// A node is owned by one of its own descendants [1:9].
    case nodeCycle = "node.cycle"
    /// A node crosses a multiple of 64 MiB (warning) [1:8, 3:9].
    case nodeSection = "node.section"
    /// A page of an encrypted file cannot be decrypted [3:13].
    case nodeUnreadable = "node.unreadable"
    /// An element that must be a ref is 0 or a number, or the other way round.
    case nodeElement = "node.element"
    /// A node is not of the kind that its place asks for: refs, width type, width, or number of elements [1:10-23].
    case nodeKind = "node.kind"

    // MARK: Free space
    /// The three lists of free space differ in length [3:4].
    case freeCounts = "free.counts"
    /// The list of free blocks is not sorted by position [3:4].
    case freeOrder = "free.order"
    /// Two free blocks overlap [3:4].
    case freeOverlap = "free.overlap"
    /// Position or length of a free block is not a multiple of 8, or the length is not positive [3:4].
    case freeAlignment = "free.alignment"
    /// A free block lies outside the logical file [3:4].
    case freeRange = "free.range"
    /// A free block was released by a version that does not exist yet [3:5].
    case freeVersion = "free.version"
    /// A free block contains a node in use [1:7, 3:7].
    case spaceOverlap = "space.overlap"
    /// Bytes that are neither reachable nor free (warning) [1:7, 3:7].
    case spaceLeaked = "space.leaked"

    // MARK: The run itself
    /// Too deep a nesting of nodes of one tree; the part below was not looked at [1:9].
    case depthLimit = "depth.limit"
    /// More elements than any well-formed file of this size holds; the run stopped.
    case elementLimit = "element.limit"
}
