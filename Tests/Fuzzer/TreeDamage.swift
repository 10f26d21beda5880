import SharedStore
import TestSupport

/// How a case is made of a good file.
enum Generator: String, CaseIterable {
    /// Bytes are changed where they stand: refs, headers, elements, payloads.
    case bytes
    /// Nodes of one role change places, or one takes the place of another: a leaf of the same column in another cluster, the list
    /// of another row, the objects of another table.
    case exchange
    /// Arrays, leaves and blobs lose elements or have some twice, with what lies below them.
    case resize
}

/// Changes of a file's tree, determined by the generator of random numbers.
struct TreeDamage {
    private var tree: FileTree
    private var random: SplitMix
    private(set) var steps: [String] = []

    init(_ tree: FileTree, random: SplitMix) {
        self.tree = tree
        self.random = random
    }

    /// Applies one to three changes, those with the given positions in the sequence where `only` says so.
    mutating func apply(_ generator: Generator, only: Set<Int>?) {
        let count = 1 + random.below(3)
        for i in 0..<count {
            var own = self
            own.random = SplitMix(seed: random.next(), case: i)
            if let only, !only.contains(i) { continue }
            if generator == .exchange { own.exchange() } else { own.resize() }
            tree = own.tree
            steps = own.steps
        }
    }

    func written() -> [UInt8] { tree.written() }

    private mutating func exchange() {
        for _ in 0..<64 {
            let a = 1 + random.below(tree.nodes.count - 1)
            let peers = tree.nodes.indices.filter { $0 != 0 && $0 != a && tree.nodes[$0].role == tree.nodes[a].role }
            if peers.isEmpty { continue }
            let b = peers[random.below(peers.count)]
            let isCopy = random.oneIn(3)
            if isCopy ? tree.copy(b, over: a) : tree.exchange(a, b) {
                steps.append(isCopy ? "a copy of node \(b) in the place of node \(a)" : "nodes \(a) and \(b) change places")
                return
            }
        }
    }

    private mutating func resize() {
        for _ in 0..<64 {
            let node = 1 + random.below(tree.nodes.count - 1)
            let count = tree.elementCount(node)
            if count == 0 { continue }
            for _ in 0...(random.oneIn(4) ? random.below(8) : 0) {
                let now = tree.elementCount(node)
                if now == 0 { break }
                let index = random.oneIn(2) ? now - 1 : random.below(now)
                // Copies of what is large would make files that take long, and no other damage.
                let shrinks = random.oneIn(2) || tree.nodes.count > 100_000
                if shrinks { tree.remove(index, of: node) } else { tree.double(index, of: node) }
            }
            steps.append("node \(node) has \(tree.elementCount(node)) elements instead of \(count)")
            return
        }
    }
}
