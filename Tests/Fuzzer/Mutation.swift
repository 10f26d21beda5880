import Foundation
import SharedStore
import TestSupport

extension SplitMix {
    /// The generator of one case.
    init(seed: UInt64, case index: Int) {
        self.init(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(bitPattern: Int64(index)) &* 0xD1B5_4A32_D192_ED03)
    }
}

/// A good file, and where its nodes are, so that damage can be aimed.
struct FuzzFixture {
    struct NodePlace {
        var ref: Int
        var byteCount: Int
        var count: Int
        var flags: UInt8
        /// Bits of an element; 0 where it is not an array of integers or refs.
        var width: Int
    }
    let name: String
    let bytes: [UInt8]
    /// The file as a tree; nil where it has no content.
    let tree: FileTree?
    let nodes: [NodePlace]
    /// Indexes into `nodes` of those that own others.
    let owners: [Int]

    /// - Throws: where the file cannot be read or is too damaged to find its nodes.
    init(path: String) throws {
        name = URL(fileURLWithPath: path).lastPathComponent
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        self.bytes = bytes
        var nodes: [NodePlace] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(8, bytes.count), alignment: 16)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        var tree: FileTree?
        var state = MemoryState(base: buffer.baseAddress!, fileLimit: bytes.count)
        try withUnsafeMutablePointer(to: &state) { state in
            let memory = Memory(state)
            let layout = try FileLayout(path: path, memory: memory, fileSize: bytes.count)
            if layout.topRef != 0 { tree = try FileTree(memory, topRef: layout.topRef, format: UInt8(clamping: layout.format)) }
            var pending = [layout.topRef]
            while let ref = pending.popLast() {
                let node = try memory.node(ref)
                let width = node.widthType == 0 ? node.width : 0
                nodes.append(NodePlace(ref: ref, byteCount: node.byteCount, count: node.count, flags: node.flags, width: width))
                if !node.hasRefs { continue }
                for i in 0..<node.count {
                    let value = node.unchecked(i)
                    if value != 0 && value & 1 == 0 { pending.append(Int(value)) }
                }
            }
        }
        self.nodes = nodes
        self.tree = tree
        owners = nodes.indices.filter { nodes[$0].flags & 0x40 != 0 && nodes[$0].count > 0 && nodes[$0].width > 0 }
    }
}

/// Damage, determined by seed and case.
struct Mutator {
    var random: SplitMix
    var bytes: [UInt8]
    let fixture: FuzzFixture
    /// What was done, for people.
    var steps: [String] = []

    /// Applies one to four changes, or those with the given positions in the sequence (`only`, for making a case smaller).
    init(_ fixture: FuzzFixture, random: SplitMix, generator: Generator = .bytes, only: Set<Int>? = nil) {
        self.fixture = fixture
        self.random = random
        bytes = fixture.bytes
        if generator != .bytes, let tree = fixture.tree {
            var damage = TreeDamage(tree, random: random)
            damage.apply(generator, only: only)
            bytes = damage.written()
            steps = damage.steps
            return
        }
        let count = 1 + self.random.below(4)
        for i in 0..<count {
            // Each change has a generator of its own, so that leaving one out does not change the others.
            var change = self
            change.random = SplitMix(seed: self.random.next(), case: i)
            if let only, !only.contains(i) { continue }
            change.change()
            bytes = change.bytes
            steps = change.steps
        }
    }

    private mutating func change() {
        switch random.below(16) {
        case 0: flipBits()
        case 1: changeHeader()
        case 2: truncate()
        case 3...6: spliceRef()
        case 7...8: changeNodeHeader()
        case 9...11: changeElement()
        case 12: copyNode()
        case 13: flipBitsOfPayload()
        case 14: exchangeRefs()
        default: retag()
        }
    }

    private mutating func node() -> FuzzFixture.NodePlace? {
        fixture.nodes.isEmpty ? nil : fixture.nodes[random.below(fixture.nodes.count)]
    }

    private mutating func owner() -> FuzzFixture.NodePlace? {
        fixture.owners.isEmpty ? nil : fixture.nodes[fixture.owners[random.below(fixture.owners.count)]]
    }

    private mutating func set(_ position: Int, _ byte: UInt8) {
        if position >= 0 && position < bytes.count { bytes[position] = byte }
    }

    /// A number that is likely to hurt.
    private mutating func extreme() -> Int64 {
        let choices: [Int64] = [
            0, 1, -1, 2, 3, 7, 8, 127, -128, 255, 256, 32767, -32768, 1 << 31, Int64(Int32.min), .max, .min, -2, 1 << 62, 1 << 24,
        ]
        return choices[random.below(choices.count)]
    }

