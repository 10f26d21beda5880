import SharedStore

/// Cuts a write to an encrypted file into what a disk writes as a whole: sectors of metadata, and pages of data (file-format-3
/// 8.2).
enum EncryptedWrites {
    private static let sector = 512

    static func units(_ offset: Int, _ bytes: [UInt8]) -> [(offset: Int, bytes: [UInt8])] {
        var units: [(offset: Int, bytes: [UInt8])] = []
        var at = 0
        // A metadata page that is written as a whole goes with the pages behind it: sectors without entries of theirs are written
        // as they were.
        let entryCount =
            isMetadata(offset) && bytes.count > PageGeometry.pageByteCount ? bytes.count / PageGeometry.pageByteCount - 1 : nil
        while at < bytes.count {
            let position = offset + at
            if let entryCount, isMetadata(position), at >= entryCount * PageGeometry.entryByteCount {
                at = PageGeometry.pageByteCount
                continue
            }
            let unit = isMetadata(position) ? sector : PageGeometry.pageByteCount
            let count = min((position / unit + 1) * unit - position, bytes.count - at)
            units.append((position, Array(bytes[at..<at + count])))
            at += count
        }
        return units
    }

    static func isMetadata(_ position: Int) -> Bool { position % PageGeometry.blockByteCount < PageGeometry.pageByteCount }

    /// Where the entry of the page of data at `position` lies.
    static func entry(_ position: Int) -> Int {
        let block = position / PageGeometry.blockByteCount
        return block * PageGeometry.blockByteCount + (position % PageGeometry.blockByteCount / PageGeometry.pageByteCount - 1)
            * PageGeometry.entryByteCount
    }
}
