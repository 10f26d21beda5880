// Scans over integer arrays: the width is looked at once, not once an element, so that each width gets a loop of its own
// which the optimiser can unroll or turn into vector code.
//
// Widths below 8 are read in words of 64 bits. The last word may reach beyond the payload, but not beyond the node, as nodes
// are multiples of 8 bytes and so are the bounds of the readable bytes (invariant of `MemoryState`).

extension Node {
    /// Calls `body` with the elements `range` as signed integers, in order. The range is trusted.
    @inline(__always)
    func forEachInteger(_ range: Range<Int>, _ body: (Int64) throws -> Void) rethrows {
        let p = payload
        switch flags & 7 {
        case 0: for _ in range { try body(0) }
        case 1: try Node.forEachPacked(p, range, 6, 1, body)
        case 2: try Node.forEachPacked(p, range, 5, 3, body)
        case 3: try Node.forEachPacked(p, range, 4, 15, body)
        case 4: for i in range { try body(Int64(p.load(fromByteOffset: i, as: Int8.self))) }
        case 5: for i in range { try body(Int64(p.loadUnaligned(fromByteOffset: i &* 2, as: Int16.self))) }
        case 6: for i in range { try body(Int64(p.loadUnaligned(fromByteOffset: i &* 4, as: Int32.self))) }
        default: for i in range { try body(p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)) }
        }
    }

    /// Elements of 1, 2 or 4 bits: `1 << shift` of them in a word, each as `mask` takes it.
    @inline(__always)
    private static func forEachPacked(
        _ p: UnsafeRawPointer, _ range: Range<Int>, _ shift: Int, _ mask: UInt64, _ body: (Int64) throws -> Void
    ) rethrows {
        let width = 64 &>> shift, perWord = 1 &<< shift
        var i = range.lowerBound
        while i < range.upperBound {
            let first = i & (perWord &- 1)
            let end = min(range.upperBound, i &- first &+ perWord)
            var word = p.loadUnaligned(fromByteOffset: (i &>> shift) &* 8, as: UInt64.self) &>> UInt64(first &* width)
            while i < end {
                try body(Int64(bitPattern: word & mask))
                word &>>= UInt64(width)
                i &+= 1
            }
        }
    }

    /// The first element that equals `value`, nil where none does.
    func firstIndex(of value: Int64) -> Int? {
        let p = payload, n = count
        switch flags & 7 {
        case 4: return Int8(exactly: value).flatMap { Node.first($0, p, n) }
        case 5: return Int16(exactly: value).flatMap { Node.first($0, p, n) }
        case 6: return Int32(exactly: value).flatMap { Node.first($0, p, n) }
        case 7: return Node.first(value, p, n)
        default: return (0..<n).first { unchecked($0) == value }
        }
    }

    /// Eight at a time: only where one of them is the one is it looked which.
    @inline(__always)
    private static func first<T: FixedWidthInteger>(_ value: T, _ p: UnsafeRawPointer, _ n: Int) -> Int? {
        @inline(__always) func differs(_ i: Int) -> Bool {
            p.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self) != value
        }
        var i = 0
        while i &+ 8 <= n {
            let isAbsent =
                differs(i) && differs(i &+ 1) && differs(i &+ 2) && differs(i &+ 3) && differs(i &+ 4) && differs(i &+ 5)
                && differs(i &+ 6) && differs(i &+ 7)
            if !isAbsent { break }
            i &+= 8
        }
        while i < n {
            if !differs(i) { return i }
            i &+= 1
        }
        return nil
    }

    /// The sum of the elements `range`, modulo 2^64. The range is trusted.
    func sumOfIntegers(_ range: Range<Int>) -> Int64 {
        if flags & 7 == 1 { return Int64(Node.countOfOnes(payload, range)) }
        var sum: Int64 = 0
        forEachInteger(range) { sum &+= $0 }
        return sum
    }

    private static func countOfOnes(_ p: UnsafeRawPointer, _ range: Range<Int>) -> Int {
        var count = 0, i = range.lowerBound
        while i < range.upperBound {
            let first = i & 63
            let end = min(range.upperBound, i &- first &+ 64)
            var word = p.loadUnaligned(fromByteOffset: (i >> 6) &* 8, as: UInt64.self) &>> UInt64(first)
            let used = end &- i
            if used < 64 { word &= (1 &<< UInt64(used)) &- 1 }
            count &+= word.nonzeroBitCount
            i = end
        }
        return count
    }

    /// Copies the elements `range` to `target`, which has room for them. The range is trusted.
    @inline(__always)
    func copyIntegers(_ range: Range<Int>, to target: UnsafeMutablePointer<Int64>) {
        if flags & 7 == 7 {
            UnsafeMutableRawPointer(target).copyMemory(from: payload + range.lowerBound &* 8, byteCount: range.count &* 8)
            return
        }
        var next = target
        forEachInteger(range) {
            next.pointee = $0
            next += 1
        }
    }
}

extension IntLeaf {
    /// Calls `body` with every value in order.
    @inline(__always)
    public func forEach(_ body: (Int64) throws -> Void) rethrows { try node.forEachInteger(0..<count, body) }

    /// Calls `body` with the values `range` in order. Traps on a range outside of `0..<count`.
    @inline(__always)
    public func forEach(in range: Range<Int>, _ body: (Int64) throws -> Void) rethrows {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "range of values outside of the leaf")
        try node.forEachInteger(range, body)
    }

    /// Copies all values to the begin of `target`. Traps if it has not room for `count` values.
    public func copy(into target: UnsafeMutableBufferPointer<Int64>) {
        precondition(target.count >= count, "buffer too small for the values of the leaf")
        if let address = target.baseAddress { node.copyIntegers(0..<count, to: address) }
    }

    /// The sum of all values, modulo 2^64.
    public func wrappingSum() -> Int64 { node.sumOfIntegers(0..<count) }
}

extension NullableIntLeaf {
    /// Calls `body` with every value in order.
    @inline(__always)
    public func forEach(_ body: (Int64?) throws -> Void) rethrows {
        let null = sentinel
        try node.forEachInteger(1..<node.count) { try body($0 == null ? nil : $0) }
    }

    /// Copies the elements, `sentinel` in the place of null, to the begin of `target`. Traps if it has not room for `count`
    /// values.
    public func copyElements(into target: UnsafeMutableBufferPointer<Int64>) {
        precondition(target.count >= count, "buffer too small for the values of the leaf")
        if let address = target.baseAddress { node.copyIntegers(1..<node.count, to: address) }
    }
}

extension KeyLeaf {
    /// Calls `body` with every key in order.
    @inline(__always)
    public func forEach(_ body: (ObjectKey) throws -> Void) rethrows {
        try node.forEachInteger(0..<count) { try body(ObjectKey($0)) }
    }
}

extension LinkLeaf {
    /// Calls `body` with every key in order, `ObjectKey.null` for null.
    @inline(__always)
    public func forEach(_ body: (ObjectKey) throws -> Void) rethrows {
        try node.forEachInteger(0..<count) { try body(ObjectKey($0 &- 1)) }
    }
}
