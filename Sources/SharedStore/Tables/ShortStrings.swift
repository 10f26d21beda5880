/// The names of tables and columns: short strings, where null and "" are the same (file-format-1 6.2, last paragraph).
///
/// Block of W bytes: the characters, zeros, and in the last byte the number of zeros before it (W = null).
enum NameArray {
    /// All names of the array at `ref`, which may be `countMax` at most: empty names have no bytes, so that a damaged node can
    /// claim millions.
    static func read(_ memory: Memory, _ ref: Int, countMax: Int) throws -> [String] {
        let node = try memory.node(ref)
        guard !node.hasRefs, node.widthType == 1 else { throw FormatError(ref: ref, "names with flags \(node.flags)") }
        if node.count > countMax { throw FormatError(ref: ref, "\(node.count) names, more than \(countMax)") }
        var names: [String] = []
        names.reserveCapacity(node.count)
        for i in 0..<node.count { names.append(try name(node, i)) }
        return names
    }

    private static func name(_ node: Node, _ index: Int) throws -> String {
        let width = node.width
        if width == 0 { return "" }
        let block = UnsafeRawBufferPointer(start: node.payload + index * width, count: width)
        let padding = Int(block[width - 1])
        if padding == width { return "" }
        if padding > width {
            throw FormatError(ref: node.ref, "name \(index) has \(padding) bytes of padding in a block of \(width)")
        }
        return String(decoding: block[..<(width - 1 - padding)], as: UTF8.self)
    }
}
