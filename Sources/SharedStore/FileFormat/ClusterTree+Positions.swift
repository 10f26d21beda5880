/// Where objects stand among all of their table.
extension ClusterTree {
    /// For each of the keys, which ascend as unsigned numbers: how many objects have smaller ones, and whether there is one with
    /// the key.
    ///
    /// A few keys are looked up one by one, many in one walk over the leaves. What the file says of the sizes of its nodes is not
    /// checked: positions may be any numbers where it is wrong.
    func positions(of keys: [ObjectKey]) throws -> [(position: Int, isPresent: Bool)] {
        // A lookup may have to ask 256 children a level for their sizes, a walk meets one leaf in 256 objects.
        if keys.count <= count >> 16 || keys.count <= 1 { return try keys.map { try position(of: $0) } }
        var found: [(position: Int, isPresent: Bool)] = []
        found.reserveCapacity(keys.count)
        var before = 0
        try forEachLeaf { leaf in
            let last = UInt64(bitPattern: leaf.key(leaf.count - 1).rawValue)
            while found.count < keys.count, UInt64(bitPattern: keys[found.count].rawValue) <= last {
                let (row, isPresent) = leaf.search(UInt64(bitPattern: keys[found.count].rawValue))
                found.append((before + row, isPresent))
            }
            before += leaf.count
        }
        while found.count < keys.count { found.append((before, false)) }
        return found
    }

    private func position(of key: ObjectKey) throws -> (position: Int, isPresent: Bool) {
        var k = UInt64(bitPattern: key.rawValue)
        var node = root
        var level = depth
        var before = 0
        while level > 0 {
            guard let (index, offset) = try findChild(node, level, k) else { return (before, false) }
            before &+= try size(of: node, level, before: index)
            k &-= offset
            level -= 1
            node = try child(node, index, level)
        }
        let (row, isPresent) = try ClusterLeaf(memory, node, offset: 0).search(k)
        return (before &+ row, isPresent)
    }

    /// Objects in the first `index` children of a node.
    private func size(of node: Node, _ level: Int, before index: Int) throws -> Int {
        if index == 0 { return 0 }
        // Where all children but the last are full, as after inserting in key order, a product tells. On the highest level it
        // could overflow.
        if level < ClusterTree.depthMax {
            let last = node.count - 4, full = 1 << (8 * level)
            if try node.tagged(2) &- last * full == size(child(node, last, level - 1), level - 1) { return index * full }
        }
        var sum = 0
        for i in 0..<index { sum &+= try size(child(node, i, level - 1), level - 1) }
        return sum
    }
}

extension ClusterLeaf {
    /// The first row whose key is not below `k`, and whether it is `k`.
    fileprivate func search(_ k: UInt64) -> (row: Int, isPresent: Bool) {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if UInt64(bitPattern: key(middle).rawValue) < k { low = middle + 1 } else { high = middle }
        }
        return (low, low < count && UInt64(bitPattern: key(low).rawValue) == k)
    }
}
