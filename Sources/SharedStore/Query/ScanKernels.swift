/// Loops over the packed integers of one leaf, a kernel for each width (file-format-1 2.3).
///
/// All read only inside the `count` elements that the node was checked for. Ranges are closed: every comparison of an integer with a
/// constant is a range or the complement of one. Written for the optimiser: vectors of at most 32 lanes, constants made outside of the
/// loops, wrapping arithmetic, masks handled as words of 64 bits.
enum ScanKernels {
    // MARK: Which elements lie in a range

    /// The elements `first..<first+count` of `node` in `low...high`, as rows from 0 on. `count` is at most 256.
    static func rows(_ node: Node, first: Int, count: Int, in low: Int64, _ high: Int64) -> RowMask {
        if low > high || count <= 0 { return RowMask() }
        let all = RowMask(count: count)
        switch node.flags & 7 {
        case 0: return low <= 0 && high >= 0 ? all : RowMask()
        case 1, 2, 3:
            if low <= 0 && high >= 15 { return all }
            return small(node, first, count, low, high)
        case 4:
            if low > Int64(Int8.max) || high < Int64(Int8.min) { return RowMask() }
            return bytes(node.payload + first, count, Int8(clamping: low), Int8(clamping: high))
        case 5:
            if low > Int64(Int16.max) || high < Int64(Int16.min) { return RowMask() }
            return halves(node.payload + first &* 2, count, Int16(clamping: low), Int16(clamping: high))
        case 6:
            if low > Int64(Int32.max) || high < Int64(Int32.min) { return RowMask() }
            return words(node.payload + first &* 4, count, Int32(clamping: low), Int32(clamping: high))
        default: return longs(node.payload + first &* 8, count, low, high)
        }
    }

    /// Widths of less than a byte: one look-up a byte tells which of its elements are in the range.
    private static func small(_ node: Node, _ first: Int, _ count: Int, _ low: Int64, _ high: Int64) -> RowMask {
        var result = RowMask()
        if first != 0 {
            for i in 0..<count {
                let v = node.unchecked(first &+ i)
                if v >= low && v <= high { result.insert(i) }
            }
            return result
        }
        let width = node.width
        let elementsPerByte = 8 / width
        let valueMask = UInt8(truncatingIfNeeded: 1 << width &- 1)
        // Bit v: the value v is in the range.
        var allowed: UInt16 = 0
        for v in 0..<(1 << width) where Int64(v) >= low && Int64(v) <= high { allowed |= 1 << UInt16(v) }
        var word: UInt64 = 0
        var bit = 0, wordIndex = 0
        func flush(_ result: inout RowMask) {
            switch wordIndex {
            case 0: result.words.0 = word
            case 1: result.words.1 = word
            case 2: result.words.2 = word
            default: result.words.3 = word
            }
        }
        for i in 0..<((count &* width &+ 7) >> 3) {
            var byte = node.payload.load(fromByteOffset: i, as: UInt8.self)
            for _ in 0..<elementsPerByte {
                word |= UInt64(allowed >> UInt16(byte & valueMask) & 1) << UInt64(bit)
                bit &+= 1
                byte >>= UInt8(truncatingIfNeeded: width)
            }
            if bit == 64 {
                flush(&result)
                wordIndex &+= 1
                word = 0
                bit = 0
            }
        }
        if bit > 0 { flush(&result) }
        return result & RowMask(count: count)
    }

    /// Gathers the lowest bit of each of 8 bytes, which are 0 or 255, into 8 bits.
    @inline(__always)
    private static func gather(_ bytes: UInt64) -> UInt64 { ((bytes & 0x8040_2010_0804_0201) &* 0x0101_0101_0101_0101) >> 56 }

    @inline(__always)
    private static func set(_ result: inout RowMask, _ index: Int, _ word: UInt64) {
        switch index {
        case 0: result.words.0 = word
        case 1: result.words.1 = word
        case 2: result.words.2 = word
        default: result.words.3 = word
        }
    }

