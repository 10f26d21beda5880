import Glibc
import SystemCalls

/// Which bytes of a file belong to somebody: one bit for each 8 bytes, and one for each start of a node.
///
/// Invariant: a bit of `used` is set at most once, so all `claim` calls together cost no more than the file is long.
final class SpaceMap {
    /// Bytes covered.
    let limit: Int
    private let used: UnsafeMutablePointer<UInt64>
    private let starts: UnsafeMutablePointer<UInt64>

    static func make(limit: Int) throws -> SpaceMap {
        let words = limit / 512 + 1
        guard let memory = calloc(words, 16) else { throw SystemError(call: "calloc", code: ENOMEM, path: "") }
        return SpaceMap(limit: limit, memory: memory.assumingMemoryBound(to: UInt64.self), words: words)
    }

    private init(limit: Int, memory: UnsafeMutablePointer<UInt64>, words: Int) {
        self.limit = limit
        used = memory
        starts = memory + words
    }

    deinit { free(used) }

    /// True where a node that begins at `ref` was claimed before; `ref` is a multiple of 8 within the limit.
    func isStart(_ ref: Int) -> Bool { starts[ref >> 9] >> UInt64(ref >> 3 & 63) & 1 != 0 }

    func setStart(_ ref: Int) { starts[ref >> 9] |= 1 << UInt64(ref >> 3 & 63) }

    /// Claims `[start, end)`, both multiples of 8 within the limit, up to the first byte that has an owner already.
    /// Returns that byte, or nil where the whole extent was free.
    func claim(_ start: Int, _ end: Int) -> Int? {
        var bit = start >> 3
        let last = end >> 3
        while bit < last {
            let offset = bit & 63
            let count = min(64 - offset, last - bit)
            let mask = (count == 64 ? UInt64.max : (1 << UInt64(count)) - 1) << UInt64(offset)
            let taken = used[bit >> 6] & mask
            if taken != 0 {
                let first = taken.trailingZeroBitCount
                used[bit >> 6] |= mask & ((1 << UInt64(first)) - 1)
                return (bit & ~63 | first) << 3
            }
            used[bit >> 6] |= mask
            bit += count
        }
        return nil
    }

    /// Calls `body` with each longest extent of `[start, end)` without an owner, in order.
    func forEachGap(from start: Int, to end: Int, _ body: (Int, Int) throws -> Void) rethrows {
        var bit = start >> 3
        let last = end >> 3
        while bit < last {
            let free = ~used[bit >> 6] >> UInt64(bit & 63)
            if free == 0 { bit = (bit | 63) + 1; continue }
            bit += free.trailingZeroBitCount
            if bit >= last { return }
            let gap = bit
            while bit < last {
                let taken = used[bit >> 6] >> UInt64(bit & 63)
                if taken == 0 { bit = (bit | 63) + 1; continue }
                bit += taken.trailingZeroBitCount
                break
            }
            try body(gap << 3, min(bit, last) << 3)
        }
    }
}
