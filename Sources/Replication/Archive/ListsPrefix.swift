import SharedStore

/// The bytes against which a small step is compressed: the three lists of free space and the top array of its parent, as they lie
/// there (mirroring.md section 4). Every commit writes them anew, nearly as they were.
enum ListsPrefix {
    /// A range of a version's bytes.
    typealias Reading = (_ offset: Int, _ count: Int) throws -> [UInt8]

    /// Where the lists and the top lie: positions, lengths, versions, top. Nil where the version has no lists.
    static func ranges(_ snapshot: Snapshot, _ read: Reading) throws -> [Range<Int>]? {
        guard snapshot.topRef >= 24 else { return nil }
        let top = try node(snapshot.topRef, snapshot, read)
        let slots = [TopSlot.freePositions, TopSlot.freeLengths, TopSlot.freeVersions]
        guard
            let refs = try top.with({ node -> [Int]? in
                guard node.count > TopSlot.freeVersions else { return nil }
                return try slots.map { try node.optionalRef($0) }
            }), refs.allSatisfy({ $0 >= 24 })
        else { return nil }
        var out: [Range<Int>] = []
        for ref in refs { out.append(try node(ref, snapshot, read).range) }
        out.append(top.range)
        return out
    }

    static func bytes(_ snapshot: Snapshot, _ read: Reading) throws -> [UInt8]? {
        guard let ranges = try ranges(snapshot, read) else { return nil }
        var out: [UInt8] = []
        for range in ranges { out += try read(range.lowerBound, range.count) }
        return out
    }

    /// Reading from memory in which the version lies.
    static func reading(_ memory: Memory) -> Reading {
        { offset, count in Array(UnsafeRawBufferPointer(start: try memory.bytes(at: offset, length: count), count: count)) }
    }

    /// The bytes of one node.
    private struct Copy {
        let ref: Int
        let bytes: [UInt8]
        var range: Range<Int> { ref..<ref + bytes.count }

        func with<Result>(_ body: (Node) throws -> Result) throws -> Result {
            var bytes = bytes
            return try bytes.withUnsafeMutableBytes { buffer in
                guard let start = buffer.baseAddress else { throw FormatError(ref: ref, "the node has no bytes") }
                // Byte `ref` of the file lies at the beginning of the buffer; nothing before or behind it is looked at.
                var state = MemoryState(base: start - ref, fileLimit: ref + buffer.count)
                return try withUnsafeMutablePointer(to: &state) { try body(try Memory($0).node(ref)) }
            }
        }
    }

    private static func node(_ ref: Int, _ snapshot: Snapshot, _ read: Reading) throws -> Copy {
        guard ref % 8 == 0, ref <= snapshot.logicalSize - 8 else {
            throw FormatError(ref: ref, "no node of this version can lie here")
        }
        let header = try read(ref, 8)
        guard header.count == 8 else { throw FormatError(ref: ref, "the node is cut off") }
        // The size follows from the header alone (file-format-1 2.2).
        let count = Int(header[5]) << 16 | Int(header[6]) << 8 | Int(header[7])
        let width = (1 << Int(header[4] & 7)) >> 1
        let payload: Int
        switch header[4] >> 3 & 3 {
        case 0: payload = (count * width + 7) / 8
        case 1: payload = count * width
        default: payload = count
        }
        let size = 8 + (payload + 7) & ~7
        guard size <= snapshot.logicalSize - ref else { throw FormatError(ref: ref, "node of \(size) bytes leaves the version") }
        let bytes = try read(ref, size)
        guard bytes.count == size else { throw FormatError(ref: ref, "the node is cut off") }
        return Copy(ref: ref, bytes: bytes)
    }
}
