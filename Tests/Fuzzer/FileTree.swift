import SharedStore
import TestSupport

/// A file as the tree of its nodes, to be changed at will and written anew: every ref leads to a whole node that nobody else
/// owns, every size is that of what it counts. What is wrong in such a file is wrong by its meaning alone.
struct FileTree {
    /// An element of a node with refs.
    enum Element {
        case number(Int64)
        /// Position in `nodes`.
        case child(Int)
    }

    struct TreeNode {
        /// Flags without the width, which is found anew where elements are packed.
        var flags: UInt8
        /// Elements of a node with refs.
        var elements: [Element] = []
        /// Elements of an array of integers.
        var integers: [Int64] = []
        /// Blocks or bytes of any other node: as many as `count` says, of `blockSize` bytes each.
        var payload: [UInt8] = []
        var count = 0
        var blockSize = 0
        /// What the node is for, as far as its way from the top tells: nodes of one role can take each other's place.
        var role: UInt64

        var hasRefs: Bool { flags & 0x40 != 0 }
        var isIntegers: Bool { !hasRefs && flags & 0x18 == 0 }
        /// Integers in which unsigned numbers of 8 bits and more are kept apart from signed ones by their place only: width is
        /// kept.
        var widthMin = 0
    }

    private(set) var nodes: [TreeNode] = []
    let format: UInt8

    /// - Throws: where the file is damaged, or has a node that two others own.
    init(_ memory: Memory, topRef: Int, format: UInt8) throws {
        self.format = format
        var seen: Set<Int> = []
        _ = try add(memory, topRef, role: 1, depth: 0, &seen)
    }

    private mutating func add(_ memory: Memory, _ ref: Int, role: UInt64, depth: Int, _ seen: inout Set<Int>) throws -> Int {
        guard seen.insert(ref).inserted, depth < 2000 else { throw FormatError(ref: ref, "no tree") }
        let node = try memory.node(ref)
        let position = nodes.count
        nodes.append(TreeNode(flags: node.flags & 0xF8, role: role))
        if node.hasRefs {
            nodes[position].widthMin = node.width
            for i in 0..<node.count {
                let value = node.unchecked(i)
                if value == 0 || value & 1 != 0 {
                    nodes[position].elements.append(.number(value))
                } else {
                    let childRole = FileTree.role(of: i, in: node, role, depth)
                    let child = try add(memory, Int(value), role: childRole, depth: depth + 1, &seen)
                    nodes[position].elements.append(.child(child))
                }
            }
        } else if node.widthType == 0 {
            nodes[position].widthMin = node.width
            nodes[position].integers = (0..<node.count).map { node.unchecked($0) }
        } else {
            nodes[position].flags = node.flags
            nodes[position].count = node.count
            nodes[position].blockSize = node.widthType == 1 ? node.width : 1
            nodes[position].payload = Array(UnsafeRawBufferPointer(start: node.payload, count: node.payloadByteCount))
        }
        return position
    }

    /// Elements of fixed arrays have a role each; children of inner nodes, rows and tables share one.
    private static func role(of index: Int, in node: Node, _ role: UInt64, _ depth: Int) -> UInt64 {
        let isTableList = depth == 1 && role == mix(1, 1)
        let place = node.isInner ? (index == 0 ? 0 : 1) : isTableList || node.count > 40 ? 0 : index
        return node.isInner && place == 1 ? role : mix(role, place)
    }

    private static func mix(_ role: UInt64, _ place: Int) -> UInt64 {
        var z = (role ^ UInt64(truncatingIfNeeded: place) &* 0xD1B5_4A32_D192_ED03) &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        return z ^ z >> 27
    }

    // MARK: Changes

    /// Lets two nodes change places; neither may lie below the other one, which is told by walking down.
    mutating func exchange(_ a: Int, _ b: Int) -> Bool {
        if a == b || isBelow(a, b) || isBelow(b, a) { return false }
        nodes.swapAt(a, b)
        return true
    }

    /// Puts a copy of the tree at `from` into the place of the one at `to`.
    mutating func copy(_ from: Int, over to: Int) -> Bool {
        if from == to || isBelow(to, from) || isBelow(from, to) { return false }
        nodes[to] = nodes[copied(from)]
        return true
    }

    private func isBelow(_ node: Int, _ root: Int) -> Bool {
        var pending = [root]
        while let next = pending.popLast() {
            for case .child(let child) in nodes[next].elements {
                if child == node { return true }
                pending.append(child)
            }
        }
        return false
    }

    private mutating func copied(_ node: Int) -> Int {
        var copy = nodes[node]
        for (i, element) in copy.elements.enumerated() {
            if case .child(let child) = element { copy.elements[i] = .child(copied(child)) }
        }
        nodes.append(copy)
        return nodes.count - 1
    }

    /// Removes an element or block; what lies below it goes too.
    mutating func remove(_ index: Int, of node: Int) {
        if nodes[node].hasRefs {
            nodes[node].elements.remove(at: index)
        } else if nodes[node].isIntegers {
            nodes[node].integers.remove(at: index)
        } else {
            let size = nodes[node].blockSize
            nodes[node].payload.removeSubrange((index * size)..<((index + 1) * size))
            nodes[node].count -= 1
        }
    }

    /// Puts an element or block in once more, behind the place where it stands, with a copy of what lies below it.
    mutating func double(_ index: Int, of node: Int) {
        if nodes[node].hasRefs {
            var element = nodes[node].elements[index]
            if case .child(let child) = element { element = .child(copied(child)) }
            nodes[node].elements.insert(element, at: index)
        } else if nodes[node].isIntegers {
            nodes[node].integers.insert(nodes[node].integers[index], at: index)
        } else {
            let size = nodes[node].blockSize
            nodes[node].payload.insert(contentsOf: nodes[node].payload[(index * size)..<((index + 1) * size)], at: index * size)
            nodes[node].count += 1
        }
    }

    func elementCount(_ node: Int) -> Int {
        let one = nodes[node]
        if one.hasRefs { return one.elements.count }
        return one.isIntegers ? one.integers.count : one.blockSize > 0 ? one.count : 0
    }

    // MARK: Writing

    /// The file in streaming form. Lists of free space are left out, history and what else the top array has stay.
    func written() -> [UInt8] {
        var file = NodeFile()
        let top = nodes[0]
        var elements: [Int64] = []
        for (i, element) in top.elements.enumerated() {
            switch element {
            // The lists of a streaming copy are empty, and so is the state of a compaction.
            case .child where (3...5).contains(i): elements.append(Int64(file.integers([])))
            case .child where i == 11: elements.append(0)
            case .child(let child): elements.append(Int64(write(child, &file)))
            case .number(let value): elements.append(value)
            }
        }
        return file.streaming(top: elements, flags: top.flags, format: format)
    }

    private func write(_ position: Int, _ file: inout NodeFile) -> Int {
        let node = nodes[position]
        if node.isIntegers { return file.array(node.integers, flags: node.flags, widthMin: node.widthMin) }
        guard node.hasRefs else { return file.node(flags: node.flags, count: node.count, payload: node.payload) }
        let elements = node.elements.map { element in
            switch element {
            case .number(let value): value
            case .child(let child): Int64(write(child, &file))
            }
        }
        return file.array(elements, flags: node.flags, widthMin: node.widthMin)
    }
}
