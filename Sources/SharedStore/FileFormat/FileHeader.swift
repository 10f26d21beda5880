/// The first 24 bytes of a file (file-format-1 section 1).
///
/// ```
/// 0: top ref of slot 0   8: top ref of slot 1   16: "T-DB"   20, 21: format of slot 0, 1   22: reserved   23: flags, bit 0 = live slot
/// ```
public struct FileHeader: Equatable, Sendable {
    /// Bytes at the beginning of a file (file-format-1 1.1).
    public static let byteCount = 24
    /// "T-DB", by which a file is known.
    public static let mnemonic: UInt32 = 0x4244_2D54
    /// In the slot of the top ref: look into the footer instead.
    public static let streamingMark = UInt64.max
    /// By which the footer of a streamed file is known.
    public static let footerCookie: UInt64 = 0x3034_1252_37E5_26C8
    /// Bytes of the footer.
    public static let footerByteCount = 16
    /// The format that this package writes.
    public static let currentFormat: UInt8 = 24
    /// Formats that can be read, newest first; all but 24 can be upgraded.
    public static let readableFormats: [UInt8] = [24, 23, 22, 21, 20, 11, 10]

    /// The two slots, one of which is live.
    public var topRefs: (UInt64, UInt64)
    /// What should be the mnemonic.
    public var mnemonic: UInt32
    /// The format number of each slot.
    public var formats: (UInt8, UInt8)
    /// Not used.
    public var reserved: UInt8
    /// Bit 0 says which slot is live.
    public var flags: UInt8

    /// From the bytes of a file; nothing is checked.
    public init(_ p: UnsafeRawPointer) {
        topRefs = (p.loadUnaligned(as: UInt64.self), p.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        mnemonic = p.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
        formats = (p.load(fromByteOffset: 20, as: UInt8.self), p.load(fromByteOffset: 21, as: UInt8.self))
        reserved = p.load(fromByteOffset: 22, as: UInt8.self)
        flags = p.load(fromByteOffset: 23, as: UInt8.self)
    }

    /// The header of a new file that was never committed to.
    public init() {
        topRefs = (0, 0)
        mnemonic = FileHeader.mnemonic
        formats = (0, 0)
        reserved = 0
        flags = 0
    }

    /// Writes the 24 bytes.
    public func store(to p: UnsafeMutableRawPointer) {
        p.storeBytes(of: topRefs.0, as: UInt64.self)
        p.storeBytes(of: topRefs.1, toByteOffset: 8, as: UInt64.self)
        p.storeBytes(of: mnemonic, toByteOffset: 16, as: UInt32.self)
        p.storeBytes(of: formats.0, toByteOffset: 20, as: UInt8.self)
        p.storeBytes(of: formats.1, toByteOffset: 21, as: UInt8.self)
        p.storeBytes(of: reserved, toByteOffset: 22, as: UInt8.self)
        p.storeBytes(of: flags, toByteOffset: 23, as: UInt8.self)
    }

    /// The slot that is in use: 0 or 1.
    public var liveSlot: Int { Int(flags & 1) }
    /// Top ref of the live slot; meaningless in streaming form.
    public var liveTopRef: UInt64 { liveSlot == 0 ? topRefs.0 : topRefs.1 }
    /// The format number of the slot that is live.
    public var liveFormat: UInt8 { liveSlot == 0 ? formats.0 : formats.1 }
    /// The top ref stands in a footer at the end of the file.
    public var isStreaming: Bool { liveSlot == 0 && topRefs.0 == FileHeader.streamingMark }

    public static func == (a: FileHeader, b: FileHeader) -> Bool {
        a.topRefs == b.topRefs && a.mnemonic == b.mnemonic && a.formats == b.formats && a.reserved == b.reserved
            && a.flags == b.flags
    }
}

/// One committed state of a file: its number, where its tree begins, and how many bytes belong to it.
public struct Snapshot: Hashable, Sendable {
    /// The number of the version; counts commits.
    public var version: UInt64
    /// Ref of the group's top array; 0 for a file that was never committed to.
    public var topRef: Int
    /// Bytes in use, the header included; 24 for a file that was never committed to.
    public var logicalSize: Int
    /// A version by its place in the file.
    public init(version: UInt64, topRef: Int, logicalSize: Int) {
        self.version = version
        self.topRef = topRef
        self.logicalSize = logicalSize
    }
}

/// Positions in the group's top array (file-format-2 section 1).
public enum TopSlot {
    /// Slots of the group's top array (file-format-2 section 1).
    public static let names = 0, tables = 1, logicalSize = 2, freePositions = 3, freeLengths = 4, freeVersions = 5
    /// What a file with versions has more, and from `historyType` on what one with a history has.
    public static let version = 6, historyType = 7, history = 8, historySchema = 9, syncFileIdent = 10, evacuation = 11
    /// How many elements the array may have.
    public static let legalCounts: Set<Int> = [3, 5, 7, 9, 10, 11, 12]
}
