import Foundation
import SharedStore
import TestSupport

/// A copy of a good file in memory, with the tools to damage it at chosen places.
///
/// Two ways: `poke` changes bytes in place; `edit` takes a node by its path from the top array, lets the test change its
/// elements, and writes it and all its owners anew behind the end of the file, so that elements may take any value. What the
/// old nodes occupied is then leaked, which is no more than a warning.
final class DamagedFile {
    private(set) var bytes: UnsafeMutableRawBufferPointer

    init(_ path: String) throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes = .allocate(byteCount: data.count, alignment: 16)
        data.withUnsafeBytes { bytes.copyBytes(from: $0) }
    }

    init(_ content: [UInt8]) {
        bytes = .allocate(byteCount: content.count, alignment: 16)
        bytes.copyBytes(from: content)
    }

    deinit { bytes.deallocate() }

    func verify(_ options: VerifierOptions = VerifierOptions()) throws -> VerificationReport {
        try Verifier.verify(file: bytes, options: options)
    }

    // MARK: Bytes

    func resize(_ count: Int) {
        let new = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        new.initializeMemory(as: UInt8.self, repeating: 0)
        new.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<min(count, bytes.count)]))
        bytes.deallocate()
        bytes = new
    }

    func poke(_ offset: Int, _ new: UInt8...) {
        for (i, byte) in new.enumerated() { bytes[offset + i] = byte }
    }

    func poke(_ offset: Int, word: UInt64) { bytes.storeBytes(of: word, toByteOffset: offset, as: UInt64.self) }

    // MARK: Nodes

    struct EditableNode {
        var flags: UInt8
        /// Elements of a node of width type 0, read as signed numbers.
        var elements: [Int64] = []
        /// Payload of a node of another width type, and its count.
        var payload: [UInt8] = []
        var payloadCount = 0
        /// The width is that of the file's node, or larger where an element needs it.
        var widthMin = 0
        var isBits: Bool { flags & 0x18 == 0 }
    }

    private var liveSlot: Int { Int(bytes[23] & 1) }
    private var isStreaming: Bool { liveSlot == 0 && bytes.load(as: UInt64.self) == UInt64.max }
    private var topRefOffset: Int { isStreaming ? bytes.count - 16 : 8 * liveSlot }
    var topRef: Int { Int(bytes.load(fromByteOffset: topRefOffset, as: UInt64.self)) }

    func count(_ ref: Int) -> Int { Int(bytes[ref + 5]) << 16 | Int(bytes[ref + 6]) << 8 | Int(bytes[ref + 7]) }
    func flags(_ ref: Int) -> UInt8 { bytes[ref + 4] }
    private func width(_ ref: Int) -> Int { (1 << Int(bytes[ref + 4] & 7)) >> 1 }

    func element(_ ref: Int, _ index: Int) -> Int64 {
        let width = width(ref)
        if width == 0 { return 0 }
        if width < 8 { return Int64(bytes[ref + 8 + index * width / 8] >> UInt8(index * width % 8)) & ((1 << Int64(width)) - 1) }
        var value: UInt64 = 0
        for i in 0..<(width / 8) { value |= UInt64(bytes[ref + 8 + index * width / 8 + i]) << UInt64(8 * i) }
        return Int64(bitPattern: value << UInt64(64 - width)) >> Int64(64 - width)
    }

    private func payloadByteCount(_ ref: Int) -> Int {
        let n = count(ref)
        return switch flags(ref) >> 3 & 3 {
        case 0: (n * width(ref) + 7) / 8
        case 1: n * width(ref)
        default: n
        }
    }

    /// The node at the end of a path of element indexes from the top array on.
    func ref(_ path: [Int]) -> Int { path.reduce(topRef) { Int(element($0, $1)) } }

    func node(_ ref: Int) -> EditableNode {
        var node = EditableNode(flags: flags(ref))
        if node.isBits {
            node.elements = (0..<count(ref)).map { element(ref, $0) }
            node.widthMin = width(ref)
        } else {
            node.payloadCount = count(ref)
            node.payload = Array(bytes[(ref + 8)..<(ref + 8 + payloadByteCount(ref))])
        }
        return node
    }

    /// Writes `node` behind the end and returns its ref. The logical size is set by `edit`.
    func append(_ node: EditableNode) -> Int {
        var flags = node.flags, count = node.payloadCount
        var payload = node.payload
        if node.isBits {
            let width = max(NodeBytes.width(of: node.elements), node.widthMin)
            flags = flags & 0xF8 | NodeBytes.code(width)
            count = node.elements.count
            payload = NodeBytes.packed(node.elements, width: width)
        }
        let ref = end
        let written = NodeBytes.node(flags: flags, count: count, payload: payload), size = written.count
        if isStreaming {
            // The footer moves.
            let footer = Array(bytes.suffix(16))
            resize(ref + size + 16)
            for i in 0..<16 { bytes[ref + size + i] = footer[i] }
        } else if ref + size > bytes.count {
            resize((ref + size + 4095) / 4096 * 4096)
        }
        for (i, byte) in written.enumerated() { bytes[ref + i] = byte }
        end = ref + size
        return ref
    }

    /// First byte behind the last node.
    private lazy var end = Int(UInt64(bitPattern: element(topRef, 2)) >> 1)

    /// The next node is laid at `position` at the earliest.
    func skip(to position: Int) {
        end = max(end, position)
        if end > bytes.count { resize(end) }
    }

    /// Lets `change` edit the node at `path`, and writes it and its owners anew.
    func edit(_ path: [Int], _ change: (inout EditableNode) -> Void) {
        var refs = [topRef]
        for index in path { refs.append(Int(element(refs[refs.count - 1], index))) }
        var node = self.node(refs[path.count])
        change(&node)
        for depth in stride(from: path.count - 1, through: 0, by: -1) {
            let ref = append(node)
            node = self.node(refs[depth])
            node.elements[path[depth]] = Int64(ref)
        }
        // The top array: its own size belongs to the logical size; a fixed width keeps that from changing with the value.
        node.widthMin = 64
        if path.isEmpty == false || node.elements.count > 2 && node.elements[2] == element(topRef, 2) {
            node.elements[2] = Int64(end + 8 + 8 * node.elements.count) << 1 | 1
        }
        let ref = append(node)
        poke(topRefOffset, word: UInt64(ref))
    }

    // MARK: Tables

    /// Path of the top of a table, whose name may be given without its prefix.
    func table(_ name: String) -> [Int] {
        let names = ref([0])
        let width = width(names)
        for slot in 0..<count(names) {
            let block = bytes[(names + 8 + slot * width)..<(names + 8 + (slot + 1) * width)]
            let text = String(decoding: block.dropLast().prefix(width - 1 - Int(block.last ?? 0)), as: UTF8.self)
            if text == name || text == "class_" + name { return [1, slot] }
        }
        preconditionFailure("no table \(name)")
    }

    /// Position of a column in the spec.
    func column(_ table: String, _ name: String) -> Int {
        let names = ref(self.table(table) + [0, 1])
        let width = width(names)
        for i in 0..<count(names) {
            let block = bytes[(names + 8 + i * width)..<(names + 8 + (i + 1) * width)]
            if String(decoding: block.dropLast().prefix(width - 1 - Int(block.last ?? 0)), as: UTF8.self) == name { return i }
        }
        preconditionFailure("no column \(name)")
    }

    /// Leaf index of a column.
    func leafIndex(_ table: String, _ name: String) -> Int {
        Int(element(ref(self.table(table) + [0, 5]), column(table, name)) & 0xFFFF)
    }

    /// Path of the first cluster leaf of a table.
    func cluster(_ table: String) -> [Int] {
        var path = self.table(table) + [2]
        while flags(ref(path)) & 0x80 != 0 { path.append(3) }
        return path
    }

    /// Path of a column's leaf in the first cluster.
    func leaf(_ table: String, _ column: String) -> [Int] { cluster(table) + [1 + leafIndex(table, column)] }

    /// Path of the first collection of a column that is there and not empty.
    func collection(_ table: String, _ column: String, minimum: Int = 1) -> [Int] {
        let leaf = leaf(table, column)
        let node = ref(leaf)
        for i in 0..<count(node) where element(node, i) != 0 {
            let root = Int(element(node, i))
            let isDictionary = flags(root) & 0xC0 == 0x40 && count(root) == 2
            if count(isDictionary ? Int(element(root, 0)) : root) >= minimum { return leaf + [i] }
        }
        preconditionFailure("no collection in \(column)")
    }

    /// Path of the root of a column's index.
    func index(_ table: String, _ column: String) -> [Int] { self.table(table) + [4, leafIndex(table, column)] }
}