    /// Writes an element of a node, cut to its width.
    private mutating func setElement(_ node: FuzzFixture.NodePlace, _ index: Int, _ value: Int64) {
        if node.width < 8 {
            if node.width == 0 { return }
            let bit = index * node.width
            let mask = UInt8((1 << node.width) - 1) << UInt8(bit % 8)
            let position = node.ref + 8 + bit / 8
            if position < bytes.count {
                bytes[position] = bytes[position] & ~mask | UInt8(truncatingIfNeeded: value) << UInt8(bit % 8) & mask
            }
            return
        }
        for i in 0..<(node.width / 8) {
            set(node.ref + 8 + index * node.width / 8 + i, UInt8(truncatingIfNeeded: value >> Int64(8 * i)))
        }
    }

    // MARK: Changes

    private mutating func flipBits() {
        for _ in 0...random.below(8) {
            let position = random.below(max(1, bytes.count))
            set(position, (position < bytes.count ? bytes[position] : 0) ^ 1 << UInt8(random.below(8)))
            steps.append("flip a bit of byte \(position)")
        }
    }

    private mutating func flipBitsOfPayload() {
        guard let node = node(), node.byteCount > 8 else { return }
        for _ in 0...random.below(4) {
            let position = node.ref + 8 + random.below(node.byteCount - 8)
            if position < bytes.count { bytes[position] ^= 1 << UInt8(random.below(8)) }
            steps.append("flip a bit of byte \(position), in the node at \(node.ref)")
        }
    }

    private mutating func changeHeader() {
        let position = random.below(24)
        set(position, random.oneIn(2) ? UInt8(truncatingIfNeeded: random.next()) : UInt8(truncatingIfNeeded: extreme()))
        steps.append("header byte \(position)")
    }

    private mutating func truncate() {
        let size = random.oneIn(2) ? random.below(bytes.count) & ~7 : random.below(bytes.count)
        bytes.removeLast(bytes.count - size)
        steps.append("cut to \(size) bytes")
    }

    private mutating func spliceRef() {
        guard let owner = owner(), let other = node() else { return }
        let index = random.below(owner.count)
        let value: Int64
        switch random.below(8) {
        case 0: value = Int64(other.ref + 8)
        case 1: value = Int64(other.ref + 4)
        case 2: value = extreme()
        case 3: value = Int64(owner.ref)
        case 4: value = Int64(fixture.bytes.count - 8)
        default: value = Int64(other.ref)
        }
        setElement(owner, index, value)
        steps.append("element \(index) of the node at \(owner.ref) becomes \(value)")
    }

    private mutating func exchangeRefs() {
        guard let a = owner(), let b = owner(), a.width == b.width, a.width >= 8 else { return spliceRef() }
        let i = random.below(a.count), j = random.below(b.count), size = a.width / 8
        let x = a.ref + 8 + i * size, y = b.ref + 8 + j * size
        if x + size > bytes.count || y + size > bytes.count || x == y { return }
        for k in 0..<size { bytes.swapAt(x + k, y + k) }
        steps.append("exchange element \(i) of the node at \(a.ref) and \(j) of the node at \(b.ref)")
    }

    private mutating func retag() {
        guard let owner = owner() else { return }
        let index = random.below(owner.count), position = owner.ref + 8 + index * owner.width / 8
        if position < bytes.count { bytes[position] ^= 1 }
        steps.append("element \(index) of the node at \(owner.ref) changes between ref and number")
    }

    private mutating func changeNodeHeader() {
        guard let node = node() else { return }
        switch random.below(5) {
        case 0: set(node.ref + 4, node.flags & 0xF8 | UInt8(random.below(8)))
        case 1: set(node.ref + 4, node.flags ^ 1 << UInt8(random.below(8)))
        case 2:
            let count = node.count + (random.oneIn(2) ? 1 : -1) * (1 + random.below(2))
            for i in 0..<3 { set(node.ref + 5 + i, UInt8(truncatingIfNeeded: count >> (16 - 8 * i))) }
        case 3: for i in 0..<3 { set(node.ref + 5 + i, UInt8(truncatingIfNeeded: random.next())) }
        default: for i in 0..<3 { set(node.ref + 5 + i, random.oneIn(2) ? 0xFF : 0) }
        }
        steps.append("header of the node at \(node.ref)")
    }

    private mutating func changeElement() {
        guard let node = node(), node.count > 0, node.width > 0 else { return flipBitsOfPayload() }
        for _ in 0...random.below(2) {
            let index = random.below(node.count)
            let value = random.oneIn(2) ? extreme() : Int64(truncatingIfNeeded: random.next())
            setElement(node, index, value)
            steps.append("element \(index) of the node at \(node.ref) becomes \(value), cut to \(node.width) bits")
        }
    }

    /// One node's bytes over another one's: right in form, wrong in place.
    private mutating func copyNode() {
        guard let from = node(), let to = node(), from.ref != to.ref else { return }
        let size = min(from.byteCount, to.byteCount)
        if from.ref + size > bytes.count || to.ref + size > bytes.count { return }
        for i in 0..<size { bytes[to.ref + i] = fixture.bytes[from.ref + i] }
        steps.append("\(size) bytes of the node at \(from.ref) over the node at \(to.ref)")
    }
}
