/// Loops over the packed integers of one leaf, a kernel for each width (file-format-1 2.3).
///
/// All read only inside the `count` elements that the node was checked for. Ranges are closed: every comparison of an integer
/// with a constant is a range or the complement of one. Written for the optimiser: vectors of at most 32 lanes, constants made
/// outside of the loops, wrapping arithmetic, masks handled as words of 64 bits.
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
            if first == 0 { return small(node, count, low, high) & all }
            // The rows of a nullable leaf begin with its second element.
            var result = small(node, min(count &+ first, 256), low, high).shifted(by: first)
            if count &+ first > 256 {
                for i in (256 &- first)..<count where node.unchecked(first &+ i) >= low && node.unchecked(first &+ i) <= high {
                    result.insert(i)
                }
            }
            return result & all
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

    /// Widths of less than a byte, 64 elements at a time; bits behind `count` are of no meaning.
    private static func small(_ node: Node, _ count: Int, _ low: Int64, _ high: Int64) -> RowMask {
        var result = RowMask()
        let byteCount = (count &* node.width &+ 7) >> 3, width = node.width
        let test = SmallRange(low, high)
        for block in 0..<((count &+ 63) >> 6) {
            let start = block &* 8 &* width
            var word: UInt64 = 0
            switch width {
            case 1: word = test.ones(load(node, start, byteCount))
            case 2:
                word =
                    compressed(test.twos(load(node, start, byteCount))) | compressed(test.twos(load(node, start &+ 8, byteCount)))
                    << 32
            default:
                var even: UInt64 = 0, odd: UInt64 = 0
                for part in 0..<4 {
                    let (e, o) = test.fours(load(node, start &+ part &* 8, byteCount))
                    even |= topBits(e) << UInt64(part &* 8)
                    odd |= topBits(o) << UInt64(part &* 8)
                }
                word = spread(even) | spread(odd) << 1
            }
            set(&result, block, word)
        }
        return result
    }

    /// Up to 8 bytes of the payload from `start` on, zeros behind `end`.
    @inline(__always)
    private static func load(_ node: Node, _ start: Int, _ end: Int) -> UInt64 {
        if start &+ 8 <= end { return node.payload.loadUnaligned(fromByteOffset: start, as: UInt64.self) }
        var word: UInt64 = 0
        var i = start
        while i < end {
            word |= UInt64(node.payload.load(fromByteOffset: i, as: UInt8.self)) << UInt64((i &- start) &* 8)
            i &+= 1
        }
        return word
    }

    /// A range of small unsigned values, tested for all elements of a word at once.
    private struct SmallRange {
        /// All ones where the value 0, 1, 2, 3 is in the range.
        private let m0: UInt64, m1: UInt64, m2: UInt64, m3: UInt64
        private let least: UInt64, greatest: UInt64

        init(_ low: Int64, _ high: Int64) {
            func mask(_ v: Int64) -> UInt64 { v >= low && v <= high ? .max : 0 }
            (m0, m1, m2, m3) = (mask(0), mask(1), mask(2), mask(3))
            // In bytes whose upper half is free: the top bit of `v + 128 - low` tells v >= low, that of `128 + high - v` tells v
            // <= high.
            least = (128 &- UInt64(max(0, min(16, low)))) &* 0x0101_0101_0101_0101
            greatest = high < 0 ? 0 : (128 &+ UInt64(min(15, high))) &* 0x0101_0101_0101_0101
        }

        @inline(__always) func ones(_ w: UInt64) -> UInt64 { w & m1 | ~w & m0 }

        /// The result for each element stands in the lower of its two bits.
        @inline(__always)
        func twos(_ w: UInt64) -> UInt64 {
            let b0 = w, b1 = w >> 1
            return (~b1 & (~b0 & m0 | b0 & m1) | b1 & (~b0 & m2 | b0 & m3)) & 0x5555_5555_5555_5555
        }

        /// The results for the even and the odd elements, in the top bits of bytes.
        @inline(__always)
        func fours(_ w: UInt64) -> (UInt64, UInt64) {
            let even = w & 0x0F0F_0F0F_0F0F_0F0F, odd = w >> 4 & 0x0F0F_0F0F_0F0F_0F0F
            let top: UInt64 = 0x8080_8080_8080_8080
            if greatest == 0 { return (0, 0) }
            return ((even &+ least) & (greatest &- even) & top, (odd &+ least) & (greatest &- odd) & top)
        }
    }

    /// The top bits of 8 bytes that have no other bits, as 8 bits.
    @inline(__always)
    private static func topBits(_ word: UInt64) -> UInt64 { ((word >> 7) &* 0x0102_0408_1020_4080) >> 56 }

    /// The even bits of a word, moved together into 32 bits.
    @inline(__always)
    private static func compressed(_ word: UInt64) -> UInt64 {
        var x = word
        x = (x | x >> 1) & 0x3333_3333_3333_3333
        x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F
        x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF
        x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF
        return (x | x >> 16) & 0xFFFF_FFFF
    }

    /// 32 bits, moved apart to the even bits of a word.
    @inline(__always)
    private static func spread(_ bits: UInt64) -> UInt64 {
        var x = bits
        x = (x | x << 16) & 0x0000_FFFF_0000_FFFF
        x = (x | x << 8) & 0x00FF_00FF_00FF_00FF
        x = (x | x << 4) & 0x0F0F_0F0F_0F0F_0F0F
        x = (x | x << 2) & 0x3333_3333_3333_3333
        return (x | x << 1) & 0x5555_5555_5555_5555
    }

    /// Gathers the lowest bit of each of 8 bytes, which are 0 or 255, into 8 bits.
    @inline(__always)
    private static func gather(_ bytes: UInt64) -> UInt64 { ((bytes & 0x8040_2010_0804_0201) &* 0x0101_0101_0101_0101) >> 56 }

    @inline(__always)
    static func set(_ result: inout RowMask, _ index: Int, _ word: UInt64) {
        switch index {
        case 0: result.words.0 = word
        case 1: result.words.1 = word
        case 2: result.words.2 = word
        default: result.words.3 = word
        }
    }

    /// The rows from `start` on, one by one.
    @inline(__always)
    private static func tail<T: FixedWidthInteger>(
        _ p: UnsafeRawPointer, _ start: Int, _ count: Int, _ low: T, _ high: T, _ result: inout RowMask
    ) {
        for i in start..<count {
            let v = p.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self)
            if v >= low && v <= high { result.insert(i) }
        }
    }

    // One comparison does for both bounds: v is in low...high when v - low, as an unsigned number, is at most high - low; and
    // unsigned numbers compare like signed ones once the least signed number is added to both.

    private static func bytes(_ p: UnsafeRawPointer, _ count: Int, _ low: Int8, _ high: Int8) -> RowMask {
        var result = RowMask()
        let lows = SIMD32<Int8>(repeating: low &- Int8.min), highs = SIMD32<Int8>(repeating: high &- low &+ Int8.min)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for half in 0..<2 {
                let v = p.loadUnaligned(fromByteOffset: block &* 64 &+ half &* 32, as: SIMD32<Int8>.self)
                let inside = ~unsafeBitCast((v &- lows) .> highs, to: SIMD4<UInt64>.self)
                word |=
                    (gather(inside[0]) | gather(inside[1]) << 8 | gather(inside[2]) << 16 | gather(inside[3]) << 24)
                    << UInt64(half &* 32)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    private static func halves(_ p: UnsafeRawPointer, _ count: Int, _ low: Int16, _ high: Int16) -> RowMask {
        var result = RowMask()
        let lows = SIMD16<Int16>(repeating: low &- Int16.min), highs = SIMD16<Int16>(repeating: high &- low &+ Int16.min)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for quarter in 0..<4 {
                let v = p.loadUnaligned(fromByteOffset: (block &* 64 &+ quarter &* 16) &* 2, as: SIMD16<Int16>.self)
                let above = unsafeBitCast((v &- lows) .> highs, to: SIMD16<Int16>.self)
                let outside = unsafeBitCast(SIMD16<Int8>(truncatingIfNeeded: above), to: SIMD2<UInt64>.self)
                word |= (gather(~outside[0]) | gather(~outside[1]) << 8) << UInt64(quarter &* 16)
            }
            set(&result, block, word)
        }
        tail(p, blocks &* 64, count, low, high, &result)
        return result
    }

    private static func words(_ p: UnsafeRawPointer, _ count: Int, _ low: Int32, _ high: Int32) -> RowMask {
        var result = RowMask()
        let lows = SIMD8<Int32>(repeating: low &- Int32.min), highs = SIMD8<Int32>(repeating: high &- low &+ Int32.min)
        let blocks = count >> 6
        for block in 0..<blocks {
            var word: UInt64 = 0
            for part in 0..<8 {
                let v = p.loadUnaligned(fromByteOffset: (block &* 64 &+ part &* 8) &* 4, as: SIMD8<Int32>.self)
                let above = unsafeBitCast((v &- lows) .> highs, to: SIMD8<Int32>.self)
                let outside = unsafeBitCast(SIMD8<Int8>(truncatingIfNeeded: above), to: UInt64.self)
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
        let span = UInt64(bitPattern: high &- low)
        for block in 0..<blocks {
            var word: UInt64 = 0
            for part in 0..<8 {
                let base = p + (block &* 64 &+ part &* 8) &* 8
                @inline(__always) func bit(_ lane: Int) -> UInt64 {
                    let v = base.loadUnaligned(fromByteOffset: lane &* 8, as: Int64.self)
                    return (UInt64(bitPattern: v &- low) <= span ? 1 : 0) << UInt64(lane)
                }
                let first = bit(0) | bit(1) | bit(2) | bit(3), second = bit(4) | bit(5) | bit(6) | bit(7)
                word |= (first | second) << UInt64(part &* 8)
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
        case 1, 2, 3:
            if low > 15 || high < 0 { return 0 }
            return countSmall(node, low, high)
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

    private static func countSmall(_ node: Node, _ low: Int64, _ high: Int64) -> Int {
        let n = node.count, width = node.width
        let test = SmallRange(low, high)
        let words = (n &* width) >> 6
        let p = node.payload
        var total = 0
        switch width {
        case 1:
            for i in 0..<words { total &+= test.ones(p.loadUnaligned(fromByteOffset: i &* 8, as: UInt64.self)).nonzeroBitCount }
        case 2:
            for i in 0..<words { total &+= test.twos(p.loadUnaligned(fromByteOffset: i &* 8, as: UInt64.self)).nonzeroBitCount }
        default:
            for i in 0..<words {
                let (even, odd) = test.fours(p.loadUnaligned(fromByteOffset: i &* 8, as: UInt64.self))
                // 0, 1 or 2 in each byte, which a multiplication adds up.
                total &+= Int(truncatingIfNeeded: (((even >> 7) &+ (odd >> 7)) &* 0x0101_0101_0101_0101) >> 56)
            }
        }
        for i in ((words << 6) / width)..<n {
            let v = node.unchecked(i)
            total &+= v >= low && v <= high ? 1 : 0
        }
        return total
    }

    // A mask is -1 in each lane that is outside: adding it up counts down. Lanes are emptied before they can overflow.

    private static func countBytes(_ p: UnsafeRawPointer, _ n: Int, _ low: Int8, _ high: Int8) -> Int {
        let lows = SIMD32<Int8>(repeating: low &- Int8.min), highs = SIMD32<Int8>(repeating: high &- low &+ Int8.min)
        var outside = 0, i = 0
        while i &+ 32 <= n {
            var sum = SIMD32<Int8>()
            let end = min(n &- 32, i &+ 126 &* 32)
            while i <= end {
                let v = p.loadUnaligned(fromByteOffset: i, as: SIMD32<Int8>.self)
                sum = sum &- unsafeBitCast((v &- lows) .> highs, to: SIMD32<Int8>.self)
                i &+= 32
            }
            for lane in 0..<32 { outside &+= Int(sum[lane]) }
        }
        return (n & ~31) &- outside &+ countRest(p, i, n, low, high)
    }

    /// The elements from `start` on, one by one.
    @inline(__always)
    private static func countRest<T: FixedWidthInteger>(_ p: UnsafeRawPointer, _ start: Int, _ n: Int, _ low: T, _ high: T) -> Int
    {
        var inside = 0, i = start
        while i < n {
            let v = p.loadUnaligned(fromByteOffset: i &* MemoryLayout<T>.size, as: T.self)
            inside &+= v >= low && v <= high ? 1 : 0
            i &+= 1
        }
        return inside
    }

    private static func countHalves(_ p: UnsafeRawPointer, _ n: Int, _ low: Int16, _ high: Int16) -> Int {
        let lows = SIMD16<Int16>(repeating: low &- Int16.min), highs = SIMD16<Int16>(repeating: high &- low &+ Int16.min)
        var outside = 0, i = 0
        while i &+ 16 <= n {
            var sum = SIMD16<Int16>()
            let end = min(n &- 16, i &+ 30_000 &* 16)
            while i <= end {
                let v = p.loadUnaligned(fromByteOffset: i &* 2, as: SIMD16<Int16>.self)
                sum = sum &- unsafeBitCast((v &- lows) .> highs, to: SIMD16<Int16>.self)
                i &+= 16
            }
            for lane in 0..<16 { outside &+= Int(sum[lane]) }
        }
        return (n & ~15) &- outside &+ countRest(p, i, n, low, high)
    }

    private static func countWords(_ p: UnsafeRawPointer, _ n: Int, _ low: Int32, _ high: Int32) -> Int {
        let lows = SIMD8<Int32>(repeating: low &- Int32.min), highs = SIMD8<Int32>(repeating: high &- low &+ Int32.min)
        var sum = SIMD8<Int32>()
        var i = 0
        while i &+ 8 <= n {
            let v = p.loadUnaligned(fromByteOffset: i &* 4, as: SIMD8<Int32>.self)
            sum = sum &- unsafeBitCast((v &- lows) .> highs, to: SIMD8<Int32>.self)
            i &+= 8
        }
        var inside = i
        for lane in 0..<8 { inside &-= Int(sum[lane]) }
        return inside &+ countRest(p, i, n, low, high)
    }

    /// The baseline has no comparison of 64-bit lanes: one by one is quicker.
    private static func countLongs(_ p: UnsafeRawPointer, _ n: Int, _ low: Int64, _ high: Int64) -> Int {
        let span = UInt64(bitPattern: high &- low)
        var inside = 0, i = 0
        while i < n {
            let v = p.loadUnaligned(fromByteOffset: i &* 8, as: Int64.self)
            inside &+= UInt64(bitPattern: v &- low) <= span ? 1 : 0
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
                for lane in 0..<16 { total &+= Int64(sum[lane]) }
            }
        case 5:
            while i &+ 8 <= n {
                var sum = SIMD8<Int32>()
                let end = min(n &- 8, i &+ 60_000 &* 8)
                while i <= end {
                    sum = sum &+ SIMD8<Int32>(truncatingIfNeeded: p.loadUnaligned(fromByteOffset: i &* 2, as: SIMD8<Int16>.self))
                    i &+= 8
                }
                for lane in 0..<8 { total &+= Int64(sum[lane]) }
            }
        case 6:
            var sum = SIMD4<Int64>()
            while i &+ 4 <= n {
                sum = sum &+ SIMD4<Int64>(truncatingIfNeeded: p.loadUnaligned(fromByteOffset: i &* 4, as: SIMD4<Int32>.self))
                i &+= 4
            }
            for lane in 0..<4 { total &+= sum[lane] }
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