    /// The rows from `start` on, one by one.
    @inline(__always)
    private static func tail<T: FixedWidthInteger>(_ p: UnsafeRawPointer, _ start: Int, _ count: Int, _ low: T, _ high: T, _ result: inout RowMask) {
        for i in start..<count {
            let v = p.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self)
            if v >= low && v <= high { result.insert(i) }
        }
    }

    private static func bytes(_ p: UnsafeRawPointer, _ count: Int, _ low: Int8, _ high: Int8) -> RowMask {
        var result = RowMask()
        let lows = SIMD32<Int8>(repeating: low), highs = SIMD32<Int8>(repeating: high)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for half in 0..<2 {
                let v = p.loadUnaligned(fromByteOffset: block &* 64 &+ half &* 32, as: SIMD32<Int8>.self)
                let below = unsafeBitCast(lows .> v, to: SIMD4<UInt64>.self), above = unsafeBitCast(v .> highs, to: SIMD4<UInt64>.self)
                let inside = ~(below | above)
                word |= (gather(inside[0]) | gather(inside[1]) << 8 | gather(inside[2]) << 16 | gather(inside[3]) << 24) << UInt64(half &* 32)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    private static func halves(_ p: UnsafeRawPointer, _ count: Int, _ low: Int16, _ high: Int16) -> RowMask {
        var result = RowMask()
        let lows = SIMD16<Int16>(repeating: low), highs = SIMD16<Int16>(repeating: high)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for quarter in 0..<4 {
                let v = p.loadUnaligned(fromByteOffset: (block &* 64 &+ quarter &* 16) &* 2, as: SIMD16<Int16>.self)
                let below = unsafeBitCast(lows .> v, to: SIMD16<Int16>.self), above = unsafeBitCast(v .> highs, to: SIMD16<Int16>.self)
                let outside = unsafeBitCast(SIMD16<Int8>(truncatingIfNeeded: below | above), to: SIMD2<UInt64>.self)
                word |= (gather(~outside[0]) | gather(~outside[1]) << 8) << UInt64(quarter &* 16)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    private static func words(_ p: UnsafeRawPointer, _ count: Int, _ low: Int32, _ high: Int32) -> RowMask {
        var result = RowMask()
        let lows = SIMD8<Int32>(repeating: low), highs = SIMD8<Int32>(repeating: high)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for part in 0..<8 {
                let v = p.loadUnaligned(fromByteOffset: (block &* 64 &+ part &* 8) &* 4, as: SIMD8<Int32>.self)
                let below = unsafeBitCast(lows .> v, to: SIMD8<Int32>.self), above = unsafeBitCast(v .> highs, to: SIMD8<Int32>.self)
                let outside = unsafeBitCast(SIMD8<Int8>(truncatingIfNeeded: below | above), to: UInt64.self)
                word |= gather(~outside) << UInt64(part &* 8)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    private static func longs(_ p: UnsafeRawPointer, _ count: Int, _ low: Int64, _ high: Int64) -> RowMask {
        var result = RowMask()
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for i in 0..<64 {
                let v = p.loadUnaligned(fromByteOffset: (block &* 64 &+ i) &* 8, as: Int64.self)
                word |= (v >= low && v <= high ? 1 : 0) << UInt64(i)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    // MARK: How many elements lie in a range

    /// The number of elements of the whole leaf in `low...high`; any number of elements.
    static func count(_ node: Node, in low: Int64, _ high: Int64) -> Int {
        let n = node.count
        if low > high { return 0 }
        switch node.flags & 7 {
        case 0: return low <= 0 && high >= 0 ? n : 0
        case 1:
            var ones = 0
            for i in 0..<(n >> 6) { ones &+= node.payload.loadUnaligned(fromByteOffset: i &* 8, as: UInt64.self).nonzeroBitCount }
            for i in (n & ~63)..<n { ones &+= Int(node.unchecked(i)) }
            return (low <= 1 && high >= 1 ? ones : 0) &+ (low <= 0 && high >= 0 ? n &- ones : 0)
        case 2, 3:
            var total = 0
            for i in 0..<n {
                let v = node.unchecked(i)
                total &+= v >= low && v <= high ? 1 : 0
            }
            return total
        case 4:
            if low > Int64(Int8.max) || high < Int64(Int8.min) { return 0 }
            return countBytes(node.payload, n, Int8(clamping: low), Int8(clamping: high))
        case 5:
            if low > Int64(Int16.max) || high < Int64(Int16.min) { return 0 }
            return countHalves(node.payload, n, Int16(clamping: low), Int16(clamping: high))
        case 6:
            if low > Int64(Int32.max) || high < Int64(Int32.min) { return 0 }
            return countWords(node.payload, n, Int32(clamping: low), Int32(clamping: high))
        default: return countLongs(node.payload, n, low, high)
        }
    }

    // A mask is -1 in each lane that is outside: adding it up counts down. Lanes are emptied before they can overflow.

    private static func countBytes(_ p: UnsafeRawPointer, _ n: Int, _ low: Int8, _ high: Int8) -> Int {
        let lows = SIMD32<Int8>(repeating: low), highs = SIMD32<Int8>(repeating: high)
        var outside = 0, i = 0
        while i &+ 32 <= n {
            var sum = SIMD32<Int8>()
            let end = min(n &- 32, i &+ 63 &* 32)
            while i <= end {
                let v = p.loadUnaligned(fromByteOffset: i, as: SIMD32<Int8>.self)
                sum = sum &- unsafeBitCast(lows .> v, to: SIMD32<Int8>.self) &- unsafeBitCast(v .> highs, to: SIMD32<Int8>.self)
                i &+= 32
            }
            for lane in 0..<32 { outside &+= Int(sum[lane]) }
        }
        var inside = (n & ~31) &- outside
        while i < n {
            let v = p.load(fromByteOffset: i, as: Int8.self)
            inside &+= v >= low && v <= high ? 1 : 0
            i &+= 1
        }
        return inside
    }

    private static func countHalves(_ p: UnsafeRawPointer, _ n: Int, _ low: Int16, _ high: Int16) -> Int {
        let lows = SIMD16<Int16>(repeating: low), highs = SIMD16<Int16>(repeating: high)
        var outside = 0, i = 0
        while i &+ 16 <= n {
            var sum = SIMD16<Int16>()
            let end = min(n &- 16, i &+ 4000 &* 16)
            while i <= end {
                let v = p.loadUnaligned(fromByteOffset: i &* 2, as: SIMD16<Int16>.self)
                sum = sum &- unsafeBitCast(lows .> v, to: SIMD16<Int16>.self) &- unsafeBitCast(v .> highs, to: SIMD16<Int16>.self)
                i &+= 16
            }
            for lane in 0..<16 { outside &+= Int(sum[lane]) }
        }
        var inside = (n & ~15) &- outside
        while i < n {
            let v = p.loadUnaligned(fromByteOffset: i &* 2, as: Int16.self)
            inside &+= v >= low && v <= high ? 1 : 0
            i &+= 1
        }
        return inside
    }

    private static func countWords(_ p: UnsafeRawPointer, _ n: Int, _ low: Int32, _ high: Int32) -> Int {
        let lows = SIMD8<Int32>(repeating: low), highs = SIMD8<Int32>(repeating: high)
        var sum = SIMD8<Int32>()
        var i = 0
        while i &+ 8 <= n {
            let v = p.loadUnaligned(fromByteOffset: i &* 4, as: SIMD8<Int32>.self)
            sum = sum &- unsafeBitCast(lows .> v, to: SIMD8<Int32>.self) &- unsafeBitCast(v .> highs, to: SIMD8<Int32>.self)
            i &+= 8
        }
        var inside = i
        for lane in 0..<8 { inside &-= Int(sum[lane]) }
        while i < n {
            let v = p.loadUnaligned(fromByteOffset: i &* 4, as: Int32.self)
            inside &+= v >= low && v <= high ? 1 : 0
            i &+= 1
        }
        return inside
    }

    private static func countLongs(_ p: UnsafeRawPointer, _ n: Int, _ low: Int64, _ high: Int64) -> Int {
        let lows = SIMD4<Int64>(repeating: low), highs = SIMD4<Int64>(repeating: high)
        var sum = SIMD4<Int64>()
        var i = 0
        while i &+ 4 <= n {
            let v = p.loadUnaligned(fromByteOffset: i &* 8, as: SIMD4<Int64>.self)
            sum = sum &- unsafeBitCast(lows .> v, to: SIMD4<Int64>.self) &- unsafeBitCast(v .> highs, to: SIMD4<Int64>.self)
            i &+= 4
        }
        var inside = i
        for lane in 0..<4 { inside &-= Int(sum[lane]) }
        while i < n {
            let v = p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)
            inside &+= v >= low && v <= high ? 1 : 0
            i &+= 1
        }
        return inside
    }

    // MARK: Sum

    /// The sum of all elements of a leaf; wraps around at 64 bits.
    static func sum(_ node: Node) -> Int64 {
        let n = node.count, p = node.payload
        var total: Int64 = 0
        var i = 0
        switch node.flags & 7 {
        case 0: return 0
        case 1:
            while i &+ 64 <= n {
                total &+= Int64(p.loadUnaligned(fromByteOffset: i >> 3, as: UInt64.self).nonzeroBitCount)
                i &+= 64
            }
        case 2:
            while i &+ 32 <= n {
                let w = p.loadUnaligned(fromByteOffset: i >> 2, as: UInt64.self)
                total &+= Int64((w & 0x5555_5555_5555_5555).nonzeroBitCount &+ 2 &* (w & 0xAAAA_AAAA_AAAA_AAAA).nonzeroBitCount)
                i &+= 32
            }
        case 3:
            while i &+ 16 <= n {
                let w = p.loadUnaligned(fromByteOffset: i >> 1, as: UInt64.self)
                // Nibbles to bytes, which a multiplication adds up: at most 8 times 30.
                let bytes = (w & 0x0F0F_0F0F_0F0F_0F0F) &+ (w >> 4 & 0x0F0F_0F0F_0F0F_0F0F)
                total &+= Int64((bytes &* 0x0101_0101_0101_0101) >> 56)
                i &+= 16
            }
        case 4:
            while i &+ 16 <= n {
                var sum = SIMD16<Int16>()
                let end = min(n &- 16, i &+ 200 &* 16)
                while i <= end {
                    sum = sum &+ SIMD16<Int16>(truncatingIfNeeded: p.loadUnaligned(fromByteOffset: i, as: SIMD16<Int8>.self))
                    i &+= 16
                }
                total &+= Int64(SIMD16<Int32>(truncatingIfNeeded: sum).wrappedSum())
            }
        case 5:
            while i &+ 8 <= n {
                var sum = SIMD8<Int32>()
                let end = min(n &- 8, i &+ 60_000 &* 8)
                while i <= end {
                    sum = sum &+ SIMD8<Int32>(truncatingIfNeeded: p.loadUnaligned(fromByteOffset: i &* 2, as: SIMD8<Int16>.self))
                    i &+= 8
                }
                total &+= SIMD8<Int64>(truncatingIfNeeded: sum).wrappedSum()
            }
        case 6:
            var sum = SIMD4<Int64>()
            while i &+ 4 <= n {
                sum = sum &+ SIMD4<Int64>(truncatingIfNeeded: p.loadUnaligned(fromByteOffset: i &* 4, as: SIMD4<Int32>.self))
                i &+= 4
            }
            total = sum.wrappedSum()
        default:
            while i < n {
                total &+= p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)
                i &+= 1
            }
        }
        while i < n {
            total &+= node.unchecked(i)
            i &+= 1
        }
        return total
    }
}
