/// Loops over the values of one leaf that are no plain scans: extremes, and fractions against a constant.
extension ScanKernels {
    // MARK: Extremes

    /// The least and the greatest of the elements from `first` on, of which there is at least one.
    static func extremes(_ node: Node, first: Int = 0) -> (least: Int64, greatest: Int64) {
        let p = node.payload, n = node.count
        switch node.flags & 7 {
        case 4: return extremes(p, first, n, of: Int8.self)
        case 5: return extremes(p, first, n, of: Int16.self)
        case 6: return extremes(p, first, n, of: Int32.self)
        case 7: return extremes(p, first, n, of: Int64.self)
        default:
            var least = Int64.max, greatest = Int64.min
            node.forEachInteger(first..<n) {
                least = min(least, $0)
                greatest = max(greatest, $0)
            }
            return (least, greatest)
        }
    }

    /// Four at a time, which do not wait for each other.
    @inline(__always)
    private static func extremes<T: FixedWidthInteger & SignedInteger>(
        _ p: UnsafeRawPointer, _ first: Int, _ n: Int, of type: T.Type
    ) -> (Int64, Int64) {
        @inline(__always) func value(_ i: Int) -> T { p.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self) }
        var least0 = T.max, least1 = T.max, least2 = T.max, least3 = T.max
        var greatest0 = T.min, greatest1 = T.min, greatest2 = T.min, greatest3 = T.min
        var i = first
        while i &+ 4 <= n {
            let a = value(i), b = value(i &+ 1), c = value(i &+ 2), d = value(i &+ 3)
            least0 = a < least0 ? a : least0
            least1 = b < least1 ? b : least1
            least2 = c < least2 ? c : least2
            least3 = d < least3 ? d : least3
            greatest0 = a > greatest0 ? a : greatest0
            greatest1 = b > greatest1 ? b : greatest1
            greatest2 = c > greatest2 ? c : greatest2
            greatest3 = d > greatest3 ? d : greatest3
            i &+= 4
        }
        while i < n {
            let a = value(i)
            least0 = a < least0 ? a : least0
            greatest0 = a > greatest0 ? a : greatest0
            i &+= 1
        }
        return (
            Int64(min(min(least0, least1), min(least2, least3))), Int64(max(max(greatest0, greatest1), max(greatest2, greatest3)))
        )
    }

    /// The least or the greatest of `n` doubles that is a number, nil where there is none: the first of those that are equal.
    static func extreme(_ p: UnsafeRawPointer, _ n: Int, isLeast: Bool) -> Double? {
        let found = isLeast ? extreme(p, n, .infinity) { $0 < $1 } : extreme(p, n, -.infinity) { $0 > $1 }
        if found != 0 && found.isFinite { return found }
        // The zeros have a sign, of which the first one counts; an infinity may be none that is there.
        var first: Double?
        for i in 0..<n {
            let v = p.loadUnaligned(fromByteOffset: i &* 8, as: Double.self)
            if v.isNaN { continue }
            guard let old = first else {
                first = v
                continue
            }
            if isLeast ? v < old : v > old { first = v }
        }
        return first
    }

    @inline(__always)
    private static func extreme(_ p: UnsafeRawPointer, _ n: Int, _ worst: Double, _ isBetter: (Double, Double) -> Bool) -> Double
    {
        @inline(__always) func value(_ i: Int) -> Double { p.loadUnaligned(fromByteOffset: i &* 8, as: Double.self) }
        var best0 = worst, best1 = worst, best2 = worst, best3 = worst
        var i = 0
        while i &+ 4 <= n {
            let a = value(i), b = value(i &+ 1), c = value(i &+ 2), d = value(i &+ 3)
            // False for NaN.
            best0 = isBetter(a, best0) ? a : best0
            best1 = isBetter(b, best1) ? b : best1
            best2 = isBetter(c, best2) ? c : best2
            best3 = isBetter(d, best3) ? d : best3
            i &+= 4
        }
        while i < n {
            let a = value(i)
            best0 = isBetter(a, best0) ? a : best0
            i &+= 1
        }
        best0 = isBetter(best1, best0) ? best1 : best0
        best2 = isBetter(best3, best2) ? best3 : best2
        return isBetter(best2, best0) ? best2 : best0
    }

    // MARK: Fractions

    /// The first `count` blocks, at most 256, for which `operation` holds with `value` on its right side. Null is a NaN, and like
    /// NaN unequal to everything.
    @inline(__always)
    static func rows<T: BinaryFloatingPoint>(
        _ p: UnsafeRawPointer, _ count: Int, _ operation: QuerySyntax.Operator, _ value: T
    ) -> RowMask {
        switch operation {
        case .equal: return rows(p, count) { (v: T) in v == value }
        case .notEqual: return rows(p, count) { (v: T) in v != value }
        case .less: return rows(p, count) { (v: T) in v < value }
        case .lessOrEqual: return rows(p, count) { (v: T) in v <= value }
        case .greater: return rows(p, count) { (v: T) in v > value }
        default: return rows(p, count) { (v: T) in v >= value }
        }
    }

    /// The first `count` blocks, at most 256, that are no numbers, null among them.
    @inline(__always)
    static func nans<T: BinaryFloatingPoint>(_ p: UnsafeRawPointer, _ count: Int, of type: T.Type) -> RowMask {
        rows(p, count) { (v: T) in v != v }
    }

    @inline(__always)
    private static func rows<T>(_ p: UnsafeRawPointer, _ count: Int, _ holds: (T) -> Bool) -> RowMask {
        var result = RowMask()
        var block = 0
        while block &* 64 < count {
            let start = block &* 64, n = min(64, count &- start)
            var word: UInt64 = 0, i = 0
            while i < n {
                let v = p.loadUnaligned(fromByteOffset: (start &+ i) &* MemoryLayout<T>.stride, as: T.self)
                word |= (holds(v) ? 1 : 0) &<< UInt64(truncatingIfNeeded: i)
                i &+= 1
            }
            set(&result, block, word)
            block &+= 1
        }
        return result
    }
}
