/// Aggregates of a number property, leaf by leaf: the same results as of the values one by one.
extension Aggregation {
    /// Adds the values of the rows of `mask`, all below `count`, the number of rows of the leaf. False where the column is of
    /// another kind, and nothing was added.
    mutating func add(_ leaf: ClusterLeaf, _ column: Column, _ mask: RowMask) throws -> Bool {
        let isAll = mask.count == leaf.count
        switch column.type {
        case .int:
            if column.isNullable {
                let values = try leaf.leaf(NullableIntLeaf.self, column)
                try addIntegers(mask) { try values.value($0) }
            } else {
                let values = try leaf.leaf(IntLeaf.self, column)
                if isAll { addAll(values.node) } else { addIntegers(mask) { values.unchecked($0) } }
            }
        case .double:
            let values = try leaf.leaf(DoubleLeaf.self, column)
            if isAll && isExtreme {
                if let extreme = ScanKernels.extreme(values.node.payload, values.count, isLeast: isLeast) {
                    add(.double(extreme))
                }
            } else {
                addFractions(mask) { Double(bitPattern: values.bits($0)) }
            }
        case .float:
            let values = try leaf.leaf(FloatLeaf.self, column)
            if isExtreme {
                mask.forEach { if let value = values.unchecked($0) { add(.float(value)) } }
            } else {
                addFractions(mask) { Double(Float(bitPattern: values.bits($0))) }
            }
        default: return false
        }
        return true
    }

    /// All elements of a leaf, none of which is null.
    private mutating func addAll(_ node: Node) {
        if node.count == 0 { return }
        if isExtreme {
            let extremes = ScanKernels.extremes(node)
            return add(.int(isLeast ? extremes.least : extremes.greatest))
        }
        // As long as no sum can have more than 53 bits, doubles add up without rounding, in whatever order.
        let bits = max(1, node.width)
        doublesMax += bits < 53 ? Double(node.count) * Double(UInt64(1) << UInt64(bits)) : .infinity
        if doublesMax < 0x1p53 {
            let sum = ScanKernels.sum(node)
            return add(sum: sum, doubles: doubleSum + Double(sum), count: node.count)
        }
        var sum: Int64 = 0, doubles = doubleSum
        node.forEachInteger(0..<node.count) {
            sum &+= $0
            doubles += Double($0)
        }
        add(sum: sum, doubles: doubles, count: node.count)
    }

    @inline(__always)
    private mutating func addIntegers(_ mask: RowMask, _ value: (Int) throws -> Int64?) rethrows {
        var sum: Int64 = 0, count = 0, least = Int64.max, greatest = Int64.min
        if isExtreme {
            try mask.forEach { row in
                guard let v = try value(row) else { return }
                least = min(least, v)
                greatest = max(greatest, v)
                count &+= 1
            }
            if count > 0 { add(.int(isLeast ? least : greatest)) }
            return
        }
        doublesMax = .infinity
        var doubles = doubleSum
        try mask.forEach { row in
            guard let v = try value(row) else { return }
            sum &+= v
            doubles += Double(v)
            count &+= 1
        }
        add(sum: sum, doubles: doubles, count: count)
    }

    /// Null is a NaN, which is passed over as well.
    @inline(__always)
    private mutating func addFractions(_ mask: RowMask, _ value: (Int) -> Double) {
        if isExtreme {
            var best: Double?
            mask.forEach { row in
                let v = value(row)
                if v.isNaN { return }
                guard let old = best else {
                    best = v
                    return
                }
                if isLeast ? v < old : v > old { best = v }
            }
            if let best { add(.double(best)) }
            return
        }
        var doubles = doubleSum, count = 0
        mask.forEach { row in
            let v = value(row)
            if v.isNaN { return }
            doubles += v
            count &+= 1
        }
        add(sum: 0, doubles: doubles, count: count)
    }
}
