/// A piece of memory that belongs at `position` of the file.
struct PendingWrite: BitwiseCopyable {
    var position: Int
    var source: UnsafeRawPointer
    var byteCount: Int
}

/// Gives every new node its place in the file, children before parents (file-format-3 1.3).
///
/// The final bytes are made where the node lies in the arena: refs of children are replaced by places, arrays of refs are
/// packed anew to the smallest width (never wider than before, since places are smaller than refs of the arena), bytes 0..3
/// become `41 41 41 41`. Nothing is written to the file here; `stores` says what belongs where. Afterwards the arena can only
/// be reset.
final class NodeWriter {
    let stores = RawList<PendingWrite>(capacity: 64)
    private let stack = RawList<Frame>(capacity: 64)
    /// No tree of the format comes near this depth.
    private static let depthMax = 4096

    /// Which nodes of a tree are likely to stay for many commits.
    enum Staying {
        /// None of them.
        case passing
        /// Those that have many siblings: so it is in the tree of the tables.
        case amongSiblings
        /// Those without refs: so it is in a history that somebody waits for.
        case changesets
    }

    private struct Frame: BitwiseCopyable {
        var ref: Int
        var index: Int
        /// How many nodes of its kind there may be, as the counts of the inner nodes above it say.
        var siblings: Int
    }

    /// Among so many siblings, one that was changed now is not likely to be changed by the next commits again: it lasts.
    var siblingsOfLasting = siblingsOfLastingMax
    static let siblingsOfLastingMax = 64
    /// Where runs are long, a node of a few among them does more harm: it lasts already among so many.
    static let siblingsOfLastingMin = 8

    private static let longCount = 16

    /// The lasting nodes that `measure` has found, the last one to be written first: bytes, plus 1 where the node has refs.
    private let lastingSizes = RawList<Int>()

    deinit {
        stores.free()
        stack.free()
        lastingSizes.free()
    }

    /// Writes the new nodes of the tree at `root` and returns the root's place; a tree of the file is returned as it is.
    ///
    func write(_ root: Int, _ memory: Memory, _ space: FreeSpace, _ staying: Staying) throws -> Int {
        let arenaStart = memory.state.pointee.arenaStart
        if root < arenaStart { return root }
        stack.removeAll()
        stack.append(Frame(ref: root, index: 0, siblings: staying == .amongSiblings ? 1 : 0))
        var place = 0
        while !stack.isEmpty {
            let depth = stack.count &- 1
            let frame = stack[depth]
            let node = try memory.node(frame.ref)
            if node.hasRefs {
                let index = try nextChild(node, from: frame.index, arenaStart)
                if index < node.count {
                    stack.base[depth].index = index
                    if depth == NodeWriter.depthMax {
                        throw FormatError(ref: root, "a tree is more than \(NodeWriter.depthMax) levels deep")
                    }
                    let siblings = NodeWriter.siblings(below: node, depth, frame.siblings)
                    stack.append(Frame(ref: Int(node.unchecked(index)), index: 0, siblings: siblings))
                    continue
                }
            }
            place = try finish(node, memory, space, isLasting(node, siblings: frame.siblings, staying) ? staying : .passing)
            _ = stack.popLast()
            if depth > 0 {
                let parent = stack[depth &- 1]
                try replaceChild(memory, parent, place)
                stack.base[depth &- 1].index = parent.index &+ 1
            }
        }
        return place
    }

    /// Siblings of the children of a node: it has as many as its parent for each of them. Elements of the root, of inner nodes
    /// and of long arrays are alike, those of others (the parts of a table, the columns of a cluster) differ in kind.
    @inline(__always) private static func siblings(below node: Node, _ depth: Int, _ siblings: Int) -> Int {
        depth == 0 || node.isInner || node.count >= longCount ? min(siblings &* node.count, siblingsOfLastingMax) : siblings
    }

    @inline(__always) private func isLasting(_ node: Node, siblings: Int, _ staying: Staying) -> Bool {
        staying == .changesets ? !node.hasRefs : siblings >= siblingsOfLasting
    }

    /// Adds up what `write` will need for the tree at `root`, where no place lies at or behind `limit`.
    ///
    /// - Returns: false where the nodes take more than `bytesMax`, which those of a sound tree do not.
    func measure(
        _ root: Int, _ memory: Memory, _ staying: Staying, limit: Int, bytesMax: Int, _ need: inout FreeSpace.Need
    ) throws -> Bool {
        let arenaStart = memory.state.pointee.arenaStart
        if root < arenaStart { return true }
        stack.removeAll()
        // The index is the depth here.
        stack.append(Frame(ref: root, index: 0, siblings: staying == .amongSiblings ? 1 : 0))
        while let frame = stack.popLast() {
            let node = try memory.node(frame.ref)
            var byteCount = node.byteCount
            if node.hasRefs {
                if node.widthType != 0 { throw FormatError(ref: node.ref, "node with refs has width type \(node.widthType)") }
                var extent = NodePacking.Extent()
                let siblings = NodeWriter.siblings(below: node, frame.index, frame.siblings)
                @inline(__always) func include(_ v: Int64) {
                    if v & 1 == 0 && v >= arenaStart {
                        extent.include(Int64(limit))
                        stack.append(Frame(ref: Int(v), index: frame.index + 1, siblings: siblings))
                    } else {
                        extent.include(v)
                    }
                }
                // Nearly always: refs of the arena are long.
                if node.flags & 7 == 7 {
                    let p = node.payload
                    for i in 0..<node.count { include(p.loadUnaligned(fromByteOffset: 8 &* i, as: Int64.self)) }
                } else {
                    for i in 0..<node.count { include(node.unchecked(i)) }
                }
                byteCount = NodePacking.byteCount(node.count, extent.widthCode)
            }
            if isLasting(node, siblings: frame.siblings, staying) {
                need.lasting &+= byteCount
                need.lastingCount &+= 1
                // Parents come before their children here, the last child's tree first: just the other way round than in `write`.
                if staying == .amongSiblings { lastingSizes.append(byteCount | (node.hasRefs ? 1 : 0)) }
            } else {
                need.passing &+= byteCount
            }
            if need.passing &+ need.lasting > bytesMax { return false }
        }
        return true
    }

