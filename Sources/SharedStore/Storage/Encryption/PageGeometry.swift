/// Where the pages of an encrypted file lie (file-format-3 8.2).
///
/// ```
/// file:  | M0 | D0 D1 ... D63 | M1 | D64 ... D127 | M2 | ...      M: 64 entries of 64 bytes, D: 4096 bytes of ciphertext
/// ```
public enum PageGeometry {
    /// Bytes that are encrypted as one.
    public static let pageByteCount = 4096
    /// Bytes that a page's metadata takes.
    public static let entryByteCount = 64
    /// Pages whose metadata stand in one page before them.
    public static let pagesPerBlock = 64
    /// Bytes of the file that hold 64 pages with their metadata.
    public static let blockByteCount = 65 * 4096
    /// A metadata page and a page of data.
    public static let smallestFileSize = 2 * 4096

    /// Position in the file of the plain position `p`.
    @inline(__always) public static func filePosition(_ p: Int) -> Int { p + (p / 4096 / 64 + 1) * 4096 }
    /// Position in the file of the metadata entry of data page `page`.
    @inline(__always) public static func entryPosition(page: Int) -> Int { page / 64 * blockByteCount + page % 64 * 64 }
    /// Bytes of plain content that an encrypted file of `fileSize` bytes holds.
    public static func plainSize(fileSize s: Int) -> Int { s == 0 ? 0 : s - ((s / 4096 + 64) / 65) * 4096 }
    /// Bytes of an encrypted file that ends behind the `plain`-th byte of content, which need not be the end of a page.
    static func cutSize(plain n: Int) -> Int { n + (n + 64 * 4096 - 1) / (64 * 4096) * 4096 }
    /// Bytes of the encrypted file for `plain` bytes of content.
    public static func fileSize(plain n: Int) -> Int { filePosition((n + 4095) & ~4095) }
}

/// One metadata entry: counters and tags of the latest and of the previous encryption of a page (file-format-3 8.3).
///
/// ```
/// 0: iv1, u32   4: tag1, 28 bytes   32: iv2, u32   36: tag2, 28 bytes        iv1 = 0: the page was never written
/// ```
public struct PageEntry: Equatable, Sendable {
    /// What one encryption of the page needs to be undone and to be believed.
    public struct Seal: Equatable, Sendable {
        /// The counter of encryptions; 0 for a page that was never written.
        public var iv: UInt32 = 0
        /// 28 bytes.
        public var tag: (UInt64, UInt64, UInt64, UInt32) = (0, 0, 0, 0)
        /// Of a page that was never written.
        public init() {}
        init(_ p: UnsafeRawPointer) {
            iv = p.loadUnaligned(as: UInt32.self)
            tag = (
                p.loadUnaligned(fromByteOffset: 4, as: UInt64.self), p.loadUnaligned(fromByteOffset: 12, as: UInt64.self),
                p.loadUnaligned(fromByteOffset: 20, as: UInt64.self), p.loadUnaligned(fromByteOffset: 28, as: UInt32.self)
            )
        }
        func store(to p: UnsafeMutableRawPointer) {
            p.storeBytes(of: iv, as: UInt32.self)
            p.storeBytes(of: tag.0, toByteOffset: 4, as: UInt64.self)
            p.storeBytes(of: tag.1, toByteOffset: 12, as: UInt64.self)
            p.storeBytes(of: tag.2, toByteOffset: 20, as: UInt64.self)
            p.storeBytes(of: tag.3, toByteOffset: 28, as: UInt32.self)
        }
        /// Compares the tags in time that does not depend on where they differ.
        public func hasSameTag(as other: Seal) -> Bool {
            (tag.0 ^ other.tag.0) | (tag.1 ^ other.tag.1) | (tag.2 ^ other.tag.2) | UInt64(tag.3 ^ other.tag.3) == 0
        }
        public static func == (a: Seal, b: Seal) -> Bool { a.iv == b.iv && a.hasSameTag(as: b) }
    }

    /// The counter of the encryption that follows one with this counter: 0 is left out, it stands for "never".
    static func counter(after counter: UInt32) -> UInt32 { counter == .max ? 1 : counter + 1 }

    /// Of the data that was written last, or was about to be.
    public var current = Seal()
    /// Of the data before; it is what counts where a write was interrupted.
    public var previous = Seal()
    /// Of a page that was never written.
    public init() {}
    /// Reads the 64 bytes at `p`.
    public init(_ p: UnsafeRawPointer) {
        current = Seal(p)
        previous = Seal(p + 32)
    }
    /// Writes the 64 bytes at `p`.
    public func store(to p: UnsafeMutableRawPointer) {
        current.store(to: p)
        previous.store(to: p + 32)
    }
}