    /// Index of the next element that is a ref of the arena; the count where there is none.
    @inline(__always)
    private func nextChild(_ node: Node, from start: Int, _ arenaStart: Int) throws -> Int {
        var i = start
        let count = node.count
        switch node.flags & 0x1F {
        case 7:
            let p = node.payload
            while i < count {
                let v = p.loadUnaligned(fromByteOffset: 8 &* i, as: Int.self)
                if v & 1 == 0 && v >= arenaStart { return i }
                i &+= 1
            }
        case 0...6:
            // Too narrow for a ref of the arena, where that begins high enough.
            if arenaStart > Int(Int32.max) { return count }
            while i < count {
                let v = node.unchecked(i)
                if v & 1 == 0 && v >= Int64(arenaStart) { return i }
                i &+= 1
            }
        default: throw FormatError(ref: node.ref, "node with refs has width type \(node.widthType)")
        }
        return count
    }

    private func replaceChild(_ memory: Memory, _ parent: Frame, _ place: Int) throws {
        let header = memory.state.pointee.base + parent.ref
        let code = Int(header.load(fromByteOffset: 4, as: UInt8.self) & 7)
        if code != 7 && place > Int(Int32.max) { throw LimitError.valueTooLarge(byteCount: place, limit: Int(Int32.max)) }
        NodePacking.set(header + 8, code, parent.index, Int64(place))
    }

    /// Makes the final bytes of a node whose children have their places, and gives it its own.
    private func finish(_ node: Node, _ memory: Memory, _ space: FreeSpace, _ staying: Staying) throws -> Int {
        let header = memory.state.pointee.base + node.ref
        // In the arena byte 3 is 0; 0x41 there means that the node was written already, so it hangs in the tree twice.
        if header.load(fromByteOffset: 3, as: UInt8.self) != 0 {
            throw FormatError(ref: node.ref, "a new node is reached twice, or was released")
        }
        var flags = node.flags
        let byteCount: Int
        if node.hasRefs {
            let code = NodeWriter.packRefs(header + 8, node)
            flags = (flags & 0xE0) | UInt8(code)
            byteCount = NodePacking.byteCount(node.count, code)
        } else {
            byteCount = node.byteCount
            NodePacking.clearPadding(header + 8, node.payloadByteCount)
        }
        let place =
            switch staying {
            case .passing: try space.allocate(byteCount)
            case .amongSiblings: try space.allocateLasting(byteCount, group: lastingGroup(byteCount))
            case .changesets: try space.allocateForHistory(byteCount)
            }
        NodePacking.stampHeader(header, flags: flags, count: node.count)
        stores.append(PendingWrite(position: place, source: UnsafeRawPointer(header), byteCount: byteCount))
        return place
    }

    /// Bytes of the lasting nodes from this one up to the parent that they have in common: they are changed, and released,
    /// together.
    private func lastingGroup(_ byteCount: Int) -> Int {
        guard var last = lastingSizes.popLast() else { return byteCount }
        var sum = byteCount, i = lastingSizes.count
        while last & 1 == 0 && i > 0 {
            i &-= 1
            last = lastingSizes[i]
            sum &+= last & ~1
        }
        return sum
    }

    /// Forgets what `measure` has found.
    func beginMeasuring() { lastingSizes.removeAll() }

    /// Packs an array of refs to the smallest width, in place; returns the width code.
    private static func packRefs(_ payload: UnsafeMutableRawPointer, _ node: Node) -> Int {
        let old = Int(node.flags & 7), count = node.count
        var extent = NodePacking.Extent()
        if old == 7 {
            let p = payload.assumingMemoryBound(to: Int64.self)
            for i in 0..<count { extent.include(p[i]) }
            let code = extent.widthCode
            NodePacking.pack(p, count, code, to: payload)
            return code
        }
        for i in 0..<count { extent.include(node.unchecked(i)) }
        let code = extent.widthCode
        if code == old {
            NodePacking.clearPadding(payload, node.payloadByteCount)
            return code
        }
        // Rare: an array that has become narrower while it held no new child.
        withUnsafeTemporaryAllocation(of: Int64.self, capacity: max(count, 1)) { values in
            for i in 0..<count { values[i] = node.unchecked(i) }
            if let base = values.baseAddress { NodePacking.pack(base, count, code, to: payload) }
        }
        return code
    }
}
